/* SPDX-License-Identifier: Apache-2.0 */
/* Backward-weights of convolutions with stride 1 by Winograd's algorithm: the window's gradient is a correlation of
 * the images with the gradients of r x r result pixels, so F(3x3, 4x4) makes of 4 x 4 gradients and 6 x 6 inputs 36
 * products instead of 144. The products of all tiles are summed as points and transformed back once, at the end.
 *
 * A share has a block of result channels and a part of the tiles: of so many tiles at a time (48 to 96) it transforms
 * inputs and gradients and adds their products, a matrix for each point. Result channels are cut first, since a part
 * costs points of its own, which are written, read and added: a tenth of the time of 144 tiles. Blocks have at least
 * 56 of them, or twice as many where a part has so many tiles that transforming the inputs once for each block costs
 * more than its points; of more than 16 cores all have work where blocks are narrower. With several parts the second
 * phase adds them in order. Parts follow from the shape alone; they and blocks are 1 or an even number, so that two
 * threads have the same work. With bfloat16 the points of two tiles become pairs. An infinity or NaN in a tile makes
 * the whole window's gradients of its channel NaN. Usual size: 32 x 32 x 32 pixels, 64 to 192 channels: 2048 tiles, 1
 * block in 8 parts. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"
#include "kernels/conv_tiles.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

/* What they do shows in `graphi bench kernels "3x3 backward weights" "5x5 backward weights"`; MANY_TILES in
 * "pathnet small", whose convolutions have few channels and many tiles. */
enum {
    BLOCK_BYTES = 1536 << 10, /* points of a block of tiles */
    BLOCK_MIN = 48,
    BLOCK_MAX = 96,
    LINE = 16,         /* result channels that are not divided */
    CHANNELS_MIN = 56, /* of a block; twice as many */
    MANY_TILES = 16,   /* where there are so many tiles a source channel */
    FEW_CORES = 16,    /* for more blocks are as narrow as so many lines: */
    FINE_LINES = 2,
    REDUCE_ROWS = 4,   /* source channels added and transformed back at a time */
    REDUCE_SHARES = 64,
};

/* There are parts until these are so many shares, as long as each has so many tiles: the more threads a share more is
 * for, the less its sum may cost, which all of them pay. They show in docs/kernels.md, "Even shares". */
static const struct {
    int64_t shares, tiles;
} steps[] = {{4, 32}, {8, 128}, {16, 512}};

struct weights {
    struct conv_shape s;
    micro_function micro;
    const struct winograd_scheme *scheme;
    const struct pair_functions *round; /* NULL: float32 */
    const struct reduce_loops *loops;
    int64_t points, tiles_y, tiles_x;
    int64_t lines, blocks, parts; /* lines of result channels are split as evenly as can be */
    int64_t block;                /* tiles at a time */
    int64_t plane_x, plane_y, plane_sum;
    int64_t plane_tile; /* of one tile's points before they are rounded */
    size_t sum_bytes, scratch_at, scratch_bytes; /* sums of all shares come first, then scratch of all slots */
    int shares, slots, reduce_shares;
};

static int64_t channel_of(const struct weights *g, int64_t block)
{
    return least(g->lines * block / g->blocks * LINE, g->s.k);
}

static int64_t width_of(const struct weights *g, int64_t block)
{
    return channel_of(g, block + 1) - channel_of(g, block);
}

static float *sums_of(const struct weights *g, const struct kernel_call *call, int64_t share)
{
    return (float *)((char *)call->workspace + (size_t)share * g->sum_bytes);
}

/* The inputs, and a block of the gradients, in tiles for the same window. */
static struct winograd_images inputs(const struct weights *g, const struct kernel_call *call)
{
    const struct conv_shape *s = &g->s;
    return (struct winograd_images){.pixels = call->in[0].data, .h = s->h, .w = s->w, .ld = s->ldx,
                                    .pad_y = s->pad_top, .pad_x = s->pad_left, .tiles_y = g->tiles_y,
                                    .tiles_x = g->tiles_x, .side = g->scheme->points, .step = g->scheme->taps,
                                    .channels = (int)s->c};
}

static struct winograd_images gradients(const struct weights *g, const struct kernel_call *call, int64_t block)
{
    const struct conv_shape *s = &g->s;
    return (struct winograd_images){.pixels = (const float *)call->in[1].data + channel_of(g, block), .h = s->oh,
                                    .w = s->ow, .ld = s->ldy, .tiles_y = g->tiles_y, .tiles_x = g->tiles_x,
                                    .side = g->scheme->taps, .step = g->scheme->taps,
                                    .channels = (int)width_of(g, block)};
}

static void transform_tile(void (*to_points)(const struct winograd_source *), struct winograd_walk *walk, float *v,
                           int64_t plane)
{
    const struct winograd_source tile = winograd_step(walk, v, plane);
    to_points(&tile);
}

