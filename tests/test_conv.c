/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions against the seven plain loops in double precision. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "conv_shapes.h"
#include "guarded.h"
#include "kernels/conv_internal.h"
#include "kernels/pack.h"

struct problem {
    struct conv_spec spec;
    struct guarded x, w, y, bias; /* values or gradients */
    int64_t images;
};

static int64_t pixels_in(const struct conv_shape *s)
{
    return s->n * s->h * s->w;
}

static int64_t pixels_out(const struct conv_shape *s)
{
    return s->n * s->oh * s->ow;
}

static int64_t weights_in(const struct conv_shape *s)
{
    return s->kh * s->kw * (s->c / s->groups) * s->k;
}

/* Elements of `pixels` pixels `ld` apart with `channels` each. */
static int64_t span(int64_t pixels, int64_t ld, int64_t channels)
{
    return pixels ? (pixels - 1) * ld + channels : 0;
}

static struct guarded copy_of(const struct guarded *g, int64_t floats)
{
    struct guarded copy = guarded_new((size_t)floats * 4, false);
    memcpy(copy.data, g->data, (size_t)floats * 4);
    return copy;
}

/* The numbers that are multiplied, rounded once. */
static float *multiplied(const struct problem *p, const struct guarded *g, int64_t count)
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
static void add_terms(const struct problem *p, float *const *of, int64_t at_x, int64_t at_w, int64_t at_y, double *sum,
                      double *magnitude)
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
static void reference(const struct problem *p, double *sum, double *magnitude)
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

