/* SPDX-License-Identifier: Apache-2.0 */
/* Backward-weights: dw[tap][c][k] = sum over images and pixels of x[pixel under the tap][c] * dy[pixel][k].
 *
 * For a tap, one row of output pixels is a product of x transposed (c by pixels) and dy (pixels by k): a segment for the
 * micro-kernel. A tile is up to 128 rows of dw by one panel of at most 64 columns. Its rows are channels of one tap, or,
 * where channels lie densely in memory, all (tap column, c) of one row of the window, so that three input channels make 21
 * rows and not 3, and dy is read once for all columns of the window; pixels at the borders then add to a part of the rows.
 *
 * Where there are too few tiles to share out, the images are cut into a fixed number of parts, each with a sum of its own in
 * the workspace; the last phase adds them in order. bfloat16: conv_weights_pairs.c.
 * Usual size: 32 x 28 x 28 pixels, 96 to 128 channels, 3 x 3: 18 tiles. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_internal.h"
#include "kernels/micro.h"
#include "kernels/pack.h"

enum {
    TILE_ROWS_MAX = 128,
    TILES_WANTED = 16,
    PARTS_MAX = 8,
    SHARES_MAX = 64,
    FEW_CHANNELS = 16,   /* below: taps of a window row together, */
    WIDE_ROW = 24,       /* and in images at least so wide, where borders do not count, */
    TOGETHER_MAX = 768,  /* up to so many rows of dw: dy is then read once for all of them */
    REDUCE_STEP = 16384, /* elements added at a time */
};

struct weights {
    struct conv_shape s;
    struct conv_axis axis_y, axis_x;
    micro_function micro;
    bool together;
    int64_t c_group, k_group;
    int64_t ldx, ldy;
    int64_t row_tiles, tile_rows; /* of the rows of one tap, or of one window row */
    int64_t taps;     /* window rows when together, else taps */
    int64_t width, panels, parts;
    int64_t count;    /* elements of dw */
    size_t parts_at; /* in the workspace */
    int phases;
    enum { MULTIPLY, REDUCE } phase[2];
    int shares[2];
    int64_t runs;
    struct conv_run run[]; /* of output columns, by the taps that they use */
};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- reducing ---------------------------------------------------------------------------------------------------------- */

static void reduce_share(const struct weights *g, const struct kernel_call *call, int share)
{
    const float *parts = (const float *)((const char *)call->workspace + g->parts_at);
    float *dw = call->out[0].data;
    int64_t begin, end;
    split_range(g->count, g->shares[g->phases - 1], share, &begin, &end);
    memcpy(dw + begin, parts + begin, (size_t)(end - begin) * sizeof *dw);
    for (int64_t part = 1; part < g->parts; part++)
        for (int64_t i = begin; i < end; i++)
            dw[i] += parts[part * g->count + i];
}

/* --- multiplying ---------------------------------------------------------------------------------------------------------- */

struct tile {
    int64_t part, group, tap, panel;
    int64_t row; /* of the tap's, or window row's, rows of dw */
    int64_t rows;
};

static struct tile tile_at(const struct weights *g, int64_t index)
{
    struct tile t = {.panel = index % g->panels};
    index /= g->panels;
    t.row = index % g->row_tiles * g->tile_rows;
    index /= g->row_tiles;
    t.tap = index % g->taps;
    index /= g->taps;
    t.group = index % g->s.groups;
    t.part = index / g->s.groups;
    t.rows = least(g->tile_rows, g->c_group * (g->together ? g->s.kw : 1) - t.row);
    return t;
}

/* Adds, for `columns` output columns from `first` on, the products of all rows of the part's images: x from source column
 * `source` and element `at` of its pixel on. */
