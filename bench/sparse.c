/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of training a table of embeddings costs that updates the rows which were read, against one that updates
 * all of them: 1,000 ids of 100,000 rows of 128 numbers, a seventh of them duplicates, and the loss a mean of squares,
 * so that the table is all there is. Both forms alternate, one optimizer after the other. */
#include "bench.h"

#include <stdlib.h>

enum { TABLE = 100000, COLUMNS = 128, IDS = 1000, ROUNDS = 40, QUICK_ROUNDS = 6, QUICK_TABLE = 20000 };
enum { SPARSE, DENSE, FORMS };

static const struct kept {
    const char *name;
    graphi_optimizer optimizer;
    bool same; /* the bits of the dense form: otherwise rows that were not read do not decay */
} optimizers[] = {{"sgd", {.kind = GRAPHI_SGD}, true},
                  {"sgd, clipped", {.kind = GRAPHI_SGD, .clip_norm = 1}, true},
                  {"adagrad", {.kind = GRAPHI_ADAGRAD}, true},
                  {"momentum, lazy", {.kind = GRAPHI_MOMENTUM}, false},
                  {"adam, lazy", {.kind = GRAPHI_ADAM}, false}};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

struct form {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    double ms[ROUNDS];
};

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

static graphi_status build(struct form *form, const graphi_optimizer *how, bool dense, int64_t rows)
{
    graphi_status status = graphi_graph_create(&form->graph);
    if (status != GRAPHI_OK)
        return status;
    graphi_graph *g = form->graph;
    const graphi_initializer start = {.kind = GRAPHI_INIT_NORMAL, .b = 0.1};
    graphi_optimizer optimizer = *how;
    graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){rows, COLUMNS}, &start);
    graphi_value ids = graphi_input(g, "ids", GRAPHI_I32, 1, (int64_t[]){IDS});
    graphi_value loss = graphi_reduce_mean(g, graphi_square(g, graphi_embedding(g, table, ids)), NULL, 0, 0);
    optimizer.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
    optimizer.sparse = dense ? GRAPHI_OFF : GRAPHI_ON;
    graphi_output(g, "loss", loss);
    return graphi_minimize(g, loss, &optimizer);
}

static graphi_status form_open(struct bench *bench, struct form *form, const graphi_optimizer *how, bool dense,
                               int64_t rows)
{
    graphi_status status = build(form, how, dense, rows);
    if (status == GRAPHI_OK)
        status = graphi_plan_create(form->graph, bench->machine, NULL, &form->plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(form->graph, 1, &form->state);
    if (status == GRAPHI_OK)
        status = graphi_run_create(form->plan, form->state, &form->run);
    if (status == GRAPHI_OK)
        status = graphi_run_set(form->run, "rate", GRAPHI_F32, &(float){0.1f}, sizeof(float));
    return status == GRAPHI_OK ? GRAPHI_OK : bench_failure(status);
}

static void form_close(struct form *form)
{
    graphi_run_destroy(form->run);
    graphi_state_destroy(form->state);
    graphi_plan_destroy(form->plan);
    graphi_graph_destroy(form->graph);
    *form = (struct form){0};
}

/* Other ids in every step, the same in both forms. */
static graphi_status step(struct form *form, const int32_t *ids, double *ms)
{
    graphi_status status = graphi_run_set(form->run, "ids", GRAPHI_I32, ids, IDS * sizeof *ids);
    const double begin = report_seconds();
    if (status == GRAPHI_OK)
        status = graphi_run_execute(form->run);
    *ms = (report_seconds() - begin) * 1e3;
    return status == GRAPHI_OK ? GRAPHI_OK : bench_failure(status);
}

static graphi_status measure(struct form *form, int rounds, int64_t rows)
{
    static int32_t ids[IDS];
    uint64_t random = 1;
    graphi_status status = GRAPHI_OK;
    for (int r = -2; r < rounds && status == GRAPHI_OK; r++) { /* two steps to warm up */
        for (int i = 0; i < IDS; i++)
            ids[i] = i && next(&random) % 7 == 0 ? ids[next(&random) % (uint64_t)i]
                                                 : (int32_t)(next(&random) % (uint64_t)rows);
        double ms;
        for (int f = 0; f < FORMS && status == GRAPHI_OK; f++) {
            status = step(&form[f], ids, &ms);
            form[f].ms[r < 0 ? 0 : r] = ms;
        }
        if (status == GRAPHI_OK && report_interrupted())
            status = GRAPHI_INTERRUPTED;
    }
    return status;
}

/* A form that computes something else is not the faster one. */
static graphi_status compare(const struct form *form, const struct kept *kept)
{
    char hex[FORMS][65];
    for (int f = 0; f < FORMS; f++)
        graphi_state_sha256(form[f].state, hex[f]);
    for (int i = 0; kept->same && i < 64; i++)
        if (hex[SPARSE][i] != hex[DENSE][i])
            return report_error(GRAPHI_MISSED, "sparse", "found other parameters than those of the dense form with %s, "
                                "expected the same", kept->name);
    return GRAPHI_OK;
}

static void report(struct bench *bench, const struct form *form, const struct kept *kept, int rounds, int64_t rows)
{
    static const char *const names[] = {"rows that were read", "dense"};
    char id[FORMS][96];
    for (int f = 0; f < FORMS; f++)
        snprintf(id[f], sizeof id[f], "%s, %lld x %d: %s", kept->name, (long long)rows, COLUMNS, names[f]);
    for (int f = 0; f < FORMS; f++) {
        json_t *row = result_row(&bench->result, id[f], "graphi");
        result_times(row, form[f].ms, rounds);
        if (f == SPARSE)
            result_ratio(row, id[DENSE], form[SPARSE].ms, form[DENSE].ms, rounds);
    }
    if (kept->same) {
        char goal[96];
        snprintf(goal, sizeof goal, "%s: time over the dense form's", kept->name);
        result_goal(&bench->result, goal, result_paired(form[SPARSE].ms, form[DENSE].ms, rounds), 0.1, false);
    }
}

static graphi_status run(struct bench *bench)
{
    static struct form form[FORMS];
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS;
    const int64_t rows = bench->options.quick ? QUICK_TABLE : TABLE;
    graphi_status status = GRAPHI_OK;
    for (int o = 0; o < OPTIMIZERS && status == GRAPHI_OK; o++) {
        for (int f = 0; f < FORMS && status == GRAPHI_OK; f++)
            status = form_open(bench, &form[f], &optimizers[o].optimizer, f == DENSE, rows);
        if (status == GRAPHI_OK)
            status = measure(form, rounds, rows);
        if (status == GRAPHI_OK)
            status = compare(form, &optimizers[o]);
        if (status == GRAPHI_OK)
            report(bench, form, &optimizers[o], rounds, rows);
        for (int f = 0; f < FORMS; f++)
            form_close(&form[f]);
    }
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "sparse", run); }
