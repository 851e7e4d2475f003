/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of normalizations by statistics of the input, and of attention. One thread lowers. */
#include "flow/lower.h"

#include <math.h>
#include <string.h>

struct moments {
    graphi_value mean, inverse; /* 1 / sqrt(variance + epsilon) */
};

/* (x - mean) / sqrt(variance + epsilon) over axes of a value of that shape; `centred` false: x / sqrt(mean square). */
static graphi_value normalized(struct lower_call *c, graphi_value x, const int64_t *axes, int count, int64_t each,
                               double epsilon, bool centred, struct moments *out)
{
    graphi_graph *g = c->l->graph;
    struct moments m = {GRAPHI_NONE, GRAPHI_NONE};
    if (centred) {
        m.mean = graphi_reduce_mean(g, x, axes, count, 1);
        x = graphi_sub(g, x, m.mean);
    }
    graphi_value variance = graphi_reduce_sum_squares(g, x, axes, count, 1);
    variance = graphi_mul(g, variance, lower_number(c->l, 1.0 / (double)each));
    m.inverse = graphi_rsqrt(g, graphi_add(g, variance, lower_number(c->l, epsilon)));
    if (out)
        *out = m;
    return graphi_mul(g, x, m.inverse);
}

static graphi_status check_scale(struct lower_call *c, int i, int rank)
{
    if (!op_in(&c->call, i))
        return GRAPHI_OK;
    TRY(lower_floats(c, i));
    const graphi_tensor *x = c->call.in[0], *scale = c->call.in[i];
    for (int k = 0; k < scale->rank; k++)
        if (scale->rank > rank || (scale->dims[k] != 1 && scale->dims[k] != x->dims[x->rank - scale->rank + k]))
            return lower_fail(c, "found input %d of another shape, expected one that broadcasts to input 0", i);
    return GRAPHI_OK;
}

static graphi_status lower_layer(struct lower_call *c)
{
    int64_t axes[VALUE_RANK], each = 1;
    int axis, count = 0;
    struct moments m;
    TRY(lower_floats(c, 0));
    const graphi_tensor *x = c->call.in[0];
    const bool rms = c->node->type[0] == 'R';
    TRY(op_axis(&c->call, op_int(&c->call, "axis", -1), x->rank, &axis));
    for (int i = 1; i < 3; i++)
        TRY(check_scale(c, i, x->rank));
    for (int i = axis; i < x->rank; i++) {
        axes[count++] = i;
        each *= x->dims[i];
    }
    graphi_graph *g = c->l->graph;
    graphi_value y = normalized(c, lower_plain(c->l, lower_in(c, 0)), axes, count, each,
                                op_float(&c->call, "epsilon", 1e-5f), !rms, &m);
    if (op_in(&c->call, 1))
        y = graphi_mul(g, y, lower_plain(c->l, lower_in(c, 1)));
    if (op_in(&c->call, 2))
        y = graphi_add(g, y, lower_plain(c->l, lower_in(c, 2)));
    TRY(lower_set(c, 0, y, false));
    c->type = T_F32;
    if (rms)
        return GRAPHI_OK;
    TRY(lower_set(c, 1, m.mean, false));
    return lower_set(c, 2, m.inverse, false);
}

/* A vector [C] for an image with channels last, or in ONNX's order. */
static graphi_value of_channels(struct lower_call *c, int i, int rank, bool last)
{
    int64_t dims[VALUE_RANK] = {1, c->call.in[i]->count};
    for (int k = 2; k < rank; k++)
        dims[k] = 1;
    const graphi_value vector = lower_plain(c->l, lower_in(c, i));
    return last ? vector : graphi_reshape(c->l->graph, vector, dims, rank);
}

static graphi_status check_channels(struct lower_call *c)
{
    for (int i = 0; i < 3; i++)
        TRY(lower_floats(c, i));
    const graphi_tensor *x = c->call.in[0];
    for (int i = 1; i < 3; i++)
        if (x->rank < 3 || c->call.in[i]->rank != 1 || c->call.in[i]->count != x->dims[1])
            return lower_fail(c, "found other sizes than [C] as input %d, or another rank, expected [N, C, ...]", i);
    return GRAPHI_OK;
}

