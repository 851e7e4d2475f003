/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the caller in place of a run's own, and small graphs on the caller's thread: the same bits as copies give,
 * refusals of memory that does not do, no allocation, and no system call that waits, locks or moves a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/run/run.h"

#include <cmocka.h>

#include "fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 16, COUNT = ROWS * ROWS };
typedef float matrix[COUNT] __attribute__((aligned(GRAPHI_ALIGNMENT)));

static void fill(float *x, int seed)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)((i * 7919 + seed * 31) % 1009) / 1009 - 0.5f;
}

/* Two products with their tanh and a sum: y; z, a second name of y; t, a view of it; w, a parameter; half, beside y in
 * nothing. */
static graphi_graph *network(int64_t bound)
{
    graphi_graph *g;
    static float numbers[COUNT];
    fill(numbers, 5);
    check_ok(graphi_graph_create(&g));
    const int64_t rows = bound ? graphi_symbol(g, "rows", bound) : ROWS, dims[] = {rows, ROWS}, square[] = {ROWS, ROWS};
    const graphi_initializer init = {.data = numbers};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims);
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, square, &init);
    graphi_value a = graphi_tanh(g, graphi_matmul(g, x, w, 0, 0));
    graphi_value y = graphi_add(g, graphi_tanh(g, graphi_matmul(g, a, w, 0, 0)), x);
    graphi_output(g, "y", y);
    graphi_output(g, "half", graphi_mul(g, a, graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){0.5f})));
    if (!bound) {
        graphi_value v = graphi_exp(g, a);
        graphi_output(g, "v", v);
        graphi_output(g, "again", v);
        graphi_output(g, "turned", graphi_reshape(g, v, GRAPHI_LIST(COUNT)));
        graphi_output(g, "w", w);
    }
    check_ok(graphi_graph_status(g));
    return g;
}

struct session {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
};

static struct session begin(graphi_graph *g, const graphi_plan_options *options)
{
    struct session s = {.graph = g};
    check_ok(graphi_plan_create(g, machine, options, &s.plan));
    check_ok(graphi_state_create(g, 3, &s.state));
    check_ok(graphi_run_create(s.plan, s.state, &s.run));
    return s;
}

static void end(struct session *s)
{
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

static int port(const struct session *s, const char *name)
{
    int port = -1;
    check_ok(graphi_plan_port(s->plan, name, &port));
    return port;
}

#define refused(call, text)                                                                                            \
    do {                                                                                                               \
        assert_int_equal(call, GRAPHI_INVALID);                                                                        \
        if (!strstr(graphi_message(), text))                                                                           \
            fail_msg("found '%s', expected '%s'", graphi_message(), text);                                             \
    } while (0)

/* --- the same bits --- */

static const char *const outputs[] = {"y", "half", "v", "again", "turned", "w"};
enum { OUTPUTS = sizeof outputs / sizeof *outputs };

/* A result that is written elsewhere, or read from where the run's own memory was, differs from the copy's. */
static void bound_memory_has_the_copies_bits(void **state)
{
    static matrix x[2], copied[OUTPUTS], bound[OUTPUTS];
    const graphi_setting settings[] = {{0}, {.executors = 1, .width = 1, .driver = GRAPHI_DRIVER_COMBINING}};
    for (size_t i = 0; i < 2 * sizeof settings / sizeof *settings; i++) {
        const graphi_plan_options options = {.setting = settings[i / 2], .disable = i % 2 ? "all" : NULL};
        struct session s = begin(network(0), &options);
        for (int turn = 0; turn < 3; turn++) {
            fill(x[turn % 2], turn);
            check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, NULL, 0));
            for (int k = 0; k < OUTPUTS; k++) /* the parameter's name is no input's: outputs have the name alone */
                check_ok(graphi_run_bind(s.run, port(&s, outputs[k]), GRAPHI_F32, NULL, 0));
            check_ok(graphi_run_set(s.run, "x", GRAPHI_F32, x[turn % 2], sizeof *x));
            check_ok(graphi_run_execute(s.run));
            for (int k = 0; k < OUTPUTS; k++)
                check_ok(graphi_run_get(s.run, outputs[k], GRAPHI_F32, copied[k], sizeof *copied));
            check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, x[turn % 2], sizeof *x));
            memset(bound, 0xff, sizeof bound);
            for (int k = 0; k < OUTPUTS; k++)
                check_ok(graphi_run_bind(s.run, port(&s, outputs[k]), GRAPHI_F32, bound[k], sizeof *bound));
            check_ok(graphi_run_execute(s.run));
            for (int k = 0; k < OUTPUTS; k++) {
                if (memcmp(bound[k], copied[k], sizeof *bound))
                    fail_msg("setting %zu, turn %d: other bits in %s", i, turn, outputs[k]);
                matrix got;
                check_ok(graphi_run_get(s.run, outputs[k], GRAPHI_F32, got, sizeof got));
                assert_memory_equal(got, copied[k], sizeof got);
            }
        }
        end(&s);
    }
}