static void run_kernel(const struct kernel *kernel, const struct kernel_array *in, struct kernel_array out,
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
static bool prepare(const struct problem *p, enum isa isa, bool backwards, struct guarded *prepared)
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
static struct guarded rounded(const struct guarded *images, int64_t count)
{
    struct guarded half = guarded_new((size_t)count * 2, false);
    for (int64_t i = 0; i < count; i++)
        ((uint16_t *)half.data)[i] = bf16_round(((const float *)images->data)[i]);
    return half;
}

/* `again`: shares in reversed order and as three threads would have them, prepared weights where there is such a form,
 * and rounded images where the kernel takes them. */
static void run(const struct problem *p, enum isa isa, bool again, float *result)
{
    struct kernel kernel;
    struct conv_spec spec = p->spec;
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

static const struct guarded *result_of(const struct problem *p)
{
    const struct guarded *results[] = {&p->y, &p->x, &p->w};
    return results[p->spec.direction];
}

static int64_t result_count(const struct problem *p)
{
    const struct conv_shape *s = &p->spec.shape;
    return p->spec.direction == CONV_FORWARD         ? span(pixels_out(s), s->ldy, s->k)
           : p->spec.direction == CONV_BACKWARD_DATA ? span(pixels_in(s), s->ldx, s->c) : weights_in(s);
}

/* Result and reference, element by element; what is not part of the result must be untouched. */
static void check(const struct problem *p, enum isa isa, const double *sum, const double *magnitude)
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
static void check_algorithms(struct problem *p, enum isa isa)
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
static void check_shape(struct conv_shape shape, enum isa isa, graphi_dtype multiplicands, bool with_epilogue,
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

/* The windows that networks use, on small images: each has a form of its own (1 x 1, strided, large, few channels,
 * groups, depthwise, dilated). */
static void known_windows(void **state)
{
    (void)state;
    static const struct conv_shape shapes[] = {
        {.n = 2, .h = 7, .w = 7, .c = 33, .k = 70, .kh = 1, .kw = 1},
        {.n = 2, .h = 9, .w = 8, .c = 16, .k = 20, .kh = 1, .kw = 1, .stride_h = 2, .stride_w = 2},
        {.n = 3, .h = 7, .w = 7, .c = 20, .k = 130, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1,
         .pad_right = 1},
        {.n = 2, .h = 9, .w = 10, .c = 8, .k = 16, .kh = 5, .kw = 5, .pad_top = 2, .pad_left = 2, .pad_bottom = 2,
         .pad_right = 2},
        {.n = 2, .h = 23, .w = 21, .c = 3, .k = 64, .kh = 7, .kw = 7, .stride_h = 2, .stride_w = 2, .pad_top = 3,
         .pad_left = 3, .pad_bottom = 3, .pad_right = 3},
        {.n = 2, .h = 35, .w = 35, .c = 3, .k = 24, .kh = 11, .kw = 11, .stride_h = 4, .stride_w = 4},
        {.n = 2, .h = 9, .w = 9, .c = 12, .k = 16, .kh = 5, .kw = 5, .pad_top = 2, .pad_left = 2, .pad_bottom = 2,
         .pad_right = 2, .groups = 2},
        {.n = 2, .h = 8, .w = 9, .c = 18, .k = 18, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1,
         .pad_right = 1, .groups = 18},
        {.n = 2, .h = 9, .w = 13, .c = 70, .k = 70, .kh = 5, .kw = 5, .pad_top = 2, .pad_left = 1, .pad_bottom = 2,
         .pad_right = 3, .groups = 70, .stride_h = 2, .stride_w = 2, .ldx = 75, .ldy = 72},
        {.n = 2, .h = 7, .w = 9, .c = 291, .k = 291, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1,
         .pad_right = 1, .groups = 291},
        {.n = 3, .h = 27, .w = 38, .c = 40, .k = 40, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1,
         .pad_right = 1, .groups = 40},
        {.n = 2, .h = 19, .w = 17, .c = 21, .k = 21, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1,
         .pad_right = 1, .groups = 21, .stride_h = 2, .stride_w = 2, .ldx = 24, .ldy = 29},
        {.n = 1, .h = 14, .w = 15, .c = 17, .k = 17, .kh = 3, .kw = 3, .pad_top = 2, .pad_left = 2, .pad_bottom = 2,
         .pad_right = 2, .groups = 17, .dilation_h = 2, .dilation_w = 2},
        {.n = 1, .h = 9, .w = 14, .c = 8, .k = 8, .kh = 2, .kw = 3, .pad_top = 1, .pad_left = 2, .groups = 8,
         .stride_h = 3},
        {.n = 2, .h = 9, .w = 14, .c = 24, .k = 24, .kh = 3, .kw = 3, .groups = 24, .stride_h = 1 << 30},
        {.n = 1, .h = 12, .w = 13, .c = 6, .k = 9, .kh = 3, .kw = 3, .dilation_h = 2, .dilation_w = 3},
        {.n = 2, .h = 10, .w = 10, .c = 5, .k = 7, .kh = 4, .kw = 3, .stride_h = 3, .stride_w = 2, .pad_bottom = 2,
         .pad_left = 5},
        {.n = 2, .h = 6, .w = 6, .c = 24, .k = 40, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1,
         .pad_right = 1, .ldx = 31, .ldy = 64},
        {.n = 0, .h = 6, .w = 6, .c = 4, .k = 4, .kh = 3, .kw = 3},
    };
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            struct conv_shape s = shapes[i];
            s.stride_h += !s.stride_h;
            s.stride_w += !s.stride_w;
            s.dilation_h += !s.dilation_h;
            s.dilation_w += !s.dilation_w;
            s.groups += !s.groups;
            check_shape(s, isa, GRAPHI_F32, i % 2, s.n);
            check_shape(s, isa, GRAPHI_BF16, i % 3 == 0, s.n);
        }
}

static void check_far(struct conv_shape s, int64_t images)
{
    assert_int_equal(conv_shape_finish(&s, "test"), GRAPHI_OK);
    assert_true(conv_asks(&s) && conv_far(&s) == (s.kh == 1));
    struct problem p = {.spec = {.shape = s, .direction = CONV_BACKWARD_WEIGHTS, .algorithm = CONV_DIRECT},
                        .images = images};
    p.x = guarded_random(span(pixels_in(&s), s.ldx, s.c), false);
    p.y = guarded_random(span(pixels_out(&s), s.ldy, s.k), false);
    p.w = guarded_random(weights_in(&s), false);
    for (int i = 0; i < 2; i++) {
        p.spec.multiplicands = i ? GRAPHI_BF16 : GRAPHI_F32;
        check_algorithms(&p, isa_detect());
    }
    guarded_free(&p.x);
    guarded_free(&p.y);
    guarded_free(&p.w);
}

/* A 1 x 1 gradient whose operands do not fit the caches goes through its panels for some pixels after the other: no
 * small shape gets there, so nothing else would see a panel left out. Of 16,511 channels in 130 tiles, as many each but
 * for the last, this one would have less than none. Those whose calls ask for what follows have shorter ones. */
static void far_operands(void **state)
{
    (void)state;
    check_far(square_conv(4, 73, 130, 70, 1), 3);
    check_far(square_conv(1, 16, 16511, 1, 1), 1);
    struct conv_shape s = square_conv(2, 60, 20, 60, 3);
    check_far(s, 2);
    s.ldx = 21; /* tap by tap */
    check_far(s, 2);
    s.stride_h = s.stride_w = 2;
    s.k = 212;
    check_far(s, 2);
}

/* Combinations that nobody thought of; and fewer images at call time than the bound. */
static void random_windows(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        struct conv_shape s = {.n = 1 + random_below(3), .h = 1 + random_below(14), .w = 1 + random_below(14),
                               .kh = 1 + random_below(5), .kw = 1 + random_below(5), .stride_h = 1 + random_below(3),
                               .stride_w = 1 + random_below(3), .dilation_h = 1 + random_below(2),
                               .dilation_w = 1 + random_below(2), .groups = 1 + random_below(3)};
        s.pad_top = random_below(4);
        s.pad_left = random_below(4);
        s.pad_bottom = random_below(4);
        s.pad_right = random_below(4);
        s.c = s.groups * (1 + random_below(9));
        s.k = s.groups * (1 + random_below(random_below(4) ? 20 : 70));
        s.ldx = s.c + (random_below(3) ? 0 : 5);
        s.ldy = s.k + (random_below(3) ? 0 : 3);
        if (conv_shape_finish(&s, "test") == GRAPHI_OK)
            check_shape(s, (enum isa)random_below(isa_detect() + 1), random_below(4) ? GRAPHI_F32 : GRAPHI_BF16,
                        random_below(2), random_below(4) ? s.n : random_below(s.n));
    }
}

static bool takes_few(struct conv_shape shape, enum conv_direction direction)
{
    const struct conv_spec spec = {.shape = shape, .direction = direction};
    struct kernel kernel;
    assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
    const bool takes = strstr(kernel.name, "few");
    kernel_fini(&kernel);
    return takes;
}

/* Results of one to four channels, which sum products of all taps: images of one part and of several, lines that go
 * through the ring many times, panels of taps, windows over all of an image and strides that leave pixels without any.
 */
static void few_channels(void **state)
{
    (void)state;
    int taken[2] = {0, 0};
    for (int i = 0; i < 120; i++) {
        const bool backward = i % 2;
        struct conv_shape s = {.n = 1 + random_below(random_below(6) ? 3 : 20), .h = 1 + random_below(i % 5 ? 12 : 60),
                               .w = 1 + random_below(i % 3 ? 12 : 70), .kh = 1 + random_below(6),
                               .kw = 1 + random_below(9), .stride_h = 1 + (backward ? random_below(3) : 0),
                               .stride_w = 1 + (backward ? random_below(3) : 0), .dilation_h = 1 + random_below(2),
                               .dilation_w = 1 + random_below(2), .groups = 1, .pad_top = random_below(4),
                               .pad_left = random_below(4), .pad_bottom = random_below(4),
                               .pad_right = random_below(4)};
        const int64_t few = 1 + random_below(4), many = 16 * few + random_below(20);
        s.c = backward ? few : many;
        s.k = backward ? many : few;
        s.ldx = s.c + (random_below(3) ? 0 : 5);
        s.ldy = s.k + (random_below(3) ? 0 : 3);
        if (s.kh * s.kw == 1 || conv_shape_finish(&s, "test") != GRAPHI_OK)
            continue;
        taken[backward] += takes_few(s, backward ? CONV_BACKWARD_DATA : CONV_FORWARD);
        check_shape(s, isa_detect(), GRAPHI_F32, random_below(2), random_below(4) ? s.n : random_below((int)s.n));
    }
    assert_true(isa_detect() == ISA_PLAIN || (taken[0] > 10 && taken[1] > 10));
}

/* Where most products of pixels and taps are nobody's, or lines of them are more than a cache holds, all of them are
 * more work, or more memory, than those that are somebody's; those beyond what the kernel has room for are not its. */
static void few_channels_where_it_pays(void **state)
{
    (void)state;
    static const struct {
        int64_t n, h, w, c, k, side, stride, pad;
        bool forward, data;
    } cases[] = {
        {2, 12, 12, 64, 1, 5, 1, 2, true, false},    {2, 12, 12, 1, 64, 5, 2, 2, false, true},
        {2, 12, 12, 64, 4, 3, 1, 1, true, false},    {2, 12, 12, 48, 3, 6, 1, 3, true, false},
        {2, 12, 12, 64, 5, 3, 1, 1, false, false},
        {2, 12, 12, 47, 3, 3, 1, 1, false, false},   {2, 12, 12, 64, 1, 5, 2, 2, false, false},
        {3, 4, 4, 512, 1, 4, 1, 0, false, false},    {1, 22, 22, 64, 1, 22, 1, 0, false, false},
        {1, 5, 5, 1, 512, 5, 1, 0, false, true},     {2, 12, 12, 64, 4, 12, 1, 6, false, false},
        {1, 10, 9000, 48, 3, 9, 1, 4, false, false}, {1, 9, 9, 800, 1, 3, 1, 1, true, false},
        {0, 9, 9, 64, 1, 3, 1, 1, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conv_shape s = square_conv(cases[i].n, cases[i].h, cases[i].c, cases[i].k, cases[i].side);
        s.w = cases[i].w;
        s.stride_h = s.stride_w = cases[i].stride;
        s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = cases[i].pad;
        s.ldx = s.ldy = 0;
        assert_int_equal(conv_shape_finish(&s, "test"), GRAPHI_OK);
        const bool able = isa_detect() != ISA_PLAIN;
        if (takes_few(s, CONV_FORWARD) != (able && cases[i].forward) ||
            takes_few(s, CONV_BACKWARD_DATA) != (able && cases[i].data))
            fail_msg("case %d", (int)i);
        if (s.w < 1000)
            check_shape(s, isa_detect(), GRAPHI_F32, i % 2, s.n);
    }
}

/* Weight gradients whose segments would be a few steps copy their pixels side by side: one piece and many, rows of one
 * tap and of a window row, one panel and several, groups, strides, and images that are parts of others. */
static void short_lines(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct conv_shape s = {.n = 1 + random_below(i % 4 ? 3 : 24), .h = 1 + random_below(16),
                               .w = 1 + random_below(16), .kh = 1 + random_below(5), .kw = 1 + random_below(5),
                               .stride_h = 1 + random_below(2), .stride_w = 1 + random_below(2),
                               .dilation_h = 1 + random_below(2), .dilation_w = 1 + random_below(2),
                               .groups = 1 + (i % 5 == 0), .pad_top = random_below(3), .pad_left = random_below(3),
                               .pad_bottom = random_below(3), .pad_right = random_below(3)};
        s.c = s.groups * (20 + random_below(i % 3 ? 20 : 150));
        s.k = s.groups * (1 + random_below(i % 2 ? 30 : 140));
        s.ldx = s.c + (random_below(3) ? 0 : 5);
        s.ldy = s.k + (random_below(3) ? 0 : 3);
        if (conv_shape_finish(&s, "test") == GRAPHI_OK)
            check_shape(s, (enum isa)random_below(isa_detect() + 1), GRAPHI_F32, false,
                        random_below(4) ? s.n : random_below((int)s.n));
    }
}

/* The part of a workspace that is each thread's own: what the shares of one thread write is not what those of another
 * write, which may run at the same time. */
static void threads_have_scratch_of_their_own(void **state)
{
    (void)state;
    const struct {
        struct conv_shape shape;
        enum conv_direction direction;
    } cases[] = {{square_conv(9, 12, 64, 2, 3), CONV_FORWARD}, {square_conv(9, 12, 2, 64, 3), CONV_BACKWARD_DATA},
                 {square_conv(9, 6, 40, 40, 3), CONV_BACKWARD_WEIGHTS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases && isa_detect() != ISA_PLAIN; i++) {
        struct conv_spec spec = {.shape = cases[i].shape, .direction = cases[i].direction, .algorithm = CONV_DIRECT,
                                 .threads = 2};
        struct kernel kernel;
        assert_int_equal(conv_shape_finish(&spec.shape, "test"), GRAPHI_OK);
        assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
        const bool weights = spec.direction == CONV_BACKWARD_WEIGHTS, data = spec.direction == CONV_BACKWARD_DATA;
        const int phase = weights ? 0 : kernel.phases - 1;
        struct guarded x = guarded_random(pixels_in(&spec.shape) * spec.shape.c, false),
                       y = guarded_random(pixels_out(&spec.shape) * spec.shape.k, false),
                       w = guarded_random(weights_in(&spec.shape), false);
        const struct kernel_array images = {x.data, spec.shape.n}, results = {y.data, spec.shape.n},
                                  filter = {w.data, spec.shape.kh};
        const struct kernel_array in[] = {data ? results : images, weights ? results : filter};
        const struct kernel_array out = weights ? filter : data ? images : results;
        uint8_t *own[2];
        for (int thread = 0; thread < 2; thread++) {
            own[thread] = mem_alloc(kernel.workspace + 64);
            uint8_t *workspace = (uint8_t *)(((uintptr_t)own[thread] + 63) / 64 * 64);
            memset(workspace, 0xff, kernel.workspace);
            struct kernel_call call = {.in = in, .out = &out, .params = kernel.params, .workspace = workspace,
                                       .thread = thread};
            for (int p = 0; p < phase; p++)
                for (int share = 0; share < kernel.shares[p]; share++)
                    assert_int_equal(kernel.run(&call, p, share), GRAPHI_OK);
            for (int share = thread; share < kernel.shares[phase]; share += 2)
                assert_int_equal(kernel.run(&call, phase, share), GRAPHI_OK);
        }
        size_t both = 0, either = 0;
        const uint32_t *one = (uint32_t *)(((uintptr_t)own[0] + 63) / 64 * 64),
                       *two = (uint32_t *)(((uintptr_t)own[1] + 63) / 64 * 64);
        for (size_t word = 0; word < kernel.workspace / 4; word++) { /* packed weights are the same of both */
            const bool first = one[word] != UINT32_MAX, second = two[word] != UINT32_MAX;
            both += first && second && one[word] != two[word];
            either += first != second;
        }
        assert_true(kernel.shares[phase] > 2 && both == 0 && either > 0);
        mem_free(own[0]);
        mem_free(own[1]);
        kernel_fini(&kernel);
        guarded_free(&x);
        guarded_free(&y);
        guarded_free(&w);
    }
}

/* No images, in the bound or in the call: nothing is read or written, and a weight gradient is zeros. */
static void no_images(void **state)
{
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int64_t images = 0; images < 3; images += 2)
            for (int64_t window = 1; window <= 5; window += 2)
                for (int groups = 1; groups <= 8; groups *= 8)
                    for (int rounded = 0; rounded < 2; rounded++) {
                        struct conv_shape s = square_conv(images, 9, 8, 16, window);
                        s.w = 7;
                        s.groups = groups;
                        s.ldx = s.c;
                        s.ldy = s.k;
                        check_shape(s, isa, rounded ? GRAPHI_BF16 : GRAPHI_F32, window > 1, 0);
                    }
}

/* 3 x 3 and 5 x 5 windows of all image sizes and paddings, for the clipping of Winograd's tiles. */
static void winograd_edges(void **state)
{
    (void)state;
    for (int i = 0; i < 45; i++) {
        int64_t window = i % 5 < 2 ? 5 : 3 - (i % 10 == 9);
        struct conv_shape s = {.n = 1 + random_below(3), .h = 1 + random_below(20), .w = 1 + random_below(40),
                               .kh = window, .kw = window, CONV_PLAIN, .c = 1 + random_below(20),
                               .k = 1 + random_below(random_below(3) ? 20 : 90)};
        s.pad_top = random_below(5);
        s.pad_left = random_below(5);
        s.pad_bottom = random_below(5);
        s.pad_right = random_below(5);
        s.ldx = s.c + random_below(2) * 3;
        s.ldy = s.k + random_below(2) * 5;
        if (conv_shape_finish(&s, "test") == GRAPHI_OK)
            check_shape(s, (enum isa)random_below(isa_detect() + 1), i % 3 ? GRAPHI_F32 : GRAPHI_BF16, random_below(2),
                        random_below(4) ? s.n : random_below(s.n));
    }
}

static double error_of(const struct problem *p, enum conv_algorithm algorithm, const double *sum, float *result,
                       int64_t count)
{
    struct problem with = *p;
    double error = 0;
    with.spec.algorithm = algorithm;
    run(&with, isa_detect(), false, result);
    for (int64_t i = 0; i < count; i++)
        error += (result[i] - sum[i]) * (result[i] - sum[i]);
    return sqrt(error);
}

/* A problem with its sums in float64, and room for a kernel's result. */
struct weighed {
    struct problem problem;
    int64_t count;
    double *sum;
    float *result;
};

static struct weighed weighed_open(const struct conv_shape *s, enum conv_direction d)
{
    const int64_t counts[] = {[CONV_FORWARD] = pixels_out(s) * s->k,
                              [CONV_BACKWARD_DATA] = pixels_in(s) * s->c,
                              [CONV_BACKWARD_WEIGHTS] = weights_in(s)};
    struct weighed w = {.problem = {.spec = {.shape = *s, .direction = d}, .images = s->n}, .count = counts[d]};
    w.problem.x = guarded_random(pixels_in(s) * s->c, false);
    w.problem.w = guarded_random(weights_in(s), false);
    w.problem.y = guarded_random(pixels_out(s) * s->k, false);
    w.sum = mem_zalloc((size_t)w.count * sizeof *w.sum);
    w.result = mem_alloc((size_t)w.count * sizeof *w.result);
    double *magnitude = mem_zalloc((size_t)w.count * sizeof *magnitude);
    reference(&w.problem, w.sum, magnitude);
    mem_free(magnitude);
    return w;
}

static double weighed_error(const struct weighed *w, enum conv_algorithm algorithm)
{
    return error_of(&w->problem, algorithm, w->sum, w->result, w->count);
}

static void weighed_close(struct weighed *w)
{
    mem_free(w->sum);
    mem_free(w->result);
    guarded_free(&w->problem.x);
    guarded_free(&w->problem.w);
    guarded_free(&w->problem.y);
}

/* Root mean square errors against float64, relative to the direct kernel's: the choice counts on these bounds. */
static void winograd_error(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{3, 28, 64, 48}, {3, 14, 128, 32}, {5, 16, 32, 32}, {5, 12, 16, 48}};
    if (isa_detect() < ISA_AVX2)
        skip();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (enum conv_direction d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++) {
            int64_t window = shapes[i][0], side = shapes[i][1];
            struct conv_shape s = square_conv(2, side, shapes[i][2], shapes[i][3], window);
            assert_int_equal(conv_shape_finish(&s, "test"), GRAPHI_OK);
            struct weighed w = weighed_open(&s, d);
            struct conv_spec *spec = &w.problem.spec;
            double direct = weighed_error(&w, CONV_DIRECT);
            for (enum conv_algorithm a = CONV_WINOGRAD_4; a < CONV_ALGORITHMS; a++) {
                if (!conv_possible(spec, a))
                    continue;
                double error = weighed_error(&w, a) / direct,
                       bound = conv_error_bound(d, window, a, false);
                if (!(error < bound && error > bound / 8))
                    fail_msg("window %lld direction %d algorithm %d: error %g, bound %g", (long long)window, d, a,
                             error, bound);
            }
            spec->multiplicands = GRAPHI_BF16;
            direct = weighed_error(&w, CONV_DIRECT);
            for (enum conv_algorithm a = CONV_WINOGRAD_4; a < CONV_ALGORITHMS; a++) {
                if (!conv_possible(spec, a) || !conv_winograd_pairs(spec, a, isa_detect()))
                    continue;
                double error = weighed_error(&w, a) / direct,
                       bound = conv_error_bound(d, window, a, true);
                if (!(error < bound && error > bound / 8))
                    fail_msg("bfloat16, window %lld direction %d algorithm %d: error %g, bound %g", (long long)window,
                             d, a, error, bound);
            }
            weighed_close(&w);
        }
}

