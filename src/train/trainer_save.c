/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint of a training: the state, and strings that say of which network it is and where in which data it was
 * written, so that a training that goes on from it never does so elsewhere (docs/training.md lists them). */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "train/data.h"
#include "train/trainer_note.h"
#include "train/trainer_save.h"

#include <math.h>
#include "train/word_list.h"

enum { STRINGS = 60, STRINGS_GIVEN = 32 };

/* The strings of a file. */
struct strings {
    int count;
    const char *keys[STRINGS];
    char *values[STRINGS];
    bool broken; /* out of memory */
};

/* Takes the text over. */
static void add_own(struct strings *s, const char *key, struct text *value)
{
    s->broken |= value->broken || !value->data;
    s->keys[s->count] = key;
    s->values[s->count++] = value->data;
}

#define ADD(strings, key, ...)                                                                                         \
    do {                                                                                                               \
        struct text text_ = {0};                                                                                       \
        text_add(&text_, __VA_ARGS__); /* in every locale alike */                                                     \
        add_own(strings, key, &text_);                                                                                 \
    } while (0)

/* As short as gives the same number again. */
static void add_real(struct strings *s, const char *key, double value)
{
    struct text text = {0};
    for (int digits = 6; digits <= 17; digits++) {
        text.count = 0;
        text_add(&text, "%.*g", digits, value);
        if (text.broken || text_number(text.data, NULL) == value)
            break;
    }
    add_own(s, key, &text);
}

static void add_count(struct strings *s, const char *key, int64_t value)
{
    if (value > 0)
        ADD(s, key, "%lld", (long long)value);
}

/* As many numbers as a stored image has channels, each as exact as it is. */
static void add_channels(struct strings *s, const char *key, const float *values, const graphi_data_info *info)
{
    struct text text = {0};
    for (int c = 0; c < GRAPHI_DATA_CHANNELS && info->std[c] > 0; c++)
        text_add(&text, "%s%.9g", c ? " " : "", (double)values[c]);
    add_own(s, key, &text);
}

static void tell_words(struct graphi_trainer *t, const struct word_list *words, int64_t count)
{
    if (t->told_words)
        return;
    t->told_words = true;
    if (words->long_one)
        trainer_note(t,
                     "the %lld words are not in the checkpoint, only their hash (data.encoding): more than 1 MiB; the "
                     "training files number them",
                     (long long)count);
    else if (words->bare)
        trainer_note(t,
                     "%lld of %lld words are no UTF-8, the first is number %lld, \"%s\": the checkpoint has them as "
                     "lists of bytes (iconv -t UTF-8 makes a text of another encoding readable)",
                     (long long)words->bare, (long long)count, (long long)words->first,
                     graphi_data_word(t->how.training.data, words->first, NULL));
}

/* What inputs are made with: normalisation of images; the words of a text, if they fit. */
static void add_encoding(struct strings *s, struct graphi_trainer *t)
{
    const graphi_data *data = t->how.training.data;
    graphi_data_info info;
    if (!data)
        return;
    graphi_data_get_info(data, &info);
    ADD(s, "data.encoding", "%016llx", (unsigned long long)info.encoding);
    if (info.format != GRAPHI_DATA_TEXT) {
        ADD(s, "network.classes", "%lld", (long long)info.classes);
        add_channels(s, "data.mean", info.mean, &info);
        add_channels(s, "data.std", info.std, &info);
        return;
    }
    const graphi_data_options *options = data_options(data);
    struct word_list words;
    ADD(s, "network.vocabulary", "%lld", (long long)info.classes);
    ADD(s, "data.level", "%s", options->characters ? "character" : "word");
    add_count(s, "data.limit", options->vocabulary);
    word_list_make(data, info.classes, &words);
    tell_words(t, &words, info.classes);
    if (words.long_one)
        text_free(&words.text);
    else
        add_own(s, "data.vocabulary", &words.text);
}

static graphi_status add_network(struct strings *s, const struct graphi_trainer *t)
{
    const struct network network = trainer_network(t);
    struct network_words words;
    graphi_model_info info = {0};
    if (!network.name)
        return GRAPHI_OK;
    if (network.model)
        TRY(graphi_model_get_info(network.name, network.model, &info));
    network_words_of(network.name, network.model, &info, &words);
    ADD(s, "network", "%s", words.computes);
    if (!network.model)
        return GRAPHI_OK;
    ADD(s, "network.trained", "%s", words.trained);
    if (*words.text)
        ADD(s, "network.text", "%s", words.text);
    if (info.size)
        ADD(s, "network.size", "%s", info.size);
    ADD(s, "network.units", "%lld", (long long)info.units);
    return GRAPHI_OK;
}

