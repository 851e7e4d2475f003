/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of isa/micro.c: up to eight rows and vectors of C in registers, over all segments; compiled for every number
 * of both, and with what else they ask for. */
#ifndef KERNELS_ISA_MICRO_BLOCK_H
#define KERNELS_ISA_MICRO_BLOCK_H

#include "kernels/isa/isa.h"
#include "kernels/micro.h"
#include "kernels/pack.h"

#if defined(ISA_IS_avx2)
enum { VECTORS = 2, FLAT_ROWS = 3, MOST_VECTORS = 8, STEPS_A_TURN = 8 };
typedef __m256i vector_mask;
#define LOAD_PART(p, mask) _mm256_maskload_ps(p, mask)
#define STORE_PART(p, mask, v) _mm256_maskstore_ps(p, mask, v)

static inline vector_mask first_lanes(int count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#else
enum { VECTORS = 4, FLAT_ROWS = 1, MOST_VECTORS = VECTORS, STEPS_A_TURN = 1 };
typedef __mmask16 vector_mask;
#define LOAD_PART(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define STORE_PART(p, mask, v) _mm512_mask_storeu_ps(p, mask, v)

static inline vector_mask first_lanes(int count)
{
    return (vector_mask)((1u << count) - 1);
}
#endif

enum { WIDTH = VECTORS * VL };

/* Rows of B that are asked for ahead where they are apart in memory (an unpacked B): hardware follows only dense ones.
 * A prefetch past the end reads nothing. */
enum { B_AHEAD = 8, LINE = 64 };

#define INLINE static inline __attribute__((always_inline))

/* Hides from the compiler where a value came from, so that addresses are computed where they are needed. Kept across
 * the loop they would not fit the general registers, and compilers park them in vector registers, where fetching them
 * back waits for all multiplications in flight. */
#define FRESH(value) __asm__("" : "+r"(value))
/* The same for what does not fit them within the loop: it stays on the stack, which is read at no cost here. */
#define IN_MEMORY(value) __asm__("" : "+m"(value))

/* Where the block's rows of C are. */
struct result {
    float *c;
    const int64_t *offset;
    int64_t ldc;
};

INLINE struct result result_at(const struct micro_call *call, int64_t row, int64_t col)
{
    FRESH(call);
    const int64_t *offset = call->result_offset;
    return (struct result){call->c + col + (offset ? 0 : row * call->ldc), offset ? offset + row : NULL, call->ldc};
}

INLINE float *result_row(const struct result *result, int row)
{
    return result->offset ? (float *)((char *)result->c + result->offset[row]) : result->c + row * result->ldc;
}

/* What a block asks for. EVERY_STEP: lines that the next call reads, into the level-2 cache; the first blocks share
 * them, and at every step block `number` asks for one of `lines`. SPACED: what is asked for faster than memory gives it
 * is waited for, so a line at every ASKERS-th step or so, of those that `asked` tells. Parts of segments of fewer than
 * SPACED_STEPS are not worth finding. */
enum asks { NOTHING, EVERY_STEP, SPACED };
enum { ASKERS = 4, SPACED_STEPS = 64 };

/* For step k of segment i the line at soon[i] + offset + k * stride, in bytes; `part` of `parts` of the steps. */
struct asked {
    const void *const *soon;
    int64_t offset, stride;
    int part, parts;
};

/* Returns where the first one is; `now`, which is there already, for later blocks. */
INLINE const char *soon_at(const void *const *soon, int64_t i, const char *now, int64_t number, int lines)
{
    return soon && number < lines ? (const char *)soon[i] + number * LINE : now;
}

struct shape {
    int mr, nv;
    bool whole;
};

/* multiply_step for few rows, whose elements of A stay in registers while vectors of B pass. */
INLINE void flat_step(vf (*sum)[MOST_VECTORS], const char *const *a, int64_t at, const char *b, vector_mask mask,
                      const struct shape shape)
{
    vf left[FLAT_ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < shape.mr; r++)
        left[r] = vset(*(const float *)(a[r] + at));
#pragma GCC unroll 8
    for (int v = 0; v < shape.nv; v++) {
        const float *p = (const float *)b + v * VL;
        const vf right = v == shape.nv - 1 && !shape.whole ? LOAD_PART(p, mask) : vload(p);
#pragma GCC unroll 4
        for (int r = 0; r < shape.mr; r++)
            sum[r][v] = MULTIPLY_ADD(left[r], right, sum[r][v]);
    }
}

/* One line of B, of nv vectors, times an element of each of mr rows of A, `at` bytes from where those begin. */
INLINE void multiply_step(vf (*sum)[MOST_VECTORS], const char *const *a, int64_t at, const char *b,
                          vector_mask mask, const struct shape shape)
{
    if (shape.nv > VECTORS && shape.mr <= FLAT_ROWS) {
        flat_step(sum, a, at, b, mask, shape);
        return;
    }
    vf right[4];
#pragma GCC unroll 4
    for (int v = 0; v < shape.nv; v++) {
        const float *p = (const float *)b + v * VL;
        right[v] = v == shape.nv - 1 && !shape.whole ? LOAD_PART(p, mask) : vload(p);
    }
#pragma GCC unroll 8
    for (int r = 0; r < shape.mr; r++) {
        vf left = vset(*(const float *)(a[r] + at));
#pragma GCC unroll 4
        for (int v = 0; v < shape.nv; v++)
            sum[r][v] = MULTIPLY_ADD(left, right[v], sum[r][v]);
    }
}

/* What the sums of a block begin with, to registers. */
INLINE void begin_sums(const struct micro_call *call, int64_t row, int64_t col, vf (*sum)[MOST_VECTORS],
                       vector_mask mask, const struct shape shape)
{
    const int mr = shape.mr, nv = shape.nv;
    const bool whole = shape.whole;
    const struct result result = result_at(call, row, col);
    if (call->accumulate) {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++) {
            const float *c = result_row(&result, r);
#pragma GCC unroll 8
            for (int v = 0; v < nv; v++)
                sum[r][v] = v == nv - 1 && !whole ? LOAD_PART(c + v * VL, mask) : vload(c + v * VL);
        }
    } else {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++) {
            const float *c = result_row(&result, r);
#pragma GCC unroll 8
            for (int v = 0; v < nv; v++) {
                if (v * VL * sizeof(float) % LINE == 0)
                    __builtin_prefetch(c + v * VL, 1);
                sum[r][v] = vset(0.0f);
            }
        }
    }
}

