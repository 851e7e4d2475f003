/* SPDX-License-Identifier: Apache-2.0 */
/* CIFAR-10 binary batches. The first byte's lowest bit: append to a set that has a record already. */
#include "fuzz.h"

#include "train/images.h"

#include <stdlib.h>
#include <string.h>

enum { RECORD = 3073 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t one[RECORD] = {9};
    if (!size)
        return 0;
    struct image_set set = {0};
    if (data[0] & 1 && cifar_parse("first", one, sizeof one, &set) != GRAPHI_OK)
        abort();
    int64_t before = set.count;
    graphi_status status = cifar_parse("fuzz", data + 1, size - 1, &set);
    if (status == GRAPHI_OK && set.count - before != (int64_t)((size - 1) / RECORD))
        abort();
    images_free(&set);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    if (which > 1)
        return 0;
    size_t length = 1 + (which + 1) * RECORD;
    memset(out, 3, length);
    out[0] = (uint8_t)which;
    return length;
}
