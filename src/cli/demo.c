/* SPDX-License-Identifier: Apache-2.0 */
/* graphi demo: the main job on real input. Trains PathNet on Fashion-MNIST, showing loss and test accuracy, then times
 * the same training step on one thread, sequentially on all cores, with a naive shared queue and with Graphi, in
 * alternation, and writes timeline.html. Gains are told against the sequential engine, which has as many cores. */
#include "cli/commands.h"
#include "cli/training.h"
#include "tool/local_machine.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

#include <stdlib.h>
#include <string.h>

enum { ENGINES = 4, BASE = 1, ROUNDS = 30 }; /* BASE: the engine that others are compared with */

struct engine {
    const char *id;
    graphi_policy policy;
    bool executors, teams; /* one on each core, one of all cores; neither: one thread */
    bool tuned;            /* as the trainer's plan instead */
    graphi_plan *plan;
    graphi_run *run;
    double ms[ROUNDS];
};

static graphi_setting setting_of(const struct engine *engine, const graphi_plan_info *tuned, int cores)
{
    const graphi_setting own = graphi_decision_setting(&tuned->setting);
    const graphi_setting setting = {.policy = engine->policy,
                                    .executors = engine->executors ? cores : 1,
                                    .width = engine->teams ? cores : 1,
                                    .pin = own.pin};
    return engine->tuned ? own : setting;
}

/* One batch, which all engines take. */
struct batch {
    float *images;
    int32_t *labels;
    size_t image_bytes, label_bytes;
};

