/* SPDX-License-Identifier: Apache-2.0 */
/* Training that stops and goes on: a state saved at random steps and loaded into fresh objects continues bit for bit,
 * dropout, Adam's slots and running statistics included, under any setting. */
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "graphi/graphi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "session.h"

enum { STEPS = 12, TRIALS = 6 };

static struct folder folder;
static const char *path; /* in it */

static void train(struct session *s, uint64_t until, float *losses)
{
    while (graphi_state_step(s->state) < until) {
        uint64_t step = graphi_state_step(s->state);
        losses[step] = session_step(s);
        assert_int_equal(graphi_state_step(s->state), step + 1);
    }
}

static void remember(void *context, const char *key, const char *value)
{
    if (strcmp(key, "position") == 0)
        *(int *)context = atoi(value);
}

/* Without it a training that was interrupted would end elsewhere than one that was not. */
static void resumed_training_gives_the_same_bits(void **state)
{
    static const char *const keys[] = {"position"};
    const char *values[1];
    float expected[STEPS], losses[STEPS];
    char hash[65], other[65], text[16];
    struct session s;
    session_open(&s, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}, 7);
    train(&s, STEPS, expected);
    graphi_state_sha256(s.state, hash);
    session_close(&s);
    for (int trial = 0; trial < TRIALS; trial++) {
        memset(losses, 0, sizeof losses);
        session_open(&s, (graphi_setting){.policy = (graphi_policy)(2 * trial % GRAPHI_POLICIES)}, 7);
        for (uint64_t at = 0; at < STEPS;) {
            at += 1 + random_philox(6, (uint64_t)trial, at).v[0] % 5;
            at = at < STEPS ? at : STEPS;
            train(&s, at, losses);
            snprintf(text, sizeof text, "%d", (int)at);
            values[0] = text;
            check_ok(graphi_state_save(s.state, path, 1, keys, values));
            session_close(&s); /* the process dies; the next one starts with another seed and setting */
            int position = -1;
            session_open(&s, (graphi_setting){.policy = (graphi_policy)((trial + (int)at) % GRAPHI_POLICIES)}, at + 99);
            check_ok(graphi_state_load(s.state, path, remember, &position));
            assert_int_equal(position, at);
            assert_int_equal(graphi_state_step(s.state), at);
        }
        graphi_state_sha256(s.state, other);
        assert_string_equal(hash, other);
        assert_memory_equal(expected, losses, sizeof losses);
        session_close(&s);
    }
}

/* Without it a checkpoint loaded into a session that has run already would use packed forms of the old weights. */
static void loading_into_a_used_session_continues_the_same(void **state)
{
    float expected[STEPS], losses[STEPS];
    struct session s;
    session_open(&s, (graphi_setting){0}, 7);
    train(&s, 4, expected);
    check_ok(graphi_state_save(s.state, path, 0, NULL, NULL));
    train(&s, STEPS, expected);
    for (int again = 0; again < 2; again++) {
        check_ok(graphi_state_load(s.state, path, NULL, NULL));
        assert_int_equal(graphi_state_step(s.state), 4);
        memcpy(losses, expected, sizeof losses);
        train(&s, STEPS, losses);
        assert_memory_equal(expected, losses, sizeof losses);
    }
    session_close(&s);
}

/* Without it a dropout mask would repeat in every step, or follow the batch's place instead of the sample. */
static void other_keys_give_other_masks(void **state)
{
    float first, second;
    struct session a, b;
    session_open(&a, (graphi_setting){0}, 7);
    session_open(&b, (graphi_setting){0}, 7);
    first = session_step(&a);
    second = session_step(&b);
    assert_true(first == second);
    session_close(&b);
    session_open(&b, (graphi_setting){0}, 7);
    check_ok(graphi_state_save(b.state, path, 0, NULL, NULL));
    graphi_run_set_first_sample(b.run, 0);
    static float x[PIXELS];
    int32_t labels[BATCH] = {0};
    float rate = 0, losses[3];
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i % 7) - 3;
    check_ok(graphi_run_set(b.run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_set(b.run, "labels", GRAPHI_I32, labels, sizeof labels));
    check_ok(graphi_run_set(b.run, "rate", GRAPHI_F32, &rate, sizeof rate));
    const uint64_t steps[] = {0, 1, 0}, samples[] = {0, 0, BATCH};
    for (int i = 0; i < 3; i++) { /* rate 0: the weights stay, but for the decay, which it scales too */
        graphi_state_set_step(b.state, steps[i]);
        graphi_run_set_first_sample(b.run, samples[i]);
        check_ok(graphi_run_execute(b.run));
        check_ok(graphi_run_get(b.run, "loss", GRAPHI_F32, &losses[i], sizeof losses[i]));
    }
    assert_true(losses[0] != losses[1]);
    assert_true(losses[0] != losses[2]);
    session_close(&a);
    session_close(&b);
}

