/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost each other: from the records of an execution in which every core is an executor, for how much of
 * each operation's time others ran beside it; and from times in two ways of running (alone and beside others, one order
 * and another) the factor of every class. Pure functions, called while a plan is profiled. Usual size: thousands of
 * records, a hundred classes. */
#include "engine/tune/two_ways.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

struct moment { /* an operation starts or ends */
    int64_t time;
    int32_t task;
    bool ends;
};

/* Ends before starts: what follows at the same time is not beside. */
static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (int)y->ends - (int)x->ends;
}

graphi_status records_load(const struct task_record *records, int32_t tasks, int cores, float *load)
{
    size_t bytes = 2 * ((size_t)tasks + 1) * sizeof(struct moment);
    struct moment *moments = mem_alloc(bytes);
    double *begin = mem_alloc(((size_t)tasks + 1) * sizeof *begin); /* of each task: `others` when it started */
    if (!moments || !begin) {
        mem_free(moments);
        mem_free(begin);
        return fail_memory("records", bytes);
    }
    for (int32_t t = 0; t < tasks; t++) {
        moments[2 * t] = (struct moment){records[t].start_ns, t, false};
        moments[2 * t + 1] = (struct moment){records[t].end_ns, t, true};
    }
    qsort(moments, 2 * (size_t)tasks, sizeof *moments, by_time);
    double others = 0; /* ns that each running operation had others beside it so far, summed over the others */
    int running = 0;
    for (int32_t i = 0; i < 2 * tasks; i++) {
        const struct moment *e = &moments[i];
        if (running > 1)
            others += (double)(e->time - moments[i - 1].time) * (running - 1);
        running += e->ends ? -1 : 1;
        double ns = (double)(records[e->task].end_ns - records[e->task].start_ns);
        if (!e->ends)
            begin[e->task] = others;
        else
            load[e->task] = ns > 0 && cores > 1 ? (float)((others - begin[e->task]) / (ns * (cores - 1))) : 0;
    }
    mem_free(moments);
    mem_free(begin);
    return GRAPHI_OK;
}

struct excess {
    double longer, exposed; /* ns beyond the usual time; usual time that the other way applies to */
    double usual;
    int operations;
};

graphi_status class_factors(const struct two_ways *w, double prior, double *factor)
{
    struct excess all = {0}, *own = mem_zalloc_array((size_t)w->classes + 1, sizeof *own);
    if (!own)
        return fail_memory("classes", (size_t)w->classes * sizeof *own);
    for (int32_t t = 0; t < w->tasks; t++) {
        struct excess *e = &own[w->class_of[t]];
        e->longer += w->other_ns[t] - w->usual_ns[t];
        e->exposed += w->usual_ns[t] * w->part[t];
        e->usual += w->usual_ns[t];
        e->operations++;
        all.longer += w->other_ns[t] - w->usual_ns[t];
        all.exposed += w->usual_ns[t] * w->part[t];
        all.usual += w->usual_ns[t];
    }
    double usually = all.exposed > 0 ? all.longer / all.exposed : 0;
    double part = all.usual > 0 ? all.exposed / all.usual : 0; /* what a class saw less of, it knows less of */
    for (int32_t i = 0; i < w->classes; i++) {
        const struct excess *e = &own[i];
        double more = prior * part * e->usual / fmax(1, e->operations), exposed = e->exposed + more;
        factor[i] = 1 + fmin(fmax(exposed > 0 ? (e->longer + more * usually) / exposed : usually, -0.2), w->most - 1);
    }
    mem_free(own);
    return GRAPHI_OK;
}
