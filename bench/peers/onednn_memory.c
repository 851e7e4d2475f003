/* SPDX-License-Identifier: Apache-2.0 */
/* What is bound by memory in oneDNN: channels-last and its own blocked layout are both tried, the faster counts. Every
 * copy has arguments of its own. */
#include "arithmetic.h"
#include "onednn_call.h"

typedef dnnl_status_t (*maker)(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                               dnnl_primitive_desc_t *out);

static dnnl_status_t image(dnnl_memory_desc_t *md, const int64_t dims[4], int64_t h, int64_t w, dnnl_format_tag_t tag)
{
    const dnnl_dims_t nchw = {dims[0], dims[3], h, w};
    return dnnl_memory_desc_init_by_tag(md, 4, nchw, dnnl_f32, tag);
}

static dnnl_status_t matrix(dnnl_memory_desc_t *md, int64_t rows, int64_t columns, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(md, 2, (dnnl_dims_t){rows, columns}, dnnl_f32, tag);
}

/* Makes the forward primitive, and from it the backward one where that is asked for. */
static dnnl_status_t finish(struct onednn_call *call, const struct peer_memory *p, const_dnnl_op_desc_t forward,
                            const_dnnl_op_desc_t backward, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = dnnl_primitive_desc_create(&hint, forward, NULL, call->engine, NULL);
    if (status != dnnl_success || !p->backward)
        return *out = hint, status;
    status = dnnl_primitive_desc_create(out, backward, NULL, call->engine, hint);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static dnnl_status_t pool(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                          dnnl_primitive_desc_t *out)
{
    int64_t h = (p->dims[1] + 2 * p->pad - p->kernel) / p->stride + 1,
            w = (p->dims[2] + 2 * p->pad - p->kernel) / p->stride + 1;
    const dnnl_dims_t strides = {p->stride, p->stride}, kernel = {p->kernel, p->kernel}, pads = {p->pad, p->pad};
    dnnl_alg_kind_t kind = p->primitive == PEER_MAX_POOL ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    dnnl_memory_desc_t x, y;
    dnnl_pooling_desc_t forward, backward;
    image(&x, p->dims, p->dims[1], p->dims[2], tag);
    image(&y, p->dims, h, w, tag);
    dnnl_pooling_forward_desc_init(&forward, dnnl_forward_training, kind, &x, &y, strides, kernel, pads, pads);
    dnnl_pooling_backward_desc_init(&backward, kind, &x, &y, strides, kernel, pads, pads);
    return finish(call, p, &forward, &backward, out);
}

static dnnl_status_t batch_norm(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                                dnnl_primitive_desc_t *out)
{
    const unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_memory_desc_t x;
    dnnl_batch_normalization_desc_t forward, backward;
    image(&x, p->dims, p->dims[1], p->dims[2], tag);
    dnnl_batch_normalization_forward_desc_init(&forward, dnnl_forward_training, &x, 1e-5f, flags);
    dnnl_batch_normalization_backward_desc_init(&backward, dnnl_backward, &x, &x, 1e-5f, flags);
    return finish(call, p, &forward, &backward, out);
}

static dnnl_status_t lrn(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                         dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t x;
    dnnl_lrn_desc_t forward, backward;
    image(&x, p->dims, p->dims[1], p->dims[2], tag);
    dnnl_lrn_forward_desc_init(&forward, dnnl_forward_training, dnnl_lrn_across_channels, &x, p->kernel, 1e-4f, 0.75f,
                               1);
    dnnl_lrn_backward_desc_init(&backward, dnnl_lrn_across_channels, &x, &x, p->kernel, 1e-4f, 0.75f, 1);
    return finish(call, p, &forward, &backward, out);
}

static dnnl_status_t softmax(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                             dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t x;
    dnnl_softmax_v2_desc_t forward, backward;
    matrix(&x, p->dims[0], p->dims[3], dnnl_ab);
    dnnl_softmax_v2_forward_desc_init(&forward, dnnl_forward_training, dnnl_softmax_accurate, &x, &x, 1);
    dnnl_softmax_v2_backward_desc_init(&backward, dnnl_softmax_accurate, &x, &x, &x, 1);
    return finish(call, p, &forward, &backward, out);
}

static dnnl_status_t sum(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                         dnnl_primitive_desc_t *out)
{
    int64_t rows = p->dims[0] * p->dims[1] * p->dims[2], columns = p->dims[3];
    dnnl_memory_desc_t x, y;
    dnnl_reduction_desc_t description;
    matrix(&x, rows, columns, dnnl_ab);
    matrix(&y, p->primitive == PEER_SUM_ROWS ? 1 : rows, p->primitive == PEER_SUM_ROWS ? columns : 1, dnnl_ab);
    dnnl_reduction_desc_init(&description, dnnl_reduction_sum, &x, &y, 0, 0);
    return dnnl_primitive_desc_create(out, &description, NULL, call->engine, NULL);
}

/* relu(x + bias): a sum with what follows it; x + y for PEER_ADD. */
static dnnl_status_t add(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                         dnnl_primitive_desc_t *out)
{
    int64_t rows = p->dims[0] * p->dims[1] * p->dims[2], columns = p->dims[3];
    bool bias = p->primitive == PEER_BIAS_RELU;
    dnnl_memory_desc_t x, y;
    dnnl_binary_desc_t description;
    dnnl_post_ops_t after;
    dnnl_primitive_attr_t attributes;
    matrix(&x, rows, columns, dnnl_ab);
    matrix(&y, bias ? 1 : rows, columns, dnnl_ab);
    dnnl_binary_desc_init(&description, dnnl_binary_add, &x, &y, &x);
    dnnl_post_ops_create(&after);
    dnnl_primitive_attr_create(&attributes);
    if (bias)
        dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0);
    dnnl_primitive_attr_set_post_ops(attributes, after);
    dnnl_status_t status = dnnl_primitive_desc_create(out, &description, attributes, call->engine, NULL);
    dnnl_primitive_attr_destroy(attributes);
    dnnl_post_ops_destroy(after);
    return status;
}

