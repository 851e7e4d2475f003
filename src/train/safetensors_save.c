/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors. The header is printed here rather than by jansson, so that its bytes depend on the tensors alone
 * and allocation goes through base/memory.h. Usual size: 100 tensors, 50 MB, of which the header is 10 KB. Any thread.
 */
#include "train/safetensors.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static const char *const dtype_word[] = {
    [GRAPHI_F32] = "F32", [GRAPHI_BF16] = "BF16", [GRAPHI_I32] = "I32", [GRAPHI_I64] = "I64", [GRAPHI_U8] = "U8",
    [GRAPHI_BOOL] = "BOOL", [GRAPHI_I8] = "I8", [GRAPHI_I16] = "I16", [GRAPHI_U16] = "U16", [GRAPHI_U32] = "U32",
    [GRAPHI_U64] = "U64", [GRAPHI_F16] = "F16", [GRAPHI_F64] = "F64"};

struct slot {
    const struct tensor_entry *tensor;
    size_t index;
};

/* Wider types first, else the caller's order. */
static int by_width(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    size_t wa = graphi_dtype_size(a->tensor->dtype), wb = graphi_dtype_size(b->tensor->dtype);
    return wa != wb ? (wa < wb ? 1 : -1) : (a->index > b->index) - (a->index < b->index);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* JSON must be UTF-8; jansson's own judgement is used, since it will read the file. */
static graphi_status check_text(const char *path, const char *text)
{
    const char *at = text;
    for (size_t bytes; *at && (bytes = utf8_bytes(at));)
        at += bytes;
    return !*at ? GRAPHI_OK
                : fail(GRAPHI_INVALID, path, "found the text \"%.200s\" that is no UTF-8, expected UTF-8", text);
}

static graphi_status check_twice(const char *path, const char **names, size_t count)
{
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(names[i - 1], names[i]))
            return fail(GRAPHI_INVALID, path, "found the name \"%.200s\" twice, expected it once", names[i]);
    return GRAPHI_OK;
}

static graphi_status check_tensor(const char *path, const struct tensor_entry *t)
{
    TRY(check_text(path, t->name));
    if (!strcmp(t->name, "__metadata__") || (unsigned)t->dtype >= GRAPHI_DTYPES || t->rank < 0 ||
        t->rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, path,
                    "found tensor \"%.200s\" of type %d and rank %d, expected a known type, rank 0 to %d and "
                    "another name than __metadata__",
                    t->name, (int)t->dtype, t->rank, GRAPHI_MAX_RANK);
    int64_t bytes = (int64_t)graphi_dtype_size(t->dtype);
    bool wrong = false;
    for (int i = 0; i < t->rank; i++)
        wrong |= t->dims[i] < 0 || __builtin_mul_overflow(bytes, t->dims[i], &bytes);
    if (wrong || (uint64_t)bytes != t->bytes)
        return fail(GRAPHI_INVALID, path, "found tensor \"%.200s\" of %zu bytes, expected as many as its shape has",
                    t->name, t->bytes);
    return GRAPHI_OK;
}

static graphi_status check_all(const char *path, const struct tensor_entry *tensors, size_t count,
                               const struct tensor_pair *pairs, size_t pair_count)
{
    size_t most = count > pair_count ? count : pair_count;
    const char **names = mem_zalloc_array(most, sizeof *names);
    if (!names)
        return fail_memory(path, most * sizeof *names);
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; status == GRAPHI_OK && i < count; i++) {
        names[i] = tensors[i].name;
        status = check_tensor(path, &tensors[i]);
    }
    if (status == GRAPHI_OK)
        status = check_twice(path, names, count);
    for (size_t i = 0; status == GRAPHI_OK && i < pair_count; i++) {
        names[i] = pairs[i].key;
        status = check_text(path, pairs[i].key);
        if (status == GRAPHI_OK)
            status = check_text(path, pairs[i].value);
    }
    if (status == GRAPHI_OK)
        status = check_twice(path, names, pair_count);
    mem_free(names);
    return status;
}

static void print_pairs(struct text *text, const struct tensor_pair *pairs, size_t count)
{
    text_add(text, "\"__metadata__\":{");
    for (size_t i = 0; i < count; i++) {
        text_add(text, i ? "," : "");
        text_add_json_string(text, pairs[i].key);
        text_add(text, ":");
        text_add_json_string(text, pairs[i].value);
    }
    text_add(text, "}");
}

static void print_tensor(struct text *text, const struct tensor_entry *t, uint64_t at)
{
    text_add_json_string(text, t->name);
    text_add(text, ":{\"dtype\":\"%s\",\"shape\":[", dtype_word[t->dtype]);
    for (int i = 0; i < t->rank; i++)
        text_add(text, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    text_add(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)(at + t->bytes));
}

/* The header, padded with spaces until the data begin at a multiple of 64. */
static graphi_status print_header(const char *path, const struct slot *slots, size_t count,
                                  const struct tensor_pair *pairs, size_t pair_count, struct text *text)
{
    uint64_t at = 0;
    text_add(text, "{");
    if (pair_count)
        print_pairs(text, pairs, pair_count);
    for (size_t i = 0; i < count; i++) {
        text_add(text, i || pair_count ? "," : "");
        print_tensor(text, slots[i].tensor, at);
        at += slots[i].tensor->bytes;
    }
    text_add(text, "}");
    int pad = (int)((64 - (sizeof(uint64_t) + text->count) % 64) % 64);
    text_add(text, "%*s", pad, "");
    if (text->broken)
        return fail_memory(path, text->capacity * 2);
    if (text->count > SAFETENSORS_HEADER_MOST)
        return fail(GRAPHI_INVALID, path, "found a header of %zu bytes to write, expected at most %zu", text->count,
                    SAFETENSORS_HEADER_MOST);
    return GRAPHI_OK;
}

static graphi_status write_file(const char *path, const struct text *header, const struct slot *slots, size_t count)
{
    uint64_t length = header->count;
    struct file_writer writer;
    TRY(file_write_begin(&writer, path));
    TRY(file_write(&writer, &length, sizeof length));
    TRY(file_write(&writer, header->data, header->count));
    for (size_t i = 0; i < count; i++)
        TRY(file_write(&writer, slots[i].tensor->data, slots[i].tensor->bytes));
    return file_write_commit(&writer);
}

graphi_status safetensors_save(const char *path, const struct tensor_entry *tensors, size_t count,
                               const struct tensor_pair *pairs, size_t pair_count)
{
    TRY(check_all(path, tensors, count, pairs, pair_count));
    struct slot *slots = mem_zalloc_array(count, sizeof *slots);
    if (!slots)
        return fail_memory(path, count * sizeof *slots);
    for (size_t i = 0; i < count; i++)
        slots[i] = (struct slot){&tensors[i], i};
    qsort(slots, count, sizeof *slots, by_width);
    struct text header = {0};
    graphi_status status = print_header(path, slots, count, pairs, pair_count, &header);
    if (status == GRAPHI_OK)
        status = write_file(path, &header, slots, count);
    text_free(&header);
    mem_free(slots);
    return status;
}
