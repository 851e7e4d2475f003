/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations: sums in doubles over what one mean is of. Source: ONNX BatchNormalization, InstanceNormalization,
 * LayerNormalization, GroupNormalization, RMSNormalization, LRN, LpNormalization, MeanVarianceNormalization. Any
 * thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

static void put(graphi_tensor *out, int64_t i, double number)
{
    element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

struct moments {
    double mean, variance;
};

/* Over n elements beside each other; the variance of all, not of a sample. */
static struct moments moments_of(const graphi_tensor *x, int64_t at, int64_t n)
{
    struct moments m = {0, 0};
    for (int64_t i = 0; i < n; i++)
        m.mean += value_double(x, at + i);
    m.mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = value_double(x, at + i) - m.mean;
        m.variance += d * d;
    }
    m.variance /= (double)n;
    return m;
}

static graphi_status check_channels(const struct op_call *call, int from, int to, int64_t channels)
{
    for (int i = from; i < to; i++) {
        TRY(op_tensor(call, i, 0));
        if (call->in[i]->count != channels)
            return op_fail(call, "found %lld elements as input %d, expected %lld", (long long)call->in[i]->count, i,
                           (long long)channels);
    }
    return GRAPHI_OK;
}

static graphi_status batch_statistics(struct op_call *call, const graphi_tensor *x, int64_t channels, int64_t each,
                                      double *mean, double *variance)
{
    for (int64_t c = 0; c < channels; c++) {
        mean[c] = variance[c] = 0;
        const double count = (double)(x->dims[0] * each);
        for (int64_t i = 0; i < x->dims[0] * each; i++)
            mean[c] += value_double(x, (i / each * channels + c) * each + i % each) / count;
        for (int64_t i = 0; i < x->dims[0] * each; i++) {
            const double d = value_double(x, (i / each * channels + c) * each + i % each) - mean[c];
            variance[c] += d * d / count;
        }
    }
    const double momentum = op_float(call, "momentum", 0.9f);
    for (int k = 1; k < 3; k++) {
        graphi_tensor *running;
        if (!op_wants(call, k))
            continue;
        TRY(op_new(call, k, call->in[k + 2]->type, 1, &channels, &running));
        for (int64_t c = 0; c < channels; c++)
            put(running, c,
                value_double(call->in[k + 2], c) * momentum + (k == 1 ? mean : variance)[c] * (1 - momentum));
    }
    return GRAPHI_OK;
}

static graphi_status run_batch(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    const double epsilon = op_float(call, "epsilon", 1e-5f);
    TRY(check_channels(call, 1, 5, channels));
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    double *room = mem_alloc((size_t)channels * 4 * sizeof *room);
    if (!room)
        return fail_memory(call->where, (size_t)channels * 32);
    double *mean = room + 2 * channels, *variance = room + 3 * channels;
    int64_t each = 1;
    for (int i = 2; i < x->rank; i++)
        each *= x->dims[i];
    graphi_status status = GRAPHI_OK;
    for (int64_t c = 0; c < channels; c++) {
        mean[c] = value_double(call->in[3], c);
        variance[c] = value_double(call->in[4], c);
    }
    if (op_int(call, "training_mode", 0))
        status = batch_statistics(call, x, channels, each, mean, variance);
    for (int64_t c = 0; c < channels; c++) {
        room[c] = value_double(call->in[1], c) / sqrt(variance[c] + epsilon);
        room[channels + c] = value_double(call->in[2], c) - mean[c] * room[c];
    }
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t c = i / each % channels;
        if (x->type == T_F32)
            ((float *)out->data)[i] = (float)(((const float *)x->data)[i] * room[c] + room[channels + c]);
        else
            put(out, i, value_double(x, i) * room[c] + room[channels + c]);
    }
    mem_free(room);
    return status;
}

static graphi_status run_instance(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    if (x->rank < 3)
        return op_fail(call, "found rank %d, expected [N, C, ...] of 3 and more", x->rank);
    const int64_t channels = x->dims[1], rows = x->dims[0] * channels, each = rows ? x->count / rows : 0;
    const double epsilon = op_float(call, "epsilon", 1e-5f);
    TRY(check_channels(call, 1, 3, channels));
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    for (int64_t r = 0; r < rows; r++) {
        const struct moments m = moments_of(x, r * each, each);
        const double by = value_double(call->in[1], r % channels) / sqrt(m.variance + epsilon);
        for (int64_t i = r * each; i < (r + 1) * each; i++)
            put(out, i, (value_double(x, i) - m.mean) * by + value_double(call->in[2], r % channels));
    }
    return GRAPHI_OK;
}

