/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs against the reference interpreter: several small graphs with updates, every policy, width and driver.
 */
#include "base/memory.h"
#include "engine/compile/plan.h"
#include "graphi/run.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fixture.h"
#include "heap_calls.h"

/* --- graphs --- */

static graphi_value op1(graphi_graph *g, const char *kind, graphi_value a)
{
    return graphi_op(g, kind, 1, &a, 0, NULL);
}

static graphi_value op2(graphi_graph *g, const char *kind, graphi_value a, graphi_value b)
{
    return graphi_op(g, kind, 2, (graphi_value[]){a, b}, 0, NULL);
}

static graphi_value slice(graphi_graph *g, graphi_value x, int axis, int begin, int end)
{
    graphi_attribute a[] = {{.name = "axis", .type = GRAPHI_INT, .i = axis},
                            {.name = "begin", .type = GRAPHI_INT, .i = begin},
                            {.name = "end", .type = GRAPHI_INT, .i = end}};
    return graphi_op(g, "slice", 1, &x, 3, a);
}

static graphi_value concat(graphi_graph *g, int axis, int n, const graphi_value *x)
{
    graphi_attribute a = {.name = "axis", .type = GRAPHI_INT, .i = axis};
    return graphi_op(g, "concat", n, x, 1, &a);
}

static graphi_value mean_of_rows(graphi_graph *g, graphi_value x)
{
    graphi_attribute a[] = {{.name = "axes", .type = GRAPHI_INTS, .ints = (int64_t[]){1}, .count = 1},
                            {.name = "keepdims", .type = GRAPHI_INT, .i = 1}};
    return graphi_op(g, "reduce_mean", 1, &x, 2, a);
}

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    return g;
}

static const int64_t matrix[] = {32, 48};
static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};

/* Two parameters updated from values that read both old contents, one of them through a view. */
static graphi_graph *updates(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, matrix);
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, matrix, &uniform);
    graphi_value q = graphi_parameter(g, "q", GRAPHI_F32, 2, matrix, &uniform);
    graphi_value y = op1(g, "tanh", op2(g, "mul", p, x));
    graphi_value z = op2(g, "add", y, q);
    graphi_assign(g, p, op2(g, "sub", p, op2(g, "mul", y, q)));
    graphi_assign(g, q, op1(g, "tanh", op2(g, "add", q, op2(g, "mul", z, p))));
    graphi_output(g, "half of p", op1(g, "neg", slice(g, p, 1, 8, 32)));
    graphi_output(g, "z", z);
    return g;
}

/* Concatenations whose inputs can lie inside the output, nested, with views read by others. */
static graphi_graph *parts(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, matrix);
    graphi_value a = op1(g, "tanh", x), b = op1(g, "relu", x), c = op1(g, "sigmoid", x);
    graphi_value inner = concat(g, 1, 2, (graphi_value[]){a, b});
    graphi_value outer = concat(g, 1, 2, (graphi_value[]){inner, c});
    graphi_value rows = concat(g, 0, 2, (graphi_value[]){op1(g, "neg", c), op1(g, "square", b)});
    graphi_value back = op2(g, "mul", slice(g, outer, 1, 16, 64), slice(g, outer, 1, 80, 128));
    graphi_output(g, "outer", outer);
    graphi_output(g, "rows", slice(g, rows, 0, 16, 48));
    graphi_output(g, "sum", op2(g, "add", back, a));
    graphi_output(g, "twice", concat(g, 1, 2, (graphi_value[]){a, a}));
    return g;
}

/* A random graph of element-wise operations with much reuse of memory. */
static graphi_graph *random_graph(void)
{
    static const char *const kinds[] = {"tanh", "relu", "sigmoid", "add", "sub", "mul", "min"};
    graphi_graph *g = new_graph();
    graphi_value value[140] = {graphi_input(g, "x", GRAPHI_F32, 2, matrix),
                               graphi_parameter(g, "p", GRAPHI_F32, 2, matrix, &uniform)};
    for (int i = 2; i < 140; i++) {
        struct random4 r = random_philox(5, 1, (uint64_t)i);
        int kind = (int)(r.v[0] % 7), back = i < 12 ? i : 12;
        graphi_value a = value[i - 1 - (int)(r.v[1] % (uint32_t)back)],
                     b = value[i - 1 - (int)(r.v[2] % (uint32_t)back)];
        value[i] = kind < 3 ? op1(g, kinds[kind], a) : op2(g, kinds[kind], a, b);
    }
    graphi_assign(g, value[1], op1(g, "tanh", value[139]));
    for (int i = 120; i < 140; i += 6) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        graphi_output(g, name, value[i]);
    }
    return g;
}

