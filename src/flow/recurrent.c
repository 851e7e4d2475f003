/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of LSTM, GRU and RNN with constant weights: a product over all steps and one loop operation a direction.
 * Peepholes, lengths, clip, coupled gates and other activations are unrolled (unrolled.h). One thread lowers. */
#include "flow/unrolled.h"

#include "base/memory.h"
#include "graphi/recurrent.h"

#include <string.h>
#include <strings.h>

enum input { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

struct layer {
    struct lower_call *c;
    graphi_cell cell;
    int64_t steps, rows, inputs, hidden, gates, directions;
    bool reverse, batch_first, after; /* after: the reset gate comes after the product */
    graphi_value x;                   /* [steps rows, inputs] */
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

static bool has_state(const struct layer *l, int input)
{
    const graphi_tensor *value = op_in(&l->c->call, input);
    return l->batch_first ? has_shape(value, 3, l->rows, l->directions, l->hidden)
                          : has_shape(value, 3, l->directions, l->rows, l->hidden);
}

static graphi_status find(struct lower_call *c, struct layer *l)
{
    const char *direction = op_string(&c->call, "direction", "forward");
    for (int i = 0; i < c->call.ins; i++)
        if (c->call.in[i] && i != LENGTHS)
            TRY(lower_floats(c, i));
    const graphi_tensor *x = c->call.in[X], *again = c->call.in[R], *lengths = op_in(&c->call, LENGTHS);
    *l = (struct layer){.c = c,
                        .cell = c->node->type[0] == 'L'   ? GRAPHI_LSTM
                                : c->node->type[0] == 'G' ? GRAPHI_GRU
                                                          : GRAPHI_RNN};
    if (x->rank != 3 || again->rank != 3)
        return lower_fail(c, "found X of rank %d and R of rank %d, expected 3", x->rank, again->rank);
    l->gates = cells[l->cell].gates;
    l->batch_first = op_int(&c->call, "layout", 0) != 0;
    l->steps = x->dims[l->batch_first];
    l->rows = x->dims[!l->batch_first];
    l->inputs = x->dims[2];
    l->hidden = op_int(&c->call, "hidden_size", again->dims[2]);
    if (l->hidden != again->dims[2])
        return lower_fail(c, "found hidden_size %lld, expected that of R, %lld", (long long)l->hidden,
                          (long long)again->dims[2]);
    l->reverse = strcmp(direction, "reverse") == 0;
    l->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    l->after = l->cell == GRAPHI_GRU && op_int(&c->call, "linear_before_reset", 0) != 0;
    const int64_t all = l->gates * l->hidden, d = l->directions;
    if (d == 1 && !l->reverse && strcmp(direction, "forward") != 0)
        return lower_fail(c, "found direction \"%.50s\", expected forward, reverse or bidirectional", direction);
    if (!has_shape(c->call.in[W], 3, d, all, l->inputs) || !has_shape(again, 3, d, all, l->hidden) ||
        !has_shape(op_in(&c->call, B), 2, d, 2 * all, 0) || !has_state(l, INITIAL_H) || !has_state(l, INITIAL_C) ||
        !has_shape(op_in(&c->call, PEEPHOLES), 2, d, 3 * l->hidden, 0) ||
        (lengths && (lengths->rank != 1 || lengths->count != l->rows || lengths->type != T_I32)))
        return lower_fail(c, "found shapes that do not fit, expected those of %s", c->node->type);
    return GRAPHI_OK;
}

/* Whether the loop operation has a form of it. */
static bool has_loop(const struct layer *l)
{
    const struct op_call *call = &l->c->call;
    for (int i = W; i <= B; i++)
        if (lower_in(l->c, i) && (!lower_in(l->c, i)->known || op_in(call, i)->type != T_F32))
            return false;
    return usual_activations(l) && !op_in(call, PEEPHOLES) && !op_in(call, LENGTHS) && !op_attribute(call, "clip") &&
           !op_int(call, "input_forget", 0);
}

static graphi_value initial(struct layer *l, int input, int64_t d)
{
    struct flow_value *given = lower_in(l->c, input);
    graphi_graph *g = l->c->l->graph;
    const int64_t dims[2] = {l->rows, l->hidden};
    if (!given)
        return graphi_fill(g, dims, 2, 0, GRAPHI_F32);
    graphi_value state = lower_plain(l->c->l, given);
    if (l->batch_first)
        state = lower_move(l->c->l, state, 3, (const int64_t[]){1, 0, 2});
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
    static const int64_t swap[3] = {1, 0, 2}, y_swap[4] = {2, 0, 1, 3};
    struct layer l;
    TRY(find(c, &l));
    if (!has_loop(&l))
        return lower_unrolled(c);
    graphi_value x = lower_plain(c->l, lower_in(c, X));
    if (l.batch_first)
        x = lower_move(c->l, x, 3, swap);
    l.x = graphi_reshape(c->l->graph, x, (int64_t[]){l.steps * l.rows, l.inputs}, 2);
    for (int64_t d = 0; d < l.directions; d++)
        TRY(convert(&l, d));
    const int64_t dims[4] = {l.steps, 1, l.rows, l.hidden}, state[3] = {1, l.rows, l.hidden};
    graphi_value out[3] = {joined(&l, l.y, 4, dims, 1), joined(&l, l.h, 3, state, 0), GRAPHI_NONE};
    if (l.cell == GRAPHI_LSTM)
        out[2] = joined(&l, l.last_c, 3, state, 0);
    for (int i = 0; i < (l.cell == GRAPHI_LSTM ? 3 : 2); i++) {
        if (l.batch_first)
            out[i] = lower_move(c->l, out[i], i ? 3 : 4, i ? swap : y_swap);
        TRY(lower_set(c, i, out[i], false));
    }
    return GRAPHI_OK;
}

const struct lower_row lower_recurrent[] = {
    {"LSTM", lower_recurrence, NULL},
    {"GRU", lower_recurrence, NULL},
    {"RNN", lower_recurrence, NULL},
    {0},
};
