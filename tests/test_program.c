/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise programs: arithmetic against double precision, every layout, aliasing, guard pages, hostile encodings.
 */
#include "kernels/program.h"
#include "kernels/reduce.h"

#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t dice_state = 1;
static uint32_t dice(uint32_t n)
{
    return random_philox(7, 0, dice_state++).v[0] % n;
}
static float dice_float(void)
{
    return (random_unit(random_philox(9, 0, dice_state++).v[1]) - 0.5f) * 8;
}

static struct program one(enum program_op op)
{
    struct program p = {.inputs = program_op_arity(op), .instructions = 1, .outputs = 1};
    int n = p.inputs;
    p.code[0] = (struct program_instruction){
        .op = (uint8_t)op, .a = n > 0 ? 0 : -1, .b = n > 1 ? 1 : -1, .c = n > 2 ? 2 : -1, .imm = 2.5f};
    p.output[0] = (int16_t)n;
    return p;
}

static struct program_code prepared(const struct program *program, enum isa isa)
{
    struct program_code code;
    assert_int_equal(program_prepare(program, isa, &code), GRAPHI_OK);
    return code;
}

static struct program_operand full(float *data, int64_t ld)
{
    return (struct program_operand){data, ld, PROGRAM_FULL};
}

static double sigmoid_d(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double softplus_d(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double rsqrt_d(double x)
{
    return 1 / sqrt(x);
}
static double reciprocal_d(double x)
{
    return 1 / x;
}

/* Error in spacings of floats at the true value. */
static double error_ulp(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(got) || fabs(want) > 0x1.ffffffp127)
        return fabs(want) > 0x1.fffff8p127 && (double)fabsf(got) > 0x1.fffff8p127 && (got > 0) == (want > 0) ? 0
                                                                                                             : INFINITY;
    int e;
    frexp(fabs(want), &e);
    return fabs((double)got - want) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

/* A polynomial that is wrong in some corner (denormals, overflow, NaN) would pass tests on usual numbers. */
static void functions_over_all_exponents(void **state)
{
    static const struct {
        enum program_op op;
        double (*exact)(double);
        double bound;
    } row[] = {{PROGRAM_EXP, exp, 2},
               {PROGRAM_LOG, log, 2},
               {PROGRAM_TANH, tanh, 4},
               {PROGRAM_SIGMOID, sigmoid_d, 4},
               {PROGRAM_SOFTPLUS, softplus_d, 4},
               {PROGRAM_ERF, erf, 2},
               {PROGRAM_SQRT, sqrt, 0.5},
               {PROGRAM_RSQRT, rsqrt_d, 2},
               {PROGRAM_RECIPROCAL, reciprocal_d, 0.5},
               {PROGRAM_FLOOR, floor, 0},
               {PROGRAM_ABS, fabs, 0}};
    enum { N = 1 << 11 };
    static float x[N], y[N];
    for (size_t f = 0; f < sizeof row / sizeof *row; f++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
            struct program program = one(row[f].op);
            struct program_code code = prepared(&program, isa);
            double worst = 0;
            float at = 0;
            for (uint32_t e = 0; e < 512; e++) {
                for (uint32_t i = 0; i < N; i++) {
                    uint32_t bits = e << 23 | (i < 4 ? (i & 1) * 0x7fffff + i / 2 : (i * 0x9e3779b9u + e * 77) >> 9);
                    memcpy(&x[i], &bits, 4);
                }
                struct program_operand in = full(x, N), out = full(y, N);
                program_run(&code, &in, &out, 1, N);
                for (int i = 0; i < N; i++) {
                    double error = error_ulp(y[i], row[f].exact((double)x[i]));
                    if (error > worst)
                        worst = error, at = x[i];
                }
            }
            if (worst > row[f].bound)
                fail_msg("%s %s: %g ULP at %a", isa_name(isa), program_op_text(row[f].op), worst, (double)at);
            print_message("%-7s %-10s %.3f ULP\n", isa_name(isa), program_op_text(row[f].op), worst);
        }
}

/* Powers near overflow and underflow, of bases near 1 and with large exponents, lose all digits when the logarithm is
 * short. */
static void powers_over_the_whole_range(void **state)
{
    enum { N = 4096 };
    static float a[N], b[N], y[N];
    struct program program = one(PROGRAM_POW);
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        struct program_code code = prepared(&program, isa);
        double worst = 0;
        for (int round = 0; round < 60; round++) {
            for (int i = 0; i < N; i++) {
                uint32_t bits = round % 3 ? dice(0x7f800000) : 0x3f800000 + dice(4096) - 2048;
                memcpy(&a[i], &bits, 4);
                b[i] = round % 2 ? dice_float() : dice_float() * (float)(1 + dice(1000));
                if (round % 3 == 1)
                    b[i] = (float)(140 - (int)dice(300)) / log2f(a[i]) * (1 - 0.01f * dice_float());
            }
            struct program_operand in[2] = {full(a, N), full(b, N)}, out = full(y, N);
            program_run(&code, in, &out, 1, N);
            for (int i = 0; i < N; i++)
                worst = fmax(worst, error_ulp(y[i], pow((double)a[i], (double)b[i])));
        }
        print_message("%-7s pow        %.3f ULP\n", isa_name(isa), worst);
        assert_true(worst <= 1);
    }
}

static const float specials[] = {0,       -0.0f, 1,      -1,       0.5f,      2,   -3,   7.25f, 1e-40f,
                                 -1e-40f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 3e6f, 0.1f,  -0.1f};
enum { SPECIALS = sizeof specials / sizeof *specials };

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || !memcmp(&a, &b, 4);
}

