/* SPDX-License-Identifier: Apache-2.0 */
/* Random training graphs of real operations for test_random_graphs.c, built through the public API: odd shapes of rank
 * 0 to 6, a bounded dimension 0, one value read twice by an operation, parameters shared by several, steps of recurrent
 * layers, sub-graphs, running statistics, losses, and an optimizer or plain gradients. Each step draws one operation
 * from random numbers of its own, so a graph of fewer steps is the beginning of a longer one with the same key.
 *
 * Values stay near 1 in magnitude (`keep`), so that what an operation computes wrongly is seen at the end. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "random_maker.h"

/* --- element by element --- */

static inline void step_unary(struct maker *m)
{
    static const char *const kinds[] = {"tanh", "sigmoid", "softplus", "relu", "abs",   "neg",  "identity",  "square",
                                        "exp",  "sqrt",    "rsqrt",    "log",  "floor", "step", "reciprocal"};
    const int i = place(m, 0), kind = (int)toss(m, 15);
    graphi_value v = m->pool[i].v;
    double size = m->pool[i].size;
    if (kind == 9 || kind == 10 || kind == 11 || kind == 14) { /* of what is 1 or more */
        v = op2(m, "add", op1(m, "square", v), number(m, 1));
        size = 1 + size * size;
    }
    v = op1(m, kinds[kind], v);
    keep(m, v, kind == 8 ? exp(size) : kind == 7 ? size * size : kind < 2 ? 1 : size + 1);
}

static inline graphi_value joined(struct maker *m, graphi_value a, graphi_value b)
{
    static const char *const kinds[] = {"add", "sub", "mul", "max", "min", "div", "pow", "mod", "less"};
    switch (toss(m, 12)) {
    case 5:
        return op2(m, "div", a, op2(m, "add", op1(m, "softplus", b), number(m, 0.5)));
    case 6:
        return op2(m, "pow", op2(m, "add", op1(m, "sigmoid", a), number(m, 0.5)), op1(m, "tanh", b));
    case 7:
        return op2(m, "mod", a, op2(m, "add", op1(m, "square", b), number(m, 2)));
    case 8:
        return graphi_select(m->g, op2(m, "less", a, b), b, a);
    default:
        return op2(m, kinds[toss(m, 5)], a, b);
    }
}

static inline void step_binary(struct maker *m)
{
    const int i = place(m, 0), k = place_like(m, i);
    const double a = m->pool[i].size, b = m->pool[k].size;
    keep(m, joined(m, m->pool[i].v, m->pool[k].v), fmax(a + b, fmax(a * b, 2 * a)));
}

/* With a weight, or a mean over some dimensions, that broadcasts. */
static inline void step_broadcast(struct maker *m)
{
    const int i = place(m, 0);
    const graphi_value a = m->pool[i].v;
    const struct value_type type = type_of(m, a);
    int64_t dims[GRAPHI_MAX_RANK], axes[GRAPHI_MAX_RANK];
    int skip = type.rank ? (int)toss(m, type.rank + 1) : 0, reduced = 0;
    graphi_value b;
    if (toss(m, 2)) {
        for (int d = skip; d < type.rank; d++)
            dims[d - skip] = (d == 0 && type.symbol >= 0) || !toss(m, 3) ? 1 : type.dims[d];
        b = weight(m, type.rank - skip, dims, 1);
    } else {
        for (int d = 0; d < type.rank; d++)
            if (toss(m, 2))
                axes[reduced++] = d;
        b = graphi_reduce_mean(m->g, a, axes, reduced, 1);
    }
    keep(m, toss(m, 2) ? joined(m, a, b) : op2(m, "mul", b, a), 2 * m->pool[i].size);
}

static inline void step_three(struct maker *m)
{
    const int i = place(m, 0), k = place_like(m, i), l = place_like(m, i);
    const graphi_value v[] = {m->pool[i].v, m->pool[k].v, m->pool[l].v, m->pool[i].v};
    const double a = m->pool[i].size, b = m->pool[k].size, c = m->pool[l].size;
    switch (toss(m, 3)) {
    case 0:
        keep(m, graphi_fma(m->g, v[0], v[1], v[2]), a * b + c);
        break;
    case 1:
        keep(m, graphi_select(m->g, op1(m, "step", v[0]), v[1], v[2]), b + c);
        break;
    default:
        keep(m, graphi_add_n(m->g, 2 + (int)toss(m, 3), v), 2 * a + b + c);
    }
}

