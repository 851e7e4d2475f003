/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN inside PyTorch: one child process for the whole experiment (bench/frameworks/kernels_pytorch.py), started by
 * the first call, asleep between calls. */
#ifndef BENCH_ROWS_PYTORCH_H
#define BENCH_ROWS_PYTORCH_H

#include "peers/arithmetic.h"

/* Median time of one execution in ms, as the peers of arithmetic.h; negative: pytorch_reason says why. */
double pytorch_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies);
double pytorch_conv(const struct peer_conv *shape, int threads, int repeat, int copies);
const char *pytorch_version(void); /* "" before a call succeeded */
const char *pytorch_reason(void);
void pytorch_stop(void);

#endif
