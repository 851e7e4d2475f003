/* SPDX-License-Identifier: Apache-2.0 */
/* What the backward pass reads of the forward pass is kept until then: an array a cell, written and read again from
 * memory. The backward pass makes it anew in its own programs instead, the same bits for arithmetic that hides behind
 * the loads, where
 *   - it follows by element-wise operations from small values alone (parameters of one row, a time a sample), or
 *   - from these and one array that the backward pass reads anyway, and only the operations around it read it in the
 * forward pass: they are one program there, in which it is no array. From several more would be read than is saved.
 * PhasedLSTM's gates are six arrays a cell; tanh of the state, one of LSTM's seven, follows from the state. Fusion
 * takes the copies in.
 *
 * A forward node has one copy at most, so the work at most doubles. Readers of parameters come to be in the backward
 * pass: the edges that hold updates back are made anew at the end. Linear in the graph, and without recursion: a chain
 * of element-wise operations may be as long as the graph. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"

enum { SMALLER = 16 }; /* a small value has at most one element for so many */

struct making { /* a value that is about to be copied: its inputs before `next` are */
    int32_t value;
    int next;
};

struct recompute {
    graphi_graph *graph;
    struct uses uses;
    bool *kept;            /* per value: in memory when the backward pass runs, whether it is read once more or not */
    int32_t *level;        /* per node: changes between element-wise operations and others on the way to it */
    bool *again;           /* per value: made for the backward pass rather than kept */
    int32_t *base; /* per value made again: the array that it follows from, GRAPHI_NONE: from small values alone */
    int32_t *copy;         /* per value: made for the backward pass, -1: not yet */
    ARRAY(struct making) going; /* the values whose copies wait for that of the last */
};

static bool is_small(const struct recompute *r, int32_t value, int32_t beside)
{
    return type_count(&graph_value(r->graph, value)->type) <=
           type_count(&graph_value(r->graph, beside)->type) / SMALLER;
}

static bool is_elementwise(const struct node *node)
{
    return node->kind && (node->kind->flags & OP_ELEMENTWISE) && node->outputs == 1 && !node->regions;
}

static int32_t level_of(const struct recompute *r, const struct node *node)
{
    int32_t level = 0;
    for (int k = 0; k < node->inputs; k++) {
        int32_t producer = graph_value(r->graph, node->input[k])->node;
        if (producer < 0)
            continue;
        bool together = is_elementwise(node) && is_elementwise(graph_node(r->graph, producer));
        int32_t least = r->level[producer] + !together;
        level = least > level ? least : level;
    }
    return level;
}

static void mark_kept(struct recompute *r, size_t values)
{
    for (size_t v = 0; v < values; v++)
        r->kept[v] = graph_value(r->graph, (int32_t)v)->kind != VALUE_RESULT;
    for (size_t i = 0; i < r->graph->nodes.count; i++) {
        const struct node *node = graph_node(r->graph, (int32_t)i);
        for (int k = 0; node->backward && k < node->inputs; k++)
            r->kept[node->input[k]] = true;
    }
}

/* Do only programs read the node's result, in the forward pass the one that it belongs to itself? */
static bool stays_inside(const struct recompute *r, const struct node *node)
{
    const struct value *value = graph_value(r->graph, node->output);
    int32_t level = r->level[value->node];
    if (r->uses.output[node->output])
        return false;
    for (int32_t u = r->uses.begin[node->output]; u < r->uses.begin[node->output + 1]; u++) {
        const struct node *reader = graph_node(r->graph, r->uses.list[u]);
        if (!is_elementwise(reader) || !type_equal(&graph_value(r->graph, reader->output)->type, &value->type) ||
            (!reader->backward && r->level[r->uses.list[u]] != level))
            return false;
    }
    return true;
}

/* Finds the one array that the node's result follows from; false where there are several or it is not kept. */
static bool find_base(const struct recompute *r, const struct node *node, int32_t *base)
{
    *base = GRAPHI_NONE;
    for (int k = 0; k < node->inputs; k++) {
        int32_t from = node->input[k];
        if (is_small(r, from, node->output))
            continue;
        if (!r->again[from] && !r->kept[from])
            return false;
        from = r->again[from] ? r->base[from] : from;
        if (from != GRAPHI_NONE && *base != GRAPHI_NONE && from != *base)
            return false;
        *base = from != GRAPHI_NONE ? from : *base;
    }
    return true;
}

static void decide(struct recompute *r, const struct node *node)
{
    int32_t base;
    if (node->backward || !is_elementwise(node) || graph_value(r->graph, node->output)->assigns >= 0 ||
        !find_base(r, node, &base) || (base != GRAPHI_NONE && !stays_inside(r, node)))
        return;
    r->again[node->output] = true;
    r->base[node->output] = base;
}

