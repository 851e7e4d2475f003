/* SPDX-License-Identifier: Apache-2.0 */
/* Making, counting and describing host values (value.h). A tensor and its elements are one allocation, whose elements
 * begin at a cache line. Any thread. */
#include "value/value.h"

#include "base/memory.h"
#include "base/status.h"
#include "value/element.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = (sizeof(struct graphi_tensor) + 63) / 64 * 64 };

int64_t dims_count(int rank, const int64_t *dims, size_t size)
{
    int64_t count = 1;
    bool zero = false, beyond = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return -1;
        zero |= dims[i] == 0;
        beyond |= __builtin_mul_overflow(count, dims[i], &count) || count > (int64_t)1 << 40;
    }
    if (zero)
        return 0;
    return beyond || (uint64_t)count > ((uint64_t)1 << 40) / (size ? size : 1) ? -1 : count;
}

const char *dims_describe(int rank, const int64_t *dims, struct value_text *text)
{
    size_t at = (size_t)snprintf(text->text, sizeof text->text, "[");
    for (int i = 0; i < rank && at < sizeof text->text - 24; i++)
        at += (size_t)snprintf(text->text + at, sizeof text->text - at, "%s%lld", i ? ", " : "", (long long)dims[i]);
    snprintf(text->text + at, sizeof text->text - at, "]");
    return text->text;
}

const char *value_describe(const graphi_tensor *value, struct value_text *text)
{
    struct value_text dims;
    if (!value)
        return "nothing";
    if (value->kind == GRAPHI_KIND_NOTHING)
        return "an optional that holds nothing";
    if (value->kind == GRAPHI_KIND_SEQUENCE) {
        snprintf(text->text, sizeof text->text, "a sequence of %lld", (long long)value->count);
        return text->text;
    }
    snprintf(text->text, sizeof text->text, "%s %.140s", graphi_element_name(value->type),
             dims_describe(value->rank, value->dims, &dims));
    return text->text;
}

static graphi_tensor *value_head(graphi_tensor_kind kind, size_t bytes)
{
    graphi_tensor *value = mem_alloc(HEAD + bytes);
    if (!value)
        return NULL;
    memset(value, 0, sizeof *value);
    atomic_init(&value->references, 1);
    value->kind = kind;
    return value;
}

graphi_status value_new(const char *where, graphi_element type, int rank, const int64_t *dims, graphi_tensor **out)
{
    struct value_text text;
    const size_t size = element_size(type);
    if (!size)
        return fail(GRAPHI_UNSUPPORTED, where, "found a tensor of %s, expected numbers or bool",
                    graphi_element_name(type));
    if (rank < 0 || rank > VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, where, "found rank %d, expected at most %d", rank, VALUE_RANK);
    const int64_t count = dims_count(rank, dims, size);
    if (count < 0)
        return fail(GRAPHI_INVALID, where, "found the shape %s, expected sizes of 0 and more, of fewer than 2^40 bytes",
                    dims_describe(rank, dims, &text));
    const size_t bytes = (size_t)count * size;
    graphi_tensor *value = value_head(GRAPHI_KIND_TENSOR, bytes);
    if (!value)
        return fail_memory(where, bytes);
    value->type = type;
    value->rank = rank;
    if (rank)
        memcpy(value->dims, dims, (size_t)rank * sizeof *dims);
    value->count = count;
    value->bytes = bytes;
    value->data = (char *)value + HEAD;
    *out = value;
    return GRAPHI_OK;
}

graphi_status value_view(const char *where, graphi_tensor *of, int rank, const int64_t *dims, graphi_tensor **out)
{
    struct value_text found, wanted;
    if (rank < 0 || rank > VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, where, "found rank %d, expected at most %d", rank, VALUE_RANK);
    if (dims_count(rank, dims, 1) != of->count)
        return fail(GRAPHI_INVALID, where, "found the shape %s for %s, expected as many elements",
                    dims_describe(rank, dims, &wanted), value_describe(of, &found));
    graphi_tensor *value = value_head(GRAPHI_KIND_TENSOR, 0);
    if (!value)
        return fail_memory(where, sizeof *value);
    value->type = of->type;
    value->rank = rank;
    if (rank)
        memcpy(value->dims, dims, (size_t)rank * sizeof *dims);
    value->count = of->count;
    value->bytes = of->bytes;
    value->data = of->data;
    value->owner = value_keep(of->owner ? of->owner : of);
    *out = value;
    return GRAPHI_OK;
}

