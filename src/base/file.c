/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, atomic files out, locks between those who change one. */
#include "base/file.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_long allowed = -1;

void file_fail_after(long n) { atomic_store(&allowed, n); }

static bool refused(void)
{
    long left = atomic_load(&allowed);
    if (left < 0)
        return false;
    if (left == 0) {
        errno = ENOSPC;
        return true;
    }
    atomic_store(&allowed, left - 1);
    return false;
}

static graphi_status read_open(int fd, const char *path, size_t limit, void **data, size_t *size)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail(GRAPHI_IO, path, "found no readable file (%s), expected one", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fail(GRAPHI_INVALID, path, "found no regular file, expected one");
    if ((uint64_t)info.st_size > limit)
        return fail(GRAPHI_INVALID, path, "found %lld bytes, expected at most %zu", (long long)info.st_size, limit);
    size_t total = (size_t)info.st_size, have = 0;
    char *bytes = mem_alloc(total + 1);
    if (!bytes)
        return fail_memory(path, total + 1);
    while (have < total) {
        ssize_t got = read(fd, bytes + have, total - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            mem_free(bytes);
            return fail(GRAPHI_IO, path, "found %zu bytes (%s), expected %zu", have,
                        got < 0 ? strerror(errno) : "the file shrank", total);
        }
        have += (size_t)got;
    }
    bytes[total] = 0;
    *data = bytes;
    *size = total;
    return GRAPHI_OK;
}

graphi_status file_check_path(const char *path)
{
    return path ? GRAPHI_OK : fail(GRAPHI_INVALID, "file", "found no path, expected one");
}

graphi_status file_read(const char *path, size_t limit, void **data, size_t *size)
{
    TRY(file_check_path(path));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer would wait for one */
    if (fd < 0)
        return fail(GRAPHI_IO, path, "found no readable file (%s), expected one", strerror(errno));
    graphi_status status = read_open(fd, path, limit, data, size);
    close(fd);
    return status;
}

/* The file that `path` leads to, there or not: `name` has room for 4096 bytes. */
static graphi_status follow(const char *path, char *name)
{
    enum { MOST = 4096 };
    TRY(file_check_path(path));
    if (strlen(path) >= MOST)
        return fail(GRAPHI_IO, "path", "found %zu characters, expected fewer than %d", strlen(path), MOST);
    strcpy(name, path);
    struct stat info;
    if (stat(path, &info) == 0 ? !S_ISREG(info.st_mode) || realpath(path, name) : temporary_follow(name, MOST))
        return GRAPHI_OK;
    return fail(GRAPHI_IO, path, "found that it cannot be followed (%s), expected a writable place", strerror(errno));
}

static void let_cancel(int before)
{
    pthread_setcancelstate(before, &(int){0});
}

static graphi_status broken(struct file_writer *writer, const char *doing)
{
    int error = errno;
    file_write_abort(writer);
    return fail(GRAPHI_IO, writer->path, "found that it %s (%s), expected a writable place", doing, strerror(error));
}

static graphi_status write_open(struct file_writer *writer, const char *path)
{
    TRY(follow(path, writer->path));
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode))
        return fail(GRAPHI_IO, path, "found a folder, expected the name of a file");
    if (there && !S_ISREG(info.st_mode)) {
        writer->temporary[0] = 0;
        writer->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        writer->fd = temporary_open(writer->path, writer->temporary, sizeof writer->temporary);
    }
    if (writer->fd < 0)
        return fail(GRAPHI_IO, path, "found that it cannot be created (%s), expected a writable place",
                    strerror(errno));
    return GRAPHI_OK;
}

graphi_status file_write_begin(struct file_writer *writer, const char *path)
{
    writer->fd = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &writer->cancelled);
    const graphi_status status = write_open(writer, path);
    if (status != GRAPHI_OK)
        let_cancel(writer->cancelled);
    return status;
}

