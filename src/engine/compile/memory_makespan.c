/* SPDX-License-Identifier: Apache-2.0 */
/* How long the tasks would take under the planner's edges: list scheduling, one core a task, nothing else charged. Good
 * enough to tell an order that leaves cores idle from one that does not; the simulator (simulator.c) needs a finished
 * plan. Compile time only, one thread. Usual time: 2 ms for 2,000 tasks and 20,000 edges. */
#include "engine/compile/memory_makespan.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/memory_edges.h"
#include "schedule/heap.h"

struct makespan {
    const struct memory_problem *problem;
    int32_t *begin, *list;
    int64_t *level;    /* of a task: ns to the end */
    int32_t *pending;
    struct heap ready; /* by level */
    struct heap going; /* by end, the first on top */
};

static int64_t ns_of(const struct memory_problem *problem, int32_t task) { return problem->ns ? problem->ns[task] : 1; }

static void rank(struct makespan *m)
{
    for (int32_t e = 0; e < m->begin[m->problem->tasks]; e++)
        m->pending[m->list[e]]++;
    for (int32_t t = m->problem->tasks - 1; t >= 0; t--)
        m->level[t] = edges_most_after(m->begin, m->list, m->level, t) + ns_of(m->problem, t);
}

static int64_t longest(const struct makespan *m)
{
    int64_t most = 0;
    for (int32_t t = 0; t < m->problem->tasks; t++)
        most = m->level[t] > most ? m->level[t] : most;
    return most;
}

static void make_ready(struct makespan *m, int32_t task)
{
    if (!m->pending[task])
        heap_push(&m->ready, (struct ready){m->level[task], task});
}

static int64_t schedule(struct makespan *m)
{
    int64_t now = 0;
    int idle = m->problem->cores > 1 ? m->problem->cores : 1;
    for (int32_t t = 0; t < m->problem->tasks; t++)
        make_ready(m, t);
    while (m->ready.count || m->going.count) {
        for (; idle > 0 && m->ready.count; idle--) {
            int32_t task = heap_pop(&m->ready).task;
            heap_push(&m->going, (struct ready){-(now + ns_of(m->problem, task)), task});
        }
        struct ready done = heap_pop(&m->going);
        now = -done.key;
        idle++;
        for (int32_t e = m->begin[done.task]; e < m->begin[done.task + 1]; e++) {
            m->pending[m->list[e]]--;
            make_ready(m, m->list[e]);
        }
    }
    return now;
}

graphi_status memory_makespan(const struct memory_problem *problem, const edge_array *added, int64_t *ns,
                              int64_t *path)
{
    struct makespan m = {.problem = problem};
    size_t tasks = (size_t)problem->tasks + 1;
    TRY(memory_all_edges(problem, added, &m.begin, &m.list));
    m.level = mem_zalloc_array(tasks, sizeof *m.level);
    m.pending = mem_zalloc_array(tasks, sizeof *m.pending);
    m.ready.items = mem_zalloc_array(tasks, sizeof *m.ready.items);
    m.going.items = mem_zalloc_array(tasks, sizeof *m.going.items);
    bool enough = m.level && m.pending && m.ready.items && m.going.items;
    if (enough) {
        rank(&m);
        if (path)
            *path = longest(&m);
        *ns = schedule(&m);
    }
    mem_free(m.begin);
    mem_free(m.list);
    mem_free(m.level);
    mem_free(m.pending);
    mem_free(m.ready.items);
    mem_free(m.going.items);
    return enough ? GRAPHI_OK : fail_memory("memory plan", tasks * sizeof *m.ready.items);
}
