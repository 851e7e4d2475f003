/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a checkpoint. Lines of the input are KEY=VALUE; what they say completes the options of a network. */
#include "fuzz.h"

#include "train/record_check.h"

#include <stdlib.h>
#include <string.h>

static void read_lines(char *text, struct record *record)
{
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *value = strchr(line, '=');
        if (value)
            *value++ = 0;
        record_add(record, line, value ? value : "");
    }
}

/* Numbers that are taken are counts; words are of the lists that a network has. */
static void check(const graphi_form *form)
{
    const graphi_model_options *m = &form->model;
    if (m->units < 0 || m->steps < 0 || m->image < 0 || m->batch < 0 || m->classes < 0 || form->vocabulary < 0)
        abort();
    if (strcmp(m->task, "real") != 0 && strcmp(m->task, "bench") != 0)
        abort();
    if (form->level && strcmp(form->level, "word") != 0 && strcmp(form->level, "character") != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const networks[] = {"lstm", "phased-lstm", "pathnet", "googlenet", "resnet20"};
    struct record record = record_none();
    char *text = malloc(size + 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    read_lines(text, &record);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        graphi_form form = {.vocabulary = i == 0 ? 0 : 5};
        if (record_complete("fuzz", &record, networks[i], &form) == GRAPHI_OK)
            check(&form);
    }
    free(text);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const char *const texts[] = {
        "network=lstm --merged\nnetwork.trained=--task real\nnetwork.text=--size small --unroll 20\n"
        "network.size=small\nnetwork.units=128\nnetwork.vocabulary=9\n"
        "data.level=word\ndata.limit=5\ndata.batch=8\ndata.epoch=1\n"
        "data.index=2\ndata.seed=3\ndata.hash=00ff\ndata.encoding=ff00\ntrain.loss=0x1p+0 0x0p+0 0x0p+0",
        "network=googlenet --lrn --batch-norm\nnetwork.trained=--task bench --image 32 --auxiliary\nnetwork.units=1\n"
        "network.classes=10\ndata.batch=-4\ntrain.owes=validation\n",
    };
    if (which > 1)
        return 0;
    const size_t length = strlen(texts[which]);
    memcpy(out, texts[which], length < size ? length : size);
    return length < size ? length : size;
}
