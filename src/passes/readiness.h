/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products, and when their operands are there with all the cores that one could want: what pass_ready and
 * pass_stages share. Time is counted in multiplications of matrix products on the longest path, of which one that
 * pass_stages would cut passes its last part alone; all else takes none. */
#ifndef PASSES_READINESS_H
#define PASSES_READINESS_H

#include "passes/passes.h"

#include "kernels/gemm.h"

enum { MOST_STAGES = 8 };

/* The pairs of a product, in the order in which they are summed. */
struct sum {
    const struct node *node;
    int pairs;
    bool moved; /* they were in another order */
    struct pair {
        int32_t a, b;
        double ready, work; /* work: multiplications */
        double last;        /* when it and all behind it are there */
    } pair[GEMM_MAX_PAIRS];
};

/* Pairs that the stages of a sum begin with, the last one's end as well. One stage: it stays whole. */
struct cuts {
    int stages;
    int begin[MOST_STAGES + 1];
};

/* Calls visit for every plain product of several pairs, in the order of the graph, with the cut in two that makes it
 * ready earliest; its pairs are sorted by readiness first where `sorts` says so (NULL: nowhere). What visit puts in its
 * place goes into the map. */
graphi_status each_sum(graphi_graph *graph, bool (*sorts)(const graphi_graph *graph, const struct node *node),
                       graphi_status (*visit)(graphi_graph *graph, int32_t id, const struct sum *sum,
                                              const struct cuts *cuts, struct value_map *map));

/* The product of pairs [begin, end), which goes on from `base` if there is one; in place of sum->node, which is `node`
 * now that the graph grows. */
graphi_value sum_part(graphi_graph *graph, const struct sum *sum, const struct node *node, int begin, int end,
                      graphi_value base);

static inline bool is_weight_gradient(const struct node *node) { return attr_int(node, "trans_a") != 0; }

#endif
