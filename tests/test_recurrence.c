/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: the loop operation against unrolled graphs bit for bit, its gradients against the unrolled ones and
 * central differences, sequences of many lengths against each by itself, every width against one thread, the plain
 * kernels against those of the instruction sets, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recurrent_networks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sums in another order, a contracted product, a gate in another place: the forms would round otherwise. */
static void lowerings_have_the_same_bits(void **state)
{
    for (int f = 0; f < FORMS; f++)
        for (int b = 0; b < 3; b++) {
            struct network n = network_of(&forms[f], batches[b], STEPS, false, false);
            struct results loop = run_network(&n, 1, NULL, NULL);
            for (n.options.lowering = GRAPHI_LOWERING_ACROSS; n.options.lowering < GRAPHI_LOWERINGS;
                 n.options.lowering++) {
                char what[96];
                snprintf(what, sizeof what, "%s, batch %d, %s", forms[f].name, (int)batches[b],
                         graphi_lowering_name(n.options.lowering));
                struct results unrolled = run_network(&n, 1, NULL, NULL);
                same_bits(&loop, &unrolled, what);
                free_results(&unrolled);
            }
            free_results(&loop);
        }
}

/* A gradient that is missing, belongs to another gate, or is added up wrongly. */
static void gradients_are_those_of_the_unrolled_network(void **state)
{
    for (int f = 0; f < FORMS; f++)
        for (int b = 0; b < 3; b++) {
            struct network n = network_of(&forms[f], batches[b], STEPS, false, true);
            struct results loop = run_network(&n, 1, NULL, NULL);
            n.options.lowering = GRAPHI_LOWERING_ACROSS;
            struct results unrolled = run_network(&n, 1, NULL, NULL);
            close_numbers(&loop, &unrolled, 2e-5, forms[f].name);
            free_results(&loop);
            free_results(&unrolled);
        }
}

/* A member that reads what another has not written yet, or shares that are not the same in every step. */
static void widths_have_the_same_bits(void **state)
{
    graphi_machine *own = machine;
    machine = six_cores();
    for (int f = 0; f < FORMS; f++) {
        struct network n = network_of(&forms[f], 3, 7, false, true);
        struct results one = run_network(&n, 1, NULL, NULL);
        for (int width = 2; width <= 6; width += 2) {
            struct results more = run_network(&n, width, NULL, NULL);
            same_bits(&more, &one, forms[f].name);
            free_results(&more);
        }
        free_results(&one);
    }
    graphi_machine_destroy(machine);
    machine = own;
}

static void plain_kernels_agree(void **state)
{
    for (int f = 0; f < FORMS; f++) {
        struct network n = network_of(&forms[f], 8, STEPS, false, true);
        struct results own = run_network(&n, 1, NULL, NULL), plain = run_network(&n, 1, "plain", NULL);
        close_numbers(&own, &plain, 5e-5, forms[f].name);
        free_results(&own);
        free_results(&plain);
    }
}

/* Rows of one sequence by itself: y and last states of sequence `at`, alone in a batch, with its rows and states. */
static void check_alone(const struct form *form, const int32_t *lengths, int64_t batch, int64_t at,
                        const struct results *together)
{
    struct network n = network_of(form, 1, lengths[at], false, false);
    struct session s = open_session(&n, 1, NULL);
    const int64_t units = form->options.units, wide = units * (form->options.bidirectional ? 2 : 1);
    float x[STEPS * FEATURES], all[STEPS * 8 * FEATURES], h[8 * 144];
    fill_input("x", all, STEPS * batch * FEATURES);
    for (int64_t t = 0, offset = 0; t < lengths[at]; t++) {
        memcpy(x + t * FEATURES, all + (offset + at) * FEATURES, sizeof(float) * FEATURES);
        for (int64_t i = 0; i < batch; i++)
            offset += lengths[i] > t;
    }
    check_ok(graphi_run_set(s.run, "x", GRAPHI_F32, x, sizeof(float) * FEATURES * (size_t)lengths[at]));
    graphi_port port;
    for (int i = 0; graphi_graph_at(s.graph, GRAPHI_PORT_INPUT, i, &port); i++)
        if (strcmp(port.name, "x")) {
            fill_input(port.name, h, batch * units);
            check_ok(graphi_run_set(s.run, port.name, GRAPHI_F32, h + at * units, sizeof(float) * (size_t)units));
        }
    check_ok(graphi_run_execute(s.run));
    struct results alone = collect(&s, -1);
    for (int64_t t = 0, offset = 0; t < lengths[at]; t++) {
        if (memcmp(result(&alone, "y") + t * wide, result(together, "y") + (offset + at) * wide,
                   sizeof(float) * (size_t)wide))
            fail_msg("%s: step %d of sequence %d is another than alone", form->name, (int)t, (int)at);
        for (int64_t i = 0; i < batch; i++)
            offset += lengths[i] > t;
    }
    for (int i = 0; i < alone.count; i++)
        if (strncmp(alone.name[i], "last_", 5) == 0 &&
            memcmp(alone.data[i], result(together, alone.name[i]) + at * units, sizeof(float) * (size_t)units))
            fail_msg("%s: %s of sequence %d is another than alone", form->name, alone.name[i], (int)at);
    free_results(&alone);
    close_session(&s);
}

