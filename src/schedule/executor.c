/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker does with an assignment (graphi.txt Algorithm 2): run it, count down its successors, run those that
 * became ready and are tiny at once, chain the others, and publish the lot as one completion. The counting and chaining
 * is shared by the real and the simulated machine; executor_run and executor_poll are the real worker. No allocation,
 * no locks. */
#include "schedule/scheduler.h"

#include "base/clock.h"
#include "base/status.h"
#include "machine/parking.h"

#include <string.h>

/* True if this was the last predecessor that `task` waited for. */
static inline bool trigger(struct schedule *s, int32_t task)
{
    /* One left means it is ours: nobody else will touch the counter, so the locked decrement is saved. Acquire pairs
     * with the release half of the other predecessors' decrements: their results are visible to whoever runs the task.
     */
    if (atomic_load_explicit(&s->pending[task], memory_order_acquire) == 1)
        return true;
    return atomic_fetch_sub_explicit(&s->pending[task], 1, memory_order_acq_rel) ==
           1; /* pairs with itself and the load */
}

static inline void chain(int32_t *next, int32_t *first, int32_t *last, int32_t task)
{
    if (*first < 0)
        *first = task;
    else
        next[*last] = task;
    *last = task;
}

/* After `task` has run: the next tiny task to run inline, or -1 when the completion is ready to be published. */
int32_t executor_advance(struct schedule *s, struct executor *x, int32_t task, int64_t end_ns, struct completion *done)
{
    const struct tasks *tasks = s->tasks;
    done->ran++;
    done->end_ns = end_ns;
    for (int32_t e = tasks->edges_begin[task]; e < tasks->edges_begin[task + 1]; e++) {
        int32_t successor = tasks->edges[e];
        if (!trigger(s, successor))
            continue;
        if (s->records)
            s->records[successor].ready_ns = end_ns;
        if (s->inlining && (tasks->flags[successor] & TASK_INLINE)) {
            chain(s->next, &x->inline_first, &x->inline_last, successor);
            executor_fetch(s, successor);
        } else {
            chain(s->next, &done->first, &done->last, successor);
        }
    }
    int32_t tiny = x->inline_first;
    if (tiny >= 0)
        x->inline_first = tiny == x->inline_last ? -1 : s->next[tiny];
    return tiny;
}

struct team_job {
    struct schedule *schedule;
    int32_t task;
};

/* The first failure wins and its message is carried to the caller's thread; nothing starts afterwards. */
void schedule_fail(struct schedule *s, graphi_status status)
{
    int none = 0;
    /* relaxed: the text is read by the caller after lease_wait */
    if (atomic_compare_exchange_strong_explicit(&s->failed, &none, (int)status, memory_order_relaxed,
                                                memory_order_relaxed))
        message_get(s->message, sizeof s->message);
}

/* A member's failure is recorded before it counts as finished, so that its leader sees it once team_run() returned. */
static void run_share(struct schedule *s, int32_t task, struct team *team, int member, int width)
{
    graphi_status status = s->function(s->context, task, team, member, width);
    if (status != GRAPHI_OK)
        schedule_fail(s, status);
}

static void team_share(void *context, struct team *team, int member, int width)
{
    struct team_job *job = context;
    run_share(job->schedule, job->task, team, member, width);
}

bool executor_opens(const struct schedule *s, int32_t task, int width)
{
    return width == 1 && s->pieces && s->pieces[task];
}

/* Who runs a traced task; false: nobody asked. */
bool executor_note_team(const struct schedule *s, const struct executor *x, int32_t task, int width)
{
    const struct team_trace *teams = &s->teams;
    if (!s->records || !teams->row || (width == 1 && !executor_opens(s, task, width)))
        return false;
    if (teams->member)
        memcpy(teams->member + (size_t)task * teams->row, x->members, (size_t)width * sizeof *x->members);
    return true;
}

/* The watches of a traced task's members, at zero; NULL: nobody asked. */
static int64_t *watches(const struct schedule *s, const struct executor *x, int32_t task, int width)
{
    if (!executor_note_team(s, x, task, width))
        return NULL;
    int64_t *worked_ns = s->teams.worked_ns + (size_t)task * s->teams.row;
    memset(worked_ns, 0, (size_t)width * sizeof *worked_ns);
    return worked_ns;
}

static void execute_task(struct schedule *s, struct executor *x, int32_t task, int width)
{
    bool open = executor_opens(s, task, width);
    if (width == 1 && !open) {
        run_share(s, task, NULL, 0, 1);
        return;
    }
    struct team_job job = {s, task};
    if (open) { /* to no one else's eyes yet: its last phase has ended */
        x->team.worker = x->index;
        x->team.pieces = s->pieces[task];
        x->team.label = task;
    }
    x->team.worked_ns = watches(s, x, task, width);
    team_run(&x->team, s->boxes, x->members, width, team_share, &job);
}

