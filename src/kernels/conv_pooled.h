/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that pool their results, over the kernel `inner` that makes these. */
#ifndef KERNELS_CONV_POOLED_H
#define KERNELS_CONV_POOLED_H

#include "kernels/conv_kernel.h"

bool conv_pooled_pays(const struct conv_spec *spec, enum isa isa, const struct conv_kernel *inner);
graphi_status conv_pooled_bind(const struct conv_spec *spec, enum isa isa, const struct conv_kernel *inner,
                               struct kernel *kernel);

#endif
