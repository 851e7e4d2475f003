/* SPDX-License-Identifier: Apache-2.0 */
/* What is bound by memory, over the shapes that the networks use: pooling, normalization, softmax, reductions, moves,
 * embedding, optimizer updates, element-wise programs; on one thread and on all, beside oneDNN where it has the
 * primitive. Bytes are compulsory traffic: inputs and outputs, once. The limit of a row is measured with it, in turns:
 * plain loops that read and write as many bytes (roof.h) in as many copies. So it is the roof of whichever cache or
 * memory the arrays lie in; `level` names it. */
#include "kernels.h"

#include "peers/arithmetic.h"
#include "roof.h"

#include <string.h>

/* A graph under construction, and what it reads and writes. */
struct maker {
    graphi_graph *graph;
    const struct peer_memory *what;
    struct traffic traffic;
    int inputs, outputs;
    int64_t below; /* integers that are fed */
};

struct form {
    const char *use;
    void (*build)(struct maker *m);
    struct peer_memory what;
};

/* --- builders: one instance of an operation, with arguments of its own --- */

static int64_t count_bytes(graphi_dtype dtype, int rank, const int64_t *dims)
{
    int64_t bytes = (int64_t)graphi_dtype_size(dtype);
    for (int i = 0; i < rank; i++)
        bytes *= dims[i];
    return bytes;
}

static graphi_value feed(struct maker *m, graphi_dtype dtype, int rank, const int64_t *dims)
{
    char name[24];
    snprintf(name, sizeof name, "in%d", m->inputs++);
    m->traffic.read += count_bytes(dtype, rank, dims);
    return graphi_input(m->graph, name, dtype, rank, dims);
}

static graphi_value feed1(struct maker *m, int64_t n) { return feed(m, GRAPHI_F32, 1, &n); }
static graphi_value feed2(struct maker *m, int64_t rows, int64_t columns)
{
    return feed(m, GRAPHI_F32, 2, (int64_t[]){rows, columns});
}
static graphi_value whole(struct maker *m) { return feed(m, GRAPHI_F32, 4, m->what->dims); }
static graphi_value flat(struct maker *m)
{
    return feed2(m, m->what->dims[0] * m->what->dims[1] * m->what->dims[2], m->what->dims[3]);
}
static graphi_value labels(struct maker *m) { return feed(m, GRAPHI_I32, 1, &m->what->dims[0]); }

static void result(struct maker *m, graphi_value value)
{
    char name[24];
    int rank = 0;
    int64_t dims[GRAPHI_MAX_RANK];
    graphi_dtype dtype;
    snprintf(name, sizeof name, "out%d", m->outputs++);
    graphi_output(m->graph, name, value);
    if (graphi_value_type(m->graph, value, &dtype, &rank, dims) == GRAPHI_OK)
        m->traffic.written += count_bytes(dtype, rank, dims);
}

static void make_pool(struct maker *m)
{
    const struct peer_memory *p = m->what;
    const int64_t kernel[] = {p->kernel, p->kernel}, strides[] = {p->stride, p->stride},
                  pads[] = {p->pad, p->pad, p->pad, p->pad};
    const int64_t y[] = {p->dims[0], (p->dims[1] + 2 * p->pad - p->kernel) / p->stride + 1,
                         (p->dims[2] + 2 * p->pad - p->kernel) / p->stride + 1, p->dims[3]};
    if (p->primitive == PEER_MAX_POOL && !p->backward) {
        graphi_value pooled = graphi_max_pool(m->graph, whole(m), kernel, 2, strides, 2, pads, 4, 0);
        result(m, pooled);
        result(m, pooled + 1);
    } else if (p->primitive == PEER_MAX_POOL)
        result(m, graphi_max_pool_grad(m->graph, feed(m, GRAPHI_U8, 4, y), feed(m, GRAPHI_F32, 4, y), kernel, 2,
                                       strides, 2, pads, 4, 0, p->dims + 1, 2));
    else if (!p->backward)
        result(m, graphi_avg_pool(m->graph, whole(m), kernel, 2, strides, 2, pads, 4, 0, 0));
    else
        result(m, graphi_avg_pool_grad(m->graph, feed(m, GRAPHI_F32, 4, y), kernel, 2, strides, 2, pads, 4, 0, 0,
                                       p->dims + 1, 2));
}

