/* SPDX-License-Identifier: Apache-2.0 */
/* Real networks, tiny, through the public API alone: the same bits under every policy, driver and width, from
 * several threads at once, in a child after fork(), under an affinity mask, in any floating-point mode of the caller;
 * no CPU time when nothing runs; no thread waits for ever. */
#include "graphi/graphi.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

/* ThreadSanitizer runs all code ten times slower, and threads that yield to each other hundreds of times: it gets every
 * policy and driver on the first network, and the others under the default policy. */
#ifdef __SANITIZE_THREAD__
enum { STEPS = 1, THOROUGH = 0, TIMES = 2, CHILDREN = 2 };
#else
enum { STEPS = 2, THOROUGH = 1, TIMES = 8, CHILDREN = 6 };
#endif

static int cores;

static const struct tiny {
    const char *name, *task;
    bool merged, no_inline; /* most of GoogLeNet's operations are so short on one image that no team would see them */
} networks[] = {
    {"lstm", "bench", false, false}, {"lstm", "bench", true, false},    {"phased-lstm", "bench", false, false},
    {"pathnet", "real", false, false}, {"googlenet", "bench", false, true}};
enum { NETWORKS = sizeof networks / sizeof *networks };

static graphi_graph *tiny_network(const struct tiny *n)
{
    graphi_graph *g;
    graphi_model_options options = {.size = "small", .task = n->task, .merged = n->merged, .batch = 4};
    if (strcmp(n->name, "pathnet") == 0)
        options.image = 16;
    else if (strcmp(n->name, "googlenet") == 0)
        options.image = 32, options.batch = 1, options.classes = 10;
    else
        options.steps = 3, options.units = 16;
    check_ok(graphi_model_create(n->name, &options, &g));
    return g;
}

/* Feeds pseudo-random numbers; labels are zero. False: told by graphi_message. */
static bool feed(const graphi_graph *g, graphi_run *run, unsigned key)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_INPUT, i, &port); i++) {
        float *data = calloc(1, port.bytes);
        for (size_t k = 0; port.dtype == GRAPHI_F32 && k < port.bytes / 4; k++) {
            key = key * 1664525u + 1013904223u;
            data[k] = strcmp(port.name, "learning_rate") ? (float)(key >> 8) / (1 << 23) - 1 : 0.05f;
        }
        graphi_status status = graphi_run_set(run, port.name, port.dtype, data, port.bytes);
        free(data);
        if (status)
            return false;
    }
    return true;
}

/* Hash of all outputs of STEPS steps, and of the state after them. Uses no asserts: any thread. */
static uint64_t trail_from(graphi_state *state, const graphi_graph *g, const graphi_plan *plan)
{
    uint64_t hash = 1469598103934665603u;
    graphi_run *run = NULL;
    char hex[65];
    bool good = graphi_run_create(plan, state, &run) == GRAPHI_OK;
    for (unsigned step = 0; good && step < STEPS; step++) {
        good = feed(g, run, step) && graphi_run_execute(run) == GRAPHI_OK;
        graphi_port port;
        for (int i = 0; good && graphi_graph_at(g, GRAPHI_PORT_OUTPUT, i, &port); i++) {
            unsigned char *data = malloc(port.bytes);
            good = graphi_run_get(run, port.name, port.dtype, data, port.bytes) == GRAPHI_OK;
            for (size_t k = 0; k < port.bytes; k++)
                hash = (hash ^ data[k]) * 1099511628211u;
            free(data);
        }
    }
    if (good) {
        graphi_state_sha256(state, hex);
        for (int k = 0; k < 64; k++)
            hash = (hash ^ (unsigned char)hex[k]) * 1099511628211u;
    }
    graphi_run_destroy(run);
    return good ? hash : 0;
}

static uint64_t trail(const graphi_graph *g, const graphi_plan *plan)
{
    graphi_state *state = NULL;
    uint64_t hash = graphi_state_create(g, 3, &state) == GRAPHI_OK ? trail_from(state, g, plan) : 0;
    graphi_state_destroy(state);
    return hash;
}

