/* SPDX-License-Identifier: Apache-2.0 */
/* .npy: "\x93NUMPY", version, header length, a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2,
 * 3), }, the data. The dictionary is read by a small parser of exactly this form. Any thread. */
#include "train/npy.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/images.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read without swapping bytes");

static const struct {
    const char *descr, *other; /* '|u1' is written by NumPy, '<u1' understood too */
    size_t size;
} types[NPY_TYPES] = {
    [NPY_F4] = {"<f4", "<f4", 4}, [NPY_F8] = {"<f8", "<f8", 8}, [NPY_U1] = {"|u1", "<u1", 1},
    [NPY_I4] = {"<i4", "<i4", 4}, [NPY_I8] = {"<i8", "<i8", 8},
};

size_t npy_size(enum npy_type type) { return types[type].size; }

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

/* 'text' or "text" into out[16]. */
static graphi_status header_string(struct header *h, char *out)
{
    skip_space(h);
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

static graphi_status header_descr(struct header *h)
{
    char descr[16];
    TRY(header_string(h, descr));
    for (int t = 0; t < NPY_TYPES; t++)
        if (!strcmp(descr, types[t].descr) || !strcmp(descr, types[t].other)) {
            h->out->type = (enum npy_type)t;
            return GRAPHI_OK;
        }
    return fail(GRAPHI_UNSUPPORTED, h->where, "found element type \"%s\", expected <f4, <f8, |u1, <i4 or <i8", descr);
}

static graphi_status header_order(struct header *h)
{
    if (skip_word(h, "False"))
        return GRAPHI_OK;
    if (skip_word(h, "True"))
        return fail(GRAPHI_UNSUPPORTED, h->where,
                    "found an array in Fortran order, expected C order (numpy.ascontiguousarray)");
    return bad_header(h, "True or False");
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

static double element(const struct npy *array, int64_t i)
{
    const char *at = (const char *)array->data + (size_t)i * types[array->type].size;
    float f4;
    double f8;
    int32_t i4;
    int64_t i8;
    switch (array->type) {
    case NPY_F4: memcpy(&f4, at, 4); return (double)f4;
    case NPY_F8: memcpy(&f8, at, 8); return f8;
    case NPY_I4: memcpy(&i4, at, 4); return i4;
    case NPY_I8: memcpy(&i8, at, 8); return (double)i8;
    default: return *(const uint8_t *)at;
    }
}

/* Is it the whole number of this element? */
static bool is_whole(const struct npy *array, int64_t i, float found)
{
    int64_t value;
    if (array->type == NPY_I8) /* beyond 2^53 a double would round */
        memcpy(&value, (const char *)array->data + i * 8, 8);
    else
        value = (int64_t)element(array, i);
    return found < 0x1p63F && (int64_t)found == value;
}

/* Of float64 the nearest float32; whole numbers as they are, or not at all. */
graphi_status npy_to_f32(const char *where, const struct npy *array, float *out)
{
    if (array->type == NPY_F4 && array->bytes)
        memcpy(out, array->data, array->bytes);
    for (int64_t i = 0; array->type != NPY_F4 && i < array->count; i++) {
        const double value = element(array, i);
        out[i] = (float)value;
        if (array->type == NPY_F8 ? isinf(out[i]) && !isinf(value) : !is_whole(array, i, out[i]))
            return fail(GRAPHI_INVALID, where, "found %.17g at %lld, expected a number that float32 holds", value,
                        (long long)i);
    }
    return GRAPHI_OK;
}

graphi_status npy_to_i64(const char *where, const struct npy *array, int64_t *out)
{
    if (array->type == NPY_I8 && array->bytes) /* beyond 2^53 a double would round */
        memcpy(out, array->data, array->bytes);
    for (int64_t i = 0; array->type != NPY_I8 && i < array->count; i++) {
        double value = element(array, i);
        if (!(value >= -0x1p63 && value < 0x1p63) || value != floor(value))
            return fail(GRAPHI_INVALID, where, "found %g at %lld, expected a whole number", value, (long long)i);
        out[i] = (int64_t)value;
    }
    return GRAPHI_OK;
}

static graphi_status images_copy(const char *where, const struct npy *array, struct image_set *set)
{
    set->count = array->dims[0];
    set->height = array->dims[1];
    set->width = array->dims[2];
    set->channels = array->rank == 4 ? array->dims[3] : 1;
    uint64_t elements;
    TRY(images_check(where, set, (uint64_t)array->count, &elements));
    void *copy = mem_alloc(array->bytes);
    if (!copy)
        return fail_memory(where, array->bytes);
    memcpy(copy, array->data, array->bytes);
    if (array->type == NPY_U1)
        set->bytes = copy;
    else
        set->floats = copy;
    return GRAPHI_OK;
}

static graphi_status check_finite(const char *where, const struct image_set *set, int64_t count)
{
    for (int64_t i = 0; set->floats && i < count; i++)
        if (!isfinite(set->floats[i]))
            return fail(GRAPHI_INVALID, where, "found %g at element %lld, expected finite numbers",
                        (double)set->floats[i], (long long)i);
    return GRAPHI_OK;
}

graphi_status npy_parse_images(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    struct npy array;
    TRY(npy_parse(where, bytes, size, &array));
    if ((array.type != NPY_U1 && array.type != NPY_F4) || array.rank < 3 || array.rank > 4)
        return fail(GRAPHI_INVALID, where,
                    "found element type %s and rank %d, expected |u1 or <f4 and [N, H, W, C] or [N, H, W]",
                    types[array.type].descr, array.rank);
    TRY(images_copy(where, &array, set));
    return check_finite(where, set, array.count);
}

graphi_status npy_parse_labels(const char *where, const void *bytes, size_t size, struct image_set *set)
{
    struct npy array;
    TRY(npy_parse(where, bytes, size, &array));
    if ((array.type != NPY_I4 && array.type != NPY_I8) || array.rank != 1)
        return fail(GRAPHI_INVALID, where, "found element type %s and rank %d, expected <i4 or <i8 and [N]",
                    types[array.type].descr, array.rank);
    if (array.count != set->count)
        return fail(GRAPHI_INVALID, where, "found %lld labels, expected %lld, one an image", (long long)array.count,
                    (long long)set->count);
    set->labels = mem_zalloc_array((size_t)array.count, sizeof *set->labels);
    if (!set->labels)
        return fail_memory(where, (size_t)array.count * sizeof *set->labels);
    for (int64_t i = 0; i < array.count; i++) {
        double label = element(&array, i);
        if (!(label >= 0 && label < IMAGE_CLASSES_MOST))
            return fail(GRAPHI_INVALID, where, "found label %.0f at %lld, expected 0 to %d", label, (long long)i,
                        IMAGE_CLASSES_MOST - 1);
        set->labels[i] = (int32_t)label;
        if (set->labels[i] >= set->classes)
            set->classes = set->labels[i] + 1;
    }
    return GRAPHI_OK;
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
