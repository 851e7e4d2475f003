/* SPDX-License-Identifier: Apache-2.0 */
/* Vertex functions as a node: shape rules and the table. The loop over rounds is the kernel's; the builder (dynamic.c)
 * and the gradient leave in the regions only what has to be in the loop. */
#include "ops/vertices.h"

#include <string.h>

/* --- shape --- */

static graphi_status output_type(const struct shape_call *call, const struct vertices_node *n, const int64_t *ints,
                                 struct value_type *out)
{
    struct value_type type = {.dtype = (graphi_dtype)ints[2], .rank = (int)ints[3], .symbol = -1};
    bool good = (type.dtype == GRAPHI_F32 || type.dtype == GRAPHI_I32) && ints[3] >= 1 && ints[3] <= GRAPHI_MAX_RANK &&
                ints[0] >= 0 && ints[0] < n->functions && ints[1] >= VERTICES_FIXED && ints[1] <= VERTICES_SLOTS;
    for (int i = 0; good && i < type.rank; i++) {
        type.dims[i] = ints[4 + i];
        good = type.dims[i] >= 1 && type.dims[i] <= TYPE_MOST_BYTES;
    }
    if (!good)
        return fail(GRAPHI_INVALID, call->where, "found output types that are none, expected what the builder makes");
    const int64_t *symbol = n->symbol + 1 + 2 * ints[0];
    switch ((enum vertices_rows)ints[1]) {
    case VERTICES_SLOTS:
        return vertex_rows_type(call, n->symbol[0], n->bounds.vertices, &type, out);
    case VERTICES_ROWS:
        return vertex_rows_type(call, symbol[0], n->bounds.vertices, &type, out);
    case VERTICES_EDGES:
        return vertex_rows_type(call, symbol[1], n->bounds.edges, &type, out);
    case VERTICES_FIXED:
        break;
    }
    *out = type;
    return GRAPHI_OK;
}

/* An argument of the node and the region's input that it is: sizes agree, and rows with rows. */
static graphi_status check_input(const struct shape_call *call, const struct value_type *inside, int i)
{
    const struct value_type *given = call->in[i];
    struct value_type wanted = *inside;
    if ((given->symbol >= 0) == (inside->symbol >= 0))
        wanted.symbol = given->symbol;
    return expect_type(call, i, &wanted);
}

static graphi_status check_function(const struct shape_call *call, const struct vertices_node *n, int f)
{
    const struct vertices_function *function = &n->function[f];
    const graphi_graph *body = function->body;
    int32_t *list = mem_zalloc_array(body->values.count + 1, sizeof *list);
    if (!list)
        return fail_memory(call->where, sizeof *list * body->values.count);
    const int64_t inputs = vertices_body_inputs(body, list), middle = n->backward ? n->states : function->gathers;
    graphi_status status = GRAPHI_OK;
    if (inputs != 1 + function->rows + middle + function->weights || body->symbols.count < 2 || body->parameters.count)
        status = fail(GRAPHI_INVALID, call->where, "found %lld inputs of region %d, expected %lld", (long long)inputs,
                      f, (long long)(1 + function->rows + middle + function->weights));
    for (int64_t i = 0; !status && i < function->rows + function->weights; i++)
        status = check_input(call, &graph_value(body, list[1 + i + (i < function->rows ? 0 : middle)])->type,
                             function->input + (int)i);
    for (size_t i = 0; !status && i < body->nodes.count; i++)
        if (graph_node(body, (int32_t)i)->regions ||
            graph_node(body, (int32_t)i)->kind->flags & (OP_RANDOM | OP_EFFECT))
            status = fail(GRAPHI_INVALID, call->where, "found %s in a vertex function, expected work on rows alone",
                          graph_node(body, (int32_t)i)->kind->name);
    mem_free(list);
    return status;
}

