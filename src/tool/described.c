/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that need not exist, and what operations take there. A plan for one is compiled for it, from nothing that
 * this computer has stored: without --tune, --plan and --curves its times are estimates that every computer with these
 * instructions makes alike. */
#include "tool/described.h"
#include "tool/local_machine.h"
#include "tool/report.h"

#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where descriptions lie, seen from the folder of the command or of an experiment: in the checkout, installed. */
static const char *const folders[] = {"../../machines", "../../../machines", "../share/graphi/machines",
                                      "../../share/graphi/machines"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static bool find_folder(char *path, size_t size)
{
    char self[3000];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    const char *command = dirname(self);
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(path, size, "%s/%s", command, folders[i]);
        if (access(path, R_OK | X_OK) == 0)
            return true;
    }
    return false;
}

static int is_description(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".json") == 0;
}

static graphi_status fail_unknown(const char *name, const char *folder)
{
    char names[600] = "";
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_description, alphasort);
    for (int i = 0; i < count; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%.*s", length ? ", " : "",
                 (int)(strlen(entries[i]->d_name) - strlen(".json")), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return report_error(GRAPHI_IO, name, "found no machine of that name and no such file, expected a file or one of %s",
                        names);
}

/* A file is itself; a name without folder is one of the descriptions that come with Graphi. */
static graphi_status find_description(const char *name, char *path, size_t size)
{
    char folder[3500];
    snprintf(path, size, "%s", name);
    if (strchr(name, '/') || access(name, F_OK) == 0)
        return GRAPHI_OK;
    if (!find_folder(folder, sizeof folder))
        return GRAPHI_OK; /* reading it says what is wrong */
    const char *end = strrchr(name, '.');
    snprintf(path, size, "%s/%s%s", folder, name, end && strcmp(end, ".json") == 0 ? "" : ".json");
    return access(path, F_OK) == 0 ? GRAPHI_OK : fail_unknown(name, folder);
}

graphi_status job_described(const struct options *options, const char *name, graphi_machine **out)
{
    char path[4096];
    graphi_status status = find_description(name, path, sizeof path);
    if (status != GRAPHI_OK)
        return status;
    status = graphi_machine_load(path, options->cores, out);
    return status == GRAPHI_OK ? status : report_failure(status);
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
                                        .stop = report_stop, .context = (void *)options};
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
