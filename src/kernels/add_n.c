/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of many arrays (gradients of a weight shared by all steps of an unrolled network: up to a few hundred terms).
 * Each block of the result stays in L1 while all inputs are added to it, so traffic is inputs plus output. The output
 * may be any one of the inputs: the block is collected on the stack and stored last. */
#include "kernels/add_n.h"

#include "base/status.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

#include <string.h>

enum { BLOCK = 1024 };

struct add_n {
    const struct reduce_loops *loops;
    int inputs, shares;
    int64_t row; /* elements of one row of dimension 0 */
    bool bounded;
    int64_t count;
};

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct add_n *work = call->params;
    int64_t count = work->bounded ? call->out[0].rows * work->row : work->count, begin, end;
    split_range((count + BLOCK - 1) / BLOCK, work->shares, share, &begin, &end);
    for (int64_t at = begin * BLOCK; at < end * BLOCK && at < count; at += BLOCK) {
        float sum[BLOCK];
        int64_t n = count - at < BLOCK ? count - at : BLOCK;
        memcpy(sum, (const float *)call->in[0].data + at, (size_t)n * sizeof *sum);
        for (int k = 1; k < work->inputs; k++) {
            const float *x = (const float *)call->in[k].data + at;
            work->loops->rows[REDUCE_SUM](sum, &x, 1, (int)n);
        }
        memcpy((float *)call->out[0].data + at, sum, (size_t)n * sizeof *sum);
    }
    return GRAPHI_OK;
}

graphi_status add_n_bind(int inputs, const struct array_desc *in, const struct array_desc *out, enum isa isa,
                         struct kernel *kernel)
{
    for (int k = 0; k < inputs; k++)
        if (!array_is_dense(&in[k]) || in[k].dtype != GRAPHI_F32 || array_count(&in[k]) != array_count(out))
            return fail(GRAPHI_UNSUPPORTED, "add_n",
                        "found input %d strided or of another size, expected dense float32", k);
    if (!array_is_dense(out))
        return fail(GRAPHI_UNSUPPORTED, "add_n", "found a strided output, expected a dense one");
    struct add_n work = {
        .loops = reduce_loops_of(isa), .inputs = inputs, .count = array_count(out), .bounded = out->bounded};
    work.row = out->rank && out->dims[0] ? work.count / out->dims[0] : work.count;
    const double bytes = (double)(inputs + 1) * (double)work.count * sizeof(float);
    work.shares = shares_for(bytes, divide_up(work.count, BLOCK));
    struct kernel like = {.name = "add_n",
                          .run = run,
                          .shares = {work.shares},
                          .flops = (double)(inputs - 1) * (double)work.count,
                          .bytes = bytes};
    return kernel_make(like, &work, sizeof work, kernel);
}
