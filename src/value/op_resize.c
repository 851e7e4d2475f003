/* SPDX-License-Identifier: Apache-2.0 */
/* Resize of any dimensions: each output index has a few source indices with weights along each axis, and the result is
 * the product of these. Nearest has one, linear two, cubic four of them, more where a filter is stretched. Source: ONNX
 * Resize. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

struct axis {
    int64_t n, out, taps;
    double scale, start, end; /* of the region, tf_crop_and_resize */
    int64_t *from;            /* out * taps places; -1: outside */
    double *weight;
    bool *outside; /* of the region: the extrapolation value */
};

struct resize {
    const char *mode, *transform, *nearest;
    double cubic, extrapolation;
    bool exclude, antialias;
};

static double source_of(const struct resize *r, const struct axis *a, int64_t i)
{
    const double x = (double)i, n = (double)a->n, out = (double)a->out;
    if (strcmp(r->transform, "asymmetric") == 0)
        return x / a->scale;
    if (strcmp(r->transform, "align_corners") == 0)
        return a->out == 1 ? 0 : x * (n - 1) / (a->scale * n - 1); /* the size before it is rounded */
    if (strcmp(r->transform, "pytorch_half_pixel") == 0)
        return a->out > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    if (strcmp(r->transform, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / a->scale;
    if (strcmp(r->transform, "tf_crop_and_resize") == 0)
        return a->out > 1 ? a->start * (n - 1) + x * (a->end - a->start) * (n - 1) / (out - 1)
                          : 0.5 * (a->start + a->end) * (n - 1);
    if (strcmp(r->transform, "half_pixel_symmetric") == 0) {
        const double adjusted = out / (a->scale * n), centre = n / 2;
        return centre * (1 - adjusted) + (x + 0.5) / a->scale - 0.5;
    }
    return (x + 0.5) / a->scale - 0.5;
}

static int64_t nearest_of(const struct resize *r, double x)
{
    if (strcmp(r->nearest, "floor") == 0)
        return (int64_t)floor(x);
    if (strcmp(r->nearest, "ceil") == 0)
        return (int64_t)ceil(x);
    return strcmp(r->nearest, "round_prefer_ceil") == 0 ? (int64_t)floor(x + 0.5) : (int64_t)ceil(x - 0.5);
}

static double kernel_of(const struct resize *r, double x)
{
    const double a = r->cubic;
    x = fabs(x);
    if (*r->mode == 'l')
        return x < 1 ? 1 - x : 0;
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static void fill_place(const struct resize *r, const struct axis *a, int64_t i)
{
    const double x = source_of(r, a, i), stretch = r->antialias && a->scale < 1 ? 1 / a->scale : 1;
    int64_t *from = a->from + i * a->taps;
    double *weight = a->weight + i * a->taps, sum = 0;
    a->outside[i] = strcmp(r->transform, "tf_crop_and_resize") == 0 && (x < 0 || x > (double)(a->n - 1));
    if (*r->mode == 'n') {
        const int64_t at = nearest_of(r, x);
        from[0] = at < 0 ? 0 : at >= a->n ? a->n - 1 : at;
        weight[0] = 1;
        return;
    }
    const int64_t first = (int64_t)floor(x) - a->taps / 2 + 1;
    for (int64_t k = 0; k < a->taps; k++) {
        const int64_t at = first + k;
        const bool inside = at >= 0 && at < a->n;
        from[k] = at < 0 ? 0 : at >= a->n ? a->n - 1 : at;
        weight[k] = r->exclude && !inside ? 0 : kernel_of(r, ((double)at - x) / stretch);
        sum += weight[k];
    }
    for (int64_t k = 0; k < a->taps; k++)
        weight[k] /= sum;
}

static graphi_status make_axis(const struct op_call *call, const struct resize *r, struct axis *a)
{
    const double reach = (*r->mode == 'l' ? 1 : 2) * (r->antialias && a->scale < 1 ? 1 / a->scale : 1);
    a->taps = *r->mode == 'n' ? 1 : 2 * (int64_t)ceil(reach);
    const int64_t count = dims_count(2, (int64_t[]){a->out, a->taps}, 8);
    if (count < 0 || (a->n == 0 && a->out > 0))
        return op_fail(call, "found %lld elements resized to %lld, expected some", (long long)a->n, (long long)a->out);
    a->from = mem_alloc((size_t)count * sizeof *a->from);
    a->weight = mem_alloc((size_t)count * sizeof *a->weight);
    a->outside = mem_zalloc((size_t)a->out + 1);
    if (!a->from || !a->weight || !a->outside)
        return fail_memory(call->where, (size_t)count * 16);
    for (int64_t i = 0; i < a->out; i++)
        fill_place(r, a, i);
    return GRAPHI_OK;
}

/* Along one axis: [outer, n, inner] to [outer, out, inner]. */
static void along(const struct axis *a, int64_t outer, int64_t inner, const double *x, double *to, bool extrapolates,
                  double value)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < a->out; i++)
            for (int64_t k = 0; k < inner; k++) {
                double sum = 0;
                for (int64_t t = 0; t < a->taps; t++)
                    sum += a->weight[i * a->taps + t] * x[(o * a->n + a->from[i * a->taps + t]) * inner + k];
                to[(o * a->out + i) * inner + k] = extrapolates && a->outside[i] ? value : sum;
            }
}

static graphi_status run_axes(struct op_call *call, const struct resize *r, struct axis *axes, graphi_tensor *out)
{
    const graphi_tensor *x = call->in[0];
    int64_t dims[VALUE_RANK], most = x->count;
    memcpy(dims, x->dims, sizeof dims);
    for (int d = 0; d < x->rank; d++) {
        dims[d] = out->dims[d];
        const int64_t count = dims_count(x->rank, dims, 8);
        if (count < 0)
            return op_fail(call, "found a size beyond 2^40 bytes, expected less");
        most = count > most ? count : most;
    }
    double *now = mem_alloc((size_t)most * sizeof *now), *next = mem_alloc((size_t)most * sizeof *next);
    graphi_status status = now && next ? GRAPHI_OK : fail_memory(call->where, (size_t)most * sizeof *now);
    for (int64_t i = 0; i < x->count && status == GRAPHI_OK; i++)
        now[i] = value_double(x, i);
    int64_t outer = 1, inner = x->count;
    for (int d = 0; d < x->rank && status == GRAPHI_OK; d++) {
        inner = x->dims[d] ? inner / x->dims[d] : 0;
        if (axes[d].out != axes[d].n || axes[d].scale != 1 || strcmp(r->transform, "tf_crop_and_resize") == 0) {
            status = make_axis(call, r, &axes[d]);
            if (status != GRAPHI_OK)
                break;
            along(&axes[d], outer, inner, now, next, true, r->extrapolation);
            double *swap = now;
            now = next;
            next = swap;
        }
        outer *= axes[d].out;
    }
    if (status == GRAPHI_OK)
        element_store(DOMAIN_F64, out->type, now, out->count, out->data);
    mem_free(now);
    mem_free(next);
    return status;
}

/* One scale for all given axes, where the picture's proportions are kept. */
static void keep_proportions(const struct op_call *call, struct axis *axes, const bool *given, int rank)
{
    const char *proportions = op_string(call, "keep_aspect_ratio_policy", "stretch");
    double scale = 0;
    if (strcmp(proportions, "stretch") == 0)
        return;
    for (int d = 0; d < rank; d++)
        if (given[d])
            scale = scale == 0                          ? axes[d].scale
                    : strcmp(proportions, "not_larger") == 0 ? fmin(scale, axes[d].scale)
                                                        : fmax(scale, axes[d].scale);
    for (int d = 0; d < rank; d++)
        if (given[d]) {
            axes[d].scale = scale;
            axes[d].out = (int64_t)floor(scale * (double)axes[d].n + 0.5);
        }
}

static graphi_status find_axes(const struct op_call *call, struct axis *axes)
{
    const graphi_tensor *x = call->in[0], *region = op_in(call, 1), *scales = op_in(call, 2), *sizes = op_in(call, 3);
    int64_t list[VALUE_RANK];
    bool given[VALUE_RANK] = {false};
    int count;
    TRY(op_list(call, 9, "axes", list, &count));
    const int used = count < 0 ? x->rank : count;
    scales = scales && scales->count ? scales : NULL;
    if (!scales == !sizes || (scales ? scales : sizes)->count != used)
        return op_fail(call, "found %s scales and sizes, expected one of both for %d axes", scales ? "both" : "no",
                       used);
    for (int d = 0; d < x->rank; d++)
        axes[d] = (struct axis){.n = x->dims[d], .out = x->dims[d], .scale = 1, .end = 1};
    for (int k = 0, d; k < used; k++) {
        TRY(op_axis(call, count < 0 ? k : list[k], x->rank, &d));
        given[d] = true;
        const double scale = scales ? value_double(scales, k) : (double)value_int(sizes, k) / (double)x->dims[d];
        if (!(scale >= 0) || scale > 0x1p31)
            return op_fail(call, "found scale %g of axis %d, expected one above 0", scale, d);
        axes[d].scale = scale;
        axes[d].out = scales ? (int64_t)floor(scale * (double)x->dims[d]) : value_int(sizes, k);
        if (region && region->count == 2 * used) {
            axes[d].start = value_double(region, k);
            axes[d].end = value_double(region, used + k);
        }
    }
    if (sizes)
        keep_proportions(call, axes, given, x->rank);
    return GRAPHI_OK;
}

static graphi_status run_resize(struct op_call *call)
{
    struct resize r = {.mode = op_string(call, "mode", "nearest"),
                       .transform = op_string(call, "coordinate_transformation_mode", "half_pixel"),
                       .nearest = op_string(call, "nearest_mode", "round_prefer_floor"),
                       .cubic = op_float(call, "cubic_coeff_a", -0.75f),
                       .extrapolation = op_float(call, "extrapolation_value", 0),
                       .exclude = op_int(call, "exclude_outside", 0) != 0,
                       .antialias = op_int(call, "antialias", 0) != 0};
    struct axis axes[VALUE_RANK];
    int64_t dims[VALUE_RANK];
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    if (strcmp(r.mode, "nearest") && strcmp(r.mode, "linear") && strcmp(r.mode, "cubic"))
        return op_fail(call, "found mode \"%s\", expected nearest, linear or cubic", r.mode);
    TRY(find_axes(call, axes));
    for (int d = 0; d < call->in[0]->rank; d++)
        dims[d] = axes[d].out;
    TRY(op_new(call, 0, call->in[0]->type, call->in[0]->rank, dims, &out));
    const graphi_status status = run_axes(call, &r, axes, out);
    for (int d = 0; d < call->in[0]->rank; d++) {
        mem_free(axes[d].from);
        mem_free(axes[d].weight);
        mem_free(axes[d].outside);
    }
    return status;
}

#define ATTRIBUTES                                                                                                     \
    "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "                 \
    "keep_aspect_ratio_policy mode nearest_mode"
const struct host_op host_ops_resize[] = {
    {"Resize", 1, 4, 1, ATTRIBUTES, run_resize, 0},
    {0},
};
