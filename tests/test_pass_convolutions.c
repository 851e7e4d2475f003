/* SPDX-License-Identifier: Apache-2.0 */
/* Passes around convolutions: what joins them, what they share and what pools take from them keeps the results. */
#include "rewritten.h"

/* A convolution with bias and activation that is three nodes streams its result through memory three times; a bounded
 * batch must go through every pass. */
static void convolutions_and_bounded_batches(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, 3});
    graphi_value k1 = graphi_parameter(g, "k1", GRAPHI_F32, 4, (int64_t[]){3, 3, 3, 4}, NULL);
    graphi_value k2 = graphi_parameter(g, "k2", GRAPHI_F32, 4, (int64_t[]){3, 3, 3, 4}, NULL);
    graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, (int64_t[]){4}, NULL);
    graphi_value y = OP("relu", OP("add", OP("conv2d", x, k1), b));
    y = OP("add", y, OP("conv2d", x, k2));
    graphi_value rows = graphi_input(g, "rows", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, "batch", 8), 6});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){6, 5}, NULL);
    graphi_value z = OP("tanh", OP("add", OP("matmul", rows, w), number(g, 0.5f)));
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value a = OP("square", y), c = OP("square", z);
    graphi_value loss = OP("add", graphi_op(g, "sum_to", 1, &a, 1, &none), graphi_op(g, "sum_to", 1, &c, 1, &none));
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
    if (graphi_minimize(g, loss, &sgd) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    graphi_output(g, "loss", loss);
    graphi_output(g, "z", z);
    static const char *const lists[] = {NULL, "+merge", "fusion", "epilogue", "epilogue,fusion,+merge"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = lists[i]});
        same_results(g, copy, 1e-5, lists[i] ? lists[i] : "all");
        int convolutions = count_kind(copy, "conv2d"), relus = count_kind(copy, "relu");
        assert_int_equal(convolutions, lists[i] && strstr(lists[i], "merge") ? 1 : 2);
        if (!lists[i])
            assert_int_equal(relus, 0);
        graphi_graph_destroy(copy);
    }
    graphi_graph_destroy(g);
}

static graphi_value normalized(graphi_graph *g, const char *name, graphi_value x)
{
    graphi_value vector[4];
    for (int i = 0; i < 4; i++) {
        char full[16];
        snprintf(full, sizeof full, "%s%d", name, i);
        vector[i] = graphi_parameter(g, full, GRAPHI_F32, 1, (int64_t[]){4}, NULL);
        if (i > 1)
            graphi_freeze(g, vector[i]);
    }
    return OP("batch_norm_inference", x, vector[0], vector[1], vector[2], OP("square", vector[3]));
}

/* A normalization by given statistics that is an operation of its own walks over the image twice more, once for itself
 * and once for the activation behind it; in a residual block only the first one, of the input, has no convolution to
 * run in. Its gradient goes the same way. */
static void normalization_joins_convolutions(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, 4});
    graphi_value k1 = graphi_parameter(g, "k1", GRAPHI_F32, 4, (int64_t[]){3, 3, 4, 4}, NULL);
    graphi_value k2 = graphi_parameter(g, "k2", GRAPHI_F32, 4, (int64_t[]){3, 3, 4, 4}, NULL);
    graphi_attribute same = {.name = "pads", .type = GRAPHI_INTS, .ints = (int64_t[]){1, 1, 1, 1}, .count = 4};
    graphi_value y = OP("relu", normalized(g, "a", x));
    y = graphi_op(g, "conv2d", 2, (graphi_value[]){y, k1}, 1, &same);
    y = OP("relu", normalized(g, "b", y));
    y = graphi_op(g, "conv2d", 2, (graphi_value[]){y, k2}, 1, &same);
    y = OP("relu", normalized(g, "c", OP("add", y, x)));
    graphi_output(g, "y", y);
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value loss = graphi_op(g, "sum_to", 1, &y, 1, &none);
    for (int training = 0; training < 2; training++) {
        if (training)
            assert_int_equal(
                graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)}),
                GRAPHI_OK);
        for (int off = 0; off < 2; off++) {
            graphi_graph *copy =
                rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = off ? "norm" : NULL});
            same_results(g, copy, 1e-5, off ? "without" : "with");
            assert_int_equal(count_kind(copy, "batch_norm_inference"), off ? training ? 8 : 3 : 0);
            int walks = count_kind(copy, "relu");
            for (size_t i = 0; i < copy->nodes.count; i++) {
                const struct node *node = &copy->nodes.data[i];
                walks += is_kind(node, "program") && graph_value(copy, node->output)->type.rank == 4;
            }
            if (!training)
                assert_int_equal(walks, off ? 3 : 1);
            graphi_graph_destroy(copy);
        }
    }
    graphi_graph_destroy(g);
}

