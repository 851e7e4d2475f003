/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be placed: tasks with edges, values with bytes. */
#ifndef ENGINE_MEMORY_PROBLEM_H
#define ENGINE_MEMORY_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

struct memory_value {
    int64_t bytes;
    int32_t begin;     /* its tasks in problem.list: producers first, then readers */
    int32_t producers, readers;
    bool kept;         /* read after the run: nothing may follow it */
};

/* Array order is a topological order: every edge leads to a higher task. */
struct memory_problem {
    int tasks;
    const int32_t *edges_begin; /* tasks + 1 */
    const int32_t *edges;       /* successors */
    const int64_t *ns;          /* duration estimates; NULL: all 1 */
    int values;
    const struct memory_value *value;
    const int32_t *list;
    int64_t target;             /* bytes; 0: 1.15 times the live maximum, more or less by the estimated time on `cores`
                                   (memory_search.c) */
    int cores;                  /* 0: 1 */
    int64_t beside;             /* bytes that an execution needs beside the arena: what is little to them is little */
};

#endif
