/* SPDX-License-Identifier: Apache-2.0 */
/* Input graphs on the host (graphi/frontier.h): checks that name sample and vertex, the order of evaluation, parts of a
 * batch, and feeding a run. The order itself is the kernel's (kernels/frontier.h). One thread a frontier; after
 * graphi_frontier_create nothing is allocated. */
#include "graphi/frontier.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/frontier.h"

#include <stdio.h>
#include <string.h>

struct graphi_frontier {
    struct frontier_bounds bounds;
    bool one_root, one_parent, ordered;
    int32_t *data;                              /* all lists */
    int32_t *seen;                              /* [vertices]: parents of each, for the rules */
    int32_t *sample, *function, *begin, *child; /* of a part */
    graphi_vertex_values *value;
};

enum { PART_VALUES = 32 };

static graphi_status settle(const graphi_frontier_options *o, struct frontier_bounds *b)
{
    const int64_t most_vertices = 1 << 28;
    *b = (struct frontier_bounds){.vertices = o->vertices,
                                  .edges = o->edges ? o->edges : o->vertices,
                                  .functions = o->functions ? o->functions : 1,
                                  .rows = o->rows ? o->rows : FRONTIER_ROWS};
    b->children = least(o->children ? o->children : b->edges, b->edges);
    if (b->vertices < 1 || b->vertices > most_vertices || b->edges < 1 || b->edges > most_vertices ||
        b->functions < 1 || b->functions > FRONTIER_FUNCTIONS || b->children < 1 || b->rows < 1 ||
        b->rows > FRONTIER_ROWS)
        return fail(GRAPHI_INVALID, "frontier",
                    "found bounds of %lld vertices, %lld edges, %lld functions, %lld children "
                    "and %lld rows, expected 1 to %lld of the first two, 1 to %d functions, 1 to %d rows",
                    (long long)b->vertices, (long long)b->edges, (long long)b->functions, (long long)b->children,
                    (long long)b->rows, (long long)most_vertices, FRONTIER_FUNCTIONS, FRONTIER_ROWS);
    return GRAPHI_OK;
}

graphi_status graphi_frontier_create(const graphi_frontier_options *options, graphi_frontier **out)
{
    GIVEN(options);
    GIVEN(out);
    struct frontier_bounds b;
    TRY(settle(options, &b));
    graphi_frontier *f = mem_zalloc(sizeof *f);
    if (!f)
        return fail_memory("frontier", sizeof *f);
    f->bounds = b;
    f->one_root = options->one_root;
    f->one_parent = options->one_parent;
    f->data = mem_zalloc_array((size_t)frontier_count(&b), sizeof *f->data);
    f->seen = mem_zalloc_array((size_t)(4 * b.vertices + b.edges + 2), sizeof *f->seen);
    f->value = mem_zalloc_array(PART_VALUES, sizeof *f->value);
    if (!f->data || !f->seen || !f->value) {
        graphi_frontier_destroy(f);
        return fail_memory("frontier", (size_t)frontier_count(&b) * sizeof *f->data);
    }
    f->sample = f->seen + b.vertices;
    f->function = f->sample + b.vertices;
    f->begin = f->function + b.vertices;
    f->child = f->begin + b.vertices + 1;
    *out = f;
    return GRAPHI_OK;
}

void graphi_frontier_destroy(graphi_frontier *frontier)
{
    if (!frontier)
        return;
    mem_free(frontier->data);
    mem_free(frontier->seen);
    mem_free(frontier->value);
    mem_free(frontier);
}

/* --- checks --- */

static graphi_status check_sizes(const graphi_frontier *f, const graphi_input_graphs *g)
{
    if (g->samples < 1 || g->vertices < g->samples || g->edges < 0 || g->values < 0 || !g->sample || !g->child_begin ||
        (g->edges && !g->child) || (g->values && !g->value))
        return fail(GRAPHI_INVALID, "input graphs",
                    "found %lld samples, %lld vertices, %lld edges, or a missing array, "
                    "expected at least one sample, and a vertex in each",
                    (long long)g->samples, (long long)g->vertices, (long long)g->edges);
    if (g->vertices > f->bounds.vertices || g->edges > f->bounds.edges)
        return fail(GRAPHI_INVALID, "input graphs",
                    "found %lld vertices and %lld edges, expected at most %lld and %lld: "
                    "graphi_frontier_fits says where to cut the batch",
                    (long long)g->vertices, (long long)g->edges, (long long)f->bounds.vertices,
                    (long long)f->bounds.edges);
    return GRAPHI_OK;
}

static graphi_status check_samples(const graphi_input_graphs *g)
{
    int32_t before = -1;
    for (int64_t v = 0; v < g->vertices; v++) {
        if (g->sample[v] < 0 || g->sample[v] >= g->samples || g->sample[v] < before)
            return fail(GRAPHI_INVALID, "input graphs",
                        "found sample %d at vertex %lld, expected samples 0 to %lld one "
                        "after the other",
                        g->sample[v], (long long)v, (long long)g->samples - 1);
        if (g->sample[v] > before + 1)
            return fail(GRAPHI_INVALID, "input graphs", "found sample %d without a vertex, expected at least one",
                        before + 1);
        before = g->sample[v];
    }
    return before == g->samples - 1 ? GRAPHI_OK
                                    : fail(GRAPHI_INVALID, "input graphs",
                                           "found sample %d without a vertex, expected at least one", before + 1);
}

