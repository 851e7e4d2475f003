/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the search for widths and order (allot.c) work with: its memory, the simulation that judges, the
 * schedule that is gone on from, and the widths that a price asks for. One thread. */
#include "engine/choose/allot_search.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/choose/allotment.h"
#include "machine/machine.h"
#include "schedule/edges.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 30 };
static const double HEAT = 0.0001; /* of the makespan, at the start of the walk; chosen by `graphi bench search` */
enum { ROUNDS_A_SIMULATION = 8 }; /* that cost as much as one */
const double search_prices[SEARCH_PRICES] = {0.5, 0.7, 0.3, 0.9, 0.1, 0.6, 0.4, 0.8, 0.2, 0.97, 0.06, 0.02};

static double time_of(const struct search *s, int32_t task)
{
    return curve_ns(curve_of(s, task), s->now->width[task]);
}

/* Levels at the present widths, and the longest path: its length, its first task in *top, successors in next. */
double search_longest(struct search *s, int32_t *top)
{
    *top = 0;
    for (int32_t v = s->t->count - 1; v >= 0; v--) {
        double most = 0;
        s->next[v] = -1;
        for (int32_t e = s->t->edges_begin[v]; e < s->t->edges_begin[v + 1]; e++)
            if (s->next[v] < 0 || s->level[s->t->edges[e]] > most) {
                s->next[v] = s->t->edges[e];
                most = s->level[s->next[v]];
            }
        s->level[v] = most + time_of(s, v);
        if (s->level[v] > s->level[*top])
            *top = v;
    }
    return s->level[*top];
}

/* The width up to `widest` at which price * flow * time + (1 - price) * area is least. */
static uint16_t cheapest(const struct search *s, int32_t task, double price, int widest)
{
    int32_t curve = s->t->curve_of[task];
    double least = INFINITY, time = price * s->flow[task], area = (1 - price) / s->workers;
    int width = 1;
    for (int32_t i = s->choices_begin[curve]; i < s->choices_begin[curve + 1] && s->choices[i].width <= widest; i++) {
        double cost = s->choices[i].ns * (time + area * s->choices[i].width);
        if (cost < 0.9999 * least) {
            least = cost;
            width = s->choices[i].width;
        }
    }
    return (uint16_t)width;
}

/* The least that price * flow * time + (1 - price) * area can be, whatever the width and the mode. */
static double least_cost(const struct search *s, int32_t task, double price)
{
    int32_t curve = s->t->curve_of[task];
    double least = INFINITY, time = price * s->flow[task], area = (1 - price) / s->workers;
    for (int32_t i = s->limits_begin[curve]; i < s->limits_begin[curve + 1]; i++)
        least = fmin(least, s->limits[i].ns * (time + area * s->limits[i].width));
    return least;
}

void search_copy(const struct search *s, struct allotment *to, const struct allotment *from)
{
    memcpy(to->width, from->width, (size_t)s->t->count * sizeof *from->width);
    memcpy(to->key, from->key, (size_t)s->t->count * sizeof *from->key);
    to->fill = from->fill;
    to->narrower = from->narrower;
    to->wider = from->wider;
    to->in_order = from->in_order;
}

/* Makespan of the present allotment, which becomes the best when it is. */
double search_makespan(struct search *s)
{
    struct simulation simulation;
    s->left -= s->t->count;
    const graphi_status status = simulator_run(&s->simulator, s->records, &simulation);
    if (status != GRAPHI_OK) {
        s->status = status;
        s->left = 0;
        return INFINITY;
    }
    if (simulation.makespan_ns < s->best_ns) {
        s->best_ns = simulation.makespan_ns;
        search_copy(s, s->best, s->now);
    }
    return simulation.makespan_ns;
}

/* The present allotment is where the walk goes on from. */
void search_settle(struct search *s, double ns)
{
    s->base_ns = ns;
    search_copy(s, s->base, s->now);
    memcpy(s->base_offset, s->offset, (size_t)s->t->count * sizeof *s->offset);
    struct task_record *swap = s->records;
    s->records = s->base_records;
    s->base_records = swap;
}

void search_back(struct search *s)
{
    search_copy(s, s->now, s->base);
    memcpy(s->offset, s->base_offset, (size_t)s->t->count * sizeof *s->offset);
}

bool search_tolerates(struct search *s, double rise, double left)
{
    return rise <= -HEAT * s->best_ns * left * left * log((search_draw(s, 1 << 20) + 1.0) / (1 << 20));
}

void search_order_by_level(struct search *s)
{
    int32_t top;
    search_longest(s, &top);
    for (int32_t v = 0; v < s->t->count; v++)
        s->now->key[v] = (int64_t)s->level[v] + s->offset[v];
}

/* Of the widths that belong to the weights of each round those whose larger bound is the least. */
void search_weigh(struct search *s, double price, int widest)
{
    double least = INFINITY;
    uint16_t *kept = (uint16_t *)s->chain; /* free until the second part, and after it */
    size_t bytes = (size_t)s->t->count * sizeof *kept;
    memset(s->flow, 0, (size_t)s->t->count * sizeof *s->flow);
    s->left -= (int64_t)s->t->count * ROUNDS / ROUNDS_A_SIMULATION;
    for (int round = 0; round < ROUNDS; round++) {
        double area = 0, part = 2.0 / (round + 2), bound, total = 0;
        bool bounds = round && widest == s->workers; /* in the first round no path has a weight */
        int32_t top;
        for (int32_t v = 0; v < s->t->count; v++) {
            s->now->width[v] = cheapest(s, v, price, widest);
            total += bounds ? least_cost(s, v, price) : 0;
            area += s->now->width[v] * time_of(s, v) / s->workers;
        }
        /* weights of paths sum to at most 1: whatever the widths, price * L + (1 - price) * A is more */
        s->bound = fmax(s->bound, total);
        bound = price * search_longest(s, &top) + (1 - price) * area;
        if (bound < least) {
            least = bound;
            memcpy(kept, s->now->width, bytes);
        }
        for (int32_t v = 0; v < s->t->count; v++)
            s->flow[v] *= 1 - part;
        for (int32_t v = top; v >= 0; v = s->next[v])
            s->flow[v] += part;
    }
    memcpy(s->now->width, kept, bytes);
}

