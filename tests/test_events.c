/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between executions: two runs on two threads that wait for each other under every driver, in virtual time and
 * in replays, between processes, and what becomes of messages that do not come, come twice, or are cancelled. */
#include "graphi/event.h"
#include "base/memory.h"
#include "engine/compile/plan.h"
#include "engine/choose/planning.h"
#include "schedule/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

enum { ROWS = 8, ROUNDS = 3, STEPS = 20 };

static graphi_event *new_event(const char *name)
{
    graphi_event *event;
    check_ok(graphi_event_create(name, NULL, &event));
    return event;
}

/* Round by round a number goes to the peer, which waits for it: peer 0 sends x * 2 first, peer 1 what it got plus one,
 * and so on. Beside that each does work that waits for nothing. The arrays are bound: `box` is where it travels. */
struct peer {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_lease *lease;
    graphi_machine *part;
    float *in[ROUNDS], *out[ROUNDS]; /* of each round */
    int index, steps;
    graphi_status status;
    char message[300];
};

static const int64_t dims[] = {ROWS, ROWS};

static graphi_value work(graphi_graph *g, int k)
{
    char name[16];
    snprintf(name, sizeof name, "work%d", k);
    graphi_value w = graphi_parameter(g, name, GRAPHI_F32, 2, dims, &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM,
                                                                                         .a = -1, .b = 1});
    return graphi_tanh(g, graphi_matmul(g, w, w, 0, 0));
}

/* Both graphs have the same numbers: event r is sent to the peer in round r, and received from it. */
static void build(struct peer *p)
{
    check_ok(graphi_graph_create(&p->graph));
    graphi_graph *g = p->graph;
    graphi_value got = graphi_input(g, "x", GRAPHI_F32, 2, dims), side = GRAPHI_NONE;
    for (int r = 0; r < ROUNDS; r++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", r);
        graphi_value in = graphi_input(g, name, GRAPHI_F32, 2, dims);
        snprintf(name, sizeof name, "out%d", r);
        if (p->index == 1)
            got = graphi_wait_event(g, in, r);
        graphi_value sent = graphi_signal_event(g, graphi_add(g, got, got), r);
        graphi_output(g, name, sent);
        if (p->index == 0)
            got = graphi_wait_event(g, in, r);
        side = r ? graphi_add(g, side, work(g, r)) : work(g, r);
    }
    graphi_output(g, "side", side);
    graphi_output(g, "last", graphi_add(g, got, side));
}

static void bind_port(struct peer *p, const char *prefix, int r, float *memory)
{
    char name[16];
    int port;
    snprintf(name, sizeof name, "%s%d", prefix, r);
    check_ok(graphi_plan_port(p->plan, name, &port));
    check_ok(graphi_run_bind(p->run, port, GRAPHI_F32, memory, ROWS * ROWS * sizeof(float)));
}

static void open_peer(struct peer *p, int index, graphi_setting setting, const graphi_machine *on)
{
    *p = (struct peer){.index = index, .steps = STEPS};
    build(p);
    const graphi_plan_options options = {.setting = setting};
    check_ok(graphi_plan_create(p->graph, on, &options, &p->plan));
    check_ok(graphi_state_create(p->graph, 3, &p->state));
    check_ok(graphi_run_create(p->plan, p->state, &p->run));
    feed_zeros(p->graph, p->run);
    check_ok(graphi_run_set_patience(p->run, 20)); /* ends a deadlock */
}

static void close_peer(struct peer *p)
{
    graphi_run_destroy(p->run);
    graphi_state_destroy(p->state);
    graphi_plan_destroy(p->plan);
    graphi_graph_destroy(p->graph);
}

