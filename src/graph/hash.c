/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a graph, the same in every process and on every machine: it names stored plans. It covers what a plan
 * depends on: sources with their types, names and initial values, nodes with inputs, attributes, scopes, order and
 * regions, outputs. Values are renumbered as they are first mentioned, so killed nodes and constants nobody reads do
 * not show; attributes count where they differ from their defaults, so an operation may gain one. Also the sizes that
 * graphi_graph_get_info reports. */
#include "graph/graph.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "graph/op.h"

#include <string.h>

static uint64_t hash_type(uint64_t hash, const graphi_graph *graph, const struct value_type *type)
{
    hash = hash_u64(hash_u64(hash, (uint64_t)type->dtype), (uint64_t)type->rank);
    for (int i = 0; i < type->rank; i++)
        hash = hash_u64(hash, (uint64_t)type->dims[i]);
    return type->symbol < 0 ? hash_u64(hash, 0) : hash_string(hash, graph->symbols.data[type->symbol].name);
}

static uint64_t hash_source(uint64_t hash, const graphi_graph *graph, const struct value *value)
{
    hash = hash_type(hash_u64(hash, (uint64_t)value->kind), graph, &value->type);
    if (value->name)
        hash = hash_string(hash, value->name);
    if (value->data)
        hash = hash_bytes(hash, value->data, (size_t)type_bytes(&value->type));
    if (value->kind != VALUE_PARAMETER)
        return hash;
    hash = hash_u64(hash_u64(hash, (uint64_t)value->init.kind), value->frozen);
    return hash_double(hash_double(hash, value->init.a), value->init.b);
}

static uint64_t hash_attribute(uint64_t hash, const graphi_attribute *attribute)
{
    hash = hash_string(hash, attribute->name);
    switch (attribute->type) {
    case GRAPHI_INT:
        return hash_u64(hash, (uint64_t)attribute->i);
    case GRAPHI_FLOAT:
        return hash_double(hash, attribute->f);
    case GRAPHI_INTS:
        break;
    }
    hash = hash_u64(hash, (uint64_t)attribute->count);
    for (int i = 0; i < attribute->count; i++)
        hash = hash_u64(hash, (uint64_t)attribute->ints[i]);
    return hash;
}

uint64_t graph_hash_attributes(uint64_t hash, const struct node *node)
{
    for (int k = 0; k < node->attributes; k++)
        if (!attribute_is_default(&node->attribute[k], &node->kind->attributes[k]))
            hash = hash_attribute(hash, &node->attribute[k]);
    return hash;
}

/* number[]: the canonical number of each value and, behind them, of each node, plus one; 0: not mentioned yet. */
struct numbering {
    const graphi_graph *graph;
    uint64_t *value, *node, next, next_node;
};

static uint64_t hash_mention(uint64_t hash, struct numbering *n, int32_t value)
{
    if (!n->value[value]) {
        n->value[value] = n->next++;
        hash = hash_source(hash, n->graph, graph_value(n->graph, value));
    }
    return hash_u64(hash, n->value[value]);
}

static uint64_t hash_node(uint64_t hash, struct numbering *n, int32_t id)
{
    const struct node *node = graph_node(n->graph, id);
    hash = hash_string(hash_string(hash, node->kind->name), node->scope);
    hash = hash_u64(hash_u64(hash, (uint64_t)node->inputs), (uint64_t)node->outputs);
    for (int k = 0; k < node->inputs; k++)
        hash = hash_mention(hash, n, node->input[k]);
    hash = graph_hash_attributes(hash, node);
    for (int k = 0; k < node->afters; k++)
        hash = hash_u64(hash, n->node[node->after[k]]);
    for (int r = 0; r < node->regions; r++)
        hash = hash_u64(hash, graph_hash(node->region[r]));
    for (int k = 0; k < node->outputs; k++) {
        const struct value *value = graph_value(n->graph, node->output + k);
        n->value[node->output + k] = n->next++;
        hash = hash_type(hash, n->graph, &value->type);
        hash = value->assigns < 0 ? hash_u64(hash, 0) : hash_mention(hash, n, value->assigns);
    }
    n->node[id] = n->next_node++;
    return hash_u64(hash, node->backward);
}