static graphi_status lower_instance(struct lower_call *c)
{
    int64_t axes[VALUE_RANK], each = 1;
    TRY(check_channels(c));
    const graphi_tensor *x = c->call.in[0];
    struct flow_value *in = lower_in(c, 0);
    const bool last = lower_is_last(in);
    for (int i = 2; i < x->rank; i++) {
        axes[i - 2] = last ? i - 1 : i;
        each *= x->dims[i];
    }
    graphi_graph *g = c->l->graph;
    graphi_value y = normalized(c, last ? in->last : lower_plain(c->l, in), axes, x->rank - 2, each,
                                op_float(&c->call, "epsilon", 1e-5f), true, NULL);
    y = graphi_mul(g, y, of_channels(c, 1, x->rank, last));
    return lower_set(c, 0, graphi_add(g, y, of_channels(c, 2, x->rank, last)), last);
}

static graphi_status lower_group(struct lower_call *c)
{
    static const int64_t axis = 2;
    TRY(check_channels(c));
    const graphi_tensor *x = c->call.in[0];
    const int64_t groups = op_int(&c->call, "num_groups", 0);
    if (groups < 1 || x->dims[1] % groups)
        return lower_fail(c, "found %lld groups of %lld channels, expected whole ones", (long long)groups,
                          (long long)x->dims[1]);
    const int64_t each = x->count / x->dims[0] / groups, dims[3] = {x->dims[0], groups, each};
    graphi_graph *g = c->l->graph;
    graphi_value y = graphi_reshape(g, lower_plain(c->l, lower_in(c, 0)), dims, 3);
    y = normalized(c, y, &axis, 1, each, op_float(&c->call, "epsilon", 1e-5f), true, NULL);
    y = graphi_reshape(g, y, x->dims, x->rank);
    y = graphi_mul(g, y, of_channels(c, 1, x->rank, false));
    return lower_set(c, 0, graphi_add(g, y, of_channels(c, 2, x->rank, false)), false);
}

/* x over its norm along an axis; 0 where that is 0. */
static graphi_status lower_lp(struct lower_call *c)
{
    int axis;
    TRY(lower_floats(c, 0));
    const graphi_tensor *x = c->call.in[0];
    TRY(op_axis(&c->call, op_int(&c->call, "axis", -1), x->rank, &axis));
    const int64_t p = op_int(&c->call, "p", 2), axes[1] = {axis};
    graphi_graph *g = c->l->graph;
    const graphi_value in = lower_plain(c->l, lower_in(c, 0)), zero = lower_number(c->l, 0);
    const graphi_value norm = p == 1 ? graphi_reduce_sum(g, graphi_abs(g, in), axes, 1, 1)
                                     : graphi_sqrt(g, graphi_reduce_sum_squares(g, in, axes, 1, 1));
    return lower_set(c, 0, graphi_select(g, graphi_equal(g, norm, zero), zero, graphi_div(g, in, norm)), false);
}

/* --- attention --- */

struct heads {
    int64_t batch, heads, length, size;
};

/* [batch, heads, length, size] of input i, which may be [batch, length, heads size]. */
static graphi_status find_heads(struct lower_call *c, int i, const char *attribute, struct heads *h, graphi_value *out)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    TRY(lower_floats(c, i));
    const graphi_tensor *x = c->call.in[i];
    const int64_t count = op_int(&c->call, attribute, 0);
    *out = lower_plain(c->l, lower_in(c, i));
    if (x->rank == 4) {
        *h = (struct heads){x->dims[0], x->dims[1], x->dims[2], x->dims[3]};
        return GRAPHI_OK;
    }
    if (x->rank != 3 || count < 1 || x->dims[2] % count)
        return lower_fail(c, "found input %d of rank %d, expected heads that fit", i, x->rank);
    *h = (struct heads){x->dims[0], count, x->dims[1], x->dims[2] / count};
    *out = graphi_reshape(c->l->graph, *out, (int64_t[]){h->batch, h->length, h->heads, h->size}, 4);
    *out = graphi_transpose(c->l->graph, *out, perm, 4);
    return GRAPHI_OK;
}

/* Each head of keys or values for as many of queries as share it. */
static graphi_value shared(graphi_graph *g, graphi_value x, const struct heads *h, int64_t heads)
{
    const int64_t apart[5] = {h->batch, h->heads, 1, h->length, h->size};
    const int64_t wide[5] = {h->batch, h->heads, heads / h->heads, h->length, h->size};
    if (heads == h->heads)
        return x;
    x = graphi_expand(g, graphi_reshape(g, x, apart, 5), wide, 5, NULL, 0);
    return graphi_reshape(g, x, (int64_t[]){h->batch, heads, h->length, h->size}, 4);
}

