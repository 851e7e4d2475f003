/* SPDX-License-Identifier: Apache-2.0 */
/* The malleable policy: order and width chosen together against the predicted end of the run. It is list scheduling by
 * level. For the ready tasks it weighs how many to start together: idle workers are shared out among them so that their
 * paths to the sink end together, and the number is taken that minimises the larger of the two bounds of a schedule:
 * the longest path left, which wide tasks shorten, and the work left divided by the workers, which wide tasks enlarge
 * because teams are less efficient.
 *
 * Teams come in quanta of setting.width workers: with small quanta no worker is idle for long, with large ones narrow
 * graphs do not end up with tasks on teams too small for them. Which quantum is best the simulator tells: it is
 * searched for like the width of symmetric executors.
 *
 * Where a search in virtual time has found widths and an order for the whole graph (allot.c; tasks.allotment), these
 * are followed instead: the best ready task starts on as many workers as it was given, and three rules tell what
 * happens when they are too few or too many; or tasks start one after the other in the order found, whatever else is
 * ready.
 *
 * At creation a cap on widths is found that minimises the larger of the two bounds for the whole graph; levels are
 * counted at the widths under the cap. Usually few workers are idle when a decision is made, so few tasks are weighed:
 * below 1 us. */
#include "schedule/scheduler.h"

#include "base/status.h"
#include "schedule/edges.h"

#include <math.h>

enum { MOST_TOGETHER = 8, LOOK_AHEAD = 16 }; /* tasks weighed in one decision; looked at to fill a gap */

struct option {
    int width;
    double ns;
};

struct malleable {
    double *least_work;    /* one a curve: min p * t(p) */
    struct option *narrow; /* one a curve: fastest within the quantum */
    double *capped_ns;     /* one a curve: time at its width under the cap, as counted in levels */
    double work_left;      /* of tasks not yet decided, each at its cheapest width */
    double all_work;
    int64_t ordered, next; /* tasks that are not tiny; in order: key of the one that starts next */
    int cap; /* widths counted in levels */
};

static struct malleable *data(const struct schedule *s)
{
    return s->policy_data;
}

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
        level[task] = edges_most_after(t->edges_begin, t->edges, level, task) +
                      (int64_t)fastest(&t->curves[t->curve_of[task]], cap).ns;
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
    for (int32_t task = 0; task < t->count; task++)
        p->ordered += !(t->flags[task] & TASK_INLINE);
    if (t->allotment) /* nothing is weighed during the run */
        return GRAPHI_OK;
    p->least_work = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->least_work);
    p->capped_ns = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->capped_ns);
    p->narrow = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->narrow);
    s->level = schedule_alloc(s, (size_t)t->count, sizeof *s->level);
    if (!p->least_work || !p->capped_ns || !p->narrow || !s->level)
        return fail_memory("policy", (size_t)t->count * sizeof *s->level);
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
    for (int i = 0; i < t->curves_count; i++) {
        const struct cost_curve *curve = &t->curves[i];
        p->narrow[i] = fastest(curve, s->setting.width);
        p->capped_ns[i] = fastest(curve, p->cap).ns;
        p->least_work[i] = curve_ns(curve, 1);
        for (int k = 0; k < curve->samples; k++)
            p->least_work[i] = fmin(p->least_work[i], curve->width[k] * curve->ns[k]);
    }
    for (int32_t task = 0; task < t->count; task++)
        p->all_work += p->least_work[t->curve_of[task]];
    return GRAPHI_OK;
}

static void begin(struct schedule *s)
{
    data(s)->work_left = data(s)->all_work;
    data(s)->next = data(s)->ordered;
}

static int64_t by_own_level(struct schedule *s, int32_t task)
{
    return s->tasks->allotment ? s->tasks->allotment->key[task] : s->level[task];
}

/* The next wider team worth having within `spare` more workers: the next measured width, or all that is left of the way
 * to it, in whole quanta; width 0 if none is faster by 1 %. */
static struct option wider(const struct cost_curve *curve, struct option from, int spare, int quantum)
{
    for (int i = 0; i < curve->samples && spare > 0; i++) {
        int most = from.width + spare, width = (curve->width[i] + quantum - 1) / quantum * quantum;
        if (width <= from.width)
            continue;
        bool reachable = width <= most;
        struct option to = {reachable ? width : most / quantum * quantum, 0};
        if (to.width <= from.width)
            break;
        to.ns = curve_ns(curve, to.width);
        if (to.ns < 0.99 * from.ns)
            return to;
        if (!reachable)
            break;
    }
    return (struct option){0, 0};
}

