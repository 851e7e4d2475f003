/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel of kernels/micro.h, compiled once per instruction set.
 *
 * C is cut into blocks of up to ROWS x (VECTORS * LANES) that live in registers: 6 x 64 with AVX-512 (24 accumulators,
 * 4 vectors of B, broadcasts of A), 6 x 16 with AVX2, or 1 x 64 to 4 x 24 where rows are few. One block runs over all
 * segments before the next begins, so a tile should have few enough steps that its part of B stays in the level-2
 * cache. Rows are shared out evenly among blocks: 64 rows are 9 blocks of 6 and 2 of 5. With AVX2, whose blocks are
 * narrow, lines of B that would not stay in the level-1 cache are copied side by side first, and most blocks are in
 * assembler (isa/micro_avx2.h). The plain form is the oracle: three loops. Called from any thread, with up to 40 KB of
 * its stack; usual tile 64 x 64 with a hundred to a thousand steps. */
#include "kernels/micro.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "kernels/pack.h"

#define JOIN_(name, isa) name##_##isa
#define JOIN(name, isa) JOIN_(name, isa)
#define NAME(name) JOIN(name, ISA)

void NAME(micro)(const struct micro_call *call);
void NAME(micro_pairs)(const struct micro_call *call);

#if defined(ISA_IS_plain)

/* The address of A(row, 0) of segment i. */
static inline const char *row_of(const struct micro_call *call, int64_t i, int row)
{
    return (const char *)call->a[i] + (call->row_offset ? call->row_offset[row] : row * call->row_stride * 4);
}

static inline float low_half(uint32_t pair)
{
    float value;
    pair <<= 16;
    memcpy(&value, &pair, sizeof value);
    return value;
}

static inline float high_half(uint32_t pair)
{
    float value;
    pair &= 0xffff0000u;
    memcpy(&value, &pair, sizeof value);
    return value;
}

static void plain_row(const struct micro_call *call, int row, bool pairs)
{
    float *c = call->result_offset ? (float *)((char *)call->c + call->result_offset[row]) : call->c + row * call->ldc;
    if (!call->accumulate)
        memset(c, 0, (size_t)call->n * sizeof *c);
    for (int64_t i = 0; i < call->count; i++) {
        const char *a = row_of(call, i, row);
        const char *b = call->b[i];
        for (int32_t k = 0; k < call->k[i]; k++, a += 4 * call->step_stride, b += 4 * call->ldb) {
            if (!pairs) {
                for (int j = 0; j < call->n; j++)
                    c[j] += *(const float *)a * ((const float *)b)[j];
                continue;
            }
            uint32_t pair = *(const uint32_t *)a;
            for (int j = 0; j < call->n; j++) {
                uint32_t other = ((const uint32_t *)b)[j];
                c[j] = c[j] + low_half(pair) * low_half(other) + high_half(pair) * high_half(other);
            }
        }
    }
}

void NAME(micro)(const struct micro_call *call)
{
    for (int row = 0; row < call->m; row++)
        plain_row(call, row, false);
}

void NAME(micro_pairs)(const struct micro_call *call)
{
    for (int row = 0; row < call->m; row++)
        plain_row(call, row, true);
}

#else
#include <immintrin.h>

#if defined(ISA_IS_avx2)
#include "kernels/isa/micro_avx2.h"
enum { LANES = 8, VECTORS = 2, FLAT_ROWS = 3, MOST_VECTORS = 8, STEPS_A_TURN = 8 };
typedef __m256 vector;
typedef __m256i vector_mask;
#define SET1(x) _mm256_set1_ps(x)
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define LOAD_PART(p, mask) _mm256_maskload_ps(p, mask)
#define STORE_PART(p, mask, v) _mm256_maskstore_ps(p, mask, v)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define LOW_HALVES(v) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), 16))
#define HIGH_HALVES(v) _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(-65536)))

