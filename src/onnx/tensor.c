/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto, SequenceProto and OptionalProto as host values (tensor.h). Any thread. */
#include "onnx/tensor.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw data is read without swapping bytes");

static int bits_of(graphi_element type)
{
    switch (type) {
    case GRAPHI_ELEMENT_UINT4:
    case GRAPHI_ELEMENT_INT4:
    case GRAPHI_ELEMENT_FLOAT4E2M1:
        return 4;
    case GRAPHI_ELEMENT_UINT2:
    case GRAPHI_ELEMENT_INT2:
        return 2;
    case GRAPHI_ELEMENT_FLOAT6E2M3:
    case GRAPHI_ELEMENT_FLOAT6E3M2:
        return 6;
    default:
        return 8 * (int)element_size(type);
    }
}

/* Elements of fewer than 8 bits, lowest bits first, become a byte each; integers with a sign are extended. */
static void unpack_bits(graphi_element type, const uint8_t *from, int64_t count, uint8_t *to)
{
    const int bits = bits_of(type), mask = (1 << bits) - 1;
    const bool has_sign = type == GRAPHI_ELEMENT_INT4 || type == GRAPHI_ELEMENT_INT2;
    for (int64_t i = 0; i < count; i++) {
        const int64_t bit = i * bits, byte = bit / 8;
        int number = from[byte] >> bit % 8;
        if (bit % 8 + bits > 8)
            number |= from[byte + 1] << (8 - bit % 8);
        number &= mask;
        to[i] = (uint8_t)(has_sign && number >> (bits - 1) ? number - mask - 1 : number);
    }
}

static size_t packed_bytes(graphi_element type, int64_t count)
{
    return ((size_t)count * (size_t)bits_of(type) + 7) / 8;
}

static graphi_status set_raw(const char *where, graphi_tensor *value, const void *bytes, size_t size)
{
    const size_t wanted = packed_bytes(value->type, value->count);
    struct value_text text;
    if (size != wanted)
        return fail(GRAPHI_INVALID, where, "found %zu bytes for %s, expected %zu", size, value_describe(value, &text),
                    wanted);
    if (bits_of(value->type) < 8)
        unpack_bits(value->type, bytes, value->count, value->data);
    else if (size)
        memcpy(value->data, bytes, size);
    return GRAPHI_OK;
}

static graphi_status count_is(const char *where, size_t found, const graphi_tensor *value, size_t wanted)
{
    struct value_text text;
    if (found == wanted)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found %zu numbers for %s, expected %zu", found, value_describe(value, &text),
                wanted);
}

/* int32_data holds one number of a small type each, but two of 4 bits and four of 2. */
static graphi_status set_int32(const char *where, graphi_tensor *value, const Onnx__TensorProto *t)
{
    const int bits = bits_of(value->type);
    const size_t each = bits == 4 ? 2 : bits == 2 ? 4 : 1;
    TRY(count_is(where, t->n_int32_data, value, ((size_t)value->count + each - 1) / each));
    for (int64_t i = 0; i < value->count; i++) {
        const uint32_t number = (uint32_t)t->int32_data[(size_t)i / each];
        if (each > 1) {
            const uint8_t byte = (uint8_t)(number >> ((size_t)i % each * (size_t)bits));
            unpack_bits(value->type, &byte, 1, (uint8_t *)value->data + i);
            continue;
        }
        memcpy((char *)value->data + (size_t)i * element_size(value->type), &number, element_size(value->type));
    }
    return GRAPHI_OK;
}

static graphi_status set_numbers(const char *where, graphi_tensor *value, const Onnx__TensorProto *t)
{
    const struct {
        const void *data;
        size_t count, size;
    } lists[] = {{t->float_data, t->n_float_data, 4},
                 {t->double_data, t->n_double_data, 8},
                 {t->int64_data, t->n_int64_data, 8},
                 {t->uint64_data, t->n_uint64_data, 8}};
    const int list = value->type == T_F32                           ? 0
                     : value->type == T_F64                         ? 1
                     : value->type == T_I64                         ? 2
                     : value->type == T_U64 || value->type == T_U32 ? 3
                                                                    : -1;
    if (list < 0)
        return set_int32(where, value, t);
    TRY(count_is(where, lists[list].count, value, (size_t)value->count));
    for (int64_t i = 0; value->type == T_U32 && i < value->count; i++)
        ((uint32_t *)value->data)[i] = (uint32_t)t->uint64_data[i];
    if (value->type != T_U32 && value->count)
        memcpy(value->data, lists[list].data, value->bytes);
    return GRAPHI_OK;
}

