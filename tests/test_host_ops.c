/* SPDX-License-Identifier: Apache-2.0 */
/* Host values and operators, by small cases whose results are known: types, broadcasting, edges. */
#include "base/memory.h"
#include "value/element.h"
#include "value/npy.h"
#include "value/op.h"
#include "value/small_float.h"

#include "folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static graphi_tensor *of(graphi_element type, int rank, const int64_t *dims, const double *numbers)
{
    graphi_tensor *value;
    assert_int_equal(value_new("test", type, rank, dims, &value), GRAPHI_OK);
    element_store(DOMAIN_F64, type, numbers, value->count, value->data);
    return value;
}

static graphi_status run(const char *name, int ins, graphi_tensor **in, const struct attribute *attributes,
                         size_t count, graphi_tensor **out)
{
    struct op_call call = {.op = host_op_find(name),
                           .where = "test",
                           .ins = ins,
                           .outs = 1,
                           .in = in,
                           .out = out,
                           .attributes = attributes,
                           .attribute_count = count};
    assert_non_null(call.op);
    *out = NULL;
    return host_op_run(&call);
}

/* Runs, drops the inputs, compares and drops the result. */
static void gives(const char *name, int ins, graphi_tensor **in, const struct attribute *attribute, graphi_element type,
                  int rank, const int64_t *dims, const double *numbers)
{
    graphi_tensor *out;
    if (run(name, ins, in, attribute, attribute != NULL, &out) != GRAPHI_OK)
        fail_msg("%s: %s", name, graphi_message());
    assert_int_equal(out->type, type);
    assert_int_equal(out->rank, rank);
    if (rank)
        assert_memory_equal(out->dims, dims, (size_t)rank * sizeof *dims);
    for (int64_t i = 0; i < out->count; i++)
        if (!(fabs(value_double(out, i) - numbers[i]) <= 1e-6 * fabs(numbers[i]) + 1e-9))
            fail_msg("%s: found %g at %lld, expected %g", name, value_double(out, i), (long long)i, numbers[i]);
    value_drop(out);
    for (int i = 0; i < ins; i++)
        value_drop(in[i]);
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

static void sums_broadcast_in_every_type(void **state)
{
    static const graphi_element types[] = {T_F32, T_F64, T_F16, T_BF16, T_U8,  T_I8,
                                           T_U16, T_I16, T_U32, T_I32,  T_U64, T_I64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        graphi_tensor *in[2] = {of(types[i], 2, DIMS(2, 1), NUMBERS(1, 2)),
                                of(types[i], 1, DIMS(3), NUMBERS(10, 20, 30))};
        gives("Add", 2, in, NULL, types[i], 2, DIMS(2, 3), NUMBERS(11, 21, 31, 12, 22, 32));
    }
}

/* uint8 wraps, as ONNX's integers do. */
static void integers_wrap(void **state)
{
    graphi_tensor *in[2] = {of(T_U8, 1, DIMS(2), NUMBERS(250, 3)), of(T_U8, 1, DIMS(2), NUMBERS(10, 5))};
    gives("Add", 2, in, NULL, T_U8, 1, DIMS(2), NUMBERS(4, 8));
    graphi_tensor *parts[2] = {of(T_I64, 1, DIMS(1), NUMBERS(7)), of(T_I64, 1, DIMS(1), NUMBERS(0))}, *out;
    assert_int_equal(run("Div", 2, parts, NULL, 0, &out), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "divisor 0"));
    assert_null(out);
    value_drop(parts[0]);
    value_drop(parts[1]);
}

static void sizes_of_zero(void **state)
{
    graphi_tensor *in[2] = {of(T_F32, 2, DIMS(2, 0), NULL), of(T_F32, 2, DIMS(0, 3), NULL)};
    gives("MatMul", 2, in, NULL, T_F32, 2, DIMS(2, 3), NUMBERS(0, 0, 0, 0, 0, 0));
    graphi_tensor *none[1] = {of(T_F32, 2, DIMS(0, 2), NULL)};
    gives("Transpose", 1, none, NULL, T_F32, 2, DIMS(2, 0), NULL);
}

