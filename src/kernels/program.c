/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise programs: checking, encoding, and preparing them for the executor (isa/program_run.c).
 *
 * Preparing drops dead instructions, gives each output a step of its own (a copy where a value is an input, a constant
 * or stored twice), joins instructions whose result has one reader with that reader where there is a step for both
 * (fuse; the same roundings, fewer passes over the block), and assigns scratch slots by lifetime, so that a long chain
 * needs few. Invariant: a slot is free for a step's result once its last reader is that step or an earlier one;
 * instructions read each vector before they write it. */
#include "kernels/program.h"

#include "base/status.h"
#include "kernels/each_isa.h"
#include "kernels/program_isa.h"

#include <string.h>

static const struct {
    int arity;
    const char *text;
} op_table[PROGRAM_OPS] = {
#define X(name, arity, text) {arity, text},
    PROGRAM_OP_LIST(X)
#undef X
};

int program_op_arity(enum program_op op)
{
    return op_table[op].arity;
}

const char *program_op_text(enum program_op op)
{
    return op_table[op].text;
}

static bool instruction_valid(const struct program *program, int index)
{
    const struct program_instruction *at = &program->code[index];
    if (at->op >= PROGRAM_OPS)
        return false;
    int16_t argument[3] = {at->a, at->b, at->c};
    for (int i = 0; i < 3; i++) {
        bool used = i < op_table[at->op].arity;
        if (used ? argument[i] < 0 || argument[i] >= program->inputs + index : argument[i] != -1)
            return false;
    }
    return true;
}

static graphi_status check(const struct program *program)
{
    if (program->inputs < 0 || program->inputs > PROGRAM_MAX_INPUTS || program->instructions < 0 ||
        program->instructions > PROGRAM_MAX_INSTRUCTIONS || program->outputs < 1 ||
        program->outputs > PROGRAM_MAX_OUTPUTS || program->sums < 0 || program->sums > program->outputs)
        return fail(
            GRAPHI_INVALID, "program",
            "found %d inputs, %d instructions, %d outputs, %d of them sums, expected at most %d, %d and 1 to %d",
            program->inputs, program->instructions, program->outputs, program->sums, PROGRAM_MAX_INPUTS,
            PROGRAM_MAX_INSTRUCTIONS, PROGRAM_MAX_OUTPUTS);
    for (int i = 0; i < program->instructions; i++)
        if (!instruction_valid(program, i))
            return fail(
                GRAPHI_INVALID, "program",
                "found instruction %d with operation %d of values %d %d %d, expected a known operation of earlier "
                "values, unused ones -1",
                i, program->code[i].op, program->code[i].a, program->code[i].b, program->code[i].c);
    for (int i = 0; i < program->outputs; i++)
        if (program->output[i] < 0 || program->output[i] >= program->inputs + program->instructions)
            return fail(GRAPHI_INVALID, "program", "found output %d of value %d, expected one of %d values", i,
                        program->output[i], program->inputs + program->instructions);
    return GRAPHI_OK;
}

int program_encode(const struct program *program, int64_t *integers)
{
    int64_t *at = integers;
    *at++ = program->inputs;
    *at++ = program->instructions;
    *at++ = program->outputs;
    *at++ = program->sums;
    for (int i = 0; i < program->instructions; i++) {
        const struct program_instruction *instruction = &program->code[i];
        uint32_t bits;
        memcpy(&bits, &instruction->imm, sizeof bits);
        *at++ = instruction->op;
        *at++ = instruction->a;
        *at++ = instruction->b;
        *at++ = instruction->c;
        *at++ = bits;
    }
    for (int i = 0; i < program->outputs; i++)
        *at++ = program->output[i];
    return (int)(at - integers);
}

static bool in_range(int64_t value, int64_t low, int64_t high)
{
    return value >= low && value <= high;
}

