/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options that a checkpoint keeps: written with it, taken from it where nothing was typed, compared where
 * something was. Files may come from anywhere: their words are read as typed ones are, by kind and range, and none of
 * them names a file that is written. */
#include "cli/resume.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/checkpoint.h"
#include "cli/data_path.h"
#include "cli/solvers.h"
#include "tool/local_machine.h"
#include "tool/option_value.h"
#include "tool/report.h"

/* --- what is written --- */

static void precision(const struct job *job, char *word)
{
    snprintf(word, RESUME_BYTES, "%s", job->options->precision ? job->options->precision : "float32");
}

static void isa(const struct job *job, char *word)
{
    graphi_machine_info machine;
    graphi_machine_get_info(job->machine, &machine);
    snprintf(word, RESUME_BYTES, "%s", job->options->isa ? job->options->isa : machine.isa);
}

/* From wherever it will be resumed; links stay, since a name tells the format. What JSON cannot say is typed again. */
static void absolute_path(const struct job *job, char *word)
{
    const char *path = data_path_of(job->options);
    char folder[RESUME_BYTES] = "";
    const bool known = *path == '/' || getcwd(folder, sizeof folder);
    const int length = snprintf(word, RESUME_BYTES, "%s%s%s", folder, *path == '/' ? "" : "/", path);
    json_t *text = known && length < RESUME_BYTES ? json_string(word) : NULL;
    if (!text)
        *word = 0;
    json_decref(text);
}

/* What kind and range do not tell of a word. */

static bool is_schedule(const char *word) { return graphi_schedule_parse(word, 1, 0, NULL) == GRAPHI_OK; }
static bool is_augment(const char *word) { return graphi_data_augment(word, NULL) == GRAPHI_OK; }
static bool are_passes(const char *word) { return graphi_pass_check(word) == GRAPHI_OK; }
static bool is_yes(const char *word) { return strcmp(word, "yes") == 0; } /* a flag's only one */

static const struct kept {
    const char *key, *option;
    const char *instead; /* where this one was typed, too, the checkpoint's is not taken; NULL: none */
    bool learns;         /* another value gives other bits */
    bool trainer;        /* the library's trainer writes it itself */
    void (*word)(const struct job *job, char *word); /* NULL: what the options have */
    bool (*means)(const char *word);                 /* NULL: whatever the option takes means something */
    const char *expected;                            /* where it means nothing */
} kept[] = {
    {"train.lr", "--lr", NULL, true, true, NULL, NULL, NULL},
    {"train.schedule", "--schedule", NULL, true, true, NULL, is_schedule, "a learning-rate schedule"},
    {"train.augment", "--augment", NULL, true, false, NULL, is_augment, "an augmentation"},
    {"train.precision", "--precision", NULL, true, false, precision, NULL, NULL},
    {"train.isa", "--isa", NULL, true, false, isa, NULL, NULL},
    {"train.conv-error", "--conv-error", NULL, true, false, NULL, NULL, NULL},
    {"train.disable", "--disable", NULL, true, false, NULL, are_passes, "passes that can be switched"},
    {"train.allow-rounding", "--allow-rounding", NULL, true, false, NULL, is_yes, "yes"},
    {"group.deterministic", "--deterministic", NULL, true, false, NULL, is_yes, "yes"},
    {"group.leaves", "--leaves", NULL, true, false, solvers_leaves, NULL, NULL},
    {"group.reduction", "--reduction", NULL, true, false, NULL, solvers_are_reduction, "a reduction"},
    {"group.solvers", "--solvers", NULL, false, false, NULL, solvers_are_count, "a number of solvers, or nodes"},
    {"train.steps", "--steps", "--epochs", false, true, NULL, NULL, NULL},
    {"train.epochs", "--epochs", "--steps", false, true, NULL, NULL, NULL},
    {"train.validate", "--validate", NULL, false, true, NULL, NULL, NULL},
    {"train.every", "--every", NULL, false, true, NULL, NULL, NULL},
    {"data.path", "--data", NULL, false, false, absolute_path, NULL, NULL},
};
enum { KEPT = sizeof kept / sizeof *kept };

static void current(const struct job *job, const struct kept *k, char *word)
{
    *word = 0;
    if (k->word)
        k->word(job, word);
    else if (!option_write(option_find(k->option), job->options, word, RESUME_BYTES))
        *word = 0; /* also of what it does not hold */
}

