/* SPDX-License-Identifier: Apache-2.0 */
/* 2-D convolution, channels-last: conv2d of x [N,H,W,C] with w [KH,KW,C/groups,K], and its gradients, which are
 * operations of their own. conv2d_backward_data is also the transposed convolution. Passes may give conv2d and
 * conv2d_backward_data an epilogue (epilogue.h) and weights prepared by conv_pack (conv.h), conv2d a pool of what the
 * epilogue makes (pool.h), whose results then are the node's, and all three images of bfloat16 where the kernel would
 * round them (pass `round`; pass `images` widens those that a graph has itself). */
#include "ops/conv.h"
#include "ops/conv_gradient.h"
#include "ops/epilogue.h"
#include "ops/pool.h"

#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"

#define WINDOW_ATTRIBUTES                                                                                              \
    {.name = "strides", .meaning = "[height, width]; empty: 1, 1", .type = GRAPHI_INTS},                               \
    {.name = "pads", .meaning = "[top, left, bottom, right]; empty: none", .type = GRAPHI_INTS},                       \
    {.name = "dilations", .meaning = "[height, width]; empty: 1, 1", .type = GRAPHI_INTS},                             \
    {.name = "groups", .meaning = "of channels, each with weights of its own", .type = GRAPHI_INT, .i = 1}
#define PREPARED_ATTRIBUTES                                                                                            \
    {.name = "algorithm", .type = GRAPHI_INT, .internal = true}, /* enum conv_algorithm */                             \
    {.name = "window", .type = GRAPHI_INTS, .internal = true}    /* dims of the weights that conv_pack prepared */

static const struct op_attribute forward_attributes[] = {
    WINDOW_ATTRIBUTES,
    EPILOGUE_ATTRIBUTES,
    PREPARED_ATTRIBUTES,
    {.name = "pool",
     .type = GRAPHI_INTS,
     .internal = true}, /* as pool_encode; empty: none. Outputs: the pool's, of max_pool the places if two */
    {0},
};
static const struct op_attribute data_attributes[] = {
    WINDOW_ATTRIBUTES,
    {.name = "size", .meaning = "[height, width] of x", .type = GRAPHI_INTS, .required = true},
    EPILOGUE_ATTRIBUTES,
    PREPARED_ATTRIBUTES,
    {0},
};
static const struct op_attribute weight_attributes[] = {
    WINDOW_ATTRIBUTES,
    {.name = "kernel", .meaning = "[height, width] of w", .type = GRAPHI_INTS, .required = true},
    {0},
};

static graphi_status list(const char *where, const struct node *node, const char *name, int count, const int64_t **ints)
{
    static const int64_t ones[2] = {1, 1}, zeros[4] = {0};
    int found = attr_ints(node, name, ints);
    if (!found)
        *ints = count == 4 ? zeros : ones;
    if (found && found != count)
        return fail(GRAPHI_INVALID, where, "found %d integers in attribute '%s', expected %d", found, name, count);
    return GRAPHI_OK;
}

/* Arrays as other frameworks lay them out fit by their channels in other places, and are told so: a size of a window or
 * a number of channels would say nothing to who has them. */
static graphi_status check_layout(const char *where, const int64_t *x, const int64_t *w, int64_t groups)
{
    int64_t first, last;
    if (groups < 1 || x[3] % groups || w[2] == x[3] / groups || __builtin_mul_overflow(w[1], groups, &first) ||
        __builtin_mul_overflow(w[2], groups, &last))
        return GRAPHI_OK;
    if (x[1] == last || x[1] == first)
        return fail(GRAPHI_INVALID, where,
                    "found N,C,H,W [%lld,%lld,%lld,%lld] as input 0 (channels first), expected N,H,W,C "
                    "[%lld,%lld,%lld,%lld]",
                    (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3], (long long)x[0],
                    (long long)x[2], (long long)x[3], (long long)x[1]);
    if (x[3] == first)
        return fail(GRAPHI_INVALID, where,
                    "found K,C/groups,KH,KW [%lld,%lld,%lld,%lld] as input 1 (channels first), expected "
                    "KH,KW,C/groups,K [%lld,%lld,%lld,%lld]",
                    (long long)w[0], (long long)w[1], (long long)w[2], (long long)w[3], (long long)w[2],
                    (long long)w[3], (long long)w[1], (long long)w[0]);
    return GRAPHI_OK;
}

