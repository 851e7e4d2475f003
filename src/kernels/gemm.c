/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = epilogue(sum over pairs of op(A_p) op(B_p)), cut into tiles that the micro-kernel computes. Here
 * one is cut, when it is bound; gemm_prepare.c and gemm_tiles.c run it.
 *
 * A tile is one panel of columns (at most 64) by 16 to 256 rows. Tiles never share an element, and the micro-kernel
 * sums each element in the order of pairs and k: results depend neither on the tiles nor on who computes them.
 *
 * Usual size: 64 x 512 x 512, 8 tiles; weight gradients 512 x 512 from 40 pairs of 64 rows, 32 tiles. */
#include "kernels/gemm.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/epilogue.h"
#include "kernels/gemm_internal.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels lstm ptb square batched`, of WEIGHT_ROWS to TRANS_BYTES in
 * "gradient of". */
enum {
    TILE_ROWS_MIN = 16,
    WEIGHT_ROWS = 128, /* of a weight gradient's tiles, see weight_rows */
    TURN_SHARES = 16,  /* a multiple of it, or of the cores, where tiles take turns: fewer threads do several as one, of
                        * longer rows */
    TRANS_BYTES = 320 << 10, /* of a piece of a transposed A and of B, which stays in a level-2 cache of 1 MB beside the
                              * next one; half of it where A meets one panel, and is asked for in little time */
    CORES_OF_PRODUCT = 8, /* of many cores a product of few tiles wants one in so many: `graphi simulate lstm --machine
                           * synthetic-1024` */
    NEAR_ROWS = 192,         /* of more rows a transposed A is copied before AVX-512 */
    NEAR_BYTES = 256 << 10,  /* of all copies, or as much as the result; pieces are shorter then */
    NEAR_STEPS = 64,         /* shorter pairs are one segment in the copy, and the next one is not asked for */
    PANEL_BYTES = 512 << 10, /* panels kept in the level-2 cache while rows pass */
};

/* Rows of a weight gradient's tiles. Each row of tiles reads all of B, which is more than the level-3 cache holds
 * where m is large: tall tiles then. Where it is small, flat ones leave room for longer pieces. */
static int64_t weight_rows(const struct gemm *g)
{
    return most(least(g->spec.m / 4, GEMM_TILE_ROWS_MAX), WEIGHT_ROWS);
}

/* Rows of a tile, down to half of `tallest`, with which the busiest core has the least. */
static int64_t even_tile_rows(const struct gemm *g, int64_t tallest)
{
    const int64_t m = g->spec.m, others = g->panels * g->batch.count, first = divide_up(m, tallest);
    int64_t found = tallest;
    if (!worth_evening(first * others, g->spec.cores))
        return tallest;
    double fewest = (1 - WORTH_FLATTER) *
                    rows_of_busiest(first * others, (double)tallest, (double)tallest, g->spec.cores);
    for (int64_t n = first + 1; n <= 2 * first && n * TILE_ROWS_MIN <= m; n++) {
        const int64_t rows = divide_up(m, n), tiles = divide_up(m, rows) * others;
        const double busiest = rows_of_busiest(tiles, (double)rows, (double)tallest, g->spec.cores);
        if (busiest < fewest) {
            fewest = busiest;
            found = rows;
        }
    }
    return found;
}

/* Tall tiles use B best; they are halved while there are too few of them to balance and each is still worth handing
 * out. The limits are FLOPs: 1 M is about 10 us on one core. */
static int64_t choose_tile_rows(const struct gemm *g)
{
    int64_t rows = least(g->spec.m, g->spec.trans_a ? weight_rows(g) : GEMM_TILE_ROWS_MAX);
    while (rows > TILE_ROWS_MIN) {
        int64_t tiles = divide_up(g->spec.m, rows) * g->panels * g->batch.count;
        double half = (double)rows * (double)g->width * (double)g->depth;
        if (!((tiles < 64 && half >= 32e6) || (tiles < 16 && half >= 4e6) || (tiles < 8 && half >= 1e6) ||
              (tiles < 2 && half >= 0.25e6) || (tiles < g->spec.cores / CORES_OF_PRODUCT && half >= 1e6)))
            break;
        rows = divide_up(rows, 2);
    }
    return rows < 1 ? 1 : even_tile_rows(g, divide_up(g->spec.m, divide_up(g->spec.m, rows)));
}

/* Steps of nearly equal pieces of `most` at most; of whole pairs where those are alike and shorter, since segments of a
 * few steps take long. */
static int64_t whole_pairs(const struct gemm *g, int64_t most)
{
    int64_t pair = pair_rows(g->pair[0].k, g->round);
    for (int p = 1; p < g->pair_count; p++)
        pair = g->pair[p].k == g->pair[0].k ? pair : 0;
    return pair && pair <= most ? pair * micro_limit(g->pair_count, most / pair) : micro_limit(g->all_steps, most);
}

