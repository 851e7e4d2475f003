/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps by two solvers of half of the cores against one solver of all, and what of the two's step is adding
 * gradients that nothing hides: against two that add nothing. Groups take steps in alternation, of random samples. The
 * bench form of recurrent networks, which updates nothing, gets an update by plain SGD. */
#include "bench.h"

#include <string.h>

enum { WAYS = 3, ROUNDS = 200, QUICK_ROUNDS = 4, USUAL_ROUNDS = 12 };

static const struct way {
    const char *id;
    int solvers;
    graphi_reduction reduction;
} ways[WAYS] = {{"1 solver", 1, GRAPHI_REDUCTION_AUTO},
                {"2 solvers", 2, GRAPHI_REDUCTION_AUTO},
                {"2 solvers, nothing added", 2, GRAPHI_REDUCTION_NONE}};

/* A network, its samples, and its groups. */
struct work {
    struct bench *bench;
    char name[96];
    graphi_model_options model;
    graphi_model_info info;
    graphi_feed_array input[GRAPHI_FEED_ARRAYS];
    char names[GRAPHI_FEED_ARRAYS][64];
    int inputs;
    graphi_group *group[WAYS];
    double ms[WAYS][ROUNDS];
    int rounds;
};

static graphi_status build(void *context, int64_t batch, graphi_graph **out)
{
    const struct work *w = context;
    graphi_model_options model = w->model;
    model.batch = batch;
    model.dense = true;
    graphi_status status = graphi_model_create(w->info.name, &model, out);
    if (status == GRAPHI_OK && graphi_find(*out, "learning_rate") == GRAPHI_NONE) {
        const graphi_value rate = graphi_input(*out, "learning_rate", GRAPHI_F32, 0, NULL);
        status = graphi_minimize(*out, graphi_find(*out, "loss"), &(graphi_optimizer){.learning_rate = rate});
    }
    return status;
}

/* Numbers that depend on the seed alone; labels and tokens below their number. */
static graphi_status fill(struct work *w, const graphi_port *port)
{
    const size_t count = port->bytes / 4;
    const int64_t below = w->info.feed == GRAPHI_MODEL_IMAGES ? w->info.classes : w->info.vocabulary;
    uint64_t random = w->bench->options.seed + (uint64_t)w->inputs * 77;
    unsigned char *data = malloc(port->bytes);
    if (!data || w->inputs == GRAPHI_FEED_ARRAYS || port->dims[0] % w->info.batch) {
        free(data);
        return report_error(GRAPHI_UNSUPPORTED, port->name, "found an input that is not of samples, expected others");
    }
    for (size_t i = 0; i < count; i++)
        if (port->dtype == GRAPHI_I32)
            ((int32_t *)data)[i] = (int32_t)(job_random(&random) % (uint64_t)(below > 0 ? below : 10));
        else
            ((float *)data)[i] = (float)(job_random(&random) >> 40) * 0x1p-23f - 1;
    snprintf(w->names[w->inputs], sizeof w->names[0], "%s", port->name);
    w->input[w->inputs] =
        (graphi_feed_array){w->names[w->inputs], port->dtype, port->bytes / (size_t)w->info.batch, data};
    w->inputs++;
    return GRAPHI_OK;
}

static graphi_status fill_all(struct work *w, const graphi_graph *graph)
{
    graphi_port port;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; status == GRAPHI_OK && graphi_graph_at(graph, GRAPHI_PORT_INPUT, i, &port); i++)
        if (strcmp(port.name, "learning_rate") != 0)
            status = fill(w, &port);
    return status;
}

static graphi_status open_groups(struct work *w)
{
    graphi_plan_options plan;
    graphi_status status = job_plan_options(&w->bench->options, &plan);
    for (int i = 0; i < WAYS && status == GRAPHI_OK; i++) {
        const graphi_group_options how = {.build = build,
                                          .context = w,
                                          .batch = w->info.batch,
                                          .solvers = ways[i].solvers,
                                          .reduction = ways[i].reduction,
                                          .machine = w->bench->machine,
                                          .plan = &plan,
                                          .seed = w->bench->options.seed};
        status = graphi_group_create(&how, &w->group[i]);
        if (status != GRAPHI_OK)
            report_failure(status);
    }
    return status == GRAPHI_OK ? fill_all(w, graphi_group_graph(w->group[0])) : status;
}

