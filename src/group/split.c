/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a training graph. Everything behind the gradients is known by the mark of graphi_minimize; whatever else a
 * graph assigns is statistics of the batch or belongs to its samples. Called by a solver's thread while it is made.
 * Usual size: 30 to 400 gradients. */
#include "group/split.h"

#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "graphi/run.h"

static const char where[] = "group";
static const char samples[] = "state/"; /* what parameters of samples are named like */

enum { ALIGNED_FLOATS = GRAPHI_ALIGNMENT / sizeof(float) };

/* A name of our own, which no graph has; NULL: no memory. */
static char *name_of(const char *what, const char *parameter)
{
    char name[700];
    snprintf(name, sizeof name, "group/%s/%.600s", what, parameter);
    return mem_string(name);
}

/* Replacements of values by what was appended, and of none by itself. */
struct map {
    int32_t *to;
    size_t count, room;
};

static graphi_status map_open(const graphi_graph *graph, struct map *map)
{
    map->room = 2 * graph->values.count + 16;
    map->to = mem_zalloc_array(map->room, sizeof *map->to);
    if (!map->to)
        return fail_memory(where, map->room * sizeof *map->to);
    for (size_t v = 0; v < map->room; v++)
        map->to[v] = (int32_t)v;
    return GRAPHI_OK;
}

/* Appending gives at most six values for one that was there, which a small graph has no room for twice. */
static graphi_status map_apply(struct map *map, graphi_graph *graph)
{
    if (graph->values.count > map->room) {
        int32_t *more = mem_resize(map->to, map->room * sizeof *more, graph->values.count * sizeof *more);
        if (!more)
            return fail_memory(where, graph->values.count * sizeof *more);
        map->to = more;
        for (; map->room < graph->values.count; map->room++)
            map->to[map->room] = (int32_t)map->room;
    }
    graph_remap(graph, map->to);
    return GRAPHI_OK;
}

/* --- what crosses --- */

static bool add_summed(struct split *s, const char *parameter, const struct value_type *type, bool two)
{
    struct summed summed = {.output = name_of("gradient", parameter),
                            .input = {name_of("sum", parameter), two ? name_of("other", parameter) : NULL},
                            .offset = s->floats,
                            .count = (size_t)type_count(type)};
    s->floats += (summed.count + ALIGNED_FLOATS - 1) / ALIGNED_FLOATS * ALIGNED_FLOATS;
    return array_push(&s->summed, summed) && summed.output && summed.input[0] && (!two || summed.input[1]);
}

static bool add_carried(struct split *s, const char *parameter, const struct value_type *type)
{
    struct carried carried = {mem_string(parameter), name_of("before", parameter), name_of("after", parameter),
                              type->dtype, (size_t)type_bytes(type)};
    return array_push(&s->carried, carried) && carried.parameter && carried.input && carried.output;
}

static bool is_assignment(const struct node *node)
{
    return node_is(node, IS_ASSIGN);
}

static bool of_samples(const char *parameter)
{
    return strncmp(parameter, samples, sizeof samples - 1) == 0;
}

/* An assignment beside the optimizer: of which parameter; -1: it is none. */
static int32_t assigned_beside(const graphi_graph *graph, const struct node *node)
{
    return is_assignment(node) && !node->update ? graph_value(graph, node->output)->assigns : -1;
}

static graphi_status check_averaged(const struct value *parameter)
{
    char type[96];
    if (parameter->type.dtype == GRAPHI_F32)
        return GRAPHI_OK;
    type_text(&parameter->type, type, sizeof type);
    return fail(GRAPHI_UNSUPPORTED, parameter->name,
                "found a parameter of type %s that is assigned, expected float32, of which solvers keep the mean, or a "
                "name that begins with %s",
                type, samples);
}

static graphi_status check_whole(const struct value *parameter)
{
    if (!parameter->by_rows)
        return GRAPHI_OK;
    return fail(GRAPHI_UNSUPPORTED, parameter->name,
                "found a table that is updated by the rows that were read, expected graphi_optimizer.sparse OFF, or "
                "graphi_model_options.dense of a built-in network");
}

