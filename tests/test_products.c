/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on products and convolutions: every form's gradient against differences, bounded rows, packing,
 * epilogues. */
#include "graphi/ops.h"
#include "kernels/program.h"
#include "passes/passes.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define INTS(text, ...)                                                                     \
    {.name = text, .type = GRAPHI_INTS, .ints = (const int64_t[]){__VA_ARGS__},              \
     .count = (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))}
#define INT(text, value) {.name = text, .type = GRAPHI_INT, .i = value}

static graphi_value input(graphi_graph *graph, const char *name, int rank, const int64_t *dims)
{
    return graphi_input(graph, name, GRAPHI_F32, rank, dims);
}

static graphi_value reshaped(graphi_graph *graph, graphi_value value, int rank, const int64_t *shape)
{
    graphi_attribute attribute = {.name = "shape", .type = GRAPHI_INTS, .ints = shape, .count = rank};
    return graphi_op(graph, "reshape", 1, &value, 1, &attribute);
}

/* The sum of all elements of `value` with random weights. */
static graphi_value weighed(graphi_graph *graph, graphi_value value)
{
    int64_t count = type_count(&graph_value(graph, value)->type);
    graphi_value pair[] = {reshaped(graph, value, 2, (int64_t[]){1, count}),
                           input(graph, "weights", 2, (int64_t[]){count, 1})};
    return reshaped(graph, graphi_op(graph, "matmul", 2, pair, 0, NULL), 0, NULL);
}

/* Gradients of one operation with respect to all its inputs. */
static void check_gradients(const char *kind, int inputs, const int *rank, int64_t (*dims)[4], int attributes,
                            const graphi_attribute *attribute)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    graphi_graph *graph;
    graphi_value in[4], gradient[4];
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    for (int i = 0; i < inputs; i++)
        in[i] = input(graph, names[i], rank[i], dims[i]);
    graphi_value out = graphi_op(graph, kind, inputs, in, attributes, attribute);
    if (out == GRAPHI_NONE)
        fail_msg("%s", graphi_message());
    graphi_value loss = weighed(graph, out);
    if (graphi_gradients(graph, loss, inputs, in, gradient) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    struct reference r;
    reference_init(&r, graph);
    for (int i = 0; i < inputs; i++)
        assert_true(reference_gradient_error(&r, loss, in[i], gradient[i], 12, 0.05) < 2e-3);
    reference_fini(&r);
    graphi_graph_destroy(graph);
}

/* A wrong transposition in any of the forms: rows, reduction, batch, one operand used for the whole batch, sums of
 * pairs. */
static void gradients_of_matmul(void **state)
{
    (void)state;
    for (int ta = 0; ta < 2; ta++)
        for (int tb = 0; tb < 2; tb++) {
            graphi_attribute attributes[] = {INT("trans_a", ta), INT("trans_b", tb), INT("pairs", 2)};
            int64_t two[4][4] = {{ta ? 7 : 5, ta ? 5 : 7}, {tb ? 6 : 7, tb ? 7 : 6}, {ta ? 3 : 5, ta ? 5 : 3},
                                 {tb ? 6 : 3, tb ? 3 : 6}};
            check_gradients("matmul", 2, (int[]){2, 2}, two, 2, attributes);
            check_gradients("matmul", 4, (int[]){2, 2, 2, 2}, two, 3, attributes);
            int64_t batch[2][4] = {{2, 3, ta ? 7 : 5, ta ? 5 : 7}, {2, 3, tb ? 6 : 7, tb ? 7 : 6}};
            check_gradients("matmul", 2, (int[]){4, 4}, batch, 2, attributes);
            int64_t left[2][4] = {{3, ta ? 7 : 5, ta ? 5 : 7}, {tb ? 6 : 7, tb ? 7 : 6}};
            if (!ta) /* with trans_a the gradient of b is a sum over the batch */
                check_gradients("matmul", 2, (int[]){3, 2}, left, 2, attributes);
        }
}

