/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products and convolutions in oneDNN (Debian's libdnnl-dev, OpenMP runtime). Layouts are the library's own choice
 * (format any): reorders are made once, outside the timing, as a network that stays in its layout would. */
#include "arithmetic.h"
#include "repeat.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

struct call {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t argument[3];
    int arguments;
    float *data[3];
    dnnl_memory_t memory[3];
    int result, copies, turn; /* which argument is the result, how many of it lie one behind another, the next of them */
    size_t result_bytes;
};

static void execute(void *context)
{
    struct call *call = context;
    char *to = (char *)call->data[call->result] + (size_t)(call->turn++ % call->copies) * call->result_bytes;
    dnnl_memory_set_data_handle(call->memory[call->result], to);
    dnnl_primitive_execute(call->primitive, call->stream, call->arguments, call->argument);
    dnnl_stream_wait(call->stream);
}

static int start(struct call *call, int threads, int result, int copies)
{
    omp_set_num_threads(threads);
    *call = (struct call){.result = result, .copies = copies};
    return dnnl_engine_create(&call->engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&call->stream, call->engine, dnnl_stream_default_flags) == dnnl_success;
}

static int add(struct call *call, const dnnl_memory_desc_t *desc, int name)
{
    size_t bytes = dnnl_memory_desc_get_size(desc);
    int i = call->arguments++;
    if (i == call->result) {
        call->result_bytes = bytes;
        bytes *= (size_t)call->copies;
    }
    call->data[i] = repeat_array((int64_t)(bytes / 4));
    if (!call->data[i] || dnnl_memory_create(&call->memory[i], desc, call->engine, call->data[i]) != dnnl_success)
        return 0;
    call->argument[i] = (dnnl_exec_arg_t){name, call->memory[i]};
    return 1;
}

static void finish(struct call *call)
{
    for (int i = 0; i < call->arguments; i++) {
        dnnl_memory_destroy(call->memory[i]);
        free(call->data[i]);
    }
    dnnl_primitive_destroy(call->primitive);
    dnnl_stream_destroy(call->stream);
    dnnl_engine_destroy(call->engine);
}

static double run(struct call *call, const dnnl_op_desc_t description, const int names[3], const dnnl_query_t queries[3],
                  dnnl_primitive_desc_t hint, int repeat)
{
    dnnl_primitive_desc_t chosen;
    double ms = -1;
    if (dnnl_primitive_desc_create(&chosen, description, NULL, call->engine, hint) != dnnl_success)
        return -1;
    int good = dnnl_primitive_create(&call->primitive, chosen) == dnnl_success;
    for (int i = 0; i < 3 && good; i++)
        good = add(call, dnnl_primitive_desc_query_md(chosen, queries[i], 0), names[i]);
    if (good)
        ms = repeat_median(execute, call, repeat, call->copies);
    dnnl_primitive_desc_destroy(chosen);
    return ms;
}

double peer_onednn_gemm(const struct peer_gemm *s, int threads, int repeat, int copies)
{
    struct call call;
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t description;
    const dnnl_dims_t da = {s->m, s->k}, db = {s->k, s->n}, dc = {s->m, s->n};
    double ms = -1;
    if (start(&call, threads, 2, copies) &&
        dnnl_memory_desc_init_by_tag(&a, 2, da, dnnl_f32, s->trans_a ? dnnl_ba : dnnl_ab) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&b, 2, db, dnnl_f32, dnnl_format_tag_any) == dnnl_success &&
        dnnl_memory_desc_init_by_tag(&c, 2, dc, dnnl_f32, dnnl_ab) == dnnl_success &&
        dnnl_matmul_desc_init(&description, &a, &b, NULL, &c) == dnnl_success)
        ms = run(&call, &description, (int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                 (dnnl_query_t[]){dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md}, NULL, repeat);
    finish(&call);
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
    static const dnnl_query_t queries[3][3] = {{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
                                               {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
                                               {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    static const int names[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const dnnl_dims_t strides = {s->stride, s->stride}, dilates = {0, 0}, pads = {s->pad, s->pad};
    struct call call;
    dnnl_memory_desc_t md[3];
    dnnl_convolution_desc_t description;
    dnnl_primitive_desc_t hint = NULL;
    double ms = -1;
    if (start(&call, threads, (int[]){2, 0, 1}[s->direction], copies) && describe(s, md) == dnnl_success) {
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
            ms = run(&call, &description, names[s->direction], queries[s->direction], hint, repeat);
        if (hint)
            dnnl_primitive_desc_destroy(hint);
    }
    finish(&call);
    return ms;
}

const char *peer_onednn_version(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
