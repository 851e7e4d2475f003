/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of a schedule: a setting with nothing left open, the slots (executors), and all memory that its executions
 * will use; nothing is allocated afterwards. One schedule serves one run; its size is tens of bytes a task and 2 KB a
 * worker; under a static driver, as much again for each member of a task's team. */
#include "schedule/scheduler.h"

#include "base/status.h"
#include "schedule/decided.h"
#include "schedule/setting_canonical.h"
#include "schedule/widths.h"

_Static_assert(MACHINE_MAX_CORES <= BITMAP_BITS, "a machine that can be described can be scheduled");

static int at_least_one(int value)
{
    return value > 0 ? value : 1;
}

static bool allocate(struct schedule *s)
{
    size_t count = (size_t)s->tasks->count, workers = (size_t)(s->workers + s->siblings);
    s->pending = schedule_alloc(s, count, sizeof *s->pending);
    s->next = schedule_alloc(s, count, sizeof *s->next);
    s->cost = schedule_alloc(s, count, sizeof *s->cost);
    if (s->setting.joins && s->tasks->shares)
        s->pieces = schedule_alloc(s, count, sizeof *s->pieces);
    if (s->policy->remembers)
        s->ran_on = schedule_alloc(s, count, sizeof *s->ran_on);
    s->roots = schedule_alloc(s, count, sizeof *s->roots);
    s->executors = schedule_alloc(s, workers, sizeof *s->executors);
    s->boxes = schedule_alloc(s, workers, sizeof *s->boxes);
    s->slots = schedule_alloc(s, workers, sizeof *s->slots);
    s->every = schedule_alloc(s, workers, sizeof *s->every);
    if (!s->pending || !s->next || !s->cost || (s->policy->remembers && !s->ran_on) ||
        (s->setting.joins && s->tasks->shares && !s->pieces) || !s->roots || !s->executors ||
        !s->boxes || !s->slots || !s->every)
        return false;
    if (!messages_allocate(s))
        return false;
    for (size_t i = 0; i < workers; i++) { /* slots are teams of neighbours */
        s->every[i] = (uint16_t)i;
        s->executors[i].members = s->every + i;
    }
    return s->dispatcher->allocate(s);
}

/* The widest teams first; what is left of the cores is one of the narrow ones. */
static void slots_of_sizes(struct schedule *s, struct team_sizes sizes)
{
    int at = 0;
    for (int size = 2; size >= 0; size--)
        for (int i = 0; i < sizes.count[size]; i++, at += sizes.width[size])
            add_slot(s, at, sizes.width[size]);
    if (sizes.left)
        add_slot(s, at, sizes.left);
}

static void make_slots(struct schedule *s)
{
    const int cores = s->setting.executors * s->setting.width;
    if (s->policy->free_width)
        for (int i = 0; i < s->workers + s->siblings; i++)
            add_slot(s, i, 1);
    else if (s->policy->loop == LOOP_SEQUENTIAL)
        add_slot(s, 0, cores);
    else if (s->policy->sizes)
        slots_of_sizes(s, s->policy->sizes(s->setting.executors, s->setting.width));
    else
        for (int i = 0; i < s->setting.executors; i++)
            add_slot(s, i * s->setting.width, s->setting.width);
    if (s->policy->free_width)
        return;
    s->fixed.light_slot = s->setting.light ? s->slots_count : -1;
    if (s->setting.light)
        add_slot(s, cores, 1);
}

static uint32_t ring_mask(int entries)
{
    uint32_t size = 1;
    while ((int)size < entries)
        size *= 2;
    return size - 1;
}

/* What a task is expected to take; where that is not known long enough to be worth a message. */
static float cost_at(const struct schedule *s, const struct cost_curve *curve, int width)
{
    return curve->samples ? (float)curve_ns(curve, width < s->workers ? width : s->workers) : 1e5f;
}

/* Where it usually runs: decides whether a message to another worker pays. */
static float usual_cost(const struct schedule *s, int32_t task)
{
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[task]];
    return cost_at(s, curve, s->policy->free_width ? at_least_one(curve->best) : s->slots[0].width);
}

/* Into how many pieces a task of one thread is cut for others to join; 0: it is too short, or has one share. */
static uint8_t pieces_of(const struct schedule *s, int32_t task)
{
    const float cost = cost_at(s, &s->tasks->curves[s->tasks->curve_of[task]], 1);
    int pieces = cost < MOST_PIECES * PIECE_NS ? (int)(cost / PIECE_NS) : MOST_PIECES;
    if (pieces > s->tasks->shares[task])
        pieces = s->tasks->shares[task];
    return (uint8_t)(pieces > 1 ? pieces : 0);
}