/* Weights of convolutions that do not change are brought into the kernel's form once, those read alike twice share it;
 * what an update changes every step and one convolution reads gets no node, which would save nothing. */
static void convolutions_share_prepared_weights(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    int64_t dims[] = {3, 3, 32, 80}, same[] = {1, 1, 1, 1};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 14, 14, 32});
    graphi_value fixed = graphi_parameter(g, "fixed", GRAPHI_F32, 4, dims, NULL);
    graphi_value shared = graphi_parameter(g, "shared", GRAPHI_F32, 4, dims, NULL);
    graphi_value single = graphi_parameter(g, "single", GRAPHI_F32, 4, dims, NULL);
    graphi_attribute pads = {.name = "pads", .type = GRAPHI_INTS, .ints = same, .count = 4};
    const graphi_value w[] = {fixed, fixed, shared, shared, single};
    graphi_value sum = GRAPHI_NONE;
    for (int i = 0; i < 5; i++) {
        graphi_value input = i % 2 ? OP("square", x) : x;
        graphi_value y = OP("relu", graphi_op(g, "conv2d", 2, (graphi_value[]){input, w[i]}, 1, &pads));
        sum = i ? OP("add", sum, y) : y;
    }
    graphi_output(g, "sum", sum);
    graphi_assign(g, shared, OP("mul", shared, number(g, 0.5f)));
    graphi_assign(g, single, OP("mul", single, number(g, 0.5f)));
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            struct pass_options options = {.isa = isa, .multiplicands = bf16 ? GRAPHI_BF16 : GRAPHI_F32};
            graphi_graph *copy = rewritten(g, options);
            assert_int_equal(count_kind(copy, "conv_pack"), 2);
            if (isa == ISA_PLAIN) /* the reference runs plain kernels */
                same_results(g, copy, bf16 ? 2e-2 : 1e-4, bf16 ? "bf16" : "prepared");
            graphi_graph_destroy(copy);
        }
    graphi_graph_destroy(g);
}

/* A chain of convolutions of one weight, whose points are large, trained or not. */
static graphi_graph *recurrent_convolutions(bool training)
{
    enum { TIMES = 3 };
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value y = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 24, 24, 96});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, 96, 96}, NULL);
    graphi_attribute pads = {.name = "pads", .type = GRAPHI_INTS, .ints = (int64_t[]){1, 1, 1, 1}, .count = 4};
    for (int i = 0; i < TIMES; i++)
        y = OP("mul", OP("tanh", graphi_op(g, "conv2d", 2, (graphi_value[]){y, w}, 1, &pads)), number(g, 0.02f));
    graphi_output(g, "y", y);
    y = OP("square", y);
    y = graphi_op(g, "sum_to", 1, &y, 1, &(graphi_attribute){.name = "dims", .type = GRAPHI_INTS});
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
    if (training)
        assert_int_equal(graphi_minimize(g, y, &sgd), GRAPHI_OK);
    assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
    return g;
}

/* Points too large to be kept were made by each convolution for itself, as often as the weight was used in a step:
 * once forward and once in the gradients of the images is enough, with the same bits. */
static void large_points_are_made_once_a_step(void **state)
{
    for (int training = 0; training < 2; training++)
        for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) { /* plain kernels are direct */
            graphi_graph *g = recurrent_convolutions(training);
            graphi_graph *copy = rewritten(g, (struct pass_options){.isa = isa});
            assert_int_equal(count_kind(copy, "conv_points"), 1 + training);
            assert_int_equal(count_kind(copy, "conv_pack"), 0);
            same_results_on(isa, 0, g, copy, 0, training ? "points, training" : "points");
            graphi_graph_destroy(copy);
            graphi_graph_destroy(g);
        }
}

/* A convolution of few tiles keeps the points that one of many would make in each step; made beside them they would
 * cost the time and save no memory. One of many alone makes them itself: a node would only be a task more. */
static void points_that_one_keeps_are_for_all(void **state)
{
    for (int first = 0; first < 3; first++)
        for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) { /* plain kernels are direct */
            const int64_t sides[] = {first == 1 ? 12 : 24, first ? 24 : 12};
            const bool alone = first == 2;
            graphi_graph *g;
            assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
            graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, 96, 96}, NULL);
            graphi_attribute pads = {.name = "pads", .type = GRAPHI_INTS, .ints = (int64_t[]){1, 1, 1, 1}, .count = 4};
            for (int i = 0; i < 2 - alone; i++) {
                const char *x = i ? "x1" : "x0", *y = i ? "y1" : "y0";
                const int64_t dims[] = {sides[i] / 12, sides[i], sides[i], 96};
                graphi_value in[] = {graphi_input(g, x, GRAPHI_F32, 4, dims), w};
                graphi_output(g, y, graphi_op(g, "conv2d", 2, in, 1, &pads));
            }
            struct pass_options options = {.isa = isa};
            if (passes_run(g, &options) != GRAPHI_OK || graph_check(g) != GRAPHI_OK)
                fail_msg("%s", graphi_message());
            assert_int_equal(count_kind(g, "conv_pack"), !alone);
            assert_int_equal(count_kind(g, "conv_points"), 0);
            graphi_graph_destroy(g);
        }
}

