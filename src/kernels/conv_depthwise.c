/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions (one channel a group), all directions: products of pixels and taps channel by channel, which
 * no matrix product helps. Vectors run along the channels.
 *
 * Forward and backward-data gather: for one row of result pixels that use the same taps (conv.c), each pixel sums its
 * taps; an epilogue runs on the row while it is in the nearest cache. Backward-weights sums for each tap over all
 * pixels; a fixed number of parts of the images have sums of their own, which the second phase adds in order. Weights
 * are read as they are, bfloat16 multiplicands are rounded on the way. Bound by the caches' bandwidth. Usual size: 32 x
 * 14 x 14 x 512. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_internal.h"
#include "kernels/depthwise.h"
#include "kernels/epilogue.h"
#include "kernels/shares.h"

enum {
    PARTS_MAX = 16,
    BLOCK = 256,      /* channels at a time, */
    BLOCK_PIXELS = 32 /* by pixels: a block in the level-1 cache */
};

struct depthwise {
    struct conv_shape s;
    struct conv_axis axis_y, axis_x;
    struct epilogue epilogue;
    const struct depthwise_functions *functions;
    bool backward, round;
    int64_t source_ld, result_ld;
    int parts; /* of backward-weights */
    int64_t y_runs, x_runs;
    struct conv_run run[]; /* rows, then columns */
};

bool conv_depthwise_takes(const struct conv_spec *spec)
{
    const struct conv_shape *s = &spec->shape;
    return s->groups > 1 && s->groups == s->c && s->c == s->k && s->kh * s->kw <= DEPTHWISE_TAPS;
}

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

/* The taps of row `line` of a run of rows and a run of columns, of image `image`. */
static void list_taps(const struct depthwise *g, const struct kernel_call *call, int64_t image,
                      const struct conv_run *ys, int64_t line, const struct conv_run *xs,
                      struct depthwise_gather *gather)
{
    const float *source = call->in[0].data, *w = call->in[1].data;
    gather->taps = 0;
    for (uint64_t ty = ys->taps; ty; ty &= ty - 1)
        for (uint64_t tx = xs->taps; tx; tx &= tx - 1) {
            int64_t y = conv_source(&g->axis_y, ys->start, __builtin_ctzll(ty)) + line * ys->source_step;
            int64_t x = conv_source(&g->axis_x, xs->start, __builtin_ctzll(tx));
            int64_t tap = __builtin_ctzll(ty) * g->s.kw + __builtin_ctzll(tx);
            gather->source[gather->taps] =
                source + ((image * g->axis_y.source + y) * g->axis_x.source + x) * g->source_ld;
            gather->weights[gather->taps++] = w + tap * g->s.c;
        }
}

/* One row of pixels: without an epilogue in place, with one through a buffer in pieces. */
static void gather_row(const struct depthwise *g, const struct kernel_call *call, struct depthwise_gather *gather,
                       int64_t row, const struct conv_run *xs)
{
    float *out = (float *)call->out[0].data;
    if (!g->epilogue.present) {
        gather->result = out + row * g->result_ld;
        gather->result_step = xs->step * g->result_ld;
        gather->pixels = xs->count;
        gather->channels = (int)g->s.c;
        g->functions->gather(gather);
        return;
    }
    float buffer[BLOCK * BLOCK_PIXELS];
    struct depthwise_gather part = *gather;
    for (int64_t c = 0; c < g->s.c; c += BLOCK)
        for (int64_t x = 0; x < xs->count; x += BLOCK_PIXELS) {
            part.channels = (int)least(g->s.c - c, BLOCK);
            part.pixels = least(xs->count - x, BLOCK_PIXELS);
            part.result = buffer;
            part.result_step = part.channels;
            for (int t = 0; t < part.taps; t++) {
                part.source[t] = gather->source[t] + x * gather->source_step + c;
                part.weights[t] = gather->weights[t] + c;
            }
            g->functions->gather(&part);
            epilogue_run(&g->epilogue, buffer, part.channels, row + x * xs->step, c, part.pixels, part.channels,
                         xs->step, call->in + 2, call->out, g->result_ld);
        }
}

static graphi_status gather_run(const struct kernel_call *call, int phase, int share)
{
    (void)phase;
    const struct depthwise *g = call->params;
    int64_t rows = g->axis_y.result, images = least(call->in[0].rows, g->s.n), begin, end;
    split_range(images * rows, clamp_shares(g->s.n * rows), share, &begin, &end);
    struct depthwise_gather gather = {.round = g->round};
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / rows, y = i % rows;
        for (const struct conv_run *ys = g->run; ys < g->run + g->y_runs; ys++) {
            int64_t line = (y - ys->start) / ys->step;
            if (y < ys->start || (y - ys->start) % ys->step || line >= ys->count)
                continue;
            for (const struct conv_run *xs = g->run + g->y_runs; xs < g->run + g->y_runs + g->x_runs; xs++) {
                list_taps(g, call, image, ys, line, xs, &gather);
                gather.source_step = xs->source_step * g->source_ld;
                gather_row(g, call, &gather, (image * rows + y) * g->axis_x.result + xs->start, xs);
            }
        }
    }
    return GRAPHI_OK;
}

