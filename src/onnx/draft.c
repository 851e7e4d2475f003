/* SPDX-License-Identifier: Apache-2.0 */
/* Values and nodes that are added to a model while it is built (draft.h). One thread builds a model. */
#include "onnx/draft.h"

#include <stdio.h>
#include <string.h>

graphi_status model_value_add(struct onnx_model *model, const char *name, int *out)
{
    struct model_value value = {.rank = -1};
    value.name = arena_string(&model->arena, name);
    if (!value.name || !array_push(&model->values, value))
        return fail_memory("model", sizeof value);
    *out = (int)model->values.count - 1;
    return GRAPHI_OK;
}

graphi_status draft_constant(struct draft_maker *maker, graphi_tensor *constant, int *out)
{
    graphi_status status = model_value_add(maker->model, "", out);
    if (status != GRAPHI_OK) {
        value_drop(constant);
        return status;
    }
    struct model_value *value = &maker->model->values.data[*out];
    value->constant = constant;
    value->type = constant->type;
    value->rank = constant->rank;
    memcpy(value->dims, constant->dims, sizeof value->dims);
    return GRAPHI_OK;
}

/* "node "name" (Type)", for messages of a run, which formats nothing unless it fails. */
graphi_status model_node_place(struct onnx_model *model, struct model_node *node)
{
    char where[200];
    snprintf(where, sizeof where, "node \"%.100s\" (%.60s)", node->name, node->type);
    node->where = arena_string(&model->arena, where);
    return node->where ? GRAPHI_OK : fail_memory("model", sizeof where);
}

graphi_status draft_node(struct draft_maker *maker, const char *type, const int *in, int ins, int *out)
{
    struct model_node node = {.op = host_op_find(type), .name = "", .type = type, .domain = "", .ins = ins, .outs = 1};
    TRY(model_node_place(maker->model, &node));
    TRY(model_value_add(maker->model, "", out));
    node.in = arena_copy(&maker->model->arena, in, (size_t)ins * sizeof *in);
    node.out = arena_copy(&maker->model->arena, out, sizeof *out);
    if (!node.in || !node.out || !array_push(&maker->graph->nodes, node))
        return fail_memory(maker->where, sizeof node);
    return GRAPHI_OK;
}
