/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN of which the loop operation has no form (recurrent.c): peepholes, clip, coupled gates, other
 * activations, lengths. Each step is some element-wise programs and a product. Rows beyond their length keep their
 * state and give zeros. One thread lowers. Usual size: up to 64 steps of 10 operations. */
#include "flow/unrolled.h"

#include "value/activation.h"

#include <math.h>
#include <string.h>

enum { STEPS_MOST = 64, ALL = 6 };
enum input { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

struct unrolled {
    struct lower_call *c;
    graphi_graph *g;
    int gates;
    int64_t steps, rows, inputs, hidden, directions;
    bool reverse, batch_first, after, coupled;
    double clip; /* INFINITY: none */
    struct activation f[ALL];
    graphi_value x;       /* [steps rows, inputs] */
    graphi_value lengths; /* [rows, 1]; GRAPHI_NONE: none */
};

static graphi_value number(struct unrolled *u, double n)
{
    return lower_number(u->c->l, n);
}

static graphi_value activated(struct unrolled *u, const struct activation *a, graphi_value x)
{
    graphi_graph *g = u->g;
    const graphi_value alpha = number(u, a->alpha), beta = number(u, a->beta), zero = number(u, 0);
    if (!strcmp(a->name, "Tanh"))
        return graphi_tanh(g, x);
    if (!strcmp(a->name, "Sigmoid"))
        return graphi_sigmoid(g, x);
    if (!strcmp(a->name, "Relu"))
        return graphi_relu(g, x);
    if (!strcmp(a->name, "Softplus"))
        return graphi_softplus(g, x);
    if (!strcmp(a->name, "Softsign"))
        return graphi_div(g, x, graphi_add(g, graphi_abs(g, x), number(u, 1)));
    if (!strcmp(a->name, "Affine"))
        return graphi_add(g, graphi_mul(g, x, alpha), beta);
    if (!strcmp(a->name, "ScaledTanh"))
        return graphi_mul(g, graphi_tanh(g, graphi_mul(g, x, beta)), alpha);
    if (!strcmp(a->name, "HardSigmoid"))
        return graphi_max(g, graphi_min(g, graphi_add(g, graphi_mul(g, x, alpha), beta), number(u, 1)), zero);
    if (!strcmp(a->name, "LeakyRelu"))
        return graphi_select(g, graphi_less(g, x, zero), graphi_mul(g, x, alpha), x);
    if (!strcmp(a->name, "ThresholdedRelu"))
        return graphi_select(g, graphi_less(g, x, alpha), zero, x);
    const graphi_value low = graphi_sub(g, graphi_exp(g, graphi_min(g, x, zero)), number(u, 1)); /* Elu */
    return graphi_select(g, graphi_less(g, x, zero), graphi_mul(g, low, alpha), x);
}

static graphi_value clipped(struct unrolled *u, graphi_value x)
{
    if (u->clip == INFINITY)
        return x;
    return graphi_max(u->g, graphi_min(u->g, x, number(u, u->clip)), number(u, -u->clip));
}

/* Gate k of [rows, gates hidden]. */
static graphi_value gate(struct unrolled *u, graphi_value all, int k)
{
    return graphi_slice(u->g, all, 1, k * u->hidden, (k + 1) * u->hidden);
}

/* Of a direction's weights; what is left out is GRAPHI_NONE. */
struct direction {
    graphi_value w, r, wb, rb, peep[3], h, c;
    const struct activation *f;
};

/* Row d of an input of [directions, ...], of `dims`. */
static graphi_value row(struct unrolled *u, int input, int64_t d, int rank, const int64_t *dims)
{
    struct flow_value *given = lower_in(u->c, input);
    if (!given)
        return GRAPHI_NONE;
    graphi_value all = lower_plain(u->c->l, given);
    if (u->batch_first && (input == INITIAL_H || input == INITIAL_C))
        all = lower_move(u->c->l, all, 3, (const int64_t[]){1, 0, 2});
    if (u->directions > 1)
        all = graphi_slice(u->g, all, 0, d, d + 1);
    return graphi_reshape(u->g, all, dims, rank);
}

static void begin_direction(struct unrolled *u, int64_t d, struct direction *to)
{
    const int64_t all = u->gates * u->hidden, state[2] = {u->rows, u->hidden};
    const graphi_value both = row(u, B, d, 1, (const int64_t[]){2 * all});
    const graphi_value peep = row(u, PEEPHOLES, d, 1, (const int64_t[]){3 * u->hidden});
    *to = (struct direction){.w = row(u, W, d, 2, (const int64_t[]){all, u->inputs}),
                             .r = row(u, R, d, 2, (const int64_t[]){all, u->hidden}),
                             .wb = GRAPHI_NONE,
                             .rb = GRAPHI_NONE,
                             .h = row(u, INITIAL_H, d, 2, state),
                             .c = row(u, INITIAL_C, d, 2, state),
                             .f = u->f + d * (u->gates == 4   ? 3
                                              : u->gates == 3 ? 2
                                                              : 1)};
    if (both != GRAPHI_NONE) {
        to->wb = graphi_slice(u->g, both, 0, 0, all);
        to->rb = graphi_slice(u->g, both, 0, all, 2 * all);
    }
    for (int i = 0; i < 3; i++)
        to->peep[i] = peep == GRAPHI_NONE ? peep : graphi_slice(u->g, peep, 0, i * u->hidden, (i + 1) * u->hidden);
    if (to->h == GRAPHI_NONE)
        to->h = graphi_fill(u->g, state, 2, 0, GRAPHI_F32);
    if (to->c == GRAPHI_NONE)
        to->c = graphi_fill(u->g, state, 2, 0, GRAPHI_F32);
}

static graphi_value plus(struct unrolled *u, graphi_value a, graphi_value b)
{
    return b == GRAPHI_NONE ? a : graphi_add(u->g, a, b);
}

/* With the cell's part where there are peepholes. */
static graphi_value peeped(struct unrolled *u, graphi_value sum, graphi_value peep, graphi_value cell)
{
    return clipped(u, peep == GRAPHI_NONE ? sum : graphi_add(u->g, sum, graphi_mul(u->g, peep, cell)));
}

/* Gates i, o, f, c. */
static void lstm(struct unrolled *u, struct direction *d, graphi_value pre)
{
    graphi_graph *g = u->g;
    const graphi_value sum = graphi_add(g, pre, plus(u, graphi_matmul(g, d->h, d->r, 0, 1), d->rb));
    const graphi_value i = activated(u, &d->f[0], peeped(u, gate(u, sum, 0), d->peep[0], d->c));
    const graphi_value forget = u->coupled ? graphi_sub(g, number(u, 1), i)
                                           : activated(u, &d->f[0], peeped(u, gate(u, sum, 2), d->peep[2], d->c));
    const graphi_value candidate = activated(u, &d->f[1], clipped(u, gate(u, sum, 3)));
    d->c = graphi_add(g, graphi_mul(g, forget, d->c), graphi_mul(g, i, candidate));
    const graphi_value o = activated(u, &d->f[0], peeped(u, gate(u, sum, 1), d->peep[1], d->c));
    d->h = graphi_mul(g, o, activated(u, &d->f[2], d->c));
}

/* Gates z, r, h. */
static void gru(struct unrolled *u, struct direction *d, graphi_value pre)
{
    graphi_graph *g = u->g;
    const int64_t n = u->hidden;
    const graphi_value again = plus(u, graphi_matmul(g, d->h, d->r, 0, 1), d->rb);
    const graphi_value z = activated(u, &d->f[0], clipped(u, graphi_add(g, gate(u, pre, 0), gate(u, again, 0))));
    const graphi_value r = activated(u, &d->f[0], clipped(u, graphi_add(g, gate(u, pre, 1), gate(u, again, 1))));
    graphi_value inner;
    if (u->after) {
        inner = graphi_mul(g, r, gate(u, again, 2));
    } else {
        inner = graphi_matmul(g, graphi_mul(g, r, d->h), graphi_slice(g, d->r, 0, 2 * n, 3 * n), 0, 1);
        inner = plus(u, inner, d->rb == GRAPHI_NONE ? d->rb : graphi_slice(g, d->rb, 0, 2 * n, 3 * n));
    }
    const graphi_value new = activated(u, &d->f[1], clipped(u, graphi_add(g, gate(u, pre, 2), inner)));
    const graphi_value kept = graphi_mul(g, z, d->h);
    d->h = graphi_add(g, graphi_mul(g, graphi_sub(g, number(u, 1), z), new), kept);
}

static void rnn(struct unrolled *u, struct direction *d, graphi_value pre)
{
    const graphi_value sum = graphi_add(u->g, pre, plus(u, graphi_matmul(u->g, d->h, d->r, 0, 1), d->rb));
    d->h = activated(u, &d->f[0], clipped(u, sum));
}

/* One step; its result, zeros in rows that have ended. */
static graphi_value step(struct unrolled *u, struct direction *d, int64_t t, graphi_value pre)
{
    const graphi_value h = d->h, c = d->c;
    if (u->gates == 4)
        lstm(u, d, pre);
    else if (u->gates == 3)
        gru(u, d, pre);
    else
        rnn(u, d, pre);
    if (u->lengths == GRAPHI_NONE)
        return d->h;
    const graphi_value live = graphi_less(u->g, number(u, (double)t), u->lengths);
    const graphi_value y = graphi_select(u->g, live, d->h, number(u, 0));
    d->h = graphi_select(u->g, live, d->h, h);
    d->c = graphi_select(u->g, live, d->c, c);
    return y;
}

/* All steps of a direction: y [steps, 1, rows, hidden], h and c [1, rows, hidden]. */
static void run(struct unrolled *u, int64_t at, graphi_value *out)
{
    struct direction d;
    graphi_graph *g = u->g;
    const int64_t all = u->gates * u->hidden;
    graphi_value y[STEPS_MOST];
    begin_direction(u, at, &d);
    graphi_value pre = plus(u, graphi_matmul(g, u->x, d.w, 0, 1), d.wb);
    pre = graphi_reshape(g, pre, (const int64_t[]){u->steps, u->rows, all}, 3);
    const bool back = u->reverse || at == 1;
    for (int64_t k = 0; k < u->steps; k++) {
        const int64_t t = back ? u->steps - 1 - k : k;
        const graphi_value one = graphi_slice(g, pre, 0, t, t + 1);
        y[t] = step(u, &d, t, graphi_reshape(g, one, (const int64_t[]){u->rows, all}, 2));
        y[t] = graphi_reshape(g, y[t], (const int64_t[]){1, 1, u->rows, u->hidden}, 4);
    }
    if (u->lengths != GRAPHI_NONE) { /* a row without steps has no state */
        const graphi_value any = graphi_less(g, number(u, 0), u->lengths);
        d.h = graphi_select(g, any, d.h, number(u, 0));
        d.c = graphi_select(g, any, d.c, number(u, 0));
    }
    out[0] = u->steps == 1 ? y[0] : graphi_concat(g, (int)u->steps, y, 0);
    out[1] = graphi_reshape(g, d.h, (const int64_t[]){1, u->rows, u->hidden}, 3);
    out[2] = graphi_reshape(g, d.c, (const int64_t[]){1, u->rows, u->hidden}, 3);
}

static graphi_status find_activations(struct unrolled *u)
{
    static const char *const names[2][3] = {{"Sigmoid", "Tanh", "Tanh"}, {"Tanh", "Tanh", "Tanh"}};
    const int count = u->gates == 4 ? 3 : u->gates == 3 ? 2 : 1;
    const char *defaults[ALL];
    for (int i = 0; i < 2 * count; i++)
        defaults[i] = names[u->gates == 1][i % count];
    return activations_find(&u->c->call, defaults, count * (int)u->directions, u->f);
}

static graphi_status find(struct lower_call *c, struct unrolled *u)
{
    const char *direction = op_string(&c->call, "direction", "forward");
    for (int i = 0; i < c->call.ins; i++)
        if (c->call.in[i] && i != LENGTHS)
            TRY(lower_floats(c, i));
    const graphi_tensor *x = c->call.in[X], *r = c->call.in[R];
    *u = (struct unrolled){.c = c, .g = c->l->graph, .lengths = GRAPHI_NONE};
    u->gates = c->node->type[0] == 'L' ? 4 : c->node->type[0] == 'G' ? 3 : 1;
    u->batch_first = op_int(&c->call, "layout", 0) != 0;
    u->steps = x->dims[u->batch_first];
    u->rows = x->dims[!u->batch_first];
    u->inputs = x->dims[2];
    u->hidden = r->dims[2];
    u->reverse = strcmp(direction, "reverse") == 0;
    u->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    u->after = op_int(&c->call, "linear_before_reset", 0) != 0;
    u->coupled = op_int(&c->call, "input_forget", 0) != 0;
    u->clip = op_attribute(&c->call, "clip") ? (double)op_float(&c->call, "clip", 0) : INFINITY;
    if (u->steps > STEPS_MOST || !(u->clip > 0))
        return lower_fail(c, "found %lld steps and clip %g, expected at most %d steps for a plan", (long long)u->steps,
                          u->clip, STEPS_MOST);
    const graphi_tensor *lengths = op_in(&c->call, LENGTHS);
    if (lengths && (lengths->rank != 1 || lengths->count != u->rows || lengths->type != T_I32))
        return lower_fail(c, "found other lengths, expected int32 [%lld]", (long long)u->rows);
    return find_activations(u);
}

/* As float32, looked up in a table of themselves, which refuses those out of range. */
static graphi_status find_lengths(struct unrolled *u)
{
    float table[STEPS_MOST + 1];
    struct flow_value *given = lower_in(u->c, LENGTHS);
    if (!given)
        return GRAPHI_OK;
    for (int64_t i = 0; i <= u->steps; i++)
        table[i] = (float)i;
    const graphi_value of = graphi_constant(u->g, GRAPHI_F32, 2, (const int64_t[]){u->steps + 1, 1}, table);
    graphi_value ids = lower_plain(u->c->l, given);
    if (given->known) {
        int32_t *known = given->known->data;
        ids = graphi_constant(u->g, GRAPHI_I32, 1, &u->rows, known);
    }
    u->lengths = graphi_op(u->g, "embedding", 2, (const graphi_value[]){of, ids}, 0, NULL);
    return GRAPHI_OK;
}

graphi_status lower_unrolled(struct lower_call *c)
{
    static const int64_t batch_perm[3] = {1, 0, 2}, y_perm[4] = {2, 0, 1, 3};
    struct unrolled u;
    graphi_value out[2][3];
    TRY(find(c, &u));
    TRY(find_lengths(&u));
    graphi_value x = lower_plain(c->l, lower_in(c, X));
    if (u.batch_first)
        x = lower_move(c->l, x, 3, batch_perm);
    u.x = graphi_reshape(u.g, x, (const int64_t[]){u.steps * u.rows, u.inputs}, 2);
    for (int64_t d = 0; d < u.directions; d++)
        run(&u, d, out[d]);
    for (int i = 0; i < (u.gates == 4 ? 3 : 2); i++) {
        graphi_value y = out[0][i];
        if (u.directions == 2)
            y = graphi_concat(u.g, 2, (const graphi_value[]){y, out[1][i]}, i == 0);
        if (u.batch_first)
            y = lower_move(c->l, y, i ? 3 : 4, i ? batch_perm : y_perm);
        TRY(lower_set(c, i, y, false));
    }
    return GRAPHI_OK;
}
