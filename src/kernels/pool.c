/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of the pooling kernels: shapes and shares. The arithmetic is isa/pool_run.c, one phase, any thread. Shares
 * own disjoint parts of the output, so no result depends on their order. Usual size: 28x28x192 images, 3x3 windows. */
#include "kernels/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/each_isa.h"
#include "kernels/shares.h"

/* A grid of rows x channel blocks: rows are divided first, channels (in whole cache lines) when rows do not suffice. */
struct grid {
    int rows, blocks;
};

struct pool_params {
    struct pool_spec spec;
    struct grid grid;
    int64_t units; /* rows of the grid an image */
    bool far;
    pool_function run;
    struct pool_span span[]; /* of the windows down and across; gradients: above the elements down and across */
};

static struct grid grid_for(double bytes, int64_t rows, int64_t channels)
{
    struct grid grid = {shares_for(bytes, rows), 1};
    grid.blocks = (int)most(least(shares_for(bytes, SHARES_MAX) / grid.rows, divide_up(channels, 16)), 1);
    return grid;
}

static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after, bool ceil_mode)
{
    int64_t room = size + before + after - kernel + (ceil_mode ? stride - 1 : 0);
    if (size < 1 || room < 0)
        return 0;
    int64_t count = room / stride + 1;
    if ((count - 1) * stride >= size + before)
        count--;
    return count;
}

graphi_status pool_shape_finish(struct pool_shape *s, const char *where)
{
    if (s->kh < 1 || s->kw < 1 || s->stride_h < 1 || s->stride_w < 1)
        return fail(GRAPHI_INVALID, where, "found kernel %lldx%lld, strides %lldx%lld, expected at least 1 each",
                    (long long)s->kh, (long long)s->kw, (long long)s->stride_h, (long long)s->stride_w);
    const int64_t most = (int64_t)1 << 30; /* sums and products of sizes stay within 63 bits */
    if (s->kh > most || s->kw > most || s->stride_h > most || s->stride_w > most)
        return fail(GRAPHI_INVALID, where, "found kernel %lldx%lld, strides %lldx%lld, expected at most 2^30 each",
                    (long long)s->kh, (long long)s->kw, (long long)s->stride_h, (long long)s->stride_w);
    if (s->pad_top < 0 || s->pad_left < 0 || s->pad_bottom < 0 || s->pad_right < 0 || s->pad_top >= s->kh ||
        s->pad_bottom >= s->kh || s->pad_left >= s->kw || s->pad_right >= s->kw)
        return fail(GRAPHI_INVALID, where,
                    "found pads [%lld,%lld,%lld,%lld], expected 0 or more and less than the kernel %lldx%lld",
                    (long long)s->pad_top, (long long)s->pad_left, (long long)s->pad_bottom, (long long)s->pad_right,
                    (long long)s->kh, (long long)s->kw);
    if (s->h > (int64_t)1 << 44 || s->w > (int64_t)1 << 44)
        return fail(GRAPHI_INVALID, where, "found an image of %lldx%lld, expected at most 2^44 each", (long long)s->h,
                    (long long)s->w);
    s->oh = windows(s->h, s->kh, s->stride_h, s->pad_top, s->pad_bottom, s->ceil_mode);
    s->ow = windows(s->w, s->kw, s->stride_w, s->pad_left, s->pad_right, s->ceil_mode);
    if (s->oh < 1 || s->ow < 1)
        return fail(GRAPHI_INVALID, where,
                    "found an image of %lldx%lld, expected at least the kernel %lldx%lld less the pads",
                    (long long)s->h, (long long)s->w, (long long)s->kh, (long long)s->kw);
    int64_t *const strides[] = {&s->ldx, &s->ldy, &s->lddy, &s->lddx, &s->ldp};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (!*strides[i])
            *strides[i] = s->c;
    return GRAPHI_OK;
}

/* How many, `step` apart, lie alike from each on. */
static void count_alike(struct pool_span *span, int64_t count, int64_t step)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        const struct pool_span *a = &span[i], *b = a + step;
        bool alike =
            i + step < count && a->count == b->count && a->place == b->place && a->divides == b->divides && a->divides;
        span[i].alike = 1 + (alike ? b->alike : 0);
    }
}

/* Spans of `windows` windows along a side of `size` elements. */
static void span_windows(struct pool_span *span, int64_t windows, int64_t size, int64_t kernel, int64_t stride,
                         int64_t before, int64_t after, bool padded)
{
    for (int64_t i = 0; i < windows; i++) {
        const int64_t from = i * stride - before, first = from > 0 ? from : 0,
                      count = least(from + kernel, size) - first;
        span[i] = (struct pool_span){first, count, first - from,
                                     padded ? least(from + kernel, size + after) - from : count, 0};
    }
    count_alike(span, windows, 1);
}

/* And above its elements. How large the windows are matters to averages alone. */
static void span_elements(struct pool_span *span, const struct pool_span *window, bool average, int64_t windows,
                          int64_t size, int64_t kernel, int64_t stride, int64_t before)
{
    int64_t first = 0, end = 0;
    for (int64_t i = 0; i < size; i++) {
        while (end < windows && end * stride - before <= i)
            end++;
        while (first < end && first * stride - before + kernel <= i)
            first++;
        bool whole = true;
        for (int64_t o = first; o < end && whole && average;
             o = o < end - 1 ? end - 1 : end) /* those between are whole if both ends are */
            whole = window[o].divides == kernel;
        span[i] = (struct pool_span){first, end - first, i + before - first * stride, whole ? kernel : 0, 0};
    }
    count_alike(span, size, stride);
}

