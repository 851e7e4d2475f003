/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of convolutions, pools and normalizations of images, whose channels are last with us. One thread lowers. */
#include "flow/lower.h"
#include "value/conv.h"

#include <string.h>

enum { WINDOW_MOST = 64 };

/* Image and window of one spatial dimension get one of size 1 before it. */
struct image {
    graphi_value x;
    int rank;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
};

static graphi_status find_image(struct lower_call *c, const struct window *w, struct image *out)
{
    const graphi_tensor *x = c->call.in[0];
    const int first = 2 - w->rank;
    if (w->rank > 2)
        return lower_fail(c, "found %d spatial dimensions, expected at most 2 for a plan", w->rank);
    *out = (struct image){lower_last(c->l, lower_in(c, 0)), w->rank, {1, 1}, {1, 1}, {1, 1}, {0}};
    for (int i = 0; i < w->rank; i++) {
        out->kernel[first + i] = w->kernel[i];
        out->stride[first + i] = w->stride[i];
        out->dilation[first + i] = w->dilation[i];
        out->pads[first + i] = w->before[i];
        out->pads[2 + first + i] = w->after[i];
        if (w->kernel[i] > WINDOW_MOST)
            return lower_fail(c, "found a window of %lld, expected at most %d for a plan", (long long)w->kernel[i],
                              WINDOW_MOST);
    }
    if (first)
        out->x = graphi_reshape(c->l->graph, out->x, (int64_t[]){x->dims[0], 1, x->dims[2], x->dims[1]}, 4);
    return GRAPHI_OK;
}

/* Output 0, of `channels`, whose sizes must be the window's. */
static graphi_status finish(struct lower_call *c, const struct window *w, graphi_value y, int64_t channels)
{
    int64_t dims[GRAPHI_MAX_RANK];
    graphi_dtype dtype;
    int rank;
    TRY(graphi_graph_status(c->l->graph));
    TRY(graphi_value_type(c->l->graph, y, &dtype, &rank, dims));
    for (int i = 0; i < w->rank; i++)
        if (dims[3 - w->rank + i] != w->out[i])
            return lower_fail(c, "found %lld windows, expected %lld", (long long)dims[3 - w->rank + i],
                              (long long)w->out[i]);
    if (w->rank == 1)
        y = graphi_reshape(c->l->graph, y, (int64_t[]){dims[0], w->out[0], channels}, 3);
    return lower_set(c, 0, y, true);
}

/* One dimension, windows that are whole multiples of the stride, as of a short-time Fourier transform: as many elements
 * as the stride become channels, and windows of 256 become a few rows. */
static bool is_blocked(const struct convolution *v)
{
    const struct window *w = &v->w;
    return w->rank == 1 && w->kernel[0] > WINDOW_MOST && v->groups == 1 && w->dilation[0] == 1 && w->before[0] == 0 &&
           w->after[0] == 0 && w->kernel[0] % w->stride[0] == 0 && w->kernel[0] / w->stride[0] <= WINDOW_MOST;
}

static graphi_value conv_blocked(struct lower_call *c, const struct convolution *v)
{
    graphi_graph *g = c->l->graph;
    const int64_t s = v->w.stride[0], blocks = v->w.kernel[0] / s, all = v->w.out[0] - 1 + blocks;
    graphi_value x = graphi_slice(g, lower_last(c->l, lower_in(c, 0)), 1, 0, all * s);
    graphi_value w = lower_permuted(c->l, lower_in(c, 1), (const int64_t[]){2, 1, 0});
    x = graphi_reshape(g, x, (int64_t[]){v->n, 1, all, s * v->channels}, 4);
    w = graphi_reshape(g, w, (int64_t[]){1, blocks, s * v->channels, v->filters}, 4);
    return graphi_conv2d(g, x, w, NULL, 0, NULL, 0, NULL, 0, 1);
}

static graphi_value conv_direct(struct lower_call *c, const struct convolution *v, const struct image *image)
{
    static const int64_t one[] = {2, 1, 0}, two[] = {2, 3, 1, 0};
    const graphi_tensor *w = c->call.in[1];
    graphi_value weights = lower_permuted(c->l, lower_in(c, 1), image->rank == 2 ? two : one);
    if (image->rank == 1)
        weights = graphi_reshape(c->l->graph, weights, (int64_t[]){1, w->dims[2], w->dims[1], w->dims[0]}, 4);
    return graphi_conv2d(c->l->graph, image->x, weights, image->stride, 2, image->pads, 4, image->dilation, 2,
                         v->groups);
}

