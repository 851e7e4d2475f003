/* SPDX-License-Identifier: Apache-2.0 */
/* Per-operation durations: the graph runs by level, one operation at a time, on teams of growing width; every
 * operation's time is the median over executions, averaged over its class, and each class climbs until its time rises.
 * One width after the other within a round, so a disturbance of the machine does not fall on one width alone. Where
 * cores share level-2 caches each width is measured twice, on neighbours and with one worker a tile; elsewhere the two
 * are the same.
 *
 * Further executions a round show what else an operation's time depends on, per class, by comparison within the round:
 * with as many executors as cores operations run side by side (shared caches and memory, inputs that another core has
 * just written): `beside`; in array order, that of the sequential policy, operands were written a shorter while ago:
 * `in_order`. In two further ones half of the classes run on one core and the others on all, then the other way round:
 * what they touch is with other cores than theirs: `moved`. Where the time is over before it, as when profiling once,
 * the second of these is left out: classes that were then not seen in a way take the mean of the others. All of it is
 * measured per operation; no makespan is looked at. */
#include "base/clock.h"
#include "base/status.h"
#include "engine/choose/allotment.h"
#include "engine/choose/planning.h"
#include "engine/compile/classes.h"
#include "engine/cost/climb.h"
#include "engine/cost/curve_set.h"
#include "engine/cost/origin.h"
#include "engine/tune/measure.h"
#include "engine/tune/two_ways.h"
#include "machine/machine.h"
#include "machine/others.h"
#include "schedule/setting_canonical.h"

#include <math.h>
#include <string.h>

enum { AT_ONCE = 8, MIXED = 2, EXTRA = 2 + MIXED, MOST_ROUNDS = 8, PRIOR_EXECUTIONS = 8 };
enum { TRUSTED = 3 }; /* executions: a median of fewer may be a disturbance, and is for this plan alone */

struct width {
    graphi_plan *plan;
    struct schedule *schedule;
    float *ns;   /* one row of tasks an execution */
    float *load; /* the same: part of the other cores that ran operations meanwhile; only beside others */
    float *elsewhere; /* the same: part of what it touched that was with other cores; where teams differ */
    int width, executions;
    bool spread; /* one worker a tile */
};

/* allotment: the plan's, of a malleable policy; NULL: none. */
static graphi_status open_plan(const graphi_plan *base, graphi_policy policy, int executors, int width,
                               struct allotment *allotment, struct width *w)
{
    graphi_setting setting = {.policy = policy,
                              .driver = GRAPHI_DRIVER_COMBINING,
                              .executors = executors,
                              .width = width,
                              .inlining = GRAPHI_OFF,
                              .light = GRAPHI_OFF,
                              .parameters = {{"keep-uniform", -1}}};
    setting_place(&setting, &base->setting);
    const struct plan_parts parts = {.machine = base->machine,
                                     .curves = base->curves,
                                     .measured = base->measured,
                                     .setting = &setting,
                                     .allotment = allotment};
    TRY(plan_make(base->compiled, &parts, &w->plan));
    return schedule_create(&w->plan->tasks, w->plan->decided, &w->schedule);
}

static graphi_status open_rows(const graphi_plan *base, int executors, struct width *w)
{
    size_t tasks = (size_t)base->compiled->tasks + 1;
    w->ns = mem_zalloc_array(tasks * MOST_ROUNDS, sizeof *w->ns);
    w->load = executors > 1 ? mem_zalloc_array(tasks * MOST_ROUNDS, sizeof *w->load) : NULL;
    w->elsewhere = executors > 1 ? mem_zalloc_array(tasks * MOST_ROUNDS, sizeof *w->elsewhere) : NULL;
    if (!w->ns || (executors > 1 && (!w->load || !w->elsewhere)))
        return fail_memory("measurement", tasks * MOST_ROUNDS * sizeof *w->ns);
    return GRAPHI_OK;
}

static graphi_status width_open(const graphi_plan *base, graphi_policy policy, int executors, int width,
                                struct width *w)
{
    w->width = width;
    TRY(open_rows(base, executors, w));
    return open_plan(base, policy, executors, width, NULL, w);
}

/* One operation at a time, by level, on a team of this width, of one worker a tile if `spread`, or on one worker for
 * classes marked in `narrow` (NULL: none). */
