/* SPDX-License-Identifier: Apache-2.0 */
/* Bias, activation and the like run on the tiles of the product or convolution that made their input, while they are
 * hot.
 *
 * From a product on, element-wise nodes are taken in their order while what they read is the product, results of nodes
 * taken, or there before the product could start (smaller depth), so that no product waits for another: the four gates
 * of an LSTM stay parallel. They end where all results but the last are read among themselves alone: behind chains and
 * behind diamonds, as x sigmoid(x), hard-swish and GELU are. Vectors that follow from parameters and inputs element by
 * element (the slopes of a batch normalization) are there in no time. Parameters of the full shape, and any full
 * operand behind a weight gradient, end the chain: an optimizer's update belongs to its own program, which writes in
 * place. */
#include "passes/passes.h"
#include "passes/successor.h"

#include "graph/op.h"
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/epilogue.h"
#include "ops/matmul.h"

#include <string.h>

enum { EARLY = -1 }; /* depth of what waits for nothing worth the name */

struct chain {
    graphi_graph *graph;
    struct uses uses;
    int32_t *depth;
    int32_t host;
    int32_t link[PROGRAM_MAX_INSTRUCTIONS]; /* nodes taken */
    int links;
    int32_t extra[PROGRAM_MAX_INPUTS];      /* operands beside the product */
    int extras;
    struct program program;
};

/* Does the node take an epilogue, and has none yet? */
static bool is_host(const struct node *node)
{
    return node_has(node, OP_HOST) && !epilogue_given(node) && node->outputs == 1 &&
           !conv_node_pooled(node); /* else its result is the pool's */
}

static bool operand_fits(const struct chain *c, int32_t v, const struct value_type *type)
{
    const struct value *value = graph_value(c->graph, v);
    if (is_immediate(value))
        return true;
    const struct node *host = graph_node(c->graph, c->host);
    bool weight_gradient = is_weight_gradient(host);
    if ((value->kind == VALUE_PARAMETER || weight_gradient) && type_equal(&value->type, type))
        return false;
    if (value->node >= 0 && c->depth[value->node] >= c->depth[c->host])
        return false;
    return epilogue_accepts(&value->type, type);
}

/* The place of a result among those of the nodes taken, 0: the product; -1: it is none of them. */
static int place_of(const struct chain *c, int32_t value)
{
    if (value == graph_node(c->graph, c->host)->output)
        return 0;
    for (int i = 0; i < c->links; i++)
        if (value == graph_node(c->graph, c->link[i])->output)
            return i + 1;
    return -1;
}

static int32_t result_at(const struct chain *c, int place)
{
    return graph_node(c->graph, place ? c->link[place - 1] : c->host)->output;
}

/* Can the node be taken, whose operands are results of nodes taken or fit? */
static bool takes(const struct chain *c, int32_t id)
{
    const struct node *node = graph_node(c->graph, id), *host = graph_node(c->graph, c->host);
    const struct value_type *type = &graph_value(c->graph, host->output)->type;
    if (!node->kind || !(node->kind->flags & OP_ELEMENTWISE) || node->outputs != 1 ||
        node->inputs > PROGRAM_MAX_INPUTS || node->backward != host->backward || node->derived != host->derived ||
        place_of(c, node->output) >= 0 || !type_equal(type, &graph_value(c->graph, node->output)->type))
        return false;
    for (int k = 0; k < node->inputs; k++)
        if (place_of(c, node->input[k]) < 0 && !operand_fits(c, node->input[k], type))
            return false;
    return true;
}

/* Results that more nodes read end an epilogue: few of them come together again. */
enum { MOST_READERS = 8 };

/* The first of the nodes that can be taken next, -1: none. */
static int32_t next_link(const struct chain *c)
{
    int32_t next = -1;
    for (int i = 0; i <= c->links; i++) {
        const int32_t value = result_at(c, i);
        if (uses_count(&c->uses, value) > MOST_READERS)
            continue;
        for (int32_t u = c->uses.begin[value]; u < c->uses.begin[value + 1]; u++)
            if ((next < 0 || c->uses.list[u] < next) &&
                takes(c, c->uses.list[u]))
                next = c->uses.list[u];
    }
    return next;
}

/* Are all results but the last read by the nodes taken alone? */
static bool is_closed(const struct chain *c)
{
    for (int i = 0; i < c->links; i++) {
        const int32_t value = result_at(c, i);
        if (c->uses.output[value] || graph_value(c->graph, value)->assigns >= 0)
            return false;
        for (int32_t u = c->uses.begin[value]; u < c->uses.begin[value + 1]; u++)
            if (place_of(c, graph_node(c->graph, c->uses.list[u])->output) < 0)
                return false;
    }
    return true;
}

static bool take_operand(struct chain *c, int32_t v)
{
    for (int i = 0; i < c->extras; i++)
        if (c->extra[i] == v)
            return true;
    if (c->extras == PROGRAM_MAX_INPUTS - 1)
        return false;
    c->extra[c->extras++] = v;
    return true;
}

/* Takes the node with its further operands; false: they are too many. */
static bool take(struct chain *c, int32_t id)
{
    const struct node *node = graph_node(c->graph, id);
    for (int k = 0; k < node->inputs; k++) {
        int32_t v = node->input[k];
        if (place_of(c, v) < 0 && !is_immediate(graph_value(c->graph, v)) && !take_operand(c, v))
            return false;
    }
    c->link[c->links++] = id;
    return true;
}

