/* SPDX-License-Identifier: Apache-2.0 */
/* How a block runs at some shapes: stages one after the other, each of one plan and then of nodes on the host. Where
 * the nodes on the host give other shapes (or contents from which shapes follow) than they gave when the path was
 * made, it ends there, and another path goes on, which shares the stages up to that place.
 *
 * A path is made while it is run for the first time: its plan computes what the nodes on the host read, and their
 * results tell the shapes that the next plan is made for. A path that is made is immutable. */
#ifndef FLOW_PATH_H
#define FLOW_PATH_H

#include "flow/form.h"
#include "flow/reach.h"
#include "flow/stage.h"

struct step {
    struct stage *stage;
    struct form *forms; /* by which the next stage was chosen */
    size_t form_count;
};

/* A node of the block while a path is made. Those of a branch stand where its If stood. */
struct entry {
    struct host_step step;
    int stage, born; /* that settled it (-1: none yet), and that brought it in */
    bool barred;     /* not to be lowered again */
    bool refused;    /* it has no lowering at these shapes */
    bool planned, folded;
    char *reason; /* why it was refused, where a report is made; NULL */
};

struct path {
    ARRAY(struct step) steps;
    ARRAY(struct entry) entries;
    struct flow_value *values; /* of all numbers of the model, as lowered; NULL: the path has one stage */
};

/* What paths of a model share. */
struct path_maker {
    const struct onnx_model *model;
    const struct reach *reach;
    struct weights *weights;
    const graphi_machine *machine;
    bool traced;
    graph_run_fn *graph_run; /* of bodies */
    const struct path *like; /* of the same graph at other sizes; NULL */
};

/* What becomes of the nodes, for people. */
struct path_report {
    int64_t planned, folded, host, open, plans; /* open: not told before a run */
    double flops;
    int64_t arena_bytes, packed_bytes;
    int executors, width; /* of the plan with the most FLOPs */
    double most;          /* its FLOPs */
    ARRAY(char) hosts;    /* a line each: node and reason */
};

/* Makes a path for the values of `run`, running it. `reads` are the forms of the values from outside. from NULL: from
 * the start; else it goes on behind step `at` of that path, which has just run. `keep`: others may branch off it. *out
 * NULL: it has more stages than are kept, and the rest ran on the host. Errors: of host operators and of plans. */
graphi_status path_make(const struct path_maker *maker, const struct model_graph *graph, const struct form *reads,
                        size_t read_count, struct interpreter *run, const struct path *from, size_t at, bool keep,
                        struct path **out);
/* Without running, at the shapes of `reads`. MEMORY. */
graphi_status path_inspect(const struct path_maker *maker, const struct model_graph *graph, const struct form *reads,
                           size_t read_count, struct path_report *out);
void path_free(const struct onnx_model *model, struct path *path); /* NULL is accepted */

#endif
