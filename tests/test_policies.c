/* SPDX-License-Identifier: Apache-2.0 */
/* What each policy promises, asserted in virtual time, where every decision repeats. */
#include "schedule/decided.h"
#include "dag.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

struct played {
    struct simulation simulation;
    struct task_record *records;
};

static struct played play(const struct dag *dag, const graphi_machine *machine, const graphi_setting *setting)
{
    struct schedule *schedule;
    struct played p = {.records = calloc((size_t)dag->tasks.count, sizeof *p.records)};
    assert_int_equal(schedule_create(&dag->tasks, setting_decide(setting, machine), &schedule), GRAPHI_OK);
    assert_int_equal(schedule_simulate(schedule, NULL, NULL, p.records, &p.simulation), GRAPHI_OK);
    schedule_destroy(schedule);
    return p;
}

static struct played play_simple(const struct dag *dag, graphi_policy policy, int executors, int width, int cores)
{
    graphi_machine machine = dag_machine(cores, 0);
    graphi_setting setting = {
        .policy = policy, .executors = executors, .width = width, .light = GRAPHI_OFF, .inlining = GRAPHI_OFF};
    struct played p = play(dag, &machine, &setting);
    free(machine.core);
    return p;
}

/* A task with a lower level is started while one with a higher level waits. */
static void critical_path_first(void **state)
{
    for (int executors = 1; executors <= 4; executors *= 2) {
        struct dag *g = dag_random_graph((uint64_t)executors, 200, 8, 1000, 0);
        struct played p = play_simple(g, GRAPHI_POLICY_CRITICAL_PATH, executors, 1, 4);
        for (int a = 0; a < g->tasks.count; a++)
            for (int b = 0; b < g->tasks.count; b++)
                if (p.records[b].ready_ns <= p.records[a].start_ns && p.records[b].start_ns > p.records[a].start_ns)
                    assert_true(g->level[b] <= g->level[a]);
        free(p.records);
        dag_free(g);
    }
}

/* A task that became ready later overtakes one that waits. */
static void first_in_first_out(void **state)
{
    struct dag *g = dag_random_graph(3, 200, 8, 1000, 0);
    struct played p = play_simple(g, GRAPHI_POLICY_FIFO, 2, 1, 4);
    for (int a = 0; a < g->tasks.count; a++)
        for (int b = 0; b < g->tasks.count; b++)
            if (p.records[a].start_ns < p.records[b].start_ns)
                assert_true(p.records[a].ready_ns <= p.records[b].ready_ns);
    free(p.records);
    dag_free(g);
}

/* The seed does not matter, or something else than the seed does. */
static void random_follows_its_seed(void **state)
{
    struct dag *g = dag_random_graph(4, 200, 8, 1000, 0);
    graphi_machine machine = dag_machine(2, 0);
    uint64_t decisions[3];
    for (int i = 0; i < 3; i++) {
        graphi_setting setting = {
            .policy = GRAPHI_POLICY_RANDOM, .executors = 2, .width = 1, .parameters = {{"seed", (i / 2)}}};
        struct played p = play(g, &machine, &setting);
        decisions[i] = p.simulation.decisions;
        free(p.records);
    }
    assert_true(decisions[0] == decisions[1] && decisions[0] != decisions[2]);
    free(machine.core);
    dag_free(g);
}

/* Tasks overlap, leave array order, or do not get all workers. */
static void sequential_in_array_order(void **state)
{
    struct dag *g = dag_random_graph(5, 100, 8, 1000, 0);
    struct played p = play_simple(g, GRAPHI_POLICY_SEQUENTIAL, 2, 2, 4);
    for (int t = 1; t < g->tasks.count; t++) {
        assert_true(p.records[t].start_ns >= p.records[t - 1].end_ns);
        assert_int_equal(p.records[t].width, 4);
    }
    assert_true(p.simulation.mean_corunning == 1);
    free(p.records);
    dag_free(g);
}

/* Pollers of the shared queue cost nothing: more idle executors must make the queue slower. */
static void naive_pollers_contend(void **state)
{
    struct dag *g = dag_plain(100, 1);
    dag_finish(g);
    double before = 0;
    for (int cores = 1; cores <= 64; cores *= 4) {
        graphi_machine machine = dag_machine(cores, 0);
        machine.lock_ns = 20;
        machine.atomic_ns = 30;
        graphi_setting setting = {.policy = GRAPHI_POLICY_NAIVE, .executors = cores, .width = 1};
        struct played p = play(g, &machine, &setting);
        assert_true(p.simulation.makespan_ns > before);
        before = p.simulation.makespan_ns;
        free(p.records);
        free(machine.core);
    }
    dag_free(g);
}

