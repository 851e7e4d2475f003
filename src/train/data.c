/* SPDX-License-Identifier: Apache-2.0 */
/* One split of a data set: its order, and the making of batches. Everything is allocated when it is opened, so that a
 * training step allocates nothing. Used by one thread at a time; what splits share (struct corpus) never changes. Usual
 * size: 60,000 samples, batches of 64; text: 20 rows of 46,000 tokens. */
#include "graphi/data.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/augment.h"
#include "train/corpus.h"
#include "train/data.h"
#include "train/resample.h"

#include <stdio.h>
#include <string.h>

struct graphi_data {
    struct corpus *corpus;
    graphi_data_info info;
    graphi_data_position position;
    /* images */
    const struct image_set *set;
    struct image_set own;   /* the files of this split, if not the training ones */
    const uint32_t *chosen; /* the samples of this split within the set; NULL: all */
    uint32_t *order;        /* of the training samples in `order_epoch`; NULL: as they are */
    int64_t order_epoch;
    struct resampler resampler;
    struct augmentation augmentation;
    float *values;  /* [channels, 256]: what a byte stands for */
    float *stored;  /* one image as stored, normalised */
    float *scaled;  /* one image scaled, or the cache [samples, height, width, stored channels] */
    uint8_t *known; /* of the cache: the sample is there; NULL: no cache */
    /* text */
    const int32_t *tokens;
    int32_t *own_tokens;
};

/* --- opening --- */

static graphi_status no_split(const struct corpus *c, graphi_data_split split)
{
    if (split == GRAPHI_VALIDATION)
        return fail(GRAPHI_UNSUPPORTED, c->source.path,
                    "found no validation files and nothing held out of %lld training samples, "
                    "expected a validation fraction above 0",
                    (long long)c->samples);
    return fail(GRAPHI_UNSUPPORTED, c->source.path, "found no test files, expected %s",
                c->source.format == GRAPHI_DATA_TEXT ? "a folder with train.txt and test.txt"
                                                     : "t10k-*, test*.bin or test_images.npy");
}

static bool is_text(const graphi_data *d) { return d->info.format == GRAPHI_DATA_TEXT; }

/* Which samples the split has. */
static graphi_status choose_images(graphi_data *d, graphi_data_split split)
{
    struct corpus *c = d->corpus;
    int64_t kept = c->samples - c->held;
    d->set = &c->train;
    if (split == GRAPHI_TRAIN) {
        d->chosen = c->chosen;
        d->info.samples = kept;
        return GRAPHI_OK;
    }
    if (split == GRAPHI_VALIDATION && c->held) {
        d->chosen = c->chosen + kept;
        d->info.samples = c->held;
        return GRAPHI_OK;
    }
    bool found;
    TRY(source_images(&c->source, split, c->classes, &d->own, &found));
    if (!found)
        return no_split(c, split);
    if (d->own.channels != c->train.channels)
        return fail(GRAPHI_INVALID, c->source.path,
                    "found %lld channels in the %s images, expected %lld as in the training images",
                    (long long)d->own.channels, split == GRAPHI_TEST ? "test" : "validation",
                    (long long)c->train.channels);
    d->set = &d->own;
    d->info.samples = d->own.count;
    return GRAPHI_OK;
}

static void fill_values(graphi_data *d)
{
    for (int64_t c = 0; c < d->set->channels; c++)
        for (int v = 0; v < 256; v++)
            d->values[c * 256 + v] = ((float)v / 255 - d->corpus->mean[c]) / d->corpus->std[c];
}

/* The buffers of the images. */
static graphi_status make_buffers(graphi_data *d)
{
    const struct image_set *set = d->set;
    const graphi_data_options *o = &d->corpus->options;
    const int64_t height = d->info.height + o->crop, width = d->info.width + o->crop;
    TRY(resampler_init(&d->resampler, set->height, set->width, height, width));
    uint64_t image = (uint64_t)(height * width * set->channels) * sizeof(float);
    bool cache = d->resampler.rows && o->cache_bytes / image >= (uint64_t)d->info.samples;
    bool shuffle = d->info.split == GRAPHI_TRAIN && !o->ordered;
    size_t samples = (size_t)d->info.samples;
    d->values = mem_zalloc_array((size_t)set->channels * 256, sizeof *d->values);
    d->stored = mem_zalloc_array((size_t)image_elements(set), sizeof *d->stored);
    d->scaled = mem_alloc((size_t)image * (cache ? samples : 1)); /* a cache is touched as it fills */
    d->known = cache ? mem_zalloc(samples) : NULL;
    d->order = shuffle ? mem_zalloc_array(samples, sizeof *d->order) : NULL;
    d->order_epoch = -1;
    if (!d->values || !d->stored || !d->scaled || (cache && !d->known) || (shuffle && !d->order))
        return fail_memory("image batches", (size_t)image * (cache ? samples : 1));
    fill_values(d);
    d->augmentation = (struct augmentation){.height = d->info.height,
                                            .width = d->info.width,
                                            .stored = set->channels,
                                            .channels = d->info.channels,
                                            .crop = o->crop,
                                            .pad = o->pad,
                                            .flip = o->flip,
                                            .random = d->info.split == GRAPHI_TRAIN && !o->ordered,
                                            .seed = o->seed};
    return GRAPHI_OK;
}

