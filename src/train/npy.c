/* SPDX-License-Identifier: Apache-2.0 */
/* .npy: "\x93NUMPY", version, header length, a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2,
 * 3), }, the data. The dictionary is read by a small parser of exactly this form. Any thread. */
#include "train/npy.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/reader.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *descr; /* as it is written */
    size_t size;
} types[NPY_TYPES] = {
    [NPY_F4] = {"<f4", 4}, [NPY_F8] = {"<f8", 8}, [NPY_U1] = {"|u1", 1}, [NPY_I4] = {"<i4", 4},
    [NPY_I8] = {"<i8", 8}, [NPY_B1] = {"|b1", 1}, [NPY_I1] = {"|i1", 1}, [NPY_I2] = {"<i2", 2},
    [NPY_U2] = {"<u2", 2}, [NPY_U4] = {"<u4", 4}, [NPY_U8] = {"<u8", 8}, [NPY_F2] = {"<f2", 2},
    [NPY_BF16] = {"<V2", 2}, [NPY_F12] = {"<f12", 12}, [NPY_F16] = {"<f16", 16},
};

size_t npy_size(enum npy_type type) { return types[type].size; }

const char *npy_name(enum npy_type type) { return types[type].descr; }

struct header {
    const char *where, *next, *end;
    unsigned seen; /* a bit a key */
    struct npy *out;
};

static graphi_status bad_header(const struct header *h, const char *expected)
{
    int left = h->end - h->next > 24 ? 24 : (int)(h->end - h->next);
    return fail(GRAPHI_INVALID, h->where, "found \"%.*s\" in the header, expected %s", left, h->next, expected);
}

static void skip_space(struct header *h)
{
    while (h->next < h->end && (*h->next == ' ' || *h->next == '\n' || *h->next == '\t'))
        h->next++;
}

static bool skip_word(struct header *h, const char *word)
{
    skip_space(h);
    size_t length = strlen(word);
    if ((size_t)(h->end - h->next) < length || memcmp(h->next, word, length) != 0)
        return false;
    h->next += length;
    return true;
}

/* 'text' or "text" into out[16]; Python 2 may have written u'text'. */
static graphi_status header_string(struct header *h, char *out)
{
    skip_space(h);
    if (h->end - h->next > 1 && (*h->next == 'u' || *h->next == 'b') && (h->next[1] == '\'' || h->next[1] == '"'))
        h->next++;
    if (h->next == h->end || (*h->next != '\'' && *h->next != '"'))
        return bad_header(h, "a quoted string");
    char quote = *h->next;
    const char *close = memchr(h->next + 1, quote, (size_t)(h->end - h->next - 1));
    if (!close || close - h->next > 15)
        return bad_header(h, "a quoted string of at most 14 characters");
    size_t length = (size_t)(close - h->next - 1);
    memcpy(out, h->next + 1, length);
    out[length] = 0;
    h->next = close + 1;
    return GRAPHI_OK;
}

static const char accepted[] = "bool, integers of 8 to 64 bits, floats of 16 to 80 bits, or bfloat16 (<V2)";

/* The order of bytes, '<', '>', '|' (none) or '=' (this machine's), then kind and size. */
static graphi_status header_descr(struct header *h)
{
    char descr[16];
    skip_space(h);
    if (h->next < h->end && *h->next == '[')
        return fail(GRAPHI_UNSUPPORTED, h->where, "found a structured type, expected %s", accepted);
    TRY(header_string(h, descr));
    for (int t = 0; *descr && strchr("<>|=", *descr) && t < NPY_TYPES; t++)
        if (!strcmp(descr + 1, types[t].descr + 1)) {
            h->out->type = (enum npy_type)t;
            h->out->big_endian = *descr == '>';
            return GRAPHI_OK;
        }
    return fail(GRAPHI_UNSUPPORTED, h->where, "found element type \"%s\", expected %s", descr, accepted);
}

static graphi_status header_order(struct header *h)
{
    h->out->fortran = skip_word(h, "True");
    return h->out->fortran || skip_word(h, "False") ? GRAPHI_OK : bad_header(h, "True or False");
}

static graphi_status header_number(struct header *h, int64_t *out)
{
    const char *start = h->next;
    int64_t value = 0;
    for (; h->next < h->end && *h->next >= '0' && *h->next <= '9'; h->next++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *h->next - '0', &value))
            return fail(GRAPHI_INVALID, h->where,
                        "found a dimension of more than 63 bits, expected one that fits the file");
    if (h->next == start)
        return bad_header(h, "a dimension");
    if (h->next < h->end && *h->next == 'L') /* Python 2's long numbers */
        h->next++;
    *out = value;
    return GRAPHI_OK;
}

static graphi_status header_shape(struct header *h)
{
    if (!skip_word(h, "("))
        return bad_header(h, "(");
    h->out->rank = 0;
    while (!skip_word(h, ")")) {
        if (h->out->rank == GRAPHI_MAX_RANK)
            return fail(GRAPHI_UNSUPPORTED, h->where, "found more than %d dimensions, expected at most as many",
                        GRAPHI_MAX_RANK);
        TRY(header_number(h, &h->out->dims[h->out->rank++]));
        if (!skip_word(h, ",") && (skip_space(h), h->next == h->end || *h->next != ')'))
            return bad_header(h, ", or )");
    }
    return GRAPHI_OK;
}

