/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of events plays the workers, whose operations take what durations or curves say. What they run next the step
 * sends them (simulated_steps.c), or their lists say (simulated_static.c); executors may join what others run
 * (simulated_join.c). One thread. */
#include "schedule/simulated_play.h"

#include "base/memory.h"
#include "base/status.h"
#include "schedule/placement.h"
#include "schedule/simulated_join.h"

static void changed(struct world *w)
{
    w->changes++;
    w->corunning += w->running_count;
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
    world_put(w, w->running_count++, task, worker);
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
        world_share_cores(w);
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
        world_share_cores(w);
    w->on_siblings -= worker >= s->workers;
    w->playing->ended(w, worker, task);
}

void world_go_on(struct world *w, int worker)
{
    const struct virtual_worker *v = &w->workers[worker];
    if (!v->steps && v->task < 0 && v->joined < 0 && !w->playing->start_own(w, worker))
        join_look(w, worker);
}

/* Messages come one message after the beginning. Where an order is made that waits (static_order.h) the next one comes
 * when nothing else is left to do: static_list.c tells why. */
static bool more(struct world *w)
{
    if (!w->events.count && w->schedule->placement &&
        atomic_load_explicit(&w->schedule->waits.left, memory_order_relaxed) && w->playing->event)
        event_add(&w->events, w->now, EVENT_MESSAGES, -1);
    return w->events.count;
}

static void play(struct world *w)
{
    w->playing->begin(w);
    if (w->schedule->tasks->waits_count && !w->schedule->placement && w->playing->event)
        event_add(&w->events, w->schedule->wake_ns, EVENT_MESSAGES, -1);
    while (more(w)) {
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
