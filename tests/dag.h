/* SPDX-License-Identifier: Apache-2.0 */
/* Random task graphs and machines for tests of the scheduler: layered DAGs of a given width, each task with 1 to 3
 * inputs from the layers before, durations from a few cost curves. Everything follows from the seed. */
#ifndef TESTS_DAG_H
#define TESTS_DAG_H

#include "base/random.h"
#include "machine/machine.h"
#include "schedule/scheduler.h"

#include <stdlib.h>
#include <string.h>

enum { DAG_CURVES = 6, DAG_MOST_INPUTS = 3 };

struct dag {
    struct tasks tasks;
    int32_t *begin, *edges, *pending, *kind, *curve_of, *largest;
    int64_t *level;
    uint8_t *flags, *scalability, *shares;
    int32_t (*inputs)[DAG_MOST_INPUTS];
    int32_t *inputs_count;
    struct cost_curve curves[DAG_CURVES];
};

static inline uint32_t dag_random(uint64_t seed, int32_t a, int32_t b)
{
    return random_philox(seed, (uint64_t)a, (uint64_t)b).v[0];
}

/* Curve i: serial part plus work that scales until a width. */
static inline struct cost_curve dag_curve(double serial_ns, double parallel_ns, int saturation)
{
    struct cost_curve c = {.samples = 0, .best = 1};
    for (int width = 1; width <= 64; width *= 2) {
        int useful = width < saturation ? width : saturation;
        c.width[c.samples] = width;
        c.ns[c.samples] = serial_ns + parallel_ns / useful + 20.0 * (width - 1);
        if (c.ns[c.samples] < c.ns[0] && c.ns[c.samples] < curve_ns(&c, c.best))
            c.best = width;
        c.samples++;
    }
    return c;
}

/* Fills everything that follows from inputs, flags and curves. */
static inline void dag_finish(struct dag *g)
{
    int count = g->tasks.count;
    g->begin = calloc((size_t)count + 2, sizeof *g->begin);
    g->edges = calloc((size_t)count * DAG_MOST_INPUTS + 1, sizeof *g->edges);
    g->pending = calloc((size_t)count + 1, sizeof *g->pending);
    g->level = calloc((size_t)count + 1, sizeof *g->level);
    for (int t = 0; t < count; t++)
        for (int i = 0; i < g->inputs_count[t]; i++)
            g->begin[g->inputs[t][i] + 2 <= count ? g->inputs[t][i] + 2 : count + 1]++;
    for (int t = 2; t <= count + 1; t++)
        g->begin[t] += g->begin[t - 1];
    for (int t = 0; t < count; t++) {
        g->pending[t] = g->inputs_count[t];
        for (int i = 0; i < g->inputs_count[t]; i++)
            g->edges[g->begin[g->inputs[t][i] + 1]++] = t;
    }
    for (int t = count - 1; t >= 0; t--) {
        for (int32_t e = g->begin[t]; e < g->begin[t + 1]; e++)
            if (g->level[g->edges[e]] > g->level[t])
                g->level[t] = g->level[g->edges[e]];
        g->level[t] += (int64_t)curve_ns(&g->curves[g->curve_of[t]], 1);
    }
    g->tasks = (struct tasks){.count = count,
                              .edges_begin = g->begin,
                              .edges = g->edges,
                              .pending = g->pending,
                              .level = g->level,
                              .flags = g->flags,
                              .kind = g->kind,
                              .kinds = DAG_CURVES,
                              .curve_of = g->curve_of,
                              .curves = g->curves,
                              .curves_count = DAG_CURVES,
                              .largest_input_from = g->largest,
                              .shares = g->shares,
                              .scalability = g->scalability};
}

