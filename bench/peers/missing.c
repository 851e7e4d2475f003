/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for runtimes that were not found when the benchmarks were configured: their rows say so. */
#include "arithmetic.h"
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

#ifdef MISSING_STARPU
double peer_starpu(const struct peer_graph *graph, int reset)
{
    (void)graph, (void)reset;
    return -1;
}
#endif

#ifdef MISSING_OPENBLAS
double peer_openblas_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies)
{
    (void)shape, (void)threads, (void)repeat, (void)copies;
    return -1;
}

const char *peer_openblas_version(void) { return ""; }
#endif

#ifdef MISSING_LIBXSMM
double peer_libxsmm_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies)
{
    (void)shape, (void)threads, (void)repeat, (void)copies;
    return -1;
}

const char *peer_libxsmm_version(void) { return ""; }
#endif

#ifdef MISSING_ONEDNN
double peer_onednn_gemm(const struct peer_gemm *shape, int threads, int repeat, int copies)
{
    (void)shape, (void)threads, (void)repeat, (void)copies;
    return -1;
}

double peer_onednn_conv(const struct peer_conv *shape, int threads, int repeat, int copies)
{
    (void)shape, (void)threads, (void)repeat, (void)copies;
    return -1;
}

double peer_onednn_memory(const struct peer_memory *what, int threads, int repeat, int copies)
{
    (void)what, (void)threads, (void)repeat, (void)copies;
    return -1;
}

const char *peer_onednn_version(void) { return ""; }
#endif

typedef int peers_missing_not_empty;
