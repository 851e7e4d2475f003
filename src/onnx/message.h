/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of ONNX files out of untrusted bytes. protobuf-c parses them; lengths, nesting and number of messages are
 * checked on the bytes before it does, so that what it allocates is bounded and its recursion shallow. */
#ifndef ONNX_MESSAGE_H
#define ONNX_MESSAGE_H

#include "graphi/types.h"

#include "onnx/onnx.pb-c.h"

enum message_limits {
    MESSAGE_DEPTH = 100,     /* messages in each other: bodies in bodies take four a level */
    MESSAGE_COUNT = 1 << 24, /* messages and elements of lists that are no packed numbers */
};

/* Free the result with message_free. Errors: INVALID, with the byte at which it is no message; MEMORY. */
graphi_status message_unpack(const char *where, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                             ProtobufCMessage **out);
void message_free(void *message); /* NULL is accepted */

#endif
