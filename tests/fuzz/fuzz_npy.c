/* SPDX-License-Identifier: Apache-2.0 */
/* .npy headers and data, as arrays, as images and as labels. */
#include "fuzz.h"

#include "base/memory.h"
#include "train/images.h"
#include "train/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy array;
    if (npy_parse("fuzz", data, size, &array) == GRAPHI_OK) {
        const uint8_t *from = array.data;
        if (from < data || array.bytes > (size_t)(data + size - from) ||
            array.bytes != (size_t)array.count * npy_size(array.type))
            abort();
        float *floats = mem_alloc((size_t)array.count * sizeof *floats);
        int64_t *numbers = mem_alloc((size_t)array.count * sizeof *numbers);
        if (!floats || !numbers)
            abort();
        (void)npy_to_f32("fuzz", &array, floats);
        (void)npy_to_i64("fuzz", &array, numbers);
        mem_free(floats);
        mem_free(numbers);
    }
    struct image_set images = {0}, labels = {.count = 6};
    (void)npy_parse_images("fuzz", data, size, &images);
    (void)npy_parse_labels("fuzz", data, size, &labels);
    images_free(&images);
    images_free(&labels);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const struct {
        char version;
        const char *descr, *shape;
        size_t bytes;
        const char *order;
    } seeds[] = {{1, "<f4", "(2, 3, 2, 1)", 48, "False"}, {2, "|u1", "(2, 2, 2)", 8, "True"},
                 {3, "<i8", "(6,)", 48, "False"},         {1, "<f8", "()", 8, "False"},
                 {1, ">i2", "(2L, 3L, 2L)", 24, "True"},  {1, "<f16", "(2, 2)", 64, "True"},
                 {1, "|b1", "(6, 1)", 6, "False"},        {1, "<V2", "(4,)", 8, "False"}};
    if (which >= sizeof seeds / sizeof *seeds)
        return 0;
    size_t start = seeds[which].version == 1 ? 10 : 12;
    int length = snprintf((char *)out + start, size - start, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n",
                          seeds[which].descr, seeds[which].order, seeds[which].shape);
    memcpy(out, "\x93NUMPY\0\0\0\0\0\0", start);
    out[6] = (uint8_t)seeds[which].version;
    out[8] = (uint8_t)length;
    memset(out + start + length, 0, seeds[which].bytes);
    return start + (size_t)length + seeds[which].bytes;
}
