/* SPDX-License-Identifier: Apache-2.0 */
/* What scheduling costs: a random graph of 100,000 operations (--quick: of 3,000), 16 wide, 1 to 3 inputs each, of 0,
 * 1 and 10 us, on our scheduler (inlining off and on, by the driver that is the default and by combining), oneTBB's
 * flow graph, OpenMP tasks and StarPU, and in plain loops without any scheduler, in alternation. The loops show what
 * operations of that length last on the machine in that minute (on a virtual one whose host takes cores away up to a
 * third longer than asked for). Between two of them the machine rests: waiting threads of some runtimes spin for
 * milliseconds after their work, on the cores of whoever comes next. */
#include "bench.h"
#include "peers/tasks.h"

#include <stdlib.h>
#include <time.h>

enum { WIDE = 16, MOST_ROUNDS = 60 };

typedef double (*peer_function)(const struct peer_graph *graph, int reset);
static const struct {
    const char *name, *engine;
    peer_function run; /* NULL: ours */
    graphi_driver driver; /* of ours */
    bool inlined;
} engines[] = {{"scheduled", "graphi", NULL, GRAPHI_DRIVER_AUTO, false},
               {"inlining on", "graphi", NULL, GRAPHI_DRIVER_AUTO, true},
               {"combining driver", "graphi", NULL, GRAPHI_DRIVER_COMBINING, false},
               {"combining driver, inlining on", "graphi", NULL, GRAPHI_DRIVER_COMBINING, true},
               {"flow graph", "oneTBB", peer_tbb, GRAPHI_DRIVER_AUTO, false},
               {"tasks", "OpenMP", peer_openmp, GRAPHI_DRIVER_AUTO, false},
               {"StarPU tasks", "StarPU", peer_starpu, GRAPHI_DRIVER_AUTO, false},
               {"plain loops", "no scheduler", peer_loops, GRAPHI_DRIVER_AUTO, false}};
/* Ours come first. oneTBB is what the others are compared with. */
enum { SCHEDULED, INLINING, OURS = 4, TBB = OURS, TASKS, LOOPS = 7, ENGINES };

struct dag {
    int32_t count, *begin, *inputs;
};

static graphi_status make_dag(int32_t count, uint64_t seed, struct dag *dag)
{
    uint64_t random = seed * 2862933555777941757ull + 3037000493ull;
    *dag = (struct dag){.count = count, .begin = calloc((size_t)count + 1, 4), .inputs = calloc((size_t)count * 3, 4)};
    if (!dag->begin || !dag->inputs)
        return report_error(GRAPHI_MEMORY, "graph", "found no memory, expected some");
    int32_t edges = 0;
    for (int32_t i = 0; i < count; i++) {
        dag->begin[i] = edges;
        int32_t layer = i / WIDE * WIDE;
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        for (uint64_t k = 0, take = 1 + (random >> 33) % 3; layer && k < take; k++)
            dag->inputs[edges++] = layer - WIDE + (int32_t)((random >> (40 + 4 * k)) % WIDE);
        if (layer && dag->begin[i] + 1 < edges) { /* each input once */
            int32_t *first = dag->inputs + dag->begin[i], n = edges - dag->begin[i], kept = 0;
            for (int32_t a = 0; a < n; a++) {
                bool seen = false;
                for (int32_t b = 0; b < kept; b++)
                    seen |= first[b] == first[a];
                if (!seen)
                    first[kept++] = first[a];
            }
            edges = dag->begin[i] + kept;
        }
    }
    dag->begin[count] = edges;
    return GRAPHI_OK;
}

static graphi_status build(const struct dag *dag, int64_t nanoseconds, graphi_graph **out)
{
    graphi_status status = graphi_graph_create(out);
    graphi_value *values = calloc((size_t)dag->count, sizeof *values);
    if (status != GRAPHI_OK || !values)
        return GRAPHI_MEMORY;
    for (int32_t i = 0; i < dag->count; i++) {
        graphi_value inputs[3];
        int n = 0;
        for (int32_t e = dag->begin[i]; e < dag->begin[i + 1]; e++)
            inputs[n++] = values[dag->inputs[e]];
        values[i] = graphi_delay(*out, n, inputs, nanoseconds);
    }
    free(values);
    return graphi_graph_status(*out);
}

