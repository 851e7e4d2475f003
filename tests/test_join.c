/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that have nothing ready join what others run: on tasks of this file, whose pieces wait for company, and on
 * operations of a plan. What random graphs compute while executors join is test_random_graphs' business. */
#include "schedule/decided.h"
#include "dag.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "engine/run/run.h"
#include "machine/parking.h"
#include "graphi/simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

enum { PHASES = 3, PATIENCE_S = 20 };

/* --- tasks of one piece a worker --- */

struct meeting {
    atomic_uint workers; /* who ran a piece of the phase, by bit */
    atomic_int begun, mistakes, opened;
    unsigned wanted;     /* so many of them, before any piece ends */
    int64_t deadline;
};

static void meet(void *job, int piece, int pieces, int worker)
{
    struct meeting *m = job;
    atomic_fetch_add(&m->begun, 1);
    atomic_fetch_or(&m->workers, 1u << worker);
    for (unsigned turns = 0; (unsigned)__builtin_popcount(atomic_load(&m->workers)) < m->wanted; spin_turn(&turns))
        if (clock_ns() > m->deadline) {
            atomic_fetch_add(&m->mistakes, 1);
            return;
        }
}

static graphi_status meet_task(void *context, int32_t task, struct team *team, int member, int width)
{
    struct meeting *m = context;
    if (!team)
        return GRAPHI_OK;
    for (int phase = 0; phase < PHASES; phase++) {
        atomic_store(&m->workers, 0);
        atomic_store(&m->begun, 0);
        team_open(team, meet, m, team->pieces);
        if (atomic_load(&m->begun) != team->pieces)
            atomic_fetch_add(&m->mistakes, 1);
    }
    atomic_fetch_add(&m->opened, 1);
    return GRAPHI_OK;
}

/* One task, as long and of as many shares. */
static struct dag *lone_task(double ns, uint8_t shares)
{
    struct dag *g = dag_empty(1);
    g->curves[0] = dag_curve(0, ns, 1);
    g->shares[0] = shares;
    dag_finish(g);
    return g;
}

/* Pieces that others ran, beside the leader, while it ran the task. */
static void check_joined(const struct schedule *s, const struct task_record *record)
{
    const struct join_trace joined = schedule_joined(s);
    const int64_t took = record->end_ns - record->start_ns;
    assert_true(record->open && record->width == 1);
    assert_in_range(schedule_teams(s)->worked_ns[0], 0, took);
    assert_in_range(joined.count, PHASES, PHASES * s->pieces[0]);
    for (int i = 0; i < joined.count; i++) {
        assert_int_equal(joined.piece[i].task, 0);
        assert_int_not_equal(joined.piece[i].worker, record->leader);
        assert_int_equal(s->slots[s->executors[joined.piece[i].worker].slot].width, 1);
        assert_true(joined.piece[i].start_ns <= joined.piece[i].end_ns && joined.piece[i].end_ns <= record->end_ns);
    }
}

/* Runs the one task; how many were open. */
static int run_meeting(const struct dag *g, const graphi_setting *setting, unsigned wanted)
{
    graphi_machine four = dag_machine(4, 0);
    struct schedule *s;
    struct lease lease = {0};
    struct lease_options options = setting_decide(setting, &four).lease;
    struct meeting m = {.wanted = wanted, .deadline = clock_after(PATIENCE_S)};
    struct task_record record = {0};
    options.pin = false;
    check_ok(schedule_create(&g->tasks, setting_decide(setting, &four), &s));
    check_ok(schedule_decide(s));
    check_ok(schedule_trace_teams(s));
    check_ok(lease_take(&four, &options, &lease));
    for (int i = 0; i < 4; i++) {
        const uint64_t before = mem_allocations();
        check_ok(schedule_run(s, &lease, meet_task, &m, i % 2 ? &record : NULL));
        assert_int_equal(mem_allocations(), before);
        assert_int_equal(m.mistakes, 0);
        if (i % 2 && m.opened)
            check_joined(s, &record);
    }
    lease_release(&lease);
    schedule_destroy(s);
    free(four.core);
    return m.opened;
}

