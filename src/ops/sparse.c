/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of tables of embeddings as lists of rows: ids that ascend, each once, then -1, and beside each its row.
 * A list has room for as many rows as there are ids, at most those of the table, so that its size is known when the
 * plan is made. What graphi_minimize makes of them is in graph/sparse.c. Rows are checked when the node runs. */
#include "ops/check.h"
#include "ops/embedding.h"

#include "kernels/sparse.h"

static const struct op_attribute rows_attributes[] = {
    {.name = "rows", .meaning = "of the table", .type = GRAPHI_INT, .required = true},
    {0},
};

/* Ids and positions are int32. */
static graphi_status check_rows(const struct shape_call *call, int64_t rows, int64_t ids)
{
    if (rows >= 1 && rows <= INT32_MAX && ids <= INT32_MAX)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, call->where, "found %lld ids and a table of %lld rows, expected at most %d, and a row",
                (long long)ids, (long long)rows, INT32_MAX);
}

static graphi_status sum_shape(const struct shape_call *call)
{
    const struct value_type *ids = call->in[0], *dy = call->in[1];
    const int64_t table = attr_int(call->node, "rows"), columns = dy->rank ? dy->dims[dy->rank - 1] : 0;
    struct value_type expected;
    struct shape_call inner = {call->where, call->graph, call->node, call->in, &expected};
    TRY(append_dimension(&inner, 0, columns));
    TRY(expect_type(call, 1, &expected));
    const int64_t count = type_count(ids), list = ids->symbol < 0 ? least(count, table) : count;
    TRY(check_rows(call, table, count));
    call->out[0] = (struct value_type){.dtype = GRAPHI_I32, .rank = 1, .dims = {list}, .symbol = ids->symbol};
    call->out[1] =
        (struct value_type){.dtype = GRAPHI_F32, .rank = 2, .dims = {list, columns}, .symbol = ids->symbol};
    return GRAPHI_OK;
}

/* Input `list` is a list, input list + 1, where `columns` are given, its rows. */
static graphi_status expect_list(const struct shape_call *call, int list, int64_t columns)
{
    const struct value_type *type = call->in[list];
    TRY(expect(call, list, type->rank == 1 && type->dtype == GRAPHI_I32, "a list int32[rows]"));
    const struct value_type rows = {
        .dtype = GRAPHI_F32, .rank = 2, .dims = {type->dims[0], columns}, .symbol = type->symbol};
    return columns ? expect_type(call, list + 1, &rows) : GRAPHI_OK;
}

static graphi_status get_shape(const struct shape_call *call)
{
    TRY(expect_table(call));
    TRY(expect_list(call, 1, 0));
    return append_dimension(call, 1, call->in[0]->dims[1]);
}

static graphi_status set_shape(const struct shape_call *call)
{
    TRY(expect_table(call));
    TRY(check_rows(call, call->in[0]->dims[0], 0));
    TRY(expect_list(call, 1, call->in[0]->dims[1]));
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status squares_shape(const struct shape_call *call)
{
    const struct value_type *y = call->in[1];
    TRY(check_rows(call, attr_int(call->node, "rows"), 0));
    TRY(expect_list(call, 0, y->rank ? y->dims[y->rank - 1] : 1));
    call->out[0] = (struct value_type){.dtype = GRAPHI_F32, .symbol = -1};
    return GRAPHI_OK;
}

/* --- kernels --- */

static graphi_status bind_sum(const struct bind_call *call, struct kernel *kernel)
{
    const struct array_desc *sums = &call->out[1];
    struct sparse_spec spec = {.ids = {.rows = attr_int(call->node, "rows"), .columns = sums->dims[1]},
                               .list = sums->dims[0]};
    if (!array_is_dense(sums) || !array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a strided output, expected a dense one");
    TRY(ids_of(call, &call->in[0], &call->in[1], &spec.ids));
    return sparse_sum_bind(&spec, (enum isa)call->isa, kernel);
}

/* A dense list and its rows. */
static graphi_status list_of(const struct bind_call *call, const struct array_desc *list,
                             const struct array_desc *rows, struct sparse_spec *spec)
{
    if (!array_is_dense(list))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a strided list, expected a dense one");
    spec->list = list->dims[0];
    spec->ids.columns = rows->dims[1];
    return row_stride(call, rows, &spec->ids.ld_y);
}

static graphi_status bind_get(const struct bind_call *call, struct kernel *kernel)
{
    struct sparse_spec spec = {.ids = {.rows = call->in[0].dims[0]}};
    TRY(list_of(call, &call->in[1], &call->out[0], &spec));
    TRY(row_stride(call, &call->in[0], &spec.ids.ld_table));
    return sparse_get_bind(&spec, kernel);
}

static graphi_status bind_set(const struct bind_call *call, struct kernel *kernel)
{
    struct sparse_spec spec = {.ids = {.rows = call->in[0].dims[0]}};
    if (!array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a strided output, expected a dense one");
    TRY(list_of(call, &call->in[1], &call->in[2], &spec));
    TRY(row_stride(call, &call->in[0], &spec.ids.ld_table));
    return sparse_set_bind(&spec, kernel);
}

static graphi_status bind_squares(const struct bind_call *call, struct kernel *kernel)
{
    struct sparse_spec spec = {.ids = {.rows = attr_int(call->node, "rows")}};
    TRY(list_of(call, &call->in[0], &call->in[1], &spec));
    return sparse_squares_bind(&spec, (enum isa)call->isa, kernel);
}

static double squares_flops(const struct shape_call *call) { return 2 * (double)type_count(call->in[1]); }
static double sum_flops(const struct shape_call *call) { return (double)type_count(call->in[1]); }

enum { TAKES = OP_STRIDED_IN | OP_BOUNDED };

const struct op_kind ops_sparse[] = {
    {.name = "sparse_sum",
     .summary = "gradient of embedding as a list: the different ids in ascending order, then -1, and the sum of the "
                "rows of dy of each, in the order of the ids",
     .shapes = "int32 ids [...], dy [...,E] to int32 list [n], [n,E]; n: ids, at most `rows`",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 2,
     .attributes = rows_attributes,
     .flags = TAKES,
     .scalability = "memory",
     .shape = sum_shape,
     .flops = sum_flops,
     .bind = bind_sum},
    {.name = "sparse_get",
     .role = IS_LOOKUP,
     .summary = "rows of a table by a list, 0 where it is -1",
     .shapes = "table [V,E], int32 list [n] to [n,E]",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .flags = TAKES | OP_STRIDED_OUT,
     .scalability = "memory",
     .shape = get_shape,
     .flops = no_flops,
     .bind = bind_get},
    {.name = "sparse_set",
     .summary = "the table with the rows of a list, which ascends, replaced; where graphi_assign gives it to that "
                "table, nothing else is written",
     .shapes = "table [V,E], int32 list [n], [n,E] to [V,E]",
     .min_inputs = 3,
     .max_inputs = 3,
     .outputs = 1,
     .flags = TAKES | OP_UPDATES,
     .scalability = "memory",
     .shape = set_shape,
     .flops = no_flops,
     .bind = bind_set},
    {.name = "sparse_squares",
     .summary = "sum of squares of the table of `rows` rows that has those of a list and 0 in all others",
     .shapes = "int32 list [n], [n,E] to []",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .attributes = rows_attributes,
     .flags = TAKES,
     .scalability = "memory",
     .shape = squares_shape,
     .flops = squares_flops,
     .bind = bind_squares},
    {0},
};