/* Of teams of 4, 2 and 1 threads, by kind: serial, element-wise, products, convolutions. */
static const int width_of_class[] = {1, 2, 4, 4};

/* A chain whose tasks differ in class must move between teams of the sizes that the classes ask for. */
static void asymmetric_by_class(void **state)
{
    struct dag *g = dag_plain(16, 1);
    for (int t = 0; t < 16; t++)
        g->scalability[t] = (uint8_t)(t % 4);
    dag_finish(g);
    struct played p = play_simple(g, GRAPHI_POLICY_ASYMMETRIC, 8, 2, 16);
    for (int t = 0; t < 16; t++)
        assert_int_equal(p.records[t].width, width_of_class[t % 4]);
    free(p.records);
    dag_free(g);
}

/* A class by the word of its kind alone: a product of few rows took the widest team, whatever it was measured to gain
 * there. */
static void measured_curves_decide_the_class(void **state)
{
    static const struct {
        double serial_ns, parallel_ns; /* of which it takes 4 us on one thread */
        int saturation, width;
    } curves[DAG_CURVES] = {{4000, 0, 1, 1},    {0, 4000, 64, 4},   {0, 4000, 2, 2},
                            {1500, 2500, 8, 2}, {300, 3700, 64, 4}, {2000, 2000, 64, 1}};
    for (int measured = 0; measured < 2; measured++) {
        struct dag *g = dag_plain(4 * DAG_CURVES, 1);
        for (int t = 0; t < g->tasks.count; t++) {
            dag_set_class(g, t, t % DAG_CURVES);
            g->scalability[t] = (uint8_t)(t % 4);
        }
        for (int i = 0; i < DAG_CURVES; i++) {
            g->curves[i] = dag_curve(curves[i].serial_ns, curves[i].parallel_ns, curves[i].saturation);
            g->curves[i].source = measured ? GRAPHI_CURVE_MEASURED : GRAPHI_CURVE_MODELLED;
        }
        dag_finish(g);
        struct played p = play_simple(g, GRAPHI_POLICY_ASYMMETRIC, 8, 2, 16);
        for (int t = 0; t < g->tasks.count; t++)
            assert_int_equal(p.records[t].width, measured ? curves[t % DAG_CURVES].width : width_of_class[t % 4]);
        free(p.records);
        dag_free(g);
    }
}

/* Four chains of unequal tasks on four executors: each stays where it began, even with every other task inline. */
static void locality_keeps_chains(void **state)
{
    graphi_machine machine = dag_machine(4, 0);
    const graphi_setting setting = {.policy = GRAPHI_POLICY_LOCALITY, .executors = 4, .width = 1, .light = GRAPHI_OFF};
    for (int inlined = 0; inlined < 2; inlined++) {
        struct dag *g = dag_plain(80, 4);
        for (int t = 0; t < 80; t++) {
            g->flags[t] = inlined && t / 4 % 2 ? TASK_INLINE : 0;
            dag_set_class(g, t, g->flags[t] ? 0 : (int)(dag_random(9, t, 0) % DAG_CURVES));
        }
        dag_finish(g);
        struct played p = play(g, &machine, &setting);
        for (int t = 4; t < 80; t++)
            assert_int_equal(p.records[t].leader, p.records[t - 4].leader);
        free(p.records);
        dag_free(g);
    }
    free(machine.core);
}