/* Points of two tiles to pairs; the second one may lack. */
static void pair_tiles(const struct weights *g, const float *two, bool both, int64_t channels, uint32_t *out,
                       int64_t plane)
{
    const float *high = two + g->points * g->plane_tile;
    for (int64_t point = 0; point < g->points; point++) {
        if (both)
            g->round->interleave(two + point * g->plane_tile, high + point * g->plane_tile, channels,
                                 out + point * plane);
        else
            g->round->single(two + point * g->plane_tile, channels, out + point * plane);
    }
}

/* Points of the inputs and gradients of `count` tiles from `first` on. `two`: room for two tiles. */
static void transform(const struct weights *g, const struct kernel_call *call, int64_t first, int64_t count,
                      int64_t block, float *v, float *u, float *two)
{
    const int64_t c = g->s.c, width = width_of(g, block), next = g->points * g->plane_tile;
    const struct winograd_images x = inputs(g, call), dy = gradients(g, call, block);
    struct winograd_walk walk_x = winograd_walk(&x, first), walk_dy = winograd_walk(&dy, first);
    for (int64_t i = 0; i < count && !g->round; i++) {
        transform_tile(g->scheme->input, &walk_x, v + i * c, g->plane_x);
        transform_tile(g->scheme->tap, &walk_dy, u + i * width, g->plane_y);
    }
    for (int64_t i = 0; i < count && g->round; i += 2) {
        int tiles = i + 1 < count ? 2 : 1;
        for (int t = 0; t < tiles; t++)
            transform_tile(g->scheme->input, &walk_x, two + t * next, g->plane_tile);
        pair_tiles(g, two, tiles == 2, c, (uint32_t *)v + i / 2 * c, g->plane_x);
        for (int t = 0; t < tiles; t++)
            transform_tile(g->scheme->tap, &walk_dy, two + t * next, g->plane_tile);
        pair_tiles(g, two, tiles == 2, width, (uint32_t *)u + i / 2 * width, g->plane_y);
    }
}

static void multiply(const struct weights *g, const float *v, const float *u, int64_t count, int64_t width, bool first,
                     float *sums)
{
    const int64_t c = g->s.c, panel = panel_width(width);
    const int32_t k = (int32_t)pair_rows(count, g->round != NULL);
    for (int64_t point = 0; point < g->points; point++)
        for (int64_t col = 0; col < width; col += panel) {
            const void *a = v + point * g->plane_x, *b = u + point * g->plane_y + col;
            struct micro_call call = {.m = (int)c,
                                      .n = (int)least(width - col, panel),
                                      .count = 1,
                                      .a = &a,
                                      .b = &b,
                                      .k = &k,
                                      .row_stride = 1,
                                      .step_stride = c,
                                      .ldb = width,
                                      .ldc = width,
                                      .c = sums + point * g->plane_sum + col,
                                      .accumulate = !first};
            g->micro(&call);
        }
}

/* Source channels [from, to) of a block's sums to the window's gradients. */
static void transform_back(const struct weights *g, const struct kernel_call *call, int64_t block, int64_t from,
                           int64_t to)
{
    const struct conv_shape *s = &g->s;
    int64_t width = width_of(g, block), pixel = s->c * s->k;
    for (int64_t c = from; c < to; c++)
        g->scheme->output(sums_of(g, call, block) + c * width, g->plane_sum, (int)width,
                          (float *)call->out[0].data + c * s->k + channel_of(g, block), s->kw * pixel, pixel);
}

/* Shares are numbered part by part, so that those of part 0 are the blocks. */
static void add_tiles(const struct weights *g, const struct kernel_call *call, int share)
{
    int64_t block = share % g->blocks, part = share / g->blocks, width = width_of(g, block), begin, end;
    split_range(least(call->in[0].rows, g->s.n) * g->tiles_y * g->tiles_x, (int)g->parts, (int)part, &begin, &end);
    float *sums = sums_of(g, call, share);
    float *v = (float *)((char *)call->workspace + g->scratch_at +
                         (size_t)share_slot(g->slots, g->shares, call->thread, share) * g->scratch_bytes);
    float *u = v + g->points * g->plane_x;
    if (begin == end)
        memset(sums, 0, g->sum_bytes);
    for (int64_t first = begin; first < end; first += g->block) {
        int64_t count = least(end - first, g->block);
        transform(g, call, first, count, block, v, u, u + g->points * g->plane_y);
        multiply(g, v, u, count, width, first == begin, sums);
    }
    if (g->parts == 1)
        transform_back(g, call, block, 0, g->s.c);
}

static void reduce(const struct weights *g, const struct kernel_call *call, int share)
{
    int64_t rows = divide_up(g->s.c, REDUCE_ROWS), begin, end;
    split_range(g->blocks * rows, g->reduce_shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t block = unit / rows, from = unit % rows * REDUCE_ROWS, to = least(from + REDUCE_ROWS, g->s.c);
        int64_t width = width_of(g, block), stride = g->blocks * (int64_t)(g->sum_bytes / sizeof(float));
        for (int64_t point = 0; point < g->points; point++) {
            float *sum = sums_of(g, call, block) + point * g->plane_sum;
            reduce_parts(g->loops, sum, stride, g->parts, from * width, to * width, sum);
        }
        transform_back(g, call, block, from, to);
    }
}

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct weights *g = call->params;
    if (phase == 0)
        add_tiles(g, call, share);
    else
        reduce(g, call, share);
    return GRAPHI_OK;
}

