/* SPDX-License-Identifier: Apache-2.0 */
/* Readable builders, generated from the table of operations by `make docs`: each is one call of graphi_op. Lists of
 * integers are passed as GRAPHI_LIST(1, 1), or NULL, 0 for the default. Shapes, attributes, defaults:
 * docs/operations.md. */
#ifndef GRAPHI_OPS_H
#define GRAPHI_OPS_H

#include "graphi/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRAPHI_LIST(...) (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / 8)

static inline graphi_attribute graphi_int(const char *name, int64_t i)
{
    graphi_attribute a = {name, GRAPHI_INT, i, 0, NULL, 0};
    return a;
}

static inline graphi_attribute graphi_float(const char *name, double f)
{
    graphi_attribute a = {name, GRAPHI_FLOAT, 0, f, NULL, 0};
    return a;
}

static inline graphi_attribute graphi_ints(const char *name, const int64_t *ints, int count)
{
    graphi_attribute a = {name, GRAPHI_INTS, 0, 0, ints, count};
    return a;
}

/* a */
static inline graphi_value graphi_identity(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "identity", 1, input, 0, NULL);
}

/* -a */
static inline graphi_value graphi_neg(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "neg", 1, input, 0, NULL);
}

/* |a| */
static inline graphi_value graphi_abs(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "abs", 1, input, 0, NULL);
}

/* -1, 0 or 1 */
static inline graphi_value graphi_sign(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "sign", 1, input, 0, NULL);
}

/* a a */
static inline graphi_value graphi_square(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "square", 1, input, 0, NULL);
}

/* square root */
static inline graphi_value graphi_sqrt(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "sqrt", 1, input, 0, NULL);
}

/* 1 / sqrt(a) */
static inline graphi_value graphi_rsqrt(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "rsqrt", 1, input, 0, NULL);
}

/* 1 / a */
static inline graphi_value graphi_reciprocal(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "reciprocal", 1, input, 0, NULL);
}

/* e^a */
static inline graphi_value graphi_exp(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "exp", 1, input, 0, NULL);
}

/* natural logarithm */
static inline graphi_value graphi_log(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "log", 1, input, 0, NULL);
}

/* hyperbolic tangent */
static inline graphi_value graphi_tanh(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "tanh", 1, input, 0, NULL);
}

/* 1 / (1 + e^-a) */
static inline graphi_value graphi_sigmoid(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "sigmoid", 1, input, 0, NULL);
}

/* max(a, 0) */
static inline graphi_value graphi_relu(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "relu", 1, input, 0, NULL);
}

/* 1 where a > 0, else 0 */
static inline graphi_value graphi_step(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "step", 1, input, 0, NULL);
}

/* largest integer not above a */
static inline graphi_value graphi_floor(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "floor", 1, input, 0, NULL);
}

/* log(1 + e^a) */
static inline graphi_value graphi_softplus(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "softplus", 1, input, 0, NULL);
}

/* 2 / sqrt(pi) times the integral of e^-t^2 from 0 to a */
static inline graphi_value graphi_erf(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "erf", 1, input, 0, NULL);
}

/* a + b */
static inline graphi_value graphi_add(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "add", 2, input, 0, NULL);
}

/* a - b */
static inline graphi_value graphi_sub(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "sub", 2, input, 0, NULL);
}

/* a b */
static inline graphi_value graphi_mul(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "mul", 2, input, 0, NULL);
}

/* a / b */
static inline graphi_value graphi_div(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "div", 2, input, 0, NULL);
}

/* the smaller; NaN if either is; the gradient of equal ones goes to a */
static inline graphi_value graphi_min(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "min", 2, input, 0, NULL);
}

/* the larger; NaN if either is; the gradient of equal ones goes to a */
static inline graphi_value graphi_max(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "max", 2, input, 0, NULL);
}

/* a^b */
static inline graphi_value graphi_pow(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "pow", 2, input, 0, NULL);
}

/* a - b floor(a / b), of the sign of b; a where b is infinite and of its sign */
static inline graphi_value graphi_mod(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "mod", 2, input, 0, NULL);
}

/* 1 where a < b, else 0 */
static inline graphi_value graphi_less(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "less", 2, input, 0, NULL);
}

/* 1 where a = b, else 0 */
static inline graphi_value graphi_equal(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "equal", 2, input, 0, NULL);
}