static inline vector_mask first_lanes(int count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#else
enum { LANES = 16, VECTORS = 4, FLAT_ROWS = 1, MOST_VECTORS = VECTORS, STEPS_A_TURN = 1 };
typedef __m512 vector;
typedef __mmask16 vector_mask;
#define SET1(x) _mm512_set1_ps(x)
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define LOAD_PART(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define STORE_PART(p, mask, v) _mm512_mask_storeu_ps(p, mask, v)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LOW_HALVES(v) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 16))
#define HIGH_HALVES(v) _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(-65536)))

static inline vector_mask first_lanes(int count)
{
    return (vector_mask)((1u << count) - 1);
}
#endif

/* Rows of B that are asked for ahead where they are apart in memory (an unpacked B): hardware follows only dense ones.
 * A prefetch past the end reads nothing. */
enum { B_AHEAD = 8, LINE = 64 };

#define INLINE static inline __attribute__((always_inline))

INLINE vector multiply_add(vector a, vector b, vector c, bool pairs)
{
    if (!pairs)
        return FMA(a, b, c);
#if defined(ISA_IS_bf16)
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
#else
    return FMA(HIGH_HALVES(a), HIGH_HALVES(b), FMA(LOW_HALVES(a), LOW_HALVES(b), c));
#endif
}

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
    bool whole, pairs;
};

/* multiply_step for few rows, whose elements of A stay in registers while vectors of B pass. */
INLINE void flat_step(vector (*sum)[MOST_VECTORS], const char *const *a, int64_t at, const char *b, vector_mask mask,
                      const struct shape shape)
{
    vector left[FLAT_ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < shape.mr; r++)
        left[r] = SET1(*(const float *)(a[r] + at));
#pragma GCC unroll 8
    for (int v = 0; v < shape.nv; v++) {
        const float *p = (const float *)b + v * LANES;
        const vector right = v == shape.nv - 1 && !shape.whole ? LOAD_PART(p, mask) : LOAD(p);
#pragma GCC unroll 4
        for (int r = 0; r < shape.mr; r++)
            sum[r][v] = multiply_add(left[r], right, sum[r][v], shape.pairs);
    }
}

/* One line of B, of nv vectors, times an element of each of mr rows of A, `at` bytes from where those begin. */
INLINE void multiply_step(vector (*sum)[MOST_VECTORS], const char *const *a, int64_t at, const char *b,
                          vector_mask mask, const struct shape shape)
{
    if (shape.nv > VECTORS && shape.mr <= FLAT_ROWS) {
        flat_step(sum, a, at, b, mask, shape);
        return;
    }
    vector right[4];
#pragma GCC unroll 4
    for (int v = 0; v < shape.nv; v++) {
        const float *p = (const float *)b + v * LANES;
        right[v] = v == shape.nv - 1 && !shape.whole ? LOAD_PART(p, mask) : LOAD(p);
    }
#pragma GCC unroll 8
    for (int r = 0; r < shape.mr; r++) {
        vector left = SET1(*(const float *)(a[r] + at));
#pragma GCC unroll 4
        for (int v = 0; v < shape.nv; v++)
            sum[r][v] = multiply_add(left, right[v], sum[r][v], shape.pairs);
    }
}

/* What the sums of a block begin with, to registers. */
INLINE void begin_sums(const struct micro_call *call, int64_t row, int64_t col, vector (*sum)[MOST_VECTORS],
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
                sum[r][v] = v == nv - 1 && !whole ? LOAD_PART(c + v * LANES, mask) : LOAD(c + v * LANES);
        }
    } else {
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++) {
            const float *c = result_row(&result, r);
#pragma GCC unroll 8
            for (int v = 0; v < nv; v++) {
                if (v * LANES * sizeof(float) % LINE == 0)
                    __builtin_prefetch(c + v * LANES, 1);
                sum[r][v] = SET1(0.0f);
            }
        }
    }
}

