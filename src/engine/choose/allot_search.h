/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the search for widths and order share; for allot*.c only. allot.c: prices and whole classes;
 * allot_walk.c: random changes; allot_insert.c: schedules by insertion; allot_uniform.c: what uniform settings do.
 * `now` is what the simulator sees, `base` what is tried to be improved, `best` the best so far; `left` counts down the
 * budget in simulated tasks. */
#ifndef ENGINE_ALLOT_SEARCH_H
#define ENGINE_ALLOT_SEARCH_H

#include "base/arena.h"
#include "base/random.h"
#include "engine/choose/draft.h"
#include "engine/choose/insertion.h"

/* In what order tasks start; allot_insert.c. */
struct turn {
    double start, level;
    int32_t task;
};

struct search {
    struct draft *draft;
    const struct tasks *t;
    int workers;
    struct plan_simulator simulator;
    struct allotment *now, *base, *best; /* now: what the simulator sees */
    int64_t *offset, *base_offset;
    struct task_record *records, *base_records;
    struct choice *choices; /* of each curve, wider and faster ones last */
    int32_t *choices_begin;
    struct choice *limits; /* of each curve, what no team of either mode beats, for the bound; wider and faster last */
    int32_t *limits_begin;
    double *flow, *level, *key; /* one a task */
    int32_t *next, *chain, *from_begin, *from;
    double uniform_ns; /* of the best uniform setting, INFINITY where it was not asked for; */
    int uniform_width; /* and its teams */
    double base_ns, best_ns, bound; /* bound: no schedule whose tasks keep their widths is shorter */
    int64_t left;
    uint64_t draws;
    struct insertion *insertion;
    struct turn *turns;   /* one a task */
    struct arena arrays;  /* those above */
    graphi_status status; /* of the last simulation that failed: what was found without it does not stand */
};

static inline const struct cost_curve *curve_of(const struct search *s, int32_t task)
{
    return &s->t->curves[s->t->curve_of[task]];
}

static inline uint32_t search_draw(struct search *s, uint32_t below)
{
    return random_philox(17, 0, s->draws++).v[0] % below;
}

/* May a rise of the makespan by `rise` stay, with `left` of the budget (1 ... 0) ? Simulated annealing, of little heat.
 */
bool search_tolerates(struct search *search, double rise, double left);

/* Memory of the search, of search.draft, search.t and search.workers. MEMORY; search_close in any case. The insertion
 * after the simulator was opened. */
graphi_status search_open(struct search *search);
graphi_status search_open_insertion(struct search *search);
void search_close(struct search *search);

void search_copy(const struct search *search, struct allotment *to, const struct allotment *from);

double search_longest(struct search *search, int32_t *top);
double search_makespan(struct search *search);
void search_settle(struct search *search, double ns);
void search_back(struct search *search);
void search_order_by_level(struct search *search);
void search_rules(struct search *search, int rules);

/* The widths that one price asks for (allot.c), no wider than `widest`. */
void search_weigh(struct search *search, double price, int widest);
enum { SEARCH_PRICES = 12, SEARCH_RULES = 12 };
extern const double search_prices[SEARCH_PRICES]; /* the most likely ones first */

#endif
