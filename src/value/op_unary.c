/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators of one input: a row each of functions by domain, and of the numbers that its attributes give.
 * Source: ONNX operators of the same names. Any thread. */
#include "value/elementwise.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

/* One function over an array: x is the element, p the numbers. */
#define EACH(NAME, TYPE, EXPRESSION)                                                                                   \
    static void NAME(const void *const *in, void *out, int64_t n, const double *p)                                     \
    {                                                                                                                  \
        const TYPE *a = in[0];                                                                                         \
        TYPE *to = out;                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const TYPE x = a[i];                                                                                       \
            to[i] = (TYPE)(EXPRESSION);                                                                                \
        }                                                                                                              \
    }
#define P0 ((__typeof__(x))p[0])
#define P1 ((__typeof__(x))p[1])
/* The same expression in both widths; F(sin)(x) is sinf or sin. */
#define FLOATS(NAME, FLOAT, DOUBLE)                                                                                    \
    EACH(NAME##_f32, float, FLOAT)                                                                                     \
    EACH(NAME##_f64, double, DOUBLE)
#define BOTH(NAME, EXPRESSION) FLOATS(NAME, EXPRESSION, EXPRESSION)
#define MATH(NAME) FLOATS(NAME, NAME##f(x), NAME(x))
#define INTEGERS(NAME, EXPRESSION)                                                                                     \
    EACH(NAME##_i64, int64_t, EXPRESSION)                                                                              \
    EACH(NAME##_u64, uint64_t, EXPRESSION)

MATH(floor)
MATH(ceil)
MATH(sqrt)
MATH(exp)
MATH(log)
MATH(sin)
MATH(cos)
MATH(tan)
MATH(asin)
MATH(acos)
MATH(atan)
MATH(sinh)
MATH(cosh)
MATH(tanh)
MATH(asinh)
MATH(acosh)
MATH(atanh)
MATH(erf)
FLOATS(round_even, rintf(x), rint(x))
FLOATS(absolute, fabsf(x), fabs(x))
EACH(absolute_i64, int64_t, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
EACH(absolute_u64, uint64_t, x)
BOTH(negative, -x)
EACH(negative_i64, int64_t, (int64_t)(0 - (uint64_t)x))
BOTH(sign, isnan(x) ? x : (x > 0) - (x < 0))
EACH(sign_i64, int64_t, (x > 0) - (x < 0))
EACH(sign_u64, uint64_t, x > 0)
BOTH(reciprocal, 1 / x)
/* Two forms, so that neither side's exponential overflows. */
FLOATS(sigmoid, x >= 0 ? 1 / (1 + expf(-x)) : expf(x) / (1 + expf(x)),
       x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)))
BOTH(relu, x > 0 || isnan(x) ? x : 0)
EACH(relu_i64, int64_t, x > 0 ? x : 0)
EACH(relu_u64, uint64_t, x)
BOTH(leaky_relu, x < 0 ? P0 * x : x)
FLOATS(elu, x < 0 ? P0 * expm1f(x) : x, x < 0 ? P0 * expm1(x) : x)
FLOATS(celu, x < 0 ? P0 * expm1f(x / P0) : x, x < 0 ? P0 * expm1(x / P0) : x)
FLOATS(selu, P1 *(x > 0 ? x : P0 * expm1f(x)), P1 *(x > 0 ? x : P0 * expm1(x)))
FLOATS(hard_sigmoid, fmaxf(0, fminf(1, P0 *x + P1)), fmax(0, fmin(1, P0 *x + P1)))
FLOATS(hard_swish, x *fmaxf(0, fminf(1, P0 *x + P1)), x *fmax(0, fmin(1, P0 *x + P1)))
FLOATS(softplus, x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x)), x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
FLOATS(softsign, x / (1 + fabsf(x)), x / (1 + fabs(x)))
BOTH(thresholded, x > P0 ? x : 0)
BOTH(shrink, x<-P0 ? x + P1 : x> P0 ? x - P1 : 0)
EACH(shrink_i64, int64_t, (double)x<-p[0] ? (double)x + p[1] : (double)x> p[0] ? (double)x - p[1] : 0)
EACH(shrink_u64, uint64_t, (double)x > p[0] ? (double)x - p[1] : 0)
FLOATS(mish, x *tanhf(x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x))),
       x *tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))))
