/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler on real threads and in virtual time. `--bench` prints rough costs instead of testing. */
#include "schedule/decided.h"
#include "dag.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdio.h>
#include <setjmp.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* --- real threads --- */

struct probe {
    const struct dag *dag;
    atomic_int *done;    /* times each task has ended */
    atomic_int *members; /* members that took part */
    atomic_int *pieces;  /* of its open phases, that were run */
    atomic_int mistakes;
    int32_t fails; /* this task fails; -1: none */
    bool barrier;
};

struct probe_piece {
    struct probe *probe;
    int32_t task;
    atomic_uint ran; /* by bit */
};

static void run_piece(void *job, int piece, int pieces, int worker)
{
    struct probe_piece *p = job;
    if (atomic_fetch_or(&p->ran, 1u << piece) & 1u << piece)
        atomic_fetch_add(&p->probe->mistakes, 1);
    atomic_fetch_add_explicit(&p->probe->pieces[p->task], 1, memory_order_relaxed);
}

/* Two phases that others may join: a piece lost or run twice, or in the other one. */
static void probe_open(struct probe *p, int32_t task, struct team *team)
{
    for (int phase = 0; phase < 2; phase++) {
        struct probe_piece piece = {p, task, 0};
        team_open(team, run_piece, &piece, team->pieces);
        if (atomic_load(&piece.ran) != (uint32_t)-1 >> (32 - team->pieces))
            atomic_fetch_add(&p->mistakes, 1);
    }
    if (atomic_load_explicit(&p->pieces[task], memory_order_relaxed) != 2 * team->pieces)
        atomic_fetch_add(&p->mistakes, 1);
}

static graphi_status probe_task(void *context, int32_t task, struct team *team, int member, int width)
{
    struct probe *p = context;
    for (int i = 0; i < p->dag->inputs_count[task]; i++) /* acquire: pairs with the add below */
        if (atomic_load_explicit(&p->done[p->dag->inputs[task][i]], memory_order_acquire) != 1)
            atomic_fetch_add(&p->mistakes, 1);
    atomic_fetch_add(&p->members[task], 1);
    if (team && width == 1)
        probe_open(p, task, team);
    if (p->barrier && width > 1)
        team_barrier(team, member);
    if (p->barrier && atomic_load(&p->members[task]) != width)
        atomic_fetch_add(&p->mistakes, 1);
    if (member > 0)
        return GRAPHI_OK;
    if (task == p->fails)
        return (fail)(GRAPHI_NONFINITE, "task", "found task %d, expected another", task);
    atomic_fetch_add_explicit(&p->done[task], 1, memory_order_release);
    return GRAPHI_OK;
}

static void probe_reset(struct probe *p, const struct dag *dag)
{
    size_t n = (size_t)dag->tasks.count;
    p->dag = dag;
    p->mistakes = 0;
    memset((void *)p->done, 0, n * sizeof *p->done);
    memset((void *)p->members, 0, n * sizeof *p->members);
    memset((void *)p->pieces, 0, n * sizeof *p->pieces);
}

static struct probe probe_of(const struct dag *dag)
{
    size_t n = (size_t)dag->tasks.count;
    struct probe p = {.dag = dag,
                      .done = calloc(n, sizeof *p.done),
                      .members = calloc(n, sizeof *p.members),
                      .pieces = calloc(n, sizeof *p.pieces),
                      .fails = -1,
                      .barrier = true};
    return p;
}

static void probe_free(struct probe *p)
{
    free((void *)p->done);
    free((void *)p->members);
    free((void *)p->pieces);
}

/* Members of teams: a leader first, workers that exist and differ, none of which worked longer than its task took. */
static void check_teams(const struct schedule *s, const struct task_record *records)
{
    const struct team_trace *teams = schedule_teams(s);
    for (int t = 0; t < s->tasks->count && teams->row; t++) {
        const uint16_t *member = teams->member + (teams->member ? (size_t)t * teams->row : 0);
        const int64_t *worked = teams->worked_ns + (size_t)t * teams->row;
        for (int i = 0; i < records[t].width && records[t].width > 1; i++) {
            assert_in_range(worked[i], 0, records[t].end_ns - records[t].start_ns);
            if (!teams->member)
                continue;
            assert_true(i ? member[i] < s->workers + s->siblings : member[0] == records[t].leader);
            for (int k = 0; k < i; k++)
                assert_int_not_equal(member[i], member[k]);
        }
    }
}

