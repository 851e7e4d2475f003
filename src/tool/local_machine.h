/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that the command runs on. */
#ifndef TOOL_LOCAL_MACHINE_H
#define TOOL_LOCAL_MACHINE_H

#include "tool/options.h"

/* Captures the machine (options --cores, GRAPHI_NUM_THREADS); measures it, too (GRAPHI_MEASURE_SECONDS). */
graphi_status job_capture(const struct options *options, graphi_machine **out);
graphi_status job_machine(const struct options *options, graphi_machine **out);

/* Measures the machine at hand again and raises the roofs in `best` to what was found, where that is higher: it is
 * shared, and a roof of a slow moment is no limit. The bandwidth stays as it was measured first. Nothing on a described
 * machine. */
void job_measure_again(graphi_machine *machine, graphi_machine_info *best);

#endif
