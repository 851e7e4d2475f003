/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes of who writes a graph or runs a plan: each must be refused with the words that say what is wrong, change
 * nothing, and leave what it was made on usable. Without the check behind it, most would read or write elsewhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "graphi/ops.h"

/* --- graphs --- */

enum { ROWS = 4, COLUMNS = 3 };

static graphi_value rows(graphi_graph *g)
{
    return graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, "batch", ROWS), COLUMNS});
}

static graphi_value weights(graphi_graph *g)
{
    return graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){COLUMNS, 2}, NULL);
}

static graphi_value loss_of(graphi_graph *g)
{
    return graphi_reduce_sum(g, graphi_matmul(g, rows(g), weights(g), 0, 0), NULL, 0, 0);
}

static graphi_value scalar(graphi_graph *g) { return graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){0.5f}); }

static void no_symbol_name(graphi_graph *g) { graphi_symbol(g, "", 4); }
static void no_bound(graphi_graph *g) { graphi_symbol(g, "batch", 0); }
static void no_type(graphi_graph *g) { graphi_input(g, "x", (graphi_dtype)99, 0, NULL); }
static void no_dims(graphi_graph *g) { graphi_input(g, "x", GRAPHI_F32, 2, NULL); }
static void high_rank(graphi_graph *g)
{
    graphi_input(g, "x", GRAPHI_F32, GRAPHI_MAX_RANK + 1, (int64_t[GRAPHI_MAX_RANK + 1]){1});
}
static void no_name(graphi_graph *g) { graphi_input(g, NULL, GRAPHI_F32, 0, NULL); }
static void bounded_parameter(graphi_graph *g)
{
    graphi_parameter(g, "w", GRAPHI_F32, 1, (int64_t[]){graphi_symbol(g, "batch", 4)}, NULL);
}
static void bounded_constant(graphi_graph *g)
{
    graphi_constant(g, GRAPHI_F32, 1, (int64_t[]){graphi_symbol(g, "batch", 4)}, (float[4]){0});
}
static void no_data(graphi_graph *g) { graphi_constant(g, GRAPHI_F32, 1, (int64_t[]){4}, NULL); }
static void no_initializer(graphi_graph *g)
{
    graphi_parameter(g, "w", GRAPHI_F32, 0, NULL, &(graphi_initializer){.kind = (graphi_init_kind)99});
}
static void started(graphi_graph *g, graphi_init_kind kind, double a, double b)
{
    graphi_parameter(g, "w", GRAPHI_F32, 0, NULL, &(graphi_initializer){.kind = kind, .a = a, .b = b});
}
static void started_at_nothing(graphi_graph *g) { started(g, GRAPHI_INIT_CONSTANT, NAN, 0); }
static void named_as_metadata(graphi_graph *g) { graphi_parameter(g, "__metadata__", GRAPHI_F32, 0, NULL, NULL); }
static void named_in_bytes(graphi_graph *g) { graphi_parameter(g, "a\xff", GRAPHI_F32, 0, NULL, NULL); }
static void started_turned(graphi_graph *g) { started(g, GRAPHI_INIT_UNIFORM, 1, -1); }
static void started_too_wide(graphi_graph *g) { started(g, GRAPHI_INIT_UNIFORM, -3e38, 3e38); }
static void started_nearer_than_0(graphi_graph *g) { started(g, GRAPHI_INIT_NORMAL, 0, -1); }
static void started_endless(graphi_graph *g) { started(g, GRAPHI_INIT_NORMAL, INFINITY, 1); }
static void started_at_log_0(graphi_graph *g) { started(g, GRAPHI_INIT_LOG_UNIFORM, 0, 1); }
static void started_below_log_0(graphi_graph *g) { started(g, GRAPHI_INIT_LOG_UNIFORM, -2, -1); }
static void no_output(graphi_graph *g) { graphi_output(g, "y", 7); }
static void no_output_name(graphi_graph *g) { graphi_output(g, "", scalar(g)); }
static void few_inputs(graphi_graph *g) { graphi_op(g, "add", 1, (graphi_value[]){scalar(g)}, 0, NULL); }
static void no_inputs(graphi_graph *g) { graphi_op(g, "add", 2, NULL, 0, NULL); }
static void attribute_twice(graphi_graph *g)
{
    const graphi_attribute one = {.name = "trans_a", .type = GRAPHI_INT}, both[] = {one, one};
    graphi_op(g, "matmul", 2, (graphi_value[]){rows(g), weights(g)}, 2, both);
}
static void attribute_without_data(graphi_graph *g)
{
    const graphi_attribute dims = {.name = "dims", .type = GRAPHI_INTS, .count = 2};
    graphi_value x = rows(g);
    graphi_op(g, "sum_to", 1, &x, 1, &dims);
}
static void axis_twice(graphi_graph *g) { graphi_reduce_sum(g, rows(g), (int64_t[]){1, 1}, 2, 0); }
static void range(graphi_graph *g, double a, double b) { graphi_random_uniform(g, (int64_t[]){2}, 1, a, b); }
static void range_turned(graphi_graph *g) { range(g, 1, -1); }
static void range_endless(graphi_graph *g) { range(g, -3e38, 3e38); }
static void range_of_nothing(graphi_graph *g) { range(g, NAN, 1); }
/* Sums and products of sizes beyond 63 bits, which would come out small. */
static void many_groups(graphi_graph *g)
{
    graphi_value dy = graphi_input(g, "dy", GRAPHI_F32, 4, (int64_t[]){1, 4, 4, 2});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){1, 1, 2, 2}, NULL);
    graphi_conv2d_backward_data(g, dy, w, NULL, 0, NULL, 0, NULL, 0, INT64_MAX, GRAPHI_LIST(4, 4));
}
/* Images or weights as other frameworks lay them out; at the end a number of channels that fits in neither way. */
static void convolve(graphi_graph *g, const int64_t *x, const int64_t *w)
{
    graphi_value image = graphi_input(g, "x", GRAPHI_F32, 4, x);
    graphi_conv2d(g, image, graphi_parameter(g, "w", GRAPHI_F32, 4, w, NULL), NULL, 0, NULL, 0, NULL, 0, 1);
}
static void channels_first(graphi_graph *g) { convolve(g, (int64_t[]){2, 3, 8, 6}, (int64_t[]){3, 3, 3, 16}); }
static void all_channels_first(graphi_graph *g) { convolve(g, (int64_t[]){2, 3, 8, 6}, (int64_t[]){16, 3, 5, 5}); }
static void weights_first(graphi_graph *g) { convolve(g, (int64_t[]){2, 8, 6, 3}, (int64_t[]){16, 3, 5, 5}); }
static void other_channels(graphi_graph *g) { convolve(g, (int64_t[]){2, 8, 6, 4}, (int64_t[]){3, 3, 3, 16}); }
static void tall_image(graphi_graph *g)
{
    graphi_value dy = graphi_input(g, "dy", GRAPHI_F32, 4, (int64_t[]){1, 4, 4, 2});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, 2, 2}, NULL);
    graphi_conv2d_backward_data(g, dy, w, NULL, 0, GRAPHI_LIST(1, 1, 1, 1), NULL, 0, 1, GRAPHI_LIST(INT64_MAX, 4));
}
static void tall_pooled_image(graphi_graph *g)
{
    graphi_value dy = graphi_input(g, "dy", GRAPHI_F32, 4, (int64_t[]){1, 4, 4, 2});
    graphi_avg_pool_grad(g, dy, GRAPHI_LIST(3, 3), GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), 0, 0,
                         GRAPHI_LIST(INT64_MAX, 4));
}
static void long_parts(graphi_graph *g)
{
    graphi_split(g, rows(g), 1, GRAPHI_LIST(INT64_MAX, INT64_MAX, 2 + COLUMNS), 3);
}
static void long_whole(graphi_graph *g)
{
    enum { PARTS = (1 << 19) + 1 };
    graphi_value *part = malloc(PARTS * sizeof *part), x = graphi_input(g, "x", GRAPHI_U8, 1, (int64_t[]){1ll << 44});
    for (int i = 0; i < PARTS; i++)
        part[i] = x;
    graphi_concat(g, PARTS, part, 0);
    free(part);
}
/* A size that follows a symbol is no 1 that repeats, whatever the symbol's bound. */
static graphi_value single(graphi_graph *g, int rank)
{
    return graphi_input(g, "one", GRAPHI_F32, rank, (int64_t[]){graphi_symbol(g, "single", 1), COLUMNS});
}
static void single_with_five(graphi_graph *g)
{
    graphi_add(g, single(g, 2), graphi_input(g, "y", GRAPHI_F32, 2, (int64_t[]){5, COLUMNS}));
}
static void single_with_rows(graphi_graph *g) { graphi_mul(g, rows(g), single(g, 2)); }
static void rows_with_single(graphi_graph *g) { graphi_mul(g, single(g, 2), rows(g)); }
static void bounded_loss(graphi_graph *g)
{
    graphi_value x = single(g, 1), gradient;
    graphi_gradients(g, graphi_square(g, x), 1, &x, &gradient);
}
static void plain_assign(graphi_graph *g)
{
    const graphi_value in[] = {weights(g), graphi_neg(g, graphi_find(g, "w"))};
    graphi_op(g, "assign", 2, in, 0, NULL);
}
static void no_loss(graphi_graph *g) { graphi_gradients(g, 99, 0, NULL, NULL); }
static void many_losses(graphi_graph *g)
{
    graphi_value x = rows(g), gradient;
    graphi_gradients(g, x, 1, &x, &gradient);
}
static void unknown_optimizer(graphi_graph *g)
{
    graphi_minimize(g, loss_of(g), &(graphi_optimizer){.kind = (graphi_optimizer_kind)9});
}
static void gradients_of_none(graphi_graph *g) { graphi_gradients(g, loss_of(g), -1, NULL, NULL); }
static void no_optimizer(graphi_graph *g) { graphi_minimize(g, loss_of(g), NULL); }
static void no_rate(graphi_graph *g)
{
    graphi_minimize(g, loss_of(g), &(graphi_optimizer){.kind = GRAPHI_SGD, .learning_rate = 99});
}
static void rate_of_many(graphi_graph *g)
{
    graphi_value loss = loss_of(g);
    graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_SGD, .learning_rate = graphi_find(g, "x")});
}
/* The first value is what a forgotten field names: of another type, or what is trained, it is no rate. */
static void forgotten_rate(graphi_graph *g)
{
    graphi_value x = rows(g), loss = graphi_reduce_sum(g, graphi_mul(g, x, scalar(g)), NULL, 0, 0);
    graphi_minimize(g, loss, &(graphi_optimizer){.kind = GRAPHI_SGD});
}
static void trained_rate(graphi_graph *g)
{
    graphi_value weight = graphi_parameter(g, "scale", GRAPHI_F32, 0, NULL, NULL);
    graphi_minimize(g, graphi_mul(g, weight, weight), &(graphi_optimizer){.kind = GRAPHI_ADAM});
}
/* What the first one keeps has names that were told as taken. */
static void minimized_twice(graphi_graph *g)
{
    graphi_value loss = loss_of(g);
    const graphi_optimizer adam = {.kind = GRAPHI_ADAM, .learning_rate = scalar(g)};
    graphi_minimize(g, loss, &adam);
    graphi_minimize(g, loss, &adam);
}
static void nothing_to_train(graphi_graph *g)
{
    graphi_minimize(g, graphi_reduce_sum(g, rows(g), NULL, 0, 0),
                    &(graphi_optimizer){.kind = GRAPHI_SGD, .learning_rate = scalar(g)});
}

