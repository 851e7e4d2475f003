/* SPDX-License-Identifier: Apache-2.0 */
/* Backward-weights: dw[tap][c][k] = sum over images and pixels of x[pixel under the tap][c] * dy[pixel][k].
 *
 * For a tap, one row of output pixels is a product of x transposed (c by pixels) and dy (pixels by k): a segment for
 * the micro-kernel (1 x 1 windows that meet every pixel: conv_weights_flat.c). A tile is up to 128 rows of dw by one
 * panel of at most 64 columns. Its rows are channels of one tap, or, where channels lie densely in memory, all (tap
 * column, c) of one row of the window, so that three input channels make 21 rows and not 3; pixels at the borders then
 * add to a part of the rows. Such a tile has all rows of the window, if these are not too many, and goes through them
 * for a few lines of dy at a time: dy, often the largest array, then comes from memory once and not once for each
 * window row. Columns at the borders follow at the end, each down all lines of an image: a segment along one line would
 * be a step or two.
 *
 * Small images have short lines, and segments of a few steps cost more than their products. Of these the pixels that a
 * product sums are copied side by side, x and dy, and are one segment; x then serves several panels.
 *
 * Where there are too few tiles to share out, the images are cut into a fixed number of parts, each with a sum of its
 * own in the workspace; the last phase adds them in order. bfloat16: conv_weights_pairs.c. Usual size: 32 x 28 x 28
 * pixels, 96 to 128 channels, 3 x 3: 18 tiles. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_shape.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels "backward weights"`; WIDE_ROW (and CONV_FEW_CHANNELS) in "conv1" and
 * "pathnet small". */
enum {
    TILE_ROWS_MAX = 128,
    NARROW = 4,          /* as many columns of the same taps, or fewer, are gone down one by one */
    WIDE_ROW = 7,        /* images at least so wide have taps of a window row together, whatever their channels */
    /* Lines of dy that are copied: so short, of at least so many channels of x. */
    SHORT_LINE = 8,
    SHORT_STRIDED_LINE = 17, /* of a stride leaves less of what is read */
    COPY_CHANNELS = 20,
    COPY_BYTES = 192 << 10, /* at a time */
    COPY_ROWS = 256,        /* of a tile: more leave room for few pixels; */
    COPY_COLS = 256,        /* about so many: the sum is then in the level-2 cache, too */
    FEW_TILES = 16,         /* fewer of several panels would leave threads without any */
    COPY_APART = 16,        /* floats between rows of dy, whose number may be a power of two */
};

struct weights {
    struct conv_shape s;
    struct conv_axis axis_y, axis_x;
    micro_function micro;
    const struct reduce_loops *loops;
    bool together;
    bool copies;         /* short lines */
    bool asks;           /* for what follows */
    int64_t steps;       /* of a call of the micro-kernel */
    int64_t copy_floats; /* of a thread */
    int64_t c_group, k_group;
    int64_t row_tiles;   /* of the rows of one tap, or of one window row */
    int64_t window_rows; /* of a tile, when together */
    int64_t tile_panels; /* of a tile */
    int64_t taps, tap_rows; /* window rows (or all of them at once) when together, else taps; rows of dw of one */
    int64_t width, panels, parts;
    int64_t count;    /* elements of dw */
    size_t slots_at;  /* in the workspace, behind the parts */
    int slots;
    int shares, reduce_shares;
    int64_t runs;
    struct conv_run run[]; /* of output columns, by the taps that they use */
};

/* --- reducing --- */

static void reduce_share(const struct weights *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(g->count, g->reduce_shares, share, &begin, &end);
    reduce_parts(g->loops, call->workspace, g->count, g->parts, begin, end, call->out[0].data);
}

/* --- multiplying --- */

struct tile {
    int64_t part, group, tap, panel;
    int64_t row; /* of the tap's, or window row's, rows of dw */
    int64_t rows;
};