/* --- products and images --- */

/* Bias and activation behind a product or convolution of k channels. */
static inline graphi_value activated(struct maker *m, graphi_value v, int64_t k)
{
    static const char *const kinds[] = {"relu", "tanh", "sigmoid", "softplus"};
    if (toss(m, 3))
        v = op2(m, "add", v, weight(m, 1, &k, 0.5));
    return toss(m, 3) ? op1(m, kinds[toss(m, 4)], v) : v;
}

static inline void step_matmul(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0)
        return;
    const graphi_value x = m->pool[i].v;
    const struct value_type type = type_of(m, x);
    const int64_t k = type.dims[type.rank - 1], rows = type_count(&type) / k, n = 1 + toss(m, toss(m, 3) ? 19 : 70);
    if (rows * n > MOST_ELEMENTS)
        return;
    const bool turned = toss(m, 3) == 0;
    const double size = 1 / sqrt((double)k);
    for (int branches = 1 + (toss(m, 3) == 0); branches--;) {
        graphi_value y;
        if (type.rank == 2 && type.symbol < 0 && !toss(m, 4)) { /* the weight on the left */
            const int64_t dims[] = {turned ? rows : n, turned ? n : rows};
            y = graphi_matmul(m->g, weight(m, 2, dims, 1 / sqrt((double)rows)), x, turned, 0);
        } else {
            const int64_t dims[] = {turned ? n : k, turned ? k : n};
            y = activated(m, graphi_matmul(m->g, x, weight(m, 2, dims, size), 0, turned), n);
        }
        keep(m, y, m->pool[i].size + 0.5);
    }
}

/* Both operands are the same value, or of one shape. */
static inline void step_gram(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0)
        return;
    const int k = place_like(m, i);
    const struct value_type type = type_of(m, m->pool[i].v);
    const int64_t rows = type.dims[type.rank - 2], columns = type.dims[type.rank - 1];
    const bool down = (type.rank == 2 && type.symbol >= 0) || toss(m, 2);
    const int64_t side = down ? columns : rows, terms = down ? rows : columns;
    if (type_count(&type) / rows / columns * side * side > MOST_ELEMENTS)
        return;
    graphi_value y = graphi_matmul(m->g, m->pool[i].v, m->pool[k].v, down, !down);
    keep(m, op2(m, "mul", y, number(m, 1 / (double)terms)), m->pool[i].size * m->pool[k].size);
}

static inline graphi_value as_image(struct maker *m, graphi_value v)
{
    return type_of(m, v).rank == 4 ? v : refold(m, v, 4);
}

static inline graphi_value image(struct maker *m, double *size)
{
    const int i = place(m, 0);
    *size = m->pool[i].size;
    return as_image(m, m->pool[i].v);
}

/* An image of bfloat16, made of an input, which is the same in every run: what noise moves would round to other numbers
 * now and then. */
static inline graphi_value rounded_image(struct maker *m, double *size)
{
    *size = 1;
    return graphi_cast(m->g, as_image(m, m->pool[toss(m, INPUTS)].v), GRAPHI_BF16);
}

