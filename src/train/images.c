/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of image files but .npy: IDX (MNIST, Fashion-MNIST) and CIFAR-10 binary. Usual size: 60,000 images of
 * 28×28×1, 50,000 of 32×32×3. */
#include "train/images.h"

#include "base/memory.h"
#include "base/status.h"
#include "graphi/data.h"
#include "train/reader.h"

#include <string.h>

graphi_status images_check(const char *where, const struct image_set *set, uint64_t most, uint64_t *elements)
{
    if (set->count < 1 || set->count > IMAGE_COUNT_MOST)
        return fail(GRAPHI_INVALID, where, "found %lld images, expected 1 to %lld", (long long)set->count,
                    (long long)IMAGE_COUNT_MOST);
    if (set->height < 1 || set->width < 1 || set->height > IMAGE_SIDE_MOST || set->width > IMAGE_SIDE_MOST)
        return fail(GRAPHI_INVALID, where, "found images of %lldx%lld, expected sides of 1 to %d",
                    (long long)set->height, (long long)set->width, IMAGE_SIDE_MOST);
    if (set->channels < 1 || set->channels > GRAPHI_DATA_CHANNELS)
        return fail(GRAPHI_INVALID, where, "found %lld channels, expected 1 to %d", (long long)set->channels,
                    GRAPHI_DATA_CHANNELS);
    uint64_t product = (uint64_t)set->count * (uint64_t)image_elements(set); /* 30 + 14 + 14 + 4 bits */
    if (product > most || product > SIZE_MAX / sizeof(float))
        return fail(GRAPHI_INVALID, where,
                    "found room for at most %llu values, expected %llu: %lld images of %lldx%lldx%lld",
                    (unsigned long long)most, (unsigned long long)product, (long long)set->count,
                    (long long)set->height, (long long)set->width, (long long)set->channels);
    *elements = product;
    return GRAPHI_OK;
}

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The magic number is 0, 0, 8 for bytes, rank; then a size a dimension. */
static graphi_status idx_header(struct reader *reader, uint8_t rank, uint32_t *sizes)
{
    uint8_t header[4 + 4 * 3];
    TRY(reader_take(reader, header, 4, "the IDX magic number"));
    uint32_t found = big_endian(header), expected = 0x800u + rank;
    if (found != expected)
        return fail(GRAPHI_INVALID, reader->where,
                    "found magic number 0x%08x, expected 0x%08x (IDX, unsigned bytes, rank %u)", found, expected, rank);
    TRY(reader_take(reader, header + 4, 4u * rank, "the IDX dimensions"));
    for (unsigned i = 0; i < rank; i++)
        sizes[i] = big_endian(header + 4 + 4 * i);
    return GRAPHI_OK;
}

static graphi_status idx_images(struct reader *reader, struct image_set *set)
{
    uint32_t sizes[3];
    TRY(idx_header(reader, 3, sizes));
    set->count = sizes[0];
    set->height = sizes[1];
    set->width = sizes[2];
    set->channels = 1;
    uint64_t elements;
    TRY(images_check(reader->where, set, reader_most(reader), &elements));
    set->bytes = mem_alloc((size_t)elements);
    if (!set->bytes)
        return fail_memory(reader->where, (size_t)elements);
    TRY(reader_take(reader, set->bytes, (size_t)elements, "pixels"));
    return reader_end(reader);
}

static graphi_status idx_labels(struct reader *reader, struct image_set *set)
{
    uint32_t count;
    TRY(idx_header(reader, 1, &count));
    if ((int64_t)count != set->count)
        return fail(GRAPHI_INVALID, reader->where, "found %u labels, expected %lld, one an image", count,
                    (long long)set->count);
    set->labels = mem_zalloc_array(count, sizeof *set->labels);
    if (!set->labels)
        return fail_memory(reader->where, count * sizeof *set->labels);
    uint8_t block[4096];
    for (uint32_t done = 0; done < count;) {
        uint32_t part = count - done < sizeof block ? count - done : (uint32_t)sizeof block;
        TRY(reader_take(reader, block, part, "labels"));
        for (uint32_t i = 0; i < part; i++) {
            set->labels[done + i] = block[i];
            if (block[i] >= set->classes)
                set->classes = block[i] + 1;
        }
        done += part;
    }
    return reader_end(reader);
}

static graphi_status with_reader(const char *where, const void *bytes, size_t size, struct image_set *set,
                                 graphi_status (*parse)(struct reader *, struct image_set *))
{
    struct reader reader;
    graphi_status status = reader_begin(&reader, where, bytes, size);
    if (status == GRAPHI_OK)
        status = parse(&reader, set);
    reader_close(&reader);
    return status;
}

graphi_status idx_parse_images(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    return with_reader(where, bytes, size, set, idx_images);
}

graphi_status idx_parse_labels(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    return with_reader(where, bytes, size, set, idx_labels);
}

/* A record is one byte of label and three planes, red, green, blue, of 32×32. */
enum {
    CIFAR_SIDE = 32,
    CIFAR_PLANE = CIFAR_SIDE * CIFAR_SIDE,
    CIFAR_PIXELS = 3 * CIFAR_PLANE,
    CIFAR_RECORD = 1 + CIFAR_PIXELS
};

static graphi_status cifar_grow(const char *where, struct image_set *set, size_t records)
{
    size_t old = (size_t)set->count, now = old + records;
    uint8_t *bytes = mem_resize(set->bytes, old * CIFAR_PIXELS, now * CIFAR_PIXELS);
    if (!bytes)
        return fail_memory(where, now * CIFAR_PIXELS);
    set->bytes = bytes;
    int32_t *labels = mem_resize(set->labels, old * sizeof *labels, now * sizeof *labels);
    if (!labels)
        return fail_memory(where, now * sizeof *labels);
    set->labels = labels;
    return GRAPHI_OK;
}

graphi_status cifar_parse(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    if (!size || size % CIFAR_RECORD)
        return fail(GRAPHI_INVALID, where, "found %zu bytes, expected a multiple of %d above 0 (CIFAR-10 binary)", size,
                    CIFAR_RECORD);
    size_t records = size / CIFAR_RECORD;
    if (set->count + (int64_t)records > IMAGE_COUNT_MOST)
        return fail(GRAPHI_INVALID, where, "found more than %lld images, expected at most as many",
                    (long long)IMAGE_COUNT_MOST);
    const uint8_t *record = bytes;
    for (size_t i = 0; i < records; i++)
        if (record[i * CIFAR_RECORD] > 9)
            return fail(GRAPHI_INVALID, where, "found label %u in record %zu, expected 0 to 9",
                        record[i * CIFAR_RECORD], i);
    TRY(cifar_grow(where, set, records));
    for (size_t i = 0; i < records; i++, record += CIFAR_RECORD) {
        uint8_t *pixels = set->bytes + (size_t)set->count * CIFAR_PIXELS;
        set->labels[set->count++] = record[0];
        for (int p = 0; p < CIFAR_PLANE; p++)
            for (int c = 0; c < 3; c++)
                pixels[p * 3 + c] = record[1 + c * CIFAR_PLANE + p];
    }
    set->height = set->width = CIFAR_SIDE;
    set->channels = 3;
    set->classes = 10;
    return GRAPHI_OK;
}

void images_free(struct image_set *set)
{
    mem_free(set->bytes);
    mem_free(set->floats);
    mem_free(set->labels);
    *set = (struct image_set){0};
}
