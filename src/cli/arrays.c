/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs from .npy files, outputs into them. */
#include "cli/arrays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/ports.h"
#include "tool/report.h"

/* NULL: reported. The caller's (free). */
static void *array_of(const graphi_port *port)
{
    void *data = malloc(port->bytes);
    if (!data)
        report_error(GRAPHI_MEMORY, port->name, "found no memory for %zu bytes, expected some", port->bytes);
    return data;
}

/* Not by graphi_find: an output of that name would be found first. */
static bool find_input(const graphi_graph *graph, const char *name, graphi_port *port)
{
    for (int i = 0; graphi_graph_at(graph, GRAPHI_PORT_INPUT, i, port); i++)
        if (strcmp(port->name, name) == 0)
            return true;
    return false;
}

enum { NAME_BYTES = 256 };

/* The words of two --input name one input. */
static bool same_name(const char *a, const char *b)
{
    const size_t length = (size_t)(strchr(a, '=') - a) + 1;
    return strncmp(a, b, length) == 0;
}

graphi_status arrays_refuse(const struct options *o)
{
    if (!o->input_count && !o->inputs && !o->shape_count)
        return GRAPHI_OK;
    return report_usage(o->input_count ? "--input" : o->inputs ? "--inputs" : "--shape", o->subject, "a FILE.onnx");
}

graphi_status arrays_check(const struct options *o)
{
    if (o->inputs || o->compare || o->shape_count || o->rtol_given || o->atol_given)
        return report_usage(o->inputs ? "--inputs" : o->compare ? "--compare" : o->shape_count ? "--shape"
                            : o->rtol_given ? "--rtol" : "--atol", o->subject,
                            "a FILE.onnx; networks take --input NAME=FILE.npy");
    for (int i = 0; i < o->input_count; i++) {
        const char *word = o->input[i], *equals = strchr(word, '=');
        if (!equals || equals == word || equals - word >= NAME_BYTES)
            return report_usage("--input", word, "NAME=FILE.npy");
        for (int k = 0; k < i; k++)
            if (same_name(word, o->input[k]))
                return report_usage("--input", word, "one file for '%.*s': %s names another", (int)(equals - word),
                                    word, o->input[k]);
        if (access(equals + 1, R_OK) != 0)
            return report_error(GRAPHI_IO, equals + 1, "found no readable file (%s), expected one", strerror(errno));
    }
    return GRAPHI_OK;
}

/* Whole numbers up to 255, some beyond 1: of whatever type the file has them. */
static bool are_bytes(const float *number, size_t count)
{
    float most = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(number[i] >= 0 && number[i] <= 255) || number[i] != (float)(int)number[i])
            return false;
        most = number[i] > most ? number[i] : most;
    }
    return most > 1;
}

/* What was trained has only seen scaled ones. */
static void note_bytes(const struct job *job, const graphi_port *port, const char *file, const void *data,
                       struct result *result)
{
    if (job->options->checkpoint && port->dtype == GRAPHI_F32 && strcmp(port->name, "images") == 0 &&
        are_bytes(data, port->bytes / sizeof(float)))
        result_note(result,
                    "images: %s has bytes, 0 to 255, which are taken as they are; training divides by 255 and by what "
                    "the checkpoint says as data.mean and data.std (docs/training.md)",
                    file);
}

static graphi_status feed_file(const struct job *job, const char *word, struct result *result)
{
    char name[NAME_BYTES], list[1024];
    graphi_port port;
    const char *equals = strchr(word, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
    if (!find_input(job->graph, name, &port)) {
        ports_inputs(job->graph, list, sizeof list);
        return report_error(GRAPHI_INVALID, "--input", "found '%s', expected one of %s", name, list);
    }
    void *data = array_of(&port);
    if (!data)
        return GRAPHI_MEMORY;
    graphi_status status = graphi_array_load(equals + 1, port.dtype, port.rank, port.dims, data);
    if (status == GRAPHI_OK) {
        note_bytes(job, &port, equals + 1, data, result);
        status = graphi_run_set(job->run, name, port.dtype, data, port.bytes);
    }
    free(data);
    return status == GRAPHI_OK ? status : report_failure(status);
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
    graphi_port port;
    char names[512] = "";
    for (int i = 0; graphi_graph_at(job->graph, GRAPHI_PORT_INPUT, i, &port); i++)
        if (!is_given(o, port.name))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", port.name);
    if (*names && (o->checkpoint || o->input_count))
        result_note(result, "not given, and so random (initial states zero): %s", names);
}

static void name_output(const struct options *o, const graphi_port *port, char path[4096])
{
    const int used = snprintf(path, 4096, "%s/", o->output);
    snprintf(path + used, 4096 - (size_t)used, "%s.npy", port->name);
    for (char *c = path + used; *c; c++)
        *c = *c == '/' ? '.' : *c; /* "gradient/layer0/w_i" */
}

static graphi_status check_outputs(const struct job *job)
{
    graphi_status status = GRAPHI_OK;
    graphi_port port;
    char path[4096];
    for (int i = 0; job->options->output && status == GRAPHI_OK &&
                    graphi_graph_at(job->graph, GRAPHI_PORT_OUTPUT, i, &port); i++) {
        name_output(job->options, &port, path);
        status = outputs_check_answer(job->options, path);
    }
    return status;
}

graphi_status arrays_feed(const struct job *job, struct result *result)
{
    const struct options *o = job->options;
    graphi_status status = check_outputs(job);
    for (int i = 0; i < o->input_count && status == GRAPHI_OK; i++)
        status = feed_file(job, o->input[i], result);
    note_others(job, result);
    return status;
}

static graphi_status write_output(const struct job *job, const graphi_port *port, struct result *result)
{
    char path[4096];
    name_output(job->options, port, path);
    void *data = array_of(port);
    if (!data)
        return GRAPHI_MEMORY;
    graphi_status status = graphi_run_get(job->run, port->name, port->dtype, data, port->bytes);
    if (status == GRAPHI_OK)
        status = graphi_array_save(path, port->dtype, port->rank, port->dims, data);
    free(data);
    if (status != GRAPHI_OK)
        return report_failure(status);
    result_file(result, path);
    return GRAPHI_OK;
}

graphi_status arrays_write(const struct job *job, struct result *result)
{
    graphi_status status = GRAPHI_OK;
    graphi_port port;
    if (!job->options->output)
        return GRAPHI_OK;
    for (int i = 0; status == GRAPHI_OK && graphi_graph_at(job->graph, GRAPHI_PORT_OUTPUT, i, &port); i++)
        status = write_output(job, &port, result);
    return status;
}
