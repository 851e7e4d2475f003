/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the training files: samples, held out ones, and the numbers of words and labels. Words and names of labels
 * that only held out samples have are unknown, as those of other files are. Usual size: 8,500 trees, 18,000 words. */
#include "dynamic/treebank.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/corpus.h"
#include "train/word_list_reader.h"

#include <string.h>

static const int64_t batch_usual = 25;

static graphi_status check_options(graphi_trees_options *o)
{
    const struct {
        const char *name;
        int64_t value, most;
    } bounds[] = {{"batch", o->batch, 1 << 20},
                  {"classes", o->classes, FOREST_LABELS_MOST},
                  {"vocabulary", o->vocabulary, 1 << 30},
                  {"steps", o->steps, 1 << 20}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].value < 0 || bounds[i].value > bounds[i].most)
            return fail(GRAPHI_INVALID, "input graphs", "found %s %lld, expected 0 to %lld", bounds[i].name,
                        (long long)bounds[i].value, (long long)bounds[i].most);
    if (!(o->validation < 1))
        return fail(GRAPHI_INVALID, "input graphs", "found a validation fraction of %g, expected less than 1",
                    o->validation);
    if ((unsigned)o->split > GRAPHI_TEST)
        return fail(GRAPHI_INVALID, "input graphs", "found split %d, expected one of graphi_data_split", (int)o->split);
    o->batch = o->batch ? o->batch : batch_usual;
    o->validation = o->validation == 0 ? 0.1 : o->validation < 0 ? 0 : o->validation;
    return GRAPHI_OK;
}

/* --- held out samples --- */

/* Drawn by a key that no option changes: training and evaluation with other seeds agree on them. */
static graphi_status hold_out(struct treebank *b)
{
    const int64_t samples = forest_samples(&b->train);
    uint32_t *order = mem_zalloc_array((size_t)samples, sizeof *order);
    uint8_t *held = mem_zalloc((size_t)samples);
    b->chosen = mem_zalloc_array((size_t)samples, sizeof *b->chosen);
    const bool fits = order && held && b->chosen;
    if (!*b->files.path[GRAPHI_VALIDATION])
        b->held = (int64_t)(b->options.validation * (double)samples + 0.5);
    b->held = b->held < samples ? b->held : samples - 1;
    if (fits) {
        permute(order, samples, 0x76616c6964617465, 0);
        for (int64_t i = 0; i < b->held; i++)
            held[order[i]] = 1;
        int64_t kept = 0, out = samples - b->held;
        for (int64_t i = 0; i < samples; i++)
            b->chosen[held[i] ? out++ : kept++] = (uint32_t)i;
    }
    mem_free(order);
    mem_free(held);
    return fits ? GRAPHI_OK : fail_memory("held out samples", (size_t)samples * sizeof *order);
}

/* --- numbers of words and labels --- */

/* How often each of `ids` (of vertices) occurs in the samples that are trained on. */
static graphi_status count(const struct treebank *b, const int32_t *ids, size_t words, uint32_t **counts)
{
    const int64_t *start = b->train.sample_start.data, kept = forest_samples(&b->train) - b->held;
    *counts = mem_zalloc_array(words + 1, sizeof **counts);
    if (!*counts)
        return fail_memory("words", words * sizeof **counts);
    for (int64_t i = 0; i < kept; i++)
        for (int64_t v = start[b->chosen[i]]; v < start[b->chosen[i] + 1]; v++)
            if (ids[v] >= 0)
                (*counts)[ids[v]]++;
    return GRAPHI_OK;
}

/* The words that occur, by frequency. */
static graphi_status order_words(const struct vocabulary *from, const uint32_t *counts, int64_t limit, bool unknown,
                                 struct vocabulary *to)
{
    vocabulary_begin(false, to);
    for (size_t i = 0; i < from->count; i++)
        if (counts[i] && !vocabulary_add(to, from->words[i].text, from->words[i].length, counts[i]))
            return fail_memory("words", to->count * sizeof *to->words);
    return vocabulary_order(to, limit, unknown);
}

static graphi_status number_words(struct treebank *b)
{
    const struct forest *f = &b->train;
    uint32_t *counts = NULL;
    if (b->options.words)
        return word_list_read(b->options.words, false, &b->words);
    vocabulary_begin(false, &b->words);
    if (!f->words.count)
        return GRAPHI_OK;
    graphi_status status = count(b, f->word.data, f->words.count, &counts);
    if (status == GRAPHI_OK)
        status = order_words(&f->words, counts, b->options.vocabulary, true, &b->words);
    mem_free(counts);
    return status;
}

