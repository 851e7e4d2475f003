/* SPDX-License-Identifier: Apache-2.0 */
/* The task graph as StarPU tasks with explicit dependencies: made once, submitted again for each execution.
 * Submitting belongs to the time, as it belongs to what StarPU does for a program; between executions its workers
 * sleep. */
#include "tasks.h"

#include <starpu.h>
#include <stdlib.h>

static struct {
    struct starpu_task **task;
    int32_t count;
    int64_t nanoseconds;
    int state; /* 0: not started, 1: runs, -1: refused */
} graph;

static void work(void *buffers[], void *argument)
{
    (void)buffers, (void)argument;
    peer_spin(graph.nanoseconds);
}

static struct starpu_codelet codelet = {.cpu_funcs = {work}, .nbuffers = 0, .name = "delay"};

static void stop(void)
{
    starpu_resume();
    for (int32_t i = 0; i < graph.count; i++)
        starpu_task_destroy(graph.task[i]);
    free(graph.task);
    starpu_shutdown();
}

static int start(int threads)
{
    struct starpu_conf conf;
    setenv("STARPU_SILENT", "1", 0);
    starpu_conf_init(&conf);
    conf.ncpus = threads;
    conf.ncuda = conf.nopencl = 0;
    graph.state = starpu_init(&conf) == 0 ? 1 : -1;
    if (graph.state > 0)
        atexit(stop);
    return graph.state > 0;
}

static int make_tasks(const struct peer_graph *g)
{
    for (int32_t i = 0; i < graph.count; i++)
        starpu_task_destroy(graph.task[i]);
    graph.count = 0;
    free(graph.task);
    graph.task = calloc((size_t)g->count, sizeof *graph.task);
    if (!graph.task)
        return 0;
    for (int32_t i = 0; i < g->count; i++) {
        struct starpu_task *inputs[16], *task = starpu_task_create();
        unsigned n = 0;
        task->cl = &codelet;
        task->destroy = 0;
        graph.task[graph.count++] = task;
        for (int32_t e = g->inputs_begin[i]; e < g->inputs_begin[i + 1] && n < 16; e++)
            inputs[n++] = graph.task[g->inputs[e]];
        if (n)
            starpu_task_declare_deps_array(task, n, inputs);
    }
    graph.nanoseconds = g->nanoseconds;
    return 1;
}

double peer_starpu(const struct peer_graph *g, int reset)
{
    if (graph.state == 0 && start(g->threads))
        starpu_pause();
    if (graph.state < 0 || ((reset || !graph.task) && !make_tasks(g)))
        return -1;
    starpu_resume();
    int64_t begin = peer_now_ns();
    for (int32_t i = 0; i < graph.count; i++)
        if (starpu_task_submit(graph.task[i]) != 0)
            return -1;
    starpu_task_wait_for_all();
    double ms = (double)(peer_now_ns() - begin) * 1e-6;
    starpu_pause();
    return ms;
}
