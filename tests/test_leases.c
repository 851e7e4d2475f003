/* SPDX-License-Identifier: Apache-2.0 */
/* Leases in a process that others have a hand in: threads that are cancelled, lock files that are removed, callers of
 * another priority. */
#include "leased.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state) { return set_up_cores(2); }

static pid_t start_child(int (*check)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* ends a deadlock */
        _exit(check());
    }
    return child;
}

static int in_child(int (*check)(void))
{
    int status;
    pid_t child = start_child(check);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* --- cancellation --- */

/* In a frame that ends: AddressSanitizer takes those that a cancelled thread leaves for ones in use. */
__attribute__((noinline)) static void lease_and_release(int64_t *waited_ns)
{
    struct lease lease = take(here, here->cores);
    *waited_ns = lease.waited_ns;
    lease_release(&lease);
}

static void *lease_cancelled(void *waited_ns)
{
    pthread_cancel(pthread_self()); /* from the next point on where a thread can be */
    lease_and_release(waited_ns);
    pthread_testcancel();
    return NULL;
}

static int lease_after_a_thread_was_cancelled(useconds_t hold, int64_t *waited_ns)
{
    *waited_ns = -1;
    pthread_t thread;
    void *end;
    struct lease lease = take(here, here->cores);
    if (pthread_create(&thread, NULL, lease_cancelled, waited_ns) != 0)
        return 1;
    usleep(hold);
    lease_release(&lease);
    if (pthread_join(thread, &end) != 0 || end != PTHREAD_CANCELED || *waited_ns < 0)
        return 2;
    lease = take(here, here->cores);
    lease_release(&lease);
    return 0;
}

/* A thread that is cancelled while it waits for cores would leave the registry locked, and its turn to nobody. */
static void a_cancelled_thread_leaves_no_lock(void **state)
{
    int64_t waited_ns = 0;
    alarm(20); /* ends a deadlock; not in a child, where ThreadSanitizer does not follow the registry's mutex */
    for (useconds_t hold = 1000; waited_ns == 0; hold *= 2) /* until it did wait */
        assert_int_equal(lease_after_a_thread_was_cancelled(hold, &waited_ns), 0);
    alarm(0);
}

/* --- the file of locks --- */

static int child_ready[2], parent_ready[2];

/* Takes a core each before and after the parent has removed the file, and holds both. */
static int hold_while_the_file_goes(void)
{
    char byte = 0;
    struct lease lease = take(here, 1);
    bool wrong = write(child_ready[1], &byte, 1) != 1 || read(parent_ready[0], &byte, 1) != 1;
    if (here->cores > 1)
        (void)take(here, 1);
    else
        lease_release(&lease), lease = take(here, 1);
    wrong |= write(child_ready[1], &byte, 1) != 1 || read(parent_ready[0], &byte, 1) != 1;
    return wrong || !lease.pinned;
}

/* Two processes would be pinned to one core, each with a file of its own: for the cores that one takes once the file
 * is gone, or for those that it had before. */
static void a_removed_file_is_made_again(void **state)
{
    char byte = 0;
    int status;
    assert_int_equal(pipe(child_ready) | pipe(parent_ready), 0);
    pid_t child = start_child(hold_while_the_file_goes);
    assert_int_equal(read(child_ready[0], &byte, 1), 1);
    assert_int_equal(unlink(folder_name(&folder, "cores")), 0);
    assert_int_equal(write(parent_ready[1], &byte, 1), 1);
    assert_int_equal(read(child_ready[0], &byte, 1), 1);
    workers_lock_folder(folder.path); /* opens what is there, as a process would that starts now */
    struct lease lease = take(here, here->cores);
    assert_false(lease.pinned);
    assert_non_null(strstr(lease.note, "is held by process"));
    assert_true(here->cores != 2 || strstr(lease.note, "nor is another worker"));
    lease_release(&lease);
    assert_int_equal(write(parent_ready[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int hold_all(void)
{
    char byte = 0;
    workers_lock_folder(folder.path);
    struct lease lease = take(here, here->cores);
    bool wrong = write(child_ready[1], &byte, 1) != 1 || read(parent_ready[0], &byte, 1) != 1;
    return wrong || !lease.pinned;
}

/* What a lease had locked in the removed file it would keep, though others have it in the new one. */
static void cores_are_tried_again_in_the_new_file(void **state)
{
    char byte = 0;
    int status;
    struct lease lease = take(here, 1);
    lease_release(&lease);
    assert_int_equal(unlink(folder_name(&folder, "cores")), 0);
    pid_t child = start_child(hold_all);
    assert_int_equal(read(child_ready[0], &byte, 1), 1);
    lease = take(here, 1);
    assert_false(lease.pinned);
    assert_non_null(strstr(lease.note, "is held by process"));
    lease_release(&lease);
    assert_int_equal(write(parent_ready[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void check_lease(const char *note)
{
    struct lease lease = take(here, 1);
    assert_string_equal(lease.note, note);
    lease_release(&lease);
}

/* Of a process that was killed while it made the file there is another name; and a folder may be renamed with the file
 * in it. Who has the file open would not see that others no longer find it. */
static void a_file_that_others_do_not_find_is_made_again(void **state)
{
    char path[300], away[310], cores[310], other[320];
    snprintf(path, sizeof path, "%s/found", folder.path);
    snprintf(away, sizeof away, "%s.away", path);
    snprintf(cores, sizeof cores, "%s/cores", path);
    snprintf(other, sizeof other, "%s.other", cores);
    workers_lock_folder(path);
    check_lease("");
    assert_int_equal(link(cores, other), 0);
    assert_int_equal(unlink(cores), 0);
    check_lease("");
    assert_int_equal(access(cores, F_OK), 0);
    assert_int_equal(rename(path, away), 0);
    check_lease("");
    assert_int_equal(access(cores, F_OK), 0);
    workers_lock_folder(folder.path);
}

/* How often `name` came to be in the watched folder; -1: somebody could see it become what it is. */
static int times_made(int watch, const char *name)
{
    _Alignas(struct inotify_event) char events[4096];
    int made = 0;
    for (ssize_t bytes; (bytes = read(watch, events, sizeof events)) > 0;)
        for (ssize_t at = 0; at < bytes;) {
            const struct inotify_event *event = (const void *)(events + at);
            if (made >= 0 && event->len && strcmp(event->name, name) == 0)
                made = event->mask & IN_ATTRIB ? -1 : made + 1;
            at += (ssize_t)(sizeof *event + event->len);
        }
    return made;
}

static int watch_of(const char *path)
{
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_CREATE | IN_ATTRIB | IN_MOVED_TO) >= 0);
    return watch;
}

static void check_mode(const char *path, mode_t mode)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, mode);
}

/* Who finds folder or file as the umask left them, before they have their modes, may not open them, and does without
 * for life. */
static void folder_and_file_appear_with_their_modes(void **state)
{
    char path[300], cores[310];
    snprintf(path, sizeof path, "%s/locks", folder.path);
    snprintf(cores, sizeof cores, "%s/cores", path);
    int above = watch_of(folder.path), inside = -1;
    workers_lock_folder(path);
    mode_t umask_before = umask(0777);
    for (int round = 0; round < 2; round++) {
        struct lease lease = take(here, 1);
        assert_string_equal(lease.note, "");
        lease_release(&lease);
        check_mode(path, 0700);
        check_mode(cores, 0600);
        if (round)
            break;
        inside = watch_of(path);
        assert_int_equal(unlink(cores), 0);
    }
    umask(umask_before);
    assert_int_equal(times_made(above, "locks"), 1);
    assert_int_equal(times_made(inside, "cores"), 1);
    close(above);
    close(inside);
    workers_lock_folder(folder.path);
}

static bool cannot_move; /* as file systems that lack RENAME_NOREPLACE */
static int no_links;     /* what linkat fails with where there are none; 0: it does not fail */

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    errno = EINVAL;
    return cannot_move ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    errno = no_links;
    return no_links ? -1 : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

static void a_file_system_may_lack_moves(void **state)
{
    char path[300];
    snprintf(path, sizeof path, "%s/plain", folder.path);
    workers_lock_folder(path);
    cannot_move = true;
    check_lease("");
    cannot_move = false;
    check_mode(path, 0700);
    workers_lock_folder(folder.path);
}

/* There would be no file, and no locks. */
static void a_file_system_may_lack_links(void **state)
{
    static const int errors[] = {EPERM, ENOSYS, EOPNOTSUPP};
    struct folder linkless;
    folder_make(&linkless);
    workers_lock_folder(linkless.path);
    mode_t umask_before = umask(0777);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        no_links = errors[i];
        check_lease("");
        no_links = 0;
        check_mode(folder_name(&linkless, "cores"), 0600);
        assert_int_equal(folder_count(&linkless), 1);
        assert_int_equal(unlink(folder_name(&linkless, "cores")), 0);
    }
    umask(umask_before);
    workers_lock_folder(folder.path);
    folder_remove(&linkless);
}

/* One lease without locks, not all that follow. */
static void a_folder_may_be_away_for_a_while(void **state)
{
    char path[300], away[310], cores[310];
    snprintf(path, sizeof path, "%s/some", folder.path);
    snprintf(away, sizeof away, "%s.away", path);
    snprintf(cores, sizeof cores, "%s/cores", path);
    workers_lock_folder(path);
    check_lease("");
    assert_int_equal(unlink(cores), 0);
    assert_int_equal(rename(path, away), 0);
    folder_write(&folder, "some", "", 0);
    check_lease("no lock file: other processes may be pinned to the same cores");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(away, path), 0);
    check_lease("");
    check_mode(cores, 0600);
    workers_lock_folder(folder.path);
}

/* The number of this process's open file. */
static int number_of(const char *path)
{
    struct stat wanted, info;
    assert_int_equal(stat(path, &wanted), 0);
    for (int fd = 0; fd < 1024; fd++)
        if (fstat(fd, &info) == 0 && info.st_dev == wanted.st_dev && info.st_ino == wanted.st_ino)
            return fd;
    return -1;
}

/* Is byte `at` of the file locked by a process, this one too? */
static bool is_locked(int fd, int at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

static bool hidden; /* nobody finds the file */

int lstat(const char *path, struct stat *found)
{
    errno = ENOENT;
    return hidden ? -1 : fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

/* What is opened anew may be the same, and closing it by its old number would give up cores of other leases. */
static void a_file_that_was_away_for_a_moment_keeps_its_locks(void **state)
{
    if (here->cores < 2)
        skip();
    struct lease lease = take(here, 1);
    hidden = true;
    struct lease other = take(here, 1);
    hidden = false;
    for (int i = 0; i < 2; i++)
        assert_true(is_locked(number_of(folder_name(&folder, "cores")), here->core[i].os_index));
    lease_release(&other);
    lease_release(&lease);
}

/* A program that closes all numbers it does not know, and opens files of its own: what is found there is not closed,
 * and not locked. */
static void a_number_may_become_another_file(void **state)
{
    struct stat before, after;
    check_lease("");
    int fd = number_of(folder_name(&folder, "cores")), other = memfd_create("other", 0);
    assert_true(fd >= 0 && other >= 0);
    assert_int_equal(dup2(other, fd), fd);
    assert_int_equal(fstat(other, &before), 0);
    check_lease("");
    assert_int_equal(fstat(fd, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_false(is_locked(other, here->core[0].os_index));
    int again = number_of(folder_name(&folder, "cores"));
    assert_true(again >= 0 && again != fd);
    close(fd);
    close(other);
}

/* The same while cores are leased; the program locks its file, on the byte of the leased core. */
static void locks_of_another_file_stay(void **state)
{
    struct lease lease = take(here, 1);
    assert_true(lease.pinned);
    int fd = number_of(folder_name(&folder, "cores")), other = memfd_create("other", 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = here->core[0].os_index, .l_len = 1};
    assert_true(fd >= 0 && other >= 0);
    assert_int_equal(dup2(other, fd), fd);
    assert_int_equal(fcntl(other, F_SETLK, &lock), 0);
    lease_release(&lease);
    assert_true(is_locked(other, here->core[0].os_index));
    close(fd);
    close(other);
    check_lease("");
}

/* --- priority --- */

struct priority {
    int policy, nice;
};

static void see_priority(void *context, int index)
{
    if (index == 1)
        *(struct priority *)context = (struct priority){sched_getscheduler(0), getpriority(PRIO_PROCESS, 0)};
}

/* Of batch work, and of a lower nice value where the process has the right to it: others can be left by all. */
static void *lease_in_the_background(void *seen)
{
    const struct lease_options options = {.workers = 2};
    struct sched_param none = {0};
    struct lease lease;
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1);
    if (sched_setscheduler(0, SCHED_BATCH, &none) || lease_take(wide, &options, &lease))
        return NULL;
    lease_start(&lease, see_priority, seen);
    lease_wait(&lease);
    lease_release(&lease);
    return seen;
}

static int workers_made_by_a_background_thread(void)
{
    struct priority seen = {-1, 99};
    pthread_t thread;
    void *done;
    if (pthread_create(&thread, NULL, lease_in_the_background, &seen) || pthread_join(thread, &done) || !done)
        return 1;
    return (seen.policy == sched_getscheduler(0) ? 0 : 2) | (seen.nice == getpriority(PRIO_PROCESS, 0) ? 0 : 4);
}

/* Every later execution of the process would run at the priority of the thread that needed one more worker. */
static void workers_inherit_no_priority(void **state)
{
    assert_int_equal(in_child(workers_made_by_a_background_thread), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_thread_leaves_no_lock),
        cmocka_unit_test(a_removed_file_is_made_again),
        cmocka_unit_test(cores_are_tried_again_in_the_new_file),
        cmocka_unit_test(a_file_that_others_do_not_find_is_made_again),
        cmocka_unit_test(folder_and_file_appear_with_their_modes),
        cmocka_unit_test(a_file_system_may_lack_moves),
        cmocka_unit_test(a_file_system_may_lack_links),
        cmocka_unit_test(a_folder_may_be_away_for_a_while),
        cmocka_unit_test(a_file_that_was_away_for_a_moment_keeps_its_locks),
        cmocka_unit_test(a_number_may_become_another_file),
        cmocka_unit_test(locks_of_another_file_stay),
        cmocka_unit_test(workers_inherit_no_priority),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
