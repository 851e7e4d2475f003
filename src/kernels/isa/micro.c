/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel of kernels/micro.h, compiled once per instruction set.
 *
 * C is cut into blocks that live in registers: 6 x 64 with AVX-512 (24 accumulators, 4 vectors of B, broadcasts of A),
 * 6 x 16 with AVX2, or 1 x 64 to 4 x 24 where rows are few. One block runs over all segments before the next begins,
 * so a tile should have few enough steps that its part of B stays in the level-2 cache. Rows are shared out evenly
 * among blocks: 64 rows are 9 blocks of 6 and 2 of 5. With AVX2, whose blocks are narrow, lines of B that would not
 * stay in the level-1 cache are copied side by side first, and most blocks are in assembler. Called from any thread,
 * with up to 40 KB of its stack; usual tile 64 x 64 with a hundred to a thousand steps.
 *
 * micro_tile.h cuts it, here for floats and in micro_pairs.c for pairs of bfloat16. */
#define PAIRS 0
#define MULTIPLY_ADD vfma
#include "kernels/isa/micro_tile.h"

void ISA_NAME(micro)(const struct micro_call *call);

void ISA_NAME(micro)(const struct micro_call *call)
{
    tile(call);
}