/* Sequences of many lengths, none of them of no steps: each as if it were alone. */
static void lengths_are_as_each_by_itself(void **state)
{
    static const int32_t lengths[] = {5, 5, 3, 2, 1};
    for (int f = 0; f < FORMS; f++) {
        struct network n = network_of(&forms[f], 5, STEPS, true, false);
        struct results together = run_network(&n, 2, NULL, lengths);
        for (int64_t i = 0; i < 5; i++)
            check_alone(&forms[f], lengths, 5, i, &together);
        free_results(&together);
    }
}

/* Last states of a sequence of no steps are zeros, initial ones are not passed through (as ONNX Runtime 1.32.0). */
static void a_sequence_of_no_steps_has_zeros(void **state)
{
    static const int32_t lengths[] = {4, 0, 0};
    for (int f = 0; f < FORMS; f++) {
        struct network n = network_of(&forms[f], 3, STEPS, true, false);
        struct results r = run_network(&n, 1, NULL, lengths);
        for (int i = 0; i < r.count; i++)
            for (int64_t k = n.options.units; strncmp(r.name[i], "last_", 5) == 0 && k < r.size[i]; k++)
                assert_true(r.data[i][k] == 0);
        free_results(&r);
    }
}

/* Central differences of the loss over some elements of every parameter and state, lengths differ. */
static double loss_of(struct session *s, const int32_t *lengths, int64_t batch, const char *input, int64_t at,
                      float step)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < batch; i++)
        rows += lengths[i];
    execute(s, lengths, batch);
    if (input) {
        float data[8 * 144];
        fill_input(input, data, batch * 144);
        data[at] += step;
        graphi_port port;
        for (int i = 0; graphi_graph_at(s->graph, GRAPHI_PORT_INPUT, i, &port); i++)
            if (strcmp(port.name, input) == 0)
                check_ok(graphi_run_set(s->run, input, GRAPHI_F32, data, port.bytes));
        check_ok(graphi_run_execute(s->run));
    }
    float loss;
    check_ok(graphi_run_get(s->run, "loss", GRAPHI_F32, &loss, sizeof loss));
    return loss;
}

static void check_slope(const char *form, const char *name, int64_t at, double slope, double gradient)
{
    if (fabs(slope - gradient) > 0.02 * fmax(1, fmax(fabs(slope), fabs(gradient))))
        fail_msg("%s: d loss / d %s[%d] is %g, by differences %g", form, name, (int)at, gradient, slope);
}

