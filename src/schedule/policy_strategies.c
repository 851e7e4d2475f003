/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies 1 to 4 of concurrency-control.txt III-D as policies, with the gaps filled as follows: R is the largest
 * predicted remainder of the running tasks; with nothing running it is unbounded, and the fewest threads are those that
 * leave no worker idle when the other ready tasks take as many; the longest ready task is examined first; where nothing
 * ends within R, the longest starts nevertheless if others stay ready to use what it leaves or if it ends before it
 * would by waiting; a task that needs more than the idle workers waits; the largest instance of a kind is the one that
 * takes most time.
 *
 * s1: every task at the width with its least time, one task at a time, in order of arrival. s12: the width of its
 * kind's largest instance. s123: ready tasks co-run when one of their fastest candidates fits the idle workers and ends
 * within R; of those the one with the fewest threads. s1234: while one task has all cores, small ones run on their
 * hardware-thread siblings.
 *
 * Of tasks of one class that on the longest path comes first. Decisions of strategy 3 are memoised on (multiset of
 * ready classes, idle workers, quantised R, running kinds); all of these are kept up to date as tasks come and go, so
 * that a decision costs the same beside one running task and beside sixty. Pairs of kinds that slow each other down are
 * kept apart (interference.h). Usual size: fewer than 5 ready tasks, 100 classes. */
#include "schedule/interference.h"
#include "schedule/widths.h"

#include "base/hash.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { MEMO = 2048, MOST_EXAMINED = 32, UNBOUNDED = 1 << 20, LEVEL_BITS = 40 };

/* The classes that are ready say which stands where in the list, so a place stands for one of them. */
struct memo {
    uint64_t key;   /* 0: empty */
    double ns;      /* what the task takes by its class */
    uint16_t width; /* 0: wait */
    uint8_t behind; /* ready tasks that are longer; the first of the class is taken */
    bool spread;
};

struct strategies {
    struct widths widths;
    int64_t *rank; /* strategy 3: place of a curve when sorted by length, longest highest */
    struct memo *memo;
    uint64_t *ready_hash, *running_hash; /* of a ready task, one a curve, and of a running one, one a kind */
    uint64_t ready, running;             /* their sums: order does not matter */
    int32_t latest;                      /* the running task with the latest predicted end; -1: not known */
    double latest_end;
    struct interference interference;
};

static struct strategies *data(const struct schedule *s)
{
    return s->policy_data;
}

static const struct class_widths *class_of(const struct schedule *s, int32_t task)
{
    return &data(s)->widths.classes[s->tasks->curve_of[task]];
}

/* Places of all curves by strategy 2's time. */
static graphi_status rank_curves(struct schedule *s)
{
    struct strategies *p = data(s);
    int count = s->tasks->curves_count;
    struct ready_list sorted = {.items = schedule_alloc(s, (size_t)count + 1, sizeof *sorted.items)};
    p->rank = schedule_alloc(s, (size_t)count + 1, sizeof *p->rank);
    if (!sorted.items || !p->rank)
        return fail_memory("policy", (size_t)count * sizeof *p->rank);
    for (int32_t i = 0; i < count; i++)
        ready_list_insert(&sorted, (struct ready){(int64_t)p->widths.classes[i].of_kind.ns, i});
    for (int i = 0; i < count; i++)
        p->rank[sorted.items[i].task] = (int64_t)i << LEVEL_BITS;
    return GRAPHI_OK;
}

static graphi_status prepare_widths(struct schedule *s)
{
    struct strategies *p = schedule_alloc(s, 1, sizeof *p);
    if (!p)
        return fail_memory("policy", sizeof *p);
    s->policy_data = p;
    return widths_open(s, &p->widths);
}

static graphi_status prepare(struct schedule *s)
{
    TRY(prepare_widths(s));
    const struct tasks *t = s->tasks;
    struct strategies *p = data(s);
    TRY(interference_open(s, &p->interference));
    p->ready_hash = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->ready_hash);
    p->running_hash = schedule_alloc(s, (size_t)t->kinds + 1, sizeof *p->running_hash);
    p->memo = schedule_alloc(s, MEMO, sizeof *p->memo);
    if (!p->ready_hash || !p->running_hash || !p->memo)
        return fail_memory("policy", MEMO * sizeof *p->memo);
    for (int i = 0; i < t->curves_count; i++)
        p->ready_hash[i] = hash_u64(HASH_START, (uint64_t)i + 1);
    for (int i = 0; i < t->kinds; i++)
        p->running_hash[i] = hash_u64(~HASH_START, (uint64_t)i + 1); /* never that of a ready one */
    return rank_curves(s);
}

