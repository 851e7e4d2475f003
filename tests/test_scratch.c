/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch that kernels keep by thread (share_slot): with fewer threads than shares, threads of a call must not meet
 * there, nor leave it. Threads that ran beside each other would show it once in a while; here each thread's shares of
 * a phase start from the workspace as the phase found it, and whatever bytes two of them write are an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "conv_shapes.h"
#include "fixture.h"
#include "guarded.h"
#include "kernels/conv_choice.h"
#include "kernels/conv_shape.h"
#include "kernels/gemm.h"
#include "kernels/shares.h"

/* The workspace of a call: `now` is what shares see, `before` what the phase found, `after` what its threads left. */
struct scratch {
    struct guarded now;
    unsigned char *before, *after;
    bool *taken; /* by a thread of this phase, byte by byte */
    size_t bytes;
};

enum { LINE = 64 };

/* The unreadable page is behind the scratch of the last thread, or before that of the first. */
static struct scratch scratch_new(size_t bytes, bool at_start)
{
    const size_t whole = (bytes + LINE - 1) / LINE * LINE;
    struct scratch s = {guarded_new(whole, at_start), mem_alloc(whole + 1), mem_alloc(whole + 1), mem_alloc(whole + 1),
                        whole};
    memset(s.now.data, 0xff, whole); /* numbers that nobody has written are NaN */
    return s;
}

static void scratch_free(struct scratch *s)
{
    guarded_free(&s->now);
    mem_free(s->before);
    mem_free(s->after);
    mem_free(s->taken);
}

/* Keeps what a thread wrote. False: another one has written there. */
static bool take_over(struct scratch *s)
{
    const unsigned char *now = s->now.data;
    bool apart = true;
    for (size_t line = 0; line < s->bytes; line += LINE) {
        const bool same = memcmp(now + line, s->before + line, LINE) == 0; /* most are */
        for (size_t i = line; i < line + LINE && !same; i++)
            if (now[i] != s->before[i]) {
                apart = apart && !s->taken[i];
                s->taken[i] = true;
                s->after[i] = now[i];
            }
    }
    return apart;
}

/* As `threads` would at the same time, which take the `width` pieces in turn. False: two of them write the same bytes.
 */
static bool run_phase(const struct kernel *kernel, const struct kernel_call *call, int threads, int phase,
                      struct scratch *s)
{
    bool apart = true;
    struct kernel_call of_thread = *call;
    memcpy(s->before, s->now.data, s->bytes);
    memcpy(s->after, s->now.data, s->bytes);
    memset(s->taken, 0, s->bytes);
    for (int thread = 0; thread < threads; thread++) {
        memcpy(s->now.data, s->before, s->bytes);
        of_thread.thread = thread;
        for (int piece = thread; piece < call->width; piece += threads) {
            int64_t begin, end;
            split_range(kernel->shares[phase], call->width, piece, &begin, &end);
            for (int64_t share = begin; share < end; share++)
                assert_int_equal(kernel->run(&of_thread, phase, (int)share), GRAPHI_OK);
        }
        apart = take_over(s) && apart;
    }
    memcpy(s->now.data, s->after, s->bytes);
    return apart;
}

static bool run_threads(const struct kernel *kernel, struct kernel_call call, int threads, int width)
{
    struct scratch s = scratch_new(kernel->workspace, width % 2);
    bool apart = true;
    call.params = kernel->params;
    call.workspace = s.now.data;
    call.width = width;
    for (int phase = 0; phase < kernel->phases; phase++)
        apart = run_phase(kernel, &call, threads, phase, &s) && apart;
    scratch_free(&s);
    return apart;
}

/* --- kernels --- */

struct problem {
    struct conv_spec spec;
    const struct gemm_spec *product; /* x w; NULL: the convolution */
    struct guarded x, w, y;
    int64_t images;
};

static size_t result_floats(const struct problem *p)
{
    const struct conv_shape *s = &p->spec.shape;
    if (p->product)
        return (size_t)(p->product->m * p->product->n);
    if (p->spec.pool)
        return (size_t)(s->n * p->spec.pool->shape.oh * p->spec.pool->shape.ow * s->k);
    return (size_t)(p->spec.direction == CONV_FORWARD         ? s->n * s->oh * s->ow * s->k
                    : p->spec.direction == CONV_BACKWARD_DATA ? s->n * s->h * s->w * s->c
                                                              : s->kh * s->kw * s->c * s->k);
}

/* For `most` threads (0: not known). */
static void bind(const struct problem *p, enum isa isa, int most, struct kernel *kernel)
{
    struct conv_spec spec = p->spec;
    struct gemm_spec product = p->product ? *p->product : (struct gemm_spec){0};
    spec.threads = product.threads = spec.cores = product.cores = most;
    check_ok(p->product ? gemm_bind(&product, isa, kernel) : conv_bind(&spec, isa, kernel));
}

