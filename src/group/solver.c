/* SPDX-License-Identifier: Apache-2.0 */
/* What a solver has, made on its own thread so that its pages are first touched where it runs: cores, graph, plans,
 * state, runs and blocks. Usual time: that of making two plans. */
#include "group/solver.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphi/lease.h"
#include "graphi/place.h"

/* --- cores --- */

static int cores_of(const graphi_machine *machine)
{
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    return info.cores;
}

/* Solvers that take turns share cores. */
static graphi_status take_part(struct solver *s)
{
    const struct graphi_group *g = s->group;
    const graphi_part_options how = {.oversubscribe = g->how.oversubscribe};
    TRY(graphi_machine_part(g->how.machine, s->index, g->by_node ? 0 : g->how.solvers, &how, &s->machine));
    s->cores = cores_of(s->machine);
    return GRAPHI_OK;
}

/* --- plans --- */

static graphi_plan_options plan_options(const struct solver *s, bool gradients)
{
    const struct graphi_group *g = s->group;
    graphi_plan_options options = g->how.plan ? *g->how.plan : (graphi_plan_options){0};
    options.outputs = NULL;
    options.no_updates = gradients;
    if (g->how.oversubscribe)
        options.setting = (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1};
    else if (g->how.must_place)
        options.setting.pin = GRAPHI_ON;
    return options;
}

static graphi_status build(struct solver *s)
{
    struct graphi_group *g = s->group;
    pthread_mutex_lock(&g->building);
    const graphi_status status = g->how.build(g->how.context, s->rows, &s->graph);
    pthread_mutex_unlock(&g->building);
    return status;
}

static graphi_status make_plans(struct solver *s)
{
    const struct graphi_group *g = s->group;
    const float rows = (float)g->how.batch;
    float weight[2];
    for (int i = 0; i < 2 && g->how.reduction == GRAPHI_REDUCTION_PAIR; i++)
        weight[i] = (float)g->solver[i].rows / rows;
    TRY(build(s));
    TRY(split_open(s->graph, g->how.reduction == GRAPHI_REDUCTION_PAIR ? weight : NULL, &s->split));
    const graphi_plan_options gradients = plan_options(s, true), updates = plan_options(s, false);
    TRY(graphi_plan_create(s->split.gradient, s->machine, &gradients, &s->gradient_plan));
    return graphi_plan_create(s->split.update, s->machine, &updates, &s->update_plan);
}

/* --- state and runs --- */

/* The first solver's state is the group's. */
static graphi_status make_state(struct solver *s)
{
    struct graphi_group *g = s->group;
    if (s->index)
        TRY(graphi_state_create(s->split.update, g->how.seed, &s->own_state));
    else if (!g->how.state)
        TRY(graphi_state_create(g->graph, g->how.seed, &g->own_state));
    else
        TRY(graphi_state_extend(g->how.state, g->graph));
    if (!s->index)
        g->state = g->how.state ? g->how.state : g->own_state;
    s->state = s->index ? s->own_state : g->state;
    return GRAPHI_OK;
}

/* What is carried from step to step are rows of the state's parameter. */
static graphi_status check_carried(const struct solver *s)
{
    const struct graphi_group *g = s->group;
    if (g->ranks > 1 && s->split.carried.count)
        return fail(GRAPHI_UNSUPPORTED, s->split.carried.data[0].parameter,
                    "found a parameter of samples beside %d ranks, expected one process, or a network without",
                    g->ranks);
    for (size_t i = 0; i < s->split.carried.count; i++) {
        const struct carried *carried = &s->split.carried.data[i];
        const int32_t value = graph_find_source(g->graph, carried->parameter);
        const struct value_type *type = &graph_value(g->graph, value)->type;
        if (type->rank && type->dims[0] == g->how.batch &&
            carried->bytes / (size_t)s->rows * (size_t)g->how.batch == (size_t)type_bytes(type))
            continue;
        char text[96];
        type_text(type, text, sizeof text);
        return fail(GRAPHI_UNSUPPORTED, carried->parameter,
                    "found %s of a batch of %lld, expected a row for each sample in dimension 0", text,
                    (long long)g->how.batch);
    }
    return GRAPHI_OK;
}

