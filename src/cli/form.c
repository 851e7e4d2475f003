/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of a network a command is about: what the options, the data and the checkpoint say of it. */
#include "cli/form.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/checkpoint.h"
#include "cli/data_path.h"
#include "cli/resume.h"
#include "tool/job.h"
#include "tool/report.h"

/* The task that the options ask for, by default the one that learns. USAGE where it has no data, or not those that
 * --classes, --level or --vocabulary is of. */
static graphi_status learning_form(const struct options *options, const char *name, graphi_model_options *model,
                                   graphi_model_info *info)
{
    model->task = options->task ? options->task : "real";
    graphi_status status = graphi_model_get_info(name, model, info);
    if (status != GRAPHI_OK)
        return report_failure(status);
    const bool images = info->feed == GRAPHI_MODEL_IMAGES;
    const bool learns = strcmp(options->command, "train") == 0 || strcmp(options->command, "eval") == 0;
    if (options->skip_bad && info->feed != GRAPHI_MODEL_TREES)
        return report_usage("--skip-bad", name, "a network over input graphs");
    if (info->feed == GRAPHI_MODEL_VECTORS)
        return report_usage("--task", "bench", "real: the bench form of %s is made for timing, not for data", name);
    if (info->feed == GRAPHI_MODEL_TREES && !info->metric && learns)
        return report_usage(options->command, name, "a network that learns from data: it is made for timing");
    if (options->classes && !images)
        return report_usage("--classes", name, "a network of images");
    if (options->level && info->feed == GRAPHI_MODEL_TREES)
        return report_usage("--level", name, "a network of text: input graphs have words");
    if ((options->level || options->vocabulary) && images)
        return report_usage(options->level ? "--level" : "--vocabulary", name, "a network of text");
    return GRAPHI_OK;
}

/* Images have a place by default. */
static graphi_status check_data(const struct options *options, const graphi_model_info *info)
{
    return options->data || info->feed == GRAPHI_MODEL_IMAGES ? GRAPHI_OK
           : info->feed == GRAPHI_MODEL_TREES
               ? report_usage("--data", "nothing", "a file or folder of input graphs")
               : report_usage("--data", "nothing", "a text file");
}

static const char *augment_of(const struct options *options, const graphi_model_info *info)
{
    return options->augment ? options->augment : info->augment ? info->augment : "none";
}

