/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table III: two operations one after the other on all cores, and side by side on half of them
 * each; simulated, input (32,8,8,2048). The paper's other way of co-running, both on all cores by hardware threads, has
 * no row: a policy puts operations of one thread alone on siblings. Its 1.03 is what the simulation takes a core with
 * both threads busy to do. */
#include "convolutions.h"

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    struct study s;
    graphi_graph *graph;
    graphi_simulation serial, apart;
    bool halved = false;
    graphi_status status = convolution_graph(&convolutions[2], 3, &graph);
    if (status)
        return status;
    status = study_open_graph(bench, "two gradients", graph, &s);
    int cores = s.about.cores;
    const char *table = "concurrency-control.txt Table III", *base = "two gradients: serial 68";
    char in_turn[48], both[48], beside[48];
    snprintf(in_turn, sizeof in_turn, "serial %d", cores);
    snprintf(both, sizeof both, "two gradients: co-run %d+%d", cores, cores);
    snprintf(beside, sizeof beside, "co-run %d+%d", cores / 2, cores / 2);
    if (!status)
        status = study_row(&s, in_turn,
                           &(graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = cores}, NULL,
                           0, &serial);
    if (!status)
        study_paper(bench, table, "two gradients: serial 68", "", 0, 41.1);
    if (!status) {
        study_missing(bench, both,
                      s.about.siblings > 0 ? "policies put operations of one thread alone on sibling threads"
                                           : "the described machine has one thread a core");
        study_paper(bench, table, "two gradients: co-run 68+68", base, 1 / 1.03, 39.9);
        graphi_setting halves = {
            .policy = GRAPHI_POLICY_CRITICAL_PATH, .executors = 2, .width = cores / 2, .light = GRAPHI_OFF};
        study_paper(bench, table, "two gradients: co-run 34+34", base, 1 / 1.38, 29.8);
        halved = study_fits(&s, beside, 2, cores / 2);
        if (halved)
            status = study_row(&s, beside, &halves, in_turn, serial.makespan_ms, &apart);
    }
    if (!status && halved) {
        result_note(&bench->result,
                    "simulated, co-running on half of the cores each: %.2f times faster than in turn; Table III: 1.38",
                    serial.makespan_ms / apart.makespan_ms);
    }
    study_close(&s);
    return status;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "table-3", run);
}
