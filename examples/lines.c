/* SPDX-License-Identifier: Apache-2.0 */
/* A language model over lines of many lengths, without padding: each line is a chain of vertices, and an LSTM cell is
 * the vertex function (cavs.txt 4, Var-LSTM). It learns which character follows which in the lines below.
 *
 *     lines [STEPS]    (150)
 */
#include <graphi/graphi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 48, LETTERS = 128, MOST = 512 };

static const char *const lines[] = {"the sun rises", "the sun sets again", "rain", "a wind from the west",
                                    "the west wind brings rain"};
enum { LINES = sizeof lines / sizeof *lines };

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "lines: error: %s\n", graphi_message());
        exit(status);
    }
}

static graphi_value weight(graphi_graph *g, const char *name, int64_t rows, int64_t columns)
{
    const graphi_initializer init = {.kind = GRAPHI_INIT_GLOROT_UNIFORM};
    return graphi_parameter(g, name, GRAPHI_F32, 2, (int64_t[]){rows, columns}, &init);
}

static graphi_graph *build(const graphi_frontier_options *graphs)
{
    graphi_graph *g;
    check(graphi_graph_create(&g));
    graphi_dynamic *d = graphi_dynamic_begin(g, &(graphi_dynamic_options){.graphs = *graphs, .state = {UNITS, UNITS}});
    const int64_t rows = graphi_vertex_rows(d);
    graphi_value letters = graphi_input(g, "letter", GRAPHI_I32, 1, &rows);
    graphi_value next = graphi_input(g, "next", GRAPHI_I32, 1, &rows), logits, gate[4];

    graphi_graph *f = graphi_vertex_function(d);
    graphi_value x = graphi_embedding(f, weight(f, "embedding", LETTERS, UNITS), graphi_pull(d, letters));
    graphi_value pre = graphi_add(f, graphi_matmul(f, x, weight(f, "w", UNITS, 4 * UNITS), 0, 0),
                                  graphi_matmul(f, graphi_gather(d, 0, 0), weight(f, "u", UNITS, 4 * UNITS), 0, 0));
    for (int i = 0; i < 4; i++) {
        gate[i] = graphi_slice(f, pre, 1, i * UNITS, (i + 1) * UNITS);
        gate[i] = i == 2 ? graphi_tanh(f, gate[i]) : graphi_sigmoid(f, gate[i]);
    }
    graphi_value c = graphi_add(f, graphi_mul(f, gate[1], graphi_gather(d, 1, 0)), graphi_mul(f, gate[0], gate[2]));
    graphi_value h = graphi_mul(f, gate[3], graphi_tanh(f, c));
    graphi_scatter(d, 0, h);
    graphi_scatter(d, 1, c);
    graphi_push(d, 0, graphi_matmul(f, h, weight(f, "w_out", UNITS, LETTERS), 0, 0));

    check(graphi_dynamic_end(d, 1, &logits));
    graphi_value loss = graphi_softmax_cross_entropy(g, logits, next);
    graphi_output(g, "loss", loss);
    check(graphi_minimize(
        g, loss,
        &(graphi_optimizer){.kind = GRAPHI_ADAM, .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)}));
    return g;
}

/* A vertex a letter, whose child is the letter before; each predicts the next one, the last one the end. */
static int32_t sample[MOST], begin[MOST + 1], child[MOST], letter[MOST], next[MOST];

static graphi_input_graphs make_chains(void)
{
    static const graphi_vertex_values values[] = {{"letter", GRAPHI_I32, 1, letter}, {"next", GRAPHI_I32, 1, next}};
    graphi_input_graphs g = {
        .samples = LINES, .sample = sample, .child_begin = begin, .child = child, .values = 2, .value = values};
    for (int s = 0; s < LINES; s++)
        for (const char *at = lines[s]; *at; at++) {
            const int32_t v = (int32_t)g.vertices++;
            if (at > lines[s])
                child[g.edges++] = v - 1;
            begin[v + 1] = (int32_t)g.edges;
            sample[v] = s;
            letter[v] = *at;
            next[v] = at[1];
        }
    return g;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 150;
    const graphi_frontier_options bounds = {.vertices = MOST, .children = 1};
    const graphi_input_graphs chains = make_chains();
    const float rate = 0.01f;
    float loss = 0;
    graphi_machine *machine;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_frontier *frontier;
    if (steps < 1) {
        fprintf(stderr, "usage: lines [STEPS]\n");
        return GRAPHI_USAGE;
    }
    graphi_graph *graph = build(&bounds);
    check(graphi_machine_create(0, &machine));
    check(graphi_plan_create(graph, machine, NULL, &plan));
    check(graphi_state_create(graph, 1, &state));
    check(graphi_run_create(plan, state, &run));
    check(graphi_frontier_create(&bounds, &frontier));
    check(graphi_frontier_feed(frontier, &chains, NULL, run));
    check(graphi_run_set(run, "rate", GRAPHI_F32, &rate, sizeof rate));
    for (int i = 1; i <= steps; i++) {
        check(graphi_run_execute(run));
        check(graphi_run_get(run, "loss", GRAPHI_F32, &loss, sizeof loss));
        if (i == steps || i % 50 == 1)
            printf("step %3d  loss %.3f\n", i, (double)loss);
    }
    graphi_frontier_destroy(frontier);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(graph);
    graphi_machine_destroy(machine);
    return 0;
}
