/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution, forward and backward-data: each result pixel gathers from the source pixels under its window.
 *
 * Both are the same sum: forward over (tap, c) with the weights as they are, backward-data over (tap, k) with each
 * tap's weights transposed. Pixels of one region (conv.c) use the same taps, so any 16 to 128 of them by one panel of
 * at most 64 result channels are a tile: the micro-kernel takes the pixels by row offsets and the taps as segments.
 * Where the channels of neighbouring taps lie next to each other in memory, a whole row of the window is one segment:
 * three input channels need no other treatment.
 *
 * First phase: weights into panels (unless they are one already, or prepared), and with bfloat16 the source into pairs
 * of channels (unless it is bfloat16 already). Usual size: 32 x 28 x 28 pixels, 192 to 96 channels, 3 x 3: about 400
 * tiles. */
#include <stdalign.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"
#include "kernels/micro.h"
#include "kernels/pack.h"
#include "kernels/shares.h"

/* What they do shows in the rows "…, direct" and 1x1 of `graphi bench kernels "googlenet small"`. */
enum {
    TILE_ROWS_MAX = 128,
    TILE_ROWS_MIN = 16,
    PANEL_BYTES = 512 << 10, /* panels kept in the level-2 cache while pixels pass */
    CALL_STEPS = 2048,       /* of a call: each one more reads the results again and writes them, */
    SMALL_CALL_STEPS = 768,  /* but a half as large level-2 cache has no room for longer ones (kernel.h) */
    CONVERT_PIXELS = 256,    /* source pixels rounded at a time */
};

struct region {
    struct conv_run y, x;
    int64_t dense; /* consecutive pixels are consecutive result rows; so wide for there to be no padding */
};

struct gather {
    struct conv_shape s;
    struct conv_axis axis_y, axis_x;
    struct epilogue epilogue;
    micro_function micro;
    const struct pair_functions *round;         /* NULL: floats */
    bool backward, pack, convert, merge;        /* merge: the taps of a window row are one segment */
    bool in_line;                               /* 1 x 1: pixels of the source lie as densely as those of the result */
    int64_t source_c, result_c;                 /* channels of a group */
    int64_t depth;                              /* elements of a group and source pixel: source_c, or pairs */
    int64_t source_ld, result_ld;               /* pixel strides: elements as the micro-kernel reads them; floats */
    int64_t source_pixels, source_plane;        /* all; of one image */
    int64_t result_h, result_w;
    int64_t taps, width, panels, group_panels, tile_rows;
    int64_t steps; /* of a call */
    struct conv_packing packing;
    int64_t pack_units, convert_units;
    size_t source_at, weights_at; /* in the workspace */
    int prepare_shares, multiply_shares;
    int64_t regions;
    struct region region[];
};

static int64_t images_of(const struct gather *g, const struct kernel_call *call)
{
    return least(call->in[0].rows, g->s.n);
}

/* --- first phase --- */

/* Rounds some source pixels to pairs of channels. */
static void convert_unit(const struct gather *g, const struct kernel_call *call, int64_t unit)
{
    int64_t begin = unit * CONVERT_PIXELS;
    int64_t end = least(begin + CONVERT_PIXELS, images_of(g, call) * g->source_plane);
    int64_t ld = g->backward ? g->s.ldy : g->s.ldx;
    const float *source = (const float *)call->in[0].data + begin * ld;
    uint32_t *target = (uint32_t *)((char *)call->workspace + g->source_at) + begin * g->source_ld;
    for (int64_t group = 0; group < g->s.groups; group++)
        pack_row_pairs(source + group * g->source_c, ld, end - begin, g->source_c, g->round,
                       target + group * g->depth, g->source_ld);
}

static void prepare_share(const struct gather *g, const struct kernel_call *call, int share)
{
    int64_t begin, end;
    split_range(g->pack_units + g->convert_units, g->prepare_shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        if (unit < g->pack_units)
            conv_packing_unit(&g->packing, call->in[1].data, (char *)call->workspace + g->weights_at, unit);
        else
            convert_unit(g, call, unit - g->pack_units);
    }
}

/* --- second phase --- */

