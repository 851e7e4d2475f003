/* SPDX-License-Identifier: Apache-2.0 */
/* Algebraic identities that keep every bit (but the sign of a zero, and the order in which a slice is summed that was
 * copied before): x*1, x/1, x+0, x-0, identity, -(-x), a reshape or transposition that changes nothing, and chains of
 * them made one; one number repeated to an array, as the gradient of a mean is, where the operation would repeat it
 * anyway: beside an argument of the result's shape, and not among the terms of add_n, which are all of one shape; a
 * sum of arrays with borders of zeros that lie beside each other, as the gradient of the gates cut from one product
 * is, which is their concatenation. One sweep in array order, so chains of any length collapse. A rule gives the
 * value that stands for the node's output, or -1. A copy of a parameter stays where a run gives the parameter new
 * content: who reads the copy may come after that. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/program.h"

#include <string.h>

struct context {
    graphi_graph *graph;
    struct value_map *map;
    ARRAY(bool) passing; /* per value: the content of a parameter that takes a new one, or a view of it */
    ARRAY(bool) uniform; /* per value: a float32 constant with one number in all of its elements */
};

static int32_t input(const struct context *c, const struct node *node, int i)
{
    return map_follow(c->map, node->input[i]);
}

static const struct node *producer(const struct context *c, int32_t value)
{
    int32_t id = graph_value(c->graph, value)->node;
    return id < 0 || !graph_node(c->graph, id)->kind ? NULL : graph_node(c->graph, id);
}

/* Operations with a neutral element: on which side it may stand. */
static const struct neutral {
    enum program_op op;
    float number;
    bool left;
} neutrals[] = {{PROGRAM_MUL, 1, true}, {PROGRAM_DIV, 1, false}, {PROGRAM_ADD, 0, true}, {PROGRAM_SUB, 0, false}};

/* What an expanded scalar was expanded from, else the value itself. */
static int32_t unexpanded(const struct context *c, int32_t value)
{
    const struct node *node = producer(c, value);
    const int32_t from = node && node_is(node, IS_EXPAND) ? input(c, node, 0) : value;
    return graph_value(c->graph, from)->type.rank == 0 && !c->passing.data[from] ? from : value;
}

/* Of as many elements as folding makes at most. */
static bool constant_is_uniform(const struct value *v)
{
    enum { MOST = 1 << 18 };
    const int64_t count = type_count(&v->type);
    if (v->kind != VALUE_CONSTANT || v->type.dtype != GRAPHI_F32 || count < 1 || count > MOST)
        return false;
    const float *first = v->data;
    return memcmp(first, first + 1, (size_t)(count - 1) * sizeof *first) == 0;
}

/* The number that a constant has in each of its elements; NULL: it has not, or is none. */
static const float *only_number(const struct context *c, int32_t value)
{
    return c->uniform.data[value] ? graph_value(c->graph, value)->data : NULL;
}

static bool is_number(const struct context *c, int32_t value, float number)
{
    const int32_t from = unexpanded(c, value);
    const float *only = only_number(c, from);
    return only ? *only == number : constant_is(c->graph, from, number);
}

static int32_t elementwise_rule(const struct context *c, const struct node *node)
{
    if (!(node->kind->flags & OP_ELEMENTWISE))
        return -1;
    if (node->kind->program_op == PROGRAM_COPY || (node_has(node, OP_ADDS) && node->inputs == 1))
        return input(c, node, 0);
    if (node->kind->program_op == PROGRAM_NEG) {
        const struct node *inner = producer(c, input(c, node, 0));
        if (inner && inner->kind == node->kind)
            return input(c, inner, 0);
    }
    for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals && node->inputs == 2; i++) {
        if (node->kind->program_op != (int)neutrals[i].op)
            continue;
        if (is_number(c, input(c, node, 1), neutrals[i].number))
            return input(c, node, 0);
        if (neutrals[i].left && is_number(c, input(c, node, 0), neutrals[i].number))
            return input(c, node, 1);
    }
    return -1;
}

