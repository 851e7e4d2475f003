/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that stand: many executions on one, one thread after the other, refusals, and whose turn it is. */
#include "graphi/lease.h"
#include "leased.h"
#include "machine/turns.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

enum { SIDE = 48, LAYERS = 6 };

struct network {
    graphi_graph *graph;
    graphi_state *state;
    float expected[SIDE * SIDE];
};
static struct network net;
static float input[SIDE * SIDE];

static int open_network(void **state)
{
    if (set_up_cores(0) || open_machines(state))
        return -1;
    check_ok(graphi_graph_create(&net.graph));
    const int64_t dims[] = {SIDE, SIDE};
    graphi_value x = graphi_input(net.graph, "x", GRAPHI_F32, 2, dims), sum = x;
    for (int i = 0; i < LAYERS; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
        graphi_value w = graphi_parameter(net.graph, name, GRAPHI_F32, 2, dims, &uniform);
        sum = graphi_add(net.graph, sum, graphi_tanh(net.graph, graphi_matmul(net.graph, x, w, 0, 0)));
    }
    graphi_output(net.graph, "y", sum);
    check_ok(graphi_state_create(net.graph, 7, &net.state));
    for (int i = 0; i < SIDE * SIDE; i++)
        input[i] = (float)(i % 19) / 19 - 0.5f;
    return 0;
}

static int close_network(void **state)
{
    graphi_state_destroy(net.state);
    graphi_graph_destroy(net.graph);
    close_machines(state);
    return tear_down(state);
}

static graphi_plan *plan_as(graphi_setting setting, const graphi_machine *on)
{
    graphi_plan *plan;
    const graphi_plan_options options = {.setting = setting};
    check_ok(graphi_plan_create(net.graph, on, &options, &plan));
    return plan;
}

static graphi_run *run_of(const graphi_plan *plan)
{
    graphi_run *run;
    check_ok(graphi_run_create(plan, net.state, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, input, sizeof input));
    return run;
}

static void check_result(const graphi_run *run)
{
    float y[SIDE * SIDE];
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, sizeof y));
    if (net.expected[0] == 0)
        memcpy(net.expected, y, sizeof y);
    assert_memory_equal(y, net.expected, sizeof y);
}

static graphi_lease *lease_of(const graphi_machine *on, int threads)
{
    graphi_lease *lease;
    const graphi_lease_options options = {.threads = threads};
    check_ok(graphi_lease_take(on, &options, &lease));
    return lease;
}

/* --- executions --- */

static const graphi_setting settings[] = {
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_COMBINING, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_COMBINING, .executors = 1, .width = 2},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_DEDICATED, .executors = 1, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_DEDICATED, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_STATIC, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1},
};

/* One lease, runs of all settings by turns: who is which worker changes each time. Of a described machine, so that six
 * threads are had on any. */
static void settings_take_turns_on_one_lease(void **state)
{
    graphi_machine *six = six_cores();
    graphi_lease *lease = lease_of(six, 2);
    enum { COUNT = sizeof settings / sizeof *settings };
    graphi_plan *plan[COUNT];
    graphi_run *run[COUNT];
    for (int i = 0; i < COUNT; i++)
        run[i] = run_of(plan[i] = plan_as(settings[i], six));
    const uint64_t taken = lease_count();
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < COUNT; i++) {
            check_ok(graphi_run_execute_on(run[i], lease));
            check_result(run[i]);
        }
    assert_int_equal(lease_count(), taken);
    for (int i = 0; i < COUNT; i++) {
        graphi_run_destroy(run[i]);
        graphi_plan_destroy(plan[i]);
    }
    check_ok(graphi_lease_release(lease));
    graphi_machine_destroy(six);
}

static graphi_setting on_all_cores(void)
{
    return (graphi_setting){.policy = GRAPHI_POLICY_CRITICAL_PATH,
                            .driver = GRAPHI_DRIVER_COMBINING,
                            .executors = here->cores,
                            .width = 1};
}

