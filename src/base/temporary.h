/* SPDX-License-Identifier: Apache-2.0 */
/* A file of one's own beside the one that it will replace, PATH.graphi-PID-NNNNNNNN.tmp (of the longest names their
 * beginning), a form that no user's file has: two threads may write one path, and so may two processes of the same
 * number, of other containers or hosts; the last rename wins, whole. What a killed process left is never taken, but
 * removed: where no process here has its number, and nobody touched it for an hour by the file system's clock, since it
 * may be the file of a living one elsewhere. Functions in a header, so that the command, which links the library's
 * public API alone, makes and removes the same names. Any thread. */
#ifndef BASE_TEMPORARY_H
#define BASE_TEMPORARY_H

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char temporary_mark[] = ".graphi-";

/* Of a file's name as much as leaves room for the rest of a temporary one's. */
static inline int temporary_length(const char *file)
{
    enum { NAME = 255, REST = 32 };
    const size_t length = strlen(file);
    return length < NAME - REST ? (int)length : NAME - REST;
}

/* The process that `name` says, where it is a temporary file of `file`; 0: it is not. */
static inline pid_t temporary_process(const char *name, const char *file)
{
    enum { DIGITS = 8 };
    const size_t length = (size_t)temporary_length(file), mark = sizeof temporary_mark - 1;
    if (strncmp(name, file, length) != 0 || strncmp(name + length, temporary_mark, mark) != 0 ||
        !isdigit((unsigned char)name[length + mark]))
        return 0;
    char *at;
    long process = strtol(name + length + mark, &at, 10);
    if (at[0] != '-' || strspn(at + 1, "0123456789abcdef") != DIGITS || strcmp(at + 1 + DIGITS, ".tmp") != 0)
        return 0;
    return process < INT_MAX ? (pid_t)process : 0;
}

static inline void temporary_remove_left(const char *path, time_t now)
{
    enum { HOUR = 3600 };
    char folder[4096];
    struct stat found;
    struct dirent *entry;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(file - path) : 1, slash ? path : ".");
    DIR *all = opendir(folder);
    while (all && (entry = readdir(all))) {
        const pid_t process = temporary_process(entry->d_name, file);
        if (process > 0 && kill(process, 0) != 0 && errno == ESRCH &&
            fstatat(dirfd(all), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) &&
            now - found.st_mtime > HOUR)
            unlinkat(dirfd(all), entry->d_name, 0);
    }
    if (all)
        closedir(all);
}

/* Folders may be large: who writes one file again and again, checkpoint by checkpoint, looks once. */
static inline bool temporary_path_is_new(const char *path)
{
    static _Atomic uint64_t last; /* alone; two threads at worst look both */
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    return atomic_exchange_explicit(&last, hash, memory_order_relaxed) != hash;
}

/* A link may lead to a file that is not there yet; that one is to be made, and the link stays. Replaces the name of a
 * link by that of what it leads to. False: errno. */
static inline bool temporary_follow(char *path, size_t size)
{
    enum { LINKS = 40 };
    char link[4096];
    for (int i = 0; i < LINKS; i++) {
        const ssize_t length = readlink(path, link, sizeof link - 1);
        if (length < 0)
            return errno == EINVAL || errno == ENOENT; /* no link, or nothing there */
        const char *slash = link[0] == '/' ? NULL : strrchr(path, '/'); /* seen from the link's folder */
        const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
        if (folder + (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(path + folder, link, (size_t)length);
        path[folder + (size_t)length] = 0;
    }
    errno = ELOOP;
    return false;
}

/* What takes the place of a file is as that was: readable by no more than it, and its owner's where that may be. */
static inline void temporary_be_like(int fd, const char *path)
{
    struct stat old, own;
    if (stat(path, &old) != 0 || !S_ISREG(old.st_mode) || fstat(fd, &own) != 0)
        return;
    const bool same = (old.st_uid == own.st_uid && old.st_gid == own.st_gid) || fchown(fd, old.st_uid, old.st_gid) == 0;
    (void)!fchmod(fd, old.st_mode & (same ? 0777 : 0707)); /* of another group its members may not be */
}

/* Opens one for writing and says its name, for which there are `size` bytes: 32 beyond the path's are enough. -1:
 * errno. */
static inline int temporary_open(const char *path, char *name, size_t size)
{
    enum { TRIES = 1000 };
    static atomic_uint opened;
    struct stat own;
    int fd = -1;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const int kept = (int)(file - path) + temporary_length(file);
    for (int i = 0; fd < 0 && (i == 0 || errno == EEXIST) && i < TRIES; i++) {
        snprintf(name, size, "%.*s%s%ld-%08x.tmp", kept, path, temporary_mark, (long)getpid(),
                 atomic_fetch_add_explicit(&opened, 1, memory_order_relaxed));
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (fd >= 0)
        temporary_be_like(fd, path);
    if (fd >= 0 && temporary_path_is_new(path) && fstat(fd, &own) == 0)
        temporary_remove_left(path, own.st_mtime);
    return fd;
}

#endif
