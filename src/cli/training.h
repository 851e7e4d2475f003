/* SPDX-License-Identifier: Apache-2.0 */
/* What all training takes and leaves: length, log, losses. What is wrong is reported. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "tool/job.h"
#include "tool/output.h"

#include <math.h>

/* Moving means of losses, what progress, results and logs show; NAN before the first step. A checkpoint keeps them, so
 * that what a resumed run shows is what one that was not stopped does. */
struct losses {
    double real, fake, generator; /* of a single loss: the first */
};
#define NO_LOSSES {NAN, NAN, NAN}
void losses_add(struct losses *mean, const struct losses *fresh);

/* Before the data are read: USAGE where --resume or --every lacks a --checkpoint, or the length is given twice; a
 * --schedule that is none, a checkpoint that cannot be read. */
graphi_status training_check(const struct options *options);

/* Notes on the training files: what of a folder was joined or left out, and where there are fewer labels than they tell
 * classes apart: one wrong byte makes 256 of 10. */
void training_note_data(struct result *result, const graphi_data_info *about);

/* Opens --log: anew, beginning with a line of these columns, or with --resume to go on behind the lines up to `step` (a
 * killed run has written more than its checkpoint knows; IO where they cannot be cut off, INVALID where the file has
 * other columns). `last`: the step of the last of these lines, untouched in a new log. Without --log *log stays as it
 * is. The caller closes it. */
graphi_status training_log(const struct options *options, const char *columns, uint64_t step, struct output_log *log,
                           uint64_t *last);

/* After the last checkpoint: the log is whole and named in the result, --explain is answered, Ctrl-C told if it left
 * any work. `owes`: the validation at `step` was stopped; `status`: how it went so far. */
graphi_status training_end(const struct job *job, const struct output_log *log, uint64_t step, uint64_t last,
                           bool owes, graphi_status status, struct result *result);

/* The last step and the learning rate's schedule: those asked for, otherwise the network's, which the options then say,
 * too. `batches`: of an epoch. */
graphi_status training_length(struct options *options, const graphi_model_info *info, int64_t batches, uint64_t *steps,
                              graphi_schedule *schedule);

#endif
