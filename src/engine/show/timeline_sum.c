/* SPDX-License-Identifier: Apache-2.0 */
/* What a timeline tells: how each lane's time was spent, where idle time was lost, and which chain of operations the
 * execution's length comes from. Pure, after an execution. Usual size: 300 to 20,000 events. */
#include "engine/show/timeline_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int64_t timeline_waited(const struct timeline_event *e, int member)
{
    int64_t took = e->end_ns - e->start_ns, worked = e->worked_ns ? e->worked_ns[member] : took;
    return worked < took ? took - worked : 0;
}

int64_t timeline_team_wait(const struct timeline_event *e)
{
    int64_t sum = 0;
    for (int m = 0; m < e->width; m++)
        sum += timeline_waited(e, m);
    return sum;
}

static int by_start(const void *a, const void *b)
{
    const struct timeline_event *x = *(const struct timeline_event *const *)a,
                                *y = *(const struct timeline_event *const *)b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* A lane becomes idle or busy, or an operation becomes ready or starts. */
struct moment {
    int64_t time;
    int ready, idle; /* lanes that ready operations would run on, and idle ones, from here on: what is added */
    int lane;        /* the idle one; -1: of an operation */
};

struct sums {
    const struct timeline *timeline;
    struct timeline_lane *lane;
    int64_t *until; /* by lane: end of what it ran so far */
    int64_t *team;  /* by lane: of what it ran last, charged as waiting for its team */
    const struct timeline_event **order;
    struct moment *moment;
    size_t moments;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

static void add_span(struct sums *s, int64_t from, int64_t to, struct moment what)
{
    if (to <= from)
        return;
    s->moment[s->moments++] = (struct moment){from, what.ready, what.idle, what.lane};
    s->moment[s->moments++] = (struct moment){to, -what.ready, -what.idle, what.lane};
}

/* Under a static driver a member goes on while others of its team still work: it waited until then at most. */
static void leave_team(struct sums *s, int lane, int64_t time)
{
    const int64_t early = s->until[lane] - time, most = s->team[lane], back = early < most ? early : most;
    if (back <= 0)
        return;
    s->lane[lane].team_ns -= back;
    s->team[lane] -= back;
    s->until[lane] -= back;
}

static void add_event(struct sums *s, const struct timeline_event *e)
{
    add_span(s, e->ready_ns, e->start_ns, (struct moment){.ready = e->width, .lane = -1});
    for (int i = 0; i < e->width; i++) {
        int m = timeline_member(e, i);
        if (m >= s->timeline->lanes)
            continue;
        struct timeline_lane *lane = &s->lane[m];
        leave_team(s, m, e->start_ns);
        int64_t from = e->start_ns > s->until[m] ? e->start_ns : s->until[m];
        int64_t took = e->end_ns > from ? e->end_ns - from : 0, waited = timeline_waited(e, i);
        add_span(s, s->until[m], from, (struct moment){.idle = 1, .lane = m});
        s->team[m] = waited < took ? waited : took;
        lane->team_ns += s->team[m];
        lane->busy_ns += waited < took ? took - waited : 0;
        lane->operations += i == 0 && !e->joined;
        s->until[m] = from + took;
    }
}

/* A lane idle from one moment to another loses what one that is idle all along loses between them. */
static void charge_idle(struct sums *s)
{
    int64_t scheduling = 0, starved = 0, ready = 0, idle = 0;
    qsort(s->moment, s->moments, sizeof *s->moment, by_time);
    for (size_t i = 0; i < s->moments; i++) {
        const struct moment *now = &s->moment[i];
        if (idle > 0) {
            int64_t passed = now->time - s->moment[i - 1].time;
            int64_t late = ready < idle ? (int64_t)((double)passed * (double)ready / (double)idle) : passed;
            scheduling += late;
            starved += passed - late;
        }
        if (now->lane >= 0) {
            s->lane[now->lane].scheduling_ns -= now->idle * scheduling;
            s->lane[now->lane].starved_ns -= now->idle * starved;
        }
        ready += now->ready;
        idle += now->idle;
    }
}

static void sum_up(struct sums *s, struct timeline_totals *totals)
{
    const struct timeline *t = s->timeline;
    *totals = (struct timeline_totals){0};
    for (int64_t i = 0; i < t->count; i++) {
        s->order[i] = &t->events[i];
        totals->span_ns = t->events[i].end_ns > totals->span_ns ? t->events[i].end_ns : totals->span_ns;
    }
    qsort(s->order, (size_t)t->count, sizeof *s->order, by_start);
    for (int64_t i = 0; i < t->count; i++)
        add_event(s, s->order[i]);
    for (int m = 0; m < t->lanes; m++) /* the end of the step */
        add_span(s, s->until[m], totals->span_ns, (struct moment){.idle = 1, .lane = m});
    charge_idle(s);
    double whole = (double)totals->span_ns * t->lanes;
    for (int m = 0; m < t->lanes && whole > 0; m++) {
        totals->busy += (double)s->lane[m].busy_ns / whole;
        totals->starved += (double)s->lane[m].starved_ns / whole;
        totals->scheduling += (double)s->lane[m].scheduling_ns / whole;
        totals->team += (double)s->lane[m].team_ns / whole;
    }
}

graphi_status timeline_sum(const struct timeline *timeline, struct timeline_lane *out, struct timeline_totals *totals)
{
    size_t lanes = (size_t)timeline->lanes, count = (size_t)timeline->count, spans = lanes + count;
    for (size_t i = 0; i < count; i++)
        spans += (size_t)timeline->events[i].width;
    struct sums s = {.timeline = timeline,
                     .lane = mem_zalloc_array(lanes, sizeof *s.lane),
                     .until = mem_zalloc_array(lanes, sizeof *s.until),
                     .team = mem_zalloc_array(lanes, sizeof *s.team),
                     .order = mem_zalloc_array(count, sizeof *s.order),
                     .moment = mem_zalloc_array(2 * spans, sizeof *s.moment)};
    bool enough = s.lane && s.until && s.team && s.order && s.moment;
    if (enough)
        sum_up(&s, totals);
    if (enough && out)
        memcpy(out, s.lane, lanes * sizeof *out);
    mem_free(s.lane);
    mem_free(s.until);
    mem_free(s.team);
    mem_free(s.order);
    mem_free(s.moment);
    return enough ? GRAPHI_OK : fail_memory("timeline", 2 * spans * sizeof *s.moment);
}

void timeline_mark_critical(struct timeline_event *events, int64_t count, const int32_t *begin, const int32_t *list)
{
    int64_t at = -1;
    for (int64_t i = 0; i < count; i++)
        if (at < 0 || events[i].end_ns > events[at].end_ns)
            at = i;
    while (at >= 0 && !events[at].critical) {
        int64_t before = -1;
        events[at].critical = true;
        for (int32_t p = begin[at]; p < begin[at + 1]; p++)
            if (before < 0 || events[list[p]].end_ns > events[before].end_ns)
                before = list[p];
        at = before;
    }
}
