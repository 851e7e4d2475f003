/* SPDX-License-Identifier: Apache-2.0 */
/* See contest.h. A disturbance makes a run slower, never faster: while there are few rounds, who is behind is told by
 * the least of its times; later by the median of ratios to one and the same entrant. */
#include "contest.h"

#include <stdlib.h>

enum { FEWEST = 5, FEWEST_LONG = 3, STABLE = 8, FINALISTS = 6, FINALISTS_LONG = 3, MOST_ROUNDS = 200, MOST_TURNS = 40 };

static const double FAR = 1.5; /* behind the best, after one run of another policy */
static const double BEHIND[2][FEWEST - 1] = {{2.5, 1.5, 1.25, 1.15},
                                             {1.3, 1.2, 1.15, 1.1}}; /* least time over the best's, after
                                                    one run, two, ...: of short steps, of long ones */
static const double BEHIND_RATIO = 1.05; /* median ratio, from FEWEST rounds on */

graphi_status contest_add(struct bench *bench, const struct network *network, struct contest *s, const char *id,
                          const graphi_setting *setting, int *at)
{
    graphi_plan_info info;
    if (s->count == s->room) {
        int room = s->room ? 2 * s->room : 64;
        struct entrant *more = realloc(s->entrant, (size_t)room * sizeof *more);
        if (!more)
            return report_error(GRAPHI_MEMORY, id, "found no memory for settings, expected some");
        s->entrant = more;
        s->room = room;
    }
    struct entrant *e = &s->entrant[s->count];
    *e = (struct entrant){.asked = *setting, .stand = -1};
    graphi_status status = contender_beside(bench, network, id, setting, s->count ? &s->entrant[0].c : NULL, &e->c);
    if (status == GRAPHI_OK) {
        graphi_plan_get_info(e->c.plan, &info);
        e->hash = info.hash;
        for (*at = 0; s->entrant[*at].hash != e->hash; ++*at)
            ;
    }
    if (status == GRAPHI_OK && *at == s->count)
        s->count++;
    else
        contender_close(&e->c);
    return status;
}

void contest_close(struct contest *s)
{
    for (int i = s->count - 1; i >= 0; i--) /* the first has the memory */
        contender_close(&s->entrant[i].c);
    free(s->entrant);
    *s = (struct contest){0};
}

double contest_ratio(const struct contest *s, int a, int b)
{
    const struct entrant *x = &s->entrant[a], *y = &s->entrant[b];
    int count = x->rounds < y->rounds ? x->rounds : y->rounds;
    return count ? result_paired(x->c.ms, y->c.ms, count) : 0;
}

static graphi_status run_once(struct contest *s, int i)
{
    struct entrant *e = &s->entrant[i];
    if (report_interrupted())
        return GRAPHI_INTERRUPTED;
    graphi_status status = contender_execute(&e->c, &e->c.ms[e->rounds]);
    if (status != GRAPHI_OK)
        return status;
    double ms = e->c.ms[e->rounds++];
    e->least = e->rounds == 1 || ms < e->least ? ms : e->least;
    return GRAPHI_OK;
}

static double least_of_all(const struct contest *s)
{
    double least = 0;
    for (int i = 0; i < s->count; i++)
        if (s->entrant[i].rounds && (least == 0 || s->entrant[i].least < least))
            least = s->entrant[i].least;
    return least;
}

/* The first execution of all touches the memory, the first of each its scheduler's. Once the time is over, what shares
 * its executors with a setting that is far behind is taken to be behind as well. */
static graphi_status first_round(struct bench *bench, const char *title, struct contest *s, double begin,
                                 double seconds)
{
    double ms;
    graphi_status status = contender_execute(&s->entrant[0].c, &ms);
    for (int i = 0; i < s->count && status == GRAPHI_OK; i++) {
        struct entrant *e = &s->entrant[i];
        double spent = report_seconds() - begin;
        const struct entrant *stand = e->stand >= 0 && !e->keep ? &s->entrant[e->stand] : NULL;
        bool behind = stand && stand->rounds && stand->least > FAR * least_of_all(s);
        report_progress(bench->options.quiet, "%s: setting %d of %d, %.0f of %.0f s", title, i + 1, s->count, spent,
                        seconds);
        e->out = behind && spent > seconds;
        if (!behind && ms < BENCH_LONG_MS)
            status = contender_execute(&e->c, &ms);
        if (!e->out && status == GRAPHI_OK)
            status = run_once(s, i);
    }
    return status;
}