/* And the sums, from there. */
INLINE void end_sums(const struct micro_call *call, int64_t row, int64_t col, vector (*sum)[MOST_VECTORS],
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
                STORE_PART(c + v * LANES, mask, sum[r][v]);
            else
                STORE(c + v * LANES, sum[r][v]);
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
    vector sum[8][MOST_VECTORS];
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
        const int64_t soon_b = soon_at(call->soon_b, i, now, row / mr, nv * (int)sizeof(vector) / LINE) - now;
        const int64_t ahead = ldb > (int64_t)sizeof(vector) * nv ? B_AHEAD * ldb : 0;
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
                if (asks && v * LANES * sizeof(float) % LINE == 0)
                    __builtin_prefetch(b + v * sizeof(vector) + ahead);
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

/* Every block there is: B(asks, pairs, rows, vectors). More rows where fewer vectors leave registers free. */
#if defined(ISA_IS_avx2)
/* The widest are flat ones, for calls of few rows: with fewer sums each waits for its last step, and half of a panel's
 * row, or all of it, is read at once, as it lies in memory. */
#define ONE_ROW(B, a, p) \
    B(a, p, 1, 1) B(a, p, 1, 2) B(a, p, 1, 3) B(a, p, 1, 4) B(a, p, 1, 5) B(a, p, 1, 6) B(a, p, 1, 7) B(a, p, 1, 8)
#define ROWS(B, a, p) \
    B(a, p, 2, 1) B(a, p, 3, 1) B(a, p, 4, 1) B(a, p, 5, 1) B(a, p, 6, 1) B(a, p, 7, 1) B(a, p, 8, 1) \
    B(a, p, 2, 2) B(a, p, 3, 2) B(a, p, 4, 2) B(a, p, 5, 2) B(a, p, 6, 2) \
    B(a, p, 2, 3) B(a, p, 2, 4) B(a, p, 3, 3) B(a, p, 3, 4) B(a, p, 4, 3)
#define BLOCKS(B, a, p) ONE_ROW(B, a, p) ROWS(B, a, p)
/* Not EVERY_STEP where there is nothing to ask for, or little at a time: half of a step's instructions are loads, and
 * asking for lines that are there takes the place of some. Rows are shared out evenly, so that a block has one only
 * where the call has no more: those are never SPACED, see asks_alike(). */
#define ALL(B) \
    BLOCKS(B, NOTHING, 0) BLOCKS(B, NOTHING, 1) BLOCKS(B, EVERY_STEP, 0) BLOCKS(B, EVERY_STEP, 1) \
    ROWS(B, SPACED, 0) ROWS(B, SPACED, 1)
static const int max_rows[MOST_VECTORS + 1] = {0, 8, 6, 4, 3, 1, 1, 1, 1};
#else
#define BLOCKS(B, a, p) \
    B(a, p, 1, 1) B(a, p, 2, 1) B(a, p, 3, 1) B(a, p, 4, 1) B(a, p, 5, 1) B(a, p, 6, 1) B(a, p, 7, 1) B(a, p, 8, 1) \
    B(a, p, 1, 2) B(a, p, 2, 2) B(a, p, 3, 2) B(a, p, 4, 2) B(a, p, 5, 2) B(a, p, 6, 2) B(a, p, 7, 2) B(a, p, 8, 2) \
    B(a, p, 1, 3) B(a, p, 2, 3) B(a, p, 3, 3) B(a, p, 4, 3) B(a, p, 5, 3) B(a, p, 6, 3) B(a, p, 7, 3) B(a, p, 8, 3) \
    B(a, p, 1, 4) B(a, p, 2, 4) B(a, p, 3, 4) B(a, p, 4, 4) B(a, p, 5, 4) B(a, p, 6, 4)
#define ALL(B) BLOCKS(B, EVERY_STEP, 0) BLOCKS(B, EVERY_STEP, 1)
static const int max_rows[MOST_VECTORS + 1] = {0, 8, 8, 8, 6};
#endif

#define DEFINE(asks, p, mr, nv)                                                                                        \
    static void block_##asks##_##p##_##mr##_##nv(const struct micro_call *call, int row, int col, int lanes,           \
                                                 const struct asked *asked)                                            \
    {                                                                                                                  \
        if (lanes == LANES)                                                                                            \
            block(call, row, col, lanes, (struct shape){mr, nv, true, p}, asks, asked);                                \
        else                                                                                                           \
            block(call, row, col, lanes, (struct shape){mr, nv, false, p}, asks, asked);                               \
    }