static graphi_status batch_open(const struct training *t, struct batch *batch)
{
    const graphi_model_info *s = &t->job.info;
    const size_t rows = (size_t)s->batch, pixels = rows * (size_t)(s->image * s->image * s->channels);
    int64_t samples;
    *batch = (struct batch){.image_bytes = pixels * sizeof *batch->images, .label_bytes = rows * sizeof *batch->labels};
    batch->images = calloc(1, batch->image_bytes);
    batch->labels = calloc(1, batch->label_bytes);
    if (!batch->images || !batch->labels)
        return report_error(GRAPHI_MEMORY, "batch", "found no memory, expected %zu bytes", batch->image_bytes);
    graphi_status status = graphi_data_next(t->data.data, batch->images, batch->image_bytes, batch->labels,
                                            batch->label_bytes, &samples);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static void batch_close(struct batch *batch)
{
    free(batch->images);
    free(batch->labels);
}

static graphi_status make_engine(const struct training *t, const struct batch *batch, struct engine *engine)
{
    graphi_plan_info tuned;
    graphi_machine_info machine;
    graphi_plan_get_info(t->job.plan, &tuned);
    graphi_machine_get_info(t->job.machine, &machine);
    const graphi_setting setting = setting_of(engine, &tuned, machine.cores);
    const graphi_plan_change change = {.setting = &setting};
    graphi_status status;
    float rate = 0; /* timing leaves the trained parameters alone */
    if ((status = graphi_plan_with(t->job.plan, &change, &engine->plan)) != GRAPHI_OK ||
        (status = graphi_run_create(engine->plan, t->job.state, &engine->run)) != GRAPHI_OK ||
        (status = graphi_run_set(engine->run, "images", GRAPHI_F32, batch->images, batch->image_bytes)) != GRAPHI_OK ||
        (status = graphi_run_set(engine->run, "labels", GRAPHI_I32, batch->labels, batch->label_bytes)) != GRAPHI_OK ||
        (status = graphi_run_set(engine->run, "learning_rate", GRAPHI_F32, &rate, sizeof rate)) != GRAPHI_OK)
        return report_failure(status);
    return GRAPHI_OK;
}

static graphi_status time_engines(struct engine *engine)
{
    for (int round = -3; round < ROUNDS && !report_interrupted(); round++)
        for (int e = 0; e < ENGINES; e++) {
            graphi_run_info info;
            graphi_status status = graphi_run_execute(engine[e].run);
            if (status != GRAPHI_OK)
                return report_failure(status);
            graphi_run_get_info(engine[e].run, &info);
            if (round >= 0)
                engine[e].ms[round] = info.last_ms;
        }
    return report_stopped("demo", "to time all engines");
}

/* Where the demonstration talks. */
static FILE *talk(const struct options *options) { return options_json_is_stdout(options) ? stderr : stdout; }

static void add_rows(const struct training *t, struct engine *engine, struct result *result)
{
    graphi_machine_info machine;
    graphi_machine_get_info(t->job.machine, &machine);
    job_measure_again(t->job.machine, &machine);
    graphi_plan_info plan;
    graphi_plan_get_info(t->job.plan, &plan);
    struct rating rating = job_rating(t->job.graph, &machine, plan.precision);
    for (int e = 0; e < ENGINES; e++) {
        char setting[64] = "";
        graphi_plan_info info;
        graphi_plan_get_info(engine[e].plan, &info);
        json_t *row = result_row(result, engine[e].id, "graphi");
        result_setting(row, &info.setting);
        result_ratio(row, engine[BASE].id, engine[e].ms, engine[BASE].ms, ROUNDS);
        double median = result_median(engine[e].ms, ROUNDS);
        result_times(row, engine[e].ms, ROUNDS);
        result_rate(row, rating, median);
        if (info.setting.executors > 0) /* free-width policies have no split of the cores */
            snprintf(setting, sizeof setting, "%dx%d ", info.setting.executors, info.setting.width);
        fprintf(talk(t->job.options),
                "%-18s %6s%-13s %8.3f ms a step   speed-up over %s %5.2f   %5.1f %% of the limit\n", engine[e].id,
                setting, graphi_policy_name(info.setting.policy), median, engine[BASE].id,
                result_median(engine[BASE].ms, ROUNDS) / median, 100 * rating.limit_ms / median);
    }
}

static graphi_status compare(struct training *t, struct result *result)
{
    struct engine engine[ENGINES] = {
        {.id = "one thread", .policy = GRAPHI_POLICY_SEQUENTIAL},
        {.id = "sequential", .policy = GRAPHI_POLICY_SEQUENTIAL, .teams = true},
        {.id = "naive shared queue", .policy = GRAPHI_POLICY_NAIVE, .executors = true},
        {.id = "graphi", .tuned = true},
    };
    struct batch batch;
    graphi_status status = batch_open(t, &batch);
    for (int e = 0; e < ENGINES && status == GRAPHI_OK; e++)
        status = make_engine(t, &batch, &engine[e]);
    batch_close(&batch);
    if (status == GRAPHI_OK)
        status = time_engines(engine);
    if (status == GRAPHI_OK)
        add_rows(t, engine, result);
    const char *prefix = t->job.options->timeline;
    if (status == GRAPHI_OK && ((status = graphi_run_trace(engine[ENGINES - 1].run, true)) != GRAPHI_OK ||
                                (status = graphi_run_execute(engine[ENGINES - 1].run)) != GRAPHI_OK ||
                                (status = graphi_run_write_timeline(engine[ENGINES - 1].run, prefix)) != GRAPHI_OK))
        report_failure(status);
    if (status == GRAPHI_OK) {
        result_timeline(result, prefix);
        fprintf(talk(t->job.options),
                "wrote %s.html and %s.json (open the first in a browser, the second in Perfetto)\n", prefix, prefix);
    }
    for (int e = 0; e < ENGINES; e++) {
        graphi_run_destroy(engine[e].run);
        graphi_plan_destroy(engine[e].plan);
    }
    return status;
}

int command_demo(const struct options *options)
{
    struct options demo = *options;
    demo.size = demo.size ? demo.size : "small";
    demo.steps = demo.steps || demo.epochs ? demo.steps : 1200;
    demo.validate = demo.validate ? demo.validate : 200;
    demo.tune_given = true; /* the demonstration always shows the profiler at work */
    demo.tune = options->tune_given ? options->tune : options->plan ? 0 : 8;
    struct result result = result_begin("demo", NULL, options->argc, options->argv);
    struct training training;
    FILE *out = talk(options);
    fprintf(out, "PathNet on Fashion-MNIST: profile, train, compare\n");
    fflush(out);
    graphi_status status = training_prepare(&demo, options->subject, GRAPHI_TEST, demo.tune, NULL, &result, &training);
    if (status == GRAPHI_OK) {
        job_describe(&training.job, &result);
        job_explain(options, training.job.plan);
        fflush(out);
        status = training_run(&training);
        if (status == GRAPHI_OK)
            status = compare(&training, &result);
        result_plan(&result, training.job.plan, training.job.run);
        job_record(&training.job, &result);
        status = job_write(options, &result, status);
    }
    training_close(&training);
    result_end(&result);
    return status;
}
