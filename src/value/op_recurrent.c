/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN with all attributes, in doubles: one direction after the other, step by step, row by row. Where
 * engines differ from each other and from ONNX's text, docs/onnx.md tells what is done here. Source: ONNX LSTM, GRU,
 * RNN. Any thread. */
#include "base/memory.h"
#include "value/activation.h"
#include "value/dense.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

enum kind { RNN, GRU, LSTM };
enum input { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, INPUTS };

struct recurrence {
    enum kind kind;
    int64_t steps, rows, inputs, hidden, gates, directions;
    bool batch_first, linear_before_reset, input_forget, first_reverse;
    double clip; /* INFINITY: none */
    struct activation f[6];
    struct dense in[INPUTS]; /* all but lengths, in doubles */
    const graphi_tensor *lengths;
    double *h, *c, *pre, *recurrent; /* of one row: hidden, hidden, gates * hidden each */
    graphi_tensor *out[3];
};

static const struct {
    int gates, outs, activations;
    const char *defaults[3];
} kinds[] = {
    [RNN] = {1, 2, 1, {"Tanh"}},
    [GRU] = {3, 2, 2, {"Sigmoid", "Tanh"}},
    [LSTM] = {4, 3, 3, {"Sigmoid", "Tanh", "Tanh"}},
};

static graphi_status check(const struct op_call *call, int i, int rank, const int64_t *dims)
{
    struct value_text a, b;
    const graphi_tensor *value = op_in(call, i);
    if (!value)
        return GRAPHI_OK;
    TRY(op_tensor(call, i, i == LENGTHS ? 0 : call->in[0]->type));
    if (value->rank != rank || memcmp(value->dims, dims, (size_t)rank * sizeof *dims) != 0)
        return op_fail(call,
                       "found %s as input %d of %s, expected %s (a hidden_size of %lld; projections are none of "
                       "ONNX's)",
                       value_describe(value, &a), i, call->op->name, dims_describe(rank, dims, &b),
                       (long long)op_int(call, "hidden_size", dims[rank - 1]));
    return GRAPHI_OK;
}

static graphi_status check_shapes(const struct op_call *call, struct recurrence *r)
{
    const int64_t all = r->gates * r->hidden, d = r->directions;
    const int64_t state[2][3] = {{d, r->rows, r->hidden}, {r->rows, d, r->hidden}};
    TRY(check(call, W, 3, (int64_t[]){d, all, r->inputs}));
    TRY(check(call, R, 3, (int64_t[]){d, all, r->hidden}));
    TRY(check(call, B, 2, (int64_t[]){d, 2 * all}));
    TRY(check(call, LENGTHS, 1, &r->rows));
    TRY(check(call, INITIAL_H, 3, state[r->batch_first]));
    TRY(check(call, INITIAL_C, 3, state[r->batch_first]));
    TRY(check(call, PEEPHOLES, 2, (int64_t[]){d, 3 * r->hidden}));
    for (int64_t n = 0; r->lengths && n < r->rows; n++) {
        const int64_t length = value_int(r->lengths, n);
        if (length < 0 || length > r->steps)
            return op_fail(call, "found length %lld of row %lld, expected 0 to %lld", (long long)length, (long long)n,
                           (long long)r->steps);
    }
    return GRAPHI_OK;
}

