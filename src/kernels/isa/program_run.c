/* SPDX-License-Identifier: Apache-2.0 */
/* The executor of element-wise programs, compiled once per instruction set.
 *
 * A region is cut into blocks small enough that all intermediates of a block stay in L1; each step is one call
 * through a table that runs over the whole block. Every operand of a step is a `view`: a step of 0 between
 * vectors repeats one vector (scalars, one value a row), a row stride of 0 repeats a row. So inputs are read in place,
 * whatever their broadcast, and narrow regions take several rows a block; where rows are so short that their ends cost
 * more than their elements, a dense region becomes one long row, its row operands repeated. The instruction that
 * makes an output writes it in place, unless that output overlaps an input that a later instruction of the block
 * still reads. What is summed over rows never leaves the scratch: blocks are four rows or a multiple, and at the end
 * of each its rows are added to the sums.
 *
 * Any thread. The scratch is on the stack: at most 75 KiB. Usual programs: 1 to 20 instructions, blocks of 1024
 * floats. */
#include "kernels/program.h"

#include "kernels/isa/isa.h"
#include "kernels/isa/vmath.h"
#include "kernels/program_isa.h"
#include "kernels/reduce_isa.h"

struct view {
    const float *data;
    int64_t ld; /* floats between rows */
    int step;   /* floats between vectors: VL, or 0 for one vector repeated */
};

typedef void (*step_function)(float *y, int64_t ldy, const struct view *const *in, int rows, int cols);

/* A step over rows, two vectors a turn: moving on takes as many operations as an addition does. Pointers and what they
 * move by are locals: a vector store may alias anything, so those in memory would be read again each time. */