ALL(DEFINE)

#define ENTRY(asks, p, mr, nv) [asks][p][nv][mr] = block_##asks##_##p##_##mr##_##nv,
static const block_function blocks[SPACED + 1][2][MOST_VECTORS + 1][9] = {ALL(ENTRY)};

static int blocks_below(int rows, int vectors)
{
    return (rows + max_rows[vectors] - 1) / max_rows[vectors];
}

/* What the next call reads, shared by all blocks of this one, which find their own B in level 1. */
struct far {
    const struct micro_call *call;
    int64_t stride_a, stride_b; /* bytes a step */
    int lines_of_a, lines_of_b; /* a step */
    int parts;                  /* of the steps, for a block each */
    int block;                  /* the next one */
};

#if defined(ISA_IS_avx2)
/* For a call in columns of `width`; NULL: its blocks do not share what is asked for. */
static struct far *far_of(const struct micro_call *call, int width, struct far *far)
{
    const int64_t stride = call->soon_stride ? call->soon_stride : call->step_stride;
    *far = (struct far){.call = call, .stride_a = 4 * stride, .stride_b = 4 * call->ldb, .parts = ASKERS};
    far->lines_of_a = call->soon_a ? (int)divide_up(4 * call->m, LINE) : 0;
    far->lines_of_b = call->soon_b ? (int)divide_up(4 * call->n, LINE) : 0;
    const int64_t sharing = blocks_below(call->m, width / LANES) * divide_up(call->n, width);
    while (far->parts > 1 && (far->lines_of_a + far->lines_of_b) * far->parts > sharing)
        far->parts /= 2;
    if (far->parts == 1) /* too few blocks: hardware alone is as fast */
        far->lines_of_a = far->lines_of_b = 0;
    return call->count && call->k[0] >= SPACED_STEPS ? far : NULL;
}

/* asks_alike of a call whose blocks share what is asked for. */
static int asks_far(struct far *far, int left, enum asks *asks, struct asked *asked)
{
    const int line = far->block / far->parts, part = far->block % far->parts, line_of_b = line - far->lines_of_a;
    *asks = line_of_b >= far->lines_of_b ? NOTHING : SPACED;
    if (*asks == SPACED)
        *asked = line_of_b < 0 ? (struct asked){far->call->soon_a, line * LINE, far->stride_a, part, far->parts}
                               : (struct asked){far->call->soon_b, line_of_b * LINE, far->stride_b, part, far->parts};
    const int alike = *asks == SPACED ? (int)least(left, far->parts - part) : left;
    far->block += alike;
    return alike;
}

/* What the block of this number in the column from `col` on asks for, behind which come `left - 1` more; returns for
 * how many from it on that holds, each with the next part. SPACED are the lines of B that the next column reads, of
 * this call or the next one, into level 1, where A, which passes once a column, would push them out again if they came
 * early: the last ASKERS blocks share them. With soon_all the first ones share what soon_b has in this column. */
