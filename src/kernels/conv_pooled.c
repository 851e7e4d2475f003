/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution that pools its result: some rows of an image at a time are made in scratch that stays in the level-2
 * cache, the epilogue runs on all of them at once, and they are pooled there, so that y is neither written to memory
 * nor read from it. The bits are those of the two kernels one after the other: both round each element alike whatever
 * is made beside it.
 *
 * Only the last phase of the convolution's kernel is replaced (struct conv_rows). A share has whole images; of fewer
 * images than there may be threads each is cut into parts of its pooled rows, which make the rows that their windows
 * share (and what rounding to tiles adds) twice. A thread's shares run together, so that its neighbouring parts of an
 * image are one: only as many cuts are made as there are threads. Within a part nothing is made twice: rows that later
 * windows want move to the start of the scratch. How many rows are made at a time, and whether that pays at all,
 * follows from the shape and the algorithm. Usual size: 32 images of 64 x 64 x 64, 16 rows (288 KB) at a time, windows
 * of 3 x 3 at stride 2. Any thread. */
#include "kernels/conv_pooled.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/pack.h"
#include "kernels/shares.h"

/* Chosen by `graphi bench kernels "pooled convolution"`, but for those that follow from others. */
enum {
    BAND_BYTES = 256 << 10,    /* rows made at a time: a quarter of the level-2 cache */
    BAND_MOST = 4 * BAND_BYTES, /* more would leave it */
    WEIGHTS_MOST = 512 << 10,  /* panels of a direct convolution, which are read once a band: half of that cache */
    FEWEST_PIXELS = 256,       /* of an image */
    FEWEST_ROWS = 64,          /* of all images: two threads that cut a smaller one lose more by what both make */
    PIECE_STEPS = 8,           /* a piece has at least so many times the rows made at a time: of those few are less than
                                  all */
};

struct pooled {
    struct pool_spec pool; /* of the rows as they lie in the scratch */
    pool_function function;
    struct epilogue epilogue;
    kernel_function conv; /* the convolution's phases before the last */
    size_t params_at;     /* its parameters, behind these: the block may be moved */
    struct conv_rows rows;
    int64_t row;   /* floats of a row of y */
    int64_t step;  /* rows made at a time */
    int64_t parts; /* of an image */
    size_t slot_bytes;
    int last; /* phase */
    int shares, slots;
    struct pool_span span[];
};

static const void *conv_params(const struct pooled *p)
{
    return (const char *)p + p->params_at;
}

/* Rows [first, end) of an image of y, the first at data. */
struct band {
    float *data;
    int64_t image, first, end;
};

static void make_rows(const struct pooled *p, const struct kernel_call *call, struct band *band, int64_t end,
                      void *scratch)
{
    const struct pool_shape *s = &p->pool.shape;
    const int64_t image = band->image * s->h;
    struct kernel_array y = {band->data - (image + band->first) * p->row, call->out[0].rows};
    struct kernel_call conv = *call;
    conv.params = conv_params(p);
    conv.out = &y;
    p->rows.run(&conv, band->image, band->end, end, scratch);
    const struct epilogue_tile tile = {.data = band->data + (band->end - band->first) * p->row, .ld = s->c,
                                       .row = (image + band->end) * s->w, .rows = (end - band->end) * s->w,
                                       .cols = s->c, .row_step = 1, .result_ld = s->c};
    if (p->epilogue.present)
        epilogue_run(&p->epilogue, &tile, call->in + 2, &y);
    band->end = end;
}

static void pool_rows(const struct pooled *p, const struct kernel_call *call, const struct band *band, int64_t from,
                      int64_t to)
{
    const struct pool_shape *s = &p->pool.shape;
    const int64_t pixels = band->image * s->oh * s->ow;
    struct pool_block block = {.spec = &p->pool,
                               .windows = {p->span, p->span + s->oh},
                               .x = band->data - band->first * p->row,
                               .out = (float *)call->out[0].data + pixels * s->ldy,
                               .begin = from,
                               .end = to,
                               .c1 = s->c};
    if (p->pool.places)
        block.place = (char *)call->out[1].data + pixels * s->ldp * (int64_t)graphi_dtype_size(pool_places_type(s));
    if (from < to)
        p->function(&block);
}

