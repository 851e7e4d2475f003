/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent weights in the order in which a recurrence reads them: panels of a few blocks of RECURRENCE_LANES hidden
 * units with all gates of a phase, dense in k, so that a share streams through its own panels alone. Backward panels
 * are of the transposed weights, a column a unit. Lanes beyond the last unit are zeros. A share packs a panel. */
#include "kernels/recurrence_internal.h"

#include "base/status.h"

#include <string.h>

/* Blocks of a panel: four vectors of AVX-512 or more, eight of an LSTM, six of a GRU, since each sum of one row waits
 * for itself; but at least two panels, for two members. */
static int panel_blocks(int gates, int64_t units)
{
    const int64_t all = divide_up(units, RECURRENCE_LANES);
    int blocks = gates == 1 ? 4 : 2;
    while (blocks > 1 && divide_up(all, blocks) < 2)
        blocks /= 2;
    return blocks;
}

static void fill_part(struct recurrence_part *part, int first, int gates, int64_t units, bool backward)
{
    const int columns = backward ? 1 : gates, blocks = panel_blocks(columns, units);
    *part = (struct recurrence_part){.first = first,
                                     .gates = gates,
                                     .blocks = blocks,
                                     .k = backward ? gates * units : units,
                                     .panels = divide_up(divide_up(units, RECURRENCE_LANES), blocks),
                                     .columns = (int64_t)columns * blocks * RECURRENCE_LANES};
}

int recurrence_parts(enum recurrence_cell cell, int64_t units, bool reset_after, bool backward,
                     struct recurrence_part part[2])
{
    const bool two = cell == RECURRENCE_GRU && !reset_after;
    fill_part(&part[0], 0, two ? 2 : recurrence_gates(cell), units, backward);
    if (!two)
        return 1;
    fill_part(&part[1], 2, 1, units, backward);
    part[1].begin = part[0].panels * part[0].k * part[0].columns;
    return 2;
}

int64_t recurrence_packed_count(const struct recurrence_pack_spec *spec)
{
    struct recurrence_part part[2];
    const int parts = recurrence_parts(spec->cell, spec->units, spec->reset_after, spec->backward, part);
    return part[parts - 1].begin + part[parts - 1].panels * part[parts - 1].k * part[parts - 1].columns;
}

struct pack_params {
    int64_t units, row_step, column_step; /* of U as units x (gates * units) */
    struct recurrence_part part[2];
    bool backward, half;
};

/* To nearest, ties to even; NaN stays one. */
static uint16_t rounded_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Element (i, lane) of a forward panel's gate is U[i, gate * units + unit]; of a backward panel it is U[unit, i]. */
static void pack_columns(const struct pack_params *p, const struct recurrence_part *part, const float *u, int gate,
                         int64_t unit, int lanes, void *target, int64_t at)
{
    const int64_t first = (int64_t)(part->first + gate) * p->units;
    const int64_t step = p->backward ? p->column_step : p->row_step;
    const int64_t across = p->backward ? p->row_step : p->column_step;
    const float *from =
        p->backward ? u + first * p->column_step + unit * p->row_step : u + (first + unit) * p->column_step;
    for (int64_t i = 0; i < part->k; i++, from += step, at += part->columns)
        for (int lane = 0; lane < RECURRENCE_LANES; lane++) {
            const float weight = lane < lanes ? from[lane * across] : 0;
            if (p->half)
                ((uint16_t *)target)[at + lane] = rounded_half(weight);
            else
                ((float *)target)[at + lane] = weight;
        }
}

static graphi_status pack_run(const struct kernel_call *call, int phase, int share)
{
    const struct pack_params *p = call->params;
    const bool second = share >= p->part[0].panels;
    const struct recurrence_part *part = &p->part[second];
    const int64_t panel = share - (second ? p->part[0].panels : 0);
    const int gates = p->backward ? 1 : part->gates;
    const int64_t at = part->begin + panel * part->k * part->columns;
    for (int block = 0; block < part->blocks; block++) {
        int lanes;
        const int64_t unit = block_units(part, panel, block, p->units, &lanes);
        for (int gate = 0; gate < gates; gate++)
            pack_columns(p, part, call->in[0].data, gate, unit, lanes, call->out[0].data,
                         at + (block * gates + gate) * RECURRENCE_LANES);
    }
    return GRAPHI_OK;
}

graphi_status recurrence_pack_bind(const struct recurrence_pack_spec *spec, struct kernel *kernel)
{
    const int64_t all = recurrence_gates(spec->cell) * spec->units;
    struct pack_params p = {.units = spec->units,
                            .row_step = spec->trans ? 1 : all,
                            .column_step = spec->trans ? spec->units : 1,
                            .backward = spec->backward,
                            .half = spec->half};
    const int parts = recurrence_parts(spec->cell, spec->units, spec->reset_after, spec->backward, p.part);
    const int64_t panels = p.part[0].panels + (parts > 1 ? p.part[1].panels : 0);
    const double bytes = 4.0 * (double)(recurrence_packed_count(spec) + spec->units * all);
    struct kernel like = {.name = "recurrence_pack", .run = pack_run, .shares = {(int)panels}, .bytes = bytes};
    return kernel_make(like, &p, sizeof p, kernel);
}
