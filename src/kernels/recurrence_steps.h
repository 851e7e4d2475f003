/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows a step of a recurrence has, and what of the step before they go on from. Pure integer arithmetic over
 * offsets; every member of a team computes it for itself. */
#ifndef KERNELS_RECURRENCE_STEPS_H
#define KERNELS_RECURRENCE_STEPS_H

#include "base/number.h"

#include <stdbool.h>
#include <stdint.h>

struct sequence_steps {
    const int32_t *offsets; /* NULL: every step has `batch` rows */
    int64_t steps;          /* that have rows */
    int64_t batch;
};

static inline int64_t steps_offset(const struct sequence_steps *s, int64_t t)
{
    return s->offsets ? s->offsets[t] : t * s->batch;
}

/* Rows of step t; 0 outside of the sequence. */
static inline int64_t steps_rows(const struct sequence_steps *s, int64_t t)
{
    return t < 0 || t >= s->steps ? 0 : s->offsets ? s->offsets[t + 1] - s->offsets[t] : s->batch;
}

/* of all `bound` steps: those before the first empty one. */
static inline struct sequence_steps steps_of(const int32_t *offsets, int64_t bound, int64_t rows, int64_t batch)
{
    struct sequence_steps s = {offsets, batch ? rows / batch : 0, batch};
    if (!offsets)
        return s;
    int64_t low = 0, high = bound;
    while (low < high) { /* the first t from which on no row comes */
        const int64_t middle = (low + high) / 2;
        if (offsets[middle] < offsets[bound])
            low = middle + 1;
        else
            high = middle;
    }
    s.steps = low;
    return s;
}

#endif
