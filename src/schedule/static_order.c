/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of a static driver, made of who runs what in which order: list scheduling (static_list.c) for policies that
 * decide the order alone; of others, which place tasks and form teams, what they decide in an execution in virtual time
 * (place_by_play). A task stands in the lists of all whom its team takes. Its leader waits for its predecessors and for
 * the members to come to it, so that no mailbox gets two messages at a time. All lists agree with the one order in
 * which tasks start: no two of them can wait for each other. */
#include "schedule/static_order.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "schedule/edges.h"
#include "schedule/scheduler.h"
#include "schedule/simulated_play.h"

#include <string.h>

static int32_t workers_end(const struct placement *p, size_t i)
{
    return i + 1 < p->tasks.count ? p->tasks.data[i + 1].workers : (int32_t)p->workers.count;
}

/* Nobody joins in it, and its predicted durations teach nobody what operations cost each other. */
static graphi_status place_by_play(struct schedule *s, struct placement *placement)
{
    uint8_t *const pieces = s->pieces;
    struct simulation simulation;
    s->records = NULL;
    s->pieces = NULL;
    s->timed = s->hashing = s->replaying = true;
    s->placement = placement;
    step_reset(s);
    const graphi_status status = simulate_steps(s, NULL, NULL, &simulation);
    s->placement = NULL;
    s->replaying = false;
    s->pieces = pieces;
    return status;
}

static graphi_status place(struct schedule *s, struct placement *p)
{
    TRY((s->policy->anywhere ? place_by_list : place_by_play)(s, p));
    if (p->full)
        return fail_memory("static order", p->workers.count * sizeof *p->workers.data);
    return p->tasks.count == (size_t)s->tasks->count
               ? GRAPHI_OK
               : fail(GRAPHI_INVALID, "static order", "found a policy that placed %zu tasks, expected %d",
                      p->tasks.count, s->tasks->count);
}

static bool allocate(struct schedule *s, struct static_order *o, const struct placement *p)
{
    const size_t slots = (size_t)s->slots_count, entries = p->workers.count;
    o->row = (int)((slots + 31) / 32 * 32); /* rows share no lines */
    o->begin = schedule_alloc(s, slots + 1, sizeof *o->begin);
    o->entries = schedule_alloc(s, entries + 1, sizeof *o->entries);
    o->seen = schedule_alloc(s, slots * (size_t)o->row, sizeof *o->seen);
    o->workers = schedule_alloc(s, entries + 1, sizeof *o->workers);
    return o->begin && o->entries && o->seen && o->workers;
}

struct filling {
    struct schedule *s;
    const struct placement *p;
    struct static_order *o;
    int32_t *from_begin, *from; /* predecessors */
    int32_t *slot, *place;      /* of a task: in whose list its leader has it, and where, from 1 on */
    int32_t *at;                /* of one of its workers: where it is in that one's list */
    int32_t *known, *waiting;   /* of a slot: so many have ended; the last wait for it */
    ARRAY(struct static_wait) waits;
    bool full; /* no memory for them */
};

static void fill_lists(struct filling *f)
{
    const struct schedule *s = f->s;
    struct static_order *o = f->o;
    memcpy(o->workers, f->p->workers.data, f->p->workers.count * sizeof *o->workers);
    for (size_t i = 0; i < f->p->workers.count; i++)
        o->begin[s->executors[o->workers[i]].slot + 1]++;
    for (int i = 0; i < s->slots_count; i++)
        o->begin[i + 1] += o->begin[i];
    o->decisions = HASH_START; /* known: how many of its list are there */
    for (size_t i = 0; i < f->p->tasks.count; i++) {
        const struct placed *t = &f->p->tasks.data[i];
        const uint16_t leader = o->workers[t->workers];
        for (int32_t w = t->workers; w < workers_end(f->p, i); w++) {
            const int slot = s->executors[o->workers[w]].slot;
            f->at[w] = ++f->known[slot];
            o->entries[o->begin[slot] + f->at[w] - 1] =
                (struct static_entry){t->task, 0, t->workers, w == t->workers ? t->width : 0, t->spread};
        }
        f->slot[t->task] = s->executors[leader].slot;
        f->place[t->task] = f->at[t->workers];
        o->decisions = decisions_hash(o->decisions, t->task, leader, t->width);
    }
}

