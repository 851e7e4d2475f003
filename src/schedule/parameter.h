/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a policy, and what a request or a decision gives them. Any thread. */
#ifndef SCHEDULE_PARAMETER_H
#define SCHEDULE_PARAMETER_H

#include "graphi/plan.h"

/* Of a table that ends without a name; NULL: it has none of that name. */
const graphi_policy_parameter_info *parameter_find(const graphi_policy_parameter_info *table, const char *name);

/* What is given (NULL: nothing), within the range, else the usual value. */
int64_t parameter_within(const graphi_policy_parameter *given, const graphi_policy_parameter_info *parameter);

/* The same of what was decided: for policies. */
int64_t parameter_value(const graphi_decision *decision, const graphi_policy_parameter_info *parameter);

#endif