/* The number of a vertex within its sample. */
static int64_t place_of(const graphi_input_graphs *g, int64_t v)
{
    int64_t first = v;
    while (first && g->sample[first - 1] == g->sample[v])
        first--;
    return v - first;
}

static graphi_status check_vertex(const graphi_frontier *f, const graphi_input_graphs *g, int64_t v)
{
    const int64_t begin = g->child_begin[v], end = g->child_begin[v + 1];
    if (end < begin || end > g->edges || (!v && begin))
        return fail(GRAPHI_INVALID, "input graphs",
                    "found children %lld to %lld of vertex %lld of sample %d, expected "
                    "offsets from 0 to %lld that do not fall",
                    (long long)begin, (long long)end, (long long)place_of(g, v), g->sample[v], (long long)g->edges);
    for (int64_t e = begin; e < end; e++) {
        const int32_t c = g->child[e];
        if (c < 0 || c >= g->vertices || g->sample[c] != g->sample[v])
            return fail(GRAPHI_INVALID, "input graphs",
                        "found child %d of vertex %lld of sample %d, expected a vertex of "
                        "the same sample",
                        c, (long long)place_of(g, v), g->sample[v]);
        if (f->seen[c]++ && f->one_parent)
            return fail(GRAPHI_INVALID, "input graphs",
                        "found two parents of vertex %lld of sample %d, expected a tree", (long long)place_of(g, c),
                        g->sample[v]);
    }
    return GRAPHI_OK;
}

static graphi_status check_roots(const graphi_frontier *f, const graphi_input_graphs *g)
{
    int64_t root = -1;
    for (int64_t v = 0; v < g->vertices && f->one_root; v++) {
        if (f->seen[v])
            continue;
        if (root >= 0 && g->sample[root] == g->sample[v])
            return fail(GRAPHI_INVALID, "input graphs", "found roots %lld and %lld of sample %d, expected one",
                        (long long)place_of(g, root), (long long)place_of(g, v), g->sample[v]);
        root = v;
    }
    return GRAPHI_OK;
}

static graphi_status check(const graphi_frontier *f, const graphi_input_graphs *g)
{
    TRY(check_sizes(f, g));
    TRY(check_samples(g));
    memset(f->seen, 0, sizeof *f->seen * (size_t)g->vertices);
    for (int64_t v = 0; v < g->vertices; v++)
        TRY(check_vertex(f, g, v));
    if (g->child_begin[g->vertices] != g->edges)
        return fail(GRAPHI_INVALID, "input graphs", "found offsets that end at %d, expected %lld, the edges",
                    g->child_begin[g->vertices], (long long)g->edges);
    return check_roots(f, g);
}

graphi_status graphi_frontier_set(graphi_frontier *f, const graphi_input_graphs *g)
{
    GIVEN(f);
    GIVEN(g);
    f->ordered = false;
    TRY(check(f, g));
    const struct frontier_lists lists = frontier_lists_in(&f->bounds, f->data);
    const struct frontier_graphs graphs = {.vertices = g->vertices,
                                           .edges = g->edges,
                                           .function = f->bounds.functions > 1 ? g->function : NULL,
                                           .child_end = g->child_begin + 1,
                                           .child = g->child};
    TRY(frontier_order("input graphs", &f->bounds, &graphs, &lists));
    f->ordered = true;
    return GRAPHI_OK;
}

/* --- parts --- */

