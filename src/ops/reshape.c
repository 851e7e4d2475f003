/* SPDX-License-Identifier: Apache-2.0 */
/* The same elements under other dimensions: reshape and transpose. Both are views whenever strides allow; their kernels
 * copy otherwise. Any element type.
 *
 * A bounded dimension 0 passes through where it stays dimension 0; reshape may multiply or divide it by a constant. */
#include "ops/shape.h"

static const struct op_attribute shape_attributes[] = {
    {.name = "shape",
     .meaning = "of the result; -1, once: what is left; 0: the input's size at that place; where dimension 0 follows a "
                "symbol, the result's is a multiple or a divisor of it",
     .type = GRAPHI_INTS,
     .required = true},
    {0},
};
static const struct op_attribute perm_attributes[] = {
    {.name = "perm",
     .meaning = "the input's dimension that each of the result's is; empty: reversed",
     .type = GRAPHI_INTS},
    {0},
};

/* The shape asked for: -1 takes what is left (once), 0 keeps the input's size at that place (as ONNX). */
static graphi_status reshape_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    const int64_t *shape;
    int rank = attr_ints(call->node, "shape", &shape), open = -1;
    if (rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, call->where, "found %d dimensions, expected at most %d", rank, GRAPHI_MAX_RANK);
    struct value_type out = {.dtype = in->dtype, .rank = rank, .symbol = in->symbol};
    int64_t known = 1, count = type_count(in);
    for (int i = 0; i < rank; i++) {
        out.dims[i] = shape[i] == 0 && i < in->rank ? in->dims[i] : shape[i];
        if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
            return fail(GRAPHI_INVALID, call->where, "found size %lld in dimension %d, expected 0 or more, or one -1",
                        (long long)shape[i], i);
        if (shape[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(known, out.dims[i], &known))
            return fail(GRAPHI_INVALID, call->where, "found a shape of more than 2^63 elements, expected %lld",
                        (long long)count);
    }
    if (open >= 0)
        out.dims[open] = known ? count / known : 0;
    if ((open >= 0 ? known * out.dims[open] : known) != count) {
        char found[96], wanted[96];
        type_text(in, found, sizeof found);
        type_text(&out, wanted, sizeof wanted);
        return fail(GRAPHI_INVALID, call->where, "found %s, expected as many elements as in %s", found, wanted);
    }
    bool follows = in->symbol < 0 || /* a scalar has no dimension 0 to divide by */
                   (rank > 0 && out.dims[0] > 0 && (out.dims[0] % in->dims[0] == 0 || in->dims[0] % out.dims[0] == 0));
    TRY(expect(call, 0, follows, "a bounded dimension 0 that stays dimension 0, times or over a constant"));
    call->out[0] = out;
    return GRAPHI_OK;
}

static bool reshape_view(const struct bind_call *call, struct array_desc *out, int64_t *offset)
{
    *offset = 0;
    return restride(&call->in[0], out);
}

/* Copies where a view is not possible or not taken: both arrays walked with the dims of the one that is strided. */
static graphi_status reshape_bind(const struct bind_call *call, struct kernel *kernel)
{
    const struct array_desc *in = &call->in[0], *out = &call->out[0];
    struct array_desc from = *out, to = *in;
    const struct array_desc *dims;
    if (restride(in, &from)) {
        to = *out;
        dims = out;
    } else if (restride(out, &to)) {
        from = *in;
        dims = in;
    } else {
        return fail(GRAPHI_UNSUPPORTED, call->where,
                    "found strided layouts that no copy joins, expected one of them dense");
    }
    struct copy_part part = copy_part_of(dims, &from, &to);
    part.rows = in->bounded ? in->dims[0] : 0;
    return bind_parts(call, "reshape", 1, &part, kernel);
}

static void reshape_gradient(struct gradient_call *call)
{
    const struct value_type type = graph_value(call->graph, call->in[0])->type;
    graphi_attribute shape = ints_attribute("shape", type.dims, type.rank);
    call->grad_in[0] = graphi_op(call->graph, "reshape", 1, call->grad_out, 1, &shape);
}

/* --- transpose --- */

static graphi_status perm_of(const char *where, const struct node *node, int rank, int64_t *perm)
{
    const int64_t *given;
    int count = attr_ints(node, "perm", &given);
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        perm[i] = count ? (i < count ? given[i] : -1) : rank - 1 - i;
        if (perm[i] >= 0 && perm[i] < rank)
            seen |= 1u << perm[i];
    }
    if ((count == 0 || count == rank) && seen == (1u << rank) - 1)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found a perm of %d numbers, expected each of 0 to %d once", count, rank - 1);
}

static graphi_status transpose_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    int64_t perm[GRAPHI_MAX_RANK];
    TRY(perm_of(call->where, call->node, in->rank, perm));
    TRY(expect(call, 0, in->symbol < 0 || perm[0] == 0, "a bounded dimension 0 that stays dimension 0"));
    call->out[0] = *in;
    for (int i = 0; i < in->rank; i++)
        call->out[0].dims[i] = in->dims[perm[i]];
    return GRAPHI_OK;
}

/* Moving dimensions of size 1 moves nothing. */
static bool transpose_view(const struct bind_call *call, struct array_desc *out, int64_t *offset)
{
    int64_t perm[GRAPHI_MAX_RANK], before = -1;
    if (perm_of(call->where, call->node, out->rank, perm) != GRAPHI_OK)
        return false;
    for (int i = 0; i < out->rank; i++) {
        if (out->dims[i] == 1)
            continue;
        if (perm[i] < before)
            return false;
        before = perm[i];
    }
    *offset = 0;
    return restride(&call->in[0], out);
}

static graphi_status transpose_bind(const struct bind_call *call, struct kernel *kernel)
{
    int64_t perm[GRAPHI_MAX_RANK];
    struct array_desc from = call->out[0];
    TRY(perm_of(call->where, call->node, from.rank, perm));
    for (int i = 0; i < from.rank; i++)
        from.strides[i] = call->in[0].strides[perm[i]];
    struct copy_part part = copy_part_of(&call->out[0], &from, &call->out[0]);
    return bind_parts(call, "transpose", 1, &part, kernel);
}

static void transpose_gradient(struct gradient_call *call)
{
    int rank = graph_value(call->graph, call->in[0])->type.rank;
    int64_t perm[GRAPHI_MAX_RANK], inverse[GRAPHI_MAX_RANK];
    if (perm_of("transpose", call->op, rank, perm) != GRAPHI_OK)
        return;
    for (int i = 0; i < rank; i++)
        inverse[perm[i]] = i;
    graphi_attribute attribute = ints_attribute("perm", inverse, rank);
    call->grad_in[0] = graphi_op(call->graph, "transpose", 1, call->grad_out, 1, &attribute);
}

const struct op_kind ops_reshape[] = {
    {.name = "reshape",
     .role = IS_RESHAPE,
     .summary = "the same elements in another shape",
     .shapes = "[...] to [shape]",
     UNARY,
     .attributes = shape_attributes,
     .flags = STRIDED | OP_VIEW,
     .shape = reshape_shape,
     .gradient = reshape_gradient,
     .bind = reshape_bind,
     .view = reshape_view},
    {.name = "transpose",
     .role = IS_TRANSPOSE,
     .summary = "dimensions in another order: output dimension i is input dimension perm[i]",
     .shapes = "[...] to the same sizes in that order",
     UNARY,
     .attributes = perm_attributes,
     .flags = STRIDED | OP_VIEW,
     .shape = transpose_shape,
     .gradient = transpose_gradient,
     .bind = transpose_bind,
     .view = transpose_view},
    {0},
};
