/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages hold what a run uses, each counted once: arrays share pages with their neighbours. Tens of thousands of
 * pages; the caller's thread. */
#include "engine/run/run.h"
#include "graphi/place.h"
#include "machine/pages.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <unistd.h>

struct gathered {
    ARRAY(void *) page;
    uintptr_t bytes; /* of a page */
    bool full;
};

static void add_range(struct gathered *g, const void *data, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)data & ~(g->bytes - 1), end = (uintptr_t)data + bytes;
    for (uintptr_t at = begin; data && bytes && at < end; at += g->bytes)
        if (!array_push(&g->page, (void *)at))
            g->full = true;
}

static void gather_plan(struct gathered *g, const graphi_run *run)
{
    add_range(g, run->plan->compiled->constants, (size_t)run->plan->compiled->constant_bytes);
}

static void gather_parameters(struct gathered *g, const graphi_run *run)
{
    for (size_t i = 0; i < run->plan->compiled->parameters.count; i++)
        add_range(g, run->parameter[i]->data, run->parameter[i]->bytes);
}

static void gather_packed(struct gathered *g, const graphi_run *run)
{
    for (size_t i = 0; i < run->plan->compiled->prepared.count; i++)
        if (run->form[i])
            add_range(g, run->form[i]->data, run->form[i]->bytes);
}

static void gather_arena(struct gathered *g, const graphi_run *run)
{
    add_range(g, run->block, (size_t)run->plan->compiled->arena_bytes);
}

static void gather_inputs(struct gathered *g, const graphi_run *run)
{
    add_range(g, run->block + run->plan->compiled->arena_bytes, (size_t)run->plan->compiled->input_bytes);
}

static void (*const gather[])(struct gathered *, const graphi_run *) = {
    [GRAPHI_PAGES_PLAN] = gather_plan,
    [GRAPHI_PAGES_PARAMETERS] = gather_parameters,
    [GRAPHI_PAGES_PACKED] = gather_packed,
    [GRAPHI_PAGES_ARENA] = gather_arena,
    [GRAPHI_PAGES_INPUTS] = gather_inputs,
};

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)*(void *const *)a, y = (uintptr_t)*(void *const *)b;
    return (x > y) - (x < y);
}

static size_t unique(void **page, size_t count)
{
    size_t kept = 0;
    qsort(page, count, sizeof *page, by_address);
    for (size_t i = 0; i < count; i++)
        if (!kept || page[kept - 1] != page[i])
            page[kept++] = page[i];
    return kept;
}

graphi_status graphi_pages(const graphi_run *run, graphi_pages_of of, graphi_page_count *count)
{
    GIVEN(run);
    GIVEN(count);
    if ((int)of < 0 || (size_t)of >= sizeof gather / sizeof *gather)
        return fail(GRAPHI_INVALID, "pages", "found number %d of what to count, expected 0 to %d", (int)of,
                    (int)(sizeof gather / sizeof *gather) - 1);
    struct gathered g = {.bytes = (uintptr_t)sysconf(_SC_PAGESIZE)};
    gather[of](&g, run);
    if (g.full) {
        const size_t bytes = g.page.count * sizeof *g.page.data;
        array_free(&g.page);
        return fail_memory("pages", bytes);
    }
    graphi_page_count sums = {.page_bytes = (int64_t)g.bytes};
    if (g.page.count)
        pages_add(g.page.data, unique(g.page.data, g.page.count), PAGES_ASK_ALL, &sums);
    array_free(&g.page);
    *count = sums;
    return GRAPHI_OK;
}
