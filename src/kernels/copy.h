/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that move elements without arithmetic: copies between strided layouts (transpose, concat, slice, broadcast),
 * padding, filling. Any element type; NaNs keep their bits. They have one form for all instruction sets, whose inner
 * loops are memcpy, but plain ones never go past the caches. */
#ifndef KERNELS_COPY_H
#define KERNELS_COPY_H

#include "kernels/kernel.h"

/* One region copied from an input to an output: both are walked with the same dims, each with its own strides (in
 * elements; a source stride of 0 repeats). When dimension 0 is bounded, dims[0] is the bound and `rows` the bound of
 * the input's dimension 0: a call with fewer rows copies dims[0] * actual / rows; inputs of bounded parts have the same
 * rows in a call. */
struct copy_part {
    int input, output;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK], from[GRAPHI_MAX_RANK], to[GRAPHI_MAX_RANK];
    int64_t from_offset, to_offset;
    int64_t rows; /* 0: not bounded */
};

struct copy_spec {
    const char *name; /* static: as the trace shows it */
    size_t element;   /* bytes: 1, 2, 4 or 8 */
    int parts;
    const struct copy_part *part; /* copied; parts must not overlap in the outputs */
    graphi_streaming streaming;   /* of transposed parts, and of parts that are joined or cut by rows of up to 16 KB */
};

graphi_status copy_bind(const struct copy_spec *spec, enum isa isa, struct kernel *kernel);

/* out[i] = in[i - before], `value` outside. Innermost dimensions contiguous, UNSUPPORTED otherwise. */
struct pad_spec {
    const char *name;
    const struct array_desc *in, *out; /* same dtype and rank; bounded: before[0] = 0, same dims[0] */
    int64_t before[GRAPHI_MAX_RANK];
    double value; /* converted to the dtype */
};

graphi_status pad_bind(const struct pad_spec *spec, struct kernel *kernel);

/* Every element of `out` (row-strided at most) becomes `value`; no input is read. */
graphi_status fill_bind(const struct array_desc *out, double value, struct kernel *kernel);

#endif
