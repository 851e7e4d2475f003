/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operations: one row each in a table, with their gradients; `add_n`; `program`, the form that fusion
 * leaves; and `expand`, which repeats to a shape that may follow a symbol. All take numpy broadcasts and run as
 * element-wise programs. */
#include "ops/elementwise.h"

#include "kernels/add_n.h"
#include "ops/elementwise_gradient.h"

#include <string.h>

/* --- shapes --- */

/* In the order of the call: a is what stands before b. */
static graphi_status mismatch(const char *where, const struct value_type *a, const struct value_type *b)
{
    char first[96], second[96];
    type_text(a, first, sizeof first);
    type_text(b, second, sizeof second);
    return fail(GRAPHI_INVALID, where, "found %s with %s, expected shapes that broadcast", first, second);
}

/* A size of 1 that is repeated; one that follows a symbol is not, be its bound 1. */
static bool repeats(const struct value_type *type, int i)
{
    return type->dims[i] == 1 && !(i == 0 && type->symbol >= 0);
}

static graphi_status join(const char *where, const struct value_type *in, struct value_type *out)
{
    struct value_type wide = in->rank > out->rank ? *in : *out, narrow = in->rank > out->rank ? *out : *in;
    int shift = wide.rank - narrow.rank;
    if (narrow.symbol >= 0 && shift > 0) /* its bounded dimension would not be dimension 0 */
        return mismatch(where, out, in);
    for (int i = 0; i < narrow.rank; i++) {
        const int at = shift + i;
        if (repeats(&narrow, i))
            continue;
        if (!repeats(&wide, at) && (wide.dims[at] != narrow.dims[i] || (at == 0 && wide.symbol != narrow.symbol)))
            return mismatch(where, out, in);
        wide.dims[at] = narrow.dims[i];
        wide.symbol = at == 0 ? narrow.symbol : wide.symbol;
    }
    *out = wide;
    return GRAPHI_OK;
}

/* The type that inputs of these types broadcast to by numpy's rule; a bounded dimension 0 meets only itself or 1.
 * INVALID naming both shapes. */
static graphi_status broadcast_type(const char *where, int inputs, const struct value_type *const *in,
                                    struct value_type *out)
{
    struct value_type type = {.dtype = GRAPHI_F32, .symbol = -1};
    for (int i = 0; i < inputs; i++) {
        if (in[i]->dtype != GRAPHI_F32)
            return fail(GRAPHI_INVALID, where, "found input %d of type %s, expected float32", i,
                        graphi_dtype_name(in[i]->dtype));
        TRY(join(where, in[i], &type));
    }
    *out = type;
    return GRAPHI_OK;
}

static graphi_status broadcast_shape(const struct shape_call *call)
{
    return broadcast_type(call->where, call->node->inputs, call->in, &call->out[0]);
}

static graphi_status add_n_shape(const struct shape_call *call)
{
    for (int i = 0; i < call->node->inputs; i++) {
        if (call->in[i]->dtype != GRAPHI_F32 || !type_equal(call->in[0], call->in[i])) {
            char found[96], expected[96];
            type_text(call->in[i], found, sizeof found);
            type_text(call->in[0], expected, sizeof expected);
            return fail(GRAPHI_INVALID, call->where, "found input %d of type %s, expected float32 like %s", i, found,
                        expected);
        }
    }
    call->out[0] = *call->in[0];
    return GRAPHI_OK;
}

static graphi_status decode(const char *where, const struct node *node, struct program *program)
{
    const int64_t *integers;
    int count = attr_ints(node, "program", &integers);
    TRY(program_decode(integers, count, program));
    if (program->inputs != node->inputs || program->outputs != attr_int(node, "outputs"))
        return fail(GRAPHI_INVALID, where, "found a program of %d inputs and %d outputs, expected %d and %d",
                    program->inputs, program->outputs, node->inputs, (int)attr_int(node, "outputs"));
    return GRAPHI_OK;
}

