/* SPDX-License-Identifier: Apache-2.0 */
/* The same scheduling step and the same counting of successors, in virtual time. The event loop plays the workers and
 * the driver, and charges what the machine description says: a task through the step schedule_ns, a message to another
 * worker wake_ns, each half of the combining protocol an atomic. Under the dedicated driver steps run on the client's
 * own time; under the combining one on the worker whose completion found the role free, and completions that arrive
 * meanwhile wait for the next round, as on the real machine. One thread; below 1 us an operation at 68 cores.
 *
 * Hardware threads share their core: with more than one of them busy it does SIBLING_YIELD times what it does with one,
 * divided evenly. A team goes on with what its cores have left for it (its members are taken to share out the rest of
 * their work), and what runs takes another time from the moment on at which a neighbour on its cores comes or goes.
 *
 * A dedicated driver whose executors take all cores shares the last one (simulated_core.c); executors may join what
 * others run (simulated_join.c). */
#include "schedule/simulated_world.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { SAMPLED = 16 }; /* reading the clock takes as long as a short step */

static void changed(struct world *w)
{
    w->changes++;
    w->corunning += w->running_count;
}

static int core_of(const struct schedule *s, int worker)
{
    return worker < s->workers ? worker : s->machine->core[worker].sibling_of;
}

static void set_end(struct world *w, int worker, double ends, double cores)
{
    struct virtual_worker *v = &w->workers[worker];
    w->busy += cores * (ends - w->now) - v->cores * (v->ends - w->now);
    v->ends = ends;
    v->cores = cores;
    event_move(&w->events, ends, EVENT_ENDS, worker);
}

static void set_pace(struct world *w, int worker, double pace, double cores)
{
    struct virtual_worker *v = &w->workers[worker];
    if (v->pace == pace && v->cores == cores)
        return;
    double ends = w->now + (v->ends - w->now) * v->pace / pace;
    v->pace = pace;
    set_end(w, worker, ends, cores);
}

/* Something has started or ended on a sibling, or beside one. */
static void share_cores(struct world *w)
{
    struct schedule *s = w->schedule;
    memset(w->threads, 0, (size_t)s->workers * sizeof *w->threads);
    for (int i = 0; i < w->running_count; i++) {
        int worker = w->running_worker[i];
        for (int m = 0; m < w->workers[worker].width; m++)
            w->threads[core_of(s, s->executors[worker].members[m])]++;
    }
    for (int i = 0; i < w->running_count; i++) {
        int worker = w->running_worker[i], width = w->workers[worker].width;
        double pace = 0, cores = 0;
        for (int m = 0; m < width; m++) {
            int threads = w->threads[core_of(s, s->executors[worker].members[m])];
            pace += threads > 1 ? SIBLING_YIELD / threads : 1;
            cores += 1.0 / threads;
        }
        set_pace(w, worker, pace / width, cores);
    }
}

/* --- the driver on the last worker's core --- */

static void move_step(struct world *w, bool moved)
{
    if (moved)
        event_move(&w->events, w->core.at, EVENT_STEP, -1);
}

double world_enter_core(struct world *w, int leader, int width)
{
    if (w->core.worker < 0)
        return 0;
    const uint16_t *members = w->schedule->executors[leader].members;
    int m = 0;
    while (m < width && members[m] != w->core.worker)
        m++;
    if (m == width)
        return 0;
    move_step(w, shared_core_enter(&w->core, w->now, leader));
    return fmax(w->core.held - w->now, 0);
}

void world_leave_core(struct world *w, int leader)
{
    if (leader == w->core.leader)
        move_step(w, shared_core_leave(&w->core, w->now));
}

/* The step has the core until w->send_time. */
static void hold_core(struct world *w)
{
    const double from = shared_core_step(&w->core, w->now, w->send_time);
    const int leader = w->core.leader;
    if (leader >= 0)
        set_end(w, leader, w->workers[leader].ends + w->core.held - from, w->workers[leader].cores);
}

/* --- operations --- */

double world_ns(struct world *w, int32_t task, struct seat seat, int others)
{
    const struct tasks *t = w->schedule->tasks;
    return w->duration ? w->duration(w->context, task, seat, w->running, others)
                       : curve_mode_ns(&t->curves[t->curve_of[task]], seat.width, seat.spread);
}

static void put(struct world *w, int position, int32_t task, int worker)
{
    w->running[position] = task;
    w->running_worker[position] = worker;
    w->workers[worker].position = position;
}

void world_put_last(struct world *w, int worker)
{
    const int from = w->workers[worker].position, last = w->running_count - 1;
    const int32_t task = w->running[from];
    put(w, from, w->running[last], w->running_worker[last]);
    put(w, last, task, worker);
}

void world_occupy(struct world *w, int worker, double ns, int width)
{
    struct virtual_worker *v = &w->workers[worker];
    v->ends = w->now + ns;
    v->pace = 1;
    v->cores = v->width = width;
    w->busy += ns * width;
    event_add(&w->events, v->ends, EVENT_ENDS, worker);
}