/* A random network and its training step: element-wise work, products, softmax, parts put together in another order,
 * means of rows spread over them. The key says which. */
static graphi_graph *random_network(uint64_t key)
{
    enum { FIRST = 4, LAST = 40, REACH = 9 };
    static const char *const one[] = {"tanh", "sigmoid", "softmax"}, *const two[] = {"add", "sub", "mul", "max"};
    static const char *const names[] = {"w0", "w1", "w2"};
    graphi_graph *g = new_graph();
    graphi_value weights[3], value[LAST] = {graphi_input(g, "x", GRAPHI_F32, 2, matrix)};
    for (int i = 0; i < 3; i++)
        weights[i] = graphi_parameter(g, names[i], GRAPHI_F32, 2, (int64_t[]){48, 48}, &uniform);
    for (int i = 1; i < FIRST; i++)
        value[i] = op1(g, "tanh", op2(g, "matmul", value[0], weights[i - 1]));
    for (int i = FIRST; i < LAST; i++) {
        struct random4 r = random_philox(key, 2, (uint64_t)i);
        int back = i < REACH ? i : REACH, cut = 8 * (1 + (int)(r.v[3] % 5));
        graphi_value a = value[i - 1 - (int)(r.v[1] % (uint32_t)back)],
                     b = value[i - 1 - (int)(r.v[2] % (uint32_t)back)];
        switch (r.v[0] % 5) {
        case 0: value[i] = op1(g, one[r.v[3] % 3], a); break;
        case 1: value[i] = op1(g, "tanh", op2(g, two[r.v[3] % 4], a, b)); break;
        case 2: value[i] = op1(g, "tanh", op2(g, "matmul", a, weights[r.v[3] % 3])); break;
        case 3: value[i] = concat(g, 1, 2, (graphi_value[]){slice(g, a, 1, cut, 48), slice(g, b, 1, 0, cut)}); break;
        default: value[i] = op2(g, "mul", a, mean_of_rows(g, b));
        }
    }
    graphi_value loss = op1(g, "reduce_mean", op1(g, "square", op2(g, "add", value[LAST - 1], value[LAST - 2])));
    graphi_output(g, "loss", loss);
    graphi_output(g, "last", value[LAST - 1]);
    graphi_optimizer optimizer = {.kind = GRAPHI_MOMENTUM,
                                  .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)};
    assert_int_equal(graphi_minimize(g, loss, &optimizer), GRAPHI_OK);
    return g;
}

/* Two layers trained by gradient descent. */
static graphi_graph *perceptron(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, matrix);
    graphi_value rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
    graphi_value w1 = graphi_parameter(g, "w1", GRAPHI_F32, 2, (int64_t[]){48, 40}, &uniform);
    graphi_value b1 = graphi_parameter(g, "b1", GRAPHI_F32, 1, (int64_t[]){40}, &uniform);
    graphi_value w2 = graphi_parameter(g, "w2", GRAPHI_F32, 2, (int64_t[]){40, 8}, &uniform);
    graphi_value h = op1(g, "tanh", op2(g, "add", op2(g, "matmul", x, w1), b1));
    graphi_value y = op2(g, "matmul", h, w2);
    graphi_value loss = op1(g, "reduce_mean", op2(g, "mul", y, y));
    graphi_output(g, "loss", loss);
    graphi_output(g, "y", y);
    graphi_optimizer optimizer = {.kind = GRAPHI_MOMENTUM, .learning_rate = rate, .weight_decay = 0.01, .clip_norm = 1};
    assert_int_equal(graphi_minimize(g, loss, &optimizer), GRAPHI_OK);
    return g;
}

