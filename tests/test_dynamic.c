/* SPDX-License-Identifier: Apache-2.0 */
/* Vertex functions over random graphs: values and gradients against a plain evaluation vertex by vertex, against each
 * sample by itself bit for bit, against central differences; every width, block and lowering against each other; what
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fixture.h"
#include "input_graphs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- networks --- */

struct form {
    const char *name;
    int functions;
    int64_t rows;
    bool in_rounds;
    void (*build)(graphi_graph *g, const struct form *form);
};

static graphi_dynamic *begin(graphi_graph *g, const struct form *form, int states)
{
    const graphi_dynamic_options options = {
        .graphs = {.vertices = MOST, .edges = MOST_EDGES, .rows = form->rows, .functions = form->functions},
        .state = {H, states > 1 ? H : 0},
        .in_rounds = form->in_rounds};
    return graphi_dynamic_begin(g, &options);
}

static graphi_value weight(graphi_graph *g, const char *name, int64_t rows, int64_t columns)
{
    const graphi_initializer init = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.4, .b = 0.4};
    return graphi_parameter(g, name, GRAPHI_F32, rows > 1 ? 2 : 1,
                            rows > 1 ? (int64_t[]){rows, columns} : (int64_t[]){columns}, &init);
}

static graphi_value column(graphi_graph *g, graphi_value x, int i)
{
    const graphi_attribute a[] = {graphi_int("axis", 1), graphi_int("begin", i * H), graphi_int("end", (i + 1) * H)};
    return graphi_op(g, "slice", 1, &x, 3, a);
}

/* Loss: sum of what is pushed times fixed numbers and its square; gradients of all parameters and of x. */
static void finish(graphi_graph *g, graphi_value pushed, graphi_value x)
{
    float numbers[H];
    for (int i = 0; i < H; i++)
        numbers[i] = (float)(i % 5) / 3 - 0.5f;
    graphi_value factor = graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){1, H}, numbers);
    graphi_value loss =
        graphi_reduce_sum(g, graphi_add(g, graphi_mul(g, pushed, factor), graphi_mul(g, pushed, pushed)), NULL, 0, 0);
    graphi_output(g, "y", pushed);
    graphi_output(g, "loss", loss);
    graphi_value wrt[16] = {x}, gradient[16];
    graphi_port port;
    int n = 1;
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_PARAMETER, i, &port); i++)
        wrt[n++] = port.value;
    if (graphi_gradients(g, loss, n, wrt, gradient) != GRAPHI_OK)
        return;
    graphi_output(g, "d x", gradient[0]);
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_PARAMETER, i, &port); i++) {
        char name[64];
        snprintf(name, sizeof name, "d %s", port.name);
        graphi_output(g, name, gradient[1 + i]);
    }
}

/* Child-sum Tree-LSTM with a forget gate a child (Tai et al. 2015). */
static void build_tree_lstm(graphi_graph *g, const struct form *form)
{
    graphi_dynamic *d = begin(g, form, 2);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_vertex_rows(d), X}), y;
    graphi_graph *f = graphi_vertex_function(d);
    graphi_value in = graphi_pull(d, x);
    graphi_value h = graphi_gather_sum(d, 0), each = graphi_gather_each(d, 0), c = graphi_gather_each(d, 1);
    graphi_value iou = graphi_add(f,
                                  graphi_add(f, graphi_matmul(f, in, weight(f, "w", X, 3 * H), 0, 0),
                                             graphi_matmul(f, h, weight(f, "u", H, 3 * H), 0, 0)),
                                  weight(f, "b", 1, 3 * H));
    graphi_value forget =
        graphi_sigmoid(f, graphi_add(f,
                                     graphi_spread(d, graphi_add(f, graphi_matmul(f, in, weight(f, "wf", X, H), 0, 0),
                                                                 weight(f, "bf", 1, H))),
                                     graphi_matmul(f, each, weight(f, "uf", H, H), 0, 1)));
    graphi_value cell =
        graphi_add(f, graphi_mul(f, graphi_sigmoid(f, column(f, iou, 0)), graphi_tanh(f, column(f, iou, 2))),
                   graphi_combine(d, graphi_mul(f, forget, c)));
    graphi_value out = graphi_mul(f, graphi_sigmoid(f, column(f, iou, 1)), graphi_tanh(f, cell));
    graphi_scatter(d, 0, out);
    graphi_scatter(d, 1, cell);
    graphi_push(d, 0, graphi_tanh(f, graphi_matmul(f, out, weight(f, "v", H, H), 0, 0)));
    if (graphi_dynamic_end(d, 1, &y) == GRAPHI_OK)
        finish(g, y, x);
}