static graphi_status find(struct op_call *call, struct recurrence *r)
{
    const char *direction = op_string(call, "direction", "forward");
    for (int i = 0; i < 3; i++)
        TRY(op_tensor(call, i, 0));
    const graphi_tensor *x = call->in[X], *again = call->in[R];
    if (x->rank != 3 || again->rank != 3 || !element_is_float(x->type))
        return op_fail(call, "found X of rank %d and R of rank %d, expected floats of rank 3", x->rank, again->rank);
    r->kind = (enum kind)call->op->variant;
    r->gates = kinds[r->kind].gates;
    r->batch_first = op_int(call, "layout", 0) != 0;
    r->steps = x->dims[r->batch_first];
    r->rows = x->dims[!r->batch_first];
    r->inputs = x->dims[2];
    r->hidden = op_int(call, "hidden_size", again->dims[2]);
    r->first_reverse = strcmp(direction, "reverse") == 0;
    r->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (r->directions == 1 && !r->first_reverse && strcmp(direction, "forward") != 0)
        return op_fail(call, "found direction \"%s\", expected forward, reverse or bidirectional", direction);
    if (r->hidden < 1 || r->hidden > 1 << 28)
        return op_fail(call, "found hidden_size %lld, expected 1 and more", (long long)r->hidden);
    r->linear_before_reset = op_int(call, "linear_before_reset", 0) != 0;
    r->input_forget = op_int(call, "input_forget", 0) != 0;
    r->lengths = op_in(call, LENGTHS);
    r->clip = op_attribute(call, "clip") ? (double)op_float(call, "clip", 0) : INFINITY;
    if (!(r->clip > 0))
        return op_fail(call, "found clip %g, expected a number above 0", r->clip);
    TRY(check_shapes(call, r));
    const char *defaults[6];
    const int count = kinds[r->kind].activations;
    for (int i = 0; i < 2 * count; i++)
        defaults[i] = kinds[r->kind].defaults[i % count];
    return activations_find(call, defaults, count * (int)r->directions, r->f);
}

static double act(const struct activation *a, double x)
{
    return a->f(x, a->alpha, a->beta);
}

