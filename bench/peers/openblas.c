/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in OpenBLAS. */
#include "arithmetic.h"
#include "repeat.h"

#include <cblas.h>

struct call {
    const struct peer_gemm *shape;
    float *a, *b, *c;
    int copies, turn; /* results one behind another, and the next of them */
};

static void multiply(void *context)
{
    struct call *call = context;
    const struct peer_gemm *s = call->shape;
    float *c = call->c + call->turn++ % call->copies * s->m * s->n;
    cblas_sgemm(CblasRowMajor, s->trans_a ? CblasTrans : CblasNoTrans, s->trans_b ? CblasTrans : CblasNoTrans,
                (int)s->m, (int)s->n, (int)s->k, 1, call->a, (int)(s->trans_a ? s->m : s->k), call->b,
                (int)(s->trans_b ? s->k : s->n), 0, c, (int)s->n);
}

double peer_openblas_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies)
{
    struct call call = {shape,
                        repeat_array(shape->m * shape->k),
                        repeat_array(shape->k * shape->n),
                        repeat_array(copies * shape->m * shape->n),
                        copies,
                        0};
    openblas_set_num_threads(threads);
    double ms = call.a && call.b && call.c ? repeat_median(multiply, &call, repeat, copies) : -1;
    free(call.a);
    free(call.b);
    free(call.c);
    return ms;
}

const char *peer_openblas_version(void) { return openblas_get_config(); }
