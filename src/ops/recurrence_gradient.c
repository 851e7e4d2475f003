/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of recurrences: the loop backward gives those of pre-activations and initial states; those of weights and
 * biases are products and sums over all rows, of ordinary nodes (cavs.txt 3, lazy batching). */
#include "ops/recurrence.h"

/* Inputs: U (or its packed form), h0, gates, y, then c0, kept, peepholes, the gradients that there are, offsets. */
enum { OF_U, OF_H0, OF_GATES, OF_Y, OF_REST };
enum { D_X, D_H0, D_MORE };

static bool has_kept(const struct recurrence_node *n)
{
    return n->cell == RECURRENCE_LSTM || (n->cell == RECURRENCE_GRU && n->reset_after);
}

static struct value_type rows_like(const struct value_type *rows, int64_t columns)
{
    return (struct value_type){
        .dtype = GRAPHI_F32, .rank = 2, .dims = {rows->dims[0], columns}, .symbol = rows->symbol};
}

/* Input i, if there is one, is of such a type; the next one follows. */
static graphi_status expect_next(const struct shape_call *call, bool there, struct value_type type, int *i)
{
    if (!there)
        return GRAPHI_OK;
    if (*i >= call->node->inputs)
        return fail(GRAPHI_INVALID, call->where, "found %d inputs, expected more of these attributes",
                    call->node->inputs);
    return expect_type(call, (*i)++, &type);
}

static graphi_status check_inputs(const struct shape_call *call, const struct recurrence_node *n, int64_t units)
{
    const struct node *node = call->node;
    const int64_t all = recurrence_gates(n->cell) * units, steps = attr_int(node, "steps");
    const struct recurrence_pack_spec pack = {n->cell, units, n->reset_after, false, true, false};
    const bool trans = attr_int(node, "trans") != 0, lstm = n->cell == RECURRENCE_LSTM;
    const struct value_type fixed = {.dtype = GRAPHI_F32, .symbol = -1};
    struct value_type u = fixed, peepholes = fixed, offsets = fixed;
    u.rank = attr_int(node, "packed") ? 1 : 2;
    u.dims[0] = u.rank == 1 ? recurrence_packed_count(&pack) : trans ? all : units;
    u.dims[1] = u.rank == 1 ? 0 : trans ? units : all;
    peepholes.rank = 2;
    peepholes.dims[0] = 3;
    peepholes.dims[1] = units;
    offsets.dtype = GRAPHI_I32;
    offsets.rank = 1;
    offsets.dims[0] = steps + 1;
    const struct value_type h0 = rows_like(call->in[OF_H0], units), y = rows_like(call->in[OF_Y], units);
    int i = OF_U;
    TRY(expect_next(call, true, u, &i));
    TRY(expect_next(call, true, h0, &i));
    TRY(expect_next(call, true, rows_like(call->in[OF_Y], n->cell == RECURRENCE_RNN ? units : all), &i));
    TRY(expect_next(call, true, y, &i));
    TRY(expect_next(call, lstm, h0, &i));
    TRY(expect_next(call, has_kept(n), y, &i));
    TRY(expect_next(call, lstm && attr_int(node, "peepholes"), peepholes, &i));
    TRY(expect_next(call, attr_int(node, "dy") != 0, y, &i));
    TRY(expect_next(call, attr_int(node, "dh") != 0, h0, &i));
    TRY(expect_next(call, attr_int(node, "dc") != 0, h0, &i));
    TRY(expect_next(call, attr_int(node, "lengths") != 0, offsets, &i));
    const int64_t outputs = lstm || has_kept(n) ? 3 : 2;
    if (i != node->inputs || attr_int(node, "outputs") != outputs || (attr_int(node, "lengths") && steps < 1))
        return fail(GRAPHI_INVALID, call->where,
                    "found %d inputs, %lld outputs, %lld steps, expected %d and %lld of "
                    "these attributes, and steps where there are lengths",
                    node->inputs, (long long)attr_int(node, "outputs"), (long long)steps, i, (long long)outputs);
    return GRAPHI_OK;
}

static graphi_status gradient_shape(const struct shape_call *call)
{
    TRY(recurrence_check_units(call));
    const struct recurrence_node n = recurrence_node(call->node);
    const int64_t units = attr_int(call->node, "units");
    TRY(check_inputs(call, &n, units));
    const struct value_type rows = rows_like(call->in[OF_Y], recurrence_gates(n.cell) * units);
    call->out[D_X] = rows;
    call->out[D_H0] = *call->in[OF_H0];
    if (n.cell == RECURRENCE_LSTM)
        call->out[D_MORE] = *call->in[OF_H0];
    if (n.cell == RECURRENCE_GRU && n.reset_after)
        call->out[D_MORE] = rows;
    return GRAPHI_OK;
}