/* All parts'. */
static int64_t tiles_of(const struct weights *g)
{
    return g->parts * g->s.groups * g->taps * g->row_tiles * divide_up(g->panels, g->tile_panels);
}

static struct tile tile_at(const struct weights *g, int64_t index)
{
    int64_t panel_tiles = divide_up(g->panels, g->tile_panels), end;
    struct tile t = {.panel = index % panel_tiles * g->tile_panels};
    index /= panel_tiles;
    split_range(g->tap_rows, (int)g->row_tiles, (int)(index % g->row_tiles), &t.row, &end);
    t.rows = end - t.row;
    index /= g->row_tiles;
    t.tap = index % g->taps;
    index /= g->taps;
    t.group = index % g->s.groups;
    t.part = index / g->s.groups;
    return t;
}

/* Output lines, counted through the images. */
struct lines {
    int64_t begin, end;
};

/* Of the part's images. */
static struct lines lines_of(const struct weights *g, const struct kernel_call *call, const struct tile *t)
{
    int64_t begin, end;
    split_range(least(call->in[0].rows, g->s.n), (int)g->parts, (int)t->part, &begin, &end);
    return (struct lines){begin * g->s.oh, end * g->s.oh};
}

/* A tile's sum, and what it waits for with: pixels copied side by side. */
struct sum {
    struct micro_list list;
    int64_t cols; /* of all panels */
    float *copy;  /* of x, then of dy */
    int64_t copied;
    int64_t ahead_x, ahead_y; /* bytes to what is asked for while a segment is copied */
};

static int64_t copies_most(const struct weights *g, const struct sum *sum)
{
    return g->copy_floats / (sum->list.call.m + sum->cols + COPY_APART);
}

static void add_copied(const struct weights *g, struct sum *sum)
{
    struct micro_call *call = &sum->list.call;
    const struct micro_call before = *call;
    const float *dy = sum->copy + copies_most(g, sum) * call->m;
    call->step_stride = call->m;
    call->ldb = sum->cols + COPY_APART;
    for (int64_t col = 0; col < sum->cols; col += g->width) {
        call->n = (int)least(sum->cols - col, g->width);
        call->c = before.c + col;
        micro_add(&sum->list, (const char *)sum->copy, (const char *)(dy + col), sum->copied);
        micro_finish(&sum->list);
    }
    *call = before;
    sum->copied = 0;
}

static void ask_for(const char *lines, int64_t floats)
{
    for (int64_t byte = 0; byte < 4 * floats; byte += 64)
        __builtin_prefetch(lines + byte);
}

static void copy_segment(const struct weights *g, struct sum *sum, const char *x, const char *dy, int64_t steps)
{
    const struct micro_call *call = &sum->list.call;
    const int64_t room = copies_most(g, sum), rows = call->m, ldb = sum->cols + COPY_APART;
    for (; steps > 0; steps--, x += 4 * call->step_stride, dy += 4 * call->ldb) {
        if (g->asks) {
            ask_for(x + sum->ahead_x, rows);
            ask_for(dy + sum->ahead_y, sum->cols);
        }
        memcpy(sum->copy + sum->copied * rows, x, (size_t)rows * sizeof(float));
        memcpy(sum->copy + room * rows + sum->copied * ldb, dy, (size_t)sum->cols * sizeof(float));
        if (++sum->copied == room)
            add_copied(g, sum);
    }
}

static void add_segment(const struct weights *g, struct sum *sum, const char *x, const char *dy, int64_t steps)
{
    if (g->copies)
        copy_segment(g, sum, x, dy, steps);
    else
        micro_add(&sum->list, x, dy, steps);
}

static void finish(const struct weights *g, struct sum *sum)
{
    if (sum->copied)
        add_copied(g, sum);
    micro_finish(&sum->list);
}

/* Adds, for `columns` output columns from `first` on, the products of the output lines: x from source column `source`
 * and element `at` of its pixel on. Asks for the lines that lie `ahead` of these. */
