/* SPDX-License-Identifier: Apache-2.0 */
/* See program_layout.h. */
#include "kernels/program_layout.h"

#include "base/status.h"

#include <stdio.h>

bool program_strides(const struct array_desc *in, const struct array_desc *out, int64_t *strides)
{
    int shift = out->rank - in->rank;
    if (shift < 0 || in->dtype != GRAPHI_F32)
        return false;
    for (int i = 0; i < out->rank; i++) {
        strides[i] = 0;
        if (i < shift)
            continue;
        int64_t dim = in->dims[i - shift];
        bool bounded = in->bounded && i == shift;
        if (bounded && (i != 0 || !out->bounded))
            return false;
        if (dim != out->dims[i] && (dim != 1 || bounded))
            return false;
        if (dim != 1 || (i == 0 && bounded))
            strides[i] = in->strides[i - shift];
    }
    return true;
}

bool program_inner_accepted(const struct array_desc *out, const int64_t *strides, bool constant_allowed)
{
    int last = out->rank - 1;
    return last < 0 || out->dims[last] == 1 || strides[last] == 1 || (constant_allowed && strides[last] == 0);
}

bool program_accepts(const struct array_desc *in, const struct array_desc *out)
{
    int64_t strides[GRAPHI_MAX_RANK];
    return program_strides(in, out, strides) && program_inner_accepted(out, strides, true);
}

static void describe(const struct array_desc *desc, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s [", graphi_dtype_name(desc->dtype));
    for (int i = 0; i < desc->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i ? ", %lld" : "%lld", (long long)desc->dims[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

graphi_status program_refuse(const char *what, int index, const struct array_desc *found, const struct array_desc *out)
{
    char a[128], b[128];
    describe(found, a, sizeof a);
    describe(out, b, sizeof b);
    return fail(GRAPHI_UNSUPPORTED, "program",
                "found %s %d as %s, expected float32 that broadcasts to %s with a contiguous last dimension", what,
                index, a, b);
}
