/* SPDX-License-Identifier: Apache-2.0 */
/* How the micro-kernel cuts a tile. micro_block.h has the blocks, micro_runs.h those in assembler, micro_asks.h what
 * they ask for, micro_copies.h the copied lines, micro_plain.h the plain form. Who includes it says what elements are,
 * pairs of bfloat16 (PAIRS is 1) or floats (0), and gives MULTIPLY_ADD(a, b, c), c + a b. */
#ifndef KERNELS_ISA_MICRO_TILE_H
#define KERNELS_ISA_MICRO_TILE_H

#include "kernels/micro.h"

#include <assert.h>
#include <stdalign.h>

#include "kernels/isa/isa.h"

#if defined(ISA_IS_plain)
#include "kernels/isa/micro_plain.h"
#else
#include "kernels/isa/micro_asks.h"
#include "kernels/isa/micro_block.h"
#include "kernels/isa/micro_copies.h"
#include "kernels/isa/micro_runs.h"

/* Blocks of `width` columns from `col` on, below each other. far: what they share, or NULL. */
static void column(const struct micro_call *call, int col, int width, struct far *far)
{
    const int vectors = (width + VL - 1) / VL, lanes = width - (vectors - 1) * VL;
    const struct heights heights = heights_of(call->m, vectors);
    for (int part = 0, row = 0; part < heights.parts;) {
        struct asked asked = {0};
        enum asks way;
        int left = asks_alike(call, far, col, vectors, part, heights.parts - part, &way, &asked);
        for (; left > 0; left--, part++, asked.part++) {
            const int rows = heights.few + (part >= heights.of_few);
            assert(blocks[ASKED(way)][vectors][rows]);
            blocks[ASKED(way)][vectors][rows](call, row, col, lanes, &asked);
            row += rows;
        }
    }
}

/* Columns of a block. Rows that come to four a block are wider ones. */
static int width_of(const struct micro_call *call)
{
#if defined(ISA_IS_avx2)
    static const int vectors[] = {VECTORS, MOST_VECTORS, 4, 4, 3, VECTORS, VECTORS, 3, 3};
    return (call->m < (int)(sizeof vectors / sizeof *vectors) ? vectors[call->m] : VECTORS) * VL;
#else
    (void)call;
    return WIDTH;
#endif
}

/* Does every step of a block find what it asks for as far on as its own A? */
static bool steps_alike(const struct micro_call *call)
{
    return !call->soon_stride || call->soon_stride == call->step_stride;
}

/* far: what the columns share, or NULL. */
static void columns_of(const struct micro_call *call, int width, struct far *far)
{
    int col = in_runs(call, width, far) ? run_columns(call, far) : 0;
    for (; col < call->n; col += width)
        column(call, col, (int)least(call->n - col, width), far);
}

static void columns(const struct micro_call *call)
{
    const int width = width_of(call);
    struct far room, *far = call->soon_a && call->ldb <= PANEL_MAX ? far_of(call, width, &room) : NULL;
    struct micro_call other;
    if (!far && !steps_alike(call)) {
        other = *call;
        other.soon_a = NULL;
        call = &other;
    }
    columns_of(call, width, far);
}

#if defined(ISA_IS_avx2)
static void copied_columns(const struct micro_call *call)
{
    alignas(LINE) float lines[COPIED_STEPS * WIDTH];
    const void *a[MICRO_SEGMENTS], *b[MICRO_SEGMENTS];
    struct micro_call near = *call;
    int32_t k[MICRO_SEGMENTS];
    near.ldb = WIDTH;
    near.soon_b = NULL;
    near.a = a;
    near.b = b;
    near.k = k;
    near.count = join_segments(call, lines, a, b, k);
    struct far room, *far = near.count == call->count ? far_of(call, WIDTH, &room) : NULL;
    if (!far && !steps_alike(call))
        near.soon_a = NULL;
    for (int col = 0; col < call->n; col += WIDTH) {
        near.n = (int)least(call->n - col, WIDTH);
        copy_column(call, col, near.n, lines, !far);
        near.c = call->c + col;
        columns_of(&near, WIDTH, far);
        near.soon_a = NULL; /* it was asked for in the first column */
    }
}
#else
#define copied_columns columns
#endif

static void tile(const struct micro_call *call)
{
    (copies(call) ? copied_columns : columns)(call);
}
#endif
#endif