/* What happens when workers are too few or too many. */
void search_rules(struct search *s, int rules)
{
    s->now->fill = (enum fill)(rules / 4);
    s->now->narrower = rules & 1;
    s->now->wider = rules & 2;
}

/* Widths worth considering: those measured and those that divide the workers evenly, each faster than all narrower
 * ones. */
static void fill_choices(struct search *s)
{
    int32_t count = 0;
    for (int32_t c = 0; c < s->t->curves_count; c++) {
        const struct cost_curve *curve = &s->t->curves[c];
        double best = INFINITY;
        int sample = 0;
        s->choices_begin[c] = count;
        for (int width = 1; width <= s->workers;) {
            double ns = curve_ns(curve, width);
            if (ns < 0.995 * best) {
                s->choices[count++] = (struct choice){width, ns};
                best = ns;
            }
            while (sample < curve->samples && curve->width[sample] <= width)
                sample++;
            int parts = s->workers / width, even = parts > 1 ? s->workers / (parts - 1) : s->workers + 1;
            even = even > width ? even : width + 1;
            width = sample < curve->samples && curve->width[sample] < even ? curve->width[sample] : even;
        }
    }
    s->choices_begin[s->t->curves_count] = count;
}

/* Samples of both modes, each faster than all narrower ones: time and area of the widths between lie above. Times are
 * the least that others beside them were measured to make of them. */
static void fill_limits(struct search *s)
{
    int32_t count = 0;
    for (int32_t c = 0; c < s->t->curves_count; c++) {
        const struct cost_curve *curve = &s->t->curves[c];
        double best = INFINITY;
        s->limits_begin[c] = count;
        for (int i = 0; i < curve->samples; i++)
            if (curve_sample_ns(curve, i) < best) {
                best = curve_sample_ns(curve, i);
                s->limits[count++] = (struct choice){curve->width[i], best * curve_least_factor(curve, false)};
            }
    }
    s->limits_begin[s->t->curves_count] = count;
}

/* NULL after the first that found no memory. */
static void *room(struct search *s, bool *enough, size_t count, size_t size)
{
    void *array = *enough ? arena_alloc(&s->arrays, count * size) : NULL;
    *enough = array != NULL;
    return array;
}

graphi_status search_open(struct search *s)
{
    size_t n = (size_t)s->t->count, classes = (size_t)s->t->curves_count + 1;
    size_t most_choices = CURVE_SAMPLES + 2 + 2 * (size_t)ceil(sqrt(s->workers)); /* measured, and even parts */
    bool enough = (s->now = allotment_create(n, 0)) && (s->best = allotment_create(n, 0)) &&
                  (s->base = allotment_create(n, 0));
    s->offset = room(s, &enough, n, sizeof *s->offset);
    s->base_offset = room(s, &enough, n, sizeof *s->offset);
    s->records = room(s, &enough, n, sizeof *s->records);
    s->base_records = room(s, &enough, n, sizeof *s->base_records);
    s->choices = room(s, &enough, classes * most_choices, sizeof *s->choices);
    s->choices_begin = room(s, &enough, classes, sizeof *s->choices_begin);
    s->limits = room(s, &enough, classes * CURVE_SAMPLES, sizeof *s->limits);
    s->limits_begin = room(s, &enough, classes, sizeof *s->limits_begin);
    s->flow = room(s, &enough, n, sizeof *s->flow);
    s->level = room(s, &enough, n, sizeof *s->level);
    s->next = room(s, &enough, n, sizeof *s->next);
    s->chain = room(s, &enough, n, sizeof *s->chain);
    s->key = room(s, &enough, n, sizeof *s->key);
    s->turns = room(s, &enough, n, sizeof *s->turns);
    if (!enough)
        return fail_memory("search of widths", n * 64);
    fill_choices(s);
    fill_limits(s);
    return edges_predecessors(s->t->count, s->t->edges_begin, s->t->edges, &s->from_begin, &s->from);
}

/* A task that is not tiny starts a message and a decision after its inputs are there. */
graphi_status search_open_insertion(struct search *s)
{
    const graphi_machine *machine = s->draft->machine;
    struct insertion_input input = {.tasks = s->t,
                                    .workers = s->workers,
                                    .from_begin = s->from_begin,
                                    .from = s->from,
                                    .choices = s->choices,
                                    .choices_begin = s->choices_begin,
                                    .bytes = s->simulator.traffic.shared ? s->simulator.traffic.bytes : NULL,
                                    .gbs = s->simulator.traffic.gbs,
                                    .start_ns = machine->schedule_ns + machine->wake_ns};
    return insertion_create(&input, &s->insertion);
}

void search_close(struct search *s)
{
    insertion_destroy(s->insertion);
    simulator_close(&s->simulator);
    allotment_destroy(s->now);
    allotment_destroy(s->best);
    allotment_destroy(s->base);
    mem_free(s->from_begin);
    mem_free(s->from);
    arena_free(&s->arrays);
}
