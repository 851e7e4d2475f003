/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: one pinned thread a core, one registry for the whole process. A run leases workers, so two runs never share
 * a core unnoticed (but for one thread in array order, engine/run/run.h); the calling thread joins as worker 0 of its
 * lease (pinned for the time, affinity restored afterwards). A lease of one worker takes 4 to 5 us, most of it two
 * calls that set the caller's mask; unpinned 1 to 2 (one run, loaded machine).
 *
 * A worker spins on its mailbox (one cache line) during a run; between runs, and after a spin bounded in time, it parks
 * on a futex, so an idle process uses no CPU. After fork() the child's registry is empty and threads are created anew
 * on the next lease. */
#ifndef MACHINE_WORKERS_H
#define MACHINE_WORKERS_H

#include "machine/machine.h"

struct lease_options {
    int workers;          /* including the caller; 1 .. machine cores (and siblings, if asked for) */
    const int *cores;     /* `workers` of the machine's cores, by index, and no others; NULL: any */
    bool standing;        /* outlives executions: nobody's cores are kept for who waits for it (turns.h) */
    int groups, width;    /* the first of them, each with level-2 caches of its own if it may be; 0: as they come */
    bool siblings;        /* hardware-thread siblings may be workers too, after all cores */
    bool caller_extra; /* dedicated driver: the caller is not worker 0 but a further thread (pinned to a core of its own
                          when there is one left, otherwise sharing the last core, yielding between polls) */
    bool pin;             /* false: leave placement to the operating system */
    int spin_us;          /* spin before parking; 0: the default, 50 */
    struct lease_state **room; /* memory of the leases of one caller, one at a time; it grows to what they need, so that
                                  later ones allocate nothing; mem_free by the caller. NULL: each lease its own */
};

/* A lease of workers 0 .. count-1. Private to the run that holds it. */
struct lease {
    int count;
    struct worker **worker; /* worker[0] is NULL: the caller (unless caller_extra) */
    const int *core;        /* worker i runs on machine->core[core[i]] (meant, where not pinned) */
    bool pinned;
    bool shares_core;       /* caller_extra shares the last core */
    char note[160];         /* what the user should know ("core 3 is held by process 4711: not pinned"); "" otherwise */
    int64_t waited_ns;      /* for cores that other leases of this process held; 0: they were free at once */
    /* private */
    struct lease_state *state;
};

/* Takes workers, waiting for its turn (turns.h) while other runs of this process hold too many; the lease's threads
 * exist afterwards. Cores held by other processes (a byte per core in a lock file) are not pinned to, with a note. On a
 * described machine nothing is pinned or reserved, so that more workers than cores can be had. The thread cannot be
 * cancelled (pthread_cancel) from then on until it releases the lease. Errors, *lease
 * untouched: MEMORY, INVALID (workers > cores; this thread holds a lease already and would wait for itself),
 * UNSUPPORTED (thread creation refused; message says why). */
graphi_status lease_take(const graphi_machine *machine, const struct lease_options *options, struct lease *lease);

/* By the thread that took it, of several leases the innermost first (each gives back whether the thread could be
 * cancelled before it): restores its affinity if it was pinned. Also accepted for a zeroed lease, and in a child
 * for a lease taken before fork(). Leaves the lease zeroed. */
void lease_release(struct lease *lease);

/* The two halves of lease_take, and of lease_release, of which one lease sees several threads one after the other, or
 * none: lease_reserve takes cores and threads, and lease_enter makes the calling thread worker 0 (caller_extra: the
 * further one). Those who enter a lease that stands can be cancelled; not while lease_reserve waits. Errors as
 * lease_take; INVALID also for cores that the machine has not, or given twice, or that wait for what this thread has
 * taken itself. */
graphi_status lease_reserve(const graphi_machine *machine, const struct lease_options *options, struct lease *lease);
void lease_enter(struct lease *lease);
void lease_leave(struct lease *lease);     /* by the thread that entered it */
void lease_give_back(struct lease *lease); /* nobody is in it; zeroed afterwards */

/* A thread for worker 0, too, for who is not worker 0 but the dedicated driver beside it. By who has entered. MEMORY,
 * UNSUPPORTED. */
graphi_status lease_first_thread(struct lease *lease);
void lease_spin(struct lease *lease, int spin_us); /* from now on; 0: the default */

/* For tests: leases taken by the process, each of which may set masks and lock bytes of the lock file. */
uint64_t lease_count(void);

/* False in a child process for a lease taken before fork(): its workers do not exist there. Release it and take
 * another. */
bool lease_valid(const struct lease *lease);

/* The affinity that the calling thread had before a lease pinned it; false (mask untouched) when none has. */
struct cpu_mask;
bool lease_saved_mask(struct cpu_mask *mask);

/* The function that worker i of the lease runs: started on workers 1..count-1 (0.. when caller_extra) by lease_start;
 * each calls body(context, i) once, and lease_wait returns when all have returned. The caller itself runs body(context,
 * 0) between the two when it is worker 0. Costs one mailbox message per worker. No allocation. Both do nothing on a
 * lease that is not valid. */
typedef void (*worker_body)(void *context, int index);
void lease_start(struct lease *lease, worker_body body, void *context);
void lease_wait(struct lease *lease);

/* For tests: the folder of the lock file instead of /run/lock/graphi or /tmp/graphi-UID; NULL: back to those. Not while
 * leases are held. */
void workers_lock_folder(const char *path);

#endif
