/* SPDX-License-Identifier: Apache-2.0 */
/* Input graphs of any bytes. The first byte says which format, whether bad samples are skipped, and how text is cut; of
 * parent pointers the text holds three files, between bytes of 1. */
#include "fuzz.h"

#include "dynamic/format.h"

#include <stdlib.h>
#include <string.h>

/* What holds of every sample that was taken, however it was written. */
static void check(const struct forest *f)
{
    const int64_t samples = forest_samples(f);
    for (int64_t s = 0; s < samples; s++) {
        const int64_t first = f->sample_start.data[s], vertices = f->sample_start.data[s + 1] - first;
        if (vertices < 1 || f->root.data[s] < 0 || f->root.data[s] >= vertices)
            abort();
        for (int64_t e = f->child_start.data[first]; e < f->child_start.data[first + vertices]; e++)
            if (f->children.data[e] < 0 || f->children.data[e] >= vertices)
                abort();
    }
    if (samples &&
        ((size_t)f->sample_start.data[samples] != f->word.count || f->child_start.count != f->word.count + 1 ||
         f->function.count != f->word.count || (size_t)f->child_start.data[f->word.count] != f->children.count ||
         f->rounds_most > (int64_t)f->word.count))
        abort();
    for (size_t v = 0; samples && v < f->word.count; v++)
        if (f->word.data[v] >= (int64_t)f->words.count)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"tokens", "labels"};
    if (!size)
        return 0;
    const struct tree_format *format = tree_format_at(data[0] % 5);
    const char *text = (const char *)data + 1, *end = (const char *)data + size;
    struct forest forest = {.classes = data[0] >> 4 & 3};
    struct reading reading = {.forest = &forest, .steps = data[0] >> 6};
    const char *part[3] = {text, NULL, NULL}, *cut = text;
    size_t length[3] = {(size_t)(end - text)};
    for (int i = 1; format == &tree_format_parents && i < 3 && (cut = memchr(cut, 1, (size_t)(end - cut))); i++) {
        length[i - 1] = (size_t)(cut - part[i - 1]);
        part[i] = ++cut;
        length[i] = (size_t)(end - cut);
    }
    reading.at = cursor_begin("fuzz", part[0], length[0]);
    for (int i = 1; i < 3; i++)
        if (part[i])
            reading.beside[i - 1] = cursor_begin(names[i - 1], part[i], length[i]);
    const graphi_status status = tree_format_read(format, &reading, data[0] & 8);
    if (status != GRAPHI_OK && status != GRAPHI_INVALID)
        abort();
    if (status == GRAPHI_OK)
        check(&forest);
    forest_free(&forest);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const char *const texts[] = {
        "\x05(3 (2 It) (4 works))\n(1 (0 8\xc2\xa0half)\n  (2 (2 It)) )\n( (S a))\n",
        "\x0a(3 (2 It) (4 works)\n(1 b)\n(2 (2 c)\n(3 d)",
        "\x0b\x34 4 5 5 0\n0\n3|3|0\n\1a b c\nx\nthe|dog\n\0010 1 0 # 2\n1\n0|1|2\n",
        "\x0c# text\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t1\tobj\t_\t_\n"
        "2.1\tc\t_\t_\t_\t_\t_\t_\t_\t_\n\n1\tno\t_\t_\t_\t_\t2\tobj\t_\t_\n2\tsi\t_\t_\t_\t_\t0\troot\t_\t_\n",
        "\x0dt # 0\nv 0 2 a\nv 1 1 _ 3\nv 2 0\ne 0 1\ne 1 2\ne 0 2\n\n1 0\n2 0\n2 1\n# end\nt # -1\n",
        "\x0ethe cat sat\n\nthe dog\n",
        "\x4fthe cat sat\n\nthe dog ran away\n"};
    if (which >= sizeof texts / sizeof *texts)
        return 0;
    const size_t length = strlen(texts[which]);
    memcpy(out, texts[which], length);
    return length;
}
