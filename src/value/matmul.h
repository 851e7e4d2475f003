/* SPDX-License-Identifier: Apache-2.0 */
/* The product of MatMul, for operators that prepare its operands themselves. */
#ifndef VALUE_MATMUL_H
#define VALUE_MATMUL_H

#include "value/dense.h"
#include "value/op.h"

/* Output `output` of a type: x times y, which have the shapes of a and b. */
graphi_status matmul_run(struct op_call *call, int output, const graphi_tensor *a, const graphi_tensor *b,
                         const struct dense *x, const struct dense *y, graphi_element type);

#endif