/* Binds for `most` threads, runs on `threads` in so many pieces; returns the workspace. */
static size_t run(const struct problem *p, enum isa isa, int most, int threads, int pieces, struct guarded *result)
{
    const struct conv_spec *spec = &p->spec;
    struct kernel kernel;
    const bool data = spec->direction == CONV_BACKWARD_DATA, weights = spec->direction == CONV_BACKWARD_WEIGHTS;
    const struct kernel_array in[] = {{data ? p->y.data : p->x.data, p->images},
                                      {weights ? p->y.data : p->w.data, p->images}};
    *result = guarded_new(result_floats(p) * sizeof(float), false);
    const struct kernel_array out[] = {{result->data, p->images}, {NULL, 0}};
    bind(p, isa, most, &kernel);
    if (!run_threads(&kernel, (struct kernel_call){.in = in, .out = out}, threads, pieces))
        fail_msg("%s, %s, algorithm %d: of at most %d threads, %d meet in the workspace, in %d pieces", kernel.name,
                 isa_name(isa), (int)spec->algorithm, most, threads, pieces);
    const size_t workspace = kernel.workspace;
    kernel_fini(&kernel);
    return workspace;
}

/* All widths that a call may have, a piece for each thread or some three, against one thread whose scratch is by share.
 */
static void check(const struct problem *p, enum isa isa)
{
    static const int most[] = {1, 2, 4, SHARES_MAX, 12, 24, 68}, widths[] = {1, 2, 4};
    struct guarded expected, found;
    const size_t by_share = run(p, isa, 0, 1, 1, &expected);
    size_t before = 0;
    for (size_t i = 0; i < sizeof most / sizeof *most; i++)
        for (int turn = 0; turn < 6 && widths[turn / 2] <= most[i]; turn++) {
            const int width = widths[turn / 2], pieces = turn % 2 ? 3 * width + 1 : width;
            const size_t workspace = run(p, isa, most[i], width, pieces, &found);
            if (memcmp(found.data, expected.data, result_floats(p) * sizeof(float)))
                fail_msg("direction %d, algorithm %d: other bits with %d of %d threads in %d pieces",
                         (int)p->spec.direction, (int)p->spec.algorithm, width, most[i], pieces);
            guarded_free(&found);
            assert_true(most[i] > 4 || (workspace >= before && workspace <= by_share)); /* more cores: other shares */
            before = workspace;
        }
    guarded_free(&expected);
}

static struct problem problem_of(struct conv_shape shape, graphi_dtype multiplicands, int64_t images)
{
    struct problem p = {.spec = {.shape = shape, .multiplicands = multiplicands}, .images = images};
    struct conv_shape *s = &p.spec.shape;
    check_ok(conv_shape_finish(s, "test"));
    p.x = guarded_random(s->n * s->h * s->w * s->c, false);
    p.w = guarded_random(s->kh * s->kw * s->c * s->k, false);
    p.y = guarded_random(s->n * s->oh * s->ow * s->k, false);
    return p;
}

static void problem_free(struct problem *p)
{
    guarded_free(&p->x);
    guarded_free(&p->w);
    guarded_free(&p->y);
}

static const struct conv_shape image = {.n = 3, .h = 38, .w = 39, .c = 9, .k = 70, .kh = 3, .kw = 3, CONV_PLAIN,
                                        .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};

/* So few tiles that a share has columns of all of them. */
static const struct conv_shape small = {.n = 2, .h = 13, .w = 14, .c = 9, .k = 200, .kh = 3, .kw = 3, CONV_PLAIN,
                                        .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};

/* Winograd's points of two threads in one place are wrong results once in a long while, at widths that no other test
 * of this kernel has. */
static void winograd(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct conv_shape *shape = i < 2 ? &image : &small;
        struct problem p = problem_of(*shape, i % 2 ? GRAPHI_BF16 : GRAPHI_F32, shape->n - i % 2);
        for (enum conv_direction d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++)
            for (enum conv_algorithm a = CONV_WINOGRAD_4; a < CONV_ALGORITHMS; a++) {
                p.spec.direction = d;
                p.spec.algorithm = a;
                if (conv_possible(&p.spec, a))
                    check(&p, isa_detect());
            }
        problem_free(&p);
    }
}

