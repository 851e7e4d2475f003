/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a checkpoint, read and compared with what was typed. A file may come from anywhere: numbers and words
 * are bounded by those who make the network of them. */
#include "cli/said.h"

#include <stdlib.h>
#include <string.h>

#include "tool/report.h"

static void add_switch(char *text, bool given, const char *name)
{
    size_t used = strlen(text);
    if (given)
        snprintf(text + used, SAID_BYTES - used, "%s%s", used ? " " : "", name);
}

void said_of(const struct job *job, struct said_network *network)
{
    const graphi_model_options *m = &job->model;
    char image[48];
    *network = (struct said_network){0};
    snprintf(network->computes, SAID_BYTES, "%s", job->name);
    add_switch(network->computes, m->merged, "--merged");
    add_switch(network->computes, m->batch_norm, "--batch-norm");
    add_switch(network->computes, m->lrn, "--lrn");
    add_switch(network->computes, m->bottleneck, "--bottleneck");
    snprintf(network->trained, SAID_BYTES, "--task %s", m->task);
    snprintf(image, sizeof image, "--image %lld", (long long)job->info.image);
    add_switch(network->trained, job->info.feed == GRAPHI_MODEL_IMAGES, image);
    add_switch(network->trained, m->auxiliary, "--auxiliary");
    if (job->info.feed == GRAPHI_MODEL_TEXT)
        snprintf(network->text, SAID_BYTES, "--size %s --unroll %lld", m->size ? m->size : "small",
                 (long long)job->info.steps);
}

/* --- reading --- */

static const char *const tasks[] = {"real", "bench", NULL}, *const levels[] = {"word", "character", NULL},
                         *const sizes[] = {"small", "medium", "large", NULL};

/* Which of the list the text begins with; NULL: none. */
static const char *among(const char *const *list, const char *text)
{
    const size_t length = strcspn(text, " ");
    for (; *list; list++)
        if (strlen(*list) == length && strncmp(*list, text, length) == 0)
            return *list;
    return NULL;
}

/* What stands behind "--option " in these words; "": nothing. */
static const char *behind(const char *words, const char *option)
{
    const char *at = strstr(words, option);
    return at ? at + strlen(option) : "";
}

/* The strings that are numbers. */
static void add_number(struct said *said, const char *key, const char *value)
{
    const struct {
        const char *key;
        long long *number;
        bool position;
    } numbers[] = {
        {"network.units", &said->units, false}, {"network.classes", &said->classes, false},
        {"network.vocabulary", &said->vocabulary, false}, {"data.epoch", &said->epoch, true},
        {"data.index", &said->index, true}, {"data.batch", &said->batch, true},
        {"data.limit", &said->limit, false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0 && sscanf(value, "%lld", numbers[i].number) == 1)
            said->found += numbers[i].position;
}

void said_add(void *context, const char *key, const char *value)
{
    struct said *said = context;
    add_number(said, key, value);
    if (strcmp(key, "network") == 0)
        snprintf(said->network.computes, SAID_BYTES, "%s", value);
    if (strcmp(key, "network.trained") == 0)
        snprintf(said->network.trained, SAID_BYTES, "%s", value);
    if (strcmp(key, "network.text") == 0)
        snprintf(said->network.text, SAID_BYTES, "%s", value);
    if (strcmp(key, "network.size") == 0)
        said->size = among(sizes, value);
    if (strcmp(key, "data.level") == 0)
        said->level = among(levels, value);
    if (strcmp(key, "data.seed") == 0)
        said->found += sscanf(value, "%llu", &said->seed) == 1;
    if (strcmp(key, "data.hash") == 0)
        said->found += sscanf(value, "%llx", &said->hash) == 1;
    if (strcmp(key, "data.encoding") == 0)
        said->encoded = sscanf(value, "%llx", &said->encoding) == 1;
    if (strcmp(key, "train.owes") == 0)
        said->owes = strcmp(value, "validation") == 0;
    if (strcmp(key, "train.loss") == 0)
        sscanf(value, "%la %la %la", &said->mean.real, &said->mean.fake, &said->mean.generator);
}

int64_t said_image(const struct said *said) { return strtoll(behind(said->network.trained, "--image "), NULL, 10); }
int64_t said_unroll(const struct said *said) { return strtoll(behind(said->network.text, "--unroll "), NULL, 10); }

/* --- comparing --- */

graphi_status said_words(const char *path, const char *found, const char *expected)
{
    if (!*found || strcmp(found, expected) == 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, path, "found a checkpoint of '%s', expected one of '%s'", found, expected);
}

static graphi_status check_number(const char *path, const char *option, long long found, int64_t expected)
{
    if (!found || found == expected)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, path, "found a checkpoint of %s %lld, expected %lld", option, found,
                        (long long)expected);
}

graphi_status said_check(const char *path, const struct said *said, const struct job *job)
{
    struct said_network network;
    said_of(job, &network);
    graphi_status status = said_words(path, said->network.computes, network.computes);
    return status == GRAPHI_OK ? check_number(path, "--units", said->units, job->info.units) : status;
}

static void take(int64_t *typed, int64_t found)
{
    if (*typed == 0 && found > 0)
        *typed = found;
}

/* Whatever else is typed: it is of another network. */
static bool is_of(const struct said *said, const char *name)
{
    const char *computes = said->network.computes;
    const size_t length = strcspn(computes, " ");
    return !length || (strlen(name) == length && strncmp(computes, name, length) == 0);
}

/* Of a text without a limit all words are told apart. */
static graphi_status check_limit(const char *path, const struct said *said, int64_t expected)
{
    if (said->limit || !said->level || !expected)
        return check_number(path, "--vocabulary", said->limit, expected);
    return report_error(GRAPHI_INVALID, path, "found a checkpoint of all words, expected one of --vocabulary %lld",
                        (long long)expected);
}

graphi_status said_complete(const char *path, const struct said *said, const char *name, struct options *o)
{
    const char *computes = said->network.computes, *task = among(tasks, behind(said->network.trained, "--task "));
    const char *size = said->size ? said->size : among(sizes, behind(said->network.text, "--size "));
    /* Else the typed one says units and steps. */
    const bool sized = !o->size || (size && strcmp(size, o->size) == 0) || job_one_size(name);
    if (!is_of(said, name))
        return said_words(path, computes, name);
    if (o->level && said->level && strcmp(o->level, said->level) != 0)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --level %s, expected %s", said->level,
                            o->level);
    if (!o->task)
        o->task = task ? task : "real";
    if (!o->level)
        o->level = said->level;
    if (!o->size)
        o->size = size;
    if (sized) {
        take(&o->units, said->units);
        take(&o->unroll, said_unroll(said));
    }
    take(&o->image, said_image(said));
    take(&o->batch, said->batch);
    take(&o->classes, said->classes);
    take(&o->vocabulary, said->limit);
    o->merged |= options_listed(computes, "--merged");
    o->batch_norm |= options_listed(computes, "--batch-norm");
    o->lrn |= options_listed(computes, "--lrn");
    o->bottleneck |= options_listed(computes, "--bottleneck");
    o->auxiliary |= options_listed(said->network.trained, "--auxiliary");
    graphi_status status = check_limit(path, said, o->vocabulary);
    return status == GRAPHI_OK ? check_number(path, "--classes", said->classes, o->classes) : status;
}
