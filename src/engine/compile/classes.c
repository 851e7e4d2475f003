/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of a compiled graph: tasks of one kind with equal attributes and shapes share a curve; measuring replaces
 * curves, never classes. Compile time only; any thread. Usual size: 100 classes of 3,000 tasks. */
#include "engine/compile/classes.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/status.h"
#include "engine/cost/cost.h"
#include "graph/op.h"

#include <string.h>

/* A task below this is run by whoever made it ready. */
static const double tiny_ns = 600, small_ns = 10000;

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

graphi_status classes_find(struct compiled *c)
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

void classes_estimate(const struct compiled *c, const graphi_machine *machine, struct cost_curve *curves)
{
    for (int32_t k = 0; k < c->curves; k++) {
        const struct kernel *kernel = &c->task[c->class_task[k]].kernel;
        const int scalability = c->scalability[c->class_task[k]];
        struct class_model model = curves_model(machine, kernel, scalability, cost_estimate(machine, kernel));
        curves_extend(&model, machine, &curves[k]);
    }
}

struct class_model class_model_of(const struct compiled *c, int32_t class, double serial_ns,
                                  const graphi_machine *here, const graphi_machine *there)
{
    const struct kernel *kernel = &c->task[c->class_task[class]].kernel;
    double ratio = cost_estimate(there, kernel) / cost_estimate(here, kernel);
    return curves_model(there, kernel, c->scalability[c->class_task[class]], serial_ns * ratio);
}

void classes_extend(const graphi_plan *plan, const graphi_machine *machine, struct cost_curve *curves)
{
    for (int32_t k = 0; k < plan->compiled->curves; k++) {
        curves[k] = plan->curves[k];
        if (machine == plan->machine)
            continue;
        struct class_model model = class_model_of(plan->compiled, k, curves[k].ns[0], plan->machine, machine);
        curves_extend(&model, machine, &curves[k]);
        curves[k].source = plan->curves[k].source;
        memcpy(curves[k].model, plan->curves[k].model, sizeof curves[k].model);
    }
}

struct class_keys plan_class_keys(const graphi_plan *plan)
{
    return (struct class_keys){plan->compiled->class_key, plan->compiled->curves, !plan->setting.pinned};
}
