/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that are right but rare, through plans: sub-graphs that draw random numbers, labels that are a view, a pool's
 * gradient behind a zero of its own shape, constants that a plan of rounded products folds, outputs that are inputs,
 * parts of others or what an update writes, a logarithm that is tuned with made-up numbers, or taken by one member of a
 * team, an operation of more outputs than those that may be left out, numbers that are none, samples of several rows,
 * second gradients. */
#include "engine/compile/plan.h"
#include "graph/op.h"
#include "graphi/graphi.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    return g;
}

/* One execution of the graph; x (NULL: none) goes to input "x". */
struct execution {
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
};

/* What an input is fed. */
static graphi_dtype type_of(const graphi_graph *g, const char *input)
{
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    check_ok(graphi_value_type(g, graphi_find(g, input), &dtype, &rank, dims));
    return dtype;
}

static struct execution execute(const graphi_graph *g, const graphi_plan_options *options, const void *x, size_t bytes)
{
    struct execution e;
    check_ok(graphi_plan_create(g, machine, options, &e.plan));
    check_ok(graphi_state_create(g, 5, &e.state));
    check_ok(graphi_run_create(e.plan, e.state, &e.run));
    if (x)
        check_ok(graphi_run_set(e.run, "x", type_of(g, "x"), x, bytes));
    check_ok(graphi_run_execute(e.run));
    return e;
}

static void end(struct execution *e)
{
    graphi_run_destroy(e->run);
    graphi_state_destroy(e->state);
    graphi_plan_destroy(e->plan);
}

/* --- sub-graphs --- */

enum { ROWS = 8, COLUMNS = 40, COUNT = ROWS * COLUMNS };
static const int64_t matrix[] = {ROWS, COLUMNS};

/* y = dropout(x), the dropout `depth` calls deep. */
static graphi_value dropped(graphi_graph *g, graphi_value x, int depth)
{
    if (!depth)
        return graphi_dropout(g, x, 0.5);
    graphi_graph *body = new_graph();
    graphi_output(body, "y", dropped(body, graphi_input(body, "x", GRAPHI_F32, 2, matrix), depth - 1));
    return graphi_region(g, body, 1, &x);
}

/* The gradient of the sum of y = x * mask is the mask. With another one a network learns what it did not compute, and
 * nothing says so. Two calls have masks of their own. */
static void gradients_have_the_mask_of_the_call(void **state)
{
    static float x[COUNT], y[2][COUNT], gradient[2][COUNT];
    static const char *const names[][2] = {{"y0", "gradient0"}, {"y1", "gradient1"}};
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    for (int depth = 0; depth < 3; depth++) {
        graphi_graph *g = new_graph();
        graphi_value in = graphi_input(g, "x", GRAPHI_F32, 2, matrix), back;
        for (int k = 0; k < 2; k++) {
            graphi_value out = dropped(g, in, depth);
            graphi_output(g, names[k][0], out);
            check_ok(graphi_gradients(g, graphi_reduce_sum(g, out, NULL, 0, 0), 1, &in, &back));
            graphi_output(g, names[k][1], back);
        }
        struct execution e = execute(g, NULL, x, sizeof x);
        for (int k = 0; k < 2; k++) {
            check_ok(graphi_run_get(e.run, names[k][0], GRAPHI_F32, y[k], sizeof y[k]));
            check_ok(graphi_run_get(e.run, names[k][1], GRAPHI_F32, gradient[k], sizeof gradient[k]));
            assert_memory_equal(y[k], gradient[k], sizeof y[k]);
        }
        assert_memory_not_equal(y[0], y[1], sizeof y[0]);
        end(&e);
        graphi_graph_destroy(g);
    }
}

/* --- views --- */

