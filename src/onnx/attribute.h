/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes, as operators read them. */
#ifndef ONNX_ATTRIBUTE_H
#define ONNX_ATTRIBUTE_H

#include "onnx/message.h"
#include "onnx/model.h"

struct attribute_source {
    const char *where, *folder;
    struct onnx_model *model;
    /* Of the call of the function that the node stands in: what its attributes refer to. NULL: it is in none. */
    const struct attribute *given;
    size_t given_count;
};

/* The node's attributes but graphs, in the model's arena. A reference to an attribute that the call has not is left
 * out. */
graphi_status attributes_read(const struct attribute_source *from, Onnx__AttributeProto *const *list, size_t count,
                              struct attribute **out, size_t *out_count);

#endif
