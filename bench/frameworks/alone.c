/* SPDX-License-Identifier: Apache-2.0 */
/* The child measures itself; the parent reads its one row. */
#include "frameworks/alone.h"

#include "tool/resident.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What the system did for this process so far: pages that it gave, and its time, which all cores share. */
static void system_work(int64_t *faults, double *ms)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *faults = usage.ru_minflt + usage.ru_majflt;
    *ms = (double)usage.ru_stime.tv_sec * 1e3 + (double)usage.ru_stime.tv_usec * 1e-3;
}

graphi_status alone_run(struct bench *bench)
{
    enum { LATER = 3 };
    double later[LATER], begin = 1e3 * report_seconds(), system_ms[2];
    int64_t faults[2];
    struct network network;
    struct contender c = {0};
    graphi_plan_info info;
    if (!bench->options.rest_count)
        return report_usage("frameworks", "nothing", "a network");
    resident_begin();
    graphi_status status = network_open(bench, bench->options.rest[0], bench->options.size, NULL, &network);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(network.plan, &info);
    status = contender_open(bench, &network, "alone", REQUEST(&info.setting), &c);
    system_work(&faults[0], &system_ms[0]);
    if (status == GRAPHI_OK && (status = graphi_run_execute(c.run)) != GRAPHI_OK)
        report_failure(status);
    system_work(&faults[1], &system_ms[1]);
    double first =
        1e3 * report_seconds() - begin - network.weights_ms - c.feed_ms; /* peers get both before their first step */
    for (int i = 0; i < LATER && status == GRAPHI_OK; i++) {
        begin = 1e3 * report_seconds();
        if ((status = graphi_run_execute(c.run)) != GRAPHI_OK)
            report_failure(status);
        later[i] = 1e3 * report_seconds() - begin;
    }
    if (status == GRAPHI_OK) {
        json_t *row = result_row(&bench->result, "alone", "graphi");
        result_number(row, "load_ms", fmax(0, first - result_median(later, LATER)));
        result_integer(row, "first_page_faults", faults[1] - faults[0]);
        result_number(row, "first_system_ms", (system_ms[1] - system_ms[0]) / bench->about.cores);
        resident_row(&bench->result, row);
        result_integer(row, "arena_bytes", info.arena_bytes);
    }
    contender_close(&c);
    network_close(&network);
    return status;
}

/* Appends a word as the shell reads it back. */
static void quote(FILE *out, const char *word)
{
    fputs(" '", out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, out);
    fputc('\'', out);
}

static bool names_a_network(const struct options *o, const char *word)
{
    for (int i = 0; i < o->rest_count; i++)
        if (o->rest[i] == word) /* not an option's value that reads the same */
            return true;
    return false;
}

/* The command that measures it: this program, with the options that were typed. NULL: no memory. */
static char *own_command(const struct options *o, const char *mode, const char *name, const char *size)
{
    enum { ADDED = 3 }; /* words that bench_main put before those */
    char self[4096], *line = NULL;
    size_t bytes;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    FILE *out = open_memstream(&line, &bytes);
    if (!out)
        return NULL;
    quote(out, self);
    fprintf(out, " alone-%s", mode);
    quote(out, name);
    for (int i = ADDED; i < o->argc; i++)
        if (!names_a_network(o, o->argv[i]))
            quote(out, o->argv[i]);
    fprintf(out, " --size %s --quiet", size);
    fclose(out);
    return line;
}

/* The plan that is timed was tuned, the one whose memory counts was not. */
static void tell_arena(struct bench *bench, const char *title, const graphi_plan *plan, const json_t *found)
{
    const double alone = json_number_value(json_object_get(found, "arena_bytes"));
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    if ((double)info.arena_bytes > 1.01 * alone)
        result_note(&bench->result,
                    "%s: the tuned plan's arena has %.1f MB, that of the plan whose memory is given %.1f MB", title,
                    (double)info.arena_bytes / 1e6, alone / 1e6);
}

void alone_measure(struct bench *bench, const char *title, const char *mode, const char *name, const char *size,
                   const graphi_plan *plan, json_t *row)
{
    static const char *const keys[] = {"load_ms", "first_page_faults", "first_system_ms", "peak_rss_bytes",
                                       "peak_rss_absolute_bytes"};
    char *line = own_command(&bench->options, mode, name, size);
    FILE *in = line ? popen(line, "r") : NULL;
    json_error_t error;
    json_t *root = in ? json_loadf(in, JSON_DISABLE_EOF_CHECK, &error) : NULL;
    const json_t *found = json_array_get(json_object_get(root, "rows"), 0);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && found; i++)
        json_object_set(row, keys[i], json_object_get(found, keys[i]));
    if (found)
        tell_arena(bench, title, plan, found);
    else if (!report_interrupted())
        result_note(&bench->result, "%s: memory and first step not measured: the program could not run itself", title);
    if (in)
        pclose(in);
    json_decref(root);
    free(line);
}