static uint64_t encoding_of_images(const graphi_data *d)
{
    const size_t bytes = (size_t)d->set->channels * sizeof *d->corpus->mean;
    return hash_bytes(hash_bytes(HASH_START, d->corpus->mean, bytes), d->corpus->std, bytes);
}

/* Eight bytes at a time: a data set may have gigabytes. */
static uint64_t hash_pixels(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    const size_t words = size / sizeof hash;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        hash = hash_u64(hash, word);
    }
    return hash_bytes(hash, bytes + words * sizeof hash, size % sizeof hash);
}

static uint64_t hash_images(const graphi_data *d)
{
    const struct image_set *set = d->set;
    uint64_t hash = HASH_START;
    const int64_t sizes[] = {set->count,    d->info.samples,  d->info.height,
                             d->info.width, d->info.channels, d->info.classes};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        hash = hash_u64(hash, (uint64_t)sizes[i]);
    hash = hash_bytes(hash, d->corpus->mean, (size_t)set->channels * sizeof *d->corpus->mean);
    hash = hash_bytes(hash, d->corpus->std, (size_t)set->channels * sizeof *d->corpus->std);
    for (int64_t i = 0; i < set->count; i++)
        hash = hash_u64(hash, (uint64_t)set->labels[i]);
    const size_t elements = (size_t)(set->count * image_elements(set));
    return set->bytes ? hash_pixels(hash, set->bytes, elements)
                      : hash_pixels(hash, set->floats, elements * sizeof *set->floats);
}

static graphi_status open_images(graphi_data *d)
{
    const struct corpus *c = d->corpus;
    const graphi_data_options *o = &c->options;
    TRY(choose_images(d, d->info.split));
    d->info.height = o->height ? o->height : c->train.height;
    d->info.width = o->width ? o->width : c->train.width;
    d->info.channels = o->channels ? o->channels : c->train.channels;
    if (d->info.channels != c->train.channels && c->train.channels != 1)
        return fail(GRAPHI_INVALID, c->source.path,
                    "found images of %lld channels, expected %lld, or one that is repeated",
                    (long long)c->train.channels, (long long)d->info.channels);
    memcpy(d->info.mean, c->mean, sizeof c->mean);
    memcpy(d->info.std, c->std, sizeof c->std);
    bool train = d->info.split == GRAPHI_TRAIN;
    if (train && d->info.samples < d->info.batch)
        return fail(GRAPHI_INVALID, c->source.path, "found %lld training samples, expected at least a batch of %lld",
                    (long long)d->info.samples, (long long)d->info.batch);
    d->info.batches = (d->info.samples + (train ? 0 : d->info.batch - 1)) / d->info.batch;
    TRY(make_buffers(d));
    d->info.hash = hash_images(d);
    d->info.encoding = encoding_of_images(d);
    return GRAPHI_OK;
}

/* `where` gets the name of the file. */
static graphi_status choose_tokens(graphi_data *d, graphi_data_split split, char *where)
{
    struct corpus *c = d->corpus;
    int64_t kept = c->samples - c->held;
    strcpy(where, c->source.path);
    if (split == GRAPHI_TRAIN || (split == GRAPHI_VALIDATION && c->held)) {
        d->tokens = c->tokens + (split == GRAPHI_TRAIN ? 0 : kept);
        d->info.samples = split == GRAPHI_TRAIN ? kept : c->held;
        return GRAPHI_OK;
    }
    void *bytes;
    size_t size;
    bool found;
    TRY(source_text(&c->source, split, where, &bytes, &size, &found));
    if (!found)
        return no_split(c, split);
    graphi_status status = vocabulary_encode(&c->vocabulary, where, bytes, size, &d->own_tokens, &d->info.samples);
    mem_free(bytes);
    d->tokens = d->own_tokens;
    return status;
}

static uint64_t encoding_of_text(const graphi_data *d)
{
    const struct vocabulary *v = &d->corpus->vocabulary;
    uint64_t hash = hash_u64(HASH_START, v->characters);
    for (size_t i = 0; i < v->count; i++)
        hash = hash_bytes(hash, v->words[i].text, v->words[i].length + 1);
    return hash;
}

