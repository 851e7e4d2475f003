/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN over whole sequences as one operation each, packing of their weights, and what sequences of many
 * lengths need. The product of the input is a node of its own (deepcpu.txt 5.2.1: it waits for no step), so are weight
 * gradients. Builders over layers and directions: graphi/recurrent.h. */
#include "ops/recurrence.h"

#include <math.h>

static const struct op_attribute recurrence_attributes[] = {RECURRENCE_ATTRIBUTES, {0}};

/* --- shapes --- */

static struct value_type matrix_like(const struct value_type *rows, int64_t columns)
{
    struct value_type type = {.dtype = GRAPHI_F32, .rank = 2, .dims = {rows->dims[0], columns}, .symbol = rows->symbol};
    return type;
}

static struct value_type fixed(graphi_dtype dtype, int rank, int64_t a, int64_t b)
{
    return (struct value_type){.dtype = dtype, .rank = rank, .dims = {a, b}, .symbol = -1};
}

static graphi_status expect_fixed(const struct shape_call *call, int input, graphi_dtype dtype, int rank, int64_t a,
                                  int64_t b)
{
    const struct value_type type = fixed(dtype, rank, a, b);
    return input < 0 ? GRAPHI_OK : expect_type(call, input, &type);
}

static graphi_status check_numbers(const struct shape_call *call, const struct recurrence_node *n, int64_t units)
{
    const int64_t *functions;
    const int given = attr_ints(call->node, "functions", &functions);
    const double clip = attr_float(call->node, "clip");
    TRY(recurrence_check_units(call));
    if (!(clip >= 0) || isinf(clip))
        return fail(GRAPHI_INVALID, call->where, "found clip %g, expected a positive number, or 0 for none", clip);
    for (int i = 0; i < given; i++)
        if (functions[i] < 0 || functions[i] >= RECURRENCE_FUNCTIONS)
            return fail(GRAPHI_INVALID, call->where, "found function %lld, expected 0 to %d", (long long)functions[i],
                        RECURRENCE_FUNCTIONS - 1);
    if (call->node->inputs != n->inputs)
        return fail(GRAPHI_INVALID, call->where, "found %d inputs, expected %d of these attributes", call->node->inputs,
                    n->inputs);
    return GRAPHI_OK;
}

static graphi_status recurrence_shape(const struct shape_call *call)
{
    const struct recurrence_node n = recurrence_node(call->node);
    const struct recurrence_spec spec = recurrence_spec_of(call->node);
    TRY(check_numbers(call, &n, spec.units));
    const int64_t units = spec.units, all = recurrence_gates(n.cell) * units;
    const struct value_type *x = call->in[RECURRENT_X], *h0 = call->in[RECURRENT_H0];
    TRY(expect(call, RECURRENT_X, x->dtype == GRAPHI_F32 && x->rank == 2 && x->dims[1] == all,
               "float32[rows, gates units]"));
    if (attr_int(call->node, "packed")) {
        const struct recurrence_pack_spec pack = {n.cell, units, n.reset_after, false, false, spec.half};
        const graphi_dtype dtype = spec.half ? GRAPHI_BF16 : GRAPHI_F32;
        TRY(expect_fixed(call, RECURRENT_U, dtype, 1, recurrence_packed_count(&pack), 0));
    } else {
        const bool trans = attr_int(call->node, "trans") != 0;
        TRY(expect_fixed(call, RECURRENT_U, GRAPHI_F32, 2, trans ? all : units, trans ? units : all));
    }
    TRY(expect_fixed(call, RECURRENT_B, GRAPHI_F32, 1, all, 0));
    TRY(expect(call, RECURRENT_H0, h0->dtype == GRAPHI_F32 && h0->rank == 2 && h0->dims[1] == units,
               "float32[batch, units]"));
    const struct value_type state = matrix_like(h0, units);
    if (n.c0 >= 0)
        TRY(expect_type(call, n.c0, &state));
    TRY(expect_fixed(call, n.inner, GRAPHI_F32, 1, units, 0));
    TRY(expect_fixed(call, n.peepholes, GRAPHI_F32, 2, 3, units));
    if (n.offsets >= 0 && spec.steps < 1)
        return fail(GRAPHI_INVALID, call->where,
                    "found steps %lld, expected the most of a sequence where there are "
                    "lengths",
                    (long long)spec.steps);
    TRY(expect_fixed(call, n.offsets, GRAPHI_I32, 1, spec.steps + 1, 0));
    TRY(expect(call, RECURRENT_X, n.offsets >= 0 || x->symbol >= 0 || x->dims[0] % h0->dims[0] == 0,
               "rows of whole steps of the batch"));
    call->out[RECURRENT_Y] = matrix_like(x, units);
    call->out[RECURRENT_LAST_H] = state;
    if (n.last_c >= 0)
        call->out[n.last_c] = state;
    if (n.gates >= 0) {
        call->out[n.gates] = matrix_like(x, all);
        call->out[n.kept] = matrix_like(x, units);
    }
    return GRAPHI_OK;
}