/* Is the copy of `value` made from one of `input`, not from the input itself? */
static bool is_inner(const struct recompute *r, int32_t input, int32_t value)
{
    return r->again[input] && !is_small(r, input, value);
}

/* Copies the node that makes `value` for `reader`; the copies of its inner inputs are there. */
static graphi_status copy_one(struct recompute *r, int32_t value, int32_t reader)
{
    const struct node made = *graph_node(r->graph, graph_value(r->graph, value)->node);
    graphi_value *input = mem_zalloc_array((size_t)made.inputs + 1, sizeof *input);
    if (!input)
        return fail_memory("recompute", sizeof *input * (size_t)made.inputs);
    for (int k = 0; k < made.inputs; k++)
        input[k] = is_inner(r, made.input[k], value) ? r->copy[made.input[k]] : made.input[k];
    int32_t first = (int32_t)r->graph->nodes.count;
    graphi_value result =
        graphi_op(r->graph, made.kind->name, made.inputs, input, made.attributes, made.attribute);
    mem_free(input);
    TRY(r->graph->status);
    adopt(r->graph, first, graph_node(r->graph, reader));
    r->copy[value] = result;
    return GRAPHI_OK;
}

/* The next inner input of the value that has no copy yet, GRAPHI_NONE: all have one. */
static int32_t next_inner(const struct recompute *r, struct making *making)
{
    const struct node *made = graph_node(r->graph, graph_value(r->graph, making->value)->node);
    while (making->next < made->inputs) {
        int32_t input = made->input[making->next++];
        if (is_inner(r, input, making->value) && r->copy[input] < 0)
            return input;
    }
    return GRAPHI_NONE;
}

/* Copies what makes `value` for `reader`, unless that is done: inputs first, in their order. */
static graphi_status copy_for(struct recompute *r, int32_t value, int32_t reader)
{
    bool enough = r->copy[value] >= 0 || array_push(&r->going, ((struct making){.value = value}));
    while (enough && r->going.count) {
        struct making *last = &r->going.data[r->going.count - 1];
        int32_t inner = next_inner(r, last);
        if (inner != GRAPHI_NONE) {
            enough = array_push(&r->going, ((struct making){.value = inner}));
            continue;
        }
        TRY(copy_one(r, last->value, reader));
        r->going.count--;
    }
    return enough ? GRAPHI_OK : fail_memory("recompute", sizeof(struct making) * r->going.count);
}

static graphi_status redirect(struct recompute *r, int32_t reader)
{
    for (int k = 0; k < graph_node(r->graph, reader)->inputs; k++) {
        int32_t value = graph_node(r->graph, reader)->input[k];
        if (!r->again[value])
            continue;
        TRY(copy_for(r, value, reader));
        graph_node(r->graph, reader)->input[k] = r->copy[value];
    }
    return GRAPHI_OK;
}

static graphi_status run(struct recompute *r)
{
    size_t values = r->graph->values.count;
    int32_t nodes = (int32_t)r->graph->nodes.count;
    if (!r->level || !r->kept || !r->again || !r->base || !r->copy)
        return fail_memory("recompute", values * sizeof *r->copy);
    TRY(uses_open(r->graph, &r->uses));
    mark_kept(r, values);
    for (size_t v = 0; v < values; v++)
        r->copy[v] = -1;
    for (int32_t i = 0; i < nodes; i++)
        r->level[i] = level_of(r, graph_node(r->graph, i));
    for (int32_t i = 0; i < nodes; i++)
        decide(r, graph_node(r->graph, i));
    for (int32_t i = 0; i < nodes; i++)
        if (graph_node(r->graph, i)->backward)
            TRY(redirect(r, i));
    return GRAPHI_OK;
}

graphi_status pass_recompute(graphi_graph *graph, const struct pass_options *options)
{
    struct recompute r = {.graph = graph};
    size_t values = graph->values.count;
    r.level = mem_zalloc_array(graph->nodes.count + 1, sizeof *r.level);
    r.kept = mem_zalloc_array(values + 1, sizeof *r.kept);
    r.again = mem_zalloc_array(values + 1, sizeof *r.again);
    r.base = mem_zalloc_array(values + 1, sizeof *r.base);
    r.copy = mem_zalloc_array(values + 1, sizeof *r.copy);
    graphi_status status = run(&r);
    mem_free(r.level);
    uses_close(&r.uses);
    mem_free(r.kept);
    mem_free(r.again);
    mem_free(r.base);
    mem_free(r.copy);
    array_free(&r.going);
    return status == GRAPHI_OK ? pass_order(graph, options) : status;
}