static graphi_graph *body(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_output(g, "y", graphi_tanh(g, graphi_input(g, "x", GRAPHI_F32, 0, NULL)));
    return g;
}
/* Both calls destroyed it. */
static void body_twice(graphi_graph *g)
{
    graphi_graph *once = body();
    graphi_value x = scalar(g);
    x = graphi_region(g, once, 1, &x);
    graphi_region(g, once, 1, &x);
}
static void body_of_itself(graphi_graph *g)
{
    graphi_value x = scalar(g);
    graphi_region(g, g, 1, &x);
}
/* What it gives would be the next value, which is another's. */
static void body_without_outputs(graphi_graph *g)
{
    graphi_graph *empty;
    graphi_value x = scalar(g);
    check_ok(graphi_graph_create(&empty));
    graphi_tanh(empty, graphi_input(empty, "x", GRAPHI_F32, 0, NULL));
    graphi_region(g, empty, 1, &x);
}
/* A body over two bounded inputs, and a value that follows another symbol if `drawn`. */
static graphi_graph *bounded_body(bool drawn)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    int64_t dims[] = {graphi_symbol(g, "rows", ROWS), COLUMNS};
    graphi_value a = graphi_input(g, "a", GRAPHI_F32, 2, dims), b = graphi_input(g, "b", GRAPHI_F32, 2, dims);
    graphi_output(g, "y", graphi_add(g, a, b));
    graphi_symbol(g, "others", ROWS);
    graphi_attribute like[] = {graphi_ints("dims", (int64_t[]){ROWS, 2}, 2), graphi_int("symbol", 1)};
    if (drawn)
        graphi_output(g, "z", graphi_op(g, "random_uniform", 0, NULL, 2, like));
    return g;
}
static void other_rows(graphi_graph *g, const char *name, bool drawn)
{
    graphi_value x[] = {rows(g), GRAPHI_NONE};
    x[1] = graphi_input(g, "z", GRAPHI_F32, 2, (int64_t[]){graphi_symbol(g, name, ROWS), COLUMNS});
    graphi_region(g, bounded_body(drawn), 2, x);
}
static void two_symbols_for_one(graphi_graph *g) { other_rows(g, "words", false); }
static void free_symbol(graphi_graph *g) { other_rows(g, "batch", true); }
static void odd_optimizer(graphi_graph *g, graphi_optimizer optimizer)
{
    optimizer.learning_rate = scalar(g);
    graphi_minimize(g, loss_of(g), &optimizer);
}
static void odd_beta(graphi_graph *g) { odd_optimizer(g, (graphi_optimizer){.kind = GRAPHI_ADAM, .beta1 = 2}); }
static void rounded_beta(graphi_graph *g)
{
    odd_optimizer(g, (graphi_optimizer){.kind = GRAPHI_ADAM, .beta2 = 0.99999999});
}
static void odd_decay(graphi_graph *g) { odd_optimizer(g, (graphi_optimizer){.weight_decay = NAN}); }

