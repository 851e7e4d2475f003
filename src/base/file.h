/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out. A file is written under a temporary name in the same folder, synced and renamed, so that a
 * killed process or a full disk leaves the old file whole (temporary.h); it has the old one's mode, and its owner where
 * that may be. A symbolic link stays: what it names is replaced, or made. What is no regular file (/dev/stdout, a pipe)
 * is written in place and never renamed over. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "graphi/types.h"

/* Callers of the library may have none: INVALID where `path` is NULL. All that follow ask this, but file_exists. */
graphi_status file_check_path(const char *path);

/* Reads a whole file of at most `limit` bytes; *data is the caller's (mem_free) and has a zero byte after its end.
 * Errors: IO (missing, unreadable), INVALID (longer than limit, not a regular file), MEMORY. */
graphi_status file_read(const char *path, size_t limit, void **data, size_t *size);

/* An atomic write in progress. file_write_begin, any number of file_write, then file_write_commit; file_write_abort at
 * any point removes the temporary file. After a failed write or commit the temporary file is already removed. From
 * begin to end the thread cannot be cancelled: it would leave the file. */
struct file_writer {
    int fd;
    int cancelled; /* the thread's cancel state before */
    char path[4096];
    char temporary[4096 + 32]; /* empty: written in place */
};
graphi_status file_write_begin(struct file_writer *writer, const char *path);
graphi_status file_write(struct file_writer *writer, const void *data, size_t size);
graphi_status file_write_commit(struct file_writer *writer);
void file_write_abort(struct file_writer *writer);

/* All three in one. */
graphi_status file_replace(const char *path, const void *data, size_t size);

bool file_exists(const char *path);

/* For reading, changing and replacing a file: one holder of PATH.lock at a time, of all processes and threads; where
 * PATH is a symbolic link, beside what it names, there or not. IO when one holder keeps it for a second. The empty lock
 * file goes with the lock. */
struct file_lock {
    int fd;
    int cancelled; /* the holder's cancel state before: it cannot be cancelled meanwhile */
    char name[4096 + 8];
};
graphi_status file_lock(const char *path, struct file_lock *lock);
void file_unlock(struct file_lock *lock);

/* Fault injection for tests: the n-th following write, sync or rename fails with ENOSPC (n < 0: off). */
void file_fail_after(long n);

#endif