/* And the sums, from there. */
INLINE void end_sums(const struct micro_call *call, int64_t row, int64_t col, vf (*sum)[MOST_VECTORS],
                     vector_mask mask, const struct shape shape)
{
    const int mr = shape.mr, nv = shape.nv;
    const bool whole = shape.whole;
    const struct result result = result_at(call, row, col);
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++) {
        float *c = result_row(&result, r);
#pragma GCC unroll 8
        for (int v = 0; v < nv; v++) {
            if (v == nv - 1 && !whole)
                STORE_PART(c + v * VL, mask, sum[r][v]);
            else
                vstore(c + v * VL, sum[r][v]);
        }
    }
}

/* One block of `shape`, its last vector of `lanes` lanes. The shape and what it asks for are constants where it is
 * inlined. */
INLINE void block(const struct micro_call *call, int64_t row, int64_t col, int lanes, const struct shape shape,
                  enum asks asks, const struct asked *asked)
{
    const int mr = shape.mr, nv = shape.nv;
    const vector_mask mask = first_lanes(lanes);
    const int64_t count = call->count;
    vf sum[8][MOST_VECTORS];
    begin_sums(call, row, col, sum, mask, shape);
    for (int64_t i = 0; i < count; i++) {
        FRESH(call);
        FRESH(row);
        FRESH(col);
        const char *a[8], *first = call->a[i];
        const char *b = (const char *)((const float *)call->b[i] + col);
        if (call->row_offset) {
            const int64_t *offset = call->row_offset + row;
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++)
                a[r] = first + offset[r];
        } else {
            const int64_t stride = call->row_stride * 4;
            first += row * stride;
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++, first += stride)
                a[r] = first;
        }
        int64_t ldb = call->ldb * 4, step = call->step_stride * 4;
        int64_t steps = call->k[i], at = 0;
        if (asks == SPACED) {
            const int64_t apart = asked->stride, every = asked->parts;
            const char *soon = (const char *)asked->soon[i] + asked->offset + asked->part * steps / every * apart;
            while (steps > 0) {
                __builtin_prefetch(soon);
                soon += apart;
                int64_t few = least(steps, every);
                for (steps -= few; few > 0; few--) {
                    multiply_step(sum, a, at, b, mask, shape);
                    at += step;
                    b += ldb;
                }
            }
            continue;
        }
        const char *soon_a = soon_at(call->soon_a, i, a[0], row / mr, call->m * 4 / LINE), *now = call->b[i];
        const int64_t soon_b = soon_at(call->soon_b, i, now, row / mr, nv * (int)sizeof(vf) / LINE) - now;
        const int64_t ahead = ldb > (int64_t)sizeof(vf) * nv ? B_AHEAD * ldb : 0;
        /* Several steps a turn before AVX-512: branches of a long loop push all others out of what the processor
         * remembers of them, and those behind it are then foretold wrongly. */
