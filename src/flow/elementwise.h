/* SPDX-License-Identifier: Apache-2.0 */
/* What lowerings of element-wise operators share. One thread lowers. */
#ifndef FLOW_ELEMENTWISE_H
#define FLOW_ELEMENTWISE_H

#include "flow/lower.h"

/* Output 0 is f of input 0, in whichever order of dimensions that is. */
graphi_status lower_by(struct lower_call *c, graphi_value (*f)(struct lower_call *c, graphi_value x));

/* The first `count` inputs at one rank and in one order of dimensions: channels last where one is so alone. */
graphi_status lower_operands(struct lower_call *c, int count, graphi_value *in, int *rank, bool *last);

#endif
