/* SPDX-License-Identifier: Apache-2.0 */
/* A training graph cut at its gradients. The first part gives what solvers sum and keeps no parameter; the second reads
 * the sums and updates parameters, the same in every solver. What crosses lies in one block of floats, so that it can
 * be summed, sent and read in chunks whatever the network. */
#ifndef GROUP_SPLIT_H
#define GROUP_SPLIT_H

#include "graph/graph.h"

/* What solvers make one of, each of its samples: a gradient, or the next content of a parameter that the graph assigns
 * beside its optimizer (running statistics), of which the mean is kept. */
struct summed {
    char *output;         /* of the first part */
    char *input[2];       /* of the second; [1]: of the other solver, where the second part sums */
    size_t offset, count; /* floats in the block; offsets are multiples of GRAPHI_ALIGNMENT bytes */
};

/* What belongs to samples, "state/...": an input and an output of the first part, rows of a parameter. */
struct carried {
    char *parameter, *input, *output;
    graphi_dtype dtype;
    size_t bytes; /* of the graph's samples */
};

struct split {
    graphi_graph *gradient, *update; /* clones: the graph must outlive them */
    ARRAY(struct summed) summed;
    ARRAY(struct carried) carried;
    size_t floats; /* of a block */
};

/* weight: NULL, or those of two solvers, whose blocks the second part reads and sums, the first one's first. Closed
 * also where it fails. INVALID: the graph has no update of graphi_minimize; UNSUPPORTED: it assigns what is no float32
 * beside it, or updates rows of a table alone; MEMORY. */
graphi_status split_open(const graphi_graph *graph, const float weight[2], struct split *split);
void split_close(struct split *split);

#endif