/* a b + c, rounded once */
static inline graphi_value graphi_fma(graphi_graph *graph, graphi_value a, graphi_value b, graphi_value c)
{
    graphi_value input[] = {a, b, c};
    return graphi_op(graph, "fma", 3, input, 0, NULL);
}

/* b where a is not 0, else c */
static inline graphi_value graphi_select(graphi_graph *graph, graphi_value a, graphi_value b, graphi_value c)
{
    graphi_value input[] = {a, b, c};
    return graphi_op(graph, "select", 3, input, 0, NULL);
}

/* sum of inputs of one shape, from the left: inputs of one shape to the same */
static inline graphi_value graphi_add_n(graphi_graph *graph, int inputs, const graphi_value *input)
{
    return graphi_op(graph, "add_n", inputs, input, 0, NULL);
}

/* a repeated to the shape `dims` by numpy's rule: [...] to [dims] */
static inline graphi_value graphi_expand(graphi_graph *graph, graphi_value a, const int64_t *dims, int dims_count, const
    int64_t *axes, int axes_count)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("dims", dims, dims_count),
        graphi_ints("axes", axes, axes_count),
    };
    return graphi_op(graph, "expand", 1, input, 2, attribute);
}

/* sum over axes: [...] to the dimensions that are left */
static inline graphi_value graphi_reduce_sum(graphi_graph *graph, graphi_value a, const int64_t *axes, int axes_count,
    int64_t keepdims)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("axes", axes, axes_count),
        graphi_int("keepdims", keepdims),
    };
    return graphi_op(graph, "reduce_sum", 1, input, 2, attribute);
}

/* mean over axes: [...] to the dimensions that are left */
static inline graphi_value graphi_reduce_mean(graphi_graph *graph, graphi_value a, const int64_t *axes, int axes_count,
    int64_t keepdims)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("axes", axes, axes_count),
        graphi_int("keepdims", keepdims),
    };
    return graphi_op(graph, "reduce_mean", 1, input, 2, attribute);
}

/* maximum over axes; NaN if any is; equal ones share the gradient: [...] to the dimensions that are left */
static inline graphi_value graphi_reduce_max(graphi_graph *graph, graphi_value a, const int64_t *axes, int axes_count,
    int64_t keepdims)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("axes", axes, axes_count),
        graphi_int("keepdims", keepdims),
    };
    return graphi_op(graph, "reduce_max", 1, input, 2, attribute);
}

/* sum of squares over axes: [...] to the dimensions that are left */
static inline graphi_value graphi_reduce_sum_squares(graphi_graph *graph, graphi_value a, const int64_t *axes, int
    axes_count, int64_t keepdims)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("axes", axes, axes_count),
        graphi_int("keepdims", keepdims),
    };
    return graphi_op(graph, "reduce_sum_squares", 1, input, 2, attribute);
}

/* sum over what broadcasting from `dims` repeats: [...] to [dims] */
static inline graphi_value graphi_sum_to(graphi_graph *graph, graphi_value a, const int64_t *dims, int dims_count)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("dims", dims, dims_count),
    };
    return graphi_op(graph, "sum_to", 1, input, 1, attribute);
}

/* actual size of dimension 0, as float32: [rows,...] to [] */
static inline graphi_value graphi_rows(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "rows", 1, input, 0, NULL);
}

/* e^a over its sum, along the last dimension: [...,C] to the same */
static inline graphi_value graphi_softmax(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "softmax", 1, input, 0, NULL);
}

/* logarithm of softmax: [...,C] to the same */
static inline graphi_value graphi_log_softmax(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "log_softmax", 1, input, 0, NULL);
}

/* gradient of softmax from its result and the result's gradient: y [...,C], dy the same, to the same */
static inline graphi_value graphi_softmax_gradient(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "softmax_gradient", 2, input, 0, NULL);
}

/* gradient of log_softmax from its result and the result's gradient: y [...,C], dy the same, to the same */
static inline graphi_value graphi_log_softmax_gradient(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "log_softmax_gradient", 2, input, 0, NULL);
}

/* mean over rows of -log softmax(a) at the labels b: a [rows,...,C], int32 b [rows,...] to [] */
static inline graphi_value graphi_softmax_cross_entropy(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "softmax_cross_entropy", 2, input, 0, NULL);
}

