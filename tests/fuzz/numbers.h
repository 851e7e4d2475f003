/* SPDX-License-Identifier: Apache-2.0 */
/* Mutated JSON is seldom JSON. So an input is also taken as a list of changes to the numbers of a valid text: a byte
 * for which one, a byte for what stands there instead. */
#ifndef TESTS_FUZZ_NUMBERS_H
#define TESTS_FUZZ_NUMBERS_H

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *fuzz_number(uint8_t which)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "-1",
                                          "1.5",
                                          "65536",
                                          "65537",
                                          "2147483647",
                                          "4294967296",
                                          "9223372036854775807",
                                          "1e-300",
                                          "1e-9",
                                          "0.5",
                                          "1e9",
                                          "1e12",
                                          "1e15",
                                          "1e18",
                                          "1e300",
                                          "-0.0",
                                          "\"x\"",
                                          "null",
                                          "[1]",
                                          "true"};
    return numbers[which % (sizeof numbers / sizeof *numbers)];
}

/* The text with changed numbers; malloc'ed, zero at its end. */
static inline char *fuzz_change_numbers(const char *text, const uint8_t *data, size_t size)
{
    size_t changes = size / 2 < 6 ? size / 2 : 6, at = 0, number = 0, room = strlen(text) + changes * 32 + 1;
    char *out = malloc(room);
    int numbers = 0;
    for (const char *c = text; *c; c++)
        numbers += isdigit((unsigned char)*c) && c > text && (c[-1] == ' ' || c[-1] == '[' || c[-1] == ':');
    for (const char *c = text; *c;) {
        const char *instead = NULL;
        if (isdigit((unsigned char)*c) && c > text && (c[-1] == ' ' || c[-1] == '[' || c[-1] == ':')) {
            for (size_t i = 0; i < changes; i++)
                if (numbers && data[2 * i] * 31u % (unsigned)numbers == number)
                    instead = fuzz_number(data[2 * i + 1]);
            number++;
        }
        if (!instead) {
            out[at++] = *c++;
            continue;
        }
        at += (size_t)sprintf(out + at, "%s", instead);
        c += strspn(c, "0123456789.eE+-");
    }
    out[at] = 0;
    return out;
}

/* Without a sync for every input, as the library's own writer would do. */
static inline void fuzz_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file))
        abort();
}

/* One input as three files: itself where it begins as one; else as what follows the first `head` bytes of a valid file,
 * and as changes to its numbers. */
static inline void fuzz_file(const char *valid, size_t head, const uint8_t *data, size_t size,
                             void (*load)(const void *data, size_t size))
{
    if (size && *data == '{') {
        load(data, size);
        return;
    }
    char *whole = malloc(head + size + 1);
    memcpy(whole, valid, head);
    memcpy(whole + head, data, size);
    load(whole, head + size);
    free(whole);
    char *text = fuzz_change_numbers(valid, data, size);
    load(text, strlen(text));
    free(text);
}

#endif
