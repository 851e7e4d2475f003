/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a state: parameters in memory that never moves, each with a version that counts its changes, and packed forms
 * of parameters with the version they were packed from. One writer at a time; packed forms are brought up to date under
 * the mutex, so several readers may run side by side. */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "base/arena.h"
#include "base/array.h"
#include "graph/graph.h"
#include "graphi/state.h"

#include <pthread.h>

struct parameter {
    char *name;
    struct value_type type;
    void *data;
    size_t bytes;
    uint64_t version; /* starts at 1 */
};

/* Another form of a parameter. `key` says of which and how made (hash of name, operations and layout). */
struct packed_form {
    uint64_t key;
    struct parameter *source;
    void *data;
    size_t bytes;
    uint64_t version; /* of the source when packed, or the sum over several sources; 0: never */
};

/* What the last run over the state was fed: tuning measures with it. */
struct fed_input {
    char *name;
    void *data;
    size_t bytes;
};

struct graphi_state {
    ARRAY(struct parameter *) parameters; /* sorted by name */
    ARRAY(struct packed_form *) packed;
    ARRAY(struct fed_input) fed;
    struct arena arrays; /* content of parameters and packed forms */
    uint64_t seed, step;
    pthread_mutex_t mutex; /* guards `arrays`, `fed`, `packed` and the content of packed forms while they are made */
};

struct parameter *state_parameter(const graphi_state *state, const char *name); /* NULL: none */

/* Room for arrays of so many bytes in one block, which is large enough for huge pages though each array may not be.
 * MEMORY. */
graphi_status state_reserve(graphi_state *state, size_t bytes);

/* Bytes to reserve for a packed form: 0 where it is there. Any thread. */
size_t state_packed_missing(graphi_state *state, uint64_t key, const struct parameter *source, size_t bytes);

/* Finds or makes the packed form; it stays the state's. MEMORY. Any thread. */
graphi_status state_packed(graphi_state *state, uint64_t key, struct parameter *source, size_t bytes,
                           struct packed_form **out);

/* Keeps a copy of an input. A failed allocation is no error: tuning then uses random numbers. Any thread. */
void state_keep_fed(graphi_state *state, const char *name, const void *data, size_t bytes);
const struct fed_input *state_fed(const graphi_state *state,
                                  const char *name); /* NULL: none; the writer's thread only */

/* Writes the initial content of a parameter: depends on the seed and the name alone. */
void initialize_parameter(uint64_t seed, const struct value *value, void *data);

#endif
