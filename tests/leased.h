/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of leases share: machines, a folder for the locks of their cores, and leases that must be had. */
#ifndef TESTS_LEASED_H
#define TESTS_LEASED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "machine/private.h"
#include "machine/workers.h"
#include "folder.h"

#if defined(__SANITIZE_THREAD__)
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0"; } /* children here do create threads */
#endif

static struct folder folder;
static graphi_machine *here, *wide; /* at hand; eight cores that do not exist */

/* At most so many cores at hand; 0: all. */
static inline int set_up_cores(int cores)
{
    folder_make(&folder);
    if ((graphi_machine_create(cores, &here) && graphi_machine_create(1, &here)) ||
        machine_from_synthetic("core:8 pu:1", 0, 0, &wide))
        return -1;
    workers_lock_folder(folder.path); /* other tests of this host are none of ours */
    return 0;
}

static inline int tear_down(void **state)
{
    workers_lock_folder(NULL);
    graphi_machine_destroy(here);
    graphi_machine_destroy(wide);
    folder_remove(&folder);
    return 0;
}

static inline struct lease take_as(const graphi_machine *machine, struct lease_options options)
{
    struct lease lease;
    if (lease_take(machine, &options, &lease) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return lease;
}

/* Pinned where the machine is at hand. */
static inline struct lease take(const graphi_machine *machine, int workers)
{
    return take_as(machine, (struct lease_options){.workers = workers, .pin = true});
}

#endif
