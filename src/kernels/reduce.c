/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: dimensions are merged into groups of kept and reduced ones. When the innermost group is kept, `cols`
 * results lie side by side and a reduced item is a row added to them; when it is reduced, an item is a contiguous
 * piece that gives one number. Items are cut into leaves by the groups' sizes alone. Units of work are (outer kept
 * index, leaf, block of columns).
 *
 * A bounded dimension 0 is a group of its own, so that a call only clips its size; leaves are then those of the bound,
 * the last ones short or empty. Usual sizes: 64 x 512 to 10^6 x 64 summed over rows (bias gradients), 10^6 to one
 * (losses). */
#include "kernels/reduce.h"

#include "base/status.h"
#include "kernels/each_isa.h"
#include "kernels/reduce_isa.h"

#include <math.h>
#include <string.h>

enum {
    PIECE = REDUCE_PIECE,
    COL_BLOCK = 256,
    LEAF_BYTES = 32 << 10,
    MAX_UNITS = 64,
    GROUP_ITEMS = REDUCE_GROUP,
    AHEAD = 16,
    FAR_BYTES = 8 << 20,
    PARTS_BLOCK = 1024, /* of a sum of parts, kept in level 1 */
};

struct axis_list {
    int count;
    int64_t dims[GRAPHI_MAX_RANK + 1], strides[GRAPHI_MAX_RANK + 1];
};

struct reduce {
    enum reduce_op op;
    const struct reduce_loops *loops;
    struct axis_list kept, reduced; /* outer groups, outermost first, without the innermost group */
    bool kept_bounded, reduced_bounded;
    bool inner_reduced;
    int64_t inner;            /* size of the innermost group */
    int64_t cols, col_blocks; /* results side by side: inner when it is kept, else 1 */
    int64_t pieces;           /* of an inner reduced group */
    int64_t leaves, leaf_items;
    bool far; /* not in level 2: rows are asked for ahead, for what four at a time need is not foreseen by the processor
               */
    int shares[2];
};

/* The sizes of one call. */
struct extent {
    int64_t outer, items;
};

static int64_t product(const struct axis_list *list, bool bounded, int64_t rows)
{
    int64_t n = 1;
    for (int i = 0; i < list->count; i++)
        n *= bounded && i == 0 ? rows : list->dims[i];
    return n;
}

static struct extent extent_of(const struct reduce *work, int64_t rows)
{
    return (struct extent){product(&work->kept, work->kept_bounded, rows),
                           product(&work->reduced, work->reduced_bounded, rows) * work->pieces};
}

static int64_t offset_of(const struct axis_list *list, int64_t index)
{
    int64_t offset = 0;
    for (int i = list->count - 1; i > 0; i--) {
        offset += index % list->dims[i] * list->strides[i];
        index /= list->dims[i];
    }
    return list->count ? offset + index * list->strides[0] : 0;
}

static float start_of(const struct reduce *work)
{
    return work->op == REDUCE_MAX ? -INFINITY : 0;
}

static float join(const struct reduce *work, float a, float b)
{
    if (work->op == REDUCE_MAX)
        return a != a || a > b ? a : b;
    return a + b;
}

/* Items [begin, end) into one number: pieces of contiguous memory. */
static float reduce_pieces(const struct reduce *work, const float *x, int64_t begin, int64_t end)
{
    float total = start_of(work);
    while (begin < end) {
        float group = start_of(work);
        for (int k = 0; k < GROUP_ITEMS && begin < end; k++, begin++) {
            int64_t first = begin % work->pieces * PIECE;
            int64_t n = work->inner - first < PIECE ? work->inner - first : PIECE;
            group = join(work, group,
                         work->loops->run[work->op](x + offset_of(&work->reduced, begin / work->pieces) + first, n));
        }
        total = join(work, total, group);
    }
    return total;
}

/* Items [begin, end) into cols numbers: rows. */
static void reduce_rows(const struct reduce *work, const float *x, int64_t begin, int64_t end, float *total, int cols)
{
    enum reduce_op combine = work->op == REDUCE_MAX ? REDUCE_MAX : REDUCE_SUM;
    for (int c = 0; c < cols; c++)
        total[c] = start_of(work);
    while (begin < end) {
        float group[COL_BLOCK];
        for (int c = 0; c < cols; c++)
            group[c] = start_of(work);
        for (int k = 0; k < GROUP_ITEMS && begin < end; k += 4) {
            const float *row[4];
            int count = 0;
            for (; count < 4 && begin < end; begin++) {
                const float *ahead = work->far ? x + offset_of(&work->reduced, least(begin + AHEAD, end - 1)) : NULL;
                for (int c = 0; ahead && c < cols; c += 16)
                    __builtin_prefetch(ahead + c, 0, 2);
                row[count++] = x + offset_of(&work->reduced, begin);
            }
            work->loops->rows[work->op](group, row, count, cols);
        }
        work->loops->rows[combine](total, (const float *const[]){group}, 1, cols);
    }
}