static bool transcendental(int op)
{
    return op == PROGRAM_EXP || op == PROGRAM_LOG || op == PROGRAM_TANH || op == PROGRAM_SIGMOID ||
           op == PROGRAM_SOFTPLUS || op == PROGRAM_ERF || op == PROGRAM_POW;
}

/* Exact operations must be the same bits on every instruction set, also for specials: NaN, zeros of both signs. The
 * others must be the same on all vector instruction sets, or results would differ between machines. */
static void operations_equal_over_instruction_sets(void **state)
{
    enum { N = SPECIALS * SPECIALS * 4 };
    static float a[N], b[N], c[N], want[N], got[N];
    for (uint32_t i = 0; i < N; i++) {
        a[i] = specials[i % SPECIALS];
        b[i] = specials[i / SPECIALS % SPECIALS];
        c[i] = specials[(i * 7 + i / 5) % SPECIALS];
        if (i >= N / 2 && i / 64 % 3) {
            a[i] = dice_float() * (float)(1 + dice(100000));
            b[i] = dice_float();
        }
    }
    struct program_operand in[3] = {full(a, N), full(b, N), full(c, N)}, to_want = full(want, N), to_got = full(got, N);
    for (int op = 0; op < PROGRAM_OPS; op++) {
        struct program program = one(op);
        int reference = transcendental(op) ? ISA_AVX2 : ISA_PLAIN;
        for (int isa = reference; isa <= (int)isa_detect(); isa++) {
            struct program_code code = prepared(&program, isa);
            program_run(&code, in, isa == reference ? &to_want : &to_got, 1, N);
            for (int i = 0; i < N && isa != reference; i++)
                if (!same(want[i], got[i]))
                    fail_msg("%s %s(%a, %a, %a): %a, not %a", isa_name(isa), program_op_text(op), (double)a[i],
                             (double)b[i], (double)c[i], (double)got[i], (double)want[i]);
        }
    }
}

/* Modulo truncated instead of floored turns the phase of a phased LSTM negative. */
static void meanings(void **state)
{
    static const struct {
        enum program_op op;
        float a, b, c, y;
    } row[] = {
        {PROGRAM_MOD, 5, 3, 0, 2},      {PROGRAM_MOD, -5, 3, 0, 1},    {PROGRAM_MOD, 5, -3, 0, -1},
        {PROGRAM_MOD, -5, -3, 0, -2},   {PROGRAM_MOD, 6, 3, 0, 0},     {PROGRAM_MOD, 1e9f, 7, 0, 6},
        {PROGRAM_STEP, 0, 0, 0, 0},     {PROGRAM_STEP, 2, 0, 0, 1},    {PROGRAM_SELECT, 0, 5, 6, 6},
        {PROGRAM_SELECT, -2, 5, 6, 5},  {PROGRAM_LESS, 1, 2, 0, 1},    {PROGRAM_LESS, 2, 2, 0, 0},
        {PROGRAM_EQUAL, 2, 2, 0, 1},    {PROGRAM_POW, 2, 10, 0, 1024}, {PROGRAM_POW, 4, -0.5f, 0, 0.5f},
        {PROGRAM_MAX, NAN, 1, 0, NAN},  {PROGRAM_MAX, 1, NAN, 0, NAN}, {PROGRAM_MIN, NAN, 1, 0, NAN},
        {PROGRAM_RELU, NAN, 0, 0, NAN}, {PROGRAM_SIGN, -4, 0, 0, -1},  {PROGRAM_FMA, 2, 3, 4, 10},
        {PROGRAM_EQUAL, 2, 1, 0, 0},    {PROGRAM_STEP, -2, 0, 0, 0},   {PROGRAM_SIGN, 4, 0, 0, 1},
        {PROGRAM_SIGN, 0, 0, 0, 0},     {PROGRAM_RELU, -2, 0, 0, 0},   {PROGRAM_SUB, 2, 5, 0, -3},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int isa = 0; isa <= (int)isa_detect(); isa++) {
            struct program program = one(row[i].op);
            struct program_code code = prepared(&program, isa);
            float a = row[i].a, b = row[i].b, c = row[i].c, y = 99;
            struct program_operand in[3] = {full(&a, 1), full(&b, 1), full(&c, 1)}, out = full(&y, 1);
            program_run(&code, in, &out, 1, 1);
            if (!same(y, row[i].y))
                fail_msg("%s row %zu: %g", isa_name(isa), i, (double)y);
        }
}