/* The light executor takes small operations and nothing else. */
static void light_executor_takes_light_tasks(void **state)
{
    struct dag *g = dag_plain(40, 4);
    for (int t = 0; t < 40; t++)
        g->flags[t] = t % 4 == 0 ? TASK_LIGHT : 0;
    dag_finish(g);
    graphi_machine machine = dag_machine(4, 0);
    graphi_setting setting = {.executors = 3, .width = 1, .light = GRAPHI_ON};
    struct played p = play(g, &machine, &setting);
    for (int t = 0; t < 40; t++)
        assert_int_equal(p.records[t].leader == 3, t % 4 == 0);
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* Teams keep the width of the forward pass in the backward one. */
static void phases_change_widths(void **state)
{
    struct dag *g = dag_plain(40, 4);
    for (int t = 20; t < 40; t++)
        g->flags[t] = TASK_BACKWARD;
    dag_finish(g);
    graphi_machine machine = dag_machine(8, 0);
    graphi_setting setting = {.executors = 2, .width = 4, .backward_executors = 4};
    struct played p = play(g, &machine, &setting);
    for (int t = 0; t < 40; t++) {
        assert_int_equal(p.records[t].width, t < 20 ? 4 : 2);
        assert_int_equal(p.records[t].leader % p.records[t].width, 0);
    }
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* Three executors for the backward pass that do not divide eight workers: a fourth team of two would fit. */
static void no_more_than_the_backward_executors(void **state)
{
    struct dag *g = dag_plain(40, 8);
    for (int t = 0; t < 40; t++)
        g->flags[t] = t < 16 ? 0 : TASK_BACKWARD;
    dag_finish(g);
    graphi_machine machine = dag_machine(8, 0);
    graphi_setting setting = {.executors = 4, .width = 2, .backward_executors = 3};
    struct played p = play(g, &machine, &setting);
    int most[2] = {0};
    for (int t = 0; t < 40; t++) {
        int beside[2] = {0};
        for (int u = 0; u < 40; u++)
            if (p.records[u].start_ns <= p.records[t].start_ns && p.records[u].end_ns > p.records[t].start_ns)
                beside[u >= 16]++;
        for (int pass = 0; pass < 2; pass++)
            most[pass] = beside[pass] > most[pass] ? beside[pass] : most[pass];
        assert_int_equal(p.records[t].width, 2);
    }
    assert_int_equal(most[0], 4);
    assert_int_equal(most[1], 3);
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* Tiny tasks are sent like others, or run somewhere else than where they became ready. */
static void tiny_tasks_run_where_triggered(void **state)
{
    struct dag *g = dag_plain(40, 4);
    for (int t = 4; t < 40; t++)
        g->flags[t] = t / 4 % 2 ? TASK_INLINE : 0;
    dag_finish(g);
    graphi_machine machine = dag_machine(4, 0);
    graphi_setting setting = {.executors = 4, .width = 1, .light = GRAPHI_OFF};
    struct played p = play(g, &machine, &setting);
    for (int t = 4; t < 40; t++) {
        assert_int_equal(p.records[t].inlined, t / 4 % 2);
        if (t / 4 % 2) {
            assert_int_equal(p.records[t].leader, p.records[t - 4].leader);
            assert_int_equal(p.records[t].start_ns, p.records[t - 4].end_ns);
        }
    }
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* Work that takes less time than a message is sent all the same, or work that takes more is not. */
static void little_work_stays_with_the_worker_at_hand(void **state)
{
    graphi_machine machine = dag_machine(4, 0);
    machine.wake_ns = 1000;
    machine.schedule_ns = 40;
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (int big = 0; big < 2; big++) {
            if (policy == GRAPHI_POLICY_NAIVE || policy == GRAPHI_POLICY_SEQUENTIAL || policy == GRAPHI_POLICY_S1 ||
                policy == GRAPHI_POLICY_S12)
                continue; /* no scheduling step, or one task at a time */
            struct dag *g = dag_plain(80, 8);
            for (int i = 0; i < DAG_CURVES; i++)
                g->curves[i] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {big ? 10000 : 10}, .best = 1};
            dag_finish(g);
            const int light = policy == GRAPHI_POLICY_FIFO ? 1 : -1;
            memset(g->flags, light > 0 ? TASK_LIGHT : 0, 80);
            graphi_setting setting = {
                .policy = (graphi_policy)policy, .executors = light > 0 ? 3 : 4, .width = 1, .light = light};
            struct played p = play(g, &machine, &setting);
            int elsewhere = 0;
            for (int t = 0; t < 80; t++)
                elsewhere += p.records[t].leader != 0;
            assert_true(big ? elsewhere >= 40 : elsewhere == 0);
            free(p.records);
            dag_free(g);
        }
    free(machine.core);
}

/* Curves 0 and 1 share a kind; 1 is the larger instance and is fastest at 8, 0 at 2. */
static struct dag *two_instances(void)
{
    struct dag *g = dag_plain(20, 4);
    g->curves[0] = dag_curve(0, 1000, 2);
    g->curves[1] = dag_curve(0, 50000, 8);
    for (int t = 0; t < 20; t++)
        g->curve_of[t] = t % 2;
    dag_finish(g);
    return g;
}

/* Strategy 1: the best width of each instance; strategy 2: of its kind's largest one. Both one at a time. */
static void strategies_1_and_2_choose_widths(void **state)
{
    struct dag *g = two_instances();
    for (int strategy = 1; strategy <= 2; strategy++) {
        struct played p = play_simple(g, strategy == 1 ? GRAPHI_POLICY_S1 : GRAPHI_POLICY_S12, 16, 1, 16);
        for (int t = 0; t < 20; t++) {
            assert_int_equal(p.records[t].width, strategy == 2 || t % 2 ? 8 : 2);
            for (int u = 0; u < t; u++)
                assert_false(dag_overlap(&p.records[t], &p.records[u]));
        }
        free(p.records);
    }
    dag_free(g);
}

/* A team that was chosen because one worker a tile is faster takes the time of neighbours. */
static void teams_take_the_time_of_their_mode(void **state)
{
    for (int policy = GRAPHI_POLICY_S1; policy <= GRAPHI_POLICY_S123; policy++) {
        struct dag *g = dag_plain(1, 0);
        g->curves[0] = (struct cost_curve){
            .samples = 2, .width = {1, 2}, .ns = {1000, 900}, .spread_ns = {0, 500}, .best = 2};
        dag_finish(g);
        struct played p = play_simple(g, (graphi_policy)policy, 4, 1, 4);
        assert_int_equal(p.records[0].width, 2);
        assert_true(p.records[0].spread);
        assert_int_equal(p.records[0].end_ns - p.records[0].start_ns, 500);
        free(p.records);
        dag_free(g);
    }
}

/* The example of concurrency-control.txt III-D: 20 of 68 cores idle, the other 48 busy for 1.9 s. Of 20 threads for 1.3
 * s, 18 for 1.5 s and 16 for 2.1 s the second is taken; without co-running nothing would be. With one candidate, or a
 * tolerance below the two threads that lie between, it is the first: a constant that is not read would not be missed.
 */
static void strategy_3_takes_the_papers_candidate(void **state)
{
    struct dag *g = dag_plain(2, 0);
    g->curves[0] = (struct cost_curve){.samples = 1, .width = {48}, .ns = {1.9e6}, .best = 48};
    g->curves[1] = (struct cost_curve){.samples = 3, .width = {16, 18, 20}, .ns = {2.1e6, 1.5e6, 1.3e6}, .best = 20};
    dag_set_class(g, 1, 1);
    dag_finish(g);
    graphi_machine machine = dag_machine(68, 0);
    static const struct {
        int candidates, tolerance, width;
    } cases[] = {{3, 2, 18}, {2, 2, 18}, {1, 2, 20}, {3, 1, 20}, {3, 4, 18}, {2, -1, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = 68, .width = 1,
                                  .parameters = {{"candidates", cases[i].candidates},
                                                 {"tolerance", cases[i].tolerance}}};
        struct played p = play(g, &machine, &setting);
        assert_int_equal(p.records[0].width, 48);
        assert_int_equal(p.records[1].width, cases[i].width);
        assert_true(dag_overlap(&p.records[0], &p.records[1]));
        free(p.records);
    }
    free(machine.core);
    dag_free(g);
}

/* On few cores every width is a candidate: a lone task on one of two cores, or tasks of equal length one after the
 * other, would lose against the uniform settings. */
static void strategy_3_fills_few_cores(void **state)
{
    for (int chains = 0; chains < 2; chains++) {
        struct dag *g = dag_plain(10, chains);
        for (int i = 0; i < DAG_CURVES; i++)
            g->curves[i] = (struct cost_curve){.samples = 2, .width = {1, 2}, .ns = {50000, 28000}, .best = 2};
        dag_finish(g);
        struct played p = play_simple(g, GRAPHI_POLICY_S123, 2, 1, 2);
        for (int t = 0; t < 10; t++)
            assert_int_equal(p.records[t].width, chains ? 2 : 1);
        assert_true(p.simulation.makespan_ns < (chains ? 10 * 28100 : 5 * 50100));
        free(p.records);
        dag_free(g);
    }
}

/* While one operation holds all cores, a small one runs on a sibling; with strategy 3 alone it waits. */
static void strategy_4_uses_siblings(void **state)
{
    struct dag *g = dag_plain(2, 0);
    g->curves[0] = dag_curve(0, 1e6, 64);
    g->curves[1] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {5000}, .best = 1};
    dag_set_class(g, 1, 1);
    dag_finish(g);
    graphi_machine machine = dag_machine(8, 8);
    for (int with = 0; with < 2; with++) {
        graphi_setting setting = {
            .policy = with ? GRAPHI_POLICY_S1234 : GRAPHI_POLICY_S123, .executors = 8, .width = 1};
        struct played p = play(g, &machine, &setting);
        assert_int_equal(p.records[0].width, 8);
        assert_int_equal(dag_overlap(&p.records[0], &p.records[1]), with);
        assert_int_equal(p.records[1].leader >= 8, with);
        free(p.records);
    }
    free(machine.core);
    dag_free(g);
}

/* Where all cores are busy but nobody has them all, strategy 4 is strategy 3: the cores of narrow operations would be
 * halved for what soon finds cores of its own. */
static void strategy_4_wants_an_operation_on_all_cores(void **state)
{
    struct dag *g = dag_plain(3, 0);
    g->curves[0] = (struct cost_curve){.samples = 2, .width = {1, 4}, .ns = {400000, 100000}, .best = 4};
    g->curves[1] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {5000}, .best = 1};
    dag_set_class(g, 2, 1);
    dag_finish(g);
    graphi_machine machine = dag_machine(8, 8);
    graphi_setting setting = {.policy = GRAPHI_POLICY_S1234, .executors = 8, .width = 1};
    struct played p = play(g, &machine, &setting);
    assert_true(p.records[0].width == 4 && p.records[1].width == 4 && dag_overlap(&p.records[0], &p.records[1]));
    assert_true(p.records[2].leader < 8 && p.records[2].start_ns >= p.records[0].end_ns);
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* A core whose sibling runs something would do its own as fast as before: half a core for nothing. Together they do
 * 1.03 times what one does, for as long as both are busy; a team of eight loses what one of its cores does. */
static void siblings_share_their_core(void **state)
{
    static const struct {
        int cores;
        double own_ns, small_ns;
    } cases[] = {{1, 1e6, 1e6}, {1, 3e6, 1e6}, {8, 1e5, 5e3}};
    const double half = 1.03 / 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int cores = cases[i].cores;
        double own = cases[i].own_ns, small = cases[i].small_ns, both = small / half;
        double end = both + own - both * (cores - 1 + half) / cores;
        struct dag *g = dag_plain(2, 0);
        g->curves[0] = (struct cost_curve){
            .samples = 2, .width = {1, 8}, .ns = {cores > 1 ? 8 * own : own, own}, .best = cores};
        g->curves[1] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {small}, .best = 1};
        dag_set_class(g, 1, 1);
        dag_finish(g);
        graphi_machine machine = dag_machine(cores, cores);
        graphi_setting setting = {.policy = GRAPHI_POLICY_S1234, .executors = cores, .width = 1};
        struct played p = play(g, &machine, &setting);
        assert_int_equal(p.records[0].width, cores);
        assert_int_equal(p.records[1].leader, cores);
        assert_in_range(p.records[1].end_ns, (int64_t)both - 1, (int64_t)both + 1);
        assert_in_range(p.records[0].end_ns, (int64_t)end - 1, (int64_t)end + 1);
        assert_in_range((int64_t)p.simulation.makespan_ns, (int64_t)end - 1, (int64_t)end + 1);
        assert_in_range((int64_t)p.simulation.busy_ns, (int64_t)(cores * end) - 8, (int64_t)(cores * end) + 8);
        free(p.records);
        free(machine.core);
        dag_free(g);
    }
}