static graphi_status bind_gradient(const struct bind_call *call, struct kernel *kernel)
{
    struct recurrence_spec spec = recurrence_spec_of(call->node);
    spec.rows = call->in[OF_Y].dims[0];
    spec.batch = call->in[OF_H0].dims[0];
    spec.steps = spec.steps > 0 ? spec.steps : divide_up(spec.rows, most(spec.batch, 1));
    spec.dy = attr_int(call->node, "dy") != 0;
    spec.dh = attr_int(call->node, "dh") != 0;
    spec.dc = attr_int(call->node, "dc") != 0;
    spec.ld_y = spec.units;
    for (int i = 0; i < call->node->inputs; i++)
        if (i != OF_U && !array_is_dense(&call->in[i]))
            return fail(GRAPHI_UNSUPPORTED, call->where, "found input %d with gaps, expected dense rows", i);
    return recurrence_gradient_bind(&spec, (enum isa)call->isa, kernel);
}

static double gradient_flops(const struct shape_call *call)
{
    const struct recurrence_spec spec = recurrence_spec_of(call->node);
    const double units = (double)spec.units;
    return 2.0 * (double)call->in[OF_Y]->dims[0] * recurrence_gates(spec.cell) * units * units;
}

/* The node over all steps; its outputs follow the value given back. */
static graphi_value loop_backward(struct gradient_call *call, const struct recurrence_node *n)
{
    const bool lstm = n->cell == RECURRENCE_LSTM;
    const graphi_value dy = call->grad_out[RECURRENT_Y], dh = call->grad_out[RECURRENT_LAST_H];
    const graphi_value dc = lstm ? call->grad_out[n->last_c] : GRAPHI_NONE;
    const graphi_value gates = n->gates >= 0 ? call->out[n->gates] : call->out[RECURRENT_Y];
    graphi_value in[16] = {call->in[RECURRENT_U], call->in[RECURRENT_H0], gates, call->out[RECURRENT_Y]};
    int count = OF_REST;
    if (lstm)
        in[count++] = call->in[n->c0];
    if (has_kept(n))
        in[count++] = call->out[n->kept];
    const graphi_value optional[] = {n->peepholes >= 0 ? call->in[n->peepholes] : GRAPHI_NONE, dy, dh, dc,
                                     n->offsets >= 0 ? call->in[n->offsets] : GRAPHI_NONE};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (optional[i] != GRAPHI_NONE)
            in[count++] = optional[i];
    graphi_attribute attributes[RECURRENCE_SHARED + 4];
    recurrence_copy_attributes(call->op, attributes);
    attributes[RECURRENCE_SHARED] = int_attribute("dy", dy != GRAPHI_NONE);
    attributes[RECURRENCE_SHARED + 1] = int_attribute("dh", dh != GRAPHI_NONE);
    attributes[RECURRENCE_SHARED + 2] = int_attribute("dc", dc != GRAPHI_NONE);
    attributes[RECURRENCE_SHARED + 3] = int_attribute("outputs", n->cell == RECURRENCE_RNN ? 2
                                                                 : has_kept(n) || lstm     ? 3
                                                                                           : 2);
    return graphi_op(call->graph, "recurrence_gradient", count, in, RECURRENCE_SHARED + 4, attributes);
}

static graphi_value slice_columns(graphi_graph *graph, graphi_value x, int64_t begin, int64_t end)
{
    graphi_attribute attributes[] = {int_attribute("axis", 1), int_attribute("begin", begin),
                                     int_attribute("end", end)};
    return graphi_op(graph, "slice", 1, &x, 3, attributes);
}

/* Rows of the step before, of y and h0 or of c and c0. */
static graphi_value previous(struct gradient_call *call, const struct recurrence_node *n, graphi_value rows,
                             graphi_value first)
{
    graphi_value in[] = {rows, first, n->offsets >= 0 ? call->in[n->offsets] : GRAPHI_NONE};
    graphi_attribute attributes[] = {int_attribute("steps", attr_int(call->op, "steps")),
                                     int_attribute("reverse", attr_int(call->op, "reverse"))};
    return graphi_op(call->graph, "sequence_previous", n->offsets >= 0 ? 3 : 2, in, 2, attributes);
}

/* a^T b over all rows, or its transpose. */
static graphi_value over_rows(struct gradient_call *call, graphi_value a, graphi_value b)
{
    const bool trans = attr_int(call->op, "trans") != 0;
    graphi_value in[] = {trans ? b : a, trans ? a : b};
    graphi_attribute attributes[] = {int_attribute("trans_a", 1)};
    return graphi_op(call->graph, "matmul", 2, in, 1, attributes);
}

static graphi_value sum_rows(graphi_graph *graph, graphi_value x)
{
    static const int64_t axis = 0;
    graphi_attribute attributes[] = {ints_attribute("axes", &axis, 1)};
    return graphi_op(graph, "reduce_sum", 1, &x, 1, attributes);
}