static const struct mistake {
    void (*make)(graphi_graph *g);
    const char *message;
} mistakes[] = {
    {no_symbol_name, "expected a name and a bound of at least 1"},
    {no_bound, "found name 'batch' and bound 0"},
    {no_type, "found element type 99, expected a graphi_dtype"},
    {no_dims, "found rank 2, expected 0 to 8 and as many dimensions"},
    {high_rank, "found rank 9"},
    {no_name, "found an empty name, expected a unique one"},
    {bounded_parameter, "parameter 'w': found a symbol as dimension 0, expected a fixed size"},
    {bounded_constant, "constant: found a symbol as dimension 0, expected a fixed size"},
    {no_data, "found no data, expected 16 bytes"},
    {no_initializer, "found initializer 99 of 'w', expected a graphi_init_kind"},
    {started_at_nothing, "found a nan and b 0 of the initializer of 'w', expected a number as a"},
    {named_as_metadata, "found the name '__metadata__', expected one that safetensors files allow"},
    {named_in_bytes, "found name 'a\xff', expected UTF-8"},
    {unknown_optimizer, "found optimizer 9, expected a graphi_optimizer_kind"},
    {gradients_of_none, "found -1 values, expected 0 or more"},
    {started_turned, "found a 1 and b -1 of the initializer of 'w', expected a at most b"},
    {started_too_wide, "found a -3e+38 and b 3e+38 of the initializer of 'w', expected a at most b, and finite they"},
    {started_nearer_than_0, "found a 0 and b -1 of the initializer of 'w', expected a finite a, and a finite b of 0"},
    {started_endless, "found a inf and b 1 of the initializer of 'w', expected a finite a"},
    {started_at_log_0, "found a 0 and b 1 of the initializer of 'w', expected a above 0 and at most b"},
    {started_below_log_0, "found a -2 and b -1 of the initializer of 'w', expected a above 0 and at most b"},
    {no_output, "output 'y': found value 7, expected a value of this graph"},
    {no_output_name, "found an empty name, expected a unique one"},
    {few_inputs, "found 1 inputs, expected"},
    {no_inputs, "found 2 inputs and 0 attributes without their arrays, expected arrays"},
    {attribute_twice, "found attribute 'trans_a' twice, expected it once"},
    {attribute_without_data, "found no integers in attribute 'dims', expected 2"},
    {axis_twice, "found axis 1, expected each at most once and within rank 2"},
    {range_turned, "found a 1 and b -1, expected a at most b"},
    {range_endless, "found a -3e+38 and b 3e+38, expected a at most b, and finite they and b - a"},
    {range_of_nothing, "found a nan and b 1, expected a at most b"},
    {many_groups, "found 9223372036854775807 groups of 2 channels, expected fewer"},
    {channels_first, "found N,C,H,W [2,3,8,6] as input 0 (channels first), expected N,H,W,C [2,8,6,3]"},
    {all_channels_first, "found N,C,H,W [2,3,8,6] as input 0 (channels first), expected N,H,W,C [2,8,6,3]"},
    {weights_first,
     "found K,C/groups,KH,KW [16,3,5,5] as input 1 (channels first), expected KH,KW,C/groups,K [5,5,3,16]"},
    {other_channels, "found weights for 3 channels a group, expected 4"},
    {tall_image, "found images of 9223372036854775807x4, expected at most 2^44 each"},
    {tall_pooled_image, "found an image of 9223372036854775807x4, expected at most 2^44 each"},
    {long_parts, "found sizes beyond 2^63 in all, expected 3, the size of axis 1"},
    {long_whole, "found sizes beyond 2^63 along axis 0, expected a sum below it"},
    {single_with_five, "found float32[<=1,3] with float32[5,3], expected shapes that broadcast"},
    {single_with_rows, "found float32[<=4,3] with float32[<=1,3], expected shapes that broadcast"},
    {rows_with_single, "found float32[<=1,3] with float32[<=4,3], expected shapes that broadcast"},
    {bounded_loss, "found a loss of type float32[<=1], expected one float32"},
    {plain_assign, "assign: found it as an operation, expected graphi_assign"},
    {no_loss, "found value 99 as loss, expected a value of this graph"},
    {many_losses, "expected one float32"},
    {no_optimizer, "found no optimizer, expected a graphi_optimizer"},
    {no_rate, "found value 99 as learning rate, expected a value of this graph"},
    {rate_of_many, "found a learning rate of type float32[<=4,3], expected float32[]"},
    {forgotten_rate,
     "found a learning rate of type float32[<=4,3] (value 0, the graph's first, as where none is given)"},
    {minimized_twice, "found 'w', which graphi_minimize or graphi_assign updates already, expected none of these"},
    {trained_rate, "found the trained parameter 'scale' as learning rate (value 0,"},
    {body_twice, "found a body that is a region already, expected a graph of its own"},
    {body_of_itself, "found a body that is the graph itself, expected a graph of its own"},
    {body_without_outputs, "call (node 0): found 0 outputs, expected 1 to 65536"},
    {two_symbols_for_one, "found input 1 that follows 'words', expected 'batch' as before for the region's 'rows'"},
    {free_symbol, "found a result in the region that follows 'others', expected a symbol of one of its inputs"},
    {odd_beta, "found 2, expected momentum and betas from 0 to below 1, the other numbers 0 or more"},
    {rounded_beta, "found 1, expected momentum and betas from 0 to below 1"},
    {odd_decay, "found nan, expected momentum"},
    {nothing_to_train, "found no trainable parameter that the loss depends on, expected one"},
};