/* *part: when the worker is in the task. Under a static driver a member goes on to its next one while others finish. */
static bool takes_part(const struct schedule *s, const struct task_record *records, int32_t task, int worker,
                       struct task_record *part)
{
    const struct task_record *r = &records[task];
    const struct team_trace *teams = schedule_teams(s);
    const size_t row = (size_t)task * teams->row;
    *part = *r;
    for (int m = 0; m < r->width; m++)
        if (worker == (teams->member && r->width > 1 ? teams->member[row + (size_t)m] : r->leader + m)) {
            if (s->setting.driver == GRAPHI_DRIVER_STATIC && s->policy->free_width && m > 0)
                part->end_ns = r->start_ns + teams->worked_ns[row + (size_t)m];
            return true;
        }
    return false;
}

/* Is a worker in the task and in one before it at a time? */
static bool torn(const struct schedule *s, const struct task_record *records, int32_t task)
{
    struct task_record part, other_part;
    for (int worker = 0; worker < s->workers + s->siblings; worker++)
        for (int32_t other = 0; other < task && takes_part(s, records, task, worker, &part); other++)
            if (takes_part(s, records, other, worker, &other_part) && dag_overlap(&part, &other_part))
                return true;
    return false;
}

/* Who joined had no task of its own, and the leader is another. Members of a team may be late for it. */
static void check_joined(const struct schedule *s, int32_t task, const struct task_record *records)
{
    const struct join_trace joined = schedule_joined(s);
    for (int i = 0; i < joined.count; i++) {
        const struct joined *p = &joined.piece[i];
        const struct task_record piece = {.start_ns = p->start_ns, .end_ns = p->end_ns};
        assert_false(dag_overlap(&piece, &records[task]) && p->worker == records[task].leader);
        assert_true(p->task != task || (records[task].open && p->worker != records[task].leader &&
                                        p->start_ns >= records[task].start_ns && p->end_ns <= records[task].end_ns));
    }
}

/* A worker in two tasks at a time, or in one that began before what it needs had ended; an end that is not the one that
 * made its task ready (in sequence that is the turn); a team for a tiny task. */
static void check_times(const struct schedule *s, const struct dag *dag, const struct task_record *records)
{
    for (int32_t t = 0; t < s->tasks->count; t++) {
        int64_t latest = 0;
        bool made_ready = records[t].ready_ns == 0;
        check_joined(s, t, records);
        for (int i = 0; i < dag->inputs_count[t]; i++) {
            int64_t end = records[dag->inputs[t][i]].end_ns;
            latest = end > latest ? end : latest;
            made_ready = i ? made_ready || records[t].ready_ns == end : records[t].ready_ns == end;
        }
        assert_true((schedule_teams(s)->member ? records[t].leader : records[t].leader + records[t].width - 1) <
                    s->workers + s->siblings);
        assert_true(latest <= records[t].start_ns && records[t].ready_ns <= records[t].start_ns);
        assert_true(s->policy->loop == LOOP_SEQUENTIAL ? records[t].ready_ns >= latest : made_ready);
        assert_true(!records[t].inlined || records[t].width == 1);
        assert_false(torn(s, records, t));
    }
}

