/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose result has as many elements as are found: the largest, those that are not zero, those that differ,
 * boxes that overlap little. Source: ONNX TopK, NonZero, Compress, Unique, NonMaxSuppression. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *place(const graphi_tensor *value, int64_t element)
{
    return (char *)value->data + element * (int64_t)element_size(value->type);
}

struct candidate {
    double number;   /* of floats */
    int64_t integer; /* of integers */
    int64_t at;
};

/* In the order wanted; equal ones, and NaN, by their place. Unsigned 64-bit integers come with their top bit turned. */
static int compare_up(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->number != b->number && !(isnan(a->number) && isnan(b->number)))
        return isnan(a->number) ? 1 : isnan(b->number) ? -1 : a->number < b->number ? -1 : 1;
    if (a->integer != b->integer)
        return a->integer < b->integer ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}
static int compare_down(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    const struct candidate x = {b->number, b->integer, a->at}, y = {a->number, a->integer, b->at};
    return compare_up(&x, &y);
}

static struct candidate candidate_of(const graphi_tensor *x, int64_t element, int64_t at)
{
    struct candidate c = {.at = at};
    if (element_is_float(x->type))
        c.number = value_double(x, element);
    else
        c.integer = value_int(x, element) ^ (x->type == T_U64 ? INT64_MIN : 0);
    return c;
}

static graphi_status run_top_k(struct op_call *call)
{
    graphi_tensor *values, *indices;
    int64_t ks[VALUE_RANK], dims[VALUE_RANK], inner = 1, outer = 1;
    int axis, count;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    TRY(op_list(call, 1, "k", ks, &count));
    TRY(op_axis(call, op_int(call, "axis", -1), x->rank, &axis));
    const int64_t n = x->dims[axis];
    if (count != 1 || ks[0] < 0 || ks[0] > n)
        return op_fail(call, "found K %lld, expected 0 to %lld", count == 1 ? (long long)ks[0] : -1ll, (long long)n);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i == axis ? ks[0] : x->dims[i];
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : x->dims[i];
    }
    TRY(op_new(call, 0, x->type, x->rank, dims, &values));
    if (call->outs < 2)
        return op_fail(call, "found 1 output of TopK, expected 2");
    TRY(op_new(call, 1, T_I64, x->rank, dims, &indices));
    struct candidate *line = mem_alloc((size_t)n * sizeof *line);
    if (!line)
        return fail_memory(call->where, (size_t)n * sizeof *line);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            for (int64_t k = 0; k < n; k++)
                line[k] = candidate_of(x, (o * n + k) * inner + i, k);
            qsort(line, (size_t)n, sizeof *line, op_int(call, "largest", 1) ? compare_down : compare_up);
            for (int64_t k = 0; k < ks[0]; k++) {
                const int64_t to = (o * ks[0] + k) * inner + i;
                memcpy(place(values, to), place(x, (o * n + line[k].at) * inner + i), element_size(x->type));
                ((int64_t *)indices->data)[to] = line[k].at;
            }
        }
    mem_free(line);
    return GRAPHI_OK;
}

static graphi_status run_non_zero(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    int64_t found = 0, strides[VALUE_RANK], at = 0;
    for (int64_t i = 0; i < x->count; i++)
        found += value_double(x, i) != 0;
    TRY(op_new(call, 0, T_I64, 2, (int64_t[]){x->rank, found}, &out));
    dims_strides(x->rank, x->dims, strides);
    for (int64_t i = 0; i < x->count; i++) {
        if (value_double(x, i) == 0)
            continue;
        for (int k = 0; k < x->rank; k++)
            ((int64_t *)out->data)[k * found + at] = i / strides[k] % x->dims[k];
        at++;
    }
    return GRAPHI_OK;
}

