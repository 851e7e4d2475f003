/* SPDX-License-Identifier: Apache-2.0 */
/* How a function fails: it returns fail(CODE, "where", "found X, expected Y"), which records the message of this thread
 * (graphi_message) and gives the code back. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "graphi/types.h"

#include <stddef.h>

graphi_status fail(graphi_status code, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A failed allocation of `bytes` for `what`. */
graphi_status fail_memory(const char *what, size_t bytes);

/* What a message expects of a name: "one of a, b, c", as many as fit with ", 12 more" behind, or "none". Starts zeroed;
 * the text lives as long as the list. */
struct expected_names {
    char text[400];
    size_t count, left_out;
};
void expect_name(struct expected_names *names, const char *name);
const char *expected_text(struct expected_names *names);

/* Copies/restores the recorded message, for code that carries a failure from a worker to the caller's thread. */
void message_get(char *text, size_t size);
void message_set(const char *text);

#define TRY(call)                                                                                  \
    do {                                                                                           \
        graphi_status try_status_ = (call);                                                        \
        if (try_status_ != GRAPHI_OK)                                                              \
            return try_status_;                                                                    \
    } while (0)

/* A pointer that callers of a public function have to give; the message names the function. */
#define GIVEN(pointer)                                                                             \
    do {                                                                                           \
        if (!(pointer))                                                                            \
            return fail(GRAPHI_INVALID, __func__, "found NULL as '%s', expected one", #pointer);   \
    } while (0)

#endif
