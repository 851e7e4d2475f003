/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that take elements from places told by a tensor, or put them there. Places count from the end where they
 * are negative; one that is out of range is refused. Source: ONNX Gather, GatherElements, GatherND, ScatterElements,
 * ScatterND, TensorScatter. Any thread. */
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

static char *place(const graphi_tensor *value, int64_t element)
{
    return (char *)value->data + element * (int64_t)element_size(value->type);
}

static graphi_status index_at(const struct op_call *call, const graphi_tensor *indices, int64_t i, int64_t n,
                              int64_t *out)
{
    const int64_t k = value_int(indices, i);
    if (k < -n || k >= n)
        return op_fail(call, "found index %lld at element %lld, expected %lld to %lld", (long long)k, (long long)i,
                       (long long)-n, (long long)n - 1);
    *out = k < 0 ? k + n : k;
    return GRAPHI_OK;
}

static graphi_status check_indices(const struct op_call *call, int i)
{
    TRY(op_tensor(call, i, 0));
    if (element_is_float(call->in[i]->type))
        return op_fail(call, "found indices of %s, expected integers", graphi_element_name(call->in[i]->type));
    return GRAPHI_OK;
}

static graphi_status run_gather(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], outer = 1, inner = 1, from;
    int axis, rank = 0;
    TRY(op_tensor(call, 0, 0));
    TRY(check_indices(call, 1));
    const graphi_tensor *x = call->in[0], *indices = call->in[1];
    TRY(op_axis(call, op_int(call, "axis", 0), x->rank, &axis));
    if (x->rank + indices->rank - 1 > VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found rank %d, expected at most %d", x->rank + indices->rank - 1,
                    VALUE_RANK);
    for (int i = 0; i < axis; i++)
        outer *= dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        inner *= dims[rank++] = x->dims[i];
    TRY(op_new(call, 0, x->type, rank, dims, &out));
    const size_t bytes = (size_t)inner * element_size(x->type);
    const int64_t n = x->dims[axis];
    for (int64_t k = 0; k < indices->count; k++) {
        TRY(index_at(call, indices, k, n, &from));
        for (int64_t o = 0; o < outer; o++)
            memcpy(place(out, (o * indices->count + k) * inner), place(x, (o * n + from) * inner), bytes);
    }
    return GRAPHI_OK;
}

static bool next_index(int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

/* Where in x the element `index` of indices points, along the axis. */
static graphi_status along_axis(const struct op_call *call, const graphi_tensor *x, const graphi_tensor *indices,
                                int64_t element, const int64_t *index, int axis, int64_t *out)
{
    int64_t at, strides[VALUE_RANK], sum = 0;
    dims_strides(x->rank, x->dims, strides);
    TRY(index_at(call, indices, element, x->dims[axis], &at));
    for (int i = 0; i < x->rank; i++)
        sum += (i == axis ? at : index[i]) * strides[i];
    *out = sum;
    return GRAPHI_OK;
}

static graphi_status check_inside(const struct op_call *call, const graphi_tensor *x, const graphi_tensor *indices,
                                  int axis)
{
    struct value_text a, b;
    bool fits = x->rank == indices->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis || indices->dims[i] <= x->dims[i];
    return fits ? GRAPHI_OK
                : op_fail(call, "found indices %s for %s, expected no more off the axis", value_describe(indices, &a),
                          value_describe(x, &b));
}

static graphi_status run_gather_elements(struct op_call *call)
{
    graphi_tensor *out;
    int64_t index[VALUE_RANK] = {0}, from;
    int axis;
    TRY(op_tensor(call, 0, 0));
    TRY(check_indices(call, 1));
    const graphi_tensor *x = call->in[0], *indices = call->in[1];
    TRY(op_axis(call, op_int(call, "axis", 0), x->rank, &axis));
    TRY(check_inside(call, x, indices, axis));
    TRY(op_new(call, 0, x->type, indices->rank, indices->dims, &out));
    for (int64_t k = 0; k < out->count; k++, next_index(out->rank, out->dims, index)) {
        TRY(along_axis(call, x, indices, k, index, axis, &from));
        memcpy(place(out, k), place(x, from), element_size(x->type));
    }
    return GRAPHI_OK;
}

enum reduction { NONE, ADD, MUL, MAX, MIN };

static graphi_status find_reduction(const struct op_call *call, enum reduction *out)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = op_string(call, "reduction", "none");
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum reduction)i;
            return GRAPHI_OK;
        }
    return op_fail(call, "found reduction \"%s\", expected none, add, mul, max or min", name);
}

