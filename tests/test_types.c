/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: every conversion against one in long double, and what moves elements without arithmetic for each type
 * and up to the highest rank. */
#include "base/element.h"
#include "base/random.h"
#include "engine/run/numerics.h"
#include "graph/op.h"
#include "graphi/ops.h"
#include "kernels/cast.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

enum { COUNT = 600 };

union element {
    float f32;
    double f64;
    uint16_t u16;
    uint8_t u8;
    uint32_t u32;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint64_t u64;
};

static bool is_signed(graphi_dtype dtype)
{
    return dtype == GRAPHI_I8 || dtype == GRAPHI_I16 || dtype == GRAPHI_I32 || dtype == GRAPHI_I64;
}

/* binary16 by its definition: sign, exponent of 5 bits with bias 15, 10 bits of fraction. */
static long double half_as_defined(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const long double size = exponent == 31 ? (fraction ? (long double)NAN : (long double)INFINITY)
                             : exponent   ? ldexpl(1024 + fraction, exponent - 25)
                                            : ldexpl(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

static long double read_element(graphi_dtype dtype, const union element *x)
{
    float f;
    const uint32_t high = (uint32_t)x->u16 << 16;
    memcpy(&f, &high, sizeof f);
    switch (dtype) {
    case GRAPHI_F32: return x->f32;
    case GRAPHI_F64: return x->f64;
    case GRAPHI_BF16: return f;
    case GRAPHI_F16: return half_as_defined(x->u16);
    case GRAPHI_BOOL: return x->u8 != 0;
    case GRAPHI_U8: return x->u8;
    case GRAPHI_U16: return x->u16;
    case GRAPHI_U32: return x->u32;
    case GRAPHI_U64: return x->u64;
    case GRAPHI_I8: return x->i8;
    case GRAPHI_I16: return x->i16;
    case GRAPHI_I32: return x->i32;
    default: return x->i64;
    }
}

/* Of 65,536 candidates the nearest, of two the even one. Halves are ordered as their bits are. */
static uint16_t nearest_half(long double value)
{
    uint16_t low = 0, high = 0x7c00;
    const long double size = fabsl(value);
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (size >= 65520)
        return sign | 0x7c00;
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        *(half_as_defined(middle) <= size ? &low : &high) = middle;
    }
    const long double next = high == 0x7c00 ? 65536 : half_as_defined(high);
    const long double below = size - half_as_defined(low), above = next - size;
    return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

static union element expected(graphi_dtype from, graphi_dtype to, long double x)
{
    union element out = {0};
    const int bits = 8 * (int)graphi_dtype_size(to);
    const long double most = ldexpl(1, is_signed(to) ? bits - 1 : bits) - 1, least = is_signed(to) ? -most - 1 : 0;
    uint32_t u;
    const float single = dtype_is_float(from) ? (float)(double)x : (float)x;
    memcpy(&u, &single, sizeof u);
    if (to == GRAPHI_F64)
        out.f64 = (double)x;
    else if (to == GRAPHI_F32)
        out.f32 = single;
    else if (to == GRAPHI_BF16)
        out.u16 = (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    else if (to == GRAPHI_F16)
        out.u16 = nearest_half(dtype_is_float(from) ? x : single);
    else if (to == GRAPHI_BOOL)
        out.u8 = x != 0;
    else if (!dtype_is_float(from)) /* the low bits */
        out.u64 = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    else
        out.u64 = isnan(x) ? 0 : x >= most ? (uint64_t)most : x <= least ? (uint64_t)(int64_t)least
                                                                           : (uint64_t)(int64_t)x;
    if (dtype_is_float(from) && to == GRAPHI_U64 && x > 0 && x < most)
        out.u64 = (uint64_t)x;
    return out;
}

/* Numbers of the type: those at which rounding and clamping turn, then any bits. */
static void fill_with(graphi_dtype dtype, union element *x)
{
    static const double edges[] = {0,     -0.0, 1,      -1,        2.5,       -2.5,    127,       128,    -129,
                                   255.9, 256,  32768,  -32769.5,  65519.999, 65520,   0x1p-24,   0x1p-25, 0x3p-26,
                                   2049,  2051, 4.3e9,  0x1p63,    -0x1p63,   0x1p64,  1.0000001, 1e-6,   6.1e-5,
                                   1e38,  1e300, -1e300, INFINITY, -INFINITY, NAN,     0x1.004p0, 0x1.006p0};
    enum { EDGES = sizeof edges / sizeof *edges };
    const uint64_t mask = dtype == GRAPHI_BOOL ? 1 : UINT64_MAX >> (64 - 8 * graphi_dtype_size(dtype));
    for (int i = 0; i < COUNT; i++) {
        const struct random4 r = random_philox(dtype, 5, (uint64_t)i);
        x[i].u64 = i < EDGES ? value_bits(dtype, edges[i]) : ((uint64_t)r.v[0] << 32 | r.v[1]) & mask;
        if (i >= EDGES && i % 2 && dtype_is_float(dtype)) /* of sizes that other types have, too */
            x[i].u64 = value_bits(dtype, ldexp((double)r.v[2] - 0x1p31, (int)(r.v[3] % 60) - 50));
        const long double size = fabsl(read_element(dtype, &x[i]));
        if (size > 0 && size < 0x1p-126) /* float32 has no normal number there */
            x[i].u64 = 0;
    }
}

static void pack_elements(graphi_dtype dtype, const union element *x, char *out)
{
    for (int i = 0; i < COUNT; i++)
        memcpy(out + (size_t)i * graphi_dtype_size(dtype), &x[i], graphi_dtype_size(dtype));
}

/* A number rounded twice, cut to the wrong side or wrapped where it should stay at the end of the range. */
static void casts_are_as_defined(void **state)
{
    static union element x[COUNT];
    static char in[8 * COUNT], out[8 * COUNT];
    for (graphi_dtype from = 0; from < GRAPHI_DTYPES; from++) {
        fill_with(from, x);
        pack_elements(from, x, in);
        for (graphi_dtype to = 0; to < GRAPHI_DTYPES; to++) {
            const int64_t dims[] = {COUNT};
            const struct array_desc a = array_dense(from, 1, dims), b = array_dense(to, 1, dims);
            const size_t bytes = graphi_dtype_size(to);
            struct kernel kernel;
            check_ok(cast_bind(&a, &b, to % 2 ? isa_detect() : ISA_PLAIN, &kernel));
            const struct kernel_call call = {.in = &(struct kernel_array){in, COUNT},
                                             .out = &(struct kernel_array){out, COUNT}, .params = kernel.params};
            check_ok(kernel_run_serial(&kernel, &call));
            kernel_fini(&kernel);
            for (int i = 0; i < COUNT; i++) {
                const long double number = read_element(from, &x[i]);
                const union element want = from == to ? x[i] : expected(from, to, number);
                union element found = {0};
                memcpy(&found, out + (size_t)i * bytes, bytes);
                const bool none = from != to && isnan(number) && dtype_is_float(to);
                if (none ? !isnan(read_element(to, &found)) : memcmp(&found, &want, bytes) != 0)
                    fail_msg("%s to %s of %Lg: found %llx, expected %llx", graphi_dtype_name(from),
                             graphi_dtype_name(to), number, (unsigned long long)found.u64,
                             (unsigned long long)want.u64);
            }
        }
    }
}

/* Every float16 there and back, and those between two. */
static void halves_are_as_defined(void **state)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const long double number = half_as_defined((uint16_t)bits);
        if (isnan(number)) {
            assert_true(isnan(half_value((uint16_t)bits)) && isnan(half_as_defined(half_bits((double)NAN))));
            continue;
        }
        assert_true((long double)half_value((uint16_t)bits) == number);
        assert_int_equal(half_bits((double)number), bits);
        if ((bits & 0x7fff) >= 0x7bff)
            continue;
        const double next = (double)half_as_defined((uint16_t)(bits + 1)), middle = ((double)number + next) / 2;
        assert_int_equal(half_bits(middle), bits + bits % 2);
        assert_int_equal(half_bits(nextafter(middle, (double)number)), bits);
        assert_int_equal(half_bits(nextafter(middle, next)), bits + 1);
    }
}

/* Runs a graph of input "x" and gives its output "y". */
static void run_graph(const graphi_graph *g, graphi_dtype dtype, const void *x, size_t x_bytes, void *y, size_t y_bytes)
{
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &state));
    check_ok(graphi_run_create(plan, state, &run));
    check_ok(graphi_run_set(run, "x", dtype, x, x_bytes));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", dtype, y, y_bytes));
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
}