static graphi_status take_turn(struct work *w, int way, int round)
{
    const graphi_step_batch batch = {w->input, w->inputs, w->info.batch, 0, "learning_rate", 1e-5f};
    float loss[GRAPHI_TRAINER_LOSSES];
    graphi_group_info info;
    const graphi_status status = graphi_group_step(w->group[way], &batch, loss);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_group_get_info(w->group[way], &info);
    if (round >= 0)
        w->ms[way][round] = info.step_ms;
    report_progress(w->bench->options.quiet, "%s: round %d", w->name, round + 1);
    return report_interrupted() ? GRAPHI_INTERRUPTED : GRAPHI_OK;
}

/* The first steps, which are not timed, make replicas. */
static graphi_status alternate(struct work *w)
{
    const struct options *o = &w->bench->options;
    const int least = o->quick ? QUICK_ROUNDS : USUAL_ROUNDS;
    const double end = report_seconds() + o->seconds;
    graphi_status status = GRAPHI_OK;
    for (int r = -1; status == GRAPHI_OK && r < ROUNDS && (r < least || report_seconds() < end); r++) {
        for (int i = 0; i < WAYS && status == GRAPHI_OK; i++)
            status = take_turn(w, r % 2 ? i : WAYS - 1 - i, r);
        w->rounds = r + 1;
    }
    report_progress(o->quiet, "%s", "");
    return status;
}

/* The part of the two's step that adding is; below 0 where it is within the noise. */
static double exposed(const struct work *w)
{
    return 1 - result_paired(w->ms[2], w->ms[1], w->rounds);
}

static void report(struct work *w)
{
    struct result *result = &w->bench->result;
    char id[WAYS][140], goal[200];
    for (int i = 0; i < WAYS; i++) {
        snprintf(id[i], sizeof id[i], "%s %s", w->name, ways[i].id);
        graphi_group_info info;
        graphi_group_get_info(w->group[i], &info);
        json_t *row = result_row(result, id[i], "graphi");
        result_times(row, w->ms[i], w->rounds);
        result_set(row, "solvers", json_integer(info.solvers));
        result_set(row, "gradient_bytes", json_integer(info.gradient_bytes));
        if (i)
            result_ratio(row, id[0], w->ms[i], w->ms[0], w->rounds);
        if (i == 1)
            result_set(row, "exposed", json_real(exposed(w)));
    }
    snprintf(goal, sizeof goal, "%s: step of two solvers over that of one", w->name);
    result_goal(result, goal, result_paired(w->ms[1], w->ms[0], w->rounds), 1.05, false);
    snprintf(goal, sizeof goal, "%s: reduction that is not hidden, of the step", w->name);
    result_goal(result, goal, exposed(w), 0.03, false);
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct work w = {.bench = bench};
    graphi_status status = job_model_options(&bench->options, &w.model);
    w.model.size = size;
    if (status == GRAPHI_OK && (status = graphi_model_get_info(name, &w.model, &w.info)) != GRAPHI_OK)
        return report_failure(status);
    if (status != GRAPHI_OK)
        return status;
    snprintf(w.name, sizeof w.name, "%s%s%s", name, w.info.size ? " " : "", w.info.size ? w.info.size : "");
    status = open_groups(&w);
    if (status == GRAPHI_OK)
        status = alternate(&w);
    if (status == GRAPHI_OK)
        report(&w);
    for (int i = 0; i < WAYS; i++)
        graphi_group_destroy(w.group[i]);
    for (int i = 0; i < w.inputs; i++)
        free((void *)(uintptr_t)w.input[i].data);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const usual[] = {"alexnet", "googlenet", "cifar10-full"};
    struct options *o = &bench->options;
    for (; !o->rest_count || (o->rest[0] == usual[0] && o->rest_count < 3); o->rest_count++)
        o->rest[o->rest_count] = usual[o->rest_count];
    if (bench->about.cores < 2)
        return report_error(GRAPHI_UNSUPPORTED, "solvers", "found one core, expected two");
    return bench_networks(bench, "small", body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "solvers", run);
}
