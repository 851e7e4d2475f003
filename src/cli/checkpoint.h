/* SPDX-License-Identifier: Apache-2.0 */
/* --checkpoint: the state of a network between two runs of the command. What is wrong is reported. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "cli/training.h"

/* Loads --checkpoint into the job's state; data and mean are set to what it says. INVALID if it is of another network,
 * other data or another seed. */
graphi_status checkpoint_load(const struct job *job, graphi_data *data, struct losses *mean);

/* Loads it for evaluation, wherever it stands. INVALID if it is of another network or the numbers of its data meant
 * something else. */
graphi_status checkpoint_load_parameters(const struct job *job, const graphi_data *data);

/* Writes --checkpoint, if there is one, and names it in the result. */
graphi_status checkpoint_save(const struct job *job, const graphi_data *data, const struct losses *mean,
                              struct result *result);

#endif
