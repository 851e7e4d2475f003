/* SPDX-License-Identifier: Apache-2.0 */
/* Widths and order for the whole graph, searched for in virtual time before the run: the malleable policy decides well
 * from one moment to the next, but does not see that a task off the critical path could have been left narrow, or that
 * one on it will wait for workers in a moment.
 *
 * A schedule is bounded by its longest path L, which wide tasks shorten, and by its area A (width times time, over the
 * workers), which wide tasks enlarge. First part: for a price of time against area, the widths that minimise
 * price * L + (1 - price) * A. With a weight on each task, the flow of paths that it carries, the best width of each task
 * is its own matter; the weights are found by sending more and more flow along the path that is longest at present (the
 * method of Frank and Wolfe). Each price gives widths, list scheduling by level at these widths a schedule, and
 * simulation of the plan (overheads and shared memory included) its makespan. Second part: a walk from the best: widths and
 * priorities of tasks, most often of the chain that determines the makespan, are changed, alone, with all others of their
 * class, or with what runs at about the same time. A change stays when the makespan falls, or rises by no more than a
 * drawn tolerance that shrinks as the budget is spent (simulated annealing, of little heat).
 *
 * Runs once when a plan is made, within a budget of work, so the outcome does not depend on the clock. The unit is one
 * simulated task, about 0.3 us; the rest is charged in proportion. Few workers have little to choose from and get a small
 * budget: below 0.1 s on two cores, below 1 s on 64 and more. Usual size: 100 to 3,000 tasks, some hundred simulations. */
#include "engine/allot.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { MOST_TASKS = 20000, MOST_WORKERS = 4096, ROUNDS = 30, RULES = 12 };
static const double HEAT = 0.0001; /* of the makespan, at the start of the walk; chosen by `graphi bench search` */
enum { LEAST_BUDGET = 200000, BUDGET_OF_WORKER = 40000, MOST_BUDGET = 2600000 };
enum { ROUNDS_A_SIMULATION = 8, SCANS_A_SIMULATION = 256 }; /* that cost as much as one */

struct choice {
    int width;
    double ns;
};

struct search {
    graphi_plan *plan;
    const struct tasks *t;
    int workers;
    struct plan_simulator simulator;
    struct allotment *now, *base, *best; /* now: what the simulator sees */
    int64_t *offset, *base_offset;
    struct task_record *records, *base_records;
    struct choice *choices; /* of each curve, wider and faster ones last */
    int32_t *choices_begin;
    double *flow, *level; /* one a task */
    int32_t *next, *chain, *from_begin, *from;
    double base_ns, best_ns, bound; /* bound: no schedule whose tasks keep their widths is shorter */
    int64_t left;
    uint64_t draws;
};

static const struct cost_curve *curve_of(const struct search *s, int32_t task)
{
    return &s->t->curves[s->t->curve_of[task]];
}

static double time_of(const struct search *s, int32_t task)
{
    return curve_ns(curve_of(s, task), s->now->width[task]);
}

/* Levels at the present widths, and the longest path: its length, its first task in *top, successors in next. */
static double longest(struct search *s, int32_t *top)
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
static uint16_t cheapest(const struct search *s, int32_t task, double price, int widest, double *total)
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
    *total += least;
    return (uint16_t)width;
}

static void copy(const struct search *s, struct allotment *to, const struct allotment *from)
{
    memcpy(to->width, from->width, (size_t)s->t->count * sizeof *from->width);
    memcpy(to->key, from->key, (size_t)s->t->count * sizeof *from->key);
    to->fill = from->fill;
    to->narrower = from->narrower;
    to->wider = from->wider;
}

/* Makespan of the present allotment, which becomes the best when it is. */
static double makespan(struct search *s)
{
    struct simulation simulation;
    s->left -= s->t->count;
    if (simulator_run(&s->simulator, s->records, &simulation) != GRAPHI_OK)
        return INFINITY;
    if (simulation.makespan_ns < s->best_ns) {
        s->best_ns = simulation.makespan_ns;
        copy(s, s->best, s->now);
    }
    return simulation.makespan_ns;
}

/* The present allotment is where the walk goes on from. */
static void settle(struct search *s, double ns)
{
    s->base_ns = ns;
    copy(s, s->base, s->now);
    memcpy(s->base_offset, s->offset, (size_t)s->t->count * sizeof *s->offset);
    struct task_record *swap = s->records;
    s->records = s->base_records;
    s->base_records = swap;
}

static void back(struct search *s)
{
    copy(s, s->now, s->base);
    memcpy(s->offset, s->base_offset, (size_t)s->t->count * sizeof *s->offset);
}

