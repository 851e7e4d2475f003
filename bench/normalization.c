/* SPDX-License-Identifier: Apache-2.0 */
/* What batch normalization by given statistics costs in inference: GoogLeNet with it, whose statistics go into weights
 * once (pass `derive`), with it on the tiles of convolutions in each step, and without it, in alternation. */
#include "bench.h"

#include <stdlib.h>

enum { ROUNDS = 60, QUICK_ROUNDS = 6, WITHOUT = 0, DERIVED, EACH_STEP, FORMS };

static const struct form {
    const char *name, *disable;
    bool norm;
} forms[FORMS] = {{"without", NULL, false},
                  {"batch normalization", NULL, true},
                  {"batch normalization in each step", "derive", true}};

struct network_form {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    double ms[ROUNDS];
};

/* The same numbers for every form: small ones, as images have. */
static graphi_status feed(struct network_form *n)
{
    graphi_port port;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; status == GRAPHI_OK && graphi_graph_at(n->graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        float *data = calloc(1, port.bytes);
        if (!data)
            return GRAPHI_MEMORY;
        for (size_t k = 0; port.dtype == GRAPHI_F32 && k < port.bytes / sizeof *data; k++)
            data[k] = (float)(k * 7919 % 1009) / 1009 - 0.5f;
        status = graphi_run_set(n->run, port.name, port.dtype, data, port.bytes);
        free(data);
    }
    return status;
}

static graphi_status form_open(struct bench *bench, const char *size, const struct form *form, struct network_form *n)
{
    const graphi_model_options model = {
        .task = "bench", .size = size, .batch = 1, .evaluation = true, .batch_norm = form->norm};
    const graphi_plan_options plan = {.disable = form->disable};
    graphi_status status = graphi_model_create("googlenet", &model, &n->graph);
    if (status == GRAPHI_OK)
        status = graphi_plan_create(n->graph, bench->machine, &plan, &n->plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(n->graph, 1, &n->state);
    if (status == GRAPHI_OK)
        status = graphi_run_create(n->plan, n->state, &n->run);
    return status == GRAPHI_OK ? feed(n) : status;
}

static void form_close(struct network_form *n)
{
    graphi_run_destroy(n->run);
    graphi_state_destroy(n->state);
    graphi_plan_destroy(n->plan);
    graphi_graph_destroy(n->graph);
}

static graphi_status measure(struct network_form *n, int rounds)
{
    graphi_status status = GRAPHI_OK;
    for (int r = -2; r < rounds && status == GRAPHI_OK; r++) /* two to warm up */
        for (int f = 0; f < FORMS && status == GRAPHI_OK; f++) {
            const double begin = report_seconds();
            status = graphi_run_execute(n[f].run);
            n[f].ms[r < 0 ? 0 : r] = (report_seconds() - begin) * 1e3;
            if (status == GRAPHI_OK && report_interrupted())
                return GRAPHI_INTERRUPTED;
        }
    return status;
}

static void report(struct bench *bench, const struct network_form *n, const char *size, int rounds)
{
    char id[FORMS][96];
    for (int f = 0; f < FORMS; f++)
        snprintf(id[f], sizeof id[f], "googlenet %s, batch 1: %s", size, forms[f].name);
    for (int f = 0; f < FORMS; f++) {
        json_t *row = result_row(&bench->result, id[f], "graphi");
        result_times(row, n[f].ms, rounds);
        if (f)
            result_ratio(row, id[WITHOUT], n[f].ms, n[WITHOUT].ms, rounds);
    }
    result_goal(&bench->result, "batch normalization: time over that without",
                result_paired(n[DERIVED].ms, n[WITHOUT].ms, rounds), 1.02, false);
}

static graphi_status run(struct bench *bench)
{
    static struct network_form network[FORMS];
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    const char *size = "small";
    graphi_status status = GRAPHI_OK;
    for (int f = 0; f < FORMS && status == GRAPHI_OK; f++)
        status = form_open(bench, size, &forms[f], &network[f]);
    if (status == GRAPHI_OK)
        status = measure(network, rounds);
    if (status == GRAPHI_OK)
        report(bench, network, size, rounds);
    for (int f = 0; f < FORMS; f++)
        form_close(&network[f]);
    return status == GRAPHI_OK || status == GRAPHI_INTERRUPTED ? status : bench_failure(status);
}

int main(int argc, char **argv) { return bench_main(argc, argv, "normalization", run); }
