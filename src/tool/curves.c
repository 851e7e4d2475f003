/* SPDX-License-Identifier: Apache-2.0 */
/* Where plans and the curves of operation classes are kept, and which curves a command takes and adds: by default one
 * file a machine and version beside the stored plans, else what --curves names. */
#include "tool/curves.h"
#include "tool/output.h"
#include "tool/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void job_folder(char *path, size_t size)
{
    const char *wanted = getenv("GRAPHI_PLAN_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    *path = 0;
    errno = ENOENT;
    if (wanted && *wanted)
        length = snprintf(path, size, "%s", wanted);
    else if (cache && *cache == '/') /* a relative one is to be ignored (XDG Base Directory Specification) */
        length = snprintf(path, size, "%s/graphi", cache);
    else if (home && *home && access(home, F_OK) == 0) /* that of daemons is not there, and not to be made */
        length = snprintf(path, size, "%s/.cache/graphi", home);
    if (length < 0 || (size_t)length >= size) { /* a part of it would be another folder */
        *path = 0;
        errno = ENAMETOOLONG;
    }
    for (char *slash = path; *path && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    if (*path && mkdir(path, 0777) != 0 && errno != EEXIST)
        *path = 0;
}

bool job_curves_named(const struct options *o) { return o->curves && strcmp(o->curves, "none") != 0; }

/* What was no error, with the library's reason. */
static void note(const struct options *o, const char *what)
{
    if (!o->quiet)
        fprintf(stderr, "graphi: note: %s: %s\n", what, graphi_message());
}

/* The set for tuning. A file of the cache that is refused or broken is made anew; one that was named is an error. */
graphi_status job_curves_open(struct job *job)
{
    const struct options *o = job->options;
    graphi_machine_info machine;
    char path[4096] = "", folder[3900];
    if (o->curves && !job_curves_named(o))
        return GRAPHI_OK;
    if (o->curves) {
        graphi_status status = output_check(o->curves, false);
        if (status != GRAPHI_OK)
            return status;
        status = graphi_curves_open(job->machine, o->curves, &job->curves);
        return status == GRAPHI_OK ? status : report_failure(status);
    }
    graphi_machine_get_info(job->machine, &machine);
    job_folder(folder, sizeof folder);
    if (*folder)
        snprintf(path, sizeof path, "%s/%016llx-%s.curves", folder, (unsigned long long)machine.hash, graphi_version());
    graphi_status status = *path ? graphi_curves_open(job->machine, path, &job->curves) : GRAPHI_OK;
    if (status == GRAPHI_OK)
        return status;
    if (status == GRAPHI_MEMORY) /* the file may be sound */
        return report_failure(status);
    if (status == GRAPHI_IO) {
        note(o, "stored curves are not used");
        return GRAPHI_OK;
    }
    note(o, "stored curves are not used but measured again");
    status = graphi_curves_renew(job->machine, path, &job->curves);
    return status == GRAPHI_MEMORY ? report_failure(status) : GRAPHI_OK;
}

/* A full disk costs a measurement, no more; a file that was named is where they must go. */
graphi_status job_curves_keep(struct job *job)
{
    graphi_status status = job->curves ? graphi_curves_save(job->curves) : GRAPHI_OK;
    if (status != GRAPHI_OK && job_curves_named(job->options))
        return report_failure(status);
    job->curves_stored = job_curves_named(job->options) && access(job->options->curves, F_OK) == 0;
    if (status != GRAPHI_OK)
        note(job->options, "the measured curves were not kept");
    else if (job_curves_named(job->options) && !job->curves_stored && !job->options->quiet)
        fprintf(stderr, "graphi: note: %s is not written: no operation ran often enough for its curve to be kept\n",
                job->options->curves);
    return GRAPHI_OK;
}

graphi_status job_curves_check(const struct options *o)
{
    return o->model && !job_curves_named(o)
               ? report_usage("--model", o->model, "--curves FILE too, which has that model's curves")
               : GRAPHI_OK;
}

graphi_status job_curves_use(const struct options *o, const graphi_machine *machine, const graphi_setting *setting,
                             graphi_plan **plan)
{
    graphi_curves *curves;
    graphi_plan *better = NULL;
    if (!job_curves_named(o))
        return GRAPHI_OK;
    if (access(o->curves, F_OK) != 0)
        return report_error(GRAPHI_IO, o->curves, "found no such file, expected curves: nothing is measured here");
    graphi_status status = graphi_curves_open(machine, o->curves, &curves);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = graphi_plan_with(*plan, &(graphi_plan_change){.setting = setting, .curves = curves, .model = o->model},
                              &better);
    graphi_curves_close(curves);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_plan_destroy(*plan);
    *plan = better;
    return GRAPHI_OK;
}
