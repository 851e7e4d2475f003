/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of operators that take some elements, or repeat them. Elements that are known before a run are slices, or
 * rows of a table; those that a run tells are rows of a table. One thread lowers. */
#include "flow/lower.h"

#include "base/memory.h"

#include <string.h>

static int64_t within(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Elements begin to end along ONNX's axis of x, whose order is `last`. */
static graphi_value cut(struct lower_call *c, graphi_value x, int rank, bool last, int axis, int64_t begin, int64_t end)
{
    return graphi_slice(c->l->graph, x, last ? lower_axis(axis, rank) : axis, begin, end);
}

enum { PIECES = 64 };

/* Runs of neighbours, as slices beside each other; 0: more than PIECES. */
static int runs(int64_t count, const int64_t *index, int64_t *begin, int64_t *end)
{
    int pieces = 0;
    for (int64_t i = 0; i < count; i++) {
        if (pieces && index[i] == end[pieces - 1]) {
            end[pieces - 1]++;
            continue;
        }
        if (pieces == PIECES)
            return 0;
        begin[pieces] = index[i];
        end[pieces++] = index[i] + 1;
    }
    return pieces;
}

/* As rows of a table [the axis, all other dimensions]. */
static graphi_value rows_of(struct lowering *l, graphi_value x, int axis, int rank, const int64_t *dims,
                            graphi_value ids, int id_rank, const int64_t *id_dims)
{
    int64_t perm[2 * GRAPHI_MAX_RANK], back[2 * GRAPHI_MAX_RANK], to[2 * GRAPHI_MAX_RANK], others = 1;
    perm[0] = axis;
    for (int i = 0, k = 1; i < rank; i++)
        if (i != axis) {
            perm[k++] = i;
            others *= dims[i];
        }
    x = graphi_reshape(l->graph, lower_move(l, x, rank, perm), (int64_t[]){dims[axis], others}, 2);
    x = graphi_op(l->graph, "embedding", 2, (const graphi_value[]){x, ids}, 0, NULL);
    const int all = id_rank + rank - 1;
    if (all > GRAPHI_MAX_RANK)
        return GRAPHI_NONE;
    memcpy(to, id_dims, (size_t)id_rank * sizeof *to);
    for (int i = 1; i < rank; i++)
        to[id_rank + i - 1] = dims[perm[i]];
    x = graphi_reshape(l->graph, x, to, all);
    for (int i = 0; i < all; i++) /* the dimensions of ids go where the axis was */
        back[i] = i < axis ? id_rank + i : i < axis + id_rank ? i - axis : i;
    return lower_move(l, x, all, back);
}

graphi_value lower_pick(struct lowering *l, graphi_value x, int axis, int64_t count, const int64_t *index)
{
    int64_t dims[GRAPHI_MAX_RANK], begin[PIECES], end[PIECES];
    graphi_value parts[PIECES];
    graphi_dtype dtype;
    int rank;
    if (x == GRAPHI_NONE || graphi_value_type(l->graph, x, &dtype, &rank, dims) != GRAPHI_OK)
        return GRAPHI_NONE;
    const int pieces = runs(count, index, begin, end);
    for (int i = 0; i < pieces; i++)
        parts[i] = graphi_slice(l->graph, x, axis, begin[i], end[i]);
    if (pieces)
        return pieces == 1 ? parts[0] : graphi_concat(l->graph, pieces, parts, axis);
    int32_t *ids = dtype == GRAPHI_F32 ? mem_zalloc_array((size_t)count, sizeof *ids) : NULL;
    if (!ids)
        return GRAPHI_NONE;
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)index[i];
    const graphi_value by = graphi_constant(l->graph, GRAPHI_I32, 1, &count, ids);
    mem_free(ids);
    return rows_of(l, x, axis, rank, dims, by, 1, &count);
}

