/* SPDX-License-Identifier: Apache-2.0 */
/* The arena planner: greedy by size, best fit among the gaps that conflicting values leave, under a relation "first precedes
 * second" that is widened step by step until the byte target is met (memory.h tells the rule).
 *
 * The widening is a window in sequential time: with a window w, a value whose last task ends at least w before another's first
 * task starts (both in array order) may be shared with it, at the price of ordering edges. An infinite window is the graph's
 * own order; window 0 is the serial order made true by edges. Only pairs that really share bytes cost edges.
 *
 * Where no target is given, a wider window is taken if by an estimate it saves more time than it takes space, narrower ones as long as
 * the tasks take no longer, and other orders of placing are tried in the window found.
 *
 * Values that are small even together get bytes of their own: sharing them would cost order and save nothing.
 * Compile time only, one thread. Usual size: 500 to 5,000 values. */
#include "engine/memory.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

struct item {
    int32_t value;
    int64_t bytes, offset;
    int32_t first, last;      /* lowest producer, highest task (INT32_MAX: kept) */
    int64_t begin_ns, end_ns; /* of those, in sequential time */
};

struct planner {
    const struct memory_problem *problem;
    int count;          /* values that take part */
    struct item *item;  /* by descending size */
    size_t words;
    uint64_t *before;   /* bit (i, j): item i precedes item j in the graph */
    int32_t *placed;    /* item indices by offset */
    int32_t *order;     /* item indices as they are placed */
    int64_t total_ns;
    struct ancestors ancestors;
};

static int64_t rounded(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

static const int32_t *tasks_of(const struct memory_problem *problem, int32_t value, int *count)
{
    const struct memory_value *v = &problem->value[value];
    *count = v->producers + v->readers;
    return problem->list + v->begin;
}

/* Most live bytes when tasks run one after the other: a value lives from its first producer to its last task. */
static graphi_status live_maximum(const struct memory_problem *problem, int64_t *maximum)
{
    int64_t *change = mem_zalloc_array((size_t)problem->tasks + 2, sizeof *change);
    if (!change)
        return fail_memory("memory plan", (size_t)problem->tasks * sizeof *change);
    for (int v = 0; v < problem->values; v++) {
        int count, first = problem->tasks, last = -1;
        const int32_t *list = tasks_of(problem, v, &count);
        for (int i = 0; i < count; i++) {
            first = list[i] < first ? list[i] : first;
            last = list[i] > last ? list[i] : last;
        }
        if (problem->value[v].kept)
            last = problem->tasks;
        if (!count)
            continue;
        change[first] += rounded(problem->value[v].bytes);
        change[last + 1] -= rounded(problem->value[v].bytes);
    }
    int64_t live = 0, most = 0;
    for (int t = 0; t <= problem->tasks; t++) {
        live += change[t];
        most = live > most ? live : most;
    }
    mem_free(change);
    *maximum = most;
    return GRAPHI_OK;
}

static int larger_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x->value > y->value) - (x->value < y->value);
}

