/* SPDX-License-Identifier: Apache-2.0 */
/* Operations as test_differential.c tries them: how shapes and attributes are drawn, how the public API builds it, and
 * its definition in double precision on dense arrays. A new kind is three functions and a line of the table. */
#ifndef TESTS_DEFINITIONS_H
#define TESTS_DEFINITIONS_H

#include "base/random.h"
#include "graphi/graphi.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 4, NUMBERS = 12 };

struct tensor {
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
};

/* One operation with its arguments. Numbers are attributes, in an order of the kind's own. */
struct problem {
    const struct kind *kind;
    uint64_t key, used; /* of random numbers */
    int inputs, ids;    /* ids: the input that holds integers below `below`, 0: none */
    int64_t below, terms;
    struct tensor in[INPUTS], out;
    int64_t number[NUMBERS];
    double least; /* of numbers: 0.1 where logarithms or divisions are taken */
};

struct kind {
    const char *name;
    void (*draw)(struct problem *p); /* shapes and attributes; terms stays 0 where they do not fit */
    graphi_value (*build)(graphi_graph *g, const struct problem *p, const graphi_value *in);
    void (*define)(const struct problem *p, double *const *in, double *out);
    double tolerance; /* relative to 1 + the magnitude of the terms (`sums`), or of the result */
    bool sums;        /* of products: the definition of magnitudes gives the size of the terms */
    bool kinks;       /* rounding to bfloat16 may choose another side */
};

static int64_t roll(struct problem *p, int64_t sides)
{
    return (int64_t)((uint64_t)random_philox(p->key, 0, p->used++).v[0] * (uint64_t)sides >> 32);
}

/* A size about which blocks, vectors and tiles end, at most `most`. */
static int64_t size_of(struct problem *p, int64_t most)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 129, 200};
    int count = 0;
    while (count < (int)(sizeof sizes / sizeof *sizes) && sizes[count] <= most)
        count++;
    return sizes[roll(p, count)];
}

static int64_t count_of(const struct tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dims[i];
    return count;
}

