/* SPDX-License-Identifier: Apache-2.0 */
/* The race between settings on planted durations, and what the profiler considers on machines of many cores. No wall
 * time. */
#include "base/random.h"
#include "engine/choose/setting.h"
#include "engine/tune/candidates.h"
#include "engine/tune/race.h"
#include "graphi/models.h"
#include "graphi/ops.h"
#include "machine/machine.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* --- races of planted durations --- */

struct planted {
    struct race race;
    double ns[RACE_FIELD]; /* undisturbed */
    double predicted[2];   /* of the first two, over undisturbed; 0: 1 / 1.08, as of all others */
    double noise, bursts;  /* relative; part of the runs that take up to twice as long */
    double drift;          /* for a few runs on end the machine is this much slower, or not */
    double cold;           /* the first run of a round is this much slower */
    double left, longer;
    int rounds;            /* that have begun */
    uint64_t seed, draws, runs;
};

static double uniform(struct planted *p)
{
    return random_unit(random_philox(p->seed, 1, p->draws++).v[0]);
}

static graphi_status run_planted(void *context, int racer, double *ns)
{
    struct planted *p = context;
    *ns = p->ns[racer] * (1 + p->noise * (uniform(p) - 0.5));
    if (uniform(p) < p->bursts)
        *ns *= 1 + uniform(p);
    *ns *= 1 + p->drift * (double)(random_philox(p->seed, 2, p->runs++ / 7).v[0] & 1);
    if (p->rounds == p->race.rounds) {
        *ns *= 1 + p->cold;
        p->rounds++;
    }
    p->left -= *ns;
    return GRAPHI_OK;
}

static double left_planted(void *context)
{
    return ((struct planted *)context)->left;
}

/* Contenders in the order of their simplicity, 8 % slower than predicted. */
static void race_planted(struct planted *p, int count, const double *ns, struct planted how)
{
    *p = how;
    p->race = (struct race){
        .count = count, .longer = how.longer, .run = run_planted, .left_ns = left_planted, .context = p};
    for (int i = 0; i < count; i++) {
        p->ns[i] = ns[i];
        p->race.racer[i].order = i;
        p->race.racer[i].predicted_ns = ns[i] * (i < 2 && how.predicted[i] > 0 ? how.predicted[i] : 1 / 1.08);
    }
    assert_int_equal(race_run(&p->race), GRAPHI_OK);
}

/* Races of 300 seeds that each contender won; all of them decided. */
static void wins_of(int count, const double *ns, struct planted how, int *wins)
{
    memset(wins, 0, RACE_FIELD * sizeof *wins);
    for (how.seed = 0; how.seed < 300; how.seed++) {
        struct planted p;
        race_planted(&p, count, ns, how);
        assert_true(p.race.decided && p.race.racer[p.race.winner].rounds >= RACE_FEWEST);
        wins[p.race.winner]++;
    }
}

/* Two or three runs of each decided: a burst in one of them, or a slower minute, changed the choice. */
static void disturbances_do_not_change_the_choice(void **state)
{
    static const double ns[] = {106, 100, 104, 112, 180};
    int wins[RACE_FIELD];
    wins_of(5, ns, (struct planted){.noise = 0.02, .bursts = 0.2, .left = 1e5}, wins);
    assert_true(wins[1] >= 280 && wins[3] + wins[4] == 0);
    wins_of(5, ns, (struct planted){.noise = 0.02, .bursts = 0.1, .drift = 0.4, .left = 1e5}, wins);
    assert_true(wins[1] >= 280 && wins[3] + wins[4] <= 1);
}

/* Of settings that differ less than their runs do the choice was arbitrary, and with it the time lost to waiting. */
static void ties_go_to_the_simpler(void **state)
{
    static const double ns[] = {100, 100, 99.5, 100}, within[] = {100, 99.3};
    int wins[RACE_FIELD];
    wins_of(4, ns, (struct planted){.noise = 0.03, .left = 1e5}, wins);
    assert_true(wins[0] >= 240);
    wins_of(2, within, (struct planted){.noise = 0.01, .left = 1e5}, wins);
    assert_true(wins[0] >= 290);
}

