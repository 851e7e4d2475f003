/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models of a folder, served at batch 1: ours beside ONNX Runtime and OpenVINO in one run, each peer with one
 * thread and with all, in turns. Inputs are the same, by formula; sizes that a model leaves open are 1, or what `feeds`
 * says. All outputs are held against each other before anything is timed.
 *
 * Rows are "resnet_2b b1". Words choose rows by a part of their id, or peers by name. Usual size: ten models of up to
 * 200 MB. */
#include "bench.h"
#include "frameworks/formula.h"
#include "frameworks/peer.h"
#include "frameworks/serving.h"

#include "graphi/graphi.h"
#include "graphi/session.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_S = 300, PORTS = 16, MODELS = 256 };

static const char *const engines[] = {"onnxruntime", "openvino"};

/* Models whose usual input is not told by their ports: a window of speech, its rate. */
static const struct feed {
    const char *model, *input;
    int64_t dims[3];
    int64_t number; /* of a whole number; 0: random floats */
} feeds[] = {{"silero_vad", "input", {1, 576}, 0}, {"silero_vad", "sr", {0}, 16000}};

/* A row: ours, ready to run. */
struct served {
    struct bench *bench;
    char id[128];
    const char *path;
    graphi_session *session;
    size_t inputs, outputs;
    const char *names[PORTS];
    graphi_tensor *given[PORTS], *results[PORTS];
    json_t *feed;       /* what peers are told of the inputs */
    double load_ms;     /* from opening to the first result */
    int64_t peak_bytes; /* beyond what was there before; 0: not known */
    struct serving turns;
};

static char *found[MODELS];
static int found_count;

static int take_model(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about;
    (void)at;
    const size_t length = strlen(path);
    if (kind == FTW_F && length > 5 && strcmp(path + length - 5, ".onnx") == 0 && found_count < MODELS &&
        (found[found_count] = strdup(path)))
        found_count++;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int64_t status_bytes(const char *key)
{
    char line[256];
    long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ": %lld", &kilobytes);
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

/* The highest resident set is counted from here on; false: it cannot be. */
static bool forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    const bool done = file && fputs("5", file) >= 0;
    return file && fclose(file) == 0 && done;
}

static const struct feed *find_feed(const struct served *s, const char *input)
{
    for (size_t i = 0; i < sizeof feeds / sizeof *feeds; i++)
        if (strstr(s->id, feeds[i].model) && strcmp(feeds[i].input, input) == 0)
            return &feeds[i];
    return NULL;
}

static graphi_status make_input(struct served *s, const graphi_session_port *port)
{
    const struct feed *feed = find_feed(s, port->name);
    int64_t dims[GRAPHI_TENSOR_RANK], count = 1;
    for (int i = 0; i < port->rank; i++) {
        dims[i] = port->dims[i] >= 0 ? port->dims[i] : feed && i < 3 && feed->dims[i] ? feed->dims[i] : 1;
        count *= dims[i];
    }
    json_t *shape = json_array();
    for (int i = 0; i < port->rank; i++)
        json_array_append_new(shape, json_integer(dims[i]));
    const int64_t number = feed ? feed->number : 0;
    json_array_append_new(s->feed,
                          json_pack("{s:s,s:o,s:I}", "name", port->name, "dims", shape, "number", (json_int_t)number));
    s->names[s->inputs] = port->name;
    if (port->element == GRAPHI_ELEMENT_INT64 && count == 1)
        return graphi_tensor_create(port->element, port->rank, dims, &number, &s->given[s->inputs++]);
    if (port->element != GRAPHI_ELEMENT_FLOAT32)
        return report_error(GRAPHI_UNSUPPORTED, s->id, "found an input of %s, expected float32",
                            graphi_element_name(port->element));
    float *data = malloc((size_t)count * sizeof *data);
    if (!data)
        return report_error(GRAPHI_MEMORY, s->id, "found no room for %lld numbers, expected it", (long long)count);
    formula_fill(port->name, -1, 1, data, count);
    const graphi_status status = graphi_tensor_create(port->element, port->rank, dims, data, &s->given[s->inputs++]);
    free(data);
    return status;
}

