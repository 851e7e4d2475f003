/* SPDX-License-Identifier: Apache-2.0 */
/* What tuning weighed, kept with the plan: settings with predicted times and, of those that raced, the time of every
 * execution. Usual size: 26 settings on two cores, at most eight of which raced for 5 to 60 rounds. */
#include "base/status.h"
#include "engine/compile/plan.h"
#include "engine/tune/race.h"

#include <string.h>

graphi_status tried_add(graphi_plan *plan, const struct tried *tried)
{
    struct tried own = *tried;
    const size_t bytes = (size_t)tried->rounds * sizeof *own.ms;
    own.ms = bytes ? mem_alloc(bytes) : NULL;
    if (bytes && !own.ms)
        return fail_memory("tuning", bytes);
    if (bytes)
        memcpy(own.ms, tried->ms, bytes);
    if (array_push(&plan->tried, own))
        return GRAPHI_OK;
    mem_free(own.ms);
    return fail_memory("tuning", sizeof own);
}

void tried_free(graphi_plan *plan)
{
    for (size_t i = 0; i < plan->tried.count; i++)
        mem_free(plan->tried.data[i].ms);
    array_free(&plan->tried);
}

/* 0 where one of them did not run. */
static double ratio_of(const struct tried *a, const struct tried *b)
{
    double ratio[RACE_ROUNDS];
    const int count = a->rounds < b->rounds ? a->rounds : b->rounds;
    for (int i = 0; i < count; i++)
        ratio[i] = a->ms[i] / b->ms[i];
    return race_middle(ratio, count);
}

bool graphi_plan_trial_at(const graphi_plan *plan, int i, graphi_trial *out)
{
    if (i < 0 || (size_t)i >= plan->tried.count)
        return false;
    const struct tried *t = &plan->tried.data[i];
    *out = (graphi_trial){.setting = t->setting, .predicted_ms = t->predicted_ns / 1e6, .rounds = t->rounds,
                          .ms = t->ms, .median_ms = race_middle(t->ms, t->rounds), .chosen = t->chosen};
    for (size_t k = 0; k < plan->tried.count; k++)
        if (plan->tried.data[k].chosen)
            out->ratio = ratio_of(t, &plan->tried.data[k]);
    return true;
}