static int asks_alike(const struct micro_call *call, struct far *far, int col, int vectors, int number, int left,
                      enum asks *asks, struct asked *asked)
{
    const bool panel = call->ldb <= PANEL_MAX;
    if (call->m == 1) { /* a panel is read as it lies there, which hardware follows */
        *asks = panel ? NOTHING : EVERY_STEP;
        return left;
    }
    if (far)
        return asks_far(far, left, asks, asked);
    if (number + left >= ASKERS && call->count && call->soon_b && !call->soon_a && panel &&
        call->k[0] >= SPACED_STEPS) {
        const int beside = col + vectors * LANES, early = call->soon_all ? ASKERS : 0, late = left - ASKERS;
        const bool here = beside < call->n || call->soon_all;
        if (late <= 0)
            *asked = (struct asked){here ? call->b : call->soon_b, here ? 4 * beside : 0, 4 * call->ldb, -late, ASKERS};
        else
            *asked = (struct asked){call->soon_b, 4 * col, 4 * call->ldb, number, ASKERS};
        *asks = late <= 0 || number < early ? SPACED : NOTHING;
        return late <= 0 ? left : number < early ? (int)least(early - number, late) : late;
    }
    const int lines_a = call->soon_a ? call->m * 4 / LINE : 0;
    const int lines_b = call->soon_b ? vectors * (int)sizeof(vector) / LINE : 0;
    const int asking = panel ? (int)most(lines_a, lines_b) : number + left;
    *asks = number < asking ? EVERY_STEP : NOTHING;
    return number < asking ? (int)least(asking - number, left) : left;
}
#else
static struct far *far_of(const struct micro_call *call, int width, struct far *far)
{
    (void)call, (void)width, (void)far;
    return NULL;
}

static int asks_alike(const struct micro_call *call, struct far *far, int col, int vectors, int number, int left,
                      enum asks *asks, struct asked *asked)
{
    (void)call, (void)far, (void)col, (void)vectors, (void)number, (void)asked;
    *asks = EVERY_STEP;
    return left;
}
#endif

enum { WIDTH = VECTORS * LANES };

/* Rows of a call in `parts` blocks: `of_few` of `few` rows, and below them others of one more. */
struct heights {
    int parts, few, of_few;
};

static struct heights heights_of(int rows, int vectors)
{
    const int parts = blocks_below(rows, vectors);
    return parts ? (struct heights){parts, rows / parts, parts - rows % parts} : (struct heights){0};
}

/* Blocks of `width` columns from `col` on, below each other. far: what they share, or NULL. */
static void column(const struct micro_call *call, int col, int width, bool pairs, struct far *far)
{
    const int vectors = (width + LANES - 1) / LANES, lanes = width - (vectors - 1) * LANES;
    const struct heights heights = heights_of(call->m, vectors);
    for (int part = 0, row = 0; part < heights.parts;) {
        struct asked asked = {0};
        enum asks way;
        int left = asks_alike(call, far, col, vectors, part, heights.parts - part, &way, &asked);
        for (; left > 0; left--, part++, asked.part++) {
            const int rows = heights.few + (part >= heights.of_few);
            assert(blocks[way][pairs][vectors][rows]);
            blocks[way][pairs][vectors][rows](call, row, col, lanes, &asked);
            row += rows;
        }
    }
}

/* Columns of a block. Rows that come to four a block are wider ones. */
static int width_of(const struct micro_call *call)
{
#if defined(ISA_IS_avx2)
    static const int vectors[] = {VECTORS, MOST_VECTORS, 4, 4, 3, VECTORS, VECTORS, 3, 3};
    return (call->m < (int)(sizeof vectors / sizeof *vectors) ? vectors[call->m] : VECTORS) * LANES;
#else
    (void)call;
    return WIDTH;
#endif
}

#if defined(ISA_IS_avx2)
/* Are all blocks of whole columns among block_runs? */
static bool in_runs(const struct micro_call *call, bool pairs, int width, const struct far *far)
{
    const struct heights heights = heights_of(call->m, VECTORS);
    if (!ASSEMBLER || pairs || width != WIDTH || !call->count || call->ldb > PANEL_MAX || heights.few < RUN_ROWS_MIN)
        return false;
    return far ? far->parts == ASKERS || !(far->lines_of_a + far->lines_of_b)
               : !call->soon_a && (!call->soon_b || (heights.parts >= ASKERS && call->k[0] >= SPACED_STEPS));
}

