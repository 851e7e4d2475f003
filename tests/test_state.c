/* SPDX-License-Identifier: Apache-2.0 */
/* What a state begins with, what it refuses to be extended by, and which of its content plans see. */
#include "graphi/graphi.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* What a parameter of `count` elements begins with. */
static void begin_with(graphi_dtype dtype, int64_t count, const graphi_initializer *init, void *data)
{
    graphi_graph *g;
    graphi_state *s;
    check_ok(graphi_graph_create(&g));
    graphi_parameter(g, "w", dtype, 1, &count, init);
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_state_get(s, "w", data, (size_t)count * graphi_dtype_size(dtype)));
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Parameters of other types than float32, and of periods: a wrong width or rounding, or a value beyond the bounds. */
static void parameters_of_every_type_start_as_asked(void **state)
{
    enum { COUNT = 1000 };
    static const int64_t dims[] = {COUNT};
    static const graphi_initializer three = {.kind = GRAPHI_INIT_CONSTANT, .a = 3.01},
                                    periods = {.kind = GRAPHI_INIT_LOG_UNIFORM, .a = 1, .b = 1000};
    static float period[COUNT];
    static uint16_t half[COUNT];
    static int32_t narrow[COUNT];
    static int64_t wide[COUNT];
    static uint8_t byte[COUNT];
    const struct {
        const char *name;
        graphi_dtype dtype;
        const graphi_initializer *init;
        void *data;
        size_t size;
    } all[] = {{"period", GRAPHI_F32, &periods, period, sizeof period},
               {"half", GRAPHI_BF16, &three, half, sizeof half},
               {"narrow", GRAPHI_I32, &three, narrow, sizeof narrow},   {"wide", GRAPHI_I64, &three, wide, sizeof wide},
               {"byte", GRAPHI_U8, &three, byte, sizeof byte}};
    graphi_graph *g;
    graphi_state *s;
    check_ok(graphi_graph_create(&g));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        graphi_parameter(g, all[i].name, all[i].dtype, 1, dims, all[i].init);
    check_ok(graphi_state_create(g, 3, &s));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_ok(graphi_state_get(s, all[i].name, all[i].data, all[i].size));
    int below = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(period[i] >= 1 && period[i] <= 1000);
        below += period[i] < 31.6f; /* half of them: the middle of the logarithms */
        assert_int_equal(half[i], 0x4041); /* 3.015625, the nearest */
        assert_true(narrow[i] == 3 && wide[i] == 3 && byte[i] == 3);
    }
    assert_in_range(below, COUNT / 2 - 80, COUNT / 2 + 80);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Rounding reaches the upper bound, which a uniform number never has; integers beyond their type's range are no number
 * that C defines. */
static void initial_values_keep_their_bounds(void **state)
{
    enum { COUNT = 4096 };
    static const struct {
        graphi_dtype dtype;
        double a, b;
    } uniform[] = {{GRAPHI_BF16, 0, 1},           {GRAPHI_BF16, -2, -1},          {GRAPHI_BF16, -1e-3, 0.999},
                   {GRAPHI_F32, 1, 1 + 0x1p-22}, {GRAPHI_F32, -1 - 0x1p-22, -1}, {GRAPHI_I32, -3, -2},
                   {GRAPHI_I64, -3, 2},          {GRAPHI_U8, 1, 255}};
    static const struct {
        graphi_dtype dtype;
        double a;
        int64_t expected;
    } constant[] = {{GRAPHI_I32, 3e9, INT32_MAX}, {GRAPHI_I32, -3e9, INT32_MIN}, {GRAPHI_I64, -1e300, INT64_MIN},
                    {GRAPHI_U8, 300, 255},        {GRAPHI_U8, -1, 0},            {GRAPHI_I64, 2.9, 2}};
    static union {
        float single[COUNT];
        uint16_t half[COUNT];
        int32_t narrow[COUNT];
        int64_t wide[COUNT];
        uint8_t byte[COUNT];
    } x;
    for (size_t i = 0; i < sizeof uniform / sizeof *uniform; i++) {
        begin_with(uniform[i].dtype, COUNT, &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = uniform[i].a,
                                                                   .b = uniform[i].b}, &x);
        for (int k = 0; k < COUNT; k++) {
            uint32_t bits = (uint32_t)x.half[k] << 16;
            float widened;
            memcpy(&widened, &bits, sizeof widened);
            const double number[] = {[GRAPHI_F32] = x.single[k], [GRAPHI_BF16] = widened, [GRAPHI_I32] = x.narrow[k],
                                     [GRAPHI_I64] = (double)x.wide[k], [GRAPHI_U8] = x.byte[k]};
            assert_true(number[uniform[i].dtype] >= uniform[i].a - 1e-5 && number[uniform[i].dtype] < uniform[i].b);
        }
    }
    for (size_t i = 0; i < sizeof constant / sizeof *constant; i++) {
        begin_with(constant[i].dtype, 1, &(graphi_initializer){.kind = GRAPHI_INIT_CONSTANT, .a = constant[i].a}, &x);
        const int64_t number[] = {[GRAPHI_I32] = x.narrow[0], [GRAPHI_I64] = x.wide[0], [GRAPHI_U8] = x.byte[0]};
        assert_true(number[constant[i].dtype] == constant[i].expected);
    }
    begin_with(GRAPHI_F32, 1, &(graphi_initializer){.kind = GRAPHI_INIT_CONSTANT, .a = INFINITY}, &x);
    assert_true(isinf(x.single[0]));
    begin_with(GRAPHI_BF16, 1, &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM}, &x); /* no range at all */
    assert_int_equal(x.half[0], 0);
}

