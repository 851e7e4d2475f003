/* SPDX-License-Identifier: Apache-2.0 */
/* See parameter.h. */
#include "schedule/parameter.h"

const graphi_policy_parameter_info *parameter_find(const graphi_policy_parameter_info *table, const char *name)
{
    while (table && table->name && strcmp(table->name, name) != 0)
        table++;
    return table && table->name ? table : NULL;
}

int64_t parameter_within(const graphi_policy_parameter *given, const graphi_policy_parameter_info *parameter)
{
    const int64_t value = given ? given->value : parameter->usual;
    return value < parameter->low ? parameter->low : value > parameter->high ? parameter->high : value;
}

int64_t parameter_value(const graphi_decision *decision, const graphi_policy_parameter_info *parameter)
{
    return parameter_within(graphi_decision_parameter(decision, parameter->name), parameter);
}