static graphi_status allotted_open(const graphi_plan *base, int width, bool spread, const bool *narrow, struct width *w)
{
    const struct compiled *c = base->compiled;
    w->width = width;
    w->spread = spread;
    TRY(open_rows(base, base->machine->cores, w));
    struct allotment *allotment = allotment_create((size_t)c->tasks, width);
    if (!allotment)
        return fail_memory("measurement", (size_t)c->tasks * sizeof *allotment->width);
    allotment->alone = true;
    allotment->spread = spread;
    for (int32_t t = 0; t < c->tasks; t++) {
        allotment->key[t] = base->level[t];
        if (narrow && narrow[c->curve_of[t]])
            allotment->width[t] = 1;
    }
    return open_plan(base, GRAPHI_POLICY_MALLEABLE, base->machine->cores, 1, allotment, w);
}

static void width_close(struct width *w)
{
    schedule_destroy(w->schedule);
    graphi_plan_destroy(w->plan);
    mem_free(w->ns);
    mem_free(w->load);
    mem_free(w->elsewhere);
}

static graphi_status width_run(graphi_run *run, struct width *w, const struct seating *seating)
{
    run_adopt(run, w->plan, w->schedule);
    TRY(graphi_run_execute(run));
    int32_t tasks = w->plan->compiled->tasks;
    size_t row = (size_t)w->executions++ * (size_t)tasks;
    for (int32_t t = 0; t < tasks; t++) {
        const struct task_record *r = &run->records[t];
        w->ns[row + (size_t)t] = (float)(r->end_ns - r->start_ns);
        seating->seat[t] = (struct seat){.leader = r->leader, .width = r->width};
    }
    for (int32_t t = 0; t < tasks && w->elsewhere; t++)
        w->elsewhere[row + (size_t)t] = (float)origins_elsewhere(&seating->origins, seating->seat, t);
    return w->load ? records_load(run->records, tasks, w->plan->setting.executors, w->load + row) : GRAPHI_OK;
}

