/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that a file describes, and what operations take there. */
#ifndef TOOL_DESCRIBED_H
#define TOOL_DESCRIBED_H

#include "tool/options.h"

/* The machine that a file describes, or that comes with Graphi under this name, its first --cores cores; and the one
 * at hand beside it, of which --cores does not speak. */
graphi_status job_described(const struct options *options, const char *name, graphi_machine **out);
graphi_status job_at_hand(const struct options *options, graphi_machine **out);

/* *out: a plan for the described `machine`, of the kernels of `there`, a plan for it already; the times of its
 * operations are those of shares timed on `here` for --tune seconds, extended (docs/simulator.md). Not reported. */
graphi_status job_profile_there(const struct options *options, const graphi_plan *there, const graphi_graph *graph,
                                const graphi_plan_options *forms, const graphi_machine *here,
                                const graphi_machine *machine, graphi_curves *curves, graphi_plan **out);

#endif
