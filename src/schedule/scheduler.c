/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduling step: drain the triggered queues, order what is ready, place it (graphi.txt Algorithm 1). The same
 * code runs on the real machine, in virtual time and in a replay; it reaches the world through schedule->send alone and
 * knows policies only through their table. It allocates nothing and takes no locks: one thread at a time runs it (the
 * client, or the holder of the combining role). An empty task through it costs tens of nanoseconds. */
#include "schedule/scheduler.h"

#include "base/hash.h"

#include <string.h>

static void make_ready(struct schedule *s, int32_t task)
{
    struct ready item = {s->policy->key(s, task), task};
    s->arrivals++;
    s->ready_work += s->cost[task];
    if (s->policy->free_width)
        ready_list_insert(&s->list, item);
    else if (s->light_slot >= 0 && (s->tasks->flags[task] & TASK_LIGHT))
        heap_push(&s->light, item);
    else
        heap_push(&s->heap, item);
}

void step_reset(struct schedule *s)
{
    memcpy(s->pending, s->tasks->pending, (size_t)s->tasks->count * sizeof *s->tasks->pending);
    heap_clear(&s->heap);
    heap_clear(&s->light);
    s->running_count = 0;
    /* A policy uses the list or the heaps: their room for all tasks twice is once before and once for its items. */
    s->list = (struct ready_list){.items = s->heap.items + s->tasks->count + 1, .before = s->tasks->count + 1};
    s->idle = s->room = (struct bitmap){0};
    for (int i = 0; i < s->slots_count; i++) {
        s->slots[i].outstanding = 0;
        s->slots[i].outbox_head = 0;
        s->slots[i].work = 0;
        s->slots[i].task = -1;
        if (i < s->workers) /* siblings are taken by strategy 4 alone */
            bitmap_set(&s->idle, i);
    }
    if (s->light_slot >= 0)
        bitmap_clear(&s->idle, s->light_slot);
    for (int i = 0; i < s->workers + s->siblings; i++) {
        struct executor *x = &s->executors[i];
        atomic_store_explicit(&x->inbox.tail, 0, memory_order_relaxed); /* workers start afterwards */
        atomic_store_explicit(&x->outbox.tail, 0, memory_order_relaxed);
        atomic_store_explicit(&x->ended, 0, memory_order_relaxed);
        x->inbox_head = 0;
        x->direct.task = x->inline_first = -1;
    }
    s->arrivals = s->dispatched = s->drained = s->taken = s->now = 0;
    s->self_work = s->ready_work = 0;
    s->self = -1;
    s->decisions = HASH_START;
    s->message[0] = 0;
    atomic_store_explicit(&s->completions, 0, memory_order_relaxed);
    atomic_store_explicit(&s->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&s->starving, 0, memory_order_relaxed);
    atomic_store_explicit(&s->failed, 0, memory_order_relaxed);
    for (int i = 0; i < BITMAP_WORDS; i++)
        atomic_store_explicit(&s->dirty[i], 0, memory_order_relaxed);
    if (s->records)
        atomic_store_explicit(&s->joined_count, 0, memory_order_relaxed);
    if (s->ran_on)
        memset(s->ran_on, 0xff, (size_t)s->tasks->count * sizeof *s->ran_on); /* NOWHERE */
    if (s->log)
        s->log->count = 0;
    if (s->policy->begin)
        s->policy->begin(s);
}

void step_roots(struct schedule *s)
{
    for (int i = 0; i < s->roots_count; i++)
        make_ready(s, s->roots[i]);
}

/* After something was sent to a slot or came back from it. The light executor is known to its own rule alone. */
static void note_place(struct schedule *s, int index)
{
    const struct slot *slot = &s->slots[index];
    if (index == s->light_slot)
        return;
    if (slot->outstanding)
        bitmap_clear(&s->idle, index);
    else
        bitmap_set(&s->idle, index);
    if (slot->outstanding && slot->outstanding < s->setting.depth && slot->work < AHEAD_NS)
        bitmap_set(&s->room, index);
    else
        bitmap_clear(&s->room, index);
}

