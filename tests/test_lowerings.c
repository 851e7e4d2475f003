/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of ONNX operators: the same results as the interpreter's, for every one. */
#include "flow_model.h"

static void element_wise(void **state)
{
    static const char *const names[] = {"Abs",     "Neg",         "Floor",     "Exp",        "Tanh",
                                        "Sigmoid", "Relu",        "Softplus",  "Identity",   "LeakyRelu",
                                        "Elu",     "HardSigmoid", "HardSwish", "Reciprocal", "Dropout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin(DIMS(2, 3, 5));
        op(names[i], "x", "y");
        agree(17, PLANNED);
    }
    static const char *const positives[] = {"Sqrt", "Log"};
    for (int i = 0; i < 2; i++) {
        begin(DIMS(7));
        op("Exp", "x", "a");
        op(positives[i], "a", "y");
        agree(17, PLANNED);
    }
    static const char *const pairs[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        begin(DIMS(2, 3, 4, 5));
        weights("b", DIMS(3, 1, 5));
        op(pairs[i], "x b", "a");
        op(pairs[i], "b a", "y");
        agree(17, PLANNED);
    }
    begin(DIMS(4, 3));
    scalar("least", -0.25f);
    scalar("most", 0.5f);
    op("Clip", "x least most", "y");
    agree(17, PLANNED);
}

static void conv(const char *in, const char *out, int64_t stride, int64_t dilation, int64_t group)
{
    struct proto node = node_of("Conv", in, out);
    node_ints(&node, "pads", 4, (int64_t[]){1, 0, 1, 2});
    node_ints(&node, "strides", 2, (int64_t[]){stride, 1});
    node_ints(&node, "dilations", 2, (int64_t[]){1, dilation});
    node_int(&node, "group", group);
    add(&node);
}

static void convolutions(void **state)
{
    for (int64_t group = 1; group <= 2; group++)
        for (int64_t step = 1; step <= 2; step++) {
            begin(DIMS(2, 4, 7, 6));
            weights("w", DIMS(6, 4 / group, 3, 2));
            weights("b", DIMS(6));
            conv("x w b", "y", step, step, group);
            agree(17, PLANNED);
        }
    begin(DIMS(2, 3, 9)); /* one spatial dimension, padding by a rule */
    weights("w", DIMS(5, 3, 4));
    struct proto node = node_of("Conv", "x w", "y");
    node_text(&node, "auto_pad", "SAME_LOWER");
    add(&node);
    agree(17, PLANNED);
    begin(DIMS(2, 2, 250)); /* a window that is long, by blocks of the stride */
    weights("w", DIMS(3, 2, 96));
    node = node_of("Conv", "x w", "y");
    node_ints(&node, "strides", 1, (int64_t[]){32});
    add(&node);
    agree(17, PLANNED);
    begin(DIMS(1, 4, 5, 5)); /* depthwise */
    weights("w", DIMS(4, 1, 3, 3));
    node = node_of("Conv", "x w", "y");
    node_int(&node, "group", 4);
    add(&node);
    agree(17, PLANNED);
}

static void pool(const char *type, const char *in, const char *out, int64_t up, int64_t counts)
{
    struct proto node = node_of(type, in, out);
    node_ints(&node, "kernel_shape", 2, (int64_t[]){3, 2});
    node_ints(&node, "strides", 2, (int64_t[]){2, 2});
    node_ints(&node, "pads", 4, (int64_t[]){1, 0, 1, 1});
    if (up)
        node_int(&node, "ceil_mode", 1);
    if (counts)
        node_int(&node, "count_include_pad", 1);
    add(&node);
}

