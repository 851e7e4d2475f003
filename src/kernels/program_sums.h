/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that add some of their results up. */
#ifndef KERNELS_PROGRAM_SUMS_H
#define KERNELS_PROGRAM_SUMS_H

#include "kernels/program.h"

/* program_bind for a program with sums; program_code comes first in its params, as in those of program_bind. */
graphi_status program_bind_sums(const struct program *program, const struct array_desc *in,
                                const struct array_desc *out, enum isa isa, struct kernel *kernel);

#endif
