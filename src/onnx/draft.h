/* SPDX-License-Identifier: Apache-2.0 */
/* A node while it is read: as the file has it, until upgrade.c has brought it to the newest opset's form. */
#ifndef ONNX_DRAFT_H
#define ONNX_DRAFT_H

#include "onnx/model.h"

struct draft {
    const char *name, *type, *domain;
    int64_t version;
    int *in, *out;
    int ins, outs;
    struct attribute *attributes;
    size_t attribute_count;
};

/* What upgrades may add to the graph before the node. */
struct draft_maker {
    struct onnx_model *model;
    struct model_graph *graph;
    const char *where;
};

/* A value of known content, which the model takes over. */
graphi_status draft_constant(struct draft_maker *maker, graphi_tensor *constant, int *out);
/* A node of one result, by a host operator. */
graphi_status draft_node(struct draft_maker *maker, const char *type, const int *in, int ins, int *out);

/* A value without a name of the file's. */
graphi_status model_value_add(struct onnx_model *model, const char *name, int *out);

/* Fills where. */
graphi_status model_node_place(struct onnx_model *model, struct model_node *node);

const struct attribute *draft_attribute(const struct draft *draft, const char *name);

/* To the newest opset's form, for operators of the default domain. Errors: INVALID, UNSUPPORTED, MEMORY. */
graphi_status draft_upgrade(struct draft_maker *maker, struct draft *draft);

#endif
