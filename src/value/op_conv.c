/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of any number of spatial dimensions: an image's windows become columns of a matrix, which the weights
 * multiply; the transposed form goes back from columns to the image. Source: ONNX Conv, ConvTranspose, Col2Im. Any
 * thread. */
#include "base/memory.h"
#include "value/conv.h"
#include "value/families.h"

#include <string.h>

graphi_status convolution_find(const struct op_call *call, const graphi_tensor *x, const graphi_tensor *w,
                               struct convolution *out)
{
    struct value_text a, b;
    size_t given;
    const int64_t *kernel = op_ints(call, "kernel_shape", &given);
    out->groups = op_int(call, "group", 1);
    if (x->rank < 3 || w->rank != x->rank || out->groups < 1 || x->dims[1] != w->dims[1] * out->groups ||
        w->dims[0] % out->groups != 0)
        return op_fail(call, "found %s and weights %s in %lld groups, expected channels that agree",
                       value_describe(x, &a), value_describe(w, &b), (long long)out->groups);
    if (kernel && (given != (size_t)x->rank - 2 || memcmp(kernel, w->dims + 2, given * sizeof *kernel) != 0))
        return op_fail(call, "found weights %s, expected the sizes of kernel_shape", value_describe(w, &b));
    out->n = x->dims[0];
    out->channels = x->dims[1];
    out->filters = w->dims[0];
    return window_find(call, x, w->dims + 2, &out->w);
}

/* Columns [channels * taps, outs] of an image [channels, ins]: elements of `size` bytes, 0 in the padding. */
static void to_columns(const struct window *w, int64_t channels, size_t size, const char *image, char *columns)
{
    int64_t tap[WINDOW_RANK], out[WINDOW_RANK];
    for (int64_t c = 0; c < channels; c++) {
        memset(tap, 0, sizeof tap);
        do {
            memset(out, 0, sizeof out);
            int64_t k = 0;
            do {
                const int64_t at = window_place(w, out, tap);
                if (at < 0)
                    memset(columns + (size_t)k * size, 0, size);
                else if (size == 4)
                    memcpy(columns + k * 4, image + (c * w->ins + at) * 4, 4);
                else
                    memcpy(columns + k * 8, image + (c * w->ins + at) * 8, 8);
                k++;
            } while (window_next(w->rank, w->out, out));
            columns += (size_t)w->outs * size;
        } while (window_next(w->rank, w->kernel, tap));
    }
}

graphi_status convolution_run(const char *where, const struct convolution *c, const struct dense *x,
                              const struct dense *w, void *to)
{
    const int64_t channels = c->channels / c->groups, filters = c->filters / c->groups, depth = channels * c->w.taps;
    const size_t size = domain_size(x->domain), bytes = (size_t)(depth * c->w.outs) * size;
    if (c->w.outs == 0 || dims_count(2, (int64_t[]){depth, c->w.outs}, size) < 0)
        return c->w.outs == 0
                   ? GRAPHI_OK
                   : fail(GRAPHI_INVALID, where, "found windows of %lld elements at %lld places, expected fewer",
                          (long long)depth, (long long)c->w.outs);
    char *columns = mem_alloc(bytes);
    if (!columns)
        return fail_memory(where, bytes);
    for (int64_t i = 0; i < c->n * c->groups; i++) {
        to_columns(&c->w, channels, size, (const char *)x->data + (size_t)(i * channels * c->w.ins) * size, columns);
        product_run(&(struct product){.domain = x->domain,
                                      .m = filters,
                                      .n = c->w.outs,
                                      .k = depth,
                                      .a = (const char *)w->data + (size_t)(i % c->groups * filters * depth) * size,
                                      .b = columns,
                                      .a_row = depth,
                                      .a_column = 1,
                                      .b_row = c->w.outs,
                                      .b_column = 1,
                                      .c = (char *)to + (size_t)(i * filters * c->w.outs) * size,
                                      .c_row = c->w.outs});
    }
    mem_free(columns);
    return GRAPHI_OK;
}

/* Adds bias[m] to [N, M, each] and stores it. */
static graphi_status finish(struct op_call *call, enum domain domain, void *from, const graphi_tensor *bias,
                            graphi_tensor *out)
{
    struct dense b = {0};
    const int64_t m = out->dims[1];
    if (bias && bias->count != m)
        return op_fail(call, "found %lld biases, expected %lld", (long long)bias->count, (long long)m);
    if (bias)
        TRY(dense_load(call->where, domain, bias, &b));
    const int64_t each = out->count && m ? out->count / out->dims[0] / m : 0;
    for (int64_t i = 0; bias && each && i < out->count; i++) {
        const int64_t c = i / each % m;
        if (domain == DOMAIN_F32)
            ((float *)from)[i] += ((const float *)b.data)[c];
        else
            ((double *)from)[i] += ((const double *)b.data)[c];
    }
    dense_free(&b);
    if (from != out->data)
        element_store(domain, out->type, from, out->count, out->data);
    return GRAPHI_OK;
}

