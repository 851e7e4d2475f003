/* SPDX-License-Identifier: Apache-2.0 */
/* What of a setting is of some policies alone. Such an option is no mistake: the policy may be tuning's choice, or a
 * stored plan's. */
#include "tool/no_effect.h"

#include <string.h>

static bool typed(const char *word, const char *value) { return word && strcmp(word, value) == 0; }

static bool heeds(graphi_policy policy, const char *name)
{
    graphi_policy_parameter_info p;
    for (int i = 0; graphi_policy_parameter_at(policy, i, &p); i++)
        if (strcmp(p.name, name) == 0)
            return true;
    return false;
}

static void note_parameter(const char *name, const char *policy, struct result *result)
{
    char list[256] = "";
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        if (heeds((graphi_policy)i, name))
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "",
                     graphi_policy_name((graphi_policy)i));
    result_note(result, "--%s has no effect: %s does not have it; policies that do: %s", name, policy, list);
}

void no_effect_note(const struct options *o, const graphi_decision *s, bool infers, int siblings,
                    struct result *result)
{
    const char *policy = graphi_policy_name(s->policy);
    const struct {
        const char *option;
        bool given, effect;
        const char *why;
    } parts[] = {
        {"--driver dedicated", typed(o->driver, "dedicated"), s->driver == GRAPHI_DRIVER_DEDICATED,
         "has no scheduling step"},
        {"--driver static", typed(o->driver, "static"), s->driver == GRAPHI_DRIVER_STATIC,
         s->backward_executors ? "changes teams beside --backward-executors" : "has no scheduling step"},
        {"--backward-executors", o->backward_executors != 0 && !infers, s->backward_executors != 0,
         "runs the backward pass as it does the forward one"},
        {"--depth", o->depth != 0, s->depth == o->depth,
         s->backward_executors                  ? "has no buffers beside --backward-executors"
         : s->driver == GRAPHI_DRIVER_STATIC ? "has no buffers under the static driver"
                                                : "has no buffers of executors"},
    };
    if (o->policy && !typed(o->policy, policy) && s->backward_executors)
        result_note(result, "--policy %s runs as %s: beside --backward-executors its order alone counts", o->policy,
                    policy);
    else if (o->policy && !typed(o->policy, policy))
        result_note(result, "--policy %s runs as %s: on %d executors x %d threads all teams are of one size", o->policy,
                    policy, s->executors, s->width);
    graphi_policy_info about;
    if (o->policy && graphi_policy_get_info(s->policy, &about) && about.siblings && !siblings)
        result_note(result, "%s runs as s123: the machine has no second hardware threads of cores", policy);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].given && !parts[i].effect)
            result_note(result, "%s has no effect: %s %s", parts[i].option, policy, parts[i].why);
    for (const graphi_policy_parameter *p = o->parameters; p->name; p++)
        if (!heeds(s->policy, p->name))
            note_parameter(p->name, policy, result);
    if (o->backward_executors && infers)
        result_note(result, "--backward-executors has no effect: inference has no backward pass");
    if (typed(o->light, "on") && !s->light)
        result_note(result,
                    "--light on has no effect: %s on %d executors x %d threads has no core, or no use, for a light one",
                    policy, s->executors, s->width);
    if (typed(o->join, "on") && !s->joins)
        result_note(result,
                    "--join on has no effect: %s on %d executors x %d threads has no executors that could",
                    policy, s->executors, s->width);
}
