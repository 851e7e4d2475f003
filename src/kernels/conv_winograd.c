/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with stride 1 by Winograd's algorithm, forward and backward-data (the same with flipped, transposed
 * weights and the complementary padding). F(4x4, 3x3) needs a quarter of the multiplications, F(2x2, 5x5) 36 %.
 *
 * First phase: weights to points, in panels (conv_pack.c), unless they come prepared. Second phase, for a block of
 * tiles (12 to 48): inputs to points for all channels; then a panel of at most 64 result channels at a time: products,
 * transform back, epilogue. A block's points stay in the level-2 cache: scratch in the workspace that each thread has
 * for all its shares.
 *
 * With few tiles the points of the weights are most of what is read. They are then made where they are used: the first
 * phase makes the points of all inputs, and a share of the second has some result channels, 32 or fewer, of all tiles:
 * their weights' points, products, transform back. 3 x 3 x 192 x 384 on 32 tiles takes 2 to 3 % longer so than with
 * weights that come prepared, 10.6 MB read from memory each time, and 20 to 30 % less than through a first phase that
 * writes them.
 *
 * With bfloat16 points are rounded as they are made, and multiplied as pairs of channels. An
 * infinity or NaN in the source makes all outputs of its tiles NaN (the direct kernel: those under its window). Usual
 * size: 32 x 14 x 14 pixels, 112 to 224 channels: 512 tiles of 4 x 4. */
#include <stdalign.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"
#include "kernels/conv_tiles.h"
#include "kernels/epilogue.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels "3x3 forward" "3x3 backward data"`; COLUMN_TILES in "5a 3x3" and
 * "5b 3x3", which have few tiles and many channels. */
enum {
    BLOCK_BYTES = 384 << 10, /* points of the inputs of a block */
    BLOCK_MIN = 12,
    BLOCK_MAX = 48,
    ROWS_SHARES = 16, /* where rows are asked for: such blocks are smaller, so that few rows fill some */
    STRIP = 32, /* pixels of one row transformed back at a time */
    COLUMN_TILES = 64, /* up to so many a share has columns of all tiles */
    LINE = 16,         /* columns that are not divided */
};

struct winograd {
    struct conv_shape s;
    struct epilogue epilogue;
    micro_function micro;
    const struct winograd_scheme *scheme;
    struct conv_packing packing;
    bool backward, prepared, pairs, columns;
    int64_t points; /* n * n */
    int64_t depth;               /* elements of a pixel's point: source_c, or pairs of bfloat16 */
    int64_t plane_in, plane_out; /* elements of a point's inputs and products */
    int64_t source_c, result_c, source_ld, result_ld;
    int64_t source_h, source_w, result_h, result_w, pad_y, pad_x;
    int64_t tiles_y, tiles_x; /* of an image */
    int64_t width, panels, block;
    size_t scratch_at, scratch_bytes, points_bytes; /* of a slot: inputs' points, then products' points */
    int weight_shares, shares, slots;
};

static const float *panel_points(const struct winograd *g, const struct kernel_call *call, int64_t panel)
{
    const float *points = g->prepared ? call->in[1].data : call->workspace;
    return points + g->points * g->depth * g->width * panel;
}

static void transform_weights(const struct winograd *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(g->packing.units, g->weight_shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++)
        conv_packing_unit(&g->packing, call->in[1].data, call->workspace, unit);
}

static struct winograd_images sources(const struct winograd *g, const struct kernel_call *call)
{
    return (struct winograd_images){.pixels = call->in[0].data,
                                    .h = g->source_h,
                                    .w = g->source_w,
                                    .ld = g->source_ld,
                                    .pad_y = g->pad_y,
                                    .pad_x = g->pad_x,
                                    .tiles_y = g->tiles_y,
                                    .tiles_x = g->tiles_x,
                                    .side = g->scheme->points,
                                    .step = g->scheme->outputs,
                                    .channels = (int)g->source_c};
}

static void transform_inputs(const struct winograd *g, const struct kernel_call *call, int64_t first, int64_t count,
                             float *v)
{
    const struct winograd_images images = sources(g, call);
    struct winograd_walk walk = winograd_walk(&images, first);
    for (int64_t i = 0; i < count; i++) {
        const struct winograd_source input = winograd_step(&walk, v + i * g->depth, g->plane_in);
        if (g->pairs)
            g->scheme->input_halves(&input);
        else
            g->scheme->input(&input);
    }
}

