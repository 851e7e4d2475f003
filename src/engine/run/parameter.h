/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a state: parameters in memory that never moves while there are runs, each with a version that counts its
 * changes, and forms of parameters, packed or otherwise computed from them, with the version they were made from. One
 * writer at a time; forms are brought up to date under the mutex, so several readers may run side by side.
 *
 * A parameter that nobody holds is in memory once: where a current form has all of its bits (struct kernel's undo), the
 * form alone stays, and the pages of the parameter itself go back to the system. Whoever reads or writes the bytes at
 * `data` holds the parameter meanwhile: runs whose tasks do, a form being packed, a copy out. */
#ifndef ENGINE_PARAMETER_H
#define ENGINE_PARAMETER_H

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
    bool adopted;             /* `data` is the caller's, who alone may write it */
    void *own;                /* the state's memory for it, without pages while `data` is the caller's */
};

/* Memory of the forms that one run found missing, large enough for huge pages though each form may not be. */
struct form_block {
    void *data;
    size_t bytes;
    int forms; /* that lie in it; with the last of them it goes */
};

/* What follows from parameters: packed ones, or results of operations on them. `key` says of which and how made (hash
 * of names, operations and layout). Runs that read a form share it; one that no run reads stays until another run
 * finds forms missing. */
struct packed_form {
    uint64_t key;
    struct parameter **source; /* found by the first */
    int sources;
    struct kernel undo;        /* writes sources back; zeroed: it cannot */
    struct kernel_array *in;   /* its arguments, as `source`; no data but while it runs */
    struct form_block *block;
    void *data;
    size_t bytes;
    uint64_t version; /* of the sources when made, their sum; 0: never, or its pages are given back */
    int users;        /* runs that read it */
    int keepers;      /* of them, those whose tasks do: without one, it is there only while others are made of it */
    bool gone;        /* its pages are given back */
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
    struct arena arrays; /* content of parameters */
    int runs;            /* over it: while there are some, parameters stay where they are */
    uint64_t seed, step;
    /* Rises with every change of a parameter, from 1 on: where it is as before, nothing made of parameters is stale. */
    atomic_uint_least64_t epoch;
    /* Guards `arrays`, `fed`, `packed` and their indices, `runs`, who holds a parameter and whether its content is
     * away, that content while nobody holds it, and forms while they are made. */
    pthread_mutex_t mutex;
};

/* The mutex; fork() waits for those who have it. A thread has at most one, and does not fork meanwhile. */
void state_lock(const graphi_state *state);
void state_unlock(const graphi_state *state);

/* After versions have risen. */
void state_changed(graphi_state *state);

/* The bytes at `data` are there from the first hold to the last drop. Any thread. */
void state_hold(const graphi_state *state, struct parameter *parameter);
void state_drop(const graphi_state *state, struct parameter *parameter);

/* Runs over the state come and go. */
void state_count_runs(graphi_state *state, int by);

/* --- under the mutex --- */

void parameter_hold(struct parameter *parameter);
void parameter_drop(struct parameter *parameter);

/* Writes the content of one that is away, from its home, into its own memory. */
void parameter_bring_back(struct parameter *parameter);

/* Is the form older than its sources? Their version: the sum of theirs. */
bool form_is_stale(const struct packed_form *form);
uint64_t form_sources_version(const struct packed_form *form);

/* Gives the pages of an array that is large enough for it back to the system; false: it stays as it is. mem_renew
 * before it is written again. */
bool memory_give_back(void *data, size_t bytes);

#endif