static void add_columns(const struct weights *g, const struct kernel_call *call, const struct tile *t,
                        struct micro_list *list, int64_t ty, int64_t first, int64_t columns, int64_t source, int64_t at)
{
    const struct conv_shape *s = &g->s;
    int64_t images = least(call->in[0].rows, s->n), begin, end;
    split_range(images, (int)g->parts, (int)t->part, &begin, &end);
    const char *x = call->in[0].data, *dy = call->in[1].data;
    x += 4 * (t->group * g->c_group + at);
    dy += 4 * (t->group * g->k_group + t->panel * g->width);
    for (int64_t image = begin; image < end; image++)
        for (int64_t y = 0; y < s->oh; y++) {
            int64_t line = conv_source(&g->axis_y, y, ty);
            if (line < 0 || line >= s->h)
                continue;
            micro_add(list, x + 4 * ((image * s->h + line) * s->w + source) * g->ldx,
                      dy + 4 * ((image * s->oh + y) * s->ow + first) * g->ldy, columns);
        }
}

static void clear(float *c, int64_t ldc, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        memset(c + r * ldc, 0, (size_t)cols * sizeof *c);
}

/* Output columns whose source under tap column tx lies inside the image: [*begin, *end). */
static void valid_columns(const struct weights *g, int64_t tx, int64_t *begin, int64_t *end)
{
    *begin = 0;
    while (*begin < g->s.ow && conv_source(&g->axis_x, *begin, tx) < 0)
        ++*begin;
    *end = g->s.ow;
    while (*end > *begin && conv_source(&g->axis_x, *end - 1, tx) >= g->s.w)
        --*end;
}

static void multiply_tile(const struct weights *g, const struct kernel_call *call, const struct tile *t, float *dw)
{
    const struct conv_shape *s = &g->s;
    int64_t ty = g->together ? t->tap : t->tap / s->kw, col = t->group * g->k_group + t->panel * g->width;
    int64_t cols = least(g->k_group - t->panel * g->width, g->width);
    int64_t per_tap = g->c_group * (g->together ? s->kw : 1);
    float *c = dw + (t->tap * per_tap + t->row) * s->k + col;
    clear(c, s->k, t->rows, cols);
    struct micro_list list;
    list.run = g->micro;
    list.waiting = 0;
    list.limit = MICRO_STEPS;
    list.call = (struct micro_call){.m = (int)t->rows, .n = (int)cols, .row_stride = 1,
                                    .step_stride = s->stride_w * g->ldx, .ldb = g->ldy, .ldc = s->k, .c = c,
                                    .accumulate = true};
    if (!g->together) {
        int64_t tx = t->tap % s->kw, begin, end;
        valid_columns(g, tx, &begin, &end);
        add_columns(g, call, t, &list, ty, begin, end - begin, conv_source(&g->axis_x, begin, tx), t->row);
        micro_finish(&list);
        return;
    }
    for (int64_t i = 0; i < g->runs; i++) {
        const struct conv_run *run = &g->run[i];
        if (!run->taps)
            continue;
        int64_t low = __builtin_ctzll(run->taps), taps = __builtin_popcountll(run->taps);
        list.call.m = (int)(taps * g->c_group);
        list.call.c = c + low * g->c_group * s->k;
        add_columns(g, call, t, &list, ty, run->start, run->count, conv_source(&g->axis_x, run->start, low), 0);
        micro_finish(&list);
    }
}

static void multiply_share(const struct weights *g, const struct kernel_call *call, int phase, int share)
{
    int64_t begin, end;
    split_range(g->parts * g->s.groups * g->taps * g->row_tiles * g->panels, g->shares[phase], share, &begin, &end);
    for (int64_t index = begin; index < end; index++) {
        struct tile t = tile_at(g, index);
        float *dw = call->out[0].data;
        if (g->parts > 1)
            dw = (float *)((char *)call->workspace + g->parts_at) + t.part * g->count;
        multiply_tile(g, call, &t, dw);
    }
}

static graphi_status weights_run(const struct kernel_call *call, int phase, int share)
{
    const struct weights *g = call->params;
    switch (g->phase[phase]) {
    case MULTIPLY: multiply_share(g, call, phase, share); break;
    case REDUCE: reduce_share(g, call, share); break;
    }
    return GRAPHI_OK;
}

