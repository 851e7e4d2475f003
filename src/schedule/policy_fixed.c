/* SPDX-License-Identifier: Apache-2.0 */
/* Policies whose executors are of one width and keep their workers: critical path first, first in first out, random,
 * locality; the two loops without a step; and the phases policy, which forms groups of one width in the forward and of
 * another in the backward pass. A decision costs a heap operation and a bit scan. */
#include "schedule/scheduler.h"

#include "base/random.h"
#include "schedule/parameter.h"

int64_t policy_by_level(struct schedule *s, int32_t task)
{
    return s->tasks->level[task];
}

int64_t policy_by_arrival(struct schedule *s, int32_t task)
{
    (void)task;
    return -s->arrivals;
}

static const graphi_policy_parameter_info seed[] = {
    {.name = "seed", .meaning = "of the order", .low = INT64_MIN, .high = INT64_MAX}, {0}};

static int64_t by_seed(struct schedule *s, int32_t task)
{
    struct random4 r = random_philox((uint64_t)parameter_value(&s->setting, seed), 0, (uint64_t)task);
    return (int64_t)((uint64_t)r.v[0] << 31 ^ r.v[1]);
}

static int first_idle(struct schedule *s, int32_t task)
{
    (void)task;
    return step_first_idle(s);
}

/* The executor that produced the task's largest input, while it is idle (graphi.txt 6). The step is not told who ran an
 * inlined operation: most likely the executor that then made this one ready. */
static int where_produced(struct schedule *s, int32_t task)
{
    int32_t from = s->tasks->largest_input_from ? s->tasks->largest_input_from[task] : -1;
    int slot = from < 0 ? NOWHERE : s->ran_on[from] == NOWHERE ? s->ran_on[task] : s->ran_on[from];
    if (slot != NOWHERE && slot != s->fixed.light_slot && bitmap_test(&s->idle, slot))
        return slot;
    return step_first_idle(s);
}

const struct policy policy_critical_path = { /* graphi.txt Alg. 1 */
    .usual = true,
    .raced = true,
    .anywhere = true,
    .key = policy_by_level,
    .place = first_idle,
};
const struct policy policy_fifo = {
    .raced = true,
    .anywhere = true,
    .key = policy_by_arrival,
    .place = first_idle,
};
const struct policy policy_random = {
    .anywhere = true,
    .parameters = seed,
    .key = by_seed,
    .place = first_idle,
};
const struct policy policy_locality = { /* graphi.txt 6 */
    .raced = true,
    .remembers = true,
    .key = policy_by_level,
    .place = where_produced,
};
const struct policy policy_naive = {
    .loop = LOOP_NAIVE, /* graphi.txt 7.4 */
};
const struct policy policy_sequential = {
    .loop = LOOP_SEQUENTIAL,
};

static int64_t asked_order(struct schedule *s, int32_t task)
{
    return s->asked->key(s, task);
}

static bool is_backward(const struct schedule *s, int32_t task)
{
    return s->tasks->flags[task] & TASK_BACKWARD;
}

/* Do as many backward tasks run as there are executors for them? Where these are no divisor of the workers more groups
 * of their width would fit. */
static bool backward_full(const struct schedule *s)
{
    int running = 0;
    for (int i = 0; i < s->formed.count; i++)
        running += is_backward(s, running_team(s, i)->task);
    return running >= s->setting.backward_executors;
}

static int backward_width(const struct schedule *s)
{
    const int width = s->workers / s->setting.backward_executors;
    return width > 1 ? width : 1;
}

/* Best key first, on an aligned group of the width of its pass; a forward task ready in the backward pass keeps its
 * own. */
static bool by_phase(struct schedule *s, struct decision *d)
{
    d->item = s->formed.list.items[s->formed.list.count - 1];
    bool backward = is_backward(s, d->item.task);
    d->width = backward ? backward_width(s) : s->setting.width;
    d->aligned = true;
    if (s->idle.count < d->width || (backward && backward_full(s)))
        return false;
    s->formed.list.count--;
    return true;
}

const struct policy policy_phases = {
    .free_width = true, /* graphi.txt 6, dynamic number of executors */
    .key = asked_order,
    .decide = by_phase,
};