/* Products of batches: dims of a, of b and of the result, nothing transposed. */
static const struct batches {
    int a_rank, b_rank, rank;
    int64_t a[4], b[4], out[4];
} batches[] = {
    {4, 4, 4, {2, 1, 5, 7}, {1, 3, 7, 6}, {2, 3, 5, 6}}, {2, 3, 3, {5, 7}, {3, 7, 6}, {3, 5, 6}},
    {3, 2, 3, {4, 5, 7}, {7, 6}, {4, 5, 6}},             {3, 4, 4, {3, 5, 7}, {2, 1, 7, 6}, {2, 3, 5, 6}},
    {4, 3, 4, {2, 3, 5, 7}, {3, 7, 6}, {2, 3, 5, 6}},    {4, 3, 4, {2, 3, 5, 7}, {1, 7, 6}, {2, 3, 5, 6}},
    {3, 3, 3, {1, 5, 7}, {4, 7, 6}, {4, 5, 6}},          {3, 3, 3, {1, 5, 7}, {1, 7, 6}, {1, 5, 6}},
    {4, 4, 4, {2, 3, 5, 7}, {2, 1, 7, 6}, {2, 3, 5, 6}}, {3, 4, 4, {1, 5, 7}, {2, 3, 7, 6}, {2, 3, 5, 6}},
    {2, 4, 4, {130, 40}, {2, 3, 40, 70}, {2, 3, 130, 70}},
};
enum { BATCHES = sizeof batches / sizeof *batches };

/* The dims as they are stored. */
static void stored(int rank, const int64_t *dims, int trans, int64_t *out)
{
    memcpy(out, dims, 4 * sizeof *out);
    out[rank - 2] = dims[rank - 2 + trans];
    out[rank - 1] = dims[rank - 1 - trans];
}

/* The element of an operand behind those dimensions of `batch` (of a result of `out`) that it has, and repeats where it
 * has 1. */
static float element(const float *data, int rank, const int64_t *dims, const struct batches *form, int64_t batch,
                     int64_t row, int64_t col)
{
    int64_t at = 0, step = dims[rank - 1] * dims[rank - 2];
    for (int i = form->rank - 3, d = rank - 3; d >= 0; i--, d--) {
        at += (dims[d] == 1 ? 0 : batch % form->out[i]) * step;
        step *= dims[d];
        batch /= form->out[i];
    }
    return data[at + row * dims[rank - 1] + col];
}

/* Each element of each product by itself, in double precision. */
static void check_batch(const struct batches *form, int ta, int tb, const struct reference *r, const graphi_value *in,
                        graphi_value out)
{
    int64_t a[4], b[4], m = form->out[form->rank - 2], n = form->out[form->rank - 1], k = form->a[form->a_rank - 1];
    stored(form->a_rank, form->a, ta, a);
    stored(form->b_rank, form->b, tb, b);
    const struct value_type *type = &graph_value(r->graph, out)->type;
    assert_int_equal(type->rank, form->rank);
    assert_memory_equal(type->dims, form->out, sizeof *type->dims * (size_t)form->rank);
    assert_true(node_flops(r->graph, graph_value(r->graph, out)->node) == 2.0 * (double)(type_count(type) * k));
    for (int64_t i = 0; i < type_count(type); i++) {
        int64_t row = i / n % m, col = i % n, batch = i / n / m;
        double sum = 0;
        for (int64_t at = 0; at < k; at++)
            sum +=
                (double)element(reference_floats(r, in[0]), form->a_rank, a, form, batch, ta ? at : row,
                                ta ? row : at) *
                (double)element(reference_floats(r, in[1]), form->b_rank, b, form, batch, tb ? col : at, tb ? at : col);
        assert_true(fabs((double)reference_floats(r, out)[i] - sum) <= 1e-5);
    }
}

/* A batch that reads another matrix than broadcasting says, in any form and instruction set, or writes where it should
 * not. */
static void batches_broadcast(void **state)
{
    for (int f = 0; f < BATCHES; f++)
        for (int trans = 0; trans < 4; trans++) {
            const struct batches *form = &batches[f];
            const graphi_attribute attributes[] = {INT("trans_a", trans & 1), INT("trans_b", trans >> 1)};
            int64_t dims[2][4];
            graphi_graph *graph;
            assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
            stored(form->a_rank, form->a, trans & 1, dims[0]);
            stored(form->b_rank, form->b, trans >> 1, dims[1]);
            graphi_value in[] = {input(graph, "a", form->a_rank, dims[0]), input(graph, "b", form->b_rank, dims[1])};
            graphi_value out = graphi_op(graph, "matmul", 2, in, 2, attributes);
            if (graphi_graph_status(graph))
                fail_msg("%s", graphi_message());
            for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++) {
                struct reference r;
                reference_init(&r, graph);
                r.isa = isa;
                assert_int_equal(reference_run(&r), GRAPHI_OK);
                check_batch(form, trans & 1, trans >> 1, &r, in, out);
                reference_fini(&r);
            }
            graphi_graph_destroy(graph);
        }
}

