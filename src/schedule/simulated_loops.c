/* SPDX-License-Identifier: Apache-2.0 */
/* The naive shared queue and the sequential loop in virtual time.
 *
 * The queue's lock is a server with one customer at a time: a push or a take holds it for lock_ns, and every executor
 * that polls meanwhile makes each access atomic_ns dearer (the line with the lock travels between the pollers).
 * Outside of the lock it costs an executor entry_ns an operation: it makes the entries of what has become ready itself.
 * An executor that pushes comes first to take, since its core has the lock (on two cores 0.29 of ResNet-50's data came
 * from the other one; by turns it would be 0.56). Others that poll follow in the order in which they ran out of
 * work. */
#include "schedule/simulated_play.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

enum { POLLER_ENDS, POLLER_PUSHES, POLLER_MESSAGES };

struct poller {
    int32_t task, assigned;
    struct completion done;
};

struct naive_world {
    struct schedule *schedule;
    task_duration duration;
    void *context;
    struct events events;
    struct poller *pollers; /* one an executor */
    int32_t *waiting;       /* ring of executors that poll */
    int first, polling;
    int32_t *queue, *running; /* running: tasks, one an executor, -1 none; co-running ones are gathered from it */
    int32_t *gathered;
    int head, tail, running_count;
    double now, lock_free, busy, scheduling, corunning, changes;
};

static void changed(struct naive_world *w)
{
    w->changes++;
    w->corunning += w->running_count;
}

static int gather(struct naive_world *w)
{
    int count = 0;
    for (int i = 0; w->duration && i < w->schedule->slots_count; i++)
        if (w->running[i] >= 0)
            w->gathered[count++] = w->running[i];
    return count;
}

static void start(struct naive_world *w, int slot, int32_t task, int width, double at)
{
    struct schedule *s = w->schedule;
    int count = gather(w);
    struct seat seat = {.leader = s->slots[slot].first, .width = (uint16_t)width};
    double ns = w->duration ? w->duration(w->context, task, seat, w->gathered, count)
                            : curve_ns(&s->tasks->curves[s->tasks->curve_of[task]], width);
    struct poller *p = &w->pollers[slot];
    p->task = task;
    w->running[slot] = task;
    w->running_count++;
    changed(w);
    w->busy += ns * width;
    if (s->records)
        s->records[task] = (struct task_record){.start_ns = whole_ns(at),
                                                .end_ns = whole_ns(at + ns),
                                                .ready_ns = s->records[task].ready_ns,
                                                .leader = s->slots[slot].first,
                                                .width = (uint16_t)width,
                                                .inlined = task != p->assigned};
    event_add(&w->events, at + ns, POLLER_ENDS, slot);
}

/* One access to the queue from time `at` on; returns when it is done. */
static double access_queue(struct naive_world *w, double at)
{
    const graphi_machine *m = w->schedule->machine;
    double begin = at > w->lock_free ? at : w->lock_free;
    w->lock_free = begin + m->lock_ns + m->atomic_ns * w->polling;
    w->scheduling += w->lock_free - at;
    return w->lock_free;
}

static void serve_pollers(struct naive_world *w)
{
    struct schedule *s = w->schedule;
    while (w->polling && w->head != w->tail) {
        int slot = w->waiting[w->first];
        w->first = (w->first + 1) % s->slots_count;
        double at = access_queue(w, w->now);
        w->polling--;
        int32_t task = w->queue[w->head++];
        struct poller *p = &w->pollers[slot];
        p->assigned = task;
        p->done = (struct completion){.task = task, .first = -1};
        s->executors[s->slots[slot].first].inline_first = -1;
        s->decisions = decisions_hash(s->decisions, task, s->slots[slot].first, s->slots[slot].width);
        start(w, slot, task, s->slots[slot].width, at);
    }
}

static void pushes(struct naive_world *w, int slot)
{
    struct schedule *s = w->schedule;
    const struct poller *p = &w->pollers[slot];
    for (int32_t ready = p->done.first; ready >= 0; ready = ready == p->done.last ? -1 : s->next[ready])
        w->queue[w->tail++] = ready;
    access_queue(w, w->now);
    w->first = (w->first + w->schedule->slots_count - 1) % w->schedule->slots_count;
    w->waiting[w->first] = slot;
    w->polling++;
    serve_pollers(w);
}

