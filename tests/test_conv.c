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
#include "conv_check.h"
#include "conv_shapes.h"
#include "guarded.h"
#include "kernels/conv_choice.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"
#include "kernels/pack.h"

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

/* A 1 x 1 gradient in bfloat16 whose operands do not fit the caches goes through its panels for some pixels after the
 * other: no small shape gets there, so nothing else would see a panel left out. Of 16,511 channels in 130 tiles, as
 * many each but for the last, this one would have less than none. Those whose calls ask for what follows have shorter
 * ones. */
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
        cmocka_unit_test(random_windows),      cmocka_unit_test(winograd_edges), cmocka_unit_test(winograd_error),
        cmocka_unit_test(odd_shapes_keep_the_budget),
        cmocka_unit_test(special_values),      cmocka_unit_test(special_values_of_pairs),
        cmocka_unit_test(choice_by_table), cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(no_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
