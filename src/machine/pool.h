/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the process: created when first needed, kept for ever, asleep between jobs. Taking, returning and
 * forgetting happen with the registry's mutex held (workers.c); sending and waiting by whoever has taken the worker. */
#ifndef MACHINE_POOL_H
#define MACHINE_POOL_H

#include "graphi/types.h"

struct cpu_mask;
struct worker;

/* A thread pinned to hardware thread `os_index`, or (-1) confined to `mask` only. Errors: MEMORY, UNSUPPORTED. A
 * refused pinning is none: the worker is then confined to `mask`, and *refused says why (errno; 0: not refused). */
graphi_status pool_take(int os_index, const struct cpu_mask *mask, struct worker **out, int *refused);
void pool_return(struct worker *worker);

/* After fork(), in the child: no thread exists any more. */
void pool_forget(void);

/* Whether the calling thread is one of these. */
bool pool_is_worker(void);

/* Runs body(context, index) on the worker; pool_wait returns when it has returned. One message at a time. */
void pool_send(struct worker *worker, void (*body)(void *context, int index), void *context, int index, int spin_us);
void pool_wait(struct worker *worker, int spin_us);

#endif
