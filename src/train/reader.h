/* SPDX-License-Identifier: Apache-2.0 */
/* Takes bytes off a file in memory, which may be gzip, of one member or several (RFC 1952; zeros that fill up a block
 * may follow them). Parsers ask for exactly what a header declares, so a gzip bomb is never inflated beyond it. Used by
 * one thread. */
#ifndef TRAIN_READER_H
#define TRAIN_READER_H

#include "graphi/types.h"

#include <zlib.h>

struct reader {
    const char *where; /* the file's name, for messages */
    const uint8_t *next;
    size_t left;
    bool packed, ended;
    z_stream stream;
};

/* Call reader_close also when it fails. */
graphi_status reader_begin(struct reader *reader, const char *where, const void *bytes, size_t size);

/* Exactly `size` bytes to `out`; INVALID, naming `what`, if the file ends before. */
graphi_status reader_take(struct reader *reader, void *out, size_t size, const char *what);

/* INVALID if anything is left, or a checksum is wrong. */
graphi_status reader_end(struct reader *reader);

/* The most bytes that can still come: what a header declares beyond it is a lie, found before anything is allocated. */
uint64_t reader_most(const struct reader *reader);

void reader_close(struct reader *reader);

/* Replaces what file_read gave by what it unpacks to, where it is gzip; else leaves it. INVALID if that is damaged, cut
 * off, or more than `limit` bytes; *data is then freed, as after every error. */
graphi_status reader_unpack(const char *where, size_t limit, void **data, size_t *size);

#endif
