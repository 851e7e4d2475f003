/* SPDX-License-Identifier: Apache-2.0 */
/* Making and timing of a oneDNN primitive. */
#include "onednn_call.h"

#include <omp.h>
#include <string.h>

static const int names[] = {DNNL_ARG_SRC,        DNNL_ARG_SRC_1,      DNNL_ARG_WEIGHTS,      DNNL_ARG_DST,
                            DNNL_ARG_MEAN,       DNNL_ARG_VARIANCE,   DNNL_ARG_SCALE,        DNNL_ARG_SHIFT,
                            DNNL_ARG_WORKSPACE,  DNNL_ARG_DIFF_SRC,   DNNL_ARG_DIFF_DST,     DNNL_ARG_DIFF_WEIGHTS,
                            DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT, DNNL_ARG_MULTIPLE_SRC, DNNL_ARG_MULTIPLE_SRC + 1};

bool onednn_start(struct onednn_call *call, int threads, int result, int copies)
{
    omp_set_num_threads(threads);
    *call = (struct onednn_call){.result = result, .copies = copies};
    return dnnl_engine_create(&call->engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&call->stream, call->engine, dnnl_stream_default_flags) == dnnl_success;
}

static void execute(void *context)
{
    struct onednn_call *call = context;
    size_t copy = (size_t)(call->turn++ % call->copies);
    for (int i = 0; i < call->arguments; i++)
        if (call->bytes[i])
            dnnl_memory_set_data_handle(call->argument[i].memory, (char *)call->data[i] + copy * call->bytes[i]);
    dnnl_primitive_execute(call->primitive, call->stream, call->arguments, call->argument);
    dnnl_stream_wait(call->stream);
}

/* Places kept by a forward pass must be places: zeros are. */
static bool add(struct onednn_call *call, const dnnl_memory_desc_t *desc, int name)
{
    size_t bytes = dnnl_memory_desc_get_size(desc);
    bool own = call->copies > 1 && (!call->result || call->result == name);
    size_t all = own ? bytes * (size_t)call->copies : bytes;
    int i = call->arguments++;
    call->argument[i].arg = name;
    call->bytes[i] = own ? bytes : 0;
    call->data[i] = repeat_array((int64_t)(all / 4 + 1));
    if (call->data[i] && name == DNNL_ARG_WORKSPACE)
        memset(call->data[i], 0, all);
    for (size_t k = 0; call->data[i] && desc->data_type == dnnl_bf16 && k < all / 2; k++)
        ((uint16_t *)call->data[i])[k] = (uint16_t)(0x3f80 | k * 37 % 128); /* from 1 to 2, and no patterns of chance */
    return call->data[i] &&
           dnnl_memory_create(&call->argument[i].memory, desc, call->engine, call->data[i]) == dnnl_success;
}

double onednn_time(struct onednn_call *call, dnnl_primitive_desc_t chosen, int repeat)
{
    bool good = dnnl_primitive_create(&call->primitive, chosen) == dnnl_success;
    for (size_t i = 0; i < sizeof names / sizeof *names && good; i++) {
        const dnnl_memory_desc_t *desc = dnnl_primitive_desc_query_md(chosen, dnnl_query_exec_arg_md, names[i]);
        if (desc && dnnl_memory_desc_get_size(desc) > 0)
            good = add(call, desc, names[i]);
    }
    dnnl_primitive_desc_destroy(chosen);
    return good ? repeat_median(execute, call, repeat, call->copies) : -1;
}

double onednn_time_op(struct onednn_call *call, const_dnnl_op_desc_t description, dnnl_primitive_desc_t hint,
                      int repeat)
{
    dnnl_primitive_desc_t chosen;
    if (dnnl_primitive_desc_create(&chosen, description, NULL, call->engine, hint) != dnnl_success)
        return -1;
    return onednn_time(call, chosen, repeat);
}

void onednn_finish(struct onednn_call *call)
{
    for (int i = 0; i < call->arguments; i++) {
        dnnl_memory_destroy(call->argument[i].memory);
        free(call->data[i]);
    }
    dnnl_primitive_destroy(call->primitive);
    dnnl_stream_destroy(call->stream);
    dnnl_engine_destroy(call->engine);
}
