/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: every one keeps the graph's invariants and its results, and does what it is for. */
#include "rewritten.h"

#include "base/memory.h"
#include "graphi/plan.h"

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state += 1;
    return random_philox(99, 0, *state).v[0] % below;
}

/* A random graph of element-wise operations on [4,6], [6] and scalars, with views, constants, a loss, gradients and
 * updates. */
static graphi_graph *random_graph(uint64_t seed, int size)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    uint64_t state = seed << 32;
    const int64_t dims[] = {4, 6};
    enum { MOST = 200 };
    graphi_value v[MOST], w[3];
    int n = 0;
    v[n++] = graphi_input(g, "x", GRAPHI_F32, 2, dims);
    v[n++] = graphi_input(g, "y", GRAPHI_F32, 2, dims);
    v[n++] = w[0] = graphi_parameter(g, "w", GRAPHI_F32, 2, dims, NULL);
    v[n++] = w[1] = graphi_parameter(g, "b", GRAPHI_F32, 1, dims + 1, NULL);
    v[n++] = w[2] = graphi_parameter(g, "s", GRAPHI_F32, 0, NULL, NULL);
    v[n++] = graphi_parameter(g, "u", GRAPHI_F32, 1, (int64_t[]){1}, NULL);
    v[n++] = number(g, 1);
    v[n++] = number(g, 0);
    v[n++] = number(g, 0.75f);
    static const char *const unary[] = {"tanh", "sigmoid", "relu", "neg", "square", "identity", "abs"};
    static const char *const binary[] = {"add", "sub", "mul", "min", "max", "add", "mul"};
    while (n < size) {
        /* Near values mostly, so that chains form; sometimes the same call again, for common subexpressions. */
        graphi_value a = draw(&state, 3) ? v[n - 1 - (int)draw(&state, 4)] : v[draw(&state, (uint32_t)n)];
        graphi_value b = v[draw(&state, (uint32_t)n)];
        char scope[32];
        snprintf(scope, sizeof scope, "n%d", n);
        graphi_scope(g, scope);
        graphi_attribute row = {.name = "dims", .type = GRAPHI_INTS, .ints = dims + 1, .count = 1};
        switch (draw(&state, 5)) {
        case 0:
            v[n++] = OP(unary[draw(&state, 7)], a);
            break;
        case 1:
            v[n] = OP(binary[draw(&state, 7)], a, b);
            n++;
            break;
        case 2: /* a sum over rows, which a matrix may read again */
            v[n++] =
                OP("tanh", type_count(&graph_value(g, a)->type) == 24 ? graphi_op(g, "sum_to", 1, &a, 1, &row) : a);
            break;
        default:
            v[n++] = OP("tanh", OP(binary[draw(&state, 7)], a, b));
        }
    }
    graphi_value loss = GRAPHI_NONE;
    for (int i = n - 4; i < n; i++) {
        graphi_attribute dims0 = {.name = "dims", .type = GRAPHI_INTS};
        graphi_value sum = graphi_op(g, "sum_to", 1, &v[i], 1, &dims0);
        loss = loss == GRAPHI_NONE ? sum : OP("add", loss, sum);
    }
    loss = OP("add", loss, OP("mul", w[2], w[2]));
    graphi_output(g, "loss", loss);
    graphi_output(g, "last", v[n - 1]);
    graphi_optimizer sgd = {.kind = seed % 3, .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL),
                            .weight_decay = 0.1, .clip_norm = seed % 2 ? 1.0 : 0};
    if (graphi_minimize(g, loss, &sgd) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return g;
}

/* A pass that breaks an invariant or a result on some graph goes unnoticed until a network trains wrongly. Element-wise
 * passes keep every bit, alone and one after the other. */
