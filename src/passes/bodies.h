/* SPDX-License-Identifier: Apache-2.0 */
/* What pass_bodies does beside the passes of each region. */
#ifndef PASSES_BODIES_H
#define PASSES_BODIES_H

#include "graph/graph.h"

/* Packs weights that products in the regions of a `vertices` node read; the graph is to be compacted afterwards. dtype:
 * of the packed form. MEMORY. */
graphi_status bodies_pack(graphi_graph *graph, int32_t node, graphi_dtype dtype);

#endif