static inline void step_conv(struct maker *m)
{
    double size;
    const graphi_value x = !m->body && toss(m, 4) == 0 ? rounded_image(m, &size) : image(m, &size);
    const struct value_type type = type_of(m, x);
    const int64_t *d = type.dims, groups = toss(m, 3) ? 1 : divisor(m, d[3]), c = d[3] / groups;
    const int64_t k = groups * (groups == d[3] && toss(m, 2) ? 1 : 1 + toss(m, groups > 1 ? 5 : 20));
    const bool plain = toss(m, 2); /* as Winograd's algorithm takes them */
    const int64_t kh = plain ? 3 : 1 + toss(m, 4), kw = plain ? 3 : 1 + toss(m, 4),
                  pad = toss(m, 2) ? kh / 2 : toss(m, kh);
    const int64_t stride = plain ? 1 : 1 + toss(m, 3), dilation = plain ? 1 : 1 + toss(m, 2);
    const int64_t pads[] = {pad, kw / 2, pad, kw / 2}, w_dims[] = {kh, kw, c, k};
    const int64_t high = d[1] + 2 * pad - (kh - 1) * dilation, wide = d[2] + kw / 2 * 2 - (kw - 1) * dilation;
    if (high < 1 || wide < 1 || d[0] * high * wide * k > 2 * MOST_ELEMENTS)
        return;
    m->convolves = true;
    for (int branches = 1 + (toss(m, 4) == 0); branches--;) {
        const graphi_value w = weight(m, 4, w_dims, 1.5 / sqrt((double)(kh * kw * c)));
        graphi_value y = graphi_conv2d(m->g, x, w, (int64_t[]){stride, stride}, 2, pads, 4,
                                       (int64_t[]){dilation, dilation}, 2, groups);
        keep(m, activated(m, y, k), size + 0.5);
    }
}

/* As the decoder of a network has them. */
static inline void step_transposed_conv(struct maker *m)
{
    double size;
    const graphi_value y = image(m, &size);
    const struct value_type type = type_of(m, y);
    const int64_t *d = type.dims, kernel = 1 + toss(m, 4), stride = 1 + toss(m, 2), pad = toss(m, kernel),
                  c = 1 + toss(m, 9);
    const int64_t back[] = {(d[1] - 1) * stride + kernel - 2 * pad, (d[2] - 1) * stride + kernel - 2 * pad};
    if (back[0] < 1 || back[1] < 1 || d[0] * back[0] * back[1] * c > 2 * MOST_ELEMENTS)
        return;
    const graphi_value w =
        weight(m, 4, (int64_t[]){kernel, kernel, c, d[3]}, 1 / sqrt((double)(kernel * kernel * d[3])));
    m->convolves = true;
    keep(m,
         graphi_conv2d_backward_data(m->g, y, w, (int64_t[]){stride, stride}, 2, (int64_t[]){pad, pad, pad, pad}, 4,
                                     (int64_t[]){1, 1}, 2, 1, back, 2),
         size);
}

static inline void step_pool(struct maker *m)
{
    double size;
    const graphi_value x = image(m, &size);
    const struct value_type type = type_of(m, x);
    const int64_t kernel[] = {1 + toss(m, 3), 1 + toss(m, 3)}, stride[] = {1 + toss(m, 3), 1 + toss(m, 3)};
    const int64_t up = toss(m, 2), top = toss(m, kernel[0]), left = toss(m, kernel[1]), pads[] = {top, left, 0, 0};
    if (type.dims[1] + top < kernel[0] || type.dims[2] + left < kernel[1])
        return;
    switch (toss(m, 5)) {
    case 0:
        keep(m, graphi_global_avg_pool(m->g, x), size);
        break;
    case 1:
        keep(m, graphi_avg_pool(m->g, x, kernel, 2, stride, 2, pads, 4, up, toss(m, 2)), size);
        break;
    default:
        keep(m, graphi_max_pool(m->g, x, kernel, 2, stride, 2, pads, 4, up), size);
    }
}

/* --- normalization, softmax, sums --- */

static inline void step_norm(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0)
        return;
    const graphi_value x = m->pool[i].v;
    const struct value_type type = type_of(m, x);
    const int64_t c = type.dims[type.rank - 1];
    switch (toss(m, 4)) {
    case 0:
        keep(m, graphi_lrn(m->g, x, 1 + toss(m, 6), 0.5, 0.75, 1.5), m->pool[i].size);
        break;
    case 1:
        keep(m,
             graphi_batch_norm_inference(m->g, x, weight(m, 1, &c, 1), weight(m, 1, &c, 1), constant(m, 1, &c, 0, 1),
                                         constant(m, 1, &c, 1, 0.5), 1e-3),
             2 * m->pool[i].size);
        break;
    default:
        keep(m, graphi_batch_norm(m->g, x, weight(m, 1, &c, 1), weight(m, 1, &c, 1), 0.1), 3);
    }
}

static inline void step_softmax(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    const bool logarithm = toss(m, 2);
    keep(m, op1(m, logarithm ? "log_softmax" : "softmax", m->pool[i].v),
         logarithm ? 2 * m->pool[i].size + log((double)type.dims[type.rank - 1]) : 1);
}

