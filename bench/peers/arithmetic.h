/* SPDX-License-Identifier: Apache-2.0 */
/* The same products and convolutions in other libraries. Each call gives the median time in ms of one execution out of `repeat`
 * rounds over `copies` separate results (so that results are as cold as ours), or a negative number when the library was not found at build time or refuses the shape. */
#ifndef BENCH_PEERS_ARITHMETIC_H
#define BENCH_PEERS_ARITHMETIC_H

#include <stdint.h>

struct peer_gemm {
    int64_t m, n, k;
    int trans_a, trans_b;
};

struct peer_conv {
    int64_t n, h, w, c, k, kernel, stride, pad;
    int direction; /* 0 forward, 1 backward data, 2 backward weights */
};

double peer_openblas_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies);
double peer_libxsmm_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies); /* one thread */
double peer_onednn_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies);
double peer_onednn_conv(const struct peer_conv *shape, int threads, int repeat, int copies); /* its own choice of layouts */
const char *peer_onednn_version(void);
const char *peer_openblas_version(void);
const char *peer_libxsmm_version(void);

#endif
