/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = epilogue(sum over pairs of op(A_p) op(B_p)), cut into tiles that the micro-kernel computes.
 *
 * A tile is one panel of columns (at most 64) by 16 to 256 rows. It is summed over all pairs and all of k before the
 * epilogue runs on it, in pieces of at most MICRO_STEPS steps so that the piece of B stays in the level-2 cache; what
 * the next piece reads is prefetched there meanwhile. Of a long sum (a weight gradient) a thread takes all its tiles
 * together: those of a row share a piece of A. Its steps, apart by a whole row of a transposed A, share few sets of the
 * caches; before AVX-512, whose blocks are wider, a copy has them side by side, made of the next piece meanwhile. Flat
 * tiles below each other become one there, and where one thread has all. Tiles never share an element, and the
 * micro-kernel sums each element in the order of pairs and k: results depend neither on the tiles nor on who computes
 * them.
 *
 * B is read as it is, or packed (pack.h): by a node of its own (`packed_b`), or here when it is transposed (the
 * micro-kernel needs rows of B): in a first phase, or, where a panel meets one tile only, just before that tile, and
 * stays in the caches. With bfloat16 the first phase also rounds A.
 *
 * Usual size: 64 x 512 x 512, 8 tiles; weight gradients 512 x 512 from 40 pairs of 64 rows, 64 tiles. */
#include "kernels/gemm.h"

#include <stdalign.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/epilogue.h"
#include "kernels/gemm_batch.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels lstm ptb square batched`, of WEIGHT_ROWS to TRANS_BYTES in
 * "gradient of". */
enum {
    TILE_ROWS_MAX = 256,
    TILE_ROWS_MIN = 16,
    WEIGHT_ROWS = 128, /* of a weight gradient's tiles, see weight_rows */
    ROW_TILES = 16,    /* tiles of one row that take turns */
    TURN_SHARES = 16,  /* then so many shares at most: longer rows */
    TRANS_BYTES = 320 << 10, /* of a piece of a transposed A and of B, which stays in a level-2 cache of 1 MB beside the
                              * next one; half of it where A meets one panel, and is asked for in little time */
    NEAR_ROWS = 192,         /* of more rows a transposed A is copied before AVX-512 */
    NEAR_BYTES = 256 << 10,  /* of all copies, or as much as the result; pieces are shorter then */
    NEAR_STEPS = 64,         /* shorter pairs are one segment in the copy, and the next one is not asked for */
    PANEL_BYTES = 512 << 10, /* panels kept in the level-2 cache while rows pass */
    CONVERT_ROWS = 64,       /* rows of A rounded at a time */
};

struct pair {
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
    bool turns; /* tiles of one row take turns, see multiply_row */
    bool near_a; /* pieces of a transposed A are copied to where their steps lie together */
    bool asks_a; /* pieces of A are asked for, see struct asked_pieces */
    size_t near_at, near_bytes; /* in the workspace, and of one piece */
    int pair_count;
    struct pair pair[];
};

/* Sizes of one call: m, k and the batch may be below their bounds. */
struct extent {
    int64_t m, batch;
};

static struct extent extent_of(const struct gemm *g, const struct kernel_call *call)
{
    struct extent extent = {g->spec.m, g->batch.count};
    int64_t rows = call->in[g->spec.batch_rows_of_b].rows * g->spec.rows_per_row;
    if (g->spec.bounded && g->spec.leads)
        extent.batch = least(rows, extent.batch);
    else if (g->spec.bounded && !g->spec.trans_a)
        extent.m = least(rows, extent.m);
    return extent;
}

static int64_t k_of(const struct gemm *g, const struct kernel_call *call, int pair)
{
    const int64_t k = g->pair[pair].k;
    return g->spec.bounded && g->spec.trans_a && !g->spec.leads ? least(call->in[2 * pair].rows, k) : k;
}

/* --- first phase: rounding A, packing B --- */

static int64_t a_blocks(const struct gemm *g)
{
    return divide_up(g->spec.m, CONVERT_ROWS);
}