static void start_task(struct world *w, int32_t task, struct seat seat)
{
    struct schedule *s = w->schedule;
    int worker = seat.leader;
    struct virtual_worker *v = &w->workers[worker];
    const bool open = executor_opens(s, task, seat.width);
    double ns = world_ns(w, task, seat, w->running_count);
    if (open)
        ns = join_open(w, worker, s->pieces[task], ns);
    v->task = task;
    put(w, w->running_count++, task, worker);
    changed(w);
    if (s->records) {
        struct task_record *r = &s->records[task];
        r->start_ns = whole_ns(w->now);
        r->leader = seat.leader;
        r->width = seat.width;
        r->spread = seat.spread;
        r->inlined = task != v->member;
        r->open = open;
        executor_note_team(s, &s->executors[worker], task, seat.width);
    }
    ns += world_enter_core(w, worker, seat.width);
    world_occupy(w, worker, ns, seat.width);
    w->on_siblings += worker >= s->workers;
    if (w->on_siblings)
        share_cores(w);
}

bool world_start_own(struct world *w, int worker)
{
    struct virtual_worker *v = &w->workers[worker];
    if (v->head == v->tail || v->arrives[v->head % RING_DEPTH] > w->now)
        return false;
    bitmap_clear(&w->onlook, worker);
    v->current = v->queue[v->head++ % RING_DEPTH];
    v->member = v->current.task;
    v->done = (struct completion){.task = v->current.task, .first = -1};
    w->schedule->executors[worker].inline_first = -1;
    start_task(w, v->current.task, (struct seat){(uint16_t)worker, v->current.width, v->current.spread});
    return true;
}

static void start_next(struct world *w, int worker)
{
    const struct virtual_worker *v = &w->workers[worker];
    if (!v->steps && v->current.task < 0 && v->joined < 0 && !world_start_own(w, worker))
        join_look(w, worker);
}

static void publish(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    struct virtual_worker *v = &w->workers[worker];
    v->current.task = -1;
    w->published[w->last++ & w->mask] = (struct published){s->executors[worker].slot, v->done};
    bool dedicated = s->setting.driver == GRAPHI_DRIVER_DEDICATED;
    unsigned queued = 0;
    while (v->head + queued != v->tail && v->arrives[(v->head + queued) % RING_DEPTH] <= w->now)
        queued++;
    double cost = dedicated ? s->machine->wake_ns : s->machine->atomic_ns;
    if (!w->stepping && (dedicated || !executor_defers(s, queued))) {
        w->stepping = true;
        v->steps = !dedicated;
        w->scheduling += cost;
        if (dedicated)
            event_add(&w->events, shared_core_step_due(&w->core, w->now, w->now + cost), EVENT_STEP, -1);
        else
            event_add(&w->events, w->now + cost, EVENT_STEP, worker);
    }
    start_next(w, worker);
}

static void task_ends(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    struct virtual_worker *v = &w->workers[worker];
    changed(w); /* it counts among those side by side until now */
    world_put_last(w, worker);
    w->running_count--;
    if (s->records)
        s->records[v->task].end_ns = whole_ns(w->now);
    world_leave_core(w, worker);
    if (w->on_siblings)
        share_cores(w);
    w->on_siblings -= worker >= s->workers;
    int32_t tiny = executor_advance(s, &s->executors[worker], v->task, whole_ns(w->now), &v->done);
    const struct seat alone = {.leader = (uint16_t)worker, .width = 1};
    if (tiny >= 0) {
        start_task(w, tiny, alone);
    } else if (v->member != v->current.last) {
        v->member = s->next[v->member];
        start_task(w, v->member, alone);
    } else {
        publish(w, worker);
    }
}

static void send_simulated(struct schedule *s, int slot, struct assignment assignment)
{
    struct world *w = s->backend;
    int worker = s->slots[slot].first;
    struct virtual_worker *v = &w->workers[worker];
    w->send_time += s->machine->schedule_ns;
    const double way = slot == s->self ? 0 : s->machine->wake_ns;
    const double arrives = w->send_time + way;
    w->scheduling += way;
    v->arrives[v->tail % RING_DEPTH] = arrives;
    v->queue[v->tail++ % RING_DEPTH] = assignment;
    if (slot != s->self) /* it starts its own when the step has ended */
        event_add(&w->events, arrives, EVENT_ARRIVES, worker);
}

static void step(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    s->self = worker < 0 ? -1 : s->executors[worker].slot;
    w->send_time = w->now;
    const bool sampled = w->steps == 0 || w->steps % SAMPLED == 1;
    int64_t before = sampled ? clock_ns() : 0, begin = sampled ? clock_ns() : 0; /* the reading itself is taken off */
    for (; w->first != w->last; w->first++) {
        struct published *p = &w->published[w->first & w->mask];
        step_complete(s, p->slot, &p->done);
    }
    step_dispatch(s);
    int64_t took = sampled ? clock_ns() - begin - (begin - before) : 0;
    *(w->steps ? &w->deciding : &w->first_deciding) += took > 0 ? took : 0;
    w->steps++;
    w->scheduling += w->send_time - w->now;
    if (w->core.worker >= 0)
        hold_core(w);
    event_add(&w->events, w->send_time, EVENT_STEP_ENDS, worker);
}