static graphi_status find_ports(struct solver *s)
{
    const size_t count = s->split.summed.count;
    struct solver_ports *p = &s->ports;
    p->gradient = mem_zalloc_array(count, sizeof *p->gradient);
    p->sum = mem_zalloc_array(count, sizeof *p->sum);
    p->other = mem_zalloc_array(count, sizeof *p->other);
    if (!p->gradient || !p->sum || !p->other)
        return fail_memory("ports of a solver", count * sizeof *p->sum);
    for (size_t i = 0; i < count; i++) {
        const struct summed *summed = &s->split.summed.data[i];
        TRY(graphi_plan_port(s->gradient_plan, summed->output, &p->gradient[i]));
        TRY(graphi_plan_port(s->update_plan, summed->input[0], &p->sum[i]));
        if (summed->input[1])
            TRY(graphi_plan_port(s->update_plan, summed->input[1], &p->other[i]));
    }
    return GRAPHI_OK;
}

/* --- blocks --- */

/* Which sums of its leaves there are in the end, as they are added up one leaf after the other, and how many blocks
 * that takes at most. */
static graphi_status make_blocks(struct solver *s)
{
    struct exchange_member *member = &s->group->exchange.member[s->index];
    const size_t bytes = s->split.floats * sizeof(float);
    int most;
    member->nodes = tree_nodes(s->group->how.leaves, s->first_leaf, s->leaves, member->node, &most);
    for (; s->blocks < most; s->blocks++) {
        s->block[s->blocks] = mem_map(bytes);
        if (!s->block[s->blocks])
            return fail_memory("gradients of a solver", bytes);
        member->block[s->blocks] = s->block[s->blocks];
    }
    member->weight = (float)((double)s->rows / (double)s->group->how.batch);
    s->loss = mem_zalloc_array((size_t)s->leaves, sizeof *s->loss);
    return s->loss ? GRAPHI_OK : fail_memory("losses of a solver", (size_t)s->leaves * sizeof *s->loss);
}

static graphi_status make(struct solver *s)
{
    TRY(make_plans(s));
    TRY(make_state(s));
    TRY(check_carried(s));
    TRY(graphi_run_create(s->gradient_plan, s->state, &s->gradient));
    TRY(graphi_run_create(s->update_plan, s->state, &s->update));
    TRY(find_ports(s));
    return make_blocks(s);
}

/* With a lease of its cores, so that memory comes to lie near them; executions take leases of their own, and between
 * steps the cores are free for a validation. */
static graphi_status make_in_place(struct solver *s)
{
    const graphi_choice must = s->group->how.must_place ? GRAPHI_ON : GRAPHI_DEFAULT;
    const graphi_lease_options how = {.pin = must, .bind = must, .high_bandwidth = true};
    graphi_lease *lease;
    TRY(graphi_lease_take(s->machine, &how, &lease));
    graphi_status status = graphi_lease_enter(lease);
    if (status == GRAPHI_OK) {
        char message[512];
        status = make(s);
        message_get(message, sizeof message);
        graphi_lease_leave(lease);
        message_set(message);
    }
    graphi_lease_release(lease);
    return status;
}

graphi_status solver_open(struct solver *s)
{
    TRY(take_part(s));
    return s->group->how.oversubscribe ? make(s) : make_in_place(s);
}

void solver_close(struct solver *s)
{
    graphi_run_destroy(s->gradient);
    graphi_run_destroy(s->update);
    graphi_plan_destroy(s->gradient_plan);
    graphi_plan_destroy(s->update_plan);
    for (int i = 0; i < s->blocks; i++)
        mem_unmap(s->block[i], s->split.floats * sizeof(float));
    split_close(&s->split);
    graphi_graph_destroy(s->graph);
    graphi_state_destroy(s->own_state);
    graphi_machine_destroy(s->machine);
    mem_free(s->ports.gradient);
    mem_free(s->ports.sum);
    mem_free(s->ports.other);
    mem_free(s->loss);
    mem_free(s->lease_room);
}
