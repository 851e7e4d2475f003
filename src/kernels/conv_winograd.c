/* SPDX-License-Identifier: Apache-2.0 */
/* 3 x 3 convolutions with stride 1 by Winograd's F(4x4, 3x3), forward and backward-data (the same with flipped, transposed
 * weights and the complementary padding): a quarter of the multiplications.
 *
 * First phase: weights to 36 points, in panels. Second phase, for a block of tiles (12 to 48): inputs to 36 points for all
 * channels; then a panel of at most 64 result channels at a time: 36 products, transform back, epilogue. A block's points stay
 * in the level-2 cache. Each share has its scratch in the workspace, so there are at most 16 of them.
 * An infinity or NaN in the source makes the whole 4 x 4 outputs of its tiles NaN (the direct kernel: those under its window).
 * Usual size: 32 x 14 x 14 pixels, 112 to 224 channels: 512 tiles. */
#include <stdalign.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_internal.h"
#include "kernels/epilogue.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/winograd.h"

enum {
    BLOCK_BYTES = 384 << 10, /* points of the inputs of a block */
    BLOCK_MIN = 12,
    BLOCK_MAX = 48,
    SHARES_MAX = 16,
    STRIP = 8,         /* tiles of one tile row transformed back at a time */
    WEIGHT_ROWS = 8,   /* source channels whose weights are transformed at a time */
    CHANNELS_MIN = 32, /* below, transforms cost more than they save */
    TILES_MIN = 24,
};

/* Root mean square error against float64 over that of the direct kernel: at most 1.9 on the networks' shapes (56 x 56, 64 to
 * 192 channels, is the worst); tests/test_conv.c asserts this bound. */
static const double WINOGRAD_ERROR = 2.5;

struct winograd {
    struct conv_shape s;
    struct epilogue epilogue;
    micro_function micro;
    const struct winograd_functions *transform;
    bool backward;
    int64_t source_c, result_c, source_ld, result_ld;
    int64_t source_h, source_w, result_h, result_w, pad_y, pad_x;
    int64_t tiles_y, tiles_x; /* of an image */
    int64_t width, panels, block;
    int64_t weight_blocks;
    size_t scratch_at, scratch_bytes, points_bytes; /* of a share: inputs' points, then products' points */
    int weight_shares, shares;
};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Transformed weights: [panel][point][source channel][width of the panel]. */
static float *panel_points(const struct winograd *g, const struct kernel_call *call, int64_t panel)
{
    return (float *)call->workspace + WINOGRAD_POINTS * g->source_c * g->width * panel;
}

static void transform_weights(const struct winograd *g, const struct kernel_call *call, int share)
{
    alignas(64) float taps[9 * WEIGHT_ROWS * PANEL_MAX];
    const int64_t k = g->s.k, tap_step = g->s.c * k;
    int64_t begin, end;
    split_range(g->panels * g->weight_blocks, g->weight_shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t panel = unit / g->weight_blocks, from = unit % g->weight_blocks * WEIGHT_ROWS;
        int64_t rows = least(g->source_c - from, WEIGHT_ROWS), first = panel * g->width;
        int width = (int)least(g->result_c - first, g->width);
        for (int tap = 0; tap < 9; tap++) {
            const float *w = (const float *)call->in[1].data + (g->backward ? 8 - tap : tap) * tap_step;
            w += g->backward ? first * k + from : from * k + first;
            pack_block(w, k, g->backward, rows, width, false, taps + tap * rows * width);
        }
        float *u = panel_points(g, call, panel) + from * width;
        for (int64_t r = 0; r < rows; r++)
            g->transform->weights(taps + r * width, rows * width, width, u + r * width, g->source_c * width);
    }
}

struct place {
    int64_t image, y, x; /* tile coordinates */
};

static struct place place_of(const struct winograd *g, int64_t tile)
{
    return (struct place){tile / g->tiles_x / g->tiles_y, tile / g->tiles_x % g->tiles_y, tile % g->tiles_x};
}

static int clamp(int64_t value)
{
    return value < 0 ? 0 : value > WINOGRAD_IN ? WINOGRAD_IN : (int)value;
}

