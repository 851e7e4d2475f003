/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between any two element types, one form for all instruction sets; cast.h says what they are. */
#ifndef KERNELS_CAST_ANY_H
#define KERNELS_CAST_ANY_H

#include "graphi/types.h"

void cast_any(graphi_dtype from, graphi_dtype to, const void *in, void *out, int64_t n);

#endif