static graphi_status run_once(void *served)
{
    struct served *s = served;
    for (size_t i = 0; i < s->outputs; i++) {
        graphi_tensor_destroy(s->results[i]);
        s->results[i] = NULL;
    }
    return graphi_session_run(s->session, s->names, (const graphi_tensor *const *)s->given, s->inputs, NULL, s->outputs,
                              s->results);
}

static graphi_status open_model(struct served *s)
{
    graphi_session_port port;
    const graphi_session_options options = {.threads = s->bench->about.cores};
    const bool counted = forget_peak();
    const int64_t before = status_bytes("VmRSS");
    const double begin = report_seconds();
    graphi_status status = graphi_session_open(s->path, NULL, 0, &options, &s->session);
    double ms = report_seconds() - begin;
    s->feed = json_array();
    if (status == GRAPHI_OK && !s->feed)
        return report_error(GRAPHI_MEMORY, s->id, "found no room for inputs, expected it");
    for (size_t i = 0;
         status == GRAPHI_OK && s->inputs < PORTS && graphi_session_port_at(s->session, GRAPHI_SESSION_INPUT, i, &port);
         i++)
        if (!port.has_default) /* weights, as older files declare them */
            status = make_input(s, &port);
    while (status == GRAPHI_OK && s->outputs < PORTS &&
           graphi_session_port_at(s->session, GRAPHI_SESSION_OUTPUT, s->outputs, &port))
        s->outputs++;
    const double first = report_seconds();
    if (status == GRAPHI_OK)
        status = run_once(s);
    ms += report_seconds() - first;
    s->load_ms = ms * 1e3;
    s->peak_bytes = counted ? status_bytes("VmHWM") - before : 0;
    return status;
}

static void close_model(struct served *s)
{
    for (size_t i = 0; i < s->inputs; i++)
        graphi_tensor_destroy(s->given[i]);
    for (size_t i = 0; i < s->outputs; i++)
        graphi_tensor_destroy(s->results[i]);
    graphi_session_close(s->session);
    json_decref(s->feed);
}

/* Each output's sum and sum of squares, of both sides. */
static bool agrees(struct served *s, struct peer *peer, json_t *answer)
{
    json_t *sums = json_object_get(answer, "sums"), *squares = json_object_get(answer, "squares");
    for (size_t i = 0; i < s->outputs; i++) {
        graphi_tensor_info info;
        double sum = 0, square = 0;
        graphi_tensor_get_info(s->results[i], &info);
        if (info.element != GRAPHI_ELEMENT_FLOAT32)
            continue;
        for (int64_t k = 0; k < info.count; k++) {
            const double x = ((const float *)info.data)[k];
            sum += x;
            square += x * x;
        }
        const double theirs = json_number_value(json_array_get(sums, i));
        const double other = json_number_value(json_array_get(squares, i)), norm = sqrt(square) + 1e-9;
        if (fabs(sum - theirs) <= 1e-3 * norm * sqrt((double)info.count) &&
            fabs(square - other) <= 1e-3 * square + 1e-9)
            continue;
        snprintf(peer->reason, sizeof peer->reason, "not timed, computes something else: sum %g of output %zu, ours %g",
                 theirs, i, sum);
        return false;
    }
    return true;
}

