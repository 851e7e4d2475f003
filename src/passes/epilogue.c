/* SPDX-License-Identifier: Apache-2.0 */
/* Bias, activation and the like run on the tiles of the product or convolution that made their input, while they are
 * hot.
 *
 * From a product on, a chain of element-wise nodes is followed while each intermediate result has one reader; the
 * other operands of a link must be there before the product could start (smaller depth), so that no product waits for
 * another: the four gates of an LSTM stay parallel. Vectors that follow from parameters and inputs element by element
 * (the slopes of a batch normalization) are there in no time. Parameters of the full shape, and any full operand
 * behind a weight gradient, end the chain: an optimizer's update belongs to its own program, which writes in place. */
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

/* The node that can be taken next after `value`, -1: none. */
static int32_t next_link(const struct chain *c, int32_t value)
{
    const struct value *result = graph_value(c->graph, value);
    if (!uses_count(&c->uses, value) || c->uses.output[value] || result->assigns >= 0)
        return -1;
    int32_t user = c->uses.list[c->uses.begin[value]];
    for (int32_t u = c->uses.begin[value]; u < c->uses.begin[value + 1]; u++)
        if (c->uses.list[u] != user)
            return -1;
    const struct node *node = graph_node(c->graph, user);
    if (!node->kind || !(node->kind->flags & OP_ELEMENTWISE) || node->outputs != 1 ||
        node->inputs > PROGRAM_MAX_INPUTS || node->backward != graph_node(c->graph, c->host)->backward ||
        !type_equal(&result->type, &graph_value(c->graph, node->output)->type))
        return -1;
    for (int k = 0; k < node->inputs; k++)
        if (node->input[k] != value && !operand_fits(c, node->input[k], &result->type))
            return -1;
    return user;
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

/* Follows the chain, giving its last value. */
static int32_t follow(struct chain *c, int32_t value)
{
    enum { LONGEST = 24 };
    c->links = c->extras = 0;
    for (int32_t node; c->links < LONGEST && (node = next_link(c, value)) >= 0;
         value = graph_node(c->graph, node)->output) {
        int before = c->extras;
        for (int k = 0; k < graph_node(c->graph, node)->inputs; k++) {
            int32_t v = graph_node(c->graph, node)->input[k];
            if (v != value && !is_immediate(graph_value(c->graph, v)) && !take_operand(c, v)) {
                c->extras = before;
                return value;
            }
        }
        c->link[c->links++] = node;
    }
    return value;
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

/* False when the chain is longer than a program. */
static bool write_program(struct chain *c, int32_t product)
{
    c->program = (struct program){.inputs = 1 + c->extras, .outputs = 1};
    int16_t number = 0;
    int32_t value = product;
    for (int i = 0; i < c->links; i++) {
        const struct node *node = graph_node(c->graph, c->link[i]);
        int16_t argument[PROGRAM_MAX_INPUTS];
        for (int k = 0; k < node->inputs; k++) {
            argument[k] = node->input[k] == value ? number : operand_number(c, node->input[k]);
            if (argument[k] < 0)
                return false;
        }
        if (elementwise_append(node, argument, &c->program, &number) != GRAPHI_OK)
            return false;
        value = node->output;
    }
    c->program.output[0] = number;
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
        if (is_early(c, node))
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
        int32_t product = graph_node(graph, c.host)->output, last = follow(&c, product);
        if (last != product && write_program(&c, product))
            status = emit(&c, last, &map);
    }
    uses_close(&c.uses);
    mem_free(c.depth);
    return map_end(&map, graph, status);
}
