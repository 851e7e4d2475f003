/* SPDX-License-Identifier: Apache-2.0 */
/* The combining and the dedicated driver in virtual time: the same scheduling step and the same counting of successors
 * as on the real machine, charged by what the machine description says: a task through the step takes schedule_ns, a
 * message to another worker wake_ns, each half of the combining protocol an atomic. Under the dedicated driver steps
 * run on the client's own time; under the combining one on the worker whose completion found the role free, and
 * completions that arrive meanwhile wait for the next round. One thread; below 1 us an operation at 68 cores. */
#include "schedule/simulated_play.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>

enum { SAMPLED = 16 }; /* reading the clock takes as long as a short step */

/* What is sent to a worker, and what of it that one runs. */
struct receiver {
    struct assignment queue[RING_DEPTH];
    double arrives[RING_DEPTH];
    unsigned head, tail;
    struct assignment current;
    int32_t member; /* of the current batch; tiny tasks after it are not */
    struct completion done;
};

struct published {
    int32_t slot;
    struct completion done;
};

struct stepping {
    struct receiver *receivers;  /* one a worker */
    struct published *published; /* ring of all slots' unfinished completions */
    unsigned first, last, mask;
    double send_time; /* end of the step so far */
    bool stepping;
    bool messages; /* have come, and the step has not seen them yet */
    unsigned steps;
    int64_t first_deciding, deciding; /* real ns in the first step, in the next and every SAMPLED-th after it */
};

/* The step has the core until send_time. */
static void hold_core(struct world *w)
{
    const struct stepping *own = w->own;
    const double from = shared_core_step(&w->core, w->now, own->send_time);
    const int leader = w->core.leader;
    if (leader >= 0)
        world_set_end(w, leader, w->workers[leader].ends + w->core.held - from, w->workers[leader].cores);
}

static bool start_own(struct world *w, int worker)
{
    struct receiver *r = &((struct stepping *)w->own)->receivers[worker];
    if (r->head == r->tail || r->arrives[r->head % RING_DEPTH] > w->now)
        return false;
    r->current = r->queue[r->head++ % RING_DEPTH];
    r->member = r->current.task;
    r->done = (struct completion){.task = r->current.task, .first = -1};
    w->schedule->executors[worker].inline_first = -1;
    world_start(w, r->current.task, (struct seat){(uint16_t)worker, r->current.width, r->current.spread}, false);
    return true;
}

static void publish(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    struct stepping *own = w->own;
    struct receiver *r = &own->receivers[worker];
    own->published[own->last++ & own->mask] = (struct published){s->executors[worker].slot, r->done};
    bool dedicated = s->setting.driver == GRAPHI_DRIVER_DEDICATED;
    unsigned queued = 0;
    while (r->head + queued != r->tail && r->arrives[(r->head + queued) % RING_DEPTH] <= w->now)
        queued++;
    double cost = dedicated ? s->machine->wake_ns : s->machine->atomic_ns;
    if (!own->stepping && (dedicated || !executor_defers(s, queued))) {
        own->stepping = true;
        w->workers[worker].steps = !dedicated;
        w->scheduling += cost;
        if (dedicated)
            event_add(&w->events, shared_core_step_due(&w->core, w->now, w->now + cost), EVENT_STEP, -1);
        else
            event_add(&w->events, w->now + cost, EVENT_STEP, worker);
    }
    world_go_on(w, worker);
}

static void ended(struct world *w, int worker, int32_t task)
{
    struct schedule *s = w->schedule;
    struct receiver *r = &((struct stepping *)w->own)->receivers[worker];
    const int32_t tiny = executor_advance(s, &s->executors[worker], task, whole_ns(w->now), &r->done);
    const struct seat alone = {.leader = (uint16_t)worker, .width = 1};
    if (tiny >= 0) {
        world_start(w, tiny, alone, true);
    } else if (r->member != r->current.last) {
        r->member = s->next[r->member];
        world_start(w, r->member, alone, false);
    } else {
        publish(w, worker);
    }
}

static void send_simulated(struct schedule *s, int slot, struct assignment assignment)
{
    struct world *w = s->backend;
    struct stepping *own = w->own;
    int worker = s->slots[slot].first;
    struct receiver *r = &own->receivers[worker];
    own->send_time += s->machine->schedule_ns;
    const double way = slot == s->self ? 0 : s->machine->wake_ns;
    const double arrives = own->send_time + way;
    w->scheduling += way;
    r->arrives[r->tail % RING_DEPTH] = arrives;
    r->queue[r->tail++ % RING_DEPTH] = assignment;
    if (slot != s->self) /* it starts its own when the step has ended */
        event_add(&w->events, arrives, EVENT_ARRIVES, worker);
}