static void combine(enum reduction how, graphi_tensor *out, int64_t at, const graphi_tensor *updates, int64_t from)
{
    if (how == NONE) {
        memcpy(place(out, at), place(updates, from), element_size(out->type));
        return;
    }
    if (element_is_float(out->type)) {
        const double a = value_double(out, at), b = value_double(updates, from);
        const double c = how == ADD ? a + b : how == MUL ? a * b : isnan(b) || (how == MAX ? b > a : b < a) ? b : a;
        element_store(DOMAIN_F64, out->type, &c, 1, place(out, at));
        return;
    }
    const int64_t a = value_int(out, at), b = value_int(updates, from);
    const bool more = out->type == T_U64 ? (uint64_t)b > (uint64_t)a : b > a;
    const int64_t c = how == ADD             ? (int64_t)((uint64_t)a + (uint64_t)b)
                      : how == MUL           ? (int64_t)((uint64_t)a * (uint64_t)b)
                      : more == (how == MAX) ? b
                                             : a;
    element_store(DOMAIN_I64, out->type, &c, 1, place(out, at));
}

static graphi_status copy_first(struct op_call *call, graphi_tensor **out)
{
    TRY(op_new(call, 0, call->in[0]->type, call->in[0]->rank, call->in[0]->dims, out));
    memcpy((*out)->data, call->in[0]->data, (*out)->bytes);
    return GRAPHI_OK;
}

static graphi_status run_scatter_elements(struct op_call *call)
{
    struct value_text a, b;
    graphi_tensor *out;
    enum reduction how;
    int64_t index[VALUE_RANK] = {0}, to;
    int axis;
    TRY(op_tensor(call, 0, 0));
    TRY(check_indices(call, 1));
    TRY(op_tensor(call, 2, call->in[0]->type));
    TRY(find_reduction(call, &how));
    const graphi_tensor *x = call->in[0], *indices = call->in[1], *updates = call->in[2];
    TRY(op_axis(call, op_int(call, "axis", 0), x->rank, &axis));
    TRY(check_inside(call, x, indices, axis));
    if (updates->rank != indices->rank || memcmp(updates->dims, indices->dims, (size_t)updates->rank * 8) != 0)
        return op_fail(call, "found updates %s for indices %s, expected one shape", value_describe(updates, &a),
                       value_describe(indices, &b));
    TRY(copy_first(call, &out));
    for (int64_t k = 0; k < indices->count; k++, next_index(indices->rank, indices->dims, index)) {
        TRY(along_axis(call, x, indices, k, index, axis, &to));
        combine(how, out, to, updates, k);
    }
    return GRAPHI_OK;
}

/* Tuple k of indices, whose last dimension is the tuple: the element of x, from dimension `from` on, that it names. */
static graphi_status tuple_at(const struct op_call *call, const graphi_tensor *x, int from,
                              const graphi_tensor *indices, int64_t k, int64_t *out)
{
    const int64_t width = indices->dims[indices->rank - 1];
    int64_t strides[VALUE_RANK], at, sum = 0;
    dims_strides(x->rank, x->dims, strides);
    for (int64_t i = 0; i < width; i++) {
        TRY(index_at(call, indices, k * width + i, x->dims[from + i], &at));
        sum += at * strides[from + i];
    }
    *out = sum;
    return GRAPHI_OK;
}

