/* SPDX-License-Identifier: Apache-2.0 */
/* See parts.h. */
#include "parts.h"

void parts_count(struct parts *p, const graphi_decision *s, int cores, double ms, double cpu_s)
{
    const int threads = s->executors * s->width + (s->driver == GRAPHI_DRIVER_DEDICATED) + s->light;
    p->cpu_s += cpu_s;
    p->threads_s += (threads < cores ? threads : cores) * ms * 1e-3;
}

graphi_status parts_add(struct contender *c, bool twice, int cores, struct parts *p)
{
    graphi_trace_summary sum;
    graphi_plan_info plan;
    double ms;
    if (report_interrupted())
        return GRAPHI_INTERRUPTED;
    graphi_status status = graphi_run_trace(c->run, true);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = bench_turn(c, twice, &ms);
    if (status == GRAPHI_OK && (status = graphi_run_trace_summary(c->run, &sum)) != GRAPHI_OK)
        report_failure(status);
    graphi_run_trace(c->run, false);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(c->plan, &plan);
    parts_count(p, &plan.setting, cores, ms, c->cpu_s);
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
