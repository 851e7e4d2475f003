/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the task graph without the graph: an equal part of them on each core, one after another in a loop.
 * Nothing schedules and nobody waits, so this is the most that the machine itself gives in that moment: readings of the
 * clock, timer ticks and a host that takes cores away are in it, as they are in every engine's time. And what a message
 * between two of the cores takes: on a virtual machine that depends on where its host has put the cores, and every
 * engine's overhead grows with it. */
#include "tasks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST_THREADS = 256 };

struct part {
    pthread_t thread;
    int core; /* hardware thread, or -1 */
    int32_t count;
    int64_t nanoseconds, end;
    atomic_int *waiting; /* threads that are not there yet */
};

static void stay_on(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    if (core < 0)
        return;
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *loop(void *context)
{
    struct part *part = context;
    stay_on(part->core);
    atomic_fetch_sub(part->waiting, 1);
    while (atomic_load(part->waiting))
        ;
    for (int32_t i = 0; i < part->count; i++)
        peer_spin(part->nanoseconds);
    part->end = peer_now_ns();
    return NULL;
}

static int next_core(const cpu_set_t *cores, int from)
{
    for (int i = from; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, cores))
            return i;
    return -1;
}

double peer_loops(const struct peer_graph *g, int reset)
{
    (void)reset;
    struct part parts[MOST_THREADS];
    cpu_set_t cores;
    int threads = g->threads < MOST_THREADS ? g->threads : MOST_THREADS, started = 0, core = -1;
    atomic_int waiting = threads + 1;
    if (sched_getaffinity(0, sizeof cores, &cores))
        CPU_ZERO(&cores);
    for (; started < threads; started++) {
        core = next_core(&cores, core + 1);
        int32_t from = (int32_t)((int64_t)g->count * started / threads),
                to = (int32_t)((int64_t)g->count * (started + 1) / threads);
        parts[started] =
            (struct part){.core = core, .count = to - from, .nanoseconds = g->nanoseconds, .waiting = &waiting};
        if (pthread_create(&parts[started].thread, NULL, loop, &parts[started]))
            break;
    }
    while (atomic_load(&waiting) > 1 + threads - started)
        sched_yield();
    int64_t begin = peer_now_ns(), end = begin;
    atomic_store(&waiting, 0);
    for (int i = 0; i < started; i++) {
        pthread_join(parts[i].thread, NULL);
        end = parts[i].end > end ? parts[i].end : end;
    }
    return started == threads ? (double)(end - begin) * 1e-6 : -1;
}

enum { MESSAGES = 20000 };

static struct {
    _Alignas(128) atomic_int there;
    _Alignas(128) atomic_int back;
} line;

static void *echo(void *context)
{
    stay_on(*(int *)context);
    for (int i = 1; i <= MESSAGES; i++) {
        while (atomic_load(&line.there) != i)
            ;
        atomic_store_explicit(&line.back, i, memory_order_release);
    }
    return NULL;
}

/* Half of the mean round trip between this thread, bound to the first core, and one on the second. */
double peer_message_ns(void)
{
    cpu_set_t cores;
    pthread_t thread;
    if (sched_getaffinity(0, sizeof cores, &cores))
        return -1;
    int first = next_core(&cores, 0), second = next_core(&cores, first + 1);
    atomic_store(&line.there, 0);
    atomic_store(&line.back, 0);
    if (second < 0 || pthread_create(&thread, NULL, echo, &second))
        return -1;
    stay_on(first);
    int64_t begin = 0;
    for (int i = 1; i <= MESSAGES; i++) {
        atomic_store_explicit(&line.there, i, memory_order_release);
        while (atomic_load(&line.back) != i)
            ;
        begin = i == 1 ? peer_now_ns() : begin; /* from the first answer on both are awake */
    }
    double ns = (double)(peer_now_ns() - begin) / (2.0 * (MESSAGES - 1));
    pthread_join(thread, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
    return ns;
}