graphi_status program_decode(const int64_t *integers, int count, struct program *program)
{
    if (count < 4 || !in_range(integers[0], 0, PROGRAM_MAX_INPUTS) ||
        !in_range(integers[1], 0, PROGRAM_MAX_INSTRUCTIONS) || !in_range(integers[2], 1, PROGRAM_MAX_OUTPUTS) ||
        !in_range(integers[3], 0, integers[2]) || count != 4 + 5 * integers[1] + integers[2])
        return fail(GRAPHI_INVALID, "program", "found %d integers, expected as many as their header says", count);
    struct program read = {.inputs = (int)integers[0],
                           .instructions = (int)integers[1],
                           .outputs = (int)integers[2],
                           .sums = (int)integers[3]};
    const int64_t *at = integers + 4;
    for (int i = 0; i < read.instructions; i++, at += 5) {
        bool fits = in_range(at[0], 0, PROGRAM_OPS - 1) && in_range(at[4], 0, UINT32_MAX);
        for (int k = 1; k <= 3; k++)
            fits &= in_range(at[k], -1, INT16_MAX);
        if (!fits)
            return fail(GRAPHI_INVALID, "program",
                        "found instruction %d with numbers out of range, expected kinds and values that exist", i);
        uint32_t bits = (uint32_t)at[4];
        read.code[i] = (struct program_instruction){
            .op = (int16_t)at[0], .a = (int16_t)at[1], .b = (int16_t)at[2], .c = (int16_t)at[3]};
        memcpy(&read.code[i].imm, &bits, sizeof bits);
    }
    for (int i = 0; i < read.outputs; i++, at++) {
        if (!in_range(*at, 0, INT16_MAX))
            return fail(GRAPHI_INVALID, "program", "found output %d of a value out of range, expected one that exists",
                        i);
        read.output[i] = (int16_t)*at;
    }
    TRY(check(&read));
    *program = read;
    return GRAPHI_OK;
}

static void mark_live(const struct program *program, bool *live)
{
    memset(live, 0, PROGRAM_MAX_VALUES);
    for (int i = 0; i < program->outputs; i++)
        live[program->output[i]] = true;
    for (int i = program->instructions - 1; i >= 0; i--) {
        const struct program_instruction *at = &program->code[i];
        if (!live[program->inputs + i])
            continue;
        if (at->a >= 0)
            live[at->a] = true;
        if (at->b >= 0)
            live[at->b] = true;
        if (at->c >= 0)
            live[at->c] = true;
    }
}

/* The output that instruction `value` makes itself, or -1: constants and further outputs of one value are copied. */
static int own_output(const struct program *program, int value)
{
    if (value < program->inputs || program->code[value - program->inputs].op == PROGRAM_IMM)
        return -1;
    for (int i = 0; i < program->outputs; i++)
        if (program->output[i] == value)
            return i;
    return -1;
}

static void list_steps(struct program_code *code)
{
    const struct program *program = &code->program;
    bool live[PROGRAM_MAX_VALUES];
    mark_live(program, live);
    for (int i = 0; i < program->instructions; i++) {
        const struct program_instruction *at = &program->code[i];
        int value = program->inputs + i;
        if (live[value])
            code->step[code->steps++] = (struct program_step){.op = at->op,
                                                              .output = (int8_t)own_output(program, value),
                                                              .a = at->a,
                                                              .b = at->b,
                                                              .c = at->c,
                                                              .value = (int16_t)value,
                                                              .imm = at->imm};
    }
    for (int i = 0; i < program->outputs; i++)
        if (own_output(program, program->output[i]) != i)
            code->step[code->steps++] =
                (struct program_step){.op = PROGRAM_COPY,
                                      .output = (int8_t)i,
                                      .a = program->output[i],
                                      .b = -1,
                                      .c = -1,
                                      .value = (int16_t)(program->inputs + program->instructions + i)};
}

/* --- fusing --- */

/* The step for an outer instruction over an inner one: [inner][outer], 0 where there is none. */
enum inner { INNER_ADD, INNER_SUB, INNER_MUL, INNER_FMA, INNER_SQRT, INNERS };