/* -inf where a key is not seen: by the mask, or because it comes later. */
static graphi_status hide(struct lower_call *c, const struct heads *q, const struct heads *k, graphi_value *scores)
{
    graphi_graph *g = c->l->graph;
    const graphi_value never = lower_number(c->l, -INFINITY);
    if (op_int(&c->call, "is_causal", 0)) {
        graphi_tensor *seen;
        const int64_t dims[2] = {q->length, k->length};
        TRY(value_new(c->node->where, T_F32, 2, dims, &seen));
        for (int64_t i = 0; i < seen->count; i++)
            ((float *)seen->data)[i] = i % k->length <= i / k->length;
        *scores = graphi_select(g, graphi_constant(g, GRAPHI_F32, 2, dims, seen->data), *scores, never);
        value_drop(seen);
    }
    const graphi_tensor *mask = op_in(&c->call, 3);
    if (!mask)
        return GRAPHI_OK;
    if (mask->rank < 1 || mask->rank > 4 || mask->dims[mask->rank - 1] != k->length)
        return lower_fail(c, "found a mask of other sizes, expected one that broadcasts to the scores");
    if (mask->type == T_BOOL) {
        *scores = graphi_select(g, lower_plain(c->l, lower_in(c, 3)), *scores, never);
        return GRAPHI_OK;
    }
    TRY(lower_floats(c, 3));
    *scores = graphi_add(g, *scores, lower_plain(c->l, lower_in(c, 3)));
    return GRAPHI_OK;
}

static graphi_status lower_attention(struct lower_call *c)
{
    struct heads q, k, v;
    graphi_value in[3];
    static const int64_t axis = 3, perm[4] = {0, 2, 1, 3};
    TRY(find_heads(c, 0, "q_num_heads", &q, &in[0]));
    TRY(find_heads(c, 1, "kv_num_heads", &k, &in[1]));
    TRY(find_heads(c, 2, "kv_num_heads", &v, &in[2]));
    for (int i = 4; i < c->call.ins; i++)
        if (c->call.in[i])
            return lower_fail(c, "found a cache of keys or lengths, expected none for a plan");
    if (q.batch != k.batch || k.batch != v.batch || k.heads != v.heads || q.heads % k.heads || q.size != k.size ||
        k.length != v.length || op_int(&c->call, "left_window_size", -1) >= 0 ||
        op_int(&c->call, "right_window_size", -1) >= 0)
        return lower_fail(c, "found batches, heads or sizes that do not fit, or a window, expected others");
    graphi_graph *g = c->l->graph;
    const double scale = op_float(&c->call, "scale", (float)(1 / sqrt((double)q.size)));
    const double cap = op_float(&c->call, "softcap", 0);
    const bool hides = op_in(&c->call, 3) != NULL;
    graphi_value scores = graphi_matmul(g, in[0], shared(g, in[1], &k, q.heads), 0, 1);
    scores = graphi_mul(g, scores, lower_number(c->l, scale));
    if (cap != 0)
        scores =
            graphi_mul(g, graphi_tanh(g, graphi_mul(g, scores, lower_number(c->l, 1 / cap))), lower_number(c->l, cap));
    TRY(hide(c, &q, &k, &scores));
    graphi_value weights = graphi_softmax(g, scores);
    if (hides) { /* a query that sees no key gives zeros */
        const graphi_value most = graphi_reduce_max(g, scores, &axis, 1, 1), none = lower_number(c->l, -INFINITY);
        weights = graphi_select(g, graphi_equal(g, most, none), lower_number(c->l, 0), weights);
    }
    graphi_value y = graphi_matmul(g, weights, shared(g, in[2], &v, q.heads), 0, 0);
    if (c->call.in[0]->rank == 3)
        y = graphi_reshape(g, graphi_transpose(g, y, perm, 4), (int64_t[]){q.batch, q.length, q.heads * v.size}, 3);
    return lower_set(c, 0, y, false);
}

const struct lower_row lower_norms[] = {
    {"LayerNormalization", lower_layer, NULL},
    {"RMSNormalization", lower_layer, NULL},
    {"InstanceNormalization", lower_instance, NULL},
    {"GroupNormalization", lower_group, NULL},
    {"LpNormalization", lower_lp, NULL},
    {"Attention", lower_attention, NULL},
    {0},
};
