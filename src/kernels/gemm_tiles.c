/* SPDX-License-Identifier: Apache-2.0 */
/* How the tiles of a product are summed (gemm_internal.h).
 *
 * A tile is summed over all pairs and all of k before the epilogue runs on it, in pieces of at most MICRO_STEPS steps
 * so that the piece of B stays in the level-2 cache; what the next piece reads is prefetched there meanwhile. Of a long
 * sum (a weight gradient) a thread takes all its tiles together: those of a row share a piece of A. Its steps, apart by
 * a whole row of a transposed A, share few sets of the caches; before AVX-512, whose blocks are wider, a copy has them
 * side by side, made of the next piece meanwhile. Flat tiles below each other become one there, and where one thread
 * has all.
 *
 * Usual size: 64 x 64 from 512 steps, one piece; of a weight gradient 128 x 64 from 40 pairs of 64 rows. */
#include "kernels/gemm_internal.h"

#include <stdalign.h>
#include <string.h>

#include "kernels/epilogue.h"
#include "kernels/shares.h"

/* What it does shows in `graphi bench kernels "gradient of"`. */
enum { ROW_TILES = 16 }; /* tiles of one row that take turns */

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

/* How many steps of the sum a pair has. */
static int64_t steps_of(const struct gemm *g, const struct kernel_call *call, int pair)
{
    return pair_rows(gemm_k_of(g, call, pair), g->round);
}

static struct operands operands_of(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int pair)
{
    const struct gemm_pair *p = &g->pair[pair];
    struct operands o = {.k = steps_of(g, call, pair)};
    if (!g->convert_a) {
        o.a = (const char *)((const float *)call->in[2 * pair].data +
                             batch_along(&g->batch, g->batch.a.stride, t->batch));
        o.row_stride = g->spec.trans_a ? 1 : p->lda;
        o.step_stride = g->spec.trans_a ? p->lda : 1;
        o.a += 4 * t->row * o.row_stride;
    } else {
        o.a = (const char *)call->workspace + p->a_at +
              (size_t)batch_along(&g->batch, g->batch.a.slot, t->batch) * g->batch.a.bytes;
        int64_t first = t->row / GEMM_CONVERT_ROWS * GEMM_CONVERT_ROWS;
        o.row_stride = g->spec.trans_a ? 1 : o.k;
        o.step_stride = g->spec.trans_a ? least(gemm_extent_of(g, call).m - first, GEMM_CONVERT_ROWS) : 1;
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

/* The operands of a tile from the given step of its sum on, as far as their pair goes; `place`, which is not behind it,
 * moves on to that pair. False: the sum ends before. */
static bool operands_at(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int64_t step,
                        struct place *place, struct operands *o)
{
    for (; place->pair < g->pair_count; place->pair++) {
        const int64_t steps = steps_of(g, call, place->pair), skipped = step - place->at;
        if (skipped < steps) {
            *o = operands_of(g, call, t, place->pair);
            o->a += 4 * skipped * o->step_stride;
            o->b += 4 * skipped * o->ldb;
            o->k -= skipped;
            return true;
        }
        place->at += steps;
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
    const struct piece *a = &asked->a, *b = &asked->b;
    struct operands o;
    list->soon_a = list->soon_b = NULL;
    if (a->tile && operands_at(g, call, a->tile, a->from + ahead, &asked->place_a, &o)) {
        const bool alike = !list->call.count || list->call.soon_stride == o.step_stride;
        list->soon_a = alike ? o.a : NULL;
        list->call.soon_stride = o.step_stride;
    }
    if (operands_at(g, call, b->tile, b->from + ahead, &asked->place_b, &o)) {
        list->soon_b = o.b;
        if (g->pack_late) /* what will be packed, as if it were already */
            list->soon_b = (const char *)gemm_panel_source(g, call, b->tile->batch, b->tile->col, asked->place_b.pair) +
                           4 * (b->from + ahead - asked->place_b.at) * o.ldb;
    }
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
    const int64_t ld = gemm_near_stride(t->rows);
    struct place place = {0};
    struct operands o;
    for (int64_t at = begin; at < end && operands_at(g, call, t, at, &place, &o); at += o.k)
        for (int64_t step = 0; step < least(o.k, end - at); step++)
            memcpy(to + (at - from + step) * ld, o.a + 4 * step * o.step_stride, (size_t)t->rows * sizeof *to);
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
    struct place place = {0};
    struct operands o;
    for (int64_t at = piece.from; at < to && operands_at(g, call, t, at, &place, &o); at += o.k) {
        if (g->near_a) {
            o.step_stride = gemm_near_stride(t->rows);
            o.a = (const char *)(near_piece(g, call, t, piece.from) + (at - piece.from) * o.step_stride);
        }
        if (list.call.count && (o.row_stride != list.call.row_stride || o.step_stride != list.call.step_stride ||
                                o.ldb != list.call.ldb))
            micro_flush(&list);
        list.call.row_stride = o.row_stride;
        list.call.step_stride = o.step_stride;
        list.call.ldb = o.ldb;
        ask_for(g, call, &asked, at - piece.from, &list);
        micro_add(&list, o.a, o.b, least(o.k, to - at));
    }
    micro_finish(&list);
}

/* Tiles of `rows` rows in the order that keeps a group of panels of B in the level-2 cache while the rows of A pass. */
static struct tile tile_at(const struct gemm *g, const struct gemm_extent *extent, int64_t rows, int64_t index)
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
        total += steps_of(g, call, pair);
    return total;
}

/* Tiles of one row, with the tile that follows them: one piece of the sum after the other, so that the piece of A that
 * they share stays in the level-2 cache. A tile with an epilogue is alone, and is multiplied in a buffer: the epilogue
 * may overwrite one of its inputs with C. So is one whose panel is packed late. */
static void multiply_row(const struct gemm *g, const struct kernel_call *call, const struct tile *t, int count)
{
    alignas(64) float buffer[GEMM_TILE_ROWS_MAX * PANEL_MAX];
    const bool buffered = g->epilogue.present;
    const int64_t total = total_steps(g, call);
    for (int pair = 0; g->pack_late && pair < g->pair_count; pair++)
        gemm_pack_panel(g, call, t->batch, t->col, pair,
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
void gemm_multiply_share(const struct gemm *g, const struct kernel_call *call, int share)
{
    struct gemm_extent extent = gemm_extent_of(g, call);
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