/* A lease a call would be one more each; a step would allocate. */
static void a_thread_that_has_entered_asks_for_no_other(void **state)
{
    graphi_plan *plan = plan_as(on_all_cores(), here);
    graphi_run *run = run_of(plan);
    graphi_lease *lease = lease_of(here, 0);
    struct cpu_mask before = {{0}}, inside = {{0}}, after = {{0}};
    sched_getaffinity(0, sizeof before, mask_set(&before));
    const uint64_t taken = lease_count();
    check_ok(graphi_lease_enter(lease));
    sched_getaffinity(0, sizeof inside, mask_set(&inside));
    graphi_lease_info info;
    graphi_lease_get_info(lease, &info);
    assert_true(!info.pinned || CPU_COUNT_S(sizeof inside, mask_set(&inside)) == 1);
    assert_int_equal(info.threads, here->cores);
    check_ok(graphi_run_execute(run));
    const uint64_t allocations = mem_allocations();
    for (int i = 0; i < 3; i++)
        check_ok(graphi_run_execute(run));
    assert_int_equal(mem_allocations(), allocations);
    check_ok(graphi_lease_leave(lease));
    assert_int_equal(lease_count(), taken);
    check_result(run);
    sched_getaffinity(0, sizeof after, mask_set(&after));
    assert_memory_equal(&before, &after, sizeof before);
    check_ok(graphi_lease_release(lease));
    check_ok(graphi_run_execute(run));
    assert_int_equal(lease_count(), taken + 1); /* or the count above could not rise */
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
}

struct lane {
    graphi_run *run;
    graphi_lease *lease;
    graphi_status status;
    char message[256];
    int times;
};

static void *execute_lane(void *argument)
{
    struct lane *lane = argument;
    for (int i = 0; i < lane->times && lane->status == GRAPHI_OK; i++)
        lane->status = graphi_run_execute_on(lane->run, lane->lease);
    snprintf(lane->message, sizeof lane->message, "%s", lane->status ? graphi_message() : "");
    return NULL;
}

static void in_a_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_lease_is_handed_between_threads(void **state)
{
    graphi_plan *plan = plan_as((graphi_setting){.executors = here->cores, .width = 1}, here);
    graphi_lease *lease = lease_of(here, 0);
    struct lane lane[3];
    for (int i = 0; i < 3; i++) {
        lane[i] = (struct lane){.run = run_of(plan), .lease = lease, .times = 5};
        in_a_thread(execute_lane, &lane[i]);
        if (lane[i].status)
            fail_msg("%s", lane[i].message);
        check_result(lane[i].run);
        graphi_run_destroy(lane[i].run);
    }
    check_ok(graphi_lease_release(lease));
    graphi_plan_destroy(plan);
}

/* Both would be worker 0. */
static void two_threads_at_once_are_refused(void **state)
{
    graphi_plan *plan = plan_as((graphi_setting){.executors = 1, .width = 1}, here);
    graphi_lease *lease = lease_of(here, 1);
    struct lane lane = {.run = run_of(plan), .lease = lease, .times = 1};
    check_ok(graphi_lease_enter(lease));
    check_ok(graphi_lease_enter(lease)); /* nested */
    in_a_thread(execute_lane, &lane);
    assert_int_equal(lane.status, GRAPHI_INVALID);
    assert_non_null(strstr(lane.message, "another thread has entered it"));
    check_ok(graphi_lease_leave(lease));
    lane.status = GRAPHI_OK;
    in_a_thread(execute_lane, &lane);
    assert_int_equal(lane.status, GRAPHI_INVALID);
    check_ok(graphi_lease_leave(lease));
    assert_int_equal(graphi_lease_leave(lease), GRAPHI_INVALID);
    lane.status = GRAPHI_OK;
    in_a_thread(execute_lane, &lane);
    assert_int_equal(lane.status, GRAPHI_OK);
    check_ok(graphi_lease_release(lease));
    graphi_run_destroy(lane.run);
    graphi_plan_destroy(plan);
}

static void *release_lease(void *argument)
{
    struct lane *lane = argument;
    lane->status = graphi_lease_release(lane->lease);
    return NULL;
}

static void what_another_thread_has_entered_is_not_released(void **state)
{
    struct lane lane = {.lease = lease_of(here, 1)};
    check_ok(graphi_lease_enter(lane.lease));
    in_a_thread(release_lease, &lane);
    assert_int_equal(lane.status, GRAPHI_INVALID);
    check_ok(graphi_lease_leave(lane.lease));
    in_a_thread(release_lease, &lane);
    assert_int_equal(lane.status, GRAPHI_OK);
}

static void expect(graphi_status status, const char *text)
{
    assert_int_equal(status, GRAPHI_INVALID);
    if (!strstr(graphi_message(), text))
        fail_msg("found \"%s\", expected \"%s\"", graphi_message(), text);
}

