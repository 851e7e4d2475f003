/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of any number of dense arrays of one shape, added from the left: for more inputs than a program takes. */
#ifndef KERNELS_ADD_N_H
#define KERNELS_ADD_N_H

#include "kernels/kernel.h"

graphi_status add_n_bind(int inputs, const struct array_desc *in, const struct array_desc *out, enum isa isa,
                         struct kernel *kernel);

#endif
