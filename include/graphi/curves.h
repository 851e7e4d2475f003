/* SPDX-License-Identifier: Apache-2.0 */
/* A companion of graphi/plan.h: cost curves that plans share. A curve is the time of a class of operations (kind,
 * attributes, shapes, dtypes, compile options that alter its kernel, instruction set, whether threads are pinned) at
 * some widths in both affinity modes; whatever network the class is met in, its key is the same (graphi_class.key). A
 * set of them belongs to one machine and one version of the library, and is kept in a file, so that what was measured
 * once, undisturbed, is not again (docs/curves.md has the format).
 *
 * Per class a set holds the measured curve and what any number of models predict, told apart by the models' names: hill
 * climbing at another interval, a regression. graphi_plan_with makes the plan that knows them. A set is used by one
 * thread at a time; the machine must outlive it. */
#ifndef GRAPHI_CURVES_H
#define GRAPHI_CURVES_H

#include "graphi/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The set kept in `path`; an empty one where there is no such file, or path is NULL. *out is the caller's. Errors, *out
 * untouched: INVALID, naming the key that is wrong; REFUSED, kept for another machine or by another version, naming
 * both; IO; MEMORY. */
GRAPHI_API graphi_status graphi_curves_open(const graphi_machine *machine, const char *path, graphi_curves **out);

/* The same after that was INVALID or REFUSED: the file is emptied while the lock of graphi_curves_save is held, unless
 * somebody else has put a sound one there meanwhile. Errors, *out untouched: INVALID where path is NULL; IO; MEMORY. */
GRAPHI_API graphi_status graphi_curves_renew(const graphi_machine *machine, const char *path, graphi_curves **out);

/* Adds what `model` (1 to 31 printable characters of ASCII) predicts for a class, in place of what it predicted before.
 * Errors, the set unchanged: INVALID for another name, or samples that are no curve: widths must ascend from 1, times
 * be at least 1 ns (0: not known; not at width 1); MEMORY. */
GRAPHI_API graphi_status graphi_curves_add(graphi_curves *curves, uint64_t class_key, const char *model,
                                           const graphi_climb *samples);

/* Writes what was added or measured since opening into the file, beside what others put there meanwhile: a lock beside
 * the file (PATH.lock; of what a symbolic link names) keeps two writers apart, and readers see the old file or the new
 * one. Nothing to write, or no path: OK. Errors: IO, also when the lock is not free within a second; as
 * graphi_curves_open. */
GRAPHI_API graphi_status graphi_curves_save(graphi_curves *curves);

/* Saves nothing. NULL is accepted. */
GRAPHI_API void graphi_curves_close(graphi_curves *curves);

#ifdef __cplusplus
}
#endif
#endif