/* Longest path and the bound max(path, work / cores), in ms. */
static double bound_ms(const struct dag *dag, int64_t nanoseconds, int cores)
{
    int32_t longest = 0, *depth = calloc((size_t)dag->count, sizeof *depth);
    for (int32_t i = 0; depth && i < dag->count; i++) {
        depth[i] = 1;
        for (int32_t e = dag->begin[i]; e < dag->begin[i + 1]; e++)
            depth[i] = depth[dag->inputs[e]] + 1 > depth[i] ? depth[dag->inputs[e]] + 1 : depth[i];
        longest = depth[i] > longest ? depth[i] : longest;
    }
    free(depth);
    double path = (double)longest * (double)nanoseconds, work = (double)dag->count * (double)nanoseconds / cores;
    return (path > work ? path : work) * 1e-6;
}

struct ours {
    graphi_graph *graph;
    graphi_plan *plan[OURS];
    graphi_state *state;
    graphi_run *run[OURS];
};

static graphi_status open_ours(struct bench *bench, const struct dag *dag, int64_t nanoseconds, struct ours *o)
{
    graphi_status status = build(dag, nanoseconds, &o->graph);
    if (status == GRAPHI_OK)
        status = graphi_state_create(o->graph, 0, &o->state);
    for (int i = 0; i < OURS && status == GRAPHI_OK; i++) {
        graphi_plan_options options = {.setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                                   .driver = engines[i].driver,
                                                   .executors = bench->about.cores,
                                                   .width = 1,
                                                   .inlining = engines[i].inlined ? GRAPHI_DEFAULT : GRAPHI_OFF},
                                       .disable = "all"};
        status = i ? graphi_plan_with(o->plan[0], &(graphi_plan_change){.setting = &options.setting}, &o->plan[i])
                   : graphi_plan_create(o->graph, bench->machine, &options, &o->plan[0]);
        if (status == GRAPHI_OK)
            status = graphi_run_create(o->plan[i], o->state, &o->run[i]);
    }
    return status == GRAPHI_OK ? status : report_failure(status);
}

static void close_ours(struct ours *o)
{
    for (int i = 0; i < OURS; i++) {
        graphi_run_destroy(o->run[i]);
        graphi_plan_destroy(o->plan[i]);
    }
    graphi_state_destroy(o->state);
    graphi_graph_destroy(o->graph);
}

static void rest(void)
{
    struct timespec time = {.tv_nsec = 15000000};
    nanosleep(&time, NULL);
}

static graphi_status execute(graphi_run *run, double *ms)
{
    graphi_run_info info;
    graphi_status status = graphi_run_execute(run);
    graphi_run_get_info(run, &info);
    *ms = info.last_ms;
    return status;
}

static graphi_status time_all(struct bench *bench, const struct ours *o, const struct peer_graph *peer,
                              double ms[ENGINES][MOST_ROUNDS], int rounds)
{
    for (int r = -2; r < rounds; r++) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(bench->options.quiet, "scheduling-cost %lld ns: round %d of %d", (long long)peer->nanoseconds,
                        r + 1, rounds);
        for (int e = 0; e < ENGINES; e++) {
            double t;
            rest();
            graphi_status status = GRAPHI_OK;
            if (engines[e].run)
                t = engines[e].run(peer, r == -2);
            else
                status = execute(o->run[e], &t);
            if (status != GRAPHI_OK)
                return report_failure(status);
            ms[e][r < 0 ? 0 : r] = t;
        }
    }
    return GRAPHI_OK;
}