static void make_batch_norm(struct maker *m)
{
    int64_t c = m->what->dims[3];
    graphi_value x = whole(m), scale = feed1(m, c), second = feed1(m, c), y;
    if (m->what->backward) {
        graphi_value inv_std = feed1(m, c);
        y = graphi_batch_norm_grad(m->graph, x, scale, second, inv_std, whole(m));
    } else {
        y = graphi_batch_norm(m->graph, x, scale, second, 1e-5);
    }
    for (int i = 0; i < 3; i++)
        result(m, y + i);
}

static void make_lrn(struct maker *m)
{
    int64_t size = m->what->kernel;
    graphi_value x = whole(m);
    result(m, m->what->backward ? graphi_lrn_grad(m->graph, x, whole(m), size, 1e-4, 0.75, 1)
                                : graphi_lrn(m->graph, x, size, 1e-4, 0.75, 1));
}

static void make_softmax(struct maker *m)
{
    graphi_value x = flat(m);
    result(m, m->what->backward ? graphi_softmax_gradient(m->graph, x, flat(m)) : graphi_softmax(m->graph, x));
}

static void make_cross_entropy(struct maker *m)
{
    m->below = m->what->dims[3];
    graphi_value x = flat(m), y = labels(m);
    result(m, m->what->backward ? graphi_softmax_cross_entropy_gradient(m->graph, x, y, feed(m, GRAPHI_F32, 0, NULL))
                                : graphi_softmax_cross_entropy(m->graph, x, y));
}

static void make_sum(struct maker *m)
{
    const int64_t axis = m->what->primitive == PEER_SUM_COLUMNS;
    result(m, graphi_reduce_sum(m->graph, flat(m), &axis, m->what->primitive != PEER_NONE, 0));
}

static void make_norm(struct maker *m) { result(m, graphi_reduce_sum_squares(m->graph, flat(m), NULL, 0, 0)); }
static void make_transpose(struct maker *m) { result(m, graphi_transpose(m->graph, flat(m), (int64_t[]){1, 0}, 2)); }
static void make_channels_last(struct maker *m)
{
    result(m, graphi_transpose(m->graph, whole(m), (int64_t[]){0, 2, 3, 1}, 4));
}

static void make_concat(struct maker *m)
{
    const int64_t *d = m->what->dims, half[] = {d[0], d[1], d[2], d[3] / 2};
    graphi_value a = feed(m, GRAPHI_F32, 4, half), b = feed(m, GRAPHI_F32, 4, half);
    result(m, graphi_concat(m->graph, 2, (graphi_value[]){a, b}, 3));
}

/* Four parts of the columns, each an array of its own. */
static void make_split(struct maker *m)
{
    const int64_t part = m->what->dims[3] / 4;
    graphi_value x = flat(m);
    for (int i = 0; i < 4; i++)
        result(m, graphi_slice(m->graph, x, 1, i * part, (i + 1) * part));
}

/* dims: rows of the table, ids, -, columns. Of the table the rows asked for are read. */
static void make_embedding(struct maker *m)
{
    const int64_t *d = m->what->dims;
    m->below = d[0];
    graphi_value table = m->what->backward ? GRAPHI_NONE : feed2(m, d[0], d[3]), ids = feed(m, GRAPHI_I32, 1, &d[1]);
    if (m->what->backward) {
        result(m, graphi_embedding_grad(m->graph, ids, feed2(m, d[1], d[3]), d[0]));
        return;
    }
    m->traffic.read += (d[1] - d[0]) * d[3] * 4;
    result(m, graphi_embedding(m->graph, table, ids));
}

/* The update of a matrix by a gradient that is fed: that of the sum of their products. */
static void make_update(struct maker *m)
{
    const int64_t *d = m->what->dims, dims[] = {d[0], d[3]}, bytes = count_bytes(GRAPHI_F32, 2, dims);
    const int slots = (int)m->what->kernel; /* SGD 0, momentum 1, Adam 2 */
    char name[24];
    snprintf(name, sizeof name, "w%d", m->inputs);
    graphi_value w = graphi_parameter(m->graph, name, GRAPHI_F32, 2, dims,
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .b = 1});
    graphi_value loss = graphi_reduce_sum(m->graph, graphi_mul(m->graph, w, flat(m)), NULL, 0, 0);
    const graphi_optimizer how = {
        .kind = (graphi_optimizer_kind)slots, .learning_rate = feed(m, GRAPHI_F32, 0, NULL), .only = name};
    graphi_minimize(m->graph, loss, &how);
    m->traffic.read += (slots + 1) * bytes;
    m->traffic.written += (slots + 1) * bytes;
    m->traffic.in_place = true;
}

