/* SPDX-License-Identifier: Apache-2.0 */
/* Cost curves of a machine that is not at hand (docs/simulator.md states the model and its limits). */
#ifndef ENGINE_CURVE_EXTEND_H
#define ENGINE_CURVE_EXTEND_H

#include "kernels/kernel.h"
#include "schedule/schedule.h"

/* What the extension knows of one class. */
struct class_model {
    double t1; /* ns on one core there, start included */
    double bytes;
    double saturation; /* width at which gains end; 0: never */
    int shares, phases;
    double barriers; /* of a whole call: one a phase, of every step of a loop */
    const double *share_ns;  /* time of every share on one core there, phase after phase; NULL: all alike */
    const int *phase_shares; /* as kernel.shares; with share_ns */
};

/* The model of a class that takes t1 ns on one core of `machine`; scalability as tasks.scalability. */
struct class_model curves_model(const graphi_machine *machine, const struct kernel *kernel, int scalability, double t1);

/* ns at `width` workers; spread: one a tile. */
double curves_at(const struct class_model *model, const graphi_machine *machine, int width, bool spread);

/* Both modes at increasing widths: all below 4, then half as many again each time, up to the cores. */
void curves_extend(const struct class_model *model, const graphi_machine *machine, struct cost_curve *curve);

#endif
