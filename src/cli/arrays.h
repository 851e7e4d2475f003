/* SPDX-License-Identifier: Apache-2.0 */
/* --input NAME=FILE.npy and --output DIR of `graphi run`. */
#ifndef CLI_ARRAYS_H
#define CLI_ARRAYS_H

#include "tool/job.h"

/* Refuses what is fed from files where nothing is fed. */
graphi_status arrays_refuse(const struct options *options);

/* Before anything is loaded: words that are no --input, files that cannot be read. Reported.
 */
graphi_status arrays_check(const struct options *options);

/* Notes where some inputs are given, or trained weights, and others are not; where what was trained is fed bytes. */
graphi_status arrays_feed(const struct job *job, struct result *result);
graphi_status arrays_write(const struct job *job, struct result *result);

#endif
