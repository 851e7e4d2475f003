/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products, and when their operands are there with all the cores that one could want: what pass_ready and
 * pass_stages share. Time is counted in multiplications of matrix products on the longest path, of which one that
 * pass_stages would cut passes its last part alone; all else takes none. */
#ifndef PASSES_READINESS_H
#define PASSES_READINESS_H

#include "passes/edit.h"
#include "passes/passes.h"

#include "kernels/gemm_spec.h"
#include "ops/matmul.h"

/* The pairs of a product, in the order in which they are summed. */
struct sum {
    int pairs;
    bool moved; /* they were in another order */
    struct pair {
        int32_t a, b;
        double ready, work; /* work: multiplications */
        double last;        /* when it and all behind it are there */
    } pair[GEMM_MAX_PAIRS];
};

/* What is done with a sum, node `id`: what comes in its place goes into the map. cut: so many of its pairs are a part
 * that is there early enough to be made by itself, so that the whole is ready earliest; 0: none is. */
typedef graphi_status (*sum_visitor)(graphi_graph *graph, int32_t id, const struct sum *sum, int cut,
                                     struct value_map *map);

/* Visits every plain product of several pairs, in the order of the graph; its pairs are sorted by readiness first where
 * `sorts` says so (NULL: nowhere). */
graphi_status each_sum(graphi_graph *graph, bool (*sorts)(const graphi_graph *graph, const struct node *node),
                       sum_visitor visit);

#endif