static void every_pass_keeps_results(void **state)
{
    struct pass_options options = {.isa = ISA_PLAIN};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        graphi_graph *g = random_graph(seed, 20 + (int)seed * 2), *chain;
        assert_int_equal(graph_check(g), GRAPHI_OK);
        assert_int_equal(graph_clone(g, &chain), GRAPHI_OK);
        assert_int_equal(graph_check(chain), GRAPHI_OK);
        assert_true(graph_hash(g) == graph_hash(chain));
        for (const struct pass *pass = passes; pass->name; pass++) {
            graphi_graph *alone;
            assert_int_equal(graph_clone(g, &alone), GRAPHI_OK);
            graphi_graph *both[] = {alone, chain};
            for (int k = 0; k < 2; k++) {
                if (pass->run(both[k], &options) != GRAPHI_OK || graph_check(both[k]) != GRAPHI_OK)
                    fail_msg("%s on graph %d: %s", pass->name, (int)seed, graphi_message());
                same_results(g, both[k], 0, pass->name);
            }
            graphi_graph_destroy(alone);
        }
        graphi_graph_destroy(chain);
        graphi_graph_destroy(g);
    }
}

/* Identities and folding that miss their patterns leave work in every step. */
static void simple_rewrites_happen(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    const int64_t dims[] = {4, 8}, other[] = {8, 4}, flat[] = {32};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims);
    graphi_attribute to_other = {.name = "shape", .type = GRAPHI_INTS, .ints = other, .count = 2};
    graphi_attribute to_flat = {.name = "shape", .type = GRAPHI_INTS, .ints = flat, .count = 1};
    graphi_attribute back = {.name = "shape", .type = GRAPHI_INTS, .ints = dims, .count = 2};
    graphi_value y = OP("mul", OP("add", x, OP("sub", number(g, 2), number(g, 2))), number(g, 1));
    y = graphi_op(g, "transpose", 1, (graphi_value[]){OP("transpose", y)}, 0, NULL);
    y = graphi_op(g, "reshape", 1, &y, 1, &to_flat);
    y = graphi_op(g, "reshape", 1, &y, 1, &to_other);
    y = graphi_op(g, "reshape", 1, &y, 1, &back);
    graphi_output(g, "y", OP("add", OP("tanh", y), OP("tanh", x)));
    struct pass_options options = {.isa = ISA_PLAIN, .disable = "fusion"};
    assert_int_equal(passes_run(g, &options), GRAPHI_OK);
    assert_int_equal(graph_check(g), GRAPHI_OK);
    assert_int_equal(g->nodes.count, 2); /* tanh once, add */
    graphi_graph_destroy(g);
}

static graphi_value expanded(graphi_graph *g, graphi_value value, const int64_t *dims)
{
    graphi_attribute to = {.name = "dims", .type = GRAPHI_INTS, .ints = dims, .count = 2};
    return graphi_op(g, "expand", 1, &value, 1, &to);
}

/* An array of one number, as gradients of sums and means are, was kept and read beside each array that it scales. */
static void one_number_is_no_array(void **state)
{
    const int64_t small[] = {64, 100}, large[] = {600, 600}; /* folded, and left an operation */
    for (int k = 0; k < 2; k++) {
        const int64_t *dims = k ? large : small;
        graphi_graph *g, *before;
        assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, dims), s = graphi_input(g, "s", GRAPHI_F32, 0, NULL);
        graphi_value one = expanded(g, number(g, 1), dims), half = expanded(g, number(g, 0.5f), dims);
        graphi_output(g, "itself", OP("tanh", OP("mul", one, x)));
        graphi_output(g, "half", OP("sub", half, x));
        graphi_output(g, "scaled", OP("mul", x, expanded(g, s, dims)));
        graphi_output(g, "numbers", OP("add", expanded(g, s, dims), half)); /* somebody must have the shape */
        assert_int_equal(graph_clone(g, &before), GRAPHI_OK);
        struct pass_options options = {.isa = ISA_PLAIN, .disable = "fusion"};
        assert_int_equal(passes_run(g, &options), GRAPHI_OK);
        assert_int_equal(graph_check(g), GRAPHI_OK);
        same_results(before, g, 0, "one number");
        assert_int_equal(count_kind(g, "tanh"), 1);
        assert_int_equal(count_kind(g, "mul"), 1); /* that of s */
        assert_int_equal(count_kind(g, "expand"), 1 + k);
        for (size_t i = 0; i < g->nodes.count; i++) {
            const struct node *node = graph_node(g, (int32_t)i);
            if (is_kind(node, "mul") || is_kind(node, "sub"))
                assert_int_equal(graph_value(g, node->input[0])->type.rank +
                                     graph_value(g, node->input[1])->type.rank, 2);
        }
        graphi_graph_destroy(before);
        graphi_graph_destroy(g);
    }
}

