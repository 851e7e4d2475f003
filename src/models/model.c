/* SPDX-License-Identifier: Apache-2.0 */
/* The list of networks and the settling of their sizes. */
#include "models/model.h"

#include <stdio.h>
#include <string.h>

#include "base/float_mode.h"
#include "base/status.h"

static const struct model *const models[] = {
    &model_lstm,     &model_phased_lstm, &model_pathnet,      &model_googlenet,    &model_resnet20,
    &model_resnet50, &model_dcgan,       &model_inception_v3, &model_alexnet,      &model_cifar10_full,
    &model_cifar10_quick, &model_treelstm, &model_dependency_treelstm, &model_treefc, &model_var_lstm,
    &model_fixed_lstm, &model_message_passing, &model_ptb,
};
enum { MODELS = sizeof models / sizeof *models };

const char *graphi_model_at(int i)
{
    return i >= 0 && i < MODELS ? models[i]->info.name : NULL;
}

enum { LIST = 512 }; /* bytes: all names */

/* The networks that have all of the switches. */
static const char *list_models(unsigned switches, char list[LIST])
{
    size_t used = 0;
    list[0] = 0;
    for (int i = 0; i < MODELS; i++)
        if ((models[i]->switches & switches) == switches && used < LIST)
            used += (size_t)snprintf(list + used, LIST - used, "%s%s", used ? ", " : "", models[i]->info.name);
    return list;
}

/* The networks that are several graphs. */
static const char *list_roles(char list[LIST])
{
    size_t used = 0;
    list[0] = 0;
    for (int i = 0; i < MODELS; i++)
        if (models[i]->role[0] && used < LIST)
            used += (size_t)snprintf(list + used, LIST - used, "%s%s", used ? ", " : "", models[i]->info.name);
    return list;
}

static graphi_status find(const char *name, const struct model **out)
{
    char list[LIST];
    name = name ? name : "";
    for (int i = 0; i < MODELS; i++)
        if (strcmp(models[i]->info.name, name) == 0) {
            *out = models[i];
            return GRAPHI_OK;
        }
    return fail(GRAPHI_INVALID, "model", "found '%s', expected one of %s", name, list_models(0, list));
}

static graphi_status check_switches(const struct model *model, const graphi_model_options *o)
{
    const struct {
        const char *name;
        bool given;
        enum model_switch is;
    } all[] = {
        {"merged", o->merged, MODEL_MERGED},
        {"batch-norm", o->batch_norm, MODEL_BATCH_NORM},
        {"lrn", o->lrn, MODEL_LRN},
        {"auxiliary", o->auxiliary, MODEL_AUXILIARY},
        {"bottleneck", o->bottleneck, MODEL_BOTTLENECK},
        {"image", o->image != 0, MODEL_IMAGE},
        {"unroll", o->steps != 0, MODEL_STEPS},
        {"layers", o->layers != 0, MODEL_LAYERS},
        {"dropout", o->dropout != 0, MODEL_LAYERS},
        {"optimizer", o->optimizer != NULL, MODEL_LAYERS},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given && !(model->switches & all[i].is)) {
            char list[LIST];
            return fail(GRAPHI_USAGE, all[i].name, "found it for %s, expected one of %s", model->info.name,
                        list_models(all[i].is, list));
        }
    return GRAPHI_OK;
}

static graphi_status check_counts(const graphi_model_options *o)
{
    const struct {
        const char *name;
        int64_t count;
    } all[] = {{"batch", o->batch}, {"image", o->image},      {"classes", o->classes}, {"vocabulary", o->vocabulary},
               {"steps", o->steps}, {"units", o->units},      {"layers", o->layers},   {"vertices", o->vertices},
               {"edges", o->edges}, {"children", o->children}, {"block_rows", o->block_rows}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].count < 0)
            return fail(GRAPHI_INVALID, all[i].name, "found %lld, expected at least 1, or 0 for the network's own",
                        (long long)all[i].count);
    return GRAPHI_OK;
}

/* How a language model learns. Timed forms do not. */
static graphi_status check_learning(const struct model *model, const graphi_model_options *o)
{
    graphi_optimizer_kind kind;
    if (!(o->dropout >= 0 && o->dropout < 1))
        return fail(GRAPHI_INVALID, "dropout", "found %g, expected at least 0 and less than 1", o->dropout);
    if (o->optimizer && !model_optimizer(o->optimizer, &kind))
        return fail(GRAPHI_INVALID, "optimizer", "found '%.40s', expected sgd, momentum, adam or adagrad",
                    o->optimizer);
    if (o->layers > MODEL_MOST_LAYERS)
        return fail(GRAPHI_INVALID, "layers", "found %lld, expected at most %d", (long long)o->layers,
                    MODEL_MOST_LAYERS);
    if ((o->dropout > 0 || o->optimizer) && model->info.feed == GRAPHI_MODEL_VECTORS && !model_is_real(o))
        return fail(GRAPHI_USAGE, o->optimizer ? "optimizer" : "dropout",
                    "found it for the timed form of %s, expected --task real", model->info.name);
    return GRAPHI_OK;
}

