/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts that the shape operations derive from each other: pure functions on descriptors. */
#include "ops/shape.h"

#include <string.h>

static bool is_empty(const struct array_desc *desc)
{
    for (int i = 0; i < desc->rank; i++)
        if (desc->dims[i] == 0)
            return true;
    return false;
}

/* Groups of dimensions with equal products are matched from the front; within a group the input must be contiguous. */
bool restride(const struct array_desc *in, struct array_desc *out)
{
    int64_t dims[GRAPHI_MAX_RANK], strides[GRAPHI_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in->rank; i++)
        if (in->dims[i] != 1) {
            dims[rank] = in->dims[i];
            strides[rank++] = in->strides[i];
        }
    struct array_desc dense = array_dense(out->dtype, out->rank, out->dims);
    if (rank == 0 || is_empty(in)) {
        memcpy(out->strides, dense.strides, sizeof out->strides);
        return true;
    }
    int64_t result[GRAPHI_MAX_RANK] = {0};
    int o = 0, n = 0;
    while (o < rank && n < out->rank) {
        int o_end = o + 1, n_end = n + 1;
        int64_t old = dims[o], new = out->dims[n];
        while (old != new) {
            if (new < old ? n_end == out->rank : o_end == rank)
                return false;
            if (new < old)
                new *= out->dims[n_end++];
            else
                old *= dims[o_end++];
        }
        for (int i = o; i + 1 < o_end; i++)
            if (strides[i] != strides[i + 1] * dims[i + 1])
                return false;
        result[n_end - 1] = strides[o_end - 1];
        for (int i = n_end - 1; i > n; i--)
            result[i - 1] = result[i] * out->dims[i];
        o = o_end;
        n = n_end;
    }
    for (; n < out->rank; n++) /* dimensions of size 1 are left */
        result[n] = 1;
    memcpy(out->strides, result, sizeof out->strides);
    return true;
}

struct copy_part copy_part_of(const struct array_desc *dims, const struct array_desc *from, const struct array_desc *to)
{
    struct copy_part part = {.rank = dims->rank, .rows = dims->bounded ? dims->dims[0] : 0};
    memcpy(part.dims, dims->dims, sizeof part.dims);
    memcpy(part.from, from->strides, sizeof part.from);
    memcpy(part.to, to->strides, sizeof part.to);
    return part;
}

graphi_status bind_parts(const struct bind_call *call, const char *name, int parts, const struct copy_part *part,
                         struct kernel *kernel)
{
    struct copy_spec spec = {
        .name = name,
        .element = graphi_dtype_size(call->in[0].dtype),
        .parts = parts,
        .part = part,
        .streaming = call->streaming};
    return copy_bind(&spec, (enum isa)call->isa, kernel);
}
