/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU quota that the kernel enforces on this process: a control group may run `quota` microseconds of CPU time in
 * every `period`, over all cores, and so may each group above it. More threads than that are stopped in the middle of
 * their work, so the quota bounds the cores. Read once per machine; the files are a line each. */
#include "machine/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static bool names_cpu(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "cpu")); at += 3)
        if ((at == controllers || at[-1] == ',') && (at[3] == 0 || at[3] == ','))
            return true;
    return false;
}

/* One line of /proc/self/cgroup, "hierarchy:controllers:path"; version 2 has neither number nor controllers. */
static double quota_of_line(char *line, const char *mount)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = 0;
    controllers++;
    char below[PATH_BYTES];
    if (*controllers) {
        if (!names_cpu(controllers))
            return 0;
        snprintf(below, sizeof below, "%s/%s", mount, controllers);
        double quota = walk_up(below, group, quota_v1);
        snprintf(below, sizeof below, "%s/cpu", mount); /* usually a link to the former */
        return tighter(quota, walk_up(below, group, quota_v1));
    }
    snprintf(below, sizeof below, "%s/unified", mount); /* both versions side by side */
    return tighter(walk_up(mount, group, quota_v2), walk_up(below, group, quota_v2));
}

double machine_quota(const char *self, const char *mount)
{
    char text[16384];
    if (!read_text(self, text, sizeof text))
        return 0;
    double quota = 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        quota = tighter(quota, quota_of_line(line, mount));
    return quota;
}
