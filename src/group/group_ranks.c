/* SPDX-License-Identifier: Apache-2.0 */
/* A group of several processes: cores of a host divided between its ranks, what ranks must agree on, the sum over all
 * solvers of all ranks, losses. Nothing is done where this process is alone. The caller's thread and the first solver's
 * speak to other ranks, never both at a time. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "graphi/place.h"
#include "group/division.h"
#include "group/ranks.h"
#include "group/solver.h"

/* --- cores --- */

/* Which cores of which host a rank may use. */
struct berth {
    uint64_t host, cores;
    int count, local;
};

static struct berth berth_of(const struct graphi_group *g)
{
    const graphi_machine *machine = g->how.machine;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    struct berth berth = {hash_string(HASH_START, host), HASH_START, machine->cores, g->how.ranks->place.local_rank};
    for (int i = 0; i < machine->cores; i++)
        berth.cores = hash_u64(berth.cores, (uint64_t)machine->core[i].os_index);
    return berth;
}

/* Ranks of a host that may use the same cores divide them; those that a launcher bound to cores of their own have
 * them. */
static graphi_status divide_cores(struct graphi_group *g, const struct berth *all)
{
    const struct berth own = all[g->rank];
    int beside = 0, before = 0;
    for (int r = 0; r < g->ranks; r++) {
        const bool same = all[r].host == own.host && all[r].cores == own.cores;
        beside += same;
        before += same && all[r].local < own.local;
    }
    if (beside == 1 || g->how.oversubscribe)
        return GRAPHI_OK;
    if (beside * (g->how.solvers ? g->how.solvers : 1) > own.count)
        return fail(
            GRAPHI_USAGE, "ranks",
            "found %d ranks on the same %d cores, expected a core for each solver: let the launcher bind them to "
            "others (mpirun --map-by socket --bind-to socket, or --bind-to none), or --oversubscribe",
            beside, own.count);
    TRY(graphi_machine_part(g->how.machine, before, beside, NULL, &g->part));
    g->how.machine = g->part;
    return GRAPHI_OK;
}

graphi_status group_ranks_place(struct graphi_group *g)
{
    if (!g->how.ranks)
        return GRAPHI_OK;
    g->rank = g->how.ranks->place.rank;
    g->ranks = g->how.ranks->place.ranks;
    const struct berth own = berth_of(g);
    struct berth *all = mem_zalloc_array((size_t)g->ranks, sizeof *all);
    if (!all)
        return fail_memory("ranks", (size_t)g->ranks * sizeof *all);
    graphi_status status = ranks_gather(g->how.ranks, &own, sizeof own, "cores", all);
    if (status == GRAPHI_OK)
        status = divide_cores(g, all);
    mem_free(all);
    return status;
}

/* --- agreement --- */

/* What all ranks must have alike. */
struct identity {
    char version[32], isa[16];
    uint64_t graph;
    int64_t batch, floats, solvers, leaves, precision;
};

static struct identity identity_of(const struct graphi_group *g)
{
    graphi_graph_info graph;
    graphi_plan_info plan;
    struct identity own = {.batch = g->how.batch,
                           .floats = (int64_t)g->exchange.floats,
                           .solvers = g->how.solvers,
                           .leaves = g->how.leaves};
    graphi_graph_get_info(g->graph, &graph);
    graphi_plan_get_info(g->solver[0].gradient_plan, &plan);
    own.graph = graph.hash;
    own.precision = plan.precision;
    snprintf(own.version, sizeof own.version, "%s", graphi_version());
    snprintf(own.isa, sizeof own.isa, "%s", plan.isa);
    return own;
}

static graphi_status differ(int rank, const char *what, const char *found, const char *expected)
{
    char name[32];
    snprintf(name, sizeof name, "rank %d", rank);
    return fail(GRAPHI_INVALID, name, "found %s %s, expected %s, that of rank 0", what, found, expected);
}

static graphi_status differ_in(int rank, const char *what, int64_t found, int64_t expected)
{
    char a[32], b[32];
    snprintf(a, sizeof a, "%lld", (long long)found);
    snprintf(b, sizeof b, "%lld", (long long)expected);
    return differ(rank, what, a, b);
}

static graphi_status compare(int rank, const struct identity *first, const struct identity *other)
{
    if (strcmp(first->version, other->version) != 0)
        return differ(rank, "version", other->version, first->version);
    if (strcmp(first->isa, other->isa) != 0)
        return differ(rank, "instruction set", other->isa, first->isa);
    const struct {
        const char *what;
        int64_t found, expected;
    } numbers[] = {{"a batch of", other->batch, first->batch},
                   {"solvers", other->solvers, first->solvers},
                   {"leaves", other->leaves, first->leaves},
                   {"multiplicands of type", other->precision, first->precision},
                   {"gradients of so many floats:", other->floats, first->floats},
                   {"a graph of hash", (int64_t)other->graph, (int64_t)first->graph}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].found != numbers[i].expected)
            return differ_in(rank, numbers[i].what, numbers[i].found, numbers[i].expected);
    return GRAPHI_OK;
}

