/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of what a convolution makes becomes part of the convolution (conv_pooled.c): some rows of the image at a time
 * are made and pooled while they are in the cache, and the image as a whole is nowhere. For max and average pools that
 * alone read the image, in the phase in which it is made; neither one's gradient reads it. Whether it pays follows from
 * the shape. The same bits.
 *
 * Epilogues belong to the image, and programs take what follows the pool. Linear in the graph. Usual case: two of
 * GoogLeNet's 57 convolutions, whose images are its largest; PathNet's modules. */
#include "passes/passes.h"
#include "passes/successor.h"

#include "graph/op.h"
#include "ops/conv.h"
#include "ops/pool.h"

struct bands {
    graphi_graph *graph;
    struct uses uses;
    struct value_map map;
    struct conv_node_options about;
};

/* The node that makes the image of pool `id`, which nobody else reads; -1: it is no pool, or there is no such node. */
static int32_t only_source(const struct bands *b, int32_t id)
{
    const struct node *pool = graph_node(b->graph, id);
    if (!node_is(pool, IS_MAX_POOL) && !node_is(pool, IS_AVG_POOL))
        return -1;
    const int32_t image = pool->input[0], source = graph_value(b->graph, image)->node;
    if (source < 0 || !uses_once(&b->uses, b->graph, image))
        return -1;
    const struct node *node = graph_node(b->graph, source);
    return node->kind && node->backward == pool->backward ? source : -1;
}

static bool is_read(const struct bands *b, int32_t value)
{
    return uses_count(&b->uses, value) || b->uses.output[value];
}

/* The convolution made again with the pool in it, its results in place of the pool's. */
static graphi_status take_in(struct bands *b, int32_t source, int32_t id, const struct pool_spec *spec)
{
    const struct node pool = *graph_node(b->graph, id);
    const int outputs = pool.outputs == 2 && is_read(b, pool.output + 1) ? 2 : 1;
    int64_t encoded[POOL_ENCODED];
    struct successor s;
    TRY(successor_begin(b->graph, source, 0, &s));
    graphi_attribute *attribute = successor_attribute(&s, "pool");
    attribute->ints = encoded;
    attribute->count = pool_encode(spec, encoded);
    successor_attribute(&s, "outputs")->i = outputs;
    const int32_t made = (int32_t)b->graph->nodes.count;
    TRY(successor_place(b->graph, &s, &b->map));
    for (int k = 0; k < outputs; k++)
        TRY(map_set(&b->map, b->graph, pool.output + k, graph_node(b->graph, made)->output + k));
    return graph_supersede(b->graph, id, made);
}

graphi_status pass_bands(graphi_graph *graph, const struct pass_options *options)
{
    struct bands b = {.graph = graph, .about = {options->isa, options->multiplicands, options->conv_error}};
    graphi_status status = uses_open(graph, &b.uses);
    const int32_t nodes = (int32_t)graph->nodes.count;
    for (int32_t id = 0; status == GRAPHI_OK && id < nodes; id++) {
        struct pool_spec spec;
        int32_t source = only_source(&b, id);
        if (source >= 0 && conv_node_pools(graph, graph_node(graph, source), &b.about, graph_node(graph, id), &spec))
            status = take_in(&b, source, id, &spec);
    }
    uses_close(&b.uses);
    return map_end(&b.map, graph, status);
}