static graphi_status check_body_outputs(const struct shape_call *call, const graphi_graph *body)
{
    for (size_t i = 0; i < body->outputs.count; i++) {
        const int64_t k = vertices_output(body->outputs.data[i].name);
        const struct value_type *inside = &graph_value(body, body->outputs.data[i].value)->type;
        if (k < 0 || k >= call->node->outputs)
            return fail(GRAPHI_INVALID, call->where, "found output '%s' of a region, expected o0 to o%d",
                        body->outputs.data[i].name, call->node->outputs - 1);
        struct value_type wanted = call->out[k];
        wanted.symbol = inside->symbol;
        if (!type_equal(&wanted, inside) || inside->symbol < 0)
            return fail(GRAPHI_INVALID, call->where,
                        "found output '%s' of a region of another type, expected that of output %lld",
                        body->outputs.data[i].name, (long long)k);
    }
    return GRAPHI_OK;
}

static graphi_status vertices_shape(const struct shape_call *call)
{
    struct vertices_node n;
    const int64_t *types;
    TRY(vertices_node_of(call->where, call->node, &n));
    TRY(vertex_expect_frontier(call, 0, &n.bounds));
    if (attr_ints(call->node, "types", &types) != VERTICES_TYPE * call->node->outputs)
        return fail(GRAPHI_INVALID, call->where, "found a list of types, expected those of %d outputs",
                    call->node->outputs);
    for (int k = 0; k < call->node->outputs; k++)
        TRY(output_type(call, &n, types + (ptrdiff_t)VERTICES_TYPE * k, &call->out[k]));
    for (int64_t i = 0, input = 1; i < n.states; i++) {
        if (!n.backward || !(n.seeds >> i & 1))
            continue;
        struct value_type wanted = {.dtype = GRAPHI_F32, .rank = 2, .dims = {n.bounds.vertices, n.width[i]}};
        wanted.symbol = (int32_t)n.symbol[0];
        TRY(expect_type(call, (int)input++, &wanted));
    }
    for (int f = 0; f < n.functions; f++) {
        TRY(check_function(call, &n, f));
        TRY(check_body_outputs(call, n.function[f].body));
    }
    return GRAPHI_OK;
}

static double vertices_flops(const struct shape_call *call)
{
    double flops = 0;
    for (int r = 0; r < call->node->regions; r++) {
        const graphi_graph *body = call->node->region[r];
        for (size_t i = 0; i < body->nodes.count; i++)
            if (graph_node(body, (int32_t)i)->kind->flags & OP_GEMM)
                flops += node_flops(body, (int32_t)i);
    }
    return flops;
}

static const struct op_attribute vertices_attributes[] = {
    {.name = "bounds", .meaning = "as of frontier", .type = GRAPHI_INTS, .required = true},
    {.name = "states", .meaning = "columns of each", .type = GRAPHI_INTS, .required = true},
    {.name = "format", .meaning = "what each function reads and gathers", .type = GRAPHI_INTS, .required = true},
    {.name = "types", .meaning = "of results", .type = GRAPHI_INTS, .required = true},
    {.name = "symbols",
     .meaning = "of all vertices, then each function's vertices and edges",
     .type = GRAPHI_INTS,
     .required = true},
    {.name = "outputs", .meaning = "how many", .type = GRAPHI_INT, .required = true},
    {.name = "seeds", .meaning = "of which states there are gradients, a bit each", .type = GRAPHI_INT},
    {.name = "bodies", .meaning = "tells nodes of other functions apart", .type = GRAPHI_INT},
    {0},
};

#define VERTICES(NAME, SUMMARY, SHAPES, OPTIONAL, GRADIENT)                                                            \
    {                                                                                                                  \
        .name = NAME, .role = IS_VERTICES, .summary = SUMMARY, .shapes = SHAPES, .min_inputs = 1, .max_inputs = -1,    \
        .outputs = -1, .optional = OPTIONAL, .attributes = vertices_attributes, .flags = OP_BOUNDED | OP_GEMM,         \
        .scalability = "gemm", .shape = vertices_shape, .gradient = GRADIENT, .flops = vertices_flops,                 \
        .bind = vertices_bind_node                                                                                     \
    }

const struct op_kind ops_vertices[] = {
    VERTICES("vertices", "vertex functions over input graphs in rounds, children first (cavs.txt 3); graphi/dynamic.h",
             "frontier, what the functions pull to states [V,...], what they compute",
             ~UINT64_C(0) << VERTICES_FIRST_KEPT, vertices_rule),
    VERTICES("vertices_gradient", "gradients of vertex functions, parents first",
             "frontier, gradients of states, what the functions computed to gradients of what they read", 0, NULL),
    {0},
};
