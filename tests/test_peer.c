/* SPDX-License-Identifier: Apache-2.0 */
/* The children that `graphi bench frameworks` asks for steps, played by shell scripts, and the comparison of gradients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a benchmark decides is private to its file. */
int policies_main(int argc, char **argv);
#define main policies_main
#include "policies.c"
#undef main

#include "frameworks/ours.h"
#include "frameworks/peer.h"
#include "base/random.h"
#include "folder.h"
#include "interval.h"
#include "rates.h"
#include "tool/command_line.h"

/* Runs `script` as a peer in `setting`: "sh -u FILE" stands in for "python -u FILE", so $ expansions must be set. */
static void play_in(struct peer *peer, const char *script, const char *setting)
{
    struct folder folder;
    folder_make(&folder);
    assert_true(peer_start(peer, "/bin/sh", folder_write(&folder, "peer.sh", script, strlen(script)), setting));
    json_t *ready = peer_ask(peer, json_object(), 10);
    folder_remove(&folder); /* it is being read */
    assert_non_null(ready);
    json_decref(ready);
}

static void play(struct peer *peer, const char *script)
{
    play_in(peer, script, NULL);
}

static json_t *ask(struct peer *peer, double seconds)
{
    return peer_ask(peer, json_pack("{s:s}", "cmd", "step"), seconds);
}

/* Answers would belong to the wrong request, or long ones be cut, without the framing by lines. */
static void answers_in_turn(void **state)
{
    (void)state;
    struct peer peer;
    play(&peer, "read x; echo '{\"ok\":true}'\n"
                "read x; printf '{\"ok\":true,\"long\":\"%100000s\"}\\n' a\n"
                "read x; printf '{\"ok\":'; sleep 0.1; echo 'true,\"n\":7}'\n");
    json_t *answer = ask(&peer, 10);
    assert_int_equal(json_string_length(json_object_get(answer, "long")), 100000);
    json_decref(answer);
    answer = ask(&peer, 10);
    assert_int_equal(json_integer_value(json_object_get(answer, "n")), 7);
    json_decref(answer);
    peer_stop(&peer);
}

/* A row would have no reason, or the benchmark would wait for ever, without these. */
static void failures_have_reasons(void **state)
{
    (void)state;
    struct peer peer;
    play(&peer, "read x; echo '{\"ok\":true}'\n"
                "read x; echo '{\"ok\":false,\"error\":\"no such network\"}'\n"
                "read x; echo 'Traceback' >&2; echo 'MemoryError: too much' >&2\n");
    assert_null(ask(&peer, 10));
    assert_string_equal(peer.reason, "no such network");
    assert_null(ask(&peer, 10));
    assert_string_equal(peer.reason, "ended: MemoryError: too much");
    assert_null(ask(&peer, 10)); /* the pipe is closed: no signal ends us */
    peer_stop(&peer);
}

/* A peer that the system killed for its memory says nothing itself. */
static void killed_peers_have_a_reason(void **state)
{
    (void)state;
    struct peer peer;
    play(&peer, "read x; echo '{\"ok\":true}'\nread x; kill -9 $$\n");
    assert_null(ask(&peer, 10));
    assert_string_equal(peer.reason, "ended by signal 9: ");
    peer_stop(&peer);
}

/* --quick leaves out what is late: the wait ends, and stopping ends the child and its own children. */
static void late_peers_are_stopped(void **state)
{
    (void)state;
    struct peer peer;
    play(&peer, "read x; echo '{\"ok\":true}'\nread x; mkdir $TMPDIR/cache; sleep 1000 & sleep 1000\n");
    assert_null(ask(&peer, 0.2));
    assert_true(peer.late);
    char folder[64];
    strcpy(folder, peer.folder);
    assert_int_equal(access(folder, F_OK), 0);
    peer_stop(&peer);
    assert_int_not_equal(access(folder, F_OK), 0);
}

static const char says_tunables[] = "read x; echo '{\"ok\":true}'\nread x; echo "
                                    "\"{\\\"ok\\\":true,\\\"tunables\\\":\\\"${GLIBC_TUNABLES-}\\\"}\"\n";