/* A layer over several steps, and two convolutions of one image, whose biases' gradients are sums of inputs alone. */
static graphi_graph *biased(void)
{
    enum { TIMES = 3, CONVOLUTIONS = 2 };
    static const char *const c_names[] = {"c0", "c1", "c2"}, *const x_names[] = {"x0", "x1", "x2"},
                             *const k_names[] = {"k", "l"};
    static const char *const map_names[] = {"map of k", "map of l"}, *const bias_names[] = {"bias of k", "bias of l"};
    graphi_graph *g = new_graph();
    const int64_t w_dims[] = {24, 40}, b_dims[] = {40}, x_dims[] = {16, 24}, y_dims[] = {16, 40};
    const int64_t k_dims[] = {1, 1, 6, 40}, image_dims[] = {2, 5, 5, 6}, map_dims[] = {2, 5, 5, 40};
    const float rate = 0.25f;
    graphi_attribute all = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value terms[TIMES + CONVOLUTIONS], image = graphi_input(g, "image", GRAPHI_F32, 4, image_dims);
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, w_dims, &uniform),
                 b = graphi_parameter(g, "b", GRAPHI_F32, 1, b_dims, &uniform);
    for (int i = 0; i < CONVOLUTIONS; i++) {
        graphi_value y = op2(g, "conv2d", image, graphi_parameter(g, k_names[i], GRAPHI_F32, 4, k_dims, &uniform));
        y = op2(g, "add", y, graphi_parameter(g, bias_names[i], GRAPHI_F32, 1, b_dims, &uniform));
        terms[i] = op2(g, "mul", y, graphi_input(g, map_names[i], GRAPHI_F32, 4, map_dims));
    }
    for (int t = 0; t < TIMES; t++) {
        graphi_value y = op2(g, "add", op2(g, "matmul", graphi_input(g, x_names[t], GRAPHI_F32, 2, x_dims), w), b);
        terms[CONVOLUTIONS + t] = op2(g, "mul", y, graphi_input(g, c_names[t], GRAPHI_F32, 2, y_dims));
    }
    for (int i = 0; i < TIMES + CONVOLUTIONS; i++)
        terms[i] = graphi_op(g, "sum_to", 1, &terms[i], 1, &all);
    graphi_value loss = graphi_op(g, "add_n", TIMES + CONVOLUTIONS, terms, 0, NULL);
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = graphi_constant(g, GRAPHI_F32, 0, NULL, &rate)};
    assert_int_equal(graphi_minimize(g, loss, &sgd), GRAPHI_OK);
    graphi_output(g, "loss", loss);
    return g;
}

/* Two batches with epilogues, put together along an axis: along the rows' elements each may lie in the whole, along
 * another dimension its results are no matrix of one row distance and it must be copied. */
static graphi_value fused_parts(graphi_graph *g, const char *first, const char *second, graphi_value heads, int axis)
{
    const int64_t dims[] = {2, 1, 24, 20};
    graphi_value x = graphi_input(g, first, GRAPHI_F32, 4, dims), z = graphi_input(g, second, GRAPHI_F32, 4, dims);
    return concat(g, axis, 2, (graphi_value[]){op1(g, "relu", op2(g, "matmul", x, heads)),
                                               op1(g, "sigmoid", op2(g, "matmul", z, heads))});
}

/* Products of batches, each of whose operands repeats what the other has, and of one matrix with many, trained. */
static graphi_graph *broadcast(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 1, 24, 20});
    graphi_value heads = graphi_parameter(g, "heads", GRAPHI_F32, 4, (int64_t[]){1, 3, 20, 70}, &uniform);
    graphi_value left = graphi_parameter(g, "left", GRAPHI_F32, 2, (int64_t[]){33, 24}, &uniform);
    graphi_value y = op2(g, "matmul", left, op1(g, "tanh", op2(g, "matmul", x, heads)));
    graphi_value loss = op1(g, "reduce_mean", op1(g, "square", y));
    graphi_output(g, "y", y);
    graphi_output(g, "loss", loss);
    graphi_output(g, "side by side", fused_parts(g, "a", "b", heads, 3));
    graphi_output(g, "one after the other", fused_parts(g, "c", "d", heads, 1));
    graphi_optimizer optimizer = {.kind = GRAPHI_MOMENTUM,
                                  .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)};
    assert_int_equal(graphi_minimize(g, loss, &optimizer), GRAPHI_OK);
    return g;
}

/* A column that is turned into a row without being copied, and two readers that both refuse such rows: the second one's
 * refusal was taken for an operation that has no kernel, and the plan was refused. */
static graphi_graph *column(void)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){31, 3});
    graphi_value row = op1(g, "transpose", slice(g, op1(g, "tanh", x), 1, 2, 3));
    graphi_output(g, "softmax", op1(g, "softmax", row));
    graphi_output(g, "logarithms", op1(g, "log_softmax", row));
    return g;
}

