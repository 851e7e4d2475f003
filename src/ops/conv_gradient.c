/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the three convolutions: x, w and y of the convolution that a node is a part of lead to each other, so
 * that the gradient of each is one of the others, to any order. */
#include "ops/conv_gradient.h"

#include "ops/epilogue.h"

static graphi_value part(struct gradient_call *call, const char *kind, graphi_value a, graphi_value b, const char *name,
                         const int64_t *two)
{
    graphi_attribute attributes[5];
    int count = 0;
    static const char *const copied[] = {"strides", "pads", "dilations"};
    for (int i = 0; i < 3; i++) {
        const int64_t *ints;
        int length = attr_ints(call->op, copied[i], &ints);
        if (length)
            attributes[count++] = ints_attribute(copied[i], ints, length);
    }
    attributes[count++] = int_attribute("groups", attr_int(call->op, "groups"));
    if (name)
        attributes[count++] = ints_attribute(name, two, 2);
    return graphi_op(call->graph, kind, 2, (graphi_value[]){a, b}, count, attributes);
}

static graphi_value forward_part(struct gradient_call *call, graphi_value x, graphi_value w)
{
    return part(call, "conv2d", x, w, NULL, NULL);
}

static graphi_value data_part(struct gradient_call *call, graphi_value dy, graphi_value w, graphi_value like)
{
    const struct value_type x = graph_value(call->graph, like)->type;
    return part(call, "conv2d_backward_data", dy, w, "size", x.dims + 1);
}

static graphi_value weight_part(struct gradient_call *call, graphi_value x, graphi_value dy, graphi_value like)
{
    const struct value_type w = graph_value(call->graph, like)->type;
    return part(call, "conv2d_backward_weights", x, dy, "kernel", w.dims);
}

static bool given(const struct node *node, const char *attribute)
{
    const int64_t *ints;
    return attr_ints(node, attribute, &ints) != 0;
}

/* Prepared weights and pools are made by passes, after the gradients. */
static bool form_refuses_gradient(struct gradient_call *call, bool form)
{
    if (form)
        graph_broken(call->graph,
                     fail(GRAPHI_UNSUPPORTED, call->op->kind->name,
                          "found prepared weights or a pool, expected none of them for a gradient"));
    return form;
}

void conv_forward_gradient(struct gradient_call *call)
{
    if (epilogue_refuses_gradient(call) ||
        form_refuses_gradient(call, given(call->op, "window") || given(call->op, "pool")))
        return;
    if (call->needed[0])
        call->grad_in[0] = data_part(call, call->grad_out[0], call->in[1], call->in[0]);
    if (call->needed[1])
        call->grad_in[1] = weight_part(call, call->in[0], call->grad_out[0], call->in[1]);
}

void conv_data_gradient(struct gradient_call *call)
{
    if (epilogue_refuses_gradient(call) || form_refuses_gradient(call, given(call->op, "window")))
        return;
    if (call->needed[0])
        call->grad_in[0] = forward_part(call, call->grad_out[0], call->in[1]);
    if (call->needed[1])
        call->grad_in[1] = weight_part(call, call->grad_out[0], call->in[0], call->in[1]);
}

void conv_weight_gradient(struct gradient_call *call)
{
    if (call->needed[0])
        call->grad_in[0] = data_part(call, call->in[1], call->grad_out[0], call->in[0]);
    if (call->needed[1])
        call->grad_in[1] = forward_part(call, call->in[0], call->grad_out[0]);
}
