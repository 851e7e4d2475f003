/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of equal kernels of convolutions are equal byte by byte, so that operations share them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conv_shapes.h"
#include "kernels/conv.h"
#include "kernels/conv_choice.h"
#include "kernels/conv_pack.h"
#include "kernels/conv_shape.h"

/* Leaves `byte` on all of the stack that the next call has. */
static __attribute__((noinline)) void dirty_stack(int byte)
{
    volatile char below[16384];
    for (size_t i = 0; i < sizeof below; i++)
        below[i] = (char)byte;
}

static void bind_form(const struct conv_spec *spec, struct kernel *kernel)
{
    struct conv_form form;
    if (conv_form_wanted(spec, isa_detect(), &form) == CONV_FORM_NONE)
        *kernel = (struct kernel){0};
    else
        assert_int_equal(conv_pack_bind(&form, isa_detect(), kernel), GRAPHI_OK);
}

static void bind_conv(const struct conv_spec *spec, struct kernel *kernel)
{
    assert_int_equal(conv_bind(spec, isa_detect(), kernel), GRAPHI_OK);
}

static void check_alike(const struct conv_spec *spec, void (*bind)(const struct conv_spec *, struct kernel *))
{
    struct kernel kernel[2];
    for (int i = 0; i < 2; i++) {
        dirty_stack(0x11 << i);
        bind(spec, &kernel[i]);
    }
    assert_int_equal(kernel[0].params_bytes, kernel[1].params_bytes);
    if (kernel[0].params_bytes && memcmp(kernel[0].params, kernel[1].params, kernel[0].params_bytes))
        fail_msg("%s: parameters of equal kernels differ", kernel[0].name);
    kernel_fini(&kernel[0]);
    kernel_fini(&kernel[1]);
}

static void check_all_alike(enum conv_direction direction, enum conv_algorithm algorithm, graphi_dtype multiplicands,
                            int64_t groups, int64_t window)
{
    struct conv_spec spec = {.shape = square_conv(2, 8, 16, 16, window),
                             .direction = direction,
                             .algorithm = algorithm,
                             .multiplicands = multiplicands};
    spec.shape.groups = groups;
    assert_int_equal(conv_shape_finish(&spec.shape, "conv"), GRAPHI_OK);
    if (!conv_possible(&spec, algorithm))
        return;
    check_alike(&spec, bind_conv);
    check_alike(&spec, bind_form);
    const struct pool_shape halves = {
        .n = 2, .h = 8, .w = 8, .c = 16, .kh = 2, .kw = 2, .stride_h = 2, .stride_w = 2};
    spec.pool = &(struct pool_spec){.shape = halves};
    if (direction == CONV_FORWARD && groups == 1)
        check_alike(&spec, bind_conv);
}

/* Operations with equal kernels would not share their parameters if what lay on the stack came along. */
static void equal_kernels_have_equal_parameters(void **state)
{
    static const graphi_dtype multiplicands[] = {GRAPHI_F32, GRAPHI_BF16};
    (void)state;
    for (int direction = CONV_FORWARD; direction <= CONV_BACKWARD_WEIGHTS; direction++)
        for (int algorithm = CONV_DIRECT; algorithm < CONV_ALGORITHMS; algorithm++)
            for (int k = 0; k < 8; k++)
                check_all_alike((enum conv_direction)direction, (enum conv_algorithm)algorithm, multiplicands[k % 2],
                                k / 2 % 2 ? 16 : 1, k < 4 ? 3 : 1); /* depthwise, and not */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_kernels_have_equal_parameters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
