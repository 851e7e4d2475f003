/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements by an index map known from shapes: nothing is computed. Source: ONNX Transpose, Concat,
 * Split, Slice, Expand, Tile, Pad, SpaceToDepth, DepthToSpace, ReverseSequence, Trilu, CenterCropPad. Any thread. */
#include "value/element.h"
#include "value/families.h"
#include "value/map.h"

#include <string.h>

static char *place(const graphi_tensor *value, int64_t element)
{
    return (char *)value->data + element * (int64_t)element_size(value->type);
}

static graphi_status run_transpose(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], from[VALUE_RANK], strides[VALUE_RANK];
    bool seen[VALUE_RANK] = {false};
    size_t count;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t *perm = op_ints(call, "perm", &count);
    if (perm && count != (size_t)x->rank)
        return op_fail(call, "found %zu axes of Transpose, expected %d", count, x->rank);
    dims_strides(x->rank, x->dims, from);
    for (int i = 0, axis; i < x->rank; i++) {
        TRY(op_axis(call, perm ? perm[i] : x->rank - 1 - i, x->rank, &axis));
        if (seen[axis])
            return op_fail(call, "found axis %d twice in perm, expected a permutation", axis);
        seen[axis] = true;
        dims[i] = x->dims[axis];
        strides[i] = from[axis];
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    struct map map = map_over(x->rank, dims);
    map_broadcast(&map, x->rank, dims);
    map_strided(&map, strides);
    map_copy(map, element_size(x->type), out->data, x->data);
    return GRAPHI_OK;
}

/* Copies `part` to where it begins along the axis of `whole`, or back. */
static void copy_part(const graphi_tensor *whole, const graphi_tensor *part, int axis, int64_t start, bool back)
{
    int64_t strides[VALUE_RANK];
    struct map map = map_over(part->rank, part->dims);
    dims_strides(whole->rank, whole->dims, strides);
    char *at = place(whole, start * strides[axis]);
    if (back) {
        map_broadcast(&map, part->rank, part->dims);
        map_strided(&map, strides);
        map_copy(map, element_size(part->type), part->data, at);
        return;
    }
    map_strided(&map, strides);
    map_broadcast(&map, part->rank, part->dims);
    map_copy(map, element_size(part->type), at, part->data);
}

static graphi_status concat(struct op_call *call, graphi_tensor *const *parts, int64_t count, int axis)
{
    struct value_text a, b;
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], at = 0;
    memcpy(dims, parts[0]->dims, sizeof dims);
    dims[axis] = 0;
    for (int64_t k = 0; k < count; k++) {
        bool fits = parts[k]->rank == parts[0]->rank && parts[k]->type == parts[0]->type;
        for (int i = 0; fits && i < parts[0]->rank; i++)
            fits = i == axis || parts[k]->dims[i] == dims[i];
        if (!fits)
            return op_fail(call, "found %s beside %s, expected them to differ along axis %d alone",
                           value_describe(parts[k], &a), value_describe(parts[0], &b), axis);
        dims[axis] += parts[k]->dims[axis];
    }
    TRY(op_new(call, 0, parts[0]->type, parts[0]->rank, dims, &out));
    for (int64_t k = 0; k < count; k++) {
        copy_part(out, parts[k], axis, at, false);
        at += parts[k]->dims[axis];
    }
    return GRAPHI_OK;
}

static graphi_status run_concat(struct op_call *call)
{
    int axis;
    for (int i = 0; i < call->ins; i++)
        TRY(op_tensor(call, i, 0));
    TRY(op_axis(call, op_int(call, "axis", 0), call->in[0]->rank, &axis));
    return concat(call, call->in, call->ins, axis);
}