static graphi_graph *(*const graphs[])(void) = {updates, parts, random_graph, perceptron, biased, broadcast, column};
enum { GRAPHS = sizeof graphs / sizeof *graphs, STEPS = 3 };

/* --- comparing --- */

/* All outputs of STEPS steps and all parameters at the end, one after the other. */
struct trail {
    size_t count;
    float data[1 << 18];
};

static void feed(graphi_run *run, const graphi_graph *g, int step)
{
    static float data[1 << 16];
    for (size_t v = 0; v < g->values.count; v++) {
        const struct value *value = &g->values.data[v];
        if (value->kind != VALUE_INPUT)
            continue;
        reference_random(data, type_count(&value->type), (uint64_t)step + 100);
        check_ok(graphi_run_set(run, value->name, value->type.dtype, data, (size_t)type_bytes(&value->type)));
    }
}

static void append(struct trail *trail, const void *data, int64_t count)
{
    assert_true(trail->count + (size_t)count <= sizeof trail->data / sizeof *trail->data);
    memcpy(trail->data + trail->count, data, (size_t)count * sizeof(float));
    trail->count += (size_t)count;
}

static void run_plan(const graphi_graph *g, const graphi_plan *plan, struct trail *trail)
{
    static float data[1 << 16];
    graphi_state *state;
    graphi_run *run;
    check_ok(graphi_state_create(g, 3, &state));
    check_ok(graphi_run_create(plan, state, &run));
    trail->count = 0;
    for (int step = 0; step < STEPS; step++) {
        feed(run, g, step);
        check_ok(graphi_run_execute(run));
        for (size_t i = 0; i < g->outputs.count; i++) {
            const struct value_type *type = &graph_value(g, g->outputs.data[i].value)->type;
            check_ok(graphi_run_get(run, g->outputs.data[i].name, type->dtype, data, (size_t)type_bytes(type)));
            append(trail, data, type_count(type));
        }
    }
    for (size_t v = 0; v < g->values.count; v++)
        if (g->values.data[v].kind == VALUE_PARAMETER) {
            const struct value *value = &g->values.data[v];
            check_ok(graphi_state_get(state, value->name, data, (size_t)type_bytes(&value->type)));
            append(trail, data, type_count(&value->type));
        }
    graphi_run_destroy(run);
    graphi_state_destroy(state);
}

static void run_reference(const graphi_graph *g, struct trail *trail)
{
    struct reference r;
    graphi_state *state;
    check_ok(graphi_state_create(g, 3, &state));
    reference_init(&r, g);
    for (size_t v = 0; v < g->values.count; v++)
        if (g->values.data[v].kind == VALUE_PARAMETER)
            check_ok(graphi_state_get(state, g->values.data[v].name, r.data[v],
                                      (size_t)type_bytes(&g->values.data[v].type)));
    trail->count = 0;
    for (int step = 0; step < STEPS; step++) {
        for (size_t v = 0; v < g->values.count; v++)
            if (g->values.data[v].kind == VALUE_INPUT)
                reference_random(r.data[v], type_count(&g->values.data[v].type), (uint64_t)step + 100);
        check_ok(reference_run(&r));
        for (size_t i = 0; i < g->outputs.count; i++)
            append(trail, r.data[g->outputs.data[i].value],
                   type_count(&graph_value(g, g->outputs.data[i].value)->type));
    }
    for (size_t v = 0; v < g->values.count; v++)
        if (g->values.data[v].kind == VALUE_PARAMETER)
            append(trail, r.data[v], type_count(&g->values.data[v].type));
    reference_fini(&r);
    graphi_state_destroy(state);
}

static graphi_plan *plan_of(const graphi_graph *g, graphi_plan_options options)
{
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    return plan;
}

/* --- tests --- */

static struct trail expected, got;

static const graphi_plan_options serially = {
    .setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};

