/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: the division of a batch, solvers' threads, and steps that they take together. The caller's thread waits while
 * solvers work. A solver that fails ends the group: whoever waits for it finds out, and the first failure is told. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/memory.h"
#include "base/status.h"
#include "group/division.h"
#include "group/ranks.h"
#include "group/solver.h"

static const char where[] = "group";

/* --- what is asked for --- */

static graphi_status check_counts(const graphi_group_options *how)
{
    const struct {
        const char *name;
        int64_t value, most;
    } counts[] = {{"batch", how->batch, (int64_t)1 << 20},
                  {"solvers", how->solvers, GRAPHI_GROUP_SOLVERS},
                  {"leaves", how->leaves, GRAPHI_GROUP_LEAVES},
                  {"arity", how->arity, GRAPHI_GROUP_SOLVERS}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 0 || counts[i].value > counts[i].most)
            return fail(GRAPHI_INVALID, where, "found %s %lld, expected 0 to %lld", counts[i].name,
                        (long long)counts[i].value, (long long)counts[i].most);
    if (!how->build || !how->batch)
        return fail(GRAPHI_INVALID, where, "found %s, expected %s", how->build ? "a batch of 0" : "no `build`",
                    how->build ? "some samples" : "one that makes the graph");
    if ((unsigned)how->reduction >= GRAPHI_REDUCTIONS)
        return fail(GRAPHI_INVALID, where, "found reduction %d, expected a graphi_reduction", (int)how->reduction);
    return GRAPHI_OK;
}

static graphi_status settle_machine(struct graphi_group *g)
{
    graphi_machine_info info;
    if (!g->how.machine) {
        TRY(graphi_machine_create(0, &g->machine));
        g->owns_machine = true;
        g->how.machine = g->machine;
    }
    TRY(group_ranks_place(g));
    graphi_machine_get_info(g->how.machine, &info);
    g->by_node = !g->how.solvers && info.numa_nodes > 0;
    if (!g->how.solvers)
        g->how.solvers = info.numa_nodes > 0 ? info.numa_nodes : 1;
    if (g->how.solvers > info.cores && !g->how.oversubscribe)
        return fail(GRAPHI_USAGE, where, "found %d solvers on %d cores, expected at most as many, or --oversubscribe",
                    g->how.solvers, info.cores);
    return GRAPHI_OK;
}

static const char *const reduction_names[] = {
#define X(NAME, text) text,
    GRAPHI_REDUCTION_LIST(X)
#undef X
};

static graphi_status settle_reduction(struct graphi_group *g)
{
    graphi_group_options *how = &g->how;
    const bool pair = how->solvers == 2 && !how->deterministic && g->ranks == 1;
    if (g->ranks > 1 && how->reduction != GRAPHI_REDUCTION_AUTO && how->reduction != GRAPHI_REDUCTION_OWNER)
        return fail(GRAPHI_USAGE, where, "found reduction %s beside %d ranks, expected owner",
                    reduction_names[how->reduction], g->ranks);
    if (how->reduction == GRAPHI_REDUCTION_AUTO)
        how->reduction = pair ? GRAPHI_REDUCTION_PAIR : GRAPHI_REDUCTION_OWNER;
    if (how->reduction == GRAPHI_REDUCTION_PAIR && !pair)
        return fail(GRAPHI_USAGE, where, "found reduction pair, expected it of two solvers that are not deterministic");
    if (how->deterministic && how->reduction != GRAPHI_REDUCTION_OWNER)
        return fail(GRAPHI_USAGE, where,
                    "found reduction %s beside deterministic, expected owner: the tree over leaves "
                    "is the order",
                    reduction_names[how->reduction]);
    if (how->arity && how->reduction != GRAPHI_REDUCTION_TREE)
        return fail(GRAPHI_USAGE, where, "found an arity beside reduction %s, expected it of a tree",
                    reduction_names[how->reduction]);
    how->arity = how->arity ? how->arity : 2;
    return GRAPHI_OK;
}

