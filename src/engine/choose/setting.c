/* SPDX-License-Identifier: Apache-2.0 */
/* The setting inferred from the graph alone: how many executors, how wide. The width of the graph bounds the
 * executors; for every even split of the cores below it the step is simulated with estimated durations, and the
 * smallest makespan wins. Very large graphs are not simulated but bounded: with work W(w) and critical path P(w) when
 * every task runs w wide, k executors need about W/k + P * (1 - 1/k) (Graham 1966). A wide graph of narrow tasks gives
 * many executors, a chain of large products one. Nothing is measured; profiling starts from this answer. */
#include "engine/choose/setting.h"

#include "base/memory.h"
#include "base/status.h"
#include "machine/machine.h"
#include "schedule/policy.h"
#include "schedule/ring.h"
#include "schedule/setting_canonical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Work and critical path with every task `width` wide. */
static void sums(const struct draft *draft, int width, double *finish, double *work, double *path)
{
    const struct compiled *c = draft->compiled;
    *work = *path = 0;
    for (int32_t t = c->tasks - 1; t >= 0; t--) {
        double ns = curve_ns(&draft->curves[c->curve_of[t]], width), after = 0;
        for (int32_t e = c->edges_begin[t]; e < c->edges_begin[t + 1]; e++)
            after = fmax(after, finish[c->edges[e]]);
        finish[t] = after + ns;
        *work += ns;
        *path = fmax(*path, finish[t]);
    }
}

struct event {
    double time;
    int change;
};

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->change - y->change;
}

/* Most tasks side by side where each begins as soon as its operands are there, one thread each, tiny ones left out. */
static int graph_width(const struct draft *draft, double *start, struct event *events)
{
    const struct compiled *c = draft->compiled;
    size_t count = 0;
    int running = 0, most = 1;
    for (int32_t t = 0; t < c->tasks; t++)
        start[t] = 0;
    for (int32_t t = 0; t < c->tasks; t++) {
        double end = start[t] + draft->curves[c->curve_of[t]].ns[0];
        for (int32_t e = c->edges_begin[t]; e < c->edges_begin[t + 1]; e++)
            start[c->edges[e]] = fmax(start[c->edges[e]], end);
        if (c->flags[t] & TASK_INLINE)
            continue;
        events[count++] = (struct event){start[t], 1};
        events[count++] = (struct event){end, -1};
    }
    qsort(events, count, sizeof *events, by_time);
    for (size_t i = 0; i < count; i++) {
        running += events[i].change;
        most = running > most ? running : most;
    }
    return most;
}

/* What predictions need and leave behind. */
struct predictor {
    double *finish;       /* of every task */
    graphi_status status; /* MEMORY: one could not be made, so no choice stands */
};

static double predict(struct draft *draft, struct predictor *p)
{
    const graphi_setting *s = &draft->setting;
    struct simulation simulation;
    graphi_status status = draft_update(draft);
    if (status != GRAPHI_OK)
        p->status = status;
    if (draft->compiled->tasks <= MOST_SIMULATED_TASKS) {
        const struct simulated what = draft_simulated(draft);
        status = simulator_once(&what, NULL, &simulation);
        if (status == GRAPHI_OK)
            return simulation.makespan_ns;
        if (status == GRAPHI_MEMORY)
            p->status = status;
    }
    double work, path;
    sums(draft, s->width, p->finish, &work, &path);
    return work / s->executors + path * (1 - 1.0 / s->executors);
}

/* Estimates leave out what a team loses at the end of every operation, where all wait for the slowest member, and
 * what it pays for rows that another member has in its cache. By the eleven stored sweeps of two cores (bench
 * sweep) one team takes 1.01 to 1.18 times as long against two executors as estimates say, 1.06 in the median.
 * Measured curves have it; descriptions of other machines say what of it there is. */
static const double TEAM_LOSS = 0.05;

/* The best split so far, and what is predicted of it. */
struct best_split {
    graphi_setting setting;
    double ns;
};

