/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder for tests that write files: folder_make, any folder_write, folder_remove. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[256];
    char name[1024]; /* of the last folder_name */
};

static inline void folder_make(struct folder *folder)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder->path, sizeof folder->path, "%s/graphi-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder->path))
        abort();
}

static inline const char *folder_name(struct folder *folder, const char *file)
{
    snprintf(folder->name, sizeof folder->name, "%s/%s", folder->path, file);
    return folder->name;
}

static inline const char *folder_write(struct folder *folder, const char *file, const void *data, size_t size)
{
    FILE *out = fopen(folder_name(folder, file), "wb");
    if (!out || fwrite(data, 1, size, out) != size || fclose(out) != 0)
        abort();
    return folder->name;
}

/* Files that are in the folder: a failed write must leave none behind. */
static inline int folder_count(const struct folder *folder)
{
    DIR *list = opendir(folder->path);
    int count = -2; /* . and .. */
    while (list && readdir(list))
        count++;
    if (list)
        closedir(list);
    return count;
}

static inline int folder_remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    return remove(path);
}

/* The folder with all that is in it. */
static inline void folder_remove(const struct folder *folder)
{
    nftw(folder->path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
