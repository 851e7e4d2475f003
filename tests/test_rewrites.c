/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites that must not happen, or only so: graphs that random ones seldom are, each of which a likely mistake of one
 * pass makes another graph of; and edges that must outlive them. */
#include "rewritten.h"

#include <stdio.h>

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    return g;
}

/* The graph after its passes (NULL: the usual ones), which must keep its results; both go, and `kind` is counted in
 * what they left. */
static int left_of(graphi_graph *g, const char *disable, const char *kind)
{
    graphi_graph *copy;
    struct pass_options options = {.isa = ISA_PLAIN, .disable = disable};
    assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
    if (passes_run(copy, &options) != GRAPHI_OK || graph_check(copy) != GRAPHI_OK)
        fail_msg("%s: %s", kind, graphi_message());
    same_results(g, copy, 1e-5, kind);
    int count = count_kind(copy, kind);
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
    return count;
}

/* x, of 2 by 3 numbers, within `value`: so many rows or columns before and after. */
static graphi_value within(graphi_graph *g, int i, int64_t above, int64_t left, int64_t below, int64_t right,
                           double value)
{
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    const graphi_value x = graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){2, 3});
    return graphi_pad(g, x, GRAPHI_LIST(above, left), GRAPHI_LIST(below, right), value);
}

/* Parts that lie beside each other are a concatenation, in whatever order they are added; a gap, two at one place,
 * another border than zeros, parts along two axes and a further term are none. */
static void borders_of_zeros_are_places(void **state)
{
    static const struct {
        int64_t left[3], right[3], above;
        double value;
        int more, concats; /* more: 1: a term without zeros, 2: one at the place of another */
    } cases[] = {{{0, 3, 6}, {6, 3, 0}, 0, 0, 0, 1}, {{6, 0, 3}, {0, 6, 3}, 0, 0, 0, 1},
                 {{0, 6, 6}, {6, 0, 0}, 0, 0, 0, 0}, {{0, 0, 3}, {6, 6, 3}, 0, 0, 0, 0},
                 {{0, 3, 6}, {6, 3, 0}, 0, 1, 0, 0}, {{0, 3, 6}, {6, 3, 0}, 1, 0, 0, 0},
                 {{0, 3, 6}, {6, 3, 0}, 0, 0, 1, 0}, {{0, 2, 6}, {6, 4, 0}, 0, 0, 0, 0},
                 {{0, 3, 6}, {6, 3, 0}, 0, 0, 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *g = new_graph();
        graphi_value term[4];
        for (int k = 0; k < 3; k++)
            term[k] = within(g, k, cases[i].above, cases[i].left[k], 0, cases[i].right[k], cases[i].value);
        term[3] = cases[i].more == 2
                      ? within(g, 3, 0, 3, 0, 3, 0)
                      : graphi_input(g, "more", GRAPHI_F32, 2, (int64_t[]){2 + cases[i].above, 9});
        graphi_output(g, "sum", graphi_op(g, "add_n", 3 + (cases[i].more > 0), term, 0, NULL));
        assert_int_equal(graphi_graph_status(g), GRAPHI_OK);
        assert_int_equal(left_of(g, "all,+identities,+dead", "concat"), cases[i].concats);
    }
}

/* One part is what a parameter has, the other follows from what it has then: put together they would wait for each
 * other. */
static void parts_of_parameters_stay(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){2, 3}, NULL);
    graphi_value old = graphi_pad(g, p, GRAPHI_LIST(0, 0), GRAPHI_LIST(0, 3), 0);
    graphi_value set = graphi_assign(g, p, OP("add", p, number(g, 1)));
    graphi_value new = graphi_pad(g, OP("neg", set), GRAPHI_LIST(0, 3), GRAPHI_LIST(0, 0), 0);
    graphi_output(g, "sum", OP("add", old, new));
    assert_int_equal(left_of(g, "all,+identities,+dead", "concat"), 0);
}