static void weigh_split(struct draft *draft, int executors, int width, struct predictor *p, struct best_split *best)
{
    graphi_setting *s = &draft->setting;
    const bool teams = !policy_of(s)->free_width && draft->machine->captured && !draft->measured;
    const double loss = teams && width > 1 ? TEAM_LOSS : 0;
    s->executors = executors;
    s->width = width;
    if (best->setting.executors > 0 && s->backward_executors > executors * width)
        return;
    const double makespan = predict(draft, p);
    text_add(&draft->why, "  %3d executors x %-3d predicted %.3f ms", executors, width, makespan / 1e6);
    if (loss > 0)
        text_add(&draft->why, ", counts %.0f %% more as estimates leave out what members wait", 100 * loss);
    text_add(&draft->why, "\n");
    /* The first whatever is predicted; a tie goes to fewer executors: less waits for each other. */
    if (best->setting.executors <= 0 || makespan * (1 + loss) < 0.99 * best->ns)
        *best = (struct best_split){*s, makespan * (1 + loss)};
}

/* All cores, shared by the executors; or some of them for one team, since small operations gain nothing by more. */
static double split_cores(struct draft *draft, struct predictor *p)
{
    const int cores = draft->machine->cores, limit = cores < draft->graph_width ? cores : draft->graph_width;
    struct best_split best = {draft->setting, INFINITY};
    for (int k = 0; k < limit;) {
        const int next = setting_next_split(cores, k);
        k = next < limit ? next : limit;
        weigh_split(draft, k, cores / k, p, &best);
    }
    for (int width = cores / 2; width >= 1; width /= 2)
        weigh_split(draft, 1, width, p, &best);
    draft->setting = best.setting;
    return best.ns;
}

/* The paper's depth of 1 keeps the choice open until an executor is free. Where operations are short, executors would
 * wait for that choice, and for what it touches to travel between cores: they get some microseconds ahead (bench
 * scheduling-cost), unless the simulator, which sees operations that matter queue behind others, predicts a longer
 * step. */
static void choose_depth(struct draft *draft, struct predictor *p)
{
    graphi_setting *s = &draft->setting;
    const struct compiled *c = draft->compiled;
    double sum = 1;
    s->depth = 1;
    draft->predicted_ns = predict(draft, p);
    for (int32_t t = 0; t < c->tasks; t++)
        sum += curve_ns(&draft->curves[c->curve_of[t]], 1);
    double most = (double)AHEAD_NS * c->tasks / sum;
    int depth = most < RING_DEPTH ? (int)(most + 0.5) : RING_DEPTH;
    if (depth <= 1)
        return;
    s->depth = depth;
    double ahead_ns = predict(draft, p);
    if (ahead_ns < 1.002 * draft->predicted_ns)
        draft->predicted_ns = ahead_ns;
    else
        s->depth = 1;
}

/* One operation at a time and core, of those that are not tiny. */
static double mean_ns(const struct draft *draft)
{
    const struct compiled *c = draft->compiled;
    double sum = 0;
    int32_t count = 0;
    for (int32_t t = 0; t < c->tasks; t++) {
        sum += curve_ns(&draft->curves[c->curve_of[t]], draft->setting.width);
        count += !(c->flags[t] & TASK_INLINE);
    }
    return count ? sum / count : 0;
}

/* Where operations are short the steps are taken before the execution: what they cost is part of the time then, and
 * what nobody takes over from an executor that is late is little. Of few executors: of many one is always late. */
static const double SHORT_NS = 20000;

static void choose_driver(struct draft *draft, graphi_driver asked)
{
    graphi_setting *s = &draft->setting;
    const bool open = asked == GRAPHI_DRIVER_AUTO && s->driver == GRAPHI_DRIVER_COMBINING;
    if (open && s->executors > 1 && s->executors < FEW_EXECUTORS && s->join != GRAPHI_ON && s->light != GRAPHI_ON &&
        s->depth <= 1 && setting_orders_alone(s) && mean_ns(draft) < SHORT_NS)
        s->driver = GRAPHI_DRIVER_STATIC;
}