/* Scales of a channel (opset 21), or of a group (18 to 20), which have as many elements as there are groups. */
static graphi_status run_group(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t groups = op_int(call, "num_groups", 0);
    if (x->rank < 2 || groups < 1 || x->dims[1] % groups != 0)
        return op_fail(call, "found rank %d and %lld groups, expected groups that divide the channels", x->rank,
                       (long long)groups);
    const int64_t channels = x->dims[1], rows = x->dims[0] * groups, each = rows ? x->count / rows : 0;
    const int64_t per = call->in[1]->count == groups && groups != channels ? channels / groups : 1;
    const int64_t image = x->dims[0] && channels ? x->count / x->dims[0] / channels : 1;
    const double epsilon = op_float(call, "epsilon", 1e-5f);
    TRY(check_channels(call, 1, 3, channels / per));
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    for (int64_t r = 0; r < rows; r++) {
        const struct moments m = moments_of(x, r * each, each);
        for (int64_t i = r * each; i < (r + 1) * each; i++) {
            const int64_t c = i / image % channels / per;
            put(out, i,
                (value_double(x, i) - m.mean) / sqrt(m.variance + epsilon) * value_double(call->in[1], c) +
                    value_double(call->in[2], c));
        }
    }
    return GRAPHI_OK;
}

/* Element i of a row of a tensor that broadcasts to the row's place in x. */
static double scale_at(const graphi_tensor *scale, const graphi_tensor *x, int64_t element)
{
    int64_t at = 0, stride = 1;
    for (int i = x->rank - 1, k = scale->rank - 1; i >= 0; i--, k--) {
        const int64_t index = element % x->dims[i];
        element /= x->dims[i];
        if (k < 0)
            break;
        at += scale->dims[k] == 1 ? 0 : index * stride;
        stride *= scale->dims[k];
    }
    return value_double(scale, at);
}

static graphi_status check_scale(const struct op_call *call, const graphi_tensor *x, int i)
{
    struct value_text a, b;
    int rank;
    int64_t dims[VALUE_RANK];
    if (!op_in(call, i))
        return GRAPHI_OK;
    TRY(op_tensor(call, i, 0));
    TRY(op_broadcast(call, (graphi_tensor *const[]){(graphi_tensor *)x, call->in[i]}, 2, &rank, dims));
    if (rank != x->rank || memcmp(dims, x->dims, (size_t)rank * sizeof *dims) != 0)
        return op_fail(call, "found %s for %s, expected one that broadcasts to it", value_describe(call->in[i], &a),
                       value_describe(x, &b));
    return GRAPHI_OK;
}

/* LayerNormalization; variant 1: RMSNormalization, which takes no mean off. */
static graphi_status run_layer(struct op_call *call)
{
    graphi_tensor *out, *more[2] = {NULL, NULL};
    int64_t dims[VALUE_RANK], each = 1;
    int axis;
    const bool rms = call->op->variant == 1;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0], *bias = rms ? NULL : op_in(call, 2);
    TRY(op_axis(call, op_int(call, "axis", -1), x->rank, &axis));
    TRY(check_scale(call, x, 1));
    TRY(check_scale(call, x, 2));
    const double epsilon = op_float(call, "epsilon", 1e-5f);
    const graphi_element kept = (graphi_element)op_int(call, "stash_type", T_F32);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i < axis ? x->dims[i] : 1;
        each *= i < axis ? 1 : x->dims[i];
    }
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    for (int k = 0; k < 2; k++)
        if (!rms && op_wants(call, k + 1))
            TRY(op_new(call, k + 1, x->type == T_F64 ? T_F64 : kept, x->rank, dims, &more[k]));
    for (int64_t r = 0; each && r < x->count / each; r++) {
        struct moments m = moments_of(x, r * each, each);
        if (rms) {
            m.variance += m.mean * m.mean;
            m.mean = 0;
        }
        const double by = 1 / sqrt(m.variance + epsilon);
        for (int64_t i = r * each; i < (r + 1) * each; i++)
            put(out, i,
                (value_double(x, i) - m.mean) * by * (op_in(call, 1) ? scale_at(call->in[1], x, i) : 1) +
                    (bias ? scale_at(bias, x, i) : 0));
        if (more[0])
            put(more[0], r, m.mean);
        if (more[1])
            put(more[1], r, by);
    }
    return GRAPHI_OK;
}