/* Weights of a layer that widens as if it narrowed, or of a convolution without its window, are as many times too large
 * or too small: the network learns all the same, but later. He et al. 2015, Glorot and Bengio 2010. */
static void weights_are_as_wide_as_their_fans(void **state)
{
    enum { IN = 12, OUT = 96, WINDOW = 3 * 3, COUNT = WINDOW * IN * OUT };
    static float w[COUNT];
    for (int window = 0; window < 2; window++)
        for (int he = 0; he < 2; he++) {
            const int64_t dims[] = {3, 3, IN, OUT}, count = window ? COUNT : IN * OUT, pixels = window ? WINDOW : 1;
            const graphi_initializer init = {.kind = he ? GRAPHI_INIT_HE_NORMAL : GRAPHI_INIT_GLOROT_UNIFORM};
            const double expected = 2.0 / (double)(pixels * (he ? IN : IN + OUT));
            double squares = 0;
            graphi_graph *g;
            graphi_state *s;
            check_ok(graphi_graph_create(&g));
            graphi_parameter(g, "w", GRAPHI_F32, window ? 4 : 2, window ? dims : dims + 2, &init);
            check_ok(graphi_state_create(g, 3, &s));
            check_ok(graphi_state_get(s, "w", w, (size_t)count * sizeof *w));
            for (int64_t i = 0; i < count; i++)
                squares += (double)w[i] * (double)w[i];
            assert_true(fabs(squares / (double)count / expected - 1) < 0.15);
            graphi_state_destroy(s);
            graphi_graph_destroy(g);
        }
}

static graphi_graph *one_parameter(graphi_dtype dtype, int64_t size)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_parameter(g, "w", dtype, 1, &size, NULL);
    return g;
}

/* Two networks that share a name but not its shape or type would read beyond each other's parameters. */
static void a_shared_name_has_one_type(void **state)
{
    graphi_graph *g = one_parameter(GRAPHI_F32, 4), *same = one_parameter(GRAPHI_F32, 4),
                 *others[] = {one_parameter(GRAPHI_F32, 5), one_parameter(GRAPHI_I32, 4)};
    graphi_state *s;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_state_extend(s, same));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(graphi_state_extend(s, others[i]), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), "parameter 'w': found float32[4] in the state, expected"));
        graphi_graph_destroy(others[i]);
    }
    graphi_state_destroy(s);
    graphi_graph_destroy(same);
    graphi_graph_destroy(g);
}

/* Parameters of a network that is refused would stay in every checkpoint. */
static void a_refused_extension_adds_nothing(void **state)
{
    graphi_graph *g = one_parameter(GRAPHI_F32, 4), *more;
    graphi_state *s;
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    check_ok(graphi_graph_create(&more));
    graphi_parameter(more, "before", GRAPHI_F32, 1, (int64_t[]){3}, NULL);
    graphi_parameter(more, "w", GRAPHI_F32, 1, (int64_t[]){5}, NULL);
    check_ok(graphi_state_create(g, 3, &s));
    assert_int_equal(graphi_state_extend(s, more), GRAPHI_INVALID);
    assert_true(graphi_state_at(s, 0, &name, &dtype, &rank, dims));
    assert_string_equal(name, "w");
    assert_false(graphi_state_at(s, 1, &name, &dtype, &rank, dims));
    graphi_state_destroy(s);
    graphi_graph_destroy(more);
    graphi_graph_destroy(g);
}