static graphi_status stack(struct op_call *call, const graphi_tensor *list)
{
    graphi_tensor *rows[64];
    int axis;
    int64_t dims[VALUE_RANK], count = list->count;
    graphi_status status = GRAPHI_OK;
    if (count > 64 || list->items[0]->rank == VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found %lld tensors of rank %d to stack, expected at most 64 of 7",
                    (long long)count, list->items[0]->rank);
    TRY(op_axis(call, op_int(call, "axis", 0), list->items[0]->rank + 1, &axis));
    int64_t made = 0;
    for (; made < count && status == GRAPHI_OK; made++) {
        const graphi_tensor *item = list->items[made];
        for (int i = 0; i <= item->rank && i < VALUE_RANK; i++)
            dims[i] = i == axis ? 1 : item->dims[i - (i > axis)];
        status = value_view(call->where, list->items[made], item->rank + 1, dims, &rows[made]);
        if (status != GRAPHI_OK)
            break;
    }
    if (status == GRAPHI_OK)
        status = concat(call, rows, count, axis);
    while (made-- > 0)
        value_drop(rows[made]);
    return status;
}

static graphi_status run_concat_sequence(struct op_call *call)
{
    int axis;
    const graphi_tensor *list = call->in[0];
    if (list->kind != GRAPHI_KIND_SEQUENCE || list->count == 0 || list->items[0]->kind != GRAPHI_KIND_TENSOR)
        return op_fail(call, "found no tensors in a sequence, expected some");
    if (op_int(call, "new_axis", 0))
        return stack(call, list);
    TRY(op_axis(call, op_int(call, "axis", 0), list->items[0]->rank, &axis));
    return concat(call, list->items, list->count, axis);
}

/* Sizes of the parts: given, or as even as can be, the last one smaller. */
static graphi_status split_sizes(const struct op_call *call, int64_t size, int parts, const int64_t *given, int count,
                                 int64_t *sizes)
{
    int64_t sum = 0;
    if (count >= 0 && count != parts)
        return op_fail(call, "found %d sizes for %d outputs, expected one each", count, parts);
    if (count < 0 && parts > size && size % parts != 0)
        return op_fail(call, "found %d outputs of %lld elements, expected no more outputs", parts, (long long)size);
    const int64_t each = (size + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        sizes[i] = count >= 0 ? given[i] : sum + each <= size ? each : size - sum > 0 ? size - sum : 0;
        sum += sizes[i];
        if (sizes[i] < 0 || sum > size)
            break;
    }
    if (sum != size)
        return op_fail(call, "found parts of %lld elements along an axis of %lld, expected all of them", (long long)sum,
                       (long long)size);
    return GRAPHI_OK;
}

static graphi_status run_split(struct op_call *call)
{
    enum { PARTS = 1024 };
    int64_t given[PARTS], sizes[PARTS], dims[VALUE_RANK], at = 0;
    int axis, count = -1;
    size_t listed;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0], *split = op_in(call, 1);
    TRY(op_axis(call, op_int(call, "axis", 0), x->rank, &axis));
    const int64_t *sizes_attribute = op_ints(call, "split", &listed);
    if (call->outs > PARTS || (split && split->count > PARTS) || listed > PARTS)
        return fail(GRAPHI_UNSUPPORTED, call->where, "found %d parts, expected at most %d", call->outs, PARTS);
    if (split)
        for (count = 0; count < split->count; count++)
            given[count] = value_int(split, count);
    else if (sizes_attribute)
        for (count = 0; count < (int)listed; count++)
            given[count] = sizes_attribute[count];
    TRY(split_sizes(call, x->dims[axis], call->outs, given, count, sizes));
    memcpy(dims, x->dims, sizeof dims);
    for (int k = 0; k < call->outs; k++) {
        graphi_tensor *out;
        dims[axis] = sizes[k];
        TRY(op_new(call, k, x->type, x->rank, dims, &out));
        copy_part(x, out, axis, at, true);
        at += sizes[k];
    }
    return GRAPHI_OK;
}

