/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical graph of an ONNX model: what every opset and exporter is brought to when a model is opened. Operators
 * are those of the newest opset, functions are inlined, lists that were attributes once are inputs. Values of all
 * graphs, bodies among them, have numbers in one list, so a body refers to a value outside by its number. Nodes of a
 * graph are in an order in which each follows what it reads. Immutable once built; any thread reads it. Usual size:
 * 20 to 5,000 nodes. */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include "base/arena.h"
#include "base/array.h"
#include "value/op.h"

struct model_value {
    const char *name;
    graphi_tensor_kind kind;
    bool optional;                   /* its type is an optional one */
    graphi_element type;             /* 0: not told */
    int rank;                        /* -1: not told */
    int64_t dims[VALUE_RANK];        /* -1: not told before a run */
    const char *symbols[VALUE_RANK]; /* of such a dimension, or NULL */
    graphi_tensor *constant;         /* its content, where that is known; NULL */
};

enum node_kind { NODE_OPERATOR, NODE_IF, NODE_LOOP, NODE_SCAN, NODE_MAP, NODE_UNSUPPORTED };

struct model_node {
    enum node_kind kind;
    const struct host_op *op;                 /* of NODE_OPERATOR */
    const char *name, *type, *domain, *where; /* where: for messages */
    int64_t version;                          /* of the opset that it was written for */
    int ins, outs;
    int *in, *out; /* numbers of values; -1: left out */
    struct attribute *attributes;
    size_t attribute_count;
    struct model_graph *body[2]; /* If: then and else; Loop, Scan, SequenceMap: the body */
    int *last;                   /* values of this graph that nothing reads after this node */
    int last_count;
};

struct model_graph {
    const char *name;
    ARRAY(struct model_node) nodes;
    ARRAY(int) inputs;
    ARRAY(int) outputs;
};

/* Per operator of a domain: how many nodes, in all graphs. */
struct model_use {
    const char *domain, *type;
    int64_t version, nodes;
    bool supported;
};

struct onnx_model {
    struct arena arena;
    struct model_graph *graph;
    ARRAY(struct model_value) values;
    ARRAY(struct model_use) uses;
    int64_t ir_version, opset, node_count, unsupported;
    int64_t parameters, parameter_elements, parameter_bytes; /* initializers */
    const char *producer;
};

/* From bytes that are a ModelProto; `folder` is where external data lies, or NULL. `partly`: operators that there are
 * none of become NODE_UNSUPPORTED instead of an error. Free it with onnx_model_free. */
graphi_status onnx_model_load(const char *where, const void *bytes, size_t size, const char *folder, bool partly,
                              struct onnx_model **out);
void onnx_model_free(struct onnx_model *model); /* NULL is accepted */

#endif
