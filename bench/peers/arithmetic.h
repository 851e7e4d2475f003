/* SPDX-License-Identifier: Apache-2.0 */
/* The same operations in other libraries. Each call gives the median time in ms of one execution out of `repeat`
 * rounds over `copies` separate results (so that results are as cold as ours), or a negative number when the library
 * was not found at build time or refuses the shape. */
#ifndef BENCH_PEERS_ARITHMETIC_H
#define BENCH_PEERS_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

struct peer_gemm {
    int64_t m, n, k;
    int trans_a, trans_b;
    int64_t batch; /* independent products; 0: one */
    bool bfloat16; /* multiplicands; the result is float32 */
};

struct peer_conv {
    int64_t n, h, w, c, k, kernel, stride, pad;
    int64_t width, pad_width; /* of the kernel; width 0: square */
    int64_t groups;           /* 0: one */
    bool bfloat16;            /* multiplicands; the result is float32 */
    int direction;            /* 0 forward, 1 backward data, 2 backward weights */
};

static inline int64_t peer_batch(const struct peer_gemm *s) { return s->batch ? s->batch : 1; }
static inline int64_t peer_groups(const struct peer_conv *s) { return s->groups ? s->groups : 1; }
static inline int64_t peer_width(const struct peer_conv *s) { return s->width ? s->width : s->kernel; }
static inline int64_t peer_pad_width(const struct peer_conv *s) { return s->width ? s->pad_width : s->pad; }
static inline int64_t peer_out_height(const struct peer_conv *s)
{
    return (s->h + 2 * s->pad - s->kernel) / s->stride + 1;
}
static inline int64_t peer_out_width(const struct peer_conv *s)
{
    return (s->w + 2 * peer_pad_width(s) - peer_width(s)) / s->stride + 1;
}

/* What is bound by memory. Images are n x h x w x c, matrices rows x 1 x 1 x columns: dims has four of them. */
enum peer_primitive {
    PEER_NONE,       /* nobody has it */
    PEER_MAX_POOL,   /* kernel, stride, pad of both sides */
    PEER_AVG_POOL,
    PEER_BATCH_NORM, /* of training: statistics of the batch */
    PEER_LRN,        /* over `kernel` channels */
    PEER_SOFTMAX,
    PEER_SUM_ROWS,   /* [c]: the gradient of a bias */
    PEER_SUM_COLUMNS, /* [n] */
    PEER_BIAS_RELU,
    PEER_ADD,
    PEER_TRANSPOSE,  /* of a matrix */
    PEER_CONCAT,     /* two halves of the channels */
};

struct peer_memory {
    enum peer_primitive primitive;
    bool backward;
    int64_t dims[4], kernel, stride, pad; /* what the primitive takes of them */
};

double peer_onednn_memory(const struct peer_memory *what, int threads, int repeat,
                          int copies); /* the better of its layouts */
double peer_openblas_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies);
double peer_libxsmm_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies); /* one thread */
double peer_onednn_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies);
double peer_onednn_conv(const struct peer_conv *shape, int threads, int repeat,
                        int copies); /* its own choice of layouts */
const char *peer_onednn_version(void);
const char *peer_openblas_version(void);
const char *peer_libxsmm_version(void);

#endif