/* Without it a damaged step or seed would silently continue another training. */
static void damaged_numbers_are_refused(void **state)
{
    static const char *const edits[][2] = {{"\"graphi.step\":\"1\"", "\"graphi.step\":\"-\""},
                                           {"\"graphi.step\":\"1\"", "\"graphi.step\":\" \""},
                                           {"\"graphi.seed\":\"77\"", "\"graphi.seed\":\"-7\""},
                                           {"\"graphi.seed\":\"77\"", "\"graphi.seed\":\" 7\""},
                                           {"\"graphi.seed\":\"77\"", "\"graphi.seed\":\"7x\""}};
    struct session s;
    char before[65], after[65];
    void *data;
    size_t size;
    session_open(&s, (graphi_setting){0}, 77);
    (void)session_step(&s);
    graphi_state_sha256(s.state, before);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        check_ok(graphi_state_save(s.state, path, 0, NULL, NULL));
        check_ok(file_read(path, 1 << 24, &data, &size));
        char *at = memmem(data, size, edits[i][0], strlen(edits[i][0]));
        assert_non_null(at);
        memcpy(at, edits[i][1], strlen(edits[i][1]));
        check_ok(file_replace(path, data, size));
        mem_free(data);
        if (graphi_state_load(s.state, path, NULL, NULL) != GRAPHI_INVALID)
            fail_msg("%s was taken", edits[i][1]);
        graphi_state_sha256(s.state, after);
        assert_string_equal(before, after);
    }
    session_close(&s);
}

/* A graph with one parameter. */
static graphi_state *state_of(const char *name, graphi_dtype dtype, int rank, const int64_t *dims, double value)
{
    graphi_graph *g;
    graphi_state *s;
    check_ok(graphi_graph_create(&g));
    graphi_parameter(g, name, dtype, rank, dims, &(graphi_initializer){.kind = GRAPHI_INIT_CONSTANT, .a = value});
    check_ok(graphi_state_create(g, 3, &s));
    graphi_graph_destroy(g);
    return s;
}

/* Bytes of another type or shape, as many as are wanted, would be taken for numbers. What evaluation carries from batch
 * to batch need not be there, and stays where it is of another shape. */
static void parameters_are_those_of_the_file(void **state)
{
    static const int64_t four[] = {4}, square[] = {2, 2}, five[] = {5};
    static const struct {
        const char *name;
        graphi_dtype dtype;
        int rank;
        const int64_t *dims;
        graphi_status status;
        int32_t first; /* of a 4 in the file */
    } cases[] = {{"w", GRAPHI_I32, 1, four, GRAPHI_OK, 4},           {"w", GRAPHI_F32, 1, four, GRAPHI_INVALID, 0},
                 {"w", GRAPHI_I32, 2, square, GRAPHI_INVALID, 0},    {"w", GRAPHI_I32, 1, five, GRAPHI_INVALID, 0},
                 {"v", GRAPHI_I32, 1, four, GRAPHI_INVALID, 0},      {"eval/v", GRAPHI_I32, 1, four, GRAPHI_OK, 0},
                 {"evaluated", GRAPHI_I32, 1, four, GRAPHI_INVALID, 0}};
    for (int carried = 0; carried < 2; carried++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char name[32];
            int32_t found[5];
            const bool of_file = strcmp(cases[i].name, "w") == 0;
            graphi_state *s = state_of(carried ? "eval/w" : "w", GRAPHI_I32, 1, four, 4);
            check_ok(graphi_state_save(s, path, 0, NULL, NULL));
            graphi_state_destroy(s);
            snprintf(name, sizeof name, "%s%s", carried && of_file ? "eval/" : "", cases[i].name);
            s = state_of(name, cases[i].dtype, cases[i].rank, cases[i].dims, 0);
            const size_t bytes = 4 * (size_t)(cases[i].dims[0] * (cases[i].rank == 2 ? cases[i].dims[1] : 1));
            if (graphi_state_load(s, path, NULL, NULL) != (carried && of_file ? GRAPHI_OK : cases[i].status))
                fail_msg("%s, case %zu: %s", name, i, graphi_message());
            check_ok(graphi_state_get(s, name, found, bytes));
            assert_int_equal(found[0], cases[i].first);
            graphi_state_destroy(s);
        }
}

