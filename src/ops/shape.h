/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts that the shape operations derive from each other. */
#ifndef OPS_SHAPE_H
#define OPS_SHAPE_H

#include "graph/op.h"
#include "kernels/copy.h"

/* Fills out->strides so that out (its dims given) has the elements of `in` in the same order and place; false when the
 * layout of `in` does not allow it. */
bool restride(const struct array_desc *in, struct array_desc *out);

/* A copy walking `dims`, with the strides of `from` and `to` (same rank); bounded where dims is. */
struct copy_part copy_part_of(const struct array_desc *dims, const struct array_desc *from,
                              const struct array_desc *to);

graphi_status bind_parts(const struct bind_call *call, const char *name, int parts, const struct copy_part *part,
                         struct kernel *kernel);

#endif
