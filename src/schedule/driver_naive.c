/* SPDX-License-Identifier: Apache-2.0 */
/* The two loops without a scheduling step, as baselines over the same kernels.
 *
 * naive: executors poll one shared queue under a lock and push what they trigger back to it, in no particular order
 * (the execution engines that graphi.txt 7.4 compares with). sequential: worker 0 walks the tasks in array order, each
 * on a team of all workers. */
#include "schedule/scheduler.h"

#include "base/hash.h"
#include "machine/parking.h"

struct shared_queue {
    _Alignas(128) atomic_flag locked; /* test_and_set (acquire) pairs with clear (release) */
    int32_t head, tail;               /* all below: under the lock */
    int32_t left;                     /* tasks not yet finished */
    int32_t running;
    uint64_t polls; /* looks at the queue, with or without a task in it */
    int32_t *items;
};

uint64_t naive_polls(const struct schedule *s)
{
    return s->queue->polls;
}

struct shared_queue *naive_create(struct schedule *s)
{
    struct shared_queue *queue = schedule_alloc(s, 1, sizeof *queue);
    if (queue && !(queue->items = schedule_alloc(s, (size_t)s->tasks->count + 1, sizeof *queue->items)))
        return NULL;
    return queue;
}

void naive_begin(struct schedule *s)
{
    struct shared_queue *queue = s->queue;
    atomic_flag_clear(&queue->locked);
    queue->head = queue->tail = queue->running = 0;
    queue->polls = 0;
    queue->left = s->tasks->count;
    for (int i = 0; i < s->roots_count; i++)
        queue->items[queue->tail++] = s->roots[i];
}

static void lock(struct shared_queue *queue)
{
    for (unsigned spins = 0;
         atomic_flag_test_and_set_explicit(&queue->locked, memory_order_acquire);) /* pairs with unlock */
        spin_turn(&spins);
}

static void unlock(struct shared_queue *queue)
{
    atomic_flag_clear_explicit(&queue->locked, memory_order_release);
}

/* Under the lock: its task may have had a message as its last predecessor. */
static void push_heard(struct schedule *s, int wait)
{
    if (message_arrives(s, wait))
        s->queue->items[s->queue->tail++] = s->tasks->waits[wait];
}

/* A task from the queue, or -1; *over when no task will come any more. */
static int32_t take(struct schedule *s, struct executor *x, bool *over)
{
    struct shared_queue *queue = s->queue;
    int32_t task = -1;
    lock(queue);
    queue->polls++;
    messages_look(s, push_heard);
    bool failed = atomic_load_explicit(&s->failed, memory_order_relaxed) != 0;
    if (queue->head != queue->tail && !failed) {
        task = queue->items[queue->head++];
        queue->running++;
        if (s->hashing)
            s->decisions = decisions_hash(s->decisions, task, x->index, s->slots[0].width);
    }
    *over = queue->left == 0 || (failed && queue->running == 0);
    unlock(queue);
    return task;
}

static void run(struct schedule *s, struct executor *x, int32_t task)
{
    struct shared_queue *queue = s->queue;
    struct assignment assignment = {.task = task, .last = task, .width = s->slots[x->slot].width};
    struct completion done = executor_execute(s, x, assignment);
    lock(queue);
    for (int32_t ready = done.first; ready >= 0; ready = ready == done.last ? -1 : s->next[ready])
        queue->items[queue->tail++] = ready;
    queue->left -= done.ran;
    queue->running--;
    unlock(queue);
}

void naive_worker(void *context, int worker)
{
    struct schedule *s = context;
    struct executor *x = &s->executors[worker];
    bool leads = s->slots[x->slot].first == worker, over = false;
    int64_t idle_ns = 0;
    for (unsigned spins = 0; !over;) {
        int32_t task = leads ? take(s, x, &over) : -1;
        if (task >= 0) {
            run(s, x, task);
            spins = 0;
            idle_ns = 0;
        } else if (team_poll(&s->boxes[worker])) {
            spins = 0;
        } else {
            over = over || atomic_load_explicit(&s->finished, memory_order_acquire); /* pairs with the store below */
            messages_found(s, x, &idle_ns); /* for its patience */
            spin_turn(&spins);
        }
    }
    atomic_store_explicit(&s->finished, 1,
                          memory_order_release); /* members of teams leave; pairs with the load above */
}

/* Tiny tasks are not worth a team. */
int sequential_width(const struct schedule *s, int32_t task)
{
    return s->setting.inlines && (s->tasks->flags[task] & TASK_INLINE) ? 1 : s->slots[0].width;
}

/* The task has run: those that wait for it have one predecessor less. */
static void count_down(struct schedule *s, int32_t task)
{
    const struct tasks *t = s->tasks;
    atomic_store_explicit(&s->pending[task], -1, memory_order_relaxed);
    for (int32_t e = t->edges_begin[task]; e < t->edges_begin[task + 1]; e++)
        atomic_fetch_sub_explicit(&s->pending[t->edges[e]], 1, memory_order_relaxed);
}

static void take_off(struct schedule *s, int wait) { message_arrives(s, wait); }

static bool more_waits(const struct schedule *s)
{
    return atomic_load_explicit(&s->waits.left, memory_order_relaxed) > 0;
}

/* Array order, but that a task whose message is not there yet holds up nothing but what waits for it: others, which
 * somebody may wait for to send that message, come first. */
static void walk_with_messages(struct schedule *s, struct executor *x)
{
    const struct tasks *t = s->tasks;
    int64_t idle_ns = 0;
    for (int32_t left = t->count; left && !atomic_load_explicit(&s->failed, memory_order_relaxed);) {
        const int32_t before = left;
        messages_look(s, take_off);
        for (int32_t task = 0; task < t->count && !atomic_load_explicit(&s->failed, memory_order_relaxed); task++) {
            if (atomic_load_explicit(&s->pending[task], memory_order_relaxed))
                continue;
            executor_one(s, x, task, sequential_width(s, task), false);
            count_down(s, task);
            left--;
        }
        idle_ns = left < before ? 0 : idle_ns;
        for (unsigned spins = 0; left == before && !messages_found(s, x, &idle_ns) && more_waits(s);)
            spin_turn(&spins);
    }
}

void sequential_worker(void *context, int worker)
{
    struct schedule *s = context;
    struct executor *x = &s->executors[worker];
    if (worker == 0 && s->tasks->waits_count) {
        walk_with_messages(s, x);
        atomic_store_explicit(&s->finished, 1, memory_order_release); /* pairs with executor_follow() */
    } else if (worker == 0) {
        int64_t ready = 0; /* when a task's turn comes */
        for (int32_t task = 0; task < s->tasks->count && !atomic_load_explicit(&s->failed, memory_order_relaxed);
             task++) {
            if (s->records)
                s->records[task].ready_ns = ready;
            ready = executor_one(s, x, task, sequential_width(s, task), false);
        }
        atomic_store_explicit(&s->finished, 1, memory_order_release); /* pairs with executor_follow() */
    }
    executor_follow(s, x);
}