/* Of `other` so many have to have ended, which is not known yet; `first`: what this entry waits for so far. */
static void add_wait(struct filling *f, int32_t first, int32_t other, int32_t ended)
{
    const struct static_wait wait = {other, ended};
    if (ended <= f->known[other])
        return;
    f->known[other] = ended;
    if (f->waiting[other] >= first)
        f->waits.data[f->waiting[other]] = wait;
    else if (f->waits.count < INT32_MAX && array_push(&f->waits, wait))
        f->waiting[other] = (int32_t)f->waits.count - 1;
    else
        f->full = true;
}

static void know(struct filling *f, int32_t other, int32_t ended)
{
    if (f->known[other] < ended)
        f->known[other] = ended;
}

/* When it has ended all members' shares have. */
static void add_waits(struct filling *f, int slot, const struct static_entry *e)
{
    const int32_t first = (int32_t)f->waits.count, last = e->team + lists_of(f->s, e->width);
    const uint16_t *workers = f->o->workers;
    for (int32_t i = f->from_begin[e->task]; i < f->from_begin[e->task + 1]; i++)
        if (f->slot[f->from[i]] != slot)
            add_wait(f, first, f->slot[f->from[i]], f->place[f->from[i]]);
    for (int32_t w = e->team + 1; w < last; w++)
        add_wait(f, first, f->s->executors[workers[w]].slot, f->at[w] - 1);
    for (int32_t w = e->team + 1; w < last; w++)
        know(f, f->s->executors[workers[w]].slot, f->at[w]);
}

/* A member hears of the task from its leader, who has ended all that comes before it. */
static void fill_waits(struct filling *f)
{
    struct static_order *o = f->o;
    for (int slot = 0; slot < f->s->slots_count && !f->full; slot++) {
        for (int i = 0; i < f->s->slots_count; i++)
            f->known[i] = 0, f->waiting[i] = -1;
        for (int32_t e = o->begin[slot]; e < o->begin[slot + 1] && !f->full; e++) {
            const struct static_entry *entry = &o->entries[e];
            o->entries[e].waits = (int32_t)f->waits.count;
            if (entry->width)
                add_waits(f, slot, entry);
            else
                know(f, f->slot[entry->task], f->place[entry->task] - 1);
        }
    }
    o->entries[f->p->workers.count].waits = (int32_t)f->waits.count;
    o->waits = f->full ? NULL : schedule_alloc(f->s, f->waits.count + 1, sizeof *o->waits);
    if (o->waits && f->waits.count)
        memcpy(o->waits, f->waits.data, f->waits.count * sizeof *o->waits);
    array_free(&f->waits);
}

static graphi_status fill(struct schedule *s, const struct placement *p)
{
    const size_t count = (size_t)s->tasks->count, entries = p->workers.count;
    struct static_order *o = schedule_alloc(s, 1, sizeof *o);
    struct filling f = {.s = s, .p = p, .o = o};
    int32_t *integers = mem_zalloc_array(2 * (count + (size_t)s->slots_count) + entries, sizeof *integers);
    graphi_status status =
        o && integers && allocate(s, o, p)
            ? edges_predecessors(s->tasks->count, s->tasks->edges_begin, s->tasks->edges, &f.from_begin, &f.from)
            : fail_memory("static order", entries * sizeof *o->entries);
    if (!status) {
        f.slot = integers;
        f.place = f.slot + count;
        f.at = f.place + count;
        f.known = f.at + entries;
        f.waiting = f.known + s->slots_count;
        fill_lists(&f);
        fill_waits(&f);
        if (o->waits)
            s->order = o;
        else
            status = fail_memory("static order", entries * sizeof *o->waits);
        mem_free(f.from_begin);
        mem_free(f.from);
    }
    mem_free(integers);
    return status;
}

graphi_status schedule_decide(struct schedule *s)
{
    if (s->setting.driver != GRAPHI_DRIVER_STATIC || s->order || s->tasks->count == 0)
        return GRAPHI_OK;
    struct placement placement = {.full = false};
    graphi_status status = place(s, &placement);
    if (!status)
        status = fill(s, &placement);
    array_free(&placement.tasks);
    array_free(&placement.workers);
    return status;
}
