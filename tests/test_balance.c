/* SPDX-License-Identifier: Apache-2.0 */
/* Threads have the same work: what each one's shares of a phase write, weighed by the multiplications behind it. The
 * shapes are those of which shares as many as each other were not: the last panel or block of channels is narrow,
 * their number odd, or a stride gives some pixels more taps than others; shares are few. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "base/memory.h"
#include "conv_shapes.h"
#include "guarded.h"
#include "kernels/add_n.h"
#include "kernels/conv_kernel.h"
#include "kernels/conv_shape.h"
#include "kernels/norm.h"
#include "kernels/program.h"
#include "kernels/shares.h"
#include "kernels/softmax.h"

/* Nothing computes this NaN. */
static const uint32_t UNWRITTEN = 0xffffffff;

/* Taps of the window that a result coordinate reads through. */
static double taps_at(const struct conv_axis *axis, int64_t result)
{
    double taps = 0;
    for (int64_t t = 0; t < axis->taps; t++) {
        const int64_t from = result + axis->pad - t * axis->dilation;
        const bool meets = !axis->backward || (from >= 0 && from % axis->stride == 0);
        const int64_t source = conv_source(axis, result, t);
        taps += meets && source >= 0 && source < axis->source;
    }
    return taps;
}

/* The images behind a word of the workspace, where a direct weight gradient's parts, of images or of their pixels, lie
 * one after the other. */
static double images_behind(const struct conv_spec *spec, int64_t parts, int64_t count, int64_t word)
{
    int64_t begin, end;
    if (spec->algorithm != CONV_DIRECT || word >= parts * count)
        return 1;
    const int64_t pixels = conv_weights_flat.takes(spec, isa_detect()) ? spec->shape.oh * spec->shape.ow : 1;
    split_range(spec->shape.n * pixels, (int)parts, (int)(word / count), &begin, &end);
    return (double)(end - begin) / (double)pixels;
}

/* Work behind the words written since the last call, which are marked as seen. */
static double take_written(const struct conv_spec *spec, struct kernel_array out, int64_t count, uint32_t *seen)
{
    const bool weights = spec->direction == CONV_BACKWARD_WEIGHTS, data = spec->direction == CONV_BACKWARD_DATA;
    const struct conv_axis y = conv_axis_y(&spec->shape, data), x = conv_axis_x(&spec->shape, data);
    const int64_t channels = data ? spec->shape.c : spec->shape.k;
    double work = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t pixel = i / channels;
        if (((const uint32_t *)out.data)[i] == UNWRITTEN || seen[i])
            continue;
        seen[i] = 1;
        work += weights ? 1 : taps_at(&y, pixel / x.result % y.result) * taps_at(&x, pixel % x.result);
    }
    return work;
}

/* Marks words of the workspace that are scratch and no part of a sum: of all shares of the first phase, done by one
 * thread, several write them or, where they are another thread's, none. Returns how many others there are. */
static int64_t mark_scratch(const struct kernel *kernel, struct kernel_call call, int64_t words, uint32_t *seen)
{
    uint32_t *workspace = call.workspace;
    int *writers = mem_zalloc(sizeof *writers * (size_t)(words + 1));
    call.thread = 0;
    for (int share = 0; share < kernel->shares[0]; share++) {
        memset(workspace, 0xff, kernel->workspace);
        assert_int_equal(kernel->run(&call, 0, share), GRAPHI_OK);
        for (int64_t i = 0; i < words; i++)
            writers[i] += workspace[i] != UNWRITTEN;
    }
    int64_t sums = 0;
    for (int64_t i = 0; i < words; i++)
        sums += !(seen[i] = writers[i] != 1);
    mem_free(writers);
    return sums;
}

