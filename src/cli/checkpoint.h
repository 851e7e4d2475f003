/* SPDX-License-Identifier: Apache-2.0 */
/* --checkpoint: the state of a network between two runs of the command. What is wrong is reported. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "cli/training.h"

/* Remembers which file is there now (path NULL: none is asked for), so that checkpoint_save() sees who else writes it.
 */
void checkpoint_watch(const char *path);

/* Loads --checkpoint into the job's state; data and mean are set to what it says, and `owes` to whether the validation
 * at its step was stopped. INVALID if it is of another network, other data or another seed. */
graphi_status checkpoint_load(const struct job *job, graphi_data *data, struct losses *mean, bool *owes);

/* Loads it for evaluation, wherever it stands; a note tells where training had windows, rows or images of other sizes.
 * INVALID if it is of another network or the numbers of its data meant something else. */
graphi_status checkpoint_load_parameters(const struct job *job, const graphi_data *data, struct result *result);

/* Options of the network that were not typed become those that --checkpoint says it was trained with; task real where
 * it says none. *vocabulary: how many words, 0: not said. INVALID if it is of another network, or of other sizes, than
 * were typed. */
graphi_status checkpoint_options(struct options *options, const char *name, int64_t *vocabulary);

/* Loads --checkpoint, if there is one, into the state of a network to be run; a note says where its weights are from.
 */
graphi_status checkpoint_weights(const struct job *job, struct result *result);

/* Writes --checkpoint, if there is one, and names it in the result. Another training that writes the same file is told
 * of, once, where its file is still there when the next one is to be written: the last one stays. */
graphi_status checkpoint_save(const struct job *job, const graphi_data *data, const struct losses *mean, bool owes,
                              struct result *result);

#endif