static graphi_status check_augment(const struct options *options, const graphi_model_info *info)
{
    if (options->augment && info->feed != GRAPHI_MODEL_IMAGES)
        return report_usage("--augment", info->name, "a network of images");
    const graphi_status status = graphi_data_augment(augment_of(options, info), NULL);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* Of a checkpoint that is evaluated. */
static const struct numbering {
    const char *words; /* NULL: it has none */
    bool whole;        /* nothing is held out */
} own_numbering;        /* of what is trained on: its own */

/* Bounds of a batch of any split. */
static graphi_status bound_batches(const struct samples *data, graphi_model_options *model)
{
    for (graphi_data_split split = GRAPHI_TRAIN; split <= GRAPHI_TEST; split++) {
        struct samples other;
        graphi_trees_info about;
        const graphi_status status = samples_open_split(data, split, &other);
        if (status == GRAPHI_UNSUPPORTED)
            continue;
        if (status != GRAPHI_OK)
            return report_failure(status);
        graphi_trees_get_info(other.trees, &about);
        samples_close(&other);
        model->vertices = about.batch_vertices > model->vertices ? about.batch_vertices : model->vertices;
        model->edges = about.batch_edges > model->edges ? about.batch_edges : model->edges;
    }
    return GRAPHI_OK;
}

/* Input graphs: language models read lines of text. */
static graphi_status open_trees(const struct options *options, const graphi_model_info *info, graphi_data_split split,
                                graphi_model_options *model, struct samples *data)
{
    const bool lines = strcmp(info->metric, "perplexity") == 0;
    const graphi_trees_options how = {.format = lines ? GRAPHI_TREES_LINES : GRAPHI_TREES_AUTO,
                                      .split = split,
                                      .batch = info->batch,
                                      .seed = options->seed,
                                      .ordered = options->split != NULL, /* as they lie: eval */
                                      .skip = options->skip_bad,
                                      .vocabulary = options->vocabulary,
                                      .steps = lines && info->steps > 1 ? info->steps : 0};
    graphi_trees_info about;
    graphi_status status = graphi_trees_open(data_path_of(options), &how, &data->trees);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_trees_get_info(data->trees, &about);
    if (info->functions > 1 && about.children > info->children)
        return report_error(GRAPHI_INVALID, data_path_of(options),
                            "found vertices of %lld children, expected at most %lld: %s is of binary trees",
                            (long long)about.children, (long long)info->children, info->name);
    if (!about.classes)
        return report_error(GRAPHI_INVALID, data_path_of(options), "found no labels, expected one for each vertex");
    data->graphs = (graphi_trees_feed_options){.functions = info->functions, .roots = info->functions > 1};
    model->classes = about.classes;
    model->vocabulary = about.vocabulary ? about.vocabulary : 1;
    return bound_batches(data, model);
}

static graphi_status open_data(const struct options *options, const char *name, graphi_data_split split,
                               const struct numbering *numbering, graphi_model_options *model, struct samples *data)
{
    graphi_model_info info;
    graphi_data_info about;
    graphi_status status = learning_form(options, name, model, &info);
    if (status == GRAPHI_OK)
        status = check_data(options, &info);
    if (status == GRAPHI_OK)
        status = check_augment(options, &info);
    if (status == GRAPHI_OK)
        status = resume_check_data(options);
    if (status != GRAPHI_OK)
        return status;
    if (info.feed == GRAPHI_MODEL_TREES)
        return open_trees(options, &info, split, model, data);
    const bool images = info.feed == GRAPHI_MODEL_IMAGES;
    graphi_data_options how = {.split = split,
                               .batch = info.batch,
                               .seed = options->seed,
                               .height = images ? info.image : 0,
                               .width = images ? info.image : 0,
                               .channels = images ? info.channels : 0,
                               .classes = options->classes,
                               .steps = images ? 0 : info.steps,
                               .cache_bytes = images ? (size_t)1 << 31 : 0,
                               .bytes = info.bytes,
                               .raw = !info.metric, /* a network that makes images wants them in [0, 1] */
                               /* Nothing judges some: they learn from all. */
                               .validation = !info.metric || numbering->whole ? -1 : 0,
                               .ordered = options->split != NULL, /* as they lie: eval */
                               .characters = options->level && strcmp(options->level, "character") == 0,
                               .vocabulary = options->vocabulary,
                               .words = images ? NULL : numbering->words,
                               .format = images ? GRAPHI_DATA_IMAGES : GRAPHI_DATA_TEXT};
    if (images)
        (void)graphi_data_augment(augment_of(options, &info), &how); /* judged above */
    status = graphi_data_open(data_path_of(options), &how, &data->data);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_data_get_info(data->data, &about);
    if (images)
        model->classes = about.classes;
    else
        model->vocabulary = about.classes;
    return GRAPHI_OK;
}

graphi_status form_with_data(const struct options *options, const char *name, graphi_data_split split,
                             graphi_model_options *model, struct samples *data)
{
    graphi_status status = job_model_options(options, model);
    return status == GRAPHI_OK ? open_data(options, name, split, &own_numbering, model, data) : status;
}

/* What training held out says nothing of another text. */
static bool is_other_text(const struct options *options, const graphi_checkpoint_info *said,
                          const struct samples *data)
{
    graphi_data_info about;
    struct stat info;
    samples_info(data, &about);
    return about.format == GRAPHI_DATA_TEXT && !options->split && said->placed && said->hash != about.hash &&
           stat(data_path_of(options), &info) == 0 && S_ISREG(info.st_mode);
}

static graphi_status open_trained(const struct options *options, const char *name, const graphi_checkpoint *file,
                                  graphi_model_options *model, struct samples *data, bool *whole)
{
    struct numbering numbering = {graphi_checkpoint_text(file, "data.vocabulary"), false};
    graphi_checkpoint_info said;
    graphi_checkpoint_get_info(file, &said);
    graphi_status status = job_model_options(options, model);
    if (status == GRAPHI_OK)
        status = open_data(options, name, GRAPHI_TRAIN, &numbering, model, data);
    *whole = numbering.whole = status == GRAPHI_OK && numbering.words && is_other_text(options, &said, data);
    if (!numbering.whole)
        return status;
    samples_close(data);
    return open_data(options, name, GRAPHI_TRAIN, &numbering, model, data);
}

graphi_status form_trained(const struct options *typed, const char *name, graphi_model_options *model,
                           struct samples *data, bool *whole)
{
    struct options options = *typed; /* and what the checkpoint says beside */
    graphi_checkpoint *file = NULL;
    *whole = false;
    graphi_status status = checkpoint_open(&options, &file);
    if (status == GRAPHI_OK)
        status = checkpoint_complete(file, name, &options);
    if (status == GRAPHI_OK && !options.augment)
        options.augment = graphi_checkpoint_text(file, "train.augment");
    if (status == GRAPHI_OK)
        status = open_trained(&options, name, file, model, data, whole);
    graphi_checkpoint_close(file);
    return status;
}

/* Of the data and the file, where there are both: the same; of one of them, where there is one: that. */
static graphi_status settle(const char *path, const char *key, int64_t found, int64_t *size)
{
    if (*size == 0 && found > 0)
        *size = found;
    if (*size == 0)
        return report_error(GRAPHI_INVALID, path,
                            "found no %s, expected a checkpoint that says it: one of an older version does after a "
                            "step more (train --resume --steps N)",
                            key);
    if (found <= 0 || found == *size)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, path, "found %s %lld, expected %lld, that of --data", key, (long long)found,
                        (long long)*size);
}