static uint64_t hash_text(const graphi_data *d)
{
    uint64_t hash = d->info.encoding;
    for (int64_t i = 0; i < d->info.samples; i++)
        hash = hash_u64(hash, (uint64_t)d->tokens[i]);
    return hash;
}

static graphi_status open_text(graphi_data *d)
{
    char where[PATH_BYTES];
    TRY(choose_tokens(d, d->info.split, where));
    d->info.steps = d->corpus->options.steps;
    d->info.batches = (d->info.samples / d->info.batch - 1) / d->info.steps;
    bool held = d->info.split == GRAPHI_VALIDATION && d->tokens != d->own_tokens;
    char beside[64] = "";
    if (d->info.split == GRAPHI_TRAIN && d->corpus->held)
        snprintf(beside, sizeof beside, ", and %lld more held out for validation", (long long)d->corpus->held);
    if (d->info.samples < d->info.batch || d->info.batches < 1)
        return fail(held ? GRAPHI_UNSUPPORTED : GRAPHI_INVALID, where,
                    "found %lld tokens%s, expected at least %lld: %lld rows of %lld steps and "
                    "the token after them",
                    (long long)d->info.samples, held ? " held out for validation" : beside,
                    (long long)(d->info.batch * (d->info.steps + 1)),
                    (long long)d->info.batch, (long long)d->info.steps);
    d->info.encoding = encoding_of_text(d);
    for (int64_t i = 0; i < d->info.samples; i++)
        d->info.unknown += d->tokens[i] == d->corpus->vocabulary.unknown;
    d->info.hash = hash_text(d);
    return GRAPHI_OK;
}

/* Takes over one user of the corpus, also when it fails. */
static graphi_status open_view(struct corpus *corpus, graphi_data_split split, int64_t batch, graphi_data **out)
{
    graphi_data *d = mem_zalloc(sizeof *d);
    if (!d) {
        corpus_release(corpus);
        return fail_memory("data set", sizeof *d);
    }
    d->corpus = corpus;
    d->info =
        (graphi_data_info){.format = corpus->source.format, .split = split, .batch = batch, .classes = corpus->classes,
                           .labels = corpus->labels, .note = *corpus->note ? corpus->note : NULL};
    graphi_status status = is_text(d) ? open_text(d) : open_images(d);
    if (status == GRAPHI_OK)
        *out = d;
    else
        graphi_data_close(d);
    return status;
}

graphi_status graphi_data_open(const char *path, const graphi_data_options *options, graphi_data **out)
{
    GIVEN(out);
    struct corpus *corpus;
    TRY(corpus_open(path, options, &corpus));
    return open_view(corpus, corpus->options.split, corpus->options.batch, out);
}

graphi_status graphi_data_open_split(const graphi_data *data, graphi_data_split split, int64_t batch, graphi_data **out)
{
    GIVEN(data);
    GIVEN(out);
    if ((unsigned)split > GRAPHI_TEST || batch < 0 || batch > 1 << 20)
        return fail(GRAPHI_INVALID, "data split",
                    "found split %d and batch %lld, expected one of graphi_data_split and 0 to %d", (int)split,
                    (long long)batch, 1 << 20);
    atomic_fetch_add_explicit(&data->corpus->users, 1, memory_order_relaxed); /* pairs with corpus_release */
    return open_view(data->corpus, split, batch ? batch : data->info.batch, out);
}

void graphi_data_close(graphi_data *data)
{
    if (!data)
        return;
    corpus_release(data->corpus);
    images_free(&data->own);
    resampler_free(&data->resampler);
    mem_free(data->order);
    mem_free(data->values);
    mem_free(data->stored);
    mem_free(data->scaled);
    mem_free(data->known);
    mem_free(data->own_tokens);
    mem_free(data);
}

/* --- batches --- */

/* Image `index` of the set as stored, normalised, into d->stored. */
static void decode(graphi_data *d, int64_t index)
{
    const struct image_set *set = d->set;
    int64_t channels = set->channels, elements = image_elements(set);
    if (set->bytes) {
        const uint8_t *in = set->bytes + index * elements;
        for (int64_t i = 0; i < elements; i += channels)
            for (int64_t c = 0; c < channels; c++)
                d->stored[i + c] = d->values[c * 256 + in[i + c]];
        return;
    }
    const float *in = set->floats + index * elements;
    for (int64_t i = 0; i < elements; i += channels)
        for (int64_t c = 0; c < channels; c++)
            d->stored[i + c] = (in[i + c] - d->corpus->mean[c]) / d->corpus->std[c];
}