static void finish(const struct reduce *work, float *y, int64_t cols, int64_t count)
{
    for (int64_t c = 0; c < cols && work->op == REDUCE_MEAN; c++)
        y[c] /= (float)count;
}

static int64_t reduced_count(const struct reduce *work, struct extent extent)
{
    return extent.items / work->pieces * (work->inner_reduced ? work->inner : 1);
}

static void leaf(const struct reduce *work, const struct kernel_call *call, struct extent extent, int64_t unit)
{
    int64_t block = unit % work->col_blocks, l = unit / work->col_blocks % work->leaves;
    int64_t o = unit / work->col_blocks / work->leaves, col = block * COL_BLOCK;
    int64_t begin = least(l * work->leaf_items, extent.items), end = least(begin + work->leaf_items, extent.items);
    const float *x = (const float *)call->in[0].data + offset_of(&work->kept, o);
    float *y = work->leaves > 1 ? call->workspace : call->out[0].data;
    y += (o * work->leaves + l) * work->cols + col;
    int cols = (int)least(COL_BLOCK, work->cols - col);
    if (work->inner_reduced)
        *y = reduce_pieces(work, x, begin, end);
    else
        reduce_rows(work, x + col, begin, end, y, cols);
    if (work->leaves == 1)
        finish(work, y, cols, reduced_count(work, extent));
}

static void combine(const struct reduce *work, const struct kernel_call *call, struct extent extent, int64_t unit)
{
    int64_t o = unit / work->col_blocks, col = unit % work->col_blocks * COL_BLOCK;
    int64_t cols = least(COL_BLOCK, work->cols - col);
    const float *x = (const float *)call->workspace + o * work->leaves * work->cols + col;
    float *y = (float *)call->out[0].data + o * work->cols + col;
    for (int64_t c = 0; c < cols; c++)
        y[c] = x[c];
    for (int64_t l = 1; l < work->leaves; l++)
        for (int64_t c = 0; c < cols; c++)
            y[c] = join(work, y[c], x[l * work->cols + c]);
    finish(work, y, cols, reduced_count(work, extent));
}

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct reduce *work = call->params;
    struct extent extent = extent_of(work, call->in[0].rows);
    int64_t begin, end, units = extent.outer * work->col_blocks * (phase ? 1 : work->leaves);
    split_range(units, work->shares[phase], share, &begin, &end);
    for (; begin < end; begin++)
        if (phase)
            combine(work, call, extent, begin);
        else
            leaf(work, call, extent, begin);
    return GRAPHI_OK;
}

/* Merges dimensions of one kind that follow each other in memory; the innermost group is taken off the lists. */
static graphi_status group_axes(struct reduce *work, const struct array_desc *in, unsigned axes)
{
    int groups = 0;
    int64_t dims[GRAPHI_MAX_RANK + 1], strides[GRAPHI_MAX_RANK + 1];
    bool reduced[GRAPHI_MAX_RANK + 1], bounded = false;
    for (int i = 0; i < in->rank; i++) {
        bool is_reduced = axes >> i & 1, is_bounded = in->bounded && i == 0;
        if (in->dims[i] == 1 && !is_bounded)
            continue;
        bool merges = groups && !(bounded && groups == 1) && reduced[groups - 1] == is_reduced &&
                      strides[groups - 1] == in->strides[i] * in->dims[i];
        if (!merges) {
            dims[groups] = 1;
            reduced[groups++] = is_reduced;
        }
        dims[groups - 1] *= in->dims[i];
        strides[groups - 1] = in->strides[i];
        bounded |= is_bounded;
    }
    if (!groups || (bounded && groups == 1) || strides[groups - 1] != 1) { /* an innermost group of one element */
        if (groups && strides[groups - 1] != 1 && in->dims[in->rank - 1] != 1)
            return fail(GRAPHI_UNSUPPORTED, "reduce", "found a last dimension of stride %lld, expected 1",
                        (long long)in->strides[in->rank - 1]);
        dims[groups] = strides[groups] = 1;
        reduced[groups] = groups && reduced[groups - 1];
        groups++;
    }
    work->inner = dims[groups - 1];
    work->inner_reduced = reduced[groups - 1];
    for (int i = 0; i < groups - 1; i++) {
        struct axis_list *list = reduced[i] ? &work->reduced : &work->kept;
        list->dims[list->count] = dims[i];
        list->strides[list->count++] = strides[i];
    }
    work->kept_bounded = bounded && !reduced[0];
    work->reduced_bounded = bounded && reduced[0];
    return GRAPHI_OK;
}