static void step_ends(struct world *w, int worker)
{
    double cost = worker < 0 ? 0 : w->schedule->machine->atomic_ns; /* the fetch_sub */
    w->over = w->now;
    if (w->first != w->last) {
        event_add(&w->events, w->now + cost, EVENT_STEP, worker);
        return;
    }
    w->stepping = false;
    w->core.turn = w->now;
    if (worker < 0)
        return;
    w->workers[worker].steps = false;
    start_next(w, worker);
}

static void play(struct world *w)
{
    struct schedule *s = w->schedule;
    step_roots(s);
    w->stepping = true;
    int first = s->setting.driver == GRAPHI_DRIVER_DEDICATED ? -1 : 0;
    if (first == 0)
        w->workers[0].steps = true;
    event_add(&w->events, 0, EVENT_STEP, first);
    while (w->events.count) {
        struct event event = event_take(&w->events);
        w->now = event.time;
        switch (event_kind(&event)) {
        case EVENT_ARRIVES:
            start_next(w, event.worker);
            break;
        case EVENT_ENDS:
            if (!join_ends(w, event.worker))
                task_ends(w, event.worker);
            break;
        case EVENT_LOOKS:
            join_looks(w, event.worker);
            break;
        case EVENT_STEP:
            step(w, event.worker);
            break;
        default:
            step_ends(w, event.worker);
            break;
        }
    }
}

/* The first step stands for no other: it places all that is ready to begin with, and finds nothing in the caches. */
static double deciding_ns(const struct world *w)
{
    const unsigned others = w->steps - 1, samples = (others + SAMPLED - 1) / SAMPLED;
    return (double)w->first_deciding + (samples ? (double)w->deciding * others / samples : 0);
}

static graphi_status simulate_steps(struct schedule *s, task_duration duration, void *context, struct simulation *out)
{
    size_t workers = (size_t)(s->workers + s->siblings), ring = 1;
    while (ring < workers * RING_DEPTH)
        ring *= 2;
    struct world w = {.schedule = s,
                      .duration = duration,
                      .context = context,
                      .mask = (unsigned)ring - 1,
                      .core = shared_core_of(s)};
    /* Not zeroed but where it is read first: most of it stays untouched where there are thousands of cores. */
    w.events.items = mem_alloc((workers * (RING_DEPTH + 3) + 16) * sizeof *w.events.items);
    w.workers = mem_alloc(workers * sizeof *w.workers);
    w.published = mem_alloc(ring * sizeof *w.published);
    w.running = mem_alloc(workers * sizeof *w.running);
    w.running_worker = mem_alloc(workers * sizeof *w.running_worker);
    w.threads = s->siblings ? mem_alloc((size_t)s->workers * sizeof *w.threads) : NULL;
    graphi_status status = GRAPHI_OK;
    if (!w.events.items || !w.workers || !w.published || !w.running || !w.running_worker ||
        (s->siblings && !w.threads)) {
        status = fail_memory("simulation", workers * sizeof *w.workers);
    } else {
        for (size_t i = 0; i < workers; i++) {
            struct virtual_worker *v = &w.workers[i];
            v->head = v->tail = 0;
            v->current.task = v->joined = -1;
            v->pieces = v->taken = v->looked = 0;
            v->steps = v->waits = v->looks = false;
            join_look(&w, (int)i);
        }
        s->backend = &w;
        s->send = send_simulated;
        play(&w);
        s->backend = NULL;
        out->makespan_ns = w.over; /* somebody may still look around */
        out->busy_ns = w.busy;
        out->scheduling_ns = w.scheduling;
        out->deciding_ns = deciding_ns(&w);
        out->mean_corunning = w.changes ? w.corunning / w.changes : 0;
    }
    mem_free(w.events.items);
    mem_free(w.workers);
    mem_free(w.published);
    mem_free(w.running);
    mem_free(w.running_worker);
    mem_free(w.threads);
    return status;
}

graphi_status schedule_simulate(struct schedule *s, task_duration duration, void *context, struct task_record *records,
                                struct simulation *out)
{
    struct simulation result = {0};
    s->records = records;
    s->timed = s->hashing = true;
    step_reset(s);
    if (records)
        for (int i = 0; i < s->roots_count; i++)
            records[s->roots[i]].ready_ns = 0;
    graphi_status (*const loops[])(struct schedule *, task_duration, void *, struct simulation *) = {
        [LOOP_SCHEDULED] = simulate_steps, [LOOP_NAIVE] = simulate_naive, [LOOP_SEQUENTIAL] = simulate_sequential};
    TRY((s->setting.driver == GRAPHI_DRIVER_STATIC ? simulate_static : loops[s->policy->loop])(s, duration, context,
                                                                                              &result));
    result.decisions = s->decisions;
    *out = result;
    return GRAPHI_OK;
}
