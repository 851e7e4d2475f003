/* SPDX-License-Identifier: Apache-2.0 */
/* Networks over input graphs, of vertex functions (graphi/dynamic.h): Tree-LSTMs of Tai et al. (2015), binary with
 * words at leaves and child-sum over dependency trees, Tree-FC (Looks et al. 2017), LSTM language models over chains
 * of one or of many lengths (cavs.txt 4), and a network of messages that learns the longest distance to a sink. */
#include "models/model.h"

#include "graphi/dynamic.h"

static graphi_value weight(graphi_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    const graphi_initializer init = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.1, .b = 0.1};
    return graphi_parameter(graph, name, GRAPHI_F32, 2, (int64_t[]){rows, columns}, &init);
}

static graphi_value bias(graphi_graph *graph, const char *name, int64_t columns)
{
    return graphi_parameter(graph, name, GRAPHI_F32, 1, &columns, NULL);
}

static graphi_value product(graphi_graph *graph, graphi_value x, graphi_value w)
{
    return graphi_matmul(graph, x, w, 0, 0);
}

/* A part over the batch's graphs, with its inputs. */
struct part {
    graphi_dynamic *d;
    graphi_value words, labels;
};

static struct part begin(graphi_graph *graph, const graphi_model_info *sizes, const graphi_model_options *options,
                         int states)
{
    const graphi_dynamic_options how = {.graphs = {.vertices = sizes->vertices,
                                                   .edges = sizes->edges,
                                                   .functions = sizes->functions,
                                                   .children = sizes->children,
                                                   .rows = options->block_rows},
                                        .in_rounds = options->in_rounds,
                                        .state = {sizes->units, states > 1 ? sizes->units : 0}};
    struct part p = {.d = graphi_dynamic_begin(graph, &how)};
    const int64_t rows = graphi_vertex_rows(p.d);
    p.words = graphi_input(graph, "words", GRAPHI_I32, 1, &rows);
    return p;
}

/* Ends the part, whose first push are logits: the loss is the mean cross-entropy of all vertices. */
static void classify(graphi_graph *graph, struct part *p, const graphi_model_options *options)
{
    const int64_t rows = graphi_vertex_rows(p->d);
    graphi_value logits = GRAPHI_NONE;
    const graphi_optimizer optimizer = {.kind = model_is_real(options) ? GRAPHI_ADAGRAD : GRAPHI_SGD};
    p->labels = graphi_input(graph, "labels", GRAPHI_I32, 1, &rows);
    if (graphi_dynamic_end(p->d, 1, &logits) != GRAPHI_OK)
        return;
    graphi_output(graph, "logits", logits);
    const graphi_value loss = graphi_softmax_cross_entropy(graph, logits, p->labels);
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options, &optimizer);
}

static void push_logits(graphi_graph *f, const struct part *p, graphi_value h, int64_t units, int64_t classes)
{
    graphi_push(p->d, 0,
                graphi_add(f, product(f, h, weight(f, "w_class", units, classes)), bias(f, "b_class", classes)));
}

/* h and c of gates i, o, u; c: what children add to the cell, GRAPHI_NONE: nothing. */
static graphi_value scatter_cell(graphi_graph *f, const struct part *p, graphi_value pre, graphi_value c, int64_t units)
{
    const graphi_value i = graphi_sigmoid(f, graphi_slice(f, pre, 1, 0, units));
    const graphi_value o = graphi_sigmoid(f, graphi_slice(f, pre, 1, units, 2 * units));
    const graphi_value u = graphi_tanh(f, graphi_slice(f, pre, 1, 2 * units, 3 * units));
    const graphi_value cell = c == GRAPHI_NONE ? graphi_mul(f, i, u) : graphi_add(f, graphi_mul(f, i, u), c);
    const graphi_value h = graphi_mul(f, o, graphi_tanh(f, cell));
    graphi_scatter(p->d, 0, h);
    graphi_scatter(p->d, 1, cell);
    return h;
}

/* sum over children of f_k c_k, f_k = sigmoid(h_k U_f + b_f), which x adds to where there is one. */
static graphi_value forget(graphi_graph *f, const struct part *p, graphi_value x, int64_t features, int64_t units)
{
    graphi_value each = product(f, graphi_gather_each(p->d, 0), weight(f, "u_f", units, units));
    if (x == GRAPHI_NONE)
        each = graphi_add(f, each, bias(f, "b_f", units));
    else
        each = graphi_add(
            f,
            graphi_spread(p->d, graphi_add(f, product(f, x, weight(f, "w_f", features, units)), bias(f, "b_f", units))),
            each);
    return graphi_combine(p->d, graphi_mul(f, graphi_sigmoid(f, each), graphi_gather_each(p->d, 1)));
}

