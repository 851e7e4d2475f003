/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes made again in the place of old ones. */
#ifndef PASSES_SUCCESSOR_H
#define PASSES_SUCCESSOR_H

#include "passes/edit.h"

/* A node made again with other inputs or attributes, of inputs `extra` more (successor.c). Between begin and place they
 * may be changed; place appends it, lets `map` lead from the old outputs to the new ones, and frees. */
struct successor {
    int32_t id;       /* of the old node */
    struct node node; /* the old one */
    graphi_value *input;
    graphi_attribute *attribute;
};
graphi_status successor_begin(const graphi_graph *graph, int32_t id, int extra, struct successor *out);
graphi_attribute *successor_attribute(struct successor *successor,
                                      const char *name); /* one that the kind has; else NULL */
graphi_status successor_place(graphi_graph *graph, struct successor *successor, struct value_map *map);

#endif
