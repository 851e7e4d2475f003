/* SPDX-License-Identifier: Apache-2.0 */
/* graphi run FILE.onnx and graphi profile FILE.onnx: inputs from .npy and .npz files or random ones, outputs into .npy
 * files, compared where asked. Usual size: a few inputs and outputs, at most PORTS of either. */
#include "cli/onnx.h"

#include "cli/onnx_inputs.h"
#include "cli/onnx_random.h"
#include "tool/report.h"
#include "tool/result.h"

#include <stdlib.h>
#include <string.h>

enum { PORTS = ONNX_PORTS, REPEAT_MOST = 100000 };

struct onnx_job {
    const struct options *options;
    graphi_session *session;
    struct onnx_inputs inputs;
    const char *outputs[PORTS];
    graphi_tensor *results[PORTS];
    size_t output_count;
    int64_t repeat;
    double *ms;
    int runs;
};

bool onnx_named(const char *subject)
{
    const size_t length = subject ? strlen(subject) : 0;
    return length > 5 && strcmp(subject + length - 5, ".onnx") == 0;
}

static graphi_status find_outputs(struct onnx_job *job)
{
    graphi_session_port port;
    for (size_t i = 0; graphi_session_port_at(job->session, GRAPHI_SESSION_OUTPUT, i, &port); i++) {
        if (i == PORTS)
            return report_error(GRAPHI_UNSUPPORTED, job->options->subject, "found more than %d outputs, expected fewer",
                                PORTS);
        job->outputs[job->output_count++] = port.name;
    }
    return GRAPHI_OK;
}

static graphi_status execute(struct onnx_job *job)
{
    const int64_t repeat = job->repeat;
    if (repeat > REPEAT_MOST)
        return report_usage("--repeat", "a larger number", "at most %d", REPEAT_MOST);
    job->ms = malloc((size_t)repeat * sizeof *job->ms);
    if (!job->ms)
        return report_error(GRAPHI_MEMORY, "run", "found no memory for %lld times, expected some", (long long)repeat);
    for (; job->runs < repeat; job->runs++) {
        for (size_t i = 0; i < job->output_count; i++) {
            graphi_tensor_destroy(job->results[i]);
            job->results[i] = NULL;
        }
        const double began = report_seconds();
        const graphi_status status =
            graphi_session_run(job->session, job->inputs.names, (const graphi_tensor *const *)job->inputs.values,
                               job->inputs.count, NULL, job->output_count, job->results);
        if (status != GRAPHI_OK)
            return report_failure(status);
        job->ms[job->runs] = (report_seconds() - began) * 1e3;
        if (report_interrupted())
            return report_stopped("run", "all executions");
    }
    return GRAPHI_OK;
}

static graphi_status write_outputs(const struct onnx_job *job, struct result *result)
{
    char path[4096];
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; job->options->output && i < job->output_count && status == GRAPHI_OK; i++) {
        const int used = snprintf(path, sizeof path, "%s/", job->options->output);
        snprintf(path + used, sizeof path - (size_t)used, "%s.npy", job->outputs[i]);
        for (char *c = path + used; *c; c++)
            *c = *c == '/' ? '.' : *c;
        status = graphi_tensor_save(job->results[i], path);
        if (status != GRAPHI_OK)
            return report_failure(status);
        result_file(result, path);
    }
    return status;
}

static graphi_status compare_outputs(const struct onnx_job *job)
{
    const struct options *o = job->options;
    for (size_t i = 0; o->compare && i < job->output_count; i++) {
        graphi_tensor *expected;
        graphi_status status = graphi_tensor_load(o->compare, job->outputs[i], NULL, &expected);
        if (status == GRAPHI_OK) {
            status = graphi_tensor_compare(job->results[i], expected, o->rtol_given ? o->rtol : 1e-4,
                                           o->atol_given ? o->atol : 1e-5);
            graphi_tensor_destroy(expected);
        }
        if (status != GRAPHI_OK) {
            fprintf(stderr, "output %s:\n", job->outputs[i]);
            return report_failure(status);
        }
    }
    return GRAPHI_OK;
}