int resume_strings(const struct job *job, const char *const **keys, const char *const **values)
{
    static char word[KEPT][RESUME_BYTES];
    static const char *key[KEPT], *value[KEPT];
    int count = 0;
    for (int i = 0; i < KEPT; i++) {
        if (kept[i].trainer)
            continue;
        current(job, &kept[i], word[count]);
        key[count] = kept[i].key;
        value[count] = word[count];
        count += *word[count] != 0;
    }
    *keys = key;
    *values = value;
    return count;
}

/* --- what is read --- */

/* By the checkpoint that is resumed; "": it does not say. The options have pointers to it. */
static char found[KEPT][RESUME_BYTES];

static void find(const graphi_checkpoint *file)
{
    for (int i = 0; i < KEPT; i++) {
        const char *value = graphi_checkpoint_text(file, kept[i].key);
        if (value && strlen(value) < RESUME_BYTES)
            strcpy(found[i], value);
    }
}

/* What was typed over may be anything: so a file whose words are of another version can be gone on from. */
static bool is_taken(const struct options *o, const struct kept *k)
{
    return *found[k - kept] && !options_given(o, k->option) && !(k->instead && options_given(o, k->instead));
}

/* The kept option of that name. */
static const struct kept *kept_of(const char *option)
{
    const struct kept *k = kept;
    while (strcmp(k->option, option) != 0)
        k++;
    return k;
}

static graphi_status take_word(struct options *o, const struct kept *k)
{
    const char *word = found[k - kept];
    struct option_wrong wrong;
    if (option_read(option_find(k->option), word, o, &wrong) && (!k->means || k->means(word)))
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, o->checkpoint, "found %s '%s', expected %s", k->key, word,
                        *wrong.expected ? wrong.expected : k->expected);
}

static graphi_status take_words(struct options *o)
{
    for (const struct kept *k = kept; k < kept + KEPT; k++) {
        if (!is_taken(o, k))
            continue;
        if (k->instead && is_taken(o, kept_of(k->instead)))
            return report_error(GRAPHI_INVALID, o->checkpoint, "found %s '%s' beside %s, expected one of the two",
                                k->key, found[k - kept], kept_of(k->instead)->key);
        graphi_status status = take_word(o, k);
        if (status != GRAPHI_OK)
            return status;
    }
    return GRAPHI_OK;
}

/* What is there for the best of this machine need not be asked for, and what it lacks cannot be: a note tells. */
static graphi_status settle_isa(struct options *o)
{
    static const char *const sets[] = {"plain", "avx2", "avx512", "bf16"}; /* one that has one has those before it */
    graphi_machine *machine = NULL;
    graphi_machine_info here;
    int rank = 0;
    if (options_given(o, "--isa") || !o->isa)
        return GRAPHI_OK;
    graphi_status status = job_capture(o, &machine);
    if (status != GRAPHI_OK)
        return status;
    graphi_machine_get_info(machine, &here);
    graphi_machine_destroy(machine);
    while (strcmp(sets[rank], o->isa) != 0 && strcmp(sets[rank], here.isa) != 0)
        rank++;
    if (strcmp(sets[rank], here.isa) == 0)
        o->isa = NULL;
    return GRAPHI_OK;
}

/* The built-in network whose name the text begins with, static text; NULL: there is none. */
static const char *network_of(const char *text)
{
    const size_t length = strcspn(text, " ");
    for (int i = 0; graphi_model_at(i); i++)
        if (strlen(graphi_model_at(i)) == length && strncmp(graphi_model_at(i), text, length) == 0)
            return graphi_model_at(i);
    return NULL;
}

static graphi_status find_network(const graphi_checkpoint *file, struct options *o)
{
    graphi_checkpoint_info info;
    graphi_checkpoint_get_info(file, &info);
    if (!o->subject)
        o->subject = info.network;
    if (o->subject)
        return GRAPHI_OK;
    return report_error(GRAPHI_INVALID, o->checkpoint,
                        "found a checkpoint of %s%s%s, expected one of a network of this build, or its name beside",
                        *info.words ? "'" : "no network that it says", info.words, *info.words ? "'" : "");
}

