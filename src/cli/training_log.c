/* SPDX-License-Identifier: Apache-2.0 */
/* The log is cut to the checkpoint that training goes on from, so that its rows are those of one training. */
#include "cli/training_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/report.h"

/* Whether a file begins with the line of these columns, or is empty; it is read up to behind that line. */
static bool is_log(FILE *file, const char *columns)
{
    char line[256];
    const size_t length = strlen(columns);
    return !fgets(line, sizeof line, file) || (strncmp(line, columns, length) == 0 && strcmp(line + length, "\n") == 0);
}

/* The same for the columns of any training: that of a network and that of two against each other. */
static bool is_any_log(FILE *file)
{
    static const char *const first[] = {"step,epoch,loss,rate,", "step,epoch,real_loss,fake_loss,generator_loss\n"};
    char line[256];
    if (!fgets(line, sizeof line, file))
        return true;
    return strncmp(line, first[0], strlen(first[0])) == 0 || strcmp(line, first[1]) == 0;
}

static graphi_status no_log(const char *path, const char *columns)
{
    return report_error(GRAPHI_INVALID, path,
                        "found a file that begins otherwise, expected a log whose first line is '%s', or none",
                        columns);
}

graphi_status training_log_check(const char *path)
{
    struct stat info;
    if (!path || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return GRAPHI_OK;
    FILE *file = fopen(path, "r");
    bool fine = !file || is_any_log(file); /* that it cannot be written is told when it is */
    if (file)
        fclose(file);
    return fine ? GRAPHI_OK : no_log(path, "step,epoch,...");
}

/* Cuts off the lines behind `step`, and the last one if it was not finished. `last`: the step of the last one left. */
static bool forget_after(FILE *log, uint64_t step, uint64_t *last)
{
    char *line = NULL; /* of any length: a perplexity may have 300 digits */
    size_t room = 0;
    long keep = ftell(log);
    uint64_t at;
    *last = 0;
    while (getline(&line, &room, log) > 0 && strchr(line, '\n') && (at = strtoull(line, NULL, 10)) <= step) {
        keep = ftell(log);
        *last = at;
    }
    free(line);
    return keep >= 0 && fseek(log, 0, SEEK_END) == 0 && (ftell(log) <= keep || ftruncate(fileno(log), keep) == 0);
}

graphi_status training_log_open(const struct options *options, const char *columns, uint64_t step,
                                struct output_log *log, uint64_t *last)
{
    const char *path = options->log;
    uint64_t row = 0;
    if (!path)
        return GRAPHI_OK;
    struct stat info;
    const bool old = options->resume && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    log->file = fopen(path, old ? "r+" : "w");
    if (!log->file)
        return report_error(GRAPHI_IO, path, "found that it cannot be written (%s), expected a writable place",
                            strerror(errno));
    if (old && !is_log(log->file, columns))
        return no_log(path, columns);
    if (old && !forget_after(log->file, step, &row))
        return report_error(GRAPHI_IO, path,
                            "found that lines behind step %llu cannot be cut off (%s), expected a file that shrinks",
                            (unsigned long long)step, strerror(errno));
    if (!old || (fseek(log->file, 0, SEEK_END) == 0 && ftell(log->file) == 0)) {
        fprintf(log->file, "%s\n", columns);
        output_log_row(log);
    } else {
        *last = row;
    }
    return GRAPHI_OK;
}