/* An LSTM of `steps` steps with a product per gate, its loss, gradients and momentum updates. */
static graphi_graph *lstm(int steps)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    enum { BATCH = 16, UNITS = 8 };
    const int64_t square[] = {UNITS, UNITS}, wide[] = {BATCH, UNITS}, row[] = {UNITS};
    graphi_initializer init = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.1, .b = 0.1};
    graphi_value w[4], u[4], b[4];
    char name[32];
    for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "w%d", k);
        w[k] = graphi_parameter(g, name, GRAPHI_F32, 2, square, &init);
        snprintf(name, sizeof name, "u%d", k);
        u[k] = graphi_parameter(g, name, GRAPHI_F32, 2, square, &init);
        snprintf(name, sizeof name, "b%d", k);
        b[k] = graphi_parameter(g, name, GRAPHI_F32, 1, row, &init);
    }
    graphi_value h = graphi_input(g, "h", GRAPHI_F32, 2, wide), c = graphi_input(g, "c", GRAPHI_F32, 2, wide);
    for (int t = 0; t < steps; t++) {
        snprintf(name, sizeof name, "x%d", t);
        graphi_value x = graphi_input(g, name, GRAPHI_F32, 2, wide), gate[4];
        for (int k = 0; k < 4; k++) {
            graphi_value z = OP("add", OP("add", OP("matmul", x, w[k]), OP("matmul", h, u[k])), b[k]);
            gate[k] = OP(k == 3 ? "tanh" : "sigmoid", z);
        }
        c = OP("add", OP("mul", gate[0], c), OP("mul", gate[1], gate[3]));
        h = OP("mul", gate[2], OP("tanh", c));
    }
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value loss = graphi_op(g, "sum_to", 1, &h, 1, &none);
    graphi_output(g, "loss", loss);
    graphi_optimizer momentum = {.kind = GRAPHI_MOMENTUM, .learning_rate = number(g, 0.01f)};
    if (graphi_minimize(g, loss, &momentum) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return g;
}

static int total_pairs(const graphi_graph *g, bool trans_a)
{
    int64_t pairs = 0;
    for (size_t i = 0; i < g->nodes.count; i++)
        if (is_kind(&g->nodes.data[i], "matmul") && attr_int(&g->nodes.data[i], "trans_a") == trans_a)
            pairs += attr_int(&g->nodes.data[i], "pairs");
    return (int)pairs;
}

/* Passes on products round anew but must stay the same function, alone, in a chain, and with merging asked for. */
static void product_passes_keep_results(void **state)
{
    graphi_graph *g = lstm(3), *chain;
    struct pass_options options = {.isa = ISA_PLAIN};
    assert_int_equal(graph_check(g), GRAPHI_OK);
    assert_int_equal(graph_clone(g, &chain), GRAPHI_OK);
    for (const struct pass *pass = passes; pass->name; pass++) {
        graphi_graph *alone;
        assert_int_equal(graph_clone(g, &alone), GRAPHI_OK);
        graphi_graph *both[] = {alone, chain};
        for (int k = 0; k < 2; k++) {
            if (pass->run(both[k], &options) != GRAPHI_OK || graph_check(both[k]) != GRAPHI_OK)
                fail_msg("%s: %s", pass->name, graphi_message());
            same_results(g, both[k], 1e-5, pass->name);
        }
        graphi_graph_destroy(alone);
    }
    graphi_graph_destroy(chain);
    graphi_graph_destroy(g);
}

/* A gradient per step held until the end is what batch-reduce is for; a pack inside the time loop, or one per use, what
 * packing as nodes is for; an activation outside its product a pass over memory. */
