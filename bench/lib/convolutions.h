/* SPDX-License-Identifier: Apache-2.0 */
/* The three operations of concurrency-control.txt II-C (Figure 1, Tables II and III) on the inputs that the paper
 * names: it gives input sizes alone, so kernels are Inception-v3's at that place: 3x3 to as many channels for 384, 1x1
 * to 448 for 2048. */
#ifndef BENCH_CONVOLUTIONS_H
#define BENCH_CONVOLUTIONS_H

#include "study.h"

enum { CONV_INPUTS = 3, CONV_KINDS = 3 };

struct convolution {
    const char *label;
    int64_t batch, side, channels, out, kernel;
};
extern const struct convolution convolutions[CONV_INPUTS];

/* Backward weights, backward data, forward: the paper's order and names. */
extern const char *const convolution_names[CONV_KINDS];

/* A graph of the kinds in `mask` (bit per kind), independent of each other. */
graphi_status convolution_graph(const struct convolution *c, unsigned mask, graphi_graph **out);

/* Index of the class of this kind in the study's plan, -1: none. */
int convolution_class(const struct study *study, int kind);

#endif
