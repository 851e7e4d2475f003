/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: cores that a program takes once and executes on many times. An execution without one takes cores for as long
 * as it lasts; solvers, serving lanes and models of many plans hold theirs, so that nobody comes between two
 * executions, and none of them sets affinities or locks. */
#ifndef GRAPHI_LEASE_H
#define GRAPHI_LEASE_H

#include "graphi/plan.h"
#include "graphi/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_lease graphi_lease;

typedef struct graphi_lease_options {
    int threads;       /* cores; 0: all of the machine */
    const int *cores;  /* these ones, by their index in the machine (`threads` of them); NULL: the first free ones */
    graphi_choice pin; /* GRAPHI_DEFAULT: where other processes allow it; GRAPHI_ON: or fail; GRAPHI_OFF: nothing is */
    /* Large memory that a thread makes while it has entered (plans, states, runs): GRAPHI_DEFAULT, bound to the nodes
     * near the cores where the system has several and lets it; GRAPHI_ON: to them alone, or fail; GRAPHI_OFF: nothing
     * is bound, and lies where it is first written. */
    graphi_choice bind;
    bool high_bandwidth; /* to the high-bandwidth memory near the cores, where there is any */
    bool huge_pages;     /* in pages that the system has reserved (hugetlbfs), while there are any; else as ever */
} graphi_lease_options;

/* Takes cores of the machine, waiting for them as an execution does (docs/machine.md). The calling thread is not
 * pinned; it need not be the one that executes. options may be NULL: all cores. *out is the caller's
 * (graphi_lease_release), to be released before the machine is destroyed. Errors, *out untouched: INVALID (more
 * threads than cores, a core that the machine has not, or twice; cores that are not free where the calling thread has a
 * part in an execution, or has taken a lease of them itself, and would wait for itself); UNSUPPORTED, where a thread
 * cannot be had, or not be pinned and `pin` is GRAPHI_ON, or memory not be bound and `bind` is; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_lease_take(const graphi_machine *machine, const graphi_lease_options *options,
                                           graphi_lease **out);

/* From now on the calling thread has the first core of the lease: it is pinned there, and what it executes
 * (graphi_run_execute, sessions, trainers, tuning) runs on the lease entered last, asking for no other cores. Memory
 * that it writes first lies near that core. May be nested, with as many calls of graphi_lease_leave. Errors: INVALID,
 * another thread has entered the lease, or it was taken before fork(). One thread at a time; another one may enter
 * after it has left. */
GRAPHI_API graphi_status graphi_lease_enter(graphi_lease *lease);

/* The calling thread's affinity is as before it entered. INVALID: it has not. */
GRAPHI_API graphi_status graphi_lease_leave(graphi_lease *lease);

/* graphi_run_execute on the cores of the lease; a thread that has not entered it does so meanwhile, which costs
 * microseconds. The lease says who is pinned; the setting's executors and driver are as ever, and second hardware
 * threads are left alone. Errors, before anything ran: as graphi_run_execute; INVALID, another thread has entered the
 * lease, it has fewer threads than the run's setting, was taken before fork(), or one of lease and plan is of the
 * machine at hand and the other of a described one. */
GRAPHI_API graphi_status graphi_run_execute_on(graphi_run *run, graphi_lease *lease);

typedef struct graphi_lease_info {
    int threads;
    const int *cores; /* their indices in the machine, first that of who enters; live as long as the lease */
    bool pinned, bound; /* bound: memory made by who has entered */
    double waited_ms; /* for cores that others held, when it was taken */
    char note[336];   /* why it is not pinned, or memory not bound; "" otherwise */
} graphi_lease_info;

/* A copy; NULL in place of the lease: zeros. Not while another thread enters it. */
GRAPHI_API void graphi_lease_get_info(const graphi_lease *lease, graphi_lease_info *info);

/* Gives the cores back; the calling thread leaves it first, however often it has entered. NULL is accepted. INVALID,
 * and the lease stays: another thread has entered it. */
GRAPHI_API graphi_status graphi_lease_release(graphi_lease *lease);

#ifdef __cplusplus
}
#endif
#endif
