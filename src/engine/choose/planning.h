/* SPDX-License-Identifier: Apache-2.0 */
/* How plans come about, of a compiled graph or of a graph. */
#ifndef ENGINE_PLANNING_H
#define ENGINE_PLANNING_H

#include "engine/compile/plan.h"

/* What a plan is made of. */
struct plan_parts {
    const graphi_machine *machine;
    const struct cost_curve *curves;   /* one a class, copied; NULL: estimated */
    const struct cost_curve *observed; /* copied: those whose place a model's curves took; NULL: none */
    bool measured;                     /* the curves are */
    const graphi_setting *setting;     /* as asked for */
    /* These tasks at these widths, under a setting whose policy is malleable and tells executors and width; it is the
     * plan's then, and gone where this fails. NULL: they are searched for where the policy wants it. */
    struct allotment *allotment;
};

/* A plan over `compiled`, of which it takes a further reference. USAGE: the setting does not fit. */
graphi_status plan_make(struct compiled *compiled, const struct plan_parts *parts, graphi_plan **out);

/* graphi_plan_create with these forms of rounding.h. */
graphi_status plan_compile(const graphi_graph *graph, const graphi_machine *machine, const graphi_plan_options *options,
                           uint32_t rounding, graphi_plan **out);

/* For executions of the plan on its own machine. The caller's. */
graphi_status plan_schedule(const graphi_plan *plan, struct schedule **out);

/* Appends a setting that was tried, with a copy of its times. MEMORY. */
graphi_status tried_add(graphi_plan *plan, const struct tried *tried);

#endif
