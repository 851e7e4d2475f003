/* SPDX-License-Identifier: Apache-2.0 */
/* Widths and order for the whole graph, searched for in virtual time before the run: the malleable policy decides well
 * from one moment to the next, but does not see that a task off the critical path could have been left narrow, or that
 * one on it will wait for workers in a moment.
 *
 * A schedule is bounded by its longest path L, which wide tasks shorten, and by its area A (width times time, over the
 * workers), which wide tasks enlarge. First part: for a price of time against area, the widths that minimise
 * price * L + (1 - price) * A. With a weight on each task, the flow of paths that it carries, the best width of each
 * task is its own matter; the weights are found by sending more and more flow along the path that is longest at present
 * (the method of Frank and Wolfe). Each price gives widths, list scheduling by level at these widths a schedule, and
 * simulation of the plan (overheads and shared memory included) its makespan. Second part: a walk from the best: widths
 * and priorities of tasks, most often of the chain that determines the makespan, are changed, alone, with all others of
 * their class, or with what runs at about the same time (allot_walk.c). Third part: schedules by insertion
 * (allot_insert.c), which have what no list schedule has: workers kept free for a task that will be ready in a moment.
 *
 * Runs once when a plan is made, within a budget of work, so the outcome does not depend on the clock. The unit is one
 * simulated task, about 0.3 us; the rest is charged in proportion. Few workers have little to choose from and get a
 * small budget: below 0.1 s on two cores, below 1 s on 64 and more. Usual size: 100 to 3,000 tasks, some hundred
 * simulations. */
#include "engine/choose/allot.h"

#include "base/status.h"
#include "engine/choose/allot_insert.h"
#include "engine/choose/allot_uniform.h"
#include "engine/choose/allot_walk.h"
#include "machine/machine.h"
#include "schedule/policy.h"

#include <math.h>
#include <string.h>

enum { MOST_TASKS = 20000, MOST_WORKERS = 4096 };
static const double WORTH_A_ROUND = 0.005; /* of the classes: the makespan falls by so much; chosen as its heat */
enum { LEAST_BUDGET = 200000, BUDGET_OF_WORKER = 48000, MOST_BUDGET = 3200000 };

static void consider(struct search *s)
{
    double ns = search_makespan(s);
    if (ns < s->base_ns)
        search_settle(s, ns);
}

static void try_price(struct search *s, double price, int widest)
{
    search_weigh(s, price, widest);
    search_order_by_level(s);
    consider(s);
}

static void try_rules(struct search *s)
{
    for (int rules = 0; rules < SEARCH_RULES && s->left > 0; rules++) {
        search_back(s);
        search_rules(s, rules);
        consider(s);
    }
    search_back(s);
}

/* Whole classes, those that hold a part of the work: each of their widths for all of their tasks, until `rest` of the
 * budget is left. */
static void try_each_class(struct search *s, int64_t rest)
{
    double work = 0, *own = s->flow; /* free by now; fewer classes than tasks */
    memset(own, 0, (size_t)s->t->count * sizeof *own);
    for (int32_t v = 0; v < s->t->count; v++) {
        own[s->t->curve_of[v]] += curve_ns(curve_of(s, v), 1);
        work += curve_ns(curve_of(s, v), 1);
    }
    for (int32_t c = 0; c < s->t->curves_count; c++)
        for (int32_t i = s->choices_begin[c]; own[c] > work / 64 && i < s->choices_begin[c + 1] && s->left > rest;
             i++) {
            for (int32_t v = 0; v < s->t->count; v++)
                if (s->t->curve_of[v] == c)
                    s->now->width[v] = (uint16_t)s->choices[i].width;
            search_order_by_level(s);
            consider(s);
            search_back(s);
        }
}

