/* SPDX-License-Identifier: Apache-2.0 */
/* The division of a step among the solvers of all ranks: they stand in one row, and so do samples or leaves. Any
 * thread. */
#include "group/division.h"

void group_share(const struct graphi_group *g, int i, int64_t *first, int64_t *count)
{
    const int64_t all = g->how.deterministic ? g->how.leaves : g->how.batch, n = (int64_t)g->how.solvers * g->ranks;
    *first = all / n * i + (i < all % n ? i : all % n);
    *count = all / n + (i < all % n);
}
