/* SPDX-License-Identifier: Apache-2.0 */
/* See parts.h. */
#include "parts.h"

#include <time.h>

/* Threads compute all the time of an execution, whether they work or wait: nobody sleeps in it. What the host gave to
 * other guests counts where it tells. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

graphi_status parts_add(graphi_run *run, struct parts *p)
{
    graphi_trace_summary sum;
    graphi_run_info info;
    if (report_interrupted())
        return GRAPHI_INTERRUPTED;
    graphi_status status = graphi_run_trace(run, true);
    const double begin = cpu_seconds();
    if (status == GRAPHI_OK)
        status = graphi_run_execute(run);
    const double computed = cpu_seconds() - begin;
    if (status == GRAPHI_OK)
        status = graphi_run_trace_summary(run, &sum);
    graphi_run_trace(run, false);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_run_get_info(run, &info);
    p->cpu_s += computed;
    p->threads_s += info.executors * info.width * info.last_ms * 1e-3;
    int at = p->rounds++;
    p->ms[at] = sum.span_ms;
    p->busy[at] = sum.busy_fraction;
    p->scheduling[at] = sum.scheduling_fraction;
    p->waiting[at] = sum.waiting_fraction;
    p->team[at] = sum.team_fraction;
    p->lost[at] = sum.scheduling_fraction + sum.waiting_fraction + sum.team_fraction;
    return GRAPHI_OK;
}

double parts_others(const struct parts *p)
{
    return p->threads_s > p->cpu_s ? 1 - p->cpu_s / p->threads_s : 0;
}

void parts_row(json_t *row, const struct parts *p)
{
    result_number(row, "busy_fraction", result_median(p->busy, p->rounds));
    result_number(row, "scheduling_fraction", result_median(p->scheduling, p->rounds));
    result_number(row, "waiting_fraction", result_median(p->waiting, p->rounds));
    result_number(row, "team_fraction", result_median(p->team, p->rounds));
    result_number(row, "lost_fraction", result_median(p->lost, p->rounds));
    result_number(row, "others_fraction", parts_others(p));
}