/* All whole columns; returns where they end. */
static int run_columns(const struct micro_call *call, struct far *far)
{
    const struct heights heights = heights_of(call->m, VECTORS);
    const int64_t a = 4 * call->row_stride, c = 4 * call->ldc;
    const int64_t along_a[] = {0, a, 2 * a, 3 * a, 4 * a, 5 * a}, along_c[] = {0, c, 2 * c, 3 * c, 4 * c, 5 * c};
    const int64_t *of_a = call->row_offset, *of_c = call->result_offset;
    struct block_run run = {
        .a = {.stride = of_a ? 0 : a, .offset_stride = of_a ? sizeof *of_a : 0},
        .c = {.stride = of_c ? 0 : c, .offset_stride = of_c ? sizeof *of_c : 0},
        .segment_a = call->a, .segment_b = call->b, .steps = call->k, .segments = call->count,
        .step = 4 * call->step_stride, .line = 4 * call->ldb, .accumulate = call->accumulate};
    int col = 0;
    for (; col + WIDTH <= call->n; col += WIDTH) {
        run.col = 4 * col;
        run.a.begin = 0;
        run.a.offset = of_a ? of_a : along_a;
        run.c.begin = (int64_t)(call->c + col);
        run.c.offset = of_c ? of_c : along_c;
        for (int part = 0; part < heights.parts;) {
            struct asked asked;
            enum asks way;
            int left = asks_alike(call, far, col, VECTORS, part, heights.parts - part, &way, &asked);
            assert(way != EVERY_STEP);
            if (way == SPACED) {
                run.soon = asked.soon;
                run.soon_offset = asked.offset;
                run.soon_stride = asked.stride;
                run.part = asked.part;
            }
            while (left > 0) {
                const int rows = heights.few + (part >= heights.of_few);
                run.blocks = part < heights.of_few ? least(left, heights.of_few - part) : left;
                part += (int)run.blocks;
                left -= (int)run.blocks;
                block_runs[way == SPACED][rows - RUN_ROWS_MIN](&run);
            }
        }
    }
    return col;
}
#else
#define in_runs(call, pairs, width, far) false
#define run_columns(call, far) 0
#endif

/* Does every step of a block find what it asks for as far on as its own A? */
static bool steps_alike(const struct micro_call *call)
{
    return !call->soon_stride || call->soon_stride == call->step_stride;
}

/* far: what the columns share, or NULL. */
static void columns_of(const struct micro_call *call, int width, bool pairs, struct far *far)
{
    int col = in_runs(call, pairs, width, far) ? run_columns(call, far) : 0;
    for (; col < call->n; col += width)
        column(call, col, (int)least(call->n - col, width), pairs, far);
}

static void columns(const struct micro_call *call, bool pairs)
{
    const int width = width_of(call);
    struct far room, *far = call->soon_a && call->ldb <= PANEL_MAX ? far_of(call, width, &room) : NULL;
    struct micro_call other;
    if (!far && !steps_alike(call)) {
        other = *call;
        other.soon_a = NULL;
        call = &other;
    }
    columns_of(call, width, pairs, far);
}

#if defined(ISA_IS_avx2)
/* A block reads one line of each row of B, and so does every block below it. Rows that lie a large power of two apart
 * share few sets of the level-1 cache, and their lines are gone by then. A call of many rows of C copies each column's
 * lines of B side by side first, where they stay. Those of a packed panel are as good as that.
 * `graphi bench kernels square "gradient of"` shows it. */
enum {
    COPIED_ROWS = 48,
    COPIED_STEPS = 512, /* at most */
    SETS_BYTES = 4096,  /* of level 1: addresses so far apart share a set */
    KEPT = 4,           /* lines of a set that stay: half of its ways, the other half is for A */
};

/* Sets that lines so many elements apart meet. */
static int64_t sets_met(int64_t ldb)
{
    const int64_t apart = (ldb & -ldb) * (int64_t)sizeof(float);
    return most(SETS_BYTES / most(apart, LINE), 1);
}

