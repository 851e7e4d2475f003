/* SPDX-License-Identifier: Apache-2.0 */
/* graphi profile and graphi run: a network's executions, timed. They share with_job() and differ in the seconds that go
 * into the setting. */
#include "cli/arrays.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/form.h"
#include "cli/onnx.h"
#include "tool/job.h"
#include "tool/plan.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

/* Executes `repeat` times, after a first one that is not counted, and adds a row, also of a part of them: INTERRUPTED.
 * Texts are read from their beginning each time, so that outputs are those of the inputs, however often. */
static graphi_status measure(struct job *job, struct result *result, int64_t repeat)
{
    double first = 0;
    graphi_status status = GRAPHI_OK;
    int64_t i = -1;
    for (; i < repeat && status == GRAPHI_OK && !report_interrupted(); i++) {
        graphi_run_info info;
        if ((status = graphi_state_zero(job->state, "eval/state/")) != GRAPHI_OK)
            break;
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
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = report_stopped(job->name, "all executions");
    if (i < 1)
        return status;
    graphi_plan_info plan;
    graphi_plan_get_info(job->plan, &plan);
    json_t *row = job_row(job, job->name, result);
    double median = json_number_value(json_object_get(json_object_get(row, "time_ms"), "median"));
    result_number(row, "load_ms", plan.compile_ms + (first > median ? first - median : 0));
    return status;
}

/* Its number tells apart those that differ in what is not said. */
static void trial_id(const struct job *job, int i, const graphi_decision *s, char *id, size_t size)
{
    char shape[32] = "", ahead[24] = "";
    if (s->executors > 0 && s->width > 0)
        snprintf(shape, sizeof shape, " %dx%d", s->executors, s->width);
    if (s->depth > 1)
        snprintf(ahead, sizeof ahead, ", %d ahead", s->depth);
    snprintf(id, size, "%s tried: %d. %s%s%s%s%s%s", job->name, i + 1, graphi_policy_name(s->policy), shape, ahead,
             s->driver == GRAPHI_DRIVER_DEDICATED ? ", dedicated" : "", s->uniform ? ", teams of one width" : "",
             s->joins ? ", joining" : "");
}

/* A row for each setting that tuning weighed, by predicted time; ratios are to the one that was chosen. */
static void add_trials(const struct job *job, struct result *result)
{
    graphi_trial best = {.rounds = 0}, trial;
    char id[128], best_id[128] = "";
    for (int i = 0; !best.chosen && graphi_plan_trial_at(job->plan, i, &trial); i++)
        if (trial.chosen) {
            best = trial;
            trial_id(job, i, &best.setting, best_id, sizeof best_id);
        }
    for (int i = 0; graphi_plan_trial_at(job->plan, i, &trial); i++) {
        trial_id(job, i, &trial.setting, id, sizeof id);
        json_t *row = result_row(result, id, "graphi");
        result_setting(row, &trial.setting);
        result_number(row, "predicted_ms", trial.predicted_ms);
        if (!trial.rounds) {
            result_string(row, "status", "missing");
            result_string(row, "reason", trial.predicted_ms > best.predicted_ms    ? "not raced: predicted slower"
                                         : trial.predicted_ms == best.predicted_ms ? "not raced: predicted the same"
                                                                                   : "not raced: no time");
            continue;
        }
        result_times(row, trial.ms, trial.rounds);
        if (best.rounds)
            result_ratio(row, best_id, trial.ms, best.ms, trial.rounds < best.rounds ? trial.rounds : best.rounds);
    }
}

static void print_setting(const graphi_decision *s, FILE *out)
{
    if (s->executors > 0 && s->width > 0)
        fprintf(out, "%dx%d ", s->executors, s->width);
    fputs(graphi_policy_name(s->policy), out);
}

/* The fastest of those that were raced and not chosen: how many there are, and its time over that of the chosen one in
 * the same rounds. */
static int next_best(const struct job *job, graphi_trial *next, double *times)
{
    graphi_trial best = {.rounds = 0}, trial;
    int others = 0;
    for (int i = 0; graphi_plan_trial_at(job->plan, i, &trial); i++)
        best = trial.chosen ? trial : best;
    for (int i = 0; best.rounds && graphi_plan_trial_at(job->plan, i, &trial); i++) {
        if (trial.chosen || !trial.rounds)
            continue;
        const double found =
            result_paired(trial.ms, best.ms, trial.rounds < best.rounds ? trial.rounds : best.rounds);
        if (others++ && found >= *times)
            continue;
        *next = trial;
        *times = found;
    }
    return others;
}

/* What an explanation of some hundred lines comes to: the setting and its time, what else there was, what bounds it. */
static void conclude(const struct job *job, const struct result *result)
{
    FILE *out = options_json_is_stdout(job->options) ? stderr : stdout;
    const json_t *row = json_array_get(result->rows, 0);
    const double ms = json_number_value(json_object_get(json_object_get(row, "time_ms"), "median"));
    graphi_plan_info plan;
    graphi_trial next;
    double times = 1;
    graphi_plan_get_info(job->plan, &plan);
    const int others = next_best(job, &next, &times);
    fprintf(out, "conclusion: %s runs ", job->name);
    print_setting(&plan.setting, out);
    fprintf(out, " at %.3f ms a step, %.2f times its lower bound\n", ms,
            plan.lower_bound_ms > 0 ? ms / plan.lower_bound_ms : 0);
    if (others) {
        fprintf(out, "others:     of %d raced beside it the best is ", others);
        print_setting(&next.setting, out);
        fprintf(out, ", at %.3f of its speed\n", 1 / times);
    } else {
        fprintf(out, "others:     none was raced beside it\n");
    }
    fprintf(out, "bound:      %s (longest path %.3f ms, lower bound %.3f ms)\n",
            plan.critical_path_ms >= 0.9 * plan.lower_bound_ms
                ? "the longest path through the graph: more cores would not shorten it"
                : "the work of all operations over the cores: more cores would shorten it",
            plan.critical_path_ms, plan.lower_bound_ms);
}

/* `runs`: its outputs are asked for, of given or random inputs, of random weights or those of a checkpoint. */
static int with_job(const struct options *options, bool runs, double tune, int64_t repeat)
{
    graphi_model_options model;
    struct job job = {0};
    graphi_status status = form_asked(options, options->subject, &model);
    if (status != GRAPHI_OK)
        return status;
    struct result result = result_begin(options->command, NULL, options->argc, options->argv);
    status = job_begin(options, options->subject, &model, &job);
    if (status == GRAPHI_OK && runs)
        status = checkpoint_weights(&job, &result);
    if (status == GRAPHI_OK)
        status = job_plan(&job, tune);
    if (status == GRAPHI_OK)
        job_describe(&job, &result);
    if (status == GRAPHI_OK && runs)
        status = arrays_feed(&job, &result);
    if (status == GRAPHI_OK)
        status = measure(&job, &result, repeat);
    if (status == GRAPHI_OK && !runs)
        add_trials(&job, &result);
    if (status == GRAPHI_OK && runs)
        status = arrays_write(&job, &result);
    if (status == GRAPHI_OK) {
        result_plan(&result, job.plan, job.run);
        job_record(&job, &result);
        if (!runs && options->explain)
            conclude(&job, &result);
        if (options->explain || tune > 0)
            job_explain(options, job.plan);
        job_explain_run(options, job.run);
        status = job_timeline(&job, 3, &result);
    }
    if (status == GRAPHI_OK || (status == GRAPHI_INTERRUPTED && json_array_size(result.rows)))
        status = job_finish(options, &result, status);
    result_end(&result);
    job_close(&job);
    return status;
}

int command_profile(const struct options *options)
{
    struct options asked = *options;
    if (onnx_named(options->subject))
        return onnx_profile(options);
    const graphi_status status = arrays_refuse(options);
    if (status != GRAPHI_OK)
        return status;
    if (!asked.tune_given && !asked.plan && !asked.model) {
        asked.tune_given = true; /* profiling again is what was asked for, whatever is stored */
        asked.tune = 20;
    }
    return with_job(&asked, false, asked.tune, 10);
}

int command_run(const struct options *options)
{
    if (onnx_named(options->subject))
        return onnx_run(options);
    graphi_status status = arrays_check(options);
    return status != GRAPHI_OK ? (int)status : with_job(options, true, 0, options->repeat ? options->repeat : 10);
}
