/* SPDX-License-Identifier: Apache-2.0 */
/* The forward recurrence: a loop kernel whose step is one phase, two where a GRU's reset gate comes before the product.
 * A share owns the hidden units of some panels of packed weights in all steps, or of a part of the rows. What it reads
 * of other shares is y of the step before, which the barrier between steps publishes; c it keeps in the output of the
 * last state. Where sums are cut in k too, each phase is two: partial sums, then their sum and the cell.
 *
 * Usual size: 1 to 64 sequences of 10 to 100 steps, 64 to 1024 units: 4 to 64 panels. */
#include "kernels/recurrence_internal.h"

#include "base/status.h"
#include "kernels/each_isa.h"

#include <math.h>
#include <string.h>

const struct recurrence_loops *recurrence_loops_of(enum isa isa)
{
#define ENTRY(isa) &recurrence_loops_##isa,
    static const struct recurrence_loops *const loops[] = {EACH_ISA(ENTRY)};
#undef ENTRY
    return loops[isa];
}

bool recurrence_usual(enum recurrence_cell cell, const struct recurrence_options *options)
{
    const struct recurrence_activation *f = options->activation;
    const bool gated = f[0].function == RECURRENCE_SIGMOID && f[1].function == RECURRENCE_TANH;
    if (options->clip > 0 || options->input_forget)
        return false;
    return cell == RECURRENCE_RNN   ? f[0].function == RECURRENCE_TANH
           : cell == RECURRENCE_GRU ? gated
                                    : gated && f[2].function == RECURRENCE_TANH;
}

struct forward {
    struct recurrence_spec spec;
    const struct recurrence_loops *loops;
    struct recurrence_part part[2];
    int parts, rows, units[2], k; /* parts of the cell; of rows, of the units of each, of k (deepcpu.txt 5.2.3) */
    size_t sums;                  /* of partial sums in the workspace, in floats from its beginning */
    int c0, inner_bias, peephole, offsets; /* inputs; -1: none */
    int last_c, gates, kept;               /* outputs; -1: none */
};

