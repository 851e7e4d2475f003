/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's transforms (kernels/winograd.h), compiled once per instruction set.
 *
 * The matrices are those of polynomial interpolation (Toom and Cook) on the points 0, +-p_1 .. +-p_q, infinity: the
 * inputs are multiplied by the polynomial that vanishes at all finite points but one, the taps and the outputs are
 * powers of the point. The two points of a pair differ in the sign of their odd part only, so a pair costs one even and
 * one odd sum. Every function is one loop nest with constant bounds, inlined once per scheme. Called from any thread;
 * usual size: 64 to 320 channels. */
#include "kernels/winograd.h"

#include "kernels/isa/isa.h"

extern const struct winograd_scheme ISA_NAME(winograd)[];

#define UNROLL _Pragma("GCC unroll 8")

#define POWERS(p) {1, (p), (p) * (p), (p) * (p) * (p), (p) * (p) * (p) * (p), (p) * (p) * (p) * (p) * (p)}
enum { MOST_PAIRS = 3, MOST = 2 * MOST_PAIRS + 2 };
/* The least by which the inputs of two tiles that are neighbours overlap: r - 1 of m + r - 1, m - 1 for weights. */
enum { KNOWN = 2 };

/* For q pairs of points: powers of p_j; the factor of its taps, 1 / (2 p_j^2 prod over i != j of (p_j^2 - p_i^2)), and
 * that of point 0, 1 / prod(-p_i^2); the polynomials prod(x^2 - p_i^2) over all i and over i != j in x^2, lowest first.
 */
static const struct {
    float power[MOST_PAIRS][6], scale[MOST_PAIRS], scale_0, all[MOST_PAIRS + 1], others[MOST_PAIRS][MOST_PAIRS];
} points[MOST_PAIRS + 1] = {
    [1] = {.power = {POWERS(1.0f)}, .scale = {0.5f}, .scale_0 = -1, .all = {-1, 1}, .others = {{1}}},
    [2] = {.power = {POWERS(0.625f), POWERS(1.5f)},
           .scale = {(float)(1 / (2 * 0.390625 * (0.390625 - 2.25))), (float)(1 / (2 * 2.25 * (2.25 - 0.390625)))},
           .scale_0 = (float)(1 / (0.390625 * 2.25)),
           .all = {0.390625f * 2.25f, -(0.390625f + 2.25f), 1},
           .others = {{-2.25f, 1}, {-0.390625f, 1}}},
    [3] = {.power = {POWERS(0.5f), POWERS(1.0f), POWERS(2.0f)},
           .scale = {(float)(1 / (2 * 0.25 * (0.25 - 1) * (0.25 - 4))), (float)(1 / (2 * (1 - 0.25) * (1 - 4.0))),
                     (float)(1 / (2 * 4 * (4 - 0.25) * (4.0 - 1)))},
           .scale_0 = -1,
           .all = {-1, 5.25f, -5.25f, 1},
           .others = {{4, -5, 1}, {1, -4.25f, 1}, {0.25f, -1.25f, 1}}},
};

#if defined(ISA_IS_bf16)
INLINE void store_halves(float *to, int64_t at, vf value, int lanes)
{
    uint16_t half[VL], *target = (uint16_t *)to + at;
    const __m256bh rounded = _mm512_cvtneps_pbh(value);
    memcpy(lanes == VL ? target : half, &rounded, sizeof half);
    if (lanes != VL)
        memcpy(target, half, (size_t)lanes * sizeof *half);
}
#else
INLINE void store_halves(float *to, int64_t at, vf value, int lanes) { (void)to, (void)at, (void)value, (void)lanes; }
#endif

INLINE void input_line(int q, const vf *d, int from, vf *t, int to)
{
    vf zero = points[q].all[q] * d[2 * q * from], infinity = points[q].all[q] * d[(2 * q + 1) * from];
    UNROLL for (int k = 0; k < q; k++) {
        zero += points[q].all[k] * d[2 * k * from];
        infinity += points[q].all[k] * d[(2 * k + 1) * from];
    }
    t[0] = zero;
    t[(2 * q + 1) * to] = infinity;
    UNROLL for (int j = 0; j < q; j++) {
        vf even = d[2 * q * from], odd = d[(2 * q - 1) * from];
        UNROLL for (int k = 0; k < q - 1; k++) {
            even += points[q].others[j][k] * d[(2 * k + 2) * from];
            odd += points[q].others[j][k] * d[(2 * k + 1) * from];
        }
        odd *= points[q].power[j][1];
        t[(2 * j + 1) * to] = even + odd;
        t[(2 * j + 2) * to] = even - odd;
    }
}

INLINE void tap_line(int q, int r, const vf *g, int from, vf *t, int to)
{
    t[0] = points[q].scale_0 * g[0];
    t[(2 * q + 1) * to] = g[(r - 1) * from];
    UNROLL for (int j = 0; j < q; j++) {
        vf even = points[q].scale[j] * g[0], odd = points[q].scale[j] * points[q].power[j][1] * g[from];
        UNROLL for (int i = 2; i < r; i += 2)
            even += points[q].scale[j] * points[q].power[j][i] * g[i * from];
        UNROLL for (int i = 3; i < r; i += 2)
            odd += points[q].scale[j] * points[q].power[j][i] * g[i * from];
        t[(2 * j + 1) * to] = even + odd;
        t[(2 * j + 2) * to] = even - odd;
    }
}