static graphi_status external_number(const char *where, const char *key, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return fail(GRAPHI_INVALID, where, "found \"%.40s\" as %s of external data, expected a number", text, key);
    *out = number;
    return GRAPHI_OK;
}

/* The file, resolved, must be one below the folder, also where links lead. */
static graphi_status external_open(const char *where, const char *folder, const char *location, int *out)
{
    char path[8192], *real, *root;
    snprintf(path, sizeof path, "%s/%s", folder, location);
    real = realpath(path, NULL); /* the C library's own memory, freed at once */
    root = realpath(folder, NULL);
    const size_t length = root ? strlen(root) : 0;
    const bool inside = real && root && *location != '/' && strncmp(real, root, length) == 0 &&
                        (real[length] == '/' || strcmp(root, "/") == 0);
    *out = inside ? open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    const bool there = real != NULL;
    free(real);
    free(root);
    if (!there)
        return fail(GRAPHI_IO, where, "found no file %.400s for external data, expected it beside the model", location);
    if (!inside)
        return fail(GRAPHI_INVALID, where, "found external data at %.400s, expected a file in the model's folder",
                    location);
    return *out >= 0 ? GRAPHI_OK
                     : fail(GRAPHI_IO, where, "found that %.400s cannot be opened, expected a file", location);
}

static graphi_status external_read(const char *where, int fd, uint64_t offset, void *to, size_t size)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return fail(GRAPHI_INVALID, where, "found external data that is no regular file, expected one");
    if (offset > (uint64_t)about.st_size || size > (uint64_t)about.st_size - offset)
        return fail(GRAPHI_INVALID, where, "found %lld bytes of external data, expected %zu from %llu on",
                    (long long)about.st_size, size, (unsigned long long)offset);
    for (size_t done = 0; done < size;) {
        const ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (n <= 0)
            return fail(GRAPHI_IO, where, "found that external data cannot be read, expected %zu bytes", size);
        done += (size_t)n;
    }
    return GRAPHI_OK;
}

static graphi_status set_external(const char *where, graphi_tensor *value, const Onnx__TensorProto *t,
                                  const char *folder)
{
    const char *location = NULL;
    const size_t wanted = packed_bytes(value->type, value->count);
    uint64_t offset = 0, length = wanted;
    int fd;
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = t->external_data[i]->key, *text = t->external_data[i]->value;
        if (!key || !text)
            continue;
        if (strcmp(key, "location") == 0)
            location = text;
        else if (strcmp(key, "offset") == 0)
            TRY(external_number(where, key, text, &offset));
        else if (strcmp(key, "length") == 0)
            TRY(external_number(where, key, text, &length));
    }
    if (!location || !folder)
        return fail(GRAPHI_INVALID, where, "found external data without a %s, expected one",
                    location ? "folder of the model" : "location");
    if (length != wanted)
        return fail(GRAPHI_INVALID, where, "found %llu bytes of external data, expected %zu",
                    (unsigned long long)length, wanted);
    TRY(external_open(where, folder, location, &fd));
    uint8_t *room = bits_of(value->type) < 8 ? mem_alloc(wanted + 1) : value->data;
    graphi_status status = room ? external_read(where, fd, offset, room, wanted) : fail_memory(where, wanted);
    close(fd);
    if (room && room != value->data) {
        if (status == GRAPHI_OK)
            unpack_bits(value->type, room, value->count, value->data);
        mem_free(room);
    }
    return status;
}

static void make_truths(graphi_tensor *value)
{
    uint8_t *bytes = value->data;
    for (int64_t i = 0; value->type == T_BOOL && i < value->count; i++)
        bytes[i] = bytes[i] != 0;
}