/* The next word is the label of each: ids without the first column, which lie in rows that are longer than they are. */
static void labels_may_be_a_view(void **state)
{
    enum { TEXTS = 4, WORDS = 10, KINDS = 7 };
    static const int64_t texts[] = {TEXTS, WORDS + 1}, logits[] = {TEXTS, WORDS, KINDS}, next[] = {TEXTS, WORDS};
    static float scores[TEXTS * WORDS * KINDS], loss[2], gradient[2][TEXTS * WORDS * KINDS];
    static int32_t ids[TEXTS * (WORDS + 1)], copied[TEXTS * WORDS];
    for (int i = 0; i < TEXTS * WORDS * KINDS; i++)
        scores[i] = (float)(i * 31 % 17) / 8;
    for (int i = 0; i < TEXTS * (WORDS + 1); i++)
        ids[i] = i * 5 % KINDS;
    for (int i = 0; i < TEXTS * WORDS; i++)
        copied[i] = ids[i / WORDS * (WORDS + 1) + i % WORDS + 1];
    for (int view = 0; view < 2; view++) {
        graphi_graph *g = new_graph();
        graphi_value back, x = graphi_constant(g, GRAPHI_F32, 3, logits, scores);
        graphi_value labels = graphi_input(g, "x", GRAPHI_I32, 2, view ? texts : next);
        if (view)
            labels = graphi_slice(g, labels, 1, 1, WORDS + 1);
        graphi_value y = graphi_softmax_cross_entropy(g, x, labels);
        graphi_output(g, "loss", y);
        check_ok(graphi_gradients(g, y, 1, &x, &back));
        graphi_output(g, "gradient", back);
        struct execution e = execute(g, NULL, view ? ids : copied, view ? sizeof ids : sizeof copied);
        check_ok(graphi_run_get(e.run, "loss", GRAPHI_F32, &loss[view], sizeof loss[view]));
        check_ok(graphi_run_get(e.run, "gradient", GRAPHI_F32, gradient[view], sizeof gradient[view]));
        end(&e);
        graphi_graph_destroy(g);
    }
    assert_true(loss[0] > 0 && loss[0] == loss[1]);
    assert_memory_equal(gradient[0], gradient[1], sizeof gradient[0]);
}

/* --- passes --- */

/* What differentiation makes of max_pool(relu(x)), written by hand with a zero for each element: the pool's gradient
 * is none for a select of fewer elements. */
static void zeros_of_an_image_stay_with_it(void **state)
{
    enum { SIDE = 6, CHANNELS = 3, PIXELS = SIDE * SIDE * CHANNELS };
    static const int64_t image[] = {1, SIDE, SIDE, CHANNELS}, pooled[] = {1, SIDE / 2, SIDE / 2, CHANNELS};
    static float x[PIXELS], zeros[PIXELS], ones[PIXELS / 4], gradient[2][PIXELS];
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i * 37 % 23 - 11);
    for (int i = 0; i < PIXELS / 4; i++)
        ones[i] = 1;
    graphi_graph *g = new_graph();
    graphi_value active = graphi_relu(g, graphi_input(g, "x", GRAPHI_F32, 4, image));
    graphi_value y = graphi_max_pool(g, active, GRAPHI_LIST(2, 2), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 0);
    graphi_value back =
        graphi_max_pool_grad(g, y + 1, graphi_constant(g, GRAPHI_F32, 4, pooled, ones), GRAPHI_LIST(2, 2),
                             GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 0, GRAPHI_LIST(SIDE, SIDE));
    graphi_output(g, "y", y);
    graphi_output(g, "gradient", graphi_select(g, active, back, graphi_constant(g, GRAPHI_F32, 4, image, zeros)));
    for (int k = 0; k < 2; k++) {
        struct execution e = execute(g, &(graphi_plan_options){.disable = k ? "all" : NULL}, x, sizeof x);
        check_ok(graphi_run_get(e.run, "gradient", GRAPHI_F32, gradient[k], sizeof gradient[k]));
        end(&e);
    }
    assert_memory_equal(gradient[0], gradient[1], sizeof gradient[0]);
    graphi_graph_destroy(g);
}

/* Constants are multiplied when the plan is made, as its products and convolutions multiply: rounded, and with or
 * without Winograd's algorithm. */
