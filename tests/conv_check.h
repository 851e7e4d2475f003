/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions against the seven plain loops in double precision: every direction and algorithm of a shape. */
#ifndef TESTS_CONV_CHECK_H
#define TESTS_CONV_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "guarded.h"
#include "kernels/conv.h"
#include "kernels/conv_choice.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"
#include "kernels/pack.h"

struct problem {
    struct conv_spec spec;
    struct guarded x, w, y, bias; /* values or gradients */
    int64_t images;
};

static inline int64_t pixels_in(const struct conv_shape *s)
{
    return s->n * s->h * s->w;
}

static inline int64_t pixels_out(const struct conv_shape *s)
{
    return s->n * s->oh * s->ow;
}

static inline int64_t weights_in(const struct conv_shape *s)
{
    return s->kh * s->kw * (s->c / s->groups) * s->k;
}

/* Elements of `pixels` pixels `ld` apart with `channels` each. */
static inline int64_t span(int64_t pixels, int64_t ld, int64_t channels)
{
    return pixels ? (pixels - 1) * ld + channels : 0;
}

static inline struct guarded copy_of(const struct guarded *g, int64_t floats)
{
    struct guarded copy = guarded_new((size_t)floats * 4, false);
    memcpy(copy.data, g->data, (size_t)floats * 4);
    return copy;
}

/* The numbers that are multiplied, rounded once. */
static inline float *multiplied(const struct problem *p, const struct guarded *g, int64_t count)
{
    float *copy = mem_alloc((size_t)count * sizeof *copy + 4);
    memcpy(copy, g->data, (size_t)count * sizeof *copy);
    for (int64_t i = 0; p->spec.multiplicands == GRAPHI_BF16 && i < count; i++) {
        uint32_t bits = (uint32_t)bf16_round(copy[i]) << 16;
        memcpy(&copy[i], &bits, sizeof bits);
    }
    return copy;
}

/* The terms of one window position at one pixel: channels of x from at_x, weights from at_w, channels of y from at_y.
 */
static inline void add_terms(const struct problem *p, float *const *of, int64_t at_x, int64_t at_w, int64_t at_y,
                             double *sum, double *magnitude)
{
    enum { X, W, Y };
    static const int result[] = {Y, X, W}, left[] = {X, Y, X}, right[] = {W, W, Y}; /* by direction */
    static const int64_t step[] = {0, 1, 1};                                        /* x is the same for all k */
    const struct conv_shape *s = &p->spec.shape;
    const int to = result[p->spec.direction], l = left[p->spec.direction], r = right[p->spec.direction];
    int64_t cg = s->c / s->groups, kg = s->k / s->groups;
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t c = 0; c < cg; c++) {
            const int64_t first[] = {at_x + g * cg + c, at_w + c * s->k + g * kg, at_y + g * kg};
            for (int64_t k = 0; k < kg; k++) {
                double term = (double)of[l][first[l] + k * step[l]] * of[r][first[r] + k * step[r]];
                sum[first[to] + k * step[to]] += term;
                magnitude[first[to] + k * step[to]] += fabs(term);
            }
        }
}

/* The seven loops: adds to `sum` and `magnitude`, which are laid out as the result. */
static inline void reference(const struct problem *p, double *sum, double *magnitude)
{
    const struct conv_shape *s = &p->spec.shape;
    float *of[] = {multiplied(p, &p->x, span(pixels_in(s), s->ldx, s->c)), multiplied(p, &p->w, weights_in(s)),
                   multiplied(p, &p->y, span(pixels_out(s), s->ldy, s->k))};
    for (int64_t i = 0; i < p->images; i++)
        for (int64_t oy = 0; oy < s->oh; oy++)
            for (int64_t ox = 0; ox < s->ow; ox++)
                for (int64_t ty = 0; ty < s->kh; ty++)
                    for (int64_t tx = 0; tx < s->kw; tx++) {
                        int64_t iy = oy * s->stride_h + ty * s->dilation_h - s->pad_top;
                        int64_t ix = ox * s->stride_w + tx * s->dilation_w - s->pad_left;
                        if (iy >= 0 && iy < s->h && ix >= 0 && ix < s->w)
                            add_terms(p, of, ((i * s->h + iy) * s->w + ix) * s->ldx,
                                      (ty * s->kw + tx) * (s->c / s->groups) * s->k,
                                      ((i * s->oh + oy) * s->ow + ox) * s->ldy, sum, magnitude);
                    }
    for (int i = 0; i < 3; i++)
        mem_free(of[i]);
}

