/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of the tasks of a compiled graph, and their curves where nothing was measured. */
#ifndef ENGINE_CLASSES_H
#define ENGINE_CLASSES_H

#include "engine/compile/plan.h"
#include "engine/cost/curve_extend.h"
#include "engine/cost/curve_set.h"

/* Fills curve_of, class_key, class_task, class_tasks, kind, flags, scalability and sums over tasks. MEMORY. */
graphi_status classes_find(struct compiled *compiled);

/* Estimated curves on a machine, one a class. */
void classes_estimate(const struct compiled *compiled, const graphi_machine *machine, struct cost_curve *curves);

/* The model on one machine of a class that takes serial_ns on one core of another. */
struct class_model class_model_of(const struct compiled *compiled, int32_t class, double serial_ns,
                                  const graphi_machine *here, const graphi_machine *there);

/* The plan's curves where `machine` is the plan's, extended to it otherwise. */
void classes_extend(const graphi_plan *plan, const graphi_machine *machine, struct cost_curve *curves);

/* Under which its curves are known in files: they hold for its affinity. */
struct class_keys plan_class_keys(const graphi_plan *plan);

#endif
