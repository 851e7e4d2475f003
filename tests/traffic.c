/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one chain of element-wise operations a few times, for test_traffic.py, which counts what an emulated cache sees
 * of it. The chain is that of an LSTM cell and reads five arrays, writes two. usage: traffic RUNS ROWS COLUMNS
 * [DISABLED PASSES]     prints the bytes of external inputs and outputs of one run */
#include <graphi/graphi.h>

#include <stdio.h>
#include <stdlib.h>

static graphi_value input(graphi_graph *graph, const char *name, const int64_t *dims)
{
    return graphi_input(graph, name, GRAPHI_F32, 2, dims);
}

static void cell(graphi_graph *g, const int64_t *dims)
{
    graphi_value i = graphi_sigmoid(g, input(g, "i", dims)), f = graphi_sigmoid(g, input(g, "f", dims));
    graphi_value t = graphi_tanh(g, input(g, "g", dims)), o = graphi_sigmoid(g, input(g, "o", dims));
    graphi_value c = graphi_add(g, graphi_mul(g, f, input(g, "c", dims)), graphi_mul(g, i, t));
    graphi_output(g, "next", c);
    graphi_output(g, "h", graphi_mul(g, o, graphi_tanh(g, c)));
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const int64_t dims[] = {atoll(argv[2]), atoll(argv[3])}, elements = dims[0] * dims[1];
    graphi_graph *graph = NULL;
    graphi_machine *machine = NULL;
    graphi_plan *plan = NULL;
    graphi_state *state = NULL;
    graphi_run *run = NULL;
    const graphi_plan_options options = {.isa = "avx2", .disable = argc > 4 ? argv[4] : NULL,
                                         .setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};
    graphi_status status = graphi_graph_create(&graph);
    if (status == GRAPHI_OK)
        cell(graph, dims);
    if (status == GRAPHI_OK && (status = graphi_machine_create(1, &machine)) == GRAPHI_OK &&
        (status = graphi_plan_create(graph, machine, &options, &plan)) == GRAPHI_OK &&
        (status = graphi_state_create(graph, 1, &state)) == GRAPHI_OK)
        status = graphi_run_create(plan, state, &run);
    float *zeros = calloc((size_t)elements, sizeof *zeros);
    graphi_port port;
    for (int k = 0; status == GRAPHI_OK && graphi_graph_at(graph, GRAPHI_PORT_INPUT, k, &port); k++)
        status = graphi_run_set(run, port.name, port.dtype, zeros, port.bytes);
    free(zeros);
    for (int k = atoi(argv[1]); k > 0 && status == GRAPHI_OK; k--)
        status = graphi_run_execute(run);
    if (status != GRAPHI_OK)
        fprintf(stderr, "traffic: %s\n", graphi_message());
    printf("%lld\n", (long long)(elements * 4 * (5 + 2)));
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(graph);
    return status;
}
