/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into .npy files. Headers are written first: how many rows there will be is known. */
#include "cli/answers.h"

#include <math.h>
#include <stdio.h>

#include "cli/outputs.h"

enum { VALUES, PREDICTIONS, LABELS };

struct verdict answers_judge(const float *logits, int64_t classes, int32_t label)
{
    int64_t best = 0;
    double sum = 0;
    for (int64_t k = 1; k < classes; k++)
        best = logits[k] > logits[best] ? k : best;
    for (int64_t k = 0; k < classes; k++)
        sum += exp((double)logits[k] - logits[best]);
    return (struct verdict){(int32_t)best, log(sum) + logits[best] - logits[label]};
}

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

static bool is_text(const struct answers *answers) { return answers->info.feed == GRAPHI_MODEL_TEXT; }

graphi_status answers_begin(const struct options *options, int64_t rows, const graphi_model_info *info,
                            struct answers *answers)
{
    *answers = (struct answers){.info = *info};
    const bool text = is_text(answers);
    const struct {
        const char *name, *type;
        int64_t columns; /* 0: one dimension */
    } files[ANSWERS] = {[VALUES] = {text ? "losses" : "logits", "<f4", text ? info->batch : info->classes},
                        [PREDICTIONS] = {"predictions", "<i4", text ? info->batch : 0},
                        [LABELS] = {"labels", "<i4", text ? info->batch : 0}};
    for (int i = 0; i < ANSWERS; i++) {
        struct output *output = &answers->output[i];
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

graphi_status answers_add(struct answers *answers, const float *logits, const int32_t *targets, int64_t samples)
{
    const graphi_model_info *s = &answers->info;
    const bool text = is_text(answers);
    const int64_t columns = text ? s->vocabulary : s->classes, rows = text ? s->steps * s->batch : samples;
    bool written[ANSWERS] = {true, true, true};
    for (int64_t r = 0; r < rows; r++) { /* logits of a text are time-major, its targets are not */
        const float *row = logits + r * columns;
        const int32_t label = targets[text ? r % s->batch * s->steps + r / s->batch : r];
        const struct verdict verdict = answers_judge(row, columns, label);
        const float loss = (float)verdict.loss;
        const struct {
            const void *data;
            size_t bytes;
        } cells[ANSWERS] = {[VALUES] = {text ? &loss : row, (text ? 1 : (size_t)columns) * sizeof *row},
                            [PREDICTIONS] = {&verdict.best, sizeof verdict.best},
                            [LABELS] = {&label, sizeof label}};
        for (int i = 0; i < ANSWERS; i++)
            written[i] = written[i] && fwrite(cells[i].data, cells[i].bytes, 1, answers->output[i].file) == 1;
    }
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < ANSWERS && status == GRAPHI_OK; i++)
        status = put(&answers->output[i], written[i]);
    return status;
}

graphi_status answers_end(struct answers *answers, bool good, struct result *result)
{
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < ANSWERS && good && status == GRAPHI_OK; i++) /* a full disk shows before any takes its place */
        if (answers->output[i].file)
            status = put(&answers->output[i], fflush(answers->output[i].file) == 0);
    for (int i = 0; i < ANSWERS; i++) {
        struct output *output = &answers->output[i];
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
