/* SPDX-License-Identifier: Apache-2.0 */
/* What a careless or hostile caller does to the public API: sizes near the limits of integers, attributes out of range,
 * failing kernels in any member of a team, damaged plan files, a locale with decimal commas, two writers of one file.
 */
#include "base/file.h"
#include "base/memory.h"
#include "graphi/graphi.h"
#include "kernels/conv.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

/* Sanitizers, where they are linked in, give no memory as malloc does instead of ending the process. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static struct folder folder;
static const char *path; /* in it */

static graphi_graph *new_graph(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    return g;
}

static graphi_plan *plan_of(const graphi_graph *g)
{
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    return plan;
}

/* --- sizes --- */

typedef graphi_value (*builder)(graphi_graph *g, graphi_value x, graphi_value w, int64_t n);

static graphi_value conv(graphi_graph *g, graphi_value x, graphi_value w, int64_t stride, int64_t pad, int64_t dilation)
{
    return graphi_conv2d(g, x, w, GRAPHI_LIST(stride, stride), GRAPHI_LIST(pad, pad, pad, pad),
                         GRAPHI_LIST(dilation, dilation), 1);
}
static graphi_value strided(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return conv(g, x, w, n, 1, 1);
}
static graphi_value padded(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return conv(g, x, w, 1, n, 1);
}
static graphi_value dilated(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return conv(g, x, w, 1, 1, n);
}
static graphi_value pooled(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return graphi_max_pool(g, x, GRAPHI_LIST(2, 2), GRAPHI_LIST(n, n), GRAPHI_LIST(0, 0, 0, 0), 1);
}
static graphi_value widened(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return graphi_pad(g, x, GRAPHI_LIST(0, n, 0, 0), GRAPHI_LIST(0, n, 0, 0), 0);
}
static graphi_value normalized(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return graphi_lrn(g, x, n, 1e-4, 0.75, 1);
}
static graphi_value expanded(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return graphi_expand(g, x, GRAPHI_LIST(2, 8, 8, 4, 4), GRAPHI_LIST(n));
}
static graphi_value filled(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    return graphi_fill(g, GRAPHI_LIST(n), 1, GRAPHI_U8);
}
static graphi_value following(graphi_graph *g, graphi_value x, graphi_value w, int64_t n)
{
    const int64_t dims[] = {2, 8, 8, 4};
    graphi_attribute a[] = {graphi_ints("dims", dims, 4), graphi_int("symbol", n)};
    return graphi_op(g, "expand", 1, &x, 2, a);
}

/* Without it sums of sizes would wrap around, and memory of another size than the kernels write would be reserved. */
static void large_numbers_are_refused(void **state)
{
    static const builder builders[] = {strided,    padded,   dilated, pooled,   widened,
                                       normalized, expanded, filled,  following};
    static const int64_t numbers[] = {INT64_MAX, INT64_MAX - 7, INT64_MAX / 2, (int64_t)1 << 45};
    for (size_t b = 0; b < sizeof builders / sizeof *builders; b++)
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            graphi_graph *g = new_graph();
            graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 8, 8, 4});
            graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, 4, 8}, NULL);
            int64_t number = builders[b] == following ? (int64_t)n : numbers[n]; /* symbols that the graph has not */
            if (builders[b](g, x, w, number) != GRAPHI_NONE)
                fail_msg("builder %zu took %lld", b, (long long)number);
            assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), "found "));
            graphi_graph_destroy(g);
        }
}

/* Without it prepared weights could be a part of those that the kernel reads: their number would wrap around to that of
 * the part. */
static void prepared_weights_are_counted(void **state)
{
    const int64_t channels = (int64_t)1 << 32, windows[][4] = {{1, 1, channels, channels + 1}, {1, 0, channels, 1}};
    graphi_graph *g;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        g = new_graph();
        graphi_value in[] = {graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){1, 1, 1, channels}),
                             graphi_parameter(g, "w", GRAPHI_F32, 1, &channels, NULL)};
        const graphi_attribute prepared[] = {graphi_int("algorithm", CONV_DIRECT),
                                             graphi_ints("window", windows[i], 4)};
        assert_int_equal(graphi_op(g, "conv2d", 2, in, 2, prepared), GRAPHI_NONE);
        assert_non_null(strstr(graphi_message(), "found a window of sizes below 1 or over 2^44 bytes in all"));
        graphi_graph_destroy(g);
    }
    g = new_graph();
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){1, 1, 2, 2}, NULL);
    const graphi_attribute grouped[] = {graphi_int("algorithm", CONV_DIRECT), graphi_int("groups", INT64_MAX)};
    assert_int_equal(graphi_op(g, "conv_pack", 1, &w, 2, grouped), GRAPHI_NONE);
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    graphi_graph_destroy(g);
}