static graphi_status begin(struct op_call *call, enum domain *domain, struct dense *x, struct dense *w)
{
    TRY(op_same_types(call, 0, 3));
    *domain = element_domain(call->in[0]->type);
    if (*domain > DOMAIN_F64)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a convolution of %s, expected floats",
                    graphi_element_name(call->in[0]->type));
    TRY(dense_load(call->where, *domain, call->in[0], x));
    graphi_status status = dense_load(call->where, *domain, call->in[1], w);
    if (status != GRAPHI_OK)
        dense_free(x);
    return status;
}

static int spatial_dims(const struct window *w, int64_t n, int64_t channels, const int64_t *sizes, int64_t *dims)
{
    dims[0] = n;
    dims[1] = channels;
    memcpy(dims + 2, sizes, (size_t)w->rank * sizeof *dims);
    return w->rank + 2;
}

static graphi_status run_conv(struct op_call *call)
{
    struct convolution c;
    struct dense x, w;
    enum domain domain;
    graphi_tensor *out;
    int64_t dims[VALUE_RANK];
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    TRY(convolution_find(call, call->in[0], call->in[1], &c));
    const int rank = spatial_dims(&c.w, c.n, c.filters, c.w.out, dims);
    TRY(op_new(call, 0, call->in[0]->type, rank, dims, &out));
    TRY(begin(call, &domain, &x, &w));
    const bool direct = element_size(out->type) == domain_size(domain);
    void *to = direct ? out->data : mem_alloc((size_t)out->count * domain_size(domain));
    graphi_status status = to ? convolution_run(call->where, &c, &x, &w, to) : fail_memory(call->where, out->bytes);
    if (status == GRAPHI_OK)
        status = finish(call, domain, to, op_in(call, 2), out);
    if (!direct)
        mem_free(to);
    dense_free(&x);
    dense_free(&w);
    return status;
}

/* The image's sizes from its windows': output_shape tells them, or padding does. */
graphi_status convolution_transposed(const struct op_call *call, const graphi_tensor *x, const int64_t *kernel,
                                     struct window *w)
{
    size_t shaped, more_count;
    const int64_t *shape = op_ints(call, "output_shape", &shaped), *more = op_ints(call, "output_padding", &more_count);
    const char *rule = op_string(call, "auto_pad", "NOTSET");
    memset(w, 0, sizeof *w);
    w->rank = x->rank - 2;
    TRY(window_attributes(call, w));
    if ((shape && shaped < (size_t)w->rank) || (more && more_count != (size_t)w->rank))
        return op_fail(call, "found %zu sizes of output_shape and %zu of output_padding, expected %d", shaped,
                       more_count, w->rank);
    for (int i = 0; i < w->rank; i++) {
        const int64_t extra = more ? more[i] : 0, reach = (kernel[i] - 1) * w->dilation[i] + 1;
        w->out[i] = x->dims[i + 2];
        w->kernel[i] = kernel[i];
        const int64_t whole = w->stride[i] * (w->out[i] - 1) + extra + reach;
        if (shape || strncmp(rule, "SAME", 4) == 0) {
            w->in[i] = shape ? shape[shaped - (size_t)w->rank + (size_t)i] : w->out[i] * w->stride[i];
            const int64_t pad = whole - w->in[i] > 0 ? whole - w->in[i] : 0;
            w->before[i] = strcmp(rule, "SAME_UPPER") == 0 || strcmp(rule, "NOTSET") == 0 ? pad / 2 : pad - pad / 2;
        } else
            w->in[i] = whole - w->before[i] - w->after[i];
        if (w->in[i] < 0)
            return op_fail(call, "found an image of %lld elements, expected 0 and more", (long long)w->in[i]);
    }
    return window_count(call, w);
}

/* Adds columns [channels * taps, outs] to an image [channels, ins]. */
static void from_columns(const struct window *w, int64_t channels, enum domain domain, const void *columns, void *image)
{
    int64_t tap[WINDOW_RANK], out[WINDOW_RANK], k = 0;
    for (int64_t c = 0; c < channels && w->outs; c++) {
        memset(tap, 0, sizeof tap);
        do {
            memset(out, 0, sizeof out);
            do {
                const int64_t at = window_place(w, out, tap);
                if (at >= 0 && domain == DOMAIN_F32)
                    ((float *)image)[c * w->ins + at] += ((const float *)columns)[k];
                else if (at >= 0)
                    ((double *)image)[c * w->ins + at] += ((const double *)columns)[k];
                k++;
            } while (window_next(w->rank, w->out, out));
        } while (window_next(w->rank, w->kernel, tap));
    }
}

