/* SPDX-License-Identifier: Apache-2.0 */
/* Between recurrence*.c and isa/recurrence_run.c: products of few rows by a panel, and the element-wise part of a cell
 * for a panel of hidden units. All arrays are float32 rows; pointers are to the first row and the first unit of the
 * panel. Gates stand `units` apart in arrays of all gates. Sums have block by block of RECURRENCE_LANES units all gates
 * of the panel's phase. */
#ifndef KERNELS_RECURRENCE_ISA_H
#define KERNELS_RECURRENCE_ISA_H

#include "kernels/recurrence.h"

enum { RECURRENCE_LANES = 16 };

struct float_rows {
    float *data; /* NULL: there is none */
    int64_t ld;
};

/* Rows of one step of one panel, forward. */
struct cell_rows {
    int64_t rows, units;
    int lanes, gates;                          /* units of the panel that there are; gates of the sums */
    struct float_rows sums;                    /* x W continued by h U, without bias */
    struct float_rows x;                       /* GRU, reset after: x W of the candidate */
    const float *bias, *inner_bias, *peephole; /* peephole: input, forget, output; NULL: none */
    struct float_rows before;                  /* GRU: h of the step before */
    struct float_rows state;          /* LSTM: c, updated in place. GRU, reset before: z, from phase to phase */
    struct float_rows reset;          /* GRU, reset before: r h, of the first phase */
    struct float_rows y, gates_out, kept; /* gates as activated; kept: LSTM's c, GRU's inner product */
    const struct recurrence_options *options;
};

/* The same of a step backward. */
struct cell_gradient_rows {
    int64_t rows, units;
    int lanes;                             /* units of the panel that there are */
    struct float_rows dh;                  /* of this step's result; GRU, reset before, second phase: of r h */
    struct float_rows gates, kept, before; /* before: c or h of the step before; RNN: y of this step as gates */
    const float *peephole;
    struct float_rows carry; /* LSTM: gradient of c; GRU: of h, past the gates; updated in place */
    struct float_rows dx;    /* of the pre-activations */
    struct float_rows inner; /* GRU, reset after: of h U and its bias, all gates */
    const struct recurrence_options *options;
};

/* x W of a panel, as sums begin with it. */
struct sum_rows {
    int64_t rows, units;
    int lanes, blocks, gates, given; /* gates from `given` on begin with zeros */
    struct float_rows x, sums;
};

/* Sums of gradients of a panel's units: given and more, either may lack. */
struct gradient_sums {
    int64_t rows;
    int lanes, columns; /* columns from `lanes` on are zeros */
    struct float_rows given, more, sums;
};

struct recurrence_loops {
    void (*load)(const struct sum_rows *c);
    void (*load_gradient)(const struct gradient_sums *c);
    /* sums (rows x columns) += a (rows x k) times a panel (k x columns, dense), each element in the order of k. columns
     * is a multiple of RECURRENCE_LANES. */
    void (*product)(struct float_rows sums, struct float_rows a, int64_t rows, int64_t k, const float *panel,
                    int64_t columns);
    /* The same of a panel of bfloat16. */
    void (*product_half)(struct float_rows sums, struct float_rows a, int64_t rows, int64_t k, const uint16_t *panel,
                         int64_t columns);
    void (*lstm)(const struct cell_rows *c);
    void (*gru_after)(const struct cell_rows *c);
    void (*gru_gates)(const struct cell_rows *c);     /* reset before: r h and z */
    void (*gru_candidate)(const struct cell_rows *c); /* then the result */
    void (*rnn)(const struct cell_rows *c);
    void (*lstm_gradient)(const struct cell_gradient_rows *c);
    void (*gru_after_gradient)(const struct cell_gradient_rows *c);
    void (*gru_candidate_gradient)(const struct cell_gradient_rows *c);
    void (*gru_gates_gradient)(const struct cell_gradient_rows *c);
    void (*rnn_gradient)(const struct cell_gradient_rows *c);
};

extern const struct recurrence_loops recurrence_loops_plain, recurrence_loops_avx2, recurrence_loops_avx512;
const struct recurrence_loops *recurrence_loops_of(enum isa isa);

#endif
