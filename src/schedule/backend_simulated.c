/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule in virtual time: the loop of events plays the workers, whose operations take what durations or curves say.
 * What they run next the step sends them (simulated_steps.c), or their lists say (simulated_static.c); executors may
 * join what others run (simulated_join.c). One thread.
 *
 * Hardware threads share their core: with more than one of them busy it does SIBLING_YIELD times what it does with one,
 * divided evenly. A team goes on with what its cores have left for it (its members are taken to share out the rest of
 * their work), and what runs takes another time from the moment on at which a neighbour on its cores comes or goes.
 *
 * A dedicated driver whose executors take all cores shares the last one (simulated_core.c). */
#include "schedule/simulated_world.h"

#include "base/memory.h"
#include "base/status.h"
#include "schedule/static_order.h"

#include <math.h>
#include <string.h>

static void changed(struct world *w)
{
    w->changes++;
    w->corunning += w->running_count;
}

static int core_of(const struct schedule *s, int worker)
{
    return worker < s->workers ? worker : s->machine->core[worker].sibling_of;
}

void world_set_end(struct world *w, int worker, double ends, double cores)
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
    world_set_end(w, worker, ends, cores);
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

void world_start(struct world *w, int32_t task, struct seat seat, bool inlined)
{
    struct schedule *s = w->schedule;
    int worker = seat.leader;
    bitmap_clear(&w->onlook, worker);
    const bool open = executor_opens(s, task, seat.width);
    double ns = world_ns(w, task, seat, w->running_count);
    if (open)
        ns = join_open(w, worker, s->pieces[task], ns);
    w->workers[worker].task = task;
    put(w, w->running_count++, task, worker);
    changed(w);
    if (s->placement)
        placement_add(s->placement, task, seat, s->executors[worker].members, lists_of(s, seat.width));
    if (s->records) {
        struct task_record *r = &s->records[task];
        r->start_ns = whole_ns(w->now);
        r->leader = seat.leader;
        r->width = seat.width;
        r->spread = seat.spread;
        r->inlined = inlined;
        r->open = open;
        executor_note_team(s, &s->executors[worker], task, seat.width);
    }
    ns += world_enter_core(w, worker, seat.width);
    world_occupy(w, worker, ns, seat.width);
    w->on_siblings += worker >= s->workers;
    if (w->on_siblings)
        share_cores(w);
}

static void task_ends(struct world *w, int worker)
{
    struct schedule *s = w->schedule;
    struct virtual_worker *v = &w->workers[worker];
    const int32_t task = v->task;
    changed(w); /* it counts among those side by side until now */
    world_put_last(w, worker);
    w->running_count--;
    v->task = -1;
    if (s->records)
        s->records[task].end_ns = whole_ns(w->now);
    world_leave_core(w, worker);
    if (w->on_siblings)
        share_cores(w);
    w->on_siblings -= worker >= s->workers;
    w->playing->ended(w, worker, task);
}

void world_go_on(struct world *w, int worker)
{
    const struct virtual_worker *v = &w->workers[worker];
    if (!v->steps && v->task < 0 && v->joined < 0 && !w->playing->start_own(w, worker))
        join_look(w, worker);
}

static void play(struct world *w)
{
    w->playing->begin(w);
    while (w->events.count) {
        struct event event = event_take(&w->events);
        w->now = event.time;
        switch (event_kind(&event)) {
        case EVENT_ARRIVES:
            world_go_on(w, event.worker);
            break;
        case EVENT_ENDS:
            if (!join_ends(w, event.worker))
                task_ends(w, event.worker);
            break;
        case EVENT_LOOKS:
            join_looks(w, event.worker);
            break;
        default:
            w->playing->event(w, event_kind(&event), event.worker);
            break;
        }
    }
}

static bool allocate(struct world *w, size_t workers, size_t events)
{
    const struct schedule *s = w->schedule;
    /* Not zeroed but where it is read first: most of it stays untouched where there are thousands of cores. */
    w->events.items = mem_alloc((3 * workers + events + 16) * sizeof *w->events.items);
    w->workers = mem_alloc(workers * sizeof *w->workers);
    w->running = mem_alloc(workers * sizeof *w->running);
    w->running_worker = mem_alloc(workers * sizeof *w->running_worker);
    w->threads = s->siblings ? mem_alloc((size_t)s->workers * sizeof *w->threads) : NULL;
    return w->events.items && w->workers && w->running && w->running_worker && (w->threads || !s->siblings);
}

graphi_status world_play(struct schedule *s, task_duration duration, void *context, const struct playing *playing,
                         void *own, size_t events, struct simulation *out)
{
    const size_t workers = (size_t)(s->workers + s->siblings);
    struct world w = {.schedule = s,
                      .playing = playing,
                      .own = own,
                      .duration = duration,
                      .context = context,
                      .core = shared_core_of(s)};
    graphi_status status = GRAPHI_OK;
    if (!allocate(&w, workers, events)) {
        status = fail_memory("simulation", workers * sizeof *w.workers);
    } else {
        for (size_t i = 0; i < workers; i++) {
            struct virtual_worker *v = &w.workers[i];
            v->task = v->joined = -1;
            v->pieces = v->taken = v->looked = 0;
            v->steps = v->waits = v->looks = false;
            join_look(&w, (int)i);
        }
        s->backend = &w;
        play(&w);
        s->backend = NULL;
        out->makespan_ns = w.over;
        out->busy_ns = w.busy;
        out->scheduling_ns = w.scheduling;
        out->mean_corunning = w.changes ? w.corunning / w.changes : 0;
    }
    mem_free(w.events.items);
    mem_free(w.workers);
    mem_free(w.running);
    mem_free(w.running_worker);
    mem_free(w.threads);
    return status;
}

graphi_status schedule_simulate(struct schedule *s, task_duration duration, void *context, struct task_record *records,
                                struct simulation *out)
{
    struct simulation result = {0};
    TRY(schedule_decide(s));
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
