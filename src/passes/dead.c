/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code: a node lives when an output, an effect or an update needs it. Edges that data flow does not show keep
 * nothing alive: they vanish with the nodes that they order. Also the selection of outputs, which decides what is
 * needed. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"

#include <string.h>

static bool is_root(const graphi_graph *graph, const struct node *node)
{
    if (node->kind->flags & OP_EFFECT)
        return true;
    for (int k = 0; k < node->outputs; k++)
        if (graph_value(graph, node->output + k)->assigns >= 0)
            return true;
    return false;
}

graphi_status pass_dead(graphi_graph *graph, const struct pass_options *options)
{
    bool *live = mem_zalloc_array(graph->nodes.count + 1, sizeof *live);
    if (!live)
        return fail_memory("dead", graph->nodes.count);
    for (size_t i = 0; i < graph->outputs.count; i++) {
        int32_t producer = graph_value(graph, graph->outputs.data[i].value)->node;
        if (producer >= 0)
            live[producer] = true;
    }
    for (int32_t id = (int32_t)graph->nodes.count - 1; id >= 0; id--) {
        const struct node *node = graph_node(graph, id);
        if (!live[id] && !is_root(graph, node)) {
            graph_kill(graph, id);
            continue;
        }
        for (int k = 0; k < node->inputs; k++)
            if (graph_value(graph, node->input[k])->node >= 0)
                live[graph_value(graph, node->input[k])->node] = true;
    }
    mem_free(live);
    return graph_compact(graph);
}

/* The length of the next name of a list, 0 after the last; `list` moves behind it. Blanks are part of a name only
 * within it. */
static size_t next_name(const char **list, const char **name)
{
    *list += strspn(*list, ", ");
    *name = *list;
    size_t size = strcspn(*list, ",");
    *list += size;
    while (size && (*name)[size - 1] == ' ')
        size--;
    return size;
}

static bool is_name(const char *name, const char *word, size_t size)
{
    return strlen(name) == size && strncmp(name, word, size) == 0;
}

static bool listed(const char *list, const char *name)
{
    const char *word;
    for (size_t size; (size = next_name(&list, &word));)
        if (is_name(name, word, size))
            return true;
    return false;
}

static graphi_status no_outputs(const graphi_graph *graph, const char *word, size_t size)
{
    struct expected_names names = {0};
    for (size_t i = 0; i < graph->outputs.count; i++)
        expect_name(&names, graph->outputs.data[i].name);
    return fail(GRAPHI_INVALID, "outputs", "found '%.*s', expected outputs of the graph: %s", (int)size, word,
                expected_text(&names));
}

static graphi_status check_names(const graphi_graph *graph, const char *list)
{
    const char *rest = list, *word;
    for (size_t size; (size = next_name(&rest, &word));) {
        bool known = false;
        for (size_t i = 0; i < graph->outputs.count; i++)
            known |= is_name(graph->outputs.data[i].name, word, size);
        if (!known)
            return no_outputs(graph, word, size);
    }
    return list[strspn(list, ", ")] ? GRAPHI_OK : no_outputs(graph, list, strlen(list));
}

graphi_status passes_select(graphi_graph *graph, const char *outputs, bool updates)
{
    if (outputs) {
        TRY(check_names(graph, outputs));
        size_t kept = 0;
        for (size_t i = 0; i < graph->outputs.count; i++)
            if (listed(outputs, graph->outputs.data[i].name))
                graph->outputs.data[kept++] = graph->outputs.data[i];
        graph->outputs.count = kept;
        graph_forget_names(graph);
    }
    if (updates)
        return GRAPHI_OK;
    /* An assignment whose result is wanted becomes the value itself; the others lose their effect and die. */
    struct value_map map = {0};
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; status == GRAPHI_OK && i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        if (!node_is(node, IS_ASSIGN))
            continue;
        /* Which may be such a result itself. */
        status = map_set(&map, graph, node->output, map_follow(&map, node->input[1]));
        graph->values.data[graph_value(graph, node->output)->assigns].assigned = false;
        graph->values.data[node->output].assigns = -1;
        graph_kill(graph, (int32_t)i);
    }
    return map_end(&map, graph, status);
}