/* Without it shared memory, views and early updates could change results. */
static void equals_the_reference(void **state)
{
    for (int i = 0; i < GRAPHS; i++) {
        graphi_graph *g = graphs[i]();
        graphi_plan *plan = plan_of(g, serially);
        run_reference(g, &expected);
        run_plan(g, plan, &got);
        assert_int_equal(got.count, expected.count);
        double difference = reference_difference(got.data, expected.data, (int64_t)got.count);
        if (difference > 1e-5)
            fail_msg("graph %d differs from the reference by %g", i, difference);
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
}

static bool same_bits(void)
{
    return got.count == expected.count && memcmp(got.data, expected.data, got.count * sizeof(float)) == 0;
}

static void check_bits(const graphi_graph *g, const graphi_plan *plan, graphi_setting setting, const char *kind, int i)
{
    graphi_plan *other;
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting}, &other));
    run_plan(g, other, &got);
    if (!same_bits())
        fail_msg("%s %d, policy %s, width %d, driver %d: other bits", kind, i, graphi_policy_name(setting.policy),
                 setting.width, setting.driver);
    graphi_plan_destroy(other);
}

/* Without it the bits could depend on who runs what when. */
static void same_bits_everywhere(void **state)
{
    for (int i = 0; i < GRAPHS; i++) {
        graphi_graph *g = graphs[i]();
        graphi_plan_options options = serially;
        options.precision = graphs[i] == biased ? GRAPHI_BF16 : GRAPHI_F32;
        graphi_plan *plan = plan_of(g, options);
        run_plan(g, plan, &expected);
        options.disable = "round";
        graphi_plan *apart = plan_of(g, options);
        graphi_plan_info shared, single;
        graphi_plan_get_info(plan, &shared);
        graphi_plan_get_info(apart, &single);
        assert_int_equal(shared.nodes - single.nodes, graphs[i] == biased); /* the rounded image */
        run_plan(g, apart, &got);
        assert_memory_equal(got.data, expected.data, expected.count * sizeof(float));
        graphi_plan_destroy(apart);
        for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
            for (int width = 1; width <= machine->cores; width = next_width(width))
                for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++)
                    check_bits(g, plan,
                               (graphi_setting){.policy = (graphi_policy)policy, .driver = (graphi_driver)driver,
                                                .width = width, .parameters = {{"seed", width}}},
                               "graph", i);
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
}

/* Passes, shared memory and orders that no fixed graph has, and teams of three, five and six, whose members' shares
 * differ, whatever cores there are. Each network runs under settings of its own; a single wrong bit is found. */
static void random_networks(void **state)
{
    const bool emulated = getenv("GRAPHI_TESTS_EMULATED");
    const uint64_t networks = emulated ? 5 : 10, settings = emulated ? 2 : 8;
    static const char *const passes[] = {NULL, "fusion", "all", "pack", "reduce"};
    graphi_machine *six = six_cores();
    for (uint64_t key = 0; key < networks; key++) {
        graphi_graph *g = random_network(key);
        graphi_plan_options options = serially;
        options.disable = passes[key % 5];
        graphi_plan *plan;
        check_ok(graphi_plan_create(g, six, &options, &plan));
        run_reference(g, &expected);
        run_plan(g, plan, &got);
        assert_int_equal(got.count, expected.count);
        double difference = reference_difference(got.data, expected.data, (int64_t)got.count);
        if (!(difference <= 1e-4))
            fail_msg("random network %d differs from the reference by %g", (int)key, difference);
        expected = got;
        for (uint64_t s = 0; s < settings; s++) {
            struct random4 r = random_philox(key, 3, s);
            check_bits(g, plan,
                       (graphi_setting){.policy = (graphi_policy)(r.v[0] % GRAPHI_POLICIES),
                                        .driver = r.v[1] % 2 ? GRAPHI_DRIVER_DEDICATED : GRAPHI_DRIVER_COMBINING,
                                        .width = 1 + (int)(r.v[2] % 6), .parameters = {{"seed", r.v[3]}}},
                       "random network", (int)key);
        }
        uint32_t bits, at = random_philox(key, 4, 0).v[0] % (uint32_t)got.count;
        memcpy(&bits, &got.data[at], sizeof bits);
        bits ^= 1;
        memcpy(&got.data[at], &bits, sizeof bits);
        assert_false(same_bits());
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
    graphi_machine_destroy(six);
}

static void check_steps(graphi_graph *g, const graphi_plan *plan)
{
    graphi_state *s;
    graphi_run *run;
    graphi_run_info info;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    for (int step = 0; step < 4; step++) {
        feed(run, g, step);
        const unsigned long before = atomic_load(&heap_calls);
        check_ok(graphi_run_execute(run));
        const unsigned long calls = atomic_load(&heap_calls) - before;
        graphi_run_get_info(run, &info);
        if (step && (info.allocations || calls))
            fail_msg("%s, driver %d: found %llu allocations and %lu calls of the heap in step %d, expected none",
                     graphi_policy_name(plan->setting.policy), (int)plan->setting.driver,
                     (unsigned long long)info.allocations, calls, step);
    }
    assert_int_equal(info.executions, 4);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
}

/* Without it a step could slow down by the heap, or fail half-way through a training of days. */
static void steps_allocate_nothing(void **state)
{
    static const graphi_driver drivers[] = {GRAPHI_DRIVER_DEDICATED, GRAPHI_DRIVER_COMBINING};
    const unsigned long before = atomic_load(&heap_calls);
    mem_free(mem_alloc(1));
    assert_int_equal(atomic_load(&heap_calls), before + 1); /* the counter counts */
    for (int i = 0; i < GRAPHS; i++) {
        graphi_graph *g = graphs[i]();
        for (int d = 0; d < 2; d++)
            for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
                const graphi_setting setting = {
                    .policy = (graphi_policy)policy, .driver = drivers[d], .executors = 2, .width = 1};
                graphi_plan *plan = plan_of(g, (graphi_plan_options){.setting = setting});
                check_steps(g, plan);
                graphi_plan_destroy(plan);
            }
        graphi_graph_destroy(g);
    }
}

