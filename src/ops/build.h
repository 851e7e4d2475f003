/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes appended by gradient rules and passes, briefly. */
#ifndef OPS_BUILD_H
#define OPS_BUILD_H

#include "graph/op.h"

graphi_value build1(graphi_graph *graph, const char *kind, graphi_value a);
graphi_value build2(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b);
graphi_value build3(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b, graphi_value c);
graphi_value build_scalar(graphi_graph *graph, float value);

/* `gradient` summed over what broadcasting repeated, so that it has the type of `like`. */
graphi_value sum_like(graphi_graph *graph, graphi_value gradient, graphi_value like);

/* `value` repeated to the type of `like`. */
graphi_value broadcast_like(graphi_graph *graph, graphi_value value, graphi_value like);

#endif