static graphi_status check_tuples(const struct op_call *call, const graphi_tensor *x, const graphi_tensor *indices,
                                  int batch)
{
    struct value_text a, b;
    if (indices->rank < 1 || x->rank < 1 || batch < 0 || batch >= indices->rank || batch > x->rank ||
        indices->dims[indices->rank - 1] > x->rank - batch)
        return op_fail(call, "found indices %s for %s, expected tuples of at most its rank",
                       value_describe(indices, &a), value_describe(x, &b));
    return GRAPHI_OK;
}

static graphi_status run_gather_nd(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[2 * VALUE_RANK], from, tuples = 1, inner = 1, batches = 1;
    int rank = 0;
    TRY(op_tensor(call, 0, 0));
    TRY(check_indices(call, 1));
    const graphi_tensor *x = call->in[0], *indices = call->in[1];
    const int batch = (int)op_int(call, "batch_dims", 0);
    TRY(check_tuples(call, x, indices, batch));
    const int width = (int)indices->dims[indices->rank - 1];
    for (int i = 0; i < indices->rank - 1; i++)
        *(i < batch ? &batches : &tuples) *= dims[rank++] = indices->dims[i];
    for (int i = batch + width; i < x->rank; i++)
        inner *= dims[rank++] = x->dims[i];
    int64_t strides[VALUE_RANK], x_batches = 1;
    dims_strides(x->rank, x->dims, strides);
    for (int i = 0; i < batch; i++)
        x_batches *= x->dims[i];
    if (x_batches != batches)
        return op_fail(call, "found %lld rows of indices for %lld of data, expected as many", (long long)batches,
                       (long long)x_batches);
    TRY(op_new(call, 0, x->type, rank, dims, &out));
    const int64_t row = batches ? x->count / batches : 0;
    for (int64_t k = 0; k < batches * tuples; k++) {
        TRY(tuple_at(call, x, batch, indices, k, &from));
        memcpy(place(out, k * inner), place(x, k / tuples * row + from), (size_t)inner * element_size(x->type));
    }
    return GRAPHI_OK;
}

static graphi_status run_scatter_nd(struct op_call *call)
{
    graphi_tensor *out;
    enum reduction how;
    int64_t to, inner = 1, tuples = 1;
    TRY(op_tensor(call, 0, 0));
    TRY(check_indices(call, 1));
    TRY(op_tensor(call, 2, call->in[0]->type));
    TRY(find_reduction(call, &how));
    const graphi_tensor *x = call->in[0], *indices = call->in[1], *updates = call->in[2];
    TRY(check_tuples(call, x, indices, 0));
    for (int i = (int)indices->dims[indices->rank - 1]; i < x->rank; i++)
        inner *= x->dims[i];
    for (int i = 0; i < indices->rank - 1; i++)
        tuples *= indices->dims[i];
    if (updates->count != tuples * inner)
        return op_fail(call, "found %lld updates, expected %lld", (long long)updates->count,
                       (long long)(tuples * inner));
    TRY(copy_first(call, &out));
    for (int64_t k = 0; k < tuples; k++) {
        TRY(tuple_at(call, x, 0, indices, k, &to));
        for (int64_t i = 0; i < inner; i++)
            combine(how, out, to + i, updates, k * inner + i);
    }
    return GRAPHI_OK;
}

const struct host_op host_ops_gather[] = {
    {"Gather", 2, 2, 1, "axis", run_gather, 0},
    {"GatherElements", 2, 2, 1, "axis", run_gather_elements, 0},
    {"GatherND", 2, 2, 1, "batch_dims", run_gather_nd, 0},
    {"ScatterElements", 3, 3, 1, "axis reduction", run_scatter_elements, 0},
    {"ScatterND", 3, 3, 1, "reduction", run_scatter_nd, 0},
    {0},
};
