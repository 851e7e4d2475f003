/* SPDX-License-Identifier: Apache-2.0 */
/* Reading safetensors. Nothing in the file is trusted: the header's length and nesting are bounded before jansson sees
 * it, and tensors, sorted by place, must follow each other exactly from the first byte of the data to the last, which
 * excludes overlaps, holes and offsets beyond the end in one comparison each. Usual size: 100 tensors, 50 MB. Any
 * thread. */
#include "train/safetensors.h"

#include "base/file.h"
#include "base/json.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are read and written without swapping bytes");

enum { DEPTH_MOST = 4 };

/* Words of the format; there are others, more with every year, which stand in many files beside the weights. */
static const struct {
    const char *word;
    graphi_dtype dtype;
} words[] = {{"F32", GRAPHI_F32}, {"BF16", GRAPHI_BF16}, {"I32", GRAPHI_I32}, {"I64", GRAPHI_I64}, {"U8", GRAPHI_U8},
             {"BOOL", GRAPHI_BOOL}, {"I8", GRAPHI_I8}, {"I16", GRAPHI_I16}, {"U16", GRAPHI_U16}, {"U32", GRAPHI_U32},
             {"U64", GRAPHI_U64}, {"F16", GRAPHI_F16}, {"F64", GRAPHI_F64}};

struct place { /* a tensor and where it begins, for sorting */
    struct tensor_entry entry;
    uint64_t begin, end;
};

struct parse {
    const char *where;
    const char *data; /* behind the header */
    size_t data_size;
    struct place *places;
    struct tensor_file result;
};

/* Brackets are counted outside strings; jansson alone would follow 2048 of them. */
static bool too_deep(const char *text, size_t size)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        else if (!quoted && (text[i] == '}' || text[i] == ']'))
            depth--;
        if (depth > DEPTH_MOST)
            return true;
    }
    return false;
}

static graphi_status unsupported(struct parse *p, struct tensor_entry *entry, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    entry->unsupported = arena_string(&p->result.arena, text);
    return entry->unsupported ? GRAPHI_OK : fail_memory(p->where, sizeof text);
}

static graphi_status parse_dtype(struct parse *p, const json_t *value, struct tensor_entry *entry)
{
    const char *word = json_string_value(value);
    size_t i = 0;
    if (!word)
        return fail(GRAPHI_INVALID, p->where, "found tensor \"%.200s\" without a type, expected one in quotes",
                    entry->name);
    while (i < sizeof words / sizeof *words && strcmp(word, words[i].word) != 0)
        i++;
    if (i == sizeof words / sizeof *words)
        return unsupported(p, entry, "type %.40s", word);
    entry->dtype = words[i].dtype;
    return GRAPHI_OK;
}

/* *bytes: of the elements, where their type is known. */
static graphi_status parse_shape(struct parse *p, const json_t *shape, struct tensor_entry *entry, uint64_t *bytes)
{
    if (!json_is_array(shape))
        return fail(GRAPHI_INVALID, p->where, "found tensor \"%.200s\" without a shape, expected an array",
                    entry->name);
    const size_t rank = json_array_size(shape);
    int64_t product = entry->unsupported ? 1 : (int64_t)graphi_dtype_size(entry->dtype);
    bool wrong = false;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        int64_t size = json_integer_value(dim);
        wrong |= !json_is_integer(dim) || size < 0 || __builtin_mul_overflow(product, size, &product);
        if (i < GRAPHI_MAX_RANK)
            entry->dims[i] = size;
    }
    if (wrong)
        return fail(GRAPHI_INVALID, p->where,
                    "found tensor \"%.200s\" with dimensions that are no counts or too large, expected a shape",
                    entry->name);
    *bytes = (uint64_t)product;
    entry->rank = (int)(rank < GRAPHI_MAX_RANK ? rank : GRAPHI_MAX_RANK);
    return rank > GRAPHI_MAX_RANK && !entry->unsupported ? unsupported(p, entry, "%zu dimensions", rank) : GRAPHI_OK;
}

/* bytes: NULL where nobody knows how many they should be. */
static graphi_status parse_place(const struct parse *p, const json_t *offsets, const uint64_t *bytes,
                                 struct place *place)
{
    const char *name = place->entry.name;
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return fail(GRAPHI_INVALID, p->where, "found tensor \"%.200s\" without data_offsets, expected two numbers",
                    name);
    int64_t from = json_integer_value(begin), to = json_integer_value(end);
    if (from < 0 || to < from || (uint64_t)to > p->data_size)
        return fail(GRAPHI_INVALID, p->where,
                    "found tensor \"%.200s\" at bytes %lld to %lld, expected them within 0 to %zu", name,
                    (long long)from, (long long)to, p->data_size);
    if (bytes && (uint64_t)(to - from) != *bytes)
        return fail(GRAPHI_INVALID, p->where, "found tensor \"%.200s\" in %lld bytes, expected %llu for its shape",
                    name, (long long)(to - from), (unsigned long long)*bytes);
    place->begin = (uint64_t)from;
    place->end = (uint64_t)to;
    place->entry.data = p->data + from;
    place->entry.bytes = (size_t)(to - from);
    return GRAPHI_OK;
}

static graphi_status parse_tensor(struct parse *p, const char *key, const json_t *value)
{
    struct place *place = &p->places[p->result.count];
    char *name = arena_string(&p->result.arena, key);
    if (!name)
        return fail_memory(p->where, strlen(key) + 1);
    place->entry.name = name;
    if (!json_is_object(value))
        return fail(GRAPHI_INVALID, p->where, "found \"%.200s\" that is no object, expected a tensor", name);
    uint64_t bytes = 0;
    TRY(parse_dtype(p, json_object_get(value, "dtype"), &place->entry));
    const bool known = !place->entry.unsupported;
    TRY(parse_shape(p, json_object_get(value, "shape"), &place->entry, &bytes));
    TRY(parse_place(p, json_object_get(value, "data_offsets"), known ? &bytes : NULL, place));
    p->result.count++;
    return GRAPHI_OK;
}

