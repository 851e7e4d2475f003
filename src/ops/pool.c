/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of images, channels-last: max_pool, avg_pool and global_avg_pool with their gradients. max_pool also tells
 * where in its window each maximum is, a byte each, which its gradient takes in place of x and y; where nobody reads
 * that, in inference, it takes neither time nor memory. */
#include "ops/pool.h"

#define MAX_PLACES (UINT32_C(1) << 1) /* the output, among optional ones */

#define WINDOW_ATTRIBUTES                                                                                              \
    {.name = "kernel", .meaning = "[height, width]", .type = GRAPHI_INTS, .required = true},                           \
    {.name = "strides", .meaning = "[height, width]; empty: as the kernel", .type = GRAPHI_INTS},                      \
    {.name = "pads", .meaning = "[top, left, bottom, right]; empty: none", .type = GRAPHI_INTS},                       \
    {.name = "ceil_mode", .meaning = "1: a last window may hang over (Caffe)", .type = GRAPHI_INT}
#define COUNT_ATTRIBUTE                                                                                                \
    {.name = "count_include_pad", .meaning = "1: divide by the window including its padding", .type = GRAPHI_INT}
#define SIZE_ATTRIBUTE {.name = "size", .meaning = "[height, width] of x", .type = GRAPHI_INTS, .required = true}

static const struct op_attribute max_attributes[] = {WINDOW_ATTRIBUTES, {0}};
static const struct op_attribute max_grad_attributes[] = {WINDOW_ATTRIBUTES, SIZE_ATTRIBUTE, {0}};
static const struct op_attribute average_attributes[] = {WINDOW_ATTRIBUTES, COUNT_ATTRIBUTE, {0}};
static const struct op_attribute average_grad_attributes[] = {WINDOW_ATTRIBUTES, COUNT_ATTRIBUTE, SIZE_ATTRIBUTE, {0}};
static const struct op_attribute size_attributes[] = {SIZE_ATTRIBUTE, {0}};

static graphi_status list(const char *where, const struct node *node, const char *name, int count, const int64_t **ints)
{
    int found = attr_ints(node, name, ints);
    if (found == count)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found %d integers in attribute '%s', expected %d", found, name, count);
}

/* The window of a node over images of n x h x w x c. */
static graphi_status window_of(const char *where, const struct node *node, const int64_t *dims, bool average,
                               struct pool_shape *shape)
{
    const int64_t *kernel, *strides, *pads;
    static const int64_t none[4] = {0};
    TRY(list(where, node, "kernel", 2, &kernel));
    if (attr_ints(node, "strides", &strides) == 0)
        strides = kernel;
    else
        TRY(list(where, node, "strides", 2, &strides));
    if (attr_ints(node, "pads", &pads) == 0)
        pads = none;
    else
        TRY(list(where, node, "pads", 4, &pads));
    *shape = (struct pool_shape){.n = dims[0],
                                 .h = dims[1],
                                 .w = dims[2],
                                 .c = dims[3],
                                 .kh = kernel[0],
                                 .kw = kernel[1],
                                 .stride_h = strides[0],
                                 .stride_w = strides[1],
                                 .pad_top = pads[0],
                                 .pad_left = pads[1],
                                 .pad_bottom = pads[2],
                                 .pad_right = pads[3],
                                 .ceil_mode = attr_int(node, "ceil_mode") != 0,
                                 .count_include_pad = average && attr_int(node, "count_include_pad") != 0};
    return pool_shape_finish(shape, where);
}

graphi_status pool_of(const char *where, const struct node *node, const int64_t *dims, struct pool_spec *spec)
{
    const bool average = node_is(node, IS_AVG_POOL);
    *spec = (struct pool_spec){.kind = average ? POOL_AVERAGE : POOL_MAX};
    return window_of(where, node, dims, average, &spec->shape);
}