/* Sample `sample` of the split, set's image `index`, scaled: not cut yet, and with the stored channels. */
static const float *scaled_image(graphi_data *d, int64_t sample, int64_t index)
{
    float *to = d->scaled;
    const int64_t crop = d->augmentation.crop;
    if (d->known)
        to += sample * (d->info.height + crop) * (d->info.width + crop) * d->set->channels;
    if (d->known && d->known[sample])
        return to;
    decode(d, index);
    if (!d->resampler.rows)
        return d->stored;
    resample(&d->resampler, d->set->channels, d->stored, to);
    if (d->known)
        d->known[sample] = 1;
    return to;
}

/* The number of the sample in the whole training, which random numbers are keyed by (as train/trainer_run.c counts). */
static uint64_t global_sample(const graphi_data *d, int64_t row)
{
    const graphi_data_info *info = &d->info;
    return (uint64_t)((d->position.epoch * info->batches + d->position.index) * info->batch + row);
}

static void next_images(graphi_data *d, float *out, int32_t *labels, int64_t *rows)
{
    const graphi_data_info *info = &d->info;
    int64_t pixels = info->height * info->width, first = d->position.index * info->batch;
    int64_t count = info->samples - first < info->batch ? info->samples - first : info->batch;
    if (d->order && d->order_epoch != d->position.epoch) {
        permute(d->order, info->samples, d->corpus->options.seed, (uint64_t)d->position.epoch);
        d->order_epoch = d->position.epoch;
    }
    for (int64_t r = 0; r < count; r++, out += pixels * info->channels) {
        int64_t sample = d->order ? d->order[first + r] : first + r;
        int64_t index = d->chosen ? d->chosen[sample] : sample;
        const float *image = scaled_image(d, sample, index);
        labels[r] = d->set->labels[index];
        augment_image(&d->augmentation, global_sample(d, r), image, out);
    }
    *rows = count;
}

static void next_tokens(graphi_data *d, int32_t *inputs, int32_t *targets, int64_t *rows)
{
    int64_t length = d->info.samples / d->info.batch, steps = d->info.steps;
    for (int64_t r = 0; r < d->info.batch; r++) {
        const int32_t *from = d->tokens + r * length + d->position.index * steps;
        memcpy(inputs + r * steps, from, (size_t)steps * sizeof *inputs);
        memcpy(targets + r * steps, from + 1, (size_t)steps * sizeof *targets);
    }
    *rows = d->info.batch;
}

static graphi_status check_room(const graphi_data *d, const char *what, size_t bytes, int64_t cells)
{
    size_t need = (size_t)cells * 4; /* float32 or int32 */
    return bytes >= need ? GRAPHI_OK
                         : fail(GRAPHI_INVALID, d->corpus->source.path,
                                "found %zu bytes for the %s of a batch of %s, expected at least %zu", bytes, what,
                                is_text(d) ? "text" : "images", need);
}

graphi_status graphi_data_next(graphi_data *data, void *inputs, size_t input_bytes, int32_t *targets,
                               size_t target_bytes, int64_t *rows)
{
    GIVEN(data);
    const graphi_data_info *info = &data->info;
    int64_t sample = is_text(data) ? info->steps : info->height * info->width * info->channels;
    TRY(check_room(data, "inputs", input_bytes, info->batch * sample));
    TRY(check_room(data, "targets", target_bytes, info->batch * (is_text(data) ? info->steps : 1)));
    if (is_text(data))
        next_tokens(data, inputs, targets, rows);
    else
        next_images(data, inputs, targets, rows);
    if (++data->position.index == data->info.batches)
        data->position = (graphi_data_position){data->position.epoch + 1, 0};
    return GRAPHI_OK;
}

void graphi_data_get_info(const graphi_data *data, graphi_data_info *info)
{
    if (info)
        *info = data ? data->info : (graphi_data_info){0};
}

graphi_data_position graphi_data_get_position(const graphi_data *data)
{
    if (!data)
        return (graphi_data_position){0};
    return data->position;
}

graphi_status graphi_data_set_position(graphi_data *data, graphi_data_position position)
{
    GIVEN(data);
    if (position.epoch < 0 || position.epoch == INT64_MAX || position.index < 0 || position.index >= data->info.batches)
        return fail(GRAPHI_INVALID, data->corpus->source.path,
                    "found position epoch %lld, batch %lld, expected epochs from 0 and "
                    "batches 0 to %lld",
                    (long long)position.epoch, (long long)position.index, (long long)data->info.batches - 1);
    data->position = position;
    return GRAPHI_OK;
}

const char *graphi_data_word(const graphi_data *data, int64_t id, size_t *length)
{
    if (!data)
        return NULL;
    const struct vocabulary *v = &data->corpus->vocabulary;
    if (id < 0 || (uint64_t)id >= v->count)
        return NULL;
    if (length)
        *length = v->words[id].length;
    return v->words[id].text;
}

const graphi_data_options *data_options(const graphi_data *data) { return &data->corpus->options; }