/* Operations that profiling found a third slower beside others (large convolutions on two cores with one cache) take
 * turns on all cores from the first execution on; those that hardly notice each other run side by side. */
static void strategy_3_goes_by_measured_interference(void **state)
{
    for (int slow = 0; slow < 2; slow++) {
        struct dag *g = dag_plain(10, 0);
        for (int i = 0; i < DAG_CURVES; i++)
            g->curves[i] = (struct cost_curve){
                .samples = 2, .width = {1, 2}, .ns = {50000, 28000}, .best = 2, .beside = slow ? 1.3 : 1.05};
        dag_finish(g);
        struct played p = play_simple(g, GRAPHI_POLICY_S123, 2, 1, 2);
        for (int t = 0; t < 10; t++)
            assert_int_equal(p.records[t].width, slow ? 2 : 1);
        free(p.records);
        dag_free(g);
    }
}

/* A shortcut (memoised decisions, tables instead of logarithms, sums kept up to date) that decides otherwise than the
 * rules spelled out: the hash of all decisions of both strategies over wide and narrow graphs was taken before any, and
 * again when the rule changed (of equally long operations that on the longest path first; siblings only of one that has
 * all cores), or the times did (of teams of one worker a tile, of cores with both threads busy), and no shortcut did.
 */
static void shortcuts_decide_as_the_rules_do(void **state)
{
    uint64_t all = HASH_START;
    for (int i = 0; i < 24; i++) {
        struct dag *g = dag_random_graph((uint64_t)i, 300 + 40 * i, 1 + 7 * i % 90, 2000.0 * (i + 1), 2);
        for (int c = 0; c < DAG_CURVES; c++)
            for (int k = 0; k < 6; k++) /* one a tile: faster here and there */
                g->curves[c].spread_ns[k] = g->curves[c].ns[k] * (0.9 + 0.05 * ((c + k + i) % 4));
        graphi_machine machine = dag_machine(i % 3 ? 68 : 5, i % 2 ? 0 : 5);
        machine.wake_ns = 100;
        machine.schedule_ns = 40;
        machine.atomic_ns = 10;
        for (int policy = GRAPHI_POLICY_S123; policy <= GRAPHI_POLICY_S1234; policy++) {
            graphi_setting setting = {.policy = (graphi_policy)policy, .executors = machine.cores, .width = 1};
            struct schedule *schedule;
            struct simulation s;
            assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
            assert_int_equal(schedule_simulate(schedule, NULL, NULL, NULL, &s),
                             GRAPHI_OK); /* before anything is observed */
            all = hash_u64(all, s.decisions);
            schedule_destroy(schedule);
        }
        free(machine.core);
        dag_free(g);
    }
    assert_true(all == 0x7ef924e5ef2db041ull);
}

