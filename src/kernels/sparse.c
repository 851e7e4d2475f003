/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of rows of a table (sparse.h). Usual size: 1,000 ids of a table of 100,000 x 128, so whatever walks over the
 * table costs a hundred times what the list does. Ids are sorted by their digits, in time that no choice of ids makes
 * longer; the list then walks through the table in the order of its memory. */
#include "kernels/sparse.h"

#include "base/status.h"
#include "kernels/reduce_isa.h"
#include "kernels/shares.h"

#include <string.h>

enum { DIGIT = 11, BUCKETS = 1 << DIGIT };

struct sparse_params {
    struct sparse_spec spec;
    int shares, blocks; /* sums: shares = ranges of the list x blocks of columns */
    int digits;         /* of ids, of so many bits */
    row_add add;
};

/* --- sums by id --- */

/* The workspace of a sum, in the order of its memory: all of `count` elements but the first two. */
struct sorted {
    int32_t *different; /* how many ids there are */
    int32_t *begin;     /* [count + 1] of the k-th id: where its positions begin in `position` */
    int32_t *id[2], *position[2];
};

static struct sorted sorted_of(const struct sparse_params *p, void *workspace)
{
    const int64_t count = p->spec.ids.count;
    int32_t *at = workspace;
    struct sorted s = {.different = at, .begin = at + 1};
    at += count + 2;
    for (int side = 0; side < 2; side++) {
        s.id[side] = at + 2 * side * count;
        s.position[side] = at + (2 * side + 1) * count;
    }
    return s;
}

static size_t sorted_bytes(int64_t count) { return (size_t)(5 * count + 2) * sizeof(int32_t); }

/* One digit, the lowest first: equal ones keep their order, so positions of one id ascend. */
static void sort_digit(const struct sorted *s, int from, int digit, int64_t count)
{
    int32_t start[BUCKETS] = {0};
    const int32_t *id = s->id[from], *position = s->position[from];
    const int shift = digit * DIGIT;
    for (int64_t i = 0; i < count; i++)
        start[id[i] >> shift & (BUCKETS - 1)]++;
    for (int32_t b = 0, sum = 0; b < BUCKETS; b++) {
        const int32_t here = start[b];
        start[b] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++) {
        const int32_t to = start[id[i] >> shift & (BUCKETS - 1)]++;
        s->id[!from][to] = id[i];
        s->position[!from][to] = position[i];
    }
}

/* Where the positions of each id begin, and the list itself. */
static void list_ids(const struct sorted *s, const int32_t *id, int64_t count, int32_t *rows, int64_t list)
{
    int32_t k = 0;
    for (int64_t i = 0; i < count; i++)
        if (!i || id[i] != id[i - 1]) {
            s->begin[k] = (int32_t)i;
            rows[k++] = id[i];
        }
    *s->different = k;
    s->begin[k] = (int32_t)count;
    for (int64_t i = k; i < list; i++)
        rows[i] = -1;
}

static graphi_status sort_ids(const struct sparse_params *p, const struct kernel_call *call)
{
    const struct sorted s = sorted_of(p, call->workspace);
    const int32_t *ids = call->in[0].data;
    const int64_t count = embedding_count(&p->spec.ids, &call->in[0]);
    list_ids(&s, NULL, 0, call->out[0].data, call->out[0].rows); /* what others go on with where this fails */
    for (int64_t i = 0; i < count; i++) {
        TRY(embedding_id(&p->spec.ids, "sparse_sum", ids, i, &s.id[0][i]));
        s.position[0][i] = (int32_t)i;
    }
    for (int digit = 0; digit < p->digits; digit++)
        sort_digit(&s, digit & 1, digit, count);
    list_ids(&s, s.id[p->digits & 1], count, call->out[0].data, call->out[0].rows);
    return GRAPHI_OK;
}

static void sum_rows(const struct sparse_params *p, const struct kernel_call *call, int share)
{
    const struct sorted s = sorted_of(p, call->workspace);
    const int32_t *position = s.position[p->digits & 1];
    const float *dy = call->in[1].data;
    const int64_t columns = p->spec.ids.columns;
    int64_t first, last, c0, c1;
    split_range(call->out[1].rows, p->shares / p->blocks, share / p->blocks, &first, &last);
    share_channels(columns, p->blocks, share % p->blocks, &c0, &c1);
    for (int64_t k = first; k < last && c1 > c0; k++) {
        float *to = (float *)call->out[1].data + k * columns + c0;
        memset(to, 0, (size_t)(c1 - c0) * sizeof *to);
        for (int32_t i = k < *s.different ? s.begin[k] : 0; k < *s.different && i < s.begin[k + 1]; i++)
            p->add(to, dy + position[i] * p->spec.ids.ld_y + c0, c1 - c0);
    }
}

static graphi_status sum_run(const struct kernel_call *call, int phase, int share)
{
    const struct sparse_params *p = call->params;
    if (!phase)
        return sort_ids(p, call);
    sum_rows(p, call, share);
    return GRAPHI_OK;
}

