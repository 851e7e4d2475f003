/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that join what others run, in virtual time (schedule/simulated_join.c): small graphs whose makespans are
 * worked out by hand, and random ones in which nobody may be at two places. On real threads: test_join.c. */
#include "schedule/decided.h"
#include "dag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

enum { CORES = 4, PIECE = PIECE_NS, MOST_JOINED = 4096 };

/* Durations that one worker divides by as many as there are; t(2) is `second` of t(1). */
static struct cost_curve divided(double ns, double second)
{
    return (struct cost_curve){
        .samples = 4, .width = {1, 2, 3, 4}, .ns = {ns, second * ns, ns / 3, ns / 4}, .best = 4, .last = 4};
}

/* One task of so many pieces. */
static struct dag *lone_task(int pieces, double second)
{
    struct dag *g = dag_empty(1);
    g->curves[0] = divided(pieces * PIECE, second);
    g->shares[0] = (uint8_t)pieces;
    dag_finish(g);
    return g;
}

static struct schedule *scheduled(const struct dag *g, const graphi_setting *setting, const graphi_machine *m)
{
    struct schedule *s;
    check_ok(schedule_create(&g->tasks, setting_decide(setting, m), &s));
    check_ok(schedule_trace_teams(s));
    return s;
}

static struct simulation play(const struct dag *g, const graphi_setting *setting, const graphi_machine *m,
                              struct task_record *records)
{
    struct simulation out;
    struct schedule *s = scheduled(g, setting, m);
    check_ok(schedule_simulate(s, NULL, NULL, records, &out));
    schedule_destroy(s);
    return out;
}

static graphi_setting joining(int executors)
{
    return (graphi_setting){
        .driver = GRAPHI_DRIVER_COMBINING, .executors = executors, .width = 1, .join = GRAPHI_ON, .light = GRAPHI_OFF};
}

/* Who idles takes no pieces, or another number than there are left for him. Of 16 two have 8 each, three at most 6; of
 * 5 two have 3 and 2. */
static void idle_executors_take_their_part(void **state)
{
    static const struct {
        int pieces, executors, rounds;
    } cases[] = {{16, 1, 16}, {16, 2, 8}, {16, 3, 6}, {16, 4, 4}, {5, 2, 3}, {5, 3, 2}, {2, 4, 1}, {32, 4, 8}};
    graphi_machine five = dag_machine(CORES + 1, 0); /* a dedicated driver has one of its own */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dag *g = lone_task(cases[i].pieces, 0.5);
        graphi_setting setting = joining(cases[i].executors);
        for (int driver = GRAPHI_DRIVER_DEDICATED; driver <= GRAPHI_DRIVER_COMBINING; driver++) {
            setting.driver = (graphi_driver)driver;
            struct task_record r;
            const struct simulation s = play(g, &setting, &five, &r);
            assert_int_equal(r.end_ns - r.start_ns, cases[i].rounds * PIECE);
            assert_true(r.open == (cases[i].executors > 1) && r.width == 1);
            assert_true(s.makespan_ns == cases[i].rounds * PIECE);
            assert_true(s.busy_ns == cases[i].pieces * PIECE);
        }
        dag_free(g);
    }
    free(five.core);
}

/* A resource that pieces share gives no more where they are begun one after the other: what more than `enough` workers
 * gain nothing by takes no less time in pieces than with so many. */
static void pieces_are_no_faster_than_a_team(void **state)
{
    graphi_machine four = dag_machine(CORES, 0);
    for (int enough = 1; enough <= CORES; enough++)
        for (int pieces = 2; pieces <= 24; pieces++) {
            struct dag *g = lone_task(pieces, 0.5);
            for (int w = 0; w < CORES; w++)
                g->curves[0].ns[w] = pieces * PIECE / (double)(w < enough ? w + 1 : enough);
            for (int executors = 2; executors <= CORES; executors++) {
                const graphi_setting setting = joining(executors);
                struct task_record r;
                assert_true(play(g, &setting, &four, &r).makespan_ns >= curve_least_ns(&g->curves[0]));
            }
            dag_free(g);
        }
    free(four.core);
}

