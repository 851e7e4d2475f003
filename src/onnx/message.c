/* SPDX-License-Identifier: Apache-2.0 */
/* Checks bytes against the schema and lets protobuf-c parse them (message.h). The checker walks over the wire format by
 * the descriptors that protobuf-c generates, so it knows which fields are messages. Any thread. */
#include "onnx/message.h"

#include "base/memory.h"
#include "base/status.h"

struct reader {
    const char *where;
    const uint8_t *start, *at;
    size_t count;
};

static void *take(void *unused, size_t size)
{
    return mem_alloc(size);
}
static void give(void *unused, void *pointer)
{
    mem_free(pointer);
}
static ProtobufCAllocator allocator = {take, give, NULL}; /* never written */

static graphi_status bad(const struct reader *r, const char *found)
{
    return fail(GRAPHI_INVALID, r->where, "found %s at byte %zu, expected an ONNX message", found,
                (size_t)(r->at - r->start));
}

static graphi_status read_varint(struct reader *r, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->at == end)
            return bad(r, "an end within a number");
        const uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return GRAPHI_OK;
        }
    }
    return bad(r, "a number of more than 10 bytes");
}

static graphi_status check_message(struct reader *r, const ProtobufCMessageDescriptor *type, const uint8_t *end,
                                   int depth);

static graphi_status check_field(struct reader *r, const ProtobufCMessageDescriptor *type, const uint8_t *end,
                                 int depth)
{
    uint64_t tag, value;
    TRY(read_varint(r, end, &tag));
    if (tag >> 3 == 0 || tag >> 32)
        return bad(r, "a field of no number");
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
    const size_t left = (size_t)(end - r->at);
    switch (tag & 7) {
    case 0:
        return read_varint(r, end, &value);
    case 1:
    case 5:
        if (left < (tag & 7 ? (tag & 7) == 1 ? 8u : 4u : 0u))
            return bad(r, "an end within a number");
        r->at += (tag & 7) == 1 ? 8 : 4;
        return GRAPHI_OK;
    case 2:
        TRY(read_varint(r, end, &value));
        if (value > (uint64_t)(end - r->at))
            return bad(r, "a field that is longer than what it is in");
        if (++r->count > MESSAGE_COUNT)
            return bad(r, "too many fields");
        if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
            return check_message(r, field->descriptor, r->at + value, depth + 1);
        r->at += value;
        return GRAPHI_OK;
    default:
        return bad(r, "a field of no type");
    }
}

/* Recursion is bounded by MESSAGE_DEPTH. */
static graphi_status check_message(struct reader *r, const ProtobufCMessageDescriptor *type, const uint8_t *end,
                                   int depth)
{
    if (depth > MESSAGE_DEPTH)
        return bad(r, "too many messages in each other");
    while (r->at < end)
        TRY(check_field(r, type, end, depth));
    return GRAPHI_OK;
}

graphi_status message_unpack(const char *where, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                             ProtobufCMessage **out)
{
    struct reader r = {where, bytes, bytes, 0};
    TRY(check_message(&r, type, (const uint8_t *)bytes + size, 0));
    *out = protobuf_c_message_unpack(type, &allocator, size, bytes);
    return *out ? GRAPHI_OK
                : fail(GRAPHI_INVALID, where, "found %zu bytes that do not parse as %s, expected an ONNX file", size,
                       type->name);
}

void message_free(void *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, &allocator);
}
