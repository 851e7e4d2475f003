/* SPDX-License-Identifier: Apache-2.0 */
/* What Python costs: the graph of five small nodes called from C and through the package, as a run and as a session,
 * beside ONNX Runtime's session.run; training steps of the small LSTM from both; and importing the package beyond
 * NumPy. The package is built from this build's library (bench/frameworks/python_calls.py). Turns of some thousand
 * calls alternate; a turn is a hundredth of a second and more. */
#include "five_nodes.h"
#include "frameworks/peer.h"

#include <graphi/models.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 40, QUICK_ROUNDS = 5 };

/* What is timed, in turn: `engine` is what the peer calls it, NULL: by C. */
static const struct row {
    const char *id, *engine, *name;
    bool lstm;
} rows[] = {
    {"five nodes: C", NULL, "graphi", false},
    {"five nodes", "run", "graphi", false},
    {"five nodes: session", "session", "graphi", false},
    {"five nodes: ONNX Runtime", "onnxruntime", "onnxruntime", false},
    {"lstm small: C", NULL, "graphi", true},
    {"lstm small", "lstm", "graphi", true},
};
enum { C_CALL, RUN, SESSION, RUNTIME, C_LSTM, LSTM, ROWS };

struct python {
    struct bench *bench;
    struct five_nodes five;
    graphi_run *call, *step;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    five_array x, y;
    struct peer peer;
    int calls, steps;
    double ms[ROWS][ROUNDS], imported[ROUNDS];
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* --- C --- */

static graphi_status call_once(struct python *p)
{
    graphi_status status = graphi_run_set(p->call, "x", GRAPHI_F32, p->x, sizeof p->x);
    if (status == GRAPHI_OK)
        status = graphi_run_execute(p->call);
    return status == GRAPHI_OK ? graphi_run_get(p->call, "y", GRAPHI_F32, p->y, sizeof p->y) : status;
}

static graphi_status our_turn(struct python *p, bool lstm, int n, double *ms)
{
    const double begin = now_ms();
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < n && status == GRAPHI_OK; i++)
        status = lstm ? graphi_run_execute(p->step) : call_once(p);
    *ms = (now_ms() - begin) / n;
    return told(status);
}