static void check_parameter(struct session *s, const char *form, const graphi_port *port, const int32_t *lengths,
                            int64_t batch, const struct results *r)
{
    const float h = 1e-2f;
    char name[80];
    snprintf(name, sizeof name, "d %s", port->name);
    float *data = malloc(port->bytes), kept;
    const int64_t count = (int64_t)(port->bytes / sizeof(float));
    check_ok(graphi_state_get(s->state, port->name, data, port->bytes));
    for (int64_t at = 0; at < count; at += count / 5 + 1) {
        double loss[2];
        kept = data[at];
        for (int side = 0; side < 2; side++) {
            data[at] = kept + (side ? h : -h);
            check_ok(graphi_state_set(s->state, port->name, data, port->bytes));
            loss[side] = loss_of(s, lengths, batch, NULL, 0, 0);
        }
        data[at] = kept;
        check_slope(form, port->name, at, (loss[1] - loss[0]) / (2 * (double)h), result(r, name)[at]);
    }
    check_ok(graphi_state_set(s->state, port->name, data, port->bytes));
    free(data);
}

static void gradients_are_those_of_differences(void **state)
{
    static const int32_t lengths[] = {5, 3, 3, 1};
    for (int f = 0; f < FORMS; f++) {
        if (forms[f].options.units > 40 || forms[f].options.relu)
            continue;
        struct network n = network_of(&forms[f], 4, STEPS, true, true);
        struct session s = open_session(&n, 1, NULL);
        execute(&s, lengths, 4);
        struct results r = collect(&s, 12);
        graphi_port port;
        for (int i = 0; graphi_graph_at(s.graph, GRAPHI_PORT_PARAMETER, i, &port); i++)
            check_parameter(&s, forms[f].name, &port, lengths, 4, &r);
        for (int i = 0; graphi_graph_at(s.graph, GRAPHI_PORT_INPUT, i, &port); i++) {
            char name[80];
            snprintf(name, sizeof name, "d %s", port.name);
            if (port.name[0] != 'h' && port.name[0] != 'c')
                continue;
            for (int64_t at = 0; at < 4 * n.options.units; at += n.options.units + 3)
                check_slope(
                    forms[f].name, port.name, at,
                    (loss_of(&s, lengths, 4, port.name, at, 1e-2f) - loss_of(&s, lengths, 4, port.name, at, -1e-2f)) /
                        2e-2,
                    result(&r, name)[at]);
        }
        free_results(&r);
        close_session(&s);
    }
}

/* Attributes that layers do not set: each with its functions, of which the first derivatives are continuous almost
 * everywhere. */
static const struct variant {
    const char *name, *kind;
    int gates;
    int64_t functions[3], peepholes, input_forget, reset_after, reverse;
    double clip;
} variants[] = {
    {"peepholes", "lstm", 4, {GRAPHI_SIGMOID, GRAPHI_TANH, GRAPHI_TANH}, 1, 0, 0, 0, 0},
    {"peepholes and input_forget, backward", "lstm", 4, {GRAPHI_SIGMOID, GRAPHI_SOFTSIGN, GRAPHI_ELU}, 1, 1, 0, 1, 0},
    {"clip", "lstm", 4, {GRAPHI_SIGMOID, GRAPHI_TANH, GRAPHI_TANH}, 0, 0, 0, 0, 0.7},
    {"hard sigmoid", "lstm", 4, {GRAPHI_HARD_SIGMOID, GRAPHI_SOFTPLUS, GRAPHI_AFFINE}, 0, 0, 0, 0, 0},
    {"softplus", "gru", 3, {GRAPHI_SIGMOID, GRAPHI_SOFTPLUS}, 0, 0, 0, 0, 0},
    {"leaky", "gru", 3, {GRAPHI_SIGMOID, GRAPHI_LEAKY_RELU}, 0, 0, 1, 1, 0},
    {"scaled tanh", "rnn", 1, {GRAPHI_SCALED_TANH}, 0, 0, 0, 0, 0},
    {"thresholded", "rnn", 1, {GRAPHI_THRESHOLDED_RELU}, 0, 0, 0, 0, 2},
};