/* Parts of a tensor as a sequence: of one size, of given sizes, or one element each without the axis. */
static graphi_status run_split_sequence(struct op_call *call)
{
    graphi_tensor *list;
    int axis;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0], *split = op_in(call, 1);
    TRY(op_axis(call, op_int(call, "axis", 0), x->rank, &axis));
    const bool keeps = split || op_int(call, "keepdims", 1) != 0, each = !split || split->rank == 0;
    const int64_t size = split && each ? value_int(split, 0) : 1, n = x->dims[axis];
    if (size < 1)
        return op_fail(call, "found parts of %lld elements, expected 1 and more", (long long)size);
    const int64_t count = each ? (n + size - 1) / size : split->count;
    TRY(value_sequence(call->where, count, &list));
    call->out[0] = list;
    for (int64_t k = 0, at = 0; k < count; k++) {
        int64_t dims[VALUE_RANK];
        const int64_t part = !each ? value_int(split, k) : n - at < size ? n - at : size;
        graphi_tensor *out;
        if (part < 0 || part > n - at || (!each && k == count - 1 && at + part != n))
            return op_fail(call, "found a part of %lld elements, expected parts of %lld in all", (long long)part,
                           (long long)n);
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = part;
        TRY(value_new(call->where, x->type, x->rank, dims, &list->items[k]));
        copy_part(x, list->items[k], axis, at, true);
        at += part;
        if (keeps)
            continue;
        memmove(dims + axis, dims + axis + 1, (size_t)(x->rank - axis - 1) * sizeof *dims);
        TRY(value_view(call->where, list->items[k], x->rank - 1, dims, &out));
        value_drop(list->items[k]);
        list->items[k] = out;
    }
    return GRAPHI_OK;
}

