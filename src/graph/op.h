/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of an operation: what a file of ops/ fills in. The graph layer, the passes and the engine know
 * operations only through this table. Adding an operation is one file (or one row in a family's file) and one line in
 * ops/table.c. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

struct kernel;      /* kernels/kernel.h */
struct array_desc;

enum op_flags {
    OP_ELEMENTWISE = 1, /* `program_op` tells the arithmetic; fusion may take it into a program */
    OP_INPLACE = 2, /* an output may have the bytes of any input of the same size (each element read before written) */
    OP_VIEW = 4,    /* `view` may give the output as a view of input 0 */
    OP_PARTS = 8,   /* `part` may place the inputs inside the output (concat) */
    OP_STRIDED_IN = 16, /* the kernel takes row-strided inputs (array_as_matrix) */
    OP_STRIDED_OUT = 32,
    OP_RANDOM = 64,    /* depends on seed and step: never folded or merged */
    OP_EFFECT = 128,   /* kept although nobody reads it (assign, delay) */
    OP_GEMM = 256,     /* counts towards the limit: matrix product or convolution */
    OP_PACK = 512,     /* another form of one value: skipped when its source has not changed */
    OP_BOUNDED = 1024, /* accepts a bounded dimension 0 */
    OP_ADDS = 2048,    /* the result is the sum of all inputs */
    OP_HOST = 4096,    /* takes an epilogue (ops/epilogue.h) */
    OP_UPDATES = 8192, /* the result is input 0 but for what is replaced, and may be made in the bytes of a parameter */
};

/* By what graph, passes and engine know an operation where flags say too little. Element-wise ones: node_computes. */
enum op_role {
    IS_OTHER,
    IS_ASSIGN,
    IS_CALL,
    IS_PRODUCT, /* ops/matmul.h */
    IS_CONV,
    IS_CONV_BACKWARD_DATA,
    IS_CONV_BACKWARD_WEIGHTS,
    IS_SUM_TO,
    IS_EXPAND,
    IS_RESHAPE,
    IS_TRANSPOSE,
    IS_CONCAT,
    IS_SLICE,
    IS_PAD,
    IS_LOOKUP, /* of rows of a table, as many elements as it gives */
    IS_LOOKUP_GRADIENT,
    IS_MAX_POOL,
    IS_MAX_POOL_GRADIENT,
    IS_AVG_POOL,
    IS_GIVEN_NORM, /* batch normalization by given statistics */
    IS_RECURRENCE, /* ops/recurrence.h */
    IS_RECURRENCE_GRADIENT,
    IS_FRONTIER, /* ops/vertices.h */
    IS_VERTEX_TAKE,
    IS_VERTEX_PUT,
    IS_VERTEX_SPREAD,
    IS_VERTEX_COMBINE,
    IS_VERTICES, /* with vertices_gradient */
    IS_WAIT_EVENT,
    IS_SIGNAL_EVENT,
};

enum { OP_MOST_EVENTS = 65536 }; /* numbers of events in a graph */

/* An attribute "symbol" is the index of a symbol of its graph, or -1: inlining translates it. */
struct op_attribute {
    const char *name; /* NULL ends the schema */
    const char *meaning; /* for docs/operations.md; of a list also what its default, an empty one, means */
    graphi_attribute_type type;
    bool required;
    bool internal;    /* set by passes alone: builders leave it out */
    int64_t i;        /* defaults */
    double f;
};

/* The shape rule's view of a node about to be made. `out` is zeroed with symbol = -1. */
struct shape_call {
    const char *where; /* for fail() */
    const graphi_graph *graph; /* whose symbols types name */
    const struct node *node; /* kind, inputs, attributes, regions */
    const struct value_type *const *in;
    struct value_type *out;
};

struct gradient_call {
    graphi_graph *graph;
    int32_t node;
    const struct node *op;         /* a copy: valid while nodes are appended */
    const graphi_value *in, *out;  /* forward values */
    const graphi_value *grad_out;  /* GRAPHI_NONE where none flows */
    const bool *needed;            /* inputs whose gradient is wanted */
    graphi_value *grad_in;         /* to fill; starts as GRAPHI_NONE */
};

struct bind_call {
    const char *where;
    const struct node *node;
    const struct array_desc *in, *out;
    int isa;                   /* enum isa */
    graphi_dtype multiplicands; /* F32 or BF16 for GEMM and convolution */
    double conv_error;         /* 0: the default */
    uint64_t key; /* of the node, for random counters: stable over passes (hash of its scope and ordinal) */
    int64_t sample_rows; /* of output 0 that one sample has: dimension 0 over the symbol it follows; 1 if it is fixed */
    graphi_streaming streaming; /* of which results: types.h */
    int threads; /* most that a call will have; 0: not known. For sizes of workspaces */
    int cores;   /* of the machine; 0: not known. For how work is cut, where no bit follows from that */
    uint64_t absent;            /* bit i: nobody reads output i, which has no bytes: the kernel leaves it alone */
};

struct op_kind {
    const char *name; /* NULL ends a family's array */
    const char *summary; /* one line for docs/operations.md */
    const char *shapes;  /* of inputs to outputs, for the same; NULL: inputs broadcast to the result by numpy's rule */
    int min_inputs, max_inputs; /* max -1: any number */
    int outputs;                /* -1: attribute "outputs" tells */
    uint64_t optional; /* bit i: output i has no bytes and is not written where nobody reads it */
    const struct op_attribute *attributes;
    unsigned flags;
    enum op_role role;
    int program_op; /* with OP_ELEMENTWISE: enum program_op */
    const char *scalability; /* how it scales until measured: "gemm", "conv", "element-wise", "memory" ("" : serial) */

    /* Fills types of all outputs or fails with what was found and expected. */
    graphi_status (*shape)(const struct shape_call *call);
    /* NULL: not differentiable (gradients stop with an error naming the node). Builds with graphi_op. */
    void (*gradient)(struct gradient_call *call);
    /* FLOPs of the direct algorithm; NULL: one per output element. */
    double (*flops)(const struct shape_call *call);
    /* The kernel for these layouts. UNSUPPORTED when a layout is not taken. */
    graphi_status (*bind)(const struct bind_call *call, struct kernel *kernel);
    /* OP_VIEW: the output as a view of input 0 laid out as *in: fills *out's strides and the offset in elements; false:
     * must be copied by the kernel. */
    bool (*view)(const struct bind_call *call, struct array_desc *out, int64_t *offset);
    /* OP_PARTS: how input i lies inside output 0 laid out as call->out[0], from *end on, which moves to where the next
     * one begins. Asked of all inputs in order, *end 0 at first. */
    bool (*part)(const struct bind_call *call, int input, struct array_desc *part, int64_t *end);
};

static inline bool node_is(const struct node *node, enum op_role role)
{
    return node->kind && node->kind->role == role;
}

static inline bool node_has(const struct node *node, unsigned flag) { return node->kind && node->kind->flags & flag; }

/* Is it this element-wise operation, an enum program_op? */
static inline bool node_computes(const struct node *node, int program_op)
{
    return node_has(node, OP_ELEMENTWISE) && node->kind->program_op == program_op;
}

/* Defined in ops/table.c, the one list of all operations. */
const struct op_kind *op_find(const char *name); /* NULL when unknown */
const struct op_kind *op_at(int index);          /* in table order; NULL past the end */

/* Do the attributes of b begin as all those of a? Of nodes of one kind: are they equal? */
bool attributes_equal(const struct node *a, const struct node *b);

/* Does an attribute of a node have the value that its schema gives when it is left out? */
bool attribute_is_default(const graphi_attribute *attribute, const struct op_attribute *schema);

/* FLOPs of a node by its kind's rule. */
double node_flops(const graphi_graph *graph, int32_t node);

#endif
