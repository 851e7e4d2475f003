/* SPDX-License-Identifier: Apache-2.0 */
/* Performance models: hill climbing on curves that are known, interpolation, and what the extension to other machines
 * must never do. */
#include "base/clock.h"
#include "engine/choose/planning.h"
#include "engine/cost/climb.h"
#include "engine/cost/cost.h"
#include "engine/cost/curve_extend.h"
#include "engine/cost/origin.h"
#include "engine/tune/measure.h"
#include "engine/tune/trial.h"
#include "engine/tune/two_ways.h"
#include "graphi/models.h"
#include "graphi/profile.h"
#include "graphi/simulate.h"
#include "machine/machine.h"
#include "schedule/edges.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* work / p + overhead * p: one valley at sqrt(work / overhead). */
struct valley {
    double work, overhead;
    int calls;
};

static double valley_ns(void *context, int width, bool spread)
{
    struct valley *v = context;
    v->calls++;
    return v->work / width + v->overhead * width * (spread ? 1.5 : 1);
}

/* Two valleys: a shallow one at 8, the true one at 40. */
static double two_valleys(void *context, int width, bool spread)
{
    return 1000 + fmin(10 * fabs(width - 8.0), 4 * fabs(width - 40.0) - 100 + (width < 20 ? 1000 : 0));
}

/* Without it the climb would stop early, run on, try half-used tiles, or lose samples. */
static void climbs_to_the_optimum_of_one_valley(void **state)
{
    struct valley v = {.work = 900000, .overhead = 1000};
    graphi_climb fine, coarse, all;
    graphi_climb_search(68, 34, 2, false, valley_ns, &v, &fine);
    graphi_climb_search(68, 34, 4, false, valley_ns, &v, &coarse);
    int calls = v.calls = 0;
    graphi_climb_search(68, 34, 0, true, valley_ns, &v, &all);
    calls = v.calls;
    assert_int_equal(all.measurements, calls);
    assert_int_equal(calls, 35 + 34); /* 1 and the even widths; 1 .. 34 apart */
    assert_int_equal(all.best_width, 30);
    assert_false(all.best_spread);
    assert_true(coarse.best_ns <= 1.02 * all.best_ns);
    assert_true(fine.best_ns <= coarse.best_ns);
    assert_true(coarse.measurements < 2 * 68 / 4);
    for (int i = 0; i < coarse.samples; i++)
        assert_true(coarse.compact_ns[i] == 0 || coarse.width[i] == 1 || coarse.width[i] % 2 == 0);
    assert_true(coarse.width[coarse.samples - 1] < 68); /* it stopped after the valley */
}

/* Without it a climb could jump over a hill, and nobody would know that the paper's assumption (one valley) matters. */
static void stops_at_the_first_of_two_valleys(void **state)
{
    graphi_climb climb, all;
    graphi_climb_search(68, 68, 1, false, two_valleys, NULL, &climb);
    graphi_climb_search(68, 68, 0, true, two_valleys, NULL, &all);
    assert_int_equal(climb.best_width, 8);
    assert_int_equal(all.best_width, 40);
}

/* Without it small machines would skip widths, or large ones overflow a curve. */
static void intervals_fit_the_machine(void **state)
{
    struct climb_limits two = climb_limits(2, 2, 0, false), eight = climb_limits(8, 8, 0, false);
    struct climb_limits many = climb_limits(68, 34, 0, false), giant = climb_limits(1024, 256, 0, true);
    assert_int_equal(climb_after(&two, false, 1), 2);
    assert_int_equal(climb_after(&two, false, 2), 0);
    for (int width = 1; width < 8; width++)
        assert_int_equal(climb_after(&eight, false, width), width + 1);
    assert_int_equal(climb_after(&eight, true, 0), 0); /* nothing is shared: one mode */
    assert_int_equal(climb_after(&many, false, 1), 4);
    assert_int_equal(climb_after(&many, true, 1), 5);
    assert_int_equal(climb_after(&many, true, 33), 34);
    int count = 0;
    for (int spread = 0; spread < 2; spread++)
        for (int width = climb_after(&giant, spread, 0); width; width = climb_after(&giant, spread, width))
            count++;
    assert_in_range(count, 16, CURVE_SAMPLES);
}