/* The gradient of four gates that were cut from one product is put together by no sums. */
static void gradients_of_gates_are_not_summed(void **state)
{
    for (int gates = 2; gates <= 4; gates += 2) {
        graphi_graph *g = new_graph();
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){3, 4 * gates}, NULL), loss = GRAPHI_NONE;
        graphi_value all = graphi_matmul(g, graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){2, 3}), w, 0, 0), gradient;
        for (int i = gates - 1; i >= 0; i--) {
            graphi_value part = graphi_reduce_sum(g, OP("tanh", graphi_slice(g, all, 1, 4 * i, 4 * i + 4)), NULL, 0, 0);
            loss = loss == GRAPHI_NONE ? part : OP("add", loss, OP("mul", part, loss));
        }
        assert_int_equal(graphi_gradients(g, loss, 1, &w, &gradient), GRAPHI_OK);
        graphi_output(g, "gradient", gradient);
        assert_int_equal(left_of(g, NULL, "pad"), 0);
    }
}

/* Made once for all steps, or once for two, noise is none. */
static void random_operations_stay(void **state)
{
    float data[64];
    graphi_graph *g = new_graph();
    for (int i = 0; i < 64; i++)
        data[i] = (float)i;
    graphi_value x = graphi_constant(g, GRAPHI_F32, 1, (int64_t[]){64}, data);
    graphi_output(g, "one", graphi_dropout(g, x, 0.5));
    graphi_output(g, "other", graphi_dropout(g, x, 0.5));
    assert_int_equal(left_of(g, NULL, "dropout"), 2);
}

/* The same bytes under another shape are no common subexpression, neither given nor folded; nor are those of another
 * type. */
static void constants_keep_their_shape(void **state)
{
    static const int64_t dims[2][2] = {{2, 3}, {3, 2}};
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    graphi_graph *g = new_graph();
    for (int i = 0; i < 2; i++) {
        graphi_value x = graphi_input(g, i ? "x1" : "x0", GRAPHI_F32, 2, dims[i]);
        graphi_value w = graphi_constant(g, GRAPHI_F32, 2, dims[!i], data);
        graphi_output(g, i ? "y1" : "y0", OP("matmul", x, w));
        graphi_output(g, i ? "z1" : "z0", OP("matmul", x, OP("square", w)));
    }
    assert_int_equal(left_of(g, NULL, "matmul"), 4);
}

static void constants_keep_their_type(void **state)
{
    static const int64_t two = 2;
    static const float zeros[2];
    static const int32_t ids[2];
    graphi_graph *g = new_graph();
    graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){3, 2}, NULL);
    graphi_value offset =
        OP("max", graphi_input(g, "x", GRAPHI_F32, 1, &two), graphi_constant(g, GRAPHI_F32, 1, &two, zeros));
    graphi_output(g, "y", OP("mul", OP("embedding", table, graphi_constant(g, GRAPHI_I32, 1, &two, ids)), offset));
    assert_int_equal(left_of(g, NULL, "embedding"), 1);
}

/* Permutations of three dimensions made one in the wrong order. */
static void transpositions_compose(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 3, (int64_t[]){3, 3, 3}); /* of one shape whatever the order */
    x = graphi_transpose(g, x, GRAPHI_LIST(1, 2, 0));
    graphi_output(g, "y", graphi_transpose(g, x, GRAPHI_LIST(0, 2, 1)));
    assert_int_equal(left_of(g, NULL, "transpose"), 1);
}

/* Who else reads where the maxima are would read it of another image. */
static void places_that_are_read_stay(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, 3});
    graphi_value k = graphi_parameter(g, "k", GRAPHI_F32, 4, (int64_t[]){1, 1, 3, 4}, NULL);
    graphi_value y = graphi_max_pool(g, OP("relu", OP("conv2d", x, k)), GRAPHI_LIST(2, 2), NULL, 0, NULL, 0, 0);
    graphi_value loss = graphi_reduce_sum_squares(g, y, NULL, 0, 0), slope;
    assert_int_equal(graphi_gradients(g, loss, 1, &k, &slope), GRAPHI_OK);
    graphi_output(g, "slope", slope);
    graphi_output(g, "unpooled",
                  graphi_max_pool_grad(g, y + 1, OP("tanh", y), GRAPHI_LIST(2, 2), NULL, 0, NULL, 0, 0,
                                       GRAPHI_LIST(6, 6)));
    assert_int_equal(left_of(g, "all,+pool", "max_pool_grad"), 2);
}