static graphi_status settle_leaves(struct graphi_group *g)
{
    graphi_group_options *how = &g->how;
    if (how->leaves && !how->deterministic)
        return fail(GRAPHI_USAGE, where, "found %d leaves, expected them where it is deterministic", how->leaves);
    if (how->deterministic && !how->leaves)
        how->leaves = 8;
    if (how->deterministic && how->batch % how->leaves)
        return fail(GRAPHI_INVALID, where, "found a batch of %lld, expected one that %d leaves divide",
                    (long long)how->batch, how->leaves);
    const int64_t most = how->deterministic ? how->leaves : how->batch;
    if ((int64_t)how->solvers * g->ranks > most)
        return fail(GRAPHI_INVALID, where, "found %d solvers for %lld %s, expected at most as many",
                    how->solvers * g->ranks, (long long)most, how->deterministic ? "leaves" : "samples");
    return GRAPHI_OK;
}

/* --- the division --- */

static void divide(struct graphi_group *g)
{
    const int64_t rows = g->how.deterministic ? g->how.batch / g->how.leaves : 0;
    for (int i = 0; i < g->how.solvers; i++) {
        struct solver *s = &g->solver[i];
        int64_t first, count;
        group_share(g, g->rank * g->how.solvers + i, &first, &count);
        *s = (struct solver){.group = g, .index = i};
        s->first_leaf = g->how.deterministic ? (int)first : i;
        s->leaves = g->how.deterministic ? (int)count : 1;
        s->rows = g->how.deterministic ? rows : count;
        s->first_row = g->how.deterministic ? first * rows : first;
    }
}

/* --- threads --- */

static void ring(struct graphi_group *g, atomic_uint_least64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_release); /* pairs with the load in await() */
    atomic_fetch_add(&g->bell.word, 1);
    parking_wake(&g->bell);
}

/* Without a look at failures: a solver that fails tells that it is done, too. */
static void await(struct graphi_group *g, atomic_uint_least64_t *counter, uint64_t value)
{
    for (;;) {
        const unsigned old = atomic_load(&g->bell.word);
        if (atomic_load_explicit(counter, memory_order_acquire) >= value) /* pairs with the store in ring() */
            return;
        parking_wait(&g->bell, old, 0);
    }
}

/* The first failure is the group's; who only found that another one failed has nothing to tell. */
static void end_with(struct solver *s, graphi_status status)
{
    int none = 0;
    s->status = status;
    message_get(s->message, sizeof s->message);
    if (status != GRAPHI_OK)
        atomic_compare_exchange_strong(&s->group->failed, &none, s->index + 1);
}

static void *solver_main(void *context)
{
    struct solver *s = context;
    struct graphi_group *g = s->group;
    char name[16];
    snprintf(name, sizeof name, "graphi-s%d", s->index);
    pthread_setname_np(pthread_self(), name);
    end_with(s, solver_open(s));
    ring(g, &s->done, 1);
    for (uint64_t next = 2;; next++) {
        await(g, &g->told, next);
        if (atomic_load(&g->ends))
            break;
        const struct float_mode mode = float_mode_enter(); /* sums as executions have it */
        end_with(s, solver_step(s, next - 1));
        float_mode_leave(mode);
        ring(g, &s->done, next);
    }
    solver_close(s);
    return NULL;
}

static graphi_status start(struct graphi_group *g)
{
    for (int i = 0; i < g->how.solvers; i++) {
        struct solver *s = &g->solver[i];
        const int error = pthread_create(&s->thread, NULL, solver_main, s);
        if (error)
            return fail(GRAPHI_UNSUPPORTED, where, "found no thread for solver %d (%s), expected one", i,
                        strerror(error));
        s->started = true;
    }
    return GRAPHI_OK;
}

/* What the first that failed said, by its name. */
static graphi_status outcome(const struct graphi_group *g)
{
    const int failed = atomic_load(&g->failed);
    if (!failed)
        return GRAPHI_OK;
    const struct solver *s = &g->solver[failed - 1];
    char name[32];
    const char *text = strstr(s->message, ": "); /* behind the code */
    snprintf(name, sizeof name, "solver %d", s->index);
    return fail(s->status, name, "%s", text ? text + 2 : s->message);
}

static graphi_status wait_all(struct graphi_group *g, uint64_t value)
{
    for (int i = 0; i < g->how.solvers; i++)
        if (g->solver[i].started)
            await(g, &g->solver[i].done, value);
    return outcome(g);
}

/* --- opening --- */

