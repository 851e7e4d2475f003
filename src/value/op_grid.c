/* SPDX-License-Identifier: Apache-2.0 */
/* Images sampled at the points of a grid, and grids of affine maps. A point has its own taps in each dimension: one
 * (nearest), two (linear) or four (cubic), and their product is summed. Source: ONNX GridSample, AffineGrid. Any
 * thread. */
#include "value/element.h"
#include "value/families.h"
#include "value/window.h"

#include <math.h>
#include <string.h>

static void put(graphi_tensor *out, int64_t i, double number)
{
    element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

enum padding { ZEROS, BORDER, REFLECTION };

struct sampler {
    int taps; /* a dimension: 1, 2, 4 */
    enum padding padding;
    bool corners;
};

struct line {
    int64_t at[4]; /* -1: in the padding of zeros */
    double weight[4];
};

static double reflect(double x, double low, double high)
{
    const double range = high - low;
    if (range <= 0)
        return low;
    const double far = fmod(fabs(x - low), 2 * range);
    return low + (far > range ? 2 * range - far : far);
}

static void cubic_weights(double x, double *weight)
{
    static const double a = -0.75; /* PyTorch's and ONNX's constant of Keys' kernel */
    const double y = 1 - x;
    weight[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    weight[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    weight[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
    weight[3] = ((a * (y + 1) - 5 * a) * (y + 1) + 8 * a) * (y + 1) - 4 * a;
}

static int64_t place(const struct sampler *s, int64_t i, int64_t size, double low, double high)
{
    if (i >= 0 && i < size)
        return i;
    if (s->padding == ZEROS)
        return -1;
    if (s->padding == REFLECTION)
        i = (int64_t)reflect((double)i, low, high);
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* Taps of one dimension of `size` at a coordinate from -1 to 1; what is not a number lies far outside. */
static void find_line(const struct sampler *s, double coordinate, int64_t size, struct line *line)
{
    const double low = s->corners ? 0 : -0.5, high = (double)size - (s->corners ? 1 : 0.5);
    double x = s->corners ? (coordinate + 1) / 2 * (double)(size - 1) : ((coordinate + 1) * (double)size - 1) / 2;
    x = (double)(float)x;
    if (!(fabs(x) < 1e9))
        x = x > 0 ? 1e9 : -1e9;
    if (s->taps == 1)
        x = rint(x);
    if (s->padding == BORDER)
        x = x < 0 ? 0 : x > (double)(size - 1) ? (double)(size - 1) : x;
    else if (s->padding == REFLECTION && (x < low || x > high))
        x = reflect(x, low, high);
    const int64_t first = s->taps == 1 ? (int64_t)x : (int64_t)floor(x);
    const double rest = x - (double)first;
    line->weight[0] = s->taps == 2 ? 1 - rest : 1;
    line->weight[1] = rest;
    if (s->taps == 4)
        cubic_weights(rest, line->weight);
    for (int k = 0; k < s->taps; k++)
        line->at[k] = place(s, first + k - (s->taps == 4), size, low, high);
}

/* The sum over all taps of an image of `rank` dimensions. */
static double sample(const struct sampler *s, const graphi_tensor *x, int64_t base, int rank, const struct line *lines)
{
    int64_t index[VALUE_RANK] = {0}, taps[VALUE_RANK];
    double sum = 0;
    for (int i = 0; i < rank; i++)
        taps[i] = s->taps;
    do {
        int64_t at = 0;
        double weight = 1;
        for (int i = 0; i < rank && at >= 0; i++) {
            const int64_t place = lines[i].at[index[i]];
            at = place < 0 ? -1 : at * x->dims[i + 2] + place;
            weight *= lines[i].weight[index[i]];
        }
        if (at >= 0)
            sum += weight * value_double(x, base + at);
    } while (window_next(rank, taps, index));
    return sum;
}

static graphi_status find_sampler(const struct op_call *call, struct sampler *s)
{
    const char *mode = op_string(call, "mode", "linear"), *padding = op_string(call, "padding_mode", "zeros");
    static const struct {
        const char *word;
        int taps;
    } modes[] = {{"nearest", 1}, {"linear", 2}, {"cubic", 4}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    int found = -1;
    s->taps = 0;
    for (int i = 0; i < 3; i++) {
        s->taps = strcmp(mode, modes[i].word) == 0 ? modes[i].taps : s->taps;
        found = strcmp(padding, paddings[i]) == 0 ? i : found;
    }
    if (!s->taps || found < 0)
        return op_fail(call,
                       "found mode \"%.40s\" and padding \"%.40s\", expected nearest, linear or cubic, and zeros, "
                       "border or reflection",
                       mode, padding);
    s->padding = (enum padding)found;
    s->corners = op_int(call, "align_corners", 0) != 0;
    return GRAPHI_OK;
}

static graphi_status run_sample(struct op_call *call)
{
    struct sampler s = {0};
    struct value_text a, b;
    struct line lines[VALUE_RANK];
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], points = 1, image = 1;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    TRY(find_sampler(call, &s));
    const graphi_tensor *x = call->in[0], *grid = call->in[1];
    const int rank = x->rank - 2;
    if (rank < 1 || grid->rank != x->rank || grid->dims[0] != x->dims[0] || grid->dims[rank + 1] != rank)
        return op_fail(call, "found %s at grid %s, expected [N, C, D1, ...] and [N, points, ..., dimensions]",
                       value_describe(x, &a), value_describe(grid, &b));
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < rank; i++) {
        dims[i + 2] = grid->dims[i + 1];
        points *= grid->dims[i + 1];
        image *= x->dims[i + 2];
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    if (out->count && !image)
        return op_fail(call, "found %s to sample, expected an image", value_describe(x, &a));
    for (int64_t n = 0; n < x->dims[0] && out->count; n++)
        for (int64_t p = 0; p < points; p++) {
            for (int i = 0; i < rank; i++) /* the grid has the last dimension first */
                find_line(&s, value_double(grid, (n * points + p) * rank + rank - 1 - i), x->dims[i + 2], &lines[i]);
            for (int64_t c = n * x->dims[1]; c < (n + 1) * x->dims[1]; c++)
                put(out, c * points + p, sample(&s, x, c * image, rank, lines));
        }
    return GRAPHI_OK;
}

/* Coordinate i of n from -1 to 1: of the corners, or of the middles of pixels. One pixel's corner is 0. */
static double coordinate(int64_t i, int64_t n, bool corners)
{
    if (corners)
        return n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1 : 0;
    return (2.0 * (double)i + 1) / (double)n - 1;
}

static graphi_status run_affine(struct op_call *call)
{
    struct value_text text;
    graphi_tensor *out;
    int64_t size[VALUE_RANK], dims[VALUE_RANK] = {0}, index[VALUE_RANK] = {0};
    int count;
    TRY(op_tensor(call, 0, 0));
    TRY(op_numbers(call, 1, size, &count));
    const graphi_tensor *theta = call->in[0];
    const int rank = count - 2;
    const bool corners = op_int(call, "align_corners", 0) != 0;
    if (rank < 2 || rank > 3 || theta->rank != 3 || theta->dims[0] != size[0] || theta->dims[1] != rank ||
        theta->dims[2] != rank + 1)
        return op_fail(call, "found theta %s and a size of %d numbers, expected [N, 2, 3] and 4, or [N, 3, 4] and 5",
                       value_describe(theta, &text), count);
    dims[0] = size[0];
    memcpy(dims + 1, size + 2, (size_t)rank * sizeof *dims);
    dims[rank + 1] = rank;
    TRY(op_new(call, 0, theta->type, rank + 2, dims, &out));
    for (int64_t i = 0; i < out->count / rank; i++, (void)window_next(rank + 1, dims, index))
        for (int r = 0; r < rank; r++) {
            const int64_t row = (index[0] * rank + r) * (rank + 1);
            double sum = value_double(theta, row + rank);
            for (int k = 0; k < rank; k++) /* the last dimension first */
                sum += value_double(theta, row + k) * coordinate(index[rank - k], dims[rank - k], corners);
            put(out, i * rank + r, sum);
        }
    return GRAPHI_OK;
}

const struct host_op host_ops_grid[] = {
    {"GridSample", 2, 2, 1, "align_corners mode padding_mode", run_sample, 0},
    {"AffineGrid", 2, 2, 1, "align_corners", run_affine, 0},
    {0},
};