/* Shapes whose sums have few terms (one channel, few pixels) or whose images are less than a tile: the direct kernel
 * hardly rounds there, and a fast algorithm that is chosen by the networks' errors is over the budget. Of the last
 * shape it is chosen. */
static void odd_shapes_keep_the_budget(void **state)
{
    (void)state;
    static const struct {
        int64_t n, h, w, c, k, window, pads[4];
    } shapes[] = {
        {4, 33, 1, 24, 1, 3, {0, 2, 0, 0}},  {2, 37, 27, 64, 1, 3, {2, 0, 1, 2}}, {2, 30, 10, 1, 128, 3, {1, 0, 2, 0}},
        {3, 4, 1, 24, 48, 5, {4, 3, 3, 2}},  {2, 14, 2, 1, 17, 5, {4, 4, 1, 1}},  {3, 3, 32, 64, 48, 5, {1, 1, 2, 4}},
        {1, 8, 8, 48, 128, 5, {2, 2, 2, 2}}, {1, 20, 4, 17, 1, 3, {1, 0, 0, 2}},  {2, 6, 6, 16, 48, 3, {1, 1, 1, 1}},
        {4, 14, 7, 4, 128, 5, {4, 4, 3, 1}}, {3, 2, 40, 16, 48, 3, {2, 1, 2, 0}}, {2, 8, 8, 16, 16, 3, {1, 1, 1, 1}},
        {32, 8, 8, 16, 16, 5, {2, 2, 2, 2}}, {8, 4, 4, 16, 16, 3, {1, 1, 1, 1}},  {8, 12, 13, 32, 24, 3, {1, 1, 1, 1}},
    };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    int fast = 0;
    for (int i = 0; i < SHAPES; i++)
        for (enum conv_direction d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++) {
            const int64_t *pads = shapes[i].pads, window = shapes[i].window;
            struct conv_shape s = {.n = shapes[i].n, .h = shapes[i].h, .w = shapes[i].w, .c = shapes[i].c,
                                   .k = shapes[i].k, .kh = window, .kw = window, CONV_PLAIN, .pad_top = pads[0],
                                   .pad_left = pads[1], .pad_bottom = pads[2], .pad_right = pads[3]};
            assert_int_equal(conv_shape_finish(&s, "test"), GRAPHI_OK);
            const struct conv_spec spec = {.shape = s, .direction = d};
            const enum conv_algorithm chosen = conv_choose(&spec, isa_detect());
            if (chosen == CONV_DIRECT)
                continue;
            struct weighed w = weighed_open(&s, d);
            const double error = weighed_error(&w, chosen) / weighed_error(&w, CONV_DIRECT);
            if (!(error <= conv_error_budget(0, GRAPHI_F32)))
                fail_msg("shape %d direction %d algorithm %d: %g times the direct error", i, d, chosen, error);
            fast += i == SHAPES - 1;
            weighed_close(&w);
        }
    assert_int_equal(fast, isa_detect() < ISA_AVX2 ? 0 : 3);
}