/* Short tasks could be sent behind a long one while another executor is about to have room, and wait for its end. */
static void nothing_waits_behind_a_long_task(void **state)
{
    (void)state;
    struct dag *g = dag_plain(33, 0);
    g->curves[1] = (struct cost_curve){.samples = 1, .width = {1}, .ns = {100000}, .best = 1};
    dag_set_class(g, 0, 1);
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.executors = 2, .width = 1, .depth = 8, .light = GRAPHI_OFF, .inlining = GRAPHI_OFF};
    struct played p = play(g, &machine, &setting);
    for (int t = 1; t < 33; t++) {
        assert_int_not_equal(p.records[t].leader, p.records[0].leader);
        assert_true(p.records[t].end_ns < p.records[0].end_ns);
    }
    assert_true(p.simulation.deciding_ns >= 0);
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* With little ready, executors could fill their rings with what matters least, and run it before what matters most has
 * become ready. */
static void scarce_tasks_are_not_taken_ahead(void **state)
{
    (void)state;
    struct dag *g = dag_plain(10, 0); /* two chains from tasks 0 and 1; nobody waits for 2 and 3 */
    for (int t = 4; t < 10; t++)
        g->inputs[t][g->inputs_count[t]++] = t < 6 ? t - 4 : t - 2;
    dag_finish(g);
    graphi_machine machine = dag_machine(2, 0);
    graphi_setting setting = {.executors = 2, .width = 1, .depth = 8, .light = GRAPHI_OFF, .inlining = GRAPHI_OFF};
    struct played p = play(g, &machine, &setting);
    for (int t = 4; t < 8; t++) /* the last of the chains matter as little */
        for (int low = 2; low < 4; low++)
            assert_true(p.records[t].start_ns < p.records[low].start_ns);
    free(p.records);
    free(machine.core);
    dag_free(g);
}

