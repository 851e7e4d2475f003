/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions (one channel a group), all directions: products of pixels and taps channel by channel, which
 * no matrix product helps. Vectors run along the channels.
 *
 * All go over regions of result pixels that use the same taps (conv.c), cut into strips. Forward and backward-data
 * gather: each pixel sums its taps; an epilogue runs on one line of a strip while it is in the nearest cache.
 * Backward-weights sums for each tap over all pixels; a fixed number of parts of the images have sums of their own,
 * which the second phase adds in order. Weights are read as they are, bfloat16 multiplicands are rounded on the way.
 * Lines come in the order of memory, and the next ones are asked for: bound by its bandwidth. Usual size:
 * 32 x 14 x 14 x 512. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_shape.h"
#include "kernels/depthwise.h"
#include "kernels/epilogue.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels depthwise`. */
enum {
    LINE = 16,               /* elements of a cache line */
    PIECES = 4,              /* traffic of a share, in SHARE_BYTES: neighbours read some lines of the source again */
    FEW_SHARES = 16,         /* that small images are cut into nevertheless, for many cores */
    SUMS_MAX = 16,           /* parts of the images with sums of their own */
    LINES_BYTES = 16 * 1024, /* of the source, times the stride: smaller lines are gone through some at a time */
    BAND_BYTES = 128 * 1024, /* the same of weight gradients: a strip goes down so many lines that stay in the level-2
                                cache, and reads each line once for all three rows of taps */
    BLOCK = 256,             /* of many channels, and with an epilogue: channels at a time, */
    STRIP = 32,              /* by pixels: a result in the level-1 cache */
    STRIP_WIDE = 4           /* pixels of more channels than BLOCK: then that cache holds what they read */
};

struct depthwise {
    struct conv_shape s;
    struct conv_axis axis_y, axis_x;
    struct epilogue epilogue;
    const struct depthwise_functions *functions;
    const struct reduce_loops *loops; /* of weight gradients */
    bool backward, round;
    int64_t source_ld, result_ld;
    int64_t weights_ld; /* from a tap to the next: of weights the channels, of parts' sums more, since a power of two
                           would have them drive each other out of the level-1 cache */
    int parts;          /* of all rows of the result */
    int64_t y_runs, x_runs, longest; /* of the columns' runs: asks for what comes next */
    struct conv_run run[];           /* rows, then columns */
};

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    const struct conv_shape *s = &spec->shape;
    return s->groups > 1 && s->groups == s->c && s->c == s->k && s->kh * s->kw <= DEPTHWISE_TAPS;
}

/* --- pieces: pixels that use the same taps --- */

/* What is done with each piece: pixel `row` of the result is its first, channel `c` its first. */
typedef void (*piece_function)(const struct depthwise *g, const struct kernel_call *call, struct depthwise_piece *piece,
                               int64_t row, int64_t row_step, int64_t c, float *sums);

/* The next of `taps` in the order in which they lie in the source. */
static int next_tap(const struct conv_axis *axis, uint64_t *taps)
{
    int tap = axis->backward ? 63 - __builtin_clzll(*taps) : __builtin_ctzll(*taps);
    *taps &= ~(UINT64_C(1) << tap);
    return tap;
}

/* The taps of line `line` of a run of rows, from pixel x of a run of columns and channel c on. */
static void list_taps(const struct depthwise *g, const float *source, int64_t image, const struct conv_run *ys,
                      int64_t line, const struct conv_run *xs, int64_t x, int64_t c, struct depthwise_piece *piece)
{
    piece->taps = piece->reach = 0;
    for (uint64_t left_y = ys->taps; left_y;) {
        int ty = next_tap(&g->axis_y, &left_y);
        int64_t row = image * g->axis_y.source + conv_source(&g->axis_y, ys->start, ty) + line * ys->source_step;
        for (uint64_t left_x = xs->taps; left_x;) {
            int tx = next_tap(&g->axis_x, &left_x);
            int64_t column = conv_source(&g->axis_x, xs->start, tx) + x * xs->source_step;
            piece->source[piece->taps] = source + (row * g->axis_x.source + column) * g->source_ld + c;
            piece->tap[piece->taps++] = (ty * g->s.kw + tx) * g->weights_ld + c;
        }
    }
    if (piece->taps && __builtin_popcountll(xs->taps) == 3)
        for (int reach = 1; reach <= 2; reach++)
            if ((piece->source[1] - piece->source[0]) * reach == piece->source_step)
                piece->reach = reach;
}

