/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a product share: gemm.c cuts it when it is bound, gemm_prepare.c rounds and packs operands,
 * gemm_tiles.c multiplies. Immutable after bind; any thread. */
#ifndef KERNELS_GEMM_INTERNAL_H
#define KERNELS_GEMM_INTERNAL_H

#include "kernels/gemm_batch.h"
#include "kernels/gemm_spec.h"
#include "kernels/micro.h"
#include "kernels/pack.h"

enum {
    GEMM_TILE_ROWS_MAX = 256,
    GEMM_CONVERT_ROWS = 64, /* rows of A rounded at a time */
};

struct gemm_pair {
    int64_t k, lda, ldb;
    size_t a_at, b_at; /* bytes into the workspace: rounded A, packed B */
};

struct gemm {
    struct gemm_spec spec; /* its pointers are not used after bind */
    struct batch batch;
    struct epilogue epilogue;
    micro_function micro;
    const struct pair_functions *round; /* to bfloat16 pairs; NULL: floats */
    bool convert_a; /* A is rounded into the workspace */
    bool pack_b;    /* B is packed into the workspace */
    bool pack_late; /* and each panel just before its one tile, by whom multiplies */
    int width;
    int64_t panels, group; /* panels a group: taken together while rows pass */
    int64_t tile_rows;
    int64_t most_rows; /* of tiles below each other that one thread does as one */
    int64_t depth, all_steps; /* k of all pairs, and the steps that the micro-kernel makes of them */
    int64_t steps;     /* of one call */
    int64_t convert_units, pack_units;
    int prepare_shares, multiply_shares;
    int slots; /* in the workspace, for panels that are packed late and copied pieces */
    bool turns; /* tiles of one row take turns, see multiply_row in gemm_tiles.c */
    bool near_a; /* pieces of a transposed A are copied to where their steps lie together */
    bool asks_a; /* pieces of A are asked for, see struct asked_pieces there */
    size_t near_at, near_bytes; /* in the workspace, and of one piece */
    int pair_count;
    struct gemm_pair pair[];
};

/* Sizes of one call: m, k and the batch may be below their bounds. */
struct gemm_extent {
    int64_t m, batch;
};

static inline struct gemm_extent gemm_extent_of(const struct gemm *g, const struct kernel_call *call)
{
    struct gemm_extent extent = {g->spec.m, g->batch.count};
    int64_t rows = call->in[g->spec.batch_rows_of_b].rows * g->spec.rows_per_row;
    if (g->spec.bounded && g->spec.leads)
        extent.batch = least(rows, extent.batch);
    else if (g->spec.bounded && !g->spec.trans_a)
        extent.m = least(rows, extent.m);
    return extent;
}

static inline int64_t gemm_k_of(const struct gemm *g, const struct kernel_call *call, int pair)
{
    const int64_t k = g->pair[pair].k;
    return g->spec.bounded && g->spec.trans_a && !g->spec.leads ? least(call->in[2 * pair].rows, k) : k;
}

/* Blocks of rows that A is rounded in. */
static inline int64_t gemm_a_blocks(const struct gemm *g)
{
    return divide_up(g->spec.m, GEMM_CONVERT_ROWS);
}

/* Floats between steps of a copied piece of A: half a line more than its rows, or they would share cache sets. */
static inline int64_t gemm_near_stride(int64_t rows)
{
    return round_up(rows, 16) + 8;
}

/* The first phase: rounds A, packs B. */
void gemm_prepare_share(const struct gemm *g, const struct kernel_call *call, int share);

/* Where B's panel from column `col` on begins as it is stored; and packs it. */
const float *gemm_panel_source(const struct gemm *g, const struct kernel_call *call, int64_t batch, int64_t col,
                               int pair);
void gemm_pack_panel(const struct gemm *g, const struct kernel_call *call, int64_t batch, int64_t col, int pair,
                     char *target);

/* The second phase: C. */
void gemm_multiply_share(const struct gemm *g, const struct kernel_call *call, int share);

#endif
