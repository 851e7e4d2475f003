/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a run: one block of memory, argument pointers resolved once, and what an execution leaves behind. Everything
 * is allocated when the run is created (records: when tracing starts); an execution allocates nothing. */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "engine/compile/plan.h"
#include "engine/run/bindings.h"
#include "engine/run/state.h"
#include "graphi/run.h"
#include "machine/workers.h"

struct average {
    double mean_ns, squares; /* squares: sum of squared differences from the mean */
};

struct graphi_run {
    const graphi_plan *plan;
    graphi_state *state;
    graphi_run *host;              /* whose memory this is, down to `bound`; NULL: its own */
    unsigned char *block;          /* arena, then inputs */
    unsigned char *scratch;        /* workspace for forms */
    struct parameter **parameter;  /* as compiled.parameters */
    struct packed_form **form;     /* as compiled.prepared; NULL: of constants */
    bool *remake;                  /* the same: to be made before the execution under way */
    bool *held;                    /* as compiled.parameters: meanwhile */
    struct kernel_array *array;    /* as compiled.arguments */
    int64_t *symbol;               /* actual sizes */
    int64_t *executed_symbol;      /* those of the last execution, which results have */
    size_t *fed;                   /* bytes, as compiled.inputs; 0: never */
    struct bindings bound;         /* memory of the caller in place of its own */
    int outputs_bound;             /* how many (of the run that owns the memory) */
    bool checked;                  /* of the same: what was fed and bound is enough for the sizes set */
    uint64_t prepared_epoch;       /* of the state, when no packed form was stale; 0: never */
    bool holds;                    /* the parameters that tasks read as they are */
    struct run_messages *messages; /* messages.h; NULL: the plan has no events */
    struct schedule *schedule;     /* NULL: one thread in array order, no lease */
    struct lease_state *lease_room; /* memory of its leases, one at a time */
    uint64_t seed, step, first_sample; /* of the execution under way */

    /* The first failure of an execution; whoever changes `failed` from 0 to 1 writes the rest, the caller reads it
     * after the schedule has drained (its own synchronization orders that). */
    atomic_int failed;
    graphi_status status;
    char message[512];
    atomic_int nonfinite;          /* lowest task with a non-finite result, INT_MAX: none */

    bool tracing;
    struct task_record *records;   /* of the last traced execution */
    struct average *average;       /* of durations, over the traced executions */
    uint64_t traced;               /* how many */

    graphi_run_info info;
    bool executed;
    bool spoilt;                   /* of the memory that it owns: the last execution there failed midway */
    bool quiet;                    /* of made-up inputs (tuning): leaves none in the state, tells of no NaN */
};

/* One worker in array order needs no scheduler, and takes no lease: that costs several microseconds, which executions
 * of microseconds would pay for. Where it must pin it takes one. */
bool run_is_serial(const graphi_decision *setting);

/* The run executes another plan over the same compiled graph from now on; `schedule` (may be NULL) stays the caller's.
 */
void run_adopt(graphi_run *run, const graphi_plan *plan, struct schedule *schedule);

/* Address of a value's place; for inputs, outputs, tests. */
void *run_address(const graphi_run *run, int32_t buffer, int64_t offset);

/* What a symbol's size is kept as, beside what was fed (state_keep_fed). */
enum { RUN_SYMBOL_NAME = 160 };
void run_symbol_name(char text[RUN_SYMBOL_NAME], const char *symbol);

/* Whose memory the run has. */
static inline graphi_run *run_host(graphi_run *run) { return run->host ? run->host : run; }

#endif