static graphi_status number_labels(struct treebank *b)
{
    const struct forest *f = &b->train;
    uint32_t *counts = NULL;
    vocabulary_begin(false, &b->labels);
    if (f->kind == LABELS_NAMES) {
        graphi_status status = count(b, f->label.data, f->names.count, &counts);
        if (status == GRAPHI_OK)
            status = order_words(&f->names, counts, 0, false, &b->labels);
        mem_free(counts);
        TRY(status);
    }
    b->classes = f->kind == LABELS_NAMES     ? (int64_t)b->labels.count
                 : f->kind == LABELS_WORDS   ? (int64_t)b->words.count
                 : f->kind == LABELS_NUMBERS ? (b->options.classes ? b->options.classes : f->label_end)
                                             : 0;
    return b->classes <= FOREST_LABELS_MOST
               ? GRAPHI_OK
               : fail(GRAPHI_INVALID, b->files.path[GRAPHI_TRAIN], "found %lld classes, expected at most %d",
                      (long long)b->classes, FOREST_LABELS_MOST);
}

/* From the numbers of appearance to ours; what is not there becomes `otherwise`. */
static int32_t *translate(const struct vocabulary *from, const struct vocabulary *to, int32_t otherwise)
{
    int32_t *ids = mem_zalloc_array(from->count + 1, sizeof *ids);
    for (size_t i = 0; ids && i < from->count; i++) {
        const int32_t id = vocabulary_find(to, from->words[i].text, from->words[i].length);
        ids[i] = id >= 0 ? id : otherwise;
    }
    return ids;
}

static graphi_status encode(const struct treebank *b, struct forest *f)
{
    int32_t *words = translate(&f->words, &b->words, b->words.count ? b->words.unknown : -1);
    int32_t *names = translate(&f->names, &b->labels, -1);
    const bool fits = words && names;
    const size_t bytes = (f->words.count + f->names.count) * sizeof *words;
    if (fits)
        forest_encode(f, words, names);
    for (size_t v = 0; v < f->label.count; v++)
        if (f->label.data[v] >= b->classes) /* of files for training without labels */
            f->label.data[v] = -1;
    mem_free(words);
    mem_free(names);
    return fits ? GRAPHI_OK : fail_memory("words", bytes);
}

static uint64_t hash_words(uint64_t hash, const struct vocabulary *v)
{
    for (size_t i = 0; i < v->count; i++)
        hash = hash_bytes(hash, v->words[i].text, v->words[i].length + 1);
    return hash_u64(hash, v->count);
}

static graphi_status read_training(struct treebank *b)
{
    b->train.classes = b->options.classes;
    TRY(tree_files_read(&b->files, GRAPHI_TRAIN, &b->options, &b->train));
    TRY(hold_out(b));
    TRY(number_words(b));
    TRY(number_labels(b));
    TRY(encode(b, &b->train));
    b->options.words = NULL; /* the caller's */
    b->encoding = hash_u64(hash_words(hash_words(HASH_START, &b->words), &b->labels), (uint64_t)b->classes);
    return GRAPHI_OK;
}

graphi_status treebank_open(const char *path, const graphi_trees_options *options, struct treebank **out)
{
    graphi_trees_options checked = options ? *options : (graphi_trees_options){0};
    TRY(check_options(&checked));
    struct treebank *b = mem_zalloc(sizeof *b);
    if (!b)
        return fail_memory("input graphs", sizeof *b);
    atomic_init(&b->users, 1);
    b->options = checked;
    graphi_status status = tree_files_find(path, checked.format, &b->files);
    if (status == GRAPHI_OK)
        status = read_training(b);
    if (status == GRAPHI_OK)
        *out = b;
    else
        treebank_release(b);
    return status;
}

graphi_status treebank_read(const struct treebank *b, graphi_data_split split, struct forest *forest)
{
    forest->kind = b->train.kind;
    forest->classes = b->train.kind == LABELS_NUMBERS ? b->classes : 0;
    TRY(tree_files_read(&b->files, split, &b->options, forest));
    return encode(b, forest);
}

void treebank_release(struct treebank *b)
{
    /* acq_rel: the last user sees the others' reads done before it frees */
    if (!b || atomic_fetch_sub_explicit(&b->users, 1, memory_order_acq_rel) > 1)
        return;
    forest_free(&b->train);
    vocabulary_free(&b->words);
    vocabulary_free(&b->labels);
    mem_free(b->chosen);
    mem_free(b);
}
