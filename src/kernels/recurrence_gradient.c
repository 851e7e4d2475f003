/* SPDX-License-Identifier: Apache-2.0 */
/* The backward recurrence: a loop kernel over the steps from the last one back, and one more for what is left of the
 * gradients of h0. A share owns the hidden units of one panel of the transposed weights: it adds up the gradient of
 * their h from the step after, whose pre-activations' gradients the barrier between steps publishes, then gives those
 * of its own. What goes past the gates from step to step is kept in the outputs for the initial states. Weight
 * gradients are products over all rows, of other nodes. */
#include "kernels/recurrence_internal.h"

#include "base/status.h"

struct backward {
    struct recurrence_spec spec;
    const struct recurrence_loops *loops;
    struct recurrence_part part[2];
    int c0, kept, peephole, dy, dh, dc, offsets; /* inputs; -1: none */
    int dc0, inner;                              /* outputs; -1: none */
};

/* Inputs that there always are, and outputs. */
enum { WEIGHTS, FIRST_H, GATES, Y };
enum { DX, DH0 };

struct step {
    int64_t t, offset, rows; /* 0 rows: nothing but the initial states is left */
    int64_t after, left;     /* rows of the step that was processed before, and where they lie */
    int64_t joined;          /* rows that get their gradient from it; others of this step have their last step here */
    int64_t before, begun;   /* where the rows of the step before in time lie, and how many have one */
};

static struct sequence_steps all_steps(const struct backward *b, const struct kernel_call *call)
{
    return steps_of(input(call, b->offsets), b->spec.steps, call->in[GATES].rows, call->in[FIRST_H].rows);
}

static struct step step_at(const struct backward *b, const struct sequence_steps *all, int64_t loop)
{
    const bool reverse = b->spec.reverse;
    const int64_t t = reverse ? loop : all->steps - 1 - loop, after = reverse ? t - 1 : t + 1;
    const int64_t before = reverse ? t + 1 : t - 1;
    struct step s = {.t = t, .rows = steps_rows(all, t), .left = steps_rows(all, after)};
    s.offset = s.rows ? steps_offset(all, t) : 0;
    s.after = s.left ? steps_offset(all, after) : 0;
    s.joined = least(s.left, s.rows);
    s.begun = least(steps_rows(all, before), s.rows);
    s.before = s.begun ? steps_offset(all, before) : 0;
    return s;
}

/* Where the gradients lie that the products with U read. */
static struct float_rows gradient_rows(const struct backward *b, const struct kernel_call *call, int64_t row, int first)
{
    const int64_t all = recurrence_gates(b->spec.cell) * b->spec.units;
    return rows_at(b->inner >= 0 ? output(call, b->inner) : call->out[DX].data, all, row, first * b->spec.units);
}

/* Sums of a panel's units for some rows: what is given (NULL: nothing) and more of it. */
static void load_sums(const struct backward *b, const struct recurrence_part *part, struct float_rows given,
                      struct float_rows more, int64_t rows, int64_t panel, float *sums)
{
    int64_t begin, end;
    panel_units(part, panel, b->spec.units, &begin, &end);
    const struct gradient_sums s = {.rows = rows,
                                    .lanes = (int)(end - begin),
                                    .columns = (int)part->columns,
                                    .given = rows_at(given.data, given.ld, 0, begin),
                                    .more = rows_at(more.data, more.ld, 0, begin),
                                    .sums = {sums, part->columns}};
    b->loops->load_gradient(&s);
}

static void run_cells(const struct backward *b, const struct kernel_call *call, const struct recurrence_part *part,
                      void (*cell)(const struct cell_gradient_rows *), const struct step *step, int64_t first,
                      int64_t rows, struct float_rows before, int64_t panel, float *sums)
{
    const struct recurrence_spec *s = &b->spec;
    const int64_t row = step->offset + first, all = recurrence_gates(s->cell) * s->units;
    const bool rnn = s->cell == RECURRENCE_RNN;
    const float *peep = input(call, b->peephole);
    int64_t unit, end;
    panel_units(part, panel, s->units, &unit, &end);
    const struct cell_gradient_rows c = {
        .rows = rows,
        .units = s->units,
        .lanes = (int)(end - unit),
        .options = &s->options,
        .dh = {sums, part->columns},
        .gates = rnn ? rows_at(call->in[Y].data, s->ld_y, row, unit) : rows_at(call->in[GATES].data, all, row, unit),
        .kept = rows_at(input(call, b->kept), s->units, row, unit),
        .before = {before.data ? before.data + unit : NULL, before.ld},
        .peephole = peep ? peep + unit : NULL,
        .carry = rows_at(b->dc0 >= 0 ? output(call, b->dc0) : call->out[DH0].data, s->units, first, unit),
        .dx = rows_at(call->out[DX].data, all, row, unit),
        .inner = rows_at(output(call, b->inner), all, row, unit),
    };
    cell(&c);
}