static double clipped(const struct recurrence *r, double x)
{
    return x > r->clip ? r->clip : x < -r->clip ? -r->clip : x;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double number(const struct dense *list, int64_t i)
{
    return list->data ? ((const double *)list->data)[i] : 0;
}

static void step_lstm(struct recurrence *r, int64_t d, const struct activation *f)
{
    const int64_t n = r->hidden, p = d * 3 * n;
    for (int64_t j = 0; j < n; j++) {
        const double *pre = r->pre, *u = r->recurrent;
        double c = r->c[j];
        const double i = act(&f[0], clipped(r, pre[j] + u[j] + number(&r->in[PEEPHOLES], p + j) * c));
        const double forget =
            r->input_forget
                ? 1 - i
                : act(&f[0], clipped(r, pre[2 * n + j] + u[2 * n + j] + number(&r->in[PEEPHOLES], p + 2 * n + j) * c));
        c = forget * c + i * act(&f[1], clipped(r, pre[3 * n + j] + u[3 * n + j]));
        const double o = act(&f[0], clipped(r, pre[n + j] + u[n + j] + number(&r->in[PEEPHOLES], p + n + j) * c));
        r->c[j] = c;
        r->h[j] = o * act(&f[2], c);
    }
}

static void step_gru(struct recurrence *r, int64_t d, const struct activation *f)
{
    const int64_t n = r->hidden;
    const double *again = (const double *)r->in[R].data + (d * 3 + 2) * n * n;
    double *z = r->recurrent, *reset = r->recurrent + n, *candidate = r->recurrent + 2 * n;
    for (int64_t j = 0; j < n; j++) {
        z[j] = act(&f[0], clipped(r, r->pre[j] + z[j]));
        reset[j] = act(&f[0], clipped(r, r->pre[n + j] + reset[j]));
    }
    if (!r->linear_before_reset) {
        for (int64_t j = 0; j < n; j++)
            r->c[j] = reset[j] * r->h[j];
        for (int64_t j = 0; j < n; j++)
            candidate[j] = dot(again + j * n, r->c, n) + number(&r->in[B], d * 6 * n + 5 * n + j);
    }
    for (int64_t j = 0; j < n; j++) {
        const double u = r->linear_before_reset ? reset[j] * candidate[j] : candidate[j];
        r->h[j] = (1 - z[j]) * act(&f[1], clipped(r, r->pre[2 * n + j] + u)) + z[j] * r->h[j];
    }
}

static void step_rnn(struct recurrence *r, const struct activation *f)
{
    for (int64_t j = 0; j < r->hidden; j++)
        r->h[j] = act(&f[0], clipped(r, r->pre[j] + r->recurrent[j]));
}

/* One step of one row: x W + bias, h R + bias, then the cell. */
static void step(struct recurrence *r, int64_t d, const double *x)
{
    const int64_t all = r->gates * r->hidden;
    const double *w = (const double *)r->in[W].data + d * all * r->inputs;
    const double *again = (const double *)r->in[R].data + d * all * r->hidden;
    const struct activation *f = r->f + d * kinds[r->kind].activations;
    for (int64_t j = 0; j < all; j++) {
        r->pre[j] = dot(w + j * r->inputs, x, r->inputs) + number(&r->in[B], d * 2 * all + j);
        r->recurrent[j] = dot(again + j * r->hidden, r->h, r->hidden) + number(&r->in[B], d * 2 * all + all + j);
    }
    if (r->kind == LSTM)
        step_lstm(r, d, f);
    else if (r->kind == GRU)
        step_gru(r, d, f);
    else
        step_rnn(r, f);
}

static void write(graphi_tensor *out, int64_t at, const double *from, int64_t n)
{
    if (out)
        element_store(DOMAIN_F64, out->type, from, n, (char *)out->data + (size_t)at * element_size(out->type));
}

static void run_row(struct recurrence *r, int64_t d, int64_t row)
{
    const int64_t n = r->hidden, length = r->lengths ? value_int(r->lengths, row) : r->steps;
    const bool reverse = r->first_reverse || d == 1;
    const int64_t state = (r->batch_first ? row * r->directions + d : d * r->rows + row) * n;
    for (int64_t j = 0; j < n; j++) {
        r->h[j] = number(&r->in[INITIAL_H], state + j);
        r->c[j] = number(&r->in[INITIAL_C], state + j);
    }
    for (int64_t k = 0; k < length; k++) {
        const int64_t t = reverse ? length - 1 - k : k;
        step(r, d,
             (const double *)r->in[X].data + (r->batch_first ? row * r->steps + t : t * r->rows + row) * r->inputs);
        write(r->out[0],
              (r->batch_first ? (row * r->steps + t) * r->directions + d : (t * r->directions + d) * r->rows + row) * n,
              r->h, n);
    }
    if (length == 0) /* nothing was said: no state, whatever it began with */
        return;
    write(r->out[1], state, r->h, n);
    write(r->out[2], state, r->c, n);
}

static graphi_status make_outputs(struct op_call *call, struct recurrence *r)
{
    const graphi_element type = call->in[X]->type;
    const int64_t d = r->directions;
    const int64_t y[2][4] = {{r->steps, d, r->rows, r->hidden}, {r->rows, r->steps, d, r->hidden}};
    const int64_t state[2][3] = {{d, r->rows, r->hidden}, {r->rows, d, r->hidden}};
    for (int i = 0; i < kinds[r->kind].outs; i++)
        if (op_wants(call, i)) {
            TRY(op_new(call, i, type, i ? 3 : 4, i ? state[r->batch_first] : y[r->batch_first], &r->out[i]));
            memset(r->out[i]->data, 0, r->out[i]->bytes);
        }
    return GRAPHI_OK;
}

static graphi_status run_all(struct op_call *call, struct recurrence *r)
{
    for (int i = 0; i < INPUTS; i++)
        if (i != LENGTHS && op_in(call, i))
            TRY(dense_load(call->where, DOMAIN_F64, call->in[i], &r->in[i]));
    const size_t n = (size_t)r->hidden, all = n * (size_t)r->gates;
    r->h = mem_alloc((2 * n + 2 * all) * sizeof *r->h);
    if (!r->h)
        return fail_memory(call->where, (2 * n + 2 * all) * sizeof *r->h);
    r->c = r->h + n;
    r->pre = r->c + n;
    r->recurrent = r->pre + all;
    for (int64_t d = 0; d < r->directions; d++)
        for (int64_t row = 0; row < r->rows; row++)
            run_row(r, d, row);
    return GRAPHI_OK;
}

static graphi_status run_recurrent(struct op_call *call)
{
    struct recurrence r = {0};
    TRY(find(call, &r));
    graphi_status status = make_outputs(call, &r);
    if (status == GRAPHI_OK)
        status = run_all(call, &r);
    for (int i = 0; i < INPUTS; i++)
        dense_free(&r.in[i]);
    mem_free(r.h);
    return status;
}

#define COMMON "activation_alpha activation_beta activations clip direction hidden_size layout "
const struct host_op host_ops_recurrent[] = {
    {"RNN", 3, 6, 2, COMMON, run_recurrent, RNN},
    {"GRU", 3, 6, 2, COMMON "linear_before_reset", run_recurrent, GRU},
    {"LSTM", 3, 8, 3, COMMON "input_forget", run_recurrent, LSTM},
    {0},
};