/* What the busiest of the threads has of a phase's work, over the mean. */
static double busiest(const struct kernel *kernel, const struct conv_spec *spec, const struct kernel_array *in,
                      struct kernel_array out, int64_t count, int phase)
{
    const int threads = spec->threads;
    const int64_t room = (int64_t)(kernel->workspace / 4);
    uint32_t *workspace = mem_alloc(kernel->workspace + 4), *seen = mem_zalloc(sizeof *seen * (size_t)(count + room));
    struct kernel_call call = {.in = in, .out = &out, .params = kernel->params, .workspace = workspace,
                               .width = threads};
    double most = 0, all = 0;
    const bool weights = spec->direction == CONV_BACKWARD_WEIGHTS;
    const int64_t sums = weights ? mark_scratch(kernel, call, room, seen + count) : 0;
    memset(workspace, 0xff, kernel->workspace);
    memset(out.data, 0xff, (size_t)count * 4);
    for (int p = 0; p <= phase; p++)
        for (int thread = 0; thread < threads; thread++) {
            int64_t begin, end;
            call.thread = thread;
            split_range(kernel->shares[p], threads, thread, &begin, &end);
            for (int64_t share = begin; share < end; share++)
                assert_int_equal(kernel->run(&call, p, (int)share), GRAPHI_OK);
            double work = take_written(spec, out, count, seen);
            for (int64_t i = 0; i < room && weights; i++) {
                if (workspace[i] != UNWRITTEN && !seen[count + i])
                    work += images_behind(spec, sums / count, count, i);
                seen[count + i] |= workspace[i] != UNWRITTEN;
            }
            if (p == phase) {
                most = fmax(most, work);
                all += work;
            }
        }
    mem_free(workspace);
    mem_free(seen);
    return most * threads / all;
}

static void check_threads(struct conv_shape shape, enum conv_direction direction, enum conv_algorithm algorithm,
                          int threads, double bound)
{
    struct conv_spec spec = {.shape = shape, .direction = direction, .algorithm = algorithm, .threads = threads,
                             .cores = threads};
    struct kernel kernel;
    assert_int_equal(conv_shape_finish(&spec.shape, "test"), GRAPHI_OK);
    const struct conv_shape *s = &spec.shape;
    const int64_t count[] = {s->n * s->oh * s->ow * s->k, s->n * s->h * s->w * s->c, s->kh * s->kw * s->c * s->k};
    struct guarded y = guarded_random(count[0], false), x = guarded_random(count[1], false),
                   w = guarded_random(count[2], false);
    const struct kernel_array in[][2] = {{{x.data, s->n}, {w.data, 1}}, {{y.data, s->n}, {w.data, 1}},
                                         {{x.data, s->n}, {y.data, s->n}}};
    const struct kernel_array out[] = {{y.data, s->n}, {x.data, s->n}, {w.data, 1}};
    assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
    const int phase = direction == CONV_BACKWARD_WEIGHTS ? 0 : kernel.phases - 1;
    const double most = busiest(&kernel, &spec, in[direction], out[direction], count[direction], phase);
    if (!(most < bound))
        fail_msg("direction %d of %lldx%lldx%lldx%lld to %lld, window %lld: the busiest of %d threads has %.3f of the "
                 "mean work, expected less than %.2f", direction, (long long)s->n, (long long)s->h, (long long)s->w,
                 (long long)s->c, (long long)s->k, (long long)s->kh, threads, most, bound);
    kernel_fini(&kernel);
    guarded_free(&x);
    guarded_free(&w);
    guarded_free(&y);
}

static void check(struct conv_shape shape, enum conv_direction direction, enum conv_algorithm algorithm)
{
    check_threads(shape, direction, algorithm, 2, 1.04);
}

static struct conv_shape strided(struct conv_shape shape)
{
    shape.stride_h = shape.stride_w = 2;
    return shape;
}

/* 224 channels are panels of 64, 64, 64 and 32, of which two stay in the level-2 cache together. */
static void panels_are_narrow(void **state)
{
    (void)state;
    check(square_conv(8, 12, 1024, 224, 1), CONV_FORWARD, CONV_DIRECT);
    check(square_conv(8, 12, 224, 1024, 1), CONV_BACKWARD_DATA, CONV_DIRECT);
}

/* Eight tiles of 64, 64, 64 and 32 channels for as many threads: by work, one of them would have two and one none. */
static void tiles_are_few(void **state)
{
    (void)state;
    check_threads(square_conv(2, 4, 1024, 224, 1), CONV_FORWARD, CONV_DIRECT, 8, 1.2);
}