/* Rows `... pages` would repeat the others: the allocator is told by its environment, before the program begins. */
static void pages_reach_the_allocator(void **state)
{
    static const struct {
        const char *setting;
        bool kept;
    } cases[] = {{"operations pages", true},
                 {"pages", true},
                 {"layers pages x", true},
                 {"twopages pagesx", false},
                 {NULL, false}};
    (void)state;
    unsetenv("GLIBC_TUNABLES");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer peer;
        play_in(&peer, says_tunables, cases[i].setting);
        json_t *answer = ask(&peer, 10);
        const char *tunables = json_string_value(json_object_get(answer, "tunables"));
        assert_non_null(tunables);
        assert_true((strstr(tunables, "mmap_max=0") && strstr(tunables, "hugetlb=1")) == cases[i].kept);
        json_decref(answer);
        peer_stop(&peer);
    }
}

/* Settings of the user's C library would be lost to those of `pages`. */
static void pages_leave_other_tunables(void **state)
{
    struct peer peer;
    (void)state;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=7", 1);
    play_in(&peer, says_tunables, "pages");
    json_t *answer = ask(&peer, 10);
    const char *tunables = json_string_value(json_object_get(answer, "tunables"));
    assert_non_null(tunables);
    assert_true(strstr(tunables, "glibc.malloc.tcache_count=7:") == tunables &&
                strstr(tunables, ":glibc.malloc.mmap_max=0:"));
    json_decref(answer);
    peer_stop(&peer);
    unsetenv("GLIBC_TUNABLES");
}

/* The ratio over PyTorch eager would be one over what it compiled or traced before. */
static void eager_is_neither_compiled_nor_traced(void **state)
{
    (void)state;
    static const char *const eager[] = {"defaults", "pages", "channels-last pages", "cells bfloat16"},
                             *const others[] = {"compile", "compile channels-last pages", "frozen pages",
                                                "frozen channels-last pages"};
    for (int i = 0; i < 4; i++)
        assert_true(peer_is_eager(eager[i]) && !peer_is_eager(others[i]));
}

/* A peer with other mathematics would be timed: planted are a sign, a permutation (same norm), a lacking gradient, a
 * NaN. */
