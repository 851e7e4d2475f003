/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of one operation through the public API, and rows for it. */
#include "kernels.h"

#include <string.h>

static graphi_status execute(graphi_run *run, int repeat, int copies, double *ms)
{
    double samples[1000];
    graphi_status status = GRAPHI_OK;
    for (int i = -2; i < repeat && status == GRAPHI_OK; i++) {
        status = graphi_run_execute(run);
        graphi_run_info info;
        graphi_run_get_info(run, &info);
        if (i >= 0)
            samples[i] = info.last_ms / copies;
    }
    if (status == GRAPHI_OK)
        *ms = result_median(samples, repeat);
    return status;
}

graphi_status kernels_time(struct bench *bench, const graphi_graph *graph, const graphi_plan_options *more,
                           int64_t below, int threads, int repeat, int copies, double *ms)
{
    graphi_plan *plan = NULL;
    graphi_state *state = NULL;
    graphi_run *run = NULL;
    graphi_plan_options asked, options = *more;
    const graphi_model_info info = {.feed = GRAPHI_MODEL_TEXT, .vocabulary = below};
    graphi_status status = job_plan_options(&bench->options, &asked);
    if (status != GRAPHI_OK)
        return status;
    /* One thread takes no lease, which would count as the time of short operations. */
    options.setting = (graphi_setting){.policy = threads > 1 ? GRAPHI_POLICY_CRITICAL_PATH : GRAPHI_POLICY_SEQUENTIAL,
                                       .executors = 1, .width = threads};
    options.isa = asked.isa;
    if (options.precision == GRAPHI_F32)
        options.precision = asked.precision;
    if (!(options.conv_error > 0))
        options.conv_error = asked.conv_error;
    if ((status = graphi_graph_status(graph)) != GRAPHI_OK ||
        (status = graphi_plan_create(graph, bench->machine, &options, &plan)) != GRAPHI_OK ||
        (status = graphi_state_create(graph, 1, &state)) != GRAPHI_OK ||
        (status = graphi_run_create(plan, state, &run)) != GRAPHI_OK)
        report_failure(status);
    else if ((status = job_feed(run, graph, &info, 1)) == GRAPHI_OK &&
             (status = execute(run, repeat < 1000 ? repeat : 1000, copies, ms)))
        report_failure(status);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    return status;
}

json_t *kernels_row(struct bench *bench, const char *id, const char *engine, const char *version, int threads,
                    const double *ms, int n, const char *reason, char *full)
{
    bool peer = strcmp(engine, "graphi") != 0;
    snprintf(full, 200, "%s, %d thread%s%s%s", id, threads, threads > 1 ? "s" : "", peer ? ": " : "",
             peer ? engine : "");
    json_t *row = result_row(&bench->result, full, engine);
    result_integer(row, "width", threads);
    if (version)
        result_string(row, "engine_version", version);
    if (n == 0) {
        result_string(row, "status", "missing");
        result_string(row, "reason", reason);
        return row;
    }
    result_times(row, ms, n);
    return row;
}

enum { WORDS = sizeof((struct options *)NULL)->rest / sizeof(char *) };
static bool chose[WORDS], left_out[WORDS]; /* the word at this place some row; one that --quick leaves out */
static bool only_name;
static char beginnings[400]; /* first words of rows' names, ", " after each */
static json_t *names;        /* rows' names, as keys */
static char twice[200];      /* a name that two have */

static void note_beginning(const char *id)
{
    char word[40];
    snprintf(word, sizeof word, "%.*s, ", (int)strcspn(id, " ,"), id);
    if (!strstr(beginnings, word) && strlen(beginnings) + strlen(word) < sizeof beginnings)
        strcat(beginnings, word);
}

static void note_name(const char *id)
{
    names = names ? names : json_object();
    if (json_object_get(names, id))
        snprintf(twice, sizeof twice, "%s", id);
    result_set(names, id, json_true());
}

bool kernels_asked(const struct bench *bench, const char *id)
{
    bool asked = bench->options.rest_count == 0;
    if (only_name) {
        note_beginning(id);
        note_name(id);
    }
    for (int i = 0; i < bench->options.rest_count; i++)
        if (strstr(id, bench->options.rest[i]))
            asked = chose[i] = true;
    return asked && !only_name;
}

void kernels_leaves_out(const struct bench *bench, const char *id)
{
    if (only_name) {
        note_beginning(id);
        note_name(id);
    }
    for (int i = 0; i < bench->options.rest_count; i++)
        left_out[i] = left_out[i] || strstr(id, bench->options.rest[i]);
}

void kernels_only_name(bool on) { only_name = on; }

graphi_status kernels_chosen(const struct bench *bench)
{
    json_decref(names);
    names = NULL;
    if (*twice)
        return report_error(GRAPHI_INVALID, "kernels", "found two rows '%s', expected a name for each", twice);
    for (int i = 0; i < bench->options.rest_count; i++)
        if (!chose[i] && left_out[i])
            return report_usage("kernels", bench->options.rest[i],
                                "a part of the name of a row that --quick does not leave out");
        else if (!chose[i])
            return report_usage("kernels", bench->options.rest[i], "a part of a row's name; they begin with %.*s",
                                (int)strlen(beginnings) - 2, beginnings);
    return GRAPHI_OK;
}

int kernels_next_threads(const struct bench *bench, int threads)
{
    return threads == 0 ? 1 : threads < bench->about.cores ? bench->about.cores : 0;
}
