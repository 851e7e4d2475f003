/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint says of which network it is and where in which data it was written, so that a run that goes on from it
 * never does so elsewhere. */
#include "cli/checkpoint.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/gan_steps.h"
#include "cli/resume.h"
#include "cli/said.h"
#include "tool/report.h"

enum { STRINGS = 32 };

/* Longer lists of words stay with the training files: a file's header holds 16 MiB. */
static const size_t vocabulary_most = 1 << 20;

/* Beside what the parameters compute: images and windows of another size are other data. */
static graphi_status check_form(const struct job *job, const struct said *said)
{
    const char *path = job->options->checkpoint;
    struct said_network network;
    said_of(job, &network);
    graphi_status status = said_words(path, said->network.trained, network.trained);
    return status == GRAPHI_OK ? said_words(path, said->network.text, network.text) : status;
}

/* Loads --checkpoint into the state and reads what else it says. INVALID if it is of another network (resumes: or of
 * another form of it): that is said before which parameters differ. */
static graphi_status load(const struct job *job, bool resumes, struct said *said)
{
    const char *path = job->options->checkpoint;
    *said = (struct said){.mean = NO_LOSSES};
    graphi_status loaded = graphi_state_load(job->state, path, said_add, said);
    if (loaded == GRAPHI_INVALID) /* as is what is no checkpoint at all, and has no words */
        (void)graphi_state_load(NULL, path, said_add, said);
    graphi_status status = said_check(path, said, job);
    if (status == GRAPHI_OK && resumes)
        status = check_form(job, said);
    return status == GRAPHI_OK && loaded != GRAPHI_OK ? report_failure(loaded) : status;
}

/* Going on bit for bit needs the same data in the same order. */
static graphi_status check_position(const struct job *job, const struct said *said, const graphi_data *data)
{
    const char *path = job->options->checkpoint;
    const uint64_t seed = job->options->seed;
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    if (said->found != 5)
        return report_error(GRAPHI_INVALID, path,
                            "found no position in the data, expected a checkpoint that training wrote");
    if (said->hash != info.hash)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of other data (%016llx), expected %016llx",
                            said->hash, (unsigned long long)info.hash);
    if (said->batch != info.batch)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --batch %lld, expected %lld", said->batch,
                            (long long)info.batch);
    if (said->seed != seed)
        return report_error(GRAPHI_INVALID, path, "found a checkpoint of --seed %llu, expected %llu", said->seed,
                            (unsigned long long)seed);
    return GRAPHI_OK;
}

