/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of operations by the rates of a machine. */
#ifndef ENGINE_COST_H
#define ENGINE_COST_H

#include "graphi/machine.h"
#include "kernels/kernel.h"

/* Longest duration, 28 hours: levels, which add up tens of thousands of them, stay within 63 bits. */
#define MOST_NS 1e14

/* Rates of a machine, the usual ones where it was not measured. */
struct cost_rates {
    double core_gflops, core_gbs, all_gbs, barrier_ns;
};
struct cost_rates cost_rates(const graphi_machine *machine);

/* ns of a kernel on one thread, every machine rate that was not measured taken as usual. */
double cost_estimate(const graphi_machine *machine, const struct kernel *kernel);

#endif
