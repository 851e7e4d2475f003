/* SPDX-License-Identifier: Apache-2.0 */
/* See race.h. Rules, in the order in which they act on a contender:
 *   - while RACE_FAIR rounds of all are not affordable, the worst leave (before anything ran: the least promising),
 *     until two are left: these run as long as there is time, since two rounds choose better than none;
 *   - predictions rank; of how long rounds take they say only whether a first one fits. That there is no time for more
 *     is said of rounds that ran;
 *   - rounds go to and fro: what runs first, on caches that others left, is not the same one every time;
 *   - a contender takes the lead from a simpler one only if it is to be expected to be faster by more than the margin,
 *     its median gain being trusted the less the more its rounds differ;
 *   - who surely will not lead any more leaves: a simpler one than the leader that is slower by more than the margin,
 *     another that is not faster by it;
 *   - where somebody may still be faster by RACE_MARGIN when the time is over, rounds go on, if they may (`longer`),
 *     but none is begun that will not fit. */
#include "engine/tune/race.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STABLE_ROUNDS = 6, USUAL_ROUNDS = 2 };

static const double USUAL = 0.05; /* how much settings that are worth a race differ */
static const double DIFFER = 0.05; /* quartiles of ratios of rounds; counts as USUAL_ROUNDS of them */
static const double SURE = 2;      /* standard errors */