static graphi_value words_of(graphi_graph *f, const struct part *p, const graphi_model_info *sizes, int64_t features)
{
    return graphi_embedding(f, weight(f, "embedding", sizes->vocabulary, features), graphi_pull(p->d, p->words));
}

enum { FEATURES = 300 }; /* of words, as Tai's vectors have */

static void build_treelstm(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    struct part p = begin(graph, s, options, 2);
    graphi_graph *f = graphi_vertex_function(p.d); /* words */
    graphi_value x = words_of(f, &p, s, FEATURES);
    graphi_value pre = graphi_add(f, product(f, x, weight(f, "w", FEATURES, 3 * s->units)), bias(f, "b", 3 * s->units));
    push_logits(f, &p, scatter_cell(f, &p, pre, GRAPHI_NONE, s->units), s->units, s->classes);
    f = graphi_vertex_function(p.d); /* phrases */
    pre = graphi_add(f, product(f, graphi_gather_sum(p.d, 0), weight(f, "u", s->units, 3 * s->units)),
                     bias(f, "b", 3 * s->units));
    push_logits(f, &p, scatter_cell(f, &p, pre, forget(f, &p, GRAPHI_NONE, 0, s->units), s->units), s->units,
                s->classes);
    classify(graph, &p, options);
}

static void build_dependency(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    struct part p = begin(graph, s, options, 2);
    graphi_graph *f = graphi_vertex_function(p.d);
    graphi_value x = words_of(f, &p, s, FEATURES);
    graphi_value pre = graphi_add(f, product(f, x, weight(f, "w", FEATURES, 3 * s->units)), bias(f, "b", 3 * s->units));
    pre = graphi_add(f, pre, product(f, graphi_gather_sum(p.d, 0), weight(f, "u", s->units, 3 * s->units)));
    graphi_value h = scatter_cell(f, &p, pre, forget(f, &p, x, FEATURES, s->units), s->units);
    push_logits(f, &p, h, s->units, s->classes);
    classify(graph, &p, options);
}

/* Half the squared length of the roots, a mean over samples: vertices whose "root" is 1. */
static void build_treefc(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    struct part p = begin(graph, s, options, 1);
    const int64_t rows[] = {graphi_vertex_rows(p.d), 1}, axis = 1, h = s->units;
    const graphi_value root = graphi_input(graph, "root", GRAPHI_F32, 2, rows);
    const graphi_optimizer optimizer = {.kind = GRAPHI_SGD};
    graphi_graph *f = graphi_vertex_function(p.d);
    graphi_scatter(p.d, 0, graphi_embedding(f, weight(f, "table", s->vocabulary, h), graphi_pull(p.d, p.words)));
    f = graphi_vertex_function(p.d);
    graphi_value both = graphi_concat(f, 2, (graphi_value[]){graphi_gather(p.d, 0, 0), graphi_gather(p.d, 0, 1)}, 1);
    graphi_value y = graphi_relu(f, graphi_add(f, product(f, both, weight(f, "w", 2 * h, h)), bias(f, "b", h)));
    graphi_scatter(p.d, 0, y);
    graphi_push(p.d, 0, graphi_mul(f, graphi_reduce_sum(f, graphi_mul(f, y, y), &axis, 1, 1), graphi_pull(p.d, root)));
    graphi_value squares;
    if (graphi_dynamic_end(p.d, 1, &squares) != GRAPHI_OK)
        return;
    graphi_value loss =
        graphi_div(graph, graphi_reduce_sum(graph, squares, NULL, 0, 0), graphi_reduce_sum(graph, root, NULL, 0, 0));
    loss = graphi_mul(graph, loss, model_scalar(graph, 0.5f));
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options, &optimizer);
}