/* A step of which the time allows twelve runs: all contenders got two of them, and noise chose. */
static void little_time_is_for_few(void **state)
{
    static const double ns[] = {100, 90, 101, 102, 103, 104};
    int right = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct planted p;
        race_planted(&p, 6, ns, (struct planted){.noise = 0.02, .left = 1200, .seed = seed});
        assert_true(p.race.decided);
        assert_true(p.left > -110);
        assert_true(p.race.racer[0].rounds >= RACE_FEWEST && p.race.racer[5].rounds == 0);
        right += p.race.winner == 1;
    }
    assert_int_equal(right, 100);
}

/* What cannot be measured there and back was measured once, and called the profiler's choice. */
static void no_time_leaves_the_incumbent(void **state)
{
    static const double ns[] = {120, 100, 100};
    struct planted p;
    race_planted(&p, 3, ns, (struct planted){.noise = 0.02, .left = 350, .seed = 1});
    assert_false(p.race.decided);
    assert_int_equal(p.race.winner, 0);
    assert_int_equal(p.race.racer[0].rounds, 1);
    race_planted(&p, 3, ns, (struct planted){.noise = 0.02, .left = 150, .seed = 1});
    assert_false(p.race.decided);
    assert_int_equal(p.race.racer[0].rounds + p.race.racer[1].rounds, 1); /* not even one round of two is begun */
}

/* PhasedLSTM medium: 12 seconds less what the operations took left no five rounds of two, and by predictions that a
 * disturbance had doubled not even three: the slower setting stayed without a race. */
static void a_short_race_chooses_better_than_none(void **state)
{
    static const double ns[] = {498, 475, 480};
    int wins[RACE_FIELD] = {0};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct planted p;
        race_planted(
            &p, 3, ns,
            (struct planted){.predicted = {1.8, 1.5}, .noise = 0.02, .bursts = 0.02, .left = 3600, .seed = seed});
        assert_true(p.race.decided && p.race.racer[2].rounds == 0);
        assert_in_range(p.race.racer[1].rounds, RACE_FEWEST, RACE_FAIR - 1);
        wins[p.race.winner]++;
    }
    assert_true(wins[1] >= 285);
}

/* Whoever ran first in every round, after parameters had been put back, lost against settings that are slower. */
static void nobody_is_always_first(void **state)
{
    static const double ns[] = {97, 100, 101};
    int wins[RACE_FIELD];
    wins_of(3, ns, (struct planted){.noise = 0.02, .cold = 0.08, .left = 1e5}, wins);
    assert_true(wins[0] >= 290);
}

/* Of many contenders each had two or three runs of noise, though the time allowed five of two. */
static void finalists_run_five_times(void **state)
{
    static const double ns[] = {100, 97, 94, 99, 140};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct planted p;
        int judged = 0;
        race_planted(&p, 5, ns,
                     (struct planted){.noise = 0.1, .bursts = 0.1, .seed = seed, .left = 1400 + 10.0 * (double)seed});
        assert_true(p.race.decided);
        for (int i = 0; i < 5; i++)
            judged += p.race.racer[i].rounds >= RACE_FEWEST;
        assert_true(judged >= 2 && p.race.racer[p.race.winner].rounds >= RACE_FEWEST);
    }
}

/* Part of the best's time that the choice takes longer, on average over seeds. */
static double regret_of(int count, const double *ns, struct planted how)
{
    double regret = 0, best = ns[0];
    for (int i = 1; i < count; i++)
        best = fmin(best, ns[i]);
    for (how.seed = 0; how.seed < 300; how.seed++) {
        struct planted p;
        race_planted(&p, count, ns, how);
        regret += (ns[p.race.winner] / best - 1) / 300;
    }
    return regret;
}