static void products_take_their_form(void **state)
{
    enum { STEPS = 5 };
    graphi_graph *g = lstm(STEPS), *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
    int weights = 0, gates = 0, plain = 0;
    for (size_t i = 0; i < copy->nodes.count; i++) {
        const struct node *node = &copy->nodes.data[i];
        const int64_t *program;
        if (!is_kind(node, "matmul"))
            continue;
        weights += attr_int(node, "trans_a") != 0;
        gates += !node->backward && attr_ints(node, "program", &program) > 0;
        plain += !attr_int(node, "trans_a") && !attr_int(node, "packed_b");
    }
    assert_int_equal(weights, 8 + 4); /* the gradient of a bias: a product with ones */
    assert_int_equal(total_pairs(copy, true), total_pairs(g, true) + 4 * STEPS);
    assert_int_equal(count_kind(copy, "sum_to"), 1); /* the loss */
    assert_int_equal(gates, 4 * STEPS);
    assert_int_equal(plain, 0);
    assert_int_equal(count_kind(copy, "pack"), 8 + 4); /* forward w, u; transposed u for the gradient of h */
    assert_int_equal(count_kind(copy, "assign"), 0);
    same_results(g, copy, 1e-5, "lstm");
    graphi_graph_destroy(copy);
    copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = "+merge,sums,reduce,epilogue,pack"});
    assert_int_equal(total_pairs(copy, false) < total_pairs(g, false) / 2, 1);
    same_results(g, copy, 1e-5, "merge");
    graphi_graph_destroy(copy);
    copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = "+merge"});
    same_results(g, copy, 1e-5, "merge and pack");
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* Sums over rows as one product keep their terms until the last of them: that is free where a weight gradient keeps
 * them too, and would cost an array a step elsewhere. */
static void sums_over_rows_join_kept_terms(void **state)
{
    enum { STEPS = 3 };
    const int64_t wide[] = {6, 5}, row[] = {5};
    const graphi_attribute dims = {.name = "dims", .type = GRAPHI_INTS, .ints = row, .count = 1};
    const graphi_attribute transposed = {.name = "trans_a", .type = GRAPHI_INT, .i = 1};
    for (int kept = 0; kept < 2; kept++) {
        graphi_graph *g, *copy;
        assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
        graphi_value sum = GRAPHI_NONE, weights = GRAPHI_NONE;
        for (int t = 0; t < STEPS; t++) {
            char name[8];
            snprintf(name, sizeof name, "x%d", t);
            graphi_value x = graphi_input(g, name, GRAPHI_F32, 2, wide), y = OP("tanh", x);
            graphi_value part = graphi_op(g, "sum_to", 1, &y, 1, &dims);
            graphi_value weight = graphi_op(g, "matmul", 2, (graphi_value[]){x, kept ? y : x}, 1, &transposed);
            sum = t ? OP("add", sum, part) : part;
            weights = t ? OP("add", weights, weight) : weight;
        }
        graphi_output(g, "sum", sum);
        graphi_output(g, "weights", weights);
        assert_int_equal(graph_clone(g, &copy), GRAPHI_OK);
        assert_int_equal(pass_reduce(copy, &(struct pass_options){.isa = ISA_PLAIN}), GRAPHI_OK);
        assert_int_equal(graph_check(copy), GRAPHI_OK);
        assert_int_equal(count_kind(copy, "sum_to"), kept ? 0 : STEPS);
        assert_int_equal(total_pairs(copy, true), kept ? 2 * STEPS : STEPS);
        same_results(g, copy, 1e-6, "sums over rows");
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

/* A layer trained on a batch and on rows that are always there: one product of both would take either's rows for the
 * other's. */
static void weights_of_fixed_and_bounded_rows(void **state)
{
    for (int first = 0; first < 2; first++) {
        graphi_graph *g;
        assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
        graphi_value loss = GRAPHI_NONE, w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){8, 5}, NULL);
        const int64_t rows[] = {graphi_symbol(g, "batch", 64), 20};
        for (int i = 0; i < 2; i++) {
            graphi_value x = graphi_input(g, i ? "x1" : "x0", GRAPHI_F32, 2, (int64_t[]){rows[i ^ first], 8});
            graphi_value mean = graphi_reduce_mean(g, OP("square", OP("matmul", x, w)), NULL, 0, 0);
            loss = i ? OP("add", loss, mean) : mean;
        }
        assert_int_equal(graphi_gradients(g, loss, 1, &w, &w), GRAPHI_OK);
        graphi_output(g, "gradient", w);
        graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
        assert_int_equal(total_pairs(copy, true), 2);
        same_results_on(ISA_PLAIN, 3, g, copy, 1e-6, "rows of the batch");
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

/* The gradient of a layer's input multiplies by the same transposed weights at every step: one pack for all of them. */
static void steps_share_transposed_weights(void **state)
{
    enum { STEPS = 40 };
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value w1 = graphi_parameter(g, "w1", GRAPHI_F32, 2, (int64_t[]){6, 10}, NULL);
    graphi_value w2 = graphi_parameter(g, "w2", GRAPHI_F32, 2, (int64_t[]){10, 8}, NULL);
    graphi_value loss = GRAPHI_NONE;
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    for (int t = 0; t < STEPS; t++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", t);
        graphi_value x = graphi_input(g, name, GRAPHI_F32, 2, (int64_t[]){4, 6});
        graphi_value y = OP("square", OP("matmul", OP("tanh", OP("matmul", x, w1)), w2));
        y = graphi_op(g, "sum_to", 1, &y, 1, &none);
        loss = t ? OP("add", loss, y) : y;
    }
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
    assert_int_equal(graphi_minimize(g, loss, &sgd), GRAPHI_OK);
    graphi_output(g, "loss", loss);
    graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN});
    assert_int_equal(count_kind(copy, "pack"), 3); /* w1, w2, w2 transposed */
    for (size_t i = 0; i < copy->nodes.count; i++)
        if (is_kind(&copy->nodes.data[i], "matmul"))
            assert_true(attr_int(&copy->nodes.data[i], "trans_a") || attr_int(&copy->nodes.data[i], "packed_b"));
    graphi_graph_destroy(copy);
    graphi_graph_destroy(g);
}