static int digits_of(int64_t rows)
{
    int digits = 1;
    for (int64_t left = (rows - 1) >> DIGIT; left > 0; left >>= DIGIT)
        digits++;
    return digits;
}

graphi_status sparse_sum_bind(const struct sparse_spec *spec, enum isa isa, struct kernel *kernel)
{
    const int64_t count = spec->ids.count, columns = spec->ids.columns;
    const double bytes = 4 * ((double)count * (double)(columns + 1) + (double)spec->list * (double)(columns + 1));
    const int wanted = shares_for(bytes, most(spec->list, 16));
    const int blocks = (int)most(1, least(columns / 128, wanted));
    const int ranges = (int)most(1, least(wanted / blocks, spec->list));
    const struct sparse_params p = {.spec = *spec, .shares = blocks * ranges, .blocks = blocks,
                                    .digits = digits_of(spec->ids.rows), .add = row_add_of(isa)};
    return kernel_make((struct kernel){.name = "sparse_sum", .run = sum_run, .phases = 2, .shares = {1, p.shares},
                                       .workspace = sorted_bytes(count), .bytes = bytes,
                                       .flops = (double)count * (double)columns},
                       &p, sizeof p, kernel);
}

/* --- rows of a table --- */

static graphi_status get_run(const struct kernel_call *call, int phase, int share)
{
    const struct sparse_params *p = call->params;
    const struct embedding_spec *s = &p->spec.ids;
    const float *table = call->in[0].data;
    const int32_t *rows = call->in[1].data;
    int64_t begin, end;
    split_range(call->in[1].rows, p->shares, share, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        float *to = (float *)call->out[0].data + i * s->ld_y;
        if (rows[i] < -1 || rows[i] >= s->rows)
            return fail(GRAPHI_INVALID, "sparse_get", "found row %d at position %lld, expected -1 to %lld", rows[i],
                        (long long)i, (long long)(s->rows - 1));
        if (rows[i] < 0)
            memset(to, 0, (size_t)s->columns * sizeof *to);
        else
            memcpy(to, table + rows[i] * s->ld_table, (size_t)s->columns * sizeof *to);
    }
    return GRAPHI_OK;
}

/* Is the row at `i` above the one before it, or behind the last? */
static graphi_status check_row(const struct embedding_spec *s, const char *where, const int32_t *rows, int64_t i)
{
    const int32_t before = i ? rows[i - 1] : -1;
    const bool ends = i && before < 0;
    if (rows[i] == -1 || (rows[i] > before && rows[i] < s->rows && !ends))
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found row %d at position %lld, expected ascending ones from 0 to %lld, then -1",
                rows[i], (long long)i, (long long)(s->rows - 1));
}

static void set_row(const struct sparse_params *p, const struct kernel_call *call, int64_t i)
{
    const struct embedding_spec *s = &p->spec.ids;
    const int32_t row = ((const int32_t *)call->in[1].data)[i];
    if (row >= 0)
        memcpy((float *)call->out[0].data + row * s->columns, (const float *)call->in[2].data + i * s->ld_y,
               (size_t)s->columns * sizeof(float));
}

/* In the table's own bytes a share has a part of the list; otherwise a part of the table, which it copies first. */
static graphi_status set_run(const struct kernel_call *call, int phase, int share)
{
    const struct sparse_params *p = call->params;
    const struct embedding_spec *s = &p->spec.ids;
    const int32_t *rows = call->in[1].data;
    const bool own = call->out[0].data == call->in[0].data;
    int64_t begin = 0, end = call->in[1].rows, first = 0, last = s->rows;
    if (own)
        split_range(call->in[1].rows, p->shares, share, &begin, &end);
    else
        split_range(s->rows, p->shares, share, &first, &last);
    for (int64_t r = first; !own && r < last; r++)
        memcpy((float *)call->out[0].data + r * s->columns, (const float *)call->in[0].data + r * s->ld_table,
               (size_t)s->columns * sizeof(float));
    for (int64_t i = begin; i < end; i++) {
        TRY(check_row(s, "sparse_set", rows, i));
        if (rows[i] >= first && rows[i] < last)
            set_row(p, call, i);
    }
    return GRAPHI_OK;
}

static graphi_status rows_bind(const struct sparse_spec *spec, const char *name, kernel_function run,
                               struct kernel *kernel)
{
    const double bytes = 4.0 * (double)spec->list * (double)(2 * spec->ids.columns + 1);
    const struct sparse_params p = {.spec = *spec, .shares = shares_for(bytes, spec->list)};
    return kernel_make((struct kernel){.name = name, .run = run, .shares = {p.shares}, .bytes = bytes}, &p, sizeof p,
                       kernel);
}

graphi_status sparse_get_bind(const struct sparse_spec *spec, struct kernel *kernel)
{
    return rows_bind(spec, "sparse_get", get_run, kernel);
}

graphi_status sparse_set_bind(const struct sparse_spec *spec, struct kernel *kernel)
{
    return rows_bind(spec, "sparse_set", set_run, kernel);
}