/* A gain of 7 % that twenty noisy runs showed was a tie, because it was not certain: the simpler setting stayed. */
static void an_uncertain_gain_is_taken(void **state)
{
    static const double ns[] = {100, 93, 99};
    assert_true(regret_of(3, ns, (struct planted){.noise = 0.15, .bursts = 0.1, .left = 2000}) < 0.013);
    assert_true(regret_of(3, ns, (struct planted){.noise = 0.02, .bursts = 0.1, .left = 2000}) < 0.004);
    assert_true(regret_of(3, ns, (struct planted){.noise = 0.15, .drift = 0.5, .left = 6000}) < 0.002);
    double none = ns[0] / ns[1] - 1;
    assert_true(regret_of(2, ns, (struct planted){.noise = 0.05, .bursts = 0.1, .left = 600}) < 0.5 * none);
}

/* Races ended after six rounds in which nobody had certainly gained: one of three gains of 3 % was left, however much
 * time there was. And a step of which the time allows four runs was not raced at all. */
static void time_is_used_where_it_tells(void **state)
{
    static const double ns[] = {103, 100};
    assert_true(regret_of(2, ns, (struct planted){.noise = 0.1, .bursts = 0.1, .drift = 0.1, .left = 1e4}) < 0.007);
    assert_true(regret_of(2, ns, (struct planted){.noise = 0.04, .bursts = 0.1, .left = 390}) < 0.02);
}

/* Predicted as equal, twice as slow: it must not cost the others their rounds, nor may a slow incumbent stay. */
static void the_slow_leave_early(void **state)
{
    static const double slow_second[] = {100, 200}, slow_first[] = {200, 100, 101};
    struct planted p;
    race_planted(&p, 2, slow_second, (struct planted){.noise = 0.02, .left = 1e5, .seed = 1});
    assert_true(p.race.decided && p.race.winner == 0 && p.race.racer[1].rounds == 2);
    race_planted(&p, 3, slow_first, (struct planted){.noise = 0.02, .left = 1e5, .seed = 1});
    assert_true(p.race.decided && p.race.winner == 1 && p.race.racer[0].rounds == 2);
}

/* The machine is three times slower from the second round on for one, from the third for the other. */
static void rounds_are_compared_in_pairs(void **state)
{
    struct race race = {.racer = {{.ns = {90, 270, 270}, .rounds = 3}, {.ns = {100, 100, 300}, .rounds = 3}}};
    assert_true(race_median(&race, 1) < race_median(&race, 0)); /* what medians alone say */
    assert_true(fabs(race_compare(&race, 0, 1).median - 0.9) < 1e-12);
    assert_true(fabs(race_compare(&race, 1, 0).median - 1 / 0.9) < 1e-12);
}

/* Two rounds that agree by chance were certainty, and a gain of 2 % in them took the lead. */
static void two_rounds_are_never_certain(void **state)
{
    struct race race = {.racer = {{.ns = {100, 100, 100, 100}, .rounds = 2}, {.ns = {98, 98, 98, 98}, .rounds = 2}}};
    const double two = race_compare(&race, 1, 0).doubt;
    assert_true(two > 0.02 && two < 0.04);
    race.racer[0].rounds = race.racer[1].rounds = 4;
    assert_true(race_compare(&race, 1, 0).doubt < 0.6 * two);
    race.racer[1].ns[2] = 130; /* what differs is doubted more */
    assert_true(race_compare(&race, 1, 0).doubt > two);
}

/* Settings that were 10 to 30 % behind ran five times, as often as those that the choice was between. */
static void who_is_behind_costs_few_rounds(void **state)
{
    static const double ns[] = {100, 130, 112, 110, 96};
    int runs = 0, wins = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct planted p;
        race_planted(&p, 5, ns, (struct planted){.noise = 0.02, .left = 5000, .seed = seed});
        assert_int_equal(p.race.racer[1].rounds, RACE_FEWEST);
        runs += p.race.racer[2].rounds + p.race.racer[3].rounds;
        wins += p.race.winner == 4;
    }
    assert_true(runs < 100 * 2 * 3 && wins >= 99);
}

