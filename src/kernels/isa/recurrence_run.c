/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows by a panel of a recurrence's weights, compiled once per instruction set. A tile of rows and
 * vectors of columns stays in registers over all of k; each element is summed in the order of k, whatever the tile.
 * Usual size: 1 to 64 rows, k 64 to 1024, 64 to 128 columns. */
#include "kernels/isa/isa.h"
#include "kernels/isa/recurrence_cells.h"

/* Most accumulators, beside the vectors of a row of the panel and one number of a. */
enum { ACCUMULATORS = VL == 16 ? 24 : VL == 8 ? 12 : 8, VECTORS_MOST = 8, ROWS_MOST = 6 };

/* Numbers of bfloat16 as float32: their bits are the upper half. */
INLINE vf widened(const uint16_t *p)
{
#if VL == 16
    return vfloat(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
#elif VL == 8
    return vfloat(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
#else
    const uint32_t bits = (uint32_t)*p << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

INLINE void tile(struct float_rows sums, struct float_rows a, int64_t k, const void *panel, int64_t columns,
                 const int rows, const int vectors, const bool half)
{
    vf sum[ROWS_MOST][VECTORS_MOST];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = vload(sums.data + r * sums.ld + v * VL);
    for (int64_t i = 0; i < k; i++) {
        const float *whole = (const float *)panel + i * columns;
        const uint16_t *halves = (const uint16_t *)panel + i * columns;
        vf weight[VECTORS_MOST];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            weight[v] = half ? widened(halves + v * VL) : vload(whole + v * VL);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const vf x = vset(a.data[r * a.ld + i]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] = vfma(x, weight[v], sum[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            vstore(sums.data + r * sums.ld + v * VL, sum[r][v]);
}

typedef void tile_function(struct float_rows sums, struct float_rows a, int64_t k, const void *panel, int64_t columns);

#define TILE(R, V)                                                                                                     \
    static void tile_##R##_##V(struct float_rows sums, struct float_rows a, int64_t k, const void *panel,              \
                               int64_t columns)                                                                        \
    {                                                                                                                  \
        tile(sums, a, k, panel, columns, R, V, false);                                                                 \
    }                                                                                                                  \
    static void half_##R##_##V(struct float_rows sums, struct float_rows a, int64_t k, const void *panel,              \
                               int64_t columns)                                                                        \
    {                                                                                                                  \
        tile(sums, a, k, panel, columns, R, V, true);                                                                  \
    }
#define TILES(R) TILE(R, 1) TILE(R, 2) TILE(R, 3) TILE(R, 4) TILE(R, 6) TILE(R, 8)
TILES(1)
TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#define ENTRIES(KIND, R)                                                                                               \
    {                                                                                                                  \
        [1] = KIND##_##R##_1, [2] = KIND##_##R##_2, [3] = KIND##_##R##_3, [4] = KIND##_##R##_4, [6] = KIND##_##R##_6,  \
        [8] = KIND##_##R##_8                                                                                           \
    }
#define ALL_ENTRIES(KIND)                                                                                              \
    {                                                                                                                  \
        [1] = ENTRIES(KIND, 1), [2] = ENTRIES(KIND, 2), [3] = ENTRIES(KIND, 3), [4] = ENTRIES(KIND, 4),                \
        [5] = ENTRIES(KIND, 5), [6] = ENTRIES(KIND, 6)                                                                 \
    }
static tile_function *const tiles[2][ROWS_MOST + 1][VECTORS_MOST + 1] = {ALL_ENTRIES(tile), ALL_ENTRIES(half)};

/* Vectors of the next tile: as many as there are of a width that exists, and fewer where rows need the registers. Eight
 * are for one row or two, whose sums would wait for themselves; six only where nothing narrow is left. */
static int next_vectors(int64_t left, int64_t rows)
{
    static const int width[] = {8, 6, 4, 3, 2, 1};
    int i = rows < 3 ? 0 : 1;
    while (width[i] > left || (width[i] > 1 && width[i] * (rows < 3 ? rows : 3) > ACCUMULATORS) ||
           (width[i] == 6 && left % 6))
        i++;
    return width[i];
}

INLINE void multiply(struct float_rows sums, struct float_rows a, int64_t rows, int64_t k, const char *panel,
                     int64_t columns, const int half)
{
    const int64_t bytes = half ? sizeof(uint16_t) : sizeof(float);
    for (int64_t column = 0; column < columns;) {
        const int vectors = next_vectors((columns - column) / VL, rows);
        const int tall = ACCUMULATORS / vectors < ROWS_MOST ? ACCUMULATORS / vectors : ROWS_MOST;
        for (int64_t row = 0; row < rows; row += tall) {
            const int height = (int)(rows - row < tall ? rows - row : tall);
            tiles[half][height][vectors]((struct float_rows){sums.data + row * sums.ld + column, sums.ld},
                                         (struct float_rows){a.data + row * a.ld, a.ld}, k, panel + column * bytes,
                                         columns);
        }
        column += vectors * VL;
    }
}

static void product(struct float_rows sums, struct float_rows a, int64_t rows, int64_t k, const float *panel,
                    int64_t columns)
{
    multiply(sums, a, rows, k, (const char *)panel, columns, 0);
}

static void product_half(struct float_rows sums, struct float_rows a, int64_t rows, int64_t k, const uint16_t *panel,
                         int64_t columns)
{
    multiply(sums, a, rows, k, (const char *)panel, columns, 1);
}

const struct recurrence_loops ISA_NAME(recurrence_loops) = {
    .load = load,
    .load_gradient = load_gradient,
    .product = product,
    .product_half = product_half,
    .lstm = lstm,
    .gru_after = gru_after,
    .gru_gates = gru_gates,
    .gru_candidate = gru_candidate,
    .rnn = rnn,
    .lstm_gradient = lstm_gradient,
    .gru_after_gradient = gru_after_gradient,
    .gru_candidate_gradient = gru_candidate_gradient,
    .gru_gates_gradient = gru_gates_gradient,
    .rnn_gradient = rnn_gradient,
};
