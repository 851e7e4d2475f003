/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files of data sets. What is found is told apart by words in the name, so that a file for validation is never
 * trained on because somebody spelled it otherwise. Called when a data set is opened; any thread. */
#include "train/names.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { WORDS = 5 };

/* The words for a split; the first is ours. */
static const char *const words[][WORDS] = {
    [GRAPHI_TRAIN] = {"train", "training"},
    [GRAPHI_VALIDATION] = {"validation", "valid", "val", "dev", "eval"},
    [GRAPHI_TEST] = {"test", "t10k", "testing"},
};

const char *names_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static size_t length_without_gz(const char *name)
{
    const size_t length = strlen(name);
    return length > 3 && !strcmp(name + length - 3, ".gz") ? length - 3 : length;
}

bool names_end(const char *name, const char *end)
{
    const size_t length = length_without_gz(name), need = strlen(end);
    return length >= need && !strncmp(name + length - need, end, need);
}

/* Makes a name; false if it does not fit (it is then empty). The arguments may point into `name`. */
static bool make(char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool make(char *name, const char *format, ...)
{
    char made[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(made, sizeof made, format, arguments);
    va_end(arguments);
    const bool fits = length >= 0 && (size_t)length < sizeof made;
    memcpy(name, fits ? made : "", fits ? (size_t)length + 1 : 1);
    return fits;
}

/* Whether the file is there, as it is called or packed; `name` gets which. */
static bool there(char *name)
{
    struct stat info;
    char packed[PATH_BYTES];
    if (!*name)
        return false;
    if (stat(name, &info) == 0)
        return true;
    if (!make(packed, "%s.gz", name) || stat(packed, &info) != 0)
        return false;
    memcpy(name, packed, strlen(packed) + 1);
    return true;
}

/* --- IDX --- */

static const char from[] = "images",
                  marks[] = "-."; /* images-idx3-ubyte from MNIST's page, images.idx3-ubyte as others unpacked it */

/* Replaces the first `word` of the base name by `to`. */
static bool replace(char *out, const char *path, const char *word, const char *to)
{
    const char *at = strstr(names_base(path), word);
    return at && make(out, "%.*s%s%s", (int)(at - path), path, to, at + strlen(word));
}

static bool idx_images(const struct source *source, graphi_data_split split, char *images)
{
    if (!source->folder && split == GRAPHI_TRAIN)
        return make(images, "%s", source->path) && there(images);
    for (int w = 0; w < WORDS && words[split][w]; w++)
        for (const char *mark = marks; *mark; mark++) {
            if (source->folder)
                make(images, "%s/%s-images%cidx3-ubyte", source->path, words[split][w], *mark);
            else if (!replace(images, source->path, "train", words[split][w]))
                return false;
            images[length_without_gz(images)] = 0;
            char *kind = strstr(images + (names_base(images) - images), from);
            if (kind && kind[6] && strchr(marks, kind[6]))
                kind[6] = *mark;
            if (there(images))
                return true;
        }
    return false;
}

static void idx_labels(const char *images, char *labels)
{
    char stem[PATH_BYTES], part[PATH_BYTES];
    const char *at = strstr(names_base(images), from);
    make(stem, "%.*s", (int)length_without_gz(images), images);
    for (const char *mark = marks; at && *mark; mark++) {
        make(part, "%.*slabels%cidx1-ubyte", (int)(at - images), images, *mark);
        make(labels, "%s", part);
        if (there(labels))
            return;
    }
    if (at && replace(labels, stem, from, "labels") && there(labels))
        return;
    if (at)
        make(labels, "%.*slabels%cidx1-ubyte", (int)(at - images), images, at[sizeof from - 1]);
    else
        make(labels, "%s-labels", stem);
    there(labels);
}

bool names_of_idx(const struct source *source, graphi_data_split split, char *images, char *labels)
{
    if (!idx_images(source, split, images))
        return false;
    idx_labels(images, labels);
    return true;
}

/* --- NPY --- */

static const struct {
    const char *images, *labels;
    bool last; /* the word of the split is behind them */
} arrays[] = {{"_images", "_labels", false},
              {"-images", "-labels", false},
              {"images_", "labels_", true},
              {"x_", "y_", true},
              {"X_", "y_", true},
              {"X_", "Y_", true}};

static bool npy_pair(const char *folder, const char *word, size_t pair, char *images, char *labels)
{
    const bool last = arrays[pair].last;
    make(images, "%s%s%s.npy", folder, last ? arrays[pair].images : word, last ? word : arrays[pair].images);
    make(labels, "%s%s%s.npy", folder, last ? arrays[pair].labels : word, last ? word : arrays[pair].labels);
    there(labels);
    return there(images);
}

bool names_of_npy(const struct source *source, graphi_data_split split, char *images, char *labels)
{
    char folder[PATH_BYTES];
    if (source->folder)
        make(folder, "%s/", source->path);
    else
        make(folder, "%.*s", (int)(names_base(source->path) - source->path), source->path);
    if (split == GRAPHI_TRAIN) {
        make(images, "%simages.npy", folder);
        make(labels, "%slabels.npy", folder);
        there(labels);
        if (there(images))
            return true;
    }
    for (int w = 0; w < WORDS && words[split][w]; w++)
        for (size_t pair = 0; pair < sizeof arrays / sizeof *arrays; pair++)
            if (npy_pair(folder, words[split][w], pair, images, labels))
                return true;
    return false;
}

/* --- folders --- */

/* Whether a word of the name is `word`, in any case; a number may follow it ("test2"). */
static bool has_word(const char *name, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = name; *at; at++) {
        if ((at > name && isalpha((unsigned char)at[-1])) || strncasecmp(at, word, length) != 0)
            continue;
        if (!isalpha((unsigned char)at[length]))
            return true;
    }
    return false;
}

static bool is_of(const char *name, graphi_data_split split)
{
    for (int w = 0; w < WORDS && words[split][w]; w++)
        if (has_word(name, words[split][w]))
            return true;
    return false;
}

/* The split that a name says; training, where it says none. */
static graphi_data_split split_of(const char *name)
{
    return is_of(name, GRAPHI_TRAIN)                               ? GRAPHI_TRAIN
           : is_of(name, GRAPHI_TEST) || !strncmp(name, "test", 4) ? GRAPHI_TEST
           : is_of(name, GRAPHI_VALIDATION)                        ? GRAPHI_VALIDATION
                                                                   : GRAPHI_TRAIN;
}

bool names_say(const char *name, graphi_data_split *split)
{
    *split = split_of(name);
    return is_of(name, *split) || *split != GRAPHI_TRAIN;
}

static const char *const ends[][6] = {
    [GRAPHI_DATA_IDX] = {"ubyte"},
    [GRAPHI_DATA_CIFAR] = {".bin"},
    [GRAPHI_DATA_NPY] = {".npy", ".npz"},
    [GRAPHI_DATA_TEXT] = {".txt", ".tokens", ".raw", ".text"},
};

/* By its end; what people write about data is none. */
static bool is_data(const char *name, graphi_data_format format)
{
    static const char *const about[] = {"readme", "license", "copying", "changes", "notice", "requirements"};
    for (size_t i = 0; i < sizeof about / sizeof *about; i++)
        if (!strncasecmp(name, about[i], strlen(about[i])))
            return false;
    for (int i = 0; i < 6 && ends[format][i]; i++)
        if (names_end(name, ends[format][i]))
            return true;
    return false;
}

/* The file of a folder that looks like data of the format and comes after `last` by name: "" begins. So the order does
 * not depend on the file system, and nothing is allocated; folders have few such files. False: there is none. */
static bool next_file(const struct source *source, graphi_data_format format, char last[NAME_BYTES])
{
    char best[NAME_BYTES] = "";
    DIR *folder = opendir(source->path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *name = entry->d_name;
        if (*name != '.' && is_data(name, format) && strcmp(name, last) > 0 && (!*best || strcmp(name, best) < 0))
            snprintf(best, sizeof best, "%s", name);
    }
    if (folder)
        closedir(folder);
    memcpy(last, best, NAME_BYTES);
    return *best;
}

bool names_next_bin(const struct source *source, graphi_data_split split, char last[NAME_BYTES])
{
    while (next_file(source, GRAPHI_DATA_CIFAR, last))
        if (split_of(last) == split)
            return true;
    return false;
}

bool names_has_bins(const struct source *source, graphi_data_split split)
{
    return names_next_bin(source, split, (char[NAME_BYTES]){""});
}

/* --- text --- */

/* The first file of a folder whose name says the split by a word of its own: wiki.valid.tokens. */
static bool text_by_word(const struct source *source, graphi_data_split split, char *name)
{
    char file[NAME_BYTES] = "";
    while (next_file(source, GRAPHI_DATA_TEXT, file))
        if (is_of(file, split) && split_of(file) == split)
            return make(name, "%s/%s", source->path, file) && there(name);
    return false;
}

bool names_of_text(const struct source *source, graphi_data_split split, char *name)
{
    static const char *const usual[] = {"", "ptb."};
    struct stat info;
    if (!source->folder)
        return split == GRAPHI_TRAIN && make(name, "%s", source->path) && stat(name, &info) == 0;
    for (int w = 0; w < WORDS && words[split][w]; w++)
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
            make(name, "%s/%s%s.txt", source->path, usual[i], words[split][w]);
            if (there(name))
                return true;
        }
    return text_by_word(source, split, name);
}

