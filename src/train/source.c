/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a data set. Called when a data set is opened; any thread. */
#include "train/source.h"

#include "base/array.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MOST ((size_t)1 << 36)

static const char debian[] = "; the Debian package dataset-fashion-mnist brings one: /usr/share/datasets/fashion-mnist";

/* Whether the file named by the format exists; false also if the name does not fit (it is then empty). */
static bool exists(char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool exists(char *name, const char *format, ...)
{
    char made[PATH_BYTES]; /* the arguments may point into `name` */
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(made, sizeof made, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof made) {
        *name = 0;
        return false;
    }
    memcpy(name, made, (size_t)length + 1);
    struct stat info;
    return stat(made, &info) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- IDX --- */

/* The file `stem` or `stem`.gz. */
static bool idx_pick(char *name, const char *stem) { return exists(name, "%s", stem) || exists(name, "%s.gz", stem); }

/* Replaces the last `from` of the base name by `to`. */
static bool replace(char *out, const char *path, const char *from, const char *to)
{
    const char *at = strstr(base_name(path), from);
    if (!at)
        return false;
    int n = snprintf(out, PATH_BYTES, "%.*s%s%s", (int)(at - path), path, to, at + strlen(from));
    return n >= 0 && n < PATH_BYTES;
}

/* Both names, without .gz. The path of a single file is the training images'. */
static bool idx_stems(const struct source *source, graphi_data_split split, char *images, char *labels)
{
    if (split == GRAPHI_VALIDATION)
        return false;
    const char *part = split == GRAPHI_TRAIN ? "train" : "t10k";
    if (source->folder)
        return exists(images, "%s/%s-images-idx3-ubyte", source->path, part),
               exists(labels, "%s/%s-labels-idx1-ubyte", source->path, part), true;
    if (split == GRAPHI_TRAIN)
        exists(images, "%s", source->path);
    else if (!replace(images, source->path, "train", "t10k"))
        return false;
    if (ends_with(images, ".gz"))
        images[strlen(images) - 3] = 0;
    if (replace(labels, images, "images-idx3", "labels-idx1") || replace(labels, images, "images", "labels"))
        return true;
    return exists(labels, "%s-labels", images), true;
}

static bool idx_names(const struct source *source, graphi_data_split split, char *images, char *labels)
{
    char image_stem[PATH_BYTES], label_stem[PATH_BYTES];
    if (!idx_stems(source, split, image_stem, label_stem) || !idx_pick(images, image_stem))
        return false;
    if (!idx_pick(labels, label_stem))
        exists(labels, "%s", label_stem); /* opening it will name what is missing */
    return true;
}

/* --- NPY --- */

static bool npy_names(const struct source *source, graphi_data_split split, char *images, char *labels)
{
    static const char *const prefix[] = {"", "validation_", "test_"};
    int length = (int)(source->folder ? strlen(source->path) : (size_t)(base_name(source->path) - source->path));
    const char *slash = source->folder ? "/" : "";
    exists(labels, "%.*s%s%slabels.npy", length, source->path, slash, prefix[split]);
    return exists(images, "%.*s%s%simages.npy", length, source->path, slash, prefix[split]);
}

/* --- CIFAR --- */

struct names {
    ARRAY(char *) list;
};

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->list.count; i++)
        mem_free(names->list.data[i]);
    array_free(&names->list);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The next name of a folder that ends in .bin and belongs to the split; NULL at the end. */
static const char *next_bin(DIR *folder, graphi_data_split split)
{
    for (struct dirent *entry; (entry = readdir(folder));)
        if (ends_with(entry->d_name, ".bin") && !strncmp(entry->d_name, "test", 4) == (split == GRAPHI_TEST))
            return entry->d_name;
    return NULL;
}

static bool has_bins(const char *path, graphi_data_split split)
{
    DIR *folder = opendir(path);
    bool any = folder && next_bin(folder, split);
    if (folder)
        closedir(folder);
    return any;
}

/* All of them, sorted, so that the order does not depend on the file system. */
static graphi_status bin_names(const char *path, graphi_data_split split, struct names *names)
{
    DIR *folder = opendir(path);
    if (!folder)
        return fail(GRAPHI_IO, path, "found no readable folder (%s), expected one", strerror(errno));
    for (const char *name; (name = next_bin(folder, split));) {
        char *copy = mem_string(name);
        if (!copy || !array_push(&names->list, copy)) {
            size_t bytes = strlen(name) + 1; /* the name dies with the folder */
            mem_free(copy);
            closedir(folder);
            return fail_memory(path, bytes);
        }
    }
    closedir(folder);
    if (names->list.count)
        qsort(names->list.data, names->list.count, sizeof *names->list.data, by_name);
    return GRAPHI_OK;
}

static graphi_status load_file(const char *path, struct image_set *set,
                               graphi_status (*parse)(const char *, const void *, size_t, struct image_set *))
{
    void *bytes;
    size_t size;
    TRY(file_read(path, FILE_BYTES_MOST, &bytes, &size));
    graphi_status status = parse(path, bytes, size, set);
    mem_free(bytes);
    return status;
}

static graphi_status load_cifar(const struct source *source, graphi_data_split split, struct image_set *set,
                                bool *found)
{
    if (split == GRAPHI_VALIDATION || (!source->folder && split == GRAPHI_TEST))
        return GRAPHI_OK;
    if (!source->folder) {
        *found = true;
        return load_file(source->path, set, cifar_parse);
    }
    struct names names = {0};
    graphi_status status = bin_names(source->path, split, &names);
    *found = names.list.count > 0;
    for (size_t i = 0; status == GRAPHI_OK && i < names.list.count; i++) {
        char name[PATH_BYTES];
        status = exists(name, "%s/%s", source->path, names.list.data[i])
                     ? load_file(name, set, cifar_parse)
                     : fail(GRAPHI_IO, source->path, "found no %s, expected one", names.list.data[i]);
    }
    names_free(&names);
    return status;
}

/* --- any images --- */

static graphi_status check_labels(const char *where, const struct image_set *set, int64_t classes)
{
    for (int64_t i = 0; classes > 0 && set->classes > classes && i < set->count; i++)
        if (set->labels[i] >= classes)
            return fail(GRAPHI_INVALID, where, "found label %d at %lld, expected 0 to %lld", set->labels[i],
                        (long long)i, (long long)classes - 1);
    return GRAPHI_OK;
}

graphi_status source_images(const struct source *source, graphi_data_split split, int64_t classes,
                            struct image_set *set, bool *found)
{
    char images[PATH_BYTES], labels[PATH_BYTES];
    bool npy = source->format == GRAPHI_DATA_NPY;
    *found = false;
    if (source->format == GRAPHI_DATA_CIFAR) {
        TRY(load_cifar(source, split, set, found));
        return check_labels(source->path, set, classes);
    }
    if (!(npy ? npy_names : idx_names)(source, split, images, labels))
        return GRAPHI_OK;
    *found = true;
    TRY(load_file(images, set, npy ? npy_parse_images : idx_parse_images));
    TRY(load_file(labels, set, npy ? npy_parse_labels : idx_parse_labels));
    return check_labels(labels, set, classes);
}

/* --- text --- */

static bool text_name(const struct source *source, graphi_data_split split, char *name)
{
    static const char *const names[][4] = {
        [GRAPHI_TRAIN] = {"train.txt", "ptb.train.txt"},
        [GRAPHI_VALIDATION] = {"valid.txt", "ptb.valid.txt", "validation.txt"},
        [GRAPHI_TEST] = {"test.txt", "ptb.test.txt"},
    };
    if (!source->folder)
        return split == GRAPHI_TRAIN && exists(name, "%s", source->path);
    for (int i = 0; i < 4 && names[split][i]; i++)
        if (exists(name, "%s/%s", source->path, names[split][i]))
            return true;
    return false;
}

graphi_status source_text(const struct source *source, graphi_data_split split, char *name, void **bytes, size_t *size,
                          bool *found)
{
    *found = text_name(source, split, name);
    return *found ? file_read(name, (size_t)1 << 30, bytes, size) : GRAPHI_OK;
}

/* --- which format --- */

/* Whether a single file looks like the format by its name, or a folder has files of the split. */
static bool matches(const struct source *source, graphi_data_format format, graphi_data_split split)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    switch (format) {
    case GRAPHI_DATA_IDX:
        return source->folder ? idx_names(source, split, a, b) : strstr(base_name(source->path), "idx3-ubyte") != NULL;
    case GRAPHI_DATA_CIFAR: return source->folder ? has_bins(source->path, split) : ends_with(source->path, ".bin");
    case GRAPHI_DATA_NPY: return source->folder ? npy_names(source, split, a, b) : ends_with(source->path, ".npy");
    default: return text_name(source, split, a);
    }
}