/* Four tasks on three executors: 0 of 16 pieces, 1 of 2.5 of their time, which makes 2 and 3 ready, of 1.5 each. */
static struct dag *own_tasks(void)
{
    struct dag *g = dag_empty(4);
    const double pieces[] = {16, 2.5, 1.5};
    for (int c = 0; c < 3; c++)
        g->curves[c] = divided(pieces[c] * PIECE, 0.5);
    for (int t = 0; t < 4; t++) {
        dag_set_class(g, t, t < 2 ? t : 2);
        g->shares[t] = t ? 1 : 16;
        if (t > 1)
            g->inputs[t][g->inputs_count[t]++] = 1;
    }
    dag_finish(g);
    return g;
}

/* A task that becomes ready does not wait until nothing is left to join, but for the piece that its executor is at: 3
 * waits half a piece. Or the leader goes on while others are at its pieces: it has 7 of them, waits for half a piece of
 * the last, and ends after 7.5. */
static void own_tasks_come_first(void **state)
{
    struct dag *g = own_tasks();
    graphi_machine four = dag_machine(CORES, 0);
    graphi_setting setting = joining(3);
    struct schedule *s = scheduled(g, &setting, &four);
    struct task_record r[4];
    struct simulation simulation;
    check_ok(schedule_simulate(s, NULL, NULL, r, &simulation));
    assert_true(simulation.makespan_ns == 7.5 * PIECE);
    assert_int_equal(r[0].end_ns, 7.5 * PIECE);
    assert_int_equal(schedule_teams(s)->worked_ns[0], 7 * PIECE);
    assert_int_equal(r[2].start_ns, 2.5 * PIECE);
    assert_int_equal(r[2].leader, 1);
    assert_int_equal(r[3].start_ns, 3 * PIECE);
    assert_int_equal(r[3].leader, 2);
    const struct join_trace joined = schedule_joined(s);
    assert_int_equal(joined.count, 16 - 7);
    for (int i = 0; i < joined.count; i++) {
        assert_int_equal(joined.piece[i].task, 0);
        assert_int_equal(joined.piece[i].end_ns - joined.piece[i].start_ns, PIECE);
        assert_true(joined.piece[i].worker == 1 || joined.piece[i].worker == 2);
    }
    schedule_destroy(s);
    free(four.core);
    dag_free(g);
}

/* Coming, taking a piece and waiting for one cost nothing. */
static void messages_and_atomics_are_charged(void **state)
{
    struct dag *g = lone_task(2, 0.5);
    graphi_machine four = dag_machine(CORES, 0);
    graphi_setting setting = joining(2);
    four.wake_ns = 100;
    four.atomic_ns = 10;
    struct schedule *s = scheduled(g, &setting, &four);
    struct task_record r;
    struct simulation simulation;
    check_ok(schedule_simulate(s, NULL, NULL, &r, &simulation));
    const struct join_trace joined = schedule_joined(s);
    assert_int_equal(joined.count, 1);
    assert_int_equal(joined.piece[0].start_ns, r.start_ns + 100);
    assert_int_equal(joined.piece[0].end_ns, r.start_ns + 100 + PIECE + 10);
    assert_int_equal(r.end_ns, joined.piece[0].end_ns + 100);
    assert_int_equal(schedule_teams(s)->worked_ns[0], PIECE + 10);
    schedule_destroy(s);
    free(four.core);
    dag_free(g);
}

/* What gains nothing by a team, since its memory or a serial part limits it, would gain by those who join. */
static void joining_gains_what_a_team_gains(void **state)
{
    graphi_machine four = dag_machine(CORES, 0);
    for (int tenths = 5; tenths <= 10; tenths++) {
        struct dag *g = lone_task(16, tenths / 10.0);
        const graphi_setting setting = joining(2);
        const double ns = play(g, &setting, &four, NULL).makespan_ns, team = curve_ns(&g->curves[0], 2);
        assert_true(ns > 0.99 * team && ns <= 1.0001 * team);
        dag_free(g);
    }
    free(four.core);
}

