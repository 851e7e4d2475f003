/* SPDX-License-Identifier: Apache-2.0 */
/* See frontier.h. */
#include "kernels/frontier.h"

#include <string.h>

int64_t frontier_block_rows(const struct frontier_bounds *b)
{
    return least(least(b->rows, FRONTIER_ROWS), b->vertices);
}

int64_t frontier_block_edges(const struct frontier_bounds *b)
{
    return most(least(b->edges, most(b->children, FRONTIER_ROWS)), 1);
}

/* Lists one behind the other; data NULL: sizes alone. */
static int64_t lay_out(const struct frontier_bounds *b, int32_t *data, struct frontier_lists *lists)
{
    const int64_t v = b->vertices, e = b->edges;
    const struct {
        int32_t **list;
        int64_t count;
    } all[] = {{&lists->vertex, v},           {&lists->slot, v},           {&lists->round, v},
               {&lists->child_begin, v + 1},  {&lists->child, e},          {&lists->edge_parent, e},
               {&lists->parent_begin, v + 1}, {&lists->parent_edge, e},    {&lists->block_slot, v},
               {&lists->block_rows, v},       {&lists->block_function, v}, {&lists->scratch, 2 * v + 2}};
    int64_t at = sizeof(struct frontier_head) / sizeof(int32_t);
    lists->head = (struct frontier_head *)data;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].list = data ? data + at : NULL;
        at += all[i].count;
    }
    return at;
}

int64_t frontier_count(const struct frontier_bounds *bounds)
{
    struct frontier_lists lists;
    return lay_out(bounds, NULL, &lists);
}

struct frontier_lists frontier_lists_in(const struct frontier_bounds *bounds, int32_t *data)
{
    struct frontier_lists lists;
    lay_out(bounds, data, &lists);
    return lists;
}

/* --- checks --- */

static int32_t begin_of(const struct frontier_graphs *g, int64_t v)
{
    return v ? g->child_end[v - 1] : 0;
}

static graphi_status check_vertex(const char *where, const struct frontier_bounds *b, const struct frontier_graphs *g,
                                  int64_t v)
{
    const int64_t begin = begin_of(g, v), end = g->child_end[v];
    if (end < begin || end > g->edges)
        return fail(GRAPHI_INVALID, where,
                    "found vertex %lld with children from %lld to %lld, expected ends that do "
                    "not fall and at most %lld",
                    (long long)v, (long long)begin, (long long)end, (long long)g->edges);
    if (end - begin > b->children)
        return fail(GRAPHI_INVALID, where, "found vertex %lld with %lld children, expected at most %lld", (long long)v,
                    (long long)(end - begin), (long long)b->children);
    if (g->function && (g->function[v] < 0 || g->function[v] >= b->functions))
        return fail(GRAPHI_INVALID, where, "found function %d at vertex %lld, expected 0 to %lld", g->function[v],
                    (long long)v, (long long)b->functions - 1);
    for (int64_t i = begin; i < end; i++)
        if (g->child[i] < 0 || g->child[i] >= g->vertices)
            return fail(GRAPHI_INVALID, where, "found child %d at vertex %lld, expected 0 to %lld", g->child[i],
                        (long long)v, (long long)g->vertices - 1);
    return GRAPHI_OK;
}

static graphi_status check_graphs(const char *where, const struct frontier_bounds *b, const struct frontier_graphs *g)
{
    if (g->vertices < 1 || g->vertices > b->vertices || g->edges > b->edges)
        return fail(GRAPHI_INVALID, where, "found %lld vertices and %lld edges, expected 1 to %lld, at most %lld",
                    (long long)g->vertices, (long long)g->edges, (long long)b->vertices, (long long)b->edges);
    for (int64_t v = 0; v < g->vertices; v++)
        TRY(check_vertex(where, b, g, v));
    return GRAPHI_OK;
}

/* --- rounds --- */