static void signs_and_columns_stay(void **state)
{
    const struct attribute right = {.name = "direction", .kind = ATTRIBUTE_STRING, .s = "RIGHT"},
                           crd = {.name = "mode", .kind = ATTRIBUTE_STRING, .s = "CRD"};
    graphi_tensor *shift[2] = {of(T_I8, 1, DIMS(4), NUMBERS(-8, -8, 8, -8)),
                               of(T_I8, 1, DIMS(4), NUMBERS(1, 9, 1, -1))};
    gives("BitShift", 2, shift, &right, T_I8, 1, DIMS(4), NUMBERS(-4, -1, 4, -1));
    const struct attribute size = {.name = "blocksize", .kind = ATTRIBUTE_INT, .i = 2}, both[] = {size, crd};
    graphi_tensor *image = of(T_F32, 4, DIMS(1, 2, 2, 2), NUMBERS(0, 1, 2, 3, 4, 5, 6, 7)), *out;
    assert_int_equal(run("SpaceToDepth", 1, &image, both, 2, &out), GRAPHI_OK);
    for (int i = 0; i < 8; i++)
        assert_float_equal(value_double(out, i), i, 0);
    value_drop(out);
    value_drop(image);
}

static void slices_with_steps(void **state)
{
    graphi_tensor *in[5] = {of(T_F32, 1, DIMS(5), NUMBERS(0, 1, 2, 3, 4)), of(T_I64, 1, DIMS(1), NUMBERS(-1)),
                            of(T_I64, 1, DIMS(1), NUMBERS(-9)), of(T_I64, 1, DIMS(1), NUMBERS(0)),
                            of(T_I64, 1, DIMS(1), NUMBERS(-2))};
    gives("Slice", 5, in, NULL, T_F32, 1, DIMS(3), NUMBERS(4, 2, 0));
}

static void transposes_turn_rank_8(void **state)
{
    int64_t perm[8] = {7, 0, 1, 2, 3, 4, 5, 6};
    const struct attribute a = {.name = "perm", .kind = ATTRIBUTE_INTS, .count = 8, .ints = perm};
    graphi_tensor *in[1] = {of(T_I32, 8, DIMS(1, 1, 1, 1, 1, 1, 2, 3), NUMBERS(0, 1, 2, 3, 4, 5))};
    gives("Transpose", 1, in, &a, T_I32, 8, DIMS(3, 1, 1, 1, 1, 1, 1, 2), NUMBERS(0, 3, 1, 4, 2, 5));
}

static void maxima_see_nan(void **state)
{
    graphi_tensor *in[1] = {of(T_F32, 1, DIMS(3), NUMBERS(1, NAN, 2))}, *out;
    assert_int_equal(run("ReduceMax", 1, in, NULL, 0, &out), GRAPHI_OK);
    assert_true(isnan(value_double(out, 0)));
    value_drop(out);
    value_drop(in[0]);
}

/* A row of length 0 has no state, whatever it began with; a length beyond the steps is refused. */
static void recurrent_lengths(void **state)
{
    for (int too_long = 0; too_long < 2; too_long++) {
        graphi_tensor *in[6] = {of(T_F32, 3, DIMS(1, 2, 1), NUMBERS(1, 1)),
                                of(T_F32, 3, DIMS(1, 1, 1), NUMBERS(1)),
                                of(T_F32, 3, DIMS(1, 1, 1), NUMBERS(1)),
                                NULL,
                                of(T_I32, 1, DIMS(2), too_long ? NUMBERS(0, 2) : NUMBERS(0, 1)),
                                of(T_F32, 3, DIMS(1, 2, 1), NUMBERS(3, 3))};
        if (!too_long) {
            gives("RNN", 6, in, NULL, T_F32, 4, DIMS(1, 1, 2, 1), NUMBERS(0, tanh(4)));
            continue;
        }
        graphi_tensor *out;
        assert_int_equal(run("RNN", 6, in, NULL, 0, &out), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), "length 2 of row 1, expected 0 to 1"));
        for (int i = 0; i < 6; i++)
            value_drop(in[i]);
    }
}

