/* SPDX-License-Identifier: Apache-2.0 */
/* Images cut into Winograd's tiles, walked in the order of memory: what both directions of its convolutions share.
 *
 * A tile's pixels lie in as many pieces as it has pixels a row, at strides that hardware does not follow, so that
 * transforms of images that are not in the level-2 cache waited for each line. They ask for the tile after the next. */
#ifndef KERNELS_CONV_TILES_H
#define KERNELS_CONV_TILES_H

#include "kernels/winograd.h"

/* Shows in `graphi bench kernels "pathnet large" "googlenet small, conv2 3x3"`: one tile ahead was up to 2 % slower
 * where a tile has few channels, four as fast. */
enum { WINOGRAD_AHEAD = 2 };

struct winograd_images {
    const float *pixels;
    int64_t h, w, ld, pad_y, pad_x; /* ld: floats from one pixel to the next */
    int64_t tiles_y, tiles_x;       /* of an image */
    int side, step;                 /* pixels of a tile, and from one tile to the next */
    int channels;
};

struct winograd_place {
    int64_t image, y, x; /* y, x: in tiles */
};

struct winograd_walk {
    const struct winograd_images *images;
    struct winograd_place now, soon;
};

static inline struct winograd_place winograd_place(int64_t tile, int64_t tiles_y, int64_t tiles_x)
{
    return (struct winograd_place){tile / tiles_x / tiles_y, tile / tiles_x % tiles_y, tile % tiles_x};
}

static inline struct winograd_place winograd_next(const struct winograd_images *images, struct winograd_place place)
{
    if (++place.x < images->tiles_x)
        return place;
    place.x = 0;
    if (++place.y < images->tiles_y)
        return place;
    return (struct winograd_place){place.image + 1, 0, 0};
}

static inline struct winograd_walk winograd_walk(const struct winograd_images *images, int64_t tile)
{
    struct winograd_walk walk = {images, winograd_place(tile, images->tiles_y, images->tiles_x), {0}};
    walk.soon = walk.now;
    for (int i = 0; i < WINOGRAD_AHEAD; i++)
        walk.soon = winograd_next(images, walk.soon);
    return walk;
}

static inline int winograd_clamp(int64_t value, int most)
{
    return value < 0 ? 0 : value > most ? most : (int)value;
}

/* The next tile to transform into v; past the last one what is asked for is not there, which does nothing. */
static inline struct winograd_source winograd_step(struct winograd_walk *walk, float *v, int64_t plane)
{
    const struct winograd_images *g = walk->images;
    const struct winograd_place p = walk->now, soon = walk->soon;
    const int64_t y = p.y * g->step - g->pad_y, x = p.x * g->step - g->pad_x, row = g->w * g->ld;
    walk->now = winograd_next(g, p);
    walk->soon = winograd_next(g, soon);
    return (struct winograd_source){
        .source = g->pixels + (p.image * g->h + y) * row + x * g->ld,
        .row = row,
        .pixel = g->ld,
        .y0 = winograd_clamp(-y, g->side),
        .y1 = winograd_clamp(g->h - y, g->side),
        .x0 = winograd_clamp(-x, g->side),
        .x1 = winograd_clamp(g->w - x, g->side),
        .channels = g->channels,
        .ahead = ((soon.image - p.image) * g->h + (soon.y - p.y) * g->step) * row + (soon.x - p.x) * g->step * g->ld,
        .v = v,
        .plane = plane};
}

#endif
