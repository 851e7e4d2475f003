/* SPDX-License-Identifier: Apache-2.0 */
/* Regression models of operation times (concurrency-control.txt III-B, Table IV). Records per class of operations, at
 * batches 16 to 256: hardware counters of one execution on one core, normalized by instructions, and times at every
 * width; then bench/regression/fit.py fits the paper's models with scikit-learn (in build/peers/sklearn, made by
 * bench/regression/setup.sh) and reports accuracy and R2. Where the machine gives no counters, features are those of
 * the operation: flops, bytes, shares, phases, arithmetic intensity; times at N widths in both cases. Trained on
 * ResNet-50 and Inception-v3, tested on DCGAN, as far as they are in this build; otherwise on the networks there are,
 * tested on the last. Widths beyond the cores at hand: simulated machine over shares timed here, labelled. */
#include "study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef EXPERIMENT
#define EXPERIMENT "regression"
#endif

enum { MOST_CLASSES = 4096 };

static json_t *times_of(const graphi_plan *plan, int class, const graphi_machine *machine, int cores, int tiles)
{
    json_t *times = json_array();
    for (int spread = 0; spread < 2; spread++)
        for (int width = 1; width <= (spread ? tiles : cores); width += !spread && tiles < cores && width > 1 ? 2 : 1)
            if (spread ? tiles < cores && width > 1 : true)
                json_array_append_new(times,
                                      json_pack("{s:i,s:b,s:f}", "width", width, "spread", spread, "ns",
                                                graphi_plan_class_ns(plan, class, machine, width, spread, NULL)));
    return times;
}

static void add_classes(const graphi_plan *plan, const char *network, int64_t batch, const graphi_machine *machine,
                        int cores, int tiles, const double *counts, json_t *records)
{
    graphi_class class;
    for (int i = 0; i < MOST_CLASSES && graphi_plan_class_at(plan, i, &class); i++) {
        json_t *record =
            json_pack("{s:s,s:I,s:s,s:s,s:I,s:f,s:f,s:i,s:i,s:o}", "network", network, "batch", (json_int_t)batch,
                      "kind", class.kind, "shapes", class.shapes, "operations", (json_int_t) class.operations, "flops",
                      class.flops, "bytes", class.bytes, "phases", class.phases, "shares", class.shares, "times",
                      times_of(plan, i, machine, cores, tiles));
        json_t *counters = json_object();
        for (int k = 0; counts && k < GRAPHI_COUNTERS; k++)
            if (counts[i * GRAPHI_COUNTERS + k] >= 0)
                json_object_set_new(counters, graphi_counter_name((graphi_counter)k),
                                    json_real(counts[i * GRAPHI_COUNTERS + k]));
        json_object_set_new(record, "counters", counters);
        json_array_append_new(records, record);
    }
}

static graphi_status record(struct bench *bench, const char *network, int64_t batch, const graphi_machine *machine,
                            json_t *records, bool *counted)
{
    struct network n;
    graphi_plan *profiled = NULL;
    graphi_machine_info about;
    double *counts = malloc(sizeof *counts * MOST_CLASSES * GRAPHI_COUNTERS);
    bench->options.batch = batch;
    graphi_status status =
        counts ? network_open(bench, network, bench->options.size ? bench->options.size : "small", NULL, &n)
               : GRAPHI_MEMORY;
    if (status) {
        free(counts);
        return status;
    }
    report_progress(bench->options.quiet, "%s, batch %lld: recording", network, (long long)batch);
    graphi_status has = graphi_plan_count(n.plan, n.state, MOST_CLASSES, counts);
    if (has == GRAPHI_UNSUPPORTED && *counted)
        result_note(&bench->result, "%s: features are flops, bytes, shares, phases and arithmetic intensity instead",
                    graphi_message());
    *counted = has == GRAPHI_OK;
    if (has && has != GRAPHI_UNSUPPORTED)
        status = has;
    graphi_profile_options how = {
        .seconds = bench->options.seconds > 0 ? bench->options.seconds : 1, .exhaustive = true, .machine = machine,
        .stop = job_stopped};
    if (!status)
        status = graphi_plan_profile(n.plan, n.state, &how, &profiled);
    if (!status) {
        graphi_machine_get_info(machine ? machine : bench->machine, &about);
        add_classes(profiled, network, batch, machine, about.cores, machine ? about.tiles : about.cores,
                    has ? NULL : counts, records);
    } else {
        bench_failure(status);
    }
    graphi_plan_destroy(profiled);
    network_close(&n);
    free(counts);
    return status;
}

/* bench/regression of the source tree, from the working folder or from where this program was built. */
static bool folder_of_script(char *path, size_t size)
{
    char self[3000];
    snprintf(path, size, "bench/regression");
    if (access("bench/regression/fit.py", R_OK) == 0)
        return true;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    snprintf(path, size, "%s/../../../bench/regression", self);
    return access(path, R_OK) == 0;
}

