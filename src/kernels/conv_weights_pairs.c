/* SPDX-License-Identifier: Apache-2.0 */
/* Backward-weights with bfloat16 multiplicands: dw[tap][c][k] = sum over images and pixels of x * dy, two pixels a
 * step.
 *
 * The micro-kernel's pairs (micro.h) run along the sum, here along a row of output pixels: (ox, ox + 1). Under a tap
 * these read columns a stride apart, so the first phase rounds x to pairs (x[column], x[column + stride]) for every
 * column, zero outside the image, and dy to pairs of neighbours (what is rounded already is only put side by side).
 * Then any tap reads a row of pairs two strides apart and no border needs care. The columns of a window row lie side by
 * side in memory, so one tile of dw's rows may span them: all (tap column, c). With one tap a row only the columns that
 * are read are kept. 1 x 1 windows see an image as one row.
 *
 * As in conv_weights.c, images are cut into a fixed number of parts where tiles are few; the last phase adds the parts
 * in order. Usual size: 32 x 14 x 14 pixels, 480 to 192 channels, 1 x 1. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_shape.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

enum {
    TILE_ROWS_MAX = 128,
};

struct weights {
    struct conv_shape s; /* 1 x 1: an image is one row */
    struct conv_axis axis_y, axis_x;
    micro_function micro;
    const struct reduce_loops *loops;
    const struct pair_functions *round;
    bool rounded_x, rounded_y; /* bfloat16 already */
    int64_t c_group, k_group;
    int64_t unit, columns, step; /* columns kept: every unit-th; of a row; between two steps */
    int64_t half;                /* pairs of a row of dy */
    int64_t left, right;         /* of these, every tap meets [left, right) inside the image */
    int64_t taps,
        rows; /* of dw: taps of `rows` rows each: window rows, all of them at once, or with groups single taps */
    int64_t window_rows;         /* of a tile */
    int64_t row_tiles, width, panels, parts;
    int64_t tile_panels;         /* of a tile */
    int64_t asks, steps;         /* for what follows; of a call of the micro-kernel */
    int64_t count;               /* elements of dw */
    size_t y_at, marks_at, parts_at; /* in the workspace, after x; a byte for each line of x, then of dy */
    int shares[3];
};

static int64_t element_bytes(bool rounded) { return rounded ? 2 : 4; }

static int64_t images_of(const struct weights *g, const struct kernel_call *call)
{
    return least(call->in[0].rows, g->s.n);
}

/* --- rounding --- */

/* Rows of x or dy to pairs; a row that is not there (NULL) is zero. */
static void pair_two(const struct weights *g, bool rounded, const char *low, const char *high, int64_t count,
                     uint32_t *out)
{
    static const float zeros[PANEL_MAX];
    const int64_t step = low && high ? count : PANEL_MAX;
    for (int64_t i = 0; i < count; i += step) {
        const void *a = low ? low + i * element_bytes(rounded) : (const char *)zeros;
        const void *b = high ? high + i * element_bytes(rounded) : (const char *)zeros;
        if (rounded)
            g->round->join(a, b, least(count - i, step), out + i);
        else
            g->round->interleave(a, b, least(count - i, step), out + i);
    }
}

/* Columns from `column` on that are all before, all within or all after a line. */
static int64_t alike(int64_t column, int64_t width)
{
    return column < 0 ? -column : column < width ? width - column : INT64_MAX;
}

static uint8_t *marks_of(const struct weights *g, const struct kernel_call *call)
{
    return (uint8_t *)call->workspace + g->marks_at;
}

/* Pairs that some tap multiplies with the column after the last, which is zero: of an odd number of columns the last
 * ones of the line. With one tap a row that column is outside. */
static void mark_x(const struct weights *g, const struct kernel_call *call, int64_t line, const uint32_t *pairs)
{
    const int64_t from = (g->half - 1) * g->step;
    marks_of(g, call)[line] =
        g->s.kw > 1 && g->s.ow % 2 && !g->round->finite(pairs + from * g->s.c, (g->columns - from) * g->s.c);
}

