/* SPDX-License-Identifier: Apache-2.0 */
/* Insertion into a profile of free workers, and double justification (Valls, Ballestin, Quintanilla 2005: every task as
 * late as possible, the latest first, then as early as possible, the earliest first; neither makes a schedule longer).
 *
 * The profile is a list of moments at which the number of free workers changes, in an array: a moment is never removed,
 * so a task remembers the one at which it ends and its successors look from there on. The backward pass is the forward
 * one on the reversed graph, in time counted from the end. One thread; no allocation after creation. Usual size: 100 to
 * 3,000 tasks; below 0.3 us a task and pass where operations are side by side by the dozen. */
#include "engine/choose/insertion.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct moment {
    double time;
    int32_t next; /* -1: the last, at which all workers are free for ever */
    int32_t free; /* workers */
    double gbs;   /* of the memory */
};

struct ranked {
    double key;  /* larger first; then the lower task, in the backward pass the higher one */
    int32_t tie; /* task, or its complement */
};

/* What a task takes. */
struct shape {
    int width;
    double ns, gbs;
};

/* A task of one curve and width: none fits from one moment on before the other. */
struct searched {
    int32_t from, to; /* from -1: not looked for */
};

struct insertion {
    struct insertion_input in;
    const double *bytes; /* NULL: memory does not count in this run */
    struct searched *searched; /* one a choice */
    struct moment *moments;
    int32_t count;
    struct ranked *order;
    int32_t *end_at;     /* moment at which a task ends, in this pass */
    uint16_t *width;     /* of this pass */
    double *start, *now; /* start: of the best pass, counted from the begin */
    int64_t steps, limit; /* looks at the profile */
};

graphi_status insertion_create(const struct insertion_input *in, struct insertion **out)
{
    struct insertion *p = mem_zalloc(sizeof *p);
    size_t n = (size_t)in->tasks->count + 1;
    if (!p)
        return fail_memory("insertion", sizeof *p);
    p->in = *in;
    p->moments = mem_zalloc_array(2 * n + 2, sizeof *p->moments);
    p->order = mem_zalloc_array(n, sizeof *p->order);
    p->searched = mem_zalloc_array((size_t)in->choices_begin[in->tasks->curves_count] + 1, sizeof *p->searched);
    p->width = mem_zalloc_array(n, sizeof *p->width);
    p->end_at = mem_zalloc_array(n, sizeof *p->end_at);
    p->start = mem_zalloc_array(n, sizeof *p->start);
    p->now = mem_zalloc_array(n, sizeof *p->now);
    if (!p->moments || !p->order || !p->searched || !p->width || !p->end_at || !p->start || !p->now) {
        insertion_destroy(p);
        return fail_memory("insertion", n * 64);
    }
    *out = p;
    return GRAPHI_OK;
}

void insertion_destroy(struct insertion *p)
{
    if (!p)
        return;
    mem_free(p->moments);
    mem_free(p->order);
    mem_free(p->width);
    mem_free(p->searched);
    mem_free(p->end_at);
    mem_free(p->start);
    mem_free(p->now);
    mem_free(p);
}

/* A moment at `time`, which is not before that of `at`, the last one known not to be later. */
static int32_t moment_at(struct insertion *p, int32_t at, double time)
{
    while (p->moments[at].next >= 0 && p->moments[p->moments[at].next].time <= time) {
        at = p->moments[at].next;
        p->steps++;
    }
    if (p->moments[at].time == time)
        return at;
    p->moments[p->count] = p->moments[at];
    p->moments[p->count].time = time;
    p->moments[at].next = p->count;
    return p->count++;
}

/* Is `at` where a task of this shape was looked for in vain, or where it was found? */
static bool known(const struct insertion *p, const struct searched *s, int32_t at)
{
    double time = p->moments[at].time;
    return s->from >= 0 && p->moments[s->from].time <= time && time <= p->moments[s->to].time;
}

/* The first moment from `at` on after which a task of this width is free for its time; -1 where it would not be before
 * `limit`. Within a pass gaps only become smaller: where a task of the same shape found none, there is none. */
static int32_t first_gap(struct insertion *p, int32_t at, const struct shape *c, struct searched *s, double limit)
{
    int32_t from = at;
    if (s && known(p, s, at)) {
        from = s->from;
        at = s->to;
    }
    double until = p->moments[at].time + c->ns;
    for (int32_t look = at; look >= 0 && p->moments[look].time < until && p->moments[at].time < limit;) {
        p->steps++;
        if (p->moments[look].free >= c->width && p->moments[look].gbs >= c->gbs) {
            look = p->moments[look].next;
            continue;
        }
        at = look = p->moments[look].next;
        if (s && known(p, s, at))
            at = look = s->to;
        until = p->moments[at].time + c->ns;
    }
    if (s)
        *s = (struct searched){from, at};
    return p->moments[at].time < limit ? at : -1;
}

