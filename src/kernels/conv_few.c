/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions to few channels, forward and backward-data, as the last of a network that makes images has them. A tile
 * of the direct kernel would have as many columns as there are channels, of which a vector holds 8 or 16.
 *
 * So each source pixel is multiplied once by the weights of all taps, a product of taps x channels columns (25 for a
 * 5 x 5 window and one channel), and each result pixel sums those that are its own. Most must be somebody's: a stride
 * forward leaves pixels out, and so does a window of nearly all of an image.
 *
 * Lines of products lie in a ring that stays in the level-2 cache: a share makes the lines that its next result lines
 * want, and sums these. A share has whole images; of few images parts of their result lines. Neighbours both make the
 * lines that both want, unless one thread has them, which does them together. Sums go over channels and then over
 * taps, whatever the shares. First phase: weights of all taps side by side. Usual size: 64 x 14 x 14 pixels, 138
 * channels to 28 x 28 x 1, 5 x 5 at stride 2. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels "few channels"`. */
enum {
    CHANNELS_MOST = 4,      /* of the result */
    CHANNELS_FEWEST = 16,   /* of the source, for each of the result: sums over taps are work, too */
    COLUMNS_MOST = 512,     /* taps x channels */
    PIXELS_WANTED = 64,     /* of a product */
    PIXELS_MOST = 128,      /* those of the next panel are then still in the level-2 cache */
    RING_BYTES = 512 << 10, /* half of that cache, */
    RING_MOST = 2 << 20,    /* or more where the lines under one window take it */
    CALL_STEPS = 768,       /* of a call of the micro-kernel */
};

struct few {
    struct conv_shape s;
    struct conv_axis axis_y, axis_x;
    struct epilogue epilogue;
    micro_function micro;
    bool backward;
    int64_t source_c, result_c, source_ld, result_ld;
    int64_t columns;      /* of a product */
    int64_t lines, ring;  /* of the result made together; of the source whose products are kept */
    int64_t sums_at;      /* floats from the start of a ring: where an epilogue finds a line */
    int64_t parts;        /* of an image */
    size_t slots_at, slot_bytes;
    int shares, slots;    /* so wide together for there to be no padding */
    int64_t y_runs, x_runs;
    struct conv_run run[]; /* rows, then columns; then these' terms */
};

/* --- shapes --- */

/* Pairs of a result coordinate and a tap that reads inside the source. */
static int64_t pairs_of(const struct conv_axis *axis)
{
    const int64_t strided = axis->backward ? axis->source : axis->result,
                  other = axis->backward ? axis->result : axis->source;
    int64_t pairs = 0;
    for (int64_t tap = 0; tap < axis->taps; tap++) { /* 0 <= i * stride + offset < other, for i of the strided side */
        const int64_t offset = tap * axis->dilation - axis->pad;
        const int64_t begin = offset < 0 ? divide_up(-offset, axis->stride) : 0;
        const int64_t end = offset < other ? divide_up(other - offset, axis->stride) : 0;
        pairs += most(least(end, strided) - begin, 0);
    }
    return pairs;
}

/* Result lines that stand for one of the source. */
static int64_t lines_each(const struct conv_axis *axis) { return axis->backward ? axis->stride : 1; }

/* Source lines that `lines` neighbouring result lines want, at most. */
static int64_t lines_wanted(const struct conv_axis *axis, int64_t lines)
{
    const int64_t reach = (axis->taps - 1) * axis->dilation;
    return least((lines - 1 + reach) / lines_each(axis) + 1, axis->source);
}

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    const struct conv_shape *s = &spec->shape;
    const bool backward = spec->direction == CONV_BACKWARD_DATA;
    const int64_t source = backward ? s->k : s->c, result = backward ? s->c : s->k, columns = s->kh * s->kw * result;
    if (isa == ISA_PLAIN || spec->algorithm > CONV_DIRECT || spec->direction == CONV_BACKWARD_WEIGHTS ||
        spec->multiplicands != GRAPHI_F32 || s->groups > 1 || result > CHANNELS_MOST ||
        source < CHANNELS_FEWEST * result || s->kh * s->kw == 1 || columns > COLUMNS_MOST ||
        (!backward && (s->stride_h > 1 || s->stride_w > 1)))
        return false;
    const struct conv_axis y = conv_axis_y(s, backward), x = conv_axis_x(s, backward);
    return 4.0 * (double)(columns * x.source) * (double)lines_wanted(&y, 1) <= RING_MOST &&
           2.0 * (double)pairs_of(&y) * (double)pairs_of(&x) >=
               (double)y.source * (double)x.source * (double)(s->kh * s->kw);
}

/* --- lines of products --- */

/* The source lines under the window of a result line, [*begin, *end), wider where a stride leaves some out. */
static void source_lines(const struct conv_axis *axis, int64_t result, int64_t *begin, int64_t *end)
{
    const int64_t reach = (axis->taps - 1) * axis->dilation;
    if (axis->backward) {
        *begin = divide_up(most(result + axis->pad - reach, 0), axis->stride);
        *end = (result + axis->pad) / axis->stride + 1;
    } else {
        *begin = most(result - axis->pad, 0);
        *end = most(result - axis->pad + reach + 1, 0);
    }
    *begin = least(*begin, axis->source);
    *end = least(*end, axis->source);
}

static float *line_at(const struct few *g, float *ring, int64_t line)
{
    return ring + line % g->ring * g->axis_x.source * g->columns;
}

/* Neighbouring pixels by the weights of all taps. */
static void multiply(const struct few *g, const struct kernel_call *call, const float *source, int64_t pixels,
                     float *products)
{
    const char *weights = call->workspace;
    const int64_t width = panel_width(g->columns);
    for (int64_t first = 0; first < g->columns; first += width) {
        const int64_t cols = least(g->columns - first, width);
        struct micro_list list;
        list.call = (struct micro_call){.m = (int)pixels,
                                        .n = (int)cols,
                                        .row_stride = g->source_ld,
                                        .step_stride = 1,
                                        .ldb = cols,
                                        .c = products + first,
                                        .ldc = g->columns};
        micro_start(&list, g->micro, micro_limit(g->source_c, CALL_STEPS));
        micro_add(&list, (const char *)source, weights + 4 * g->source_c * first, g->source_c);
        micro_finish(&list);
    }
}

/* Lines [begin, end) of an image, no more than there is room for. */
static void make_lines(const struct few *g, const struct kernel_call *call, int64_t image, int64_t begin, int64_t end,
                       float *ring)
{
    const int64_t w = g->axis_x.source;
    while (begin < end) {
        const int64_t together = least(end - begin, g->ring - begin % g->ring), pixels = together * w;
        const float *source =
            (const float *)call->in[0].data + (image * g->axis_y.source + begin) * w * g->source_ld;
        float *products = line_at(g, ring, begin);
        const int calls = (int)divide_up(pixels, PIXELS_MOST);
        for (int i = 0; i < calls; i++) {
            int64_t from, to;
            split_range(pixels, calls, i, &from, &to);
            multiply(g, call, source + from * g->source_ld, to - from, products + from * g->columns);
        }
        begin += together;
    }
}

/* --- sums --- */

/* Where pixels find what they sum: floats from the start of the ring for the first pixel of a run of columns, of which
 * each tap has a part that is its row's and one that is its column's (in params, run after run). */
struct terms {
    int rows, count;
    int64_t row[CONV_MAX_TAPS], at[COLUMNS_MOST];
};

static const int64_t *column_terms(const struct few *g)
{
    return (const int64_t *)(g->run + g->y_runs + g->x_runs);
}

static void find_rows(const struct few *g, int64_t y, struct terms *terms)
{
    const struct conv_run *r = g->run;
    while ((y - r->start) % r->step || y < r->start || (y - r->start) / r->step >= r->count)
        r++;
    terms->rows = 0;
    for (uint64_t ys = r->taps; ys; ys &= ys - 1) {
        const int64_t ty = __builtin_ctzll(ys), line = conv_source(&g->axis_y, y, ty) % g->ring;
        terms->row[terms->rows++] = line * g->axis_x.source * g->columns + ty * g->s.kw * g->result_c;
    }
}

static void find_terms(struct terms *terms, const int64_t *columns, int count)
{
    terms->count = 0;
    for (int i = 0; i < terms->rows; i++)
        for (int j = 0; j < count; j++)
            terms->at[terms->count++] = terms->row[i] + columns[j];
}

/* Pixels `step` floats of the ring apart, `ld` of the result. */
static void sum_pixels(const struct terms *terms, const float *products, int64_t step, int64_t pixels,
                       int64_t channels, float *result, int64_t ld)
{
    for (int64_t i = 0; i < pixels; i++, products += step, result += ld)
        for (int64_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int t = 0; t < terms->count; t++)
                sum += products[terms->at[t] + c];
            result[c] = sum;
        }
}

/* A line whose pixels lie `ld` apart. */
static void sum_line(const struct few *g, int64_t y, const float *ring, float *result, int64_t ld)
{
    struct terms terms;
    const struct conv_run *x = g->run + g->y_runs;
    const int64_t *columns = column_terms(g);
    find_rows(g, y, &terms);
    for (int64_t i = 0; i < g->x_runs; i++, x++) {
        const int count = __builtin_popcountll(x->taps);
        find_terms(&terms, columns, count);
        sum_pixels(&terms, ring, x->source_step * g->columns, x->count, g->result_c, result + x->start * ld,
                   x->step * ld);
        columns += count;
    }
}

static void finish_line(const struct few *g, const struct kernel_call *call, int64_t image, int64_t y, float *ring)
{
    const int64_t row = (image * g->axis_y.result + y) * g->axis_x.result;
    if (!g->epilogue.present) {
        sum_line(g, y, ring, (float *)call->out[0].data + row * g->result_ld, g->result_ld);
        return;
    }
    float *sums = ring + g->sums_at;
    sum_line(g, y, ring, sums, g->result_c);
    const struct epilogue_tile tile = {.data = sums, .ld = g->result_c, .row = row, .rows = g->axis_x.result,
                                       .cols = g->result_c, .row_step = 1, .result_ld = g->result_ld};
    epilogue_run(&g->epilogue, &tile, call->in + 2, call->out);
}

/* Result lines [from, to) of an image. */
static void make_part(const struct few *g, const struct kernel_call *call, int64_t image, int64_t from, int64_t to,
                      float *ring)
{
    int64_t made = 0;
    for (int64_t y = from, next; y < to; y = next) {
        int64_t begin, end, none;
        next = least(y + g->lines, to);
        source_lines(&g->axis_y, y, &begin, &none);
        source_lines(&g->axis_y, next - 1, &none, &end);
        made = most(made, begin);
        make_lines(g, call, image, made, end, ring);
        made = most(made, end);
        for (int64_t line = y; line < next; line++)
            finish_line(g, call, image, line, ring);
    }
}

static void pack_panel(const struct few *g, const struct kernel_call *call, int64_t panel)
{
    const float *w = call->in[1].data;
    const int64_t first = panel * panel_width(g->columns), cols = least(g->columns - first, panel_width(g->columns)),
                  results = g->result_c, tap = g->source_c * results;
    float *target = (float *)call->workspace + first * g->source_c;
    if (g->backward) {
        pack_block(w + first * g->source_c, g->source_c, true, g->source_c, (int)cols, NULL, target);
        return;
    }
    for (int64_t source = 0; source < g->source_c; source++) {
        const float *at = w + first / results * tap + source * results;
        int64_t result = first % results;
        for (int64_t col = 0; col < cols; col++) {
            *target++ = at[result];
            if (++result == results) {
                result = 0;
                at += tap;
            }
        }
    }
}

static graphi_status few_run(const struct kernel_call *call, int phase, int share)
{
    const struct few *g = call->params;
    if (phase == 0) {
        pack_panel(g, call, share);
        return GRAPHI_OK;
    }
    const int slot = share_slot(g->slots, g->shares, call->thread, share);
    float *ring = (float *)((char *)call->workspace + g->slots_at + (size_t)slot * g->slot_bytes);
    int64_t part, end;
    if (!share_together(least(call->in[0].rows, g->s.n) * g->parts, g->shares, call->width, share, &part, &end))
        return GRAPHI_OK;
    while (part < end) {
        const struct image_lines l = image_lines_next(g->axis_y.result, g->parts, &part, end);
        make_part(g, call, l.image, l.from, l.to, ring);
    }
    return GRAPHI_OK;
}

/* --- binding --- */

static void fill_columns(struct few *g)
{
    int64_t *at = (int64_t *)(g->run + g->y_runs + g->x_runs);
    for (const struct conv_run *x = g->run + g->y_runs; x < g->run + g->y_runs + g->x_runs; x++)
        for (uint64_t xs = x->taps; xs; xs &= xs - 1) {
            const int64_t tx = __builtin_ctzll(xs);
            *at++ = conv_source(&g->axis_x, x->start, tx) * g->columns + tx * g->result_c;
        }
}

/* Result lines that want `times` as many source lines as both sides of a cut make. */
static int64_t lines_twice(const struct few *g, int64_t times)
{
    return most(times * (lines_wanted(&g->axis_y, 1) - 1) * lines_each(&g->axis_y), 1);
}

/* As many lines together as make a product large enough, if the cache holds what they want. */
static void cut(struct few *g, enum isa isa, int threads)
{
    const int64_t w = g->axis_x.source, line_bytes = 4 * w * g->columns;
    g->lines = least(divide_up(PIXELS_WANTED, w) * lines_each(&g->axis_y), g->axis_y.result);
    while (g->lines > 1 && lines_wanted(&g->axis_y, g->lines) * line_bytes > level_2_part(RING_BYTES, isa))
        g->lines = (g->lines + 1) / 2;
    g->ring = lines_wanted(&g->axis_y, g->lines);
    g->parts = image_parts(g->s.n, g->axis_y.result, lines_twice(g, PART_OVERLAP));
    g->shares = clamp_shares(g->s.n * g->parts);
    g->slots = share_slots(g->shares, threads);
    g->slots_at = whole_lines(4 * g->source_c * g->columns);
    g->sums_at = round_up(g->ring * w * g->columns, 16);
    g->slot_bytes = whole_lines(4 * (g->sums_at + g->axis_x.result * g->result_c));
}

static void describe(const struct few *g, struct kernel *kernel, size_t bytes)
{
    const struct conv_shape *s = &g->s;
    const double weights = (double)(g->columns * g->source_c);
    *kernel = (struct kernel){.name = g->backward ? "conv_few_data" : "conv_few", .run = few_run,
                              .params_bytes = bytes, .workspace = g->slots_at + (size_t)g->slots * g->slot_bytes,
                              .pieces = clamp_shares(s->n * most(g->axis_y.result / lines_twice(g, PIECE_OVERLAP), 1)),
                              .phases = 2, .shares = {(int)panel_count(g->columns), g->shares}};
    kernel->flops = 2 * weights * (double)(s->n * g->axis_y.source * g->axis_x.source);
    kernel->bytes = conv_traffic(s);
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    const bool backward = spec->direction == CONV_BACKWARD_DATA;
    const struct conv_shape *s = &spec->shape;
    const struct conv_axis y = conv_axis_y(s, backward), x = conv_axis_x(s, backward);
    const int64_t y_runs = conv_runs(&y, NULL), x_runs = conv_runs(&x, NULL);
    const size_t bytes = sizeof(struct few) + (size_t)(y_runs + x_runs) * sizeof(struct conv_run) +
                         (size_t)least(x_runs * s->kw, pairs_of(&x)) * sizeof(int64_t);
    struct few *g = mem_zalloc(bytes);
    if (!g)
        return fail_memory("conv", bytes);
    graphi_status status = epilogue_prepare(&spec->epilogue, isa, &g->epilogue);
    if (status != GRAPHI_OK) {
        mem_free(g);
        return status;
    }
    g->s = *s;
    g->axis_y = y;
    g->axis_x = x;
    g->micro = micro_kernel(isa, false);
    g->backward = backward;
    g->source_c = backward ? s->k : s->c;
    g->result_c = backward ? s->c : s->k;
    g->source_ld = backward ? s->ldy : s->ldx;
    g->result_ld = backward ? s->ldx : s->ldy;
    g->columns = s->kh * s->kw * g->result_c;
    g->y_runs = conv_runs(&y, g->run);
    g->x_runs = conv_runs(&x, g->run + y_runs);
    fill_columns(g);
    cut(g, isa, spec->threads);
    describe(g, kernel, bytes);
    kernel->params = g;
    return GRAPHI_OK;
}

const struct conv_kernel conv_few = {.takes = takes, .bind = bind_kernel};