/* y = flat(transpose(rows 1 to 5 of x above w)) within a border of ones, all of one type. */
static graphi_graph *moves(graphi_dtype dtype, const void *w)
{
    static const int64_t dims[] = {3, 4};
    const graphi_initializer given = {.data = w};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const graphi_value both[] = {graphi_input(g, "x", dtype, 2, dims),
                                 graphi_parameter(g, "w", dtype, 2, dims, &given)};
    const graphi_value rows = graphi_slice(g, graphi_concat(g, 2, both, 0), 0, 1, 5);
    const graphi_value line = graphi_reshape(g, graphi_transpose(g, rows, NULL, 0), GRAPHI_LIST(16));
    graphi_output(g, "y", graphi_pad(g, line, GRAPHI_LIST(1), GRAPHI_LIST(2), 1));
    check_ok(graphi_graph_status(g));
    return g;
}

/* A type of another width than the kernel thinks, or one that inputs, parameters or outputs do not take. */
static void every_type_moves(void **state)
{
    static union element x[COUNT];
    static char packed[8 * COUNT], y[8 * COUNT], want[8 * COUNT];
    for (graphi_dtype dtype = 0; dtype < GRAPHI_DTYPES; dtype++) {
        const size_t size = graphi_dtype_size(dtype);
        const uint64_t one = value_bits(dtype, 1);
        fill_with(dtype, x);
        pack_elements(dtype, x, packed);
        graphi_graph *g = moves(dtype, packed + 12 * size);
        run_graph(g, dtype, packed, 12 * size, y, 19 * size);
        for (int i = 0; i < 19; i++)
            memcpy(want + (size_t)i * size, &one, size);
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 4; c++)
                memcpy(want + (size_t)(1 + c * 4 + r) * size, packed + (size_t)((r + 1) * 4 + c) * size, size);
        if (memcmp(y, want, 19 * size) != 0)
            fail_msg("%s: found other elements, expected those that were moved", graphi_dtype_name(dtype));
        graphi_graph_destroy(g);
    }
}

