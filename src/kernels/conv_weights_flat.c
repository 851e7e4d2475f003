/* SPDX-License-Identifier: Apache-2.0 */
/* Backward-weights of a 1 x 1 window that meets every pixel: dw = x^T dy, one matrix product (gemm.c) over all pixels
 * of all images, for each group.
 *
 * Where its tiles are too few to share out, the pixels are cut into parts, each with a product of its own in the
 * workspace; the last phase adds them in order. Usual size: 32 x 8 x 8 pixels, 512 to 128 channels: 16 shares. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_shape.h"
#include "kernels/gemm.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

struct flat {
    struct conv_shape s;
    const struct reduce_loops *loops;
    kernel_function product; /* of a part and group */
    size_t params_at;        /* its parameters, behind these: the block may be moved */
    size_t products_at;      /* in the workspace, behind the parts: */
    size_t apart;            /* theirs, so many bytes from one to the next; 0: it is cut by threads, and serves all */
    int64_t parts, count;    /* elements of dw */
    int product_shares, shares, reduce_shares;
};

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    return spec->direction == CONV_BACKWARD_WEIGHTS && spec->algorithm == CONV_DIRECT &&
           spec->multiplicands == GRAPHI_F32 && conv_flat(&spec->shape);
}

static int64_t products_of(const struct flat *g)
{
    return g->parts * g->s.groups;
}

/* The runs that the shares of each product are divided into; 0: each share is on its own. */
static int product_width(const struct flat *g, int width)
{
    const int64_t products = products_of(g);
    return (int)(width % products == 0 ? width / products : products % width == 0);
}

/* A share of the product of one part and group. */
static graphi_status multiply(const struct flat *g, const struct kernel_call *call, int64_t index, int share)
{
    const struct conv_shape *s = &g->s;
    const int64_t part = index / s->groups, group = index % s->groups;
    int64_t begin, end;
    split_range(least(call->in[0].rows, s->n) * s->oh * s->ow, (int)g->parts, (int)part, &begin, &end);
    float *dw = g->parts > 1 ? (float *)call->workspace + part * g->count : call->out[0].data;
    const struct kernel_array in[] = {
        {(float *)call->in[0].data + begin * s->ldx + group * (s->c / s->groups), end - begin},
        {(float *)call->in[1].data + begin * s->ldy + group * (s->k / s->groups), end - begin}};
    const struct kernel_array out = {dw + group * (s->k / s->groups), s->c / s->groups};
    struct kernel_call product = *call;
    product.params = (const char *)g + g->params_at;
    product.in = in;
    product.out = &out;
    product.workspace = (char *)call->workspace + g->products_at + (size_t)index * g->apart;
    product.width = call->width > 0 ? product_width(g, call->width) : 0;
    return g->product(&product, 0, share);
}

static graphi_status flat_run(const struct kernel_call *call, int phase, int share)
{
    const struct flat *g = call->params;
    int64_t begin, end;
    if (phase == 1) {
        split_range(g->count, g->reduce_shares, share, &begin, &end);
        reduce_parts(g->loops, call->workspace, g->count, g->parts, begin, end, call->out[0].data);
        return GRAPHI_OK;
    }
    split_range(products_of(g) * g->product_shares, g->shares, share, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        TRY(multiply(g, call, i / g->product_shares, (int)(i % g->product_shares)));
    return GRAPHI_OK;
}

static graphi_status bind_product(const struct conv_spec *spec, int64_t parts, int cores, enum isa isa,
                                  struct kernel *product)
{
    const struct conv_shape *s = &spec->shape;
    const int64_t pixels = divide_up(s->n * s->oh * s->ow, parts);
    const struct gemm_spec gemm = {.m = s->c / s->groups, .n = s->k / s->groups, .pairs = 1, .k = &pixels,
                                   .lda = &s->ldx, .ldb = &s->ldy, .ldc = s->k, .trans_a = true, .bounded = true,
                                   .threads = spec->threads, .cores = cores, .multiplicands = GRAPHI_F32};
    return gemm_bind(&gemm, isa, product);
}

/* Shares of a part's product on a machine of which nothing is known: no bit may depend on it. */
static graphi_status shares_of_part(const struct conv_spec *spec, int64_t parts, enum isa isa, int *shares)
{
    struct kernel product;
    TRY(bind_product(spec, parts, 0, isa, &product));
    *shares = product.shares[0];
    kernel_fini(&product);
    return GRAPHI_OK;
}

/* The product of one of as many parts as there are shares to gain by: a shorter one has fewer. */
static graphi_status bind_parts(const struct conv_spec *spec, enum isa isa, int64_t *parts, struct kernel *product)
{
    const struct conv_shape *s = &spec->shape;
    int alone, each;
    TRY(shares_of_part(spec, 1, isa, &alone));
    *parts = conv_weight_parts(s, alone * s->groups, s->c / s->groups * s->k);
    if (*parts > 1) {
        TRY(shares_of_part(spec, *parts, isa, &each));
        *parts = *parts * each > alone ? *parts : 1;
    }
    return bind_product(spec, *parts, spec->cores, isa, product);
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    const struct conv_shape *s = &spec->shape;
    const int64_t count = s->c / s->groups * s->k, pixels = s->n * s->oh * s->ow;
    struct kernel product;
    int64_t parts = 1;
    TRY(bind_parts(spec, isa, &parts, &product));
    const size_t own = (size_t)whole_lines(sizeof(struct flat));
    struct flat *g = mem_zalloc(own + product.params_bytes);
    if (!g) {
        kernel_fini(&product);
        return fail_memory("conv", own + product.params_bytes);
    }
    g->s = *s;
    g->loops = reduce_loops_of(isa);
    g->product = product.run;
    g->params_at = own;
    memcpy((char *)g + own, product.params, product.params_bytes);
    g->parts = parts;
    g->count = count;
    g->product_shares = product.shares[0];
    g->products_at = parts > 1 ? (size_t)whole_lines(4 * parts * count) : 0;
    const bool by_threads = share_slots(g->product_shares, spec->threads) < g->product_shares;
    g->apart = by_threads ? 0 : (size_t)whole_lines((int64_t)product.workspace);
    g->shares = clamp_shares_for(products_of(g) * g->product_shares, spec->cores);
    g->reduce_shares = parts > 1 ? clamp_shares_for(divide_up(count, CONV_REDUCE_STEP), spec->cores) : 0;
    *kernel = (struct kernel){.name = "conv_weights", .run = flat_run, .params = g,
                              .params_bytes = own + product.params_bytes, .phases = parts > 1 ? 2 : 1,
                              .shares = {g->shares, g->reduce_shares},
                              .workspace = g->products_at + product.workspace +
                                           (size_t)(products_of(g) - 1) * g->apart,
                              .flops = 2 * (double)count * (double)pixels, .bytes = conv_traffic(s)};
    kernel_fini(&product);
    return GRAPHI_OK;
}

const struct conv_kernel conv_weights_flat = {.takes = takes, .bind = bind_kernel};
