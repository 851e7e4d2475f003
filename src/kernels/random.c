/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout and random arrays: one Philox call gives four elements. Memory-bound beside it: usual size 64 x 1024. */
#include "kernels/random.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>

enum { SHARE_ELEMENTS = 4096, MAX_SHARES = 64 };

struct draw {
    float a, b;
    uint64_t key;
    int64_t count, row; /* elements at the bound; of one sample */
    bool bounded;
    int shares;
};

/* The part of one share: elements [begin, end), the first one's counter. */
struct stretch {
    int64_t begin, end;
    uint64_t key, counter;
};

static struct stretch stretch_of(const struct kernel_call *call, int share)
{
    const struct draw *work = call->params;
    struct stretch s = {.key = hash_u64(hash_u64(HASH_START, call->seed), work->key)};
    split_range(work->bounded ? call->out[0].rows * work->row : work->count, work->shares, share, &s.begin, &s.end);
    s.counter = call->first_sample * (uint64_t)work->row + (uint64_t)s.begin;
    return s;
}

static graphi_status dropout_run(const struct kernel_call *call, int phase, int share)
{
    const struct draw *work = call->params;
    struct stretch s = stretch_of(call, share);
    const float *x = call->in[0].data;
    float *y = call->out[0].data, *mask = call->out[1].data;
    while (s.begin < s.end) {
        struct random4 four = random_philox(s.key, call->step, s.counter >> 2);
        for (int lane = s.counter & 3; lane < 4 && s.begin < s.end; lane++, s.begin++, s.counter++) {
            float keep = random_unit(four.v[lane]) < work->a ? work->b : 0;
            float value = keep != 0 ? x[s.begin] * keep : 0;
            y[s.begin] = value;
            mask[s.begin] = keep;
        }
    }
    return GRAPHI_OK;
}

static graphi_status uniform_run(const struct kernel_call *call, int phase, int share)
{
    const struct draw *work = call->params;
    struct stretch s = stretch_of(call, share);
    float *y = call->out[0].data;
    while (s.begin < s.end) {
        struct random4 four = random_philox(s.key, call->step, s.counter >> 2);
        for (int lane = s.counter & 3; lane < 4 && s.begin < s.end; lane++, s.counter++) {
            float value = work->a + (work->b - work->a) * random_unit(four.v[lane]);
            y[s.begin++] = value < work->b ? value : work->a; /* rounding may have reached b */
        }
    }
    return GRAPHI_OK;
}

/* Two by two, by Box and Muller. */
static graphi_status normal_run(const struct kernel_call *call, int phase, int share)
{
    const struct draw *work = call->params;
    struct stretch s = stretch_of(call, share);
    float *y = call->out[0].data;
    while (s.begin < s.end) {
        struct random4 four = random_philox(s.key, call->step, s.counter >> 2);
        for (int lane = s.counter & 3; lane < 4 && s.begin < s.end; lane++, s.counter++) {
            float radius = sqrtf(-2 * logf(1 - random_unit(four.v[lane & 2])));
            float angle = 6.2831853f * random_unit(four.v[(lane & 2) + 1]);
            y[s.begin++] = work->a + work->b * radius * (lane & 1 ? sinf(angle) : cosf(angle));
        }
    }
    return GRAPHI_OK;
}

static graphi_status make(const char *name, kernel_function run, struct draw draft, const struct array_desc *y, int arrays,
                          struct kernel *kernel)
{
    if (y->dtype != GRAPHI_F32 || !array_is_dense(y))
        return fail(GRAPHI_UNSUPPORTED, name, "found an output of another type or strided, expected dense float32");
    draft.count = array_count(y);
    draft.bounded = y->bounded;
    draft.row = y->rank && y->dims[0] ? draft.count / y->dims[0] : draft.count;
    int64_t shares = draft.count / SHARE_ELEMENTS;
    draft.shares = shares < 1 ? 1 : shares > MAX_SHARES ? MAX_SHARES : (int)shares;
    struct draw *work = mem_alloc(sizeof *work);
    if (!work)
        return fail_memory(name, sizeof *work);
    *work = draft;
    *kernel = (struct kernel){.name = name,
                              .run = run,
                              .params = work,
                              .params_bytes = sizeof *work,
                              .phases = 1,
                              .shares = {work->shares},
                              .flops = (double)draft.count,
                              .bytes = arrays * (double)draft.count * sizeof(float)};
    return GRAPHI_OK;
}

graphi_status dropout_bind(double keep, uint64_t key, const struct array_desc *x, const struct array_desc *y,
                           const struct array_desc *mask, enum isa isa, struct kernel *kernel)
{
    if (!(keep > 0 && keep <= 1))
        return fail(GRAPHI_INVALID, "dropout", "found keep %g, expected 0 < keep <= 1", keep);
    if (!array_is_dense(x) || !array_is_dense(mask) || array_count(x) != array_count(y) || array_count(mask) != array_count(y))
        return fail(GRAPHI_UNSUPPORTED, "dropout", "found strided arrays or sizes that differ, expected dense ones of one shape");
    struct draw draft = {.a = (float)keep, .b = (float)(1 / keep), .key = key};
    return make("dropout", dropout_run, draft, y, 3, kernel);
}

graphi_status random_fill_bind(enum random_kind kind, double a, double b, uint64_t key, const struct array_desc *y,
                               enum isa isa, struct kernel *kernel)
{
    struct draw draft = {.a = (float)a, .b = (float)b, .key = key};
    return make(kind == RANDOM_UNIFORM ? "random_uniform" : "random_normal",
                kind == RANDOM_UNIFORM ? uniform_run : normal_run, draft, y, 1, kernel);
}