/* --- what to tell --- */

static bool is_used(const struct source *source, const char *name)
{
    char a[PATH_BYTES] = "", b[PATH_BYTES] = "";
    for (graphi_data_split split = GRAPHI_TRAIN; split <= GRAPHI_TEST; split++) {
        bool found = false;
        switch (source->format) {
        case GRAPHI_DATA_IDX:
            found = names_of_idx(source, split, a, b);
            break;
        case GRAPHI_DATA_NPY:
            found = names_of_npy(source, split, a, b);
            break;
        case GRAPHI_DATA_TEXT:
            found = names_of_text(source, split, a);
            break;
        default:
            return true; /* every .bin is of a split */
        }
        if (found && (!strcmp(names_base(a), name) || !strcmp(names_base(b), name)))
            return true;
    }
    return false;
}

/* As many names as there is room for. */
static void add(char *text, size_t size, const char *before, const char *name)
{
    const size_t used = strlen(text);
    const bool first = !strstr(text, before);
    if (used + strlen(before) + strlen(name) + 8 < size)
        snprintf(text + used, size - used, "%s%s%s", first ? (used ? "; " : "") : ", ", first ? before : "", name);
    else if (used + 6 < size && text[used - 1] != '.')
        strcpy(text + used, ", ...");
}

/* CIFAR-10's own five are what everyone means; others were perhaps not meant to be put together. */
static void note_joined(const struct source *source, char *text, size_t size)
{
    char name[NAME_BYTES] = "";
    int count = 0;
    bool usual = true;
    for (; names_next_bin(source, GRAPHI_TRAIN, name); count++)
        usual &= !strncmp(name, "data_batch_", 11);
    while (count > 1 && !usual && names_next_bin(source, GRAPHI_TRAIN, name))
        add(text, size, "joined for training: ", name);
}

void names_note(const struct source *source, char *text, size_t size)
{
    char name[NAME_BYTES] = "";
    *text = 0;
    if (source->folder && source->format == GRAPHI_DATA_CIFAR)
        note_joined(source, text, size);
    while (source->folder && next_file(source, source->format, name))
        if (!is_used(source, name))
            add(text, size, "left out: ", name);
}