size_t pool_spans(const struct pool_spec *spec)
{
    const struct pool_shape *s = &spec->shape;
    return s->c ? (size_t)(s->oh + s->ow + (spec->direction == POOL_GRADIENT ? s->h + s->w : 0)) : 0;
}

void pool_fill_spans(const struct pool_spec *spec, struct pool_span *span)
{
    const struct pool_shape *s = &spec->shape;
    struct pool_span *down = span, *across = down + s->oh, *above = across + s->ow;
    if (!s->c)
        return;
    span_windows(down, s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->pad_bottom, s->count_include_pad);
    span_windows(across, s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->pad_right, s->count_include_pad);
    if (spec->direction == POOL_FORWARD)
        return;
    const bool average = spec->kind == POOL_AVERAGE;
    span_elements(above, down, average, s->oh, s->h, s->kh, s->stride_h, s->pad_top);
    span_elements(above + s->h, across, average, s->ow, s->w, s->kw, s->stride_w, s->pad_left);
}

#define DECLARE(isa)                                                                                                   \
    void pool_max_##isa(const struct pool_block *);                                                                    \
    void pool_average_##isa(const struct pool_block *);                                                                \
    void pool_max_gradient_##isa(const struct pool_block *);                                                           \
    void pool_average_gradient_##isa(const struct pool_block *);
#define ROW(isa) {{pool_max_##isa, pool_max_gradient_##isa}, {pool_average_##isa, pool_average_gradient_##isa}},
EACH_ISA(DECLARE)

static const pool_function functions[][2][2] = {EACH_ISA(ROW)};

pool_function pool_function_of(const struct pool_spec *spec, enum isa isa)
{
    return functions[isa][spec->kind][spec->direction];
}

/* A gradient that takes that much together with what it reads leaves a cache of 32 MiB before it is read again. It
 * shows in `graphi bench kernels "max pool"`. */
static const double FAR_BYTES = 40 << 20;

static graphi_status pool_run(const struct kernel_call *call, int phase, int share)
{
    const struct pool_params *p = call->params;
    const struct kernel_array *in = call->in;
    const bool gradient = p->spec.direction == POOL_GRADIENT, max = p->spec.kind == POOL_MAX;
    const struct pool_shape *shape = &p->spec.shape;
    struct pool_block block = {.spec = &p->spec,
                               .windows = {p->span, p->span + shape->oh},
                               .out = call->out[0].data,
                               .far = p->far};
    if (gradient) {
        block.above.down = block.windows.across + shape->ow;
        block.above.across = block.above.down + shape->h;
    }
    if (!gradient)
        block.x = in[0].data;
    else
        block.dy = in[max].data;
    if (max && gradient)
        block.place = in[0].data;
    else if (p->spec.places)
        block.place = call->out[1].data;
    split_range(in[0].rows * p->units, p->grid.rows, share / p->grid.blocks, &block.begin, &block.end);
    share_channels(p->spec.shape.c, p->grid.blocks, share % p->grid.blocks, &block.c0, &block.c1);
    p->run(&block);
    return GRAPHI_OK;
}

graphi_status pool_bind(const struct pool_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct pool_spec finished = *spec;
    const struct pool_shape *s = &finished.shape;
    const bool gradient = spec->direction == POOL_GRADIENT;
    TRY(pool_shape_finish(&finished.shape, "pool"));
    const size_t spans = pool_spans(&finished);
    struct pool_params *p = mem_zalloc(sizeof *p + spans * sizeof *p->span);
    if (!p)
        return fail_memory("pool", sizeof *p + spans * sizeof *p->span);
    p->spec = finished;
    pool_fill_spans(&p->spec, p->span);
    double x = 4.0 * (double)s->n * (double)s->h * (double)s->w * (double)s->c;
    double y = 4.0 * (double)s->n * (double)s->oh * (double)s->ow * (double)s->c;
    double places = (double)graphi_dtype_size(pool_places_type(s)) / 4 * y;
    double bytes = x + y + (spec->kind == POOL_MAX && (gradient || spec->places) ? places : 0);
    p->units = !s->c ? 0 : gradient ? s->h : s->oh;
    p->grid = grid_for(bytes, s->n * p->units, s->c);
    p->run = pool_function_of(spec, isa);
    p->far = stores_past(spec->streaming, bytes, FAR_BYTES);
    static const char *const names[2][2] = {{"max_pool", "max_pool_grad"}, {"avg_pool", "avg_pool_grad"}};
    *kernel = (struct kernel){.name = names[spec->kind][spec->direction],
                              .run = pool_run,
                              .params = p,
                              .params_bytes = sizeof *p + spans * sizeof *p->span,
                              .phases = 1,
                              .shares = {p->grid.rows * p->grid.blocks},
                              .bytes = bytes,
                              .flops = y / 4 * (double)(s->kh * s->kw)};
    return GRAPHI_OK;
}