static graphi_status fill(struct schedule *s)
{
    make_slots(s);
    for (int i = 0; i < s->workers + s->siblings; i++) {
        s->executors[i].index = (uint16_t)i;
        s->executors[i].joins = s->pieces && s->slots[s->executors[i].slot].width == 1;
        s->executors[i].inbox.mask = ring_mask(s->setting.depth);
        s->executors[i].outbox.mask = ring_mask(s->setting.depth + 1);
    }
    for (int32_t task = 0; task < s->tasks->count; task++) {
        s->cost[task] = usual_cost(s, task);
        if (s->pieces)
            s->pieces[task] = pieces_of(s, task);
        if (s->tasks->pending[task] == 0 && !(s->tasks->wait_of && s->tasks->wait_of[task] >= 0))
            s->roots[s->roots_count++] = task;
    }
    /* A message is assumed to cost 150 ns where nobody has measured it on the machine at hand. */
    s->wake_ns = s->machine->wake_ns > 0 ? s->machine->wake_ns : s->machine->captured ? 150 : 0;
    if (s->policy->loop == LOOP_NAIVE && !(s->queue = naive_create(s)))
        return fail_memory("shared queue", (size_t)s->tasks->count * sizeof(int32_t));
    return s->policy->prepare ? s->policy->prepare(s) : GRAPHI_OK;
}

graphi_status schedule_create(const struct tasks *tasks, struct decided decided, struct schedule **out)
{
    const graphi_decision *runs = &decided.runs;
    const int cores = decided.machine->cores;
    if (decided.workers > cores || decided.workers > BITMAP_BITS)
        return fail(GRAPHI_USAGE, "setting", "found %d executors of width %d, expected at most %d cores",
                    runs->executors, runs->width, cores < BITMAP_BITS ? cores : BITMAP_BITS);
    struct schedule *s = schedule_block();
    if (!s)
        return fail_memory("schedule", sizeof *s);
    s->tasks = tasks;
    s->machine = decided.machine;
    s->setting = *runs;
    s->policy = s->asked = policy_decided(runs);
    if (runs->backward_executors > 0 && s->policy->loop == LOOP_SCHEDULED && !s->policy->free_width)
        s->policy = &policy_phases;
    s->dispatcher = s->policy->free_width ? &dispatch_teams : &dispatch_fixed;
    s->workers = decided.workers;
    s->siblings = decided.siblings;
    s->inlining = runs->inlines && s->policy->loop != LOOP_SEQUENTIAL;
    graphi_status status = allocate(s) ? fill(s) : fail_memory("schedule", (size_t)tasks->count * 64);
    if (status != GRAPHI_OK)
        schedule_destroy(s);
    else
        *out = s;
    return status;
}

void schedule_listen(struct schedule *s, const struct message_source *source) { s->waits.source = source; }

static int widest(const struct schedule *s)
{
    int width = 1;
    if (s->policy->free_width)
        return s->workers + s->siblings;
    for (int i = 0; i < s->slots_count; i++)
        width = s->slots[i].width > width ? s->slots[i].width : width;
    return width;
}

graphi_status schedule_trace_teams(struct schedule *s)
{
    size_t count = (size_t)s->tasks->count, row = (size_t)widest(s), room = 0;
    if ((row == 1 && !s->pieces) || s->teams.row)
        return GRAPHI_OK;
    for (size_t t = 0; t < count && s->pieces; t++)
        room += (size_t)s->pieces[t] * TASK_MOST_PHASES;
    if (s->pieces && !s->joined && !(s->joined = schedule_alloc_raw(s, room + 1, sizeof *s->joined)))
        return fail_memory("trace", room * sizeof *s->joined);
    size_t entries = count > SIZE_MAX / row ? SIZE_MAX : count * row;
    struct team_trace teams = {.row = row, .worked_ns = schedule_alloc_raw(s, entries, sizeof *teams.worked_ns)};
    if (s->policy->free_width)
        teams.member = schedule_alloc_raw(s, entries, sizeof *teams.member);
    if (!teams.worked_ns || (s->policy->free_width && !teams.member))
        return fail_memory("trace", entries);
    s->teams = teams;
    return GRAPHI_OK;
}

const struct team_trace *schedule_teams(const struct schedule *s)
{
    return &s->teams;
}

struct join_trace schedule_joined(const struct schedule *s)
{
    int count = atomic_load_explicit(&s->joined_count, memory_order_relaxed); /* after lease_wait */
    return (struct join_trace){s->joined, s->joined ? count : 0};
}
