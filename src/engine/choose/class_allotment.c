/* SPDX-License-Identifier: Apache-2.0 */
/* Widths and order that the caller gives, by class, in virtual time (graphi/simulate.h). One thread a simulator. */
#include "base/status.h"
#include "engine/choose/allotment.h"
#include "engine/choose/planning.h"
#include "engine/choose/simulator.h"
#include "engine/compile/classes.h"
#include "graphi/simulate.h"
#include "machine/machine.h"
#include "schedule/edges.h"

#include <math.h>

static const double MOST_PRIORITY_MS = 1e9; /* 12 days: with a level it stays within 63 bits */

struct graphi_simulator {
    graphi_plan *plan;
    struct allotment *allotment; /* the plan's */
    struct plan_simulator simulator;
    int64_t *level;      /* one a task */
    uint16_t *narrowest; /* per class and width: the least width that takes as long; times are staircases */
    int workers;
};

/* The least width that takes as long as each. */
static void fill_narrowest(const graphi_simulator *s)
{
    for (int32_t c = 0; c < s->plan->compiled->curves; c++) {
        const struct cost_curve *curve = &s->plan->curves[c];
        uint16_t *row = &s->narrowest[(size_t)c * ((size_t)s->workers + 1)];
        for (int w = 1; w <= s->workers; w++)
            row[w] = w > 1 && curve_ns(curve, w) >= curve_ns(curve, row[w - 1]) ? row[w - 1] : (uint16_t)w;
    }
}

static graphi_status prepare(graphi_simulator *s, const graphi_plan *plan, const graphi_machine *machine)
{
    const graphi_setting setting = {.policy = GRAPHI_POLICY_MALLEABLE,
                                    .driver = GRAPHI_DRIVER_COMBINING, /* decides each time anew */
                                    .executors = machine->cores,
                                    .width = 1,
                                    .light = GRAPHI_OFF};
    size_t tasks = (size_t)plan->compiled->tasks, classes = (size_t)plan->compiled->curves + 1;
    struct cost_curve *curves = mem_zalloc_array(classes, sizeof *curves);
    struct allotment *allotment = allotment_create(tasks, 1);
    s->workers = machine->cores;
    s->level = mem_zalloc_array(tasks + 1, sizeof *s->level);
    s->narrowest = mem_zalloc_array(classes * ((size_t)s->workers + 1), sizeof *s->narrowest);
    if (!curves || !allotment || !s->level || !s->narrowest) {
        mem_free(curves);
        allotment_destroy(allotment);
        return fail_memory("simulator", classes * (size_t)s->workers * sizeof *s->narrowest);
    }
    classes_extend(plan, machine, curves);
    s->allotment = allotment;
    graphi_status status = plan_make(plan->compiled,
                                     &(struct plan_parts){.machine = machine,
                                                          .curves = curves,
                                                          .measured = plan->measured,
                                                          .setting = &setting,
                                                          .allotment = allotment},
                                     &s->plan);
    mem_free(curves);
    TRY(status);
    fill_narrowest(s);
    const struct simulated what = simulated_plan(s->plan, s->plan);
    return simulator_open(&what, &s->simulator);
}

graphi_status graphi_simulator_create(const graphi_plan *plan, const graphi_machine *machine, graphi_simulator **out)
{
    GIVEN(plan);
    GIVEN(out);
    machine = machine ? machine : plan->machine;
    if (machine->cores > UINT16_MAX)
        return fail(GRAPHI_UNSUPPORTED, "simulator", "found %d cores, expected at most %d", machine->cores, UINT16_MAX);
    graphi_simulator *s = mem_zalloc(sizeof *s);
    if (!s)
        return fail_memory("simulator", sizeof *s);
    graphi_status status = prepare(s, plan, machine);
    if (status)
        graphi_simulator_destroy(s);
    else
        *out = s;
    return status;
}

graphi_status graphi_simulator_run(graphi_simulator *s, const int *width, const double *priority_ms, int rules,
                                   double *makespan_ms)
{
    GIVEN(s);
    GIVEN(width);
    GIVEN(priority_ms);
    GIVEN(makespan_ms);
    const struct tasks *t = &s->plan->tasks;
    struct simulation simulation;
    for (int32_t c = 0; c < t->curves_count; c++)
        if (width[c] < 1 || width[c] > s->workers)
            return fail(GRAPHI_USAGE, "simulator", "found width %d of class %d, expected 1 to %d", width[c], c,
                        s->workers);
    for (int32_t c = 0; c < t->curves_count; c++)
        if (!(fabs(priority_ms[c]) <= MOST_PRIORITY_MS))
            return fail(GRAPHI_USAGE, "simulator", "found priority %g of class %d, expected -1e9 to 1e9 ms",
                        priority_ms[c], c);
    if (rules < 0 || rules > 11)
        return fail(GRAPHI_USAGE, "simulator", "found rules %d, expected 0 to 11", rules);
    for (int32_t v = t->count - 1; v >= 0; v--) { /* array order is topological */
        int32_t c = t->curve_of[v];
        s->allotment->width[v] = s->narrowest[(size_t)c * ((size_t)s->workers + 1) + (size_t)width[c]];
        s->level[v] = edges_most_after(t->edges_begin, t->edges, s->level, v) +
                            (int64_t)curve_ns(&t->curves[c], s->allotment->width[v]);
        s->allotment->key[v] = s->level[v] + (int64_t)(1e6 * priority_ms[c]);
    }
    s->allotment->fill = (enum fill)(rules / 4);
    s->allotment->narrower = rules & 1;
    s->allotment->wider = rules & 2;
    TRY(simulator_run(&s->simulator, NULL, &simulation));
    *makespan_ms = simulation.makespan_ns / 1e6;
    return GRAPHI_OK;
}

void graphi_simulator_destroy(graphi_simulator *s)
{
    if (!s)
        return;
    simulator_close(&s->simulator);
    graphi_plan_destroy(s->plan);
    mem_free(s->level);
    mem_free(s->narrowest);
    mem_free(s);
}