static void folding_rounds_as_the_plan_does(void **state)
{
    enum { SIDE = 16, DEPTH = 32, PIXELS = SIDE * SIDE * DEPTH, WEIGHTS = 9 * DEPTH * DEPTH };
    static const int64_t image[] = {1, SIDE, SIDE, DEPTH}, window[] = {3, 3, DEPTH, DEPTH},
                         left[] = {SIDE, SIDE * DEPTH}, right[] = {SIDE * DEPTH, SIDE};
    static const graphi_plan_options options[] = {{.precision = GRAPHI_F32},
                                                  {.conv_error = 1},
                                                  {.conv_error = 20},
                                                  {.precision = GRAPHI_BF16},
                                                  {.precision = GRAPHI_BF16, .conv_error = 1}};
    static float pixels[PIXELS], weights[WEIGHTS], y[2][PIXELS], z[2][SIDE * SIDE];
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = (float)(i * 7919 % 1009) / 1009;
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = (float)(i * 104729 % 997 - 498) / 997;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        graphi_graph *g = new_graph();
        graphi_value a = graphi_constant(g, GRAPHI_F32, 4, image, pixels);
        graphi_value w = graphi_constant(g, GRAPHI_F32, 4, window, weights);
        graphi_value b = graphi_constant(g, GRAPHI_F32, 2, left, pixels);
        graphi_value c = graphi_constant(g, GRAPHI_F32, 2, right, pixels);
        graphi_output(g, "y", graphi_conv2d(g, a, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), GRAPHI_LIST(1, 1), 1));
        graphi_output(g, "z", graphi_matmul(g, b, c, 0, 0));
        for (int k = 0; k < 2; k++) {
            graphi_plan_options with = options[i];
            with.disable = k ? "fold" : NULL;
            struct execution e = execute(g, &with, NULL, 0);
            check_ok(graphi_run_get(e.run, "y", GRAPHI_F32, y[k], sizeof y[k]));
            check_ok(graphi_run_get(e.run, "z", GRAPHI_F32, z[k], sizeof z[k]));
            end(&e);
        }
        if (memcmp(y[0], y[1], sizeof y[0]) || memcmp(z[0], z[1], sizeof z[0]))
            fail_msg("options %zu: other bits where constants are folded", i);
        graphi_graph_destroy(g);
    }
}

/* --- outputs --- */

static graphi_value itself(graphi_graph *g, graphi_value x) { return x; }
static graphi_value as_list(graphi_graph *g, graphi_value x) { return graphi_reshape(g, x, GRAPHI_LIST(-1)); }
static graphi_value turned(graphi_graph *g, graphi_value x) { return graphi_transpose(g, x, NULL, 0); }
static graphi_value turned_back(graphi_graph *g, graphi_value x) { return turned(g, turned(g, x)); }
static graphi_value columns(graphi_graph *g, graphi_value x) { return graphi_slice(g, x, 1, 0, COLUMNS); }
static graphi_value first_row(graphi_graph *g, graphi_value x) { return graphi_slice(g, x, 0, 0, 1); }

/* What follows from an input without work. In the input's own bytes the output would be what was set since, not what
 * the execution read. */
static void outputs_are_of_the_execution(void **state)
{
    enum { BOUNDED = 1, INTEGERS = 2, BOTH = BOUNDED | INTEGERS };
    static const struct {
        graphi_value (*of)(graphi_graph *, graphi_value);
        int forms; /* of the input that it takes beside fixed floats */
        int count;
    } kinds[] = {{itself, BOTH, COUNT},         {as_list, BOTH, COUNT}, {columns, BOTH, COUNT},
                 {turned_back, INTEGERS, COUNT}, {first_row, INTEGERS, COLUMNS}, {graphi_identity, BOUNDED, COUNT}};
    static int32_t before[COUNT], since[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        before[i] = 0x3f800000 + i; /* floats of 1 and a little */
        since[i] = 0x40000000 + i;
    }
    for (int form = 0; form <= BOTH; form++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (form & ~kinds[k].forms)
                continue;
            graphi_graph *g = new_graph();
            const int64_t dims[] = {form & BOUNDED ? graphi_symbol(g, "rows", ROWS) : ROWS, COLUMNS};
            graphi_value x = graphi_input(g, "x", form & INTEGERS ? GRAPHI_I32 : GRAPHI_F32, 2, dims);
            graphi_output(g, "y", kinds[k].of(g, x));
            struct execution e = execute(g, NULL, before, sizeof before);
            check_ok(graphi_run_set(e.run, "x", type_of(g, "x"), since, sizeof since));
            check_ok(graphi_run_get(e.run, "y", type_of(g, "x"), y, sizeof *y * (size_t)kinds[k].count));
            if (memcmp(y, before, sizeof *y * (size_t)kinds[k].count) != 0)
                fail_msg("kind %zu, form %d: not what was executed", k, form);
            end(&e);
            graphi_graph_destroy(g);
        }
}

