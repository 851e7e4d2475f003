/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient rules of elementwise_gradient.c, for the table in elementwise.c. */
#ifndef OPS_ELEMENTWISE_GRADIENT_H
#define OPS_ELEMENTWISE_GRADIENT_H

#include "graph/op.h"

#define RULES(X)                                                                                                       \
    X(zero)                                                                                                            \
    X(identity) X(neg) X(abs) X(square) X(sqrt) X(rsqrt) X(reciprocal) X(exp) X(log) X(tanh) X(sigmoid) X(relu)        \
        X(softplus) X(erf)                                                                                             \
        X(add) X(sub) X(mul) X(div) X(min) X(max) X(pow) X(mod) X(fma) X(select) X(add_n) X(expand)

#define X(name) void elementwise_##name##_gradient(struct gradient_call *call);
RULES(X)
#undef X
#undef RULES

#endif
