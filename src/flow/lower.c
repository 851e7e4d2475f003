/* SPDX-License-Identifier: Apache-2.0 */
/* What the lowerings share (lower.h): values in either order of dimensions, parameters, outputs. One thread lowers. */
#include "flow/lower.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { HELD = 1 << 30, SMALL = 4096 };

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

graphi_value lower_kept(struct lower_call *c, const char *part, int rank, const int64_t *dims, const float *data)
{
    char name[48];
    graphi_tensor *content;
    int first = 0;
    while (first < c->node->outs - 1 && c->node->out[first] < 0)
        first++;
    snprintf(name, sizeof name, "n%d.%s", c->node->out[first], part);
    if (value_new(c->node->where, T_F32, rank, dims, &content) != GRAPHI_OK)
        return GRAPHI_NONE;
    memcpy(content->data, data, content->bytes);
    const graphi_value value = weights_parameter(&c->l->wanted, c->l->graph, name, content, NULL);
    value_drop(content);
    return value;
}

graphi_value lower_number(struct lowering *l, double number)
{
    const float one = (float)number;
    return graphi_constant(l->graph, GRAPHI_F32, 0, NULL, &one);
}

/* A literal of the graph: what is small, or belongs to these shapes alone. */
static graphi_value literal(struct lowering *l, const graphi_tensor *known)
{
    graphi_tensor *content;
    graphi_dtype dtype;
    if (element_as_carried(known, &content) != GRAPHI_OK)
        return GRAPHI_NONE;
    graphi_value value = GRAPHI_NONE;
    if (content->count && element_dtype(content->type, &dtype))
        value = graphi_constant(l->graph, dtype, content->rank, content->dims, content->data);
    value_drop(content);
    return value;
}

static graphi_value lower_known(struct lowering *l, const struct flow_value *value, const int64_t *perm)
{
    graphi_tensor *known = value->known;
    char name[24];
    if (known->kind != GRAPHI_KIND_TENSOR || !known->count)
        return GRAPHI_NONE;
    if (known->count == 1 || value->varies || (known->type != T_F32 && known->bytes <= SMALL)) {
        const graphi_value as_is = literal(l, known);
        return perm ? lower_move(l, as_is, known->rank, perm) : as_is;
    }
    snprintf(name, sizeof name, "c%d", (int)(value - l->values));
    return weights_parameter(&l->wanted, l->graph, name, known, perm);
}

/* A held value as an input of the graph. */
static graphi_value lower_held(struct lowering *l, struct flow_value *value)
{
    char name[24];
    graphi_dtype dtype;
    const int number = (int)(value - l->values);
    if (!element_dtype(value->like.type, &dtype) || !value->like.count || !array_push(&l->inputs, number))
        return GRAPHI_NONE;
    snprintf(name, sizeof name, "i%d", number);
    const graphi_value in = graphi_input(l->graph, name, dtype, value->like.rank, value->like.dims);
    const bool cast = value->like.type != T_F32 && element_is_carried(value->like.type);
    return cast ? graphi_cast(l->graph, in, GRAPHI_F32) : in;
}

graphi_value lower_permuted(struct lowering *l, struct flow_value *value, const int64_t *perm)
{
    if (value->known)
        return lower_known(l, value, perm);
    return lower_move(l, lower_plain(l, value), value->like.rank, perm);
}

graphi_value lower_plain(struct lowering *l, struct flow_value *value)
{
    int64_t perm[GRAPHI_MAX_RANK];
    if (value->plain != GRAPHI_NONE)
        return value->plain;
    if (value->known)
        return value->plain = lower_known(l, value, NULL);
    if (value->held)
        return value->plain = lower_held(l, value);
    plain_perm(value->like.rank, perm);
    return value->plain = lower_move(l, value->last, value->like.rank, perm);
}

graphi_value lower_last(struct lowering *l, struct flow_value *value)
{
    int64_t perm[GRAPHI_MAX_RANK];
    const int rank = lower_form(value)->rank;
    if (value->last != GRAPHI_NONE || rank < 3)
        return rank < 3 ? lower_plain(l, value) : value->last;
    last_perm(rank, perm);
    return value->last = lower_permuted(l, value, perm);
}

graphi_value lower_ranked(struct lowering *l, struct flow_value *value, int rank, bool last)
{
    int64_t dims[GRAPHI_MAX_RANK], perm[GRAPHI_MAX_RANK];
    const graphi_tensor *like = lower_form(value);
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
    if (value && value->kind == GRAPHI_KIND_TENSOR && value->count &&
        (value->type == T_F32 || value->type == T_F16 || value->type == T_BF16))
        return GRAPHI_OK;
    return lower_fail(c, "found %s as input %d of %s, expected floats of 16 or 32 bits for a plan",
                      value_describe(value, &text), i, c->node->type);
}

graphi_status lower_movable(const struct lower_call *c, int i)
{
    struct value_text text;
    graphi_dtype dtype;
    const graphi_tensor *value = op_in(&c->call, i);
    if (value && value->kind == GRAPHI_KIND_TENSOR && value->count && element_dtype(value->type, &dtype))
        return GRAPHI_OK;
    return lower_fail(c, "found %s as input %d of %s, expected numbers for a plan", value_describe(value, &text), i,
                      c->node->type);
}

graphi_status lower_constants(const struct lower_call *c, int i)
{
    for (; i < c->node->ins; i++)
        if (lower_in(c, i) && !lower_in(c, i)->known)
            return lower_fail(c, "found input %d of %s that is computed, expected a constant for a plan", i,
                              c->node->type);
    return GRAPHI_OK;
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

static graphi_element element_of(graphi_dtype dtype)
{
    graphi_dtype found;
    for (int e = 1; e < 32; e++)
        if (element_dtype((graphi_element)e, &found) && found == dtype)
            return (graphi_element)e;
    return T_F32;
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
        return lower_fail(c, "found operands of %s that no plan takes, expected others", c->node->type);
    TRY(graphi_value_type(c->l->graph, value, &dtype, &rank, dims));
    struct flow_value *out = &c->l->values[c->node->out[i]];
    last = last && rank > 2;
    for (int k = 0; k < rank; k++)
        to[k] = dims[last ? lower_axis(k, rank) : k];
    *(last ? &out->last : &out->plain) = value;
    lower_be_like(out, dtype == GRAPHI_F32 ? c->type : element_of(dtype), rank, to);
    return GRAPHI_OK;
}

graphi_status lower_set_bool(struct lower_call *c, int i, graphi_value value, bool last)
{
    c->type = T_BOOL;
    return lower_set(c, i, value, last);
}

graphi_status lower_output(struct lowering *l, int number, const char *name, graphi_dtype *dtype)
{
    struct flow_value *value = &l->values[number];
    graphi_value out = lower_plain(l, value);
    *dtype = GRAPHI_F32;
    if (element_dtype(value->like.type, dtype) && *dtype != GRAPHI_F32 && element_is_carried(value->like.type))
        out = graphi_cast(l->graph, out, *dtype);
    graphi_output(l->graph, name, out);
    return graphi_graph_status(l->graph);
}

graphi_status lower_begin(struct lowering *l)
{
    for (size_t i = 0; i < l->model->values.count; i++)
        l->values[i].plain = l->values[i].last = GRAPHI_NONE;
    return graphi_graph_create(&l->graph);
}

void lower_end(struct lowering *l)
{
    graphi_graph_destroy(l->graph);
    l->graph = NULL;
    weights_wanted_free(&l->wanted);
    array_free(&l->inputs);
}