/* The sizes that a checkpoint says and no option does. */
static graphi_status settle_sizes(const struct options *options, const char *name, int64_t vocabulary,
                                  graphi_model_options *model)
{
    graphi_model_info info;
    graphi_status status = graphi_model_get_info(name, model, &info);
    if (status != GRAPHI_OK)
        return report_failure(status);
    if (info.feed == GRAPHI_MODEL_TEXT)
        return settle(options->checkpoint, "network.vocabulary", vocabulary, &model->vocabulary);
    return info.feed == GRAPHI_MODEL_IMAGES
               ? settle(options->checkpoint, "network.classes", options->classes, &model->classes)
               : GRAPHI_OK;
}

graphi_status form_asked(const struct options *typed, const char *name, graphi_model_options *model)
{
    struct options options = *typed; /* and what the checkpoint says beside */
    struct samples data = {NULL};
    graphi_model_info info;
    int64_t vocabulary = 0;
    graphi_status status = typed->checkpoint ? checkpoint_options(&options, name, &vocabulary) : GRAPHI_OK;
    if (status == GRAPHI_OK)
        status = job_model_options(&options, model);
    if (status == GRAPHI_OK && options.data)
        status = open_data(&options, name, GRAPHI_TRAIN, &own_numbering, model, &data);
    else if (status == GRAPHI_OK && (typed->classes || typed->level || typed->vocabulary)) {
        status = learning_form(&options, name, model, &info);
        model->classes = options.classes;
        if (status == GRAPHI_OK && !options.checkpoint) /* which says the size of its vocabulary */
            status = check_data(&options, &info);
    }
    samples_close(&data);
    return status == GRAPHI_OK && options.checkpoint ? settle_sizes(&options, name, vocabulary, model) : status;
}