static double halved(void *context, int width, bool spread)
{
    return 1000.0 / width;
}

/* The width after the first would be beyond all numbers, or an interval be stored that no reader takes. */
static void the_longest_step_is_to_the_last_core(void **state)
{
    for (int tiles = 2; tiles <= 4; tiles += 2) {
        graphi_climb climb;
        graphi_climb_search(4, tiles, INT_MAX, false, halved, NULL, &climb);
        assert_int_equal(climb.width[0], 1);
        assert_int_equal(climb.width[climb.samples - 1], 4);
        assert_int_equal(climb.samples, tiles == 4 ? 2 : 3); /* and one worker each of two tiles */
    }
    assert_int_equal(climb_limits(4, 4, INT_MAX, false).interval, 4);
}

/* Without it interpolation would mix the modes, or miss the ends. */
static void curves_keep_both_modes(void **state)
{
    struct climb_limits limits = climb_limits(8, 4, 1, true);
    struct climb climb = {0};
    struct cost_curve curve;
    for (int width; (width = climb_next(&limits, &climb, false)) != 0;)
        climb_add(&limits, &climb, false, width, 800.0 / width);
    for (int width; (width = climb_next(&limits, &climb, true)) != 0;)
        climb_add(&limits, &climb, true, width, 600.0 / width + 200);
    climb_curve(&climb, &curve);
    assert_int_equal(curve.best, 8);
    assert_true(curve_ns(&curve, 4) == 200 && curve_mode_ns(&curve, 4, true) == 350);
    assert_true(fabs(curve_ns(&curve, 3) - 300) < 1e-9); /* even widths only: between 400 and 200 */
    assert_true(curve_mode_ns(&curve, 3, true) == 400);
    assert_false(curve_extrapolates(&curve, 8, false));
    assert_true(curve_extrapolates(&curve, 9, false) && curve_extrapolates(&curve, 5, true));
    assert_true(curve_least_work(&curve) == 800);
}

/* Without it a described machine could be predicted to gain from more threads than there is work for, or to break a law
 * of nature: t(p) below t(1) / p, or memory faster than its bandwidth. */
static void extension_is_sane(void **state)
{
    struct kernel kernel = {.name = "gemm", .phases = 1, .shares = {64}, .flops = 2.0 * 64 * 512 * 512, .bytes = 1.3e6};
    double t1 = cost_estimate(phi, &kernel), least = t1;
    struct class_model model = curves_model(phi, &kernel, 2, t1);
    int best = 1;
    for (int width = 1; width <= 68; width++) {
        double ns = curves_at(&model, phi, width, false);
        assert_true(ns >= 0.999 * t1 / width);
        if (ns < 0.97 * least)
            least = ns, best = width;
    }
    assert_int_equal(best, 8); /* graphi.txt Fig. 2 */
    assert_true(curves_at(&model, phi, 64, false) * 1.0 > 0.9 * least);
    kernel.flops *= 16; /* four times the saturation width */
    model = curves_model(phi, &kernel, 2, cost_estimate(phi, &kernel));
    assert_true(curves_at(&model, phi, 32, false) < 0.6 * curves_at(&model, phi, 16, false));
    struct kernel stream = {.name = "add", .phases = 1, .shares = {1000}, .bytes = 1e9};
    model = curves_model(phi, &stream, 1, cost_estimate(phi, &stream));
    assert_true(curves_at(&model, phi, 68, false) >= 1e9 / 400);
    struct kernel small = {.name = "add", .phases = 1, .shares = {1}, .bytes = 4096};
    model = curves_model(phi, &small, 1, cost_estimate(phi, &small));
    assert_true(curves_at(&model, phi, 68, false) >= curves_at(&model, phi, 1, false)); /* one share: no gain */
}

/* Without it the papers' element-wise operation, 4 shares here, would end to gain at 4 threads instead of at 16
 * (graphi.txt Fig. 2). */