static void *execute(void *argument)
{
    struct peer *p = argument;
    float x[ROWS * ROWS];
    for (int i = 0; i < p->steps && p->status == GRAPHI_OK; i++) {
        for (int k = 0; k < ROWS * ROWS; k++)
            x[k] = (float)(i + 1);
        p->status = graphi_run_set(p->run, "x", GRAPHI_F32, x, sizeof x);
        if (p->status == GRAPHI_OK)
            p->status = graphi_run_execute(p->run);
        if (p->status == GRAPHI_OK && p->index == 0) { /* 2 x, 4 x, … : doubled twice a round */
            p->status = graphi_run_get(p->run, "out2", GRAPHI_F32, x, sizeof x);
            if (p->status == GRAPHI_OK && x[5] != (float)(i + 1) * 32)
                p->status = GRAPHI_MISSED;
        }
    }
    snprintf(p->message, sizeof p->message, "%s", p->status == GRAPHI_OK       ? ""
                                                  : p->status == GRAPHI_MISSED ? "another number"
                                                                               : graphi_message());
    return NULL;
}

struct pair {
    struct peer peer[2];
    graphi_event *event[2][ROUNDS]; /* [to] */
    _Alignas(64) float box[2][ROUNDS][ROWS * ROWS]; /* [to] */
};

static void open_pair(struct pair *pair, graphi_setting setting, const graphi_machine *on)
{
    memset(pair, 0, sizeof *pair);
    for (int i = 0; i < 2; i++)
        open_peer(&pair->peer[i], i, setting, on);
    for (int to = 0; to < 2; to++)
        for (int r = 0; r < ROUNDS; r++) {
            char name[32];
            snprintf(name, sizeof name, "round %d to peer %d", r, to);
            pair->event[to][r] = new_event(name);
            bind_port(&pair->peer[to], "in", r, pair->box[to][r]);
            bind_port(&pair->peer[1 - to], "out", r, pair->box[to][r]);
            check_ok(graphi_run_receive(pair->peer[to].run, r, pair->event[to][r]));
            check_ok(graphi_run_send(pair->peer[1 - to].run, r, pair->event[to][r]));
        }
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        close_peer(&pair->peer[i]);
    for (int to = 0; to < 2; to++)
        for (int r = 0; r < ROUNDS; r++)
            graphi_event_destroy(pair->event[to][r]);
}

static void run_pair(struct pair *pair)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, execute, &pair->peer[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static const graphi_setting settings[] = {
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_COMBINING, .executors = 1, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_COMBINING, .executors = 3, .width = 1},
    {.policy = GRAPHI_POLICY_FIFO, .driver = GRAPHI_DRIVER_COMBINING, .executors = 1, .width = 2},
    {.policy = GRAPHI_POLICY_S12, .driver = GRAPHI_DRIVER_COMBINING, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_DEDICATED, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_STATIC, .executors = 1, .width = 1},
    {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_STATIC, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_S12, .driver = GRAPHI_DRIVER_STATIC, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_NAIVE, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_MALLEABLE, .executors = 2, .width = 1},
    {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1},
    {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 2},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* A driver that looks for no messages hangs; one that takes a message for there too early computes with old numbers. On
 * a described machine: two executions of several threads run side by side on whatever cores there are. */
static void peers_exchange_messages_under_every_driver(void **state)
{
    static struct pair pair;
    graphi_machine *six = six_cores();
    for (int s = 0; s < SETTINGS; s++) {
        open_pair(&pair, settings[s], six);
        run_pair(&pair);
        for (int i = 0; i < 2; i++)
            if (pair.peer[i].status)
                fail_msg("setting %d, peer %d: %s", s, i, pair.peer[i].message);
        close_pair(&pair);
    }
    graphi_machine_destroy(six);
}

/* The rounds of tracing, and of replays, know messages too: the times of operations lie within the execution. */
static void traces_have_operations_that_waited(void **state)
{
    static struct pair pair;
    graphi_machine *six = six_cores();
    open_pair(&pair, settings[1], six);
    for (int i = 0; i < 2; i++)
        check_ok(graphi_run_trace(pair.peer[i].run, true));
    run_pair(&pair);
    graphi_trace_summary summary;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pair.peer[i].status, GRAPHI_OK);
        check_ok(graphi_run_trace_summary(pair.peer[i].run, &summary));
        assert_true(summary.span_ms > 0 && summary.operations > 2 * ROUNDS);
    }
    close_pair(&pair);
    graphi_machine_destroy(six);
}