static graphi_status run_compress(struct op_call *call)
{
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], inner = 1, outer = 1, kept = 0, to = 0;
    int axis = 0, rank = 1;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, T_BOOL));
    const graphi_tensor *x = call->in[0], *condition = call->in[1];
    const struct attribute *a = op_attribute(call, "axis");
    dims[0] = x->count;
    if (a) {
        TRY(op_axis(call, a->i, x->rank, &axis));
        memcpy(dims, x->dims, sizeof dims);
        rank = x->rank;
    }
    for (int i = 0; i < rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : dims[i];
    const int64_t n = dims[axis];
    const uint8_t *keeps = condition->data;
    for (int64_t k = 0; k < condition->count; k++)
        if (keeps[k] && k >= n)
            return op_fail(call, "found that element %lld is kept, expected at most %lld", (long long)k, (long long)n);
        else
            kept += keeps[k] != 0;
    dims[axis] = kept;
    TRY(op_new(call, 0, x->type, rank, dims, &out));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < condition->count; k++)
            if (keeps[k])
                memcpy(place(out, to++ * inner), place(x, (o * n + k) * inner), (size_t)inner * element_size(x->type));
    return GRAPHI_OK;
}

/* Slices along an axis of a tensor as rows beside each other, for Unique. */
struct slices {
    const graphi_tensor *x;
    int64_t count, outer, inner, n;
};

static int compare_slices(const struct slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            const struct candidate x = candidate_of(s->x, (o * s->n + a) * s->inner + i, 0);
            const struct candidate y = candidate_of(s->x, (o * s->n + b) * s->inner + i, 0);
            const int order = compare_up(&x, &y);
            if (order)
                return order;
        }
    return 0;
}

static int compare_rows(const void *left, const void *right, void *slices)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    const int order = compare_slices(slices, a, b);
    return order ? order : (a > b) - (a < b);
}

static int compare_numbers(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Rows in sorted order -> first[] of each group, inverse[] of each row, counts[] of each group; gives groups. */
static int64_t group(const struct slices *s, bool sorted, int64_t *rows, int64_t *first, int64_t *inverse,
                     int64_t *counts)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < s->n; i++)
        rows[i] = i;
    qsort_r(rows, (size_t)s->n, sizeof *rows, compare_rows, (void *)s);
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || compare_slices(s, rows[i - 1], rows[i]) != 0)
            first[groups++] = rows[i];
        inverse[rows[i]] = first[groups - 1];
    }
    if (!sorted)
        qsort(first, (size_t)groups, sizeof *first, compare_numbers);
    for (int64_t g = 0; g < groups; g++) {
        counts[g] = 0;
        rows[first[g]] = g; /* from the first row of a group to its number */
    }
    for (int64_t i = 0; i < s->n; i++) {
        inverse[i] = rows[inverse[i]];
        counts[inverse[i]]++;
    }
    return groups;
}

static graphi_status run_unique(struct op_call *call)
{
    graphi_tensor *out;
    int axis = 0, rank = 1;
    int64_t dims[VALUE_RANK];
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const struct attribute *a = op_attribute(call, "axis");
    struct slices s = {.x = x, .outer = 1, .inner = 1, .n = x->count};
    dims[0] = x->count;
    if (a) {
        TRY(op_axis(call, a->i, x->rank, &axis));
        memcpy(dims, x->dims, sizeof dims);
        rank = x->rank;
        s.n = dims[axis];
    }
    for (int i = 0; i < rank; i++)
        *(i < axis ? &s.outer : &s.inner) *= i == axis ? 1 : dims[i];
    int64_t *room = mem_zalloc_array((size_t)s.n * 4 + 1, sizeof *room);
    if (!room)
        return fail_memory(call->where, (size_t)s.n * 32);
    int64_t *first = room + s.n, *inverse = room + 2 * s.n, *counts = room + 3 * s.n;
    const int64_t groups = group(&s, op_int(call, "sorted", 1) != 0, room, first, inverse, counts);
    dims[axis] = groups;
    graphi_status status = op_new(call, 0, x->type, rank, dims, &out);
    for (int64_t o = 0; o < s.outer && status == GRAPHI_OK; o++)
        for (int64_t g = 0; g < groups; g++)
            memcpy(place(out, (o * groups + g) * s.inner), place(x, (o * s.n + first[g]) * s.inner),
                   (size_t)s.inner * element_size(x->type));
    const int64_t *const lists[] = {NULL, first, inverse, counts};
    for (int k = 1; k < 4 && status == GRAPHI_OK; k++)
        if (op_wants(call, k))
            status = value_list(call->where, k == 2 ? s.n : groups, lists[k], &call->out[k]);
    mem_free(room);
    return status;
}