/* What is in the memory when the execution begins counts, without another call. */
static void inputs_are_read_where_they_lie(void **state)
{
    static matrix x, first, second, y;
    struct session s = begin(network(0), NULL);
    check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_bind(s.run, port(&s, "y"), GRAPHI_F32, y, sizeof y));
    fill(x, 1);
    check_ok(graphi_run_execute(s.run));
    memcpy(first, y, sizeof y);
    fill(x, 2);
    check_ok(graphi_run_execute(s.run));
    memcpy(second, y, sizeof y);
    assert_memory_not_equal(first, second, sizeof first);
    fill(x, 1);
    check_ok(graphi_run_set(s.run, "x", GRAPHI_F32, x, sizeof x)); /* a copy from now on */
    fill(x, 2);
    check_ok(graphi_run_execute(s.run));
    assert_memory_equal(first, y, sizeof y);
    check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, NULL, 0));
    refused(graphi_run_execute(s.run), "input 'x': found no data");
    end(&s);
}

/* Packed weights of before would be used where nothing told that the state has changed. */
static void changed_parameters_are_seen(void **state)
{
    static matrix x, w, y[3];
    struct session s = begin(network(0), NULL), t;
    check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, x, sizeof x));
    fill(x, 1);
    for (int i = 0; i < 3; i++) {
        check_ok(graphi_run_bind(s.run, port(&s, "y"), GRAPHI_F32, y[i], sizeof y[i]));
        check_ok(graphi_run_execute(s.run));
        check_ok(graphi_run_execute(s.run)); /* nothing has changed since: not looked at again */
        fill(w, 9 - i);
        check_ok(graphi_state_set(s.state, "w", w, sizeof w));
    }
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
    assert_memory_not_equal(y[1], y[2], sizeof y[1]);
    t = begin(network(0), NULL);
    fill(w, 8);
    check_ok(graphi_state_set(t.state, "w", w, sizeof w));
    check_ok(graphi_run_set(t.run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(t.run));
    check_ok(graphi_run_get(t.run, "y", GRAPHI_F32, y[0], sizeof y[0]));
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    end(&t);
    end(&s);
}

/* Fewer rows than the bound: in place where there is room for all, copied where there is room for the rows alone. */
static void sizes_follow_symbols(void **state)
{
    static matrix x, copy, y;
    struct session s = begin(network(ROWS), NULL);
    fill(x, 1);
    check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, x, sizeof x));
    for (int rows = ROWS; rows >= 4; rows -= 4) {
        const size_t bytes = (size_t)rows * ROWS * sizeof *x;
        check_ok(graphi_run_bind(s.run, port(&s, "y"), GRAPHI_F32, NULL, 0));
        check_ok(graphi_run_set_symbol(s.run, "rows", rows));
        check_ok(graphi_run_execute(s.run));
        check_ok(graphi_run_get(s.run, "y", GRAPHI_F32, copy, bytes));
        for (int room = 0; room < 2; room++) {
            memset(y, 0, sizeof y);
            check_ok(graphi_run_bind(s.run, port(&s, "y"), GRAPHI_F32, y, room ? sizeof y : bytes));
            check_ok(graphi_run_execute(s.run));
            assert_memory_equal(y, copy, bytes);
            for (size_t i = (size_t)rows * ROWS; i < COUNT; i++)
                assert_true(y[i] == 0);
        }
    }
    check_ok(graphi_run_bind(s.run, port(&s, "y"), GRAPHI_F32, y, 4 * ROWS * sizeof *y));
    check_ok(graphi_run_set_symbol(s.run, "rows", 8));
    refused(graphi_run_execute(s.run), "output 'y': found memory of 256 bytes, bound before a size grew");
    end(&s);
}

/* --- what is refused --- */