/* c of the step before, of an LSTM; h of others. */
static struct float_rows rows_before(const struct backward *b, const struct kernel_call *call, const struct step *step,
                                     int64_t first)
{
    const bool lstm = b->spec.cell == RECURRENCE_LSTM;
    const int64_t units = b->spec.units;
    if (first >= step->begun)
        return rows_at(lstm ? input(call, b->c0) : call->in[FIRST_H].data, units, first, 0);
    return lstm ? rows_at(input(call, b->kept), units, step->before + first, 0)
                : rows_at(call->in[Y].data, b->spec.ld_y, step->before + first, 0);
}

static void (*first_cell(const struct backward *b))(const struct cell_gradient_rows *)
{
    const struct recurrence_loops *l = b->loops;
    return b->spec.cell == RECURRENCE_LSTM  ? l->lstm_gradient
           : b->spec.cell == RECURRENCE_RNN ? l->rnn_gradient
           : b->spec.reset_after            ? l->gru_after_gradient
                                            : l->gru_candidate_gradient;
}

/* A GRU's gradient of h that goes past the gates, which the rows of this step get too. */
static struct float_rows passed(const struct backward *b, const struct kernel_call *call, int64_t first)
{
    return rows_at(b->spec.cell == RECURRENCE_GRU ? call->out[DH0].data : NULL, b->spec.units, first, 0);
}

/* Rows of a step up to where another rule begins. */
static int64_t chunk_rows(int64_t first, int64_t rows, const int64_t border[2])
{
    int64_t next = rows;
    for (int i = 0; i < 2; i++)
        if (border[i] > first && border[i] < next)
            next = border[i];
    return least(next - first, RECURRENCE_ROWS);
}

static void run_rows(const struct backward *b, const struct kernel_call *call, const struct step *step, int64_t panel)
{
    const struct recurrence_part *part = &b->part[0];
    const int64_t border[] = {step->joined, step->begun};
    float sums[RECURRENCE_ROWS * RECURRENCE_COLUMNS] __attribute__((aligned(64)));
    for (int64_t first = 0, rows; first < step->rows; first += rows) {
        rows = chunk_rows(first, step->rows, border);
        const bool joined = first < step->joined;
        const struct float_rows more =
            joined ? passed(b, call, first) : rows_at(input(call, b->dh), b->spec.units, first, 0);
        load_sums(b, part, rows_at(input(call, b->dy), b->spec.ld_y, step->offset + first, 0), more, rows, panel, sums);
        if (joined)
            b->loops->product((struct float_rows){sums, part->columns}, gradient_rows(b, call, step->after + first, 0),
                              rows, part->k, part_panel(part, call->in[WEIGHTS].data, panel), part->columns);
        run_cells(b, call, part, first_cell(b), step, first, rows, rows_before(b, call, step, first), panel, sums);
    }
}

/* The rest of a GRU whose reset gate comes before the product: the gradient of r h. */
static void run_reset(const struct backward *b, const struct kernel_call *call, const struct step *step, int64_t panel)
{
    const struct recurrence_part *part = &b->part[1];
    const int64_t border[] = {step->begun, step->begun};
    float sums[RECURRENCE_ROWS * RECURRENCE_COLUMNS] __attribute__((aligned(64)));
    for (int64_t first = 0, rows; first < step->rows; first += rows) {
        rows = chunk_rows(first, step->rows, border);
        load_sums(b, part, (struct float_rows){0}, (struct float_rows){0}, rows, panel, sums);
        b->loops->product((struct float_rows){sums, part->columns}, gradient_rows(b, call, step->offset + first, 2),
                          rows, part->k, part_panel(part, call->in[WEIGHTS].data, panel), part->columns);
        run_cells(b, call, part, b->loops->gru_gates_gradient, step, first, rows, rows_before(b, call, step, first),
                  panel, sums);
    }
}