/* Without it a window that no kernel takes would be found when the plan is made, far from where it was asked for. */
static void wide_windows_are_refused(void **state)
{
    for (int64_t side = 64; side <= 65; side++) {
        graphi_graph *g = new_graph();
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){1, 80, 80, 1});
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){1, side, 1, 1}, NULL);
        conv(g, x, w, 1, 0, 1);
        assert_int_equal(graphi_graph_status(g), side == 64 ? GRAPHI_OK : GRAPHI_UNSUPPORTED);
        graphi_graph_destroy(g);
    }
    assert_non_null(strstr(graphi_message(), "found window 1x65, expected at most 64"));
}

/* Without it the sum over many large values would overflow before memory is found to be missing. */
static void large_values_end_in_no_memory(void **state)
{
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){(int64_t)1 << 42});
    for (int i = 0; i < 64; i++)
        x = graphi_tanh(g, graphi_transpose(g, x, GRAPHI_LIST(0)));
    graphi_output(g, "y", x);
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run = NULL;
    graphi_graph_info info;
    graphi_graph_get_info(g, &info);
    assert_true(info.intermediate_bytes > 0);
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 1, &s));
    if (graphi_run_create(plan, s, &run) == GRAPHI_OK)
        fail_msg("32 TB were given");
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    g = new_graph();
    graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){(int64_t)1 << 43});
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    graphi_graph_destroy(g);
}

/* Without it the size of what a pooled convolution makes at a time would wrap around to nothing, and the product of the
 * dimensions that a batch of products broadcasts to would overflow before anybody looks at it. */
static void products_of_sizes_are_looked_at(void **state)
{
    const int64_t high = (int64_t)1 << 30, wide = (int64_t)1 << 20;
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){1, 16, wide, 1});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){1, 1, 1, 65536}, NULL);
    graphi_output(g, "y",
                  graphi_avg_pool(g, conv(g, x, w, 1, 0, 1), GRAPHI_LIST(high, wide), GRAPHI_LIST(high, wide),
                                  GRAPHI_LIST(high - 1, 0, 0, 0), 0, 1));
    check_ok(graphi_graph_status(g));
    graphi_plan *plan = plan_of(g);
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    assert_true(info.arena_bytes >= (int64_t)1 << 42); /* the image is a value: nobody has taken the pool in */
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    g = new_graph();
    graphi_value a = graphi_input(g, "a", GRAPHI_F32, 6, (int64_t[]){wide, 1, wide, 1, 1, 1});
    graphi_value b = graphi_input(g, "b", GRAPHI_F32, 6, (int64_t[]){1, wide, 1, wide, 1, 1});
    assert_true(graphi_matmul(g, a, b, 0, 0) == GRAPHI_NONE);
    assert_int_equal(graphi_graph_status(g), GRAPHI_INVALID);
    graphi_graph_destroy(g);
}

/* A product of `pairs` pairs, one left operand the first of all, with weights packed to the types given (-1: as they
 * are). */
static graphi_value sum_of_pairs(graphi_graph *g, int64_t pairs, graphi_value first, graphi_value second,
                                 int64_t one_type, int64_t other_type)
{
    const int64_t types[] = {one_type, other_type};
    graphi_value in[] = {first, GRAPHI_NONE, second, GRAPHI_NONE};
    for (int i = 0; i < 2; i++) {
        const graphi_attribute dtype = graphi_int("dtype", types[i]);
        in[2 * i + 1] = graphi_parameter(g, i ? "w1" : "w0", GRAPHI_F32, 2, (int64_t[]){64, 64}, NULL);
        if (types[i] >= 0)
            in[2 * i + 1] = graphi_op(g, "pack", 1, &in[2 * i + 1], 1, &dtype);
    }
    const graphi_attribute a[] = {graphi_int("pairs", pairs), graphi_int("packed_b", one_type >= 0)};
    return graphi_op(g, "matmul", pairs == 2 ? 4 : 2, in, 2, a);
}

