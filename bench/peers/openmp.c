/* SPDX-License-Identifier: Apache-2.0 */
/* The task graph as OpenMP tasks: a finished task counts its successors down and spawns those that became ready. */
#include "tasks.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <omp.h>

static struct {
    int32_t *begin, *list; /* successors */
    atomic_int *pending;
    int64_t nanoseconds;
} graph;

static void run(int32_t i)
{
    peer_spin(graph.nanoseconds);
    for (int32_t e = graph.begin[i]; e < graph.begin[i + 1]; e++) {
        int32_t next = graph.list[e];
        if (atomic_fetch_sub_explicit(&graph.pending[next], 1, memory_order_acq_rel) == 1) {
#pragma omp task firstprivate(next) untied
            run(next);
        }
    }
}

static int set_up(const struct peer_graph *g)
{
    int32_t edges = g->inputs_begin[g->count];
    free(graph.begin);
    free(graph.list);
    free(graph.pending);
    graph.begin = calloc((size_t)g->count + 2, sizeof *graph.begin);
    graph.list = calloc((size_t)edges + 1, sizeof *graph.list);
    graph.pending = calloc((size_t)g->count, sizeof *graph.pending);
    graph.nanoseconds = g->nanoseconds;
    if (!graph.begin || !graph.list || !graph.pending)
        return 0;
    for (int32_t e = 0; e < edges; e++)
        graph.begin[g->inputs[e] + 2]++;
    for (int32_t i = 0; i < g->count; i++)
        graph.begin[i + 2] += graph.begin[i + 1];
    for (int32_t i = 0; i < g->count; i++)
        for (int32_t e = g->inputs_begin[i]; e < g->inputs_begin[i + 1]; e++)
            graph.list[graph.begin[g->inputs[e] + 1]++] = i;
    return 1;
}

double peer_openmp(const struct peer_graph *g, int reset)
{
    if ((reset || !graph.begin) && !set_up(g))
        return -1;
    for (int32_t i = 0; i < g->count; i++)
        atomic_store_explicit(&graph.pending[i], g->inputs_begin[i + 1] - g->inputs_begin[i], memory_order_relaxed);
    int64_t begin = peer_now_ns();
#pragma omp parallel num_threads(g->threads)
#pragma omp single
    for (int32_t i = 0; i < g->count; i++)
        if (g->inputs_begin[i] == g->inputs_begin[i + 1]) {
#pragma omp task firstprivate(i)
            run(i);
        }
    return (double)(peer_now_ns() - begin) * 1e-6;
}