static json_t *run_fit(const char *folder, const char *records, bool *there)
{
    char python[4200], script[4200], command[12800];
    snprintf(python, sizeof python, "%s/../../build/peers/sklearn/bin/python", folder);
    snprintf(script, sizeof script, "%s/fit.py", folder);
    *there = access(python, X_OK) == 0;
    if (!*there)
        return NULL;
    snprintf(command, sizeof command, "'%s' '%s' '%s'", python, script, records);
    FILE *in = popen(command, "r");
    json_error_t error;
    json_t *fits = in ? json_loadf(in, JSON_DISABLE_EOF_CHECK, &error) : NULL;
    if (in)
        pclose(in);
    return fits;
}

/* Table IV, per model: accuracy in per cent at N = 1, 4, 8, 16; the paper prints the five best. */
static void add_fit_rows(struct bench *bench, const json_t *fits, bool simulated)
{
    size_t i;
    json_t *fit;
    json_array_foreach(json_object_get(fits, "fits"), i, fit)
    {
        char id[128];
        snprintf(id, sizeof id, "%s, N = %d", json_string_value(json_object_get(fit, "model")),
                 (int)json_integer_value(json_object_get(fit, "samples")));
        json_t *row = result_row(&bench->result, id, "scikit-learn");
        json_object_set_new(row, "simulated", json_boolean(simulated));
        const char *reason = json_string_value(json_object_get(fit, "reason"));
        if (reason) {
            result_string(row, "status", "failed");
            result_string(row, "reason", reason);
            continue;
        }
        double accuracy = json_number_value(json_object_get(fit, "accuracy")),
               r2 = json_number_value(json_object_get(fit, "r2"));
        const json_t *paper = json_object_get(fit, "paper_accuracy");
        result_number(row, "accuracy", accuracy);
        result_number(row, "r2", r2);
        char text[48] = "";
        if (json_is_number(paper))
            snprintf(text, sizeof text, " (Table IV: %.0f %%, %.3f)", 100 * json_number_value(paper),
                     json_number_value(json_object_get(fit, "paper_r2")));
        result_note(&bench->result, "%s: accuracy %.0f %%, R2 %.3f%s", id, 100 * accuracy, r2, text);
    }
    json_array_foreach(json_object_get(fits, "notes"), i, fit)
        result_note(&bench->result, "%s", json_string_value(fit));
}

static graphi_status fit(struct bench *bench, json_t *root, bool simulated)
{
    char folder[3200], path[4200];
    snprintf(path, sizeof path, "%s/regression-records.json", bench->options.out ? bench->options.out : ".");
    if (bench->options.out)
        mkdir(bench->options.out, 0777);
    if (json_dump_file(root, path, JSON_COMPACT) != 0)
        return report_error(GRAPHI_IO, path, "found that it cannot be written (%s), expected a writable place",
                            strerror(errno));
    result_file(&bench->result, path);
    bool there = false;
    json_t *fits = folder_of_script(folder, sizeof folder) ? run_fit(folder, path, &there) : NULL;
    if (fits)
        add_fit_rows(bench, fits, simulated);
    else
        study_missing(bench, "scikit-learn",
                      there ? "fit.py failed: see above" : "no environment: run bench/regression/setup.sh");
    json_decref(fits);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    static const char *const train[] = {"resnet50", "inception-v3", "lstm", "phased-lstm", "pathnet"};
    static const int64_t batches[] = {16, 32, 64, 128, 256};
    graphi_machine *machine = NULL;
    graphi_model_info info;
    bool counted = true;
    bool simulated = bench->about.cores < 8 || bench->options.machine;
    graphi_status status = simulated ? study_machine(bench, "xeon-phi-7250", &machine) : GRAPHI_OK;
    const char *test = graphi_model_get_info("dcgan", NULL, &info) == GRAPHI_OK ? "dcgan" : "googlenet";
    json_t *records = json_array(), *root = json_pack("{s:s,s:b,s:s,s:o}", "schema", "graphi-regression/1", "simulated",
                                                      simulated, "test", test, "records", records);
    int most = bench->options.quick ? 2 : 5;
    for (int i = 0; i < 6 && !status; i++) {
        const char *network = i < 5 ? train[i] : test;
        if (graphi_model_get_info(network, NULL, &info) != GRAPHI_OK)
            continue;
        if (bench->options.quick && (info.image > 100 || (strcmp(network, test) != 0 && info.image == 0)))
            continue;
        for (int b = 0; b < (info.image > 100 ? 2 : most) && !status; b++)
            status = record(bench, network, batches[b], machine, records, &counted);
    }
    if (simulated)
        result_note(&bench->result,
                    "times at widths beyond the cores at hand are simulated: shares timed here, extended to %s",
                    bench->options.machine ? bench->options.machine : "the Xeon Phi 7250");
    if (!status)
        status = fit(bench, root, simulated);
    json_decref(root);
    graphi_machine_destroy(machine);
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, EXPERIMENT, run);
}