/* Rounds one block of rows of op(A). */
static void convert_unit(const struct gemm *g, const struct kernel_call *call, int64_t unit)
{
    struct extent extent = extent_of(g, call);
    int64_t block = unit % a_blocks(g);
    int pair = (int)(unit / a_blocks(g) % g->pair_count);
    int64_t copy = unit / a_blocks(g) / g->pair_count, batch = batch_first_reader(&g->batch, &g->batch.a, copy);
    int64_t first = block * CONVERT_ROWS;
    int64_t rows = least(extent.m - first, CONVERT_ROWS);
    if (rows <= 0 || batch >= extent.batch)
        return;
    const struct pair *p = &g->pair[pair];
    int64_t k = k_of(g, call, pair);
    const float *a = (const float *)call->in[2 * pair].data + batch_along(&g->batch, g->batch.a.stride, batch);
    char *target = (char *)call->workspace + p->a_at + (size_t)copy * g->batch.a.bytes;
    if (!g->spec.trans_a)
        pack_row_pairs(a + first * p->lda, p->lda, rows, k, g->round,
                       (uint32_t *)target + first * pair_rows(k, true), pair_rows(k, true));
    else /* k x m: pairs of rows; each block of columns dense by itself */
        pack_block(a + first, p->lda, false, k, (int)rows, g->round, (uint32_t *)target + first * pair_rows(k, true));
}

/* Where B's panel from column `col` on begins as it is stored. */
static const float *panel_source(const struct gemm *g, const struct kernel_call *call, int64_t batch, int64_t col,
                                 int pair)
{
    return (const float *)call->in[2 * pair + 1].data + batch_along(&g->batch, g->batch.b.stride, batch) +
           col * (g->spec.trans_b ? g->pair[pair].ldb : 1);
}

static void pack_panel(const struct gemm *g, const struct kernel_call *call, int64_t batch, int64_t col, int pair,
                       char *target)
{
    pack_block(panel_source(g, call, batch, col, pair), g->pair[pair].ldb, g->spec.trans_b, k_of(g, call, pair),
               (int)least(g->spec.n - col, g->width), g->round, target);
}

/* Packs one panel of op(B). */
static void pack_unit(const struct gemm *g, const struct kernel_call *call, int64_t unit)
{
    int64_t panel = unit % g->panels;
    int pair = (int)(unit / g->panels % g->pair_count);
    int64_t copy = unit / g->panels / g->pair_count, batch = batch_first_reader(&g->batch, &g->batch.b, copy);
    if (batch >= extent_of(g, call).batch)
        return;
    const struct pair *p = &g->pair[pair];
    const int64_t first = panel * g->width;
    char *target = (char *)call->workspace + p->b_at + (size_t)copy * g->batch.b.bytes;
    pack_panel(g, call, batch, first, pair, target + 4 * first * pair_rows(k_of(g, call, pair), g->round));
}

static void prepare_share(const struct gemm *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(g->convert_units + g->pack_units, g->prepare_shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        if (unit < g->convert_units)
            convert_unit(g, call, unit);
        else
            pack_unit(g, call, unit - g->convert_units);
    }
}

/* --- second phase: tiles --- */

struct tile {
    int64_t batch, row, col;
    int rows, cols;
    int slot; /* where its panel is packed late */
};

/* Where op(A)(row, 0) and op(B)(0, col) of a pair are, and how to step through them, in elements (or pairs) of 4 bytes.
 */
struct operands {
    const char *a, *b;
    int64_t k, row_stride, step_stride, ldb;
};

static struct operands operands_of(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int pair)
{
    const struct pair *p = &g->pair[pair];
    struct operands o = {.k = pair_rows(k_of(g, call, pair), g->round)};
    if (!g->convert_a) {
        o.a = (const char *)((const float *)call->in[2 * pair].data +
                             batch_along(&g->batch, g->batch.a.stride, t->batch));
        o.row_stride = g->spec.trans_a ? 1 : p->lda;
        o.step_stride = g->spec.trans_a ? p->lda : 1;
        o.a += 4 * t->row * o.row_stride;
    } else {
        o.a = (const char *)call->workspace + p->a_at +
              (size_t)batch_along(&g->batch, g->batch.a.slot, t->batch) * g->batch.a.bytes;
        int64_t first = t->row / CONVERT_ROWS * CONVERT_ROWS;
        o.row_stride = g->spec.trans_a ? 1 : o.k;
        o.step_stride = g->spec.trans_a ? least(extent_of(g, call).m - first, CONVERT_ROWS) : 1;
        o.a += g->spec.trans_a ? 4 * (first * o.k + t->row - first) : 4 * t->row * o.k;
    }
    if (g->pack_late)
        o.b = (const char *)call->workspace + p->b_at + (size_t)t->slot * g->batch.b.bytes;
    else if (g->pack_b)
        o.b = (const char *)call->workspace + p->b_at +
              (size_t)batch_along(&g->batch, g->batch.b.slot, t->batch) * g->batch.b.bytes;
    else
        o.b = (const char *)((const float *)call->in[2 * pair + 1].data +
                             batch_along(&g->batch, g->batch.b.stride, t->batch));
    bool blocked = g->pack_b || g->spec.packed_b;
    o.ldb = blocked ? t->cols : p->ldb;
    o.b += g->pack_late ? 0 : blocked ? 4 * t->col * o.k : 4 * t->col;
    return o;
}

