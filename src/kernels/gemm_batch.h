/* SPDX-License-Identifier: Apache-2.0 */
/* How the products of a batch (gemm_spec.leads) find their operands: nothing that broadcasting repeats is stored twice.
 * Products are numbered in the order of C. Immutable after batch_of; any thread. Usual size: one dimension; two where
 * each operand repeats what the other has. */
#ifndef KERNELS_GEMM_BATCH_H
#define KERNELS_GEMM_BATCH_H

#include "kernels/gemm_spec.h"

/* The way of one operand: elements from one product to the next in each dimension, 0 where one matrix serves all; and
 * the same in matrices of the workspace, which has each of the `copies` different ones once, `bytes` apart. */
struct walk {
    int64_t stride[GEMM_MAX_LEADS], slot[GEMM_MAX_LEADS];
    int64_t copies;
    size_t bytes; /* the driver's */
};

struct batch {
    int64_t count; /* of products; 1 without leading dimensions */
    int leads;     /* dimensions that all operands go through as through one are one */
    int64_t lead[GEMM_MAX_LEADS];
    struct walk a, b, c;
};

struct batch batch_of(const struct gemm_spec *spec);

/* Are the results one matrix, of all rows? */
bool batch_is_one_matrix(const struct gemm_spec *spec);

/* How far `product` is along the strides or slots of an operand. */
static inline int64_t batch_along(const struct batch *batch, const int64_t *stride, int64_t product)
{
    int64_t at = 0;
    for (int i = batch->leads - 1; i > 0; i--) {
        at += product % batch->lead[i] * stride[i];
        product /= batch->lead[i];
    }
    return batch->leads ? at + product * stride[0] : 0;
}

/* The first product that reads the matrix in slot `copy`: where a call does not have it, it has none that do. */
int64_t batch_first_reader(const struct batch *batch, const struct walk *operand, int64_t copy);

#endif
