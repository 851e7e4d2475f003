/* SPDX-License-Identifier: Apache-2.0 */
/* Plain or gzip bytes in memory. Usual size: 26 MB packed, 47 MB unpacked. */
#include "train/reader.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

static voidpf stream_alloc(voidpf unused, uInt count, uInt size) { return mem_zalloc_array(count, size); }

static void stream_free(voidpf unused, voidpf pointer) { mem_free(pointer); }

graphi_status reader_begin(struct reader *reader, const char *where, const void *bytes, size_t size)
{
    *reader = (struct reader){.where = where, .next = bytes, .left = size};
    if (size < 2 || reader->next[0] != 0x1f || reader->next[1] != 0x8b)
        return GRAPHI_OK;
    reader->stream.zalloc = stream_alloc;
    reader->stream.zfree = stream_free;
    if (inflateInit2(&reader->stream, 15 + 16) != Z_OK) /* 15: the largest window, 16: gzip */
        return fail_memory(where, sizeof reader->stream);
    reader->packed = true;
    return GRAPHI_OK;
}

/* Up to `size` bytes; fewer only at the end. Zlib counts in 32 bits, so it goes in pieces. */
static graphi_status unpack(struct reader *reader, uint8_t *out, size_t size, size_t *got)
{
    z_stream *z = &reader->stream;
    *got = 0;
    while (*got < size && !reader->ended) {
        uInt room = size - *got > 1u << 30 ? 1u << 30 : (uInt)(size - *got);
        uInt given = reader->left > 1u << 30 ? 1u << 30 : (uInt)reader->left;
        z->next_out = out + *got;
        z->avail_out = room;
        z->next_in = (Bytef *)(uintptr_t)reader->next;
        z->avail_in = given;
        int result = inflate(z, Z_NO_FLUSH);
        reader->next += given - z->avail_in;
        reader->left -= given - z->avail_in;
        *got += room - z->avail_out;
        reader->ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return fail_memory(reader->where, 1u << 15);
        if (result == Z_BUF_ERROR) /* the input ended within the stream */
            return GRAPHI_OK;
        if (result != Z_OK && result != Z_STREAM_END)
            return fail(GRAPHI_INVALID, reader->where, "found damaged gzip data (%s), expected a whole file",
                        z->msg ? z->msg : "no reason given");
    }
    return GRAPHI_OK;
}

graphi_status reader_take(struct reader *reader, void *out, size_t size, const char *what)
{
    size_t got = reader->left < size ? reader->left : size;
    if (reader->packed) {
        TRY(unpack(reader, out, size, &got));
    } else {
        if (got)
            memcpy(out, reader->next, got);
        reader->next += got;
        reader->left -= got;
    }
    if (got < size)
        return fail(GRAPHI_INVALID, reader->where, "found %zu bytes of %s before the file ends, expected %zu", got,
                    what, size);
    return GRAPHI_OK;
}

graphi_status reader_end(struct reader *reader)
{
    if (reader->packed) {
        uint8_t extra;
        size_t got = 0;
        TRY(unpack(reader, &extra, 1, &got));
        if (got)
            return fail(GRAPHI_INVALID, reader->where, "found more data than the header declares, expected the end");
        if (!reader->ended)
            return fail(GRAPHI_INVALID, reader->where, "found gzip data without its checksum, expected a whole file");
    }
    if (reader->left)
        return fail(GRAPHI_INVALID, reader->where, "found %zu bytes behind the data, expected the end", reader->left);
    return GRAPHI_OK;
}

uint64_t reader_most(const struct reader *reader)
{
    /* Deflate gains at most a factor of 1032; 64 KB may wait inside zlib. */
    return reader->packed ? (uint64_t)reader->left * 1032 + 65536 : reader->left;
}

void reader_close(struct reader *reader)
{
    if (reader->packed)
        inflateEnd(&reader->stream);
    reader->packed = false;
}