static int64_t shortest(const struct gemm *g)
{
    int64_t k = g->pair[0].k;
    for (int pair = 1; pair < g->pair_count; pair++)
        k = least(k, g->pair[pair].k);
    return k;
}

static graphi_status check(const struct gemm_spec *s)
{
    if (s->m < 0 || s->n < 0 || s->leads < 0 || s->leads > GEMM_MAX_LEADS || s->pairs < 1 || s->pairs > GEMM_MAX_PAIRS)
        return fail(GRAPHI_INVALID, "gemm",
                    "found m %lld, n %lld, %d leading dimensions, %d pairs, expected sizes from 0, "
                    "0 to %d dimensions and 1 to %d pairs",
                    (long long)s->m, (long long)s->n, s->leads, s->pairs, GEMM_MAX_LEADS, GEMM_MAX_PAIRS);
    if (s->leads && s->pairs > 1)
        return fail(GRAPHI_UNSUPPORTED, "gemm", "found a batch of sums of %d pairs, expected one pair", s->pairs);
    if (s->base && (s->leads || s->ld_base < s->n))
        return fail(GRAPHI_UNSUPPORTED, "gemm",
                    "found a base with rows %lld apart, %d leading dimensions, expected at least %lld apart and none",
                    (long long)s->ld_base, s->leads, (long long)s->n);
    if (s->multiplicands != GRAPHI_F32 && s->multiplicands != GRAPHI_BF16)
        return fail(GRAPHI_UNSUPPORTED, "gemm", "found multiplicands %s, expected float32 or bfloat16",
                    graphi_dtype_name(s->multiplicands));
    if (s->epilogue.program && !batch_is_one_matrix(s))
        return fail(GRAPHI_UNSUPPORTED, "gemm",
                    "found an epilogue on a batch of separate results, expected rows of one matrix");
    if (s->packed_b && s->bounded && s->trans_a)
        return fail(GRAPHI_UNSUPPORTED, "gemm", "found a packed B with bounded k, expected a fixed k");
    for (int p = 0; p < s->pairs; p++)
        if (s->k[p] < 0 || s->lda[p] < (s->trans_a ? s->m : s->k[p]) ||
            (!s->packed_b && s->ldb[p] < (s->trans_b ? s->k[p] : s->n)))
            return fail(GRAPHI_INVALID, "gemm",
                        "found pair %d with k %lld and leading dimensions %lld and %lld, expected ones that hold a row",
                        p, (long long)s->k[p], (long long)s->lda[p], (long long)s->ldb[p]);
    return GRAPHI_OK;
}

/* Places rounded A and packed B in the workspace; returns its size. */
static size_t lay_out(struct gemm *g)
{
    size_t a_bytes = 0, b_bytes = 0;
    for (int p = 0; p < g->pair_count; p++) {
        struct gemm_pair *pair = &g->pair[p];
        pair->a_at = a_bytes;
        pair->b_at = b_bytes;
        if (g->convert_a)
            a_bytes += whole_lines(4 * g->spec.m * pair_rows(pair->k, true));
        const int64_t columns = g->pack_late ? g->width : g->spec.n;
        if (g->pack_b)
            b_bytes += whole_lines(4 * columns * pair_rows(pair->k, g->round));
    }
    g->batch.a.bytes = a_bytes;
    g->batch.b.bytes = b_bytes;
    a_bytes *= (size_t)g->batch.a.copies;
    for (int p = 0; p < g->pair_count; p++)
        g->pair[p].b_at += a_bytes;
    g->near_at = a_bytes + b_bytes * (size_t)(g->pack_late ? g->slots : g->batch.b.copies);
    return g->near_at + (g->near_a ? 2 * (size_t)g->slots * g->near_bytes : 0);
}

