/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies, and their names. */
#include "engine/policy.h"

#include "base/status.h"
#include "base/text.h"

#include <string.h>

static const struct policy *const policies[] = {
    [GRAPHI_POLICY_CRITICAL_PATH] = &policy_critical_path,
    [GRAPHI_POLICY_FIFO] = &policy_fifo,
    [GRAPHI_POLICY_RANDOM] = &policy_random,
    [GRAPHI_POLICY_NAIVE] = &policy_naive,
    [GRAPHI_POLICY_SEQUENTIAL] = &policy_sequential,
    [GRAPHI_POLICY_ASYMMETRIC] = &policy_asymmetric,
    [GRAPHI_POLICY_LOCALITY] = &policy_locality,
    [GRAPHI_POLICY_S1] = &policy_s1,
    [GRAPHI_POLICY_S12] = &policy_s12,
    [GRAPHI_POLICY_S123] = &policy_s123,
    [GRAPHI_POLICY_S1234] = &policy_s1234,
    [GRAPHI_POLICY_MALLEABLE] = &policy_malleable,
};

const struct policy *policy_of(const graphi_setting *setting)
{
    bool uniform = setting->policy == GRAPHI_POLICY_MALLEABLE && setting->uniform;
    return uniform ? &policy_critical_path : policies[setting->policy];
}

const char *graphi_policy_name(graphi_policy policy)
{
    return (unsigned)policy < GRAPHI_POLICIES ? policies[policy]->name : "?";
}

graphi_status graphi_policy_parse(const char *name, graphi_policy *policy)
{
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        if (strcmp(policies[i]->name, name) == 0) {
            *policy = (graphi_policy)i;
            return GRAPHI_OK;
        }
    struct text known = {0};
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        text_add(&known, "%s%s", i ? ", " : "", policies[i]->name);
    graphi_status status = fail(GRAPHI_INVALID, "policy", "found \"%s\", expected one of %s", name,
                                known.broken || !known.data ? "the policies" : known.data);
    text_free(&known);
    return status;
}
