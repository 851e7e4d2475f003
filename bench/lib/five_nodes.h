/* SPDX-License-Identifier: Apache-2.0 */
/* A graph so small that what a call costs is most of its time: three products of 16 x 16 with two tanh between them.
 * For experiments about calls. Public API only. */
#ifndef BENCH_FIVE_NODES_H
#define BENCH_FIVE_NODES_H

#include "bench.h"

enum { FIVE_SIDE = 16, FIVE_COUNT = FIVE_SIDE * FIVE_SIDE };

typedef float five_array[FIVE_COUNT] __attribute__((aligned(GRAPHI_ALIGNMENT)));

struct five_nodes {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
};

/* Tells of a failure, of nothing else. */
static inline graphi_status told(graphi_status status)
{
    return status == GRAPHI_OK ? status : bench_failure(status);
}

/* A static plan on the benchmark's machine. Harmless to close after a failure. */
graphi_status five_nodes_open(struct bench *bench, struct five_nodes *five);
void five_nodes_close(struct five_nodes *five);

/* The i-th number of input x and, of the weights, of matrix k; below 1 in size. Peers fill theirs alike. */
float five_nodes_number(int matrix, int i);

/* A run with x and y in place. */
graphi_status five_nodes_bind(const struct five_nodes *five, five_array *x, five_array *y, graphi_run **run);

#endif