static double add_rows(struct bench *bench, const struct dag *dag, int64_t nanoseconds,
                       double ms[ENGINES][MOST_ROUNDS], int rounds)
{
    double bound = bound_ms(dag, nanoseconds, bench->about.cores);
    char against[96];
    snprintf(against, sizeof against, "%lld ns: flow graph", (long long)nanoseconds);
    for (int e = 0; e < ENGINES; e++) {
        char id[96];
        snprintf(id, sizeof id, "%lld ns: %s", (long long)nanoseconds, engines[e].name);
        if (e == LOOPS && bound == 0)
            continue; /* nothing in nothing */
        json_t *row = result_row(&bench->result, id, engines[e].engine);
        if (ms[e][0] < 0) {
            result_string(row, "status", "missing");
            result_string(row, "reason", "not found at build time: make peers installs it");
            continue;
        }
        double median = result_median(ms[e], rounds);
        if (e != TBB && ms[TBB][0] > 0)
            result_ratio(row, against, ms[e], ms[TBB], rounds);
        result_times(row, ms[e], rounds);
        result_number(row, "overhead_ns_per_op", (median - bound) * 1e6 / dag->count);
        if (bound > 0) {
            result_number(row, "lower_bound_ms", bound);
            result_number(row, "fraction_of_limit", bound / median);
        }
    }
    return bound;
}

/* By the operations' nominal length. What others reach in the same rounds tells how much of it the machine takes:
 * operations last longer than asked for where its host takes cores away, even in loops that nobody schedules. */
static void bound_goal(struct bench *bench, int64_t nanoseconds, double bound, double ms[ENGINES][MOST_ROUNDS],
                       int rounds, double goal)
{
    static const int others[] = {LOOPS, TASKS};
    char name[96];
    snprintf(name, sizeof name, "%lld us operations: lower bound over makespan", (long long)nanoseconds / 1000);
    result_goal(&bench->result, name, bound / result_median(ms[SCHEDULED], rounds), goal, true);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ms[others[i]][0] > 0)
            result_note(&bench->result, "%s: %.3f of %s (%s), whose time is %.3f of ours in the same rounds", name,
                        bound / result_median(ms[others[i]], rounds), engines[others[i]].name,
                        engines[others[i]].engine, result_paired(ms[others[i]], ms[SCHEDULED], rounds));
}

static void empty_goals(struct bench *bench, double ms[ENGINES][MOST_ROUNDS], int rounds, double goal)
{
    if (ms[TBB][0] <= 0)
        return;
    result_goal(&bench->result, "empty operations, inlining off: time over oneTBB's",
                result_paired(ms[SCHEDULED], ms[TBB], rounds), goal, false);
    result_goal(&bench->result, "empty operations, inlining on: time over oneTBB's",
                result_paired(ms[INLINING], ms[TBB], rounds), 0.4, false);
}

static graphi_status at_duration(struct bench *bench, const struct dag *dag, int64_t nanoseconds, double goal,
                                 int rounds)
{
    struct ours ours = {0};
    static double ms[ENGINES][MOST_ROUNDS];
    struct peer_graph peer = {.count = dag->count,
                              .inputs_begin = dag->begin,
                              .inputs = dag->inputs,
                              .nanoseconds = nanoseconds,
                              .threads = bench->about.cores};
    graphi_status status = open_ours(bench, dag, nanoseconds, &ours);
    double before = peer_message_ns();
    if (status == GRAPHI_OK)
        status = time_all(bench, &ours, &peer, ms, rounds);
    close_ours(&ours);
    if (status != GRAPHI_OK)
        return status;
    result_note(&bench->result, "%lld ns: a message between two cores took %.0f ns before and %.0f ns after",
                (long long)nanoseconds, before, peer_message_ns());
    double bound = add_rows(bench, dag, nanoseconds, ms, rounds);
    if (nanoseconds > 0)
        bound_goal(bench, nanoseconds, bound, ms, rounds, goal);
    else
        empty_goals(bench, ms, rounds, goal);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    static const struct {
        int64_t nanoseconds;
        double goal; /* of the scheduler without inlining: time over oneTBB's, then bound over makespan */
        int rounds, quick_rounds;
    } lengths[] = {{0, 1, 40, 5}, {1000, 0.85, 40, 5}, {10000, 0.97, 10, 3}};
    struct dag dag;
    graphi_status status = make_dag(bench->options.quick ? 3000 : 100000, bench->options.seed + 1, &dag);
    for (int i = 0; i < 3 && status == GRAPHI_OK; i++)
        status = at_duration(bench, &dag, lengths[i].nanoseconds, lengths[i].goal,
                             bench->options.quick ? lengths[i].quick_rounds : lengths[i].rounds);
    free(dag.begin);
    free(dag.inputs);
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "scheduling-cost", run);
}