/* The first mistake is kept: whatever is added afterwards is ignored, and a plan tells it. */
static void graphs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        graphi_graph *g;
        graphi_plan *plan = NULL;
        check_ok(graphi_graph_create(&g));
        mistakes[i].make(g);
        if (graphi_graph_status(g) != GRAPHI_INVALID || !strstr(graphi_message(), mistakes[i].message))
            fail_msg("found '%s', expected '%s'", graphi_message(), mistakes[i].message);
        assert_int_equal(graphi_input(g, "later", GRAPHI_F32, 0, NULL), GRAPHI_NONE);
        assert_int_equal(graphi_plan_create(g, machine, NULL, &plan), GRAPHI_INVALID);
        if (plan || !strstr(graphi_message(), mistakes[i].message))
            fail_msg("a plan says '%s', expected '%s'", graphi_message(), mistakes[i].message);
        graphi_graph_destroy(g);
    }
}

/* A graph called by its own body could never be inlined, and each destroyed the other; what a body gets after its call
 * the call knows nothing of. */
static void regions_are_closed(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        graphi_graph *g, *inner = body();
        graphi_plan *plan;
        check_ok(graphi_graph_create(&g));
        graphi_value x = scalar(g), y = graphi_region(g, inner, 1, &x);
        x = graphi_find(inner, "x");
        if (late)
            graphi_output(inner, "late", x);
        else
            assert_int_equal(graphi_region(inner, g, 1, &x), GRAPHI_NONE);
        assert_int_equal(graphi_graph_status(inner), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), "found a region of another graph, expected one that is being built"));
        graphi_output(g, "y", y);
        assert_int_equal(graphi_plan_create(g, machine, NULL, &plan), GRAPHI_INVALID); /* a mistake in it counts */
        graphi_graph_destroy(g);
    }
}