/* One call of the micro-kernel: the steps of the sum over all pairs from `from` on, g->steps of them. */
struct piece {
    const struct tile *tile;
    int64_t from;
};

/* A pair, and how many steps come before it. */
struct place {
    int pair;
    int64_t at;
};

/* The operands that have the given step of a tile, and, in *step, the step within them; `place` moves on to their pair.
 * False: the sum ends before. */
static bool operands_at(const struct gemm *g, const struct kernel_call *call, const struct tile *t, struct place *place,
                        int64_t *step, struct operands *operands)
{
    for (; place->pair < g->pair_count; place->pair++) {
        *operands = operands_of(g, call, t, place->pair);
        if (*step < place->at + operands->k) {
            *step -= place->at;
            return true;
        }
        place->at += operands->k;
    }
    return false;
}

/* What a piece asks for: of B what the next one reads; of A (no tile: nothing) only what is transposed, of which a step
 * is whole lines and a tile of a weight gradient reads as much as of B: the same, or, where it is copied, what the next
 * copy reads. */
struct asked_pieces {
    struct piece a, b;
    struct place place_a, place_b;
};

/* Asks for what lies `ahead` steps behind the beginnings of those pieces beside the segment to be added. */
static void ask_for(const struct gemm *g, const struct kernel_call *call, struct asked_pieces *asked, int64_t ahead,
                    struct micro_list *list)
{
    struct operands o;
    int64_t step = asked->a.from + ahead;
    list->soon_a = list->soon_b = NULL;
    if (asked->a.tile && operands_at(g, call, asked->a.tile, &asked->place_a, &step, &o)) {
        const bool alike = !list->call.count || list->call.soon_stride == o.step_stride;
        list->soon_a = alike ? o.a + 4 * step * o.step_stride : NULL;
        list->call.soon_stride = o.step_stride;
    }
    step = asked->b.from + ahead;
    if (operands_at(g, call, asked->b.tile, &asked->place_b, &step, &o)) {
        if (g->pack_late) /* what will be packed, as if it were already */
            o.b = (const char *)panel_source(g, call, asked->b.tile->batch, asked->b.tile->col, asked->place_b.pair);
        list->soon_b = o.b + 4 * step * o.ldb;
    }
}

/* Floats between steps of a copied piece of A: half a line more than its rows, or they would share cache sets. */
static int64_t near_stride(int64_t rows)
{
    return round_up(rows, 16) + 8;
}

/* Where the piece that begins at step `from` is copied to: two pieces have a place in turn. */
static float *near_piece(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int64_t from)
{
    const int64_t place = 2 * t->slot + from / g->steps % 2;
    return (float *)((char *)call->workspace + g->near_at + (size_t)place * g->near_bytes);
}

/* Copies steps from `begin` to `end` of the piece of A that begins at `from`. */
static void copy_near(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int64_t from,
                      int64_t begin, int64_t end)
{
    float *to = near_piece(g, call, t, from);
    const int64_t ld = near_stride(t->rows);
    for (int64_t pair = 0, at = 0; pair < g->pair_count && at < end; pair++) {
        struct operands o = operands_of(g, call, t, (int)pair);
        for (int64_t step = most(begin, at); step < least(end, at + o.k); step++)
            memcpy(to + (step - from) * ld, o.a + 4 * (step - at) * o.step_stride, (size_t)t->rows * sizeof *to);
        at += o.k;
    }
}