static int64_t within(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

static graphi_status run_slice(struct op_call *call)
{
    int64_t start[VALUE_RANK], end[VALUE_RANK], axes[VALUE_RANK], steps[VALUE_RANK], dims[VALUE_RANK],
        strides[VALUE_RANK], from = 0;
    int starts, ends, axis_count, step_count;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    TRY(op_list(call, 1, "starts", start, &starts));
    TRY(op_list(call, 2, "ends", end, &ends));
    TRY(op_list(call, 3, "axes", axes, &axis_count));
    TRY(op_numbers(call, 4, steps, &step_count));
    if (starts < 0 || ends != starts || (axis_count >= 0 && axis_count != starts) ||
        (step_count >= 0 && step_count != starts))
        return op_fail(call, "found %d starts, %d ends, %d axes, %d steps, expected as many", starts, ends, axis_count,
                       step_count);
    dims_strides(x->rank, x->dims, strides);
    memcpy(dims, x->dims, sizeof dims);
    for (int k = 0, axis; k < starts; k++) {
        TRY(op_axis(call, axis_count < 0 ? k : axes[k], x->rank, &axis));
        const int64_t n = x->dims[axis], step = step_count < 0 ? 1 : steps[k];
        if (step == 0 || step == INT64_MIN)
            return op_fail(call, "found step %lld, expected another", (long long)step);
        int64_t a = start[k] < 0 ? start[k] + n : start[k], b = end[k] < 0 ? end[k] + n : end[k];
        a = within(a, 0, step > 0 ? n : n - 1);
        b = within(b, step > 0 ? 0 : -1, n);
        dims[axis] = step > 0 ? (b > a ? (b - a - 1) / step + 1 : 0) : (a > b ? (a - b - 1) / -step + 1 : 0);
        from += dims[axis] ? a * strides[axis] : 0;
        if (dims[axis] > 1)
            strides[axis] *= step;
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    struct map map = map_over(x->rank, dims);
    map_broadcast(&map, x->rank, dims);
    map_strided(&map, strides);
    if (out->count)
        map_copy(map, element_size(x->type), out->data, place(x, from));
    return GRAPHI_OK;
}

static graphi_status run_expand(struct op_call *call)
{
    graphi_tensor *out;
    int64_t wanted[VALUE_RANK], dims[VALUE_RANK];
    int count, rank;
    TRY(op_tensor(call, 0, 0));
    TRY(op_numbers(call, 1, wanted, &count));
    /* a value of no bytes that stands for the shape */
    struct graphi_tensor like = {.rank = count};
    memcpy(like.dims, wanted, (size_t)(count > 0 ? count : 0) * sizeof *wanted);
    graphi_tensor *x = call->in[0], *const both[2] = {x, &like};
    TRY(op_broadcast(call, both, 2, &rank, dims));
    TRY(op_new(call, 0, x->type, rank, dims, &out));
    struct map map = map_over(rank, dims);
    map_broadcast(&map, rank, dims);
    map_broadcast(&map, x->rank, x->dims);
    map_copy(map, element_size(x->type), out->data, x->data);
    return GRAPHI_OK;
}

static graphi_status run_tile(struct op_call *call)
{
    graphi_tensor *out;
    int64_t repeats[VALUE_RANK], dims[VALUE_RANK], from[VALUE_RANK], to[VALUE_RANK];
    int count;
    TRY(op_tensor(call, 0, 0));
    TRY(op_numbers(call, 1, repeats, &count));
    const graphi_tensor *x = call->in[0];
    if (count != x->rank)
        return op_fail(call, "found %d repeats for rank %d, expected one each", count, x->rank);
    for (int i = 0; i < count; i++)
        if (repeats[i] < 0 || __builtin_mul_overflow(repeats[i], x->dims[i], &dims[i]))
            return op_fail(call, "found %lld repeats, expected 0 and more", (long long)repeats[i]);
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    if (out->count == 0)
        return GRAPHI_OK;
    /* the first copy, then along each axis what is already there */
    dims_strides(x->rank, dims, to);
    dims_strides(x->rank, x->dims, from);
    struct map map = map_over(x->rank, x->dims);
    map_strided(&map, to);
    map_strided(&map, from);
    const size_t size = element_size(x->type);
    map_copy(map, size, out->data, x->data);
    int64_t done[VALUE_RANK];
    memcpy(done, x->dims, sizeof done);
    for (int i = 0; i < x->rank; i++) {
        struct map again = map_over(x->rank, done);
        map_strided(&again, to);
        map_strided(&again, to);
        for (int64_t k = 1; k < repeats[i]; k++)
            map_copy(again, size, place(out, k * x->dims[i] * to[i]), out->data);
        done[i] = dims[i];
    }
    return GRAPHI_OK;
}

/* Where element i of a padded axis comes from; -1: from the padding's constant. */
static int64_t pad_source(int64_t i, int64_t n, char mode)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case 'e': /* edge */
        return i < 0 ? 0 : n - 1;
    case 'w': /* wrap */
        return ((i % n) + n) % n;
    case 'r': { /* reflect, without the edge again */
        if (n == 1)
            return 0;
        const int64_t period = 2 * (n - 1), k = ((i % period) + period) % period;
        return k < n ? k : period - k;
    }
    default:
        return -1;
    }
}

static graphi_status pad_copy(const graphi_tensor *x, graphi_tensor *out, const int64_t *before, char mode,
                              const void *constant)
{
    int64_t index[VALUE_RANK] = {0}, strides[VALUE_RANK];
    const size_t size = element_size(x->type);
    dims_strides(x->rank, x->dims, strides);
    for (int64_t k = 0; k < out->count; k++) {
        int64_t from = 0;
        for (int i = 0; i < x->rank && from >= 0; i++) {
            const int64_t at = pad_source(index[i] - before[i], x->dims[i], mode);
            from = at < 0 ? -1 : from + at * strides[i];
        }
        memcpy(place(out, k), from < 0 ? (const char *)constant : place(x, from), size);
        for (int i = x->rank - 1; i >= 0 && ++index[i] == out->dims[i]; i--)
            index[i] = 0;
    }
    return GRAPHI_OK;
}

