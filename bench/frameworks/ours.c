/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by formula, gradients by statistics: both as bench/frameworks/common.py has them, so that arrays need not be
 * moved. */
#include "frameworks/ours.h"

#include "frameworks/formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct range {
    double low, high;
};

static struct range range_of(const char *name, int rank, const int64_t *dims)
{
    static const struct {
        const char *last;
        struct range range;
    } special[] = {{"period", {1.5, 20}},
                   {"shift", {0, 1}},
                   {"ratio", {0.3, 0.6}},
                   {"scale", {0.5, 1.5}},
                   {"variance", {0.5, 1.5}}};
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strcmp(last, special[i].last) == 0)
            return special[i].range;
    if (rank == 1)
        return (struct range){-0.1, 0.1};
    if (strncmp(last, "w_", 2) == 0 || strncmp(last, "u_", 2) == 0)
        return (struct range){-0.01, 0.01};
    double inputs = 1;
    for (int d = 0; d + 1 < rank; d++)
        inputs *= (double)dims[d];
    double high = sqrt(6 / inputs);
    return (struct range){-high, high};
}

static void fill(const char *name, int rank, const int64_t *dims, float *data, int64_t count)
{
    struct range range = range_of(name, rank, dims);
    uint64_t key = formula_key("", name);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(range.low + (range.high - range.low) * formula_unit(key, i));
}

static int64_t elements(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= dims[d];
    return count;
}

/* Calls body for every float32 parameter with a buffer that has room for it. */
static graphi_status each_parameter(struct ours *ours, graphi_status (*body)(struct ours *, const char *, int,
                                                                             const int64_t *, float *, int64_t))
{
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    const char *name;
    for (int i = 0; graphi_state_at(ours->network.state, i, &name, &dtype, &rank, dims); i++) {
        int64_t count = elements(rank, dims);
        if (dtype != GRAPHI_F32)
            continue;
        float *data = malloc((size_t)count * sizeof *data + 1);
        if (!data)
            return report_error(GRAPHI_MEMORY, name, "found no memory, expected some");
        graphi_status status = body(ours, name, rank, dims, data, count);
        free(data);
        if (status != GRAPHI_OK)
            return report_failure(status);
    }
    return GRAPHI_OK;
}

static graphi_status restore_one(struct ours *ours, const char *name, int rank, const int64_t *dims, float *data,
                                 int64_t count)
{
    fill(name, rank, dims, data, count);
    return graphi_state_set(ours->network.state, name, data, (size_t)count * sizeof *data);
}

/* Where the network has updates. */
static graphi_status rate_of(const struct network *network, graphi_run *run, double rate)
{
    float value = (float)rate;
    if (graphi_find(network->graph, "learning_rate") == GRAPHI_NONE)
        return GRAPHI_OK;
    graphi_status status = graphi_run_set(run, "learning_rate", GRAPHI_F32, &value, sizeof value);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static graphi_status set_rate(struct ours *ours, double rate)
{
    graphi_status status = GRAPHI_OK;
    for (int m = 0; m < MODES && status == GRAPHI_OK; m++)
        if (ours->mode[m].run)
            status = rate_of(&ours->network, ours->mode[m].run, rate);
    return status;
}

graphi_status ours_contender(struct bench *bench, const struct network *network, const char *id,
                             const graphi_setting *setting, struct contender *contender)
{
    graphi_status status = contender_open(bench, network, id, setting, contender);
    return status == GRAPHI_OK ? rate_of(network, contender->run, TIMED_RATE) : status;
}

/* The three run modes: as chosen; executors polling one queue; one operation at a time on all cores. */
static graphi_status open_modes(struct bench *bench, int modes, struct ours *ours)
{
    int cores = bench->about.cores;
    graphi_plan_info info;
    graphi_plan_get_info(ours->network.plan, &info);
    int executors = info.setting.executors > 1 ? info.setting.executors : cores;
    const graphi_setting naive = {.policy = GRAPHI_POLICY_NAIVE,
                                  .driver = GRAPHI_DRIVER_COMBINING,
                                  .executors = executors,
                                  .width = cores / executors};
    const graphi_setting sequential = {
        .policy = GRAPHI_POLICY_SEQUENTIAL, .driver = GRAPHI_DRIVER_COMBINING, .executors = 1, .width = cores};
    graphi_status status =
        ours_contender(bench, &ours->network, "graphi", REQUEST(&info.setting), &ours->mode[SCHEDULED]);
    if (status == GRAPHI_OK && modes > NAIVE)
        status = ours_contender(bench, &ours->network, "graphi naive", &naive, &ours->mode[NAIVE]);
    if (status == GRAPHI_OK && modes > SEQUENTIAL)
        status = ours_contender(bench, &ours->network, "graphi sequential", &sequential, &ours->mode[SEQUENTIAL]);
    return status;
}

graphi_status ours_open(struct bench *bench, const char *name, const char *size, double tune, int modes,
                        struct ours *ours)
{
    *ours = (struct ours){0};
    graphi_status status = network_open(bench, name, size, NULL, &ours->network);
    if (status == GRAPHI_OK)
        status = each_parameter(ours, restore_one);
    if (status == GRAPHI_OK && tune > 0)
        status = network_tune(bench, &ours->network, tune);
    return status == GRAPHI_OK ? open_modes(bench, modes, ours) : status;
}

void ours_close(struct ours *ours)
{
    for (int m = 0; m < MODES; m++)
        contender_close(&ours->mode[m]);
    free(ours->gradients);
    network_close(&ours->network);
    *ours = (struct ours){0};
}

static void add_gradient(struct ours *ours, const char *name, const float *data, int64_t count)
{
    uint64_t key = formula_key("probe/", name);
    double squares = 0, probe = 0;
    for (int64_t i = 0; i < count; i++) {
        squares += (double)data[i] * data[i];
        probe += data[i] * (2 * formula_unit(key, i) - 1);
    }
    ours->gradients[ours->count++] = (struct gradient){.name = name, .norm = sqrt(squares), .probe = probe};
}

/* An output "gradient/NAME", or what the update subtracted, over the rate. */
static graphi_status examine(struct ours *ours, const char *name, int rank, const int64_t *dims, float *data,
                             int64_t count)
{
    char output[200];
    size_t bytes = (size_t)count * sizeof *data;
    snprintf(output, sizeof output, "gradient/%s", name);
    if (graphi_find(ours->network.graph, output) != GRAPHI_NONE) {
        graphi_status status = graphi_run_get(ours->mode[SCHEDULED].run, output, GRAPHI_F32, data, bytes);
        if (status != GRAPHI_OK)
            return status;
    } else {
        float *first = malloc(bytes + 1);
        graphi_status status = graphi_state_get(ours->network.state, name, data, bytes);
        if (!first || status != GRAPHI_OK) {
            free(first);
            return first ? status : GRAPHI_MEMORY;
        }
        fill(name, rank, dims, first, count);
        for (int64_t i = 0; i < count; i++)
            data[i] = (first[i] - data[i]) / (float)CHECK_RATE;
        free(first);
    }
    add_gradient(ours, name, data, count);
    return GRAPHI_OK;
}

graphi_status ours_check(struct ours *ours)
{
    const graphi_model_options *model = &ours->network.model;
    float loss;
    int parameters = 0;
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    while (graphi_state_at(ours->network.state, parameters, &name, &dtype, &rank, dims))
        parameters++;
    free(ours->gradients);
    ours->gradients = calloc((size_t)parameters + 1, sizeof *ours->gradients);
    ours->count = 0;
    if (!ours->gradients)
        return report_error(GRAPHI_MEMORY, "gradients", "found no memory, expected some");
    graphi_status status = each_parameter(ours, restore_one);
    if (status == GRAPHI_OK)
        status = set_rate(ours, CHECK_RATE);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_run_execute(ours->mode[SCHEDULED].run)) != GRAPHI_OK ||
        (status = graphi_run_get(ours->mode[SCHEDULED].run, "loss", GRAPHI_F32, &loss, sizeof loss)) != GRAPHI_OK)
        return report_failure(status);
    ours->loss = loss;
    if (!model->forward && (status = each_parameter(ours, examine)) != GRAPHI_OK)
        return status;
    if ((status = each_parameter(ours, restore_one)) != GRAPHI_OK)
        return status;
    return set_rate(ours, TIMED_RATE);
}