static inline void run_kernel(const struct kernel *kernel, const struct kernel_array *in, struct kernel_array out,
                              bool backwards)
{
    struct guarded workspace = guarded_new((kernel->workspace + 63) / 64 * 64, false);
    memset(workspace.data, 0xff, kernel->workspace);
    struct kernel_call call = {.in = in, .out = &out, .params = kernel->params, .workspace = workspace.data,
                               .width = backwards ? 3 : 0};
    for (int phase = 0; phase < kernel->phases; phase++)
        for (int i = 0; i < kernel->shares[phase]; i++)
            assert_int_equal(kernel->run(&call, phase, backwards ? kernel->shares[phase] - 1 - i : i), GRAPHI_OK);
    guarded_free(&workspace);
}

/* Weights prepared by a kernel of their own; false: the kernel takes them as they are. */
static inline bool prepare(const struct problem *p, enum isa isa, bool backwards, struct guarded *prepared)
{
    struct conv_form form;
    if (conv_form_wanted(&p->spec, isa, &form) == CONV_FORM_NONE)
        return false;
    struct kernel kernel;
    const size_t element = graphi_dtype_size((graphi_dtype)form.multiplicands);
    *prepared = guarded_new((size_t)conv_form_count(&form) * element, false);
    assert_int_equal(conv_pack_bind(&form, isa, &kernel), GRAPHI_OK);
    run_kernel(&kernel, &(struct kernel_array){p->w.data, 1}, (struct kernel_array){prepared->data, 1}, backwards);
    kernel_fini(&kernel);
    return true;
}

/* The images as bfloat16, at the same places. */
static inline struct guarded rounded(const struct guarded *images, int64_t count)
{
    struct guarded half = guarded_new((size_t)count * 2, false);
    for (int64_t i = 0; i < count; i++)
        ((uint16_t *)half.data)[i] = bf16_round(((const float *)images->data)[i]);
    return half;
}

/* `again`: for some number of cores, shares in reversed order and as three threads would have them, prepared weights
 * where there is such a form, and rounded images where the kernel takes them. */
static inline void run(const struct problem *p, enum isa isa, bool again, float *result)
{
    static const int cores[] = {0, 6, 24, 48, 68, 1024};
    struct kernel kernel;
    struct conv_spec spec = p->spec;
    spec.cores = again ? cores[random_below(6)] : 0;
    struct guarded prepared = {0};
    spec.prepared = again && prepare(p, isa, again, &prepared);
    enum conv_direction direction = p->spec.direction;
    struct guarded x = p->x, y = p->y;
    const struct conv_shape *s = &p->spec.shape;
    bool weights = direction == CONV_BACKWARD_WEIGHTS, takes = again && conv_rounds(&spec, isa);
    spec.rounded_x = takes && (direction == CONV_FORWARD ? s->ldx % 2 == 0 : weights && random_below(3));
    spec.rounded_y = takes && (direction == CONV_BACKWARD_DATA ? s->ldy % 2 == 0 : weights && random_below(3));
    if (spec.rounded_x)
        x = rounded(&p->x, span(pixels_in(s), s->ldx, s->c));
    if (spec.rounded_y)
        y = rounded(&p->y, span(pixels_out(s), s->ldy, s->k));
    assert_int_equal(conv_bind(&spec, isa, &kernel), GRAPHI_OK);
    struct kernel_array in[] = {{direction == CONV_BACKWARD_DATA ? y.data : x.data, p->images},
                                {weights ? y.data : spec.prepared ? prepared.data : p->w.data, p->images},
                                {p->bias.data, 1}};
    run_kernel(&kernel, in, (struct kernel_array){result, p->images}, again);
    kernel_fini(&kernel);
    if (spec.rounded_x)
        guarded_free(&x);
    if (spec.rounded_y)
        guarded_free(&y);
    if (spec.prepared)
        guarded_free(&prepared);
}

static inline const struct guarded *result_of(const struct problem *p)
{
    const struct guarded *results[] = {&p->y, &p->x, &p->w};
    return results[p->spec.direction];
}

static inline int64_t result_count(const struct problem *p)
{
    const struct conv_shape *s = &p->spec.shape;
    return p->spec.direction == CONV_FORWARD         ? span(pixels_out(s), s->ldy, s->k)
           : p->spec.direction == CONV_BACKWARD_DATA ? span(pixels_in(s), s->ldx, s->c) : weights_in(s);
}