static void transform_inputs(const struct winograd *g, const struct kernel_call *call, int64_t first, int64_t count, float *v)
{
    for (int64_t i = 0; i < count; i++) {
        struct place p = place_of(g, first + i);
        int64_t y = p.y * WINOGRAD_OUT - g->pad_y, x = p.x * WINOGRAD_OUT - g->pad_x;
        struct winograd_input input = {
            .row = g->source_w * g->source_ld, .pixel = g->source_ld, .y0 = clamp(-y), .y1 = clamp(g->source_h - y),
            .x0 = clamp(-x), .x1 = clamp(g->source_w - x), .channels = (int)g->source_c, .v = v + i * g->source_c,
            .plane = g->block * g->source_c};
        input.source = (const float *)call->in[0].data +
                       ((p.image * g->source_h + y) * g->source_w + x) * g->source_ld;
        g->transform->input(&input);
    }
}

static void multiply(const struct winograd *g, const float *v, const float *u, int64_t count, int64_t width, float *m)
{
    struct micro_list list;
    list.run = g->micro;
    list.limit = micro_limit(g->source_c);
    for (int point = 0; point < WINOGRAD_POINTS; point++) {
        list.call = (struct micro_call){.m = (int)count, .n = (int)width, .row_stride = g->source_c, .step_stride = 1,
                                        .ldb = width, .c = m + point * g->block * width, .ldc = width};
        list.waiting = 0;
        micro_add(&list, (const char *)(v + point * g->block * g->source_c),
                  (const char *)(u + point * g->source_c * width), g->source_c);
        micro_finish(&list);
    }
}

/* Moves `count` transformed-back tiles of one tile row, `pixels` apart in y, to their place. */
static void finish(const struct winograd *g, const struct kernel_call *call, struct place p, int64_t count, int64_t panel,
                   int64_t width, float *y)
{
    int64_t x = p.x * WINOGRAD_OUT, pixels = least(g->result_w - x, count * WINOGRAD_OUT), col = panel * g->width;
    for (int64_t i = 0; i < WINOGRAD_OUT && p.y * WINOGRAD_OUT + i < g->result_h; i++) {
        float *line = y + i * STRIP * WINOGRAD_OUT * width;
        int64_t row = (p.image * g->result_h + p.y * WINOGRAD_OUT + i) * g->result_w + x;
        if (g->epilogue.present)
            epilogue_run(&g->epilogue, line, width, row, col, pixels, width, 1, call->in + 2, call->out, g->result_ld);
        else
            for (int64_t j = 0; j < pixels; j++)
                memcpy((float *)call->out[0].data + (row + j) * g->result_ld + col, line + j * width,
                       (size_t)width * sizeof(float));
    }
}

static void transform_outputs(const struct winograd *g, const struct kernel_call *call, int64_t first, int64_t count,
                              int64_t panel, int64_t width, const float *m)
{
    alignas(64) float y[WINOGRAD_OUT * STRIP * WINOGRAD_OUT * PANEL_MAX];
    for (int64_t i = 0; i < count;) {
        struct place p = place_of(g, first + i);
        int64_t strip = least(least(count - i, g->tiles_x - p.x), STRIP);
        for (int64_t j = 0; j < strip; j++)
            g->transform->output(m + (i + j) * width, g->block * width, (int)width, y + j * WINOGRAD_OUT * width,
                                 STRIP * WINOGRAD_OUT);
        finish(g, call, p, strip, panel, width, y);
        i += strip;
    }
}

static void convolve(const struct winograd *g, const struct kernel_call *call, int share)
{
    int64_t tiles = least(call->in[0].rows, g->s.n) * g->tiles_y * g->tiles_x, begin, end;
    float *v = (float *)((char *)call->workspace + g->scratch_at + (size_t)share * g->scratch_bytes);
    float *m = (float *)((char *)v + g->points_bytes);
    split_range(tiles, g->shares, share, &begin, &end);
    for (int64_t first = begin; first < end; first += g->block) {
        int64_t count = least(end - first, g->block);
        transform_inputs(g, call, first, count, v);
        for (int64_t panel = 0; panel < g->panels; panel++) {
            int64_t width = least(g->result_c - panel * g->width, g->width);
            multiply(g, v, panel_points(g, call, panel), count, width, m);
            transform_outputs(g, call, first, count, panel, width, m);
        }
    }
}

static graphi_status winograd_run(const struct kernel_call *call, int phase, int share)
{
    const struct winograd *g = call->params;
    if (phase == 0)
        transform_weights(g, call, share);
    else
        convolve(g, call, share);
    return GRAPHI_OK;
}

/* --- choice and binding ------------------------------------------------------------------------------------------------- */

bool conv_winograd_possible(const struct conv_spec *spec)
{
    const struct conv_shape *s = &spec->shape;
    return s->kh == 3 && s->kw == 3 && s->stride_h == 1 && s->stride_w == 1 && s->dilation_h == 1 && s->dilation_w == 1 &&
           s->groups == 1 && spec->multiplicands == GRAPHI_F32 && spec->direction != CONV_BACKWARD_WEIGHTS;
}

