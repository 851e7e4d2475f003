/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan tells about itself: numbers, and the text that --explain shows. */
#include "base/hash.h"
#include "base/status.h"
#include "engine/plan.h"
#include "graph/op.h"
#include "machine/machine.h"

void graphi_plan_get_info(const graphi_plan *plan, graphi_plan_info *info)
{
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
        .graph_hash = c->graph_hash,
        .machine_hash = c->machine_hash,
    };
    const graphi_setting *s = &plan->setting;
    uint64_t hash = hash_u64(hash_u64(hash_u64(HASH_START, c->graph_hash), c->machine_hash), c->hash);
    const int64_t words[] = {s->policy, s->driver, s->executors, s->width, s->backward_executors, s->depth, s->no_inline,
                             s->light, s->candidates, s->tolerance, s->unpinned};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_u64(hash, (uint64_t)words[i]);
    info->hash = hash_u64(hash, s->seed);
}

static double mb(int64_t bytes) { return (double)bytes / 1e6; }

static void explain_memory(const struct compiled *c, struct text *text)
{
    text_add(text, "memory:\n");
    text_add(text, "  arena %.3f MB, sequential live maximum %.3f MB (%.3f times), sum of intermediates %.3f MB\n",
             mb(c->arena_bytes), mb(c->live_maximum_bytes),
             c->live_maximum_bytes ? (double)c->arena_bytes / (double)c->live_maximum_bytes : 1, mb(c->sum_intermediate_bytes));
    text_add(text, "  by the graph's own order alone %.3f MB; %lld ordering edges added\n", mb(c->unordered_bytes),
             (long long)c->ordering_edges);
    text_add(text, "  inputs %.3f MB, packed %.3f MB, largest workspace %.3f MB\n", mb(c->input_bytes), mb(c->packed_bytes),
             mb(c->workspace_bytes));
}

static void explain_task(const graphi_plan *plan, int32_t t, struct text *text)
{
    const struct compiled *c = plan->compiled;
    const struct bound *bound = &c->task[t];
    const struct cost_curve *curve = &plan->curves[c->curve_of[t]];
    char name[160], type[96];
    node_text(c->graph, bound->node, name, sizeof name);
    text_add(text, "  %5d %-44s %-18s", (int)t, name, bound->kernel.name);
    for (int i = 0; i < bound->inputs + bound->outputs; i++) {
        type_text(&graph_value(c->graph, c->arguments.data[bound->argument + i].value)->type, type, sizeof type);
        text_add(text, "%s%s", i == bound->inputs ? " -> " : " ", type);
    }
    text_add(text, "  %.1f us x%d, level %.1f us%s\n", curve_ns(curve, plan->setting.width) / 1e3, plan->setting.width,
             (double)plan->level[t] / 1e3, c->flags[t] & TASK_INLINE ? ", inline" : "");
}

/* Times of the whole step, and how far they are from the bound that no schedule beats. */
static void explain_step(const graphi_plan *plan, struct text *text)
{
    const struct {
        const char *what;
        double ns;
    } steps[] = {{"predicted", plan->predicted_ns}, {"measured", plan->measured_ns}};
    text_add(text, "durations %s; critical path %.3f ms, lower bound %.3f ms", plan->measured ? "measured" : "estimated",
             plan->critical_path_ns / 1e6, plan->lower_bound_ns / 1e6);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].ns > 0 && plan->lower_bound_ns > 0)
            text_add(text, ", %s step %.3f ms (%+.1f %% from the bound)", steps[i].what, steps[i].ns / 1e6,
                     100 * (steps[i].ns / plan->lower_bound_ns - 1));
    text_add(text, "\n");
}

graphi_status graphi_plan_explain(const graphi_plan *plan, bool operations, char **out)
{
    const struct compiled *c = plan->compiled;
    struct text text = {0};
    text_add(&text, "graph %016llx on machine %016llx (%s, %d cores), instruction set %s\n",
             (unsigned long long)c->graph_hash, (unsigned long long)c->machine_hash, plan->machine->name, plan->machine->cores,
             isa_name(c->isa));
    text_add(&text, "%s", plan->why.data ? plan->why.data : "");
    explain_step(plan, &text);
    text_add(&text, "compiled in %.1f ms: %d operations, %d packed forms kept between runs, %.3f GFLOP, %.3f GB\n",
             c->compile_ms, (int)c->tasks, (int)c->prepared.count, c->flops / 1e9, c->bytes / 1e9);
    explain_memory(c, &text);
    if (operations)
        text_add(&text, "operations (number, node, kernel, shapes, time, level):\n");
    for (int32_t t = 0; operations && t < c->tasks; t++)
        explain_task(plan, t, &text);
    if (text.broken || !text.data) {
        text_free(&text);
        return fail_memory("explanation", text.count);
    }
    *out = text.data;
    return GRAPHI_OK;
}