static void other_mathematics_is_seen(void **state)
{
    (void)state;
    struct gradient mine[] = {{"w", 2, 0.5}, {"b", 1, 0.25}};
    struct ours ours = {.gradients = mine, .count = 2, .loss = 3};
    static const struct {
        const char *answer;
        double low, high;
    } cases[] = {
        {"{\"loss\":3,\"gradients\":{\"w\":[2,0.5],\"b\":[1,0.25]}}", 0, 0},
        {"{\"loss\":3.03,\"gradients\":{\"w\":[2,0.5],\"b\":[1,0.25]}}", 0.0099, 0.0101},
        {"{\"loss\":3,\"gradients\":{\"w\":[2,-0.5],\"b\":[1,0.25]}}", 0.49, 0.51},
        {"{\"loss\":3,\"gradients\":{\"w\":[2,0.5],\"b\":[1,0.2]}}", 0.049, 0.051},
        {"{\"loss\":3,\"gradients\":{\"w\":[2,0.5]}}", INFINITY, INFINITY},
        {"{\"loss\":3,\"gradients\":{\"w\":[2,0.5],\"c\":[1,0.25]}}", INFINITY, INFINITY},
        {"{\"loss\":null,\"gradients\":{\"w\":[2,0.5],\"b\":[1,0.25]}}", INFINITY, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[200];
        json_t *answer = json_loads(cases[i].answer, 0, NULL);
        double apart = ours_difference(&ours, answer, what, sizeof what);
        assert_true(apart >= cases[i].low && apart <= cases[i].high);
        json_decref(answer);
    }
}

/* Pairs of sorted times are no pairs: a goal was made of them after a median had sorted its samples in place. */
static void medians_leave_pairs_together(void **state)
{
    (void)state;
    const double a[] = {3, 1, 2}, b[] = {1, 2, 4};
    double first[3], second[3];
    memcpy(first, a, sizeof a);
    memcpy(second, b, sizeof b);
    struct result result = result_begin("bench", "frameworks", 0, NULL);
    json_t *row = result_row(&result, "one", "graphi");
    result_times(row, first, 3);
    assert_true(result_median(first, 3) == 2 && result_median(second, 3) == 2);
    assert_true(result_paired(first, second, 3) == 0.5);
    result_ratio(row, "other", first, second, 3);
    assert_true(json_number_value(json_object_get(json_object_get(row, "ratio"), "median")) == 0.5);
    assert_memory_equal(first, a, sizeof a);
    assert_memory_equal(second, b, sizeof b);
    result_end(&result);
}

/* A goal was judged by an interval that its ratios do not give, or looked at again and again until one was lucky: of
 * ratios whose median is the goal itself so many would have been judged, by four looks at 95 % each one in ten. */
static void intervals_are_wrong_as_often_as_they_say(void **state)
{
    enum { RUNS = 4000, FIRST = 10 };
    static const struct {
        int count, out; /* left out on each side; -1: no interval */
        double wrong;
    } expected[] = {{5, -1, 0.05},   {6, 0, 0.05},   {8, 0, 0.05},   {9, 1, 0.05},
                    {7, -1, 0.0125}, {8, 0, 0.0125}, {12, 1, 0.0125}, {1999, 955, 0.05}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        double ratio[2000];
        for (int k = 0; k < expected[i].count; k++)
            ratio[k] = 5 * k % expected[i].count; /* 0, 1, 2 … in disorder, all of them where that has no 5 */
        struct interval found = interval_of(ratio, expected[i].count, expected[i].wrong);
        if (expected[i].count % 5)
            assert_true(found.median == 0.5 * (expected[i].count - 1));
        if (expected[i].out < 0)
            assert_true(found.low == 0 && isinf(found.high) && !interval_tells(found, 1000));
        else
            assert_true(found.low == expected[i].out && found.high == expected[i].count - 1 - expected[i].out);
    }
    int judged = 0;
    for (int run = 0; run < RUNS; run++) {
        double drawn[FIRST << (LOOKS - 1)], sorted[FIRST << (LOOKS - 1)];
        bool told = false;
        for (int i = 0; i < FIRST << (LOOKS - 1); i++)
            drawn[i] = 1 + (random_philox((uint64_t)run, (uint64_t)i, 7).v[0] / 4294967296.0 - 0.5) / 8;
        for (int look = 0; look < LOOKS; look++) {
            memcpy(sorted, drawn, sizeof *sorted * (FIRST << look));
            told |= interval_tells(interval_of(sorted, FIRST << look, 0.05 / LOOKS), 1);
        }
        judged += told;
    }
    assert_true(judged > 0 && judged < 0.05 * RUNS);
}

/* After further rounds a setting that had none would be the better one: times never written would be its ratios. */
static void the_better_setting_has_all_rounds(void **state)
{
    double asked[] = {3, 3, 3}, not_asked[] = {2, 4, -1};
    struct field field = {.list = {{.ms = not_asked}, {.ms = asked}}, .uniform = 2, .rounds = 1};
    (void)state;
    assert_int_equal(best_of(&field), 0);
    field.asked[1] = true;
    field.further = 3;
    assert_int_equal(best_of(&field), 1);
}

/* Rounds that go on would begin anew, time those that the question is not about, or end before what was asked for. */
static void rounds_go_on_for_some(void **state)
{
    static char *words[] = {"graphi", "bench", "policies", "pathnet", "--batch", "2", "--image", "16", "--quiet"};
    const graphi_setting one = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1};
    const bool in[] = {true, false, true};
    struct bench bench = {0};
    struct network network;
    struct contender list[3];
    double before[3][3];
    int rounds = 0;
    (void)state;
    assert_int_equal(options_parse(sizeof words / sizeof *words, words, &bench.options), GRAPHI_OK);
    assert_int_equal(graphi_machine_create(1, &bench.machine), GRAPHI_OK);
    assert_int_equal(network_open(&bench, "pathnet", "small", NULL, &network), GRAPHI_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(contender_open(&bench, &network, "one", &one, &list[i]), GRAPHI_OK);
    assert_int_equal(bench_alternate(&bench, "all", list, 3, 0, 3, &rounds), GRAPHI_OK);
    assert_int_equal(rounds, 3);
    for (int i = 0; i < 3; i++) {
        memcpy(before[i], list[i].ms, sizeof before[i]);
        list[i].ms[3] = list[i].ms[4] = -1;
    }
    assert_int_equal(bench_rounds(&bench, "some", list, 3, in, 0, 5, BENCH_MAX_ROUNDS, &rounds), GRAPHI_OK);
    assert_int_equal(rounds, 5);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(before[i], list[i].ms, sizeof before[i]);
        assert_true((list[i].ms[3] > 0) == in[i] && (list[i].ms[4] > 0) == in[i]);
    }
    assert_int_equal(bench_rounds(&bench, "some", list, 3, in, 10, 0, 6, &rounds), GRAPHI_OK);
    assert_int_equal(rounds, 6);
    for (int i = 0; i < 3; i++)
        contender_close(&list[i]);
    network_close(&network);
    graphi_machine_destroy(bench.machine);
}