static struct program random_program(int inputs)
{
    struct program p = {.inputs = inputs, .instructions = 1 + (int)dice(12), .outputs = 1 + (int)dice(3)};
    for (int i = 0; i < p.instructions; i++) {
        uint8_t op = (uint8_t)dice(PROGRAM_OPS);
        int16_t v[3] = {-1, -1, -1};
        for (int k = 0; k < program_op_arity(op); k++)
            v[k] = (int16_t)dice((uint32_t)(inputs + i));
        p.code[i] = (struct program_instruction){.op = op, .a = v[0], .b = v[1], .c = v[2], .imm = dice_float()};
    }
    for (int i = 0; i < p.outputs; i++)
        p.output[i] = (int16_t)dice((uint32_t)(inputs + p.instructions));
    return p;
}

/* Interprets a program for a single element with 1 x 1 calls of single-instruction programs. */
static void interpret(const struct program *p, const struct program_code *single, const float *in, float *out)
{
    float v[PROGRAM_MAX_VALUES];
    memcpy(v, in, (size_t)p->inputs * sizeof *v);
    for (int i = 0; i < p->instructions; i++) {
        int16_t arg[3] = {p->code[i].a, p->code[i].b, p->code[i].c};
        struct program_operand operand[3], result = full(&v[p->inputs + i], 1);
        for (int k = 0; k < single[i].program.inputs; k++)
            operand[k] = full(&v[arg[k]], 1);
        program_run(&single[i], operand, &result, 1, 1);
    }
    for (int i = 0; i < p->outputs; i++)
        out[i] = v[p->output[i]];
}

/* A window whose end touches a page that faults. */
struct guarded {
    char *map;
    size_t size;
};
static float *guard(struct guarded *g, int64_t floats)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = ((size_t)floats * 4 + page - 1) / page * page;
    g->size = bytes + 2 * page;
    g->map = mmap(NULL, g->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g->map != MAP_FAILED);
    if (!getenv("GRAPHI_TESTS_EMULATED")) { /* as in guarded.h */
        mprotect(g->map, page, PROT_NONE);
        mprotect(g->map + page + bytes, page, PROT_NONE);
    }
    return (float *)(void *)(g->map + page + bytes) - floats;
}

static int64_t extent(const struct program_operand *operand, int64_t rows, int64_t cols)
{
    static const struct {
        bool by_row, by_col;
    } moves[] = {{true, true}, {false, true}, {true, false}, {false, false}};
    return (moves[operand->broadcast].by_row ? (rows - 1) * operand->ld : 0) +
           (moves[operand->broadcast].by_col ? cols : 1);
}

static float element(const struct program_operand *operand, int64_t r, int64_t c)
{
    return operand->data[extent(operand, r + 1, c + 1) - 1];
}

static void check_program(const struct program *p, enum isa isa, const struct program_operand *in,
                          const struct program_operand *out, int64_t rows, int64_t cols)
{
    struct program_code code = prepared(p, isa), single[12];
    for (int i = 0; i < p->instructions; i++) {
        struct program alone = one(p->code[i].op);
        alone.code[0].imm = p->code[i].imm;
        single[i] = prepared(&alone, isa);
    }
    code.stream = dice(2);
    program_run(&code, in, out, rows, cols);
    for (int probe = 0; probe < 40; probe++) {
        int64_t r = dice((uint32_t)rows), c = dice((uint32_t)cols);
        if (probe & 1)
            c = cols - 1 - c % 20 % cols;
        float x[5], want[3];
        for (int k = 0; k < p->inputs; k++)
            x[k] = element(&in[k], r, c);
        interpret(p, single, x, want);
        for (int k = 0; k < p->outputs; k++)
            if (!same(want[k], element(&out[k], r, c)))
                fail_msg("%s: output %d at %d, %d of %d x %d: %a, alone %a", isa_name(isa), k, (int)r, (int)c,
                         (int)rows, (int)cols, (double)element(&out[k], r, c), (double)want[k]);
    }
}

