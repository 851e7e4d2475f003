/* SPDX-License-Identifier: Apache-2.0 */
/* See partners.h. */
#include "passes/partners.h"

#include "base/index.h"
#include "graph/op.h"

#include <string.h>

graphi_status partners_link(const graphi_graph *graph, const struct partner_rule *rule, int32_t *next)
{
    const int32_t nodes = (int32_t)graph->nodes.count;
    struct index index = {0};
    int32_t *last = mem_zalloc_array((size_t)nodes + 1, sizeof *last);
    bool enough = last != NULL;
    for (int32_t id = 0; id < nodes && enough; id++) {
        const struct node *node = graph_node(graph, id);
        next[id] = -1;
        last[id] = id;
        if (!rule->may(graph, node))
            continue;
        const uint64_t hash = rule->hash(graph, node);
        size_t seen = 0;
        int32_t first = index_next(&index, hash, &seen);
        while (first >= 0 && !rule->fit(graph, graph_node(graph, first), node))
            first = index_next(&index, hash, &seen);
        if (first < 0) {
            enough = index_add(&index, hash, id);
        } else {
            next[last[first]] = id;
            last[first] = id;
        }
    }
    index_free(&index);
    mem_free(last);
    return enough ? GRAPHI_OK : fail_memory("partners", (size_t)nodes * sizeof *last);
}

graphi_status wholes_open(graphi_graph *graph, struct wholes *out)
{
    const size_t size = (graph->values.count + 1) * sizeof *out->of;
    *out = (struct wholes){.graph = graph, .of = mem_alloc(size)};
    if (!out->of)
        return fail_memory("partners", size);
    memset(out->of, 0xff, size);
    return GRAPHI_OK;
}

void wholes_close(struct wholes *wholes) { mem_free(wholes->of); }

graphi_value whole_of(struct wholes *wholes, const graphi_value *part, int count, int axis)
{
    graphi_graph *graph = wholes->graph;
    const int32_t known = wholes->of[part[0]];
    if (known >= 0) {
        const struct node *node = graph_node(graph, graph_value(graph, known)->node);
        if (attr_int(node, "axis") == axis && node->inputs == count &&
            memcmp(node->input, part, (size_t)count * sizeof *part) == 0)
            return known;
    }
    const graphi_attribute along = {.name = "axis", .type = GRAPHI_INT, .i = axis};
    const graphi_value made = graphi_op(graph, "concat", count, part, 1, &along);
    if (graph->status == GRAPHI_OK)
        wholes->of[part[0]] = made;
    return made;
}