static void pools(void **state)
{
    for (int64_t up = 0; up < 2; up++) {
        begin(DIMS(2, 3, 8, 7));
        pool("MaxPool", "x", "y", up, 0);
        agree(17, PLANNED);
        begin(DIMS(2, 3, 8, 7));
        pool("AveragePool", "x", "y", up, 0);
        agree(17, PLANNED);
    }
    begin(DIMS(2, 3, 8, 7));
    pool("AveragePool", "x", "y", 0, 1);
    agree(17, PLANNED);
    static const char *const global[] = {"GlobalAveragePool", "GlobalMaxPool"};
    for (int i = 0; i < 2; i++) {
        begin(DIMS(2, 3, 4, 5));
        op(global[i], "x", "y");
        agree(17, PLANNED);
    }
    begin(DIMS(1, 6, 3, 2));
    struct proto node = node_of("LRN", "x", "y");
    node_int(&node, "size", 3);
    add(&node);
    agree(17, PLANNED);
}

/* What a residual network has: layouts meet at additions, concatenations, slices and reshapes. */
static void layouts(void **state)
{
    begin(DIMS(2, 4, 6, 5));
    weights("w", DIMS(4, 4, 3, 3));
    weights("v", DIMS(4, 1, 1));
    weights("f", DIMS(8, 5));
    positive("scale", 4);
    positive("shift", 4);
    positive("mean", 4);
    positive("variance", 4);
    numbers("starts", 1, (int64_t[]){1});
    numbers("ends", 1, (int64_t[]){-1});
    numbers("axes", 1, (int64_t[]){2});
    numbers("pads", 8, (int64_t[]){0, 1, 0, 2, 0, 0, 1, 0});
    conv("x w", "a", 1, 1, 1);
    op("BatchNormalization", "a scale shift mean variance", "b");
    op("Relu", "b", "c");
    op("Mul", "c v", "d");
    op("Add", "d x", "e");
    struct proto node = node_of("Concat", "e x", "g");
    node_int(&node, "axis", 1);
    add(&node);
    op("GlobalAveragePool", "g", "h");
    op("Flatten", "h", "i");
    op("MatMul", "i f", "j");
    op("Softmax", "j", "y");
    graph_port(&graph, 12, "s", F32, -1, NULL);
    op("Slice", "e starts ends axes", "k");
    op("Pad", "k pads", "s");
    graph_port(&graph, 12, "t", F32, -1, NULL);
    node = node_of("Transpose", "e", "t");
    node_ints(&node, "perm", 4, (int64_t[]){2, 0, 3, 1});
    add(&node);
    graph_port(&graph, 12, "r", F32, -1, NULL);
    op("Shape", "e", "shape");
    op("Reshape", "i shape2", "r");
    numbers("shape2", 2, (int64_t[]){-1, 2});
    graph_port(&graph, 12, "shape", I64, -1, NULL);
    agree(17, PLANNED);
}

static void moves(void **state)
{
    begin(DIMS(2, 3, 4));
    numbers("one", 1, (int64_t[]){1});
    op("Unsqueeze", "x one", "a");
    op("Squeeze", "a one", "z");
    struct proto node = node_of("Cast", "z", "b");
    node_int(&node, "to", F32);
    add(&node);
    node = node_of("Split", "b", "c d");
    node_int(&node, "axis", 2);
    add(&node);
    op("Sub", "c d", "e");
    node = node_of("Gather", "e one", "g");
    node_int(&node, "axis", 1);
    add(&node);
    static const char *const modes[] = {"edge", "reflect"};
    static const char *const outs[] = {"p", "q"};
    for (int i = 0; i < 2; i++) {
        graph_port(&graph, 12, outs[i], F32, -1, NULL);
        node = node_of("Pad", "x pads", outs[i]);
        node_text(&node, "mode", modes[i]);
        add(&node);
    }
    numbers("pads", 6, (int64_t[]){0, 2, 3, 1, 0, 2});
    op("Expand", "g size2", "y");
    numbers("size2", 3, (int64_t[]){2, 5, 2});
    agree(17, PLANNED);
}

