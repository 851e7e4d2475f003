/* SPDX-License-Identifier: Apache-2.0 */
/* IDX images and labels, plain and gzip. The first byte says which; labels are for four images. */
#include "fuzz.h"

#include "train/images.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct image_set set = {.count = 4};
    graphi_status status = (data[0] & 1 ? idx_parse_labels : idx_parse_images)("fuzz", data + 1, size - 1, &set);
    if (status == GRAPHI_OK && !(data[0] & 1) && (set.count < 1 || !set.bytes))
        abort();
    images_free(&set);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                     0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 4, 3, 1, 0, 9};
    if (which > 3)
        return 0;
    const uint8_t *plain = which & 1 ? labels : images;
    size_t length = which & 1 ? sizeof labels : sizeof images;
    out[0] = which & 1;
    if (which < 2) {
        memcpy(out + 1, plain, length);
        return length + 1;
    }
    z_stream z = {.next_in = (Bytef *)(uintptr_t)plain,
                  .avail_in = (uInt)length,
                  .next_out = out + 1,
                  .avail_out = (uInt)size - 1};
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    size_t packed = z.total_out;
    deflateEnd(&z);
    return packed + 1;
}
