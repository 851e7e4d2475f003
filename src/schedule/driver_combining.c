/* SPDX-License-Identifier: Apache-2.0 */
/* The combining driver: there is no scheduler thread; whoever finishes a task may find itself scheduling for everyone.
 *
 * A worker pushes its completion, then does fetch_add(completions, 1). Who saw 0 holds the role: repeat {n =
 * completions; drain; step} until fetch_sub(completions, n) == n. A drain may find completions whose pusher has not
 * added yet; such a pusher comes later and finds 0 (then it runs a step with nothing to drain) or is counted by the
 * holder's next round. So the run is over when the counts taken off equal the assignments sent, not when the last
 * completion was drained. The start of the run counts as one completion of worker 0.
 *
 * A worker that idles and finds a message takes a free role without a completion (knock); such steps are counted like
 * assignments.
 *
 * A worker with more assignments in its ring may add several completions at once (executor_defers): it adds them all
 * before it finds its ring empty. tests/test_combining.c explores every interleaving of this protocol. */
#include "schedule/scheduler.h"

#include "machine/parking.h"

static void combine(struct schedule *s, struct executor *x)
{
    s->self = x->slot;
    for (;;) {
        /* acquire: pairs with the fetch_add in pushed(): what n counts has been pushed */
        unsigned n = atomic_load_explicit(&s->completions, memory_order_acquire);
        const int drained = step_drain(s);
        if (step_messages(s) || drained || !s->dispatched)
            step_dispatch(s);
        s->taken += n;
        bool over = step_over(s) && s->taken == s->dispatched + 1 + s->waits.knocks;
        /* acq_rel: hands everything the step owns to the next holder, whose fetch_add reads what this leaves; after it
         * returned n the role is lost and nothing of the step may be touched */
        if (atomic_fetch_sub_explicit(&s->completions, n, memory_order_acq_rel) == n) {
            if (over) /* pairs with the acquire in combining_worker() */
                atomic_store_explicit(&s->finished, 1, memory_order_release);
            return;
        }
    }
}

static void pushed(struct schedule *s, struct executor *x, unsigned count)
{
    /* pairs with the load and the fetch_sub in combine() */
    if (atomic_fetch_add_explicit(&s->completions, count, memory_order_acq_rel) == 0)
        combine(s, x);
}

/* A message has been found, and nobody may come to look for it: takes the role where it is free, as a completion of
 * nothing. Where it is not, its holder sees the message, or the one that knocks again does. */
static void knock(struct schedule *s, struct executor *x)
{
    unsigned none = 0;
    /* pairs with the load and the fetch_sub in combine() */
    if (!atomic_compare_exchange_strong_explicit(&s->completions, &none, 1, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return;
    s->waits.knocks++;
    combine(s, x);
}

/* By worker 0 before it polls: the roots are ready and count as one completion, which was there before any worker
 * started (combining_begin), so that nobody who finds a message takes the role before. */
static void begin(struct schedule *s)
{
    step_roots(s);
    combine(s, &s->executors[0]);
}

void combining_begin(struct schedule *s) { atomic_store_explicit(&s->completions, 1, memory_order_relaxed); }

void combining_worker(void *context, int worker)
{
    struct schedule *s = context;
    struct executor *x = &s->executors[worker];
    if (worker == 0)
        begin(s);
    int64_t idle_ns = 0;
    for (unsigned spins = 0, owed = 0;;) {
        struct assignment assignment = x->direct;
        if (assignment.task >= 0)
            x->direct.task = -1;
        else if (!RING_POP(&x->inbox, &x->inbox_head, &assignment)) {
            if (executor_help(s, x))
                spins = 0, idle_ns = 0;
            else if (atomic_load_explicit(&s->finished, memory_order_acquire)) /* pairs with combine() */
                return;
            else if (messages_found(s, x, &idle_ns))
                knock(s, x);
            else
                spin_turn(&spins);
            continue;
        }
        executor_run(s, x, assignment);
        spins = 0;
        idle_ns = 0;
        owed++;
        if (executor_defers(s, RING_FILLED(&x->inbox, &x->inbox_head)))
            continue;
        pushed(s, x, owed);
        owed = 0;
    }
}