static graphi_plan *with(const graphi_plan *plan, graphi_setting setting)
{
    graphi_plan *other;
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting}, &other));
    return other;
}

/* A network, what its steps began from, and their bits. Reading GoogLeNet's six million parameters takes a tenth of the
 * time of drawing them again. */
struct sample {
    const char *name;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    struct folder folder;
    const char *start; /* file there of the state as drawn */
    uint64_t expected;
};

static void sample_open(const struct tiny *network, const graphi_machine *on, struct sample *s)
{
    *s = (struct sample){.name = network->name, .graph = tiny_network(network)};
    folder_make(&s->folder);
    s->start = folder_name(&s->folder, "start");
    check_ok(graphi_plan_create(s->graph, on, NULL, &s->plan));
    check_ok(graphi_state_create(s->graph, 3, &s->state));
    check_ok(graphi_state_save(s->state, s->start, 0, NULL, NULL));
    graphi_plan *serial =
        with(s->plan, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1});
    if (!(s->expected = trail_from(s->state, s->graph, serial)))
        fail_msg("%s: %s", s->name, graphi_message());
    graphi_plan_destroy(serial);
}

static void sample_close(struct sample *s)
{
    folder_remove(&s->folder);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

static void check_bits(const struct sample *s, graphi_setting setting)
{
    graphi_plan *other = with(s->plan, setting);
    check_ok(graphi_state_load(s->state, s->start, NULL, NULL));
    if (trail_from(s->state, s->graph, other) != s->expected)
        fail_msg("%s under %s, driver %d, width %d, %s, depth %d: other bits, %s", s->name,
                 graphi_policy_name(setting.policy), setting.driver, setting.width,
                 setting.inlining == GRAPHI_OFF ? "nothing inline" : "tiny ones inline", setting.depth,
                 graphi_message());
    graphi_plan_destroy(other);
}

/* The first of so many policies, under so many variants of options, both drivers, from a width on. */
static void check_network(const struct tiny *network, const graphi_machine *on, int width, int policies, int variants)
{
    struct sample sample;
    graphi_machine_info info;
    graphi_machine_get_info(on, &info);
    sample_open(network, on, &sample);
    for (; width <= info.cores; width = next_width(width))
        for (int policy = 0; policy < policies; policy++)
            for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++)
                for (int variant = 0; variant < variants; variant++)
                    check_bits(
                        &sample,
                        (graphi_setting){.policy = (graphi_policy)policy,
                                         .driver = (graphi_driver)driver,
                                         .width = width,
                                         .parameters = {{"seed", width}},
                                         .inlining = variant == 1 || network->no_inline ? GRAPHI_OFF : GRAPHI_DEFAULT,
                                         .depth = 1 + 2 * (variant == 2),
                                         .backward_executors = variant == 2 ? 1 : 0});
    sample_close(&sample);
}

/* Without it a network's numbers could depend on who runs what when. Options once. */
static void networks_give_the_same_bits_everywhere(void **state)
{
    for (int n = 0; n < NETWORKS; n++)
        check_network(&networks[n], machine, 1, n && !THOROUGH ? 1 : GRAPHI_POLICIES, n || !THOROUGH ? 1 : 3);
}

/* Members of teams of three, five and six have shares that differ, and the machine at hand may not have so many cores.
 */
static void uneven_teams_give_the_same_bits(void **state)
{
    graphi_machine *six = six_cores();
    for (int n = 0; n < NETWORKS; n++)
        check_network(&networks[n], six, 3, n || !THOROUGH ? 1 : GRAPHI_POLICIES, 1);
    graphi_machine_destroy(six);
}

struct worker {
    const graphi_graph *graph;
    const graphi_plan *plan;
    uint64_t expected;
    int times, wrong;
};

static void *run_often(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < w->times; i++)
        w->wrong += trail(w->graph, w->plan) != w->expected;
    return NULL;
}

/* Without it two runs that want all cores at once could deadlock or mix up their numbers; one plan serves all threads.
 */
