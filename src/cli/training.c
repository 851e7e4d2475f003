/* SPDX-License-Identifier: Apache-2.0 */
/* What both training loops (trainer.c, gan.c) read and leave behind. A checkpoint says where in which data it was
 * written, so that a run that goes on from it never does so elsewhere. */
#include "cli/training.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report.h"

#define FASHION "/usr/share/datasets/fashion-mnist"

graphi_status training_check(const struct options *options)
{
    const char *needs = options->resume ? "--resume" : options->every ? "--every" : NULL;
    if (options->steps && options->epochs)
        return report_usage("--epochs", "--steps too", "one of the two");
    return needs && !options->checkpoint ? report_usage(needs, "no --checkpoint", "--checkpoint FILE") : GRAPHI_OK;
}

graphi_status open_data(const struct options *options, const char *name, graphi_data_split split,
                        graphi_model_options *model, graphi_data **data)
{
    graphi_model_info info;
    graphi_data_info about;
    if (options->inference || options->training)
        return report_usage(options->command, options->inference ? "--inference" : "--training",
                            "neither of the two: train trains, eval evaluates");
    graphi_status status = job_model_options(options, model);
    if (status != GRAPHI_OK)
        return status;
    model->task = options->task ? options->task : "real";
    if ((status = graphi_model_get_info(name, model, &info)) != GRAPHI_OK)
        return report_failure(status);
    if (info.feed == GRAPHI_MODEL_VECTORS)
        return report_usage("--task", "bench", "real: the bench form of %s is made for timing, not for data", name);
    bool images = info.feed == GRAPHI_MODEL_IMAGES;
    if (!options->data && !images)
        return report_usage("--data", "nothing", "a text file");
    graphi_data_options how = {.split = split,
                               .batch = info.batch,
                               .seed = options->seed,
                               .height = images ? info.image : 0,
                               .width = images ? info.image : 0,
                               .channels = images ? info.channels : 0,
                               .classes = options->classes,
                               .steps = images ? 0 : info.steps,
                               .cache_bytes = images ? (size_t)1 << 31 : 0,
                               .raw = !info.metric, /* a network that makes images wants them in [0, 1] */
                               .characters = options->level && strcmp(options->level, "character") == 0,
                               .format = images ? GRAPHI_DATA_IMAGES : GRAPHI_DATA_TEXT};
    if (options->classes && !images)
        return report_usage("--classes", name, "a network of images");
    if (options->level && images)
        return report_usage("--level", name, "a network of text");
    status = graphi_data_open(options->data ? options->data : FASHION, &how, data);
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_data_get_info(*data, &about);
    if (images)
        model->classes = about.classes;
    else
        model->vocabulary = about.classes;
    return GRAPHI_OK;
}

void note_labels(struct result *result, const graphi_data_info *about)
{
    if (about->labels < about->classes)
        result_note(result, "%lld classes are told apart, labels of %lld occur in the training files",
                    (long long)about->classes, (long long)about->labels);
}

static double blend(double mean, double fresh) { return isnan(mean) ? fresh : 0.95 * mean + 0.05 * fresh; }

void losses_add(struct losses *mean, const struct losses *fresh)
{
    *mean = (struct losses){blend(mean->real, fresh->real), blend(mean->fake, fresh->fake),
                            blend(mean->generator, fresh->generator)};
}

enum { NETWORK_BYTES = 256 };

struct network {
    char computes[NETWORK_BYTES], trained[NETWORK_BYTES];
};

static void add_switch(char *text, bool given, const char *name)
{
    size_t used = strlen(text);
    if (given)
        snprintf(text + used, NETWORK_BYTES - used, "%s%s", used ? " " : "", name);
}

/* The network as it would be typed, since parameters of the same names and shapes may belong to another: with what
 * changes the function that they parametrize, and what else training goes on with. */
static void describe_network(const struct job *job, struct network *network)
{
    const graphi_model_options *m = &job->model;
    char image[48];
    snprintf(network->computes, NETWORK_BYTES, "%s", job->name);
    add_switch(network->computes, m->merged, "--merged");
    add_switch(network->computes, m->batch_norm, "--batch-norm");
    add_switch(network->computes, m->lrn, "--lrn");
    add_switch(network->computes, m->bottleneck, "--bottleneck");
    snprintf(network->trained, NETWORK_BYTES, "--task %s", m->task);
    snprintf(image, sizeof image, "--image %lld", (long long)job->info.image);
    add_switch(network->trained, job->info.feed == GRAPHI_MODEL_IMAGES, image);
    add_switch(network->trained, m->auxiliary, "--auxiliary");
}