/* Who is called for pieces gets a task of its own before it sees them, and nobody comes in its place, so that the
 * leader has all four: of five executors three of the idle ones are called, and have tasks that were sent to them. */
static void others_come_in_their_place(void **state)
{
    struct dag *g = dag_empty(4);
    graphi_machine five = dag_machine(CORES + 1, 0);
    graphi_setting setting = joining(5);
    struct task_record r[4];
    five.wake_ns = 2000;
    g->curves[0] = divided(4 * PIECE, 0.5);
    g->curves[1] = divided(3.5 * PIECE, 0.5);
    for (int t = 0; t < 4; t++) {
        dag_set_class(g, t, t > 0);
        g->shares[t] = t ? 1 : 4;
    }
    dag_finish(g);
    play(g, &setting, &five, r);
    assert_int_equal(r[0].leader, 0);
    assert_int_equal(r[0].end_ns, 3 * PIECE);
    free(five.core);
    dag_free(g);
}

/* Who looks around when all is done makes the execution longer. */
static void looking_around_takes_no_time(void **state)
{
    struct dag *g = lone_task(2, 0.5);
    graphi_machine four = dag_machine(CORES, 0);
    graphi_setting setting = joining(2);
    four.wake_ns = 2.5 * PIECE;
    assert_true(play(g, &setting, &four, NULL).makespan_ns == 2 * PIECE);
    free(four.core);
    dag_free(g);
}

struct seen {
    const struct dag *g;
    int alone, together; /* times that were asked for */
    int own;             /* most neighbours that are at the same task */
};

static double told(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    struct seen *seen = context;
    int own = 0;
    for (int i = 0; i < count; i++)
        own += running[i] == task;
    seen->own = own > seen->own ? own : seen->own;
    seen->alone += seat.width == 1;
    seen->together += seat.width > 1;
    return curve_ns(&seen->g->curves[seen->g->curve_of[task]], seat.width);
}

/* A task that others are at slows itself down as a neighbour does, or takes what it takes one worker. Where it is known
 * what neighbours cost a class, who are at the same task would cost nothing, or what waits in teams. */
static void who_joins_is_a_neighbour_where_that_was_measured(void **state)
{
    for (int measured = 0; measured < 2; measured++) {
        struct dag *g = own_tasks();
        struct seen seen = {.g = g};
        graphi_machine four = dag_machine(CORES, 0);
        graphi_setting setting = joining(3);
        g->curves[0].beside = measured ? 1.2 : 0;
        struct schedule *s = scheduled(g, &setting, &four);
        struct simulation simulation;
        check_ok(schedule_simulate(s, told, &seen, NULL, &simulation));
        assert_true(simulation.makespan_ns == 7.5 * PIECE);
        assert_int_equal(seen.alone, 3 + 16);
        assert_in_range(seen.together, measured ? 0 : 14, measured ? 0 : 15);
        assert_int_equal(seen.own, measured ? 2 : 0);
        schedule_destroy(s);
        free(four.core);
        dag_free(g);
    }
}

/* --- nobody joins --- */

static void check_same(const struct task_record *a, const struct task_record *b, int count)
{
    for (int t = 0; t < count; t++) {
        assert_int_equal(a[t].start_ns, b[t].start_ns);
        assert_int_equal(a[t].end_ns, b[t].end_ns);
        assert_int_equal(a[t].leader, b[t].leader);
        assert_int_equal(a[t].open, b[t].open);
    }
}

static void check_alike(const struct dag *g, graphi_setting setting, const graphi_machine *m)
{
    const size_t count = (size_t)g->tasks.count;
    struct task_record *with = calloc(count, sizeof *with), *without = calloc(count, sizeof *without);
    setting.join = GRAPHI_ON;
    const struct simulation a = play(g, &setting, m, with);
    setting.join = GRAPHI_OFF;
    const struct simulation b = play(g, &setting, m, without);
    assert_true(a.makespan_ns == b.makespan_ns && a.busy_ns == b.busy_ns && a.decisions == b.decisions);
    check_same(with, without, g->tasks.count);
    free(with);
    free(without);
}