graphi_status checkpoint_load(const struct job *job, graphi_data *data, struct losses *mean, bool *owes)
{
    struct said said;
    graphi_status status = load(job, true, &said);
    if (status == GRAPHI_OK)
        status = check_position(job, &said, data);
    if (status != GRAPHI_OK)
        return status;
    *mean = said.mean;
    *owes = said.owes;
    status = graphi_data_set_position(data, (graphi_data_position){said.epoch, said.index});
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* A score of windows of another length, in other rows, or of images of another side, looks like that of the training's
 * own validation. */
static void note_other_form(const struct job *job, const struct said *said, struct result *result)
{
    const graphi_model_info *s = &job->info;
    const int64_t unroll = said_unroll(said), image = said_image(said);
    if (s->feed == GRAPHI_MODEL_TEXT && unroll > 0 && (unroll != s->steps || said->batch != s->batch))
        result_note(result, "scored in windows of %lld in %lld rows, training had %lld in %lld", (long long)s->steps,
                    (long long)s->batch, (long long)unroll, said->batch);
    if (s->feed == GRAPHI_MODEL_IMAGES && image > 0 && image != s->image)
        result_note(result, "scored on images of side %lld, training had %lld", (long long)s->image, (long long)image);
}

graphi_status checkpoint_load_parameters(const struct job *job, const graphi_data *data, struct result *result)
{
    struct said said;
    graphi_data_info info;
    graphi_status status = load(job, false, &said);
    if (status != GRAPHI_OK)
        return status;
    graphi_data_get_info(data, &info);
    if (said.encoded && said.encoding != info.encoding)
        return report_error(GRAPHI_INVALID, job->options->checkpoint,
                            "found a checkpoint of training data with another %s (%016llx), expected that of --data "
                            "(%016llx): the files it was trained on, beside any test files",
                            info.format == GRAPHI_DATA_TEXT ? "vocabulary" : "normalisation", said.encoding,
                            (unsigned long long)info.encoding);
    note_other_form(job, &said, result);
    return GRAPHI_OK;
}

graphi_status checkpoint_options(struct options *options, const char *name, int64_t *vocabulary)
{
    const char *path = options->checkpoint;
    struct said said = {.found = 0};
    struct job job = {.name = name};
    graphi_status status = graphi_state_load(NULL, path, said_add, &said);
    if (status != GRAPHI_OK)
        return report_failure(status);
    if ((status = said_complete(path, &said, name, options)) != GRAPHI_OK ||
        (status = job_model_options(options, &job.model)) != GRAPHI_OK)
        return status;
    *vocabulary = said.vocabulary;
    status = graphi_model_get_info(name, &job.model, &job.info);
    return status == GRAPHI_OK ? said_check(path, &said, &job) : report_failure(status);
}

graphi_status checkpoint_weights(const struct job *job, struct result *result)
{
    struct said said;
    const char *path = job->options->checkpoint;
    if (!path) {
        result_note(result, "weights are random; --checkpoint FILE takes trained ones");
        return GRAPHI_OK;
    }
    graphi_status status = load(job, false, &said);
    if (status == GRAPHI_OK)
        result_note(result, "weights: %s, step %llu", path,
                    (unsigned long long)gan_steps(job->name, graphi_state_step(job->state)));
    return status;
}

/* The numbers of a word's bytes: JSON has no other bytes than UTF-8. */
static json_t *list_bytes(const char *word, size_t length)
{
    json_t *list = json_array();
    for (size_t i = 0; i < length; i++)
        json_array_append_new(list, json_integer((unsigned char)word[i]));
    return list;
}

/* The words of a text by number, as a JSON list; NULL: it is too long. The caller's (free). *bare gets how many are no
 * UTF-8, and are lists of bytes; `first` the first of them. */
static char *list_words(const graphi_data *data, int64_t count, int64_t *bare, int64_t *first)
{
    json_t *list = json_array();
    size_t bytes = 0, length;
    char *text = NULL;
    for (int64_t i = 0; i < count && bytes <= vocabulary_most; i++) {
        const char *word = graphi_data_word(data, i, &length);
        json_t *said = json_stringn(word, length);
        if (!said && (*bare)++ == 0)
            *first = i;
        said = said ? said : list_bytes(word, length);
        bytes += json_array_append_new(list, said) == 0 ? length + 3 : vocabulary_most + 1;
    }
    if (bytes <= vocabulary_most)
        text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    if (!text || strlen(text) <= vocabulary_most)
        return text;
    free(text);
    return NULL;
}

/* The strings of a file. */
struct strings {
    int count;
    const char *keys[STRINGS];
    char *values[STRINGS];
    bool broken; /* out of memory */
};

/* Takes the value over. */
static void add_own(struct strings *s, const char *key, char *value)
{
    s->keys[s->count] = key;
    s->values[s->count++] = value;
}

static __attribute__((format(printf, 3, 4))) void add(struct strings *s, const char *key, const char *format, ...)
{
    char *value;
    va_list arguments;
    va_start(arguments, format);
    const bool made = vasprintf(&value, format, arguments) >= 0;
    va_end(arguments);
    if (made)
        add_own(s, key, value);
    s->broken |= !made;
}

/* As many numbers as a stored image has channels, each as exact as it is. */
static void add_channels(struct strings *s, const char *key, const float *values, const graphi_data_info *info)
{
    char text[24 * GRAPHI_DATA_CHANNELS] = "";
    for (int c = 0; c < GRAPHI_DATA_CHANNELS && info->std[c] > 0; c++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.9g", c ? " " : "", (double)values[c]);
    add(s, key, "%s", text);
}

/* What inputs are made with: normalisation of images; the words of a text, if they fit. */
static void add_encoding(struct strings *s, const struct job *job, const graphi_data *data, struct result *result)
{
    char *words;
    int64_t bare = 0, first = 0;
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
    if (job->options->vocabulary)
        add(s, "data.limit", "%lld", (long long)job->options->vocabulary);
    if (!(words = list_words(data, info.classes, &bare, &first))) {
        result_note(result, "the %lld words are not in the checkpoint, only their hash (data.encoding): more than "
                            "1 MiB; the training files number them",
                    (long long)info.classes);
        return;
    }
    add_own(s, "data.vocabulary", words);
    if (bare)
        result_note(result, "%lld of %lld words are no UTF-8, the first is number %lld, \"%s\": the checkpoint has "
                            "them as lists of bytes (iconv -t UTF-8 makes a text of another encoding readable)",
                    (long long)bare, (long long)info.classes, (long long)first, graphi_data_word(data, first, NULL));
}

/* What it would have to be told to go on. */
static void add_resume(struct strings *s, const struct job *job)
{
    char word[RESUME_BYTES];
    const char *key;
    for (int i = 0; (key = resume_word(job, i, word)); i++)
        if (*word)
            add(s, key, "%s", word);
}

/* What this process last saw under the name of --checkpoint. */
static struct {
    struct stat file;
    bool there, told;
} seen;

void checkpoint_watch(const char *path) { seen.there = path && stat(path, &seen.file) == 0; }

static bool is_seen(const struct stat *now)
{
    return seen.there && now->st_ino == seen.file.st_ino && now->st_mtim.tv_sec == seen.file.st_mtim.tv_sec &&
           now->st_mtim.tv_nsec == seen.file.st_mtim.tv_nsec;
}

/* Each file is whole, but one training's takes the place of the other's. */
static void tell_others(const struct options *o, struct result *result)
{
    struct stat now;
    if (seen.told || stat(o->checkpoint, &now) != 0 || !S_ISREG(now.st_mode) || is_seen(&now))
        return;
    seen.told = true;
    result_note(result, "%s was written by another process meanwhile, and is written over", o->checkpoint);
    if (!o->quiet)
        report_warning("%s was written by another process meanwhile, and is written over", o->checkpoint);
}

/* And frees the strings. */
static graphi_status save(const graphi_state *state, const char *path, struct strings *s)
{
    graphi_status status;
    if (s->broken)
        status = report_error(GRAPHI_MEMORY, path, "found no memory for its strings, expected some");
    else if ((status = graphi_state_save(state, path, s->count, s->keys, (const char *const *)s->values)) != GRAPHI_OK)
        report_failure(status);
    for (int i = 0; i < s->count; i++)
        free(s->values[i]);
    return status;
}

graphi_status checkpoint_save(const struct job *job, const graphi_data *data, const struct losses *mean, bool owes,
                              struct result *result)
{
    const struct options *options = job->options;
    struct said_network network;
    struct strings s = {.count = 0};
    graphi_data_info info;
    if (!options->checkpoint)
        return GRAPHI_OK;
    said_of(job, &network);
    graphi_data_get_info(data, &info);
    graphi_data_position position = graphi_data_get_position(data);
    add(&s, "network", "%s", network.computes);
    add(&s, "network.trained", "%s", network.trained);
    if (*network.text)
        add(&s, "network.text", "%s", network.text);
    if (job->info.size)
        add(&s, "network.size", "%s", job->info.size);
    add(&s, "network.units", "%lld", (long long)job->info.units);
    add(&s, "data.epoch", "%lld", (long long)position.epoch);
    add(&s, "data.index", "%lld", (long long)position.index);
    add(&s, "data.batch", "%lld", (long long)info.batch);
    add(&s, "data.seed", "%llu", (unsigned long long)options->seed);
    add(&s, "data.hash", "%016llx", (unsigned long long)info.hash);
    add(&s, "train.loss", "%a %a %a", mean->real, mean->fake, mean->generator);
    if (owes)
        add(&s, "train.owes", "validation");
    add_encoding(&s, job, data, result);
    add_resume(&s, job);
    tell_others(options, result);
    graphi_status status = save(job->state, options->checkpoint, &s);
    if (status != GRAPHI_OK)
        return status;
    checkpoint_watch(options->checkpoint);
    result_file(result, options->checkpoint);
    return GRAPHI_OK;
}