static void add_columns(const struct weights *g, const struct kernel_call *call, const struct tile *t,
                        const struct lines *lines, int64_t ahead, struct sum *sum, int64_t ty, int64_t first,
                        int64_t columns, int64_t source, int64_t at)
{
    const struct conv_shape *s = &g->s;
    const char *x = call->in[0].data, *dy = call->in[1].data;
    x += 4 * (t->group * g->c_group + at);
    dy += 4 * (t->group * g->k_group + t->panel * g->width);
    if (!g->asks)
        ahead = 0;
    const int64_t ahead_x = 4 * ahead * s->stride_h * s->w * g->s.ldx, ahead_y = 4 * ahead * s->ow * g->s.ldy;
    sum->ahead_x = 4 * s->stride_h * s->w * g->s.ldx;
    sum->ahead_y = 4 * s->ow * g->s.ldy;
    int64_t image = lines->begin / s->oh, y = lines->begin % s->oh;
    for (int64_t i = lines->begin; i < lines->end; i++) {
        int64_t line = conv_source(&g->axis_y, y, ty);
        if (line >= 0 && line < s->h) {
            const char *a = x + 4 * ((image * s->h + line) * s->w + source) * g->s.ldx;
            const char *b = dy + 4 * (i * s->ow + first) * g->s.ldy;
            sum->list.soon_a = g->copies ? NULL : a + ahead_x;
            sum->list.soon_b = g->copies ? NULL : b + ahead_y;
            add_segment(g, sum, a, b, columns);
        }
        if (++y == s->oh) {
            y = 0;
            image++;
        }
    }
}

/* Output columns, or lines, whose source under a tap lies inside the image: [*begin, *end). */
static void valid(const struct conv_axis *axis, int64_t tap, int64_t *begin, int64_t *end)
{
    *begin = 0;
    while (*begin < axis->result && conv_source(axis, *begin, tap) < 0)
        ++*begin;
    *end = axis->result;
    while (*end > *begin && conv_source(axis, *end - 1, tap) >= axis->source)
        --*end;
}

static void clear(float *c, int64_t ldc, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        memset(c + r * ldc, 0, (size_t)cols * sizeof *c);
}

/* The same for one output column of all lines, which is a segment an image: where few columns of a line have the same
 * taps, segments along it would be so short that reading and writing dw takes longer than the products. */
static void add_down(const struct weights *g, const struct kernel_call *call, const struct tile *t,
                     const struct lines *lines, struct sum *sum, int64_t ty, int64_t column, int64_t source)
{
    const struct conv_shape *s = &g->s;
    const int64_t line_x = s->w * g->s.ldx, line_y = s->ow * g->s.ldy;
    const float *x = call->in[0].data, *dy = call->in[1].data;
    int64_t begin, end;
    valid(&g->axis_y, ty, &begin, &end);
    if (begin >= end)
        return;
    sum->list.call.step_stride = s->stride_h * line_x;
    sum->list.call.ldb = line_y;
    for (int64_t image = lines->begin / s->oh; image < lines->end / s->oh; image++) {
        const int64_t first = image * s->h + conv_source(&g->axis_y, begin, ty);
        add_segment(g, sum, (const char *)(x + first * line_x + source * g->s.ldx),
                    (const char *)(dy + (image * s->oh + begin) * line_y + column * g->s.ldy + t->panel * g->width),
                    end - begin);
    }
    finish(g, sum);
    sum->list.call.step_stride = s->stride_w * g->s.ldx;
    sum->list.call.ldb = g->s.ldy;
}

/* The rows of dw that a run of output columns adds to, in one row of the window. */
static void aim(const struct weights *g, const struct conv_run *run, int64_t row, float *c, struct micro_list *list)
{
    const struct conv_shape *s = &g->s;
    list->call.m = (int)(__builtin_popcountll(run->taps) * s->c);
    list->call.c = c + (row * s->kw + __builtin_ctzll(run->taps)) * s->c * s->k;
}

/* All taps of the tile's window rows, a few output lines after the other: dy and x are then in the level-2 cache for
 * all but the first of them. Then the columns at the borders. */
