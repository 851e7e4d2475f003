/* SPDX-License-Identifier: Apache-2.0 */
/* The arena planner: greedy by size, best fit among the gaps that conflicting values leave, under a relation "first
 * precedes second" that is widened step by step until the byte target is met (memory.h tells the rule, memory_planner.h
 * the parts).
 *
 * Values that are small even together get bytes of their own: sharing them would cost order and save nothing. */
#include "engine/compile/memory.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/memory_edges.h"
#include "engine/compile/memory_items.h"
#include "engine/compile/memory_search.h"
#include "engine/compile/memory_sharing.h"

#include <stdlib.h>

/* Most live bytes when tasks run one after the other: a value lives from its first producer to its last task. */
static graphi_status live_maximum(const struct memory_problem *problem, int64_t *maximum)
{
    int64_t *change = mem_zalloc_array((size_t)problem->tasks + 2, sizeof *change);
    if (!change)
        return fail_memory("memory plan", (size_t)problem->tasks * sizeof *change);
    for (int v = 0; v < problem->values; v++) {
        int count, first = problem->tasks, last = -1;
        const int32_t *list = planner_tasks(problem, v, &count);
        for (int i = 0; i < count; i++) {
            first = list[i] < first ? list[i] : first;
            last = list[i] > last ? list[i] : last;
        }
        if (problem->value[v].kept)
            last = problem->tasks;
        if (!count)
            continue;
        change[first] += whole_lines(problem->value[v].bytes);
        change[last + 1] -= whole_lines(problem->value[v].bytes);
    }
    int64_t live = 0, most = 0;
    for (int t = 0; t <= problem->tasks; t++) {
        live += change[t];
        most = live > most ? live : most;
    }
    mem_free(change);
    *maximum = most;
    return GRAPHI_OK;
}

static int compare_bytes(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The largest size such that all values up to it fit together into `budget`. */
static graphi_status small_limit(const struct memory_problem *problem, int64_t budget, int64_t *limit)
{
    int64_t *bytes = mem_alloc(sizeof *bytes * (size_t)(problem->values + 1));
    if (!bytes)
        return fail_memory("memory plan", sizeof *bytes * (size_t)problem->values);
    for (int v = 0; v < problem->values; v++)
        bytes[v] = whole_lines(problem->value[v].bytes);
    qsort(bytes, (size_t)problem->values, sizeof *bytes, compare_bytes);
    int64_t sum = 0;
    *limit = -1;
    for (int v = 0; v < problem->values; v++) {
        sum += bytes[v];
        if (sum > budget)
            break;
        if (v + 1 == problem->values || bytes[v + 1] > bytes[v])
            *limit = bytes[v];
    }
    mem_free(bytes);
    return GRAPHI_OK;
}

static int64_t apart_bytes(const struct memory_problem *problem, int64_t limit)
{
    int64_t sum = 0;
    for (int v = 0; v < problem->values; v++)
        sum += planner_is_apart(problem, v, limit) ? whole_lines(problem->value[v].bytes) : 0;
    return sum;
}

/* Shared values first, then the others one after the other. */
static graphi_status write_offsets(const struct planner *p, int64_t used, struct memory_solution *solution)
{
    const struct memory_problem *problem = p->problem;
    solution->offset = mem_alloc(sizeof *solution->offset * (size_t)(problem->values + 1));
    if (!solution->offset)
        return fail_memory("memory plan", sizeof *solution->offset * (size_t)problem->values);
    for (int v = 0; v < problem->values; v++)
        solution->offset[v] = -1;
    for (int i = 0; i < p->count; i++)
        solution->offset[p->item[i].value] = p->item[i].offset;
    for (int v = 0; v < problem->values; v++)
        if (solution->offset[v] < 0) {
            solution->offset[v] = used;
            used += whole_lines(problem->value[v].bytes);
        }
    solution->bytes = used;
    return GRAPHI_OK;
}

graphi_status memory_plan(const struct memory_problem *problem, struct memory_solution *out)
{
    struct memory_solution solution = {0};
    struct planner p = {.problem = problem};
    TRY(live_maximum(problem, &solution.live_maximum));
    for (int v = 0; v < problem->values; v++)
        solution.sum_bytes += whole_lines(problem->value[v].bytes);
    int64_t target = problem->target ? problem->target : (solution.live_maximum * 115 + 99) / 100;
    int64_t budget = solution.live_maximum / 50, limit = -1;
    budget = budget > 65536 ? budget : 65536;
    if (budget > target / 4)
        budget = target / 4;
    graphi_status status = small_limit(problem, budget, &limit);
    if (!status)
        status = planner_prepare(&p, limit);
    if (!status) {
        int64_t alone = solution.sum_bytes, used = 0; /* alone: those apart, and those that are too many to share */
        for (int i = 0; i < p.count; i++)
            alone -= p.item[i].bytes;
        /* No order of the others makes up for those that are too many. */
        status = planner_search(&p, target - apart_bytes(problem, limit), &solution.unordered_bytes);
        solution.unordered_bytes += alone;
        for (int i = 0; i < p.count; i++)
            if (p.item[i].offset + p.item[i].bytes > used)
                used = p.item[i].offset + p.item[i].bytes;
        if (!status)
            status = write_offsets(&p, used, &solution);
    }
    if (!status)
        status = planner_edges(&p, &solution.edges);
    if (!status)
        status = memory_reduce_edges(problem, &solution.edges);
    planner_free(&p);
    if (status) {
        memory_solution_free(&solution);
        return status;
    }
    *out = solution;
    return GRAPHI_OK;
}

void memory_solution_free(struct memory_solution *solution)
{
    mem_free(solution->offset);
    array_free(&solution->edges);
    *solution = (struct memory_solution){0};
}
