/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a language model: the most likely tokens are those of the logits, one seed gives one text, few tokens and
 * no temperature are the most likely ones, the carried state goes on from call to call, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"

#include <string.h>

enum { WORDS = 12, LENGTH = 40 };

static graphi_graph *graph;
static graphi_plan *plan;
static graphi_state *weights;
static graphi_run *run;

static void open_model(const graphi_model_options *options)
{
    const int32_t none = 0;
    check_ok(graphi_model_create("lstm", options, &graph));
    check_ok(graphi_plan_create(graph, machine, NULL, &plan));
    check_ok(graphi_state_create(graph, 3, &weights));
    check_ok(graphi_run_create(plan, weights, &run));
    if (options->batch == 1)
        check_ok(graphi_run_set(run, "targets", GRAPHI_I32, &none, sizeof none));
}

static void close_model(void)
{
    graphi_run_destroy(run);
    graphi_state_destroy(weights);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(graph);
}

static int open_language(void **state)
{
    if (open_machine(state))
        return -1;
    open_model(&(graphi_model_options){
        .task = "real", .evaluation = true, .batch = 1, .steps = 1, .units = 16, .vocabulary = WORDS});
    return 0;
}

static int close_language(void **state)
{
    close_model();
    return close_machines(state);
}

static void generate(const graphi_generate_options *options, int64_t count, int32_t *tokens)
{
    static const int32_t prompt[] = {1, 5, 2};
    int64_t made;
    check_ok(graphi_generate(run, options, prompt, 3, tokens, count, &made));
    assert_int_equal(made, count);
}

static void begin_anew(void)
{
    check_ok(graphi_state_zero(weights, "eval/state/"));
}

/* A token that is fed twice, or not at all, and a state that is lost between tokens. */
static void most_likely_tokens_are_those_of_the_logits(void **state)
{
    static const int32_t prompt[] = {1, 5, 2};
    int32_t tokens[LENGTH];
    begin_anew();
    generate(NULL, LENGTH, tokens);
    begin_anew();
    for (int i = 0; i < 3 + LENGTH - 1; i++) {
        float logits[WORDS];
        const int32_t token = i < 3 ? prompt[i] : tokens[i - 3];
        int best = 0;
        check_ok(graphi_run_set(run, "tokens", GRAPHI_I32, &token, sizeof token));
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_get(run, "logits", GRAPHI_F32, logits, sizeof logits));
        for (int k = 1; k < WORDS; k++)
            best = logits[k] > logits[best] ? k : best;
        if (i >= 2)
            assert_int_equal(tokens[i - 2], best);
    }
}

static void one_seed_gives_one_text(void **state)
{
    int32_t first[LENGTH], again[LENGTH], other[LENGTH], few[LENGTH], likely[LENGTH];
    graphi_generate_options options = {.temperature = 1, .seed = 4};
    begin_anew();
    generate(&options, LENGTH, first);
    begin_anew();
    generate(&options, LENGTH, again);
    assert_memory_equal(first, again, sizeof first);
    options.seed = 5;
    begin_anew();
    generate(&options, LENGTH, other);
    assert_memory_not_equal(first, other, sizeof first);
    options.top_k = 1;
    begin_anew();
    generate(&options, LENGTH, few);
    begin_anew();
    generate(NULL, LENGTH, likely);
    assert_memory_equal(few, likely, sizeof few);
}

/* What is drawn comes in the parts that softmax gives: the untrained model's are all near 1 / WORDS. */
static void all_tokens_are_drawn(void **state)
{
    int32_t tokens[600];
    int count[WORDS] = {0};
    begin_anew();
    generate(&(graphi_generate_options){.temperature = 1, .seed = 1}, 600, tokens);
    for (int i = 0; i < 600; i++)
        count[tokens[i]]++;
    for (int k = 0; k < WORDS; k++)
        assert_in_range(count[k], 10, 150);
}

/* A later call goes on with what the one before carried. */
static void the_state_is_carried(void **state)
{
    int32_t whole[LENGTH], part[LENGTH];
    int64_t made;
    begin_anew();
    generate(NULL, LENGTH, whole);
    begin_anew();
    generate(NULL, LENGTH / 2, part);
    check_ok(graphi_generate(run, NULL, &part[LENGTH / 2 - 1], 1, part + LENGTH / 2, LENGTH / 2, &made));
    assert_memory_equal(whole, part, sizeof whole);
}

static bool stop_at_three(void *context, int32_t token)
{
    return ++*(int *)context < 3;
}

static void it_ends_when_told(void **state)
{
    int told = 0;
    int32_t tokens[LENGTH], prompt = 0;
    int64_t made = -1;
    const graphi_generate_options options = {.token = stop_at_three, .context = &told};
    check_ok(graphi_generate(run, &options, &prompt, 1, tokens, LENGTH, &made));
    assert_int_equal(made, 3);
    assert_int_equal(told, 3);
}

static void refused(graphi_status status, const char *what)
{
    assert_int_equal(status, GRAPHI_INVALID);
    if (!strstr(graphi_message(), what))
        fail_msg("%s: no '%s'", graphi_message(), what);
}

static void what_is_wrong_is_refused(void **state)
{
    int32_t tokens[4], beyond = WORDS, zero = 0;
    int64_t made;
    refused(graphi_generate(run, NULL, &zero, 0, tokens, 4, &made), "prompt of 0");
    refused(graphi_generate(run, NULL, &beyond, 1, tokens, 4, &made), "token 12");
    refused(graphi_generate(run, &(graphi_generate_options){.temperature = -1}, &zero, 1, tokens, 4, &made),
            "temperature -1");
    graphi_vocabulary *v = NULL;
    refused(graphi_vocabulary_open("[\"a\", \"a\"]", false, &v), "words");
    assert_null(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(most_likely_tokens_are_those_of_the_logits),
        cmocka_unit_test(one_seed_gives_one_text),
        cmocka_unit_test(all_tokens_are_drawn),
        cmocka_unit_test(the_state_is_carried),
        cmocka_unit_test(it_ends_when_told),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, open_language, close_language);
}