/* A list of dimensions that is one too short somewhere. */
static void the_highest_rank_is_taken(void **state)
{
    enum { R = GRAPHI_MAX_RANK, SIZE = 3 * 4 * 6 * 5 };
    int64_t dims[R + 1] = {3, 1, 4, 1, 6, 1, 1, 5, 1}, perm[R];
    float x[SIZE], y[SIZE];
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value v = graphi_input(g, "x", GRAPHI_F32, R, dims);
    for (int i = 0; i < R; i++)
        perm[i] = R - 1 - i;
    for (int i = 0; i < SIZE; i++)
        x[i] = (float)i - 100;
    v = graphi_relu(g, graphi_transpose(g, v, perm, R));
    graphi_output(g, "y", graphi_slice(g, v, R - 1, 1, 3));
    run_graph(g, GRAPHI_F32, x, sizeof x, y, 2 * sizeof y / 3);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 4; b++)
            for (int c = 0; c < 6; c++)
                for (int d = 0; d < 5; d++) {
                    const float from = x[(((a + 1) * 4 + b) * 6 + c) * 5 + d];
                    assert_true(y[((d * 6 + c) * 4 + b) * 2 + a] == (from > 0 ? from : 0));
                }
    assert_int_equal(graphi_input(g, "more", GRAPHI_F32, R + 1, dims), GRAPHI_NONE);
    assert_non_null(strstr(graphi_message(), "found rank 9, expected 0 to 8"));
    graphi_graph_destroy(g);
}