/* A gradient that is not summed over what broadcasting repeated, or over the wrong dimension. */
static void gradients_of_batches(void **state)
{
    for (int f = 0; f < BATCHES - 1; f++) /* the last is large */
        for (int trans = 0; trans < 4; trans++) {
            const graphi_attribute attributes[] = {INT("trans_a", trans & 1), INT("trans_b", trans >> 1)};
            int64_t dims[2][4];
            stored(batches[f].a_rank, batches[f].a, trans & 1, dims[0]);
            stored(batches[f].b_rank, batches[f].b, trans >> 1, dims[1]);
            check_gradients("matmul", 2, (int[]){batches[f].a_rank, batches[f].b_rank}, dims, 2, attributes);
        }
}

/* May dimension 0 of operands `which` (1: a, 2: b) be bounded? It must be the result's; the other's is 1, or the same
 * bound. */
static bool bounded_fits(const struct batches *form, int which)
{
    const int rank[] = {form->a_rank, form->b_rank};
    const int64_t first[] = {form->a[0], form->b[0]};
    for (int i = 0; i < 2; i++) {
        const bool has = rank[i] == form->rank && rank[i] > 2 && first[i] > 1;
        if (has != (which >> i & 1))
            return false;
    }
    return true;
}

/* Rows that a call has not hold a number far from all others, so that whatever reads them differs; with `check` it must
 * still be there. In `gradient` it is 0, which is what differences find. */
static void spoil_rows(const struct reference *r, const graphi_value gradient[2], bool check)
{
    for (graphi_value v = 0; (size_t)v < r->graph->values.count; v++) {
        const struct value_type *type = &graph_value(r->graph, v)->type;
        const float far = v == gradient[0] || v == gradient[1] ? 0 : 1000;
        const int64_t count = type_count(type), rows = reference_rows(r, type);
        if (type->symbol < 0)
            continue;
        for (int64_t i = count / type->dims[0] * rows; i < count; i++) {
            if (check && reference_floats(r, v)[i] != far)
                fail_msg("value %d was written beyond its rows", (int)v);
            reference_floats(r, v)[i] = far;
        }
    }
}

static void check_bounded(const struct batches *form, int trans, int which)
{
    enum { MORE = 3 };
    const graphi_attribute attributes[] = {INT("trans_a", trans & 1), INT("trans_b", trans >> 1)};
    const graphi_attribute scalar = {.name = "dims", .type = GRAPHI_INTS};
    graphi_graph *graph;
    graphi_value in[3], gradient[2];
    int64_t dims[3][4];
    const int rank[] = {form->a_rank, form->b_rank, form->rank};
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    const int64_t batch = graphi_symbol(graph, "batch", form->out[0] + MORE);
    stored(form->a_rank, form->a, trans & 1, dims[0]);
    stored(form->b_rank, form->b, trans >> 1, dims[1]);
    memcpy(dims[2], form->out, sizeof *dims);
    for (int i = 0; i < 3; i++) {
        if (i == 2 || which >> i & 1)
            dims[i][0] = batch;
        in[i] = input(graph, (const char *[]){"a", "b", "weights"}[i], rank[i], dims[i]);
    }
    graphi_value pair[] = {graphi_op(graph, "matmul", 2, in, 2, attributes), in[2]};
    graphi_value weighted = graphi_op(graph, "mul", 2, pair, 0, NULL);
    graphi_value loss = graphi_op(graph, "sum_to", 1, &weighted, 1, &scalar);
    if (graphi_gradients(graph, loss, 2, in, gradient))
        fail_msg("%s", graphi_message());
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++) {
        struct reference r;
        reference_init(&r, graph);
        r.isa = isa;
        r.rows = form->out[0];
        spoil_rows(&r, gradient, false);
        for (int i = 0; i < 2; i++)
            if (!(reference_gradient_error(&r, loss, in[i], gradient[i], 12, 0.05) < 2e-3))
                fail_msg("%s, form %d, transposed %d, bounded %d: gradient of operand %d", isa_name(isa),
                         (int)(form - batches), trans, which, i);
        spoil_rows(&r, gradient, true);
        reference_fini(&r);
    }
    graphi_graph_destroy(graph);
}

