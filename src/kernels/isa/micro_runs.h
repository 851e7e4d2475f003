/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of isa/micro.c whose blocks are all in assembler (isa/micro_avx2.h), a run of blocks at a time. */
#ifndef KERNELS_ISA_MICRO_RUNS_H
#define KERNELS_ISA_MICRO_RUNS_H

#include "kernels/isa/micro_asks.h"

#if defined(ISA_IS_avx2) && !PAIRS
#include "kernels/isa/micro_avx2.h"

/* Are all blocks of whole columns among block_runs? */
static bool in_runs(const struct micro_call *call, int width, const struct far *far)
{
    const struct heights heights = heights_of(call->m, VECTORS);
    if (!ASSEMBLER || width != WIDTH || !call->count || call->ldb > PANEL_MAX || heights.few < RUN_ROWS_MIN)
        return false;
    return far ? far->parts == ASKERS || !(far->lines_of_a + far->lines_of_b)
               : !call->soon_a && (!call->soon_b || (heights.parts >= ASKERS && call->k[0] >= SPACED_STEPS));
}

/* All whole columns; returns where they end. */
static int run_columns(const struct micro_call *call, struct far *far)
{
    const struct heights heights = heights_of(call->m, VECTORS);
    const int64_t a = 4 * call->row_stride, c = 4 * call->ldc;
    const int64_t along_a[] = {0, a, 2 * a, 3 * a, 4 * a, 5 * a}, along_c[] = {0, c, 2 * c, 3 * c, 4 * c, 5 * c};
    const int64_t *of_a = call->row_offset, *of_c = call->result_offset;
    struct block_run run = {
        .a = {.stride = of_a ? 0 : a, .offset_stride = of_a ? sizeof *of_a : 0},
        .c = {.stride = of_c ? 0 : c, .offset_stride = of_c ? sizeof *of_c : 0},
        .segment_a = call->a, .segment_b = call->b, .steps = call->k, .segments = call->count,
        .step = 4 * call->step_stride, .line = 4 * call->ldb, .accumulate = call->accumulate};
    int col = 0;
    for (; col + WIDTH <= call->n; col += WIDTH) {
        run.col = 4 * col;
        run.a.begin = 0;
        run.a.offset = of_a ? of_a : along_a;
        run.c.begin = (int64_t)(call->c + col);
        run.c.offset = of_c ? of_c : along_c;
        for (int part = 0; part < heights.parts;) {
            struct asked asked;
            enum asks way;
            int left = asks_alike(call, far, col, VECTORS, part, heights.parts - part, &way, &asked);
            assert(way != EVERY_STEP);
            if (way == SPACED) {
                run.soon = asked.soon;
                run.soon_offset = asked.offset;
                run.soon_stride = asked.stride;
                run.part = asked.part;
            }
            while (left > 0) {
                const int rows = heights.few + (part >= heights.of_few);
                run.blocks = part < heights.of_few ? least(left, heights.of_few - part) : left;
                part += (int)run.blocks;
                left -= (int)run.blocks;
                block_runs[way == SPACED][rows - RUN_ROWS_MIN](&run);
            }
        }
    }
    return col;
}
#else
#define in_runs(call, width, far) false
#define run_columns(call, far) 0
#endif
#endif