static graphi_status create_all(const graphi_graph *g)
{
    graphi_plan *plan = NULL;
    graphi_state *state = NULL;
    graphi_run *run = NULL;
    graphi_status status = graphi_plan_create(g, machine, &serially, &plan);
    if (!status)
        status = graphi_state_create(g, 1, &state);
    if (!status)
        status = graphi_run_create(plan, state, &run);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    return status;
}

/* Without it some failed allocation would crash, leak (the sanitizers see it) or be taken for success. */
static void every_allocation_may_fail(void **state)
{
    for (int i = 0; i < GRAPHS; i++) {
        graphi_graph *g = graphs[i]();
        graphi_status status = GRAPHI_MEMORY;
        for (int n = 0; status != GRAPHI_OK; n += i == 2 ? 7 : 1) {
            assert_true(n < 100000);
            mem_fail_after(n);
            status = create_all(g);
            mem_fail_after(-1);
            if (status && status != GRAPHI_MEMORY)
                fail_msg("allocation %d: %s", n, graphi_message());
        }
        graphi_graph_destroy(g);
    }
}

/* Without it training and evaluation plans would not see each other's parameters. */
static void two_plans_share_a_state(void **state)
{
    static float before[32 * 48], after[32 * 48];
    graphi_graph *g = updates();
    graphi_plan *train = plan_of(g, serially);
    graphi_plan *eval =
        plan_of(g, (graphi_plan_options){.setting = serially.setting, .no_updates = true, .outputs = "z"});
    graphi_state *s;
    graphi_run *trainer, *evaluator;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(train, s, &trainer));
    check_ok(graphi_run_create(eval, s, &evaluator));
    feed(trainer, g, 0);
    feed(evaluator, g, 0);
    check_ok(graphi_run_execute(evaluator));
    check_ok(graphi_run_get(evaluator, "z", GRAPHI_F32, before, sizeof before));
    assert_int_equal(graphi_state_step(s), 0);
    assert_int_equal(graphi_run_get(evaluator, "half of p", GRAPHI_F32, after, 32 * 24 * 4), GRAPHI_INVALID);
    check_ok(graphi_run_execute(trainer));
    assert_int_equal(graphi_state_step(s), 1);
    check_ok(graphi_run_execute(evaluator));
    check_ok(graphi_run_get(evaluator, "z", GRAPHI_F32, after, sizeof after));
    assert_memory_not_equal(before, after, sizeof before);
    check_ok(graphi_run_execute(trainer));
    check_ok(graphi_run_get(trainer, "z", GRAPHI_F32, before, sizeof before));
    assert_memory_equal(before, after, sizeof before);
    graphi_run_destroy(trainer);
    graphi_run_destroy(evaluator);
    graphi_state_destroy(s);
    graphi_plan_destroy(train);
    graphi_plan_destroy(eval);
    graphi_graph_destroy(g);
}

/* Merged products would read stale weights after a change of any but the first of them, or round otherwise than alone.
 */
