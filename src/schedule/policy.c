/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies, and their names. */
#include "schedule/policy.h"

#include "base/status.h"
#include "base/text.h"

#include <string.h>

static const struct policy *const policies[] = {
#define X(NAME, name, text) &policy_##name,
    GRAPHI_POLICY_LIST(X)
#undef X
};
static const char *const names[] = {
#define X(NAME, name, text) text,
    GRAPHI_POLICY_LIST(X)
#undef X
};

const struct policy *policy_of(const graphi_setting *setting)
{
    const struct policy *policy = policies[setting->policy];
    return setting->uniform && policy->free_width ? &policy_critical_path : policy;
}

const char *graphi_policy_name(graphi_policy policy)
{
    return (unsigned)policy < GRAPHI_POLICIES ? names[policy] : "?";
}

graphi_status graphi_policy_parse(const char *name, graphi_policy *policy)
{
    name = name ? name : "";
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        if (strcmp(names[i], name) == 0) {
            *policy = (graphi_policy)i;
            return GRAPHI_OK;
        }
    struct text known = {0};
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        text_add(&known, "%s%s", i ? ", " : "", names[i]);
    graphi_status status = fail(GRAPHI_INVALID, "policy", "found \"%s\", expected one of %s", name,
                                known.broken || !known.data ? "the policies" : known.data);
    text_free(&known);
    return status;
}
