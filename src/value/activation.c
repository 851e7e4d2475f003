/* SPDX-License-Identifier: Apache-2.0 */
/* The table of recurrent operators' activations (activation.h). Source: ONNX RNN, "activations". Any thread. */
#include "value/activation.h"

#include <math.h>
#include <strings.h>

static double relu(double x, double a, double b)
{
    return x > 0 ? x : 0;
}
static double tangent(double x, double a, double b)
{
    return tanh(x);
}
static double sigmoid(double x, double a, double b)
{
    return 1 / (1 + exp(-x));
}
static double affine(double x, double a, double b)
{
    return a * x + b;
}
static double leaky(double x, double a, double b)
{
    return x >= 0 ? x : a * x;
}
static double thresholded(double x, double a, double b)
{
    return x >= a ? x : 0;
}
static double scaled(double x, double a, double b)
{
    return a * tanh(b * x);
}
static double hard(double x, double a, double b)
{
    return fmin(fmax(a * x + b, 0), 1);
}
static double elu(double x, double a, double b)
{
    return x >= 0 ? x : a * expm1(x);
}
static double softsign(double x, double a, double b)
{
    return x / (1 + fabs(x));
}
static double softplus(double x, double a, double b)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static const struct {
    const char *name;
    double (*f)(double, double, double);
    int numbers; /* 1: alpha; 2: beta too */
    bool must;   /* there is no default */
    double alpha, beta;
} table[] = {
    {"Relu", relu, 0, false, 0, 0},
    {"Tanh", tangent, 0, false, 0, 0},
    {"Sigmoid", sigmoid, 0, false, 0, 0},
    {"Affine", affine, 2, true, 0, 0},
    {"LeakyRelu", leaky, 1, false, 0.01, 0},
    {"ThresholdedRelu", thresholded, 1, false, 1, 0},
    {"ScaledTanh", scaled, 2, true, 0, 0},
    {"HardSigmoid", hard, 2, false, 0.2, 0.5},
    {"Elu", elu, 1, false, 1, 0},
    {"Softsign", softsign, 0, false, 0, 0},
    {"Softplus", softplus, 0, false, 0, 0},
};

static double next(const struct attribute *list, size_t *used, double otherwise)
{
    return list && list->kind == ATTRIBUTE_FLOATS && *used < list->count ? (double)list->floats[(*used)++] : otherwise;
}

graphi_status activations_find(const struct op_call *call, const char *const *defaults, int count,
                               struct activation *out)
{
    const struct attribute *names = op_attribute(call, "activations");
    const struct attribute *alphas = op_attribute(call, "activation_alpha"),
                           *betas = op_attribute(call, "activation_beta");
    size_t alpha = 0, beta = 0;
    if (names && (names->kind != ATTRIBUTE_STRINGS || names->count != (size_t)count))
        return op_fail(call, "found %zu activations of %s, expected %d", names->count, call->op->name, count);
    for (int i = 0; i < count; i++) {
        const char *name = names ? names->strings[i] : defaults[i];
        size_t k = 0;
        while (k < sizeof table / sizeof *table && strcasecmp(table[k].name, name) != 0)
            k++;
        if (k == sizeof table / sizeof *table)
            return op_fail(call, "found activation \"%s\" of %s, expected one of ONNX's", name, call->op->name);
        if (table[k].must && (!alphas || alpha >= alphas->count))
            return op_fail(call, "found no activation_alpha for %s, expected one", table[k].name);
        out[i].name = table[k].name;
        out[i].f = table[k].f;
        out[i].alpha = table[k].numbers > 0 ? next(alphas, &alpha, table[k].alpha) : 0;
        out[i].beta = table[k].numbers > 1 ? next(betas, &beta, table[k].beta) : 0;
    }
    return GRAPHI_OK;
}