/* Somebody joins what is too short or has one share, or where real executors do not: another time is predicted than
 * that of the same executions. */
static void others_are_left_alone(void **state)
{
    static const graphi_setting apart[] = {
        {.executors = 1, .width = 1},
        {.executors = 2, .width = 2},
        {.policy = GRAPHI_POLICY_NAIVE, .executors = 4, .width = 1},
        {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 4},
        {.policy = GRAPHI_POLICY_S123, .executors = 4, .width = 1},
        {.policy = GRAPHI_POLICY_MALLEABLE, .executors = 4, .width = 1},
        {.policy = GRAPHI_POLICY_FIFO, .executors = 4, .width = 1, .backward_executors = 2},
    };
    graphi_machine m = dag_machine(CORES, 0);
    m.wake_ns = 100;
    m.schedule_ns = 30;
    m.atomic_ns = 10;
    struct dag *g = dag_random_graph(3, 100, 6, 1e5, 0);
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        check_alike(g, apart[i], &m);
    memset(g->shares, 1, 100);
    check_alike(g, joining(4), &m);
    dag_free(g);
    g = dag_random_graph(4, 100, 6, 2.0 * PIECE_NS / 27, 0); /* the longest takes 26.6 of it */
    check_alike(g, joining(4), &m);
    dag_free(g);
    free(m.core);
}

/* The members of a team of two, or their leader, join; who is alone does not. */
static void members_of_teams_do_not_join(void **state)
{
    const graphi_setting teams = {.policy = GRAPHI_POLICY_ASYMMETRIC, .executors = 2, .width = 2, .join = GRAPHI_ON};
    graphi_machine four = dag_machine(CORES, 0);
    struct dag *g = lone_task(16, 0.5);
    g->curves[0].source = GRAPHI_CURVE_MODELLED; /* and its kind is narrow */
    struct task_record r;
    play(g, &teams, &four, &r);
    assert_int_equal(r.width, 1);
    assert_int_equal(r.end_ns, 8 * PIECE);
    dag_free(g);
    free(four.core);
}

/* --- random graphs --- */

struct span {
    int64_t from, to;
};

static void add_span(struct span *spans, int *count, int64_t from, int64_t to)
{
    for (int i = 0; i < *count; i++)
        assert_true(to <= spans[i].from || from >= spans[i].to);
    spans[(*count)++] = (struct span){from, to};
}

/* Nobody is at two places, pieces lie within their task, and tasks follow those that they need. */
static void check_records(const struct dag *g, const struct schedule *s, const struct task_record *r)
{
    const struct join_trace joined = schedule_joined(s);
    struct span *spans = calloc((size_t)(g->tasks.count + joined.count), sizeof *spans);
    for (int worker = 0; worker < s->workers; worker++) {
        int count = 0;
        for (int t = 0; t < g->tasks.count; t++)
            if (worker >= r[t].leader && worker < r[t].leader + r[t].width)
                add_span(spans, &count, r[t].start_ns, r[t].end_ns);
        for (int i = 0; i < joined.count; i++)
            if (joined.piece[i].worker == worker)
                add_span(spans, &count, joined.piece[i].start_ns, joined.piece[i].end_ns);
    }
    for (int i = 0; i < joined.count; i++) {
        const struct joined *piece = &joined.piece[i];
        const struct task_record *of = &r[piece->task];
        assert_true(of->open && piece->worker != of->leader && s->executors[piece->worker].joins);
        assert_true(piece->start_ns >= of->start_ns && piece->end_ns <= of->end_ns);
    }
    for (int t = 0; t < g->tasks.count; t++)
        for (int i = 0; i < g->inputs_count[t]; i++)
            assert_true(r[t].start_ns >= r[g->inputs[t][i]].end_ns);
    free(spans);
}

