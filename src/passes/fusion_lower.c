/* SPDX-License-Identifier: Apache-2.0 */
/* Work moved between the groups of fusion, always to a deeper one: every edge out of what moves still raises the depth
 * then, so groups stay convex. Single nodes first, where that saves memory traffic: a cell of an unrolled network that
 * works on the next one's operands as soon as their common factor is known would write the products, and they are read
 * once. Then whole groups. Linear in the graph, but for values with many readers. */
#include "passes/fusion_lower.h"
#include "passes/fusion_write.h"

#include "graph/op.h"

#include <stdlib.h>
#include <string.h>

/* Followers by `after` edges, as lists: first[node], then link[edge]. */
struct followers {
    int32_t *first, *node, *link;
};

static graphi_status find_followers(const struct fuser *f, struct followers *out)
{
    size_t edges = 0;
    for (int32_t i = 0; i < f->nodes; i++)
        edges += (size_t)graph_node(f->graph, i)->afters;
    out->first = mem_zalloc_array((size_t)f->nodes + 2 * edges + 1, sizeof *out->first);
    if (!out->first)
        return fail_memory("fusion", edges);
    out->node = out->first + f->nodes;
    out->link = out->node + edges;
    memset(out->first, 0xff, (size_t)f->nodes * sizeof *out->first);
    int32_t next = 0;
    for (int32_t i = 0; i < f->nodes; i++)
        for (int a = 0; a < graph_node(f->graph, i)->afters; a++) {
            int32_t before = graph_node(f->graph, i)->after[a];
            out->node[next] = i;
            out->link[next] = out->first[before];
            out->first[before] = next++;
        }
    return GRAPHI_OK;
}

/* Calls for every node that follows a group's member from outside the group. */
static void each_follower(const struct fuser *f, const struct followers *after, int32_t group,
                          void (*visit)(const struct fuser *, int32_t member, int32_t follower, void *), void *context)
{
    for (int32_t id = f->groups[group].head; id >= 0; id = f->next[id]) {
        const struct node *node = graph_node(f->graph, id);
        for (int k = 0; k < node->outputs; k++)
            for (int32_t u = f->uses.begin[node->output + k]; u < f->uses.begin[node->output + k + 1]; u++)
                if (f->group[f->uses.list[u]] != group)
                    visit(f, id, f->uses.list[u], context);
        for (int32_t e = after->first[id]; e >= 0; e = after->link[e])
            if (f->group[after->node[e]] != group)
                visit(f, id, after->node[e], context);
    }
}

struct lowering {
    int32_t target, depth; /* the shallowest compatible consumer group */
    int32_t other;         /* another compatible one of that depth, -1: none */
    bool legal;
};

static void find_target(const struct fuser *f, int32_t member, int32_t follower, void *context)
{
    struct lowering *l = context;
    if (fusion_joins(f, member, follower) && (l->target < 0 || f->depth[follower] < l->depth)) {
        l->target = f->group[follower];
        l->depth = f->depth[follower];
    }
}

static void check_target(const struct fuser *f, int32_t member, int32_t follower, void *context)
{
    struct lowering *l = context;
    bool inside = f->group[follower] == l->target, joins = fusion_joins(f, member, follower);
    if (inside ? joins : f->depth[follower] > l->depth)
        return;
    l->legal = false; /* a sum ends its program: what reads it cannot be inside */
    if (!inside && joins)
        l->other = f->group[follower];
}

static void lower(struct fuser *f, const struct followers *after, int32_t group)
{
    struct lowering l = {.target = -1};
    each_follower(f, after, group, find_target, &l);
    if (l.target < 0)
        return;
    while (!l.legal) {
        l.legal = true;
        l.other = -1;
        each_follower(f, after, group, check_target, &l);
        if (!l.legal && (l.other < 0 || !fusion_fits(f, (int32_t[]){l.target, l.other}, 2, -1)))
            return;
        if (!l.legal)
            fusion_join(f, l.target, l.other);
    }
    if (fusion_fits(f, (int32_t[]){l.target, group}, 2, -1))
        fusion_join(f, l.target, group);
}

struct deep {
    int32_t depth, group;
};

static int deepest_first(const void *a, const void *b)
{
    const struct deep *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    return x->group < y->group ? -1 : 1;
}

/* --- moving nodes to their readers --- */

static int64_t count_of(const struct fuser *f, int32_t value)
{
    return type_count(&graph_value(f->graph, value)->type);
}