/* The second is faster by 3.5 %, by half a per cent, slower by 2.5, and so on. */
static graphi_status run_in_turn(void *context, int racer, double *ns)
{
    static const double second[] = {102.5, 96.5, 99.5};
    const struct planted *p = context;
    *ns = racer ? second[p->race.rounds % 3] : 100;
    return GRAPHI_OK;
}

/* Six rounds that named the same leader ended a race in which one standard error more would have let the other win,
 * with time left to find out. */
static void doubt_goes_on_while_there_is_time(void **state)
{
    struct planted p = {.left = 1e6};
    p.race = (struct race){.count = 2, .run = run_in_turn, .left_ns = left_planted, .context = &p};
    for (int i = 0; i < 2; i++)
        p.race.racer[i] = (struct racer){.order = i, .predicted_ns = 0.1};
    assert_int_equal(race_run(&p.race), GRAPHI_OK);
    assert_int_equal(p.race.rounds, RACE_ROUNDS);
    assert_int_equal(p.race.winner, 0);
}

/* LSTM medium: of a handful of rounds none told which of two settings was 3.5 % faster, and the choice was the first
 * that came. Time beyond what was asked for is taken only where it may tell, and never more than as much again. */
static void what_has_not_told_goes_on(void **state)
{
    static const double near[] = {103.5, 100}, alike[] = {100, 100}, apart[] = {120, 100};
    const struct planted how = {.noise = 0.1, .bursts = 0.1, .left = 1400}, longer = {
        .noise = 0.1, .bursts = 0.1, .left = 1400, .longer = 1};
    int beyond = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct planted p, quiet = {.noise = 0.005, .left = 1350, .longer = 1, .seed = seed}, noisy = longer;
        noisy.seed = seed;
        race_planted(&p, 2, near, noisy);
        beyond += p.race.beyond;
        assert_true(p.race.beyond ? p.left > -1400 - 310 : p.left > -310); /* three bursts in the last round */
        race_planted(&p, 2, alike, quiet);
        assert_true(p.race.beyond == 0 && race_may_gain(&p.race) <= RACE_MARGIN);
        race_planted(&p, 2, apart, quiet);
        assert_true(p.race.beyond == 0 && p.race.winner == 1 && p.left > 0);
    }
    assert_true(beyond > 100);
    assert_true(regret_of(2, near, longer) < 0.8 * regret_of(2, near, how));
}

/* --- splits --- */

