/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalization and local response normalization, channels-last.
 *
 * Running statistics are ordinary nodes of the model: with momentum m, `batch_norm` giving (y, mean, inv_std) and
 * frozen parameters running_mean and running_var, running_mean <- (1 - m) * running_mean + m * mean running_var  <- (1
 * - m) * running_var  + m * (1 / inv_std^2 - epsilon) * rows / (rows - 1) as element-wise operations ending in
 * graphi_assign; evaluation uses batch_norm_inference with them.
 *
 * LRN within channels (Caffe's WITHIN_CHANNEL) is a composition, differentiable by its parts:
 *     x * pow(1 + alpha * avg_pool(square(x), kernel n x n, strides 1, pads (n - 1) / 2, count_include_pad 1), -beta)
 */
#include "ops/check.h"

#include "kernels/norm.h"
#include "ops/build.h"

static const struct op_attribute epsilon_attributes[] = {
    {.name = "epsilon", .meaning = "added to the variance", .type = GRAPHI_FLOAT, .f = 1e-5},
    {0},
};
static const struct op_attribute lrn_attributes[] = {
    {.name = "size", .meaning = "channels of the window", .type = GRAPHI_INT, .required = true},
    {.name = "alpha", .meaning = "weight of the mean of squares", .type = GRAPHI_FLOAT, .f = 1e-4},
    {.name = "beta", .meaning = "exponent", .type = GRAPHI_FLOAT, .f = 0.75},
    {.name = "k", .meaning = "added to the weighted mean", .type = GRAPHI_FLOAT, .f = 1},
    {0},
};

static graphi_status expect_rows(const struct shape_call *call, int input, int least_rank)
{
    const struct value_type *x = call->in[input];
    return expect(call, input, x->rank >= least_rank && x->dtype == GRAPHI_F32,
                  least_rank == 1 ? "float32[...,C]" : "float32[rows,...,C]");
}

/* Inputs first .. last are vectors over the channels of input 0. */
static graphi_status expect_vectors(const struct shape_call *call, int first, int last)
{
    TRY(expect_rows(call, 0, 2));
    const int64_t c = call->in[0]->dims[call->in[0]->rank - 1];
    const struct value_type vector = {.dtype = GRAPHI_F32, .rank = 1, .dims = {c}, .symbol = -1};
    for (int i = first; i <= last; i++)
        TRY(expect_type(call, i, &vector));
    return GRAPHI_OK;
}

static graphi_status batch_shape(const struct shape_call *call)
{
    TRY(expect_vectors(call, 1, 2));
    call->out[0] = *call->in[0];
    call->out[1] = call->out[2] = *call->in[1];
    return GRAPHI_OK;
}

static graphi_status batch_grad_shape(const struct shape_call *call)
{
    TRY(expect_vectors(call, 1, 3));
    TRY(expect_type(call, 4, call->in[0]));
    call->out[0] = *call->in[0];
    call->out[1] = call->out[2] = *call->in[1];
    return GRAPHI_OK;
}

static graphi_status inference_shape(const struct shape_call *call)
{
    TRY(expect_vectors(call, 1, 4));
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status lrn_shape(const struct shape_call *call)
{
    TRY(expect_rows(call, 0, 1));
    if (call->node->inputs == 2)
        TRY(expect_type(call, 1, call->in[0]));
    int64_t size = attr_int(call->node, "size");
    if (size < 1 || size > (int64_t)1 << 30)
        return fail(GRAPHI_INVALID, call->where, "found size %lld, expected 1 or more, to 2^30", (long long)size);
    if (call->in[0]->rank == 1 && call->in[0]->symbol >= 0)
        return fail(GRAPHI_INVALID, call->where, "found channels of bounded size, expected a fixed number");
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

/* Layout of x, dy (input `dy`, 0: none) and the first output. */
static graphi_status layout(const struct bind_call *call, int dy, struct norm_spec *spec)
{
    const struct array_desc *x = &call->in[0];
    if (!array_as_matrix(x, &spec->rows, &spec->c, &spec->ldx))
        return row_stride(call, x, &spec->ldx);
    spec->per_row = rows_per_row(x, spec->rows);
    TRY(row_stride(call, &call->out[0], &spec->ldy));
    if (dy)
        TRY(row_stride(call, &call->in[dy], &spec->lddy));
    for (int i = 1; i < call->node->inputs; i++)
        if (call->in[i].rank == 1 && i != dy && !array_is_dense(&call->in[i]))
            return fail(GRAPHI_UNSUPPORTED, call->where, "found input %d strided, expected it dense", i);
    return GRAPHI_OK;
}

static graphi_status bind_batch(const struct bind_call *call, enum norm_kind kind, int dy, struct kernel *kernel)
{
    struct norm_spec spec = {.kind = kind, .streaming = call->streaming};
    if (kind != NORM_BATCH_GRADIENT)
        spec.epsilon = attr_float(call->node, "epsilon");
    TRY(layout(call, dy, &spec));
    return norm_bind(&spec, (enum isa)call->isa, kernel);
}
static graphi_status batch_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_batch(call, NORM_BATCH, 0, kernel);
}
static graphi_status batch_grad_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_batch(call, NORM_BATCH_GRADIENT, 4, kernel);
}
static graphi_status inference_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_batch(call, NORM_BATCH_INFERENCE, 0, kernel);
}

