/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that the command runs on: how many of its cores are used, and for how long it is measured. Other machines
 * are described (described.c). One thread. */
#include "tool/local_machine.h"

#include "tool/measuring.h"
#include "tool/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of GRAPHI_NUM_THREADS; 0: it is not set, or --cores says how many. */
static graphi_status variable_cores(const struct options *options, int *cores)
{
    const char *variable = getenv("GRAPHI_NUM_THREADS");
    char *end;
    *cores = 0;
    if (options->cores || !variable || !*variable)
        return GRAPHI_OK;
    const long value = strtol(variable, &end, 10);
    if (*end || value < 1 || value > 65536)
        return report_usage("GRAPHI_NUM_THREADS", variable, "a whole number from 1 to 65536");
    *cores = (int)value;
    return GRAPHI_OK;
}

graphi_status job_capture(const struct options *options, graphi_machine **out)
{
    int variable;
    graphi_status status = variable_cores(options, &variable);
    if (status != GRAPHI_OK)
        return status;
    status = graphi_machine_create(variable ? variable : options->cores, out);
    if (variable && status == GRAPHI_INVALID) /* a profile may set it for several machines */
        status = graphi_machine_create(0, out);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static void tell_fewer(const struct options *options, const graphi_machine *machine)
{
    int variable;
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    if (!options->quiet && variable_cores(options, &variable) == GRAPHI_OK && variable > info.cores)
        report_warning("GRAPHI_NUM_THREADS asks for %d cores; all that are there are used: %d", variable, info.cores);
}

/* Limits of the machine go beside rates that a command is asked for. Others have no use for them: buffers beyond the
 * caches may take more memory than their network. */
static bool measures(const struct options *options)
{
    static const char *const others[] = {"train", "eval", "run"};
    for (size_t i = 0; options->command && i < sizeof others / sizeof *others; i++)
        if (strcmp(options->command, others[i]) == 0)
            return false;
    return true;
}

graphi_status job_machine(const struct options *options, graphi_machine **out)
{
    double seconds;
    graphi_status status = measuring_seconds(&seconds);
    if (status == GRAPHI_OK)
        status = job_capture(options, out);
    if (status != GRAPHI_OK)
        return status;
    tell_fewer(options, *out);
    if (!measures(options))
        return GRAPHI_OK;
    status = graphi_machine_measure(*out, seconds);
    if (status != GRAPHI_OK) {
        graphi_machine_destroy(*out);
        *out = NULL;
        return report_failure(status);
    }
    return GRAPHI_OK;
}

void job_measure_again(graphi_machine *machine, graphi_machine_info *best)
{
    graphi_machine_info now;
    double seconds;
    if (!best->captured || measuring_seconds(&seconds) != GRAPHI_OK ||
        graphi_machine_measure(machine, seconds) != GRAPHI_OK)
        return;
    graphi_machine_get_info(machine, &now);
    best->roof_gflops = fmax(best->roof_gflops, now.roof_gflops);
    best->roof_bf16_gflops = fmax(best->roof_bf16_gflops, now.roof_bf16_gflops);
}