/* --- binding --- */

/* More blocks for many cores, the most there can be of as many lines each. Each transforms all inputs again. */
static int64_t finer(const struct weights *g)
{
    int64_t blocks = most(g->lines / FINE_LINES / 2 * 2, 1);
    while (blocks > g->blocks && (g->lines % blocks || blocks % 2))
        blocks--;
    return most(blocks, g->blocks);
}

/* Blocks of 64 channels, one panel, are fastest: hence 6 and 12 beside the powers of two. What parts there are, on
 * which bits depend, does not depend on the cores. */
static void cut(struct weights *g, int64_t tiles, int cores)
{
    static const int numbers[] = {16, 12, 8, 6, 4, 2, 1};
    const int64_t fewest = tiles < MANY_TILES * g->s.c ? CHANNELS_MIN : 2 * CHANNELS_MIN, k = g->s.k;
    const int *blocks = numbers;
    while (*blocks > 1 && *blocks * fewest > k)
        blocks++;
    g->blocks = *blocks;
    g->lines = divide_up(k, LINE);
    g->parts = 1;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        while (g->blocks * g->parts < steps[i].shares && tiles >= 2 * g->parts * steps[i].tiles)
            g->parts *= 2;
    if (cores > FEW_CORES) /* an even number again */
        g->blocks = most(least(finer(g), shares_for_cores(cores) / g->parts / 2 * 2), g->blocks);
    g->shares = (int)(g->blocks * g->parts);
}

static size_t size_up(struct weights *g, int threads, int cores)
{
    const struct conv_shape *s = &g->s;
    g->points = (int64_t)g->scheme->points * g->scheme->points;
    g->tiles_y = divide_up(s->oh, g->scheme->taps);
    g->tiles_x = divide_up(s->ow, g->scheme->taps);
    int64_t tiles = s->n * g->tiles_y * g->tiles_x;
    cut(g, tiles, cores);
    int64_t widest = least(s->k, divide_up(g->lines, g->blocks) * LINE), each = divide_up(tiles, g->parts);
    int64_t room = (g->round ? 2 : 1) * BLOCK_BYTES, block = room / (4 * g->points * (s->c + widest));
    block = block < BLOCK_MIN ? BLOCK_MIN : least(block, BLOCK_MAX);
    g->block = tiles ? divide_up(each, divide_up(each, block)) : 1; /* as even as can be */
    if (g->round)
        g->block = divide_up(g->block, 2) * 2;
    int64_t deep = pair_rows(g->block, g->round != NULL);
    g->plane_x = round_up(deep * s->c, 16) + CONV_PLANE_PAD;
    g->plane_y = round_up(deep * widest, 16) + CONV_PLANE_PAD;
    g->plane_tile = round_up(s->c > widest ? s->c : widest, 16) + CONV_PLANE_PAD;
    g->plane_sum = round_up(s->c * widest, 16) + CONV_PLANE_PAD;
    g->sum_bytes = (size_t)(4 * g->points * g->plane_sum);
    g->scratch_at = (size_t)g->shares * g->sum_bytes;
    g->scratch_bytes = (size_t)(4 * g->points * (g->plane_x + g->plane_y + (g->round ? 2 * g->plane_tile : 0)));
    g->reduce_shares = (int)least(g->blocks * divide_up(s->c, REDUCE_ROWS), REDUCE_SHARES);
    g->slots = share_slots(g->shares, threads);
    return g->scratch_at + (size_t)g->slots * g->scratch_bytes;
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct weights *g = mem_zalloc(sizeof *g);
    if (!g)
        return fail_memory("conv", sizeof *g);
    g->s = spec->shape;
    bool pairs = conv_winograd_pairs(spec, spec->algorithm, isa);
    g->round = pairs ? pair_functions(isa) : NULL;
    g->loops = reduce_loops_of(isa);
    g->micro = micro_kernel(isa, pairs);
    g->scheme = conv_winograd_scheme(spec, spec->algorithm, isa);
    size_t workspace = size_up(g, spec->threads, spec->cores);
    const struct conv_shape *s = &g->s;
    *kernel = (struct kernel){.name = "conv_weights_winograd", .run = run, .params = g, .params_bytes = sizeof *g,
                              .workspace = workspace, .phases = g->parts > 1 ? 2 : 1,
                              .shares = {g->shares, g->parts > 1 ? g->reduce_shares : 0}};
    kernel->flops = 2 * (double)(g->points * s->n * g->tiles_y * g->tiles_x) * (double)(s->c * s->k);
    kernel->bytes = conv_traffic(s);
    return GRAPHI_OK;
}

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    return spec->direction == CONV_BACKWARD_WEIGHTS && spec->algorithm != CONV_DIRECT;
}

const struct conv_kernel conv_winograd_weights = {.takes = takes, .bind = bind_kernel};