#define SHAPE(...)                                                                                                     \
    (struct tensor)                                                                                                    \
    {                                                                                                                  \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                                                     \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* Position i of `of`, read where a tensor that broadcasts to it has it (numpy's rule). */
static int64_t broadcast_at(const struct tensor *of, int64_t i, const struct tensor *t)
{
    int64_t at = 0, step = 1;
    for (int d = of->rank - 1, s = t->rank - 1; s >= 0; i /= of->dims[d--], s--) {
        at += t->dims[s] > 1 ? i % of->dims[d] * step : 0;
        step *= t->dims[s];
    }
    return at;
}

/* --- convolutions and what may follow them --- */

enum { STRIDE, STRIDE_W, TOP, LEFT, BOTTOM, RIGHT, DILATION, DILATION_W, GROUPS, POOL, POOL_STRIDE, CEIL = 9, INCLUDE };

static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after, bool up)
{
    int64_t room = size + before + after - kernel, count = room < 0 ? 0 : room / stride + 1;
    if (up && room >= 0 && room % stride && count * stride < size + before)
        count++;
    return count;
}

static void draw_conv_of(struct problem *p, bool depthwise)
{
    int64_t *a = p->number, groups = depthwise ? size_of(p, 200) : roll(p, 3) ? 1 : 1 + roll(p, 5);
    int64_t c = depthwise ? 1 : size_of(p, groups > 1 ? 17 : 70), k = depthwise ? 1 : size_of(p, groups > 1 ? 17 : 130);
    bool square = roll(p, 2), one = !roll(p, 4);
    int64_t kh = one ? 1 : 1 + roll(p, 7), kw = square ? kh : 1 + roll(p, 11);
    bool plain = roll(p, 2); /* strides and dilations of 1, as Winograd's algorithm takes them */
    if (plain && square && !one)
        kh = kw = roll(p, 2) ? 3 : 5;
    p->in[0] = SHAPE(roll(p, 2) ? 1 : 1 + roll(p, 5), size_of(p, 33), size_of(p, 47), c * groups);
    p->in[1] = SHAPE(kh, kw, c, k * groups);
    p->inputs = 2;
    for (int i = 0; i < 8; i++)
        a[i] = i >= TOP && i <= RIGHT ? roll(p, roll(p, 4) ? kh / 2 + 1 : 9) : plain ? 1 : 1 + roll(p, i < TOP ? 4 : 3);
    a[GROUPS] = groups;
    int64_t oh = windows(p->in[0].dims[1], (kh - 1) * a[DILATION] + 1, a[STRIDE], a[TOP], a[BOTTOM], false);
    int64_t ow = windows(p->in[0].dims[2], (kw - 1) * a[DILATION_W] + 1, a[STRIDE_W], a[LEFT], a[RIGHT], false);
    p->out = SHAPE(p->in[0].dims[0], oh, ow, k * groups);
    p->terms = count_of(&p->out) * kh * kw * c;
}

static void draw_conv(struct problem *p)
{
    draw_conv_of(p, false);
}
static void draw_depthwise(struct problem *p)
{
    draw_conv_of(p, true);
}

static graphi_value build_conv(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    const int64_t *a = p->number;
    return graphi_conv2d(g, in[0], in[1], a + STRIDE, 2, a + TOP, 4, a + DILATION, 2, a[GROUPS]);
}

static void define_conv_at(const struct problem *p, const int64_t *y, double *const *in, double *out)
{
    const int64_t *x = p->in[0].dims, *w = p->in[1].dims, *a = p->number, each = y[3] / a[GROUPS];
    for (int64_t o = 0; o < y[0] * y[1] * y[2] * y[3]; o++) {
        int64_t k = o % y[3], ox = o / y[3] % y[2], oy = o / y[3] / y[2] % y[1], n = o / y[3] / y[2] / y[1];
        out[o] = 0;
        for (int64_t t = 0; t < w[0] * w[1]; t++) {
            int64_t iy = oy * a[STRIDE] - a[TOP] + t / w[1] * a[DILATION];
            int64_t ix = ox * a[STRIDE_W] - a[LEFT] + t % w[1] * a[DILATION_W];
            if (iy < 0 || ix < 0 || iy >= x[1] || ix >= x[2])
                continue;
            for (int64_t c = 0; c < w[2]; c++)
                out[o] += in[0][((n * x[1] + iy) * x[2] + ix) * x[3] + k / each * w[2] + c] *
                          in[1][(t * w[2] + c) * w[3] + k];
        }
    }
}

static void define_conv(const struct problem *p, double *const *in, double *out)
{
    define_conv_at(p, p->out.dims, in, out);
}

/* Largest element of square windows without padding. */
static void define_pool_of(const int64_t *x, const double *from, int64_t kernel, int64_t stride, const int64_t *y,
                           double *out)
{
    for (int64_t o = 0; o < y[0] * y[1] * y[2] * y[3]; o++) {
        int64_t c = o % y[3], ox = o / y[3] % y[2], oy = o / y[3] / y[2] % y[1], n = o / y[3] / y[2] / y[1];
        out[o] = -HUGE_VAL;
        for (int64_t t = 0; t < kernel * kernel; t++) {
            int64_t iy = oy * stride + t / kernel, ix = ox * stride + t % kernel;
            out[o] = fmax(out[o], from[((n * x[1] + iy) * x[2] + ix) * x[3] + c]);
        }
    }
}

/* max_pool(relu(conv(x, w) + bias)): one kernel where that pays. */
static void draw_layer(struct problem *p)
{
    draw_conv_of(p, !roll(p, 6));
    int64_t *a = p->number, *y = p->out.dims, kernel = 1 + roll(p, 3), stride = 1 + roll(p, 3);
    p->in[2] = SHAPE(y[3]);
    p->inputs = 3;
    a[POOL] = kernel;
    a[POOL_STRIDE] = stride;
    p->out.dims[1] = windows(y[1], kernel, stride, 0, 0, false);
    p->out.dims[2] = windows(y[2], kernel, stride, 0, 0, false);
    if (count_of(&p->out) == 0)
        p->terms = 0;
}

static graphi_value build_layer(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    const int64_t *a = p->number, kernel[] = {a[POOL], a[POOL]}, stride[] = {a[POOL_STRIDE], a[POOL_STRIDE]};
    graphi_value y = graphi_relu(g, graphi_add(g, build_conv(g, p, in), in[2]));
    return graphi_max_pool(g, y, kernel, 2, stride, 2, (int64_t[4]){0}, 4, 0);
}

static void define_layer(const struct problem *p, double *const *in, double *out)
{
    const int64_t *a = p->number, *x = p->in[0].dims, *w = p->in[1].dims;
    int64_t y[] = {x[0], windows(x[1], (w[0] - 1) * a[DILATION] + 1, a[STRIDE], a[TOP], a[BOTTOM], false),
                   windows(x[2], (w[1] - 1) * a[DILATION_W] + 1, a[STRIDE_W], a[LEFT], a[RIGHT], false), w[3]};
    double *whole = malloc(sizeof *whole * (size_t)(y[0] * y[1] * y[2] * y[3]));
    define_conv_at(p, y, in, whole);
    for (int64_t i = 0; i < y[0] * y[1] * y[2] * y[3]; i++)
        whole[i] = fmax(0, whole[i] + in[2][i % y[3]]);
    define_pool_of(y, whole, a[POOL], a[POOL_STRIDE], p->out.dims, out);
    free(whole);
}

/* --- products --- */

enum { TRANS_A, TRANS_B };

static void draw_matmul(struct problem *p)
{
    int64_t m = size_of(p, 200), n = size_of(p, 200), k = size_of(p, 200);
    int ranks[] = {2 + (int)roll(p, 4), 2 + (int)roll(p, 4)}, leads = (ranks[0] > ranks[1] ? ranks[0] : ranks[1]) - 2;
    int64_t lead[3];
    p->number[TRANS_A] = roll(p, 2);
    p->number[TRANS_B] = roll(p, 2);
    const int64_t last[2][2] = {{p->number[TRANS_A] ? k : m, p->number[TRANS_A] ? m : k},
                                {p->number[TRANS_B] ? n : k, p->number[TRANS_B] ? k : n}};
    p->inputs = 2;
    p->out.rank = leads + 2;
    for (int d = 0; d < leads; d++)
        p->out.dims[d] = lead[d] = 1 + roll(p, 4);
    for (int i = 0; i < 2; i++) {
        p->in[i].rank = ranks[i];
        for (int d = 0; d < ranks[i] - 2; d++) /* one of the two may repeat it */
            p->in[i].dims[d] = roll(p, 3) == i ? 1 : lead[d + leads - (ranks[i] - 2)];
        memcpy(p->in[i].dims + ranks[i] - 2, last[i], sizeof last[i]);
    }
    for (int d = 0; d < leads; d++) { /* whether anybody has it */
        int64_t most = 1;
        for (int i = 0; i < 2; i++) {
            int at = d - leads + ranks[i] - 2;
            most = at >= 0 && p->in[i].dims[at] > most ? p->in[i].dims[at] : most;
        }
        p->out.dims[d] = most;
    }
    p->out.dims[leads] = m;
    p->out.dims[leads + 1] = n;
    p->terms = count_of(&p->out) * k;
}

static graphi_value build_matmul(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_matmul(g, in[0], in[1], p->number[TRANS_A], p->number[TRANS_B]);
}

static void define_matmul(const struct problem *p, double *const *in, double *out)
{
    const struct tensor *a = &p->in[0], *b = &p->in[1], *y = &p->out;
    const int64_t m = y->dims[y->rank - 2], n = y->dims[y->rank - 1], *la = a->dims + a->rank - 2,
                  *lb = b->dims + b->rank - 2, k = la[!p->number[TRANS_A]];
    struct tensor products = *y, lead_a = *a, lead_b = *b;
    products.rank -= 2;
    lead_a.rank -= 2;
    lead_b.rank -= 2;
    for (int64_t i = 0; i < count_of(y); i++) {
        int64_t r = i / n % m, c = i % n, batch = i / n / m;
        const double *x = in[0] + broadcast_at(&products, batch, &lead_a) * la[0] * la[1];
        const double *w = in[1] + broadcast_at(&products, batch, &lead_b) * lb[0] * lb[1];
        out[i] = 0;
        for (int64_t s = 0; s < k; s++)
            out[i] += x[p->number[TRANS_A] ? s * m + r : r * k + s] * w[p->number[TRANS_B] ? c * k + s : s * n + c];
    }
}

/* --- pools --- */

static void draw_pool(struct problem *p)
{
    int64_t *a = p->number, kh = 1 + roll(p, 6), kw = 1 + roll(p, 6);
    p->in[0] = SHAPE(1 + roll(p, 3), size_of(p, 17), size_of(p, 17), size_of(p, 129));
    p->inputs = 1;
    a[STRIDE] = 1 + roll(p, 8); /* windows that overlap, touch, and lie apart */
    a[STRIDE_W] = 1 + roll(p, 8);
    for (int i = TOP; i <= RIGHT; i++)
        a[i] = roll(p, i % 2 ? kw : kh);
    a[DILATION] = kh;
    a[DILATION_W] = kw;
    a[CEIL] = roll(p, 2);
    a[INCLUDE] = roll(p, 2);
    p->out = SHAPE(p->in[0].dims[0], windows(p->in[0].dims[1], kh, a[STRIDE], a[TOP], a[BOTTOM], a[CEIL]),
                   windows(p->in[0].dims[2], kw, a[STRIDE_W], a[LEFT], a[RIGHT], a[CEIL]), p->in[0].dims[3]);
    p->terms = count_of(&p->out) * kh * kw;
}

static graphi_value build_max_pool(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    const int64_t *a = p->number;
    return graphi_max_pool(g, in[0], a + DILATION, 2, a + STRIDE, 2, a + TOP, 4, a[CEIL]);
}

static graphi_value build_avg_pool(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    const int64_t *a = p->number;
    return graphi_avg_pool(g, in[0], a + DILATION, 2, a + STRIDE, 2, a + TOP, 4, a[CEIL], a[INCLUDE]);
}

static void define_pool(const struct problem *p, bool max, const double *in, double *out)
{
    const int64_t *x = p->in[0].dims, *y = p->out.dims, *a = p->number;
    for (int64_t o = 0; o < count_of(&p->out); o++) {
        int64_t c = o % y[3], ox = o / y[3] % y[2], oy = o / y[3] / y[2] % y[1], n = o / y[3] / y[2] / y[1];
        double sum = 0, most = -HUGE_VAL, count = 0;
        for (int64_t t = 0; t < a[DILATION] * a[DILATION_W]; t++) {
            int64_t iy = oy * a[STRIDE] - a[TOP] + t / a[DILATION_W];
            int64_t ix = ox * a[STRIDE_W] - a[LEFT] + t % a[DILATION_W];
            bool inside = iy >= 0 && ix >= 0 && iy < x[1] && ix < x[2];
            count += inside || (a[INCLUDE] && iy < x[1] + a[BOTTOM] && ix < x[2] + a[RIGHT]);
            double value = inside ? in[((n * x[1] + iy) * x[2] + ix) * x[3] + c] : 0;
            sum += value;
            most = inside ? fmax(most, value) : most;
        }
        out[o] = max ? most : sum / count;
    }
}

static void define_max_pool(const struct problem *p, double *const *in, double *out)
{
    define_pool(p, true, in[0], out);
}

static void define_avg_pool(const struct problem *p, double *const *in, double *out)
{
    define_pool(p, false, in[0], out);
}

/* --- reductions, softmax, normalization --- */

enum { AXES, KEEP, AXIS };

static void draw_any(struct problem *p, int64_t most)
{
    p->in[0].rank = 1 + (int)roll(p, 5);
    int64_t left = 1 << 13;
    for (int d = 0; d < p->in[0].rank; d++) {
        p->in[0].dims[d] = roll(p, 4) ? size_of(p, left < most ? left : most) : 1;
        left /= p->in[0].dims[d];
    }
    p->inputs = 1;
    p->out = p->in[0];
    p->terms = count_of(&p->in[0]);
}

static void draw_reduce(struct problem *p)
{
    draw_any(p, 200);
    p->number[AXES] = 1 + roll(p, (1 << p->in[0].rank) - 1);
    p->number[KEEP] = roll(p, 2);
    p->out.rank = 0;
    for (int d = 0; d < p->in[0].rank; d++)
        if (!(p->number[AXES] >> d & 1) || p->number[KEEP])
            p->out.dims[p->out.rank++] = p->number[AXES] >> d & 1 ? 1 : p->in[0].dims[d];
}

static const char *const reductions[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_sum_squares"};

static graphi_value build_reduce(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    int64_t axes[GRAPHI_MAX_RANK];
    int count = 0;
    for (int d = 0; d < p->in[0].rank; d++)
        if (p->number[AXES] >> d & 1)
            axes[count++] = d;
    const graphi_attribute a[] = {graphi_ints("axes", axes, count), graphi_int("keepdims", p->number[KEEP])};
    return graphi_op(g, p->kind->name, 1, in, 2, a);
}

static void define_reduce(const struct problem *p, double *const *in, double *out)
{
    const struct tensor *x = &p->in[0];
    struct tensor kept = *x;
    int which = 0;
    while (strcmp(reductions[which], p->kind->name) != 0)
        which++;
    for (int d = 0; d < x->rank; d++)
        kept.dims[d] = p->number[AXES] >> d & 1 ? 1 : x->dims[d];
    const double terms = (double)(count_of(x) / count_of(&kept));
    for (int64_t i = 0; i < count_of(&kept); i++)
        out[i] = which == 2 ? -HUGE_VAL : 0;
    for (int64_t i = 0; i < count_of(x); i++) {
        double *to = &out[broadcast_at(x, i, &kept)], value = in[0][i];
        *to = which == 2 ? fmax(*to, value) : *to + (which == 1 ? value / terms : which == 3 ? value * value : value);
    }
}

static void draw_rows(struct problem *p)
{
    draw_any(p, 200);
}

static graphi_value build_unary(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_op(g, p->kind->name, 1, in, 0, NULL);
}

static void define_softmax(const struct problem *p, double *const *in, double *out)
{
    const int64_t c = p->in[0].dims[p->in[0].rank - 1];
    bool logarithm = *p->kind->name == 'l';
    for (int64_t i = 0; i < count_of(&p->in[0]); i += c) {
        double sum = 0;
        for (int64_t j = 0; j < c; j++)
            sum += exp(in[0][i + j]);
        for (int64_t j = 0; j < c; j++)
            out[i + j] = logarithm ? in[0][i + j] - log(sum) : exp(in[0][i + j]) / sum;
    }
}

static void draw_entropy(struct problem *p)
{
    p->in[0] = SHAPE(size_of(p, 65), size_of(p, 200));
    p->in[1] = SHAPE(p->in[0].dims[0]);
    p->inputs = 2;
    p->ids = 1;
    p->below = p->in[0].dims[1];
    p->out.rank = 0;
    p->terms = count_of(&p->in[0]);
}

static graphi_value build_entropy(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_softmax_cross_entropy(g, in[0], in[1]);
}

static void define_entropy(const struct problem *p, double *const *in, double *out)
{
    const int64_t rows = p->in[0].dims[0], c = p->in[0].dims[1];
    *out = 0;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t j = 0; j < c; j++)
            sum += exp(in[0][r * c + j]);
        *out += (log(sum) - in[0][r * c + (int64_t)in[1][r]]) / (double)rows;
    }
}