/* What the tile's sums begin with, to c. */
static void copy_base(const struct gemm *g, const struct kernel_call *call, const struct tile *t, float *c,
                      int64_t ldc)
{
    const float *base = (const float *)call->in[2 * g->pair_count].data + t->row * g->spec.ld_base + t->col;
    for (int row = 0; row < t->rows; row++)
        memcpy(c + row * ldc, base + row * g->spec.ld_base, (size_t)t->cols * sizeof *c);
}

/* Adds a piece to the tile at c (the first: clears it before, where sums begin with 0), and asks meanwhile. */
static void multiply_piece(const struct gemm *g, const struct kernel_call *call, struct piece piece,
                           struct asked_pieces asked, float *c, int64_t ldc)
{
    const struct tile *t = piece.tile;
    const int64_t to = piece.from + g->steps;
    struct micro_list list;
    list.call = (struct micro_call){
        .m = t->rows, .n = t->cols, .c = c, .ldc = ldc, .accumulate = piece.from > 0 || g->spec.base};
    micro_start(&list, g->micro, g->steps);
    for (int64_t pair = 0, at = 0; pair < g->pair_count && at < to; pair++) {
        struct operands o = operands_of(g, call, t, (int)pair);
        int64_t begin = most(piece.from - at, 0), end = least(to - at, o.k);
        if (begin < end) {
            const char *a = o.a + 4 * begin * o.step_stride;
            if (g->near_a) {
                o.step_stride = near_stride(t->rows);
                a = (const char *)(near_piece(g, call, t, piece.from) + (at + begin - piece.from) * o.step_stride);
            }
            if (list.call.count && (o.row_stride != list.call.row_stride || o.step_stride != list.call.step_stride ||
                                    o.ldb != list.call.ldb))
                micro_flush(&list);
            list.call.row_stride = o.row_stride;
            list.call.step_stride = o.step_stride;
            list.call.ldb = o.ldb;
            ask_for(g, call, &asked, at + begin - piece.from, &list);
            micro_add(&list, a, o.b + 4 * begin * o.ldb, end - begin);
        }
        at += o.k;
    }
    micro_finish(&list);
}

/* Tiles of `rows` rows in the order that keeps a group of panels of B in the level-2 cache while the rows of A pass. */
static struct tile tile_at(const struct gemm *g, const struct extent *extent, int64_t rows, int64_t index)
{
    int64_t row_tiles = divide_up(extent->m, rows);
    struct tile t = {.batch = index / (row_tiles * g->panels)};
    index %= row_tiles * g->panels;
    int64_t first_panel = index / (row_tiles * g->group) * g->group;
    int64_t group = least(g->panels - first_panel, g->group);
    index -= first_panel * row_tiles;
    t.row = index / group * rows;
    t.col = (first_panel + index % group) * g->width;
    t.rows = (int)least(extent->m - t.row, rows);
    t.cols = (int)least(g->spec.n - t.col, g->width);
    return t;
}

static int64_t total_steps(const struct gemm *g, const struct kernel_call *call)
{
    int64_t total = 0;
    for (int pair = 0; pair < g->pair_count; pair++)
        total += pair_rows(k_of(g, call, pair), g->round);
    return total;
}

/* Tiles of one row, with the tile that follows them: one piece of the sum after the other, so that the piece of A that
 * they share stays in the level-2 cache. A tile with an epilogue is alone, and is multiplied in a buffer: the epilogue
 * may overwrite one of its inputs with C. So is one whose panel is packed late. */
