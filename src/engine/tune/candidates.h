/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that tuning weighs. */
#ifndef ENGINE_CANDIDATES_H
#define ENGINE_CANDIDATES_H

#include "base/array.h"
#include "engine/compile/plan.h"

/* Settings to choose from, each as a plan with its prediction. [0] is the base's own, with everything that follows from
 * the curves; it and the sequential and (with `policies`) malleable ones are added whatever the time, the others until
 * the deadline. */
struct candidate {
    graphi_plan *plan;
    int runs;         /* tune.c: in the race */
    const double *ns; /* its times there */
    double median_ns;
    double ratio, doubt; /* of its time to the chosen one's, and the standard error of that */
};
struct candidates {
    const graphi_plan *base;
    const struct cost_curve *curves;
    bool measured;    /* they are, all of them */
    int64_t deadline; /* clock_ns */
    ARRAY(struct candidate) list;
};
graphi_status candidates_add(struct candidates *candidates, bool policies);
/* This one; with a strategy or malleable also the uniform settings, as such ones with teams of one width, and with
 * malleable executors of one thread that join: a confirmation. They have the cores of the asked split, or all where
 * none was asked for. USAGE. */
graphi_status candidates_add_asked(struct candidates *candidates, const graphi_setting *setting);
bool candidates_confirm(const graphi_setting *setting); /* an asked setting that has to beat others */
void candidates_free(struct candidates *candidates);

/* The promising ones, at most `most`, [0] first: whom it pays to run. */
int candidates_field(const struct candidates *candidates, int *field, int most);

/* Less runs side by side (so less waits); else teams are fixed; else nobody joins; else the one that was added first.
 */
bool candidates_simpler(const struct candidates *candidates, int a, int b);

#endif
