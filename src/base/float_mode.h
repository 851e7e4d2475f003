/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point mode of a thread: how it rounds, whether the smallest numbers count as 0, which exceptions trap. A
 * thread begins with the mode of the one that created it, and an application may change its own at any time. Results
 * would then depend on how work is divided among threads: so whatever computes them runs in the default mode, and the
 * caller's is as before afterwards. Where it is the default one anyway this takes some nanoseconds. Any thread. */
#ifndef BASE_FLOAT_MODE_H
#define BASE_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>

struct float_mode {
    unsigned control; /* MXCSR: SSE and AVX do all arithmetic; writing it costs more than reading */
};

enum { FLOAT_RAISED = 0x3f, FLOAT_DEFAULT = 0x1f80 }; /* what was raised; nothing traps, to nearest, no flushing */

static inline struct float_mode float_mode_enter(void)
{
    struct float_mode mode = {_mm_getcsr()};
    if ((mode.control & ~(unsigned)FLOAT_RAISED) != FLOAT_DEFAULT)
        _mm_setcsr(FLOAT_DEFAULT);
    return mode;
}

static inline void float_mode_leave(struct float_mode mode)
{
    if ((mode.control & ~(unsigned)FLOAT_RAISED) != FLOAT_DEFAULT)
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
    return mode;
}

static inline void float_mode_leave(struct float_mode mode)
{
    fesetenv(&mode.environment);
}

#endif

#endif