bool conv_winograd_chosen(const struct conv_spec *spec)
{
    const struct conv_shape *s = &spec->shape;
    double budget = spec->error_budget > 0 ? spec->error_budget : 4;
    return conv_winograd_possible(spec) && budget >= WINOGRAD_ERROR && s->c >= CHANNELS_MIN && s->k >= CHANNELS_MIN &&
           s->oh > WINOGRAD_OUT && s->ow > WINOGRAD_OUT && s->n * divide_up(s->oh, 4) * divide_up(s->ow, 4) >= TILES_MIN;
}

static void size_up(struct winograd *g)
{
    const struct conv_shape *s = &g->s;
    g->source_c = g->backward ? s->k : s->c;
    g->result_c = g->backward ? s->c : s->k;
    g->source_ld = g->backward ? s->ldy : s->ldx;
    g->result_ld = g->backward ? s->ldx : s->ldy;
    g->source_h = g->backward ? s->oh : s->h;
    g->source_w = g->backward ? s->ow : s->w;
    g->result_h = g->backward ? s->h : s->oh;
    g->result_w = g->backward ? s->w : s->ow;
    g->pad_y = g->backward ? 2 - s->pad_top : s->pad_top;
    g->pad_x = g->backward ? 2 - s->pad_left : s->pad_left;
    g->tiles_y = divide_up(g->result_h, WINOGRAD_OUT);
    g->tiles_x = divide_up(g->result_w, WINOGRAD_OUT);
    g->width = panel_width(g->result_c);
    g->panels = panel_count(g->result_c);
    g->weight_blocks = divide_up(g->source_c, WEIGHT_ROWS);
    int64_t units = g->panels * g->weight_blocks, tiles = s->n * g->tiles_y * g->tiles_x;
    g->weight_shares = (int)least(units, SHARES_MAX);
    int64_t block = BLOCK_BYTES / (WINOGRAD_POINTS * 4 * g->source_c) / 6 * 6; /* whole rows of the micro-kernel */
    block = block < BLOCK_MIN ? BLOCK_MIN : least(block, BLOCK_MAX);
    g->shares = (int)least(divide_up(tiles, block), SHARES_MAX);
    g->shares = g->shares < 1 ? 1 : g->shares > 1 ? (g->shares + 1) / 2 * 2 : 1; /* even, for two threads */
    int64_t each = divide_up(divide_up(tiles, g->shares), block); /* blocks of a share, as even as can be */
    g->block = tiles ? divide_up(divide_up(tiles, g->shares), each) : 1;
    g->points_bytes = (size_t)divide_up(WINOGRAD_POINTS * 4 * g->block * g->source_c, 64) * 64;
    g->scratch_bytes = g->points_bytes + (size_t)divide_up(WINOGRAD_POINTS * 4 * g->block * g->width, 64) * 64;
    g->scratch_at = (size_t)divide_up(WINOGRAD_POINTS * 4 * g->source_c * g->result_c, 64) * 64;
}

graphi_status conv_winograd_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct winograd *g = mem_zalloc(sizeof *g);
    if (!g)
        return fail_memory("conv", sizeof *g);
    graphi_status status = epilogue_prepare(spec->epilogue, spec->epilogue_broadcast, spec->epilogue_ld, spec->output_ld, isa,
                                            &g->epilogue);
    if (status != GRAPHI_OK) {
        mem_free(g);
        return status;
    }
    g->s = spec->shape;
    g->backward = spec->direction == CONV_BACKWARD_DATA;
    g->micro = micro_kernel(isa, false);
    g->transform = winograd_functions(isa);
    size_up(g);
    const struct conv_shape *s = &g->s;
    double tiles = (double)(s->n * g->tiles_y * g->tiles_x);
    *kernel = (struct kernel){.name = g->backward ? "conv_data_winograd" : "conv_winograd", .run = winograd_run, .params = g,
                              .params_bytes = sizeof *g, .phases = 2, .shares = {g->weight_shares, g->shares},
                              .workspace = g->scratch_at + (size_t)g->shares * g->scratch_bytes,
                              .flops = 2 * WINOGRAD_POINTS * tiles * (double)(s->c * s->k)};
    kernel->bytes = 4 * ((double)(s->n * s->h * s->w * s->c) + (double)(s->n * s->oh * s->ow * s->k) +
                         9.0 * (double)(s->c * s->k));
    return GRAPHI_OK;
}