static void mistakes_are_told(void **state)
{
    graphi_machine *six = six_cores();
    graphi_plan *plan = plan_as(settings[0], six);
    graphi_run *run = run_of(plan);
    graphi_lease *narrow = lease_of(six, 1), *other = lease_of(here, 1), *none = NULL;
    expect(graphi_run_execute_on(run, narrow), "found one of 1 thread, expected 2 or more");
    expect(graphi_run_execute_on(run, other), "expected one of a machine that is described");
    check_ok(graphi_lease_enter(narrow));
    expect(graphi_run_execute(run), "found one of 1 thread, expected 2 or more");
    check_ok(graphi_lease_leave(narrow));
    expect(graphi_lease_leave(narrow), "a thread that has not entered it");
    expect(graphi_lease_take(six, &(graphi_lease_options){.threads = 7}, &none), "found 7 workers, expected 1 to 6");
    expect(graphi_lease_take(six, &(graphi_lease_options){.threads = 2, .cores = (int[]){1, 6}}, &none),
           "found core 6, expected different ones from 0 to 5");
    expect(graphi_lease_take(six, &(graphi_lease_options){.threads = 2, .cores = (int[]){4, 4}}, &none),
           "found core 4 twice");
    expect(graphi_lease_take(six, &(graphi_lease_options){.cores = (int[]){0}}, &none), "cores and 0 threads");
    assert_int_equal(graphi_lease_take(six, &(graphi_lease_options){.threads = 1, .pin = GRAPHI_ON}, &none),
                     GRAPHI_UNSUPPORTED);
    assert_null(none);
    check_ok(graphi_lease_release(narrow));
    check_ok(graphi_lease_release(other));
    check_ok(graphi_lease_release(NULL));
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_machine_destroy(six);
}

/* It would wait for itself, for ever. */
static void cores_of_the_thread_s_own_lease_are_not_waited_for(void **state)
{
    graphi_plan *plan = plan_as(on_all_cores(), here);
    graphi_run *run = run_of(plan);
    graphi_lease *lease = lease_of(here, here->cores);
    expect(graphi_run_execute(run), "beside the lease that this thread has taken");
    check_ok(graphi_run_execute_on(run, lease));
    check_ok(graphi_lease_release(lease));
    check_ok(graphi_run_execute(run));
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
}

static void a_child_of_fork_has_none_of_the_leases(void **state)
{
    graphi_plan *plan = plan_as((graphi_setting){.executors = here->cores, .width = 1}, here);
    graphi_run *run = run_of(plan);
    graphi_lease *lease = lease_of(here, here->cores);
    check_ok(graphi_lease_enter(lease));
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int wrong = graphi_run_execute_on(run, lease) != GRAPHI_INVALID || !strstr(graphi_message(), "before fork()");
        wrong |= (graphi_run_execute(run) != GRAPHI_OK) << 1; /* takes cores of its own */
        wrong |= (graphi_lease_release(lease) != GRAPHI_OK) << 2;
        _exit(wrong);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_ok(graphi_run_execute(run));
    check_ok(graphi_lease_release(lease));
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
}

/* --- whose turn it is: four cores that the system does not have, so that nothing is pinned --- */

static struct machine_core unreal[4] = {{8000, 0, 0, -1}, {8001, 1, 0, -1}, {8002, 2, 0, -1}, {8003, 3, 0, -1}};
static graphi_machine four = {
    .name = "four", .captured = true, .cores = 4, .tiles = 4, .numa_nodes = 1, .core = unreal};

struct waiter {
    pthread_t thread;
    int cores;
    struct lease lease;
    atomic_int has; /* it has them */
};

static void *wait_for_cores(void *argument)
{
    struct waiter *waiter = argument;
    const struct lease_options options = {.workers = waiter->cores, .standing = true};
    if (lease_reserve(&four, &options, &waiter->lease) == GRAPHI_OK)
        atomic_store(&waiter->has, 1);
    return NULL;
}

static void start_waiting(struct waiter *waiter, int cores)
{
    const int before = turns_waiting();
    *waiter = (struct waiter){.cores = cores};
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_cores, waiter), 0);
    while (turns_waiting() == before && !atomic_load(&waiter->has))
        usleep(200);
}

static void end_waiting(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    assert_int_equal(atomic_load(&waiter->has), 1);
    lease_give_back(&waiter->lease);
}

static struct lease reserve(int cores, bool standing)
{
    struct lease lease;
    const struct lease_options options = {.workers = cores, .standing = standing};
    if (standing)
        check_ok(lease_reserve(&four, &options, &lease));
    else
        check_ok(lease_take(&four, &options, &lease));
    return lease;
}