/* The `together` best ready tasks start now on `idle` workers: a quantum each, and what is left goes, step by step, to
 * the task whose path would end last. Returns the predicted end: of the paths, of the best task left out, of all work.
 */
static double share_out(const struct schedule *s, int together, int idle, double running, struct option *first)
{
    const struct malleable *p = data(s);
    const struct cost_curve *curves[MOST_TOGETHER];
    struct option options[MOST_TOGETHER];
    double rest[MOST_TOGETHER], least = 0;
    for (int i = 0; i < together; i++) {
        int32_t task = s->formed.list.items[s->formed.list.count - 1 - i].task, curve = s->tasks->curve_of[task];
        curves[i] = &s->tasks->curves[curve];
        options[i] = p->narrow[curve];
        rest[i] = (double)s->level[task] - p->capped_ns[curve];
        least += p->least_work[curve];
    }
    int worst = 0;
    for (int spare = idle - together * s->setting.width;;) {
        worst = 0;
        for (int i = 1; i < together; i++)
            if (options[i].ns + rest[i] > options[worst].ns + rest[worst])
                worst = i;
        struct option to = wider(curves[worst], options[worst], spare, s->setting.width);
        if (!to.width)
            break;
        spare -= to.width - options[worst].width;
        options[worst] = to;
    }
    double work = p->work_left - least + running, soonest = INFINITY;
    for (int i = 0; i < together; i++) {
        work += options[i].width * options[i].ns;
        soonest = fmin(soonest, options[i].ns);
    }
    double end = fmax(options[worst].ns + rest[worst], work / s->workers);
    if (together < s->formed.list.count) /* starts when the first of them ends */
        end = fmax(end, soonest + (double)s->level[s->formed.list.items[s->formed.list.count - 1 - together].task]);
    *first = options[0];
    return end;
}

/* The width of the best ready task: as many tasks are started together as brings the predicted end forward furthest; of
 * equal ends the one that starts more. */
static struct option balanced(const struct schedule *s, int idle, double running)
{
    const struct malleable *p = data(s);
    if (idle < 2 * s->setting.width)
        return p->narrow[s->tasks->curve_of[s->formed.list.items[s->formed.list.count - 1].task]];
    int places = idle / s->setting.width > 1 ? idle / s->setting.width : 1;
    int most = s->formed.list.count < places ? s->formed.list.count : places;
    if (most > MOST_TOGETHER) { /* the best ones share their part of the workers */
        idle = (int)((int64_t)idle * MOST_TOGETHER / most);
        most = MOST_TOGETHER;
    }
    struct option best = {1, 0}, option;
    double best_end = INFINITY;
    for (int together = most; together >= 1; together -= together > 4 ? together / 2 : 1) {
        double end = share_out(s, together, idle, running, &option);
        if (end < 0.999 * best_end) {
            best_end = end;
            best = option;
        }
    }
    return best;
}

/* Work still to be done by running tasks, and when the first of them ends. */
static double running_work(const struct schedule *s, double *first_end, int *freed)
{
    double work = 0;
    *first_end = INFINITY;
    for (int i = 0; i < s->formed.count; i++) {
        const struct formed_team *team = running_team(s, i);
        double left = team->predicted_end - (double)s->now;
        work += left > 0 ? left * team->width : 0;
        if (left < *first_end) {
            *first_end = left > 0 ? left : 0;
            *freed = team->width;
        }
    }
    return work;
}

/* When `width` workers will be idle, and how many more there will be then: running tasks end as predicted. */
static double reserved(const struct schedule *s, int width, int *spare)
{
    double when = (double)s->now;
    for (int idle = s->idle.count; idle < width;) {
        double next = INFINITY;
        int freed = 0;
        for (int i = 0; i < s->formed.count; i++) {
            const struct formed_team *team = running_team(s, i);
            if (team->predicted_end <= when)
                continue;
            if (team->predicted_end < next) {
                next = team->predicted_end;
                freed = 0;
            }
            freed += team->predicted_end == next ? team->width : 0;
        }
        if (next == INFINITY) { /* what is left runs longer than predicted: no promise */
            *spare = 0;
            return when;
        }
        when = next;
        idle += freed;
        *spare = idle - width;
    }
    return when;
}

