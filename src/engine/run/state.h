/* SPDX-License-Identifier: Apache-2.0 */
/* A state as others of the engine see it: its parameters by name, how they may be changed, what was fed last. What is
 * inside is in engine/run/parameter.h. */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "engine/run/parameter.h"

struct parameter *state_parameter(const graphi_state *state, const char *name); /* NULL: none */

/* INVALID where the parameter is in adopted memory that runs read, so that it cannot be changed. Under the mutex, or
 * while nobody else uses the state. */
graphi_status state_settable(const graphi_state *state, const struct parameter *parameter);

/* A copy of adopted content in memory of the state, to be updated. INVALID as state_settable. */
graphi_status state_own(graphi_state *state, struct parameter *parameter);

/* Keeps a copy of an input. A failed allocation is no error: tuning then uses random numbers. Any thread. */
void state_keep_fed(graphi_state *state, const char *name, const void *data, size_t bytes);

/* Copies it out; false: none of so many bytes was fed. Any thread. */
bool state_take_fed(const graphi_state *state, const char *name, void *data, size_t bytes);

#endif