static void multiply_together(const struct weights *g, const struct kernel_call *call, const struct tile *t,
                              struct sum *sum)
{
    const struct conv_shape *s = &g->s;
    const int64_t step = most(g->steps / s->ow, 1);
    const struct lines all = lines_of(g, call, t);
    const struct conv_run *end = g->run + g->runs;
    float *c = sum->list.call.c;
    for (struct lines some = all; some.begin < all.end; some.begin = some.end) {
        some.end = least(some.begin + step, all.end);
        for (int64_t row = 0; row < g->window_rows; row++)
            for (const struct conv_run *run = g->run; run < end; run++) {
                if (!run->taps || run->count <= NARROW)
                    continue;
                aim(g, run, row, c, &sum->list);
                add_columns(g, call, t, &some, step, sum, t->tap * g->window_rows + row, run->start, run->count,
                            conv_source(&g->axis_x, run->start, __builtin_ctzll(run->taps)), 0);
                finish(g, sum);
            }
    }
    sum->list.soon_a = sum->list.soon_b = NULL;
    sum->ahead_x = sum->ahead_y = 0;
    for (const struct conv_run *run = g->run; run < end; run++)
        for (int64_t i = 0; run->taps && run->count <= NARROW && i < run->count; i++)
            for (int64_t row = 0; row < g->window_rows; row++) {
                aim(g, run, row, c, &sum->list);
                add_down(g, call, t, &all, sum, t->tap * g->window_rows + row, run->start + i * run->step,
                         conv_source(&g->axis_x, run->start, __builtin_ctzll(run->taps)) + i * run->source_step);
            }
}

static void multiply_tile(const struct weights *g, const struct kernel_call *call, const struct tile *t, float *dw,
                          float *copy)
{
    const struct conv_shape *s = &g->s;
    int64_t col = t->group * g->k_group + t->panel * g->width,
            cols = least(g->k_group - t->panel * g->width, g->tile_panels * g->width);
    float *c = dw + (t->tap * g->tap_rows + t->row) * s->k + col;
    clear(c, s->k, t->rows, cols);
    struct sum sum = {.cols = cols, .copy = copy};
    micro_start(&sum.list, g->micro, g->steps);
    sum.list.call = (struct micro_call){.m = (int)t->rows, .n = (int)cols, .row_stride = 1,
                                        .step_stride = s->stride_w * g->s.ldx, .ldb = g->s.ldy, .ldc = s->k, .c = c,
                                        .accumulate = true};
    if (g->together) {
        multiply_together(g, call, t, &sum);
        return;
    }
    int64_t ty = t->tap / s->kw, tx = t->tap % s->kw, begin, end;
    const struct lines all = lines_of(g, call, t);
    valid(&g->axis_x, tx, &begin, &end);
    if (begin < end)
        add_columns(g, call, t, &all, least(divide_up(g->steps, end - begin), MICRO_SEGMENTS), &sum, ty, begin,
                    end - begin, conv_source(&g->axis_x, begin, tx), t->row);
    finish(g, &sum);
}

static void multiply_share(const struct weights *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    const int slot = g->copies ? share_slot(g->slots, g->shares, call->thread, share) : 0;
    float *copy = (float *)((char *)call->workspace + g->slots_at) + slot * g->copy_floats;
    split_range(tiles_of(g), g->shares, share, &begin, &end);
    for (int64_t index = begin; index < end; index++) {
        struct tile t = tile_at(g, index);
        float *dw = g->parts > 1 ? (float *)call->workspace + t.part * g->count : call->out[0].data;
        multiply_tile(g, call, &t, dw, copy);
    }
}

static graphi_status weights_run(const struct kernel_call *call, int phase, int share)
{
    const struct weights *g = call->params;
    if (phase == 0)
        multiply_share(g, call, share);
    else
        reduce_share(g, call, share);
    return GRAPHI_OK;
}

/* --- binding --- */

