/* SPDX-License-Identifier: Apache-2.0 */
/* graphi bench X: runs the program X of bench/ (beside the command in a build tree, under libexec/graphi when
 * installed), which prints a result as JSON; renders the table, draws the SVG, writes the JSON. */
#include "cli/commands.h"
#include "tool/experiments.h"
#include "tool/job.h"
#include "tool/report.h"

#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef GRAPHI_LIBEXEC
#define GRAPHI_LIBEXEC "/usr/local/libexec/graphi"
#endif

/* The folder of the programs. */
static bool program_folder(char *folder, size_t size)
{
    char self[3072];
    struct stat found;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    const char *command = dirname(self);
    const char *const places[][2] = {{command, "/bench"}, {command, "/../libexec/graphi"}, {GRAPHI_LIBEXEC, ""}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(folder, size, "%s%s", places[i][0], places[i][1]);
        if (stat(folder, &found) == 0 && S_ISDIR(found.st_mode))
            return true;
    }
    return false;
}

static bool program_path(const struct experiment *experiment, char *path, size_t size)
{
    char folder[3200];
    struct stat found;
    if (!experiment || !program_folder(folder, sizeof folder))
        return false;
    snprintf(path, size, "%s/%s", folder, experiment->program ? experiment->program : experiment->name);
    for (char *at = path + strlen(folder); (at = strchr(at, '-')); at++)
        *at = '_';
    return access(path, X_OK) == 0 && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

bool bench_experiments(FILE *out, bool summaries)
{
    char path[4096];
    bool any = false;
    for (const struct experiment *e = experiments; e->name; e++)
        if (program_path(e, path, sizeof path)) {
            fprintf(out, summaries ? "  %-16s %s\n" : "%s ", e->name, e->summary);
            any = true;
        }
    return any;
}

/* What the program prints, as it comes; a signal to stop is passed on, and what it had measured by then arrives. */
struct source {
    pid_t child;
    int file;
    bool told;
};

static size_t read_some(void *buffer, size_t size, void *context)
{
    struct source *from = context;
    for (;;) {
        if (report_interrupted() && !from->told) {
            kill(from->child, report_interrupted());
            from->told = true;
        }
        struct pollfd ready = {.fd = from->file, .events = POLLIN};
        if (poll(&ready, 1, 200) <= 0)
            continue;
        ssize_t got = read(from->file, buffer, size);
        if (got >= 0 || errno != EINTR)
            return got >= 0 ? (size_t)got : (size_t)-1;
    }
}

/* Runs the program with all words but the command and the experiment; its standard output is the result. */
static json_t *collect(const char *path, const struct options *options, int *exit_status)
{
    int ends[2];
    const char *part = experiment_find(options->subject)->option;
    const size_t most = (size_t)options->argc + 2;
    char **arguments = calloc(most, sizeof *arguments);
    if (!arguments) {
        *exit_status = report_error(GRAPHI_MEMORY, path, "found no memory for %zu arguments, expected some", most);
        return NULL;
    }
    if (pipe(ends) != 0) {
        *exit_status =
            report_error(GRAPHI_IO, path, "found that it cannot be read (%s), expected a pipe", strerror(errno));
        free(arguments);
        return NULL;
    }
    int count = 0;
    arguments[count++] = (char *)path;
    if (part)
        arguments[count++] = (char *)part;
    for (int i = 1; i < options->argc; i++)
        if (options->argv[i] != options->command && options->argv[i] != options->subject) /* these words themselves */
            arguments[count++] = options->argv[i];
    /* Until the program catches signals itself they end it; none may be lost to a handler that exec forgets. */
    sigset_t before;
    report_hold_interrupts(&before);
    pid_t child = fork();
    if (child == 0) {
        report_forget_interrupts();
        sigprocmask(SIG_SETMASK, &before, NULL);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(path, arguments);
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(arguments);
    close(ends[1]);
    json_error_t error;
    json_t *root = child > 0 ? json_load_callback(read_some, &(struct source){child, ends[0], false},
                                                  JSON_DISABLE_EOF_CHECK, &error)
                             : NULL;
    close(ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : GRAPHI_IO;
    if (child < 0)
        *exit_status =
            report_error(GRAPHI_IO, path, "found that it cannot be started (%s), expected a program", strerror(errno));
    else if (WIFSIGNALED(status) && report_interrupted())
        *exit_status = report_stopped(options->subject, "to measure until the end");
    else if (WIFSIGNALED(status))
        report_error(GRAPHI_IO, path, "found that it was ended by signal %d, expected a result", WTERMSIG(status));
    return root;
}

int command_bench(const struct options *options)
{
    char path[4096];
    int status = GRAPHI_OK;
    const struct experiment *experiment = experiment_find(options->subject);
    if (!experiment)
        return report_usage("bench", options->subject, "an experiment that graphi bench --help lists");
    if (!program_path(experiment, path, sizeof path))
        return report_error(GRAPHI_UNSUPPORTED, "bench",
                            "found '%s', which is not available in this build, expected an experiment that graphi "
                            "bench --help lists",
                            options->subject);
    json_t *root = collect(path, options, &status);
    if (!root)
        return status ? status : (int)report_error(GRAPHI_IO, options->subject, "found no result, expected JSON");
    result_set(root, "argv", result_words(options->argc, options->argv)); /* not those of the program */
    if (!options_json_is_stdout(options) && result_print(root, stdout) != GRAPHI_OK && status == GRAPHI_OK)
        status = GRAPHI_MEMORY;
    if (options->out) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s.svg", options->out, options->subject);
        if (result_svg(root, file) == GRAPHI_OK)
            result_file(&(struct result){.files = json_object_get(root, "files")}, file);
        else
            status = GRAPHI_IO;
        if (status == GRAPHI_OK && !options->quiet)
            fprintf(stderr, "wrote %s\n", file);
        snprintf(file, sizeof file, "%s/%s.json", options->out, options->subject);
        if (result_write(root, file) != GRAPHI_OK)
            status = GRAPHI_IO;
    }
    if (options->json && result_write(root, options->json) != GRAPHI_OK)
        status = GRAPHI_IO;
    json_decref(root);
    if (status == GRAPHI_MISSED)
        report_error(GRAPHI_MISSED, options->subject, "found goals that were missed, expected all to be met");
    return status;
}