/* One number in every element of an argument: itself, if another argument has the shape of the result. */
static int32_t number_rule(const struct context *c, const struct node *node)
{
    enum { MOST = 3 };
    graphi_value in[MOST];
    int32_t full = 0, numbers = 0;
    bool is[MOST];
    if (!(node->kind->flags & OP_ELEMENTWISE) || node->kind->program_op >= PROGRAM_OPS || node->inputs > MOST)
        return -1;
    for (int k = 0; k < node->inputs; k++) {
        in[k] = input(c, node, k);
        is[k] = graph_value(c->graph, in[k])->type.rank > 0 &&
                (unexpanded(c, in[k]) != in[k] || only_number(c, in[k]));
        numbers += is[k];
        full += !is[k] && same_type(c->graph, in[k], node->output);
    }
    if (!numbers || !full)
        return -1;
    for (int k = 0; k < node->inputs; k++) {
        const int32_t from = is[k] ? unexpanded(c, in[k]) : in[k];
        in[k] = is[k] && from == in[k] ? graphi_constant(c->graph, GRAPHI_F32, 0, NULL, only_number(c, in[k])) : from;
    }
    return graphi_op(c->graph, node->kind->name, node->inputs, in, 0, NULL);
}

/* reshape(reshape(x)) = reshape(x): the outer one asks for its shape outright. */
static int32_t reshape_rule(const struct context *c, const struct node *node)
{
    if (!node_is(node, IS_RESHAPE))
        return -1;
    int32_t in = input(c, node, 0);
    if (same_type(c->graph, in, node->output))
        return in;
    const struct node *inner = producer(c, in);
    if (!inner || !node_is(inner, IS_RESHAPE))
        return -1;
    int32_t source = input(c, inner, 0);
    if (same_type(c->graph, source, node->output))
        return source;
    const struct value_type type = graph_value(c->graph, node->output)->type;
    if (type.symbol >= 0) /* the asked shape may name the middle one's sizes */
        return -1;
    graphi_attribute shape = {.name = "shape", .type = GRAPHI_INTS, .ints = type.dims, .count = type.rank};
    return graphi_op(c->graph, "reshape", 1, &source, 1, &shape);
}

static void permutation(const struct node *node, int rank, int64_t *perm)
{
    const int64_t *given;
    int count = attr_ints(node, "perm", &given);
    for (int i = 0; i < rank; i++)
        perm[i] = count ? given[i] : rank - 1 - i;
}

static int32_t transpose_rule(const struct context *c, const struct node *node)
{
    if (!node_is(node, IS_TRANSPOSE))
        return -1;
    int32_t in = input(c, node, 0);
    int rank = graph_value(c->graph, in)->type.rank;
    int64_t perm[GRAPHI_MAX_RANK], inner_perm[GRAPHI_MAX_RANK];
    permutation(node, rank, perm);
    const struct node *inner = producer(c, in);
    bool chained = inner && node_is(inner, IS_TRANSPOSE);
    if (chained) {
        permutation(inner, rank, inner_perm);
        for (int i = 0; i < rank; i++)
            perm[i] = inner_perm[perm[i]];
        in = input(c, inner, 0);
    }
    bool nothing = true;
    for (int i = 0; i < rank; i++)
        nothing &= perm[i] == i;
    if (nothing)
        return in;
    graphi_attribute attribute = {.name = "perm", .type = GRAPHI_INTS, .ints = perm, .count = rank};
    return chained ? graphi_op(c->graph, "transpose", 1, &in, 1, &attribute) : -1;
}

/* Where a value has its elements within zeros along one axis, the same for all parts; axis -1: not known yet. What a
 * parameter has before it takes a new content stays where it is read. */