static inline void step_reduce(struct maker *m)
{
    static const char *const kinds[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_sum_squares"};
    const int i = place(m, 1), kind = (int)toss(m, 4);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    int64_t axes[GRAPHI_MAX_RANK], terms = 1;
    int count = 0;
    for (int d = 0; d < type.rank; d++)
        if (toss(m, 2)) {
            axes[count++] = d;
            terms *= type.dims[d];
        }
    if (count == 0)
        axes[count++] = 0, terms = type.dims[0];
    const graphi_attribute a[] = {graphi_ints("axes", axes, count), graphi_int("keepdims", toss(m, 2))};
    const double size = m->pool[i].size;
    keep(m, graphi_op(m->g, kinds[kind], 1, &m->pool[i].v, 2, a),
         kind == 0   ? size * (double)terms
         : kind == 3 ? size * size * (double)terms
                     : size);
}

/* --- moves --- */

static inline void step_reshape(struct maker *m)
{
    const int i = place(m, 0);
    const struct value_type type = type_of(m, m->pool[i].v);
    int rank = (int)toss(m, GRAPHI_MAX_RANK + 1);
    if (rank == 0 && type_count(&type) != 1)
        rank = 1;
    if (rank < 2 && type.symbol >= 0)
        rank = 2;
    keep(m, refold(m, m->pool[i].v, rank), m->pool[i].size);
}

static inline void step_transpose(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    int64_t perm[GRAPHI_MAX_RANK];
    const int fixed = type.symbol >= 0;
    for (int d = 0; d < type.rank; d++)
        perm[d] = d;
    for (int d = type.rank - 1; d > fixed; d--) {
        int other = fixed + (int)toss(m, d + 1 - fixed);
        int64_t kept = perm[d];
        perm[d] = perm[other];
        perm[other] = kept;
    }
    keep(m, graphi_transpose(m->g, m->pool[i].v, perm, type.rank), m->pool[i].size);
}

/* An axis that may be cut; -1: none. */
static inline int axis_of_parts(struct maker *m, const struct value_type *type)
{
    const int fixed = type->symbol >= 0;
    return type->rank > fixed ? fixed + (int)toss(m, type->rank - fixed) : -1;
}

static inline void step_slice(struct maker *m)
{
    const int i = place(m, 1);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    const int axis = axis_of_parts(m, &type);
    if (axis < 0)
        return;
    const int64_t begin = toss(m, type.dims[axis]), end = begin + 1 + toss(m, type.dims[axis] - begin);
    keep(m, graphi_slice(m->g, m->pool[i].v, axis, begin, end), m->pool[i].size);
}

static inline void step_split(struct maker *m)
{
    const int i = place(m, 1);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    const int axis = axis_of_parts(m, &type);
    if (axis < 0 || type.dims[axis] < 2)
        return;
    const double size = m->pool[i].size;
    const int64_t first = 1 + toss(m, type.dims[axis] - 1), sizes[] = {first, type.dims[axis] - first};
    graphi_value v = graphi_split(m->g, m->pool[i].v, axis, sizes, 2, 2);
    keep(m, v, size);
    if (toss(m, 3))
        keep(m, v + 1, size);
}

static inline void step_concat(struct maker *m)
{
    const int i = place(m, 1);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    const int axis = axis_of_parts(m, &type);
    if (axis < 0 || 3 * type_count(&type) > MOST_ELEMENTS)
        return;
    const int k = place_like(m, i);
    graphi_value part[] = {m->pool[i].v, m->pool[k].v, m->pool[i].v};
    if (toss(m, 2)) { /* parts of other sizes */
        part[2] = graphi_slice(m->g, part[2], axis, 0, 1 + toss(m, type.dims[axis]));
        if (toss(m, 2))
            part[2] = op1(m, "tanh", part[2]);
    }
    keep(m, graphi_concat(m->g, 2 + (int)toss(m, 2), part, axis), fmax(m->pool[i].size, m->pool[k].size));
}

static inline void step_pad(struct maker *m)
{
    const int i = place(m, 1);
    if (i < 0)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    int64_t before[GRAPHI_MAX_RANK] = {0}, after[GRAPHI_MAX_RANK] = {0};
    const int axis = axis_of_parts(m, &type);
    if (axis < 0 || 4 * type_count(&type) > MOST_ELEMENTS)
        return;
    before[axis] = toss(m, 3);
    after[type.rank - 1] += type.rank > 1 || type.symbol < 0 ? toss(m, 2) : 0;
    keep(m, graphi_pad(m->g, m->pool[i].v, before, type.rank, after, type.rank, toss(m, 2) ? 0 : 0.5), m->pool[i].size);
}

static inline void step_expand(struct maker *m)
{
    const int i = place(m, 0);
    graphi_value v = m->pool[i].v;
    struct value_type type = type_of(m, v);
    const bool rows = m->symbol && toss(m, 2), row = rows && type.symbol >= 0; /* of what is bounded; a weight's */
    if (row) {
        v = weight(m, 1, (int64_t[]){1 + toss(m, 9)}, 1);
        type = type_of(m, v);
    }
    if (type.symbol >= 0 || type.rank == GRAPHI_MAX_RANK)
        return;
    int64_t dims[GRAPHI_MAX_RANK] = {rows ? m->bound : 1 + toss(m, 4)};
    for (int d = 0; d < type.rank; d++)
        dims[d + 1] = type.dims[d] == 1 ? 1 + toss(m, 5) : type.dims[d];
    int64_t elements = 1;
    for (int d = 0; d <= type.rank; d++)
        elements *= dims[d];
    const graphi_attribute attributes[] = {graphi_ints("dims", dims, type.rank + 1),
                                           graphi_int("symbol", rows ? m->symbol_number : -1)};
    if (elements <= MOST_ELEMENTS)
        keep(m, graphi_op(m->g, "expand", 1, &v, 2, attributes), row ? 1 : m->pool[i].size);
}

/* --- what has a state, a draw or a body --- */

static inline void step_chance(struct maker *m)
{
    const int i = place(m, 1);
    if (i < 0 || !m->chance)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    if (type.symbol >= 0 || toss(m, 3))
        keep(m, graphi_dropout(m->g, m->pool[i].v, 0.7), m->pool[i].size / 0.7);
    else
        keep(m, op2(m, "add", m->pool[i].v, graphi_random_uniform(m->g, type.dims, type.rank, -0.5, 0.5)),
             m->pool[i].size + 0.5);
}

static inline graphi_value ids(struct maker *m, int rank, const int64_t *dims, int64_t below)
{
    m->below[m->named] = (int)below;
    return graphi_input(m->g, name_of(m, "ids"), GRAPHI_I32, rank, dims);
}

static inline void step_embedding(struct maker *m)
{
    if (m->body)
        return;
    const int64_t rows = 1 + toss(m, 40), columns = 1 + toss(m, 33);
    const int64_t dims[] = {m->symbol && toss(m, 2) ? m->symbol : 1 + toss(m, 9), 1 + toss(m, 5)};
    const graphi_value table = weight(m, 2, (int64_t[]){rows, columns}, 1);
    keep(m, graphi_embedding(m->g, table, ids(m, 1 + (int)toss(m, 2), dims, rows)), 1);
}

/* Steps over parts of the columns by the same weights: plain, or with two gates a product each. */
static inline void step_recurrent(struct maker *m)
{
    const int i = place(m, 2), times = 2 + (int)toss(m, 3), gates = toss(m, 2) ? 1 : 3;
    graphi_value x = i < 0 ? GRAPHI_NONE : m->pool[i].v, w[3], u[3], b[3], all[4], gate[3];
    struct value_type type = type_of(m, x);
    if (i >= 0 && type.rank > 2)
        x = refold(m, x, 2);
    type = type_of(m, x);
    if (i < 0 || type.dims[1] < times || type.dims[0] > 64)
        return;
    const int64_t each = type.dims[1] / times, h = 1 + toss(m, 17);
    for (int k = 0; k < gates; k++) {
        w[k] = weight(m, 2, (int64_t[]){each, h}, 1 / sqrt((double)each));
        u[k] = weight(m, 2, (int64_t[]){h, h}, 1 / sqrt((double)h));
        b[k] = weight(m, 1, &h, 0.5);
    }
    for (int t = 0; t < times; t++) {
        const graphi_value part = graphi_slice(m->g, x, 1, t * each, (t + 1) * each);
        for (int k = 0; k < gates; k++) {
            gate[k] = graphi_matmul(m->g, part, w[k], 0, 0);
            if (t)
                gate[k] = op2(m, "add", gate[k], graphi_matmul(m->g, all[t - 1], u[k], 0, 0));
            gate[k] = op1(m, k ? "sigmoid" : "tanh", op2(m, "add", gate[k], b[k]));
        }
        all[t] = gates == 1 ? gate[0] : op2(m, "mul", gate[0], gate[1]);
        if (gates > 1 && t)
            all[t] = op2(m, "add", all[t], op2(m, "mul", all[t - 1], gate[2]));
    }
    keep(m, toss(m, 2) ? all[times - 1] : graphi_concat(m->g, times, all, 1), gates == 1 ? 1 : 2);
}

/* A mean that is kept from run to run, read before it is updated, and sometimes beside its new content. */
static inline void step_statistic(struct maker *m)
{
    const int i = place(m, 1);
    if (i < 0 || m->body)
        return;
    const struct value_type type = type_of(m, m->pool[i].v);
    int64_t axes[GRAPHI_MAX_RANK];
    for (int d = 0; d < type.rank - 1; d++)
        axes[d] = d;
    if (type.rank < 2)
        return;
    const graphi_value now = graphi_reduce_mean(m->g, m->pool[i].v, axes, type.rank - 1, 0);
    const graphi_value kept = graphi_parameter(m->g, name_of(m, "s"), GRAPHI_F32, 1, &type.dims[type.rank - 1], NULL);
    graphi_freeze(m->g, kept);
    const graphi_value next = graphi_assign(
        m->g, kept, op2(m, "add", op2(m, "mul", kept, number(m, 0.9)), op2(m, "mul", now, number(m, 0.1))));
    if (toss(m, 2))
        graphi_output(m->g, name_of(m, "next"), op2(m, "sub", op1(m, "tanh", kept), next));
    if (toss(m, 2))
        keep(m, op2(m, "sub", m->pool[i].v, kept), 2 * m->pool[i].size);
}

/* A bias that is kept from run to run: a product meets what it was and what it has become, which could be there before
 * the product, were it not for the reader of what it was. */
static inline void step_kept_bias(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0 || m->body)
        return;
    const graphi_value x = m->pool[i].v;
    const struct value_type type = type_of(m, x);
    const int64_t k = type.dims[type.rank - 1], n = 1 + toss(m, 20);
    if (type_count(&type) / k * n > MOST_ELEMENTS)
        return;
    const graphi_value y = graphi_matmul(m->g, x, weight(m, 2, (int64_t[]){k, n}, 1 / sqrt((double)k)), 0, 0);
    const graphi_value kept = graphi_parameter(m->g, name_of(m, "s"), GRAPHI_F32, 1, &n,
                                               &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1});
    graphi_freeze(m->g, kept);
    const graphi_value next = graphi_assign(m->g, kept, op2(m, "mul", kept, number(m, 0.9)));
    graphi_output(m->g, name_of(m, "next"), op2(m, "mul", op1(m, "tanh", op2(m, "add", y, kept)), next));
}

