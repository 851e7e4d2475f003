/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs: a graph of five small nodes fed, executed and fetched by C, in memory of the caller and by copies,
 * beside ONNX Runtime on the same graph (one thread, input and output bound, from Python, whose call is part of its
 * time: bench/frameworks/run_cost_onnxruntime.py). Turns of some thousand executions alternate. */
#include "five_nodes.h"
#include "frameworks/peer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 40, QUICK_ROUNDS = 5, BOUND = 0, COPIED, PEER, ENGINES };

struct cost {
    struct bench *bench;
    struct five_nodes five;
    graphi_run *bound, *copied;
    five_array x, y, fetched;
    struct peer peer;
    bool has_peer;
    char reason[300]; /* why there is none */
    int executions;   /* of a turn */
    double ms[ENGINES][ROUNDS];
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* --- ours --- */

static graphi_status bound_turn(struct cost *c)
{
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < c->executions && status == GRAPHI_OK; i++)
        status = graphi_run_execute(c->bound);
    return status;
}

static graphi_status copied_turn(struct cost *c)
{
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < c->executions && status == GRAPHI_OK; i++) {
        status = graphi_run_set(c->copied, "x", GRAPHI_F32, c->x, sizeof c->x);
        if (status == GRAPHI_OK)
            status = graphi_run_execute(c->copied);
        if (status == GRAPHI_OK)
            status = graphi_run_get(c->copied, "y", GRAPHI_F32, c->fetched, sizeof c->fetched);
    }
    return status;
}

static graphi_status our_turn(struct cost *c, graphi_status (*turn)(struct cost *), double *ms)
{
    const double begin = now_ms();
    graphi_status status = turn(c);
    *ms = (now_ms() - begin) / c->executions;
    return told(status);
}

/* --- the peer --- */

/* The same graph has the same results, or its times say nothing. */
static bool agrees(struct cost *c)
{
    json_t *answer = peer_ask(&c->peer, json_pack("{s:s}", "cmd", "check"), 60);
    const json_t *found = answer ? json_object_get(answer, "y") : NULL;
    double apart = json_array_size(found) == FIVE_COUNT ? 0 : INFINITY;
    for (size_t i = 0; i < json_array_size(found) && i < FIVE_COUNT; i++)
        apart = fmax(apart, fabs(json_number_value(json_array_get(found, i)) - (double)c->y[i]));
    json_decref(answer);
    if (apart > 1e-4 && !c->peer.reason[0])
        snprintf(c->peer.reason, sizeof c->peer.reason, "its results are %g apart", apart);
    return apart <= 1e-4;
}

static void start_peer(struct cost *c)
{
    char scripts[2200], environments[2200], python[4400], script[4400];
    peer_folders(scripts, environments, sizeof scripts);
    if (!peer_prepare(scripts, environments, "onnxruntime", c->bench->options.quiet)) {
        snprintf(c->reason, sizeof c->reason, "its environment could not be made (setup.sh)");
        return;
    }
    snprintf(python, sizeof python, "%s/onnxruntime/bin/python", environments);
    snprintf(script, sizeof script, "%s/run_cost_onnxruntime.py", scripts);
    c->has_peer = peer_start(&c->peer, python, script, NULL) && agrees(c);
    if (!c->has_peer)
        snprintf(c->reason, sizeof c->reason, "%s", c->peer.reason);
}

static void peer_turn(struct cost *c, double *ms)
{
    json_t *answer = peer_ask(&c->peer, json_pack("{s:s,s:i}", "cmd", "step", "n", c->executions), 60);
    *ms = answer ? json_number_value(json_object_get(answer, "ms")) / c->executions : -1;
    c->has_peer = *ms > 0;
    if (!c->has_peer)
        snprintf(c->reason, sizeof c->reason, "%s", c->peer.reason);
    json_decref(answer);
}

/* --- all of it --- */

static graphi_status measure(struct cost *c, int rounds)
{
    graphi_status status = GRAPHI_OK;
    for (int r = 0; r < rounds && status == GRAPHI_OK; r++) {
        status = our_turn(c, bound_turn, &c->ms[BOUND][r]);
        if (status == GRAPHI_OK)
            status = our_turn(c, copied_turn, &c->ms[COPIED][r]);
        if (status == GRAPHI_OK && c->has_peer)
            peer_turn(c, &c->ms[PEER][r]);
        if (status == GRAPHI_OK && report_interrupted())
            status = GRAPHI_INTERRUPTED;
    }
    return status;
}

static void report(struct cost *c, int rounds)
{
    static const char *const id[] = {"five nodes: in place", "five nodes", "five nodes: ONNX Runtime"};
    struct result *result = &c->bench->result;
    for (int e = 0; e < ENGINES; e++) {
        json_t *row = result_row(result, id[e], e == PEER ? "onnxruntime" : "graphi");
        if (e == PEER && !c->has_peer) {
            result_string(row, "status", "missing");
            result_string(row, "reason", c->reason);
            continue;
        }
        result_times(row, c->ms[e], rounds);
        if (e != COPIED)
            result_ratio(row, id[COPIED], c->ms[e], c->ms[COPIED], rounds);
    }
    result_goal(result, "set, run and get in us", 1e3 * result_median(c->ms[COPIED], rounds), 3, false);
    if (c->has_peer)
        result_goal(result, "time over ONNX Runtime's", result_paired(c->ms[COPIED], c->ms[PEER], rounds), 0.5,
                    false);
    result_note(result, "ONNX Runtime is called from Python with input and output bound: "
                        "a call of Python, some hundred nanoseconds, is part of its time");
}

static graphi_status run(struct bench *bench)
{
    static struct cost c;
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    c.bench = bench;
    c.executions = bench->options.quick ? 1000 : 5000;
    graphi_status status = five_nodes_open(bench, &c.five);
    if (status == GRAPHI_OK)
        status = told(five_nodes_bind(&c.five, &c.x, &c.y, &c.bound));
    if (status == GRAPHI_OK)
        status = told(graphi_run_create(c.five.plan, c.five.state, &c.copied));
    double warm;
    if (status == GRAPHI_OK)
        status = our_turn(&c, bound_turn, &warm);
    if (status == GRAPHI_OK) {
        start_peer(&c);
        status = measure(&c, rounds);
    }
    if (status == GRAPHI_OK)
        report(&c, rounds);
    peer_stop(&c.peer);
    graphi_run_destroy(c.copied);
    graphi_run_destroy(c.bound);
    five_nodes_close(&c.five);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "run-cost", run); }
