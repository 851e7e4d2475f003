/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over the last dimension, and the mean cross-entropy of logits with integer labels. The gradient of the loss
 * computes the probabilities again from the logits: that costs one pass and no memory between forward and backward. */
#include "kernels/softmax.h"

#include "ops/build.h"

#include <string.h>

static graphi_status mismatch(const char *where, const struct value_type *found, const char *expected,
                              const struct value_type *like)
{
    char a[96], b[96];
    type_text(found, a, sizeof a);
    type_text(like, b, sizeof b);
    return fail(GRAPHI_INVALID, where, "found %s, expected %s %s", a, expected, b);
}

static graphi_status softmax_shape(const struct shape_call *call)
{
    const struct value_type *x = call->in[0];
    if (x->dtype != GRAPHI_F32 || x->rank < 1 || (x->rank == 1 && x->symbol >= 0))
        return mismatch(call->where, x, "float32 with a fixed last dimension, not", x);
    if (call->node->inputs == 2 && !type_equal(x, call->in[1])) /* a gradient: y, dy */
        return mismatch(call->where, call->in[1], "a gradient like", x);
    call->out[0] = *x;
    return GRAPHI_OK;
}

static graphi_status cross_entropy_shape(const struct shape_call *call)
{
    const struct value_type *logits = call->in[0], *labels = call->in[1];
    struct value_type wanted = *logits;
    if (logits->dtype != GRAPHI_F32 || logits->rank < 2)
        return mismatch(call->where, logits, "float32 logits of rank 2 or more, not", logits);
    wanted.dtype = GRAPHI_I32;
    wanted.rank--;
    if (!type_equal(labels, &wanted))
        return mismatch(call->where, labels, "labels", &wanted);
    call->out[0].dtype = GRAPHI_F32;
    if (call->node->inputs == 3) { /* the gradient */
        if (call->in[2]->dtype != GRAPHI_F32 || call->in[2]->rank != 0)
            return mismatch(call->where, call->in[2], "the gradient of the loss", &call->out[0]);
        call->out[0] = *logits;
    }
    return GRAPHI_OK;
}

static graphi_status bind_softmax(const struct bind_call *call, struct kernel *kernel)
{
    return softmax_bind(false, call->in, call->out, call->isa, kernel);
}

static graphi_status bind_log_softmax(const struct bind_call *call, struct kernel *kernel)
{
    return softmax_bind(true, call->in, call->out, call->isa, kernel);
}

static graphi_status bind_softmax_gradient(const struct bind_call *call, struct kernel *kernel)
{
    return softmax_gradient_bind(false, &call->in[0], &call->in[1], call->out, call->streaming, call->isa, kernel);
}

static graphi_status bind_log_softmax_gradient(const struct bind_call *call, struct kernel *kernel)
{
    return softmax_gradient_bind(true, &call->in[0], &call->in[1], call->out, call->streaming, call->isa, kernel);
}

static graphi_status bind_cross_entropy(const struct bind_call *call, struct kernel *kernel)
{
    return cross_entropy_bind(&call->in[0], &call->in[1], call->out, call->isa, kernel);
}

static graphi_status bind_cross_entropy_gradient(const struct bind_call *call, struct kernel *kernel)
{
    return cross_entropy_gradient_bind(&call->in[0], &call->in[1], &call->in[2], call->out, call->isa, kernel);
}

static void softmax_rule(struct gradient_call *call)
{
    call->grad_in[0] = build2(call->graph, "softmax_gradient", call->out[0], call->grad_out[0]);
}

static void log_softmax_rule(struct gradient_call *call)
{
    call->grad_in[0] = build2(call->graph, "log_softmax_gradient", call->out[0], call->grad_out[0]);
}

static void cross_entropy_rule(struct gradient_call *call)
{
    call->grad_in[0] =
        build3(call->graph, "softmax_cross_entropy_gradient", call->in[0], call->in[1], call->grad_out[0]);
}

static double per_element(const struct shape_call *call)
{
    return 5 * (double)type_count(call->in[0]);
}

enum { FLAGS = OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED };

#define LAST "[...,C] to the same"
#define LASTS "y [...,C], dy the same, to the same"
#define ROW(text, about, sizes, n, more, shape_rule, rule, binder)                                                     \
    {                                                                                                                  \
        .name = text, .summary = about, .shapes = sizes, .min_inputs = n, .max_inputs = n, .outputs = 1,               \
        .flags = FLAGS | (more), .scalability = "memory", .shape = shape_rule, .gradient = rule, .flops = per_element, \
        .bind = binder                                                                                                 \
    }

const struct op_kind ops_softmax[] = {
    ROW("softmax", "e^a over its sum, along the last dimension", LAST, 1, OP_INPLACE, softmax_shape, softmax_rule,
        bind_softmax),
    ROW("log_softmax", "logarithm of softmax", LAST, 1, OP_INPLACE, softmax_shape, log_softmax_rule, bind_log_softmax),
    ROW("softmax_gradient", "gradient of softmax from its result and the result's gradient", LASTS, 2, OP_INPLACE,
        softmax_shape, NULL, bind_softmax_gradient),
    ROW("log_softmax_gradient", "gradient of log_softmax from its result and the result's gradient", LASTS, 2,
        OP_INPLACE, softmax_shape, NULL, bind_log_softmax_gradient),
    ROW("softmax_cross_entropy", "mean over rows of -log softmax(a) at the labels b",
        "a [rows,...,C], int32 b [rows,...] to []", 2, 0, cross_entropy_shape, cross_entropy_rule, bind_cross_entropy),
    ROW("softmax_cross_entropy_gradient", "gradient of softmax_cross_entropy for a, c times",
        "a [rows,...,C], int32 b [rows,...], c [] to [rows,...,C]", 3, OP_INPLACE, cross_entropy_shape, NULL,
        bind_cross_entropy_gradient),
    {0},
};
