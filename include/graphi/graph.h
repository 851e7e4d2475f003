/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: values and the operations between them. A plan is made from what is there when it is made; what is added
 * afterwards (an evaluation's outputs, say) is in later plans alone.
 *
 * Errors are sticky: the first wrong call is recorded with a message naming the node, the shapes and what was expected
 * (INVALID where nothing else is said, or MEMORY); from it on calls add nothing and give GRAPHI_NONE;
 * graphi_graph_status and graphi_plan_create return that first error. A graph is built by one thread at a time. Names
 * and arrays passed in are copied. Arrays are dense, the last dimension the fastest, here and wherever data is passed.
 */
#ifndef GRAPHI_GRAPH_H
#define GRAPHI_GRAPH_H

#include "graphi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_graph graphi_graph;

/* A value of one graph: an index. The outputs of an operation have consecutive values, the first is what graphi_op
 * gives. */
typedef int32_t graphi_value;
#define GRAPHI_NONE (-1)

typedef enum graphi_attribute_type { GRAPHI_INT, GRAPHI_FLOAT, GRAPHI_INTS } graphi_attribute_type;

/* A named constant of an operation ("axis", "strides"); docs/operations.md lists each operation's. */
typedef struct graphi_attribute {
    const char *name;
    graphi_attribute_type type;
    int64_t i;
    double f;
    const int64_t *ints;
    int count; /* of ints */
} graphi_attribute;

/* How a parameter starts. Random numbers depend on the state's seed and the parameter's name alone. INVALID where a and
 * b are none that the kind can take: no numbers, a above b, a negative deviation, a logarithm of 0 or less. */
typedef enum graphi_init_kind {
    GRAPHI_INIT_ZERO,
    GRAPHI_INIT_CONSTANT,       /* a */
    GRAPHI_INIT_UNIFORM,        /* [a, b) */
    GRAPHI_INIT_NORMAL,         /* mean a, standard deviation b */
    GRAPHI_INIT_GLOROT_UNIFORM, /* +-sqrt(6 / (fan in + fan out)) */
    GRAPHI_INIT_HE_NORMAL,      /* standard deviation sqrt(2 / fan in) */
    GRAPHI_INIT_LOG_UNIFORM,    /* exp(U(log a, log b)): the periods of a PhasedLSTM */
} graphi_init_kind;

typedef struct graphi_initializer {
    graphi_init_kind kind;
    double a, b;
    const void *data; /* not NULL: initial values (dense, the parameter's dtype), kind is ignored */
} graphi_initializer;

/* An empty graph. The caller destroys it, after the plans that were made of it; NULL is accepted. Error, *out
 * untouched: MEMORY. */
GRAPHI_API graphi_status graphi_graph_create(graphi_graph **out);
GRAPHI_API void graphi_graph_destroy(graphi_graph *graph);

/* GRAPHI_OK, or the first error recorded while building (graphi_message then tells it again); INVALID for NULL. */
GRAPHI_API graphi_status graphi_graph_status(const graphi_graph *graph);

/* A bounded symbolic size for dimension 0 of values ("batch" <= 64): the plan reserves for the bound, a run may use any
 * size from 1 to it (graphi_run_set_symbol). Gives a negative number to be put into dims[0] of inputs, for a name with
 * the bound that it has already the same one. Errors: no name, a bound below 1, another bound than before. */
GRAPHI_API int64_t graphi_symbol(graphi_graph *graph, const char *name, int64_t bound);

/* What a run is fed. `rank` is 0 (a scalar; dims may be NULL) to GRAPHI_MAX_RANK, sizes are 1 and more, 2^44 bytes in
 * all; dims[0] may be a symbol. Errors: an empty name or one that another input or a parameter has (outputs have names
 * of their own), or another type or size. */
GRAPHI_API graphi_value graphi_input(graphi_graph *graph, const char *name, graphi_dtype dtype, int rank,
                                     const int64_t *dims);

/* What is learned or kept between runs, in a state. init NULL: zeros. Errors as graphi_input; a symbol; a name that is
 * not UTF-8, or "__metadata__", which no file can hold; numbers that the kind of `init` cannot take. */
GRAPHI_API graphi_value graphi_parameter(graphi_graph *graph, const char *name, graphi_dtype dtype, int rank,
                                         const int64_t *dims, const graphi_initializer *init);

/* A literal; `data` has as many elements as `dims` tell. Errors: types and sizes as graphi_input; a symbol; no data. */
GRAPHI_API graphi_value graphi_constant(graphi_graph *graph, graphi_dtype dtype, int rank, const int64_t *dims,
                                        const void *data);

/* Appends one operation. `attributes` may be NULL when count is 0; missing ones take their defaults, unknown ones are
 * errors. The readable builders of ops.h are inline calls of this; "assign" and "call" have functions below. */
GRAPHI_API graphi_value graphi_op(graphi_graph *graph, const char *kind, int inputs, const graphi_value *input,
                                  int attributes, const graphi_attribute *attribute);

/* Appends a call of the sub-graph `body`, which the graph owns from now on, also when this fails (unless the graph is a
 * region itself), and to which nothing may be added: its inputs by position take `input`, its outputs by position, one
 * or more, are the values given. A body has inputs and constants, no parameters, and is called once: one that is a
 * region already is refused, and stays its owner's. Its symbols are its own: each stands for the one that the values
 * given for the inputs of that size follow. Regions may be nested 100 deep (UNSUPPORTED beyond). */
GRAPHI_API graphi_value graphi_region(graphi_graph *graph, graphi_graph *body, int inputs, const graphi_value *input);

/* Names the nodes that follow: "layer2/t7". Shown in messages, traces and printings. NULL: none. */
GRAPHI_API void graphi_scope(graphi_graph *graph, const char *scope);

/* The parameter takes `value` (same shape and dtype) when all readers of its old content are done; each parameter at
 * most once. Gives the new content as a value. What needs both contents reads a copy of the old one, graphi_identity:
 * otherwise the plan is refused (INVALID), since it, or a view of the old content that it reads, would come too late.
 */
GRAPHI_API graphi_value graphi_assign(graphi_graph *graph, graphi_value parameter, graphi_value value);

/* Marks a value to be fetched by name after a run. A parameter's is its content before the run's update; what
 * graphi_assign gave is the content after it. Inputs and parameters may have the name too, and a value several. Errors:
 * an empty name or that of another output; no value of this graph. */
GRAPHI_API void graphi_output(graphi_graph *graph, const char *name, graphi_value value);

/* Reverse-mode differentiation of the scalar `loss` with respect to n values; gradient[i] has the shape of wrt[i], and
 * is GRAPHI_NONE where the loss does not depend on it. Gradients are float32, also those of bfloat16 values; other
 * types have none (INVALID). Appends the backward graph; its nodes are marked as backward. Errors, `gradient`
 * untouched, which stick to the graph like all others: the first mistake recorded while building it; INVALID, a loss
 * that is not one float32 number, or values that are not of this graph; UNSUPPORTED, an operation that has no gradient,
 * naming it; MEMORY. */
GRAPHI_API graphi_status graphi_gradients(graphi_graph *graph, graphi_value loss, int n, const graphi_value *wrt,
                                          graphi_value *gradient);

typedef enum graphi_optimizer_kind { GRAPHI_SGD, GRAPHI_MOMENTUM, GRAPHI_ADAM, GRAPHI_ADAGRAD } graphi_optimizer_kind;

/* Zero fields take the usual defaults: momentum 0.9, beta1 0.9, beta2 0.999, epsilon 1e-8, of Adagrad 1e-10; so none of
 * these can be 0. Momentum and betas are below 1, as float32 numbers too. The learning rate has no default and must be
 * given: 0 is the graph's first value. Arithmetic follows torch.optim. */
typedef struct graphi_optimizer {
    graphi_optimizer_kind kind;
    graphi_value learning_rate; /* a float32 scalar value, usually an input fed by a schedule */
    double momentum, beta1, beta2, epsilon;
    double accumulator;  /* Adagrad: what its sums of squares begin with */
    double weight_decay; /* added to the gradient as decay * weight, for parameters of rank > 1 */
    double clip_norm;    /* global-norm clipping; 0: none */
    const char *only;    /* parameters whose name starts with this; NULL: all trainable ones */
    /* MOMENTUM: the velocity has the rate in it, v <- momentum v + rate gradient, w <- w - v, as Caffe's; false: v <-
     * momentum v + gradient, w <- w - rate v, as PyTorch's. They differ in the steps after the rate has changed. */
    bool rate_in_velocity;
    /* Of tables whose gradient comes from graphi_embedding alone, update the rows that were looked up and no others
     * (docs/training.md). By default where that changes no result: SGD and Adagrad without decay, of tables of twice as
     * many rows as ids. ON: always; momentum, Adam and decay then pass over a row in steps that do not read it. OFF:
     * never. */
    graphi_choice sparse;
} graphi_optimizer;

/* Gradients of `loss` and update nodes for every trainable float32 parameter it depends on. What the optimizer keeps
 * are parameters, not trainable, zero at first: "NAME/momentum"; of Adagrad "NAME/adagrad", from `accumulator` on; of
 * Adam "NAME/adam_m", "NAME/adam_v" and its count of steps, "adam/step" behind the text of `only` ("adam/step2", ...
 * where that name is taken). Errors as graphi_gradients; INVALID also for no optimizer, for numbers that are none of an
 * optimizer's, for a learning rate that is no float32 scalar or is one of these parameters, where no trainable
 * parameter is found, and where one is updated already; UNSUPPORTED where sparse updates are asked for and several
 * lookups of a table have ids that follow a symbol. */
GRAPHI_API graphi_status graphi_minimize(graphi_graph *graph, graphi_value loss, const graphi_optimizer *optimizer);

/* What graphi_minimize, when it is called later, multiplies learning rate and weight decay by for this parameter, both
 * finite and 0 or more; a decay that is told counts whatever the rank. Without: 1 and 1, of rank 1 or less 1 and 0.
 * Errors: a value that is no parameter of this graph; other numbers. Source: Caffe's lr_mult and decay_mult. */
GRAPHI_API void graphi_multiply(graphi_graph *graph, graphi_value parameter, double rate, double decay);

/* Marks a parameter that graphi_minimize, when it is called later, must leave alone (running statistics, optimizer
 * slots, counters). Error: a value that is no parameter of this graph. */
GRAPHI_API void graphi_freeze(graphi_graph *graph, graphi_value parameter);

/* The value of that name: an output's, else an input's or a parameter's (which is which: graphi_graph_at); GRAPHI_NONE
 * when there is none. */
GRAPHI_API graphi_value graphi_find(const graphi_graph *graph, const char *name);

typedef enum graphi_port_kind { GRAPHI_PORT_INPUT, GRAPHI_PORT_OUTPUT, GRAPHI_PORT_PARAMETER } graphi_port_kind;

/* What has a name in a graph. A bounded dimension is its bound. */
typedef struct graphi_port {
    const char *name; /* lives as long as the graph */
    graphi_value value;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK]; /* 0 from `rank` on */
    size_t bytes;                  /* of all elements */
} graphi_port;