/* gradient of softmax_cross_entropy for a, c times: a [rows,...,C], int32 b [rows,...], c [] to [rows,...,C] */
static inline graphi_value graphi_softmax_cross_entropy_gradient(graphi_graph *graph, graphi_value a, graphi_value b,
    graphi_value c)
{
    graphi_value input[] = {a, b, c};
    return graphi_op(graph, "softmax_cross_entropy_gradient", 3, input, 0, NULL);
}

/* a with elements set to zero at random, the others divided by `keep`; and the mask: [...] to the same, twice */
static inline graphi_value graphi_dropout(graphi_graph *graph, graphi_value a, double keep)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_float("keep", keep),
    };
    return graphi_op(graph, "dropout", 1, input, 1, attribute);
}

/* uniform random numbers from a up to b: to [dims] */
static inline graphi_value graphi_random_uniform(graphi_graph *graph, const int64_t *dims, int dims_count, double a,
    double b)
{
    graphi_value input[] = {GRAPHI_NONE};
    graphi_attribute attribute[] = {
        graphi_ints("dims", dims, dims_count),
        graphi_float("a", a),
        graphi_float("b", b),
    };
    return graphi_op(graph, "random_uniform", 0, input, 3, attribute);
}

/* normal random numbers of mean a and standard deviation b: to [dims] */
static inline graphi_value graphi_random_normal(graphi_graph *graph, const int64_t *dims, int dims_count, double a,
    double b)
{
    graphi_value input[] = {GRAPHI_NONE};
    graphi_attribute attribute[] = {
        graphi_ints("dims", dims, dims_count),
        graphi_float("a", a),
        graphi_float("b", b),
    };
    return graphi_op(graph, "random_normal", 0, input, 3, attribute);
}

/* products of matrices, the last two dimensions of a and b; those before them broadcast as in numpy: a [...,M,K], b
 * [...,K,N] to [...,M,N] */
static inline graphi_value graphi_matmul(graphi_graph *graph, graphi_value a, graphi_value b, int64_t trans_a, int64_t
    trans_b)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_int("trans_a", trans_a),
        graphi_int("trans_b", trans_b),
    };
    return graphi_op(graph, "matmul", 2, input, 2, attribute);
}

/* cross-correlation of images x with weights w: x [N,H,W,C], w [KH,KW,C/groups,K] to [N,OH,OW,K] */
static inline graphi_value graphi_conv2d(graphi_graph *graph, graphi_value a, graphi_value b, const int64_t *strides,
    int strides_count, const int64_t *pads, int pads_count, const int64_t *dilations, int dilations_count, int64_t
    groups)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_ints("dilations", dilations, dilations_count),
        graphi_int("groups", groups),
    };
    return graphi_op(graph, "conv2d", 2, input, 4, attribute);
}

/* gradient of conv2d with respect to its images, from dy and w; also the transposed convolution: dy [N,OH,OW,K], w
 * [KH,KW,C/groups,K] to [N,H,W,C] */
static inline graphi_value graphi_conv2d_backward_data(graphi_graph *graph, graphi_value a, graphi_value b, const
    int64_t *strides, int strides_count, const int64_t *pads, int pads_count, const int64_t *dilations, int
    dilations_count, int64_t groups, const int64_t *size, int size_count)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_ints("dilations", dilations, dilations_count),
        graphi_int("groups", groups),
        graphi_ints("size", size, size_count),
    };
    return graphi_op(graph, "conv2d_backward_data", 2, input, 5, attribute);
}

/* gradient of conv2d with respect to its weights, from x and dy: x [N,H,W,C], dy [N,OH,OW,K] to [KH,KW,C/groups,K] */
static inline graphi_value graphi_conv2d_backward_weights(graphi_graph *graph, graphi_value a, graphi_value b, const
    int64_t *strides, int strides_count, const int64_t *pads, int pads_count, const int64_t *dilations, int
    dilations_count, int64_t groups, const int64_t *kernel, int kernel_count)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_ints("dilations", dilations, dilations_count),
        graphi_int("groups", groups),
        graphi_ints("kernel", kernel, kernel_count),
    };
    return graphi_op(graph, "conv2d_backward_weights", 2, input, 5, attribute);
}

/* largest element of each window of an image [N,H,W,C], and its place in the window: bytes, integers for windows of
 * more than 256 elements: [N,H,W,C] to [N,OH,OW,C], twice */