FLOATS(swish, x / (1 + expf(-P0 * x)), x / (1 + exp(-P0 * x)))
FLOATS(gelu, x * 0.5f * (1 + erff(x * (float)M_SQRT1_2)), x * 0.5 * (1 + erf(x * M_SQRT1_2)))
FLOATS(gelu_tanh, 0.5f * x * (1 + tanhf((float)(M_SQRT1_2 * M_2_SQRTPI) * (x + 0.044715f * x * x * x))),
       0.5 * x * (1 + tanh(M_SQRT1_2 * M_2_SQRTPI * (x + 0.044715 * x * x * x))))
INTEGERS(complement, ~x)
EACH(logical_not_i64, int64_t, !x)

#define TRUTH(NAME, TYPE, EXPRESSION)                                                                                  \
    static void NAME(const void *const *in, void *out, int64_t n, const double *p)                                     \
    {                                                                                                                  \
        const TYPE *a = in[0];                                                                                         \
        uint8_t *to = out;                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const TYPE x = a[i];                                                                                       \
            to[i] = (EXPRESSION) != 0;                                                                                 \
        }                                                                                                              \
    }
TRUTH(is_nan_f32, float, isnan(x))
TRUTH(is_nan_f64, double, isnan(x))
TRUTH(is_inf_f32, float, isinf(x) && p[signbit(x) != 0])
TRUTH(is_inf_f64, double, isinf(x) && p[signbit(x) != 0])

