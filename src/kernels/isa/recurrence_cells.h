/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise parts of recurrent cells, forward and backward, for isa/recurrence_run.c. Each operation is rounded
 * by itself, as in a graph of element-wise operations: nothing is contracted. Derivatives follow from the activated
 * values alone. */
#ifndef KERNELS_ISA_RECURRENCE_CELLS_H
#define KERNELS_ISA_RECURRENCE_CELLS_H

#include "kernels/isa/isa.h"
#include "kernels/isa/vmath.h"
#include "kernels/recurrence_isa.h"

#if VL == 1
INLINE vf times(vf a, vf b)
{
    return a * b;
}
#else
INLINE vf times(vf a, vf b)
{
    return rounded(a * b);
}
#endif

static vf activate_rare(const struct recurrence_activation *f, vf x)
{
    const vf alpha = vset(f->alpha), beta = vset(f->beta), zero = vset(0), one = vset(1);
    switch (f->function) {
    case RECURRENCE_RELU:
        return vsel_gt(x, zero, x, vsel_ne(x, x, x, zero));
    case RECURRENCE_AFFINE:
        return times(alpha, x) + beta;
    case RECURRENCE_LEAKY_RELU:
        return vsel_gt(zero, x, times(alpha, x), x);
    case RECURRENCE_THRESHOLDED_RELU:
        return vsel_gt(x, alpha, x, vsel_ne(x, x, x, zero));
    case RECURRENCE_SCALED_TANH:
        return times(alpha, vtanh(times(beta, x)));
    case RECURRENCE_HARD_SIGMOID:
        return vmax(zero, vmin(one, times(alpha, x) + beta));
    case RECURRENCE_ELU:
        return vsel_gt(zero, x, times(alpha, vexp(vmin(x, zero)) - one), x);
    case RECURRENCE_SOFTSIGN:
        return x / (one + vabs(x));
    default:
        return vsoftplus(x);
    }
}

INLINE vf activate(const struct recurrence_activation *f, vf x)
{
    if (f->function == RECURRENCE_SIGMOID)
        return vsigmoid(x);
    return f->function == RECURRENCE_TANH ? vtanh(x) : activate_rare(f, x);
}

INLINE vf clipped(const struct recurrence_options *o, vf x)
{
    if (o->clip > 0)
        x = vmax(vset(-o->clip), vmin(vset(o->clip), x));
    return x;
}

/* dy f'(x), from y = f(x). */
static vf back_rare(const struct recurrence_activation *f, vf y, vf dy)
{
    const vf alpha = vset(f->alpha), beta = vset(f->beta), zero = vset(0), one = vset(1);
    switch (f->function) {
    case RECURRENCE_RELU:
    case RECURRENCE_THRESHOLDED_RELU:
        return vsel_gt(y, zero, dy, zero);
    case RECURRENCE_AFFINE:
        return times(alpha, dy);
    case RECURRENCE_LEAKY_RELU:
        return vsel_gt(zero, y, times(alpha, dy), dy);
    case RECURRENCE_SCALED_TANH: /* alpha beta (1 - (y / alpha)^2) */
        return times(dy, times(beta, alpha - times(y, y) / alpha));
    case RECURRENCE_HARD_SIGMOID:
        return vsel_gt(y, zero, vsel_gt(one, y, times(alpha, dy), zero), zero);
    case RECURRENCE_ELU:
        return vsel_gt(zero, y, times(dy, y + alpha), dy);
    case RECURRENCE_SOFTSIGN: {
        const vf rest = one - vabs(y);
        return times(dy, times(rest, rest));
    }
    default: /* softplus: 1 - e^-y */
        return times(dy, one - vexp(zero - y));
    }
}

INLINE vf back(const struct recurrence_activation *f, vf y, vf dy)
{
    if (f->function == RECURRENCE_SIGMOID)
        return times(dy, times(y, vset(1) - y));
    if (f->function == RECURRENCE_TANH)
        return times(dy, vset(1) - times(y, y));
    return back_rare(f, y, dy);
}

