/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that need not exist, and what operations take there. A plan for one is compiled for it, from nothing that
 * this computer has stored: without --tune, --plan and --curves its times are estimates that every computer with these
 * instructions makes alike. */
#include "cli/described.h"
#include "cli/plan.h"
#include "cli/report.h"

graphi_status job_described(const struct options *options, const char *path, graphi_machine **out)
{
    graphi_machine *machine = NULL;
    graphi_status status = graphi_machine_load(path, &machine);
    if (status == GRAPHI_OK && options->cores)
        status = graphi_machine_limit(machine, options->cores);
    if (status == GRAPHI_OK) {
        *out = machine;
        return status;
    }
    graphi_machine_destroy(machine);
    return report_failure(status);
}

graphi_status job_at_hand(const struct options *options, graphi_machine **out)
{
    struct options all = *options;
    all.cores = 0; /* those of the described one */
    return job_machine(&all, out);
}

graphi_status job_profile_there(const struct options *options, const graphi_plan *there, const graphi_graph *graph,
                                const graphi_plan_options *forms, const graphi_machine *here,
                                const graphi_machine *machine, graphi_curves *curves, graphi_plan **out)
{
    graphi_plan_info about;
    graphi_plan *plan = NULL;
    graphi_state *state = NULL;
    graphi_plan_options same = *forms;
    const graphi_profile_options how = {.seconds = options->tune, .interval = options->interval,
                                        .exhaustive = !options->interval, .machine = machine, .curves = curves,
                                        .stop = job_stopped, .context = (void *)options};
    graphi_plan_get_info(there, &about);
    same.setting = (graphi_setting){0};
    same.isa = about.isa; /* the same kernels */
    graphi_status status = graphi_plan_create(graph, here, &same, &plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(graph, options->seed, &state);
    if (status == GRAPHI_OK)
        status = graphi_plan_profile(plan, state, &how, out);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    return status;
}