static graphi_status parse_metadata(struct parse *p, json_t *metadata)
{
    if (!json_is_object(metadata))
        return fail(GRAPHI_INVALID, p->where, "found __metadata__ that is no object, expected one of strings");
    struct tensor_pair *pairs = arena_alloc(&p->result.arena, json_object_size(metadata) * sizeof *pairs);
    p->result.pairs = pairs;
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return fail(GRAPHI_INVALID, p->where, "found __metadata__ \"%.200s\" that is no string, expected one", key);
        char *key_copy = arena_string(&p->result.arena, key);
        char *value_copy = arena_string(&p->result.arena, json_string_value(value));
        if (!pairs || !key_copy || !value_copy)
            return fail_memory(p->where, json_string_length(value));
        pairs[p->result.pair_count++] = (struct tensor_pair){key_copy, value_copy};
    }
    return GRAPHI_OK;
}

/* By place; empty tensors stand before what begins where they are. */
static int compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->entry.name, b->entry.name);
}

static graphi_status check_places(struct parse *p)
{
    struct tensor_file *file = &p->result;
    uint64_t at = 0;
    if (file->count)
        qsort(p->places, file->count, sizeof *p->places, compare);
    file->tensors = arena_alloc(&file->arena, file->count * sizeof *file->tensors);
    if (!file->tensors)
        return fail_memory(p->where, file->count * sizeof *file->tensors);
    for (size_t i = 0; i < file->count; i++) {
        if (p->places[i].begin != at)
            return fail(GRAPHI_INVALID, p->where,
                        "found tensor \"%.200s\" at byte %llu, expected it at %llu, where the one before ends",
                        p->places[i].entry.name, (unsigned long long)p->places[i].begin, (unsigned long long)at);
        at = p->places[i].end;
        file->tensors[i] = p->places[i].entry;
        if (!index_add(&file->names, hash_string(HASH_START, file->tensors[i].name), (int32_t)i))
            return fail_memory(p->where, file->count * sizeof *file->names.slots);
    }
    if (at != p->data_size)
        return fail(GRAPHI_INVALID, p->where, "found %zu bytes of data, expected %llu by the header", p->data_size,
                    (unsigned long long)at);
    return GRAPHI_OK;
}

/* An object: the header begins with {. */
static graphi_status parse_header(struct parse *p, json_t *root)
{
    p->places = mem_zalloc_array(json_object_size(root) + 1, sizeof *p->places);
    if (!p->places)
        return fail_memory(p->where, (json_object_size(root) + 1) * sizeof *p->places);
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
        TRY(!strcmp(key, "__metadata__") ? parse_metadata(p, value) : parse_tensor(p, key, value));
    return check_places(p);
}

graphi_status safetensors_parse(const char *where, const void *bytes, size_t size, struct tensor_file *out)
{
    uint64_t length = 0;
    if (size < sizeof length)
        return fail(GRAPHI_INVALID, where, "found %zu bytes, expected a safetensors file", size);
    memcpy(&length, bytes, sizeof length);
    if (length > size - sizeof length || length > SAFETENSORS_HEADER_MOST)
        return fail(GRAPHI_INVALID, where,
                    "found a header of %llu bytes in a file of %zu, expected a whole one of at most %zu",
                    (unsigned long long)length, size, SAFETENSORS_HEADER_MOST);
    const char *header = (const char *)bytes + sizeof length;
    if (!length || *header != '{' || too_deep(header, (size_t)length))
        return fail(GRAPHI_INVALID, where,
                    "found a header that begins with no { or nests more than %d deep, expected safetensors",
                    DEPTH_MOST);
    json_error_t error;
    json_t *root = json_loadb(header, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return json_lacks_memory((size_t)length)
                   ? fail_memory(where, (size_t)length)
                   : fail(GRAPHI_INVALID, where, "found a damaged header (%s at byte %d), expected JSON", error.text,
                          error.position);
    struct parse p = {.where = where, .data = header + length, .data_size = size - sizeof length - (size_t)length};
    graphi_status status = parse_header(&p, root);
    json_decref(root);
    mem_free(p.places);
    if (status == GRAPHI_OK)
        *out = p.result;
    else
        safetensors_free(&p.result);
    return status;
}

graphi_status safetensors_load(const char *path, size_t limit, struct tensor_file *out)
{
    void *bytes;
    size_t size;
    TRY(file_read(path, limit, &bytes, &size));
    graphi_status status = safetensors_parse(path, bytes, size, out);
    if (status == GRAPHI_OK)
        out->bytes = bytes;
    else
        mem_free(bytes);
    return status;
}

void safetensors_free(struct tensor_file *file)
{
    mem_free(file->bytes);
    index_free(&file->names);
    arena_free(&file->arena);
    *file = (struct tensor_file){0};
}

const struct tensor_entry *safetensors_find(const struct tensor_file *file, const char *name)
{
    size_t seen = 0;
    for (int32_t i; (i = index_next(&file->names, hash_string(HASH_START, name), &seen)) >= 0;)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

const char *safetensors_metadata(const struct tensor_file *file, const char *key)
{
    for (size_t i = 0; i < file->pair_count; i++)
        if (!strcmp(file->pairs[i].key, key))
            return file->pairs[i].value;
    return NULL;
}
