/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint says of which network it is and where in which data it was written, so that a run that goes on from it
 * never does so elsewhere. */
#include "cli/checkpoint.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gan.h"
#include "cli/report.h"

enum { NETWORK_BYTES = 256, STRINGS = 16, STRING_BYTES = 320 };

/* Longer lists of words stay with the training files: a file's header holds 16 MiB. */
static const size_t vocabulary_most = 1 << 20;

struct network {
    char computes[NETWORK_BYTES], trained[NETWORK_BYTES], text[NETWORK_BYTES];
};

static void add_switch(char *text, bool given, const char *name)
{
    size_t used = strlen(text);
    if (given)
        snprintf(text + used, NETWORK_BYTES - used, "%s%s", used ? " " : "", name);
}

/* The network as it would be typed, since parameters of the same names and shapes may belong to another: with what
 * changes the function that they parametrize, what else training goes on with, and what of that a text's has: dropout
 * and clipping may go by the size. */
static void describe_network(const struct job *job, struct network *network)
{
    const graphi_model_options *m = &job->model;
    char image[48];
    *network = (struct network){0};
    snprintf(network->computes, NETWORK_BYTES, "%s", job->name);
    add_switch(network->computes, m->merged, "--merged");
    add_switch(network->computes, m->batch_norm, "--batch-norm");
    add_switch(network->computes, m->lrn, "--lrn");
    add_switch(network->computes, m->bottleneck, "--bottleneck");
    snprintf(network->trained, NETWORK_BYTES, "--task %s", m->task);
    snprintf(image, sizeof image, "--image %lld", (long long)job->info.image);
    add_switch(network->trained, job->info.feed == GRAPHI_MODEL_IMAGES, image);
    add_switch(network->trained, m->auxiliary, "--auxiliary");
    if (job->info.feed == GRAPHI_MODEL_TEXT)
        snprintf(network->text, NETWORK_BYTES, "--size %s --unroll %lld", m->size ? m->size : "small",
                 (long long)job->info.steps);
}

/* What a checkpoint says besides its parameters. Older ones have no network, sizes, encoding or losses. */
struct position_reader {
    struct network network; /* "": none */
    long long units, classes, vocabulary; /* 0: none */
    long long epoch, index, batch;
    unsigned long long seed, hash, encoding;
    int found;
    bool encoded;
    struct losses mean;
};

static void read_position(void *context, const char *key, const char *value)
{
    struct position_reader *reader = context;
    if (strcmp(key, "network") == 0)
        snprintf(reader->network.computes, sizeof reader->network.computes, "%s", value);
    if (strcmp(key, "network.trained") == 0)
        snprintf(reader->network.trained, sizeof reader->network.trained, "%s", value);
    if (strcmp(key, "network.text") == 0)
        snprintf(reader->network.text, sizeof reader->network.text, "%s", value);
    if (strcmp(key, "network.units") == 0)
        sscanf(value, "%lld", &reader->units);
    if (strcmp(key, "network.classes") == 0)
        sscanf(value, "%lld", &reader->classes);
    if (strcmp(key, "network.vocabulary") == 0)
        sscanf(value, "%lld", &reader->vocabulary);
    if (strcmp(key, "data.epoch") == 0)
        reader->found += sscanf(value, "%lld", &reader->epoch) == 1;
    if (strcmp(key, "data.index") == 0)
        reader->found += sscanf(value, "%lld", &reader->index) == 1;
    if (strcmp(key, "data.batch") == 0)
        reader->found += sscanf(value, "%lld", &reader->batch) == 1;
    if (strcmp(key, "data.seed") == 0)
        reader->found += sscanf(value, "%llu", &reader->seed) == 1;
    if (strcmp(key, "data.hash") == 0)
        reader->found += sscanf(value, "%llx", &reader->hash) == 1;
    if (strcmp(key, "data.encoding") == 0)
        reader->encoded = sscanf(value, "%llx", &reader->encoding) == 1;
    if (strcmp(key, "train.loss") == 0)
        sscanf(value, "%la %la %la", &reader->mean.real, &reader->mean.fake, &reader->mean.generator);
}

static graphi_status check_words(const char *path, const char *found, const char *expected)
{
    if (!*found || strcmp(found, expected) == 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, path, "found a checkpoint of '%s', expected one of '%s'", found, expected);
}

/* Whether the file is of the network that the job has. */
static graphi_status check_network(const char *path, const struct position_reader *reader, const struct job *job)
{
    struct network network;
    describe_network(job, &network);
    graphi_status status = check_words(path, reader->network.computes, network.computes);
    if (status != GRAPHI_OK || !reader->units || reader->units == job->info.units)
        return status;
    return report_error(GRAPHI_INVALID, path, "found a checkpoint of --units %lld, expected %lld", reader->units,
                        (long long)job->info.units);
}

/* Loads --checkpoint into the state and reads what else it says. INVALID if it is of another network: that is said
 * before which parameters differ. */