/* --- plans, states and runs --- */

/* A call that fails, at its line, and what it says. */
#define refused(call, code, words)                                                                                     \
    do {                                                                                                               \
        assert_int_equal(call, code);                                                                                  \
        if (!strstr(graphi_message(), words))                                                                          \
            fail_msg("found '%s', expected '%s'", graphi_message(), words);                                            \
    } while (0)

static graphi_graph *network(const char *parameter, int64_t columns)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value w = graphi_parameter(g, parameter, GRAPHI_F32, 2, (int64_t[]){COLUMNS, columns}, NULL);
    graphi_output(g, "y", graphi_matmul(g, rows(g), w, 0, 0));
    return g;
}

static void plans(void **state)
{
    (void)state;
    static const struct {
        graphi_plan_options options;
        graphi_status status;
        const char *message;
    } cases[] = {
        {{.isa = "mmx"}, GRAPHI_USAGE, "found instruction set 'mmx', expected plain, avx2, avx512 or bf16"},
        {{.streaming = (graphi_streaming)9}, GRAPHI_INVALID, "found 9 as streaming"},
        {{.precision = GRAPHI_I32}, GRAPHI_INVALID, "found int32 as precision, expected float32 or bfloat16"},
        {{.precision = (graphi_dtype)1000000}, GRAPHI_INVALID, "found no element type as precision"},
        {{.conv_error = NAN}, GRAPHI_INVALID, "found nan as conv_error, expected 0 or 1 to 1e6"},
        {{.conv_error = 0.5}, GRAPHI_INVALID, "found 0.5 as conv_error"},
        {{.conv_error = 2e6}, GRAPHI_INVALID, "found 2e+06 as conv_error"},
        {{.arena_target = -1}, GRAPHI_INVALID, "found -1 as arena_target, expected 0 or more bytes"},
        {{.outputs = "y, z"}, GRAPHI_INVALID, "found 'z', expected outputs of the graph: one of y"},
        {{.outputs = ""}, GRAPHI_INVALID, "found '', expected outputs of the graph"}, /* nothing would be computed */
        {{.outputs = " , "}, GRAPHI_INVALID, "found ' , ', expected outputs"},
        {{.disable = "nothing"}, GRAPHI_USAGE, "found 'nothing', expected all, none, dead, norm,"},
        {{.setting = {.executors = 1000, .width = 1000}}, GRAPHI_USAGE, "found 1000 executors x 1000 threads"},
    };
    graphi_graph *g = network("w", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_plan *plan = NULL;
        refused(graphi_plan_create(g, machine, &cases[i].options, &plan), cases[i].status, cases[i].message);
        assert_null(plan);
    }
    graphi_graph_destroy(g);
}

