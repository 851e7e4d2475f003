/* SPDX-License-Identifier: Apache-2.0 */
/* Text from files and names: characters of UTF-8, and those that a terminal would obey. Functions in a header, so that
 * the command, which links the library's public API alone, judges text as the library does. Any thread. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes of the character that begins here, in a text that ends in 0; 0: none does. */
static inline size_t utf8_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (*c < 0x80)
        return 1;
    const size_t bytes = *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;
    const unsigned char least = *c == 0xe0 ? 0xa0 : *c == 0xf0 ? 0x90 : 0x80; /* none longer than it must be, */
    const unsigned char most = *c == 0xed ? 0x9f : *c == 0xf4 ? 0x8f : 0xbf;  /* no surrogate, none beyond 0x10ffff */
    if (*c < 0xc2 || *c > 0xf4 || c[1] < least || c[1] > most)
        return 0;
    for (size_t i = 2; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

/* Bytes of the control character that begins here, 0: none does. Those above 0x7f are two in UTF-8, and one where a
 * terminal takes bytes: there, a byte that is part of no character counts. */
static inline size_t utf8_control(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
        return 2;
    return (*c && *c < ' ') || *c == 0x7f || (*c >= 0x80 && *c < 0xa0);
}

/* Every byte of a control character becomes '?': line ends too, unless `lines` stay. */
static inline void utf8_tame(char *text, bool lines)
{
    for (char *at = text; *at;) {
        const size_t bytes = utf8_bytes(at);
        if (!(lines && *at == '\n'))
            memset(at, '?', utf8_control(at));
        at += bytes ? bytes : 1;
    }
}

#endif