static graphi_status run_lrn(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t size = op_int(call, "size", 1);
    const double alpha = op_float(call, "alpha", 1e-4f), beta = op_float(call, "beta", 0.75f),
                 bias = op_float(call, "bias", 1);
    if (x->rank < 2 || size < 1)
        return op_fail(call, "found rank %d and size %lld, expected [N, C, ...] and 1 and more", x->rank,
                       (long long)size);
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    int64_t each = 1;
    for (int i = 2; i < x->rank; i++)
        each *= x->dims[i];
    const int64_t channels = x->dims[1];
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t c = i / each % channels, low = c - (size - 1) / 2, high = c + size / 2;
        double sum = 0;
        for (int64_t k = low < 0 ? 0 : low; k <= high && k < channels; k++) {
            const double number = value_double(x, i + (k - c) * each);
            sum += number * number;
        }
        put(out, i, value_double(x, i) / pow(bias + alpha / (double)size * sum, beta));
    }
    return GRAPHI_OK;
}

static graphi_status run_lp(struct op_call *call)
{
    graphi_tensor *out;
    int64_t strides[VALUE_RANK];
    int axis;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t p = op_int(call, "p", 2);
    TRY(op_axis(call, op_int(call, "axis", -1), x->rank, &axis));
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    dims_strides(x->rank, x->dims, strides);
    const int64_t stride = strides[axis], n = x->dims[axis];
    for (int64_t at = 0; at < x->count; at++) {
        if (at / stride % n != 0)
            continue;
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += p == 1 ? fabs(value_double(x, at + k * stride)) : pow(value_double(x, at + k * stride), 2);
        const double norm = p == 1 ? sum : sqrt(sum);
        for (int64_t k = 0; k < n; k++)
            put(out, at + k * stride, norm == 0 ? 0 : value_double(x, at + k * stride) / norm);
    }
    return GRAPHI_OK;
}

/* Which mean element i takes part in: its index without the reduced dimensions. */
static int64_t kept_index(const graphi_tensor *x, const bool *reduced, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int k = x->rank - 1; k >= 0; k--) {
        at += reduced[k] ? 0 : i % x->dims[k] * stride;
        stride *= reduced[k] ? 1 : x->dims[k];
        i /= x->dims[k];
    }
    return at;
}

static void mean_variance(const graphi_tensor *x, graphi_tensor *out, const bool *reduced, int64_t kept, double *room)
{
    const double each = (double)(x->count / kept);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < x->count; i++) {
            const int64_t at = kept_index(x, reduced, i);
            const double number = value_double(x, i), off = number - room[at];
            room[pass * kept + at] += pass ? off * off / each : number / each;
        }
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t at = kept_index(x, reduced, i);
        put(out, i, (value_double(x, i) - room[at]) / (sqrt(room[kept + at]) + 1e-9));
    }
}

static graphi_status run_mean_variance(struct op_call *call)
{
    static const int64_t usual[] = {0, 2, 3};
    graphi_tensor *out;
    bool reduced[VALUE_RANK] = {false};
    size_t count;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t *axes = op_ints(call, "axes", &count);
    int64_t kept = 1;
    for (size_t i = 0; i < (axes ? count : 3); i++) {
        int axis;
        TRY(op_axis(call, (axes ? axes : usual)[i], x->rank, &axis));
        reduced[axis] = true;
    }
    for (int k = 0; k < x->rank; k++)
        kept *= reduced[k] ? 1 : x->dims[k];
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    if (!x->count)
        return GRAPHI_OK;
    double *room = mem_zalloc_array((size_t)kept * 2, sizeof *room);
    if (!room)
        return fail_memory(call->where, (size_t)kept * 2 * sizeof *room);
    mean_variance(x, out, reduced, kept, room);
    mem_free(room);
    return GRAPHI_OK;
}

const struct host_op host_ops_normalize[] = {
    {"BatchNormalization", 5, 5, 3, "epsilon momentum training_mode", run_batch, 0},
    {"InstanceNormalization", 3, 3, 1, "epsilon", run_instance, 0},
    {"GroupNormalization", 3, 3, 1, "epsilon num_groups stash_type", run_group, 0},
    {"LayerNormalization", 2, 3, 3, "axis epsilon stash_type", run_layer, 0},
    {"RMSNormalization", 2, 2, 1, "axis epsilon stash_type", run_layer, 1},
    {"LRN", 1, 1, 1, "alpha beta bias size", run_lrn, 0},
    {"MeanVarianceNormalization", 1, 1, 1, "axes", run_mean_variance, 0},
    {"LpNormalization", 1, 1, 1, "axis p", run_lp, 0},
    {0},
};
