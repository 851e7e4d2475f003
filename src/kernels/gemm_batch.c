/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting of batches (gemm_batch.h). */
#include "kernels/gemm_batch.h"

static bool goes_on(const struct walk *walk, int last, int64_t stride, int64_t size)
{
    return walk->stride[last] == stride * size;
}

/* Slots in the workspace for the different matrices of an operand. */
static void count_copies(const struct batch *batch, struct walk *operand)
{
    operand->copies = 1;
    for (int i = batch->leads - 1; i >= 0; i--) {
        operand->slot[i] = operand->stride[i] ? operand->copies : 0;
        operand->copies *= operand->stride[i] ? batch->lead[i] : 1;
    }
}

struct batch batch_of(const struct gemm_spec *s)
{
    struct batch batch = {.count = 1};
    for (int i = 0; i < s->leads; i++) {
        const int64_t size = s->lead[i];
        batch.count *= size;
        if (size == 1)
            continue;
        const int last = batch.leads - 1;
        const bool joins = last >= 0 && goes_on(&batch.a, last, s->stride_a[i], size) &&
                           goes_on(&batch.b, last, s->stride_b[i], size) &&
                           goes_on(&batch.c, last, s->stride_c[i], size);
        const int at = joins ? last : batch.leads++;
        batch.lead[at] = joins ? batch.lead[at] * size : size;
        batch.a.stride[at] = s->stride_a[i];
        batch.b.stride[at] = s->stride_b[i];
        batch.c.stride[at] = s->stride_c[i];
    }
    count_copies(&batch, &batch.a);
    count_copies(&batch, &batch.b);
    return batch;
}

bool batch_is_one_matrix(const struct gemm_spec *s)
{
    int64_t next = s->m * s->ldc;
    for (int i = s->leads - 1; i >= 0; next *= s->lead[i--])
        if (s->lead[i] != 1 && s->stride_c[i] != next)
            return false;
    return true;
}

int64_t batch_first_reader(const struct batch *batch, const struct walk *operand, int64_t copy)
{
    int64_t first = 0, products = 1;
    for (int i = batch->leads - 1; i >= 0; products *= batch->lead[i--])
        if (operand->slot[i]) {
            first += copy % batch->lead[i] * products;
            copy /= batch->lead[i];
        }
    return first;
}