/* The paper weighs an operation's three fastest widths. With few cores those are all widths there are, and what fits
 * beside others is taken though it is slow. Where times are measured here fewer are weighed if the simulator predicts a
 * gain that is beyond its error. */
static void choose_candidates(struct draft *draft, struct predictor *p)
{
    graphi_setting *s = &draft->setting;
    if (!policy_heeds(s, "candidates") || graphi_setting_parameter(s, "candidates") || !draft->measured ||
        !draft->machine->captured)
        return;
    const int most = (int)policy_parameter(s, "candidates");
    int best = most;
    double usual = predict(draft, p), least = 0.98 * usual;
    for (int candidates = most - 1; candidates >= 1; candidates--) {
        policy_set(s, "candidates", candidates);
        double ns = predict(draft, p);
        best = ns < least ? candidates : best;
        least = fmin(ns, least);
    }
    policy_set(s, "candidates", best);
    if (best < most)
        text_add(&draft->why, "strategy 3 weighs %d of an operation's widths: predicted %.3f ms, %.3f ms with 3\n",
                 best, least / 1e6, usual / 1e6);
}

static void choose_own_depth(struct draft *draft, int wanted, struct predictor *p)
{
    draft->setting.depth = setting_has_rings(&draft->setting) ? wanted : 1;
    if (draft->setting.depth > 0)
        draft->predicted_ns = predict(draft, p);
    else
        choose_depth(draft, p);
}

/* Strategies look at one class at a time: at what it takes, not at what its neighbours pay for data that another team
 * has touched, nor at the order. What they choose is weighed against even teams of the same cores (split.c), which are
 * what profiling runs, so that their predictions are the surest: below this gain the difference is within the error
 * (allot_uniform.c). */
static const double TRUSTED = 0.02;

static bool keeps_uniform(const struct draft *draft)
{
    const graphi_setting *s = &draft->setting;
    const int64_t keep = policy_parameter(s, "keep-uniform");
    bool asked = s->uniform != GRAPHI_OFF && (keep > 0 || (keep == 0 && draft->measured && draft->machine->captured));
    return asked && policy_of(s)->own_teams && draft->compiled->tasks <= MOST_SIMULATED_TASKS;
}

static void weigh_uniform(struct draft *draft, int wanted_depth, struct predictor *p)
{
    graphi_setting *s = &draft->setting, best = *s;
    const graphi_setting own = *s;
    int used = own.executors * own.width;
    double own_ns = draft->predicted_ns, best_ns = INFINITY;
    if (!keeps_uniform(draft))
        return;
    s->uniform = GRAPHI_ON;
    for (int k = 0; (k = setting_next_split(used, k)) != 0;) {
        s->executors = k;
        s->width = used / k;
        choose_own_depth(draft, wanted_depth, p);
        if (draft->predicted_ns < best_ns)
            best = *s, best_ns = draft->predicted_ns;
    }
    bool kept = own_ns > (1 - TRUSTED) * best_ns;
    text_add(&draft->why,
             "%s: widths of its own predicted %.3f ms, teams of %d %.3f ms; %s, as the gain is %s %.0f %%\n",
             graphi_policy_name(own.policy), own_ns / 1e6, best.width, best_ns / 1e6,
             kept ? "the teams are kept" : "its own are followed", kept ? "below" : "at least", 100 * TRUSTED);
    *s = kept ? best : own;
    policy_set(s, "keep-uniform", kept ? 1 : -1);
    draft->predicted_ns = kept ? best_ns : own_ns;
}

/* What is reported is what runs. */
static void fold(struct draft *draft)
{
    graphi_setting *s = &draft->setting;
    const graphi_setting asked = *s;
    if (setting_fold(s))
        text_add(&draft->why, "%s, %d executors x %d threads: critical path first on %d x %d, as %s\n",
                 graphi_policy_name(asked.policy), asked.executors, asked.width, s->executors, s->width,
                 s->backward_executors > 0 ? "the order alone is heeded beside executors of the backward pass"
                                           : "all its teams are of one size");
}