/* One ready task that scales gets all workers; as many as workers get one each. */
static void malleable_shares_out_workers(void **state)
{
    struct dag *chain = dag_plain(10, 1), *wide = dag_plain(64, 8);
    dag_finish(chain);
    dag_finish(wide);
    struct played p = play_simple(chain, GRAPHI_POLICY_MALLEABLE, 8, 1, 8);
    for (int t = 0; t < 10; t++)
        assert_int_equal(p.records[t].width, 8);
    free(p.records);
    p = play_simple(wide, GRAPHI_POLICY_MALLEABLE, 8, 1, 8);
    for (int t = 0; t < 56; t++)
        assert_int_equal(p.records[t].width, 1);
    free(p.records);
    dag_free(chain);
    dag_free(wide);
}

static double best_makespan(const struct dag *g, int cores, graphi_policy policy)
{
    graphi_machine machine = dag_machine(cores, 0);
    machine.wake_ns = 100;
    machine.schedule_ns = 40;
    machine.atomic_ns = 10;
    double best = 1e30;
    for (int width = 1; width <= cores; width *= 2)
        for (int uniform = 0; uniform < (policy == GRAPHI_POLICY_MALLEABLE ? 2 : 1); uniform++) {
            graphi_setting setting = {.policy = policy,
                                      .executors = cores / width,
                                      .width = width,
                                      .light = GRAPHI_OFF,
                                      .uniform = uniform,
                                      .driver = GRAPHI_DRIVER_COMBINING};
            struct played p = play(g, &machine, &setting);
            best = p.simulation.makespan_ns < best ? p.simulation.makespan_ns : best;
            free(p.records);
        }
    free(machine.core);
    return best;
}