/* The network of the peer's, its inputs zero as there. */
static graphi_status open_lstm(struct python *p)
{
    graphi_port port;
    graphi_status status = graphi_model_create("lstm", NULL, &p->graph);
    if (status == GRAPHI_OK)
        status = graphi_plan_create(p->graph, p->bench->machine, NULL, &p->plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(p->graph, 0, &p->state);
    if (status == GRAPHI_OK)
        status = graphi_run_create(p->plan, p->state, &p->step);
    for (int i = 0; status == GRAPHI_OK && graphi_graph_at(p->graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        void *zeros = calloc(1, port.bytes);
        status = zeros ? graphi_run_set(p->step, port.name, port.dtype, zeros, port.bytes) : GRAPHI_MEMORY;
        free(zeros);
    }
    return told(status);
}

static graphi_status open_ours(struct python *p)
{
    for (int i = 0; i < FIVE_COUNT; i++)
        p->x[i] = five_nodes_number(0, i);
    graphi_status status = five_nodes_open(p->bench, &p->five);
    if (status == GRAPHI_OK)
        status = told(graphi_run_create(p->five.plan, p->five.state, &p->call));
    return status == GRAPHI_OK ? open_lstm(p) : status;
}

static void close_ours(struct python *p)
{
    graphi_run_destroy(p->step);
    graphi_run_destroy(p->call);
    graphi_state_destroy(p->state);
    graphi_plan_destroy(p->plan);
    graphi_graph_destroy(p->graph);
    five_nodes_close(&p->five);
}

/* --- Python --- */

static bool agrees(struct python *p, json_t *found)
{
    double apart = json_array_size(found) == FIVE_COUNT ? 0 : INFINITY;
    for (size_t i = 0; i < json_array_size(found) && i < FIVE_COUNT; i++)
        apart = fmax(apart, fabs(json_number_value(json_array_get(found, i)) - (double)p->y[i]));
    if (apart > 1e-4)
        snprintf(p->peer.reason, sizeof p->peer.reason, "results are %g apart", apart);
    return apart <= 1e-4;
}

/* The same graph has the same results, or its times say nothing. */
static bool check_all(struct python *p)
{
    json_t *answer = peer_ask(&p->peer, json_pack("{s:s}", "cmd", "check"), 60), *y = json_object_get(answer, "y");
    bool same = answer != NULL;
    for (int e = RUN; same && e <= RUNTIME; e++)
        same = agrees(p, json_object_get(y, rows[e].engine));
    json_decref(answer);
    return same;
}

static bool start_peer(struct python *p)
{
    char scripts[2200], environments[2200], python[4400], script[4400];
    peer_folders(scripts, environments, sizeof scripts);
    if (!peer_prepare(scripts, environments, "python", p->bench->options.quiet)) {
        snprintf(p->peer.reason, sizeof p->peer.reason, "its environment could not be made (setup.sh)");
        return false;
    }
    snprintf(python, sizeof python, "%s/python/bin/python", environments);
    snprintf(script, sizeof script, "%s/python_calls.py", scripts);
    if (!peer_start(&p->peer, python, script, NULL))
        return false;
    json_t *answer = peer_ask(&p->peer, json_pack("{s:s,s:{}}", "cmd", "open", "lstm"), 300);
    json_decref(answer);
    return answer && check_all(p);
}

static bool peer_turn(struct python *p, json_t *request, int n, double *ms)
{
    json_t *answer = peer_ask(&p->peer, request, 120);
    *ms = json_number_value(json_object_get(answer, "ms")) / n;
    json_decref(answer);
    return answer != NULL;
}

/* --- all of it --- */

static graphi_status take_turn(struct python *p, int e, int round, bool *there)
{
    const int n = rows[e].lstm ? p->steps : p->calls;
    if (!rows[e].engine)
        return our_turn(p, rows[e].lstm, n, &p->ms[e][round]);
    if (*there)
        *there = peer_turn(p, json_pack("{s:s,s:s,s:i}", "cmd", "step", "engine", rows[e].engine, "n", n), n,
                           &p->ms[e][round]);
    return GRAPHI_OK;
}

static graphi_status measure(struct python *p, int rounds, bool *there)
{
    graphi_status status = GRAPHI_OK;
    for (int r = 0; r < rounds && status == GRAPHI_OK; r++) {
        for (int e = 0; e < ROWS && status == GRAPHI_OK; e++)
            status = take_turn(p, e, r, there);
        if (*there)
            *there = peer_turn(p, json_pack("{s:s}", "cmd", "import"), 1, &p->imported[r]);
        if (status == GRAPHI_OK && report_interrupted())
            status = GRAPHI_INTERRUPTED;
    }
    return status;
}

static void report(struct python *p, int rounds, bool there)
{
    struct result *result = &p->bench->result;
    for (int e = 0; e < ROWS; e++) {
        json_t *row = result_row(result, rows[e].id, rows[e].name);
        const int against = rows[e].lstm ? C_LSTM : C_CALL;
        if (rows[e].engine && !there) {
            result_string(row, "status", "missing");
            result_string(row, "reason", p->peer.reason);
            continue;
        }
        result_times(row, p->ms[e], rounds);
        if (e != against)
            result_ratio(row, rows[against].id, p->ms[e], p->ms[against], rounds);
    }
    if (!there)
        return;
    result_times(result_row(result, "import", "graphi"), p->imported, rounds);
    result_goal(result, "run over the call of C", result_paired(p->ms[RUN], p->ms[C_CALL], rounds), 3, false);
    result_goal(result, "run over ONNX Runtime's session.run", result_paired(p->ms[RUN], p->ms[RUNTIME], rounds), 0.5,
                false);
    result_goal(result, "session.run over ONNX Runtime's", result_paired(p->ms[SESSION], p->ms[RUNTIME], rounds), 0.5,
                false);
    result_goal(result, "a training step over that of C", result_paired(p->ms[LSTM], p->ms[C_LSTM], rounds), 1.01,
                false);
    result_goal(result, "import in ms, beyond NumPy's", result_median(p->imported, rounds), 60, false);
}

static graphi_status run(struct bench *bench)
{
    static struct python p;
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    p.bench = bench;
    p.calls = bench->options.quick ? 1000 : 5000;
    p.steps = bench->options.quick ? 2 : 10;
    double warm;
    bool there = false;
    graphi_status status = open_ours(&p);
    for (int lstm = 0; lstm < 2 && status == GRAPHI_OK; lstm++)
        status = our_turn(&p, lstm, 2, &warm);
    if (status == GRAPHI_OK) {
        there = start_peer(&p);
        status = measure(&p, rounds, &there);
    }
    if (status == GRAPHI_OK)
        report(&p, rounds, there);
    peer_stop(&p.peer);
    close_ours(&p);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "python", run); }