/* The convolution that takes x to y with w; dims of x (4) and w (4). */
static graphi_status shape_of(const char *where, const struct node *node, const int64_t *x, const int64_t *w,
                              struct conv_shape *shape)
{
    const int64_t *strides, *pads, *dilations;
    TRY(list(where, node, "strides", 2, &strides));
    TRY(list(where, node, "pads", 4, &pads));
    TRY(list(where, node, "dilations", 2, &dilations));
    *shape = (struct conv_shape){.n = x[0], .h = x[1], .w = x[2], .c = x[3], .kh = w[0], .kw = w[1], .k = w[3],
                                 .stride_h = strides[0], .stride_w = strides[1], .dilation_h = dilations[0],
                                 .dilation_w = dilations[1], .groups = attr_int(node, "groups"), .pad_top = pads[0],
                                 .pad_left = pads[1], .pad_bottom = pads[2], .pad_right = pads[3]};
    TRY(check_layout(where, x, w, shape->groups));
    TRY(conv_shape_finish(shape, where));
    if (w[2] != shape->c / shape->groups)
        return fail(GRAPHI_INVALID, where, "found weights for %lld channels a group, expected %lld", (long long)w[2],
                    (long long)(shape->c / shape->groups));
    return GRAPHI_OK;
}

/* Only pass `round` leaves images of bfloat16 to a kernel, whose weights are rounded too; pass `images` widens others.
 */
static graphi_status expect_images(const struct shape_call *call, int input, const char *expected)
{
    const struct value_type *in = call->in[input];
    return expect(call, input, in->rank == 4 && (in->dtype == GRAPHI_F32 || in->dtype == GRAPHI_BF16), expected);
}

/* Dims of the weights of conv2d or conv2d_backward_data: of input 1, or of what it was prepared from. */
static const int64_t *weight_dims(const struct node *node, const int64_t *input)
{
    const int64_t *window;
    return attr_ints(node, "window", &window) == 4 ? window : input;
}

static bool prepared(const struct node *node)
{
    const int64_t *window;
    return attr_ints(node, "window", &window) != 0;
}

static struct conv_form form_of(const struct node *node, enum conv_direction direction, const int64_t *w,
                                graphi_dtype dtype)
{
    int64_t groups = attr_int(node, "groups"), channels;
    if (__builtin_mul_overflow(w[2], groups, &channels))
        channels = 0; /* no such form */
    return (struct conv_form){
        (enum conv_algorithm)attr_int(node, "algorithm"), direction, dtype, w[0], w[1], channels, w[3], groups};
}

/* Whether weights of these dims could be a value: nobody has looked at those of an attribute. */
static bool could_be_weights(const int64_t *dims)
{
    int64_t bytes = sizeof(float);
    for (int d = 0; d < 4; d++)
        if (dims[d] < 1 || __builtin_mul_overflow(bytes, dims[d], &bytes) || bytes > TYPE_MOST_BYTES)
            return false;
    return true;
}

static graphi_status expect_weights(const struct shape_call *call, enum conv_direction direction)
{
    const struct value_type *w = call->in[1];
    const int64_t *window;
    if (!prepared(call->node))
        return expect(call, 1, w->rank == 4 && w->dtype == GRAPHI_F32 && w->symbol < 0, "float32[KH,KW,C/groups,K]");
    if (attr_ints(call->node, "window", &window) != 4)
        return fail(GRAPHI_INVALID, call->where, "found attribute 'window' of another length, expected four integers");
    if (!could_be_weights(window))
        return fail(GRAPHI_INVALID, call->where,
                    "found a window of sizes below 1 or over 2^44 bytes in all, expected another");
    struct conv_form form = form_of(call->node, direction, window, w->dtype);
    return expect(call, 1, w->rank == 1 && w->dims[0] == conv_form_count(&form) && w->dims[0] > 0,
                  "prepared weights of the window");
}

/* --- shapes --- */

bool conv_node_pooled(const struct node *node)
{
    const int64_t *integers;
    return node_is(node, IS_CONV) && attr_ints(node, "pool", &integers) != 0;
}

