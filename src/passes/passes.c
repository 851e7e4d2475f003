/* SPDX-License-Identifier: Apache-2.0 */
/* The table of passes, its switches, and what passes share. */
#include "passes/passes.h"

#include "graph/op.h"
#include "graphi/plan.h"

#include <string.h>

/* X(name, always, asked, summary) */
#define PASS_LIST(X)                                                                                                   \
    X(inline, true, false, "calls of sub-graphs become their bodies")                                                  \
    X(images, true, false, "convolutions read images of bfloat16 as float32 numbers")                                  \
    X(order, true, false, "updates of parameters follow every reader of the old content")                              \
    X(dead, false, false, "operations that nothing depends on are removed")                                            \
    X(norm, false, false, "batch normalization by given statistics is element-wise work, which fuses")                 \
    X(fold, false, false, "operations on constants are computed once")                                                 \
    X(identities, false, false, "x*1, x+0, reshape of reshape, transpose of transpose")                                \
    X(cse, false, false, "equal operations on equal values are computed once")                                         \
    X(pool, false, false, "relu and bias gradients work on the results of a max-pool rather than on its image")        \
    X(sums, false, false, "a sum of matrix products is one product of several pairs")                                  \
    X(reduce, false, false, "a sum over time of gradients of a weight, or of a bias, is one batch-reduce product")     \
    X(tables, false, false, "a sum over time of gradients of a table of embeddings is one, of all ids")                \
    X(merge, false, true, "products and convolutions that share an input are one (may alter rounding)")                \
    X(ready, false, false, "sums of products are in the order in which their operands are there")                      \
    X(batch, false, false, "products of few rows by one weight that do not wait for each other are one")               \
    X(stages, false, false, "many cores begin sums of products before their last operands are there")                  \
    X(epilogue, false, false, "bias and activation run on the tiles of the product or convolution before them")        \
    X(bands, false, false, "a pool works on some rows of its convolution at a time, whose image is never whole")       \
    X(recompute, false, false, "what follows from small values or one kept array is made again in the backward pass")  \
    X(fusion, false, false, "connected element-wise operations are one program")                                       \
    X(pack, false, false, "weights are packed once for all products that read them")                                   \
    X(round, false, false, "images that several convolutions round to bfloat16 are rounded once")                      \
    X(reuse, false, false, "operations on one weight follow each other where all weights are more than the caches hold")

const struct pass passes[] = {
#define X(name, always, asked, summary) {#name, summary, pass_##name, always, asked},
    PASS_LIST(X)
#undef X
    {0},
};

/* The name of a pass that can be switched, by `always` of the table. */
#define SWITCHED_true(name) ""
#define SWITCHED_false(name) ", " #name

#define X(name, always, asked, summary) SWITCHED_##always(name)
static const char switched[] = "all, none" PASS_LIST(X);
#undef X

bool graphi_pass_at(int index, graphi_pass *pass)
{
    static const int count = sizeof passes / sizeof *passes - 1;
    if (index < 0 || index >= count)
        return false;
    const struct pass *p = &passes[index];
    *pass = (graphi_pass){.name = p->name, .summary = p->summary, .always = p->always, .on_request = p->asked};
    return true;
}

/* Calls of the next word of a comma-separated list; 0 at its end. */
static size_t next_word(const char **list, const char **word)
{
    *list += strspn(*list, ", ");
    *word = *list;
    size_t size = strcspn(*list, ", ");
    *list += size;
    return size;
}

/* Does a word of the list mean this pass? "all" means every pass that is not asked for, "none" none. */
static bool means(const struct pass *pass, const char *word, size_t size)
{
    bool all = size == 3 && strncmp(word, "all", 3) == 0;
    return (all && !pass->asked) || (strlen(pass->name) == size && strncmp(word, pass->name, size) == 0);
}

bool pass_enabled(const struct pass *pass, const char *disable)
{
    bool enabled = !pass->asked;
    const char *list = disable ? disable : "", *word;
    for (size_t size; (size = next_word(&list, &word));) {
        bool plus = *word == '+';
        if (means(pass, word + plus, size - plus))
            enabled = plus;
    }
    return enabled || pass->always;
}

uint64_t passes_mask(const char *disable)
{
    uint64_t mask = 0;
    _Static_assert(sizeof passes / sizeof *passes <= 64, "a bit for each pass");
    for (const struct pass *pass = passes; pass->name; pass++)
        mask = mask << 1 | pass_enabled(pass, disable);
    return mask;
}