/* Gradients by value, then statistics by node: the same in all graphs of one network. */
static graphi_status list(const graphi_graph *graph, bool two, struct split *s)
{
    bool enough = true;
    for (size_t v = 0; v < graph->values.count; v++) {
        const struct value *value = graph_value(graph, (int32_t)v);
        TRY(check_whole(value));
        if (value->updates)
            enough &= add_summed(s, graph_value(graph, value->updates - 1)->name, &value->type, two);
    }
    if (!s->summed.count)
        return fail(GRAPHI_INVALID, where,
                    "found a graph without updates, expected one that graphi_minimize was called for");
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const int32_t at = assigned_beside(graph, graph_node(graph, (int32_t)i));
        if (at < 0)
            continue;
        const struct value *parameter = graph_value(graph, at);
        if (of_samples(parameter->name)) {
            enough &= add_carried(s, parameter->name, &parameter->type);
            continue;
        }
        TRY(check_averaged(parameter));
        enough &= add_summed(s, parameter->name, &parameter->type, two);
    }
    return enough ? GRAPHI_OK : fail_memory(where, sizeof(struct summed));
}

/* --- the first part --- */

/* The assignment becomes the value itself. */
static void unassign(graphi_graph *graph, int32_t node, struct map *map)
{
    const struct node *n = graph_node(graph, node);
    struct value *result = &graph->values.data[n->output];
    map->to[n->output] = n->input[1];
    graph->values.data[result->assigns].assigned = false;
    result->assigns = -1;
    graph_kill(graph, node);
}

/* Outputs that updates make are not there. */
static void drop_updated(graphi_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->outputs.count; i++) {
        const int32_t node = graph_value(graph, graph->outputs.data[i].value)->node;
        if (node < 0 || !graph_node(graph, node)->update)
            graph->outputs.data[kept++] = graph->outputs.data[i];
    }
    graph->outputs.count = kept;
    graph_forget_names(graph);
}

/* Outputs are marked before parameters of samples become inputs. */
static void output_all(graphi_graph *graph, const struct split *s)
{
    size_t gradients = 0, carried = 0;
    for (size_t v = 0, values = graph->values.count; v < values; v++)
        if (graph_value(graph, (int32_t)v)->updates)
            graphi_output(graph, s->summed.data[gradients++].output, (graphi_value)v);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        const int32_t at = assigned_beside(graph, node);
        if (at < 0)
            continue;
        const char *name = of_samples(graph_value(graph, at)->name) ? s->carried.data[carried++].output
                                                                    : s->summed.data[gradients++].output;
        graphi_output(graph, name, node->input[1]);
    }
}

/* Takes a value's id out of the parameters, and in among the inputs where it belongs. */
static graphi_status list_as_input(graphi_graph *graph, int32_t value)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->parameters.count; i++)
        if (graph->parameters.data[i] != value)
            graph->parameters.data[kept++] = graph->parameters.data[i];
    graph->parameters.count = kept;
    if (!array_push(&graph->inputs, value))
        return fail_memory(where, sizeof value);
    for (size_t i = graph->inputs.count - 1; i > 0 && graph->inputs.data[i - 1] > value; i--) {
        graph->inputs.data[i] = graph->inputs.data[i - 1];
        graph->inputs.data[i - 1] = value;
    }
    return GRAPHI_OK;
}

/* Parameters of samples become inputs: a solver has fewer rows of them than its state. */
static graphi_status carry(graphi_graph *graph, const struct split *s)
{
    for (size_t i = 0; i < s->carried.count; i++) {
        const int32_t at = graph_find_source(graph, s->carried.data[i].parameter);
        struct value *value = &graph->values.data[at];
        TRY(list_as_input(graph, at));
        value->kind = VALUE_INPUT;
        value->name = s->carried.data[i].input;
        value->data = NULL;
        graph_forget_names(graph);
    }
    return GRAPHI_OK;
}

static graphi_status cut_gradient(const graphi_graph *graph, struct split *s)
{
    struct map map = {0};
    TRY(graph_clone(graph, &s->gradient));
    graphi_graph *g = s->gradient;
    g->rewritten = true;
    drop_updated(g);
    output_all(g, s);
    TRY(map_open(g, &map));
    for (size_t i = 0; i < g->nodes.count; i++)
        if (is_assignment(graph_node(g, (int32_t)i)))
            unassign(g, (int32_t)i, &map);
    graphi_status status = graphi_graph_status(g);
    if (status == GRAPHI_OK)
        status = carry(g, s);
    if (status == GRAPHI_OK)
        status = map_apply(&map, g);
    mem_free(map.to);
    return status == GRAPHI_OK ? graph_compact(g) : status;
}