static void run_setting(const struct dag *dag, const graphi_machine *machine, const graphi_setting *setting, int times)
{
    struct schedule *schedule;
    assert_int_equal(schedule_create(&dag->tasks, setting_decide(setting, machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
    struct lease_options options = setting_decide(setting, machine).lease;
    options.pin = false;
    struct lease lease = {0};
    assert_int_equal(lease_take(machine, &options, &lease), GRAPHI_OK);
    struct probe probe = probe_of(dag);
    assert_int_equal(schedule_trace_teams(schedule), GRAPHI_OK);
    struct task_record *records = calloc((size_t)dag->tasks.count, sizeof *records);
    for (int i = 0; i < times; i++) {
        probe_reset(&probe, dag);
        uint64_t before = mem_allocations();
        assert_int_equal(schedule_run(schedule, &lease, probe_task, &probe, i % 2 ? records : NULL), GRAPHI_OK);
        assert_int_equal(mem_allocations(), before);
        assert_int_equal(probe.mistakes, 0);
        for (int t = 0; t < dag->tasks.count; t++)
            assert_int_equal(probe.done[t], 1);
        if (i % 2) {
            check_teams(schedule, records);
            check_times(schedule, dag, records);
        }
    }
    free(records);
    probe_free(&probe);
    lease_release(&lease);
    schedule_destroy(schedule);
}

static const struct {
    int executors, width, backward, light;
} layouts[] = {{1, 1, 0, -1}, {2, 1, 0, -1}, {1, 2, 0, -1}, {2, 2, 0, -1},
               {3, 1, 0, 1},  {4, 1, 2, -1}, {2, 2, 1, -1}, {4, 1, 0, -1}};

/* Ways to be woken, to join, to hold and to drive, by a number: a layout of a policy has one row, so three of them, and
 * its neighbours have the other row. */
static const int mixes[2][3] = {{0, 2, 6}, {1, 4, 7}};

/* A task lost, run twice, before its predecessors or with half of its team; an allocation during a run. */
static void every_task_once_after_its_predecessors(void **state)
{
    graphi_machine machine = dag_machine(4, 0);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (size_t layout = 0; layout < sizeof layouts / sizeof *layouts; layout++)
            for (int i = 0; i < 3; i++) {
                const int mix = mixes[(policy + (int)layout) % 2][i];
                machine.wake_ns = mix % 4 * 1000;
                const bool join = (mix + (int)layout) % 2; /* of tasks that are predicted to be long */
                struct dag *dag = dag_random_graph((uint64_t)(policy * 100 + mix), 24, 1 + mix,
                                                   join ? 1e5 : mix & 1 ? 1000 : 0, 4);
                graphi_setting setting = {.policy = (graphi_policy)policy,
                                          .executors = layouts[layout].executors,
                                          .width = layouts[layout].width,
                                          .backward_executors = layouts[layout].backward,
                                          .light = layouts[layout].light,
                                          .inlining = mix & 2 ? GRAPHI_OFF : GRAPHI_DEFAULT,
                                          .join = join,
                                          .depth = 1 + mix % 3,
                                          .driver = (graphi_driver)(GRAPHI_DRIVER_DEDICATED + mix % 3)};
                if (mix & 4 && layouts[layout].executors * layouts[layout].width == 4 && mix & 1)
                    setting.driver = GRAPHI_DRIVER_AUTO;
                run_setting(dag, &machine, &setting, 2);
                dag_free(dag);
            }
    free(machine.core);
}

/* Beyond 16 executors completions are found by who says that it has some: a task that is never taken off would stop the
 * run on machines larger than those that tests see. */
static void many_executors_lose_nothing(void **state)
{
    graphi_machine machine = dag_machine(72, 0);
    for (int i = 0; i < 6; i++) {
        struct dag *dag = dag_random_graph(900 + (uint64_t)i, 60, 40, 1000, 4);
        static const graphi_driver drivers[] = {GRAPHI_DRIVER_COMBINING, GRAPHI_DRIVER_DEDICATED, GRAPHI_DRIVER_STATIC};
        const graphi_setting setting = {.policy = i < 2 ? GRAPHI_POLICY_CRITICAL_PATH : GRAPHI_POLICY_FIFO,
                                        .executors = i % 2 ? 66 : 17,
                                        .width = 1,
                                        .driver = drivers[i / 2]};
        run_setting(dag, &machine, &setting, 1);
        dag_free(dag);
    }
    free(machine.core);
}

/* The first failure is lost, its message stays in the worker, a task after it starts, or the schedule cannot be used
 * again. */
static void a_failure_drains_and_is_returned(void **state)
{
    enum { TASKS = 60 };
    graphi_machine machine = dag_machine(4, 0);
    struct dag *dag = dag_random_graph(7, TASKS, 8, 1e5, 4);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++) {
            graphi_setting setting = {.policy = (graphi_policy)policy,
                                      .executors = 2,
                                      .width = 1 + policy % 2,
                                      .driver = (graphi_driver)driver,
                                      .join = GRAPHI_ON,
                                      .light = GRAPHI_ON,
                                      .depth = 1 + policy % 3};
            struct schedule *schedule;
            struct lease lease = {0};
            struct lease_options options = setting_decide(&setting, &machine).lease;
            options.pin = false;
            assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
            assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
            assert_int_equal(lease_take(&machine, &options, &lease), GRAPHI_OK);
            struct probe probe = probe_of(dag);
            probe.barrier = false;
            for (int32_t fails = 0; fails < TASKS; fails += TASKS / 3) {
                probe_reset(&probe, dag);
                probe.fails = fails;
                assert_int_equal(schedule_run(schedule, &lease, probe_task, &probe, NULL), GRAPHI_NONFINITE);
                assert_non_null(strstr(graphi_message(), "found task"));
                assert_int_equal(probe.mistakes, 0);
                assert_int_equal(probe.done[fails], 0);
            }
            probe_reset(&probe, dag);
            probe.fails = -1;
            assert_int_equal(schedule_run(schedule, &lease, probe_task, &probe, NULL), GRAPHI_OK);
            probe_free(&probe);
            lease_release(&lease);
            schedule_destroy(schedule);
        }
    dag_free(dag);
    free(machine.core);
}

/* Decisions on real threads depend on more than the completions in their order. */
static void a_real_run_replays(void **state)
{
    graphi_machine machine = dag_machine(4, 0);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (int driver = GRAPHI_DRIVER_DEDICATED; driver <= GRAPHI_DRIVER_COMBINING; driver++) {
            if (policy == GRAPHI_POLICY_NAIVE || policy == GRAPHI_POLICY_SEQUENTIAL)
                continue;
            struct dag *dag = dag_random_graph((uint64_t)policy, 60, 8, 1000, 3);
            graphi_setting setting = {.policy = (graphi_policy)policy,
                                      .executors = 4,
                                      .width = 1,
                                      .driver = (graphi_driver)driver,
                                      .depth = 1 + policy % 2,
                                      .backward_executors = policy == GRAPHI_POLICY_FIFO ? 2 : 0};
            struct schedule *schedule;
            struct lease lease = {0};
            struct lease_options options = setting_decide(&setting, &machine).lease;
            options.pin = false;
            assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
            assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
            assert_int_equal(schedule_log_enable(schedule), GRAPHI_OK);
            assert_int_equal(lease_take(&machine, &options, &lease), GRAPHI_OK);
            struct probe probe = probe_of(dag);
            for (int i = 0; i < 2; i++) {
                uint64_t replayed;
                probe_reset(&probe, dag);
                assert_int_equal(schedule_run(schedule, &lease, probe_task, &probe, NULL), GRAPHI_OK);
                uint64_t decided = schedule->decisions;
                assert_int_equal(schedule_replay(schedule, &replayed), GRAPHI_OK);
                assert_true(replayed == decided);
            }
            probe_free(&probe);
            lease_release(&lease);
            schedule_destroy(schedule);
            dag_free(dag);
        }
    free(machine.core);
}

/* A simulated execution that a real one repeats: a task ends when all has happened that came before its end there. */
struct score {
    const struct task_record *records; /* of the simulation */
    int count;
    atomic_int started, ended;
    atomic_bool late; /* what should come before did not: other decisions */
};

static graphi_status scored_task(void *context, int32_t task, struct team *team, int member, int width)
{
    struct score *score = context;
    const int64_t end_ns = score->records[task].end_ns, give_up = clock_ns() + 5000000000;
    int starts = 0, ends = 0;
    (void)team, (void)member, (void)width;
    for (int t = 0; t < score->count; t++) {
        starts += score->records[t].start_ns < end_ns;
        ends += score->records[t].end_ns < end_ns;
    }
    atomic_fetch_add(&score->started, 1); /* pairs with the loads below, as does the last line */
    while (atomic_load(&score->started) < starts || atomic_load(&score->ended) < ends) {
        if (clock_ns() > give_up || atomic_load(&score->late)) {
            atomic_store(&score->late, true);
            break;
        }
        sched_yield();
    }
    atomic_fetch_add(&score->ended, 1);
    return GRAPHI_OK;
}

static double scored(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    (void)seat, (void)running, (void)count;
    return 1e6 + (double)(dag_random(*(const uint64_t *)context, task, 5) % 1000003) * 10; /* no two ends at one time */
}

/* Virtual time is not that of real threads: a simulated execution, its ends in the same order on them, has other
 * decisions there. In each of the attempts, which have durations of their own, they are the same. Policies that look at
 * the time (strategy 3, malleable) decide by more than that order, and are replayed in the test before. A task tells
 * its end before its executor does: where the system takes the core away in between, another end overtakes it. So an
 * order that differs is played again; a scheduler that decides otherwise does so every time. */
static void real_threads_repeat_simulated_decisions(void **state)
{
    enum { TASKS = 16, ATTEMPTS = 4, TURNS = 10 };
    static const graphi_policy policies[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_FIFO,     GRAPHI_POLICY_RANDOM,
                                             GRAPHI_POLICY_ASYMMETRIC,    GRAPHI_POLICY_LOCALITY, GRAPHI_POLICY_S1,
                                             GRAPHI_POLICY_S12};
    graphi_machine machine = dag_machine(4, 0);
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        struct dag *dag = dag_random_graph(policies[p], TASKS, 4, 1000000, 0);
        graphi_setting setting = {.policy = policies[p], .executors = 2, .width = 1,
                                  .depth = 1, .driver = GRAPHI_DRIVER_COMBINING};
        struct lease_options options = setting_decide(&setting, &machine).lease;
        struct lease lease = {0};
        struct schedule *schedule;
        options.pin = false;
        assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
        assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
        assert_int_equal(lease_take(&machine, &options, &lease), GRAPHI_OK);
        for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
            struct task_record records[TASKS], real[TASKS];
            struct simulation simulation;
            assert_int_equal(schedule_simulate(schedule, scored, &attempt, records, &simulation), GRAPHI_OK);
            bool same = false;
            for (int turn = 0; turn < TURNS && !same; turn++) {
                struct score score = {.records = records, .count = TASKS};
                assert_int_equal(schedule_run(schedule, &lease, scored_task, &score, real), GRAPHI_OK);
                same = !atomic_load(&score.late) && schedule->decisions == simulation.decisions;
            }
            if (!same)
                fail_msg("%s, attempt %d: other decisions on real threads", graphi_policy_name(setting.policy),
                         (int)attempt);
        }
        lease_release(&lease);
        schedule_destroy(schedule);
        dag_free(dag);
    }
    free(machine.core);
}