static void free_slot(struct schedule *s, int index, int32_t task)
{
    struct slot *slot = &s->slots[index];
    slot->work = --slot->outstanding ? slot->work - s->cost[task] : 0;
    note_place(s, index);
}

static void free_group(struct schedule *s, int index, const struct completion *done)
{
    struct slot *slot = &s->slots[index];
    const uint16_t *members = s->executors[index].members;
    if (slot->start >= 0)
        bitmap_set_range(&s->idle, slot->start, slot->running);
    else if (members[0] < s->workers) /* siblings are never idle: strategy 4 alone knows them */
        bitmap_set_all(&s->idle, members, slot->running);
    int last = s->running_slots[--s->running_count];
    s->running_slots[slot->position] = last;
    s->slots[last].position = slot->position;
    struct seat seat = {slot->first, slot->running, slot->spread};
    if (s->policy->finished && done->ran) /* nothing where another task's failure came first: it took no time */
        s->policy->finished(s, done->task, seat, (double)(done->end_ns - slot->started));
    slot->task = -1;
    slot->outstanding = 0;
}

static void log_add(struct schedule *s, int64_t value)
{
    if (s->log && s->log->count < s->log->capacity)
        s->log->entries[s->log->count++] = value;
}

void step_complete(struct schedule *s, int slot, const struct completion *done)
{
    log_add(s, slot);
    log_add(s, done->task);
    log_add(s, done->end_ns);
    s->drained++;
    if (done->end_ns > s->now)
        s->now = done->end_ns;
    if (s->policy->free_width)
        free_group(s, slot, done);
    else
        free_slot(s, slot, done->task);
    for (int32_t task = done->first; task >= 0; task = task == done->last ? -1 : s->next[task]) {
        log_add(s, task);
        if (s->ran_on)
            s->ran_on[task] = (uint16_t)slot;
        make_ready(s, task);
    }
    log_add(s, -1);
}

static int drain_slot(struct schedule *s, int slot)
{
    struct executor *x = &s->executors[s->slots[slot].first];
    struct completion done;
    int count = 0;
    for (; RING_POP(&x->outbox, &s->slots[slot].outbox_head, &done); count++)
        step_complete(s, slot, &done);
    return count;
}

int step_drain(struct schedule *s)
{
    int count = 0;
    if (s->slots_count <= DIRTY_SLOTS) {
        for (int slot = 0; slot < s->slots_count; slot++)
            count += drain_slot(s, slot);
        return count;
    }
    for (int word = 0; word * 64 < s->slots_count; word++) {
        if (!atomic_load_explicit(&s->dirty[word], memory_order_relaxed))
            continue;
        /* pairs with the release in executor_run(): the pushes behind these bits are visible */
        uint64_t bits = atomic_exchange_explicit(&s->dirty[word], 0, memory_order_acquire);
        for (; bits; bits &= bits - 1)
            count += drain_slot(s, word * 64 + __builtin_ctzll(bits));
    }
    return count;
}

static void decided(struct schedule *s, int slot, int32_t task, int width)
{
    s->ready_work -= s->cost[task];
    if (slot == s->self)
        s->self_work += s->cost[task];
    if (s->ran_on)
        s->ran_on[task] = (uint16_t)slot;
    if (s->hashing)
        s->decisions = decisions_hash(s->decisions, task, s->slots[slot].first, width);
}

/* All that is ready takes the worker at hand less time than a message to another one. */
static bool little_work(const struct schedule *s)
{
    return s->self >= 0 && s->self_work + s->ready_work < s->wake_ns;
}

/* Then the others stay idle, provided that the worker at hand has a task whose end brings the next step. */
static bool others_sleep(const struct schedule *s)
{
    return little_work(s) && s->slots[s->self].outstanding > 0;
}