static void threads_share_plans_and_cores(void **state)
{
    graphi_graph *g = tiny_network(&networks[0]);
    graphi_plan *plan, *plans[4];
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    plans[0] = with(plan, (graphi_setting){.executors = cores, .width = 1, .driver = GRAPHI_DRIVER_DEDICATED});
    plans[1] = with(plan, (graphi_setting){.executors = 1, .width = cores, .driver = GRAPHI_DRIVER_COMBINING});
    plans[2] = plans[0];
    plans[3] = with(plan, (graphi_setting){.policy = GRAPHI_POLICY_NAIVE, .executors = cores, .width = 1});
    uint64_t expected = trail(g, plan);
    pthread_t thread[4];
    struct worker worker[4];
    for (int i = 0; i < 4; i++) {
        worker[i] = (struct worker){g, plans[i], expected, TIMES, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, run_often, &worker[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(worker[i].wrong, 0);
    }
    graphi_plan_destroy(plans[0]);
    graphi_plan_destroy(plans[1]);
    graphi_plan_destroy(plans[3]);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it a fork while another thread runs would leave a child that waits for threads it does not have. */
static void children_of_a_running_process_run_too(void **state)
{
    graphi_graph *g = tiny_network(&networks[0]);
    graphi_plan *plan;
    pthread_t thread;
    check_ok(
        graphi_plan_create(g, machine, &(graphi_plan_options){.setting = {.executors = cores, .width = 1}}, &plan));
    struct worker worker = {g, plan, trail(g, plan), 5 * TIMES, 0};
    assert_int_equal(pthread_create(&thread, NULL, run_often, &worker), 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60); /* a deadlock ends the child, not the test */
            _exit(trail(g, plan) == worker.expected ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail_msg("child %d ended with %#x", i, (unsigned)status);
    }
    pthread_join(thread, NULL);
    assert_int_equal(worker.wrong, 0);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Products of which many are below the smallest normal number, sums that round, constants to fold, and those that
 * differentiation and Adam compute while the graph is built: 1 / count, 1 - beta, ln(beta). */
static graphi_graph *small_numbers(void)
{
    enum { SIDE = 160 };
    static const int64_t square[] = {SIDE, SIDE};
    static const graphi_initializer tiny = {.kind = GRAPHI_INIT_UNIFORM, .a = -3e-38, .b = 3e-38},
                                    usual = {.kind = GRAPHI_INIT_NORMAL, .b = 0.1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, square);
    graphi_value folded = graphi_mul(g, graphi_fill(g, GRAPHI_LIST(SIDE), 0.1, GRAPHI_F32),
                                     graphi_fill(g, GRAPHI_LIST(SIDE), 0.7, GRAPHI_F32));
    graphi_output(g, "y", graphi_mul(g, x, graphi_parameter(g, "tiny", GRAPHI_F32, 2, square, &tiny)));
    graphi_value z = graphi_matmul(g, x, graphi_parameter(g, "w", GRAPHI_F32, 2, square, &usual), 0, 0);
    graphi_output(g, "z", z = graphi_add(g, folded, z));
    const graphi_optimizer adam = {.kind = GRAPHI_ADAM, .weight_decay = 0.3, .only = "w",
                                   .learning_rate = graphi_input(g, "learning_rate", GRAPHI_F32, 0, NULL)};
    const graphi_value loss = graphi_reduce_mean(g, z, NULL, 0, 0);
    graphi_value back;
    check_ok(graphi_gradients(g, loss, 1, &x, &back));
    graphi_output(g, "back", back);
    check_ok(graphi_minimize(g, loss, &adam));
    return g;
}

static void usual_mode(void) { fesetenv(FE_DFL_ENV); }

static void round_up(void) { fesetround(FE_UPWARD); }

static void flush_to_zero(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* results, and operands */
#endif
}

/* What is set, without what was raised. */
static unsigned mode_now(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu;
#else
    return (unsigned)fegetround();
#endif
}

static const graphi_setting one_thread = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1};

/* A caller that rounds upwards or flushes to zero would do so with its share of an operation, unlike its workers: other
 * bits for every number of threads, and for constants and initial values; those of a graph that is built in its mode
 * would be others, too. */
static void modes_of_the_caller_change_no_bits(void **state)
{
    void (*const set[])(void) = {round_up, flush_to_zero};
    const graphi_setting wide = {.executors = 1, .width = cores};
    graphi_graph *g = small_numbers();
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = wide}, &plan));
    uint64_t expected = trail(g, plan), found[2];
    graphi_plan_destroy(plan);
    for (int i = 0; i < 2; i++) {
        set[i]();
        const unsigned mode = mode_now();
        graphi_graph_destroy(g);
        g = small_numbers();
        for (int k = 0; k < 2; k++) {
            check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = k ? wide : one_thread}, &plan));
            found[k] = trail(g, plan);
            graphi_plan_destroy(plan);
        }
        const unsigned after = mode_now();
        fesetenv(FE_DFL_ENV);
        assert_int_equal(after, mode);
        assert_true(found[0] == expected && found[1] == expected);
    }
    graphi_graph_destroy(g);
}