/* A gate made of a time a sample and a parameter a unit is kept as an array a step, though its two makers are at hand;
 * made again from a parameter that the update has overwritten, it would be wrong. */
static void gates_are_made_again(void **state)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value x = graphi_parameter(g, "x", GRAPHI_F32, 2, (int64_t[]){24, 20}, NULL);
    graphi_value time = graphi_input(g, "time", GRAPHI_F32, 2, (int64_t[]){24, 1});
    graphi_value shift = graphi_parameter(g, "shift", GRAPHI_F32, 1, (int64_t[]){20}, NULL);
    graphi_value late = OP("sub", time, shift), gate = OP("tanh", OP("mul", late, late)), y = OP("mul", gate, x);
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value square = OP("square", y), loss = graphi_op(g, "sum_to", 1, &square, 1, &none);
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
    if (graphi_minimize(g, loss, &sgd) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    graphi_output(g, "loss", loss);
    static const char *const lists[] = {"all,+recompute", NULL};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = lists[l]});
        same_results(g, copy, 1e-6, "recompute");
        if (!l)
            assert_int_equal(count_kind(copy, "tanh"), 2);
        for (size_t i = 0; i < copy->nodes.count; i++) {
            const struct node *node = &copy->nodes.data[i];
            for (int k = 0; k < node->inputs; k++) {
                int32_t maker = graph_value(copy, node->input[k])->node;
                if (!l && node->backward && maker >= 0 && !graph_node(copy, maker)->backward)
                    assert_true(is_kind(graph_node(copy, maker), "mul")); /* y, which needs x */
            }
        }
        graphi_graph_destroy(copy);
    }
    graphi_graph_destroy(g);
}

/* z = x w, y = tanh(z), loss = sum(y p) with one more term: the square of z, for which z is kept (0); none (1); the
 * square of y w2, a product that has y as an array anyway (2); the square of z again, y being an output (3). */