static void small_floats_round_to_even(void **state)
{
    static const struct {
        graphi_element type;
        float number, rounded, largest;
    } cases[] = {
        {GRAPHI_ELEMENT_FLOAT8E4M3FN, 17, 16, 448},     {GRAPHI_ELEMENT_FLOAT8E4M3FN, 19, 20, 448},
        {GRAPHI_ELEMENT_FLOAT8E5M2, 9, 8, 57344},       {GRAPHI_ELEMENT_FLOAT8E5M2FNUZ, 11, 12, 57344},
        {GRAPHI_ELEMENT_FLOAT8E4M3FNUZ, -17, -16, 240}, {GRAPHI_ELEMENT_FLOAT4E2M1, 2.5f, 2, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const graphi_element type = cases[i].type;
        assert_float_equal(small_float_to(type, small_float_from(type, cases[i].number, true)), cases[i].rounded, 0);
        assert_float_equal(small_float_to(type, small_float_from(type, 1e9f, true)), cases[i].largest, 0);
    }
    for (int bits = 0; bits < 65536; bits += 7) { /* every half is what it was */
        const float number = half_to_float((uint16_t)bits);
        if (!isnan(number))
            assert_int_equal(half_from_double((double)number), bits);
    }
}

/* Linear: halves between, the edge repeated; labels that are ignored weigh nothing. */
static void resizes_and_losses(void **state)
{
    const struct attribute linear = {.name = "mode", .kind = ATTRIBUTE_STRING, .s = "linear"};
    graphi_tensor *in[4] = {of(T_F32, 2, DIMS(1, 2), NUMBERS(0, 4)), NULL, of(T_F32, 1, DIMS(2), NUMBERS(1, 2)), NULL};
    gives("Resize", 4, in, &linear, T_F32, 2, DIMS(1, 4), NUMBERS(0, 1, 3, 4));
    const struct attribute ignore = {.name = "ignore_index", .kind = ATTRIBUTE_INT, .i = -1};
    graphi_tensor *loss[2] = {of(T_F32, 2, DIMS(2, 2), NUMBERS(-1, -2, -3, -4)), of(T_I64, 1, DIMS(2), NUMBERS(1, -1))};
    gives("NegativeLogLikelihoodLoss", 2, loss, &ignore, T_F32, 0, NULL, NUMBERS(2));
    graphi_tensor *few[1] = {of(T_F32, 1, DIMS(4), NUMBERS(9.6, -9, 2.5, NAN))}, *out;
    const struct attribute to = {.name = "to", .kind = ATTRIBUTE_INT, .i = GRAPHI_ELEMENT_INT4};
    assert_int_equal(run("Cast", 1, few, &to, 1, &out), GRAPHI_OK); /* rounds and stays within the type */
    assert_memory_equal(out->data, ((const int8_t[]){7, -8, 2, 0}), 4);
    value_drop(out);
    value_drop(few[0]);
}

/* Fails with INVALID and a message that has `text`; drops the inputs. */
static void refuses(const char *name, int ins, graphi_tensor **in, const struct attribute *attribute, const char *text)
{
    graphi_tensor *out;
    assert_int_equal(run(name, ins, in, attribute, attribute != NULL, &out), GRAPHI_INVALID);
    if (!strstr(graphi_message(), text))
        fail_msg("%s: %s", name, graphi_message());
    for (int i = 0; i < ins; i++)
        value_drop(in[i]);
}

static void equations(void **state)
{
    struct attribute a = {.name = "equation", .kind = ATTRIBUTE_STRING, .s = "ij, jk -> ik"};
    graphi_tensor *product[2] = {of(T_F32, 2, DIMS(2, 2), NUMBERS(1, 2, 3, 4)),
                                 of(T_F32, 2, DIMS(2, 1), NUMBERS(10, 1))};
    gives("Einsum", 2, product, &a, T_F32, 2, DIMS(2, 1), NUMBERS(12, 34));
    a.s = "ii"; /* a label that is named twice is summed: the trace */
    graphi_tensor *trace[1] = {of(T_I32, 2, DIMS(2, 2), NUMBERS(1, 2, 3, 4))};
    gives("Einsum", 1, trace, &a, T_I32, 0, NULL, NUMBERS(5));
    a.s = "ba"; /* letters in order: transposed */
    graphi_tensor *turned[1] = {of(T_F64, 2, DIMS(2, 2), NUMBERS(1, 2, 3, 4))};
    gives("Einsum", 1, turned, &a, T_F64, 2, DIMS(2, 2), NUMBERS(1, 3, 2, 4));
    a.s = "...i,...i->...";
    graphi_tensor *wide[2] = {of(T_F32, 2, DIMS(2, 2), NUMBERS(1, 2, 3, 4)), of(T_F32, 1, DIMS(2), NUMBERS(1, 10))};
    gives("Einsum", 2, wide, &a, T_F32, 1, DIMS(2), NUMBERS(21, 43));
    a.s = "i->k";
    refuses("Einsum", 1, (graphi_tensor *[]){of(T_F32, 1, DIMS(2), NUMBERS(1, 2))}, &a, "in no term");
    a.s = "i,i";
    refuses("Einsum", 2,
            (graphi_tensor *[]){of(T_F32, 1, DIMS(2), NUMBERS(1, 2)), of(T_F32, 1, DIMS(3), NUMBERS(1, 2, 3))}, &a,
            "sizes 2 and 3");
}

static void grids(void **state)
{
    const struct attribute border = {.name = "padding_mode", .kind = ATTRIBUTE_STRING, .s = "border"};
    for (int kind = 0; kind < 2; kind++) { /* the middle of four pixels, a corner, and what is no number */
        graphi_tensor *in[2] = {of(T_F32, 4, DIMS(1, 1, 2, 2), NUMBERS(1, 2, 3, 4)),
                                of(T_F32, 4, DIMS(1, 1, 3, 2), NUMBERS(0, 0, -1, 1, NAN, 0))};
        gives("GridSample", 2, in, kind ? &border : NULL, T_F32, 4, DIMS(1, 1, 1, 3),
              kind ? NUMBERS(2.5, 3, 2) : NUMBERS(2.5, 0.75, 0));
    }
    graphi_tensor *affine[2] = {of(T_F32, 3, DIMS(1, 2, 3), NUMBERS(1, 0, 0, 0, 2, 1)),
                                of(T_I64, 1, DIMS(4), NUMBERS(1, 1, 1, 2))};
    gives("AffineGrid", 2, affine, NULL, T_F32, 4, DIMS(1, 1, 2, 2), NUMBERS(-0.5, 1, 0.5, 1));
}

static void spectra(void **state)
{
    const struct attribute half = {.name = "onesided", .kind = ATTRIBUTE_INT, .i = 1},
                           back = {.name = "inverse", .kind = ATTRIBUTE_INT, .i = 1};
    graphi_tensor *line[1] = {of(T_F32, 3, DIMS(1, 6, 1), NUMBERS(1, 2, 3, 4, 5, 6))};
    gives("DFT", 1, line, &half, T_F32, 3, DIMS(1, 4, 2), NUMBERS(21, 0, -3, 5.1961524, -3, 1.7320508, -3, 0));
    graphi_tensor *lines[3] = {of(T_F64, 2, DIMS(2, 2), NUMBERS(4, 0, -2, 0)), NULL, of(T_I64, 0, NULL, NUMBERS(0))};
    gives("DFT", 3, lines, &back, T_F64, 2, DIMS(2, 2), NUMBERS(1, 0, 3, 0));
    const struct attribute both[] = {half, back};
    graphi_tensor *spectrum = of(T_F32, 3, DIMS(1, 3, 2), NUMBERS(10, 0, -2, 2, -2, 0)), *signal;
    assert_int_equal(run("DFT", 1, &spectrum, both, 2, &signal), GRAPHI_OK); /* half a spectrum, back to 1 2 3 4 */
    assert_int_equal(signal->count, 4);
    for (int i = 0; i < 4; i++)
        assert_float_equal(value_double(signal, i), i + 1, 1e-6);
    value_drop(signal);
    value_drop(spectrum);
    graphi_tensor *frames[4] = {of(T_F32, 2, DIMS(1, 4), NUMBERS(1, 2, 3, 4)), of(T_I64, 0, NULL, NUMBERS(2)),
                                of(T_F32, 1, DIMS(2), NUMBERS(1, 10)), NULL};
    gives("STFT", 4, frames, NULL, T_F32, 4, DIMS(1, 2, 2, 2), NUMBERS(21, 0, -19, 0, 43, 0, -37, 0));
    for (int high = 8; high <= 16; high += 8) {
        graphi_tensor *in[5] = {of(T_I64, 0, NULL, NUMBERS(1)), of(T_I64, 0, NULL, NUMBERS(16)),
                                of(T_I64, 0, NULL, NUMBERS(16)), of(T_F32, 0, NULL, NUMBERS(0)),
                                of(T_F32, 0, NULL, NUMBERS(high))};
        if (high == 8)
            gives("MelWeightMatrix", 5, in, NULL, T_F32, 2, DIMS(9, 1), NUMBERS(0, 0.5, 1, 2. / 3, 1. / 3, 0, 0, 0, 0));
        else
            refuses("MelWeightMatrix", 5, in, NULL, "half the sampling rate");
    }
}

/* A bin of one sample between four pixels; a convolution of one tap that its offset moves by half a pixel. */
static void regions_between_pixels(void **state)
{
    const double image[] = {1, 2, 3, 4};
    graphi_tensor *in[3] = {of(T_F32, 4, DIMS(1, 1, 2, 2), image),
                            of(T_F32, 2, DIMS(1, 4), NUMBERS(0.5, 0.5, 1.5, 1.5)), of(T_I64, 1, DIMS(1), NUMBERS(0))};
    gives("RoiAlign", 3, in, NULL, T_F32, 4, DIMS(1, 1, 1, 1), NUMBERS(2.5));
    refuses("RoiAlign", 3,
            (graphi_tensor *[]){of(T_F32, 4, DIMS(1, 1, 2, 2), image), of(T_F32, 2, DIMS(1, 4), NUMBERS(0, 0, 1, 1)),
                                of(T_I64, 1, DIMS(1), NUMBERS(1))},
            NULL, "image 1 of region 0");
    graphi_tensor *moved[5] = {of(T_F32, 4, DIMS(1, 1, 2, 2), image), of(T_F32, 4, DIMS(1, 1, 1, 1), NUMBERS(10)),
                               of(T_F32, 4, DIMS(1, 2, 2, 2), NUMBERS(0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5)),
                               of(T_F32, 1, DIMS(1), NUMBERS(1)), of(T_F32, 4, DIMS(1, 1, 2, 2), NUMBERS(1, 1, 1, 0))};
    gives("DeformConv", 5, moved, NULL, T_F32, 4, DIMS(1, 1, 2, 2), NUMBERS(16, 11, 36, 1));
}

/* Queries of zero weigh what they see alike; one that sees nothing gives zeros. */
static void attention_masks(void **state)
{
    const struct attribute causal = {.name = "is_causal", .kind = ATTRIBUTE_INT, .i = 1},
                           heads = {.name = "num_heads", .kind = ATTRIBUTE_INT, .i = 1};
    for (int kind = 0; kind < 2; kind++) {
        graphi_tensor *in[4] = {
            of(T_F32, 4, DIMS(1, 1, 2, 1), NUMBERS(0, 0)), of(T_F32, 4, DIMS(1, 1, 2, 1), NUMBERS(1, 1)),
            of(T_F32, 4, DIMS(1, 1, 2, 1), NUMBERS(4, 6)), of(T_BOOL, 2, DIMS(2, 2), NUMBERS(0, 0, 1, 1))};
        if (kind)
            gives("Attention", 4, in, NULL, T_F32, 4, DIMS(1, 1, 2, 1), NUMBERS(0, 5));
        else {
            gives("Attention", 3, in, &causal, T_F32, 4, DIMS(1, 1, 2, 1), NUMBERS(4, 5));
            value_drop(in[3]);
        }
    }
    graphi_tensor *turned[4] = {of(T_F32, 3, DIMS(1, 1, 2), NUMBERS(3, 4)), of(T_F32, 2, DIMS(2, 1), NUMBERS(1, 0)),
                                of(T_F32, 2, DIMS(2, 1), NUMBERS(0, 1)), of(T_I64, 2, DIMS(1, 1), NUMBERS(1))};
    gives("RotaryEmbedding", 4, turned, &heads, T_F32, 3, DIMS(1, 1, 2), NUMBERS(-4, 3));
}

/* First steps: Adagrad by the gradient's sign; Adam from states of zero without a correction at step 0. */
static void optimizers_step(void **state)
{
    graphi_tensor *in[6];
    for (int kind = 0; kind < 2; kind++) {
        const struct attribute none = {.name = "epsilon", .kind = ATTRIBUTE_FLOAT, .f = 0};
        in[0] = of(T_F32, 0, NULL, NUMBERS(0.5));
        in[1] = of(T_I64, 0, NULL, NUMBERS(0));
        in[2] = of(T_F64, 1, DIMS(2), NUMBERS(1, 2));
        in[3] = of(T_F64, 1, DIMS(2), NUMBERS(3, -4));
        in[4] = of(T_F64, 1, DIMS(2), NUMBERS(0, 0));
        in[5] = kind ? of(T_F64, 1, DIMS(2), NUMBERS(0, 0)) : NULL;
        const double step = 0.5 * (1 - (double)0.9f) / sqrt(1 - (double)0.999f);
        gives(kind ? "ai.onnx.preview.training.Adam" : "ai.onnx.preview.training.Adagrad", kind ? 6 : 5, in, &none,
              T_F64, 1, DIMS(2), kind ? NUMBERS(1 - step, 2 + step) : NUMBERS(0.5, 2.5));
    }
    for (int i = 0; i < 5; i++)
        in[i] = i == 1 ? of(T_I64, 0, NULL, NUMBERS(0)) : of(T_F32, 0, NULL, NUMBERS(1));
    refuses("ai.onnx.preview.training.Momentum", 5, in, NULL, "no alpha");
}

/* One tree of one node, x[1] <= 2 ? 10 : 20, with a target each; a node that leads to itself is refused. */
static void trees_and_columns(void **state)
{
    int64_t zero = 0, one = 1, two = 2, targets[2] = {0, 1};
    graphi_tensor *split = of(T_F32, 1, DIMS(1), NUMBERS(2)), *mode = of(T_U8, 1, DIMS(1), NUMBERS(0)),
                  *leaves = of(T_F32, 1, DIMS(2), NUMBERS(10, 20)), *x = of(T_F32, 2, DIMS(2, 2), NUMBERS(9, 1, 0, 3)),
                  *out;
    struct attribute a[] = {
        {.name = "nodes_splits", .kind = ATTRIBUTE_TENSOR, .tensor = split},
        {.name = "nodes_modes", .kind = ATTRIBUTE_TENSOR, .tensor = mode},
        {.name = "leaf_weights", .kind = ATTRIBUTE_TENSOR, .tensor = leaves},
        {.name = "nodes_featureids", .kind = ATTRIBUTE_INTS, .count = 1, .ints = &one},
        {.name = "nodes_truenodeids", .kind = ATTRIBUTE_INTS, .count = 1, .ints = &zero},
        {.name = "nodes_falsenodeids", .kind = ATTRIBUTE_INTS, .count = 1, .ints = &one},
        {.name = "nodes_trueleafs", .kind = ATTRIBUTE_INTS, .count = 1, .ints = &one},
        {.name = "nodes_falseleafs", .kind = ATTRIBUTE_INTS, .count = 1, .ints = &one},
        {.name = "leaf_targetids", .kind = ATTRIBUTE_INTS, .count = 2, .ints = targets},
        {.name = "tree_roots", .kind = ATTRIBUTE_INTS, .count = 1, .ints = &zero},
        {.name = "n_targets", .kind = ATTRIBUTE_INT, .i = two},
    };
    const size_t count = sizeof a / sizeof *a;
    assert_int_equal(run("ai.onnx.ml.TreeEnsemble", 1, &x, a, count, &out), GRAPHI_OK);
    for (int i = 0; i < 4; i++)
        assert_float_equal(value_double(out, i), ((const double[]){10, 0, 0, 20})[i], 0);
    value_drop(out);
    a[6].ints = &zero;
    assert_int_equal(run("ai.onnx.ml.TreeEnsemble", 1, &x, a, count, &out), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "no leaf"));
    graphi_tensor *columns[2] = {x, of(T_I64, 1, DIMS(1), NUMBERS(1))};
    gives("ai.onnx.ml.ArrayFeatureExtractor", 2, columns, NULL, T_F32, 2, DIMS(2, 1), NUMBERS(1, 3));
    const struct attribute limit = {.name = "threshold", .kind = ATTRIBUTE_FLOAT, .f = 15};
    gives("ai.onnx.ml.Binarizer", 1, &leaves, &limit, T_F32, 1, DIMS(2), NUMBERS(0, 1));
    value_drop(split);
    value_drop(mode);
}