/* The first vertex of a sample; vertices of one beyond the last. */
static int64_t first_of(const graphi_input_graphs *g, int64_t sample)
{
    int64_t low = 0, high = g->vertices;
    while (low < high) {
        const int64_t at = (low + high) / 2;
        if (g->sample[at] < sample)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

int64_t graphi_frontier_fits(const graphi_frontier *f, const graphi_input_graphs *g, int64_t sample)
{
    if (!f || !g || !g->sample || !g->child_begin || sample < 0)
        return 0;
    const int64_t first = first_of(g, sample);
    int64_t count = 0;
    for (; sample + count < g->samples; count++) {
        const int64_t end = first_of(g, sample + count + 1);
        if (end - first > f->bounds.vertices || g->child_begin[end] - g->child_begin[first] > f->bounds.edges)
            break;
    }
    return count;
}

static void copy_part(graphi_frontier *f, const graphi_input_graphs *g, int64_t first, int64_t vertices, int64_t sample)
{
    const int32_t edge = g->child_begin[first];
    for (int64_t v = 0; v < vertices; v++) {
        f->sample[v] = g->sample[first + v] - (int32_t)sample;
        f->function[v] = g->function ? g->function[first + v] : 0;
        f->begin[v] = g->child_begin[first + v] - edge;
    }
    f->begin[vertices] = g->child_begin[first + vertices] - edge;
    for (int32_t e = 0; e < f->begin[vertices]; e++)
        f->child[e] = g->child[edge + e] - (int32_t)first;
    for (int i = 0; i < g->values; i++) {
        const size_t bytes = (size_t)g->value[i].columns * graphi_dtype_size(g->value[i].dtype);
        f->value[i] = g->value[i];
        f->value[i].rows = (const char *)g->value[i].rows + (size_t)first * bytes;
    }
}

graphi_status graphi_frontier_part(graphi_frontier *f, const graphi_input_graphs *g, int64_t first, int64_t count,
                                   graphi_input_graphs *part)
{
    GIVEN(f);
    GIVEN(g);
    GIVEN(part);
    if (first < 0 || count < 1 || first + count > g->samples || count > graphi_frontier_fits(f, g, first) ||
        g->values > PART_VALUES)
        return fail(GRAPHI_INVALID, "input graphs",
                    "found samples %lld to %lld with %d values, expected some of 0 to "
                    "%lld that are within the bounds together, and at most %d values",
                    (long long)first, (long long)(first + count - 1), g->values, (long long)g->samples - 1,
                    PART_VALUES);
    const int64_t begin = first_of(g, first), vertices = first_of(g, first + count) - begin;
    copy_part(f, g, begin, vertices, first);
    *part = (graphi_input_graphs){.samples = count,
                                  .vertices = vertices,
                                  .edges = f->begin[vertices],
                                  .sample = f->sample,
                                  .function = g->function ? f->function : NULL,
                                  .child_begin = f->begin,
                                  .child = f->child,
                                  .values = g->values,
                                  .value = f->value};
    return GRAPHI_OK;
}

bool graphi_frontier_get(const graphi_frontier *f, graphi_frontier_lists *lists)
{
    if (!f || !lists || !f->ordered)
        return false;
    const struct frontier_lists l = frontier_lists_in(&f->bounds, f->data);
    *lists = (graphi_frontier_lists){.vertices = l.head->vertices,
                                     .edges = l.head->edges,
                                     .rounds = l.head->rounds,
                                     .blocks = l.head->blocks,
                                     .vertex = l.vertex,
                                     .slot = l.slot,
                                     .round = l.round,
                                     .child_begin = l.child_begin,
                                     .child = l.child,
                                     .parent_begin = l.parent_begin,
                                     .parent_edge = l.parent_edge,
                                     .block_slot = l.block_slot,
                                     .block_rows = l.block_rows};
    return true;
}

/* --- feeding --- */

static graphi_status set_symbol(graphi_run *run, const char *name, const char *what, int function, int64_t value)
{
    char symbol[128];
    snprintf(symbol, sizeof symbol, function < 0 ? "%s.%s" : "%s.%s.%d", name, what, function);
    return graphi_run_set_symbol(run, symbol, most(value, 1));
}

static graphi_status set_symbols(const graphi_frontier *f, const char *name, graphi_run *run)
{
    const struct frontier_head *h = frontier_lists_in(&f->bounds, f->data).head;
    TRY(set_symbol(run, name, "vertices", -1, h->vertices));
    TRY(set_symbol(run, name, "edges", -1, h->edges));
    for (int i = 0; i < f->bounds.functions && f->bounds.functions > 1; i++) {
        TRY(set_symbol(run, name, "vertices", i, h->function_begin[i + 1] - h->function_begin[i]));
        TRY(set_symbol(run, name, "edges", i, h->function_edge[i + 1] - h->function_edge[i]));
    }
    return GRAPHI_OK;
}

static graphi_status set_input(graphi_run *run, const char *name, const char *what, const int32_t *data, int64_t count)
{
    char input[128];
    static const int32_t none; /* no edges: a size is 1 at least */
    snprintf(input, sizeof input, "%s.%s", name, what);
    return graphi_run_set(run, input, GRAPHI_I32, count ? data : &none, (size_t)most(count, 1) * sizeof *data);
}

graphi_status graphi_frontier_feed(graphi_frontier *f, const graphi_input_graphs *g, const char *name, graphi_run *run)
{
    GIVEN(run);
    name = name ? name : "graph";
    TRY(graphi_frontier_set(f, g));
    TRY(set_symbols(f, name, run));
    TRY(set_input(run, name, "child_end", g->child_begin + 1, g->vertices));
    TRY(set_input(run, name, "child", g->child, g->edges));
    if (f->bounds.functions > 1) {
        const int32_t *function = g->function;
        if (!function) {
            memset(f->function, 0, sizeof *f->function * (size_t)g->vertices);
            function = f->function;
        }
        TRY(set_input(run, name, "function", function, g->vertices));
    }
    for (int i = 0; i < g->values; i++)
        TRY(graphi_run_set(run, g->value[i].input, g->value[i].dtype, g->value[i].rows,
                           (size_t)(g->vertices * g->value[i].columns) * graphi_dtype_size(g->value[i].dtype)));
    return GRAPHI_OK;
}
