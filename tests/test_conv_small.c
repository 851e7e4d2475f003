/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that a tile of the direct kernel would not suit: few channels of the result, and short lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conv_check.h"
#include "conv_shapes.h"

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

/* Weight gradients of 1 x 1 windows, a matrix product: of parts of the images and of all of them, odd numbers of
 * images and fewer than there may be, groups that threads have whole products of, pixels that lie apart. `phases`: of
 * the kernel, two with parts. An epilogue is refused. */
static void one_product_of_all_pixels(void **state)
{
    (void)state;
    static const struct {
        int n, side, c, k, groups, apart, images, phases;
    } cases[] = {{5, 24, 64, 64, 1, 0, 5, 2},  {6, 20, 96, 40, 1, 3, 4, 2},   {8, 16, 192, 96, 3, 5, 8, 2},
                 {3, 40, 30, 90, 3, 0, 3, 2},  {2, 30, 256, 512, 1, 0, 2, 1}, {2, 31, 300, 130, 1, 1, 1, 1},
                 {9, 8, 260, 70, 1, 0, 0, 2}, {3, 5, 7, 9, 1, 0, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conv_shape s = square_conv(cases[i].n, cases[i].side, cases[i].c, cases[i].k, 1);
        s.groups = cases[i].groups;
        s.ldx = s.c + cases[i].apart;
        s.ldy = s.k + cases[i].apart;
        assert_int_equal(conv_shape_finish(&s, "test"), GRAPHI_OK);
        struct kernel kernel;
        const struct program none = {.inputs = 1, .outputs = 1};
        struct conv_spec spec = {.shape = s, .direction = CONV_BACKWARD_WEIGHTS, .algorithm = CONV_DIRECT,
                                 .epilogue = {.program = &none}};
        assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_UNSUPPORTED);
        spec.epilogue.program = NULL;
        assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
        if (kernel.phases != cases[i].phases)
            fail_msg("case %d has %d phases, expected %d", (int)i, kernel.phases, cases[i].phases);
        kernel_fini(&kernel);
        check_shape(s, isa_detect(), GRAPHI_F32, false, cases[i].images);
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
                 {square_conv(9, 6, 40, 40, 3), CONV_BACKWARD_WEIGHTS},
                 {square_conv(9, 24, 64, 64, 1), CONV_BACKWARD_WEIGHTS}};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_channels), cmocka_unit_test(few_channels_where_it_pays), cmocka_unit_test(short_lines),
        cmocka_unit_test(one_product_of_all_pixels),
        cmocka_unit_test(threads_have_scratch_of_their_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