static graphi_value times_one(graphi_graph *g, graphi_value x)
{
    return graphi_mul(g, x, graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){1}));
}

/* What is made of a parameter without update, which passes may find to be the parameter; it alone is read as it is. */
static void copies_of_parameters_are_of_the_execution(void **state)
{
    static graphi_value (*const of[])(graphi_graph *, graphi_value) = {graphi_identity, times_one, as_list, first_row,
                                                                       turned_back,     itself};
    enum { KINDS = sizeof of / sizeof *of };
    float since[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++)
        since[i] = 2;
    for (int k = 0; k < KINDS; k++)
        for (int plain = 0; plain < 2; plain++) {
            graphi_graph *g = new_graph();
            const graphi_initializer one = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
            graphi_output(g, "y", of[k](g, graphi_parameter(g, "p", GRAPHI_F32, 2, matrix, &one)));
            struct execution e = execute(g, plain ? &(graphi_plan_options){.disable = "all"} : NULL, NULL, 0);
            check_ok(graphi_state_set(e.state, "p", since, sizeof since));
            check_ok(graphi_run_get(e.run, "y", GRAPHI_F32, y, sizeof *y * (of[k] == first_row ? COLUMNS : COUNT)));
            if (y[COLUMNS - 1] != (of[k] == itself ? 2 : 1))
                fail_msg("kind %d, disabled %s: found %g", k, plain ? "all" : "none", (double)y[COLUMNS - 1]);
            end(&e);
            graphi_graph_destroy(g);
        }
}

static graphi_value sum(graphi_graph *g, graphi_value p, graphi_value x) { return graphi_add(g, p, x); }
static graphi_value next(graphi_graph *g, graphi_value p, graphi_value x) { return graphi_assign(g, p, sum(g, p, x)); }

static graphi_value assigned(graphi_graph *g, graphi_value p, graphi_value x)
{
    graphi_value n = sum(g, p, x);
    graphi_assign(g, p, n);
    return n;
}

static graphi_value next_as_list(graphi_graph *g, graphi_value p, graphi_value x) { return as_list(g, next(g, p, x)); }
static graphi_value next_turned_back(graphi_graph *g, graphi_value p, graphi_value x)
{
    return turned_back(g, next(g, p, x));
}

static graphi_value old(graphi_graph *g, graphi_value p, graphi_value x)
{
    next(g, p, x);
    return p;
}

/* Beside another in the bytes of their concatenation an output would have rows that lie apart, and be read as if they
 * did not. */
