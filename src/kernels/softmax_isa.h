/* SPDX-License-Identifier: Apache-2.0 */
/* Between softmax.c and isa/softmax_run.c: loops over one row. Sums go through 64 lanes and a tree (reduce_isa.h). */
#ifndef KERNELS_SOFTMAX_ISA_H
#define KERNELS_SOFTMAX_ISA_H

#include <stdbool.h>
#include <stdint.h>

struct softmax_loops {
    float (*exp_shift)(float *y, const float *x, float shift, int64_t n); /* y = e^(x - shift); gives the sum of y */
    float (*exp_sum)(const float *x, float shift, int64_t n);             /* the same sum alone */
    void (*scale)(float *y, const float *x, float by, int64_t n);         /* y = x by */
    void (*shift)(float *y, const float *x, float by, int64_t n);         /* y = x - by */
    float (*sum)(const float *x, int64_t n);
    float (*dot)(const float *a, const float *b, int64_t n);
    /* y (dy - dot); dy - e^y sum. `past`: dx goes past the caches where it begins a line. */
    void (*gradient)(float *dx, const float *y, const float *dy, float dot, int64_t n, bool past);
    void (*log_gradient)(float *dx, const float *y, const float *dy, float sum, int64_t n, bool past);
    float (*log)(float x);
};

extern const struct softmax_loops softmax_loops_plain, softmax_loops_avx2, softmax_loops_avx512;

#endif