/* The checker of all kernels' arguments: a byte outside ends the process, on either side. */
static void guards_stop_readers(void **state)
{
    (void)state;
    enum { BYTES = 100 };
    if (getenv("GRAPHI_TESTS_EMULATED"))
        skip();
    for (int side = 0; side < 2; side++)
        for (int outside = 0; outside < 2; outside++) {
            struct guarded g = guarded_new(BYTES, side);
            const volatile char *byte = (const char *)g.data + (side ? -outside : BYTES - 1 + outside);
            pid_t child = fork();
            if (child == 0) {
                signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with all other tests in the child */
                (void)*byte;
                _exit(0);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(WIFEXITED(status) && WEXITSTATUS(status) == 0, !outside);
            guarded_free(&g);
        }
}

/* One value that is not finite, as docs/operations.md says it: the direct algorithm has IEEE's answer in the windows
 * that read it; Winograd's has nothing finite there, and may have NaN as far as its tile goes; both have the same bits
 * as without it elsewhere. A denormal number is a number. */
static void special_values(void **state)
{
    (void)state;
    enum { SIDE = 24, CHANNELS = 16, AT = 12, TILE = 8 };
    struct conv_shape s = square_conv(1, SIDE, CHANNELS, CHANNELS, 3);
    assert_int_equal(conv_shape_finish(&s, "test"), GRAPHI_OK);
    const int64_t count = pixels_out(&s) * s.k, at = ((int64_t)AT * SIDE + AT) * CHANNELS + 5;
    const float specials[] = {INFINITY, -INFINITY, NAN, 0x1p-140f};
    float *clean = mem_alloc((size_t)count * sizeof *clean), *found = mem_alloc((size_t)count * sizeof *found);
    double *sum = mem_alloc((size_t)count * sizeof *sum), *magnitude = mem_alloc((size_t)count * sizeof *magnitude);
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
        for (size_t v = 0; v < sizeof specials / sizeof *specials; v++) {
            bool denormal = fabsf(specials[v]) < 1;
            struct problem p = {.spec = {.shape = s}, .images = 1, .x = guarded_random(pixels_in(&s) * s.c, false),
                                .w = guarded_random(weights_in(&s), false), .y = guarded_random(count, false)};
            if (denormal)
                memset(p.x.data, 0, (size_t)(pixels_in(&s) * s.c) * 4);
            ((float *)p.x.data)[at] = 0;
            for (p.spec.algorithm = CONV_DIRECT; p.spec.algorithm < CONV_ALGORITHMS; p.spec.algorithm++) {
                bool direct = p.spec.algorithm == CONV_DIRECT;
                if (!direct && (denormal || !conv_possible(&p.spec, p.spec.algorithm)))
                    continue;
                ((float *)p.x.data)[at] = 0;
                run(&p, (enum isa)isa, false, clean);
                ((float *)p.x.data)[at] = specials[v];
                run(&p, (enum isa)isa, false, found);
                memset(sum, 0, (size_t)count * sizeof *sum);
                memset(magnitude, 0, (size_t)count * sizeof *magnitude);
                reference(&p, sum, magnitude);
                for (int64_t i = 0; i < count; i++) {
                    int64_t dy = llabs(i / CHANNELS / SIDE - AT), dx = llabs(i / CHANNELS % SIDE - AT);
                    bool reads = dy <= 1 && dx <= 1, far = dy > TILE || dx > TILE;
                    float want = (float)sum[i];
                    bool right = !reads && (direct || far) ? memcmp(&found[i], &clean[i], 4) == 0
                                 : !reads                  ? true
                                 : !direct                 ? !isfinite(found[i])
                                 : denormal                ? fabsf(found[i] - want) <= 0x1p-149f
                                                           : isnan(want) ? isnan(found[i]) : found[i] == want;
                    if (!right)
                        fail_msg("%s algorithm %d, %g: element %lld is %g, %g without it, expected %g",
                                 isa_name((enum isa)isa), p.spec.algorithm, specials[v], (long long)i, found[i],
                                 clean[i], want);
                }
            }
            guarded_free(&p.x);
            guarded_free(&p.w);
            guarded_free(&p.y);
        }
    mem_free(clean);
    mem_free(found);
    mem_free(sum);
    mem_free(magnitude);
}

/* Pairs of bfloat16 may reach beyond the image, or beyond an odd number of columns or channels: there a NaN or an
 * infinity must not meet a zero. */
static void special_values_of_pairs(void **state)
{
    (void)state;
    enum { TRIES = 12 };
    static const struct conv_shape shapes[] = {
        {.n = 2, .h = 3, .w = 7, .c = 5, .k = 3, .kh = 3, .kw = 3, CONV_PLAIN, .pad_top = 1, .pad_left = 1,
         .pad_bottom = 1, .pad_right = 1},
        {.n = 1, .h = 5, .w = 8, .c = 4, .k = 6, .kh = 5, .kw = 5, CONV_PLAIN, .pad_top = 2, .pad_left = 2,
         .pad_bottom = 2, .pad_right = 2},
        {.n = 3, .h = 7, .w = 9, .c = 3, .k = 5, .kh = 1, .kw = 1, CONV_PLAIN},
        {.n = 2, .h = 7, .w = 9, .c = 6, .k = 9, .kh = 3, .kw = 3, .stride_h = 2, .stride_w = 2, .dilation_h = 1,
         .dilation_w = 1, .groups = 3, .pad_left = 1},
        {.n = 1, .h = 6, .w = 7, .c = 2, .k = 70, .kh = 2, .kw = 3, .stride_h = 1, .stride_w = 1, .dilation_h = 1,
         .dilation_w = 3, .groups = 1, .pad_left = 4, .pad_right = 2},
        {.n = 2, .h = 4, .w = 5, .c = 8, .k = 8, .kh = 3, .kw = 3, .stride_h = 1, .stride_w = 1, .dilation_h = 1,
         .dilation_w = 1, .groups = 8, .pad_left = 1, .pad_right = 1},
    };
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes) * TRIES; i++) {
        struct problem p = {.spec = {.shape = shapes[i / TRIES], .multiplicands = GRAPHI_BF16}};
        const struct conv_shape *s = &p.spec.shape;
        assert_int_equal(conv_shape_finish(&p.spec.shape, "test"), GRAPHI_OK);
        p.images = s->n;
        for (int d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++)
            for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
                const int64_t counts[] = {pixels_in(s) * s->c, weights_in(s), pixels_out(s) * s->k};
                struct guarded *const arrays[] = {&p.x, &p.w, &p.y};
                static const int operands[][2] = {{0, 1}, {1, 2}, {0, 2}}; /* by direction */
                for (int k = 0; k < 3; k++)
                    *arrays[k] = guarded_random(counts[k], false);
                const int special = operands[d][random_below(2)];
                ((float *)arrays[special]->data)[random_below(counts[special])] = i % 2 ? NAN : INFINITY;
                p.spec.direction = (enum conv_direction)d;
                double *sum = mem_zalloc((size_t)result_count(&p) * sizeof *sum),
                       *magnitude = mem_zalloc((size_t)result_count(&p) * sizeof *magnitude);
                p.spec.algorithm = CONV_DIRECT;
                reference(&p, sum, magnitude);
                check(&p, (enum isa)isa, sum, magnitude);
                mem_free(sum);
                mem_free(magnitude);
                for (int k = 0; k < 3; k++)
                    guarded_free(arrays[k]);
            }
    }
}

