/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm a convolution takes. Nothing is measured here: bench/conv_table.c measured, on one thread and its CPU
 * time, the shapes of the networks and a grid around them, and wrote conv_table.inc. A shape takes the class nearest to
 * it, in the logarithms of channels, pixels and image side; of that class the fastest algorithm whose error is within
 * the budget. Plan time only; a hundred classes or so. */
#include "kernels/conv_choice.h"

#include <limits.h>
#include <math.h>

#include "kernels/conv_kernel.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"

struct class {
    uint8_t direction, window;
    int16_t side; /* of y */
    int32_t images;
    int16_t c, k;
    int16_t percent[2][CONV_ALGORITHMS]; /* of the direct float32 kernel's time; [1]: with bfloat16; 0: not possible */
};

static const struct class classes[] = {
#include "kernels/conv_table.inc"
    {0},
};

/* Root mean square error against float64 over that of the direct kernel: bounds of what was seen on the networks'
 * shapes and on odd ones for which bounds_hold; tests/test_conv.c asserts them. */
static const double errors[3][2][CONV_ALGORITHMS] = {
    [CONV_FORWARD] = {{0, 1, 1.25, 3.75, 16}, {0, 1, 0, 2.75, 10}},
    [CONV_BACKWARD_DATA] = {{0, 1, 1.25, 3.75, 16}, {0, 1, 0, 2.75, 10}},
    [CONV_BACKWARD_WEIGHTS] = {{0, 1, 1.75, 3.75, 16}, {0, 1, 0, 4, 13}},
};

/* The same of points in pairs of bfloat16, over that of the direct kernel with pairs: the points' rounding is all there
 * is, and its spread follows from the matrices (1.7 for a line of 4 points, 2.2 to 2.4 for one of 6, squared), whatever
 * the direction. */
static const double pair_errors[2][CONV_ALGORITHMS] = {{0, 1, 2.2, 6.5, 0}, {0, 1, 0, 7.5, 0}};

double conv_error_bound(enum conv_direction direction, int64_t window, enum conv_algorithm algorithm, bool pairs)
{
    return pairs ? pair_errors[window == 5][algorithm] : errors[direction][window == 5][algorithm];
}

bool conv_possible(const struct conv_spec *spec, enum conv_algorithm algorithm)
{
    const struct conv_shape *s = &spec->shape;
    if (algorithm == CONV_DIRECT)
        return true;
    return s->kh == s->kw && s->stride_h == 1 && s->stride_w == 1 && s->dilation_h == 1 && s->dilation_w == 1 &&
           s->groups == 1 && conv_winograd_scheme(spec, algorithm, ISA_PLAIN);
}

static double apart(double a, double b)
{
    return (a - b) * (a - b);
}

static const struct class *nearest(const struct conv_spec *spec)
{
    const struct conv_shape *s = &spec->shape;
    const struct class *found = NULL;
    double best = HUGE_VAL, side = 0.5 * (log2((double)s->oh) + log2((double)s->ow));
    double pixels = 2 * side + log2((double)(s->n ? s->n : 1)), c = log2((double)s->c), k = log2((double)s->k);
    for (const struct class *at = classes; at->window; at++) {
        if (at->direction != spec->direction || at->window != s->kh)
            continue;
        double at_side = log2(at->side), at_pixels = 2 * at_side + log2(at->images);
        /* The image counts fully while tiles are cut at its borders, the number of pixels while weights are not
         * amortized. */
        double distance =
            apart(c, log2(at->c)) + apart(k, log2(at->k)) + apart(side, at_side) + 0.5 * apart(pixels, at_pixels);
        if (distance < best) {
            best = distance;
            found = at;
        }
    }
    return found;
}

/* Where sums have few terms, or images less than a tile, the direct kernel hardly rounds, and Winograd's algorithm has
 * up to nine times its error with tiles of 6 points. With the default budget no shape of the networks is among them
 * that would gain. */
static bool bounds_hold(const struct conv_spec *spec)
{
    enum { SIDE = 4 };
    static const int64_t terms_wanted[3][2] = {
        [CONV_FORWARD] = {16, 16}, [CONV_BACKWARD_DATA] = {16, 16}, [CONV_BACKWARD_WEIGHTS] = {128, 4096}};
    const struct conv_shape *s = &spec->shape;
    const int64_t terms[3] = {
        [CONV_FORWARD] = s->c, [CONV_BACKWARD_DATA] = s->k, [CONV_BACKWARD_WEIGHTS] = s->n * s->oh * s->ow};
    return terms[spec->direction] >= terms_wanted[spec->direction][s->kh == 5] &&
           least(least(s->h, s->w), least(s->oh, s->ow)) >= SIDE;
}

/* bfloat16 is a permission to round the multiplicands, to 8 bits. Where Winograd's algorithm multiplies float32 points
 * (conv_winograd_pairs) it is thousands of times more exact than bfloat16 with any tile, so no budget binds it but one
 * of 1 or less, which asks for direct convolutions. The default budget of pairs is 8: the error of F(4x4, 3x3) is 5.6
 * times the direct one's, and what a budget of 4 leaves takes a third longer. Without the instructions the direct
 * kernel takes half as long again as float32 (the median over the networks' shapes), and Winograd's has its float32
 * points. */
enum { EMULATED_PERCENT = 150 };

double conv_error_budget(double asked, graphi_dtype multiplicands)
{
    return asked > 0 ? asked : multiplicands == GRAPHI_BF16 ? 8 : 4;
}

/* Time in per cent of the direct float32 kernel's; 0: not possible, or not exact enough. */
static int percent_of(const struct conv_spec *spec, const struct class *class, enum conv_algorithm a, enum isa isa)
{
    bool bf16 = spec->multiplicands == GRAPHI_BF16, pairs = conv_winograd_pairs(spec, a, isa);
    double budget = conv_error_budget(spec->error_budget, spec->multiplicands);
    if (!conv_possible(spec, a) || (a != CONV_DIRECT && budget <= 1))
        return 0;
    if (a != CONV_DIRECT && (pairs || !bf16) &&
        (!bounds_hold(spec) || conv_error_bound(spec->direction, spec->shape.kh, a, pairs) > budget))
        return 0;
    return a == CONV_DIRECT && bf16 && isa != ISA_BF16 ? EMULATED_PERCENT : class->percent[bf16 && isa == ISA_BF16][a];
}

enum conv_algorithm conv_choose(const struct conv_spec *spec, enum isa isa)
{
    enum conv_algorithm best = CONV_DIRECT;
    if (isa == ISA_PLAIN || !conv_possible(spec, CONV_WINOGRAD) || conv_few.takes(spec, isa))
        return best;
    const struct class *class = nearest(spec);
    int percent = INT_MAX;
    for (enum conv_algorithm a = CONV_DIRECT; class && a < CONV_ALGORITHMS; a++) {
        int found = percent_of(spec, class, a, isa);
        if (found && found < percent) {
            best = a;
            percent = found;
        }
    }
    return best;
}
