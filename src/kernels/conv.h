/* SPDX-License-Identifier: Apache-2.0 */
/* 2-D convolutions, channels-last: x[N,H,W,C], w[KH,KW,C/groups,K], y[N,OH,OW,K]. Cross-correlation, as ONNX Conv. */
#ifndef KERNELS_CONV_H
#define KERNELS_CONV_H

#include "kernels/kernel.h"
#include "kernels/program.h"

struct conv_shape {
    int64_t n, h, w, c, k, kh, kw;
    int64_t stride_h, stride_w, dilation_h, dilation_w, groups;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    int64_t oh, ow; /* filled by conv_shape_finish */
    int64_t ldx, ldy; /* pixel strides of x and y (>= c, >= k): parts of a concatenation are accepted */
};

/* Computes oh, ow; INVALID with a message when the window does not fit or channels do not divide. */
graphi_status conv_shape_finish(struct conv_shape *shape, const char *where);

enum conv_direction { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_WEIGHTS };
enum conv_algorithm { CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD };

struct conv_spec {
    struct conv_shape shape;
    enum conv_direction direction;
    enum conv_algorithm algorithm;
    double error_budget; /* --conv-error: times the direct algorithm's error; 0: the default, 4 */
    graphi_dtype multiplicands;
    /* Forward and backward-data: as in gemm_spec, over (n*oh*ow) x k (or (n*h*w) x c). */
    const struct program *epilogue;
    const enum program_broadcast *epilogue_broadcast;
    const int64_t *epilogue_ld;
    const int64_t *output_ld;
};

/* Inputs: FORWARD x, w; BACKWARD_DATA dy, w; BACKWARD_WEIGHTS x, dy; then epilogue inputs. Output: y, dx or dw (dense). */
graphi_status conv_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);

#endif