/* Fewer products than the bound: a gradient that sums over products that the call has not, or has too few of its own.
 */
static void gradients_of_bounded_batches(void **state)
{
    int checked = 0;
    for (int f = 0; f < BATCHES - 1; f++)
        for (int trans = 0; trans < 4; trans++)
            for (int which = 1; which < 4; which++)
                if (bounded_fits(&batches[f], which)) {
                    check_bounded(&batches[f], trans, which);
                    checked |= 1 << which;
                }
    assert_int_equal(checked, 2 | 4 | 8); /* a alone, b alone, both */
}

/* Wrong padding, stride, group or size in a gradient; and gradients of gradients. */
static void gradients_of_convolutions(void **state)
{
    (void)state;
    graphi_attribute plain[] = {INTS("strides", 1, 1), INTS("pads", 1, 1, 1, 1)};
    graphi_attribute grouped[] = {INTS("strides", 2, 1), INTS("pads", 0, 1, 2, 0), INT("groups", 2),
                                  INTS("dilations", 1, 2)};
    int64_t images[2][4] = {{2, 6, 7, 4}, {3, 3, 4, 6}}, grouped_weights[2][4] = {{2, 6, 7, 4}, {3, 3, 2, 6}};
    check_gradients("conv2d", 2, (int[]){4, 4}, images, 2, plain);
    check_gradients("conv2d", 2, (int[]){4, 4}, grouped_weights, 4, grouped);
    graphi_attribute data[] = {INTS("strides", 2, 2), INTS("pads", 1, 1, 1, 1), INTS("size", 8, 7)};
    int64_t dy[2][4] = {{2, 4, 4, 6}, {3, 3, 4, 6}};
    check_gradients("conv2d_backward_data", 2, (int[]){4, 4}, dy, 3, data);
    graphi_attribute weights[] = {INTS("strides", 2, 2), INTS("pads", 1, 1, 1, 1), INTS("kernel", 3, 3)};
    int64_t x_dy[2][4] = {{2, 8, 7, 4}, {2, 4, 4, 6}};
    check_gradients("conv2d_backward_weights", 2, (int[]){4, 4}, x_dy, 3, weights);
}

