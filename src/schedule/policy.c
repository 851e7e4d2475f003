/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies. */
#include "schedule/policy.h"

static const struct policy *const policies[] = {
#define X(NAME, name, text) &policy_##name,
    GRAPHI_POLICY_LIST(X)
#undef X
};

const struct policy *policy_of(const graphi_setting *setting)
{
    const struct policy *policy = policies[setting->policy];
    return setting->uniform && policy->free_width ? &policy_critical_path : policy;
}
