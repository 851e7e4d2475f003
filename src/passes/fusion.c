/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise fusion: connected element-wise nodes with results of one type become one `program` node.
 *
 * Groups must be convex: no path may leave a group and come back. Every node has a depth such that an edge between
 * different groups strictly raises it; nodes of one group share it. Then no cycle between groups can exist, and no
 * search is needed:
 *   1. in array order a node's depth is the greatest of its producers', plus one where the producer cannot be in its
 *      group; it joins the groups of its producers that have this depth, if the result keeps to the limits of programs;
 *   2. a node that one deeper group alone reads moves there where less is written and read then;
 *   3. from the deepest group on, a group all of whose other readers are deeper than one of its consumers is lowered to
 *      that consumer and joined with it (a mask that only the backward pass reads, say); consumers of one depth are
 *      joined first;
 *   4. groups of one depth that read the same value of their own shape are joined: it is read once for both.
 * Forward and backward nodes are not mixed: the forward pass would keep its operands alive until then.
 *
 * Sums over rows (the gradient of what was one value a column) end the programs that make their terms, which nobody may
 * store. An `assign` whose value is made in the group becomes an output that takes over the parameter's storage. Inputs
 * of smaller shapes are taken where program_accepts says so; scalar constants become immediate instructions. Usual
 * size: groups of 5 to 40 nodes; linear in the graph. */
#include "passes/fusion_group.h"
#include "passes/fusion_lower.h"
#include "passes/fusion_write.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/program.h"

#include <string.h>

static struct array_desc describe(const struct value *value)
{
    struct array_desc desc = array_dense(value->type.dtype, value->type.rank, value->type.dims);
    desc.bounded = value->type.symbol >= 0;
    return desc;
}

/* The value is made in the parameter's bytes: a program would write all of them. */
static bool replaces_rows(const graphi_graph *graph, const struct node *assign)
{
    const int32_t maker = graph_value(graph, assign->input[1])->node;
    return maker >= 0 && node_has(graph_node(graph, maker), OP_UPDATES);
}

static bool fusable(const struct fuser *f, const struct node *node)
{
    const graphi_graph *graph = f->graph;
    if (node_is(node, IS_ASSIGN)) /* a view of the parameter that the same program reads is a copy: layout.c */
        return graph_value(graph, node->input[0])->type.dtype == GRAPHI_F32 && !replaces_rows(graph, node);
    if (is_row_sum(graph, node))
        return true;
    if (!(node->kind->flags & OP_ELEMENTWISE) || node->regions || node->inputs > PROGRAM_MAX_INPUTS ||
        node->outputs != 1)
        return false;
    struct array_desc out = describe(graph_value(graph, node->output));
    if (out.dtype != GRAPHI_F32)
        return false;
    for (int k = 0; k < node->inputs; k++) {
        struct array_desc in = describe(graph_value(graph, node->input[k]));
        if (in.dtype != GRAPHI_F32 || !program_accepts(&in, &out))
            return false;
    }
    return true;
}

static void new_group(struct fuser *f, int32_t id)
{
    f->group[id] = f->count;
    f->next[id] = -1;
    f->groups[f->count++] = (struct group){id, id, 1, 0};
}

/* Calls visit for everything that precedes the node. */
static void take_depth(const struct fuser *f, int32_t before, int32_t id, int32_t *depth)
{
    int32_t least = f->depth[before] + !fusion_joins(f, before, id);
    *depth = least > *depth ? least : *depth;
}

enum { MOST_JOINED = 32 };

static int take_group(const struct fuser *f, int32_t before, int32_t id, int32_t depth, int32_t *groups, int count)
{
    if (!fusion_joins(f, before, id) || f->depth[before] != depth || count > MOST_JOINED ||
        listed(groups, count, f->group[before]))
        return count;
    groups[count] = f->group[before];
    return count + 1;
}

static void place(struct fuser *f, int32_t id)
{
    const struct node *node = graph_node(f->graph, id);
    int32_t depth = 0;
    if (fusable(f, node))
        new_group(f, id);
    for (int k = 0; k < node->inputs; k++)
        if (graph_value(f->graph, node->input[k])->node >= 0)
            take_depth(f, graph_value(f->graph, node->input[k])->node, id, &depth);
    for (int a = 0; a < node->afters; a++)
        take_depth(f, node->after[a], id, &depth);
    int32_t own = f->group[id];
    if (own >= 0) {
        int32_t groups[MOST_JOINED + 2] = {own};
        int count = 1;
        for (int k = 0; k < node->inputs; k++)
            if (graph_value(f->graph, node->input[k])->node >= 0)
                count = take_group(f, graph_value(f->graph, node->input[k])->node, id, depth, groups, count);
        for (int a = 0; a < node->afters; a++)
            count = take_group(f, node->after[a], id, depth, groups, count);
        if (count > 1 && (count > MOST_JOINED || !fusion_fits(f, groups, count, -1))) {
            depth++; /* an edge between groups raises the depth */
            count = 1;
        }
        f->groups[own].depth = depth;
        f->depth[id] = depth;
        for (int i = 1; i < count; i++)
            fusion_join(f, own, groups[i]);
    }
    f->depth[id] = depth;
}

/* Readers of one value that have one depth: the first takes the others in, as far as they fit. */
static void join_siblings(struct fuser *f)
{
    for (size_t v = 0; v < f->graph->values.count; v++) {
        const struct value_type *type = &graph_value(f->graph, (int32_t)v)->type;
        for (int32_t u = f->uses.begin[v]; u < f->uses.begin[v + 1]; u++) {
            int32_t one = f->uses.list[u];
            if (f->group[one] < 0 || !type_equal(type, fusion_domain(f, one)))
                continue;
            for (int32_t w = u + 1; w < f->uses.begin[v + 1] && w < u + MOST_JOINED; w++) {
                int32_t two = f->uses.list[w];
                if (f->group[two] != f->group[one] && fusion_alike(f, one, two) && f->depth[one] == f->depth[two] &&
                    fusion_fits(f, (int32_t[]){f->group[one], f->group[two]}, 2, -1))
                    fusion_join(f, f->group[one], f->group[two]);
            }
        }
    }
}

static graphi_status fuser_init(struct fuser *f, graphi_graph *graph)
{
    *f = (struct fuser){.graph = graph, .nodes = (int32_t)graph->nodes.count};
    size_t nodes = graph->nodes.count;
    f->depth = mem_zalloc_array(nodes * 3 + 4 * PROGRAM_MAX_INSTRUCTIONS, sizeof *f->depth);
    f->groups = mem_zalloc_array(nodes + 1, sizeof *f->groups);
    if (!f->depth || !f->groups)
        return fail_memory("fusion", nodes * sizeof *f->groups);
    f->group = f->depth + nodes;
    f->next = f->group + nodes;
    f->member = f->next + nodes;
    memset(f->group, 0xff, nodes * sizeof *f->group);
    return uses_open(graph, &f->uses);
}

graphi_status pass_fusion(graphi_graph *graph, const struct pass_options *options)
{
    struct fuser f;
    struct value_map map = {0};
    graphi_status status = fuser_init(&f, graph);
    for (int32_t id = 0; status == GRAPHI_OK && id < f.nodes; id++)
        place(&f, id);
    if (status == GRAPHI_OK)
        status = fusion_lower(&f);
    if (status == GRAPHI_OK)
        join_siblings(&f);
    if (status == GRAPHI_OK)
        status = fusion_write(&f, &map);
    mem_free(f.depth);
    uses_close(&f.uses);
    mem_free(f.groups);
    return map_end(&map, graph, status);
}