/* Where an order is made one at a time (simulated_play.c), else all. */
static void hear(struct world *w)
{
    struct schedule *s = w->schedule;
    struct stepping *own = w->own;
    for (int i = 0; own->messages && i < s->tasks->waits_count; i++)
        if (!message_told(s, i)) {
            step_message(s, i);
            own->messages = !s->placement;
        }
    own->messages = false;
}

static void step(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    struct stepping *own = w->own;
    s->self = worker < 0 ? -1 : s->executors[worker].slot;
    own->send_time = w->now;
    const bool sampled = own->steps == 0 || own->steps % SAMPLED == 1;
    int64_t before = sampled ? clock_ns() : 0, begin = sampled ? clock_ns() : 0; /* the reading itself is taken off */
    hear(w);
    for (; own->first != own->last; own->first++) {
        struct published *p = &own->published[own->first & own->mask];
        step_complete(s, p->slot, &p->done);
    }
    step_dispatch(s);
    int64_t took = sampled ? clock_ns() - begin - (begin - before) : 0;
    *(own->steps ? &own->deciding : &own->first_deciding) += took > 0 ? took : 0;
    own->steps++;
    w->scheduling += own->send_time - w->now;
    if (w->core.worker >= 0)
        hold_core(w);
    event_add(&w->events, own->send_time, EVENT_STEP_ENDS, worker);
}

static void step_ends(struct world *w, int worker)
{
    double cost = worker < 0 ? 0 : w->schedule->machine->atomic_ns; /* the fetch_sub */
    struct stepping *own = w->own;
    w->over = w->now;
    if (own->first != own->last || own->messages) {
        event_add(&w->events, w->now + cost, EVENT_STEP, worker);
        return;
    }
    own->stepping = false;
    w->core.turn = w->now;
    if (worker < 0)
        return;
    w->workers[worker].steps = false;
    world_go_on(w, worker);
}

/* Who idles knocks (driver_combining.c); where nobody does the next step sees them. */
static void messages(struct world *w)
{
    const struct schedule *s = w->schedule;
    struct stepping *own = w->own;
    own->messages = true;
    if (own->stepping)
        return;
    int worker = s->setting.driver == GRAPHI_DRIVER_DEDICATED ? -1 : 0;
    while (worker >= 0 && worker < s->workers && (w->workers[worker].task >= 0 || w->workers[worker].joined >= 0))
        worker++;
    if (worker == s->workers)
        return;
    own->stepping = true;
    if (worker >= 0)
        w->workers[worker].steps = true;
    const double due = w->now + (worker < 0 ? 0 : s->machine->atomic_ns);
    event_add(&w->events, worker < 0 ? shared_core_step_due(&w->core, w->now, due) : due, EVENT_STEP, worker);
}

static void on_event(struct world *w, int kind, int worker)
{
    if (kind == EVENT_MESSAGES)
        messages(w);
    else
        (kind == EVENT_STEP ? step : step_ends)(w, worker);
}

static void begin(struct world *w)
{
    const int first = w->schedule->setting.driver == GRAPHI_DRIVER_DEDICATED ? -1 : 0;
    step_roots(w->schedule);
    ((struct stepping *)w->own)->stepping = true;
    if (first == 0)
        w->workers[0].steps = true;
    event_add(&w->events, 0, EVENT_STEP, first);
}

/* The first step stands for no other: it places all that is ready to begin with, and finds nothing in the caches. */
static double deciding_ns(const struct stepping *own)
{
    const unsigned others = own->steps - 1, samples = (others + SAMPLED - 1) / SAMPLED;
    return (double)own->first_deciding + (samples ? (double)own->deciding * others / samples : 0);
}

graphi_status simulate_steps(struct schedule *s, task_duration duration, void *context, struct simulation *out)
{
    static const struct playing playing = {begin, start_own, ended, on_event};
    const size_t workers = (size_t)(s->workers + s->siblings);
    size_t ring = 1;
    while (ring < workers * RING_DEPTH)
        ring *= 2;
    /* Not zeroed: see simulated_play.c. */
    struct stepping own = {.mask = (unsigned)ring - 1,
                           .receivers = mem_alloc(workers * sizeof *own.receivers),
                           .published = mem_alloc(ring * sizeof *own.published)};
    graphi_status status = GRAPHI_OK;
    if (!own.receivers || !own.published) {
        status = fail_memory("simulation", workers * sizeof *own.receivers);
    } else {
        for (size_t i = 0; i < workers; i++)
            own.receivers[i].head = own.receivers[i].tail = 0;
        s->send = send_simulated;
        status = world_play(s, duration, context, &playing, &own, workers * RING_DEPTH, out);
        out->deciding_ns = status == GRAPHI_OK ? deciding_ns(&own) : 0;
    }
    mem_free(own.receivers);
    mem_free(own.published);
    return status;
}
