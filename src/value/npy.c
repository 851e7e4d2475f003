/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's arrays as host values (npy.h). The header is a Python dictionary of which three keys are looked for; sizes
 * are checked against the bytes before an array is made. Any thread. */
#include "value/npy.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "value/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *descr; /* without the byte order */
    graphi_element type;
} types[] = {
    {"f4", T_F32}, {"f8", T_F64}, {"f2", T_F16}, {"i1", T_I8},  {"i2", T_I16},  {"i4", T_I32},  {"i8", T_I64},
    {"u1", T_U8},  {"u2", T_U16}, {"u4", T_U32}, {"u8", T_U64}, {"b1", T_BOOL}, {"V2", T_BF16},
};

struct header {
    char text[1024];
    size_t start; /* of the data */
};

static graphi_status read_header(const char *where, const uint8_t *bytes, size_t size, struct header *h)
{
    if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3)
        return fail(GRAPHI_INVALID, where, "found no NumPy array, expected a .npy file");
    const size_t at = bytes[6] == 1 ? 10 : 12;
    const size_t length =
        bytes[8] | (size_t)bytes[9] << 8 | (at == 12 ? (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24 : 0);
    if (length > size - at || length >= sizeof h->text)
        return fail(GRAPHI_INVALID, where, "found a header of %zu bytes, expected at most %zu", length,
                    sizeof h->text - 1);
    memcpy(h->text, bytes + at, length);
    h->text[length] = 0;
    h->start = at + length;
    return GRAPHI_OK;
}

/* What stands behind a key, blanks skipped; NULL: no such key. */
static const char *after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at)
        return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':')
        at++;
    return at;
}

static graphi_status read_type(const char *where, const char *text, graphi_element *out)
{
    const char *at = after(text, "'descr'");
    if (at && *at == '\'' && at[1] == '>')
        return fail(GRAPHI_UNSUPPORTED, where, "found a big-endian array, expected a little-endian one");
    for (size_t i = 0; at && *at == '\'' && i < sizeof types / sizeof *types; i++)
        if (strchr("<|=", at[1]) && strncmp(at + 2, types[i].descr, 2) == 0 && at[4] == '\'') {
            *out = types[i].type;
            return GRAPHI_OK;
        }
    return fail(GRAPHI_UNSUPPORTED, where, "found element type %.12s, expected numbers or bool", at ? at : "none");
}

static graphi_status read_dims(const char *where, const char *text, int *rank, int64_t *dims)
{
    const char *at = after(text, "'shape'");
    if (!at || *at != '(')
        return fail(GRAPHI_INVALID, where, "found no shape in the header, expected one");
    *rank = 0;
    for (at++; *at && *at != ')';) {
        char *end;
        if (*at == ' ' || *at == ',') {
            at++;
            continue;
        }
        const long long number = strtoll(at, &end, 10);
        if (end == at || number < 0 || *rank == VALUE_RANK)
            return fail(GRAPHI_INVALID, where, "found the shape %.40s, expected at most %d sizes", at, VALUE_RANK);
        dims[(*rank)++] = number;
        at = *end == 'L' ? end + 1 : end;
    }
    return GRAPHI_OK;
}

/* Fortran's order has the first dimension beside each other. */
static void turn(graphi_tensor *value, const uint8_t *from)
{
    int64_t strides[VALUE_RANK], stride = 1;
    for (int i = 0; i < value->rank; i++) {
        strides[i] = stride;
        stride *= value->dims[i];
    }
    struct map map = map_over(value->rank, value->dims);
    map_broadcast(&map, value->rank, value->dims);
    map_strided(&map, strides);
    map_copy(map, element_size(value->type), value->data, from);
}

graphi_status npy_value(const char *where, const void *bytes, size_t size, graphi_tensor **out)
{
    struct header h;
    graphi_element type = GRAPHI_ELEMENT_UNKNOWN;
    int rank = 0;
    int64_t dims[VALUE_RANK];
    TRY(read_header(where, bytes, size, &h));
    TRY(read_type(where, h.text, &type));
    TRY(read_dims(where, h.text, &rank, dims));
    const int64_t count = dims_count(rank, dims, element_size(type));
    if (count < 0 || (size_t)count * element_size(type) != size - h.start)
        return fail(GRAPHI_INVALID, where, "found %zu bytes of data, expected those of the shape", size - h.start);
    TRY(value_new(where, type, rank, dims, out));
    const char *order = after(h.text, "'fortran_order'");
    if (order && *order == 'T' && rank > 1)
        turn(*out, (const uint8_t *)bytes + h.start);
    else if ((*out)->bytes)
        memcpy((*out)->data, (const uint8_t *)bytes + h.start, (*out)->bytes);
    for (int64_t i = 0; type == T_BOOL && i < count; i++)
        ((uint8_t *)(*out)->data)[i] = ((uint8_t *)(*out)->data)[i] != 0;
    return GRAPHI_OK;
}

graphi_status npy_value_load(const char *path, graphi_tensor **out)
{
    void *bytes;
    size_t size;
    TRY(file_read(path, (size_t)1 << 36, &bytes, &size));
    graphi_status status = npy_value(path, bytes, size, out);
    mem_free(bytes);
    return status;
}

static const char *descr_of(graphi_element type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return types[i].descr;
    return NULL;
}

graphi_status npy_value_save(const graphi_tensor *value, const char *path)
{
    char header[512] = "\x93NUMPY\x01", shape[256] = "";
    struct value_text text;
    const char *descr = value->kind == GRAPHI_KIND_TENSOR ? descr_of(value->type) : NULL;
    struct file_writer writer;
    if (!descr)
        return fail(GRAPHI_UNSUPPORTED, path, "found %s, expected a tensor of a type that NumPy has",
                    value_describe(value, &text));
    for (int i = 0, at = 0; i < value->rank; i++)
        at += snprintf(shape + at, sizeof shape - (size_t)at, "%lld,%s", (long long)value->dims[i],
                       i + 1 < value->rank ? " " : "");
    int length = snprintf(header + 10, sizeof header - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                          element_size(value->type) == 1 ? '|' : '<', descr, shape);
    while ((length + 11) % 64)
        header[10 + length++] = ' ';
    header[10 + length++] = '\n';
    header[8] = (char)(length & 255);
    header[9] = (char)(length >> 8);
    TRY(file_write_begin(&writer, path));
    TRY(file_write(&writer, header, (size_t)length + 10));
    TRY(file_write(&writer, value->data, value->bytes));
    return file_write_commit(&writer);
}
