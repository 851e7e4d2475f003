/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that stand (graphi/lease.h), as executions use them. */
#ifndef MACHINE_STANDING_H
#define MACHINE_STANDING_H

#include "graphi/lease.h"
#include "machine/workers.h"

/* The lease that the calling thread has entered last; NULL: none. */
graphi_lease *standing_entered(void);

/* The calling thread has the lease to itself until standing_drop; may be nested. INVALID: as graphi_lease_enter. */
graphi_status standing_claim(graphi_lease *lease);
void standing_drop(graphi_lease *lease);

/* What an execution that asks for such a lease of the machine gets instead: `view`, of `workers` of the lease's
 * threads, good until the next call. The calling thread, which has claimed the lease, enters it. Costs no more than
 * comparisons where it asks for the same as the last one. Nothing is to be released. Errors: INVALID, fewer threads
 * than that, or another kind of machine; MEMORY, UNSUPPORTED: no thread to be had. */
graphi_status standing_use(graphi_lease *lease, const graphi_machine *machine, const struct lease_options *options,
                           int workers, struct lease *view);

#endif