/* Parents of each vertex, by vertex: begin in parent_begin (one place up while counted), list in parent_edge. */
static void list_parents(const struct frontier_graphs *g, const struct frontier_lists *l)
{
    memset(l->parent_begin, 0, sizeof(int32_t) * (size_t)(g->vertices + 1));
    for (int32_t e = 0; e < l->head->edges; e++)
        l->parent_begin[g->child[e] + 1]++;
    for (int64_t v = 0; v < g->vertices; v++)
        l->parent_begin[v + 1] += l->parent_begin[v];
    int32_t *next = l->scratch;
    memcpy(next, l->parent_begin, sizeof(int32_t) * (size_t)g->vertices);
    for (int64_t v = 0; v < g->vertices; v++)
        for (int32_t e = begin_of(g, v); e < g->child_end[v]; e++)
            l->parent_edge[next[g->child[e]]++] = (int32_t)v;
}

/* A vertex of a cycle: from one that never became ready, along children that did not either. */
static graphi_status tell_cycle(const char *where, const struct frontier_graphs *g, const struct frontier_lists *l)
{
    int32_t v = 0;
    while (l->round[v] >= 0)
        v++;
    for (int64_t steps = 0; steps < g->vertices; steps++)
        for (int32_t e = begin_of(g, v); e < g->child_end[v]; e++)
            if (l->round[g->child[e]] < 0) {
                v = g->child[e];
                break;
            }
    return fail(GRAPHI_INVALID, where, "found a cycle through vertex %d, expected graphs without cycles", v);
}

/* Kahn's algorithm: a vertex is ready when all of its children are done; its round is one more than their last. */
static graphi_status find_rounds(const char *where, const struct frontier_graphs *g, const struct frontier_lists *l)
{
    int32_t *waiting = l->scratch, *queue = l->slot, done = 0, ready = 0;
    list_parents(g, l);
    l->head->rounds = 0;
    for (int64_t v = 0; v < g->vertices; v++) {
        waiting[v] = g->child_end[v] - begin_of(g, v);
        l->round[v] = waiting[v] ? -1 : 0;
        if (!waiting[v])
            queue[ready++] = (int32_t)v;
    }
    for (; done < ready; done++) { /* rounds do not fall along the queue, so the last child says */
        const int32_t child = queue[done], next = l->round[child] + 1;
        l->head->rounds = next > l->head->rounds ? next : l->head->rounds;
        for (int32_t p = l->parent_begin[child]; p < l->parent_begin[child + 1]; p++)
            if (!--waiting[l->parent_edge[p]]) {
                l->round[l->parent_edge[p]] = next;
                queue[ready++] = l->parent_edge[p];
            }
    }
    return done == g->vertices ? GRAPHI_OK : tell_cycle(where, g, l);
}

/* --- slots --- */

/* Stable counting sorts, by round, then by function. */
static void sort_slots(const struct frontier_graphs *g, const struct frontier_lists *l)
{
    struct frontier_head *h = l->head;
    int32_t *begin = l->scratch, *by_round = l->scratch + g->vertices + 1;
    memset(begin, 0, sizeof(int32_t) * (size_t)(h->rounds + 1));
    memset(h->function_begin, 0, sizeof h->function_begin);
    for (int64_t v = 0; v < g->vertices; v++) {
        begin[l->round[v] + 1]++;
        h->function_begin[(g->function ? g->function[v] : 0) + 1]++;
    }
    for (int32_t r = 0; r < h->rounds; r++)
        begin[r + 1] += begin[r];
    for (int f = 0; f < FRONTIER_FUNCTIONS; f++)
        h->function_begin[f + 1] += h->function_begin[f];
    for (int64_t v = 0; v < g->vertices; v++)
        by_round[begin[l->round[v]]++] = (int32_t)v;
    int32_t next[FRONTIER_FUNCTIONS];
    memcpy(next, h->function_begin, sizeof next);
    for (int64_t i = 0; i < g->vertices; i++) {
        const int32_t v = by_round[i], slot = next[g->function ? g->function[v] : 0]++;
        l->vertex[slot] = v;
        l->slot[v] = slot;
    }
}

