/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a stage of a path (stage.h). Any number of threads run one. */
#include "flow/stage.h"

#include "base/memory.h"

graphi_status stage_create(struct stage **out)
{
    struct stage *stage = mem_zalloc(sizeof *stage);
    if (!stage)
        return fail_memory("plan", sizeof *stage);
    atomic_init(&stage->holders, 1);
    *out = stage;
    return GRAPHI_OK;
}

void stage_drop(struct stage *stage)
{
    if (!stage || atomic_fetch_sub_explicit(&stage->holders, 1, memory_order_acq_rel) != 1) /* pairs with itself */
        return;
    for (size_t i = 0; i < stage->constants.count; i++)
        value_drop(stage->constants.data[i].content);
    array_free(&stage->constants);
    array_free(&stage->moves);
    array_free(&stage->host);
    array_free(&stage->drops);
    segment_free(stage->segment);
    mem_free(stage);
}

/* The outputs of an If are those of the branch. */
static graphi_status join(struct interpreter *run, const struct host_step *step)
{
    for (int i = 0; i < step->node->outs; i++) {
        graphi_tensor *value =
            (size_t)i < step->join->outputs.count ? interpreter_value(run, step->join->outputs.data[i]) : NULL;
        if (step->node->out[i] < 0)
            continue;
        if (!value)
            return fail(GRAPHI_INVALID, step->node->where, "found no output %d of the body, expected one", i);
        interpreter_set(run, step->node->out[i], value_keep(value));
    }
    return GRAPHI_OK;
}

graphi_status host_step_run(const struct host_step *step, struct interpreter *run, graph_run_fn *graph_run)
{
    return step->join ? join(run, step) : interpreter_node(run, step->node, graph_run);
}

graphi_status stage_begin(const struct stage *stage, struct interpreter *run)
{
    for (size_t i = 0; i < stage->constants.count; i++)
        interpreter_set(run, stage->constants.data[i].number, value_keep(stage->constants.data[i].content));
    for (size_t i = 0; i < stage->moves.count; i++)
        interpreter_set(run, stage->moves.data[i].to, value_keep(run->values[stage->moves.data[i].from]));
    return stage->segment ? segment_run(stage->segment, run->values) : GRAPHI_OK;
}

graphi_status stage_run(const struct stage *stage, struct interpreter *run, graph_run_fn *graph_run)
{
    TRY(stage_begin(stage, run));
    for (size_t i = 0; i < stage->host.count; i++)
        TRY(host_step_run(&stage->host.data[i], run, graph_run));
    for (size_t i = 0; i < stage->drops.count; i++)
        interpreter_set(run, stage->drops.data[i], NULL);
    return GRAPHI_OK;
}
