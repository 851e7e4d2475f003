/* SPDX-License-Identifier: Apache-2.0 */
/* What both training loops (trainer.c, gan.c) are asked for and leave behind, besides the checkpoint. */
#include "cli/training.h"

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

/* What stands there may be the log of a training before, nothing else. */
static graphi_status check_log(const char *path)
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

graphi_status training_check(const struct options *options)
{
    const char *needs = options->resume ? "--resume" : options->every ? "--every" : NULL;
    if (options->steps && options->epochs)
        return report_usage("--epochs", "--steps too", "one of the two");
    if (needs && !options->checkpoint)
        return report_usage(needs, "no --checkpoint", "--checkpoint FILE");
    if (options->resume && access(options->checkpoint, R_OK) != 0)
        return report_error(GRAPHI_IO, options->checkpoint, "found no readable file (%s), expected one",
                            strerror(errno));
    if (options->schedule && graphi_schedule_parse(options->schedule, 1, 0, NULL) != GRAPHI_OK)
        return report_failure(GRAPHI_INVALID);
    return check_log(options->log);
}

void training_note_data(struct result *result, const graphi_data_info *about)
{
    if (about->note)
        result_note(result, "data: %s", about->note);
    if (about->format != GRAPHI_DATA_TEXT && about->labels == 1)
        result_note(result, "all training labels are of one class: nothing is told apart");
    else if (about->format != GRAPHI_DATA_TEXT && about->labels < about->classes)
        result_note(result, "%lld classes are told apart, labels of %lld occur in the training files",
                    (long long)about->classes, (long long)about->labels);
}

static double blend(double mean, double fresh) { return isnan(mean) ? fresh : 0.95 * mean + 0.05 * fresh; }

void losses_add(struct losses *mean, const struct losses *fresh)
{
    *mean = (struct losses){blend(mean->real, fresh->real), blend(mean->fake, fresh->fake),
                            blend(mean->generator, fresh->generator)};
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

graphi_status training_log(const struct options *options, const char *columns, uint64_t step, struct output_log *log,
                           uint64_t *last)
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

graphi_status training_end(const struct job *job, const struct output_log *log, uint64_t step, uint64_t last,
                           bool owes, graphi_status status, struct result *result)
{
    const struct options *o = job->options;
    if (status == GRAPHI_OK)
        status = output_log_check(log, o->log);
    if (log->file && !log->error)
        result_file(result, o->log);
    if (status != GRAPHI_OK)
        return status;
    job_explain_run(o, job->run); /* an error is the last that is said */
    if (!report_interrupted() || (step >= last && !owes)) /* then nothing is left that it could have stopped */
        return status;
    return report_error(GRAPHI_INTERRUPTED, "train", "found %s at step %llu%s, expected to reach %llu; %s",
                        report_signal(), (unsigned long long)step, owes ? " before its validation was over" : "",
                        (unsigned long long)last,
                        o->checkpoint ? "the checkpoint is written, --resume goes on" : "no --checkpoint was given");
}

graphi_status training_length(struct options *o, const graphi_model_info *info, int64_t batches, uint64_t *steps,
                              graphi_schedule *schedule)
{
    if (!o->steps && !o->epochs)
        o->epochs = info->epochs;
    const bool resumed = o->resume && o->schedule && !options_given(o, "--schedule");
    if (!o->schedule)
        o->schedule = info->schedule;
    if (!o->lr_given)
        o->lr = info->rate;
    o->lr_given = true;
    *steps = (uint64_t)(o->steps ? o->steps : o->epochs * batches);
    graphi_status status = graphi_schedule_parse(o->schedule, o->lr, batches, schedule);
    if (status == GRAPHI_INVALID && resumed)
        return report_error(status, o->checkpoint,
                            "found train.schedule '%s' over epochs of %lld steps, expected marks that rise and at most "
                            "2^53 steps",
                            o->schedule, (long long)batches);
    return status == GRAPHI_OK ? status : report_failure(status);
}