static void products(void **state)
{
    for (int64_t trans = 0; trans < 2; trans++) {
        begin(2, trans ? (int64_t[]){6, 3} : (int64_t[]){3, 6});
        weights("w", 2, trans ? (int64_t[]){5, 6} : (int64_t[]){6, 5});
        weights("c", DIMS(5));
        struct proto node = node_of("Gemm", "x w c", "y");
        node_int(&node, "transA", trans);
        node_int(&node, "transB", trans);
        add(&node);
        agree(17, PLANNED);
    }
    begin(DIMS(2, 3, 4, 6));
    weights("w", DIMS(3, 6, 5));
    op("MatMul", "x w", "y");
    agree(17, PLANNED);
    static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceSumSquare"};
    for (int i = 0; i < 4; i++)
        for (int64_t keeps = 0; keeps < 2; keeps++) {
            begin(DIMS(2, 3, 4, 5));
            numbers("axes", 2, (int64_t[]){-1, 2});
            op("GlobalMaxPool", "x", "m");
            op("Sub", "x m", "a");
            struct proto node = node_of(names[i], "a axes", "y");
            node_int(&node, "keepdims", keeps);
            add(&node);
            agree(18, PLANNED);
        }
    for (int64_t axis = 0; axis < 3; axis++)
        for (int64_t opset = 11; opset <= 13; opset += 2) {
            begin(DIMS(2, 3, 4));
            struct proto node = node_of(axis == 1 ? "LogSoftmax" : "Softmax", "x", "y");
            node_int(&node, "axis", axis);
            add(&node);
            agree(opset, PLANNED);
        }
}

static void recurrent(const char *type, int64_t gates, const char *direction, int64_t after)
{
    const int64_t d = strcmp(direction, "bidirectional") == 0 ? 2 : 1, states = gates == 4;
    begin(DIMS(5, 2, 3));
    weights("w", DIMS(d, gates * 4, 3));
    weights("r", DIMS(d, gates * 4, 4));
    weights("b", DIMS(d, gates * 8));
    weights("h", DIMS(d, 2, 4));
    weights("c", DIMS(d, 2, 4));
    struct proto node = node_of(type, states ? "x w r b - h c" : "x w r b - h", states ? "y z k" : "y z");
    node_int(&node, "hidden_size", 4);
    node_text(&node, "direction", direction);
    if (gates == 3)
        node_int(&node, "linear_before_reset", after);
    add(&node);
    graph_port(&graph, 12, "z", F32, -1, NULL);
    if (states)
        graph_port(&graph, 12, "k", F32, -1, NULL);
    agree(14, PLANNED);
}

static void recurrences(void **state)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int i = 0; i < 3; i++) {
        recurrent("LSTM", 4, directions[i], 0);
        recurrent("GRU", 3, directions[i], 0);
        recurrent("GRU", 3, directions[i], 1);
        recurrent("RNN", 1, directions[i], 0);
    }
}

static void unary_with(const char *type, const char *attribute, float value)
{
    begin(DIMS(3, 17));
    graph_constant(&graph, "four", F32, 0, NULL, &(float){4}, 4);
    op("Mul", "x four", "a");
    struct proto node = node_of(type, "a", "y");
    if (attribute)
        node_float(&node, attribute, value);
    add(&node);
    agree(type[0] == 'S' && type[1] == 'w' ? 24 : 20, PLANNED);
}

