/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of images and convolutions whose taps move: both read images between pixels. Source: ONNX RoiAlign,
 * DeformConv; what the text leaves open as in ONNX Runtime and PyTorch. Any thread. */
#include "value/element.h"
#include "value/families.h"
#include "value/window.h"

#include <math.h>
#include <string.h>

static void put(graphi_tensor *out, int64_t i, double number)
{
    element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

/* The four pixels around a point, weighted; one outside weighs nothing. */
struct corners {
    int64_t at[4];
    double weight[4];
};

static struct corners corners_of(double y, double x, int64_t height, int64_t width)
{
    struct corners c = {{0}, {0}};
    if (!(y > -1 && y < (double)height && x > -1 && x < (double)width))
        return c;
    const int64_t row = (int64_t)floor(y), column = (int64_t)floor(x);
    for (int k = 0; k < 4; k++) {
        const int64_t r = row + k / 2, q = column + k % 2;
        if (r < 0 || r >= height || q < 0 || q >= width)
            continue;
        c.at[k] = r * width + q;
        c.weight[k] = (1 - fabs(y - (double)r)) * (1 - fabs(x - (double)q));
    }
    return c;
}

struct region {
    int64_t height, width, rows, columns; /* of the image, of the result */
    double top, left, bin_height, bin_width;
    int64_t down, across; /* samples of a bin */
    bool max;
};

/* A point up to one pixel outside counts as one of the edge. */
static double clamped(double at, int64_t size)
{
    return at < 0 ? 0 : at > (double)(size - 1) ? (double)(size - 1) : at;
}

/* The mean of a bin's samples, or the largest of their weighted corners. */
static double region_bin(const struct region *r, const graphi_tensor *x, int64_t base, int64_t row, int64_t column)
{
    double sum = 0, most = 0;
    for (int64_t s = 0; s < r->down * r->across; s++) {
        const double y = r->top + ((double)row + ((double)(s / r->across) + 0.5) / (double)r->down) * r->bin_height;
        const double q =
            r->left + ((double)column + ((double)(s % r->across) + 0.5) / (double)r->across) * r->bin_width;
        struct corners c = {{0}, {0}};
        if (y >= -1 && y <= (double)r->height && q >= -1 && q <= (double)r->width)
            c = corners_of(clamped(y, r->height), clamped(q, r->width), r->height, r->width);
        for (int k = 0; k < 4; k++) {
            const double part = c.weight[k] == 0 ? 0 : c.weight[k] * value_double(x, base + c.at[k]);
            sum += part;
            most = (s == 0 && k == 0) || part > most ? part : most;
        }
    }
    const int64_t samples = r->down * r->across;
    return r->max ? most : sum / (double)(samples ? samples : 1);
}

static graphi_status region_find(const struct op_call *call, int64_t i, struct region *r)
{
    enum { MOST = 1 << 20 }; /* samples of a bin */
    const bool half = strcmp(op_string(call, "coordinate_transformation_mode", "half_pixel"), "half_pixel") == 0;
    const double scale = op_float(call, "spatial_scale", 1);
    const int64_t ratio = op_int(call, "sampling_ratio", 0);
    double edge[4];
    for (int k = 0; k < 4; k++) {
        edge[k] = value_double(call->in[1], i * 4 + k) * scale - (half ? 0.5 : 0);
        if (!(fabs(edge[k]) < 1e9))
            return op_fail(call, "found %g in region %lld, expected a place of an image", edge[k], (long long)i);
    }
    double height = edge[3] - edge[1], width = edge[2] - edge[0];
    if (!half) {
        height = height < 1 ? 1 : height;
        width = width < 1 ? 1 : width;
    }
    r->left = edge[0];
    r->top = edge[1];
    r->bin_height = height / (double)r->rows;
    r->bin_width = width / (double)r->columns;
    r->down = ratio > 0 ? ratio : (int64_t)ceil(r->bin_height);
    r->across = ratio > 0 ? ratio : (int64_t)ceil(r->bin_width);
    r->down = r->down < 0 ? 0 : r->down; /* a region turned around has no samples */
    r->across = r->across < 0 ? 0 : r->across;
    if (r->down > MOST || r->across > MOST || r->down * r->across > MOST)
        return op_fail(call, "found %lld by %lld samples of a bin, expected at most %d", (long long)r->down,
                       (long long)r->across, MOST);
    return GRAPHI_OK;
}

static graphi_status run_regions(struct op_call *call)
{
    struct value_text a, b, c;
    graphi_tensor *out;
    for (int i = 0; i < 3; i++)
        TRY(op_tensor(call, i, 0));
    const graphi_tensor *x = call->in[0], *regions = call->in[1], *images = call->in[2];
    const char *mode = op_string(call, "mode", "avg");
    struct region r = {.rows = op_int(call, "output_height", 1), .columns = op_int(call, "output_width", 1)};
    if (x->rank != 4 || regions->rank != 2 || regions->dims[1] != 4 || images->rank != 1 ||
        images->dims[0] != regions->dims[0] || r.rows < 1 || r.columns < 1)
        return op_fail(call, "found %s, regions %s of images %s, expected [N, C, H, W], [R, 4], [R], and a size",
                       value_describe(x, &a), value_describe(regions, &b), value_describe(images, &c));
    r.height = x->dims[2];
    r.width = x->dims[3];
    r.max = strcmp(mode, "max") == 0;
    if (!r.max && strcmp(mode, "avg") != 0)
        return op_fail(call, "found mode \"%.40s\", expected avg or max", mode);
    const int64_t channels = x->dims[1], bins = r.rows * r.columns;
    TRY(op_new(call, 0, x->type, 4, (int64_t[]){regions->dims[0], channels, r.rows, r.columns}, &out));
    for (int64_t i = 0; i < regions->dims[0]; i++) {
        const int64_t image = value_int(images, i);
        if (image < 0 || image >= x->dims[0])
            return op_fail(call, "found image %lld of region %lld, expected 0 to %lld", (long long)image, (long long)i,
                           (long long)x->dims[0] - 1);
        TRY(region_find(call, i, &r));
        for (int64_t k = 0; k < channels * bins; k++)
            put(out, i * channels * bins + k,
                region_bin(&r, x, (image * channels + k / bins) * r.height * r.width, k % bins / r.columns,
                           k % r.columns));
    }
    return GRAPHI_OK;
}

struct deform {
    struct window w;
    int64_t channels, filters, groups, offset_groups;
    const graphi_tensor *x, *weights, *offsets, *bias, *mask;
};

/* The image at a tap that its offset moves, times the mask. */
static double moved_tap(const struct deform *d, int64_t n, int64_t channel, int64_t tap, const int64_t *out)
{
    const struct window *w = &d->w;
    const int64_t group = channel / (d->channels / d->offset_groups), place = out[0] * w->out[1] + out[1];
    const int64_t first = ((n * d->offset_groups + group) * w->taps + tap) * w->outs + place;
    double at[2];
    for (int i = 0; i < 2; i++) {
        const int64_t index = i ? tap % w->kernel[1] : tap / w->kernel[1];
        const int64_t offset = (((n * d->offset_groups + group) * w->taps + tap) * 2 + i) * w->outs + place;
        at[i] =
            (double)(out[i] * w->stride[i] - w->before[i] + index * w->dilation[i]) + value_double(d->offsets, offset);
    }
    const struct corners c = corners_of(at[0], at[1], w->in[0], w->in[1]);
    double sum = 0;
    for (int k = 0; k < 4; k++)
        if (c.weight[k] != 0)
            sum += c.weight[k] * value_double(d->x, (n * d->channels + channel) * w->ins + c.at[k]);
    return sum * (d->mask ? value_double(d->mask, first) : 1);
}

static double deform_one(const struct deform *d, int64_t n, int64_t filter, const int64_t *out)
{
    const int64_t each = d->channels / d->groups, group = filter / (d->filters / d->groups);
    double sum = d->bias ? value_double(d->bias, filter) : 0;
    for (int64_t c = 0; c < each; c++)
        for (int64_t tap = 0; tap < d->w.taps; tap++)
            sum += moved_tap(d, n, group * each + c, tap, out) *
                   value_double(d->weights, (filter * each + c) * d->w.taps + tap);
    return sum;
}

static bool has_shape(const graphi_tensor *value, int64_t n, int64_t channels, const struct window *w)
{
    return value->rank == 4 && value->dims[0] == n && value->dims[1] == channels && value->dims[2] == w->out[0] &&
           value->dims[3] == w->out[1];
}

static graphi_status deform_find(const struct op_call *call, struct deform *d)
{
    struct value_text a, b, c;
    TRY(op_same_types(call, 0, 5));
    TRY(op_tensor(call, 1, 0));
    TRY(op_tensor(call, 2, 0));
    *d = (struct deform){.x = call->in[0],
                         .weights = call->in[1],
                         .offsets = call->in[2],
                         .bias = op_in(call, 3),
                         .mask = op_in(call, 4),
                         .groups = op_int(call, "group", 1),
                         .offset_groups = op_int(call, "offset_group", 1)};
    const graphi_tensor *x = d->x, *w = d->weights;
    if (x->rank != 4 || w->rank != 4 || d->groups < 1 || d->offset_groups < 1 || w->dims[1] * d->groups != x->dims[1] ||
        w->dims[0] % d->groups != 0 || x->dims[1] % d->offset_groups != 0 || (d->bias && d->bias->count != w->dims[0]))
        return op_fail(call,
                       "found %s, filters %s, expected [N, C, H, W] and [M, C / groups, h, w], groups that divide",
                       value_describe(x, &a), value_describe(w, &b));
    TRY(window_find(call, x, w->dims + 2, &d->w));
    d->channels = x->dims[1];
    d->filters = w->dims[0];
    if (!has_shape(d->offsets, x->dims[0], d->offset_groups * d->w.taps * 2, &d->w) ||
        (d->mask && !has_shape(d->mask, x->dims[0], d->offset_groups * d->w.taps, &d->w)))
        return op_fail(call, "found offsets %s, mask %s, expected %lld by %lld places of %lld taps",
                       value_describe(d->offsets, &a), d->mask ? value_describe(d->mask, &c) : "none",
                       (long long)d->w.out[0], (long long)d->w.out[1], (long long)d->w.taps);
    return GRAPHI_OK;
}

static graphi_status run_deform(struct op_call *call)
{
    struct deform d;
    graphi_tensor *out;
    TRY(deform_find(call, &d));
    const int64_t n = d.x->dims[0];
    TRY(op_new(call, 0, d.x->type, 4, (int64_t[]){n, d.filters, d.w.out[0], d.w.out[1]}, &out));
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t place = i % d.w.outs, filter = i / d.w.outs % d.filters;
        put(out, i,
            deform_one(&d, i / d.w.outs / d.filters, filter, (int64_t[]){place / d.w.out[1], place % d.w.out[1]}));
    }
    return GRAPHI_OK;
}

const struct host_op host_ops_region[] = {
    {"RoiAlign", 3, 3, 1, "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale",
     run_regions, 0},
    {"DeformConv", 3, 5, 1, "dilations group kernel_shape offset_group pads strides", run_deform, 0},
    {0},
};
