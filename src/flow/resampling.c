/* SPDX-License-Identifier: Apache-2.0 */
/* The lowering of Resize: along each axis whose size changes, every element of the result is a sum of some of the
 * image's with weights that do not depend on it. The host operator tells them, by resizing an identity matrix; where
 * each has one weight of 1 in turn the elements are repeated, where it has one they are picked, otherwise it is a
 * product with the matrix. One thread lowers. */
#include "flow/lower.h"

#include "base/memory.h"

#include <string.h>

enum { SIDE_MOST = 2048 };

/* [out, in] weights of an axis; the caller's. */
static graphi_status weights_of(struct lower_call *c, int axis, int64_t n, graphi_tensor **out)
{
    const struct attribute *all = c->node->attributes;
    struct attribute kept[16];
    size_t count = 0;
    graphi_tensor *identity, *in[4] = {NULL};
    for (size_t i = 0; i < c->node->attribute_count && count < 16; i++)
        if (strcmp(all[i].name, "axes") != 0)
            kept[count++] = all[i];
    TRY(value_new(c->node->where, T_F32, 2, (int64_t[]){n, n}, &identity));
    memset(identity->data, 0, identity->bytes);
    for (int64_t i = 0; i < n; i++)
        ((float *)identity->data)[i * n + i] = 1;
    const graphi_tensor *scales = op_in(&c->call, 2), *sizes = op_in(&c->call, 3);
    const bool by_scale = scales && scales->kind == GRAPHI_KIND_TENSOR && scales->count;
    const int64_t size = by_scale ? 0 : value_int(sizes, axis);
    graphi_status status = by_scale ? value_new(c->node->where, T_F32, 1, (int64_t[]){2}, &in[2])
                                    : value_list(c->node->where, 2, (int64_t[]){size, n}, &in[3]);
    if (status == GRAPHI_OK && by_scale) {
        ((float *)in[2]->data)[0] = (float)value_double(scales, axis);
        ((float *)in[2]->data)[1] = 1;
    }
    in[0] = identity;
    *out = NULL;
    struct op_call call = {.op = c->node->op,
                           .where = c->node->where,
                           .ins = 4,
                           .outs = 1,
                           .in = in,
                           .out = out,
                           .attributes = kept,
                           .attribute_count = count};
    if (status == GRAPHI_OK)
        status = host_op_run(&call);
    for (int i = 0; i < 4; i++)
        value_drop(in[i]);
    return status;
}

/* The place of the only weight of a row, which is 1; -1: there are others. */
static int64_t only_place(const float *row, int64_t n)
{
    int64_t place = -1;
    for (int64_t i = 0; i < n; i++) {
        if (row[i] == 0)
            continue;
        if (row[i] != 1 || place >= 0)
            return -1;
        place = i;
    }
    return place;
}

/* Every element so many times: a dimension of 1 behind the axis, repeated. */
static graphi_value repeated(graphi_graph *g, graphi_value x, int rank, const int64_t *dims, int axis, int64_t times)
{
    int64_t apart[GRAPHI_MAX_RANK], wide[GRAPHI_MAX_RANK], to[GRAPHI_MAX_RANK];
    for (int i = 0; i <= rank; i++)
        wide[i] = apart[i] = i == axis + 1 ? 1 : dims[i > axis ? i - 1 : i];
    wide[axis + 1] = times;
    memcpy(to, dims, (size_t)rank * sizeof *to);
    to[axis] *= times;
    x = graphi_expand(g, graphi_reshape(g, x, apart, rank + 1), wide, rank + 1, NULL, 0);
    return graphi_reshape(g, x, to, rank);
}

