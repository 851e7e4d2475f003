/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the window and the order of placing. The window is narrowed step by step until the byte target is met.
 * Where the problem gives no target, a wider window is taken if by an estimate (memory_makespan.c) it saves more time
 * than it takes space, narrower ones as long as the tasks take no longer, and other orders of placing are tried in
 * the window found. Usual time: 20 ms a window with 2,500 items. */
#include "engine/compile/memory_search.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/memory_makespan.h"
#include "engine/compile/memory_place.h"
#include "engine/compile/memory_sharing.h"

#include <string.h>

struct found {
    int64_t used, window;
    int order;
};

/* Most values for which every order of placing and many windows are tried, each about 20 ms then. */
enum { MOST_ESTIMATED = 2500 };

static graphi_status find_least(struct planner *p)
{
    const int tasks = p->problem->tasks;
    int64_t live = 0, *change = mem_zalloc_array((size_t)tasks + 2, sizeof *change);
    if (!change)
        return fail_memory("memory plan", (size_t)tasks * sizeof *change);
    for (int i = 0; i < p->count; i++) {
        change[p->item[i].first] += p->item[i].bytes;
        change[p->item[i].last < tasks ? p->item[i].last + 1 : tasks + 1] -= p->item[i].bytes;
    }
    p->least = 0;
    for (int t = 0; t <= tasks; t++) {
        live += change[t];
        p->least = live > p->least ? live : p->least;
    }
    mem_free(change);
    return GRAPHI_OK;
}

/* Tries every order of placing at a window; true when the target is met. */
static bool try_window(struct planner *p, int64_t window, int64_t target, struct found *best)
{
    for (int order = 0; order < (p->count > MOST_ESTIMATED ? 1 : PLANNER_ORDERS); order++) {
        planner_set_order(p, order);
        int64_t used = planner_place(p, window);
        if (used < best->used)
            *best = (struct found){used, window, order};
        if (used <= target)
            return true;
    }
    return false;
}

static int64_t place_as(struct planner *p, const struct found *found)
{
    planner_set_order(p, found->order);
    return planner_place(p, found->window);
}

/* Of the longest way, what is lost where durations scatter: the longer it is, the more often a core has nothing to do
 * that the estimate does not know of. LSTM medium in inference, on two cores of a Zen 3, waits for 3.0, 1.1 and 0.2 %
 * of a step whose longest way is 100, 26 and 14 % of it, and for 1.6, 0 and 0 % in the estimate (one run each). */
enum { PATH_PART = 32 };

/* What the tasks take with the edges that the placing at hand needs. */
static graphi_status placed_ns(const struct planner *p, int64_t *ns)
{
    edge_array edges = {0};
    int64_t path = 0;
    graphi_status status = planner_edges(p, &edges);
    if (!status)
        status = memory_makespan(p->problem, &edges, ns, &path);
    if (!status && p->problem->cores > 1)
        *ns += path / PATH_PART;
    array_free(&edges);
    return status;
}

static graphi_status estimate(struct planner *p, const struct found *found, int64_t *ns)
{
    place_as(p, found);
    return placed_ns(p, ns);
}

/* By how much the tasks may take longer for fewer bytes, in 1/256. Chosen on the small networks, where the estimate
 * and the step both take 9 % longer with window 0. */
enum { LONGER = 1 };

/* Bytes x time^2, so that twice the bytes must save 30 % of the time. They are all that an execution needs: of a
 * network that has 40 MB of weights, an arena of 2 or 4 MB is as good as any. */
static double cost_of(const struct planner *p, int64_t used, int64_t ns)
{
    return (double)(used + p->problem->beside) * (double)ns * (double)ns;
}

/* Wider windows: where few values live at a time, the target alone would make a branch wait for its neighbour. Taken is
 * the one with the least cost. */
static graphi_status loosen(struct planner *p, struct found *best)
{
    int64_t ns;
    TRY(estimate(p, best, &ns));
    double least = cost_of(p, best->used, ns);
    struct found next = *best;
    while (next.window >= 0) {
        int64_t window = next.window > p->total_ns / 2048 ? 2 * next.window : p->total_ns / 1024 + 1;
        next = (struct found){.used = INT64_MAX};
        try_window(p, window < p->total_ns ? window : -1, p->least, &next);
        TRY(estimate(p, &next, &ns));
        const double cost = cost_of(p, next.used, ns);
        if (cost < least) {
            least = cost;
            *best = next;
        }
    }
    return GRAPHI_OK;
}

