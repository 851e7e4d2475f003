/* SPDX-License-Identifier: Apache-2.0 */
/* Whether other processes, or other guests of the host, had part of the cores while something was measured: what the
 * kernel counts as busy of the cores in the affinity mask, less this process's own computing time. Both are counted in
 * ticks, usually of 10 ms: a core's may be one off at either end. Read twice a measurement; a line a core. */
#include "machine/others.h"

#include "machine/private.h"
#include "machine/workers.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const double TOLD = 0.1;

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

/* "cpu3 user nice system idle iowait irq softirq steal ..." */
static void add_line(struct others *o, const char *line, const struct cpu_mask *mask)
{
    int cpu;
    double t[8];
    if (!isdigit((unsigned char)line[3]) ||
        sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
               &t[7]) != 9 ||
        !mask_has(mask, cpu))
        return;
    const double busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    o->cores++;
    o->busy += busy;
    o->all += busy + t[3] + t[4];
}

struct others others_read(const char *path)
{
    struct others o = {0};
    struct cpu_mask mask;
    struct rusage used;
    char line[512];
    FILE *file = fopen(path, "re");
    if (!file)
        return o;
    if (getrusage(RUSAGE_SELF, &used) == 0 && usable_mask(&mask))
        while (fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0)
            add_line(&o, line, &mask);
    fclose(file);
    if (o.cores)
        o.own = (seconds(&used.ru_utime) + seconds(&used.ru_stime)) * (double)sysconf(_SC_CLK_TCK);
    return o;
}

double others_share(const struct others *before, const struct others *after)
{
    const double all = after->all - before->all, theirs = after->busy - before->busy - (after->own - before->own);
    if (before->cores != after->cores || theirs <= 2 * after->cores || theirs <= TOLD * all)
        return 0;
    return theirs < all ? theirs / all : 1;
}

bool others_were_there(const struct others *since)
{
    const struct others now = others_read("/proc/stat");
    return others_share(since, &now) > 0;
}
