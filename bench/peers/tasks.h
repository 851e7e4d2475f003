/* SPDX-License-Identifier: Apache-2.0 */
/* The same task graph on other runtimes: operation i runs `nanoseconds` after all its inputs. Each gives the wall time
 * in ms of one execution, or a negative number when that runtime was not found at build time. The first call sets up;
 * later ones reuse. */
#ifndef BENCH_PEERS_TASKS_H
#define BENCH_PEERS_TASKS_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer_graph {
    int32_t count;
    const int32_t *inputs_begin; /* count + 1 */
    const int32_t *inputs;
    int64_t nanoseconds;
    int threads;
};

double peer_tbb(const struct peer_graph *graph, int reset);    /* oneTBB flow graph: a continue_node an operation */
double peer_openmp(const struct peer_graph *graph, int reset); /* OpenMP tasks, own pending counters */
double peer_starpu(const struct peer_graph *graph, int reset); /* StarPU tasks with explicit dependencies */
double peer_loops(const struct peer_graph *graph, int reset);  /* the operations alone, an equal part on each core */
double peer_message_ns(void); /* one way between two cores; negative: there is one core */

static inline int64_t peer_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The same busy work as graphi_delay(): the readings of the clock at both ends count as part of the time asked for. */
static inline void peer_spin(int64_t nanoseconds)
{
    if (nanoseconds <= 0)
        return;
    int64_t start = peer_now_ns(), last = start, now = peer_now_ns();
    for (; now - start < nanoseconds - 3 * (now - last < 200 ? now - last : 200) / 2; now = peer_now_ns())
        last = now;
}

#ifdef __cplusplus
}
#endif
#endif
