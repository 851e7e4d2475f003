/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells over whole sequences: LSTM, GRU and RNN as one loop kernel, and their gradients (deepcpu.txt 5.2.4,
 * weight-centric streamlining). A share is a panel of hidden units with all of their gates, the same in every step, so
 * that whoever runs it keeps its part of the weights in its cache; one barrier a step (two where the reset gate comes
 * before the product).
 *
 * Rows are in step order, longest sequence first: step t is the rows offsets[t] .. offsets[t + 1] - 1 of x and y, of
 * the first sequences of the batch. Without offsets every step has the whole batch. Arithmetic, which every lowering
 * has: pre = (x W continued by h U in the order of k) + b; no product is contracted with the sum that follows it. */
#ifndef KERNELS_RECURRENCE_H
#define KERNELS_RECURRENCE_H

#include "kernels/kernel.h"

enum recurrence_cell { RECURRENCE_LSTM, RECURRENCE_GRU, RECURRENCE_RNN };

/* Names of ONNX in this order: recurrence_function_names. */
enum recurrence_function {
    RECURRENCE_SIGMOID,
    RECURRENCE_TANH,
    RECURRENCE_RELU,
    RECURRENCE_AFFINE,
    RECURRENCE_LEAKY_RELU,
    RECURRENCE_THRESHOLDED_RELU,
    RECURRENCE_SCALED_TANH,
    RECURRENCE_HARD_SIGMOID,
    RECURRENCE_ELU,
    RECURRENCE_SOFTSIGN,
    RECURRENCE_SOFTPLUS,
    RECURRENCE_FUNCTIONS
};

struct recurrence_activation {
    enum recurrence_function function;
    float alpha, beta;
};

/* What changes a cell's arithmetic. */
struct recurrence_options {
    struct recurrence_activation activation[3]; /* of gates, candidate (LSTM: cell input), LSTM's result */
    float clip;                                 /* of pre-activations, to +-clip; 0: none */
    bool input_forget;                          /* LSTM: f = 1 - i */
    bool usual; /* none of that, and the functions of the papers: what is compiled without choices; set by binding */
};

/* Gates in their order: LSTM i, f, g, o; GRU r, z, n; RNN one. */
static inline int recurrence_gates(enum recurrence_cell cell)
{
    return cell == RECURRENCE_LSTM ? 4 : cell == RECURRENCE_GRU ? 3 : 1;
}

struct recurrence_spec {
    enum recurrence_cell cell;
    int64_t batch, rows, units; /* bounds of batch and rows */
    int64_t steps;              /* most of a sequence */
    bool half;                  /* packed weights are bfloat16 */
    bool offsets;               /* an input tells them */
    bool reverse;               /* from the last step of each sequence to its first */
    bool reset_after;           /* GRU: linear_before_reset */
    bool peepholes;             /* LSTM */
    bool gates, kept;           /* outputs for the backward pass are wanted */
    int64_t ld_x, ld_y;         /* backward: of the gradients of both */
    bool dy, dh, dc;            /* backward: which gradients there are */
    struct recurrence_cut {
        int rows, units, k; /* parts of a step's work (deepcpu.txt 5.2.3); 0: chosen. k above 1 rounds otherwise */
    } cut;
    struct recurrence_options options;
};

/* Inputs: x W [rows, gates * units], packed U, b [gates * units], h0 [batch, units], then those that the cell and spec
 * have: c0 (LSTM), inner bias [units] (GRU, reset after), peepholes [3, units] in the order input, forget, output,
 * offsets int32 [steps + 1]. Outputs: y [rows, units], last h [batch, units], LSTM: last c; then gates [rows, gates *
 * units], and LSTM: c [rows, units], GRU reset after: h U of the candidate and its bias, without the reset gate [rows,
 * units]. Last states of a sequence of no steps are zeros. INVALID at run: offsets that do not end with the rows of x.
 */
graphi_status recurrence_bind(const struct recurrence_spec *spec, enum isa isa, struct kernel *kernel);

/* Inputs: packed transposed U, h0, gates, y; then LSTM: c0, c of all rows; GRU, reset after: the kept product;
 * peepholes; gradients of y, last h, last c as spec tells; offsets. Outputs: gradient of x W [rows, gates * units]; of
 * h0; LSTM: of c0; GRU reset after: of h U [rows, gates * units]. */
graphi_status recurrence_gradient_bind(const struct recurrence_spec *spec, enum isa isa, struct kernel *kernel);

/* The form of U [units, gates * units] (trans: [gates * units, units]) that the kernels read. backward: of the
 * gradient.
 */
struct recurrence_pack_spec {
    enum recurrence_cell cell;
    int64_t units;
    bool reset_after, trans, backward;
    bool half; /* bfloat16, rounded to nearest */
};
int64_t recurrence_packed_count(const struct recurrence_pack_spec *spec); /* elements */
graphi_status recurrence_pack_bind(const struct recurrence_pack_spec *spec, struct kernel *kernel);

/* Lengths int32 [batch], none larger than the one before, to offsets int32 [steps + 1]. INVALID at run, naming the row,
 * of lengths that are negative, beyond the steps or out of order. */
graphi_status sequence_offsets_bind(int64_t batch, int64_t steps, struct kernel *kernel);

/* Rows of the step before: inputs y [rows, columns], first [batch, columns], offsets if there are any; output [rows,
 * columns]. What forward or `reverse` order has before a sequence's first row is its row of `first`. */
graphi_status sequence_previous_bind(int64_t rows, int64_t batch, int64_t columns, int64_t ld_y, int64_t ld_out,
                                     int64_t steps, bool offsets, bool reverse, struct kernel *kernel);

#endif
