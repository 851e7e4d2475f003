/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as such, without tasks and machines: what is heeded of them, which are the same, and the splits of cores. */
#ifndef SCHEDULE_SETTING_CANONICAL_H
#define SCHEDULE_SETTING_CANONICAL_H

#include "graphi/plan.h"

/* Could executors of this setting join each other's tasks? They are the same for all tasks, several of one thread. */
bool setting_joins(const graphi_setting *setting);

/* Do executors take tasks ahead of time? Not where teams are formed anew for every task, nothing is scheduled, or all
 * of it before the execution. */
bool setting_has_rings(const graphi_setting *setting);

/* Can it run under a static driver? Where there are scheduling steps that one execution in virtual time can take, and
 * executors do not change on the way. */
bool setting_decides_ahead(const graphi_setting *setting);

/* Does its policy decide the order alone? */
bool setting_orders_alone(const graphi_setting *setting);

/* A setting under which executions are those of critical path first becomes that: asymmetric teams that are all of one
 * size; an order by level where the backward pass has executors of its own, so that nothing else is heeded. False: it
 * stays as it is. */
bool setting_fold(graphi_setting *setting);

/* What the policy does not heed is as if it had not been asked for. Executors and widths are given. */
void setting_drop_unheeded(graphi_setting *setting);

/* The driver and the light executor that were left open, by what the executors leave of the cores. */
void setting_use_left(graphi_setting *setting, int cores);

/* The same setting for all (with nothing left to choose) under which executions are the same: what a policy does not
 * heed has its default. */
graphi_setting setting_canonical(const graphi_setting *setting);

/* Goes on from `hash`; the same only for settings (with nothing left to choose) under which executions are the same:
 * what a policy does not heed does not count, nor does `pin` on, which refuses to execute but changes no execution. */
uint64_t setting_hash(uint64_t hash, const graphi_setting *setting);

/* The executors of the split of `cores` that follows the one into `executors` (0: of the first), each of
 * cores / executors threads; 0 after the last (split.c). */
int setting_next_split(int cores, int executors);

/* Where threads run, and that nobody may join, as in `from`: no choice to be made, so that every setting tried has it.
 */
void setting_place(graphi_setting *setting, const graphi_decision *from);

/* The constants of policies that were left open, as plan.h says, and the most that those asked for may be. */
void setting_constants(graphi_setting *setting);

#endif
