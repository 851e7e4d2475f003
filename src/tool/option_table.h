/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser (options.c) and the texts on options (help.c) are made from. */
#ifndef TOOL_OPTION_TABLE_H
#define TOOL_OPTION_TABLE_H

#include <stddef.h>

/* Whole numbers: uint64_t, int, int64_t. LATER takes a word that nothing reads yet, and keeps its own name. */
enum option_kind { FLAG, TEXT, SEED, SMALL, COUNT, REAL, LIST, LATER };

struct option {
    const char *name, *argument, *summary;
    char group;
    enum option_kind kind;
    size_t offset; /* in struct options */
    size_t given;  /* offset of a bool set when the option occurs; or of a list's count; 0: none */
    double low, high;
};

/* All options, ended by a NULL name. */
extern const struct option option_table[];

struct option_group {
    char letter;
    const char *title; /* NULL: more of the group above */
};

/* In the order of --help, ended by a letter 0. */
extern const struct option_group option_groups[];

#endif
