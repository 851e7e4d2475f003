/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the training files. Usual size: 60,000 images in 47 MB, or a million words. */
#include "train/corpus.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "train/names.h"
#include "train/word_list_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
    int64_t most;
} bounds[] = {
    {"batch", offsetof(graphi_data_options, batch), 1 << 20},
    {"height", offsetof(graphi_data_options, height), IMAGE_SIDE_MOST},
    {"width", offsetof(graphi_data_options, width), IMAGE_SIDE_MOST},
    {"channels", offsetof(graphi_data_options, channels), GRAPHI_DATA_CHANNELS},
    {"crop", offsetof(graphi_data_options, crop), GRAPHI_DATA_AUGMENT},
    {"pad", offsetof(graphi_data_options, pad), GRAPHI_DATA_AUGMENT},
    {"classes", offsetof(graphi_data_options, classes), IMAGE_CLASSES_MOST},
    {"steps", offsetof(graphi_data_options, steps), 1 << 20},
    {"vocabulary", offsetof(graphi_data_options, vocabulary), 1 << 30},
};

static graphi_status check_options(graphi_data_options *o)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        int64_t value;
        memcpy(&value, (const char *)o + bounds[i].offset, sizeof value);
        if (value < 0 || value > bounds[i].most)
            return fail(GRAPHI_INVALID, "data options", "found %s %lld, expected 0 to %lld", bounds[i].name,
                        (long long)value, (long long)bounds[i].most);
    }
    if (!(o->validation < 1))
        return fail(GRAPHI_INVALID, "data options", "found a validation fraction of %g, expected less than 1",
                    o->validation);
    if (o->raw && o->bytes)
        return fail(GRAPHI_INVALID, "data options", "found raw and bytes, expected one of the two");
    if ((unsigned)o->split > GRAPHI_TEST)
        return fail(GRAPHI_INVALID, "data options", "found split %d, expected one of graphi_data_split", (int)o->split);
    o->batch = o->batch ? o->batch : 32;
    o->steps = o->steps ? o->steps : 20;
    o->validation = o->validation == 0 ? 0.1 : o->validation < 0 ? 0 : o->validation;
    return GRAPHI_OK;
}