/* The same of f(clip(x)): nothing comes through what was clipped, whose value is that at the limit. */
INLINE vf back_clipped(const struct recurrence_options *o, const struct recurrence_activation *f, vf y, vf dy)
{
    vf d = back(f, y, dy);
    if (o->clip > 0) {
        d = vsel_eq(y, activate(f, vset(o->clip)), vset(0), d);
        d = vsel_eq(y, activate(f, vset(-o->clip)), vset(0), d);
    }
    return d;
}

/* The lanes of the vector from unit i of a panel on; none or fewer than that beyond the last. */
INLINE int lanes_of(int lanes, int i)
{
    return lanes - i < VL ? (lanes > i ? lanes - i : 0) : VL;
}

INLINE vf get(struct float_rows a, int64_t row, int64_t column, int n)
{
    return vget(a.data + row * a.ld + column, n);
}
INLINE void put(struct float_rows a, int64_t row, int64_t column, vf v, int n)
{
    if (a.data)
        vput(a.data + row * a.ld + column, v, n);
}

/* Rows by vectors of a panel: r, i and n lanes from i on. */
#define EACH_VECTOR(c, r, i, n)                                                                                        \
    for (int64_t r = 0; r < (c)->rows; r++)                                                                            \
        for (int i = 0, n; i < (c)->lanes && ((n = lanes_of((c)->lanes, i)), 1); i += VL)

/* Where the sums of a gate are, `gates` of them a block, from unit i of the panel on. */
INLINE int64_t sum_column(int gates, int gate, int i)
{
    return (int64_t)(i / RECURRENCE_LANES * gates + gate) * RECURRENCE_LANES + i % RECURRENCE_LANES;
}

static void load(const struct sum_rows *c)
{
    const int wide = c->blocks * RECURRENCE_LANES;
    for (int64_t r = 0; r < c->rows; r++)
        for (int g = 0; g < c->gates; g++)
            for (int i = 0; i < wide; i += VL) {
                const int n = g < c->given ? lanes_of(c->lanes, i) : 0;
                const float *x = c->x.data + r * c->x.ld + g * c->units + i;
                vstore(c->sums.data + r * c->sums.ld + sum_column(c->gates, g, i), n ? vget(x, n) : vset(0));
            }
}

static void load_gradient(const struct gradient_sums *c)
{
    for (int64_t r = 0; r < c->rows; r++)
        for (int i = 0; i < c->columns; i += VL) {
            const int n = lanes_of(c->lanes, i);
            vf sum = c->given.data && n ? get(c->given, r, i, n) : vset(0);
            if (c->more.data && n)
                sum = sum + get(c->more, r, i, n);
            vstore(c->sums.data + r * c->sums.ld + i, sum);
        }
}

INLINE vf sum_of(const struct cell_rows *c, int64_t row, int gates, int gate, int i)
{
    return vload(c->sums.data + row * c->sums.ld + sum_column(gates, gate, i));
}

INLINE vf pre(const struct cell_rows *c, int64_t row, int gates, int gate, int i, int n)
{
    return sum_of(c, row, gates, gate, i) + vget(c->bias + gate * c->units + i, n);
}

INLINE vf peep(const float *peephole, int64_t units, vf x, int which, int i, int n, vf state)
{
    if (peephole)
        x = x + times(vget(peephole + which * units + i, n), state);
    return x;
}

/* The cells as published. Where they are asked for, the loops are compiled with these constants. */
static const struct recurrence_options usual_gated = {
    .activation = {{.function = RECURRENCE_SIGMOID}, {.function = RECURRENCE_TANH}, {.function = RECURRENCE_TANH}}};
static const struct recurrence_options usual_rnn = {.activation = {{.function = RECURRENCE_TANH}}};

INLINE void lstm_rows(const struct cell_rows *c, const struct recurrence_options *o, const float *peephole)
{
    const struct recurrence_activation *f = &o->activation[0];
    const int64_t units = c->units;
    EACH_VECTOR(c, r, at, n)
    {
        const vf before = get(c->state, r, at, n);
        vf i = activate(f, clipped(o, peep(peephole, units, pre(c, r, 4, 0, at, n), 0, at, n, before)));
        vf forget = vset(1) - i;
        if (!o->input_forget)
            forget = activate(f, clipped(o, peep(peephole, units, pre(c, r, 4, 1, at, n), 1, at, n, before)));
        vf g = activate(&o->activation[1], clipped(o, pre(c, r, 4, 2, at, n)));
        vf state = times(forget, before) + times(i, g);
        vf out = activate(f, clipped(o, peep(peephole, units, pre(c, r, 4, 3, at, n), 2, at, n, state)));
        put(c->state, r, at, state, n);
        put(c->kept, r, at, state, n);
        put(c->y, r, at, times(out, activate(&o->activation[2], state)), n);
        put(c->gates_out, r, at, i, n);
        put(c->gates_out, r, units + at, forget, n);
        put(c->gates_out, r, 2 * units + at, g, n);
        put(c->gates_out, r, 3 * units + at, out, n);
    }
}

