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
 * within R; of those the one with the fewest threads. s1234: while all cores are busy, small tasks run on
 * hardware-thread siblings.
 *
 * Decisions of strategy 3 are memoised on (multiset of ready classes, idle workers, quantised R, running kinds). Pairs
 * of kinds that slow each other down are recorded and kept apart in later executions. Usual size: fewer than 5 ready
 * tasks, 100 classes. */
#include "engine/scheduler.h"

#include "base/hash.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 8, MEMO = 2048, MOST_EXAMINED = 32, MOST_KINDS = 256, UNBOUNDED = 1 << 20 };

/* Slowdowns from which on pairs are kept apart, and kinds run alone. */
static const float clashing = 1.33f, crowding = 1.02f, forgetting = 0.02f;

struct candidate {
    int width;
    bool spread;
    double ns;
};

/* A class of operations is of one kind. */
struct class_widths {
    struct candidate best[MOST_CANDIDATES];    /* fastest first */
    struct candidate fitting[MOST_CANDIDATES]; /* strategy 3: the same, too far from strategy 2's replaced by that */
    struct candidate of_kind;                  /* strategy 2's width with this class's time */
    int count;
};

struct memo {
    uint64_t key;  /* 0: empty */
    int32_t curve; /* task class chosen; -1: wait */
    uint16_t width;
    bool spread;
};

struct strategies {
    struct class_widths *classes; /* one a curve */
    struct candidate *of_kind;    /* strategy 2: one a kind */
    double *serial_ns;            /* strategy 4: on one thread, one a curve */
    uint64_t *ready_hash;         /* in situation(): of a ready task, one a curve, */
    uint64_t *running_hash;       /* and of a running one, one a kind */
    struct memo *memo;
    float *slowdown; /* kinds x kinds, averaged over co-runs of earlier executions, then one a kind: beside any; 0: never
                        seen */
    float *observed; /* the same, being recorded; takes effect at the next execution */
    float alone; /* how much longer than predicted tasks take with nobody beside them: the machine's speed at the moment; 0: none seen */
    int32_t solo; /* the task that runs and has had nobody beside it so far; -1: none */
    bool seen; /* some slowdown is known */
    int kinds;
    uint64_t memo_hits, memo_misses;
};

static struct strategies *data(struct schedule *s)
{
    return s->policy_data;
}

static bool single_tiles(const struct schedule *s, int width)
{
    int tiles = 0;
    for (int i = 0; i < s->workers; i++)
        tiles += !s->machine->core || i == 0 || s->machine->core[i].tile != s->machine->core[i - 1].tile;
    return width <= tiles;
}

static void add_candidate(struct class_widths *c, struct candidate candidate, int most)
{
    int at = c->count < most ? c->count++ : most;
    for (; at > 0 && c->best[at - 1].ns > candidate.ns; at--)
        if (at < most)
            c->best[at] = c->best[at - 1];
    if (at < most)
        c->best[at] = candidate;
}

static void rank_class(const struct schedule *s, const struct cost_curve *curve, struct class_widths *c)
{
    int most = s->setting.candidates < MOST_CANDIDATES ? s->setting.candidates : MOST_CANDIDATES;
    for (int i = 0; i < curve->samples; i++) {
        int width = curve->width[i];
        if (width > s->workers)
            break;
        add_candidate(c, (struct candidate){width, false, curve->ns[i]}, most);
        if (width > 1 && curve->spread_ns[i] > 0 && single_tiles(s, width))
            add_candidate(c, (struct candidate){width, true, curve->spread_ns[i]}, most);
    }
    if (!c->count)
        c->best[c->count++] = (struct candidate){1, false, curve_ns(curve, 1)};
}

static double candidate_ns(const struct cost_curve *curve, const struct candidate *c)
{
    return c->spread ? curve_spread_ns(curve, c->width) : curve_ns(curve, c->width);
}

/* Strategy 3 must not conflict with strategy 2. */
static void fit_class(struct schedule *s, int32_t curve, const struct candidate *kind)
{
    struct class_widths *c = &data(s)->classes[curve];
    c->of_kind = *kind;
    c->of_kind.ns = candidate_ns(&s->tasks->curves[curve], kind);
    for (int i = 0; i < c->count; i++) {
        int apart = abs(c->best[i].width - kind->width);
        c->fitting[i] = apart > s->setting.tolerance ? c->of_kind : c->best[i];
    }
}

static const struct class_widths *class_of(const struct schedule *s, int32_t task)
{
    const struct strategies *p = s->policy_data;
    return &p->classes[s->tasks->curve_of[task]];
}

