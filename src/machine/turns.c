/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of those who wait for cores. One pass over it in the order of arrival tells who may go: each leaves to the
 * others what it neither could take now nor has waited for long enough to have kept. Nobody is woken by time, which
 * only makes the rule stricter: all look again when cores become free and when somebody leaves the queue. */
#include "machine/turns.h"

#include "base/clock.h"

#include <pthread.h>

static const int64_t OVERTAKEN_NS = 20000000;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct cpu_mask held, standing; /* standing: those of leases that outlive an execution */
    struct turn *first, **end;
    int64_t overtaken_ns;
} turns = {.mutex = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER,
           .end = &turns.first,
           .overtaken_ns = OVERTAKEN_NS};

void turns_lock(void) { pthread_mutex_lock(&turns.mutex); }

void turns_unlock(void) { pthread_mutex_unlock(&turns.mutex); }

void turns_forget(void)
{
    pthread_mutex_init(&turns.mutex, NULL); /* the thread that owns it may be one that the child does not have */
    pthread_cond_init(&turns.changed, NULL);
    turns.held = turns.standing = (struct cpu_mask){{0}};
    turns.first = NULL;
    turns.end = &turns.first;
}

bool turns_held(int os_index) { return mask_has(&turns.held, os_index); }

void turns_hold(int os_index, bool standing)
{
    mask_add(&turns.held, os_index);
    if (standing)
        mask_add(&turns.standing, os_index);
}

void turns_drop(int os_index)
{
    mask_remove(&turns.held, os_index);
    mask_remove(&turns.standing, os_index);
}

void turns_changed(void) { pthread_cond_broadcast(&turns.changed); }

static bool is_free(const struct turn *turn, int i, const struct cpu_mask *kept)
{
    return !mask_has(&turns.held, turn->os[i]) && !(kept && mask_has(kept, turn->os[i]));
}

static int count_free(const struct turn *turn, const struct cpu_mask *kept)
{
    int count = 0;
    for (int i = 0; i < turn->available; i++)
        count += is_free(turn, i, kept);
    return count;
}

int turns_free(const struct turn *turn) { return count_free(turn, NULL); }

/* Are there cores enough once all executions have ended? */
static bool has_prospects(const struct turn *turn)
{
    int count = 0;
    for (int i = 0; i < turn->available; i++)
        count += !mask_has(&turns.standing, turn->os[i]);
    return count >= turn->workers;
}

/* Adds to `kept` what the one who came earlier takes, or has kept. */
static void keep_for(const struct turn *earlier, int64_t now, struct cpu_mask *kept)
{
    const bool goes = count_free(earlier, kept) >= earlier->workers;
    if (!goes && (now - earlier->begin_ns < turns.overtaken_ns || !has_prospects(earlier)))
        return;
    for (int i = 0, left = goes ? earlier->workers : earlier->available; i < earlier->available && left; i++)
        if (is_free(earlier, i, kept)) {
            mask_add(kept, earlier->os[i]);
            left--;
        }
}

bool turns_may_go(struct turn *turn)
{
    if (!turns.first) { /* the usual case */
        turn->kept = (struct cpu_mask){{0}};
        return count_free(turn, NULL) >= turn->workers;
    }
    struct cpu_mask kept = {{0}};
    const int64_t now = clock_ns();
    for (const struct turn *earlier = turns.first; earlier && earlier != turn; earlier = earlier->next)
        keep_for(earlier, now, &kept);
    turn->kept = kept;
    return count_free(turn, &kept) >= turn->workers;
}

static void leave_queue(struct turn *turn)
{
    struct turn **link = &turns.first;
    while (*link != turn)
        link = &(*link)->next;
    *link = turn->next;
    if (!turn->next)
        turns.end = link;
    turns_changed(); /* nothing is kept for it any more */
}

int64_t turns_wait(struct turn *turn)
{
    turn->begin_ns = clock_ns();
    turn->next = NULL;
    *turns.end = turn;
    turns.end = &turn->next;
    while (!turns_may_go(turn))
        pthread_cond_wait(&turns.changed, &turns.mutex);
    leave_queue(turn);
    return clock_ns() - turn->begin_ns;
}

int turns_waiting(void)
{
    int count = 0;
    turns_lock();
    for (const struct turn *turn = turns.first; turn; turn = turn->next)
        count++;
    turns_unlock();
    return count;
}

void turns_overtaken_for(int64_t ns)
{
    turns_lock();
    turns.overtaken_ns = ns < 0 ? OVERTAKEN_NS : ns;
    turns_changed();
    turns_unlock();
}