/* Takes the most nodes that can be the epilogue, giving the last one's result. */
static int32_t follow(struct chain *c)
{
    enum { LONGEST = 24 };
    int links = 0, extras = 0;
    c->links = c->extras = 0;
    for (int32_t id; c->links < LONGEST && (id = next_link(c)) >= 0 && take(c, id);)
        if (is_closed(c)) {
            links = c->links;
            extras = c->extras;
        }
    c->links = links;
    c->extras = extras;
    return result_at(c, links);
}

static int16_t operand_number(struct chain *c, int32_t v)
{
    for (int i = 0; i < c->extras; i++)
        if (c->extra[i] == v)
            return (int16_t)(i + 1);
    struct program *p = &c->program;
    if (p->instructions == PROGRAM_MAX_INSTRUCTIONS)
        return -1;
    p->code[p->instructions++] = (struct program_instruction){
        .op = PROGRAM_IMM, .a = -1, .b = -1, .c = -1, .imm = *(const float *)graph_value(c->graph, v)->data};
    return (int16_t)(p->inputs + p->instructions - 1);
}

/* False when there is more than a program can have. */
static bool write_program(struct chain *c)
{
    int16_t number[PROGRAM_MAX_INSTRUCTIONS + 1] = {0};
    c->program = (struct program){.inputs = 1 + c->extras, .outputs = 1};
    for (int i = 0; i < c->links; i++) {
        const struct node *node = graph_node(c->graph, c->link[i]);
        int16_t argument[PROGRAM_MAX_INPUTS];
        for (int k = 0; k < node->inputs; k++) {
            const int place = place_of(c, node->input[k]);
            argument[k] = place >= 0 ? number[place] : operand_number(c, node->input[k]);
            if (argument[k] < 0)
                return false;
        }
        if (elementwise_append(node, argument, &c->program, &number[i + 1]) != GRAPHI_OK)
            return false;
    }
    c->program.output[0] = number[c->links];
    return true;
}

static graphi_status emit(struct chain *c, int32_t last, struct value_map *map)
{
    struct successor s;
    int64_t encoded[PROGRAM_MAX_ENCODED];
    const int32_t id = (int32_t)c->graph->nodes.count, order = graph_node(c->graph, c->host)->order;
    TRY(successor_begin(c->graph, c->host, c->extras, &s));
    memcpy(s.input + s.node.inputs - c->extras, c->extra, sizeof *s.input * (size_t)c->extras);
    graphi_attribute *program = successor_attribute(&s, "program");
    program->ints = encoded;
    program->count = program_encode(&c->program, encoded);
    TRY(successor_place(c->graph, &s, map));
    TRY(map_set(map, c->graph, last, graph_node(c->graph, id)->output));
    for (int i = 0; i < c->links; i++)
        TRY(graph_supersede(c->graph, c->link[i], id));
    c->graph->nodes.data[id].order = order;
    return GRAPHI_OK;
}

/* A vector that follows from parameters and inputs element by element. */
static bool is_early(const struct chain *c, const struct node *node)
{
    if (!node->kind || !(node->kind->flags & OP_ELEMENTWISE) || graph_value(c->graph, node->output)->type.rank > 1)
        return false;
    for (int k = 0; k < node->inputs; k++) {
        int32_t before = graph_value(c->graph, node->input[k])->node;
        if (before >= 0 && c->depth[before] != EARLY)
            return false;
    }
    return true;
}

static graphi_status chain_init(struct chain *c, graphi_graph *graph)
{
    *c = (struct chain){.graph = graph};
    c->depth = mem_zalloc_array(graph->nodes.count + 1, sizeof *c->depth);
    if (!c->depth)
        return fail_memory("epilogue", graph->nodes.count);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph_node(graph, (int32_t)i);
        for (int k = 0; k < node->inputs; k++) {
            int32_t before = graph_value(graph, node->input[k])->node;
            if (before >= 0 && c->depth[before] >= c->depth[i])
                c->depth[i] = c->depth[before] + 1;
        }
        for (int a = 0; a < node->afters; a++)
            if (c->depth[node->after[a]] >= c->depth[i])
                c->depth[i] = c->depth[node->after[a]] + 1;
        if (node->derived || is_early(c, node))
            c->depth[i] = EARLY;
    }
    return uses_open(graph, &c->uses);
}

graphi_status pass_epilogue(graphi_graph *graph, const struct pass_options *options)
{
    struct chain c;
    struct value_map map = {0};
    graphi_status status = chain_init(&c, graph);
    /* Only old nodes are looked at, and a node is in one chain at most: its product is its only way in. Operands that
     * an earlier chain replaced are renamed at the end, with all others. */
    size_t nodes = graph->nodes.count;
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        if (!is_host(graph_node(graph, (int32_t)i)))
            continue;
        c.host = (int32_t)i;
        int32_t product = graph_node(graph, c.host)->output, last = follow(&c);
        if (last != product && write_program(&c))
            status = emit(&c, last, &map);
    }
    uses_close(&c.uses);
    mem_free(c.depth);
    return map_end(&map, graph, status);
}