static void activations(void **state)
{
    static const char *const names[] = {"Erf",  "Selu",  "Celu", "ThresholdedRelu", "Softsign", "Mish", "Gelu",
                                        "Ceil", "Round", "Sign", "Shrink",          "Swish"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unary_with(names[i], NULL, 0);
    unary_with("Celu", "alpha", 2.5f);
    unary_with("ThresholdedRelu", "alpha", 0.25f);
    unary_with("Shrink", "bias", 0.25f);
    begin(DIMS(3, 5));
    struct proto node = node_of("Gelu", "x", "y");
    node_text(&node, "approximate", "tanh");
    add(&node);
    agree(20, PLANNED);
    begin(DIMS(2, 3, 4, 5));
    weights("slope", DIMS(3, 1, 1));
    op("PRelu", "x slope", "a");
    op("Mean", "a x slope", "y");
    agree(17, PLANNED);
    begin(DIMS(2, 3));
    op("Dropout", "x", "y mask");
    graph_port(&graph, 12, "mask", 9, -1, NULL);
    agree(17, PLANNED);
}

static void powers(void **state)
{
    static const float by[] = {1, 2, 3, 0.5f, -1, 1.7f};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        begin(DIMS(3, 5));
        scalar("by", by[i]);
        op("Exp", "x", "a");
        op("Pow", "a by", "y");
        agree(17, PLANNED);
    }
    begin(DIMS(2, 3, 4, 5)); /* softmax over channels that are last */
    weights("w", DIMS(6, 3, 1, 1));
    op("Conv", "x w", "a");
    struct proto node = node_of("Softmax", "a", "y");
    node_int(&node, "axis", 1);
    add(&node);
    agree(17, PLANNED);
}

/* Truth values are computed, combined, moved and given out as what they are. */
static void comparisons(void **state)
{
    static const char *const names[] = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin(DIMS(4, 6));
        graph_port(&graph, 11, "given", 9, 2, (int64_t[]){4, 1});
        graph_port(&graph, 12, "z", 9, -1, NULL);
        weights("w", DIMS(6));
        op("Round", "x", "r");
        op("Round", "w", "v");
        op(names[i], "r v", "a");
        op("Not", "a", "b");
        op("Xor", "a given", "c");
        op("And", "c b", "d");
        op("Or", "d given", "z");
        struct proto node = node_of("Cast", "z", "f");
        node_int(&node, "to", F32);
        add(&node);
        op("Where", "z x f", "y");
        agree(17, PLANNED);
    }
}

