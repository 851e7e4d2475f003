/* SPDX-License-Identifier: Apache-2.0 */
/* See bench/lib/five_nodes.h. */
#include "five_nodes.h"

#include <stdio.h>

float five_nodes_number(int matrix, int i)
{
    return (float)((i * 7919 + matrix * 104729) % 1009 - 504) / 2018;
}

static graphi_value weights(graphi_graph *graph, int matrix)
{
    static float data[FIVE_COUNT];
    char name[8];
    for (int i = 0; i < FIVE_COUNT; i++)
        data[i] = five_nodes_number(matrix, i);
    snprintf(name, sizeof name, "w%d", matrix);
    const graphi_initializer init = {.data = data};
    return graphi_parameter(graph, name, GRAPHI_F32, 2, (int64_t[]){FIVE_SIDE, FIVE_SIDE}, &init);
}

graphi_status five_nodes_open(struct bench *bench, struct five_nodes *five)
{
    *five = (struct five_nodes){0};
    graphi_status status = graphi_graph_create(&five->graph);
    if (status == GRAPHI_OK) {
        graphi_value y = graphi_input(five->graph, "x", GRAPHI_F32, 2, (int64_t[]){FIVE_SIDE, FIVE_SIDE});
        for (int k = 1; k <= 3; k++) {
            y = graphi_matmul(five->graph, y, weights(five->graph, k), 0, 0);
            y = k < 3 ? graphi_tanh(five->graph, y) : y;
        }
        graphi_output(five->graph, "y", y);
        status = graphi_plan_create(five->graph, bench->machine, NULL, &five->plan);
    }
    if (status == GRAPHI_OK)
        status = graphi_state_create(five->graph, 1, &five->state);
    return told(status);
}

void five_nodes_close(struct five_nodes *five)
{
    graphi_state_destroy(five->state);
    graphi_plan_destroy(five->plan);
    graphi_graph_destroy(five->graph);
}

graphi_status five_nodes_bind(const struct five_nodes *five, five_array *x, five_array *y, graphi_run **run)
{
    int in, out;
    for (int i = 0; i < FIVE_COUNT; i++)
        (*x)[i] = five_nodes_number(0, i);
    graphi_status status = graphi_run_create(five->plan, five->state, run);
    if (status == GRAPHI_OK)
        status = graphi_plan_port(five->plan, "x", &in);
    if (status == GRAPHI_OK)
        status = graphi_plan_port(five->plan, "y", &out);
    if (status == GRAPHI_OK)
        status = graphi_run_bind(*run, in, GRAPHI_F32, *x, sizeof *x);
    return status == GRAPHI_OK ? graphi_run_bind(*run, out, GRAPHI_F32, *y, sizeof *y) : status;
}
