/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a batch of input graphs, and moves of rows between vertices, slots and edges. Each move is the adjoint
 * of another one (cavs.txt 3.1): take and put, spread and combine. In vertex functions spread and combine are part of
 * the loop; here they run over all rows of a function. */
#include "ops/vertices.h"

#include "ops/build.h"

#include <string.h>

void vertex_bounds_put(const struct frontier_bounds *b, int64_t ints[VERTEX_BOUNDS])
{
    const int64_t all[VERTEX_BOUNDS] = {b->vertices, b->edges, b->children, b->rows, b->functions};
    memcpy(ints, all, sizeof all);
}

graphi_status vertex_bounds_of(const char *where, const struct node *node, struct frontier_bounds *out)
{
    const int64_t *i, most_vertices = 1 << 28;
    const int count = attr_ints(node, "bounds", &i);
    if (count != VERTEX_BOUNDS || i[0] < 1 || i[0] > most_vertices || i[1] < 1 || i[1] > most_vertices || i[2] < 1 ||
        i[2] > i[1] || i[3] < 1 || i[3] > FRONTIER_ROWS || i[4] < 1 || i[4] > FRONTIER_FUNCTIONS)
        return fail(GRAPHI_INVALID, where,
                    "found bounds of %d numbers, expected vertices and edges of 1 to %lld, "
                    "children up to the edges, rows of 1 to %d, functions of 1 to %d",
                    count, (long long)most_vertices, FRONTIER_ROWS, FRONTIER_FUNCTIONS);
    *out = (struct frontier_bounds){i[0], i[1], i[2], i[3], i[4]};
    return GRAPHI_OK;
}

