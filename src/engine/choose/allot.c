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

#include "base/memory.h"
#include "base/status.h"
#include "engine/choose/allot_search.h"
#include "schedule/edges.h"
#include "schedule/policy.h"

#include <math.h>
#include <string.h>

enum { MOST_TASKS = 20000, MOST_WORKERS = 4096, ROUNDS = 30 };
static const double HEAT = 0.0001; /* of the makespan, at the start of the walk; chosen by `graphi bench search` */
static const double WORTH_A_ROUND = 0.005; /* of the classes: the makespan falls by so much; chosen as HEAT */
enum { LEAST_BUDGET = 200000, BUDGET_OF_WORKER = 48000, MOST_BUDGET = 3200000 };
enum { ROUNDS_A_SIMULATION = 8 }; /* that cost as much as one */

static double time_of(const struct search *s, int32_t task)
{
    return curve_ns(curve_of(s, task), s->now->width[task]);
}

/* Levels at the present widths, and the longest path: its length, its first task in *top, successors in next. */
double search_longest(struct search *s, int32_t *top)
{
    *top = 0;
    for (int32_t v = s->t->count - 1; v >= 0; v--) {
        double most = 0;
        s->next[v] = -1;
        for (int32_t e = s->t->edges_begin[v]; e < s->t->edges_begin[v + 1]; e++)
            if (s->next[v] < 0 || s->level[s->t->edges[e]] > most) {
                s->next[v] = s->t->edges[e];
                most = s->level[s->next[v]];
            }
        s->level[v] = most + time_of(s, v);
        if (s->level[v] > s->level[*top])
            *top = v;
    }
    return s->level[*top];
}

/* The width up to `widest` at which price * flow * time + (1 - price) * area is least. */
static uint16_t cheapest(const struct search *s, int32_t task, double price, int widest)
{
    int32_t curve = s->t->curve_of[task];
    double least = INFINITY, time = price * s->flow[task], area = (1 - price) / s->workers;
    int width = 1;
    for (int32_t i = s->choices_begin[curve]; i < s->choices_begin[curve + 1] && s->choices[i].width <= widest; i++) {
        double cost = s->choices[i].ns * (time + area * s->choices[i].width);
        if (cost < 0.9999 * least) {
            least = cost;
            width = s->choices[i].width;
        }
    }
    return (uint16_t)width;
}

/* The least that price * flow * time + (1 - price) * area can be, whatever the width and the mode. */
static double least_cost(const struct search *s, int32_t task, double price)
{
    int32_t curve = s->t->curve_of[task];
    double least = INFINITY, time = price * s->flow[task], area = (1 - price) / s->workers;
    for (int32_t i = s->limits_begin[curve]; i < s->limits_begin[curve + 1]; i++)
        least = fmin(least, s->limits[i].ns * (time + area * s->limits[i].width));
    return least;
}

static void copy(const struct search *s, struct allotment *to, const struct allotment *from)
{
    memcpy(to->width, from->width, (size_t)s->t->count * sizeof *from->width);
    memcpy(to->key, from->key, (size_t)s->t->count * sizeof *from->key);
    to->fill = from->fill;
    to->narrower = from->narrower;
    to->wider = from->wider;
    to->in_order = from->in_order;
}

/* Makespan of the present allotment, which becomes the best when it is. */
double search_makespan(struct search *s)
{
    struct simulation simulation;
    s->left -= s->t->count;
    const graphi_status status = simulator_run(&s->simulator, s->records, &simulation);
    if (status != GRAPHI_OK) {
        s->status = status;
        s->left = 0;
        return INFINITY;
    }
    if (simulation.makespan_ns < s->best_ns) {
        s->best_ns = simulation.makespan_ns;
        copy(s, s->best, s->now);
    }
    return simulation.makespan_ns;
}

/* The present allotment is where the walk goes on from. */
void search_settle(struct search *s, double ns)
{
    s->base_ns = ns;
    copy(s, s->base, s->now);
    memcpy(s->base_offset, s->offset, (size_t)s->t->count * sizeof *s->offset);
    struct task_record *swap = s->records;
    s->records = s->base_records;
    s->base_records = swap;
}

