/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a message, run it, and say so. Each has two words: `go` counts the messages sent, `done` those
 * finished. A worker outlives every lease (its memory is never freed), so late wake-ups touch nothing that is gone.
 * Signals are blocked in all of them: they are the application's business. They compute in the default floating-point
 * mode, and are scheduled as the process is, whatever those of the thread that created them. Usual size: one thread a
 * core. */
#include "machine/pool.h"

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/memory.h"
#include "base/status.h"
#include "machine/parking.h"
#include "machine/private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct worker {
    struct parking go;
    /* Written by the sender before go, read by the worker after it. */
    void (*body)(void *context, int index);
    void *context;
    int index, spin_us;
    _Alignas(64) struct parking done; /* a line of its own: the sender spins on it */
    _Alignas(64) pthread_t thread;
    int pinned; /* hardware thread, or -1 */
    int64_t placed_ns; /* when its mask was set last */
    struct worker *next_idle, *next;
};

static struct worker *idle, *all,
    *lost; /* under the registry's mutex; `lost`: memory of threads left behind by fork() */
static int threads;

static _Thread_local bool is_worker;

bool pool_is_worker(void) { return is_worker; }

/* Policy and nice value of the process's first thread, for life: else they would be those of whoever needed one more
 * worker, and are where the system refuses (a lower nice value, without the right to it). */
static void follow_the_process(void)
{
    struct sched_param parameter;
    int policy = sched_getscheduler(getpid());
    if (policy >= 0 && sched_getparam(getpid(), &parameter) == 0)
        sched_setscheduler(0, policy, &parameter); /* 0: this thread */
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, (id_t)getpid());
    if (errno == 0)
        setpriority(PRIO_PROCESS, 0, nice);
}

static void *worker_main(void *argument)
{
    is_worker = true;
    follow_the_process();
    float_mode_enter(); /* for life: else it would be that of whoever needed one more worker */
    struct worker *worker = argument;
    int spin_us = 0; /* a thread fresh from creation finds its first message or sleeps */
    for (unsigned seen = 0;; seen++) {
        parking_wait(&worker->go, seen, spin_us); /* acquires what pool_send() wrote */
        spin_us = worker->spin_us;
        worker->body(worker->context, worker->index);
        atomic_fetch_add(&worker->done.word,
                         1); /* releases the work to pool_wait(); then worker->* is the next sender's */
        parking_wake(&worker->done);
    }
    return NULL;
}

void pool_send(struct worker *worker, void (*body)(void *context, int index), void *context, int index, int spin_us)
{
    worker->body = body;
    worker->context = context;
    worker->index = index;
    worker->spin_us = spin_us;
    atomic_fetch_add(&worker->go.word, 1); /* pairs with the acquire in parking_wait() in worker_main() */
    parking_wake(&worker->go);
}

void pool_wait(struct worker *worker, int spin_us)
{
    /* relaxed: only this thread, holding the lease, sends */
    unsigned sent = atomic_load_explicit(&worker->go.word, memory_order_relaxed);
    for (;;) {
        /* acquire: pairs with the addition in worker_main() */
        unsigned done = atomic_load_explicit(&worker->done.word, memory_order_acquire);
        if (done == sent)
            return;
        parking_wait(&worker->done, done, spin_us);
    }
}

/* Of every worker, whatever the limit of the process: kernels keep up to 150 KB there (points of Winograd's weights as
 * they are packed; lines of an image for the gradient of its weights). Callers need 256 KB (graphi/run.h). */
enum { STACK_BYTES = 1 << 20 };

/* Creates the thread with every signal blocked; it inherits the mask. */
static int start_thread(struct worker *worker)
{
    sigset_t every, before;
    sigfillset(&every);
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    error = pthread_create(&worker->thread, &attributes, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static graphi_status create(struct worker **out)
{
    struct worker *worker = mem_zalloc(sizeof *worker);
    if (!worker)
        return fail_memory("worker", sizeof *worker);
    worker->pinned = -1;
    int error = start_thread(worker);
    if (error) {
        mem_free(worker);
        return fail(GRAPHI_UNSUPPORTED, "worker", "found %d threads of ours and \"%s\" for one more, expected a thread",
                    threads, strerror(error));
    }
    char name[32];
    snprintf(name, 16, "graphi-%u", (unsigned)++threads % 100000000u);
    pthread_setname_np(worker->thread, name);
    worker->next = all;
    all = worker;
    *out = worker;
    return GRAPHI_OK;
}

/* An idle worker, best the one that is pinned there already. */
static struct worker *find_idle(int os_index)
{
    struct worker **best = &idle;
    for (struct worker **link = &idle; *link; link = &(*link)->next_idle)
        if ((*link)->pinned == os_index) {
            best = link;
            break;
        }
    struct worker *worker = *best;
    if (worker)
        *best = worker->next_idle;
    return worker;
}

/* Others may have moved a worker meanwhile (taskset, a cpuset). Setting a mask takes microseconds, which executions of
 * microseconds would pay for, so it is set again only where it was set that long ago. */
enum { BELIEVED_NS = 100000000 };

/* Gives the error of a pinning that the system refuses. */
static int place(struct worker *worker, int os_index, const struct cpu_mask *mask)
{
    int64_t now = clock_ns();
    if (os_index >= 0 && worker->pinned == os_index && now - worker->placed_ns < BELIEVED_NS)
        return 0;
    struct cpu_mask one = {{0}};
    mask_add(&one, os_index);
    int error = os_index >= 0 ? pthread_setaffinity_np(worker->thread, sizeof one, mask_set(&one)) : 0;
    bool moved = os_index >= 0 && !error;
    worker->pinned = moved ? os_index : -1;
    worker->placed_ns = now;
    if (!moved)
        pthread_setaffinity_np(worker->thread, sizeof *mask, (const cpu_set_t *)mask);
    return error;
}

graphi_status pool_take(int os_index, const struct cpu_mask *mask, struct worker **out, int *refused)
{
    struct worker *worker = find_idle(os_index);
    if (!worker)
        TRY(create(&worker));
    *refused = place(worker, os_index, mask);
    *out = worker;
    return GRAPHI_OK;
}

void pool_return(struct worker *worker)
{
    worker->next_idle = idle;
    idle = worker;
}

void pool_forget(void)
{
    while (all) {
        struct worker *worker = all;
        all = worker->next;
        worker->next = lost;
        lost = worker;
    }
    idle = NULL;
    threads = 0;
}
