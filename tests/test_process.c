/* SPDX-License-Identifier: Apache-2.0 */
/* Plans, states and runs in one process as a large application has them: many threads, several machines, and a fork at
 * any moment. */
#include "graphi/graphi.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fixture.h"

enum { ROWS = 8, SIZE = 512, THREADS = 4, STEPS = 20 };

static graphi_graph *training(void)
{
    const graphi_initializer start = {.kind = GRAPHI_INIT_GLOROT_UNIFORM};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){ROWS, SIZE}), y = x;
    graphi_value w[] = {graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){SIZE, SIZE}, &start),
                        graphi_parameter(g, "v", GRAPHI_F32, 2, (int64_t[]){SIZE, SIZE}, &start)};
    for (int i = 0; i < 2; i++)
        y = graphi_tanh(g, graphi_matmul(g, y, w[i], 0, 0));
    graphi_value loss = graphi_reduce_sum(g, graphi_square(g, y), GRAPHI_LIST(0, 1), 0);
    graphi_value rate = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){1e-3f});
    graphi_output(g, "y", y);
    graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_SGD, .learning_rate = rate});
    return g;
}

static void feed(graphi_run *run)
{
    float x[ROWS * SIZE]; /* each thread's own */
    for (int i = 0; i < ROWS * SIZE; i++)
        x[i] = (float)(i % 17) / 16 - 0.5f;
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
}

/* --- fork --- */

static atomic_int stop;

struct job {
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
};

/* Every change has the weights packed anew. */
static void *change_until_stopped(void *context)
{
    static float w[SIZE * SIZE];
    const struct job *job = context;
    while (!atomic_load(&stop) && graphi_state_set(job->state, "w", w, sizeof w) == GRAPHI_OK &&
           graphi_run_execute(job->run) == GRAPHI_OK) {
    }
    return NULL;
}

/* Together they have the state at every moment. */
static void *set_until_stopped(void *context)
{
    static const float v[SIZE * SIZE];
    const struct job *job = context;
    while (!atomic_load(&stop) && graphi_state_set(job->state, "v", v, sizeof v) == GRAPHI_OK) {
    }
    return NULL;
}

/* The state is the one that a thread of the parent was using; the child's own run goes over it. */
static int child_uses(const graphi_plan *plan, graphi_state *state)
{
    static float w[SIZE * SIZE];
    graphi_run *run;
    alarm(20);
    if (graphi_state_get(state, "w", w, sizeof w) || graphi_run_create(plan, state, &run))
        return 1;
    feed(run);
    if (graphi_run_execute(run))
        return 2;
    graphi_run_destroy(run);
    return graphi_state_get(state, "w", w, sizeof w) ? 3 : 0;
}

/* Without it a child whose parent was writing or packing weights would wait for ever for the thread that did, or the
 * parent until its threads leave the state alone. */
static void fork_while_other_threads_change_the_state(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their allocators' locks stay taken in a child whose parent's other threads hold them */
#endif
    graphi_graph *g = training();
    struct job job;
    pthread_t thread[THREADS];
    check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.no_updates = true, .outputs = "y"}, &job.plan));
    check_ok(graphi_state_create(g, 1, &job.state));
    check_ok(graphi_run_create(job.plan, job.state, &job.run));
    feed(job.run);
    atomic_store(&stop, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, i ? set_until_stopped : change_until_stopped, &job), 0);
    for (int i = 0; i < 30; i++) {
        int status;
        usleep((useconds_t)(i * 100));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(child_uses(job.plan, job.state));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    graphi_run_destroy(job.run);
    graphi_state_destroy(job.state);
    graphi_plan_destroy(job.plan);
    graphi_graph_destroy(g);
}

/* --- threads --- */

enum { MANY = 4096 }; /* rows: 8 MB, which copying takes a while */

static graphi_graph *inference(int rows)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){rows, SIZE});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 1, (int64_t[]){SIZE}, NULL);
    graphi_output(g, "y", graphi_reduce_sum(g, graphi_mul(g, x, w), NULL, 0, 0));
    return g;
}

struct bucket {
    const graphi_plan *plan;
    graphi_state *state;
    size_t bytes;
    graphi_status status;
};

/* Runs come and go; each leaves with the state what it was fed. */
static void *serve_until_stopped(void *context)
{
    static const float x[MANY * SIZE];
    struct bucket *bucket = context;
    graphi_run *run;
    while (!atomic_load(&stop) && !bucket->status &&
           !(bucket->status = graphi_run_create(bucket->plan, bucket->state, &run))) {
        bucket->status = graphi_run_set(run, "x", GRAPHI_F32, x, bucket->bytes);
        if (!bucket->status)
            bucket->status = graphi_run_execute(run);
        graphi_run_destroy(run);
    }
    return NULL;
}