/* Median over executions: an interrupt in one of them does not make the operation longer. */
static double usual_ns(const struct width *w, int32_t task, int32_t tasks)
{
    float sorted[MOST_ROUNDS];
    int count = 0;
    for (int e = 0; e < w->executions; e++) {
        float ns = w->ns[(size_t)e * (size_t)tasks + (size_t)task];
        int at = count++;
        for (; at > 0 && sorted[at - 1] > ns; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = ns;
    }
    return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

/* Short disturbances fall on other operations in every execution: no operation's median has them, but each execution
 * has. Its usual time over the sum of the medians. */
static double disturbance(const struct width *w, int32_t tasks)
{
    struct width sums = {.executions = w->executions};
    float sum[MOST_ROUNDS] = {0};
    double medians = 0;
    sums.ns = sum;
    for (int32_t t = 0; t < tasks; t++) {
        medians += usual_ns(w, t, tasks);
        for (int e = 0; e < w->executions; e++)
            sum[e] += w->ns[(size_t)e * (size_t)tasks + (size_t)t];
    }
    return medians > 0 ? usual_ns(&sums, 0, 1) / medians : 1;
}

/* Class means of one width into the curves. */
static graphi_status collect(const struct compiled *c, const struct width *w, const struct climb_limits *limits,
                             struct climb *climbs)
{
    double longer = disturbance(w, c->tasks);
    double *sum = mem_zalloc_array((size_t)c->curves + 1, sizeof *sum);
    int *count = mem_zalloc_array((size_t)c->curves + 1, sizeof *count);
    if (!sum || !count) {
        mem_free(sum);
        mem_free(count);
        return fail_memory("measurement", (size_t)c->curves * sizeof *sum);
    }
    for (int32_t t = 0; t < c->tasks; t++) {
        sum[c->curve_of[t]] += usual_ns(w, t, c->tasks);
        count[c->curve_of[t]]++;
    }
    for (int32_t i = 0; i < c->curves; i++)
        for (int spread = 0; spread < 2; spread++) /* one worker is both */
            if ((spread == w->spread || w->width == 1) && climb_next(limits, &climbs[i], spread) == w->width)
                climb_add(limits, &climbs[i], spread, w->width, longer * sum[i] / count[i]);
    mem_free(sum);
    mem_free(count);
    return GRAPHI_OK;
}

static double mean_of(const float *rows, const struct width *w, int32_t task, int32_t tasks)
{
    double sum = 0;
    for (int e = 0; e < w->executions; e++)
        sum += rows[(size_t)e * (size_t)tasks + (size_t)task];
    return sum / fmax(1, w->executions);
}

/* Two ways of running, both in the same rounds. */
struct comparison {
    const struct width *usual, *other[2];
    const bool *second;  /* classes whose other way is other[1]; NULL: none */
    const double *moved; /* factors known by which tasks take longer in the other way; NULL: none */
    bool moving;         /* they are what is asked for */
};

/* Factors of classes between them. */
static graphi_status compare(const struct compiled *c, const struct comparison *k, double *factor)
{
    size_t tasks = (size_t)c->tasks + 1;
    double *ns = mem_zalloc_array(3 * tasks, sizeof *ns);
    if (!ns)
        return fail_memory("measurement", 3 * tasks * sizeof *ns);
    double *there = ns + tasks, *part = there + tasks;
    double longer = disturbance(k->usual, c->tasks), longer_there[2] = {disturbance(k->other[0], c->tasks), 0};
    longer_there[1] = k->second && k->other[1]->executions ? disturbance(k->other[1], c->tasks) : 0;
    for (int32_t t = 0; t < c->tasks; t++) {
        int32_t class = c->curve_of[t];
        bool second = k->second && k->second[class];
        const struct width *other = k->other[second];
        double elsewhere = k->moved || k->moving ? mean_of(other->elsewhere, other, t, c->tasks) : 0;
        there[t] = ns[t] = longer * usual_ns(k->usual, t, c->tasks);
        if (!other->executions) /* no part of it was seen in the other way */
            continue;
        there[t] = longer_there[second] * usual_ns(other, t, c->tasks);
        if (k->moved)
            there[t] -= ns[t] * (k->moved[class] - 1) * elsewhere;
        part[t] = k->moving ? elsewhere : other->load ? mean_of(other->load, other, t, c->tasks) : 1;
    }
    struct two_ways ways = {c->tasks, c->curves, c->curve_of, ns, there, part, k->moving ? MOST_MOVED : MOST_LONGER};
    graphi_status status = class_factors(&ways, PRIOR_EXECUTIONS / fmax(1, k->other[0]->executions), factor);
    mem_free(ns);
    return status;
}

static double spread_of(const struct compiled *c, const struct width *w)
{
    double deviation = 0, total = 0;
    for (int32_t t = 0; t < c->tasks; t++) {
        double sum = 0, sum2 = 0;
        for (int e = 0; e < w->executions; e++) {
            double ns = w->ns[(size_t)e * (size_t)c->tasks + (size_t)t];
            sum += ns;
            sum2 += ns * ns;
        }
        double mean = sum / w->executions;
        deviation += sqrt(fmax(0, sum2 / w->executions - mean * mean));
        total += mean;
    }
    return total > 0 ? deviation / total : 0;
}

/* Packed forms, pages and caches. At the begin, not once a width: of steps of seconds that took half of the time, and
 * of short ones the median over rounds leaves out what a width's first execution met. */
static graphi_status warm_up(graphi_run *run, const struct width *width, const struct patience *patience)
{
    TRY(patience_stopped(patience));
    run_adopt(run, width->plan, width->schedule);
    return graphi_run_execute(run);
}

/* --- whether a round fits --- */

/* As far as the plan knows, all operations one after the other. */
static double all_at(const graphi_plan *base, int width)
{
    double ns = 0;
    for (int32_t t = 0; t < base->compiled->tasks; t++)
        ns += curve_ns(&base->curves[base->compiled->curve_of[t]], width);
    return ns;
}

/* Executions at the widest width that a round is worth. */
static double round_length(const graphi_plan *base, const struct width *widths, int count, int widest_width, bool extra)
{
    double widest = all_at(base, widest_width), narrowest = all_at(base, 1) / widest;
    double length = extra ? 2 + MIXED * (1 + narrowest) / 2 : 0; /* beside, in order, and half of the classes narrow */
    for (int i = 0; i < count; i++)
        length += all_at(base, widths[i].width) / widest;
    return length;
}

enum { SECOND = 2 }; /* executions for which there has to be time */

/* ns of a round of so many executions, each as long as the last one, where that is too long; else 0. */
static double too_long(const graphi_run *run, double length, double short_ns, const struct patience *patience)
{
    double ns = run->info.last_ms * 1e6 * length;
    return ns > fmax(short_ns, (double)(patience->deadline - clock_ns())) ? ns : 0;
}

/* After the first execution, which also packs weights and waits for fresh pages: where there is time for a second one,
 * that tells. */
static graphi_status missing_time(graphi_run *run, const struct width *widest, double length, double short_ns,
                                  const struct patience *patience, double *ns)
{
    *ns = too_long(run, length, short_ns, patience);
    if (*ns > 0 && too_long(run, SECOND, short_ns, patience) <= 0) {
        TRY(warm_up(run, widest, patience));
        *ns = too_long(run, length, short_ns, patience);
    }
    return GRAPHI_OK;
}

/* --- rounds --- */

/* One round, and further ones while they fit. Where there is no time left in the first the last width does not run, if
 * it is to spare. */
static graphi_status measure_rounds(graphi_run *run, struct width *widths, int count, bool spare,
                                    const struct seating *seating, const struct patience *patience)
{
    struct patience next = *patience;
    for (int round = 0; round < MOST_ROUNDS && (round == 0 || !patience_over(&next)); round++) {
        int64_t begin = clock_ns();
        if (round && patience->between) /* what ran there has emptied the caches */
            TRY(warm_up(run, &widths[0], patience));
        for (int i = 0; i < count - (round == 0 && spare && patience_over(patience)); i++) {
            TRY(patience_stopped(patience));
            TRY(width_run(run, &widths[i], seating));
        }
        if (patience->between)
            TRY(patience->between(patience->context));
        next.deadline = patience->deadline - (clock_ns() - begin);
    }
    return GRAPHI_OK;
}

struct climbing {
    const graphi_plan *base;
    struct climb_limits limits;
    struct climb *climb; /* one a class */
    double *beside, *in_order, *moved[2]; /* one a class; 0: not measured */
    struct seating seating;
    double spread;
    int executions, last[2]; /* last: widest width measured, on neighbours and spread */
    int fewest; /* executions, of all batches of widths */
    double short_ns;   /* of climb_options */
    double missing_ns; /* > 0: the round did not fit */
};

/* What each class's time depends on beyond its width. */
static graphi_status compare_all(struct climbing *k, const struct width *narrowest, const struct width *widest,
                                 const struct width *beside, const struct width *in_order, const struct width *mixed)
{
    const struct compiled *c = k->base->compiled;
    const struct comparison moved[2] = {{narrowest, {&mixed[0], &mixed[1]}, k->seating.other_half, NULL, true},
                                        {widest, {&mixed[0], &mixed[1]}, k->seating.half, NULL, true}};
    for (int i = 0; i < 2; i++)
        TRY(compare(c, &moved[i], k->moved[i]));
    TRY(compare(c, &(struct comparison){narrowest, {beside}, NULL, k->moved[0], false}, k->beside));
    return compare(c, &(struct comparison){widest, {in_order}, NULL, NULL, false}, k->in_order);
}

/* The next few widths, in alternation; then every class takes what it still wants of them. */
static graphi_status climb_on(graphi_run *run, struct climbing *k, const struct patience *patience)
{
    struct width widths[AT_ONCE + EXTRA] = {{0}};
    const struct compiled *c = k->base->compiled;
    int count = 0, cores = k->base->machine->cores, extra = !k->executions && cores > 1 ? EXTRA : 0;
    graphi_status status = GRAPHI_OK;
    for (int next; !status && count < AT_ONCE && (next = climb_after(&k->limits, false, k->last[0])) != 0;
         k->last[0] = next)
        status = width_open(k->base, GRAPHI_POLICY_CRITICAL_PATH, 1, next, &widths[count++]);
    const struct width *narrowest = &widths[0], *widest = &widths[count - (count > 0)];
    for (int next; !status && count < AT_ONCE && (next = climb_after(&k->limits, true, k->last[1])) != 0;
         k->last[1] = next)
        status = allotted_open(k->base, next, true, NULL, &widths[count++]);
    struct width *beside = &widths[count], *in_order = beside + 1, *mixed = beside + 2;
    if (!status && extra)
        status = width_open(k->base, GRAPHI_POLICY_CRITICAL_PATH, cores, 1, beside);
    if (!status && extra)
        status = width_open(k->base, GRAPHI_POLICY_SEQUENTIAL, 1, widest->width, in_order);
    for (int half = 0; half < MIXED && !status && extra; half++)
        status = allotted_open(k->base, widest->width, false, half ? k->seating.other_half : k->seating.half,
                              &mixed[half]);
    if (!status && !k->executions)
        status = warm_up(run, widest, patience);
    if (!status && !k->executions && k->short_ns > 0)
        status = missing_time(run, widest, round_length(k->base, widths, count, widest->width, extra), k->short_ns,
                              patience, &k->missing_ns);
    bool measured = !status && k->missing_ns <= 0;
    if (measured)
        status = measure_rounds(run, widths, count + extra, extra > 0, &k->seating, patience);
    measured &= !status;
    if (measured && (!k->fewest || widths[0].executions < k->fewest))
        k->fewest = widths[0].executions;
    if (measured && !k->executions) {
        k->spread = spread_of(c, &widths[0]);
        k->executions = widths[0].executions;
    }
    if (measured && extra)
        status = compare_all(k, narrowest, widest, beside, in_order, mixed);
    for (int i = 0; i < count && measured && !status; i++)
        status = collect(c, &widths[i], &k->limits, k->climb);
    for (int i = 0; i < count + extra; i++)
        width_close(&widths[i]);
    return status;
}

static bool wanted(const struct climbing *k)
{
    for (int32_t i = 0; i < k->base->compiled->curves; i++)
        if (climb_next(&k->limits, &k->climb[i], false) || climb_next(&k->limits, &k->climb[i], true))
            return true;
    return false;
}

/* What each class's climb found; classes without one were known before, or there was no time. Gives how many of those
 * are as old as the plan, or were disturbed. */
static int32_t conclude(const struct climbing *k, struct cost_curve *curves)
{
    int32_t left = 0;
    for (int32_t i = 0; i < k->base->compiled->curves; i++) {
        if (!k->climb[i].mode[0].samples) {
            left += !curves[i].samples || curves[i].disturbed;
            curves[i] = curves[i].samples ? curves[i] : k->base->curves[i];
            continue;
        }
        climb_curve(&k->climb[i], &curves[i]);
        curves[i].interval = k->limits.exhaustive ? 0 : k->limits.interval;
        curves[i].beside = k->beside[i];
        curves[i].in_order = k->in_order[i];
        curves[i].moved[0] = k->moved[0][i];
        curves[i].moved[1] = k->moved[1][i];
    }
    return left;
}

static int32_t count_stored(const struct compiled *c, const struct cost_curve *curves)
{
    int32_t count = 0;
    for (int32_t k = 0; k < c->curves; k++)
        count += curves[k].source == GRAPHI_CURVE_STORED;
    return count;
}

graphi_status measure_curves(graphi_run *run, const struct patience *patience, const struct climb_options *options,
                             struct measurement *out)
{
    const graphi_plan *base = run->plan;
    size_t classes = (size_t)base->compiled->curves;
    int cores = base->machine->cores;
    TRY(curve_set_fits(options->known, base->machine));
    struct climbing k = {.base = base,
                         .limits = climb_limits(cores, base->machine->tiles, options->interval, options->exhaustive),
                         .last = {0, 1},
                         .short_ns = options->short_ns,
                         .climb = mem_zalloc_array(classes + 1, sizeof *k.climb),
                         .beside = mem_zalloc_array(4 * (classes + 1), sizeof *k.beside)};
    k.in_order = k.beside ? k.beside + classes + 1 : NULL;
    for (int i = 0; i < 2 && k.beside; i++)
        k.moved[i] = k.in_order + (size_t)(i + 1) * (classes + 1);
    struct cost_curve *curves = mem_zalloc_array(classes + 1, sizeof *curves);
    graphi_status status = curves && k.climb && k.beside ? graphi_run_trace(run, true)
                                                         : fail_memory("measurement", classes * sizeof *k.climb);
    struct schedule *before = run->schedule;
    if (!status)
        status = seating_open(&base->tasks, &k.seating);
    const int interval = options->exhaustive ? 0 : k.limits.interval;
    if (!status)
        curve_set_take(options->known, plan_class_keys(base), interval, curves);
    for (size_t i = 0; i < classes && !status; i++)
        k.climb[i].mode[0].done = k.climb[i].mode[1].done = curves[i].samples > 0 && !curves[i].disturbed;
    const struct others began = others_read("/proc/stat");
    while (!status && k.missing_ns <= 0 && wanted(&k))
        status = climb_on(run, &k, patience);
    run_adopt(run, base, before);
    graphi_run_trace(run, false);
    const int32_t left = status ? 0 : conclude(&k, curves);
    if (!status && options->known && k.executions > 0 && (k.fewest >= TRUSTED || options->exhaustive))
        status = curve_set_learn(options->known, plan_class_keys(base), curves, others_were_there(&began));
    seating_close(&k.seating);
    mem_free(k.climb);
    mem_free(k.beside);
    if (status)
        mem_free(curves);
    else
        *out = (struct measurement){.curves = curves,
                                    .known = count_stored(base->compiled, curves),
                                    .left = left,
                                    .spread = k.spread,
                                    .executions = k.executions,
                                    .interval = k.limits.interval,
                                    .missing_ns = k.missing_ns,
                                    .both_modes = k.limits.tiles < cores};
    if (!status && out->known == base->compiled->curves) /* some to be measured again, which serve until then */
        out->missing_ns = 0;
    return status;
}