static graphi_status transposed(const struct op_call *call, const struct window *w, int64_t n, int64_t groups,
                                int64_t channels, int64_t filters, const struct dense *x, const struct dense *weights,
                                void *to)
{
    const int64_t depth = filters * w->taps;
    const size_t size = domain_size(x->domain), bytes = (size_t)(depth * w->outs) * size;
    char *columns = mem_alloc(bytes);
    if (!columns)
        return fail_memory(call->where, bytes);
    for (int64_t i = 0; i < n * groups; i++) {
        product_run(&(struct product){.domain = x->domain,
                                      .m = depth,
                                      .n = w->outs,
                                      .k = channels,
                                      .a = (const char *)weights->data + (size_t)(i % groups * channels * depth) * size,
                                      .b = (const char *)x->data + (size_t)(i * channels * w->outs) * size,
                                      .a_row = 1,
                                      .a_column = depth,
                                      .b_row = w->outs,
                                      .b_column = 1,
                                      .c = columns,
                                      .c_row = w->outs});
        from_columns(w, filters, x->domain, columns, (char *)to + (size_t)(i * filters * w->ins) * size);
    }
    mem_free(columns);
    return GRAPHI_OK;
}

static graphi_status run_transposed(struct op_call *call)
{
    struct value_text a, b;
    struct window w;
    struct dense x, weights;
    enum domain domain;
    graphi_tensor *out;
    int64_t dims[VALUE_RANK];
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    const graphi_tensor *from = call->in[0], *by = call->in[1];
    const int64_t groups = op_int(call, "group", 1);
    if (from->rank < 3 || by->rank != from->rank || groups < 1 || by->dims[0] != from->dims[1] || by->dims[0] % groups)
        return op_fail(call, "found %s and weights %s in %lld groups, expected channels that agree",
                       value_describe(from, &a), value_describe(by, &b), (long long)groups);
    TRY(convolution_transposed(call, from, by->dims + 2, &w));
    const int rank = spatial_dims(&w, from->dims[0], by->dims[1] * groups, w.in, dims);
    TRY(op_new(call, 0, from->type, rank, dims, &out));
    TRY(begin(call, &domain, &x, &weights));
    void *to = mem_zalloc_array((size_t)out->count + 1, domain_size(domain));
    graphi_status status =
        to ? transposed(call, &w, from->dims[0], groups, from->dims[1] / groups, by->dims[1], &x, &weights, to)
           : fail_memory(call->where, out->bytes);
    if (status == GRAPHI_OK)
        status = finish(call, domain, to, op_in(call, 2), out);
    mem_free(to);
    dense_free(&x);
    dense_free(&weights);
    return status;
}

static graphi_status run_col2im(struct op_call *call)
{
    struct window w = {0};
    struct dense x;
    int64_t image[VALUE_RANK], block[VALUE_RANK], dims[VALUE_RANK];
    int rank, block_rank;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    TRY(op_numbers(call, 1, image, &rank));
    TRY(op_numbers(call, 2, block, &block_rank));
    const graphi_tensor *from = call->in[0];
    if (from->rank != 3 || rank < 1 || rank > WINDOW_RANK || block_rank != rank)
        return op_fail(call, "found rank %d, images of %d and blocks of %d dimensions, expected [N, C*L, P]",
                       from->rank, rank, block_rank);
    w.rank = rank;
    TRY(window_attributes(call, &w));
    for (int i = 0; i < rank; i++) {
        w.in[i] = image[i];
        w.kernel[i] = block[i];
        w.out[i] = (image[i] + w.before[i] + w.after[i] - (block[i] - 1) * w.dilation[i] - 1) / w.stride[i] + 1;
    }
    TRY(window_count(call, &w));
    if (from->dims[2] != w.outs || from->dims[1] % w.taps != 0)
        return op_fail(call, "found %lld columns of %lld, expected %lld of a multiple of %lld",
                       (long long)from->dims[2], (long long)from->dims[1], (long long)w.outs, (long long)w.taps);
    const int64_t channels = from->dims[1] / w.taps;
    const enum domain domain = element_domain(from->type);
    if (domain > DOMAIN_F64)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found %s for Col2Im, expected floats",
                    graphi_element_name(from->type));
    TRY(op_new(call, 0, from->type, spatial_dims(&w, from->dims[0], channels, w.in, dims), dims, &out));
    TRY(dense_load(call->where, domain, from, &x));
    char *to = mem_zalloc_array((size_t)out->count + 1, 8);
    for (int64_t n = 0; to && n < from->dims[0]; n++)
        from_columns(&w, channels, domain,
                     (const char *)x.data + (size_t)(n * from->dims[1] * from->dims[2]) * domain_size(domain),
                     to + (size_t)(n * channels * w.ins) * domain_size(domain));
    if (to)
        element_store(domain, out->type, to, out->count, out->data);
    mem_free(to);
    dense_free(&x);
    return to ? GRAPHI_OK : fail_memory(call->where, out->bytes);
}

#define GEOMETRY "auto_pad dilations group kernel_shape pads strides"
const struct host_op host_ops_conv[] = {
    {"Conv", 2, 3, 1, GEOMETRY, run_conv, 0},
    {"ConvTranspose", 2, 3, 1, GEOMETRY " output_padding output_shape", run_transposed, 0},
    {"Col2Im", 3, 3, 1, "dilations pads strides", run_col2im, 0},
    {0},
};