static graphi_status pack_shape(const struct shape_call *call)
{
    TRY(recurrence_check_units(call));
    const struct recurrence_spec spec = recurrence_spec_of(call->node);
    const int64_t all = recurrence_gates(spec.cell) * spec.units;
    const bool trans = attr_int(call->node, "trans") != 0;
    const struct recurrence_pack_spec pack = {
        spec.cell, spec.units, spec.reset_after, trans, attr_int(call->node, "backward") != 0, spec.half};
    TRY(expect_fixed(call, 0, GRAPHI_F32, 2, trans ? all : spec.units, trans ? spec.units : all));
    call->out[0] = fixed(spec.half ? GRAPHI_BF16 : GRAPHI_F32, 1, recurrence_packed_count(&pack), 0);
    return GRAPHI_OK;
}

static graphi_status offsets_shape(const struct shape_call *call)
{
    const int64_t steps = attr_int(call->node, "steps");
    TRY(expect(call, 0, call->in[0]->dtype == GRAPHI_I32 && call->in[0]->rank == 1, "int32 lengths [batch]"));
    if (steps < 1 || steps >= INT32_MAX)
        return fail(GRAPHI_INVALID, call->where, "found steps %lld, expected 1 to %d", (long long)steps, INT32_MAX - 1);
    call->out[0] = fixed(GRAPHI_I32, 1, steps + 1, 0);
    return GRAPHI_OK;
}

static graphi_status previous_shape(const struct shape_call *call)
{
    const struct value_type *y = call->in[0], *first = call->in[1];
    const int64_t steps = attr_int(call->node, "steps");
    if (steps < 0 || steps >= INT32_MAX || (call->node->inputs > 2 && !steps))
        return fail(GRAPHI_INVALID, call->where, "found steps %lld, expected the most of a sequence, below %d",
                    (long long)steps, INT32_MAX);
    TRY(expect(call, 0, y->dtype == GRAPHI_F32 && y->rank == 2, "float32[rows, columns]"));
    TRY(expect(call, 1, first->dtype == GRAPHI_F32 && first->rank == 2 && first->dims[1] == y->dims[1],
               "float32[batch, columns]"));
    if (call->node->inputs > 2)
        TRY(expect_fixed(call, 2, GRAPHI_I32, 1, steps + 1, 0));
    call->out[0] = *y;
    return GRAPHI_OK;
}

/* --- kernels --- */

static int64_t steps_bound(const struct recurrence_spec *spec)
{
    return spec->steps > 0 ? spec->steps : divide_up(spec->rows, most(spec->batch, 1));
}

static graphi_status expect_dense(const struct bind_call *call, int64_t ld, int64_t columns)
{
    if (ld == columns)
        return GRAPHI_OK;
    return fail(GRAPHI_UNSUPPORTED, call->where, "found rows with gaps, expected dense ones");
}

static graphi_status bind_recurrence(const struct bind_call *call, struct kernel *kernel)
{
    const struct recurrence_node n = recurrence_node(call->node);
    struct recurrence_spec spec = recurrence_spec_of(call->node);
    spec.rows = call->in[RECURRENT_X].dims[0];
    spec.batch = call->in[RECURRENT_H0].dims[0];
    spec.steps = steps_bound(&spec);
    spec.gates = n.gates >= 0 && !(call->absent >> n.gates & 1);
    spec.kept = n.kept >= 0 && !(call->absent >> n.kept & 1) && (n.cell == RECURRENCE_LSTM || n.reset_after);
    TRY(row_stride(call, &call->in[RECURRENT_X], &spec.ld_x));
    TRY(row_stride(call, &call->out[RECURRENT_Y], &spec.ld_y));
    if (!attr_int(call->node, "packed"))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found weights as they are, expected packed ones");
    for (int i = RECURRENT_B; i < call->node->inputs; i++)
        if (!array_is_dense(&call->in[i]))
            TRY(expect_dense(call, 1, 0));
    for (int i = RECURRENT_LAST_H; i < call->node->outputs; i++)
        if (!(call->absent >> i & 1) && !array_is_dense(&call->out[i]))
            TRY(expect_dense(call, 1, 0));
    return recurrence_bind(&spec, (enum isa)call->isa, kernel);
}

static graphi_status bind_pack(const struct bind_call *call, struct kernel *kernel)
{
    const struct recurrence_spec spec = recurrence_spec_of(call->node);
    const struct recurrence_pack_spec pack = {spec.cell,
                                              spec.units,
                                              spec.reset_after,
                                              attr_int(call->node, "trans") != 0,
                                              attr_int(call->node, "backward") != 0,
                                              spec.half};
    return recurrence_pack_bind(&pack, kernel);
}