/* --- one run, whose messages the test sends --- */

struct single {
    struct peer peer;
    graphi_event *receive, *send;
};

static void open_single(struct single *s, graphi_setting setting, const graphi_machine *on)
{
    *s = (struct single){.receive = new_event("the test's message"), .send = new_event("the run's message")};
    struct peer *p = &s->peer;
    check_ok(graphi_graph_create(&p->graph));
    graphi_value x = graphi_input(p->graph, "x", GRAPHI_F32, 2, dims), w = work(p->graph, 0);
    graphi_value y = graphi_tanh(p->graph, graphi_wait_event(p->graph, x, 4));
    graphi_output(p->graph, "y", graphi_add(p->graph, graphi_signal_event(p->graph, y, 9), w));
    const graphi_plan_options options = {.setting = setting};
    check_ok(graphi_plan_create(p->graph, on, &options, &p->plan));
    check_ok(graphi_state_create(p->graph, 3, &p->state));
    check_ok(graphi_run_create(p->plan, p->state, &p->run));
    feed_zeros(p->graph, p->run);
    check_ok(graphi_run_receive(p->run, 4, s->receive));
    check_ok(graphi_run_send(p->run, 9, s->send));
}

static void close_single(struct single *s)
{
    close_peer(&s->peer);
    graphi_event_destroy(s->receive);
    graphi_event_destroy(s->send);
}

static void expect(graphi_status status, graphi_status wanted, const char *text)
{
    assert_int_equal(status, wanted);
    if (!strstr(graphi_message(), text))
        fail_msg("found \"%s\", expected \"%s\"", graphi_message(), text);
}

static bool take(graphi_event *event)
{
    bool taken = false;
    check_ok(graphi_event_take(event, &taken));
    return taken;
}

/* An execution would hang for ever. */
static void a_message_that_never_comes_is_named(void **state)
{
    graphi_machine *six = six_cores();
    for (int i = 0; i < SETTINGS; i++) {
        struct single s;
        open_single(&s, settings[i], six);
        check_ok(graphi_run_set_patience(s.peer.run, 0.02));
        expect(graphi_run_execute(s.peer.run), GRAPHI_IO, "the test's message");
        /* who waits for what it did not send hears of it */
        bool taken;
        expect(graphi_event_take(s.send, &taken), GRAPHI_INVALID, "the run's message: found that its messages are");
        graphi_event_reset(s.send);
        check_ok(graphi_event_send(s.receive)); /* and it may go on */
        check_ok(graphi_run_execute(s.peer.run));
        assert_true(take(s.send));
        close_single(&s);
    }
    graphi_machine_destroy(six);
}

static void a_cancelled_message_ends_the_execution(void **state)
{
    graphi_machine *six = six_cores();
    for (int i = 0; i < SETTINGS; i++) {
        struct single s;
        open_single(&s, settings[i], six);
        graphi_event_cancel(s.receive);
        expect(graphi_run_execute(s.peer.run), GRAPHI_INVALID, "the test's message: found that its messages are");
        expect(graphi_event_send(s.receive), GRAPHI_INVALID, "cancelled");
        close_single(&s);
    }
    graphi_machine_destroy(six);
}

/* The first would be lost, and one side a message ahead for ever. */
static void a_message_twice_is_refused(void **state)
{
    struct single s;
    graphi_machine *six = six_cores();
    open_single(&s, settings[0], six);
    check_ok(graphi_event_send(s.receive));
    expect(graphi_event_send(s.receive), GRAPHI_INVALID, "found a message that nobody has taken yet");
    check_ok(graphi_run_execute(s.peer.run));
    check_ok(graphi_event_send(s.receive));
    expect(graphi_run_execute(s.peer.run), GRAPHI_INVALID, "the run's message: found a message that nobody has taken");
    assert_true(take(s.send));
    bool taken; /* the second one was never sent */
    expect(graphi_event_take(s.send, &taken), GRAPHI_INVALID, "the run's message: found that its messages are");
    close_single(&s);
    graphi_machine_destroy(six);
}

