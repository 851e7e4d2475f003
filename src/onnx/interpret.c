/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter (interpret.h): nodes in order, each value freed after it was read for the last time. A body is a
 * graph whose values have numbers of their own; recursion is as deep as bodies are in each other, which building
 * bounds. A run belongs to its caller; many threads may run one model. */
#include "onnx/graph_run.h"

#include "base/memory.h"

#include <string.h>

enum { FEW = 16 };

static graphi_status run_operator(struct interpreter *run, const struct model_node *node, graphi_tensor **in,
                                  graphi_tensor **out, bool *wanted)
{
    for (int i = 0; i < node->ins; i++) {
        in[i] = interpreter_value(run, node->in[i]);
        if (!in[i] && node->in[i] >= 0)
            return fail(GRAPHI_INVALID, node->where, "found no value \"%.200s\", expected input %d",
                        run->model->values.data[node->in[i]].name, i);
    }
    for (int i = 0; i < node->outs; i++) {
        out[i] = NULL;
        wanted[i] = node->out[i] >= 0;
    }
    struct op_call call = {.op = node->op,
                           .where = node->where,
                           .ins = node->ins,
                           .outs = node->outs,
                           .in = in,
                           .out = out,
                           .wanted = wanted,
                           .attributes = node->attributes,
                           .attribute_count = node->attribute_count};
    TRY(host_op_run(&call));
    for (int i = 0; i < node->outs; i++)
        if (node->out[i] >= 0)
            interpreter_set(run, node->out[i], out[i]);
        else
            value_drop(out[i]);
    return GRAPHI_OK;
}

static graphi_status run_many(struct interpreter *run, const struct model_node *node)
{
    const size_t ins = (size_t)node->ins, outs = (size_t)node->outs;
    graphi_tensor **room = mem_zalloc_array(ins + 2 * outs + 1, sizeof *room);
    if (!room)
        return fail_memory(node->where, (ins + 2 * outs) * sizeof *room);
    graphi_status status = run_operator(run, node, room, room + ins, (bool *)(room + ins + outs));
    mem_free(room);
    return status;
}

static graphi_status run_node(struct interpreter *run, const struct model_node *node)
{
    graphi_tensor *in[FEW], *out[FEW];
    bool wanted[FEW];
    if (node->ins <= FEW && node->outs <= FEW)
        return run_operator(run, node, in, out, wanted);
    return run_many(run, node);
}

graphi_status interpreter_node(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    if (node->kind == NODE_UNSUPPORTED)
        return fail(GRAPHI_UNSUPPORTED, node->where, "found no operator of domain \"%s\" version %lld, expected one",
                    node->domain, (long long)node->version);
    return node->kind == NODE_OPERATOR ? run_node(run, node) : control_run(run, node, graph_run);
}

graphi_status interpreter_graph(struct interpreter *run, const struct model_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct model_node *node = &graph->nodes.data[i];
        TRY(interpreter_node(run, node, interpreter_graph));
        for (int k = 0; k < node->last_count; k++)
            interpreter_set(run, node->last[k], NULL);
    }
    return GRAPHI_OK;
}

graphi_status interpreter_run(struct interpreter *run)
{
    return interpreter_graph(run, run->model->graph);
}