INLINE void output_line(int q, int m, const vf *p, int from, vf *y, int to)
{
    vf plus[MOST_PAIRS], minus[MOST_PAIRS];
    UNROLL for (int j = 0; j < q; j++) {
        plus[j] = p[(2 * j + 1) * from] + p[(2 * j + 2) * from];
        minus[j] = p[(2 * j + 1) * from] - p[(2 * j + 2) * from];
    }
    UNROLL for (int i = 0; i < m; i++) {
        vf sum = i == 0 ? p[0] : i == m - 1 ? p[(2 * q + 1) * from] : vset(0);
        UNROLL for (int j = 0; j < q; j++)
            sum += points[q].power[j][i] * (i % 2 ? minus[j] : plus[j]);
        y[i * to] = sum;
    }
}

/* The columns, then the rows of a tile of `side` x `side` (r taps, or all n inputs). */
INLINE void forward(int q, int side, const struct winograd_source *in, int c, int lanes, bool inside, bool halves)
{
    const int n = 2 * q + 2;
    vf t[MOST * MOST];
    UNROLL for (int x = 0; x < side; x++) {
        vf column[MOST];
        UNROLL for (int y = 0; y < side; y++) {
            bool there = inside || (y >= in->y0 && y < in->y1 && x >= in->x0 && x < in->x1);
            const float *pixel = in->source + y * in->row + x * in->pixel + c;
            if (side < n || (y >= KNOWN && x >= KNOWN))
                __builtin_prefetch(pixel + in->ahead, 0, 2);
            column[y] = there ? vget(pixel, lanes) : vset(0);
        }
        if (side == n)
            input_line(q, column, 1, t + x, MOST);
        else
            tap_line(q, side, column, 1, t + x, MOST);
    }
    UNROLL for (int y = 0; y < n; y++) {
        vf line[MOST];
        if (side == n)
            input_line(q, t + y * MOST, 1, line, 1);
        else
            tap_line(q, side, t + y * MOST, 1, line, 1);
        UNROLL for (int x = 0; x < n; x++) {
            if (halves)
                store_halves(in->v, 2 * (y * n + x) * in->plane + c, line[x], lanes);
            else
                vput(in->v + (y * n + x) * in->plane + c, line[x], lanes);
        }
    }
}

INLINE void forward_tile(int q, int side, const struct winograd_source *in, bool halves)
{
    bool inside = in->y0 == 0 && in->x0 == 0 && in->y1 >= side && in->x1 >= side;
    int c = 0;
    if (inside)
        for (; c + VL <= in->channels; c += VL)
            forward(q, side, in, c, VL, true, halves);
    for (; c < in->channels; c += VL)
        forward(q, side, in, c, in->channels - c < VL ? in->channels - c : VL, false, halves);
}

INLINE void backward(int q, int m, const float *products, int64_t plane, float *y, int64_t row, int64_t pixel, int c,
                     int lanes)
{
    const int n = 2 * q + 2;
    vf t[MOST * MOST];
    UNROLL for (int x = 0; x < n; x++) {
        vf column[MOST];
        UNROLL for (int i = 0; i < n; i++)
            column[i] = vget(products + (i * n + x) * plane + c, lanes);
        output_line(q, m, column, 1, t + x, MOST);
    }
    UNROLL for (int i = 0; i < m; i++) {
        vf line[MOST];
        output_line(q, m, t + i * MOST, 1, line, 1);
        UNROLL for (int x = 0; x < m; x++)
            vput(y + i * row + x * pixel + c, line[x], lanes);
    }
}

INLINE void backward_tile(int q, int m, const float *products, int64_t plane, int channels, float *y, int64_t row,
                          int64_t pixel)
{
    int c = 0;
    for (; c + VL <= channels; c += VL)
        backward(q, m, products, plane, y, row, pixel, c, VL);
    if (c < channels)
        backward(q, m, products, plane, y, row, pixel, c, channels - c);
}

#define INPUT(q)                                                                                                       \
    static void input_##q(const struct winograd_source *in)                                                            \
    {                                                                                                                  \
        forward_tile(q, 2 * q + 2, in, false);                                                                         \
    }                                                                                                                  \
    HALVES(q)
#if defined(ISA_IS_bf16)
#define HALVES(q)                                                                                                      \
    static void halves_##q(const struct winograd_source *in) { forward_tile(q, 2 * q + 2, in, true); }
#define HALVES_OF(q) halves_##q
#else
#define HALVES(q)
#define HALVES_OF(q) NULL
#endif
#define TAPS(q, r)                                                                                                     \
    static void tap_##q##_##r(const struct winograd_source *in) { forward_tile(q, r, in, false); }
#define OUTPUTS(q, m)                                                                                                  \
    static void output_##q##_##m(const float *products, int64_t plane, int channels, float *y, int64_t row,            \
                                 int64_t pixel)                                                                        \
    {                                                                                                                  \
        backward_tile(q, m, products, plane, channels, y, row, pixel);                                                 \
    }
#define SCHEME(q, m, r) {2 * q + 2, m, r, input_##q, HALVES_OF(q), tap_##q##_##r, output_##q##_##m},

/* q pairs of points: m + r = 2 q + 3. 3 x 3 and 5 x 5 windows, and for their gradients the other way round. */
#define PARTS(q, m, r) TAPS(q, r) OUTPUTS(q, m)
#define SCHEMES(X) \
    X(1, 2, 3) X(1, 3, 2) X(2, 4, 3) X(2, 3, 4) X(2, 2, 5) X(2, 5, 2) X(3, 6, 3) X(3, 3, 6) X(3, 4, 5) X(3, 5, 4)
INPUT(1)
INPUT(2)
INPUT(3)
SCHEMES(PARTS)

const struct winograd_scheme ISA_NAME(winograd)[] = {SCHEMES(SCHEME){0}};