static void the_papers_operations_split_evenly(void **state)
{
    graphi_machine *papers;
    check_ok(graphi_machine_load("machines/xeon-phi-7250-papers.json", 0, &papers));
    struct kernel kernel = {.name = "mul", .phases = 1, .shares = {4}, .bytes = 3.0 * 32768 * 4};
    struct class_model model = curves_model(phi, &kernel, 1, cost_estimate(phi, &kernel));
    assert_true(curves_at(&model, phi, 16, false) >= curves_at(&model, phi, 4, false));
    struct cost_curve curve;
    curves_extend(&model, papers, &curve);
    assert_int_equal(curve.best, 16);
    assert_true(curve_ns(&curve, 1) == curves_at(&model, phi, 1, false));
    graphi_machine_destroy(papers);
}

/* Times are staircases. Sampled at a few widths only, a step would be smeared over the widths between two samples, and
 * the scheduler would take five workers where four are as fast. */
static void extended_curves_keep_every_step(void **state)
{
    struct class_model model = {.t1 = 1e6, .shares = 16, .phases = 1, .barriers = 1, .saturation = 68};
    struct cost_curve curve;
    curves_extend(&model, phi, &curve);
    for (int width = 1; width <= 68; width++)
        assert_true(curve_ns(&curve, width) == curves_at(&model, phi, width, false));
    assert_true(curve_ns(&curve, 16) < 0.6 * curve_ns(&curve, 15));
    assert_int_equal(curve.best, 16);
}

/* Without it uneven shares would be taken for even ones: a team is as slow as its busiest member. */
static void shares_are_split_as_the_engine_splits_them(void **state)
{
    const double share[] = {10000, 10000, 10000, 40000};
    const int count[] = {4};
    struct class_model model = {.t1 = 70060, .shares = 4, .phases = 1, .barriers = 1,
                                .share_ns = share, .phase_shares = count};
    double none = curves_at(&model, phi, 1, false), two = curves_at(&model, phi, 2, false),
           four = curves_at(&model, phi, 4, false);
    assert_true(fabs(none - 70060) < 1);
    assert_true(two - 600 >= 50060 - 1 && two < 52000);
    assert_true(four >= 40060 && four < 43000);
}

/* Without it an operation whose neighbour left early would count as slowed down all the time, or one that begins as
 * another ends as beside it. */
static void records_tell_who_ran_beside(void **state)
{
    const struct task_record records[] = {
        {.start_ns = 0, .end_ns = 100, .leader = 0, .width = 1},
        {.start_ns = 50, .end_ns = 100, .leader = 1, .width = 1},
        {.start_ns = 100, .end_ns = 150, .leader = 1, .width = 1},
        {.start_ns = 60, .end_ns = 90, .leader = 2, .width = 1},
        {.start_ns = 200, .end_ns = 200, .leader = 2, .width = 1},
    };
    const float expected[] = {(50 + 30) / 200.f, (50 + 30) / 100.f, 0, 1, 0};
    float load[5];
    assert_int_equal(records_load(records, 5, 3, load), GRAPHI_OK);
    for (int t = 0; t < 5; t++)
        assert_true(fabsf(load[t] - expected[t]) < 1e-6f);
}

/* Without it a factor would not be the one that the times show, or a single short measurement would stand against all
 * others. */
static void factors_of_classes_lean_on_all(void **state)
{
    const int32_t class_of[] = {0, 0, 1, 2};
    const double usual[] = {100, 200, 100, 50}, other[] = {125, 250, 100, 50}, part[] = {0.5, 0.5, 1, 0};
    const struct two_ways ways = {4, 3, class_of, usual, other, part, MOST_LONGER};
    double own[3], leaning[3];
    assert_int_equal(class_factors(&ways, 0, own), GRAPHI_OK);
    assert_int_equal(class_factors(&ways, 1000, leaning), GRAPHI_OK);
    assert_true(fabs(own[0] - 1.5) < 1e-9 && fabs(own[1] - 1) < 1e-9);
    assert_true(fabs(own[2] - 1.3) < 1e-9); /* never seen so: as all are, 75 of 250 */
    assert_true(fabs(leaning[0] - 1.3) < 0.01 && fabs(leaning[1] - 1.3) < 0.01);
}

/* Without it what was measured beside others would not reach predictions, or would slow down what runs alone; nor would
 * the order in which operations were measured, or who touched their data before. */
