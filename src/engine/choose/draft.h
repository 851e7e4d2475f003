/* SPDX-License-Identifier: Apache-2.0 */
/* What is being decided: a compiled graph on a machine, by curves, under a setting that changes while others are
 * weighed. A plan is made of it once nothing is left open (planning.c). */
#ifndef ENGINE_DRAFT_H
#define ENGINE_DRAFT_H

#include "base/text.h"
#include "engine/choose/simulator.h"

struct draft {
    const struct compiled *compiled;
    const graphi_machine *machine;
    struct cost_curve *curves; /* one a class; they stay as they are */
    bool measured;             /* they are */
    graphi_setting setting;    /* at present, and in the end */
    struct allotment *allotment; /* as graphi_plan's: given, or found last */
    /* By draft_update: */
    int64_t *level; /* one a task */
    struct tasks tasks;
    double critical_path_ns, work_ns, lower_bound_ns;
    /* By choosing, as graphi_plan's: */
    int graph_width;
    double predicted_ns, widths_bound_ns;
    int64_t searched;
    struct text why;
};

/* Levels, bounds and tasks under the present setting. MEMORY. */
graphi_status draft_update(struct draft *draft);

/* It in virtual time, as draft_update left it. */
struct simulated draft_simulated(const struct draft *draft);

#endif