/* Without it a number that is 1 in 32 bits would be one pair to the shape rule and as many as it says to a pass,
 * weights packed to two types would be read as if they were of one, and rows that one pair has would be read of the
 * other. */
static void pairs_are_as_they_say(void **state)
{
    static const struct {
        int64_t pairs, one_type, other_type;
        bool bounded, good;
    } cases[] = {{2, -1, -1, false, true},
                 {2, GRAPHI_BF16, GRAPHI_BF16, false, true},
                 {((int64_t)1 << 32) + 1, -1, -1, false, false},
                 {2, GRAPHI_BF16, GRAPHI_F32, false, false},
                 {2, GRAPHI_F32, GRAPHI_BF16, false, false},
                 {2, -1, -1, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_graph *g = new_graph();
        const int64_t rows = cases[i].bounded ? graphi_symbol(g, "rows", 8) : 8;
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){rows, 64});
        graphi_value z = graphi_input(g, "z", GRAPHI_F32, 2, (int64_t[]){8, 64});
        graphi_output(g, "y", sum_of_pairs(g, cases[i].pairs, z, x, cases[i].one_type, cases[i].other_type));
        if ((graphi_graph_status(g) == GRAPHI_OK) != cases[i].good)
            fail_msg("case %zu: %s", i, graphi_message());
        if (cases[i].good)
            graphi_plan_destroy(plan_of(g));
        graphi_graph_destroy(g);
    }
}

/* --- updates --- */

/* Without it an output that is an updated parameter would be old or new depending on which passes remove what. */
static void outputs_of_parameters_are_what_readers_see(void **state)
{
    static const char *const names[] = {"direct", "identity", "view", "assigned", "after"};
    static const float expected[] = {1, 1, 1, 2, 3};
    static const float ones[] = {1, 1, 1, 1};
    graphi_graph *g = new_graph();
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 1, (int64_t[]){4},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_CONSTANT, .a = 1});
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){4});
    graphi_output(g, "direct", p);
    graphi_output(g, "identity", graphi_identity(g, p));
    graphi_output(g, "view", graphi_reshape(g, p, GRAPHI_LIST(2, 2)));
    graphi_value assigned = graphi_assign(g, p, graphi_add(g, p, x));
    graphi_output(g, "assigned", assigned);
    graphi_output(g, "after", graphi_add(g, assigned, x));
    graphi_plan *plan = plan_of(g);
    graphi_state *s;
    graphi_run *run;
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, ones, sizeof ones));
    for (int step = 0; step < 3; step++) {
        check_ok(graphi_run_execute(run));
        for (int i = 0; i < 5; i++) {
            float found[4];
            check_ok(graphi_run_get(run, names[i], GRAPHI_F32, found, sizeof found));
            for (int k = 0; k < 4; k++)
                if (found[k] != expected[i] + (float)step)
                    fail_msg("%s: %g, expected %g", names[i], found[k], expected[i] + (float)step);
        }
    }
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* --- failing kernels --- */

enum { IDS = 4096, TABLE = 1000, DELAYS = 4, DELAY_NS = 200000, UNTOUCHED = 7 };

static graphi_value failing(graphi_graph *g, int which, graphi_value ids)
{
    static const graphi_initializer zero;
    switch (which) {
    case 0: return graphi_embedding(g, graphi_parameter(g, "t", GRAPHI_F32, 2, (int64_t[]){TABLE, 64}, &zero), ids);
    case 1: return graphi_one_hot(g, ids, TABLE);
    case 2:
        return graphi_softmax_cross_entropy(
            g, graphi_parameter(g, "t", GRAPHI_F32, 2, (int64_t[]){IDS, 10}, &zero), ids);
    default:
        return graphi_embedding_grad(g, ids, graphi_parameter(g, "t", GRAPHI_F32, 2, (int64_t[]){IDS, 64}, &zero),
                                     TABLE);
    }
}

