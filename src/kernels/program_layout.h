/* SPDX-License-Identifier: Apache-2.0 */
/* How arrays are read and written by programs: what broadcasts, with which strides, and the message where it does
 * not. */
#ifndef KERNELS_PROGRAM_LAYOUT_H
#define KERNELS_PROGRAM_LAYOUT_H

#include "kernels/program.h"

/* The strides with which `in` is read for results of shape `out`; false when it does not broadcast. */
bool program_strides(const struct array_desc *in, const struct array_desc *out, int64_t *strides);

/* Is the last dimension contiguous, or constant where that is allowed? */
bool program_inner_accepted(const struct array_desc *out, const int64_t *strides, bool constant_allowed);

graphi_status program_refuse(const char *what, int index, const struct array_desc *found, const struct array_desc *out);

#endif