/* Wrong slots, a tail that reads past its array, an element whose bits depend on where in a block it falls. */
static void random_programs_equal_single_elements(void **state)
{
    for (int round = 0; round < 200; round++) {
        int inputs = 1 + (int)dice(4);
        struct program p = random_program(inputs);
        int64_t rows = 1 + dice(dice(3) ? 5 : 90), cols = 1 + dice(dice(4) ? 70 : 2500);
        bool tight = round % 2; /* rows without gaps, repeated ones among them: may be seen as one long row */
        struct guarded g[8];
        struct program_operand in[4], out[3];
        for (int k = 0; k < inputs; k++) {
            enum program_broadcast broadcast = (enum program_broadcast)dice(4);
            if (tight && broadcast == PROGRAM_COLUMN)
                broadcast = PROGRAM_ROW;
            in[k] = (struct program_operand){NULL, cols + !tight * dice(2) * dice(9), broadcast};
            int64_t n = extent(&in[k], rows, cols);
            in[k].data = guard(&g[k], n);
            for (int64_t i = 0; i < n; i++)
                in[k].data[i] = dice(20) ? dice_float() : specials[dice(SPECIALS)];
        }
        for (int k = 0; k < p.outputs; k++) {
            out[k] = full(NULL, cols + !tight * dice(2) * dice(9));
            out[k].data = guard(&g[4 + k], extent(&out[k], rows, cols));
        }
        for (int isa = 0; isa <= (int)isa_detect(); isa++)
            check_program(&p, isa, in, out, rows, cols);
        for (int k = 0; k < 8; k++)
            if (k < inputs || (k >= 4 && k < 4 + p.outputs))
                munmap(g[k].map, g[k].size);
    }
}

/* One step has no blocks but of a million elements: rows longer than these, and rows that are one run of memory. Two
 * constants beside it are no steps of the kind. */
static void long_rows_of_one_step(void **state)
{
    enum { COLS = (1 << 20) + 1003, SHORT = 1000 };
    static float x[COLS], y[COLS], expected[COLS];
    struct program copy = one(PROGRAM_RELU), line = {.inputs = 1, .instructions = 4, .outputs = 1, .output = {4}};
    line.code[0] = (struct program_instruction){PROGRAM_IMM, -1, -1, -1, 2.5f};
    line.code[1] = (struct program_instruction){PROGRAM_IMM, -1, -1, -1, -1};
    line.code[2] = (struct program_instruction){PROGRAM_MUL, 0, 1, -1, 0};
    line.code[3] = (struct program_instruction){PROGRAM_ADD, 3, 2, -1, 0};
    const struct program *programs[] = {&copy, &line};
    for (int i = 0; i < COLS; i++)
        x[i] = dice_float();
    for (int p = 0; p < 2; p++)
        for (int isa = 0; isa <= (int)isa_detect(); isa++) {
            const struct program_code code = prepared(programs[p], isa);
            assert_int_equal(code.steps, p ? 3 : 1);
            for (int at = 0; at < COLS; at += SHORT) {
                struct program_operand in = full(x + at, COLS), out = full(expected + at, COLS);
                program_run(&code, &in, &out, 1, at + SHORT < COLS ? SHORT : COLS - at);
            }
            for (int rows = 1; rows <= COLS; rows = rows == 1 ? COLS / SHORT : COLS + 1) {
                const int64_t cols = rows == 1 ? COLS : SHORT;
                struct program_operand in = full(x, cols), out = full(y, cols);
                memset(y, 0xff, sizeof y);
                program_run(&code, &in, &out, rows, cols);
                assert_memory_equal(y, expected, (size_t)(rows * cols) * sizeof *y);
            }
        }
}

/* A program of one output, in Polish notation: operands, then what is done with them; "ab*c+" is a b + c. */
static struct program written(const char *text)
{
    static const struct {
        char letter;
        uint8_t op;
    } words[] = {{'+', PROGRAM_ADD},  {'-', PROGRAM_SUB},     {'*', PROGRAM_MUL},    {'/', PROGRAM_DIV},
                 {'n', PROGRAM_NEG},  {'q', PROGRAM_SQUARE},  {'v', PROGRAM_SQRT},   {'f', PROGRAM_FLOOR},
                 {'t', PROGRAM_TANH}, {'s', PROGRAM_SIGMOID}, {'r', PROGRAM_RELU},   {'m', PROGRAM_FMA}};
    struct program p = {.outputs = 1};
    for (const char *at = text; *at; at++)
        if (*at >= 'a' && *at <= 'e' && *at - 'a' >= p.inputs)
            p.inputs = *at - 'a' + 1;
    int16_t stack[16];
    int depth = 0;
    for (const char *at = text; *at; at++) {
        if (*at >= 'a' && *at <= 'e') {
            stack[depth++] = (int16_t)(*at - 'a');
            continue;
        }
        int w = 0;
        while (words[w].letter != *at)
            w++;
        const int arity = program_op_arity(words[w].op);
        depth -= arity;
        assert_true(depth >= 0);
        p.code[p.instructions] = (struct program_instruction){words[w].op, stack[depth], -1, -1, 0};
        if (arity > 1)
            p.code[p.instructions].b = stack[depth + 1];
        if (arity > 2)
            p.code[p.instructions].c = stack[depth + 2];
        stack[depth++] = (int16_t)(p.inputs + p.instructions++);
    }
    assert_int_equal(depth, 1);
    p.output[0] = stack[0];
    return p;
}

