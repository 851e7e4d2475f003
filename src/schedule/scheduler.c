/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduling step: drain the triggered queues, order what is ready, place it (graphi.txt Algorithm 1). The same
 * code runs on the real machine, in virtual time and in a replay; it reaches the world through schedule->send alone,
 * knows policies only through their table, and has one of two dispatchers (dispatch.h). It allocates nothing and takes
 * no locks: one thread at a time runs it (the client, or the holder of the combining role). An empty task through it
 * costs tens of nanoseconds. */
#include "schedule/scheduler.h"

#include "base/clock.h"
#include "base/hash.h"

#include <string.h>

void step_ready(struct schedule *s, int32_t task)
{
    s->dispatcher->ready(s, (struct ready){s->policy->key(s, task), task});
    s->arrivals++;
    s->ready++;
    s->ready_work += s->cost[task];
}

void step_reset(struct schedule *s)
{
    memcpy(s->pending, s->tasks->pending, (size_t)s->tasks->count * sizeof *s->tasks->pending);
    s->idle = (struct bitmap){0};
    for (int i = 0; i < s->slots_count; i++) {
        s->slots[i].outstanding = 0;
        s->slots[i].outbox_head = 0;
        if (i < s->workers) /* siblings are taken by strategy 4 alone */
            bitmap_set(&s->idle, i);
    }
    messages_reset(s);
    s->dispatcher->begin(s);
    for (int i = 0; i < s->workers + s->siblings; i++) {
        struct executor *x = &s->executors[i];
        atomic_store_explicit(&x->inbox.tail, 0, memory_order_relaxed); /* workers start afterwards */
        atomic_store_explicit(&x->outbox.tail, 0, memory_order_relaxed);
        atomic_store_explicit(&x->ended, 0, memory_order_relaxed);
        x->inbox_head = 0;
        x->direct.task = x->inline_first = -1;
    }
    s->ready = 0;
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
        step_ready(s, s->roots[i]);
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
    s->slots[slot].outstanding--;
    s->dispatcher->ended(s, slot, done);
    for (int32_t task = done->first; task >= 0; task = task == done->last ? -1 : s->next[task]) {
        log_add(s, task);
        if (s->ran_on)
            s->ran_on[task] = (uint16_t)slot;
        step_ready(s, task);
    }
    log_add(s, -1);
}

/* In a log it stands where it made its task ready. */
void step_message(struct schedule *s, int wait)
{
    const int32_t task = s->tasks->waits[wait];
    if (!message_arrives(s, wait))
        return;
    if (s->records)
        s->records[task].ready_ns = s->backend ? s->now : clock_ns() - s->began;
    log_add(s, -3);
    log_add(s, task);
    step_ready(s, task);
}

int step_messages(struct schedule *s) { return messages_look(s, step_message); }

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

void step_placed(struct schedule *s, int slot, int32_t task, int width)
{
    s->ready--;
    s->ready_work -= s->cost[task];
    if (slot == s->self)
        s->self_work += s->cost[task];
    if (s->ran_on)
        s->ran_on[task] = (uint16_t)slot;
    if (s->hashing)
        s->decisions = decisions_hash(s->decisions, task, s->slots[slot].first, width);
}

void step_send(struct schedule *s, int slot, struct assignment assignment)
{
    s->dispatched++;
    s->send(s, slot, assignment);
}

bool step_little_work(const struct schedule *s)
{
    return s->self >= 0 && s->self_work + s->ready_work < s->wake_ns;
}

void step_dispatch(struct schedule *s)
{
    /* relaxed: a failure seen late only starts a task whose result nobody will use */
    if (atomic_load_explicit(&s->failed, memory_order_relaxed))
        return;
    s->self_work = 0;
    log_add(s, -2);
    log_add(s, s->self);
    s->dispatcher->dispatch(s);
}
