/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of several sizes (graphi.txt 6, "different executor thread team sizes"): critical path first, every operation
 * preferably on an executor of the size that it scales to. Its class is the widest of these teams that its curve makes
 * use of, where that was measured: measure.c is the paper's sequential interpreter on a varying number of threads.
 * Before anything was measured it is the word of the operation's kind (graph/op.h). Classes are given once, when the
 * schedule is created; a decision costs a heap operation and up to three bit scans. */
#include "schedule/scheduler.h"

#include "base/status.h"

enum { NARROW, USUAL, WIDE };

/* Least core time that an operation takes on a narrower team, over that on a team of its class: twice the threads are
 * to be 1.4 times as fast, four times 2.8 times where the narrow ones have half of the usual width. */
static const double OF_USE = 0.7;

/* Half of the cores in teams of twice the width, a quarter in the width itself, the rest in narrow ones, as far as they
 * divide. */
static struct team_sizes sizes(int executors, int width)
{
    int cores = executors * width;
    struct team_sizes t = {.width = {width > 1 ? width / 2 : 1, width, 2 * width}};
    t.count[WIDE] = cores / 2 / t.width[WIDE];
    cores -= t.count[WIDE] * t.width[WIDE];
    t.count[USUAL] = width > 1 ? cores / 2 / width : 0;
    cores -= t.count[USUAL] * width;
    t.count[NARROW] = cores / t.width[NARROW];
    t.left = cores % t.width[NARROW];
    return t;
}

struct asymmetric {
    int end[3]; /* slots of a group end here; groups 2, 1, 0 follow each other */
    uint8_t *class; /* of a task */
};

static struct asymmetric *data(const struct schedule *s)
{
    return s->policy_data;
}

static int begin_of(const struct schedule *s, int group)
{
    return group == WIDE ? 0 : data(s)->end[group + 1];
}

static double core_time(const struct schedule *s, const struct cost_curve *curve, int group)
{
    int width = s->slots[begin_of(s, group)].width;
    return width * curve_ns(curve, width);
}

static uint8_t class_of(const struct schedule *s, int32_t task)
{
    static const uint8_t of_kind[] = {NARROW, USUAL, WIDE, WIDE}; /* tasks.scalability */
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[task]];
    if (curve->source == GRAPHI_CURVE_MODELLED)
        return of_kind[s->tasks->scalability ? s->tasks->scalability[task] & 3 : 0];
    for (int group = WIDE; group > NARROW; group--)
        if (begin_of(s, group) < data(s)->end[group] &&
            core_time(s, curve, NARROW) >= OF_USE * core_time(s, curve, group))
            return (uint8_t)group;
    return NARROW;
}

static graphi_status prepare(struct schedule *s)
{
    const struct team_sizes t = sizes(s->setting.executors, s->setting.width);
    struct asymmetric *p = s->policy_data = schedule_alloc(s, 1, sizeof *p);
    if (!p || !(p->class = schedule_alloc(s, (size_t)s->tasks->count, sizeof *p->class)))
        return fail_memory("classes of operations", (size_t)s->tasks->count);
    for (int group = WIDE, at = 0; group >= NARROW; group--)
        p->end[group] = at += t.count[group] + (group == NARROW && t.left);
    for (int32_t task = 0; task < s->tasks->count; task++)
        p->class[task] = class_of(s, task);
    return GRAPHI_OK;
}

/* An idle executor of the size that the class asks for, else of the next smaller, else of the next larger size. */
static int by_class(struct schedule *s, int32_t task)
{
    static const int8_t groups[][3] = {{NARROW, USUAL, WIDE}, {USUAL, NARROW, WIDE}, {WIDE, USUAL, NARROW}};
    const int8_t *group = groups[data(s)->class[task]];
    for (int i = 0; i < 3; i++) {
        int begin = begin_of(s, group[i]), end = data(s)->end[group[i]];
        if (s->self >= begin && s->self < end && bitmap_test(&s->idle, s->self))
            return s->self;
        int slot = bitmap_next(&s->idle, begin, end);
        if (slot >= 0)
            return slot;
    }
    return step_with_room(s);
}

static void explain(const struct schedule *s, int32_t task, struct text *text)
{
    static const char *const names[] = {"narrow", "usual", "wide"};
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[task]];
    text_add(text, "; of class %s by its %s", names[data(s)->class[task]],
             curve->source == GRAPHI_CURVE_MODELLED ? "kind" : "curve");
}

const struct policy policy_asymmetric = { /* graphi.txt 6 */
    .raced = true,
    .sizes = sizes,
    .prepare = prepare,
    .key = policy_by_level,
    .place = by_class,
    .explain = explain,
};
