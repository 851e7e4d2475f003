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
#include "passes/successor.h"

#include "base/hash.h"
#include "base/index.h"
#include "ops/conv.h"

#include <string.h>

struct use {
    int32_t node, weights;
    enum conv_form_keep keep;
    struct conv_form form;
    int32_t first;       /* use of the same form, perhaps this one; the rest is said there */
    int32_t sharing;     /* uses of the form */
    bool kept;           /* by one of them */
    graphi_value packed; /* GRAPHI_NONE: not made yet */
};

static bool same(const struct use *a, const struct use *b)
{
    const struct conv_form *f = &a->form, *g = &b->form;
    return a->weights == b->weights && f->algorithm == g->algorithm && f->direction == g->direction &&
           f->multiplicands == g->multiplicands && f->groups == g->groups;
}

/* Finds those of one form. */
static bool group(struct use *uses, size_t count)
{
    struct index forms = {0};
    bool enough = true;
    for (size_t i = 0; i < count && enough; i++) {
        const struct conv_form *form = &uses[i].form;
        uint64_t hash = hash_u64(hash_u64(HASH_START, (uint64_t)uses[i].weights),
                                 (uint64_t)form->algorithm << 8 | (uint64_t)form->direction);
        size_t seen = 0;
        int32_t first;
        while ((first = index_next(&forms, hash, &seen)) >= 0 && !same(&uses[first], &uses[i]))
            continue;
        enough = first >= 0 || index_add(&forms, hash, (int32_t)i);
        uses[i].first = first >= 0 ? first : (int32_t)i;
        uses[uses[i].first].sharing++;
        uses[uses[i].first].kept |= uses[i].keep == CONV_FORM_KEPT;
    }
    index_free(&forms);
    return enough;
}

static bool worthwhile(const graphi_graph *graph, const struct use *first)
{
    return first->sharing > 1 || (first->kept && !graph_value(graph, first->weights)->assigned);
}

/* Makes the form unless an earlier use has. Where one convolution keeps it, all others read what it keeps. */
static graphi_value packed_form(graphi_graph *graph, struct use *first, const struct use *use)
{
    if (first->packed != GRAPHI_NONE)
        return first->packed;
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
    const char *kind = first->kept ? "conv_pack" : "conv_points";
    first->packed = graphi_op(graph, kind, 1, &use->weights, 4, attributes);
    adopt(graph, id, &like);
    return first->packed;
}

static graphi_status rewrite(graphi_graph *graph, const struct use *use, graphi_value packed, struct value_map *map)
{
    const int64_t *w = graph_value(graph, use->weights)->type.dims;
    int64_t dims[4] = {w[0], w[1], w[2], w[3]};
    struct successor s;
    TRY(successor_begin(graph, use->node, 0, &s));
    s.input[1] = packed;
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
    graphi_status status = uses ? GRAPHI_OK : fail_memory("pack", nodes * sizeof *uses);
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        struct use *use = &uses[count];
        *use = (struct use){.node = (int32_t)i, .packed = GRAPHI_NONE};
        if (node->kind)
            use->keep = conv_node_form(graph, node, &about, &use->form);
        if (use->keep == CONV_FORM_NONE)
            continue;
        use->weights = conv_node_weights(node);
        count += graph_value(graph, use->weights)->kind == VALUE_PARAMETER || follows_from_kept(graph, use->weights);
    }
    if (status == GRAPHI_OK && !group(uses, count))
        status = fail_memory("pack", count * sizeof *uses);
    for (size_t i = 0; status == GRAPHI_OK && i < count; i++)
        if (worthwhile(graph, &uses[uses[i].first])) {
            graphi_value packed = packed_form(graph, &uses[uses[i].first], &uses[i]);
            status = graph->status == GRAPHI_OK ? rewrite(graph, &uses[i], packed, &map) : graph->status;
        }
    mem_free(uses);
    return map_end(&map, graph, status);
}
