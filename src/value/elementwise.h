/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise host operators: functions on arrays of a domain, driven over broadcast inputs in blocks. */
#ifndef VALUE_ELEMENTWISE_H
#define VALUE_ELEMENTWISE_H

#include "value/element.h"
#include "value/op.h"

/* n elements; in[k] and out are arrays of the domain; p are the operator's numbers. */
typedef void elementwise_fn(const void *const *in, void *out, int64_t n, const double *p);

/* A function a domain; NULL: the operator does not take its types. */
struct elementwise {
    elementwise_fn *of[DOMAINS];
    bool truth; /* gives bytes of 0 and 1 in place of the domain's elements */
};

/* Output 0 of type `out` from `count` inputs, which are read in the domain of inputs[0] unless `domain` says
 * otherwise (-1). */
graphi_status elementwise_run(struct op_call *call, const struct elementwise *f, graphi_tensor *const *inputs,
                              int count, int domain, graphi_element out, const double *p);

#endif