/* Intersection over union of two boxes: corners, or centre and size. */
static double overlap(const graphi_tensor *boxes, int64_t a, int64_t b, bool centre)
{
    double low[2][2], high[2][2], shared = 1, areas[2] = {1, 1};
    for (int k = 0; k < 2; k++)
        for (int d = 0; d < 2; d++) {
            const double p = value_double(boxes, (k ? b : a) * 4 + d), q = value_double(boxes, (k ? b : a) * 4 + 2 + d);
            low[k][d] = centre ? p - q / 2 : fmin(p, q);
            high[k][d] = centre ? p + q / 2 : fmax(p, q);
            areas[k] *= high[k][d] - low[k][d];
        }
    for (int d = 0; d < 2; d++)
        shared *= fmax(0, fmin(high[0][d], high[1][d]) - fmax(low[0][d], low[1][d]));
    const double all = areas[0] + areas[1] - shared;
    return all > 0 ? shared / all : 0;
}

struct suppression {
    const graphi_tensor *boxes, *scores;
    int64_t most;
    double iou, least;
    bool centre;
};

/* Of one batch and class: places of the boxes chosen, in order, into line[].at; gives how many. */
static int64_t suppress(const struct suppression *s, int64_t batch, int64_t at, int64_t n, struct candidate *line)
{
    int64_t count = 0, chosen = 0;
    for (int64_t k = 0; k < n; k++) {
        line[count] = candidate_of(s->scores, at + k, k);
        count += line[count].number > s->least;
    }
    qsort(line, (size_t)count, sizeof *line, compare_down);
    for (int64_t k = 0; k < count && chosen < s->most; k++) {
        bool stays = true;
        for (int64_t j = 0; j < chosen && stays; j++)
            stays = overlap(s->boxes, batch * n + line[j].at, batch * n + line[k].at, s->centre) <= s->iou;
        if (stays)
            line[chosen++] = line[k];
    }
    return chosen;
}

static graphi_status run_suppression(struct op_call *call)
{
    TRY(op_tensor(call, 0, T_F32));
    TRY(op_tensor(call, 1, T_F32));
    const graphi_tensor *boxes = call->in[0], *scores = call->in[1];
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2])
        return op_fail(call, "found boxes and scores of rank %d and %d, expected [N, B, 4] and [N, C, B]", boxes->rank,
                       scores->rank);
    double numbers[3] = {0, 0, -INFINITY};
    for (int i = 0; i < 3; i++)
        if (op_in(call, i + 2) && call->in[i + 2]->count == 1)
            numbers[i] = value_double(call->in[i + 2], 0);
    const struct suppression s = {.boxes = boxes,
                                  .scores = scores,
                                  .most = (int64_t)numbers[0],
                                  .iou = numbers[1],
                                  .least = numbers[2],
                                  .centre = op_int(call, "center_point_box", 0) != 0};
    const int64_t n = boxes->dims[1], classes = scores->dims[1], pairs = boxes->dims[0] * classes;
    struct candidate *line = mem_alloc((size_t)n * sizeof *line + 1);
    int64_t *found = mem_zalloc_array((size_t)(pairs * n) * 3 + 1, sizeof *found), count = 0;
    if (!line || !found) {
        mem_free(line);
        mem_free(found);
        return fail_memory(call->where, (size_t)(pairs * n) * 24);
    }
    for (int64_t p = 0; p < pairs; p++) {
        const int64_t chosen = suppress(&s, p / classes, p * n, n, line);
        for (int64_t k = 0; k < chosen; k++, count++) {
            found[count * 3] = p / classes;
            found[count * 3 + 1] = p % classes;
            found[count * 3 + 2] = line[k].at;
        }
    }
    graphi_tensor *out;
    graphi_status status = op_new(call, 0, T_I64, 2, (int64_t[]){count, 3}, &out);
    if (status == GRAPHI_OK && count)
        memcpy(out->data, found, out->bytes);
    mem_free(line);
    mem_free(found);
    return status;
}

const struct host_op host_ops_search[] = {
    {"TopK", 1, 2, 2, "axis k largest sorted", run_top_k, 0},
    {"NonZero", 1, 1, 1, "", run_non_zero, 0},
    {"Compress", 2, 2, 1, "axis", run_compress, 0},
    {"Unique", 1, 1, 4, "axis sorted", run_unique, 0},
    {"NonMaxSuppression", 2, 5, 1, "center_point_box", run_suppression, 0},
    {0},
};
