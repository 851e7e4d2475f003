/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of the pooling kernels: shapes and shares. The arithmetic is isa/pool_run.c, one phase, any thread. Shares
 * own disjoint parts of the output, so no result depends on their order. Usual size: 28x28x192 images, 3x3 windows. */
#include "kernels/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/shares.h"

struct pool_params {
    struct pool_spec spec;
    struct share_grid grid;
    int64_t units; /* rows of the grid an image */
    pool_function run;
};

static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after, bool ceil_mode)
{
    int64_t room = size + before + after - kernel;
    if (size < 1 || room < 0)
        return 0;
    int64_t count = (ceil_mode ? room + stride - 1 : room) / stride + 1;
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
    s->oh = windows(s->h, s->kh, s->stride_h, s->pad_top, s->pad_bottom, s->ceil_mode);
    s->ow = windows(s->w, s->kw, s->stride_w, s->pad_left, s->pad_right, s->ceil_mode);
    if (s->oh < 1 || s->ow < 1)
        return fail(GRAPHI_INVALID, where,
                    "found an image of %lldx%lld, expected at least the kernel %lldx%lld less the pads",
                    (long long)s->h, (long long)s->w, (long long)s->kh, (long long)s->kw);
    int64_t *const strides[] = {&s->ldx, &s->ldy, &s->lddy, &s->lddx};
    for (int i = 0; i < 4; i++)
        if (!*strides[i])
            *strides[i] = s->c;
    return GRAPHI_OK;
}

bool pool_exact_tiles(const struct pool_shape *s)
{
    return s->kh == s->stride_h && s->kw == s->stride_w && !s->pad_top && !s->pad_left && s->oh * s->kh == s->h &&
           s->ow * s->kw == s->w;
}

#define DECLARE(isa)                                                                                                   \
    void pool_max_##isa(const struct pool_block *);                                                                    \
    void pool_average_##isa(const struct pool_block *);                                                                \
    void pool_max_gradient_##isa(const struct pool_block *);                                                           \
    void pool_average_gradient_##isa(const struct pool_block *);
#define ROW(isa) {{pool_max_##isa, pool_max_gradient_##isa}, {pool_average_##isa, pool_average_gradient_##isa}},
DECLARE(plain)
#if defined(__x86_64__)
DECLARE(avx2)
DECLARE(avx512)
DECLARE(bf16)
#endif

static const pool_function functions[][2][2] = {ROW(plain)
#if defined(__x86_64__)
                                                    ROW(avx2) ROW(avx512) ROW(bf16)
#endif
};

static graphi_status pool_run(const struct kernel_call *call, int phase, int share)
{
    const struct pool_params *p = call->params;
    const struct kernel_array *in = call->in;
    struct pool_block block = {.spec = &p->spec, .out = call->out[0].data};
    if (p->spec.direction == POOL_FORWARD) {
        block.x = in[0].data;
    } else if (p->spec.kind == POOL_MAX) {
        block.x = in[0].data;
        block.y = in[1].data;
        block.dy = in[2].data;
    } else {
        block.dy = in[0].data;
    }
    split_range(in[0].rows * p->units, p->grid.rows, share / p->grid.blocks, &block.begin, &block.end);
    share_channels(p->spec.shape.c, p->grid.blocks, share % p->grid.blocks, &block.c0, &block.c1);
    p->run(&block);
    return GRAPHI_OK;
}

graphi_status pool_bind(const struct pool_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct pool_params *p = mem_zalloc(sizeof *p);
    if (!p)
        return fail_memory("pool", sizeof *p);
    p->spec = *spec;
    graphi_status status = pool_shape_finish(&p->spec.shape, "pool");
    if (status != GRAPHI_OK) {
        mem_free(p);
        return status;
    }
    const struct pool_shape *s = &p->spec.shape;
    bool gradient = spec->direction == POOL_GRADIENT;
    double x = 4.0 * (double)s->n * (double)s->h * (double)s->w * (double)s->c;
    double y = 4.0 * (double)s->n * (double)s->oh * (double)s->ow * (double)s->c;
    double bytes = gradient && spec->kind == POOL_MAX ? 2 * x + 2 * y : x + y;
    p->units = s->oh;
    if (gradient)
        p->units = spec->kind == POOL_MAX && pool_exact_tiles(s) ? s->oh : s->h;
    p->grid = share_grid_for(bytes, s->n * p->units, s->c);
    p->run = functions[isa][spec->kind][spec->direction];
    static const char *const names[2][2] = {{"max_pool", "max_pool_grad"}, {"avg_pool", "avg_pool_grad"}};
    *kernel = (struct kernel){.name = names[spec->kind][spec->direction],
                              .run = pool_run,
                              .params = p,
                              .params_bytes = sizeof *p,
                              .phases = 1,
                              .shares = {p->grid.rows * p->grid.blocks},
                              .bytes = bytes,
                              .flops = y / 4 * (double)(s->kh * s->kw)};
    return GRAPHI_OK;
}
