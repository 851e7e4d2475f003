/* SPDX-License-Identifier: Apache-2.0 */
/* graphi profile, run, inspect: what can be asked of a network besides training it. */
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/output.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

static bool quiet_stdout(const struct options *options) { return options->json && strcmp(options->json, "-") == 0; }

/* Executes `repeat` times, after a first one that is not counted, and adds a row. */
static graphi_status measure(struct job *job, struct result *result, int64_t repeat)
{
    double first = 0;
    graphi_status status = GRAPHI_OK;
    for (int64_t i = -1; i < repeat && status == GRAPHI_OK && !report_interrupted(); i++) {
        graphi_run_info info;
        status = graphi_run_execute(job->run);
        graphi_run_get_info(job->run, &info);
        if (i < 0)
            first = info.last_ms;
        else
            job_clock(job);
        report_progress(job->options->quiet, "%s: execution %lld of %lld, %.3f ms", job->name, (long long)i + 1,
                        (long long)repeat, info.last_ms);
    }
    report_progress(job->options->quiet, "%s", "");
    status = status == GRAPHI_OK ? report_stopped(job->name, "all executions") : report_failure(status);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_info plan;
    graphi_plan_get_info(job->plan, &plan);
    json_t *row = job_row(job, job->name, result);
    double median = json_number_value(json_object_get(json_object_get(row, "time_ms"), "median"));
    result_number(row, "load_ms", plan.compile_ms + (first > median ? first - median : 0));
    return GRAPHI_OK;
}

static int with_job(const struct options *options, double tune, int64_t repeat)
{
    graphi_model_options model;
    struct job job;
    graphi_status status = job_model_options(options, &model);
    if (status != GRAPHI_OK)
        return status;
    status = job_open(options, options->subject, &model, tune, &job);
    struct result result = result_begin(options->command, NULL, options->argc, options->argv);
    if (status == GRAPHI_OK) {
        job_describe(&job, &result);
        status = arrays_feed(&job);
    }
    if (status == GRAPHI_OK)
        status = measure(&job, &result, repeat);
    if (status == GRAPHI_OK)
        status = arrays_write(&job, &result);
    if (status == GRAPHI_OK) {
        result_plan(&result, job.plan, job.run);
        job_record(&job, &result);
        if (options->explain || tune > 0)
            job_explain(options, job.plan);
        job_explain_run(options, job.run);
        status = job_timeline(&job, 3, &result);
    }
    if (status == GRAPHI_OK)
        status = job_finish(options, &result, status);
    result_end(&result);
    job_close(&job);
    return status;
}

int command_profile(const struct options *options)
{
    struct options asked = *options;
    if (!asked.tune_given && !asked.plan && !asked.model) {
        asked.tune_given = true; /* profiling again is what was asked for, whatever is stored */
        asked.tune = 20;
    }
    return with_job(&asked, asked.tune, 10);
}

int command_run(const struct options *options)
{
    return with_job(options, 0, options->repeat ? options->repeat : 10);
}

/* To --out, else to standard output, unless the result goes there. */
static graphi_status write_text(const struct options *options, const char *text)
{
    struct output output;
    graphi_status status;
    if (options->out) {
        status = output_begin(&output, options->out);
        return status == GRAPHI_OK ? output_end(&output, fputs(text, output.file) >= 0) : status;
    }
    if (quiet_stdout(options) || fputs(text, stdout) >= 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_IO, "standard output", "found that it cannot be written, expected a writable place");
}

static graphi_status print_graph(const struct options *options, const graphi_graph *graph)
{
    const size_t length = options->out ? strlen(options->out) : 0;
    const bool dot = length > 4 && strcmp(options->out + length - 4, ".dot") == 0;
    graphi_graph_info info;
    char *text = NULL;
    graphi_status status = graphi_graph_print(graph, dot ? GRAPHI_PRINT_DOT : GRAPHI_PRINT_TEXT, &text);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = write_text(options, text);
    graphi_free(text);
    if (status != GRAPHI_OK)
        return status;
    graphi_graph_get_info(graph, &info);
    fprintf(quiet_stdout(options) ? stderr : stdout,
            "%s: %lld operations, %lld values, %lld parameters (%lld elements), %.3f GFLOP, %.1f MB of results, "
            "hash %016llx\n",
            options->subject, (long long)info.nodes, (long long)info.values, (long long)info.parameters,
            (long long)info.parameter_elements, info.flops * 1e-9, (double)info.intermediate_bytes * 1e-6,
            (unsigned long long)info.hash);
    return GRAPHI_OK;
}

int command_inspect(const struct options *options)
{
    graphi_model_options model;
    graphi_graph *graph;
    graphi_status status = job_model_options(options, &model);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_model_create(options->subject, &model, &graph)) != GRAPHI_OK)
        return report_failure(status);
    status = print_graph(options, graph);
    if (status == GRAPHI_OK && options->json) {
        graphi_model_info about;
        struct result result = result_begin("inspect", NULL, options->argc, options->argv);
        graphi_model_get_info(options->subject, &model, &about);
        result_model(&result, options->subject, options->size ? options->size : "small",
                     options->task ? options->task : "bench", about.batch, graph, NULL);
        if (options->out)
            result_file(&result, options->out);
        status = result_write(result.root, options->json);
        result_end(&result);
    }
    graphi_graph_destroy(graph);
    return status;
}
