/* SPDX-License-Identifier: Apache-2.0 */
/* What of a setting is of some policies alone. Such an option is no mistake: the policy may be tuning's choice, or a
 * stored plan's. */
#include "tool/no_effect.h"

#include <string.h>

bool policy_is_strategy(graphi_policy policy)
{
    return policy >= GRAPHI_POLICY_S1 && policy <= GRAPHI_POLICY_S1234;
}

static bool weighs_widths(graphi_policy policy)
{
    return policy == GRAPHI_POLICY_S123 || policy == GRAPHI_POLICY_S1234;
}

static bool typed(const char *word, const char *value) { return word && strcmp(word, value) == 0; }

void no_effect_note(const struct options *o, const graphi_setting *s, bool infers, int siblings,
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
        {"--candidates", o->candidates != 0, weighs_widths(s->policy), "weighs no widths; s123 and s1234 do"},
        {"--tolerance", o->tolerance_given, weighs_widths(s->policy), "weighs no widths; s123 and s1234 do"},
        {"--keep-uniform", o->keep_uniform != NULL, policy_is_strategy(s->policy),
         "is none of the strategies, s1 to s1234"},
    };
    if (o->policy && !typed(o->policy, policy) && s->backward_executors)
        result_note(result, "--policy %s runs as %s: beside --backward-executors its order alone counts", o->policy,
                    policy);
    else if (o->policy && !typed(o->policy, policy))
        result_note(result, "--policy %s runs as %s: on %d executors x %d threads all teams are of one size", o->policy,
                    policy, s->executors, s->width);
    if (typed(o->policy, "s1234") && s->policy == GRAPHI_POLICY_S1234 && !siblings)
        result_note(result, "s1234 runs as s123: the machine has no second hardware threads of cores");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].given && !parts[i].effect)
            result_note(result, "%s has no effect: %s %s", parts[i].option, policy, parts[i].why);
    if (o->backward_executors && infers)
        result_note(result, "--backward-executors has no effect: inference has no backward pass");
    if (typed(o->light, "on") && s->light != 1)
        result_note(result,
                    "--light on has no effect: %s on %d executors x %d threads has no core, or no use, for a light one",
                    policy, s->executors, s->width);
    if (typed(o->join, "on") && s->join != 1)
        result_note(result,
                    "--join on has no effect: %s on %d executors x %d threads has no executors that could",
                    policy, s->executors, s->width);
}