static double drift_after(struct ours *ours, struct contender *contender, int steps)
{
    double ms, drift;
    for (int i = 0; i < steps; i++)
        assert_int_equal(contender_execute(contender, &ms), GRAPHI_OK);
    assert_int_equal(contender_execute(&ours->mode[SCHEDULED], &ms), GRAPHI_OK);
    assert_int_equal(ours_drift(ours, &drift), GRAPHI_OK);
    return drift;
}

/* Steps of a further run trained the weights that peers' turns are timed beside: the row `direct` did, at the rate that
 * inputs are fed with. */
static void timed_steps_leave_the_weights(void **state)
{
    (void)state;
    enum { STEPS = 60 };
    static char *words[] = {"graphi", "bench", "frameworks", "pathnet", "--batch", "4", "--image", "16"};
    const graphi_setting one = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1};
    struct bench bench = {0};
    struct ours ours;
    struct contender timed, fed;
    assert_int_equal(options_parse(sizeof words / sizeof *words, words, &bench.options), GRAPHI_OK);
    assert_int_equal(graphi_machine_create(1, &bench.machine), GRAPHI_OK);
    graphi_machine_get_info(bench.machine, &bench.about);
    assert_int_equal(ours_open(&bench, "pathnet", "small", 0, SCHEDULED + 1, &ours), GRAPHI_OK);
    assert_int_equal(ours_check(&ours), GRAPHI_OK);
    assert_int_equal(ours_contender(&bench, &ours.network, "timed", &one, &timed), GRAPHI_OK);
    assert_true(drift_after(&ours, &timed, STEPS) < 0.001);
    assert_int_equal(contender_open(&bench, &ours.network, "fed", &one, &fed), GRAPHI_OK);
    assert_true(drift_after(&ours, &fed, STEPS) > 0.05); /* the fault, planted */
    contender_close(&fed);
    contender_close(&timed);
    ours_close(&ours);
    graphi_machine_destroy(bench.machine);
}

/* A roof that was read in a bad minute would leave rows and goals too good for ever. */
static void limits_stand_against_the_highest_roof(void **state)
{
    (void)state;
    struct result result = result_begin("bench", "frameworks", 0, NULL);
    json_t *slow = result_row(&result, "slow minute", "graphi"), *memory = result_row(&result, "memory", "graphi");
    result_rate(slow, (struct rating){.flops = 150e6, .limit_ms = 1, .roof_gflops = 150}, 1);
    result_rate(memory, (struct rating){.flops = 1e6, .limit_ms = 1}, 2);
    rates_goal(&result, "slow", 100, 90, (struct rating){.roof_gflops = 150});
    rates_goal(&result, "memory", 95, 90, (struct rating){0});
    rates_settle(&result, &(graphi_machine_info){.captured = true, .roof_gflops = 200, .bandwidth_gbs = 50});
    assert_true(fabs(json_number_value(json_object_get(slow, "fraction_of_limit")) - 0.75) < 1e-9);
    assert_true(json_number_value(json_object_get(slow, "roof_gflops")) == 200);
    assert_true(json_number_value(json_object_get(memory, "fraction_of_limit")) == 0.5);
    json_t *goal = json_array_get(result.goals, 0);
    assert_true(json_number_value(json_object_get(goal, "value")) == 75 && json_is_false(json_object_get(goal, "met")));
    assert_true(json_is_true(json_object_get(json_array_get(result.goals, 1), "met")));
    assert_true(json_array_size(result.notes) == 1);
    result_end(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_in_turn),
        cmocka_unit_test(failures_have_reasons),
        cmocka_unit_test(killed_peers_have_a_reason),
        cmocka_unit_test(late_peers_are_stopped),
        cmocka_unit_test(pages_reach_the_allocator),
        cmocka_unit_test(pages_leave_other_tunables),
        cmocka_unit_test(eager_is_neither_compiled_nor_traced),
        cmocka_unit_test(other_mathematics_is_seen),
        cmocka_unit_test(medians_leave_pairs_together),
        cmocka_unit_test(intervals_are_wrong_as_often_as_they_say),
        cmocka_unit_test(the_better_setting_has_all_rounds),
        cmocka_unit_test(rounds_go_on_for_some),
        cmocka_unit_test(timed_steps_leave_the_weights),
        cmocka_unit_test(limits_stand_against_the_highest_roof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
