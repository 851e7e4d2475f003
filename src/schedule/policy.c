/* SPDX-License-Identifier: Apache-2.0 */
/* The list of policies, and what their tables say of them and their parameters. Any thread. */
#include "schedule/policy.h"

#include "schedule/parameter.h"

#include <string.h>

static const struct policy *const policies[] = {
#define X(NAME, name, text) &policy_##name,
    GRAPHI_POLICY_LIST(X)
#undef X
};

static const struct policy *running(graphi_policy policy, bool uniform)
{
    return uniform && policies[policy]->free_width ? &policy_critical_path : policies[policy];
}

const struct policy *policy_of(const graphi_setting *setting)
{
    return running(setting->policy, setting->uniform == GRAPHI_ON);
}

const struct policy *policy_decided(const graphi_decision *decision)
{
    return running(decision->policy, decision->uniform);
}

bool graphi_policy_get_info(graphi_policy policy, graphi_policy_info *info)
{
    if (!info || (unsigned)policy >= GRAPHI_POLICIES)
        return false;
    const struct policy *p = policies[policy];
    *info = (graphi_policy_info){.name = graphi_policy_name(policy),
                                 .in_order = p->loop == LOOP_SEQUENTIAL,
                                 .searches = p->searches,
                                 .siblings = p->siblings};
    return true;
}

static const graphi_policy_parameter_info *find(graphi_policy policy, const char *name)
{
    return parameter_find(policies[policy]->parameters, name);
}

/* Policies before this one have it too. */
static bool is_known(graphi_policy policy, const char *name)
{
    for (int i = 0; i < (int)policy; i++)
        if (find((graphi_policy)i, name))
            return true;
    return false;
}

bool graphi_policy_parameter_at(graphi_policy policy, int index, graphi_policy_parameter_info *info)
{
    const bool all = (unsigned)policy >= GRAPHI_POLICIES;
    for (int i = all ? 0 : (int)policy; info && i < (all ? (int)GRAPHI_POLICIES : (int)policy + 1); i++)
        for (const graphi_policy_parameter_info *p = policies[i]->parameters; p && p->name; p++)
            if ((!all || !is_known((graphi_policy)i, p->name)) && index-- == 0) {
                *info = *p;
                return true;
            }
    return false;
}

int64_t policy_parameter(const graphi_setting *setting, const char *name)
{
    const graphi_policy_parameter_info *p = find(setting->policy, name);
    return p ? parameter_within(graphi_setting_parameter(setting, name), p) : 0;
}

bool policy_heeds(const graphi_setting *setting, const char *name)
{
    return find(setting->policy, name) != NULL;
}

void policy_set(graphi_setting *setting, const char *name, int64_t value)
{
    int i = 0;
    while (i < GRAPHI_SETTING_PARAMETERS - 1 && setting->parameters[i].name &&
           strcmp(setting->parameters[i].name, name) != 0)
        i++;
    setting->parameters[i] = (graphi_policy_parameter){find(setting->policy, name)->name, value};
}

void policy_settle(graphi_setting *setting)
{
    graphi_setting r = *setting;
    int count = 0;
    memset(r.parameters, 0, sizeof r.parameters);
    for (const graphi_policy_parameter_info *p = policies[r.policy]->parameters; p && p->name; p++)
        r.parameters[count++] = (graphi_policy_parameter){p->name, policy_parameter(setting, p->name)};
    *setting = r;
}
