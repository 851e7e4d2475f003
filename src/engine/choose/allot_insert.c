/* SPDX-License-Identifier: Apache-2.0 */
/* The last part of the search for widths and order (allot.c): schedules by insertion (insertion.c), from what list
 * scheduling found and from the levels that each price gives, then from the best of these with the order disturbed
 * within windows of time. Insertion chooses widths as well, except where it is told to keep them. Each schedule is
 * turned into an order in which tasks start, and the simulation says how long that takes. */
#include "engine/choose/allot_insert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Prices of a task's area in units of its time (insertion.h). */
static const double prices[] = {0, 0.1, 5, 100};
enum {
    PRICES = sizeof prices / sizeof *prices,
    STEPS_A_TASK = 150
}; /* steps of an insertion that cost as much as a simulated task */

/* An order bends less than priorities when tasks take longer than predicted, so it must be shorter by this. */
static const double LEAST_GAIN = 0.005;

static int by_start(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->level != y->level ? (x->level < y->level) - (x->level > y->level)
                                : (x->task > y->task) - (x->task < y->task);
}

/* Tasks start in the order of the last insertion; of those that start together the one with most behind it is sent
 * first. Tiny tasks run wherever they become ready. */
static void order_by_start(struct search *s)
{
    const double *start = insertion_start(s->insertion);
    int64_t key = 0;
    int32_t top;
    search_longest(s, &top);
    for (int32_t v = 0; v < s->t->count; v++) {
        s->turns[v] = (struct turn){start[v], s->level[v], v};
        key += !(s->t->flags[v] & TASK_INLINE);
    }
    qsort(s->turns, (size_t)s->t->count, sizeof *s->turns, by_start);
    for (int32_t i = 0; i < s->t->count; i++) {
        int32_t v = s->turns[i].task;
        s->now->key[v] = s->t->flags[v] & TASK_INLINE ? INT64_MAX : key--;
    }
    s->now->in_order = true;
}

/* The makespan after insertion by search.key, INFINITY where the budget does not allow that; a price below 0 keeps
 * widths. */
static double inserted(struct search *s, double price, bool memory)
{
    int64_t steps;
    double length = insertion_run(s->insertion, s->now->width, s->key, price, memory, s->left * STEPS_A_TASK, &steps);
    s->left -= steps / STEPS_A_TASK + s->t->count;
    if (length == INFINITY)
        return INFINITY;
    order_by_start(s);
    return search_makespan(s);
}

/* With and without regard to memory: what waits for bandwidth delays others, what does not is slower itself. */
static void try_insertion(struct search *s, double price)
{
    for (int memory = s->simulator.traffic.shared; memory >= 0 && s->left > 0; memory--) {
        double ns = inserted(s, price, memory);
        if (ns < s->base_ns)
            search_settle(s, ns);
    }
}

static void widths_of_base(struct search *s)
{
    for (int32_t v = 0; v < s->t->count; v++)
        s->now->width[v] = s->base_records[v].width;
}

static void order_of_base(struct search *s)
{
    for (int32_t v = 0; v < s->t->count; v++)
        s->key[v] = -(double)s->base_records[v].start_ns;
}

static void try_starts(struct search *s)
{
    int32_t top;
    order_of_base(s);
    widths_of_base(s);
    s->base_ns = INFINITY;
    try_insertion(s, -1);
    for (int i = SEARCH_PRICES - 1; i >= 0 && s->left > 0; i--) {
        search_weigh(s, search_prices[i], s->workers);
        search_longest(s, &top);
        memcpy(s->key, s->level, (size_t)s->t->count * sizeof *s->key);
        for (int k = 0; k < PRICES && s->left > 0; k++)
            try_insertion(s, prices[k]);
    }
}

/* Half of the tasks that run within some window of time move a little in the order. */
static void disturb(struct search *s)
{
    double middle = s->base_ns * search_draw(s, 1024) / 1024, half = s->base_ns / (2 << search_draw(s, 6));
    double far = s->base_ns / (8 << search_draw(s, 8));
    order_of_base(s);
    for (int32_t v = 0; v < s->t->count; v++)
        if ((double)s->base_records[v].end_ns > middle - half && (double)s->base_records[v].start_ns < middle + half &&
            search_draw(s, 2))
            s->key[v] += far * ((double)search_draw(s, 1024) / 512 - 1);
}

void search_insert(struct search *s)
{
    double list_ns = s->best_ns;
    s->best_ns *= 1 - LEAST_GAIN;
    try_starts(s);
    double all = (double)s->left;
    while (s->left > 0) {
        double left = (double)s->left / all, price = search_draw(s, 2) ? -1 : prices[search_draw(s, PRICES)];
        disturb(s);
        widths_of_base(s);
        double ns = inserted(s, price, search_draw(s, 2));
        if (search_tolerates(s, ns - s->base_ns, left))
            search_settle(s, ns);
    }
    if (!s->best->in_order)
        s->best_ns = list_ns;
}