static void predictions_count_who_runs_beside(void **state)
{
    graphi_graph *g;
    graphi_plan *plan, *measured;
    if (machine->cores < 2)
        skip();
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.size = "small", .batch = 2}, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    enum { FACTORS = 6 };
    double ms[FACTORS][2][2];
    const struct {
        double beside, in_order, moved;
    } factor[FACTORS] = {{1, 1, 1}, {2, 1, 1}, {1, 0.5, 1}, {1, 1, 3}, {0.8, 1, 1}, {0.9, 1, 0.9}};
    for (int f = 0; f < FACTORS; f++) {
        for (int32_t i = 0; i < plan->compiled->curves; i++) {
            plan->curves[i].beside = factor[f].beside;
            plan->curves[i].in_order = factor[f].in_order;
            plan->curves[i].moved[0] = plan->curves[i].moved[1] = factor[f].moved;
        }
        const struct plan_parts parts = {machine, plan->curves, NULL, true, &(graphi_setting){0}, NULL};
        check_ok(plan_make(plan->compiled, &parts, &measured));
        for (int wide = 0; wide < 2; wide++)
            for (int sequential = 0; sequential < 2; sequential++) {
                int width = wide ? machine->cores : 1;
                graphi_setting setting = {.policy = sequential ? GRAPHI_POLICY_SEQUENTIAL : GRAPHI_POLICY_CRITICAL_PATH,
                                          .executors = sequential ? 1 : machine->cores / width,
                                          .width = width};
                graphi_simulation simulation;
                check_ok(graphi_plan_simulate(measured, &(graphi_simulate_options){.setting = &setting}, &simulation));
                assert_true(simulation.makespan_ms >= 0.999 * simulation.lower_bound_ms);
                ms[f][wide][sequential] = simulation.makespan_ms;
            }
        graphi_plan_destroy(measured);
    }
    assert_true(ms[1][0][0] > 1.3 * ms[0][0][0]); /* executors side by side */
    assert_true(ms[1][1][0] == ms[0][1][0] && ms[1][0][1] == ms[0][0][1] && ms[1][1][1] == ms[0][1][1]);
    assert_true(fabs(ms[2][1][1] - 0.5 * ms[0][1][1]) < 1e-6 && ms[2][0][0] == ms[0][0][0]);
    assert_true(ms[3][0][0] > 1.05 * ms[0][0][0]);               /* from one executor to another */
    assert_true(ms[3][1][0] < 1.05 * ms[0][1][0]);               /* one team, but for tiny operations */
    assert_true(ms[3][0][1] == ms[0][0][1] && ms[3][1][1] == ms[0][1][1]); /* in_order has it in it */
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it operations would be taken to find their data where they run. A team of both cores, then either core, then
 * both; the last waits for both. */
static void data_of_other_cores_is_told_apart(void **state)
{
    const int32_t successors_begin[] = {0, 2, 3, 4, 4}, successors[] = {1, 2, 3, 3};
    const struct seat seats[][4] = {{{0, 2, false}, {0, 1, false}, {1, 1, false}, {0, 2, false}},
                                    {{0, 1, false}, {0, 1, false}, {1, 1, false}, {1, 1, false}},
                                    {{0, 2, false}, {0, 2, false}, {0, 2, false}, {0, 2, false}},
                                    {{0, 2, false}, {0, 2, true}, {0, 2, true}, {0, 2, true}}}; /* one a tile */
    const double expected[][4] = {{0, 1, 1, 1}, {0, 0, 1, 0.5}, {0, 0, 0, 0}, {0, 1, 1, 0}};
    struct origins origins;
    assert_int_equal(edges_predecessors(4, successors_begin, successors, &origins.begin, &origins.from), GRAPHI_OK);
    assert_int_equal(origins.begin[4], 4);
    assert_int_equal(origins.from[origins.begin[3]] + origins.from[origins.begin[3] + 1], 3);
    for (int k = 0; k < 4; k++)
        for (int32_t t = 0; t < 4; t++)
            assert_true(fabs(origins_elsewhere(&origins, seats[k], t) - expected[k][t]) < 1e-9);
    origins_close(&origins);
}

