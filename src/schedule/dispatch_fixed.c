/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed executors: what is ready lies in a max-heap by the policy's key, and goes to executors that the policy names,
 * one task or several ahead (setting.depth). A light executor, if there is one, takes small tasks. Used by the
 * scheduling step alone. */
#include "schedule/scheduler.h"

static bool allocate(struct schedule *s)
{
    struct fixed_executors *f = &s->fixed;
    const size_t tasks = (size_t)s->tasks->count + 1;
    f->heap.items = schedule_alloc(s, tasks, sizeof *f->heap.items);
    f->light.items = schedule_alloc(s, tasks, sizeof *f->light.items);
    f->work = schedule_alloc(s, (size_t)s->workers, sizeof *f->work);
    return f->heap.items && f->light.items && f->work;
}

static void begin(struct schedule *s)
{
    heap_clear(&s->fixed.heap);
    heap_clear(&s->fixed.light);
    s->fixed.room = (struct bitmap){0};
    for (int i = 0; i < s->slots_count; i++)
        s->fixed.work[i] = 0;
    if (s->fixed.light_slot >= 0)
        bitmap_clear(&s->idle, s->fixed.light_slot);
}

static void ready(struct schedule *s, struct ready item)
{
    const bool light = s->fixed.light_slot >= 0 && (s->tasks->flags[item.task] & TASK_LIGHT);
    heap_push(light ? &s->fixed.light : &s->fixed.heap, item);
}

/* After something was sent to a slot or came back from it. The light executor is known to its own rule alone. */
static void note_place(struct schedule *s, int index)
{
    const struct slot *slot = &s->slots[index];
    if (index == s->fixed.light_slot)
        return;
    if (slot->outstanding)
        bitmap_clear(&s->idle, index);
    else
        bitmap_set(&s->idle, index);
    if (slot->outstanding && slot->outstanding < s->setting.depth && s->fixed.work[index] < AHEAD_NS)
        bitmap_set(&s->fixed.room, index);
    else
        bitmap_clear(&s->fixed.room, index);
}

static void ended(struct schedule *s, int slot, const struct completion *done)
{
    float *work = &s->fixed.work[slot];
    *work = s->slots[slot].outstanding ? *work - s->cost[done->task] : 0;
    note_place(s, slot);
}

/* Then the others stay idle, provided that the worker at hand has a task whose end brings the next step. */
static bool others_sleep(const struct schedule *s)
{
    return step_little_work(s) && s->slots[s->self].outstanding > 0;
}

int step_first_idle(struct schedule *s)
{
    if (s->self >= 0 && s->self != s->fixed.light_slot && bitmap_test(&s->idle, s->self))
        return s->self;
    int slot = bitmap_first(&s->idle);
    return slot >= 0 ? slot : step_with_room(s);
}

/* Rings fill evenly: with one full and another empty, an executor would soon wait for what lies in the full one. And
 * only from plenty, a task for each executor being left: those that take all there is run what matters least before
 * what matters most has become ready, and then there is nothing to go on with while that is waited for. */
int step_with_room(struct schedule *s)
{
    if (s->fixed.heap.count <= s->slots_count)
        return -1;
    int best = s->setting.depth == 1 ? -1 : bitmap_first(&s->fixed.room);
    for (int slot = best; slot >= 0 && s->slots[best].outstanding > 1;
         slot = bitmap_next(&s->fixed.room, slot + 1, s->slots_count))
        if (s->slots[slot].outstanding < s->slots[best].outstanding)
            best = slot;
    return best;
}

static void take_slot(struct schedule *s, int index, struct heap *heap)
{
    struct slot *slot = &s->slots[index];
    bool batch = index == s->self && slot->width == 1 && slot->outstanding == 0 && step_little_work(s);
    struct assignment assignment = {.task = heap_pop(heap).task, .width = slot->width};
    slot->outstanding++;
    s->fixed.work[index] += s->cost[assignment.task];
    note_place(s, index);
    step_placed(s, index, assignment.task, slot->width);
    assignment.last = assignment.task;
    while (batch && heap->count) { /* nobody else would be sent any of it: one message and one completion for all */
        int32_t task = heap_pop(heap).task;
        step_placed(s, index, task, 1);
        s->next[assignment.last] = task;
        assignment.last = task;
    }
    step_send(s, index, assignment);
}

/* Small operations go to the light executor while it is idle, else they queue with the others. */
static bool dispatch_light(struct schedule *s)
{
    if (s->slots[s->fixed.light_slot].outstanding || (s->fixed.light_slot != s->self && step_little_work(s)))
        return false;
    take_slot(s, s->fixed.light_slot, &s->fixed.light);
    return true;
}

static bool dispatch_slot(struct schedule *s)
{
    if (s->fixed.light.count && dispatch_light(s))
        return true;
    struct heap *heap = &s->fixed.heap;
    if (s->fixed.light.count && (!heap->count || ready_before(heap_best(&s->fixed.light), heap_best(heap))))
        heap = &s->fixed.light;
    if (!heap->count)
        return false;
    int slot = s->policy->place(s, heap_best(heap)->task);
    if (slot >= 0 && slot != s->self && step_little_work(s)) {
        if (bitmap_test(&s->idle, s->self))
            slot = s->self;
        else if (others_sleep(s))
            slot = -1;
    }
    if (slot < 0)
        return false;
    take_slot(s, slot, heap);
    return true;
}

static void dispatch(struct schedule *s)
{
    while ((s->fixed.heap.count | s->fixed.light.count) && dispatch_slot(s)) {
    }
    if (s->fixed.heap.count) /* the worker at hand will most likely take it next */
        executor_fetch(s, heap_best(&s->fixed.heap)->task);
    int starving = s->idle.count > 0; /* pairs with executor_defers(): a hint, and seldom written */
    if (starving != atomic_load_explicit(&s->starving, memory_order_relaxed))
        atomic_store_explicit(&s->starving, starving, memory_order_relaxed);
}

const struct dispatcher dispatch_fixed = {allocate, begin, ready, ended, dispatch};
