/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in virtual time, for tests. */
#ifndef TESTS_SIMULATED_H
#define TESTS_SIMULATED_H

#include "engine/choose/simulator.h"

static inline graphi_status plan_simulate(const graphi_plan *plan, struct task_record *records, struct simulation *out)
{
    const struct simulated what = simulated_plan(plan, plan);
    return simulator_once(&what, records, out);
}

#endif
