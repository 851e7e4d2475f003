/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of convolutions: an algorithm is chosen (conv_choice.c), and the first kernel of the list that takes it
 * for the shape is bound. Every other question about a convolution is one about its kernel. Plan time only. */
#include "kernels/conv.h"

#include "base/status.h"
#include "kernels/conv_choice.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_pooled.h"
#include "kernels/conv_shape.h"

/* Special shapes before general ones; together they take everything. */
static const struct conv_kernel *const kernels[] = {
    &conv_depthwise, &conv_few,    &conv_weights_flat,     &conv_weights_pairs,
    &conv_weights,   &conv_gather, &conv_winograd_weights, &conv_winograd,
};

static const struct conv_kernel *kernel_of(const struct conv_spec *spec, enum isa isa)
{
    size_t k = 0;
    while (!kernels[k]->takes(spec, isa))
        k++;
    return kernels[k];
}

static struct conv_spec decided(const struct conv_spec *spec, enum isa isa)
{
    struct conv_spec out = *spec;
    out.algorithm = spec->algorithm == CONV_AUTO ? conv_choose(spec, isa) : spec->algorithm;
    return out;
}

bool conv_rounds(const struct conv_spec *spec, enum isa isa)
{
    const struct conv_shape *s = &spec->shape;
    const struct conv_spec whole = decided(spec, isa);
    int64_t source_c = spec->direction == CONV_BACKWARD_DATA ? s->k : s->c;
    return spec->multiplicands == GRAPHI_BF16 && kernel_of(&whole, isa)->rounds &&
           (spec->direction == CONV_BACKWARD_WEIGHTS ||
            source_c / s->groups % 2 == 0); /* else pairs would reach into the next pixel */
}

enum conv_form_keep conv_form_wanted(const struct conv_spec *spec, enum isa isa, struct conv_form *form)
{
    const struct conv_spec whole = decided(spec, isa);
    return kernel_of(&whole, isa)->reads_forms ? conv_form_of(&whole, isa, form) : CONV_FORM_NONE;
}

bool conv_pools(const struct conv_spec *spec, enum isa isa)
{
    struct conv_spec finished = *spec;
    if (conv_shape_finish(&finished.shape, "conv"))
        return false;
    finished = decided(&finished, isa);
    return conv_pooled_pays(&finished, isa, kernel_of(&finished, isa));
}

graphi_status conv_bind(const struct conv_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct conv_spec finished = *spec;
    TRY(conv_shape_finish(&finished.shape, "conv"));
    if (spec->multiplicands != GRAPHI_F32 && spec->multiplicands != GRAPHI_BF16)
        return fail(GRAPHI_UNSUPPORTED, "conv", "found multiplicands %s, expected float32 or bfloat16",
                    graphi_dtype_name(spec->multiplicands));
    if (spec->algorithm != CONV_AUTO && !conv_possible(&finished, spec->algorithm))
        return fail(GRAPHI_UNSUPPORTED, "conv",
                    "found this Winograd algorithm for this shape, expected auto or direct");
    if (spec->prepared && (spec->algorithm == CONV_AUTO || spec->direction == CONV_BACKWARD_WEIGHTS))
        return fail(GRAPHI_INVALID, "conv", "found prepared weights, expected an algorithm that reads them");
    int64_t source_ld = spec->direction == CONV_BACKWARD_DATA ? finished.shape.ldy : finished.shape.ldx;
    if ((spec->rounded_x || spec->rounded_y) &&
        (!conv_rounds(&finished, isa) || (spec->direction != CONV_BACKWARD_WEIGHTS && source_ld % 2)))
        return fail(GRAPHI_UNSUPPORTED, "conv",
                    "found images of bfloat16, expected float32 for this shape and algorithm");
    if (spec->direction == CONV_BACKWARD_WEIGHTS && spec->epilogue.program)
        return fail(GRAPHI_UNSUPPORTED, "conv", "found an epilogue on a weight gradient, expected none");
    finished = decided(&finished, isa);
    const struct conv_kernel *found = kernel_of(&finished, isa);
    return spec->pool ? conv_pooled_bind(&finished, isa, found, kernel) : found->bind(&finished, isa, kernel);
}
