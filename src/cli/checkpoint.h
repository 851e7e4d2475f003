/* SPDX-License-Identifier: Apache-2.0 */
/* --checkpoint as the commands read it. What is wrong is reported. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "cli/samples.h"
#include "tool/job.h"

/* --checkpoint, the caller's (graphi_checkpoint_close). */
graphi_status checkpoint_open(const struct options *options, graphi_checkpoint **out);

/* Options of the network that were not typed become those that the file says it was trained with; task real where it
 * says none. INVALID if it is of another network, or of other sizes, than were typed. */
graphi_status checkpoint_complete(const graphi_checkpoint *file, const char *name, struct options *options);

/* The same of --checkpoint. *vocabulary: how many words, 0: not said. */
graphi_status checkpoint_options(struct options *options, const char *name, int64_t *vocabulary);

/* Loads it for evaluation, wherever it stands; a note tells where training had windows, rows or images of other sizes.
 * INVALID if it is of another network or the numbers of its data meant something else. */
graphi_status checkpoint_load_parameters(const struct job *job, const struct samples *data, struct result *result);

/* Loads --checkpoint, if there is one, into the state of a network to be run; a note says where its weights are from.
 */
graphi_status checkpoint_weights(const struct job *job, struct result *result);

#endif