/* How far behind, comparable between entrants after the same rounds. */
static double lag(const struct contest *s, int i, int rounds)
{
    return rounds < FEWEST ? s->entrant[i].least : contest_ratio(s, i, s->against);
}

static int find_best(const struct contest *s, int rounds)
{
    int best = s->against;
    for (int i = 0; i < s->count; i++)
        if (!s->entrant[i].out && lag(s, i, rounds) < lag(s, best, rounds))
            best = i;
    return best;
}

static void drop(struct contest *s, int rounds, bool hurry)
{
    double best = lag(s, find_best(s, rounds), rounds);
    double most = best * (rounds < FEWEST ? BEHIND[least_of_all(s) > BENCH_LONG_MS][rounds - 1] : BEHIND_RATIO);
    int finalists = least_of_all(s) > BENCH_LONG_MS ? FINALISTS_LONG : FINALISTS;
    for (int i = 0; i < s->count; i++) {
        int faster = 0;
        for (int k = 0; hurry && k < s->count; k++)
            faster += !s->entrant[k].out && lag(s, k, rounds) < lag(s, i, rounds);
        s->entrant[i].out |= !s->entrant[i].keep && (lag(s, i, rounds) > most || faster >= finalists);
    }
}

static int left(const struct contest *s)
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        count += !s->entrant[i].out;
    return count;
}

/* Odd rounds run backwards: nobody is always first, or after the same one. */
static graphi_status one_round(struct contest *s, int rounds)
{
    graphi_status status = GRAPHI_OK;
    for (int k = 0; k < s->count && status == GRAPHI_OK; k++) {
        int i = rounds % 2 ? s->count - 1 - k : k;
        if (!s->entrant[i].out)
            status = run_once(s, i);
    }
    return status;
}

graphi_status contest_run(struct bench *bench, const char *title, struct contest *s, double seconds)
{
    double begin = report_seconds(), spent = 0, round = 0;
    int stable = 0, fewest = FEWEST;
    s->entrant[s->against].keep = true;
    s->best = s->against;
    graphi_status status = first_round(bench, title, s, begin, seconds);
    for (int rounds = 1; status == GRAPHI_OK; rounds++) {
        spent = report_seconds() - begin;
        drop(s, rounds, spent > seconds);
        int best = find_best(s, rounds);
        stable = best == s->best ? stable + 1 : 0;
        s->best = best;
        if (rounds >= fewest && (spent > seconds || stable >= STABLE || rounds == MOST_ROUNDS))
            break;
        report_progress(bench->options.quiet, "%s: round %d, %d settings left, %.0f of %.0f s", title, rounds + 1,
                        left(s), spent, seconds);
        round = report_seconds();
        status = one_round(s, rounds);
        fewest = report_seconds() - round > seconds / FEWEST ? FEWEST_LONG : FEWEST;
    }
    return status;
}

graphi_status contest_duel(struct bench *bench, const char *title, struct contest *s, int a, int b, double seconds,
                           double *ratio, int *turns)
{
    double of[MOST_TURNS], begin = report_seconds(), spent = 0, x, y;
    graphi_status status = GRAPHI_OK;
    int fewest = FEWEST;
    for (*turns = 0; *turns < MOST_TURNS && (*turns < fewest || spent < seconds); ++*turns) {
        struct contender *first = &s->entrant[*turns % 2 ? b : a].c, *second = &s->entrant[*turns % 2 ? a : b].c;
        report_progress(bench->options.quiet, "%s: the choice against the best, turn %d", title, *turns + 1);
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        if ((status = contender_execute(first, &x)) != GRAPHI_OK ||
            (status = contender_execute(second, &y)) != GRAPHI_OK)
            return status;
        of[*turns] = *turns % 2 ? y / x : x / y;
        spent = report_seconds() - begin;
        fewest = spent > seconds ? FEWEST_LONG : FEWEST;
    }
    *ratio = result_median(of, *turns);
    return GRAPHI_OK;
}
