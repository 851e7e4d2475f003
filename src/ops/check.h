/* SPDX-License-Identifier: Apache-2.0 */
/* What the shape rules and gradients of several families share: messages, attributes, layouts. */
#ifndef OPS_CHECK_H
#define OPS_CHECK_H

#include "graph/op.h"
#include "kernels/kernel.h"

static inline graphi_status expect(const struct shape_call *call, int input, bool good, const char *expected)
{
    if (good)
        return GRAPHI_OK;
    char found[96];
    type_text(call->in[input], found, sizeof found);
    return fail(GRAPHI_INVALID, call->where, "found input %d of type %s, expected %s", input, found, expected);
}

static inline graphi_status expect_type(const struct shape_call *call, int input, const struct value_type *type)
{
    char expected[96];
    type_text(type, expected, sizeof expected);
    return expect(call, input, type_equal(call->in[input], type), expected);
}

static inline graphi_attribute int_attribute(const char *name, int64_t i)
{
    return (graphi_attribute){.name = name, .type = GRAPHI_INT, .i = i};
}

static inline graphi_attribute ints_attribute(const char *name, const int64_t *ints, int count)
{
    return (graphi_attribute){.name = name, .type = GRAPHI_INTS, .ints = ints, .count = count};
}

/* An axis attribute, negative ones counted from the end; INVALID when out of range. */
static inline graphi_status axis_of(const struct shape_call *call, int rank, int *axis)
{
    int64_t given = attr_int(call->node, "axis");
    if (given < -rank || given >= rank)
        return fail(GRAPHI_INVALID, call->where, "found axis %lld, expected %d to %d", (long long)given, -rank,
                    rank - 1);
    *axis = (int)(given < 0 ? given + rank : given);
    return GRAPHI_OK;
}

/* Tables: operations that only move elements, and those through which no gradient flows. */
static inline double no_flops(const struct shape_call *call) { return 0; }
static inline void no_gradient(struct gradient_call *call) {}

/* The row stride of a layout with contiguous innermost dimension; UNSUPPORTED otherwise. */
static inline graphi_status row_stride(const struct bind_call *call, const struct array_desc *desc, int64_t *ld)
{
    int64_t rows, cols;
    if (array_as_matrix(desc, &rows, &cols, ld))
        return GRAPHI_OK;
    return fail(GRAPHI_UNSUPPORTED, call->where,
                "found a layout that is not row-strided, expected rows of contiguous elements");
}

/* Rows of the matrix one row of a bounded dimension 0 has; 0: not bounded. */
static inline int64_t rows_per_row(const struct array_desc *desc, int64_t rows)
{
    return desc->bounded && desc->dims[0] ? rows / desc->dims[0] : 0;
}

#endif
