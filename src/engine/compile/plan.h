/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a plan. The expensive part, the compiled graph (kernels, places, memory, tasks), is shared by every plan made
 * from it under other settings or with measured durations (`struct compiled`, counted references); a plan adds the
 * setting, the cost curves and the levels. Everything here is offsets, never pointers into a run or a state. */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include "base/index.h"
#include "base/text.h"
#include "graph/graph.h"
#include "kernels/kernel.h"
#include "schedule/decided.h"
#include "schedule/edges.h"
#include "schedule/schedule.h"

#include <stdatomic.h>
#include <stddef.h>

enum buffer_kind {
    BUFFER_ARENA,     /* results; bytes are shared over time */
    BUFFER_INPUT,     /* what the run is fed; kept from one execution to the next */
    BUFFER_PARAMETER, /* in the state */
    BUFFER_CONSTANT,  /* in the graph */
    BUFFER_PREPARED,  /* packed form of a parameter (in the state) or of a constant (in the plan) */
};

struct buffer {
    enum buffer_kind kind;
    int64_t bytes;
    int64_t offset;  /* ARENA, INPUT: in the run's block; PREPARED: in the form, of constants in compiled.constants */
    int32_t source;  /* PARAMETER: index into parameters; CONSTANT: value id; PREPARED: index into prepared */
    bool kept;       /* holds an output of the graph */
};

/* Where a value lies. */
struct place {
    int32_t buffer;  /* -1: nowhere (its node vanished) */
    int64_t offset;  /* bytes from the buffer's start */
    struct array_desc desc;
};

/* One argument of a kernel. */
struct argument {
    int32_t value, buffer;
    int64_t offset;
    int64_t rows;    /* of dimension 0, at the bound */
    int32_t symbol;  /* rows follow it: rows / bound * value; -1: fixed */
};

/* A node with its kernel. Short tasks are bound by cache misses: what running one needs lies on one line. */
struct bound {
    _Alignas(64) int64_t workspace; /* offset in the arena; -1: none */
    int32_t argument, inputs;       /* argument[.. inputs + outputs], inputs first */
    struct kernel kernel;
    int32_t outputs, node;
};
_Static_assert(offsetof(struct bound, kernel.name) <= 64 && sizeof(struct bound) == 128, "one line to run a task");
_Static_assert((int)KERNEL_MAX_PHASES <= (int)TASK_MOST_PHASES, "a schedule has room for the phases of every kernel");

/* What follows from parameters that no task updates, or from constants, made outside of the tasks: once a version of
 * the parameters, or once. A packed weight, or the results of an operation on such. */
struct prepared {
    struct bound bound;
    int32_t source, sources; /* in compiled.sources: the parameters that it follows from; none: of constants */
    uint64_t key;            /* in the state */
    int64_t bytes;           /* of all its results, each on a cache line */
    bool passing;            /* only other forms are made of it: its memory goes when they are there */
};

struct plan_parameter {
    const char *name;
    int32_t value;
    bool assigned;     /* gets new content in every execution */
    bool direct;       /* tasks read or write it, or it is an output: forms of it do not do */
    int32_t last_form; /* of the prepared ones that follow from it; -1: none does */
};

struct plan_port {     /* an input or output by name */
    const char *name;
    int32_t value;
    bool used;         /* by some node; others need not be fed */
};

struct plan_message { /* of a task: graphi_wait_event, graphi_signal_event */
    int32_t task;
    int number;
    bool sends;
};

struct compiled {
    atomic_int references;
    graphi_graph *graph;          /* after passes; borrows names and constants of the user's graph */
    const graphi_machine *machine;
    const graphi_graph *source;   /* the user's */
    graphi_plan_options options;  /* as asked for; the setting is that of the first plan */
    char *string[4];              /* owned: those of the options */
    const char *sequences;        /* as asked for, or as the forms have it */
    uint32_t rounding;            /* forms that tuning took (rounding.h) */
    double conv_error;            /* as asked for, or as these forms have it */
    enum isa isa;
    char timed_on[128];           /* described machine: the CPU whose measured times were scaled; "": not known */

    ARRAY(struct buffer) buffers;
    struct place *place;          /* one per value */
    ARRAY(struct argument) arguments;
    ARRAY(struct prepared) prepared; /* each behind those that it is made of */
    ARRAY(int32_t) sources;          /* lists of parameters */
    ARRAY(struct plan_parameter) parameters;
    ARRAY(struct plan_port) inputs;
    ARRAY(struct plan_port) outputs;
    struct index input_names, output_names;

    int32_t tasks;
    struct bound *task;           /* in execution order: a topological order */
    unsigned char *params;        /* of all tasks' kernels; NULL: each has its own still */
    int32_t *edges_begin, *edges, *pending;
    uint8_t *flags, *scalability, *shares;
    int32_t *kind, *curve_of, *largest_input_from;
    int32_t kinds, curves;
    uint64_t *class_key;          /* one a curve; class_key_at */
    int32_t *class_task, *class_tasks; /* one a curve: the first task that it is of, and how many there are */

    unsigned char *constants;     /* prepared forms of constants */
    int64_t constant_bytes;
    int64_t input_bytes;          /* BUFFER_INPUT block */
    int64_t arena_bytes, live_maximum_bytes, sum_intermediate_bytes, packed_bytes, workspace_bytes, unordered_bytes;
    int64_t ordering_edges;
    ARRAY(struct plan_message) messages; /* by task */
    int32_t *message_of;          /* one a task: its message, -1: none; NULL: no task has one */
    int32_t *waits, *wait_of, *wait_message; /* tasks that wait; of a task, which of those it is, -1; the message */
    int waits_count;
    bool updates;                 /* some parameter is assigned */
    int64_t packs;                /* packing tasks: forms of parameters that every execution changes */
    double flops, bytes, compile_ms;
    uint64_t graph_hash, hash;
    uint64_t form; /* of the tasks' kernels, shapes and places: equal where two ways of compiling differ in nothing */
};

/* A setting that tuning weighed. */
struct tried {
    graphi_decision setting;
    double predicted_ns;
    double *ms; /* owned: `rounds` of them, of its executions in the race */
    int rounds;
    bool chosen;
};

struct graphi_plan {
    struct compiled *compiled;
    const graphi_machine *machine; /* compiled.machine, or the one that is simulated */
    graphi_decision setting;      /* as it was chosen, for people and for plans made of this one */
    struct decided decided;       /* what executions read of it */
    struct cost_curve *curves;    /* compiled.curves */
    struct cost_curve *observed;  /* as many: those that a model's took the place of; NULL: none were */
    int64_t *level;               /* one per task */
    struct allotment *allotment;  /* malleable: NULL where the search found nothing shorter */
    struct tasks tasks;           /* points into compiled and here */
    bool measured;
    double critical_path_ns, work_ns, lower_bound_ns, predicted_ns, measured_ns;
    double widths_bound_ns;       /* malleable: of schedules with one width a task (allot.c); 0: not known */
    int64_t searched;             /* tasks simulated to find them */
    int graph_width;
    double others;                /* share of the cores that other processes had while it was tuned */
    int disturbed;                /* how often in a row they had one, from plan to plan that was tuned again */
    struct text why;              /* what was chosen and why; settings tried */
    ARRAY(struct tried) tried;    /* the same settings, by predicted time; none where nothing was tuned */
};

#endif