static graphi_status check_identities(struct graphi_group *g)
{
    const struct identity own = identity_of(g);
    struct identity *all = mem_zalloc_array((size_t)g->ranks, sizeof *all);
    if (!all)
        return fail_memory("ranks", (size_t)g->ranks * sizeof *all);
    graphi_status status = ranks_gather(g->how.ranks, &own, sizeof own, "graph", all);
    for (int r = 1; r < g->ranks && status == GRAPHI_OK; r++)
        status = compare(r, &all[0], &all[r]);
    mem_free(all);
    return status;
}

/* --- the sum --- */

/* Room for what a solver of another rank sends; of it only this rank's segment is ever touched. */
static graphi_status open_member(struct graphi_group *g, int i)
{
    struct exchange_member *member = &g->all.member[i];
    const int own = i - g->rank * g->how.solvers;
    int64_t first, count;
    int most;
    if (own >= 0 && own < g->how.solvers) {
        *member = g->exchange.member[own];
        return GRAPHI_OK;
    }
    group_share(g, i, &first, &count);
    member->weight = (float)((double)count / (double)g->how.batch);
    member->nodes = g->how.leaves ? tree_nodes(g->how.leaves, (int)first, (int)count, member->node, &most) : 1;
    for (int k = 0; k < member->nodes; k++) {
        member->block[k] = mem_map(g->exchange.floats * sizeof(float));
        if (!member->block[k])
            return fail_memory("gradients of other ranks", g->exchange.floats * sizeof(float));
    }
    return GRAPHI_OK;
}

/* Leaves that a solver has at most. */
static size_t leaves_most(const struct graphi_group *g)
{
    int64_t first, count;
    group_share(g, 0, &first, &count);
    return g->how.deterministic ? (size_t)count : 1;
}

graphi_status group_ranks_open(struct graphi_group *g)
{
    if (g->ranks < 2)
        return GRAPHI_OK;
    TRY(check_identities(g));
    const int all = g->ranks * g->how.solvers;
    g->all = (struct exchange){.how = g->how.reduction,
                               .leaves = g->how.leaves,
                               .members = all,
                               .floats = g->exchange.floats,
                               .member = mem_zalloc_array((size_t)all, sizeof *g->all.member)};
    g->record_floats = (size_t)g->how.solvers * leaves_most(g) * GRAPHI_TRAINER_LOSSES + 1;
    g->record = mem_zalloc_array(g->record_floats, sizeof *g->record);
    g->records = mem_zalloc_array(g->record_floats * (size_t)g->ranks, sizeof *g->records);
    if (!g->all.member || !g->record || !g->records)
        return fail_memory("ranks", (size_t)all * sizeof *g->all.member);
    for (int i = 0; i < all; i++)
        TRY(open_member(g, i));
    return GRAPHI_OK;
}

void group_ranks_close(struct graphi_group *g)
{
    for (int i = 0; g->all.member && i < g->all.members; i++)
        for (int k = 0; i / g->how.solvers != g->rank && k < g->all.member[i].nodes; k++)
            mem_unmap(g->all.member[i].block[k], g->all.floats * sizeof(float));
    mem_free(g->all.member);
    mem_free(g->record);
    mem_free(g->records);
    graphi_machine_destroy(g->part);
}

graphi_status group_ranks_sum(struct graphi_group *g)
{
    return ranks_sum(g->how.ranks, &g->all, g->how.solvers, g->solver[0].block[0]);
}

/* --- losses --- */

/* In the order of leaves, as one process adds them. */
graphi_status group_ranks_losses(struct graphi_group *g, float *loss)
{
    const size_t leaves = leaves_most(g), solver = leaves * GRAPHI_TRAINER_LOSSES;
    for (int i = 0; i < g->how.solvers; i++)
        memcpy(g->record + (size_t)i * solver, g->solver[i].loss,
               (size_t)g->solver[i].leaves * sizeof *g->solver[i].loss);
    g->record[g->record_floats - 1] = g->how.stop && g->how.stop(g->how.context);
    TRY(ranks_gather(g->how.ranks, g->record, g->record_floats * sizeof(float), "losses", g->records));
    double sum[GRAPHI_TRAINER_LOSSES] = {0};
    for (int i = 0; i < g->ranks * g->how.solvers; i++) {
        const float *from =
            g->records + (size_t)(i / g->how.solvers) * g->record_floats + (size_t)(i % g->how.solvers) * solver;
        int64_t first, count;
        group_share(g, i, &first, &count);
        const int64_t rows = g->how.deterministic ? g->how.batch / g->how.leaves : count;
        for (int64_t leaf = 0; leaf < (g->how.deterministic ? count : 1); leaf++)
            for (int k = 0; k < GRAPHI_TRAINER_LOSSES; k++)
                sum[k] += (double)from[leaf * GRAPHI_TRAINER_LOSSES + k] * (double)rows;
    }
    for (int k = 0; k < GRAPHI_TRAINER_LOSSES; k++)
        loss[k] = (float)(sum[k] / (double)g->how.batch);
    for (int r = 0; r < g->ranks; r++)
        g->stopped |= g->records[(size_t)(r + 1) * g->record_floats - 1] != 0;
    return GRAPHI_OK;
}