/* Only powers of two were tried: never 3x2 on six cores, 6x4 on 24, nor the paper's 6x11 on 68. */
static void splits_are_those_that_fill_the_cores(void **state)
{
    static const int splits[][20] = {{1, 1},
                                     {2, 1, 2},
                                     {6, 1, 2, 3, 4, 6},
                                     {7, 1, 2, 3, 4, 7},
                                     {12, 1, 2, 3, 4, 6, 8, 12},
                                     {24, 1, 2, 3, 4, 6, 8, 12, 16, 24},
                                     {68, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 22, 32, 34, 64, 68},
                                     {100, 1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        int cores = splits[i][0], executors = 0;
        for (int k = 1; splits[i][k]; k++)
            assert_int_equal(executors = graphi_split_next(cores, executors), splits[i][k]);
        assert_int_equal(graphi_split_next(cores, executors), 0);
    }
    assert_true(graphi_split_next(0, 0) == 0 && graphi_split_next(-4, -8) == 0 && graphi_split_next(6, -1) == 0);
    assert_true(graphi_split_next(6, INT_MAX) == 0 && graphi_split_next(INT_MAX, INT_MAX) == 0);
}

/* --- candidates on described machines --- */

static int count_of(const struct candidates *c, graphi_policy policy)
{
    int count = 0;
    for (size_t i = 0; i < c->list.count; i++)
        count += c->list.data[i].plan->setting.policy == policy;
    return count;
}

static bool has_split(const struct candidates *c, graphi_policy policy, int executors, int width)
{
    bool has = false;
    for (size_t i = 0; i < c->list.count; i++) {
        const graphi_decision *s = &c->list.data[i].plan->setting;
        has |= s->policy == policy && s->executors == executors && s->width == width;
    }
    return has;
}

/* PathNet on the first cores of the Xeon Phi. */
struct described {
    graphi_machine *machine;
    graphi_graph *graph;
    graphi_plan *plan;
};

static void described_open(int cores, int batch, struct described *d)
{
    assert_int_equal(graphi_machine_load("machines/xeon-phi-7250.json", cores, &d->machine), GRAPHI_OK);
    graphi_model_options options = {.size = "small", .batch = batch};
    assert_int_equal(graphi_model_create("pathnet", &options, &d->graph), GRAPHI_OK);
    assert_int_equal(graphi_plan_create(d->graph, d->machine, NULL, &d->plan), GRAPHI_OK);
}

static void described_close(struct described *d)
{
    graphi_plan_destroy(d->plan);
    graphi_graph_destroy(d->graph);
    graphi_machine_destroy(d->machine);
}

static void candidates_checked(struct described *d, int64_t deadline, void (*check)(const struct candidates *))
{
    struct candidates c = {.base = d->plan, .curves = d->plan->curves, .deadline = deadline};
    assert_int_equal(candidates_add(&c, true), GRAPHI_OK);
    check(&c);
    candidates_free(&c);
    described_close(d);
}

static void candidates_of(int cores, int64_t deadline, void (*check)(const struct candidates *))
{
    struct described d;
    described_open(cores, 2, &d);
    candidates_checked(&d, deadline, check);
}

static void all_kinds(const struct candidates *c)
{
    assert_true(c->list.count > 64); /* where the list once ended, before the last policies */
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        assert_int_equal(count_of(c, policy) > 0, policy != GRAPHI_POLICY_RANDOM && policy != GRAPHI_POLICY_NAIVE);
}

/* Policies that make teams of their own passed for one executor, whatever its width, and won ties. */
static void one_executor_is_simplest(const struct candidates *c)
{
    int sequential = -1;
    for (int i = 0; i < (int)c->list.count; i++)
        sequential =
            sequential < 0 && c->list.data[i].plan->setting.policy == GRAPHI_POLICY_SEQUENTIAL ? i : sequential;
    for (int i = 0; i < (int)c->list.count; i++) {
        graphi_policy policy = c->list.data[i].plan->setting.policy;
        if (policy == GRAPHI_POLICY_MALLEABLE || policy == GRAPHI_POLICY_ASYMMETRIC || policy == GRAPHI_POLICY_S1)
            assert_true(candidates_simpler(c, sequential, i) && !candidates_simpler(c, i, sequential));
    }
}

/* The incumbent is in the field, nobody is twice, and who is predicted slow is not. */
static void a_sensible_field(const struct candidates *c)
{
    int field[RACE_FIELD], count = candidates_field(c, field, RACE_FIELD);
    all_kinds(c);
    one_executor_is_simplest(c);
    assert_int_equal(field[0], 0);
    double best = INFINITY, promised = INFINITY;
    for (size_t i = 0; i < c->list.count; i++)
        if (!c->list.data[i].plan->setting.joins)
            best = fmin(best, c->list.data[i].plan->predicted_ns);
    for (int i = 0; i < count; i++) {
        double ns = c->list.data[field[i]].plan->predicted_ns;
        promised = fmin(promised, ns);
        assert_true(i == 0 || ns <= 1.5 * best);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(field[i], field[k]);
    }
    assert_true(promised <= 1.005 * best);
}

static void the_first_ones(const struct candidates *c)
{
    assert_in_range(c->list.count, 4, 5);
    assert_int_equal(count_of(c, GRAPHI_POLICY_SEQUENTIAL), 2);
    assert_in_range(count_of(c, GRAPHI_POLICY_MALLEABLE), 1, 2);
}

/* Predictions do not tell what joining takes over from a disturbed executor: it is in the race beside the same
 * executors without, which win ties. */
static void joining_is_in_the_race(const struct candidates *c)
{
    int field[RACE_FIELD], count = candidates_field(c, field, RACE_FIELD), joins = -1, raced = 0;
    for (int i = 0; i < (int)c->list.count; i++) {
        assert_true(!c->list.data[i].plan->setting.joins || joins < 0);
        joins = c->list.data[i].plan->setting.joins ? i : joins;
    }
    assert_true(joins >= 0);
    const graphi_decision *s = &c->list.data[joins].plan->setting;
    assert_true(s->executors == c->base->machine->cores && s->width == 1);
    for (int i = 0; i < (int)c->list.count; i++) {
        const graphi_decision *other = &c->list.data[i].plan->setting;
        if (i != joins && other->policy == s->policy && other->executors == s->executors)
            assert_true(candidates_simpler(c, i, joins) && !candidates_simpler(c, joins, i));
    }
    for (int i = 0; i < count; i++)
        raced += field[i] == joins;
    assert_int_equal(raced, 1);
}

/* On two cores asymmetric teams, FIFO, depths, malleable without a schedule of its own are what critical path first is:
 * rounds went to comparing a setting with itself. */
static void nobody_races_itself(const struct candidates *c)
{
    int field[RACE_FIELD], count = candidates_field(c, field, RACE_FIELD);
    for (int i = 1; i < count; i++)
        for (int k = 1; k < i; k++) {
            const graphi_plan *a = c->list.data[field[i]].plan, *b = c->list.data[field[k]].plan;
            const bool shape = a->setting.executors == b->setting.executors && a->setting.width == b->setting.width;
            assert_true(!shape || a->setting.joins != b->setting.joins || a->predicted_ns != b->predicted_ns);
        }
}

static bool in_field(const int *field, int count, int candidate)
{
    bool in = false;
    for (int i = 0; i < count; i++)
        in |= field[i] == candidate;
    return in;
}

/* What joining gains is predicted less surely than the rest: where that was much, those that nobody joins were cut. */
static void joining_cuts_nobody(const struct candidates *c)
{
    int field[RACE_FIELD], planted[RACE_FIELD], count = candidates_field(c, field, RACE_FIELD);
    for (size_t i = 0; i < c->list.count; i++)
        if (c->list.data[i].plan->setting.joins)
            c->list.data[i].plan->predicted_ns /= 4;
    assert_int_equal(candidates_field(c, planted, RACE_FIELD), count);
    for (int i = 0; i < count; i++)
        assert_true(in_field(planted, count, field[i]));
}

static void others_race_beside_joining(void **state)
{
    candidates_of(2, INT64_MAX, joining_cuts_nobody);
}

/* Predictions that know executors and widths alone took settings of other drivers, depths and policies for one, and
 * none of them was measured. */
static void other_kinds_race(const struct candidates *c)
{
    int field[RACE_FIELD], count = candidates_field(c, field, RACE_FIELD), others = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) {
            const graphi_plan *first = c->list.data[field[k]].plan, *plan = c->list.data[field[i]].plan;
            others += plan->predicted_ns == first->predicted_ns && plan->setting.joins == first->setting.joins;
        }
    assert_true(others > 0);
}