static size_t seen_count(const struct strategies *p)
{
    return (size_t)p->kinds * ((size_t)p->kinds + 1);
}

static graphi_status prepare(struct schedule *s)
{
    const struct tasks *t = s->tasks;
    struct strategies *p = schedule_alloc(s, 1, sizeof *p);
    if (!p)
        return fail_memory("policy", sizeof *p);
    s->policy_data = p;
    p->kinds = t->kinds > 0 ? t->kinds : 1;
    p->classes = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->classes);
    p->of_kind = schedule_alloc(s, (size_t)p->kinds, sizeof *p->of_kind);
    p->serial_ns = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->serial_ns);
    p->ready_hash = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *p->ready_hash);
    p->running_hash = schedule_alloc(s, (size_t)p->kinds, sizeof *p->running_hash);
    p->memo = schedule_alloc(s, MEMO, sizeof *p->memo);
    bool pairs = p->kinds <= MOST_KINDS;
    p->slowdown = schedule_alloc(s, pairs ? 2 * seen_count(p) : 1, sizeof *p->slowdown);
    if (!p->classes || !p->of_kind || !p->serial_ns || !p->ready_hash || !p->running_hash || !p->memo || !p->slowdown)
        return fail_memory("policy", (size_t)t->curves_count * sizeof *p->classes);
    p->observed = pairs ? p->slowdown + seen_count(p) : NULL;
    for (int i = 0; i < t->curves_count; i++)
        rank_class(s, &t->curves[i], &p->classes[i]);
    for (int32_t task = 0; task < t->count; task++) {
        const struct candidate *best = &p->classes[t->curve_of[task]].best[0];
        struct candidate *kind = &p->of_kind[t->kind[task]];
        if (!kind->width || best->ns > kind->ns)
            *kind = *best;
    }
    for (int32_t task = 0; task < t->count; task++)
        fit_class(s, t->curve_of[task], &p->of_kind[t->kind[task]]);
    for (int i = 0; i < t->curves_count; i++) {
        p->serial_ns[i] = curve_ns(&t->curves[i], 1);
        p->ready_hash[i] = hash_u64(HASH_START, (uint64_t)i + 1);
    }
    for (int i = 0; i < p->kinds; i++)
        p->running_hash[i] = hash_u64(~HASH_START, (uint64_t)i + 1); /* never that of a ready one */
    return GRAPHI_OK;
}

/* 0 unless it is large enough for clashes() or crowded(). */
static float telling(float slowdown, bool pair)
{
    return slowdown > (pair ? clashing : crowding) ? slowdown : 0;
}

/* What was observed, against how slow the machine is for tasks alone, takes effect where it can change a decision and differs
 * from what is known: averages move a little in every execution, and each change costs all memoised decisions. It is forgotten
 * slowly, so that what was kept apart for a slow minute of the machine runs side by side again. */
static void begin(struct schedule *s)
{
    struct strategies *p = data(s);
    size_t pairs = (size_t)p->kinds * (size_t)p->kinds;
    float usual = p->alone > 0 ? p->alone : 1;
    bool moved = false;
    p->solo = -1;
    if (!p->observed || s->replaying) /* a replay decides by what was known then */
        return;
    for (size_t i = 0; i < seen_count(p); i++) {
        if (p->observed[i] > 0)
            p->observed[i] += forgetting * (usual - p->observed[i]);
        moved |= fabsf(telling(p->observed[i] / usual, i < pairs) - p->slowdown[i]) > 0.05f * p->slowdown[i];
    }
    if (!moved)
        return;
    for (size_t i = 0; i < seen_count(p); i++)
        p->slowdown[i] = telling(p->observed[i] / usual, i < pairs);
    p->seen = true;
    memset(p->memo, 0, MEMO * sizeof *p->memo); /* decided without knowing */
}

static int64_t by_arrival(struct schedule *s, int32_t task)
{
    (void)task;
    return -s->arrivals;
}

/* ---- strategies 1 and 2: one task at a time
 * ---------------------------------------------------------------------------- */

static bool alone(struct schedule *s, struct decision *d, const struct candidate *c)
{
    d->width = c->width;
    d->spread = c->spread;
    s->list.count--;
    return true;
}

static bool best_of_instance(struct schedule *s, struct decision *d)
{
    if (s->running_count)
        return false;
    d->item = s->list.items[s->list.count - 1];
    return alone(s, d, &data(s)->classes[s->tasks->curve_of[d->item.task]].best[0]);
}