/* --- the sum of squares of a table --- */

struct squares {
    struct sparse_spec spec;
    struct reduce_whole cut;
    float (*run)(const float *x, int64_t n);
    int shares;
};

/* The first of the list whose row is `row` or above, or that is behind the last. */
static int64_t find_row(const int32_t *rows, int64_t list, int64_t row)
{
    int64_t low = 0, high = list;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (rows[middle] >= 0 && rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The part of row `k` of the list that lies in elements [from, to) of the table: its place there, and its length, below
 * 1 where rows do not ascend. */
static int64_t part_of_row(const struct squares *q, const struct kernel_call *call, int64_t k, int64_t from, int64_t to,
                           const float **part, int64_t *length)
{
    const int64_t columns = q->spec.ids.columns, row = ((const int32_t *)call->in[0].data)[k] * columns;
    const int64_t begin = most(row, from), end = least(row + columns, to);
    *part = (const float *)call->in[1].data + k * q->spec.ids.ld_y + (begin - row);
    *length = end - begin;
    return begin - from;
}

/* The sum of the piece at element `from`, of which rows from *k on are not 0; *k moves to the first that goes on behind
 * it. `piece` is 0 before and after. */
static float piece_of(const struct squares *q, const struct kernel_call *call, int64_t from, int64_t *k, float *piece)
{
    const int32_t *rows = call->in[0].data;
    const int64_t columns = q->spec.ids.columns, to = least(from + REDUCE_PIECE, q->spec.ids.rows * columns);
    int64_t first = *k, last = *k, length;
    const float *part;
    for (; last < call->in[0].rows && rows[last] >= 0 && rows[last] * columns < to; last++) {
        const int64_t at = part_of_row(q, call, last, from, to, &part, &length);
        if (length > 0)
            memcpy(piece + at, part, (size_t)length * sizeof *piece);
    }
    const float sum = q->run(piece, to - from);
    for (int64_t i = first; i < last; i++) {
        const int64_t at = part_of_row(q, call, i, from, to, &part, &length);
        if (length > 0)
            memset(piece + at, 0, (size_t)length * sizeof *piece);
    }
    *k = last > first && (rows[last - 1] + 1) * columns > to ? last - 1 : last;
    return sum;
}

/* Pieces of zeros add +0 to sums that are never -0, which changes no bit: they are passed over. */
static float leaf_of(const struct squares *q, const struct kernel_call *call, int64_t leaf)
{
    const int32_t *rows = call->in[0].data;
    const int64_t columns = q->spec.ids.columns, begin = leaf * q->cut.leaf_pieces;
    const int64_t end = least(begin + q->cut.leaf_pieces, q->cut.pieces);
    float piece[REDUCE_PIECE] = {0}, total = 0, group = 0;
    int64_t at = begin, k = find_row(rows, call->in[0].rows, begin * REDUCE_PIECE / columns);
    while (k < call->in[0].rows && rows[k] >= 0) {
        const int64_t next = most(at, rows[k] * columns / REDUCE_PIECE);
        if (next >= end)
            break;
        if ((next - begin) / REDUCE_GROUP != (at - begin) / REDUCE_GROUP) {
            total += group;
            group = 0;
        }
        group += piece_of(q, call, next * REDUCE_PIECE, &k, piece);
        at = next + 1;
        if ((at - begin) % REDUCE_GROUP == 0) {
            total += group;
            group = 0;
        }
    }
    return total + group;
}

static graphi_status squares_run(const struct kernel_call *call, int phase, int share)
{
    const struct squares *q = call->params;
    float *leaf = call->workspace, *out = call->out[0].data;
    int64_t begin, end;
    if (phase) {
        *out = leaf[0];
        for (int64_t l = 1; l < q->cut.leaves; l++)
            *out += leaf[l];
        return GRAPHI_OK;
    }
    for (int64_t i = 0; share == 0 && i < call->in[0].rows; i++)
        TRY(check_row(&q->spec.ids, "sparse_squares", call->in[0].data, i));
    split_range(q->cut.leaves, q->shares, share, &begin, &end);
    for (; begin < end; begin++)
        leaf[begin] = leaf_of(q, call, begin);
    return GRAPHI_OK;
}

graphi_status sparse_squares_bind(const struct sparse_spec *spec, enum isa isa, struct kernel *kernel)
{
    const struct reduce_whole cut = reduce_whole_of(spec->ids.rows * spec->ids.columns);
    const double elements = (double)spec->list * (double)spec->ids.columns, bytes = 4 * (elements + (double)spec->list);
    const struct squares q = {.spec = *spec, .cut = cut, .run = reduce_loops_of(isa)->run[REDUCE_SUM_SQUARES],
                              .shares = shares_for(bytes, cut.leaves)};
    return kernel_make((struct kernel){.name = "sparse_squares", .run = squares_run, .phases = 2,
                                       .shares = {q.shares, 1}, .workspace = (size_t)cut.leaves * sizeof(float),
                                       .flops = 2 * elements, .bytes = bytes},
                       &q, sizeof q, kernel);
}
