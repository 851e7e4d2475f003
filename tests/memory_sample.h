/* SPDX-License-Identifier: Apache-2.0 */
/* Random problems of the arena planner, for test_memory_plan.c and test_placing.c. Include after cmocka.h. */
#ifndef TESTS_MEMORY_SAMPLE_H
#define TESTS_MEMORY_SAMPLE_H

#include "base/memory.h"
#include "base/random.h"
#include "engine/compile/memory_planner.h"

#include <string.h>

struct sample {
    struct memory_problem problem;
    edge_array edges;
    int32_t *begin, *list;
    struct memory_value *value;
    ARRAY(int32_t) tasks_of;
};

static uint64_t counter;

static inline int draw(int n) { return (int)(random_philox(7, 0, counter++).v[0] % (uint32_t)n); }

/* Each task makes one value (some two), read by random later tasks. `back`: how far a reader is at most. */
static inline void sample_create(struct sample *s, int tasks, int back)
{
    memset(s, 0, sizeof *s);
    int values = tasks + tasks / 4;
    s->value = mem_zalloc_array((size_t)values, sizeof *s->value);
    for (int v = 0; v < values; v++) {
        int producer = v < tasks ? v : (v - tasks) * 4, readers = draw(4);
        s->value[v] = (struct memory_value){.bytes = 64 + draw(100) * draw(2000), .begin = (int32_t)s->tasks_of.count,
                                            .producers = 1, .kept = draw(20) == 0};
        array_push(&s->tasks_of, producer);
        for (int r = 0; r < readers; r++) {
            int reader = producer + 1 + draw(back);
            if (reader >= tasks)
                continue;
            array_push(&s->tasks_of, reader);
            array_push(&s->edges, ((struct edge){producer, reader}));
            s->value[v].readers++;
        }
    }
    edges_sort(&s->edges);
    assert_int_equal(edges_successors(&s->edges, tasks, &s->begin, &s->list), GRAPHI_OK);
    s->problem = (struct memory_problem){.tasks = tasks, .edges_begin = s->begin, .edges = s->list, .values = values,
                                         .value = s->value, .list = s->tasks_of.data};
}

static inline void sample_free(struct sample *s)
{
    array_free(&s->edges);
    array_free(&s->tasks_of);
    mem_free(s->begin);
    mem_free(s->list);
    mem_free(s->value);
}

#endif