static void merged_weights_are_packed_together(void **state)
{
    enum { K = 32, N = 64, M = 8, WEIGHTS = 3 };
    static const char *const name[] = {"a", "b", "c"}, *const out[] = {"ya", "yb", "yc"};
    static float w[K * N], alone[WEIGHTS][M * N], merged[M * N];
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){M, K});
    for (int i = 0; i < WEIGHTS; i++) {
        graphi_value p = graphi_parameter(g, name[i], GRAPHI_F32, 2, (int64_t[]){K, N}, &uniform);
        graphi_output(g, out[i], op1(g, "tanh", op2(g, "matmul", x, p)));
    }
    graphi_plan_options options = serially;
    graphi_plan *plan = plan_of(g, options), *together;
    options.disable = "+merge";
    together = plan_of(g, options);
    graphi_state *s;
    graphi_run *run, *joint;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_create(together, s, &joint));
    feed(run, g, 0);
    feed(joint, g, 0);
    for (int change = -1; change < WEIGHTS; change++) {
        if (change >= 0) {
            check_ok(graphi_state_get(s, name[change], w, sizeof w));
            for (int i = 0; i < K * N; i++)
                w[i] *= -1.5f;
            check_ok(graphi_state_set(s, name[change], w, sizeof w));
        }
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_execute(joint));
        for (int i = 0; i < WEIGHTS; i++) {
            check_ok(graphi_run_get(run, out[i], GRAPHI_F32, alone[i], sizeof alone[i]));
            check_ok(graphi_run_get(joint, out[i], GRAPHI_F32, merged, sizeof merged));
            assert_memory_equal(alone[i], merged, sizeof merged);
        }
        graphi_run_info info;
        graphi_run_get_info(joint, &info);
        assert_int_equal(info.packs, 1); /* one form for all, made anew in every round */
    }
    graphi_run_destroy(run);
    graphi_run_destroy(joint);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_plan_destroy(together);
    graphi_graph_destroy(g);
}

/* bfloat16 is for multiplicands: a bias gradient is a sum, and as a product with ones its terms would lose 16 bits
 * each. The weights' gradients lose them, which shows that the bound sees it. */
static void bias_gradients_are_not_rounded(void **state)
{
    static const struct {
        const char *name;
        int64_t count;
        bool bias;
    } parameter[] = {{"b", 40, true}, {"bias of k", 40, true}, {"w", 24 * 40, false}, {"k", 6 * 40, false}};
    enum { PARAMETERS = sizeof parameter / sizeof *parameter };
    static float after[2][PARAMETERS][24 * 40];
    graphi_graph *g = biased();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        graphi_plan_options options = serially;
        options.precision = bf16 ? GRAPHI_BF16 : GRAPHI_F32;
        graphi_plan *plan = plan_of(g, options);
        graphi_state *s;
        graphi_run *run;
        check_ok(graphi_state_create(g, 3, &s));
        check_ok(graphi_run_create(plan, s, &run));
        feed(run, g, 0);
        check_ok(graphi_run_execute(run));
        for (int p = 0; p < PARAMETERS; p++)
            check_ok(graphi_state_get(s, parameter[p].name, after[bf16][p], (size_t)parameter[p].count * 4));
        graphi_run_destroy(run);
        graphi_state_destroy(s);
        graphi_plan_destroy(plan);
    }
    for (int p = 0; p < PARAMETERS; p++) {
        double apart = reference_difference(after[1][p], after[0][p], parameter[p].count);
        if (parameter[p].bias ? apart > 2e-6 : apart < 2e-4)
            fail_msg("%s: float32 and bfloat16 differ by %g", parameter[p].name, apart);
    }
    graphi_graph_destroy(g);
}