/* Arithmetic on bytes that are no float32 numbers. */
static void others_are_refused_by_name(void **state)
{
    static const char *const kinds[] = {"relu", "add", "add_n", "fma", "matmul", "reduce_sum", "reduce_max", "softmax",
                                         "expand", "sum_to", "global_avg_pool", "batch_norm"};
    const int64_t dims[] = {2, 4, 4, 2};
    const graphi_attribute shape = graphi_ints("dims", dims, 4);
    for (graphi_dtype dtype = GRAPHI_BF16; dtype < GRAPHI_DTYPES; dtype++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const struct op_kind *kind = op_find(kinds[k]);
            const bool shaped = kind->attributes && strcmp(kind->attributes->name, "dims") == 0;
            graphi_graph *g;
            check_ok(graphi_graph_create(&g));
            const graphi_value v = graphi_input(g, "x", dtype, 4, dims), in[] = {v, v, v, v, v};
            const graphi_value out = graphi_op(g, kinds[k], kind->min_inputs, in, shaped, &shape);
            if (out != GRAPHI_NONE || graphi_graph_status(g) != GRAPHI_INVALID ||
                !strstr(graphi_message(), graphi_dtype_name(dtype)))
                fail_msg("%s of %s: found '%s', expected a refusal that names the type", kinds[k],
                         graphi_dtype_name(dtype), out == GRAPHI_NONE ? graphi_message() : "no refusal");
            graphi_graph_destroy(g);
        }
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    assert_int_equal(graphi_input(g, "x", GRAPHI_DTYPES, 0, NULL), GRAPHI_NONE);
    assert_non_null(strstr(graphi_message(), "expected a graphi_dtype"));
    graphi_graph_destroy(g);
}

/* A gradient that ends at a conversion. */
static void gradients_pass_conversions(void **state)
{
    static const graphi_dtype between[] = {GRAPHI_F64, GRAPHI_F16, GRAPHI_BF16};
    const float x[] = {1, -2, 3};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        float y[3];
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        const graphi_value v = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){3});
        const graphi_value there = graphi_cast(g, v, between[i]), back = graphi_cast(g, there, GRAPHI_F32);
        const graphi_value loss = graphi_reduce_sum(g, graphi_square(g, back), NULL, 0, 0);
        graphi_value gradient;
        check_ok(graphi_gradients(g, loss, 1, &v, &gradient));
        graphi_output(g, "y", gradient);
        run_graph(g, GRAPHI_F32, x, sizeof x, y, sizeof y);
        for (int k = 0; k < 3; k++)
            assert_true(y[k] == 2 * x[k]);
        graphi_graph_destroy(g);
    }
}

/* --check-finite that looks at some types alone. */
static void infinities_of_all_floats_are_seen(void **state)
{
    static const graphi_dtype floats[] = {GRAPHI_F32, GRAPHI_BF16, GRAPHI_F16, GRAPHI_F64};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        for (int bad = 0; bad < 3; bad++) {
            const double numbers[] = {1, bad == 1 ? (double)INFINITY : bad ? (double)NAN : 2, -60000};
            const size_t size = graphi_dtype_size(floats[i]);
            char data[3 * 8];
            for (int k = 0; k < 3; k++) {
                const uint64_t bits = value_bits(floats[i], numbers[k]);
                memcpy(data + (size_t)k * size, &bits, size);
            }
            const struct array_desc desc = array_dense(floats[i], 1, (int64_t[]){3});
            assert_int_equal(finite_array(&desc, data, 3), !bad);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_are_as_defined),       cmocka_unit_test(halves_are_as_defined),
        cmocka_unit_test(every_type_moves),           cmocka_unit_test(the_highest_rank_is_taken),
        cmocka_unit_test(others_are_refused_by_name), cmocka_unit_test(gradients_pass_conversions),
        cmocka_unit_test(infinities_of_all_floats_are_seen),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