static bool part_of(const struct context *c, int32_t value, int *axis, int64_t *begin, int32_t *part)
{
    const struct node *node = producer(c, value);
    const int64_t *before, *after;
    if (!node || !node_is(node, IS_PAD) || attr_float(node, "value") != 0)
        return false;
    const int rank = attr_ints(node, "before", &before);
    attr_ints(node, "after", &after);
    for (int i = 0; i < rank; i++)
        if (before[i] || after[i]) {
            if (*axis >= 0 && *axis != i)
                return false;
            *axis = i;
        }
    *part = input(c, node, 0);
    *begin = *axis >= 0 ? before[*axis] : 0;
    return *axis >= 0 && !c->passing.data[*part];
}

static int32_t parts_rule(const struct context *c, const struct node *node)
{
    enum { MOST_PARTS = 16 };
    int32_t part[MOST_PARTS], sorted[MOST_PARTS];
    int64_t begin[MOST_PARTS], end = 0;
    int axis = -1, count = 0;
    if (!node_has(node, OP_ADDS) || node->inputs > MOST_PARTS)
        return -1;
    for (int k = 0; k < node->inputs; k++) {
        const int32_t value = input(c, node, k);
        if (!same_type(c->graph, value, node->output) || !part_of(c, value, &axis, &begin[k], &part[k]))
            return -1;
    }
    for (int k = 0; k < node->inputs; k++)
        if (begin[k] == end) { /* the one that follows; then from the first again */
            end += graph_value(c->graph, part[k])->type.dims[axis];
            sorted[count++] = part[k];
            k = -1;
        }
    if (count != node->inputs || end != graph_value(c->graph, node->output)->type.dims[axis])
        return -1;
    const graphi_attribute along = {.name = "axis", .type = GRAPHI_INT, .i = axis};
    return graphi_op(c->graph, "concat", count, sorted, 1, &along);
}

static int32_t (*const rules[])(const struct context *, const struct node *) = {
    elementwise_rule, number_rule, reshape_rule, transpose_rule, parts_rule};

/* For values that there were not before, each after what it is a view of: walks up a chain of views would take the
 * square of its length, and a constant compared for each of its readers as much. No rule alters it: what stands for a
 * view is one of the same content, what stands for another node is not passing. */
static bool note_values(struct context *c)
{
    while (c->passing.count < c->graph->values.count) {
        int32_t value = (int32_t)c->passing.count;
        const struct node *node = producer(c, value);
        bool passing = node && node->kind->flags & OP_VIEW ? c->passing.data[input(c, node, 0)]
                                                           : graph_value(c->graph, value)->assigned;
        if (!array_push(&c->uniform, constant_is_uniform(graph_value(c->graph, value))) ||
            !array_push(&c->passing, passing))
            return false;
    }
    return true;
}

static graphi_status rewrite(struct context *c, int32_t id)
{
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        const struct node node = *graph_node(c->graph, id); /* rules append nodes */
        int32_t before = (int32_t)c->graph->nodes.count;
        int32_t value = rules[r](c, &node);
        TRY(c->graph->status);
        if (!note_values(c))
            return fail_memory("identities", c->graph->values.count);
        adopt(c->graph, before, &node);
        if (value < 0 || !same_type(c->graph, value, node.output) ||
            (!(node.kind->flags & OP_VIEW) && c->passing.data[value]))
            continue;
        TRY(map_set(c->map, c->graph, node.output, value));
        int32_t heir = graph_value(c->graph, value)->node;
        if (heir >= 0 && heir >= before)
            return graph_supersede(c->graph, id, heir);
        graph_kill(c->graph, id);
        return GRAPHI_OK;
    }
    return GRAPHI_OK;
}

graphi_status pass_identities(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    size_t nodes = graph->nodes.count;
    struct context c = {.graph = graph, .map = &map};
    graphi_status status = note_values(&c) ? GRAPHI_OK : fail_memory("identities", graph->values.count);
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        if (node->kind && node->outputs == 1 && graph_value(graph, node->output)->assigns < 0)
            status = rewrite(&c, (int32_t)i);
    }
    array_free(&c.passing);
    array_free(&c.uniform);
    return map_end(&map, graph, status);
}