struct tile {
    const struct region *region;
    int64_t group, panel;
    int64_t image; /* in which the region's pixels begin */
    int64_t first; /* pixel of the region */
    int rows;
};

/* Pixels of a region are numbered by image, row, column; their tiles are as even as the largest size allows. */
static int64_t tiles_of(const struct gather *g, const struct region *region, int64_t images)
{
    return divide_up(images * region->y.count * region->x.count, g->tile_rows);
}

static int64_t pixel_tiles(const struct gather *g, int64_t images)
{
    int64_t tiles = 0;
    for (int64_t i = 0; i < g->regions; i++)
        tiles += tiles_of(g, &g->region[i], images);
    return tiles;
}

/* Order: group, panels that fit the level-2 cache together, pixels, panel. */
static struct tile tile_at(const struct gather *g, int64_t images, int64_t pixel_count, int64_t index)
{
    struct tile t = {.group = index / (pixel_count * g->panels)};
    index %= pixel_count * g->panels;
    int64_t first_panel = index / (pixel_count * g->group_panels) * g->group_panels;
    int64_t together = least(g->panels - first_panel, g->group_panels);
    index -= first_panel * pixel_count;
    t.panel = first_panel + index % together;
    index /= together;
    t.region = g->region;
    while (index >= tiles_of(g, t.region, images))
        index -= tiles_of(g, t.region++, images);
    int64_t end;
    split_range(images * t.region->y.count * t.region->x.count, (int)tiles_of(g, t.region, images), (int)index,
                &t.first, &end);
    t.rows = (int)(end - t.first);
    return t;
}

/* A pixel of a region; they are counted up, not divided: with few channels a pixel is as little work as a division. */
struct place {
    int64_t image, y, x;
};

static struct place first_place(const struct tile *t)
{
    const struct region *r = t->region;
    int64_t line = t->first / r->x.count;
    return (struct place){t->image + line / r->y.count, line % r->y.count, t->first % r->x.count};
}

/* Goes on by pixels that do not pass the end of the line. */
static void advance(const struct region *r, struct place *at, int64_t pixels)
{
    at->x += pixels;
    if (at->x < r->x.count)
        return;
    at->x = 0;
    if (++at->y < r->y.count)
        return;
    at->y = 0;
    at->image++;
}

static int lowest(uint64_t mask)
{
    return __builtin_ctzll(mask);
}

/* Pixels of the tile from `at` on that are equally spaced in the result. */
static int64_t run_of(const struct region *r, const struct place *at, int64_t left)
{
    return r->dense ? left : least(r->x.count - at->x, left);
}

static int64_t result_row(const struct gather *g, const struct region *r, const struct place *at)
{
    return (at->image * g->result_h + r->y.start + at->y * r->y.step) * g->result_w + r->x.start + at->x * r->x.step;
}

/* Bytes to the tile's pixels: from the first source pixel of the region, and from the first result pixel of all. */
struct offsets {
    int64_t source[TILE_ROWS_MAX], result[TILE_ROWS_MAX];
};

static void find_offsets(const struct gather *g, const struct tile *t, struct offsets *offset)
{
    const struct region *r = t->region;
    const int64_t source_step = 4 * g->source_ld * r->x.source_step, result_step = 4 * g->result_ld * r->x.step;
    struct place at = first_place(t);
    for (int64_t i = 0, count; i < t->rows; i += count, advance(r, &at, count)) {
        count = least(r->x.count - at.x, t->rows - i);
        int64_t line = at.image * g->source_plane + at.y * r->y.source_step * g->axis_x.source;
        int64_t source = 4 * g->source_ld * line + at.x * source_step,
                result = 4 * g->result_ld * result_row(g, r, &at);
        for (int64_t j = i; j < i + count; j++, source += source_step, result += result_step) {
            offset->source[j] = source;
            offset->result[j] = result;
        }
    }
}

/* What to ask for while the tile is multiplied: the source of the tile that follows, in pieces as large as a panel's
 * weights, which the micro-kernel goes through line by line; NULL: nothing, as where a pool takes rows at a time. */
