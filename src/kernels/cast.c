/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of the conversions: a dense array is one line, a row-strided one is cut by rows. Any thread. */
#include "kernels/cast.h"

#include "base/status.h"
#include "kernels/cast_any.h"
#include "kernels/each_isa.h"
#include "kernels/shares.h"

typedef void (*cast_function)(graphi_dtype from, graphi_dtype to, const void *in, void *out, int64_t n);

#define DECLARE(isa) void cast_run_##isa(graphi_dtype, graphi_dtype, const void *, void *, int64_t);
EACH_ISA_BF16(DECLARE)

#define ENTRY(isa) cast_run_##isa,
static const cast_function functions[] = {EACH_ISA_BF16(ENTRY)};

struct cast_params {
    graphi_dtype from, to;
    int64_t rows, cols, ld_in, ld_out;
    int64_t bound; /* of dimension 0, 0: not bounded */
    int shares;
    cast_function run;
};

static graphi_status cast_share(const struct kernel_call *call, int phase, int share)
{
    const struct cast_params *p = call->params;
    int64_t rows = p->rows, begin, end;
    if (p->bound)
        rows = rows * call->in[0].rows / p->bound;
    const char *in = call->in[0].data;
    char *out = call->out[0].data;
    int64_t from = (int64_t)graphi_dtype_size(p->from), to = (int64_t)graphi_dtype_size(p->to);
    if (p->ld_in == p->cols && p->ld_out == p->cols) {
        split_range(rows * p->cols, p->shares, share, &begin, &end);
        p->run(p->from, p->to, in + begin * from, out + begin * to, end - begin);
        return GRAPHI_OK;
    }
    split_range(rows, p->shares, share, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        p->run(p->from, p->to, in + r * p->ld_in * from, out + r * p->ld_out * to, p->cols);
    return GRAPHI_OK;
}

graphi_status cast_bind(const struct array_desc *in, const struct array_desc *out, enum isa isa, struct kernel *kernel)
{
    const bool fast = in->dtype <= GRAPHI_U8 && out->dtype <= GRAPHI_U8; /* what networks use has loops of its own */
    struct cast_params p = {.from = in->dtype, .to = out->dtype, .run = fast ? functions[isa] : cast_any};
    int64_t rows, cols;
    if (!array_as_matrix(in, &p.rows, &p.cols, &p.ld_in) || !array_as_matrix(out, &rows, &cols, &p.ld_out))
        return fail(GRAPHI_UNSUPPORTED, "cast",
                    "found strides that are not row-strided, expected rows of contiguous elements");
    if (in->bounded && in->rank == 1) { /* the only dimension is bounded: lines of one element */
        p.rows = p.cols;
        p.cols = p.ld_in = p.ld_out = 1;
    }
    p.bound = in->bounded ? in->dims[0] : 0;
    double elements = (double)p.rows * (double)p.cols;
    double bytes = elements * (double)(graphi_dtype_size(in->dtype) + graphi_dtype_size(out->dtype));
    p.shares = shares_for(bytes, p.ld_in == p.cols && p.ld_out == p.cols ? SHARES_MAX : p.rows);
    struct kernel like = {.name = "cast", .run = cast_share, .shares = {p.shares}, .bytes = bytes, .flops = elements};
    return kernel_make(like, &p, sizeof p, kernel);
}