uint64_t graph_hash(const graphi_graph *graph)
{
    size_t values = graph->values.count, nodes = graph->nodes.count;
    uint64_t *numbers = mem_zalloc_array(values + nodes + 1, sizeof *numbers);
    if (!numbers)
        return 0;
    struct numbering n = {graph, numbers, numbers + values, 1, 1};
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < graph->symbols.count; i++)
        hash = hash_u64(hash_string(hash, graph->symbols.data[i].name), (uint64_t)graph->symbols.data[i].bound);
    for (size_t v = 0; v < values; v++)
        if (graph_value(graph, (int32_t)v)->name)
            hash = hash_mention(hash, &n, (int32_t)v);
    for (size_t i = 0; i < nodes; i++)
        if (graph_node(graph, (int32_t)i)->kind)
            hash = hash_node(hash, &n, (int32_t)i);
    for (size_t i = 0; i < graph->outputs.count; i++)
        hash = hash_mention(hash_string(hash, graph->outputs.data[i].name), &n, graph->outputs.data[i].value);
    mem_free(numbers);
    return hash;
}

/* FLOPs of GEMM and convolution by the direct algorithm: all, and as a step is rated (interface: limit of a workload).
 * A node that a gradient passes costs two further products, each with one of its factors. */
static void count_flops(const graphi_graph *graph, graphi_graph_info *info)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        if (!node->kind || (!(node->kind->flags & OP_GEMM) && !node->regions))
            continue;
        double flops = node_flops(graph, (int32_t)i);
        info->flops += flops;
        if (!node->backward)
            info->step_flops += node->differentiated ? 3 * flops : flops;
    }
}

/* Of each parameter the elements that its readers take, at most all: of a table some rows, and none where its content
 * is replaced. */
static void count_read(const graphi_graph *graph, graphi_graph_info *info)
{
    int64_t *taken = mem_zalloc_array(graph->values.count + 1, sizeof *taken);
    info->read_elements = taken ? 0 : info->parameter_elements;
    for (size_t i = 0; i < graph->nodes.count && taken; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        const bool table = node_is(node, IS_LOOKUP);
        for (int k = node_is(node, IS_ASSIGN) || node_has(node, OP_UPDATES); node->kind && k < node->inputs; k++) {
            const struct value *value = graph_value(graph, node->input[k]);
            const int64_t all = type_count(&value->type), left = all - taken[node->input[k]];
            if (value->kind != VALUE_PARAMETER)
                continue;
            taken[node->input[k]] += table ? least(left, type_count(&graph_value(graph, node->output)->type)) : left;
        }
    }
    for (size_t v = 0; v < graph->values.count && taken; v++)
        info->read_elements += taken[v];
    mem_free(taken);
}

void graphi_graph_get_info(const graphi_graph *graph, graphi_graph_info *info)
{
    if (!info)
        return;
    *info = (graphi_graph_info){0};
    if (!graph)
        return;
    info->outputs = (int64_t)graph->outputs.count;
    for (size_t v = 0; v < graph->values.count; v++) {
        const struct value *value = graph_value(graph, (int32_t)v);
        info->values++;
        info->inputs += value->kind == VALUE_INPUT;
        info->parameters += value->kind == VALUE_PARAMETER;
        if (value->kind == VALUE_PARAMETER)
            info->parameter_elements += type_count(&value->type);
        if (value->kind == VALUE_RESULT && value->assigns < 0)
            info->intermediate_bytes += type_bytes(&value->type);
    }
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        if (!node->kind)
            continue;
        info->nodes++;
    }
    count_flops(graph, info);
    count_read(graph, info);
    info->hash = graph_hash(graph);
}