/* A class in no half, or in both, would have a time after others that was measured after itself. */
static void halves_tell_operations_from_their_predecessors(void **state)
{
    graphi_graph *g;
    graphi_plan *plan;
    struct seating seating;
    int apart = 0, together = 0;
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.size = "small", .batch = 2}, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    const struct compiled *c = plan->compiled;
    assert_int_equal(seating_open(&plan->tasks, &seating), GRAPHI_OK);
    for (int32_t t = 0; t < c->tasks; t++) {
        const int32_t class = c->curve_of[t];
        assert_true(seating.half[class] != seating.other_half[class]);
        for (int32_t e = seating.origins.begin[t]; e < seating.origins.begin[t + 1]; e++)
            ++*(seating.half[class] != seating.half[c->curve_of[seating.origins.from[e]]] ? &apart : &together);
    }
    assert_true(apart > together);
    seating_close(&seating);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static graphi_status count_rounds(void *context)
{
    return ++*(int *)context < 2 ? GRAPHI_OK : GRAPHI_INTERRUPTED;
}

/* Without it what is compared with a profile would run in other seconds than it, or errors there would be lost. */
static void others_run_between_rounds(void **state)
{
    graphi_graph *g;
    graphi_state *s;
    graphi_plan *plan, *out;
    int rounds = 0;
    graphi_profile_options options = {.between = count_rounds, .context = &rounds};
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.size = "small", .batch = 2}, &g));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_plan_profile(plan, s, &options, &out));
    assert_int_equal(rounds, 1);
    graphi_plan_destroy(out);
    options.seconds = 10;
    assert_int_equal(graphi_plan_profile(plan, s, &options, &out), GRAPHI_INTERRUPTED);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

static bool count_asked(void *context)
{
    ++*(int *)context;
    return false;
}

/* Profiling once took as long as the training could gain by it: an execution that adds little to what the others tell
 * was among them. Classes that it would have shown in another way have the mean of those that were seen. */
static void profiling_once_executes_little(void **state)
{
    enum { WIDTHS = 2 }; /* of more some classes, and those of a busy minute, want fewer */
    graphi_machine *two;
    graphi_graph *g;
    graphi_state *s;
    graphi_plan *plan, *out;
    int asked = 0;
    graphi_profile_options options = {.stop = count_asked, .context = &asked};
    if (machine->cores < WIDTHS)
        skip();
    check_ok(graphi_machine_create(WIDTHS, &two));
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.size = "small", .batch = 2}, &g));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, two, NULL, &plan));
    check_ok(graphi_plan_profile(plan, s, &options, &out));
    for (int32_t i = 0; i < out->compiled->curves; i++)
        assert_true(out->curves[i].moved[0] >= 0.8 && out->curves[i].moved[1] >= 0.8);
    if (two->tiles == WIDTHS)
        assert_int_equal(asked, 1 + WIDTHS + 3); /* warm up; beside others, in array order, halves of the classes */
    graphi_plan_destroy(out);
    asked = 0;
    options.seconds = 10; /* eight rounds take a part of it */
    check_ok(graphi_plan_profile(plan, s, &options, &out));
    if (two->tiles == WIDTHS)
        assert_int_equal((asked - 1) % (WIDTHS + 4), 0);
    graphi_plan_destroy(out);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
    graphi_machine_destroy(two);
}

/* Without it the public calls could disagree with the curves that the scheduler uses, or a profile could change
 * parameters. */