static graphi_status run_pad(struct op_call *call)
{
    static const int64_t zero = 0;
    int64_t before[VALUE_RANK] = {0}, dims[VALUE_RANK], axes[VALUE_RANK];
    int axis_count;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    const graphi_tensor *x = call->in[0], *pads = call->in[1], *value = op_in(call, 2);
    const char *mode = op_string(call, "mode", "constant");
    TRY(op_numbers(call, 3, axes, &axis_count));
    const int count = axis_count < 0 ? x->rank : axis_count;
    if (strcmp(mode, "constant") && strcmp(mode, "edge") && strcmp(mode, "reflect") && strcmp(mode, "wrap"))
        return op_fail(call, "found mode \"%s\", expected constant, edge, reflect or wrap", mode);
    if (pads->count != 2 * count || (value && value->count && (value->count != 1 || value->type != x->type)))
        return op_fail(call, "found %lld pads for %d axes, expected two each and a constant of %s",
                       (long long)pads->count, count, graphi_element_name(x->type));
    memcpy(dims, x->dims, sizeof dims);
    for (int k = 0, axis; k < count; k++) {
        TRY(op_axis(call, axis_count < 0 ? k : axes[k], x->rank, &axis));
        const int64_t a = value_int(pads, k), b = value_int(pads, count + k), most = (int64_t)1 << 40;
        if (a > most || b > most || a < -most || b < -most)
            return op_fail(call, "found pads %lld and %lld, expected smaller ones", (long long)a, (long long)b);
        before[axis] = a;
        dims[axis] += a + b;
        if (x->dims[axis] == 0 && dims[axis] > 0 && *mode != 'c')
            return op_fail(call, "found padding by %s of no elements, expected some", mode);
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    return pad_copy(x, out, before, *mode, value && value->count ? value->data : (const void *)&zero);
}

/* [N, C, H, W] seen as six dimensions, whose order alone changes. */
static graphi_status run_depth(struct op_call *call)
{
    graphi_tensor *out;
    int64_t from[6], dims[6], strides[6], source[6];
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t b = op_int(call, "blocksize", 1);
    const bool to_space = call->op->variant != 0, crd = !strcmp(op_string(call, "mode", "DCR"), "CRD");
    if (x->rank != 4 || b < 1 || b > 1 << 20 ||
        (to_space ? x->dims[1] % (b * b) : x->dims[2] % b + x->dims[3] % b) != 0)
        return op_fail(call, "found %d dimensions and blocks of %lld, expected 4 that blocks divide", x->rank,
                       (long long)b);
    const int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2], w = x->dims[3];
    static const int orders[4][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}, {0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    const int *order = orders[2 * to_space + crd];
    const int64_t seen[3][6] = {{n, c, h / b, b, w / b, b}, {n, b, b, c / b / b, h, w}, {n, c / b / b, b, b, h, w}};
    memcpy(from, seen[to_space ? 1 + crd : 0], sizeof from);
    dims_strides(6, from, source);
    for (int i = 0; i < 6; i++) {
        dims[i] = from[order[i]];
        strides[i] = source[order[i]];
    }
    const int64_t shape[4] = {n, to_space ? c / b / b : c * b * b, to_space ? h * b : h / b, to_space ? w * b : w / b};
    TRY(op_new(call, 0, x->type, 4, shape, &out));
    struct map map = map_over(6, dims);
    map_broadcast(&map, 6, dims);
    map_strided(&map, strides);
    map_copy(map, element_size(x->type), out->data, x->data);
    return GRAPHI_OK;
}

static graphi_status run_reverse_sequence(struct op_call *call)
{
    graphi_tensor *out;
    int64_t strides[VALUE_RANK], inner = 1;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    const graphi_tensor *x = call->in[0], *lengths = call->in[1];
    const int64_t time = op_int(call, "time_axis", 0), batch = op_int(call, "batch_axis", 1);
    if (x->rank < 2 || time < 0 || time > 1 || batch != 1 - time || lengths->count != x->dims[batch])
        return op_fail(call,
                       "found time axis %lld, batch axis %lld and %lld lengths, expected 0 and 1 and a length a row",
                       (long long)time, (long long)batch, (long long)lengths->count);
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    dims_strides(x->rank, x->dims, strides);
    for (int i = 2; i < x->rank; i++)
        inner *= x->dims[i];
    for (int64_t b = 0; b < x->dims[batch]; b++) {
        const int64_t length = value_int(lengths, b);
        if (length < 0 || length > x->dims[time])
            return op_fail(call, "found length %lld of row %lld, expected 0 to %lld", (long long)length, (long long)b,
                           (long long)x->dims[time]);
        for (int64_t t = 0; t < x->dims[time]; t++)
            memcpy(place(out, b * strides[batch] + t * strides[time]),
                   place(x, b * strides[batch] + (t < length ? length - 1 - t : t) * strides[time]),
                   (size_t)inner * element_size(x->type));
    }
    return GRAPHI_OK;
}

static graphi_status run_trilu(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0], *diagonal = op_in(call, 1);
    if (x->rank < 2 || (diagonal && diagonal->count != 1))
        return op_fail(call, "found rank %d for Trilu, expected 2 and more and one diagonal", x->rank);
    const int64_t k = diagonal ? value_int(diagonal, 0) : 0, h = x->dims[x->rank - 2], w = x->dims[x->rank - 1];
    const bool upper = op_int(call, "upper", 1) != 0;
    const size_t size = element_size(x->type);
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = i / w % h, column = i % w;
        const bool stays = upper ? column - row >= k : column - row <= k;
        memcpy(place(out, i), place(x, i), size);
        if (!stays)
            memset(place(out, i), 0, size);
    }
    return GRAPHI_OK;
}