static graphi_status bind_lrn(const struct bind_call *call, enum norm_kind kind, int dy, struct kernel *kernel)
{
    struct norm_spec spec = {.kind = kind,
                             .size = attr_int(call->node, "size"),
                             .alpha = attr_float(call->node, "alpha"),
                             .beta = attr_float(call->node, "beta"),
                             .k = attr_float(call->node, "k")};
    TRY(layout(call, dy, &spec));
    return norm_bind(&spec, (enum isa)call->isa, kernel);
}
static graphi_status lrn_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_lrn(call, NORM_LRN, 0, kernel);
}
static graphi_status lrn_grad_bind(const struct bind_call *call, struct kernel *kernel)
{
    return bind_lrn(call, NORM_LRN_GRADIENT, 1, kernel);
}

static void batch_gradient(struct gradient_call *call)
{
    if (call->grad_out[1] != GRAPHI_NONE || call->grad_out[2] != GRAPHI_NONE) {
        char where[160];
        node_text(call->graph, call->node, where, sizeof where);
        graph_broken(call->graph, fail(GRAPHI_UNSUPPORTED, where,
                                       "found a loss that depends on the statistics, expected on y alone"));
        return;
    }
    graphi_value in[] = {call->in[0], call->in[1], call->out[1], call->out[2], call->grad_out[0]};
    graphi_value dx = graphi_op(call->graph, "batch_norm_grad", 5, in, 0, NULL);
    for (int i = 0; i < 3; i++)
        call->grad_in[i] = dx == GRAPHI_NONE ? GRAPHI_NONE : dx + i;
}

/* The normalization is linear in x, so its gradient is the same operation without mean and bias. */
static void inference_gradient(struct gradient_call *call)
{
    graphi_graph *graph = call->graph;
    graphi_value x = call->in[0], scale = call->in[1], bias = call->in[2], mean = call->in[3], var = call->in[4];
    graphi_value dy = call->grad_out[0], zeros = build1(graph, "zeros_like", bias);
    graphi_value centre = build1(graph, "zeros_like", mean); /* a mean as fixed as that */
    const graphi_attribute *attribute = call->op->attribute;
    int attributes = call->op->attributes;
    if (call->needed[3] || call->needed[4]) {
        char where[160];
        node_text(graph, call->node, where, sizeof where);
        graph_broken(graph,
                     fail(GRAPHI_UNSUPPORTED, where, "found a gradient asked of the statistics, expected them fixed"));
        return;
    }
    if (call->needed[0])
        call->grad_in[0] = graphi_op(graph, "batch_norm_inference", 5, (graphi_value[]){dy, scale, zeros, centre, var},
                                     attributes, attribute);
    if (call->needed[1]) {
        graphi_value ones = build2(graph, "add", zeros, build_scalar(graph, 1));
        graphi_value hat = graphi_op(graph, "batch_norm_inference", 5, (graphi_value[]){x, ones, zeros, mean, var},
                                     attributes, attribute);
        call->grad_in[1] = sum_like(graph, build2(graph, "mul", dy, hat), scale);
    }
    if (call->needed[2])
        call->grad_in[2] = sum_like(graph, dy, bias);
}