/* Sums, products and moments of subnormal numbers, and of constants whose product is one. */
static graphi_graph *subnormal_numbers(int side)
{
    const int64_t square[] = {side, side};
    const graphi_initializer zero = {.kind = GRAPHI_INIT_CONSTANT};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, square), w = graphi_input(g, "w", GRAPHI_F32, 2, square);
    graphi_value one = graphi_fill(g, square, 2, 1e-25, GRAPHI_F32), two = graphi_fill(g, square, 2, 1e-16, GRAPHI_F32);
    graphi_output(g, "product", graphi_matmul(g, x, w, 0, 0));
    graphi_output(g, "scaled", graphi_add(g, graphi_mul(g, x, w), graphi_mul(g, one, two)));
    graphi_output(g, "grown", graphi_mul(g, x, graphi_fill(g, square, 2, 1e20, GRAPHI_F32)));
    graphi_output(g, "sum", graphi_reduce_sum(g, x, NULL, 0, 0));
    graphi_value moment = graphi_parameter(g, "moment", GRAPHI_F32, 2, square, &zero);
    graphi_value next = graphi_add(g, graphi_mul(g, moment, graphi_fill(g, square, 2, 0.9, GRAPHI_F32)), x);
    graphi_assign(g, moment, next);
    graphi_output(g, "next", next);
    return g;
}

static void expect_zeros(graphi_run *run, const char *name, float *out, size_t bytes)
{
    check_ok(graphi_run_get(run, name, GRAPHI_F32, out, bytes));
    for (size_t i = 0; i < bytes / sizeof *out; i++)
        if (out[i] != 0)
            fail_msg("%s: found %g at %zu, expected 0", name, (double)out[i], i);
}

/* Steps take longer and longer, or a hundred times as long on small inputs, where each subnormal number is computed by
 * microcode. Whoever executes keeps the mode that it had. */
static void subnormal_numbers_are_zero(void **state)
{
    enum { SIDE = 64 };
    const graphi_setting settings[] = {{.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1},
                                       {.executors = 1, .width = cores},
                                       {.executors = cores, .width = 1, .driver = GRAPHI_DRIVER_DEDICATED},
                                       {.executors = cores, .width = 1, .driver = GRAPHI_DRIVER_STATIC}};
    float x[SIDE * SIDE], w[SIDE * SIDE], out[SIDE * SIDE];
    graphi_graph *g = subnormal_numbers(SIDE);
    graphi_state *weights;
    check_ok(graphi_state_create(g, 3, &weights));
    for (int i = 0; i < SIDE * SIDE; i++) {
        x[i] = ldexpf((float)(i % 7 + 1), -140); /* 1e-42 and so on */
        w[i] = (float)(i % 5 + 1);
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        graphi_plan *plan;
        graphi_run *run;
        usual_mode();
        const unsigned mode = mode_now();
        check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = settings[i]}, &plan));
        check_ok(graphi_run_create(plan, weights, &run));
        check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
        check_ok(graphi_run_set(run, "w", GRAPHI_F32, w, sizeof w));
        for (int step = 0; step < 3; step++)
            check_ok(graphi_run_execute(run));
        assert_int_equal(mode_now(), mode);
        static const char *const names[] = {"product", "scaled", "grown", "next"};
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            expect_zeros(run, names[n], out, sizeof out);
        expect_zeros(run, "sum", out, sizeof *out);
        volatile float smallest = 0x1p-140f, half = 0.5f; /* the caller's own are as they were */
        assert_true(smallest * half > 0);
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
    }
    graphi_state_destroy(weights);
    graphi_graph_destroy(g);
}

