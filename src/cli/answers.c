/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into .npy files. Headers are written first: how many rows there will be is known. */
#include "cli/answers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/report.h"

enum { LOGITS, PREDICTIONS, LABELS };

static const struct {
    const char *name, *type;
    bool wide; /* a column a class */
} files[ANSWERS] = {[LOGITS] = {"logits", "<f4", true},
                    [PREDICTIONS] = {"predictions", "<i4", false},
                    [LABELS] = {"labels", "<i4", false}};

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

graphi_status answers_begin(const char *folder, int64_t samples, const graphi_model_info *info,
                            struct answers *answers)
{
    *answers = (struct answers){.columns = info->classes};
    for (int i = 0; i < ANSWERS; i++) {
        struct output *output = &answers->output[i];
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.npy", folder, files[i].name);
        graphi_status status = output_begin(output, path);
        if (status == GRAPHI_OK)
            status = put(output, write_header(output->file, files[i].type, samples,
                                              files[i].wide ? answers->columns : 0));
        if (status != GRAPHI_OK)
            return status;
    }
    return GRAPHI_OK;
}

graphi_status answers_add(struct answers *answers, const float *logits, const int32_t *labels, int64_t rows)
{
    const size_t count = (size_t)rows, columns = (size_t)answers->columns;
    bool written = true;
    for (int64_t r = 0; r < rows; r++) {
        const struct verdict verdict = answers_judge(logits + r * answers->columns, answers->columns, labels[r]);
        written = written && fwrite(&verdict.best, sizeof verdict.best, 1, answers->output[PREDICTIONS].file) == 1;
    }
    graphi_status status = put(&answers->output[PREDICTIONS], written);
    if (status == GRAPHI_OK)
        status = put(&answers->output[LOGITS],
                     fwrite(logits, columns * sizeof *logits, count, answers->output[LOGITS].file) == count);
    if (status == GRAPHI_OK)
        status = put(&answers->output[LABELS],
                     fwrite(labels, sizeof *labels, count, answers->output[LABELS].file) == count);
    return status;
}

graphi_status answers_end(struct answers *answers, bool good, struct result *result)
{
    graphi_status status = GRAPHI_OK;
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
