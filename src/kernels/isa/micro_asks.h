/* SPDX-License-Identifier: Apache-2.0 */
/* What each block of isa/micro.c asks for, beside what it computes. */
#ifndef KERNELS_ISA_MICRO_ASKS_H
#define KERNELS_ISA_MICRO_ASKS_H

#include "kernels/isa/micro_block.h"

/* What the next call reads, shared by all blocks of this one, which find their own B in level 1. */
struct far {
    const struct micro_call *call;
    int64_t stride_a, stride_b; /* bytes a step */
    int lines_of_a, lines_of_b; /* a step */
    int parts;                  /* of the steps, for a block each */
    int block;                  /* the next one */
};

#if defined(ISA_IS_avx2)
/* For a call in columns of `width`; NULL: its blocks do not share what is asked for. */
static struct far *far_of(const struct micro_call *call, int width, struct far *far)
{
    const int64_t stride = call->soon_stride ? call->soon_stride : call->step_stride;
    *far = (struct far){.call = call, .stride_a = 4 * stride, .stride_b = 4 * call->ldb, .parts = ASKERS};
    far->lines_of_a = call->soon_a ? (int)divide_up(4 * call->m, LINE) : 0;
    far->lines_of_b = call->soon_b ? (int)divide_up(4 * call->n, LINE) : 0;
    const int64_t sharing = blocks_below(call->m, width / VL) * divide_up(call->n, width);
    while (far->parts > 1 && (far->lines_of_a + far->lines_of_b) * far->parts > sharing)
        far->parts /= 2;
    if (far->parts == 1) /* too few blocks: hardware alone is as fast */
        far->lines_of_a = far->lines_of_b = 0;
    return call->count && call->k[0] >= SPACED_STEPS ? far : NULL;
}

/* asks_alike of a call whose blocks share what is asked for. */
static int asks_far(struct far *far, int left, enum asks *asks, struct asked *asked)
{
    const int line = far->block / far->parts, part = far->block % far->parts, line_of_b = line - far->lines_of_a;
    *asks = line_of_b >= far->lines_of_b ? NOTHING : SPACED;
    if (*asks == SPACED)
        *asked = line_of_b < 0 ? (struct asked){far->call->soon_a, line * LINE, far->stride_a, part, far->parts}
                               : (struct asked){far->call->soon_b, line_of_b * LINE, far->stride_b, part, far->parts};
    const int alike = *asks == SPACED ? (int)least(left, far->parts - part) : left;
    far->block += alike;
    return alike;
}

/* What the block of this number in the column from `col` on asks for, behind which come `left - 1` more; returns for
 * how many from it on that holds, each with the next part. SPACED are the lines of B that the next column reads, of
 * this call or the next one, into level 1, where A, which passes once a column, would push them out again if they came
 * early: the last ASKERS blocks share them. With soon_all the first ones share what soon_b has in this column. */
static int asks_alike(const struct micro_call *call, struct far *far, int col, int vectors, int number, int left,
                      enum asks *asks, struct asked *asked)
{
    const bool panel = call->ldb <= PANEL_MAX;
    if (call->m == 1) { /* a panel is read as it lies there, which hardware follows */
        *asks = panel ? NOTHING : EVERY_STEP;
        return left;
    }
    if (far)
        return asks_far(far, left, asks, asked);
    if (number + left >= ASKERS && call->count && call->soon_b && !call->soon_a && panel &&
        call->k[0] >= SPACED_STEPS) {
        const int beside = col + vectors * VL, early = call->soon_all ? ASKERS : 0, late = left - ASKERS;
        const bool here = beside < call->n || call->soon_all;
        if (late <= 0)
            *asked = (struct asked){here ? call->b : call->soon_b, here ? 4 * beside : 0, 4 * call->ldb, -late, ASKERS};
        else
            *asked = (struct asked){call->soon_b, 4 * col, 4 * call->ldb, number, ASKERS};
        *asks = late <= 0 || number < early ? SPACED : NOTHING;
        return late <= 0 ? left : number < early ? (int)least(early - number, late) : late;
    }
    const int lines_a = call->soon_a ? call->m * 4 / LINE : 0;
    const int lines_b = call->soon_b ? vectors * (int)sizeof(vf) / LINE : 0;
    const int asking = panel ? (int)most(lines_a, lines_b) : number + left;
    *asks = number < asking ? EVERY_STEP : NOTHING;
    return number < asking ? (int)least(asking - number, left) : left;
}
#else
static struct far *far_of(const struct micro_call *call, int width, struct far *far)
{
    (void)call, (void)width, (void)far;
    return NULL;
}

static int asks_alike(const struct micro_call *call, struct far *far, int col, int vectors, int number, int left,
                      enum asks *asks, struct asked *asked)
{
    (void)call, (void)far, (void)col, (void)vectors, (void)number, (void)asked;
    *asks = EVERY_STEP;
    return left;
}
#endif

#endif
