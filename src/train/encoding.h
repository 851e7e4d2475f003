/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of bytes a file has, by its first ones. */
#ifndef TRAIN_ENCODING_H
#define TRAIN_ENCODING_H

#include "graphi/types.h"

/* Makes a text of the bytes of a file, in place: marks of byte order are skipped, and CR and CRLF become LF. What is no
 * text is refused, by its magic number: INVALID (archives, pictures, arrays, UTF-16 and UTF-32). Bytes that are no
 * UTF-8 stay as they are. Any thread. */
graphi_status encoding_text(const char *where, void *bytes, size_t *size);

#endif
