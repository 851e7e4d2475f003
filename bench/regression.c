/* SPDX-License-Identifier: Apache-2.0 */
/* Regression models of operation times (concurrency-control.txt III-B, Table IV), from records to schedules. Records
 * per class of operations, at batches 16 to 256: hardware counters of one execution on one core, normalized by
 * instructions, and times at every width. bench/frameworks/regression_sklearn.py, in an environment that this program
 * makes, fits the paper's models and gives accuracy, R2 and what the best of the paper's models predicts; strategies 1
 * to 3 directed by that, by hill climbing and by every width are then compared in simulation. Where the machine gives
 * no counters, features are those of the operation: flops, bytes, shares, phases, arithmetic intensity. Trained on
 * ResNet-50 and Inception-v3, tested on DCGAN, as far as they are in this build; otherwise on the networks there are,
 * tested on the last. Widths beyond the cores at hand: simulated machine over shares timed here, labelled. */
#include "frameworks/peer.h"
#include "study.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef EXPERIMENT
#define EXPERIMENT "regression"
#endif

enum { CORES = 8 }; /* at hand: models of fewer widths tell nothing of the paper's 68 */
enum { MOST_CLASSES = 4096, MOST_NETWORKS = 6, DIRECTED_BATCH = 64, INTERVAL = 4, FIT_SECONDS = 3600 };
static const char hill_climbing[] = "hill-climbing", best_model[] = "k-neighbours";

/* A network whose schedule is compared. */
struct directed {
    struct network network;
    graphi_plan *plan; /* with its times at every width */
    int64_t batch;
};

/* Counters of the classes of a plan. */
struct counted {
    const graphi_plan *plan;
    double *counts; /* as graphi_plan_count gives them */
    bool found;
};

struct regression {
    struct bench *bench;
    graphi_machine *machine; /* NULL: the one at hand */
    graphi_machine_info about;
    graphi_curves *curves;
    json_t *records;
    struct directed directed[MOST_NETWORKS];
    int networks;
    bool counted;
};

/* --- records --- */

static json_t *times_of(const struct regression *r, const graphi_plan *plan, int class)
{
    json_t *times = json_array();
    int cores = r->about.cores, tiles = r->about.tiles;
    for (int spread = 0; spread < 2; spread++)
        for (int width = 1; width <= (spread ? tiles : cores); width += !spread && tiles < cores && width > 1 ? 2 : 1)
            if (spread ? tiles < cores && width > 1 : true)
                result_append(times, json_pack("{s:i,s:b,s:f}", "width", width, "spread", spread, "ns",
                                               graphi_plan_class_ns(plan, class, r->machine, width, spread, NULL)));
    return times;
}

/* Counters of what was counted, whose classes another machine's plan may number otherwise. */
static json_t *counters_of(const struct counted *counted, uint64_t key)
{
    json_t *counters = json_object();
    graphi_class class = {0};
    int at = 0;
    while (at < MOST_CLASSES && graphi_plan_class_at(counted->plan, at, &class) && class.key != key)
        at++;
    if (!counted->found || at == MOST_CLASSES || class.key != key)
        return counters;
    for (int k = 0; k < GRAPHI_COUNTERS; k++)
        if (counted->counts[at * GRAPHI_COUNTERS + k] >= 0)
            result_set(counters, graphi_counter_name((graphi_counter)k),
                       json_real(counted->counts[at * GRAPHI_COUNTERS + k]));
    return counters;
}

static void add_classes(struct regression *r, const graphi_plan *plan, const char *network, int64_t batch,
                        const struct counted *counted)
{
    graphi_class class;
    for (int i = 0; i < MOST_CLASSES && graphi_plan_class_at(plan, i, &class); i++) {
        char key[24];
        snprintf(key, sizeof key, "%016" PRIx64, class.key);
        json_t *record =
            json_pack("{s:s,s:I,s:s,s:s,s:s,s:I,s:f,s:f,s:i,s:i,s:o}", "network", network, "batch", (json_int_t)batch,
                      "key", key, "kind", class.kind, "shapes", class.shapes, "operations",
                      (json_int_t) class.operations, "flops", class.flops, "bytes", class.bytes, "phases", class.phases,
                      "shares", class.shares, "times", times_of(r, plan, i));
        result_set(record, "counters", counters_of(counted, class.key));
        result_append(r->records, record);
    }
}