static bool has_backward_pass(const struct compiled *c)
{
    int32_t t = 0;
    while (t < c->tasks && !(c->flags[t] & TASK_BACKWARD))
        t++;
    return t < c->tasks;
}

/* What waking a parked worker takes where nothing was measured, ns: a futex and a turn of the system's scheduler. */
static const double UNMEASURED_WAKE_NS = 20000;

/* Whether the caller's thread may do the work in array order, without lease, affinity and lock file (run_is_serial).
 * Only where nothing of a setting was asked for (all is zero), and on the machine at hand: what is simulated shows
 * policies. */
static bool may_stay(const struct draft *draft)
{
    const graphi_setting *s = &draft->setting;
    return draft->machine->captured && !s->policy && !s->driver && s->executors <= 0 && s->width <= 0 &&
           s->backward_executors <= 0 && s->depth <= 0 && s->inlining != GRAPHI_OFF && !s->light && !s->join &&
           s->pin != GRAPHI_ON;
}

/* Times what waking takes that a split has to gain: a team waits for its last member, whose core others may want.
 * Beyond so many times executors are had at any gain. */
static const double WORTH_WAKING = 2, WORTH_A_LEASE = 20;

/* On the caller's thread where all of the work takes less than waking a worker, or where the best split, predicted to
 * take `together_ns`, gains less than twice that (deepcpu.txt 5.2.4: small recurrences run fastest on one core). */
static void stay_with_caller(struct draft *draft, double together_ns)
{
    graphi_setting *s = &draft->setting;
    const struct compiled *c = draft->compiled;
    const double wake_ns = draft->machine->unpark_ns > 0 ? draft->machine->unpark_ns : UNMEASURED_WAKE_NS;
    const double most = together_ns > 0 ? fmin(together_ns + WORTH_WAKING * wake_ns, WORTH_A_LEASE * wake_ns) : wake_ns;
    double ns = 0;
    for (int32_t t = 0; t < c->tasks && ns < most; t++)
        ns += curve_ns(&draft->curves[c->curve_of[t]], 1);
    if (ns >= most)
        return;
    s->policy = GRAPHI_POLICY_SEQUENTIAL;
    s->executors = s->width = 1;
    text_add(&draft->why, "%.1f us on one thread", ns / 1e3);
    if (together_ns > 0)
        text_add(&draft->why, ", %.1f us together", together_ns / 1e3);
    text_add(&draft->why, ", waking a worker %.1f us: on the caller's thread\n", wake_ns / 1e3);
}

static graphi_status complete(struct draft *draft, struct predictor *p)
{
    graphi_setting *s = &draft->setting;
    int cores = draft->machine->cores;
    const bool given = s->executors > 0 || s->width > 0;
    const graphi_choice uniform = s->uniform;
    const bool open = may_stay(draft);
    if (open)
        stay_with_caller(draft, 0);
    if (policy_of(s)->loop == LOOP_SEQUENTIAL && !given)
        s->executors = 1;
    if (s->executors <= 0 && s->width <= 0) {
        const double together_ns = split_cores(draft, p);
        if (open)
            stay_with_caller(draft, together_ns);
    }
    if (s->executors <= 0)
        s->executors = s->width <= cores ? cores / s->width : 1;
    if (s->width <= 0)
        s->width = s->executors <= cores ? cores / s->executors : 1;
    if ((int64_t)s->executors * s->width > cores)
        return fail(GRAPHI_USAGE, "setting", "found %d executors x %d threads, expected at most %d cores", s->executors,
                    s->width, cores);
    int used = s->executors * s->width;
    if (s->backward_executors > used)
        return fail(GRAPHI_USAGE, "setting",
                    "found %d executors for the backward pass, expected at most the %d threads of %d executors x %d",
                    s->backward_executors, used, s->executors, s->width);
    const graphi_setting asked = *s;
    if (!has_backward_pass(draft->compiled))
        s->backward_executors = 0;
    setting_drop_unheeded(s);
    fold(draft);
    setting_use_left(s, cores);
    choose_driver(draft, asked.driver);
    const char *light = asked.light != GRAPHI_ON      ? ""
                        : used >= cores         ? " (no core is left for a light one)"
                        : s->driver == GRAPHI_DRIVER_STATIC ? " (a static driver has no light one)"
                        : !setting_has_rings(s) ? " (the policy has no light one)"
                                                : "";
    const char *join = asked.join != GRAPHI_ON ? ""
                       : s->join != GRAPHI_ON ? " (no executors that could join)"
                                       : ", idle executors join";
    choose_candidates(draft, p);
    setting_constants(s);
    int wanted_depth = s->depth;
    choose_own_depth(draft, wanted_depth, p);
    weigh_uniform(draft, wanted_depth, p);
    text_add(&draft->why, "%s: %d executors x %d threads%s on %d cores, policy %s, %s driver%s%s\n",
             given && s->uniform == uniform ? "setting" : "chosen", s->executors, s->width,
             s->light == GRAPHI_ON ? " and a light one" : light, cores, graphi_policy_name(s->policy),
             graphi_driver_name(s->driver), join, s->uniform == GRAPHI_ON ? "; uniform: critical path first" : "");
    return p->status;
}