static void multiply_row(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int count)
{
    alignas(64) float buffer[TILE_ROWS_MAX * PANEL_MAX];
    const bool buffered = g->epilogue.present;
    const int64_t total = total_steps(g, call);
    for (int pair = 0; g->pack_late && pair < g->pair_count; pair++)
        pack_panel(g, call, t->batch, t->col, pair,
                   (char *)call->workspace + g->pair[pair].b_at + (size_t)t->slot * g->batch.b.bytes);
    if (g->near_a)
        copy_near(g, call, t, 0, 0, least(g->steps, total));
    for (int64_t from = 0; from == 0 || from < total; from += g->steps)
        for (int i = 0; i < count; i++) {
            const int64_t soon = from + g->steps, steps = most(least(g->steps, total - soon), 0);
            const struct piece next_row = steps ? (struct piece){t, soon} : (struct piece){&t[count], 0};
            struct asked_pieces asked = {.b = i + 1 < count ? (struct piece){&t[i + 1], from} : next_row};
            if (g->asks_a && i == (g->near_a ? 0 : count - 1))
                asked.a = next_row;
            float *c = (float *)call->out[0].data + batch_along(&g->batch, g->batch.c.stride, t[i].batch) +
                       t[i].row * g->spec.ldc + t[i].col;
            const int64_t ldc = buffered ? t[i].cols : g->spec.ldc;
            c = buffered ? buffer : c;
            if (g->spec.base && from == 0)
                copy_base(g, call, &t[i], c, ldc);
            multiply_piece(g, call, (struct piece){&t[i], from}, asked, c, ldc);
            if (g->near_a)
                copy_near(g, call, t, soon, soon + steps * i / count, soon + steps * (i + 1) / count);
        }
    if (buffered) {
        const struct epilogue_tile tile = {.data = buffer, .ld = t->cols, .row = t->batch * g->spec.m + t->row,
                                           .col = t->col, .rows = t->rows, .cols = t->cols, .row_step = 1,
                                           .result_ld = g->spec.ldc};
        epilogue_run(&g->epilogue, &tile, call->in + 2 * g->pair_count + g->spec.base, call->out);
    }
}

/* So many neighbouring shares are done as one: all that a lone thread has; where tiles take turns, what the thread has
 * as far as that leaves all threads as much work as before. Members of a team otherwise keep their rows, which they
 * read again as A of the next product (each with its panels instead took 1.10 of the time on LSTM small). */
static int shares_together(const struct gemm *g, int width)
{
    int together = width == 1 || (g->turns && width > 1) ? g->multiply_shares : 1;
    while (together > 1 &&
           (g->multiply_shares % together ||
            together * divide_up(g->multiply_shares / together, width) != divide_up(g->multiply_shares, width)))
        together--;
    return together;
}

/* How many tiles below each other the whole rows of tiles from `begin` to `end` are cut into as one. Shares that are
 * parts of groups of panels would not meet where they end. */
static int64_t tiles_as_one(const struct gemm *g, int64_t begin, int64_t end, int64_t tiles)
{
    bool meet = g->group == g->panels || (begin == 0 && end == tiles);
    int64_t stacked = !meet || begin % g->panels || end % g->panels ? 1 : g->most_rows / g->tile_rows;
    while (stacked > 1 && (begin / g->panels % stacked || end / g->panels % stacked))
        stacked--;
    return stacked;
}

/* Where tiles take turns, the fewer threads there are, the longer and taller the pieces of A and B that each reads
 * once. */
static void multiply_share(const struct gemm *g, const struct kernel_call *call, int share)
{
    struct extent extent = extent_of(g, call);
    int64_t tiles = extent.batch * divide_up(extent.m, g->tile_rows) * g->panels;
    int64_t index, end;
    const int together = shares_together(g, call->width);
    if (share % together || !tiles)
        return;
    split_range(tiles, g->multiply_shares / together, share / together, &index, &end);
    const int64_t stacked = tiles_as_one(g, index, end, tiles), rows = stacked * g->tile_rows;
    index /= stacked;
    end /= stacked;
    tiles /= stacked;
    const int most = g->epilogue.present || g->pack_late ? 1 : ROW_TILES;
    const int slot = share_slot(g->slots, g->multiply_shares, call->thread, share);
    while (index < end) {
        struct tile row[ROW_TILES + 1] = {tile_at(g, &extent, rows, index)};
        row[0].slot = slot;
        int count = 0;
        do {
            index++;
            count++;
            row[count] = tile_at(g, &extent, rows, least(index, tiles - 1));
            row[count].slot = slot;
        } while (count < most && index < end && row[count].row == row[0].row && row[count].batch == row[0].batch);
        multiply_row(g, call, row, count);
    }
}

static graphi_status gemm_run(const struct kernel_call *call, int phase, int share)
{
    const struct gemm *g = call->params;
    if (phase == 0 && g->convert_units + g->pack_units)
        prepare_share(g, call, share);
    else
        multiply_share(g, call, share);
    return GRAPHI_OK;
}

