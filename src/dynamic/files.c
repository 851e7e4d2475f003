/* SPDX-License-Identifier: Apache-2.0 */
/* Files of input graphs. A folder's are told apart by words of their names, as those of other data sets. */
#include "dynamic/files.h"

#include "base/file.h"
#include "base/status.h"
#include "train/encoding.h"
#include "train/reader.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_BYTES_MOST ((size_t)1 << 30)

/* --- which --- */

static bool ends_as(const char *name, const struct tree_format *format)
{
    for (int i = 0; i < FORMAT_ENDS && format->ends[i]; i++)
        if (names_end(name, format->ends[i]))
            return true;
    return false;
}

/* The first byte that is no blank, also of a file that is packed; 0: there is none. */
static char first_byte(const char *path)
{
    char bytes[512];
    gzFile file = gzopen(path, "rb");
    const int count = file ? gzread(file, bytes, sizeof bytes) : 0;
    if (file)
        gzclose(file);
    for (int i = 0; i < count; i++)
        if (!cursor_is_blank(bytes[i]))
            return bytes[i];
    return 0;
}

/* NULL: the name is of no format. Text that begins with a parenthesis is of trees. */
static const struct tree_format *format_of_file(const char *path, bool any)
{
    const struct tree_format *format = NULL, *at;
    for (int i = 0; !format && (at = tree_format_at(i)); i++)
        format = ends_as(names_base(path), at) ? at : NULL;
    if (!format && any)
        format = &tree_format_lines;
    return format == &tree_format_lines && first_byte(path) == '(' ? &tree_format_sexpr : format;
}

/* The file of a folder that comes after `last` by name: "" begins. False: there is none. */
static bool next_name(const char *folder, char last[NAME_BYTES])
{
    char best[NAME_BYTES] = "";
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        const char *name = entry->d_name;
        if (*name != '.' && strcmp(name, last) > 0 && (!*best || strcmp(name, best) < 0))
            snprintf(best, sizeof best, "%s", name);
    }
    if (list)
        closedir(list);
    memcpy(last, best, NAME_BYTES);
    return *best;
}

