/* SPDX-License-Identifier: Apache-2.0 */
/* One recurrent layer over a sequence, served: ours beside ONNX Runtime, OpenVINO and PyTorch in one run, each peer
 * with one thread and with all, in turns (deepcpu.txt Table 1: 13 shapes, LSTM and GRU; T = 100, 10, 1). Weights and
 * inputs are the same, by formula; results are held against each other before anything is timed.
 *
 * Rows are "lstm 256/256 b1 t100" (features / units, batch, steps). Words choose rows by a part of their id, or peers
 * by name (onnxruntime, openvino, pytorch). --quick: T = 100 of four shapes. */
#include "bench.h"
#include "frameworks/formula.h"
#include "frameworks/peer.h"
#include "frameworks/serving.h"

#include "graphi/graphi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_S = 120 };

static const struct shape {
    int features, units, batch;
    bool quick;
} shapes[] = {{64, 64, 1, true},      {256, 64, 1, false},   {1024, 64, 1, false},  {64, 256, 1, false},
              {64, 1024, 1, false},   {256, 256, 1, true},   {1024, 1024, 1, true}, {64, 64, 10, false},
              {64, 64, 20, false},    {256, 256, 10, false}, {256, 256, 20, true},  {1024, 1024, 10, false},
              {1024, 1024, 20, false}};
static const int lengths[] = {100, 10, 1};
static const char *const engines[] = {"onnxruntime", "openvino", "pytorch"};
static const struct cell {
    graphi_cell cell;
    const char *name;
    int gates;
} cells[] = {{GRAPHI_LSTM, "lstm", 4}, {GRAPHI_GRU, "gru", 3}};

/* A row: ours, ready to run. */
struct layer {
    struct bench *bench;
    char id[64];
    const struct cell *cell;
    const struct shape *shape;
    int steps;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    float *y;
    size_t bytes;
    struct serving turns;
};

static graphi_status fill_parameters(struct layer *l)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(l->graph, GRAPHI_PORT_PARAMETER, i, &port); i++) {
        float *data = malloc(port.bytes);
        if (!data)
            return report_error(GRAPHI_MEMORY, l->id, "found no room for %zu bytes, expected it", port.bytes);
        formula_fill(port.name, -0.1, 0.1, data, (int64_t)(port.bytes / sizeof *data));
        graphi_status status = graphi_state_set(l->state, port.name, data, port.bytes);
        free(data);
        if (status)
            return status;
    }
    return GRAPHI_OK;
}

static graphi_status open_layer(struct layer *l)
{
    const struct shape *s = l->shape;
    const graphi_recurrent_options options = {.units = s->units, .batch = s->batch, .steps = l->steps};
    graphi_plan_options plan;
    const int64_t rows = (int64_t)s->batch * l->steps;
    graphi_status status = job_plan_options(&l->bench->options, &plan);
    if (!status)
        status = graphi_graph_create(&l->graph);
    if (status)
        return status;
    graphi_value x = graphi_input(l->graph, "x", GRAPHI_F32, 2, (int64_t[]){rows, s->features});
    graphi_output(l->graph, "y", graphi_recurrent(l->graph, l->cell->cell, x, NULL, NULL, GRAPHI_NONE, &options, NULL));
    float *data = malloc((size_t)(rows * s->features) * sizeof *data);
    l->bytes = (size_t)(rows * s->units) * sizeof *l->y;
    l->y = malloc(l->bytes);
    if (!data || !l->y)
        status = report_error(GRAPHI_MEMORY, l->id, "found no room for arrays, expected it");
    if (!status && !(status = graphi_plan_create(l->graph, l->bench->machine, &plan, &l->plan)) &&
        !(status = graphi_state_create(l->graph, 1, &l->state)) && !(status = fill_parameters(l)) &&
        !(status = graphi_run_create(l->plan, l->state, &l->run))) {
        formula_fill("x", -1, 1, data, rows * s->features);
        status = graphi_run_set(l->run, "x", GRAPHI_F32, data, (size_t)(rows * s->features) * sizeof *data);
    }
    free(data);
    return status;
}

static void close_layer(struct layer *l)
{
    graphi_run_destroy(l->run);
    graphi_state_destroy(l->state);
    graphi_plan_destroy(l->plan);
    graphi_graph_destroy(l->graph);
    free(l->y);
}

/* An execution with its results copied out, as the peers give theirs. */
static graphi_status run_once(void *layer)
{
    struct layer *l = layer;
    const graphi_status status = graphi_run_execute(l->run);
    return status ? status : graphi_run_get(l->run, "y", GRAPHI_F32, l->y, l->bytes);
}

/* Sum and sum of squares of all results, of both sides. */
static bool agrees(struct layer *l, struct peer *peer)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < l->bytes / sizeof *l->y; i++) {
        sum += l->y[i];
        square += (double)l->y[i] * l->y[i];
    }
    json_t *answer = peer_ask(peer, json_pack("{s:s}", "cmd", "result"), LIMIT_S);
    const double theirs = json_number_value(json_object_get(answer, "sum"));
    const double squares = json_number_value(json_object_get(answer, "square")), norm = sqrt(square) + 1e-9;
    const bool same = answer && fabs(sum - theirs) <= 1e-3 * norm * sqrt((double)(l->bytes / sizeof *l->y)) &&
                      fabs(square - squares) <= 1e-3 * (square + 1e-9);
    if (answer && !same)
        snprintf(peer->reason, sizeof peer->reason, "not timed, computes something else: sum %g, ours %g", theirs, sum);
    json_decref(answer);
    return same;
}