void permute(uint32_t *order, int64_t count, uint64_t key, uint64_t epoch)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    struct random4 random = {{0}};
    for (int64_t i = count - 1, n = 0; i > 0; i--, n++) { /* four numbers a call; the bias is at most count / 2^32 */
        if (n % 4 == 0)
            random = random_philox(key, epoch, (uint64_t)n / 4);
        int64_t j = (int64_t)((uint64_t)random.v[n % 4] * (uint64_t)(i + 1) >> 32);
        uint32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* How many are held out; one at least is not. */
static int64_t held_of(const struct corpus *c, int64_t samples)
{
    const int64_t held = (int64_t)(c->options.validation * (double)samples + 0.5);
    return held < samples ? held : samples - 1;
}

/* Files are often sorted by class, so the held-out samples are drawn, by a key that no option changes: training and
 * evaluation with other seeds agree on them. */
static graphi_status hold_out(struct corpus *c)
{
    c->chosen = mem_zalloc_array((size_t)c->samples, sizeof *c->chosen);
    uint32_t *order = mem_zalloc_array((size_t)c->samples, sizeof *order);
    uint8_t *held = mem_zalloc((size_t)c->samples);
    bool fits = c->chosen && order && held;
    if (fits) {
        permute(order, c->samples, 0x76616c6964617465, 0);
        for (int64_t i = 0; i < c->held; i++)
            held[order[i]] = 1;
        int64_t kept = 0, out = c->samples - c->held;
        for (int64_t i = 0; i < c->samples; i++)
            c->chosen[held[i] ? out++ : kept++] = (uint32_t)i;
    }
    mem_free(order);
    mem_free(held);
    return fits ? GRAPHI_OK : fail_memory("validation split", (size_t)c->samples * sizeof *order);
}

/* Mean and deviation of one channel. Bytes are counted, so that the result does not depend on the order; numbers are
 * summed in double, first the mean, then the squares around it. */
static void measure_bytes(const struct corpus *c, int64_t channel, double *mean, double *variance)
{
    const struct image_set *set = &c->train;
    int64_t count[256] = {0}, pixels = set->height * set->width, samples = c->samples - c->held;
    for (int64_t s = 0; s < samples; s++) {
        const uint8_t *at = set->bytes + c->chosen[s] * image_elements(set) + channel;
        for (int64_t p = 0; p < pixels; p++)
            count[at[p * set->channels]]++;
    }
    double total = (double)samples * (double)pixels, sum = 0, squares = 0;
    for (int v = 0; v < 256; v++)
        sum += (double)count[v] * v / 255;
    *mean = sum / total;
    for (int v = 0; v < 256; v++)
        squares += (double)count[v] * (v / 255.0 - *mean) * (v / 255.0 - *mean);
    *variance = squares / total;
}

static double sum_floats(const struct corpus *c, int64_t channel, double around, bool squares)
{
    const struct image_set *set = &c->train;
    int64_t pixels = set->height * set->width;
    double sum = 0;
    for (int64_t s = 0; s < c->samples - c->held; s++) {
        const float *at = set->floats + c->chosen[s] * image_elements(set) + channel;
        for (int64_t p = 0; p < pixels; p++) {
            double value = (double)at[p * set->channels] - around;
            sum += squares ? value * value : value;
        }
    }
    return sum / ((double)(c->samples - c->held) * (double)pixels);
}

static void normalise(struct corpus *c)
{
    for (int64_t channel = 0; channel < c->train.channels; channel++) {
        double mean = 0, variance = 1;
        if (!c->options.raw && c->train.bytes) {
            measure_bytes(c, channel, &mean, &variance);
        } else if (!c->options.raw) {
            mean = sum_floats(c, channel, 0, false);
            variance = sum_floats(c, channel, mean, true);
        }
        c->mean[channel] = (float)mean;
        c->std[channel] = variance > 0 ? (float)sqrt(variance) : 1; /* a channel of one value becomes 0 */
        if (c->options.bytes)
            c->std[channel] = 1.0f / 255;
    }
}

static graphi_status count_labels(struct corpus *c)
{
    uint8_t *seen = mem_zalloc((size_t)c->train.classes);
    if (!seen)
        return fail_memory("labels", (size_t)c->train.classes);
    for (int64_t i = 0; i < c->samples; i++) {
        c->labels += !seen[c->train.labels[i]];
        seen[c->train.labels[i]] = 1;
    }
    mem_free(seen);
    return GRAPHI_OK;
}

static graphi_status open_images(struct corpus *c)
{
    bool found;
    TRY(source_images(&c->source, GRAPHI_TRAIN, c->options.classes, &c->train, &found));
    if (!found)
        return fail(GRAPHI_IO, c->source.path,
                    "found no training images, expected train-images-idx3-ubyte[.gz], images.npy or *.bin");
    c->samples = c->train.count;
    c->classes = c->options.classes ? c->options.classes : c->train.classes;
    TRY(count_labels(c));
    if (!source_has_validation(&c->source))
        c->held = held_of(c, c->samples);
    TRY(hold_out(c));
    normalise(c);
    return GRAPHI_OK;
}

/* Words that are held out alone are <unk>, as those of files of their own are. */
static graphi_status open_text(struct corpus *c)
{
    char name[PATH_BYTES];
    void *bytes;
    size_t size;
    bool found;
    TRY(source_text(&c->source, GRAPHI_TRAIN, name, &bytes, &size, &found));
    if (!found)
        return fail(GRAPHI_IO, c->source.path, "found no training text, expected some");
    const graphi_data_options *o = &c->options;
    const int64_t tokens = tokens_count(bytes, size, o->characters);
    if (tokens && !source_has_validation(&c->source))
        c->held = held_of(c, tokens);
    graphi_status status = o->words ? word_list_read(o->words, o->characters, &c->vocabulary)
                                    : vocabulary_build(name, bytes, size, o->characters, tokens - c->held,
                                                       o->vocabulary, &c->vocabulary);
    if (status == GRAPHI_OK)
        status = vocabulary_encode(&c->vocabulary, name, bytes, size, &c->tokens, &c->samples);
    mem_free(bytes);
    TRY(status);
    c->options.words = NULL; /* the caller's */
    c->classes = c->labels = (int64_t)c->vocabulary.count;
    return GRAPHI_OK;
}

graphi_status corpus_open(const char *path, const graphi_data_options *options, struct corpus **out)
{
    graphi_data_options checked = options ? *options : (graphi_data_options){0};
    TRY(check_options(&checked));
    struct corpus *c = mem_zalloc(sizeof *c);
    if (!c)
        return fail_memory(path, sizeof *c);
    atomic_init(&c->users, 1);
    c->options = checked;
    graphi_status status = source_find(path, checked.format, &c->source);
    if (status == GRAPHI_OK)
        status = c->source.format == GRAPHI_DATA_TEXT ? open_text(c) : open_images(c);
    if (status == GRAPHI_OK) {
        names_note(&c->source, c->note, sizeof c->note);
        *out = c;
    } else {
        corpus_release(c);
    }
    return status;
}

void corpus_release(struct corpus *corpus)
{
    /* acq_rel: the last user sees the others' reads done before it frees */
    if (!corpus || atomic_fetch_sub_explicit(&corpus->users, 1, memory_order_acq_rel) > 1)
        return;
    images_free(&corpus->train);
    vocabulary_free(&corpus->vocabulary);
    mem_free(corpus->chosen);
    mem_free(corpus->tokens);
    mem_free(corpus);
}
