/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of vertex functions: what their attributes say, and how they are put together from regions. */
#include "ops/vertices.h"

#include "base/hash.h"
#include "ops/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading a node --- */

int64_t vertices_output(const char *name)
{
    char *end;
    if (name[0] != 'o' || name[1] < '0' || name[1] > '9')
        return -1;
    const long k = strtol(name + 1, &end, 10);
    return *end || k > INT16_MAX ? -1 : k;
}

int vertices_body_inputs(const graphi_graph *body, int32_t *list)
{
    int count = 0;
    for (size_t v = 0; v < body->values.count; v++)
        if (graph_value(body, (int32_t)v)->kind == VALUE_INPUT)
            list[count++] = (int32_t)v;
    return count;
}

static graphi_status read_gathers(const char *where, const struct vertices_node *n, const int64_t *ints, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t *g = ints + 4 * i;
        if (g[0] < 0 || g[0] >= n->states || g[1] < VERTICES_CHILD || g[1] > VERTICES_EACH || g[2] < 0 ||
            (n->backward && g[3] < 0))
            return fail(GRAPHI_INVALID, where,
                        "found gather %lld of state %lld, work %lld, child %lld, expected what "
                        "the builder makes",
                        (long long)i, (long long)g[0], (long long)g[1], (long long)g[2]);
    }
    return GRAPHI_OK;
}

/* The attribute "format": of each function how many rows, gathers and weights, then its gathers. */
static graphi_status read_format(const char *where, const struct node *node, struct vertices_node *out)
{
    const int64_t *ints;
    const int64_t count = attr_ints(node, "format", &ints);
    int64_t at = 0, input = 1;
    for (int64_t i = 0; out->backward && i < out->states; i++)
        input += out->seeds >> i & 1;
    for (int f = 0; f < out->functions; f++) {
        struct vertices_function *function = &out->function[f];
        const int64_t gathers = at + 3 <= count ? ints[at + 1] : -1;
        if (gathers < 0 || gathers > count || at + 3 + 4 * gathers > count || ints[at] < 0 || ints[at + 2] < 0 ||
            ints[at] > node->inputs || ints[at + 2] > node->inputs)
            return fail(GRAPHI_INVALID, where, "found a format of %lld numbers, expected those of %d functions",
                        (long long)count, out->functions);
        *function = (struct vertices_function){.body = node->region[f],
                                               .rows = ints[at],
                                               .gathers = gathers,
                                               .weights = ints[at + 2],
                                               .gather = (const struct vertices_gather *)(ints + at + 3),
                                               .input = (int)input};
        TRY(read_gathers(where, out, ints + at + 3, gathers));
        input += function->rows + function->weights;
        at += 3 + 4 * gathers;
    }
    if (at != count || input != node->inputs)
        return fail(GRAPHI_INVALID, where, "found %d inputs, expected %lld of this format", node->inputs,
                    (long long)input);
    return GRAPHI_OK;
}

graphi_status vertices_node_of(const char *where, const struct node *node, struct vertices_node *out)
{
    *out = (struct vertices_node){.backward = strcmp(node->kind->name, "vertices") != 0};
    TRY(vertex_bounds_of(where, node, &out->bounds));
    out->functions = (int)out->bounds.functions;
    out->states = attr_ints(node, "states", &out->width);
    out->seeds = attr_int(node, "seeds");
    const int symbols = attr_ints(node, "symbols", &out->symbol);
    if (node->regions != out->functions || out->states < 1 || out->states > VERTICES_STATES || out->seeds < 0 ||
        symbols != 1 + 2 * out->functions)
        return fail(GRAPHI_INVALID, where, "found %d regions, %lld states, %d symbols, expected %d, 1 to %d, %d",
                    node->regions, (long long)out->states, symbols, out->functions, VERTICES_STATES,
                    1 + 2 * out->functions);
    return read_format(where, node, out);
}

/* --- putting together --- */

graphi_graph *vertices_body(graphi_graph *graph, const struct frontier_bounds *bounds)
{
    graphi_graph *body = NULL;
    graphi_status status = graphi_graph_create(&body);
    if (status) {
        graph_broken(graph, status);
        return NULL;
    }
    body->vertex_function = true;
    graphi_symbol(body, "vertices", bounds->vertices);
    graphi_symbol(body, "edges", bounds->edges);
    const int64_t count = frontier_count(bounds);
    graphi_input(body, "frontier", GRAPHI_I32, 1, &count);
    if (body->status == GRAPHI_OK)
        return body;
    graph_broken(graph, graphi_graph_status(body));
    graphi_graph_destroy(body);
    return NULL;
}

graphi_value vertices_copy_value(struct vertices_copy *copy, int32_t value)
{
    const struct value *v = graph_value(copy->from, value);
    if (copy->map[value] == GRAPHI_NONE && v->kind == VALUE_CONSTANT)
        copy->map[value] = graph_constant(copy->to, &v->type, v->data);
    return copy->map[value];
}

bool vertices_transposes(const graphi_graph *graph, const struct node *node)
{
    return node_is(node, IS_PRODUCT) && product_trans_b(node) && product_pairs(node) == 1 &&
           graph_value(graph, node->input[1])->type.symbol < 0 && graph_value(graph, node->input[1])->type.rank == 2 &&
           graph_value(graph, node->input[1])->kind != VALUE_CONSTANT;
}