/* Passes could be listed with blanks, outputs could not. */
static void blanks_in_lists(void **state)
{
    (void)state;
    graphi_graph *g = network("w", 2);
    const graphi_plan_options spaced = {.outputs = " y , a z", .disable = "fusion, cse"};
    graphi_plan *plan;
    graphi_output(g, "a z", graphi_tanh(g, graphi_find(g, "y")));
    check_ok(graphi_plan_create(g, machine, &spaced, &plan));
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A program without a folder for its files passes none. */
static void no_paths(void **state)
{
    (void)state;
    graphi_graph *g = network("w", 2);
    graphi_plan *plan, *loaded = NULL;
    graphi_machine *described = NULL;
    graphi_data *data = NULL;
    graphi_curves *curves = NULL;
    graphi_state *values;
    graphi_run *run;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    refused(graphi_plan_save(plan, NULL), GRAPHI_INVALID, "found no path, expected one");
    refused(graphi_plan_load(g, machine, NULL, NULL, &loaded), GRAPHI_INVALID, "found no path, expected one");
    refused(graphi_machine_save(machine, NULL), GRAPHI_INVALID, "found no path, expected one");
    refused(graphi_machine_load(NULL, 0, &described), GRAPHI_INVALID, "found no path, expected one");
    refused(graphi_data_open(NULL, NULL, &data), GRAPHI_INVALID, "found no path, expected one");
    refused(graphi_curves_renew(machine, NULL, &curves), GRAPHI_INVALID, "found no path, expected one");
    assert_true(!loaded && !described && !data && !curves);
    check_ok(graphi_state_create(g, 1, &values));
    check_ok(graphi_run_create(plan, values, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, (float[ROWS * COLUMNS]){1}, sizeof(float[ROWS * COLUMNS])));
    check_ok(graphi_run_trace(run, true));
    check_ok(graphi_run_execute(run));
    refused(graphi_run_write_timeline(run, NULL), GRAPHI_INVALID, "found no path, expected one");
    graphi_run_destroy(run);
    graphi_state_destroy(values);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A state of another network has other names or sizes: a run on it would read beyond its parameters. */
static void states(void **state)
{
    (void)state;
    graphi_graph *g = network("w", 2), *other[] = {network("v", 2), network("w", 5)};
    static const char *const messages[] = {"parameter 'w': found no such parameter in the state",
                                           "found float32[3,5] in the state, expected float32[3,2]"};
    static const char *const known[] = {"parameter 'u': found no such parameter in the state, expected one of v",
                                        "parameter 'u': found no such parameter in the state, expected one of w"};
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    for (int i = 0; i < 2; i++) {
        graphi_state *values;
        graphi_run *run = NULL;
        float w[3 * 5], before[3 * 5];
        const size_t bytes = i ? sizeof w : 3 * 2 * sizeof *w;
        const char *name = i ? "w" : "v";
        check_ok(graphi_state_create(other[i], 1, &values));
        refused(graphi_run_create(plan, values, &run), GRAPHI_INVALID, messages[i]);
        assert_null(run);
        check_ok(graphi_state_get(values, name, before, bytes));
        refused(graphi_state_get(values, "u", w, bytes), GRAPHI_INVALID, known[i]);
        refused(graphi_state_get(values, name, w, bytes - 4), GRAPHI_INVALID, "bytes, expected");
        refused(graphi_state_set(values, "u", w, bytes), GRAPHI_INVALID, known[i]);
        refused(graphi_state_set(values, NULL, w, bytes), GRAPHI_INVALID, "parameter '': found no such parameter");
        refused(graphi_state_set(values, name, NULL, bytes), GRAPHI_INVALID, "found NULL as data, expected");
        refused(graphi_state_get(values, name, NULL, bytes), GRAPHI_INVALID, "found NULL as data, expected");
        refused(graphi_state_save(values, "strings", 1, NULL, NULL), GRAPHI_INVALID, "found no text as string 0");
        refused(graphi_state_set(values, name, w, bytes + 4), GRAPHI_INVALID, "bytes, expected");
        check_ok(graphi_state_get(values, name, w, bytes));
        assert_memory_equal(w, before, bytes);
        graphi_state_destroy(values);
        graphi_graph_destroy(other[i]);
    }
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A network has thousands of names, a message has not the room. */
static void some_names_are_told(void **state)
{
    (void)state;
    static const struct {
        int count;
        size_t length; /* of the first; the others have four letters */
        const char *told;
    } cases[] = {{0, 0, "expected none"},
                 {2, 4, "expected one of p000, p001"},
                 {1000, 4, "expected one of p000, p001, p002, "},
                 {1000, 4, ", p058, 941 more"},
                 {1, 380, "expected one of 1"},
                 {3, 380, "expected one of p001, p002, 1 more"},
                 {3, 340, "p001, p002, pppp"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *g;
        graphi_state *values;
        check_ok(graphi_graph_create(&g));
        for (int k = 0; k < cases[i].count; k++) {
            char name[400];
            snprintf(name, sizeof name, "p%03d", k);
            if (!k && cases[i].length > 4) {
                memset(name, 'p', cases[i].length);
                name[cases[i].length] = 0;
            }
            graphi_parameter(g, name, GRAPHI_F32, 0, NULL, NULL);
        }
        check_ok(graphi_state_create(g, 1, &values));
        refused(graphi_state_set(values, "u", &(float){1}, sizeof(float)), GRAPHI_INVALID, cases[i].told);
        assert_true(strlen(graphi_message()) < 500);
        graphi_state_destroy(values);
        graphi_graph_destroy(g);
    }
}

static void runs(void **state)
{
    (void)state;
    const float x[ROWS * COLUMNS] = {1};
    float y[ROWS * 2];
    graphi_graph *g = network("w", 2);
    graphi_plan *plan, *another;
    graphi_state *values;
    graphi_run *run, *beside = NULL;
    graphi_trace_summary summary;
    graphi_trace_operation operation;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_plan_create(g, machine, NULL, &another));
    check_ok(graphi_state_create(g, 1, &values));
    check_ok(graphi_run_create(plan, values, &run));
    refused(graphi_run_execute(run), GRAPHI_INVALID, "input 'x': found no data, expected it to be set");
    refused(graphi_run_get(run, "y", GRAPHI_F32, y, sizeof y), GRAPHI_INVALID, "found no execution yet, expected one");
    refused(graphi_run_trace_summary(run, &summary), GRAPHI_INVALID, "found no traced execution");
    refused(graphi_run_trace_operation(run, 0, &operation), GRAPHI_INVALID, "found no traced execution");
    refused(graphi_run_set(run, "z", GRAPHI_F32, x, sizeof x), GRAPHI_INVALID,
            "input 'z': found no such input, expected one of x");
    refused(graphi_run_set(run, "x", GRAPHI_I32, x, sizeof x), GRAPHI_INVALID,
            "input 'x': found int32, expected float32");
    refused(graphi_run_set(run, "x", (graphi_dtype)99, x, sizeof x), GRAPHI_INVALID, "found no element type, expected");
    refused(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x - 4), GRAPHI_INVALID, "found 44 bytes, expected 48");
    refused(graphi_run_set(run, NULL, GRAPHI_F32, x, sizeof x), GRAPHI_INVALID, "input '': found no such input");
    refused(graphi_run_set(run, "x", GRAPHI_F32, NULL, sizeof x), GRAPHI_INVALID,
            "found NULL as data, expected 48 bytes");
    refused(graphi_run_set_symbol(run, NULL, 1), GRAPHI_INVALID, "symbol '': found no such symbol");
    refused(graphi_run_set_symbol(run, "batch", ROWS + 1), GRAPHI_INVALID, "found size 5, expected 1 to 4");
    refused(graphi_run_set_symbol(run, "batch", 0), GRAPHI_INVALID, "found size 0, expected 1 to 4");
    check_ok(graphi_run_set_symbol(run, "batch", 1));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x / ROWS));
    check_ok(graphi_run_set_symbol(run, "batch", ROWS));
    refused(graphi_run_execute(run), GRAPHI_INVALID, "found 12 bytes, set before a size grew, expected 48");
    refused(graphi_run_set_symbol(run, "time", 1), GRAPHI_INVALID, "found no such symbol, expected one of batch");
    refused(graphi_run_beside(run, another, &beside), GRAPHI_INVALID, "found a plan of other compiled operations");
    assert_null(beside);
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    refused(graphi_run_get(run, "x", GRAPHI_F32, y, sizeof y), GRAPHI_INVALID,
            "output 'x': found no such output, expected one of y");
    refused(graphi_run_get(run, "y", GRAPHI_BF16, y, sizeof y), GRAPHI_INVALID,
            "output 'y': found bfloat16, expected float32");
    refused(graphi_run_get(run, "y", GRAPHI_F32, y, sizeof y + 4), GRAPHI_INVALID, "found 36 bytes, expected 32");
    refused(graphi_run_get(run, "y", GRAPHI_F32, NULL, sizeof y), GRAPHI_INVALID,
            "found NULL as data, expected 32 bytes");
    refused(graphi_run_get(run, NULL, GRAPHI_F32, y, sizeof y), GRAPHI_INVALID, "output '': found no such output");
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, sizeof y));
    graphi_run_destroy(run);
    graphi_state_destroy(values);
    graphi_plan_destroy(another);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A size below 0 became the network's own in silence, a name that is not there crashed. */
