/* SPDX-License-Identifier: Apache-2.0 */
/* See origin.h. One thread; called for every simulated operation of the machine at hand. */
#include "engine/cost/origin.h"

#include "base/memory.h"
#include "base/status.h"
#include "schedule/edges.h"

graphi_status origins_open(const struct tasks *t, struct origins *out)
{
    return edges_predecessors(t->count, t->edges_begin, t->edges, &out->begin, &out->from);
}

void origins_close(struct origins *o)
{
    mem_free(o->begin);
    mem_free(o->from);
    *o = (struct origins){0};
}

/* The same team cuts the same shapes in the same places; any other finds in its own caches little that it needs. */
static bool apart(struct seat now, struct seat before)
{
    return now.leader != before.leader || now.width != before.width || now.spread != before.spread;
}

double origins_elsewhere(const struct origins *o, const struct seat *seat, int32_t task)
{
    double sum = 0;
    for (int32_t e = o->begin[task]; e < o->begin[task + 1]; e++)
        sum += apart(seat[task], seat[o->from[e]]);
    return sum > 0 ? sum / (o->begin[task + 1] - o->begin[task]) : 0;
}

/* A class belongs to a half by the depth of its first task. */
graphi_status seating_open(const struct tasks *tasks, struct seating *s)
{
    size_t count = (size_t)tasks->count + 1, classes = (size_t)tasks->curves_count + 1;
    int32_t *depth = mem_zalloc_array(count, sizeof *depth);
    s->seat = mem_zalloc_array(count, sizeof *s->seat);
    s->half = mem_zalloc_array(2 * classes, sizeof *s->half);
    s->other_half = s->half ? s->half + classes : NULL;
    graphi_status status = depth && s->seat && s->half ? origins_open(tasks, &s->origins)
                                                       : fail_memory("measurement", count * sizeof *s->seat);
    for (int32_t t = 0; t < tasks->count && !status; t++) {
        int32_t class = tasks->curve_of[t];
        for (int32_t e = s->origins.begin[t]; e < s->origins.begin[t + 1]; e++)
            depth[t] = depth[t] > depth[s->origins.from[e]] ? depth[t] : depth[s->origins.from[e]] + 1;
        if (!s->half[class] && !s->other_half[class])
            (depth[t] % 2 ? s->other_half : s->half)[class] = true;
    }
    mem_free(depth);
    return status;
}

void seating_close(struct seating *s)
{
    origins_close(&s->origins);
    mem_free(s->seat);
    mem_free(s->half);
}
