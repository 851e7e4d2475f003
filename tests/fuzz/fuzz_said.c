/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of a checkpoint. Lines of the input are KEY=VALUE; what they say completes the options of a network. */
#include "fuzz.h"

#include "cli/said.h"
#include "tool/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct command commands[] = {{0}}; /* that options belong to: none is typed here */

static FILE *nowhere;

/* What is refused is told on standard error, once for every input; the descriptor stays that of a sanitizer. */
static void once(void)
{
    nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        abort();
    stderr = nowhere;
}

static void read_lines(char *text, struct said *said)
{
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *value = strchr(line, '=');
        if (value)
            *value++ = 0;
        said_add(said, line, value ? value : "");
    }
}

/* Numbers that are taken are counts; words are of the lists that the options have. */
static void check(const struct options *o)
{
    if (o->units < 0 || o->unroll < 0 || o->image < 0 || o->batch < 0 || o->classes < 0 || o->vocabulary < 0)
        abort();
    if (strcmp(o->task, "real") != 0 && strcmp(o->task, "bench") != 0)
        abort();
    if (o->level && strcmp(o->level, "word") != 0 && strcmp(o->level, "character") != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const networks[] = {"lstm", "phased-lstm", "pathnet", "googlenet", "resnet20"};
    struct said said = {.found = 0};
    char *text = malloc(size + 1);
    if (!nowhere)
        once();
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    read_lines(text, &said);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        struct options options = {.vocabulary = i == 0 ? 0 : 5};
        if (said_complete("fuzz", &said, networks[i], &options) == GRAPHI_OK)
            check(&options);
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