/* A single .npy file stands for its folder, whose other files are found by their names. */
static graphi_status check_npy(const struct source *source)
{
    const char *name = base_name(source->path);
    if (source->folder || source->format != GRAPHI_DATA_NPY || strcmp(name, "images.npy") == 0)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, source->path, "found a file named %s, expected images.npy or its folder", name);
}

/* Finds the first format that matches; a folder may hold none. */
static graphi_data_format detect(const struct source *source)
{
    for (graphi_data_format f = GRAPHI_DATA_IDX; f < GRAPHI_DATA_TEXT; f++)
        if (matches(source, f, GRAPHI_TRAIN))
            return f;
    return GRAPHI_DATA_TEXT;
}

graphi_status source_find(const char *path, graphi_data_format format, struct source *out)
{
    *out = (struct source){0};
    TRY(file_check_path(path));
    if ((unsigned)format > GRAPHI_DATA_IMAGES)
        return fail(GRAPHI_INVALID, path, "found data format %d, expected one of graphi_data_format", (int)format);
    if (strlen(path) >= sizeof out->path)
        return fail(GRAPHI_INVALID, "data path", "found %zu characters, expected fewer than %zu", strlen(path),
                    sizeof out->path);
    strcpy(out->path, path);
    struct stat info;
    if (stat(path, &info) != 0)
        return fail(GRAPHI_IO, path, "found nothing there (%s), expected a data file or folder%s", strerror(errno),
                    format == GRAPHI_DATA_TEXT ? "" : debian);
    out->folder = S_ISDIR(info.st_mode);
    if (out->folder && access(path, R_OK | X_OK) != 0)
        return fail(GRAPHI_IO, path, "found no readable folder (%s), expected one", strerror(errno));
    graphi_data_format there = detect(out);
    out->format = format == GRAPHI_DATA_AUTO || format == GRAPHI_DATA_IMAGES ? there : format;
    bool known = matches(out, out->format, GRAPHI_TRAIN), text = there == GRAPHI_DATA_TEXT;
    if (format == GRAPHI_DATA_IMAGES && text && known)
        return fail(GRAPHI_INVALID, path,
                    "found text, expected images: train-images-idx3-ubyte[.gz], images.npy or *.bin%s", debian);
    if (format == GRAPHI_DATA_TEXT && !text && !(out->folder && known))
        return fail(GRAPHI_INVALID, path,
                    "found images, expected text: a folder with train.txt, or a file not named like *idx3-ubyte, "
                    "*.npy or *.bin");
    if (!known && out->folder && format == GRAPHI_DATA_TEXT)
        return fail(GRAPHI_INVALID, path, "found no training files in the folder, expected train.txt");
    if (!known && out->folder)
        return fail(GRAPHI_INVALID, path,
                    "found no training files in the folder, expected train-images-idx3-ubyte[.gz], images.npy, "
                    "*.bin or train.txt%s",
                    debian);
    return check_npy(out);
}

bool source_has_validation(const struct source *source)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    switch (source->format) {
    case GRAPHI_DATA_NPY: return npy_names(source, GRAPHI_VALIDATION, a, b);
    case GRAPHI_DATA_TEXT: return text_name(source, GRAPHI_VALIDATION, a);
    default: return false; /* IDX and CIFAR have none */
    }
}
