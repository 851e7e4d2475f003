/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of single convolutions. */
#include "convolutions.h"

#include "graphi/ops.h"

#include <string.h>

const struct convolution convolutions[CONV_INPUTS] = {{"(32,8,8,384)", 32, 8, 384, 384, 3},
                                                      {"(32,17,17,384)", 32, 17, 384, 384, 3},
                                                      {"(32,8,8,2048)", 32, 8, 2048, 448, 1}};
static const char *const kinds[CONV_KINDS] = {"conv2d_backward_weights", "conv2d_backward_data", "conv2d"};
const char *const convolution_names[CONV_KINDS] = {"Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv2D"};

graphi_status convolution_graph(const struct convolution *c, unsigned mask, graphi_graph **out)
{
    graphi_graph *g;
    graphi_status status = graphi_graph_create(&g);
    if (status)
        return report_failure(status);
    const int64_t pad = c->kernel / 2, one[] = {1, 1}, pads[] = {pad, pad, pad, pad}, size[] = {c->side, c->side};
    const int64_t kernel[] = {c->kernel, c->kernel}, x_dims[] = {c->batch, c->side, c->side, c->channels};
    const int64_t y_dims[] = {c->batch, c->side, c->side, c->out},
                  w_dims[] = {c->kernel, c->kernel, c->channels, c->out};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, x_dims), dy = graphi_input(g, "dy", GRAPHI_F32, 4, y_dims);
    graphi_value w = graphi_input(g, "w", GRAPHI_F32, 4, w_dims);
    if (mask & 1)
        graphi_output(g, "dw", graphi_conv2d_backward_weights(g, x, dy, one, 2, pads, 4, one, 2, 1, kernel, 2));
    if (mask & 2)
        graphi_output(g, "dx", graphi_conv2d_backward_data(g, dy, w, one, 2, pads, 4, one, 2, 1, size, 2));
    if (mask & 4)
        graphi_output(g, "y", graphi_conv2d(g, x, w, one, 2, pads, 4, one, 2, 1));
    if ((status = graphi_graph_status(g)) != GRAPHI_OK) {
        graphi_graph_destroy(g);
        return report_failure(status);
    }
    *out = g;
    return GRAPHI_OK;
}

int convolution_class(const struct study *study, int kind)
{
    graphi_class class;
    for (int i = 0; graphi_plan_class_at(study->plan, i, &class); i++)
        if (strcmp(class.kind, kinds[kind]) == 0)
            return i;
    return -1;
}