/* What a share does in a step. */
struct duty {
    int part, rows, units, k; /* which of each */
    bool partial, last;       /* sums alone; the end of the step */
    int64_t first, end;       /* rows of the step */
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

/* What a chunk of a step's rows has that all cells share; `first` counts within the step. */
struct chunk {
    const struct step *step;
    int64_t first, rows;
};

/* Units of a panel that there are, from *unit on. */
static int panel_lanes(const struct recurrence_part *part, int64_t panel, int64_t units, int64_t *unit)
{
    int64_t end;
    panel_units(part, panel, units, unit, &end);
    return (int)(end - *unit);
}

/* The sums of a panel's rows begin with x W of its part's gates. */
static void load_sums(const struct forward *f, const struct kernel_call *call, const struct recurrence_part *part,
                      const struct chunk *c, int64_t panel, bool given, float *sums)
{
    const bool inner = f->spec.cell == RECURRENCE_GRU && f->spec.reset_after; /* its candidate's x W comes later */
    int64_t unit;
    const int lanes = panel_lanes(part, panel, f->spec.units, &unit);
    const struct sum_rows rows = {
        .rows = c->rows,
        .units = f->spec.units,
        .lanes = lanes,
        .blocks = part->blocks,
        .gates = part->gates,
        .given = !given  ? 0
                 : inner ? 2
                         : part->gates,
        .x = rows_at(call->in[0].data, f->spec.ld_x, c->step->offset + c->first, part->first * f->spec.units + unit),
        .sums = {sums, part->columns}};
    f->loops->load(&rows);
}

/* The cell of rows that all go on from one array. */
static void run_cells(const struct forward *f, const struct kernel_call *call, const struct recurrence_part *part,
                      void (*cell)(const struct cell_rows *), const struct chunk *c, struct float_rows before,
                      int64_t panel, float *sums)
{
    const struct recurrence_spec *s = &f->spec;
    const int64_t row = c->step->offset + c->first, all = recurrence_gates(s->cell) * s->units;
    int64_t unit;
    const int lanes = panel_lanes(part, panel, s->units, &unit);
    const float *bias = call->in[2].data, *inner = input(call, f->inner_bias), *peep = input(call, f->peephole);
    float *work = f->parts > 1 ? call->workspace : NULL;
    const struct cell_rows rows = {
        .rows = c->rows,
        .units = s->units,
        .lanes = lanes,
        .gates = part->gates,
        .bias = bias + unit,
        .options = &s->options,
        .sums = {sums, part->columns},
        .x = rows_at(call->in[0].data, s->ld_x, row, 2 * s->units + unit),
        .inner_bias = inner ? inner + unit : NULL,
        .peephole = peep ? peep + unit : NULL,
        .before = {before.data ? before.data + unit : NULL, before.ld},
        .state = rows_at(work ? work : output(call, f->last_c), s->units, c->first, unit),
        .reset = rows_at(work ? work + s->batch * s->units : NULL, s->units, c->first, unit),
        .y = rows_at(call->out[0].data, s->ld_y, row, unit),
        .gates_out = rows_at(output(call, f->gates), all, row, unit),
        .kept = rows_at(output(call, f->kept), s->units, row, unit),
    };
    cell(&rows);
}

/* Before the first step: c of the rows that this share has in it, and of a part of those that begin later or never. */
static void begin_states(const struct forward *f, const struct kernel_call *call, const struct sequence_steps *all,
                         const struct duty *d, int64_t later, int64_t panel)
{
    const int64_t batch = call->in[3].rows, some = steps_rows(all, 0), units = f->spec.units;
    const float *c0 = input(call, f->c0);
    float *c = output(call, f->last_c), *h = call->out[1].data;
    int64_t begin, end, rest[2];
    panel_units(&f->part[0], panel, units, &begin, &end);
    split_range(batch - later, f->rows, d->rows, &rest[0], &rest[1]);
    const int64_t range[2][2] = {{d->first, d->end}, {later + rest[0], later + rest[1]}};
    for (int i = 0; i < 2; i++)
        for (int64_t r = range[i][0]; r < range[i][1]; r++)
            for (int64_t u = begin; u < end; u++) {
                if (c)
                    c[r * units + u] = r < some ? c0[r * units + u] : 0;
                if (r >= some)
                    h[r * units + u] = 0;
            }
}

static void keep_last(const struct forward *f, const struct kernel_call *call, const struct step *step,
                      const struct duty *d, int64_t panel)
{
    int64_t begin, end;
    panel_units(&f->part[d->part], panel, f->spec.units, &begin, &end);
    const float *y = call->out[0].data;
    float *h = call->out[1].data;
    for (int64_t r = most(step->ended, d->first); r < d->end; r++)
        for (int64_t u = begin; u < end; u++)
            h[r * f->spec.units + u] = y[(step->offset + r) * f->spec.ld_y + u];
}

/* Partial sums of the panel over the k-th part, for the rows from `row` of the step on. */
static struct float_rows partial_sums(const struct forward *f, const struct kernel_call *call, int part, int k,
                                      int64_t panel, int64_t row)
{
    const struct recurrence_part *p = &f->part[part];
    float *sums = (float *)call->workspace + f->sums;
    return (struct float_rows){sums + ((k * p->panels + panel) * f->spec.batch + row) * p->columns, p->columns};
}

static void add_partial(const struct forward *f, const struct kernel_call *call, const struct duty *d,
                        const struct chunk *c, int64_t panel, float *sums)
{
    const int64_t count = c->rows * f->part[d->part].columns;
    memcpy(sums, partial_sums(f, call, d->part, 0, panel, c->first).data, (size_t)count * sizeof *sums);
    for (int k = 1; k < f->k; k++) {
        const float *more = partial_sums(f, call, d->part, k, panel, c->first).data;
        for (int64_t i = 0; i < count; i++)
            sums[i] += more[i];
    }
}

/* sums += the rows of the step before times the panel, over the part of k of this share. */
static void add_product(const struct forward *f, const struct kernel_call *call, const struct duty *d,
                        const struct chunk *c, struct float_rows before, int64_t panel, struct float_rows sums)
{
    const struct recurrence_part *part = &f->part[d->part];
    struct float_rows left = d->part ? rows_at(call->workspace, f->spec.units, f->spec.batch + c->first, 0) : before;
    int64_t begin = 0, end = part->k;
    if (d->partial)
        split_range(part->k, f->k, d->k, &begin, &end);
    left.data += begin;
    const int64_t at = part->begin + panel * part->k * part->columns + begin * part->columns;
    if (f->spec.half)
        f->loops->product_half(sums, left, c->rows, end - begin, (const uint16_t *)call->in[1].data + at,
                               part->columns);
    else
        f->loops->product(sums, left, c->rows, end - begin, (const float *)call->in[1].data + at, part->columns);
}

static void (*cell_of(const struct forward *f, int part))(const struct cell_rows *)
{
    const struct recurrence_loops *l = f->loops;
    if (f->spec.cell != RECURRENCE_GRU)
        return f->spec.cell == RECURRENCE_LSTM ? l->lstm : l->rnn;
    return f->spec.reset_after ? l->gru_after : part ? l->gru_candidate : l->gru_gates;
}

/* A phase of a step for one panel. */
static void run_rows(const struct forward *f, const struct kernel_call *call, const struct duty *d,
                     const struct step *step, int64_t panel)
{
    const struct recurrence_part *part = &f->part[d->part];
    float own[RECURRENCE_ROWS * RECURRENCE_COLUMNS] __attribute__((aligned(64)));
    for (int64_t first = d->first; first < d->end;) {
        /* a chunk goes on from the step before or from h0 throughout */
        const int64_t next = first < step->joined ? least(step->joined, d->end) : d->end;
        const struct chunk c = {step, first, least(next - first, RECURRENCE_ROWS)};
        const struct float_rows before = first < step->joined
                                             ? rows_at(call->out[0].data, f->spec.ld_y, step->before + first, 0)
                                             : rows_at(call->in[3].data, f->spec.units, first, 0);
        const struct float_rows sums =
            d->partial ? partial_sums(f, call, d->part, d->k, panel, first) : (struct float_rows){own, part->columns};
        if (f->k > 1 && !d->partial) {
            add_partial(f, call, d, &c, panel, own);
        } else {
            load_sums(f, call, part, &c, panel, d->k == 0, sums.data);
            add_product(f, call, d, &c, before, panel, sums);
        }
        if (!d->partial)
            run_cells(f, call, part, cell_of(f, d->part), &c, before, panel, own);
        first += c.rows;
    }
}

/* Shares of a phase go over parts of k, then of units, then of rows: members have neighbours' panels of the same rows.
 */
static struct duty duty_of(const struct forward *f, int phase, int share, const struct step *step)
{
    const int halves = f->k > 1 ? 2 : 1;
    struct duty d = {.part = phase / halves, .partial = halves > 1 && phase % 2 == 0};
    const int parts = d.partial ? f->k : 1;
    d.last = !d.partial && d.part == f->parts - 1;
    d.k = share % parts;
    d.units = share / parts % f->units[d.part];
    d.rows = share / parts / f->units[d.part];
    split_range(step->rows, f->rows, d.rows, &d.first, &d.end);
    return d;
}

static graphi_status forward_run(const struct kernel_call *call, int phase, int share)
{
    const struct forward *f = call->params;
    if (!call->loop)
        TRY(steps_check("recurrence", input(call, f->offsets), f->spec.steps, call->in[0].rows, call->in[3].rows));
    const struct sequence_steps all = all_steps(f, call);
    const struct step step = step_at(f, &all, call->loop);
    const struct duty d = duty_of(f, phase, share, &step);
    int64_t panel, end;
    split_range(f->part[d.part].panels, f->units[d.part], d.units, &panel, &end);
    const int64_t panels = end - panel, begin = panel;
    for (int64_t i = 0; i < panels; i++) {
        panel = call->loop & 1 ? end - 1 - i : begin + i; /* as shares go (execute.c) */
        if (!call->loop && !phase && d.k == 0)
            begin_states(f, call, &all, &d, step.rows, panel);
        run_rows(f, call, &d, &step, panel);
        if (d.last)
            keep_last(f, call, &step, &d, panel);
    }
    return GRAPHI_OK;
}

static int64_t forward_steps(const struct kernel_call *call)
{
    const struct sequence_steps all = all_steps(call->params, call);
    return most(all.steps, 1);
}

/* Work of a share in a step that is worth the barrier after it, in flops: a quarter of a microsecond (bench recurrent,
 * 64 units). */
enum { STEP_FLOPS = 45000 };

/* As asked for; else all panels, but as few shares of units as a barrier is worth. */
static void cut(struct forward *f)
{
    const struct recurrence_spec *s = &f->spec;
    f->rows = (int)most(least(s->cut.rows, s->batch), 1);
    f->k = (int)most(least(s->cut.k, s->units), 1);
    for (int part = 0; part < f->parts; part++) {
        const struct recurrence_part *p = &f->part[part];
        const double weights = (double)p->k * (double)p->gates * (double)s->units;
        const double work =
            fmax(2 * (double)s->batch, 4) * weights + RECURRENCE_CELL_FLOPS * (double)(s->batch * p->gates * s->units);
        const int64_t worth = (int64_t)fmin(work / STEP_FLOPS, (double)p->panels);
        f->units[part] = (int)most(least(s->cut.units > 0 ? s->cut.units : worth, p->panels), 1);
    }
}

/* Of one part of k. */
static int64_t partial_floats(const struct forward *f)
{
    int64_t floats = 0;
    for (int part = 0; part < f->parts; part++)
        floats = most(floats, f->part[part].panels * f->part[part].columns * f->spec.batch);
    return floats;
}

graphi_status recurrence_bind(const struct recurrence_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct forward f = {.spec = *spec, .loops = recurrence_loops_of(isa)};
    f.spec.options.usual = recurrence_usual(spec->cell, &spec->options);
    const bool lstm = spec->cell == RECURRENCE_LSTM, inner = spec->cell == RECURRENCE_GRU && spec->reset_after;
    int next = 4, out = 2;
    f.c0 = lstm ? next++ : -1;
    f.inner_bias = inner ? next++ : -1;
    f.peephole = spec->peepholes ? next++ : -1;
    f.offsets = spec->offsets ? next++ : -1;
    f.last_c = lstm ? out++ : -1;
    f.gates = spec->gates ? out : -1;
    f.kept = spec->kept ? out + 1 : -1;
    f.parts = recurrence_parts(spec->cell, spec->units, spec->reset_after, false, f.part);
    cut(&f);
    const double all = recurrence_gates(spec->cell) * (double)spec->units, rows = (double)spec->rows;
    struct kernel like = {.name = lstm                           ? "lstm"
                                  : spec->cell == RECURRENCE_GRU ? "gru"
                                                                 : "rnn",
                          .run = forward_run,
                          .steps = forward_steps,
                          .most_steps = (int32_t)spec->steps,
                          .apart = f.units[0] == 1 && f.units[f.parts - 1] == 1 && f.k == 1 &&
                                   (f.rows == 1 || !spec->offsets),
                          .flops = rows * all * (2 * (double)spec->units + 10),
                          .work = recurrence_work(spec),
                          .bytes = 4 * (rows * (all + (double)spec->units) + all * (double)spec->units)};
    for (int part = 0; part < f.parts; part++) {
        if (f.k > 1)
            like.shares[like.phases++] = f.rows * f.units[part] * f.k;
        like.shares[like.phases++] = f.rows * f.units[part];
    }
    const int64_t states = f.parts > 1 ? 2 * spec->batch * spec->units : 0;
    f.sums = (size_t)states;
    like.workspace = (size_t)(states + (f.k > 1 ? f.k * partial_floats(&f) : 0)) * sizeof(float);
    return kernel_make(like, &f, sizeof f, kernel);
}