/* Gates i, f, g, o, one product each for the word and the vertex before (graphi_lstm's arithmetic). */
static void build_chain(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    struct part p = begin(graph, s, options, 2);
    const int64_t h = s->units;
    graphi_graph *f = graphi_vertex_function(p.d);
    graphi_value pre = graphi_add(f, product(f, words_of(f, &p, s, h), weight(f, "w", h, 4 * h)),
                                  product(f, graphi_gather(p.d, 0, 0), weight(f, "u", h, 4 * h)));
    pre = graphi_add(f, pre, bias(f, "b", 4 * h));
    graphi_value gate[4];
    for (int g = 0; g < 4; g++) {
        gate[g] = graphi_slice(f, pre, 1, g * h, (g + 1) * h);
        gate[g] = g == 2 ? graphi_tanh(f, gate[g]) : graphi_sigmoid(f, gate[g]);
    }
    const graphi_value c =
        graphi_add(f, graphi_mul(f, gate[1], graphi_gather(p.d, 1, 0)), graphi_mul(f, gate[0], gate[2]));
    const graphi_value y = graphi_mul(f, gate[3], graphi_tanh(f, c));
    graphi_scatter(p.d, 0, y);
    graphi_scatter(p.d, 1, c);
    push_logits(f, &p, y, h, s->classes);
    classify(graph, &p, options);
}

/* h = relu(x W + b + (sum over children) U), classes are distances. */
static void build_messages(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    struct part p = begin(graph, s, options, 1);
    const int64_t h = s->units;
    graphi_graph *f = graphi_vertex_function(p.d);
    graphi_value pre = graphi_add(f, product(f, words_of(f, &p, s, h), weight(f, "w", h, h)), bias(f, "b", h));
    graphi_value message = graphi_relu(f, product(f, graphi_gather_each(p.d, 0), weight(f, "u_f", h, h)));
    graphi_value y = graphi_tanh(f, graphi_add(f, pre, product(f, graphi_combine(p.d, message), weight(f, "u", h, h))));
    graphi_scatter(p.d, 0, y);
    push_logits(f, &p, y, h, s->classes);
    classify(graph, &p, options);
}

#define NETWORK(NAME, SUMMARY, BATCH, UNITS, STEPS, CLASSES, WORDS, FUNCTIONS, CHILDREN, SAMPLE, METRIC, RATE, EPOCHS, \
                BUILD)                                                                                                 \
    {                                                                                                                  \
        .info = {.name = NAME,                                                                                         \
                 .summary = SUMMARY,                                                                                   \
                 .feed = GRAPHI_MODEL_TREES,                                                                           \
                 .batch = BATCH,                                                                                       \
                 .layers = 1,                                                                                          \
                 .classes = CLASSES,                                                                                   \
                 .vocabulary = WORDS,                                                                                  \
                 .functions = FUNCTIONS,                                                                               \
                 .children = CHILDREN,                                                                                 \
                 .vertices = SAMPLE,                                                                                   \
                 .metric = METRIC,                                                                                     \
                 .rate = RATE,                                                                                         \
                 .schedule = "constant",                                                                               \
                 .epochs = EPOCHS},                                                                                    \
        .size = {{.steps = STEPS, .units = UNITS}}, .switches = MODEL_STEPS, .build = BUILD                            \
    }

const struct model model_treelstm = NETWORK("treelstm", "binary child-sum Tree-LSTM, a class at every phrase", 25, 150,
                                            1, 5, 20000, 2, 2, 64, "accuracy", 0.05, 2, build_treelstm);
const struct model model_dependency_treelstm =
    NETWORK("dependency-treelstm", "child-sum Tree-LSTM over dependency trees, a relation at every word", 25, 150, 1,
            50, 20000, 1, 0, 64, "accuracy", 0.05, 10, build_dependency);
const struct model model_treefc = NETWORK("treefc", "a fully connected layer over complete binary trees", 64, 512, 1, 0,
                                          256, 2, 2, 511, NULL, 1e-5, 1, build_treefc);
const struct model model_fixed_lstm = NETWORK("fixed-lstm", "LSTM language model over chains of 64 words", 64, 512, 64,
                                              0, 10000, 1, 1, 64, "perplexity", 0.05, 10, build_chain);
const struct model model_var_lstm = NETWORK("var-lstm", "LSTM language model over lines of text", 20, 200, 1, 0, 10000,
                                            1, 1, 83, "perplexity", 0.05, 10, build_chain);
const struct model model_message_passing =
    NETWORK("message-passing", "messages over graphs without cycles, the longest distance to a sink at every vertex",
            32, 64, 1, 16, 16, 1, 0, 64, "accuracy", 0.05, 10, build_messages);