static void begin(struct schedule *s)
{
    struct strategies *p = data(s);
    p->ready = p->running = 0;
    p->latest = -1;
    if (interference_begin(s, &p->interference))
        memset(p->memo, 0, MEMO * sizeof *p->memo); /* decided without knowing */
}

/* --- strategies 1 and 2: one task at a time --- */

static bool alone(struct schedule *s, struct decision *d, const struct fast_width *c)
{
    d->width = c->width;
    d->spread = c->spread;
    s->formed.list.count--;
    return true;
}

static bool best_of_instance(struct schedule *s, struct decision *d)
{
    if (s->formed.count)
        return false;
    d->item = s->formed.list.items[s->formed.list.count - 1];
    return alone(s, d, &class_of(s, d->item.task)->best[0]);
}

static bool best_of_kind(struct schedule *s, struct decision *d)
{
    if (s->formed.count)
        return false;
    d->item = s->formed.list.items[s->formed.list.count - 1];
    return alone(s, d, &data(s)->widths.of_kind[s->tasks->kind[d->item.task]]);
}

/* --- strategy 3 --- */

/* Called once for each task that becomes ready. */
static int64_t longest_first(struct schedule *s, int32_t task)
{
    struct strategies *p = data(s);
    int32_t curve = s->tasks->curve_of[task];
    int64_t level = s->tasks->level[task], most = ((int64_t)1 << LEVEL_BITS) - 1;
    p->ready += p->ready_hash[curve];
    return p->rank[curve] | (level < 0 ? 0 : level < most ? level : most);
}

/* The decision is made: the task leaves the ready list and runs. */
static void start(struct schedule *s, struct decision *d, int at, int width, double ns)
{
    struct strategies *p = data(s);
    int32_t task = s->formed.list.items[at].task, curve = s->tasks->curve_of[task];
    if (d->spread && !step_one_a_tile(s, width)) { /* neighbours then */
        d->spread = false;
        ns = curve_ns(&s->tasks->curves[curve], width);
    }
    d->seated = d->spread;
    d->ns = ns;
    double end = (double)s->now + ns;
    d->item = s->formed.list.items[at];
    d->width = width;
    p->ready -= p->ready_hash[curve];
    p->running += p->running_hash[s->tasks->kind[task]];
    if (!s->formed.count || (p->latest >= 0 && end > p->latest_end)) {
        p->latest = task;
        p->latest_end = end;
    }
    interference_started(s, &p->interference, task, d->sibling);
    ready_list_remove(&s->formed.list, at);
}

static void finished(struct schedule *s, int32_t task, struct seat seat, double ns)
{
    struct strategies *p = data(s);
    p->running -= p->running_hash[s->tasks->kind[task]];
    if (task == p->latest)
        p->latest = -1;
    interference_ended(s, &p->interference, task, seat, ns);
}

static void find_latest(struct schedule *s)
{
    struct strategies *p = data(s);
    for (int i = 0; i < s->formed.count; i++) {
        const struct formed_team *team = running_team(s, i);
        if (p->latest < 0 || team->predicted_end > p->latest_end) {
            p->latest = team->task;
            p->latest_end = team->predicted_end;
        }
    }
}

/* R: how long the longest of the running tasks will still take. */
static double remaining(struct schedule *s)
{
    if (!s->formed.count)
        return INFINITY;
    if (data(s)->latest < 0)
        find_latest(s);
    return fmax(data(s)->latest_end - (double)s->now, 0);
}

/* Slower by a third, and waiting for the others would end it sooner. */
static bool clashes(struct schedule *s, int32_t task, double ns, double left_ns)
{
    double factor = interference_beside_running(&data(s)->interference, s->tasks->kind[task]);
    return factor > interference_clashing && ns * factor > left_ns + class_of(s, task)->of_kind.ns;
}

/* Side by side, slowed down as the class was when it was measured beside others or as its kind has been since, narrow
 * tasks take more of the cores' time than wide ones that run alone one after the other. */
static bool crowded(const struct schedule *s, int32_t task, const struct fast_width *narrow,
                    const struct fast_width *wide)
{
    const struct strategies *p = data(s);
    double factor = fmax(s->tasks->curves[s->tasks->curve_of[task]].beside,
                         interference_beside_any(&p->interference, s->tasks->kind[task]));
    return factor > interference_crowding && narrow->width < wide->width &&
           narrow->width * narrow->ns * factor > wide->width * wide->ns;
}