static void lstm(const struct cell_rows *c)
{
    if (c->options->usual && !c->peephole)
        lstm_rows(c, &usual_gated, NULL);
    else
        lstm_rows(c, c->options, c->peephole);
}

INLINE void lstm_gradient_rows(const struct cell_gradient_rows *c, const struct recurrence_options *o,
                               const float *peephole)
{
    const struct recurrence_activation *f = &o->activation[0];
    const int64_t units = c->units;
    EACH_VECTOR(c, r, at, n)
    {
        const vf i = get(c->gates, r, at, n), forget = get(c->gates, r, units + at, n);
        const vf g = get(c->gates, r, 2 * units + at, n), out = get(c->gates, r, 3 * units + at, n);
        const vf before = get(c->before, r, at, n), dh = get(c->dh, r, at, n);
        const vf result = activate(&o->activation[2], get(c->kept, r, at, n));
        const vf dout = back_clipped(o, f, out, times(dh, result));
        vf dc = get(c->carry, r, at, n) + back(&o->activation[2], result, times(dh, out));
        if (peephole)
            dc = dc + times(vget(peephole + 2 * units + at, n), dout);
        vf di = times(dc, g), dforget = times(dc, before);
        if (o->input_forget) {
            di = di - dforget;
            dforget = vset(0);
        } else {
            dforget = back_clipped(o, f, forget, dforget);
        }
        di = back_clipped(o, f, i, di);
        vf carry = times(dc, forget);
        if (peephole) {
            carry = carry + times(vget(peephole + at, n), di);
            carry = carry + times(vget(peephole + units + at, n), dforget);
        }
        put(c->carry, r, at, carry, n);
        put(c->dx, r, at, di, n);
        put(c->dx, r, units + at, dforget, n);
        put(c->dx, r, 2 * units + at, back_clipped(o, &o->activation[1], g, times(dc, i)), n);
        put(c->dx, r, 3 * units + at, dout, n);
    }
}

static void lstm_gradient(const struct cell_gradient_rows *c)
{
    if (c->options->usual && !c->peephole)
        lstm_gradient_rows(c, &usual_gated, NULL);
    else
        lstm_gradient_rows(c, c->options, c->peephole);
}

/* (1 - z) n + z h */
INLINE vf between(vf z, vf n, vf h)
{
    return times(vset(1) - z, n) + times(z, h);
}

/* Loops that are compiled for the usual cell and for any. */
#define USUAL(NAME, ROWS, KIND)                                                                                        \
    static void NAME(const struct ROWS *c)                                                                             \
    {                                                                                                                  \
        if (c->options->usual)                                                                                         \
            NAME##_rows(c, &usual_##KIND);                                                                             \
        else                                                                                                           \
            NAME##_rows(c, c->options);                                                                                \
    }

INLINE void gru_after_rows(const struct cell_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, row, at, n)
    {
        const vf r = activate(&o->activation[0], clipped(o, pre(c, row, 3, 0, at, n)));
        const vf z = activate(&o->activation[0], clipped(o, pre(c, row, 3, 1, at, n)));
        const vf inner = sum_of(c, row, 3, 2, at) + vget(c->inner_bias + at, n);
        const vf x = get(c->x, row, at, n) + vget(c->bias + 2 * c->units + at, n);
        const vf candidate = activate(&o->activation[1], clipped(o, x + times(r, inner)));
        put(c->y, row, at, between(z, candidate, get(c->before, row, at, n)), n);
        put(c->kept, row, at, inner, n);
        put(c->gates_out, row, at, r, n);
        put(c->gates_out, row, c->units + at, z, n);
        put(c->gates_out, row, 2 * c->units + at, candidate, n);
    }
}
USUAL(gru_after, cell_rows, gated)

