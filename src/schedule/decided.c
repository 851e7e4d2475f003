/* SPDX-License-Identifier: Apache-2.0 */
/* From the request to what is executed. Pure functions of tens of nanoseconds; any thread. */
#include "schedule/decided.h"

#include "schedule/policy.h"
#include "schedule/scheduler.h"
#include "schedule/setting_canonical.h"

#include <string.h>

graphi_decision setting_decision(const graphi_setting *setting)
{
    graphi_decision decision = {
        .policy = setting->policy,
        .driver = setting->driver,
        .executors = setting->executors,
        .width = setting->width,
        .backward_executors = setting->backward_executors,
        .depth = setting->depth,
        .inlines = setting->inlining != GRAPHI_OFF,
        .light = setting->light == GRAPHI_ON,
        .joins = setting->join == GRAPHI_ON,
        .join_off = setting->join == GRAPHI_OFF,
        .pinned = setting->pin != GRAPHI_OFF,
        .must_pin = setting->pin == GRAPHI_ON,
        .uniform = setting->uniform == GRAPHI_ON,
    };
    memcpy(decision.parameters, setting->parameters, sizeof decision.parameters);
    return decision;
}

static int at_least_one(int value)
{
    return value > 0 ? value : 1;
}

/* Every automatic choice made (graphi.txt 4.2; of a plan's setting choosing has usually left none). */
static graphi_decision resolve(const graphi_setting *asked, const graphi_machine *machine)
{
    graphi_setting r = *asked;
    if (!r.executors && !r.width)
        r.executors = machine->cores;
    r.executors = at_least_one(r.executors);
    r.width = at_least_one(r.width);
    r.depth = at_least_one(r.depth);
    setting_use_left(&r, machine->cores);
    r = setting_canonical(&r);
    return setting_decision(&r);
}

/* Strategy 4 uses the second hardware threads once all cores are workers. No static list counts on them: a lease may
 * have none. */
static int siblings_of(const graphi_decision *r, const graphi_machine *machine, int workers)
{
    return policy_decided(r)->siblings && r->driver != GRAPHI_DRIVER_STATIC && workers == machine->cores &&
                   workers + machine->siblings <= BITMAP_BITS
               ? machine->siblings
               : 0;
}

struct decided setting_decide(const graphi_setting *setting, const graphi_machine *machine)
{
    const graphi_decision r = resolve(setting, machine);
    const struct policy *policy = policy_decided(&r);
    const int workers = r.executors * r.width + r.light, siblings = siblings_of(&r, machine, workers);
    const bool even = !policy->free_width && !policy->sizes && policy->loop != LOOP_SEQUENTIAL;
    return (struct decided){.machine = machine,
                            .runs = r,
                            .workers = workers,
                            .siblings = siblings,
                            .lease = {.workers = workers + siblings,
                                      /* else teams change, and sit side by side */
                                      .groups = even ? r.executors : 0,
                                      .width = even ? r.width : 0,
                                      .siblings = siblings > 0,
                                      .caller_extra = r.driver == GRAPHI_DRIVER_DEDICATED,
                                      .pin = r.pinned}};
}