static int64_t units_wanted(double bytes)
{
    int64_t wanted = least((int64_t)(bytes / LEAF_BYTES), MAX_UNITS);
    return wanted < 1 ? 1 : wanted;
}

/* Leaves: as many as give units of LEAF_BYTES, when the results alone are too few units. */
static int64_t leaves_for(double bytes, int64_t results, int64_t items)
{
    int64_t leaves = results ? least(units_wanted(bytes) / results, items) : 1;
    return leaves < 1 ? 1 : leaves;
}

struct reduce_leaves reduce_leaves_of(int64_t rows, int64_t cols)
{
    int64_t count = leaves_for((double)(rows * cols) * sizeof(float), divide_up(cols, COL_BLOCK), rows);
    return (struct reduce_leaves){count, divide_up(rows, count)};
}

struct reduce_whole reduce_whole_of(int64_t count)
{
    const int64_t pieces = divide_up(count, PIECE), leaves = leaves_for((double)count * sizeof(float), 1, pieces);
    return (struct reduce_whole){pieces, leaves, divide_up(pieces, leaves)};
}

static void cut(struct reduce *work, int64_t rows, double bytes)
{
    work->cols = work->inner_reduced ? 1 : work->inner;
    work->col_blocks = divide_up(work->cols, COL_BLOCK);
    /* nothing is one empty piece */
    work->pieces = work->inner_reduced && work->inner ? divide_up(work->inner, PIECE) : 1;
    struct extent bound = extent_of(work, rows);
    int64_t results = bound.outer * work->col_blocks;
    work->far = bytes >= FAR_BYTES;
    work->leaves = leaves_for(bytes, results, bound.items);
    work->leaf_items = divide_up(bound.items, work->leaves);
    int64_t shares = least(units_wanted(bytes), results * work->leaves);
    work->shares[0] = shares < 1 ? 1 : (int)shares;
    int64_t combining = least(results, 1 + results * work->leaves * least(work->cols, COL_BLOCK) * 4 / LEAF_BYTES);
    work->shares[1] = combining < 1 ? 1 : (int)combining;
}

const struct reduce_loops *reduce_loops_of(enum isa isa)
{
#define ENTRY(isa) &reduce_loops_##isa,
    static const struct reduce_loops *const loops[] = {EACH_ISA(ENTRY)};
    return loops[isa];
}

void reduce_parts(const struct reduce_loops *loops, const float *parts, int64_t stride, int64_t count, int64_t begin,
                  int64_t end, float *sum)
{
    for (int64_t at = begin; at < end; at += PARTS_BLOCK) {
        const int n = (int)least(end - at, PARTS_BLOCK);
        if (sum != parts)
            memcpy(sum + at, parts + at, (size_t)n * sizeof *sum);
        for (int64_t part = 1; part < count; part++) {
            const float *x = parts + part * stride + at;
            loops->rows[REDUCE_SUM](sum + at, &x, 1, n);
        }
    }
}

graphi_status reduce_bind(enum reduce_op op, const struct array_desc *in, unsigned axes, const struct array_desc *out,
                          enum isa isa, struct kernel *kernel)
{
    static const char *const names[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_sum_squares"};
    if (in->dtype != GRAPHI_F32 || out->dtype != GRAPHI_F32 || !array_is_dense(out))
        return fail(GRAPHI_UNSUPPORTED, names[op],
                    "found another type than float32 or a strided output, expected dense float32");
    struct reduce draft = {.op = op, .loops = reduce_loops_of(isa)};
    TRY(group_axes(&draft, in, axes));
    double bytes = (double)array_count(in) * sizeof(float), results = (double)array_count(out);
    int64_t rows = in->rank ? in->dims[0] : 1;
    cut(&draft, rows, bytes);
    if (extent_of(&draft, rows).outer * draft.cols != array_count(out))
        return fail(GRAPHI_INVALID, names[op], "found %lld results, expected %lld", (long long)array_count(out),
                    (long long)(extent_of(&draft, rows).outer * draft.cols));
    const bool leaves = draft.leaves > 1;
    struct kernel like = {.name = names[op],
                          .run = run,
                          .phases = leaves ? 2 : 1,
                          .shares = {draft.shares[0], leaves ? draft.shares[1] : 0},
                          .workspace = leaves ? (size_t)results * (size_t)draft.leaves * sizeof(float) : 0,
                          .flops = bytes / sizeof(float) * (op == REDUCE_SUM_SQUARES ? 2 : 1),
                          .bytes = bytes + results * sizeof(float)};
    return kernel_make(like, &draft, sizeof draft, kernel);
}