/* Operands of every kind in turn, and all full: rows of one vector, of several and with a rest. */
static void check_steps(const char *text, int steps)
{
    enum { N = 300, MOST = 5, ROWS = 3, LD = N + 5, KINDS = 4 };
    static float x[MOST][ROWS * LD], y[ROWS * LD];
    const struct program p = written(text);
    struct program_operand in[MOST], out = full(y, LD);
    for (int k = 0; k < MOST; k++)
        for (int i = 0; i < ROWS * LD; i++)
            x[k][i] = dice(20) ? dice_float() : specials[dice(SPECIALS)];
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        if (prepared(&p, isa).steps != steps)
            fail_msg("%s: %d steps, expected %d", text, prepared(&p, isa).steps, steps);
        for (int kind = 0; kind <= KINDS; kind++)
            for (int cols = 1; cols <= N; cols += cols < 40 ? 1 : N - 40) {
                for (int k = 0; k < MOST; k++)
                    in[k] = (struct program_operand){
                        x[k], LD, kind < KINDS ? (enum program_broadcast)((k + kind) % KINDS) : PROGRAM_FULL};
                check_program(&p, isa, in, &out, 1 + cols % ROWS, cols);
            }
    }
}

/* What is not one step (each costs a pass over the block); a product that is contracted with the sum around it and
 * rounds otherwise than alone; a subtraction the wrong way round; a row that ends within two vectors. */
static void fused_steps_round_like_single_ones(void **state)
{
    static const char *const one_step[] = {
        /* sums */
        "ab+c+", "cab++", "ab+c-", "cab+-", "ab+c*", "cab+*", "ab+s", "ab+t", "ab+r", "abcmr", "ab+c+d+", "dab+c++",
        "ab+c+d+e+", "edab+c+++", "ab-c+", "cab-+", "ab-c-", "cab--", "ab-c*", "cab-*",
        /* products */
        "ab*c+", "cab*+", "ab*c-", "cab*-", "ab*c*", "cab**", "aqb+", "baq+", "aqb-", "baq-", "aqb*", "baq*",
        "ab*cd*+", "aqbc*+", "abc**de*+", "de*abc**+", "aqb*cd*+", "ab*c/",
        /* signs, floors, tanh, roots */
        "abn+", "anb+", "abn-", "bbf-", "abf-", "atb*", "bat*", "avb+", "bav+", "abvc+/", "eabvc+/d*-", "edabvc+/*-",
        /* slopes of tanh and sigmoid */
        "abcq-*", "bcq-a*", "ad*bcq-*", "aqbcq-*", "abcq-*d+", "dabcq-*+", "ad*bcq-*e+", "ead*bcq-*+", "abc-c**",
        "bc-c*a*", "ad*bc-c**", "aqbc-c**"};
    for (size_t i = 0; i < sizeof one_step / sizeof *one_step; i++)
        check_steps(one_step[i], 1);
    check_steps("avb+c/", 2);    /* the root is divided */
    check_steps("abcd*-*", 2);   /* not a square */
    check_steps("ab*ab*+c+", 2); /* nothing is added to two products */
    check_steps("ab+c+d+e+a+", 2);
}

/* An output written early over an input that a later instruction reads; also outputs that swap their inputs. */
static void outputs_may_be_inputs(void **state)
{
    struct program p = {.inputs = 2, .instructions = 2, .outputs = 2, .output = {2, 3}};
    p.code[0] = (struct program_instruction){.op = PROGRAM_ADD, .a = 0, .b = 1, .c = -1};
    p.code[1] = (struct program_instruction){.op = PROGRAM_SUB, .a = 0, .b = 1, .c = -1};
    struct program swap = {.inputs = 2, .outputs = 2, .output = {1, 0}};
    enum { N = 3000 };
    static float a[N], b[N];
    for (int isa = 0; isa <= (int)isa_detect(); isa++) {
        for (int i = 0; i < N; i++)
            a[i] = (float)i, b[i] = (float)(2 * i + 1);
        struct program_operand operand[2] = {full(a, N / 30), full(b, N / 30)};
        struct program_code code = prepared(&p, isa), exchange = prepared(&swap, isa);
        program_run(&code, operand, operand, 30, N / 30);
        program_run(&exchange, operand, operand, 30, N / 30);
        for (int i = 0; i < N; i++) {
            assert_true(b[i] == (float)(3 * i + 1));
            assert_true(a[i] == (float)(-i - 1));
        }
    }
}