/* --- binding --- */

/* Rows of a weight gradient's tiles. Each row of tiles reads all of B, which is more than the level-3 cache holds
 * where m is large: tall tiles then. Where it is small, flat ones leave room for longer pieces. */
static int64_t weight_rows(const struct gemm *g)
{
    return g->spec.m / 4 < WEIGHT_ROWS ? WEIGHT_ROWS : least(TILE_ROWS_MAX, g->spec.m / 4);
}

/* Tall tiles use B best; they are halved while there are too few of them to balance and each is still worth handing
 * out. The limits are FLOPs: 1 M is about 10 us on one core. */
static int64_t choose_tile_rows(const struct gemm *g)
{
    int64_t rows = least(g->spec.m, g->spec.trans_a ? weight_rows(g) : TILE_ROWS_MAX);
    while (rows > TILE_ROWS_MIN) {
        int64_t tiles = divide_up(g->spec.m, rows) * g->panels * g->batch.count;
        double half = (double)rows * (double)g->width * (double)g->depth;
        if (!((tiles < 16 && half >= 4e6) || (tiles < 8 && half >= 1e6) || (tiles < 2 && half >= 0.25e6)))
            break;
        rows = divide_up(rows, 2);
    }
    return rows < 1 ? 1 : divide_up(g->spec.m, divide_up(g->spec.m, rows));
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
        struct pair *pair = &g->pair[p];
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
        g->tile_rows = g->tile_rows > CONVERT_ROWS / 2 ? CONVERT_ROWS : CONVERT_ROWS / 2;
    const int64_t trans_bytes = level_2_part(TRANS_BYTES, isa) / (g->panels == 1 ? 2 : 1);
    bool stacks = g->batch.count == 1 && !(g->convert_a && s->trans_a);
    g->most_rows = !stacks ? g->tile_rows : s->trans_a ? weight_rows(g) : least(TILE_ROWS_MAX, s->m);
    g->steps = s->trans_a ? whole_pairs(g, trans_bytes / (4 * (g->most_rows + g->width)))
                          : micro_limit(g->all_steps, MICRO_STEPS);
    int64_t panel_bytes = 4 * g->all_steps * g->width;
    g->turns = !g->epilogue.present && g->all_steps > 2 * g->steps;
    g->group = most(least(panel_bytes && !g->turns ? PANEL_BYTES / panel_bytes : g->panels, g->panels), 1);
    g->convert_units = g->convert_a ? g->batch.a.copies * g->pair_count * a_blocks(g) : 0;
    g->pack_late = g->pack_b && !g->turns && g->batch.b.copies == g->batch.count && g->tile_rows >= s->m;
    g->pack_units = g->pack_b && !g->pack_late ? g->batch.b.copies * g->pair_count * g->panels : 0;
    g->prepare_shares = clamp_shares(g->convert_units + g->pack_units);
    int64_t tiles = g->batch.count * divide_up(s->m, g->tile_rows) * g->panels;
    g->multiply_shares = clamp_shares(g->turns && tiles > TURN_SHARES ? TURN_SHARES : tiles);
    g->slots = share_slots(g->multiply_shares, s->threads);
    const int64_t step_bytes = 4 * near_stride(g->most_rows), copies = 2 * (int64_t)g->slots;
    const int64_t fit = most(4 * s->m * s->n, NEAR_BYTES) / (copies * step_bytes);
    g->near_a = isa < ISA_AVX512 && s->trans_a && !g->convert_a && !g->pack_late && s->m > NEAR_ROWS &&
                fit >= least(NEAR_STEPS, g->steps);
    if (g->near_a)
        g->steps = least(g->steps, whole_pairs(g, fit));
    g->near_bytes = (size_t)(g->steps * step_bytes);
    g->asks_a = s->trans_a && (!g->near_a || shortest(g) >= NEAR_STEPS);
}

graphi_status gemm_bind(const struct gemm_spec *spec, enum isa isa, struct kernel *kernel)
{
    TRY(check(spec));
    size_t bytes = sizeof(struct gemm) + (size_t)spec->pairs * sizeof(struct pair);
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
        g->pair[p] = (struct pair){.k = spec->k[p], .lda = spec->lda[p], .ldb = spec->packed_b ? 0 : spec->ldb[p]};
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
