/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a graph's nodes can run. */
#ifndef ONNX_ORDER_H
#define ONNX_ORDER_H

#include "onnx/message.h"

/* order[0 .. count): each node after those whose results it or its bodies read; otherwise as in the file. Errors:
 * INVALID, naming a node of a circle; MEMORY. */
graphi_status order_nodes(const char *where, Onnx__NodeProto *const *nodes, size_t count, int *order);

#endif