static void outputs_are_no_parts(void **state)
{
    float x[COUNT], y[COUNT], both[2 * COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    graphi_graph *g = new_graph();
    graphi_value in = graphi_input(g, "x", GRAPHI_F32, 2, matrix);
    graphi_value sum[] = {graphi_add(g, in, in), GRAPHI_NONE};
    sum[1] = graphi_add(g, sum[0], in);
    graphi_output(g, "y", sum[1]);
    graphi_output(g, "both", graphi_concat(g, 2, sum, 1));
    struct execution e = execute(g, NULL, x, sizeof x);
    check_ok(graphi_run_get(e.run, "y", GRAPHI_F32, y, sizeof y));
    check_ok(graphi_run_get(e.run, "both", GRAPHI_F32, both, sizeof both));
    for (int i = 0; i < COUNT; i++) {
        const int at = i / COLUMNS * 2 * COLUMNS + i % COLUMNS;
        assert_true(y[i] == 3 * x[i] && both[at] == 2 * x[i] && both[at + COLUMNS] == 3 * x[i]);
    }
    end(&e);
    graphi_graph_destroy(g);
}

/* What an update writes, and what it replaces, in the parameter's own bytes: the output would be what was set since, or
 * what another run has made of it. p is 1, x is 2. */
static void outputs_of_updates_are_of_the_execution(void **state)
{
    static const struct {
        graphi_value (*of)(graphi_graph *, graphi_value p, graphi_value x);
        float first;
    } kinds[] = {{next, 3}, {assigned, 3}, {next_as_list, 3}, {next_turned_back, 3}, {old, 1}};
    static float x[COUNT], since[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = 2;
        since[i] = 100;
    }
    for (int all = 0; all < 2; all++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            graphi_graph *g = new_graph();
            const graphi_initializer one = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
            graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, matrix, &one);
            graphi_output(g, "y", kinds[k].of(g, p, graphi_input(g, "x", GRAPHI_F32, 2, matrix)));
            struct execution e = execute(g, &(graphi_plan_options){.disable = all ? "all" : NULL}, x, sizeof x);
            graphi_run *other;
            check_ok(graphi_run_create(e.plan, e.state, &other));
            check_ok(graphi_run_set(other, "x", GRAPHI_F32, x, sizeof x));
            check_ok(graphi_run_execute(other));
            for (int set = 0; set < 2; set++) {
                if (set)
                    check_ok(graphi_state_set(e.state, "p", since, sizeof since));
                check_ok(graphi_run_get(e.run, "y", GRAPHI_F32, y, sizeof y));
                for (int i = 0; i < COUNT; i++)
                    if (y[i] != kinds[k].first)
                        fail_msg("kind %zu, %s: element %d is %g, %g was executed", k,
                                 set ? "then set" : "a second run", i, (double)y[i], (double)kinds[k].first);
            }
            graphi_run_destroy(other);
            end(&e);
            graphi_graph_destroy(g);
        }
}

/* --- tuning --- */

/* Tuning before anything was fed makes up numbers, negative ones too: a plan whose operations are checked would be
 * refused for what nobody has asked of it. */
static void tuning_tells_of_no_nan_of_its_own(void **state)
{
    static const float negative[COUNT] = {[1] = -1};
    graphi_graph *g = new_graph();
    graphi_plan *plan, *tuned;
    graphi_state *s;
    graphi_run *run;
    graphi_output(g, "y", graphi_log(g, graphi_input(g, "x", GRAPHI_F32, 2, matrix)));
    check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.check_numerics = true}, &plan));
    check_ok(graphi_state_create(g, 5, &s));
    check_ok(graphi_plan_tune(plan, s, &(graphi_tune_options){.seconds = 0.05}, &tuned));
    check_ok(graphi_run_create(tuned, s, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, negative, sizeof negative));
    assert_int_equal(graphi_run_execute(run), GRAPHI_NONFINITE);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(tuned);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* The leader of a team could look for NaN before the others have written their shares: then one is told of an execution
 * before, or passes; and what it had found could be read as results. The operation has one share, which is the last
 * member's. */
static void results_of_all_members_are_checked(void **state)
{
    enum { ELEMENTS = 64, TIMES = 200 };
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    if (info.cores < 2)
        skip();
    const graphi_plan_options options = {.check_numerics = true,
                                         .setting = {.executors = 1, .width = 2, .inlining = GRAPHI_OFF}};
    graphi_graph *g = new_graph();
    float x[ELEMENTS], y[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = 1;
    graphi_output(g, "y", graphi_log(g, graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){ELEMENTS})));
    struct execution e = execute(g, &options, x, sizeof x);
    for (int i = 0; i < TIMES; i++) {
        x[0] = i % 2 ? 1 : -1;
        check_ok(graphi_run_set(e.run, "x", GRAPHI_F32, x, sizeof x));
        assert_int_equal(graphi_run_execute(e.run), i % 2 ? GRAPHI_OK : GRAPHI_NONFINITE);
        assert_int_equal(graphi_run_get(e.run, "y", GRAPHI_F32, y, sizeof y), i % 2 ? GRAPHI_OK : GRAPHI_INVALID);
    }
    end(&e);
    graphi_graph_destroy(g);
}

