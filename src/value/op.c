/* SPDX-License-Identifier: Apache-2.0 */
/* How a host operator is run, and what their functions share (op.h). Any thread. */
#include "value/op.h"

#include "value/element.h"

#include <string.h>

static graphi_status check_numbers(const struct op_call *call)
{
    const struct host_op *op = call->op;
    if (call->ins < op->least || (op->most >= 0 && call->ins > op->most))
        return op_fail(call, "found %d inputs of %s, expected %d to %d", call->ins, op->name, op->least, op->most);
    if (op->outs >= 0 && call->outs > op->outs)
        return op_fail(call, "found %d outputs of %s, expected at most %d", call->outs, op->name, op->outs);
    for (int i = 0; i < op->least; i++)
        if (!call->in[i])
            return op_fail(call, "found no input %d of %s, expected one", i, op->name);
    return GRAPHI_OK;
}

graphi_status host_op_run(struct op_call *call)
{
    graphi_status status = check_numbers(call);
    if (status == GRAPHI_OK)
        status = call->op->run(call);
    for (int i = 0; i < call->outs && status == GRAPHI_OK; i++)
        if (op_wants(call, i) && !call->out[i])
            status = fail(GRAPHI_UNSUPPORTED, call->where, "found that output %d of %s is wanted, expected others", i,
                          call->op->name);
    for (int i = 0; i < call->outs && status != GRAPHI_OK; i++) {
        value_drop(call->out[i]);
        call->out[i] = NULL;
    }
    return status;
}

const struct attribute *op_attribute(const struct op_call *call, const char *name)
{
    for (size_t i = 0; i < call->attribute_count; i++)
        if (strcmp(call->attributes[i].name, name) == 0)
            return &call->attributes[i];
    return NULL;
}

int64_t op_int(const struct op_call *call, const char *name, int64_t otherwise)
{
    const struct attribute *a = op_attribute(call, name);
    return a && a->kind == ATTRIBUTE_INT ? a->i : otherwise;
}

float op_float(const struct op_call *call, const char *name, float otherwise)
{
    const struct attribute *a = op_attribute(call, name);
    return a && a->kind == ATTRIBUTE_FLOAT ? a->f : otherwise;
}

const char *op_string(const struct op_call *call, const char *name, const char *otherwise)
{
    const struct attribute *a = op_attribute(call, name);
    return a && a->kind == ATTRIBUTE_STRING ? a->s : otherwise;
}

const int64_t *op_ints(const struct op_call *call, const char *name, size_t *count)
{
    const struct attribute *a = op_attribute(call, name);
    *count = a && a->kind == ATTRIBUTE_INTS ? a->count : 0;
    return *count ? a->ints : NULL;
}

graphi_status op_new(struct op_call *call, int i, graphi_element type, int rank, const int64_t *dims,
                     graphi_tensor **out)
{
    TRY(value_new(call->where, type, rank, dims, &call->out[i]));
    *out = call->out[i];
    return GRAPHI_OK;
}

graphi_status op_view(struct op_call *call, int i, graphi_tensor *of, int rank, const int64_t *dims)
{
    return value_view(call->where, of, rank, dims, &call->out[i]);
}

graphi_status op_tensor(const struct op_call *call, int i, graphi_element type)
{
    struct value_text text;
    const graphi_tensor *value = op_in(call, i);
    if (!value || value->kind != GRAPHI_KIND_TENSOR || (type && value->type != type))
        return op_fail(call, "found %s as input %d of %s, expected a tensor%s%s", value_describe(value, &text), i,
                       call->op->name, type ? " of " : "", type ? graphi_element_name(type) : "");
    return GRAPHI_OK;
}

graphi_status op_same_types(const struct op_call *call, int from, int to)
{
    TRY(op_tensor(call, from, 0));
    for (int i = from + 1; i < to && i < call->ins; i++)
        if (call->in[i])
            TRY(op_tensor(call, i, call->in[from]->type));
    return GRAPHI_OK;
}

graphi_status op_axis(const struct op_call *call, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return op_fail(call, "found axis %lld of %s, expected %d to %d", (long long)axis, call->op->name, -rank,
                       rank - 1);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return GRAPHI_OK;
}

graphi_status op_numbers(const struct op_call *call, int i, int64_t numbers[VALUE_RANK], int *count)
{
    const graphi_tensor *value = op_in(call, i);
    *count = -1;
    if (!value)
        return GRAPHI_OK;
    TRY(op_tensor(call, i, 0));
    if (element_is_float(value->type) || value->rank > 1 || value->count > VALUE_RANK) {
        struct value_text text;
        return op_fail(call, "found %s as input %d of %s, expected at most %d integers", value_describe(value, &text),
                       i, call->op->name, VALUE_RANK);
    }
    *count = (int)value->count;
    for (int k = 0; k < *count; k++)
        numbers[k] = value_int(value, k);
    return GRAPHI_OK;
}

graphi_status op_list(const struct op_call *call, int i, const char *name, int64_t numbers[VALUE_RANK], int *count)
{
    TRY(op_numbers(call, i, numbers, count));
    const struct attribute *a = op_attribute(call, name);
    if (*count >= 0 || !a)
        return GRAPHI_OK;
    if (a->kind == ATTRIBUTE_INT) {
        numbers[0] = a->i;
        *count = 1;
        return GRAPHI_OK;
    }
    if (a->kind != ATTRIBUTE_INTS || a->count > VALUE_RANK)
        return op_fail(call, "found %zu numbers as %s of %s, expected at most %d integers", a->count, name,
                       call->op->name, VALUE_RANK);
    *count = (int)a->count;
    if (a->count)
        memcpy(numbers, a->ints, a->count * sizeof *numbers);
    return GRAPHI_OK;
}

graphi_status op_broadcast(const struct op_call *call, graphi_tensor *const *values, int count, int *rank,
                           int64_t dims[VALUE_RANK])
{
    *rank = 0;
    for (int v = 0; v < count; v++)
        *rank = values[v]->rank > *rank ? values[v]->rank : *rank;
    for (int i = 0; i < *rank; i++)
        dims[i] = 1;
    for (int v = 0; v < count; v++)
        for (int i = 0; i < values[v]->rank; i++) {
            int64_t *to = &dims[*rank - values[v]->rank + i], from = values[v]->dims[i];
            if (*to == 1)
                *to = from;
            else if (from != 1 && from != *to) {
                struct value_text a, b;
                return op_fail(call, "found %s beside %s for %s, expected shapes that broadcast",
                               value_describe(values[v], &a), dims_describe(*rank, dims, &b), call->op->name);
            }
        }
    return GRAPHI_OK;
}
