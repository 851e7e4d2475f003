/* SPDX-License-Identifier: Apache-2.0 */
/* See parts.h. */
#include "parts.h"

graphi_status parts_add(graphi_run *run, struct parts *p)
{
    graphi_trace_summary sum;
    if (report_interrupted())
        return GRAPHI_INTERRUPTED;
    graphi_status status = graphi_run_trace(run, true);
    if (status == GRAPHI_OK)
        status = graphi_run_execute(run);
    if (status == GRAPHI_OK)
        status = graphi_run_trace_summary(run, &sum);
    graphi_run_trace(run, false);
    if (status != GRAPHI_OK)
        return report_failure(status);
    int at = p->rounds++;
    p->ms[at] = sum.span_ms;
    p->busy[at] = sum.busy_fraction;
    p->scheduling[at] = sum.scheduling_fraction;
    p->waiting[at] = sum.waiting_fraction;
    p->team[at] = sum.team_fraction;
    p->lost[at] = sum.scheduling_fraction + sum.waiting_fraction + sum.team_fraction;
    return GRAPHI_OK;
}

void parts_row(json_t *row, const struct parts *p)
{
    result_number(row, "busy_fraction", result_median(p->busy, p->rounds));
    result_number(row, "scheduling_fraction", result_median(p->scheduling, p->rounds));
    result_number(row, "waiting_fraction", result_median(p->waiting, p->rounds));
    result_number(row, "team_fraction", result_median(p->team, p->rounds));
    result_number(row, "lost_fraction", result_median(p->lost, p->rounds));
}
