/* SPDX-License-Identifier: Apache-2.0 */
/* What --explain shows: of a plan the choice of its setting, the bound, memory, and every operation as the policy
 * will run it, which is the plan in virtual time; of a run what its policy has learned. Text, made once per command;
 * any thread. Usual size: 100 KB for thousands of operations. */
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/choose/simulator.h"
#include "engine/compile/rounding.h"
#include "engine/run/run.h"
#include "engine/show/recurrences.h"
#include "graph/op.h"
#include "machine/machine.h"
#include "schedule/policy.h"
#include "schedule/scheduler.h"
#include "schedule/widths.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BESIDE = 8, MOST_WIDTHS = 3 };

static graphi_status hand_out(graphi_status status, struct text *text, char **out)
{
    if (!status && (text->broken || !text->data))
        status = fail_memory("explanation", text->count);
    if (status)
        text_free(text);
    else
        *out = text->data;
    return status;
}

static double mb(int64_t bytes)
{
    return (double)bytes / 1e6;
}

static void explain_memory(const struct compiled *c, struct text *text)
{
    text_add(text, "memory:\n");
    text_add(text, "  arena %.3f MB, sequential live maximum %.3f MB (%.3f times), sum of intermediates %.3f MB\n",
             mb(c->arena_bytes), mb(c->live_maximum_bytes),
             c->live_maximum_bytes ? (double)c->arena_bytes / (double)c->live_maximum_bytes : 1,
             mb(c->sum_intermediate_bytes));
    text_add(text, "  by the graph's own order alone %.3f MB; %lld ordering edges added\n", mb(c->unordered_bytes),
             (long long)c->ordering_edges);
    text_add(text, "  inputs %.3f MB, packed %.3f MB, largest workspace %.3f MB\n", mb(c->input_bytes),
             mb(c->packed_bytes), mb(c->workspace_bytes));
}

/* The plan in virtual time, which passes by the durations of `truth`. */
struct start {
    int64_t ns;
    int32_t task;
};
struct played {
    const graphi_plan *plan;
    struct plan_simulator simulator;
    struct task_record *records;
    struct start *order;
    int32_t *running; /* when a task starts: those that do not end before */
    int running_count;
};

static int by_start(const void *a, const void *b)
{
    const struct start *x = a, *y = b;
    return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns) : (x->task > y->task) - (x->task < y->task);
}

static void played_close(struct played *p)
{
    simulator_close(&p->simulator);
    mem_free(p->records);
    mem_free(p->order);
    mem_free(p->running);
}

static graphi_status play(const graphi_plan *plan, const graphi_plan *truth, struct played *p)
{
    size_t tasks = (size_t)plan->compiled->tasks + 1;
    struct simulation simulation;
    *p = (struct played){.plan = plan,
                         .records = mem_zalloc_array(tasks, sizeof *p->records),
                         .order = mem_zalloc_array(tasks, sizeof *p->order),
                         .running = mem_zalloc_array(tasks, sizeof *p->running)};
    if (!p->records || !p->order || !p->running)
        return fail_memory("explanation", tasks * sizeof *p->records);
    const struct simulated what = simulated_plan(plan, truth);
    TRY(simulator_open(&what, &p->simulator));
    TRY(simulator_run(&p->simulator, p->records, &simulation));
    for (int32_t t = 0; t < plan->compiled->tasks; t++)
        p->order[t] = (struct start){p->records[t].start_ns, t};
    qsort(p->order, tasks - 1, sizeof *p->order, by_start);
    return GRAPHI_OK;
}

static void add_fastest(const graphi_machine *machine, const struct cost_curve *curve, struct text *text)
{
    struct fast_width best[MOST_WIDTHS];
    int count = widths_fastest(curve, machine->cores, machine->tiles, MOST_WIDTHS, best);
    for (int i = 0; i < count; i++)
        text_add(text, "%s x%d%s %.1f us", i ? "," : "", best[i].width, best[i].spread ? " spread" : "",
                 best[i].ns / 1e3);
}

/* The widths that take the least time, whatever was chosen, and whence they are known; where a model predicts them also
 * those that it took the place of. */