#define F(NAME)                                                                                                        \
    {                                                                                                                  \
        {[DOMAIN_F32] = NAME##_f32, [DOMAIN_F64] = NAME##_f64}, false                                                  \
    }
#define FI(NAME)                                                                                                       \
    {                                                                                                                  \
        {[DOMAIN_F32] = NAME##_f32, [DOMAIN_F64] = NAME##_f64, [DOMAIN_I64] = NAME##_i64}, false                       \
    }
#define FIU(NAME)                                                                                                      \
    {                                                                                                                  \
        {[DOMAIN_F32] = NAME##_f32, [DOMAIN_F64] = NAME##_f64, [DOMAIN_I64] = NAME##_i64, [DOMAIN_U64] = NAME##_u64},  \
            false                                                                                                      \
    }
#define FT(NAME)                                                                                                       \
    {                                                                                                                  \
        {[DOMAIN_F32] = NAME##_f32, [DOMAIN_F64] = NAME##_f64}, true                                                   \
    }

static const struct unary {
    const char *name;
    struct elementwise f;
    struct {
        const char *name;
        float otherwise;
    } numbers[2];
} rows[] = {
    {"Abs", FIU(absolute), {{0}}},
    {"Neg", FI(negative), {{0}}},
    {"Sign", FIU(sign), {{0}}},
    {"Floor", F(floor), {{0}}},
    {"Ceil", F(ceil), {{0}}},
    {"Round", F(round_even), {{0}}},
    {"Sqrt", F(sqrt), {{0}}},
    {"Exp", F(exp), {{0}}},
    {"Log", F(log), {{0}}},
    {"Sin", F(sin), {{0}}},
    {"Cos", F(cos), {{0}}},
    {"Tan", F(tan), {{0}}},
    {"Asin", F(asin), {{0}}},
    {"Acos", F(acos), {{0}}},
    {"Atan", F(atan), {{0}}},
    {"Sinh", F(sinh), {{0}}},
    {"Cosh", F(cosh), {{0}}},
    {"Tanh", F(tanh), {{0}}},
    {"Asinh", F(asinh), {{0}}},
    {"Acosh", F(acosh), {{0}}},
    {"Atanh", F(atanh), {{0}}},
    {"Erf", F(erf), {{0}}},
    {"Reciprocal", F(reciprocal), {{0}}},
    {"Sigmoid", F(sigmoid), {{0}}},
    {"Relu", FIU(relu), {{0}}},
    {"LeakyRelu", F(leaky_relu), {{"alpha", 0.01f}}},
    {"Elu", F(elu), {{"alpha", 1}}},
    {"Celu", F(celu), {{"alpha", 1}}},
    {"Selu", F(selu), {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}},
    {"HardSigmoid", F(hard_sigmoid), {{"alpha", 0.2f}, {"beta", 0.5f}}},
    {"HardSwish", F(hard_swish), {{NULL, 1.f / 6}, {NULL, 0.5f}}},
    {"Softplus", F(softplus), {{0}}},
    {"Softsign", F(softsign), {{0}}},
    {"ThresholdedRelu", F(thresholded), {{"alpha", 1}}},
    {"Shrink", FIU(shrink), {{"lambd", 0.5f}, {"bias", 0}}},
    {"Mish", F(mish), {{0}}},
    {"Swish", F(swish), {{"alpha", 1}}},
    {"Gelu", F(gelu), {{0}}},
    {"BitwiseNot", {{[DOMAIN_I64] = complement_i64, [DOMAIN_U64] = complement_u64}, false}, {{0}}},
    {"Not", {{[DOMAIN_I64] = logical_not_i64}, false}, {{0}}},
    {"IsNaN", FT(is_nan), {{0}}},
    {"IsInf", FT(is_inf), {{0}}},
};

static graphi_status run_unary(struct op_call *call)
{
    static const struct elementwise tanh_form = F(gelu_tanh);
    const struct unary *row = rows;
    double p[2];
    TRY(op_tensor(call, 0, 0));
    while (strcmp(row->name, call->op->name) != 0)
        row++;
    for (int k = 0; k < 2; k++)
        p[k] = row->numbers[k].name ? op_float(call, row->numbers[k].name, row->numbers[k].otherwise)
                                    : row->numbers[k].otherwise;
    const struct elementwise *f = &row->f;
    if (strcmp(row->name, "IsInf") == 0) {
        p[0] = (double)op_int(call, "detect_positive", 1);
        p[1] = (double)op_int(call, "detect_negative", 1);
    }
    if (strcmp(row->name, "Gelu") == 0 && strcmp(op_string(call, "approximate", "none"), "tanh") == 0)
        f = &tanh_form;
    return elementwise_run(call, f, call->in, 1, -1, f->truth ? T_BOOL : call->in[0]->type, p);
}

#define PLAIN(NAME)                                                                                                    \
    {                                                                                                                  \
        NAME, 1, 1, 1, "", run_unary, 0                                                                                \
    }
#define WITH(NAME, ATTRIBUTES)                                                                                         \
    {                                                                                                                  \
        NAME, 1, 1, 1, ATTRIBUTES, run_unary, 0                                                                        \
    }
const struct host_op host_ops_unary[] = {
    PLAIN("Abs"),
    PLAIN("Neg"),
    PLAIN("Sign"),
    PLAIN("Floor"),
    PLAIN("Ceil"),
    PLAIN("Round"),
    PLAIN("Sqrt"),
    PLAIN("Exp"),
    PLAIN("Log"),
    PLAIN("Sin"),
    PLAIN("Cos"),
    PLAIN("Tan"),
    PLAIN("Asin"),
    PLAIN("Acos"),
    PLAIN("Atan"),
    PLAIN("Sinh"),
    PLAIN("Cosh"),
    PLAIN("Tanh"),
    PLAIN("Asinh"),
    PLAIN("Acosh"),
    PLAIN("Atanh"),
    PLAIN("Erf"),
    PLAIN("Reciprocal"),
    PLAIN("Sigmoid"),
    PLAIN("Relu"),
    PLAIN("HardSwish"),
    PLAIN("Softplus"),
    PLAIN("Softsign"),
    PLAIN("Mish"),
    PLAIN("BitwiseNot"),
    PLAIN("Not"),
    PLAIN("IsNaN"),
    WITH("LeakyRelu", "alpha"),
    WITH("Elu", "alpha"),
    WITH("Celu", "alpha"),
    WITH("Selu", "alpha gamma"),
    WITH("HardSigmoid", "alpha beta"),
    WITH("ThresholdedRelu", "alpha"),
    WITH("Shrink", "lambd bias"),
    WITH("Swish", "alpha"),
    WITH("Gelu", "approximate"),
    WITH("IsInf", "detect_positive detect_negative"),
    {0},
};