/* Keeps the network for the comparison in place of its smaller batch. */
static void keep(struct regression *r, struct network *network, graphi_plan *plan, int64_t batch)
{
    struct directed *last = r->networks ? &r->directed[r->networks - 1] : NULL;
    if (batch > DIRECTED_BATCH) {
        graphi_plan_destroy(plan);
        network_close(network);
        return;
    }
    if (last && strcmp(last->network.name, network->name) == 0) {
        graphi_plan_destroy(last->plan);
        network_close(&last->network);
    } else {
        last = &r->directed[r->networks++];
    }
    *last = (struct directed){*network, plan, batch};
}

static graphi_status count(struct regression *r, const struct network *n, struct counted *counted)
{
    graphi_status status = graphi_plan_count(n->plan, n->state, MOST_CLASSES, counted->counts);
    counted->found = status == GRAPHI_OK;
    if (status != GRAPHI_UNSUPPORTED)
        return status;
    if (r->counted)
        result_note(&r->bench->result, "%s: features are flops, bytes, shares, phases and arithmetic intensity instead",
                    graphi_message());
    r->counted = false;
    return GRAPHI_OK;
}

static graphi_status record(struct regression *r, const char *network, int64_t batch)
{
    struct bench *bench = r->bench;
    struct network n;
    graphi_plan *profiled = NULL;
    bench->options.batch = batch;
    graphi_status status = network_open(bench, network, bench->options.size ? bench->options.size : "small", NULL, &n);
    if (status)
        return status;
    report_progress(bench->options.quiet, "%s, batch %lld: recording", network, (long long)batch);
    struct counted counted = {n.plan, malloc(sizeof(double) * MOST_CLASSES * GRAPHI_COUNTERS), false};
    status = counted.counts ? count(r, &n, &counted) : GRAPHI_MEMORY;
    graphi_profile_options how = {.seconds = bench->options.seconds > 0 ? bench->options.seconds : 1,
                                  .exhaustive = true,
                                  .machine = r->machine,
                                  .curves = r->curves,
                                  .stop = report_stop};
    if (!status)
        status = graphi_plan_profile(n.plan, n.state, &how, &profiled);
    if (status) {
        bench_failure(status);
        network_close(&n);
    } else {
        add_classes(r, profiled, network, batch, &counted);
        keep(r, &n, profiled, batch);
    }
    free(counted.counts);
    return status;
}

static graphi_status record_all(struct regression *r, const char *test)
{
    static const char *const train[] = {"resnet50", "inception-v3", "lstm", "phased-lstm", "pathnet"};
    static const int64_t batches[] = {16, 32, 64, 128, 256};
    const bool quick = r->bench->options.quick;
    graphi_status status = GRAPHI_OK;
    graphi_model_info info;
    for (int i = 0; i < MOST_NETWORKS && !status; i++) {
        const char *network = i < MOST_NETWORKS - 1 ? train[i] : test;
        if (graphi_model_get_info(network, NULL, &info) != GRAPHI_OK)
            continue;
        if (quick && (info.image > 100 || (strcmp(network, test) != 0 && info.image == 0)))
            continue;
        int most = quick || info.image > 100 ? 2 : 5;
        for (int b = 0; b < most && !status; b++)
            status = record(r, network, batches[b]);
    }
    return status;
}

/* --- models --- */

struct truth {
    const graphi_plan *plan;
    const graphi_machine *machine;
    int class;
};

static double true_ns(void *context, int width, bool spread)
{
    const struct truth *t = context;
    return graphi_plan_class_ns(t->plan, t->class, t->machine, width, spread, NULL);
}

static graphi_status climb_all(struct regression *r)
{
    graphi_status status = GRAPHI_OK;
    for (int n = 0; n < r->networks; n++) {
        graphi_class class;
        graphi_climb climb;
        struct truth truth = {r->directed[n].plan, r->machine, 0};
        for (; !status && graphi_plan_class_at(truth.plan, truth.class, &class); truth.class++) {
            graphi_climb_search(r->about.cores, r->about.tiles, INTERVAL, false, true_ns, &truth, &climb);
            status = graphi_curves_add(r->curves, class.key, hill_climbing, &climb);
        }
    }
    return status;
}

static void add_sample(graphi_climb *climb, int width, bool spread, double ns)
{
    int at = 0;
    while (at < climb->samples && climb->width[at] < width)
        at++;
    if (at == climb->samples || climb->width[at] != width) {
        if (climb->samples == GRAPHI_CLIMB_SAMPLES)
            return;
        for (int i = climb->samples++; i > at; i--) {
            climb->width[i] = climb->width[i - 1];
            climb->compact_ns[i] = climb->compact_ns[i - 1];
            climb->spread_ns[i] = climb->spread_ns[i - 1];
        }
        climb->width[at] = width;
        climb->compact_ns[at] = climb->spread_ns[at] = 0;
    }
    (spread ? climb->spread_ns : climb->compact_ns)[at] = ns;
}

