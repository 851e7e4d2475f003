/* SPDX-License-Identifier: Apache-2.0 */
/* Where every value of a graph that is compiled lies; a step of compile.c. */
#ifndef ENGINE_LAYOUT_H
#define ENGINE_LAYOUT_H

#include "engine/compile/ancestors.h"
#include "engine/compile/plan.h"

enum role { ROLE_TASK, ROLE_NONE /* a view, placed parts, an assignment that its producer performs */, ROLE_PREPARED };

struct bind_call;

struct lying { /* what lies in a buffer */
    int32_t first;       /* its value that was placed last, -1 */
    int32_t overwritten; /* last node that took it over in place, -1 */
    int32_t last_reader; /* of all its values, -1 */
};

struct layout {
    struct compiled *compiled;
    uint8_t *role;                /* per node */
    bool *dense;                  /* per value: must have a dense place of its own (a kernel refused the strided one) */
    bool no_elision;              /* assignments are copies (their early writing would make a cycle) */
    bool cycle;                   /* which was found: early writing of a parameter met a late reader */
    bool *output;                 /* per value: an output of the graph */
    int32_t *users_begin, *users; /* of values */
    int32_t *refuses;             /* per value: the reader that takes no strided input, -1: none, -2: several */
    int32_t *part_of;             /* per value: the node last seen to have it as a part, -1 */
    bool *copied;                 /* per node: a concatenation that too many would wait for were it none */
    int32_t *next;                /* value after this one in the same buffer, -1 */
    ARRAY(struct lying) lying;    /* per buffer */
    struct ancestors *ancestors;  /* of nodes */
};

/* Most inputs or outputs a node has; at least 1. */
size_t graph_widest(const graphi_graph *graph);

/* Fills compiled.place, buffers and the roles; may be called again after changes to `dense` and `no_elision`. */
graphi_status layout_places(struct layout *layout);
void layout_free(struct layout *layout);
void bind_call_of(const struct layout *layout, int32_t node, struct array_desc *in, struct array_desc *out, char *where,
                  size_t size, struct bind_call *call);

#endif
