/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the system where pages lie: move_pages without nodes to move to, which some containers forbid; else the counts
 * that /proc/self/numa_maps has of each mapping, which tell of a page where all of its mapping lies on one node. Any
 * thread; no memory of its own. */
#include "machine/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 256 };

static void count_status(int status, graphi_page_count *sums)
{
    if (status == -ENOENT || status == -EFAULT) /* EFAULT: the page of zeros, or none */
        sums->absent++;
    else if (status < 0 || status >= GRAPHI_MOST_NODES)
        sums->unknown++;
    else
        sums->on[status]++;
}

/* False: the system does not answer, *sums as before. */
static bool ask_move_pages(void **page, size_t count, graphi_page_count *sums)
{
    for (size_t at = 0; at < count; at += BATCH) {
        int status[BATCH];
        const size_t now = count - at < BATCH ? count - at : BATCH;
        if (syscall(SYS_move_pages, 0, now, page + at, NULL, status, 0) != 0) {
            snprintf(sums->note, sizeof sums->note, "move_pages cannot be asked (%s)", strerror(errno));
            if (at == 0)
                return false;
            sums->unknown += (int64_t)(count - at);
            return true;
        }
        for (size_t i = 0; i < now; i++)
            count_status(status[i], sums);
    }
    return true;
}

/* The one node that a line of numa_maps counts pages on; -1: none, or several. */
static int only_node(const char *line)
{
    int only = -1, found = 0;
    for (const char *at = line; (at = strstr(at, " N")); at += 2) {
        char *end;
        const long node = strtol(at + 2, &end, 10);
        if (end == at + 2 || *end != '=')
            continue;
        only = (int)node;
        found++;
    }
    return found == 1 && only < GRAPHI_MOST_NODES ? only : -1;
}

static bool is_there(void *page, int64_t page_bytes)
{
    unsigned char there = 1;
    return mincore(page, (size_t)page_bytes, &there) != 0 || (there & 1);
}

static void count_mapping(void **page, size_t count, int node, graphi_page_count *sums)
{
    for (size_t i = 0; i < count; i++)
        if (!is_there(page[i], sums->page_bytes))
            sums->absent++;
        else if (node < 0)
            sums->unknown++;
        else
            sums->on[node]++;
}

/* A line tells where its mapping begins; it ends before the next one begins. */
static bool ask_maps(void **page, size_t count, graphi_page_count *sums)
{
    FILE *maps = fopen("/proc/self/numa_maps", "re");
    char line[4096];
    if (!maps)
        return false;
    int node = -1;
    size_t done = 0;
    while (done < count && fgets(line, sizeof line, maps)) {
        const uintptr_t begin = (uintptr_t)strtoull(line, NULL, 16);
        size_t before = done;
        while (before < count && (uintptr_t)page[before] < begin)
            before++;
        count_mapping(page + done, before - done, node, sums);
        done = before;
        node = only_node(line);
    }
    count_mapping(page + done, count - done, node, sums);
    fclose(maps);
    return true;
}

void pages_add(void **page, size_t count, enum pages_ask ask, graphi_page_count *sums)
{
    sums->pages += (int64_t)count;
    if (ask != PAGES_ASK_ALL)
        snprintf(sums->note, sizeof sums->note, "move_pages was not asked");
    if (ask == PAGES_ASK_ALL && ask_move_pages(page, count, sums))
        return;
    const size_t used = strlen(sums->note);
    if (ask != PAGES_ASK_NOBODY && ask_maps(page, count, sums)) {
        snprintf(sums->note + used, sizeof sums->note - used, "; numa_maps tells of whole mappings alone");
        return;
    }
    sums->unknown += (int64_t)count;
    snprintf(sums->note + used, sizeof sums->note - used, "; there is no /proc/self/numa_maps");
}