/* Two functions: leaves, and vertices with children, of which two are told apart (Tree-FC, and a third child's sum). */
static void build_two_functions(graphi_graph *g, const struct form *form)
{
    graphi_dynamic *d = begin(g, form, 1);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_vertex_rows(d), X}), y[2];
    graphi_graph *f = graphi_vertex_function(d);
    graphi_value leaf = graphi_tanh(f, graphi_matmul(f, graphi_pull(d, x), weight(f, "w", X, H), 0, 0));
    graphi_scatter(d, 0, leaf);
    graphi_push(d, 0, leaf);
    f = graphi_vertex_function(d);
    graphi_value parts[] = {graphi_gather(d, 0, 0), graphi_gather(d, 0, 1)};
    const graphi_attribute axis = graphi_int("axis", 1);
    graphi_value both = graphi_op(f, "concat", 2, parts, 1, &axis);
    graphi_value z = graphi_relu(f, graphi_add(f, graphi_matmul(f, both, weight(f, "u", 2 * H, H), 0, 0),
                                               graphi_mul(f, graphi_gather_sum(d, 0), weight(f, "b", 1, H))));
    z = graphi_add(f, z, graphi_matmul(f, graphi_pull(d, x), weight(f, "w", X, H), 0, 0));
    graphi_scatter(d, 0, z);
    graphi_push(d, 0, graphi_mul(f, z, graphi_gather(d, 0, 0)));
    graphi_push(d, 1, z);
    if (graphi_dynamic_end(d, 2, y) == GRAPHI_OK)
        finish(g, graphi_add(g, y[0], graphi_mul(g, y[1], y[1])), x);
}

static graphi_status declare(graphi_graph *g, const struct form *form)
{
    form->build(g, form);
    return graphi_graph_status(g);
}

struct session {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_frontier *frontier;
};

static struct session open_session(const struct form *form, int width, const char *isa, const char *disable)
{
    struct session s;
    check_ok(graphi_graph_create(&s.graph));
    check_ok(declare(s.graph, form));
    const graphi_plan_options options = {.isa = isa, .disable = disable, .setting = {.executors = 1, .width = width}};
    check_ok(graphi_plan_create(s.graph, machine, &options, &s.plan));
    check_ok(graphi_state_create(s.graph, 5, &s.state));
    check_ok(graphi_run_create(s.plan, s.state, &s.run));
    const graphi_frontier_options bounds = {.vertices = MOST, .edges = MOST_EDGES, .functions = form->functions};
    check_ok(graphi_frontier_create(&bounds, &s.frontier));
    return s;
}

static void close_session(struct session *s)
{
    graphi_frontier_destroy(s->frontier);
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

static void run_batch(struct session *s, const graphi_input_graphs *graphs)
{
    check_ok(graphi_frontier_feed(s->frontier, graphs, NULL, s->run));
    check_ok(graphi_run_execute(s->run));
}

/* Gives the number of elements. */
static int64_t get_output(const struct session *s, const char *name, int64_t vertices, float *data)
{
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK], count = 1;
    check_ok(graphi_value_type(s->graph, graphi_find(s->graph, name), &dtype, &rank, dims));
    for (int i = 0; i < rank; i++)
        count *= i == 0 && dims[0] == MOST ? vertices : dims[i];
    check_ok(graphi_run_get(s->run, name, GRAPHI_F32, data, (size_t)count * 4));
    return count;
}