/* A matrix that is kept from run to run: a product reads what it was, and meets what it has become, which is there
 * long before the product where it follows from the matrix alone. */
static inline void step_kept_matrix(struct maker *m)
{
    const int i = place(m, 2);
    if (i < 0 || m->body)
        return;
    const graphi_value x = m->pool[i].v;
    const struct value_type type = type_of(m, x);
    const int64_t k = type.dims[type.rank - 1], n = 1 + toss(m, 20), leading[] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (type_count(&type) / k * n > MOST_ELEMENTS)
        return;
    const graphi_value kept = graphi_parameter(
        m->g, name_of(m, "s"), GRAPHI_F32, 2, (int64_t[]){k, n},
        &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1 / sqrt((double)k), .b = 1 / sqrt((double)k)});
    graphi_freeze(m->g, kept);
    const graphi_value y = graphi_matmul(m->g, x, kept, 0, 0);
    graphi_value now = number(m, 0.05);
    if (toss(m, 2)) {
        now = graphi_reduce_mean(m->g, x, leading, type.rank - 1, 0);
        now = op2(m, "mul", graphi_reshape(m->g, now, (int64_t[]){k, 1}, 2), number(m, 0.1));
    }
    const graphi_value next = graphi_assign(m->g, kept, op2(m, "add", op2(m, "mul", kept, number(m, 0.9)), now));
    if (toss(m, 2))
        graphi_output(m->g, name_of(m, "next"),
                      op1(m, "tanh", op2(m, "add", y, graphi_reduce_mean(m->g, next, leading, 1, 0))));
    else
        keep(m, y, m->pool[i].size + 0.5);
}

