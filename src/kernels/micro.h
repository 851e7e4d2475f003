/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel below every product and convolution: one tile of C, kept in registers block by block, over a list of
 * segments that each add op(A_i)[m x k_i] * B_i[k_i x n].
 *
 * A is read one element at a time (broadcast), B and C in rows. So A may be transposed, strided, or given row by row
 * (`row_offset`, as a convolution needs for pixels of several image rows), at the same speed. The kernel reads nothing
 * but the elements it multiplies, and each element of C is summed in the order of segments and k, whatever m and n are:
 * results do not depend on how C was cut into tiles.
 *
 * An element is a float, or a pair of bfloat16 (k, k+1) when `pairs` is set: then A, B, k and strides count pairs. */
#ifndef KERNELS_MICRO_H
#define KERNELS_MICRO_H

#include "kernels/kernel.h"

struct micro_call {
    int m, n;             /* of the tile; 0 does nothing */
    int64_t count;        /* segments; 0 with !accumulate clears C */
    const void *const *a; /* [count]: A_i, element (r, k) at row offset(r) + k * step_stride */
    const void *const *b; /* [count] */
    const void *const *soon_a,
        *const *soon_b;   /* [count], or NULL: what the next call reads, asked for while this one runs; hints */
    int64_t soon_stride;  /* of soon_a between steps, in elements; 0: step_stride */
    bool soon_all;        /* soon_b is no B: as large as this one's, and asked for in all columns */
    const int32_t *k;                /* [count]: steps */
    const int64_t *row_offset;       /* [m] in bytes, or NULL: row r is r * row_stride elements on */
    int64_t row_stride, step_stride; /* of A in elements */
    int64_t ldb, ldc;
    const int64_t *result_offset; /* [m] in bytes, or NULL: row r of C is r * ldc floats on */
    float *c;
    bool accumulate; /* C += , else C = */
};

typedef void (*micro_function)(const struct micro_call *call);

/* The kernel for an instruction set (any is accepted; the machine must have it to run it). */
micro_function micro_kernel(enum isa isa, bool pairs);

/* Segments waiting for one call: added one by one in the order of the sum, cut so that no call has more than `limit`
 * steps (its part of B then stays in the level-2 cache). The caller starts the list, fills the strides, tile and target
 * of `call`, and may change strides after a flush. */
enum { MICRO_SEGMENTS = 64, MICRO_STEPS = 512 };

struct micro_list {
    struct micro_call call;
    micro_function run;
    int64_t waiting, limit;
    const char *soon_a, *soon_b; /* what to ask for beside the next steps added, with their strides; NULL: nothing */
    const void *a[MICRO_SEGMENTS], *b[MICRO_SEGMENTS], *next_a[MICRO_SEGMENTS], *next_b[MICRO_SEGMENTS];
    int32_t k[MICRO_SEGMENTS];
};

static inline void micro_start(struct micro_list *list, micro_function run, int64_t limit)
{
    list->run = run;
    list->waiting = 0;
    list->limit = limit;
    list->soon_a = list->soon_b = NULL;
}

static inline void micro_flush(struct micro_list *list)
{
    list->call.a = list->a;
    list->call.b = list->b;
    list->call.soon_a = list->soon_a ? list->next_a : NULL;
    list->call.soon_b = list->soon_b ? list->next_b : NULL;
    list->call.k = list->k;
    list->run(&list->call);
    list->call.accumulate = true;
    list->call.count = list->waiting = 0;
}

static inline void micro_add(struct micro_list *list, const char *a, const char *b, int64_t steps)
{
    while (steps > 0) {
        int64_t taken = steps < list->limit - list->waiting ? steps : list->limit - list->waiting;
        list->a[list->call.count] = a;
        list->b[list->call.count] = b;
        list->next_a[list->call.count] = list->soon_a;
        list->next_b[list->call.count] = list->soon_b;
        list->k[list->call.count++] = (int32_t)taken;
        list->waiting += taken;
        a += 4 * taken * list->call.step_stride;
        b += 4 * taken * list->call.ldb;
        steps -= taken;
        if (list->waiting == list->limit || list->call.count == MICRO_SEGMENTS)
            micro_flush(list);
        if (list->soon_a)
            list->soon_a += 4 * taken * (list->call.soon_stride ? list->call.soon_stride : list->call.step_stride);
        if (list->soon_b)
            list->soon_b += 4 * taken * list->call.ldb;
    }
}

/* After the last segment; an empty sum clears C. */
static inline void micro_finish(struct micro_list *list)
{
    if (list->call.count || !list->call.accumulate)
        micro_flush(list);
}

/* Steps a call when `steps` are to be done in nearly equal calls of `most`. */
static inline int64_t micro_limit(int64_t steps, int64_t most)
{
    int64_t calls = divide_up(steps, most);
    return calls ? divide_up(steps, calls) : 1;
}

#endif
