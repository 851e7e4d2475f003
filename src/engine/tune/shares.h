/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of operations timed on one core. */
#ifndef ENGINE_SHARES_H
#define ENGINE_SHARES_H

#include "engine/run/run.h"
#include "engine/tune/patience.h"

/* Time of every share of every class on this thread, for widths that no core is there for: ns of class k, phase after
 * phase, at share_ns[first[k] ..]. Both arrays are the caller's to free. */
struct share_times {
    int32_t *first, *task; /* one a class: index into share_ns; a task of the class */
    double *share_ns;
    double *serial_ns;     /* one a class: whole operations, without the clock's cost per share */
};
graphi_status measure_shares(graphi_run *run, const struct patience *patience, struct share_times *out);
void share_times_free(struct share_times *times);

#endif