static const char *following(const struct gather *g, const struct tile *t, const char *source, int64_t width)
{
    const int64_t piece = t->panel % g->group_panels * width, pixel = g->depth;
    if (!g->in_line || t->region != g->region || piece >= t->rows)
        return NULL;
    return source + 4 * pixel * (t->first + t->rows + piece);
}

/* The sum of the tile's taps into c: rows by their offsets in the result, or (NULL) densely. */
static void multiply_tile(const struct gather *g, const struct kernel_call *call, const struct tile *t,
                          const int64_t *source_offset, const int64_t *result_offset, float *c)
{
    const struct region *r = t->region;
    int64_t first = t->panel * g->width, width = least(g->result_c - first, g->width);
    const char *source = g->convert ? (const char *)call->workspace + g->source_at : call->in[0].data;
    const char *weights = g->pack ? (const char *)call->workspace + g->weights_at : call->in[1].data;
    source += 4 * t->group * g->depth;
    weights += 4 * g->taps * g->depth * (t->group * g->result_c + first);

    struct micro_list list;
    list.call = (struct micro_call){.m = t->rows,
                                    .n = (int)width,
                                    .row_offset = source_offset,
                                    .step_stride = 1,
                                    .ldb = width,
                                    .soon_all = true,
                                    .c = c,
                                    .ldc = width,
                                    .result_offset = result_offset};
    micro_start(&list, g->micro,
                micro_limit(__builtin_popcountll(r->y.taps) * __builtin_popcountll(r->x.taps) * g->depth, g->steps));
    list.soon_b = following(g, t, source, width);
    for (uint64_t ys = r->y.taps; ys; ys &= ys - 1) {
        int64_t ty = lowest(ys), line = conv_source(&g->axis_y, r->y.start, ty) * g->axis_x.source;
        for (uint64_t xs = r->x.taps; xs; xs = g->merge ? 0 : xs & (xs - 1)) {
            int64_t tx = lowest(xs), pixel = line + conv_source(&g->axis_x, r->x.start, tx);
            micro_add(&list, source + 4 * pixel * g->source_ld,
                      weights + 4 * (ty * g->s.kw + tx) * g->depth * width,
                      g->merge ? __builtin_popcountll(xs) * g->depth : g->depth);
        }
    }
    micro_finish(&list);
}

/* Runs the epilogue and moves the tile to its place. An epilogue that can runs on the whole tile before; others run on
 * each run of pixels, which are short (an image row; one pixel at the borders). */
static void finish_tile(const struct gather *g, const struct kernel_call *call, const struct tile *t,
                        const int64_t *result_offset, float *tile, int64_t width, int64_t col)
{
    const struct region *r = t->region;
    if (g->epilogue.local && !r->dense) {
        epilogue_run_local(&g->epilogue, tile, col, t->rows, width, call->in + 2);
        char *result = (char *)((float *)call->out[0].data + col);
        for (int64_t i = 0; i < t->rows; i++)
            memcpy(result + result_offset[i], tile + i * width, (size_t)width * sizeof(float));
        return;
    }
    struct place at = first_place(t);
    for (int64_t i = 0, count; i < t->rows; i += count, advance(r, &at, count)) {
        count = run_of(r, &at, t->rows - i);
        const struct epilogue_tile run = {.data = tile + i * width, .ld = width, .row = result_row(g, r, &at),
                                          .col = col, .rows = count, .cols = width, .row_step = r->x.step,
                                          .result_ld = g->result_ld};
        epilogue_run(&g->epilogue, &run, call->in + 2, call->out);
    }
}

/* Without an epilogue the micro-kernel writes in place, and fetches the result's lines while it multiplies. */
static void make_tile(const struct gather *g, const struct kernel_call *call, const struct tile *t,
                      const struct offsets *offset)
{
    alignas(64) float buffer[TILE_ROWS_MAX * PANEL_MAX];
    int64_t width = least(g->result_c - t->panel * g->width, g->width),
            col = t->group * g->result_c + t->panel * g->width;
    if (!g->epilogue.present) {
        multiply_tile(g, call, t, offset->source, offset->result, (float *)call->out[0].data + col);
        return;
    }
    multiply_tile(g, call, t, offset->source, NULL, buffer);
    finish_tile(g, call, t, offset->result, buffer, width, col);
}

