/* SPDX-License-Identifier: Apache-2.0 */
/* 2-D convolutions: their kernels, and what to know of these before they are bound. */
#ifndef KERNELS_CONV_H
#define KERNELS_CONV_H

#include "kernels/conv_spec.h"

/* Inputs: FORWARD x, w; BACKWARD_DATA dy, w; BACKWARD_WEIGHTS x, dy; then epilogue inputs. Output: y, dx or dw (dense);
 * with a pool its result, and the places where they are wanted, the same bits as of the two kernels one after the
 * other. */
graphi_status conv_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);

/* Does it pay that the kernel of spec pools its result itself? It keeps some rows of y in the level-2 cache instead of
 * y in memory, where they are enough for its tiles to be full and its weights are read often enough from each cache. */
bool conv_pools(const struct conv_spec *spec, enum isa isa);

/* Does the kernel of spec round its images as they are, all of x (forward), of dy (backward-data) or of both
 * (backward-weights)? It then takes them rounded as well, and gives the same bits. */
bool conv_rounds(const struct conv_spec *spec, enum isa isa);

/* The form that the kernel of spec reads (spec->algorithm, or the chosen one). */
enum conv_form_keep conv_form_wanted(const struct conv_spec *spec, enum isa isa, struct conv_form *form);

#endif