/* Nobody comes, a piece is lost or run twice, or who came is not in the trace. */
static void idle_executors_join(void **state)
{
    struct dag *g = lone_task(1e6, 16);
    for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++)
        for (int executors = 2; executors <= 3; executors++) {
            const graphi_setting setting = {.driver = (graphi_driver)driver,
                                            .executors = executors,
                                            .width = 1,
                                            .join = GRAPHI_ON,
                                            .light = GRAPHI_OFF};
            assert_int_equal(run_meeting(g, &setting, (unsigned)executors), 4);
        }
    const graphi_setting with_light = {.executors = 2, .width = 1, .join = GRAPHI_ON, .light = GRAPHI_ON};
    assert_int_equal(run_meeting(g, &with_light, 3), 4);
    dag_free(g);
}

/* Of a team of two and two executors of one thread the leader and the member of the team came too, for which their next
 * operation waited with two threads. Or how long an operation takes one thread is told by the team. */
static void members_of_teams_do_not_join(void **state)
{
    const graphi_setting teams = {.policy = GRAPHI_POLICY_ASYMMETRIC, .executors = 2, .width = 2, .join = GRAPHI_ON};
    struct dag *g = dag_empty(1);
    g->curves[0] = dag_curve(1.2 * PIECE_NS, PIECE_NS, 2);
    g->curves[0].source = GRAPHI_CURVE_MODELLED; /* and its kind is narrow */
    g->shares[0] = 16;
    dag_finish(g);
    for (int turn = 0; turn < 8; turn++) /* who comes first is chance */
        assert_int_equal(run_meeting(g, &teams, 2), 4);
    dag_free(g);
}

