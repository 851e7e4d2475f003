/* SPDX-License-Identifier: Apache-2.0 */
/* Images and labels of .npy files. Bytes stay bytes; whatever else NumPy has becomes float32 pixels and int32 labels.
 * Any thread. */
#include "base/memory.h"
#include "base/status.h"
#include "train/images.h"
#include "train/npy.h"

#include <math.h>
#include <string.h>

static graphi_status images_copy(const char *where, const struct npy *array, struct image_set *set)
{
    set->count = array->dims[0];
    set->height = array->dims[1];
    set->width = array->dims[2];
    set->channels = array->rank == 4 ? array->dims[3] : 1;
    const bool bytes = array->type == NPY_U1;
    uint64_t elements;
    TRY(images_check(where, set, (uint64_t)array->count, &elements));
    const size_t size = (size_t)elements * (bytes ? 1 : sizeof(float));
    void *copy = mem_alloc(size);
    if (!copy)
        return fail_memory(where, size);
    if (bytes) {
        set->bytes = copy;
        npy_to_bytes(array, set->bytes);
        return GRAPHI_OK;
    }
    set->floats = copy;
    return npy_to_f32(where, array, set->floats);
}

static graphi_status check_finite(const char *where, const struct image_set *set, int64_t count)
{
    for (int64_t i = 0; set->floats && i < count; i++)
        if (!isfinite(set->floats[i]))
            return fail(GRAPHI_INVALID, where, "found %g at element %lld, expected finite numbers",
                        (double)set->floats[i], (long long)i);
    return GRAPHI_OK;
}

graphi_status npy_parse_images(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    struct npy array;
    TRY(npy_parse(where, bytes, size, &array));
    if (array.rank < 3 || array.rank > 4)
        return fail(GRAPHI_INVALID, where, "found element type %s and rank %d, expected [N, H, W, C] or [N, H, W]",
                    npy_name(array.type), array.rank);
    TRY(images_copy(where, &array, set));
    return check_finite(where, set, array.count);
}

static graphi_status take_labels(const char *where, const int64_t *labels, int64_t count, struct image_set *set)
{
    for (int64_t i = 0; i < count; i++) {
        if (labels[i] < 0 || labels[i] >= IMAGE_CLASSES_MOST)
            return fail(GRAPHI_INVALID, where, "found label %lld at %lld, expected 0 to %d", (long long)labels[i],
                        (long long)i, IMAGE_CLASSES_MOST - 1);
        set->labels[i] = (int32_t)labels[i];
        if (labels[i] >= set->classes)
            set->classes = labels[i] + 1;
    }
    return GRAPHI_OK;
}

graphi_status npy_parse_labels(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    struct npy array;
    TRY(npy_parse(where, bytes, size, &array));
    if (array.rank < 1 || array.rank > 2 ||
        (array.rank == 2 && array.dims[1] != 1)) /* a column of a table is one too */
        return fail(GRAPHI_INVALID, where,
                    "found labels of rank %d, expected [N] or [N, 1]: the number of a class each", array.rank);
    if (array.count != set->count)
        return fail(GRAPHI_INVALID, where, "found %lld labels, expected %lld, one an image", (long long)array.count,
                    (long long)set->count);
    const size_t count = (size_t)array.count;
    int64_t *wide = mem_zalloc_array(count, sizeof *wide);
    set->labels = mem_zalloc_array(count, sizeof *set->labels);
    graphi_status status =
        wide && set->labels ? npy_to_i64(where, &array, wide) : fail_memory(where, count * sizeof *wide);
    if (status == GRAPHI_OK)
        status = take_labels(where, wide, array.count, set);
    mem_free(wide);
    return status;
}
