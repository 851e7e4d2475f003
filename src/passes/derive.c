/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from constants and from parameters that the graph does not update is marked: plans compute it once a
 * version of these parameters, not once a step (engine/compile/prepare.c). Before that, a scale of the columns of a
 * product or convolution that nobody else reads, whose weights are kept too, goes into the weights,
 *     (x W + b) s + c = x (W s) + (b s + c),
 * so that batch normalization by given statistics leaves nothing of itself but another bias. Rounds otherwise, as W s
 * is rounded. Usual case: the 20 to 100 normalizations of a residual network or of Inception in inference. Linear in
 * the graph. */
#include "passes/passes.h"
#include "passes/successor.h"

#include "graph/op.h"
#include "kernels/program.h"
#include "ops/build.h"
#include "ops/matmul.h"

struct deriver {
    graphi_graph *graph;
    struct uses uses;
    struct value_map map;
};

/* --- marks --- */

/* What is much larger than what it comes from (a broadcast) stays an operation, as in pass `fold`. */
enum { SMALL_BYTES = 64 << 10, MOST_GROWTH = 2 };

static bool grows(const graphi_graph *graph, const struct node *node)
{
    int64_t in = 0, out = 0, bytes = 0;
    for (int k = 0; k < node->inputs; k++)
        in += type_count(&graph_value(graph, node->input[k])->type);
    for (int k = 0; k < node->outputs; k++) {
        out += type_count(&graph_value(graph, node->output + k)->type);
        bytes += type_bytes(&graph_value(graph, node->output + k)->type);
    }
    return bytes > SMALL_BYTES && out > MOST_GROWTH * in;
}

static bool computable(const struct node *node)
{
    return node->kind && node->kind->bind && node->inputs && !node->regions && !node->afters &&
           !node_has(node, OP_RANDOM | OP_EFFECT) && !node_is(node, IS_RECURRENCE) &&
           !node_is(node, IS_RECURRENCE_GRADIENT) && !node_is(node, IS_VERTICES); /* loops of a team */
}

static bool is_derived(const struct deriver *d, const struct node *node)
{
    bool constant = true;
    if (!computable(node))
        return false;
    for (int k = 0; k < node->inputs; k++) {
        if (!follows_from_kept(d->graph, node->input[k]))
            return false;
        constant = constant && graph_value(d->graph, node->input[k])->kind == VALUE_CONSTANT;
    }
    for (int k = 0; k < node->outputs; k++) {
        const struct value *value = graph_value(d->graph, node->output + k);
        if (value->assigns >= 0 || value->type.symbol >= 0 || d->uses.output[node->output + k])
            return false;
    }
    return !constant && !grows(d->graph, node);
}

static void mark(struct deriver *d)
{
    for (size_t i = 0; i < d->graph->nodes.count; i++)
        d->graph->nodes.data[i].derived = is_derived(d, &d->graph->nodes.data[i]);
}

/* --- scales --- */

/* A float32 vector of `columns` that is kept. */
static bool is_vector(const graphi_graph *graph, int32_t value, int64_t columns)
{
    const struct value_type *type = &graph_value(graph, value)->type;
    return type->dtype == GRAPHI_F32 && type->rank == 1 && type->symbol < 0 && type->dims[0] == columns &&
           follows_from_kept(graph, value);
}

/* Whose result the value is, if nobody else reads it; NULL: several do, or nobody made it. */
static const struct node *only_maker(const struct deriver *d, int32_t value)
{
    const int32_t maker = graph_value(d->graph, value)->node;
    return maker >= 0 && uses_once(&d->uses, d->graph, value) ? graph_node(d->graph, maker) : NULL;
}

/* Does the node multiply what varies by kept weights, whose last dimension are the columns of its result? */
static bool is_weighted(const graphi_graph *graph, const struct node *node)
{
    const bool plain = node_is(node, IS_CONV) ? node->inputs == 2
                                              : is_plain_product(node) && product_pairs(node) == 1 &&
                                                    !product_trans_a(node) && !product_trans_b(node);
    if (!plain || node->outputs != 1 || node->derived || node->afters)
        return false;
    const struct value_type *w = &graph_value(graph, node->input[1])->type;
    const struct value_type *y = &graph_value(graph, node->output)->type;
    return w->dtype == GRAPHI_F32 && y->dtype == GRAPHI_F32 && w->rank == (node_is(node, IS_CONV) ? 4 : 2) &&
           w->dims[w->rank - 1] == y->dims[y->rank - 1] && follows_from_kept(graph, node->input[1]);
}

