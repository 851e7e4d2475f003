/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for runtimes that were not found when the benchmarks were configured: their rows say so. */
#include "tasks.h"

#ifdef MISSING_TBB
double peer_tbb(const struct peer_graph *graph, int reset)
{
    (void)graph, (void)reset;
    return -1;
}
#endif

#ifdef MISSING_OPENMP
double peer_openmp(const struct peer_graph *graph, int reset)
{
    (void)graph, (void)reset;
    return -1;
}
#endif

typedef int peers_missing_not_empty;
