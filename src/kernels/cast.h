/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between element types. float32 to bfloat16 rounds to nearest even, NaN stays NaN (quiet, its sign kept).
 * Floats to integers are cut towards zero and clamped to the range, NaN gives 0. Integers wrap among themselves.
 * Integers and float64 to bfloat16 go through float32, integers to float16 too; other floats are the nearest. A bool is
 * whether a number is not 0, and 0 or 1 as a number. */
#ifndef KERNELS_CAST_H
#define KERNELS_CAST_H

#include "kernels/kernel.h"

/* Row-strided input and output of the same dims. */
graphi_status cast_bind(const struct array_desc *in, const struct array_desc *out, enum isa isa, struct kernel *kernel);

#endif
