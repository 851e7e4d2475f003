/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of weights: which one a kernel reads, and how it is made. */
#ifndef KERNELS_CONV_PACK_H
#define KERNELS_CONV_PACK_H

#include "kernels/conv_spec.h"
#include "kernels/winograd.h"

/* A form of weights and the work of making it, in units that do not touch each other's results. */
struct conv_packing {
    struct conv_form form;
    const struct winograd_scheme *scheme; /* NULL: direct */
    const struct pair_functions *round;   /* NULL: floats */
    bool backward;
    int64_t source_c, result_c; /* channels of a group */
    int64_t depth;              /* rows of a tap: source_c, or pairs */
    int64_t taps, width, panels;
    int64_t units;
    size_t bytes;
};

void conv_packing_init(const struct conv_form *form, enum isa isa, struct conv_packing *packing);
void conv_packing_unit(const struct conv_packing *packing, const float *w, void *target, int64_t unit);
/* Floats between planes of points: they would else meet in the same sets of the level-1 cache. */
enum { CONV_PLANE_PAD = 16 };
/* Winograd: result channels [begin, end) of the weights alone, as one panel; at most PANEL_MAX of them. Its planes of
 * points lie CONV_PLANE_PAD elements further apart than they are long. */
void conv_packing_columns(const struct conv_packing *packing, const float *w, int64_t begin, int64_t end, void *target);

/* F(outputs, taps) for an algorithm and direction; NULL when there is none for the window. */
const struct winograd_scheme *conv_winograd_scheme(const struct conv_spec *spec, enum conv_algorithm algorithm,
                                                   enum isa isa);
/* Does Winograd's algorithm multiply its points as pairs of bfloat16 there? With 8 points a side the transforms would
 * spread the rounding too far (13 times the direct kernel's error). */
bool conv_winograd_pairs(const struct conv_spec *spec, enum conv_algorithm algorithm, enum isa isa);

/* conv_form_wanted for a kernel that reads forms (struct conv_kernel) and whose algorithm is decided. */
enum conv_form_keep conv_form_of(const struct conv_spec *spec, enum isa isa, struct conv_form *form);

int64_t conv_form_count(const struct conv_form *form); /* elements; 0: no such form */
/* One input, w[KH,KW,C/groups,K] dense; output: conv_form_count elements. */
graphi_status conv_pack_bind(const struct conv_form *form, enum isa isa, struct kernel *kernel);

#endif
