/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of parts of a block (segment.h). Usual: one for a whole model, two ports, one or two runs. */
#include "flow/segment.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    pthread_rwlock_rdlock(&segment->weights->lock);
    for (size_t i = 0; i < segment->idle.count; i++)
        graphi_run_destroy(segment->idle.data[i]);
    pthread_rwlock_unlock(&segment->weights->lock);
    array_free(&segment->idle);
    array_free(&segment->inputs);
    array_free(&segment->outputs);
    graphi_plan_destroy(segment->plan);
    graphi_graph_destroy(segment->graph);
    pthread_mutex_destroy(&segment->lock);
    mem_free(segment);
}

static graphi_status add_outputs(struct segment *s, struct lowering *l, const int *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct segment_port port = {.number = outputs[i], .like = l->values[outputs[i]].like};
        char name[24];
        snprintf(name, sizeof name, "o%d", outputs[i]);
        TRY(lower_output(l, outputs[i], name, &port.dtype));
        if (!array_push(&s->outputs, port))
            return fail_memory("plan", sizeof port);
    }
    return GRAPHI_OK;
}

/* Where the ports of the plan are; inputs that it does not read are left out. */
static graphi_status find_ports(struct segment *s)
{
    graphi_port_kind kind;
    graphi_port found;
    for (int i = 0; graphi_plan_port_at(s->plan, i, &kind, &found); i++) {
        const int number = atoi(found.name + 1);
        if (kind == GRAPHI_PORT_INPUT) {
            const struct segment_port port = {.number = number, .port = i, .dtype = found.dtype};
            if (!array_push(&s->inputs, port))
                return fail_memory("plan", sizeof port);
        }
        for (size_t k = 0; kind == GRAPHI_PORT_OUTPUT && k < s->outputs.count; k++)
            if (s->outputs.data[k].number == number)
                s->outputs.data[k].port = i;
    }
    return GRAPHI_OK;
}

enum { SMALL_RESULTS = 4 << 20 };

/* Half to twice the work of `like`: its setting. Little memory is not searched for a better order. */
static graphi_status compile(struct segment *s, const struct segment *like, const graphi_machine *machine)
{
    graphi_graph_info info;
    graphi_plan_info known;
    graphi_plan_options options = {.arena_target = 0};
    graphi_graph_get_info(s->graph, &info);
    s->flops = info.flops;
    if (info.intermediate_bytes <= SMALL_RESULTS)
        options.arena_target = info.intermediate_bytes;
    if (like && like->flops <= 2 * s->flops && s->flops <= 2 * like->flops) {
        graphi_plan_get_info(like->plan, &known);
        options.setting = graphi_decision_setting(&known.setting);
    }
    return graphi_plan_create(s->graph, machine, &options, &s->plan);
}

graphi_status segment_create(struct lowering *l, const int *outputs, size_t count, const struct segment *like,
                             struct weights *weights, const graphi_machine *machine, bool traced, struct segment **out)
{
    struct segment *s = mem_zalloc(sizeof *s);
    if (!s)
        return fail_memory("plan", sizeof *s);
    s->weights = weights;
    s->traced = traced;
    pthread_mutex_init(&s->lock, NULL);
    graphi_status status = add_outputs(s, l, outputs, count);
    s->graph = l->graph;
    l->graph = NULL;
    if (status == GRAPHI_OK)
        status = compile(s, like, machine);
    if (status == GRAPHI_OK)
        status = find_ports(s);
    if (status == GRAPHI_OK)
        status = weights_add(weights, s->graph, &l->wanted);
    if (status == GRAPHI_OK)
        *out = s;
    else
        segment_free(s);
    return status;
}

/* --- running --- */

static graphi_status take_run(struct segment *s, graphi_run **out)
{
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->idle.count)
        *out = s->idle.data[--s->idle.count];
    pthread_mutex_unlock(&s->lock);
    if (*out)
        return GRAPHI_OK;
    TRY(graphi_run_create(s->plan, s->weights->state, out));
    return s->traced ? graphi_run_trace(*out, true) : GRAPHI_OK;
}

static void give_back(struct segment *s, graphi_run *run)
{
    pthread_mutex_lock(&s->lock);
    const bool kept = run && array_push(&s->idle, run);
    pthread_mutex_unlock(&s->lock);
    if (!kept)
        graphi_run_destroy(run);
}

static graphi_status feed(const struct segment *s, graphi_run *run, graphi_tensor **values)
{
    for (size_t i = 0; i < s->inputs.count; i++) {
        const struct segment_port *port = &s->inputs.data[i];
        const graphi_tensor *value = values[port->number];
        char name[24];
        if ((uintptr_t)value->data % GRAPHI_ALIGNMENT == 0) {
            TRY(graphi_run_bind(run, port->port, port->dtype, value->data, value->bytes));
            continue;
        }
        snprintf(name, sizeof name, "i%d", port->number);
        TRY(graphi_run_set(run, name, port->dtype, value->data, value->bytes));
    }
    return GRAPHI_OK;
}

/* Results that are written where they stay. */
static graphi_status room(const struct segment *s, graphi_run *run, graphi_tensor **values)
{
    for (size_t i = 0; i < s->outputs.count; i++) {
        const struct segment_port *port = &s->outputs.data[i];
        graphi_tensor *value;
        TRY(value_new("session", port->like.type, port->like.rank, port->like.dims, &value));
        value_drop(values[port->number]);
        values[port->number] = value;
        TRY(graphi_run_bind(run, port->port, port->dtype, value->data, value->bytes));
    }
    return GRAPHI_OK;
}

/* What was bound may go away, and its place may be taken by something else. */
static void unbind(const struct segment *s, graphi_run *run)
{
    for (size_t i = 0; i < s->inputs.count; i++)
        graphi_run_bind(run, s->inputs.data[i].port, s->inputs.data[i].dtype, NULL, 0);
    for (size_t i = 0; i < s->outputs.count; i++)
        graphi_run_bind(run, s->outputs.data[i].port, s->outputs.data[i].dtype, NULL, 0);
}

graphi_status segment_run(struct segment *s, graphi_tensor **values)
{
    graphi_run *run;
    pthread_rwlock_rdlock(&s->weights->lock);
    graphi_status status = take_run(s, &run);
    if (status == GRAPHI_OK)
        status = feed(s, run, values);
    if (status == GRAPHI_OK)
        status = room(s, run, values);
    if (status == GRAPHI_OK)
        status = graphi_run_execute(run);
    if (run)
        unbind(s, run);
    give_back(s, run);
    pthread_rwlock_unlock(&s->weights->lock);
    return status;
}