/* Lines [*from, *to) of a run lie within rows [begin, end). */
static void find_lines(const struct conv_run *run, int64_t begin, int64_t end, int64_t *from, int64_t *to)
{
    *from = begin > run->start ? divide_up(begin - run->start, run->step) : 0;
    *to = end > run->start ? least(divide_up(end - run->start, run->step), run->count) : 0;
}

/* What the lines after [line, line + lines) of a run of rows have in memory that these have not: of the source, and of
 * the result or dy. Past the end of an array nothing is read; a stride may be far larger than the image. */
static void find_ahead(const struct depthwise *g, const struct kernel_call *call, int64_t image,
                       const struct conv_run *ys, int64_t line, int64_t lines, bool sums, struct depthwise_ahead *ahead)
{
    if (!ys->taps)
        return;
    const int64_t result = ys->start + (line + lines) * ys->step;
    const int64_t wide[] = {g->axis_x.source * g->source_ld, g->axis_x.result * g->result_ld};
    int tap = g->backward ? __builtin_ctzll(ys->taps) : 63 - __builtin_clzll(ys->taps);
    int64_t source = conv_source(&g->axis_y, ys->start, tap) + (line + lines - 1) * ys->source_step + 1;
    ahead[0].from = (const float *)call->in[0].data + (image * g->axis_y.source + source) * wide[0];
    ahead[0].to = ahead[0].from + least(lines * ys->source_step, g->axis_y.source) * wide[0];
    ahead[1].from = sums ? call->in[1].data : call->out[0].data;
    ahead[1].from += (image * g->axis_y.result + result) * wide[1];
    ahead[1].to = ahead[1].from + lines * wide[1];
}

/* Part `part` of `parts` of all that is ahead. */
static void split_ahead(const struct depthwise_ahead *all, int64_t part, int64_t parts, struct depthwise_ahead *ahead)
{
    for (int i = 0; i < 2; i++) {
        int64_t count = divide_up(all[i].to - all[i].from, parts);
        ahead[i].from = all[i].from + part * count;
        ahead[i].to = ahead[i].from + count;
    }
}

/* Lines [line, line + lines) of a run of rows and all columns of a run. */
static void cut_region(const struct depthwise *g, const struct kernel_call *call, int64_t image,
                       const struct conv_run *ys, int64_t line, int64_t lines, const struct conv_run *xs,
                       piece_function function, float *sums)
{
    const bool wide = g->s.c > BLOCK;
    const int64_t block = wide || g->epilogue.present ? BLOCK : g->s.c;
    const int64_t strip = wide ? STRIP_WIDE : g->epilogue.present ? STRIP : xs->count;
    const int64_t row = (image * g->axis_y.result + ys->start + line * ys->step) * g->axis_x.result + xs->start;
    const int64_t parts = divide_up(xs->count, strip) * divide_up(g->s.c, block);
    struct depthwise_ahead ahead[2] = {{NULL, NULL}, {NULL, NULL}};
    int64_t part = 0;
    if (xs == g->run + g->longest)
        find_ahead(g, call, image, ys, line, lines, sums != NULL, ahead);
    struct depthwise_piece piece; /* not set to zero: windows are seldom as large */
    piece.round = g->round;
    piece.lines = lines;
    piece.source_step = xs->source_step * g->source_ld;
    piece.source_line = ys->source_step * g->axis_x.source * g->source_ld;
    piece.result_step = xs->step * g->result_ld;
    piece.result_line = ys->step * g->axis_x.result * g->result_ld;
    for (int64_t x = 0; x < xs->count; x += strip)
        for (int64_t c = 0; c < g->s.c; c += block) {
            piece.pixels = least(xs->count - x, strip);
            piece.channels = (int)least(g->s.c - c, block);
            list_taps(g, call->in[0].data, image, ys, line, xs, x, c, &piece);
            split_ahead(ahead, part++, parts, piece.ahead);
            function(g, call, &piece, row + x * xs->step, xs->step, c, sums);
        }
}