graphi_status graphi_pass_check(const char *disable)
{
    const char *list = disable ? disable : "", *word;
    for (size_t size; (size = next_word(&list, &word));) {
        bool plus = *word == '+', known = size == 4 && strncmp(word, "none", 4) == 0;
        for (const struct pass *pass = passes; pass->name; pass++)
            known |= !pass->always && means(pass, word + plus, size - plus);
        if (!known)
            return fail(GRAPHI_USAGE, "passes", "found '%.*s', expected %s", (int)size, word, switched);
    }
    return GRAPHI_OK;
}

graphi_status passes_run(graphi_graph *graph, const struct pass_options *options)
{
    TRY(graphi_pass_check(options->disable));
    for (const struct pass *pass = passes; pass->name; pass++)
        if (pass_enabled(pass, options->disable))
            TRY(pass->run(graph, options));
    if (pass_enabled(&(struct pass){.name = "dead"}, options->disable))
        TRY(pass_dead(graph, options));
    return pass_order(graph, options);
}

graphi_status pass_inline(graphi_graph *graph, const struct pass_options *options) { return graph_inline(graph); }

/* Edges are made anew: those that earlier passes inherited may order nodes that read the parameter no longer. */
graphi_status pass_order(graphi_graph *graph, const struct pass_options *options)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        graph->nodes.data[i].afters = 0;
    TRY(graph_order_updates(graph));
    return graph_compact(graph);
}

/* Identity up to the graph's last value. */
static bool map_reach(struct value_map *map, const graphi_graph *graph)
{
    if (!array_grow((void **)&map->to, map->count, &map->capacity, sizeof *map->to, graph->values.count))
        return false;
    for (; map->count < graph->values.count; map->count++)
        map->to[map->count] = (int32_t)map->count;
    return true;
}

int32_t map_follow(const struct value_map *map, int32_t value)
{
    while ((size_t)value < map->count && map->to[value] != value)
        value = map->to[value];
    return value;
}

graphi_status map_set(struct value_map *map, const graphi_graph *graph, int32_t value, int32_t to)
{
    if (!map_reach(map, graph))
        return fail_memory("passes", graph->values.count * sizeof *map->to);
    map->to[value] = to;
    return GRAPHI_OK;
}

graphi_status map_end(struct value_map *map, graphi_graph *graph, graphi_status status)
{
    if (status == GRAPHI_OK && !map_reach(map, graph))
        status = fail_memory("passes", graph->values.count * sizeof *map->to);
    if (status == GRAPHI_OK) {
        graph_remap(graph, map->to);
        status = graph_compact(graph);
    }
    mem_free(map->to);
    *map = (struct value_map){0};
    return status;
}

graphi_status uses_open(const graphi_graph *graph, struct uses *uses)
{
    uses->output = graph_mark_outputs(graph);
    return uses->output ? graph_users(graph, &uses->begin, &uses->list) : fail_memory("passes", graph->values.count);
}

void uses_close(struct uses *uses)
{
    mem_free(uses->output);
    mem_free(uses->begin);
    mem_free(uses->list);
    *uses = (struct uses){0};
}

bool uses_once(const struct uses *uses, const graphi_graph *graph, int32_t value)
{
    return uses_count(uses, value) == 1 && !uses->output[value] && graph_value(graph, value)->assigns < 0;
}

bool is_immediate(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->type.rank == 0 && value->type.dtype == GRAPHI_F32;
}

bool constant_is(const graphi_graph *graph, int32_t value, float number)
{
    enum { MOST = 4096 };
    const struct value *v = graph_value(graph, value);
    if (v->kind != VALUE_CONSTANT || v->type.dtype != GRAPHI_F32 || type_count(&v->type) > MOST)
        return false;
    for (int64_t i = 0; i < type_count(&v->type); i++)
        if (((const float *)v->data)[i] != number)
            return false;
    return true;
}

void adopt(graphi_graph *graph, int32_t first, const struct node *node)
{
    for (size_t i = (size_t)first; i < graph->nodes.count; i++) {
        graph->nodes.data[i].order = node->order;
        graph->nodes.data[i].origin = node->origin;
        graph->nodes.data[i].scope = node->scope;
        graph->nodes.data[i].backward = node->backward;
    }
}

bool same_type(const graphi_graph *graph, int32_t a, int32_t b)
{
    return type_equal(&graph_value(graph, a)->type, &graph_value(graph, b)->type);
}

bool is_kind(const struct node *node, const char *kind) { return node->kind && strcmp(node->kind->name, kind) == 0; }

bool is_plain_product(const struct node *node)
{
    const int64_t *program;
    return is_kind(node, "matmul") && !attr_int(node, "packed_b") && !attr_int(node, "base") &&
           attr_ints(node, "program", &program) <= 0;
}