/* An epsilon that is not the usual one is that of the operation. */
static void normalization_keeps_its_epsilon(void **state)
{
    enum { CHANNELS = 3 };
    static const int64_t c = CHANNELS;
    static const float means[CHANNELS] = {0.5f, -1, 2}, vars[CHANNELS] = {1, 4, 0.25f};
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){5, CHANNELS});
    graphi_value scale = graphi_parameter(g, "scale", GRAPHI_F32, 1, &c, NULL);
    graphi_value bias = graphi_parameter(g, "bias", GRAPHI_F32, 1, &c, NULL);
    graphi_output(g, "y",
                  graphi_batch_norm_inference(g, x, scale, bias, graphi_constant(g, GRAPHI_F32, 1, &c, means),
                                              graphi_constant(g, GRAPHI_F32, 1, &c, vars), 0.5));
    assert_int_equal(left_of(g, "all,+norm", "batch_norm_inference"), 0);
}

/* Weights that are stored the other way round lie side by side along the other axis. */
static void transposed_weights_are_merged(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){4, 6});
    graphi_value v = graphi_parameter(g, "v", GRAPHI_F32, 2, (int64_t[]){5, 6}, NULL);
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){3, 6}, NULL);
    graphi_output(g, "y", graphi_matmul(g, x, v, 0, 1));
    graphi_output(g, "z", graphi_matmul(g, x, w, 0, 1));
    assert_int_equal(left_of(g, "all,+merge", "matmul"), 1);
}

/* --- edges that data flow does not show --- */

/* A node of its own, without a reader. */
static int32_t alone(graphi_graph *g, const char *kind)
{
    return graph_value(g, OP(kind, graphi_find(g, "x")))->node;
}

static graphi_graph *graph_of_x(void)
{
    graphi_graph *g = new_graph();
    graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){2});
    return g;
}

static bool follows(const graphi_graph *g, const char *then, const char *first)
{
    for (size_t i = 0; i < g->nodes.count; i++)
        for (int a = 0; is_kind(&g->nodes.data[i], then) && a < g->nodes.data[i].afters; a++)
            if (is_kind(graph_node(g, g->nodes.data[i].after[a]), first))
                return true;
    return false;
}

/* An update would not wait any more for who reads the old content, where the reader was made again twice; nor an update
 * that was made again for anybody. */
static void edges_go_to_who_takes_over(void **state)
{
    graphi_graph *g = graph_of_x();
    const int32_t reader = alone(g, "neg"), update = alone(g, "abs"), again = alone(g, "square"),
                  last = alone(g, "exp"), instead = alone(g, "sign");
    assert_int_equal(graph_after(g, reader, update), GRAPHI_OK);
    assert_int_equal(graph_supersede(g, reader, again), GRAPHI_OK);
    assert_int_equal(graph_supersede(g, again, last), GRAPHI_OK);
    assert_int_equal(graph_supersede(g, update, instead), GRAPHI_OK);
    assert_int_equal(graph_compact(g), GRAPHI_OK);
    assert_int_equal(g->nodes.count, 2);
    assert_true(follows(g, "sign", "exp"));
    graphi_graph_destroy(g);
}

/* Lists that grow by turns lie beside each other: one that outgrows its room writes over the other. */
static void lists_of_edges_grow_apart(void **state)
{
    enum { EDGES = 40 };
    graphi_graph *g = graph_of_x();
    int32_t first[EDGES], then[2];
    for (int i = 0; i < EDGES; i++)
        first[i] = alone(g, "neg");
    for (int i = 0; i < 2; i++)
        then[i] = alone(g, "abs");
    for (int i = 0; i < 2 * EDGES; i++)
        assert_int_equal(graph_after(g, first[i / 2], then[i % 2]), GRAPHI_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(graph_node(g, then[i])->afters, EDGES);
        assert_memory_equal(graph_node(g, then[i])->after, first, sizeof first);
    }
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_of_zeros_are_places),
        cmocka_unit_test(gradients_of_gates_are_not_summed),
        cmocka_unit_test(parts_of_parameters_stay),
        cmocka_unit_test(random_operations_stay),          cmocka_unit_test(constants_keep_their_shape),
        cmocka_unit_test(transpositions_compose),          cmocka_unit_test(places_that_are_read_stay),
        cmocka_unit_test(normalization_keeps_its_epsilon), cmocka_unit_test(transposed_weights_are_merged),
        cmocka_unit_test(constants_keep_their_type),       cmocka_unit_test(edges_go_to_who_takes_over),
        cmocka_unit_test(lists_of_edges_grow_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