static inline struct dag *dag_empty(int count)
{
    struct dag *g = calloc(1, sizeof *g);
    size_t n = (size_t)count + 1;
    g->tasks.count = count;
    g->kind = calloc(n, sizeof *g->kind);
    g->curve_of = calloc(n, sizeof *g->curve_of);
    g->largest = calloc(n, sizeof *g->largest);
    g->flags = calloc(n, 1);
    g->scalability = calloc(n, 1);
    g->shares = calloc(n, 1);
    g->inputs = calloc(n, sizeof *g->inputs);
    g->inputs_count = calloc(n, sizeof *g->inputs_count);
    return g;
}

/* ns: scale of the durations; 0: empty tasks. `tiny` of 16 tasks may run inline. */
static inline struct dag *dag_random_graph(uint64_t seed, int count, int wide, double ns, int tiny)
{
    struct dag *g = dag_empty(count);
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = dag_curve(ns * (i + 1) * 0.1, ns * (1 + i * i), i == 0 ? 1 : 4 * i);
    for (int t = 0; t < count; t++) {
        g->curve_of[t] = (int32_t)(dag_random(seed, t, 1) % DAG_CURVES);
        g->kind[t] = g->curve_of[t] / 2;
        g->shares[t] = (uint8_t)(1 + dag_random(seed, t, 8) % 40);
        g->scalability[t] = (uint8_t)(g->curve_of[t] / 2 + 1);
        g->flags[t] =
            (uint8_t)((dag_random(seed, t, 2) % 16 < (uint32_t)tiny ? TASK_INLINE : 0) |
                      (dag_random(seed, t, 3) % 8 == 0 ? TASK_LIGHT : 0) | (t > count / 2 ? TASK_BACKWARD : 0));
        int layer = t / wide, wanted = layer ? 1 + (int)(dag_random(seed, t, 4) % DAG_MOST_INPUTS) : 0;
        for (int i = 0; i < wanted; i++) {
            int32_t from = (layer - 1) * wide + (int32_t)(dag_random(seed, t, 5 + i) % (uint32_t)wide);
            bool twice = false;
            for (int k = 0; k < g->inputs_count[t]; k++)
                twice = twice || g->inputs[t][k] == from;
            if (!twice)
                g->inputs[t][g->inputs_count[t]++] = from;
        }
        g->largest[t] = g->inputs_count[t] ? g->inputs[t][0] : -1;
    }
    dag_finish(g);
    return g;
}

/* Without edges, or `chains` chains side by side; all of one class until told otherwise. */
static inline struct dag *dag_plain(int count, int chains)
{
    struct dag *g = dag_empty(count);
    for (int i = 0; i < DAG_CURVES; i++)
        g->curves[i] = dag_curve(0, 1000 * (i + 1), 64);
    for (int t = 0; t < count; t++) {
        g->largest[t] = -1;
        if (chains && t >= chains)
            g->inputs[t][g->inputs_count[t]++] = g->largest[t] = t - chains;
    }
    return g;
}

static inline void dag_set_class(struct dag *g, int task, int curve)
{
    g->curve_of[task] = g->kind[task] = curve;
}

static inline bool dag_overlap(const struct task_record *a, const struct task_record *b)
{
    return a->start_ns < b->end_ns && b->start_ns < a->end_ns;
}

static inline void dag_free(struct dag *g)
{
    void *parts[] = {g->begin, g->edges, g->pending,     g->kind,   g->curve_of, g->largest,
                     g->level, g->flags, g->scalability, g->shares, g->inputs,   g->inputs_count};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
    free(g);
}

/* A described machine: tiles of two cores; `siblings` of its cores have a second hardware thread. */
static inline graphi_machine dag_machine(int cores, int siblings)
{
    graphi_machine m = {
        .name = "test", .cores = cores, .siblings = siblings, .numa_nodes = 1, .tiles = (cores + 1) / 2};
    m.core = calloc((size_t)(cores + siblings), sizeof *m.core);
    for (int i = 0; i < cores + siblings; i++)
        m.core[i] = (struct machine_core){-1, i % cores / 2, 0, i < cores ? -1 : i - cores};
    return m;
}

#endif