graphi_status ours_drift(const struct ours *ours, double *drift)
{
    float loss;
    graphi_status status = graphi_run_get(ours->mode[SCHEDULED].run, "loss", GRAPHI_F32, &loss, sizeof loss);
    if (status != GRAPHI_OK)
        return report_failure(status);
    *drift = isfinite(loss) ? fabs(loss - ours->loss) / fmax(1, fabs(ours->loss)) : INFINITY;
    return GRAPHI_OK;
}

double ours_difference(const struct ours *ours, const json_t *answer, char *what, size_t size)
{
    const json_t *theirs = json_object_get(answer, "gradients"), *loss = json_object_get(answer, "loss");
    double worst =
        json_is_number(loss) ? fabs(ours->loss - json_number_value(loss)) / fmax(1, fabs(ours->loss)) : INFINITY;
    snprintf(what, size, "loss %.7g, theirs %.7g", ours->loss, json_number_value(loss));
    if (isnan(worst))
        return INFINITY;
    if ((int)json_object_size(theirs) != ours->count) {
        snprintf(what, size, "%d gradients, theirs %d", ours->count, (int)json_object_size(theirs));
        return INFINITY;
    }
    for (int i = 0; i < ours->count; i++) {
        const struct gradient *g = &ours->gradients[i];
        const json_t *pair = json_object_get(theirs, g->name), *norm = json_array_get(pair, 0),
                     *probe = json_array_get(pair, 1);
        double scale = fmax(g->norm, 1e-30), apart = INFINITY;
        if (json_is_number(norm) && json_is_number(probe) && !isnan(g->norm + g->probe))
            apart = fmax(fabs(g->norm - json_number_value(norm)), fabs(g->probe - json_number_value(probe))) / scale;
        if (!(apart <= worst)) {
            worst = apart;
            snprintf(what, size, "gradient of %s: norm %.6g, theirs %.6g; probe %.6g, theirs %.6g", g->name, g->norm,
                     json_number_value(norm), g->probe, json_number_value(probe));
        }
    }
    return worst;
}

double ours_apart(const struct ours *ours, const struct ours *other, char *what, size_t size)
{
    json_t *answer = json_pack("{s:f,s:{}}", "loss", other->loss, "gradients"),
           *list = json_object_get(answer, "gradients");
    for (int i = 0; i < other->count; i++)
        result_set(list, other->gradients[i].name,
                            json_pack("[f,f]", other->gradients[i].norm, other->gradients[i].probe));
    double apart = ours_difference(ours, answer, what, size);
    json_decref(answer);
    return apart;
}