static void size_up(struct weights *g, enum isa isa)
{
    const struct conv_shape *s = &g->s;
    g->axis_y = conv_axis_y(s, false);
    g->axis_x = conv_axis_x(s, false);
    g->c_group = s->c / s->groups;
    g->k_group = s->k / s->groups;
    const bool strided = s->stride_h > 1 || s->stride_w > 1;
    g->copies = g->c_group >= COPY_CHANNELS && s->ow <= (strided ? SHORT_STRIDED_LINE : SHORT_LINE) &&
                (strided || s->kh * s->kw > 1);
    g->together = s->groups == 1 && s->dilation_w == 1 && g->s.ldx == s->c && s->kw > 1 &&
                  (s->c < CONV_FEW_CHANNELS || s->ow >= WIDE_ROW) &&
                  s->c * s->kw <= (g->copies ? COPY_ROWS : CONV_TOGETHER_MAX);
    g->window_rows = g->together && s->c * s->kw * s->kh <= CONV_TOGETHER_MAX ? s->kh : 1;
    g->taps = g->together ? s->kh / g->window_rows : s->kh * s->kw;
    g->tap_rows = g->c_group * (g->together ? s->kw * g->window_rows : 1);
    g->row_tiles = g->together ? 1 : conv_row_tiles(g->tap_rows, g->copies ? COPY_ROWS : TILE_ROWS_MAX);
    g->width = panel_width(g->k_group);
    g->panels = panel_count(g->k_group);
    g->count = s->kh * s->kw * g->c_group * s->k;
    g->asks = conv_asks(s);
    g->copy_floats = g->copies ? level_2_part(COPY_BYTES, isa) / 4 : 0;
    g->steps = g->asks && !g->copies ? level_2_part(CONV_ASKING_STEPS, isa) : MICRO_STEPS;
    g->parts = 1;
    g->tile_panels = g->copies ? divide_up(g->panels, divide_up(g->k_group, COPY_COLS)) : 1;
    if (g->copies && tiles_of(g) < FEW_TILES)
        g->tile_panels = 1;
    g->parts = conv_weight_parts(s, tiles_of(g), g->count);
}

static size_t lay_out(struct weights *g, int threads, int cores)
{
    g->shares = clamp_shares_for(tiles_of(g), cores);
    g->reduce_shares = g->parts > 1 ? clamp_shares_for(divide_up(g->count, CONV_REDUCE_STEP), cores) : 0;
    g->slots = share_slots(g->shares, threads);
    g->slots_at = g->parts > 1 ? whole_lines(4 * g->parts * g->count) : 0;
    return g->slots_at + whole_lines(4 * g->slots * g->copy_floats);
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct conv_axis x = conv_axis_x(&spec->shape, false);
    int64_t runs = conv_runs(&x, NULL);
    size_t bytes = sizeof(struct weights) + (size_t)runs * sizeof(struct conv_run);
    struct weights *g = mem_zalloc(bytes);
    if (!g)
        return fail_memory("conv", bytes);
    g->s = spec->shape;
    g->runs = conv_runs(&x, g->run);
    g->micro = micro_kernel(isa, false);
    g->loops = reduce_loops_of(isa);
    size_up(g, isa);
    const struct conv_shape *s = &g->s;
    size_t workspace = lay_out(g, spec->threads, spec->cores);
    *kernel = (struct kernel){.name = "conv_weights", .run = weights_run, .params = g, .params_bytes = bytes,
                              .workspace = workspace, .phases = g->parts > 1 ? 2 : 1,
                              .shares = {g->shares, g->reduce_shares},
                              .flops = 2 * (double)g->count * (double)(s->n * s->oh * s->ow)};
    kernel->bytes = conv_traffic(s);
    return GRAPHI_OK;
}

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    return spec->direction == CONV_BACKWARD_WEIGHTS && spec->algorithm == CONV_DIRECT;
}

const struct conv_kernel conv_weights = {.takes = takes, .bind = bind_kernel};
