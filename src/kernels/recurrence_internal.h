/* SPDX-License-Identifier: Apache-2.0 */
/* What the recurrence forward, backward and its packing share: how units are cut into panels. */
#ifndef KERNELS_RECURRENCE_INTERNAL_H
#define KERNELS_RECURRENCE_INTERNAL_H

#include "kernels/recurrence_isa.h"
#include "kernels/recurrence_steps.h"

static inline const void *input(const struct kernel_call *call, int i)
{
    return i < 0 ? NULL : call->in[i].data;
}
static inline void *output(const struct kernel_call *call, int i)
{
    return i < 0 ? NULL : call->out[i].data;
}

/* Rows whose sums a share has at a time: 16 to 32 KB of them, beside a panel in L2. */
enum { RECURRENCE_ROWS = 64, RECURRENCE_COLUMNS = 128 };

/* An activation of a unit takes as long as so many flops of a product (bench recurrent, 64 units). */
enum { RECURRENCE_CELL_FLOPS = 80 };

/* kernel.work: a weight that is read again in every step takes, from level 2, a flop's time a byte, since two vectors a
 * cycle are multiplied and added while one is loaded. */
static inline double recurrence_work(const struct recurrence_spec *s)
{
    const double all = recurrence_gates(s->cell) * (double)s->units, rows = (double)s->rows;
    const double product = 2 * rows * all * (double)s->units, weights = 4 * (double)s->steps * all * (double)s->units;
    return (product > weights ? product : weights) + rows * all * RECURRENCE_CELL_FLOPS;
}

/* INVALID unless these are offsets of whole steps of rows: none more than the batch, or than the step before, all of
 * them as many as there are. NULL: every step has the batch. */
graphi_status steps_check(const char *where, const int32_t *offsets, int64_t bound, int64_t rows, int64_t batch);

/* A part of U whose products belong to one phase: `gates` gates from gate `first` on, read as k x (gates * units) in
 * panels of `blocks` blocks of RECURRENCE_LANES units. Backward: (gates * units) x units, of one column a unit. */
struct recurrence_part {
    int first, gates, blocks;
    int64_t k, panels, columns; /* columns of a panel */
    int64_t begin;              /* of its panels in the packed form, in floats */
};

/* At most two parts; gives their number. */
int recurrence_parts(enum recurrence_cell cell, int64_t units, bool reset_after, bool backward,
                     struct recurrence_part part[2]);

static inline const float *part_panel(const struct recurrence_part *part, const float *packed, int64_t panel)
{
    return packed + part->begin + panel * part->k * part->columns;
}

/* The units of a block: *lanes of them, from the one given back on; 0: beyond the last. */
static inline int64_t block_units(const struct recurrence_part *part, int64_t panel, int block, int64_t units,
                                  int *lanes)
{
    const int64_t first = (panel * part->blocks + block) * RECURRENCE_LANES;
    *lanes = (int)most(least(units - first, RECURRENCE_LANES), 0);
    return first;
}

/* The units of all blocks of a panel. */
static inline void panel_units(const struct recurrence_part *part, int64_t panel, int64_t units, int64_t *begin,
                               int64_t *end)
{
    const int64_t wide = (int64_t)part->blocks * RECURRENCE_LANES;
    *begin = least(panel * wide, units);
    *end = least(*begin + wide, units);
}

/* Whether the cell is that of the papers, which has code of its own. */
bool recurrence_usual(enum recurrence_cell cell, const struct recurrence_options *options);

static inline struct float_rows rows_at(const void *data, int64_t ld, int64_t row, int64_t column)
{
    return (struct float_rows){data ? (float *)data + row * ld + column : NULL, ld};
}

#endif