static const struct {
    const char *key;
    graphi_status (*parse)(struct header *);
} keys[] = {{"descr", header_descr}, {"fortran_order", header_order}, {"shape", header_shape}};

static graphi_status header_item(struct header *h)
{
    char key[16];
    TRY(header_string(h, key));
    if (!skip_word(h, ":"))
        return bad_header(h, ":");
    for (unsigned k = 0; k < 3; k++)
        if (!strcmp(key, keys[k].key)) {
            if (h->seen & 1u << k)
                return fail(GRAPHI_INVALID, h->where, "found the key \"%s\" twice, expected it once", key);
            h->seen |= 1u << k;
            return keys[k].parse(h);
        }
    return fail(GRAPHI_INVALID, h->where, "found the key \"%s\" in the header, expected descr, fortran_order or shape",
                key);
}

static graphi_status header_parse(struct header *h)
{
    if (!skip_word(h, "{"))
        return bad_header(h, "{");
    while (!skip_word(h, "}")) {
        TRY(header_item(h));
        if (!skip_word(h, ",") && (skip_space(h), h->next == h->end || *h->next != '}'))
            return bad_header(h, ", or }");
    }
    skip_space(h);
    if (h->next != h->end)
        return bad_header(h, "the end of the header");
    if (h->seen != 7)
        return fail(GRAPHI_INVALID, h->where,
                    "found a header without descr, fortran_order or shape, expected all three");
    return GRAPHI_OK;
}

/* The header's place: version 1 counts its length in 16 bits, later ones in 32. */
static graphi_status find_header(const char *where, const uint8_t *bytes, size_t size, size_t *start, size_t *length)
{
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fail(GRAPHI_INVALID, where, "found no magic number in %zu bytes, expected \\x93NUMPY", size);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return fail(GRAPHI_INVALID, where, "found version %u.%u, expected 1.0, 2.0 or 3.0", bytes[6], bytes[7]);
    *start = bytes[6] == 1 ? 10 : 12;
    *length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1 && size >= 12)
        *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (size < *start || *length > size - *start)
        return fail(GRAPHI_INVALID, where, "found a header of %zu bytes in a file of %zu, expected a whole one",
                    *length, size);
    return GRAPHI_OK;
}

graphi_status npy_parse(const char *where, const void *bytes, size_t size, struct npy *out)
{
    size_t start = 0, length = 0;
    TRY(find_header(where, bytes, size, &start, &length));
    struct npy array = {0};
    const char *text = (const char *)bytes + start;
    struct header h = {.where = where, .next = text, .end = text + length, .out = &array};
    TRY(header_parse(&h));
    int64_t need = (int64_t)types[array.type].size;
    array.count = 1;
    bool huge = false;
    for (int i = 0; i < array.rank; i++)
        huge |= __builtin_mul_overflow(array.count, array.dims[i], &array.count);
    huge |= __builtin_mul_overflow(need, array.count, &need);
    size_t have = size - start - length;
    if (huge || (uint64_t)need != have)
        return fail(GRAPHI_INVALID, where, "found %zu bytes of data, expected %s%lld for the declared shape", have,
                    huge ? "more than " : "", (long long)(huge ? INT64_MAX : need));
    array.data = text + length;
    array.bytes = have;
    *out = array;
    return GRAPHI_OK;
}

graphi_status npy_load(const char *path, size_t limit, struct npy *out)
{
    void *bytes;
    size_t size;
    TRY(file_read(path, limit, &bytes, &size));
    TRY(reader_unpack(path, limit, &bytes, &size));
    graphi_status status = npy_parse(path, bytes, size, out);
    if (status == GRAPHI_OK)
        out->file = bytes;
    else
        mem_free(bytes);
    return status;
}

void npy_free(struct npy *array)
{
    mem_free(array->file);
    *array = (struct npy){0};
}

graphi_status npy_save(const char *path, enum npy_type type, int rank, const int64_t *dims, const void *data)
{
    char text[256] = "\x93NUMPY\x01";
    int at = 10 + snprintf(text + 10, sizeof text - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                           types[type].descr);
    size_t bytes = types[type].size;
    for (int i = 0; i < rank; i++) { /* a tuple of one element ends in a comma: (3,) */
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld%s", i ? " " : "", (long long)dims[i],
                       i + 1 < rank || rank == 1 ? "," : "");
        bytes *= (size_t)dims[i];
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "), }");
    while ((at + 1) % 64)
        text[at++] = ' ';
    text[at++] = '\n';
    text[8] = (char)((at - 10) & 0xff);
    text[9] = (char)((at - 10) >> 8);
    struct file_writer writer;
    TRY(file_write_begin(&writer, path));
    TRY(file_write(&writer, text, (size_t)at));
    TRY(file_write(&writer, data, bytes));
    return file_write_commit(&writer);
}
