/* SPDX-License-Identifier: Apache-2.0 */
/* The time of an operation class at width p on a described machine, from its time on one core of the machine at hand:
 *
 *   t(p)          = start + max(arithmetic(p), memory(p)) + barriers(p)
 *   arithmetic(p) = t(1) there * part of the work that the busiest of min(p, saturation, shares) members has
 *   t(1) there    = t(1) here * estimate there / estimate here
 *   memory(p)     = bytes / min(p * core bandwidth, machine bandwidth), when the caches of the team cannot hold them
 *   barriers(p)   = (phases of all steps + 1) * barrier * log2(p), one doubling more when the team is spread over tiles
 *
 * The estimates are by the rates of one core: arithmetic or memory, whichever limits.
 *
 * Where the description says even_split, the work divides by min(p, saturation) instead: loops of the papers' software,
 * whatever this engine's shares are. The saturation widths are what graphi.txt found (products end at 8 threads,
 * element-wise operations at 16) on operations of one size, 33.6 MFLOP and 32,768 elements; a larger operation
 * saturates later, with the square root of its work, since the part of its data that members share grows with the
 * square root. */
#include "engine/cost/curve_extend.h"

#include "engine/cost/cost.h"
#include "machine/machine.h"

#include <math.h>

static const double product_flops = 2.0 * 64 * 512 * 512, elementwise_bytes = 3.0 * 32768 * 4, start_ns = 60;

static double saturation(const graphi_machine *machine, const struct kernel *kernel, int scalability)
{
    if (scalability >= 2)
        return machine->gemm_saturation * fmax(1, sqrt(kernel->flops / product_flops));
    return machine->elementwise_saturation * fmax(1, sqrt(kernel->bytes / elementwise_bytes));
}

static double barriers(const struct kernel *kernel)
{
    return kernel->apart ? 0 : (double)kernel->phases * (double)(kernel->steps ? kernel->most_steps : 1);
}

struct class_model curves_model(const graphi_machine *machine, const struct kernel *kernel, int scalability, double t1)
{
    struct class_model model = {.t1 = t1,
                                .bytes = kernel->bytes,
                                .phases = kernel->phases,
                                .barriers = barriers(kernel),
                                .shares = 1,
                                .saturation = saturation(machine, kernel, scalability)};
    for (int p = 0; p < kernel->phases; p++)
        model.shares = kernel->shares[p] > model.shares ? kernel->shares[p] : model.shares;
    return model;
}

/* Time of the busiest member, measured share by share: the shares are split as the engine splits them. */
static double busiest(const struct class_model *m, int members)
{
    const double *share = m->share_ns;
    double sum = 0;
    for (int phase = 0; phase < m->phases; phase++) {
        double most = 0;
        for (int i = 0; i < members; i++) {
            double own = 0;
            int64_t begin, end;
            split_range(m->phase_shares[phase], members, i, &begin, &end);
            for (int64_t s = begin; s < end; s++)
                own += share[s];
            most = fmax(most, own);
        }
        sum += most;
        share += m->phase_shares[phase];
    }
    return sum;
}

static double cache_of_team(const graphi_machine *machine, int width, bool spread)
{
    int per_tile = machine->tiles > 0 ? (machine->cores + machine->tiles - 1) / machine->tiles : 1;
    int tiles = spread ? width : (width + per_tile - 1) / per_tile;
    return (double)machine->l2_bytes * tiles + (double)machine->l3_bytes;
}

double curves_at(const struct class_model *m, const graphi_machine *machine, int width, bool spread)
{
    double useful = m->saturation > 0 ? fmin(width, m->saturation) : width;
    double start = fmin(start_ns, m->t1), work = m->t1 - start, arithmetic; /* known durations may be shorter */
    int members = (int)fmax(1, fmin(floor(useful), m->shares));
    if (machine->even_split > 0)
        arithmetic = work / fmax(1, useful);
    else if (m->share_ns)
        arithmetic = busiest(m, members);
    else
        arithmetic = work * fmax(ceil((double)m->shares / members) / m->shares, 1 / fmax(1, useful));
    struct cost_rates rate = cost_rates(machine);
    double memory = 0;
    if (m->bytes > cache_of_team(machine, width, spread))
        memory = m->bytes / fmin(width * rate.core_gbs, rate.all_gbs);
    double doublings = width > 1 ? log2(width) + spread : 0;
    double ns = start + fmax(arithmetic, memory) + (m->barriers + 1) * rate.barrier_ns * doublings;
    return fmin(fmax(ns, LEAST_NS), MOST_NS);
}

void curves_extend(const struct class_model *model, const graphi_machine *machine, struct cost_curve *curve)
{
    *curve = (struct cost_curve){0};
    for (int width = 1; curve->samples < CURVE_SAMPLES;) {
        int i = curve->samples++;
        curve->width[i] = width;
        curve->ns[i] = curves_at(model, machine, width, false);
        if (width <= machine->tiles && machine->tiles < machine->cores)
            curve->spread_ns[i] = curves_at(model, machine, width, true);
        if (i == 0 || curve->ns[i] < curve_ns(curve, curve->best))
            curve->best = width;
        if (width >= machine->cores)
            break;
        int next = width + 1; /* times are staircases: every width, or 1 2 3 4 6 8 12 18 ... where that is too many */
        if (machine->cores > CURVE_SAMPLES && width >= 4)
            next = (width + width / 2) & ~1;
        width = next < machine->cores ? next : machine->cores;
    }
}
