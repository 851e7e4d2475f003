/* SPDX-License-Identifier: Apache-2.0 */
/* What training was asked for beside its network, which a checkpoint keeps, so that --resume needs no word again. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "tool/job.h"

enum { RESUME_BYTES = 4096 };

/* The strings that a checkpoint has of it beside those that the library's trainer writes, as the options were, or would
 * be, typed. Gives how many; they live until the next call. */
int resume_strings(const struct job *job, const char *const **keys, const char *const **values);

/* With --resume, otherwise nothing: the network and the options that were not typed become what the checkpoint
 * says; without --checkpoint that is the subject of train, where this names no network. Texts live as long as the
 * process. Reported: INVALID where the file says what no option takes, is of another network than was typed, or of none
 * of this build; IO where it cannot be read. */
graphi_status resume_options(struct options *options);

/* Where no network was typed beside --checkpoint, the one that the file says. Reported: what reading it finds; INVALID
 * where it is of none of this build. */
graphi_status resume_network(struct options *options);

/* Of eval: --data, where it was not typed, becomes the path that --checkpoint says, if it can be read and says one.
 * Texts live as long as the process. Reported: INVALID where the file is of another network. */
graphi_status resume_data(struct options *options);

/* Before the data are opened, after what is wrong with the words was told. Reported: IO where --data is what the
 * checkpoint says, and is no longer there; INVALID where training goes on and it says none. */
graphi_status resume_check_data(const struct options *options);

/* After checkpoint_load, notes: what makes other bits than before the checkpoint; that no step is left to be done,
 * where no validation is owed. */
void resume_note(const struct job *job, uint64_t step, uint64_t last, bool owes, struct result *result);

#endif
