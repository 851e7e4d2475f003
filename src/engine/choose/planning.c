/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a compiled graph: a draft in which the setting is chosen (setting.c) and widths are searched (allot.c), or
 * given, becomes a plan, which then stays as it is. One thread a plan. */
#include "engine/choose/planning.h"

#include "base/memory.h"
#include "base/status.h"
#include "engine/choose/allot.h"
#include "engine/choose/allotment.h"
#include "engine/choose/draft.h"
#include "engine/choose/setting.h"
#include "engine/compile/classes.h"
#include "engine/compile/compile.h"

#include <string.h>

static struct cost_curve *copy_curves(const struct compiled *compiled, const struct cost_curve *curves)
{
    struct cost_curve *own = mem_zalloc_array((size_t)compiled->curves + 1, sizeof *own);
    if (own && curves)
        memcpy(own, curves, (size_t)compiled->curves * sizeof *own);
    return own;
}

/* Everything that a plan decides. */
static graphi_status decide(struct draft *draft, const struct plan_parts *parts)
{
    draft->curves = copy_curves(draft->compiled, parts->curves);
    draft->level = mem_zalloc_array((size_t)draft->compiled->tasks + 1, sizeof *draft->level);
    if (!draft->curves || !draft->level)
        return fail_memory("plan", (size_t)draft->compiled->tasks * sizeof *draft->level);
    if (!parts->curves)
        classes_estimate(draft->compiled, draft->machine, draft->curves);
    TRY(setting_choose(draft, parts->setting));
    TRY(draft_update(draft));
    /* a searched order would hold up what others wait for behind messages */
    return draft->allotment || draft->compiled->waits_count ? GRAPHI_OK : allot_search(draft);
}

static graphi_status finish(struct compiled *compiled, const struct draft *draft, const struct cost_curve *observed,
                            graphi_plan **out)
{
    graphi_plan *plan = mem_zalloc(sizeof *plan);
    struct cost_curve *kept = plan && observed ? copy_curves(compiled, observed) : NULL;
    if (!plan || (observed && !kept)) {
        mem_free(plan);
        return fail_memory("plan", sizeof *plan);
    }
    *plan = (graphi_plan){.compiled = compiled_keep(compiled),
                          .machine = draft->machine,
                          .setting = setting_decision(&draft->setting),
                          .decided = setting_decide(&draft->setting, draft->machine),
                          .curves = draft->curves,
                          .observed = kept,
                          .level = draft->level,
                          .allotment = draft->allotment,
                          .tasks = draft->tasks,
                          .measured = draft->measured,
                          .critical_path_ns = draft->critical_path_ns,
                          .work_ns = draft->work_ns,
                          .lower_bound_ns = draft->lower_bound_ns,
                          .predicted_ns = draft->predicted_ns,
                          .widths_bound_ns = draft->widths_bound_ns,
                          .searched = draft->searched,
                          .graph_width = draft->graph_width,
                          .why = draft->why};
    *out = plan;
    return GRAPHI_OK;
}

graphi_status plan_make(struct compiled *compiled, const struct plan_parts *parts, graphi_plan **out)
{
    struct draft draft = {.compiled = compiled,
                          .machine = parts->machine,
                          .measured = parts->measured,
                          .allotment = parts->allotment};
    graphi_status status = decide(&draft, parts);
    if (!status)
        status = finish(compiled, &draft, parts->observed, out);
    if (!status)
        return GRAPHI_OK;
    mem_free(draft.curves);
    mem_free(draft.level);
    allotment_destroy(draft.allotment);
    text_free(&draft.why);
    return status;
}

graphi_status plan_compile(const graphi_graph *graph, const graphi_machine *machine, const graphi_plan_options *options,
                           uint32_t rounding, graphi_plan **out)
{
    static const graphi_plan_options defaults;
    struct compiled *compiled = NULL;
    options = options ? options : &defaults;
    TRY(compiled_create(graph, machine, options, rounding, &compiled));
    graphi_status status =
        plan_make(compiled, &(struct plan_parts){.machine = machine, .setting = &options->setting}, out);
    compiled_release(compiled);
    mem_trim(); /* passes and kernels' parameters before they are shared: two to three times what the plan keeps */
    return status;
}

graphi_status graphi_plan_create(const graphi_graph *graph, const graphi_machine *machine,
                                 const graphi_plan_options *options, graphi_plan **out)
{
    GIVEN(graph);
    GIVEN(machine);
    GIVEN(out);
    return plan_compile(graph, machine, options, 0, out);
}

void graphi_plan_destroy(graphi_plan *plan)
{
    if (!plan)
        return;
    compiled_release(plan->compiled);
    mem_free(plan->curves);
    mem_free(plan->observed);
    mem_free(plan->level);
    allotment_destroy(plan->allotment);
    text_free(&plan->why);
    for (size_t i = 0; i < plan->tried.count; i++)
        mem_free(plan->tried.data[i].ms);
    array_free(&plan->tried);
    mem_free(plan);
}

graphi_status plan_schedule(const graphi_plan *plan, struct schedule **out)
{
    struct schedule *schedule;
    TRY(schedule_create(&plan->tasks, plan->decided, &schedule));
    graphi_status status = schedule_decide(schedule);
    if (status)
        schedule_destroy(schedule);
    else
        *out = schedule;
    return status;
}

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