/* Pairs that some tap multiplies with pixels outside the image. */
static void mark_y(const struct weights *g, const struct kernel_call *call, int64_t line, const uint32_t *pairs)
{
    const int64_t k = g->s.k;
    marks_of(g, call)[g->s.n * g->s.h + line] =
        !g->round->finite(pairs, g->left * k) || !g->round->finite(pairs + g->right * k, (g->half - g->right) * k);
}

static void round_x(const struct weights *g, const struct kernel_call *call, int64_t line)
{
    const struct conv_shape *s = &g->s;
    const int64_t pixel = element_bytes(g->rounded_x) * s->ldx;
    const char *x = (const char *)call->in[0].data + line * s->w * pixel;
    uint32_t *out = (uint32_t *)call->workspace + line * g->columns * s->c;
    const bool runs = g->unit == 1 && s->ldx == s->c;
    for (int64_t i = 0, run = 1; i < g->columns; i += run) {
        int64_t low = i * g->unit - s->pad_left, high = low + s->stride_w;
        if (runs)
            run = least(g->columns - i, least(alike(low, s->w), alike(high, s->w)));
        pair_two(g, g->rounded_x, low >= 0 && low < s->w ? x + low * pixel : NULL,
                 high >= 0 && high < s->w ? x + high * pixel : NULL, run * s->c, out + i * s->c);
    }
    mark_x(g, call, line, out);
}

static void round_y(const struct weights *g, const struct kernel_call *call, int64_t line)
{
    const struct conv_shape *s = &g->s;
    const int64_t pixel = element_bytes(g->rounded_y) * s->ldy;
    const char *dy = (const char *)call->in[1].data + line * s->ow * pixel;
    uint32_t *out = (uint32_t *)((char *)call->workspace + g->y_at) + line * g->half * s->k;
    for (int64_t i = 0; i < g->half; i++)
        pair_two(g, g->rounded_y, dy + 2 * i * pixel, 2 * i + 1 < s->ow ? dy + (2 * i + 1) * pixel : NULL, s->k,
                 out + i * s->k);
    mark_y(g, call, line, out);
}

static void round_share(const struct weights *g, const struct kernel_call *call, int share)
{
    int64_t images = images_of(g, call), x_lines = images * g->s.h, begin, end;
    split_range(x_lines + images * g->s.oh, g->shares[0], share, &begin, &end);
    for (int64_t line = begin; line < end; line++) {
        if (line < x_lines)
            round_x(g, call, line);
        else
            round_y(g, call, line - x_lines);
    }
}

/* --- multiplying and reducing --- */

static int64_t tiles_of(const struct weights *g)
{
    return g->parts * g->s.groups * g->taps * g->row_tiles * divide_up(g->panels, g->tile_panels);
}

static float half_of(uint32_t pair, bool high)
{
    float value;
    pair = high ? pair & 0xffff0000u : pair << 16;
    memcpy(&value, &pair, sizeof value);
    return value;
}

/* A line number by number, without what is outside, for a tile whose first row of dw is channel `first` of tap column
 * tx (those of the taps beside it follow). */
static void add_line(const struct weights *g, const uint32_t *x, const uint32_t *dy, int64_t tx, int64_t first,
                     const struct micro_call *tile)
{
    for (int64_t r = 0; r < tile->m; r++) {
        float *c = tile->c + r * tile->ldc;
        for (int64_t ox = 0; ox < g->s.ow; ox++) {
            const int64_t column = conv_source(&g->axis_x, ox, tx + (first + r) / g->c_group);
            if (column < 0 || column >= g->s.w)
                continue;
            const float value = half_of(x[ox / 2 * tile->step_stride + r], ox % 2);
            for (int64_t j = 0; j < tile->n; j++)
                c[j] += value * half_of(dy[ox / 2 * tile->ldb + j], ox % 2);
        }
    }
}

/* One tile of dw in one part of the images: a few output lines for each of its panels and window rows after the
 * other, so that x and dy come from memory once for all of them. */
