/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues as attributes (epilogue.h): what matmul and the convolutions share. */
#include "ops/epilogue.h"

static graphi_status decode(const char *where, const struct node *node, int first, int outputs, struct program *program,
                            bool *given)
{
    const int64_t *integers;
    int count = attr_ints(node, "program", &integers);
    *given = count > 0;
    int inputs = 1;
    if (*given) {
        TRY(program_decode(integers, count, program));
        inputs = program->inputs;
        if (program->outputs != outputs || inputs < 1)
            return fail(GRAPHI_INVALID, where, "found an epilogue with %d inputs and %d outputs, expected %d outputs",
                        inputs, program->outputs, outputs);
    } else if (outputs != 1) {
        return fail(GRAPHI_INVALID, where, "found %d outputs without an epilogue, expected 1", outputs);
    }
    if (node->inputs != first + inputs - 1)
        return fail(GRAPHI_INVALID, where, "found %d inputs, expected %d", node->inputs, first + inputs - 1);
    return GRAPHI_OK;
}

/* How dims meet the result seen as rows x (its last dimension): trailing dimensions as numpy pads them. */
static bool broadcast_of(int rank, const int64_t *dims, int to_rank, const int64_t *to, enum program_broadcast *out)
{
    if (rank > to_rank)
        return false;
    bool rows_full = rank == to_rank, rows_one = true;
    for (int i = 0; i < to_rank - 1; i++) {
        int at = i - (to_rank - rank);
        int64_t dim = at < 0 ? 1 : dims[at];
        if (dim != to[i])
            rows_full = false;
        if (dim != 1)
            rows_one = false;
    }
    int64_t last = rank ? dims[rank - 1] : 1, wide = to_rank ? to[to_rank - 1] : 1;
    if (to_rank > 0 && rows_full && last == wide)
        *out = PROGRAM_FULL;
    else if (rows_one && last == wide)
        *out = PROGRAM_ROW;
    else if (rows_one && last == 1)
        *out = PROGRAM_SCALAR;
    else if (rows_full && last == 1)
        *out = PROGRAM_COLUMN;
    else
        return false;
    return true;
}

/* Has the operand as many rows as the result, or one, at every size of what is bounded? */
static bool rows_agree(const struct value_type *in, const struct value_type *out)
{
    const bool one = in->symbol < 0 && (in->rank < out->rank || in->rank == 0 || in->dims[0] == 1);
    return one || (in->rank == out->rank && in->symbol == out->symbol);
}

bool epilogue_accepts(const struct value_type *in, const struct value_type *out)
{
    enum program_broadcast broadcast;
    return in->dtype == GRAPHI_F32 && rows_agree(in, out) &&
           broadcast_of(in->rank, in->dims, out->rank, out->dims, &broadcast);
}

graphi_status epilogue_shape(const struct shape_call *call, int first, int outputs)
{
    struct program program;
    bool given;
    TRY(decode(call->where, call->node, first, outputs, &program, &given));
    for (int i = first; i < call->node->inputs; i++) {
        bool fits = epilogue_accepts(call->in[i], call->out);
        TRY(expect(call, i, fits, "float32 that broadcasts to the result by rows, columns or wholly"));
    }
    for (int i = 1; given && i < program.outputs; i++)
        call->out[i] = call->out[0];
    return GRAPHI_OK;
}

graphi_status epilogue_layout(const struct bind_call *call, int first, int outputs, struct node_epilogue *out)
{
    bool given;
    *out = (struct node_epilogue){.spec = {.program = NULL}};
    TRY(decode(call->where, call->node, first, outputs, &out->program, &given));
    if (!given)
        return GRAPHI_OK;
    out->spec = (struct epilogue_spec){&out->program, out->broadcast, out->ld, out->output_ld};
    const struct array_desc *result = &call->out[0];
    for (int i = 1; i < out->program.inputs; i++) {
        const struct array_desc *in = &call->in[first + i - 1];
        if (!broadcast_of(in->rank, in->dims, result->rank, result->dims, &out->broadcast[i - 1]))
            return fail(GRAPHI_UNSUPPORTED, call->where,
                        "found input %d of another shape, expected one that broadcasts to the result", first + i - 1);
        TRY(row_stride(call, in, &out->ld[i - 1]));
    }
    for (int i = 1; i < out->program.outputs; i++)
        TRY(row_stride(call, &call->out[i], &out->output_ld[i - 1]));
    return GRAPHI_OK;
}

bool epilogue_refuses_gradient(struct gradient_call *call)
{
    const int64_t *integers;
    if (!attr_ints(call->op, "program", &integers))
        return false;
    graph_broken(call->graph, fail(GRAPHI_UNSUPPORTED, call->op->kind->name,
                                   "found a fused operation, expected gradients to be taken before the passes"));
    return true;
}