static graphi_status check_parameters(const graphi_setting *wanted)
{
    for (int i = 0; i < GRAPHI_SETTING_PARAMETERS && wanted->parameters[i].name; i++) {
        const graphi_policy_parameter *given = &wanted->parameters[i];
        graphi_policy_parameter_info p = {0};
        for (int k = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, k, &p) && strcmp(p.name, given->name); k++) {
        }
        if (!p.name || strcmp(p.name, given->name) != 0)
            return fail(GRAPHI_USAGE, "setting", "found parameter %.40s, expected one that a policy has", given->name);
        if (p.toggle && (given->value < -1 || given->value > 1))
            return fail(GRAPHI_USAGE, "setting", "found %s %lld, expected -1, 0 or 1", p.name, (long long)given->value);
    }
    return GRAPHI_OK;
}

static graphi_status check_choices(const graphi_setting *wanted)
{
    const struct {
        const char *name;
        graphi_choice choice;
    } list[] = {{"inlining", wanted->inlining}, {"light", wanted->light}, {"join", wanted->join}, {"pin", wanted->pin},
                {"uniform", wanted->uniform}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if ((int)list[i].choice < GRAPHI_OFF || (int)list[i].choice > GRAPHI_ON)
            return fail(GRAPHI_USAGE, "setting", "found %s %d, expected -1, 0 or 1", list[i].name,
                        (int)list[i].choice);
    return GRAPHI_OK;
}

graphi_status setting_check(const graphi_setting *wanted)
{
    if ((unsigned)wanted->policy >= GRAPHI_POLICIES || (unsigned)wanted->driver >= GRAPHI_DRIVERS ||
        wanted->executors < 0 || wanted->width < 0 || wanted->backward_executors < 0)
        return fail(GRAPHI_USAGE, "setting",
                    "found policy %d, driver %d, %d executors (%d backward) x %d threads, expected a "
                    "known policy and driver and counts from 0",
                    (int)wanted->policy, (int)wanted->driver, wanted->executors, wanted->backward_executors,
                    wanted->width);
    TRY(check_choices(wanted));
    return check_parameters(wanted);
}

graphi_status setting_choose(struct draft *draft, const graphi_setting *wanted)
{
    size_t tasks = (size_t)draft->compiled->tasks + 1;
    TRY(setting_check(wanted));
    draft->setting = *wanted;
    double *finish = mem_alloc(sizeof *finish * tasks);
    struct event *events = mem_alloc(sizeof *events * 2 * tasks);
    graphi_status status = GRAPHI_OK;
    if (!finish || !events) {
        status = fail_memory("setting", tasks * sizeof *events * 2);
    } else {
        draft->graph_width = graph_width(draft, finish, events);
        text_add(&draft->why, "graph: %d operations, at most %d side by side (tiny ones left out)\n",
                 draft->compiled->tasks, draft->graph_width);
        status = complete(draft, &(struct predictor){.finish = finish});
    }
    mem_free(finish);
    mem_free(events);
    return status;
}
