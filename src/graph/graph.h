/* SPDX-License-Identifier: Apache-2.0 */
/* The intermediate representation: arrays of values and nodes; ids are indices. A node's inputs precede it, so array
 * order is a topological order. Passes work on a clone (graph_clone), rewire it (graph_remap, graph_kill) and finally
 * compact it (graph_compact), which restores that order. Usual size: 300 (PathNet) to 20,000 nodes (unrolled LSTM with
 * gradients). */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/array.h"
#include "base/index.h"
#include "base/status.h"
#include "graphi/graph.h"

struct op_kind;

struct value_type {
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK]; /* dims[0] is the bound when symbol >= 0 */
    int32_t symbol; /* index of the symbol that dims[0] follows: actual = dims[0] / bound * value; -1: none */
};

enum value_kind { VALUE_INPUT, VALUE_PARAMETER, VALUE_CONSTANT, VALUE_RESULT };

struct value {
    enum value_kind kind;
    struct value_type type;
    int32_t node;           /* producer, -1 unless RESULT */
    int32_t output;         /* which of its outputs */
    int32_t assigns;        /* parameter whose storage this result takes over, -1: none */
    const char *name;       /* inputs and parameters; otherwise NULL */
    const void *data;       /* constants (arena of the graph); parameters with initial data */
    graphi_initializer init;
    bool frozen;            /* parameter that graphi_minimize leaves alone */
    bool multiplied;        /* parameter that graphi_multiply was told of: */
    double rate, decay;     /* what learning rate and weight decay are multiplied by for it */
    bool assigned;          /* parameter whose storage some result takes over */
    bool by_rows;           /* parameter whose update is of the rows that were read */
    int32_t updates;        /* gradient: the parameter, plus one, whose update reads it (graphi_minimize); 0: none */
};

struct node {
    const struct op_kind *kind; /* NULL: killed, until compaction */
    int32_t inputs, outputs;
    int32_t *input;             /* value ids */
    int32_t output;             /* first output's value id; outputs are consecutive */
    int32_t attributes;
    graphi_attribute *attribute; /* with every default filled in, in the order of the kind's schema */
    int32_t afters;
    int32_t *after;             /* nodes that must precede although no data flows */
    int32_t regions;
    graphi_graph **region;      /* owned sub-graphs: bodies, vertex functions */
    const char *scope;          /* "layer2/t7" or "" */
    uint64_t key;  /* of random counters: scope and place at building; passes keep it, inlining mixes the call's */
    int32_t order; /* wished place in the array: compaction keeps it where edges allow (its id when appended) */
    int32_t successor;          /* of a killed node: who took over its `after` edges; -1: nobody */
    int32_t origin;             /* of messages: the node of the user's graph that this one is or stands for, -1: none */
    bool backward;              /* made by differentiation */
    bool differentiated;        /* a gradient passes it */
    bool update;                /* made by graphi_minimize behind the gradients */
    bool derived;               /* follows from constants and parameters that are not updated (pass `derive`) */
};

struct symbol {
    const char *name;
    int64_t bound;
};

struct graph_output {
    const char *name;
    int32_t value;
};

typedef ARRAY(int32_t) id_list; /* of values, ascending */

struct graphi_graph {
    ARRAY(struct value) values;
    ARRAY(struct node) nodes;
    ARRAY(struct symbol) symbols;
    ARRAY(struct graph_output) outputs;
    id_list inputs, parameters;
    /* By name: sources among the first `indexed` values, and outputs. Made when a name is given that must be new; empty
     * in a clone and after compaction. */
    struct index sources, output_names;
    size_t indexed;
    struct arena arena;    /* names, id lists, attributes, constants */
    const char *scope;
    graphi_status status;  /* the first error */
    char message[512];
    bool part;             /* a region of another graph: complete, graph_open refuses it */
    bool vertex_function;  /* a region whose frontier is an input (ops/vertices.h) */
    bool rewritten;        /* by passes: nodes appended now are none of the user's */
    int depth;             /* of regions in regions; 0: it has none */
    bool backward;         /* nodes appended now belong to the backward pass */
    bool updating;         /* nodes appended now belong to an update */
    graphi_graph *retired; /* regions of killed nodes: clones may still borrow their names */
    graphi_graph *next;    /* in such a list */
};

static inline const struct value *graph_value(const graphi_graph *graph, int32_t id) { return &graph->values.data[id]; }
static inline const struct node *graph_node(const graphi_graph *graph, int32_t id) { return &graph->nodes.data[id]; }

int64_t type_count(const struct value_type *type); /* elements, at the bound */
int64_t type_bytes(const struct value_type *type);

/* Largest value: 16 TB. Sums over the half a million values of a large graph then stay within 63 bits. */
#define TYPE_MOST_BYTES ((int64_t)1 << 44)
bool type_equal(const struct value_type *a, const struct value_type *b);
void type_text(const struct value_type *type, char *text, size_t size); /* "float32[64,512]" */

/* Attributes of a node by name; the schema guarantees presence and type (an assert otherwise). */
int64_t attr_int(const struct node *node, const char *name);
double attr_float(const struct node *node, const char *name);
int attr_ints(const struct node *node, const char *name, const int64_t **ints); /* gives the count */

