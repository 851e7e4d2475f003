/* SPDX-License-Identifier: Apache-2.0 */
/* See race.h. Rules, in the order in which they act on a contender:
 *   - while RACE_FAIR rounds of all are not affordable, the worst leave (before anything ran: the least promising),
 *     until two are left: these run as long as there is time, since two rounds choose better than none;
 *   - predictions rank; of how long rounds take they say only whether a first one fits. That there is no time for more
 *     is said of rounds that ran;
 *   - rounds go to and fro: what runs first, on caches that others left, is not the same one every time;
 *   - who is clearly slower than the leader leaves;
 *   - a contender takes the lead from a simpler one only if it is to be expected to be faster by more than the margin,
 *     its median gain being trusted the less the more its rounds differ. */
#include "engine/race.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STABLE_ROUNDS = 6 };

static const double USUAL = 0.05; /* how much settings that are worth a race differ */

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

/* Median over the common rounds of a's time over b's, and how uncertain it is. */
struct ratio {
    double median, doubt;
};
static struct ratio compare(const struct race *race, int a, int b)
{
    const struct racer *x = &race->racer[a], *y = &race->racer[b];
    double sorted[RACE_ROUNDS];
    int count = x->rounds < y->rounds ? x->rounds : y->rounds;
    if (count == 0)
        return (struct ratio){1, INFINITY};
    for (int i = 0; i < count; i++)
        sorted[i] = x->ns[i] / y->ns[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    double between = quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25);
    return (struct ratio){quantile(sorted, count, 0.5), between / sqrt(count)};
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
        return left > 0;
    return cost_ns(race, race->rounds ? RACE_FEWEST : 1) <= longer;
}

/* --- comparison --- */

/* The expected gain, given what was measured and that settings usually differ by USUAL. */
static bool beats(const struct race *race, int a, int b)
{
    struct ratio r = compare(race, a, b);
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

/* The first round may have met cold caches, and of few little is certain: only who takes much longer leaves. */
static void drop_slow(struct race *race)
{
    const double early[RACE_FAIR] = {INFINITY, INFINITY, 0.5, 0.3, 0.2};
    double margin = race->rounds < RACE_FAIR ? early[race->rounds] : 2 * margin_of(race);
    for (int i = 0; i < race->count; i++) {
        struct ratio r = compare(race, i, race->winner);
        if (!race->racer[i].out && i != race->winner && r.median - r.doubt > 1 + margin)
            race->racer[i].out = true;
    }
}

/* Nobody may well be faster than the leader. */
static bool settled(const struct race *race)
{
    for (int i = 0; i < race->count; i++) {
        struct ratio r = compare(race, i, race->winner);
        if (!race->racer[i].out && i != race->winner && r.median - r.doubt < 1 - margin_of(race))
            return false;
    }
    return true;
}

static bool goes_on(const struct race *race, int stable)
{
    if (race_left(race) == 1)
        return race->rounds <= 2; /* for its own median */
    return race->rounds < RACE_FEWEST || (race->rounds < RACE_ROUNDS && (stable < STABLE_ROUNDS || !settled(race)));
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
    race->winner = race->rounds = 0;
    for (int stable = 0; goes_on(race, stable) && fit(race);) {
        TRY(one_round(race));
        int before = race->winner;
        race->winner = leader(race);
        stable = race->winner == before ? stable + 1 : 0;
        drop_slow(race);
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