static dnnl_status_t transpose(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                               dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t x, y;
    matrix(&x, p->dims[0], p->dims[3], dnnl_ab);
    matrix(&y, p->dims[0], p->dims[3], dnnl_ba);
    return dnnl_reorder_primitive_desc_create(out, &x, call->engine, &y, call->engine, NULL);
}

static dnnl_status_t concat(struct onednn_call *call, const struct peer_memory *p, dnnl_format_tag_t tag,
                            dnnl_primitive_desc_t *out)
{
    const int64_t half[] = {p->dims[0], p->dims[1], p->dims[2], p->dims[3] / 2};
    dnnl_memory_desc_t parts[2], y;
    image(&parts[0], half, p->dims[1], p->dims[2], tag);
    image(&parts[1], half, p->dims[1], p->dims[2], tag);
    image(&y, p->dims, p->dims[1], p->dims[2], tag);
    return dnnl_concat_primitive_desc_create(out, &y, 2, 1, parts, NULL, call->engine);
}

static const struct primitive {
    maker make;
    bool images; /* has layouts to choose from */
} primitives[] = {
    [PEER_MAX_POOL] = {pool, true},    [PEER_AVG_POOL] = {pool, true},     [PEER_BATCH_NORM] = {batch_norm, true},
    [PEER_LRN] = {lrn, true},          [PEER_SOFTMAX] = {softmax, false},  [PEER_SUM_ROWS] = {sum, false},
    [PEER_SUM_COLUMNS] = {sum, false}, [PEER_BIAS_RELU] = {add, false},    [PEER_ADD] = {add, false},
    [PEER_TRANSPOSE] = {transpose, false}, [PEER_CONCAT] = {concat, true},
};

double peer_onednn_memory(const struct peer_memory *p, int threads, int repeat, int copies)
{
    static const dnnl_format_tag_t tags[] = {dnnl_nhwc, dnnl_nChw16c};
    double best = -1;
    for (int i = 0; i < (primitives[p->primitive].images ? 2 : 1) && primitives[p->primitive].make; i++) {
        struct onednn_call call;
        dnnl_primitive_desc_t chosen;
        double ms = -1;
        if (onednn_start(&call, threads, 0, copies) &&
            primitives[p->primitive].make(&call, p, tags[i], &chosen) == dnnl_success)
            ms = onednn_time(&call, chosen, repeat);
        onednn_finish(&call);
        if (ms > 0 && (best < 0 || ms < best))
            best = ms;
    }
    return best;
}