/* The budget decides; without one, shapes of GoogLeNet take Winograd's algorithm with at most four times the error;
 * small or impossible ones do not; and the plain form is always direct. */
static void choice_by_table(void **state)
{
    (void)state;
    struct conv_spec spec = {.shape = square_conv(32, 28, 128, 192, 3)};
    assert_int_equal(conv_shape_finish(&spec.shape, "test"), GRAPHI_OK);
    for (spec.direction = CONV_FORWARD; spec.direction <= CONV_BACKWARD_WEIGHTS; spec.direction++) {
        spec.error_budget = 0;
        assert_int_equal(conv_choose(&spec, ISA_AVX512), CONV_WINOGRAD);
        assert_int_equal(conv_choose(&spec, ISA_PLAIN), CONV_DIRECT);
        spec.error_budget = 2;
        assert_int_equal(conv_choose(&spec, ISA_AVX512), CONV_WINOGRAD_4);
        spec.error_budget = 1;
        assert_int_equal(conv_choose(&spec, ISA_AVX512), CONV_DIRECT);
        spec.error_budget = 0;
        spec.multiplicands = GRAPHI_BF16;
        assert_int_equal(conv_choose(&spec, ISA_BF16), CONV_WINOGRAD); /* of pairs; 8 points would not be */
        assert_true(conv_choose(&spec, ISA_AVX512) >= CONV_WINOGRAD);  /* of float32: any tile is exact enough */
        spec.error_budget = 1; /* also where float32 points are more exact: what is asked for is no transform */
        for (enum isa isa = ISA_PLAIN; isa <= ISA_BF16; isa++)
            assert_int_equal(conv_choose(&spec, isa), CONV_DIRECT);
        spec.error_budget = 0;
        spec.multiplicands = GRAPHI_F32;
    }
    spec.direction = CONV_FORWARD;
    spec.shape.stride_w = 2;
    assert_int_equal(conv_choose(&spec, ISA_AVX512), CONV_DIRECT);
    spec.shape.stride_w = 1;
    spec.shape.c = 3;
    spec.shape.k = 16;
    assert_int_equal(conv_choose(&spec, ISA_AVX512), CONV_DIRECT);
}

