/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values of parameters. */
#ifndef ENGINE_INITIALIZE_H
#define ENGINE_INITIALIZE_H

#include "graph/graph.h"

/* Writes the initial content of a parameter: depends on the seed and the name alone. */
void initialize_parameter(uint64_t seed, const struct value *value, void *data);

#endif
