/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of convolution weights as nodes: `conv_pack` makes panels or Winograd's points, one node for each (weights,
 * form), shared by all convolutions that read it; the engine makes the form of weights that do not change once for all
 * runs (OP_PACK). Points too large to be kept get a node only where several convolutions share them, `conv_points`,
 * which makes them in each step.
 *
 * Weights that are updated in the same graph get a node only where two convolutions share the form. With a single use
 * the kernel makes the same form once a step itself, in a phase of its own, on the same team, and a node would only add
 * a task: for 3 x 3 x 192 x 384 weights on 32 images of 4 x 4 pixels, where it weighs most, the points are 10.6 MB
 * written for 170 MFLOP, and moving that to a node saves none of it. */
#include "passes/passes.h"

#include "ops/conv.h"

#include <string.h>

struct use {
    int32_t node, weights;
    enum conv_form_keep keep;
    struct conv_form form;
    graphi_value packed; /* GRAPHI_NONE: not made yet */
};

static bool same(const struct use *a, const struct use *b)
{
    const struct conv_form *f = &a->form, *g = &b->form;
    return a->weights == b->weights && f->algorithm == g->algorithm && f->direction == g->direction &&
           f->multiplicands == g->multiplicands && f->groups == g->groups;
}

static bool is_updated(const graphi_graph *graph, int32_t parameter)
{
    for (size_t v = 0; v < graph->values.count; v++)
        if (graph->values.data[v].assigns == parameter)
            return true;
    return false;
}

/* Where one convolution keeps the form, all others of the same read what it keeps. */
static void keep_together(struct use *uses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (uses[k].keep == CONV_FORM_KEPT && same(&uses[i], &uses[k]))
                uses[i].keep = CONV_FORM_KEPT;
}

static bool worthwhile(const graphi_graph *graph, const struct use *uses, size_t count, const struct use *use)
{
    int sharing = 0;
    for (size_t i = 0; i < count; i++)
        sharing += same(&uses[i], use);
    return sharing > 1 || (use->keep == CONV_FORM_KEPT && !is_updated(graph, use->weights));
}

/* Makes the form unless an earlier use has. */
static graphi_value packed_form(graphi_graph *graph, struct use *uses, struct use *use)
{
    for (struct use *u = uses; u < use; u++)
        if (u->packed != GRAPHI_NONE && same(u, use))
            return u->packed;
    const struct value *weights = graph_value(graph, use->weights);
    struct node like = *graph_node(graph, use->node);
    like.scope = weights->name ? weights->name : like.scope;
    graphi_attribute attributes[] = {
        {.name = "algorithm", .type = GRAPHI_INT, .i = use->form.algorithm},
        {.name = "backward", .type = GRAPHI_INT, .i = use->form.direction == CONV_BACKWARD_DATA},
        {.name = "groups", .type = GRAPHI_INT, .i = use->form.groups},
        {.name = "dtype", .type = GRAPHI_INT, .i = use->form.multiplicands},
    };
    int32_t id = (int32_t)graph->nodes.count;
    const char *kind = use->keep == CONV_FORM_KEPT ? "conv_pack" : "conv_points";
    graphi_value packed = graphi_op(graph, kind, 1, &use->weights, 4, attributes);
    adopt(graph, id, &like);
    return packed;
}

static graphi_status rewrite(graphi_graph *graph, struct use *use, struct value_map *map)
{
    const int64_t *w = graph_value(graph, use->weights)->type.dims;
    int64_t dims[4] = {w[0], w[1], w[2], w[3]};
    struct successor s;
    TRY(successor_begin(graph, use->node, &s));
    s.input[1] = use->packed;
    successor_attribute(&s, "algorithm")->i = use->form.algorithm;
    graphi_attribute *window = successor_attribute(&s, "window");
    window->ints = dims;
    window->count = 4;
    return successor_place(graph, &s, map);
}

graphi_status pack_convolutions(graphi_graph *graph, const struct pass_options *options)
{
    const struct conv_node_options about = {options->isa, options->multiplicands, options->conv_error};
    size_t nodes = graph->nodes.count, count = 0;
    struct use *uses = mem_zalloc_array(nodes + 1, sizeof *uses);
    struct value_map map = {0};
    graphi_status status = uses && map_reach(&map, graph) ? GRAPHI_OK : fail_memory("pack", nodes * sizeof *uses);
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        struct use *use = &uses[count];
        *use = (struct use){.node = (int32_t)i, .packed = GRAPHI_NONE};
        if (node->kind)
            use->keep = conv_node_form(graph, node, &about, &use->form);
        if (use->keep == CONV_FORM_NONE)
            continue;
        use->weights = node->input[1];
        enum value_kind kind = graph_value(graph, use->weights)->kind;
        count += kind == VALUE_PARAMETER || kind == VALUE_CONSTANT;
    }
    if (status == GRAPHI_OK)
        keep_together(uses, count);
    for (size_t i = 0; status == GRAPHI_OK && i < count; i++)
        if (worthwhile(graph, uses, count, &uses[i])) {
            uses[i].packed = packed_form(graph, uses, &uses[i]);
            status = graph->status == GRAPHI_OK ? rewrite(graph, &uses[i], &map) : graph->status;
        }
    mem_free(uses);
    if (status == GRAPHI_OK)
        return map_apply(&map, graph);
    map_free(&map);
    return status;
}
