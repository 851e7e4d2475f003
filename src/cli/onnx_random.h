/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that nobody gave, and shapes in words. */
#ifndef CLI_ONNX_RANDOM_H
#define CLI_ONNX_RANDOM_H

#include "graphi/graphi.h"

/* Numbers between 0 and 1 (integers: 0 and 1) of the port's type; `shape` ("1x3x224x224") or NULL: as declared, unknown
 * sizes 1. `seed` differs from port to port. Reported. */
graphi_status onnx_random(const graphi_session_port *port, const char *shape, size_t seed, graphi_tensor **out);

/* "float32 [1, 3]", or what else it is. */
void onnx_shape(const graphi_tensor *value, char *text, size_t size);

#endif
