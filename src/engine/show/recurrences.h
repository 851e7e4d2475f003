/* SPDX-License-Identifier: Apache-2.0 */
/* How the recurrences of a plan run, in words (recurrences.c). */
#ifndef ENGINE_SHOW_RECURRENCES_H
#define ENGINE_SHOW_RECURRENCES_H

#include "base/text.h"
#include "engine/compile/plan.h"

/* A line a recurrence: schedule, how often weights are used where they lie, and what bounds a step (deepcpu.txt 3). */
void explain_recurrences(const graphi_plan *plan, struct text *text);

#endif
