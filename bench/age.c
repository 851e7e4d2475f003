/* SPDX-License-Identifier: Apache-2.0 */
/* Does a step take longer the older a training is? A text that this program makes has 12,000 words that occur once, at
 * the start of its four rows, and then 50 others: Adam's moments of the rows of words that are met no more fade, after
 * some 800 steps below the smallest normal number, where processors compute a hundred times as slowly. Rows are the
 * steps about 100 and about 2,400 of one training (--quick: 1,000); the goal is that old ones take at most 1.05 times
 * as long. */
#include "bench.h"

#include "graphi/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 4, STEPS = 20, ONCE = 3000, OFTEN = 50, AFTER = 60000 }; /* of the text, and of a batch of it */
enum { WINDOW = 50, YOUNG = 100, OLD = 2400, SOON = 1000 };             /* steps */

/* One training, from text to times. */
struct training {
    graphi_data *data;
    graphi_graph *graph;
    graphi_state *state;
    graphi_plan *plan;
    graphi_run *run;
    graphi_model_info info;
    int32_t inputs[ROWS * STEPS], targets[ROWS * STEPS];
    double ms[2][WINDOW]; /* young and old steps */
};

static bool write_text(const char *path, uint64_t seed)
{
    FILE *file = fopen(path, "w");
    for (int row = 0; file && row < ROWS; row++) {
        for (int i = 0; i < ONCE; i++)
            fprintf(file, "w%d ", row * ONCE + i);
        for (int i = 0; i < AFTER; i++)
            fprintf(file, "c%d ", (int)(job_random(&seed) % OFTEN));
    }
    return file && fclose(file) == 0;
}

static graphi_status open_text(struct bench *bench, graphi_data **data)
{
    char path[] = "/tmp/graphi-age-XXXXXX";
    const graphi_data_options how = {
        .format = GRAPHI_DATA_TEXT, .batch = ROWS, .steps = STEPS, .validation = -1, .seed = bench->options.seed};
    const int place = mkstemp(path);
    if (place < 0 || close(place) != 0 || !write_text(path, bench->options.seed + 1))
        return report_error(GRAPHI_IO, path, "found that it cannot be written, expected a place for 2 MB of text");
    const graphi_status status = graphi_data_open(path, &how, data);
    unlink(path);
    return status;
}

static graphi_status open_training(struct bench *bench, struct training *t)
{
    const struct options *o = &bench->options;
    graphi_status status = open_text(bench, &t->data);
    graphi_data_info about = {0};
    if (status == GRAPHI_OK)
        graphi_data_get_info(t->data, &about);
    graphi_model_options model = {.task = "real", .size = "small", .batch = ROWS, .units = o->units ? o->units : 64,
                                  .steps = STEPS, .vocabulary = about.classes};
    if (status == GRAPHI_OK)
        status = graphi_model_get_info("lstm", &model, &t->info);
    if (status == GRAPHI_OK)
        status = graphi_model_create("lstm", &model, &t->graph);
    if (status == GRAPHI_OK)
        status = graphi_state_create(t->graph, o->seed, &t->state);
    if (status == GRAPHI_OK)
        status = graphi_plan_create(t->graph, bench->machine, NULL, &t->plan);
    return status == GRAPHI_OK ? graphi_run_create(t->plan, t->state, &t->run) : status;
}

static graphi_status one_step(struct training *t, double *ms)
{
    int64_t rows;
    const float rate = 0.001f;
    graphi_run_info info;
    graphi_status status = graphi_data_next(t->data, t->inputs, sizeof t->inputs, t->targets, sizeof t->targets, &rows);
    if (status == GRAPHI_OK)
        status = graphi_run_set(t->run, "tokens", GRAPHI_I32, t->inputs, sizeof t->inputs);
    if (status == GRAPHI_OK)
        status = graphi_run_set(t->run, "targets", GRAPHI_I32, t->targets, sizeof t->targets);
    if (status == GRAPHI_OK)
        status = graphi_run_set(t->run, "learning_rate", GRAPHI_F32, &rate, sizeof rate);
    if (status == GRAPHI_OK)
        status = graphi_run_execute(t->run);
    graphi_run_get_info(t->run, &info);
    *ms = info.last_ms;
    return status;
}

static graphi_status measure(struct bench *bench, struct training *t, int old)
{
    graphi_status status = GRAPHI_OK;
    for (int step = 0; status == GRAPHI_OK && step < old + WINDOW; step++) {
        double ms = 0;
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        status = one_step(t, &ms);
        if (step >= YOUNG && step < YOUNG + WINDOW)
            t->ms[0][step - YOUNG] = ms;
        if (step >= old)
            t->ms[1][step - old] = ms;
        if (step % 50 == 0)
            report_progress(bench->options.quiet, "age: step %d of %d, %.2f ms", step, old + WINDOW, ms);
    }
    return status;
}

static void add_rows(struct bench *bench, const struct training *t, int old)
{
    char title[2][64];
    graphi_plan_info info;
    graphi_plan_get_info(t->plan, &info);
    for (int age = 0; age < 2; age++) {
        snprintf(title[age], sizeof title[age], "lstm: steps from %d on", age ? old : YOUNG);
        json_t *row = result_row(&bench->result, title[age], "graphi");
        result_setting(row, &info.setting);
        result_times(row, t->ms[age], WINDOW);
        if (age)
            result_ratio(row, title[0], t->ms[1], t->ms[0], WINDOW);
    }
    result_goal(&bench->result, "old steps over young ones",
                result_median(t->ms[1], WINDOW) / result_median(t->ms[0], WINDOW), 1.05, false);
}

static graphi_status run(struct bench *bench)
{
    const int old = bench->options.quick ? SOON : OLD;
    struct training *t = calloc(1, sizeof *t);
    if (!t)
        return report_error(GRAPHI_MEMORY, "age", "found no memory for a training, expected some");
    graphi_status status = open_training(bench, t);
    if (status == GRAPHI_OK)
        status = measure(bench, t, old);
    if (status == GRAPHI_OK)
        add_rows(bench, t, old);
    else
        status = bench_failure(status);
    graphi_run_destroy(t->run);
    graphi_plan_destroy(t->plan);
    graphi_state_destroy(t->state);
    graphi_graph_destroy(t->graph);
    graphi_data_close(t->data);
    free(t);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "age", run); }
