/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that run ONNX files. Any number of threads may run one at once. Operators that can be part of a plan are
 * compiled in the first run at sizes of inputs that are new; plans of the last eight are kept. All others run one by
 * one on the host, between plans. Both round differently (docs/onnx.md). */
#ifndef GRAPHI_SESSION_H
#define GRAPHI_SESSION_H

#include "graphi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model made ready to run. */
typedef struct graphi_session graphi_session;

typedef struct graphi_session_options {
    int64_t loop_limit; /* trips of one Loop before it fails; 0: 100 million */
    int threads;        /* of plans; 0: all cores */
    bool host;          /* everything runs operator by operator, nothing in plans */
    bool traced;        /* runs keep records of their operations, for graphi_session_write_timeline */
} graphi_session_options;

/* Opens an ONNX model of IR 3 to 14, opsets 6 to 28: from a file, or from bytes, which may be freed afterwards; `path`
 * is then NULL or where external data would lie beside. options may be NULL. On success *out is the caller's
 * (graphi_session_close). Errors, *out untouched: IO; INVALID (what is no model, with the place); UNSUPPORTED, naming
 * every node, domain and version that there is no operator for; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_session_open(const char *path, const void *bytes, size_t size,
                                             const graphi_session_options *options, graphi_session **out);
GRAPHI_API void graphi_session_close(graphi_session *session); /* NULL is accepted; nobody may be running it */

typedef enum graphi_session_port_kind { GRAPHI_SESSION_INPUT, GRAPHI_SESSION_OUTPUT } graphi_session_port_kind;

typedef struct graphi_session_port {
    const char *name;
    graphi_tensor_kind kind;
    graphi_element element;
    int rank;                                /* -1: the model does not say */
    int64_t dims[GRAPHI_TENSOR_RANK];        /* -1: not known before a run */
    const char *symbols[GRAPHI_TENSOR_RANK]; /* name of a dimension that is not known, or NULL */
    bool optional;                           /* its type: it may hold nothing */
    bool has_default;                        /* an input that may be left out */
} graphi_session_port;

/* Input or output `i` in the model's order; false: there is none. Texts live as long as the session. */
GRAPHI_API bool graphi_session_port_at(const graphi_session *session, graphi_session_port_kind kind, size_t i,
                                       graphi_session_port *out);

/* What the model has inside, by operator. */
typedef struct graphi_session_operator {
    const char *domain, *name; /* domain "": ONNX's own */
    int64_t nodes;             /* in all graphs, bodies of If, Loop and Scan among them */
    bool supported;
    bool planned; /* an operator that plans have, for float32 and constant shapes */
} graphi_session_operator;
GRAPHI_API bool graphi_session_operator_at(const graphi_session *session, size_t i, graphi_session_operator *out);

typedef struct graphi_session_info {
    int64_t ir_version, opset;    /* of the default domain */
    const char *producer, *graph; /* names, "" where there are none */
    int64_t nodes, parameters, parameter_elements, parameter_bytes;
    int64_t unsupported; /* nodes; graphi_session_inspect alone opens models that have any */
} graphi_session_info;
GRAPHI_API void graphi_session_get_info(const graphi_session *session, graphi_session_info *out);

/* How the model runs at sizes of its inputs. */
typedef struct graphi_session_plan {
    int64_t planned, folded; /* nodes in plans, and those whose results are constants */
    int64_t host, open;      /* nodes on the host, and those of which a run decides, since sizes follow from contents */
    int64_t plans;
    double flops; /* of all plans */
    int64_t arena_bytes, packed_bytes;
    int executors, width; /* of the plan with the most FLOPs; 0: there is no plan */
} graphi_session_plan;
/* Compiles the model without running it. Inputs are given as to graphi_session_run; those that are not have the
 * declared sizes, 1 where none is. *hosts has a line for every node on the host, with the reason, and is the caller's
 * (graphi_free); hosts may be NULL. Errors, results untouched: INVALID, names and values as graphi_session_run;
 * MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_session_inspect_plan(const graphi_session *session, const char *const *names,
                                                     const graphi_tensor *const *values, size_t count,
                                                     graphi_session_plan *out, char **hosts);

/* Timelines of what ran last in plans, of a session that is `traced`: PREFIX.json (Chrome trace events) and PREFIX.html
 * of the first plan, PREFIX-2.json and so on of others. While nobody runs it. Errors: INVALID, it is not traced, or no
 * plan ran; IO; MEMORY. */
GRAPHI_API graphi_status graphi_session_write_timeline(const graphi_session *session, const char *prefix);

/* As graphi_session_open of a file, for looking alone: operators that are not supported are no error; running is. */
GRAPHI_API graphi_status graphi_session_inspect(const char *path, graphi_session **out);

/* Runs the model. `names[i]` is the input that `values[i]` is for; inputs with defaults may be left out. `outputs`
 * names the `output_count` results wanted, NULL: all of the model's, in its order, of which there are output_count.
 * On success results[i] is the caller's (graphi_tensor_destroy). Errors, results untouched: INVALID (an unknown,
 * missing or repeated name, another type, rank or size than the model declares, with both; what an operator refuses,
 * with its node), UNSUPPORTED, MEMORY. Any number of threads. */
GRAPHI_API graphi_status graphi_session_run(const graphi_session *session, const char *const *names,
                                            const graphi_tensor *const *values, size_t count,
                                            const char *const *outputs, size_t output_count, graphi_tensor **results);

#ifdef __cplusplus
}
#endif
#endif
