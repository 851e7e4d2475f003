/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive of oneDNN with arrays for all its arguments. What arguments it has, and in which layouts, it is asked
 * itself. */
#ifndef BENCH_PEERS_ONEDNN_CALL_H
#define BENCH_PEERS_ONEDNN_CALL_H

#include "repeat.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

enum { ONEDNN_ARGUMENTS = 20 };

struct onednn_call {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    int result;       /* the argument of which every copy has its own; 0: of all */
    int copies, turn; /* results lie one behind another; the next of them */
    int arguments;
    dnnl_exec_arg_t argument[ONEDNN_ARGUMENTS];
    float *data[ONEDNN_ARGUMENTS];
    size_t bytes[ONEDNN_ARGUMENTS]; /* between copies; 0: all use one */
};

bool onednn_start(struct onednn_call *call, int threads, int result, int copies);

/* Median time of one execution of the primitive (consumed), or of the one that the description makes; negative when it
 * has none. */
double onednn_time(struct onednn_call *call, dnnl_primitive_desc_t chosen, int repeat);
double onednn_time_op(struct onednn_call *call, const_dnnl_op_desc_t description, dnnl_primitive_desc_t hint,
                      int repeat);

/* Harmless after a start that failed. */
void onednn_finish(struct onednn_call *call);

#endif
