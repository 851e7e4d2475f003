/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a request on a machine: resolved once, when a plan is made, and only read by executions. */
#ifndef SCHEDULE_DECIDED_H
#define SCHEDULE_DECIDED_H

#include "graphi/plan.h"
#include "machine/team.h"

struct decided {
    const graphi_machine *machine; /* borrowed */
    graphi_decision runs; /* canonical (setting_canonical.h): what its policy does not heed has its default */
    int workers, siblings; /* with the light executor; second hardware threads beside them */
    struct lease_options lease; /* whose `room` is the run's */
};

/* A request that leaves nothing open as the decision that it is. Of what is open: as default. */
graphi_decision setting_decision(const graphi_setting *setting);

/* What the request, which may leave open what it likes, comes down to without a look at the tasks. */
struct decided setting_decide(const graphi_setting *setting, const graphi_machine *machine);

#endif