static bool copies(const struct micro_call *call)
{
    if (call->m < COPIED_ROWS || call->ldb <= PANEL_MAX || call->count > MICRO_SEGMENTS)
        return false;
    int64_t steps = 0;
    for (int64_t i = 0; i < call->count; i++)
        steps += call->k[i];
    const int64_t stay = KEPT * sets_met(call->ldb) / (call->count > 1 ? 2 : 1); /* segments meet at random */
    return steps >= stay && steps <= COPIED_STEPS;
}

INLINE void copy_lines(const char *from, int64_t ldb, int64_t ahead, int64_t steps, int width, bool whole, float *to)
{
    const vector_mask low = first_lanes(width), high = first_lanes(width - LANES);
    for (; steps > 0; steps--, from += ldb, to += WIDTH) {
        const float *line = (const float *)from;
        __builtin_prefetch(from + B_AHEAD * ldb);
        __builtin_prefetch(from + ahead, 0, 2);
        STORE(to, whole ? LOAD(line) : LOAD_PART(line, low));
        STORE(to + LANES, whole ? LOAD(line + LANES) : LOAD_PART(line + LANES, high));
    }
}

/* A column's lines of all segments, one after the other; with `asks` also asks for those of the next call. */
static void copy_column(const struct micro_call *call, int col, int width, float *to, bool asks)
{
    for (int64_t i = 0; i < call->count; to += call->k[i++] * WIDTH) {
        const char *from = (const char *)((const float *)call->b[i] + col);
        const int64_t ahead = asks && call->soon_b ? (const char *)call->soon_b[i] - (const char *)call->b[i] : 0;
        if (width == WIDTH)
            copy_lines(from, call->ldb * 4, ahead, call->k[i], width, true, to);
        else
            copy_lines(from, call->ldb * 4, ahead, call->k[i], width, false, to);
    }
}

/* Segments whose A goes on where that of the one before ends are one, now that their lines of B do: a weight gradient
 * of few rows a step of time has very short ones. Returns how many are left. */
static int64_t join_segments(const struct micro_call *call, const float *lines, const void **a, const void **b,
                             int32_t *k)
{
    int64_t count = 0;
    const char *end = NULL;
    for (int64_t i = 0; i < call->count; i++) {
        const int64_t steps = call->k[i];
        if (!count || call->soon_a || call->a[i] != end) {
            a[count] = call->a[i];
            b[count] = lines;
            k[count++] = 0;
        }
        k[count - 1] += (int32_t)steps;
        lines += steps * WIDTH;
        end = (const char *)call->a[i] + steps * call->step_stride * 4;
    }
    return count;
}

static void copied_columns(const struct micro_call *call, bool pairs)
{
    alignas(LINE) float lines[COPIED_STEPS * WIDTH];
    const void *a[MICRO_SEGMENTS], *b[MICRO_SEGMENTS];
    struct micro_call near = *call;
    int32_t k[MICRO_SEGMENTS];
    near.ldb = WIDTH;
    near.soon_b = NULL;
    near.a = a;
    near.b = b;
    near.k = k;
    near.count = join_segments(call, lines, a, b, k);
    struct far room, *far = near.count == call->count ? far_of(call, WIDTH, &room) : NULL;
    if (!far && !steps_alike(call))
        near.soon_a = NULL;
    for (int col = 0; col < call->n; col += WIDTH) {
        near.n = (int)least(call->n - col, WIDTH);
        copy_column(call, col, near.n, lines, !far);
        near.c = call->c + col;
        columns_of(&near, WIDTH, pairs, far);
        near.soon_a = NULL; /* it was asked for in the first column */
    }
}
#else
static bool copies(const struct micro_call *call)
{
    (void)call;
    return false;
}
#define copied_columns columns
#endif

static void tile(const struct micro_call *call, bool pairs)
{
    (copies(call) ? copied_columns : columns)(call, pairs);
}

void NAME(micro)(const struct micro_call *call)
{
    tile(call, false);
}

void NAME(micro_pairs)(const struct micro_call *call)
{
    tile(call, true);
}
#endif