static graphi_status load(const struct job *job, struct position_reader *reader)
{
    const char *path = job->options->checkpoint;
    *reader = (struct position_reader){.mean = NO_LOSSES};
    graphi_status loaded = graphi_state_load(job->state, path, read_position, reader);
    if (loaded == GRAPHI_INVALID) /* as is what is no checkpoint at all, and has no words */
        (void)graphi_state_load(NULL, path, read_position, reader);
    graphi_status status = check_network(path, reader, job);
    return status == GRAPHI_OK && loaded != GRAPHI_OK ? report_failure(loaded) : status;
}

/* Going on bit for bit needs the same data in the same order. */
static graphi_status check_position(const struct job *job, const struct position_reader *reader,
                                    const graphi_data *data)
{
    const char *path = job->options->checkpoint;
    const uint64_t seed = job->options->seed;
    struct network network;
    graphi_data_info info;
    describe_network(job, &network);
    if (check_words(path, reader->network.trained, network.trained) != GRAPHI_OK ||
        check_words(path, reader->network.text, network.text) != GRAPHI_OK)
        return GRAPHI_INVALID;
    graphi_data_get_info(data, &info);
    if (reader->found != 5)
        return report_error(GRAPHI_INVALID, path,
                            "found no position in the data, expected a checkpoint that training wrote");
    if (reader->hash != info.hash)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of other data (%016llx), expected %016llx",
                            reader->hash, (unsigned long long)info.hash);
    if (reader->batch != info.batch)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --batch %lld, expected %lld", reader->batch,
                            (long long)info.batch);
    if (reader->seed != seed)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --seed %llu, expected %llu", reader->seed,
                            (unsigned long long)seed);
    return GRAPHI_OK;
}

graphi_status checkpoint_load(const struct job *job, graphi_data *data, struct losses *mean)
{
    struct position_reader reader;
    graphi_status status = load(job, &reader);
    if (status == GRAPHI_OK)
        status = check_position(job, &reader, data);
    if (status != GRAPHI_OK)
        return status;
    *mean = reader.mean;
    status = graphi_data_set_position(data, (graphi_data_position){reader.epoch, reader.index});
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status checkpoint_load_parameters(const struct job *job, const graphi_data *data)
{
    struct position_reader reader;
    graphi_data_info info;
    graphi_status status = load(job, &reader);
    if (status != GRAPHI_OK)
        return status;
    graphi_data_get_info(data, &info);
    if (reader.encoded && reader.encoding != info.encoding)
        return report_error(GRAPHI_INVALID, job->options->checkpoint,
                            "found a checkpoint of training data with another %s (%016llx), expected that of --data "
                            "(%016llx): the files it was trained on, beside any test files",
                            info.format == GRAPHI_DATA_TEXT ? "vocabulary" : "normalisation", reader.encoding,
                            (unsigned long long)info.encoding);
    return GRAPHI_OK;
}

/* The file's number of these, unless one is known. */
static graphi_status take_size(const char *path, const char *key, long long found, int64_t *size)
{
    if (*size == 0)
        *size = found;
    return *size > 0 ? GRAPHI_OK
                     : report_error(GRAPHI_INVALID, path,
                                    "found no %s, expected a checkpoint that says it: one of an older version does "
                                    "after train --resume",
                                    key);
}

/* The file's side of images, where none is known. */
static void take_image(const struct position_reader *reader, int64_t *side)
{
    const char *image = strstr(reader->network.trained, "--image ");
    if (image && *side == 0)
        *side = strtoll(image + strlen("--image "), NULL, 10);
}

graphi_status checkpoint_image(struct options *options, const char *name)
{
    struct position_reader reader = {.found = 0};
    struct job job = {.name = name};
    graphi_status status = job_model_options(options, &job.model);
    if (status != GRAPHI_OK)
        return status;
    job.model.task = options->task ? options->task : "real";
    if (graphi_state_load(NULL, options->checkpoint, read_position, &reader) != GRAPHI_OK)
        return GRAPHI_OK;
    if ((status = graphi_model_get_info(name, &job.model, &job.info)) != GRAPHI_OK)
        return report_failure(status);
    status = check_network(options->checkpoint, &reader, &job);
    if (status == GRAPHI_OK)
        take_image(&reader, &options->image);
    return status;
}

graphi_status checkpoint_model(const struct options *options, const char *name, graphi_model_options *model)
{
    const char *path = options->checkpoint;
    struct position_reader reader = {.found = 0};
    struct job job = {.name = name};
    model->task = options->task ? options->task : "real";
    job.model = *model;
    graphi_status status = graphi_model_get_info(name, model, &job.info);
    if (status == GRAPHI_OK)
        status = graphi_state_load(NULL, path, read_position, &reader);
    if (status != GRAPHI_OK)
        return report_failure(status);
    if (check_network(path, &reader, &job) != GRAPHI_OK)
        return GRAPHI_INVALID;
    if (job.info.feed == GRAPHI_MODEL_TEXT)
        return take_size(path, "network.vocabulary", reader.vocabulary, &model->vocabulary);
    if (job.info.feed != GRAPHI_MODEL_IMAGES)
        return GRAPHI_OK;
    take_image(&reader, &model->image);
    return take_size(path, "network.classes", reader.classes, &model->classes);
}

graphi_status checkpoint_weights(const struct job *job, struct result *result)
{
    struct position_reader reader;
    const char *path = job->options->checkpoint;
    if (!path) {
        result_note(result, "weights are random; --checkpoint FILE takes trained ones");
        return GRAPHI_OK;
    }
    graphi_status status = load(job, &reader);
    if (status == GRAPHI_OK)
        result_note(result, "weights: %s, step %llu", path,
                    (unsigned long long)gan_steps(job->name, graphi_state_step(job->state)));
    return status;
}

/* The words of a text by number, as a JSON list; NULL: it is too long, or one of them is no UTF-8. The caller's (free).
 */
static char *list_words(const graphi_data *data, int64_t count)
{
    json_t *list = json_array();
    size_t bytes = 0, length;
    char *text = NULL;
    for (int64_t i = 0; i < count && bytes <= vocabulary_most; i++) {
        const char *word = graphi_data_word(data, i, &length);
        bytes += json_array_append_new(list, json_stringn(word, length)) == 0 ? length + 3 : vocabulary_most + 1;
    }
    if (bytes <= vocabulary_most)
        text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    if (!text || strlen(text) <= vocabulary_most)
        return text;
    free(text);
    return NULL;
}

/* The strings of a file; those of the first ones are kept here. */
struct strings {
    int count;
    const char *keys[STRINGS], *values[STRINGS];
    char text[STRINGS][STRING_BYTES];
};

static __attribute__((format(printf, 3, 4))) void add(struct strings *s, const char *key, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->text[s->count], STRING_BYTES, format, arguments);
    va_end(arguments);
    s->keys[s->count] = key;
    s->values[s->count] = s->text[s->count];
    s->count++;
}

