/* SPDX-License-Identifier: Apache-2.0 */
/* graphi run FILE.onnx: inputs from .npy and .npz files or random ones, outputs into .npy files, compared where asked.
 * Usual size: a few inputs and outputs, at most PORTS of either. */
#include "cli/onnx.h"

#include "cli/onnx_random.h"
#include "tool/report.h"
#include "tool/result.h"

#include <stdlib.h>
#include <string.h>

enum { PORTS = 256, REPEAT_MOST = 100000 };

struct onnx_job {
    const struct options *options;
    graphi_session *session;
    const char *names[PORTS], *outputs[PORTS];
    graphi_tensor *values[PORTS], *results[PORTS];
    size_t count, output_count;
    double *ms;
    int runs;
};

bool onnx_named(const char *subject)
{
    const size_t length = subject ? strlen(subject) : 0;
    return length > 5 && strcmp(subject + length - 5, ".onnx") == 0;
}

static const char *split_word(const char *word, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static const char *find_word(const char *const *words, int count, const char *name)
{
    const char *found = NULL;
    for (int i = 0; i < count && !found; i++)
        found = split_word(words[i], name);
    return found;
}

/* Words that name no input would have no effect. */
static graphi_status check_words(const struct onnx_job *job, const char *option, const char *const *words, int count,
                                 const char *form)
{
    for (int i = 0; i < count; i++) {
        graphi_session_port port;
        bool known = false;
        for (size_t k = 0; !known && graphi_session_port_at(job->session, GRAPHI_SESSION_INPUT, k, &port); k++)
            known = split_word(words[i], port.name) != NULL;
        if (!known)
            return report_usage(option, words[i], "%s, NAME one of `graphi inspect`'s inputs", form);
    }
    return GRAPHI_OK;
}

/* NULL in *out: it is left out, since it has a default. */
static graphi_status find_input(struct onnx_job *job, const graphi_session_port *port, size_t i, graphi_tensor **out)
{
    const struct options *o = job->options;
    const char *path = find_word(o->input, o->input_count, port->name);
    *out = NULL;
    if (path || o->inputs) {
        graphi_status status = graphi_tensor_load(path ? path : o->inputs, port->name, NULL, out);
        if (status == GRAPHI_OK || path || !port->has_default)
            return status == GRAPHI_OK ? status : report_failure(status);
        return GRAPHI_OK;
    }
    if (port->has_default || port->optional)
        return GRAPHI_OK;
    return onnx_random(port, find_word(o->shape, o->shape_count, port->name), i, out);
}

static graphi_status find_inputs(struct onnx_job *job)
{
    const struct options *o = job->options;
    graphi_session_port port;
    graphi_status status = check_words(job, "--input", o->input, o->input_count, "NAME=FILE.npy");
    if (status == GRAPHI_OK)
        status = check_words(job, "--shape", o->shape, o->shape_count, "NAME=1x3x224x224");
    for (size_t i = 0; status == GRAPHI_OK && graphi_session_port_at(job->session, GRAPHI_SESSION_INPUT, i, &port);
         i++) {
        if (job->count == PORTS)
            return report_error(GRAPHI_UNSUPPORTED, o->subject, "found more than %d inputs, expected fewer", PORTS);
        job->names[job->count] = port.name;
        status = find_input(job, &port, i, &job->values[job->count]);
        job->count += status == GRAPHI_OK && job->values[job->count];
    }
    return status;
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
    const int64_t repeat = job->options->repeat ? job->options->repeat : 1;
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
            graphi_session_run(job->session, job->names, (const graphi_tensor *const *)job->values, job->count, NULL,
                               job->output_count, job->results);
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

int onnx_run(const struct options *options)
{
    struct onnx_job job = {.options = options};
    graphi_status status =
        options_only(options, "run FILE.onnx",
                     "--input --inputs --shape --host --output --repeat --compare --rtol --atol --json --quiet");
    if (status != GRAPHI_OK)
        return status;
    status =
        graphi_session_open(options->subject, NULL, 0, &(graphi_session_options){.host = options->host}, &job.session);
    if (status != GRAPHI_OK)
        return report_failure(status);
    struct result result = result_begin("run", NULL, options->argc, options->argv);
    status = find_inputs(&job);
    if (status == GRAPHI_OK)
        status = find_outputs(&job);
    if (status == GRAPHI_OK)
        status = execute(&job);
    if (status == GRAPHI_OK)
        status = write_outputs(&job, &result);
    if (status == GRAPHI_OK)
        status = compare_outputs(&job);
    if (status == GRAPHI_OK)
        status = tell(&job, &result);
    for (size_t i = 0; i < job.output_count; i++)
        graphi_tensor_destroy(job.results[i]);
    for (size_t i = 0; i < job.count; i++)
        graphi_tensor_destroy(job.values[i]);
    free(job.ms);
    result_end(&result);
    graphi_session_close(job.session);
    return status;
}