/* Tuning would read what other runs of the state were fed while they free it, and set back their count of steps. */
static void inference_is_tuned_beside_runs_of_the_state(void **state)
{
    graphi_graph *g[2] = {inference(MANY), inference(MANY / 2)};
    graphi_plan *plan[2], *tuned;
    struct bucket bucket[2];
    graphi_state *s;
    pthread_t thread[2];
    check_ok(graphi_state_create(g[0], 1, &s));
    atomic_store(&stop, 0);
    for (int i = 0; i < 2; i++) {
        check_ok(graphi_plan_create(g[i], machine, NULL, &plan[i]));
        bucket[i] = (struct bucket){plan[i], s, sizeof(float) * SIZE * (size_t)(i ? MANY / 2 : MANY), GRAPHI_OK};
        assert_int_equal(pthread_create(&thread[i], NULL, serve_until_stopped, &bucket[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        const graphi_setting setting = {.executors = 1, .width = 1};
        check_ok(graphi_plan_tune(plan[0], s, &(graphi_tune_options){.seconds = 0.05, .setting = &setting}, &tuned));
        graphi_plan_destroy(tuned);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        check_ok(bucket[i].status);
    }
    for (int i = 0; i < 2; i++) {
        graphi_plan_destroy(plan[i]);
        graphi_graph_destroy(g[i]);
    }
    graphi_state_destroy(s);
}

static char expected[65];

/* A life of everything: made, run, and destroyed while the other threads do the same. */
static void *train_alone(void *result)
{
    graphi_machine *own;
    graphi_graph *g = training();
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run, *other;
    char hex[65];
    *(graphi_status *)result = GRAPHI_INVALID;
    if (graphi_machine_create(0, &own) || graphi_plan_create(g, own, NULL, &plan) || graphi_state_create(g, 1, &state))
        return NULL;
    if (graphi_run_create(plan, state, &run) || graphi_run_create(plan, state, &other))
        return NULL;
    feed(run);
    feed(other);
    for (int i = 0; i < STEPS; i++)
        if (graphi_run_execute(i % 2 ? run : other))
            return NULL;
    graphi_run_destroy(run);
    graphi_state_sha256(state, hex);
    graphi_run_destroy(other);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    graphi_machine_destroy(own);
    graphi_state_destroy(state);
    if (!*expected)
        memcpy(expected, hex, sizeof hex);
    *(graphi_status *)result = strcmp(expected, hex) ? GRAPHI_MISSED : GRAPHI_OK;
    return NULL;
}

/* Without it one context would disturb the results of another, or need it alive. */
static void contexts_do_not_know_of_each_other(void **state)
{
    pthread_t thread[THREADS];
    graphi_status status[THREADS];
    train_alone(&status[0]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, train_alone, &status[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(status[i], GRAPHI_OK);
}

/* --- cores --- */

/* A run that is not pinned to its core would be taken for one that is. */
static void who_is_not_pinned_says_so(void **state)
{
    graphi_graph *g = training();
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (int pin = 0; pin < 2; pin++) {
            graphi_setting setting = {
                .policy = (graphi_policy)policy, .executors = 1, .width = 1, .pin = pin ? GRAPHI_ON : GRAPHI_DEFAULT};
            graphi_plan *plan;
            graphi_state *s;
            graphi_run *run;
            graphi_run_info info;
            check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = setting}, &plan));
            check_ok(graphi_state_create(g, 1, &s));
            check_ok(graphi_run_create(plan, s, &run));
            feed(run);
            graphi_status status = graphi_run_execute(run);
            graphi_run_get_info(run, &info);
            assert_true(status == GRAPHI_OK || (pin && status == GRAPHI_UNSUPPORTED));
            assert_true(info.pinned ? info.executions == 1 : info.note[0]);
            graphi_run_destroy(run);
            graphi_state_destroy(s);
            graphi_plan_destroy(plan);
        }
    graphi_graph_destroy(g);
}

enum { HOLD_NS = 5000000, TRIES = 1000 };

static void *hold_until_stopped(void *run)
{
    while (!atomic_load(&stop) && graphi_run_execute(run) == GRAPHI_OK) {
    }
    return NULL;
}

/* Without it the time that a run waits for cores is taken for time of its operations, or a wait is told of a run that
 * had its cores at once. */
static void who_waits_for_cores_is_told(void **state)
{
    graphi_graph *g;
    graphi_machine_info about;
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run, *holder;
    graphi_run_info info;
    pthread_t thread;
    graphi_machine_get_info(machine, &about);
    const graphi_plan_options all = {.setting = {.executors = about.cores, .width = 1}};
    check_ok(graphi_graph_create(&g));
    graphi_delay(g, 0, NULL, HOLD_NS);
    check_ok(graphi_plan_create(g, machine, &all, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_create(plan, s, &holder));
    atomic_store(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_until_stopped, holder), 0);
    for (int i = 0; i < TRIES && (i == 0 || info.waited_ms <= 0); i++) {
        check_ok(graphi_run_execute(run));
        graphi_run_get_info(run, &info);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    assert_true(info.waited_ms > 0);
    assert_true(info.last_ms > info.waited_ms); /* its own operation comes behind it */
    check_ok(graphi_run_execute(run)); /* alone */
    graphi_run_get_info(run, &info);
    assert_true(info.waited_ms == 0);
    graphi_run_destroy(run);
    graphi_run_destroy(holder);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static void *execute_often(void *run)
{
    for (int i = 0; i < 300; i++)
        if (graphi_run_execute(run))
            return NULL;
    return run;
}

/* Steps that go on side by side would allocate, since one has what the other needs. */
static void executions_side_by_side_allocate_nothing(void **state)
{
    graphi_graph *g;
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run[THREADS];
    pthread_t thread[THREADS];
    void *done;
    const graphi_plan_options one = {.setting = {.executors = 1, .width = 1}};
    check_ok(graphi_graph_create(&g));
    graphi_delay(g, 0, NULL, 20000);
    check_ok(graphi_plan_create(g, machine, &one, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    for (int i = 0; i < THREADS; i++) {
        check_ok(graphi_run_create(plan, s, &run[i]));
        check_ok(graphi_run_execute(run[i]));
    }
    const uint64_t before = mem_allocations();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, execute_often, run[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &done);
        assert_ptr_equal(done, run[i]);
    }
    assert_int_equal(mem_allocations(), before);
    for (int i = 0; i < THREADS; i++)
        graphi_run_destroy(run[i]);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static const double HELD_MS = 30;

static graphi_plan *delay_plan(graphi_graph *g, double ns)
{
    graphi_machine_info about;
    graphi_plan *plan;
    graphi_machine_get_info(machine, &about);
    const graphi_plan_options all = {.setting = {.executors = about.cores, .width = 1}};
    graphi_delay(g, 0, NULL, (int64_t)ns);
    check_ok(graphi_plan_create(g, machine, &all, &plan));
    return plan;
}

/* Without it tuning beside other executions of the process would compare how long settings wait for theirs. */
static void tuning_does_not_count_waits(void **state)
{
    graphi_graph *g, *long_one;
    graphi_state *s, *other;
    graphi_run *holder;
    graphi_plan *tuned;
    graphi_plan_info info;
    pthread_t thread;
    check_ok(graphi_graph_create(&g));
    check_ok(graphi_graph_create(&long_one));
    graphi_plan *plan = delay_plan(g, 1e5), *held = delay_plan(long_one, HELD_MS * 1e6);
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_state_create(long_one, 1, &other));
    check_ok(graphi_run_create(held, other, &holder));
    graphi_plan_get_info(plan, &info);
    atomic_store(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_until_stopped, holder), 0);
    check_ok(graphi_plan_tune(
        plan, s,
        &(graphi_tune_options){.seconds = 1, .setting = (graphi_setting[]){graphi_decision_setting(&info.setting)}},
        &tuned));
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    graphi_plan_get_info(tuned, &info);
    assert_true(info.measured_ms > 0 && info.measured_ms < HELD_MS / 2);
    graphi_plan_destroy(tuned);
    graphi_run_destroy(holder);
    graphi_state_destroy(s);
    graphi_state_destroy(other);
    graphi_plan_destroy(plan);
    graphi_plan_destroy(held);
    graphi_graph_destroy(g);
    graphi_graph_destroy(long_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork_while_other_threads_change_the_state),
        cmocka_unit_test(inference_is_tuned_beside_runs_of_the_state),
        cmocka_unit_test(contexts_do_not_know_of_each_other),
        cmocka_unit_test(who_is_not_pinned_says_so),
        cmocka_unit_test(who_waits_for_cores_is_told),
        cmocka_unit_test(executions_side_by_side_allocate_nothing),
        cmocka_unit_test(tuning_does_not_count_waits),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