static void names_and_sizes(void **state)
{
    static const struct {
        graphi_model_options options;
        const char *message;
    } cases[] = {{{.batch = -3}, "batch: found -3, expected at least 1"},
                 {{.steps = -1}, "steps: found -1, expected at least 1"},
                 {{.units = INT64_MIN}, "units: found -9223372036854775808, expected at least 1"},
                 {{.classes = -2}, "classes: found -2"},
                 {{.image = -2}, "image: found -2"},
                 {{.vocabulary = -2}, "vocabulary: found -2"}};
    graphi_graph *g = NULL;
    graphi_schedule schedule;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(graphi_model_create("lstm", &cases[i].options, &g), GRAPHI_INVALID, cases[i].message);
    refused(graphi_model_create(NULL, NULL, &g), GRAPHI_INVALID, "found '', expected one of lstm");
    assert_null(g);
    refused(graphi_schedule_parse(NULL, 1, 1, &schedule), GRAPHI_INVALID, "expected");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs),
        cmocka_unit_test(regions_are_closed),
        cmocka_unit_test(plans),
        cmocka_unit_test(blanks_in_lists),
        cmocka_unit_test(no_paths),
        cmocka_unit_test(states),
        cmocka_unit_test(some_names_are_told),
        cmocka_unit_test(runs),
        cmocka_unit_test(names_and_sizes),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
