/* SPDX-License-Identifier: Apache-2.0 */
/* A network over trees: a child-sum Tree-LSTM (Tai et al. 2015) learns at every vertex of random trees which is the
 * largest number below it. What this shows: a vertex function declared once, input graphs as plain arrays that differ
 * from batch to batch, feeding, training.
 *
 *     tree [STEPS]    (200)
 */
#include <graphi/graphi.h>

#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 5, UNITS = 24, VERTICES = 400, SAMPLES = 12 };

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "tree: error: %s\n", graphi_message());
        exit(status);
    }
}

static graphi_value weight(graphi_graph *g, const char *name, int64_t rows, int64_t columns)
{
    const graphi_initializer init = {.kind = GRAPHI_INIT_GLOROT_UNIFORM};
    return graphi_parameter(g, name, GRAPHI_F32, 2, (int64_t[]){rows, columns}, &init);
}

static graphi_value part(graphi_graph *g, graphi_value x, int i)
{
    return graphi_slice(g, x, 1, i * UNITS, (i + 1) * UNITS);
}

/* --- the network --- */

static graphi_graph *build(const graphi_frontier_options *graphs)
{
    graphi_graph *g;
    check(graphi_graph_create(&g));
    graphi_dynamic *d = graphi_dynamic_begin(g, &(graphi_dynamic_options){.graphs = *graphs, .state = {UNITS, UNITS}});
    const int64_t rows = graphi_vertex_rows(d);
    graphi_value numbers = graphi_input(g, "number", GRAPHI_I32, 1, &rows);
    graphi_value largest = graphi_input(g, "largest", GRAPHI_I32, 1, &rows), logits;

    graphi_graph *f = graphi_vertex_function(d); /* done at every vertex, children first */
    graphi_value x = graphi_embedding(f, weight(f, "embedding", NUMBERS, UNITS), graphi_pull(d, numbers));
    graphi_value iou = graphi_add(f, graphi_matmul(f, x, weight(f, "w", UNITS, 3 * UNITS), 0, 0),
                                  graphi_matmul(f, graphi_gather_sum(d, 0), weight(f, "u", UNITS, 3 * UNITS), 0, 0));
    graphi_value forget =
        graphi_sigmoid(f, graphi_matmul(f, graphi_gather_each(d, 0), weight(f, "u_f", UNITS, UNITS), 0, 0));
    graphi_value c = graphi_add(f, graphi_mul(f, graphi_sigmoid(f, part(f, iou, 0)), graphi_tanh(f, part(f, iou, 2))),
                                graphi_combine(d, graphi_mul(f, forget, graphi_gather_each(d, 1))));
    graphi_value h = graphi_mul(f, graphi_sigmoid(f, part(f, iou, 1)), graphi_tanh(f, c));
    graphi_scatter(d, 0, h);
    graphi_scatter(d, 1, c);
    graphi_push(d, 0, graphi_matmul(f, h, weight(f, "w_class", UNITS, NUMBERS), 0, 0));

    check(graphi_dynamic_end(d, 1, &logits));
    graphi_value loss = graphi_softmax_cross_entropy(g, logits, largest);
    graphi_output(g, "logits", logits);
    graphi_output(g, "loss", loss);
    check(graphi_minimize(
        g, loss,
        &(graphi_optimizer){.kind = GRAPHI_ADAM, .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)}));
    return g;
}

/* --- made trees --- */

static int32_t sample[VERTICES], begin[VERTICES + 1], child[VERTICES], number[VERTICES], largest[VERTICES];

static int below(int n)
{
    static uint64_t state = 1; /* the same trees every time */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* Each vertex takes some of those before it that are nobody's child yet, the last one of a tree all. */
static graphi_input_graphs make_trees(void)
{
    static const graphi_vertex_values values[] = {{"number", GRAPHI_I32, 1, number},
                                                  {"largest", GRAPHI_I32, 1, largest}};
    graphi_input_graphs g = {
        .samples = SAMPLES, .sample = sample, .child_begin = begin, .child = child, .values = 2, .value = values};
    for (int s = 0; s < SAMPLES; s++) {
        int32_t open[VERTICES];
        for (int left = 1 + below(VERTICES / SAMPLES), count = 0; left; left--) {
            const int32_t v = (int32_t)g.vertices++;
            const int take = left == 1 ? count : below(count < 3 ? count + 1 : 3);
            sample[v] = s;
            number[v] = largest[v] = below(4) ? 0 : below(NUMBERS);
            for (int i = 0; i < take; i++) {
                const int32_t c = child[g.edges++] = open[--count];
                largest[v] = largest[c] > largest[v] ? largest[c] : largest[v];
            }
            begin[v + 1] = (int32_t)g.edges;
            open[count++] = v;
        }
    }
    return g;
}

static double accuracy(const graphi_run *run, int64_t vertices)
{
    static float logits[VERTICES][NUMBERS];
    int right = 0;
    check(graphi_run_get(run, "logits", GRAPHI_F32, logits, (size_t)vertices * sizeof *logits));
    for (int64_t v = 0; v < vertices; v++) {
        int best = 0;
        for (int i = 1; i < NUMBERS; i++)
            best = logits[v][i] > logits[v][best] ? i : best;
        right += best == largest[v];
    }
    return (double)right / (double)vertices;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 200;
    const graphi_frontier_options bounds = {.vertices = VERTICES, .one_root = true, .one_parent = true};
    const float rate = 0.01f;
    graphi_machine *machine;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_frontier *frontier;
    if (steps < 1) {
        fprintf(stderr, "usage: tree [STEPS]\n");
        return GRAPHI_USAGE;
    }
    graphi_graph *graph = build(&bounds);
    check(graphi_machine_create(0, &machine));
    check(graphi_plan_create(graph, machine, NULL, &plan));
    check(graphi_state_create(graph, 1, &state));
    check(graphi_run_create(plan, state, &run));
    check(graphi_frontier_create(&bounds, &frontier));
    check(graphi_run_set(run, "rate", GRAPHI_F32, &rate, sizeof rate));
    for (int i = 1; i <= steps; i++) {
        const graphi_input_graphs trees = make_trees();
        float loss;
        check(graphi_frontier_feed(frontier, &trees, NULL, run)); /* other graphs: nothing is compiled or allocated */
        check(graphi_run_execute(run));
        check(graphi_run_get(run, "loss", GRAPHI_F32, &loss, sizeof loss));
        if (i == steps || i % 50 == 1)
            printf("step %3d  %3lld vertices  loss %.3f  accuracy %.3f\n", i, (long long)trees.vertices, (double)loss,
                   accuracy(run, trees.vertices));
    }
    graphi_frontier_destroy(frontier);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(graph);
    graphi_machine_destroy(machine);
    return 0;
}