/* --- binding -------------------------------------------------------------------------------------------------------------- */

static int clamp_shares(int64_t units)
{
    return units > SHARES_MAX ? SHARES_MAX : units < 1 ? 1 : (int)units;
}

static size_t up_to_line(int64_t bytes)
{
    return (size_t)divide_up(bytes, 64) * 64;
}

static void size_up(struct weights *g, const struct conv_spec *spec)
{
    const struct conv_shape *s = &g->s;
    g->axis_y = conv_axis_y(s, false);
    g->axis_x = conv_axis_x(s, false);
    g->c_group = s->c / s->groups;
    g->k_group = s->k / s->groups;
    g->ldx = s->ldx;
    g->ldy = s->ldy;
    g->together = s->groups == 1 && s->dilation_w == 1 && g->ldx == s->c && s->kw > 1 &&
                  (s->c < FEW_CHANNELS || s->ow >= WIDE_ROW) && s->c * s->kw <= TOGETHER_MAX;
    g->taps = g->together ? s->kh : s->kh * s->kw;
    int64_t rows = g->c_group * (g->together ? s->kw : 1);
    g->row_tiles = g->together ? 1 : divide_up(rows, TILE_ROWS_MAX);
    g->tile_rows = divide_up(rows, g->row_tiles);
    g->width = panel_width(g->k_group);
    g->panels = panel_count(g->k_group);
    g->count = s->kh * s->kw * g->c_group * s->k;
    int64_t tiles = g->taps * g->row_tiles * g->panels * s->groups;
    double flops = 2 * (double)g->count * (double)(s->n * s->oh * s->ow);
    g->parts = tiles < TILES_WANTED && flops > 4e6 ? least(least(divide_up(TILES_WANTED, tiles), PARTS_MAX), s->n) : 1;
    if (g->parts < 1)
        g->parts = 1;
}

static size_t lay_out(struct weights *g)
{
    const struct conv_shape *s = &g->s;
    g->shares[g->phases] = clamp_shares(g->parts * s->groups * g->taps * g->row_tiles * g->panels);
    g->phase[g->phases++] = MULTIPLY;
    if (g->parts == 1)
        return g->parts_at;
    g->shares[g->phases] = clamp_shares(divide_up(g->count, REDUCE_STEP));
    g->phase[g->phases++] = REDUCE;
    return g->parts_at + up_to_line(4 * g->parts * g->count);
}

graphi_status conv_weights_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    if (spec->epilogue)
        return fail(GRAPHI_UNSUPPORTED, "conv", "found an epilogue on a weight gradient, expected none");
    if (spec->multiplicands == GRAPHI_BF16)
        return conv_weights_pairs_bind(spec, isa, kernel);
    struct conv_axis x = conv_axis_x(&spec->shape, false);
    int64_t runs = conv_runs(&x, NULL);
    size_t bytes = sizeof(struct weights) + (size_t)runs * sizeof(struct conv_run);
    struct weights *g = mem_zalloc(bytes);
    if (!g)
        return fail_memory("conv", bytes);
    g->s = spec->shape;
    g->runs = conv_runs(&x, g->run);
    g->micro = micro_kernel(isa, false);
    size_up(g, spec);
    const struct conv_shape *s = &g->s;
    size_t workspace = lay_out(g);
    *kernel = (struct kernel){.name = "conv_weights", .run = weights_run, .params = g, .params_bytes = bytes,
                              .workspace = workspace, .phases = g->phases,
                              .flops = 2 * (double)g->count * (double)(s->n * s->oh * s->ow)};
    memcpy(kernel->shares, g->shares, sizeof g->shares);
    kernel->bytes = 4 * ((double)(s->n * s->h * s->w * s->c) + (double)(s->n * s->oh * s->ow * s->k) + (double)g->count);
    return GRAPHI_OK;
}
