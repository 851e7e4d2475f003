/* SPDX-License-Identifier: Apache-2.0 */
/* See traffic.h. On a machine that is not at hand operations whose data no cache holds share the memory. Where
 * profiling measured how much longer a class takes beside others (`beside`, an average over whatever ran beside it),
 * memory says beside whom: an operation's demand is its bytes over its measured time, and one that finds too little
 * bandwidth left is prolonged, one that computes is not. The measured average stays what it was: of it that part is
 * distributed by demand which sharing the memory explains, the rest (caches, inputs from another core) by the number of
 * busy cores.
 *
 * One thread, no allocation after opening; called for every simulated operation. Usual size: 100 classes. */
#include "engine/choose/traffic.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/plan.h"
#include "engine/cost/cost.h"
#include "machine/machine.h"
#include "schedule/policy.h"

#include <math.h>

/* GB/s that an operation wants; more than its cores get from memory comes from caches. */
static double demand(const struct traffic *t, int32_t class, double ns, int width)
{
    return t->bytes[class] > 0 && ns > 0 ? fmin(t->bytes[class] / ns, width * t->core_gbs) : 0;
}

/* By how much an operation that wants `own` takes longer while others on `busy` cores want `others`: it gets what they
 * leave, or its share by cores if that is more. */
static double prolonged(const struct traffic *t, double own, double others, int width, int busy)
{
    double got = fmax(t->gbs - others, t->gbs * width / (width + busy));
    return own > got ? own / got - 1 : 0;
}

static double beside_duration(const struct traffic *t, int32_t class, double ns, int width, const int32_t *running,
                              int count)
{
    double more = t->what.truth[class].beside - 1, explained = fmin(fmax(more, 0), t->usual[class]), wanted = 0;
    int busy = 0, others = t->what.machine->cores - width;
    for (int i = 0; i < count; i++) {
        int32_t other = t->what.compiled->curve_of[running[i]];
        struct seat on = t->seat[running[i]];
        busy += on.width;
        if (explained > 0)
            wanted += demand(t, other, curve_mode_ns(&t->what.truth[other], on.width, on.spread), on.width);
    }
    if (others <= 0 || busy == 0)
        return ns;
    double longer = (more - explained) * fmin(1, (double)busy / others);
    if (explained > 0)
        longer += explained / t->usual[class] * prolonged(t, demand(t, class, ns, width), wanted, width, busy);
    return ns * (1 + longer);
}

/* When those that run want more than the memory gives, the one that starts takes longer in proportion. */
static double shared_duration(const struct traffic *t, int32_t class, double ns, const int32_t *running, int count)
{
    double wanted = t->bytes[class] / ns;
    for (int i = 0; i < count; i++) {
        int32_t other = t->what.compiled->curve_of[running[i]];
        struct seat on = t->seat[running[i]];
        if (t->bytes[other] > 0)
            wanted += t->bytes[other] / curve_mode_ns(&t->what.truth[other], on.width, on.spread);
    }
    return wanted > t->gbs ? ns * wanted / t->gbs : ns;
}

static double with_others(struct traffic *t, int32_t task, struct seat seat, const int32_t *running, int count)
{
    int32_t class = t->what.compiled->curve_of[task];
    const struct cost_curve *curve = &t->what.truth[class];
    double ns = t->slowdown * curve_mode_ns(curve, seat.width, seat.spread);
    double moved = curve->moved[seat.width > 1];
    t->seat[task] = seat;
    if (t->in_order && curve->in_order > 0)
        return ns * curve->in_order;
    moved = moved > 0 && t->origins.begin ? (moved - 1) * origins_elsewhere(&t->origins, t->seat, task) : 0;
    if (curve->beside > 0)
        return beside_duration(t, class, ns, seat.width, running, count) + ns * moved;
    return t->bytes[class] > 0 ? shared_duration(t, class, ns, running, count) : ns;
}

/* Those that run keep their times. */
double traffic_duration(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    return fmin(with_others(context, task, seat, running, count), MOST_NS); /* as curves are, before all factors */
}

/* --- opening --- */

/* An operation comes from memory when the caches cannot hold its data: all of them where operations are alone, those of
 * its own core where others ran in between. */
