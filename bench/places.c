/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory lies: for each memory node of the machine (or half of it, where there is one) a plan, a state and a run
 * are made by a thread that has entered a lease of that part, and executed there. Rows tell times of executions with
 * memory bound, and without any lease; notes count pages by node: those on foreign nodes should be none. */
#include "five_nodes.h"

#include <time.h>

enum { ROUNDS = 20, QUICK_ROUNDS = 5, SIDE = 768 };

struct placed {
    graphi_machine *part;
    graphi_lease *lease;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    double ms[ROUNDS];
};

static float input[SIDE * SIDE];

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static graphi_status make(struct placed *p)
{
    const int64_t dims[] = {SIDE, SIDE};
    const graphi_initializer weights = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
    graphi_status status = graphi_graph_create(&p->graph);
    if (status != GRAPHI_OK)
        return status;
    graphi_value x = graphi_input(p->graph, "x", GRAPHI_F32, 2, dims);
    graphi_value w = graphi_parameter(p->graph, "w", GRAPHI_F32, 2, dims, &weights);
    graphi_output(p->graph, "y", graphi_tanh(p->graph, graphi_matmul(p->graph, x, w, 0, 0)));
    status = graphi_plan_create(p->graph, p->part, NULL, &p->plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(p->graph, 1, &p->state);
    if (status == GRAPHI_OK)
        status = graphi_run_create(p->plan, p->state, &p->run);
    return status == GRAPHI_OK ? graphi_run_set(p->run, "x", GRAPHI_F32, input, sizeof input) : status;
}

static graphi_status execute(struct placed *p, int rounds)
{
    graphi_status status = graphi_run_execute(p->run);
    for (int r = 0; r < rounds && status == GRAPHI_OK; r++) {
        const double begin = now_ms();
        status = graphi_run_execute(p->run);
        p->ms[r] = now_ms() - begin;
    }
    return status;
}

static void tell_pages(struct bench *bench, const char *id, const struct placed *p)
{
    static const char *const what[] = {"plan", "parameters", "packed", "arena", "inputs"};
    for (int of = GRAPHI_PAGES_PLAN; of <= GRAPHI_PAGES_INPUTS; of++) {
        graphi_page_count count;
        graphi_memory_node node;
        if (graphi_pages(p->run, (graphi_pages_of)of, &count) != GRAPHI_OK || !count.pages)
            continue;
        int64_t own = 0, all = 0;
        for (int i = 0; i < GRAPHI_MOST_NODES; i++)
            all += count.on[i];
        for (int i = 0; graphi_machine_node_at(p->part, i, &node); i++)
            own += node.system < GRAPHI_MOST_NODES ? count.on[node.system] : 0;
        result_note(&bench->result, "%s, %s: %lld pages, on its nodes %lld, on foreign ones %lld, not in memory %lld, "
                                    "not known %lld%s%s",
                    id, what[of], (long long)count.pages, (long long)own, (long long)(all - own),
                    (long long)count.absent, (long long)count.unknown, count.note[0] ? ": " : "", count.note);
    }
}

static graphi_status part(struct bench *bench, int i, int parts, int rounds)
{
    static struct placed p;
    char id[64];
    p = (struct placed){0};
    graphi_status status = graphi_machine_part(bench->machine, i, parts, NULL, &p.part);
    if (status == GRAPHI_OK)
        status = graphi_lease_take(p.part, NULL, &p.lease);
    if (status == GRAPHI_OK)
        status = graphi_lease_enter(p.lease);
    if (status == GRAPHI_OK)
        status = make(&p);
    if (status == GRAPHI_OK)
        status = execute(&p, rounds);
    told(status);
    if (status == GRAPHI_OK) {
        graphi_lease_info info;
        graphi_lease_get_info(p.lease, &info);
        snprintf(id, sizeof id, "%s %d%s", parts ? "part" : "node", i, info.bound ? ", bound" : ", first touch");
        result_times(result_row(&bench->result, id, "graphi"), p.ms, rounds);
        tell_pages(bench, id, &p);
        if (info.note[0])
            result_note(&bench->result, "%s: %s", id, info.note);
    }
    graphi_run_destroy(p.run);
    graphi_state_destroy(p.state);
    graphi_plan_destroy(p.plan);
    graphi_graph_destroy(p.graph);
    graphi_lease_release(p.lease);
    graphi_machine_destroy(p.part);
    return status;
}

static graphi_status run(struct bench *bench)
{
    const int nodes = bench->about.numa_nodes, parts = nodes > 1 ? nodes : bench->about.cores > 1 ? 2 : 1;
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < parts && status == GRAPHI_OK; i++)
        status = report_interrupted() ? GRAPHI_INTERRUPTED : part(bench, i, nodes > 1 ? 0 : parts, rounds);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "places", run); }
