/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a policy, and what a setting gives them. Any thread. */
#ifndef SCHEDULE_PARAMETER_H
#define SCHEDULE_PARAMETER_H

#include "graphi/plan.h"

/* Of a table that ends without a name; NULL: it has none of that name. */
const graphi_policy_parameter_info *parameter_find(const graphi_policy_parameter_info *table, const char *name);

/* What is given, within the range, else the usual value. */
int64_t parameter_value(const graphi_setting *setting, const graphi_policy_parameter_info *parameter);

#endif
