/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of optimizers as operators: a rate, a count of steps, then as many tensors, gradients and states as there are
 * parameters. Source: ONNX's preview of training, Adagrad, Adam, Momentum. Any thread. */
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

enum kind { ADAGRAD, ADAM, MOMENTUM };

struct step {
    enum kind kind;
    double rate, alpha, beta, gradient; /* what the gradient is multiplied with, for Momentum's first step */
    double epsilon, norm, norm_after;
    bool nesterov;
};

static graphi_status read_step(const struct op_call *call, struct step *s)
{
    for (int i = 0; i < 2; i++) {
        TRY(op_tensor(call, i, 0));
        if (call->in[i]->count != 1)
            return op_fail(call, "found %lld elements as input %d of %s, expected 1", (long long)call->in[i]->count, i,
                           call->op->name);
    }
    const double t = (double)value_int(call->in[1], 0);
    const char *mode = op_string(call, "mode", "standard");
    *s = (struct step){.kind = (enum kind)call->op->variant,
                       .rate = value_double(call->in[0], 0),
                       .alpha = op_float(call, "alpha", 0.9f),
                       .beta = op_float(call, "beta", 0.999f),
                       .epsilon = op_float(call, "epsilon", 1e-6f),
                       .norm = op_float(call, "norm_coefficient", 0),
                       .norm_after = op_float(call, "norm_coefficient_post", 0),
                       .nesterov = strcmp(mode, "nesterov") == 0};
    s->gradient = t > 0 ? s->beta : 1;
    if (s->kind == ADAGRAD)
        s->rate /= 1 + t * op_float(call, "decay_factor", 0);
    if (s->kind == ADAM && t > 0)
        s->rate *= sqrt(1 - pow(s->beta, t)) / (1 - pow(s->alpha, t));
    static const char *const needed[] = {"alpha", "beta", "mode", "norm_coefficient"};
    for (int i = 0; s->kind == MOMENTUM && i < 4; i++)
        if (!op_attribute(call, needed[i]))
            return op_fail(call, "found no %s of %s, expected one", needed[i], call->op->name);
    if (!s->nesterov && strcmp(mode, "standard") != 0)
        return op_fail(call, "found mode \"%.40s\", expected standard or nesterov", mode);
    return GRAPHI_OK;
}

/* One element: x and its states, which become the new ones. */
static void step_one(const struct step *s, double *x, double g, double *states)
{
    g += s->norm * *x;
    if (s->kind == ADAGRAD) {
        states[0] += g * g;
        *x -= s->rate * g / (sqrt(states[0]) + s->epsilon);
    } else if (s->kind == ADAM) {
        states[0] = s->alpha * states[0] + (1 - s->alpha) * g;
        states[1] = s->beta * states[1] + (1 - s->beta) * g * g;
        *x -= s->rate * states[0] / (sqrt(states[1]) + s->epsilon);
        *x *= 1 - s->norm_after;
    } else {
        states[0] = s->alpha * states[0] + s->gradient * g;
        *x -= s->rate * (s->nesterov ? g + s->alpha * states[0] : states[0]);
    }
}

static void store(graphi_tensor *out, int64_t i, double number)
{
    if (out)
        element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

/* Parameter p of `count`: inputs are x, gradient and states, outputs x and states. */
static graphi_status step_parameter(struct op_call *call, const struct step *s, int p, int count)
{
    const int states = s->kind == ADAM ? 2 : 1;
    const graphi_tensor *in[4];
    graphi_tensor *out[3] = {NULL};
    for (int k = 0; k < states + 2; k++) {
        const int i = 2 + k * count + p;
        TRY(op_tensor(call, i, 0));
        in[k] = call->in[i];
        if (in[k]->type != in[0]->type || in[k]->rank != in[0]->rank ||
            memcmp(in[k]->dims, in[0]->dims, (size_t)in[0]->rank * sizeof *in[0]->dims) != 0) {
            struct value_text a, b;
            return op_fail(call, "found %s as input %d of %s, expected %s", value_describe(in[k], &a), i,
                           call->op->name, value_describe(in[0], &b));
        }
    }
    if (!element_is_float(in[0]->type))
        return op_fail(call, "found parameters of %s, expected floats", graphi_element_name(in[0]->type));
    for (int k = 0; k < states + 1; k++)
        if (op_wants(call, k * count + p))
            TRY(op_new(call, k * count + p, in[0]->type, in[0]->rank, in[0]->dims, &out[k]));
    for (int64_t i = 0; i < in[0]->count; i++) {
        double x = value_double(in[0], i), state[2];
        for (int k = 0; k < states; k++)
            state[k] = value_double(in[k + 2], i);
        step_one(s, &x, value_double(in[1], i), state);
        store(out[0], i, x);
        for (int k = 0; k < states; k++)
            store(out[k + 1], i, state[k]);
    }
    return GRAPHI_OK;
}

static graphi_status run_update(struct op_call *call)
{
    struct step s = {0};
    TRY(read_step(call, &s));
    const int each = s.kind == ADAM ? 4 : 3, count = (call->ins - 2) / each;
    if ((call->ins - 2) % each != 0)
        return op_fail(call, "found %d inputs of %s, expected 2 and %d for each parameter", call->ins, call->op->name,
                       each);
    for (int p = 0; p < count; p++)
        TRY(step_parameter(call, &s, p, count));
    return GRAPHI_OK;
}

#define TRAINING "ai.onnx.preview.training."
const struct host_op host_ops_update[] = {
    {TRAINING "Adagrad", 5, -1, -1, "decay_factor epsilon norm_coefficient", run_update, ADAGRAD},
    {TRAINING "Adam", 6, -1, -1, "alpha beta epsilon norm_coefficient norm_coefficient_post", run_update, ADAM},
    {TRAINING "Momentum", 5, -1, -1, "alpha beta mode norm_coefficient", run_update, MOMENTUM},
    {0},
};