void search_back(struct search *s)
{
    copy(s, s->now, s->base);
    memcpy(s->offset, s->base_offset, (size_t)s->t->count * sizeof *s->offset);
}

bool search_tolerates(struct search *s, double rise, double left)
{
    return rise <= -HEAT * s->best_ns * left * left * log((search_draw(s, 1 << 20) + 1.0) / (1 << 20));
}

static void consider(struct search *s)
{
    double ns = search_makespan(s);
    if (ns < s->base_ns)
        search_settle(s, ns);
}

void search_order_by_level(struct search *s)
{
    int32_t top;
    search_longest(s, &top);
    for (int32_t v = 0; v < s->t->count; v++)
        s->now->key[v] = (int64_t)s->level[v] + s->offset[v];
}

/* Of the widths that belong to the weights of each round those whose larger bound is the least. */
void search_weigh(struct search *s, double price, int widest)
{
    double least = INFINITY;
    uint16_t *kept = (uint16_t *)s->chain; /* free until the second part, and after it */
    size_t bytes = (size_t)s->t->count * sizeof *kept;
    memset(s->flow, 0, (size_t)s->t->count * sizeof *s->flow);
    s->left -= (int64_t)s->t->count * ROUNDS / ROUNDS_A_SIMULATION;
    for (int round = 0; round < ROUNDS; round++) {
        double area = 0, part = 2.0 / (round + 2), bound, total = 0;
        bool bounds = round && widest == s->workers; /* in the first round no path has a weight */
        int32_t top;
        for (int32_t v = 0; v < s->t->count; v++) {
            s->now->width[v] = cheapest(s, v, price, widest);
            total += bounds ? least_cost(s, v, price) : 0;
            area += s->now->width[v] * time_of(s, v) / s->workers;
        }
        /* weights of paths sum to at most 1: whatever the widths, price * L + (1 - price) * A is more */
        s->bound = fmax(s->bound, total);
        bound = price * search_longest(s, &top) + (1 - price) * area;
        if (bound < least) {
            least = bound;
            memcpy(kept, s->now->width, bytes);
        }
        for (int32_t v = 0; v < s->t->count; v++)
            s->flow[v] *= 1 - part;
        for (int32_t v = top; v >= 0; v = s->next[v])
            s->flow[v] += part;
    }
    memcpy(s->now->width, kept, bytes);
}

static void try_price(struct search *s, double price, int widest)
{
    search_weigh(s, price, widest);
    search_order_by_level(s);
    consider(s);
}