static void fail_under(const graphi_plan *plan, graphi_state *s, graphi_setting setting)
{
    float reached;
    static int32_t ids[IDS];
    graphi_plan *other;
    graphi_run *run;
    ids[IDS - 1] = TABLE; /* the last share's: not the leader's */
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting}, &other));
    check_ok(graphi_run_create(other, s, &run));
    check_ok(graphi_run_set(run, "ids", GRAPHI_I32, ids, sizeof ids));
    assert_int_equal(graphi_run_execute(run), GRAPHI_INVALID);
    for (int i = 0; i < 3; i++)
        if (!strstr(graphi_message(), (const char *[]){"suspect", "1000", "expected"}[i]))
            fail_msg("policy %s: %s", graphi_policy_name(setting.policy), graphi_message());
    check_ok(graphi_state_get(s, "reached", &reached, sizeof reached));
    if (reached != UNTOUCHED)
        fail_msg("policy %s, width %d: went on to the end", graphi_policy_name(setting.policy), setting.width);
    memset(ids, 0, sizeof ids); /* nothing fails: it does go on */
    check_ok(graphi_run_set(run, "ids", GRAPHI_I32, ids, sizeof ids));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_state_get(s, "reached", &reached, sizeof reached));
    assert_true(reached != UNTOUCHED);
    reached = UNTOUCHED;
    check_ok(graphi_state_set(s, "reached", &reached, sizeof reached));
    graphi_run_destroy(run);
    graphi_plan_destroy(other);
}

/* Without it a failure in a member of a team would be told after all the rest of the graph had run on garbage, or under
 * the name of another operation. */
static void failures_name_their_node_and_stop_the_run(void **state)
{
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    for (int which = 0; which < 4; which++) {
        graphi_graph *g = new_graph();
        graphi_value ids = graphi_input(g, "ids", GRAPHI_I32, 1, (int64_t[]){IDS});
        graphi_scope(g, "suspect");
        graphi_value y = failing(g, which, ids);
        graphi_scope(g, "innocent");
        for (int i = 0; i < DELAYS; i++)
            y = graphi_delay(g, 1, &y, DELAY_NS);
        const graphi_initializer untouched = {.kind = GRAPHI_INIT_CONSTANT, .a = UNTOUCHED};
        graphi_assign(g, graphi_parameter(g, "reached", GRAPHI_F32, 0, NULL, &untouched),
                      graphi_reduce_sum(g, graphi_tanh(g, y), NULL, 0, false));
        graphi_plan *plan = plan_of(g);
        graphi_state *s;
        check_ok(graphi_state_create(g, 1, &s));
        for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
            for (int width = 1; width <= info.cores && width <= 2; width++)
                for (int driver = GRAPHI_DRIVER_DEDICATED; driver < GRAPHI_DRIVERS; driver++)
                    fail_under(plan, s, (graphi_setting){.policy = (graphi_policy)policy, .width = width,
                                                         .driver = (graphi_driver)driver, .executors = 1});
        graphi_state_destroy(s);
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
}

/* --- settings --- */

/* Without it more executors than cores, or numbers that are no policy, would be run somehow. */
static void senseless_settings_are_refused(void **state)
{
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    const graphi_setting settings[] = {{.executors = info.cores + 1, .width = 1},
                                       {.executors = 1, .width = info.cores + 1},
                                       {.executors = INT32_MAX, .width = INT32_MAX},
                                       {.backward_executors = info.cores + 1},
                                       {.backward_executors = -1},
                                       {.driver = GRAPHI_DRIVERS},
                                       {.policy = GRAPHI_POLICIES},
                                       {.policy = (graphi_policy)-1000000},
                                       {.executors = -1}};
    graphi_graph *g = new_graph();
    graphi_output(g, "y", graphi_tanh(g, graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){64})));
    graphi_plan *plan = plan_of(g), *other = NULL;
    graphi_state *s;
    check_ok(graphi_state_create(g, 1, &s));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const graphi_tune_options tune = {.seconds = 0.01, .setting = &settings[i]};
        assert_int_equal(graphi_plan_tune(plan, s, &tune, &other), GRAPHI_USAGE);
        if (graphi_plan_with(plan, &(graphi_plan_change){.setting = &settings[i]}, &other) != GRAPHI_USAGE)
            fail_msg("setting %zu was taken", i);
        assert_int_equal(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = settings[i]}, &other),
                         GRAPHI_USAGE);
    }
    assert_null(other);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it a request for instructions that the CPU has not would end in SIGILL. Whichever set is not there is asked
 * for. */