static void multiply(const struct winograd *g, const float *v, const float *u, int64_t plane_u, int64_t count,
                     int64_t width, float *m)
{
    struct micro_list list;
    micro_start(&list, g->micro, micro_limit(g->depth, MICRO_STEPS));
    for (int point = 0; point < g->points; point++) {
        list.call = (struct micro_call){.m = (int)count, .n = (int)width, .row_stride = g->depth, .step_stride = 1,
                                        .ldb = width, .c = m + point * g->plane_out, .ldc = width};
        micro_add(&list, (const char *)(v + point * g->plane_in),
                  (const char *)(u + point * plane_u), g->depth);
        micro_finish(&list);
    }
}

/* Moves `count` transformed-back tiles of one tile row to their place: lines of them, one after the other in y. Where
 * they go from border to border, all are one run of the result. */
static void finish(const struct winograd *g, const struct kernel_call *call, struct winograd_place p, int64_t count,
                   int64_t col, int64_t width, float *y)
{
    const int64_t side = g->scheme->outputs, x = p.x * side, across = count * side;
    const int64_t lines = least(g->result_h - p.y * side, side), pixels = least(g->result_w - x, across);
    const int64_t together = across == g->result_w ? lines : 1;
    int64_t row = (p.image * g->result_h + p.y * side) * g->result_w + x;
    for (int64_t i = 0; i < lines; i += together, y += together * across * width, row += together * g->result_w) {
        const int64_t rows = together * pixels;
        const struct epilogue_tile tile = {.data = y, .ld = width, .row = row, .col = col, .rows = rows, .cols = width,
                                           .row_step = 1, .result_ld = g->result_ld};
        float *result = (float *)call->out[0].data + row * g->result_ld + col;
        if (g->epilogue.present)
            epilogue_run(&g->epilogue, &tile, call->in + 2, call->out);
        else if (g->result_ld == width)
            memcpy(result, y, (size_t)(rows * width) * sizeof(float));
        else
            for (int64_t j = 0; j < rows; j++)
                memcpy(result + j * g->result_ld, y + j * width, (size_t)width * sizeof(float));
    }
}

static void transform_outputs(const struct winograd *g, const struct kernel_call *call, int64_t first, int64_t count,
                              int64_t col, int64_t width, const float *m)
{
    alignas(64) float y[WINOGRAD_OUTPUTS_MAX * STRIP * PANEL_MAX];
    const int64_t side = g->scheme->outputs;
    for (int64_t i = 0; i < count;) {
        struct winograd_place p = winograd_place(first + i, g->tiles_y, g->tiles_x);
        int64_t strip = least(least(count - i, g->tiles_x - p.x), STRIP / side);
        for (int64_t j = 0; j < strip; j++)
            g->scheme->output(m + (i + j) * width, g->plane_out, (int)width, y + j * side * width, strip * side * width,
                              width);
        finish(g, call, p, strip, col, width, y);
        i += strip;
    }
}

/* Tiles [begin, end), in blocks as even as can be. */
static void convolve(const struct winograd *g, const struct kernel_call *call, int64_t begin, int64_t end,
                     void *scratch)
{
    float *v = scratch, *m = (float *)((char *)v + g->points_bytes);
    const int64_t blocks = divide_up(end - begin, g->block);
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first = begin + (end - begin) * block / blocks,
                count = begin + (end - begin) * (block + 1) / blocks - first;
        transform_inputs(g, call, first, count, v);
        for (int64_t panel = 0; panel < g->panels; panel++) {
            int64_t width = least(g->result_c - panel * g->width, g->width);
            multiply(g, v, panel_points(g, call, panel), g->depth * width, count, width, m);
            transform_outputs(g, call, first, count, panel * g->width, width, m);
        }
    }
}

static int64_t tiles_of(const struct winograd *g, const struct kernel_call *call)
{
    return least(call->in[0].rows, g->s.n) * g->tiles_y * g->tiles_x;
}

static void *scratch_of(const struct winograd *g, const struct kernel_call *call, int share)
{
    int slot = share_slot(g->slots, g->shares, call->thread, share);
    return (char *)call->workspace + g->scratch_at + (size_t)slot * g->scratch_bytes;
}

static void convolve_share(const struct winograd *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(tiles_of(g, call), g->shares, share, &begin, &end);
    convolve(g, call, begin, end, scratch_of(g, call, share));
}

/* --- few tiles --- */