static void draw_norm(struct problem *p)
{
    p->in[0] = SHAPE(1 + roll(p, 4), size_of(p, 9), 1 + size_of(p, 9), size_of(p, 129));
    p->in[1] = p->in[2] = SHAPE(p->in[0].dims[3]);
    p->inputs = 3;
    p->out = p->in[0];
    p->terms = count_of(&p->out);
}

static graphi_value build_norm(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_batch_norm(g, in[0], in[1], in[2], 1e-2);
}

static void define_norm(const struct problem *p, double *const *in, double *out)
{
    const int64_t count = count_of(&p->in[0]), c = p->in[0].dims[3];
    const double rows = (double)(count / c);
    for (int64_t j = 0; j < c; j++) {
        double mean = 0, variance = 0;
        for (int64_t i = j; i < count; i += c)
            mean += in[0][i] / rows;
        for (int64_t i = j; i < count; i += c)
            variance += (in[0][i] - mean) * (in[0][i] - mean) / rows;
        for (int64_t i = j; i < count; i += c)
            out[i] = (in[0][i] - mean) / sqrt(variance + 1e-2) * in[1][j] + in[2][j];
    }
}

static void draw_lrn(struct problem *p)
{
    p->in[0] = SHAPE(1 + roll(p, 3), size_of(p, 5), size_of(p, 5), size_of(p, 129));
    p->inputs = 1;
    p->out = p->in[0];
    p->number[AXIS] = 1 + roll(p, 9);
    p->terms = count_of(&p->out);
}

