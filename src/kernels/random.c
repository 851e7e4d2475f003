/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout and random arrays: one Philox counter gives four elements, blocks of counters are drawn at once. Usual size:
 * 64 x 1024. */
#include "kernels/random.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "kernels/each_isa.h"
#include "kernels/random_isa.h"

#include <math.h>

enum { SHARE_ELEMENTS = 4096, MAX_SHARES = 64 };

struct loops {
    void (*block)(uint64_t key, uint64_t high, uint64_t low, uint32_t *bits);
    void (*dropout)(const uint32_t *bits, float threshold, float factor, const float *x, float *y, float *mask, int n);
};

#define ENTRY(isa) {random_block_##isa, random_dropout_##isa},
static const struct loops loops_of[] = {EACH_ISA(ENTRY)};

/* What to do with n numbers for the elements from `at` on; bits[-1] belongs to the same block unless the element is
 * the first of its counter. */
struct draw;
typedef void (*draw_function)(const struct draw *work, const struct kernel_call *call, const uint32_t *bits, int64_t at,
                              int n);

struct draw {
    struct loops loops;
    draw_function draw;
    float a, b;
    uint64_t key;
    int64_t count, row; /* elements at the bound; of one of dimension 0 */
    int64_t sample;     /* of one sample */
    bool bounded;
    int shares;
};

/* Blocks begin at whole counters, so a share may use only the end of its first block. */
static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct draw *work = call->params;
    uint64_t key = hash_u64(hash_u64(HASH_START, call->seed), work->key);
    uint32_t bits[RANDOM_BLOCK];
    int64_t begin, end;
    split_range(work->bounded ? call->out[0].rows * work->row : work->count, work->shares, share, &begin, &end);
    while (begin < end) {
        uint64_t counter = call->first_sample * (uint64_t)work->sample + (uint64_t)begin;
        int skip = (int)(counter & 3), n = RANDOM_BLOCK - skip;
        n = end - begin < n ? (int)(end - begin) : n;
        work->loops.block(key, call->step, counter >> 2, bits);
        work->draw(work, call, bits + skip, begin, n);
        begin += n;
    }
    return GRAPHI_OK;
}

static void draw_dropout(const struct draw *work, const struct kernel_call *call, const uint32_t *bits, int64_t at,
                         int n)
{
    work->loops.dropout(bits, work->a, work->b, (const float *)call->in[0].data + at, (float *)call->out[0].data + at,
                        (float *)call->out[1].data + at, n);
}

static void draw_uniform(const struct draw *work, const struct kernel_call *call, const uint32_t *bits, int64_t at,
                         int n)
{
    float *y = (float *)call->out[0].data + at;
    for (int i = 0; i < n; i++) {
        float value = work->a + (work->b - work->a) * random_unit(bits[i]);
        y[i] = value < work->b ? value : work->a; /* rounding may have reached b */
    }
}

/* Two numbers of a counter give two elements, by Box and Muller; a pair may begin before the share or end after it, so
 * each element is computed from its pair alone. */
static void draw_normal(const struct draw *work, const struct kernel_call *call, const uint32_t *bits, int64_t at,
                        int n)
{
    float *y = (float *)call->out[0].data + at;
    uint64_t first = call->first_sample * (uint64_t)work->sample + (uint64_t)at;
    for (int i = 0; i < n; i++) {
        int odd = (int)((first + (uint64_t)i) & 1);
        float radius = sqrtf(-2 * logf(1 - random_unit(bits[i - odd]))),
              angle = 6.2831853f * random_unit(bits[i - odd + 1]);
        y[i] = work->a + work->b * radius * (odd ? sinf(angle) : cosf(angle));
    }
}

static graphi_status make(const char *name, struct draw draft, int64_t sample_rows, const struct array_desc *y,
                          int arrays, enum isa isa, struct kernel *kernel)
{
    if (y->dtype != GRAPHI_F32 || !array_is_dense(y))
        return fail(GRAPHI_UNSUPPORTED, name, "found an output of another type or strided, expected dense float32");
    draft.loops = loops_of[isa];
    draft.count = array_count(y);
    draft.bounded = y->bounded;
    draft.row = y->rank && y->dims[0] ? draft.count / y->dims[0] : draft.count;
    draft.sample = sample_rows * draft.row;
    int64_t shares = draft.count / SHARE_ELEMENTS;
    draft.shares = shares < 1 ? 1 : shares > MAX_SHARES ? MAX_SHARES : (int)shares;
    struct kernel like = {.name = name, .run = run, .shares = {draft.shares}, .flops = (double)draft.count,
                          .bytes = arrays * (double)draft.count * sizeof(float)};
    return kernel_make(like, &draft, sizeof draft, kernel);
}

graphi_status dropout_bind(double keep, uint64_t key, int64_t sample_rows, const struct array_desc *x,
                           const struct array_desc *y, const struct array_desc *mask, enum isa isa,
                           struct kernel *kernel)
{
    if (!(keep > 0 && keep <= 1))
        return fail(GRAPHI_INVALID, "dropout", "found keep %g, expected 0 < keep <= 1", keep);
    if (!array_is_dense(x) || !array_is_dense(mask) || array_count(x) != array_count(y) ||
        array_count(mask) != array_count(y))
        return fail(GRAPHI_UNSUPPORTED, "dropout",
                    "found strided arrays or sizes that differ, expected dense ones of one shape");
    struct draw draft = {.draw = draw_dropout, .a = (float)keep, .b = (float)(1 / keep), .key = key};
    return make("dropout", draft, sample_rows, y, 3, isa, kernel);
}

graphi_status random_fill_bind(enum random_kind kind, double a, double b, uint64_t key, int64_t sample_rows,
                               const struct array_desc *y, enum isa isa, struct kernel *kernel)
{
    struct draw draft = {
        .draw = kind == RANDOM_UNIFORM ? draw_uniform : draw_normal, .a = (float)a, .b = (float)b, .key = key};
    return make(kind == RANDOM_UNIFORM ? "random_uniform" : "random_normal", draft, sample_rows, y, 1, isa, kernel);
}
