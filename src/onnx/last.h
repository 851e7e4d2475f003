/* SPDX-License-Identifier: Apache-2.0 */
/* When values are read for the last time. */
#ifndef ONNX_LAST_H
#define ONNX_LAST_H

#include "onnx/model.h"

/* Fills `last` of every node. What bodies read of a graph around them counts as read by the node whose bodies they are;
 * outputs of a graph are in no list. */
graphi_status model_find_last(struct onnx_model *model);

#endif