static void consider(struct search *s)
{
    double ns = makespan(s);
    if (ns < s->base_ns)
        settle(s, ns);
}

static void order_by_level(struct search *s)
{
    int32_t top;
    longest(s, &top);
    for (int32_t v = 0; v < s->t->count; v++)
        s->now->key[v] = (int64_t)s->level[v] + s->offset[v];
}

/* Widths for one price; every rounding of the weights whose larger bound is the least so far is simulated at the end. */
static void try_price(struct search *s, double price, int widest)
{
    double least = INFINITY;
    uint16_t *kept = (uint16_t *)s->chain; /* free until the second part */
    size_t bytes = (size_t)s->t->count * sizeof *kept;
    memset(s->flow, 0, (size_t)s->t->count * sizeof *s->flow);
    s->left -= (int64_t)s->t->count * ROUNDS / ROUNDS_A_SIMULATION;
    for (int round = 0; round < ROUNDS; round++) {
        double area = 0, part = 2.0 / (round + 2), bound, total = 0;
        int32_t top;
        for (int32_t v = 0; v < s->t->count; v++) {
            s->now->width[v] = cheapest(s, v, price, widest, &total);
            area += s->now->width[v] * time_of(s, v) / s->workers;
        }
        /* weights of paths sum to at most 1: whatever the widths, price * L + (1 - price) * A is more */
        if (widest == s->workers)
            s->bound = fmax(s->bound, round ? total : 0);
        bound = price * longest(s, &top) + (1 - price) * area;
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
    order_by_level(s);
    consider(s);
}

/* What happens when workers are too few or too many. */
static void set_rules(struct search *s, int rules)
{
    s->now->fill = (enum fill)(rules / 4);
    s->now->narrower = rules & 1;
    s->now->wider = rules & 2;
}

static void try_rules(struct search *s)
{
    for (int rules = 0; rules < RULES && s->left > 0; rules++) {
        back(s);
        set_rules(s, rules);
        consider(s);
    }
    back(s);
}

/* --- the second part ------------------------------------------------------------------------------------------------------ */

static uint32_t draw(struct search *s, uint32_t below)
{
    return random_philox(17, 0, s->draws++).v[0] % below;
}

/* The chain of the best schedule: from the task that ends last, each time to what it waited for: the latest of its predecessors,
 * or where it was ready long before, the task that ended last before it started. */
static int chain_of(struct search *s)
{
    const struct task_record *r = s->base_records;
    int32_t at = 0;
    int count = 0, scans = 1;
    for (int32_t v = 1; v < s->t->count; v++)
        if (r[v].end_ns > r[at].end_ns)
            at = v;
    while (at >= 0 && count < s->t->count) {
        int32_t from = -1, before = -1;
        s->chain[count++] = at;
        for (int32_t e = s->from_begin[at]; e < s->from_begin[at + 1]; e++)
            if (from < 0 || r[s->from[e]].end_ns > r[from].end_ns)
                from = s->from[e];
        int64_t ready = from < 0 ? 0 : r[from].end_ns, waited = r[at].start_ns - ready;
        if (waited > (r[at].start_ns - ready + r[at].end_ns - r[at].start_ns) / 16 + 1000) {
            scans++;
            for (int32_t v = 0; v < s->t->count; v++)
                if (r[v].end_ns <= r[at].start_ns && r[v].end_ns > ready && (before < 0 || r[v].end_ns > r[before].end_ns))
                    before = v;
            from = before >= 0 ? before : from;
        }
        at = from;
    }
    s->left -= (int64_t)s->t->count * scans / SCANS_A_SIMULATION;
    return count;
}

/* The choice next to the task's width, up or down; the width itself at the ends. */
static int step_width(const struct search *s, int32_t task, bool up)
{
    int32_t curve = s->t->curve_of[task];
    int width = s->now->width[task], below = width, above = width;
    for (int32_t i = s->choices_begin[curve]; i < s->choices_begin[curve + 1]; i++) {
        if (s->choices[i].width < width)
            below = s->choices[i].width;
        if (s->choices[i].width > width && above == width)
            above = s->choices[i].width;
    }
    return up ? above : below;
}

static int any_width(struct search *s, int32_t task)
{
    int32_t begin = s->choices_begin[s->t->curve_of[task]], end = s->choices_begin[s->t->curve_of[task] + 1];
    return s->choices[begin + (int32_t)draw(s, (uint32_t)(end - begin))].width;
}

/* A change of the allotment, drawn: where, which way, how far. */
struct change {
    int32_t task, class;
    bool up;
    int64_t shift; /* of a priority */
    int from, to;  /* width of the task */
};

static void shift_task(struct search *s, const struct change *c) { s->offset[c->task] += c->shift; }

static void shift_class(struct search *s, const struct change *c)
{
    for (int32_t v = 0; v < s->t->count; v++)
        s->offset[v] += s->t->curve_of[v] == c->class ? c->shift : 0;
}

static void widen_task(struct search *s, const struct change *c) { s->now->width[c->task] = (uint16_t)c->to; }

/* Those of the class that are as wide as the task, or all of it. */
static void widen_alike(struct search *s, const struct change *c)
{
    for (int32_t v = 0; v < s->t->count; v++)
        if (s->t->curve_of[v] == c->class && s->now->width[v] == c->from)
            s->now->width[v] = (uint16_t)c->to;
}

static void widen_class(struct search *s, const struct change *c)
{
    for (int32_t v = 0; v < s->t->count; v++)
        if (s->t->curve_of[v] == c->class)
            s->now->width[v] = (uint16_t)c->to;
}

/* All tasks that ran at some time within a window of the schedule, or those of one class: a step wider or narrower. */
static void widen_window(struct search *s, const struct change *c)
{
    double middle = s->base_ns * draw(s, 1024) / 1024, half = s->base_ns / (2 << draw(s, 8));
    int32_t of = draw(s, 2) ? (int32_t)draw(s, (uint32_t)s->t->count) : -1, class = of < 0 ? -1 : s->t->curve_of[of];
    int width = of >= 0 && draw(s, 2) ? any_width(s, of) : 0;
    for (int32_t v = 0; v < s->t->count; v++)
        if ((class < 0 || s->t->curve_of[v] == class) && (double)s->base_records[v].end_ns > middle - half &&
            (double)s->base_records[v].start_ns < middle + half)
            s->now->width[v] = (uint16_t)(width ? width : step_width(s, v, c->up));
}

static void other_rules(struct search *s, const struct change *c)
{
    if (draw(s, 4) == 0)
        set_rules(s, (int)draw(s, RULES));
    else
        widen_task(s, c);
}

/* One of these, each entry as often as the others. */
static void (*const moves[])(struct search *, const struct change *) = {shift_task,   shift_class, widen_alike, widen_window, widen_class,
                                                                        widen_window, other_rules, widen_window, widen_task};

static void change(struct search *s, int chain)
{
    int32_t task = draw(s, 4) ? s->chain[draw(s, (uint32_t)chain)] : (int32_t)draw(s, (uint32_t)s->t->count);
    struct change c = {.task = task, .class = s->t->curve_of[task], .up = draw(s, 2), .from = s->now->width[task]};
    c.shift = (c.up ? 1 : -1) * (int64_t)(s->base_ns / 128) * (1 + draw(s, 16));
    c.to = draw(s, 2) ? step_width(s, task, c.up) : any_width(s, task);
    moves[draw(s, sizeof moves / sizeof *moves)](s, &c);
    order_by_level(s);
}

/* Whole classes, those that hold a part of the work: each of their widths for all of their tasks. */
static void try_classes(struct search *s)
{
    double work = 0, *own = s->flow; /* free by now; fewer classes than tasks */
    int64_t rest = s->left - s->left / 4;
    memset(own, 0, (size_t)s->t->count * sizeof *own);
    for (int32_t v = 0; v < s->t->count; v++) {
        own[s->t->curve_of[v]] += curve_ns(curve_of(s, v), 1);
        work += curve_ns(curve_of(s, v), 1);
    }
    for (int32_t c = 0; c < s->t->curves_count; c++)
        for (int32_t i = s->choices_begin[c]; own[c] > work / 64 && i < s->choices_begin[c + 1] && s->left > rest; i++) {
            for (int32_t v = 0; v < s->t->count; v++)
                if (s->t->curve_of[v] == c)
                    s->now->width[v] = (uint16_t)s->choices[i].width;
            order_by_level(s);
            consider(s);
            back(s);
        }
}

static void improve(struct search *s)
{
    double all = (double)s->left;
    int chain = chain_of(s);
    while (s->left > 0) {
        double left = (double)s->left / all, heat = HEAT * s->best_ns * left * left;
        change(s, chain);
        double ns = makespan(s);
        if (ns <= s->base_ns - heat * log((draw(s, 1 << 20) + 1.0) / (1 << 20))) {
            settle(s, ns);
            chain = chain_of(s);
        } else {
            back(s);
        }
    }
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

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

/* Widths worth considering: those measured and those that divide the workers evenly, each faster than all narrower ones. */
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

static void predecessors(struct search *s)
{
    int32_t n = s->t->count;
    for (int32_t v = 0; v < n; v++)
        s->from_begin[v + 1] = s->from_begin[v] + s->t->pending[v];
    for (int32_t v = 0; v < n; v++)
        s->next[v] = s->from_begin[v];
    for (int32_t v = 0; v < n; v++)
        for (int32_t e = s->t->edges_begin[v]; e < s->t->edges_begin[v + 1]; e++)
            s->from[s->next[s->t->edges[e]]++] = v;
}

static graphi_status open_search(struct search *s)
{
    size_t n = (size_t)s->t->count + 1, edges = (size_t)s->t->edges_begin[s->t->count] + 1;
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
    s->flow = mem_zalloc_array(n, sizeof *s->flow);
    s->level = mem_zalloc_array(n, sizeof *s->level);
    s->next = mem_zalloc_array(n, sizeof *s->next);
    s->chain = mem_zalloc_array(n, sizeof *s->chain);
    s->from_begin = mem_zalloc_array(n, sizeof *s->from_begin);
    s->from = mem_zalloc_array(edges, sizeof *s->from);
    if (!s->now || !s->base || !s->best || !s->offset || !s->base_offset || !s->records || !s->base_records || !s->choices ||
        !s->choices_begin || !s->flow || !s->level || !s->next || !s->chain || !s->from_begin || !s->from)
        return fail_memory("search of widths", n * 64);
    fill_choices(s);
    predecessors(s);
    return GRAPHI_OK;
}

static void close_search(struct search *s)
{
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
    mem_free(s->flow);
    mem_free(s->level);
    mem_free(s->next);
    mem_free(s->chain);
    mem_free(s->from_begin);
    mem_free(s->from);
}

static int64_t budget_for(int workers)
{
    int64_t budget = (int64_t)workers * BUDGET_OF_WORKER;
    return budget < LEAST_BUDGET ? LEAST_BUDGET : budget > MOST_BUDGET ? MOST_BUDGET : budget;
}

/* A quarter of the budget goes to prices, the most likely ones first; what is left over to the walk. */
static void search(struct search *s)
{
    static const double prices[] = {0.5, 0.7, 0.3, 0.9, 0.1, 0.6, 0.4, 0.8, 0.2, 0.97, 0.06, 0.02};
    int64_t rest = s->left - s->left / 4;
    for (int widest = s->workers; widest > 1; widest /= 2)
        for (size_t i = 0; i < sizeof prices / sizeof *prices && s->left > rest; i++)
            try_price(s, prices[i], widest);
    if (s->best_ns < INFINITY) {
        try_rules(s);
        try_classes(s);
        try_rules(s);
        improve(s);
    }
}

graphi_status allot_search(graphi_plan *plan)
{
    const graphi_setting *setting = &plan->setting;
    struct search s = {.plan = plan, .t = &plan->tasks, .workers = setting->executors * setting->width};
    struct simulation dynamic;
    if (setting->policy != GRAPHI_POLICY_MALLEABLE || s.t->count > MOST_TASKS || s.t->count < 2 || s.workers < 2 ||
        s.workers > MOST_WORKERS)
        return GRAPHI_OK;
    s.left = budget_for(s.workers);
    s.best_ns = s.base_ns = INFINITY;
    graphi_status status = open_search(&s);
    if (!status)
        status = plan_simulate(plan, NULL, &dynamic);
    if (!status) {
        plan->tasks.allotment = s.now;
        status = simulator_open(plan, &s.simulator);
    }
    if (!status)
        search(&s);
    plan->tasks.allotment = NULL;
    plan->searched = budget_for(s.workers) - s.left;
    plan->widths_bound_ns = fmax(s.bound, plan->lower_bound_ns);
    if (!status)
        text_add(&plan->why,
                 "widths searched: predicted %.3f ms, decided during the run %.3f ms; lower bound %.3f ms, %.3f ms with "
                 "one width a task\n",
                 s.best_ns / 1e6, dynamic.makespan_ns / 1e6, plan->lower_bound_ns / 1e6, plan->widths_bound_ns / 1e6);
    if (!status && s.best_ns < dynamic.makespan_ns) {
        plan->allotment = s.best;
        plan->tasks.allotment = plan->allotment;
        plan->predicted_ns = s.best_ns;
        s.best = NULL;
    }
    close_search(&s);
    return status;
}