static const struct form forms[] = {
    {"tree-lstm", 1, 0, false, build_tree_lstm},
    {"two functions", 2, 0, false, build_two_functions},
};
enum { FORMS = 2 };

static const char *const outputs[FORMS][9] = {
    {"y", "loss", "d x", "d w", "d u", "d b", "d wf", "d bf", "d uf"},
    {"y", "loss", "d x", "d w", "d u", "d b"},
};

/* Do all outputs of two forms agree, bit for bit or within a tolerance of gradients of weights? */
static void compare(const struct session *a, const struct session *b, int form, int64_t vertices, double tolerance)
{
    static float x[MOST * H * 4], y[MOST * H * 4];
    for (int i = 0; i < 9 && outputs[form][i]; i++) {
        const int64_t count = get_output(a, outputs[form][i], vertices, x);
        assert_int_equal(get_output(b, outputs[form][i], vertices, y), count);
        double largest = 0;
        for (int64_t k = 0; k < count; k++)
            largest = fmax(largest, fabs((double)x[k]));
        for (int64_t k = 0; k < count; k++)
            if (memcmp(&x[k], &y[k], 4) != 0 && !(fabs((double)x[k] - y[k]) <= tolerance * largest))
                fail_msg("%s: found %.9g at %lld of '%s', expected %.9g", forms[form].name, (double)y[k], (long long)k,
                         outputs[form][i], (double)x[k]);
    }
}

static void ways_have_the_same_bits(void **state)
{
    (void)state;
    static struct batch b;
    for (int form = 0; form < FORMS; form++) {
        struct form serial = forms[form], small = forms[form], in_rounds = forms[form];
        serial.rows = 1;
        small.rows = 3;
        in_rounds.in_rounds = true;
        struct session one = open_session(&forms[form], 1, NULL, NULL), two = open_session(&forms[form], 2, NULL, NULL);
        struct session unfused = open_session(&forms[form], 2, NULL, "fusion,epilogue");
        struct session by_one = open_session(&serial, 2, NULL, NULL), by_three = open_session(&small, 1, NULL, NULL);
        struct session within = open_session(&in_rounds, 2, NULL, NULL);
        random_state = 11;
        for (int round = 0; round < 6; round++) {
            random_batch(&b, 1 + 3 * round, 30, 1 + round % 4);
            struct session *all[] = {&one, &two, &unfused, &by_one, &by_three, &within};
            for (int i = 0; i < 6; i++)
                run_batch(all[i], &b.graphs);
            for (int i = 1; i < 6; i++)
                compare(&one, all[i], form, b.graphs.vertices, all[i] == &within ? 1e-5 : 0);
        }
        close_session(&one);
        close_session(&two);
        close_session(&unfused);
        close_session(&by_one);
        close_session(&by_three);
        close_session(&within);
    }
}

static void plain_kernels_agree(void **state)
{
    (void)state;
    static struct batch b;
    for (int form = 0; form < FORMS; form++) {
        struct session best = open_session(&forms[form], 2, NULL, NULL);
        struct session plain = open_session(&forms[form], 1, "plain", NULL);
        random_batch(&b, 9, 30, 3);
        run_batch(&best, &b.graphs);
        run_batch(&plain, &b.graphs);
        compare(&best, &plain, form, b.graphs.vertices, 2e-5);
        close_session(&best);
        close_session(&plain);
    }
}