graphi_status resume_network(struct options *o)
{
    graphi_checkpoint *file = NULL;
    if (o->subject || !o->checkpoint)
        return GRAPHI_OK;
    graphi_status status = checkpoint_open(o, &file);
    if (status == GRAPHI_OK)
        status = find_network(file, o);
    graphi_checkpoint_close(file);
    return status;
}

graphi_status resume_data(struct options *o)
{
    struct options form = *o; /* which the command asks for itself: here, whether the file is of this network */
    graphi_checkpoint *file = NULL;
    if (!o->checkpoint || options_given(o, "--data"))
        return GRAPHI_OK;
    if (graphi_checkpoint_open(o->checkpoint, &file) != GRAPHI_OK)
        return GRAPHI_OK; /* as the command finds when it reads it, after what is wrong with its words */
    find(file);
    graphi_status status = checkpoint_complete(file, o->subject, &form);
    graphi_checkpoint_close(file);
    return status == GRAPHI_OK && is_taken(o, kept_of("--data")) ? take_word(o, kept_of("--data")) : status;
}

graphi_status resume_check_data(const struct options *o)
{
    struct stat info;
    if (options_given(o, "--data") || (!o->data && !o->resume))
        return GRAPHI_OK;
    if (!o->data)
        return report_error(GRAPHI_INVALID, o->checkpoint, "found no data.path, expected one, or --data PATH");
    const bool there = stat(o->data, &info) == 0;
    if (there && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
        return GRAPHI_OK;
    return report_error(GRAPHI_IO, o->data, "found %s, expected the data that %s was trained on, or --data PATH",
                        there ? "neither a file nor a folder" : strerror(errno), o->checkpoint);
}

/* `train --resume FILE`. What is neither a file nor a network is refused as one that it lacks, and so is a network
 * without any file. */
static graphi_status find_checkpoint(struct options *o, bool *none)
{
    const bool network = o->subject && network_of(o->subject) && !strchr(o->subject, ' ');
    *none = o->checkpoint ? o->subject && !network : network;
    if (!o->checkpoint && !o->subject)
        return report_error(GRAPHI_USAGE, "--resume",
                            "found nothing, expected FILE, or a network beside --checkpoint FILE");
    if (*none || o->checkpoint)
        return GRAPHI_OK;
    o->checkpoint = o->subject;
    o->subject = NULL;
    if (access(o->checkpoint, R_OK) == 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_IO, o->checkpoint,
                        "found no readable file (%s), expected a checkpoint, or a network beside --checkpoint FILE",
                        strerror(errno));
}

static graphi_status take_all(const graphi_checkpoint *file, struct options *o)
{
    graphi_checkpoint_info info;
    graphi_status status;
    find(file);
    graphi_checkpoint_get_info(file, &info);
    if ((status = find_network(file, o)) != GRAPHI_OK ||
        (status = checkpoint_complete(file, o->subject, o)) != GRAPHI_OK || (status = take_words(o)) != GRAPHI_OK)
        return status;
    if (!o->seed_given)
        o->seed = info.seed;
    return settle_isa(o);
}

graphi_status resume_options(struct options *o)
{
    graphi_checkpoint *file = NULL;
    bool none;
    if (!o->resume)
        return GRAPHI_OK;
    graphi_status status = find_checkpoint(o, &none);
    if (status != GRAPHI_OK || none)
        return status;
    if ((status = checkpoint_open(o, &file)) == GRAPHI_OK)
        status = take_all(file, o);
    graphi_checkpoint_close(file);
    return status;
}

/* --- what is told --- */

/* A checkpoint of a version that kept none of these says nothing of them. */
static bool keeps_words(void) { return *found[0]; }

void resume_note(const struct job *job, uint64_t step, uint64_t last, bool owes, struct result *result)
{
    char now[RESUME_BYTES];
    for (int i = 0; i < KEPT && keeps_words(); i++) {
        current(job, &kept[i], now);
        if (kept[i].learns && strcmp(now, found[i]) != 0)
            result_note(result, "%s: %s until the checkpoint, %s from there on: not the bits of one training",
                        kept[i].option, *found[i] ? found[i] : "not given", *now ? now : "not given");
    }
    if (step >= last && !owes)
        result_note(result,
                    "nothing was left to do: %llu of %llu steps are done; --steps N or --epochs N says how far to go",
                    (unsigned long long)step, (unsigned long long)last);
}