/* Multiplications of a tile of one column, and a step for writing it. */
static int64_t column_work(const struct gather *g, const struct region *region)
{
    return __builtin_popcountll(region->y.taps) * __builtin_popcountll(region->x.taps) * g->depth + 1;
}

static int64_t region_work(const struct gather *g, const struct region *region, int64_t images)
{
    return tiles_of(g, region, images) * column_work(g, region);
}

/* The tile that a share begins with. Shares have as much work as each other and not as many tiles, since the last panel
 * is narrow and regions have few or many taps. That is rounded to tiles: threads with one share would have two of them
 * or none, so that these have as many each. */
static int64_t first_tile(const struct gather *g, int width, int64_t images, int64_t pixels, int share)
{
    const int64_t tiles = pixels * g->panels * g->s.groups;
    int64_t column = 0, tile = 0;
    for (int64_t i = 0; i < g->regions; i++)
        column += region_work(g, &g->region[i], images);
    if (!column || share == g->multiply_shares || 2 * width > g->multiply_shares)
        return tiles * share / g->multiply_shares;
    const int64_t group_work = column * g->result_c, together = g->group_panels * g->width;
    int64_t at = group_work * g->s.groups * share / g->multiply_shares;
    const int64_t group = at / group_work;
    at %= group_work;
    const int64_t first = at / (column * together), cols = least(g->result_c - first * together, together);
    at %= column * together;
    const struct region *region = g->region;
    for (; at >= cols * region_work(g, region, images); region++) {
        at -= cols * region_work(g, region, images);
        tile += tiles_of(g, region, images);
    }
    const int64_t work = column_work(g, region), col = at % (cols * work) / work, count = divide_up(cols, g->width);
    tile += at / (cols * work);
    return (group * g->panels + first * g->group_panels) * pixels + tile * count +
           least((col + g->width / 2) / g->width, count);
}

static void multiply_share(const struct gather *g, const struct kernel_call *call, int share)
{
    const int64_t images = images_of(g, call), pixels = pixel_tiles(g, images),
                  end = first_tile(g, call->width, images, pixels, share + 1);
    for (int64_t index = first_tile(g, call->width, images, pixels, share); index < end; index++) {
        struct offsets offset;
        struct tile t = tile_at(g, images, pixels, index);
        find_offsets(g, &t, &offset);
        make_tile(g, call, &t, &offset);
    }
}

/* --- some rows of a forward result, for conv_pooled.c --- */

/* Pixels of a region that lie in the rows, all groups and panels of a tile together. */
static void multiply_region(const struct gather *g, const struct kernel_call *call, const struct region *part,
                            int64_t image)
{
    const int64_t pixels = part->y.count * part->x.count, tiles = divide_up(pixels, TILE_ROWS_MAX);
    for (int64_t i = 0; i < tiles; i++) {
        struct offsets offset;
        struct tile t = {.region = part, .image = image, .first = pixels * i / tiles};
        t.rows = (int)(pixels * (i + 1) / tiles - t.first);
        find_offsets(g, &t, &offset);
        for (t.group = 0; t.group < g->s.groups; t.group++)
            for (t.panel = 0; t.panel < g->panels; t.panel++)
                make_tile(g, call, &t, &offset);
    }
}

static void multiply_rows(const struct kernel_call *call, int64_t image, int64_t from, int64_t to, void *scratch)
{
    (void)scratch;
    const struct gather *g = call->params;
    for (int64_t i = 0; i < g->regions; i++) {
        struct region part = g->region[i];
        const int64_t end = least(part.y.start + part.y.count, to),
                      skipped = from > part.y.start ? from - part.y.start : 0;
        part.y.start += skipped;
        part.y.count = end - part.y.start;
        if (part.y.count > 0)
            multiply_region(g, call, &part, image);
    }
}

static struct conv_rows rows_of(const void *params)
{
    const struct gather *g = params;
    return (struct conv_rows){.run = multiply_rows,
                              .workspace = g->weights_at + (g->pack ? g->packing.bytes : 0),
                              .unit = 1,
                              .fewest = divide_up(TILE_ROWS_MAX, g->result_w)};
}