/* Again as long as that gains: which width is best for one class depends on those of the others. */
static void try_classes(struct search *s)
{
    const int64_t rest = s->left / 2;
    double before;
    do {
        before = s->best_ns;
        try_each_class(s, rest);
    } while (s->best_ns < (1 - WORTH_A_ROUND) * before && s->left > rest);
}

static int64_t budget_for(int workers)
{
    int64_t budget = (int64_t)workers * BUDGET_OF_WORKER;
    return budget < LEAST_BUDGET ? LEAST_BUDGET : budget > MOST_BUDGET ? MOST_BUDGET : budget;
}

/* A quarter of the budget goes to prices, half of the rest at most to classes; what is left over to the walk and to
 * insertion, half each. */
static void search(struct search *s)
{
    if (s->draft->measured && s->draft->machine->captured)
        search_uniform(s);
    int64_t rest = s->left - s->left / 4;
    for (int widest = s->workers; widest > 1; widest /= 2)
        for (int i = 0; i < SEARCH_PRICES && s->left > rest; i++)
            try_price(s, search_prices[i], widest);
    if (s->best_ns == INFINITY)
        return;
    try_rules(s);
    try_classes(s);
    try_rules(s);
    search_walk(s, s->left / 2);
    search_insert(s);
}

static graphi_status search_widths(struct draft *draft)
{
    const graphi_setting *setting = &draft->setting;
    struct search s = {.draft = draft, .t = &draft->tasks, .workers = setting->executors * setting->width};
    const struct simulated what = draft_simulated(draft);
    struct simulation dynamic;
    if (!policy_of(setting)->searches || s.t->count > MOST_TASKS || s.t->count < 2 || s.workers < 2 ||
        s.workers > MOST_WORKERS)
        return GRAPHI_OK;
    s.left = budget_for(s.workers);
    s.best_ns = s.base_ns = s.uniform_ns = INFINITY;
    graphi_status status = search_open(&s);
    if (!status)
        status = simulator_once(&what, NULL, &dynamic);
    if (!status) {
        draft->tasks.allotment = s.now;
        status = simulator_open(&what, &s.simulator);
    }
    if (!status)
        status = search_open_insertion(&s);
    if (!status) {
        search(&s);
        status = s.status;
    }
    draft->tasks.allotment = NULL;
    draft->searched = budget_for(s.workers) - s.left;
    draft->widths_bound_ns = fmax(s.bound, draft->lower_bound_ns);
    if (!status)
        text_add(
            &draft->why,
            "widths searched: predicted %.3f ms, decided during the run %.3f ms; lower bound %.3f ms, %.3f ms with "
            "one width a task\n",
            s.best_ns / 1e6, dynamic.makespan_ns / 1e6, draft->lower_bound_ns / 1e6, draft->widths_bound_ns / 1e6);
    bool uniform = !status && search_prefers_uniform(&s, fmin(s.best_ns, dynamic.makespan_ns));
    if (uniform) {
        search_copy(&s, s.best, s.now);
        s.best_ns = s.uniform_ns;
    }
    if (!status && (uniform || s.best_ns < dynamic.makespan_ns)) {
        draft->allotment = s.best;
        draft->tasks.allotment = draft->allotment;
        draft->predicted_ns = s.best_ns;
        s.best = NULL;
    }
    search_close(&s);
    return status;
}

/* A static driver decides once what it repeats, and a search changes that from one execution to the next. */
graphi_status allot_search(struct draft *draft)
{
    struct simulation repeated;
    if (draft->setting.driver != GRAPHI_DRIVER_STATIC)
        return search_widths(draft);
    draft->setting.driver = GRAPHI_DRIVER_COMBINING;
    graphi_status status = search_widths(draft);
    draft->setting.driver = GRAPHI_DRIVER_STATIC;
    const struct simulated what = draft_simulated(draft);
    if (!status && draft->allotment && (status = simulator_once(&what, NULL, &repeated)) == GRAPHI_OK)
        draft->predicted_ns = repeated.makespan_ns;
    return status;
}
