/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation of images. Called for each image of a batch; any thread. Usual size: 32 x 32 or 227 x 227 pixels. */
#include "train/augment.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"

/* Philox's other users count from 0. */
static const uint64_t stream = 0x6175676d656e74; /* "augment" */

/* Where the image is cut, which may be outside, and whether it is turned. */
struct cut {
    int64_t top, left;
    bool turned;
};

static struct cut cut_of(const struct augmentation *how, uint64_t sample)
{
    if (!how->random)
        return (struct cut){how->crop / 2, how->crop / 2, false};
    const struct random4 random = random_philox(how->seed, stream, sample);
    const uint64_t places = (uint64_t)(how->crop + 2 * how->pad) + 1;
    return (struct cut){.top = (int64_t)(random.v[0] * places >> 32) - how->pad,
                        .left = (int64_t)(random.v[1] * places >> 32) - how->pad,
                        .turned = how->flip && random.v[2] >> 31};
}

static void copy_pixel(const struct augmentation *how, const float *in, float *out)
{
    for (int64_t c = 0; c < how->channels; c++)
        out[c] = in[how->stored == how->channels ? c : 0];
}

static void cut_row(const struct augmentation *how, const struct cut *cut, const float *row, float *out)
{
    const int64_t width = how->width + how->crop;
    if (row && !cut->turned && how->stored == how->channels && cut->left >= 0 && cut->left + how->width <= width) {
        memcpy(out, row + cut->left * how->stored, sizeof *out * (size_t)(how->width * how->channels));
        return;
    }
    for (int64_t x = 0; x < how->width; x++, out += how->channels) {
        const int64_t from = cut->left + (cut->turned ? how->width - 1 - x : x);
        if (row && from >= 0 && from < width)
            copy_pixel(how, row + from * how->stored, out);
        else
            memset(out, 0, sizeof *out * (size_t)how->channels);
    }
}

void augment_image(const struct augmentation *how, uint64_t sample, const float *in, float *out)
{
    const struct cut cut = cut_of(how, sample);
    const int64_t height = how->height + how->crop, row = (how->width + how->crop) * how->stored;
    for (int64_t y = 0; y < how->height; y++, out += how->width * how->channels) {
        const int64_t from = cut.top + y;
        cut_row(how, &cut, from >= 0 && from < height ? in + from * row : NULL, out);
    }
}

/* --- the text form --- */

static graphi_status parse_count(const char *whole, const char *digits, int64_t *out)
{
    char *end;
    const long long value = strtoll(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || value > GRAPHI_DATA_AUGMENT)
        return fail(GRAPHI_INVALID, "augmentation", "found \"%s\" in \"%s\", expected 0 to %d pixels", digits, whole,
                    GRAPHI_DATA_AUGMENT);
    *out = value;
    return GRAPHI_OK;
}

static graphi_status parse_part(const char *whole, const char *part, graphi_data_options *options)
{
    if (strncmp(part, "crop:", 5) == 0)
        return parse_count(whole, part + 5, &options->crop);
    if (strncmp(part, "pad:", 4) == 0)
        return parse_count(whole, part + 4, &options->pad);
    options->flip |= strcmp(part, "flip") == 0;
    if (strcmp(part, "flip") == 0 || strcmp(part, "none") == 0)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "augmentation", "found \"%s\" in \"%s\", expected none, crop:N, pad:N or flip", part,
                whole);
}

graphi_status graphi_data_augment(const char *text, graphi_data_options *options)
{
    GIVEN(text);
    char copy[128], *rest = copy;
    graphi_data_options none = {0}, *out = options ? options : &none, changed = *out;
    if (strlen(text) >= sizeof copy)
        return fail(GRAPHI_INVALID, "augmentation", "found %zu characters, expected fewer than %zu", strlen(text),
                    sizeof copy);
    strcpy(copy, text);
    changed.crop = changed.pad = 0;
    changed.flip = false;
    while (rest)
        TRY(parse_part(text, strsep(&rest, ","), &changed));
    *out = changed;
    return GRAPHI_OK;
}