static void mistakes_are_told(void **state)
{
    struct single s;
    graphi_machine *six = six_cores();
    open_single(&s, settings[0], six);
    _Alignas(64) unsigned char memory[2 * GRAPHI_EVENT_BYTES];
    graphi_event *none = NULL;
    expect(graphi_event_create("odd", memory + 8, &none), GRAPHI_INVALID, "expected it aligned to 64");
    expect(graphi_run_receive(s.peer.run, 9, s.receive), GRAPHI_INVALID, "found event 9");
    expect(graphi_run_send(s.peer.run, 4, s.send), GRAPHI_INVALID, "found event 4");
    expect(graphi_run_set_patience(s.peer.run, -1), GRAPHI_INVALID, "found a patience of -1");
    check_ok(graphi_run_receive(s.peer.run, 4, NULL));
    expect(graphi_run_execute(s.peer.run), GRAPHI_INVALID, "found no event for number 4");
    close_single(&s);
    graphi_graph *g;
    graphi_plan *plan = NULL;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims);
    graphi_output(g, "a", graphi_wait_event(g, x, 1));
    graphi_output(g, "b", graphi_wait_event(g, x, 1));
    expect(graphi_plan_create(g, six, NULL, &plan), GRAPHI_INVALID, "found event 1, which another operation waits for");
    graphi_graph_destroy(g);
    check_ok(graphi_graph_create(&g));
    graphi_wait_event(g, graphi_parameter(g, "w", GRAPHI_F32, 2, dims, &(graphi_initializer){.b = 1}), 0);
    expect(graphi_graph_status(g), GRAPHI_INVALID, "found a parameter");
    graphi_graph_destroy(g);
    graphi_machine_destroy(six);
}