/* Graphs of other batches are those of the same network. */
static graphi_status check_blocks(const struct graphi_group *g)
{
    const struct split *first = &g->solver[0].split;
    for (int i = 1; i < g->how.solvers; i++) {
        const struct split *other = &g->solver[i].split;
        bool same = other->summed.count == first->summed.count && other->floats == first->floats;
        for (size_t k = 0; same && k < first->summed.count; k++)
            same = strcmp(first->summed.data[k].output, other->summed.data[k].output) == 0 &&
                   first->summed.data[k].count == other->summed.data[k].count;
        if (!same)
            return fail(GRAPHI_INVALID, where,
                        "found other parameters in the graph of %lld samples than in that of %lld, expected the same",
                        (long long)g->solver[i].rows, (long long)g->solver[0].rows);
    }
    return GRAPHI_OK;
}

static graphi_status open_exchange(struct graphi_group *g)
{
    struct exchange *e = &g->exchange;
    enum { CHUNK = 1 << 16 }; /* floats: the level-2 cache holds those of a few solvers */
    e->how = g->how.reduction;
    e->arity = g->how.arity;
    e->leaves = g->how.leaves;
    e->lanes = g->how.oversubscribe ? 1 : g->solver[0].cores;
    for (int i = 0; i < g->how.solvers; i++)
        e->lanes = g->solver[i].cores < e->lanes ? g->solver[i].cores : e->lanes;
    e->floats = g->solver[0].split.floats;
    e->chunk = CHUNK;
    e->spin_us = g->how.oversubscribe ? 0 : 200;
    return exchange_open(e);
}

static graphi_status open(struct graphi_group *g)
{
    TRY(settle_machine(g));
    TRY(settle_reduction(g));
    TRY(settle_leaves(g));
    TRY(g->how.build(g->how.context, g->how.batch, &g->graph));
    g->solver = mem_zalloc_array((size_t)g->how.solvers, sizeof *g->solver);
    g->exchange.member = mem_zalloc_array((size_t)g->how.solvers, sizeof *g->exchange.member);
    if (!g->solver || !g->exchange.member)
        return fail_memory(where, (size_t)g->how.solvers * sizeof *g->solver);
    g->exchange.members = g->how.solvers;
    divide(g);
    TRY(start(g));
    TRY(wait_all(g, 1));
    TRY(check_blocks(g));
    TRY(open_exchange(g));
    g->differs = true;
    return group_ranks_open(g);
}

static graphi_status take_step(void *context, const graphi_step_batch *batch, float *loss)
{
    return graphi_group_step(context, batch, loss);
}

graphi_status graphi_group_create(const graphi_group_options *options, graphi_group **out)
{
    GIVEN(options);
    GIVEN(out);
    TRY(check_counts(options));
    graphi_group *g = mem_zalloc(sizeof *g);
    if (!g)
        return fail_memory(where, sizeof *g);
    g->how = *options;
    if (!g->how.loss[0])
        g->how.loss[0] = "loss";
    pthread_mutex_init(&g->building, NULL);
    g->exchange.bell = &g->bell;
    g->exchange.failed = &g->failed;
    g->ranks = 1;
    g->stepper = (graphi_stepper){take_step, g, options->batch};
    atomic_store(&g->told, 1);
    const graphi_status status = open(g);
    if (status != GRAPHI_OK && g->how.ranks)
        g->how.ranks->broken = true; /* others wait for what does not come */
    if (status == GRAPHI_OK)
        *out = g;
    else
        graphi_group_destroy(g);
    return status;
}

void graphi_group_destroy(graphi_group *g)
{
    if (!g)
        return;
    char message[512];
    message_get(message, sizeof message);
    atomic_store(&g->ends, 1);
    ring(g, &g->told, UINT64_MAX);
    for (int i = 0; g->solver && i < g->how.solvers; i++)
        if (g->solver[i].started)
            pthread_join(g->solver[i].thread, NULL);
    group_ranks_close(g);
    exchange_close(&g->exchange);
    mem_free(g->solver);
    graphi_state_destroy(g->own_state);
    graphi_graph_destroy(g->graph);
    if (g->owns_machine)
        graphi_machine_destroy(g->machine);
    pthread_mutex_destroy(&g->building);
    mem_free(g);
    message_set(message);
}

/* --- steps --- */

static uint64_t versions_of(const graphi_state *state)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < state->parameters.count; i++)
        if (solver_keeps(state->parameters.data[i]->name))
            sum += state->parameters.data[i]->version;
    return sum;
}

