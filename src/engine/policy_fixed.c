/* SPDX-License-Identifier: Apache-2.0 */
/* Policies whose executors keep their workers: critical path first, first in first out, random, locality, asymmetric teams;
 * the two loops without a step; and the phases policy, which forms groups of one width in the forward and of another in the
 * backward pass. A decision costs a heap operation and a bit scan. */
#include "engine/scheduler.h"

#include "base/random.h"

static int64_t by_level(struct schedule *s, int32_t task) { return s->tasks->level[task]; }

static int64_t by_arrival(struct schedule *s, int32_t task)
{
    (void)task;
    return -s->arrivals;
}

static int64_t by_seed(struct schedule *s, int32_t task)
{
    struct random4 r = random_philox(s->setting.seed, 0, (uint64_t)task);
    return (int64_t)((uint64_t)r.v[0] << 31 ^ r.v[1]);
}

static int first_idle(struct schedule *s, int32_t task)
{
    (void)task;
    return step_first_idle(s);
}

/* The executor that produced the task's largest input, while it is idle (graphi.txt 6). */
static int where_produced(struct schedule *s, int32_t task)
{
    int32_t from = s->tasks->largest_input_from ? s->tasks->largest_input_from[task] : -1;
    if (from >= 0) {
        int slot = s->ran_on[from];
        if (slot != s->light_slot && bitmap_test(&s->idle, slot))
            return slot;
    }
    return step_first_idle(s);
}

/* An idle executor of the size that the task's class asks for, else of the next smaller, else of the next larger size. */
static int by_class(struct schedule *s, int32_t task)
{
    static const int group_of_class[] = {0, 1, 2, 2}; /* serial, element-wise, matrix product, convolution */
    int wanted = group_of_class[s->tasks->scalability ? s->tasks->scalability[task] & 3 : 0], best = -1, best_distance = 99;
    for (int slot = bitmap_first(&s->idle); slot >= 0; slot = bitmap_next(&s->idle, slot + 1, s->slots_count)) {
        int group = s->slots[slot].group, distance = group <= wanted ? 2 * (wanted - group) : 2 * (group - wanted) - 1 + 4;
        if (distance < best_distance || (distance == best_distance && slot == s->self)) {
            best = slot;
            best_distance = distance;
        }
        if (distance == 0 && s->self < 0)
            break;
    }
    return best >= 0 || s->setting.depth == 1 ? best : bitmap_first(&s->room);
}

const struct policy policy_critical_path = {
    .name = "critical-path", /* graphi.txt Alg. 1 */
    .key = by_level, .place = first_idle,
};
const struct policy policy_fifo = {
    .name = "fifo",
    .key = by_arrival, .place = first_idle,
};
const struct policy policy_random = {
    .name = "random",
    .key = by_seed, .place = first_idle,
};
const struct policy policy_locality = {
    .name = "locality", /* graphi.txt 6 */
    .key = by_level, .place = where_produced,
};
const struct policy policy_asymmetric = {
    .name = "asymmetric", /* graphi.txt 6 */
    .key = by_level, .place = by_class,
};
const struct policy policy_naive = {
    .name = "naive", .loop = LOOP_NAIVE, /* graphi.txt 7.4 */
    .key = by_arrival, .place = first_idle,
};
const struct policy policy_sequential = {
    .name = "sequential", .loop = LOOP_SEQUENTIAL,
    .key = by_arrival, .place = first_idle,
};

static int64_t asked_order(struct schedule *s, int32_t task) { return policy_of(s->setting.policy)->key(s, task); }

/* Best key first, on an aligned group of the width of its pass; a forward task ready in the backward pass keeps its own. */
static bool by_phase(struct schedule *s, struct decision *d)
{
    d->item = s->list.items[s->list.count - 1];
    d->width = s->tasks->flags[d->item.task] & TASK_BACKWARD ? s->backward_width : s->forward_width;
    d->aligned = true;
    if (s->idle.count < d->width)
        return false;
    s->list.count--;
    return true;
}

const struct policy policy_phases = {
    .name = "phases", .free_width = true, /* graphi.txt 6, dynamic number of executors */
    .key = asked_order, .decide = by_phase,
};