/* A pooled convolution's scratch has rows of the image as well. */
static void pooled(void **state)
{
    (void)state;
    struct problem p = problem_of(image, GRAPHI_F32, image.n);
    const struct conv_shape *s = &p.spec.shape;
    struct pool_spec pool = {.shape = {.n = s->n, .h = s->oh, .w = s->ow, .c = s->k, .kh = 3, .kw = 3, .stride_h = 2,
                                       .stride_w = 2, .ldx = s->k}};
    check_ok(pool_shape_finish(&pool.shape, "test"));
    p.spec.pool = &pool;
    for (enum conv_algorithm a = CONV_DIRECT; a < CONV_ALGORITHMS; a++) {
        p.spec.algorithm = a;
        check(&p, isa_detect());
    }
    problem_free(&p);
}

/* Weight gradients of a 1 x 1 window, products in parts, whose copies of x are by thread where there are few. */
static void products_of_pixels(void **state)
{
    (void)state;
    const struct conv_shape shape = {.n = 8, .h = 4, .w = 4, .c = 832, .k = 192, .kh = 1, .kw = 1, CONV_PLAIN};
    struct problem p = problem_of(shape, GRAPHI_F32, shape.n - 1);
    struct guarded expected, found;
    p.spec.direction = CONV_BACKWARD_WEIGHTS;
    p.spec.algorithm = CONV_DIRECT;
    run(&p, isa_detect(), 0, 1, 1, &expected);
    for (int threads = 1; threads <= 4; threads *= 2)
        for (int pieces = threads; pieces <= 3 * threads + 1; pieces += 2 * threads + 1) {
            const size_t workspace = run(&p, isa_detect(), threads, threads, pieces, &found);
            if (memcmp(found.data, expected.data, result_floats(&p) * sizeof(float)))
                fail_msg("other bits with %d threads in %d pieces", threads, pieces);
            assert_true(isa_detect() >= ISA_AVX512 || isa_detect() == ISA_PLAIN || threads > 2 ||
                        workspace > 2 * result_floats(&p) * sizeof(float)); /* parts, and copies */
            guarded_free(&found);
        }
    guarded_free(&expected);
    problem_free(&p);
}

/* Panels of a transposed matrix that each meet one tile. Kept by place in the cut, pieces that a thread takes one after
 * the other pack into memory that no cache holds. */
static void late_panels(void **state)
{
    (void)state;
    enum { M = 9, N = 64 * 20 + 3, K = 70 };
    const int64_t k = K;
    for (int i = 0; i < 2; i++) {
        const graphi_dtype multiplicands = i ? GRAPHI_BF16 : GRAPHI_F32;
        const struct gemm_spec product = {.m = M, .n = N, .pairs = 1, .k = &k, .lda = &k, .ldb = &k, .ldc = N,
                                          .trans_b = true, .multiplicands = multiplicands};
        struct problem p = {.product = &product, .x = guarded_random(M * K, false),
                            .w = guarded_random(N * K, false), .y = guarded_random(1, false), .images = M};
        struct kernel two, all;
        check(&p, isa_detect());
        bind(&p, isa_detect(), 2, &two);
        bind(&p, isa_detect(), 0, &all);
        assert_true(all.shares[all.phases - 1] > 16 && 4 * two.workspace < all.workspace);
        kernel_fini(&two);
        kernel_fini(&all);
        problem_free(&p);
    }
}

/* The point of it: two threads need two pieces, however many shares there are. */
static void scratch_shrinks(void **state)
{
    (void)state;
    struct problem p = problem_of(image, GRAPHI_F32, image.n);
    struct kernel two, all;
    p.spec.algorithm = CONV_WINOGRAD_4;
    p.spec.threads = 2;
    check_ok(conv_bind(&p.spec, isa_detect(), &two));
    p.spec.threads = 0;
    check_ok(conv_bind(&p.spec, isa_detect(), &all));
    assert_true(all.shares[1] > 8 && 2 * two.workspace < all.workspace);
    kernel_fini(&two);
    kernel_fini(&all);
    problem_free(&p);
}

/* Shares belong to the run in which the engine gives them: at every width, not only at those of the tests above. */
static void runs_of_shares(void **state)
{
    (void)state;
    for (int shares = 1; shares < 2 * SHARES_MAX; shares++)
        for (int width = 1; width <= 2 * SHARES_MAX; width++)
            for (int member = 0; member < width; member++) {
                int64_t begin, end;
                split_range(shares, width, member, &begin, &end);
                for (int64_t share = begin; share < end; share++)
                    assert_int_equal(share_piece(shares, width, (int)share), member);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winograd),
        cmocka_unit_test(pooled),
        cmocka_unit_test(products_of_pixels),
        cmocka_unit_test(late_panels),
        cmocka_unit_test(scratch_shrinks),
        cmocka_unit_test(runs_of_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