/* Files of other programs have masks, positions and scales beside the weights, of types that no parameter has. */
static void what_nobody_asks_for_is_left(void **state)
{
    static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                 "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[4,7]},"
                                 "\"new\":{\"dtype\":\"F4\",\"shape\":[1,1,1,1,1,1,1,2],\"data_offsets\":[7,8]}}";
    static const struct {
        const char *name, *message;
        graphi_status status;
    } cases[] = {{"w", NULL, GRAPHI_OK},
                 {"mask", "found parameter 'mask' as bool[3], expected float32[1]", GRAPHI_INVALID},
                 {"new", "found parameter 'new' of type F4, expected float32[1]", GRAPHI_UNSUPPORTED}};
    const uint64_t length = sizeof header - 1;
    const float two = 2;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(&length, sizeof length, 1, file);
    fwrite(header, length, 1, file);
    fwrite(&two, sizeof two, 1, file);
    fwrite("abcd", 4, 1, file);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_state *s = state_of(cases[i].name, GRAPHI_F32, 1, (int64_t[]){1}, 1);
        float found;
        if (graphi_state_load(s, path, NULL, NULL) != cases[i].status)
            fail_msg("another status, with %s", graphi_message());
        if (cases[i].message)
            assert_non_null(strstr(graphi_message(), cases[i].message));
        check_ok(graphi_state_get(s, cases[i].name, &found, sizeof found));
        assert_true(found == (cases[i].message ? 1 : two));
        graphi_state_destroy(s);
    }
}

/* More strings than the header promises would be written beyond the list of them. */
static void strings_are_counted(void **state)
{
    enum { MOST = 64 };
    static const int64_t four[] = {4};
    char text[MOST + 1][16];
    const char *keys[MOST + 1];
    for (int i = 0; i <= MOST; i++) {
        snprintf(text[i], sizeof text[i], "k%d", i);
        keys[i] = text[i];
    }
    graphi_state *s = state_of("w", GRAPHI_F32, 1, four, 0);
    check_ok(graphi_state_save(s, path, MOST, keys, keys));
    assert_int_equal(graphi_state_save(s, path, MOST + 1, keys, keys), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found 65 further strings, expected 0 to 64"));
    assert_int_equal(graphi_state_save(s, path, -1, keys, keys), GRAPHI_INVALID);
    graphi_state_destroy(s);
}

/* Whoever makes a network of a file's kind has no state of it yet. */
static void strings_are_read_without_a_state(void **state)
{
    static const char *const keys[] = {"position"}, *const values[] = {"12"};
    struct session s;
    int position = -1;
    session_open(&s, (graphi_setting){0}, 7);
    check_ok(graphi_state_save(s.state, path, 1, keys, values));
    session_close(&s);
    check_ok(graphi_state_load(NULL, path, remember, &position));
    assert_int_equal(position, 12);
    check_ok(file_replace(path, "\x10\0\0\0\0\0\0\0{", 9));
    assert_int_equal(graphi_state_load(NULL, path, remember, &position), GRAPHI_INVALID);
}

static int setup(void **state)
{
    folder_make(&folder);
    path = folder_name(&folder, "checkpoint");
    return open_machine(state);
}

static int teardown(void **state)
{
    folder_remove(&folder);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_training_gives_the_same_bits),
        cmocka_unit_test(loading_into_a_used_session_continues_the_same),
        cmocka_unit_test(other_keys_give_other_masks),
        cmocka_unit_test(damaged_numbers_are_refused),
        cmocka_unit_test(parameters_are_those_of_the_file),
        cmocka_unit_test(what_nobody_asks_for_is_left), cmocka_unit_test(strings_are_counted),
        cmocka_unit_test(strings_are_read_without_a_state),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
