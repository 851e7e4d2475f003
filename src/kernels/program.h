/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise programs: a chain or DAG of element-wise operations in SSA form, run over blocks that stay in L1. A
 * single element-wise node, a fused group of them, an optimizer update and the epilogue of a GEMM tile are all
 * programs.
 *
 * Values are numbered: 0 .. inputs-1 are the inputs, inputs+i is the result of instruction i. Each instruction reads
 * up to three earlier values. `outputs` values (any, also inputs) are stored, the last `sums` of them not themselves:
 * summed over the rows of a matrix, as they are made. All arithmetic is float32; integer inputs are not taken. */
#ifndef KERNELS_PROGRAM_H
#define KERNELS_PROGRAM_H

#include "kernels/kernel.h"

/* X(NAME, arity, text). Semantics: y = f(a, b, c); imm is the instruction's constant. MOD is floored modulo (sign of
 * the divisor). STEP is a > 0 ? 1 : 0. SELECT is a != 0 ? b : c. comparisons give 1 or 0. IMM has no arguments. */
#define PROGRAM_OP_LIST(X)                                                                         \
    X(COPY, 1, "identity")                                                                         \
    X(IMM, 0, "imm")                                                                               \
    X(NEG, 1, "neg")                                                                               \
    X(ABS, 1, "abs")                                                                               \
    X(SIGN, 1, "sign")                                                                             \
    X(SQUARE, 1, "square")                                                                         \
    X(SQRT, 1, "sqrt")                                                                             \
    X(RSQRT, 1, "rsqrt")                                                                           \
    X(RECIPROCAL, 1, "reciprocal")                                                                 \
    X(EXP, 1, "exp")                                                                               \
    X(LOG, 1, "log")                                                                               \
    X(TANH, 1, "tanh")                                                                             \
    X(SIGMOID, 1, "sigmoid")                                                                       \
    X(RELU, 1, "relu")                                                                             \
    X(STEP, 1, "step")                                                                             \
    X(FLOOR, 1, "floor")                                                                           \
    X(SOFTPLUS, 1, "softplus")                                                                     \
    X(ERF, 1, "erf")                                                                               \
    X(ADD, 2, "add")                                                                               \
    X(SUB, 2, "sub")                                                                               \
    X(MUL, 2, "mul")                                                                               \
    X(DIV, 2, "div")                                                                               \
    X(MIN, 2, "min")                                                                               \
    X(MAX, 2, "max")                                                                               \
    X(POW, 2, "pow")                                                                               \
    X(MOD, 2, "mod")                                                                               \
    X(LESS, 2, "less")                                                                             \
    X(EQUAL, 2, "equal")                                                                           \
    X(FMA, 3, "fma")                                                                               \
    X(SELECT, 3, "select")

enum program_op {
#define X(name, arity, text) PROGRAM_##name,
    PROGRAM_OP_LIST(X)
#undef X
        PROGRAM_OPS
};

int program_op_arity(enum program_op op);
const char *program_op_text(enum program_op op);

struct program_instruction {
    /* Of one type, so that there is no padding, whose bytes would be by chance. */
    int16_t op, a, b, c; /* an operation and value numbers, -1 where unused */
    float imm;
};

enum { PROGRAM_MAX_INPUTS = 24, PROGRAM_MAX_INSTRUCTIONS = 96, PROGRAM_MAX_OUTPUTS = 12 };

struct program {
    int inputs, instructions, outputs, sums;
    struct program_instruction code[PROGRAM_MAX_INSTRUCTIONS];
    int16_t output[PROGRAM_MAX_OUTPUTS];
};

/* A program as the integer list that a node carries as its attribute "program", and back. encode writes at most
 * PROGRAM_MAX_ENCODED integers and returns how many; decode checks everything (INVALID on any inconsistency). */
enum { PROGRAM_MAX_ENCODED = 4 + 5 * PROGRAM_MAX_INSTRUCTIONS + PROGRAM_MAX_OUTPUTS };
int program_encode(const struct program *program, int64_t *integers);
graphi_status program_decode(const int64_t *integers, int count, struct program *program);

/* How an operand meets a rows x cols region. */
enum program_broadcast {
    PROGRAM_FULL,   /* element (r, c) at data[r * ld + c] */
    PROGRAM_ROW,    /* one value a column: data[c] */
    PROGRAM_COLUMN, /* one value a row: data[r * ld] */
    PROGRAM_SCALAR, /* data[0] */
};

struct program_operand {
    float *data;
    int64_t ld;
    enum program_broadcast broadcast;
};

/* A program prepared for an instruction set; lives in the params of a kernel. Immutable, shared by threads. Only
 * `stream` is for callers: after program_prepare, true makes every output a streaming store (past the caches). */
enum { PROGRAM_MAX_VALUES = PROGRAM_MAX_INPUTS + PROGRAM_MAX_INSTRUCTIONS + PROGRAM_MAX_OUTPUTS };

enum { PROGRAM_STEP_ARGUMENTS = 5 };

struct program_step {
    uint8_t op;
    int8_t output;                                   /* the output that this step makes, or -1 */
    int16_t argument[PROGRAM_STEP_ARGUMENTS], value; /* value numbers, -1 where unused */
    int16_t slot;                                    /* of the scratch */
    float imm;
};

struct program_code {
    struct program program;
    enum isa isa;
    bool stream;
    int steps, slots; /* live instructions, joined where rules do, then a copy for each output that needs one */
    int16_t last_use[PROGRAM_MAX_INPUTS]; /* last step that reads the input; -1: none */
    struct program_step step[PROGRAM_MAX_INSTRUCTIONS + PROGRAM_MAX_OUTPUTS];
    void (*run)(const struct program_code *code, const struct program_operand *inputs,
                const struct program_operand *outputs, int64_t rows, int64_t cols);
};

graphi_status program_prepare(const struct program *program, enum isa isa, struct program_code *out);

/* Runs it on one region. Outputs are FULL, but sums: to each of their columns (data[c]) all rows are added, by fours
 * and in order. A FULL output may be the same memory as an input (same data and ld). Any thread; no allocation; the
 * GEMM and convolution kernels call it on a tile while it is hot (the tile itself is then input 0 and, as a rule,
 * output 0). */
static inline void program_run(const struct program_code *code, const struct program_operand *inputs,
                               const struct program_operand *outputs, int64_t rows, int64_t cols)
{
    code->run(code, inputs, outputs, rows, cols);
}

/* The element-wise kernel: every input broadcasts by numpy's rules to the shape of the outputs, which all have the
 * same shape; a program with sums runs over a matrix of more than one row and column, and a sum has its columns and the
 * bits that reduce_bind's would have. Any strides are taken in all dimensions but the last, where elements are
 * contiguous (or an input is constant); UNSUPPORTED otherwise. An output may be the same array as an input of its
 * shape. */
graphi_status program_bind(const struct program *program, const struct array_desc *in, const struct array_desc *out,
                           enum isa isa, struct kernel *kernel);

/* Makes the outputs of a kernel that program_bind made for results of shape `out` streaming stores, past the caches,
 * where asked for or where they pay. Before its first run. The bits are the same. */
void program_stream(struct kernel *kernel, const struct array_desc *out, graphi_streaming when);
bool program_streams(const struct array_desc *out, graphi_streaming when); /* that choice */

/* Can `in` be an operand for results of shape `out`? (The question program_bind asks for each input; fusion asks it
 * too.) */
bool program_accepts(const struct array_desc *in, const struct array_desc *out);

#endif
