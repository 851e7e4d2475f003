/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products and convolutions in oneDNN (Debian's libdnnl-dev, OpenMP runtime). Layouts are the library's own
 * choice (format any): reorders are made once, outside the timing, as a network that stays in its layout would. */
#include "arithmetic.h"
#include "onednn_call.h"

#include <stdio.h>

double peer_onednn_gemm(const struct peer_gemm *s, int threads, int repeat, int copies)
{
    struct onednn_call call;
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t description;
    const dnnl_dims_t da = {peer_batch(s), s->m, s->k}, db = {peer_batch(s), s->k, s->n},
                      dc = {peer_batch(s), s->m, s->n};
    const dnnl_data_type_t type = s->bfloat16 ? dnnl_bf16 : dnnl_f32;
    const int single = !s->batch, rank = 3 - single; /* without the first dimension then */
    const dnnl_format_tag_t dense = single ? dnnl_ab : dnnl_abc, transposed = single ? dnnl_ba : dnnl_acb;
    double ms = -1;
    if (onednn_start(&call, threads, DNNL_ARG_DST, copies) &&
        dnnl_memory_desc_init_by_tag(&a, rank, da + single, type, s->trans_a ? transposed : dense) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&b, rank, db + single, type, dnnl_format_tag_any) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&c, rank, dc + single, dnnl_f32, dense) == dnnl_success &&
        dnnl_matmul_desc_init(&description, &a, &b, NULL, &c) == dnnl_success)
        ms = onednn_time_op(&call, &description, NULL, repeat);
    onednn_finish(&call);
    return ms;
}

/* x, w and y. Of bfloat16 all but the result, which is 2, 0 or 1 of them by direction (none: the hint of a backward
 * pass). */
static dnnl_status_t describe(const struct peer_conv *s, int result, dnnl_memory_desc_t md[3])
{
    const int64_t groups = peer_groups(s);
    const int plain = groups == 1; /* weights without the dimension of groups */
    const dnnl_dims_t x = {s->n, s->c, s->h, s->w}, y = {s->n, s->k, peer_out_height(s), peer_out_width(s)};
    const dnnl_dims_t w = {groups, s->k / groups, s->c / groups, s->kernel, peer_width(s)};
    const int rank[3] = {4, 5 - plain, 4};
    const int64_t *const dims[3] = {x, w + plain, y};
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < 3 && status == dnnl_success; i++)
        status = dnnl_memory_desc_init_by_tag(&md[i], rank[i], dims[i],
                                              s->bfloat16 && i != result ? dnnl_bf16 : dnnl_f32, dnnl_format_tag_any);
    return status;
}

double peer_onednn_conv(const struct peer_conv *s, int threads, int repeat, int copies)
{
    static const int results[] = {DNNL_ARG_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS}, result[] = {2, 0, 1};
    const dnnl_dims_t strides = {s->stride, s->stride}, dilates = {0, 0}, pads = {s->pad, peer_pad_width(s)};
    struct onednn_call call;
    dnnl_memory_desc_t md[3];
    dnnl_convolution_desc_t description;
    dnnl_primitive_desc_t hint = NULL;
    double ms = -1;
    if (onednn_start(&call, threads, results[s->direction], copies) &&
        describe(s, s->direction ? -1 : result[0], md) == dnnl_success) {
        dnnl_status_t status =
            dnnl_dilated_convolution_forward_desc_init(&description, dnnl_forward_training, dnnl_convolution_direct,
                                                       &md[0], &md[1], NULL, &md[2], strides, dilates, pads, pads);
        if (status == dnnl_success && s->direction) {
            status = dnnl_primitive_desc_create(&hint, &description, NULL, call.engine, NULL);
            if (status == dnnl_success)
                status = describe(s, result[s->direction], md);
            if (status == dnnl_success)
                status = s->direction == 1
                             ? dnnl_dilated_convolution_backward_data_desc_init(&description, dnnl_convolution_direct,
                                                                                &md[0], &md[1], &md[2], strides,
                                                                                dilates, pads, pads)
                             : dnnl_dilated_convolution_backward_weights_desc_init(
                                   &description, dnnl_convolution_direct, &md[0], &md[1], NULL, &md[2], strides,
                                   dilates, pads, pads);
        }
        if (status == dnnl_success)
            ms = onednn_time_op(&call, &description, hint, repeat);
        if (hint)
            dnnl_primitive_desc_destroy(hint);
    }
    onednn_finish(&call);
    return ms;
}

const char *peer_onednn_version(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