#pragma GCC unroll STEPS_A_TURN
        for (; steps > 0; steps--) {
            if (asks && nv > 1) { /* one vector a row leaves no room for them beside its loads: a fifth of its speed */
                __builtin_prefetch(soon_a + at, 0, 2);
                __builtin_prefetch(b + soon_b, 0, 2);
            }
#pragma GCC unroll 8
            for (int v = 0; v < nv; v++)
                if (asks && v * VL * sizeof(float) % LINE == 0)
                    __builtin_prefetch(b + v * sizeof(vf) + ahead);
            multiply_step(sum, a, at, b, mask, shape);
            if (mr > 6 && nv > 1) {
                IN_MEMORY(step);
                IN_MEMORY(ldb);
#pragma GCC unroll 8
                for (int r = 6; r < mr; r++)
                    IN_MEMORY(a[r]);
            }
            at += step;
            b += ldb;
        }
    }
    end_sums(call, row, col, sum, mask, shape);
}

typedef void (*block_function)(const struct micro_call *call, int row, int col, int lanes, const struct asked *asked);

/* Every block there is: B(asks, rows, vectors). More rows where fewer vectors leave registers free. */
#if defined(ISA_IS_avx2)
/* The widest are flat ones, for calls of few rows: with fewer sums each waits for its last step, and half of a panel's
 * row, or all of it, is read at once, as it lies in memory. */
#define ONE_ROW(B, a) \
    B(a, 1, 1) B(a, 1, 2) B(a, 1, 3) B(a, 1, 4) B(a, 1, 5) B(a, 1, 6) B(a, 1, 7) B(a, 1, 8)
#define ROWS(B, a) \
    B(a, 2, 1) B(a, 3, 1) B(a, 4, 1) B(a, 5, 1) B(a, 6, 1) B(a, 7, 1) B(a, 8, 1)                                       \
    B(a, 2, 2) B(a, 3, 2) B(a, 4, 2) B(a, 5, 2) B(a, 6, 2) \
    B(a, 2, 3) B(a, 2, 4) B(a, 3, 3) B(a, 3, 4) B(a, 4, 3)
#define BLOCKS(B, a) ONE_ROW(B, a) ROWS(B, a)
#if PAIRS /* emulated, with several times the arithmetic a step: no slower without */
#define ASKED(asks) NOTHING
#define ALL(B) BLOCKS(B, NOTHING)
#else
/* Not EVERY_STEP where there is nothing to ask for, or little at a time: half of a step's instructions are loads, and
 * asking for lines that are there takes the place of some. Rows are shared out evenly, so that a block has one only
 * where the call has no more: those are never SPACED, see asks_alike(). */
#define ASKED(asks) (asks)
#define ALL(B) BLOCKS(B, NOTHING) BLOCKS(B, EVERY_STEP) ROWS(B, SPACED)
#endif
static const int max_rows[MOST_VECTORS + 1] = {0, 8, 6, 4, 3, 1, 1, 1, 1};
#else
#define BLOCKS(B, a) \
    B(a, 1, 1) B(a, 2, 1) B(a, 3, 1) B(a, 4, 1) B(a, 5, 1) B(a, 6, 1) B(a, 7, 1) B(a, 8, 1)                            \
    B(a, 1, 2) B(a, 2, 2) B(a, 3, 2) B(a, 4, 2) B(a, 5, 2) B(a, 6, 2) B(a, 7, 2) B(a, 8, 2)                            \
    B(a, 1, 3) B(a, 2, 3) B(a, 3, 3) B(a, 4, 3) B(a, 5, 3) B(a, 6, 3) B(a, 7, 3) B(a, 8, 3)                            \
    B(a, 1, 4) B(a, 2, 4) B(a, 3, 4) B(a, 4, 4) B(a, 5, 4) B(a, 6, 4)
#define ASKED(asks) (asks)
#define ALL(B) BLOCKS(B, EVERY_STEP)
static const int max_rows[MOST_VECTORS + 1] = {0, 8, 8, 8, 6};
#endif

#define DEFINE(asks, mr, nv)                                                                                           \
    static void block_##asks##_##mr##_##nv(const struct micro_call *call, int row, int col, int lanes,                 \
                                           const struct asked *asked)                                                  \
    {                                                                                                                  \
        if (lanes == VL)                                                                                               \
            block(call, row, col, lanes, (struct shape){mr, nv, true}, asks, asked);                                   \
        else                                                                                                           \
            block(call, row, col, lanes, (struct shape){mr, nv, false}, asks, asked);                                  \
    }
ALL(DEFINE)

#define ENTRY(asks, mr, nv) [asks][nv][mr] = block_##asks##_##mr##_##nv,
static const block_function blocks[SPACED + 1][MOST_VECTORS + 1][9] = {ALL(ENTRY)};

static int blocks_below(int rows, int vectors)
{
    return (rows + max_rows[vectors] - 1) / max_rows[vectors];
}

/* Rows of a call in `parts` blocks: `of_few` of `few` rows, and below them others of one more. */
struct heights {
    int parts, few, of_few;
};

static struct heights heights_of(int rows, int vectors)
{
    const int parts = blocks_below(rows, vectors);
    return parts ? (struct heights){parts, rows / parts, parts - rows % parts} : (struct heights){0};
}
#endif
