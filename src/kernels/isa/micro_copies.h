/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of B side by side, for isa/micro.c with AVX2. */
#ifndef KERNELS_ISA_MICRO_COPIES_H
#define KERNELS_ISA_MICRO_COPIES_H

#include "kernels/isa/micro_block.h"

#if defined(ISA_IS_avx2)
/* A block reads one line of each row of B, and so does every block below it. Rows that lie a large power of two apart
 * share few sets of the level-1 cache, and their lines are gone by then. A call of many rows of C copies each column's
 * lines of B side by side first, where they stay. Those of a packed panel are as good as that.
 * `graphi bench kernels square "gradient of"` shows it. */
enum {
    COPIED_ROWS = 48,
    COPIED_STEPS = 512, /* at most */
    SETS_BYTES = 4096,  /* of level 1: addresses so far apart share a set */
    KEPT = 4,           /* lines of a set that stay: half of its ways, the other half is for A */
};

/* Sets that lines so many elements apart meet. */
static int64_t sets_met(int64_t ldb)
{
    const int64_t apart = (ldb & -ldb) * (int64_t)sizeof(float);
    return most(SETS_BYTES / most(apart, LINE), 1);
}

static bool copies(const struct micro_call *call)
{
    if (call->m < COPIED_ROWS || call->ldb <= PANEL_MAX || call->count > MICRO_SEGMENTS)
        return false;
    int64_t steps = 0;
    for (int64_t i = 0; i < call->count; i++)
        steps += call->k[i];
    const int64_t stay = KEPT * sets_met(call->ldb) / (call->count > 1 ? 2 : 1); /* segments meet at random */
    return steps >= stay && steps <= COPIED_STEPS;
}

INLINE void copy_lines(const char *from, int64_t ldb, int64_t ahead, int64_t steps, int width, bool whole, float *to)
{
    const vector_mask low = first_lanes(width), high = first_lanes(width - VL);
    for (; steps > 0; steps--, from += ldb, to += WIDTH) {
        const float *line = (const float *)from;
        __builtin_prefetch(from + B_AHEAD * ldb);
        __builtin_prefetch(from + ahead, 0, 2);
        vstore(to, whole ? vload(line) : LOAD_PART(line, low));
        vstore(to + VL, whole ? vload(line + VL) : LOAD_PART(line + VL, high));
    }
}

/* A column's lines of all segments, one after the other; with `asks` also asks for those of the next call. */
static void copy_column(const struct micro_call *call, int col, int width, float *to, bool asks)
{
    for (int64_t i = 0; i < call->count; to += call->k[i++] * WIDTH) {
        const char *from = (const char *)((const float *)call->b[i] + col);
        const int64_t ahead = asks && call->soon_b ? (const char *)call->soon_b[i] - (const char *)call->b[i] : 0;
        if (width == WIDTH)
            copy_lines(from, call->ldb * 4, ahead, call->k[i], width, true, to);
        else
            copy_lines(from, call->ldb * 4, ahead, call->k[i], width, false, to);
    }
}

/* Segments whose A goes on where that of the one before ends are one, now that their lines of B do: a weight gradient
 * of few rows a step of time has very short ones. Returns how many are left. */
static int64_t join_segments(const struct micro_call *call, const float *lines, const void **a, const void **b,
                             int32_t *k)
{
    int64_t count = 0;
    const char *end = NULL;
    for (int64_t i = 0; i < call->count; i++) {
        const int64_t steps = call->k[i];
        if (!count || call->soon_a || call->a[i] != end) {
            a[count] = call->a[i];
            b[count] = lines;
            k[count++] = 0;
        }
        k[count - 1] += (int32_t)steps;
        lines += steps * WIDTH;
        end = (const char *)call->a[i] + steps * call->step_stride * 4;
    }
    return count;
}
#else
static bool copies(const struct micro_call *call)
{
    (void)call;
    return false;
}
#endif
#endif
