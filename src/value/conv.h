/* SPDX-License-Identifier: Apache-2.0 */
/* The convolution of Conv, for operators that prepare its operands themselves. */
#ifndef VALUE_CONV_H
#define VALUE_CONV_H

#include "value/dense.h"
#include "value/window.h"

struct convolution {
    struct window w;
    int64_t n, channels, filters, groups; /* channels and filters of all groups */
};

/* Checks x [N, C, ...] and w [M, C / groups, ...] against the attributes. */
graphi_status convolution_find(const struct op_call *call, const graphi_tensor *x, const graphi_tensor *w,
                               struct convolution *out);
/* The windows of ConvTranspose, whose `in` are the sizes of its result and `out` those of x. */
graphi_status convolution_transposed(const struct op_call *call, const graphi_tensor *x, const int64_t *kernel,
                                     struct window *w);
/* to [N, M, out...] in the domain. */
graphi_status convolution_run(const char *where, const struct convolution *c, const struct dense *x,
                              const struct dense *w, void *to);

#endif