static void what_is_not_simulated_races(void **state)
{
    struct described d;
    assert_int_equal(graphi_machine_load("machines/xeon-phi-7250.json", 2, &d.machine), GRAPHI_OK);
    assert_int_equal(graphi_graph_create(&d.graph), GRAPHI_OK);
    for (int i = 0; i <= MOST_SIMULATED_TASKS; i++)
        graphi_delay(d.graph, 0, NULL, 10000);
    assert_int_equal(graphi_plan_create(d.graph, d.machine, NULL, &d.plan), GRAPHI_OK);
    assert_int_equal(d.plan->compiled->tasks, MOST_SIMULATED_TASKS + 1);
    candidates_checked(&d, INT64_MAX, other_kinds_race);
}

static void messages_of_no_known_cost_race(void **state)
{
    struct described d;
    described_open(2, 2, &d);
    d.machine->wake_ns = d.machine->atomic_ns = d.machine->schedule_ns = 0;
    candidates_checked(&d, INT64_MAX, other_kinds_race);
}

static void executors_that_join_are_weighed(void **state)
{
    candidates_of(2, INT64_MAX, joining_is_in_the_race);
}

static void what_runs_alike_races_once(void **state)
{
    candidates_of(2, INT64_MAX, nobody_races_itself);
}

/* Where joining was ruled out it was weighed all the same, and what was chosen allowed it to whoever tuned next. */
static void never_joining_is_heeded(void **state)
{
    struct described d;
    graphi_plan *plan[2];
    size_t count[2];
    described_open(2, 2, &d);
    for (int never = 0; never < 2; never++) {
        const graphi_setting setting = {.join = never ? GRAPHI_OFF : GRAPHI_DEFAULT};
        assert_int_equal(graphi_plan_with(d.plan, &(graphi_plan_change){.setting = &setting}, &plan[never]), GRAPHI_OK);
        assert_int_equal(plan[never]->setting.join_off, never);
        struct candidates c = {.base = plan[never], .curves = d.plan->curves, .deadline = INT64_MAX};
        assert_int_equal(candidates_add(&c, true), GRAPHI_OK);
        count[never] = c.list.count;
        for (size_t i = 0; never && i < c.list.count; i++)
            assert_true(!c.list.data[i].plan->setting.joins && c.list.data[i].plan->setting.join_off);
        candidates_free(&c);
        graphi_plan_destroy(plan[never]);
    }
    assert_int_equal(count[1] + 1, count[0]);
    described_close(&d);
}