static void make_bias_relu(struct maker *m)
{
    graphi_value x = flat(m);
    result(m, graphi_relu(m->graph, graphi_add(m->graph, x, feed1(m, m->what->dims[3]))));
}

static void make_add(struct maker *m)
{
    graphi_value x = flat(m);
    result(m, graphi_add(m->graph, x, flat(m)));
}

/* Gates after their products -> c, h: graphi/models' lstm. */
static void make_lstm_cell(struct maker *m)
{
    graphi_graph *g = m->graph;
    graphi_value gate[4];
    for (int i = 0; i < 4; i++)
        gate[i] = flat(m);
    graphi_value in = graphi_mul(g, graphi_sigmoid(g, gate[0]), graphi_tanh(g, gate[2]));
    graphi_value c = graphi_add(g, graphi_mul(g, graphi_sigmoid(g, gate[1]), flat(m)), in);
    result(m, c);
    result(m, graphi_mul(g, graphi_sigmoid(g, gate[3]), graphi_tanh(g, c)));
}

/* How far each unit is open, and a state blended by it: phased_lstm's. */
static void make_time_gate(struct maker *m)
{
    graphi_graph *g = m->graph;
    const int64_t units = m->what->dims[3];
    graphi_value time = feed2(m, m->what->dims[0], 1), period = feed1(m, units), shift = feed1(m, units),
                 ratio = feed1(m, units);
    graphi_value two = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){2}),
                 leak = graphi_constant(g, GRAPHI_F32, 0, NULL, &(float){0.001f});
    graphi_value phase =
        graphi_div(g, graphi_mod(g, graphi_sub(g, time, graphi_mul(g, shift, period)), period), period);
    graphi_value twice = graphi_mul(g, two, phase), slope = graphi_div(g, twice, ratio);
    graphi_value later =
        graphi_select(g, graphi_less(g, phase, ratio), graphi_sub(g, two, slope), graphi_mul(g, leak, phase));
    graphi_value k = graphi_select(g, graphi_less(g, twice, ratio), slope, later), fresh = flat(m), old = flat(m);
    result(m, graphi_add(g, graphi_mul(g, k, graphi_sub(g, fresh, old)), old));
}

/* --- the shapes --- */

#define IMAGES(use, build, primitive, backward, n, side, c, ...)                                                       \
    {                                                                                                                  \
        use, build,                                                                                                    \
        {                                                                                                              \
            PEER_##primitive, backward, {n, side, side, c}, __VA_ARGS__                                                \
        }                                                                                                              \
    }
#define BOTH(use, build, primitive, n, side, c, ...)                                                                   \
    IMAGES(use " forward", build, primitive, false, n, side, c, __VA_ARGS__),                                          \
        IMAGES(use " backward", build, primitive, true, n, side, c, __VA_ARGS__)
#define MATRIX(use, build, primitive, backward, rows, columns)                                                         \
    {                                                                                                                  \
        use, build,                                                                                                    \
        {                                                                                                              \
            PEER_##primitive, backward, {rows, 1, 1, columns}, 0, 0, 0                                                 \
        }                                                                                                              \
    }
#define UPDATE(use, slots, rows, columns) {use, make_update, {PEER_NONE, false, {rows, 1, 1, columns}, slots, 0, 0}}