int pool_encode(const struct pool_spec *spec, int64_t *integers)
{
    const struct pool_shape *s = &spec->shape;
    const int64_t encoded[POOL_ENCODED] = {spec->kind, s->kh, s->kw, s->stride_h, s->stride_w, s->pad_top, s->pad_left,
                                           s->pad_bottom, s->pad_right, s->ceil_mode + 2 * s->count_include_pad};
    for (int i = 0; i < POOL_ENCODED; i++)
        integers[i] = encoded[i];
    return POOL_ENCODED;
}

graphi_status pool_decode(const char *where, const int64_t *integers, int count, const int64_t *dims,
                          struct pool_spec *spec)
{
    const int64_t *in = integers;
    if (count != POOL_ENCODED || (in[0] != POOL_MAX && in[0] != POOL_AVERAGE) || in[9] < 0 || in[9] > 3)
        return fail(GRAPHI_INVALID, where,
                    "found an attribute 'pool' of %d integers, expected %d that pool_encode made", count, POOL_ENCODED);
    *spec = (struct pool_spec){.kind = (enum pool_kind)in[0]};
    spec->shape = (struct pool_shape){.n = dims[0], .h = dims[1], .w = dims[2], .c = dims[3], .kh = in[1], .kw = in[2],
                                      .stride_h = in[3], .stride_w = in[4], .pad_top = in[5], .pad_left = in[6],
                                      .pad_bottom = in[7], .pad_right = in[8], .ceil_mode = in[9] & 1,
                                      .count_include_pad = in[9] >> 1};
    return pool_shape_finish(&spec->shape, where);
}

static graphi_status expect_images(const struct shape_call *call, int input)
{
    return expect(call, input, call->in[input]->rank == 4 && call->in[input]->dtype == GRAPHI_F32, "float32[N,H,W,C]");
}

static struct value_type pooled(const struct value_type *x, int64_t h, int64_t w)
{
    struct value_type y = *x;
    y.dims[1] = h;
    y.dims[2] = w;
    return y;
}

static graphi_status forward_shape(const struct shape_call *call, bool average, struct pool_shape *shape)
{
    TRY(expect_images(call, 0));
    TRY(window_of(call->where, call->node, call->in[0]->dims, average, shape));
    call->out[0] = pooled(call->in[0], shape->oh, shape->ow);
    return GRAPHI_OK;
}

graphi_status pool_places_fit(const char *where, const struct pool_spec *spec)
{
    const struct pool_shape *s = &spec->shape;
    if (!spec->places || s->kh * s->kw <= POOL_MOST_PLACES)
        return GRAPHI_OK;
    return fail(GRAPHI_UNSUPPORTED, where, "found a window of %lldx%lld, expected at most 2^24 elements",
                (long long)s->kh, (long long)s->kw);
}

static graphi_status max_shape(const struct shape_call *call)
{
    struct pool_spec pool = {.places = true};
    TRY(forward_shape(call, false, &pool.shape));
    TRY(pool_places_fit(call->where, &pool));
    call->out[1] = call->out[0];
    call->out[1].dtype = pool_places_type(&pool.shape);
    return GRAPHI_OK;
}

static graphi_status average_shape(const struct shape_call *call)
{
    struct pool_shape shape;
    return forward_shape(call, true, &shape);
}

/* The gradient of images whose size is an attribute; dy is input `dy`. */
static graphi_status grad_shape(const struct shape_call *call, int dy, struct pool_shape *shape)
{
    const int64_t *size;
    TRY(expect(call, dy, call->in[dy]->rank == 4 && call->in[dy]->dtype == GRAPHI_F32, "float32[N,H,W,C]"));
    TRY(list(call->where, call->node, "size", 2, &size));
    const int64_t *found = call->in[dy]->dims, dims[4] = {found[0], size[0], size[1], found[3]};
    TRY(window_of(call->where, call->node, dims, dy == 0, shape));
    if (shape->oh != found[1] || shape->ow != found[2])
        return fail(GRAPHI_INVALID, call->where,
                    "found a gradient of %lldx%lld, expected %lldx%lld from a size of %lldx%lld", (long long)found[1],
                    (long long)found[2], (long long)shape->oh, (long long)shape->ow, (long long)size[0],
                    (long long)size[1]);
    call->out[0] = pooled(call->in[dy], size[0], size[1]);
    return GRAPHI_OK;
}