static void plans_are_profiled(void **state)
{
    graphi_graph *g;
    graphi_state *s;
    graphi_plan *plan, *here, *there;
    graphi_class class;
    char before[65], after[65];
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.size = "small", .batch = 2}, &g));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_state_sha256(s, before);
    check_ok(graphi_plan_profile(plan, s, NULL, &here));
    check_ok(graphi_plan_profile(plan, s, &(graphi_profile_options){.machine = phi, .interval = 4}, &there));
    graphi_state_sha256(s, after);
    assert_string_equal(before, after);
    int64_t operations = 0;
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    for (int i = 0; graphi_plan_class_at(there, i, &class); i++) {
        assert_true(class.source == GRAPHI_CURVE_MEASURED && class.serial_ns > 0 && class.best_width >= 1 &&
                    class.best_width <= 68);
        assert_true(graphi_plan_class_ns(here, i, NULL, 1, false, NULL) > 0);
        double beside = here->curves[i].beside, in_order = here->curves[i].in_order;
        const double *moved = here->curves[i].moved;
        if (machine->cores > 1) /* of the machine at hand alone */
            assert_true(beside >= 0.8 && beside <= 4 && in_order >= 0.8 && in_order <= 4 && moved[0] >= 0.8 &&
                        moved[0] <= MOST_MOVED && moved[1] >= 0.8 && moved[1] <= MOST_MOVED);
        assert_true(there->curves[i].beside == 0 && there->curves[i].in_order == 0);
        operations += class.operations;
    }
    assert_int_equal(operations, info.nodes);
    assert_false(graphi_plan_class_at(plan, -1, &class));
    assert_true(graphi_plan_class_ns(plan, 100000, NULL, 1, false, NULL) < 0);
    graphi_simulation simulation;
    check_ok(graphi_plan_simulate(there, &(graphi_simulate_options){.machine = phi}, &simulation));
    assert_true(simulation.makespan_ms >= 0.99 * simulation.lower_bound_ms);
    graphi_plan_destroy(there);
    graphi_plan_destroy(here);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

static bool sampled(const struct cost_curve *curve, int width, bool spread)
{
    for (int i = 0; i < curve->samples; i++)
        if (curve->width[i] == width)
            return !spread || curve->spread_ns[i] > 0;
    return false;
}

/* The interval would change nothing, or the mode of one worker a tile be a model where it can be measured. Six workers
 * in tiles of two, which take turns where there are fewer cores: a climb may end after its second width, which is the
 * one that tells. */
static void the_interval_and_both_modes_are_measured(void **state)
{
    static const struct {
        int interval, second[2], never[2]; /* on neighbours, spread */
    } cases[] = {{1, {2, 2}, {5, 0}}, {3, {4, 3}, {2, 2}}};
    graphi_machine *tiles;
    graphi_graph *g;
    graphi_state *s;
    graphi_plan *plan, *tuned;
    check_ok(machine_from_synthetic("pack:1 l2:3 core:2 pu:1", 0, 0, &tiles));
    check_ok(
        graphi_model_create("lstm", &(graphi_model_options){.size = "small", .batch = 2, .steps = 2, .units = 16}, &g));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, tiles, NULL, &plan));
    for (int k = 0; k < 2; k++) {
        const graphi_setting asked = {.policy = GRAPHI_POLICY_FIFO}; /* measured whatever the time */
        const graphi_tune_options how = {.seconds = 0.01, .interval = cases[k].interval, .setting = &asked};
        check_ok(graphi_plan_tune(plan, s, &how, &tuned));
        for (int32_t i = 0; i < plan->compiled->curves; i++)
            for (int spread = 0; spread < 2; spread++) {
                assert_true(sampled(&tuned->curves[i], 1, spread) &&
                            sampled(&tuned->curves[i], cases[k].second[spread], spread));
                assert_false(sampled(&tuned->curves[i], cases[k].never[spread], spread));
            }
        char climbed[64];
        snprintf(climbed, sizeof climbed, "climbed by %d, on neighbours and one a shared", cases[k].interval);
        assert_non_null(strstr(tuned->why.data, climbed));
        graphi_plan_destroy(tuned);
    }
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
    graphi_machine_destroy(tiles);
}

