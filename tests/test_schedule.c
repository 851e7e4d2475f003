/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules: the values of every kind, and what the parser says about mistakes. */
#include "graphi/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static double rate(const char *text, double base, int64_t step)
{
    graphi_schedule s;
    if (graphi_schedule_parse(text, base, 100, &s) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return graphi_schedule_rate(&s, step);
}

/* A kind computes something else than its formula; the expected numbers are worked out by hand. */
static void every_kind_follows_its_formula(void **state)
{
    static const struct {
        const char *text;
        int64_t step;
        double expected;
    } cases[] = {
        {"constant", 0, 0.5},
        {"constant", 1000000, 0.5},
        {"step:0.1:30", 29, 0.5},
        {"step:0.1:30", 30, 0.05},
        {"step:0.1:30", 60, 0.005},
        {"step:0.1:1e", 99, 0.5},
        {"step:0.1:1e", 100, 0.05},
        {"step:0.5:10:40", 39, 0.5},
        {"step:0.5:10:40", 40, 0.25},
        {"step:0.5:10:40", 50, 0.125},
        {"exponential:0.5", 3, 0.0625},
        {"exponential:0.25:10", 5, 0.25},
        {"inverse:1:1", 1, 0.25},
        {"inverse:3:0.5", 1, 0.25},
        {"polynomial:10", 5, 0.25},
        {"polynomial:10:2", 5, 0.125},
        {"polynomial:10:1:0.1", 10, 0.1},
        {"polynomial:10", 99, 0},
        {"polynomial:10:0:0.1", 9, 0.5},
        {"polynomial:10:0:0.1", 10, 0.1},
        {"cosine:1000", 0, 0.5},
        {"cosine:1000", 500, 0.25},
        {"cosine:1000:0.1", 1000, 0.1},
        {"cosine:1000:0.1", 5000, 0.1},
        {"multi-step:0.1:5:7", 4, 0.5},
        {"multi-step:0.1:5:7", 5, 0.05},
        {"multi-step:0.1:5:7", 7, 0.005},
        {"multi-step:0.5:0.5e:1e", 50, 0.25},
        {"step:0.1:0.29e", 28, 0.5}, /* 0.29 * 100 is less than 29 */
        {"step:0.1:0.29e", 29, 0.05},
        {"multi-step:0.5:1:2:3:4:5", 5, 0.5 / 32},
        {"sigmoid:1:10", 10, 0.25},
        {"sigmoid:0.5:2", 4, 0.5 / (1 + 2.718281828459045)},
        {"fixed", 7, 0.5}, /* Caffe's names */
        {"exp:0.5", 3, 0.0625},
        {"inv:3:0.5", 1, 0.25},
        {"poly:10:2", 5, 0.125},
        {"multistep:0.1:5:7", 7, 0.005},
        {"constant,warmup:4", 0, 0.125},
        {"constant,warmup:4", 3, 0.5},
        {"constant,warmup:4", 4, 0.5},
        {"step:0.1:2,warmup:4", 2, 0.05 * 0.75},
        {"constant", -5, 0.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = rate(cases[i].text, 0.5, cases[i].step);
        if (fabs(got - cases[i].expected) > 1e-12)
            fail_msg("%s at %lld: found %g, expected %g", cases[i].text, (long long)cases[i].step, got,
                     cases[i].expected);
    }
}

/* A typing mistake silently trains with another schedule. */
static void mistakes_are_named(void **state)
{
    static const char *const wrong[] = {
        "",
        "cosin:5",
        "cosine",
        "sigmoid:1",
        "cosine:",
        "cosine:x",
        "cosine:0",
        "cosine:-1",
        "cosine:1.5",
        "cosine:1e400",
        "cosine:5:1:2",
        "cosine:nan",
        "cosine:inf",
        "step:0.1",
        "step:0:5",
        "step:0.1:5:6:7",
        "multi-step:0.1",
        "multi-step:0.1:5:5",
        "multi-step:0.1:7:5",
        "constant:1",
        "constant,",
        "constant,warmup",
        "constant,warmup:",
        "constant,cosine:3",
        "constant,warmup:3,warmup:4",
        "inverse:1",
        "polynomial:5:-1",
        "step:0.1:5e17e",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        graphi_schedule s, before;
        memset(&s, 0x5a, sizeof s);
        before = s;
        if (graphi_schedule_parse(wrong[i], 0.1, 100, &s) != GRAPHI_INVALID)
            fail_msg("\"%s\" was accepted", wrong[i]);
        assert_non_null(strstr(graphi_message(), "expected"));
        assert_memory_equal(&s, &before, sizeof s);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (graphi_schedule_parse(wrong[i], 0.1, 0, NULL) != GRAPHI_INVALID)
            fail_msg("the text \"%s\" was accepted", wrong[i]);
    graphi_schedule s;
    assert_int_equal(graphi_schedule_parse("cosine:3e", 0.1, 0, &s), GRAPHI_INVALID);
    assert_int_equal(graphi_schedule_parse("constant", NAN, 0, &s), GRAPHI_INVALID);
    char many[400] = "multi-step:0.5";
    for (int i = 1; i <= GRAPHI_SCHEDULE_MARKS + 1; i++)
        sprintf(many + strlen(many), ":%d", i);
    assert_int_equal(graphi_schedule_parse(many, 0.1, 0, &s), GRAPHI_INVALID);
    char longest[1500]; /* it is copied, and cut up there */
    memset(longest, '0', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    memcpy(longest, "cosine:1.", 9);
    assert_int_equal(graphi_schedule_parse(longest, 0.1, 0, &s), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found 1499 characters, expected fewer than 1024"));
}

/* What is wrong whatever an epoch is was looked for by trying many lengths of one, and told by the last of them; what
 * depends on the length must wait until there is one. */
static void epochs_wait_for_their_length(void **state)
{
    static const struct {
        const char *text;
        bool text_is_right;
        int64_t right, wrong; /* lengths of an epoch; 0: there is none */
    } cases[] = {
        {"multi-step:0.1:0.5e:0.75e", true, 4, 1},
        {"multi-step:0.1:1e:2000", true, 1999, 2000},
        {"multi-step:0.1:300:1e:500", true, 301, 300},
        {"multi-step:0.1:1e:1099511627776:2e", true, 1099511627775, 1},
        {"multi-step:0.1:0.75e:0.5e", false, 0, 4},
        {"multi-step:0.1:300:1e:200", false, 0, 250},
        {"multi-step:0.1:1e:5:1e", false, 0, 4},
        {"step:0.5:1e15e", true, 9, 10},
        {"step:0.5:1e16e", false, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_schedule s;
        const graphi_status expected = cases[i].text_is_right ? GRAPHI_OK : GRAPHI_INVALID;
        if (graphi_schedule_parse(cases[i].text, 0.1, 0, NULL) != expected)
            fail_msg("%s: found the text %s", cases[i].text, cases[i].text_is_right ? "refused" : "accepted");
        if (cases[i].right && graphi_schedule_parse(cases[i].text, 0.1, cases[i].right, &s) != GRAPHI_OK)
            fail_msg("%s: refused in epochs of %lld: %s", cases[i].text, (long long)cases[i].right, graphi_message());
        if (graphi_schedule_parse(cases[i].text, 0.1, cases[i].wrong, &s) != GRAPHI_INVALID)
            fail_msg("%s: accepted in epochs of %lld", cases[i].text, (long long)cases[i].wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_follows_its_formula),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(epochs_wait_for_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