static graphi_status bind_offsets(const struct bind_call *call, struct kernel *kernel)
{
    return sequence_offsets_bind(call->in[0].dims[0], attr_int(call->node, "steps"), kernel);
}

static graphi_status bind_previous(const struct bind_call *call, struct kernel *kernel)
{
    const struct array_desc *y = &call->in[0];
    int64_t ld_y, ld_out, ld_first;
    TRY(row_stride(call, y, &ld_y));
    TRY(row_stride(call, &call->in[1], &ld_first));
    TRY(expect_dense(call, ld_first, y->dims[1]));
    TRY(row_stride(call, &call->out[0], &ld_out));
    int64_t steps = attr_int(call->node, "steps");
    steps = steps > 0 ? steps : divide_up(y->dims[0], most(call->in[1].dims[0], 1));
    return sequence_previous_bind(y->dims[0], call->in[1].dims[0], y->dims[1], ld_y, ld_out, steps,
                                  call->node->inputs > 2, attr_int(call->node, "reverse") != 0, kernel);
}

static double recurrence_flops(const struct shape_call *call)
{
    const double units = (double)attr_int(call->node, "units");
    return 2.0 * (double)call->in[RECURRENT_X]->dims[0] * (double)call->in[RECURRENT_X]->dims[1] * units;
}

static const struct op_attribute pack_attributes[] = {
    RECURRENCE_ATTRIBUTES,
    {.name = "backward", .meaning = "the form of the gradient", .type = GRAPHI_INT},
    {0},
};
static const struct op_attribute offsets_attributes[] = {
    {.name = "steps", .meaning = "most of a sequence", .type = GRAPHI_INT, .required = true},
    {0},
};
static const struct op_attribute previous_attributes[] = {
    {.name = "steps", .meaning = "most of a sequence; 0: rows over the batch", .type = GRAPHI_INT},
    {.name = "reverse", .meaning = "the step after is the one before", .type = GRAPHI_INT},
    {0},
};

#define RECURRENCE(NAME, SUMMARY, SHAPES, MOST, OUTPUTS, OPTIONAL)                                                     \
    {                                                                                                                  \
        .name = NAME, .summary = SUMMARY, .shapes = SHAPES, .min_inputs = 4, .max_inputs = MOST, .outputs = OUTPUTS,   \
        .optional = OPTIONAL, .attributes = recurrence_attributes,                                                     \
        .flags = OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED | OP_GEMM, .role = IS_RECURRENCE, .scalability = "gemm",  \
        .shape = recurrence_shape, .gradient = recurrence_gradient, .flops = recurrence_flops, .bind = bind_recurrence \
    }

const struct op_kind ops_recurrence[] = {
    RECURRENCE(
        "lstm", "long short-term memory over sequences in step order; gates i, f, g, o (deepcpu.txt 2)",
        "x W [N,4H], u [H,4H], b [4H], h0 [B,H], c0 [B,H], peepholes [3,H], int32 offsets [T+1] to y [N,H], last "
        "h, last c [B,H], gates [N,4H], c [N,H]",
        7, 5, 1U << 3 | 1U << 4),
    RECURRENCE("gru", "gated recurrent unit over sequences in step order; gates r, z, n",
               "x W [N,3H], u [H,3H], b [3H], h0 [B,H], inner bias [H], int32 offsets [T+1] to y [N,H], last h [B,H], "
               "gates [N,3H], inner product [N,H]",
               6, 4, 1U << 2 | 1U << 3),
    RECURRENCE("rnn", "simple recurrence over sequences in step order",
               "x W [N,H], u [H,H], b [H], h0 [B,H], int32 offsets [T+1] to y [N,H], last h [B,H]", 5, 2, 0),
    {.name = "recurrence_pack",
     .summary = "recurrent weights in the order in which the members of a team read them",
     .shapes = "u to panels of units with all their gates",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = pack_attributes,
     .flags = OP_PACK,
     .scalability = "memory",
     .shape = pack_shape,
     .flops = no_flops,
     .bind = bind_pack},
    {.name = "sequence_offsets",
     .summary = "where the rows of each step begin, of lengths that do not rise",
     .shapes = "int32 lengths [B] to int32 [steps+1]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = offsets_attributes,
     .flags = OP_BOUNDED,
     .scalability = "",
     .shape = offsets_shape,
     .gradient = no_gradient,
     .flops = no_flops,
     .bind = bind_offsets},
    {.name = "sequence_previous",
     .summary = "for each row in step order that of the step before, of the first step a row of b",
     .shapes = "y [N,C], first [B,C], int32 offsets [steps+1] to [N,C]",
     .min_inputs = 2,
     .max_inputs = 3,
     .outputs = 1,
     .attributes = previous_attributes,
     .flags = OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED,
     .scalability = "memory",
     .shape = previous_shape,
     .flops = no_flops,
     .bind = bind_previous},
    {0},
};
