/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of recurrent operators, by ONNX's names in any case, with the numbers that their lists give. */
#ifndef VALUE_ACTIVATION_H
#define VALUE_ACTIVATION_H

#include "value/op.h"

struct activation {
    const char *name; /* as ONNX writes it */
    double (*f)(double x, double alpha, double beta);
    double alpha, beta;
};

/* `count` activations from the attributes activations, activation_alpha, activation_beta, or the defaults' names.
 * Numbers are used up in order by activations that take them; where they run out, the text's defaults count. Affine and
 * ScaledTanh have none and are refused without. */
graphi_status activations_find(const struct op_call *call, const char *const *defaults, int count,
                               struct activation *out);

#endif
