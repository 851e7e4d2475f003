/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser (command_line.c) and the texts on options (help.c) are made from. */
#ifndef TOOL_OPTION_TABLE_H
#define TOOL_OPTION_TABLE_H

#include <stddef.h>

/* Whole numbers: uint64_t, int, int64_t. */
enum option_kind { FLAG, TEXT, SEED, SMALL, COUNT, REAL, LIST, PARAMETER };

/* Groups of options: each option is of one, a command takes several. */
enum option_flags {
    OF_COMMON = 1 << 0,
    OF_COMPILE = 1 << 1, /* what compiles a network */
    OF_CORES = 1 << 2,   /* which cores */
    OF_SETTING = 1 << 3, /* how they are used */
    OF_PLAN = 1 << 4,    /* measuring and storing */
    OF_TIMELINE = 1 << 5,
    OF_OUT = 1 << 6,
    OF_NETWORK = 1 << 7,
    OF_FORM = 1 << 8,      /* what networks other than PathNet have */
    OF_DIRECTION = 1 << 9, /* training or inference */
    OF_CHECKPOINT = 1 << 10,
    OF_DATA = 1 << 11,
    OF_TEXT = 1 << 12, /* of data that are text */
    OF_USE = 1 << 13,  /* what becomes of the data */
    OF_TRAIN = 1 << 14,
    OF_RUN = 1 << 15,
    OF_OUTPUT = 1 << 16,  /* arrays that are written */
    OF_MACHINE = 1 << 17, /* another one than that at hand */
    OF_BENCH = 1 << 18,
    OF_SPLIT = 1 << 19, /* which part of the data */
    OF_COMPARE = 1 << 20, /* of outputs with expected ones */
    OF_GENERATE = 1 << 21,
    OF_INPUT = 1 << 22, /* what is fed */
    OF_GROUP = 1 << 23, /* several solvers */
    OF_PATH = 1 << 24, /* where data lie */
};

struct option {
    const char *name, *argument, *summary;
    enum option_flags group;
    enum option_kind kind;
    size_t offset; /* in struct options */
    size_t given;  /* offset of a bool set when the option occurs; or of a list's count; 0: none */
    double low, high;
};

/* All options, ended by a NULL name. */
const struct option *option_table(void);

struct option_group {
    unsigned flag;
    const char *title; /* NULL: more of the group above */
};

/* In the order of --help, ended by a flag 0. */
extern const struct option_group option_groups[];

#endif