static void cut(struct gemm *g, enum isa isa)
{
    const struct gemm_spec *s = &g->spec;
    g->micro = micro_kernel(isa, g->round);
    g->convert_a = g->round;
    g->pack_b = !s->packed_b && (s->trans_b || g->round);
    g->width = panel_width(s->n);
    g->panels = panel_count(s->n);
    g->batch = batch_of(s);
    g->tile_rows = choose_tile_rows(g);
    if (g->convert_a && s->trans_a) /* a tile must not cross the blocks that A was rounded in */
        g->tile_rows = g->tile_rows > GEMM_CONVERT_ROWS / 2 ? GEMM_CONVERT_ROWS : GEMM_CONVERT_ROWS / 2;
    const int64_t trans_bytes = level_2_part(TRANS_BYTES, isa) / (g->panels == 1 ? 2 : 1);
    bool stacks = g->batch.count == 1 && !(g->convert_a && s->trans_a);
    g->most_rows = !stacks ? g->tile_rows : s->trans_a ? weight_rows(g) : least(GEMM_TILE_ROWS_MAX, s->m);
    g->steps = s->trans_a ? whole_pairs(g, trans_bytes / (4 * (g->most_rows + g->width)))
                          : micro_limit(g->all_steps, MICRO_STEPS);
    int64_t panel_bytes = 4 * g->all_steps * g->width;
    g->turns = !g->epilogue.present && g->all_steps > 2 * g->steps;
    g->group = most(least(panel_bytes && !g->turns ? PANEL_BYTES / panel_bytes : g->panels, g->panels), 1);
    g->convert_units = g->convert_a ? g->batch.a.copies * g->pair_count * gemm_a_blocks(g) : 0;
    g->pack_late = g->pack_b && !g->turns && g->batch.b.copies == g->batch.count && g->tile_rows >= s->m;
    g->pack_units = g->pack_b && !g->pack_late ? g->batch.b.copies * g->pair_count * g->panels : 0;
    g->prepare_shares = clamp_shares_for(g->convert_units + g->pack_units, s->cores);
    const int64_t tiles = g->batch.count * divide_up(s->m, g->tile_rows) * g->panels;
    const bool even = s->cores > 2 && tiles % s->cores == 0;
    g->multiply_shares =
        clamp_shares_for(g->turns && !even && tiles > TURN_SHARES ? tiles - tiles % TURN_SHARES : tiles, s->cores);
    g->slots = share_slots(g->multiply_shares, s->threads);
    const int64_t step_bytes = 4 * gemm_near_stride(g->most_rows), copies = 2 * (int64_t)g->slots;
    const int64_t fit = most(4 * s->m * s->n, NEAR_BYTES) / (copies * step_bytes);
    g->near_a = isa < ISA_AVX512 && s->trans_a && !g->convert_a && !g->pack_late && s->m > NEAR_ROWS &&
                fit >= least(NEAR_STEPS, g->steps);
    if (g->near_a)
        g->steps = least(g->steps, whole_pairs(g, fit));
    g->near_bytes = (size_t)(g->steps * step_bytes);
    g->asks_a = s->trans_a && (!g->near_a || shortest(g) >= NEAR_STEPS);
}

static graphi_status gemm_run(const struct kernel_call *call, int phase, int share)
{
    const struct gemm *g = call->params;
    if (phase == 0 && g->convert_units + g->pack_units)
        gemm_prepare_share(g, call, share);
    else
        gemm_multiply_share(g, call, share);
    return GRAPHI_OK;
}

graphi_status gemm_bind(const struct gemm_spec *spec, enum isa isa, struct kernel *kernel)
{
    TRY(check(spec));
    size_t bytes = sizeof(struct gemm) + (size_t)spec->pairs * sizeof(struct gemm_pair);
    struct gemm *g = mem_zalloc(bytes);
    if (!g)
        return fail_memory("gemm", bytes);
    graphi_status status = epilogue_prepare(&spec->epilogue, isa, &g->epilogue);
    if (status != GRAPHI_OK) {
        mem_free(g);
        return status;
    }
    g->spec = *spec;
    g->spec.k = g->spec.lda = g->spec.ldb = NULL; /* the caller's, and gone */
    g->spec.epilogue = (struct epilogue_spec){0};
    g->spec.rows_per_row += !spec->rows_per_row;
    g->pair_count = spec->pairs;
    g->round = spec->multiplicands == GRAPHI_BF16 ? pair_functions(isa) : NULL;
    for (int p = 0; p < spec->pairs; p++) {
        g->pair[p] = (struct gemm_pair){.k = spec->k[p], .lda = spec->lda[p], .ldb = spec->packed_b ? 0 : spec->ldb[p]};
        g->depth += spec->k[p];
        g->all_steps += pair_rows(spec->k[p], g->round);
    }
    cut(g, isa);
    size_t workspace = lay_out(g);
    double m = (double)spec->m, n = (double)spec->n, k = (double)g->depth, batch = (double)g->batch.count;
    *kernel = (struct kernel){.name = "gemm", .run = gemm_run, .params = g, .params_bytes = bytes,
                              .workspace = workspace, .flops = 2 * m * n * k * batch};
    bool prepare = g->convert_units + g->pack_units > 0;
    kernel->phases = prepare ? 2 : 1;
    kernel->shares[0] = prepare ? g->prepare_shares : g->multiply_shares;
    kernel->shares[1] = prepare ? g->multiply_shares : 0;
    kernel->bytes = 4 * (m * k * (double)g->batch.a.copies + k * n * (double)g->batch.b.copies +
                         m * n * (batch + spec->base));
    return GRAPHI_OK;
}