/* The pool of a node that has one, over its convolution's results. */
static graphi_status pool_spec_of(const char *where, const struct node *node, const int64_t *image,
                                  struct pool_spec *spec)
{
    const int64_t *integers;
    int count = attr_ints(node, "pool", &integers);
    TRY(pool_decode(where, integers, count, image, spec));
    spec->places = node->outputs == 2;
    if (node->outputs < 1 || node->outputs > (spec->kind == POOL_MAX ? 2 : 1))
        return fail(GRAPHI_INVALID, where, "found %d outputs, expected a pool's", node->outputs);
    return GRAPHI_OK;
}

static graphi_status pooled_shape(const struct shape_call *call)
{
    struct pool_spec pool;
    int64_t bytes = sizeof(float);
    for (int d = 0; d < 4; d++) /* of the image that is pooled: no value has it, so nobody else looks */
        if (__builtin_mul_overflow(bytes, call->out[0].dims[d], &bytes) || bytes > TYPE_MOST_BYTES)
            return fail(GRAPHI_INVALID, call->where,
                        "found an image to pool of over 2^44 bytes, expected a smaller one");
    TRY(pool_spec_of(call->where, call->node, call->out[0].dims, &pool));
    TRY(pool_places_fit(call->where, &pool));
    call->out[0].dims[1] = pool.shape.oh;
    call->out[0].dims[2] = pool.shape.ow;
    if (pool.places) {
        call->out[1] = call->out[0];
        call->out[1].dtype = pool_places_type(&pool.shape);
    }
    return GRAPHI_OK;
}

static graphi_status forward_shape(const struct shape_call *call)
{
    struct conv_shape shape;
    TRY(expect_images(call, 0, "float32[N,H,W,C]"));
    TRY(expect_weights(call, CONV_FORWARD));
    TRY(shape_of(call->where, call->node, call->in[0]->dims, weight_dims(call->node, call->in[1]->dims), &shape));
    call->out[0] = (struct value_type){.dtype = GRAPHI_F32, .rank = 4, .dims = {shape.n, shape.oh, shape.ow, shape.k},
                                       .symbol = call->in[0]->symbol};
    if (!conv_node_pooled(call->node))
        return epilogue_shape(call, 2, epilogue_outputs(call->node));
    TRY(epilogue_shape(call, 2, 1));
    return pooled_shape(call);
}

static graphi_status check_gradient_size(const char *where, const int64_t *dy, const struct conv_shape *s)
{
    if (dy[0] == s->n && dy[1] == s->oh && dy[2] == s->ow && dy[3] == s->k)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found a gradient of [%lld,%lld,%lld,%lld], expected [%lld,%lld,%lld,%lld]",
                (long long)dy[0], (long long)dy[1], (long long)dy[2], (long long)dy[3], (long long)s->n,
                (long long)s->oh, (long long)s->ow, (long long)s->k);
}

/* The convolution whose data gradient this is, from the dims of dy, the weights and the size of x. */
static graphi_status data_shape_of(const char *where, const struct node *node, const int64_t *dy, const int64_t *w,
                                   struct conv_shape *shape)
{
    const int64_t *size;
    TRY(list(where, node, "size", 2, &size));
    int64_t x[4] = {dy[0], size[0], size[1], 0};
    if (__builtin_mul_overflow(w[2], attr_int(node, "groups"), &x[3]))
        return fail(GRAPHI_INVALID, where, "found %lld groups of %lld channels, expected fewer",
                    (long long)attr_int(node, "groups"), (long long)w[2]);
    TRY(shape_of(where, node, x, w, shape));
    return check_gradient_size(where, dy, shape);
}

static graphi_status data_shape(const struct shape_call *call)
{
    struct conv_shape s;
    TRY(expect_images(call, 0, "float32[N,OH,OW,K]"));
    TRY(expect_weights(call, CONV_BACKWARD_DATA));
    TRY(data_shape_of(call->where, call->node, call->in[0]->dims, weight_dims(call->node, call->in[1]->dims), &s));
    call->out[0] = (struct value_type){.dtype = GRAPHI_F32, .rank = 4, .dims = {s.n, s.h, s.w, s.c},
                                       .symbol = call->in[0]->symbol};
    return epilogue_shape(call, 2, epilogue_outputs(call->node));
}