/* predictions[record][case] as the script gives them, the cases in the order of the record's times. */
static graphi_status add_predictions(struct regression *r, const json_t *predictions)
{
    size_t i, k;
    const json_t *predicted, *time;
    graphi_status status = GRAPHI_OK;
    json_array_foreach(predictions, i, predicted)
    {
        const json_t *record = json_array_get(r->records, i);
        graphi_climb climb = {0};
        json_array_foreach(json_object_get(record, "times"), k, time)
            add_sample(&climb, (int)json_integer_value(json_object_get(time, "width")),
                       json_is_true(json_object_get(time, "spread")), json_number_value(json_array_get(predicted, k)));
        uint64_t key = strtoull(json_string_value(json_object_get(record, "key")), NULL, 16);
        if (!status)
            status = graphi_curves_add(r->curves, key, best_model, &climb);
    }
    return status;
}

/* Table IV, per model: accuracy and R2 at N = 1, 4, 8, 16; the paper prints the five best. */
static void add_fit_rows(struct bench *bench, const json_t *fits, bool simulated)
{
    size_t i;
    json_t *fit;
    json_array_foreach(json_object_get(fits, "fits"), i, fit)
    {
        char id[128];
        snprintf(id, sizeof id, "N = %d: %s", (int)json_integer_value(json_object_get(fit, "samples")),
                 json_string_value(json_object_get(fit, "model")));
        json_t *row = result_row(&bench->result, id, "scikit-learn");
        result_set(row, "simulated", json_boolean(simulated));
        const char *reason = json_string_value(json_object_get(fit, "reason"));
        const json_t *paper = json_object_get(fit, "paper_accuracy");
        if (reason) {
            result_string(row, "status", "failed");
            result_string(row, "reason", reason);
            continue;
        }
        result_number(row, "accuracy", json_number_value(json_object_get(fit, "accuracy")));
        result_number(row, "r2", json_number_value(json_object_get(fit, "r2")));
        if (json_is_number(paper)) {
            result_number(row, "paper_accuracy", json_number_value(paper));
            result_number(row, "paper_r2", json_number_value(json_object_get(fit, "paper_r2")));
        }
    }
    json_array_foreach(json_object_get(fits, "notes"), i, fit)
        result_note(&bench->result, "%s", json_string_value(fit));
}

/* The script's answer; NULL with the reason. */
static json_t *run_fit(struct bench *bench, const char *records, char *reason, size_t size)
{
    char scripts[4096], environments[4096], python[4400], script[4400];
    struct peer peer;
    peer_folders(scripts, environments, sizeof scripts);
    snprintf(reason, size, "its environment could not be made (setup.sh)");
    if (!peer_prepare(scripts, environments, "sklearn", bench->options.quiet))
        return NULL;
    snprintf(python, sizeof python, "%s/sklearn/bin/python", environments);
    snprintf(script, sizeof script, "%s/regression_sklearn.py", scripts);
    report_progress(bench->options.quiet, "fitting with scikit-learn");
    json_t *answer = peer_start(&peer, python, script, NULL)
                         ? peer_ask(&peer, json_pack("{s:s}", "records", records), FIT_SECONDS)
                         : NULL;
    snprintf(reason, size, "%s", peer.reason);
    peer_stop(&peer);
    return answer;
}

/* Writes the records, fits; *fitted: there are predictions. */
static graphi_status fit(struct regression *r, const char *test, bool simulated, bool *fitted)
{
    struct bench *bench = r->bench;
    char path[4200], reason[400];
    json_t *root = json_pack("{s:s,s:b,s:s,s:s,s:O}", "schema", "graphi-regression/1", "simulated", simulated, "test",
                             test, "predict", best_model, "records", r->records);
    snprintf(path, sizeof path, "%s/regression-records.json", bench->options.out ? bench->options.out : ".");
    int failed = json_dump_file(root, path, JSON_COMPACT);
    json_decref(root);
    if (failed)
        return report_error(GRAPHI_IO, path, "found that it cannot be written (%s), expected a writable place",
                            strerror(errno));
    result_file(&bench->result, path);
    json_t *answer = run_fit(bench, path, reason, sizeof reason);
    if (!answer) {
        study_missing(bench, "scikit-learn", reason);
        return GRAPHI_OK;
    }
    const json_t *predictions = json_object_get(answer, "predictions");
    add_fit_rows(bench, answer, simulated);
    *fitted = json_array_size(predictions) == json_array_size(r->records);
    graphi_status status = *fitted ? add_predictions(r, predictions) : GRAPHI_OK;
    json_decref(answer);
    return status ? report_failure(status) : status;
}

