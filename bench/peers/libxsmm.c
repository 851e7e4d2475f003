/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on LIBXSMM's generated batch-reduce kernels, one thread: blocks of up to 64 x 64 of the result, each
 * the sum over blocks of k; the right operand in dense blocks, made outside the timing, as a weight would be. LIBXSMM
 * is column-major: it sees the transposed product, so our b is its a. */
#include "arithmetic.h"
#include "repeat.h"

#include <libxsmm.h>
#include <stdio.h>

struct call {
    libxsmm_smmfunction_reducebatch_strd multiply;
    const float *a, *b;
    float *c;
    int64_t m, n, k, rows, cols, steps; /* sizes of the blocks */
    int trans_a, copies, turn;             /* results one behind another, and the next of them */
};

static int64_t block_of(int64_t size)
{
    int64_t block = size < 64 ? size : 64;
    while (size % block)
        block--;
    return block;
}

static void multiply(void *context)
{
    struct call *s = context;
    float *c = s->c + s->turn++ % s->copies * s->m * s->n;
    unsigned long long count = (unsigned long long)(s->k / s->steps);
    for (int64_t col = 0; col < s->n; col += s->cols)
        for (int64_t row = 0; row < s->m; row += s->rows)
            s->multiply(s->b + col * s->k, s->a + (s->trans_a ? row : row * s->k), c + row * s->n + col, &count);
}

double peer_libxsmm_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies)
{
    if (threads != 1)
        return -1;
    libxsmm_init();
    struct call call = {.a = repeat_array(shape->m * shape->k), .b = repeat_array(shape->k * shape->n),
                        .c = repeat_array(copies * shape->m * shape->n), .m = shape->m, .n = shape->n, .k = shape->k,
                        .rows = block_of(shape->m), .cols = block_of(shape->n), .steps = block_of(shape->k),
                        .trans_a = shape->trans_a, .copies = copies};
    libxsmm_blasint lda = (libxsmm_blasint)call.cols, ldb = (libxsmm_blasint)(shape->trans_a ? shape->m : shape->k);
    libxsmm_blasint ldc = (libxsmm_blasint)shape->n;
    int64_t step_b = shape->trans_a ? call.steps * shape->m : call.steps;
    float one = 1, zero = 0;
    int flags = shape->trans_a ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    call.multiply = libxsmm_smmdispatch_reducebatch_strd(
        (libxsmm_blasint)call.cols, (libxsmm_blasint)call.rows, (libxsmm_blasint)call.steps,
        (libxsmm_blasint)(call.cols * call.steps * 4), (libxsmm_blasint)(step_b * 4), &lda, &ldb, &ldc, &one, &zero,
        &flags, NULL);
    double ms = call.multiply && call.a && call.b && call.c ? repeat_median(multiply, &call, repeat, copies) : -1;
    free((void *)call.a);
    free((void *)call.b);
    free(call.c);
    return ms;
}

const char *peer_libxsmm_version(void) { return LIBXSMM_VERSION; }