static void add_place(struct strings *s, const struct graphi_trainer *t)
{
    const graphi_data_position at = feeder_at(&t->feeder);
    const double *loss = t->info.loss;
    ADD(s, "data.epoch", "%lld", (long long)at.epoch);
    ADD(s, "data.index", "%lld", (long long)at.index);
    ADD(s, "data.batch", "%lld", (long long)t->feeder.batch);
    ADD(s, "data.seed", "%llu", (unsigned long long)t->how.seed);
    ADD(s, "data.hash", "%016llx", (unsigned long long)t->feeder.hash);
    ADD(s, "train.loss", "%a %a %a", loss[0], loss[1], loss[2]);
    if (!isnan(t->info.best))
        ADD(s, "train.best", "%a %lld", t->info.best, (long long)t->info.since);
    if (t->info.owes)
        ADD(s, "train.owes", "validation");
}

/* What it would have to be told to go on. */
static void add_goal(struct strings *s, const struct graphi_trainer *t)
{
    const graphi_trainer_options *how = &t->how;
    add_real(s, "train.lr", how->rate);
    ADD(s, "train.schedule", "%s", how->schedule);
    add_count(s, "train.steps", how->steps);
    add_count(s, "train.epochs", how->epochs);
    add_count(s, "train.validate", how->validate_every);
    add_count(s, "train.every", how->every);
    for (int i = 0; i < how->string_count; i++)
        ADD(s, how->keys[i], "%s", how->values[i]);
}

/* --- the file --- */

void trainer_watch(struct graphi_trainer *t)
{
    t->is_there = t->how.checkpoint && stat(t->how.checkpoint, &t->seen) == 0;
}

static bool is_seen(const struct graphi_trainer *t, const struct stat *now)
{
    return t->is_there && now->st_ino == t->seen.st_ino && now->st_mtim.tv_sec == t->seen.st_mtim.tv_sec &&
           now->st_mtim.tv_nsec == t->seen.st_mtim.tv_nsec;
}

/* Each file is whole, but one training's takes the place of the other's. */
static void tell_others(struct graphi_trainer *t)
{
    struct stat now;
    const char *path = t->how.checkpoint;
    if (t->told_others || stat(path, &now) != 0 || !S_ISREG(now.st_mode) || is_seen(t, &now))
        return;
    t->told_others = true;
    trainer_note(t, "%s was written by another process meanwhile, and is written over", path);
}

/* The file of the best validation is written over where it is a checkpoint. */
static graphi_status guard_best(const char *path)
{
    struct record record = record_none();
    struct stat info;
    if (!path || stat(path, &info) != 0 || !S_ISREG(info.st_mode) || !info.st_size)
        return GRAPHI_OK;
    const graphi_status status = graphi_state_load(NULL, path, record_add, &record);
    if (status == GRAPHI_IO || status == GRAPHI_MEMORY || (!status && record.own))
        return status;
    return fail(GRAPHI_INVALID, path, "found a file that is no checkpoint of Graphi, expected one, or none");
}

graphi_status trainer_guard(const struct graphi_trainer *t)
{
    const graphi_trainer_options *how = &t->how;
    const char *path = how->checkpoint;
    struct record record = record_none();
    struct stat info;
    TRY(guard_best(how->best));
    if (!path || how->start == GRAPHI_TRAINER_RESUME || stat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
        !info.st_size)
        return GRAPHI_OK;
    const graphi_status status = graphi_state_load(NULL, path, record_add, &record);
    if (status == GRAPHI_IO || status == GRAPHI_MEMORY)
        return status;
    if (status != GRAPHI_OK || !record.own)
        return fail(GRAPHI_INVALID, path, "found a file that is no checkpoint of Graphi, expected one, or none");
    if (how->start == GRAPHI_TRAINER_OVERWRITE)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, path,
                "found a checkpoint of step %llu, expected --resume to go on from it, --overwrite to lose it, or "
                "another name",
                record.step / (unsigned)t->runs_a_step);
}

static graphi_status save(struct graphi_trainer *t, const char *path, struct strings *s)
{
    TRY(add_network(s, t));
    add_place(s, t);
    add_encoding(s, t);
    add_goal(s, t);
    if (s->broken)
        return fail(GRAPHI_MEMORY, path, "found no memory for its strings, expected some");
    return graphi_state_save(t->state, path, s->count, s->keys, (const char *const *)s->values);
}

graphi_status graphi_trainer_save(graphi_trainer *t, const char *path)
{
    GIVEN(t);
    struct strings s = {.count = 0};
    const bool own = !path || path == t->how.checkpoint;
    path = path ? path : t->how.checkpoint;
    if (!path)
        return fail(GRAPHI_INVALID, "checkpoint", "found no path, expected one here or in the options");
    if (own)
        tell_others(t);
    graphi_status status = save(t, path, &s);
    for (int i = 0; i < s.count; i++)
        mem_free(s.values[i]);
    TRY(status);
    if (own)
        trainer_watch(t);
    if (t->how.saved)
        t->how.saved(t->how.context, path);
    return GRAPHI_OK;
}