/* A window that does not fit and channels that do not divide must be refused with a message. */
static void refuses_nonsense(void **state)
{
    (void)state;
    struct conv_shape s = {.n = 1, .h = 4, .w = 4, .c = 4, .k = 4, .kh = 5, .kw = 5, CONV_PLAIN};
    assert_int_equal(conv_shape_finish(&s, "here"), GRAPHI_INVALID);
    s.kh = s.kw = 3;
    s.groups = 3;
    assert_int_equal(conv_shape_finish(&s, "here"), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "here"));
    s.groups = 1;
    s.c = 0;
    assert_int_equal(conv_shape_finish(&s, "here"), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "images 1x4x4x0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guards_stop_readers), cmocka_unit_test(known_windows),  cmocka_unit_test(far_operands),
        cmocka_unit_test(few_channels), cmocka_unit_test(few_channels_where_it_pays),
        cmocka_unit_test(threads_have_scratch_of_their_own), cmocka_unit_test(short_lines),
        cmocka_unit_test(random_windows),      cmocka_unit_test(winograd_edges), cmocka_unit_test(winograd_error),
        cmocka_unit_test(odd_shapes_keep_the_budget),
        cmocka_unit_test(special_values),      cmocka_unit_test(special_values_of_pairs),
        cmocka_unit_test(choice_by_table), cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(no_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
