/* SPDX-License-Identifier: Apache-2.0 */
/* What the recurrent operations and their gradients share: which inputs there are, attributes, the kernel's
 * specification. Inputs: x W, U, b, h0, then c0 (lstm), inner bias (gru with reset_after), peepholes, offsets as
 * attributes tell. */
#ifndef OPS_RECURRENCE_H
#define OPS_RECURRENCE_H

#include "kernels/recurrence.h"
#include "ops/check.h"

/* Places of inputs and outputs of a forward node; -1: it has none. */
struct recurrence_node {
    enum recurrence_cell cell;
    bool reset_after;
    int c0, inner, peepholes, offsets, inputs;
    int last_c, gates, kept; /* outputs */
};
enum { RECURRENT_X, RECURRENT_U, RECURRENT_B, RECURRENT_H0 };
enum { RECURRENT_Y, RECURRENT_LAST_H };

struct recurrence_node recurrence_node(const struct node *node);
enum recurrence_cell recurrence_cell_of(const struct node *node); /* of gradients too, and of packing */

graphi_status recurrence_check_units(const struct shape_call *call);

/* From attributes alone. */
struct recurrence_spec recurrence_spec_of(const struct node *node);

/* The attributes that a gradient has of its forward node. */
enum { RECURRENCE_SHARED = 16 };
void recurrence_copy_attributes(const struct node *node, graphi_attribute *attributes);

/* Of all recurrent operations, RECURRENCE_SHARED of them; what only some have comes after. */
#define RECURRENCE_ATTRIBUTES                                                                                          \
    {.name = "units", .meaning = "hidden units", .type = GRAPHI_INT, .required = true},                                \
        {.name = "steps", .meaning = "most of a sequence; 0: rows over the batch", .type = GRAPHI_INT},                \
        {.name = "reverse", .meaning = "from the last step to the first", .type = GRAPHI_INT},                         \
        {.name = "reset_after", .meaning = "gru: the reset gate comes after the product", .type = GRAPHI_INT},         \
        {.name = "peepholes", .meaning = "lstm: an input has them", .type = GRAPHI_INT},                               \
        {.name = "lengths", .meaning = "the last input has the offsets of steps", .type = GRAPHI_INT},                 \
        {.name = "input_forget", .meaning = "lstm: the forget gate is 1 - the input gate", .type = GRAPHI_INT},        \
        {.name = "clip", .meaning = "limit of pre-activations; 0: none", .type = GRAPHI_FLOAT},                        \
        {.name = "functions",                                                                                          \
         .meaning = "of gates, candidate, lstm's result, enum graphi_activation; empty: its own",                      \
         .type = GRAPHI_INTS},                                                                                         \
        {.name = "alphas", .meaning = "in millionths; empty: ONNX's", .type = GRAPHI_INTS},                            \
        {.name = "betas", .meaning = "in millionths; empty: ONNX's", .type = GRAPHI_INTS},                             \
        {.name = "trans", .meaning = "u is [gates units, units]", .type = GRAPHI_INT},                                 \
        {.name = "cut",                                                                                                \
         .meaning = "parts of rows, units, k of a step; 0: chosen",                                                    \
         .type = GRAPHI_INTS,                                                                                          \
         .internal = true},                                                                                            \
        {.name = "half", .meaning = "packed u is of bfloat16", .type = GRAPHI_INT, .internal = true},                  \
        {.name = "packed", .meaning = "u is of recurrence_pack", .type = GRAPHI_INT, .internal = true},                \
    {                                                                                                                  \
        .name = "cell", .meaning = "0 lstm, 1 gru, 2 rnn", .type = GRAPHI_INT, .internal = true                        \
    }

void recurrence_gradient(struct gradient_call *call);

#endif
