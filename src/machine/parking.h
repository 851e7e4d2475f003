/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for another thread: turns of a spin loop, and a word to sleep on. Any thread. */
#ifndef MACHINE_PARKING_H
#define MACHINE_PARKING_H

#include <stdatomic.h>

/* Relaxes the CPU in a spin loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* One turn of an unbounded spin: relaxes the CPU, and after some tens of microseconds gives it away at every turn, so
 * that more threads than cores still make progress. `turns` starts at 0. */
void spin_turn(unsigned *turns);

/* A bounded spin, then a futex: `word` is waited on until it differs from `old`. Whoever changes the word does it with
 * a sequentially consistent operation (atomic_fetch_add) and calls parking_wake afterwards; that costs one load while
 * nobody sleeps (sleepers announce themselves in `sleepers`, beside the word). */
struct parking {
    atomic_uint word;
    atomic_uint sleepers;
};
void parking_wait(struct parking *parking, unsigned old, int spin_us); /* returns when word != old */
void parking_wake(struct parking *parking);                          /* after changing word */

#endif
