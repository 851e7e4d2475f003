/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors headers and data. What is accepted must lie within the input and not overlap. */
#include "fuzz.h"

#include "train/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const uint8_t *data, size_t size)
{
    struct tensor_file file;
    if (safetensors_parse("fuzz", data, size, &file) != GRAPHI_OK)
        return;
    const uint8_t *at = NULL, *end = data + size;
    for (size_t i = 0; i < file.count; i++) {
        const uint8_t *from = file.tensors[i].data;
        if (from < data || from > end || file.tensors[i].bytes > (size_t)(end - from) || (at && from != at))
            abort();
        at = from + file.tensors[i].bytes;
    }
    safetensors_free(&file);
}

/* Mutated text is seldom JSON, and two changes seldom agree, so the input is also taken as places: up to four tensors,
 * two bytes each, of a well-formed header. */
static void check_places(const uint8_t *data, size_t size)
{
    char block[512];
    size_t count = 1 + data[0] % 4, have = data[0] / 4 % 16, at = 8;
    block[at++] = '{';
    for (size_t i = 0; i < count && 1 + 2 * i + 1 < size; i++) {
        int begin = data[1 + 2 * i] % 16 - 1, length = data[2 + 2 * i] % 8;
        at += (size_t)snprintf(block + at, sizeof block - at,
                               "%s\"%zu\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}", i ? "," : "", i,
                               length, begin, begin + length);
    }
    block[at++] = '}';
    uint64_t header = at - 8;
    memcpy(block, &header, 8);
    memset(block + at, 0, have);
    check((const uint8_t *)block, at + have);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    if (size)
        check_places(data, size);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const struct {
        const char *header;
        size_t bytes;
    } seeds[] = {
        {"{\"__metadata__\":{\"step\":\"7\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}}",
         29},
        {"{\"x\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"e\":{\"dtype\":\"BF16\",\"shape\":[0,4],"
         "\"data_offsets\":[8,8]}}  ",
         8},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
         "\"data_offsets\":[0,4]},\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8}, /* a digit or two away from an overlap */
        {"{}", 0},
    };
    if (which > 3)
        return 0;
    uint64_t length = strlen(seeds[which].header);
    memcpy(out, &length, 8);
    memcpy(out + 8, seeds[which].header, length);
    memset(out + 8 + length, 1, seeds[which].bytes);
    return 8 + length + seeds[which].bytes;
}