static void all_inputs(const struct winograd *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(tiles_of(g, call), g->weight_shares, share, &begin, &end);
    transform_inputs(g, call, begin, end - begin, (float *)call->workspace + begin * g->depth);
}

static void convolve_columns(const struct winograd *g, const struct kernel_call *call, int share)
{
    const int64_t tiles = tiles_of(g, call), blocks = divide_up(tiles, g->block);
    int64_t begin, end;
    split_range(divide_up(g->result_c, LINE), g->shares, share, &begin, &end);
    begin *= LINE;
    end = least(end * LINE, g->result_c);
    float *u = scratch_of(g, call, share), *m = (float *)((char *)u + g->points_bytes);
    const int64_t plane_u = g->depth * (end - begin) + CONV_PLANE_PAD;
    conv_packing_columns(&g->packing, call->in[1].data, begin, end, u);
    for (int64_t block = 0; block < blocks; block++) {
        int64_t first = tiles * block / blocks, count = tiles * (block + 1) / blocks - first;
        multiply(g, (const float *)call->workspace + first * g->depth, u, plane_u, count, end - begin, m);
        transform_outputs(g, call, first, count, begin, end - begin, m);
    }
}

/* --- row by row --- */

static void convolve_rows(const struct kernel_call *call, int64_t image, int64_t from, int64_t to, void *scratch)
{
    const struct winograd *g = call->params;
    const int64_t first = image * g->tiles_y * g->tiles_x, side = g->scheme->outputs;
    convolve(g, call, first + from / side * g->tiles_x, first + divide_up(to, side) * g->tiles_x, scratch);
}

static struct conv_rows rows_of(const void *params)
{
    const struct winograd *g = params;
    struct conv_rows rows = {.run = convolve_rows, .workspace = g->scratch_at, .scratch = g->scratch_bytes,
                             .unit = g->scheme->outputs};
    for (int64_t y = 1; y <= g->tiles_y && !rows.fewest; y++) {
        int64_t tiles = y * g->tiles_x, blocks = divide_up(tiles, g->block);
        if (10 * tiles >= 9 * blocks * g->block)
            rows.fewest = y * rows.unit;
    }
    return rows;
}

static graphi_status winograd_run(const struct kernel_call *call, int phase, int share)
{
    const struct winograd *g = call->params;
    const bool first = phase == 0 && !g->prepared;
    if (g->columns)
        (first ? all_inputs : convolve_columns)(g, call, share);
    else
        (first ? transform_weights : convolve_share)(g, call, share);
    return GRAPHI_OK;
}

/* --- binding --- */

/* A share for each block, or each two, three, ... of many: an even number, for two threads, or more where each core
 * then has as many as the others and blocks are not too small. */
static int shares_of(const struct conv_spec *spec, int64_t tiles, int64_t blocks)
{
    const int64_t limit = shares_for_cores(spec->cores);
    const int64_t shares = spec->by_rows ? least(blocks, ROWS_SHARES) : divide_up(blocks, divide_up(blocks, limit));
    const int64_t all_cores = round_up(shares, most(least(spec->cores, limit), 1));
    if (spec->cores > 2 && !spec->by_rows && all_cores * BLOCK_MIN <= tiles)
        return (int)all_cores;
    return (int)(shares + (shares > 1 ? shares % 2 : 0));
}