/* Products of bfloat16 numbers, packed outside of the loop; the same bits for every width. */
static void bfloat16_is_near(void **state)
{
    (void)state;
    static struct batch b;
    static float x[MOST * H], y[MOST * H];
    struct session s = open_session(&forms[0], 1, NULL, NULL), half[2];
    random_batch(&b, 9, 30, 3);
    run_batch(&s, &b.graphs);
    for (int i = 0; i < 2; i++) {
        half[i] = s;
        const graphi_plan_options options = {.precision = GRAPHI_BF16, .setting = {.executors = 1, .width = 1 + i}};
        check_ok(graphi_plan_create(s.graph, machine, &options, &half[i].plan));
        check_ok(graphi_run_create(half[i].plan, s.state, &half[i].run));
        run_batch(&half[i], &b.graphs);
    }
    compare(&s, &half[0], 0, b.graphs.vertices, 0.03);
    compare(&half[0], &half[1], 0, b.graphs.vertices, 0);
    const int64_t count = get_output(&s, "y", b.graphs.vertices, x);
    get_output(&half[0], "y", b.graphs.vertices, y);
    assert_memory_not_equal(x, y, (size_t)count * 4);
    for (int i = 0; i < 2; i++) {
        graphi_run_destroy(half[i].run);
        graphi_plan_destroy(half[i].plan);
    }
    close_session(&s);
}

static void samples_are_as_each_by_itself(void **state)
{
    (void)state;
    static struct batch b;
    static float y[MOST * H], dx[MOST * X], part_y[MOST * H], part_dx[MOST * X];
    for (int form = 0; form < FORMS; form++) {
        struct session s = open_session(&forms[form], 2, NULL, NULL);
        graphi_frontier *cutter;
        check_ok(graphi_frontier_create(
            &(graphi_frontier_options){.vertices = MOST, .edges = MOST_EDGES, .functions = 2}, &cutter));
        random_batch(&b, 12, 25, 4);
        run_batch(&s, &b.graphs);
        get_output(&s, "y", b.graphs.vertices, y);
        get_output(&s, "d x", b.graphs.vertices, dx);
        int64_t first = 0;
        for (int64_t i = 0; i < b.graphs.samples; i++) {
            graphi_input_graphs part;
            check_ok(graphi_frontier_part(cutter, &b.graphs, i, 1, &part));
            run_batch(&s, &part);
            get_output(&s, "y", part.vertices, part_y);
            get_output(&s, "d x", part.vertices, part_dx);
            assert_memory_equal(part_y, y + first * H, (size_t)part.vertices * H * 4);
            assert_memory_equal(part_dx, dx + first * X, (size_t)part.vertices * X * 4);
            first += part.vertices;
        }
        graphi_frontier_destroy(cutter);
        close_session(&s);
    }
}

/* --- a plain evaluation --- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double product(const float *x, const double *h, const float *w, int n, int columns, int column)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (x ? (double)x[i] : h[i]) * (double)w[i * columns + column];
    return sum;
}

struct weights {
    float w[X * 3 * H], u[H * 3 * H], b[3 * H], wf[X * H], bf[H], uf[H * H], v[H * H];
};

/* Child-sum Tree-LSTM of a vertex whose children are done; uf is read transposed. */
static void tree_lstm_vertex(const struct batch *b, const struct weights *w, int32_t v, double *h, double *c)
{
    const float *x = b->x + v * X;
    double sum[H] = {0}, cell;
    for (int32_t e = b->begin[v]; e < b->begin[v + 1]; e++)
        for (int i = 0; i < H; i++)
            sum[i] += h[b->child[e] * H + i];
    for (int i = 0; i < H; i++) {
        double gate[3];
        for (int k = 0; k < 3; k++)
            gate[k] = product(x, NULL, w->w, X, 3 * H, k * H + i) + product(NULL, sum, w->u, H, 3 * H, k * H + i) +
                      (double)w->b[k * H + i];
        cell = sigmoid(gate[0]) * tanh(gate[2]);
        for (int32_t e = b->begin[v]; e < b->begin[v + 1]; e++) {
            double f = product(x, NULL, w->wf, X, H, i) + (double)w->bf[i];
            for (int k = 0; k < H; k++)
                f += h[b->child[e] * H + k] * (double)w->uf[i * H + k];
            cell += sigmoid(f) * c[b->child[e] * H + i];
        }
        c[v * H + i] = cell;
    }
    for (int i = 0; i < H; i++) {
        const double o =
            product(x, NULL, w->w, X, 3 * H, H + i) + product(NULL, sum, w->u, H, 3 * H, H + i) + (double)w->b[H + i];
        h[v * H + i] = sigmoid(o) * tanh(c[v * H + i]);
    }
}