static void ports_have_numbers(void **state)
{
    struct session s = begin(network(0), NULL);
    graphi_port_kind kind;
    graphi_port found;
    int count = 0;
    for (; graphi_plan_port_at(s.plan, count, &kind, &found); count++) {
        assert_int_equal(port(&s, found.name), count);
        assert_int_equal(kind, count ? GRAPHI_PORT_OUTPUT : GRAPHI_PORT_INPUT);
        assert_int_equal(found.bytes, sizeof(matrix));
        assert_int_equal(found.rank, strcmp(found.name, "turned") ? 2 : 1);
    }
    assert_int_equal(count, 1 + OUTPUTS);
    refused(graphi_plan_port(s.plan, "q", &count),
            "port 'q': found no such input or output, expected one of x, y, half");
    end(&s);
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_output(g, "x", graphi_tanh(g, graphi_input(g, "x", GRAPHI_F32, 0, NULL)));
    s = begin(g, NULL);
    refused(graphi_plan_port(s.plan, "x", &count), "found an input and an output of that name");
    end(&s);
}

static void unfit_memory_is_refused(void **state)
{
    static struct {
        matrix a, b;
    } m;
    struct session s = begin(network(0), NULL);
    const int x = port(&s, "x"), y = port(&s, "y"), half = port(&s, "half");
    refused(graphi_run_bind(s.run, -1, GRAPHI_F32, m.a, sizeof m.a), "found port -1, expected 0 to 6");
    refused(graphi_run_bind(s.run, 7, GRAPHI_F32, m.a, sizeof m.a), "found port 7, expected 0 to 6");
    refused(graphi_run_bind(s.run, x, GRAPHI_I32, m.a, sizeof m.a), "input 'x': found int32, expected float32");
    refused(graphi_run_bind(s.run, y, GRAPHI_F32, m.a, sizeof m.a - 4),
            "output 'y': found memory of 1020 bytes, expected at least 1024");
    refused(graphi_run_bind(s.run, x, GRAPHI_F32, m.a + 1, sizeof m.a), "found memory 4 bytes behind a multiple of 64");
    refused(graphi_run_bind(s.run, x, GRAPHI_F32, NULL, sizeof m.a), "found NULL as memory, expected 1024 bytes");
    check_ok(graphi_run_bind(s.run, x, GRAPHI_F32, m.a, sizeof m.a));
    refused(graphi_run_bind(s.run, y, GRAPHI_F32, m.a + 16, sizeof m.a),
            "output 'y': found memory that overlaps that of input 'x', expected it apart");
    check_ok(graphi_run_bind(s.run, y, GRAPHI_F32, m.b, sizeof m.b));
    refused(graphi_run_bind(s.run, half, GRAPHI_F32, m.b, sizeof m.b), "overlaps that of output 'y'");
    refused(graphi_run_bind(s.run, x, GRAPHI_F32, m.a + 16, sizeof m.a), "overlaps that of output 'y'");
    fill(m.a, 1);
    check_ok(graphi_run_execute(s.run)); /* as it was bound before the refusals */
    matrix got;
    check_ok(graphi_run_get(s.run, "y", GRAPHI_F32, got, sizeof got));
    assert_memory_equal(got, m.b, sizeof got);
    end(&s);
}

/* --- small graphs --- */

/* A graph of microseconds that waited for cores, or locked files, would take many times as long. */
static void small_graphs_stay_with_the_caller(void **state)
{
    static matrix x, y;
    struct session s = begin(network(0), NULL);
    graphi_plan_info info;
    graphi_run_info told;
    graphi_plan_get_info(s.plan, &info);
    assert_int_equal(info.setting.policy, GRAPHI_POLICY_SEQUENTIAL);
    assert_int_equal(info.setting.executors * info.setting.width, 1);
    assert_true(run_is_serial(&s.plan->setting));
    fill(x, 1);
    check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_bind(s.run, port(&s, "y"), GRAPHI_F32, y, sizeof y));
    const uint64_t before = mem_allocations(), leases = lease_count();
    for (int i = 0; i < 100; i++) {
        check_ok(graphi_run_bind(s.run, port(&s, "x"), GRAPHI_F32, x, sizeof x));
        check_ok(graphi_run_execute(s.run));
    }
    assert_int_equal(mem_allocations(), before);
    assert_int_equal(lease_count(), leases);
    graphi_run_get_info(s.run, &told);
    assert_int_equal(told.allocations, 0);
    end(&s);
    const graphi_plan_options asked = {.setting = {.executors = 1, .width = 1}};
    s = begin(network(0), &asked);
    graphi_plan_get_info(s.plan, &info);
    assert_int_equal(info.setting.policy, GRAPHI_POLICY_CRITICAL_PATH); /* what is asked for is what is done */
    check_ok(graphi_run_set(s.run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(s.run));
    assert_int_equal(lease_count(), leases + 1); /* or the count above could not rise */
    end(&s);
}