static struct array_desc random_out(void)
{
    int64_t dims[4];
    int rank = (int)dice(5);
    for (int i = 0; i < rank; i++)
        dims[i] = !dice(12) ? 0 : dice(5) ? 1 + dice(9) : 1;
    if (rank && !dice(4))
        dims[rank - 1] = 20000 + dice(3000);
    struct array_desc desc = array_dense(GRAPHI_F32, rank, dims);
    desc.bounded = rank && dice(2);
    if (rank > 1 && dice(2)) /* padded rows */
        for (int i = rank - 2; i >= 0; i--)
            desc.strides[i] = (desc.dims[i + 1] + (i == rank - 2 ? 5 : 0)) * desc.strides[i + 1];
    return desc;
}

static struct array_desc random_operand(const struct array_desc *out)
{
    int drop = out->rank && dice(2) ? (int)dice((uint32_t)out->rank) : 0;
    int64_t dims[4];
    for (int i = drop; i < out->rank; i++)
        dims[i - drop] = dice(3) ? out->dims[i] : 1;
    struct array_desc desc = array_dense(GRAPHI_F32, out->rank - drop, dims);
    desc.bounded = out->bounded && !drop && dims[0] == out->dims[0] && dims[0] != 1;
    return desc;
}

static int64_t span(const struct array_desc *desc)
{
    int64_t last = 0;
    for (int i = 0; i < desc->rank; i++)
        last += (desc->dims[i] - 1) * desc->strides[i];
    return array_count(desc) ? last + 1 : 0;
}

/* Where element `e` of results of shape `out` lies in an operand, by numpy's rule. */
static int64_t locate(const struct array_desc *operand, const struct array_desc *out, int64_t e)
{
    int64_t at = 0;
    for (int i = out->rank - 1; i >= 0; i--) {
        int axis = i - (out->rank - operand->rank);
        if (axis >= 0 && operand->dims[axis] != 1)
            at += e % out->dims[i] * operand->strides[axis];
        e /= out->dims[i];
    }
    return at;
}

/* Broadcasts of any rank, bounded rows, shares run backwards. */
static void kernel_takes_every_broadcast(void **state)
{
    for (int round = 0; round < 200; round++) {
        struct array_desc out = random_out(), in[2] = {random_operand(&out), random_operand(&out)};
        struct program p = one(PROGRAM_SUB);
        float *data[3] = {mem_alloc((size_t)span(&in[0]) * 4 + 1), mem_alloc((size_t)span(&in[1]) * 4 + 1),
                          mem_alloc((size_t)span(&out) * 4 + 1)};
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < span(&in[k]); i++)
                data[k][i] = (float)dice(1000);
        for (int64_t i = 0; i < span(&out); i++)
            data[2][i] = 7777;
        int64_t rows = out.bounded ? dice((uint32_t)out.dims[0] + 1) : out.rank ? out.dims[0] : 1;
        struct kernel kernel;
        assert_int_equal(program_bind(&p, in, &out, dice(isa_detect() + 1u), &kernel), GRAPHI_OK);
        struct kernel_array args[2] = {{data[0], rows}, {data[1], rows}}, result = {data[2], rows};
        struct kernel_call call = {.in = args, .out = &result, .params = kernel.params};
        for (int share = kernel.shares[0] - 1; share >= 0; share--)
            assert_int_equal(kernel.run(&call, 0, share), GRAPHI_OK);
        int64_t count = array_count(&out), row = out.rank && out.dims[0] ? count / out.dims[0] : 1;
        for (int64_t e = 0; e < count; e++) {
            float want = data[0][locate(&in[0], &out, e)] - data[1][locate(&in[1], &out, e)];
            if (e / row >= rows)
                want = 7777;
            if (data[2][locate(&out, &out, e)] != want)
                fail_msg("round %d element %d of %d", round, (int)e, (int)count);
        }
        kernel_fini(&kernel);
        for (int k = 0; k < 3; k++)
            mem_free(data[k]);
    }
}