/* With many cores the list ended before the last policies were added. */
static void many_cores_drop_no_kind(void **state)
{
    candidates_of(68, INT64_MAX, a_sensible_field);
}

/* Without it the sequential engine and the malleable policy would be left out where simulations take all the time. */
static void no_time_keeps_the_first_kinds(void **state)
{
    candidates_of(68, 0, the_first_ones);
}

static void three_teams_of_two(const struct candidates *c)
{
    assert_true(has_split(c, GRAPHI_POLICY_CRITICAL_PATH, 3, 2) && has_split(c, GRAPHI_POLICY_CRITICAL_PATH, 2, 3));
    assert_true(has_split(c, GRAPHI_POLICY_ASYMMETRIC, 3, 2));
}

/* What profiling measures on six cores, and what a strategy or a search of widths has to beat there. */
static void six_cores_have_three_teams(void **state)
{
    static const graphi_policy confirmed[] = {GRAPHI_POLICY_S123, GRAPHI_POLICY_MALLEABLE};
    struct described d;
    candidates_of(6, INT64_MAX, three_teams_of_two);
    described_open(6, 2, &d);
    for (int i = 0; i < 2; i++) {
        struct candidates c = {.base = d.plan, .curves = d.plan->curves, .deadline = INT64_MAX};
        const graphi_setting asked = {.policy = confirmed[i], .executors = 6, .width = 1};
        assert_int_equal(candidates_add_asked(&c, &asked), GRAPHI_OK);
        assert_true(has_split(&c, confirmed[i], 3, 2) && has_split(&c, confirmed[i], 2, 3));
        candidates_free(&c);
    }
    described_close(&d);
}

enum { NONE_JOINS = 1, SOME_JOIN = 2 };

/* Whether a setting of six executors was added that do not join, one that do, or both. */
static int joining(const struct described *d, graphi_setting asked, graphi_choice join)
{
    struct candidates c = {.base = d->plan, .curves = d->plan->curves, .deadline = INT64_MAX};
    int found = 0;
    asked.join = join;
    assert_int_equal(candidates_add_asked(&c, &asked), GRAPHI_OK);
    for (size_t i = 0; i < c.list.count; i++) {
        const graphi_decision *s = &c.list.data[i].plan->setting;
        assert_true(!s->joins || (s->uniform && s->width == 1 && s->policy == asked.policy));
        if (s->uniform && s->executors == 6)
            found |= s->joins ? SOME_JOIN : NONE_JOINS;
    }
    candidates_free(&c);
    return found;
}

/* The fastest setting of some networks was not among what the malleable policy could keep; the strategies are the
 * paper's, and who asks for joining or for none gets that. */