static void fill_bytes(struct traffic *t)
{
    const struct compiled *c = t->what.compiled;
    const graphi_machine *m = t->what.machine;
    double caches = (double)m->l2_bytes * (m->tiles > 0 ? m->tiles : m->cores) + (double)m->l3_bytes;
    for (int32_t task = 0; task < c->tasks; task++) {
        int32_t class = c->curve_of[task];
        double bytes = c->task[task].kernel.bytes;
        if (bytes > (t->what.truth[class].beside > 0 ? (double)m->l2_bytes : caches))
            t->bytes[class] = bytes;
        t->shared = t->shared || t->bytes[class] > 0 || t->what.truth[class].beside > 0;
    }
}

/* The plan's operations by what they want when all other cores run their like. */
enum { BUCKETS = 16 };
struct demands {
    double time[BUCKETS], wanted[BUCKETS]; /* summed ns; GB/s times ns */
    double all;
};

static void fill_demands(const struct traffic *t, struct demands *d)
{
    const struct compiled *c = t->what.compiled;
    int others = t->what.machine->cores - 1;
    *d = (struct demands){0};
    for (int32_t task = 0; task < c->tasks; task++) {
        double ns = curve_ns(&t->what.truth[c->curve_of[task]], 1),
               wanted = others * demand(t, c->curve_of[task], ns, 1);
        int bucket = (int)fmin(BUCKETS - 1, BUCKETS * wanted / (2 * t->gbs));
        d->time[bucket] += ns;
        d->wanted[bucket] += wanted * ns;
        d->all += ns;
    }
}

/* How much longer a class takes on average over the plan's operations as neighbours, by sharing the memory alone. */
static void fill_usual(struct traffic *t)
{
    struct demands d;
    int others = t->what.machine->cores - 1;
    fill_demands(t, &d);
    for (int32_t class = 0; class < t->what.compiled->curves && d.all > 0; class++) {
        const struct cost_curve *curve = &t->what.truth[class];
        double own = demand(t, class, curve_ns(curve, 1), 1);
        for (int b = 0; b < BUCKETS && curve->beside > 0 && own > 0; b++)
            if (d.time[b] > 0)
                t->usual[class] += d.time[b] / d.all * prolonged(t, own, d.wanted[b] / d.time[b], 1, others);
    }
}

graphi_status traffic_open(const struct simulated *what, struct traffic *out)
{
    const graphi_machine *m = what->machine;
    const graphi_decision *runs = &what->decided.runs;
    struct cost_rates rates = cost_rates(m);
    size_t classes = (size_t)what->compiled->curves + 1;
    *out = (struct traffic){.what = *what, .gbs = rates.all_gbs, .core_gbs = rates.core_gbs, .slowdown = 1,
                            .in_order = policy_decided(runs)->loop == LOOP_SEQUENTIAL};
    if (!runs->pinned && !m->captured && m->unpinned_slowdown > 1)
        out->slowdown = m->unpinned_slowdown;
    out->shared = out->slowdown > 1 || what->truth != what->tasks->curves;
    out->bytes = mem_zalloc_array(classes, sizeof *out->bytes);
    out->usual = mem_zalloc_array(classes, sizeof *out->usual);
    out->seat = mem_zalloc_array((size_t)what->compiled->tasks + 1, sizeof *out->seat);
    if (!out->bytes || !out->usual || !out->seat) {
        traffic_close(out);
        return fail_memory("simulation", classes * sizeof *out->bytes);
    }
    bool moved = false;
    for (int32_t i = 0; i < what->compiled->curves; i++)
        moved = moved || what->truth[i].moved[0] > 0;
    graphi_status status = moved ? origins_open(what->tasks, &out->origins) : GRAPHI_OK;
    if (status) {
        traffic_close(out);
        return status;
    }
    fill_bytes(out);
    fill_usual(out);
    return GRAPHI_OK;
}

void traffic_close(struct traffic *t)
{
    mem_free(t->bytes);
    mem_free(t->usual);
    mem_free(t->seat);
    origins_close(&t->origins);
    *t = (struct traffic){0};
}
