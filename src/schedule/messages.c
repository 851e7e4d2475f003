/* SPDX-License-Identifier: Apache-2.0 */
/* A message is one more predecessor: the step adds one to what a waiting task waits for before an execution begins, and
 * takes it off, as an executor does (executor_advance), once the message is there. So whoever
 * comes last makes the task ready, and nothing of the step's own state is touched by others. */
#include "base/clock.h"
#include "base/status.h"
#include "machine/parking.h"
#include "schedule/scheduler.h"

enum { LOOKS_A_STEP = 64, LOOKS_IDLE = 64, TURNS_A_CLOCK = 256 };

bool messages_allocate(struct schedule *s)
{
    const size_t count = (size_t)s->tasks->waits_count;
    s->waits.arrived = count ? schedule_alloc(s, count, sizeof *s->waits.arrived) : NULL;
    return !count || s->waits.arrived;
}

void messages_reset(struct schedule *s)
{
    const int count = s->tasks->waits_count;
    atomic_store_explicit(&s->waits.left, count, memory_order_relaxed);
    s->waits.next = 0;
    s->waits.knocks = 0;
    for (int i = 0; i < count; i++) {
        atomic_store_explicit(&s->waits.arrived[i], 0, memory_order_relaxed); /* workers start afterwards */
        s->pending[s->tasks->waits[i]]++;
    }
}

static int left(const struct schedule *s) { return atomic_load_explicit(&s->waits.left, memory_order_relaxed); }

bool message_told(const struct schedule *s, int wait)
{
    return atomic_load_explicit(&s->waits.arrived[wait], memory_order_relaxed);
}

bool message_arrives(struct schedule *s, int wait)
{
    atomic_store_explicit(&s->waits.arrived[wait], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->waits.left, 1, memory_order_relaxed);
    /* acq_rel: pairs with the decrements of executors (executor.c) */
    return atomic_fetch_sub_explicit(&s->pending[s->tasks->waits[wait]], 1, memory_order_acq_rel) == 1;
}

int messages_look(struct schedule *s, void (*tell)(struct schedule *s, int wait))
{
    const int count = s->tasks->waits_count;
    int found = 0;
    if (!count || !s->waits.source || !left(s))
        return 0;
    for (int looks = count < LOOKS_A_STEP ? count : LOOKS_A_STEP; looks; looks--) {
        if (atomic_load_explicit(&s->failed, memory_order_relaxed))
            return found;
        const int wait = s->waits.next;
        s->waits.next = wait + 1 < count ? wait + 1 : 0;
        if (message_told(s, wait))
            continue;
        const int state = s->waits.source->look(s->waits.source, wait);
        if (state < 0) {
            schedule_fail(s, s->waits.source->refuse(s->waits.source, wait, false));
            return found + 1;
        }
        if (state > 0) {
            tell(s, wait);
            found++;
        }
    }
    return found;
}

/* With nothing to do since then: is it too long? */
static bool too_long(struct schedule *s, unsigned turns, int64_t *idle_ns)
{
    if (turns % TURNS_A_CLOCK >= LOOKS_IDLE || !s->waits.source->patience_ns)
        return false;
    const int64_t now = clock_ns();
    if (!*idle_ns)
        *idle_ns = now;
    return now - *idle_ns > s->waits.source->patience_ns;
}

static void give_up(struct schedule *s, int wait)
{
    schedule_fail(s, s->waits.source->refuse(s->waits.source, wait, true));
}

static int first_missing(const struct schedule *s)
{
    int wait = 0;
    while (wait + 1 < s->tasks->waits_count && message_told(s, wait))
        wait++;
    return wait;
}

bool messages_found(struct schedule *s, struct executor *x, int64_t *idle_ns)
{
    const int count = s->tasks->waits_count;
    if (!count || !s->waits.source || !left(s))
        return false;
    for (int looks = 0; looks < LOOKS_IDLE && looks < count; looks++) {
        const int wait = (int)(x->heard % (unsigned)count);
        x->heard++;
        if (message_told(s, wait))
            continue;
        if (s->waits.source->look(s->waits.source, wait))
            return true;
    }
    if (!too_long(s, x->heard, idle_ns))
        return false;
    give_up(s, first_missing(s));
    return true;
}

bool message_await(struct schedule *s, struct executor *x, int32_t task)
{
    const int wait = s->tasks->wait_of ? s->tasks->wait_of[task] : -1;
    int64_t idle_ns = 0;
    unsigned turns = 0;
    for (unsigned spins = 0; wait >= 0; turns++) {
        const int state = s->waits.source->look(s->waits.source, wait);
        if (state > 0)
            return true;
        if (state < 0) {
            schedule_fail(s, s->waits.source->refuse(s->waits.source, wait, false));
            return false;
        }
        if (too_long(s, turns, &idle_ns))
            give_up(s, wait);
        if (atomic_load_explicit(&s->failed, memory_order_relaxed))
            return false;
        if (executor_help(s, x))
            spins = 0, idle_ns = 0;
        else
            spin_turn(&spins);
    }
    return true;
}
