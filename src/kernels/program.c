/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise programs: checking, encoding, and preparing them for the executor (isa/program_run.c).
 *
 * Preparing drops dead instructions, gives each output a step of its own (a copy where a value is an input, a constant
 * or stored twice), joins instructions whose result has one reader with that reader where there is a step for both
 * (rules; the same roundings, fewer passes over the block), and assigns scratch slots by lifetime, so that a long chain
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
                                                              .argument = {at->a, at->b, at->c, -1, -1},
                                                              .value = (int16_t)value,
                                                              .imm = at->imm};
    }
    for (int i = 0; i < program->outputs; i++)
        if (own_output(program, program->output[i]) != i)
            code->step[code->steps++] =
                (struct program_step){.op = PROGRAM_COPY,
                                      .output = (int8_t)i,
                                      .argument = {program->output[i], -1, -1, -1, -1},
                                      .value = (int16_t)(program->inputs + program->instructions + i)};
}

/* --- fusing --- */

/* A step over the result of another one, and the step that does what both do. Its arguments are letters: small ones of
 * the inner step, capitals of the outer one. Earlier rules go first. */
static const struct rule {
    uint8_t outer;
    char at; /* the argument of the outer step that the inner one makes */
    uint8_t inner, fused;
    char arguments[PROGRAM_STEP_ARGUMENTS + 1];
    char same[3]; /* arguments of the inner step that must be one value; empty: none */
} rules[] = {
#define RULE(outer, at, inner, fused, arguments, same)                                                                 \
    {PROGRAM_##outer, at, PROGRAM_##inner, PROGRAM_##fused, arguments, same},
#define EITHER(outer, inner, fused, arguments, same)                                                                   \
    RULE(outer, 'A', inner, fused, arguments "B", same)                                                                \
    RULE(outer, 'B', inner, fused, arguments "A", same)
#define SUBTRACTED(inner, kind, arguments)                                                                             \
    RULE(SUB, 'A', inner, kind##_SUB, arguments "B", "")                                                               \
    RULE(SUB, 'B', inner, kind##_RSUB, arguments "A", "")
#define PRODUCT(inner, arguments)                                                                                      \
    EITHER(ADD, inner, MUL_ADD, arguments, "")                                                                         \
    SUBTRACTED(inner, MUL, arguments)                                                                                  \
    EITHER(MUL, inner, MUL_MUL, arguments, "")                                                                         \
    RULE(MUL_ADD, 'C', inner, MUL_MUL_ADD, arguments "AB", "")                                                         \
    RULE(TANH_SLOPE, 'C', inner, MUL_TANH_SLOPE, arguments "AB", "")                                                   \
    RULE(SIGMOID_SLOPE, 'C', inner, MUL_SIGMOID_SLOPE, arguments "AB", "")
    RULE(ADD, 'A', NEG, SUB, "Ba", "")
    RULE(ADD, 'B', NEG, SUB, "Aa", "")
    RULE(SUB, 'B', NEG, ADD, "Aa", "")
    /* d (1 - y y) and d ((1 - y) y) */
    EITHER(MUL, MUL_RSUB, TANH_SLOPE, "ac", "ab")
    EITHER(MUL, SUB_MUL, SIGMOID_SLOPE, "ab", "bc")
    EITHER(ADD, TANH_SLOPE, TANH_SLOPE_ADD, "abc", "")
    EITHER(ADD, MUL_TANH_SLOPE, MUL_TANH_SLOPE_ADD, "abcd", "")
    EITHER(MUL, TANH, TANH_MUL, "a", "")
    RULE(SUB, 'B', FLOOR, FLOOR_RSUB, "aA", "")
    RULE(DIV, 'A', MUL, MUL_DIV, "abB", "")
    RULE(DIV, 'B', SQRT_ADD, OVER_ROOT, "abA", "")
    RULE(MUL_RSUB, 'A', OVER_ROOT, OVER_ROOT_MUL_RSUB, "abcBC", "")
    RULE(MUL_RSUB, 'B', OVER_ROOT, OVER_ROOT_MUL_RSUB, "abcAC", "")
    RULE(MUL_ADD, 'C', MUL_MUL, MUL_MUL_MUL_ADD, "abcAB", "")
    PRODUCT(MUL, "ab")
    PRODUCT(SQUARE, "aa")
    EITHER(ADD, ADD, ADD_ADD, "ab", "")
    EITHER(ADD, ADD_ADD, ADD_ADD_ADD, "abc", "")
    EITHER(ADD, ADD_ADD_ADD, ADD_ADD_ADD_ADD, "abcd", "")
    SUBTRACTED(ADD, ADD, "ab")
    EITHER(MUL, ADD, ADD_MUL, "ab", "")
    EITHER(ADD, SUB, SUB_ADD, "ab", "")
    SUBTRACTED(SUB, SUB, "ab")
    EITHER(MUL, SUB, SUB_MUL, "ab", "")
    EITHER(ADD, SQRT, SQRT_ADD, "a", "")
    RULE(SIGMOID, 'A', ADD, ADD_SIGMOID, "ab", "")
    RULE(TANH, 'A', ADD, ADD_TANH, "ab", "")
    RULE(RELU, 'A', ADD, ADD_RELU, "ab", "")
    RULE(RELU, 'A', FMA, FMA_RELU, "abc", "")
#undef PRODUCT
#undef SUBTRACTED
#undef EITHER
#undef RULE
};

struct fuser {
    struct program_code *code;
    int16_t maker[PROGRAM_MAX_VALUES]; /* step that makes the value; -1: an input */
    int16_t readers[PROGRAM_MAX_VALUES];
    bool gone[PROGRAM_MAX_INSTRUCTIONS + PROGRAM_MAX_OUTPUTS];
};

static void count_readers(struct fuser *f, const struct program_step *step, int change)
{
    for (int k = 0; k < PROGRAM_STEP_ARGUMENTS && step->argument[k] >= 0; k++)
        f->readers[step->argument[k]] += (int16_t)change;
}

/* The step whose result is read as `value` by the step at hand alone, and is no output; NULL: it must stay. */
static struct program_step *only_for_this(const struct fuser *f, int value)
{
    if (value < 0 || f->maker[value] < 0 || f->readers[value] != 1)
        return NULL;
    struct program_step *step = &f->code->step[f->maker[value]];
    return step->output < 0 ? step : NULL;
}

static bool fits(const struct rule *rule, const struct program_step *inner)
{
    return inner && inner->op == rule->inner &&
           (!*rule->same || inner->argument[rule->same[0] - 'a'] == inner->argument[rule->same[1] - 'a']);
}

static void apply(struct fuser *f, const struct rule *rule, struct program_step *step, struct program_step *inner)
{
    const struct program_step outer = *step;
    count_readers(f, step, -1);
    count_readers(f, inner, -1);
    step->op = rule->fused;
    for (int k = 0; k < PROGRAM_STEP_ARGUMENTS; k++) {
        char from = k < (int)strlen(rule->arguments) ? rule->arguments[k] : 0;
        step->argument[k] = !from ? -1 : from >= 'a' ? inner->argument[from - 'a'] : outer.argument[from - 'A'];
    }
    count_readers(f, step, 1);
    f->gone[inner - f->code->step] = true;
}

/* Fuses one step into this one; false where no rule fits. */
static bool fuse_one(struct fuser *f, struct program_step *step)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].outer != step->op)
            continue;
        struct program_step *inner = only_for_this(f, step->argument[rules[i].at - 'A']);
        if (!fits(&rules[i], inner))
            continue;
        apply(f, &rules[i], step, inner);
        return true;
    }
    return false;
}

static void fuse(struct program_code *code)
{
    struct fuser f = {.code = code};
    memset(f.maker, 0xff, sizeof f.maker);
    for (int i = 0; i < code->steps; i++) {
        f.maker[code->step[i].value] = (int16_t)i;
        count_readers(&f, &code->step[i], 1);
    }
    for (int i = 0; i < code->steps; i++)
        while (fuse_one(&f, &code->step[i]))
            ;
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
        const int16_t *argument = code->step[i].argument;
        for (int k = 0; k < PROGRAM_STEP_ARGUMENTS && argument[k] >= 0; k++)
            last[argument[k]] = (int16_t)i;
    }
    memcpy(code->last_use, last, sizeof code->last_use);
    for (int i = 0; i < code->steps; i++) {
        struct program_step *step = &code->step[i];
        const int16_t *argument = step->argument;
        for (int k = 0; k < PROGRAM_STEP_ARGUMENTS && argument[k] >= 0; k++)
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
