/* SPDX-License-Identifier: Apache-2.0 */
/* Time of every share of every class on one core. A team of any width runs the same shares, so the time of its busiest
 * member follows; barriers, caches and bandwidth of the machine in question are added by curve_extend.c. The graph runs
 * in array order on this thread, first as a whole to warm up, then operation by operation and share by share in
 * alternation. */
#include "base/clock.h"
#include "base/float_mode.h"
#include "base/status.h"
#include "engine/run/execute.h"
#include "engine/tune/shares.h"

#include <string.h>

enum { MOST_ROUNDS = 6 };

void share_times_free(struct share_times *t)
{
    mem_free(t->first);
    mem_free(t->task);
    mem_free(t->share_ns);
    mem_free(t->serial_ns);
    *t = (struct share_times){0};
}

static graphi_status allocate(const struct compiled *c, struct share_times *t)
{
    size_t classes = (size_t)c->curves + 1, shares = 1;
    *t = (struct share_times){.first = mem_zalloc_array(classes, sizeof *t->first),
                              .task = mem_zalloc_array(classes, sizeof *t->task),
                              .serial_ns = mem_zalloc_array(classes, sizeof *t->serial_ns)};
    if (!t->first || !t->task || !t->serial_ns)
        return fail_memory("profile", classes * 16);
    for (int32_t i = 0; i < c->curves; i++)
        t->task[i] = -1;
    for (int32_t task = 0; task < c->tasks; task++) {
        int32_t k = c->curve_of[task];
        if (t->task[k] >= 0)
            continue;
        t->task[k] = task;
        t->first[k] = (int32_t)shares;
        for (int p = 0; p < c->task[task].kernel.phases; p++)
            shares += (size_t)c->task[task].kernel.shares[p];
    }
    t->share_ns = mem_zalloc_array(shares, sizeof *t->share_ns);
    return t->share_ns ? GRAPHI_OK : fail_memory("profile", shares * sizeof *t->share_ns);
}

/* Adds to the sums: of every share, or of the operation as a whole. */
static graphi_status run_timed(const graphi_run *run, int32_t task, double *share_ns, double *serial_ns)
{
    const struct kernel *kernel = &run->plan->compiled->task[task].kernel;
    struct kernel_call call = run_call(run, task);
    int64_t begin = clock_ns(), before = begin;
    const int64_t steps = kernel_steps(kernel, &call);
    for (call.loop = 0; call.loop < steps; call.loop++) {
        double *time = share_ns;
        for (int phase = 0; phase < kernel->phases; phase++)
            for (int share = 0; share < kernel->shares[phase]; share++) {
                TRY(kernel->run(&call, phase, share));
                if (share_ns) {
                    int64_t now = clock_ns();
                    *time++ += (double)(now - before);
                    before = clock_ns();
                }
            }
    }
    if (serial_ns)
        *serial_ns += (double)(clock_ns() - begin);
    return GRAPHI_OK;
}

static graphi_status run_all(const graphi_run *run, struct share_times *t, bool shares)
{
    const struct compiled *c = run->plan->compiled;
    for (int32_t task = 0; task < c->tasks; task++) {
        int32_t k = c->curve_of[task];
        bool counted = t->task[k] == task;
        TRY(run_timed(run, task, counted && shares ? t->share_ns + t->first[k] : NULL,
                      counted && !shares ? &t->serial_ns[k] : NULL));
    }
    return GRAPHI_OK;
}

static graphi_status rounds(graphi_run *run, const struct patience *patience, struct share_times *t, int *whole,
                            int *by_share)
{
    for (int round = 0; round < MOST_ROUNDS && (round < 2 || !patience_over(patience)); round++) {
        TRY(patience_stopped(patience));
        bool shares = round & 1;
        struct float_mode mode = float_mode_enter(); /* as workers will run them */
        graphi_status status = run_all(run, t, shares);
        float_mode_leave(mode);
        TRY(status);
        *whole += !shares;
        *by_share += shares;
    }
    return GRAPHI_OK;
}

/* The clock is read once a share: shares are scaled so that they add up to the operation timed as a whole. */
static void settle(const struct compiled *c, struct share_times *t, int whole, int by_share)
{
    for (int32_t k = 0; k < c->curves; k++) {
        const struct kernel *kernel = &c->task[t->task[k]].kernel;
        double *share = t->share_ns + t->first[k], sum = 0;
        int count = 0;
        for (int p = 0; p < kernel->phases; p++)
            count += kernel->shares[p];
        for (int i = 0; i < count; i++)
            sum += share[i] / by_share;
        t->serial_ns[k] = t->serial_ns[k] / whole > 1 ? t->serial_ns[k] / whole : 1;
        for (int i = 0; i < count; i++)
            share[i] = sum > 0 ? share[i] / by_share * (t->serial_ns[k] / sum) : t->serial_ns[k] / count;
    }
}

graphi_status measure_shares(graphi_run *run, const struct patience *patience, struct share_times *out)
{
    int whole = 0, by_share = 0;
    graphi_status status = allocate(run->plan->compiled, out);
    if (!status)
        status = graphi_run_execute(run); /* packed forms, caches, and results that later operations read */
    if (!status)
        status = rounds(run, patience, out, &whole, &by_share);
    if (status)
        share_times_free(out);
    else
        settle(run->plan->compiled, out, whole, by_share);
    return status;
}