/* Of steps that take seconds one round took all of the time, and what it measured was not raced. */
static void a_round_that_does_not_fit_is_not_begun(void **state)
{
    graphi_graph *g;
    graphi_state *s;
    graphi_plan *plan;
    struct trial trial;
    struct measurement measured;
    const struct patience over = {.deadline = clock_ns()};
    check_ok(graphi_model_create("lstm", &(graphi_model_options){.batch = 2, .steps = 2, .units = 16}, &g));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(trial_open(plan, s, s, &trial));
    for (int fits = 0; fits < 2; fits++) {
        check_ok(measure_curves(trial.run, &over, &(struct climb_options){.short_ns = fits ? 1e18 : 1}, &measured));
        assert_true(fits == (measured.executions > 0) && fits == (measured.missing_ns <= 0));
        assert_int_equal(measured.left, fits ? 0 : plan->compiled->curves);
        size_t bytes = (size_t)plan->compiled->curves * sizeof *measured.curves;
        assert_true(fits == (memcmp(measured.curves, plan->curves, bytes) != 0));
        mem_free(measured.curves);
    }
    trial_close(&trial);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Without it a machine without counters would give zeros instead of a message that says so. */
static void counters_are_there_or_said_to_be_missing(void **state)
{
    graphi_graph *g;
    graphi_state *s;
    graphi_plan *plan;
    double counts[512 * GRAPHI_COUNTERS];
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.size = "small", .batch = 2}, &g));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_status status = graphi_plan_count(plan, s, 512, counts);
    if (status == GRAPHI_UNSUPPORTED)
        assert_non_null(strstr(graphi_message(), "perf_event_open"));
    else
        check_ok(status);
    assert_string_equal(graphi_counter_name(GRAPHI_COUNTER_CYCLES), "cycles");
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

static bool soon(void *context)
{
    return --*(int *)context < 0;
}

/* Without it Ctrl-C would wait until a measurement has ended, or leave parameters that the measurement changed; more
 * seconds than a clock counts would be any number. With policies, as on one core there is little else to try. */
static void tuning_stops_when_asked(void **state)
{
    const graphi_model_options small = {.task = "bench", .size = "small", .batch = 4, .image = 16};
    graphi_graph *g;
    graphi_plan *plan, *none = NULL;
    graphi_state *s;
    char before[65], after[65];
    check_ok(graphi_model_create("pathnet", &small, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    graphi_state_sha256(s, before);
    for (int calls = 0; calls < 40; calls = 2 * calls + 1) { /* while operations are measured, and settings */
        int left = calls;
        graphi_tune_options tune = {.seconds = 600, .policies = true, .stop = soon, .context = &left};
        assert_int_equal(graphi_plan_tune(plan, s, &tune, &none), GRAPHI_INTERRUPTED);
        assert_non_null(strstr(graphi_message(), "stop"));
        assert_int_equal(left, -1);
        left = calls < 3 ? calls : 1;
        graphi_profile_options profile = {.stop = soon, .context = &left};
        assert_int_equal(graphi_plan_profile(plan, s, &profile, &none), GRAPHI_INTERRUPTED);
        assert_null(none);
        graphi_state_sha256(s, after);
        assert_string_equal(before, after);
    }
    int left = 30;
    graphi_tune_options tune = {.seconds = 1e300, .policies = true, .stop = soon, .context = &left};
    assert_int_equal(graphi_plan_tune(plan, s, &tune, &none), GRAPHI_INTERRUPTED);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(climbs_to_the_optimum_of_one_valley),
        cmocka_unit_test(stops_at_the_first_of_two_valleys),
        cmocka_unit_test(intervals_fit_the_machine),
        cmocka_unit_test(the_longest_step_is_to_the_last_core),
        cmocka_unit_test(curves_keep_both_modes),
        cmocka_unit_test(extension_is_sane),
        cmocka_unit_test(the_papers_operations_split_evenly),
        cmocka_unit_test(extended_curves_keep_every_step),
        cmocka_unit_test(shares_are_split_as_the_engine_splits_them),
        cmocka_unit_test(records_tell_who_ran_beside),
        cmocka_unit_test(factors_of_classes_lean_on_all),
        cmocka_unit_test(predictions_count_who_runs_beside),
        cmocka_unit_test(data_of_other_cores_is_told_apart),
        cmocka_unit_test(halves_tell_operations_from_their_predecessors),
        cmocka_unit_test(others_run_between_rounds),
        cmocka_unit_test(profiling_once_executes_little),
        cmocka_unit_test(plans_are_profiled),
        cmocka_unit_test(the_interval_and_both_modes_are_measured),
        cmocka_unit_test(a_round_that_does_not_fit_is_not_begun),
        cmocka_unit_test(tuning_stops_when_asked),
        cmocka_unit_test(counters_are_there_or_said_to_be_missing),
    };
    return cmocka_run_group_tests(tests, open_machines, close_machines);
}
