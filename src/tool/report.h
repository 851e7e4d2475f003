/* SPDX-License-Identifier: Apache-2.0 */
/* What the command says on standard error: the one error line, progress, and interruption by Ctrl-C; and its clock. */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

#include "graphi/types.h"

#include <signal.h>

/* "graphi: error: USAGE: WHERE: found X, expected Y"; gives GRAPHI_USAGE. */
graphi_status report_usage(const char *where, const char *found, const char *expected, ...)
    __attribute__((format(printf, 3, 4)));

/* "graphi: warning: ...", for what does not end the command. */
void report_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints graphi_message() as the error line; gives status. */
graphi_status report_failure(graphi_status status);

/* The error line of the CLI's own failures. */
graphi_status report_error(graphi_status status, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One progress line, overwritten in place on a terminal, a line of its own every few seconds otherwise; "" ends it. */
void report_progress(bool quiet, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Seconds on a clock that only goes forward. */
double report_seconds(void);

/* Catches SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP; a second one ends the process at once. */
void report_catch_interrupts(void);

/* The number of the last such signal, 0 while none came. */
int report_interrupted(void);
bool report_stop(void *unused); /* for `stop` of tuning and profiling: whether one came */

/* What to call it in messages: "Ctrl-C" (SIGINT), "SIGTERM" or "SIGHUP". */
const char *report_signal(void);

/* OK, or after such a signal the error line "INTERRUPTED: WHERE: found SIGNAL, expected EXPECTED". */
graphi_status report_stopped(const char *where, const char *expected);

/* Around fork: the caught signals wait, and in the child, which has no handler after exec, end it again. */
void report_hold_interrupts(sigset_t *before);
void report_forget_interrupts(void);

#endif