/* The feasible candidate of this task with the fewest threads, but at least `least` if there is one, else the fastest;
 * width 0: none. */
static struct fast_width fewest_threads(const struct schedule *s, int32_t task, double most_ns, int least)
{
    const struct class_widths *class = class_of(s, task);
    struct fast_width found = {0};
    for (int i = 0; i < class->count; i++) {
        const struct fast_width *c = &class->fitting[i];
        if (c->width > s->idle.count || c->ns > most_ns)
            continue;
        bool enough = c->width >= least, before = found.width >= least;
        if (!found.width || (enough && !before) ||
            (enough == before && (enough ? c->width < found.width : c->ns < found.ns)))
            found = *c;
    }
    if (found.width && !s->formed.count && s->formed.list.count > 1 && crowded(s, task, &found, &class->of_kind))
        found = class->of_kind;
    return found;
}

static uint64_t situation(const struct schedule *s, int quantum)
{
    const struct strategies *p = data(s);
    return hash_u64(hash_u64(p->ready, p->running), (uint64_t)quantum << 32 | (uint64_t)s->idle.count) | 1;
}

static void examine(struct schedule *s, double most_ns, struct memo *found)
{
    const struct ready_list *list = &s->formed.list;
    int last_curve = -1, from = list->count > MOST_EXAMINED ? list->count - MOST_EXAMINED : 0;
    int least = s->formed.count ? 1 : (s->idle.count + list->count - 1) / list->count;
    *found = (struct memo){.key = found->key};
    for (int i = list->count - 1; i >= from; i--) {
        int32_t task = list->items[i].task, curve = s->tasks->curve_of[task];
        if (curve == last_curve)
            continue;
        last_curve = curve;
        struct fast_width c = fewest_threads(s, task, most_ns, least);
        if (c.width && !clashes(s, task, c.ns, most_ns)) {
            *found = (struct memo){found->key, c.ns, (uint16_t)c.width, (uint8_t)(list->count - 1 - i), c.spread};
            return;
        }
    }
    int32_t longest = list->items[list->count - 1].task; /* at its kind's width, waiting for that many */
    struct fast_width c = class_of(s, longest)->of_kind;
    double wait_ns = most_ns + c.ns;
    if (c.width > s->idle.count)
        c = fewest_threads(s, longest, list->count > 1 ? INFINITY : wait_ns, s->idle.count);
    if (c.width && !clashes(s, longest, c.ns, most_ns))
        *found = (struct memo){found->key, c.ns, (uint16_t)c.width, 0, c.spread};
}

/* Steps of 9 %: ceil(8 log2 ns), ns > 1. Each eighth of an octave's length holds one of the powers of 2^(1/8). */
static int eighths_above(double ns)
{
    static const double power[9] = {1, 1.0905077326652577, 1.189207115002721, 1.2968395546510096, 1.4142135623730951,
                                    1.5422108254079407, 1.681792830507429, 1.8340080864093424, 2};
    uint64_t bits, mantissa = ((uint64_t)1 << 52) - 1;
    memcpy(&bits, &ns, sizeof bits);
    int octave = (int)(bits >> 52) - 1023, part = (int)(bits >> 49 & 7);
    double within; /* 1 .. 2 */
    bits = (bits & mantissa) | (uint64_t)1023 << 52;
    memcpy(&within, &bits, sizeof within);
    return 8 * octave + part + (within > power[part]) + (within > power[part + 1]);
}

static bool co_run(struct schedule *s, struct decision *d)
{
    struct strategies *p = data(s);
    if (!s->idle.count)
        return false;
    /* Decided by the quantised remainder, so that a memoised decision equals the one it stands for; upwards, so that
     * tasks of equal length run side by side. */
    double left = remaining(s);
    int quantum = isinf(left) ? UNBOUNDED : left > 1 ? eighths_above(left) : 0;
    uint64_t key = situation(s, quantum);
    struct memo *memo = &p->memo[key >> 1 & (MEMO - 1)];
    if (memo->key != key) {
        memo->key = key;
        examine(s, isinf(left) || left <= 1 ? left : exp2(quantum / 8.0), memo);
    }
    if (!memo->width)
        return false;
    d->spread = memo->spread;
    start(s, d, s->formed.list.count - 1 - memo->behind, memo->width, memo->ns);
    return true;
}

/* --- strategy 4 --- */

