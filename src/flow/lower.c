/* SPDX-License-Identifier: Apache-2.0 */
/* What the lowerings share (lower.h): values in either order of dimensions, parameters, outputs. One thread lowers. */
#include "flow/lower.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { HELD = 1 << 30 };

static void last_perm(int rank, int64_t *perm)
{
    for (int i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

static void plain_perm(int rank, int64_t *perm)
{
    for (int i = 0; i < rank; i++)
        perm[i] = lower_axis(i, rank);
}

graphi_value lower_move(struct lowering *l, graphi_value value, int rank, const int64_t *perm)
{
    int64_t dims[GRAPHI_MAX_RANK], to[GRAPHI_MAX_RANK], before = -1;
    graphi_dtype dtype;
    int found;
    bool moves = false;
    if (value == GRAPHI_NONE || graphi_value_type(l->graph, value, &dtype, &found, dims) != GRAPHI_OK)
        return GRAPHI_NONE;
    for (int i = 0; i < rank; i++) {
        to[i] = dims[perm[i]];
        if (to[i] == 1)
            continue;
        moves = moves || perm[i] < before;
        before = perm[i];
    }
    return moves ? graphi_transpose(l->graph, value, perm, rank) : graphi_reshape(l->graph, value, to, rank);
}

graphi_value lower_floats_of(struct lowering *l, int rank, const int64_t *dims, const float *data)
{
    char name[32];
    snprintf(name, sizeof name, "p%d", l->parameters++);
    return graphi_parameter(l->graph, name, GRAPHI_F32, rank, dims, &(graphi_initializer){.data = data});
}

graphi_value lower_number(struct lowering *l, double number)
{
    const float one = (float)number;
    return graphi_constant(l->graph, GRAPHI_F32, 0, NULL, &one);
}

graphi_value lower_known(struct lowering *l, const graphi_tensor *known, const int64_t *perm)
{
    if (known->kind != GRAPHI_KIND_TENSOR || known->type != T_F32)
        return GRAPHI_NONE;
    if (known->count == 1)
        return graphi_constant(l->graph, GRAPHI_F32, known->rank, known->dims, known->data);
    if (!perm)
        return lower_floats_of(l, known->rank, known->dims, known->data);
    struct attribute order = {
        .name = "perm", .kind = ATTRIBUTE_INTS, .count = (size_t)known->rank, .ints = (int64_t *)perm};
    graphi_tensor *in = (graphi_tensor *)known, *out = NULL;
    struct op_call call = {.op = host_op_find("Transpose"),
                           .where = "lowering",
                           .ins = 1,
                           .outs = 1,
                           .in = &in,
                           .out = &out,
                           .attributes = &order,
                           .attribute_count = 1};
    if (host_op_run(&call) != GRAPHI_OK)
        return GRAPHI_NONE;
    const graphi_value value = lower_floats_of(l, out->rank, out->dims, out->data);
    value_drop(out);
    return value;
}

graphi_value lower_permuted(struct lowering *l, struct flow_value *value, const int64_t *perm)
{
    if (value->known)
        return lower_known(l, value->known, perm);
    return lower_move(l, lower_plain(l, value), value->like.rank, perm);
}

graphi_value lower_plain(struct lowering *l, struct flow_value *value)
{
    int64_t perm[GRAPHI_MAX_RANK];
    if (value->plain != GRAPHI_NONE)
        return value->plain;
    if (value->known)
        return value->plain = lower_known(l, value->known, NULL);
    plain_perm(value->like.rank, perm);
    return value->plain = lower_move(l, value->last, value->like.rank, perm);
}

graphi_value lower_last(struct lowering *l, struct flow_value *value)
{
    int64_t perm[GRAPHI_MAX_RANK];
    const int rank = value->known ? value->known->rank : value->like.rank;
    if (value->last != GRAPHI_NONE || rank < 3)
        return rank < 3 ? lower_plain(l, value) : value->last;
    last_perm(rank, perm);
    return value->last = lower_permuted(l, value, perm);
}

graphi_value lower_ranked(struct lowering *l, struct flow_value *value, int rank, bool last)
{
    int64_t dims[GRAPHI_MAX_RANK], perm[GRAPHI_MAX_RANK];
    const graphi_tensor *like = value->known ? value->known : &value->like;
    if (like->rank == rank || !last)
        return last ? lower_last(l, value) : lower_plain(l, value);
    for (int i = 0; i < rank; i++)
        dims[i] = i < rank - like->rank ? 1 : like->dims[i - (rank - like->rank)];
    const graphi_value plain = lower_plain(l, value);
    last_perm(rank, perm);
    return lower_move(l, plain == GRAPHI_NONE ? plain : graphi_reshape(l->graph, plain, dims, rank), rank, perm);
}

struct flow_value *lower_in(const struct lower_call *c, int i)
{
    return i < c->node->ins && c->node->in[i] >= 0 ? &c->l->values[c->node->in[i]] : NULL;
}

graphi_status lower_floats(const struct lower_call *c, int i)
{
    struct value_text text;
    const graphi_tensor *value = op_in(&c->call, i);
    if (value && value->kind == GRAPHI_KIND_TENSOR && value->type == T_F32)
        return GRAPHI_OK;
    return lower_fail(c, "found %s as input %d of %s, expected float32 for a plan", value_describe(value, &text), i,
                      c->node->type);
}

void lower_be_like(struct flow_value *value, graphi_element type, int rank, const int64_t *dims)
{
    value->computed = true;
    value->like.kind = GRAPHI_KIND_TENSOR;
    value->like.type = type;
    value->like.rank = rank;
    atomic_init(&value->like.references, HELD);
    memmove(value->like.dims, dims, (size_t)rank * sizeof *dims);
    value->like.count = dims_count(rank, dims, 4);
    value->like.bytes = (size_t)value->like.count * element_size(type);
}

graphi_status lower_set(struct lower_call *c, int i, graphi_value value, bool last)
{
    int64_t dims[GRAPHI_MAX_RANK], to[GRAPHI_MAX_RANK];
    graphi_dtype dtype;
    int rank;
    if (i >= c->node->outs || c->node->out[i] < 0)
        return GRAPHI_OK;
    TRY(graphi_graph_status(c->l->graph));
    if (value == GRAPHI_NONE)
        return lower_fail(c, "found operands of %s that no plan takes, expected float32", c->node->type);
    TRY(graphi_value_type(c->l->graph, value, &dtype, &rank, dims));
    struct flow_value *out = &c->l->values[c->node->out[i]];
    last = last && rank > 2;
    for (int k = 0; k < rank; k++)
        to[k] = dims[last ? lower_axis(k, rank) : k];
    *(last ? &out->last : &out->plain) = value;
    lower_be_like(out, T_F32, rank, to);
    return GRAPHI_OK;
}

void lower_free(struct lowering *l)
{
    for (size_t i = 0; l->values && i < l->model->values.count; i++)
        value_drop(l->values[i].known);
    mem_free(l->values);
    graphi_graph_destroy(l->graph);
    *l = (struct lowering){.model = l->model};
}
