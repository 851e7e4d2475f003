/* SPDX-License-Identifier: Apache-2.0 */
/* Where inputs and outputs of a run lie: in its own block, or in memory that the caller has bound. Lists tell which
 * arguments of kernels follow a port or a symbol, so that neither binding nor setting a size looks at all of them. Made
 * with the run, shared by the runs beside it; one thread. */
#ifndef ENGINE_BINDINGS_H
#define ENGINE_BINDINGS_H

#include "engine/compile/plan.h"

struct bound_port {
    unsigned char *memory; /* the caller's; NULL: none is bound */
    size_t bytes;
    bool placed; /* results are written there; else an output is copied there after an execution */
};

struct bindings {
    unsigned char **base;   /* of each buffer, where a port's memory stands for it; NULL: its own place */
    struct bound_port *port; /* inputs, then outputs */
    int32_t *port_begin, *reads; /* arguments that lie in the buffer of a port, but for outputs that share theirs */
    int32_t *symbol_begin, *follows; /* arguments whose rows follow a symbol */
    int32_t *list;           /* the memory of the four */
};

/* Errors: MEMORY, to be freed all the same. */
graphi_status bindings_create(const struct compiled *compiled, struct bindings *out);
void bindings_free(struct bindings *bindings);

#endif