static int idle_sibling(const struct schedule *s)
{
    for (int i = s->workers; i < s->workers + s->siblings; i++)
        if (s->formed.teams[i].task < 0)
            return i;
    return -1;
}

/* "Some scalable operations can take all 68 cores and never allow any operation to co-run." */
static bool one_has_all_cores(const struct schedule *s)
{
    for (int i = 0; i < s->formed.count; i++)
        if (running_team(s, i)->width == s->workers)
            return true;
    return false;
}

static bool co_run_on_siblings(struct schedule *s, struct decision *d)
{
    if (s->idle.count)
        return co_run(s, d);
    if (idle_sibling(s) < 0 || !one_has_all_cores(s))
        return false;
    double most_ns = remaining(s);
    int best = -1;
    double best_ns = INFINITY;
    for (int i = 0; i < s->formed.list.count; i++) {
        double ns = class_of(s, s->formed.list.items[i].task)->serial_ns;
        if (ns < best_ns && ns <= most_ns && !clashes(s, s->formed.list.items[i].task, ns, most_ns)) {
            best = i;
            best_ns = ns;
        }
    }
    if (best < 0)
        return false;
    d->sibling = true;
    start(s, d, best, 1, best_ns);
    return true;
}

/* --- for people --- */

static void add_candidates(const struct fast_width *c, int count, struct text *text)
{
    for (int i = 0; i < count; i++)
        text_add(text, "%s x%d%s %.1f us", i ? "," : "", c[i].width, c[i].spread ? " spread" : "", c[i].ns / 1e3);
}

static void explain_instance(const struct schedule *s, int32_t task, struct text *text)
{
    text_add(text, "; alone, weighed");
    add_candidates(class_of(s, task)->best, class_of(s, task)->count, text);
}

static void explain_kind(const struct schedule *s, int32_t task, struct text *text)
{
    text_add(text, "; alone, its kind's");
    add_candidates(&class_of(s, task)->of_kind, 1, text);
}

static void explain_candidates(const struct schedule *s, int32_t task, struct text *text)
{
    text_add(text, "; weighed");
    add_candidates(class_of(s, task)->fitting, class_of(s, task)->count, text);
    text_add(text, "; its kind's");
    add_candidates(&class_of(s, task)->of_kind, 1, text);
}

static void learned(const struct schedule *s, const char *const *kinds, struct text *text)
{
    interference_explain(&data(s)->interference, kinds, text);
}

/* Those of strategy 3 first: strategies 1 and 2 have the last one alone. */
static const graphi_policy_parameter_info parameters[] = {
    {.name = "candidates",
     .argument = "N",
     .meaning = "fastest widths of an operation that are weighed; default 3, or fewer over measured operations where "
                "that is predicted to be 2 % shorter",
     .low = 1,
     .high = MOST_CANDIDATES,
     .usual = USUAL_CANDIDATES},
    {.name = "tolerance",
     .argument = "N",
     .meaning = "threads off the width of the operation's kind; default 2",
     .low = -1, /* as 0: none */
     .high = 65536,
     .usual = 2},
    {.name = "keep-uniform",
     .argument = "auto|on|off",
     .meaning = "one width for all unless others are predicted to gain 2 %; auto: over operations measured here",
     .low = -1,
     .high = 1,
     .toggle = true,
     .chooses = true},
    {0}};

const struct policy policy_s1 = {
    .free_width = true,
    .own_teams = true,
    .raced = true,
    .parameters = parameters + 2,
    .prepare = prepare_widths,
    .key = policy_by_arrival,
    .decide = best_of_instance,
    .explain = explain_instance,
};
const struct policy policy_s12 = {
    .free_width = true,
    .own_teams = true,
    .raced = true,
    .parameters = parameters + 2,
    .prepare = prepare_widths,
    .key = policy_by_arrival,
    .decide = best_of_kind,
    .explain = explain_kind,
};

/* They differ in how a task is decided on, and on what it may run. */
#define STRATEGY_3(how, on_siblings)                                                                                   \
    {                                                                                                                  \
        .free_width = true, .own_teams = true, .timed = true, .raced = true, .siblings = on_siblings,                  \
        .parameters = parameters, .prepare = prepare, .begin = begin,                                                  \
        .key = longest_first, .decide = how, .finished = finished, .explain = explain_candidates, .learned = learned,  \
    }
const struct policy policy_s123 = STRATEGY_3(co_run, false), policy_s1234 = STRATEGY_3(co_run_on_siblings, true);