/* The most shares there are: of any number of cores about SHARES_MAX, as many for each of them or of their parts, and
 * on a power of two those of two threads. */
static void shares_suit_cores(void **state)
{
    (void)state;
    assert_int_equal(shares_for_cores(0), SHARES_MAX);
    for (int cores = 1; cores <= 4096; cores++) {
        const int shares = shares_for_cores(cores), parts = (int)divide_up(cores, shares);
        const bool power = (cores & (cores - 1)) == 0;
        assert_true(shares >= SHARES_MAX / 2 && shares < 2 * SHARES_MAX);
        assert_true(power ? shares == SHARES_MAX : cores > 32 || shares % 2 == 0 || shares == cores);
        assert_true(cores <= shares ? shares % cores == 0 : shares * parts - cores < parts);
    }
}

/* Machines whose cores are no power of two: of 64 shares the busiest of 12, 24, 48 or 68 has 1.13, 1.13, 1.50 and 1.06
 * of the mean work. Tiles of pixels are few, so these are cut where that is even. */
static void cores_are_no_power_of_two(void **state)
{
    (void)state;
    static const struct {
        int cores;
        double bound;
    } machines[] = {{6, 1.04}, {12, 1.08}, {20, 1.08}, {24, 1.1}, {28, 1.1}, {48, 1.2}, {68, 1.2}};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const int cores = machines[i].cores;
        const double bound = machines[i].bound;
        check_threads(square_conv(32, 14, 128, 192, 1), CONV_FORWARD, CONV_DIRECT, cores, bound);
        check_threads(square_conv(32, 14, 128, 192, 1), CONV_BACKWARD_DATA, CONV_DIRECT, cores, bound);
        if (isa_detect() < ISA_AVX2)
            continue;
        check_threads(square_conv(32, 28, 32, 64, 3), CONV_FORWARD, CONV_WINOGRAD, cores, bound);
        check_threads(square_conv(32, 24, 32, 64, 3), CONV_BACKWARD_DATA, CONV_WINOGRAD, cores, bound);
    }
}

/* Of the gradient of a stride of 2 a quarter of the pixels has one tap, a quarter four. */
static void taps_differ(void **state)
{
    (void)state;
    check(strided(square_conv(64, 24, 32, 32, 3)), CONV_BACKWARD_DATA, CONV_DIRECT);
    check(strided(square_conv(64, 24, 32, 32, 3)), CONV_FORWARD, CONV_DIRECT);
}

/* Four times three tiles in two parts; twelve; nine. Of three images: eight tiles in two parts of the pixels; 27. */
static void weights_in_tiles(void **state)
{
    (void)state;
    check(square_conv(8, 4, 832, 192, 1), CONV_BACKWARD_WEIGHTS, CONV_DIRECT);
    check(square_conv(8, 12, 384, 64, 1), CONV_BACKWARD_WEIGHTS, CONV_DIRECT);
    check(square_conv(8, 6, 96, 64, 3), CONV_BACKWARD_WEIGHTS, CONV_DIRECT);
    check(square_conv(3, 12, 256, 128, 1), CONV_BACKWARD_WEIGHTS, CONV_DIRECT);
    check(square_conv(3, 6, 96, 192, 3), CONV_BACKWARD_WEIGHTS, CONV_DIRECT);
}

/* Tiles of more rows than the micro-kernel's callers have room for, of none, or of less. */
static void tiles_have_rows(void **state)
{
    (void)state;
    enum { MOST = 128, ROWS = 70000 };
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        const int64_t tiles = conv_row_tiles(rows, MOST);
        assert_true(tiles == 1 || tiles % 2 == 0);
        for (int64_t i = 0, begin, end; i < tiles; i++) {
            split_range(rows, (int)tiles, (int)i, &begin, &end);
            if (end - begin < 1 || end - begin > MOST)
                fail_msg("tile %lld of %lld has %lld of %lld rows", (long long)i, (long long)tiles,
                         (long long)(end - begin), (long long)rows);
        }
    }
}

