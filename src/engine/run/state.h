/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a state: parameters in memory that never moves, each with a version that counts its changes, and packed forms
 * of parameters with the version they were packed from. One writer at a time; packed forms are brought up to date under
 * the mutex, so several readers may run side by side.
 *
 * A parameter that nobody holds is in memory once: where a current form has all of its bits (struct kernel's undo), the
 * form alone stays, and the pages of the parameter itself go back to the system. Whoever reads or writes the bytes at
 * `data` holds the parameter meanwhile: runs whose tasks do, a form being packed, a copy out. */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "base/arena.h"
#include "base/array.h"
#include "base/index.h"
#include "graph/graph.h"
#include "graphi/state.h"
#include "kernels/kernel.h"

#include <pthread.h>
#include <stdatomic.h>

struct parameter {
    char *name;
    struct value_type type;
    void *data;
    size_t bytes;
    uint64_t version; /* starts at 1 */
    int holders;
    struct packed_form *home; /* the last form packed that has all of its bits; NULL: none */
    bool away;                /* its content is in `home`, `data` has no pages; only while nobody holds it */
};

/* Another form of a parameter. `key` says of which and how made (hash of name, operations and layout). */
struct packed_form {
    uint64_t key;
    struct parameter **source; /* found by the first */
    int sources;
    struct kernel undo;        /* writes sources back; zeroed: it cannot */
    struct kernel_array *in;   /* its arguments, as `source`; no data but while it runs */
    void *data;
    size_t bytes;
    uint64_t version; /* of the sources when packed, their sum; 0: never */
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
    struct index packed_keys, fed_names;
    struct arena arrays; /* content of parameters and packed forms */
    uint64_t seed, step;
    /* Rises with every change of a parameter, from 1 on: where it is as before, nothing made of parameters is stale. */
    atomic_uint_least64_t epoch;
    /* Guards `arrays`, `fed`, `packed` and their indices, who holds a parameter and whether its content is away, that
     * content while nobody holds it, and packed forms while they are made. */
    pthread_mutex_t mutex;
};

/* The mutex; fork() waits for those who have it. A thread has at most one, and does not fork meanwhile. */
void state_lock(const graphi_state *state);
void state_unlock(const graphi_state *state);

/* After versions have risen. */
void state_changed(graphi_state *state);

struct parameter *state_parameter(const graphi_state *state, const char *name); /* NULL: none */

/* Room for arrays of so many bytes in one block, which is large enough for huge pages though each array may not be.
 * MEMORY. */
graphi_status state_reserve(graphi_state *state, size_t bytes);

/* The bytes at `data` are there from the first hold to the last drop. Any thread. */
void state_hold(const graphi_state *state, struct parameter *parameter);
void state_drop(const graphi_state *state, struct parameter *parameter);

/* A form to find or make. */
struct form_wanted {
    uint64_t key;
    struct parameter **source;
    int sources;
    size_t bytes;
    const struct kernel *kernel; /* packs whole sources; NULL: parts of them, or what was made of them */
};

/* Bytes to reserve for a packed form: 0 where it is there. Any thread. */
size_t state_packed_missing(graphi_state *state, const struct form_wanted *wanted);

/* Finds or makes the packed form; it stays the state's. MEMORY. Any thread. */
graphi_status state_packed(graphi_state *state, const struct form_wanted *wanted, struct packed_form **out);

/* Is the form older than its sources? If so it is packed between begin and end. Under the mutex. */
bool form_is_stale(const struct packed_form *form);
void form_begin(struct packed_form *form);
void form_end(struct packed_form *form, bool packed);

/* Keeps a copy of an input. A failed allocation is no error: tuning then uses random numbers. Any thread. */
void state_keep_fed(graphi_state *state, const char *name, const void *data, size_t bytes);

/* Copies it out; false: none of so many bytes was fed. Any thread. */
bool state_take_fed(const graphi_state *state, const char *name, void *data, size_t bytes);

#endif
