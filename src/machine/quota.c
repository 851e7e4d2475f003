/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel lets this process have. CPU time: a control group may run `quota` microseconds of it in every
 * `period`, over all cores, and so may each group above it. More threads than that are stopped in the middle of their
 * work, so the quota bounds the cores. Memory: beyond the limit of a group processes are killed, beyond that of
 * addresses they get none. Read once per machine and measurement; the files are a line each. */
#include "machine/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* The start of a small file; false when it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

static double tighter(double a, double b)
{
    if (a <= 0 || b <= 0)
        return a > 0 ? a : b > 0 ? b : 0;
    return a < b ? a : b;
}

/* "max 100000" or "150000 100000" */
static double quota_v2(const char *folder)
{
    char path[PATH_BYTES + 32], text[128];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_text(path, text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2 || period <= 0)
        return 0;
    return quota > 0 ? quota / period : 0;
}

/* Two files; a quota of -1 is none. */
static double quota_v1(const char *folder)
{
    char path[PATH_BYTES + 32], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(path, quota, sizeof quota))
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_text(path, period, sizeof period) || atof(period) <= 0)
        return 0;
    return atof(quota) > 0 ? atof(quota) / atof(period) : 0;
}

/* A limit without what is used of it; one byte where nothing is left. 0: no limit, "max" or a number beyond all memory.
 * */
static double room_below(const char *folder, const char *limit, const char *used)
{
    char path[PATH_BYTES + 32], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, limit);
    if (!read_text(path, text, sizeof text) || *text < '0' || *text > '9')
        return 0;
    const double most = atof(text);
    snprintf(path, sizeof path, "%s/%s", folder, used);
    if (most >= 0x1p62 || !read_text(path, text, sizeof text))
        return 0;
    return most - atof(text) > 1 ? most - atof(text) : 1;
}

static double room_v2(const char *folder) { return room_below(folder, "memory.max", "memory.current"); }

static double room_v1(const char *folder)
{
    return room_below(folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
}

static const struct limit {
    const char *controller; /* its name, and the folder of version 1 */
    double (*v1)(const char *folder), (*v2)(const char *folder);
} cpu_time = {"cpu", quota_v1, quota_v2}, memory = {"memory", room_v1, room_v2};

/* The tightest quota from mount/group up to mount. Inside a container the group's path may not exist below the mount
 * that the container sees: missing folders set no limit, and the mount's root is then the container's own group. */
static double walk_up(const char *mount, const char *group, double (*read_quota)(const char *folder))
{
    char folder[PATH_BYTES];
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder)
        return read_quota(mount);
    double quota = 0;
    size_t root = strlen(mount);
    for (;;) {
        quota = tighter(quota, read_quota(folder));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root)
            return quota;
        *slash = 0;
    }
}

static bool names(const char *controllers, const char *one)
{
    const size_t length = strlen(one);
    for (const char *at = controllers; (at = strstr(at, one)); at += length)
        if ((at == controllers || at[-1] == ',') && (at[length] == 0 || at[length] == ','))
            return true;
    return false;
}

/* One line of /proc/self/cgroup, "hierarchy:controllers:path"; version 2 has neither number nor controllers. */
static double limit_of_line(char *line, const char *mount, const struct limit *limit)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = 0;
    controllers++;
    char below[PATH_BYTES];
    if (*controllers) {
        if (!names(controllers, limit->controller))
            return 0;
        snprintf(below, sizeof below, "%s/%s", mount, controllers);
        double quota = walk_up(below, group, limit->v1);
        snprintf(below, sizeof below, "%s/%s", mount, limit->controller); /* usually a link to the former */
        return tighter(quota, walk_up(below, group, limit->v1));
    }
    snprintf(below, sizeof below, "%s/unified", mount); /* both versions side by side */
    return tighter(walk_up(mount, group, limit->v2), walk_up(below, group, limit->v2));
}

static double tightest(const char *self, const char *mount, const struct limit *limit)
{
    char text[16384];
    if (!read_text(self, text, sizeof text))
        return 0;
    double quota = 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        quota = tighter(quota, limit_of_line(line, mount, limit));
    return quota;
}

double machine_quota(const char *self, const char *mount) { return tightest(self, mount, &cpu_time); }

/* What RLIMIT_AS leaves. */
static double room_of_addresses(void)
{
    struct rlimit limit;
    char text[128];
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !read_text("/proc/self/statm", text, sizeof text))
        return 0;
    const double left = (double)limit.rlim_cur - atof(text) * (double)sysconf(_SC_PAGESIZE);
    return left > 1 ? left : 1;
}

double machine_room(const char *self, const char *mount)
{
    return tighter(tightest(self, mount, &memory), room_of_addresses());
}