static bool same_bounds(const struct frontier_bounds *a, const struct frontier_bounds *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

graphi_status vertex_expect_frontier(const struct shape_call *call, int input, const struct frontier_bounds *bounds)
{
    const struct value_type wanted = {.dtype = GRAPHI_I32, .rank = 1, .dims = {frontier_count(bounds)}, .symbol = -1};
    TRY(expect_type(call, input, &wanted));
    const int32_t producer = graph_value(call->graph, call->node->input[input])->node;
    if (producer < 0)
        return expect(call, input, call->graph->vertex_function, "the result of frontier");
    struct frontier_bounds of;
    const struct node *node = graph_node(call->graph, producer);
    TRY(expect(call, input, node_is(node, IS_FRONTIER), "the result of frontier"));
    TRY(vertex_bounds_of(call->where, node, &of));
    return expect(call, input, same_bounds(&of, bounds), "the result of a frontier with the same bounds");
}

graphi_status vertex_rows_type(const struct shape_call *call, int64_t symbol, int64_t bound,
                               const struct value_type *like, struct value_type *out)
{
    const graphi_graph *graph = call->graph;
    if (symbol < 0 || symbol >= (int64_t)graph->symbols.count || graph->symbols.data[symbol].bound != bound)
        return fail(GRAPHI_INVALID, call->where, "found symbol %lld, expected one with the bound %lld",
                    (long long)symbol, (long long)bound);
    *out = *like;
    out->dims[0] = bound;
    out->symbol = (int32_t)symbol;
    return GRAPHI_OK;
}

/* --- shapes --- */

static graphi_status frontier_shape(const struct shape_call *call)
{
    struct frontier_bounds b;
    TRY(vertex_bounds_of(call->where, call->node, &b));
    if (call->node->inputs != 2 + (b.functions > 1))
        return fail(GRAPHI_INVALID, call->where, "found %d inputs of %lld functions, expected %d", call->node->inputs,
                    (long long)b.functions, 2 + (b.functions > 1));
    for (int i = 0; i < call->node->inputs; i++) {
        const struct value_type *in = call->in[i];
        const int64_t rows = i == 1 ? b.edges : b.vertices;
        TRY(expect(call, i, in->dtype == GRAPHI_I32 && in->rank == 1 && in->dims[0] == rows,
                   i == 1 ? "int32 [edges]" : "int32 [vertices]"));
    }
    call->out[0] = (struct value_type){.dtype = GRAPHI_I32, .rank = 1, .dims = {frontier_count(&b)}, .symbol = -1};
    return GRAPHI_OK;
}

static enum vertices_move move_of(const struct node *node)
{
    return node_is(node, IS_VERTEX_SPREAD)    ? VERTICES_MOVE_SPREAD
           : node_is(node, IS_VERTEX_COMBINE) ? VERTICES_MOVE_COMBINE
           : node_is(node, IS_VERTEX_PUT)     ? VERTICES_MOVE_PUT
                                              : VERTICES_MOVE_TAKE;
}

static graphi_status move_shape(const struct shape_call *call)
{
    struct frontier_bounds b;
    const struct value_type *x = call->in[1];
    const enum vertices_move move = move_of(call->node);
    TRY(vertex_bounds_of(call->where, call->node, &b));
    TRY(vertex_expect_frontier(call, 0, &b));
    const int64_t function = attr_int(call->node, "function");
    if (function < 0 || function >= b.functions)
        return fail(GRAPHI_INVALID, call->where, "found function %lld, expected 0 to %lld", (long long)function,
                    (long long)b.functions - 1);
    const int64_t from = move == VERTICES_MOVE_COMBINE ? b.edges : b.vertices;
    const int64_t to = move == VERTICES_MOVE_SPREAD ? b.edges : b.vertices;
    TRY(expect(call, 1,
               x->rank >= 1 && x->symbol >= 0 && x->dims[0] == from &&
                   (x->dtype == GRAPHI_F32 || (x->dtype == GRAPHI_I32 && move == VERTICES_MOVE_TAKE)),
               "float32 rows that follow the symbol of vertices, or of edges to combine"));
    return vertex_rows_type(call, attr_int(call->node, "symbol"), to, x, &call->out[0]);
}

/* --- kernels --- */

static graphi_status bind_frontier(const struct bind_call *call, struct kernel *kernel)
{
    struct frontier_bounds b;
    TRY(vertex_bounds_of(call->where, call->node, &b));
    return frontier_bind(&b, kernel);
}

static graphi_status bind_move(const struct bind_call *call, struct kernel *kernel)
{
    struct vertices_move_spec spec = {.move = move_of(call->node), .function = attr_int(call->node, "function")};
    TRY(vertex_bounds_of(call->where, call->node, &spec.bounds));
    if (!array_is_dense(&call->in[1]) || !array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found rows with gaps, expected dense ones");
    spec.rows = call->out[0].dims[0];
    spec.columns = array_count(&call->out[0]) / most(spec.rows, 1);
    return vertices_move_bind(&spec, kernel);
}

static void move_gradient(struct gradient_call *call)
{
    static const char *const adjoint[] = {"vertex_put", "vertex_take", "vertex_combine", "vertex_spread"};
    if (!call->needed[1])
        return;
    graphi_attribute attributes[3];
    memcpy(attributes, call->op->attribute, sizeof attributes);
    attributes[2].i = graph_value(call->graph, call->in[1])->type.symbol;
    call->grad_in[1] = graphi_op(call->graph, adjoint[move_of(call->op)], 2,
                                 (graphi_value[]){call->in[0], call->grad_out[0]}, 3, attributes);
}

#define BOUNDS                                                                                                         \
    {                                                                                                                  \
        .name = "bounds", .meaning = "vertices, edges, most children, most rows of a block, functions",                \
        .type = GRAPHI_INTS, .required = true                                                                          \
    }

static const struct op_attribute frontier_attributes[] = {BOUNDS, {0}};
static const struct op_attribute move_attributes[] = {
    BOUNDS,
    {.name = "function", .meaning = "whose vertices", .type = GRAPHI_INT},
    {.name = "symbol", .meaning = "that the rows of the result follow", .type = GRAPHI_INT, .required = true},
    {0},
};

#define MOVE(NAME, ROLE, SUMMARY, SHAPES)                                                                              \
    {                                                                                                                  \
        .name = NAME, .role = ROLE, .summary = SUMMARY, .shapes = SHAPES, .min_inputs = 2, .max_inputs = 2,            \
        .outputs = 1, .attributes = move_attributes, .flags = OP_BOUNDED, .scalability = "memory",                     \
        .shape = move_shape, .gradient = move_gradient, .flops = no_flops, .bind = bind_move                           \
    }

const struct op_kind ops_vertex[] = {
    {.name = "frontier",
     .role = IS_FRONTIER,
     .summary = "the order in which the vertices of input graphs are evaluated, children first (cavs.txt 3)",
     .shapes = "int32 ends of children [V], children [E], functions [V] to int32 lists",
     .min_inputs = 2,
     .max_inputs = 3,
     .outputs = 1,
     .attributes = frontier_attributes,
     .flags = OP_BOUNDED,
     .scalability = "",
     .shape = frontier_shape,
     .gradient = no_gradient,
     .flops = no_flops,
     .bind = bind_frontier},
    MOVE("vertex_take", IS_VERTEX_TAKE, "rows of a function's vertices, in the order of slots",
         "frontier, x [V,...] to [V of the function,...]"),
    MOVE("vertex_put", IS_VERTEX_PUT, "rows back in the order of vertices, zeros for those of other functions",
         "frontier, x [V of the function,...] to [V,...]"),
    MOVE("vertex_spread", IS_VERTEX_SPREAD, "for each edge to a child the row of its vertex",
         "frontier, x [V of the function,...] to [E of the function,...]"),
    MOVE("vertex_combine", IS_VERTEX_COMBINE, "for each vertex the sum of the rows of its edges, in order",
         "frontier, x [E of the function,...] to [V of the function,...]"),
    {0},
};