static void missing_instructions_are_unsupported(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512", "bf16"};
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    graphi_graph *g = new_graph();
    graphi_output(g, "y", graphi_tanh(g, graphi_input(g, "x", GRAPHI_F32, 1, (int64_t[]){64})));
    bool beyond = false;
    for (int i = 0; i < 4; i++) {
        graphi_plan *plan = NULL;
        graphi_status status = graphi_plan_create(g, machine, &(graphi_plan_options){.isa = sets[i]}, &plan);
        assert_int_equal(status, beyond ? GRAPHI_UNSUPPORTED : GRAPHI_OK);
        if (beyond)
            assert_non_null(strstr(graphi_message(), sets[i]));
        graphi_plan_destroy(plan);
        beyond = beyond || strcmp(sets[i], info.isa) == 0;
    }
    graphi_graph_destroy(g);
}

/* --- files --- */

static graphi_graph *perceptron(void)
{
    static const graphi_initializer uniform = {.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1};
    graphi_graph *g = new_graph();
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){8, 16});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){16, 16}, &uniform);
    graphi_output(g, "y", graphi_tanh(g, graphi_matmul(g, x, w, 0, 0)));
    return g;
}

/* Replaces the first `old` in the stored plan of `plan` and loads the result. */
static graphi_status load_edited(const graphi_graph *g, const graphi_plan *plan, const char *old, const char *new)
{
    void *data;
    size_t size;
    graphi_plan *loaded = NULL;
    check_ok(graphi_plan_save(plan, path));
    check_ok(file_read(path, 1 << 24, &data, &size));
    char *at = strstr(data, old), *edited = malloc(size + strlen(new) + 1);
    assert_non_null(at);
    size_t head = (size_t)(at - (char *)data);
    memcpy(edited, data, head);
    strcpy(edited + head, new);
    strcat(edited, at + strlen(old));
    check_ok(file_replace(path, edited, strlen(edited)));
    free(edited);
    mem_free(data);
    graphi_status status = graphi_plan_load(g, machine, NULL, path, &loaded);
    graphi_plan_destroy(loaded);
    return status;
}