static graphi_status weight_shape_of(const char *where, const struct node *node, const int64_t *x, const int64_t *dy,
                                     struct conv_shape *shape)
{
    const int64_t *kernel;
    int64_t groups = attr_int(node, "groups");
    TRY(list(where, node, "kernel", 2, &kernel));
    int64_t w[4] = {kernel[0], kernel[1], groups > 0 ? x[3] / groups : 0, dy[3]};
    TRY(shape_of(where, node, x, w, shape));
    return check_gradient_size(where, dy, shape);
}

static graphi_status weight_shape(const struct shape_call *call)
{
    struct conv_shape s;
    TRY(expect_images(call, 0, "float32[N,H,W,C]"));
    TRY(expect_images(call, 1, "float32[N,OH,OW,K]"));
    TRY(expect(call, 1, call->in[1]->symbol == call->in[0]->symbol, "float32[N,OH,OW,K] of as many images"));
    TRY(weight_shape_of(call->where, call->node, call->in[0]->dims, call->in[1]->dims, &s));
    call->out[0] =
        (struct value_type){.dtype = GRAPHI_F32, .rank = 4, .dims = {s.kh, s.kw, s.c / s.groups, s.k}, .symbol = -1};
    return GRAPHI_OK;
}

/* --- FLOPs of the direct algorithm: two for each weight and output pixel, in every direction --- */

static double flops_of(const int64_t *w, const int64_t *y)
{
    double flops = 2;
    for (int i = 0; i < 4; i++)
        flops *= (double)w[i];
    return flops * (double)y[0] * (double)y[1] * (double)y[2];
}
static double forward_flops(const struct shape_call *call)
{
    struct conv_shape s;
    const int64_t *w = weight_dims(call->node, call->in[1]->dims);
    return shape_of(call->where, call->node, call->in[0]->dims, w, &s) ? 0 : flops_of(w, (int64_t[]){s.n, s.oh, s.ow});
}
static double data_flops(const struct shape_call *call)
{
    return flops_of(weight_dims(call->node, call->in[1]->dims), call->in[0]->dims);
}
static double weight_flops(const struct shape_call *call) { return flops_of(call->out[0].dims, call->in[1]->dims); }

/* --- binding --- */

static graphi_status bind(const struct bind_call *call, struct conv_spec *spec, const struct array_desc *x,
                          const struct array_desc *w, const struct array_desc *y, struct kernel *kernel)
{
    struct node_epilogue epilogue = {.spec = {.program = NULL}};
    TRY(row_stride(call, x, &spec->shape.ldx));
    TRY(row_stride(call, y, &spec->shape.ldy));
    if (!array_is_dense(w))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found strided weights, expected dense ones");
    spec->rounded_x = x->dtype == GRAPHI_BF16;
    spec->rounded_y = y->dtype == GRAPHI_BF16;
    spec->multiplicands = spec->rounded_x || spec->rounded_y ? GRAPHI_BF16 : call->multiplicands;
    if (spec->direction != CONV_BACKWARD_WEIGHTS) {
        TRY(epilogue_layout(call, 2, spec->pool ? 1 : epilogue_outputs(call->node), &epilogue));
        spec->prepared = prepared(call->node);
        spec->algorithm = (enum conv_algorithm)attr_int(call->node, "algorithm");
        if (spec->prepared)
            spec->multiplicands = w->dtype;
    }
    spec->error_budget = call->conv_error;
    spec->threads = call->threads;
    spec->cores = call->cores;
    spec->epilogue = epilogue.spec;
    return conv_bind(spec, (enum isa)call->isa, kernel);
}

static graphi_status forward_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct conv_spec spec = {.direction = CONV_FORWARD};
    struct pool_spec pool;
    TRY(shape_of(call->where, call->node, call->in[0].dims, weight_dims(call->node, call->in[1].dims), &spec.shape));
    if (!conv_node_pooled(call->node))
        return bind(call, &spec, &call->in[0], &call->in[1], &call->out[0], kernel);
    /* To convolution and epilogue the result is the image that is pooled. */
    const int64_t dims[4] = {spec.shape.n, spec.shape.oh, spec.shape.ow, spec.shape.k};
    const struct array_desc image = array_dense(GRAPHI_F32, 4, dims);
    struct bind_call inner = *call;
    inner.out = &image;
    TRY(pool_spec_of(call->where, call->node, dims, &pool));
    TRY(row_stride(call, &call->out[0], &pool.shape.ldy));
    if (pool.places)
        TRY(row_stride(call, &call->out[1], &pool.shape.ldp));
    spec.pool = &pool;
    return bind(&inner, &spec, &call->in[0], &call->in[1], &image, kernel);
}

