/* SPDX-License-Identifier: Apache-2.0 */
/* How long tasks take, before anything was measured: the larger of arithmetic and memory traffic at the rates of one
 * core, from which curve_extend.c makes times at other widths. Tasks of one kind with equal attributes and shapes form
 * a class with one curve; measuring replaces curves, never classes. Compile time only. */
#include "base/hash.h"
#include "base/index.h"
#include "base/status.h"
#include "engine/cost/curve_extend.h"
#include "engine/compile/plan.h"
#include "graph/op.h"
#include "machine/machine.h"
#include "schedule/policy.h"

#include <math.h>
#include <string.h>

/* Rates assumed where the machine was not measured; the order of magnitude of one current core. */
static const double usual_gflops = 60, usual_core_gbs = 12, usual_barrier_ns = 150, start_ns = 60;

/* A task below this is run by whoever made it ready. */
static const double tiny_ns = 600, small_ns = 10000;

static double or_usual(double measured, double usual) { return measured > 0 ? measured : usual; }

struct cost_rates cost_rates(const graphi_machine *machine)
{
    struct cost_rates r = {.core_gflops = or_usual(machine->core_gflops, usual_gflops),
                           .core_gbs = or_usual(machine->core_bandwidth_gbs, usual_core_gbs),
                           .barrier_ns = or_usual(machine->barrier_ns, usual_barrier_ns)};
    r.all_gbs = or_usual(machine->bandwidth_gbs, r.core_gbs * machine->cores);
    return r;
}

double cost_estimate(const graphi_machine *machine, const struct kernel *kernel)
{
    const struct cost_rates rate = cost_rates(machine);
    if (kernel->known_ns > 0)
        return fmin(kernel->known_ns, MOST_NS);
    return fmin(start_ns + fmax(kernel->flops / rate.core_gflops, kernel->bytes / rate.core_gbs), MOST_NS);
}

/* What alters kernels, or their measured time, without showing in the graph or in their work, as the algorithm of a
 * convolution does. */
static uint64_t options_hash(const struct compiled *c)
{
    uint64_t hash = hash_u64(hash_u64(HASH_START, (uint64_t)c->isa), (uint64_t)c->options.precision);
    return hash_u64(hash, (uint64_t)c->options.streaming | (uint64_t)c->options.check_numerics << 8);
}

/* The same in every process and for every graph that has such an operation: it names stored curves. */
static uint64_t class_key(const struct compiled *c, const struct bound *bound, uint64_t options)
{
    const struct node *node = graph_node(c->graph, bound->node);
    const struct kernel *kernel = &bound->kernel;
    uint64_t hash = hash_string(hash_string(options, node->kind->name), kernel->name);
    hash = graph_hash_attributes(hash, node);
    for (int i = 0; i < bound->inputs + bound->outputs; i++) {
        const struct argument *argument = &c->arguments.data[bound->argument + i];
        const struct array_desc *desc = &c->place[argument->value].desc;
        hash = hash_u64(hash, (uint64_t)desc->dtype * 16 + (uint64_t)desc->rank);
        for (int d = 0; d < desc->rank; d++)
            hash = hash_u64(hash_u64(hash, (uint64_t)desc->dims[d]), (uint64_t)desc->strides[d]);
    }
    for (int p = 0; p < kernel->phases; p++)
        hash = hash_u64(hash, (uint64_t)kernel->shares[p]);
    return hash_u64(hash, (uint64_t)(kernel->flops + kernel->bytes + kernel->known_ns));
}

uint64_t plan_class_key(const graphi_plan *plan, int32_t class)
{
    return hash_u64(plan->compiled->class_key[class], plan->setting.unpinned);
}

/* Distinct keys, numbered as they come. */
struct keys {
    ARRAY(uint64_t) list;
    struct index index;
};

static int32_t number_of(struct keys *keys, uint64_t key)
{
    size_t seen = 0;
    int32_t number = index_next(&keys->index, key, &seen);
    if (number >= 0)
        return number;
    number = (int32_t)keys->list.count;
    return index_add(&keys->index, key, number) && array_push(&keys->list, key) ? number : -1;
}

/* Of every class its first task, and how many it has. */
static bool count_classes(struct compiled *c)
{
    c->class_task = mem_zalloc_array((size_t)c->curves + 1, sizeof *c->class_task);
    c->class_tasks = mem_zalloc_array((size_t)c->curves + 1, sizeof *c->class_tasks);
    for (int32_t t = 0; t < c->tasks && c->class_task && c->class_tasks; t++)
        if (!c->class_tasks[c->curve_of[t]]++)
            c->class_task[c->curve_of[t]] = t;
    return c->class_task && c->class_tasks;
}

static uint8_t scalability_class(const char *name)
{
    if (!name || !*name)
        return 0;
    return strcmp(name, "gemm") == 0 ? 2 : strcmp(name, "conv") == 0 ? 3 : 1;
}

