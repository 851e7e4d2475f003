/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators of several inputs, which broadcast: arithmetic, comparisons, logic, bits, choice. Integers
 * wrap; division by zero of integers is refused. Source: ONNX operators of the same names. Any thread. */
#include "value/elementwise.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

#define EACH(NAME, TYPE, TO, EXPRESSION)                                                                               \
    static void NAME(const void *const *in, void *out, int64_t n, const double *p)                                     \
    {                                                                                                                  \
        const TYPE *left = in[0], *right = in[1];                                                                      \
        TO *to = out;                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const TYPE a = left[i], b = right[i];                                                                      \
            to[i] = (TO)(EXPRESSION);                                                                                  \
        }                                                                                                              \
    }
#define FLOATS(NAME, EXPRESSION)                                                                                       \
    EACH(NAME##_f32, float, float, EXPRESSION)                                                                         \
    EACH(NAME##_f64, double, double, EXPRESSION)
#define INTEGERS(NAME, EXPRESSION)                                                                                     \
    EACH(NAME##_i64, int64_t, int64_t, EXPRESSION)                                                                     \
    EACH(NAME##_u64, uint64_t, uint64_t, EXPRESSION)
#define WRAPPING(NAME, OPERATOR)                                                                                       \
    EACH(NAME##_i64, int64_t, int64_t, (uint64_t)a OPERATOR(uint64_t) b)                                               \
    EACH(NAME##_u64, uint64_t, uint64_t, a OPERATOR b)

FLOATS(add, a + b)
WRAPPING(add, +)
FLOATS(sub, a - b)
WRAPPING(sub, -)
FLOATS(mul, a *b)
WRAPPING(mul, *)
FLOATS(div, a / b)
EACH(div_i64, int64_t, int64_t, b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
EACH(div_u64, uint64_t, uint64_t, b == 0 ? 0 : a / b)
FLOATS(max, isnan(a) || a > b ? a : b)
INTEGERS(max, a > b ? a : b)
FLOATS(min, isnan(a) || a < b ? a : b)
INTEGERS(min, a < b ? a : b)
FLOATS(prelu, a < 0 ? a * b : a)
EACH(prelu_i64, int64_t, int64_t, a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a)
static void prelu_u64(const void *const *in, void *out, int64_t n, const double *p) /* none is below 0 */
{
    memcpy(out, in[0], (size_t)n * sizeof(uint64_t));
}
EACH(pow_f32, float, float, powf(a, b))
EACH(pow_f64, double, double, pow(a, b))
/* Sign of the divisor, as Python's. */
static double modulo(double a, double b)
{
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
EACH(mod_f32, float, float, modulo(a, b))
EACH(mod_f64, double, double, modulo(a, b))
static int64_t modulo_i64(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
EACH(mod_i64, int64_t, int64_t, modulo_i64(a, b))
EACH(mod_u64, uint64_t, uint64_t, b ? a % b : 0)
EACH(fmod_f32, float, float, fmodf(a, b))
EACH(fmod_f64, double, double, fmod(a, b))
EACH(fmod_i64, int64_t, int64_t, b == 0 || b == -1 ? 0 : a % b)

INTEGERS(bit_and, a &b)
INTEGERS(bit_or, a | b)
INTEGERS(bit_xor, a ^ b)
EACH(shift_left_u64, uint64_t, uint64_t, b < 64 ? a << b : 0)
EACH(shift_right_u64, uint64_t, uint64_t, b < 64 ? a >> b : 0)
EACH(and_i64, int64_t, int64_t, a &&b)
EACH(or_i64, int64_t, int64_t, a || b)
EACH(xor_i64, int64_t, int64_t, !a != !b)

#define COMPARISON(NAME, EXPRESSION)                                                                                   \
    EACH(NAME##_f32, float, uint8_t, EXPRESSION)                                                                       \
    EACH(NAME##_f64, double, uint8_t, EXPRESSION)                                                                      \
    EACH(NAME##_i64, int64_t, uint8_t, EXPRESSION)                                                                     \
    EACH(NAME##_u64, uint64_t, uint8_t, EXPRESSION)
COMPARISON(equal, a == b)
COMPARISON(greater, a > b)
COMPARISON(less, a < b)
COMPARISON(greater_equal, a >= b)
COMPARISON(less_equal, a <= b)

#define ALL(NAME, TRUTH)                                                                                               \
    {                                                                                                                  \
        {NAME##_f32, NAME##_f64, NAME##_i64, NAME##_u64}, TRUTH                                                        \
    }
#define BITS(NAME)                                                                                                     \
    {                                                                                                                  \
        {NULL, NULL, NAME##_i64, NAME##_u64}, false                                                                    \
    }
#define LOGIC(NAME)                                                                                                    \
    {                                                                                                                  \
        {NULL, NULL, NAME##_i64, NULL}, false                                                                          \
    }
enum {
    ADD,
    SUB,
    MUL,
    DIV,
    MAX,
    MIN,
    PRELU,
    MOD,
    FMOD,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    AND,
    OR,
    XOR,
    EQUAL,
    GREATER,
    LESS,
    GREATER_EQUAL,
    LESS_EQUAL,
    SUM,
    MEAN,
    SHIFT
};
static const struct elementwise functions[] = {
    [ADD] = ALL(add, false),
    [SUB] = ALL(sub, false),
    [MUL] = ALL(mul, false),
    [DIV] = ALL(div, false),
    [MAX] = ALL(max, false),
    [MIN] = ALL(min, false),
    [PRELU] = ALL(prelu, false),
    [MOD] = ALL(mod, false),
    [FMOD] = {{fmod_f32, fmod_f64, fmod_i64, mod_u64}, false},
    [BIT_AND] = BITS(bit_and),
    [BIT_OR] = BITS(bit_or),
    [BIT_XOR] = BITS(bit_xor),
    [AND] = LOGIC(and),
    [OR] = LOGIC(or),
    [XOR] = LOGIC(xor),
    [EQUAL] = ALL(equal, true),
    [GREATER] = ALL(greater, true),
    [LESS] = ALL(less, true),
    [GREATER_EQUAL] = ALL(greater_equal, true),
    [LESS_EQUAL] = ALL(less_equal, true),
};

/* Integers have no infinity that a quotient by zero could be. */
static graphi_status check_divisor(const struct op_call *call)
{
    const graphi_tensor *by = call->in[1];
    if (element_is_float(by->type))
        return GRAPHI_OK;
    for (int64_t i = 0; i < by->count; i++)
        if (value_int(by, i) == 0)
            return op_fail(call, "found a divisor 0 of %s at element %lld, expected others", call->op->name,
                           (long long)i);
    return GRAPHI_OK;
}

static graphi_status run_binary(struct op_call *call)
{
    const struct elementwise *f = &functions[call->op->variant];
    TRY(op_same_types(call, 0, 2));
    if (call->op->variant == DIV)
        TRY(check_divisor(call));
    return elementwise_run(call, f, call->in, 2, -1, f->truth ? T_BOOL : call->in[0]->type, NULL);
}

static graphi_status run_mod(struct op_call *call)
{
    TRY(op_same_types(call, 0, 2));
    TRY(check_divisor(call));
    const bool c_form = op_int(call, "fmod", 0) != 0;
    return elementwise_run(call, &functions[c_form ? FMOD : MOD], call->in, 2, -1, call->in[0]->type, NULL);
}

/* Signed numbers keep their sign; by less than 0, or by all bits and more, it alone is left. */
static void shift_right_i64(const void *const *in, void *out, int64_t n, const double *p)
{
    const int64_t *x = in[0], *by = in[1];
    int64_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] >> (by[i] < 0 || by[i] > 63 ? 63 : by[i]);
}

static graphi_status run_shift(struct op_call *call)
{
    static const struct elementwise left = {{NULL, NULL, NULL, shift_left_u64}, false},
                                    right = {{NULL, NULL, NULL, shift_right_u64}, false},
                                    right_signed = {{NULL, NULL, shift_right_i64, NULL}, false};
    const char *direction = op_string(call, "direction", "");
    TRY(op_same_types(call, 0, 2));
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return op_fail(call, "found direction \"%s\", expected LEFT or RIGHT", direction);
    if (*direction == 'R' && element_domain(call->in[0]->type) == DOMAIN_I64)
        return elementwise_run(call, &right_signed, call->in, 2, DOMAIN_I64, call->in[0]->type, NULL);
    return elementwise_run(call, *direction == 'L' ? &left : &right, call->in, 2, DOMAIN_U64, call->in[0]->type, NULL);
}

/* Integers to integer powers exactly, everything else by pow of doubles. The result has the base's type. */
static void power_integers(const void *const *in, void *out, int64_t n, const double *p)
{
    const int64_t *base = in[0], *exponent = in[1];
    int64_t *to = out;
    for (int64_t i = 0; i < n; i++) {
        uint64_t result = 1, square = (uint64_t)base[i];
        if (exponent[i] < 0) {
            to[i] = base[i] == 1 ? 1 : base[i] == -1 ? (exponent[i] & 1 ? -1 : 1) : 0;
            continue;
        }
        for (uint64_t left = (uint64_t)exponent[i]; left; left >>= 1, square *= square)
            result *= left & 1 ? square : 1;
        to[i] = (int64_t)result;
    }
}

static graphi_status run_pow(struct op_call *call)
{
    static const struct elementwise f = {{pow_f32, pow_f64, power_integers, NULL}, false};
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    const bool first = element_is_float(call->in[0]->type), second = element_is_float(call->in[1]->type);
    const bool narrow = call->in[0]->type != T_F64 && call->in[1]->type != T_F64 && first;
    return elementwise_run(call, &f, call->in, 2,
                           !first && !second ? DOMAIN_I64
                           : narrow          ? DOMAIN_F32
                                             : DOMAIN_F64,
                           call->in[0]->type, NULL);
}

static void divide_f32(const void *const *in, void *out, int64_t n, const double *p)
{
    for (int64_t i = 0; i < n; i++)
        ((float *)out)[i] = ((const float *)in[0])[i] / (float)p[0];
}
static void divide_f64(const void *const *in, void *out, int64_t n, const double *p)
{
    for (int64_t i = 0; i < n; i++)
        ((double *)out)[i] = ((const double *)in[0])[i] / p[0];
}

/* In place of output 0: f of it and of one more input. */
static graphi_status add_one(struct op_call *call, const struct elementwise *f, graphi_tensor *more, const double *p)
{
    graphi_tensor *inputs[2] = {call->out[0], more};
    call->out[0] = NULL;
    graphi_status status = elementwise_run(call, f, inputs, more ? 2 : 1, -1, inputs[0]->type, p);
    value_drop(inputs[0]);
    return status;
}

/* Max, Min, Sum, Mean of any number: from left to right. */
static graphi_status run_many(struct op_call *call)
{
    static const struct elementwise divide = {{divide_f32, divide_f64, NULL, NULL}, false};
    const int variant = call->op->variant;
    const struct elementwise *f = &functions[variant == MAX || variant == MIN ? variant : ADD];
    TRY(op_same_types(call, 0, call->ins));
    for (int i = 1; i < call->ins; i++)
        TRY(op_tensor(call, i, 0));
    TRY(op_view(call, 0, call->in[0], call->in[0]->rank, call->in[0]->dims));
    for (int i = 1; i < call->ins; i++)
        TRY(add_one(call, f, call->in[i], NULL));
    if (variant == MEAN) {
        const double count = call->ins;
        return add_one(call, &divide, NULL, &count);
    }
    return GRAPHI_OK;
}

#define CHOICE(NAME, TYPE)                                                                                             \
    static void NAME(const void *const *in, void *out, int64_t n, const double *p)                                     \
    {                                                                                                                  \
        const TYPE *c = in[0], *a = in[1], *b = in[2];                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((TYPE *)out)[i] = c[i] != 0 ? a[i] : b[i];                                                                \
    }
CHOICE(choose_f32, float)
CHOICE(choose_f64, double)
CHOICE(choose_i64, int64_t)
CHOICE(choose_u64, uint64_t)

static graphi_status run_where(struct op_call *call)
{
    static const struct elementwise f = {{choose_f32, choose_f64, choose_i64, choose_u64}, false};
    TRY(op_tensor(call, 0, T_BOOL));
    TRY(op_same_types(call, 1, 3));
    return elementwise_run(call, &f, call->in, 3, (int)element_domain(call->in[1]->type), call->in[1]->type, NULL);
}

/* As numpy.clip: where the bounds cross, the upper one counts. */
static graphi_status run_clip(struct op_call *call)
{
    TRY(op_same_types(call, 0, 3));
    for (int i = 1; i < 3; i++)
        if (op_in(call, i) && call->in[i]->count != 1)
            return op_fail(call, "found %lld elements as a bound of Clip, expected 1", (long long)call->in[i]->count);
    TRY(op_view(call, 0, call->in[0], call->in[0]->rank, call->in[0]->dims));
    for (int i = 1; i < 3; i++)
        if (op_in(call, i)) {
            graphi_tensor *bound; /* a bound of shape [1] adds no dimension */
            TRY(value_view(call->where, call->in[i], 0, NULL, &bound));
            graphi_status status = add_one(call, &functions[i == 1 ? MAX : MIN], bound, NULL);
            value_drop(bound);
            TRY(status);
        }
    return GRAPHI_OK;
}

const struct host_op host_ops_binary[] = {
    {"Add", 2, 2, 1, "", run_binary, ADD},
    {"Sub", 2, 2, 1, "", run_binary, SUB},
    {"Mul", 2, 2, 1, "", run_binary, MUL},
    {"Div", 2, 2, 1, "", run_binary, DIV},
    {"PRelu", 2, 2, 1, "", run_binary, PRELU},
    {"BitwiseAnd", 2, 2, 1, "", run_binary, BIT_AND},
    {"BitwiseOr", 2, 2, 1, "", run_binary, BIT_OR},
    {"BitwiseXor", 2, 2, 1, "", run_binary, BIT_XOR},
    {"And", 2, 2, 1, "", run_binary, AND},
    {"Or", 2, 2, 1, "", run_binary, OR},
    {"Xor", 2, 2, 1, "", run_binary, XOR},
    {"Equal", 2, 2, 1, "", run_binary, EQUAL},
    {"Greater", 2, 2, 1, "", run_binary, GREATER},
    {"Less", 2, 2, 1, "", run_binary, LESS},
    {"GreaterOrEqual", 2, 2, 1, "", run_binary, GREATER_EQUAL},
    {"LessOrEqual", 2, 2, 1, "", run_binary, LESS_EQUAL},
    {"Mod", 2, 2, 1, "fmod", run_mod, 0},
    {"BitShift", 2, 2, 1, "direction", run_shift, 0},
    {"Pow", 2, 2, 1, "", run_pow, 0},
    {"Max", 1, -1, 1, "", run_many, MAX},
    {"Min", 1, -1, 1, "", run_many, MIN},
    {"Sum", 1, -1, 1, "", run_many, SUM},
    {"Mean", 1, -1, 1, "", run_many, MEAN},
    {"Where", 3, 3, 1, "", run_where, 0},
    {"Clip", 1, 3, 1, "", run_clip, 0},
    {0},
};
