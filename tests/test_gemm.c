/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products against sums in double precision, over random shapes and every form that gemm_spec allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "guarded.h"
#include "kernels/gemm.h"
#include "kernels/micro.h"
#include "kernels/pack.h"

enum { PAIRS = 5 };

static float rounded(float value)
{
    uint32_t bits = (uint32_t)bf16_round(value) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One product with everything it needs. */
struct problem {
    struct gemm_spec spec;
    int64_t k[PAIRS], lda[PAIRS], ldb[PAIRS];
    struct guarded a[PAIRS], b[PAIRS], packed[PAIRS], base, c, bias, residual;
    struct program program;
    enum program_broadcast broadcast[2];
    int64_t epilogue_ld[2];
    int64_t rows; /* at call time */
    enum isa isa;
};

static int64_t stored(int64_t rows, int64_t cols, int64_t ld)
{
    return rows && cols ? (rows - 1) * ld + cols : 0;
}

static int64_t some_size(int limit)
{
    static const int64_t sizes[] = {0,  1,  2,  3,  5,  7,   8,   15,  16,  17,  31,
                                    33, 48, 63, 64, 65, 100, 127, 130, 200, 257, 600};
    return sizes[random_below(limit)];
}

/* Products of the batch. */
static int64_t products(const struct gemm_spec *s)
{
    int64_t count = 1;
    for (int i = 0; i < s->leads; i++)
        count *= s->lead[i];
    return count;
}

/* Strides for matrices of `count` elements, some of them used again and again; gives how many elements there are then.
 */
static int64_t spread(const struct gemm_spec *s, int64_t count, int64_t *stride)
{
    for (int i = s->leads - 1; i >= 0; i--) {
        stride[i] = random_below(3) ? count + random_below(2) * 7 : 0;
        count += stride[i] * (s->lead[i] > 1 ? s->lead[i] - 1 : 0);
    }
    return count;
}

/* Where product `batch` finds its matrix. */
static int64_t found(const struct gemm_spec *s, const int64_t *stride, int64_t batch)
{
    int64_t at = 0;
    for (int i = s->leads - 1; i >= 0; batch /= s->lead[i--])
        at += batch % s->lead[i] * stride[i];
    return at;
}

static void make_batch(struct gemm_spec *s)
{
    static const int64_t sizes[] = {2, 3, 1, 4, 0};
    s->leads = s->pairs == 1 && random_below(2) ? 1 + (int)random_below(3) : 0;
    for (int i = 0; i < s->leads; i++)
        s->lead[i] = sizes[random_below(random_below(8) ? 4 : 5)];
    int64_t next = s->m * s->ldc;
    for (int i = s->leads - 1; i >= 0; next *= s->lead[i--])
        s->stride_c[i] = next;
    s->rows_per_row = s->leads && s->lead[0] ? products(s) / s->lead[0] : 1;
}

static void make_operands(struct problem *p)
{
    struct gemm_spec *s = &p->spec;
    int64_t common_ld = random_below(2) ? 640 : 0;
    for (int i = 0; i < s->pairs; i++) {
        p->k[i] = s->pairs > 1 && random_below(2) ? 64 : some_size(22);
        p->lda[i] = common_ld ? common_ld : (s->trans_a ? s->m : p->k[i]) + random_below(3) * 3;
        p->ldb[i] = common_ld ? common_ld : (s->trans_b ? p->k[i] : s->n) + random_below(3) * 3;
        int64_t a_count = s->trans_a ? stored(p->k[i], s->m, p->lda[i]) : stored(s->m, p->k[i], p->lda[i]);
        int64_t b_count = s->trans_b ? stored(s->n, p->k[i], p->ldb[i]) : stored(p->k[i], s->n, p->ldb[i]);
        p->a[i] = guarded_random(spread(s, a_count, s->stride_a), random_below(2));
        p->b[i] = guarded_random(spread(s, b_count, s->stride_b), random_below(2));
    }
    p->rows = s->leads ? s->lead[0] : s->trans_a ? p->k[0] : s->m;
    if (s->bounded)
        p->rows = random_below(p->rows + 1);
    int64_t c_count = products(s) * s->m * s->ldc;
    p->c = guarded_random(c_count, false);
    p->base = guarded_random(s->base ? stored(s->m, s->n, s->ld_base) : 0, random_below(2));
    p->bias = guarded_random(s->n, false);
    p->residual = guarded_random(c_count, false);
}

/* relu(tile + bias) + residual */
static void add_epilogue(struct problem *p)
{
    p->program = (struct program){.inputs = 3, .instructions = 3, .outputs = 1, .output = {5}};
    p->program.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    p->program.code[1] = (struct program_instruction){PROGRAM_RELU, 3, -1, -1, 0};
    p->program.code[2] = (struct program_instruction){PROGRAM_ADD, 4, 2, -1, 0};
    p->broadcast[0] = PROGRAM_ROW;
    p->broadcast[1] = PROGRAM_FULL;
    p->epilogue_ld[1] = p->spec.ldc;
    p->spec.epilogue = (struct epilogue_spec){&p->program, p->broadcast, p->epilogue_ld, NULL};
}

static void make_problem(struct problem *p, enum isa isa)
{
    memset(p, 0, sizeof *p);
    p->isa = isa;
    struct gemm_spec *s = &p->spec;
    s->trans_a = random_below(2);
    static const int cores[] = {0, 0, 2, 6, 12, 48, 68, 1024};
    s->threads = (int)random_below(3);
    s->cores = cores[random_below(8)];
    const bool tall = s->trans_a && !random_below(8); /* a gradient so large that pieces of A are copied */
    s->m = tall ? 300 : some_size(21);
    s->n = tall ? 330 : some_size(21);
    s->pairs = tall ? 2 + (int)random_below(PAIRS - 1) : random_below(3) ? 1 : 1 + (int)random_below(PAIRS);
    s->ldc = s->n + random_below(3) * 5;
    make_batch(s);
    s->base = !s->leads && !random_below(3);
    s->ld_base = s->n + random_below(3) * 7;
    s->packed_b = !s->leads && !random_below(3);
    s->bounded = !random_below(3) && !(s->packed_b && s->trans_a);
    s->trans_b = random_below(2);
    s->multiplicands = random_below(3) ? GRAPHI_F32 : GRAPHI_BF16;
    s->k = p->k;
    s->lda = p->lda;
    s->ldb = p->ldb;
    make_operands(p);
    if (random_below(2))
        add_epilogue(p);
}

static void free_problem(struct problem *p)
{
    for (int i = 0; i < p->spec.pairs; i++) {
        guarded_free(&p->a[i]);
        guarded_free(&p->b[i]);
        guarded_free(&p->packed[i]);
    }
    guarded_free(&p->base);
    guarded_free(&p->c);
    guarded_free(&p->bias);
    guarded_free(&p->residual);
}

static void pack_all(struct problem *p)
{
    graphi_dtype dtype = p->spec.multiplicands;
    for (int i = 0; i < p->spec.pairs; i++) {
        struct kernel kernel;
        p->packed[i] =
            guarded_new((size_t)gemm_packed_count(p->k[i], p->spec.n, dtype) * graphi_dtype_size(dtype), false);
        assert_int_equal(gemm_pack_bind(1, p->k[i], p->spec.n, p->ldb[i], p->spec.trans_b, dtype, p->isa, &kernel),
                         GRAPHI_OK);
        struct kernel_array in = {p->b[i].data, p->k[i]}, out = {p->packed[i].data, 0};
        struct kernel_call call = {.in = &in, .out = &out, .params = kernel.params};
        assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
        kernel_fini(&kernel);
    }
}

/* Steps of k of one pair at call time. */
static int64_t steps_of(const struct problem *p, int pair)
{
    bool bounded = p->spec.bounded && p->spec.trans_a && !p->spec.leads;
    return bounded && p->rows < p->k[pair] ? p->rows : p->k[pair];
}

/* Runs the shares of every phase, forwards or backwards. */
static void run_problem(struct problem *p, bool backwards, float *c)
{
    struct kernel kernel;
    assert_int_equal(gemm_bind(&p->spec, p->isa, &kernel), GRAPHI_OK);
    struct kernel_array in[2 * PAIRS + 3], *further = in + 2 * p->spec.pairs;
    for (int i = 0; i < p->spec.pairs; i++) {
        in[2 * i] = (struct kernel_array){p->a[i].data, p->spec.trans_a && !p->spec.leads ? steps_of(p, i) : p->rows};
        in[2 * i + 1] = (struct kernel_array){p->spec.packed_b ? p->packed[i].data : p->b[i].data, p->rows};
    }
    if (p->spec.base)
        *further++ = (struct kernel_array){p->base.data, p->rows};
    further[0] = (struct kernel_array){p->bias.data, 1};
    further[1] = (struct kernel_array){p->residual.data, p->rows};
    struct kernel_array out = {c, p->rows};
    struct guarded workspace = guarded_new((kernel.workspace + 63) / 64 * 64, false);
    memset(workspace.data, 0xff, kernel.workspace);
    struct kernel_call call = {
        .in = in, .out = &out, .params = kernel.params, .workspace = workspace.data, .width = backwards ? 3 : 1};
    for (int phase = 0; phase < kernel.phases; phase++)
        for (int i = 0; i < kernel.shares[phase]; i++)
            assert_int_equal(kernel.run(&call, phase, backwards ? kernel.shares[phase] - 1 - i : i), GRAPHI_OK);
    guarded_free(&workspace);
    kernel_fini(&kernel);
}

/* Element (r, c) of product `batch` in double, and the sum of magnitudes for the bound. */
static double reference(const struct problem *p, int64_t batch, int64_t r, int64_t c, double *magnitude)
{
    const struct gemm_spec *s = &p->spec;
    double sum = s->base ? ((const float *)p->base.data)[r * s->ld_base + c] : 0;
    *magnitude = fabs(sum);
    for (int i = 0; i < s->pairs; i++) {
        const float *a = (const float *)p->a[i].data + found(s, s->stride_a, batch);
        const float *b = (const float *)p->b[i].data + found(s, s->stride_b, batch);
        for (int64_t k = 0; k < steps_of(p, i); k++) {
            float x = s->trans_a ? a[k * p->lda[i] + r] : a[r * p->lda[i] + k];
            float y = s->trans_b ? b[c * p->ldb[i] + k] : b[k * p->ldb[i] + c];
            double product = s->multiplicands == GRAPHI_BF16 ? (double)rounded(x) * rounded(y) : (double)x * y;
            sum += product;
            *magnitude += fabs(product);
        }
    }
    return sum;
}

/* Bound: 4e-6 of the sum of magnitudes (up to 3000 terms, each rounding at most 6e-8, mostly cancelling). */
static void check_problem(const struct problem *p, const float *before, const float *c)
{
    const struct gemm_spec *s = &p->spec;
    int64_t batches = s->bounded && s->leads ? p->rows * s->rows_per_row : products(s);
    int64_t rows = s->bounded && !s->leads && !s->trans_a ? p->rows : s->m;
    for (int64_t i = 0; i < products(s) * s->m * s->ldc; i++) {
        int64_t batch = i / (s->m * s->ldc), row = i / s->ldc % s->m, col = i % s->ldc;
        if (batch >= batches || row >= rows || col >= s->n) {
            if (c[i] != before[i])
                fail_msg("element outside the result was written");
            continue;
        }
        double magnitude, expected = reference(p, batch, row, col, &magnitude);
        if (s->epilogue.program) {
            expected += ((const float *)p->bias.data)[col];
            expected = expected > 0 ? expected : 0;
            expected += ((const float *)p->residual.data)[i];
        }
        if (!number_close(c[i], expected, 4e-6 * (1 + magnitude)))
            fail_msg("%s m %lld n %lld k %lld pairs %d batch %lld: (%lld, %lld) is %g, expected %g", isa_name(p->isa),
                     (long long)s->m, (long long)s->n, (long long)p->k[0], s->pairs, (long long)products(s),
                     (long long)row, (long long)col, c[i], expected);
    }
}

static void check_random(enum isa isa, int count)
{
    for (int i = 0; i < count; i++) {
        struct problem p;
        make_problem(&p, isa);
        if (p.spec.packed_b)
            pack_all(&p);
        size_t bytes = (size_t)(products(&p.spec) * p.spec.m * p.spec.ldc) * sizeof(float);
        float *before = mem_alloc(bytes), *backwards = mem_alloc(bytes);
        memcpy(before, p.c.data, bytes);
        memcpy(backwards, p.c.data, bytes);
        run_problem(&p, false, p.c.data);
        check_problem(&p, before, p.c.data);
        run_problem(&p, true, backwards);
        if (bytes)
            assert_memory_equal(backwards, p.c.data, bytes);
        mem_free(before);
        mem_free(backwards);
        free_problem(&p);
    }
}

/* A wrong tile, stride, transposition, batch, pair, bound or epilogue, a read outside an argument, or a result that
 * depends on the order of shares, in some instruction set. */
static void random_products(void **state)
{
    (void)state;
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        check_random(isa, isa == ISA_PLAIN ? 60 : 200);
}

static void make_sum_of_two(struct problem *p, enum isa isa)
{
    struct gemm_spec *s = &p->spec;
    *p = (struct problem){.isa = isa,
                          .spec = {.m = 1 + random_below(24), .n = 1 + random_below(150), .pairs = 2, .rows_per_row = 1,
                                   .threads = 1, .trans_a = random_below(2), .trans_b = random_below(2),
                                   .packed_b = random_below(2),
                                   .multiplicands = random_below(3) ? GRAPHI_F32 : GRAPHI_BF16}};
    s->ldc = s->n + random_below(3) * 5;
    s->k = p->k;
    s->lda = p->lda;
    s->ldb = p->ldb;
    make_operands(p);
    if (s->packed_b)
        pack_all(p);
}

/* A sum in one call, and in two: the second, of some of the first one's rows, begins with what that left. The bits are
 * the same. */
static void a_sum_goes_on_in_another_product(void **state)
{
    (void)state;
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int i = 0; i < 100; i++) {
            struct problem whole, first, second;
            make_sum_of_two(&whole, isa);
            const int64_t ld = whole.spec.ldc;
            const size_t bytes = (size_t)(whole.spec.m * ld) * sizeof(float);
            float *begun = mem_alloc(bytes), *ended = mem_alloc(bytes);
            assert_true(begun && ended);
            run_problem(&whole, false, whole.c.data);
            first = second = whole;
            first.spec.pairs = second.spec.pairs = 1;
            run_problem(&first, false, begun);
            second.spec.m = second.rows = 1 + random_below((int)whole.spec.m);
            second.spec.k++; /* the second pair */
            second.spec.lda++;
            second.spec.ldb++;
            second.spec.base = true;
            second.spec.ld_base = ld;
            second.base.data = begun;
            second.a[0] = whole.a[1];
            second.b[0] = whole.b[1];
            second.packed[0] = whole.packed[1];
            second.k[0] = whole.k[1];
            run_problem(&second, true, ended);
            for (int64_t row = 0; row < second.spec.m; row++)
                assert_memory_equal(ended + row * ld, (float *)whole.c.data + row * ld, whole.spec.n * sizeof(float));
            mem_free(begun);
            mem_free(ended);
            free_problem(&whole);
        }
}