/* What is short or has one share pays for nothing, nor does what is not asked for. */
static void others_are_left_alone(void **state)
{
    static const struct {
        double ns;
        uint8_t shares;
        graphi_setting setting;
    } cases[] = {
        {1e6, 1, {.executors = 2, .width = 1, .join = GRAPHI_ON}},
        {2 * PIECE_NS - 1, 64, {.executors = 2, .width = 1, .join = GRAPHI_ON}},
        {1e6, 16, {.executors = 2, .width = 1}},
        {1e6, 16, {.executors = 2, .width = 1, .join = GRAPHI_OFF}},
        {1e6, 16, {.executors = 1, .width = 1, .join = GRAPHI_ON}},
        {1e6, 16, {.policy = GRAPHI_POLICY_NAIVE, .executors = 2, .width = 1, .join = GRAPHI_ON}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dag *g = lone_task(cases[i].ns, cases[i].shares);
        assert_int_equal(run_meeting(g, &cases[i].setting, 1), 0);
        dag_free(g);
    }
}

/* --- decisions --- */

static void spin_piece(void *job, int piece, int pieces, int worker) { clock_spin(2000); }

static graphi_status spin_task(void *context, int32_t task, struct team *team, int member, int width)
{
    if (team)
        team_open(team, spin_piece, NULL, team->pieces);
    else
        clock_spin(2000);
    return GRAPHI_OK;
}

/* Who joins enters what the step decides by: told the same completions again it decides otherwise. */
static void decisions_beside_who_joins_replay(void **state)
{
    graphi_machine four = dag_machine(4, 0);
    for (int driver = GRAPHI_DRIVER_DEDICATED; driver <= GRAPHI_DRIVER_COMBINING; driver++) {
        const graphi_setting setting = {
            .driver = (graphi_driver)driver, .executors = 3, .width = 1, .join = GRAPHI_ON, .light = GRAPHI_OFF};
        struct dag *g = dag_random_graph(11, 60, 4, 1e5, 3);
        struct task_record records[60];
        struct schedule *s;
        struct lease lease = {0};
        struct lease_options options = setting_decide(&setting, &four).lease;
        options.pin = false;
        check_ok(schedule_create(&g->tasks, setting_decide(&setting, &four), &s));
        check_ok(schedule_log_enable(s));
        check_ok(schedule_trace_teams(s));
        check_ok(lease_take(&four, &options, &lease));
        int joined = 0;
        for (int i = 0; i < 3 || (!joined && i < 300); i++) { /* nothing makes anybody join */
            uint64_t replayed;
            check_ok(schedule_run(s, &lease, spin_task, NULL, records));
            const uint64_t decided = s->decisions;
            joined += schedule_joined(s).count;
            check_ok(schedule_replay(s, &replayed));
            assert_true(replayed == decided);
        }
        assert_true(joined > 0);
        lease_release(&lease);
        schedule_destroy(s);
        dag_free(g);
    }
    free(four.core);
}

/* --- operations --- */

enum { ROWS = 100, COLUMNS = 64, IDS = 100000 };

struct lookup {
    graphi_machine *six;
    graphi_graph *g;
    graphi_state *state;
    graphi_plan *plan;
    graphi_run *run;
};

/* Executors with one long operation, which copies rows by number. */
static struct lookup lookup_new(void)
{
    static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
    const graphi_plan_options options = {.setting = {.executors = 3, .width = 1, .join = GRAPHI_ON}};
    struct lookup l = {.six = six_cores()};
    check_ok(graphi_graph_create(&l.g));
    graphi_value ids = graphi_input(l.g, "ids", GRAPHI_I32, 1, (int64_t[]){IDS});
    graphi_value table = graphi_parameter(l.g, "table", GRAPHI_F32, 2, (int64_t[]){ROWS, COLUMNS}, &uniform);
    graphi_output(l.g, "y", graphi_embedding(l.g, table, ids));
    check_ok(graphi_state_create(l.g, 1, &l.state));
    check_ok(graphi_plan_create(l.g, l.six, &options, &l.plan));
    check_ok(graphi_run_create(l.plan, l.state, &l.run));
    return l;
}

static void lookup_free(struct lookup *l)
{
    graphi_run_destroy(l->run);
    graphi_plan_destroy(l->plan);
    graphi_state_destroy(l->state);
    graphi_graph_destroy(l->g);
    graphi_machine_destroy(l->six);
}

/* The last one is `last`: who has the last piece finds it. */
static void feed(struct lookup *l, int32_t last)
{
    int32_t *ids = calloc(IDS, sizeof *ids);
    for (int32_t i = 0; i < IDS; i++)
        ids[i] = i + 1 < IDS ? i % ROWS : last;
    check_ok(graphi_run_set(l->run, "ids", GRAPHI_I32, ids, IDS * sizeof *ids));
    free(ids);
}

/* Until somebody came: the leader may be done before. */
static void execute_joined(struct lookup *l)
{
    const int64_t deadline = clock_after(PATIENCE_S);
    do
        check_ok(graphi_run_execute(l->run));
    while (schedule_joined(l->run->schedule).count == 0 && clock_ns() < deadline);
    assert_true(schedule_joined(l->run->schedule).count > 0);
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_in_range(fread(text, 1, (1 << 20) - 1, file), 1, 1 << 20);
    fclose(file);
    return text;
}

static int joined_events(const char *prefix)
{
    char path[320];
    int count = 0;
    snprintf(path, sizeof path, "%s.json", prefix);
    char *text = read_text(path);
    for (const char *at = text; (at = strstr(at, "\"joined\":true")) != NULL; at++)
        count++;
    free(text);
    return count;
}

/* Work of who joined is idleness in the timeline, or operations are counted twice. */
static void who_joined_is_in_the_timeline(void **state)
{
    struct folder folder;
    char prefix[300];
    struct lookup l = lookup_new();
    graphi_trace_summary sum;
    folder_make(&folder);
    snprintf(prefix, sizeof prefix, "%s/joined", folder.path);
    feed(&l, (IDS - 1) % ROWS);
    check_ok(graphi_run_trace(l.run, true));
    execute_joined(&l);
    check_ok(graphi_run_trace_summary(l.run, &sum));
    assert_int_equal(sum.operations, l.plan->compiled->tasks);
    int64_t joined = 0;
    const struct join_trace trace = schedule_joined(l.run->schedule);
    for (int i = 0; i < trace.count; i++)
        joined += trace.piece[i].end_ns - trace.piece[i].start_ns;
    assert_true(sum.busy_fraction * 3 * sum.span_ms * 1e6 > (double)joined);
    check_ok(graphi_run_write_timeline(l.run, prefix));
    assert_int_equal(joined_events(prefix), trace.count);
    folder_remove(&folder);
    lookup_free(&l);
}

/* A plan whose executors join is predicted to take what it would without, or its simulated timeline has no pieces. */
static void virtual_time_tells_who_joins(void **state)
{
    static const int joins[] = {1, -1};
    struct folder folder;
    char prefix[300];
    struct lookup l = lookup_new();
    graphi_simulation simulation[2];
    graphi_plan_info info[2];
    folder_make(&folder);
    snprintf(prefix, sizeof prefix, "%s/joined", folder.path);
    for (int i = 0; i < 2; i++) {
        const graphi_plan_options options = {.setting = {.executors = 3, .width = 1, .join = joins[i]}};
        graphi_plan *plan;
        check_ok(graphi_plan_create(l.g, l.six, &options, &plan));
        graphi_plan_get_info(plan, &info[i]);
        check_ok(graphi_plan_simulate(plan, &(graphi_simulate_options){.timeline = prefix}, &simulation[i]));
        assert_true(info[i].predicted_ms == simulation[i].makespan_ms);
        assert_true((joined_events(prefix) > 0) == (joins[i] > 0));
        graphi_plan_destroy(plan);
    }
    assert_true(simulation[0].makespan_ms < 0.7 * simulation[1].makespan_ms);
    assert_true(simulation[0].utilization > 1.3 * simulation[1].utilization);
    folder_remove(&folder);
    lookup_free(&l);
}

/* A failure in a piece that another worker ran is lost, hangs the leader, or spoils the executions that follow. */
static void failures_in_pieces_are_told(void **state)
{
    static float y[IDS * COLUMNS], table[ROWS * COLUMNS];
    struct lookup l = lookup_new();
    check_ok(graphi_state_get(l.state, "table", table, sizeof table));
    check_ok(graphi_run_trace(l.run, true));
    feed(&l, ROWS);
    for (int turn = 0; turn < 50; turn++) {
        assert_int_equal(graphi_run_execute(l.run), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), "found id 100"));
        assert_non_null(strstr(graphi_message(), "embedding"));
    }
    feed(&l, (IDS - 1) % ROWS);
    execute_joined(&l);
    check_ok(graphi_run_get(l.run, "y", GRAPHI_F32, y, sizeof y));
    for (int32_t i = 0; i < IDS; i++)
        assert_memory_equal(&y[(size_t)i * COLUMNS], &table[i % ROWS * COLUMNS], COLUMNS * sizeof *y);
    lookup_free(&l);
}