/* Blocks of 64 channels would be five, seven and nine, 416 channels six of which the last has 16; three of 128 in five
 * parts each. */
static void weights_in_blocks(void **state)
{
    (void)state;
    if (isa_detect() < ISA_AVX2)
        skip();
    check(square_conv(8, 8, 64, 320, 3), CONV_BACKWARD_WEIGHTS, CONV_WINOGRAD);
    check(square_conv(4, 12, 64, 448, 3), CONV_BACKWARD_WEIGHTS, CONV_WINOGRAD);
    check(square_conv(4, 12, 64, 576, 3), CONV_BACKWARD_WEIGHTS, CONV_WINOGRAD);
    check(square_conv(4, 12, 64, 416, 3), CONV_BACKWARD_WEIGHTS, CONV_WINOGRAD);
    check(square_conv(8, 48, 48, 384, 3), CONV_BACKWARD_WEIGHTS, CONV_WINOGRAD);
}

/* Eight threads and more would have nothing to do where a gradient has many tiles; where it has few, more parts would
 * take longer to add than they save. */
static void weights_of_many_tiles(void **state)
{
    (void)state;
    static const struct {
        int64_t n, side, k;
        int shares;
    } cases[] = {{32, 4, 64, 1},   {32, 8, 64, 4},   {32, 16, 64, 4},  {32, 24, 64, 8},   {32, 32, 64, 8},
                 {32, 64, 64, 16}, {32, 64, 192, 16}, {32, 8, 320, 4}, {32, 16, 192, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conv_spec spec = {.shape = square_conv(cases[i].n, cases[i].side, 64, cases[i].k, 3),
                                 .direction = CONV_BACKWARD_WEIGHTS, .algorithm = CONV_WINOGRAD};
        struct kernel kernel;
        assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
        if (kernel.shares[0] != cases[i].shares)
            fail_msg("images of side %lld to %lld channels: found %d shares, expected %d", (long long)cases[i].side,
                     (long long)cases[i].k, kernel.shares[0], cases[i].shares);
        kernel_fini(&kernel);
    }
}

/* A share of Winograd's forward convolution has whole blocks of tiles, an even number of shares and at most 64. */
static void many_blocks_are_many_shares(void **state)
{
    (void)state;
    static const struct {
        int64_t n, side, c;
        int shares;
    } cases[] = {{1, 36, 32, 2},   {5, 16, 32, 2},   {32, 12, 32, 6},   {32, 24, 32, 24},
                 {32, 28, 32, 34}, {32, 48, 32, 48}, {32, 96, 32, 64}, {32, 48, 384, 64}};
    if (isa_detect() < ISA_AVX2)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conv_spec spec = {.shape = square_conv(cases[i].n, cases[i].side, cases[i].c, 32, 3),
                                 .direction = CONV_FORWARD, .algorithm = CONV_WINOGRAD};
        struct kernel kernel;
        assert_int_equal(conv_shape_finish(&spec.shape, "test"), GRAPHI_OK);
        assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
        const int shares = kernel.shares[kernel.phases - 1];
        if (shares != cases[i].shares)
            fail_msg("%lld images of side %lld, %lld channels: found %d shares, expected %d", (long long)cases[i].n,
                     (long long)cases[i].side, (long long)cases[i].c, shares, cases[i].shares);
        kernel_fini(&kernel);
    }
}