static void get_weights(const struct session *s, struct weights *w)
{
    check_ok(graphi_state_get(s->state, "w", w->w, sizeof w->w));
    check_ok(graphi_state_get(s->state, "u", w->u, sizeof w->u));
    check_ok(graphi_state_get(s->state, "b", w->b, sizeof w->b));
    check_ok(graphi_state_get(s->state, "wf", w->wf, sizeof w->wf));
    check_ok(graphi_state_get(s->state, "bf", w->bf, sizeof w->bf));
    check_ok(graphi_state_get(s->state, "uf", w->uf, sizeof w->uf));
    check_ok(graphi_state_get(s->state, "v", w->v, sizeof w->v));
}

static void values_are_those_of_a_plain_evaluation(void **state)
{
    (void)state;
    static struct batch b;
    static struct weights w;
    static double h[MOST * H], c[MOST * H];
    static float y[MOST * H];
    struct session s = open_session(&forms[0], 2, NULL, NULL);
    get_weights(&s, &w);
    random_batch(&b, 10, 30, 3);
    run_batch(&s, &b.graphs);
    get_output(&s, "y", b.graphs.vertices, y);
    graphi_frontier_lists l;
    assert_true(graphi_frontier_get(s.frontier, &l));
    for (int64_t i = 0; i < l.vertices; i++) /* one function: slots have children first */
        tree_lstm_vertex(&b, &w, l.vertex[i], h, c);
    for (int64_t v = 0; v < l.vertices; v++)
        for (int i = 0; i < H; i++)
            if (fabs(tanh(product(NULL, h + v * H, w.v, H, H, i)) - (double)y[v * H + i]) > 1e-5)
                fail_msg("found %g at vertex %lld, expected %g", (double)y[v * H + i], (long long)v,
                         tanh(product(NULL, h + v * H, w.v, H, H, i)));
    close_session(&s);
}

static double loss_of(struct session *s, const graphi_input_graphs *graphs)
{
    float loss;
    run_batch(s, graphs);
    check_ok(graphi_run_get(s->run, "loss", GRAPHI_F32, &loss, sizeof loss));
    return (double)loss;
}

/* The gradient's product with a random direction against the difference of two losses. */
static void check_direction(struct session *s, struct batch *b, const char *name)
{
    static float value[MOST * H * 4], moved[MOST * H * 4], gradient[MOST * H * 4];
    char output[64];
    const double step = 1e-3;
    const bool input = strcmp(name, "x") == 0;
    snprintf(output, sizeof output, "d %s", name);
    run_batch(s, &b->graphs);
    const int64_t count = get_output(s, output, b->graphs.vertices, gradient);
    if (input)
        memcpy(value, b->x, (size_t)count * 4);
    else
        check_ok(graphi_state_get(s->state, name, value, (size_t)count * 4));
    double expected = 0, difference = 0, norm = 0;
    float direction[64];
    for (int i = 0; i < 64; i++)
        direction[i] = random_number();
    for (int64_t i = 0; i < count; i++) {
        expected += (double)gradient[i] * (double)direction[i % 61];
        norm += fabs((double)gradient[i]);
    }
    for (int side = -1; side <= 1; side += 2) {
        for (int64_t i = 0; i < count; i++)
            moved[i] = (float)((double)value[i] + side * step * (double)direction[i % 61]);
        if (input)
            memcpy(b->x, moved, (size_t)count * 4);
        else
            check_ok(graphi_state_set(s->state, name, moved, (size_t)count * 4));
        difference += side * loss_of(s, &b->graphs) / (2 * step);
    }
    if (input)
        memcpy(b->x, value, (size_t)count * 4);
    else
        check_ok(graphi_state_set(s->state, name, value, (size_t)count * 4));
    if (fabs(difference - expected) > 0.02 * norm / sqrt((double)count) + 0.01 * fabs(expected) + 0.05)
        fail_msg("found %g as gradient of '%s' along a direction, expected %g", expected, name, difference);
}

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    static struct batch b;
    random_state = 5;
    for (int form = 0; form < FORMS; form++) {
        struct session s = open_session(&forms[form], 2, NULL, NULL);
        for (int round = 0; round < 3; round++) {
            random_batch(&b, 3, 10, 3);
            for (int i = 2; i < 9 && outputs[form][i]; i++)
                check_direction(&s, &b, outputs[form][i] + 2);
        }
        close_session(&s);
    }
}

