/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry of sliding windows (window.h). Source: ONNX Conv, MaxPool: auto_pad, ceil_mode. Any thread. */
#include "value/window.h"

#include <string.h>

static graphi_status take(const struct op_call *call, const char *name, int count, int64_t otherwise, int64_t least,
                          int64_t *out)
{
    size_t given;
    const int64_t *list = op_ints(call, name, &given);
    if (list && given != (size_t)count)
        return op_fail(call, "found %zu %s, expected %d", given, name, count);
    for (int i = 0; i < count; i++) {
        out[i] = list ? list[i] : otherwise;
        if (out[i] < least || out[i] > (int64_t)1 << 31)
            return op_fail(call, "found %lld among %s, expected %lld and more", (long long)out[i], name,
                           (long long)least);
    }
    return GRAPHI_OK;
}

graphi_status window_attributes(const struct op_call *call, struct window *w)
{
    int64_t pads[2 * WINDOW_RANK];
    TRY(take(call, "strides", w->rank, 1, 1, w->stride));
    TRY(take(call, "dilations", w->rank, 1, 1, w->dilation));
    TRY(take(call, "pads", 2 * w->rank, 0, 0, pads));
    for (int i = 0; i < w->rank; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->rank + i];
    }
    return GRAPHI_OK;
}

graphi_status window_count(const struct op_call *call, struct window *w)
{
    w->ins = dims_count(w->rank, w->in, 8);
    w->outs = dims_count(w->rank, w->out, 8);
    w->taps = dims_count(w->rank, w->kernel, 8);
    if (w->ins < 0 || w->outs < 0 || w->taps <= 0)
        return op_fail(call, "found windows that do not fit, expected sizes of 1 to 2^40");
    return GRAPHI_OK;
}

static graphi_status find_out(const struct op_call *call, struct window *w, int i, const char *rule, bool up)
{
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, stride = w->stride[i];
    if (strncmp(rule, "SAME", 4) == 0) {
        w->out[i] = (w->in[i] + stride - 1) / stride;
        const int64_t all = (w->out[i] - 1) * stride + reach - w->in[i], pad = all > 0 ? all : 0;
        w->before[i] = strcmp(rule, "SAME_LOWER") == 0 ? pad - pad / 2 : pad / 2;
        w->after[i] = pad - w->before[i];
        return GRAPHI_OK;
    }
    if (strcmp(rule, "VALID") == 0)
        w->before[i] = w->after[i] = 0;
    const int64_t left = w->in[i] + w->before[i] + w->after[i] - reach;
    if (left < 0)
        return op_fail(call, "found a window of %lld over %lld elements with padding, expected no more",
                       (long long)reach, (long long)(left + reach));
    w->out[i] = (up ? (left + stride - 1) / stride : left / stride) + 1;
    if (up && (w->out[i] - 1) * stride >= w->in[i] + w->before[i])
        w->out[i]--; /* a window that would begin in the padding behind */
    return GRAPHI_OK;
}

graphi_status window_find(const struct op_call *call, const graphi_tensor *x, const int64_t *kernel, struct window *w)
{
    const char *rule = op_string(call, "auto_pad", "NOTSET");
    memset(w, 0, sizeof *w);
    w->rank = x->rank - 2;
    if (w->rank < 1)
        return op_fail(call, "found rank %d of %s, expected [N, C, ...] of 3 and more", x->rank, call->op->name);
    if (strcmp(rule, "NOTSET") && strcmp(rule, "VALID") && strcmp(rule, "SAME_UPPER") && strcmp(rule, "SAME_LOWER"))
        return op_fail(call, "found auto_pad \"%s\", expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", rule);
    TRY(window_attributes(call, w));
    for (int i = 0; i < w->rank; i++) {
        w->in[i] = x->dims[i + 2];
        w->kernel[i] = kernel[i];
        if (kernel[i] < 1 || kernel[i] > (int64_t)1 << 31)
            return op_fail(call, "found a window of size %lld, expected 1 and more", (long long)kernel[i]);
        TRY(find_out(call, w, i, rule, op_int(call, "ceil_mode", 0) != 0));
    }
    return window_count(call, w);
}

int64_t window_place(const struct window *w, const int64_t *out, const int64_t *tap)
{
    int64_t at = 0;
    for (int i = 0; i < w->rank; i++) {
        const int64_t k = out[i] * w->stride[i] - w->before[i] + tap[i] * w->dilation[i];
        if (k < 0 || k >= w->in[i])
            return -1;
        at = at * w->in[i] + k;
    }
    return at;
}

bool window_next(int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}
