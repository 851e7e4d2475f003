/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that policies declare: each has a row here, with its limits and its usual value. A parameter that is out
 * of its range would be what nobody asked for, and one that a policy does not have would make two settings of one. */
#include "schedule/parameter.h"
#include "schedule/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    graphi_policy policy;
    const char *name;
    int64_t low, usual, high;
} rows[] = {
    {GRAPHI_POLICY_RANDOM, "seed", INT64_MIN, 0, INT64_MAX},
    {GRAPHI_POLICY_S1, "keep-uniform", -1, 0, 1},
    {GRAPHI_POLICY_S12, "keep-uniform", -1, 0, 1},
    {GRAPHI_POLICY_S123, "candidates", 1, 3, 8},
    {GRAPHI_POLICY_S123, "tolerance", -1, 2, 65536},
    {GRAPHI_POLICY_S123, "keep-uniform", -1, 0, 1},
    {GRAPHI_POLICY_S1234, "candidates", 1, 3, 8},
    {GRAPHI_POLICY_S1234, "tolerance", -1, 2, 65536},
    {GRAPHI_POLICY_S1234, "keep-uniform", -1, 0, 1},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void every_parameter_has_its_range(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        graphi_setting setting = {.policy = rows[i].policy};
        assert_int_equal(policy_parameter(&setting, rows[i].name), rows[i].usual);
        const int64_t given[] = {INT64_MIN, rows[i].low, rows[i].high, INT64_MAX};
        const int64_t found[] = {rows[i].low, rows[i].low, rows[i].high, rows[i].high};
        for (int k = 0; k < 4; k++) {
            setting.parameters[0] = (graphi_policy_parameter){rows[i].name, given[k]};
            assert_int_equal(policy_parameter(&setting, rows[i].name), found[k]);
        }
    }
}

static void every_declared_parameter_has_a_row(void **state)
{
    int declared = 0;
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        graphi_policy_parameter_info p;
        int count = 0;
        for (; graphi_policy_parameter_at((graphi_policy)policy, count, &p); count++) {
            int at = 0;
            while (at < ROWS && (rows[at].policy != (graphi_policy)policy || strcmp(rows[at].name, p.name) != 0))
                at++;
            if (at == ROWS)
                fail_msg("no row for %s of %s", p.name, graphi_policy_name((graphi_policy)policy));
            assert_true(p.low <= p.usual && p.usual <= p.high && p.meaning);
        }
        assert_true(count < GRAPHI_SETTING_PARAMETERS);
        declared += count;
    }
    assert_int_equal(declared, ROWS);
}

/* Of several policies it is one parameter, so of all together it is listed once. */
static void the_list_of_all_names_each_once(void **state)
{
    graphi_policy_parameter_info a, b;
    for (int i = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, i, &a); i++)
        for (int k = 0; k < i && graphi_policy_parameter_at(GRAPHI_POLICIES, k, &b); k++)
            assert_string_not_equal(a.name, b.name);
    assert_false(graphi_policy_parameter_at(GRAPHI_POLICY_FIFO, 0, &a));
}

static void traits_are_those_of_the_tables(void **state)
{
    graphi_policy_info info;
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        assert_true(graphi_policy_get_info((graphi_policy)policy, &info));
        assert_string_equal(info.name, graphi_policy_name((graphi_policy)policy));
        assert_int_equal(info.in_order, policy == GRAPHI_POLICY_SEQUENTIAL);
        assert_int_equal(info.searches, policy == GRAPHI_POLICY_MALLEABLE);
        assert_int_equal(info.siblings, policy == GRAPHI_POLICY_S1234);
    }
    assert_false(graphi_policy_get_info(GRAPHI_POLICIES, &info));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_has_its_range),
        cmocka_unit_test(every_declared_parameter_has_a_row),
        cmocka_unit_test(the_list_of_all_names_each_once),
        cmocka_unit_test(traits_are_those_of_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