/* Every step-th element of n from a on, `count` of them: the first of each group of that many. */
static graphi_value strided(struct lower_call *c, graphi_value x, int axis, int64_t a, int64_t count, int64_t step)
{
    graphi_graph *g = c->l->graph;
    int64_t dims[GRAPHI_MAX_RANK + 1], none[GRAPHI_MAX_RANK] = {0}, after[GRAPHI_MAX_RANK] = {0};
    graphi_dtype dtype;
    int rank;
    if (x == GRAPHI_NONE || graphi_value_type(g, x, &dtype, &rank, dims) != GRAPHI_OK || rank == GRAPHI_MAX_RANK)
        return GRAPHI_NONE;
    const int64_t whole = count * step, there = dims[axis] - a < whole ? dims[axis] - a : whole;
    x = graphi_slice(g, x, axis, a, a + there);
    after[axis] = whole - there;
    if (after[axis])
        x = graphi_pad(g, x, none, rank, after, rank, 0);
    memmove(dims + axis + 1, dims + axis, (size_t)(rank - axis) * sizeof *dims);
    dims[axis] = count;
    dims[axis + 1] = step;
    x = graphi_slice(g, graphi_reshape(g, x, dims, rank + 1), axis + 1, 0, 1);
    memmove(dims + axis + 1, dims + axis + 2, (size_t)(rank - axis - 1) * sizeof *dims);
    return graphi_reshape(g, x, dims, rank);
}

static graphi_status slice(struct lower_call *c, graphi_value *y, bool last, int axis, int64_t start, int64_t end,
                           int64_t step)
{
    const graphi_tensor *x = c->call.in[0];
    const int64_t n = x->dims[axis], least = step < 0 ? -1 : 0;
    if (step == 0)
        return lower_fail(c, "found step 0, expected another");
    step = step > n ? n : step < -n ? -n : step;
    int64_t a = start < 0 ? start + n : start, b = end < 0 ? end + n : end;
    a = within(a, step < 0 ? n - 1 : n);
    b = b < least ? least : b > n ? n : b;
    const int64_t count = step > 0 ? (b - a + step - 1) / step : (a - b - step - 1) / -step;
    if (count < 1 || a >= n)
        return lower_fail(c, "found a slice of no elements, expected some for a plan");
    const int at = last ? lower_axis(axis, x->rank) : axis;
    if (step == 1) {
        *y = count == n ? *y : graphi_slice(c->l->graph, *y, at, a, b);
    } else if (step > 0) {
        *y = strided(c, *y, at, a, count, step);
    } else {
        int64_t *index = mem_zalloc_array((size_t)count, sizeof *index);
        if (!index)
            return fail_memory(c->node->where, (size_t)count * sizeof *index);
        for (int64_t i = 0; i < count; i++)
            index[i] = a + i * step;
        *y = lower_pick(c->l, *y, at, count, index);
        mem_free(index);
    }
    return GRAPHI_OK;
}

static graphi_status lower_slice(struct lower_call *c)
{
    int64_t start[VALUE_RANK], end[VALUE_RANK], axes[VALUE_RANK], steps[VALUE_RANK];
    int starts, ends, axis_count, step_count, axis;
    TRY(lower_movable(c, 0));
    TRY(lower_constants(c, 1));
    struct flow_value *x = lower_in(c, 0);
    TRY(op_list(&c->call, 1, "starts", start, &starts));
    TRY(op_list(&c->call, 2, "ends", end, &ends));
    TRY(op_list(&c->call, 3, "axes", axes, &axis_count));
    TRY(op_numbers(&c->call, 4, steps, &step_count));
    if (starts < 0 || starts != ends || (axis_count >= 0 && axis_count != starts) ||
        (step_count >= 0 && step_count != starts))
        return lower_fail(c, "found %d starts and %d ends, expected as many", starts, ends);
    const bool last = lower_is_last(x);
    bool seen[VALUE_RANK] = {false};
    graphi_value y = last ? x->last : lower_plain(c->l, x);
    for (int k = 0; k < starts; k++) {
        TRY(op_axis(&c->call, axis_count < 0 ? k : axes[k], c->call.in[0]->rank, &axis));
        if (seen[axis])
            return lower_fail(c, "found axis %d twice, expected it once", axis);
        seen[axis] = true;
        TRY(slice(c, &y, last, axis, start[k], end[k], step_count < 0 ? 1 : steps[k]));
    }
    return lower_set(c, 0, y, last);
}