static graphi_status max_grad_shape(const struct shape_call *call)
{
    struct pool_shape shape;
    TRY(grad_shape(call, 1, &shape));
    struct value_type places = *call->in[1];
    places.dtype = pool_places_type(&shape);
    return expect_type(call, 0, &places);
}
static graphi_status average_grad_shape(const struct shape_call *call)
{
    struct pool_shape shape;
    return grad_shape(call, 0, &shape);
}

static graphi_status bind_pool(const struct bind_call *call, enum pool_kind kind, enum pool_direction direction,
                               struct kernel *kernel)
{
    const bool gradient = direction == POOL_GRADIENT, max = kind == POOL_MAX;
    struct pool_spec spec = {.kind = kind, .direction = direction, .streaming = call->streaming,
                             .places = max && !gradient && !(call->absent & MAX_PLACES)};
    struct pool_shape *s = &spec.shape;
    TRY(window_of(call->where, call->node, (gradient ? call->out : call->in)->dims, !max, s));
    TRY(row_stride(call, &call->in[gradient && max], gradient ? &s->lddy : &s->ldx));
    TRY(row_stride(call, &call->out[0], gradient ? &s->lddx : &s->ldy));
    if (max)
        TRY(row_stride(call, gradient ? &call->in[0] : &call->out[1], &s->ldp));
    return pool_bind(&spec, (enum isa)call->isa, kernel);
}
static graphi_status max_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_pool(call, POOL_MAX, POOL_FORWARD, kernel);
}
static graphi_status max_grad_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_pool(call, POOL_MAX, POOL_GRADIENT, kernel);
}
static graphi_status average_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_pool(call, POOL_AVERAGE, POOL_FORWARD, kernel);
}
static graphi_status average_grad_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_pool(call, POOL_AVERAGE, POOL_GRADIENT, kernel);
}

/* The gradient of a pool from `in`: its attributes, and the size of x. */
static graphi_value gradient_of(struct gradient_call *call, const char *kind, int inputs, const graphi_value *in)
{
    const struct value_type x = graph_value(call->graph, call->in[0])->type;
    graphi_attribute attribute[8];
    int count = call->op->attributes;
    for (int i = 0; i < count; i++)
        attribute[i] = call->op->attribute[i];
    attribute[count++] = ints_attribute("size", x.dims + 1, 2);
    return graphi_op(call->graph, kind, inputs, in, count, attribute);
}
static void max_gradient(struct gradient_call *call)
{
    if (call->grad_out[0] != GRAPHI_NONE)
        call->grad_in[0] = gradient_of(call, "max_pool_grad", 2, (graphi_value[]){call->out[1], call->grad_out[0]});
}
static void average_gradient(struct gradient_call *call)
{
    call->grad_in[0] = gradient_of(call, "avg_pool_grad", 1, call->grad_out);
}

static double window_flops(const struct shape_call *call)
{
    const int64_t *kernel;
    if (attr_ints(call->node, "kernel", &kernel) != 2)
        return 0;
    return (double)type_count(&call->out[0]) * (double)kernel[0] * (double)kernel[1];
}

/* --- global average: one window, its result a matrix --- */

static graphi_status global_shape(const struct shape_call *call)
{
    TRY(expect_images(call, 0));
    const struct value_type *x = call->in[0];
    call->out[0] =
        (struct value_type){.dtype = x->dtype, .rank = 2, .dims = {x->dims[0], x->dims[3]}, .symbol = x->symbol};
    return GRAPHI_OK;
}