static void multiply_tile(const struct weights *g, const struct kernel_call *call, int64_t index, float *parts)
{
    const struct conv_shape *s = &g->s;
    int64_t panel_tiles = divide_up(g->panels, g->tile_panels);
    int64_t first_col = index % panel_tiles * g->tile_panels * g->width, row, end_row;
    split_range(g->rows, (int)g->row_tiles, (int)(index / panel_tiles % g->row_tiles), &row, &end_row);
    index /= panel_tiles * g->row_tiles;
    int64_t tap = index % g->taps * g->window_rows, group = index / g->taps % s->groups,
            part = index / g->taps / s->groups;
    int64_t taps_x = g->taps * g->window_rows / s->kh, ty = tap / taps_x, tx = tap % taps_x, begin, end;
    int64_t last_col = least(first_col + g->tile_panels * g->width, g->k_group),
            step = most(g->steps / g->half, 1);
    const uint32_t *x =
        (const uint32_t *)call->workspace + (tx * s->dilation_w / g->unit) * s->c + group * g->c_group + row;
    const uint32_t *dy = (const uint32_t *)((const char *)call->workspace + g->y_at) + group * g->k_group;
    const uint8_t *marks_x = marks_of(g, call), *marks_y = marks_x + s->n * s->h;
    float *c = parts + part * g->count + (tap * g->rows + row) * s->k + group * g->k_group;
    struct micro_list list;
    micro_start(&list, g->micro, g->steps);
    list.call = (struct micro_call){.m = (int)(end_row - row), .row_stride = 1,
                                    .step_stride = g->step * s->c, .ldb = s->k, .ldc = s->k};
    split_range(images_of(g, call), (int)g->parts, (int)part, &begin, &end);
    int64_t from = begin * s->oh;
    do {
        int64_t to = least(from + step, end * s->oh);
        for (int64_t col = first_col; col < last_col; col += g->width)
            for (int64_t i = 0; i < g->window_rows; i++) {
                list.call.n = (int)least(last_col - col, g->width);
                list.call.c = c + i * g->rows * s->k + col;
                list.call.accumulate = from > begin * s->oh;
                for (int64_t at = from; at < to; at++) {
                    int64_t line = conv_source(&g->axis_y, at % s->oh, ty + i);
                    if (line < 0 || line >= s->h)
                        continue;
                    line += at / s->oh * s->h;
                    const uint32_t *a = x + line * g->columns * s->c, *b = dy + at * g->half * s->k + col;
                    if (!marks_x[line] && !marks_y[at]) {
                        list.soon_a = g->asks ? (const char *)(a + step * s->stride_h * g->columns * s->c) : NULL;
                        list.soon_b = g->asks ? (const char *)(b + step * g->half * s->k) : NULL;
                        micro_add(&list, (const char *)a, (const char *)b, g->half);
                        continue;
                    }
                    micro_finish(&list);
                    add_line(g, a, b, tx, row, &list.call);
                }
                micro_finish(&list);
            }
        from = to;
    } while (from < end * s->oh);
}

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct weights *g = call->params;
    float *dw = call->out[0].data, *parts = g->parts > 1 ? (float *)((char *)call->workspace + g->parts_at) : dw;
    int64_t begin, end;
    switch (phase) {
    case 0: round_share(g, call, share); break;
    case 1:
        split_range(tiles_of(g), g->shares[1], share, &begin, &end);
        for (int64_t index = begin; index < end; index++)
            multiply_tile(g, call, index, parts);
        break;
    default:
        split_range(g->count, g->shares[2], share, &begin, &end);
        reduce_parts(g->loops, parts, g->count, g->parts, begin, end, dw);
    }
    return GRAPHI_OK;
}

/* --- binding --- */

/* Pairs of which no tap finds a pixel outside the image. */
static void find_inside(struct weights *g)
{
    const int64_t last = g->s.kw - 1;
    g->left = 0;
    while (g->left < g->half && conv_source(&g->axis_x, 2 * g->left, 0) < 0)
        g->left++;
    g->right = g->half;
    while (g->right > g->left && conv_source(&g->axis_x, least(2 * g->right, g->s.ow) - 1, last) >= g->s.w)
        g->right--;
}

