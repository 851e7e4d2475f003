/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point mode of a thread: how it rounds, whether the smallest numbers count as 0, which exceptions trap. A
 * thread begins with the mode of the one that created it, and an application may change its own at any time. Results
 * would then depend on how work is divided among threads: so whatever computes them runs in one mode, and the caller's
 * is as before afterwards.
 *
 * That mode rounds to nearest, traps nothing, and takes subnormal numbers for 0, as operands and as results: processors
 * take a hundred times as long for each of them, and training makes more of them with every step (moments of rows that
 * get no gradient), so that old networks would be slow ones. Instructions that multiply bfloat16 do so in any mode.
 * Entering and leaving takes some nanoseconds. Any thread. */
#ifndef BASE_FLOAT_MODE_H
#define BASE_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>

struct float_mode {
    unsigned control; /* MXCSR: SSE and AVX do all arithmetic; writing it costs more than reading */
};

enum {
    FLOAT_RAISED = 0x3f, /* what was raised */
    FLOAT_FLUSH = 0x8040, /* flush to zero: results; denormals are zero: operands */
    FLOAT_OURS = 0x1f80 | FLOAT_FLUSH /* nothing traps, to nearest */
};

static inline struct float_mode float_mode_enter(void)
{
    struct float_mode mode = {_mm_getcsr()};
    if ((mode.control & ~(unsigned)FLOAT_RAISED) != FLOAT_OURS)
        _mm_setcsr(FLOAT_OURS);
    return mode;
}

static inline void float_mode_leave(struct float_mode mode)
{
    if ((mode.control & ~(unsigned)FLOAT_RAISED) != FLOAT_OURS)
        _mm_setcsr(mode.control);
}

#else
#include <fenv.h>

struct float_mode {
    fenv_t environment;
};

static inline struct float_mode float_mode_enter(void)
{
    struct float_mode mode;
    fegetenv(&mode.environment);
    fesetenv(FE_DFL_ENV);
#if defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1ul << 24)); /* FZ: operands and results */
#endif
    return mode;
}

static inline void float_mode_leave(struct float_mode mode)
{
    fesetenv(&mode.environment);
}

#endif

#endif