static inline void grow(struct maker *m, int first, int last);

/* A sub-graph of one or two values. Its symbol has another number than the graph's; a value of several rows to one of
 * the symbol is no input. */
static inline void step_region(struct maker *m)
{
    const int wanted = 1 + (int)toss(m, 2), first = 100 * (1 + (int)m->step), from[] = {place(m, 0), place(m, 0)};
    graphi_value input[2];
    for (int k = 0; k < wanted; k++) {
        const struct value_type type = type_of(m, m->pool[from[k]].v);
        if (m->body || (type.symbol >= 0 && type.dims[0] != m->bound))
            return;
    }
    struct maker *inner = calloc(1, sizeof *inner);
    if (graphi_graph_create(&inner->g) != GRAPHI_OK) {
        free(inner);
        return;
    }
    inner->key = m->key;
    inner->step = (uint64_t)first;
    inner->noise = m->noise;
    inner->chance = m->chance;
    inner->body = true;
    for (int k = 0; k < wanted; k++) {
        struct value_type type = type_of(m, input[k] = m->pool[from[k]].v);
        if (type.symbol >= 0) {
            graphi_symbol(inner->g, "others", 3);
            type.dims[0] = inner->symbol = graphi_symbol(inner->g, "items", m->bound);
            inner->symbol_number = 1;
            inner->bound = m->bound;
        }
        inner->pool[inner->count].v = graphi_input(inner->g, k ? "b" : "a", type.dtype, type.rank, type.dims);
        inner->pool[inner->count++].size = m->pool[from[k]].size;
    }
    grow(inner, first, first + 3);
    if (inner->symbol && toss(m, 2))
        step_expand(inner);
    if (toss(m, 2))
        step_chance(inner);
    m->convolves |= inner->convolves;
    const int outputs = inner->count > wanted + 1 && toss(m, 2) ? 2 : 1;
    for (int k = 0; k < outputs; k++)
        graphi_output(inner->g, k ? "d" : "c", inner->pool[inner->count - 1 - k].v);
    graphi_value v = graphi_region(m->g, inner->g, wanted, input);
    for (int k = 0; k < outputs; k++)
        keep(m, v + k, inner->pool[inner->count - 1 - k].size);
    free(inner);
}