/* Rows [begin, end) of all images, in the order of memory: a few at a time with all columns. */
static void cut_rows(const struct depthwise *g, const struct kernel_call *call, int64_t begin, int64_t end,
                     piece_function function, float *sums)
{
    const struct conv_run *columns = g->run + g->y_runs;
    const int64_t rows = g->axis_y.result;
    const int64_t bytes = g->s.stride_h * g->axis_x.source * g->s.c * (int64_t)sizeof(float);
    const int64_t room = sums ? BAND_BYTES : LINES_BYTES;
    const int64_t most = g->epilogue.present || bytes > room ? 1 : room / bytes;
    int64_t from, to;
    for (int64_t image = begin / rows; image * rows < end; image++)
        for (const struct conv_run *ys = g->run; ys < columns; ys++) {
            find_lines(ys, begin - image * rows, end - image * rows, &from, &to);
            for (int64_t line = from; line < to; line += most)
                for (const struct conv_run *xs = columns; xs < columns + g->x_runs; xs++)
                    cut_region(g, call, image, ys, line, least(to - line, most), xs, function, sums);
        }
}

/* --- forward and backward-data --- */

/* Lines take the place of pixels, so that a column is gone down in steps of four. */
static void turn(struct depthwise_piece *piece)
{
    struct depthwise_piece *p = piece;
    const int64_t pixels = p->pixels, source_step = p->source_step, result_step = p->result_step;
    p->pixels = p->lines;
    p->source_step = p->source_line;
    p->result_step = p->result_line;
    p->lines = pixels;
    p->source_line = source_step;
    p->result_line = result_step;
    p->reach = 0;
}

/* In place, or one line through a buffer. */
static void gather_piece(const struct depthwise *g, const struct kernel_call *call, struct depthwise_piece *piece,
                         int64_t row, int64_t row_step, int64_t c, float *sums)
{
    (void)sums;
    float buffer[BLOCK * STRIP];
    const float *weights = call->in[1].data;
    if (g->epilogue.present) {
        piece->result_step = piece->channels;
        g->functions->gather(piece, weights, buffer);
        const struct epilogue_tile tile = {.data = buffer, .ld = piece->channels, .row = row, .col = c,
                                           .rows = piece->pixels, .cols = piece->channels, .row_step = row_step,
                                           .result_ld = g->result_ld};
        epilogue_run(&g->epilogue, &tile, call->in + 2, call->out);
        return;
    }
    float *out = (float *)call->out[0].data + row * g->result_ld + c;
    if (piece->pixels >= 4 || piece->lines < 4) {
        g->functions->gather(piece, weights, out);
    } else {
        struct depthwise_piece turned = *piece;
        turn(&turned);
        g->functions->gather(&turned, weights, out);
    }
}

static graphi_status gather_run(const struct kernel_call *call, int phase, int share)
{
    (void)phase;
    const struct depthwise *g = call->params;
    int64_t begin, end;
    split_range(least(call->in[0].rows, g->s.n) * g->axis_y.result, g->parts, share, &begin, &end);
    cut_rows(g, call, begin, end, gather_piece, NULL);
    return GRAPHI_OK;
}

/* --- backward-weights --- */

