/* SPDX-License-Identifier: Apache-2.0 */
/* A solver's step: gradients of its samples, the sum of all solvers', the update. Run by its thread; nothing is
 * allocated but in the first step, which binds and copies. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/ports.h"
#include "group/solver.h"
#include "machine/workers.h"

/* A solver that waits finds that another one has failed; whose message counts. */
static graphi_status another_failed(void)
{
    return fail(GRAPHI_INTERRUPTED, "group", "found that another solver has failed, expected none to");
}

/* --- replicas --- */

/* The parameters of the first solver's state, which somebody has set or loaded since. */
static graphi_status copy_state(struct solver *s)
{
    graphi_state *from = s->group->state;
    for (size_t i = 0; i < s->state->parameters.count; i++) {
        const struct parameter *own = s->state->parameters.data[i];
        struct parameter *p = state_parameter(from, own->name);
        if (!p || !solver_keeps(own->name))
            continue;
        state_hold(from, p);
        const graphi_status status = graphi_state_set(s->state, own->name, p->data, p->bytes);
        state_drop(from, p);
        TRY(status);
    }
    s->state->seed = from->seed;
    return GRAPHI_OK;
}

/* --- gradients --- */

/* Rows of a parameter of samples. */
static unsigned char *rows_of(const struct solver *s, const struct carried *carried, int64_t row)
{
    const struct parameter *p = state_parameter(s->group->state, carried->parameter);
    return (unsigned char *)p->data + carried->bytes / (size_t)s->rows * (size_t)row;
}

static graphi_status feed(const struct solver *s, int64_t row)
{
    const graphi_step_batch *batch = s->group->batch;
    const struct compiled *c = s->gradient->plan->compiled;
    for (int i = 0; i < batch->count; i++) {
        const graphi_feed_array *input = &batch->inputs[i];
        if (plan_input(c, input->input) < 0)
            continue;
        TRY(graphi_run_set(s->gradient, input->input, input->dtype,
                           (const unsigned char *)input->data + (size_t)row * input->sample_bytes,
                           (size_t)s->rows * input->sample_bytes));
    }
    for (size_t i = 0; i < s->split.carried.count; i++) {
        const struct carried *carried = &s->split.carried.data[i];
        TRY(graphi_run_set(s->gradient, carried->input, carried->dtype, rows_of(s, carried, row), carried->bytes));
    }
    if (plan_input(c, batch->rate_input) >= 0)
        TRY(graphi_run_set(s->gradient, batch->rate_input, GRAPHI_F32, &batch->rate, sizeof batch->rate));
    graphi_run_set_first_sample(s->gradient, batch->first_sample + (uint64_t)row);
    return GRAPHI_OK;
}

static graphi_status take(struct solver *s, int leaf, int64_t row)
{
    const char *const *loss = s->group->how.loss;
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++)
        if (loss[i])
            TRY(graphi_run_get(s->gradient, loss[i], GRAPHI_F32, &s->loss[leaf][i], sizeof(float)));
    for (size_t i = 0; i < s->split.carried.count; i++) {
        const struct carried *carried = &s->split.carried.data[i];
        TRY(graphi_run_get(s->gradient, carried->output, carried->dtype, rows_of(s, carried, row), carried->bytes));
    }
    return GRAPHI_OK;
}

static graphi_status bind(const struct solver *s, graphi_run *run, const int *port, float *block)
{
    for (size_t i = 0; i < s->split.summed.count; i++) {
        const struct summed *summed = &s->split.summed.data[i];
        TRY(graphi_run_bind(run, port[i], GRAPHI_F32, block + summed->offset, summed->count * sizeof(float)));
    }
    return GRAPHI_OK;
}

static void add_block(const struct solver *s, float *to, const float *from)
{
    for (size_t i = 0; i < s->split.floats; i++)
        to[i] += from[i];
}

/* One leaf after the other; what the tree over leaves has a node for is added at once. */
static graphi_status compute_gradients(struct solver *s)
{
    struct tree_node node[EXCHANGE_NODES];
    int nodes = 0;
    for (int leaf = 0; leaf < s->leaves; leaf++) {
        const int64_t row = s->first_row + leaf * s->rows;
        if (s->blocks > 1 || !s->bound)
            TRY(bind(s, s->gradient, s->ports.gradient, s->block[nodes]));
        TRY(feed(s, row));
        TRY(graphi_run_execute(s->gradient));
        TRY(take(s, leaf, row));
        node[nodes++] = (struct tree_node){s->first_leaf + leaf, s->first_leaf + leaf + 1};
        while (nodes > 1 && tree_siblings(s->group->how.leaves, node[nodes - 2], node[nodes - 1])) {
            nodes--;
            node[nodes - 1].high = node[nodes].high;
            add_block(s, s->block[nodes - 1], s->block[nodes]);
        }
    }
    return GRAPHI_OK;
}

