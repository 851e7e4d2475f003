/* SPDX-License-Identifier: Apache-2.0 */
/* The least of PNG (ISO/IEC 15948): signature, IHDR, one IDAT of unfiltered rows through zlib, IEND. */
#include "cli/png.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tool/output.h"
#include "tool/report.h"

static const unsigned char border = 128;

static void store32(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Length, type, data, CRC of type and data. */
static bool write_chunk(FILE *file, const char *type, const unsigned char *data, size_t size)
{
    unsigned char head[8], tail[4];
    store32(head, size);
    memcpy(head + 4, type, 4);
    uLong crc = crc32(crc32(0, head + 4, 4), data, (uInt)size);
    store32(tail, crc);
    return fwrite(head, 1, 8, file) == 8 && fwrite(data, 1, size, file) == size && fwrite(tail, 1, 4, file) == 4;
}

static unsigned char shade(float number)
{
    return (unsigned char)(number <= 0 ? 0 : number >= 1 ? 255 : number * 255 + 0.5f);
}

/* One pixel row of one image into the grid's row. */
static void copy_row(unsigned char *to, const float *from, int64_t samples)
{
    for (int64_t i = 0; i < samples; i++)
        to[i] = shade(from[i]);
}

static graphi_status write_file(const char *path, const unsigned char header[13], const unsigned char *body,
                                size_t size)
{
    struct output output;
    graphi_status status = output_begin(&output, path);
    if (status != GRAPHI_OK)
        return status;
    FILE *file = output.file;
    return output_end(&output, fwrite("\x89PNG\r\n\x1a\n", 1, 8, file) == 8 && write_chunk(file, "IHDR", header, 13) &&
                                   write_chunk(file, "IDAT", body, size) && write_chunk(file, "IEND", body, 0));
}

graphi_status png_write_grid(const char *path, const float *images, int64_t rows, int64_t columns, int64_t height,
                             int64_t width, int64_t channels)
{
    const int64_t high = rows * (height + 1) + 1, wide = columns * (width + 1) + 1, line = 1 + wide * channels;
    unsigned char header[13] = {[8] = 8, [9] = channels == 3 ? 2 : 0}; /* bits; colour or grey */
    uLong raw_size = (uLong)(high * line);
    uLongf size = compressBound(raw_size);
    unsigned char *raw = malloc(raw_size), *packed = malloc(size);
    graphi_status status = GRAPHI_OK;
    if (!raw || !packed)
        status = report_error(GRAPHI_MEMORY, path, "found no memory for %lu bytes, expected some", raw_size);
    if (status == GRAPHI_OK) {
        memset(raw, border, raw_size);
        for (int64_t y = 0; y < high; y++)
            raw[y * line] = 0; /* filter of the row: none */
        for (int64_t i = 0; i < rows * columns; i++)
            for (int64_t y = 0; y < height; y++) {
                int64_t row = i / columns * (height + 1) + 1 + y, column = i % columns * (width + 1) + 1;
                copy_row(raw + row * line + 1 + column * channels, images + (i * height + y) * width * channels,
                         width * channels);
            }
        store32(header, (uint64_t)wide);
        store32(header + 4, (uint64_t)high);
        status = compress(packed, &size, raw, raw_size) == Z_OK
                     ? write_file(path, header, packed, size)
                     : report_error(GRAPHI_MEMORY, path, "found no memory to compress, expected some");
    }
    free(raw);
    free(packed);
    return status;
}
