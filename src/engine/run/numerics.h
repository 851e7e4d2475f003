/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are none. */
#ifndef ENGINE_NUMERICS_H
#define ENGINE_NUMERICS_H

#include "kernels/kernel.h"

/* All elements of the first `rows` finite? Other types than float32 and bfloat16 are. Elements of the last dimension
 * are neighbours, as kernels write them (OP_STRIDED_OUT). */
bool finite_array(const struct array_desc *desc, const void *data, int64_t rows);

#endif
