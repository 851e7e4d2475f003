/* SPDX-License-Identifier: Apache-2.0 */
/* See made_graphs.h. Vertices are numbered with children first, as readers do. */
#include "tool/made_graphs.h"

#include "tool/report.h"

#include <stdlib.h>
#include <string.h>

/* A batch while it is filled. */
struct maker {
    const graphi_model_info *info;
    uint64_t random;
    int64_t vertices, edges, samples;
    int32_t *sample, *function, *begin, *child, *word, *label;
};

static int64_t below(struct maker *m, int64_t n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((m->random >> 33) % (uint64_t)n);
}

static int32_t add_vertex(struct maker *m, int children, const int32_t *child)
{
    const int64_t v = m->vertices++;
    for (int i = 0; i < children; i++)
        m->child[m->edges++] = child[i];
    m->begin[v + 1] = (int32_t)m->edges;
    m->sample[v] = (int32_t)m->samples;
    m->function[v] = children > 0;
    m->word[v] = (int32_t)below(m, m->info->vocabulary);
    m->label[v] = m->info->classes > 0 ? (int32_t)below(m, m->info->classes) : 0;
    return (int32_t)v;
}

/* Two neighbours are joined until one is left: which two is random, or in order, level by level. */
static void add_binary(struct maker *m, int64_t leaves, bool complete)
{
    int32_t open[1024];
    for (int64_t i = 0; i < leaves; i++)
        open[i] = add_vertex(m, 0, NULL);
    for (int64_t left = leaves; left > 1;) {
        for (int64_t i = 0; complete && i < left / 2; i++)
            open[i] = add_vertex(m, 2, open + 2 * i);
        const int64_t at = complete ? 0 : below(m, left - 1);
        if (!complete) {
            open[at] = add_vertex(m, 2, open + at);
            memmove(open + at + 1, open + at + 2, sizeof *open * (size_t)(left - at - 2));
        }
        left = complete ? left / 2 : left - 1;
    }
}

static void add_chain(struct maker *m, int64_t words)
{
    for (int64_t i = 0; i < words; i++)
        add_vertex(m, i > 0, &(int32_t){(int32_t)m->vertices - 1});
}

/* Any vertex takes up to `most` children of those that are nobody's yet, the last one all. */
static void add_tree(struct maker *m, int64_t words)
{
    int32_t open[1024];
    int64_t count = 0;
    for (int64_t i = 0; i < words; i++) {
        const int64_t take = i + 1 == words ? count : below(m, count < 4 ? count + 1 : 4);
        open[count - take] = add_vertex(m, (int)take, open + count - take);
        count += 1 - take;
    }
}

/* Children are any vertices before; the label is the longest path down from the vertex. */
static void add_general(struct maker *m, int64_t vertices)
{
    const int64_t first = m->vertices;
    for (int64_t i = 0; i < vertices; i++) {
        int32_t child[3];
        const int children = i ? (int)below(m, 4) : 0;
        int32_t longest = -1;
        for (int c = 0; c < children; c++) {
            child[c] = (int32_t)(first + below(m, i));
            longest = m->label[child[c]] > longest ? m->label[child[c]] : longest;
        }
        const int32_t v = add_vertex(m, children, child);
        m->label[v] = longest + 1 < m->info->classes ? longest + 1 : (int32_t)m->info->classes - 1;
    }
}

static void add_sample(struct maker *m)
{
    const char *name = m->info->name;
    const int64_t sample = m->info->vertices / m->info->batch;
    const int64_t most = sample < 1 ? 1 : sample < 1000 ? sample : 1000;
    if (strcmp(name, "treefc") == 0) {
        int64_t leaves = 1;
        while (4 * leaves - 1 <= most)
            leaves *= 2;
        add_binary(m, leaves, true);
    } else if (strcmp(name, "treelstm") == 0) {
        const int64_t leaves = (most + 1) / 2, words = 2 + below(m, 36);
        add_binary(m, words < leaves ? words : leaves, false);
    } else if (strcmp(name, "dependency-treelstm") == 0) {
        add_tree(m, 1 + below(m, most));
    } else if (strcmp(name, "message-passing") == 0) {
        add_general(m, 1 + below(m, most));
    } else {
        add_chain(m, m->info->steps > 1 ? most : 1 + below(m, most));
    }
    m->samples++;
}

static void finish(struct maker *m, struct made_graphs *out)
{
    for (int64_t v = 0; v < m->vertices; v++)
        out->root[v] = v + 1 == m->vertices || m->sample[v + 1] != m->sample[v];
    const bool fc = strcmp(m->info->name, "treefc") == 0;
    out->value[0] = (graphi_vertex_values){"words", GRAPHI_I32, 1, m->word};
    out->value[1] = fc ? (graphi_vertex_values){"root", GRAPHI_F32, 1, out->root}
                       : (graphi_vertex_values){"labels", GRAPHI_I32, 1, m->label};
    out->graphs = (graphi_input_graphs){.samples = m->samples,
                                        .vertices = m->vertices,
                                        .edges = m->edges,
                                        .sample = m->sample,
                                        .function = m->function,
                                        .child_begin = m->begin,
                                        .child = m->child,
                                        .values = 2,
                                        .value = out->value};
}

graphi_status made_graphs(const graphi_model_info *info, uint64_t seed, struct made_graphs *out)
{
    const size_t v = (size_t)info->vertices + 1024, e = (size_t)info->edges + 4096;
    struct maker m = {.info = info, .random = seed * 1000003 + 29};
    *out = (struct made_graphs){.numbers = calloc(5 * v + e + 1, sizeof *out->numbers),
                                .root = calloc(v, sizeof *out->root)};
    if (!out->numbers || !out->root) {
        made_graphs_free(out);
        return report_error(GRAPHI_MEMORY, "input graphs", "found no memory for %zu vertices, expected some", v);
    }
    m.sample = out->numbers;
    m.function = m.sample + v;
    m.begin = m.function + v;
    m.word = m.begin + v + 1;
    m.label = m.word + v;
    m.child = m.label + v;
    while (m.samples < info->batch) {
        const struct maker before = m;
        add_sample(&m);
        if (m.vertices > info->vertices || m.edges > info->edges) {
            m = before;
            break;
        }
    }
    finish(&m, out);
    return GRAPHI_OK;
}

void made_graphs_free(struct made_graphs *made)
{
    free(made->numbers);
    free(made->root);
    *made = (struct made_graphs){0};
}

graphi_frontier_options made_graphs_bounds(const graphi_model_info *info)
{
    return (graphi_frontier_options){
        .vertices = info->vertices, .edges = info->edges, .children = info->children, .functions = info->functions};
}

graphi_status made_graphs_feed(const graphi_model_info *info, uint64_t seed, graphi_run *run)
{
    struct made_graphs made;
    const graphi_frontier_options bounds = made_graphs_bounds(info);
    graphi_frontier *frontier = NULL;
    graphi_status status = made_graphs(info, seed, &made);
    if (status != GRAPHI_OK)
        return status;
    status = graphi_frontier_create(&bounds, &frontier);
    if (status == GRAPHI_OK)
        status = graphi_frontier_feed(frontier, &made.graphs, NULL, run);
    graphi_frontier_destroy(frontier);
    made_graphs_free(&made);
    return status == GRAPHI_OK ? status : report_failure(status);
}