static graphi_status global_grad_shape(const struct shape_call *call)
{
    const int64_t *size;
    TRY(expect(call, 0, call->in[0]->rank == 2 && call->in[0]->dtype == GRAPHI_F32, "float32[N,C]"));
    TRY(list(call->where, call->node, "size", 2, &size));
    const struct value_type *dy = call->in[0];
    call->out[0] = (struct value_type){
        .dtype = dy->dtype, .rank = 4, .dims = {dy->dims[0], size[0], size[1], dy->dims[1]}, .symbol = dy->symbol};
    return GRAPHI_OK;
}

static graphi_status bind_global(const struct bind_call *call, enum pool_direction direction, struct kernel *kernel)
{
    bool gradient = direction == POOL_GRADIENT;
    const int64_t *x = gradient ? call->out[0].dims : call->in[0].dims;
    struct pool_spec spec = {.kind = POOL_AVERAGE, .direction = direction};
    spec.shape = (struct pool_shape){
        .n = x[0], .h = x[1], .w = x[2], .c = x[3], .kh = x[1], .kw = x[2], .stride_h = x[1], .stride_w = x[2]};
    TRY(row_stride(call, &call->in[0], gradient ? &spec.shape.lddy : &spec.shape.ldx));
    TRY(row_stride(call, &call->out[0], gradient ? &spec.shape.lddx : &spec.shape.ldy));
    TRY(pool_bind(&spec, (enum isa)call->isa, kernel));
    kernel->name = gradient ? "global_avg_pool_grad" : "global_avg_pool";
    return GRAPHI_OK;
}
static graphi_status global_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_global(call, POOL_FORWARD, kernel);
}
static graphi_status global_grad_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_global(call, POOL_GRADIENT, kernel);
}

static void global_gradient(struct gradient_call *call)
{
    const struct value_type x = graph_value(call->graph, call->in[0])->type;
    graphi_attribute size = ints_attribute("size", x.dims + 1, 2);
    call->grad_in[0] = graphi_op(call->graph, "global_avg_pool_grad", 1, call->grad_out, 1, &size);
}

#define FLAGS OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED
const struct op_kind ops_pool[] = {
    {.name = "max_pool",
     .role = IS_MAX_POOL,
     .summary =
         "largest element of each window of an image [N,H,W,C], and its place in the window: bytes, integers for "
         "windows of more than 256 elements",
     .shapes = "[N,H,W,C] to [N,OH,OW,C], twice",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 2,
     .optional = MAX_PLACES,
     .attributes = max_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = max_shape,
     .gradient = max_gradient,
     .flops = window_flops,
     .bind = max_bind},
    {.name = "max_pool_grad",
     .role = IS_MAX_POOL_GRADIENT,
     .summary = "gradient of max_pool from places, dy and the size of x; ties go to the first element of the window",
     .shapes = "places [N,OH,OW,C], dy [N,OH,OW,C] to [N,H,W,C]",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .attributes = max_grad_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = max_grad_shape,
     .bind = max_grad_bind},
    {.name = "avg_pool",
     .role = IS_AVG_POOL,
     .summary = "mean of each window of an image [N,H,W,C]",
     .shapes = "[N,H,W,C] to [N,OH,OW,C]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = average_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = average_shape,
     .gradient = average_gradient,
     .flops = window_flops,
     .bind = average_bind},
    {.name = "avg_pool_grad",
     .summary = "gradient of avg_pool from dy and the size of x",
     .shapes = "dy [N,OH,OW,C] to [N,H,W,C]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = average_grad_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = average_grad_shape,
     .bind = average_grad_bind},
    {.name = "global_avg_pool",
     .summary = "mean of each channel of an image",
     .shapes = "[N,H,W,C] to [N,C]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = global_shape,
     .gradient = global_gradient,
     .bind = global_bind},
    {.name = "global_avg_pool_grad",
     .summary = "gradient of global_avg_pool from dy and the size of x",
     .shapes = "dy [N,C] to [N,H,W,C]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = size_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = global_grad_shape,
     .bind = global_grad_bind},
    {0},
};
