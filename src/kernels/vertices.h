/* SPDX-License-Identifier: Apache-2.0 */
/* Vertex functions over a batch of input graphs as one loop kernel (cavs.txt 3). The body of a function is a list of
 * units: kernels that were bound for blocks of rows, and moves of rows between vertices. The loop goes through the
 * blocks of a frontier (frontier.h), forward or backward, and in each block through the steps of its function; a step
 * is the units that read nothing of each other, or one phase of a kernel of several. One barrier stands between steps.
 *
 * Rows of a block are contiguous in every array: of a function's own arrays by place within the function, of states by
 * slot. So only moves touch rows one by one. What nobody outside reads lies in the workspace, which has the rows of one
 * block. Sums over children and parents have the order of the lists. Bits depend neither on blocks nor on the width.
 *
 * Usual size: 40 blocks of 1 to 512 rows, 5 to 8 steps each, 150 to 1024 columns. */
#ifndef KERNELS_VERTICES_H
#define KERNELS_VERTICES_H

#include "kernels/frontier.h"

/* Where an array lies, and which of its rows a block has. */
enum vertices_place { VERTICES_IN, VERTICES_OUT, VERTICES_WORK, VERTICES_DATA /* constants */, VERTICES_NOWHERE };
enum vertices_rows {
    VERTICES_FIXED, /* all */
    VERTICES_ROWS,  /* by place within the function */
    VERTICES_EDGES, /* the same of edges */
    VERTICES_SLOTS  /* by slot */
};

struct vertices_array {
    int32_t place, rows;
    int32_t index;        /* of an argument */
    int32_t multiple;     /* matrix rows a vertex or edge */
    int64_t offset;       /* bytes: of `column` within a row, in the workspace behind where the array begins */
    int64_t row_bytes;    /* from row to row */
    int64_t column, used; /* bytes: where in a row, and how many */
    int64_t begin, bytes; /* WORK: of the whole array */
    int64_t count;        /* rows of a fixed one */
};

enum vertices_work {
    VERTICES_KERNEL,
    VERTICES_CHILD,   /* array 0: a state, 1: the row of child number `child` of each vertex, or zeros */
    VERTICES_SUM,     /* the sum over children */
    VERTICES_EACH,    /* rows of edges */
    VERTICES_PARENTS, /* backward: array 0: gradients of a state from outside (NOWHERE: none), 1: those and what
                       * parents gathered */
    VERTICES_SPREAD,  /* array 0: rows, 1: of edges */
    VERTICES_COMBINE, /* array 0: of edges, 1: their sums */
    VERTICES_COPY
};

/* Backward: what a function gathered of a state, whose gradient is an output. */
struct vertices_term {
    int32_t function, work, output, unused; /* work: CHILD, SUM or EACH */
    int64_t child, row_bytes;
};

struct vertices_unit {
    int32_t work, function;
    int32_t array, inputs, outputs; /* the first of its arrays, inputs first */
    int32_t kernel;                 /* KERNEL: which */
    int32_t term, terms;            /* PARENTS */
    int32_t edges, unused;          /* its rows are those of edges */
    int64_t child, columns;         /* of moves, which are of float32 */
    int64_t workspace;              /* of a kernel: where, bytes */
};

/* An argument of the whole: whose rows it has. function -1: all. */
struct vertices_argument {
    int32_t rows, function;
    int64_t row_bytes;
    int32_t multiple, present;
};

struct vertices_spec {
    struct frontier_bounds bounds;
    bool backward;
    int inputs, outputs;                      /* input 0: the frontier */
    const struct vertices_argument *argument; /* inputs, then outputs */
    int units, arrays, terms, kernels;
    const struct vertices_unit *unit; /* in order, of one function after the other */
    const struct vertices_array *array;
    const struct vertices_term *term;
    struct kernel *kernel; /* theirs stay the caller's */
    const void *data;      /* of constants; offsets count from here */
    size_t data_bytes, workspace;
    double flops, bytes;
    int shares; /* most members of a team that have work */
};

/* Most inputs and outputs of a unit. */
enum { VERTICES_UNIT_ARRAYS = 64 };

/* INVALID at run: fewer rows of an argument than the frontier has for it. */
graphi_status vertices_bind(const struct vertices_spec *spec, struct kernel *kernel);

/* Rows outside of the loop, whole arrays of a function; inputs: the frontier, then x. TAKE: rows of vertices in the
 * order of slots; PUT: back, zeros for vertices of other functions; SPREAD, COMBINE: as above. Rows beyond those that
 * there are become zeros. */
enum vertices_move { VERTICES_MOVE_TAKE, VERTICES_MOVE_PUT, VERTICES_MOVE_SPREAD, VERTICES_MOVE_COMBINE };
struct vertices_move_spec {
    struct frontier_bounds bounds;
    int64_t move, function, columns; /* columns of 4 bytes */
    int64_t rows;                    /* of the result, at the bound */
};
graphi_status vertices_move_bind(const struct vertices_move_spec *spec, struct kernel *kernel);

#endif