/* The host operator tells the parts' sizes; it would copy, so they are found as it finds them. */
static graphi_status lower_split(struct lower_call *c)
{
    int64_t at = 0;
    int axis;
    size_t listed;
    TRY(lower_movable(c, 0));
    struct flow_value *x = lower_in(c, 0), *split = lower_in(c, 1);
    if (split && !split->known)
        return lower_fail(c, "found sizes that are computed, expected constants");
    TRY(op_axis(&c->call, op_int(&c->call, "axis", 0), c->call.in[0]->rank, &axis));
    const int64_t *sizes = op_ints(&c->call, "split", &listed), n = c->call.in[0]->dims[axis];
    const int outs = c->node->outs;
    if (outs < 1)
        return lower_fail(c, "found no outputs of Split, expected some");
    const int64_t each = (n + outs - 1) / outs, given = split ? split->known->count : sizes ? (int64_t)listed : outs;
    const bool last = lower_is_last(x);
    const graphi_value y = last ? x->last : lower_plain(c->l, x);
    for (int i = 0; i < outs && given == outs; i++) {
        const int64_t even = n - at < each ? n - at : each;
        const int64_t size = split ? value_int(split->known, i) : sizes ? sizes[i] : even;
        if (size < 1 || size > n - at)
            return lower_fail(c, "found a part of %lld elements, expected parts of 1 and more", (long long)size);
        TRY(lower_set(c, i, cut(c, y, c->call.in[0]->rank, last, axis, at, at + size), last));
        at += size;
    }
    return at == n ? GRAPHI_OK
                   : lower_fail(c, "found parts of %lld elements, expected %lld", (long long)at, (long long)n);
}

/* Indices that are known: slices, or rows. A scalar loses the axis. */
static graphi_status gather_known(struct lower_call *c, int axis, const graphi_tensor *index)
{
    const graphi_tensor *x = c->call.in[0];
    const int64_t n = x->dims[axis];
    int64_t dims[2 * VALUE_RANK], *places = mem_zalloc_array((size_t)index->count + 1, sizeof *places);
    int rank = 0;
    bool fits = x->rank + index->rank - 1 <= VALUE_RANK;
    if (!places)
        return fail_memory(c->node->where, (size_t)index->count * sizeof *places);
    for (int64_t i = 0; i < index->count; i++) {
        places[i] = value_int(index, i) < 0 ? value_int(index, i) + n : value_int(index, i);
        fits = fits && places[i] >= 0 && places[i] < n;
    }
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[rank++] = x->dims[i];
        else
            for (int k = 0; k < index->rank; k++)
                dims[rank++] = index->dims[k];
    graphi_value y =
        fits ? lower_pick(c->l, lower_plain(c->l, lower_in(c, 0)), axis, index->count, places) : GRAPHI_NONE;
    mem_free(places);
    if (!fits)
        return lower_fail(c, "found an index beyond %lld, or too many dimensions, expected others", (long long)n);
    return lower_set(c, 0, y == GRAPHI_NONE ? y : graphi_reshape(c->l->graph, y, dims, rank), false);
}

/* Indices that a run tells: rows of a table, those below 0 from its end. */
static graphi_status gather_rows(struct lower_call *c, int axis)
{
    const graphi_tensor *x = c->call.in[0], *index = c->call.in[1];
    graphi_graph *g = c->l->graph;
    TRY(lower_floats(c, 0));
    TRY(lower_movable(c, 1));
    if ((index->type != T_I64 && index->type != T_I32) || x->dims[axis] > (1 << 24))
        return lower_fail(c, "found indices of %s, expected int32 or int64", graphi_element_name(index->type));
    const graphi_value ids = lower_plain(c->l, lower_in(c, 1)), numbers = graphi_cast(g, ids, GRAPHI_F32);
    const graphi_value from_end = graphi_add(g, numbers, lower_number(c->l, (double)x->dims[axis]));
    graphi_value places = graphi_select(g, graphi_less(g, numbers, lower_number(c->l, 0)), from_end, numbers);
    places = graphi_cast(g, places, GRAPHI_I32);
    return lower_set(
        c, 0,
        rows_of(c->l, lower_plain(c->l, lower_in(c, 0)), axis, x->rank, x->dims, places, index->rank, index->dims),
        false);
}