graphi_value vertices_transpose(graphi_graph *graph, graphi_value matrix)
{
    static const int64_t perm[] = {1, 0};
    const graphi_attribute attribute = ints_attribute("perm", perm, 2);
    return graphi_op(graph, "transpose", 1, &matrix, 1, &attribute);
}

void vertices_copy_node(struct vertices_copy *copy, int32_t id)
{
    const struct node *node = graph_node(copy->from, id);
    const bool transposed = copy->transposed && vertices_transposes(copy->from, node);
    graphi_value *input = mem_zalloc_array((size_t)node->inputs + 1, sizeof *input);
    graphi_attribute *attribute = mem_zalloc_array((size_t)node->attributes + 1, sizeof *attribute);
    if (!input || !attribute) {
        graph_broken(copy->to, fail_memory("vertices", sizeof *input * (size_t)node->inputs));
    } else {
        for (int k = 0; k < node->inputs; k++)
            input[k] =
                transposed && k == 1 ? copy->transposed[node->input[k]] : vertices_copy_value(copy, node->input[k]);
        for (int i = 0; i < node->attributes; i++) {
            attribute[i] = node->attribute[i];
            if (strcmp(attribute[i].name, "symbol") == 0 && attribute[i].i >= 0 && attribute[i].i < 2)
                attribute[i].i = copy->symbol[attribute[i].i];
        }
        if (transposed)
            attribute[PRODUCT_TRANS_B].i = 0;
        const graphi_value out =
            graph_append(copy->to, node->kind, node->inputs, input, node->attributes, attribute, 0, NULL);
        for (int k = 0; out != GRAPHI_NONE && k < node->outputs; k++)
            copy->map[node->output + k] = out + k;
    }
    mem_free(input);
    mem_free(attribute);
}

void vertices_type_put(int64_t ints[VERTICES_TYPE], int function, enum vertices_rows rows,
                       const struct value_type *type)
{
    memset(ints, 0, sizeof *ints * VERTICES_TYPE);
    ints[0] = function;
    ints[1] = rows;
    ints[2] = type->dtype;
    ints[3] = type->rank;
    for (int i = 0; i < type->rank; i++)
        ints[4 + i] = type->dims[i];
}

void vertices_build_output(struct vertices_build *b, int function, graphi_graph *body, graphi_value value)
{
    const struct value_type *type = &graph_value(body, value)->type;
    int64_t ints[VERTICES_TYPE];
    char name[24];
    vertices_type_put(ints, function, type->symbol == BODY_EDGES ? VERTICES_EDGES : VERTICES_ROWS, type);
    for (int i = 0; i < VERTICES_TYPE; i++)
        b->broken |= !array_push(&b->types, ints[i]);
    snprintf(name, sizeof name, "o%d", b->outputs++);
    graphi_output(body, name, value);
}

void vertices_build_function(struct vertices_build *b, int64_t rows, int64_t gathers, int64_t weights,
                             const struct vertices_gather *gather)
{
    const int64_t head[] = {rows, gathers, weights};
    for (int i = 0; i < 3; i++)
        b->broken |= !array_push(&b->format, head[i]);
    for (int64_t i = 0; i < 4 * gathers; i++)
        b->broken |= !array_push(&b->format, ((const int64_t *)gather)[i]);
}

/* The node over the regions gathered; takes them. Gives its first output. */
graphi_value vertices_build_end(struct vertices_build *b, const struct op_kind *kind)
{
    int64_t bounds[VERTEX_BOUNDS], hash = 0;
    const int functions = (int)b->bounds.functions;
    graphi_value out = GRAPHI_NONE;
    for (int f = 0; f < functions && b->graph->status == GRAPHI_OK; f++)
        if (graph_broken(b->graph, graphi_graph_status(b->body[f])), b->graph->status == GRAPHI_OK)
            hash = (int64_t)hash_u64((uint64_t)hash, graph_hash(b->body[f]));
    if (b->broken)
        graph_broken(b->graph, fail_memory(kind->name, b->types.count * sizeof(int64_t)));
    vertex_bounds_put(&b->bounds, bounds);
    const graphi_attribute attributes[] = {ints_attribute("bounds", bounds, VERTEX_BOUNDS),
                                           ints_attribute("states", b->width, (int)b->states),
                                           ints_attribute("format", b->format.data, (int)b->format.count),
                                           ints_attribute("types", b->types.data, (int)b->types.count),
                                           ints_attribute("symbols", b->symbol, 1 + 2 * functions),
                                           int_attribute("outputs", b->outputs),
                                           int_attribute("seeds", b->seeds),
                                           int_attribute("bodies", hash)};
    if (b->graph->status == GRAPHI_OK)
        out = graph_append(b->graph, kind, (int)b->inputs.count, b->inputs.data,
                           sizeof attributes / sizeof *attributes, attributes, functions, b->body);
    else
        for (int f = 0; f < functions; f++)
            graphi_graph_destroy(b->body[f]);
    array_free(&b->format);
    array_free(&b->types);
    array_free(&b->inputs);
    return out;
}