/* Windows from row `next` on want rows from there on. */
static void drop_rows(const struct pooled *p, struct band *band, int64_t next)
{
    const int64_t first = p->span[next].first;
    if (first >= band->end) {
        band->first = band->end = first / p->rows.unit * p->rows.unit;
        return;
    }
    memmove(band->data, band->data + (first - band->first) * p->row,
            sizeof(float) * (size_t)((band->end - first) * p->row));
    band->first = first;
}

static void pool_part(const struct pooled *p, const struct kernel_call *call, int64_t image, int64_t from, int64_t to,
                      char *scratch)
{
    const int64_t unit = p->rows.unit, last = p->span[to - 1].first + p->span[to - 1].count;
    const int64_t whole = least(divide_up(last, unit) * unit, p->pool.shape.h);
    const int64_t first = p->span[from].first / unit * unit;
    struct band band = {(float *)(scratch + p->rows.scratch), image, first, first};
    while (from < to) {
        int64_t next = from;
        make_rows(p, call, &band, least(band.end + p->step, whole), scratch);
        while (next < to && p->span[next].first + p->span[next].count <= band.end)
            next++;
        pool_rows(p, call, &band, from, next);
        from = next;
        if (from < to)
            drop_rows(p, &band, from);
    }
}

static graphi_status pooled_run(const struct kernel_call *call, int phase, int share)
{
    const struct pooled *p = call->params;
    if (phase < p->last) {
        struct kernel_call conv = *call;
        conv.params = conv_params(p);
        return p->conv(&conv, phase, share);
    }
    const int slot = share_slot(p->slots, p->shares, call->thread, share);
    char *scratch = (char *)call->workspace + p->rows.workspace + (size_t)slot * p->slot_bytes;
    int64_t part, end;
    if (!share_together(least(call->in[0].rows, p->pool.shape.n) * p->parts, p->shares, call->width, share, &part,
                        &end))
        return GRAPHI_OK;
    while (part < end) {
        const struct image_lines l = image_lines_next(p->pool.shape.oh, p->parts, &part, end);
        pool_part(p, call, l.image, l.from, l.to, scratch);
    }
    return GRAPHI_OK;
}

/* --- binding --- */

/* The kernel of the convolution alone, with y as it lies in the scratch. */
static graphi_status bind_conv(const struct conv_spec *spec, enum isa isa, const struct conv_kernel *inner,
                               struct kernel *conv, struct conv_rows *rows)
{
    struct conv_spec alone = *spec;
    alone.pool = NULL;
    alone.epilogue.program = NULL;
    alone.by_rows = true;
    alone.shape.ldy = spec->shape.k;
    TRY(inner->bind(&alone, isa, conv));
    *rows = inner->rows(conv->params);
    rows->workspace = whole_lines(rows->workspace);
    rows->scratch = whole_lines(rows->scratch);
    return GRAPHI_OK;
}

static int64_t rows_at_a_time(const struct conv_shape *s, const struct conv_rows *rows)
{
    const int64_t fit = BAND_BYTES / (4 * s->ow * s->k) / rows->unit * rows->unit;
    return least(most(most(fit, rows->fewest), rows->unit), divide_up(s->oh, rows->unit) * rows->unit);
}

/* No band has more rows than the image. */
static size_t band_bytes(const struct conv_shape *s, const struct pool_shape *pool, int64_t step)
{
    const int64_t rows = least(pool->kh - 1 + step, most(s->oh, step));
    return sizeof(float) * (size_t)(rows * s->ow * s->k);
}

/* Rows that neighbouring parts both make, with what rounding to tiles adds. */
static int64_t shared_rows(const struct pooled *p)
{
    return p->pool.shape.kh - p->pool.shape.stride_h + p->rows.unit - 1;
}

/* One for each image, more where an image has many rows. */
static int pieces_of(const struct pooled *p)
{
    const struct pool_shape *s = &p->pool.shape;
    const int64_t rows = most(PIECE_OVERLAP * shared_rows(p), PIECE_STEPS * p->step);
    return clamp_shares(s->n * least(p->parts, most(s->h / rows, 1)));
}

static bool possible(const struct conv_spec *spec, const struct conv_kernel *inner)
{
    return spec->direction == CONV_FORWARD && inner->rows &&
           (!spec->epilogue.program || spec->epilogue.program->outputs == 1);
}

