/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products and convolutions in oneDNN (Debian's libdnnl-dev, OpenMP runtime). Layouts are the library's own choice
 * (format any): reorders are made once, outside the timing, as a network that stays in its layout would. */
#include "arithmetic.h"
#include "onednn_call.h"

#include <stdio.h>

double peer_onednn_gemm(const struct peer_gemm *s, int threads, int repeat, int copies)
{
    struct onednn_call call;
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t description;
    const dnnl_dims_t da = {s->m, s->k}, db = {s->k, s->n}, dc = {s->m, s->n};
    double ms = -1;
    if (onednn_start(&call, threads, DNNL_ARG_DST, copies) &&
        dnnl_memory_desc_init_by_tag(&a, 2, da, dnnl_f32, s->trans_a ? dnnl_ba : dnnl_ab) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&b, 2, db, dnnl_f32, dnnl_format_tag_any) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&c, 2, dc, dnnl_f32, dnnl_ab) == dnnl_success &&
        dnnl_matmul_desc_init(&description, &a, &b, NULL, &c) == dnnl_success)
        ms = onednn_time_op(&call, &description, NULL, repeat);
    onednn_finish(&call);
    return ms;
}

static dnnl_status_t describe(const struct peer_conv *s, dnnl_memory_desc_t md[3])
{
    int64_t side_h = (s->h + 2 * s->pad - s->kernel) / s->stride + 1, side_w = (s->w + 2 * s->pad - s->kernel) / s->stride + 1;
    const dnnl_dims_t x = {s->n, s->c, s->h, s->w}, w = {s->k, s->c, s->kernel, s->kernel}, y = {s->n, s->k, side_h, side_w};
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&md[0], 4, x, dnnl_f32, dnnl_format_tag_any);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&md[1], 4, w, dnnl_f32, dnnl_format_tag_any);
    return status == dnnl_success ? dnnl_memory_desc_init_by_tag(&md[2], 4, y, dnnl_f32, dnnl_format_tag_any) : status;
}

double peer_onednn_conv(const struct peer_conv *s, int threads, int repeat, int copies)
{
    static const int results[] = {DNNL_ARG_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS};
    const dnnl_dims_t strides = {s->stride, s->stride}, dilates = {0, 0}, pads = {s->pad, s->pad};
    struct onednn_call call;
    dnnl_memory_desc_t md[3];
    dnnl_convolution_desc_t description;
    dnnl_primitive_desc_t hint = NULL;
    double ms = -1;
    if (onednn_start(&call, threads, results[s->direction], copies) && describe(s, md) == dnnl_success) {
        dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(&description, dnnl_forward_training, dnnl_convolution_direct,
                                                                          &md[0], &md[1], NULL, &md[2], strides, dilates, pads, pads);
        if (status == dnnl_success && s->direction) {
            status = dnnl_primitive_desc_create(&hint, &description, NULL, call.engine, NULL);
            if (status == dnnl_success)
                status = s->direction == 1
                             ? dnnl_dilated_convolution_backward_data_desc_init(&description, dnnl_convolution_direct, &md[0], &md[1],
                                                                                &md[2], strides, dilates, pads, pads)
                             : dnnl_dilated_convolution_backward_weights_desc_init(&description, dnnl_convolution_direct, &md[0], &md[1],
                                                                                   NULL, &md[2], strides, dilates, pads, pads);
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