/* Elements by step, from the end, by lists of indices; ids that are given; repeated ones. */
static void indexing(void **state)
{
    static const int64_t cases[][6] = {{0, 7, 2, 0, 9, 3}, {6, -99, -1, -2, 1, -3}, {1, 99, 4, 8, -99, -2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(DIMS(2, 7, 9));
        numbers("starts", 2, (int64_t[]){cases[i][0], cases[i][3]});
        numbers("ends", 2, (int64_t[]){cases[i][1], cases[i][4]});
        numbers("axes", 2, (int64_t[]){1, 2});
        numbers("steps", 2, (int64_t[]){cases[i][2], cases[i][5]});
        op("Slice", "x starts ends axes steps", "a");
        op("Relu", "a", "y");
        agree(17, PLANNED);
    }
    for (int64_t axis = 0; axis < 3; axis++) {
        begin(DIMS(3, 4, 5));
        graph_port(&graph, 11, "ids", I64, 2, (int64_t[]){2, 3});
        struct proto node = node_of("Gather", "x ids", "a"), more = node_of("Gather", "a list", "y");
        node_int(&node, "axis", axis);
        add(&node);
        node_int(&more, "axis", axis);
        numbers("list", 3, (int64_t[]){-1, 0, 0});
        add(&more);
        agree(17, PLANNED);
    }
    begin(DIMS(2, 1, 3));
    numbers("times", 3, (int64_t[]){3, 4, 1});
    op("Tile", "x times", "y");
    agree(17, PLANNED);
    for (int i = 0; i < 4; i++) {
        begin(DIMS(1, 8, 4, 6));
        struct proto node = node_of(i & 1 ? "DepthToSpace" : "SpaceToDepth", "x", "y");
        node_int(&node, "blocksize", 2);
        if (i & 1)
            node_text(&node, "mode", i & 2 ? "CRD" : "DCR");
        add(&node);
        agree(17, PLANNED);
    }
}

/* Identifiers and truth values that only move, cut, join and change their type. */
static void whole_numbers(void **state)
{
    begin(DIMS(2, 3));
    graph_port(&graph, 11, "ids", I64, 2, (int64_t[]){2, 4});
    graph_port(&graph, 12, "z", I64, -1, NULL);
    struct proto node = node_of("Transpose", "ids", "a");
    node_ints(&node, "perm", 2, (int64_t[]){1, 0});
    add(&node);
    node = node_of("Concat", "a a", "z");
    node_int(&node, "axis", 1);
    add(&node);
    node = node_of("Cast", "z", "f");
    node_int(&node, "to", F32);
    add(&node);
    op("ReduceSum", "f", "g");
    op("Add", "g x", "y");
    agree(17, PLANNED);
}

static void resize(const char *mode, const char *transform, float side, float other)
{
    begin(DIMS(1, 2, 5, 4));
    weights("w", DIMS(2, 2, 1, 1));
    const float scales[4] = {1, 1, side, other};
    graph_constant(&graph, "scales", F32, 1, (int64_t[]){4}, scales, sizeof scales);
    op("Conv", "x w", "a");
    struct proto node = node_of("Resize", "a - scales", "y");
    node_text(&node, "mode", mode);
    node_text(&node, "coordinate_transformation_mode", transform);
    add(&node);
    agree(18, PLANNED);
}

static void resampling(void **state)
{
    static const char *const transforms[] = {"asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"};
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    for (int t = 0; t < 4; t++)
        for (int m = 0; m < 3; m++) {
            resize(modes[m], transforms[t], 2, 3);
            resize(modes[m], transforms[t], 1.7f, 0.6f);
        }
    begin(DIMS(2, 3, 4, 4));
    numbers("sizes", 4, (int64_t[]){2, 3, 8, 7});
    struct proto node = node_of("Resize", "x - - sizes", "y");
    node_text(&node, "mode", "linear");
    add(&node);
    agree(18, PLANNED);
}

static void transposed(void **state)
{
    for (int64_t group = 1; group <= 2; group++)
        for (int64_t stride = 1; stride <= 3; stride++) {
            begin(DIMS(2, 4, 5, 3));
            weights("w", DIMS(4, 3, 3, 2));
            weights("b", DIMS(3 * group));
            struct proto node = node_of("ConvTranspose", "x w b", "y");
            node_ints(&node, "strides", 2, (int64_t[]){stride, 2});
            node_ints(&node, "pads", 4, (int64_t[]){1, 0, 0, 1});
            node_ints(&node, "output_padding", 2, (int64_t[]){stride - 1, 1});
            node_int(&node, "group", group);
            add(&node);
            agree(17, PLANNED);
        }
    begin(DIMS(2, 3, 6));
    weights("w", DIMS(3, 5, 4));
    struct proto node = node_of("ConvTranspose", "x w", "y");
    node_ints(&node, "strides", 1, (int64_t[]){2});
    node_text(&node, "auto_pad", "SAME_UPPER");
    add(&node);
    agree(17, PLANNED);
}

static void reductions(void **state)
{
    static const char *const names[] = {"ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceLogSum"};
    for (int i = 0; i < 5; i++)
        for (int64_t keeps = 0; keeps < 2; keeps++) {
            begin(DIMS(2, 3, 4, 5));
            numbers("axes", 2, (int64_t[]){-1, 1});
            op("Exp", "x", "a");
            struct proto node = node_of(names[i], "a axes", "y");
            node_int(&node, "keepdims", keeps);
            add(&node);
            agree(18, PLANNED);
        }
    begin(DIMS(2, 3)); /* no axes at all */
    struct proto node = node_of("ReduceSumSquare", "x", "y");
    node_int(&node, "noop_with_empty_axes", 1);
    add(&node);
    agree(18, PLANNED);
    static const int64_t shapes[][2][3] = {{{6}, {6}}, {{6}, {2, 6, 5}}, {{2, 4, 6}, {6}}};
    static const int ranks[][2] = {{1, 1}, {1, 3}, {3, 1}};
    for (int i = 0; i < 3; i++) {
        begin(ranks[i][0], shapes[i][0]);
        weights("w", ranks[i][1], shapes[i][1]);
        op("MatMul", "x w", "y");
        agree(17, PLANNED);
    }
}

static void norms(void **state)
{
    for (int64_t axis = 1; axis < 3; axis++) {
        begin(DIMS(2, 3, 8));
        weights("scale", 3 - (int)axis, (int64_t[]){axis == 1 ? 3 : 8, 8});
        weights("shift", DIMS(8));
        struct proto node = node_of("LayerNormalization", "x scale shift", "y m v");
        node_int(&node, "axis", axis);
        add(&node);
        graph_port(&graph, 12, "m", F32, -1, NULL);
        graph_port(&graph, 12, "v", F32, -1, NULL);
        agree(17, PLANNED);
    }
    begin(DIMS(2, 3, 8));
    weights("scale", DIMS(8));
    op("RMSNormalization", "x scale", "y");
    agree(23, PLANNED);
    for (int i = 0; i < 2; i++) {
        begin(DIMS(2, 4, 5, 3));
        weights("w", DIMS(4, 4, 1, 1));
        weights("scale", DIMS(4));
        weights("shift", DIMS(4));
        op("Conv", "x w", "a");
        struct proto node = node_of(i ? "GroupNormalization" : "InstanceNormalization", "a scale shift", "y");
        if (i)
            node_int(&node, "num_groups", 2);
        add(&node);
        agree(21, PLANNED);
    }
    begin(DIMS(3, 4));
    op("LpNormalization", "x", "y");
    agree(22, PLANNED);
}

/* Heads of their own dimension or flat, shared keys, masks of both kinds. */
static void attention(void **state)
{
    for (int kind = 0; kind < 4; kind++) {
        const bool flat = kind & 1;
        begin(flat ? 3 : 4, flat ? (int64_t[]){2, 3, 16} : (int64_t[]){2, 4, 3, 4});
        weights("k", flat ? 3 : 4, flat ? (int64_t[]){2, 5, 8} : (int64_t[]){2, 2, 5, 4});
        weights("v", flat ? 3 : 4, flat ? (int64_t[]){2, 5, 8} : (int64_t[]){2, 2, 5, 4});
        graph_port(&graph, 11, "mask", kind < 2 ? 9 : F32, 2, (int64_t[]){3, 5});
        struct proto node = node_of("Attention", "x k v mask", "y");
        if (flat) {
            node_int(&node, "q_num_heads", 4);
            node_int(&node, "kv_num_heads", 2);
        }
        if (kind == 3)
            node_int(&node, "is_causal", 1);
        if (kind == 2)
            node_float(&node, "softcap", 0.5f);
        add(&node);
        agree(23, PLANNED);
    }
}

/* What the loop operation has no form of is unrolled: lengths (one of them 0), peepholes, clip, other activations. */
static void unrolled_cell(const char *type, int64_t gates, const char *direction, int64_t layout, int64_t coupled)
{
    const int64_t d = strcmp(direction, "bidirectional") == 0 ? 2 : 1, states = gates == 4;
    const int32_t lengths[3] = {5, 0, 2};
    begin(3, layout ? (int64_t[]){3, 5, 3} : (int64_t[]){5, 3, 3});
    weights("w", DIMS(d, gates * 4, 3));
    weights("r", DIMS(d, gates * 4, 4));
    weights("b", DIMS(d, gates * 8));
    weights("h", 3, layout ? (int64_t[]){3, d, 4} : (int64_t[]){d, 3, 4});
    weights("c", 3, layout ? (int64_t[]){3, d, 4} : (int64_t[]){d, 3, 4});
    weights("p", DIMS(d, 12));
    graph_constant(&graph, "n", 6, 1, (int64_t[]){3}, lengths, sizeof lengths);
    struct proto node = node_of(type, states ? "x w r b n h c p" : "x w r b n h", states ? "y z k" : "y z");
    node_int(&node, "hidden_size", 4);
    node_text(&node, "direction", direction);
    node_float(&node, "clip", 0.75f);
    if (layout)
        node_int(&node, "layout", 1);
    if (states)
        node_int(&node, "input_forget", coupled);
    if (gates == 3)
        node_int(&node, "linear_before_reset", coupled);
    if (gates == 1)
        node_texts(&node, "activations", d == 2 ? "Elu HardSigmoid" : coupled ? "Softsign" : "LeakyRelu");
    add(&node);
    graph_port(&graph, 12, "z", F32, -1, NULL);
    if (states)
        graph_port(&graph, 12, "k", F32, -1, NULL);
    agree(14, PLANNED);
}

static void unrolled(void **state)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (int i = 0; i < 3; i++)
        for (int64_t variant = 0; variant < 2; variant++) {
            unrolled_cell("LSTM", 4, directions[i], variant, variant);
            unrolled_cell("GRU", 3, directions[i], variant, variant);
            unrolled_cell("RNN", 1, directions[i], variant, variant);
        }
}