graphi_status file_write(struct file_writer *writer, const void *data, size_t size)
{
    const char *bytes = data;
    while (size) {
        ssize_t put = refused() ? -1 : write(writer->fd, bytes, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return broken(writer, "cannot be written");
        bytes += put;
        size -= (size_t)put;
    }
    return GRAPHI_OK;
}

/* The rename itself must survive a power cut too; a folder that cannot be synced is no error. */
static void sync_folder(const char *path)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

graphi_status file_write_commit(struct file_writer *writer)
{
    if (refused() || (*writer->temporary && fsync(writer->fd) != 0)) /* devices and pipes know no sync */
        return broken(writer, "cannot be synced");
    int fd = writer->fd;
    writer->fd = -1;
    if (close(fd) != 0)
        return broken(writer, "cannot be closed");
    if (*writer->temporary) {
        if (refused() || rename(writer->temporary, writer->path) != 0)
            return broken(writer, "cannot be renamed");
        sync_folder(writer->path);
    }
    let_cancel(writer->cancelled);
    return GRAPHI_OK;
}

void file_write_abort(struct file_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    writer->fd = -1;
    if (*writer->temporary)
        unlink(writer->temporary);
    let_cancel(writer->cancelled);
}

graphi_status file_replace(const char *path, const void *data, size_t size)
{
    struct file_writer writer;
    TRY(file_write_begin(&writer, path));
    TRY(file_write(&writer, data, size));
    return file_write_commit(&writer);
}

bool file_exists(const char *path) { return access(path, F_OK) == 0; }

static graphi_status lock_open(const char *name, int *fd)
{
    *fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0 && errno == EACCES) /* another user's, who may have left it; some file systems lock by writing only */
        *fd = open(name, O_RDONLY | O_CLOEXEC);
    return *fd >= 0 ? GRAPHI_OK
                    : fail(GRAPHI_IO, name, "found that it cannot be created (%s), expected a writable place",
                           strerror(errno));
}

/* Whoever held the lock before has removed the file that was opened, and others may have made it anew. */
static bool is_named(int fd, const char *name)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && stat(name, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

static graphi_status lock_wait(const char *path, struct file_lock *lock)
{
    struct file_lock own = {.cancelled = lock->cancelled};
    enum { TRIES = 1000, HOLDERS = 1000 };
    int holders = 0;
    char followed[4096]; /* one lock, by whatever name the file is called */
    const struct timespec pause = {.tv_nsec = 1000000}; /* short: who comes back at once would leave others no turn */
    TRY(follow(path, followed));
    snprintf(own.name, sizeof own.name, "%s.lock", followed);
    TRY(lock_open(own.name, &own.fd));
    for (int i = 0; i < TRIES; i++) {
        if (flock(own.fd, LOCK_EX | LOCK_NB) == 0) {
            if (is_named(own.fd, own.name)) {
                *lock = own;
                return GRAPHI_OK;
            }
            close(own.fd);
            TRY(lock_open(own.name, &own.fd));
            if (++holders < HOLDERS) /* one is gone, another came: the time is that of one */
                i = -1;
            continue;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            graphi_status status =
                fail(GRAPHI_IO, own.name, "found that it cannot be locked (%s), expected a file system with locks",
                     strerror(errno));
            close(own.fd);
            return status;
        }
        nanosleep(&pause, NULL);
    }
    close(own.fd);
    return fail(GRAPHI_IO, own.name, "found it held by one process for a second, expected it free");
}

graphi_status file_lock(const char *path, struct file_lock *lock)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &lock->cancelled);
    const graphi_status status = lock_wait(path, lock);
    if (status != GRAPHI_OK)
        let_cancel(lock->cancelled);
    return status;
}

void file_unlock(struct file_lock *lock)
{
    unlink(lock->name);       /* while it is held: nobody removes the file of the next holder */
    flock(lock->fd, LOCK_UN); /* closing is not enough where a child of fork() has the file open too */
    close(lock->fd);
    let_cancel(lock->cancelled);
}
