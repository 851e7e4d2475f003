/* SPDX-License-Identifier: Apache-2.0 */
/* Members of .npz archives, which are ZIP files of .npy arrays, stored or deflated, also beyond 4 GB. The directory at
 * the end of the file is read; every number in it is checked against the bytes. Source: PKWARE APPNOTE 6.3. Any
 * thread. */
#include "value/npy.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <string.h>
#include <zlib.h>

struct archive {
    const char *where;
    const uint8_t *bytes;
    size_t size;
};

struct member {
    uint64_t packed, whole, at; /* bytes, and the local header */
    int method;
};

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

/* Fields that do not fit 32 bits stand in an extra field, in this order. */
static void read_large(const uint8_t *extra, size_t size, struct member *m)
{
    while (size >= 4) {
        const size_t length = number(extra + 2, 2);
        if (length > size - 4)
            return;
        if (number(extra, 2) == 1) {
            const uint8_t *at = extra + 4;
            uint64_t *fields[] = {&m->whole, &m->packed, &m->at};
            for (int i = 0; i < 3; i++)
                if (*fields[i] == UINT32_MAX && at + 8 <= extra + 4 + length) {
                    *fields[i] = number(at, 8);
                    at += 8;
                }
            return;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
}

static graphi_status find(const struct archive *a, const char *name, struct member *out)
{
    const size_t length = strlen(name);
    size_t end = a->size;
    while (end >= 22 && number(a->bytes + end - 22, 4) != 0x06054b50 && a->size - end < 65536)
        end--;
    if (end < 22 || number(a->bytes + end - 22, 4) != 0x06054b50)
        return fail(GRAPHI_INVALID, a->where, "found no directory of a ZIP file, expected an .npz archive");
    uint64_t at = number(a->bytes + end - 22 + 16, 4);
    if (at == UINT32_MAX && end >= 22 + 20 + 56) { /* the larger directory's place lies before */
        const uint64_t large = number(a->bytes + end - 22 - 20 + 8, 8);
        at = large <= a->size - 56 ? number(a->bytes + large + 48, 8) : at;
    }
    while (at <= a->size - 46 && a->size >= 46 && number(a->bytes + at, 4) == 0x02014b50) {
        const uint8_t *entry = a->bytes + at;
        const size_t names = number(entry + 28, 2), extra = number(entry + 30, 2), comment = number(entry + 32, 2);
        if (names + extra + comment > a->size - 46 - at)
            break;
        if (names == length + 4 && memcmp(entry + 46, name, length) == 0 &&
            memcmp(entry + 46 + length, ".npy", 4) == 0) {
            *out = (struct member){number(entry + 20, 4), number(entry + 24, 4), number(entry + 42, 4),
                                   (int)number(entry + 10, 2)};
            read_large(entry + 46 + names, extra, out);
            return GRAPHI_OK;
        }
        at += 46 + names + extra + comment;
    }
    return fail(GRAPHI_INVALID, a->where, "found no member %.200s.npy, expected it in the archive", name);
}

static graphi_status inflate_member(const struct archive *a, const uint8_t *from, const struct member *m, uint8_t *to)
{
    z_stream stream = {.next_in = (Bytef *)from, .next_out = to};
    uint64_t in = m->packed, out = m->whole;
    int status = Z_OK;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return fail_memory(a->where, 1 << 16);
    while (status == Z_OK) {
        const uint64_t most = 1 << 30, fed = in < most ? in : most, room = out < most ? out : most;
        stream.avail_in = (uInt)fed;
        stream.avail_out = (uInt)room;
        status = inflate(&stream, Z_NO_FLUSH);
        in -= fed - stream.avail_in;
        out -= room - stream.avail_out;
        if (status == Z_OK && fed == stream.avail_in && room == stream.avail_out)
            break;
    }
    inflateEnd(&stream);
    return status == Z_STREAM_END && out == 0
               ? GRAPHI_OK
               : fail(GRAPHI_INVALID, a->where, "found a member that does not inflate, expected %llu bytes",
                      (unsigned long long)m->whole);
}

static graphi_status extract(const struct archive *a, const struct member *m, graphi_tensor **out)
{
    if (a->size < 30 || m->at > a->size - 30 || number(a->bytes + m->at, 4) != 0x04034b50)
        return fail(GRAPHI_INVALID, a->where, "found no member at byte %llu, expected one", (unsigned long long)m->at);
    const uint8_t *local = a->bytes + m->at;
    const uint64_t start = m->at + 30 + number(local + 26, 2) + number(local + 28, 2);
    if (start > a->size || m->packed > a->size - start)
        return fail(GRAPHI_INVALID, a->where, "found a member of %llu bytes, expected one within the file",
                    (unsigned long long)m->packed);
    if (m->method == 0)
        return npy_value(a->where, a->bytes + start, m->packed, out);
    if (m->method != 8 || m->whole > m->packed * 1032 + 1024) /* deflate makes no more of a byte */
        return fail(GRAPHI_UNSUPPORTED, a->where, "found packing method %d, expected stored or deflated", m->method);
    uint8_t *room = mem_alloc(m->whole);
    if (!room)
        return fail_memory(a->where, m->whole);
    graphi_status status = inflate_member(a, a->bytes + start, m, room);
    if (status == GRAPHI_OK)
        status = npy_value(a->where, room, m->whole, out);
    mem_free(room);
    return status;
}

graphi_status npz_value_load(const char *path, const char *name, graphi_tensor **out)
{
    void *bytes;
    struct member member;
    struct archive archive = {.where = path};
    TRY(file_read(path, (size_t)1 << 36, &bytes, &archive.size));
    archive.bytes = bytes;
    graphi_status status = find(&archive, name, &member);
    if (status == GRAPHI_OK)
        status = extract(&archive, &member, out);
    mem_free(bytes);
    return status;
}
