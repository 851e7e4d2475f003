/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs from .npy files, outputs into them. */
#include "cli/arrays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ports.h"
#include "tool/report.h"

struct array {
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    size_t bytes;
    void *data;
};

static graphi_status array_of(const struct job *job, const char *name, struct array *array)
{
    graphi_status status =
        graphi_value_type(job->graph, graphi_find(job->graph, name), &array->dtype, &array->rank, array->dims);
    if (status != GRAPHI_OK)
        return report_failure(status);
    array->bytes = graphi_dtype_size(array->dtype);
    for (int i = 0; i < array->rank; i++)
        array->bytes *= (size_t)array->dims[i];
    array->data = malloc(array->bytes ? array->bytes : 1);
    return array->data
               ? GRAPHI_OK
               : report_error(GRAPHI_MEMORY, name, "found no memory for %zu bytes, expected some", array->bytes);
}

static bool is_input(const graphi_graph *graph, const char *name)
{
    const char *other;
    for (int i = 0; (other = graphi_graph_input_at(graph, i)); i++)
        if (strcmp(other, name) == 0)
            return true;
    return false;
}

enum { NAME_BYTES = 256 };

graphi_status arrays_check(const struct options *o)
{
    if (o->later)
        return report_error(GRAPHI_UNSUPPORTED, "run",
                            "found %s, which is not available in this build, expected --input NAME=FILE.npy", o->later);
    for (int i = 0; i < o->input_count; i++) {
        const char *word = o->input[i], *equals = strchr(word, '=');
        if (!equals || equals == word || equals - word >= NAME_BYTES)
            return report_usage("--input", word, "NAME=FILE.npy");
        if (access(equals + 1, R_OK) != 0)
            return report_error(GRAPHI_IO, equals + 1, "found no readable file (%s), expected one", strerror(errno));
    }
    return GRAPHI_OK;
}

static graphi_status feed_file(const struct job *job, const char *word)
{
    char name[NAME_BYTES], list[1024];
    struct array array = {0};
    const char *equals = strchr(word, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
    if (!is_input(job->graph, name)) {
        ports_inputs(job->graph, list, sizeof list);
        return report_error(GRAPHI_INVALID, "--input", "found '%s', expected one of %s", name, list);
    }
    graphi_status status = array_of(job, name, &array);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_array_load(equals + 1, array.dtype, array.rank, array.dims, array.data)) != GRAPHI_OK ||
        (status = graphi_run_set(job->run, name, array.data, array.bytes)) != GRAPHI_OK)
        report_failure(status);
    free(array.data);
    return status;
}

static bool is_given(const struct options *options, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < options->input_count; i++)
        if (strncmp(options->input[i], name, length) == 0 && options->input[i][length] == '=')
            return true;
    return false;
}

/* An output that depends on them would look like a result. */
static void note_others(const struct job *job, struct result *result)
{
    const struct options *o = job->options;
    const char *name;
    char names[512] = "";
    for (int i = 0; (name = graphi_graph_input_at(job->graph, i)); i++)
        if (!is_given(o, name))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", name);
    if (*names && (o->checkpoint || o->input_count))
        result_note(result, "not given, and so random (initial states zero): %s", names);
}

graphi_status arrays_feed(const struct job *job, struct result *result)
{
    const struct options *o = job->options;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < o->input_count && status == GRAPHI_OK; i++)
        status = feed_file(job, o->input[i]);
    note_others(job, result);
    return status;
}

graphi_status arrays_write(const struct job *job, struct result *result)
{
    const char *folder = job->options->output, *name;
    if (!folder)
        return GRAPHI_OK;
    for (int i = 0; (name = graphi_graph_output_at(job->graph, i)); i++) {
        char path[4096];
        struct array array = {0};
        graphi_status status = array_of(job, name, &array);
        if (status != GRAPHI_OK)
            return status;
        int used = snprintf(path, sizeof path, "%s/", folder);
        snprintf(path + used, sizeof path - (size_t)used, "%s.npy", name);
        for (char *c = path + used; *c; c++)
            *c = *c == '/' ? '.' : *c; /* "gradient/layer0/w_i" */
        if ((status = graphi_run_get(job->run, name, array.data, array.bytes)) != GRAPHI_OK ||
            (status = graphi_array_save(path, array.dtype, array.rank, array.dims, array.data)) != GRAPHI_OK)
            report_failure(status);
        free(array.data);
        if (status != GRAPHI_OK)
            return status;
        result_file(result, path);
    }
    return GRAPHI_OK;
}
