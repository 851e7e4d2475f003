/* SPDX-License-Identifier: Apache-2.0 */
/* What cores cost an execution: taken by each execution, by a lease that is taken once, and by one that the thread has
 * entered. The same small graph on all cores, in alternation. */
#include "five_nodes.h"

#include <time.h>

enum { ROUNDS = 30, QUICK_ROUNDS = 5, TAKEN = 0, HELD, ENTERED, WAYS };

struct leases {
    struct five_nodes five;
    graphi_plan *plan;
    graphi_run *run;
    graphi_lease *lease;
    five_array x, y;
    int executions; /* of a turn */
    double ms[WAYS][ROUNDS];
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static graphi_status execute_all(struct leases *l)
{
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < l->executions && status == GRAPHI_OK; i++)
        status = l->lease ? graphi_run_execute_on(l->run, l->lease) : graphi_run_execute(l->run);
    return status;
}

static graphi_status turn(struct leases *l, const graphi_machine *machine, int way, double *ms)
{
    graphi_status status = way == TAKEN ? GRAPHI_OK : graphi_lease_take(machine, NULL, &l->lease);
    if (status == GRAPHI_OK && way == ENTERED)
        status = graphi_lease_enter(l->lease);
    const double begin = now_ms();
    if (status == GRAPHI_OK)
        status = execute_all(l);
    *ms = (now_ms() - begin) / l->executions;
    graphi_lease_release(l->lease);
    l->lease = NULL;
    return told(status);
}

static graphi_status open_all(struct bench *bench, struct leases *l)
{
    graphi_setting setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH, .driver = GRAPHI_DRIVER_COMBINING,
                              .executors = bench->about.cores, .width = 1};
    graphi_status status = five_nodes_open(bench, &l->five);
    if (status == GRAPHI_OK)
        status = told(graphi_plan_with(l->five.plan, &(graphi_plan_change){.setting = &setting}, &l->plan));
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_destroy(l->five.plan);
    l->five.plan = l->plan;
    return told(five_nodes_bind(&l->five, &l->x, &l->y, &l->run));
}

static void report(struct bench *bench, struct leases *l, int rounds)
{
    static const char *const id[] = {"a lease an execution", "a lease that is held", "a lease that is entered"};
    for (int k = 0; k < WAYS; k++) {
        json_t *row = result_row(&bench->result, id[k], "graphi");
        result_times(row, l->ms[k], rounds);
        if (k)
            result_ratio(row, id[0], l->ms[k], l->ms[TAKEN], rounds);
    }
}

static graphi_status run(struct bench *bench)
{
    static struct leases l;
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    l.executions = bench->options.quick ? 200 : 2000;
    graphi_status status = open_all(bench, &l);
    for (int r = 0; r < rounds && status == GRAPHI_OK; r++)
        for (int k = 0; k < WAYS && status == GRAPHI_OK; k++) {
            status = turn(&l, bench->machine, k, &l.ms[k][r]);
            if (status == GRAPHI_OK && report_interrupted())
                status = GRAPHI_INTERRUPTED;
        }
    if (status == GRAPHI_OK)
        report(bench, &l, rounds);
    graphi_run_destroy(l.run);
    five_nodes_close(&l.five);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "leases", run); }