/* --- schedules directed by them --- */

static graphi_status compare(struct regression *r, const struct directed *d, bool fitted)
{
    const struct {
        const char *label, *model;
    } by[] = {{"every width", NULL}, {"hill climbing", hill_climbing}, {"k-neighbours", best_model}};
    const graphi_setting setting = {
        .policy = GRAPHI_POLICY_S123, .executors = r->about.cores, .width = 1, .light = GRAPHI_OFF,
        .parameters = {{"keep-uniform", -1}}};
    graphi_plan *truth = NULL;
    double ms[3];
    char base[128] = "";
    graphi_status status = graphi_plan_with(d->plan, &(graphi_plan_change){.setting = &setting}, &truth);
    for (int i = 0; i < (fitted ? 3 : 2) && !status; i++) {
        graphi_simulation now;
        graphi_plan *directed = NULL;
        char id[128];
        status = graphi_plan_with(
            truth, &(graphi_plan_change){.setting = &setting, .curves = r->curves, .model = by[i].model}, &directed);
        if (!status)
            status = graphi_plan_simulate(directed, &(graphi_simulate_options){.truth = truth}, &now);
        graphi_plan_destroy(directed);
        if (status)
            break;
        snprintf(id, sizeof id, "%s, batch %lld: directed by %s", d->network.name, (long long)d->batch, by[i].label);
        json_t *row = result_row(&r->bench->result, id, "graphi");
        result_setting(row, &now.setting);
        result_set(row, "simulated", json_true());
        ms[i] = now.makespan_ms;
        result_times(row, &now.makespan_ms, 1);
        if (i)
            result_ratio(row, base, &ms[i], &ms[0], 1);
        else
            snprintf(base, sizeof base, "%s", id);
    }
    graphi_plan_destroy(truth);
    if (!status && fitted && strcmp(d->network.name, "resnet50") == 0)
        study_paper(r->bench, "concurrency-control.txt III-B", "resnet50: directed by k-neighbours",
                    "resnet50: directed by hill climbing",
                    1.3, 0);
    return status ? bench_failure(status) : status;
}

static graphi_status run_with(struct regression *r, bool simulated)
{
    graphi_model_info info;
    const char *test = graphi_model_get_info("dcgan", NULL, &info) == GRAPHI_OK ? "dcgan" : "googlenet";
    bool fitted = false;
    graphi_status status = record_all(r, test);
    if (!status)
        status = fit(r, test, simulated, &fitted);
    if (!status && (status = climb_all(r)) != GRAPHI_OK)
        report_failure(status);
    for (int n = 0; n < r->networks && !status; n++)
        status = compare(r, &r->directed[n], fitted);
    if (!status && (status = graphi_curves_save(r->curves)) != GRAPHI_OK)
        report_failure(status);
    return status;
}

static graphi_status run(struct bench *bench)
{
    struct regression r = {.bench = bench, .records = json_array(), .counted = true};
    const bool simulated = bench->described;
    const char *folder = bench->options.out ? bench->options.out : ".";
    char path[4200];
    graphi_status status = simulated ? study_machine(bench, "xeon-phi-7250", &r.machine) : GRAPHI_OK;
    graphi_machine_get_info(r.machine ? r.machine : bench->machine, &r.about);
    if (simulated)
        result_note(&bench->result,
                    "times at widths beyond the cores at hand are simulated: shares timed here, extended to %s",
                    bench->options.machine ? bench->options.machine : "the Xeon Phi 7250");
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/regression-curves.json", folder);
    unlink(path); /* of an earlier run: everything is measured again */
    if (!status && (status = graphi_curves_open(r.machine ? r.machine : bench->machine, path, &r.curves)) != GRAPHI_OK)
        report_failure(status);
    if (!status)
        status = run_with(&r, simulated);
    if (!status)
        result_file(&bench->result, path);
    for (int n = 0; n < r.networks; n++) {
        graphi_plan_destroy(r.directed[n].plan);
        network_close(&r.directed[n].network);
    }
    graphi_curves_close(r.curves);
    json_decref(r.records);
    graphi_machine_destroy(r.machine);
    return status;
}

int main(int argc, char **argv)
{
    return bench_widths_main(argc, argv, EXPERIMENT, CORES, run);
}