static graphi_value build_lrn(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_lrn(g, in[0], p->number[AXIS], 0.5, 0.75, 1.5);
}

static void define_lrn(const struct problem *p, double *const *in, double *out)
{
    const int64_t c = p->in[0].dims[3], size = p->number[AXIS];
    for (int64_t i = 0; i < count_of(&p->out); i++) {
        double sum = 0;
        for (int64_t j = i % c - (size - 1) / 2; j <= i % c + size / 2; j++)
            sum += j >= 0 && j < c ? in[0][i - i % c + j] * in[0][i - i % c + j] : 0;
        out[i] = in[0][i] * pow(1.5 + 0.5 / (double)size * sum, -0.75);
    }
}

/* --- element by element, and moves --- */

static const char *const chain[] = {"tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "softplus", "square", "relu"};
enum { LINKS = sizeof chain / sizeof *chain };

/* unary((a op b) op c), all of them broadcast to one shape. */
static void draw_elements(struct problem *p)
{
    draw_any(p, 200);
    p->inputs = 3;
    p->least = 0.1;
    for (int i = 1; i < 3; i++) {
        int skip = (int)roll(p, p->in[0].rank);
        p->in[i].rank = p->in[0].rank - skip;
        for (int d = 0; d < p->in[i].rank; d++)
            p->in[i].dims[d] = roll(p, 3) ? p->in[0].dims[d + skip] : 1;
    }
    for (int i = 0; i < 3; i++)
        p->number[i] = roll(p, i < 2 ? 4 : LINKS);
}

static graphi_value build_elements(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    static const char *const op[] = {"add", "mul", "div", "max"};
    graphi_value y = graphi_op(g, op[p->number[0]], 2, (graphi_value[]){in[0], in[1]}, 0, NULL);
    y = graphi_op(g, op[p->number[1]], 2, (graphi_value[]){y, in[2]}, 0, NULL);
    return graphi_op(g, chain[p->number[2]], 1, &y, 0, NULL);
}

static double joined(int64_t op, double a, double b)
{
    return op == 0 ? a + b : op == 1 ? a * b : op == 2 ? a / b : fmax(a, b);
}

static void define_elements(const struct problem *p, double *const *in, double *out)
{
    for (int64_t i = 0; i < count_of(&p->out); i++) {
        double y = joined(p->number[0], in[0][i], in[1][broadcast_at(&p->out, i, &p->in[1])]);
        y = joined(p->number[1], y, in[2][broadcast_at(&p->out, i, &p->in[2])]);
        const double value[LINKS] = {tanh(y),     1 / (1 + exp(-y)), exp(y), log(y),    sqrt(y),
                                     1 / sqrt(y), log1p(exp(y)),     y * y,  fmax(y, 0)};
        out[i] = value[p->number[2]];
    }
}

static void draw_transpose(struct problem *p)
{
    draw_any(p, 129);
    for (int d = 0; d < p->in[0].rank; d++)
        p->number[d] = d;
    for (int d = p->in[0].rank - 1; d > 0; d--) {
        int other = (int)roll(p, d + 1);
        int64_t kept = p->number[d];
        p->number[d] = p->number[other];
        p->number[other] = kept;
    }
    for (int d = 0; d < p->in[0].rank; d++)
        p->out.dims[d] = p->in[0].dims[p->number[d]];
}

static graphi_value build_transpose(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_transpose(g, in[0], p->number, p->in[0].rank);
}

static void define_transpose(const struct problem *p, double *const *in, double *out)
{
    for (int64_t i = 0; i < count_of(&p->out); i++) {
        int64_t rest = i, at[GRAPHI_MAX_RANK], from = 0;
        for (int d = p->out.rank - 1; d >= 0; rest /= p->out.dims[d--])
            at[p->number[d]] = rest % p->out.dims[d];
        for (int d = 0; d < p->in[0].rank; d++)
            from = from * p->in[0].dims[d] + at[d];
        out[i] = in[0][from];
    }
}

/* Two arrays one after the other, then a part of both with a border. */
static void draw_parts(struct problem *p)
{
    draw_any(p, 65);
    int axis = (int)roll(p, p->in[0].rank);
    p->number[AXIS] = axis;
    p->in[1] = p->in[0];
    p->in[1].dims[axis] = size_of(p, 33);
    p->inputs = 2;
    int64_t both = p->in[0].dims[axis] + p->in[1].dims[axis];
    p->number[4] = roll(p, both);
    p->number[5] = p->number[4] + 1 + roll(p, both - p->number[4]);
    p->number[6] = roll(p, 3);
    p->number[7] = roll(p, 3);
    p->out = p->in[0];
    p->out.dims[axis] = p->number[5] - p->number[4] + p->number[6] + p->number[7];
    p->terms = count_of(&p->in[0]) + count_of(&p->in[1]);
}

static graphi_value build_parts(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    int64_t before[GRAPHI_MAX_RANK] = {0}, after[GRAPHI_MAX_RANK] = {0};
    before[p->number[AXIS]] = p->number[6];
    after[p->number[AXIS]] = p->number[7];
    graphi_value both = graphi_concat(g, 2, in, p->number[AXIS]);
    graphi_value y = graphi_slice(g, both, p->number[AXIS], p->number[4], p->number[5]);
    return graphi_pad(g, y, before, p->in[0].rank, after, p->in[0].rank, 0);
}

static void define_parts(const struct problem *p, double *const *in, double *out)
{
    const int axis = (int)p->number[AXIS];
    int64_t inner = 1, first = p->in[0].dims[axis], second = p->in[1].dims[axis], all = p->out.dims[axis];
    for (int d = axis + 1; d < p->out.rank; d++)
        inner *= p->out.dims[d];
    for (int64_t i = 0; i < count_of(&p->out); i++) {
        int64_t j = i / inner % all - p->number[6] + p->number[4], outer = i / inner / all, c = i % inner;
        out[i] = j < p->number[4] || j >= p->number[5] ? 0
                 : j < first                           ? in[0][(outer * first + j) * inner + c]
                                                       : in[1][(outer * second + j - first) * inner + c];
    }
}

static void draw_embedding(struct problem *p)
{
    p->in[0] = SHAPE(size_of(p, 129), size_of(p, 129));
    p->in[1] = roll(p, 2) ? SHAPE(size_of(p, 129)) : SHAPE(size_of(p, 9), size_of(p, 9));
    p->inputs = 2;
    p->ids = 1;
    p->below = p->in[0].dims[0];
    p->out = p->in[1];
    p->out.dims[p->out.rank++] = p->in[0].dims[1];
    p->terms = count_of(&p->out);
}

static graphi_value build_embedding(graphi_graph *g, const struct problem *p, const graphi_value *in)
{
    return graphi_embedding(g, in[0], in[1]);
}

static void define_embedding(const struct problem *p, double *const *in, double *out)
{
    const int64_t c = p->in[0].dims[1];
    for (int64_t i = 0; i < count_of(&p->out); i++)
        out[i] = in[0][(int64_t)in[1][i / c] * c + i % c];
}

#define KIND(title, shapes, made, meant, bound, ...)                                                                   \
    {                                                                                                                  \
        .name = title, .draw = shapes, .build = made, .define = meant, .tolerance = bound, __VA_ARGS__                 \
    }
static const struct kind kinds[] = {
    KIND("conv2d", draw_conv, build_conv, define_conv, 4e-6, .sums = true),
    KIND("depthwise conv2d", draw_depthwise, build_conv, define_conv, 4e-6, .sums = true),
    KIND("conv2d, bias, relu, max_pool", draw_layer, build_layer, define_layer, 4e-6, .sums = true, .kinks = true),
    KIND("matmul", draw_matmul, build_matmul, define_matmul, 4e-6, .sums = true),
    KIND("max_pool", draw_pool, build_max_pool, define_max_pool, 1e-7, .kinks = true),
    KIND("avg_pool", draw_pool, build_avg_pool, define_avg_pool, 1e-6, .sums = false),
    KIND("reduce_sum", draw_reduce, build_reduce, define_reduce, 1e-6, .sums = true),
    KIND("reduce_mean", draw_reduce, build_reduce, define_reduce, 1e-6, .sums = false),
    KIND("reduce_max", draw_reduce, build_reduce, define_reduce, 1e-7, .kinks = true),
    KIND("reduce_sum_squares", draw_reduce, build_reduce, define_reduce, 1e-6, .sums = true),
    KIND("softmax", draw_rows, build_unary, define_softmax, 2e-6, .sums = false),
    KIND("log_softmax", draw_rows, build_unary, define_softmax, 2e-6, .sums = false),
    KIND("softmax_cross_entropy", draw_entropy, build_entropy, define_entropy, 2e-6, .sums = false),
    KIND("batch_norm", draw_norm, build_norm, define_norm, 2e-5, .sums = false),
    KIND("lrn", draw_lrn, build_lrn, define_lrn, 2e-6, .sums = false),
    KIND("elements", draw_elements, build_elements, define_elements, 2e-5, .kinks = true),
    KIND("transpose", draw_transpose, build_transpose, define_transpose, 0, .sums = false),
    KIND("concat, slice, pad", draw_parts, build_parts, define_parts, 0, .sums = false),
    KIND("embedding", draw_embedding, build_embedding, define_embedding, 0, .sums = false),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

#endif