static void ends(struct naive_world *w, int slot)
{
    struct schedule *s = w->schedule;
    struct poller *p = &w->pollers[slot];
    changed(w); /* it counts among those side by side until now */
    w->running[slot] = -1;
    w->running_count--;
    int32_t tiny = executor_advance(s, &s->executors[s->slots[slot].first], p->task, whole_ns(w->now), &p->done);
    if (tiny >= 0) {
        start(w, slot, tiny, 1, w->now);
        return;
    }
    w->scheduling += s->machine->entry_ns;
    if (s->machine->entry_ns > 0)
        event_add(&w->events, w->now + s->machine->entry_ns, POLLER_PUSHES, slot);
    else
        pushes(w, slot);
}

static void hear(struct naive_world *w)
{
    struct schedule *s = w->schedule;
    for (int i = 0; i < s->tasks->waits_count; i++)
        if (message_arrives(s, i))
            w->queue[w->tail++] = s->tasks->waits[i];
    serve_pollers(w);
}

graphi_status simulate_naive(struct schedule *s, task_duration duration, void *context, struct simulation *out)
{
    size_t slots = (size_t)s->slots_count;
    struct naive_world w = {.schedule = s, .duration = duration, .context = context};
    w.events.items = mem_zalloc_array(slots + 2, sizeof *w.events.items);
    w.pollers = mem_zalloc_array(slots, sizeof *w.pollers);
    w.waiting = mem_zalloc_array(slots, sizeof *w.waiting);
    w.queue = mem_zalloc_array((size_t)s->tasks->count + 1, sizeof *w.queue);
    w.running = mem_zalloc_array(2 * slots, sizeof *w.running);
    w.gathered = w.running + slots;
    graphi_status status = GRAPHI_OK;
    if (!w.events.items || !w.pollers || !w.waiting || !w.queue || !w.running) {
        status = fail_memory("simulation", slots * sizeof *w.pollers);
    } else {
        for (int i = 0; i < s->slots_count; i++) {
            w.running[i] = -1;
            w.waiting[w.polling++] = i;
        }
        for (int i = 0; i < s->roots_count; i++)
            w.queue[w.tail++] = s->roots[i];
        serve_pollers(&w);
        if (s->tasks->waits_count)
            event_add(&w.events, s->wake_ns, POLLER_MESSAGES, 0);
        while (w.events.count) {
            struct event event = event_take(&w.events);
            w.now = event.time;
            if (event_kind(&event) == POLLER_MESSAGES) {
                hear(&w);
                continue;
            }
            (event_kind(&event) == POLLER_PUSHES ? pushes : ends)(&w, event.worker);
        }
        *out = (struct simulation){.makespan_ns = w.now,
                                   .busy_ns = w.busy,
                                   .scheduling_ns = w.scheduling,
                                   .mean_corunning = w.changes ? w.corunning / w.changes : 0};
    }
    mem_free(w.events.items);
    mem_free(w.pollers);
    mem_free(w.waiting);
    mem_free(w.queue);
    mem_free(w.running);
    return status;
}

graphi_status simulate_sequential(struct schedule *s, task_duration duration, void *context, struct simulation *out)
{
    double now = 0, busy = 0;
    for (int32_t task = 0; task < s->tasks->count; task++) {
        int width = sequential_width(s, task);
        if (s->tasks->wait_of && s->tasks->wait_of[task] >= 0 && now < s->wake_ns)
            now = s->wake_ns;
        double ns = duration ? duration(context, task, (struct seat){.width = (uint16_t)width}, NULL, 0)
                             : curve_ns(&s->tasks->curves[s->tasks->curve_of[task]], width);
        if (s->records)
            s->records[task] = (struct task_record){.start_ns = whole_ns(now),
                                                    .end_ns = whole_ns(now + ns),
                                                    .ready_ns = whole_ns(now),
                                                    .width = (uint16_t)width};
        now += ns;
        busy += ns * width;
        s->decisions = hash_u64(s->decisions, (uint64_t)task << 32 | (uint64_t)width);
    }
    *out = (struct simulation){.makespan_ns = now, .busy_ns = busy, .mean_corunning = s->tasks->count > 0};
    return GRAPHI_OK;
}