/* --- use --- */

/* After the first batch nothing is allocated, whatever graphs follow, and nothing is planned; the loss falls. */
static void training_allocates_nothing(void **state)
{
    (void)state;
    static struct batch b;
    static int32_t labels[MOST];
    const graphi_model_options options = {
        .batch = 4, .units = H, .vocabulary = 11, .vertices = MOST, .edges = MOST_EDGES, .classes = 3};
    graphi_graph *g;
    graphi_plan *plan;
    graphi_state *values;
    graphi_run *run;
    graphi_frontier *f;
    check_ok(graphi_model_create("dependency-treelstm", &options, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &values));
    check_ok(graphi_run_create(plan, values, &run));
    check_ok(graphi_frontier_create(&(graphi_frontier_options){.vertices = MOST, .edges = MOST_EDGES}, &f));
    const float rate = 2;
    float first = 0, loss = 0;
    check_ok(graphi_run_set(run, "learning_rate", GRAPHI_F32, &rate, sizeof rate));
    for (int i = 0; i < 200; i++) {
        random_batch(&b, 4, 12 + i % 7, 2);
        for (int64_t v = 0; v < b.graphs.vertices; v++)
            labels[v] = b.word[v] % 3;
        b.value[0] = (graphi_vertex_values){"words", GRAPHI_I32, 1, b.word};
        b.value[1] = (graphi_vertex_values){"labels", GRAPHI_I32, 1, labels};
        b.graphs.values = 2;
        check_ok(graphi_frontier_feed(f, &b.graphs, NULL, run));
        check_ok(graphi_run_execute(run));
        graphi_run_info info;
        graphi_run_get_info(run, &info);
        if (i)
            assert_int_equal(info.allocations, 0);
        check_ok(graphi_run_get(run, "loss", GRAPHI_F32, &loss, sizeof loss));
        first = i ? first : loss;
    }
    if (!(loss < 0.6f * first))
        fail_msg("found loss %g behind %g, expected less than 0.6 of it", (double)loss, (double)first);
    graphi_frontier_destroy(f);
    graphi_run_destroy(run);
    graphi_plan *tuned; /* measured with the graphs that were fed last */
    check_ok(graphi_plan_tune(plan, values, &(graphi_tune_options){.seconds = 0.02}, &tuned));
    graphi_plan_destroy(tuned);
    graphi_state_destroy(values);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A chain by a vertex function has the bits of the recurrent layer. */
static void a_chain_is_a_recurrence(void **state)
{
    (void)state;
    enum { STEPS = 9 };
    static struct batch b;
    static float y[STEPS * H], z[STEPS * H];
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const graphi_dynamic_options options = {.graphs = {.vertices = MOST, .edges = MOST_EDGES}, .state = {H, H}};
    graphi_dynamic *d = graphi_dynamic_begin(g, &options);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_vertex_rows(d), X}), pushed, gate[4];
    graphi_graph *f = graphi_vertex_function(d);
    graphi_value pre = graphi_add(f, graphi_matmul(f, graphi_pull(d, x), weight(f, "w_ih", 4 * H, X), 0, 1),
                                  graphi_matmul(f, graphi_gather(d, 0, 0), weight(f, "w_hh", 4 * H, H), 0, 1));
    pre = graphi_add(f, pre, weight(f, "b", 1, 4 * H));
    for (int i = 0; i < 4; i++)
        gate[i] = i == 2 ? graphi_tanh(f, column(f, pre, i)) : graphi_sigmoid(f, column(f, pre, i));
    graphi_value c = graphi_add(f, graphi_mul(f, gate[1], graphi_gather(d, 1, 0)), graphi_mul(f, gate[0], gate[2]));
    graphi_value h = graphi_mul(f, gate[3], graphi_tanh(f, c));
    graphi_scatter(d, 0, h);
    graphi_scatter(d, 1, c);
    graphi_push(d, 0, h);
    check_ok(graphi_dynamic_end(d, 1, &pushed));
    graphi_output(g, "y", pushed);
    graphi_value steps = graphi_input(g, "steps", GRAPHI_F32, 2, (int64_t[]){STEPS, X});
    const graphi_recurrent_options layer = {.units = H, .batch = 1, .steps = STEPS};
    graphi_recurrent_result r;
    graphi_output(g, "z", graphi_lstm(g, steps, NULL, NULL, GRAPHI_NONE, &layer, &r));
    struct session s = {.graph = g};
    check_ok(graphi_plan_create(g, machine, NULL, &s.plan));
    check_ok(graphi_state_create(g, 5, &s.state));
    check_ok(graphi_run_create(s.plan, s.state, &s.run));
    check_ok(graphi_frontier_create(&options.graphs, &s.frontier));
    static float w[4 * H * X], u[4 * H * H], bias[4 * H];
    check_ok(graphi_state_get(s.state, "w_ih", w, sizeof w));
    check_ok(graphi_state_get(s.state, "w_hh", u, sizeof u));
    check_ok(graphi_state_get(s.state, "b", bias, sizeof bias));
    check_ok(graphi_state_set(s.state, "weight_ih_l0", w, sizeof w));
    check_ok(graphi_state_set(s.state, "weight_hh_l0", u, sizeof u));
    check_ok(graphi_state_set(s.state, "bias_ih_l0", bias, sizeof bias));
    memset(bias, 0, sizeof bias);
    check_ok(graphi_state_set(s.state, "bias_hh_l0", bias, sizeof bias));
    begin_batch(&b);
    for (int v = 0; v < STEPS; v++) {
        b.sample[v] = 0;
        b.child[v] = v - 1 + (v == 0);
        b.begin[v + 1] = v;
        for (int i = 0; i < X; i++)
            b.x[v * X + i] = random_number();
    }
    memmove(b.child, b.child + 1, sizeof *b.child * (STEPS - 1));
    b.graphs.samples = 1;
    b.graphs.vertices = STEPS;
    b.graphs.edges = STEPS - 1;
    check_ok(graphi_run_set(s.run, "steps", GRAPHI_F32, b.x, sizeof(float) * STEPS * X));
    run_batch(&s, &b.graphs);
    check_ok(graphi_run_get(s.run, "y", GRAPHI_F32, y, sizeof y));
    check_ok(graphi_run_get(s.run, "z", GRAPHI_F32, z, sizeof z));
    assert_memory_equal(y, z, sizeof y);
    close_session(&s);
}