static inline graphi_value graphi_max_pool(graphi_graph *graph, graphi_value a, const int64_t *kernel, int kernel_count,
    const int64_t *strides, int strides_count, const int64_t *pads, int pads_count, int64_t ceil_mode)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("kernel", kernel, kernel_count),
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_int("ceil_mode", ceil_mode),
    };
    return graphi_op(graph, "max_pool", 1, input, 4, attribute);
}

/* gradient of max_pool from places, dy and the size of x; ties go to the first element of the window: places
 * [N,OH,OW,C], dy [N,OH,OW,C] to [N,H,W,C] */
static inline graphi_value graphi_max_pool_grad(graphi_graph *graph, graphi_value a, graphi_value b, const int64_t
    *kernel, int kernel_count, const int64_t *strides, int strides_count, const int64_t *pads, int pads_count, int64_t
    ceil_mode, const int64_t *size, int size_count)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_ints("kernel", kernel, kernel_count),
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_int("ceil_mode", ceil_mode),
        graphi_ints("size", size, size_count),
    };
    return graphi_op(graph, "max_pool_grad", 2, input, 5, attribute);
}

/* mean of each window of an image [N,H,W,C]: [N,H,W,C] to [N,OH,OW,C] */
static inline graphi_value graphi_avg_pool(graphi_graph *graph, graphi_value a, const int64_t *kernel, int kernel_count,
    const int64_t *strides, int strides_count, const int64_t *pads, int pads_count, int64_t ceil_mode, int64_t
    count_include_pad)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("kernel", kernel, kernel_count),
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_int("ceil_mode", ceil_mode),
        graphi_int("count_include_pad", count_include_pad),
    };
    return graphi_op(graph, "avg_pool", 1, input, 5, attribute);
}

/* gradient of avg_pool from dy and the size of x: dy [N,OH,OW,C] to [N,H,W,C] */
static inline graphi_value graphi_avg_pool_grad(graphi_graph *graph, graphi_value a, const int64_t *kernel, int
    kernel_count, const int64_t *strides, int strides_count, const int64_t *pads, int pads_count, int64_t ceil_mode,
    int64_t count_include_pad, const int64_t *size, int size_count)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("kernel", kernel, kernel_count),
        graphi_ints("strides", strides, strides_count),
        graphi_ints("pads", pads, pads_count),
        graphi_int("ceil_mode", ceil_mode),
        graphi_int("count_include_pad", count_include_pad),
        graphi_ints("size", size, size_count),
    };
    return graphi_op(graph, "avg_pool_grad", 1, input, 6, attribute);
}

/* mean of each channel of an image: [N,H,W,C] to [N,C] */
static inline graphi_value graphi_global_avg_pool(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "global_avg_pool", 1, input, 0, NULL);
}

/* gradient of global_avg_pool from dy and the size of x: dy [N,C] to [N,H,W,C] */
static inline graphi_value graphi_global_avg_pool_grad(graphi_graph *graph, graphi_value a, const int64_t *size, int
    size_count)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("size", size, size_count),
    };
    return graphi_op(graph, "global_avg_pool_grad", 1, input, 1, attribute);
}

/* batch normalization over all but the last dimension: x, scale, bias to y, mean, inv_std; these two have no gradient:
 * x [rows,...,C], scale [C], bias [C] to y like x, mean [C], inv_std [C] */
static inline graphi_value graphi_batch_norm(graphi_graph *graph, graphi_value a, graphi_value b, graphi_value c, double
    epsilon)
{
    graphi_value input[] = {a, b, c};
    graphi_attribute attribute[] = {
        graphi_float("epsilon", epsilon),
    };
    return graphi_op(graph, "batch_norm", 3, input, 1, attribute);
}

/* gradient of batch_norm: x, scale, mean, inv_std, dy to dx, dscale, dbias: x [rows,...,C], three of [C], dy like x to
 * dx like x, dscale [C], dbias [C] */
static inline graphi_value graphi_batch_norm_grad(graphi_graph *graph, graphi_value a, graphi_value b, graphi_value c,
    graphi_value d, graphi_value e)
{
    graphi_value input[] = {a, b, c, d, e};
    return graphi_op(graph, "batch_norm_grad", 5, input, 0, NULL);
}

