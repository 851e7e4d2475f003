/* SPDX-License-Identifier: Apache-2.0 */
/* Stores past the caches: that what a plan is asked for reaches its kernels. The bits are the same either way, so no
 * other test sees whether the option was lost on the way. That the kernels' stores then go past the caches shows in
 * times alone, which no test asserts. */
#include "engine/plan.h"
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

enum { ROWS = 16, C = 64 };

/* A normalization and its gradient between element-wise operations. */
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
    graphi_value loss = graphi_reduce_sum(g, graphi_exp(g, y), NULL, 0, 0);
    check_ok(graphi_gradients(g, loss, 1, &wrt, &gradient));
    graphi_output(g, "w'", gradient);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_hand_it_to_their_kernels),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