/* The graph as a plan has it, with as few passes as can be; its inputs are drawn. */
static void passed(graphi_graph *graph, enum isa isa, graphi_dtype multiplicands, struct reference *r)
{
    const struct pass_options options = {.isa = isa, .multiplicands = multiplicands, .disable = "all"};
    if (passes_run(graph, &options) != GRAPHI_OK || graph_check(graph) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    reference_init(r, graph);
    r->isa = isa;
}

static void check_same(const struct reference *r, const char *one, const char *other)
{
    const graphi_value a = graphi_find(r->graph, one), b = graphi_find(r->graph, other);
    assert_memory_equal(reference_floats(r, a), reference_floats(r, b),
                        (size_t)type_count(&graph_value(r->graph, a)->type) * sizeof(float));
}

/* Outputs: a convolution of one direction, its images rounded to bfloat16 or not, and the gradients of its operands.
 */
static void images_and_gradients(graphi_graph *graph, int direction, bool rounded, const graphi_value *in)
{
    static const char *const kinds[] = {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"};
    static const char *const names[2][3] = {{"y", "da", "db"}, {"y of rounded", "da of rounded", "db of rounded"}};
    const graphi_attribute attributes[] = {INTS("strides", 2, 1), INTS("pads", 1, 0, 1, 2), INT("groups", 2),
                                           direction == 1 ? (graphi_attribute)INTS("size", 6, 7)
                                                          : (graphi_attribute)INTS("kernel", 3, 3)};
    graphi_value pair[] = {in[0], in[1]}, out[3];
    for (int i = 0; rounded && i < (direction == 2 ? 2 : 1); i++)
        pair[i] = graphi_cast(graph, in[i], GRAPHI_BF16);
    out[0] = graphi_op(graph, kinds[direction], 2, pair, direction ? 4 : 3, attributes);
    if (graphi_gradients(graph, graphi_reduce_sum_squares(graph, out[0], NULL, 0, 0), 2, in, out + 1) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    for (int i = 0; i < 3; i++)
        graphi_output(graph, names[rounded][i], out[i]);
}

/* A gradient of a rounded image that is missing, or another than that of the rounded number: of numbers that bfloat16
 * has all are the same bits. Those of the gradients it has not. */
static void gradients_of_rounded_images(void **state)
{
    const int64_t dims[3][2][4] = {
        {{2, 6, 7, 4}, {3, 3, 2, 6}}, {{2, 3, 7, 6}, {3, 3, 2, 6}}, {{2, 6, 7, 4}, {2, 3, 7, 6}}};
    for (int direction = 0; direction < 3; direction++) {
        graphi_graph *graph;
        assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
        graphi_value in[] = {input(graph, "a", 4, dims[direction][0]), input(graph, "b", 4, dims[direction][1])};
        for (int rounded = 0; rounded < 2; rounded++)
            images_and_gradients(graph, direction, rounded, in);
        struct reference r;
        passed(graph, ISA_PLAIN, GRAPHI_F32, &r);
        for (int i = 0; i < 2; i++) {
            in[i] = graphi_find(graph, i ? "b" : "a");
            for (int64_t k = 0; k < type_count(&graph_value(graph, in[i])->type); k++)
                reference_floats(&r, in[i])[k] = (float)((k * 5 + k / 7) % 201 - 100) / 4;
        }
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        check_same(&r, "y", "y of rounded");
        check_same(&r, "da", "da of rounded");
        check_same(&r, "db", "db of rounded");
        reference_fini(&r);
        graphi_graph_destroy(graph);
    }
}

/* Images of bfloat16 that no kernel takes, since channels are odd, each a group, or Winograd's algorithm is chosen; or
 * weights that are rounded although the plan is of float32. */
static void images_of_any_shape(void **state)
{
    static const struct {
        int64_t side, c, window, groups;
    } shapes[] = {{6, 16, 1, 1}, {6, 3, 3, 1}, {6, 16, 3, 16}, {28, 64, 3, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int form = 0; form < 2 * (int)(isa_detect() + 1); form++) {
            const int64_t side = shapes[i].side, c = shapes[i].c, window = shapes[i].window, pad = window / 2;
            graphi_graph *graph;
            assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
            graphi_value x = input(graph, "x", 4, (int64_t[]){2, side, side, c});
            graphi_value w = input(graph, "w", 4, (int64_t[]){window, window, c / shapes[i].groups, 16});
            x = graphi_cast(graph, x, GRAPHI_BF16);
            for (int wide = 0; wide < 2; wide++)
                graphi_output(graph, wide ? "wide" : "narrow",
                              graphi_conv2d(graph, wide ? graphi_cast(graph, x, GRAPHI_F32) : x, w, GRAPHI_LIST(1, 1),
                                            GRAPHI_LIST(pad, pad, pad, pad), GRAPHI_LIST(1, 1), shapes[i].groups));
            struct reference r;
            passed(graph, (enum isa)(form / 2), form % 2 ? GRAPHI_BF16 : GRAPHI_F32, &r);
            if (reference_run(&r) != GRAPHI_OK)
                fail_msg("%s", graphi_message());
            check_same(&r, "narrow", "wide");
            reference_fini(&r);
            graphi_graph_destroy(graph);
        }
}

/* Fewer rows than the bound must give the rows that the same graph of that size gives, also where a row of the bounded
 * dimension is several rows of the matrix, a step of a reduction, or several products of a batch. */
static void bounded_rows(void **state)
{
    enum { RESULTS = 6 };
    float *result[2][RESULTS];
    int64_t count[RESULTS];
    for (int bounded = 0; bounded < 2; bounded++) {
        graphi_graph *graph;
        assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
        int64_t n = bounded ? graphi_symbol(graph, "batch", 9) : 4;
        graphi_value x = input(graph, "x", 3, (int64_t[]){n, 5, 8}), w = input(graph, "w", 2, (int64_t[]){8, 70});
        graphi_value u = input(graph, "u", 2, (int64_t[]){n, 20}), v = input(graph, "v", 2, (int64_t[]){n, 30});
        graphi_value y = input(graph, "y", 3, (int64_t[]){n, 8, 6});
        graphi_value image = input(graph, "image", 4, (int64_t[]){n, 5, 5, 3}),
                     k = input(graph, "k", 4, (int64_t[]){3, 3, 3, 4});
        graphi_value heads = input(graph, "heads", 4, (int64_t[]){n, 1, 5, 8}),
                     keys = input(graph, "keys", 3, (int64_t[]){3, 8, 5});
        graphi_attribute trans = INT("trans_a", 1), other = INT("trans_b", 1);
        graphi_value out[] = {graphi_op(graph, "matmul", 2, (graphi_value[]){x, w}, 0, NULL),
                              graphi_op(graph, "matmul", 2, (graphi_value[]){u, v}, 1, &trans),
                              graphi_op(graph, "matmul", 2, (graphi_value[]){x, y}, 0, NULL),
                              graphi_op(graph, "matmul", 2, (graphi_value[]){heads, keys}, 0, NULL),
                              graphi_op(graph, "matmul", 2,
                                        (graphi_value[]){keys, graphi_op(graph, "transpose", 1, &heads, 1,
                                                                         &(graphi_attribute)INTS("perm", 0, 1, 3, 2))},
                                        1, &other),
                              graphi_op(graph, "conv2d", 2, (graphi_value[]){image, k}, 0, NULL)};
        assert_int_equal(graphi_graph_status(graph), GRAPHI_OK);
        struct reference r;
        reference_init(&r, graph);
        r.rows = 4;
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        for (int i = 0; i < RESULTS; i++) {
            if (!bounded)
                count[i] = type_count(&graph_value(graph, out[i])->type);
            result[bounded][i] = malloc((size_t)count[i] * sizeof(float));
            memcpy(result[bounded][i], reference_floats(&r, out[i]), (size_t)count[i] * sizeof(float));
        }
        reference_fini(&r);
        graphi_graph_destroy(graph);
    }
    for (int i = 0; i < RESULTS; i++) {
        assert_memory_equal(result[0][i], result[1][i], (size_t)count[i] * sizeof(float));
        free(result[0][i]);
        free(result[1][i]);
    }
}

/* A packed and fused product must be what the separate operations give (passes rewrite one into the other). */
static void packed_and_fused(void **state)
{
    (void)state;
    graphi_graph *graph;
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    graphi_value x = input(graph, "x", 2, (int64_t[]){20, 33}), w = input(graph, "w", 2, (int64_t[]){90, 33});
    graphi_value bias = input(graph, "bias", 1, (int64_t[]){90});
    graphi_attribute trans_b = INT("trans_b", 1), trans = INT("trans", 1);
    graphi_value plain = graphi_op(graph, "matmul", 2, (graphi_value[]){x, w}, 1, &trans_b);
    plain = graphi_op(graph, "relu", 1,
                      (graphi_value[]){graphi_op(graph, "add", 2, (graphi_value[]){plain, bias}, 0, NULL)}, 0, NULL);
    struct program program = {.inputs = 2, .instructions = 2, .outputs = 2, .output = {3, 2}};
    program.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    program.code[1] = (struct program_instruction){PROGRAM_RELU, 2, -1, -1, 0};
    int64_t encoded[PROGRAM_MAX_ENCODED];
    int length = program_encode(&program, encoded);
    graphi_attribute attributes[] = {INT("packed_b", 1),
                                     {.name = "program", .type = GRAPHI_INTS, .ints = encoded, .count = length},
                                     INT("outputs", 2)};
    graphi_value packed = graphi_op(graph, "pack", 1, &w, 1, &trans);
    graphi_value fused = graphi_op(graph, "matmul", 3, (graphi_value[]){x, packed, bias}, 3, attributes);
    if (graphi_graph_status(graph) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    for (enum isa isa = ISA_PLAIN; isa <= isa_detect(); isa++) {
        struct reference r;
        reference_init(&r, graph);
        r.isa = isa;
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        assert_true(reference_difference(reference_floats(&r, fused), reference_floats(&r, plain), 20 * 90) < 1e-6);
        assert_true(reference_floats(&r, fused + 1)[0] <= reference_floats(&r, fused)[0]);
        reference_fini(&r);
    }
    graphi_graph_destroy(graph);
}

/* A row of an epilogue for each row that there is: of a fixed operand others would be read than of a run's own, and an
 * operand that follows another size has more or fewer. */
static void epilogues_follow_bounded_rows(void **state)
{
    enum { FIXED = 6, ROWS = -1, OTHERS = -2 }; /* as many as columns */
    static const struct {
        int rank;
        int64_t dims[2];
        bool taken;
    } cases[] = {{2, {ROWS, 6}, true},   {2, {ROWS, 1}, true},   {1, {6}, true},
                 {2, {1, 6}, true},      {0, {0}, true},         {2, {FIXED, 6}, false},
                 {2, {FIXED, 1}, false}, {2, {OTHERS, 6}, false}, {1, {OTHERS}, false}};
    struct program program = {.inputs = 2, .instructions = 1, .outputs = 1, .output = {2}};
    program.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    int64_t encoded[PROGRAM_MAX_ENCODED];
    const graphi_attribute attribute = {
        .name = "program", .type = GRAPHI_INTS, .ints = encoded, .count = program_encode(&program, encoded)};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *graph;
        assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
        const int64_t rows = graphi_symbol(graph, "rows", FIXED), others = graphi_symbol(graph, "others", FIXED);
        int64_t dims[] = {cases[i].dims[0], cases[i].dims[1]};
        dims[0] = dims[0] == ROWS ? rows : dims[0] == OTHERS ? others : dims[0];
        graphi_value in[] = {input(graph, "x", 2, (int64_t[]){rows, 5}), input(graph, "w", 2, (int64_t[]){5, 6}),
                             input(graph, "y", cases[i].rank, dims)};
        if ((graphi_op(graph, "matmul", 3, in, 1, &attribute) != GRAPHI_NONE) != cases[i].taken)
            fail_msg("case %zu: %s", i, cases[i].taken ? graphi_message() : "taken");
        graphi_graph_destroy(graph);
    }
}

/* Without it a value that is no number could hide behind a number that follows it. */
static void differences_see_what_is_no_number(void **state)
{
    (void)state;
    float good[3] = {1, 2, 3}, bad[3] = {1, NAN, 3};
    assert_true(reference_difference(good, good, 3) == 0);
    assert_true(reference_difference(bad, good, 3) == INFINITY);
    assert_true(reference_difference(good, bad, 3) == INFINITY);
}

/* Operands that do not fit must be refused with both types in the message. */
static void mismatches_are_named(void **state)
{
    enum { ANY = -1 }; /* a bounded size */
    static const struct {
        int a_rank, b_rank;
        int64_t a[4], b[4];
        const char *left, *right;
    } cases[] = {
        {2, 2, {64, 512}, {256, 100}, "[64,512]", "[256,100]"},
        {4, 3, {2, 3, 4, 5}, {4, 5, 6}, "[2,3,4,5]", "[4,5,6]"},       /* 3 meets 4 */
        {1, 2, {5}, {5, 6}, "[5]", "[5,6]"},
        {3, 1, {2, 4, 5}, {5}, "[2,4,5]", "[5]"},
        {3, 4, {ANY, 4, 5}, {2, 1, 5, 6}, "[<=7,4,5]", "[2,1,5,6]"},   /* a bound behind the first dimension */
        {3, 3, {ANY, 4, 5}, {7, 5, 6}, "[<=7,4,5]", "[7,5,6]"},        /* or one that meets a number */
        {2, 3, {ANY, 5}, {3, 5, 6}, "[<=7,5]", "[3,5,6]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *graph;
        int64_t a[4];
        assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
        memcpy(a, cases[i].a, sizeof a);
        if (a[0] == ANY)
            a[0] = graphi_symbol(graph, "batch", 7);
        graphi_value in[] = {input(graph, "x", cases[i].a_rank, a), input(graph, "w", cases[i].b_rank, cases[i].b)};
        assert_int_equal(graphi_op(graph, "matmul", 2, in, 0, NULL), GRAPHI_NONE);
        assert_int_equal(graphi_graph_status(graph), GRAPHI_INVALID);
        if (!strstr(graphi_message(), cases[i].left) || !strstr(graphi_message(), cases[i].right))
            fail_msg("%s", graphi_message());
        graphi_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_matmul),  cmocka_unit_test(batches_broadcast),
        cmocka_unit_test(gradients_of_batches), cmocka_unit_test(gradients_of_bounded_batches),
        cmocka_unit_test(gradients_of_convolutions), cmocka_unit_test(gradients_of_rounded_images),
        cmocka_unit_test(images_of_any_shape),
        cmocka_unit_test(bounded_rows),         cmocka_unit_test(differences_see_what_is_no_number),
        cmocka_unit_test(packed_and_fused),     cmocka_unit_test(mismatches_are_named),
        cmocka_unit_test(epilogues_follow_bounded_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
