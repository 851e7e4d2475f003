/* SPDX-License-Identifier: Apache-2.0 */
/* The list of networks, settling of sizes, and the building blocks they share. */
#include "models/model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const struct model *const models[] = {&model_lstm, &model_phased_lstm, &model_pathnet, &model_googlenet};
enum { MODELS = sizeof models / sizeof *models };

const char *graphi_model_at(int i)
{
    return i >= 0 && i < MODELS ? models[i]->info.name : NULL;
}

bool model_is_real(const graphi_model_options *options)
{
    return options->task && strcmp(options->task, "real") == 0;
}

static graphi_status find(const char *name, const struct model **out)
{
    char list[512] = "";
    for (int i = 0; i < MODELS; i++) {
        if (strcmp(models[i]->info.name, name) == 0) {
            *out = models[i];
            return GRAPHI_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", models[i]->info.name);
    }
    return fail(GRAPHI_INVALID, "model", "found '%s', expected one of %s", name, list);
}

static graphi_status size_index(const char *size, int *index)
{
    static const char *const names[] = {"small", "medium", "large"};
    for (int i = 0; i < 3; i++)
        if (!size || strcmp(size, names[i]) == 0) {
            *index = i;
            return GRAPHI_OK;
        }
    return fail(GRAPHI_INVALID, "size", "found '%s', expected small, medium or large", size);
}

static int64_t either(int64_t wanted, int64_t otherwise)
{
    return wanted > 0 ? wanted : otherwise;
}

graphi_status graphi_model_get_info(const char *name, const graphi_model_options *options, graphi_model_info *info)
{
    static const graphi_model_options none;
    const struct model *model;
    int index = 0;
    options = options ? options : &none;
    TRY(find(name, &model));
    TRY(size_index(options->size, &index));
    if (options->task && !model_is_real(options) && strcmp(options->task, "bench") != 0)
        return fail(GRAPHI_INVALID, "task", "found '%s', expected bench or real", options->task);
    graphi_model_info settled = model->info;
    const struct model_size *size = &model->size[index];
    settled.batch = either(options->batch, settled.batch);
    settled.image = either(options->image, size->image);
    settled.steps = either(options->steps, size->steps);
    settled.units = either(options->units, size->units);
    settled.classes = either(options->classes, model_is_real(options) ? 10 : settled.classes);
    settled.vocabulary = either(options->vocabulary, settled.vocabulary);
    if (settled.feed == GRAPHI_MODEL_VECTORS && model_is_real(options))
        settled.feed = GRAPHI_MODEL_TEXT;
    const int64_t limit = 1 << 20;
    const int64_t all[] = {settled.batch, settled.image,   settled.steps,
                           settled.units, settled.classes, settled.vocabulary};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] > limit)
            return fail(GRAPHI_INVALID, name, "found a size of %lld, expected at most %lld", (long long)all[i],
                        (long long)limit);
    *info = settled;
    return GRAPHI_OK;
}

graphi_status graphi_model_create(const char *name, const graphi_model_options *options, graphi_graph **out)
{
    static const graphi_model_options none;
    const struct model *model;
    graphi_model_info info;
    options = options ? options : &none;
    TRY(graphi_model_get_info(name, options, &info));
    TRY(find(name, &model));
    graphi_graph *graph;
    TRY(graphi_graph_create(&graph));
    model->build(graph, &info, options);
    graphi_scope(graph, NULL);
    graphi_status status = graphi_graph_status(graph);
    if (status != GRAPHI_OK) {
        graphi_graph_destroy(graph);
        return status;
    }
    *out = graph;
    return GRAPHI_OK;
}

graphi_value model_weight(graphi_graph *graph, const char *scope, const char *name, int rank, const int64_t *dims,
                          graphi_init_kind kind, double a, double b)
{
    char full[160];
    snprintf(full, sizeof full, "%s/%s", scope, name);
    graphi_initializer init = {.kind = kind, .a = a, .b = b};
    return graphi_parameter(graph, full, GRAPHI_F32, rank, dims, &init);
}

graphi_value model_bias(graphi_graph *graph, const char *scope, const char *name, int64_t count)
{
    return model_weight(graph, scope, name, 1, &count, GRAPHI_INIT_ZERO, 0, 0);
}

graphi_value model_scalar(graphi_graph *graph, float value)
{
    return graphi_constant(graph, GRAPHI_F32, 0, NULL, &value);
}

graphi_value model_dense(graphi_graph *graph, const char *scope, graphi_value x, int64_t in, int64_t out)
{
    graphi_value w = model_weight(graph, scope, "weight", 2, (int64_t[]){in, out}, GRAPHI_INIT_GLOROT_UNIFORM, 0, 0);
    return graphi_add(graph, graphi_matmul(graph, x, w, 0, 0), model_bias(graph, scope, "bias", out));
}

graphi_value model_classify(graphi_graph *graph, graphi_value logits, int64_t batch)
{
    graphi_scope(graph, "loss");
    graphi_value labels = graphi_input(graph, "labels", GRAPHI_I32, 1, &batch);
    graphi_value loss = graphi_softmax_cross_entropy(graph, logits, labels);
    graphi_output(graph, "logits", logits);
    return loss;
}

void model_train(graphi_graph *graph, graphi_value loss, const graphi_model_options *options,
                 const graphi_optimizer *optimizer)
{
    if (options->evaluation || options->forward)
        return;
    graphi_optimizer settled = *optimizer;
    settled.learning_rate = graphi_input(graph, "learning_rate", GRAPHI_F32, 0, NULL);
    graphi_minimize(graph, loss, &settled);
}

void model_output_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *parameters,
                            const char *const *names)
{
    graphi_value gradients[64];
    if (graphi_gradients(graph, loss, n, parameters, gradients) != GRAPHI_OK)
        return;
    for (int i = 0; i < n; i++) {
        char name[160];
        snprintf(name, sizeof name, "gradient/%s", names[i]);
        graphi_output(graph, name, gradients[i]);
    }
}