/* Without it widths that are no numbers of threads would divide by zero, and sums of durations would overflow. */
static void senseless_curves_are_refused(void **state)
{
    graphi_graph *g = perceptron();
    graphi_plan *plan = plan_of(g);
    assert_int_equal(load_edited(g, plan, "\"why\"", "\"why\""), GRAPHI_OK);
    static const struct {
        const char *old, *new;
        graphi_status status;
        const char *words;
    } edits[] = {{"\"setting\": {", "\"setting\": 3, \"s\": {", GRAPHI_INVALID, "an object"},
                 {"\"policy\": \"", "\"policy\": \"x", GRAPHI_INVALID, "the name of a policy"},
                 {"\"executors\": ", "\"executors\": 4444, \"e\": ", GRAPHI_INVALID, "fit the machine"},
                 {"\"rounding\": \"", "\"rounding\": \"x", GRAPHI_INVALID, "names of forms"},
                 {"\"graph\": \"", "\"graph\": \"x", GRAPHI_REFUSED, "graph"},
                 {"\"version\": \"", "\"version\": \"9", GRAPHI_REFUSED, "version 9"},
                 {"\"machine\": \"", "\"machine\": \"0123456789abcdef\", \"m\": \"", GRAPHI_REFUSED, "machine"},
                 {"\"options\": \"", "\"options\": \"0123456789abcdef\", \"o\": \"", GRAPHI_REFUSED, "options"},
                 {"\"key\": \"", "\"key\": \"x", GRAPHI_INVALID, ": curves[0]: key \"key\""},
                 {"\"key\": \"", "\"key\": \"0123456789abcdef\", \"k\": \"", GRAPHI_REFUSED, "another kernel"},
                 {"\"source\": \"", "\"source\": \"x", GRAPHI_INVALID, "modelled, measured, stored or predicted"},
                 {"\"model\": \"", "\"model\": \"x", GRAPHI_INVALID, "none where nothing did"}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        graphi_status status = load_edited(g, plan, edits[i].old, edits[i].new);
        if (status != edits[i].status || !strstr(graphi_message(), edits[i].words))
            fail_msg("found \"%s\", expected \"%s\"", graphi_message(), edits[i].words);
    }
    static const char tried[] = "\"tried\": [\n  ]";
    static const char setting[] =
        "{\"setting\": {\"policy\": \"fifo\", \"driver\": 2, \"seed\": 0, \"executors\": 1, \"width\": 1, "
        "\"backward_executors\": 0, \"depth\": 1, \"no_inline\": 0, \"light\": 0, \"join\": 0, \"candidates\": 0, "
        "\"tolerance\": 0, \"uniform\": 0, \"keep_uniform\": 0, \"unpinned\": 0}";
    static const struct {
        const char *rest;
        graphi_status status;
    } trials[] = {{", \"chosen\": true, \"predicted_ns\": 5, \"ms\": [1, 2]}", GRAPHI_OK},
                  {", \"chosen\": false, \"predicted_ns\": 5, \"ms\": []}", GRAPHI_OK},
                  {", \"chosen\": true, \"predicted_ns\": -5, \"ms\": []}", GRAPHI_INVALID},
                  {", \"chosen\": true, \"predicted_ns\": 5, \"ms\": [0]}", GRAPHI_INVALID},
                  {", \"chosen\": true, \"predicted_ns\": 5, \"ms\": 1}", GRAPHI_INVALID},
                  {", \"chosen\": \"yes\", \"predicted_ns\": 5, \"ms\": []}", GRAPHI_INVALID},
                  {", \"predicted_ns\": 5, \"ms\": []}", GRAPHI_INVALID},
                  {", \"chosen\": true, \"ms\": []}", GRAPHI_INVALID}};
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        char list[640];
        snprintf(list, sizeof list, "\"tried\": [%s%s]", setting, trials[i].rest);
        assert_int_equal(load_edited(g, plan, tried, list), trials[i].status);
    }
    assert_int_equal(load_edited(g, plan, tried, "\"tried\": [3]"), GRAPHI_INVALID);
    assert_int_equal(load_edited(g, plan, tried, "\"tried\": 3"), GRAPHI_INVALID);
    assert_int_equal(load_edited(g, plan, tried, "\"before\": []"), GRAPHI_OK); /* of an earlier version */
    char many[1200] = "\"tried\": [";
    strcat(strcat(many, setting), ", \"predicted_ns\": 5, \"ms\": [1");
    for (int i = 0; i < 60; i++)
        strcat(many, ", 1");
    strcat(many, "]}]");
    assert_int_equal(load_edited(g, plan, tried, many), GRAPHI_INVALID); /* more rounds than a race has */
    assert_int_equal(load_edited(g, plan, "\"width\": [1", "\"width\": [1.5"), GRAPHI_INVALID);
    assert_int_equal(load_edited(g, plan, "\"ns\": [", "\"ns\": [1e17, "), GRAPHI_INVALID);
    assert_int_equal(load_edited(g, plan, "\"measured_ns\": ", "\"measured_ns\": 1e300, \"m\": "), GRAPHI_INVALID);
    assert_int_equal(load_edited(g, plan, "\"depth\": ", "\"depth\": 99999"), GRAPHI_INVALID);
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    if (info.cores > 1) { /* two equal widths after rounding */
        assert_int_equal(load_edited(g, plan, "\"width\": [1, 2", "\"width\": [1, 1.5"), GRAPHI_INVALID);
        assert_int_equal(load_edited(g, plan, "\"width\": [1, 2", "\"width\": [1, 1"), GRAPHI_INVALID);
    }
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it a plan would be taken though the one that is compiled now is another: of other kernels or another arena
 * than those whose times chose its setting. */
static void plans_of_other_options_are_refused(void **state)
{
    static const graphi_plan_options options[] = {
        {.streaming = GRAPHI_STREAM_ALWAYS}, {.streaming = GRAPHI_STREAM_NEVER}, {.arena_target = 1 << 20},
        {.check_numerics = true},            {.precision = GRAPHI_BF16},         {.conv_error = 9},
        {.outputs = "y"}};
    graphi_graph *g = perceptron();
    graphi_output(g, "z", graphi_square(g, graphi_find(g, "y")));
    graphi_plan *plan = plan_of(g), *loaded = NULL;
    check_ok(graphi_plan_save(plan, path));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        assert_int_equal(graphi_plan_load(g, machine, &options[i], path, &loaded), GRAPHI_REFUSED);
        assert_non_null(strstr(graphi_message(), "options"));
    }
    assert_null(loaded);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it an application in a country of decimal commas would store plans that read back as other numbers, or as
 * none, and would refuse the schedules of the manual. */
