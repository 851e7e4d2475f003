/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of F(4x4, 3x3), compiled once per instruction set: vectors of channels, then single channels for the rest.
 * With points 0, +-a, +-b, infinity the matrices are those of polynomial interpolation (Toom and Cook); the signs of a pair of
 * points differ in their odd part only, so each pair costs one even and one odd sum. Usual size: 64 to 320 channels. */
#include "kernels/winograd.h"

#include <string.h>

#define JOIN_(name, isa) name##_##isa
#define JOIN(name, isa) JOIN_(name, isa)
#define NAME(name) JOIN(name, ISA)

extern const struct winograd_functions NAME(winograd);

#if defined(ISA_IS_avx512) || defined(ISA_IS_bf16)
enum { LANES = 16 };
#elif defined(ISA_IS_avx2)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

#define INLINE static inline __attribute__((always_inline))

static const float A = 0.625f, B = 1.5f, AA = 0.390625f, BB = 2.25f;

/* The same code for vectors and for single channels. */
#define TRANSFORMS(type, suffix)                                                                                       \
    INLINE type load_##suffix(const float *from)                                                                       \
    {                                                                                                                  \
        type value;                                                                                                    \
        memcpy(&value, from, sizeof value);                                                                            \
        return value;                                                                                                  \
    }                                                                                                                  \
    INLINE void store_##suffix(float *to, type value)                                                                  \
    {                                                                                                                  \
        memcpy(to, &value, sizeof value);                                                                              \
    }                                                                                                                  \
    /* six inputs to six points */                                                                                     \
    INLINE void input_line_##suffix(const type *d, int from, type *t, int to)                                          \
    {                                                                                                                  \
        const type d0 = d[0], d1 = d[from], d2 = d[2 * from], d3 = d[3 * from], d4 = d[4 * from], d5 = d[5 * from];    \
        const type even_a = d4 - BB * d2, odd_a = A * (d3 - BB * d1);                                                  \
        const type even_b = d4 - AA * d2, odd_b = B * (d3 - AA * d1);                                                  \
        t[0] = (AA * BB) * d0 - (AA + BB) * d2 + d4;                                                                   \
        t[to] = even_a + odd_a;                                                                                        \
        t[2 * to] = even_a - odd_a;                                                                                    \
        t[3 * to] = even_b + odd_b;                                                                                    \
        t[4 * to] = even_b - odd_b;                                                                                    \
        t[5 * to] = (AA * BB) * d1 - (AA + BB) * d3 + d5;                                                              \
    }                                                                                                                  \
    /* six points to four outputs */                                                                                   \
    INLINE void output_line_##suffix(const type *m, int from, type *y, int to)                                         \
    {                                                                                                                  \
        const type plus_a = m[from] + m[2 * from], minus_a = m[from] - m[2 * from];                                    \
        const type plus_b = m[3 * from] + m[4 * from], minus_b = m[3 * from] - m[4 * from];                            \
        y[0] = m[0] + plus_a + plus_b;                                                                                 \
        y[to] = A * minus_a + B * minus_b;                                                                             \
        y[2 * to] = AA * plus_a + BB * plus_b;                                                                         \
        y[3 * to] = (A * AA) * minus_a + (B * BB) * minus_b + m[5 * from];                                             \
    }                                                                                                                  \
    /* three taps to six points */                                                                                     \
    INLINE void weight_line_##suffix(const type *g, int from, type *t, int to)                                         \
    {                                                                                                                  \
        const float na = 1.0f / (2 * AA * (AA - BB)), nb = 1.0f / (2 * BB * (BB - AA));                                \
        const type even_a = na * (g[0] + AA * g[2 * from]), odd_a = (na * A) * g[from];                                \
        const type even_b = nb * (g[0] + BB * g[2 * from]), odd_b = (nb * B) * g[from];                                \
        t[0] = (1.0f / (AA * BB)) * g[0];                                                                              \
        t[to] = even_a + odd_a;                                                                                        \
        t[2 * to] = even_a - odd_a;                                                                                    \
        t[3 * to] = even_b + odd_b;                                                                                    \
        t[4 * to] = even_b - odd_b;                                                                                    \
        t[5 * to] = g[2 * from];                                                                                       \
    }                                                                                                                  \
    static void input_##suffix(const struct winograd_input *in, int c)                                                 \
    {                                                                                                                  \
        type d[36], t[36];                                                                                             \
        memset(d, 0, sizeof d);                                                                                        \
        for (int y = in->y0; y < in->y1; y++)                                                                          \
            for (int x = in->x0; x < in->x1; x++)                                                                      \
                d[y * 6 + x] = load_##suffix(in->source + y * in->row + x * in->pixel + c);                            \
        for (int x = 0; x < 6; x++)                                                                                    \
            input_line_##suffix(d + x, 6, t + x, 6);                                                                   \
        for (int y = 0; y < 6; y++) {                                                                                  \
            type line[6];                                                                                              \
            input_line_##suffix(t + y * 6, 1, line, 1);                                                                \
            for (int x = 0; x < 6; x++)                                                                                \
                store_##suffix(in->v + (y * 6 + x) * in->plane + c, line[x]);                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void output_##suffix(const float *m, int64_t plane, int channels, float *y, int64_t row, int c)             \
    {                                                                                                                  \
        type t[24];                                                                                                    \
        for (int x = 0; x < 6; x++) {                                                                                  \
            type line[6];                                                                                              \
            for (int i = 0; i < 6; i++)                                                                                \
                line[i] = load_##suffix(m + (i * 6 + x) * plane + c);                                                  \
            output_line_##suffix(line, 1, t + x, 6);                                                                   \
        }                                                                                                              \
        for (int i = 0; i < 4; i++) {                                                                                  \
            type line[4];                                                                                              \
            output_line_##suffix(t + i * 6, 1, line, 1);                                                               \
            for (int x = 0; x < 4; x++)                                                                                \
                store_##suffix(y + (i * row + x) * channels + c, line[x]);                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void weights_##suffix(const float *w, int64_t step, float *u, int64_t plane, int c)                         \
    {                                                                                                                  \
        type g[9], t[18];                                                                                              \
        for (int tap = 0; tap < 9; tap++)                                                                              \
            g[tap] = load_##suffix(w + tap * step + c);                                                                \
        for (int x = 0; x < 3; x++)                                                                                    \
            weight_line_##suffix(g + x, 3, t + x, 3);                                                                  \
        for (int y = 0; y < 6; y++) {                                                                                  \
            type line[6];                                                                                              \
            weight_line_##suffix(t + y * 3, 1, line, 1);                                                               \
            for (int x = 0; x < 6; x++)                                                                                \
                store_##suffix(u + (y * 6 + x) * plane + c, line[x]);                                                  \
        }                                                                                                              \
    }

TRANSFORMS(vector, vector)
TRANSFORMS(float, single)

static void input_tile(const struct winograd_input *input)
{
    int c = 0;
    for (; c + LANES <= input->channels; c += LANES)
        input_vector(input, c);
    for (; c < input->channels; c++)
        input_single(input, c);
}

static void output_tile(const float *m, int64_t plane, int channels, float *y, int64_t row)
{
    int c = 0;
    for (; c + LANES <= channels; c += LANES)
        output_vector(m, plane, channels, y, row, c);
    for (; c < channels; c++)
        output_single(m, plane, channels, y, row, c);
}

static void weight_row(const float *w, int64_t step, int channels, float *u, int64_t plane)
{
    int c = 0;
    for (; c + LANES <= channels; c += LANES)
        weights_vector(w, step, u, plane, c);
    for (; c < channels; c++)
        weights_single(w, step, u, plane, c);
}

const struct winograd_functions NAME(winograd) = {input_tile, output_tile, weight_row};