/* --- the second part --- */

static graphi_value weighted(graphi_graph *graph, graphi_value value, float weight)
{
    graphi_value times = graphi_constant(graph, GRAPHI_F32, 0, NULL, &weight);
    return graphi_op(graph, "mul", 2, (graphi_value[]){value, times}, 0, NULL);
}

/* The sum as it is read: an input, or that of two. */
static graphi_value read_sum(graphi_graph *graph, const struct summed *summed, const struct value_type *type,
                             const float weight[2])
{
    graphi_value first = graph_input(graph, summed->input[0], type);
    if (!weight)
        return first;
    graphi_value second = graph_input(graph, summed->input[1], type);
    return graphi_op(graph, "add", 2,
                     (graphi_value[]){weighted(graph, first, weight[0]), weighted(graph, second, weight[1])}, 0, NULL);
}

static void read_gradients(graphi_graph *graph, const struct split *s, const float weight[2], struct map *map)
{
    size_t at = 0;
    for (size_t v = 0, values = graph->values.count; v < values; v++) {
        if (!graph_value(graph, (int32_t)v)->updates)
            continue;
        const struct value_type type = graph_value(graph, (int32_t)v)->type;
        const graphi_value sum = read_sum(graph, &s->summed.data[at++], &type, weight);
        if (sum != GRAPHI_NONE)
            map->to[v] = sum;
    }
}

/* Whoever reads the new content of a parameter of samples is in the first part. */
static void assign_means(graphi_graph *graph, const struct split *s, const float weight[2], struct map *map)
{
    size_t at = 0;
    for (size_t v = 0, values = graph->values.count; v < values; v++)
        at += graph_value(graph, (int32_t)v)->updates != 0;
    for (size_t i = 0, nodes = graph->nodes.count; i < nodes; i++) {
        const int32_t parameter = assigned_beside(graph, graph_node(graph, (int32_t)i));
        if (parameter < 0)
            continue;
        const struct value *value = graph_value(graph, parameter);
        const struct value_type type = value->type;
        const bool carried = of_samples(value->name);
        unassign(graph, (int32_t)i, map);
        if (!carried)
            graphi_assign(graph, parameter, read_sum(graph, &s->summed.data[at++], &type, weight));
    }
}

static graphi_status cut_update(const graphi_graph *graph, const float weight[2], struct split *s)
{
    struct map map = {0};
    TRY(graph_clone(graph, &s->update));
    graphi_graph *g = s->update;
    g->rewritten = true;
    g->outputs.count = 0;
    graph_forget_names(g);
    TRY(map_open(g, &map));
    read_gradients(g, s, weight, &map);
    assign_means(g, s, weight, &map);
    graphi_status status = graphi_graph_status(g);
    if (status == GRAPHI_OK)
        status = carry(g, s);
    if (status == GRAPHI_OK)
        status = map_apply(&map, g);
    mem_free(map.to);
    return status == GRAPHI_OK ? graph_compact(g) : status;
}

graphi_status split_open(const graphi_graph *graph, const float weight[2], struct split *split)
{
    *split = (struct split){0};
    TRY(graphi_graph_status(graph));
    TRY(list(graph, weight != NULL, split));
    TRY(cut_gradient(graph, split));
    return cut_update(graph, weight, split);
}

void split_close(struct split *split)
{
    for (size_t i = 0; i < split->summed.count; i++) {
        mem_free(split->summed.data[i].output);
        mem_free(split->summed.data[i].input[0]);
        mem_free(split->summed.data[i].input[1]);
    }
    for (size_t i = 0; i < split->carried.count; i++) {
        mem_free(split->carried.data[i].parameter);
        mem_free(split->carried.data[i].input);
        mem_free(split->carried.data[i].output);
    }
    array_free(&split->summed);
    array_free(&split->carried);
    graphi_graph_destroy(split->gradient);
    graphi_graph_destroy(split->update);
    *split = (struct split){0};
}