static graphi_status tell(const struct onnx_job *job, struct result *result)
{
    const struct options *o = job->options;
    FILE *out = options_json_is_stdout(o) ? stderr : stdout;
    char shape[160];
    for (size_t i = 0; i < job->output_count; i++) {
        onnx_shape(job->results[i], shape, sizeof shape);
        fprintf(out, "%s: %s\n", job->outputs[i], shape);
    }
    json_t *row = result_row(result, o->subject, "graphi");
    result_times(row, job->ms, job->runs); /* which sorts them */
    fprintf(out, "%d executions, median %.3f ms\n", job->runs, job->ms[job->runs / 2]);
    if (o->compare)
        fprintf(out, "all outputs equal those of %s\n", o->compare);
    return o->json ? result_write(result->root, o->json) : GRAPHI_OK;
}

static graphi_status write_timelines(const struct onnx_job *job, struct result *result)
{
    char path[4096];
    const char *prefix = job->options->timeline;
    if (!prefix)
        return GRAPHI_OK;
    const graphi_status status = graphi_session_write_timeline(job->session, prefix);
    if (status != GRAPHI_OK)
        return report_failure(status);
    static const char *const ends[] = {"html", "json"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.4000s.%s", prefix, ends[i]);
        result_file(result, path);
    }
    return GRAPHI_OK;
}

/* The host's nodes, beside the times of plans. */
static graphi_status tell_hosts(const struct onnx_job *job)
{
    FILE *out = options_json_is_stdout(job->options) ? stderr : stdout;
    graphi_session_plan plan;
    char *hosts;
    const graphi_status status =
        graphi_session_inspect_plan(job->session, job->inputs.names, (const graphi_tensor *const *)job->inputs.values,
                                    job->inputs.count, &plan, &hosts);
    if (status != GRAPHI_OK)
        return report_failure(status);
    fprintf(out, "%lld nodes in %lld plans, %.3f GFLOP, %d x %d threads; %lld nodes on the host\n%s",
            (long long)plan.planned, (long long)plan.plans, plan.flops * 1e-9, plan.executors, plan.width,
            (long long)(plan.host + plan.open), hosts);
    graphi_free(hosts);
    return GRAPHI_OK;
}

static int run_model(const struct options *options, bool profiles)
{
    struct onnx_job job = {.options = options, .repeat = profiles ? 10 : options->repeat ? options->repeat : 1};
    graphi_status status = graphi_session_open(
        options->subject, NULL, 0,
        &(graphi_session_options){.host = options->host, .traced = options->timeline != NULL}, &job.session);
    if (status != GRAPHI_OK)
        return report_failure(status);
    struct result result = result_begin(profiles ? "profile" : "run", NULL, options->argc, options->argv);
    status = onnx_inputs_find(options, job.session, false, &job.inputs);
    if (status == GRAPHI_OK)
        status = find_outputs(&job);
    if (status == GRAPHI_OK)
        status = execute(&job);
    if (status == GRAPHI_OK)
        status = write_outputs(&job, &result);
    if (status == GRAPHI_OK)
        status = compare_outputs(&job);
    if (status == GRAPHI_OK)
        status = write_timelines(&job, &result);
    if (status == GRAPHI_OK && profiles)
        status = tell_hosts(&job);
    if (status == GRAPHI_OK)
        status = tell(&job, &result);
    for (size_t i = 0; i < job.output_count; i++)
        graphi_tensor_destroy(job.results[i]);
    onnx_inputs_free(&job.inputs);
    free(job.ms);
    result_end(&result);
    graphi_session_close(job.session);
    return status;
}

int onnx_run(const struct options *options)
{
    const graphi_status status = options_only(options, "run FILE.onnx",
                                              "--input --inputs --shape --host --output --repeat --compare --rtol "
                                              "--atol --timeline --json --quiet");
    return status != GRAPHI_OK ? (int)status : run_model(options, false);
}

int onnx_profile(const struct options *options)
{
    const graphi_status status =
        options_only(options, "profile FILE.onnx", "--input --inputs --shape --timeline --json --quiet");
    return status != GRAPHI_OK ? (int)status : run_model(options, true);
}
