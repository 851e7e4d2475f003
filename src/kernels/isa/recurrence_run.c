/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows by a panel of a recurrence's weights, compiled once per instruction set. A tile of rows and
 * vectors of columns stays in registers over all of k; each element is summed in the order of k, whatever the tile.
 * Usual size: 1 to 64 rows, k 64 to 1024, 64 to 128 columns. */
#include "kernels/isa/isa.h"
#include "kernels/isa/recurrence_cells.h"

/* Most accumulators, beside the vectors of a row of the panel and one number of a. */
enum { ACCUMULATORS = VL == 16 ? 24 : VL == 8 ? 12 : 8, VECTORS_MOST = 8, ROWS_MOST = 6 };

INLINE void tile(struct float_rows sums, struct float_rows a, int64_t k, const float *panel, int64_t columns,
                 const int rows, const int vectors)
{
    vf sum[ROWS_MOST][VECTORS_MOST];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = vload(sums.data + r * sums.ld + v * VL);
    for (int64_t i = 0; i < k; i++, panel += columns) {
        vf weight[VECTORS_MOST];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            weight[v] = vload(panel + v * VL);
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

typedef void tile_function(struct float_rows sums, struct float_rows a, int64_t k, const float *panel, int64_t columns);

#define TILE(R, V)                                                                                                     \
    static void tile_##R##_##V(struct float_rows sums, struct float_rows a, int64_t k, const float *panel,             \
                               int64_t columns)                                                                        \
    {                                                                                                                  \
        tile(sums, a, k, panel, columns, R, V);                                                                        \
    }
#define TILES(R) TILE(R, 1) TILE(R, 2) TILE(R, 3) TILE(R, 4) TILE(R, 6) TILE(R, 8)
TILES(1)
TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#define ENTRIES(R)                                                                                                     \
    {                                                                                                                  \
        [1] = tile_##R##_1, [2] = tile_##R##_2, [3] = tile_##R##_3, [4] = tile_##R##_4, [6] = tile_##R##_6,            \
        [8] = tile_##R##_8                                                                                             \
    }
    static tile_function *const tiles[ROWS_MOST + 1][VECTORS_MOST + 1] = {
        [1] = ENTRIES(1), [2] = ENTRIES(2), [3] = ENTRIES(3), [4] = ENTRIES(4), [5] = ENTRIES(5), [6] = ENTRIES(6)};

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

static void product(struct float_rows sums, struct float_rows a, int64_t rows, int64_t k, const float *panel,
                    int64_t columns)
{
    for (int64_t column = 0; column < columns;) {
        const int vectors = next_vectors((columns - column) / VL, rows);
        const int tall = ACCUMULATORS / vectors < ROWS_MOST ? ACCUMULATORS / vectors : ROWS_MOST;
        for (int64_t row = 0; row < rows; row += tall) {
            const int height = (int)(rows - row < tall ? rows - row : tall);
            tiles[height][vectors]((struct float_rows){sums.data + row * sums.ld + column, sums.ld},
                                   (struct float_rows){a.data + row * a.ld, a.ld}, k, panel + column, columns);
        }
        column += vectors * VL;
    }
}

const struct recurrence_loops ISA_NAME(recurrence_loops) = {
    .load = load,
    .load_gradient = load_gradient,
    .product = product,
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