/* The best ready task wants more workers than are idle: as many as there are, if it ends no later than by waiting. */
static int narrower(const struct schedule *s, int32_t task, int wanted, double until)
{
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[task]];
    int idle = s->idle.count;
    struct option now = fastest(curve, idle);
    double exact = curve_ns(curve, idle);
    if (exact < now.ns)
        now = (struct option){idle, exact};
    return (double)s->now + now.ns <= until + curve_ns(curve, wanted) ? now.width : 0;
}

/* Few are ready: workers that none of the others will take now are shared with the best one. */
static int wider_alone(const struct schedule *s, int at, int wanted)
{
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[s->formed.list.items[at].task]];
    int spare = s->idle.count - wanted;
    for (int i = at - 1; i >= 0 && spare > 0; i--)
        spare -= s->tasks->allotment->width[s->formed.list.items[i].task];
    if (spare <= 0)
        return wanted;
    struct option more = fastest(curve, wanted + (spare + at) / (at + 1));
    return more.width > wanted && more.ns < 0.95 * curve_ns(curve, wanted) ? more.width : wanted;
}

/* Widths and order were found before the run. */
static bool as_allotted(struct schedule *s, struct decision *d)
{
    const struct allotment *a = s->tasks->allotment;
    int at = s->formed.list.count - 1, idle = s->idle.count, spare = 0;
    if (!idle || (a->alone && s->formed.count))
        return false;
    int32_t task = s->formed.list.items[at].task;
    bool counts = a->in_order && !(s->tasks->flags[task] & TASK_INLINE);
    int wanted = a->width[task], width = wanted;
    if (counts && a->key[task] != data(s)->next)
        return false;
    if (wanted < idle && a->wider) {
        width = wider_alone(s, at, wanted);
    } else if (wanted > idle) {
        double until = reserved(s, wanted, &spare);
        width = a->narrower ? narrower(s, task, wanted, until) : 0;
        for (int last = at > LOOK_AHEAD ? at - LOOK_AHEAD : 0;
             !width && a->fill != FILL_NONE && !a->in_order && at > last;) {
            task = s->formed.list.items[--at].task;
            width = a->width[task];
            if (width > idle || (a->fill == FILL_GAPS && width > spare &&
                                 (double)s->now + curve_ns(&s->tasks->curves[s->tasks->curve_of[task]], width) > until))
                width = 0;
        }
        if (!width)
            return false;
    }
    d->item = s->formed.list.items[at];
    d->width = width;
    d->spread = a->spread;
    data(s)->next -= counts;
    ready_list_remove(&s->formed.list, at);
    return true;
}

static bool order_and_width(struct schedule *s, struct decision *d)
{
    if (s->tasks->allotment)
        return as_allotted(s, d);
    struct malleable *p = data(s);
    int idle = s->idle.count, ready = s->formed.list.count, freed = 0;
    if (!idle)
        return false;
    d->item = s->formed.list.items[ready - 1];
    if (data(s)->narrow[s->tasks->curve_of[d->item.task]].width > idle)
        return false;
    double first_end, running = running_work(s, &first_end, &freed);
    struct option choice = balanced(s, idle, running);
    /* Alone with too few idle workers: starting wider once the next running task ends may finish earlier. */
    if (ready == 1 && s->formed.count) {
        struct option later = balanced(s, idle + freed, running);
        if (later.width > idle && first_end + later.ns < 0.95 * choice.ns)
            return false;
    }
    d->width = choice.width;
    s->formed.list.count--;
    p->work_left -= p->least_work[s->tasks->curve_of[d->item.task]];
    return true;
}

static void explain(const struct schedule *s, int32_t task, struct text *text)
{
    const struct malleable *p = data(s);
    const struct allotment *a = s->tasks->allotment;
    if (a) { /* nothing else was prepared */
        text_add(text, "; allotted x%d in the search of the whole graph%s", a->width[task],
                 a->in_order ? ", in its order" : "");
        return;
    }
    const struct option *narrow = &p->narrow[s->tasks->curve_of[task]];
    text_add(text, "; from x%d %.1f us up to x%d so that paths end together, levels count at most x%d", narrow->width,
             narrow->ns / 1e3, s->workers, p->cap);
}

const struct policy policy_malleable = {
    .free_width = true,
    .timed = true,
    .searches = true,
    .prepare = prepare,
    .begin = begin,
    .key = by_own_level,
    .decide = order_and_width,
    .explain = explain,
};
