/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient rules of conv_gradient.c, for the table in conv.c. */
#ifndef OPS_CONV_GRADIENT_H
#define OPS_CONV_GRADIENT_H

#include "graph/op.h"

void conv_forward_gradient(struct gradient_call *call);
void conv_data_gradient(struct gradient_call *call);
void conv_weight_gradient(struct gradient_call *call);

#endif
