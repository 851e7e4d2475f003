/* SPDX-License-Identifier: Apache-2.0 */
/* --input NAME=FILE.npy and --output DIR of `graphi run`. */
#ifndef CLI_ARRAYS_H
#define CLI_ARRAYS_H

#include "cli/job.h"

/* A note where some inputs are given, or trained weights, and others are not. */
graphi_status arrays_feed(const struct job *job, struct result *result);
graphi_status arrays_write(const struct job *job, struct result *result);

#endif
