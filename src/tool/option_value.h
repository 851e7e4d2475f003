/* SPDX-License-Identifier: Apache-2.0 */
/* The value of one option: read from a word, and written as one. */
#ifndef TOOL_OPTION_VALUE_H
#define TOOL_OPTION_VALUE_H

#include "tool/option_table.h"
#include "tool/options.h"

/* Why a word is no value of an option. */
struct option_wrong {
    const char *found; /* the word, or what is wrong beside it */
    char expected[256];
};

/* NULL: there is none of that name. */
const struct option *option_find(const char *name);

/* Stores what the word says; texts are kept as pointers to it. A flag takes any word. False: *wrong says why. */
bool option_read(const struct option *option, const char *word, struct options *options, struct option_wrong *wrong);

/* The value as a word that gives it again, numbers as short as that can be, a flag as "yes". False: it has none. Not of
 * lists and seeds. */
bool option_write(const struct option *option, const struct options *options, char *word, size_t size);

#endif