static int compare_bytes(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Values that take part at most: the work grows with their square. */
enum { MOST_SHARED = 12000 };

/* The largest size such that all values up to it fit together into `budget`; larger in graphs of very many values. */
static graphi_status small_limit(const struct memory_problem *problem, int64_t budget, int64_t *limit)
{
    int64_t *bytes = mem_alloc(sizeof *bytes * (size_t)(problem->values + 1));
    if (!bytes)
        return fail_memory("memory plan", sizeof *bytes * (size_t)problem->values);
    for (int v = 0; v < problem->values; v++)
        bytes[v] = rounded(problem->value[v].bytes);
    qsort(bytes, (size_t)problem->values, sizeof *bytes, compare_bytes);
    int64_t sum = 0;
    *limit = -1;
    for (int v = 0; v < problem->values; v++) {
        sum += bytes[v];
        if (sum > budget)
            break;
        if (v + 1 == problem->values || bytes[v + 1] > bytes[v])
            *limit = bytes[v];
    }
    if (problem->values > MOST_SHARED && *limit < bytes[problem->values - MOST_SHARED])
        *limit = bytes[problem->values - MOST_SHARED];
    mem_free(bytes);
    return GRAPHI_OK;
}

static void span_of(struct planner *p, struct item *item, const int64_t *start_ns)
{
    const struct memory_problem *problem = p->problem;
    const struct memory_value *value = &problem->value[item->value];
    int count;
    const int32_t *list = tasks_of(problem, item->value, &count);
    item->first = INT32_MAX, item->last = -1;
    for (int i = 0; i < count; i++) {
        if (i < value->producers && list[i] < item->first)
            item->first = list[i];
        item->last = list[i] > item->last ? list[i] : item->last;
    }
    item->begin_ns = start_ns[item->first];
    item->end_ns = start_ns[item->last + 1];
    if (value->kept)
        item->last = INT32_MAX;
}

static bool graph_precedes(const struct planner *p, const struct item *a, const struct item *b)
{
    if (a->last >= b->first)
        return false;
    int count_a, count_b;
    const int32_t *tasks_a = tasks_of(p->problem, a->value, &count_a);
    const int32_t *tasks_b = tasks_of(p->problem, b->value, &count_b);
    for (int j = 0; j < p->problem->value[b->value].producers; j++)
        for (int i = 0; i < count_a; i++)
            if (!ancestors_has(&p->ancestors, tasks_b[j], tasks_a[i]))
                return false;
    return true;
}

static bool is_before(const struct planner *p, int i, int j)
{
    return p->before[(size_t)i * p->words + (size_t)j / 64] >> (j % 64) & 1;
}

static bool window_precedes(const struct item *a, const struct item *b, int64_t window)
{
    return window >= 0 && a->last < b->first && b->begin_ns - a->end_ns >= window;
}

static bool may_share(const struct planner *p, int i, int j, int64_t window)
{
    return is_before(p, i, j) || is_before(p, j, i) || window_precedes(&p->item[i], &p->item[j], window) ||
           window_precedes(&p->item[j], &p->item[i], window);
}

/* Places all items; window < 0: graph order alone. Gives the bytes used. */
static int64_t place(struct planner *p, int64_t window)
{
    int64_t used = 0;
    for (int n = 0; n < p->count; n++) {
        int at = p->order[n];
        struct item *item = &p->item[at];
        int64_t end = 0, best = -1, best_gap = INT64_MAX;
        for (int k = 0; k < n; k++) {
            const struct item *other = &p->item[p->placed[k]];
            if (other->offset + other->bytes <= end || may_share(p, at, p->placed[k], window))
                continue;
            int64_t gap = other->offset - end;
            if (gap >= item->bytes && gap < best_gap)
                best = end, best_gap = gap;
            end = other->offset + other->bytes;
        }
        item->offset = best >= 0 ? best : end;
        if (item->offset + item->bytes > used)
            used = item->offset + item->bytes;
        int k = n;
        while (k > 0 && p->item[p->placed[k - 1]].offset > item->offset) {
            p->placed[k] = p->placed[k - 1];
            k--;
        }
        p->placed[k] = at;
    }
    return used;
}

/* What is placed first: the largest, those that take most bytes for most time, or the earliest. */
enum { ORDERS = 3 };

static int64_t sort_key(const struct item *item, int order)
{
    int64_t length = item->end_ns - item->begin_ns;
    return order == 0 ? item->bytes : order == 1 ? (int64_t)((double)item->bytes * (double)length / 1024) : -item->begin_ns;
}

struct ranked {
    int64_t key;
    int32_t item;
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return (x->item > y->item) - (x->item < y->item);
}

/* `ranks` holds count entries. */
static void set_order(struct planner *p, int order, struct ranked *ranks)
{
    for (int i = 0; i < p->count; i++)
        ranks[i] = (struct ranked){sort_key(&p->item[i], order), i};
    qsort(ranks, (size_t)p->count, sizeof *ranks, by_key);
    for (int i = 0; i < p->count; i++)
        p->order[i] = ranks[i].item;
}

struct found {
    int64_t used, window;
    int order;
};

/* Most values for which every order of placing and many windows are tried, each about 20 ms then. */
enum { MOST_ESTIMATED = 2500 };

/* Tries every order of placing at a window; true when the target is met. */
static bool try_window(struct planner *p, int64_t window, int64_t target, struct ranked *ranks, struct found *best)
{
    for (int order = 0; order < (p->count > MOST_ESTIMATED ? 1 : ORDERS); order++) {
        set_order(p, order, ranks);
        int64_t used = place(p, window);
        if (used < best->used)
            *best = (struct found){used, window, order};
        if (used <= target)
            return true;
    }
    return false;
}

static bool add_edges(const struct planner *p, const struct item *a, const struct item *b, edge_array *edges)
{
    int count_a, count_b;
    const int32_t *tasks_a = tasks_of(p->problem, a->value, &count_a);
    const int32_t *tasks_b = tasks_of(p->problem, b->value, &count_b);
    for (int j = 0; j < p->problem->value[b->value].producers; j++)
        for (int i = 0; i < count_a; i++)
            if (!ancestors_has(&p->ancestors, tasks_b[j], tasks_a[i])) {
                struct edge edge = {tasks_a[i], tasks_b[j]};
                if (!array_push(edges, edge))
                    return false;
            }
    return true;
}

struct stay { /* an item's bytes and tasks, for scans */
    int64_t offset, end;
    int32_t first, last, item;
};

static bool overlap(const struct stay *a, const struct stay *b) { return a->offset < b->end && b->offset < a->end; }

static int by_last(const void *a, const void *b)
{
    const struct stay *x = a, *y = b;
    return x->last != y->last ? (x->last < y->last) - (x->last > y->last) : (x->item > y->item) - (x->item < y->item);
}

/* Edges for the pairs that share bytes without the graph's order, but those that a value between the two implies: with 10,000 values
 * in the same bytes one after the other that is all but their neighbours. */
static graphi_status collect_edges(const struct planner *p, edge_array *edges)
{
    struct stay *late = mem_alloc(((size_t)p->count + 1) * sizeof *late); /* the one that ends last first */
    const struct stay **near = mem_alloc(((size_t)p->count + 1) * sizeof *near);
    bool enough = late && near;
    for (int i = 0; i < p->count && enough; i++) {
        const struct item *item = &p->item[i];
        late[i] = (struct stay){item->offset, item->offset + item->bytes, item->first, item->last, i};
    }
    if (enough)
        qsort(late, (size_t)p->count, sizeof *late, by_last);
    for (int j = 0; j < p->count && enough; j++) {
        const struct stay *b = &late[j];
        int nears = 0;
        for (int i = j + 1; i < p->count && enough; i++) { /* what precedes ends before */
            const struct stay *a = &late[i];
            bool implied = false;
            if (a->last >= b->first || !overlap(a, b))
                continue;
            for (int n = 0; n < nears && !implied; n++)
                implied = a->last < near[n]->first && overlap(a, near[n]);
            if (implied)
                continue;
            near[nears++] = a;
            if (!is_before(p, a->item, b->item))
                enough = add_edges(p, &p->item[a->item], &p->item[b->item], edges);
        }
    }
    mem_free(late);
    mem_free(near);
    return enough ? GRAPHI_OK : fail_memory("memory plan", (edges->count + (size_t)p->count) * sizeof(struct edge));
}

static int64_t place_as(struct planner *p, const struct found *found, struct ranked *ranks)
{
    set_order(p, found->order, ranks);
    return place(p, found->window);
}

/* What the tasks take with the edges that the placing at hand needs. */
static graphi_status placed_ns(const struct planner *p, int64_t *ns)
{
    edge_array edges = {0};
    graphi_status status = collect_edges(p, &edges);
    if (!status)
        status = memory_makespan(p->problem, &edges, ns);
    array_free(&edges);
    return status;
}

static graphi_status estimate(struct planner *p, const struct found *found, struct ranked *ranks, int64_t *ns)
{
    place_as(p, found, ranks);
    return placed_ns(p, ns);
}

/* By how much the tasks may take longer for fewer bytes, in 1/256. Chosen on the small networks, where the estimate and the step both
 * take 9 % longer with window 0. */
enum { LONGER = 1 };

/* Wider windows: where few values live at a time, the target alone would make a branch wait for its neighbour. Taken is the one
 * with the least bytes x time^2, so that twice the bytes must save 30 % of the time. */
static graphi_status loosen(struct planner *p, struct ranked *ranks, struct found *best)
{
    int64_t ns;
    TRY(estimate(p, best, ranks, &ns));
    double least = (double)best->used * (double)ns * (double)ns;
    struct found next = *best;
    while (next.window >= 0) {
        int64_t window = next.window > p->total_ns / 2048 ? 2 * next.window : p->total_ns / 1024 + 1;
        next = (struct found){.used = INT64_MAX};
        try_window(p, window < p->total_ns ? window : -1, 0, ranks, &next);
        TRY(estimate(p, &next, ranks, &ns));
        double cost = (double)next.used * (double)ns * (double)ns;
        if (cost < least) {
            least = cost;
            *best = next;
        }
    }
    return GRAPHI_OK;
}

/* Narrower windows as long as the tasks take no longer in the estimate. */
static graphi_status tighten(struct planner *p, struct ranked *ranks, struct found *best)
{
    int64_t first, ns;
    struct found next;
    TRY(estimate(p, best, ranks, &first));
    for (int64_t window = best->window < 0 ? p->total_ns / 4 : best->window / 4;; window /= 4) {
        next = (struct found){.used = INT64_MAX};
        try_window(p, window, 0, ranks, &next);
        TRY(estimate(p, &next, ranks, &ns));
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

/* Orders that are tried, fewer where pairs of values make that more than some 50 ms. */
enum { MOST_ORDERS = 100, MOST_PAIRS = 20000000 };

/* Places again and again, each time with whatever reached furthest as the first; ends with the order that took least, or with the
 * first one if that needs edges which cost time. */
static graphi_status improve(struct planner *p, int64_t window, int64_t used)
{
    const size_t bytes = sizeof *p->order * (size_t)p->count;
    int32_t *best = mem_alloc(2 * bytes + 1);
    int64_t ns = 0, first_ns = 0;
    if (!best)
        return fail_memory("memory plan", 2 * bytes);
    int32_t *first = best + p->count;
    memcpy(best, p->order, bytes);
    memcpy(first, p->order, bytes);
    graphi_status status = p->count <= MOST_ESTIMATED ? placed_ns(p, &first_ns) : GRAPHI_OK;
    int64_t rounds = MOST_PAIRS / ((int64_t)p->count * p->count + 1);
    for (int64_t round = 0; round < rounds && round < MOST_ORDERS; round++) {
        int at = furthest(p);
        int32_t item = p->order[at];
        if (!at)
            break;
        memmove(p->order + 1, p->order, sizeof *p->order * (size_t)at);
        p->order[0] = item;
        int64_t now = place(p, window);
        if (now >= used)
            continue;
        used = now;
        memcpy(best, p->order, bytes);
    }
    memcpy(p->order, best, bytes);
    place(p, window);
    if (!status && first_ns)
        status = placed_ns(p, &ns);
    if (ns > first_ns + first_ns / 256 * LONGER) {
        memcpy(p->order, first, bytes);
        place(p, window);
    }
    mem_free(best);
    return status;
}

/* The widest window that meets the target; otherwise whatever used least. */
static graphi_status search_window(struct planner *p, int64_t target, int64_t *unordered)
{
    struct ranked *ranks = mem_alloc(sizeof *ranks * ((size_t)p->count + 1));
    if (!ranks)
        return fail_memory("memory plan", sizeof *ranks * (size_t)p->count);
    struct found best = {.used = INT64_MAX};
    bool met = try_window(p, -1, target, ranks, &best);
    *unordered = best.used;
    const int step = p->count > MOST_ESTIMATED ? 16 : 2;
    for (int64_t window = p->total_ns / 2; !met; window = window > 1 ? window / step : 0) {
        met = try_window(p, window, target, ranks, &best);
        if (window == 0)
            break;
    }
    bool weighed = !p->problem->target && p->count <= MOST_ESTIMATED;
    graphi_status status = weighed ? loosen(p, ranks, &best) : GRAPHI_OK;
    if (weighed && met && !status)
        status = tighten(p, ranks, &best);
    place_as(p, &best, ranks);
    mem_free(ranks);
    return status || p->problem->target ? status : improve(p, best.window, best.used);
}

static graphi_status prepare_items(struct planner *p, int64_t limit)
{
    const struct memory_problem *problem = p->problem;
    size_t tasks = (size_t)problem->tasks;
    int64_t *start_ns = mem_alloc((tasks + 2) * sizeof *start_ns);
    bool *wanted = mem_zalloc(tasks + 1);
    p->item = mem_zalloc_array((size_t)problem->values + 1, sizeof *p->item);
    p->placed = mem_alloc(((size_t)problem->values + 1) * sizeof *p->placed);
    p->order = mem_alloc(((size_t)problem->values + 1) * sizeof *p->order);
    graphi_status status = GRAPHI_OK;
    if (!start_ns || !wanted || !p->item || !p->placed || !p->order) {
        status = fail_memory("memory plan", tasks * sizeof *start_ns);
        goto done;
    }
    start_ns[0] = 0;
    for (size_t t = 0; t < tasks; t++)
        start_ns[t + 1] = start_ns[t] + (problem->ns ? problem->ns[t] + 1 : 1);
    p->total_ns = start_ns[tasks];
    for (int v = 0; v < problem->values; v++) {
        if (rounded(problem->value[v].bytes) <= limit || !problem->value[v].producers)
            continue;
        struct item *item = &p->item[p->count++];
        *item = (struct item){.value = v, .bytes = rounded(problem->value[v].bytes)};
        span_of(p, item, start_ns);
        int count;
        const int32_t *list = tasks_of(problem, v, &count);
        for (int i = 0; i < count; i++)
            wanted[list[i]] = true;
    }
    qsort(p->item, (size_t)p->count, sizeof *p->item, larger_first);
    status = ancestors_create(problem->tasks, problem->edges_begin, problem->edges, wanted, &p->ancestors);
    if (status)
        goto done;
    p->words = ((size_t)p->count + 63) / 64;
    p->before = mem_zalloc_array((size_t)p->count + 1, (p->words + 1) * sizeof *p->before);
    if (!p->before) {
        status = fail_memory("memory plan", (size_t)p->count * p->words * 8);
        goto done;
    }
    for (int i = 0; i < p->count; i++)
        for (int j = 0; j < p->count; j++)
            if (i != j && graph_precedes(p, &p->item[i], &p->item[j]))
                p->before[(size_t)i * p->words + (size_t)j / 64] |= (uint64_t)1 << (j % 64);
done:
    mem_free(start_ns);
    mem_free(wanted);
    return status;
}

static void planner_free(struct planner *p)
{
    mem_free(p->item);
    mem_free(p->placed);
    mem_free(p->order);
    mem_free(p->before);
    ancestors_free(&p->ancestors);
}

/* Shared values first, then the small ones one after the other. */
static graphi_status write_offsets(const struct planner *p, int64_t used, struct memory_solution *solution)
{
    const struct memory_problem *problem = p->problem;
    solution->offset = mem_alloc(sizeof *solution->offset * (size_t)(problem->values + 1));
    if (!solution->offset)
        return fail_memory("memory plan", sizeof *solution->offset * (size_t)problem->values);
    for (int v = 0; v < problem->values; v++)
        solution->offset[v] = -1;
    for (int i = 0; i < p->count; i++)
        solution->offset[p->item[i].value] = p->item[i].offset;
    for (int v = 0; v < problem->values; v++)
        if (solution->offset[v] < 0) {
            solution->offset[v] = used;
            used += rounded(problem->value[v].bytes);
        }
    solution->bytes = used;
    return GRAPHI_OK;
}

graphi_status memory_plan(const struct memory_problem *problem, struct memory_solution *out)
{
    struct memory_solution solution = {0};
    struct planner p = {.problem = problem};
    TRY(live_maximum(problem, &solution.live_maximum));
    for (int v = 0; v < problem->values; v++)
        solution.sum_bytes += rounded(problem->value[v].bytes);
    int64_t target = problem->target ? problem->target : (solution.live_maximum * 115 + 99) / 100;
    int64_t budget = solution.live_maximum / 50, limit = -1;
    budget = budget > 65536 ? budget : 65536;
    if (budget > target / 4)
        budget = target / 4;
    graphi_status status = small_limit(problem, budget, &limit);
    if (!status)
        status = prepare_items(&p, limit);
    if (!status) {
        int64_t small = 0, used = 0;
        for (int v = 0; v < problem->values; v++)
            if (rounded(problem->value[v].bytes) <= limit)
                small += rounded(problem->value[v].bytes);
        status = search_window(&p, target - small, &solution.unordered_bytes);
        solution.unordered_bytes += small;
        for (int i = 0; i < p.count; i++)
            if (p.item[i].offset + p.item[i].bytes > used)
                used = p.item[i].offset + p.item[i].bytes;
        if (!status)
            status = write_offsets(&p, used, &solution);
    }
    if (!status)
        status = collect_edges(&p, &solution.edges);
    if (!status)
        status = memory_reduce_edges(problem, &solution.edges);
    planner_free(&p);
    if (status) {
        memory_solution_free(&solution);
        return status;
    }
    *out = solution;
    return GRAPHI_OK;
}

void memory_solution_free(struct memory_solution *solution)
{
    mem_free(solution->offset);
    array_free(&solution->edges);
    *solution = (struct memory_solution){0};
}