static void means_over_axes(void **state)
{
    graphi_tensor *in[1] = {of(T_F32, 4, DIMS(1, 2, 1, 2), NUMBERS(1, 3, 10, 30))};
    gives("MeanVarianceNormalization", 1, in, NULL, T_F32, 4, DIMS(1, 2, 1, 2), NUMBERS(-1, 1, -1, 1));
}

static void arrays_of_numpy(void **state)
{
    static const char header[] = "\x93NUMPY\1\0\x36\0{'descr': '<i2', 'fortran_order': True, 'shape': (2,3)}\n";
    char bytes[10 + 54 + 12];
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, header, sizeof header - 1);
    memcpy(bytes + 64, (int16_t[]){1, 4, 2, 5, 3, 6}, 12);
    graphi_tensor *value, *again;
    assert_int_equal(npy_value("test", bytes, sizeof bytes, &value), GRAPHI_OK);
    for (int64_t i = 0; i < 6; i++)
        assert_int_equal(value_int(value, i), i + 1);
    struct folder folder;
    folder_make(&folder);
    assert_int_equal(npy_value_save(value, folder_name(&folder, "a.npy")), GRAPHI_OK);
    assert_int_equal(npy_value_load(folder_name(&folder, "a.npy"), &again), GRAPHI_OK);
    assert_memory_equal(value->data, again->data, 12);
    folder_remove(&folder);
    value_drop(value);
    value_drop(again);
    assert_int_equal(npy_value("test", bytes, sizeof bytes - 1, &value), GRAPHI_INVALID);
}