/* The i-th input, output or parameter, from 0, in the order in which they were added; those that graphi_minimize added
 * are parameters, too. False past the end and where there is no graph, *out untouched. Any thread, but not while the
 * graph is built. */
GRAPHI_API bool graphi_graph_at(const graphi_graph *graph, graphi_port_kind kind, int i, graphi_port *out);

/* Shape and dtype of a value; dims must hold GRAPHI_MAX_RANK. A bounded dimension reports its bound. INVALID for a
 * value that is not of this graph, or no graph, the results untouched. */
GRAPHI_API graphi_status graphi_value_type(const graphi_graph *graph, graphi_value value, graphi_dtype *dtype,
                                           int *rank, int64_t *dims);

typedef struct graphi_graph_info {
    int64_t nodes, values, inputs, parameters, outputs;
    int64_t parameter_elements;
    int64_t read_elements; /* of them, what an execution must read: of a table that embeddings alone read, their rows */
    double flops; /* of GEMM and convolution by the direct algorithm, whole graph */
    /* As a step is rated, whoever computes it: the forward ones, three times where a gradient passes; a call of a
     * region counts as a whole. */
    double step_flops;
    int64_t intermediate_bytes; /* all results, before passes */
    uint64_t hash;
} graphi_graph_info;

/* Of the graph as it stands. The hash is of operations in their order, names, shapes, attributes and constants, but not
 * of constants that nothing reads; 0 where there is no memory to find it. All zero for NULL. Any thread, but not while
 * the graph is built. */
GRAPHI_API void graphi_graph_get_info(const graphi_graph *graph, graphi_graph_info *info);

typedef enum graphi_print_format { GRAPHI_PRINT_TEXT, GRAPHI_PRINT_DOT } graphi_print_format;

/* The graph as text or Graphviz, the caller's (graphi_free). Errors, *text untouched: INVALID for no graph; MEMORY. */
GRAPHI_API graphi_status graphi_graph_print(const graphi_graph *graph, graphi_print_format format, char **text);

#ifdef __cplusplus
}
#endif
#endif
