/* SPDX-License-Identifier: Apache-2.0 */
/* --log of a training: rows of CSV, which a training that goes on goes on with. What is wrong is reported. */
#ifndef CLI_TRAINING_LOG_H
#define CLI_TRAINING_LOG_H

#include "tool/options.h"
#include "tool/output.h"

/* What stands at `path` (NULL: nowhere) may be the log of a training before, nothing else. Errors: INVALID. */
graphi_status training_log_check(const char *path);

/* Opens --log: anew, beginning with a line of these columns, or with --resume to go on behind the lines up to `step` (a
 * killed run has written more than its checkpoint knows; IO where they cannot be cut off, INVALID where the file has
 * other columns). `last`: the step of the last of these lines, untouched in a new log. Without --log *log stays as it
 * is. The caller closes it. */
graphi_status training_log_open(const struct options *options, const char *columns, uint64_t step,
                                struct output_log *log, uint64_t *last);

#endif
