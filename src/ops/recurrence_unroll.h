/* SPDX-License-Identifier: Apache-2.0 */
/* A recurrence over sequences of one length as a graph of its steps: the forms that deepcpu.txt 5.1 and 5.2.1 compare
 * the loop with. The same bits as the loop: pre = (x W continued by h U) + b, each element-wise operation rounded
 * by itself. Built with the public builders, by layers (recurrent_layers.c) and by a pass over compiled graphs. */
#ifndef OPS_RECURRENCE_UNROLL_H
#define OPS_RECURRENCE_UNROLL_H

#include "graph/graph.h"
#include "graphi/recurrent.h"

struct unrolled {
    graphi_graph *graph;
    graphi_cell cell;
    graphi_lowering lowering; /* ACROSS, UNROLLED, FUSED or EIGHT */
    int64_t units, steps, batch;
    bool reverse, relu;       /* relu: of an RNN */
    bool w_rows, u_rows;      /* gates are rows of w, of u (PyTorch); else columns */
    graphi_value x, w;        /* NONE: xw is there */
    graphi_value xw;          /* NONE: made of x and w, as the lowering says */
    graphi_value u, b, inner; /* inner: bias of a GRU's candidate inside its reset gate, NONE: reset before */
    bool gates, kept;         /* these results are wanted, for a backward pass */
};

/* y [steps * batch, units]; gates [.., gates * units] as activated; kept: an LSTM's c, a GRU's h U and inner bias of
 * its candidate; NONE where they are not wanted. *h and *c go from initial to last states. */
struct unrolled_results {
    graphi_value y, gates, kept;
};

enum { UNROLLED_MOST = 1024 }; /* steps */

struct unrolled_results recurrence_unroll(const struct unrolled *of, graphi_value *h, graphi_value *c);

/* Rows begin .. end - 1 of x; where x is a concatenation of rows and one of its parts has just these, that part. */
graphi_value unrolled_rows(graphi_graph *graph, graphi_value x, int64_t begin, int64_t end);

#endif