/* Sequences that begin at the step that was processed before: what is left goes to h0. */
static void end_states(const struct backward *b, const struct kernel_call *call, const struct step *step, int64_t panel)
{
    const struct recurrence_part *part = &b->part[0];
    float sums[RECURRENCE_ROWS * RECURRENCE_COLUMNS] __attribute__((aligned(64)));
    int64_t begin, end;
    panel_units(part, panel, b->spec.units, &begin, &end);
    for (int64_t first = step->joined, rows; first < step->left; first += rows) {
        rows = least(step->left - first, RECURRENCE_ROWS);
        load_sums(b, part, (struct float_rows){0}, passed(b, call, first), rows, panel, sums);
        b->loops->product((struct float_rows){sums, part->columns}, gradient_rows(b, call, step->after + first, 0),
                          rows, part->k, part_panel(part, call->in[WEIGHTS].data, panel), part->columns);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t u = begin; u < end; u++)
                ((float *)call->out[DH0].data)[(first + r) * b->spec.units + u] = sums[r * part->columns + u - begin];
    }
}

/* Gradients of the initial states begin as those of the last states, or zeros; of sequences of no steps they stay 0. */
static void begin_states(const struct backward *b, const struct kernel_call *call, const struct sequence_steps *all,
                         int64_t panel)
{
    const int64_t batch = call->in[FIRST_H].rows, some = steps_rows(all, 0), units = b->spec.units;
    const float *dc = input(call, b->dc);
    float *carry = output(call, b->dc0), *dh0 = call->out[DH0].data;
    int64_t begin, end;
    panel_units(&b->part[0], panel, units, &begin, &end);
    for (int64_t r = 0; r < batch; r++)
        for (int64_t u = begin; u < end; u++) {
            dh0[r * units + u] = 0;
            if (carry)
                carry[r * units + u] = dc && r < some ? dc[r * units + u] : 0;
        }
}

static graphi_status backward_run(const struct kernel_call *call, int phase, int share)
{
    const struct backward *b = call->params;
    if (!call->loop)
        TRY(steps_check("recurrence_gradient", input(call, b->offsets), b->spec.steps, call->in[GATES].rows,
                        call->in[FIRST_H].rows));
    const struct sequence_steps all = all_steps(b, call);
    const struct step step = step_at(b, &all, call->loop);
    if (phase) {
        run_reset(b, call, &step, share);
        return GRAPHI_OK;
    }
    if (!call->loop)
        begin_states(b, call, &all, share);
    run_rows(b, call, &step, share);
    end_states(b, call, &step, share);
    return GRAPHI_OK;
}

static int64_t backward_steps(const struct kernel_call *call)
{
    return all_steps(call->params, call).steps + 1;
}

graphi_status recurrence_gradient_bind(const struct recurrence_spec *spec, enum isa isa, struct kernel *kernel)
{
    struct backward b = {.spec = *spec, .loops = recurrence_loops_of(isa)};
    b.spec.options.usual = recurrence_usual(spec->cell, &spec->options);
    const bool lstm = spec->cell == RECURRENCE_LSTM, inner = spec->cell == RECURRENCE_GRU && spec->reset_after;
    int next = Y + 1, out = DH0 + 1;
    b.c0 = lstm ? next++ : -1;
    b.kept = lstm || inner ? next++ : -1;
    b.peephole = spec->peepholes ? next++ : -1;
    b.dy = spec->dy ? next++ : -1;
    b.dh = spec->dh ? next++ : -1;
    b.dc = spec->dc ? next++ : -1;
    b.offsets = spec->offsets ? next++ : -1;
    b.dc0 = lstm ? out++ : -1;
    b.inner = inner ? out : -1;
    const int phases = recurrence_parts(spec->cell, spec->units, spec->reset_after, true, b.part);
    const double all = recurrence_gates(spec->cell) * (double)spec->units, rows = (double)spec->rows;
    struct kernel like = {.name = lstm                           ? "lstm_gradient"
                                  : spec->cell == RECURRENCE_GRU ? "gru_gradient"
                                                                 : "rnn_gradient",
                          .run = backward_run,
                          .steps = backward_steps,
                          .most_steps = (int32_t)spec->steps + 1,
                          .phases = phases,
                          .shares = {(int)b.part[0].panels, (int)b.part[1].panels},
                          .flops = rows * all * (2 * (double)spec->units + 10),
                          .work = recurrence_work(spec),
                          .bytes = 4 * (rows * (2 * all + 2 * (double)spec->units) + all * (double)spec->units)};
    return kernel_make(like, &b, sizeof b, kernel);
}