static json_t *load(struct layer *l, struct peer *peer, const char *engine, int threads)
{
    return peer_ask(peer,
                    json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i}", "cmd", "load", "engine", engine, "cell",
                              l->cell->name, "input", l->shape->features, "units", l->shape->units, "batch",
                              l->shape->batch, "steps", l->steps, "threads", threads),
                    LIMIT_S);
}

static graphi_status beside(struct layer *l, const char *engine, int threads)
{
    char scripts[4096], environments[4096], script[4200], python[4200], id[128];
    struct peer peer = {0};
    graphi_status status = GRAPHI_OK;
    peer_folders(scripts, environments, sizeof scripts);
    snprintf(script, sizeof script, "%s/peer_recurrent.py", scripts);
    snprintf(python, sizeof python, "%s/%s/bin/python", environments, engine);
    snprintf(id, sizeof id, "%s: %s, %d thread%s", l->id, engine, threads, threads > 1 ? "s" : "");
    json_t *row = result_row(&l->bench->result, id, engine), *answer = NULL;
    report_progress(l->bench->options.quiet, "%s", id);
    if (peer_prepare(scripts, environments, engine, l->bench->options.quiet) &&
        peer_start(&peer, python, script, NULL) && (answer = load(l, &peer, engine, threads)) && agrees(l, &peer)) {
        result_string(row, "engine_version", json_string_value(json_object_get(answer, "version")));
        status = serving_turns(&l->turns, &peer, row);
    }
    if (!json_is_object(json_object_get(row, "time_ms"))) {
        result_string(row, "status", "failed");
        result_string(row, "reason", peer.reason[0] ? peer.reason : "its environment could not be made (setup.sh)");
    }
    json_decref(answer);
    peer_stop(&peer);
    return report_interrupted() ? GRAPHI_INTERRUPTED : status;
}

/* Whether any of the words that are no peers is a part of the id. */
static bool asked(const struct bench *bench, const char *id)
{
    int rows = 0;
    for (int i = 0; i < bench->options.rest_count; i++) {
        const char *word = bench->options.rest[i];
        bool peer = false;
        for (size_t e = 0; e < sizeof engines / sizeof *engines; e++)
            peer |= strcmp(word, engines[e]) == 0;
        rows += !peer;
        if (!peer && strstr(id, word))
            return true;
    }
    return !rows;
}

static bool peer_asked(const struct bench *bench, const char *engine)
{
    int peers = 0;
    for (int i = 0; i < bench->options.rest_count; i++)
        for (size_t e = 0; e < sizeof engines / sizeof *engines; e++) {
            const bool named = strcmp(bench->options.rest[i], engines[e]) == 0;
            peers += named;
            if (named && strcmp(engine, engines[e]) == 0)
                return true;
        }
    return !peers;
}

static graphi_status one(struct layer *l)
{
    const int cores = l->bench->about.cores;
    double ms[20];
    graphi_status status = open_layer(l);
    l->turns = (struct serving){.bench = l->bench, .id = l->id, .run = run_once, .context = l, .limit_s = LIMIT_S};
    if (!status)
        status = serving_ours(&l->turns, 3, ms);
    if (!status) {
        graphi_plan_info about;
        graphi_plan_get_info(l->plan, &about);
        l->turns.row = result_row(&l->bench->result, l->id, "graphi");
        result_setting(l->turns.row, &about.setting);
        result_string(l->turns.row, "lowering", l->bench->options.sequences ? l->bench->options.sequences : "auto");
        result_string(l->turns.row, "weights", l->bench->options.weights ? l->bench->options.weights : "float32");
        status = serving_ours(&l->turns, 20, ms);
        result_times(l->turns.row, ms, 20);
    }
    for (size_t e = 0; !status && e < sizeof engines / sizeof *engines; e++)
        for (int threads = 1; !status && threads <= cores && peer_asked(l->bench, engines[e]);
             threads = threads < cores ? cores : cores + 1)
            status = beside(l, engines[e], threads);
    if (l->turns.best > 0)
        result_number(l->turns.row, "speedup", l->turns.best);
    close_layer(l);
    return status;
}

static graphi_status body(struct bench *bench)
{
    double logs[3] = {0};
    int count[3] = {0}, slower = 0;
    for (size_t t = 0; t < sizeof lengths / sizeof *lengths; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t c = 0; c < 2; c++) {
                struct layer l = {.bench = bench, .cell = &cells[c], .shape = &shapes[s], .steps = lengths[t]};
                snprintf(l.id, sizeof l.id, "%s %d/%d b%d t%d", cells[c].name, shapes[s].features, shapes[s].units,
                         shapes[s].batch, lengths[t]);
                if (!asked(bench, l.id) || (bench->options.quick && (!shapes[s].quick || t)))
                    continue;
                graphi_status status = one(&l);
                if (status)
                    return bench_failure(status);
                logs[t] += l.turns.best > 0 ? log(l.turns.best) : 0;
                count[t] += l.turns.best > 0;
                slower += l.turns.best > 0 && l.turns.best < 1;
            }
    for (size_t t = 0; t < sizeof lengths / sizeof *lengths; t++) {
        char title[96];
        snprintf(title, sizeof title, "T = %d: best peer's time over ours, geometric mean", lengths[t]);
        if (count[t])
            result_goal(&bench->result, title, exp(logs[t] / count[t]), t ? 2 : 1.5, true);
    }
    if (count[0] + count[1] + count[2])
        result_goal(&bench->result, "rows in which a peer is faster", slower, 0, false);
    return GRAPHI_OK;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "recurrent", body);
}