static graphi_status gather_run(const struct kernel_call *call, int phase, int share)
{
    const struct gather *g = call->params;
    if (phase == 0 && g->pack_units + g->convert_units)
        prepare_share(g, call, share);
    else
        multiply_share(g, call, share);
    return GRAPHI_OK;
}

/* --- binding --- */

static void size_up(struct gather *g, const struct conv_spec *spec, enum isa isa)
{
    const struct conv_shape *s = &g->s;
    g->backward = spec->direction == CONV_BACKWARD_DATA;
    g->axis_y = conv_axis_y(s, g->backward);
    g->axis_x = conv_axis_x(s, g->backward);
    g->round = spec->multiplicands == GRAPHI_BF16 ? pair_functions(isa) : NULL;
    bool rounded = g->backward ? spec->rounded_y : spec->rounded_x;
    g->convert = g->round && !rounded;
    g->source_c = (g->backward ? s->k : s->c) / s->groups;
    g->result_c = (g->backward ? s->c : s->k) / s->groups;
    g->depth = pair_rows(g->source_c, g->round);
    g->source_ld = g->convert ? g->depth * s->groups : (g->backward ? s->ldy : s->ldx) / (rounded ? 2 : 1);
    g->result_ld = g->backward ? s->ldx : s->ldy;
    g->result_h = g->axis_y.result;
    g->result_w = g->axis_x.result;
    g->source_plane = g->axis_y.source * g->axis_x.source;
    g->source_pixels = s->n * g->source_plane;
    g->taps = s->kh * s->kw;
    g->merge = !g->backward && s->dilation_w == 1 && g->source_ld == g->depth;
    g->width = panel_width(g->result_c);
    g->panels = panel_count(g->result_c);
    struct conv_form form;
    g->pack = conv_form_of(spec, isa, &form) != CONV_FORM_NONE;
    if (g->pack)
        conv_packing_init(&form, isa, &g->packing);
    g->pack = g->pack && !spec->prepared;
    int64_t panel_bytes = 4 * g->taps * g->depth * g->width;
    g->steps = isa < ISA_AVX512 ? SMALL_CALL_STEPS : CALL_STEPS;
    g->group_panels = least(level_2_part(PANEL_BYTES, isa) / panel_bytes, g->panels);
    if (g->group_panels < 1)
        g->group_panels = 1;
}

static int64_t all_tiles(const struct gather *g)
{
    return pixel_tiles(g, g->s.n) * g->panels * g->s.groups;
}

/* What the busiest core has of tiles of at most so many rows; those of a region are as even as that allows. */
static double rows_at(struct gather *g, int64_t tile_rows, double tallest, int cores)
{
    g->tile_rows = tile_rows;
    const double rows = (double)(g->s.n * g->result_h * g->result_w) / (double)most(pixel_tiles(g, g->s.n), 1);
    return rows_of_busiest(all_tiles(g), rows, tallest, cores);
}

/* As in gemm.c: flatter tiles, down to half, where the busiest core has less of them. */
static void even_tiles(struct gather *g, int cores)
{
    const int64_t tallest = g->tile_rows;
    int64_t found = tallest;
    if (!worth_evening(all_tiles(g), cores))
        return;
    double fewest = (1 - WORTH_FLATTER) * rows_at(g, tallest, (double)tallest, cores);
    for (int64_t rows = tallest - 1; rows >= most(tallest / 2, TILE_ROWS_MIN); rows--) {
        const double busiest = rows_at(g, rows, (double)tallest, cores);
        if (busiest < fewest) {
            fewest = busiest;
            found = rows;
        }
    }
    g->tile_rows = found;
}