static void wrong_functions_are_refused(void **state)
{
    (void)state;
    for (int mistake = 0; mistake < 9; mistake++) {
        static const char *const texts[] = {"mixes the rows",
                                            "not scattered",
                                            "random numbers",
                                            "found 0 vertex functions",
                                            "of no vertex function",
                                            "a symbol of its own",
                                            "more than 1 vertex functions",
                                            "for state 1",
                                            "rows that follow"};
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        const graphi_dynamic_options options = {.graphs = {.vertices = 8}, .state = {H}};
        graphi_dynamic *d = graphi_dynamic_begin(g, &options);
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_vertex_rows(d), H});
        graphi_value other = graphi_input(g, "other", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, "other", 8), H});
        graphi_value pushed[2];
        if (mistake != 3) {
            graphi_graph *f = graphi_vertex_function(d);
            graphi_value in = graphi_pull(d, mistake == 8 ? other : x);
            if (mistake == 0)
                in = graphi_add(f, in, graphi_reduce_sum(f, in, (int64_t[]){0}, 1, 0));
            if (mistake == 2)
                in = graphi_dropout(f, in, 0.5);
            if (mistake == 5)
                graphi_input(f, "mine", GRAPHI_F32, 1, (int64_t[]){H});
            if (mistake != 1)
                graphi_scatter(d, mistake == 7, in);
            graphi_push(d, 0, in);
            if (mistake == 6)
                graphi_vertex_function(d);
        }
        expect_refused(graphi_dynamic_end(d, mistake == 4 ? 2 : 1, pushed), texts[mistake]);
        expect_refused(graphi_graph_status(g), texts[mistake]);
        graphi_graph_destroy(g);
    }
}