/* Batch first on the loop operation. */
static void batch_first(void **state)
{
    for (int64_t d = 1; d <= 2; d++) {
        begin(DIMS(2, 5, 3));
        weights("w", DIMS(d, 16, 3));
        weights("r", DIMS(d, 16, 4));
        weights("b", DIMS(d, 32));
        weights("h", DIMS(2, d, 4));
        weights("c", DIMS(2, d, 4));
        struct proto node = node_of("LSTM", "x w r b - h c", "y z k");
        node_int(&node, "hidden_size", 4);
        node_int(&node, "layout", 1);
        node_text(&node, "direction", d == 2 ? "bidirectional" : "reverse");
        add(&node);
        graph_port(&graph, 12, "z", F32, -1, NULL);
        graph_port(&graph, 12, "k", F32, -1, NULL);
        agree(14, PLANNED);
    }
}

/* A convolution between whole numbers, as quantizers write it: one scale, and one a channel. */
static void quantized(void **state)
{
    static const float scales[4] = {0.02f, 0.05f, 0.01f, 0.03f};
    static const int8_t zeros[4] = {0, 3, -5, 1};
    for (int channels = 0; channels < 2; channels++) {
        begin(DIMS(2, 3, 6, 5));
        scalar("scale", 0.0625f);
        graph_constant(&graph, "zero", 2, 0, NULL, &(uint8_t){128}, 1);
        weights("w", DIMS(4, 3, 3, 3));
        graph_constant(&graph, "scales", F32, channels, (int64_t[]){4}, scales, channels ? 16 : 4);
        graph_constant(&graph, "zeros", 3, channels, (int64_t[]){4}, zeros, channels ? 4 : 1);
        op("QuantizeLinear", "x scale zero", "q");
        op("DequantizeLinear", "q scale zero", "d");
        op("Conv", "d w", "a");
        op("QuantizeLinear", "a scales zeros", "b");
        op("DequantizeLinear", "b scales zeros", "e");
        op("Relu", "e", "y");
        graph_port(&graph, 12, "b", 3, -1, NULL);
        agree(17, PLANNED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_wise), cmocka_unit_test(convolutions),  cmocka_unit_test(pools),
        cmocka_unit_test(layouts),      cmocka_unit_test(moves),         cmocka_unit_test(products),
        cmocka_unit_test(recurrences),  cmocka_unit_test(activations),   cmocka_unit_test(comparisons),
        cmocka_unit_test(indexing),     cmocka_unit_test(whole_numbers), cmocka_unit_test(resampling),
        cmocka_unit_test(transposed),   cmocka_unit_test(reductions),    cmocka_unit_test(norms),
        cmocka_unit_test(attention),    cmocka_unit_test(unrolled),      cmocka_unit_test(batch_first),
        cmocka_unit_test(quantized),    cmocka_unit_test(powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
