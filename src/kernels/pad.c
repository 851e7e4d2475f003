/* SPDX-License-Identifier: Apache-2.0 */
/* Padding and filling: each line of the output is written once, its middle copied and the rest filled, so the gradient
 * of a slice costs one pass over its output. Shares take ranges of lines (pad) or of elements (fill). Any thread. */
#include "kernels/copy.h"

#include "base/element.h"
#include "base/status.h"
#include "kernels/shares.h"

#include <string.h>

struct pad_params {
    size_t element;
    uint64_t bits; /* of the value, in the low bytes */
    int rank, shares;
    int64_t in[GRAPHI_MAX_RANK], out[GRAPHI_MAX_RANK], before[GRAPHI_MAX_RANK];
    int64_t from[GRAPHI_MAX_RANK], to[GRAPHI_MAX_RANK];
    int64_t rows; /* bound of dimension 0, 0: not bounded */
};

static void fill_line(char *to, int64_t n, size_t element, uint64_t bits)
{
    if (n <= 0)
        return;
    if (bits == 0) {
        memset(to, 0, (size_t)n * element);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * element, &bits, element); /* little-endian: the low bytes */
}

/* One output line; `index` are its outer indices. */
static void pad_line(const struct pad_params *p, const int64_t *index, char *to, const char *from)
{
    int last = p->rank - 1;
    bool inside = p->in[last] > 0;
    int64_t t = 0, f = 0;
    for (int i = 0; i < last; i++) {
        int64_t at = index[i] - p->before[i];
        inside = inside && at >= 0 && at < p->in[i];
        t += index[i] * p->to[i];
        f += at * p->from[i];
    }
    to += t * (int64_t)p->element;
    if (!inside) {
        fill_line(to, p->out[last], p->element, p->bits);
        return;
    }
    int64_t e = (int64_t)p->element, after = p->before[last] + p->in[last];
    fill_line(to, p->before[last], p->element, p->bits);
    memcpy(to + p->before[last] * e, from + f * e, (size_t)(p->in[last] * e));
    fill_line(to + after * e, p->out[last] - after, p->element, p->bits);
}

static graphi_status pad_run(const struct kernel_call *call, int phase, int share)
{
    struct pad_params p = *(const struct pad_params *)call->params;
    if (p.rows) {
        p.out[0] = p.out[0] * call->in[0].rows / p.rows;
        p.in[0] = p.in[0] * call->in[0].rows / p.rows;
    }
    int64_t lines = 1, begin, end, index[GRAPHI_MAX_RANK];
    for (int i = 0; i < p.rank - 1; i++)
        lines *= p.out[i];
    split_range(lines, p.shares, share, &begin, &end);
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line;
        for (int i = p.rank - 2; i >= 0; i--) {
            index[i] = rest % p.out[i];
            rest /= p.out[i];
        }
        pad_line(&p, index, call->out[0].data, call->in[0].data);
    }
    return GRAPHI_OK;
}

/* Merges dimension i into the one before when nothing is padded in it and both layouts are contiguous there. */
static void pad_simplify(struct pad_params *p)
{
    for (int i = p->rank - 1; i > (p->rows ? 1 : 0); i--) {
        if (p->before[i] || p->in[i] != p->out[i] || p->from[i - 1] != p->in[i] * p->from[i] ||
            p->to[i - 1] != p->out[i] * p->to[i])
            continue;
        p->before[i - 1] *= p->in[i];
        p->in[i - 1] *= p->in[i];
        p->out[i - 1] *= p->out[i];
        p->from[i - 1] = p->from[i];
        p->to[i - 1] = p->to[i];
        for (int j = i; j + 1 < p->rank; j++) {
            p->in[j] = p->in[j + 1];
            p->out[j] = p->out[j + 1];
            p->before[j] = p->before[j + 1];
            p->from[j] = p->from[j + 1];
            p->to[j] = p->to[j + 1];
        }
        p->rank--;
    }
}

graphi_status pad_bind(const struct pad_spec *spec, struct kernel *kernel)
{
    const struct array_desc *in = spec->in, *out = spec->out;
    struct pad_params p = {.element = graphi_dtype_size(out->dtype), .bits = value_bits(out->dtype, spec->value)};
    int lead = out->bounded && out->rank == 1 ? 1 : out->rank == 0; /* a bounded dimension stays outside the lines */
    p.rank = out->rank + lead;
    for (int i = 0; i < out->rank; i++) {
        p.in[i] = in->dims[i];
        p.out[i] = out->dims[i];
        p.before[i] = spec->before[i];
        p.from[i] = in->strides[i];
        p.to[i] = out->strides[i];
    }
    if (lead)
        p.in[p.rank - 1] = p.out[p.rank - 1] = p.from[p.rank - 1] = p.to[p.rank - 1] = 1;
    int last = p.rank - 1;
    if ((p.in[last] > 1 && p.from[last] != 1) || (p.out[last] > 1 && p.to[last] != 1))
        return fail(GRAPHI_UNSUPPORTED, spec->name,
                    "found an innermost dimension that is not contiguous, expected stride 1");
    p.from[last] = p.to[last] = 1;
    p.rows = in->bounded ? in->dims[0] : 0;
    pad_simplify(&p);
    int64_t lines = 1;
    for (int i = 0; i < p.rank - 1; i++)
        lines *= p.out[i];
    double bytes = (double)p.element * (double)(array_count(in) + array_count(out));
    p.shares = shares_for(bytes, lines);
    return kernel_make((struct kernel){.name = spec->name, .run = pad_run, .shares = {p.shares}, .bytes = bytes}, &p,
                       sizeof p, kernel);
}

struct fill_params {
    size_t element;
    uint64_t bits;
    int64_t rows, cols, ld; /* rows of the matrix */
    int64_t bound;          /* of dimension 0, 0: not bounded */
    int shares;
};

static graphi_status fill_run(const struct kernel_call *call, int phase, int share)
{
    const struct fill_params *p = call->params;
    int64_t rows = p->rows, cols = p->cols, begin, end;
    if (p->bound)
        rows = rows * call->out[0].rows / p->bound;
    char *out = call->out[0].data;
    if (p->ld == cols) {
        split_range(rows * cols, p->shares, share, &begin, &end);
        fill_line(out + begin * (int64_t)p->element, end - begin, p->element, p->bits);
        return GRAPHI_OK;
    }
    split_range(rows, p->shares, share, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        fill_line(out + r * p->ld * (int64_t)p->element, cols, p->element, p->bits);
    return GRAPHI_OK;
}

graphi_status fill_bind(const struct array_desc *out, double value, struct kernel *kernel)
{
    struct fill_params p = {.element = graphi_dtype_size(out->dtype), .bits = value_bits(out->dtype, value)};
    if (!array_as_matrix(out, &p.rows, &p.cols, &p.ld))
        return fail(GRAPHI_UNSUPPORTED, "fill",
                    "found an output that is not row-strided, expected rows of contiguous elements");
    if (out->bounded && out->rank == 1) { /* the only dimension is bounded: lines of one element */
        p.rows = p.cols;
        p.cols = p.ld = 1;
    }
    p.bound = out->bounded ? out->dims[0] : 0;
    double bytes = (double)p.element * (double)p.rows * (double)p.cols;
    p.shares = shares_for(bytes, p.ld == p.cols ? SHARES_MAX : p.rows);
    return kernel_make((struct kernel){.name = "fill", .run = fill_run, .shares = {p.shares}, .bytes = bytes}, &p,
                       sizeof p, kernel);
}