static void sum_piece(const struct depthwise *g, const struct kernel_call *call, struct depthwise_piece *piece,
                      int64_t row, int64_t row_step, int64_t c, float *sums)
{
    (void)row_step;
    g->functions->sum(piece, (const float *)call->in[1].data + row * g->result_ld + c, sums);
}

static graphi_status weights_run(const struct kernel_call *call, int phase, int share)
{
    const struct depthwise *g = call->params;
    const int64_t taps = g->s.kh * g->s.kw, count = taps * g->weights_ld;
    float *dw = call->out[0].data, *parts = g->parts > 1 ? call->workspace : dw, *sums = parts + share * count;
    if (phase == 0) {
        int64_t begin, end;
        split_range(least(call->in[0].rows, g->s.n) * g->s.oh, g->parts, share, &begin, &end);
        memset(sums, 0, (size_t)count * sizeof *sums);
        cut_rows(g, call, begin, end, sum_piece, sums);
        return GRAPHI_OK;
    }
    for (int64_t tap = 0; tap < taps; tap++, dw += g->s.c, parts += g->weights_ld)
        reduce_parts(g->loops, parts, count, g->parts, 0, g->s.c, dw);
    return GRAPHI_OK;
}

/* --- binding --- */

static void describe(struct depthwise *g, enum conv_direction direction, size_t bytes, struct kernel *kernel)
{
    const struct conv_shape *s = &g->s;
    double count = (double)(s->kh * s->kw * s->c), result = (double)(s->n * s->oh * s->ow);
    *kernel = (struct kernel){
        .name = "conv_depthwise", .params = g, .params_bytes = bytes, .phases = 1, .flops = 2 * count * result};
    kernel->bytes = conv_traffic(s);
    const int64_t rows = s->n * g->axis_y.result;
    if (direction != CONV_BACKWARD_WEIGHTS) {
        kernel->name = g->backward ? "conv_depthwise_data" : "conv_depthwise";
        kernel->run = gather_run;
        const int by_traffic = shares_for(kernel->bytes / PIECES, rows);
        const int few = (int)least(shares_for(kernel->bytes, rows), FEW_SHARES);
        kernel->shares[0] = g->parts = by_traffic > few ? by_traffic : few;
        return;
    }
    g->parts = (int)least(shares_for(kernel->bytes / PIECES, rows), SUMS_MAX);
    kernel->name = "conv_depthwise_weights";
    kernel->run = weights_run;
    kernel->shares[0] = g->parts;
    if (g->parts > 1) {
        kernel->phases = 2;
        kernel->shares[1] = 1;
        g->weights_ld += LINE;
        kernel->workspace = (size_t)g->parts * (size_t)(s->kh * s->kw * g->weights_ld) * sizeof(float);
    }
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    bool backward = spec->direction == CONV_BACKWARD_DATA;
    struct conv_axis y = conv_axis_y(&spec->shape, backward), x = conv_axis_x(&spec->shape, backward);
    int64_t y_runs = conv_runs(&y, NULL), x_runs = conv_runs(&x, NULL);
    size_t bytes = sizeof(struct depthwise) + (size_t)(y_runs + x_runs) * sizeof(struct conv_run);
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
    g->loops = reduce_loops_of(isa);
    g->source_ld = backward ? spec->shape.ldy : spec->shape.ldx;
    g->result_ld = backward ? spec->shape.ldx : spec->shape.ldy;
    g->weights_ld = spec->shape.c;
    g->y_runs = conv_runs(&y, g->run);
    g->x_runs = conv_runs(&x, g->run + y_runs);
    g->longest = g->y_runs;
    for (int64_t i = g->y_runs; i < g->y_runs + g->x_runs; i++)
        if (g->run[i].count > g->run[g->longest].count)
            g->longest = i;
    describe(g, spec->direction, bytes, kernel);
    return GRAPHI_OK;
}

const struct conv_kernel conv_depthwise = {.takes = takes, .bind = bind_kernel};