/* --- backward-weights --------------------------------------------------------------------------------------------- */

static void sum_row(const struct depthwise *g, const struct kernel_call *call, int64_t image, int64_t oy, float *sums)
{
    const struct conv_shape *s = &g->s;
    const float *x = call->in[0].data, *dy = call->in[1].data;
    for (int64_t tap = 0; tap < s->kh * s->kw; tap++) {
        int64_t y = conv_source(&g->axis_y, oy, tap / s->kw), tx = tap % s->kw, first = 0, last = s->ow;
        if (y < 0 || y >= s->h)
            continue;
        while (first < last && conv_source(&g->axis_x, first, tx) < 0)
            first++;
        while (last > first && conv_source(&g->axis_x, last - 1, tx) >= s->w)
            last--;
        struct depthwise_sum sum = {
            .channels = (int)s->c, .pixels = last - first, .x_step = s->stride_w * s->ldx, .dy_step = s->ldy,
            .x = x + ((image * s->h + y) * s->w + conv_source(&g->axis_x, first, tx)) * s->ldx,
            .dy = dy + ((image * s->oh + oy) * s->ow + first) * s->ldy, .sum = sums + tap * s->c, .round = g->round};
        if (sum.pixels > 0)
            g->functions->sum(&sum);
    }
}

static graphi_status weights_run(const struct kernel_call *call, int phase, int share)
{
    const struct depthwise *g = call->params;
    int64_t count = g->s.kh * g->s.kw * g->s.c, begin, end;
    float *dw = call->out[0].data, *parts = g->parts > 1 ? call->workspace : dw;
    if (phase == 0) {
        split_range(least(call->in[0].rows, g->s.n) * g->s.oh, g->parts, share, &begin, &end);
        memset(parts + share * count, 0, (size_t)count * sizeof *parts);
        for (int64_t i = begin; i < end; i++)
            sum_row(g, call, i / g->s.oh, i % g->s.oh, parts + share * count);
        return GRAPHI_OK;
    }
    memcpy(dw, parts, (size_t)count * sizeof *dw);
    for (int64_t part = 1; part < g->parts; part++)
        for (int64_t i = 0; i < count; i++)
            dw[i] += parts[part * count + i];
    return GRAPHI_OK;
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

static void describe(struct depthwise *g, enum conv_direction direction, size_t bytes, struct kernel *kernel)
{
    const struct conv_shape *s = &g->s;
    double count = (double)(s->kh * s->kw * s->c), result = (double)(s->n * s->oh * s->ow);
    *kernel = (struct kernel){.name = "conv_depthwise", .params = g, .params_bytes = bytes, .phases = 1,
                              .flops = 2 * count * result};
    kernel->bytes = 4 * ((double)(s->n * s->h * s->w * s->c) + result * (double)s->c + count);
    if (direction != CONV_BACKWARD_WEIGHTS) {
        int64_t rows = s->n * g->axis_y.result;
        kernel->name = g->backward ? "conv_depthwise_data" : "conv_depthwise";
        kernel->run = gather_run;
        kernel->shares[0] = clamp_shares(rows);
        return;
    }
    int64_t rows = s->n * s->oh;
    g->parts = rows < 2 ? 1 : (int)least(rows / 2, PARTS_MAX);
    kernel->name = "conv_depthwise_weights";
    kernel->run = weights_run;
    kernel->shares[0] = g->parts;
    if (g->parts > 1) {
        kernel->phases = 2;
        kernel->shares[1] = 1;
        kernel->workspace = (size_t)g->parts * (size_t)(s->kh * s->kw * s->c) * sizeof(float);
    }
}

graphi_status conv_depthwise_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    bool backward = spec->direction == CONV_BACKWARD_DATA;
    struct conv_axis y = conv_axis_y(&spec->shape, backward), x = conv_axis_x(&spec->shape, backward);
    int64_t y_runs = conv_runs(&y, NULL), x_runs = conv_runs(&x, NULL);
    size_t bytes = sizeof(struct depthwise) + (size_t)(y_runs + x_runs) * sizeof(struct conv_run);
    if (spec->direction == CONV_BACKWARD_WEIGHTS && spec->epilogue.program)
        return fail(GRAPHI_UNSUPPORTED, "conv", "found an epilogue on a weight gradient, expected none");
    struct depthwise *g = mem_zalloc(bytes);
    if (!g)
        return fail_memory("conv", bytes);
    graphi_status status = epilogue_prepare(&spec->epilogue, isa, &g->epilogue);
    if (status != GRAPHI_OK) {
        mem_free(g);
        return status;
    }
    g->s = spec->shape;
    g->axis_y = y;
    g->axis_x = x;
    g->backward = backward;
    g->round = spec->multiplicands == GRAPHI_BF16;
    g->functions = depthwise_functions(isa);
    g->source_ld = backward ? spec->shape.ldy : spec->shape.ldx;
    g->result_ld = backward ? spec->shape.ldx : spec->shape.ldy;
    g->y_runs = conv_runs(&y, g->run);
    g->x_runs = conv_runs(&x, g->run + y_runs);
    describe(g, spec->direction, bytes, kernel);
    return GRAPHI_OK;
}