static const uint8_t pairs[INNERS][PROGRAM_OPS] = {
    [INNER_ADD] = {[PROGRAM_ADD] = PROGRAM_ADD_ADD,
                   [PROGRAM_SUB] = PROGRAM_ADD_SUB,
                   [PROGRAM_MUL] = PROGRAM_ADD_MUL,
                   [PROGRAM_SIGMOID] = PROGRAM_ADD_SIGMOID,
                   [PROGRAM_TANH] = PROGRAM_ADD_TANH,
                   [PROGRAM_RELU] = PROGRAM_ADD_RELU},
    [INNER_SUB] = {[PROGRAM_ADD] = PROGRAM_SUB_ADD, [PROGRAM_SUB] = PROGRAM_SUB_SUB, [PROGRAM_MUL] = PROGRAM_SUB_MUL},
    [INNER_MUL] = {[PROGRAM_ADD] = PROGRAM_MUL_ADD, [PROGRAM_SUB] = PROGRAM_MUL_SUB, [PROGRAM_MUL] = PROGRAM_MUL_MUL},
    [INNER_FMA] = {[PROGRAM_RELU] = PROGRAM_FMA_RELU},
    [INNER_SQRT] = {[PROGRAM_ADD] = PROGRAM_SQRT_ADD},
};
static const uint8_t subtracted[INNERS] = {PROGRAM_ADD_RSUB, PROGRAM_SUB_RSUB, PROGRAM_MUL_RSUB};

struct fuser {
    struct program_code *code;
    int16_t maker[PROGRAM_MAX_VALUES]; /* step that makes the value; -1: an input */
    int16_t readers[PROGRAM_MAX_VALUES];
    bool gone[PROGRAM_MAX_INSTRUCTIONS + PROGRAM_MAX_OUTPUTS];
};

/* The step whose result is read as `value` by the step at hand alone, and is no output; NULL: it must stay. */
static struct program_step *only_for_this(const struct fuser *f, int value)
{
    if (value < 0 || f->maker[value] < 0 || f->readers[value] != 1)
        return NULL;
    struct program_step *step = &f->code->step[f->maker[value]];
    return step->output < 0 ? step : NULL;
}

static int inner_of(const struct program_step *step)
{
    switch (step->op) {
    case PROGRAM_ADD: return INNER_ADD;
    case PROGRAM_SUB: return INNER_SUB;
    case PROGRAM_MUL:
    case PROGRAM_SQUARE: return INNER_MUL;
    case PROGRAM_FMA: return INNER_FMA;
    case PROGRAM_SQRT: return INNER_SQRT;
    default: return INNERS;
    }
}

static void absorb(struct fuser *f, struct program_step *step, const struct program_step *inner, int op, int a, int b,
                   int c)
{
    f->gone[inner - f->code->step] = true;
    step->op = (uint8_t)op;
    step->a = (int16_t)a;
    step->b = (int16_t)b;
    step->c = (int16_t)c;
}

/* d (1 - y y) and d ((1 - y) y), whose inner steps are pairs already. */
static bool fuse_slope(struct fuser *f, struct program_step *step, int value, int other)
{
    const struct program_step *pair = only_for_this(f, value);
    if (step->op != PROGRAM_MUL || !pair)
        return false;
    if (pair->op == PROGRAM_MUL_RSUB && pair->a == pair->b)
        absorb(f, step, pair, PROGRAM_TANH_SLOPE, other, pair->c, pair->a);
    else if (pair->op == PROGRAM_SUB_MUL && pair->b == pair->c)
        absorb(f, step, pair, PROGRAM_SIGMOID_SLOPE, other, pair->a, pair->b);
    else
        return false;
    return true;
}

/* a / (sqrt(b) + c), whose inner steps are a pair already. */
static bool fuse_over_root(struct fuser *f, struct program_step *step)
{
    const struct program_step *pair = step->op == PROGRAM_DIV ? only_for_this(f, step->b) : NULL;
    if (!pair || pair->op != PROGRAM_SQRT_ADD)
        return false;
    absorb(f, step, pair, PROGRAM_OVER_ROOT, step->a, pair->a, pair->b);
    return true;
}

/* a + -b is a - b, and a - -b is a + b. */
static void fuse_negation(struct fuser *f, struct program_step *step)
{
    bool sum = step->op == PROGRAM_ADD, difference = step->op == PROGRAM_SUB;
    const struct program_step *right = sum || difference ? only_for_this(f, step->b) : NULL;
    const struct program_step *left = sum ? only_for_this(f, step->a) : NULL;
    if (right && right->op == PROGRAM_NEG)
        absorb(f, step, right, sum ? PROGRAM_SUB : PROGRAM_ADD, step->a, right->a, -1);
    else if (left && left->op == PROGRAM_NEG)
        absorb(f, step, left, PROGRAM_SUB, step->b, left->a, -1);
}