/* The branches of an inception module round the same images, each for itself, and weight gradients again. A rounded
 * copy that only one reads would cost a pass over memory. */
static void convolutions_share_rounded_images(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, 10});
    graphi_value odd =
        graphi_input(g, "odd", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, 3}); /* pairs would reach into the next pixel */
    graphi_value loss = GRAPHI_NONE;
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        graphi_value w = graphi_parameter(g, name, GRAPHI_F32, 4, (int64_t[]){1, 1, i < 2 ? 10 : 3, 8}, NULL);
        graphi_value y = OP("square", OP("conv2d", i < 2 ? x : odd, w));
        y = graphi_op(g, "sum_to", 1, &y, 1, &(graphi_attribute){.name = "dims", .type = GRAPHI_INTS});
        loss = i ? OP("add", loss, y) : y;
    }
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
    assert_int_equal(graphi_minimize(g, loss, &sgd), GRAPHI_OK);
    graphi_output(g, "loss", loss);
    static const struct {
        graphi_dtype multiplicands;
        const char *disable;
        int casts;
    } cases[] = {{GRAPHI_BF16, NULL, 1}, {GRAPHI_BF16, "round", 0}, {GRAPHI_F32, NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pass_options options = {
            .isa = ISA_PLAIN, .multiplicands = cases[i].multiplicands, .disable = cases[i].disable};
        graphi_graph *copy = rewritten(g, options);
        assert_int_equal(count_kind(copy, "cast"), cases[i].casts);
        for (size_t n = 0, readers = 0; n < copy->nodes.count; n++) {
            const struct node *node = graph_node(copy, (int32_t)n);
            for (int k = 0; k < node->inputs; k++)
                readers += graph_value(copy, node->input[k])->type.dtype == GRAPHI_BF16;
            if (n + 1 == copy->nodes.count)
                assert_int_equal(readers, cases[i].casts ? 4 : 0);
        }
        graphi_graph_destroy(copy);
    }
    graphi_graph_destroy(g);
}

/* The activation of a convolution and the gradient of its bias stream whole images where pooled ones would do. Pools
 * that the rewrite may not take: overlapping by stride 1 (nothing is gained), one whose activation somebody else reads,
 * and one without gradients, whose activation is better off in the convolution. */
static void pools_take_the_work_behind_them(void **state)
{
    for (int form = 0; form < 6; form++) {
        bool shared = form == 4, stays = form >= 3, forward = form == 5;
        const int64_t size = form == 0 ? 2 : 3, stride = form == 3 ? 1 : 2, pad = form == 2 || form == 3;
        graphi_graph *g;
        assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){graphi_symbol(g, "batch", 3), 7, 6, 3});
        graphi_value k = graphi_parameter(g, "k", GRAPHI_F32, 4, (int64_t[]){3, 3, 3, 4}, NULL);
        graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, (int64_t[]){4}, NULL);
        graphi_value active = OP("relu", OP("add", OP("conv2d", x, k), b));
        graphi_value y = graphi_max_pool(g, active, GRAPHI_LIST(size, size), GRAPHI_LIST(stride, stride),
                                         GRAPHI_LIST(pad, pad, pad, pad), 0);
        graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
        graphi_value square = OP("square", OP("tanh", y)), loss = graphi_op(g, "sum_to", 1, &square, 1, &none);
        if (shared)
            loss = OP("add", loss, graphi_op(g, "sum_to", 1, &active, 1, &none));
        graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
        if (!forward && graphi_minimize(g, loss, &sgd) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
        graphi_output(g, "loss", loss);
        graphi_output(g, "y", y);
        graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = "all,+pool"});
        same_results(g, copy, 1e-5, "pool");
        for (size_t i = 0; i < copy->nodes.count; i++) {
            const struct node *node = &copy->nodes.data[i];
            if (is_kind(node, "relu") || is_kind(node, "select"))
                assert_int_equal(graph_value(copy, node->output)->type.dims[1] == 7 - 2, stays);
            if (is_kind(node, "max_pool_grad"))
                assert_int_equal(is_kind(graph_node(copy, graph_value(copy, node->input[1])->node), "select"), !stays);
        }
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_and_bounded_batches),    cmocka_unit_test(normalization_joins_convolutions),
        cmocka_unit_test(convolutions_share_prepared_weights), cmocka_unit_test(large_points_are_made_once_a_step),
        cmocka_unit_test(points_that_one_keeps_are_for_all),   cmocka_unit_test(convolutions_share_rounded_images),
        cmocka_unit_test(pools_take_the_work_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