static void (*const steps[])(struct maker *) = {
    step_unary,  step_binary,  step_broadcast,       step_three,     step_matmul,    step_gram,
    step_conv,   step_conv,    step_transposed_conv, step_pool,      step_norm,      step_softmax,
    step_reduce, step_reshape, step_transpose,       step_slice,     step_split,     step_concat,
    step_pad,    step_expand,  step_chance,          step_embedding, step_recurrent, step_statistic,
    step_region, step_matmul,  step_binary,          step_broadcast, step_kept_bias, step_kept_matrix,
};

static inline void grow(struct maker *m, int first, int last)
{
    for (int s = first; s < last; s++) {
        m->step = (uint64_t)s;
        m->used = 0;
        steps[toss(m, sizeof steps / sizeof *steps)](m);
    }
}

/* --- whole graphs --- */

static inline graphi_value loss_of(struct maker *m, int i)
{
    const graphi_value v = m->pool[i].v;
    const struct value_type type = type_of(m, v);
    struct value_type labels = type;
    labels.dims[0] = type.symbol >= 0 ? m->symbol : type.dims[0];
    if (type.rank >= 2 && toss(m, 3) == 0 && (type.symbol < 0 || type.dims[0] == m->bound))
        return graphi_softmax_cross_entropy(m->g, v, ids(m, type.rank - 1, labels.dims, type.dims[type.rank - 1]));
    const int form = (int)toss(m, 3);
    if (form == 0)
        return graphi_reduce_mean(m->g, op1(m, "square", v), NULL, 0, 0);
    if (form == 1) /* its gradient follows from constants alone */
        return op2(m, "mul", graphi_reduce_sum(m->g, v, NULL, 0, 0), number(m, 1 / (double)type_count(&type)));
    labels.dims[0] = type.symbol >= 0 ? 1 : type.dims[0];
    return graphi_reduce_mean(m->g, op2(m, "mul", v, constant(m, type.rank, labels.dims, 0, 1)), NULL, 0, 0);
}