/* "matmul 'layer2/t7' (node 17)" for messages, by the numbers of the graph that it is a clone of. */
void node_text(const graphi_graph *graph, int32_t node, char *text, size_t size);

/* Whether the user may add to the graph: not NULL, not broken, no region of another one (which is recorded). */
bool graph_open(graphi_graph *graph);

/* Records the graph's first error (sticky), gives GRAPHI_NONE. */
graphi_value graph_broken(graphi_graph *graph, graphi_status status);

/* graphi_op for a kind already found, with regions, which the graph owns from now on (destroyed when the call fails).
 */
graphi_value graph_append(graphi_graph *graph, const struct op_kind *kind, int inputs, const graphi_value *input,
                          int attributes, const graphi_attribute *attribute, int regions, graphi_graph *const *region);

/* Adds an edge: node `first` precedes node `then` although no data flows. graph_compact drops doubled ones. */
graphi_status graph_after(graphi_graph *graph, int32_t first, int32_t then);

/* graphi_input of a type that is known: also one whose dimension 0 is a multiple of its symbol. */
graphi_value graph_input(graphi_graph *graph, const char *name, const struct value_type *type);

/* The symbol of `graph` that `symbol` of the called region follows: that of the first input which has it; -1: none. */
int32_t graph_region_symbol(const graphi_graph *graph, const struct node *call, int32_t symbol);

/* The value of `name` among inputs and parameters; -1 when there is none. */
int32_t graph_find_source(const graphi_graph *graph, const char *name);

/* To be called where values or outputs get other numbers. */
void graph_forget_names(graphi_graph *graph);

/* --- for passes (graph/rewrite.c) --- */
/* Ids unchanged. Node arrays are copied; names, attributes and constants are borrowed: `graph` must outlive the clone.
 */
graphi_status graph_clone(const graphi_graph *graph, graphi_graph **out);
/* Replacements in one sweep: every mention of v, by inputs and outputs of the graph, becomes map[v], map[map[v]], ...
 * until map[v] == v. */
void graph_remap(graphi_graph *graph, const int32_t *map);
void graph_kill(graphi_graph *graph, int32_t node);
/* Kills `node`; edges that named it now name `successor`, which takes over its own edges and, if earlier, its place. */
graphi_status graph_supersede(graphi_graph *graph, int32_t node, int32_t successor);
/* Removes killed nodes and constants nobody mentions (inputs, parameters and outputs stay), orders nodes topologically
 * (data and `after` edges; ties by `order`) and renumbers: sources first. INVALID on a cycle and on a mention of a
 * killed node's result. */
graphi_status graph_compact(graphi_graph *graph);
/* The order in which graph_compact would leave the nodes of a compacted graph by their present `order`: ids, one a
 * node. */
graphi_status graph_sorted(graphi_graph *graph, int32_t *sorted);
/* Users of every value as CSR: nodes that read v are list[begin[v] .. begin[v+1]), ascending, one entry an input (x * x
 * lists its node twice); one mem_alloc block each, the caller's. */
graphi_status graph_users(const graphi_graph *graph, int32_t **begin, int32_t **list);
/* The nodes that read a value or a view made from it, one a call (-1: no more), a view's readers behind the view. Views
 * of views may be as many as the graph has nodes: neither recursion nor memory. No node with readers is killed
 * meanwhile. */
struct readers {
    const graphi_graph *graph;
    const int32_t *begin, *list; /* graph_users */
    int32_t of, value, next;     /* whose readers; which view's at hand, and its next one's place in the list */
};
struct readers graph_readers(const graphi_graph *graph, const int32_t *begin, const int32_t *list, int32_t value);
int32_t graph_next_reader(struct readers *readers);
/* Which values are outputs: a mark a value, as mem_alloc block, the caller's. NULL: no memory. */
bool *graph_mark_outputs(const graphi_graph *graph);
/* A constant made by a pass; data is copied. */
int32_t graph_constant(graphi_graph *graph, const struct value_type *type, const void *data);
/* Adds the order that data flow does not show: whoever reads a parameter, also through views of it, precedes the node
 * whose result takes over its storage. Run before passes that move nodes and again at their end; graph_compact then
 * sorts. Without it passes would join a reader of the old content with one of the new. Between tasks the order is found
 * again (engine/compile/tasks.c): there an assignment may be gone, and its producer is who waits. */
graphi_status graph_order_updates(graphi_graph *graph);
/* Replaces every `call` node by its body, nested ones too (graph/inline.c). */
graphi_status graph_inline(graphi_graph *graph);
/* Checks every invariant stated above; INVALID with what is broken. Tests call it after every pass. */
graphi_status graph_check(const graphi_graph *graph);

/* Vector-Jacobian product: gradients of sum over i of <seed[i], of[i]> with respect to n values (graph/gradient.c). */
graphi_status graph_differentiate(graphi_graph *graph, int seeds, const graphi_value *of, const graphi_value *seed,
                                  int n, const graphi_value *wrt, graphi_value *gradient);

uint64_t
graph_hash(const graphi_graph *graph); /* structure, types, attributes, names, constants; the same in every process */
uint64_t graph_hash_attributes(uint64_t hash, const struct node *node); /* those that differ from their defaults */

#endif
