/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time: what an execution would take, as often as wanted. */
#ifndef ENGINE_SIMULATOR_H
#define ENGINE_SIMULATOR_H

#include "engine/choose/traffic.h"

/* What is simulated stays as it is meanwhile; what the tasks' allotment points to may change between runs. records
 * NULL: no trace. */
struct plan_simulator {
    struct schedule *schedule;
    struct traffic traffic;
};
graphi_status simulator_open(const struct simulated *what, struct plan_simulator *out); /* close after success */
graphi_status simulator_run(struct plan_simulator *simulator, struct task_record *records, struct simulation *out);
void simulator_close(struct plan_simulator *simulator); /* accepts a zeroed one */

/* Once. */
graphi_status simulator_once(const struct simulated *what, struct task_record *records, struct simulation *out);

/* A plan under its setting: time passes by the curves of `truth`, a plan over the same compiled graph. */
struct simulated simulated_plan(const graphi_plan *plan, const graphi_plan *truth);

#endif