static void malleable_may_join(void **state)
{
    struct described d;
    described_open(6, 2, &d);
    const graphi_setting malleable = {.policy = GRAPHI_POLICY_MALLEABLE, .executors = 2, .width = 3};
    const graphi_setting strategy = {.policy = GRAPHI_POLICY_S123, .executors = 2, .width = 3};
    assert_int_equal(joining(&d, malleable, GRAPHI_DEFAULT), NONE_JOINS | SOME_JOIN);
    assert_int_equal(joining(&d, malleable, GRAPHI_OFF), NONE_JOINS);
    assert_int_equal(joining(&d, malleable, GRAPHI_ON), SOME_JOIN);
    assert_int_equal(joining(&d, strategy, GRAPHI_DEFAULT), NONE_JOINS);
    assert_int_equal(joining(&d, strategy, GRAPHI_ON), NONE_JOINS);
    described_close(&d);
}

/* An inferred split of fewer cores left out all uniform settings that take the others. */
static void an_open_split_has_to_beat_all_cores(void **state)
{
    struct described d;
    const graphi_setting open = {.policy = GRAPHI_POLICY_S123};
    described_open(6, 2, &d);
    graphi_plan_destroy(d.plan);
    d.machine->wake_ns = d.machine->barrier_ns = 1e9; /* a second a message: few cores are inferred */
    assert_int_equal(graphi_plan_create(d.graph, d.machine, NULL, &d.plan), GRAPHI_OK);
    assert_int_equal(joining(&d, open, GRAPHI_DEFAULT), NONE_JOINS);
    described_close(&d);
}

/* Six modules side by side: of 68 cores four teams of 17 were chosen, which take 13 % longer than six of 11. */
static void no_split_beats_the_chosen_one(void **state)
{
    struct described d;
    described_open(68, 64, &d);
    for (int k = 1; k <= d.plan->graph_width; k++) {
        graphi_plan *other;
        const graphi_setting setting = {.executors = k, .width = 68 / k};
        assert_int_equal(
            graphi_plan_with(d.plan, &(graphi_plan_change){.setting = &setting, .machine = d.machine}, &other),
            GRAPHI_OK);
        assert_true(d.plan->predicted_ns <= 1.02 * other->predicted_ns);
        graphi_plan_destroy(other);
    }
    described_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disturbances_do_not_change_the_choice),
        cmocka_unit_test(ties_go_to_the_simpler),
        cmocka_unit_test(little_time_is_for_few),
        cmocka_unit_test(no_time_leaves_the_incumbent),
        cmocka_unit_test(a_short_race_chooses_better_than_none),
        cmocka_unit_test(nobody_is_always_first),
        cmocka_unit_test(finalists_run_five_times),
        cmocka_unit_test(an_uncertain_gain_is_taken),
        cmocka_unit_test(time_is_used_where_it_tells),
        cmocka_unit_test(the_slow_leave_early),
        cmocka_unit_test(rounds_are_compared_in_pairs),
        cmocka_unit_test(two_rounds_are_never_certain),
        cmocka_unit_test(who_is_behind_costs_few_rounds),
        cmocka_unit_test(doubt_goes_on_while_there_is_time),
        cmocka_unit_test(what_has_not_told_goes_on),
        cmocka_unit_test(splits_are_those_that_fill_the_cores),
        cmocka_unit_test(executors_that_join_are_weighed),
        cmocka_unit_test(what_runs_alike_races_once),
        cmocka_unit_test(others_race_beside_joining),
        cmocka_unit_test(what_is_not_simulated_races),
        cmocka_unit_test(messages_of_no_known_cost_race),
        cmocka_unit_test(never_joining_is_heeded),
        cmocka_unit_test(many_cores_drop_no_kind),
        cmocka_unit_test(no_time_keeps_the_first_kinds),
        cmocka_unit_test(six_cores_have_three_teams),
        cmocka_unit_test(malleable_may_join),
        cmocka_unit_test(an_open_split_has_to_beat_all_cores),
        cmocka_unit_test(no_split_beats_the_chosen_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
