/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a checkpoint. A file may come from anywhere: numbers and words are bounded by those who make the
 * network of them. */
#include "train/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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

/* The strings that are numbers; how many of those that tell a position. */
static int add_number(struct record *r, const char *key, const char *value)
{
    const struct {
        const char *key, *format;
        void *number;
        bool position;
    } numbers[] = {
        {"network.units", "%lld", &r->units, false},
        {"network.classes", "%lld", &r->classes, false},
        {"network.vocabulary", "%lld", &r->vocabulary, false},
        {"data.limit", "%lld", &r->limit, false},
        {"data.epoch", "%lld", &r->epoch, true},
        {"data.index", "%lld", &r->index, true},
        {"data.batch", "%lld", &r->batch, true},
        {"data.seed", "%llu", &r->seed, true},
        {"data.hash", "%llx", &r->hash, true},
        {"graphi.step", "%llu", &r->step, false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0 && sscanf(value, numbers[i].format, numbers[i].number) == 1)
            return numbers[i].position;
    return 0;
}

static void add_words(struct network_words *network, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *text;
    } words[] = {
        {"network", network->computes}, {"network.trained", network->trained}, {"network.text", network->text}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i].key) == 0)
            snprintf(words[i].text, NETWORK_BYTES, "%s", value);
}

static void add_losses(struct record *r, const char *value)
{
    char *end;
    for (int i = 0; i < GRAPHI_TRAINER_LOSSES; i++, value = end) {
        const double loss = text_number(value, &end);
        if (end == value)
            return;
        r->loss[i] = loss;
    }
}

static void add_best(struct record *r, const char *value)
{
    char *end;
    const double best = text_number(value, &end);
    if (end != value && isfinite(best)) {
        r->best = best;
        r->since = strtoll(end, NULL, 10);
    }
}

void record_add(void *context, const char *key, const char *value)
{
    struct record *r = context;
    r->found += add_number(r, key, value);
    add_words(&r->network, key, value);
    if (strcmp(key, "network.size") == 0)
        r->size = among(sizes, value);
    if (strcmp(key, "data.level") == 0)
        r->level = among(levels, value);
    if (strcmp(key, "data.encoding") == 0)
        r->encoded = sscanf(value, "%llx", &r->encoding) == 1;
    if (strcmp(key, "train.owes") == 0)
        r->owes = strcmp(value, "validation") == 0;
    if (strcmp(key, "train.loss") == 0)
        add_losses(r, value);
    if (strcmp(key, "train.best") == 0)
        add_best(r, value);
    r->own |= strcmp(key, "graphi.version") == 0;
}

struct record record_none(void)
{
    return (struct record){.loss = {NAN, NAN, NAN}, .best = NAN};
}

int64_t record_image(const struct record *r)
{
    return strtoll(behind(r->network.trained, "--image "), NULL, 10);
}
int64_t record_unroll(const struct record *r)
{
    return strtoll(behind(r->network.text, "--unroll "), NULL, 10);
}
int64_t record_layers(const struct record *r)
{
    return strtoll(behind(r->network.computes, "--layers "), NULL, 10);
}
double record_dropout(const struct record *r)
{
    return text_number(behind(r->network.trained, "--dropout "), &(char *){NULL});
}
const char *record_optimizer(const struct record *r)
{
    static const char *const names[] = {"sgd", "momentum", "adam", "adagrad", NULL};
    return among(names, behind(r->network.trained, "--optimizer "));
}
const char *record_task(const struct record *r)
{
    return among(tasks, behind(r->network.trained, "--task "));
}

const char *record_size(const struct record *r)
{
    return r->size ? r->size : among(sizes, behind(r->network.text, "--size "));
}

const char *record_network(const struct record *r)
{
    const char *text = r->network.computes;
    const size_t length = strcspn(text, " ");
    for (int i = 0; graphi_model_at(i); i++)
        if (strlen(graphi_model_at(i)) == length && strncmp(graphi_model_at(i), text, length) == 0)
            return graphi_model_at(i);
    return NULL;
}
