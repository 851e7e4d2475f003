/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations share that change the shape or place of elements, not their values: layouts derived from each
 * other, rows of their tables. */
#ifndef OPS_SHAPE_H
#define OPS_SHAPE_H

#include "ops/check.h"

#include "kernels/copy.h"

/* Fills out->strides so that out (its dims given) has the elements of `in` in the same order and place; false when the
 * layout of `in` does not allow it. */
bool restride(const struct array_desc *in, struct array_desc *out);

/* A copy walking `dims`, with the strides of `from` and `to` (same rank); bounded where dims is. */
struct copy_part copy_part_of(const struct array_desc *dims, const struct array_desc *from,
                              const struct array_desc *to);

graphi_status bind_parts(const struct bind_call *call, const char *name, int parts, const struct copy_part *part,
                         struct kernel *kernel);

/* The axis of a checked node. */
static inline int node_axis(const struct node *node, int rank)
{
    int axis = (int)attr_int(node, "axis");
    return axis < 0 ? axis + rank : axis;
}

/* Elements begin to end (excluded) along an axis, appended to the graph. */
static inline graphi_value slice_value(graphi_graph *graph, graphi_value value, int axis, int64_t begin, int64_t end)
{
    graphi_attribute attribute[] = {int_attribute("axis", axis), int_attribute("begin", begin),
                                    int_attribute("end", end)};
    return graphi_op(graph, "slice", 1, &value, 3, attribute);
}

/* Entries of the tables. */
#define STRIDED OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED
#define UNARY .min_inputs = 1, .max_inputs = 1, .outputs = 1, .scalability = "memory", .flops = no_flops

#endif