static const struct form forms[] = {
    BOTH("max pool, googlenet small pool1 3x3/2", make_pool, MAX_POOL, 32, 64, 64, 3, 2, 1),
    BOTH("max pool, googlenet small 3a 3x3/1", make_pool, MAX_POOL, 32, 16, 192, 3, 1, 1),
    BOTH("max pool, googlenet small 4b 3x3/1", make_pool, MAX_POOL, 32, 8, 512, 3, 1, 1),
    BOTH("max pool, pathnet small 2x2/2", make_pool, MAX_POOL, 64, 32, 16, 2, 2, 0),
    BOTH("average pool, inception-v3 3x3/1", make_pool, AVG_POOL, 16, 35, 288, 3, 1, 1),
    BOTH("average pool, googlenet small 8x8", make_pool, AVG_POOL, 32, 4, 1024, 4, 4, 0),
    BOTH("batch norm, resnet20 stage 1", make_batch_norm, BATCH_NORM, 64, 32, 16, 0, 0, 0),
    BOTH("batch norm, resnet20 stage 3", make_batch_norm, BATCH_NORM, 64, 8, 64, 0, 0, 0),
    BOTH("batch norm, googlenet small conv1", make_batch_norm, BATCH_NORM, 32, 64, 64, 0, 0, 0),
    BOTH("batch norm, inception-v3 35x35", make_batch_norm, BATCH_NORM, 16, 35, 288, 0, 0, 0),
    BOTH("lrn, googlenet small first", make_lrn, LRN, 32, 32, 64, 5, 0, 0),
    BOTH("lrn, googlenet small second", make_lrn, LRN, 32, 32, 192, 5, 0, 0),
    MATRIX("softmax, ptb small forward", make_softmax, SOFTMAX, false, 400, 10000),
    MATRIX("softmax, ptb small backward", make_softmax, SOFTMAX, true, 400, 10000),
    MATRIX("softmax, googlenet forward", make_softmax, SOFTMAX, false, 32, 1000),
    MATRIX("cross-entropy, ptb small forward", make_cross_entropy, NONE, false, 400, 10000),
    MATRIX("cross-entropy, ptb small backward", make_cross_entropy, NONE, true, 400, 10000),
    MATRIX("cross-entropy, googlenet backward", make_cross_entropy, NONE, true, 32, 1000),
    MATRIX("sum of rows, googlenet small conv1 bias", make_sum, SUM_ROWS, false, 131072, 64),
    MATRIX("sum of rows, lstm medium bias", make_sum, SUM_ROWS, false, 1920, 512),
    MATRIX("sum of columns, ptb small", make_sum, SUM_COLUMNS, false, 400, 10000),
    MATRIX("sum of all, lstm medium outputs", make_sum, NONE, false, 1920, 512),
    MATRIX("sum of squares, ptb small weights", make_norm, NONE, false, 10000, 200),
    MATRIX("transpose, lstm medium weights", make_transpose, TRANSPOSE, false, 512, 2048),
    MATRIX("transpose, ptb medium embedding", make_transpose, TRANSPOSE, false, 10000, 650),
    {"transpose, image batch to channels-last", make_channels_last, {PEER_NONE, false, {32, 3, 128, 128}, 0, 0, 0}},
    IMAGES("concat, googlenet small 3a", make_concat, CONCAT, false, 32, 16, 256, 0, 0, 0),
    MATRIX("split, lstm medium merged gates", make_split, NONE, false, 1920, 2048),
    {"embedding, ptb small", make_embedding, {PEER_NONE, false, {10000, 400, 1, 200}, 0, 0, 0}},
    {"embedding, ptb large", make_embedding, {PEER_NONE, false, {10000, 700, 1, 1500}, 0, 0, 0}},
    {"embedding gradient, ptb small", make_embedding, {PEER_NONE, true, {10000, 400, 1, 200}, 0, 0, 0}},
    {"embedding gradient, ptb large", make_embedding, {PEER_NONE, true, {10000, 700, 1, 1500}, 0, 0, 0}},
    UPDATE("update, SGD lstm medium", 0, 512, 512),
    UPDATE("update, SGD ptb medium", 0, 10000, 650),
    UPDATE("update, momentum lstm medium", 1, 512, 512),
    UPDATE("update, momentum ptb medium", 1, 10000, 650),
    UPDATE("update, Adam lstm medium", 2, 512, 512),
    UPDATE("update, Adam ptb medium", 2, 10000, 650),
    MATRIX("program, relu(x + bias) googlenet small conv1", make_bias_relu, BIAS_RELU, false, 131072, 64),
    MATRIX("program, relu(x + bias) googlenet small 3a", make_bias_relu, BIAS_RELU, false, 8192, 96),
    MATRIX("program, x + y lstm medium gradients", make_add, ADD, false, 1920, 512),
    MATRIX("program, lstm cell small", make_lstm_cell, NONE, false, 64, 128),
    MATRIX("program, lstm cell medium", make_lstm_cell, NONE, false, 64, 512),
    MATRIX("program, lstm cell large", make_lstm_cell, NONE, false, 64, 1024),
    MATRIX("program, phased-lstm gate medium", make_time_gate, NONE, false, 64, 512),
    MATRIX("program, phased-lstm gate large", make_time_gate, NONE, false, 64, 1024),
};