graphi_status onnx_tensor(const char *where, const Onnx__TensorProto *t, const char *folder, graphi_tensor **out)
{
    int64_t dims[VALUE_RANK];
    if (t->n_dims > VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, where, "found rank %zu, expected at most %d", t->n_dims, VALUE_RANK);
    if (t->n_dims)
        memcpy(dims, t->dims, t->n_dims * sizeof *dims);
    graphi_tensor *value;
    /* what is not external cannot be larger than the file: no array is made for sizes that are made up */
    const size_t stored =
        t->raw_data.len + t->n_float_data + t->n_int32_data * 4 + t->n_int64_data + t->n_double_data + t->n_uint64_data;
    const size_t size = element_size((graphi_element)t->data_type);
    const int64_t count = dims_count((int)t->n_dims, dims, size);
    if (t->data_location != 1 && size && count > 0 && (uint64_t)count > 4 * (uint64_t)stored)
        return fail(GRAPHI_INVALID, where, "found %zu numbers or bytes for %lld elements, expected all of them", stored,
                    (long long)count);
    TRY(value_new(where, (graphi_element)t->data_type, (int)t->n_dims, dims, &value));
    graphi_status status = t->data_location == 1 ? set_external(where, value, t, folder)
                           : t->has_raw_data     ? set_raw(where, value, t->raw_data.data, t->raw_data.len)
                                                 : set_numbers(where, value, t);
    if (status != GRAPHI_OK) {
        value_drop(value);
        return status;
    }
    make_truths(value);
    *out = value;
    return GRAPHI_OK;
}

static graphi_status sequence_of(const char *where, const Onnx__SequenceProto *s, graphi_tensor **out)
{
    const bool nested = s->elem_type == 3;
    const size_t count = nested ? s->n_sequence_values : s->n_tensor_values;
    graphi_status status = GRAPHI_OK;
    if (s->elem_type != 1 && s->elem_type != 3)
        return fail(GRAPHI_UNSUPPORTED, where, "found a sequence of kind %d, expected tensors or sequences",
                    s->elem_type);
    graphi_tensor *list;
    TRY(value_sequence(where, (int64_t)count, &list));
    for (size_t i = 0; i < count && status == GRAPHI_OK; i++)
        status = nested ? sequence_of(where, s->sequence_values[i], &list->items[i]) /* as deep as messages may be */
                        : onnx_tensor(where, s->tensor_values[i], NULL, &list->items[i]);
    if (status != GRAPHI_OK) {
        value_drop(list);
        return status;
    }
    *out = list;
    return GRAPHI_OK;
}

static graphi_status value_of(const char *where, const char *kind, const void *bytes, size_t size, graphi_tensor **out)
{
    const bool optional = strcmp(kind, "optional") == 0, sequence = strcmp(kind, "sequence") == 0;
    ProtobufCMessage *message;
    TRY(message_unpack(where,
                       optional   ? &onnx__optional_proto__descriptor
                       : sequence ? &onnx__sequence_proto__descriptor
                                  : &onnx__tensor_proto__descriptor,
                       bytes, size, &message));
    graphi_status status;
    const Onnx__OptionalProto *o = (const Onnx__OptionalProto *)message;
    if (sequence)
        status = sequence_of(where, (const Onnx__SequenceProto *)message, out);
    else if (!optional)
        status = onnx_tensor(where, (const Onnx__TensorProto *)message, NULL, out);
    else
        status = o->tensor_value     ? onnx_tensor(where, o->tensor_value, NULL, out)
                 : o->sequence_value ? sequence_of(where, o->sequence_value, out)
                                     : value_nothing(out);
    message_free(message);
    return status;
}

graphi_status onnx_value_load(const char *path, const char *kind, graphi_tensor **out)
{
    void *bytes;
    size_t size;
    TRY(file_read(path, (size_t)1 << 31, &bytes, &size));
    graphi_status status = value_of(path, kind ? kind : "tensor", bytes, size, out);
    mem_free(bytes);
    return status;
}