/* The same simulation again is another one, or its decisions are not those of the step that was told the same. */
static void check_repeats(const struct dag *g, const graphi_setting *setting, const graphi_machine *m,
                          int *joined)
{
    const size_t count = (size_t)g->tasks.count;
    struct task_record *first = calloc(count, sizeof *first), *again = calloc(count, sizeof *again);
    struct schedule *s = scheduled(g, setting, m);
    struct simulation a, b;
    uint64_t replayed;
    check_ok(schedule_log_enable(s));
    check_ok(schedule_simulate(s, NULL, NULL, first, &a));
    check_records(g, s, first);
    *joined += schedule_joined(s).count;
    assert_true(a.busy_ns <= s->workers * a.makespan_ns);
    check_ok(schedule_replay(s, &replayed));
    assert_true(replayed == a.decisions);
    check_ok(schedule_simulate(s, NULL, NULL, again, &b));
    assert_true(a.makespan_ns == b.makespan_ns && a.decisions == b.decisions);
    check_same(first, again, g->tasks.count);
    schedule_destroy(s);
    free(first);
    free(again);
}

static void random_graphs_are_joined(void **state)
{
    static const graphi_policy policies[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_FIFO, GRAPHI_POLICY_RANDOM,
                                             GRAPHI_POLICY_LOCALITY, GRAPHI_POLICY_ASYMMETRIC};
    enum { POLICIES = sizeof policies / sizeof *policies };
    for (uint64_t seed = 0; seed < 8 * POLICIES; seed++) {
        graphi_machine m = dag_machine(seed & 1 ? 8 : 9, 0); /* the driver shares a core, or has its own */
        m.wake_ns = seed & 2 ? 2000 : 0;
        m.schedule_ns = 30;
        m.atomic_ns = seed & 2 ? 10 : 0;
        struct dag *g = dag_random_graph(seed, 150, 1 + (int)seed % 7, 1e5, 3);
        int joined = 0;
        for (int driver = GRAPHI_DRIVER_DEDICATED; driver <= GRAPHI_DRIVER_COMBINING; driver++) {
            const graphi_policy policy = policies[seed % POLICIES];
            const graphi_setting setting = {.policy = policy,
                                            .driver = (graphi_driver)driver,
                                            .executors = policy == GRAPHI_POLICY_ASYMMETRIC ? 4 : 8,
                                            .width = policy == GRAPHI_POLICY_ASYMMETRIC ? 2 : 1,
                                            .depth = 1 + (int)seed % 3,
                                            .join = GRAPHI_ON};
            check_repeats(g, &setting, &m, &joined);
        }
        assert_true(joined > 0);
        dag_free(g);
        free(m.core);
    }
}

/* On many cores each idle executor is called for pieces that others have taken, and so on without end, or events have
 * no room. */
static void thousands_of_executors_join(void **state)
{
    graphi_machine m = dag_machine(1024, 0);
    m.wake_ns = 150;
    m.atomic_ns = 20;
    struct dag *g = dag_random_graph(5, 400, 100, 1e5, 3);
    memset(g->shares, 16, 400);
    const graphi_setting with = joining(1024);
    graphi_setting without = with;
    without.join = GRAPHI_OFF;
    assert_true(play(g, &with, &m, NULL).makespan_ns < 0.7 * play(g, &without, &m, NULL).makespan_ns);
    dag_free(g);
    free(m.core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_executors_take_their_part),
        cmocka_unit_test(pieces_are_no_faster_than_a_team),
        cmocka_unit_test(own_tasks_come_first),
        cmocka_unit_test(messages_and_atomics_are_charged),
        cmocka_unit_test(joining_gains_what_a_team_gains),
        cmocka_unit_test(others_come_in_their_place),
        cmocka_unit_test(looking_around_takes_no_time),
        cmocka_unit_test(who_joins_is_a_neighbour_where_that_was_measured),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(members_of_teams_do_not_join),
        cmocka_unit_test(random_graphs_are_joined),
        cmocka_unit_test(thousands_of_executors_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