/* The group that alone reads the node's result and is not the node's own, -1: none. */
static int32_t only_reader(const struct fuser *f, int32_t id)
{
    int32_t value = graph_node(f->graph, id)->output, group = -1;
    if (f->uses.output[value] || graph_value(f->graph, value)->assigns >= 0)
        return -1;
    for (int32_t u = f->uses.begin[value]; u < f->uses.begin[value + 1]; u++) {
        int32_t reader = f->uses.list[u];
        if (!fusion_joins(f, id, reader) || f->group[reader] == f->group[id] ||
            (group >= 0 && f->group[reader] != group))
            return -1;
        group = f->group[reader];
    }
    return group;
}

static bool reads(const struct node *node, int32_t value)
{
    for (int k = 0; k < node->inputs; k++)
        if (node->input[k] == value)
            return true;
    return false;
}

/* Does a member of the group other than this one read the value? A value may have more readers than groups have
 * members. */
static bool read_beside(const struct fuser *f, int32_t value, int32_t group, int32_t id)
{
    if (f->uses.begin[value + 1] - f->uses.begin[value] > f->groups[group].count) {
        for (int32_t m = f->groups[group].head; m >= 0; m = f->next[m])
            if (m != id && reads(graph_node(f->graph, m), value))
                return true;
        return false;
    }
    for (int32_t u = f->uses.begin[value]; u < f->uses.begin[value + 1]; u++)
        if (f->uses.list[u] != id && f->group[f->uses.list[u]] == group)
            return true;
    return false;
}

static bool is_stored(const struct fuser *f, int32_t value)
{
    bool stored = f->uses.output[value] || graph_value(f->graph, value)->assigns >= 0;
    int32_t group = f->group[graph_value(f->graph, value)->node];
    for (int32_t u = f->uses.begin[value]; !stored && u < f->uses.begin[value + 1]; u++)
        stored = f->group[f->uses.list[u]] != group;
    return stored;
}

/* Elements that are neither written nor read any more when the node is in `to`. */
static int64_t saved_elements(const struct fuser *f, int32_t id, int32_t to)
{
    const struct node *node = graph_node(f->graph, id);
    int64_t saved = 2 * count_of(f, node->output);
    for (int k = 0; k < node->inputs; k++) {
        int32_t value = node->input[k], maker = graph_value(f->graph, value)->node;
        bool again = is_immediate(graph_value(f->graph, value));
        for (int j = 0; j < k; j++)
            again |= node->input[j] == value;
        if (again)
            continue;
        bool inner = maker >= 0 && f->group[maker] == f->group[id];
        if (inner && !is_stored(f, value))
            saved -= count_of(f, value);
        if (!inner && !read_beside(f, value, f->group[id], id))
            saved += count_of(f, value);
        if (!read_beside(f, value, to, id))
            saved -= count_of(f, value);
    }
    return saved;
}

static void sink(struct fuser *f, const struct followers *after, int32_t id)
{
    int32_t to = f->group[id] < 0 || node_is(graph_node(f->graph, id), IS_ASSIGN) ? -1 : only_reader(f, id);
    if (to < 0 || saved_elements(f, id, to) <= 0)
        return;
    for (int32_t e = after->first[id]; e >= 0; e = after->link[e])
        if (f->group[after->node[e]] != to && f->depth[after->node[e]] <= f->groups[to].depth)
            return;
    if (fusion_fits(f, &to, 1, id) && fusion_fits_without(f, f->group[id], id))
        fusion_move(f, id, to);
}

graphi_status fusion_lower(struct fuser *f)
{
    struct followers after;
    TRY(find_followers(f, &after));
    for (int32_t id = f->nodes - 1; id >= 0; id--)
        sink(f, &after, id);
    struct deep *order = mem_zalloc_array((size_t)f->count + 1, sizeof *order);
    int32_t count = 0;
    for (int32_t g = 0; order && g < f->count; g++)
        if (f->groups[g].count)
            order[count++] = (struct deep){f->groups[g].depth, g};
    if (order)
        qsort(order, (size_t)count, sizeof *order, deepest_first);
    for (int32_t i = 0; order && i < count; i++)
        lower(f, &after, order[i].group);
    mem_free(after.first);
    mem_free(order);
    return order ? GRAPHI_OK : fail_memory("fusion", (size_t)f->count);
}
