/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that are right but rare, through plans: sub-graphs that draw random numbers. */
#include "graphi/graphi.h"

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

static struct execution execute(const graphi_graph *g, const graphi_plan_options *options, const void *x, size_t bytes)
{
    struct execution e;
    check_ok(graphi_plan_create(g, machine, options, &e.plan));
    check_ok(graphi_state_create(g, 5, &e.state));
    check_ok(graphi_run_create(e.plan, e.state, &e.run));
    if (x)
        check_ok(graphi_run_set(e.run, "x", x, bytes));
    check_ok(graphi_run_execute(e.run));
    return e;
}

static void end(struct execution *e)
{
    graphi_run_destroy(e->run);
    graphi_state_destroy(e->state);
    graphi_plan_destroy(e->plan);
}

/* --- sub-graphs --------------------------------------------------------------------------------------------------- */

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
            check_ok(graphi_run_get(e.run, names[k][0], y[k], sizeof y[k]));
            check_ok(graphi_run_get(e.run, names[k][1], gradient[k], sizeof gradient[k]));
            assert_memory_equal(y[k], gradient[k], sizeof y[k]);
        }
        assert_memory_not_equal(y[0], y[1], sizeof y[0]);
        end(&e);
        graphi_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_have_the_mask_of_the_call),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