static void explain_widths(const graphi_plan *plan, int32_t class, struct text *text)
{
    const struct cost_curve *curve = &plan->curves[class];
    text_add(text, "; fastest");
    add_fastest(plan->machine, curve, text);
    if (curve->beside > 0)
        text_add(text, "; beside others %.2f times as long", curve->beside);
    text_add(text, "; curve %s", curve_source_name(curve->source));
    if (*curve->model)
        text_add(text, " by %s", curve->model);
    if (*curve->model && plan->observed) {
        text_add(text, ", %s are", curve_source_name(plan->observed[class].source));
        add_fastest(plan->machine, &plan->observed[class], text);
    }
}

/* Those that run when this one starts. */
static void explain_beside(const struct played *p, struct text *text)
{
    for (int i = 0; i < p->running_count && i < MOST_BESIDE; i++)
        text_add(text, "%s%d", i ? ", " : "; runs beside ", (int)p->running[i]);
    if (p->running_count > MOST_BESIDE)
        text_add(text, " and %d more", p->running_count - MOST_BESIDE);
}

static void explain_task(const struct played *p, int32_t t, struct text *text)
{
    const struct compiled *c = p->plan->compiled;
    const struct bound *bound = &c->task[t];
    const struct task_record *record = &p->records[t];
    const struct policy *policy = policy_decided(&p->plan->setting);
    const graphi_machine *machine = p->plan->machine;
    char name[160], type[96];
    node_text(c->graph, bound->node, name, sizeof name);
    text_add(text, "  %5d %-44s %-18s", (int)t, name, bound->kernel.name);
    for (int i = 0; i < bound->inputs + bound->outputs; i++) {
        type_text(&graph_value(c->graph, c->arguments.data[bound->argument + i].value)->type, type, sizeof type);
        text_add(text, "%s%s", i == bound->inputs ? " -> " : " ", type);
    }
    text_add(text, "  %.1f us x%d%s at %.1f us, level %.1f us",
             (double)(record->end_ns - record->start_ns) / 1e3, record->width,
             record->spread ? " spread" : "", (double)record->start_ns / 1e3, (double)p->plan->level[t] / 1e3);
    if (policy_decided(&p->plan->setting)->siblings && record->leader >= machine->cores)
        text_add(text, " on a sibling of core %d", machine->core[record->leader].sibling_of);
    if (record->inlined)
        text_add(text, ", inline");
    else
        explain_widths(p->plan, c->curve_of[t], text);
    explain_beside(p, text);
    if (policy->explain && !record->inlined)
        policy->explain(p->simulator.schedule, t, text);
    text_add(text, "\n");
}

static graphi_status explain_tasks(const graphi_plan *plan, const graphi_plan *truth, struct text *text)
{
    struct played p;
    graphi_status status = play(plan, truth, &p);
    if (!status)
        text_add(text,
                 "operations in virtual time (number, node, kernel, shapes; time, width, start, level; choice):\n");
    for (int32_t i = 0; i < plan->compiled->tasks && !status; i++) {
        int left = 0;
        for (int k = 0; k < p.running_count; k++)
            if (p.records[p.running[k]].end_ns > p.order[i].ns)
                p.running[left++] = p.running[k];
        p.running_count = left;
        explain_task(&p, p.order[i].task, text);
        p.running[p.running_count++] = p.order[i].task;
    }
    played_close(&p);
    return status;
}

static void explain_durations(const graphi_plan *plan, struct text *text)
{
    const struct compiled *c = plan->compiled;
    const char *cpu = c->machine->captured ? c->machine->cpu : *c->timed_on ? c->timed_on : "another machine";
    if (plan->machine->captured)
        text_add(text, "%s", plan->measured ? "measured" : "estimated");
    else if (!plan->measured)
        text_add(text, "simulated, estimated from the rates of %s", plan->machine->name);
    else
        text_add(text, "simulated, scaled from measurements on %s", cpu);
}

/* Times of the whole step, and how far they are from the bound that no schedule beats. */
static void explain_step(const graphi_plan *plan, const graphi_plan *truth, struct text *text)
{
    const struct {
        const char *what;
        double ns;
    } steps[] = {{truth == plan ? "predicted" : "by the model", plan->predicted_ns}, {"measured", plan->measured_ns}};
    text_add(text, "durations ");
    explain_durations(plan, text);
    text_add(text, "; critical path %.3f ms, lower bound %.3f ms", truth->critical_path_ns / 1e6,
             truth->lower_bound_ns / 1e6);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].ns > 0 && truth->lower_bound_ns > 0)
            text_add(text, ", %s step %.3f ms (%+.1f %% from the bound)", steps[i].what, steps[i].ns / 1e6,
                     100 * (steps[i].ns / truth->lower_bound_ns - 1));
    text_add(text, "\n");
}