static graphi_graph *build_variant(const struct variant *v)
{
    const int64_t units = 18, all = v->gates * units;
    const bool lstm = v->gates == 4, gru = v->gates == 3;
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const graphi_initializer init = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.4, .b = 0.4};
    graphi_value in[7] = {graphi_parameter(g, "x", GRAPHI_F32, 2, (int64_t[]){BATCH * 4, all}, &init),
                          graphi_parameter(g, "u", GRAPHI_F32, 2, (int64_t[]){units, all}, &init),
                          graphi_parameter(g, "b", GRAPHI_F32, 1, &all, &init),
                          graphi_parameter(g, "h0", GRAPHI_F32, 2, (int64_t[]){BATCH, units}, &init)};
    int count = 4;
    if (lstm)
        in[count++] = graphi_parameter(g, "c0", GRAPHI_F32, 2, (int64_t[]){BATCH, units}, &init);
    if (gru && v->reset_after)
        in[count++] = graphi_parameter(g, "inner", GRAPHI_F32, 1, &units, &init);
    if (v->peepholes)
        in[count++] = graphi_parameter(g, "peepholes", GRAPHI_F32, 2, (int64_t[]){3, units}, &init);
    const graphi_attribute attributes[] = {{"units", GRAPHI_INT, units, 0, NULL, 0},
                                           {"functions", GRAPHI_INTS, 0, 0, v->functions,
                                            lstm  ? 3
                                            : gru ? 2
                                                  : 1},
                                           {"peepholes", GRAPHI_INT, v->peepholes, 0, NULL, 0},
                                           {"input_forget", GRAPHI_INT, v->input_forget, 0, NULL, 0},
                                           {"reset_after", GRAPHI_INT, v->reset_after, 0, NULL, 0},
                                           {"reverse", GRAPHI_INT, v->reverse, 0, NULL, 0},
                                           {"clip", GRAPHI_FLOAT, 0, v->clip, NULL, 0}};
    graphi_value y = graphi_op(g, v->kind, count, in, 7, attributes);
    float weight[18];
    uint64_t seed = 3;
    for (int i = 0; i < units; i++)
        weight[i] = number(&seed);
    graphi_value factor = graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){1, units}, weight);
    graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, y, factor), NULL, 0, 0);
    graphi_output(g, "loss", loss);
    graphi_port port;
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_PARAMETER, i, &port); i++) {
        graphi_value wrt = graphi_find(g, port.name), gradient;
        char name[80];
        graphi_gradients(g, loss, 1, &wrt, &gradient);
        snprintf(name, sizeof name, "d %s", port.name);
        graphi_output(g, name, gradient);
    }
    check_ok(graphi_graph_status(g));
    return g;
}

/* A derivative of another function, a peephole of another gate, what was clipped that lets a gradient through. */
static void attributes_have_gradients_of_differences(void **state)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        struct session s = open_graph(build_variant(&variants[i]), 1, NULL);
        execute(&s, NULL, 0);
        struct results r = collect(&s, -1);
        graphi_port port;
        for (int k = 0; graphi_graph_at(s.graph, GRAPHI_PORT_PARAMETER, k, &port); k++)
            check_parameter(&s, variants[i].name, &port, NULL, 0, &r);
        free_results(&r);
        close_session(&s);
    }
}