static graphi_status program_shape(const struct shape_call *call)
{
    struct program program;
    struct value_type type;
    TRY(decode(call->where, call->node, &program));
    TRY(broadcast_type(call->where, call->node->inputs, call->in, &type));
    bool matrix = type.rank == 2 && type.symbol < 0 && type.dims[0] > 1 && type.dims[1] > 1;
    if (program.sums && !matrix) {
        char found[96];
        type_text(&type, found, sizeof found);
        return fail(GRAPHI_INVALID, call->where, "found sums over the rows of %s, expected a matrix", found);
    }
    for (int i = 0; i < program.outputs; i++)
        call->out[i] = type;
    for (int i = program.outputs - program.sums; i < program.outputs; i++)
        call->out[i] = (struct value_type){.dtype = type.dtype, .rank = 1, .dims = {type.dims[1]}, .symbol = -1};
    return GRAPHI_OK;
}

/* The input's shape with ones put in at `axes` (ascending positions in the result). */
static graphi_status insert_axes(const char *where, const struct node *node, int rank, int *wide_rank, int *from)
{
    const int64_t *axes;
    int count = attr_ints(node, "axes", &axes), next = 0, k = 0;
    *wide_rank = rank + count;
    if (*wide_rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, where, "found rank %d with %d axes put in, expected at most %d", rank, count,
                    GRAPHI_MAX_RANK);
    for (int i = 0; i < *wide_rank; i++) {
        bool put_in = k < count && axes[k] == i;
        k += put_in;
        from[i] = put_in || next == rank ? -1 : next++;
    }
    return next == rank && k == count ? GRAPHI_OK
                                      : fail(GRAPHI_INVALID, where, "found axes out of order or of range, expected "
                                                                    "ascending ones");
}

static graphi_status expand_shape(const struct shape_call *call)
{
    const int64_t *dims;
    int from[GRAPHI_MAX_RANK];
    struct value_type type = {.dtype = GRAPHI_F32, .symbol = (int32_t)attr_int(call->node, "symbol")}, both;
    struct value_type in = *call->in[0], wide = {.dtype = in.dtype, .symbol = -1};
    type.rank = attr_ints(call->node, "dims", &dims);
    if (type.rank > GRAPHI_MAX_RANK)
        return fail(GRAPHI_INVALID, call->where, "found %d dimensions, expected at most %d", type.rank,
                    GRAPHI_MAX_RANK);
    memcpy(type.dims, dims, sizeof *dims * (size_t)type.rank);
    TRY(insert_axes(call->where, call->node, in.rank, &wide.rank, from));
    for (int i = 0; i < wide.rank; i++)
        wide.dims[i] = from[i] < 0 ? 1 : in.dims[from[i]];
    if (in.symbol >= 0 && from[0] != 0)
        return mismatch(call->where, &type, call->in[0]);
    wide.symbol = in.symbol;
    const struct value_type *const pair[] = {&wide, &type};
    TRY(broadcast_type(call->where, 2, pair, &both));
    if (!type_equal(&both, &type))
        return mismatch(call->where, &type, call->in[0]);
    call->out[0] = type;
    return GRAPHI_OK;
}

/* --- programs of nodes --- */

static graphi_status push(struct program *program, struct program_instruction instruction, int16_t *value)
{
    if (program->instructions == PROGRAM_MAX_INSTRUCTIONS)
        return fail(GRAPHI_UNSUPPORTED, "program", "found more instructions, expected at most %d",
                    PROGRAM_MAX_INSTRUCTIONS);
    *value = (int16_t)(program->inputs + program->instructions);
    program->code[program->instructions++] = instruction;
    return GRAPHI_OK;
}

static graphi_status append_sum(const struct node *node, const int16_t *argument, struct program *program,
                                int16_t *result)
{
    *result = argument[0];
    for (int i = 1; i < node->inputs; i++)
        TRY(push(program, (struct program_instruction){PROGRAM_ADD, *result, argument[i], -1, 0}, result));
    return GRAPHI_OK;
}

static graphi_status append_program(const struct node *node, const int16_t *argument, struct program *program,
                                    int16_t *result)
{
    struct program inner;
    int16_t map[PROGRAM_MAX_VALUES];
    TRY(decode("program", node, &inner));
    memcpy(map, argument, sizeof *map * (size_t)inner.inputs);
    for (int i = 0; i < inner.instructions; i++) {
        struct program_instruction code = inner.code[i];
        code.a = code.a < 0 ? -1 : map[code.a];
        code.b = code.b < 0 ? -1 : map[code.b];
        code.c = code.c < 0 ? -1 : map[code.c];
        TRY(push(program, code, &map[inner.inputs + i]));
    }
    for (int i = 0; i < inner.outputs; i++)
        result[i] = map[inner.output[i]];
    return GRAPHI_OK;
}