/* An output of what is fed is a copy of it: it is what came with the message, whatever is fed afterwards. */
static void what_waits_may_be_an_output(void **state)
{
    struct peer p = {.index = 0};
    graphi_machine *six = six_cores();
    check_ok(graphi_graph_create(&p.graph));
    graphi_output(p.graph, "y", graphi_wait_event(p.graph, graphi_input(p.graph, "x", GRAPHI_F32, 2, dims), 0));
    check_ok(graphi_plan_create(p.graph, six, NULL, &p.plan));
    check_ok(graphi_state_create(p.graph, 1, &p.state));
    check_ok(graphi_run_create(p.plan, p.state, &p.run));
    float x[ROWS * ROWS] = {7, 8}, y[ROWS * ROWS];
    graphi_event *event = new_event("x");
    check_ok(graphi_run_receive(p.run, 0, event));
    check_ok(graphi_run_set(p.run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_event_send(event));
    check_ok(graphi_run_execute(p.run));
    x[1] = 9;
    check_ok(graphi_run_set(p.run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_get(p.run, "y", GRAPHI_F32, y, sizeof y));
    assert_true(y[0] == 7 && y[1] == 8);
    close_peer(&p);
    graphi_event_destroy(event);
    graphi_machine_destroy(six);
}

/* --- virtual time, levels, memory, processes --- */

static void virtual_time_has_messages(void **state)
{
    graphi_machine *six = six_cores();
    for (int s = 0; s < SETTINGS; s++) {
        struct peer p;
        open_peer(&p, 0, settings[s], six);
        graphi_simulation simulation;
        check_ok(graphi_plan_simulate(p.plan, NULL, &simulation));
        assert_true(simulation.makespan_ms > 0);
        close_peer(&p);
    }
    graphi_machine_destroy(six);
}

/* A replay that knows no messages would place less, or something else. */
static void replays_have_messages(void **state)
{
    graphi_machine *six = six_cores();
    for (int i = 1; i < 4; i++) {
        struct peer p;
        struct schedule *s;
        struct simulation simulation;
        uint64_t decisions = 0;
        open_peer(&p, 0, settings[i], six);
        check_ok(plan_schedule(p.plan, &s));
        check_ok(schedule_log_enable(s));
        check_ok(schedule_simulate(s, NULL, NULL, NULL, &simulation));
        check_ok(schedule_replay(s, &decisions));
        assert_true(decisions == simulation.decisions);
        schedule_destroy(s);
        close_peer(&p);
    }
    graphi_machine_destroy(six);
}

/* What a peer waits for would start last: nothing here comes after it, but much comes after what it sends back. */
static void signals_are_above_what_waits_for_them(void **state)
{
    struct peer p = {.index = 0};
    graphi_machine *six = six_cores();
    check_ok(graphi_graph_create(&p.graph));
    graphi_value x = graphi_input(p.graph, "x", GRAPHI_F32, 2, dims), y = graphi_wait_event(p.graph, x, 5);
    graphi_output(p.graph, "sent", graphi_signal_event(p.graph, graphi_tanh(p.graph, x), 5));
    for (int i = 0; i < 4; i++)
        y = graphi_matmul(p.graph, y, work(p.graph, i), 0, 0);
    graphi_output(p.graph, "y", y);
    check_ok(graphi_plan_create(p.graph, six, NULL, &p.plan));
    const struct compiled *c = p.plan->compiled;
    assert_int_equal(c->messages.count, 2);
    const int sends = c->messages.data[1].sends;
    assert_true(p.plan->level[c->messages.data[sends].task] > p.plan->level[c->messages.data[1 - sends].task]);
    graphi_plan_destroy(p.plan);
    graphi_graph_destroy(p.graph);
    graphi_machine_destroy(six);
}

static void executions_with_messages_allocate_nothing(void **state)
{
    struct single s;
    graphi_machine *six = six_cores();
    open_single(&s, settings[1], six);
    for (int i = 0; i < 3; i++) {
        check_ok(graphi_event_send(s.receive));
        const uint64_t before = mem_allocations();
        check_ok(graphi_run_execute(s.peer.run));
        if (i)
            assert_int_equal(mem_allocations(), before);
        assert_true(take(s.send));
    }
    close_single(&s);
    graphi_machine_destroy(six);
}

/* Another process sends into memory that both have mapped. */
static void a_message_comes_from_another_process(void **state)
{
    unsigned char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    struct single s;
    graphi_event *received;
    graphi_machine *six = six_cores();
    open_single(&s, settings[1], six);
    check_ok(graphi_event_create("from the child", shared, &received));
    check_ok(graphi_run_receive(s.peer.run, 4, received));
    const pid_t child = fork();
    if (child == 0) {
        graphi_event *event;
        usleep(2000);
        _exit(graphi_event_create("child's", shared, &event) != GRAPHI_OK || graphi_event_send(event) != GRAPHI_OK);
    }
    check_ok(graphi_run_execute(s.peer.run));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close_single(&s);
    graphi_event_destroy(received);
    munmap(shared, 4096);
    graphi_machine_destroy(six);
}

static void failed_allocations_are_told(void **state)
{
    struct single s;
    graphi_machine *six = six_cores();
    open_single(&s, settings[1], six);
    graphi_status status = GRAPHI_MEMORY;
    graphi_run *run = NULL;
    for (long n = 0; status != GRAPHI_OK && n < 200; n++) {
        mem_fail_after(n);
        status = graphi_run_create(s.peer.plan, s.peer.state, &run);
        mem_fail_after(-1);
        assert_true(status == GRAPHI_OK || (status == GRAPHI_MEMORY && !run));
    }
    assert_non_null(run);
    graphi_run_destroy(run);
    close_single(&s);
    graphi_machine_destroy(six);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_exchange_messages_under_every_driver),
        cmocka_unit_test(traces_have_operations_that_waited),
        cmocka_unit_test(a_message_that_never_comes_is_named),
        cmocka_unit_test(a_cancelled_message_ends_the_execution),
        cmocka_unit_test(a_message_twice_is_refused),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(what_waits_may_be_an_output),
        cmocka_unit_test(virtual_time_has_messages),
        cmocka_unit_test(replays_have_messages),
        cmocka_unit_test(signals_are_above_what_waits_for_them),
        cmocka_unit_test(executions_with_messages_allocate_nothing),
        cmocka_unit_test(a_message_comes_from_another_process),
        cmocka_unit_test(failed_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