/* Choosing widths loses against fixed ones although both are searched over the same teams. */
static void malleable_is_never_worse(void **state)
{
    static const graphi_policy papers[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_ASYMMETRIC,
                                           GRAPHI_POLICY_LOCALITY,      GRAPHI_POLICY_S1,
                                           GRAPHI_POLICY_S12,           GRAPHI_POLICY_S123};
    for (int wide = 1; wide <= 32; wide = wide < 4 ? wide + 1 : wide * 2) {
        struct dag *g = dag_random_graph((uint64_t)wide, 600, wide, 20000, 1);
        double ours = best_makespan(g, 8, GRAPHI_POLICY_MALLEABLE);
        for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
            assert_true(ours <= 1.002 * best_makespan(g, 8, papers[i]));
        dag_free(g);
    }
}

/* For each policy the width of a random graph on which it decides as no other does: otherwise it would be one policy
 * with two names. Where executors are seldom idle, the naive queue serves tasks as first-in-first-out does. */
static const struct {
    graphi_policy policy;
    int wide;
} own_graph[] = {
    {GRAPHI_POLICY_CRITICAL_PATH, 5}, {GRAPHI_POLICY_FIFO, 3},       {GRAPHI_POLICY_RANDOM, 5},
    {GRAPHI_POLICY_NAIVE, 3},         {GRAPHI_POLICY_SEQUENTIAL, 5}, {GRAPHI_POLICY_ASYMMETRIC, 5},
    {GRAPHI_POLICY_LOCALITY, 5},      {GRAPHI_POLICY_S1, 5},         {GRAPHI_POLICY_S12, 5},
    {GRAPHI_POLICY_S123, 5},          {GRAPHI_POLICY_S1234, 5},      {GRAPHI_POLICY_MALLEABLE, 5},
};

static uint64_t decisions_on(const struct dag *g, int policy)
{
    graphi_machine machine = dag_machine(8, 8);
    graphi_setting setting = {
        .policy = (graphi_policy)policy, .executors = 4, .width = 2, .driver = GRAPHI_DRIVER_DEDICATED,
        .parameters = {{"seed", 1}}};
    struct played p = play(g, &machine, &setting);
    free(p.records);
    free(machine.core);
    return p.simulation.decisions;
}

static void every_policy_decides_differently(void **state)
{
    const int rows = sizeof own_graph / sizeof *own_graph;
    for (int i = 0; i < GRAPHI_POLICIES; i++) {
        if (i >= rows || own_graph[i].policy != (graphi_policy)i)
            fail_msg("found no row of %s at %d in own_graph, expected all policies in order",
                     graphi_policy_name((graphi_policy)i), i);
        struct dag *g = dag_random_graph(11, 120, own_graph[i].wide, 20000, 0);
        uint64_t own = decisions_on(g, i);
        for (int other = 0; other < GRAPHI_POLICIES; other++)
            if (other != i && decisions_on(g, other) == own)
                fail_msg("%s decides as %s does", graphi_policy_name((graphi_policy)i),
                         graphi_policy_name((graphi_policy)other));
        dag_free(g);
    }
}

static double recorded(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    const struct task_record *records = context;
    return (double)(records[task].end_ns - records[task].start_ns);
}

static double unsteady(void *context, int32_t task, struct seat seat, const int32_t *running, int count)
{
    const struct dag *g = context;
    return (double)(int64_t)(curve_ns(&g->curves[g->curve_of[task]], seat.width) *
                             (1 + dag_random(77, task, seat.width) % 64 / 64.0));
}

/* The step depends on something else than what it is told: durations of a trace played again give other decisions. */
static void durations_of_a_trace_repeat_decisions(void **state)
{
    graphi_machine machine = dag_machine(8, 8);
    machine.wake_ns = 2000;
    machine.schedule_ns = 30;
    machine.atomic_ns = 10;
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (int driver = GRAPHI_DRIVER_DEDICATED; driver <= GRAPHI_DRIVER_COMBINING; driver++) {
            struct dag *g = dag_random_graph((uint64_t)policy, 200, 10, 3000, 3);
            struct task_record *records = calloc(200, sizeof *records);
            graphi_setting setting = {
                .policy = (graphi_policy)policy, .executors = 4, .width = 2, .driver = (graphi_driver)driver};
            struct schedule *first, *second;
            struct simulation a, b;
            uint64_t replayed;
            schedule_create(&g->tasks, setting_decide(&setting, &machine), &first);
            schedule_create(&g->tasks, setting_decide(&setting, &machine), &second);
            assert_int_equal(schedule_log_enable(first), GRAPHI_OK);
            schedule_simulate(first, unsteady, g, records, &a);
            bool shares = false; /* siblings are slowed down by the simulation, once more when played again */
            for (int t = 0; t < 200; t++)
                shares = shares || records[t].leader >= 8;
            schedule_simulate(second, recorded, records, NULL, &b);
            assert_true(shares || a.decisions == b.decisions);
            if (policy != GRAPHI_POLICY_NAIVE && policy != GRAPHI_POLICY_SEQUENTIAL) {
                assert_int_equal(schedule_replay(first, &replayed), GRAPHI_OK);
                assert_true(replayed == a.decisions);
            }
            schedule_destroy(first);
            schedule_destroy(second);
            free(records);
            dag_free(g);
        }
    free(machine.core);
}