static graphi_status lower_conv(struct lower_call *c)
{
    struct convolution v;
    struct image image;
    const graphi_tensor *x = c->call.in[0], *w = c->call.in[1], *bias = op_in(&c->call, 2);
    for (int i = 0; i < c->call.ins; i++)
        if (c->call.in[i])
            TRY(lower_floats(c, i));
    TRY(convolution_find(&c->call, x, w, &v));
    if (bias && (bias->rank != 1 || bias->count != v.filters))
        return lower_fail(c, "found another number of biases, expected %lld", (long long)v.filters);
    graphi_value y;
    if (is_blocked(&v)) {
        y = conv_blocked(c, &v);
    } else {
        TRY(find_image(c, &v.w, &image));
        y = conv_direct(c, &v, &image);
    }
    if (bias)
        y = graphi_add(c->l->graph, y, lower_plain(c->l, lower_in(c, 2)));
    return finish(c, &v.w, y, v.filters);
}

/* The gradient of a convolution with respect to its images, whose windows are over the result. */
static graphi_status lower_transposed(struct lower_call *c)
{
    static const int64_t one[] = {2, 1, 0}, two[] = {2, 3, 1, 0};
    struct window w;
    struct image image;
    for (int i = 0; i < c->call.ins; i++)
        if (c->call.in[i])
            TRY(lower_floats(c, i));
    const graphi_tensor *x = c->call.in[0], *by = c->call.in[1], *bias = op_in(&c->call, 2);
    const int64_t groups = op_int(&c->call, "group", 1);
    if (x->rank < 3 || by->rank != x->rank || groups < 1 || by->dims[0] != x->dims[1] || by->dims[0] % groups)
        return lower_fail(c, "found channels that do not agree, expected weights [C, M / groups, ...]");
    const int64_t filters = by->dims[1] * groups;
    TRY(convolution_transposed(&c->call, x, by->dims + 2, &w));
    if (bias && (bias->rank != 1 || bias->count != filters))
        return lower_fail(c, "found another number of biases, expected %lld", (long long)filters);
    for (int i = 0; i < w.rank; i++) {
        const int64_t after = w.stride[i] * (w.out[i] - 1) + (w.kernel[i] - 1) * w.dilation[i] + 1 - w.in[i];
        w.after[i] = after > w.before[i] ? after - w.before[i] : 0; /* output_padding is less of it */
        if (w.in[i] < 1 ||
            (w.in[i] + w.before[i] + w.after[i] - (w.kernel[i] - 1) * w.dilation[i] - 1) / w.stride[i] + 1 != w.out[i])
            return lower_fail(c, "found a border of more than a stride, expected less for a plan");
    }
    TRY(find_image(c, &w, &image));
    graphi_value weights = lower_permuted(c->l, lower_in(c, 1), image.rank == 2 ? two : one);
    if (image.rank == 1)
        weights = graphi_reshape(c->l->graph, weights, (int64_t[]){1, by->dims[2], by->dims[1], by->dims[0]}, 4);
    const int64_t size[2] = {w.rank == 2 ? w.in[0] : 1, w.in[w.rank - 1]};
    graphi_value y = graphi_conv2d_backward_data(c->l->graph, image.x, weights, image.stride, 2, image.pads, 4,
                                                 image.dilation, 2, groups, size, 2);
    if (bias)
        y = graphi_add(c->l->graph, y, lower_plain(c->l, lower_in(c, 2)));
    memcpy(w.out, w.in, sizeof w.out);
    return finish(c, &w, y, filters);
}