/* The process ends with SIGSYS at the first call of these. */
static bool forbid(void)
{
    static const int calls[] = {SYS_futex, SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_fcntl, SYS_openat,
                                SYS_mmap,  SYS_munmap,            SYS_brk,               SYS_madvise};
    enum { CALLS = sizeof calls / sizeof *calls };
    struct sock_filter filter[2 + 2 * CALLS] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    for (int i = 0; i < CALLS; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { NO_FILTER = 77 };

/* In a child that may not wait, lock, move threads or map memory from the second execution on. */
static int execute_forbidden(const graphi_setting *setting)
{
    static matrix x, y;
    const graphi_plan_options options = {.setting = *setting};
    struct session s = begin(network(0), &options);
    const int in = port(&s, "x"), out = port(&s, "y");
    bool good = graphi_run_bind(s.run, in, GRAPHI_F32, x, sizeof x) == GRAPHI_OK &&
                graphi_run_bind(s.run, out, GRAPHI_F32, y, sizeof y) == GRAPHI_OK &&
                graphi_run_execute(s.run) == GRAPHI_OK;
    if (!forbid())
        return NO_FILTER;
    for (int i = 0; i < 10 && good; i++)
        good = graphi_run_bind(s.run, in, GRAPHI_F32, x, sizeof x) == GRAPHI_OK &&
               graphi_run_set(s.run, "x", GRAPHI_F32, x, sizeof x) == GRAPHI_OK &&
               graphi_run_execute(s.run) == GRAPHI_OK;
    return !good;
}

static int status_of_child(const graphi_setting *setting)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(execute_forbidden(setting));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void small_runs_make_no_system_calls(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); /* their own calls */
#endif
    int status = status_of_child(&(graphi_setting){0});
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    status = status_of_child(&(graphi_setting){.executors = 1, .width = 1}); /* takes a lease: the filter works */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

/* --- many threads --- */

struct client {
    struct session *s;
    pthread_t thread;
    matrix x, y;
    bool good;
    int number;
};

static void *serve(void *argument)
{
    struct client *client = argument;
    graphi_run *run;
    client->good = graphi_run_create(client->s->plan, client->s->state, &run) == GRAPHI_OK;
    if (!client->good)
        return NULL;
    fill(client->x, client->number);
    client->good = graphi_run_bind(run, port(client->s, "x"), GRAPHI_F32, client->x, sizeof client->x) == GRAPHI_OK &&
                   graphi_run_bind(run, port(client->s, "y"), GRAPHI_F32, client->y, sizeof client->y) == GRAPHI_OK;
    for (int i = 0; i < 500 && client->good; i++)
        client->good = graphi_run_execute(run) == GRAPHI_OK;
    graphi_run_destroy(run);
    return NULL;
}

/* Eight threads over one state, none of which waits for cores: with the results of one after the other. */
static void threads_share_a_state(void **state)
{
    enum { CLIENTS = 8 };
    static struct client client[CLIENTS];
    static matrix y;
    struct session s = begin(network(0), NULL);
    const uint64_t leases = lease_count();
    for (int i = 0; i < CLIENTS; i++) {
        client[i].s = &s;
        client[i].number = i;
        assert_int_equal(pthread_create(&client[i].thread, NULL, serve, &client[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(client[i].thread, NULL);
    assert_int_equal(lease_count(), leases);
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(client[i].good);
        check_ok(graphi_run_set(s.run, "x", GRAPHI_F32, client[i].x, sizeof client[i].x));
        check_ok(graphi_run_execute(s.run));
        check_ok(graphi_run_get(s.run, "y", GRAPHI_F32, y, sizeof y));
        assert_memory_equal(y, client[i].y, sizeof y);
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_memory_has_the_copies_bits),  cmocka_unit_test(inputs_are_read_where_they_lie),
        cmocka_unit_test(changed_parameters_are_seen),       cmocka_unit_test(sizes_follow_symbols),
        cmocka_unit_test(ports_have_numbers),                cmocka_unit_test(unfit_memory_is_refused),
        cmocka_unit_test(small_graphs_stay_with_the_caller), cmocka_unit_test(small_runs_make_no_system_calls),
        cmocka_unit_test(threads_share_a_state),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
