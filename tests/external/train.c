/* SPDX-License-Identifier: Apache-2.0 */
/* A program as a user writes it: outside the tree, with the installed headers alone. A perceptron of two layers learns
 * XOR; the exit status says whether its loss fell. The functions on top bear names that the library uses inside:
 * linking the static library must neither clash with them nor call them. */
#include <graphi/graphi.h>

#include <stdio.h>
#include <stdlib.h>

void *mem_alloc(size_t bytes);
int fail(int code);
const void *op_at(int i);
void *mem_alloc(size_t bytes) { (void)bytes; abort(); }
int fail(int code) { (void)code; abort(); }
const void *op_at(int i) { (void)i; abort(); }

enum { ROWS = 4, HIDDEN = 16 };

static int check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "%s\n", graphi_message());
        exit(status);
    }
    return 0;
}

static graphi_value weight(graphi_graph *g, const char *name, int64_t rows, int64_t columns)
{
    int64_t dims[] = {rows, columns};
    return graphi_parameter(g, name, GRAPHI_F32, 2, dims, &(graphi_initializer){.kind = GRAPHI_INIT_GLOROT_UNIFORM});
}

static graphi_value bias(graphi_graph *g, const char *name, int64_t columns)
{
    return graphi_parameter(g, name, GRAPHI_F32, 1, &columns, &(graphi_initializer){.kind = GRAPHI_INIT_ZERO});
}

static void build(graphi_graph *g)
{
    int64_t rows[] = {ROWS, 2}, labels[] = {ROWS};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, rows), y = graphi_input(g, "y", GRAPHI_I32, 1, labels);
    graphi_value rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
    graphi_value hidden =
        graphi_tanh(g, graphi_add(g, graphi_matmul(g, x, weight(g, "w1", 2, HIDDEN), 0, 0), bias(g, "b1", HIDDEN)));
    graphi_value logits = graphi_add(g, graphi_matmul(g, hidden, weight(g, "w2", HIDDEN, 2), 0, 0), bias(g, "b2", 2));
    graphi_value loss = graphi_softmax_cross_entropy(g, logits, y);
    graphi_output(g, "loss", loss);
    check(graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_ADAM, .learning_rate = rate}));
}

int main(void)
{
    static const float x[ROWS][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    static const int32_t y[ROWS] = {0, 1, 1, 0};
    float rate = 0.05f, first = 0, loss = 0;
    graphi_graph *graph;
    graphi_machine *machine;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    check(graphi_graph_create(&graph));
    build(graph);
    check(graphi_machine_create(0, &machine));
    check(graphi_plan_create(graph, machine, NULL, &plan));
    check(graphi_state_create(graph, 1, &state));
    check(graphi_run_create(plan, state, &run));
    check(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check(graphi_run_set(run, "y", GRAPHI_I32, y, sizeof y));
    check(graphi_run_set(run, "rate", GRAPHI_F32, &rate, sizeof rate));
    for (int step = 0; step < 200; step++) {
        check(graphi_run_execute(run));
        check(graphi_run_get(run, "loss", GRAPHI_F32, &loss, sizeof loss));
        first = step == 0 ? loss : first;
    }
    printf("graphi %s: loss %.4f, then %.4f\n", graphi_version(), (double)first, (double)loss);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(graph);
    return loss < 0.1f && loss < first / 5 ? 0 : 1;
}
