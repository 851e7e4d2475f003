/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of the normalization kernels, their shares and phases. Batch normalization is three phases: leaf sums into
 * the workspace, leaves combined per channel, rows written. The rest is one phase over rows. Usual size: 32x28x28 rows
 * of 64 to 512 channels, so 64 leaves of some hundred rows. */
#include "kernels/norm.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/shares.h"

#include <math.h>

struct norm_params {
    struct norm_spec spec;
    int leaves, parts;
    norm_function leaf, rows;
};

#define DECLARE(isa)                                                                                                   \
    void norm_batch_leaf_##isa(const struct norm_block *);                                                             \
    void norm_batch_rows_##isa(const struct norm_block *);                                                             \
    void norm_gradient_leaf_##isa(const struct norm_block *);                                                          \
    void norm_gradient_rows_##isa(const struct norm_block *);                                                          \
    void norm_inference_rows_##isa(const struct norm_block *);                                                         \
    void norm_lrn_rows_##isa(const struct norm_block *);                                                               \
    void norm_lrn_gradient_rows_##isa(const struct norm_block *);
#define ROW(isa)                                                                                                       \
    {{norm_batch_leaf_##isa, norm_batch_rows_##isa},                                                                   \
     {norm_gradient_leaf_##isa, norm_gradient_rows_##isa},                                                             \
     {NULL, norm_inference_rows_##isa},                                                                                \
     {NULL, norm_lrn_rows_##isa},                                                                                      \
     {NULL, norm_lrn_gradient_rows_##isa}},
DECLARE(plain)
#if defined(__x86_64__)
DECLARE(avx2)
DECLARE(avx512)
DECLARE(bf16)
#endif

static const norm_function functions[][NORM_KINDS][2] = {ROW(plain)
#if defined(__x86_64__)
                                                             ROW(avx2) ROW(avx512) ROW(bf16)
#endif
};

/* Rows of this call: dimension 0 may hold fewer than the bound. */
static int64_t rows_of(const struct norm_params *p, const struct kernel_call *call)
{
    return p->spec.per_row ? call->in[0].rows * p->spec.per_row : p->spec.rows;
}

/* Leaf i of the bound, less what this call does not have. */
static void leaf_range(const struct norm_params *p, int64_t rows, int leaf, int64_t *begin, int64_t *end)
{
    split_range(p->spec.rows, p->leaves, leaf, begin, end);
    *begin = *begin < rows ? *begin : rows;
    *end = *end < rows ? *end : rows;
}

/* Channels [*c0, *c1) of share i of the combining phase: 256 a share. */
enum { COMBINE = 256 };
static void combine_range(const struct norm_params *p, int share, int64_t *c0, int64_t *c1)
{
    *c0 = (int64_t)share * COMBINE;
    *c1 = *c0 + COMBINE < p->spec.c ? *c0 + COMBINE : p->spec.c;
}

/* Leaf means and squared deviations into the batch's (Chan et al. 1979); workspace rows: mean and deviations of each
 * leaf. */
static void combine_batch(const struct norm_params *p, const struct kernel_call *call, int share)
{
    int64_t rows = rows_of(p, call), c = p->spec.c, c0, c1;
    const float *leaves = call->workspace;
    float *mean = call->out[1].data, *inv_std = call->out[2].data;
    combine_range(p, share, &c0, &c1);
    for (int64_t j = c0; j < c1; j++) {
        double m = 0, deviations = 0, n = 0;
        for (int leaf = 0; leaf < p->leaves; leaf++) {
            int64_t begin, end;
            leaf_range(p, rows, leaf, &begin, &end);
            if (begin == end)
                continue;
            double count = (double)(end - begin), delta = leaves[2 * leaf * c + j] - m;
            n += count;
            m += delta * count / n;
            deviations += leaves[(2 * leaf + 1) * c + j] + delta * delta * (n - count) * count / n;
        }
        mean[j] = (float)m;
        inv_std[j] = (float)(1 / sqrt((n > 0 ? deviations / n : 0) + p->spec.epsilon));
    }
}

/* Leaf sums of dy and dy (x - mean) into dbias and dscale, and into the row vectors that phase 2 subtracts. */
static void combine_gradient(const struct norm_params *p, const struct kernel_call *call, int share)
{
    int64_t rows = rows_of(p, call), c = p->spec.c, c0, c1;
    float *leaves = call->workspace, *a = leaves + 2 * p->leaves * c, *b = a + c;
    const float *inv_std = call->in[3].data;
    float *dscale = call->out[1].data, *dbias = call->out[2].data;
    combine_range(p, share, &c0, &c1);
    for (int64_t j = c0; j < c1; j++) {
        double sum = 0, product = 0;
        for (int leaf = 0; leaf < p->leaves; leaf++) {
            int64_t begin, end;
            leaf_range(p, rows, leaf, &begin, &end);
            if (begin == end)
                continue;
            sum += leaves[2 * leaf * c + j];
            product += leaves[(2 * leaf + 1) * c + j];
        }
        dbias[j] = (float)sum;
        dscale[j] = (float)(product * inv_std[j]);
        a[j] = rows ? (float)(sum / (double)rows) : 0;
        b[j] = rows ? (float)(product * inv_std[j] * inv_std[j] / (double)rows) : 0;
    }
}

static graphi_status batch_run(const struct kernel_call *call, int phase, int share)
{
    const struct norm_params *p = call->params;
    bool gradient = p->spec.kind == NORM_BATCH_GRADIENT;
    int64_t c = p->spec.c;
    float *leaves = call->workspace;
    if (phase == 1) {
        (gradient ? combine_gradient : combine_batch)(p, call, share);
        return GRAPHI_OK;
    }
    struct norm_block block = {
        .spec = &p->spec, .x = call->in[0].data, .scale = call->in[1].data, .y = call->out[0].data};
    if (gradient) {
        block.mean = call->in[2].data;
        block.inv_std = call->in[3].data;
        block.dy = call->in[4].data;
    } else {
        block.bias = call->in[2].data;
        block.mean = call->out[1].data;
        block.inv_std = call->out[2].data;
    }
    int64_t rows = rows_of(p, call);
    if (phase == 0) {
        leaf_range(p, rows, share, &block.begin, &block.end);
        block.a = leaves + 2 * share * c;
        block.b = block.a + c;
        p->leaf(&block);
    } else {
        split_range(rows, p->parts, share, &block.begin, &block.end);
        block.a = leaves + 2 * p->leaves * c;
        block.b = block.a + c;
        p->rows(&block);
    }
    return GRAPHI_OK;
}

static graphi_status rows_run(const struct kernel_call *call, int phase, int share)
{
    const struct norm_params *p = call->params;
    const struct kernel_array *in = call->in;
    struct norm_block block = {.spec = &p->spec, .x = in[0].data, .y = call->out[0].data};
    if (p->spec.kind == NORM_BATCH_INFERENCE) {
        block.scale = in[1].data;
        block.bias = in[2].data;
        block.mean = in[3].data;
        block.inv_std = in[4].data;
    } else if (p->spec.kind == NORM_LRN_GRADIENT) {
        block.dy = in[1].data;
    }
    if (call->workspace) {
        block.a = (float *)call->workspace + 2 * share * p->spec.c;
        block.b = block.a + p->spec.c;
    }
    split_range(rows_of(p, call), p->parts, share, &block.begin, &block.end);
    p->rows(&block);
    return GRAPHI_OK;
}

graphi_status norm_bind(const struct norm_spec *spec, enum isa isa, struct kernel *kernel)
{
    static const struct {
        const char *name;
        int passes; /* over an array of x's size */
        double flops;
    } kinds[NORM_KINDS] = {{"batch_norm", 3, 7},
                           {"batch_norm_grad", 5, 9},
                           {"batch_norm_inference", 2, 3},
                           {"lrn", 2, 6},
                           {"lrn_grad", 3, 12}};
    struct norm_params *p = mem_zalloc(sizeof *p);
    if (!p)
        return fail_memory(kinds[spec->kind].name, sizeof *p);
    double elements = (double)spec->rows * (double)spec->c;
    *p = (struct norm_params){.spec = *spec,
                              .leaves = shares_for(4 * elements, spec->rows),
                              .parts = shares_for(8 * elements, spec->rows),
                              .leaf = functions[isa][spec->kind][0],
                              .rows = functions[isa][spec->kind][1]};
    *kernel = (struct kernel){.name = kinds[spec->kind].name,
                              .run = rows_run,
                              .params = p,
                              .params_bytes = sizeof *p,
                              .phases = 1,
                              .shares = {p->parts},
                              .flops = kinds[spec->kind].flops * elements,
                              .bytes = 4 * kinds[spec->kind].passes * elements};
    if (p->leaf) {
        int64_t combine = (spec->c + COMBINE - 1) / COMBINE;
        kernel->run = batch_run;
        kernel->phases = 3;
        kernel->shares[0] = p->leaves;
        kernel->shares[1] = combine < 1 ? 1 : (int)combine;
        kernel->shares[2] = p->parts;
        kernel->workspace = sizeof(float) * (size_t)(2 * (p->leaves + 1) * spec->c);
    } else if (spec->kind == NORM_LRN_GRADIENT) {
        kernel->workspace = sizeof(float) * (size_t)(2 * p->parts * spec->c);
    }
    return GRAPHI_OK;
}