/* One execution: `y` of `bytes` bytes, and `w`, if it is wanted. */
static void outputs_of(graphi_run *run, void *y, size_t bytes, void *w, size_t w_bytes)
{
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, bytes));
    if (w)
        check_ok(graphi_run_get(run, "w", GRAPHI_F32, w, w_bytes));
}

enum { ROWS = 8, IN = 160, OUT = 128 }; /* weights of 80 KB: small ones are never given back */

/* y = x w of a weight that is uniform, x all ones; with an output w that is the weight under another shape. */
static graphi_graph *product_of_w(bool shown)
{
    static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = 1, .b = 2};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_fill(g, GRAPHI_LIST(ROWS, IN), 1, GRAPHI_F32);
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){IN, OUT}, &uniform);
    graphi_output(g, "y", graphi_matmul(g, x, w, 0, 0));
    if (shown)
        graphi_output(g, "w", graphi_reshape(g, w, GRAPHI_LIST(IN * OUT)));
    check_ok(graphi_graph_status(g));
    return g;
}

/* Products read a form of the weight, whose own pages are given back until somebody wants them: an output that is the
 * weight would be zeros. */
static void weights_that_are_shown_stay(void **state)
{
    static float shown[IN * OUT], held[IN * OUT], y[ROWS * OUT];
    graphi_graph *g = product_of_w(true);
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    outputs_of(run, y, sizeof y, shown, sizeof shown);
    check_ok(graphi_state_get(s, "w", held, sizeof held));
    assert_true(held[0] >= 1);
    assert_memory_equal(shown, held, sizeof held);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* w + w in place of w, and behind it a row of a table that an input names. */
static graphi_graph *update_of_w(void)
{
    graphi_graph *g = product_of_w(false);
    graphi_value w = graphi_find(g, "w"), table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){4, 4}, NULL);
    graphi_assign(g, w, graphi_add(g, w, w));
    graphi_value id = graphi_input(g, "id", GRAPHI_I32, 1, (int64_t[]){1});
    graphi_output(g, "row", graphi_embedding(g, table, id));
    check_ok(graphi_graph_status(g));
    return g;
}

/* A step that fails may have updated parameters before: other plans would go on with forms of the old content. */
static void failed_steps_count_as_updates(void **state)
{
    static float y[2][ROWS * OUT], w[2][IN * OUT];
    graphi_graph *g[] = {product_of_w(false), update_of_w()};
    const graphi_plan_options serial = {.setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};
    graphi_plan *plan[2];
    graphi_state *s;
    graphi_run *run[2];
    check_ok(graphi_state_create(g[1], 3, &s));
    for (int i = 0; i < 2; i++) {
        check_ok(graphi_plan_create(g[i], machine, &serial, &plan[i]));
        check_ok(graphi_run_create(plan[i], s, &run[i]));
    }
    check_ok(graphi_state_get(s, "w", w[0], sizeof w[0]));
    outputs_of(run[0], y[0], sizeof y[0], NULL, 0);
    check_ok(graphi_run_set(run[1], "id", GRAPHI_I32, &(int32_t){7}, sizeof(int32_t)));
    assert_int_equal(graphi_run_execute(run[1]), GRAPHI_INVALID);
    check_ok(graphi_state_get(s, "w", w[1], sizeof w[1]));
    assert_true(w[1][0] == 2 * w[0][0]); /* the update came first */
    outputs_of(run[0], y[1], sizeof y[1], NULL, 0);
    for (int i = 0; i < ROWS * OUT; i++)
        assert_true(y[1][i] == 2 * y[0][i]);
    for (int i = 0; i < 2; i++) {
        graphi_run_destroy(run[i]);
        graphi_plan_destroy(plan[i]);
        graphi_graph_destroy(g[i]);
    }
    graphi_state_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_every_type_start_as_asked),
        cmocka_unit_test(initial_values_keep_their_bounds),
        cmocka_unit_test(weights_are_as_wide_as_their_fans),
        cmocka_unit_test(a_shared_name_has_one_type),
        cmocka_unit_test(a_refused_extension_adds_nothing),
        cmocka_unit_test(weights_that_are_shown_stay),
        cmocka_unit_test(failed_steps_count_as_updates),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
