/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of lines and of frames, and the matrix to the mel scale, in doubles. A length is split by its
 * smallest factor again and again; what is prime is summed as it stands. Source: ONNX DFT, STFT, MelWeightMatrix. Any
 * thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>

static void put(graphi_tensor *out, int64_t i, double number)
{
    element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

struct pair {
    double re, im;
};

struct transform {
    int64_t n;
    struct pair *turns, *line, *result, *room; /* n each, in one piece */
};

static graphi_status transform_new(const struct op_call *call, int64_t n, bool inverse, struct transform *t)
{
    if (n < 1 || n > (int64_t)1 << 26)
        return op_fail(call, "found a length of %lld, expected 1 to 2^26", (long long)n);
    *t = (struct transform){.n = n, .turns = mem_alloc((size_t)n * 4 * sizeof *t->turns)};
    if (!t->turns)
        return fail_memory(call->where, (size_t)n * 4 * sizeof *t->turns);
    t->line = t->turns + n;
    t->result = t->line + n;
    t->room = t->result + n;
    for (int64_t k = 0; k < n; k++) {
        const double angle = (inverse ? 2 : -2) * 3.14159265358979323846 * (double)k / (double)n;
        t->turns[k] = (struct pair){cos(angle), sin(angle)};
    }
    return GRAPHI_OK;
}

static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* Joins p transforms of m that lie one after the other. */
static void join(const struct transform *t, int64_t p, int64_t m, struct pair *out)
{
    const int64_t n = p * m, step = t->n / n;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++)
            t->room[r] = out[r * m + k];
        for (int64_t q = 0; q < p; q++) {
            struct pair sum = {0, 0};
            for (int64_t r = 0; r < p; r++) {
                const struct pair w = t->turns[r * (k + q * m) % n * step], x = t->room[r];
                sum.re += w.re * x.re - w.im * x.im;
                sum.im += w.re * x.im + w.im * x.re;
            }
            out[k + q * m] = sum;
        }
    }
}

static void split(const struct transform *t, const struct pair *in, int64_t stride, int64_t n, struct pair *out)
{
    if (n == 1) {
        *out = *in;
        return;
    }
    const int64_t p = smallest_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++)
        split(t, in + r * stride, stride * p, m, out + r * m);
    join(t, p, m, out);
}

/* From t->line to t->result. */
static void transform_run(struct transform *t)
{
    split(t, t->line, 1, t->n, t->result);
}

/* An element of real or complex numbers, which `parts` says. */
static struct pair number_at(const graphi_tensor *x, int64_t i, int64_t parts)
{
    return (struct pair){value_double(x, i * parts), parts == 2 ? value_double(x, i * parts + 1) : 0};
}

static graphi_status scalar(const struct op_call *call, int i, int64_t otherwise, int64_t *out)
{
    int64_t numbers[VALUE_RANK];
    int count;
    TRY(op_numbers(call, i, numbers, &count));
    if (count >= 0 && count != 1)
        return op_fail(call, "found %d numbers as input %d of %s, expected 1", count, i, call->op->name);
    *out = count < 0 ? otherwise : numbers[0];
    return GRAPHI_OK;
}

/* A line of the input; `mirrored`: the half of a real signal's spectrum that is not there. */
static void load_line(struct transform *t, const graphi_tensor *x, int64_t from, int64_t stride, int64_t count,
                      bool mirrored)
{
    const int64_t parts = x->dims[x->rank - 1], half = mirrored ? t->n / 2 + 1 : t->n;
    for (int64_t k = 0; k < t->n; k++) {
        const int64_t at = k < half ? k : t->n - k;
        t->line[k] = at < count ? number_at(x, from + at * stride, parts) : (struct pair){0, 0};
        t->line[k].im *= k < half ? 1 : -1;
    }
}