static void size_up(struct winograd *g, const struct conv_spec *spec)
{
    const struct conv_shape *s = &g->s;
    g->source_c = g->backward ? s->k : s->c;
    g->result_c = g->backward ? s->c : s->k;
    g->depth = pair_rows(g->source_c, g->pairs);
    g->source_ld = g->backward ? s->ldy : s->ldx;
    g->result_ld = g->backward ? s->ldx : s->ldy;
    g->source_h = g->backward ? s->oh : s->h;
    g->source_w = g->backward ? s->ow : s->w;
    g->result_h = g->backward ? s->h : s->oh;
    g->result_w = g->backward ? s->w : s->ow;
    g->pad_y = g->backward ? s->kh - 1 - s->pad_top : s->pad_top;
    g->pad_x = g->backward ? s->kw - 1 - s->pad_left : s->pad_left;
    g->tiles_y = divide_up(g->result_h, g->scheme->outputs);
    g->tiles_x = divide_up(g->result_w, g->scheme->outputs);
    g->points = (int64_t)g->scheme->points * g->scheme->points;
    g->width = panel_width(g->result_c);
    g->panels = panel_count(g->result_c);
    int64_t tiles = s->n * g->tiles_y * g->tiles_x;
    g->weight_shares = clamp_shares_for(g->packing.units, spec->cores);
    int64_t block = BLOCK_BYTES / (g->points * 4 * g->depth) / 6 * 6; /* whole rows of the micro-kernel */
    block = block < BLOCK_MIN ? BLOCK_MIN : least(block, BLOCK_MAX);
    g->shares = shares_of(spec, tiles, most(divide_up(tiles, block), 1));
    int64_t each = divide_up(divide_up(tiles, g->shares), block); /* blocks of a share, as even as can be */
    g->block = tiles ? divide_up(divide_up(tiles, g->shares), each) : 1;
    g->plane_in = round_up(g->block * g->depth, 16) + CONV_PLANE_PAD;
    g->plane_out = round_up(g->block * g->width, 16) + CONV_PLANE_PAD;
    g->points_bytes = (size_t)(4 * g->points * g->plane_in);
    g->scratch_bytes = g->points_bytes + (size_t)(4 * g->points * g->plane_out);
    g->slots = share_slots(g->shares, spec->threads);
    g->scratch_at = g->prepared ? 0 : whole_lines(g->packing.bytes);
}

/* The same where a share has columns of all tiles, 32 at most: an even number of shares. */
static void size_up_columns(struct winograd *g, int64_t tiles, int threads)
{
    const int64_t lines = divide_up(g->result_c, LINE), most = PANEL_MAX / LINE / 2;
    g->shares = (int)least(2 * divide_up(lines, 2 * most), lines);
    g->weight_shares = clamp_shares(tiles);
    g->block = divide_up(tiles, divide_up(tiles, BLOCK_MAX));
    const int64_t width = LINE * divide_up(lines, g->shares);
    g->plane_in = round_up(tiles * g->depth, 16) + CONV_PLANE_PAD;
    g->plane_out = round_up(g->block * width, 16) + CONV_PLANE_PAD;
    g->scratch_at = (size_t)(4 * g->points * g->plane_in);
    g->points_bytes = whole_lines(4 * g->points * (g->depth * width + CONV_PLANE_PAD));
    g->scratch_bytes = g->points_bytes + (size_t)(4 * g->points * g->plane_out);
    g->slots = share_slots(g->shares, threads);
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct winograd *g = mem_zalloc(sizeof *g);
    if (!g)
        return fail_memory("conv", sizeof *g);
    graphi_status status = epilogue_prepare(&spec->epilogue, isa, &g->epilogue);
    if (status != GRAPHI_OK) {
        mem_free(g);
        return status;
    }
    g->s = spec->shape;
    g->backward = spec->direction == CONV_BACKWARD_DATA;
    g->pairs = conv_winograd_pairs(spec, spec->algorithm, isa);
    g->micro = micro_kernel(isa, g->pairs);
    g->scheme = conv_winograd_scheme(spec, spec->algorithm, isa);
    g->prepared = spec->prepared;
    struct conv_form form;
    conv_form_of(spec, isa, &form);
    conv_packing_init(&form, isa, &g->packing);
    size_up(g, spec);
    const struct conv_shape *s = &g->s;
    const int64_t count = s->n * g->tiles_y * g->tiles_x;
    g->columns = !spec->prepared && !spec->by_rows && count > 0 && count <= COLUMN_TILES;
    if (g->columns)
        size_up_columns(g, count, spec->threads);
    double tiles = (double)count;
    *kernel = (struct kernel){.name = g->backward ? "conv_data_winograd" : "conv_winograd",
                              .run = winograd_run,
                              .params = g,
                              .params_bytes = sizeof *g,
                              .phases = 2,
                              .shares = {g->weight_shares, g->shares},
                              .workspace = g->scratch_at + (size_t)g->slots * g->scratch_bytes,
                              .flops = 2 * (double)g->points * tiles * (double)(s->c * s->k)};
    kernel->bytes = conv_traffic(s);
    if (g->prepared) {
        kernel->phases = 1;
        kernel->shares[0] = g->shares;
        kernel->shares[1] = 0;
    }
    return GRAPHI_OK;
}

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    return spec->direction != CONV_BACKWARD_WEIGHTS && spec->algorithm != CONV_DIRECT;
}

const struct conv_kernel conv_winograd = {.takes = takes, .bind = bind_kernel, .rows = rows_of, .reads_forms = true};