bool conv_pooled_pays(const struct conv_spec *spec, enum isa isa, const struct conv_kernel *inner)
{
    struct kernel conv;
    struct conv_rows rows;
    const struct conv_shape *s = &spec->shape;
    if (!possible(spec, inner) || s->oh * s->ow < FEWEST_PIXELS || s->n * s->oh < FEWEST_ROWS ||
        (spec->algorithm == CONV_DIRECT && 4 * s->kh * s->kw * (s->c / s->groups) * s->k > WEIGHTS_MOST) ||
        bind_conv(spec, isa, inner, &conv, &rows))
        return false;
    kernel_fini(&conv);
    return rows.fewest && band_bytes(s, &spec->pool->shape, rows_at_a_time(s, &rows)) <= BAND_MOST;
}

static void describe(struct pooled *p, const struct kernel *conv, size_t bytes, struct kernel *kernel)
{
    const struct pool_shape *s = &p->pool.shape;
    const double images = (double)(s->n * s->c), pooled = images * (double)(s->oh * s->ow);
    static const char *const names[2][2] = {{"conv_max_pool", "conv_avg_pool"},
                                            {"conv_winograd_max_pool", "conv_winograd_avg_pool"}};
    *kernel = (struct kernel){.name = names[p->rows.unit > 1][p->pool.kind == POOL_AVERAGE],
                              .run = pooled_run,
                              .params = p,
                              .params_bytes = bytes,
                              .phases = conv->phases,
                              .pieces = pieces_of(p),
                              .workspace = p->rows.workspace + (size_t)p->slots * p->slot_bytes,
                              .flops = conv->flops + pooled * (double)(s->kh * s->kw)};
    memcpy(kernel->shares, conv->shares, sizeof conv->shares);
    kernel->shares[p->last] = p->shares;
    const size_t each = sizeof(float) + (p->pool.places ? graphi_dtype_size(pool_places_type(s)) : 0);
    kernel->bytes = conv->bytes - 4 * images * (double)(s->h * s->w) + pooled * (double)each;
}

graphi_status conv_pooled_bind(const struct conv_spec *spec, enum isa isa, const struct conv_kernel *inner,
                               struct kernel *kernel)
{
    const struct conv_shape *s = &spec->shape;
    struct pool_spec pool = *spec->pool;
    struct kernel conv;
    struct conv_rows rows;
    if (!possible(spec, inner))
        return fail(GRAPHI_UNSUPPORTED, "conv",
                    "found a pool of this convolution's results, expected one of single results forward");
    pool.shape.ldx = s->k;
    TRY(pool_shape_finish(&pool.shape, "conv"));
    if (pool.shape.n != s->n || pool.shape.h != s->oh || pool.shape.w != s->ow || pool.shape.c != s->k)
        return fail(GRAPHI_INVALID, "conv", "found a pool of images %lldx%lldx%lld, expected %lldx%lldx%lld",
                    (long long)pool.shape.h, (long long)pool.shape.w, (long long)pool.shape.c, (long long)s->oh,
                    (long long)s->ow, (long long)s->k);
    struct epilogue epilogue;
    TRY(epilogue_prepare(&spec->epilogue, isa, &epilogue));
    TRY(bind_conv(spec, isa, inner, &conv, &rows));
    const size_t own = (size_t)whole_lines(sizeof(struct pooled) + pool_spans(&pool) * sizeof(struct pool_span));
    struct pooled *p = mem_zalloc(own + conv.params_bytes);
    if (!p) {
        kernel_fini(&conv);
        return fail_memory("conv", own + conv.params_bytes);
    }
    p->pool = pool;
    p->function = pool_function_of(&pool, isa);
    p->epilogue = epilogue;
    p->conv = conv.run;
    p->params_at = own;
    memcpy((char *)p + own, conv.params, conv.params_bytes);
    p->rows = rows;
    p->row = s->ow * s->k;
    p->step = rows_at_a_time(s, &rows);
    p->parts = image_parts(s->n, pool.shape.oh, divide_up(most(PART_OVERLAP * shared_rows(p), 1), pool.shape.stride_h));
    p->last = conv.phases - 1;
    p->shares = clamp_shares(s->n * p->parts);
    p->slots = share_slots(p->shares, spec->threads);
    p->slot_bytes = rows.scratch + (size_t)whole_lines(band_bytes(s, &pool.shape, p->step));
    pool_fill_spans(&p->pool, p->span);
    describe(p, &conv, own + conv.params_bytes, kernel);
    kernel_fini(&conv);
    return GRAPHI_OK;
}