/* What a network computes while it is built, standard deviations say, would be other numbers. */
static void modes_of_the_caller_build_the_same_networks(void **state)
{
    void (*const set[])(void) = {usual_mode, round_up, flush_to_zero};
    for (int n = 0; n < NETWORKS; n++) {
        graphi_graph_info info[3];
        for (int i = 0; i < 3; i++) {
            set[i]();
            graphi_graph *g = tiny_network(&networks[n]);
            fesetenv(FE_DFL_ENV);
            graphi_graph_get_info(g, &info[i]);
            graphi_graph_destroy(g);
            if (info[i].hash != info[0].hash)
                fail_msg("%s: another graph in mode %d", networks[n].name, i);
        }
    }
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Without it an application that has run a plan once would burn its cores for ever. Counted in CPU time. */
static void idle_processes_use_no_cpu(void **state)
{
    graphi_graph *g = tiny_network(&networks[0]);
    graphi_plan *plan;
    for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++) {
        graphi_setting setting = {.executors = cores, .width = 1, .driver = (graphi_driver)driver};
        check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = setting}, &plan));
        assert_true(trail(g, plan) != 0);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* workers go to sleep */
        double before = cpu_seconds();
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        double used = cpu_seconds() - before;
        if (used > 0.015)
            fail_msg("%.1f ms of CPU in 300 ms of doing nothing", used * 1e3);
        graphi_plan_destroy(plan);
    }
    graphi_graph_destroy(g);
}

/* Without it more workers than cores that the process may use (all on one core) would spin against each other for ever.
 */
static void one_core_for_many_workers_ends(void **state)
{
    cpu_set_t before, one;
    graphi_graph *g = tiny_network(&networks[0]);
    graphi_plan *plan;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    check_ok(
        graphi_plan_create(g, machine, &(graphi_plan_options){.setting = {.executors = cores, .width = 1}}, &plan));
    uint64_t expected = trail(g, plan);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    graphi_machine *small;
    check_ok(graphi_machine_create(0, &small));
    graphi_machine_info info;
    graphi_machine_get_info(small, &info);
    assert_int_equal(info.cores, 1);
    for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++) {
        graphi_setting setting = {.executors = cores, .width = 1, .driver = (graphi_driver)driver, .pin = GRAPHI_OFF};
        graphi_plan *other = with(plan, setting), *narrow = NULL;
        assert_true(trail(g, other) == expected); /* all on the one core that is left */
        graphi_plan_destroy(other);
        setting.executors = 1;
        check_ok(graphi_plan_create(g, small, &(graphi_plan_options){.setting = setting}, &narrow));
        assert_true(trail(g, narrow) == expected);
        graphi_plan_destroy(narrow);
    }
    assert_int_equal(graphi_plan_create(g, small, &(graphi_plan_options){.setting = {.executors = 2}}, &plan),
                     GRAPHI_USAGE);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    graphi_machine_destroy(small);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static int setup(void **state)
{
    graphi_machine_info info;
    if (open_machine(state))
        return 1;
    graphi_machine_get_info(machine, &info);
    cores = info.cores;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_give_the_same_bits_everywhere),
        cmocka_unit_test(uneven_teams_give_the_same_bits),
        cmocka_unit_test(threads_share_plans_and_cores),
        cmocka_unit_test(children_of_a_running_process_run_too),
        cmocka_unit_test(modes_of_the_caller_change_no_bits),
        cmocka_unit_test(modes_of_the_caller_build_the_same_networks),
        cmocka_unit_test(subnormal_numbers_are_zero),
        cmocka_unit_test(idle_processes_use_no_cpu),
        cmocka_unit_test(one_core_for_many_workers_ends),
    };
    return cmocka_run_group_tests(tests, setup, close_machines);
}