/* A create that fails half-way leaks or crashes. */
static void create_survives_failed_allocations(void **state)
{
    struct dag *g = dag_random_graph(1, 50, 5, 1000, 0);
    graphi_machine machine = dag_machine(4, 4);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        graphi_setting setting = {.policy = (graphi_policy)policy, .executors = 4, .width = 1};
        for (long n = 0;; n++) {
            struct schedule *schedule = NULL;
            mem_fail_after(n);
            graphi_status status = schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule);
            mem_fail_after(-1);
            schedule_destroy(schedule);
            if (status == GRAPHI_OK)
                break;
            assert_int_equal(status, GRAPHI_MEMORY);
            assert_null(schedule);
        }
    }
    free(machine.core);
    dag_free(g);
}

/* A simulation that runs out of memory crashes or leaves a result. */
static void simulation_survives_failed_allocations(void **state)
{
    struct dag *g = dag_random_graph(1, 50, 5, 1000, 0);
    graphi_machine machine = dag_machine(4, 4);
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        graphi_setting setting = {.policy = (graphi_policy)policy, .executors = 4, .width = 1};
        struct schedule *schedule;
        assert_int_equal(schedule_create(&g->tasks, setting_decide(&setting, &machine), &schedule), GRAPHI_OK);
        graphi_status status = GRAPHI_MEMORY;
        for (long n = 0; status != GRAPHI_OK; n++) {
            struct simulation result = {.makespan_ns = -1};
            mem_fail_after(n);
            status = schedule_simulate(schedule, NULL, NULL, NULL, &result);
            mem_fail_after(-1);
            assert_true(status == GRAPHI_OK || (status == GRAPHI_MEMORY && result.makespan_ns == -1));
        }
        schedule_destroy(schedule);
    }
    free(machine.core);
    dag_free(g);
}

/* Of two policies of one name whoever looks for it finds the first; what is no policy is read past the list. */
static void policies_have_names(void **state)
{
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(graphi_policy_name((graphi_policy)i), graphi_policy_name((graphi_policy)k));
    assert_string_equal(graphi_policy_name(GRAPHI_POLICY_S123), "s123");
    assert_string_equal(graphi_policy_name(GRAPHI_POLICIES), "?");
    assert_string_equal(graphi_policy_name((graphi_policy)-1), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(critical_path_first),
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(random_follows_its_seed),
        cmocka_unit_test(sequential_in_array_order),
        cmocka_unit_test(naive_pollers_contend),
        cmocka_unit_test(asymmetric_by_class),
        cmocka_unit_test(measured_curves_decide_the_class),
        cmocka_unit_test(locality_keeps_chains),
        cmocka_unit_test(light_executor_takes_light_tasks),
        cmocka_unit_test(phases_change_widths),
        cmocka_unit_test(no_more_than_the_backward_executors),
        cmocka_unit_test(tiny_tasks_run_where_triggered),
        cmocka_unit_test(little_work_stays_with_the_worker_at_hand),
        cmocka_unit_test(strategies_1_and_2_choose_widths),
        cmocka_unit_test(teams_take_the_time_of_their_mode),
        cmocka_unit_test(strategy_3_takes_the_papers_candidate),
        cmocka_unit_test(strategy_3_fills_few_cores),
        cmocka_unit_test(strategy_4_uses_siblings),
        cmocka_unit_test(strategy_4_wants_an_operation_on_all_cores),
        cmocka_unit_test(siblings_share_their_core),
        cmocka_unit_test(strategy_3_goes_by_measured_interference),
        cmocka_unit_test(shortcuts_decide_as_the_rules_do),
        cmocka_unit_test(malleable_shares_out_workers),
        cmocka_unit_test(malleable_is_never_worse),
        cmocka_unit_test(every_policy_decides_differently),
        cmocka_unit_test(nothing_waits_behind_a_long_task),
        cmocka_unit_test(scarce_tasks_are_not_taken_ahead),
        cmocka_unit_test(durations_of_a_trace_repeat_decisions),
        cmocka_unit_test(create_survives_failed_allocations),
        cmocka_unit_test(simulation_survives_failed_allocations),
        cmocka_unit_test(policies_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