/* A share of the bandwidth where the simulation would make tasks share it; a little less, so that sums may round. */
static struct shape shape_of(const struct insertion *p, int32_t task, int width, double ns)
{
    double bytes = p->bytes ? p->bytes[p->in.tasks->curve_of[task]] : 0;
    double start = p->in.tasks->flags[task] & TASK_INLINE ? 0 : p->in.start_ns;
    return (struct shape){width, ns + start, bytes > 0 ? 0.999 * fmin(bytes / ns, p->in.gbs) : 0};
}

static void take(struct moment *moment, const struct shape *shape)
{
    moment->free -= shape->width;
    moment->gbs -= shape->gbs;
}

/* Where a task goes, and how wide: of its choices the one with the least end + price * width * time / workers, among
 * those of equal cost the narrowest; with a price below 0 the width it has. */
static void insert(struct insertion *p, int32_t task, double price, const int32_t *begin, const int32_t *before)
{
    int32_t curve = p->in.tasks->curve_of[task], ready = 0, at = 0;
    double least = INFINITY;
    struct shape taken = shape_of(p, task, p->width[task], curve_ns(&p->in.tasks->curves[curve], p->width[task]));
    for (int32_t e = begin[task]; e < begin[task + 1]; e++)
        if (p->moments[p->end_at[before[e]]].time > p->moments[ready].time)
            ready = p->end_at[before[e]];
    if (price < 0) {
        int32_t i = p->in.choices_begin[curve];
        while (i < p->in.choices_begin[curve + 1] && p->in.choices[i].width != taken.width)
            i++;
        at = first_gap(p, ready, &taken, i < p->in.choices_begin[curve + 1] ? &p->searched[i] : NULL, INFINITY);
    } else {
        for (int32_t i = p->in.choices_begin[curve]; i < p->in.choices_begin[curve + 1]; i++) {
            struct shape c = shape_of(p, task, p->in.choices[i].width, p->in.choices[i].ns);
            double cost = c.ns * (1 + price * c.width / p->in.workers);
            int32_t gap =
                p->moments[ready].time + cost < least ? first_gap(p, ready, &c, &p->searched[i], least - cost) : -1;
            if (gap < 0)
                continue;
            least = (1 - 1e-7) * (p->moments[gap].time + cost);
            at = gap;
            taken = c;
        }
    }
    p->width[task] = (uint16_t)taken.width;
    p->now[task] = p->moments[at].time;
    int32_t end = moment_at(p, at, p->now[task] + taken.ns);
    p->end_at[task] = end;
    for (; at != end; at = p->moments[at].next)
        take(&p->moments[at], &taken);
}

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->key < y->key ? 1 : x->key > y->key ? -1 : (x->tie > y->tie) - (x->tie < y->tie);
}

/* All tasks in the order of `order`; returns the end of the last one, or INFINITY beyond the limit of steps. */
static double pass(struct insertion *p, double price, bool backward)
{
    const int32_t *begin = backward ? p->in.tasks->edges_begin : p->in.from_begin,
                  *before = backward ? p->in.tasks->edges : p->in.from;
    double end = 0;
    qsort(p->order, (size_t)p->in.tasks->count, sizeof *p->order, by_key);
    p->moments[0] = (struct moment){0, -1, p->in.workers, p->in.gbs};
    p->count = 1;
    for (int32_t i = 0; i < p->in.choices_begin[p->in.tasks->curves_count]; i++)
        p->searched[i].from = -1;
    for (int32_t i = 0; i < p->in.tasks->count; i++) {
        if (p->steps > p->limit)
            return INFINITY;
        int32_t task = backward ? ~p->order[i].tie : p->order[i].tie;
        insert(p, task, price, begin, before);
        end = fmax(end, p->moments[p->end_at[task]].time);
    }
    for (int32_t v = 0; v < p->in.tasks->count;
         v++) /* what ended last, counted this way, comes first in the other direction */
        p->order[v] = (struct ranked){p->moments[p->end_at[v]].time, backward ? v : ~v};
    return end;
}

double insertion_run(struct insertion *p, uint16_t *width, const double *key, double price, bool memory, int64_t limit,
                     int64_t *steps)
{
    p->bytes = memory ? p->in.bytes : NULL;
    double best = INFINITY;
    size_t bytes = (size_t)p->in.tasks->count * sizeof *width;
    p->steps = 0;
    p->limit = limit;
    memcpy(p->width, width, bytes);
    for (int32_t v = p->in.tasks->count - 1; v >= 0; v--) { /* array order is topological */
        double most = key[v];
        for (int32_t e = p->in.tasks->edges_begin[v]; e < p->in.tasks->edges_begin[v + 1]; e++)
            most = fmax(most, p->now[p->in.tasks->edges[e]]);
        p->now[v] = most;
        p->order[v] = (struct ranked){most, v};
    }
    for (;;) {
        double end = pass(p, price, false);
        if (!(end < 0.9999 * best))
            break;
        best = end;
        memcpy(width, p->width, bytes);
        double *swap = p->start;
        p->start = p->now;
        p->now = swap;
        if (pass(p, price, true) == INFINITY)
            break;
    }
    *steps = p->steps;
    return best;
}

const double *insertion_start(const struct insertion *p)
{
    return p->start;
}