graphi_status elementwise_append(const struct node *node, const int16_t *argument, struct program *program,
                                 int16_t *result)
{
    if (node->kind->shape == program_shape)
        return append_program(node, argument, program, result);
    if (node->kind->shape == add_n_shape)
        return append_sum(node, argument, program, result);
    int n = node->inputs;
    struct program_instruction code = {.op = (int16_t)node->kind->program_op,
                                       .a = n > 0 ? argument[0] : -1,
                                       .b = n > 1 ? argument[1] : -1,
                                       .c = n > 2 ? argument[2] : -1};
    return push(program, code, result);
}

int elementwise_instructions(const struct node *node)
{
    const int64_t *integers;
    if (node->kind->shape == program_shape)
        return attr_ints(node, "program", &integers) > 1 ? (int)integers[1] : 0;
    return node_has(node, OP_ADDS) ? node->inputs - 1 : 1;
}

/* The node as a program of its own. */
static graphi_status alone(const struct node *node, struct program *program)
{
    if (node->kind->shape == program_shape)
        return decode("program", node, program);
    int16_t argument[PROGRAM_MAX_INPUTS];
    *program = (struct program){.inputs = node->inputs, .outputs = node->outputs};
    for (int i = 0; i < program->inputs; i++)
        argument[i] = (int16_t)i;
    return elementwise_append(node, argument, program, program->output);
}

static graphi_status elementwise_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct program program;
    if (call->node->inputs > PROGRAM_MAX_INPUTS)
        return add_n_bind(call->node->inputs, call->in, call->out, call->isa, kernel);
    TRY(alone(call->node, &program));
    TRY(program_bind(&program, call->in, call->out, call->isa, kernel));
    kernel->name = call->node->kind->name;
    program_stream(kernel, call->out, call->streaming);
    return GRAPHI_OK;
}

static graphi_status expand_bind(const struct bind_call *call, struct kernel *kernel)
{
    struct bind_call widened = *call;
    struct array_desc wide = {.dtype = call->in[0].dtype, .bounded = call->in[0].bounded};
    int from[GRAPHI_MAX_RANK];
    TRY(insert_axes(call->where, call->node, call->in[0].rank, &wide.rank, from));
    for (int i = 0; i < wide.rank; i++) {
        wide.dims[i] = from[i] < 0 ? 1 : call->in[0].dims[from[i]];
        wide.strides[i] = from[i] < 0 ? 1 : call->in[0].strides[from[i]];
    }
    widened.in = &wide;
    return elementwise_bind(&widened, kernel);
}

static double program_flops(const struct shape_call *call)
{
    const int64_t *integers;
    int count = attr_ints(call->node, "program", &integers);
    int64_t elements = type_count(&call->out[0]);
    for (int i = 0; i < call->node->inputs; i++) /* of a program that ends in sums alone, what it runs over */
        elements = type_count(call->in[i]) > elements ? type_count(call->in[i]) : elements;
    return count > 1 ? (double)integers[1] * (double)elements : 0;
}

static double add_n_flops(const struct shape_call *call)
{
    return (double)(call->node->inputs - 1) * (double)type_count(&call->out[0]);
}

/* --- tables --- */

static const struct op_attribute program_attributes[] = {
    {.name = "program", .type = GRAPHI_INTS, .required = true, .internal = true},
    {.name = "outputs", .type = GRAPHI_INT, .internal = true, .i = 1},
    {0},
};

static const struct op_attribute broadcast_attributes[] = {
    {.name = "dims", .meaning = "the result's shape", .type = GRAPHI_INTS, .required = true},
    {.name = "symbol", .meaning = "that dimension 0 follows", .type = GRAPHI_INT, .internal = true, .i = -1},
    {.name = "axes",
     .meaning = "ascending places in the result of dimensions of 1 that the input gets first; empty: none",
     .type = GRAPHI_INTS},
    {0},
};

enum {
    COMMON = OP_INPLACE | OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED,
    ANY = COMMON | OP_ELEMENTWISE,
};