/* y = weights x along an axis: [others before, n, others behind] as a product of matrices. */
static graphi_value product(struct lower_call *c, graphi_value x, int rank, const int64_t *dims, int axis,
                            const graphi_tensor *weights)
{
    graphi_graph *g = c->l->graph;
    int64_t before = 1, behind = 1, to[GRAPHI_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        before *= i < axis ? dims[i] : 1;
        behind *= i > axis ? dims[i] : 1;
        to[i] = i == axis ? weights->dims[0] : dims[i];
    }
    const graphi_value by = graphi_constant(g, GRAPHI_F32, 2, weights->dims, weights->data);
    x = graphi_reshape(g, x, (int64_t[]){before, dims[axis], behind}, 3);
    x = behind == 1
            ? graphi_matmul(g, graphi_reshape(g, x, (int64_t[]){before, dims[axis]}, 2), by, 0, 1)
            : graphi_matmul(g, graphi_reshape(g, by, (int64_t[]){1, weights->dims[0], weights->dims[1]}, 3), x, 0, 0);
    return graphi_reshape(g, x, to, rank);
}

/* Picked, repeated, or a product. */
static graphi_status resample(struct lower_call *c, graphi_value *x, int rank, int64_t *dims, int axis,
                              const graphi_tensor *weights)
{
    const int64_t n = dims[axis], out = weights->dims[0];
    int64_t *place = mem_zalloc_array((size_t)out + 1, sizeof *place);
    if (!place)
        return fail_memory(c->node->where, (size_t)out * sizeof *place);
    bool picked = true, in_turn = out % n == 0 && rank < GRAPHI_MAX_RANK;
    for (int64_t i = 0; i < out && picked; i++) {
        place[i] = only_place((const float *)weights->data + i * n, n);
        picked = place[i] >= 0;
        in_turn = in_turn && place[i] == i / (out / n);
    }
    if (picked && in_turn)
        *x = repeated(c->l->graph, *x, rank, dims, axis, out / n);
    else
        *x = picked ? lower_pick(c->l, *x, axis, out, place) : product(c, *x, rank, dims, axis, weights);
    mem_free(place);
    dims[axis] = out;
    return GRAPHI_OK;
}

static graphi_status lower_resize(struct lower_call *c)
{
    int64_t dims[GRAPHI_MAX_RANK];
    TRY(lower_floats(c, 0));
    TRY(lower_constants(c, 1));
    const graphi_tensor *from = c->call.in[0], *scales = op_in(&c->call, 2), *sizes = op_in(&c->call, 3);
    const char *mode = op_string(&c->call, "coordinate_transformation_mode", "half_pixel");
    const bool by_scale = scales && scales->kind == GRAPHI_KIND_TENSOR && scales->count;
    const graphi_tensor *list = by_scale ? scales : sizes;
    if (!list || list->count != from->rank || op_attribute(&c->call, "axes") || !strcmp(mode, "tf_crop_and_resize") ||
        strcmp(op_string(&c->call, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return lower_fail(c, "found axes, a region or a kept ratio, expected a size or scale of each dimension");
    struct flow_value *x = lower_in(c, 0);
    const bool last = lower_is_last(x);
    graphi_value y = last ? x->last : lower_plain(c->l, x);
    for (int i = 0; i < from->rank; i++)
        dims[last ? lower_axis(i, from->rank) : i] = from->dims[i];
    for (int i = 0; i < from->rank; i++) {
        graphi_tensor *weights;
        if (by_scale ? value_double(scales, i) == 1 : value_int(sizes, i) == from->dims[i])
            continue;
        if (from->dims[i] > SIDE_MOST)
            return lower_fail(c, "found a side of %lld, expected at most %d for a plan", (long long)from->dims[i],
                              SIDE_MOST);
        TRY(weights_of(c, i, from->dims[i], &weights));
        const graphi_status status =
            weights->count ? resample(c, &y, from->rank, dims, last ? lower_axis(i, from->rank) : i, weights)
                           : lower_fail(c, "found a result of no elements, expected some for a plan");
        value_drop(weights);
        TRY(status);
    }
    return lower_set(c, 0, y, last);
}

const struct lower_row lower_resampling[] = {
    {"Resize", lower_resize, NULL},
    {0},
};
