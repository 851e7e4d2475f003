/* SPDX-License-Identifier: Apache-2.0 */
/* Multipliers of learning rate and weight decay, and momentum with the rate in its velocity, against the formulas in
 * double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "graphi/ops.h"

enum { STEPS = 4 };
static const double rates[STEPS] = {0.1, 0.1, 0.02, 0.02}, momentum = 0.9, decay = 0.05, slope = 0.7;

struct form {
    const char *what;
    int rank;
    bool told, inside;
    double rate, decay; /* multipliers */
    graphi_optimizer_kind kind;
};

/* The parameter after each step, whose gradient is `slope`. */
static void expected(const struct form *f, double *after)
{
    double w = 0.5, v = 0;
    const double rate = f->told ? f->rate : 1, times = f->told ? f->decay : f->rank > 1;
    for (int i = 0; i < STEPS; i++) {
        const double g = slope + decay * times * w, r = rates[i] * rate;
        v = f->kind == GRAPHI_SGD ? 0 : momentum * v + (f->inside ? r * g : g);
        w -= f->kind == GRAPHI_SGD ? r * g : f->inside ? v : r * v;
        after[i] = w;
    }
}

static graphi_graph *make(const struct form *f)
{
    graphi_graph *g;
    const int64_t dims[] = {1, 1};
    check_ok(graphi_graph_create(&g));
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, f->rank, dims,
                                      &(graphi_initializer){.kind = GRAPHI_INIT_CONSTANT, .a = 0.5});
    graphi_value k = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){(float)slope});
    graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, w, k), NULL, 0, 0);
    if (f->told)
        graphi_multiply(g, w, f->rate, f->decay);
    graphi_minimize(g, loss,
                    &(graphi_optimizer){.kind = f->kind,
                                        .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL),
                                        .momentum = momentum,
                                        .weight_decay = decay,
                                        .rate_in_velocity = f->inside});
    check_ok(graphi_graph_status(g));
    return g;
}

static void follow(const struct form *f)
{
    graphi_graph *g = make(f);
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    double after[STEPS];
    expected(f, after);
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    for (int i = 0; i < STEPS; i++) {
        float w;
        check_ok(graphi_run_set(run, "rate", GRAPHI_F32, &(float){(float)rates[i]}, sizeof(float)));
        check_ok(graphi_run_execute(run));
        check_ok(graphi_state_get(s, "w", &w, sizeof w));
        if (fabs((double)w - after[i]) > 1e-6)
            fail_msg("%s, step %d: found %.9g, expected %.9g", f->what, i, (double)w, after[i]);
    }
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A bias learns or decays as a weight, or the velocity forgets at which rate its gradients came. */
static void updates_follow_their_formulas(void **state)
{
    static const struct form forms[] = {
        {"matrix", 2, false, false, 1, 1, GRAPHI_MOMENTUM},
        {"vector, which does not decay", 1, false, false, 1, 1, GRAPHI_MOMENTUM},
        {"vector that decays", 1, true, false, 2, 1, GRAPHI_MOMENTUM},
        {"matrix that does not decay", 2, true, false, 0.5, 0, GRAPHI_MOMENTUM},
        {"decay 250", 2, true, false, 1, 250 * 0.004, GRAPHI_MOMENTUM},
        {"rate in the velocity", 2, true, true, 2, 3, GRAPHI_MOMENTUM},
        {"SGD", 2, true, false, 3, 2, GRAPHI_SGD},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        follow(&forms[i]);
}

/* Where the rate changes, the two forms of momentum differ: a test that cannot tell them tests nothing. */
static void forms_of_momentum_differ(void **state)
{
    double out[STEPS], in[STEPS];
    expected(&(struct form){"", 2, false, false, 1, 1, GRAPHI_MOMENTUM}, out);
    expected(&(struct form){"", 2, false, true, 1, 1, GRAPHI_MOMENTUM}, in);
    assert_true(fabs(out[1] - in[1]) < 1e-12 && fabs(out[STEPS - 1] - in[STEPS - 1]) > 1e-3);
}

static void wrong_multipliers_are_refused(void **state)
{
    static const double wrong[][2] = {{-1, 0}, {0, -1}, {NAN, 0}, {1, INFINITY}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 0, NULL, NULL);
        graphi_multiply(g, w, wrong[i][0], wrong[i][1]);
        assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
        graphi_graph_destroy(g);
    }
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_multiply(g, graphi_input(g, "x", GRAPHI_F32, 0, NULL), 1, 1);
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "expected a parameter"));
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_follow_their_formulas),
        cmocka_unit_test(forms_of_momentum_differ),
        cmocka_unit_test(wrong_multipliers_are_refused),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