static graphi_graph *around_tanh(int form)
{
    graphi_graph *g;
    assert_int_equal(graphi_graph_create(&g), GRAPHI_OK);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){24, 20});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){20, 20}, NULL);
    graphi_value p = graphi_input(g, "p", GRAPHI_F32, 2, (int64_t[]){24, 20});
    graphi_value z = OP("matmul", x, w), y = OP("tanh", z), sum = OP("mul", y, p);
    if (form == 0 || form == 3)
        sum = OP("add", sum, OP("square", z));
    else if (form == 2)
        sum = OP("add", sum,
                 OP("square", OP("matmul", y, graphi_parameter(g, "w2", GRAPHI_F32, 2, (int64_t[]){20, 20}, NULL))));
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value loss = graphi_op(g, "sum_to", 1, &sum, 1, &none);
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.01f)};
    if (graphi_minimize(g, loss, &sgd) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    graphi_output(g, "loss", loss);
    if (form == 3)
        graphi_output(g, "y", y);
    return g;
}

/* An LSTM cell that keeps tanh of its state beside the state keeps seven arrays instead of six; made again where the
 * state is not kept, or where a product or the caller has it as an array, it would save nothing and cost its
 * arithmetic. */
static void what_follows_from_a_kept_array_is_made_again(void **state)
{
    for (int form = 0; form < 4; form++) {
        graphi_graph *g = around_tanh(form);
        graphi_graph *copy = rewritten(g, (struct pass_options){.isa = ISA_PLAIN, .disable = "all,+recompute"});
        same_results(g, copy, 1e-6, "recompute");
        assert_int_equal(count_kind(copy, "tanh"), form == 0 ? 2 : 1);
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

/* A pass that collects again for every node what it has found before makes an unrolled network of twice the steps four
 * times the work: counted in allocations, which need no clock. */
static void work_grows_with_the_graph(void **state)
{
    uint64_t allocations[2];
    for (int twice = 0; twice < 2; twice++) {
        graphi_graph *g = lstm(twice ? 160 : 80);
        assert_true(g->nodes.count > (twice ? 10000 : 5000));
        struct pass_options options = {.isa = ISA_PLAIN};
        uint64_t before = mem_allocations();
        assert_int_equal(passes_run(g, &options), GRAPHI_OK);
        allocations[twice] = mem_allocations() - before;
        assert_int_equal(graph_check(g), GRAPHI_OK);
        assert_int_equal(total_pairs(g, true), (8 + 4) * (twice ? 160 : 80));
        graphi_graph_destroy(g);
    }
    assert_true(2 * allocations[1] < 5 * allocations[0]);
}

/* A misspelt switch that is silently ignored measures the wrong thing; "order" runs always. */
static void switches_are_checked(void **state)
{
    assert_true(graphi_pass_check("all, +merge") == GRAPHI_OK && graphi_pass_check("none") == GRAPHI_OK &&
                graphi_pass_check(NULL) == GRAPHI_OK);
    assert_int_equal(graphi_pass_check("cse,+"), GRAPHI_USAGE);
    assert_true(graphi_pass_check("order") == GRAPHI_USAGE && graphi_pass_check("fusoin") == GRAPHI_USAGE);
    assert_non_null(strstr(graphi_message(), "USAGE: passes: found 'fusoin', expected all, none, dead, norm, fold,"));
    graphi_pass pass = {0};
    int count = 0, switched = 0;
    for (; graphi_pass_at(count, &pass); count++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", pass.on_request ? "+" : "", pass.name);
        assert_int_equal(graphi_pass_check(name), pass.always ? GRAPHI_USAGE : GRAPHI_OK);
        assert_true(strlen(pass.summary) > 0 && pass.on_request == (strcmp(pass.name, "merge") == 0));
        switched += !pass.always;
    }
    assert_true(count > switched && switched > 10 && !graphi_pass_at(-1, &pass));
    assert_true(pass_enabled(&(struct pass){.name = "cse"}, "fusion"));
    assert_false(pass_enabled(&(struct pass){.name = "cse"}, "fusion,cse"));
    assert_false(pass_enabled(&(struct pass){.name = "merge", .when = PASS_REQUEST}, NULL));
    assert_true(pass_enabled(&(struct pass){.name = "merge", .when = PASS_REQUEST}, "cse,+merge"));
}

/* A selection that keeps updates alive computes gradients for an evaluation. */
static void selection_drops_updates(void **state)
{
    graphi_graph *g = random_graph(3, 20);
    size_t before = g->nodes.count;
    assert_int_equal(passes_select(g, "loss", false), GRAPHI_OK);
    struct pass_options options = {.isa = ISA_PLAIN};
    assert_int_equal(passes_run(g, &options), GRAPHI_OK);
    assert_int_equal(graph_check(g), GRAPHI_OK);
    for (size_t i = 0; i < g->nodes.count; i++)
        assert_false(g->nodes.data[i].backward);
    assert_true(g->nodes.count < before / 2);
    assert_int_equal(passes_select(g, "loss,nothing", false), GRAPHI_INVALID);
    assert_string_equal(graphi_message(),
                        "INVALID: outputs: found 'nothing', expected outputs of the graph: one of loss");
    graphi_graph_destroy(g);
}

/* A pass that runs before one whose work it needs does less, and no result tells: the table says what each needs, and
 * every planted wrong order is found. */
static void order_is_checked(void **state)
{
    struct pass wrong[32];
    int count = 0, needs = 0;
    assert_int_equal(passes_check_order(passes), GRAPHI_OK);
    for (; passes[count].name; count++)
        needs += *passes[count].after != 0;
    assert_in_range(count, 20, 31);
    assert_int_equal(needs, count - 1); /* all but the first */
    for (int late = 1; late < count; late++) { /* each pass in turn is put before the first one that it needs */
        memcpy(wrong, passes, sizeof *wrong * (size_t)(count + 1));
        const char *need = passes[late].after;
        int early = 0;
        while (strncmp(passes[early].name, need, strcspn(need, " ")) != 0)
            early++;
        assert_true(early < late);
        const struct pass moved = wrong[late];
        memmove(&wrong[early + 1], &wrong[early], sizeof *wrong * (size_t)(late - early));
        wrong[early] = moved;
        char expected[100];
        snprintf(expected, sizeof expected, "found %s in the table, expected %.*s before it", moved.name,
                 (int)strcspn(need, " "), need);
        assert_int_equal(passes_check_order(wrong), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), expected));
    }
    const struct pass unknown[] = {{.name = "a", .after = ""}, {.name = "b", .after = "a nothing"}, {0}};
    assert_int_equal(passes_check_order(unknown), GRAPHI_INVALID);
}