/* --- outputs that nobody reads --- */

enum { SPREAD = 33 }; /* outputs, each the input plus its number; one may have the input's bytes */
#define SPREAD_OPTIONAL (UINT32_C(1) | UINT32_C(1) << 31)

static uint32_t spread_absent; /* as last bound */

static graphi_status spread_shape(const struct shape_call *call)
{
    for (int i = 0; i < SPREAD; i++)
        call->out[i] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status spread_run(const struct kernel_call *call, int phase, int share)
{
    const uint32_t *absent = call->params;
    for (int k = 0; k < COUNT; k++) {
        int32_t x = ((const int32_t *)call->in[0].data)[k];
        for (int i = 0; i < SPREAD; i++)
            if (i >= 32 || !(*absent >> i & 1))
                ((int32_t *)call->out[i].data)[k] = x + i;
    }
    return GRAPHI_OK;
}

static graphi_status spread_bind(const struct bind_call *call, struct kernel *kernel)
{
    spread_absent = call->absent;
    return kernel_make((struct kernel){.name = "spread", .run = spread_run, .shares = {1}}, &spread_absent,
                       sizeof spread_absent, kernel);
}

static const struct op_kind spread = {.name = "spread", .summary = "", .min_inputs = 1, .max_inputs = 1,
                                      .outputs = SPREAD, .optional = SPREAD_OPTIONAL, .flags = OP_INPLACE,
                                      .scalability = "memory", .shape = spread_shape, .bind = spread_bind};

static int64_t bytes_of(const struct compiled *c, int32_t value)
{
    return c->buffers.data[c->place[value].buffer].bytes;
}

/* An input whose place one of them takes would have no bytes. */
static void absent_outputs_alone_have_no_bytes(void **state)
{
    int32_t x[COUNT], y[COUNT], found = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = i;
    graphi_graph *g = new_graph();
    graphi_value last = graphi_input(g, "x", GRAPHI_I32, 2, matrix);
    for (int i = 0; i < 2; i++)
        last = graph_append(g, &spread, 1, &last, 0, NULL, 0, NULL) + SPREAD - 1;
    graphi_output(g, "y", last);
    struct execution e = execute(g, NULL, x, sizeof x);
    check_ok(graphi_run_get(e.run, "y", GRAPHI_I32, y, sizeof y));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(y[i], x[i] + 2 * (SPREAD - 1));
    assert_int_equal(spread_absent, SPREAD_OPTIONAL);
    const struct compiled *c = e.plan->compiled;
    for (int32_t n = 0; n < (int32_t)c->graph->nodes.count; n++) {
        const struct node *node = graph_node(c->graph, n);
        for (int i = 0; node->kind == &spread && i < SPREAD; i++, found++)
            assert_int_equal(bytes_of(c, node->output + i), i == 0 || i == 31 ? 0 : sizeof x);
    }
    assert_int_equal(found, 2 * SPREAD);
    end(&e);
    graphi_graph_destroy(g);
}

/* --- numbers that are none --- */

/* Opens a run that checks all results; x goes to input "x". */
static struct execution watched(const graphi_graph *g, const void *x, size_t bytes)
{
    const graphi_plan_options options = {.check_numerics = true, .disable = "fusion"};
    struct execution e;
    check_ok(graphi_plan_create(g, machine, &options, &e.plan));
    check_ok(graphi_state_create(g, 5, &e.state));
    check_ok(graphi_run_create(e.plan, e.state, &e.run));
    check_ok(graphi_run_set(e.run, "x", GRAPHI_F32, x, bytes));
    return e;
}

/* Without it a NaN would be reported late, or with whatever operation happened to run first, or by a number that only
 * the plan knows. */
static void first_nonfinite_operation_is_named(void **state)
{
    float x[COUNT] = {0};
    graphi_graph *g = new_graph();
    graphi_value in = graphi_input(g, "x", GRAPHI_F32, 2, matrix);
    graphi_neg(g, in); /* read by nobody: the nodes of the plan have other numbers */
    graphi_value a = graphi_tanh(g, in);
    graphi_scope(g, "bad");
    graphi_value b = graphi_log(g, graphi_sub(g, a, graphi_relu(g, a)));
    graphi_scope(g, "later");
    graphi_output(g, "c", graphi_div(g, a, b));
    x[3] = -1;
    struct execution e = watched(g, x, sizeof x);
    assert_int_equal(graphi_run_execute(e.run), GRAPHI_NONFINITE);
    assert_non_null(strstr(graphi_message(), "log 'bad' (node 4): found NaN"));
    end(&e);
    graphi_graph_destroy(g);
}

/* A copy that the plan makes for itself has a name that its user knows. */
static void nonfinite_outputs_are_named(void **state)
{
    const float infinity[] = {1, INFINITY};
    graphi_graph *g = new_graph();
    graphi_output(g, "same", graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){2}));
    struct execution e = watched(g, infinity, sizeof infinity);
    assert_int_equal(graphi_run_execute(e.run), GRAPHI_NONFINITE);
    assert_non_null(strstr(graphi_message(), "reshape 'output same': found NaN"));
    end(&e);
    graphi_graph_destroy(g);
}

