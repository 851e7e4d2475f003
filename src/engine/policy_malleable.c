/* SPDX-License-Identifier: Apache-2.0 */
/* The malleable policy: order and width chosen together against the predicted end of the run. It is list scheduling by level,
 * where the width of each task balances the two bounds of a schedule: the longest path left, which wide tasks shorten, and the
 * work left divided by the workers, which wide tasks enlarge because teams are less efficient. Where fewer tasks are ready than
 * workers idle, idle workers cost nothing and widths grow to share them out.
 *
 * At creation a cap on widths is found that minimises the larger of the two bounds for the whole graph; levels are counted at
 * the widths under the cap. A decision costs a pass over the samples of one cost curve. */
#include "engine/scheduler.h"

#include "base/status.h"

#include <math.h>

struct option {
    int width;
    double ns;
};

struct malleable {
    double *least_work; /* one a curve: min p * t(p) */
    double work_left;   /* of tasks not yet decided, each at its cheapest width */
    double all_work;
    int cap;
};

static struct malleable *data(struct schedule *s) { return s->policy_data; }

/* The fastest measured width up to `cap`, narrower ones preferred when wider gains less than 2 %. */
static struct option fastest(const struct cost_curve *curve, int cap)
{
    struct option best = {1, curve_ns(curve, 1)};
    for (int i = 0; i < curve->samples && curve->width[i] <= cap; i++)
        if (curve->ns[i] < 0.98 * best.ns)
            best = (struct option){curve->width[i], curve->ns[i]};
    return best;
}

static double longest_path(const struct schedule *s, int cap, int64_t *level)
{
    const struct tasks *t = s->tasks;
    double longest = 0;
    for (int32_t task = t->count - 1; task >= 0; task--) { /* array order is topological */
        int64_t most = 0;
        for (int32_t e = t->edges_begin[task]; e < t->edges_begin[task + 1]; e++)
            if (level[t->edges[e]] > most)
                most = level[t->edges[e]];
        level[task] = most + (int64_t)fastest(&t->curves[t->curve_of[task]], cap).ns;
        if ((double)level[task] > longest)
            longest = (double)level[task];
    }
    return longest;
}

static double area(const struct schedule *s, int cap)
{
    const struct tasks *t = s->tasks;
    double sum = 0;
    for (int32_t task = 0; task < t->count; task++) {
        struct option o = fastest(&t->curves[t->curve_of[task]], cap);
        sum += o.width * o.ns;
    }
    return sum / s->workers;
}

static graphi_status prepare(struct schedule *s)
{
    const struct tasks *t = s->tasks;
    struct malleable *p = s->policy_data = schedule_alloc(s, 1, sizeof *p);
    if (!p)
        return fail_memory("policy", sizeof *p);
    p->least_work = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->least_work);
    s->level = schedule_alloc(s, (size_t)t->count, sizeof *s->level);
    if (!p->least_work || !s->level)
        return fail_memory("policy", (size_t)t->count * sizeof *s->level);
    for (int i = 0; i < t->curves_count; i++) {
        p->least_work[i] = curve_ns(&t->curves[i], 1);
        for (int k = 0; k < t->curves[i].samples; k++)
            p->least_work[i] = fmin(p->least_work[i], t->curves[i].width[k] * t->curves[i].ns[k]);
    }
    double best = INFINITY;
    for (int cap = 1;; cap = 2 * cap < s->workers ? 2 * cap : s->workers) {
        double bound = fmax(longest_path(s, cap, s->level), area(s, cap));
        if (bound < 0.99 * best) {
            best = bound;
            p->cap = cap;
        }
        if (cap == s->workers)
            break;
    }
    longest_path(s, p->cap, s->level);
    for (int32_t task = 0; task < t->count; task++)
        p->all_work += p->least_work[t->curve_of[task]];
    return GRAPHI_OK;
}

static void begin(struct schedule *s) { data(s)->work_left = data(s)->all_work; }

static int64_t by_own_level(struct schedule *s, int32_t task) { return s->level[task]; }

/* The width up to `most` that brings the larger of path and work forward furthest; ties to the narrower. */
static struct option balanced(const struct schedule *s, int32_t task, int most, double running)
{
    const struct malleable *p = s->policy_data;
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[task]];
    double rest = (double)s->level[task] - fastest(curve, p->cap).ns;
    double others = p->work_left - p->least_work[s->tasks->curve_of[task]] + running;
    struct option best = {1, curve_ns(curve, 1)};
    double best_bound = fmax(best.ns + rest, (others + best.ns) / s->workers);
    for (int i = 0; i < curve->samples && curve->width[i] <= most; i++) {
        double ns = curve->ns[i], bound = fmax(ns + rest, (others + curve->width[i] * ns) / s->workers);
        if (bound < 0.999 * best_bound) {
            best = (struct option){curve->width[i], ns};
            best_bound = bound;
        }
    }
    return best;
}

/* Work still to be done by running tasks, and when the first of them ends. */
static double running_work(const struct schedule *s, double *first_end, int *freed)
{
    double work = 0;
    *first_end = INFINITY;
    for (int i = 0; i < s->running_count; i++) {
        const struct slot *slot = &s->slots[s->running_slots[i]];
        double left = slot->predicted_end - (double)s->now;
        work += left > 0 ? left * slot->running : 0;
        if (left < *first_end) {
            *first_end = left > 0 ? left : 0;
            *freed = slot->running;
        }
    }
    return work;
}

static bool order_and_width(struct schedule *s, struct decision *d)
{
    struct malleable *p = data(s);
    int idle = s->idle.count, ready = s->list.count, freed = 0;
    if (!idle)
        return false;
    d->item = s->list.items[ready - 1];
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[d->item.task]];
    double first_end, running = running_work(s, &first_end, &freed);
    struct option choice = balanced(s, d->item.task, idle, running);
    int share = idle / ready;
    if (share > choice.width) { /* workers that nobody else could use now */
        struct option wider = fastest(curve, share);
        if (wider.ns < choice.ns)
            choice = wider;
    }
    /* Alone with too few idle workers: starting wider once the next running task ends may finish earlier. */
    if (ready == 1 && s->running_count) {
        struct option later = balanced(s, d->item.task, idle + freed, running);
        if (later.width > idle && first_end + later.ns < 0.95 * choice.ns)
            return false;
    }
    d->width = choice.width;
    s->list.count--;
    p->work_left -= p->least_work[s->tasks->curve_of[d->item.task]];
    return true;
}

const struct policy policy_malleable = {
    .name = "malleable", .free_width = true, .timed = true,
    .prepare = prepare, .begin = begin, .key = by_own_level, .decide = order_and_width,
};
