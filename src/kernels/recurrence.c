/* SPDX-License-Identifier: Apache-2.0 */
/* The forward recurrence: a loop kernel whose step is one phase, two where a GRU's reset gate comes before the product.
 * A share owns the hidden units of one panel of packed weights in all steps. What it reads of other shares is y of the
 * step before, which the barrier between steps publishes; c it keeps in the output of the last state.
 *
 * Usual size: 1 to 64 sequences of 10 to 100 steps, 64 to 1024 units: 4 to 64 panels. */
#include "kernels/recurrence_internal.h"

#include "base/status.h"
#include "kernels/each_isa.h"

const struct recurrence_loops *recurrence_loops_of(enum isa isa)
{
#define ENTRY(isa) &recurrence_loops_##isa,
    static const struct recurrence_loops *const loops[] = {EACH_ISA(ENTRY)};
#undef ENTRY
    return loops[isa];
}

struct forward {
    struct recurrence_spec spec;
    const struct recurrence_loops *loops;
    struct recurrence_part part[2];
    int c0, inner_bias, peephole, offsets; /* inputs; -1: none */
    int last_c, gates, kept;               /* outputs; -1: none */
};

/* One step: its rows and those that they go on from. */
struct step {
    int64_t t, offset, rows;
    int64_t before, joined; /* where the rows of the step before lie, and how many go on from them; others from h0 */
    int64_t ended;          /* rows from here on have their last step */
};

static struct sequence_steps all_steps(const struct forward *f, const struct kernel_call *call)
{
    return steps_of(input(call, f->offsets), f->spec.steps, call->in[0].rows, call->in[3].rows);
}

static struct step step_at(const struct forward *f, const struct sequence_steps *all, int64_t loop)
{
    const bool reverse = f->spec.reverse;
    const int64_t t = reverse ? all->steps - 1 - loop : loop, before = reverse ? t + 1 : t - 1;
    struct step s = {.t = t, .rows = steps_rows(all, t)};
    if (!s.rows)
        return s;
    s.offset = steps_offset(all, t);
    s.joined = least(steps_rows(all, before), s.rows);
    s.before = s.joined ? steps_offset(all, before) : 0;
    s.ended = reverse ? (t ? s.rows : 0) : steps_rows(all, t + 1);
    return s;
}

/* The sums of a panel's rows begin with x W of its part's gates. */
static void load_sums(const struct forward *f, const struct recurrence_part *part, const float *x, int64_t rows,
                      int64_t panel, int gates, float *sums)
{
    const int64_t units = f->spec.units;
    for (int64_t r = 0; r < rows; r++, x += f->spec.ld_x, sums += part->columns)
        for (int block = 0; block < part->blocks; block++) {
            int lanes;
            const int64_t unit = block_units(part, panel, block, units, &lanes);
            for (int g = 0; g < part->gates; g++) {
                float *to = sums + (block * part->gates + g) * RECURRENCE_LANES;
                const float *from = x + (part->first + g) * units + unit;
                for (int lane = 0; lane < RECURRENCE_LANES; lane++)
                    to[lane] = lane < lanes && g < gates ? from[lane] : 0;
            }
        }
}

/* What a chunk of a step's rows has that all cells share; `first` counts within the step. */
struct chunk {
    const struct step *step;
    int64_t first, rows;
};

/* The cell of rows that all go on from one array, for each block of the panel. */
static void run_cells(const struct forward *f, const struct kernel_call *call, const struct recurrence_part *part,
                      void (*cell)(const struct cell_rows *), const struct chunk *c, struct float_rows before,
                      int64_t panel, float *sums)
{
    const struct recurrence_spec *s = &f->spec;
    const int64_t row = c->step->offset + c->first, all = recurrence_gates(s->cell) * s->units;
    float *work = call->workspace;
    for (int block = 0; block < part->blocks; block++) {
        int lanes;
        const int64_t unit = block_units(part, panel, block, s->units, &lanes);
        const float *bias = call->in[2].data, *inner = input(call, f->inner_bias), *peep = input(call, f->peephole);
        struct cell_rows rows = {
            .rows = c->rows,
            .units = s->units,
            .lanes = lanes,
            .bias = bias + unit,
            .options = &s->options,
            .sums = {sums + block * part->gates * RECURRENCE_LANES, part->columns},
            .x = rows_at(call->in[0].data, s->ld_x, row, 2 * s->units + unit),
            .inner_bias = inner ? inner + unit : NULL,
            .peephole = peep ? peep + unit : NULL,
            .before = {before.data ? before.data + unit : NULL, before.ld},
            .state = rows_at(work ? work : output(call, f->last_c), s->units, c->first, unit),
            .reset = rows_at(work ? work + s->batch * s->units : NULL, s->units, c->first, unit),
            .y = rows_at(call->out[0].data, s->ld_y, row, unit),
            .gates = rows_at(output(call, f->gates), all, row, unit),
            .kept = rows_at(output(call, f->kept), s->units, row, unit),
        };
        if (lanes)
            cell(&rows);
    }
}