int step_first_idle(struct schedule *s)
{
    if (s->self >= 0 && s->self != s->light_slot && bitmap_test(&s->idle, s->self))
        return s->self;
    int slot = bitmap_first(&s->idle);
    return slot >= 0 ? slot : step_with_room(s);
}

/* Rings fill evenly: with one full and another empty, an executor would soon wait for what lies in the full one. And
 * only from plenty, a task for each executor being left: those that take all there is run what matters least before
 * what matters most has become ready, and then there is nothing to go on with while that is waited for. */
int step_with_room(struct schedule *s)
{
    if (s->heap.count <= s->slots_count)
        return -1;
    int best = s->setting.depth == 1 ? -1 : bitmap_first(&s->room);
    for (int slot = best; slot >= 0 && s->slots[best].outstanding > 1;
         slot = bitmap_next(&s->room, slot + 1, s->slots_count))
        if (s->slots[slot].outstanding < s->slots[best].outstanding)
            best = slot;
    return best;
}

static void take_slot(struct schedule *s, int index, struct heap *heap)
{
    struct slot *slot = &s->slots[index];
    bool batch = index == s->self && slot->width == 1 && slot->outstanding == 0 && little_work(s);
    struct assignment assignment = {.task = heap_pop(heap).task, .width = slot->width};
    slot->outstanding++;
    slot->work += s->cost[assignment.task];
    note_place(s, index);
    decided(s, index, assignment.task, slot->width);
    assignment.last = assignment.task;
    while (batch && heap->count) { /* nobody else would be sent any of it: one message and one completion for all */
        int32_t task = heap_pop(heap).task;
        decided(s, index, task, 1);
        s->next[assignment.last] = task;
        assignment.last = task;
    }
    s->dispatched++;
    s->send(s, index, assignment);
}

/* Small operations go to the light executor while it is idle, else they queue with the others. */
static bool dispatch_light(struct schedule *s)
{
    if (s->slots[s->light_slot].outstanding || (s->light_slot != s->self && little_work(s)))
        return false;
    take_slot(s, s->light_slot, &s->light);
    return true;
}