/* An epilogue that adds to C in place must see C before the product (a tile written through C would lose it). */
static void accumulates_in_place(void **state)
{
    (void)state;
    enum { M = 70, N = 130, K = 600 };
    float *a = mem_alloc(M * K * 4), *b = mem_alloc(K * N * 4), *c = mem_alloc(M * N * 4);
    for (int i = 0; i < M * K; i++)
        a[i] = 1;
    for (int i = 0; i < K * N; i++)
        b[i] = 1;
    for (int i = 0; i < M * N; i++)
        c[i] = (float)i;
    struct program add = {.inputs = 2, .instructions = 1, .outputs = 1, .output = {2}};
    add.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    enum program_broadcast full = PROGRAM_FULL;
    int64_t k = K, ld = N;
    struct gemm_spec spec = {.m = M, .n = N, .pairs = 1, .k = &k, .lda = &k, .ldb = &ld, .ldc = N,
                             .epilogue = {&add, &full, &ld, NULL}};
    struct kernel kernel;
    assert_int_equal(gemm_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
    struct kernel_array in[] = {{a, M}, {b, K}, {c, M}}, out = {c, M};
    struct kernel_call call = {.in = in, .out = &out, .params = kernel.params};
    assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
    for (int i = 0; i < M * N; i++)
        assert_true(c[i] == (float)i + K);
    kernel_fini(&kernel);
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

/* Infinities and NaN must travel through a product as IEEE says, and denormals must be kept. */
static void special_values(void **state)
{
    (void)state;
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++) {
        float a[4] = {INFINITY, 0, NAN, 1e-40f}, b[4] = {1, 0, 0, 1}, c[4];
        int64_t two = 2;
        struct gemm_spec spec = {.m = 2, .n = 2, .pairs = 1, .k = &two, .lda = &two, .ldb = &two, .ldc = 2};
        struct kernel kernel;
        assert_int_equal(gemm_bind(&spec, isa, &kernel), GRAPHI_OK);
        struct kernel_array in[] = {{a, 2}, {b, 2}}, out = {c, 2};
        struct kernel_call call = {.in = in, .out = &out, .params = kernel.params};
        assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
        assert_true(isinf(c[0]) && isnan(c[1]) && isnan(c[2]) && isnan(c[3]));
        a[2] = 0;
        assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
        assert_true(c[3] == 1e-40f);
        kernel_fini(&kernel);
    }
}

/* Puts `special` at a step of a matrix, often the last one, and some row or column of it; false: it is empty. */
static bool plant(const struct problem *p, int pair, bool right, float special)
{
    const struct gemm_spec *s = &p->spec;
    const int64_t steps = p->k[pair], others = right ? s->n : s->m, ld = right ? p->ldb[pair] : p->lda[pair];
    if (!steps || !others)
        return false;
    const int64_t step = random_below(2) ? steps - 1 : random_below(steps), other = random_below(others);
    const bool steps_first = right ? !s->trans_b : s->trans_a;
    ((float *)(right ? p->b : p->a)[pair].data)[steps_first ? step * ld + other : other * ld + step] = special;
    return true;
}

/* With bfloat16 an odd number of steps is filled up, and what fills must not meet a NaN or an infinity: only results
 * that float32 would have so are not finite. */
static void special_values_of_pairs(void **state)
{
    (void)state;
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int i = 0; i < 200; i++) {
            struct problem p;
            make_problem(&p, isa);
            p.spec.multiplicands = GRAPHI_BF16;
            p.spec.epilogue = (struct epilogue_spec){0};
            const bool right = random_below(2);
            const int pair = (int)random_below(p.spec.pairs);
            if (plant(&p, pair, right, i % 2 ? NAN : INFINITY)) {
                const size_t bytes = (size_t)(products(&p.spec) * p.spec.m * p.spec.ldc) * sizeof(float);
                float *before = mem_alloc(bytes);
                memcpy(before, p.c.data, bytes);
                if (p.spec.packed_b)
                    pack_all(&p);
                run_problem(&p, false, p.c.data);
                check_problem(&p, before, p.c.data);
                mem_free(before);
            }
            free_problem(&p);
        }
}