static graphi_status lower_gather(struct lower_call *c)
{
    int axis;
    TRY(lower_movable(c, 0));
    TRY(op_axis(&c->call, op_int(&c->call, "axis", 0), c->call.in[0]->rank, &axis));
    const graphi_tensor *known = lower_in(c, 1)->known;
    if (!known)
        return gather_rows(c, axis);
    if (known->kind != GRAPHI_KIND_TENSOR || !known->count)
        return lower_fail(c, "found no indices, expected some for a plan");
    return gather_known(c, axis, known);
}

static graphi_status lower_expand(struct lower_call *c)
{
    int64_t wanted[VALUE_RANK], dims[VALUE_RANK];
    int count, rank;
    TRY(lower_movable(c, 0));
    TRY(lower_constants(c, 1));
    TRY(op_numbers(&c->call, 1, wanted, &count));
    struct graphi_tensor like = {.rank = count};
    memcpy(like.dims, wanted, (size_t)(count > 0 ? count : 0) * sizeof *wanted);
    TRY(op_broadcast(&c->call, (graphi_tensor *const[]){c->call.in[0], &like}, 2, &rank, dims));
    const graphi_value x = lower_plain(c->l, lower_in(c, 0));
    return lower_set(c, 0, graphi_expand(c->l->graph, x, dims, rank, NULL, 0), false);
}

/* Each dimension has one of size 1 before it, which is repeated. */
static graphi_status lower_tile(struct lower_call *c)
{
    int64_t times[VALUE_RANK], apart[2 * VALUE_RANK], wide[2 * VALUE_RANK], dims[VALUE_RANK];
    int count, more = 0;
    TRY(lower_movable(c, 0));
    TRY(lower_constants(c, 1));
    TRY(op_numbers(&c->call, 1, times, &count));
    const graphi_tensor *x = c->call.in[0];
    if (count != x->rank)
        return lower_fail(c, "found %d repeats for rank %d, expected as many", count, x->rank);
    for (int i = 0; i < count; i++) {
        if (times[i] < 1)
            return lower_fail(c, "found %lld repeats, expected 1 and more for a plan", (long long)times[i]);
        dims[i] = x->dims[i] * times[i];
        if (times[i] > 1 && more < 2 * VALUE_RANK) {
            apart[more] = 1;
            wide[more++] = times[i];
        }
        if (more < 2 * VALUE_RANK)
            apart[more] = wide[more] = x->dims[i], more++;
    }
    if (more > GRAPHI_MAX_RANK)
        return lower_fail(c, "found %d repeated dimensions, expected fewer for a plan", more - count);
    graphi_value y = graphi_reshape(c->l->graph, lower_plain(c->l, lower_in(c, 0)), apart, more);
    y = graphi_expand(c->l->graph, y, wide, more, NULL, 0);
    return lower_set(c, 0, graphi_reshape(c->l->graph, y, dims, count), false);
}

/* One that is too large to be a constant. */
static graphi_status lower_filled(struct lower_call *c)
{
    int64_t dims[VALUE_RANK];
    int rank;
    const struct attribute *value = op_attribute(&c->call, "value");
    const graphi_tensor *number = value ? value->tensor : NULL;
    TRY(lower_constants(c, 0));
    TRY(op_numbers(&c->call, 0, dims, &rank));
    if (number && (number->count != 1 || number->type != T_F32))
        return lower_fail(c, "found %s everywhere, expected float32 for a plan", graphi_element_name(number->type));
    c->type = T_F32;
    return lower_set(c, 0, graphi_fill(c->l->graph, dims, rank, number ? value_double(number, 0) : 0, GRAPHI_F32),
                     false);
}

const struct lower_row lower_indexing[] = {
    {"Slice", lower_slice, NULL},
    {"Split", lower_split, NULL},
    {"Gather", lower_gather, NULL},
    {"Expand", lower_expand, NULL},
    {"Tile", lower_tile, NULL},
    {"ConstantOfShape", lower_filled, NULL},
    {0},
};