static graphi_status run_center(struct op_call *call)
{
    static const int64_t zero = 0;
    int64_t before[VALUE_RANK] = {0}, dims[VALUE_RANK], sizes[VALUE_RANK], axes[VALUE_RANK];
    int count, axis_count;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    TRY(op_numbers(call, 1, sizes, &count));
    TRY(op_list(call, 9, "axes", axes, &axis_count));
    if (count != (axis_count < 0 ? x->rank : axis_count))
        return op_fail(call, "found %d sizes, expected one an axis", count);
    memcpy(dims, x->dims, sizeof dims);
    for (int k = 0, axis; k < count; k++) {
        TRY(op_axis(call, axis_count < 0 ? k : axes[k], x->rank, &axis));
        const int64_t more = sizes[k] - x->dims[axis];
        before[axis] = more >= 0 ? more / 2 : -((-more) / 2);
        dims[axis] = sizes[k];
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &out));
    return pad_copy(x, out, before, 'c', &zero);
}

const struct host_op host_ops_move[] = {
    {"Transpose", 1, 1, 1, "perm", run_transpose, 0},
    {"Concat", 1, -1, 1, "axis", run_concat, 0},
    {"ConcatFromSequence", 1, 1, 1, "axis new_axis", run_concat_sequence, 0},
    {"Split", 1, 2, -1, "axis split num_outputs", run_split, 0},
    {"SplitToSequence", 1, 2, 1, "axis keepdims", run_split_sequence, 0},
    {"Slice", 1, 5, 1, "starts ends axes", run_slice, 0},
    {"Expand", 2, 2, 1, "", run_expand, 0},
    {"Tile", 2, 2, 1, "", run_tile, 0},
    {"Pad", 2, 4, 1, "mode", run_pad, 0},
    {"SpaceToDepth", 1, 1, 1, "blocksize mode", run_depth, 0},
    {"DepthToSpace", 1, 1, 1, "blocksize mode", run_depth, 1},
    {"ReverseSequence", 2, 2, 1, "time_axis batch_axis", run_reverse_sequence, 0},
    {"Trilu", 1, 2, 1, "upper", run_trilu, 0},
    {"CenterCropPad", 2, 2, 1, "axes", run_center, 0},
    {0},
};