static double margin_of(const struct race *race)
{
    return race->margin > 0 ? race->margin : RACE_MARGIN;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Between the values next to it. */
static double quantile(const double *sorted, int count, double part)
{
    double at = part * (count - 1);
    int below = (int)at, above = below + (below < count - 1);
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

double race_middle(const double *values, int count)
{
    double sorted[RACE_ROUNDS];
    if (count < 1)
        return 0;
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return quantile(sorted, count, 0.5);
}

double race_median(const struct race *race, int racer)
{
    return race_middle(race->racer[racer].ns, race->racer[racer].rounds);
}

/* The distance of the quartiles over the root of their number is the standard error of a median. Of few rounds they lie
 * too close, and may by chance lie on each other. */
struct race_ratio race_compare(const struct race *race, int a, int b)
{
    const struct racer *x = &race->racer[a], *y = &race->racer[b];
    double sorted[RACE_ROUNDS];
    const int count = x->rounds < y->rounds ? x->rounds : y->rounds;
    if (count == 0)
        return (struct race_ratio){1, INFINITY};
    for (int i = 0; i < count; i++)
        sorted[i] = x->ns[i] / y->ns[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    const double between = (quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25)) * count / fmax(1, count - 1);
    const double all = USUAL_ROUNDS * DIFFER * DIFFER + (count - 1) * between * between;
    return (struct race_ratio){quantile(sorted, count, 0.5), sqrt(all / (USUAL_ROUNDS + count - 1) / count)};
}

int race_left(const struct race *race)
{
    int left = 0;
    for (int i = 0; i < race->count; i++)
        left += !race->racer[i].out;
    return left;
}

/* --- time --- */

/* A disturbance makes a run slower, never faster. */
static double least(const struct racer *r)
{
    double ns = r->rounds ? r->ns[0] : r->predicted_ns;
    for (int i = 1; i < r->rounds; i++)
        ns = fmin(ns, r->ns[i]);
    return ns;
}

/* What the rounds up to so many will take. */
static double cost_ns(const struct race *race, int rounds)
{
    double all = 0;
    for (int i = 0; i < race->count; i++)
        if (!race->racer[i].out)
            all += least(&race->racer[i]);
    return (rounds - race->rounds) * all;
}

/* Neither the incumbent nor the leader. */
static int worst(const struct race *race)
{
    int found = -1;
    for (int i = 1; i < race->count; i++) {
        const struct racer *r = &race->racer[i];
        if (r->out || i == race->winner)
            continue;
        if (found < 0 || race->rounds == 0 || least(r) > least(&race->racer[found]))
            found = i;
    }
    return found;
}

/* After its time. */
static bool goes_beyond(struct race *race, double left)
{
    const double most = left + race->longer * race->time_ns;
    const bool more = race_may_gain(race) > RACE_MARGIN && cost_ns(race, race->rounds + 1) <= most;
    race->beyond += more;
    return more;
}

/* False: no time for another round, or for the fewest of them. Begun, a race may take a tenth longer than its time,
 * rather than be in vain for a burst in one of its last runs; the last round begins within it and may end after it. */
static bool fit(struct race *race)
{
    double left = race->left_ns(race->context), longer = left;
    if (race->rounds == 0)
        race->time_ns = left;
    else
        longer += race->time_ns / 10;
    while (race->rounds < RACE_FAIR && race_left(race) > 2 && cost_ns(race, RACE_FAIR) > longer)
        race->racer[worst(race)].out = true;
    if (race->rounds >= RACE_FEWEST)
        return left > 0 || goes_beyond(race, left);
    return cost_ns(race, race->rounds ? RACE_FEWEST : 1) <= longer;
}

/* --- comparison --- */

/* The expected gain, given what was measured and that settings usually differ by USUAL. */
static bool beats(const struct race *race, int a, int b)
{
    const struct race_ratio r = race_compare(race, a, b);
    return (1 - r.median) * USUAL * USUAL > margin_of(race) * (USUAL * USUAL + r.doubt * r.doubt);
}

/* From the simplest on: whoever beats the one before. */
static int leader(const struct race *race)
{
    int best = -1;
    for (int last = -1;;) {
        int next = -1;
        for (int i = 0; i < race->count; i++) {
            const struct racer *r = &race->racer[i];
            if (!r->out && r->order > last && (next < 0 || r->order < race->racer[next].order))
                next = i;
        }
        if (next < 0)
            return best;
        last = race->racer[next].order;
        if (best < 0 || beats(race, next, best))
            best = next;
    }
}

/* Its time over the leader's from which on it will not lead. */
static double hopeless(const struct race *race, int racer)
{
    const bool simpler = race->racer[racer].order < race->racer[race->winner].order;
    return simpler ? 1 + margin_of(race) : 1 - margin_of(race);
}

static bool challenges(const struct race *race, int racer)
{
    return !race->racer[racer].out && racer != race->winner;
}

static void drop_hopeless(struct race *race)
{
    for (int i = 0; i < race->count && race->rounds >= RACE_FEWEST; i++) {
        const struct race_ratio r = race_compare(race, i, race->winner);
        race->racer[i].out |= challenges(race, i) && r.median - SURE * r.doubt > hopeless(race, i);
    }
}

/* The part by which one of those left may be faster than the leader, so many standard errors taken off its time. */
static double may_gain(const struct race *race, double errors)
{
    double most = 0;
    for (int i = 0; i < race->count; i++) {
        const struct race_ratio r = race_compare(race, i, race->winner);
        if (challenges(race, i))
            most = fmax(most, 1 - (r.median - errors * r.doubt));
    }
    return most;
}

double race_may_gain(const struct race *race)
{
    return may_gain(race, 1);
}

static bool goes_on(const struct race *race, int stable)
{
    if (race_left(race) == 1)
        return race->rounds <= 2; /* for its own median */
    return race->rounds < RACE_FEWEST ||
           (race->rounds < RACE_ROUNDS && (stable < STABLE_ROUNDS || may_gain(race, SURE) > margin_of(race)));
}

/* All who are left run once; a round that an error cuts short counts for nobody. */
static graphi_status one_round(struct race *race)
{
    double ns[RACE_FIELD];
    for (int k = 0; k < race->count; k++) {
        int i = race->rounds % 2 ? race->count - 1 - k : k;
        if (!race->racer[i].out)
            TRY(race->run(race->context, i, &ns[i]));
    }
    for (int i = 0; i < race->count; i++)
        if (!race->racer[i].out)
            race->racer[i].ns[race->racer[i].rounds++] = ns[i];
    race->rounds++;
    return GRAPHI_OK;
}

graphi_status race_run(struct race *race)
{
    race->winner = race->rounds = race->beyond = 0;
    for (int stable = 0; goes_on(race, stable) && fit(race);) {
        TRY(one_round(race));
        int before = race->winner;
        race->winner = leader(race);
        stable = race->winner == before ? stable + 1 : 0;
        drop_hopeless(race);
        if (race->rested)
            race->rested(race->context, race);
    }
    race->decided = race->rounds >= RACE_FEWEST || race_left(race) == 1;
    if (!race->decided)
        race->winner = 0;
    if (race->racer[race->winner].rounds == 0) { /* its time is told all the same */
        TRY(race->run(race->context, race->winner, &race->racer[race->winner].ns[0]));
        race->racer[race->winner].rounds = 1;
    }
    return GRAPHI_OK;
}
