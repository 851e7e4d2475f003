/* SPDX-License-Identifier: Apache-2.0 */
/* A recurrent node as shape rules, kernels, gradients and passes see it: which inputs and outputs it has, and what its
 * attributes ask of the kernel. */
#include "graphi/recurrent.h"
#include "ops/recurrence.h"

#include <string.h>

void recurrence_copy_attributes(const struct node *node, graphi_attribute *attributes)
{
    for (int i = 0; i < RECURRENCE_SHARED; i++)
        attributes[i] = node->attribute[i];
    attributes[RECURRENCE_SHARED - 1].i = recurrence_cell_of(node);
}

enum recurrence_cell recurrence_cell_of(const struct node *node)
{
    const char *name = node->kind->name;
    return strcmp(name, "lstm") == 0  ? RECURRENCE_LSTM
           : strcmp(name, "gru") == 0 ? RECURRENCE_GRU
           : strcmp(name, "rnn") == 0
               ? RECURRENCE_RNN
               : (enum recurrence_cell)least(most(attr_int(node, "cell"), RECURRENCE_LSTM), RECURRENCE_RNN);
}

struct recurrence_node recurrence_node(const struct node *node)
{
    struct recurrence_node n = {.cell = recurrence_cell_of(node), .reset_after = attr_int(node, "reset_after") != 0};
    int in = RECURRENT_H0 + 1, out = RECURRENT_LAST_H + 1;
    n.c0 = n.cell == RECURRENCE_LSTM ? in++ : -1;
    n.inner = n.cell == RECURRENCE_GRU && n.reset_after ? in++ : -1;
    n.peepholes = n.cell == RECURRENCE_LSTM && attr_int(node, "peepholes") ? in++ : -1;
    n.offsets = attr_int(node, "lengths") ? in++ : -1;
    n.inputs = in;
    n.last_c = n.cell == RECURRENCE_LSTM ? out++ : -1;
    n.gates = n.cell == RECURRENCE_RNN ? -1 : out++;
    n.kept = n.cell == RECURRENCE_RNN ? -1 : out++;
    return n;
}

_Static_assert((int)GRAPHI_LSTM == (int)RECURRENCE_LSTM && (int)GRAPHI_RNN == (int)RECURRENCE_RNN &&
                   (int)GRAPHI_ACTIVATIONS == (int)RECURRENCE_FUNCTIONS,
               "the public numbers are the kernels'");

/* Defaults of ONNX's text, where an activation is chosen without its numbers. */
static const float usual_alpha[RECURRENCE_FUNCTIONS] = {
    [RECURRENCE_LEAKY_RELU] = 0.01f,  [RECURRENCE_THRESHOLDED_RELU] = 1,
    [RECURRENCE_HARD_SIGMOID] = 0.2f, [RECURRENCE_ELU] = 1,
    [RECURRENCE_AFFINE] = 1,          [RECURRENCE_SCALED_TANH] = 1};
static const float usual_beta[RECURRENCE_FUNCTIONS] = {[RECURRENCE_HARD_SIGMOID] = 0.5f, [RECURRENCE_SCALED_TANH] = 1};

static struct recurrence_activation activation_of(const struct node *node, enum recurrence_cell cell, int i)
{
    static const enum recurrence_function usual[3][3] = {{RECURRENCE_SIGMOID, RECURRENCE_TANH, RECURRENCE_TANH},
                                                         {RECURRENCE_SIGMOID, RECURRENCE_TANH},
                                                         {RECURRENCE_TANH}};
    const int64_t *functions, *alphas, *betas;
    struct recurrence_activation a = {.function = usual[cell][i]};
    if (i < attr_ints(node, "functions", &functions) && functions[i] >= 0 && functions[i] < RECURRENCE_FUNCTIONS)
        a.function = (enum recurrence_function)functions[i];
    a.alpha = i < attr_ints(node, "alphas", &alphas) ? (float)((double)alphas[i] * 1e-6) : usual_alpha[a.function];
    a.beta = i < attr_ints(node, "betas", &betas) ? (float)((double)betas[i] * 1e-6) : usual_beta[a.function];
    return a;
}

struct recurrence_spec recurrence_spec_of(const struct node *node)
{
    const enum recurrence_cell cell = recurrence_cell_of(node);
    struct recurrence_spec spec = {
        .cell = cell,
        .units = attr_int(node, "units"),
        .steps = attr_int(node, "steps"),
        .reverse = attr_int(node, "reverse") != 0,
        .reset_after = attr_int(node, "reset_after") != 0,
        .peepholes = attr_int(node, "peepholes") != 0,
        .offsets = attr_int(node, "lengths") != 0,
        .half = attr_int(node, "half") != 0,
        .options = {.clip = (float)attr_float(node, "clip"), .input_forget = attr_int(node, "input_forget") != 0}};
    const int64_t *cut;
    if (attr_ints(node, "cut", &cut) == 3)
        spec.cut = (struct recurrence_cut){(int)cut[0], (int)cut[1], (int)cut[2]};
    for (int i = 0; i < 3; i++)
        spec.options.activation[i] = activation_of(node, cell, i);
    return spec;
}

/* Larger ones would have more elements than a value can. */
graphi_status recurrence_check_units(const struct shape_call *call)
{
    const int64_t units = attr_int(call->node, "units"), steps = attr_int(call->node, "steps");
    if (units >= 1 && units <= 1 << 20 && steps >= 0 && steps < INT32_MAX)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, call->where, "found units %lld, steps %lld, expected 1 to %d units, 0 to %d steps",
                (long long)units, (long long)steps, 1 << 20, INT32_MAX - 1);
}
