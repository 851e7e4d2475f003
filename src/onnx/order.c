/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of nodes (order.h): a walk from each node to those that make what it reads, with a stack of its own, so
 * that a chain of a million nodes needs no deep recursion. One thread builds a model. */
#include "onnx/order.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"
#include "onnx/scope.h"

#include <string.h>

enum state { NEW, OPEN, DONE };

struct frame {
    int node;
    size_t next; /* of its needs */
};

struct needs {
    size_t first, own, count; /* in the list: own inputs, then those of bodies */
};

struct order {
    const char *where;
    Onnx__NodeProto *const *nodes;
    struct scope makers; /* from a name to the node that makes it */
    ARRAY(int) list;     /* nodes needed, of one after the other */
    struct needs *needs;
    uint8_t *state;
    ARRAY(struct frame) stack;
    int *out;
    size_t done;
};

static bool need(struct order *o, int node, const char *name)
{
    const int maker = *name ? scope_own(&o->makers, name) : SCOPE_NOT;
    return maker == SCOPE_NOT || maker == node || array_push(&o->list, maker);
}

/* What bodies read from outside is among all that their nodes read. Messages bound how deep they are. */
static bool need_body(struct order *o, int node, const Onnx__GraphProto *body)
{
    bool good = true;
    for (size_t i = 0; i < body->n_node && good; i++) {
        const Onnx__NodeProto *n = body->node[i];
        for (size_t k = 0; k < n->n_input && good; k++)
            good = need(o, node, n->input[k]);
        for (size_t k = 0; k < n->n_attribute && good; k++)
            good = !n->attribute[k]->g || need_body(o, node, n->attribute[k]->g);
    }
    for (size_t i = 0; i < body->n_output && good; i++)
        good = !body->output[i]->name || need(o, node, body->output[i]->name);
    return good;
}

static graphi_status collect(struct order *o, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count && good; i++)
        for (size_t k = 0; k < o->nodes[i]->n_output && good; k++)
            if (*o->nodes[i]->output[k] && scope_own(&o->makers, o->nodes[i]->output[k]) == SCOPE_NOT)
                good = scope_add(&o->makers, o->nodes[i]->output[k], (int)i);
    for (size_t i = 0; i < count && good; i++) {
        const Onnx__NodeProto *n = o->nodes[i];
        o->needs[i].first = o->list.count;
        for (size_t k = 0; k < n->n_input && good; k++) {
            if (*n->input[k] && scope_own(&o->makers, n->input[k]) == (int)i)
                return fail(GRAPHI_INVALID, o->where,
                            "found that node \"%s\" reads its own result \"%s\", expected no "
                            "circle",
                            n->name ? n->name : "", n->input[k]);
            good = need(o, (int)i, n->input[k]);
        }
        o->needs[i].own = o->list.count - o->needs[i].first;
        for (size_t k = 0; k < n->n_attribute && good; k++)
            good = !n->attribute[k]->g || need_body(o, (int)i, n->attribute[k]->g);
        o->needs[i].count = o->list.count - o->needs[i].first;
    }
    return good ? GRAPHI_OK : fail_memory(o->where, o->list.count * sizeof(int));
}

/* A name in a body may be the body's own although a later node makes one that is called the same: what closes a circle
 * that way is no need. */
static graphi_status visit(struct order *o, int root)
{
    if (!array_push(&o->stack, ((struct frame){root, 0})))
        return fail_memory(o->where, sizeof(struct frame));
    o->state[root] = OPEN;
    while (o->stack.count) {
        struct frame *top = &o->stack.data[o->stack.count - 1];
        const struct needs *n = &o->needs[top->node];
        if (top->next == n->count) {
            o->state[top->node] = DONE;
            o->out[o->done++] = top->node;
            o->stack.count--;
            continue;
        }
        const bool own = top->next < n->own;
        const int to = o->list.data[n->first + top->next++];
        if (o->state[to] == OPEN && own)
            return fail(GRAPHI_INVALID, o->where, "found a circle through node \"%s\" (%s), expected none",
                        o->nodes[to]->name ? o->nodes[to]->name : "",
                        o->nodes[to]->op_type ? o->nodes[to]->op_type : "");
        if (o->state[to] != NEW)
            continue;
        o->state[to] = OPEN;
        if (!array_push(&o->stack, ((struct frame){to, 0})))
            return fail_memory(o->where, o->stack.count * sizeof(struct frame));
    }
    return GRAPHI_OK;
}

graphi_status order_nodes(const char *where, Onnx__NodeProto *const *nodes, size_t count, int *order)
{
    struct order o = {.where = where, .nodes = nodes, .out = order};
    o.needs = mem_zalloc_array(count + 1, sizeof *o.needs);
    o.state = mem_zalloc_array(count + 1, 1);
    graphi_status status = o.needs && o.state ? collect(&o, count) : fail_memory(where, count * sizeof *o.needs);
    for (size_t i = 0; i < count && status == GRAPHI_OK; i++)
        if (o.state[i] == NEW)
            status = visit(&o, (int)i);
    scope_free(&o.makers);
    array_free(&o.list);
    array_free(&o.stack);
    mem_free(o.needs);
    mem_free(o.state);
    return status;
}