static bool join(const char *folder, const char *name, char path[PATH_BYTES])
{
    struct stat info;
    return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

/* The first of the list that a file of the folder has. */
static const struct tree_format *format_of_folder(const char *folder)
{
    char name[NAME_BYTES] = "", path[PATH_BYTES];
    const struct tree_format *best = NULL;
    graphi_data_split split;
    while (next_name(folder, name)) {
        const struct tree_format *format = join(folder, name, path) ? format_of_file(path, false) : NULL;
        if (format && (format != &tree_format_lines || names_say(name, &split)) &&
            (!best || format->format < best->format))
            best = format;
    }
    return best;
}

/* A file that says no split is for training where none says so. */
static void find_splits(const char *folder, struct tree_files *files)
{
    char name[NAME_BYTES] = "", path[PATH_BYTES], silent[PATH_BYTES] = "";
    graphi_data_split split;
    while (next_name(folder, name)) {
        if (!join(folder, name, path) || format_of_file(path, false) != files->format)
            continue;
        char *to = names_say(name, &split) ? files->path[split] : silent;
        if (!*to)
            memcpy(to, path, sizeof path);
    }
    if (!*files->path[GRAPHI_TRAIN])
        memcpy(files->path[GRAPHI_TRAIN], silent, sizeof silent);
}

graphi_status tree_files_find(const char *path, graphi_trees_format format, struct tree_files *out)
{
    struct stat info;
    TRY(file_check_path(path));
    *out = (struct tree_files){.format = tree_format_of(format)};
    if ((unsigned)format > GRAPHI_TREES_LINES)
        return fail(GRAPHI_INVALID, path, "found format %d, expected one of graphi_trees_format", (int)format);
    if (strlen(path) >= PATH_BYTES)
        return fail(GRAPHI_INVALID, "data path", "found %zu characters, expected fewer than %d", strlen(path),
                    PATH_BYTES);
    if (stat(path, &info) != 0)
        return fail(GRAPHI_IO, path, "found nothing there (%s), expected a file or folder of input graphs",
                    strerror(errno));
    const bool folder = S_ISDIR(info.st_mode);
    if (!out->format)
        out->format = folder ? format_of_folder(path) : format_of_file(path, true);
    if (folder && out->format)
        find_splits(path, out);
    else if (!folder)
        strcpy(out->path[GRAPHI_TRAIN], path);
    return *out->path[GRAPHI_TRAIN]
               ? GRAPHI_OK
               : fail(GRAPHI_IO, path, "found no file for training, expected one as train.txt or train.conllu");
}

/* --- reading --- */

/* A text, unpacked; *out is the caller's (mem_free). */
static graphi_status load(const char *path, void **out, size_t *size)
{
    void *bytes;
    TRY(file_read(path, TEXT_BYTES_MOST, &bytes, size));
    TRY(reader_unpack(path, TEXT_BYTES_MOST, &bytes, size));
    graphi_status status = encoding_text(path, bytes, size);
    if (status == GRAPHI_OK)
        *out = bytes;
    else
        mem_free(bytes);
    return status;
}

/* Characters before the end that the format gives its files. */
static int stem_of(const char *path, const struct tree_format *format)
{
    const size_t length = strlen(path), packed = length > 3 && !strcmp(path + length - 3, ".gz") ? 3 : 0;
    for (int i = 0; i < FORMAT_ENDS && format->ends[i]; i++)
        if (names_end(path, format->ends[i]))
            return (int)(length - packed - strlen(format->ends[i]));
    return (int)(length - packed);
}

/* The name of a file beside: another end, packed or not. False: it is not there; `name` is then how it would be. */
static bool beside_name(const char *path, const struct tree_format *format, int which, char name[PATH_BYTES])
{
    const int stem = stem_of(path, format);
    for (int packed = 1; packed >= 0; packed--)
        for (int i = 1; i >= 0; i--)
            if (format->beside[which].ends[i] &&
                snprintf(name, PATH_BYTES, "%.*s%s%s", stem, path, format->beside[which].ends[i], packed ? ".gz" : "") <
                    PATH_BYTES &&
                file_exists(name))
                return true;
    return false;
}

static graphi_status open_beside(const char *path, const struct tree_format *format, int which, char name[PATH_BYTES],
                                 struct cursor *cursor, void **bytes)
{
    size_t size;
    if (!format->beside[which].ends[0])
        return GRAPHI_OK;
    if (!beside_name(path, format, which, name))
        return format->beside[which].needed ? fail(GRAPHI_IO, path, "found no file %s beside it, expected one", name)
                                            : GRAPHI_OK;
    TRY(load(name, bytes, &size));
    *cursor = cursor_begin(name, *bytes, size);
    return GRAPHI_OK;
}

graphi_status tree_files_read(const struct tree_files *files, graphi_data_split split,
                              const graphi_trees_options *options, struct forest *forest)
{
    const char *path = files->path[split];
    char names[FORMAT_BESIDE][PATH_BYTES];
    void *bytes[1 + FORMAT_BESIDE] = {NULL};
    size_t size = 0;
    struct reading reading = {.forest = forest, .steps = options->steps};
    graphi_status status = load(path, &bytes[0], &size);
    for (int i = 0; i < FORMAT_BESIDE && status == GRAPHI_OK; i++)
        status = open_beside(path, files->format, i, names[i], &reading.beside[i], &bytes[1 + i]);
    if (status == GRAPHI_OK) {
        reading.at = cursor_begin(path, bytes[0], size);
        status = tree_format_read(files->format, &reading, options->skip);
    }
    if (status == GRAPHI_OK && !forest_samples(forest))
        status = fail(GRAPHI_INVALID, path, "found no sample in %zu bytes of %s%s%s, expected one at least", size,
                      files->format->name, forest->skipped ? "; the first that was left out: " : "",
                      forest->skipped ? forest->reasons[0] : "");
    for (int i = 0; i <= FORMAT_BESIDE; i++)
        mem_free(bytes[i]);
    return status;
}
