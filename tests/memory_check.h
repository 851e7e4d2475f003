/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's judge: believes nothing of the plan but offsets and added edges, and asks of every pair of values that
 * share bytes whether one precedes the other. */
#ifndef TESTS_MEMORY_CHECK_H
#define TESTS_MEMORY_CHECK_H

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/ancestors.h"
#include "engine/compile/memory.h"
#include "engine/compile/memory_edges.h"

static inline bool precedes(const struct memory_problem *problem, const struct ancestors *ancestors, int a, int b)
{
    const struct memory_value *first = &problem->value[a], *second = &problem->value[b];
    if (first->kept)
        return false;
    for (int j = 0; j < second->producers; j++)
        for (int i = 0; i < first->producers + first->readers; i++)
            if (!ancestors_has(ancestors, problem->list[second->begin + j], problem->list[first->begin + i]))
                return false;
    return true;
}

static inline graphi_status check_pairs(const struct memory_problem *problem, const struct memory_solution *solution,
                                        const struct ancestors *ancestors)
{
    for (int a = 0; a < problem->values; a++)
        for (int b = a + 1; b < problem->values; b++) {
            int64_t x = solution->offset[a], y = solution->offset[b];
            if (x >= y + problem->value[b].bytes || y >= x + problem->value[a].bytes)
                continue;
            if (!precedes(problem, ancestors, a, b) && !precedes(problem, ancestors, b, a))
                return (fail)(GRAPHI_INVALID, "memory plan",
                              "found values %d and %d in the same bytes, expected an order between their tasks", a, b);
        }
    return GRAPHI_OK;
}

/* Are all values that share bytes ordered, by the graph and the added edges alone? INVALID naming two values that are
 * not. */
static inline graphi_status memory_check(const struct memory_problem *problem, const struct memory_solution *solution)
{
    int32_t *begin = NULL, *list = NULL;
    struct ancestors ancestors = {0};
    graphi_status status = memory_all_edges(problem, &solution->edges, &begin, &list);
    if (!status)
        status = ancestors_create(problem->tasks, begin, list, NULL, &ancestors);
    if (!status)
        status = check_pairs(problem, solution, &ancestors);
    ancestors_free(&ancestors);
    mem_free(begin);
    mem_free(list);
    return status;
}

#endif