/* A pass that leaks or crashes when memory runs out takes the whole process with it. */
static void passes_survive_failed_allocations(void **state)
{
    graphi_graph *g = random_graph(5, 30);
    struct pass_options options = {.isa = ISA_PLAIN};
    bool passed = false;
    for (long n = 0; !passed && n < 3000; n += 1 + n / 16) {
        mem_fail_after(n);
        graphi_graph *copy = NULL;
        graphi_status status = graph_clone(g, &copy);
        if (status == GRAPHI_OK)
            status = passes_run(copy, &options);
        mem_fail_after(-1);
        passed = status == GRAPHI_OK;
        assert_true(passed || status == GRAPHI_MEMORY);
        graphi_graph_destroy(copy);
    }
    assert_true(passed);
    graphi_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_keeps_results),
        cmocka_unit_test(simple_rewrites_happen),
        cmocka_unit_test(one_number_is_no_array),
        cmocka_unit_test(product_passes_keep_results),
        cmocka_unit_test(products_take_their_form),
        cmocka_unit_test(sums_over_rows_join_kept_terms),
        cmocka_unit_test(weights_of_fixed_and_bounded_rows),
        cmocka_unit_test(steps_share_transposed_weights),
        cmocka_unit_test(gates_are_made_again),
        cmocka_unit_test(what_follows_from_a_kept_array_is_made_again),
        cmocka_unit_test(work_grows_with_the_graph),
        cmocka_unit_test(switches_are_checked),
        cmocka_unit_test(selection_drops_updates),
        cmocka_unit_test(order_is_checked),
        cmocka_unit_test(passes_survive_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