/* Without it an infinity that only bfloat16 has, rounded up from a finite number, would pass. */
static void infinities_of_bfloat16_are_found(void **state)
{
    static const float fine[] = {1, -2, 3.3e38f, 0}, beyond[] = {1, -2, 3.4e38f, 0};
    graphi_graph *g = new_graph();
    graphi_output(g, "y", graphi_cast(g, graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){4}), GRAPHI_BF16));
    struct execution e = watched(g, fine, sizeof fine);
    check_ok(graphi_run_execute(e.run));
    check_ok(graphi_run_set(e.run, "x", GRAPHI_F32, beyond, sizeof beyond));
    assert_int_equal(graphi_run_execute(e.run), GRAPHI_NONFINITE);
    end(&e);
    graphi_graph_destroy(g);
}

/* --- samples --- */

/* A batch in two halves has the masks of the whole, whether a sample is a row or several: as [n T, C] of a dense layer
 * samples had those of others. */
static void masks_follow_their_samples(void **state)
{
    enum { N = 8, T = 3, C = 16, SAMPLE = T * C, HALF = 3 };
    static const char *const names[] = {"samples", "rows"};
    static float ones[N * SAMPLE], whole[2][N * SAMPLE], part[N * SAMPLE];
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 3, (int64_t[]){graphi_symbol(g, "n", N), T, C});
    graphi_output(g, names[0], graphi_dropout(g, x, 0.5));
    graphi_output(g, names[1], graphi_dropout(g, graphi_reshape(g, x, GRAPHI_LIST(-1, C)), 0.5));
    for (int i = 0; i < N * SAMPLE; i++)
        ones[i] = 1;
    struct execution e = execute(g, NULL, ones, sizeof ones);
    for (int turn = 0; turn < 3; turn++) {
        const int first = turn == 2 ? HALF : 0, count = turn == 0 ? N : turn == 1 ? HALF : N - HALF;
        const size_t bytes = sizeof(float) * (size_t)(count * SAMPLE);
        check_ok(graphi_run_set_symbol(e.run, "n", count));
        check_ok(graphi_run_set(e.run, "x", GRAPHI_F32, ones, bytes));
        graphi_run_set_first_sample(e.run, (uint64_t)(100 + first));
        check_ok(graphi_run_execute(e.run));
        for (int k = 0; k < 2; k++) {
            check_ok(graphi_run_get(e.run, names[k], GRAPHI_F32, turn ? part : whole[k], bytes));
            if (turn)
                assert_memory_equal(part, whole[k] + first * SAMPLE, bytes);
        }
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                assert_memory_not_equal(whole[k] + i * SAMPLE, whole[k] + j * SAMPLE, sizeof(float) * SAMPLE);
    end(&e);
    graphi_graph_destroy(g);
}