/* normalization by given statistics: x, scale, bias, mean, var to y; these have no gradient: x [rows,...,C], four of
 * [C] to y like x */
static inline graphi_value graphi_batch_norm_inference(graphi_graph *graph, graphi_value a, graphi_value b, graphi_value
    c, graphi_value d, graphi_value e, double epsilon)
{
    graphi_value input[] = {a, b, c, d, e};
    graphi_attribute attribute[] = {
        graphi_float("epsilon", epsilon),
    };
    return graphi_op(graph, "batch_norm_inference", 5, input, 1, attribute);
}

/* local response normalization across channels: x (k + alpha / size * sum x^2)^-beta, over size channels around its
 * own; of an even size one more behind it than before, as ONNX: [...,C] to the same */
static inline graphi_value graphi_lrn(graphi_graph *graph, graphi_value a, int64_t size, double alpha, double beta,
    double k)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("size", size),
        graphi_float("alpha", alpha),
        graphi_float("beta", beta),
        graphi_float("k", k),
    };
    return graphi_op(graph, "lrn", 1, input, 4, attribute);
}

/* gradient of lrn from x and dy: x [...,C], dy the same, to the same */
static inline graphi_value graphi_lrn_grad(graphi_graph *graph, graphi_value a, graphi_value b, int64_t size, double
    alpha, double beta, double k)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_int("size", size),
        graphi_float("alpha", alpha),
        graphi_float("beta", beta),
        graphi_float("k", k),
    };
    return graphi_op(graph, "lrn_grad", 2, input, 4, attribute);
}

/* the same elements in another shape: [...] to [shape] */
static inline graphi_value graphi_reshape(graphi_graph *graph, graphi_value a, const int64_t *shape, int shape_count)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("shape", shape, shape_count),
    };
    return graphi_op(graph, "reshape", 1, input, 1, attribute);
}

/* dimensions in another order: output dimension i is input dimension perm[i]: [...] to the same sizes in that order */
static inline graphi_value graphi_transpose(graphi_graph *graph, graphi_value a, const int64_t *perm, int perm_count)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("perm", perm, perm_count),
    };
    return graphi_op(graph, "transpose", 1, input, 1, attribute);
}

/* arrays one after the other along an axis: sizes equal but along the axis, where they add up */
static inline graphi_value graphi_concat(graphi_graph *graph, int inputs, const graphi_value *input, int64_t axis)
{
    graphi_attribute attribute[] = {
        graphi_int("axis", axis),
    };
    return graphi_op(graph, "concat", inputs, input, 1, attribute);
}

/* an array cut along an axis into `outputs` parts: the first, which the others follow: [...] to the same but along the
 * axis */
static inline graphi_value graphi_split(graphi_graph *graph, graphi_value a, int64_t axis, const int64_t *sizes, int
    sizes_count, int64_t outputs)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("axis", axis),
        graphi_ints("sizes", sizes, sizes_count),
        graphi_int("outputs", outputs),
    };
    return graphi_op(graph, "split", 1, input, 3, attribute);
}

/* elements begin to end along an axis: [...] to the same but along the axis */
static inline graphi_value graphi_slice(graphi_graph *graph, graphi_value a, int64_t axis, int64_t begin, int64_t end)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("axis", axis),
        graphi_int("begin", begin),
        graphi_int("end", end),
    };
    return graphi_op(graph, "slice", 1, input, 3, attribute);
}

/* a border of constant elements: [...] to sizes with what is added */
static inline graphi_value graphi_pad(graphi_graph *graph, graphi_value a, const int64_t *before, int before_count,
    const int64_t *after, int after_count, double value)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_ints("before", before, before_count),
        graphi_ints("after", after, after_count),
        graphi_float("value", value),
    };
    return graphi_op(graph, "pad", 1, input, 3, attribute);
}

/* the same numbers in another element type; of floats towards 0, what is beyond the end of the range, NaN 0; to floats
 * the nearest, of whole numbers to 16 bits through float32; of whole numbers the low bits; to bool whether it is not 0:
 * [...] to the same */
static inline graphi_value graphi_cast(graphi_graph *graph, graphi_value a, int64_t dtype)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("dtype", dtype),
    };
    return graphi_op(graph, "cast", 1, input, 1, attribute);
}

