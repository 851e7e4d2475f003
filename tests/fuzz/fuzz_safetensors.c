/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors headers and data. What is accepted must lie within the input and not overlap. */
#include "fuzz.h"

#include "train/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tensor_file file;
    if (safetensors_parse("fuzz", data, size, &file) != GRAPHI_OK)
        return 0;
    const uint8_t *at = NULL, *end = data + size;
    for (size_t i = 0; i < file.count; i++) {
        const uint8_t *from = file.tensors[i].data;
        if (from < data || from > end || file.tensors[i].bytes > (size_t)(end - from) || (at && from != at))
            abort();
        at = from + file.tensors[i].bytes;
    }
    safetensors_free(&file);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const struct {
        const char *header;
        size_t bytes;
    } seeds[] = {
        {"{\"__metadata__\":{\"step\":\"7\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}}", 29},
        {"{\"x\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"e\":{\"dtype\":\"BF16\",\"shape\":[0,4],\"data_offsets\":[8,8]}}  ", 8},
        {"{}", 0},
    };
    if (which > 2)
        return 0;
    uint64_t length = strlen(seeds[which].header);
    memcpy(out, &length, 8);
    memcpy(out + 8, seeds[which].header, length);
    memset(out + 8 + length, 1, seeds[which].bytes);
    return 8 + length + seeds[which].bytes;
}