/* Kernels that save much by doing neighbouring shares together were cut into 32 pieces, and took a quarter longer on
 * the one thread that had all of them. */
static void kernels_are_cut_as_far_as_pays(void **state)
{
    static const struct {
        int64_t images, size, from, to;
        int least, most;
    } cases[] = {{1, 224, 3, 64, 7, 7}, {4, 56, 64, 192, 4, 4}, {32, 64, 64, 64, 32, 32}};
    static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
    const graphi_plan_options options = {.setting = {.executors = 3, .width = 1, .join = GRAPHI_ON}};
    const int64_t strides[] = {1, 1}, pads[] = {1, 1, 1, 1}, dilations[] = {1, 1}, kernel[] = {3, 3}, two[] = {2, 2};
    graphi_machine *six = six_cores();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t images[] = {cases[i].images, cases[i].size, cases[i].size, cases[i].from};
        const int64_t weights[] = {3, 3, cases[i].from, cases[i].to};
        graphi_graph *g;
        graphi_state *state_of;
        graphi_plan *plan;
        graphi_run *run;
        check_ok(graphi_graph_create(&g));
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, images);
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, weights, &uniform);
        graphi_value y = graphi_conv2d(g, x, w, strides, 2, pads, 4, dilations, 2, 1);
        graphi_output(g, "y", graphi_max_pool(g, y, kernel, 2, two, 2, pads, 4, 0));
        check_ok(graphi_state_create(g, 1, &state_of));
        check_ok(graphi_plan_create(g, six, &options, &plan));
        check_ok(graphi_run_create(plan, state_of, &run));
        int pooled = 0;
        for (int32_t t = 0; t < plan->compiled->tasks; t++)
            if (plan->compiled->task[t].kernel.pieces) {
                assert_in_range(run->schedule->pieces[t], cases[i].least, cases[i].most);
                pooled++;
            }
        assert_int_equal(pooled, 1);
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(state_of);
        graphi_graph_destroy(g);
    }
    graphi_machine_destroy(six);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_executors_join),
        cmocka_unit_test(members_of_teams_do_not_join),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(decisions_beside_who_joins_replay),
        cmocka_unit_test(who_joined_is_in_the_timeline),
        cmocka_unit_test(virtual_time_tells_who_joins),
        cmocka_unit_test(failures_in_pieces_are_told),
        cmocka_unit_test(kernels_are_cut_as_far_as_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