/* As in gemm.c: halved while there are too few tiles and each is worth handing out. */
static void cut(struct gather *g, int cores)
{
    double half_flops = (double)g->width * (double)(g->taps * g->source_c);
    for (g->tile_rows = TILE_ROWS_MAX; g->tile_rows > TILE_ROWS_MIN; g->tile_rows /= 2) {
        int64_t tiles = all_tiles(g);
        double half = half_flops * (double)g->tile_rows;
        if (!((tiles < 32 && half >= 2e6) || (tiles < 8 && half >= 0.5e6)))
            break;
    }
    even_tiles(g, cores);
    g->pack_units = g->pack ? g->packing.units : 0;
    g->convert_units = g->convert ? divide_up(g->source_pixels, CONVERT_PIXELS) : 0;
    g->prepare_shares = clamp_shares_for(g->pack_units + g->convert_units, cores);
    g->multiply_shares = clamp_shares_for(all_tiles(g), cores);
}

static void list_regions(struct gather *g, const struct conv_run *ys, int64_t y_count, const struct conv_run *xs,
                         int64_t x_count)
{
    for (int64_t i = 0; i < y_count; i++)
        for (int64_t j = 0; j < x_count; j++)
            g->region[g->regions++] = (struct region){
                ys[i], xs[j],
                ys[i].count == g->result_h && xs[j].count == g->result_w && ys[i].step == 1 && xs[j].step == 1};
}

static void describe(const struct gather *g, struct kernel *kernel, size_t bytes)
{
    const struct conv_shape *s = &g->s;
    size_t weight_bytes = g->pack ? g->packing.bytes : 0;
    double weights = (double)(g->taps * (s->c / s->groups) * s->k);
    *kernel = (struct kernel){.name = g->backward ? "conv_data" : "conv", .run = gather_run, .params_bytes = bytes,
                              .workspace = g->weights_at + weight_bytes, .phases = 1};
    kernel->flops = 2 * weights * (double)(s->n * s->oh * s->ow);
    kernel->bytes = conv_traffic(s);
    if (g->round && !g->convert)
        kernel->bytes -= 2 * (double)(g->source_pixels * g->source_c * s->groups);
    bool prepare = g->pack_units + g->convert_units > 0;
    kernel->phases = prepare ? 2 : 1;
    kernel->shares[0] = prepare ? g->prepare_shares : g->multiply_shares;
    kernel->shares[1] = prepare ? g->multiply_shares : 0;
}

static graphi_status bind_kernel(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct conv_axis y = conv_axis_y(&spec->shape, spec->direction == CONV_BACKWARD_DATA);
    struct conv_axis x = conv_axis_x(&spec->shape, spec->direction == CONV_BACKWARD_DATA);
    int64_t y_count = conv_runs(&y, NULL), x_count = conv_runs(&x, NULL);
    size_t run_bytes = (size_t)(y_count + x_count) * sizeof(struct conv_run);
    size_t bytes = sizeof(struct gather) + (size_t)(y_count * x_count) * sizeof(struct region);
    struct conv_run *runs = mem_alloc(run_bytes);
    struct gather *g = mem_zalloc(bytes);
    graphi_status status = runs && g ? GRAPHI_OK : fail_memory("conv", bytes + run_bytes);
    if (status == GRAPHI_OK)
        status = epilogue_prepare(&spec->epilogue, isa, &g->epilogue);
    if (status != GRAPHI_OK) {
        mem_free(runs);
        mem_free(g);
        return status;
    }
    g->s = spec->shape;
    size_up(g, spec, isa);
    conv_runs(&y, runs);
    conv_runs(&x, runs + y_count);
    list_regions(g, runs, y_count, runs + y_count, x_count);
    mem_free(runs);
    g->in_line = g->taps == 1 && g->regions == 1 && g->region->dense && g->source_plane == g->result_h * g->result_w &&
                 g->source_ld == g->depth;
    g->micro = micro_kernel(isa, g->round);
    cut(g, spec->cores);
    g->weights_at = g->convert ? whole_lines(4 * g->source_pixels * g->source_ld) : 0;
    describe(g, kernel, bytes);
    kernel->params = g;
    return GRAPHI_OK;
}

static bool takes(const struct conv_spec *spec, enum isa isa)
{
    return spec->direction != CONV_BACKWARD_WEIGHTS && spec->algorithm == CONV_DIRECT;
}

const struct conv_kernel conv_gather = {
    .takes = takes, .bind = bind_kernel, .rows = rows_of, .reads_forms = true, .rounds = true};