graphi_status cost_classes(struct compiled *c)
{
    struct keys classes = {0}, kinds = {0};
    bool enough = true;
    uint64_t options = options_hash(c);
    for (int32_t t = 0; t < c->tasks; t++) {
        const struct bound *bound = &c->task[t];
        const struct node *node = graph_node(c->graph, bound->node);
        double ns = cost_estimate(c->machine, &bound->kernel);
        uint64_t class = class_key(c, bound, options);
        c->form = hash_u64(c->form, class);
        c->curve_of[t] = number_of(&classes, class);
        c->kind[t] = number_of(&kinds, hash_string(HASH_START, node->kind->name));
        enough = enough && c->curve_of[t] >= 0 && c->kind[t] >= 0;
        c->scalability[t] = scalability_class(node->kind->scalability);
        c->flags[t] =
            (uint8_t)((ns < tiny_ns ? TASK_INLINE : 0) | (ns < small_ns ? TASK_LIGHT : 0) |
                      (node->backward ? TASK_BACKWARD : 0) | (c->scalability[t] == 1 ? TASK_MEMORY_BOUND : 0));
        c->flops += bound->kernel.flops;
        c->bytes += bound->kernel.bytes;
    }
    c->curves = (int32_t)classes.list.count;
    c->kinds = (int32_t)kinds.list.count;
    c->class_key = classes.list.data;
    index_free(&classes.index);
    index_free(&kinds.index);
    array_free(&kinds.list);
    return enough && count_classes(c) ? GRAPHI_OK : fail_memory("cost classes", (size_t)c->tasks * sizeof(uint64_t));
}

void cost_curves(const struct compiled *c, const graphi_machine *machine, struct cost_curve *curves)
{
    for (int32_t t = 0; t < c->tasks; t++) {
        struct cost_curve *curve = &curves[c->curve_of[t]];
        if (curve->samples)
            continue;
        const struct kernel *kernel = &c->task[t].kernel;
        struct class_model model = curves_model(machine, kernel, c->scalability[t], cost_estimate(machine, kernel));
        curves_extend(&model, machine, curve);
    }
}

/* Threads of an operation on whose time levels are counted: those of the setting's executors. A policy with teams of
 * its own has none, and its decisions must not depend on how the same workers were split. */
static int level_width(const graphi_setting *s)
{
    return s->width > 0 && !policy_of(s)->own_teams ? s->width : 1;
}

/* By times as short as circumstances were measured to make them. */
enum times { ALONE, TOGETHER, IN_ORDER, TIMES };

static double factor(const struct cost_curve *curve, enum times times)
{
    return times == ALONE ? 1 : curve_least_factor(curve, times == IN_ORDER);
}

/* By executors that join, whose time is known beside others, a task may be shared out better than any team does it
 * (simulated_join.c). */
static double fastest_ns(const graphi_plan *plan, const struct cost_curve *curve)
{
    const bool joined = plan->setting.join > 0 && curve->beside > 0;
    return joined ? fmin(curve_least_ns(curve), curve_ns(curve, 1) / plan->setting.executors) : curve_least_ns(curve);
}

/* The longest path at every task's fastest width, and the least work. */
static void add_task(const graphi_plan *plan, int32_t task, enum times times, double *fastest, double *longest,
                     double *work)
{
    const struct compiled *c = plan->compiled;
    const struct cost_curve *curve = &plan->curves[c->curve_of[task]];
    double after = 0;
    *work += curve_least_work(curve) * factor(curve, times);
    for (int32_t e = c->edges_begin[task]; e < c->edges_begin[task + 1]; e++)
        after = fmax(after, fastest[c->edges[e]]);
    fastest[task] = after + fastest_ns(plan, curve) * factor(curve, times);
    *longest = fmax(*longest, fastest[task]);
}

/* The critical path, the work, and the lower bound of a schedule, which leaves what siblings of cores add
 * (SIBLING_YIELD) to the policy that uses them. One in array order, where operands were just written, is one alone. */
static graphi_status cost_bounds(graphi_plan *plan)
{
    const int32_t tasks = plan->compiled->tasks;
    double longest[TIMES] = {0}, work[TIMES] = {0}, bound[TIMES];
    double *fastest = mem_zalloc_array((size_t)tasks + 1, sizeof *fastest);
    if (!fastest)
        return fail_memory("bounds", (size_t)tasks * sizeof *fastest);
    for (int times = ALONE; times < TIMES; times++) {
        for (int32_t t = tasks - 1; t >= 0; t--)
            add_task(plan, t, (enum times)times, fastest, &longest[times], &work[times]);
        bound[times] = fmax(longest[times], work[times] / plan->machine->cores);
    }
    mem_free(fastest);
    plan->critical_path_ns = longest[ALONE];
    plan->work_ns = work[ALONE];
    plan->lower_bound_ns = fmin(bound[TOGETHER], bound[IN_ORDER]);
    return GRAPHI_OK;
}

graphi_status cost_levels(graphi_plan *plan)
{
    const struct compiled *c = plan->compiled;
    const int width = level_width(&plan->setting);
    for (int32_t t = c->tasks - 1; t >= 0; t--) {
        int64_t level = 0;
        for (int32_t e = c->edges_begin[t]; e < c->edges_begin[t + 1]; e++)
            level = plan->level[c->edges[e]] > level ? plan->level[c->edges[e]] : level;
        plan->level[t] = level + (int64_t)curve_ns(&plan->curves[c->curve_of[t]], width) + 1;
    }
    return cost_bounds(plan);
}