graphi_status value_sequence(const char *where, int64_t count, graphi_tensor **out)
{
    graphi_tensor *value = value_head(GRAPHI_KIND_SEQUENCE, 0);
    if (value)
        value->items = mem_zalloc_array((size_t)(count > 0 ? count : 1), sizeof *value->items);
    if (!value || !value->items) {
        mem_free(value);
        return fail_memory(where, (size_t)count * sizeof(void *));
    }
    value->count = count;
    *out = value;
    return GRAPHI_OK;
}

graphi_status value_nothing(graphi_tensor **out)
{
    graphi_tensor *value = value_head(GRAPHI_KIND_NOTHING, 0);
    if (!value)
        return fail_memory("optional", sizeof *value);
    *out = value;
    return GRAPHI_OK;
}

graphi_status value_number(const char *where, graphi_element type, double number, graphi_tensor **out)
{
    TRY(value_new(where, type, 0, NULL, out));
    element_store(DOMAIN_F64, type, &number, 1, (*out)->data);
    return GRAPHI_OK;
}

graphi_status value_list(const char *where, int64_t count, const int64_t *numbers, graphi_tensor **out)
{
    TRY(value_new(where, T_I64, 1, &count, out));
    if (count)
        memcpy((*out)->data, numbers, (size_t)count * sizeof *numbers);
    return GRAPHI_OK;
}

graphi_tensor *value_keep(const graphi_tensor *value)
{
    graphi_tensor *kept = (graphi_tensor *)value; /* its elements stay as they are; the count is everybody's */
    if (kept)
        atomic_fetch_add_explicit(&kept->references, 1, memory_order_relaxed);
    return kept;
}

/* Sequences hold tensors and sequences of those: ONNX has no deeper ones, so this ends after a few levels. */
void value_drop(graphi_tensor *value)
{
    /* release: what this holder read; acquire: what all others did, before the bytes go */
    if (!value || atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; value->items && i < value->count; i++)
        value_drop(value->items[i]);
    mem_free(value->items);
    value_drop(value->owner);
    mem_free(value);
}

double value_double(const graphi_tensor *value, int64_t i)
{
    double number;
    element_load(DOMAIN_F64, value->type, (const char *)value->data + (size_t)i * element_size(value->type), 1, 1,
                 &number);
    return number;
}

int64_t value_int(const graphi_tensor *value, int64_t i)
{
    int64_t number;
    element_load(DOMAIN_I64, value->type, (const char *)value->data + (size_t)i * element_size(value->type), 1, 1,
                 &number);
    return number;
}

void dims_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

graphi_status graphi_tensor_create(graphi_element element, int rank, const int64_t *dims, const void *data,
                                   graphi_tensor **out)
{
    graphi_tensor *value;
    GIVEN(out);
    if (rank > 0)
        GIVEN(dims);
    TRY(value_new("value", element, rank, dims, &value));
    if (value->bytes && !data) {
        value_drop(value);
        GIVEN(data);
    }
    if (value->bytes)
        memcpy(value->data, data, value->bytes);
    *out = value;
    return GRAPHI_OK;
}

graphi_status graphi_tensor_create_sequence(int64_t count, const graphi_tensor *const *items, graphi_tensor **out)
{
    graphi_tensor *value;
    GIVEN(out);
    if (count < 0)
        return fail(GRAPHI_INVALID, "sequence", "found %lld values, expected 0 and more", (long long)count);
    if (count)
        GIVEN(items);
    for (int64_t i = 0; i < count; i++)
        GIVEN(items[i]);
    TRY(value_sequence("sequence", count, &value));
    for (int64_t i = 0; i < count; i++)
        value->items[i] = value_keep(items[i]);
    *out = value;
    return GRAPHI_OK;
}

void graphi_tensor_get_info(const graphi_tensor *value, graphi_tensor_info *out)
{
    if (!out)
        return;
    *out = (graphi_tensor_info){.kind = GRAPHI_KIND_NOTHING};
    if (!value)
        return;
    *out = (graphi_tensor_info){.kind = value->kind,
                                .element = value->type,
                                .rank = value->rank,
                                .count = value->count,
                                .data = value->data,
                                .bytes = value->bytes};
    memcpy(out->dims, value->dims, sizeof out->dims);
}

const graphi_tensor *graphi_tensor_item(const graphi_tensor *value, int64_t i)
{
    return value && value->kind == GRAPHI_KIND_SEQUENCE && i >= 0 && i < value->count ? value->items[i] : NULL;
}

void graphi_tensor_destroy(graphi_tensor *value)
{
    value_drop(value);
}
