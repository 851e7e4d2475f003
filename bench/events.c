/* SPDX-License-Identifier: Apache-2.0 */
/* What a message between two runs costs: a graph that waits for a message and sends one on, executed by two threads on
 * a core each, against the same round trips between two threads that do nothing else but look at a word and write one.
 * A round trip of the runs is a chain of operations in one execution: each waits for the peer's, and signals. */
#include "five_nodes.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 30, QUICK_ROUNDS = 5, TRIPS = 200, BARE = 0, RUNS, WAYS };

struct side {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_machine *part;
    graphi_lease *lease;
    graphi_status status;
    pthread_t thread;
    int index;
    unsigned trips; /* bare ones so far */
};

struct line {
    _Alignas(128) atomic_uint word;
};

static struct side side[2];
static struct line line[2]; /* what each side reads */
static graphi_event *event[2][TRIPS]; /* [to] */
static pthread_barrier_t barrier;
static int repeats;
static bool bare;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* --- the two ways --- */

static void bare_trips(struct side *s)
{
    for (int i = 0; i < TRIPS; i++) {
        s->trips++;
        if (s->index == 0)
            atomic_store_explicit(&line[1].word, s->trips, memory_order_release);
        for (unsigned turns = 0; atomic_load_explicit(&line[s->index].word, memory_order_acquire) != s->trips;)
            if (++turns % 4096 == 0)
                sched_yield();
        if (s->index == 1)
            atomic_store_explicit(&line[0].word, s->trips, memory_order_release);
    }
}

static void *play(void *argument)
{
    struct side *s = argument;
    if (s->status == GRAPHI_OK)
        s->status = graphi_lease_enter(s->lease);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < repeats && s->status == GRAPHI_OK; i++)
        if (bare)
            bare_trips(s);
        else
            s->status = graphi_run_execute(s->run);
    pthread_barrier_wait(&barrier);
    graphi_lease_leave(s->lease);
    return NULL;
}

/* Milliseconds a round trip; below 0: it failed. */
static double turn(bool is_bare)
{
    bare = is_bare;
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&side[i].thread, NULL, play, &side[i]) != 0)
            exit(told(GRAPHI_UNSUPPORTED)); /* the other one waits for it */
    pthread_barrier_wait(&barrier);
    const double begin = now_ms();
    pthread_barrier_wait(&barrier);
    const double ms = (now_ms() - begin) / repeats / TRIPS;
    for (int i = 0; i < 2; i++)
        pthread_join(side[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    return side[0].status == GRAPHI_OK && side[1].status == GRAPHI_OK ? ms : -1;
}

/* --- the graphs --- */

static void build(struct side *s)
{
    graphi_value x = graphi_input(s->graph, "x", GRAPHI_F32, 1, (int64_t[]){1});
    for (int i = 0; i < TRIPS; i++) {
        x = s->index == 0 ? graphi_signal_event(s->graph, x, i) : graphi_wait_event(s->graph, x, i);
        x = s->index == 0 ? graphi_wait_event(s->graph, x, i) : graphi_signal_event(s->graph, x, i);
    }
    graphi_output(s->graph, "y", x);
}

static graphi_status open_side(struct bench *bench, struct side *s)
{
    const int parts = bench->about.cores > 1 ? 2 : 1;
    const graphi_plan_options options = {.setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                                     .driver = GRAPHI_DRIVER_COMBINING, .executors = 1, .width = 1}};
    float one = 1;
    graphi_status status = graphi_graph_create(&s->graph);
    if (status == GRAPHI_OK) {
        build(s);
        status = graphi_machine_part(bench->machine, s->index % parts, parts,
                                     &(graphi_part_options){.oversubscribe = parts == 1}, &s->part);
    }
    if (status == GRAPHI_OK)
        status = graphi_lease_take(s->part, NULL, &s->lease);
    if (status == GRAPHI_OK)
        status = graphi_plan_create(s->graph, s->part, &options, &s->plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(s->graph, 1, &s->state);
    if (status == GRAPHI_OK)
        status = graphi_run_create(s->plan, s->state, &s->run);
    return told(status == GRAPHI_OK ? graphi_run_set(s->run, "x", GRAPHI_F32, &one, sizeof one) : status);
}

static graphi_status connect(void)
{
    graphi_status status = GRAPHI_OK;
    for (int to = 0; to < 2; to++)
        for (int i = 0; i < TRIPS && status == GRAPHI_OK; i++) {
            status = graphi_event_create("trip", NULL, &event[to][i]);
            if (status == GRAPHI_OK)
                status = graphi_run_receive(side[to].run, i, event[to][i]);
            if (status == GRAPHI_OK)
                status = graphi_run_send(side[1 - to].run, i, event[to][i]);
        }
    return told(status);
}

static void close_all(void)
{
    for (int k = 0; k < 2; k++) {
        graphi_run_destroy(side[k].run);
        graphi_state_destroy(side[k].state);
        graphi_plan_destroy(side[k].plan);
        graphi_graph_destroy(side[k].graph);
        graphi_lease_release(side[k].lease);
        graphi_machine_destroy(side[k].part);
        for (int i = 0; i < TRIPS; i++)
            graphi_event_destroy(event[k][i]);
    }
}

static void report(struct bench *bench, double ms[WAYS][ROUNDS], int rounds)
{
    static const char *const id[] = {"round trip of two words", "round trip of two runs"};
    for (int k = 0; k < WAYS; k++) {
        json_t *row = result_row(&bench->result, id[k], "graphi");
        result_times(row, ms[k], rounds);
        if (k)
            result_ratio(row, id[BARE], ms[k], ms[BARE], rounds);
    }
    result_goal(&bench->result, "round trip of messages over that of bare words",
                result_paired(ms[RUNS], ms[BARE], rounds), 1.5, false);
}

static graphi_status run(struct bench *bench)
{
    static double ms[WAYS][ROUNDS];
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    repeats = bench->options.quick ? 5 : 50;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < 2 && status == GRAPHI_OK; i++) {
        side[i].index = i;
        status = open_side(bench, &side[i]);
    }
    if (status == GRAPHI_OK)
        status = connect();
    for (int r = -1; r < rounds && status == GRAPHI_OK; r++) /* the first one warms up */
        for (int k = 0; k < WAYS && status == GRAPHI_OK; k++) {
            const double taken = turn(k == BARE);
            ms[k][r < 0 ? 0 : r] = taken;
            status = taken < 0 ? told(GRAPHI_INVALID) : report_interrupted() ? GRAPHI_INTERRUPTED : GRAPHI_OK;
        }
    if (status == GRAPHI_OK)
        report(bench, ms, rounds);
    close_all();
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "events", run); }
