/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into .npy files. Headers are written first: how many rows there will be is known. */
#include "cli/predictions.h"

#include <stdio.h>

#include "cli/outputs.h"

enum { VALUES, PREDICTIONS, LABELS };

/* Version 1.0, 128 bytes; the format is docs/data.md's. */
static bool write_header(FILE *file, const char *type, int64_t rows, int64_t columns)
{
    char second[24] = "", shape[48], text[118];
    if (columns)
        snprintf(second, sizeof second, " %lld", (long long)columns);
    snprintf(shape, sizeof shape, "(%lld,%s)", (long long)rows, second);
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    return fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, text) == 128;
}

/* A write that fails closes the file: output_end tells why. */
static graphi_status put(struct output *output, bool written)
{
    if (written)
        return GRAPHI_OK;
    graphi_status status = output_end(output, false);
    output->file = NULL;
    return status;
}

static bool is_text(const struct predictions *files) { return files->info.feed == GRAPHI_MODEL_TEXT; }

graphi_status predictions_begin(const struct options *options, int64_t rows, const graphi_model_info *info,
                            struct predictions *out)
{
    *out = (struct predictions){.info = *info};
    const bool text = is_text(out);
    const struct {
        const char *name, *type;
        int64_t columns; /* 0: one dimension */
    } files[PREDICTION_FILES] = {[VALUES] = {text ? "losses" : "logits", "<f4", text ? info->batch : info->classes},
                        [PREDICTIONS] = {"predictions", "<i4", text ? info->batch : 0},
                        [LABELS] = {"labels", "<i4", text ? info->batch : 0}};
    for (int i = 0; i < PREDICTION_FILES; i++) {
        struct output *output = &out->output[i];
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.npy", options->output, files[i].name);
        graphi_status status = outputs_check_answer(options, path);
        if (status == GRAPHI_OK)
            status = output_begin(output, path);
        if (status == GRAPHI_OK)
            status = put(output, write_header(output->file, files[i].type, rows, files[i].columns));
        if (status != GRAPHI_OK)
            return status;
    }
    return GRAPHI_OK;
}

graphi_status predictions_add(struct predictions *files, const graphi_scored *batch)
{
    const bool text = is_text(files);
    const size_t classes = (size_t)batch->classes;
    bool written[PREDICTION_FILES] = {true, true, true};
    for (int64_t r = 0; r < batch->rows; r++) {
        const struct {
            const void *data;
            size_t bytes;
        } cells[PREDICTION_FILES] = {
            [VALUES] = {text ? &batch->losses[r] : batch->logits + (size_t)r * classes,
                        (text ? 1 : classes) * sizeof(float)},
            [PREDICTIONS] = {&batch->predictions[r], sizeof *batch->predictions},
            [LABELS] = {&batch->targets[r], sizeof *batch->targets}};
        for (int i = 0; i < PREDICTION_FILES; i++)
            written[i] = written[i] && fwrite(cells[i].data, cells[i].bytes, 1, files->output[i].file) == 1;
    }
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < PREDICTION_FILES && status == GRAPHI_OK; i++)
        status = put(&files->output[i], written[i]);
    return status;
}

graphi_status predictions_end(struct predictions *files, bool good, struct result *result)
{
    graphi_status status = GRAPHI_OK; /* a full disk shows before any takes its place */
    for (int i = 0; i < PREDICTION_FILES && good && status == GRAPHI_OK; i++)
        if (files->output[i].file)
            status = put(&files->output[i], fflush(files->output[i].file) == 0);
    for (int i = 0; i < PREDICTION_FILES; i++) {
        struct output *output = &files->output[i];
        if (!output->file)
            continue;
        if (!good || status != GRAPHI_OK)
            output_abandon(output);
        else if ((status = output_end(output, true)) == GRAPHI_OK)
            result_file(result, output->path);
        output->file = NULL;
    }
    return status;
}
