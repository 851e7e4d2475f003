/* SPDX-License-Identifier: Apache-2.0 */
/* What all kernels share: descriptors, serial execution. */
#include "kernels/kernel.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

graphi_status kernel_make(struct kernel like, const void *params, size_t bytes, struct kernel *kernel)
{
    like.params = mem_alloc(bytes);
    if (!like.params)
        return fail_memory(like.name, bytes);
    memcpy(like.params, params, bytes);
    like.params_bytes = bytes;
    like.phases += !like.phases;
    *kernel = like;
    return GRAPHI_OK;
}

void kernel_fini(struct kernel *kernel)
{
    mem_free(kernel->params);
    *kernel = (struct kernel){0};
}

int64_t kernel_steps(const struct kernel *kernel, const struct kernel_call *call)
{
    return kernel->steps ? kernel->steps(call) : 1;
}

graphi_status kernel_run_serial(const struct kernel *kernel, const struct kernel_call *call)
{
    struct kernel_call step = *call;
    const int64_t steps = kernel_steps(kernel, call);
    for (step.loop = 0; step.loop < steps; step.loop++)
        for (int phase = 0; phase < kernel->phases; phase++)
            for (int share = 0; share < kernel->shares[phase]; share++)
                TRY(kernel->run(&step, phase, share));
    return GRAPHI_OK;
}

struct array_desc array_dense(graphi_dtype dtype, int rank, const int64_t *dims)
{
    struct array_desc desc = {.dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        desc.dims[i] = dims[i];
        desc.strides[i] = stride;
        stride *= dims[i];
    }
    return desc;
}

int64_t array_count(const struct array_desc *desc)
{
    int64_t count = 1;
    for (int i = 0; i < desc->rank; i++)
        count *= desc->dims[i];
    return count;
}

bool array_is_dense(const struct array_desc *desc)
{
    int64_t stride = 1;
    for (int i = desc->rank - 1; i >= 0; i--) {
        if (desc->dims[i] != 1 && desc->strides[i] != stride)
            return false;
        stride *= desc->dims[i];
    }
    return true;
}

bool array_as_matrix(const struct array_desc *desc, int64_t *rows, int64_t *cols, int64_t *ld)
{
    int last = desc->rank - 1;
    *rows = 1;
    *cols = desc->rank ? desc->dims[last] : 1;
    *ld = *cols;
    if (desc->rank && *cols > 1 && desc->strides[last] != 1)
        return false;
    bool found = false;
    int64_t expected = 0;
    for (int i = last - 1; i >= 0; i--) {
        if (desc->dims[i] == 1)
            continue;
        if (found && desc->strides[i] != expected)
            return false;
        if (!found)
            *ld = desc->strides[i];
        found = true;
        expected = desc->strides[i] * desc->dims[i];
        *rows *= desc->dims[i];
    }
    return true;
}