/* One task with its record; returns when it ended (0: not timed). */
int64_t executor_one(struct schedule *s, struct executor *x, int32_t task, int width, bool inlined)
{
    int64_t start = s->timed ? clock_ns() - s->began : 0;
    execute_task(s, x, task, width);
    int64_t end = s->timed ? clock_ns() - s->began : 0;
    if (s->records) {
        struct task_record *r = &s->records[task];
        r->start_ns = start;
        r->end_ns = end;
        r->leader = x->index;
        r->width = (uint16_t)width;
        r->inlined = inlined;
        r->open = executor_opens(s, task, width);
    }
    return end;
}

/* A task and the tiny ones that it makes ready. */
static bool run_with_tiny(struct schedule *s, struct executor *x, int32_t task, int width, struct completion *done)
{
    for (bool inlined = false; task >= 0; inlined = true) {
        if (atomic_load_explicit(&s->failed, memory_order_relaxed)) /* see step_dispatch */
            return false;
        int64_t end = executor_one(s, x, task, inlined ? 1 : width, inlined);
        task = executor_advance(s, x, task, end, done);
    }
    return true;
}

static void fetch_ring(const struct schedule *s, struct executor *x)
{
    /* pairs with RING_PUSH's release */
    if (atomic_load_explicit(&x->inbox.tail, memory_order_acquire) != x->inbox_head)
        executor_fetch(s, x->inbox.items[x->inbox_head & x->inbox.mask].task);
}

struct completion executor_execute(struct schedule *s, struct executor *x, struct assignment assignment)
{
    fetch_ring(s, x);
    struct completion done = {.task = assignment.task, .first = -1};
    x->inline_first = -1;
    for (int32_t task = assignment.task;; task = s->next[task]) {
        if (task != assignment.last)
            executor_fetch(s, s->next[task]);
        if (!run_with_tiny(s, x, task, assignment.width, &done) || task == assignment.last)
            break;
    }
    return done;
}

void executor_run(struct schedule *s, struct executor *x, struct assignment assignment)
{
    struct completion done = executor_execute(s, x, assignment);
    RING_PUSH(&x->outbox, done);
    if (s->slots_count > DIRTY_SLOTS) /* pairs with the acquire in step_drain() */
        atomic_fetch_or_explicit(&s->dirty[x->slot >> 6], (uint64_t)1 << (x->slot & 63), memory_order_release);
}

/* Combining: may a completion that was pushed wait for the next one before it is counted and brings a step? While the
 * executor has more than a quarter of its ring left to do and nobody idles for want of ready tasks. So a step, and the
 * travel of what it touches between cores, serves several short tasks, and other executors' rings are filled again
 * before they are empty. Relaxed: seen late, one more task runs first. */
bool executor_defers(const struct schedule *s, unsigned queued)
{
    bool starving = atomic_load_explicit(&s->starving, memory_order_relaxed); /* pairs with step_dispatch() */
    return queued * 4 > (unsigned)s->setting.depth && !starving;
}

void executor_note_joined(struct schedule *s, struct joined piece)
{
    int at = atomic_fetch_add_explicit(&s->joined_count, 1, memory_order_relaxed); /* each has its own entry */
    s->joined[at] = piece;
}

/* A piece of what another executor has open, the one that was helped last first. Who takes part is idle, looks for a
 * task of its own after each piece, and looks at one other executor at a time: what that one writes is fetched from its
 * cache. */
static bool join_other(struct schedule *s, struct executor *x)
{
    struct executor *other = &s->executors[x->looked];
    bool traced = s->records && s->joined;
    struct team_piece piece;
    if (team_is_open(&other->team) && team_join(&other->team, x->index, traced, &piece)) {
        if (traced)
            executor_note_joined(s, (struct joined){.start_ns = piece.begin_ns - s->began,
                                                    .end_ns = piece.end_ns - s->began,
                                                    .task = piece.label,
                                                    .worker = x->index});
        return true;
    }
    x->looked = (uint16_t)(x->looked + 1 < s->workers ? x->looked + 1 : 0);
    return false;
}

bool executor_help(struct schedule *s, struct executor *x)
{
    return team_poll(&s->boxes[x->index]) || (x->joins && join_other(s, x));
}

void executor_follow(struct schedule *s, struct executor *x)
{
    /* pairs with the driver's store */
    for (unsigned spins = 0; !atomic_load_explicit(&s->finished, memory_order_acquire);)
        if (executor_help(s, x))
            spins = 0;
        else
            spin_turn(&spins);
}

/* A worker of a team that is not needed as leader, or a leader without work, takes part in what others lead. */
bool executor_poll(struct schedule *s, struct executor *x)
{
    struct assignment assignment = x->direct;
    if (assignment.task >= 0)
        x->direct.task = -1;
    else if (!RING_POP(&x->inbox, &x->inbox_head, &assignment))
        return executor_help(s, x);
    executor_run(s, x, assignment);
    return true;
}
