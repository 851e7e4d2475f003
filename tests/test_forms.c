/* SPDX-License-Identifier: Apache-2.0 */
/* Packed forms of a plan: which there are, and what they take. */
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fixture.h"

/* Two nodes that want the same form of a parameter, or of a constant, get one: without it its bytes would be reserved,
 * and it would be made, twice. Another constant of the same shape has a form of its own. */
static void equal_forms_are_one(void **state)
{
    enum { K = 32, N = 64, M = 8, FORMS = 3, USES = 2 };
    static float data[2][K * N], y[M * N], again[M * N], plain[M * N];
    const graphi_attribute packed = {.name = "packed_b", .type = GRAPHI_INT, .i = 1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    reference_random(data[0], 2 * K * N, 5);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){M, K});
    const graphi_value source[FORMS] = {
        graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){K, N},
                         &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1}),
        graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){K, N}, data[0]),
        graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){K, N}, data[1])};
    for (int i = 0; i < FORMS; i++) {
        for (int use = 0; use < USES; use++) {
            graphi_value pair[] = {x, graphi_op(g, "pack", 1, &source[i], 0, NULL)};
            graphi_output(g, (char[]){(char)('a' + i), (char)('0' + use), 0},
                          graphi_op(g, "matmul", 2, pair, 1, &packed));
        }
        graphi_output(g, (char[]){(char)('a' + i), 'p', 0}, graphi_tanh(g, graphi_matmul(g, x, source[i], 0, 0)));
    }
    graphi_plan_options options = {.setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};
    options.disable = "cse,fold,pack"; /* which would have made one node of them, constants, or a third form */
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.packed_bytes, FORMS * K * N * 4);
    graphi_state *s;
    graphi_run *run;
    graphi_run_info first;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    reference_random(y, M * K, 7);
    check_ok(graphi_run_set(run, "x", y, M * K * sizeof *y));
    check_ok(graphi_run_execute(run));
    graphi_run_get_info(run, &first);
    assert_int_equal(first.packs, 1);
    for (int i = 0; i < FORMS; i++) {
        check_ok(graphi_run_get(run, (char[]){(char)('a' + i), '0', 0}, y, sizeof y));
        check_ok(graphi_run_get(run, (char[]){(char)('a' + i), '1', 0}, again, sizeof again));
        check_ok(graphi_run_get(run, (char[]){(char)('a' + i), 'p', 0}, plain, sizeof plain));
        assert_memory_equal(y, again, sizeof y);
        for (int k = 0; k < M * N; k++)
            assert_true(fabsf(tanhf(y[k]) - plain[k]) < 1e-5f);
    }
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A form of two sources is not that of its first with another second: without it a product would read other weights. */
static void forms_have_all_their_sources(void **state)
{
    enum { K = 4, N = 64 };
    const graphi_attribute packed = {.name = "packed_b", .type = GRAPHI_INT, .i = 1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){2, K});
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){K, 3 * N},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1});
    graphi_value part[3];
    for (int i = 0; i < 3; i++)
        part[i] = graphi_slice(g, p, 1, i * N, (i + 1) * N);
    for (int i = 1; i < 3; i++) {
        graphi_value form = graphi_op(g, "pack", 2, (graphi_value[]){part[0], part[i]}, 0, NULL);
        graphi_value y = graphi_op(g, "matmul", 2, (graphi_value[]){x, form}, 1, &packed);
        graphi_output(g, i == 1 ? "a" : "b", y);
    }
    check_ok(graphi_graph_status(g));
    graphi_plan *plan;
    graphi_plan_info info;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.packed_bytes, 2 * K * 2 * N * 4);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_forms_are_one),
                                       cmocka_unit_test(forms_have_all_their_sources)};
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