/* What the recurrent weights multiply gets its reset gate first in this form: two products, one beside the other. */
static graphi_value reset_first_weights(struct gradient_call *call, graphi_value h, graphi_value dx, int64_t units)
{
    graphi_value r = slice_columns(call->graph, call->out[recurrence_node(call->op).gates], 0, units);
    graphi_value rh[] = {r, h};
    graphi_value parts[] = {over_rows(call, h, slice_columns(call->graph, dx, 0, 2 * units)),
                            over_rows(call, graphi_op(call->graph, "mul", 2, rh, 0, NULL),
                                      slice_columns(call->graph, dx, 2 * units, 3 * units))};
    graphi_attribute axis = int_attribute("axis", !attr_int(call->op, "trans"));
    return graphi_op(call->graph, "concat", 2, parts, 1, &axis);
}

static graphi_value weights_gradient(struct gradient_call *call, const struct recurrence_node *n, graphi_value dx)
{
    const int64_t units = attr_int(call->op, "units");
    graphi_value h = previous(call, n, call->out[RECURRENT_Y], call->in[RECURRENT_H0]);
    if (n->cell == RECURRENCE_GRU && !n->reset_after)
        return reset_first_weights(call, h, dx, units);
    return over_rows(call, h, n->cell == RECURRENCE_GRU ? dx + D_MORE : dx);
}

/* Of input and forget gate by the c before, of the output gate by c. */
static graphi_value peepholes_gradient(struct gradient_call *call, const struct recurrence_node *n, graphi_value dx)
{
    static const int gate[] = {0, 1, 3};
    const int64_t units = attr_int(call->op, "units"), shape[] = {3, units};
    graphi_value before = previous(call, n, call->out[n->kept], call->in[n->c0]), parts[3];
    for (int i = 0; i < 3; i++) {
        graphi_value in[] = {slice_columns(call->graph, dx, gate[i] * units, (gate[i] + 1) * units),
                             i < 2 ? before : call->out[n->kept]};
        parts[i] = sum_rows(call->graph, graphi_op(call->graph, "mul", 2, in, 0, NULL));
    }
    graphi_attribute axis = int_attribute("axis", 0), to = ints_attribute("shape", shape, 2);
    graphi_value all = graphi_op(call->graph, "concat", 3, parts, 1, &axis);
    return graphi_op(call->graph, "reshape", 1, &all, 1, &to);
}

void recurrence_gradient(struct gradient_call *call)
{
    const struct recurrence_node n = recurrence_node(call->op);
    const int64_t units = attr_int(call->op, "units");
    const graphi_value dx = loop_backward(call, &n);
    call->grad_in[RECURRENT_X] = dx;
    call->grad_in[RECURRENT_H0] = dx + D_H0;
    if (n.c0 >= 0)
        call->grad_in[n.c0] = dx + D_MORE;
    if (call->needed[RECURRENT_U])
        call->grad_in[RECURRENT_U] = weights_gradient(call, &n, dx);
    if (call->needed[RECURRENT_B])
        call->grad_in[RECURRENT_B] = sum_rows(call->graph, dx);
    if (n.inner >= 0 && call->needed[n.inner])
        call->grad_in[n.inner] = sum_rows(call->graph, slice_columns(call->graph, dx + D_MORE, 2 * units, 3 * units));
    if (n.peepholes >= 0 && call->needed[n.peepholes])
        call->grad_in[n.peepholes] = peepholes_gradient(call, &n, dx);
}

static const struct op_attribute gradient_attributes[] = {
    RECURRENCE_ATTRIBUTES,
    {.name = "dy", .meaning = "there is a gradient of y", .type = GRAPHI_INT},
    {.name = "dh", .meaning = "of the last h", .type = GRAPHI_INT},
    {.name = "dc", .meaning = "of the last c", .type = GRAPHI_INT},
    {.name = "outputs", .meaning = "how many", .type = GRAPHI_INT, .required = true},
    {0},
};

const struct op_kind ops_recurrence_gradient[] = {
    {.name = "recurrence_gradient",
     .summary = "gradients of pre-activations and initial states of a recurrence",
     .shapes =
         "u, h0 [B,H], gates [N,GH], y [N,H], then what the cell has, gradients of y, last h, last c, offsets to dx "
         "[N,GH], dh0 [B,H], lstm: dc0, gru with reset_after: the gradient of h U [N,3H]",
     .min_inputs = 4,
     .max_inputs = 12,
     .outputs = -1,
     .attributes = gradient_attributes,
     .flags = OP_STRIDED_IN | OP_BOUNDED | OP_GEMM,
     .role = IS_RECURRENCE_GRADIENT,
     .scalability = "gemm",
     .shape = gradient_shape,
     .flops = gradient_flops,
     .bind = bind_gradient},
    {0},
};
