/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph is fed and what can be fetched from it: names, types and shapes, as text and as JSON. */
#ifndef CLI_PORTS_H
#define CLI_PORTS_H

#include "tool/result.h"

/* "feed images float32[64,32,32,3]", a line each, and "fetch ..." likewise. */
void ports_print(const graphi_graph *graph, FILE *out);

/* The inputs in one line, cut off at `size`: "images float32[64,32,32,3], labels int32[64]". */
void ports_inputs(const graphi_graph *graph, char *text, size_t size);

/* [{"name", "dtype", "shape": []}] of all of a kind. The caller's. */
json_t *ports_json(const graphi_graph *graph, graphi_port_kind kind);

#endif
