/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for placed nodes. A kernel may refuse a strided argument although its kind accepts such in general (a
 * convolution of groups, a broadcast that does not fold): the value then gets a dense place in another round of the
 * layout. Every round removes at least one strided value, and seldom is a second round needed. */
#include "base/status.h"
#include "engine/compile/bind.h"
#include "graph/op.h"

#include <string.h>

static bool strided(const struct place *place) { return place->buffer >= 0 && !array_is_dense(&place->desc); }

/* Asks for dense places of the node's strided arguments; false when it has none. One that another reader asked for in
 * this round is still strided; one asked for in an earlier round is not. */
static bool make_dense(struct layout *l, const struct node *node)
{
    bool any = false;
    for (int i = 0; i < node->inputs + node->outputs; i++) {
        int32_t value = i < node->inputs ? node->input[i] : node->output + i - node->inputs;
        if (strided(&l->compiled->place[value]))
            any = l->dense[value] = true;
    }
    return any;
}

static graphi_status bind_node(struct layout *l, int32_t id, struct array_desc *descs, size_t widest,
                               struct bound *bound, bool *again)
{
    struct compiled *c = l->compiled;
    const struct node *node = graph_node(c->graph, id);
    struct bind_call call;
    char where[160];
    bind_call_of(l, id, descs, descs + widest, where, sizeof where, &call);
    if (!node->kind->bind)
        return fail(GRAPHI_UNSUPPORTED, where, "found no kernel, expected one");
    *bound = (struct bound){.node = id, .inputs = node->inputs, .outputs = node->outputs, .workspace = -1};
    graphi_status status = node->kind->bind(&call, &bound->kernel);
    if (status == GRAPHI_UNSUPPORTED && make_dense(l, node)) {
        *again = true;
        return GRAPHI_OK;
    }
    return status;
}

void bound_free(struct bound *bound, size_t nodes)
{
    for (size_t n = 0; bound && n < nodes; n++)
        kernel_fini(&bound[n].kernel);
    mem_free(bound);
}

graphi_status bind_nodes(struct layout *l, struct bound **out)
{
    const graphi_graph *graph = l->compiled->graph;
    size_t nodes = graph->nodes.count, widest = graph_widest(graph);
    struct bound *bound = mem_zalloc_array(nodes + 1, sizeof *bound);
    struct array_desc *descs = mem_alloc(sizeof *descs * widest * 2);
    graphi_status status = bound && descs ? GRAPHI_OK : fail_memory("kernels", nodes * sizeof *bound);
    for (bool again = true; !status && again;) {
        again = false;
        for (size_t n = 0; n < nodes; n++)
            kernel_fini(&bound[n].kernel);
        status = layout_places(l);
        for (size_t n = 0; !status && n < nodes; n++)
            if (l->role[n] != ROLE_NONE)
                status = bind_node(l, (int32_t)n, descs, widest, &bound[n], &again);
    }
    mem_free(descs);
    if (status) {
        bound_free(bound, nodes);
        return status;
    }
    *out = bound;
    return GRAPHI_OK;
}

static bool add_argument(struct compiled *c, int32_t value)
{
    const struct place *place = &c->place[value];
    const struct value_type *type = &graph_value(c->graph, value)->type;
    struct argument argument = {.value = value, .buffer = place->buffer, .offset = place->offset,
                                .rows = type->rank ? type->dims[0] : 1, .symbol = type->symbol};
    return array_push(&c->arguments, argument);
}

graphi_status bind_arguments(struct compiled *c, struct bound *bound)
{
    const struct node *node = graph_node(c->graph, bound->node);
    bool enough = true;
    bound->argument = (int32_t)c->arguments.count;
    for (int i = 0; i < node->inputs; i++)
        enough = enough && add_argument(c, node->input[i]);
    for (int i = 0; i < node->outputs; i++)
        enough = enough && add_argument(c, node->output + i);
    return enough ? GRAPHI_OK : fail_memory("arguments", c->arguments.count * sizeof(struct argument));
}
