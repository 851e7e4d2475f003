/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of a draft's tasks, and what no schedule of them can beat. Called for every setting that is weighed; one
 * thread. */
#include "engine/choose/draft.h"

#include "base/memory.h"
#include "base/status.h"
#include "machine/machine.h"
#include "schedule/edges.h"
#include "schedule/policy.h"

#include <math.h>

/* Threads of an operation on whose time levels are counted: those of the setting's executors. A policy with teams of
 * its own has none, and its decisions must not depend on how the same workers were split. */
static int level_width(const graphi_setting *s)
{
    return s->width > 0 && !policy_of(s)->own_teams ? s->width : 1;
}

/* By times as short as circumstances were measured to make them. */
enum times { ALONE, TOGETHER, IN_ORDER, TIMES };

static double factor(const struct cost_curve *curve, enum times times)
{
    return times == ALONE ? 1 : curve_least_factor(curve, times == IN_ORDER);
}

/* By executors that join, whose time is known beside others, a task may be shared out better than any team does it
 * (simulated_join.c). */
static double fastest_ns(const struct draft *draft, const struct cost_curve *curve)
{
    const bool joined = draft->setting.join == GRAPHI_ON && curve->beside > 0;
    return joined ? fmin(curve_least_ns(curve), curve_ns(curve, 1) / draft->setting.executors) : curve_least_ns(curve);
}

/* The longest path at every task's fastest width, and the least work. */
static void add_task(const struct draft *draft, int32_t task, enum times times, double *fastest, double *longest,
                     double *work)
{
    const struct compiled *c = draft->compiled;
    const struct cost_curve *curve = &draft->curves[c->curve_of[task]];
    double after = 0;
    *work += curve_least_work(curve) * factor(curve, times);
    for (int32_t e = c->edges_begin[task]; e < c->edges_begin[task + 1]; e++)
        after = fmax(after, fastest[c->edges[e]]);
    fastest[task] = after + fastest_ns(draft, curve) * factor(curve, times);
    *longest = fmax(*longest, fastest[task]);
}

/* The critical path, the work, and the lower bound of a schedule, which leaves what siblings of cores add
 * (SIBLING_YIELD) to the policy that uses them. One in array order, where operands were just written, is one alone. */
static graphi_status find_bounds(struct draft *draft)
{
    const int32_t tasks = draft->compiled->tasks;
    double longest[TIMES] = {0}, work[TIMES] = {0}, bound[TIMES];
    double *fastest = mem_zalloc_array((size_t)tasks + 1, sizeof *fastest);
    if (!fastest)
        return fail_memory("bounds", (size_t)tasks * sizeof *fastest);
    for (int times = ALONE; times < TIMES; times++) {
        for (int32_t t = tasks - 1; t >= 0; t--)
            add_task(draft, t, (enum times)times, fastest, &longest[times], &work[times]);
        bound[times] = fmax(longest[times], work[times] / draft->machine->cores);
    }
    mem_free(fastest);
    draft->critical_path_ns = longest[ALONE];
    draft->work_ns = work[ALONE];
    draft->lower_bound_ns = fmin(bound[TOGETHER], bound[IN_ORDER]);
    return GRAPHI_OK;
}

static void name_tasks(struct draft *draft)
{
    const struct compiled *c = draft->compiled;
    draft->tasks = (struct tasks){.count = c->tasks,
                                 .edges_begin = c->edges_begin,
                                 .edges = c->edges,
                                 .pending = c->pending,
                                 .level = draft->level,
                                 .flags = c->flags,
                                 .kind = c->kind,
                                 .kinds = c->kinds,
                                 .curve_of = c->curve_of,
                                 .curves = draft->curves,
                                 .curves_count = c->curves,
                                 .largest_input_from = c->largest_input_from,
                                 .allotment = draft->allotment,
                                 .scalability = c->scalability,
                                 .shares = c->shares,
                                 .waits = c->waits,
                                 .wait_of = c->wait_of,
                                 .waits_count = c->waits_count,
                                 .data = (const char *)c->task,
                                 .data_bytes = sizeof *c->task};
}

/* What somebody waits for should not come last: behind a signal stand, in the graph of a peer that has the same one, a
 * message and what waits for the event of that number here. Levels of predecessors follow. */
static void raise_signals(struct draft *draft, int width)
{
    const struct compiled *c = draft->compiled;
    const int64_t message_ns = (int64_t)draft->machine->wake_ns + 1;
    for (size_t i = 0; i < c->messages.count; i++)
        for (int w = 0; w < c->waits_count && c->messages.data[i].sends; w++)
            if (c->messages.data[c->wait_message[w]].number == c->messages.data[i].number) {
                int64_t *level = &draft->level[c->messages.data[i].task];
                const int64_t behind = draft->level[c->waits[w]] + message_ns;
                *level = *level < behind ? behind : *level;
            }
    for (int32_t t = c->tasks - 1; t >= 0 && c->messages.count; t--) {
        const int64_t own = (int64_t)curve_ns(&draft->curves[c->curve_of[t]], width) + 1,
                      after = edges_most_after(c->edges_begin, c->edges, draft->level, t) + own;
        draft->level[t] = draft->level[t] < after ? after : draft->level[t];
    }
}

graphi_status draft_update(struct draft *draft)
{
    const struct compiled *c = draft->compiled;
    const int width = level_width(&draft->setting);
    for (int32_t t = c->tasks - 1; t >= 0; t--)
        draft->level[t] = edges_most_after(c->edges_begin, c->edges, draft->level, t) +
                          (int64_t)curve_ns(&draft->curves[c->curve_of[t]], width) + 1;
    raise_signals(draft, width);
    name_tasks(draft);
    return find_bounds(draft);
}

struct simulated draft_simulated(const struct draft *draft)
{
    return (struct simulated){.compiled = draft->compiled,
                              .machine = draft->machine,
                              .tasks = &draft->tasks,
                              .decided = setting_decide(&draft->setting, draft->machine),
                              .truth = draft->curves};
}
