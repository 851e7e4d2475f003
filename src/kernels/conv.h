/* SPDX-License-Identifier: Apache-2.0 */
/* 2-D convolutions, channels-last: x[N,H,W,C], w[KH,KW,C/groups,K], y[N,OH,OW,K]. Cross-correlation, as ONNX Conv. */
#ifndef KERNELS_CONV_H
#define KERNELS_CONV_H

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

/* Computes oh, ow; with a message INVALID when the window does not fit or channels do not divide, UNSUPPORTED when it
 * has more than 64 rows or columns. */
graphi_status conv_shape_finish(struct conv_shape *shape, const char *where);

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
    graphi_dtype multiplicands; /* BF16: may be rounded to bfloat16 (Winograd's points: conv_internal.h) */
    int threads, cores; /* most of a call, and of the machine; 0: not known. Size workspace and shares, no result */
    bool rounded_x,
        rounded_y; /* x, dy are bfloat16 already (their strides count such elements): where conv_rounds says so */
    struct epilogue_spec epilogue; /* forward and backward-data: over (n*oh*ow) x k (or (n*h*w) x c) */
    bool by_rows; /* its rows will be asked for (conv_pooled.c) */
    const struct pool_spec
        *pool; /* forward: what the kernel makes of y in place of y, which must have its shape; NULL: nothing */
};

/* Inputs: FORWARD x, w; BACKWARD_DATA dy, w; BACKWARD_WEIGHTS x, dy; then epilogue inputs. Output: y, dx or dw (dense);
 * with a pool its result, and the places where they are wanted, the same bits as of the two kernels one after the
 * other. */
graphi_status conv_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel);

/* What the choice keeps to: as asked for, or (0) the default, 4 (pairs of bfloat16, which alone have a bound there:
 * 8). */
double conv_error_budget(double asked, graphi_dtype multiplicands);

/* What conv_bind takes for AUTO. */
enum conv_algorithm conv_choose(const struct conv_spec *spec, enum isa isa);
/* Can the algorithm compute it at all? */
bool conv_possible(const struct conv_spec *spec, enum conv_algorithm algorithm);

/* Does it pay that the kernel of spec pools its result itself? It keeps some rows of y in the level-2 cache instead of
 * y in memory, where they are enough for its tiles to be full and its weights are read often enough from each cache. */
bool conv_pools(const struct conv_spec *spec, enum isa isa);

/* Does the kernel of spec round its images as they are, all of x (forward), of dy (backward-data) or of both
 * (backward-weights)? It then takes them rounded as well, and gives the same bits. */
bool conv_rounds(const struct conv_spec *spec, enum isa isa);

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

/* The form that the kernel of spec reads (spec->algorithm, or the chosen one). */
enum conv_form_keep conv_form_wanted(const struct conv_spec *spec, enum isa isa, struct conv_form *form);
int64_t conv_form_count(const struct conv_form *form); /* elements; 0: no such form */
/* One input, w[KH,KW,C/groups,K] dense; output: conv_form_count elements. */
graphi_status conv_pack_bind(const struct conv_form *form, enum isa isa, struct kernel *kernel);

#endif