static bool dispatch_slot(struct schedule *s)
{
    if (s->light.count && dispatch_light(s))
        return true;
    struct heap *heap = &s->heap;
    if (s->light.count && (!heap->count || ready_before(heap_best(&s->light), heap_best(heap))))
        heap = &s->light;
    if (!heap->count)
        return false;
    int slot = s->policy->place(s, heap_best(heap)->task);
    if (slot >= 0 && slot != s->self && little_work(s)) {
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

bool step_one_a_tile(struct schedule *s, int width)
{
    const struct machine_core *core = s->machine->core;
    int tile = -1, count = 0;
    for (int worker = bitmap_first(&s->idle); worker >= 0 && count < width;
         worker = bitmap_next(&s->idle, worker + 1, s->workers)) {
        if (!core || core[worker].tile != tile)
            s->scratch[count++] = (uint16_t)worker;
        tile = core ? core[worker].tile : -1;
    }
    return count == width;
}

/* Workers of a free-width group. What a team of a thousand costs is going through its members: neighbours are known by
 * the first. */
struct group {
    const uint16_t *members; /* NULL: there are not so many */
    int start;               /* of neighbours; -1: any */
};

static struct group neighbours(const struct schedule *s, int start)
{
    return (struct group){s->every + start, start};
}

/* Neighbours if there are, else any idle ones; one a tile for `spread`, which is false afterwards where there are not
 * so many. */
static struct group choose_members(struct schedule *s, struct decision *d)
{
    const struct group none = {NULL, -1}, listed = {s->scratch, -1};
    int width = d->width, count = 0;
    if (width == 1 && !d->sibling && s->self >= 0 && bitmap_test(&s->idle, s->self))
        return neighbours(s, s->self);
    if (d->sibling) {
        for (int i = s->workers; i < s->workers + s->siblings && count < width; i++)
            if (s->slots[i].task < 0)
                s->scratch[count++] = (uint16_t)i;
        return count == width ? listed : none;
    }
    if (s->idle.count < width)
        return none;
    d->spread = d->spread && (d->seated || step_one_a_tile(s, width));
    if (d->spread)
        return listed;
    int start = d->aligned ? bitmap_run(&s->idle, width, width, s->workers) : bitmap_neighbours(&s->idle, width);
    if (start >= 0)
        return neighbours(s, start);
    if (d->aligned)
        return none;
    bitmap_list(&s->idle, width, s->scratch);
    return listed;
}

static int place_of_self(const struct schedule *s, const struct group *group, int width)
{
    int at = 0;
    if (group->start >= 0)
        return s->self >= group->start && s->self < group->start + width ? s->self - group->start : 0;
    while (at < width && group->members[at] != s->self)
        at++;
    return at < width ? at : 0;
}

/* The worker at hand leads if it is a member: no message for its own share; the order of neighbours is kept, rotated.
 * Neighbours led by their first, most teams by far, are listed in `every` already: nothing is written for them. */
static int lead_by_self(struct schedule *s, const struct group *group, int width)
{
    const uint16_t *members = group->members;
    int at = place_of_self(s, group, width), leader = members[at];
    struct executor *x = &s->executors[leader];
    if (group->start >= 0 && !at) {
        x->members = members;
        return leader;
    }
    memcpy(x->row, members + at, (size_t)(width - at) * sizeof *members);
    memcpy(x->row + width - at, members, (size_t)at * sizeof *members);
    x->members = x->row;
    return leader;
}

static void occupy(struct schedule *s, const struct group *group, const struct decision *d)
{
    if (group->start >= 0)
        bitmap_clear_range(&s->idle, group->start, d->width);
    else if (!d->sibling)
        bitmap_clear_all(&s->idle, group->members, d->width);
}

static bool dispatch_group(struct schedule *s)
{
    struct decision d = {.aligned = false};
    if (!s->list.count || others_sleep(s) || !s->policy->decide(s, &d))
        return false;
    const struct group group = choose_members(s, &d);
    if (!group.members) { /* not the workers it wants: wait for them */
        ready_list_insert(&s->list, d.item);
        return false;
    }
    int leader = lead_by_self(s, &group, d.width);
    occupy(s, &group, &d);
    struct slot *slot = &s->slots[leader];
    slot->task = d.item.task;
    slot->running = (uint16_t)d.width;
    slot->spread = d.spread;
    slot->start = (int16_t)group.start;
    slot->position = (uint16_t)s->running_count;
    slot->started = s->now;
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[d.item.task]];
    double ns = d.ns > 0 ? d.ns : s->policy->timed ? curve_mode_ns(curve, d.width, d.spread) : 0;
    slot->predicted_end = (double)s->now + ns;
    slot->outstanding = 1;
    s->running_slots[s->running_count++] = leader;
    decided(s, leader, d.item.task, d.width);
    s->dispatched++;
    s->send(s, leader, (struct assignment){d.item.task, d.item.task, (uint16_t)d.width, d.spread});
    return true;
}

void step_dispatch(struct schedule *s)
{
    /* relaxed: a failure seen late only starts a task whose result nobody will use */
    if (atomic_load_explicit(&s->failed, memory_order_relaxed))
        return;
    s->self_work = 0;
    log_add(s, -2);
    log_add(s, s->self);
    if (s->policy->free_width) {
        while (dispatch_group(s)) {
        }
    } else {
        while ((s->heap.count | s->light.count) && dispatch_slot(s)) {
        }
        if (s->heap.count) /* the worker at hand will most likely take it next */
            executor_fetch(s, heap_best(&s->heap)->task);
        int starving = s->idle.count > 0; /* pairs with executor_defers(): a hint, and seldom written */
        if (starving != atomic_load_explicit(&s->starving, memory_order_relaxed))
            atomic_store_explicit(&s->starving, starving, memory_order_relaxed);
    }
}
