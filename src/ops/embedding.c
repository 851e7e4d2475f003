/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding lookup, its gradient (dense, deterministic) and one-hot rows. Ids are checked when the node runs. */
#include "ops/embedding.h"

#include "ops/check.h"

static const struct op_attribute rows_attributes[] = {
    {.name = "rows", .meaning = "of the table", .type = GRAPHI_INT, .required = true},
    {0},
};
static const struct op_attribute depth_attributes[] = {
    {.name = "depth", .meaning = "columns; ids must be below", .type = GRAPHI_INT, .required = true},
    {0},
};

graphi_status append_dimension(const struct shape_call *call, int ids, int64_t n)
{
    const struct value_type *type = call->in[ids];
    TRY(expect(call, ids, type->dtype == GRAPHI_I32 && type->rank < GRAPHI_MAX_RANK,
               "int32 ids with at most 5 dimensions"));
    call->out[0] = *type;
    call->out[0].dtype = GRAPHI_F32;
    call->out[0].dims[call->out[0].rank++] = n;
    return GRAPHI_OK;
}

graphi_status expect_table(const struct shape_call *call)
{
    const struct value_type *table = call->in[0];
    return expect(call, 0, table->rank == 2 && table->dtype == GRAPHI_F32 && table->symbol < 0,
                  "a table float32[rows,columns]");
}

static graphi_status embedding_shape(const struct shape_call *call)
{
    TRY(expect_table(call));
    return append_dimension(call, 1, call->in[0]->dims[1]);
}

static graphi_status embedding_grad_shape(const struct shape_call *call)
{
    const struct value_type *dy = call->in[1];
    int64_t rows = attr_int(call->node, "rows"), columns = dy->rank ? dy->dims[dy->rank - 1] : 0;
    struct value_type expected;
    struct shape_call inner = {call->where, call->graph, call->node, call->in, &expected};
    TRY(append_dimension(&inner, 0, columns));
    TRY(expect_type(call, 1, &expected));
    call->out[0] = (struct value_type){.dtype = GRAPHI_F32, .rank = 2, .dims = {rows, columns}, .symbol = -1};
    return GRAPHI_OK;
}

static graphi_status one_hot_shape(const struct shape_call *call)
{
    return append_dimension(call, 0, attr_int(call->node, "depth"));
}

graphi_status ids_of(const struct bind_call *call, const struct array_desc *ids, const struct array_desc *rows,
                     struct embedding_spec *spec)
{
    int64_t matrix_rows;
    struct array_desc column = *ids; /* a strided vector is a matrix of one column */
    if (column.rank && column.rank < GRAPHI_MAX_RANK && column.strides[column.rank - 1] != 1) {
        column.dims[column.rank] = column.strides[column.rank] = 1;
        column.rank++;
    }
    if (!array_as_matrix(&column, &matrix_rows, &spec->ids_columns, &spec->ld_ids))
        return row_stride(call, &column, &spec->ld_ids);
    if (spec->ld_ids == spec->ids_columns)
        spec->ld_ids = 0;
    spec->count = array_count(ids);
    spec->per_row = rows_per_row(ids, spec->count);
    return row_stride(call, rows, &spec->ld_y);
}

static graphi_status bind_embedding(const struct bind_call *call, struct kernel *kernel)
{
    struct embedding_spec spec = {.rows = call->in[0].dims[0], .columns = call->in[0].dims[1]};
    TRY(row_stride(call, &call->in[0], &spec.ld_table));
    TRY(ids_of(call, &call->in[1], &call->out[0], &spec));
    return embedding_bind(&spec, (enum isa)call->isa, kernel);
}

static graphi_status bind_embedding_grad(const struct bind_call *call, struct kernel *kernel)
{
    struct embedding_spec spec = {.rows = call->out[0].dims[0], .columns = call->out[0].dims[1]};
    if (!array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a strided output, expected a dense one");
    TRY(ids_of(call, &call->in[0], &call->in[1], &spec));
    return embedding_gradient_bind(&spec, (enum isa)call->isa, kernel);
}

static graphi_status bind_one_hot(const struct bind_call *call, struct kernel *kernel)
{
    struct embedding_spec spec = {.rows = attr_int(call->node, "depth")};
    TRY(ids_of(call, &call->in[0], &call->out[0], &spec));
    return one_hot_bind(&spec, (enum isa)call->isa, kernel);
}

static void embedding_gradient(struct gradient_call *call)
{
    if (!call->needed[0])
        return;
    graphi_attribute rows = int_attribute("rows", graph_value(call->graph, call->in[0])->type.dims[0]);
    graphi_value in[] = {call->in[1], call->grad_out[0]};
    call->grad_in[0] = graphi_op(call->graph, "embedding_grad", 2, in, 1, &rows);
}

const struct op_kind ops_embedding[] = {
    {.name = "embedding",
     .role = IS_LOOKUP,
     .summary = "rows of a table by ids",
     .shapes = "table [V,E], int32 ids [...] to [...,E]",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .flags = OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED,
     .scalability = "memory",
     .shape = embedding_shape,
     .gradient = embedding_gradient,
     .bind = bind_embedding},
    {.name = "embedding_grad",
     .role = IS_LOOKUP_GRADIENT,
     .summary = "gradient of embedding: ids, dy to the dense sum by id, in the order of the ids",
     .shapes = "int32 ids [...], dy [...,E] to [rows,E]",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .attributes = rows_attributes,
     .flags = OP_STRIDED_IN | OP_BOUNDED,
     .scalability = "memory",
     .shape = embedding_grad_shape,
     .bind = bind_embedding_grad},
    {.name = "one_hot",
     .summary = "ids to rows of 0, with 1 where the column is the id",
     .shapes = "int32 ids [...] to [...,depth]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = depth_attributes,
     .flags = OP_STRIDED_OUT | OP_BOUNDED,
     .scalability = "memory",
     .shape = one_hot_shape,
     .bind = bind_one_hot},
    {0},
};
