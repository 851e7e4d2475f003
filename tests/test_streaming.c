/* SPDX-License-Identifier: Apache-2.0 */
/* Stores past the caches: that what a plan is asked for reaches its kernels. The bits are the same either way, so no
 * other test sees whether the option was lost on the way. That the kernels' stores then go past the caches shows in
 * times alone, which no test asserts. */
#include "engine/compile/plan.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graphi/ops.h"
#include "kernels/norm.h"
#include "kernels/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

enum { SIDE = 4, ROWS = SIDE * SIDE, C = 64 };

/* A normalization and its gradient between element-wise operations, whose results are transposed, and, as an image,
 * pooled; a softmax and rows joined beside it. */
static graphi_graph *network(void)
{
    graphi_graph *g;
    graphi_initializer ones = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
    graphi_value wrt, gradient;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){ROWS, C});
    wrt = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){ROWS, C}, &ones);
    graphi_value scale = graphi_parameter(g, "scale", GRAPHI_F32, 1, (int64_t[]){C}, &ones);
    graphi_value y = graphi_batch_norm(g, graphi_tanh(g, graphi_mul(g, x, wrt)), scale, scale, 1e-5);
    graphi_value image = graphi_reshape(g, graphi_exp(g, y), GRAPHI_LIST(1, SIDE, SIDE, C));
    graphi_value loss = graphi_reduce_sum(
        g, graphi_max_pool(g, image, GRAPHI_LIST(3, 3), GRAPHI_LIST(2, 2), GRAPHI_LIST(1, 1, 1, 1), 0), NULL, 0, 0);
    check_ok(graphi_gradients(g, loss, 1, &wrt, &gradient));
    graphi_output(g, "w'", gradient);
    graphi_output(g, "turned", graphi_transpose(g, y, NULL, 0));
    graphi_output(g, "joined", graphi_concat(g, 2, (graphi_value[]){x, wrt}, 1));
    graphi_output(g, "softened", graphi_softmax_gradient(g, graphi_softmax(g, x), x));
    return g;
}

/* How many tasks have kernels that write past the caches or not: [element-wise, normalization][does]. */
static void count(const graphi_plan *plan, int counts[2][2])
{
    memset(counts, 0, sizeof(int[2][2]));
    for (int32_t t = 0; t < plan->compiled->tasks; t++) {
        const struct bound *task = &plan->compiled->task[t];
        const char *kind = graph_node(plan->compiled->graph, task->node)->kind->name;
        if (!strcmp(kind, "tanh") || !strcmp(kind, "exp") || !strcmp(kind, "program"))
            counts[0][((const struct program_code *)task->kernel.params)->stream]++;
        if (!strncmp(kind, "batch_norm", strlen("batch_norm")))
            counts[1][((const struct norm_params *)task->kernel.params)->far]++;
    }
}

/* The option was lost on the way from the plan to a kernel, fused or alone. */
static void plans_hand_it_to_their_kernels(void **state)
{
    static const struct {
        graphi_streaming streaming;
        bool does;
    } cases[] = {{GRAPHI_STREAM_ALWAYS, true}, {GRAPHI_STREAM_NEVER, false}, {GRAPHI_STREAM_BY_SIZE, false}};
    graphi_graph *g = network();
    for (int i = 0; i < 6; i++) {
        const graphi_plan_options options = {.streaming = cases[i / 2].streaming, .disable = i % 2 ? "all" : NULL};
        graphi_plan *plan;
        int counts[2][2];
        check_ok(graphi_plan_create(g, machine, &options, &plan));
        count(plan, counts);
        assert_true(counts[0][cases[i / 2].does] >= 2 && counts[1][cases[i / 2].does] == 2);
        assert_true(!counts[0][!cases[i / 2].does] && !counts[1][!cases[i / 2].does]);
        graphi_plan_destroy(plan);
    }
    graphi_graph_destroy(g);
}

/* The kernel of the one task of this kind. */
static const struct kernel *kernel_of(const graphi_plan *plan, const char *kind)
{
    const struct kernel *found = NULL;
    for (int32_t t = 0; t < plan->compiled->tasks; t++) {
        const struct bound *task = &plan->compiled->task[t];
        if (strcmp(graph_node(plan->compiled->graph, task->node)->kind->name, kind))
            continue;
        assert_null(found);
        found = &task->kernel;
    }
    assert_non_null(found);
    return found;
}

static bool alike(const graphi_plan *a, const graphi_plan *b, const char *kind)
{
    const struct kernel *one = kernel_of(a, kind), *other = kernel_of(b, kind);
    assert_int_equal(one->params_bytes, other->params_bytes);
    return !memcmp(one->params, other->params, one->params_bytes);
}

/* And to those whose parameters nobody else reads: they must be others. Plain copies never go past the caches. */
static void plans_hand_it_to_other_kernels(void **state)
{
    static const char *const copies[] = {"transpose", "concat"};
    static const char *const others[] = {"max_pool_grad", "softmax_gradient"};
    static const graphi_streaming asked[] = {GRAPHI_STREAM_ALWAYS, GRAPHI_STREAM_NEVER, GRAPHI_STREAM_NEVER};
    graphi_graph *g = network();
    for (int all = 0; all < 2; all++) {
        graphi_plan *plan[3];
        for (int i = 0; i < 3; i++)
            check_ok(graphi_plan_create(
                g, machine, &(graphi_plan_options){.streaming = asked[i], .disable = all ? "all" : NULL}, &plan[i]));
        for (int k = 0; k < 2; k++) {
            assert_int_equal(alike(plan[0], plan[1], copies[k]), isa_detect() == ISA_PLAIN);
            assert_true(!alike(plan[0], plan[1], others[k]));
            assert_true(alike(plan[1], plan[2], copies[k]) && alike(plan[1], plan[2], others[k]));
        }
        for (int i = 0; i < 3; i++)
            graphi_plan_destroy(plan[i]);
    }
    graphi_graph_destroy(g);
}

/* By their size alone, rows whose parts begin lines go past the caches; others would take longer so. */
static void rows_past_the_caches_are_whole_lines(void **state)
{
    static const struct {
        int64_t columns[2];
        bool past;
    } cases[] = {{{64, 128}, true}, {{84, 12}, true}, {{200, 200}, false}, {{48, 24}, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        graphi_graph *g;
        graphi_value x[2];
        graphi_plan *plan[2];
        check_ok(graphi_graph_create(&g));
        for (int i = 0; i < 2; i++)
            x[i] = graphi_input(g, i ? "x1" : "x0", GRAPHI_F32, 2, (int64_t[]){60000, cases[k].columns[i]});
        graphi_output(g, "joined", graphi_concat(g, 2, x, 1));
        for (int i = 0; i < 2; i++)
            check_ok(graphi_plan_create(
                g, machine, &(graphi_plan_options){.streaming = i ? GRAPHI_STREAM_NEVER : GRAPHI_STREAM_BY_SIZE},
                &plan[i]));
        assert_int_equal(!alike(plan[0], plan[1], "concat"), cases[k].past && isa_detect() != ISA_PLAIN);
        for (int i = 0; i < 2; i++)
            graphi_plan_destroy(plan[i]);
        graphi_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_hand_it_to_their_kernels),
        cmocka_unit_test(plans_hand_it_to_other_kernels),
        cmocka_unit_test(rows_past_the_caches_are_whole_lines),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