static void size_up(struct weights *g, int cores, enum isa isa)
{
    struct conv_shape *s = &g->s;
    if (conv_flat(s)) {
        s->w *= s->h;
        s->ow = s->w;
        s->h = s->oh = 1;
    }
    bool together = s->groups == 1 && (s->kw == 1 || s->dilation_w == 1);
    g->axis_y = conv_axis_y(s, false);
    g->axis_x = conv_axis_x(s, false);
    g->c_group = s->c / s->groups;
    g->k_group = s->k / s->groups;
    g->half = divide_up(s->ow, 2);
    find_inside(g);
    g->unit = s->kw == 1 ? 2 * s->stride_w : 1;
    g->step = 2 * s->stride_w / g->unit;
    g->columns = (g->half - 1) * g->step + (s->kw == 1 ? 0 : (s->kw - 1) * s->dilation_w) + 1;
    g->rows = g->c_group * (together ? s->kw : 1);
    g->window_rows = together && g->rows * s->kh <= CONV_TOGETHER_MAX ? s->kh : 1;
    g->taps = (together ? s->kh : s->kh * s->kw) / g->window_rows;
    g->row_tiles = conv_row_tiles(g->rows, TILE_ROWS_MAX);
    g->width = panel_width(g->k_group);
    g->panels = panel_count(g->k_group);
    g->count = s->kh * s->kw * g->c_group * s->k;
    g->asks = conv_asks(s);
    g->steps = g->asks ? level_2_part(CONV_ASKING_STEPS, isa) : MICRO_STEPS;
    g->tile_panels = s->kh == 1 && s->kw == 1 && conv_far(s) ? g->panels : 1;
    g->parts = 1;
    g->parts = conv_weight_parts(s, tiles_of(g), g->count);
    g->y_at = whole_lines(4 * s->n * s->h * g->columns * s->c);
    g->marks_at = g->y_at + whole_lines(4 * s->n * s->oh * g->half * s->k);
    g->parts_at = g->marks_at + whole_lines(s->n * (s->h + s->oh));
    g->shares[0] = clamp_shares_for(s->n * (s->h + s->oh), cores);
    g->shares[1] = clamp_shares_for(tiles_of(g), cores);
    g->shares[2] = g->parts > 1 ? clamp_shares_for(divide_up(g->count, CONV_REDUCE_STEP), cores) : 0;
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct weights *g = mem_zalloc(sizeof *g);
    if (!g)
        return fail_memory("conv", sizeof *g);
    const struct conv_shape *s = &spec->shape;
    g->s = *s;
    g->rounded_x = spec->rounded_x;
    g->rounded_y = spec->rounded_y;
    g->micro = micro_kernel(isa, true);
    g->loops = reduce_loops_of(isa);
    g->round = pair_functions(isa);
    size_up(g, spec->cores, isa);
    *kernel = (struct kernel){.name = "conv_weights", .run = run, .params = g, .params_bytes = sizeof *g,
                              .phases = g->parts > 1 ? 3 : 2,
                              .workspace = g->parts_at + (g->parts > 1 ? 4 * (size_t)(g->parts * g->count) : 0),
                              .flops = 2 * (double)g->count * (double)(s->n * s->oh * s->ow)};
    memcpy(kernel->shares, g->shares, sizeof g->shares);
    kernel->bytes = (double)(element_bytes(g->rounded_x) * s->n * s->h * s->w * s->c) +
                    (double)(element_bytes(g->rounded_y) * s->n * s->oh * s->ow * s->k) + 4 * (double)g->count;
    return GRAPHI_OK;
}

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    return spec->direction == CONV_BACKWARD_WEIGHTS && spec->algorithm == CONV_DIRECT &&
           spec->multiplicands == GRAPHI_BF16;
}

const struct conv_kernel conv_weights_pairs = {.takes = takes, .bind = bind_kernel, .rounds = true};