static graphi_status data_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct conv_spec spec = {.direction = CONV_BACKWARD_DATA};
    TRY(data_shape_of(call->where, call->node, call->in[0].dims, weight_dims(call->node, call->in[1].dims),
                      &spec.shape));
    return bind(call, &spec, &call->out[0], &call->in[1], &call->in[0], kernel);
}

static graphi_status weight_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct conv_spec spec = {.direction = CONV_BACKWARD_WEIGHTS};
    TRY(weight_shape_of(call->where, call->node, call->in[0].dims, call->in[1].dims, &spec.shape));
    return bind(call, &spec, &call->in[0], &call->out[0], &call->in[1], kernel);
}

/* --- preparing weights --- */

int conv_node_images(const struct node *node)
{
    return node_is(node, IS_CONV_BACKWARD_WEIGHTS)                            ? 2
           : node_is(node, IS_CONV) || node_is(node, IS_CONV_BACKWARD_DATA) ? 1
                                                                              : 0;
}

/* The kernel's description of a convolution node before its arrays are placed; false: no convolution. */
static bool node_spec(const graphi_graph *graph, const struct node *node, const struct conv_node_options *options,
                      struct conv_spec *spec)
{
    static const struct {
        enum op_role role;
        graphi_status (*shape)(const char *, const struct node *, const int64_t *, const int64_t *,
                               struct conv_shape *);
    } directions[] = {[CONV_FORWARD] = {IS_CONV, shape_of},
                      [CONV_BACKWARD_DATA] = {IS_CONV_BACKWARD_DATA, data_shape_of},
                      [CONV_BACKWARD_WEIGHTS] = {IS_CONV_BACKWARD_WEIGHTS, weight_shape_of}};
    for (int d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++) {
        if (!node_is(node, directions[d].role))
            continue;
        const struct value_type *first = &graph_value(graph, node->input[0])->type,
                                *second = &graph_value(graph, node->input[1])->type;
        bool weights = d == CONV_BACKWARD_WEIGHTS;
        *spec = (struct conv_spec){.direction = (enum conv_direction)d, .error_budget = options->conv_error,
                                   .multiplicands = options->multiplicands};
        if (!weights && prepared(node)) {
            spec->prepared = true;
            spec->algorithm = (enum conv_algorithm)attr_int(node, "algorithm");
            spec->multiplicands = second->dtype;
        }
        const int64_t *dims = weights ? second->dims : weight_dims(node, second->dims);
        return directions[d].shape(node->kind->name, node, first->dims, dims, &spec->shape) == GRAPHI_OK;
    }
    return false;
}

enum conv_form_keep conv_node_form(const graphi_graph *graph, const struct node *node,
                                   const struct conv_node_options *options, struct conv_form *form)
{
    struct conv_spec spec;
    if (!node_spec(graph, node, options, &spec) || spec.prepared)
        return CONV_FORM_NONE;
    return conv_form_wanted(&spec, options->isa, form);
}

int conv_node_rounds(const graphi_graph *graph, const struct node *node, const struct conv_node_options *options)
{
    struct conv_spec spec;
    if (!node_spec(graph, node, options, &spec) || !conv_rounds(&spec, options->isa))
        return 0;
    return conv_node_images(node);
}

bool conv_node_pools(const graphi_graph *graph, const struct node *node, const struct conv_node_options *options,
                     const struct node *pool, struct pool_spec *out)
{
    struct conv_spec spec;
    const struct value_type *image = &graph_value(graph, node->output)->type;
    if (node->outputs != 1 || !node_spec(graph, node, options, &spec) || conv_node_pooled(node) ||
        pool_of(pool->kind->name, pool, image->dims, out))
        return false;
    spec.pool = out;
    return conv_pools(&spec, options->isa);
}

