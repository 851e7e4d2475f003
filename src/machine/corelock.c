/* SPDX-License-Identifier: Apache-2.0 */
/* Leases between processes: one file for the host, of which each core is one byte, locked while a process has a worker
 * pinned to that core. Record locks are used because they name their holder, belong to a process (a child of fork()
 * holds none) and vanish with it, killed or not. The file never has contents. Where no file can be made, processes do
 * not see each other. Where it is no longer at its path (removed by a cleaner of old files, its folder renamed), the
 * next lease of a process makes another or opens what others made, with the locks of the cores that the process has.
 *
 * The folder is shared by all users where the system has one for locks, else private to the user. Only the registry
 * calls this, with its mutex held. */
#include "machine/private.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOST = -3 /* to be had again by core_lock_renew */, UNTRIED, REFUSED };
static struct {
    int fd;               /* or one of the above */
    dev_t device;         /* of what was opened: others may close the number and use it for theirs */
    ino_t inode;
    char path[300];       /* where it was */
    char folder[256];     /* for tests; "": those of the system */
    struct cpu_mask ours; /* bytes that this process has locked */
} file = {.fd = UNTRIED};

void core_lock_forget(void) { file.ours = (struct cpu_mask){{0}}; }

static bool is_file(const struct stat *found) { return found->st_dev == file.device && found->st_ino == file.inode; }

/* Is the number still that of the file? Another's is neither locked nor closed. */
static bool have_file(void)
{
    struct stat found;
    return file.fd >= 0 && fstat(file.fd, &found) == 0 && is_file(&found);
}

/* Would a process that starts now open the same? It may be elsewhere by now, or have a second name. */
static bool others_find_it(void)
{
    struct stat found;
    return lstat(file.path, &found) == 0 && is_file(&found);
}

void core_lock_folder(const char *path)
{
    if (have_file())
        close(file.fd);
    file.fd = UNTRIED;
    snprintf(file.folder, sizeof file.folder, "%s", path ? path : "");
}

/* A name that nobody uses, beside `name`: what is made is given its mode there and then moved or linked, so that
 * nobody finds it before with the mode that the umask leaves. Who comes second removes its own. Where the file system
 * cannot move or link so, it is made in place. */
static void name_beside(const char *name, char beside[300])
{
    snprintf(beside, 300, "%s.%ld-%llx", name, (long)getpid(), (unsigned long long)clock_ns());
}

static void make_folder(const char *folder, mode_t mode)
{
    char beside[300];
    name_beside(folder, beside);
    if (mkdir(beside, 0700))
        return;
    if (chmod(beside, mode) == 0 && renameat2(AT_FDCWD, beside, AT_FDCWD, folder, RENAME_NOREPLACE) == 0)
        return;
    bool unknown = errno == EINVAL || errno == ENOSYS;
    rmdir(beside);
    if (unknown && mkdir(folder, mode) == 0)
        chmod(folder, mode);
}

static void make_file(int dir, mode_t mode)
{
    char beside[300];
    name_beside("cores", beside);
    int fd = openat(dir, beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool made = fchmod(fd, mode) == 0 && linkat(dir, beside, dir, "cores", 0) == 0; /* or somebody was first */
    bool unknown = !made && (errno == EPERM || errno == ENOSYS || errno == EOPNOTSUPP);
    unlinkat(dir, beside, 0);
    close(fd);
    fd = unknown ? openat(dir, "cores", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode) : -1;
    if (fd < 0)
        return;
    fchmod(fd, mode); /* some have no modes either */
    close(fd);
}

static int open_folder(const char *folder) { return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

static int open_file(int dir) { return openat(dir, "cores", O_RDWR | O_NOFOLLOW | O_CLOEXEC); }

/* Opens or makes the lock file in a folder of ours; links are not followed, since others may write beside us. */
static int open_in(const char *folder, mode_t mode, mode_t file_mode)
{
    int dir = open_folder(folder);
    if (dir < 0 && errno == ENOENT) {
        make_folder(folder, mode);
        dir = open_folder(folder);
    }
    if (dir < 0)
        return REFUSED;
    struct stat info;
    bool safe = fstat(dir, &info) == 0 && ((mode & S_ISVTX) || info.st_uid == geteuid());
    int fd = safe ? open_file(dir) : REFUSED;
    if (safe && fd < 0 && errno == ENOENT) {
        make_file(dir, file_mode);
        fd = open_file(dir);
    }
    close(dir);
    if (fd >= 0)
        snprintf(file.path, sizeof file.path, "%s/cores", folder);
    return fd;
}

static int open_somewhere(void)
{
    if (file.folder[0])
        return open_in(file.folder, 0700, 0600);
    int fd = open_in("/run/lock/graphi", 01777, 0666);
    if (fd >= 0)
        return fd;
    char own[64];
    snprintf(own, sizeof own, "/tmp/graphi-%u", (unsigned)geteuid());
    return open_in(own, 0700, 0600);
}

static void open_file_or(int otherwise)
{
    struct stat info;
    file.fd = open_somewhere();
    if (file.fd < 0 || fstat(file.fd, &info)) {
        file.fd = otherwise;
        return;
    }
    file.device = info.st_dev;
    file.inode = info.st_ino;
}

static struct flock byte_of(int os_index, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = os_index, .l_len = 1};
}

static enum core_lock lock_byte(int os_index, int *holder)
{
    if (!have_file())
        return CORE_UNKNOWN;
    struct flock lock = byte_of(os_index, F_WRLCK);
    if (fcntl(file.fd, F_SETLK, &lock) == 0)
        return CORE_OURS;
    if (errno != EACCES && errno != EAGAIN)
        return CORE_UNKNOWN; /* a file system without locks */
    lock = byte_of(os_index, F_WRLCK);
    *holder = fcntl(file.fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? (int)lock.l_pid : 0;
    return CORE_FOREIGN;
}

enum core_lock core_lock_take(int os_index, int *holder)
{
    if (file.fd == UNTRIED)
        open_file_or(REFUSED);
    enum core_lock got = lock_byte(os_index, holder);
    if (got == CORE_OURS)
        mask_add(&file.ours, os_index);
    return got;
}

/* A core that another process has taken in the new file meanwhile is shared with it until one of the two ends. The old
 * one is closed before anything is locked: a process that closes a file loses its locks on it, by whatever number it
 * had them, and the new one is the same where it was away for a moment. */
bool core_lock_renew(void)
{
    const bool known = have_file();
    if (file.fd == UNTRIED || file.fd == REFUSED || (known && others_find_it()))
        return false;
    int holder, old = file.fd;
    open_file_or(LOST);
    if (known)
        close(old);
    for (int i = 0; i < MASK_CPUS; i++)
        if (mask_has(&file.ours, i))
            lock_byte(i, &holder);
    return true;
}

void core_lock_release(int os_index)
{
    struct flock lock = byte_of(os_index, F_UNLCK);
    mask_remove(&file.ours, os_index);
    if (have_file())
        fcntl(file.fd, F_SETLK, &lock);
}
