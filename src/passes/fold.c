/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: a node whose inputs are all constants is run now, by the kernel that the plan would use, so the
 * numbers are the same bits. Results much larger than what they come from (a broadcast) stay operations. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "base/hash.h"
#include "base/index.h"
#include "graph/op.h"

#include <string.h>

enum { FOLD_BYTES = 1 << 20 };

static bool foldable(const graphi_graph *graph, const struct node *node, const struct value_map *map)
{
    if (!node->kind || !node->kind->bind || node->regions || node->kind->flags & (OP_RANDOM | OP_EFFECT) ||
        !node->inputs)
        return false;
    int64_t in = 0, out = 0;
    for (int k = 0; k < node->inputs; k++) {
        const struct value *value = graph_value(graph, map_follow(map, node->input[k]));
        if (value->kind != VALUE_CONSTANT)
            return false;
        in += type_bytes(&value->type);
    }
    for (int k = 0; k < node->outputs; k++) {
        const struct value *value = graph_value(graph, node->output + k);
        if (value->assigns >= 0 || value->type.symbol >= 0)
            return false;
        out += type_bytes(&value->type);
    }
    return out <= FOLD_BYTES || out <= in;
}

/* Binds and runs one node on dense arrays; result[k] are new mem_alloc blocks. */
static graphi_status evaluate(const graphi_graph *graph, int32_t id, const struct value_map *map,
                              const struct pass_options *options, struct kernel_array *array, struct array_desc *desc)
{
    const struct node *node = graph_node(graph, id);
    char where[160];
    node_text(graph, id, where, sizeof where);
    for (int k = 0; k < node->inputs + node->outputs; k++) {
        bool input = k < node->inputs;
        const struct value *value = graph_value(graph, input ? map_follow(map, node->input[k])
                                                             : node->output + k - node->inputs);
        desc[k] = array_dense(value->type.dtype, value->type.rank, value->type.dims);
        array[k].rows = value->type.rank ? value->type.dims[0] : 1;
        array[k].data = input ? (void *)value->data : mem_zalloc((size_t)type_bytes(&value->type));
        if (!array[k].data)
            return fail_memory(where, (size_t)type_bytes(&value->type));
    }
    struct bind_call bind = {.where = where, .node = node, .in = desc, .out = desc + node->inputs,
                             .isa = (int)options->isa,
                             .multiplicands = options->multiplicands, .conv_error = options->conv_error,
                             .key = node->key};
    struct kernel kernel = {0};
    TRY(node->kind->bind(&bind, &kernel));
    void *workspace = mem_zalloc(kernel.workspace);
    struct kernel_call call = {
        .in = array, .out = array + node->inputs, .workspace = workspace, .params = kernel.params};
    graphi_status status = workspace ? kernel_run_serial(&kernel, &call) : fail_memory(where, kernel.workspace);
    mem_free(workspace);
    kernel_fini(&kernel);
    return status;
}

/* made: values made so far. Equal constants are one, since what common subexpressions find later stays in the graph's
 * memory. */
static int32_t keep(graphi_graph *graph, struct index *made, const struct value_type *type, const void *data)
{
    size_t bytes = (size_t)type_bytes(type), seen = 0;
    uint64_t hash = hash_wide(HASH_START, data, bytes);
    for (int32_t v; (v = index_next(made, hash, &seen)) >= 0;) {
        const struct value *other = graph_value(graph, v);
        if (type_equal(&other->type, type) && memcmp(other->data, data, bytes) == 0)
            return v;
    }
    int32_t constant = graph_constant(graph, type, data);
    return constant >= 0 && index_add(made, hash, constant) ? constant : -1;
}

static graphi_status fold(graphi_graph *graph, int32_t id, struct value_map *map, struct index *made,
                          const struct pass_options *options)
{
    const struct node node = *graph_node(graph, id);
    size_t arguments = (size_t)(node.inputs + node.outputs);
    struct kernel_array *array = mem_zalloc_array(arguments, sizeof *array);
    struct array_desc *desc = mem_zalloc_array(arguments, sizeof *desc);
    graphi_status status = array && desc ? evaluate(graph, id, map, options, array, desc)
                                         : fail_memory("fold", arguments * sizeof *desc);
    for (int k = 0; k < node.outputs; k++) {
        int32_t constant = -1;
        const struct value_type type = graph_value(graph, node.output + k)->type;
        if (status == GRAPHI_OK) {
            constant = keep(graph, made, &type, array[node.inputs + k].data);
            status = constant < 0 ? fail_memory("fold", (size_t)type_bytes(&type))
                                  : map_set(map, graph, node.output + k, constant);
        }
        if (array)
            mem_free(array[node.inputs + k].data);
    }
    mem_free(array);
    mem_free(desc);
    if (status == GRAPHI_OK)
        graph_kill(graph, id);
    /* A kernel that does not take these layouts or this instruction set: the plan will say so if it must. */
    return status == GRAPHI_UNSUPPORTED ? GRAPHI_OK : status;
}

graphi_status pass_fold(graphi_graph *graph, const struct pass_options *options)
{
    struct value_map map = {0};
    struct index made = {0};
    graphi_status status = GRAPHI_OK;
    size_t nodes = graph->nodes.count;
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++)
        if (foldable(graph, graph_node(graph, (int32_t)i), &map))
            status = fold(graph, (int32_t)i, &map, &made, options);
    index_free(&made);
    return map_end(&map, graph, status);
}