/* The cut depends on the shape alone: large work must come in several shares, small work in few. */
static void shares_suit_the_work(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        int least, most;
    } cases[] = {{64, 512, 512, 4, 64},      {64, 128, 128, 1, 4}, {512, 512, 2560, 32, 32}, {1024, 1024, 2560, 64, 64},
                 {4096, 4096, 4096, 16, 64}, {1, 64, 64, 1, 1},    {25088, 64, 64, 16, 64},
                 {700, 650, 10000, 64, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gemm_spec spec = {.m = cases[i].m, .n = cases[i].n, .pairs = 1, .k = &cases[i].k,
                                 .lda = &cases[i].k, .ldb = &cases[i].n, .ldc = cases[i].n};
        struct kernel kernel;
        assert_int_equal(gemm_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
        assert_in_range(kernel.shares[0], cases[i].least, cases[i].most);
        kernel_fini(&kernel);
    }
}

/* A long sum, run with the number of threads known: whoever has several shares does them together, as long rows of tall
 * tiles, with the first of them, and the bits are the same. Without it each tile would fetch its operands again; were
 * it done for all numbers of threads, some would have twice the work of others. */
static void shares_together(enum isa isa, int64_t m, int64_t n, int64_t k, int shares)
{
    const size_t bytes = sizeof(float) * (size_t)(m * n);
    struct guarded a = guarded_random(k * m, false), b = guarded_random(k * n, false);
    float *one = mem_alloc(bytes), *other = mem_alloc(bytes);
    struct gemm_spec spec = {.m = m, .n = n, .pairs = 1, .trans_a = true, .k = &k, .lda = &m, .ldb = &n, .ldc = n,
                             .threads = 2};
    struct kernel kernel, many;
    assert_int_equal(gemm_bind(&spec, isa, &kernel), GRAPHI_OK);
    assert_int_equal(kernel.shares[0], shares);
    assert_true((kernel.workspace > 0) == (isa < ISA_AVX512 && m > 192)); /* copies of A */
    spec.threads = 64;
    assert_int_equal(gemm_bind(&spec, isa, &many), GRAPHI_OK);
    assert_true(many.workspace <= bytes); /* of many threads they were more than the result */
    kernel_fini(&many);
    struct guarded workspace = guarded_new(kernel.workspace, false);
    struct kernel_array in[] = {{a.data, k}, {b.data, k}}, out = {one, m};
    struct kernel_call call = {.in = in, .out = &out, .params = kernel.params, .workspace = workspace.data};
    assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
    out.data = other;
    for (int width = 1; width <= 64; width += 1 + width / 6) {
        call.width = width;
        memset(other, 0, bytes);
        for (int share = 0; share < kernel.shares[0]; share++) {
            assert_int_equal(kernel.run(&call, 0, share), GRAPHI_OK);
            if (share == 0) /* all of it, or at most as much as a thread has */
                assert_true((memcmp(one, other, bytes) == 0) == (width == 1));
        }
        assert_memory_equal(one, other, bytes);
    }
    kernel_fini(&kernel);
    guarded_free(&a);
    guarded_free(&b);
    guarded_free(&workspace);
    mem_free(one);
    mem_free(other);
}

static void few_threads_take_shares_together(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        int shares;
    } cases[] = {
        {512, 512, 1300, 32}, {128, 128, 1300, 8}, {200, 130, 1700, 16}, {64, 64, 3000, 4}, {80, 1100, 1300, 16}};
    for (enum isa isa = least(ISA_AVX2, isa_detect()); isa <= isa_detect(); isa++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            shares_together(isa, cases[i].m, cases[i].n, cases[i].k, cases[i].shares);
}

/* Tiles are cut for the machine's cores where these are more than two: as many for each of them, and the bits are those
 * of two. Products of 1024 x 1024 had 80 tiles, of which the busiest of 48 cores had two. */
static void cores_change_no_bits(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        bool trans_a;
        int cores, shares;
    } cases[] = {{1024, 1024, 64, false, 2, 64},   {1024, 1024, 64, false, 6, 60}, {1024, 1024, 64, false, 48, 48},
                 {1024, 1024, 64, false, 24, 48},  {1024, 1088, 64, false, 68, 68}, {64, 512, 512, false, 68, 8},
                 {512, 512, 1300, true, 2, 32},    {512, 512, 1300, true, 48, 48},  {512, 512, 1300, true, 1024, 64},
                 {64, 512, 512, false, 1024, 32},  {700, 130, 400, true, 10, 18},   {1000, 70, 90, false, 20, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k, lda = cases[i].trans_a ? m : k;
        const size_t bytes = sizeof(float) * (size_t)(m * n);
        struct guarded a = guarded_random(k * m, false), b = guarded_random(k * n, false);
        float *result[2];
        for (int known = 0; known < 2; known++) {
            struct gemm_spec spec = {.m = m, .n = n, .pairs = 1, .trans_a = cases[i].trans_a, .k = &k, .lda = &lda,
                                     .ldb = &n, .ldc = n, .cores = known ? cases[i].cores : 0};
            struct kernel kernel;
            assert_int_equal(gemm_bind(&spec, isa_detect(), &kernel), GRAPHI_OK);
            if (known && isa_detect() >= ISA_AVX2 && kernel.shares[0] != cases[i].shares)
                fail_msg("case %zu: found %d shares, expected %d", i, kernel.shares[0], cases[i].shares);
            result[known] = mem_zalloc(bytes);
            void *workspace = mem_zalloc(kernel.workspace + 64);
            struct kernel_array in[] = {{a.data, cases[i].trans_a ? k : m}, {b.data, k}}, out = {result[known], m};
            struct kernel_call call = {.in = in, .out = &out, .params = kernel.params, .workspace = workspace};
            assert_int_equal(kernel_run_serial(&kernel, &call), GRAPHI_OK);
            mem_free(workspace);
            kernel_fini(&kernel);
        }
        assert_memory_equal(result[0], result[1], bytes);
        mem_free(result[0]);
        mem_free(result[1]);
        guarded_free(&a);
        guarded_free(&b);
    }
}

/* What a batch repeats must be counted, rounded and packed once: the workspace would otherwise grow with the batch, and
 * the planner think that it moves more bytes. */
static void repeated_matrices_count_once(void **state)
{
    enum { M = 32, N = 64, K = 48, I = 5, J = 3 };
    const int64_t k = K, n = N;
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            struct gemm_spec spec = {.m = M,
                                     .n = N,
                                     .pairs = 1,
                                     .k = &k,
                                     .lda = &k,
                                     .ldb = &n,
                                     .ldc = N,
                                     .leads = 2,
                                     .lead = {I, J},
                                     .stride_a = {M * K, 0},
                                     .stride_b = {0, K * N},
                                     .stride_c = {J * M * N, M * N},
                                     .multiplicands = bf16 ? GRAPHI_BF16 : GRAPHI_F32};
            struct kernel kernel;
            assert_int_equal(gemm_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
            assert_true(kernel.flops == 2.0 * I * J * M * N * K);
            assert_true(kernel.bytes == 4.0 * (I * M * K + J * K * N + I * J * M * N));
            assert_int_equal(kernel.workspace, bf16 ? 2 * (I * M * K + J * K * N) : 0);
            kernel_fini(&kernel);
        }
}

/* Leading dimensions that cannot be, and a batch of sums, are refused and leave the kernel untouched. */
static void refuses_nonsense(void **state)
{
    (void)state;
    int64_t k[2] = {8, 8}, small[2] = {7, 7};
    struct kernel kernel = {.name = "untouched"};
    struct gemm_spec spec = {.m = 8, .n = 8, .pairs = 1, .k = k, .lda = small, .ldb = k, .ldc = 8};
    assert_int_equal(gemm_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_INVALID);
    spec.lda = k;
    spec.pairs = 2;
    spec.leads = 1;
    spec.lead[0] = 2;
    assert_int_equal(gemm_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    spec.pairs = 1;
    spec.base = true;
    spec.ld_base = 8;
    assert_int_equal(gemm_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    spec.leads = 0;
    spec.ld_base = 7;
    assert_int_equal(gemm_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    assert_string_equal(kernel.name, "untouched");
}

enum { HINTED_STEPS = 1100, HINTED_A = 3, HINTED_B = 64 };
static struct {
    const char *a, *b;
    int64_t calls, steps;
} hinted;

/* What is asked for beside step s of the sum lies s steps behind the first, in whichever call. */
static void note_hints(const struct micro_call *call)
{
    for (int64_t i = 0; i < call->count; i++) {
        assert_ptr_equal(call->soon_a[i], hinted.a + 4 * hinted.steps * HINTED_A);
        assert_ptr_equal(call->soon_b[i], hinted.b + 4 * hinted.steps * HINTED_B);
        hinted.steps += call->k[i];
    }
    hinted.calls++;
}

/* A segment longer than a call is cut: each of its calls asked for the lines of the first again, and nobody for the
 * others. */
static void hints_go_on_with_the_sum(void **state)
{
    static const char operands[4 * HINTED_STEPS * HINTED_B];
    struct micro_list list = {.call = {.m = 1, .n = 1, .step_stride = HINTED_A, .ldb = HINTED_B}};
    hinted.a = hinted.b = operands;
    micro_start(&list, note_hints, MICRO_STEPS);
    list.soon_a = list.soon_b = operands;
    micro_add(&list, operands, operands, HINTED_STEPS - 100);
    micro_add(&list, operands, operands, 100);
    micro_finish(&list);
    assert_int_equal(hinted.steps, HINTED_STEPS);
    assert_int_equal(hinted.calls, 3);
}

/* Segments of a call, and their steps, beyond what a micro-kernel has room to copy: small integers, so that every order
 * of the sum gives the same bits. */
static void calls_of_any_size(void **state)
{
    (void)state;
    enum { M = 50, N = 37, LD = 1024, SEGMENTS = 130, STEPS = 700 };
    static const struct {
        int64_t segments;
        int32_t steps;
    } calls[] = {{1, 1}, {1, 512}, {1, 570}, {1, STEPS}, {3, 171}, {3, 200}, {64, 8}, {64, 9}, {100, 5}, {SEGMENTS, 3}};
    float *a = mem_alloc(M * STEPS * sizeof *a), *b = mem_alloc(LD * STEPS * sizeof *b);
    assert_true(a && b);
    for (int64_t i = 0; i < M * STEPS; i++)
        a[i] = (float)random_below(17) - 8;
    for (int64_t i = 0; i < LD * STEPS; i++)
        b[i] = (float)random_below(17) - 8;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const void *as[SEGMENTS], *bs[SEGMENTS];
        int32_t ks[SEGMENTS];
        for (int64_t at = 0; at < calls[i].segments; at++) {
            as[at] = a + at * calls[i].steps;
            bs[at] = b + at * calls[i].steps * LD;
            ks[at] = calls[i].steps;
        }
        static float c[2][M * N];
        for (int fast = 0; fast < 2; fast++) {
            const struct micro_call call = {.m = M, .n = N, .count = calls[i].segments, .a = as, .b = bs,
                                            .k = ks, .row_stride = STEPS, .step_stride = 1, .ldb = LD, .ldc = N,
                                            .c = c[fast]};
            micro_kernel(fast ? isa_detect() : ISA_PLAIN, false)(&call);
        }
        assert_memory_equal(c[0], c[1], sizeof c[0]);
    }
    mem_free(a);
    mem_free(b);
}

/* Whole columns of panels may take another way than parts of one, in assembler: to the bit the same, wherever rows lie,
 * whatever is asked for. Nothing beside the tile is written. */
static void columns_and_their_parts_are_alike(void **state)
{
    (void)state;
    enum { ROWS = 70, SEGMENTS = 5, STEPS = 140, OPERAND = 1 << 16, LD = 80, ROOM = (ROWS + 1) * LD };
    static float a[OPERAND], b[OPERAND], whole[ROOM], parts[ROOM];
    for (int i = 0; i < OPERAND; i++) {
        a[i] = (float)random_below(1000) / 500 - 1;
        b[i] = (float)random_below(1000) / 500 - 1;
    }
    for (int trial = 0; trial < 3000; trial++) {
        static const int64_t steps_apart[] = {1, 80, 3};
        const void *as[SEGMENTS], *bs[SEGMENTS], *part_bs[SEGMENTS];
        int32_t ks[SEGMENTS];
        int64_t rows_a[ROWS], rows_c[ROWS];
        for (int i = 0; i < SEGMENTS; i++) {
            as[i] = a + random_below(1000);
            bs[i] = b + random_below(1000);
            ks[i] = (int32_t)random_below(random_below(4) ? STEPS : 20);
        }
        for (int row = 0; row < ROWS; row++) {
            rows_a[row] = 4 * random_below(3000);
            rows_c[row] = 4 * ((ROWS - 1 - row) * LD + random_below(LD - PANEL_MAX));
        }
        struct micro_call call = {.m = 1 + (int)random_below(ROWS), .n = 1 + (int)random_below(PANEL_MAX),
                                  .count = random_below(SEGMENTS + 1), .a = as, .b = bs, .k = ks, .row_stride = 97,
                                  .step_stride = steps_apart[random_below(3)], .ldc = LD, .c = whole};
        call.n = random_below(2) ? PANEL_MAX : call.n;
        call.ldb = random_below(3) ? PANEL_MAX : call.n + random_below(40);
        call.row_offset = random_below(2) ? rows_a : NULL;
        call.result_offset = random_below(2) ? rows_c : NULL;
        call.accumulate = random_below(2);
        call.soon_a = random_below(4) ? NULL : as;
        call.soon_b = random_below(2) ? bs : NULL;
        call.soon_all = random_below(2);
        for (int i = 0; i < ROOM; i++)
            whole[i] = parts[i] = (float)i;
        micro_kernel(least(isa_detect(), ISA_AVX2), false)(&call);
        for (int col = 0; col < call.n; col += 15) { /* fewer columns than two vectors */
            struct micro_call part = call;
            for (int i = 0; i < SEGMENTS; i++)
                part_bs[i] = (const float *)bs[i] + col;
            part.n = (int)least(call.n - col, 15);
            part.b = part_bs;
            part.soon_a = part.soon_b = NULL;
            part.c = parts + col;
            micro_kernel(least(isa_detect(), ISA_AVX2), false)(&part);
        }
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

/* Every instruction set rounds alike, in blocks and after them, numbers below the normal ones and NaN among others:
 * their own instruction takes such for zero. */
static void pairs_round_alike(void **state)
{
    enum { N = 4096 };
    static float low[N], high[N];
    static uint16_t rounded[2][N];
    static uint32_t out[N + 1], next[N / 2 + 1];
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
        const struct pair_functions *f = pair_functions((enum isa)isa);
        for (int i = 0; i < N; i++) {
            const uint32_t small = i % 700 < 50   ? 0x807fffff
                                   : i % 900 == 1 ? 0xffffffff
                                                  : 0xff7fffff; /* or NaN, or any finite */
            const uint32_t bits[] = {(random_below(1 << 16) << 16 | random_below(1 << 16)) & small,
                                     random_below(1 << 16) << 15};
            memcpy(&low[i], &bits[0], 4);
            memcpy(&high[i], &bits[1], 4);
            rounded[0][i] = bf16_round(low[i]);
            rounded[1][i] = bf16_round(high[i]);
        }
        for (int count = N - 33; count <= N; count += 11) {
            f->interleave(low, high, count, out);
            for (int i = 0; i < count; i++)
                assert_int_equal(out[i], rounded[0][i] | (uint32_t)rounded[1][i] << 16);
            f->join(rounded[1], rounded[0], count, out);
            for (int i = 0; i < count; i++)
                assert_int_equal(out[i], rounded[1][i] | (uint32_t)rounded[0][i] << 16);
            f->single(low, count, out);
            for (int i = 0; i < count; i++)
                assert_int_equal(out[i], rounded[0][i]);
            f->neighbours(low, count / 2, next);
            assert_memory_equal(next, rounded[0], (size_t)(count / 2) * 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_round_alike),    cmocka_unit_test(hints_go_on_with_the_sum),
        cmocka_unit_test(calls_of_any_size),    cmocka_unit_test(columns_and_their_parts_are_alike),
        cmocka_unit_test(random_products),      cmocka_unit_test(accumulates_in_place),
        cmocka_unit_test(special_values),
        cmocka_unit_test(a_sum_goes_on_in_another_product),
        cmocka_unit_test(special_values_of_pairs),
        cmocka_unit_test(shares_suit_the_work),
        cmocka_unit_test(few_threads_take_shares_together),
        cmocka_unit_test(cores_change_no_bits),
        cmocka_unit_test(repeated_matrices_count_once), cmocka_unit_test(refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