static graphi_status run_dft(struct op_call *call)
{
    struct transform t;
    struct value_text text;
    graphi_tensor *out;
    int64_t dims[VALUE_RANK], where, length, inner = 1, outer = 1;
    int axis;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t parts = x->rank > 1 ? x->dims[x->rank - 1] : 0;
    if (parts < 1 || parts > 2)
        return op_fail(call, "found %s for DFT, expected [..., 1] or [..., 2]", value_describe(x, &text));
    TRY(scalar(call, 2, -2, &where));
    TRY(op_axis(call, where, x->rank, &axis));
    const bool inverse = op_int(call, "inverse", 0) != 0, half = op_int(call, "onesided", 0) != 0;
    const bool real = inverse && half; /* the result: of half a spectrum */
    TRY(scalar(call, 1, real ? 2 * (x->dims[axis] - 1) : x->dims[axis], &length));
    if (axis == x->rank - 1 || (half && parts != (inverse ? 2 : 1)))
        return op_fail(call,
                       "found axis %d, inverse %d, one side %d of %s, expected no axis of parts, and one side of "
                       "real signals or back to them",
                       axis, inverse, half, value_describe(x, &text));
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    TRY(transform_new(call, length, inverse, &t));
    dims[axis] = half && !real ? length / 2 + 1 : length;
    dims[x->rank - 1] = real ? 1 : 2;
    for (int i = 0; i < x->rank - 1; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : x->dims[i];
    graphi_status status = op_new(call, 0, x->type, x->rank, dims, &out);
    for (int64_t line = 0; status == GRAPHI_OK && line < outer * inner; line++) {
        const int64_t from = line / inner * x->dims[axis] * inner + line % inner;
        const int64_t to = line / inner * dims[axis] * inner + line % inner;
        load_line(&t, x, from, inner, x->dims[axis], real);
        transform_run(&t);
        for (int64_t k = 0; k < dims[axis]; k++) {
            const double by = inverse ? (double)length : 1;
            put(out, (to + k * inner) * dims[x->rank - 1], t.result[k].re / by);
            if (!real)
                put(out, (to + k * inner) * 2 + 1, t.result[k].im / by);
        }
    }
    mem_free(t.turns);
    return status;
}

static graphi_status run_stft(struct op_call *call)
{
    struct transform t;
    struct value_text text;
    graphi_tensor *out;
    int64_t step, length;
    TRY(op_tensor(call, 0, 0));
    TRY(scalar(call, 1, 0, &step));
    const graphi_tensor *x = call->in[0], *window = op_in(call, 2);
    if (window)
        TRY(op_tensor(call, 2, x->type));
    const int64_t parts = x->rank == 3 ? x->dims[2] : 1, samples = x->rank > 1 ? x->dims[1] : 0;
    TRY(scalar(call, 3, window ? window->count : samples, &length));
    const bool half = op_int(call, "onesided", 1) != 0;
    if (x->rank < 2 || x->rank > 3 || parts < 1 || parts > 2 || (half && parts == 2))
        return op_fail(call, "found %s for STFT, expected [N, samples] or [N, samples, 1], or two parts and both sides",
                       value_describe(x, &text));
    if (step < 1 || length < 1 || length > samples || (window && window->count != length))
        return op_fail(call,
                       "found steps of %lld, frames of %lld, a window of %lld for %lld samples, expected a "
                       "window as long as a frame, which fits",
                       (long long)step, (long long)length, (long long)(window ? window->count : length),
                       (long long)samples);
    const int64_t frames = 1 + (samples - length) / step, bins = half ? length / 2 + 1 : length;
    TRY(transform_new(call, length, false, &t));
    graphi_status status = op_new(call, 0, x->type, 4, (int64_t[]){x->dims[0], frames, bins, 2}, &out);
    for (int64_t f = 0; status == GRAPHI_OK && f < x->dims[0] * frames; f++) {
        const int64_t from = f / frames * samples + f % frames * step;
        for (int64_t k = 0; k < length; k++) {
            const struct pair number = number_at(x, from + k, parts);
            const double by = window ? value_double(window, k) : 1;
            t.line[k] = (struct pair){number.re * by, number.im * by};
        }
        transform_run(&t);
        for (int64_t k = 0; k < bins; k++) {
            put(out, (f * bins + k) * 2, t.result[k].re);
            put(out, (f * bins + k) * 2 + 1, t.result[k].im);
        }
    }
    mem_free(t.turns);
    return status;
}

/* The bin of the spectrum in which edge i of the bands lies. */
static double band_edge(int64_t i, int64_t bands, const double *hertz, double length, double rate)
{
    const double low = 2595 * log10(1 + hertz[0] / 700), high = 2595 * log10(1 + hertz[1] / 700);
    const double mel = (double)i * (high - low) / (double)(bands + 2) + low;
    return floor((length + 1) * 700 * (pow(10, mel / 2595) - 1) / rate);
}

static graphi_status run_mel(struct op_call *call)
{
    graphi_tensor *out;
    int64_t bands, length, rate;
    double hertz[2];
    TRY(scalar(call, 0, 0, &bands));
    TRY(scalar(call, 1, 0, &length));
    TRY(scalar(call, 2, 0, &rate));
    for (int i = 0; i < 2; i++) {
        TRY(op_tensor(call, 3 + i, 0));
        if (call->in[3 + i]->count != 1)
            return op_fail(call, "found %lld edges, expected 1", (long long)call->in[3 + i]->count);
        hertz[i] = value_double(call->in[3 + i], 0);
    }
    if (bands < 1 || length < 1 || rate < 1 || !(hertz[0] >= 0 && hertz[1] >= hertz[0] && hertz[1] <= (double)rate))
        return op_fail(call, "found %lld bands, length %lld, rate %lld, %g to %g Hz, expected positive ones that rise",
                       (long long)bands, (long long)length, (long long)rate, hertz[0], hertz[1]);
    const int64_t bins = length / 2 + 1;
    TRY(op_new(call, 0, (graphi_element)op_int(call, "output_datatype", T_F32), 2, (int64_t[]){bins, bands}, &out));
    for (int64_t band = 0; band < bands; band++) {
        double edge[3];
        for (int k = 0; k < 3; k++)
            edge[k] = band_edge(band + k, bands, hertz, (double)length, (double)rate);
        if (edge[1] >= (double)bins || edge[2] > (double)bins)
            return op_fail(call, "found a band up to bin %g, expected at most %lld: half the sampling rate", edge[2],
                           (long long)bins);
        for (int64_t i = 0; i < bins; i++) {
            const double at = (double)i, rise = edge[1] - edge[0], fall = edge[2] - edge[1];
            double weight = at == edge[1] && rise == 0 ? 1 : 0;
            if (at >= edge[0] && at <= edge[1] && rise > 0)
                weight = (at - edge[0]) / rise;
            if (at >= edge[1] && at < edge[2])
                weight = (edge[2] - at) / fall;
            put(out, i * bands + band, weight);
        }
    }
    return GRAPHI_OK;
}

const struct host_op host_ops_signal[] = {
    {"DFT", 1, 3, 1, "inverse onesided", run_dft, 0},
    {"STFT", 2, 4, 1, "onesided", run_stft, 0},
    {"MelWeightMatrix", 5, 5, 1, "output_datatype", run_mel, 0},
    {0},
};