#define ROW(text, about, n, op, rule)                                                                                  \
    {                                                                                                                  \
        .name = text, .summary = about, .min_inputs = n, .max_inputs = n, .outputs = 1,                                \
        .flags = ANY | (PROGRAM_##op == PROGRAM_ADD ? OP_ADDS : 0),                                                    \
        .program_op = PROGRAM_##op, .scalability = "element-wise", .shape = broadcast_shape,                           \
        .gradient = elementwise_##rule##_gradient, .bind = elementwise_bind                                            \
    }

const struct op_kind ops_elementwise[] = {
    ROW("identity", "a", 1, COPY, identity),
    ROW("neg", "-a", 1, NEG, neg),
    ROW("abs", "|a|", 1, ABS, abs),
    ROW("sign", "-1, 0 or 1", 1, SIGN, zero),
    ROW("square", "a a", 1, SQUARE, square),
    ROW("sqrt", "square root", 1, SQRT, sqrt),
    ROW("rsqrt", "1 / sqrt(a)", 1, RSQRT, rsqrt),
    ROW("reciprocal", "1 / a", 1, RECIPROCAL, reciprocal),
    ROW("exp", "e^a", 1, EXP, exp),
    ROW("log", "natural logarithm", 1, LOG, log),
    ROW("tanh", "hyperbolic tangent", 1, TANH, tanh),
    ROW("sigmoid", "1 / (1 + e^-a)", 1, SIGMOID, sigmoid),
    ROW("relu", "max(a, 0)", 1, RELU, relu),
    ROW("step", "1 where a > 0, else 0", 1, STEP, zero),
    ROW("floor", "largest integer not above a", 1, FLOOR, zero),
    ROW("softplus", "log(1 + e^a)", 1, SOFTPLUS, softplus),
    ROW("erf", "2 / sqrt(pi) times the integral of e^-t^2 from 0 to a", 1, ERF, erf),
    ROW("add", "a + b", 2, ADD, add),
    ROW("sub", "a - b", 2, SUB, sub),
    ROW("mul", "a b", 2, MUL, mul),
    ROW("div", "a / b", 2, DIV, div),
    ROW("min", "the smaller; NaN if either is; the gradient of equal ones goes to a", 2, MIN, min),
    ROW("max", "the larger; NaN if either is; the gradient of equal ones goes to a", 2, MAX, max),
    ROW("pow", "a^b", 2, POW, pow),
    ROW("mod", "a - b floor(a / b), of the sign of b; a where b is infinite and of its sign", 2, MOD, mod),
    ROW("less", "1 where a < b, else 0", 2, LESS, zero),
    ROW("equal", "1 where a = b, else 0", 2, EQUAL, zero),
    ROW("fma", "a b + c, rounded once", 3, FMA, fma),
    ROW("select", "b where a is not 0, else c", 3, SELECT, select),
    {.name = "add_n",
     .summary = "sum of inputs of one shape, from the left",
     .shapes = "inputs of one shape to the same",
     .min_inputs = 1,
     .max_inputs = -1,
     .outputs = 1,
     .flags = ANY | OP_ADDS,
     .program_op = PROGRAM_OPS,
     .scalability = "element-wise",
     .shape = add_n_shape,
     .gradient = elementwise_add_n_gradient,
     .flops = add_n_flops,
     .bind = elementwise_bind},
    {.name = "program",
     .summary = "a fused group of element-wise operations",
     .min_inputs = 1,
     .max_inputs = PROGRAM_MAX_INPUTS,
     .outputs = -1,
     .attributes = program_attributes,
     .flags = ANY,
     .program_op = PROGRAM_OPS,
     .scalability = "element-wise",
     .shape = program_shape,
     .flops = program_flops,
     .bind = elementwise_bind},
    {.name = "expand",
     .role = IS_EXPAND,
     .summary = "a repeated to the shape `dims` by numpy's rule",
     .shapes = "[...] to [dims]",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = broadcast_attributes,
     .flags = COMMON,
     .program_op = PROGRAM_COPY,
     .scalability = "element-wise",
     .shape = expand_shape,
     .gradient = elementwise_expand_gradient,
     .bind = expand_bind},
    {0},
};