/* For many cores blocks of channels are narrower, in any precision; no bit of the sums depends on it. */
static void cores_change_no_bits(void **state)
{
    (void)state;
    static const struct {
        int64_t n, side, c, k;
        int few, many;
    } cases[] = {{8, 12, 64, 640, 8, 20}, {8, 13, 32, 320, 4, 10},  {4, 12, 64, 416, 6, 6},  {8, 24, 32, 128, 4, 8},
                 {2, 8, 32, 32, 1, 1},    {32, 16, 32, 192, 4, 24}, {9, 24, 32, 448, 8, 14}};
    if (isa_detect() < ISA_AVX2)
        skip();
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const int64_t n = cases[i / 2].n, side = cases[i / 2].side, c = cases[i / 2].c, k = cases[i / 2].k;
        struct guarded x = guarded_random(n * side * side * c, false), y = guarded_random(n * side * side * k, false);
        const struct kernel_array in[] = {{x.data, n}, {y.data, n}};
        float *result[2];
        for (int many = 0; many < 2; many++) {
            struct conv_spec spec = {.shape = square_conv(n, side, c, k, 3), .direction = CONV_BACKWARD_WEIGHTS,
                                     .algorithm = CONV_WINOGRAD, .cores = many ? 32 : 16,
                                     .multiplicands = i % 2 ? GRAPHI_BF16 : GRAPHI_F32};
            struct kernel kernel;
            assert_int_equal(conv_shape_finish(&spec.shape, "test"), GRAPHI_OK);
            assert_int_equal(conv_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
            if (!strcmp(kernel.name, "conv_weights_winograd") &&
                kernel.shares[0] != (many ? cases[i / 2].many : cases[i / 2].few))
                fail_msg("case %zu: found %d shares, expected %d", i / 2, kernel.shares[0],
                         many ? cases[i / 2].many : cases[i / 2].few);
            result[many] = mem_zalloc(sizeof(float) * (size_t)(9 * c * k));
            struct kernel_array out = {result[many], 1};
            void *workspace = mem_zalloc(kernel.workspace + 64);
            struct kernel_call call = {.in = in, .out = &out, .params = kernel.params, .workspace = workspace};
            assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
            mem_free(workspace);
            kernel_fini(&kernel);
        }
        assert_memory_equal(result[0], result[1], sizeof(float) * (size_t)(9 * c * k));
        mem_free(result[0]);
        mem_free(result[1]);
        guarded_free(&x);
        guarded_free(&y);
    }
}

