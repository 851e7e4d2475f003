/* SPDX-License-Identifier: Apache-2.0 */
/* Linux counts the resident set and its peak in /proc/self/status, and forgets the peak when asked. */
#include "tool/resident.h"

#include <string.h>

static int64_t start = -1; /* not told */

static int64_t status_bytes(const char *key)
{
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ": %lld", &kilobytes);
    if (file)
        fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

static bool forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    bool written = file && fputs("5", file) >= 0;
    return file && fclose(file) == 0 && written;
}

void resident_begin(void) { start = forget_peak() ? status_bytes("VmRSS") : -1; }

void resident_row(struct result *result, json_t *row)
{
    int64_t peak = status_bytes("VmHWM");
    if (start < 0 || peak < 0) {
        result_note(result, "peak memory: not measured, /proc/self/clear_refs or status of this system cannot be used");
        return;
    }
    result_integer(row, "peak_rss_bytes", peak > start ? peak - start : 0);
    result_integer(row, "peak_rss_absolute_bytes", peak);
}
