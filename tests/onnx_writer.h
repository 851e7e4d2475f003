/* SPDX-License-Identifier: Apache-2.0 */
/* Writes small ONNX models for tests: a message is a growing list of fields, in a buffer of fixed size. */
#ifndef TESTS_ONNX_WRITER_H
#define TESTS_ONNX_WRITER_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct proto {
    size_t size;
    uint8_t data[1 << 14];
};

static inline void proto_varint(struct proto *p, uint64_t value)
{
    do {
        assert(p->size < sizeof p->data);
        p->data[p->size++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
    } while (value >>= 7);
}

static inline void proto_int(struct proto *p, int field, int64_t value)
{
    proto_varint(p, (uint64_t)field << 3);
    proto_varint(p, (uint64_t)value);
}

static inline void proto_bytes(struct proto *p, int field, const void *data, size_t size)
{
    proto_varint(p, (uint64_t)field << 3 | 2);
    proto_varint(p, size);
    assert(p->size + size <= sizeof p->data);
    if (size)
        memcpy(p->data + p->size, data, size);
    p->size += size;
}

static inline void proto_text(struct proto *p, int field, const char *text)
{
    proto_bytes(p, field, text, strlen(text));
}
static inline void proto_add(struct proto *p, int field, const struct proto *part)
{
    proto_bytes(p, field, part->data, part->size);
}

/* Words of a list separated by blanks; "-" is an empty one. */
static inline void proto_words(struct proto *p, int field, const char *words)
{
    while (*words) {
        const size_t length = strcspn(words, " ");
        proto_bytes(p, field, words, length == 1 && *words == '-' ? 0 : length);
        words += length + (words[length] == ' ');
    }
}

/* NodeProto; attributes are added to it before it is added to a graph's field 1. */
static inline struct proto node_of(const char *type, const char *in, const char *out)
{
    struct proto p = {0};
    proto_words(&p, 1, in);
    proto_words(&p, 2, out);
    proto_text(&p, 3, out);
    proto_text(&p, 4, type);
    return p;
}

static inline void node_int(struct proto *node, const char *name, int64_t value)
{
    struct proto a = {0};
    proto_text(&a, 1, name);
    proto_int(&a, 3, value);
    proto_int(&a, 20, 2);
    proto_add(node, 5, &a);
}

static inline void node_float(struct proto *node, const char *name, float value)
{
    struct proto a = {0};
    proto_text(&a, 1, name);
    proto_varint(&a, 2 << 3 | 5);
    assert(a.size + sizeof value <= sizeof a.data);
    memcpy(a.data + a.size, &value, sizeof value);
    a.size += sizeof value;
    proto_int(&a, 20, 1);
    proto_add(node, 5, &a);
}

static inline void node_ints(struct proto *node, const char *name, int count, const int64_t *values)
{
    struct proto a = {0};
    proto_text(&a, 1, name);
    for (int i = 0; i < count; i++)
        proto_int(&a, 8, values[i]);
    proto_int(&a, 20, 7);
    proto_add(node, 5, &a);
}

static inline void node_text(struct proto *node, const char *name, const char *value)
{
    struct proto a = {0};
    proto_text(&a, 1, name);
    proto_text(&a, 4, value);
    proto_int(&a, 20, 3);
    proto_add(node, 5, &a);
}

static inline void node_texts(struct proto *node, const char *name, const char *words)
{
    struct proto a = {0};
    proto_text(&a, 1, name);
    proto_words(&a, 9, words);
    proto_int(&a, 20, 8);
    proto_add(node, 5, &a);
}

static inline void node_graph(struct proto *node, const char *name, const struct proto *graph)
{
    struct proto a = {0};
    proto_text(&a, 1, name);
    proto_add(&a, 6, graph);
    proto_int(&a, 20, 5);
    proto_add(node, 5, &a);
}

static inline void graph_node(struct proto *graph, const char *type, const char *in, const char *out)
{
    const struct proto node = node_of(type, in, out);
    proto_add(graph, 1, &node);
}

/* TensorProto of raw bytes. */
static inline struct proto tensor_of(const char *name, int type, int rank, const int64_t *dims, const void *data,
                                     size_t size)
{
    struct proto p = {0};
    for (int i = 0; i < rank; i++)
        proto_int(&p, 1, dims[i]);
    proto_int(&p, 2, type);
    proto_text(&p, 8, name);
    proto_bytes(&p, 9, data, size);
    return p;
}

static inline void graph_constant(struct proto *graph, const char *name, int type, int rank, const int64_t *dims,
                                  const void *data, size_t size)
{
    const struct proto tensor = tensor_of(name, type, rank, dims, data, size);
    proto_add(graph, 5, &tensor);
}

/* A port (11: input, 12: output) of a tensor; rank -1: not told; a size below 0 is the symbol "n". */
static inline void graph_port(struct proto *graph, int field, const char *name, int type, int rank, const int64_t *dims)
{
    struct proto info = {0}, whole = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < rank; i++) {
        struct proto dim = {0};
        if (dims[i] < 0)
            proto_text(&dim, 2, "n");
        else
            proto_int(&dim, 1, dims[i]);
        proto_add(&shape, 1, &dim);
    }
    proto_int(&tensor, 1, type);
    if (rank >= 0)
        proto_add(&tensor, 2, &shape);
    proto_add(&whole, 1, &tensor);
    proto_text(&info, 1, name);
    proto_add(&info, 2, &whole);
    proto_add(graph, field, &info);
}

static inline struct proto opset_of(const char *domain, int64_t version)
{
    struct proto p = {0};
    proto_text(&p, 1, domain);
    proto_int(&p, 2, version);
    return p;
}

static inline struct proto model_of(const struct proto *graph, int64_t opset)
{
    struct proto p = {0};
    const struct proto import = opset_of("", opset);
    proto_int(&p, 1, 8);
    proto_text(&p, 2, "test");
    proto_add(&p, 7, graph);
    proto_add(&p, 8, &import);
    return p;
}

#endif
