/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of the search for widths and order (allot.c): from the best so far, widths and priorities of tasks are
 * changed, most often of the chain that determines the makespan, alone, with all others of their class, or with what
 * runs at about the same time. A change stays when the makespan falls, or rises by no more than search_tolerates(). */
#include "engine/choose/allot_walk.h"

enum { SCANS_A_SIMULATION = 256 }; /* that cost as much as one */

/* The chain of the best schedule: from the task that ends last, each time to what it waited for: the latest of its
 * predecessors, or where it was ready long before, the task that ended last before it started. */
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
                if (r[v].end_ns <= r[at].start_ns && r[v].end_ns > ready &&
                    (before < 0 || r[v].end_ns > r[before].end_ns))
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
    return s->choices[begin + (int32_t)search_draw(s, (uint32_t)(end - begin))].width;
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
    double middle = s->base_ns * search_draw(s, 1024) / 1024, half = s->base_ns / (2 << search_draw(s, 8));
    int32_t of = search_draw(s, 2) ? (int32_t)search_draw(s, (uint32_t)s->t->count) : -1,
            class = of < 0 ? -1 : s->t->curve_of[of];
    int width = of >= 0 && search_draw(s, 2) ? any_width(s, of) : 0;
    for (int32_t v = 0; v < s->t->count; v++)
        if ((class < 0 || s->t->curve_of[v] == class) && (double)s->base_records[v].end_ns > middle - half &&
            (double)s->base_records[v].start_ns < middle + half)
            s->now->width[v] = (uint16_t)(width ? width : step_width(s, v, c->up));
}

static void other_rules(struct search *s, const struct change *c)
{
    if (search_draw(s, 4) == 0)
        search_rules(s, (int)search_draw(s, SEARCH_RULES));
    else
        widen_task(s, c);
}

/* One of these, each entry as often as the others. */
static void (*const moves[])(struct search *, const struct change *) = {shift_task,   shift_class,  widen_alike,
                                                                        widen_window, widen_class,  widen_window,
                                                                        other_rules,  widen_window, widen_task};

static void change(struct search *s, int chain)
{
    int32_t task =
        search_draw(s, 4) ? s->chain[search_draw(s, (uint32_t)chain)] : (int32_t)search_draw(s, (uint32_t)s->t->count);
    struct change c = {
        .task = task, .class = s->t->curve_of[task], .up = search_draw(s, 2), .from = s->now->width[task]};
    c.shift = (c.up ? 1 : -1) * (int64_t)(s->base_ns / 128) * (1 + search_draw(s, 16));
    c.to = search_draw(s, 2) ? step_width(s, task, c.up) : any_width(s, task);
    moves[search_draw(s, sizeof moves / sizeof *moves)](s, &c);
    search_order_by_level(s);
}

void search_walk(struct search *s, int64_t rest)
{
    double all = (double)(s->left - rest);
    int chain = chain_of(s);
    while (s->left > rest) {
        double left = (double)(s->left - rest) / all;
        change(s, chain);
        double ns = search_makespan(s);
        if (search_tolerates(s, ns - s->base_ns, left)) {
            search_settle(s, ns);
            chain = chain_of(s);
        } else {
            search_back(s);
        }
    }
}