/* What solvers wrote of samples' parameters. */
static void count_carried(struct graphi_group *g)
{
    const struct split *split = &g->solver[0].split;
    for (size_t i = 0; i < split->carried.count; i++)
        state_parameter(g->state, split->carried.data[i].parameter)->version++;
    if (split->carried.count)
        state_changed(g->state);
}

/* The mean over leaves, in their order; without leaves weighted by solvers' shares. */
static void mean_losses(const struct graphi_group *g, float *loss)
{
    for (int k = 0; k < GRAPHI_TRAINER_LOSSES; k++) {
        double sum = 0;
        for (int i = 0; i < g->how.solvers; i++)
            for (int leaf = 0; leaf < g->solver[i].leaves; leaf++)
                sum += (double)g->solver[i].loss[leaf][k] * (double)g->solver[i].rows;
        loss[k] = (float)(sum / (double)g->how.batch);
    }
}

static graphi_status check_batch(const struct graphi_group *g, const graphi_step_batch *batch)
{
    if (batch->samples != g->how.batch || batch->count < 0 || (batch->count && !batch->inputs) || !batch->rate_input)
        return fail(GRAPHI_INVALID, where,
                    "found a batch of %lld samples and %d inputs, expected %lld, their arrays, and "
                    "the name of the learning rate",
                    (long long)batch->samples, batch->count, (long long)g->how.batch);
    return GRAPHI_OK;
}

graphi_status graphi_group_step(graphi_group *g, const graphi_step_batch *batch, float *loss)
{
    GIVEN(g);
    GIVEN(batch);
    GIVEN(loss);
    TRY(check_batch(g, batch));
    if (atomic_load(&g->failed))
        return fail(GRAPHI_INVALID, where, "found that a step of it has failed, expected a new group");
    const int64_t begin = clock_ns();
    const uint64_t step = g->steps + 1;
    g->batch = batch;
    g->steps_before = graphi_state_step(g->state);
    g->differs |= versions_of(g->state) != g->versions;
    ring(g, &g->told, step + 1);
    const graphi_status status = wait_all(g, step + 1);
    if (status != GRAPHI_OK && g->how.ranks)
        g->how.ranks->broken = true;
    TRY(status);
    count_carried(g);
    g->versions = versions_of(g->state);
    g->differs = false;
    g->steps = step;
    if (g->ranks > 1)
        TRY(group_ranks_losses(g, loss));
    else
        mean_losses(g, loss);
    g->step_ms = (double)(clock_ns() - begin) * 1e-6;
    return GRAPHI_OK;
}

/* --- what is told --- */

const graphi_graph *graphi_group_graph(const graphi_group *g)
{
    return g ? g->graph : NULL;
}

graphi_state *graphi_group_state(const graphi_group *g)
{
    return g ? g->state : NULL;
}

const graphi_stepper *graphi_group_stepper(graphi_group *g)
{
    return g ? &g->stepper : NULL;
}

void graphi_group_get_info(const graphi_group *g, graphi_group_info *info)
{
    if (!info)
        return;
    *info = (graphi_group_info){0};
    if (!g)
        return;
    *info = (graphi_group_info){.solvers = g->how.solvers,
                                .leaves = g->how.leaves,
                                .reduction = g->how.reduction,
                                .gradient_bytes = (int64_t)(g->exchange.floats * sizeof(float)),
                                .steps = g->steps,
                                .stopped = g->stopped,
                                .step_ms = g->step_ms};
    for (int i = 0; i < g->how.solvers; i++)
        if (g->solver[i].exchange_ms > info->exchange_ms)
            info->exchange_ms = g->solver[i].exchange_ms;
}

bool graphi_group_at(const graphi_group *g, int i, graphi_solver_info *info)
{
    if (!g || !info || i < 0 || i >= g->how.solvers)
        return false;
    const struct solver *s = &g->solver[i];
    graphi_run_info run;
    graphi_run_get_info(s->gradient, &run);
    *info = (graphi_solver_info){.cores = s->cores,
                                 .first = s->first_row,
                                 .samples = s->rows * s->leaves,
                                 .gradient_ms = s->gradient_ms,
                                 .exchange_ms = s->exchange_ms,
                                 .update_ms = s->update_ms,
                                 .placed = run.pinned,
                                 .plan = s->gradient_plan};
    snprintf(info->note, sizeof info->note, "%s", run.note);
    return true;
}
