/* SPDX-License-Identifier: Apache-2.0 */
/* States: parameters, optimizer slots, running statistics, the random key and the step counter. Several plans
 * (training, evaluation, the two plans of a GAN) may share one state: parameters match by name. One writer at a time:
 * graphi_state_set, _set_step, _load and _extend, and executions with updates, while nothing else uses the state.
 * Everything else may run side by side, creating and destroying runs too; who reads a parameter may wait while the
 * first execution packs others. A child of fork() may use a state whatever other threads of the parent read, set or
 * packed meanwhile; what an execution was updating, or what was being loaded or extended, may be half done there.
 *
 * A parameter whose bits a packed form holds, and which no run reads or updates as it is, is kept in that form alone
 * after the first execution: so inference has weights in memory once. Reading it unpacks it, and creating a run that
 * needs it as it is brings it back until that run is destroyed; nobody else sees a difference. What follows from
 * parameters that a plan does not update is computed once a version of them, and shared by runs of all plans over the
 * state; it is freed when no run reads it and another one needs other such forms. */
#ifndef GRAPHI_STATE_H
#define GRAPHI_STATE_H

#include "graphi/graph.h"
#include "graphi/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates and initializes every parameter of `graph`, which may go afterwards. The values depend on `seed` and on
 * the parameters' names, shapes and initializers alone. *out is the caller's (graphi_state_destroy). Errors, *out
 * untouched: the first mistake recorded while building the graph; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_state_create(const graphi_graph *graph, uint64_t seed, graphi_state **out);

/* Adds the parameters of another graph that the state lacks. Errors: INVALID, a common name of another shape or dtype,
 * naming both, the state unchanged; the first mistake recorded while building the graph; MEMORY, some of them added. */
GRAPHI_API graphi_status graphi_state_extend(graphi_state *state, const graphi_graph *graph);

/* After its runs; while nobody uses the state. NULL is accepted. */
GRAPHI_API void graphi_state_destroy(graphi_state *state);

/* Copies a parameter out or in; `bytes` must be its exact size. INVALID naming the parameter, found and expected sizes.
 */
GRAPHI_API graphi_status graphi_state_get(const graphi_state *state, const char *name, void *data, size_t bytes);
GRAPHI_API graphi_status graphi_state_set(graphi_state *state, const char *name, const void *data, size_t bytes);

/* Takes the caller's array as the parameter's content, without a copy: a mapped file, say. It must be there, and the
 * same, until the state is destroyed or the parameter gets other content (graphi_state_set, _load, _zero, another
 * array), and what updates the parameter works on a copy, made when its run is created. Errors: as graphi_state_set;
 * INVALID for memory that is not aligned to its elements, or while there are runs of the state; and these three are
 * INVALID while there are, since runs read the array. */
GRAPHI_API graphi_status graphi_state_adopt(graphi_state *state, const char *name, const void *data, size_t bytes);

/* Sets every parameter whose name begins with `prefix` to zero: what a text carried, where it begins anew. MEMORY. */
GRAPHI_API graphi_status graphi_state_zero(graphi_state *state, const char *prefix);

/* The i-th parameter in the order of names: name, type and shape; false past the end, the results untouched. dims holds
 * GRAPHI_MAX_RANK, of which `rank` are set. The name lives as long as the state; graphi_state_extend moves places. */
GRAPHI_API bool graphi_state_at(const graphi_state *state, int i, const char **name, graphi_dtype *dtype, int *rank,
                                int64_t *dims);

/* SHA-256 over names and bytes of all parameters, 64 hexadecimal digits and a zero. */
GRAPHI_API void graphi_state_sha256(const graphi_state *state, char hex[65]);

/* The training step counter, part of the key of random numbers; runs with updates advance it. */
GRAPHI_API uint64_t graphi_state_step(const graphi_state *state);
GRAPHI_API void graphi_state_set_step(graphi_state *state, uint64_t step);

/* Safetensors file with every parameter, step and seed, and `count` further strings (position of the data ...), at
 * most 64 (INVALID). Written atomically. Errors of both: IO, MEMORY. Load: INVALID when a parameter is missing or
 * differs ("eval/...", what evaluation carries from batch to batch, may be either: it then stays as it is), or the file
 * is no such file; UNSUPPORTED when a parameter has an element type there that types.h has not. The state is then
 * unchanged. What no parameter is named like is left, whatever its type. `extra` (may be NULL) is called after all was
 * loaded, from this thread, once for every string of the file: the further ones, and graphi.version, graphi.step and
 * graphi.seed, which were loaded already. Its texts go when it returns. state NULL: `extra` alone is called, for who
 * makes the network that the strings tell of. */
GRAPHI_API graphi_status graphi_state_save(const graphi_state *state, const char *path, int count,
                                           const char *const *keys, const char *const *values);
GRAPHI_API graphi_status graphi_state_load(graphi_state *state, const char *path,
                                           void (*extra)(void *context, const char *key, const char *value),
                                           void *context);

#ifdef __cplusplus
}
#endif
#endif
