/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of classes: NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which takes the logarithm of softmax
 * first. Classes are dimension 1. Source: ONNX operators of the same names. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

struct loss {
    const graphi_tensor *x, *target, *weights;
    int64_t classes, each, ignored; /* each: elements behind the classes */
    bool ignores;
    double *logs; /* of softmax; NULL: x has logarithms */
};

static double log_of(const struct loss *l, int64_t i)
{
    return l->logs ? l->logs[i] : value_double(l->x, i);
}

static graphi_status find(const struct op_call *call, struct loss *l)
{
    struct value_text a, b;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    *l = (struct loss){.x = call->in[0], .target = call->in[1], .weights = op_in(call, 2), .each = 1};
    bool fits = l->x->rank >= 2 && l->target->rank == l->x->rank - 1 && l->target->dims[0] == l->x->dims[0];
    for (int i = 2; fits && i < l->x->rank; i++) {
        fits = l->target->dims[i - 1] == l->x->dims[i];
        l->each *= l->x->dims[i];
    }
    if (!fits || element_is_float(l->target->type) || (l->weights && l->weights->count != l->x->dims[1]))
        return op_fail(call, "found labels %s for %s, expected one a place", value_describe(l->target, &a),
                       value_describe(l->x, &b));
    l->classes = l->x->dims[1];
    l->ignores = op_attribute(call, "ignore_index") != NULL;
    l->ignored = op_int(call, "ignore_index", 0);
    return GRAPHI_OK;
}

static void log_softmax(const graphi_tensor *x, int64_t classes, int64_t each, double *to)
{
    for (int64_t at = 0; at < x->count; at++) {
        if (at / each % classes != 0)
            continue;
        double peak = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            peak = fmax(peak, value_double(x, at + c * each));
        for (int64_t c = 0; c < classes; c++)
            sum += exp(value_double(x, at + c * each) - peak);
        for (int64_t c = 0; c < classes; c++)
            to[at + c * each] = value_double(x, at + c * each) - peak - log(sum);
    }
}

/* The loss of place i and its weight; both 0 where the label is ignored. */
static graphi_status loss_at(const struct op_call *call, const struct loss *l, int64_t i, double *loss, double *weight)
{
    const int64_t label = value_int(l->target, i);
    *loss = *weight = 0;
    if (l->ignores && label == l->ignored)
        return GRAPHI_OK;
    if (label < 0 || label >= l->classes)
        return op_fail(call, "found label %lld at place %lld, expected 0 to %lld", (long long)label, (long long)i,
                       (long long)l->classes - 1);
    *weight = l->weights ? value_double(l->weights, label) : 1;
    *loss = -log_of(l, (i / l->each * l->classes + label) * l->each + i % l->each) * *weight;
    return GRAPHI_OK;
}

static graphi_status reduce(struct op_call *call, const struct loss *l)
{
    const char *how = op_string(call, "reduction", "mean");
    const bool none = strcmp(how, "none") == 0, mean = strcmp(how, "mean") == 0;
    graphi_tensor *out;
    double loss, weight, sum = 0, weights = 0;
    if (!none && !mean && strcmp(how, "sum") != 0)
        return op_fail(call, "found reduction \"%s\", expected none, sum or mean", how);
    TRY(op_new(call, 0, l->x->type, none ? l->target->rank : 0, l->target->dims, &out));
    for (int64_t i = 0; i < l->target->count; i++) {
        TRY(loss_at(call, l, i, &loss, &weight));
        sum += loss;
        weights += weight;
        if (none)
            element_store(DOMAIN_F64, out->type, &loss, 1, (char *)out->data + (size_t)i * element_size(out->type));
    }
    sum = mean ? sum / weights : sum;
    if (!none)
        element_store(DOMAIN_F64, out->type, &sum, 1, out->data);
    return GRAPHI_OK;
}

static graphi_status run_loss(struct op_call *call)
{
    struct loss l;
    graphi_tensor *logs;
    TRY(find(call, &l));
    if (call->op->variant) {
        l.logs = mem_alloc((size_t)l.x->count * sizeof *l.logs);
        if (!l.logs)
            return fail_memory(call->where, (size_t)l.x->count * sizeof *l.logs);
        log_softmax(l.x, l.classes, l.each, l.logs);
    }
    graphi_status status = reduce(call, &l);
    if (status == GRAPHI_OK && op_wants(call, 1)) {
        status = op_new(call, 1, l.x->type, l.x->rank, l.x->dims, &logs);
        if (status == GRAPHI_OK)
            element_store(DOMAIN_F64, logs->type, l.logs, logs->count, logs->data);
    }
    mem_free(l.logs);
    return status;
}

const struct host_op host_ops_loss[] = {
    {"NegativeLogLikelihoodLoss", 2, 3, 1, "ignore_index reduction", run_loss, 0},
    {"SoftmaxCrossEntropyLoss", 2, 3, 2, "ignore_index reduction", run_loss, 1},
    {0},
};