static bool fuse_pair(struct fuser *f, struct program_step *step, int value, int other, bool right)
{
    const struct program_step *inner = only_for_this(f, value);
    int kind = inner && step->op < PROGRAM_OPS ? inner_of(inner) : INNERS;
    if (kind == INNERS || !pairs[kind][step->op])
        return false;
    int op = right && step->op == PROGRAM_SUB ? subtracted[kind] : pairs[kind][step->op];
    int argument[3] = {inner->a, inner->op == PROGRAM_SQUARE ? inner->a : inner->b, inner->c}, used = 1;
    while (used < 3 && argument[used] >= 0)
        used++;
    if (used < 3)
        argument[used] = other;
    absorb(f, step, inner, op, argument[0], argument[1], argument[2]);
    return true;
}

static void fuse(struct program_code *code)
{
    struct fuser f = {.code = code};
    memset(f.maker, 0xff, sizeof f.maker);
    for (int i = 0; i < code->steps; i++) {
        int16_t argument[3] = {code->step[i].a, code->step[i].b, code->step[i].c};
        f.maker[code->step[i].value] = (int16_t)i;
        for (int k = 0; k < 3; k++)
            if (argument[k] >= 0)
                f.readers[argument[k]]++;
    }
    for (int i = 0; i < code->steps; i++) {
        struct program_step *step = &code->step[i];
        fuse_negation(&f, step);
        const int a = step->a, b = step->b;
        if (!fuse_slope(&f, step, b, a) && !fuse_slope(&f, step, a, b) && !fuse_over_root(&f, step) &&
            !fuse_pair(&f, step, a, b, false))
            fuse_pair(&f, step, b, a, true);
    }
    int kept = 0;
    for (int i = 0; i < code->steps; i++)
        if (!f.gone[i])
            code->step[kept++] = code->step[i];
    code->steps = kept;
}

static void assign_slots(struct program_code *code)
{
    int16_t last[PROGRAM_MAX_VALUES], slot_of[PROGRAM_MAX_VALUES];
    bool taken[PROGRAM_MAX_VALUES] = {false};
    for (int i = 0; i < PROGRAM_MAX_VALUES; i++)
        last[i] = slot_of[i] = -1;
    for (int i = 0; i < code->steps; i++) {
        int16_t argument[3] = {code->step[i].a, code->step[i].b, code->step[i].c};
        for (int k = 0; k < 3; k++)
            if (argument[k] >= 0)
                last[argument[k]] = (int16_t)i;
    }
    memcpy(code->last_use, last, sizeof code->last_use);
    for (int i = 0; i < code->steps; i++) {
        struct program_step *step = &code->step[i];
        int16_t argument[3] = {step->a, step->b, step->c};
        for (int k = 0; k < 3; k++)
            if (argument[k] >= code->program.inputs && last[argument[k]] == i && slot_of[argument[k]] >= 0)
                taken[slot_of[argument[k]]] = false;
        if (step->op == PROGRAM_IMM)
            continue;
        int slot = 0;
        while (taken[slot])
            slot++;
        taken[slot] = true;
        step->slot = (int16_t)slot;
        if (slot >= code->slots)
            code->slots = slot + 1;
        if (step->output < 0) /* an output keeps its slot to the end of the block, should it not be written in place */
            slot_of[step->value] = (int16_t)slot;
    }
}

graphi_status program_prepare(const struct program *program, enum isa isa, struct program_code *out)
{
#define ENTRY(isa) program_run_##isa,
    static void (*const run[])(const struct program_code *, const struct program_operand *,
                               const struct program_operand *, int64_t, int64_t) = {EACH_ISA(ENTRY)};
    TRY(check(program));
    memset(out, 0, sizeof *out);
    out->program = *program;
    out->isa = isa;
    out->run = run[isa];
    list_steps(out);
    fuse(out);
    assign_slots(out);
    return GRAPHI_OK;
}
