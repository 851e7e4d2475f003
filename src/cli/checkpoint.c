/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint says of which network it is and where in which data it was written, so that a run that goes on from it
 * never does so elsewhere. */
#include "cli/checkpoint.h"

#include <string.h>

#include "cli/report.h"

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
