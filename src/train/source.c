/* SPDX-License-Identifier: Apache-2.0 */
/* Loading files of a data set; names.c finds them. Called when a data set is opened; any thread. */
#include "train/source.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/encoding.h"
#include "train/reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MOST ((size_t)1 << 36)
#define TEXT_BYTES_MOST ((size_t)1 << 30)

static const char debian[] = "; the Debian package dataset-fashion-mnist brings one: /usr/share/datasets/fashion-mnist";

static graphi_status load_file(const char *path, struct image_set *set,
                               graphi_status (*parse)(const char *, const void *, size_t, struct image_set *))
{
    void *bytes;
    size_t size;
    TRY(file_read(path, FILE_BYTES_MOST, &bytes, &size));
    if (parse != idx_parse_images && parse != idx_parse_labels) /* these unpack what their headers declare, no more */
        TRY(reader_unpack(path, FILE_BYTES_MOST, &bytes, &size));
    graphi_status status = parse(path, bytes, size, set);
    mem_free(bytes);
    return status;
}

static graphi_status load_cifar(const struct source *source, graphi_data_split split, struct image_set *set,
                                bool *found)
{
    if (!source->folder && split != GRAPHI_TRAIN)
        return GRAPHI_OK;
    if (!source->folder) {
        *found = true;
        return load_file(source->path, set, cifar_parse);
    }
    graphi_status status = GRAPHI_OK;
    char path[PATH_BYTES], name[NAME_BYTES] = "";
    for (; status == GRAPHI_OK && names_next_bin(source, split, name); *found = true)
        status = snprintf(path, sizeof path, "%s/%s", source->path, name) < (int)sizeof path
                     ? load_file(path, set, cifar_parse)
                     : fail(GRAPHI_IO, source->path, "found no %s, expected one", name);
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
    if (!(npy ? names_of_npy : names_of_idx)(source, split, images, labels))
        return GRAPHI_OK;
    *found = true;
    TRY(load_file(images, set, npy ? npy_parse_images : idx_parse_images));
    TRY(load_file(labels, set, npy ? npy_parse_labels : idx_parse_labels));
    return check_labels(labels, set, classes);
}

/* --- text --- */

/* Unpacked it may be as long as packed. */
graphi_status source_text(const struct source *source, graphi_data_split split, char *name, void **bytes, size_t *size,
                          bool *found)
{
    *found = names_of_text(source, split, name);
    if (!*found)
        return GRAPHI_OK;
    TRY(file_read(name, TEXT_BYTES_MOST, bytes, size));
    TRY(reader_unpack(name, TEXT_BYTES_MOST, bytes, size));
    graphi_status status = encoding_text(name, *bytes, size);
    if (status != GRAPHI_OK)
        mem_free(*bytes);
    return status;
}

/* --- which format --- */

/* Whether a single file looks like the format by its name, or a folder has files of the split. */
static bool matches(const struct source *source, graphi_data_format format, graphi_data_split split)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    const char *name = names_base(source->path);
    switch (format) {
    case GRAPHI_DATA_IDX:
        return source->folder ? names_of_idx(source, split, a, b) : strstr(name, "idx3-ubyte") != NULL;
    case GRAPHI_DATA_CIFAR: return source->folder ? names_has_bins(source, split) : names_end(name, ".bin");
    case GRAPHI_DATA_NPY: return source->folder ? names_of_npy(source, split, a, b) : names_end(name, ".npy");
    default: return names_of_text(source, split, a);
    }
}

/* A single .npy file stands for its folder, whose other files are found by their names. */
static graphi_status check_npy(const struct source *source)
{
    char images[PATH_BYTES], labels[PATH_BYTES];
    const char *name = names_base(source->path);
    if (source->folder || source->format != GRAPHI_DATA_NPY ||
        (names_of_npy(source, GRAPHI_TRAIN, images, labels) && !strcmp(names_base(images), name)))
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, source->path,
                "found a file named %s, expected images.npy (train_images.npy, x_train.npy) or its folder", name);
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
    switch (source->format) { /* single files of images have neighbours, too */
    case GRAPHI_DATA_IDX: return names_of_idx(source, GRAPHI_VALIDATION, a, b);
    case GRAPHI_DATA_NPY: return names_of_npy(source, GRAPHI_VALIDATION, a, b);
    case GRAPHI_DATA_CIFAR: return source->folder && names_has_bins(source, GRAPHI_VALIDATION);
    default: return names_of_text(source, GRAPHI_VALIDATION, a);
    }
}