static graphi_status beside(struct served *s, const char *engine, int threads)
{
    char scripts[4096], environments[4096], script[4200], python[4200], id[200];
    struct peer peer = {0};
    graphi_status status = GRAPHI_OK;
    peer_folders(scripts, environments, sizeof scripts);
    snprintf(script, sizeof script, "%s/peer_inference.py", scripts);
    snprintf(python, sizeof python, "%s/%s/bin/python", environments, engine);
    snprintf(id, sizeof id, "%s: %s, %d thread%s", s->id, engine, threads, threads > 1 ? "s" : "");
    json_t *row = result_row(&s->bench->result, id, engine), *answer = NULL;
    report_progress(s->bench->options.quiet, "%s", id);
    if (peer_prepare(scripts, environments, engine, s->bench->options.quiet) &&
        peer_start(&peer, python, script, NULL) &&
        (answer = peer_ask(&peer,
                           json_pack("{s:s,s:s,s:s,s:O,s:i}", "cmd", "load", "engine", engine, "path", s->path,
                                     "inputs", s->feed, "threads", threads),
                           LIMIT_S)) &&
        agrees(s, &peer, answer)) {
        result_string(row, "engine_version", json_string_value(json_object_get(answer, "version")));
        result_number(row, "load_ms", json_number_value(json_object_get(answer, "load_ms")));
        result_integer(row, "peak_bytes", json_integer_value(json_object_get(answer, "peak_bytes")));
        status = serving_turns(&s->turns, &peer, row);
    }
    if (!json_is_object(json_object_get(row, "time_ms"))) {
        result_string(row, "status", "failed");
        result_string(row, "reason", peer.reason[0] ? peer.reason : "its environment could not be made (setup.sh)");
    }
    json_decref(answer);
    peer_stop(&peer);
    return report_interrupted() ? GRAPHI_INTERRUPTED : status;
}

/* Whether words of that kind (engines, or parts of an id) choose it, or there are none. */
static bool asked(const struct bench *bench, const char *id, bool of_engines)
{
    int words = 0;
    for (int i = 0; i < bench->options.rest_count; i++) {
        const char *word = bench->options.rest[i];
        bool engine = false;
        for (size_t e = 0; e < sizeof engines / sizeof *engines; e++)
            engine |= strcmp(word, engines[e]) == 0;
        if (engine != of_engines)
            continue;
        words++;
        if (strstr(id, word))
            return true;
    }
    return !words;
}

static graphi_status one(struct served *s)
{
    const int cores = s->bench->about.cores;
    double ms[20];
    graphi_status status = open_model(s);
    s->turns = (struct serving){.bench = s->bench, .id = s->id, .run = run_once, .context = s, .limit_s = LIMIT_S};
    if (!status)
        status = serving_ours(&s->turns, 20, ms);
    if (!status) {
        s->turns.row = result_row(&s->bench->result, s->id, "graphi");
        result_number(s->turns.row, "load_ms", s->load_ms);
        result_integer(s->turns.row, "peak_bytes", s->peak_bytes);
        result_times(s->turns.row, ms, 20);
    }
    for (size_t e = 0; !status && e < sizeof engines / sizeof *engines; e++)
        for (int threads = 1; !status && threads <= cores && asked(s->bench, engines[e], true);
             threads = threads < cores ? cores : cores + 1)
            status = beside(s, engines[e], threads);
    if (s->turns.best > 0)
        result_number(s->turns.row, "speedup", s->turns.best);
    close_model(s);
    return status;
}

static graphi_status body(struct bench *bench)
{
    double logs = 0;
    int count = 0, slower = 0, chosen = 0;
    if (!bench->options.data)
        return report_usage("--data", "nothing", "a folder of ONNX models");
    if (nftw(bench->options.data, take_model, 16, FTW_PHYS) < 0)
        return report_error(GRAPHI_IO, bench->options.data, "found that it cannot be read, expected a folder");
    qsort(found, (size_t)found_count, sizeof *found, by_path);
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < found_count && !status; i++) {
        struct served s = {.bench = bench, .path = found[i]};
        const char *name = strrchr(found[i], '/') ? strrchr(found[i], '/') + 1 : found[i];
        snprintf(s.id, sizeof s.id, "%.*s b1", (int)(strlen(name) - 5), name);
        if (!asked(bench, s.id, false))
            continue;
        chosen++;
        status = one(&s);
        logs += s.turns.best > 0 ? log(s.turns.best) : 0;
        count += s.turns.best > 0;
        slower += s.turns.best > 0 && s.turns.best < 1;
    }
    for (int i = 0; i < found_count; i++)
        free(found[i]);
    if (status)
        return bench_failure(status);
    if (!chosen)
        return report_usage("bench inference", bench->options.data, "a folder with such models");
    if (count) {
        result_goal(&bench->result, "best peer's time over ours, geometric mean", exp(logs / count), 1.3, true);
        result_goal(&bench->result, "models in which a peer is faster", slower, 0, false);
    }
    return GRAPHI_OK;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "inference", body);
}