static bool best_of_kind(struct schedule *s, struct decision *d)
{
    if (s->running_count)
        return false;
    d->item = s->list.items[s->list.count - 1];
    return alone(s, d, &data(s)->of_kind[s->tasks->kind[d->item.task]]);
}

/* ---- strategy 3
 * --------------------------------------------------------------------------------------------------------- */

static int64_t longest_first(struct schedule *s, int32_t task)
{
    return (int64_t)class_of(s, task)->of_kind.ns;
}

static double remaining(const struct schedule *s)
{
    double most = s->running_count ? 0 : INFINITY;
    for (int i = 0; i < s->running_count; i++)
        if (s->slots[s->running_slots[i]].predicted_end - (double)s->now > most)
            most = s->slots[s->running_slots[i]].predicted_end - (double)s->now;
    return most;
}

/* How much longer than predicted the task takes beside those that run, averaged over the co-runs seen; 1: as predicted. */
static double slowed(const struct schedule *s, int32_t task)
{
    const struct strategies *p = s->policy_data;
    const float *beside = &p->slowdown[s->tasks->kind[task] * p->kinds];
    float most = 1;
    for (int i = 0; i < s->running_count && p->seen; i++) {
        float factor = beside[s->tasks->kind[s->slots[s->running_slots[i]].task]];
        most = factor > most ? factor : most;
    }
    return most;
}

/* Slower by a third, and waiting for the others would end it sooner. */
static bool clashes(const struct schedule *s, int32_t task, double ns)
{
    double factor = slowed(s, task);
    return factor > clashing && ns * factor > remaining(s) + class_of(s, task)->of_kind.ns;
}

/* Side by side, slowed down as the class was when it was measured beside others or as its kind has been since, narrow tasks
 * take more of the cores' time than wide ones that run alone one after the other. */
static bool crowded(const struct schedule *s, int32_t task, const struct candidate *narrow, const struct candidate *wide)
{
    const struct strategies *p = s->policy_data;
    double factor = fmax(s->tasks->curves[s->tasks->curve_of[task]].beside,
                         p->observed ? p->slowdown[p->kinds * p->kinds + s->tasks->kind[task]] : 0);
    return factor > crowding && narrow->width < wide->width &&
           narrow->width * narrow->ns * factor > wide->width * wide->ns;
}

/* The feasible candidate of this task with the fewest threads, but at least `least` if there is one, else the fastest;
 * width 0: none. */
static struct candidate fewest_threads(const struct schedule *s, int32_t task, double most_ns, int least)
{
    const struct class_widths *class = class_of(s, task);
    struct candidate found = {0};
    for (int i = 0; i < class->count; i++) {
        const struct candidate *c = &class->fitting[i];
        if (c->width > s->idle.count || c->ns > most_ns)
            continue;
        bool enough = c->width >= least, before = found.width >= least;
        if (!found.width || (enough && !before) || (enough == before && (enough ? c->width < found.width : c->ns < found.ns)))
            found = *c;
    }
    if (found.width && !s->running_count && s->list.count > 1 && crowded(s, task, &found, &class->of_kind))
        found = class->of_kind;
    return found;
}

static uint64_t situation(const struct schedule *s, int quantum)
{
    const struct strategies *p = s->policy_data;
    uint64_t ready = 0, running = 0;
    int from = s->list.count > MOST_EXAMINED ? s->list.count - MOST_EXAMINED : 0;
    for (int i = from; i < s->list.count; i++) /* sums: order does not matter */
        ready += p->ready_hash[s->tasks->curve_of[s->list.items[i].task]];
    for (int i = 0; i < s->running_count; i++)
        running += p->running_hash[s->tasks->kind[s->slots[s->running_slots[i]].task]];
    return hash_u64(hash_u64(ready, running), (uint64_t)quantum << 32 | (uint64_t)s->idle.count) | 1;
}

