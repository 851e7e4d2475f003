/* SPDX-License-Identifier: Apache-2.0 */
/* graphi simulate: a plan in virtual time, for the machine at hand or a described one. */
#include "cli/commands.h"
#include "cli/form.h"
#include "tool/curves.h"
#include "tool/plan.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

/* Where the durations come from: nobody should take scaled figures for those of the machine. */
static void note_durations(const struct job *job, struct result *result)
{
    graphi_plan_info plan;
    graphi_machine_info here;
    graphi_plan_get_info(job->plan, &plan);
    if (!plan.measured)
        result_note(result, "durations are estimated from the machine's rates");
    else if (!job->described)
        result_note(result, "durations are measured on this machine");
    else if (!job->here)
        result_note(result, "durations are scaled from stored measurements");
    else {
        graphi_machine_get_info(job->here, &here);
        result_note(result, "durations are scaled from measurements on this machine (%s)", here.cpu);
    }
}

/* The plan whose curves, those of --model, direct the choices; NULL without one. */
static graphi_status direct(const struct options *options, const struct job *job, graphi_plan **out)
{
    graphi_plan_options asked;
    *out = NULL;
    if (!options->model)
        return GRAPHI_OK;
    graphi_status status = job_plan_options(options, &asked);
    if (status != GRAPHI_OK)
        return status;
    const graphi_setting *setting = job->described && !job->plan_loaded ? &asked.setting : NULL;
    status = graphi_plan_with(job->plan, &(graphi_plan_change){.setting = setting}, out);
    return status == GRAPHI_OK ? job_curves_use(options, job->machine, setting, out) : report_failure(status);
}

static graphi_status tell(const struct options *options, const struct job *job, const graphi_plan *chosen,
                          const graphi_simulation *simulation)
{
    graphi_plan_info info;
    graphi_machine_info machine;
    graphi_plan_get_info(chosen, &info);
    graphi_machine_get_info(job->machine, &machine);
    double makespan_ms = simulation->makespan_ms;
    struct result result = result_begin("simulate", NULL, options->argc, options->argv);
    job_describe(job, &result);
    json_t *row = result_row(&result, job->name, "graphi");
    result_setting(row, &info.setting);
    result_set(row, "simulated", json_true());
    result_times(row, &makespan_ms, 1);
    result_number(row, "lower_bound_ms", simulation->lower_bound_ms);
    result_number(row, "utilization", simulation->utilization);
    result_number(row, "overhead_ns_per_op", simulation->host_ns_per_op);
    result_note(&result,
                "simulated: utilization %.1f %%, critical path %.3f ms, %.2f operations side by side, %.3f ms of "
                "scheduling",
                100 * simulation->utilization, simulation->critical_path_ms, simulation->mean_corunning,
                simulation->scheduling_ms);
    result_plan(&result, chosen, NULL);
    note_durations(job, &result);
    result_note_driver(&result, &info.setting, machine.cores);
    job_note_plan(job, chosen, &result);
    if (options->timeline)
        result_timeline(&result, options->timeline);
    if (options->explain)
        job_explain(options, chosen);
    graphi_status status = job_finish(options, &result, GRAPHI_OK);
    result_end(&result);
    return status;
}

int command_simulate(const struct options *options)
{
    graphi_model_options model;
    graphi_plan *directed = NULL;
    graphi_simulation simulation;
    struct job job = {0};
    struct options timed = *options;
    timed.model = NULL; /* time passes by the curves that are measured */
    graphi_status status = form_asked(options, options->subject, &model);
    if (status == GRAPHI_OK)
        status = job_open(&timed, options->subject, &model, 0, &job);
    if (status == GRAPHI_OK)
        status = direct(options, &job, &directed);
    const graphi_plan *chosen = directed ? directed : job.plan;
    const graphi_simulate_options how = {.truth = job.plan, .timeline = options->timeline};
    if (status == GRAPHI_OK && (status = graphi_plan_simulate(chosen, &how, &simulation)) != GRAPHI_OK)
        report_failure(status);
    if (status == GRAPHI_OK)
        status = report_stopped("simulate", "the end of virtual time");
    if (status == GRAPHI_OK)
        status = tell(options, &job, chosen, &simulation);
    graphi_plan_destroy(directed);
    job_close(&job);
    return status;
}