/* truth: the plan, or, where a model's curves direct it, one of those that it took the place of. */
static graphi_status explain(const graphi_plan *plan, const graphi_plan *truth, bool operations, struct text *text)
{
    const struct compiled *c = plan->compiled;
    text_add(text, "graph %016llx on %smachine %016llx (%s, %d cores), ", (unsigned long long)c->graph_hash,
             plan->machine->captured ? "" : "simulated ", (unsigned long long)machine_hash(plan->machine),
             plan->machine->name, plan->machine->cores);
    if (!plan->machine->captured && strcmp(plan->machine->isa, isa_name(c->isa)) != 0)
        text_add(text, "instruction set %s, kernels of ", plan->machine->isa);
    else
        text_add(text, "instruction set ");
    text_add(text, "%s\n", isa_name(c->isa));
    if (rounding_alters(c->rounding)) {
        text_add(text, "rounds otherwise than without --allow-rounding: ");
        rounding_names(rounding_alters(c->rounding), ", ", text);
        text_add(text, "\n");
    }
    text_add(text, "%s", plan->why.data ? plan->why.data : "");
    text->broken |= plan->why.broken; /* a sentence found no memory when the plan was made */
    if (plan->others > 0 && !strstr(text->data ? text->data : "", "measured while others")) /* old stored ones say it */
        text_add(text, "measured while others used %.0f %% of the cores\n", 100 * plan->others);
    explain_step(plan, truth, text);
    explain_recurrences(plan, text);
    text_add(text, "compiled in %.1f ms: %d operations, %d packed forms kept between runs, %.3f GFLOP, %.3f GB\n",
             c->compile_ms, (int)c->tasks, (int)c->prepared.count, c->flops / 1e9, c->bytes / 1e9);
    explain_memory(c, text);
    return operations ? explain_tasks(plan, truth, text) : GRAPHI_OK;
}

graphi_status graphi_plan_explain(const graphi_plan *plan, bool operations, char **out)
{
    GIVEN(plan);
    GIVEN(out);
    struct text text = {0};
    graphi_plan *observed = NULL;
    graphi_status status = GRAPHI_OK;
    const graphi_setting own = graphi_decision_setting(&plan->setting);
    const struct plan_parts parts = {.machine = plan->machine,
                                     .curves = plan->observed,
                                     .measured = plan->measured,
                                     .setting = &own};
    if (plan->observed)
        status = plan_make(plan->compiled, &parts, &observed);
    if (!status)
        status = explain(plan, observed ? observed : plan, operations, &text);
    graphi_plan_destroy(observed);
    return hand_out(status, &text, out);
}

/* Of each kind the kernel of its first task. */
static graphi_status explain_learned(const graphi_run *run, const struct policy *policy, struct text *text)
{
    const struct compiled *c = run->plan->compiled;
    const char **kinds = mem_zalloc_array((size_t)c->kinds + 1, sizeof *kinds);
    if (!kinds)
        return fail_memory("explanation", (size_t)c->kinds * sizeof *kinds);
    for (int32_t t = c->tasks - 1; t >= 0; t--)
        kinds[c->kind[t]] = c->task[t].kernel.name;
    policy->learned(run->schedule, kinds, text);
    mem_free(kinds);
    return GRAPHI_OK;
}

graphi_status graphi_run_explain(const graphi_run *run, char **out)
{
    GIVEN(run);
    GIVEN(out);
    struct text text = {0};
    graphi_status status = GRAPHI_OK;
    const struct policy *policy = policy_decided(&run->plan->setting);
    text_add(&text, "%llu executions under policy %s, last %.3f ms\n", (unsigned long long)run->info.executions,
             graphi_policy_name(run->plan->setting.policy), run->info.last_ms);
    if (run->schedule && policy->learned)
        status = explain_learned(run, policy, &text);
    return hand_out(status, &text, out);
}
