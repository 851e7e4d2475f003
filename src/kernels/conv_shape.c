/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of convolutions, and which coordinates use which taps of the window.
 *
 * All pixels whose window lies alike over the border (and, backward with a stride, on the same residue of the stride)
 * use the same taps. Such pixels form runs along each axis; the product of a run of rows and a run of columns is a
 * region that is one matrix product without padding, copies or wasted work. A 3 x 3 window with padding 1 has 3 x 3
 * regions. */
#include "kernels/conv_shape.h"

#include "base/status.h"
#include "kernels/shares.h"

/* Products of two sizes, and sums of such, stay within 63 bits. */
static const int64_t MOST_SIZE = (int64_t)1 << 30;

graphi_status conv_shape_finish(struct conv_shape *s, const char *where)
{
    if (s->n < 0 || s->h < 1 || s->w < 1 || s->c < 1 || s->k < 1 || s->kh < 1 || s->kw < 1)
        return fail(GRAPHI_INVALID, where,
                    "found images %lldx%lldx%lldx%lld with window %lldx%lld to %lld channels, expected 1 or more",
                    (long long)s->n, (long long)s->h, (long long)s->w, (long long)s->c, (long long)s->kh,
                    (long long)s->kw, (long long)s->k);
    if (s->h > (int64_t)1 << 44 || s->w > (int64_t)1 << 44)
        return fail(GRAPHI_INVALID, where, "found images of %lldx%lld, expected at most 2^44 each", (long long)s->h,
                    (long long)s->w);
    if (s->stride_h < 1 || s->stride_w < 1 || s->dilation_h < 1 || s->dilation_w < 1 || s->pad_top < 0 ||
        s->pad_left < 0 || s->pad_bottom < 0 || s->pad_right < 0)
        return fail(GRAPHI_INVALID, where, "found a stride or dilation below 1 or a padding below 0, expected neither");
    if (s->kh > CONV_MAX_TAPS || s->kw > CONV_MAX_TAPS)
        return fail(GRAPHI_UNSUPPORTED, where, "found window %lldx%lld, expected at most %d along a dimension",
                    (long long)s->kh, (long long)s->kw, CONV_MAX_TAPS);
    const int64_t numbers[] = {s->stride_h, s->stride_w, s->dilation_h, s->dilation_w,
                               s->pad_top, s->pad_left, s->pad_bottom, s->pad_right};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] > MOST_SIZE)
            return fail(GRAPHI_INVALID, where,
                        "found a stride, dilation or padding of %lld, expected at most 2^30",
                        (long long)numbers[i]);
    if (s->groups < 1 || s->c % s->groups || s->k % s->groups)
        return fail(GRAPHI_INVALID, where, "found %lld groups, expected a divisor of %lld and %lld channels",
                    (long long)s->groups, (long long)s->c, (long long)s->k);
    int64_t free_h = s->h + s->pad_top + s->pad_bottom - ((s->kh - 1) * s->dilation_h + 1);
    int64_t free_w = s->w + s->pad_left + s->pad_right - ((s->kw - 1) * s->dilation_w + 1);
    if (free_h < 0 || free_w < 0)
        return fail(GRAPHI_INVALID, where,
                    "found window %lldx%lld, expected one that fits into the padded image %lldx%lld", (long long)s->kh,
                    (long long)s->kw, (long long)(s->h + s->pad_top + s->pad_bottom),
                    (long long)(s->w + s->pad_left + s->pad_right));
    s->oh = free_h / s->stride_h + 1;
    s->ow = free_w / s->stride_w + 1;
    if (!s->ldx)
        s->ldx = s->c;
    if (!s->ldy)
        s->ldy = s->k;
    if (s->ldx < s->c || s->ldy < s->k)
        return fail(GRAPHI_INVALID, where, "found pixel strides %lld and %lld, expected at least %lld and %lld",
                    (long long)s->ldx, (long long)s->ldy, (long long)s->c, (long long)s->k);
    return GRAPHI_OK;
}

static uint64_t taps_at(const struct conv_axis *axis, int64_t result)
{
    uint64_t mask = 0;
    for (int64_t t = 0; t < axis->taps; t++) {
        if (axis->backward && (result + axis->pad - t * axis->dilation) % axis->stride)
            continue;
        int64_t numerator = result + axis->pad - t * axis->dilation;
        if (axis->backward && numerator < 0)
            continue;
        int64_t source = conv_source(axis, result, t);
        if (source >= 0 && source < axis->source)
            mask |= UINT64_C(1) << t;
    }
    return mask;
}

int64_t conv_runs(const struct conv_axis *axis, struct conv_run *out)
{
    int64_t step = axis->backward ? axis->stride : 1, runs = 0;
    for (int64_t residue = 0; residue < step && residue < axis->result; residue++) {
        struct conv_run run = {.count = 0};
        for (int64_t at = residue; at < axis->result; at += step) {
            uint64_t taps = taps_at(axis, at);
            if (run.count && taps == run.taps) {
                run.count++;
            } else {
                if (run.count && out)
                    out[runs] = run;
                runs += run.count > 0;
                run = (struct conv_run){at, step, 1, axis->backward ? 1 : axis->stride, taps};
            }
        }
        if (out)
            out[runs] = run;
        runs++;
    }
    return runs;
}

int64_t conv_weight_parts(const struct conv_shape *s, int64_t tiles, int64_t count)
{
    enum { TILES_WANTED = 16, PARTS_MAX = 8, LONG_PART = 8192, SUMS_MAX = 4 << 20 };
    const double flops = 2 * (double)count * (double)(s->n * s->oh * s->ow);
    const bool odd = tiles % 2 && tiles < SHARES_MAX;
    int64_t parts = 1;
    if (flops <= 4e6) /* too little work for a sum of parts */
        return 1;
    if (s->n % 2)
        return least(least(divide_up(TILES_WANTED, tiles), PARTS_MAX), s->n);
    while ((parts * tiles < TILES_WANTED || (parts == 1 && odd)) && parts < PARTS_MAX && 2 * parts <= s->n)
        parts *= 2;
    /* For many threads, where a sum is small beside what it is of: of so many pixels a part, in so many bytes. */
    while (parts * tiles < SHARES_MAX && 2 * parts <= s->n && s->n * s->oh * s->ow >= 2 * parts * LONG_PART &&
           2 * parts * count * 4 <= SUMS_MAX)
        parts *= 2;
    return parts;
}

int64_t conv_row_tiles(int64_t rows, int64_t most)
{
    const int64_t tiles = divide_up(rows, most);
    return tiles > 1 ? divide_up(tiles, 2) * 2 : tiles;
}

double conv_traffic(const struct conv_shape *s)
{
    return 4 * ((double)(s->n * s->h * s->w * s->c) + (double)(s->n * s->oh * s->ow * s->k) +
                (double)(s->kh * s->kw * (s->c / s->groups) * s->k));
}

struct conv_axis conv_axis_y(const struct conv_shape *s, bool backward)
{
    return (struct conv_axis){backward ? s->h : s->oh, backward ? s->oh : s->h, s->kh, s->stride_h, s->dilation_h,
                              s->pad_top, backward};
}

struct conv_axis conv_axis_x(const struct conv_shape *s, bool backward)
{
    return (struct conv_axis){backward ? s->w : s->ow, backward ? s->ow : s->w, s->kw, s->stride_w, s->dilation_w,
                              s->pad_left, backward};
}