/* (host + bias) scale + offset */
struct scaled {
    int32_t node, host;               /* the last of the chain; the product or convolution */
    int32_t adder;                    /* of the bias; -1: there is none */
    graphi_value scale, bias, offset; /* GRAPHI_NONE: there is none */
};

static bool find_host(const struct deriver *d, int32_t value, int64_t columns, struct scaled *s)
{
    const struct node *maker = only_maker(d, value);
    s->bias = GRAPHI_NONE;
    s->adder = -1;
    if (maker && node_computes(maker, PROGRAM_ADD) && maker->inputs == 2)
        for (int k = 0; k < 2; k++)
            if (is_vector(d->graph, maker->input[k], columns)) {
                s->bias = maker->input[k];
                s->adder = graph_value(d->graph, value)->node;
                value = maker->input[1 - k];
                maker = only_maker(d, value);
                break;
            }
    if (!maker || !maker->kind || !is_weighted(d->graph, maker))
        return false;
    s->host = graph_value(d->graph, value)->node;
    return true;
}

static bool find_scaled(const struct deriver *d, int32_t id, struct scaled *s)
{
    const struct node *node = graph_node(d->graph, id);
    const bool adds = node_computes(node, PROGRAM_FMA);
    if (!node->kind || (!adds && !node_computes(node, PROGRAM_MUL)) || node->backward || node->derived)
        return false;
    const struct value_type *type = &graph_value(d->graph, node->output)->type;
    const int64_t columns = type->rank ? type->dims[type->rank - 1] : 0;
    if (adds && !is_vector(d->graph, node->input[2], columns))
        return false;
    *s = (struct scaled){.node = id, .offset = adds ? node->input[2] : GRAPHI_NONE};
    for (int k = 0; k < 2; k++)
        if (is_vector(d->graph, node->input[k], columns) &&
            type_equal(&graph_value(d->graph, node->input[1 - k])->type, type)) {
            s->scale = node->input[k];
            return find_host(d, node->input[1 - k], columns, s);
        }
    return false;
}

/* What is added to the product by scaled weights; GRAPHI_NONE: nothing. */
static graphi_value addend(graphi_graph *graph, const struct scaled *s)
{
    if (s->bias == GRAPHI_NONE)
        return s->offset;
    if (s->offset == GRAPHI_NONE)
        return build2(graph, "mul", s->bias, s->scale);
    return build3(graph, "fma", s->bias, s->scale, s->offset);
}

static graphi_status fold_scale(struct deriver *d, const struct scaled *s)
{
    graphi_graph *graph = d->graph;
    const struct node last = *graph_node(graph, s->node), host = *graph_node(graph, s->host);
    const int32_t before = (int32_t)graph->nodes.count;
    struct successor product;
    const graphi_value weights = build2(graph, "mul", host.input[1], s->scale), sum = addend(graph, s);
    TRY(graph->status);
    adopt(graph, before, &host);
    TRY(successor_begin(graph, s->host, 0, &product));
    product.input[1] = weights;
    TRY(successor_place(graph, &product, &d->map));
    graphi_value result = graph_node(graph, (int32_t)graph->nodes.count - 1)->output;
    const int32_t made = (int32_t)graph->nodes.count;
    if (sum != GRAPHI_NONE)
        result = build2(graph, "add", result, sum);
    TRY(graph->status);
    adopt(graph, made, &last);
    TRY(map_set(&d->map, graph, last.output, result));
    if (s->adder >= 0)
        TRY(graph_supersede(graph, s->adder, graph_value(graph, result)->node));
    return graph_supersede(graph, s->node, graph_value(graph, result)->node);
}

/* Marks are there already; what is appended gets its own at the end. */
static graphi_status fold_scales(struct deriver *d)
{
    const size_t nodes = d->graph->nodes.count;
    for (size_t i = 0; i < nodes; i++) {
        struct scaled s;
        if (find_scaled(d, (int32_t)i, &s))
            TRY(fold_scale(d, &s));
    }
    return map_end(&d->map, d->graph, GRAPHI_OK);
}

graphi_status pass_derive(graphi_graph *graph, const struct pass_options *options)
{
    struct deriver d = {.graph = graph};
    graphi_status status = uses_open(graph, &d.uses);
    if (!status) {
        mark(&d);
        status = fold_scales(&d);
    }
    mem_free(d.map.to);
    uses_close(&d.uses);
    if (!status)
        status = uses_open(graph, &d.uses);
    if (!status)
        mark(&d);
    uses_close(&d.uses);
    return status;
}