/* What a checkpoint says besides its parameters. Older ones have no network, encoding or losses. */
struct position_reader {
    struct network network; /* "": none */
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

static graphi_status check_network(const char *path, const char *found, const char *expected)
{
    if (!*found || strcmp(found, expected) == 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, path, "found a checkpoint of '%s', expected one of '%s'", found, expected);
}

/* Loads --checkpoint into the state and reads what else it says. INVALID if it is of another network. */
static graphi_status load(const struct job *job, struct position_reader *reader)
{
    const char *path = job->options->checkpoint;
    struct network network;
    describe_network(job, &network);
    *reader = (struct position_reader){.mean = NO_LOSSES};
    graphi_status status = graphi_state_load(job->state, path, read_position, reader);
    return status == GRAPHI_OK ? check_network(path, reader->network.computes, network.computes)
                               : report_failure(status);
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
    if (check_network(path, reader->network.trained, network.trained) != GRAPHI_OK)
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

graphi_status checkpoint_save(const struct job *job, const graphi_data *data, const struct losses *mean,
                              struct result *result)
{
    const struct options *options = job->options;
    struct network network;
    char epoch[32], index[32], batch[32], shuffle[32], hash[32], encoding[32], loss[96];
    graphi_data_info info;
    if (!options->checkpoint)
        return GRAPHI_OK;
    describe_network(job, &network);
    graphi_data_get_info(data, &info);
    graphi_data_position position = graphi_data_get_position(data);
    snprintf(epoch, sizeof epoch, "%lld", (long long)position.epoch);
    snprintf(index, sizeof index, "%lld", (long long)position.index);
    snprintf(batch, sizeof batch, "%lld", (long long)info.batch);
    snprintf(shuffle, sizeof shuffle, "%llu", (unsigned long long)options->seed);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)info.hash);
    snprintf(encoding, sizeof encoding, "%016llx", (unsigned long long)info.encoding);
    snprintf(loss, sizeof loss, "%a %a %a", mean->real, mean->fake, mean->generator);
    const char *keys[] = {"network",   "network.trained", "data.epoch",    "data.index", "data.batch",
                          "data.seed", "data.hash",       "data.encoding", "train.loss"};
    const char *values[] = {network.computes, network.trained, epoch, index, batch, shuffle, hash, encoding, loss};
    graphi_status status =
        graphi_state_save(job->state, options->checkpoint, sizeof keys / sizeof *keys, keys, values);
    if (status != GRAPHI_OK)
        return report_failure(status);
    result_file(result, options->checkpoint);
    return GRAPHI_OK;
}

/* Cuts off the lines behind `step`, and the last one if it was not finished. `last`: the step of the last one left. */
static bool forget_after(FILE *log, uint64_t step, uint64_t *last)
{
    char *line = NULL; /* of any length: a perplexity may have 300 digits */
    size_t room = 0;
    long keep = ftell(log);
    uint64_t at;
    *last = 0;
    while (getline(&line, &room, log) > 0 && strchr(line, '\n') && (at = strtoull(line, NULL, 10)) <= step) {
        keep = ftell(log);
        *last = at;
    }
    free(line);
    return keep >= 0 && fseek(log, 0, SEEK_END) == 0 && (ftell(log) <= keep || ftruncate(fileno(log), keep) == 0);
}

/* Whether a file begins with the line of these columns, or is empty; it is read up to behind that line. */
static bool is_log(FILE *file, const char *columns)
{
    char line[256];
    const size_t length = strlen(columns);
    return !fgets(line, sizeof line, file) || (strncmp(line, columns, length) == 0 && strcmp(line + length, "\n") == 0);
}

graphi_status training_log(const struct options *options, const char *columns, uint64_t step, struct result *result,
                           FILE **log, uint64_t *last)
{
    const char *path = options->log;
    *last = step;
    if (!path)
        return GRAPHI_OK;
    struct stat info;
    const bool old = options->resume && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    *log = fopen(path, old ? "r+" : "w");
    if (!*log)
        return report_error(GRAPHI_IO, path, "found that it cannot be written (%s), expected a writable place",
                            strerror(errno));
    if (old && !is_log(*log, columns))
        return report_error(GRAPHI_INVALID, path,
                            "found a file that begins otherwise, expected a log whose first line is '%s', or none",
                            columns);
    if (old && !forget_after(*log, step, last))
        return report_error(GRAPHI_IO, path,
                            "found that lines behind step %llu cannot be cut off (%s), expected a file that shrinks",
                            (unsigned long long)step, strerror(errno));
    if (!old || (fseek(*log, 0, SEEK_END) == 0 && ftell(*log) == 0)) {
        fprintf(*log, "%s\n", columns);
        *last = step;
    }
    result_file(result, path);
    return GRAPHI_OK;
}

graphi_status training_length(const struct options *options, const graphi_model_info *info, int64_t batches,
                              uint64_t *steps, graphi_schedule *schedule)
{
    int64_t epochs = options->epochs ? options->epochs : info->epochs;
    *steps = (uint64_t)(options->steps ? options->steps : epochs * batches);
    graphi_status status = graphi_schedule_parse(options->schedule ? options->schedule : info->schedule,
                                                 options->lr_given ? options->lr : info->rate, batches, schedule);
    return status == GRAPHI_OK ? status : report_failure(status);
}
