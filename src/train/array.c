/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays between .npy files and callers. */
#include "graphi/array.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "train/npy.h"

/* An array may be this large. */
#define ARRAY_MOST ((size_t)1 << 36)

static void shape_text(int rank, const int64_t *dims, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "", (long long)dims[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static graphi_status to_i32(const char *path, const struct npy *array, int32_t *out)
{
    int64_t *wide = mem_alloc((size_t)array->count * sizeof *wide);
    if (!wide)
        return fail_memory(path, (size_t)array->count * sizeof *wide);
    graphi_status status = npy_to_i64(path, array, wide);
    for (int64_t i = 0; i < array->count && status == GRAPHI_OK; i++) {
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
            status = fail(GRAPHI_INVALID, path, "found %lld at element %lld, expected an int32", (long long)wide[i],
                          (long long)i);
        else
            out[i] = (int32_t)wide[i];
    }
    mem_free(wide);
    return status;
}

static graphi_status convert(const char *path, const struct npy *array, graphi_dtype dtype, int rank,
                             const int64_t *dims, void *data)
{
    if (array->rank != rank || (rank && memcmp(array->dims, dims, (size_t)rank * sizeof *dims) != 0)) {
        char found[160], expected[160];
        shape_text(array->rank, array->dims, found, sizeof found);
        shape_text(rank, dims, expected, sizeof expected);
        return fail(GRAPHI_INVALID, path, "found an array of shape %s, expected %s", found, expected);
    }
    switch (dtype) {
    case GRAPHI_F32:
        return npy_to_f32(path, array, data);
    case GRAPHI_I32:
        return to_i32(path, array, data);
    case GRAPHI_I64:
        return npy_to_i64(path, array, data);
    default:
        return fail(GRAPHI_UNSUPPORTED, path, "found %s asked for, expected float32, int32 or int64",
                    graphi_dtype_name(dtype));
    }
}

graphi_status graphi_array_load(const char *path, graphi_dtype dtype, int rank, const int64_t *dims, void *data)
{
    GIVEN(data);
    if (rank > 0)
        GIVEN(dims);
    struct npy array;
    TRY(npy_load(path, ARRAY_MOST, &array));
    graphi_status status = convert(path, &array, dtype, rank, dims, data);
    npy_free(&array);
    return status;
}

/* The shape comes from a caller; a header of more dimensions than a graph has would not fit its place. */
static graphi_status check_shape(const char *path, graphi_dtype dtype, int rank, const int64_t *dims)
{
    int64_t bytes = (int64_t)graphi_dtype_size(dtype);
    bool wrong = rank < 0 || rank > GRAPHI_MAX_RANK;
    for (int i = 0; !wrong && i < rank; i++)
        wrong = dims[i] < 0 || __builtin_mul_overflow(bytes, dims[i], &bytes);
    if (!wrong)
        return GRAPHI_OK;
    char found[160];
    shape_text(rank, dims, found, sizeof found);
    return fail(GRAPHI_INVALID, path, "found an array of shape %s, expected at most %d dimensions of sizes from 0 on",
                found, GRAPHI_MAX_RANK);
}

graphi_status graphi_array_save(const char *path, graphi_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    GIVEN(data);
    if (rank > 0)
        GIVEN(dims);
    static const struct {
        graphi_dtype dtype;
        enum npy_type type;
    } types[] = {{GRAPHI_F32, NPY_F4}, {GRAPHI_I32, NPY_I4}, {GRAPHI_I64, NPY_I8}, {GRAPHI_U8, NPY_U1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype) {
            TRY(check_shape(path, dtype, rank, dims));
            return npy_save(path, types[i].type, rank, dims, data);
        }
    return fail(GRAPHI_UNSUPPORTED, path, "found %s, expected float32, int32, int64 or uint8",
                graphi_dtype_name(dtype));
}