/* Structure that is set past the frontier's checks is refused by the execution, which then goes on with what is right.
 */
static void wrong_structure_is_refused_at_run(void **state)
{
    (void)state;
    static struct batch b;
    static int32_t bad[MOST_EDGES];
    struct session s = open_session(&forms[1], 2, NULL, NULL);
    for (int mistake = 0; mistake < 4; mistake++) {
        static const char *const texts[] = {"found child", "cycle", "with children from", "graphi_frontier_feed"};
        do
            random_batch(&b, 6, 30, 3);
        while (b.graphs.edges < 9);
        run_batch(&s, &b.graphs);
        const size_t edges = (size_t)b.graphs.edges * 4, vertices = (size_t)b.graphs.vertices * 4;
        int32_t v = 0;
        while (b.begin[v + 1] == b.begin[v])
            v++;
        memcpy(bad, b.child, edges);
        bad[b.begin[v]] = mistake == 0 ? (int32_t)b.graphs.vertices : v; /* its own child */
        if (mistake < 2)
            check_ok(graphi_run_set(s.run, "graph.child", GRAPHI_I32, bad, edges));
        memcpy(bad, b.begin + 1, vertices);
        bad[0] = (int32_t)b.graphs.edges + 1;
        if (mistake == 2)
            check_ok(graphi_run_set(s.run, "graph.child_end", GRAPHI_I32, bad, vertices));
        if (mistake == 3)
            check_ok(graphi_run_set_symbol(s.run, "graph.vertices.1", 1));
        expect_refused(graphi_run_execute(s.run), texts[mistake]);
        run_batch(&s, &b.graphs);
    }
    close_session(&s);
}

/* The n-th allocation fails, n = 1, 2, ...: an error, and nothing is lost. */
static void no_memory_is_an_error(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++)
        for (long n = 0;; n += 1 + n / 200) {
            graphi_graph *g = NULL;
            graphi_plan *plan = NULL;
            mem_fail_after(n);
            graphi_status status = graphi_graph_create(&g);
            if (!status)
                status = declare(g, &forms[form]);
            if (!status)
                status = graphi_plan_create(g, machine, NULL, &plan);
            mem_fail_after(-1);
            graphi_plan_destroy(plan);
            graphi_graph_destroy(g);
            if (!status)
                break;
            if (status != GRAPHI_MEMORY)
                fail_msg("allocation %ld: %s", n, graphi_message());
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_a_plain_evaluation),
        cmocka_unit_test(samples_are_as_each_by_itself),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(ways_have_the_same_bits),
        cmocka_unit_test(plain_kernels_agree),
        cmocka_unit_test(bfloat16_is_near),
        cmocka_unit_test(training_allocates_nothing),
        cmocka_unit_test(a_chain_is_a_recurrence),
        cmocka_unit_test(wrong_functions_are_refused),
        cmocka_unit_test(wrong_structure_is_refused_at_run),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