static void files_do_not_follow_the_locale(void **state)
{
    char command[400];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", folder.path);
    bool made = system(command) == 0;
    setenv("LOCPATH", folder.path, 1);
    made = made && setlocale(LC_NUMERIC, "de_DE.UTF-8");
    unsetenv("LOCPATH");
    if (!made)
        skip(); /* no localedef here */
    graphi_graph *g = perceptron();
    graphi_plan *plan = plan_of(g), *loaded;
    graphi_plan_info a, b;
    graphi_schedule schedule;
    check_ok(graphi_plan_save(plan, path));
    check_ok(graphi_plan_load(g, machine, NULL, path, &loaded));
    check_ok(graphi_schedule_parse("step:0.5:10", 0.1, 0, &schedule));
    setlocale(LC_NUMERIC, "C");
    assert_true(schedule.gamma == 0.5);
    graphi_plan_get_info(plan, &a);
    graphi_plan_get_info(loaded, &b);
    assert_true(a.lower_bound_ms == b.lower_bound_ms);
    graphi_plan_destroy(loaded);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

enum { WRITES = 300, LONG = 20000 };

static void *write_often(void *argument)
{
    char *text = malloc(LONG);
    memset(text, *(char *)argument, LONG);
    for (int i = 0; i < WRITES; i++)
        if (file_replace(path, text, LONG))
            *(char *)argument = 0;
    free(text);
    return NULL;
}

/* Without it two threads that write one path would share a temporary file: mixed content, or a rename that finds
 * nothing. */
static void two_writers_leave_one_whole_file(void **state)
{
    char letters[] = {'a', 'b'};
    pthread_t thread[2];
    void *data;
    size_t size;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, write_often, &letters[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(letters[0], 'a');
    assert_int_equal(letters[1], 'b');
    check_ok(file_read(path, 1 << 20, &data, &size));
    assert_int_equal(size, LONG);
    for (size_t i = 1; i < size; i++)
        assert_int_equal(((char *)data)[i], ((char *)data)[0]);
    mem_free(data);
}

/* Without it a process that has the number of another (a container, another host, one that was killed) would write into
 * its temporary file, or through a link that somebody left there. */
static void other_temporary_files_are_left_alone(void **state)
{
    enum { PLANTED = 40 };
    char name[PLANTED][400], victim[300];
    struct file_writer first;
    void *data;
    size_t size;
    unsigned next;
    snprintf(victim, sizeof victim, "%s.victim", path);
    check_ok(file_replace(victim, "old", 3));
    check_ok(file_write_begin(&first, path)); /* tells which names come next */
    assert_int_equal(sscanf(strrchr(first.temporary, '-'), "-%x", &next), 1);
    file_write_abort(&first);
    for (unsigned i = 0; i < PLANTED; i++) {
        snprintf(name[i], sizeof name[i], "%s.graphi-%ld-%08x.tmp", path, (long)getpid(), next + 1 + i);
        assert_int_equal(symlink(victim, name[i]), 0);
    }
    check_ok(file_replace(path, "new", 3));
    check_ok(file_read(path, 100, &data, &size));
    assert_memory_equal(data, "new", 4);
    mem_free(data);
    check_ok(file_read(victim, 100, &data, &size));
    assert_memory_equal(data, "old", 4);
    mem_free(data);
    for (int i = 0; i < PLANTED; i++)
        assert_int_equal(unlink(name[i]), 0);
    assert_int_equal(unlink(victim), 0);
}

/* A file as somebody may have left it beside `path`, last written so many seconds ago. */
static void leave(const char *name, int seconds)
{
    const struct timespec times[] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

/* What killed processes left would fill the disk, checkpoint by checkpoint; what lives here, or may live elsewhere, and
 * what only has a similar name, would be lost. */
static void only_files_of_dead_processes_are_removed(void **state)
{
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    assert_true(dead > 0 && waitpid(dead, NULL, 0) == dead);
    const struct {
        const char *format;
        pid_t process;
        int seconds;
        bool stays;
    } cases[] = {
        {"%s.graphi-%d-00000000.tmp", dead, 7200, false},
        {"%s.graphi-%d-0000beef.tmp", dead, 86400, false},
        {"%s.graphi-%d-00000001.tmp", dead, 1800, true},
        {"%s.graphi-%d-00000002.tmp", dead, -7200, true},
        {"%s.graphi-%d-00000000.tmp", getppid(), 7200, true},
        {"%s.graphi-%d-00000000.tmp", getpid(), 7200, true},
        {"%s.graphi-%d.tmp", dead, 7200, true},
        {"%s.graphi-%d-.tmp", dead, 7200, true},
        {"%s.graphi-%d-0000000.tmp", dead, 7200, true},
        {"%s.graphi-%d-000000000.tmp", dead, 7200, true},
        {"%s.graphi-%d-0000BEEF.tmp", dead, 7200, true},
        {"%s.graphi-%d-0000000x.tmp", dead, 7200, true},
        {"%s.graphi-%d-00000000.tmp.txt", dead, 7200, true},
        {"%s.graphi--%d-00000000.tmp", dead, 7200, true},
        {"%s.graphi-%d00000000.tmp", dead, 7200, true},
        {"%s.%d-00000000.tmp", dead, 7200, true},
        {"%s.%d-11.tmp", dead, 7200, true}, /* a day and a month */
        {"%sx.graphi-%d-00000000.tmp", dead, 7200, true},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    char name[CASES][400], left[300];
    snprintf(left, sizeof left, "%s.left", path);
    for (int i = 0; i < CASES; i++) {
        snprintf(name[i], sizeof name[i], cases[i].format, left, (int)cases[i].process);
        leave(name[i], cases[i].seconds);
    }
    check_ok(file_replace(left, "new", 3));
    for (int i = 0; i < CASES; i++) {
        if (file_exists(name[i]) != cases[i].stays)
            fail_msg("%s, of process %d, %d s old", name[i], (int)cases[i].process, cases[i].seconds);
        unlink(name[i]);
    }
    leave(name[0], 7200);
    check_ok(file_replace(left, "new", 3)); /* again: the folder, which may be large, is not read each time */
    assert_true(file_exists(name[0]));
    check_ok(file_replace(path, "new", 3));
    check_ok(file_replace(left, "new", 3));
    assert_false(file_exists(name[0]));
    assert_int_equal(unlink(left), 0);
}

/* As long as the file system allows, which a longer temporary one would pass. */
static void longest_names_are_written(void **state)
{
    char name[300], word[3];
    const char *folder_end = strrchr(path, '/');
    snprintf(name, sizeof name, "%.*s/%0255d", (int)(folder_end - path), path, 7);
    void *bytes;
    size_t size;
    check_ok(file_replace(name, "one", 3));
    check_ok(file_replace(name, "two", 3));
    check_ok(file_read(name, 10, &bytes, &size));
    assert_int_equal(size, 3);
    memcpy(word, bytes, 3);
    mem_free(bytes);
    assert_memory_equal(word, "two", 3);
    assert_int_equal(unlink(name), 0);
}

/* Without it the user would wait for a timeline that is nowhere. */
static void unwritable_timelines_are_told(void **state)
{
    graphi_graph *g = perceptron();
    graphi_plan *plan = plan_of(g);
    graphi_state *s;
    graphi_run *run;
    graphi_simulation simulation;
    static const float x[8 * 16];
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_trace(run, true));
    check_ok(graphi_run_execute(run));
    assert_int_equal(graphi_run_write_timeline(run, "/nonexistent/folder/timeline"), GRAPHI_IO);
    assert_non_null(strstr(graphi_message(), "/nonexistent/folder/timeline"));
    assert_int_equal(
        graphi_plan_simulate(plan, &(graphi_simulate_options){.timeline = "/nonexistent/folder/timeline"}, &simulation),
        GRAPHI_IO);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static int setup(void **state)
{
    folder_make(&folder);
    path = folder_name(&folder, "file");
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
        cmocka_unit_test(large_numbers_are_refused),
        cmocka_unit_test(prepared_weights_are_counted),
        cmocka_unit_test(wide_windows_are_refused),
        cmocka_unit_test(large_values_end_in_no_memory),
        cmocka_unit_test(products_of_sizes_are_looked_at),
        cmocka_unit_test(pairs_are_as_they_say),
        cmocka_unit_test(outputs_of_parameters_are_what_readers_see),
        cmocka_unit_test(failures_name_their_node_and_stop_the_run),
        cmocka_unit_test(senseless_settings_are_refused),
        cmocka_unit_test(missing_instructions_are_unsupported),
        cmocka_unit_test(senseless_curves_are_refused),
        cmocka_unit_test(plans_of_other_options_are_refused),
        cmocka_unit_test(files_do_not_follow_the_locale),
        cmocka_unit_test(two_writers_leave_one_whole_file),
        cmocka_unit_test(other_temporary_files_are_left_alone),
        cmocka_unit_test(only_files_of_dead_processes_are_removed),
        cmocka_unit_test(longest_names_are_written),
        cmocka_unit_test(unwritable_timelines_are_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