/* Every operator of the list refuses what it cannot take, rather than crash: no inputs where it needs some. */
static void operators_refuse_nothing(void **state)
{
    const struct host_op *op;
    size_t count = 0;
    for (; (op = host_op_at(count)); count++) {
        graphi_tensor *in[16] = {NULL}, *out;
        struct op_call call = {.op = op, .where = "test", .ins = op->least, .outs = 1, .in = in, .out = &out};
        out = NULL;
        if (op->least > 0)
            assert_int_equal(host_op_run(&call), GRAPHI_INVALID);
        assert_ptr_equal(host_op_find(op->name), op); /* no name twice */
    }
    assert_true(count > 150);
}

/* Wrong ranks: every operator meets scalars and a sequence as all its inputs. */
static void operators_meet_odd_inputs(void **state)
{
    const struct host_op *op;
    graphi_tensor *scalar = of(T_F32, 0, NULL, NUMBERS(1)), *list, *empty = of(T_I64, 1, DIMS(0), NULL);
    assert_int_equal(value_sequence("test", 0, &list), GRAPHI_OK);
    graphi_tensor *const odd[] = {scalar, list, empty};
    for (size_t i = 0; (op = host_op_at(i)); i++)
        for (int kind = 0; kind < 3; kind++) {
            graphi_tensor *in[16], *out[3] = {NULL, NULL, NULL};
            for (int k = 0; k < 16; k++)
                in[k] = odd[kind];
            struct op_call call = {.op = op,
                                   .where = "test",
                                   .ins = op->least,
                                   .outs = op->outs < 0 || op->outs > 3 ? 3 : op->outs,
                                   .in = in,
                                   .out = out};
            (void)host_op_run(&call);
            for (int k = 0; k < 3; k++)
                value_drop(out[k]);
        }
    value_drop(scalar);
    value_drop(list);
    value_drop(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_broadcast_in_every_type),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(sizes_of_zero),
        cmocka_unit_test(signs_and_columns_stay),
        cmocka_unit_test(slices_with_steps),
        cmocka_unit_test(transposes_turn_rank_8),
        cmocka_unit_test(maxima_see_nan),
        cmocka_unit_test(recurrent_lengths),
        cmocka_unit_test(small_floats_round_to_even),
        cmocka_unit_test(resizes_and_losses),
        cmocka_unit_test(equations),
        cmocka_unit_test(grids),
        cmocka_unit_test(spectra),
        cmocka_unit_test(regions_between_pixels),
        cmocka_unit_test(attention_masks),
        cmocka_unit_test(optimizers_step),
        cmocka_unit_test(trees_and_columns),
        cmocka_unit_test(means_over_axes),
        cmocka_unit_test(arrays_of_numpy),
        cmocka_unit_test(operators_refuse_nothing),
        cmocka_unit_test(operators_meet_odd_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