/* Result and reference, element by element; what is not part of the result must be untouched. */
static inline void check(const struct problem *p, enum isa isa, const double *sum, const double *magnitude)
{
    const struct conv_shape *s = &p->spec.shape;
    enum conv_direction direction = p->spec.direction;
    int64_t channels = direction == CONV_FORWARD ? s->k : s->c, ld = direction == CONV_FORWARD ? s->ldy : s->ldx;
    int64_t pixels = (direction == CONV_FORWARD ? s->oh * s->ow : s->h * s->w) * p->images;
    const struct guarded *result = result_of(p);
    int64_t count = result_count(p);
    struct guarded first = copy_of(result, count), second = copy_of(result, count);
    run(p, isa, false, first.data);
    run(p, isa, true, second.data);
    if (count)
        assert_memory_equal(first.data, second.data, (size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        float found = ((float *)first.data)[i];
        if (direction != CONV_BACKWARD_WEIGHTS && (i / ld >= pixels || i % ld >= channels)) {
            if (found != ((float *)result->data)[i])
                fail_msg("element %lld outside the result was written", (long long)i);
            continue;
        }
        double expected = sum[i];
        if (p->spec.epilogue.program)
            expected =
                fmax(expected + ((float *)p->bias.data)[*p->spec.epilogue.broadcast == PROGRAM_ROW ? i % ld : i], 0);
        static const double bounds[] = {0, 4e-6, 4e-6, 3e-5, 2e-4};
        /* Rounded points: an error of the tile's magnitude, also where an element itself sums little. */
        bool rounded = p->spec.algorithm > CONV_DIRECT && p->spec.multiplicands == GRAPHI_BF16;
        double bound = rounded ? 0.6 + 0.015 * magnitude[i] : bounds[p->spec.algorithm] * (1 + magnitude[i]);
        if (!number_close(found, expected, bound))
            fail_msg("%s direction %d, image %lldx%lldx%lldx%lld window %lldx%lld/%lld to %lld: element %lld is %g, "
                     "expected %g", isa_name(isa), direction, (long long)s->n, (long long)s->h, (long long)s->w,
                     (long long)s->c, (long long)s->kh, (long long)s->kw, (long long)s->stride_w, (long long)s->k,
                     (long long)i, found, expected);
    }
    guarded_free(&first);
    guarded_free(&second);
}

/* Every algorithm against one reference; epilogues come after it. */
static inline void check_algorithms(struct problem *p, enum isa isa)
{
    size_t bytes = (size_t)result_count(p) * sizeof(double);
    double *sum = mem_zalloc(bytes), *magnitude = mem_zalloc(bytes);
    reference(p, sum, magnitude);
    for (p->spec.algorithm = CONV_DIRECT; p->spec.algorithm < CONV_ALGORITHMS; p->spec.algorithm++)
        if (conv_possible(&p->spec, p->spec.algorithm))
            check(p, isa, sum, magnitude);
    mem_free(sum);
    mem_free(magnitude);
}

/* All directions and algorithms of one shape. Epilogues add a bias (they may run before the tile is put in place) or an
 * image (they may not, and pieces at the borders meet it with strides of their own). */
static inline void check_shape(struct conv_shape shape, enum isa isa, graphi_dtype multiplicands, bool with_epilogue,
                               int64_t images)
{
    assert_int_equal(conv_shape_finish(&shape, "test"), GRAPHI_OK);
    struct problem p = {.spec = {.shape = shape, .multiplicands = multiplicands}, .images = images};
    struct program relu = {.inputs = 2, .instructions = 2, .outputs = 1, .output = {3}};
    relu.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    relu.code[1] = (struct program_instruction){PROGRAM_RELU, 2, -1, -1, 0};
    p.x = guarded_random(span(pixels_in(&shape), shape.ldx, shape.c), false);
    p.y = guarded_random(span(pixels_out(&shape), shape.ldy, shape.k), false);
    p.w = guarded_random(weights_in(&shape), false);
    for (enum conv_direction d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++) {
        p.spec.direction = d;
        bool forward = d == CONV_FORWARD, image = random_below(2);
        enum program_broadcast broadcast = image ? PROGRAM_FULL : PROGRAM_ROW;
        int64_t channels = forward ? shape.k : shape.c, ld = forward ? shape.ldy : shape.ldx;
        const bool has_epilogue = with_epilogue && d != CONV_BACKWARD_WEIGHTS;
        p.spec.epilogue = (struct epilogue_spec){has_epilogue ? &relu : NULL, &broadcast, &ld, NULL};
        p.bias = guarded_random(image ? span(forward ? pixels_out(&shape) : pixels_in(&shape), ld, channels) : channels,
                                false);
        check_algorithms(&p, isa);
        guarded_free(&p.bias);
    }
    guarded_free(&p.x);
    guarded_free(&p.y);
    guarded_free(&p.w);
}

#endif