INLINE void gru_gates_rows(const struct cell_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, row, at, n)
    {
        const vf r = activate(&o->activation[0], clipped(o, pre(c, row, 2, 0, at, n)));
        const vf z = activate(&o->activation[0], clipped(o, pre(c, row, 2, 1, at, n)));
        put(c->reset, row, at, times(r, get(c->before, row, at, n)), n);
        put(c->state, row, at, z, n);
        put(c->gates_out, row, at, r, n);
        put(c->gates_out, row, c->units + at, z, n);
    }
}
USUAL(gru_gates, cell_rows, gated)

INLINE void gru_candidate_rows(const struct cell_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, row, at, n)
    {
        const vf x = sum_of(c, row, 1, 0, at) + vget(c->bias + 2 * c->units + at, n);
        const vf candidate = activate(&o->activation[1], clipped(o, x));
        put(c->y, row, at, between(get(c->state, row, at, n), candidate, get(c->before, row, at, n)), n);
        put(c->gates_out, row, 2 * c->units + at, candidate, n);
    }
}
USUAL(gru_candidate, cell_rows, gated)

/* What z and the candidate get; *dn before the reset gate. */
INLINE void between_gradient(const struct cell_gradient_rows *c, const struct recurrence_options *o, int64_t row,
                             int at, int n, vf *dz, vf *dn)
{
    const vf z = get(c->gates, row, c->units + at, n), candidate = get(c->gates, row, 2 * c->units + at, n);
    const vf dh = get(c->dh, row, at, n), before = get(c->before, row, at, n);
    *dz = back_clipped(o, &o->activation[0], z, times(dh, before - candidate));
    *dn = back_clipped(o, &o->activation[1], candidate, times(dh, vset(1) - z));
    put(c->carry, row, at, times(dh, z), n);
}

INLINE void gru_after_gradient_rows(const struct cell_gradient_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, row, at, n)
    {
        vf dz, dn;
        const vf r = get(c->gates, row, at, n);
        between_gradient(c, o, row, at, n, &dz, &dn);
        const vf dr = back_clipped(o, &o->activation[0], r, times(dn, get(c->kept, row, at, n)));
        const vf gradient[] = {dr, dz, dn}, inner[] = {dr, dz, times(dn, r)};
        for (int g = 0; g < 3; g++) {
            put(c->dx, row, g * c->units + at, gradient[g], n);
            put(c->inner, row, g * c->units + at, inner[g], n);
        }
    }
}
USUAL(gru_after_gradient, cell_gradient_rows, gated)

INLINE void gru_candidate_gradient_rows(const struct cell_gradient_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, row, at, n)
    {
        vf dz, dn;
        between_gradient(c, o, row, at, n, &dz, &dn);
        put(c->dx, row, c->units + at, dz, n);
        put(c->dx, row, 2 * c->units + at, dn, n);
    }
}
USUAL(gru_candidate_gradient, cell_gradient_rows, gated)

INLINE void gru_gates_gradient_rows(const struct cell_gradient_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, row, at, n)
    {
        const vf r = get(c->gates, row, at, n), before = get(c->before, row, at, n), drh = get(c->dh, row, at, n);
        put(c->dx, row, at, back_clipped(o, &o->activation[0], r, times(drh, before)), n);
        put(c->carry, row, at, get(c->carry, row, at, n) + times(drh, r), n);
    }
}
USUAL(gru_gates_gradient, cell_gradient_rows, gated)

INLINE void rnn_rows(const struct cell_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, r, at, n)
    put(c->y, r, at, activate(&o->activation[0], clipped(o, pre(c, r, 1, 0, at, n))), n);
}
USUAL(rnn, cell_rows, rnn)

INLINE void rnn_gradient_rows(const struct cell_gradient_rows *c, const struct recurrence_options *o)
{
    EACH_VECTOR(c, r, at, n)
    put(c->dx, r, at, back_clipped(o, &o->activation[0], get(c->gates, r, at, n), get(c->dh, r, at, n)), n);
}
USUAL(rnn_gradient, cell_gradient_rows, rnn)

#endif