/* As many numbers as a stored image has channels, each as exact as it is. */
static void add_channels(struct strings *s, const char *key, const float *values, const graphi_data_info *info)
{
    char text[STRING_BYTES] = "";
    for (int c = 0; c < GRAPHI_DATA_CHANNELS && info->std[c] > 0; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.9g", c ? " " : "", (double)values[c]);
    add(s, key, "%s", text);
}

/* What inputs are made with: normalisation of images; the words of a text (`*words`, the caller's), if they fit. */
static void add_encoding(struct strings *s, const struct job *job, const graphi_data *data, char **words,
                         struct result *result)
{
    const char *level = job->options->level;
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    add(s, "data.encoding", "%016llx", (unsigned long long)info.encoding);
    if (info.format != GRAPHI_DATA_TEXT) {
        add(s, "network.classes", "%lld", (long long)job->info.classes);
        add_channels(s, "data.mean", info.mean, &info);
        add_channels(s, "data.std", info.std, &info);
        return;
    }
    add(s, "network.vocabulary", "%lld", (long long)job->info.vocabulary);
    add(s, "data.level", "%s", level ? level : "word");
    if ((*words = list_words(data, info.classes))) {
        s->keys[s->count] = "data.vocabulary";
        s->values[s->count++] = *words;
    } else {
        result_note(result, "the %lld words are not in the checkpoint, only their hash (data.encoding): more than "
                                 "1 MiB, or not UTF-8; the training files number them",
                         (long long)info.classes);
    }
}

graphi_status checkpoint_save(const struct job *job, const graphi_data *data, const struct losses *mean,
                              struct result *result)
{
    const struct options *options = job->options;
    struct network network;
    struct strings s = {.count = 0};
    char *words = NULL;
    graphi_data_info info;
    if (!options->checkpoint)
        return GRAPHI_OK;
    describe_network(job, &network);
    graphi_data_get_info(data, &info);
    graphi_data_position position = graphi_data_get_position(data);
    add(&s, "network", "%s", network.computes);
    add(&s, "network.trained", "%s", network.trained);
    if (*network.text)
        add(&s, "network.text", "%s", network.text);
    add(&s, "network.units", "%lld", (long long)job->info.units);
    add(&s, "data.epoch", "%lld", (long long)position.epoch);
    add(&s, "data.index", "%lld", (long long)position.index);
    add(&s, "data.batch", "%lld", (long long)info.batch);
    add(&s, "data.seed", "%llu", (unsigned long long)options->seed);
    add(&s, "data.hash", "%016llx", (unsigned long long)info.hash);
    add(&s, "train.loss", "%a %a %a", mean->real, mean->fake, mean->generator);
    add_encoding(&s, job, data, &words, result);
    graphi_status status = graphi_state_save(job->state, options->checkpoint, s.count, s.keys, s.values);
    free(words);
    if (status != GRAPHI_OK)
        return report_failure(status);
    result_file(result, options->checkpoint);
    return GRAPHI_OK;
}
