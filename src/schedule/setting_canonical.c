/* SPDX-License-Identifier: Apache-2.0 */
/* What of a setting is heeded, what it leaves open where executors and widths are given, and which settings are the
 * same: the one list of what policies have no use for. Pure functions of tens of nanoseconds; any thread. */
#include "schedule/setting_canonical.h"

#include "base/hash.h"
#include "schedule/scheduler.h"

static bool has_executors(const struct policy *policy)
{
    return policy->loop == LOOP_SCHEDULED && !policy->free_width;
}

/* That keep their workers. */
static bool keeps_executors(const graphi_setting *setting)
{
    return has_executors(policy_of(setting)) && !setting->backward_executors;
}

bool setting_has_rings(const graphi_setting *setting)
{
    return keeps_executors(setting) && setting->driver != GRAPHI_DRIVER_STATIC;
}

bool setting_decides_ahead(const graphi_setting *setting)
{
    return policy_of(setting)->loop == LOOP_SCHEDULED && !setting->backward_executors;
}

bool setting_orders_alone(const graphi_setting *setting)
{
    return keeps_executors(setting) && policy_of(setting)->anywhere;
}

/* Executors of one thread. */
static int single_executors(const graphi_setting *setting)
{
    const struct policy *policy = policy_of(setting);
    if (!policy->sizes)
        return setting->width == 1 ? setting->executors : 0;
    const struct team_sizes teams = policy->sizes(setting->executors, setting->width);
    return (teams.width[0] == 1 ? teams.count[0] : 0) + (teams.left == 1);
}

bool setting_joins(const graphi_setting *setting)
{
    return keeps_executors(setting) && single_executors(setting) > 1;
}

bool setting_fold(graphi_setting *setting)
{
    const struct policy *policy = policy_of(setting);
    bool phases = setting->backward_executors > 0;
    if (policy->usual || policy->key != policy_by_level || (!phases && !policy->sizes))
        return false;
    if (!phases) {
        const struct team_sizes teams = policy->sizes(setting->executors, setting->width);
        if (teams.count[2] + teams.count[1] + teams.left > 0)
            return false;
        setting->executors = teams.count[0];
        setting->width = teams.width[0];
    }
    setting->policy = GRAPHI_POLICY_CRITICAL_PATH;
    return true;
}

void setting_drop_unheeded(graphi_setting *setting)
{
    const struct policy *own = policy_of(&(graphi_setting){.policy = setting->policy});
    if (own->loop != LOOP_SCHEDULED)
        setting->driver = GRAPHI_DRIVER_COMBINING; /* the caller works too */
    if (!has_executors(own))
        setting->backward_executors = 0;
    if (setting->driver == GRAPHI_DRIVER_STATIC && !setting_decides_ahead(setting))
        setting->driver = GRAPHI_DRIVER_COMBINING;
    if (!setting_has_rings(setting))
        setting->light = GRAPHI_OFF;
    if (setting->join == GRAPHI_ON && !setting_joins(setting))
        setting->join = GRAPHI_DEFAULT;
}

void setting_use_left(graphi_setting *setting, int cores)
{
    int used = setting->executors * setting->width;
    if (setting->driver == GRAPHI_DRIVER_AUTO) /* a core for the client alone pays where there are many */
        setting->driver = cores >= 16 && used < cores ? GRAPHI_DRIVER_DEDICATED : GRAPHI_DRIVER_COMBINING;
    if (setting->light == GRAPHI_DEFAULT)
        setting->light =
            cores >= 16 && used + (setting->driver == GRAPHI_DRIVER_DEDICATED) < cores ? GRAPHI_ON : GRAPHI_OFF;
    if (used >= cores)
        setting->light = GRAPHI_OFF;
}

graphi_setting setting_canonical(const graphi_setting *setting)
{
    graphi_setting r = *setting;
    setting_drop_unheeded(&r);
    setting_fold(&r);
    const struct policy *policy = policy_of(&r);
    int workers = r.executors * r.width;
    if (policy->usual)
        r.policy = GRAPHI_POLICY_CRITICAL_PATH;
    r.uniform = GRAPHI_DEFAULT; /* that was all it said */
    if (policy->loop == LOOP_SEQUENTIAL)
        r.executors = 1, r.width = workers, r.inlining = GRAPHI_DEFAULT;
    if (policy->own_teams)
        r.executors = workers, r.width = 1;
    if (!setting_has_rings(&r))
        r.depth = 1;
    r.join = r.join == GRAPHI_ON ? GRAPHI_ON : GRAPHI_OFF;
    setting_constants(&r);
    return r;
}

uint64_t setting_hash(uint64_t hash, const graphi_setting *setting)
{
    const graphi_setting s = setting_canonical(setting);
    const int64_t words[] = {s.policy,
                             s.driver,
                             s.executors,
                             s.width,
                             s.backward_executors,
                             s.depth,
                             s.inlining == GRAPHI_OFF,
                             s.light,
                             s.pin == GRAPHI_OFF,
                             s.join};
    graphi_policy_parameter_info p;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = hash_u64(hash, (uint64_t)words[i]);
    for (int i = 0; graphi_policy_parameter_at(s.policy, i, &p); i++)
        if (!p.chooses)
            hash = hash_u64(hash, (uint64_t)policy_parameter(&s, p.name));
    return hash;
}

void setting_place(graphi_setting *setting, const graphi_decision *from)
{
    setting->pin = graphi_decision_setting(from).pin;
    if (from->join_off)
        setting->join = GRAPHI_OFF;
}

void setting_constants(graphi_setting *setting)
{
    policy_settle(setting);
    if (setting->depth > RING_DEPTH)
        setting->depth = RING_DEPTH;
}