/* What happens when workers are too few or too many. */
void search_rules(struct search *s, int rules)
{
    s->now->fill = (enum fill)(rules / 4);
    s->now->narrower = rules & 1;
    s->now->wider = rules & 2;
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

/* --- memory --- */

struct allotment *allotment_create(size_t tasks)
{
    struct allotment *a = mem_zalloc(sizeof *a);
    if (!a)
        return NULL;
    a->width = mem_zalloc_array(tasks, sizeof *a->width);
    a->key = mem_zalloc_array(tasks, sizeof *a->key);
    if (a->width && a->key)
        return a;
    allotment_destroy(a);
    return NULL;
}

void allotment_destroy(struct allotment *a)
{
    if (!a)
        return;
    mem_free(a->width);
    mem_free(a->key);
    mem_free(a);
}

/* Widths worth considering: those measured and those that divide the workers evenly, each faster than all narrower
 * ones. */
static void fill_choices(struct search *s)
{
    int32_t count = 0;
    for (int32_t c = 0; c < s->t->curves_count; c++) {
        const struct cost_curve *curve = &s->t->curves[c];
        double best = INFINITY;
        int sample = 0;
        s->choices_begin[c] = count;
        for (int width = 1; width <= s->workers;) {
            double ns = curve_ns(curve, width);
            if (ns < 0.995 * best) {
                s->choices[count++] = (struct choice){width, ns};
                best = ns;
            }
            while (sample < curve->samples && curve->width[sample] <= width)
                sample++;
            int parts = s->workers / width, even = parts > 1 ? s->workers / (parts - 1) : s->workers + 1;
            even = even > width ? even : width + 1;
            width = sample < curve->samples && curve->width[sample] < even ? curve->width[sample] : even;
        }
    }
    s->choices_begin[s->t->curves_count] = count;
}

/* Samples of both modes, each faster than all narrower ones: time and area of the widths between lie above. Times are
 * the least that others beside them were measured to make of them. */
static void fill_limits(struct search *s)
{
    int32_t count = 0;
    for (int32_t c = 0; c < s->t->curves_count; c++) {
        const struct cost_curve *curve = &s->t->curves[c];
        double best = INFINITY;
        s->limits_begin[c] = count;
        for (int i = 0; i < curve->samples; i++)
            if (curve_sample_ns(curve, i) < best) {
                best = curve_sample_ns(curve, i);
                s->limits[count++] = (struct choice){curve->width[i], best * curve_least_factor(curve, false)};
            }
    }
    s->limits_begin[s->t->curves_count] = count;
}

static graphi_status open_search(struct search *s)
{
    size_t n = (size_t)s->t->count + 1;
    size_t most_choices = CURVE_SAMPLES + 2 + 2 * (size_t)ceil(sqrt(s->workers)); /* measured, and even parts */
    s->now = allotment_create(n);
    s->best = allotment_create(n);
    s->base = allotment_create(n);
    s->offset = mem_zalloc_array(n, sizeof *s->offset);
    s->base_offset = mem_zalloc_array(n, sizeof *s->offset);
    s->records = mem_zalloc_array(n, sizeof *s->records);
    s->base_records = mem_zalloc_array(n, sizeof *s->base_records);
    s->choices = mem_zalloc_array(((size_t)s->t->curves_count + 1) * most_choices, sizeof *s->choices);
    s->choices_begin = mem_zalloc_array((size_t)s->t->curves_count + 1, sizeof *s->choices_begin);
    s->limits = mem_zalloc_array(((size_t)s->t->curves_count + 1) * CURVE_SAMPLES, sizeof *s->limits);
    s->limits_begin = mem_zalloc_array((size_t)s->t->curves_count + 1, sizeof *s->limits_begin);
    s->flow = mem_zalloc_array(n, sizeof *s->flow);
    s->level = mem_zalloc_array(n, sizeof *s->level);
    s->next = mem_zalloc_array(n, sizeof *s->next);
    s->chain = mem_zalloc_array(n, sizeof *s->chain);
    s->key = mem_zalloc_array(n, sizeof *s->key);
    s->turns = mem_zalloc_array(n, sizeof *s->turns);
    if (!s->now || !s->base || !s->best || !s->offset || !s->base_offset || !s->records || !s->base_records ||
        !s->choices || !s->choices_begin || !s->limits || !s->limits_begin || !s->flow || !s->level || !s->next ||
        !s->chain || !s->key || !s->turns)
        return fail_memory("search of widths", n * 64);
    fill_choices(s);
    fill_limits(s);
    return edges_predecessors(s->t->count, s->t->edges_begin, s->t->edges, &s->from_begin, &s->from);
}

/* A task that is not tiny starts a message and a decision after its inputs are there. */
static graphi_status open_insertion(struct search *s)
{
    const graphi_machine *machine = s->plan->machine;
    struct insertion_input input = {.tasks = s->t,
                                    .workers = s->workers,
                                    .from_begin = s->from_begin,
                                    .from = s->from,
                                    .choices = s->choices,
                                    .choices_begin = s->choices_begin,
                                    .bytes = s->simulator.traffic.shared ? s->simulator.traffic.bytes : NULL,
                                    .gbs = s->simulator.traffic.gbs,
                                    .start_ns = machine->schedule_ns + machine->wake_ns};
    return insertion_create(&input, &s->insertion);
}

static void close_search(struct search *s)
{
    insertion_destroy(s->insertion);
    simulator_close(&s->simulator);
    allotment_destroy(s->now);
    allotment_destroy(s->best);
    mem_free(s->records);
    mem_free(s->base_records);
    allotment_destroy(s->base);
    mem_free(s->offset);
    mem_free(s->base_offset);
    mem_free(s->choices);
    mem_free(s->choices_begin);
    mem_free(s->limits);
    mem_free(s->limits_begin);
    mem_free(s->flow);
    mem_free(s->level);
    mem_free(s->next);
    mem_free(s->chain);
    mem_free(s->key);
    mem_free(s->turns);
    mem_free(s->from_begin);
    mem_free(s->from);
}

static int64_t budget_for(int workers)
{
    int64_t budget = (int64_t)workers * BUDGET_OF_WORKER;
    return budget < LEAST_BUDGET ? LEAST_BUDGET : budget > MOST_BUDGET ? MOST_BUDGET : budget;
}

const double search_prices[SEARCH_PRICES] = {0.5, 0.7, 0.3, 0.9, 0.1, 0.6, 0.4, 0.8, 0.2, 0.97, 0.06, 0.02};

/* A quarter of the budget goes to prices, half of the rest at most to classes; what is left over to the walk and to
 * insertion, half each. */
static void search(struct search *s)
{
    if (s->plan->measured && s->plan->machine->captured)
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

static graphi_status search_widths(graphi_plan *plan)
{
    const graphi_setting *setting = &plan->setting;
    struct search s = {.plan = plan, .t = &plan->tasks, .workers = setting->executors * setting->width};
    struct simulation dynamic;
    if (policy_of(setting) != &policy_malleable || s.t->count > MOST_TASKS || s.t->count < 2 || s.workers < 2 ||
        s.workers > MOST_WORKERS)
        return GRAPHI_OK;
    s.left = budget_for(s.workers);
    s.best_ns = s.base_ns = s.uniform_ns = INFINITY;
    graphi_status status = open_search(&s);
    if (!status)
        status = plan_simulate(plan, NULL, &dynamic);
    if (!status) {
        plan->tasks.allotment = s.now;
        status = simulator_open(plan, &s.simulator);
    }
    if (!status)
        status = open_insertion(&s);
    if (!status) {
        search(&s);
        status = s.status;
    }
    plan->tasks.allotment = NULL;
    plan->searched = budget_for(s.workers) - s.left;
    plan->widths_bound_ns = fmax(s.bound, plan->lower_bound_ns);
    if (!status)
        text_add(
            &plan->why,
            "widths searched: predicted %.3f ms, decided during the run %.3f ms; lower bound %.3f ms, %.3f ms with "
            "one width a task\n",
            s.best_ns / 1e6, dynamic.makespan_ns / 1e6, plan->lower_bound_ns / 1e6, plan->widths_bound_ns / 1e6);
    bool uniform = !status && search_prefers_uniform(&s, fmin(s.best_ns, dynamic.makespan_ns));
    if (uniform) {
        copy(&s, s.best, s.now);
        s.best_ns = s.uniform_ns;
    }
    if (!status && (uniform || s.best_ns < dynamic.makespan_ns)) {
        plan->allotment = s.best;
        plan->tasks.allotment = plan->allotment;
        plan->predicted_ns = s.best_ns;
        s.best = NULL;
    }
    close_search(&s);
    return status;
}

/* A static driver decides once what it repeats, and a search changes that from one execution to the next. */
graphi_status allot_search(graphi_plan *plan)
{
    struct simulation repeated;
    if (plan->setting.driver != GRAPHI_DRIVER_STATIC)
        return search_widths(plan);
    plan->setting.driver = GRAPHI_DRIVER_COMBINING;
    graphi_status status = search_widths(plan);
    plan->setting.driver = GRAPHI_DRIVER_STATIC;
    if (!status && plan->allotment && (status = plan_simulate(plan, NULL, &repeated)) == GRAPHI_OK)
        plan->predicted_ns = repeated.makespan_ns;
    return status;
}
