/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: one pinned thread a core, one registry for the whole process. A run leases workers, so two runs never share a core
 * unnoticed; the calling thread joins as worker 0 of its lease (pinned for the time, affinity restored afterwards).
 *
 * A worker spins on its mailbox (one cache line) during a run; between runs, and after a spin bounded in time, it parks on a
 * futex, so an idle process uses no CPU. After fork() the child's registry is empty and threads are created anew on the next
 * lease. */
#ifndef MACHINE_WORKERS_H
#define MACHINE_WORKERS_H

#include "machine/machine.h"

#include <stdatomic.h>

struct lease_options {
    int workers;          /* including the caller; 1 .. machine cores */
    bool caller_extra;    /* dedicated driver: the caller is not worker 0 but a further thread (pinned to a core of its own when
                             there is one left, otherwise sharing the last core, yielding between polls) */
    bool pin;             /* false: leave placement to the operating system */
    int spin_us;          /* spin before parking; 0: the default, 50 */
};

/* A lease of workers 0 .. count-1. Private to the run that holds it. */
struct lease {
    int count;
    struct worker **worker; /* worker[0] is NULL: the caller (unless caller_extra) */
    bool pinned;
    bool shares_core;       /* caller_extra shares the last core */
    char note[160];         /* what the user should know ("core 3 is held by process 4711: not pinned"); "" otherwise */
    /* private */
    void *saved;
};

/* Takes workers, waiting while other runs of this process hold too many; the lease's threads exist afterwards. Cores held by
 * other processes (a lock file per core) are not pinned to, with a note. Errors: MEMORY, INVALID (workers > cores), UNSUPPORTED
 * (thread creation refused; message says why). */
graphi_status lease_take(const graphi_machine *machine, const struct lease_options *options, struct lease *lease);
void lease_release(struct lease *lease);

/* The function that worker i of the lease runs: started on workers 1..count-1 (0.. when caller_extra) by lease_start; each
 * calls body(context, i) once, and lease_wait returns when all have returned. The caller itself runs body(context, 0) between
 * the two when it is worker 0. Costs one mailbox message per worker. No allocation. */
typedef void (*worker_body)(void *context, int index);
void lease_start(struct lease *lease, worker_body body, void *context);
void lease_wait(struct lease *lease);

/* Relaxes the CPU in a spin loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A bounded spin, then a futex: `word` is waited on until it differs from `old`. Use: w = spin_begin(us); while (word == old)
 * spin_wait(&w, &word, old). Whoever changes the word calls spin_wake(&word) afterwards; that costs one load while nobody
 * sleeps (sleepers announce themselves in `sleepers`, beside the word). */
struct parking {
    atomic_uint word;
    atomic_uint sleepers;
};
void parking_wait(struct parking *parking, unsigned old, int spin_us); /* returns when word != old */
void parking_wake(struct parking *parking);                          /* after changing word */

#endif
