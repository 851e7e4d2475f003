/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals. A sequence that changes is a new one that shares the values. Source: ONNX Sequence*,
 * Optional*. Any thread. */
#include "value/families.h"

static graphi_status check_sequence(const struct op_call *call)
{
    struct value_text text;
    if (call->in[0]->kind != GRAPHI_KIND_SEQUENCE)
        return op_fail(call, "found %s, expected a sequence", value_describe(call->in[0], &text));
    return GRAPHI_OK;
}

/* A place of -count to count - 1 (count: behind the last), or `otherwise` where input i is left out. */
static graphi_status position(const struct op_call *call, int i, int64_t count, int64_t otherwise, bool behind,
                              int64_t *out)
{
    int64_t at = otherwise;
    if (op_in(call, i)) {
        TRY(op_tensor(call, i, 0));
        if (call->in[i]->count != 1)
            return op_fail(call, "found %lld positions, expected 1", (long long)call->in[i]->count);
        at = value_int(call->in[i], 0);
    }
    if (at < -count || at >= count + behind)
        return op_fail(call, "found position %lld of %lld values, expected one of them", (long long)at,
                       (long long)count);
    *out = at < 0 ? at + count : at;
    return GRAPHI_OK;
}

static graphi_status run_construct(struct op_call *call)
{
    for (int i = 0; i < call->ins; i++)
        TRY(op_tensor(call, i, call->in[0] ? call->in[0]->type : 0));
    TRY(value_sequence(call->where, call->ins, &call->out[0]));
    for (int i = 0; i < call->ins; i++)
        call->out[0]->items[i] = value_keep(call->in[i]);
    return GRAPHI_OK;
}

static graphi_status run_empty(struct op_call *call)
{
    return value_sequence(call->where, 0, &call->out[0]);
}

static graphi_status run_at(struct op_call *call)
{
    int64_t at;
    TRY(check_sequence(call));
    TRY(position(call, 1, call->in[0]->count, 0, false, &at));
    call->out[0] = value_keep(call->in[0]->items[at]);
    return GRAPHI_OK;
}

static graphi_status run_insert(struct op_call *call)
{
    int64_t at;
    TRY(check_sequence(call));
    TRY(op_tensor(call, 1, 0));
    const graphi_tensor *from = call->in[0];
    TRY(position(call, 2, from->count, from->count, true, &at));
    TRY(value_sequence(call->where, from->count + 1, &call->out[0]));
    for (int64_t i = 0; i <= from->count; i++)
        call->out[0]->items[i] = value_keep(i == at ? call->in[1] : from->items[i - (i > at)]);
    return GRAPHI_OK;
}

static graphi_status run_erase(struct op_call *call)
{
    int64_t at;
    TRY(check_sequence(call));
    const graphi_tensor *from = call->in[0];
    TRY(position(call, 1, from->count, from->count - 1, false, &at));
    TRY(value_sequence(call->where, from->count - 1, &call->out[0]));
    for (int64_t i = 0; i < from->count - 1; i++)
        call->out[0]->items[i] = value_keep(from->items[i + (i >= at)]);
    return GRAPHI_OK;
}

static graphi_status run_length(struct op_call *call)
{
    TRY(check_sequence(call));
    return value_number(call->where, T_I64, (double)call->in[0]->count, &call->out[0]);
}

static graphi_status run_optional(struct op_call *call)
{
    if (!op_in(call, 0))
        return value_nothing(&call->out[0]);
    call->out[0] = value_keep(call->in[0]);
    return GRAPHI_OK;
}

static graphi_status run_has_element(struct op_call *call)
{
    const graphi_tensor *x = op_in(call, 0);
    return value_number(call->where, T_BOOL, x && x->kind != GRAPHI_KIND_NOTHING, &call->out[0]);
}

static graphi_status run_get_element(struct op_call *call)
{
    if (call->in[0]->kind == GRAPHI_KIND_NOTHING)
        return op_fail(call, "found an optional that holds nothing, expected a value");
    call->out[0] = value_keep(call->in[0]);
    return GRAPHI_OK;
}

const struct host_op host_ops_sequence[] = {
    {"SequenceConstruct", 1, -1, 1, "", run_construct, 0},
    {"SequenceEmpty", 0, 0, 1, "dtype", run_empty, 0},
    {"SequenceAt", 2, 2, 1, "", run_at, 0},
    {"SequenceInsert", 2, 3, 1, "", run_insert, 0},
    {"SequenceErase", 1, 2, 1, "", run_erase, 0},
    {"SequenceLength", 1, 1, 1, "", run_length, 0},
    {"Optional", 0, 1, 1, "type", run_optional, 0},
    {"OptionalHasElement", 0, 1, 1, "", run_has_element, 0},
    {"OptionalGetElement", 1, 1, 1, "", run_get_element, 0},
    {0},
};