/* --- measuring --- */

static graphi_status build(const struct form *form, int copies, struct maker *m)
{
    *m = (struct maker){.what = &form->what, .below = 1};
    graphi_status status = graphi_graph_create(&m->graph);
    if (status != GRAPHI_OK)
        return report_failure(status);
    for (int i = 0; i < copies; i++) {
        m->traffic = (struct traffic){0};
        form->build(m);
    }
    return GRAPHI_OK;
}

/* The smallest that holds everything that a round touches. */
static const char *level(const struct bench *bench, double bytes, int threads)
{
    const graphi_machine_info *about = &bench->about;
    return bytes <= 0.8 * (double)about->l2_bytes * threads ? "L2"
           : bytes <= 0.8 * (double)about->l3_bytes         ? "L3"
                                                            : "memory";
}

static void finish_row(json_t *row, const struct traffic *traffic, const char *where, const double *ms,
                       const double *roof, int n)
{
    if (n == 0)
        return;
    double median = result_median(ms, n);
    result_number(row, "gbs", (double)traffic_bytes(traffic) / median * 1e-6);
    result_number(row, "fraction_of_limit", result_median(roof, n) / median);
    result_string(row, "level", where);
}

static graphi_status measure(struct bench *bench, const struct form *form, int threads)
{
    double ours[KERNELS_ROUNDS], theirs[KERNELS_ROUNDS], roof[KERNELS_ROUNDS];
    struct maker m;
    char mine[200], other[200];
    graphi_status status = build(form, 1, &m);
    if (status != GRAPHI_OK)
        return status;
    graphi_graph_destroy(m.graph);
    /* Small ones several times, so that starting a run, which takes 3 us, does not count. */
    double footprint = (double)traffic_footprint(&m.traffic);
    int copies = footprint < (1 << 18)   ? 8
                 : footprint < (1 << 19) ? (int)((1 << 21) / footprint)
                 : footprint < (1 << 22) ? 4
                                         : 1,
        peers = 0;
    int repeat = footprint < (1 << 22) ? 50 : 5;
    const graphi_plan_options options = {.disable = "cse"};
    report_progress(bench->options.quiet, "kernels: %s, %d threads", form->use, threads);
    if ((status = build(form, copies, &m)) != GRAPHI_OK)
        return status;
    for (int round = 0; round < KERNELS_ROUNDS && status == GRAPHI_OK; round++) {
        roof[round] = roof_ms(&m.traffic, threads, repeat, copies);
        status = kernels_time(bench, m.graph, &options, m.below, threads, repeat, copies, &ours[round]);
        double t = form->what.primitive == PEER_NONE ? -1 : peer_onednn_memory(&form->what, threads, repeat, copies);
        if (t > 0)
            theirs[peers++] = t;
        if (report_interrupted())
            status = GRAPHI_INTERRUPTED;
    }
    graphi_graph_destroy(m.graph);
    if (status != GRAPHI_OK)
        return status;
    const char *where = level(bench, footprint * copies, threads);
    json_t *row = kernels_row(bench, form->use, "graphi", NULL, threads, ours, KERNELS_ROUNDS, "", mine);
    finish_row(row, &m.traffic, where, ours, roof, KERNELS_ROUNDS);
    if (form->what.primitive == PEER_NONE)
        return GRAPHI_OK;
    json_t *peer = kernels_row(bench, form->use, "oneDNN", peer_onednn_version(), threads, theirs, peers,
                               "found neither the library at build time (make peers installs it) nor a primitive in it",
                               other);
    finish_row(peer, &m.traffic, where, theirs, roof, peers);
    if (peers == KERNELS_ROUNDS)
        result_ratio(row, other, ours, theirs, KERNELS_ROUNDS);
    return GRAPHI_OK;
}

graphi_status kernels_memory(struct bench *bench)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int threads = 0; (threads = kernels_next_threads(bench, threads)) && kernels_asked(bench, forms[i].use);) {
            graphi_status status = measure(bench, &forms[i], threads);
            if (status != GRAPHI_OK)
                return status;
        }
    return GRAPHI_OK;
}
