/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that leave no trace. */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "engine/run/run.h"

/* A run that leaves no trace: inputs are those that `fed`, usually the same state, was fed last, or random ones, and
 * the parameters and the step counter are as before after trial_restore and trial_close. */
struct trial {
    graphi_run *run;
    struct schedule *own;  /* the run's, while others are adopted */
    const graphi_plan *plan;
    unsigned char **saved; /* per plan parameter that executions change */
    uint64_t step;
};
graphi_status trial_open(const graphi_plan *plan, graphi_state *state, const graphi_state *fed, struct trial *trial);
void trial_restore(const struct trial *trial);
void trial_close(struct trial *trial); /* accepts a zeroed one, and one whose opening failed */

#endif
