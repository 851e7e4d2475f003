/* SPDX-License-Identifier: Apache-2.0 */
/* What describes a 2-D convolution, channels-last: x[N,H,W,C], w[KH,KW,C/groups,K], y[N,OH,OW,K]. Cross-correlation, as
 * ONNX Conv. */
#ifndef KERNELS_CONV_SPEC_H
#define KERNELS_CONV_SPEC_H

#include "kernels/epilogue.h"
#include "kernels/kernel.h"
#include "kernels/pool.h"

struct conv_shape {
    int64_t n, h, w, c, k, kh, kw;
    int64_t stride_h, stride_w, dilation_h, dilation_w, groups;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    int64_t oh, ow; /* filled by conv_shape_finish */
    int64_t ldx, ldy; /* pixel strides of x and y (>= c, >= k): parts of a concatenation are accepted */
};

enum conv_direction { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_WEIGHTS };
/* Winograd's algorithm with tiles of 4, 6 or 8 points a side; AUTO takes the fastest of the table conv_table.inc whose
 * error (root mean square against float64) is within the budget. */
enum conv_algorithm { CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD_4, CONV_WINOGRAD, CONV_WINOGRAD_8, CONV_ALGORITHMS };

struct conv_spec {
    struct conv_shape shape;
    enum conv_direction direction;
    enum conv_algorithm algorithm;
    double error_budget; /* --conv-error: times the direct algorithm's root mean square error; 0: conv_error_budget's
                            default */
    bool prepared;       /* w is as conv_pack_bind left it for conv_form_wanted; algorithm is not AUTO */
    graphi_dtype multiplicands; /* BF16: may be rounded to bfloat16 (Winograd's points: conv_winograd_pairs) */
    int threads, cores; /* most of a call, and of the machine; 0: not known. Size workspace and shares, no result */
    bool rounded_x,
        rounded_y; /* x, dy are bfloat16 already (their strides count such elements): where conv_rounds says so */
    struct epilogue_spec epilogue; /* forward and backward-data: over (n*oh*ow) x k (or (n*h*w) x c) */
    bool by_rows; /* its rows will be asked for (conv_pooled.c) */
    const struct pool_spec
        *pool; /* forward: what the kernel makes of y in place of y, which must have its shape; NULL: nothing */
};

/* Weights in the order in which a kernel reads them: panels, or Winograd's points. */
struct conv_form {
    enum conv_algorithm algorithm; /* not AUTO */
    enum conv_direction direction; /* FORWARD or BACKWARD_DATA */
    int64_t multiplicands; /* graphi_dtype of the form's elements; so wide for there to be no padding */
    int64_t kh, kw, c, k, groups;
};

/* NONE: the weights are read as they are. EACH_TIME: a form so large that it is not kept where one kernel alone reads
 * it; that kernel makes it. */
enum conv_form_keep { CONV_FORM_NONE, CONV_FORM_EACH_TIME, CONV_FORM_KEPT };

#endif
