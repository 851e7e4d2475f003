/* SPDX-License-Identifier: Apache-2.0 */
/* How long an operation takes on one core, before anything was measured: the larger of arithmetic and memory traffic at
 * the rates of one core, from which curve_extend.c makes times at other widths. Compile time only; any thread. */
#include "engine/cost/cost.h"

#include "machine/machine.h"

#include <math.h>

/* Rates assumed where the machine was not measured; the order of magnitude of one current core. */
static const double usual_gflops = 60, usual_core_gbs = 12, usual_barrier_ns = 150, start_ns = 60;

static double or_usual(double measured, double usual) { return measured > 0 ? measured : usual; }

struct cost_rates cost_rates(const graphi_machine *machine)
{
    struct cost_rates r = {.core_gflops = or_usual(machine->core_gflops, usual_gflops),
                           .core_gbs = or_usual(machine->core_bandwidth_gbs, usual_core_gbs),
                           .barrier_ns = or_usual(machine->barrier_ns, usual_barrier_ns)};
    r.all_gbs = or_usual(machine->bandwidth_gbs, r.core_gbs * machine->cores);
    return r;
}

double cost_estimate(const graphi_machine *machine, const struct kernel *kernel)
{
    const struct cost_rates rate = cost_rates(machine);
    if (!kernel->steps && kernel->known_ns > 0)
        return fmin(kernel->known_ns, MOST_NS);
    const double work = kernel->steps && kernel->work > 0 ? kernel->work : kernel->flops;
    return fmin(start_ns + fmax(work / rate.core_gflops, kernel->bytes / rate.core_gbs), MOST_NS);
}