/* Before the first step: c of all sequences that have one. */
static void begin_states(const struct forward *f, const struct kernel_call *call, const struct sequence_steps *all,
                         int64_t panel)
{
    const int64_t batch = call->in[3].rows, some = steps_rows(all, 0), units = f->spec.units;
    const float *c0 = input(call, f->c0);
    float *c = output(call, f->last_c), *h = call->out[1].data;
    int64_t begin, end;
    panel_units(&f->part[0], panel, units, &begin, &end);
    for (int64_t r = 0; r < batch; r++)
        for (int64_t u = begin; u < end; u++) {
            if (c)
                c[r * units + u] = r < some ? c0[r * units + u] : 0;
            if (r >= some)
                h[r * units + u] = 0;
        }
}

static void keep_last(const struct forward *f, const struct kernel_call *call, const struct step *step,
                      const struct recurrence_part *part, int64_t panel)
{
    int64_t begin, end;
    panel_units(part, panel, f->spec.units, &begin, &end);
    const float *y = call->out[0].data;
    float *h = call->out[1].data;
    for (int64_t r = step->ended; r < step->rows; r++)
        for (int64_t u = begin; u < end; u++)
            h[r * f->spec.units + u] = y[(step->offset + r) * f->spec.ld_y + u];
}

/* A phase of a step for one panel. */
static void run_rows(const struct forward *f, const struct kernel_call *call, int phase, const struct step *step,
                     int64_t panel)
{
    const struct recurrence_loops *l = f->loops;
    const struct recurrence_part *part = &f->part[phase];
    const bool gru = f->spec.cell == RECURRENCE_GRU, after = f->spec.reset_after;
    void (*const cell)(const struct cell_rows *) = !gru ? (f->spec.cell == RECURRENCE_LSTM ? l->lstm : l->rnn)
                                                        : (after   ? l->gru_after
                                                           : phase ? l->gru_candidate
                                                                   : l->gru_gates);
    float sums[RECURRENCE_ROWS * RECURRENCE_COLUMNS] __attribute__((aligned(64)));
    for (int64_t first = 0; first < step->rows;) {
        /* a chunk goes on from the step before or from h0 throughout */
        const int64_t next = first < step->joined ? step->joined : step->rows;
        const struct chunk c = {step, first, least(next - first, RECURRENCE_ROWS)};
        const struct float_rows before = first < step->joined
                                             ? rows_at(call->out[0].data, f->spec.ld_y, step->before + first, 0)
                                             : rows_at(call->in[3].data, f->spec.units, first, 0);
        load_sums(f, part, (const float *)call->in[0].data + (step->offset + first) * f->spec.ld_x, c.rows, panel,
                  gru && after ? 2 : part->gates, sums);
        const struct float_rows left =
            phase ? rows_at(call->workspace, f->spec.units, f->spec.batch + first, 0) : before;
        l->product((struct float_rows){sums, part->columns}, left, c.rows, part->k,
                   part_panel(part, call->in[1].data, panel), part->columns);
        run_cells(f, call, part, cell, &c, before, panel, sums);
        first += c.rows;
    }
}

static graphi_status forward_run(const struct kernel_call *call, int phase, int share)
{
    const struct forward *f = call->params;
    if (!call->loop)
        TRY(steps_check("recurrence", input(call, f->offsets), f->spec.steps, call->in[0].rows, call->in[3].rows));
    const struct sequence_steps all = all_steps(f, call);
    const struct step step = step_at(f, &all, call->loop);
    if (!call->loop && !phase)
        begin_states(f, call, &all, share);
    run_rows(f, call, phase, &step, share);
    if (!f->part[1].k || phase)
        keep_last(f, call, &step, &f->part[phase], share);
    return GRAPHI_OK;
}

static int64_t forward_steps(const struct kernel_call *call)
{
    const struct sequence_steps all = all_steps(call->params, call);
    return most(all.steps, 1);
}

graphi_status recurrence_bind(const struct recurrence_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct forward f = {.spec = *spec, .loops = recurrence_loops_of(isa)};
    const bool lstm = spec->cell == RECURRENCE_LSTM, inner = spec->cell == RECURRENCE_GRU && spec->reset_after;
    int next = 4, out = 2;
    f.c0 = lstm ? next++ : -1;
    f.inner_bias = inner ? next++ : -1;
    f.peephole = spec->peepholes ? next++ : -1;
    f.offsets = spec->offsets ? next++ : -1;
    f.last_c = lstm ? out++ : -1;
    f.gates = spec->gates ? out : -1;
    f.kept = spec->kept ? out + 1 : -1;
    const int phases = recurrence_parts(spec->cell, spec->units, spec->reset_after, false, f.part);
    const double all = recurrence_gates(spec->cell) * (double)spec->units, rows = (double)spec->rows;
    struct kernel like = {.name = lstm                           ? "lstm"
                                  : spec->cell == RECURRENCE_GRU ? "gru"
                                                                 : "rnn",
                          .run = forward_run,
                          .steps = forward_steps,
                          .most_steps = (int32_t)spec->steps,
                          .phases = phases,
                          .shares = {(int)f.part[0].panels, (int)f.part[1].panels},
                          .flops = rows * all * (2 * (double)spec->units + 10),
                          .bytes = 4 * (rows * (all + (double)spec->units) + all * (double)spec->units)};
    if (phases > 1)
        like.workspace = 2 * (size_t)(spec->batch * spec->units) * sizeof(float);
    return kernel_make(like, &f, sizeof f, kernel);
}
