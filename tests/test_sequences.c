/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to run recurrences (--sequences): all of them against the loop bit for bit, what is refused, the analytic
 * partition, and what --explain says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recurrent_networks.h"

#include "passes/sequences.h"

/* The results of a network under each way of running its recurrences, held against the loop's. */
static void check_sequences(const struct form *form, struct network n, const int32_t *lengths, int width)
{
    static const char *const ways[] = {"streamlined",       "streamlined+:1", "partitioned", "partitioned:2x1x1",
                                       "partitioned:3x2x1", "chunked:2",      "chunked:3",   "chunked:2+:2",
                                       "unrolled",          "eight",          "fused",       "across"};
    struct results usual = run_network(&n, width, NULL, lengths);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char what[160];
        snprintf(what, sizeof what, "%s, batch %d, %s%s", form->name, (int)n.batch, ways[i],
                 lengths ? ", lengths" : "");
        sequences = ways[i];
        struct results other = run_network(&n, width, NULL, lengths);
        sequences = NULL;
        same_bits(&other, &usual, what);
        free_results(&other);
    }
    free_results(&usual);
}

/* A row that two shares have or none, a chunk that begins with the wrong state, a gate that the backward pass does not
 * get: the ways to run a recurrence would differ. */
static void ways_to_run_have_the_same_bits(void **state)
{
    static const int32_t lengths[] = {5, 4, 4, 3, 1, 1, 0, 0};
    graphi_machine *own = machine;
    machine = six_cores();
    for (int f = 0; f < FORMS; f++)
        for (int b = 0; b < 3; b++) {
            struct network n = network_of(&forms[f], batches[b], STEPS, false, b > 0);
            check_sequences(&forms[f], n, NULL, 1 + b);
            n.lengths = true;
            if (batches[b] == 8)
                check_sequences(&forms[f], n, lengths, 3);
        }
    graphi_machine_destroy(machine);
    machine = own;
}

/* Sums over k in parts round otherwise, and are refused where that is not allowed. */
static void sums_in_parts_are_close(void **state)
{
    graphi_plan *plan = NULL;
    for (int f = 0; f < FORMS; f++) {
        struct network n = network_of(&forms[f], 3, STEPS, false, false);
        struct results whole = run_network(&n, 2, NULL, NULL);
        sequences = "partitioned:1x2x3";
        rounding = true;
        struct results parts = run_network(&n, 2, NULL, NULL);
        rounding = false;
        graphi_graph *g = build(&n);
        const graphi_plan_options options = {.sequences = sequences};
        sequences = NULL;
        assert_int_equal(graphi_plan_create(g, machine, &options, &plan), GRAPHI_USAGE);
        assert_non_null(strstr(graphi_message(), "rounds otherwise"));
        graphi_graph_destroy(g);
        close_numbers(&parts, &whole, 1e-5, forms[f].name);
        free_results(&whole);
        free_results(&parts);
    }
}

/* What is misspelt would be a way to run that nobody asked for. */
static void other_words_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "streamline",
                                        "chunked",
                                        "chunked:0",
                                        "chunked:2x3",
                                        "across:2",
                                        "partitioned:1x2",
                                        "partitioned:0x1x1",
                                        "fused+:2",
                                        "streamlined+:",
                                        "streamlined+:2 ",
                                        "partitioned:1x1x1+:2",
                                        "chunked:-1"};
    struct network n = network_of(&forms[0], 1, STEPS, false, false);
    graphi_graph *g = build(&n);
    graphi_plan *plan = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const graphi_plan_options options = {.sequences = wrong[i]};
        if (graphi_plan_create(g, machine, &options, &plan) != GRAPHI_USAGE || !strstr(graphi_message(), "expected"))
            fail_msg("'%s': %s", wrong[i], graphi_message());
    }
    assert_null(plan);
    graphi_graph_destroy(g);
}

/* The partition that moves least data: the paper's case of one row on 24 cores, whose best has k in two parts; and rows
 * apart where weights are small beside activations. */
static void partitions_move_the_least_data(void **state)
{
    const double h = 1024;
    struct sequences_work one = {.rows = 1, .units = h, .columns = 4 * h, .steps = 1, .cache = 1 << 20, .workers = 24};
    const double weights = 4 * 4 * h * h;
    assert_true(sequences_moved(&one, (int[]){1, 24, 1}) - weights == 4 * 32 * h);
    assert_true(sequences_moved(&one, (int[]){1, 12, 2}) - weights == 4 * 28 * h);
    int cut[3] = {0};
    sequences_partition(&one, cut);
    assert_memory_equal(cut, ((int[]){1, 24, 1}), sizeof cut);
    one.rounding = true;
    sequences_partition(&one, cut);
    assert_memory_equal(cut, ((int[]){1, 12, 2}), sizeof cut);
    struct sequences_work many = {
        .rows = 512, .units = 16, .columns = 64, .steps = 100, .cache = 1 << 20, .workers = 4};
    sequences_partition(&many, cut);
    assert_memory_equal(cut, ((int[]){4, 1, 1}), sizeof cut);
}

