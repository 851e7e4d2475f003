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

/* What --checkpoint says of the form that its parameters fit: task real (unless the options say another), and unless
 * `model` has them, the image's side and the numbers of classes and words. INVALID if it is of another network, or
 * older than these. */
graphi_status checkpoint_model(const struct options *options, const char *name, graphi_model_options *model);

/* --image as --checkpoint says it, unless it was typed or the file says none. INVALID if it is of another network; a
 * file that cannot be read is left to those who load it. */
graphi_status checkpoint_image(struct options *options, const char *name);

/* Loads --checkpoint, if there is one, into the state of a network to be run; a note says where its weights are from.
 */
graphi_status checkpoint_weights(const struct job *job, struct result *result);

/* Writes --checkpoint, if there is one, and names it in the result. */
graphi_status checkpoint_save(const struct job *job, const graphi_data *data, const struct losses *mean,
                              struct result *result);

#endif
