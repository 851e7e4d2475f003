/* SPDX-License-Identifier: Apache-2.0 */
/* Executions of a run, whole or task by task. */
#ifndef ENGINE_EXECUTE_H
#define ENGINE_EXECUTE_H

#include "engine/run/run.h"

/* Of the last execution, without what it waited for cores that other executions held. */
double run_own_ns(const graphi_run *run);

/* Runs a task's shares; the scheduler's task_function. */
graphi_status run_task(void *context, int32_t task, struct team *team, int member, int width);

/* The arguments of a task's kernel in this run. */
struct kernel_call run_call(const graphi_run *run, int32_t task);

#endif