static void list_edges(const struct frontier_graphs *g, const struct frontier_lists *l)
{
    struct frontier_head *h = l->head;
    int32_t e = 0;
    memset(l->parent_begin, 0, sizeof(int32_t) * (size_t)(g->vertices + 1));
    for (int64_t s = 0; s < g->vertices; s++) {
        const int32_t v = l->vertex[s];
        l->child_begin[s] = e;
        for (int32_t i = begin_of(g, v); i < g->child_end[v]; i++, e++) {
            l->child[e] = l->slot[g->child[i]];
            l->edge_parent[e] = (int32_t)s;
            l->parent_begin[l->child[e] + 1]++;
        }
    }
    l->child_begin[g->vertices] = e;
    for (int f = 0; f <= FRONTIER_FUNCTIONS; f++)
        h->function_edge[f] = l->child_begin[h->function_begin[f]];
    for (int64_t s = 0; s < g->vertices; s++)
        l->parent_begin[s + 1] += l->parent_begin[s];
    int32_t *next = l->scratch;
    memcpy(next, l->parent_begin, sizeof(int32_t) * (size_t)g->vertices);
    for (int64_t v = 0; v < g->vertices; v++) { /* parents in the order of vertices */
        const int32_t s = l->slot[v];
        for (int32_t i = l->child_begin[s]; i < l->child_begin[s + 1]; i++)
            l->parent_edge[next[l->child[i]]++] = i;
    }
}

/* Rows from `slot` on, before `end`, of one round, that a block may have. */
static int32_t block_of(const struct frontier_bounds *b, const struct frontier_lists *l, int32_t slot, int32_t end,
                        int32_t round)
{
    const int64_t rows = frontier_block_rows(b), edges = frontier_block_edges(b);
    int32_t s = slot;
    while (s < end && l->round[l->vertex[s]] == round && s - slot < rows &&
           l->child_begin[s + 1] - l->child_begin[slot] <= edges)
        s++;
    return s - slot;
}

static void cut_blocks(const struct frontier_bounds *b, const struct frontier_lists *l)
{
    struct frontier_head *h = l->head;
    int32_t next[FRONTIER_FUNCTIONS], blocks = 0;
    memcpy(next, h->function_begin, sizeof next);
    for (int32_t round = 0; round < h->rounds; round++)
        for (int f = 0; f < b->functions; f++)
            for (int32_t rows; (rows = block_of(b, l, next[f], h->function_begin[f + 1], round)); next[f] += rows) {
                l->block_slot[blocks] = next[f];
                l->block_rows[blocks] = rows;
                l->block_function[blocks++] = f;
            }
    h->blocks = blocks;
}

graphi_status frontier_order(const char *where, const struct frontier_bounds *b, const struct frontier_graphs *g,
                             const struct frontier_lists *l)
{
    *l->head = (struct frontier_head){0};
    TRY(check_graphs(where, b, g));
    l->head->vertices = (int32_t)g->vertices;
    l->head->edges = g->child_end[g->vertices - 1];
    TRY(find_rounds(where, g, l));
    sort_slots(g, l);
    list_edges(g, l);
    cut_blocks(b, l);
    return GRAPHI_OK;
}

/* --- kernel --- */

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct frontier_bounds *b = call->params;
    const struct frontier_lists lists = frontier_lists_in(b, call->out[0].data);
    const struct frontier_graphs graphs = {.vertices = call->in[0].rows,
                                           .edges = call->in[1].rows,
                                           .child_end = call->in[0].data,
                                           .child = call->in[1].data,
                                           .function = b->functions > 1 ? call->in[2].data : NULL};
    return frontier_order("frontier", b, &graphs, &lists);
}

graphi_status frontier_bind(const struct frontier_bounds *bounds, struct kernel *kernel)
{
    const struct kernel like = {.name = "frontier",
                                .run = run,
                                .phases = 1,
                                .shares = {1},
                                .bytes = 8 * (double)frontier_count(bounds),
                                .flops = 8 * (double)(bounds->vertices + bounds->edges)};
    return kernel_make(like, bounds, sizeof *bounds, kernel);
}