/* An array of this many floats, small whole and half numbers and a few large ones: sums depend on their order. */
static float *numbers(int64_t count)
{
    float *x = mem_alloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = dice_float() * (dice(8) ? 1 : 1e4f);
    return x;
}

/* All shares, as `width` threads have them (0: nobody says), in reversed order. */
static void run_backwards(const struct kernel *kernel, const struct kernel_array *in, const struct kernel_array *out,
                          int width)
{
    struct kernel_call call = {
        .in = in, .out = out, .params = kernel->params, .width = width, .workspace = mem_alloc(kernel->workspace + 1)};
    for (int phase = 0; phase < kernel->phases; phase++)
        for (int share = kernel->shares[phase] - 1; share >= 0; share--)
            assert_int_equal(kernel->run(&call, phase, share), GRAPHI_OK);
    mem_free(call.workspace);
}

/* The sum of a stored matrix by the reduction's own kernel. */
static void check_sum(const struct array_desc *matrix, float *x, const float *got, enum isa isa)
{
    struct array_desc row = array_dense(GRAPHI_F32, 1, &matrix->dims[1]);
    struct kernel kernel;
    float *want = mem_alloc((size_t)row.dims[0] * sizeof *want);
    assert_int_equal(reduce_bind(REDUCE_SUM, matrix, 1, &row, isa, &kernel), GRAPHI_OK);
    run_backwards(&kernel, &(struct kernel_array){x, matrix->dims[0]}, &(struct kernel_array){want, row.dims[0]}, 0);
    if (memcmp(want, got, (size_t)row.dims[0] * sizeof *want))
        fail_msg("%s: %d x %d summed otherwise", isa_name(isa), (int)matrix->dims[0], (int)matrix->dims[1]);
    kernel_fini(&kernel);
    mem_free(want);
}

/* x b + t is stored and summed, x b is summed alone, and so is x itself. x may have padded rows, and the result may lie
 * in it. */
static void check_sums(int64_t rows, int64_t cols, enum isa isa)
{
    struct program p = {.inputs = 3, .instructions = 2, .outputs = 4, .sums = 3, .output = {4, 3, 0, 4}}, stored = p;
    p.code[0] = stored.code[0] = (struct program_instruction){PROGRAM_MUL, 0, 1, -1, 0};
    p.code[1] = stored.code[1] = (struct program_instruction){PROGRAM_ADD, 3, 2, -1, 0};
    stored.outputs = 2;
    stored.sums = 0;
    const int64_t dims[] = {rows, cols}, tall[] = {rows, 1};
    struct array_desc matrix = array_dense(GRAPHI_F32, 2, dims), row = array_dense(GRAPHI_F32, 1, dims + 1);
    struct array_desc in[] = {matrix, row, array_dense(GRAPHI_F32, 2, tall)}, out[] = {matrix, row, row, row};
    in[0].strides[0] = out[0].strides[0] = cols + dice(2) * 5;
    float *x = numbers(rows * in[0].strides[0]), *y = numbers(rows * cols), *product = numbers(rows * cols);
    float *b = numbers(cols), *t = numbers(rows), *sum = numbers(3 * cols), *kept = numbers(rows * in[0].strides[0]);
    memcpy(kept, x, (size_t)(rows * in[0].strides[0]) * sizeof *x);
    struct kernel kernel, plain;
    const struct kernel_array args[] = {{x, rows}, {b, cols}, {t, rows}};
    assert_int_equal(program_bind(&stored, in, (struct array_desc[]){matrix, matrix}, isa, &plain), GRAPHI_OK);
    run_backwards(&plain, args, (struct kernel_array[]){{y, rows}, {product, rows}}, 0);
    assert_int_equal(program_bind(&p, in, out, isa, &kernel), GRAPHI_OK);
    for (int width = 0; width <= 3; width++) {
        memcpy(x, kept, (size_t)(rows * in[0].strides[0]) * sizeof *x);
        run_backwards(&kernel, args,
                      (struct kernel_array[]){{x, rows}, {sum, cols}, {sum + cols, cols}, {sum + 2 * cols, cols}},
                      width);
        for (int64_t r = 0; r < rows; r++)
            assert_memory_equal(x + r * in[0].strides[0], y + r * cols, (size_t)cols * sizeof *x);
        check_sum(&matrix, product, sum, isa);
        check_sum(&in[0], kept, sum + cols, isa);
        check_sum(&matrix, y, sum + 2 * cols, isa);
    }
    kernel_fini(&kernel);
    kernel_fini(&plain);
    float *all[] = {x, y, product, b, t, sum, kept};
    for (int i = 0; i < 7; i++)
        mem_free(all[i]);
}

/* Sums that differ from those of the reduction that they replace, by a bit, depend on whether fusion found them: rows
 * and columns that fill no block, no vector, no group of four, and several leaves. */
