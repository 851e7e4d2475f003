/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan tells about itself: numbers, and the settings that were tried for it. Any thread. */
#include "base/hash.h"
#include "base/status.h"
#include "engine/compile/plan.h"
#include "engine/tune/race.h"
#include "graph/op.h"
#include "machine/machine.h"
#include "schedule/setting_canonical.h"

/* Numbers that are equal have one hash: a file may say -0.0, and is stored again as 0. */
static uint64_t hash_number(uint64_t hash, double value)
{
    if (value == 0)
        value = 0;
    return hash_bytes(hash, &value, sizeof value);
}

/* What policies decide by: times, which levels follow from, and how much longer operations take beside others. */
static uint64_t hash_curves(uint64_t hash, const graphi_plan *plan)
{
    for (int32_t k = 0; k < plan->compiled->curves; k++) {
        const struct cost_curve *curve = &plan->curves[k];
        for (int i = 0; i < curve->samples; i++)
            hash = hash_number(hash_number(hash_u64(hash, (uint64_t)curve->width[i]), curve->ns[i]),
                               curve->spread_ns[i]);
        hash = hash_number(hash, curve->beside);
    }
    return hash;
}

static uint64_t hash_allotment(uint64_t hash, const graphi_plan *plan)
{
    const struct allotment *a = plan->allotment;
    size_t tasks = (size_t)plan->compiled->tasks;
    if (!a)
        return hash;
    hash = hash_bytes(hash_bytes(hash, a->width, tasks * sizeof *a->width), a->key, tasks * sizeof *a->key);
    return hash_u64(hash, (uint64_t)a->fill | (uint64_t)a->narrower << 2 | (uint64_t)a->wider << 3 |
                              (uint64_t)a->in_order << 4 | (uint64_t)a->alone << 5 | (uint64_t)a->spread << 6);
}

void graphi_plan_get_info(const graphi_plan *plan, graphi_plan_info *info)
{
    if (!info)
        return;
    *info = (graphi_plan_info){0};
    if (!plan)
        return;
    const struct compiled *c = plan->compiled;
    *info = (graphi_plan_info){
        .setting = plan->setting,
        .nodes = c->tasks,
        .compile_ms = c->compile_ms,
        .arena_bytes = c->arena_bytes,
        .sum_intermediate_bytes = c->sum_intermediate_bytes,
        .live_maximum_bytes = c->live_maximum_bytes,
        .packed_bytes = c->packed_bytes,
        .workspace_bytes = c->workspace_bytes,
        .flops = c->flops,
        .bytes = c->bytes,
        .critical_path_ms = plan->critical_path_ns / 1e6,
        .lower_bound_ms = plan->lower_bound_ns / 1e6,
        .predicted_ms = plan->predicted_ns / 1e6,
        .measured_ms = plan->measured_ns / 1e6,
        .graph_width = plan->graph_width,
        .measured = plan->measured,
        .others = plan->others,
        .disturbed = plan->disturbed,
        .graph_hash = c->graph_hash,
        .machine_hash = machine_hash(plan->machine),
        .isa = isa_name(c->isa),
        .precision = c->options.precision,
    };
    uint64_t hash = hash_u64(hash_u64(hash_u64(HASH_START, c->graph_hash), info->machine_hash), c->hash);
    const graphi_setting setting = graphi_decision_setting(&plan->setting);
    info->hash = hash_allotment(hash_curves(setting_hash(hash, &setting), plan), plan);
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
    if (!plan || !out)
        return false;
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
