/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of a model as parameters of one state, which all plans of a session share: a constant that several shapes
 * and blocks read is there once, in each order of dimensions that a lowering asks for. A parameter is named by the
 * number of its value, whose content is the same for all shapes. Executions read the state under the lock; who adds to
 * it waits for them. */
#ifndef FLOW_WEIGHTS_H
#define FLOW_WEIGHTS_H

#include "base/array.h"
#include "base/index.h"
#include "graphi/state.h"
#include "value/value.h"

#include <pthread.h>

struct weights {
    pthread_rwlock_t lock; /* read: executions and runs of the state; write: additions */
    graphi_state *state;   /* NULL before the first plan */
    ARRAY(char *) names;   /* of what is in the state */
    struct index index;    /* places in them */
};

/* A parameter that a graph has, and where its content comes from. */
struct weight {
    char name[80];
    graphi_tensor *from;
    int64_t perm[VALUE_RANK];
    bool moved; /* dimensions of `from` in the order perm */
};

struct weights_wanted {
    ARRAY(struct weight) list;
};

void weights_init(struct weights *weights);
void weights_fini(struct weights *weights);

/* Adds what the graph has and the state lacks. Waits for executions where there is anything. Errors: MEMORY. */
graphi_status weights_add(struct weights *weights, const graphi_graph *graph, const struct weights_wanted *wanted);

/* The parameter of that content in the graph, once for each name. perm NULL: as it is. GRAPHI_NONE: no memory, or an
 * error of the graph. */
graphi_value weights_parameter(struct weights_wanted *wanted, graphi_graph *graph, const char *name,
                               graphi_tensor *from, const int64_t *perm);
void weights_wanted_free(struct weights_wanted *wanted);

/* The graph's type of an element; false: it has none. */
bool element_dtype(graphi_element element, graphi_dtype *dtype);
/* Whether values of the type are float32 inside a graph. */
static inline bool element_is_carried(graphi_element element)
{
    return element == T_F32 || element == T_BOOL || element == T_F16 || element == T_BF16;
}
/* A carried value as float32 numbers, others as they are; the caller's. */
graphi_status element_as_carried(const graphi_tensor *from, graphi_tensor **out);

#endif