static void examine(struct schedule *s, double most_ns, struct memo *found)
{
    int last_curve = -1, from = s->list.count > MOST_EXAMINED ? s->list.count - MOST_EXAMINED : 0;
    int least = s->running_count ? 1 : (s->idle.count + s->list.count - 1) / s->list.count;
    *found = (struct memo){.key = found->key, .curve = -1};
    for (int i = s->list.count - 1; i >= from; i--) {
        int32_t task = s->list.items[i].task, curve = s->tasks->curve_of[task];
        if (curve == last_curve)
            continue;
        last_curve = curve;
        struct candidate c = fewest_threads(s, task, most_ns, least);
        if (c.width && !clashes(s, task, c.ns)) {
            *found = (struct memo){found->key, curve, (uint16_t)c.width, c.spread};
            return;
        }
    }
    int32_t longest = s->list.items[s->list.count - 1].task; /* at its kind's width, waiting for that many */
    struct candidate c = class_of(s, longest)->of_kind;
    double wait_ns = most_ns + c.ns;
    if (c.width > s->idle.count)
        c = fewest_threads(s, longest, s->list.count > 1 ? INFINITY : wait_ns, s->idle.count);
    if (c.width && !clashes(s, longest, c.ns))
        *found = (struct memo){found->key, s->tasks->curve_of[longest], (uint16_t)c.width, c.spread};
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
    if (memo->key != key || s->list.count > MOST_EXAMINED) {
        memo->key = key;
        examine(s, isinf(left) || left <= 1 ? left : exp2(quantum / 8.0), memo);
        p->memo_misses++;
    } else {
        p->memo_hits++;
    }
    if (memo->curve < 0)
        return false;
    for (int i = s->list.count - 1; i >= 0; i--)
        if (s->tasks->curve_of[s->list.items[i].task] == memo->curve) {
            d->item = s->list.items[i];
            d->width = memo->width;
            d->spread = memo->spread;
            p->solo = s->running_count ? -1 : d->item.task;
            ready_list_remove(&s->list, i);
            return true;
        }
    return false;
}

/* Averages how much longer than predicted a task took alone, or beside each kind that was running at its end. */
static void learn_interference(struct schedule *s, int32_t task, int width, double ns)
{
    struct strategies *p = data(s);
    double predicted = curve_ns(&s->tasks->curves[s->tasks->curve_of[task]], width);
    if (!p->observed || s->replaying ||
        predicted <= 1000) /* shorter ones tell more of the clock than of their neighbours */
        return;
    float seen = (float)(ns / predicted);
    if (task == p->solo)
        p->alone = p->alone > 0 ? 0.98f * p->alone + 0.02f * seen : seen;
    for (int i = 0; i < s->running_count; i++) {
        int a = s->tasks->kind[task], b = s->tasks->kind[s->slots[s->running_slots[i]].task];
        float *pair = &p->observed[a * p->kinds + b], *any = &p->observed[p->kinds * p->kinds + a];
        *pair = *pair > 0 ? 0.75f * *pair + 0.25f * seen : seen;
        *any = *any > 0 ? 0.98f * *any + 0.02f * seen : seen;
        p->observed[b * p->kinds + a] = *pair;
    }
}

/* ---- strategy 4
 * --------------------------------------------------------------------------------------------------------- */

static int idle_sibling(const struct schedule *s)
{
    for (int i = s->workers; i < s->workers + s->siblings; i++)
        if (s->slots[i].task < 0)
            return i;
    return -1;
}

static bool co_run_on_siblings(struct schedule *s, struct decision *d)
{
    if (s->idle.count)
        return co_run(s, d);
    if (idle_sibling(s) < 0)
        return false;
    double most_ns = remaining(s);
    int best = -1;
    double best_ns = INFINITY;
    for (int i = 0; i < s->list.count; i++) {
        double ns = data(s)->serial_ns[s->tasks->curve_of[s->list.items[i].task]];
        if (ns < best_ns && ns <= most_ns && !clashes(s, s->list.items[i].task, ns)) {
            best = i;
            best_ns = ns;
        }
    }
    if (best < 0)
        return false;
    data(s)->solo = -1;
    *d = (struct decision){.item = s->list.items[best], .width = 1, .sibling = true};
    ready_list_remove(&s->list, best);
    return true;
}

const struct policy policy_s1 = {
    .name = "s1",
    .free_width = true,
    .prepare = prepare,
    .begin = begin,
    .key = by_arrival,
    .decide = best_of_instance,
};
const struct policy policy_s12 = {
    .name = "s12",
    .free_width = true,
    .prepare = prepare,
    .begin = begin,
    .key = by_arrival,
    .decide = best_of_kind,
};
const struct policy policy_s123 = {
    .name = "s123",
    .free_width = true,
    .timed = true,
    .prepare = prepare,
    .begin = begin,
    .key = longest_first,
    .decide = co_run,
    .finished = learn_interference,
};
const struct policy policy_s1234 = {
    .name = "s1234",
    .free_width = true,
    .timed = true,
    .prepare = prepare,
    .begin = begin,
    .key = longest_first,
    .decide = co_run_on_siblings,
    .finished = learn_interference,
};
