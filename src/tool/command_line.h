/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, described once: parsing, --help, shell completion and the man page all come from the tables of
 * commands (each program's own) and options (option_table.c). */
#ifndef TOOL_COMMAND_LINE_H
#define TOOL_COMMAND_LINE_H

#include "tool/option_table.h"
#include "tool/options.h"

/* What a command does, for whoever prepares it. */
enum command_traits {
    COMMAND_TRAINS = 1 << 0,      /* writes --checkpoint; others read it */
    COMMAND_SCORES = 1 << 1,      /* takes the data, too, from --checkpoint */
    COMMAND_OUT_IS_FILE = 1 << 2, /* --out names a file; of others it is a folder */
    COMMAND_OUT_LATER = 1 << 3,   /* and is made with the first file in it */
    COMMAND_OWN_PLANS = 1 << 4,   /* which it checks itself */
};

struct command {
    const char *name, *subject, *summary;
    unsigned options; /* enum option_flags, beside those that every command has */
    unsigned traits;  /* enum command_traits */
    int (*run)(const struct options *options);
    /* NULL, or prints what the subject may be, with summaries a line each; false: there is nothing. */
    bool (*subjects)(FILE *out, bool summaries);
};

/* All commands of the program, ended by a NULL name (cli/main.c, bench/lib/bench.c). */
extern const struct command commands[];

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* Fills *options; USAGE with a message naming the option, what was found and what was expected. */
graphi_status options_parse(int argc, char **argv, struct options *options);

#endif