static graphi_status lower_pool(struct lower_call *c)
{
    struct window w;
    struct image p;
    size_t given;
    const bool max = c->node->type[0] == 'M', counts = op_int(&c->call, "count_include_pad", 0) != 0;
    const char *rule = op_string(&c->call, "auto_pad", "NOTSET");
    const int64_t up = op_int(&c->call, "ceil_mode", 0) != 0 && strncmp(rule, "SAME", 4) != 0;
    TRY(lower_floats(c, 0));
    const graphi_tensor *x = c->call.in[0];
    const int64_t *kernel = op_ints(&c->call, "kernel_shape", &given);
    if (given != (size_t)(x->rank - 2))
        return lower_fail(c, "found %zu sizes of kernel_shape for rank %d, expected %d", given, x->rank, x->rank - 2);
    TRY(window_find(&c->call, x, kernel, &w));
    TRY(find_image(c, &w, &p));
    for (int i = 0; i < w.rank; i++)
        if (w.dilation[i] != 1 || w.before[i] >= w.kernel[i] || w.after[i] >= w.kernel[i] || (up && counts))
            return lower_fail(c, "found dilations, wide padding or averages over what hangs over, expected none");
    graphi_value y = max ? graphi_max_pool(c->l->graph, p.x, p.kernel, 2, p.stride, 2, p.pads, 4, up)
                         : graphi_avg_pool(c->l->graph, p.x, p.kernel, 2, p.stride, 2, p.pads, 4, up, counts);
    return finish(c, &w, y, x->dims[1]);
}

static graphi_status lower_global(struct lower_call *c)
{
    int64_t axes[VALUE_RANK];
    TRY(lower_floats(c, 0));
    struct flow_value *x = lower_in(c, 0);
    const int rank = c->call.in[0]->rank;
    if (rank < 3)
        return lower_fail(c, "found rank %d, expected [N, C, ...]", rank);
    for (int i = 0; i < rank - 2; i++)
        axes[i] = i + 1;
    const graphi_value in = lower_last(c->l, x);
    return lower_set(c, 0,
                     c->node->type[6] == 'M' ? graphi_reduce_max(c->l->graph, in, axes, rank - 2, 1)
                                             : graphi_reduce_mean(c->l->graph, in, axes, rank - 2, 1),
                     true);
}

static graphi_status lower_batch(struct lower_call *c)
{
    graphi_value in[5];
    const graphi_tensor *x = c->call.in[0];
    for (int i = 0; i < 5; i++)
        TRY(lower_floats(c, i));
    if (op_int(&c->call, "training_mode", 0) || x->rank < 2)
        return lower_fail(c, "found training or rank %d, expected inference over [N, C, ...]", x->rank);
    in[0] = lower_last(c->l, lower_in(c, 0));
    for (int i = 1; i < 5; i++) {
        if (c->call.in[i]->rank != 1 || c->call.in[i]->count != x->dims[1])
            return lower_fail(c, "found other sizes than [C] as input %d, expected those", i);
        in[i] = c->call.in[i]->count == 1
                    ? graphi_reshape(c->l->graph, lower_plain(c->l, lower_in(c, i)), (int64_t[]){1}, 1)
                    : lower_plain(c->l, lower_in(c, i));
    }
    const double epsilon = op_float(&c->call, "epsilon", 1e-5f);
    return lower_set(c, 0, graphi_batch_norm_inference(c->l->graph, in[0], in[1], in[2], in[3], in[4], epsilon), true);
}

static graphi_status lower_lrn(struct lower_call *c)
{
    TRY(lower_floats(c, 0));
    const int64_t size = op_int(&c->call, "size", 0);
    if (c->call.in[0]->rank < 3 || size < 1)
        return lower_fail(c, "found size %lld or another rank, expected [N, C, ...]", (long long)size);
    graphi_value y = graphi_lrn(c->l->graph, lower_last(c->l, lower_in(c, 0)), size, op_float(&c->call, "alpha", 1e-4f),
                                op_float(&c->call, "beta", 0.75f), op_float(&c->call, "bias", 1));
    return lower_set(c, 0, y, true);
}

const struct lower_row lower_images[] = {
    {"Conv", lower_conv, NULL},
    {"ConvTranspose", lower_transposed, NULL},
    {"MaxPool", lower_pool, NULL},
    {"AveragePool", lower_pool, NULL},
    {"GlobalAveragePool", lower_global, NULL},
    {"GlobalMaxPool", lower_global, NULL},
    {"BatchNormalization", lower_batch, NULL},
    {"LRN", lower_lrn, NULL},
    {0},
};