static const struct op_attribute pack_attributes[] = {
    {.name = "algorithm", .type = GRAPHI_INT, .required = true, .internal = true}, /* enum conv_algorithm */
    {.name = "backward", .type = GRAPHI_INT, .internal = true}, /* for conv2d_backward_data */
    {.name = "groups", .type = GRAPHI_INT, .internal = true, .i = 1},
    {.name = "dtype", .type = GRAPHI_INT, .internal = true}, /* graphi_dtype of the form: float32 or bfloat16 */
    {0},
};

static struct conv_form pack_form(const struct node *node, const int64_t *w)
{
    return form_of(node, attr_int(node, "backward") ? CONV_BACKWARD_DATA : CONV_FORWARD, w,
                   (graphi_dtype)attr_int(node, "dtype"));
}

static graphi_status pack_shape(const struct shape_call *call)
{
    const struct value_type *w = call->in[0];
    TRY(expect(call, 0, w->rank == 4 && w->dtype == GRAPHI_F32 && w->symbol < 0, "float32[KH,KW,C/groups,K]"));
    struct conv_form form = pack_form(call->node, w->dims);
    int64_t count = conv_form_count(&form);
    TRY(expect(call, 0, count > 0, "weights that the algorithm takes"));
    call->out[0] = (struct value_type){.dtype = form.multiplicands, .rank = 1, .dims = {count}, .symbol = -1};
    return GRAPHI_OK;
}

static graphi_status pack_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct conv_form form = pack_form(call->node, call->in[0].dims);
    if (!array_is_dense(&call->in[0]) || !array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found strided weights, expected dense ones");
    return conv_pack_bind(&form, (enum isa)call->isa, kernel);
}

#define FLAGS OP_GEMM | OP_HOST | OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED
const struct op_kind ops_conv[] = {
    {.name = "conv2d",
     .role = IS_CONV,
     .summary = "cross-correlation of images x with weights w",
     .shapes = "x [N,H,W,C], w [KH,KW,C/groups,K] to [N,OH,OW,K]",
     .min_inputs = 2,
     .max_inputs = -1,
     .outputs = -1,
     .attributes = forward_attributes,
     .flags = FLAGS,
     .scalability = "conv",
     .shape = forward_shape,
     .gradient = conv_forward_gradient,
     .flops = forward_flops,
     .bind = forward_bind},
    {.name = "conv2d_backward_data",
     .role = IS_CONV_BACKWARD_DATA,
     .summary = "gradient of conv2d with respect to its images, from dy and w; also the transposed convolution",
     .shapes = "dy [N,OH,OW,K], w [KH,KW,C/groups,K] to [N,H,W,C]",
     .min_inputs = 2,
     .max_inputs = -1,
     .outputs = -1,
     .attributes = data_attributes,
     .flags = FLAGS,
     .scalability = "conv",
     .shape = data_shape,
     .gradient = conv_data_gradient,
     .flops = data_flops,
     .bind = data_bind},
    {.name = "conv2d_backward_weights",
     .role = IS_CONV_BACKWARD_WEIGHTS,
     .summary = "gradient of conv2d with respect to its weights, from x and dy",
     .shapes = "x [N,H,W,C], dy [N,OH,OW,K] to [KH,KW,C/groups,K]",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .attributes = weight_attributes,
     .flags = OP_GEMM | OP_STRIDED_IN | OP_BOUNDED,
     .scalability = "conv",
     .shape = weight_shape,
     .gradient = conv_weight_gradient,
     .flops = weight_flops,
     .bind = weight_bind},
    {.name = "conv_pack",
     .summary = "weights of a convolution in the order in which its kernel reads them",
     .shapes = "[KH,KW,C/groups,K] to one dimension",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = pack_attributes,
     .flags = OP_PACK,
     .scalability = "memory",
     .shape = pack_shape,
     .flops = no_flops,
     .bind = pack_bind},
    {.name = "conv_points",
     .summary = "the same made in each step, for several convolutions: a form too large to be kept",
     .shapes = "[KH,KW,C/groups,K] to one dimension",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = pack_attributes,
     .scalability = "memory",
     .shape = pack_shape,
     .flops = no_flops,
     .bind = pack_bind},
    {0},
};