#define LOOP(name, OPERANDS, expr)                                                                                     \
    static void step_##name(float *y, int64_t ldy, const struct view *const *in, int rows, int cols)                   \
    {                                                                                                                  \
        const int64_t sa = in[0]->step, sb = in[1]->step, sc = in[2]->step, sd = in[3]->step, se = in[4]->step;        \
        for (int r = 0; r < rows; r++, y += ldy) {                                                                     \
            const float *pa = in[0]->data + r * in[0]->ld, *pb = in[1]->data + r * in[1]->ld,                          \
                        *pc = in[2]->data + r * in[2]->ld, *pd = in[3]->data + r * in[3]->ld,                          \
                        *pe = in[4]->data + r * in[4]->ld;                                                             \
            int i = 0;                                                                                                 \
            for (; i + 2 * VL <= cols; i += 2 * VL) {                                                                  \
                { OPERANDS(HERE); vstore(y + i, expr); }                                                               \
                { OPERANDS(NEXT); vstore(y + i + VL, expr); }                                                          \
                pa += 2 * sa, pb += 2 * sb, pc += 2 * sc, pd += 2 * sd, pe += 2 * se;                                  \
            }                                                                                                          \
            if (i + VL <= cols) {                                                                                      \
                { OPERANDS(HERE); vstore(y + i, expr); }                                                               \
                pa += sa, pb += sb, pc += sc, pd += sd, pe += se, i += VL;                                             \
            }                                                                                                          \
            const int n = cols - i;                                                                                    \
            if (n > 0) {                                                                                               \
                OPERANDS(PART);                                                                                        \
                vstore_n(y + i, expr, n);                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
#define HERE(x) vload(p##x)
#define NEXT(x) vload(p##x + s##x)
#define PART(x) vload_n(p##x, n)
#define OPERANDS_1(at) vf A = at(a)
#define OPERANDS_2(at) vf A = at(a), B = at(b)
#define OPERANDS_3(at) vf A = at(a), B = at(b), C = at(c)
#define OPERANDS_4(at) vf A = at(a), B = at(b), C = at(c), D = at(d)
#define OPERANDS_5(at) vf A = at(a), B = at(b), C = at(c), D = at(d), E = at(e)
#define UNARY(name, expr) LOOP(name, OPERANDS_1, expr)
#define BINARY(name, expr) LOOP(name, OPERANDS_2, expr)
#define TERNARY(name, expr) LOOP(name, OPERANDS_3, expr)

/* Floored modulo of one pair, exact. */
static float mod_one(float a, float b)
{
    float r = fmodf(a, b);
    if (r != 0)
        return (r < 0) != (b < 0) ? r + b : r;
    return r == r ? copysignf(0, b) : r;
}

/* a - floor(a / b) b is exact in one fused step while the quotient is small, but for one b where the quotient was
 * rounded up to an integer: the sign tells. Vectors with a larger quotient or a special take the exact slow way. */
static inline vf vmod(vf a, vf b)
{
#if VL > 1
    vf zero = vset(0), by = vsel_eq(b, zero, vset(1), b); /* modulo 0 is NaN, put in at the end */
    vf q = vfloor(a / by);
    if (vall_less(vabs(q), vset(0x1p22f)) && vall_less(vabs(by), vset(INFINITY))) {
        vf r = vfnma(q, by, a);
        r = r + vsel_gt(by, zero, vsel_gt(zero, r, by, zero), vsel_gt(r, zero, by, zero));
        r = vsel_eq(r, zero, vcopysign(zero, by), r);
        return vsel_eq(b, zero, vset(NAN), r);
    }
#endif
    float x[VL], y[VL];
    vstore(x, a);
    vstore(y, b);
    for (int i = 0; i < VL; i++)
        x[i] = mod_one(x[i], y[i]);
    return vload(x);
}

#define ZERO vset(0)
#define ONE vset(1)
UNARY(COPY, A)
UNARY(NEG, vneg(A))
UNARY(ABS, vabs(A))
UNARY(SIGN, vsel_gt(A, ZERO, ONE, vsel_gt(ZERO, A, vset(-1), A)))
UNARY(SQUARE, A *A)
UNARY(SQRT, vsqrt(A))
UNARY(RSQRT, ONE / vsqrt(A))
UNARY(RECIPROCAL, ONE / A)
UNARY(EXP, vexp(A))
UNARY(LOG, vlog(A))
UNARY(TANH, vtanh(A))
UNARY(SIGMOID, vsigmoid(A))
UNARY(RELU, vmax_x86(ZERO, A))
UNARY(STEP, vsel_gt(A, ZERO, ONE, ZERO))
UNARY(FLOOR, vfloor(A))
UNARY(SOFTPLUS, vsoftplus(A))
UNARY(ERF, verf(A))
BINARY(ADD, A + B)
BINARY(SUB, A - B)
BINARY(MUL, A *B)
BINARY(DIV, A / B)
BINARY(MIN, vmin(A, B))
BINARY(MAX, vmax(A, B))
BINARY(POW, vpow(A, B))
BINARY(MOD, vmod(A, B))
BINARY(LESS, vsel_gt(B, A, ONE, ZERO))
BINARY(EQUAL, vsel_eq(A, B, ONE, ZERO))
TERNARY(FMA, vfma(A, B, C))
TERNARY(SELECT, vsel_ne(A, ZERO, B, C))

static void fill(float *y, float value)
{
    vstore(y, vset(value));
}

#if VL > 1 /* the vector forms are compiled with contraction */
#define ROUNDED(product) rounded(product)
#else
#define ROUNDED(product) (product)
#endif
#define X(name, arity, expr) LOOP(name, OPERANDS_##arity, expr)
PROGRAM_FUSED_LIST(X)
#undef X

#define step_IMM NULL
static const step_function step_table[PROGRAM_STEP_OPS] = {
#define X(name, arity, text) [PROGRAM_##name] = step_##name,
    PROGRAM_OP_LIST(X) PROGRAM_FUSED_LIST(X)
#undef X
};

static void stream_rows(float *y, int64_t ldy, const float *x, int64_t ldx, int rows, int cols)
{
    for (int r = 0; r < rows; r++, y += ldy, x += ldx) {
        int i = 0;
        for (; i < cols && ((uintptr_t)(y + i) & (VL * sizeof(float) - 1)); i++)
            y[i] = x[i];
        for (; i + VL <= cols; i += VL)
            vstream(y + i, vload(x + i));
        for (; i < cols; i++)
            y[i] = x[i];
    }
}

/* The call under way. */
struct region {
    const struct program_code *code;
    int64_t rows, cols;
    struct program_operand in[PROGRAM_MAX_INPUTS], out[PROGRAM_MAX_OUTPUTS];
    struct view view[PROGRAM_MAX_VALUES + 1]; /* the last one stands for unused arguments */
    bool uniform[PROGRAM_MAX_VALUES]; /* one value for the whole region, computed once */
    bool direct[PROGRAM_MAX_OUTPUTS], stream[PROGRAM_MAX_OUTPUTS];
    int block, block_rows, block_cols, ld; /* of the scratch */
    int period;                            /* elements after which row operands repeat; 0: they do not */
    int prepared;                          /* inputs kept in slots after the program's: a value a row, repeated rows */
    float *scratch;
};

enum { SHORT_ROW = 64 };

static bool is_sum(const struct region *region, int output)
{
    return output >= region->code->program.outputs - region->code->program.sums;
}

static bool dense(const struct region *region, const struct program_operand *operand)
{
    return operand->broadcast == PROGRAM_FULL && (operand->ld == region->cols || region->rows == 1);
}

/* One row: a row operand is a full one, and so on; one run of memory: one long row. */
static void simplify(struct region *region)
{
    int inputs = region->code->program.inputs, outputs = region->code->program.outputs;
    bool one_run = true, row_operands = false;
    for (int i = 0; i < inputs; i++) {
        struct program_operand *in = &region->in[i];
        if (region->rows == 1 && in->broadcast == PROGRAM_ROW)
            in->broadcast = PROGRAM_FULL;
        if (region->rows == 1 && in->broadcast == PROGRAM_COLUMN)
            in->broadcast = PROGRAM_SCALAR;
        if (region->cols == 1 && in->broadcast == PROGRAM_COLUMN)
            in->broadcast = PROGRAM_FULL;
        if (region->cols == 1 && in->broadcast == PROGRAM_ROW)
            in->broadcast = PROGRAM_SCALAR;
        row_operands |= in->broadcast == PROGRAM_ROW;
        one_run &= in->broadcast == PROGRAM_SCALAR || in->broadcast == PROGRAM_ROW || dense(region, in);
    }
    for (int i = 0; i < outputs; i++)
        one_run &= dense(region, &region->out[i]);
    if (!one_run || (row_operands && region->cols > SHORT_ROW))
        return;
    region->period = row_operands ? (int)region->cols : 0;
    region->cols *= region->rows;
    region->rows = 1;
}

static bool overlaps(const struct region *region, const struct program_operand *a, const struct program_operand *b)
{
    const float *a_end = a->data + (region->rows - 1) * a->ld + region->cols;
    const float *b_end = b->data + (region->rows - 1) * b->ld + region->cols;
    return a->data < b_end && b->data < a_end;
}

/* Results in place of an input are not streamed: their lines are in the caches already. */
static void choose_direct(struct region *region)
{
    const struct program_code *code = region->code;
    for (int i = 0; i < code->steps; i++) {
        int o = code->step[i].output;
        if (o < 0 || is_sum(region, o))
            continue;
        bool direct = true, in_place = false;
        for (int k = 0; k < code->program.inputs; k++)
            if (region->in[k].broadcast == PROGRAM_FULL && overlaps(region, &region->in[k], &region->out[o])) {
                in_place = true;
                direct &= code->last_use[k] <= i;
            }
        region->stream[o] = code->stream && !in_place;
        region->direct[o] = direct && !region->stream[o];
    }
}

/* Are row operands written out for a whole block? Those of one vector are repeated as they are. */
static bool spreads(const struct region *region)
{
    return region->period && region->period != VL;
}

/* Does one step make all there is, in place? Then nothing waits in the scratch, and a block has no size to keep to: one
 * of 1,024 elements costs 40 ns beside the 70 to 150 of its arithmetic. */
static bool only_step(const struct region *region)
{
    int steps = 0;
    for (int i = 0; i < region->code->steps; i++)
        steps += !region->uniform[region->code->step[i].value];
    return steps == 1 && region->code->program.outputs == 1 && region->direct[0] && !region->prepared;
}

/* Rows are summed by fours: four of them make a block, or a multiple. */
static void choose_block(struct region *region)
{
    enum { FOUR = 4, LONG = 1 << 20 };
    bool sums = region->code->program.sums > 0;
    for (int i = 0; i < region->code->program.inputs; i++)
        region->prepared += region->in[i].broadcast == PROGRAM_COLUMN ||
                            (spreads(region) && region->in[i].broadcast == PROGRAM_ROW);
    int slots = region->code->slots + region->prepared, block = slots ? PROGRAM_SCRATCH_GOAL / slots & ~63 : 1024;
    region->block = block < PROGRAM_BLOCK_MIN ? PROGRAM_BLOCK_MIN : block > 1024 ? 1024 : block;
    int widest = only_step(region) ? LONG : sums ? region->block / FOUR : region->block;
    if (region->cols >= widest) {
        region->ld = widest;
        region->block_cols = region->period ? widest / region->period * region->period : widest;
        region->block_rows = sums ? FOUR : 1;
        return;
    }
    region->block_cols = (int)region->cols;
    region->ld = (int)(region->cols + VL - 1) / VL * VL;
    int fit = region->block / region->ld;
    if (sums)
        fit = fit / FOUR * FOUR;
    region->block_rows = region->rows < fit ? (int)region->rows : fit > 1 ? fit : 1;
}

/* Unused arguments are some view too: each step has all. */
static void arguments(const struct region *region, const struct program_step *step, const struct view **in)
{
    for (int k = 0; k < PROGRAM_STEP_ARGUMENTS; k++)
        in[k] = &region->view[step->argument[k] >= 0 ? step->argument[k] : PROGRAM_MAX_VALUES];
}

/* Scalars, constants and whatever follows from them alone: one vector each. */
static void compute_uniform(struct region *region, float *vectors)
{
    const struct program_code *code = region->code;
    for (int i = 0; i < code->program.inputs; i++) {
        region->uniform[i] = region->in[i].broadcast == PROGRAM_SCALAR;
        if (!region->uniform[i])
            continue;
        fill(vectors, region->in[i].data[0]);
        region->view[i] = (struct view){vectors, 0, 0};
        vectors += VL;
    }
    for (int i = 0; i < code->steps; i++) {
        const struct program_step *step = &code->step[i];
        bool uniform = step->output < 0;
        for (int k = 0; k < PROGRAM_STEP_ARGUMENTS && step->argument[k] >= 0; k++)
            uniform &= region->uniform[step->argument[k]];
        region->uniform[step->value] = uniform;
        if (!uniform)
            continue;
        const struct view *in[PROGRAM_STEP_ARGUMENTS];
        arguments(region, step, in);
        if (step->op == PROGRAM_IMM)
            fill(vectors, step->imm);
        else
            step_table[step->op](vectors, 0, in, 1, VL);
        region->view[step->value] = (struct view){vectors, 0, 0};
        vectors += VL;
    }
}

/* Repeats a row over a block, doubling what is there. */
static void repeat(float *to, const float *row, int period, int count)
{
    memcpy(to, row, (size_t)period * sizeof *to);
    for (int made = period; made < count; made *= 2)
        memcpy(to + made, to, (size_t)(made < count - made ? made : count - made) * sizeof *to);
}

/* The views of one block's inputs. Repeated rows are the same for all blocks, values a row for all blocks of a row. */
static void place_inputs(struct region *region, int64_t row, int64_t col, int rows)
{
    float *slot = region->scratch + (int64_t)region->code->slots * region->block;
    for (int i = 0; i < region->code->program.inputs; i++) {
        const struct program_operand *in = &region->in[i];
        if (in->broadcast == PROGRAM_FULL)
            region->view[i] = (struct view){in->data + row * in->ld + col, in->ld, VL};
        if (in->broadcast == PROGRAM_ROW && !region->period)
            region->view[i] = (struct view){in->data + col, 0, VL};
        if (in->broadcast == PROGRAM_ROW && region->period == VL)
            region->view[i] = (struct view){in->data, 0, 0};
        if (in->broadcast == PROGRAM_ROW && spreads(region)) {
            if (col == 0)
                repeat(slot, in->data, region->period, region->block_cols);
            region->view[i] = (struct view){slot, 0, VL};
            slot += region->block;
        }
        if (in->broadcast != PROGRAM_COLUMN)
            continue;
        for (int r = 0; r < rows && col == 0; r++)
            fill(slot + r * VL, in->data[(row + r) * in->ld]);
        region->view[i] = (struct view){slot, VL, 0};
        slot += region->block;
    }
}

static void add_rows(float *sum, const float *x, int64_t ld, int rows, int cols)
{
    for (int r = 0; r < rows; r += 4) {
        const float *row[4];
        int count = 0;
        for (; count < 4 && r + count < rows; count++)
            row[count] = x + (r + count) * ld;
        ISA_NAME(reduce_loops).rows[REDUCE_SUM](sum, row, count, cols);
    }
}

/* Are rows of this length one run, in what the step writes and in all that it reads? */
static bool one_row(const struct view *const *in, int64_t ldy, int cols)
{
    bool one = ldy == cols;
    for (int k = 0; k < PROGRAM_STEP_ARGUMENTS; k++)
        one &= in[k]->ld == (in[k]->step ? cols : 0);
    return one;
}

static void run_block(struct region *region, int64_t row, int64_t col, int rows, int cols)
{
    const struct program_code *code = region->code;
    for (int i = 0; i < code->steps; i++) {
        const struct program_step *step = &code->step[i];
        if (region->uniform[step->value])
            continue;
        float *y = region->scratch + (int64_t)step->slot * region->block;
        int64_t ldy = region->ld;
        if (step->output >= 0 && region->direct[step->output]) {
            const struct program_operand *out = &region->out[step->output];
            y = out->data + row * out->ld + col;
            ldy = out->ld;
        }
        const struct view *in[PROGRAM_STEP_ARGUMENTS];
        arguments(region, step, in);
        if (rows > 1 && one_row(in, ldy, cols))
            step_table[step->op](y, ldy, in, 1, rows * cols);
        else
            step_table[step->op](y, ldy, in, rows, cols);
        region->view[step->value] = (struct view){y, ldy, VL};
    }
    for (int i = 0; i < code->steps; i++) {
        int o = code->step[i].output;
        if (o < 0 || region->direct[o])
            continue;
        const struct view *from = &region->view[code->step[i].value];
        if (is_sum(region, o)) {
            add_rows(region->out[o].data + col, from->data, from->ld, rows, cols);
            continue;
        }
        float *y = region->out[o].data + row * region->out[o].ld + col;
        if (region->stream[o])
            stream_rows(y, region->out[o].ld, from->data, from->ld, rows, cols);
        else
            step_COPY(y, region->out[o].ld, (const struct view *[]){from, from, from, from, from}, rows, cols);
    }
}

static void fetch_rows(const float *x, int64_t ld, int rows, int cols)
{
    enum { LINE = 16 };
    for (int r = 0; r < rows; r++, x += ld)
        for (int i = 0; i < cols; i += LINE)
            __builtin_prefetch(x + i, 0, 2);
}

/* The arrays of the block that comes next, on their way to the level-2 cache while this one is worked on. */
static void fetch_block(const struct region *region, int64_t row, int64_t col)
{
    if (row >= region->rows)
        return;
    int rows = (int)least(region->block_rows, region->rows - row),
        cols = (int)least(region->block_cols, region->cols - col);
    const struct program *program = &region->code->program;
    for (int i = 0; i < program->inputs; i++)
        if (region->in[i].broadcast == PROGRAM_FULL)
            fetch_rows(region->in[i].data + row * region->in[i].ld + col, region->in[i].ld, rows, cols);
    for (int o = 0; o < program->outputs; o++)
        if (region->direct[o])
            fetch_rows(region->out[o].data + row * region->out[o].ld + col, region->out[o].ld, rows, cols);
}

void ISA_NAME(program_run)(const struct program_code *code, const struct program_operand *inputs,
                           const struct program_operand *outputs, int64_t rows, int64_t cols)
{
    if (rows <= 0 || cols <= 0)
        return;
    _Alignas(64) float scratch[PROGRAM_SCRATCH];
    _Alignas(64) float vectors[PROGRAM_MAX_VALUES * VL];
    struct region region;
    region.code = code;
    region.rows = rows;
    region.cols = cols;
    region.period = region.prepared = 0;
    memset(region.direct, 0, sizeof region.direct);
    memset(region.stream, 0, sizeof region.stream);
    region.scratch = scratch;
    region.view[PROGRAM_MAX_VALUES] = (struct view){.data = scratch};
    memcpy(region.in, inputs, (size_t)code->program.inputs * sizeof *inputs);
    memcpy(region.out, outputs, (size_t)code->program.outputs * sizeof *outputs);
    simplify(&region);
    choose_direct(&region);
    compute_uniform(&region, vectors);
    choose_block(&region);
    bool fetches = !only_step(&region) && code->steps > code->program.inputs + code->program.outputs;
    for (int64_t r = 0; r < region.rows; r += region.block_rows) {
        int n = (int)least(region.block_rows, region.rows - r);
        for (int64_t c = 0; c < region.cols; c += region.block_cols) {
            int m = (int)least(region.block_cols, region.cols - c);
            bool row_ends = c + m == region.cols;
            if (fetches)
                fetch_block(&region, row_ends ? r + n : r, row_ends ? 0 : c + m);
            place_inputs(&region, r, c, n);
            run_block(&region, r, c, n, m);
        }
    }
#if VL > 1
    if (code->stream)
        _mm_sfence();
#endif
}
