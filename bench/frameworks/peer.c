/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes and their pipes. */
#include "frameworks/peer.h"

#include "tool/report.h"

#include <errno.h>
#include <ftw.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FRAMEWORKS_SOURCE
#define FRAMEWORKS_SOURCE ""
#endif

/* glibc's: nothing by mmap, nothing given back, one heap for all threads, huge pages. */
static const char keep_pages[] = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000:"
                                 "glibc.malloc.top_pad=67108864:glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1";

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; at && (at = strstr(at, word)); at++)
        if ((at == text || at[-1] == ' ') && (at[length] == 0 || at[length] == ' '))
            return true;
    return false;
}

bool peer_is_eager(const char *setting)
{
    return !has_word(setting, "compile") && !has_word(setting, "frozen");
}

/* Behind the user's, of which those of other names stay: the last one of a name counts. */
static void add_tunables(const char *more)
{
    char all[4096];
    const char *own = getenv("GLIBC_TUNABLES");
    int length = own && *own ? snprintf(all, sizeof all, "%s:%s", own, more) : -1;
    setenv("GLIBC_TUNABLES", length > 0 && (size_t)length < sizeof all ? all : more, 1);
}

static void exec_child(const struct peer *peer, const char *python, const char *script, const char *setting, int in,
                       int out)
{
    setpgid(0, 0); /* compilers that it starts end with it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", peer->folder, 1);
    if (has_word(setting, "pages"))
        add_tunables(keep_pages);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(fileno(peer->log), STDERR_FILENO);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    execl(python, python, "-u", script, (char *)NULL);
    _exit(127);
}

bool peer_start(struct peer *peer, const char *python, const char *script, const char *setting)
{
    int down[2], up[2];
    *peer = (struct peer){.from = -1, .folder = "/tmp/graphi-peer-XXXXXX"};
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(peer->folder) || !(peer->log = tmpfile()) || pipe(down) != 0) {
        snprintf(peer->reason, sizeof peer->reason, "%s", strerror(errno));
        return false;
    }
    if (pipe(up) != 0 || (peer->pid = fork()) < 0) {
        snprintf(peer->reason, sizeof peer->reason, "%s", strerror(errno));
        close(down[0]);
        close(down[1]);
        return false;
    }
    if (peer->pid == 0)
        exec_child(peer, python, script, setting, down[0], up[1]);
    close(down[0]);
    close(up[1]);
    peer->from = up[0];
    peer->to = fdopen(down[1], "w");
    return peer->to != NULL;
}

/* The signal that ended the child, which stays to be waited for; 0: none, or it lives on without its pipe. */
static int ended_by(const struct peer *peer)
{
    siginfo_t info = {0};
    for (int i = 0; i < 50 && info.si_pid == 0; i++) {
        if (waitid(P_PID, (id_t)peer->pid, &info, WEXITED | WNOWAIT | WNOHANG) != 0)
            return 0;
        if (info.si_pid == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* its pipe closes before it has ended */
    }
    return info.si_pid && info.si_code != CLD_EXITED ? info.si_status : 0;
}

/* The last line that the child said: as a rule the exception that ended it; or the signal (9: often, out of memory). */
static void last_words(struct peer *peer)
{
    char text[400] = "";
    fseek(peer->log, 0, SEEK_END);
    long end = ftell(peer->log), from = end > (long)sizeof text - 1 ? end - (long)sizeof text + 1 : 0;
    fseek(peer->log, from, SEEK_SET);
    text[fread(text, 1, sizeof text - 1, peer->log)] = 0;
    for (char *tail = text + strlen(text); tail > text && tail[-1] == '\n';)
        *--tail = 0;
    const char *line = strrchr(text, '\n');
    const int signal = ended_by(peer);
    if (signal)
        snprintf(peer->reason, sizeof peer->reason, "ended by signal %d: %.240s", signal, line ? line + 1 : text);
    else
        snprintf(peer->reason, sizeof peer->reason, "ended: %.250s", line ? line + 1 : text);
}

static bool append(struct peer *peer)
{
    if (peer->used + 4096 > peer->size) {
        size_t size = peer->size ? 2 * peer->size : 1 << 16;
        char *more = realloc(peer->line, size);
        if (!more)
            return false;
        peer->line = more;
        peer->size = size;
    }
    ssize_t count = read(peer->from, peer->line + peer->used, peer->size - peer->used);
    if (count > 0)
        peer->used += (size_t)count;
    return count > 0 || (count < 0 && errno == EINTR);
}

/* One line: an answer is not begun before its request, so nothing follows it. */
static bool read_line(struct peer *peer, double seconds)
{
    double until = report_seconds() + seconds;
    for (peer->used = 0; !peer->used || peer->line[peer->used - 1] != '\n';) {
        double left = until - report_seconds();
        struct pollfd ready = {.fd = peer->from, .events = POLLIN};
        if (report_interrupted() || left <= 0) {
            peer->late = left <= 0;
            snprintf(peer->reason, sizeof peer->reason, left <= 0 ? "no answer in %.0f s" : "interrupted", seconds);
            return false;
        }
        int count = poll(&ready, 1, left > 1 ? 1000 : (int)(left * 1000) + 1);
        if (count > 0 && !append(peer)) {
            last_words(peer);
            return false;
        }
    }
    return true;
}

void peer_rest(struct peer *peer)
{
    peer->resting = peer->pid > 0 && kill(-peer->pid, SIGSTOP) == 0;
}

json_t *peer_ask(struct peer *peer, json_t *request, double seconds)
{
    peer->late = false;
    if (peer->resting)
        kill(-peer->pid, SIGCONT);
    peer->resting = false;
    int bad = json_dumpf(request, peer->to, JSON_COMPACT);
    json_decref(request);
    if (bad || fputc('\n', peer->to) == EOF || fflush(peer->to) != 0) {
        last_words(peer);
        return NULL;
    }
    if (!read_line(peer, seconds))
        return NULL;
    json_error_t error;
    json_t *answer = json_loadb(peer->line, peer->used, 0, &error);
    if (answer && json_is_true(json_object_get(answer, "ok")))
        return answer;
    const char *text = json_string_value(json_object_get(answer, "error"));
    snprintf(peer->reason, sizeof peer->reason, "%.290s", text ? text : "answered with something that is not JSON");
    json_decref(answer);
    return NULL;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    remove(path);
    return 0;
}

void peer_stop(struct peer *peer)
{
    if (peer->pid > 0) {
        kill(-peer->pid, SIGKILL);
        while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close(peer->from);
    }
    if (peer->to)
        fclose(peer->to);
    if (peer->log)
        fclose(peer->log);
    if (strstr(peer->folder, "/graphi-peer-"))
        nftw(peer->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(peer->line);
    *peer = (struct peer){.from = -1};
}

void peer_folders(char *scripts, char *environments, size_t size)
{
    char self[2048], probe[2200];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    const char *folder = dirname(self);
    snprintf(scripts, size, "%s/frameworks-peers", folder);
    if (access(scripts, R_OK) != 0)
        snprintf(scripts, size, "%s", FRAMEWORKS_SOURCE);
    snprintf(probe, sizeof probe, "%s/../CMakeCache.txt", folder);
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (access(probe, R_OK) == 0) /* build/release/bench -> build/peers */
        snprintf(environments, size, "%s/../../peers", folder);
    else if (cache && *cache)
        snprintf(environments, size, "%s/graphi/peers", cache);
    else
        snprintf(environments, size, "%s/.cache/graphi/peers", home ? home : "");
}

bool peer_prepare(const char *scripts, const char *environments, const char *name, bool quiet)
{
    char python[4400], setup[4400];
    snprintf(python, sizeof python, "%s/%s/bin/python", environments, name);
    if (access(python, X_OK) == 0)
        return true;
    snprintf(setup, sizeof setup, "%s/setup.sh", scripts);
    if (access(setup, R_OK) != 0)
        return false;
    if (!quiet)
        fprintf(stderr, "frameworks: installing %s into %s (once; minutes)\n", name, environments);
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is the result alone */
        execl("/bin/sh", "sh", setup, name, environments, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return access(python, X_OK) == 0;
}