/* The first gradient has zeros in the place of mean and bias: asked for a second one, of the bias too, it was refused
 * as if it were asked of the statistics. */
static void fixed_statistics_have_second_gradients(void **state)
{
    enum { C = 3, N = 2 };
    static const float mean[C] = {0.5f, 1, -1}, variance[C] = {1, 2, 4}, x[N * C] = {1, 2, 3, 4, 5, 6};
    graphi_graph *g = new_graph();
    const graphi_initializer one = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
    graphi_value in = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){N, C}), dx, second[2];
    graphi_value of[] = {graphi_parameter(g, "scale", GRAPHI_F32, 1, (int64_t[]){C}, &one),
                         graphi_parameter(g, "bias", GRAPHI_F32, 1, (int64_t[]){C}, &one)};
    graphi_value y =
        graphi_batch_norm_inference(g, in, of[0], of[1], graphi_constant(g, GRAPHI_F32, 1, (int64_t[]){C}, mean),
                                    graphi_constant(g, GRAPHI_F32, 1, (int64_t[]){C}, variance), 0);
    check_ok(graphi_gradients(g, graphi_reduce_sum(g, y, NULL, 0, 0), 1, &in, &dx));
    check_ok(graphi_gradients(g, graphi_reduce_sum(g, graphi_square(g, dx), NULL, 0, 0), 2, of, second));
    graphi_output(g, "dscale", second[0]);
    struct execution e = execute(g, NULL, x, sizeof x);
    float found[C]; /* of N (scale / deviation)^2 */
    check_ok(graphi_run_get(e.run, "dscale", GRAPHI_F32, found, sizeof found));
    for (int c = 0; c < C; c++)
        assert_true(fabsf(found[c] - 2 * N / variance[c]) < 1e-5f);
    end(&e);
    graphi_graph_destroy(g);
}

/* 1 less 9 times 0.1f: the quotient is below 10, and 10 when it is rounded. */
static void periods_are_those_that_were_taken(void **state)
{
    enum { N = 3 };
    static const float x[N] = {1, 1, -1}, period[N] = {0.1f, 0.2f, 0.1f}, taken[N] = {9, 4, -10};
    graphi_graph *g = new_graph();
    graphi_value in = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){N}), gradient;
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 1, (int64_t[]){N}, NULL);
    check_ok(graphi_gradients(g, graphi_reduce_sum(g, graphi_mod(g, in, p), NULL, 0, 0), 1, &p, &gradient));
    graphi_output(g, "dp", gradient);
    struct execution e = execute(g, NULL, x, sizeof x);
    float found[N];
    check_ok(graphi_state_set(e.state, "p", period, sizeof period));
    check_ok(graphi_run_execute(e.run));
    check_ok(graphi_run_get(e.run, "dp", GRAPHI_F32, found, sizeof found));
    for (int i = 0; i < N; i++)
        assert_true(found[i] == -taken[i]);
    end(&e);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_have_the_mask_of_the_call),
        cmocka_unit_test(labels_may_be_a_view),
        cmocka_unit_test(zeros_of_an_image_stay_with_it),
        cmocka_unit_test(folding_rounds_as_the_plan_does),
        cmocka_unit_test(outputs_are_of_the_execution),
        cmocka_unit_test(copies_of_parameters_are_of_the_execution),
        cmocka_unit_test(outputs_are_no_parts),
        cmocka_unit_test(outputs_of_updates_are_of_the_execution),
        cmocka_unit_test(tuning_tells_of_no_nan_of_its_own),
        cmocka_unit_test(results_of_all_members_are_checked),
        cmocka_unit_test(absent_outputs_alone_have_no_bytes),
        cmocka_unit_test(first_nonfinite_operation_is_named),
        cmocka_unit_test(nonfinite_outputs_are_named),
        cmocka_unit_test(infinities_of_bfloat16_are_found),
        cmocka_unit_test(masks_follow_their_samples),
        cmocka_unit_test(fixed_statistics_have_second_gradients),
        cmocka_unit_test(periods_are_those_that_were_taken),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