/* Parts for the threads of a large machine cost a sum each: of many pixels alone, small windows, several images. */
static void long_sums_have_many_parts(void **state)
{
    (void)state;
    static const struct {
        int64_t n, side, tiles, count;
        int parts;
    } cases[] = {{32, 96, 2, 18816, 32},  {32, 96, 4, 18816, 16},  {32, 96, 16, 18816, 4}, {32, 96, 64, 18816, 1},
                 {32, 96, 2, 110592, 8},  {32, 35, 2, 18816, 8},   {64, 48, 1, 864, 16},   {8, 192, 2, 18816, 8},
                 {31, 96, 2, 18816, 8},   {32, 2, 2, 1000, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct conv_shape shape = {.n = cases[i].n, .oh = cases[i].side, .ow = cases[i].side};
        const int64_t parts = conv_weight_parts(&shape, cases[i].tiles, cases[i].count);
        if (parts != cases[i].parts)
            fail_msg("case %zu: found %lld parts, expected %d", i, (long long)parts, cases[i].parts);
    }
}

/* Two threads write as much of the first result, within a twentieth. Frees the kernel. */
static void check_halves(struct kernel *kernel, const struct kernel_array *in, const struct kernel_array *out,
                         int64_t count)
{
    enum { THREADS = 2 };
    const uint32_t *result = out->data;
    uint8_t *seen = mem_zalloc((size_t)count);
    void *workspace = mem_zalloc(kernel->workspace + 64);
    int64_t written[THREADS] = {0};
    struct kernel_call call = {.in = in, .out = out, .workspace = workspace, .params = kernel->params,
                               .width = THREADS};
    memset(out->data, 0xff, (size_t)count * sizeof *result);
    for (int phase = 0; phase < kernel->phases; phase++)
        for (call.thread = 0; call.thread < THREADS; call.thread++) {
            int64_t share, end;
            split_range(kernel->shares[phase], THREADS, call.thread, &share, &end);
            for (; share < end; share++)
                assert_int_equal(kernel->run(&call, phase, (int)share), GRAPHI_OK);
            for (int64_t i = 0; i < count; i++)
                if (result[i] != UNWRITTEN && !seen[i])
                    written[call.thread] += seen[i] = 1;
        }
    assert_int_equal(written[0] + written[1], count);
    if (llabs(written[0] - written[1]) > count / 20)
        fail_msg("%s of %lld: one thread writes %lld, the other one %lld", kernel->name, (long long)count,
                 (long long)written[0], (long long)written[1]);
    kernel_fini(kernel);
    mem_free(seen);
    mem_free(workspace);
}

/* Few shares are an even number, of as much work: a softmax of 32 rows of probabilities was one share, others three,
 * and those of a dense array one, two or three pieces long. */
static void few_shares_are_even(void **state)
{
    (void)state;
    enum { ROWS = 32, MOST = 1000, INPUTS = 8, COUNT = 20000 };
    const int isa = (int)isa_detect();
    struct guarded x = guarded_random(ROWS * MOST, false), y = guarded_random(ROWS * MOST, false);
    struct kernel_array in[INPUTS], out = {y.data, ROWS};
    struct array_desc row[INPUTS];
    struct kernel kernel;
    for (int64_t cols = 800; cols <= MOST; cols += 200) {
        const struct array_desc matrix = array_dense(GRAPHI_F32, 2, (int64_t[]){ROWS, cols});
        in[0] = (struct kernel_array){x.data, ROWS};
        assert_int_equal(softmax_bind(false, &matrix, &matrix, (enum isa)isa, &kernel), GRAPHI_OK);
        check_halves(&kernel, in, &out, ROWS * cols);
    }
    for (int64_t count = COUNT / 2; count <= COUNT; count += COUNT / 2) {
        for (int i = 0; i < INPUTS; i++) {
            row[i] = array_dense(GRAPHI_F32, 1, &count);
            in[i] = (struct kernel_array){x.data, count};
        }
        assert_int_equal(add_n_bind(INPUTS, row, row, (enum isa)isa, &kernel), GRAPHI_OK);
        check_halves(&kernel, in, &out, count);
    }
    struct program relu = {.inputs = 1, .instructions = 1, .outputs = 1, .output = {1}};
    relu.code[0] = (struct program_instruction){PROGRAM_RELU, 0, -1, -1, 0};
    assert_int_equal(program_bind(&relu, row, row, (enum isa)isa, &kernel), GRAPHI_OK);
    check_halves(&kernel, in, &out, COUNT);
    guarded_free(&x);
    guarded_free(&y);
}

/* Nine pieces of channels, as those of Inception-v3 at 35 x 35: two threads have four each, and half of the ninth. */
static void odd_pieces_of_channels(void **state)
{
    (void)state;
    enum { ROWS = 29200, C = 288 };
    const struct norm_spec spec = {.kind = NORM_BATCH, .rows = ROWS, .c = C, .ldx = C, .ldy = C, .epsilon = 1e-5};
    struct guarded x = guarded_random((int64_t)ROWS * C, false), y = guarded_random((int64_t)ROWS * C, false);
    float scale[C], bias[C], mean[C], inv_std[C];
    fill_random(scale, C);
    fill_random(bias, C);
    const struct kernel_array in[] = {{x.data, ROWS}, {scale, C}, {bias, C}},
                              out[] = {{y.data, ROWS}, {mean, C}, {inv_std, C}};
    struct kernel kernel;
    assert_int_equal(norm_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
    check_halves(&kernel, in, out, (int64_t)ROWS * C);
    guarded_free(&x);
    guarded_free(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_are_narrow),
        cmocka_unit_test(tiles_are_few),
        cmocka_unit_test(shares_suit_cores),
        cmocka_unit_test(cores_are_no_power_of_two),
        cmocka_unit_test(taps_differ),
        cmocka_unit_test(weights_in_tiles),
        cmocka_unit_test(tiles_have_rows),
        cmocka_unit_test(weights_in_blocks),
        cmocka_unit_test(weights_of_many_tiles), cmocka_unit_test(many_blocks_are_many_shares),
        cmocka_unit_test(long_sums_have_many_parts), cmocka_unit_test(cores_change_no_bits),
        cmocka_unit_test(few_shares_are_even),
        cmocka_unit_test(odd_pieces_of_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
