/* SPDX-License-Identifier: Apache-2.0 */
/* What executions and tuning ask of what a run is fed. */
#ifndef ENGINE_FEED_H
#define ENGINE_FEED_H

#include "engine/run/run.h"

/* Bytes of a value at the sizes now set. */
size_t run_actual(const graphi_run *run, const struct value_type *type);

/* Outputs that are bound and not written in place, after an execution that succeeded. */
void feed_copy_out(const graphi_run *run);

#endif