/* Equal tasks in virtual time, as they come; gives when each starts. */
static void play_rings(int tasks, double ns, const graphi_setting *setting, int64_t *start)
{
    graphi_machine machine = dag_machine(2, 0);
    struct dag *dag = dag_plain(tasks, 0);
    struct task_record records[64];
    struct schedule *schedule;
    struct simulation simulation;
    machine.wake_ns = 2000;
    dag->curves[0] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {ns}, .best = 1};
    dag_finish(dag);
    assert_in_range(tasks, 1, 64);
    assert_int_equal(schedule_create(&dag->tasks, setting_decide(setting, &machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
    assert_int_equal(schedule_simulate(schedule, NULL, NULL, records, &simulation), GRAPHI_OK);
    for (int t = 0; t < tasks; t++)
        start[t] = records[t].start_ns;
    schedule_destroy(schedule);
    dag_free(dag);
    free(machine.core);
}

/* One ring is filled while another has place: what came first waits there for what came later elsewhere. */
static void rings_fill_evenly(void **state)
{
    enum { TASKS = 7 };
    int64_t start[TASKS];
    const graphi_setting setting = {.policy = GRAPHI_POLICY_FIFO,
                                    .executors = 2,
                                    .width = 1,
                                    .depth = 4,
                                    .light = GRAPHI_OFF,
                                    .inlining = GRAPHI_OFF};
    play_rings(TASKS, 10000, &setting, start);
    for (int t = 2; t < TASKS; t++)
        assert_true(start[t] >= start[t - 2] + 10000);
}

/* A ring gets nothing before it is empty, and its executor waits for a message each time. Its tasks may add up to 64
 * us, and no more are taken ahead when the last is all that is left. */
static void rings_are_filled_again(void **state)
{
    enum { TASKS = 12 };
    int64_t start[TASKS];
    const graphi_setting setting = {.policy = GRAPHI_POLICY_FIFO,
                                    .executors = 1,
                                    .width = 1,
                                    .depth = 8,
                                    .light = GRAPHI_OFF,
                                    .inlining = GRAPHI_OFF,
                                    .driver = GRAPHI_DRIVER_DEDICATED};
    play_rings(TASKS, 30000, &setting, start);
    for (int t = 1; t < TASKS - 1; t++)
        assert_in_range(start[t] - start[t - 1], 30000, 31000);
    assert_true(start[TASKS - 1] - start[TASKS - 2] > 31000);
}

/* The second member of task 0's team fails, long after the leader's share has ended. */
struct late {
    atomic_bool ended;
    atomic_int started; /* of the tasks behind it */
};

static graphi_status fail_late(void *context, int32_t task, struct team *team, int member, int width)
{
    struct late *late = context;
    if (task > 0)
        atomic_fetch_add(&late->started, 1);
    else if (member == 0)
        atomic_store(&late->ended, true);
    else {
        while (!atomic_load(&late->ended))
            sched_yield();
        usleep(2000);
        return (fail)(GRAPHI_NONFINITE, "task", "found member %d late, expected none", member);
    }
    return GRAPHI_OK;
}

/* What follows a task would start although a member of its team failed after the leader had looked. */
static void a_members_late_failure_stops_what_follows(void **state)
{
    static const graphi_policy policies[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_NAIVE,
                                             GRAPHI_POLICY_SEQUENTIAL};
    graphi_machine machine = dag_machine(2, 0);
    struct dag *dag = dag_plain(8, 1);
    dag_finish(dag);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const graphi_setting setting = {.policy = policies[i], .executors = 1, .width = 2, .inlining = GRAPHI_OFF};
        struct late late = {0};
        struct schedule *schedule;
        struct lease lease;
        struct lease_options options = setting_decide(&setting, &machine).lease;
        assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
        assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
        assert_int_equal(lease_take(&machine, &options, &lease), GRAPHI_OK);
        assert_int_equal(schedule_run(schedule, &lease, fail_late, &late, NULL), GRAPHI_NONFINITE);
        assert_non_null(strstr(graphi_message(), "found member 1 late"));
        assert_int_equal(late.started, 0);
        lease_release(&lease);
        schedule_destroy(schedule);
    }
    dag_free(dag);
    free(machine.core);
}

/* The naive baseline is served by somebody instead of polling: every task is taken by a look at the queue, and
 * executors that find nothing look again. */
static void naive_executors_poll(void **state)
{
    graphi_machine machine = dag_machine(4, 0);
    struct dag *dag = dag_random_graph(7, 200, 2, 1000, 0);
    graphi_setting setting = {.policy = GRAPHI_POLICY_NAIVE, .executors = 4, .width = 1};
    struct schedule *schedule;
    struct lease lease = {0};
    struct lease_options options = {.workers = 4};
    struct probe probe = probe_of(dag);
    assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
    assert_int_equal(lease_take(&machine, &options, &lease), GRAPHI_OK);
    assert_int_equal(schedule_run(schedule, &lease, probe_task, &probe, NULL), GRAPHI_OK);
    assert_true(naive_polls(schedule) > 200);
    lease_release(&lease);
    schedule_destroy(schedule);
    probe_free(&probe);
    dag_free(dag);
    free(machine.core);
}

/* What an executor of the naive queue spends outside of the lock is forgotten, or held against the others as the lock
 * is. */
static void an_entry_costs_its_executor_alone(void **state)
{
    double makespan[2][2];
    struct dag *dag = dag_random_graph(7, 200, 2, 1000, 0);
    for (int executors = 1; executors <= 2; executors++)
        for (int entry = 0; entry < 2; entry++) {
            graphi_machine machine = dag_machine(2, 0);
            machine.entry_ns = 5000 * entry;
            graphi_setting setting = {
                .policy = GRAPHI_POLICY_NAIVE, .executors = executors, .width = 1, .inlining = GRAPHI_OFF};
            struct schedule *schedule;
            struct simulation simulation;
            assert_int_equal(schedule_create(&dag->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
            assert_int_equal(schedule_decide(schedule), GRAPHI_OK);
            assert_int_equal(schedule_simulate(schedule, NULL, NULL, NULL, &simulation), GRAPHI_OK);
            makespan[executors - 1][entry] = simulation.makespan_ns;
            schedule_destroy(schedule);
            free(machine.core);
        }
    double alone = makespan[0][1] - makespan[0][0];
    assert_true(alone > 198 * 5000 && alone < 201 * 5000); /* the last one's entry ends after the last operation */
    assert_true(makespan[1][1] - makespan[1][0] < 0.7 * alone);
    dag_free(dag);
}

int bench(void);
#include "scheduler_bench.h"

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_once_after_its_predecessors),
        cmocka_unit_test(many_executors_lose_nothing),
        cmocka_unit_test(a_failure_drains_and_is_returned),
        cmocka_unit_test(a_members_late_failure_stops_what_follows),
        cmocka_unit_test(a_real_run_replays),
        cmocka_unit_test(real_threads_repeat_simulated_decisions),
        cmocka_unit_test(rings_fill_evenly),
        cmocka_unit_test(rings_are_filled_again),
        cmocka_unit_test(naive_executors_poll),
        cmocka_unit_test(an_entry_costs_its_executor_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