/* a constant everywhere: to [shape] */
static inline graphi_value graphi_fill(graphi_graph *graph, const int64_t *shape, int shape_count, double value, int64_t
    dtype)
{
    graphi_value input[] = {GRAPHI_NONE};
    graphi_attribute attribute[] = {
        graphi_ints("shape", shape, shape_count),
        graphi_float("value", value),
        graphi_int("dtype", dtype),
    };
    return graphi_op(graph, "fill", 0, input, 3, attribute);
}

/* zeros of the input's type and shape: [...] to the same */
static inline graphi_value graphi_zeros_like(graphi_graph *graph, graphi_value a)
{
    graphi_value input[] = {a};
    return graphi_op(graph, "zeros_like", 1, input, 0, NULL);
}

/* rows of a table by ids: table [V,E], int32 ids [...] to [...,E] */
static inline graphi_value graphi_embedding(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "embedding", 2, input, 0, NULL);
}

/* gradient of embedding: ids, dy to the dense sum by id, in the order of the ids: int32 ids [...], dy [...,E] to
 * [rows,E] */
static inline graphi_value graphi_embedding_grad(graphi_graph *graph, graphi_value a, graphi_value b, int64_t rows)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_int("rows", rows),
    };
    return graphi_op(graph, "embedding_grad", 2, input, 1, attribute);
}

/* ids to rows of 0, with 1 where the column is the id: int32 ids [...] to [...,depth] */
static inline graphi_value graphi_one_hot(graphi_graph *graph, graphi_value a, int64_t depth)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("depth", depth),
    };
    return graphi_op(graph, "one_hot", 1, input, 1, attribute);
}

/* gradient of embedding as a list: the different ids in ascending order, then -1, and the sum of the rows of dy of
 * each, in the order of the ids: int32 ids [...], dy [...,E] to int32 list [n], [n,E]; n: ids, at most `rows` */
static inline graphi_value graphi_sparse_sum(graphi_graph *graph, graphi_value a, graphi_value b, int64_t rows)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_int("rows", rows),
    };
    return graphi_op(graph, "sparse_sum", 2, input, 1, attribute);
}

/* rows of a table by a list, 0 where it is -1: table [V,E], int32 list [n] to [n,E] */
static inline graphi_value graphi_sparse_get(graphi_graph *graph, graphi_value a, graphi_value b)
{
    graphi_value input[] = {a, b};
    return graphi_op(graph, "sparse_get", 2, input, 0, NULL);
}

/* the table with the rows of a list, which ascends, replaced; where graphi_assign gives it to that table, nothing else
 * is written: table [V,E], int32 list [n], [n,E] to [V,E] */
static inline graphi_value graphi_sparse_set(graphi_graph *graph, graphi_value a, graphi_value b, graphi_value c)
{
    graphi_value input[] = {a, b, c};
    return graphi_op(graph, "sparse_set", 3, input, 0, NULL);
}

/* sum of squares of the table of `rows` rows that has those of a list and 0 in all others: int32 list [n], [n,E] to []
 * */
static inline graphi_value graphi_sparse_squares(graphi_graph *graph, graphi_value a, graphi_value b, int64_t rows)
{
    graphi_value input[] = {a, b};
    graphi_attribute attribute[] = {
        graphi_int("rows", rows),
    };
    return graphi_op(graph, "sparse_squares", 2, input, 1, attribute);
}

/* keeps a core busy for some nanoseconds: any, to [] */
static inline graphi_value graphi_delay(graphi_graph *graph, int inputs, const graphi_value *input, int64_t nanoseconds)
{
    graphi_attribute attribute[] = {
        graphi_int("nanoseconds", nanoseconds),
    };
    return graphi_op(graph, "delay", inputs, input, 1, attribute);
}

/* the value, once a message has come: any, to the same */
static inline graphi_value graphi_wait_event(graphi_graph *graph, graphi_value a, int64_t event)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("event", event),
    };
    return graphi_op(graph, "wait_event", 1, input, 1, attribute);
}

/* the value; sends a message when it is there: any, to the same */
static inline graphi_value graphi_signal_event(graphi_graph *graph, graphi_value a, int64_t event)
{
    graphi_value input[] = {a};
    graphi_attribute attribute[] = {
        graphi_int("event", event),
    };
    return graphi_op(graph, "signal_event", 1, input, 1, attribute);
}

#ifdef __cplusplus
}
#endif
#endif
