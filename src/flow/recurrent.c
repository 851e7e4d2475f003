/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of LSTM, GRU and RNN with constant weights: a product over all steps and one loop operation a direction.
 * Peepholes, lengths, other activations and layout 1 stay with the interpreter. One thread lowers. */
#include "flow/lower.h"

#include "base/memory.h"
#include "graphi/recurrent.h"

#include <string.h>
#include <strings.h>

enum input { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

struct layer {
    struct lower_call *c;
    graphi_cell cell;
    int64_t steps, rows, inputs, hidden, gates, directions;
    bool reverse, after; /* after: the reset gate comes after the product */
    graphi_value x;      /* [steps rows, inputs] */
    graphi_value y[2], h[2], last_c[2];
};

static const struct {
    const char *kind, *activations[3];
    int gates, count;
} cells[] = {
    [GRAPHI_LSTM] = {"lstm", {"Sigmoid", "Tanh", "Tanh"}, 4, 3},
    [GRAPHI_GRU] = {"gru", {"Sigmoid", "Tanh"}, 3, 2},
    [GRAPHI_RNN] = {"rnn", {"Tanh"}, 1, 1},
};

static bool usual_activations(const struct layer *l)
{
    const struct attribute *a = op_attribute(&l->c->call, "activations");
    for (size_t i = 0; a && i < a->count; i++)
        if (a->kind != ATTRIBUTE_STRINGS ||
            strcasecmp(a->strings[i], cells[l->cell].activations[i % (size_t)cells[l->cell].count]) != 0)
            return false;
    return !a || a->count == (size_t)(cells[l->cell].count * l->directions);
}

static bool has_shape(const graphi_tensor *value, int rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t dims[3] = {a, b, c};
    return !value || (value->rank == rank && memcmp(value->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

static graphi_status find(struct lower_call *c, struct layer *l)
{
    const char *direction = op_string(&c->call, "direction", "forward");
    for (int i = 0; i < c->call.ins; i++)
        if (c->call.in[i])
            TRY(lower_floats(c, i)); /* lengths are none */
    const graphi_tensor *x = c->call.in[X], *again = c->call.in[R];
    *l = (struct layer){.c = c,
                        .cell = c->node->type[0] == 'L'   ? GRAPHI_LSTM
                                : c->node->type[0] == 'G' ? GRAPHI_GRU
                                                          : GRAPHI_RNN};
    if (x->rank != 3 || again->rank != 3 || op_in(&c->call, PEEPHOLES) || op_attribute(&c->call, "clip") ||
        op_int(&c->call, "layout", 0) || op_int(&c->call, "input_forget", 0))
        return lower_fail(c, "found peepholes, clip, layout or input_forget, expected none for a plan");
    l->gates = cells[l->cell].gates;
    l->steps = x->dims[0];
    l->rows = x->dims[1];
    l->inputs = x->dims[2];
    l->hidden = op_int(&c->call, "hidden_size", again->dims[2]);
    if (l->hidden != again->dims[2])
        return lower_fail(c, "found hidden_size %lld, expected that of R, %lld", (long long)l->hidden,
                          (long long)again->dims[2]);
    l->reverse = strcmp(direction, "reverse") == 0;
    l->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    l->after = l->cell == GRAPHI_GRU && op_int(&c->call, "linear_before_reset", 0) != 0;
    const int64_t all = l->gates * l->hidden, d = l->directions;
    if (!usual_activations(l) || (d == 1 && !l->reverse && strcmp(direction, "forward") != 0))
        return lower_fail(c, "found other activations or another direction, expected the usual ones");
    if (!has_shape(c->call.in[W], 3, d, all, l->inputs) || !has_shape(again, 3, d, all, l->hidden) ||
        !has_shape(op_in(&c->call, B), 2, d, 2 * all, 0) ||
        !has_shape(op_in(&c->call, INITIAL_H), 3, d, l->rows, l->hidden) ||
        !has_shape(op_in(&c->call, INITIAL_C), 3, d, l->rows, l->hidden))
        return lower_fail(c, "found shapes that do not fit, expected those of %s", c->node->type);
    for (int i = W; i <= B; i++)
        if (lower_in(c, i) && !lower_in(c, i)->known)
            return lower_fail(c, "found weights that are computed, expected constants");
    return GRAPHI_OK;
}

static graphi_value initial(struct layer *l, int input, int64_t d)
{
    struct flow_value *given = lower_in(l->c, input);
    graphi_graph *g = l->c->l->graph;
    const int64_t dims[2] = {l->rows, l->hidden};
    if (!given)
        return graphi_fill(g, dims, 2, 0, GRAPHI_F32);
    graphi_value state = lower_plain(l->c->l, given);
    if (l->directions == 2)
        state = graphi_slice(g, state, 0, d, d + 1);
    return graphi_reshape(g, state, dims, 2);
}

/* One direction from weights in PyTorch's order: w [all, inputs], u [all, hidden], b_ih and b_hh [all]. */
static void direct(struct layer *l, int64_t d, const float *w, const float *u, float *b, const float *inner)
{
    struct lowering *to = l->c->l;
    char name[4][8] = {"w0", "u0", "b0", "inner0"};
    for (int i = 0; i < 4; i++)
        name[i][strlen(name[i]) - 1] = (char)('0' + d);
    const int64_t all = l->gates * l->hidden, both = l->after ? 2 * l->hidden : all;
    for (int64_t i = 0; i < both; i++)
        b[i] += inner[i];
    graphi_value in[6] = {
        graphi_matmul(to->graph, l->x, lower_kept(l->c, name[0], 2, (int64_t[]){all, l->inputs}, w), 0, 1),
        lower_kept(l->c, name[1], 2, (int64_t[]){all, l->hidden}, u), lower_kept(l->c, name[2], 1, &all, b),
        initial(l, INITIAL_H, d)};
    int count = 4;
    if (l->cell == GRAPHI_LSTM)
        in[count++] = initial(l, INITIAL_C, d);
    if (l->after)
        in[count++] = lower_kept(l->c, name[3], 1, &l->hidden, inner + 2 * l->hidden);
    const graphi_attribute attributes[] = {{"units", GRAPHI_INT, l->hidden, 0, NULL, 0},
                                           {"steps", GRAPHI_INT, l->steps, 0, NULL, 0},
                                           {"reverse", GRAPHI_INT, l->reverse || d == 1, 0, NULL, 0},
                                           {"reset_after", GRAPHI_INT, l->after, 0, NULL, 0},
                                           {"trans", GRAPHI_INT, 1, 0, NULL, 0}};
    l->y[d] = graphi_op(to->graph, cells[l->cell].kind, count, in, 5, attributes);
    l->h[d] = l->y[d] == GRAPHI_NONE ? GRAPHI_NONE : l->y[d] + 1;
    l->last_c[d] = l->y[d] == GRAPHI_NONE ? GRAPHI_NONE : l->y[d] + 2;
}

static graphi_status convert(struct layer *l, int64_t d)
{
    const int64_t all = l->gates * l->hidden;
    const graphi_tensor *b = op_in(&l->c->call, B);
    const size_t floats = (size_t)(all * (l->inputs + l->hidden + 2));
    float *w = mem_alloc(floats * sizeof *w);
    if (!w)
        return fail_memory(l->c->node->where, floats * sizeof *w);
    float *u = w + all * l->inputs, *ih = u + all * l->hidden, *hh = ih + all;
    const graphi_recurrent_weights weights = {
        (const float *)l->c->call.in[W]->data + d * all * l->inputs,
        (const float *)l->c->call.in[R]->data + d * all * l->hidden,
        b ? (const float *)b->data + d * 2 * all : NULL,
    };
    graphi_status status = graphi_recurrent_convert(l->cell, GRAPHI_FROM_ONNX, l->cell == GRAPHI_GRU && !l->after,
                                                    l->inputs, l->hidden, &weights, w, u, ih, hh);
    if (status == GRAPHI_OK)
        direct(l, d, w, u, ih, hh);
    mem_free(w);
    return status;
}

/* Of each direction, beside each other along `axis` of `dims`, in which they have size 1. */
static graphi_value joined(struct layer *l, const graphi_value *parts, int rank, const int64_t *dims, int axis)
{
    graphi_value shaped[2];
    for (int64_t d = 0; d < l->directions; d++)
        shaped[d] = graphi_reshape(l->c->l->graph, parts[d], dims, rank);
    return l->directions == 1 ? shaped[0] : graphi_concat(l->c->l->graph, 2, shaped, axis);
}

static graphi_status lower_recurrence(struct lower_call *c)
{
    struct layer l;
    TRY(find(c, &l));
    l.x = graphi_reshape(c->l->graph, lower_plain(c->l, lower_in(c, X)), (int64_t[]){l.steps * l.rows, l.inputs}, 2);
    for (int64_t d = 0; d < l.directions; d++)
        TRY(convert(&l, d));
    const int64_t y[4] = {l.steps, 1, l.rows, l.hidden}, state[3] = {1, l.rows, l.hidden};
    TRY(lower_set(c, 0, joined(&l, l.y, 4, y, 1), false));
    TRY(lower_set(c, 1, joined(&l, l.h, 3, state, 0), false));
    return l.cell == GRAPHI_LSTM ? lower_set(c, 2, joined(&l, l.last_c, 3, state, 0), false) : GRAPHI_OK;
}

const struct lower_row lower_recurrent[] = {
    {"LSTM", lower_recurrence, NULL},
    {"GRU", lower_recurrence, NULL},
    {"RNN", lower_recurrence, NULL},
    {0},
};