static graphi_status check_words(const graphi_model_options *options)
{
    if (model_size_index(options) < 0)
        return fail(GRAPHI_INVALID, "size", "found '%s', expected small, medium or large", options->size);
    if (options->task && !model_is_real(options) && strcmp(options->task, "bench") != 0)
        return fail(GRAPHI_INVALID, "task", "found '%s', expected bench or real", options->task);
    return GRAPHI_OK;
}

static graphi_status check_role(const struct model *model, const char *role)
{
    char list[LIST];
    if (!role)
        return GRAPHI_OK;
    if (!model->role[0])
        return fail(GRAPHI_USAGE, "role", "found it for %s, expected one of %s", model->info.name, list_roles(list));
    for (int i = 0; i < 3; i++)
        if (strcmp(role, model->role[i]) == 0)
            return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "role", "found '%s', expected %s, %s or %s", role, model->role[0], model->role[1],
                model->role[2]);
}

static bool has_one_size(const struct model *model) { return !model->size[1].units; }

static int64_t either(int64_t wanted, int64_t otherwise)
{
    return wanted > 0 ? wanted : otherwise;
}

/* Bounds of a batch: the table has those of a sample. A language model's classes are words. */
static void settle_graphs(const graphi_model_options *options, graphi_model_info *info)
{
    const int64_t sample = info->steps > 1 ? info->steps : info->vertices;
    info->vertices = either(options->vertices, info->batch * sample);
    info->edges = either(options->edges, info->children ? info->vertices : 4 * info->vertices);
    info->children = either(options->children, info->children ? info->children : info->edges);
    info->classes = either(info->classes, info->vocabulary);
}

graphi_status graphi_model_get_info(const char *name, const graphi_model_options *options, graphi_model_info *info)
{
    GIVEN(info);
    static const graphi_model_options none;
    const struct model *model;
    options = options ? options : &none;
    TRY(find(name, &model));
    TRY(check_words(options));
    TRY(check_counts(options));
    TRY(check_switches(model, options));
    TRY(check_learning(model, options));
    TRY(check_role(model, options->role));
    graphi_model_info settled = model->info;
    const int index = model_size_index(options);
    const struct model_size *size = &model->size[has_one_size(model) ? 0 : index];
    settled.size = has_one_size(model) ? NULL : model_sizes[index];
    settled.batch = either(options->batch, settled.batch);
    settled.image = either(options->image, size->image);
    settled.steps = either(options->steps, size->steps);
    settled.units = either(options->units, size->units);
    const bool trees = settled.feed == GRAPHI_MODEL_TREES;
    settled.classes = either(options->classes, model_is_real(options) && !trees ? 10 : settled.classes);
    settled.vocabulary = either(options->vocabulary, settled.vocabulary);
    settled.layers = either(options->layers, settled.layers);
    if (trees)
        settle_graphs(options, &settled);
    if (settled.feed == GRAPHI_MODEL_VECTORS && model_is_real(options))
        settled.feed = GRAPHI_MODEL_TEXT;
    if (model->rate_per_sample)
        settled.rate *= (double)settled.batch / (double)model->info.batch;
    if (size->schedule) {
        settled.schedule = size->schedule;
        settled.epochs = size->epochs;
    }
    graphi_optimizer_kind kind;
    if (options->optimizer && model_optimizer(options->optimizer, &kind) && kind != model->optimizer)
        settled.rate = model_rate(kind);
    const int64_t limit = 1 << 20;
    const int64_t all[] = {settled.batch, settled.image,   settled.steps,
                           settled.units, settled.classes, settled.vocabulary};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] > limit)
            return fail(GRAPHI_INVALID, name, "found a size of %lld, expected at most %lld", (long long)all[i],
                        (long long)limit);
    if (settled.feed == GRAPHI_MODEL_TEXT && settled.steps > MODEL_MAX_STEPS)
        return fail(GRAPHI_INVALID, name, "found windows of %lld steps, expected at most %d", (long long)settled.steps,
                    MODEL_MAX_STEPS);
    *info = settled;
    return GRAPHI_OK;
}

graphi_status graphi_model_create(const char *name, const graphi_model_options *options, graphi_graph **out)
{
    GIVEN(out);
    static const graphi_model_options none;
    const struct model *model;
    graphi_model_info info;
    options = options ? options : &none;
    TRY(graphi_model_get_info(name, options, &info));
    TRY(find(name, &model));
    graphi_graph *graph;
    TRY(graphi_graph_create(&graph));
    struct float_mode mode = float_mode_enter(); /* deviations of initial values, probabilities */
    model->build(graph, &info, options);
    float_mode_leave(mode);
    graphi_scope(graph, NULL);
    graphi_status status = graphi_graph_status(graph);
    if (status != GRAPHI_OK) {
        graphi_graph_destroy(graph);
        return status;
    }
    *out = graph;
    return GRAPHI_OK;
}
