/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the command writes itself (results, pictures), with the promise of the library's: the old file stays whole
 * until the new one is, a symbolic link stays a link, and a device or pipe (/dev/stdout) is written in place, never
 * renamed over. */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "graphi/graphi.h"

struct output {
    FILE *file;
    char path[4096], temporary[4096 + 32]; /* temporary empty: written in place */
};

/* Opens output->file for writing to `path`. Errors: IO, reported. */
graphi_status output_begin(struct output *output, const char *path);

/* Ends the writing; `good` false or a failed write leaves the old file. Errors: IO, reported. */
graphi_status output_end(struct output *output, bool good);

/* Ends it without a new file, for another reason than that writing failed. */
void output_abandon(struct output *output);

/* Rows of a log are written as they come; whether all of them arrived is asked after the checkpoint, so that a full
 * disk costs the log alone. */
struct output_log {
    FILE *file; /* NULL: no log */
    int error;  /* errno of the first row that did not arrive, which the stream forgets; 0: all did */
};

/* A row is complete: a killed run keeps it. */
void output_log_row(struct output_log *log);

/* Whether all rows arrived. Errors: IO, reported. */
graphi_status output_log_check(const struct output_log *log, const char *path);

/* A device or pipe, or standard output: several may write to it. */
bool output_in_place(const char *path);

/* Said before the work: whether `path`, a file's name (folder: a folder's), can be written at its end. NULL and "-"
 * can. A folder that is missing is made. Errors: IO, reported. */
graphi_status output_check(const char *path, bool folder);

#endif