static void lrn_gradient(struct gradient_call *call)
{
    graphi_value in[] = {call->in[0], call->grad_out[0]};
    call->grad_in[0] = graphi_op(call->graph, "lrn_grad", 2, in, call->op->attributes, call->op->attribute);
}

static double per_element(const struct shape_call *call, double flops)
{
    return flops * (double)type_count(call->in[0]);
}
static double batch_flops(const struct shape_call *call)
{
    return per_element(call, 7);
}
static double batch_grad_flops(const struct shape_call *call)
{
    return per_element(call, 9);
}
static double inference_flops(const struct shape_call *call)
{
    return per_element(call, 3);
}
static double lrn_flops(const struct shape_call *call)
{
    return per_element(call, 2.0 * (double)attr_int(call->node, "size") + 4 * call->node->inputs);
}

#define FLAGS OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED
const struct op_kind ops_norm[] = {
    {.name = "batch_norm",
     .summary = "batch normalization over all but the last dimension: x, scale, bias to y, mean, inv_std; these two "
                "have no gradient",
     .shapes = "x [rows,...,C], scale [C], bias [C] to y like x, mean [C], inv_std [C]",
     .min_inputs = 3,
     .max_inputs = 3,
     .outputs = 3,
     .attributes = epsilon_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = batch_shape,
     .gradient = batch_gradient,
     .flops = batch_flops,
     .bind = batch_bind},
    {.name = "batch_norm_grad",
     .summary = "gradient of batch_norm: x, scale, mean, inv_std, dy to dx, dscale, dbias",
     .shapes = "x [rows,...,C], three of [C], dy like x to dx like x, dscale [C], dbias [C]",
     .min_inputs = 5,
     .max_inputs = 5,
     .outputs = 3,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = batch_grad_shape,
     .flops = batch_grad_flops,
     .bind = batch_grad_bind},
    {.name = "batch_norm_inference",
     .role = IS_GIVEN_NORM,
     .summary = "normalization by given statistics: x, scale, bias, mean, var to y; these have no gradient",
     .shapes = "x [rows,...,C], four of [C] to y like x",
     .min_inputs = 5,
     .max_inputs = 5,
     .outputs = 1,
     .attributes = epsilon_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = inference_shape,
     .gradient = inference_gradient,
     .flops = inference_flops,
     .bind = inference_bind},
    {.name = "lrn",
     .summary = "local response normalization across channels: x (k + alpha / size * sum x^2)^-beta, over size "
                "channels around its own; of an even size one more behind it than before, as ONNX",
     .shapes = "[...,C] to the same",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = lrn_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = lrn_shape,
     .gradient = lrn_gradient,
     .flops = lrn_flops,
     .bind = lrn_bind},
    {.name = "lrn_grad",
     .summary = "gradient of lrn from x and dy",
     .shapes = "x [...,C], dy the same, to the same",
     .min_inputs = 2,
     .max_inputs = 2,
     .outputs = 1,
     .attributes = lrn_attributes,
     .flags = FLAGS,
     .scalability = "memory",
     .shape = lrn_shape,
     .flops = lrn_flops,
     .bind = lrn_grad_bind},
    {0},
};