static void sums_equal_reductions(void **state)
{
    static const int64_t rows[] = {2, 3, 5, 16, 63, 64, 65, 130, 301}, cols[] = {2, 3, 16, 17, 64, 129, 300, 513, 1030};
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
        for (int r = 0; r < 9; r++)
            for (int c = 0; c < 9; c++)
                check_sums(rows[r], cols[c], isa);
}

/* What is not taken is refused, not computed wrongly. */
static void kernel_refuses(void **state)
{
    struct kernel kernel;
    struct program p = one(PROGRAM_NEG);
    struct array_desc out = array_dense(GRAPHI_F32, 2, (int64_t[]){4, 6}), in = out;
    in.dims[1] = 5;
    assert_int_equal(program_bind(&p, &in, &out, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    in = out;
    in.strides[1] = 2;
    assert_false(program_accepts(&in, &out));
    in = out;
    in.dtype = GRAPHI_I32;
    assert_int_equal(program_bind(&p, &in, &out, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    struct program sum = {.inputs = 1, .outputs = 1, .sums = 1};
    struct array_desc row = array_dense(GRAPHI_F32, 1, &out.dims[1]);
    in = out;
    assert_int_equal(program_bind(&sum, &in, &out, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    in.dims[0] = 1;
    assert_int_equal(program_bind(&sum, &in, &row, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    in = out;
    in.bounded = true;
    assert_int_equal(program_bind(&sum, &in, &row, ISA_PLAIN, &kernel), GRAPHI_UNSUPPORTED);
    in = out;
    mem_fail_after(0);
    assert_int_equal(program_bind(&sum, &in, &row, ISA_PLAIN, &kernel), GRAPHI_MEMORY);
    mem_fail_after(0);
    graphi_status status = program_bind(&p, &in, &out, ISA_PLAIN, &kernel);
    mem_fail_after(-1);
    assert_int_equal(status, GRAPHI_MEMORY);
}

/* A stored plan may be damaged: every single changed integer must give a valid program or INVALID, never a crash. */
static void decoding_survives_damage(void **state)
{
    static const int64_t evil[] = {-1, 0,         1,         2,         30, 97, 1000, INT16_MAX, INT16_MAX + 1,
                                   -2, INT64_MAX, INT64_MIN, UINT32_MAX};
    for (int round = 0; round < 50; round++) {
        struct program p = random_program(2), back;
        int64_t code[PROGRAM_MAX_ENCODED];
        int count = program_encode(&p, code);
        assert_int_equal(program_decode(code, count, &back), GRAPHI_OK);
        int64_t again[PROGRAM_MAX_ENCODED];
        assert_int_equal(program_encode(&back, again), count);
        assert_memory_equal(code, again, sizeof *code * (size_t)count);
        for (int n = 0; n < count; n++)
            assert_int_equal(program_decode(code, n, &back), GRAPHI_INVALID);
        for (int i = 0; i < count; i++)
            for (size_t e = 0; e < sizeof evil / sizeof *evil; e++) {
                int64_t keep = code[i];
                code[i] = evil[e];
                if (program_decode(code, count, &back) == GRAPHI_OK)
                    prepared(&back, ISA_PLAIN);
                code[i] = keep;
            }
    }
}

/* Small results would leave the caches before they are read, or large ones drive everything else out of them. */
static void large_results_are_streamed(void **state)
{
    (void)state;
    const struct array_desc small = array_dense(GRAPHI_F32, 2, (int64_t[]){2048, 1024});
    const struct array_desc large = array_dense(GRAPHI_F32, 2, (int64_t[]){32768, 1024});
    assert_false(program_streams(&small, GRAPHI_STREAM_BY_SIZE));
    assert_true(program_streams(&large, GRAPHI_STREAM_BY_SIZE));
    assert_true(program_streams(&small, GRAPHI_STREAM_ALWAYS));
    assert_false(program_streams(&large, GRAPHI_STREAM_NEVER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meanings),
        cmocka_unit_test(functions_over_all_exponents),
        cmocka_unit_test(powers_over_the_whole_range),
        cmocka_unit_test(operations_equal_over_instruction_sets),
        cmocka_unit_test(random_programs_equal_single_elements),
        cmocka_unit_test(long_rows_of_one_step),
        cmocka_unit_test(fused_steps_round_like_single_ones),
        cmocka_unit_test(outputs_may_be_inputs),
        cmocka_unit_test(kernel_takes_every_broadcast),
        cmocka_unit_test(sums_equal_reductions),
        cmocka_unit_test(kernel_refuses),
        cmocka_unit_test(decoding_survives_damage),
        cmocka_unit_test(large_results_are_streamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
