/* SPDX-License-Identifier: Apache-2.0 */
/* Standard error and signals. */
#include "tool/report.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool open_line; /* a progress line without its line end stands on the terminal */

static void end_line(void)
{
    if (open_line)
        fputc('\n', stderr);
    open_line = false;
}

/* What was said before stands before it, also where both streams are one file. */
static void print_error(const char *text)
{
    fflush(stdout);
    end_line();
    fprintf(stderr, "graphi: error: %s\n", text);
}

graphi_status report_usage(const char *where, const char *found, const char *expected, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, expected);
    vsnprintf(text, sizeof text, expected, arguments);
    va_end(arguments);
    return report_error(GRAPHI_USAGE, where, "found '%s', expected %s", found, text);
}

void report_warning(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    utf8_tame(text, false);
    fflush(stdout); /* it follows what was printed before */
    end_line();
    fprintf(stderr, "graphi: warning: %s\n", text);
}

graphi_status report_failure(graphi_status status)
{
    print_error(graphi_message());
    return status;
}

graphi_status report_error(graphi_status status, const char *where, const char *format, ...)
{
    char text[8192]; /* a path or two */
    int used = snprintf(text, sizeof text, "%s: %s: ", graphi_status_name(status), where);
    va_list arguments;
    va_start(arguments, format);
    if (used >= 0 && (size_t)used < sizeof text)
        vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    utf8_tame(text, false); /* one line, whatever was typed */
    print_error(text);
    return status;
}

void report_progress(bool quiet, const char *format, ...)
{
    static double last;
    if (quiet)
        return;
    const char *kind = getenv("TERM");
    const bool terminal = isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0); /* one that moves its cursor */
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!*text) {
        end_line();
        return;
    }
    const double now = report_seconds();
    if (!terminal && last > 0 && now < last + 2)
        return;
    last = now;
    fprintf(stderr, "%s%s%s", terminal ? "\r\033[K" : "", text, terminal ? "" : "\n");
    open_line = terminal;
    fflush(stderr);
}

double report_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static volatile sig_atomic_t interrupted;
static double interrupted_at; /* written once, by the handler */

/* The second one ends the program at once, unless it follows so closely that it is the same Ctrl-C, which the terminal
 * gave to all and `graphi bench` passed on. Both calls are safe in a handler. */
static void on_signal(int number)
{
    double now = report_seconds();
    if (!interrupted)
        interrupted_at = now;
    else if (now - interrupted_at > 0.5)
        _exit(GRAPHI_INTERRUPTED);
    interrupted = number;
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught / sizeof *caught };

static bool ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* A shell ignores SIGINT for what it starts in the background, and still the user's kill -INT should end that. Calls go
 * on: a result that a slow reader takes would be cut short. Who waits for others polls. */
void report_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    for (int i = 0; i < CAUGHT; i++)
        if (caught[i] != SIGHUP || !ignored(SIGHUP))
            sigaction(caught[i], &action, NULL);
}

int report_interrupted(void) { return interrupted; }

bool report_stop(void *unused)
{
    (void)unused;
    return report_interrupted();
}

const char *report_signal(void)
{
    return interrupted == SIGTERM ? "SIGTERM" : interrupted == SIGHUP ? "SIGHUP" : "Ctrl-C";
}

graphi_status report_stopped(const char *where, const char *expected)
{
    return interrupted ? report_error(GRAPHI_INTERRUPTED, where, "found %s, expected %s", report_signal(), expected)
                       : GRAPHI_OK;
}

void report_hold_interrupts(sigset_t *before)
{
    sigset_t all;
    sigemptyset(&all);
    for (int i = 0; i < CAUGHT; i++)
        sigaddset(&all, caught[i]);
    sigprocmask(SIG_BLOCK, &all, before);
}

void report_forget_interrupts(void)
{
    for (int i = 0; i < CAUGHT; i++)
        if (!ignored(caught[i]))
            signal(caught[i], SIG_DFL);
}