/* Without it weights would be packed in every step although nobody changed them, or stale forms would be used. */
static void packed_once_a_version(void **state)
{
    static float w[256 * 128], y[64 * 128], again[64 * 128], half[64 * 128];
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){64, 256});
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){256, 128}, &uniform);
    graphi_value c = graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){256, 128}, w);
    graphi_output(g, "y", op2(g, "add", op2(g, "matmul", x, p), op2(g, "matmul", x, c)));
    graphi_plan *plan = plan_of(g, serially);
    graphi_state *s;
    graphi_run *run, *other;
    graphi_run_info first, second, third;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_create(plan, s, &other));
    feed(run, g, 0);
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, sizeof y));
    graphi_run_get_info(run, &first);
    assert_true(first.packs >= 1);
    feed(other, g, 0);
    check_ok(graphi_run_execute(other)); /* another run of the same state finds the form made */
    graphi_run_get_info(other, &second);
    assert_int_equal(second.packs, 0);
    assert_true(second.packs_skipped >= first.packs);
    check_ok(graphi_run_get(other, "y", GRAPHI_F32, again, sizeof again));
    assert_memory_equal(y, again, sizeof y);
    check_ok(graphi_state_get(s, "p", w, sizeof w));
    for (int i = 0; i < 256 * 128; i++)
        w[i] *= 0.5f;
    check_ok(graphi_state_set(s, "p", w, sizeof w));
    check_ok(graphi_run_execute(run));
    graphi_run_get_info(run, &third);
    assert_int_equal(third.packs, first.packs);
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, half, sizeof half));
    for (int i = 0; i < 64 * 128; i++)
        assert_true(half[i] == 0.5f * y[i]);
    graphi_run_destroy(run);
    graphi_run_destroy(other);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it a batch below the bound would touch rows that are not there, or a result be asked for at the next size. */
static void bounded_sizes(void **state)
{
    static float x[64 * 8], y[64 * 8], all[64 * 8];
    graphi_graph *g = new_graph();
    int64_t batch = graphi_symbol(g, "batch", 64);
    graphi_value in = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){batch, 8});
    graphi_output(g, "y", op1(g, "tanh", op2(g, "add", in, op1(g, "square", in))));
    graphi_plan *plan = plan_of(g, serially);
    graphi_state *s;
    graphi_run *run;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    reference_random(x, 64 * 8, 9);
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, all, sizeof all));
    for (int rows = 1; rows <= 64; rows += 21) {
        check_ok(graphi_run_set_symbol(run, "batch", rows));
        assert_int_equal(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x), rows == 64 ? GRAPHI_OK : GRAPHI_INVALID);
        check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, (size_t)rows * 32));
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, (size_t)rows * 32));
        assert_memory_equal(y, all, (size_t)rows * 32);
    }
    check_ok(graphi_run_set_symbol(run, "batch", 3)); /* the result of 64 rows lies there still */
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, sizeof y));
    assert_int_equal(graphi_run_set_symbol(run, "batch", 65), GRAPHI_INVALID);
    assert_int_equal(graphi_run_set_symbol(run, "rows", 1), GRAPHI_INVALID);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it mistakes of the caller would crash or compute with garbage. */
static void mistakes_are_named(void **state)
{
    graphi_graph *g = updates(), *other = parts();
    graphi_plan *plan = plan_of(g, serially), *none = NULL;
    graphi_state *s, *wrong;
    graphi_run *run;
    float data[4] = {0};
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_state_create(other, 3, &wrong));
    assert_int_equal(graphi_run_create(plan, wrong, &run), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "'p'"));
    check_ok(graphi_run_create(plan, s, &run));
    assert_int_equal(graphi_run_get(run, "z", GRAPHI_F32, data, 4), GRAPHI_INVALID);
    assert_int_equal(graphi_run_execute(run), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "'x'"));
    assert_int_equal(graphi_run_set(run, "x", GRAPHI_F32, data, sizeof data), GRAPHI_INVALID);
    assert_int_equal(graphi_run_set(run, "w", GRAPHI_F32, data, sizeof data), GRAPHI_INVALID);
    const graphi_setting many = {.executors = 10000, .width = 3};
    assert_int_equal(graphi_plan_with(plan, &(graphi_plan_change){.setting = &many}, &none), GRAPHI_USAGE);
    assert_int_equal(graphi_plan_create(g, machine, &(graphi_plan_options){.outputs = "nothing"}, &none),
                     GRAPHI_INVALID);
    assert_int_equal(graphi_plan_create(g, machine, &(graphi_plan_options){.isa = "mmx"}, &none), GRAPHI_USAGE);
    assert_null(none);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_state_destroy(wrong);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    graphi_graph_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_reference),
        cmocka_unit_test(same_bits_everywhere),
        cmocka_unit_test(random_networks),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(two_plans_share_a_state),
        cmocka_unit_test(merged_weights_are_packed_together),
        cmocka_unit_test(bias_gradients_are_not_rounded),
        cmocka_unit_test(packed_once_a_version),
        cmocka_unit_test(bounded_sizes),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