static inline void finish(struct maker *m)
{
    char name[24];
    graphi_value wrt[6], gradient[6], loss = op2(m, "mul", loss_of(m, m->count - 1), weight(m, 0, NULL, 1));
    for (int i = 0; i < 3; i++)
        loss = op2(m, "add", loss,
                   loss_of(m, i < 2 ? (int)toss(m, m->count) : m->count - 1 - (int)toss(m, m->count > 3 ? 3 : 1)));
    graphi_output(m->g, "loss", loss);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "out%d", i);
        graphi_output(m->g, name, m->pool[toss(m, m->count)].v);
    }
    if (toss(m, 3) == 0) {
        for (int i = 0; i < 6; i++)
            wrt[i] = m->shares && toss(m, 2) ? m->shared[toss(m, m->shares)] : m->pool[toss(m, m->count)].v;
        graphi_gradients(m->g, loss, 6, wrt, gradient);
        for (int i = 0; i < 6 && graphi_graph_status(m->g) == GRAPHI_OK; i++) {
            snprintf(name, sizeof name, "gradient%d", i);
            if (gradient[i] != GRAPHI_NONE)
                graphi_output(m->g, name, gradient[i]);
        }
    } else {
        const graphi_optimizer optimizer = {.kind = (graphi_optimizer_kind)toss(m, 4),
                                            .learning_rate = graphi_input(m->g, "rate", GRAPHI_F32, 0, NULL),
                                            .epsilon = 1e-3,
                                            .weight_decay = toss(m, 2) ? 0 : 0.01,
                                            .clip_norm = toss(m, 3) ? 0 : 0.5,
                                            .sparse = toss(m, 2) ? GRAPHI_DEFAULT : GRAPHI_OFF};
        graphi_minimize(m->g, loss, &optimizer);
    }
}

/* The graph of `key` with its first `count` steps. Its errors are those of the graph (graphi_graph_status). */
static inline graphi_graph *random_graph(uint64_t key, int count, double noise, struct maker *m)
{
    *m = (struct maker){.key = key, .step = END_OF_STEPS + 1, .noise = noise};
    if (graphi_graph_create(&m->g) != GRAPHI_OK)
        return NULL;
    m->chance = toss(m, 4) == 0;
    m->bound = toss(m, 3) ? 0 : 2 + toss(m, 9);
    m->symbol = m->bound ? graphi_symbol(m->g, "rows", m->bound) : 0;
    for (int i = 0; i < INPUTS; i++) {
        int64_t dims[GRAPHI_MAX_RANK], left = 1 << (6 + toss(m, 5));
        const int rank = i == 0 ? 2 : i == 1 ? 4 : (int)toss(m, GRAPHI_MAX_RANK + 1);
        for (int d = 0; d < rank; d++) {
            dims[d] = toss(m, 5) ? 1 + toss(m, left < 20 ? left : 20) : 1;
            left = left / dims[d] + 1;
        }
        if (rank > (i == 2) && m->symbol && (i == 0 || toss(m, 3)))
            dims[0] = m->symbol;
        const graphi_value v = graphi_input(m->g, i == 0 ? "x" : i == 1 ? "image" : "z", GRAPHI_F32, rank, dims);
        m->pool[m->count].v = v;
        m->pool[m->count++].size = 1;
    }
    grow(m, 0, count);
    m->step = END_OF_STEPS;
    m->used = 0;
    finish(m);
    return m->g;
}

#endif