/* What an operation refuses when it is added, and what an execution finds in its data. */
static void what_is_wrong_is_refused(void **state)
{
    static const int32_t rising[] = {2, 3}, beyond[] = {STEPS + 1, 1}, few[] = {2, 1};
    struct network n = network_of(&forms[0], 2, STEPS, true, false);
    struct session s = open_session(&n, 1, NULL);
    execute(&s, few, 2);
    check_ok(graphi_run_set(s.run, "lengths", GRAPHI_I32, rising, sizeof rising));
    assert_int_equal(graphi_run_execute(s.run), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found length 3 in row 1 after 2"));
    check_ok(graphi_run_set(s.run, "lengths", GRAPHI_I32, beyond, sizeof beyond));
    assert_int_equal(graphi_run_execute(s.run), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found length 6 in row 0, expected 0 to 5"));
    check_ok(graphi_run_set(s.run, "lengths", GRAPHI_I32, (int32_t[]){1, 1}, sizeof few)); /* rows of x are 3 */
    assert_int_equal(graphi_run_execute(s.run), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found lengths of 2 steps in all"));
    close_session(&s);
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){6, 4});
    const graphi_recurrent_options options = {.units = 3, .batch = 2, .lowering = GRAPHI_LOWERING_FUSED};
    assert_int_equal(graphi_lstm(g, x, NULL, NULL, GRAPHI_NONE, &options, NULL), GRAPHI_NONE);
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    graphi_graph_destroy(g);
}

/* Gates of ONNX and Keras find their places: a unit of each gate has its gate's number. */
static void weights_of_others_find_their_gates(void **state)
{
    static const struct {
        graphi_cell cell;
        graphi_weights_from from;
        float theirs[4], ours[4];
        int gates;
    } cases[] = {
        {GRAPHI_LSTM, GRAPHI_FROM_ONNX, {'i', 'o', 'f', 'c'}, {'i', 'f', 'c', 'o'}, 4},
        {GRAPHI_LSTM, GRAPHI_FROM_KERAS, {'i', 'f', 'c', 'o'}, {'i', 'f', 'c', 'o'}, 4},
        {GRAPHI_LSTM, GRAPHI_FROM_PYTORCH, {'i', 'f', 'c', 'o'}, {'i', 'f', 'c', 'o'}, 4},
        {GRAPHI_GRU, GRAPHI_FROM_ONNX, {'z', 'r', 'h'}, {'r', 'z', 'h'}, 3},
        {GRAPHI_GRU, GRAPHI_FROM_KERAS, {'z', 'r', 'h'}, {'r', 'z', 'h'}, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float b[8], w_ih[4], w_hh[4], b_ih[4], b_hh[4];
        for (int g = 0; g < cases[i].gates; g++) {
            b[g] = cases[i].theirs[g];
            b[cases[i].gates + g] = cases[i].theirs[g] + 0.5f;
        }
        const graphi_recurrent_weights weights = {cases[i].theirs, cases[i].theirs, b};
        check_ok(graphi_recurrent_convert(cases[i].cell, cases[i].from, false, 1, 1, &weights, w_ih, w_hh, b_ih, b_hh));
        const bool two = cases[i].from != GRAPHI_FROM_KERAS || cases[i].cell == GRAPHI_GRU;
        for (int g = 0; g < cases[i].gates; g++) {
            assert_true(w_ih[g] == cases[i].ours[g] && w_hh[g] == cases[i].ours[g] && b_ih[g] == cases[i].ours[g]);
            assert_true(b_hh[g] == (two ? cases[i].ours[g] + 0.5f : 0));
        }
    }
}

/* Packed and back: what was padded is zero, the rest is as it was. */
static void sequences_come_back(void **state)
{
    static const int32_t lengths[] = {1, 3, 0, 3};
    int64_t order[4], padded[4 * 3], rows[7], back[4 * 3];
    for (int64_t i = 0; i < 12; i++)
        padded[i] = i + 1;
    check_ok(graphi_sequence_sort(4, lengths, order));
    assert_memory_equal(order, ((int64_t[]){1, 3, 0, 2}), sizeof order);
    check_ok(graphi_sequence_pack(4, 3, sizeof *rows, lengths, order, padded, rows));
    assert_memory_equal(rows, ((int64_t[]){4, 10, 1, 5, 11, 6, 12}), sizeof rows);
    check_ok(graphi_sequence_unpack(4, 3, sizeof *rows, lengths, order, rows, back));
    assert_memory_equal(back, ((int64_t[]){1, 0, 0, 4, 5, 6, 0, 0, 0, 10, 11, 12}), sizeof back);
    assert_int_equal(graphi_sequence_sort(1, (int32_t[]){-1}, order), GRAPHI_INVALID);
    assert_int_equal(graphi_sequence_pack(4, 2, sizeof *rows, lengths, order, padded, rows), GRAPHI_INVALID);
    assert_int_equal(graphi_sequence_pack(4, 3, sizeof *rows, lengths, (int64_t[]){0, 1, 2, 3}, padded, rows),
                     GRAPHI_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lowerings_have_the_same_bits),
        cmocka_unit_test(gradients_are_those_of_the_unrolled_network),
        cmocka_unit_test(widths_have_the_same_bits),
        cmocka_unit_test(plain_kernels_agree),
        cmocka_unit_test(lengths_are_as_each_by_itself),
        cmocka_unit_test(a_sequence_of_no_steps_has_zeros),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(attributes_have_gradients_of_differences),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(weights_of_others_find_their_gates),
        cmocka_unit_test(sequences_come_back),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