/* What --explain says of a recurrence: schedule, reuse, what bounds it. */
static void explanations_have_the_schedule(void **state)
{
    static const struct {
        const char *sequences, *said;
    } cases[] = {{NULL, "streamlined, 1 x"},
                 {"partitioned:2x1x1", "partitioned, 2 x 1 x 1 parts of rows, units, k, no barrier between steps"},
                 {"across", "no recurrence is one operation"}};
    struct network n = network_of(&forms[1], 3, STEPS, false, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        sequences = cases[i].sequences;
        struct session s = open_session(&n, 1, NULL);
        sequences = NULL;
        check_ok(graphi_plan_explain(s.plan, false, &text));
        if (!strstr(text, cases[i].said) || (i < 2 && !strstr(text, "a step is bound by")))
            fail_msg("'%s' is not in: %s", cases[i].said, text);
        graphi_free(text);
        close_session(&s);
    }
}

/* Recurrent weights of a state, each with the lower half of its bits rounded away. */
static void round_weights(struct session *s)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(s->graph, GRAPHI_PORT_PARAMETER, i, &port); i++) {
        if (!strstr(port.name, "weight_hh"))
            continue;
        uint32_t *bits = malloc(port.bytes);
        check_ok(graphi_state_get(s->state, port.name, bits, port.bytes));
        for (size_t k = 0; k < port.bytes / sizeof *bits; k++)
            bits[k] = (bits[k] + 0x7fff + (bits[k] >> 16 & 1)) & 0xffff0000u;
        check_ok(graphi_state_set(s->state, port.name, bits, port.bytes));
        free(bits);
    }
}

/* Weights in bfloat16 are float32 ones that were rounded: another order of sums, a panel that is read in another place
 * or rounding twice would differ. */
static void half_weights_are_rounded_ones(void **state)
{
    for (int f = 0; f < FORMS; f++)
        for (int b = 0; b < 3; b++)
            for (int plain = 0; plain < 2; plain++) {
                const struct network n = network_of(&forms[f], batches[b], STEPS, false, false);
                plan_weights = GRAPHI_BF16;
                struct session half = open_session(&n, 2, plain ? "plain" : NULL);
                plan_weights = GRAPHI_F32;
                struct session whole = open_session(&n, 1, plain ? "plain" : NULL);
                execute(&whole, NULL, n.batch);
                struct results before = collect(&whole, -1);
                round_weights(&whole);
                execute(&half, NULL, n.batch);
                execute(&whole, NULL, n.batch);
                struct results rounded = collect(&half, -1), expected = collect(&whole, -1);
                same_bits(&rounded, &expected, forms[f].name);
                assert_memory_not_equal(before.data[0], rounded.data[0], sizeof(float) * 4);
                close_numbers(&rounded, &before, 0.05, forms[f].name);
                free_results(&before);
                free_results(&rounded);
                free_results(&expected);
                close_session(&half);
                close_session(&whole);
            }
}

/* Tuning tells of each way what became of it, keeps the bits, and its plan can be stored and is found again, all
 * without leave to round otherwise. */
static void tuning_calibrates(void **state)
{
    static const char *const tried[] = {"streamlined ", "partitioned ", "chunked ", "across "};
    const char *path = "/tmp/graphi-test-sequences.plan";
    struct network n = network_of(&forms[1], 8, STEPS, false, false);
    struct session s = open_session(&n, 0, NULL), other = {0};
    execute(&s, NULL, n.batch);
    struct results before = collect(&s, -1);
    graphi_run_destroy(s.run);
    graphi_plan *plan = s.plan;
    check_ok(graphi_plan_tune(plan, s.state, &(graphi_tune_options){.seconds = 1}, &s.plan));
    graphi_plan_destroy(plan);
    char *text = NULL;
    check_ok(graphi_plan_explain(s.plan, false, &text));
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (!strstr(text, tried[i]))
            fail_msg("'%s' is not in: %s", tried[i], text);
    graphi_free(text);
    check_ok(graphi_plan_save(s.plan, path));
    check_ok(graphi_plan_load(s.graph, machine, NULL, path, &other.plan));
    remove(path);
    graphi_plan_destroy(s.plan);
    s.plan = other.plan;
    check_ok(graphi_run_create(s.plan, s.state, &s.run));
    execute(&s, NULL, n.batch);
    struct results after = collect(&s, -1);
    same_bits(&after, &before, "calibrated");
    free_results(&before);
    free_results(&after);
    close_session(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_to_run_have_the_same_bits), cmocka_unit_test(sums_in_parts_are_close),
        cmocka_unit_test(other_words_are_refused),        cmocka_unit_test(partitions_move_the_least_data),
        cmocka_unit_test(explanations_have_the_schedule), cmocka_unit_test(tuning_calibrates),
        cmocka_unit_test(half_weights_are_rounded_ones),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
