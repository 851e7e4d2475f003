/* SPDX-License-Identifier: Apache-2.0 */
/* graphi inspect: what is inside a network. */
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/form.h"
#include "cli/onnx.h"
#include "cli/ports.h"
#include "tool/job.h"
#include "tool/output.h"
#include "tool/report.h"

#include <string.h>

/* To --out, else to standard output, unless the result goes there. */
static graphi_status write_text(const struct options *options, const char *text)
{
    struct output output;
    graphi_status status;
    if (options->out) {
        status = output_begin(&output, options->out);
        return status == GRAPHI_OK ? output_end(&output, fputs(text, output.file) >= 0) : status;
    }
    if (options_json_is_stdout(options) || fputs(text, stdout) >= 0)
        return GRAPHI_OK;
    return report_error(GRAPHI_IO, "standard output", "found that it cannot be written, expected a writable place");
}

static graphi_status print_graph(const struct options *options, const graphi_graph *graph)
{
    const size_t length = options->out ? strlen(options->out) : 0;
    const bool dot = length > 4 && strcmp(options->out + length - 4, ".dot") == 0;
    graphi_graph_info info;
    char *text = NULL;
    graphi_status status = graphi_graph_print(graph, dot ? GRAPHI_PRINT_DOT : GRAPHI_PRINT_TEXT, &text);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = write_text(options, text);
    graphi_free(text);
    if (status != GRAPHI_OK)
        return status;
    FILE *out = options_json_is_stdout(options) ? stderr : stdout;
    graphi_graph_get_info(graph, &info);
    fprintf(out,
            "%s: %lld operations, %lld values, %lld parameters (%lld elements), %.3f GFLOP, %.1f MB of results, "
            "hash %016llx\n",
            options->subject, (long long)info.nodes, (long long)info.values, (long long)info.parameters,
            (long long)info.parameter_elements, info.flops * 1e-9, (double)info.intermediate_bytes * 1e-6,
            (unsigned long long)info.hash);
    ports_print(graph, out);
    return GRAPHI_OK;
}

int command_inspect(const struct options *options)
{
    graphi_model_options model;
    graphi_graph *graph;
    if (onnx_named(options->subject))
        return onnx_inspect(options);
    graphi_status status = arrays_refuse(options);
    if (status == GRAPHI_OK)
        status = form_asked(options, options->subject, &model);
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_model_create(options->subject, &model, &graph)) != GRAPHI_OK)
        return report_failure(status);
    status = print_graph(options, graph);
    graphi_model_info about;
    struct result result = result_begin("inspect", NULL, options->argc, options->argv);
    graphi_model_get_info(options->subject, &model, &about);
    job_note_size(options, &about, &result);
    if (status == GRAPHI_OK && options->json) {
        result_model(&result, &about, model.task ? model.task : "bench", graph, NULL);
        json_t *about_model = json_object_get(result.root, "model");
        result_set(about_model, "inputs", ports_json(graph, GRAPHI_PORT_INPUT));
        result_set(about_model, "outputs", ports_json(graph, GRAPHI_PORT_OUTPUT));
        if (options->out)
            result_file(&result, options->out);
        status = result_write(result.root, options->json);
    }
    if (status == GRAPHI_OK && !options_json_is_stdout(options))
        result_print_notes(result.root, stdout);
    result_end(&result);
    graphi_graph_destroy(graph);
    return status;
}
