/* SPDX-License-Identifier: Apache-2.0 */
/* graphi info: the machine as the scheduler sees it. */
#include "cli/commands.h"
#include "tool/job.h"
#include "tool/local_machine.h"
#include "tool/report.h"

int command_info(const struct options *options)
{
    graphi_machine *machine;
    graphi_status status = job_machine(options, &machine);
    if (status != GRAPHI_OK)
        return status;
    if ((status = report_stopped("info", "the machine's measurement")) != GRAPHI_OK) {
        graphi_machine_destroy(machine);
        return status;
    }
    graphi_machine_info measured;
    graphi_machine_get_info(machine, &measured);
    job_tell_others(options, "the machine", measured.others);
    struct result result = result_begin("info", NULL, options->argc, options->argv);
    result_machine(&result, machine);
    char *text = NULL;
    status = graphi_machine_print(machine, &text);
    if (status != GRAPHI_OK)
        report_failure(status);
    else if (!options_json_is_stdout(options))
        fputs(text, stdout);
    graphi_free(text);
    if (status == GRAPHI_OK && options->out) {
        status = graphi_machine_save(machine, options->out);
        if (status == GRAPHI_OK)
            result_file(&result, options->out);
        else
            report_failure(status);
    }
    if (status == GRAPHI_OK && options->json)
        status = result_write(result.root, options->json);
    result_end(&result);
    graphi_machine_destroy(machine);
    return status;
}