/* --- the sum --- */

struct lanes {
    struct solver *solver;
    uint64_t step;
    atomic_int failed;
};

static void sum_lanes(void *context, int worker)
{
    struct lanes *l = context;
    if (!exchange_sum(&l->solver->group->exchange, l->solver->index, worker, l->step))
        atomic_store(&l->failed, 1);
}

/* On as many of its cores as the smallest solver has. */
static graphi_status sum_beside(struct solver *s, struct lanes *l)
{
    struct lease lease = {0};
    const struct lease_options options = {
        .workers = s->group->exchange.lanes, .pin = !s->group->how.oversubscribe, .room = &s->lease_room};
    TRY(lease_take(s->machine, &options, &lease));
    lease_start(&lease, sum_lanes, l);
    sum_lanes(l, 0);
    lease_wait(&lease);
    lease_release(&lease);
    return GRAPHI_OK;
}

/* The first solver's thread speaks to other ranks for all; the others copy what came of it. */
static graphi_status sum_ranks(struct solver *s, uint64_t step)
{
    struct graphi_group *g = s->group;
    struct exchange *e = &g->exchange;
    for (int m = 0; !s->index && m < e->members; m++)
        if (!exchange_wait(e, &e->member[m].ready, step))
            return another_failed();
    if (!s->index) {
        TRY(group_ranks_sum(g));
        exchange_publish(e, &g->summed, step);
    } else {
        if (!exchange_wait(e, &g->summed, step))
            return another_failed();
        memcpy(s->block[0], g->solver[0].block[0], e->floats * sizeof(float));
    }
    exchange_publish(e, &e->member[s->index].taken, step);
    return GRAPHI_OK;
}

static graphi_status exchange_gradients(struct solver *s, uint64_t step)
{
    struct exchange *e = &s->group->exchange;
    struct lanes l = {.solver = s, .step = step};
    exchange_publish(e, &e->member[s->index].ready, step);
    for (int m = 0; s->group->differs && m < e->members;
         m++) /* who copies parameters must have them before the update */
        if (!exchange_wait(e, &e->member[m].ready, step))
            return another_failed();
    if (s->group->ranks > 1)
        return sum_ranks(s, step);
    if (e->how == GRAPHI_REDUCTION_PAIR)
        return exchange_wait(e, &e->member[1 - s->index].ready, step) ? GRAPHI_OK : another_failed();
    if (e->lanes > 1)
        TRY(sum_beside(s, &l));
    else
        sum_lanes(&l, 0);
    if (atomic_load(&l.failed))
        return another_failed();
    exchange_publish(e, &e->member[s->index].taken, step);
    return GRAPHI_OK;
}

/* --- the update --- */

/* Both solvers read the blocks in the same order. */
static graphi_status bind_update(struct solver *s)
{
    const bool pair = s->group->how.reduction == GRAPHI_REDUCTION_PAIR;
    float *first = pair ? s->group->solver[0].block[0] : s->block[0];
    TRY(bind(s, s->update, s->ports.sum, first));
    if (pair)
        TRY(bind(s, s->update, s->ports.other, s->group->solver[1].block[0]));
    s->bound = true;
    return GRAPHI_OK;
}

static graphi_status update(struct solver *s, uint64_t step)
{
    struct exchange *e = &s->group->exchange;
    const graphi_step_batch *batch = s->group->batch;
    if (!s->bound)
        TRY(bind_update(s));
    if (plan_input(s->update->plan->compiled, batch->rate_input) >= 0)
        TRY(graphi_run_set(s->update, batch->rate_input, GRAPHI_F32, &batch->rate, sizeof batch->rate));
    TRY(graphi_run_execute(s->update));
    if (e->how == GRAPHI_REDUCTION_PAIR)
        exchange_publish(e, &e->member[s->index].taken, step);
    return GRAPHI_OK;
}

static double ms_since(int64_t *at)
{
    const int64_t now = clock_ns(), before = *at;
    *at = now;
    return (double)(now - before) * 1e-6;
}

graphi_status solver_step(struct solver *s, uint64_t step)
{
    int64_t at = clock_ns();
    if (s->group->differs && s->index)
        TRY(copy_state(s));
    if (s->index)
        graphi_state_set_step(s->state, s->group->steps_before);
    if (step > 1 && !exchange_wait_taken(&s->group->exchange, step - 1))
        return another_failed();
    TRY(compute_gradients(s));
    s->gradient_ms = ms_since(&at);
    TRY(exchange_gradients(s, step));
    s->exchange_ms = ms_since(&at);
    TRY(update(s, step));
    s->update_ms = ms_since(&at);
    return GRAPHI_OK;
}
