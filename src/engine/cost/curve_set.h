/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a set of known curves (graphi/curves.h), for those who measure: what is known is taken, the rest is
 * added. */
#ifndef ENGINE_CURVE_SET_H
#define ENGINE_CURVE_SET_H

#include "base/hash.h"
#include "graphi/curves.h"
#include "schedule/schedule.h"

/* Of classes: what their kernels are called by, and whether the system places the threads that run them. */
struct class_keys {
    const uint64_t *key;
    int32_t count;
    bool unpinned;
};

/* graphi/curves.h */
static inline uint64_t class_key_at(struct class_keys keys, int32_t class)
{
    return hash_u64(keys.key[class], keys.unpinned);
}

/* REFUSED when the set (NULL: fits) is for another machine. */
graphi_status curve_set_fits(const graphi_curves *known, const graphi_machine *machine);

/* As curve_set_fits; INVALID also where it has nothing by `model` (NULL: nothing more is asked). */
graphi_status curve_set_check(const graphi_curves *known, const graphi_machine *machine, const char *model);

/* How many curves the set holds. */
int64_t curve_set_count(const graphi_curves *known);

/* The class's curve by the model (NULL: measured) in place of `curve`; false where the set has none. */
bool curve_set_replace(const graphi_curves *known, uint64_t key, const char *model, struct cost_curve *curve);

/* It has the class's measured curve, and nobody else used the cores meanwhile. */
bool curve_set_is_sound(const graphi_curves *known, uint64_t key);

/* Where its curves come from, for people. */
const char *curve_set_name(const graphi_curves *known);

/* Of each of the classes that was measured by a climb at this interval (0: every width), or at every width, the
 * curve, its source STORED; others keep what curves[] has. Gives how many of them need not be measured again; known
 * NULL: none. */
int32_t curve_set_take(const graphi_curves *known, struct class_keys classes, int interval, struct cost_curve *curves);

/* Adds the curves among these whose source is MEASURED. disturbed: others used the cores meanwhile. */
graphi_status curve_set_learn(graphi_curves *known, struct class_keys classes, const struct cost_curve *curves,
                              bool disturbed);

#endif
