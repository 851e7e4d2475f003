/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of ONNX files as host values: typed lists, raw bytes, and external data, which must lie in the model's
 * folder. */
#ifndef ONNX_TENSOR_H
#define ONNX_TENSOR_H

#include "onnx/message.h"
#include "value/value.h"

/* `folder` is where external data may lie, NULL: nowhere. Errors: INVALID, UNSUPPORTED (strings, complex numbers), IO,
 * MEMORY. */
graphi_status onnx_tensor(const char *where, const Onnx__TensorProto *from, const char *folder, graphi_tensor **out);

/* A file of a value: kind "tensor", "sequence" or "optional". */
graphi_status onnx_value_load(const char *path, const char *kind, graphi_tensor **out);

#endif