/* Narrower windows as long as the tasks take no longer in the estimate. */
static graphi_status tighten(struct planner *p, struct found *best)
{
    int64_t first, ns;
    struct found next;
    TRY(estimate(p, best, &first));
    for (int64_t window = best->window < 0 ? p->total_ns / 4 : best->window / 4;; window /= 4) {
        next = (struct found){.used = INT64_MAX};
        try_window(p, window, p->least, &next);
        TRY(estimate(p, &next, &ns));
        if (ns > first + first / 256 * LONGER)
            break;
        if (next.used < best->used)
            *best = next;
        if (!window)
            break;
    }
    return GRAPHI_OK;
}

/* Where in the order the item is that reaches furthest. */
static int furthest(const struct planner *p)
{
    int most = 0;
    for (int n = 1; n < p->count; n++) {
        const struct item *a = &p->item[p->order[most]], *b = &p->item[p->order[n]];
        most = b->offset + b->bytes > a->offset + a->bytes ? n : most;
    }
    return most;
}

/* Orders that are tried, fewer where pairs of values make that more than some 50 ms. VAIN ones are enough. */
enum { MOST_ORDERS = 100, MOST_VAIN = 16, MOST_PAIRS = 20000000 };

/* Places again and again, each time with whatever reached furthest as the first; ends with the order that took least,
 * or with the first one if that needs edges which cost time. */
static graphi_status improve(struct planner *p, int64_t window, int64_t used)
{
    const size_t bytes = sizeof *p->order * (size_t)p->count;
    const int64_t rounds = MOST_PAIRS / ((int64_t)p->count * p->count + 1);
    if (!rounds)
        return GRAPHI_OK;
    int32_t *best = mem_alloc(2 * bytes + 1);
    int64_t ns = 0, first_ns = 0;
    if (!best)
        return fail_memory("memory plan", 2 * bytes);
    int32_t *first = best + p->count;
    memcpy(best, p->order, bytes);
    memcpy(first, p->order, bytes);
    graphi_status status = p->count <= MOST_ESTIMATED ? placed_ns(p, &first_ns) : GRAPHI_OK;
    for (int64_t round = 0, vain = 0; round < rounds && round < MOST_ORDERS && vain < MOST_VAIN && used > p->least;
         round++, vain++) {
        int at = furthest(p);
        int32_t item = p->order[at];
        if (!at)
            break;
        memmove(p->order + 1, p->order, sizeof *p->order * (size_t)at);
        p->order[0] = item;
        int64_t now = planner_place(p, window);
        if (now >= used)
            continue;
        used = now;
        vain = 0;
        memcpy(best, p->order, bytes);
    }
    memcpy(p->order, best, bytes);
    planner_place(p, window);
    if (!status && first_ns)
        status = placed_ns(p, &ns);
    if (ns > first_ns + first_ns / 256 * LONGER) {
        memcpy(p->order, first, bytes);
        planner_place(p, window);
    }
    mem_free(best);
    return status;
}

/* The widest window that meets the target; otherwise whatever used least. */
graphi_status planner_search(struct planner *p, int64_t target, int64_t *unordered)
{
    struct found best = {.used = INT64_MAX};
    TRY(find_least(p));
    bool met = try_window(p, -1, target, &best);
    *unordered = best.used;
    const int step = p->count > MOST_ESTIMATED ? 16 : 2;
    for (int64_t window = p->total_ns / 2; !met; window = window > 1 ? window / step : 0) {
        met = try_window(p, window, target, &best);
        if (window == 0)
            break;
    }
    bool weighed = !p->problem->target && p->count <= MOST_ESTIMATED;
    graphi_status status = weighed ? loosen(p, &best) : GRAPHI_OK;
    if (weighed && met && !status)
        status = tighten(p, &best);
    if (weighed || !met) /* otherwise it was the last */
        place_as(p, &best);
    return status || p->problem->target ? status : improve(p, best.window, best.used);
}