/* A wide waiter would hold up the narrow one on cores that it cannot use yet. */
static void narrow_ones_overtake_a_wide_one_for_a_while(void **state)
{
    turns_overtaken_for(INT64_MAX);
    struct waiter wide_one, narrow;
    struct lease held = reserve(2, false);
    start_waiting(&wide_one, 4);
    start_waiting(&narrow, 2);
    end_waiting(&narrow); /* while the wide one waits */
    assert_int_equal(atomic_load(&wide_one.has), 0);
    lease_release(&held);
    end_waiting(&wide_one);
    turns_overtaken_for(-1);
}

/* Narrow ones would come before it for ever. */
static void then_free_cores_are_kept_for_it(void **state)
{
    turns_overtaken_for(0);
    struct waiter wide_one, narrow;
    struct lease held = reserve(2, false);
    start_waiting(&wide_one, 4);
    start_waiting(&narrow, 1);
    assert_int_equal(turns_waiting(), 2);
    assert_int_equal(atomic_load(&narrow.has), 0);
    lease_release(&held);
    end_waiting(&wide_one); /* the narrow one had to let it go first */
    end_waiting(&narrow);
    turns_overtaken_for(-1);
}

/* A standing lease may be held for ever, and so would be what is kept for who needs its cores. */
static void nothing_is_kept_for_who_needs_cores_of_a_standing_lease(void **state)
{
    turns_overtaken_for(0);
    struct waiter wide_one, narrow, holder;
    start_waiting(&holder, 1);
    start_waiting(&wide_one, 4);
    start_waiting(&narrow, 2);
    end_waiting(&narrow);
    assert_int_equal(atomic_load(&wide_one.has), 0);
    end_waiting(&holder);
    end_waiting(&wide_one);
    turns_overtaken_for(-1);
}

/* Of two who could go the first one does. */
static void the_first_of_equals_comes_first(void **state)
{
    struct waiter waiter[3];
    struct lease held = reserve(4, false);
    for (int i = 0; i < 3; i++)
        start_waiting(&waiter[i], 4);
    lease_release(&held);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(waiter[i].thread, NULL), 0);
        for (int j = i + 1; j < 3; j++)
            assert_int_equal(atomic_load(&waiter[j].has), 0);
        lease_give_back(&waiter[i].lease);
    }
}

static void given_cores_are_those_taken(void **state)
{
    const int last[] = {3, 1};
    struct lease lease, other;
    check_ok(lease_reserve(&four, &(struct lease_options){.workers = 2, .cores = last, .standing = true}, &lease));
    assert_int_equal(lease.core[0], 3);
    assert_int_equal(lease.core[1], 1);
    check_ok(lease_reserve(&four, &(struct lease_options){.workers = 2, .standing = true}, &other));
    assert_int_equal(other.core[0], 0);
    assert_int_equal(other.core[1], 2);
    lease_give_back(&lease);
    lease_give_back(&other);
}

/* --- memory --- */

/* A lease that could not be had whole holds nothing. */
static void a_failed_allocation_leaves_no_core_taken(void **state)
{
    graphi_lease *lease = NULL;
    graphi_status status = GRAPHI_MEMORY;
    for (long n = 0; status != GRAPHI_OK && n < 100; n++) {
        mem_fail_after(n);
        status = graphi_lease_take(here, NULL, &lease);
        mem_fail_after(-1);
        assert_true(status == GRAPHI_OK || (status == GRAPHI_MEMORY && !lease));
    }
    check_ok(graphi_lease_release(lease));
    struct lease all = take(here, here->cores);
    lease_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_take_turns_on_one_lease),
        cmocka_unit_test(a_thread_that_has_entered_asks_for_no_other),
        cmocka_unit_test(a_lease_is_handed_between_threads),
        cmocka_unit_test(two_threads_at_once_are_refused),
        cmocka_unit_test(what_another_thread_has_entered_is_not_released),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(cores_of_the_thread_s_own_lease_are_not_waited_for),
        cmocka_unit_test(a_child_of_fork_has_none_of_the_leases),
        cmocka_unit_test(narrow_ones_overtake_a_wide_one_for_a_while),
        cmocka_unit_test(then_free_cores_are_kept_for_it),
        cmocka_unit_test(nothing_is_kept_for_who_needs_cores_of_a_standing_lease),
        cmocka_unit_test(the_first_of_equals_comes_first),
        cmocka_unit_test(given_cores_are_those_taken),
        cmocka_unit_test(a_failed_allocation_leaves_no_core_taken),
    };
    return cmocka_run_group_tests(tests, open_network, close_network);
}
