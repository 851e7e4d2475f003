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

/* A file may be several members one after the other, as `cat a.gz b.gz` and parallel compressors write it. Behind the
 * last one there may be zeros up to the end, as tapes have them. */
static void next_member(struct reader *reader)
{
    if (reader->left >= 2 && reader->next[0] == 0x1f && reader->next[1] == 0x8b) {
        reader->ended = inflateReset(&reader->stream) != Z_OK;
        return;
    }
    size_t zeros = 0;
    while (zeros < reader->left && reader->next[zeros] == 0)
        zeros++;
    if (zeros == reader->left)
        reader->left = 0;
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
        if (reader->ended)
            next_member(reader);
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

/* All that the reader still gives, in a buffer that grows; *data has a zero byte after its end. */
static graphi_status take_all(struct reader *reader, size_t limit, char **data, size_t *size)
{
    size_t room = 0, have = 0, got = 0;
    do {
        const size_t more = room < (size_t)1 << 20 ? (size_t)1 << 20 : room;
        char *grown = mem_resize(*data, room, room + more);
        if (!grown)
            return fail_memory(reader->where, room + more);
        *data = grown;
        room += more;
        TRY(unpack(reader, (uint8_t *)*data + have, room - 1 - have, &got));
        have += got;
        if (have > limit)
            return fail(GRAPHI_INVALID, reader->where, "found more than %zu bytes unpacked, expected at most as many",
                        limit);
    } while (have == room - 1);
    (*data)[have] = 0;
    *size = have;
    return reader->ended ? reader_end(reader)
                         : fail(GRAPHI_INVALID, reader->where, "found gzip data cut off, expected a whole file");
}

graphi_status reader_unpack(const char *where, size_t limit, void **data, size_t *size)
{
    struct reader reader;
    char *unpacked = NULL;
    graphi_status status = reader_begin(&reader, where, *data, *size);
    const bool packed = reader.packed;
    if (status == GRAPHI_OK && packed)
        status = take_all(&reader, limit, &unpacked, size);
    reader_close(&reader);
    if (packed || status != GRAPHI_OK) {
        mem_free(*data);
        *data = status == GRAPHI_OK ? unpacked : NULL;
    }
    if (status != GRAPHI_OK)
        mem_free(unpacked);
    return status;
}
