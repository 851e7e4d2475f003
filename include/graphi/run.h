/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: one execution context of a plan over a state: arena, counters, scheduler, trace. Private to one thread at a
 * time. */
#ifndef GRAPHI_RUN_H
#define GRAPHI_RUN_H

#include "graphi/plan.h"
#include "graphi/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_run graphi_run;

/* Allocates the arena; workers are leased by each execution. Plan and state must outlive the run, *out is the caller's
 * (graphi_run_destroy). Errors, *out untouched: INVALID, a parameter of the plan that the state lacks or has with
 * another shape or dtype, naming it; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_run_create(const graphi_plan *plan, graphi_state *state, graphi_run **out);

/* The inputs that it was fed stay with the state, in place of those of an earlier run, for graphi_plan_tune. NULL is
 * accepted. */
GRAPHI_API void graphi_run_destroy(graphi_run *run);

/* A further run, for another plan over the same compiled operations (graphi_plan_with, graphi_plan_tune), in the memory
 * of `run`: what is fed to one is fed to both, and results are those of whichever executed last, given by any that has
 * executed. The index of the first sample is each run's own. So settings are compared on the same pages, and many of
 * them fit. One thread at a time for all of them; `run` goes last. Errors, *out untouched: INVALID, a plan of other
 * compiled operations; as graphi_run_create. */
GRAPHI_API graphi_status graphi_run_beside(graphi_run *run, const graphi_plan *plan, graphi_run **out);

/* Copies an input's content in. `dtype` is that of `data`, and `bytes` the exact size at the current symbol values.
 * INVALID naming the input: there is none of that name, or another type or size, found and expected. */
GRAPHI_API graphi_status graphi_run_set(graphi_run *run, const char *input, graphi_dtype dtype, const void *data,
                                        size_t bytes);

/* Memory of the caller in place of the run's own, by port (graphi_plan_port): executions read an input there and write
 * an output there, without copies. Outputs that are views, parts of another value, a parameter, or a second name of one
 * are copied there when an execution ends. The content of an input may be changed between executions; the memory stays
 * the caller's, and has to stay until another one is bound, graphi_run_set feeds the input, or the run is destroyed.
 * `bytes` is its size: enough at the current symbol values; an output of bounded size is written in place where it has
 * room for the bound, and is copied otherwise. NULL and 0 bytes: the run's own memory again, an input unfed. What is
 * bound holds for graphi_run_beside, too, and is not kept for graphi_plan_tune. An output's content is unspecified
 * after an execution that failed. No allocation. INVALID naming the port: no such port, another type, too few bytes,
 * memory that is not aligned to GRAPHI_ALIGNMENT, or that overlaps what is bound to an output (for an output: to any
 * port). */
enum { GRAPHI_ALIGNMENT = 64 };
GRAPHI_API graphi_status graphi_run_bind(graphi_run *run, int port, graphi_dtype dtype, void *memory, size_t bytes);

/* Sets a bounded size, 1 .. bound; allocates nothing. Before graphi_run_set of the inputs it affects: where it is
 * larger than what they were last set to, execution refuses them; where it is smaller, their first rows count. INVALID
 * naming the symbol: there is none of that name, or another size. */
GRAPHI_API graphi_status graphi_run_set_symbol(graphi_run *run, const char *symbol, int64_t value);

/* Global index of the first sample of the next batch, 0 at first, kept until it is set again: random numbers are keyed
 * by it. A sample is what one of a symbol has of dimension 0, several rows where samples were laid below each other;
 * where dimension 0 is fixed, one row. */
GRAPHI_API void graphi_run_set_first_sample(graphi_run *run, uint64_t index);

/* One iteration. All inputs must have been set once. The calling thread works too, on at least 256 KB of its stack, and
 * in one floating-point mode (to nearest, nothing trapped, subnormal operands and results taken for 0: processors take
 * up to a hundred times as long for them), as gradients, updates, built-in networks, plans and states are made: no
 * result depends on the caller's, which is as before afterwards. What is copied, not computed, stays as it is.
 * No core works for two executions of the process: one waits for its turn until as many cores are free as its setting
 * has threads (docs/machine.md). An execution of one thread in array order (`sequential`, 1 x 1) does not. A thread
 * that has entered a lease (graphi/lease.h) executes on that one.
 * A thread that is cancelled (pthread_cancel) while it waits or executes on leased cores is so after that.
 * Errors, before anything ran: INVALID, an input that was never set, or not since its size grew, naming it, or cores
 * that are not free where the calling thread has a part in another execution, which would wait for itself;
 * UNSUPPORTED, where a thread cannot be had, or not be pinned and the setting says `pin` on; MEMORY. Errors after
 * which parameters with updates are unspecified, and there are neither results nor, if it was traced, a trace until an
 * execution succeeds: what a kernel reported, with its node (INVALID, a label out of range); NONFINITE (check_numerics)
 * naming the first operation in array order. */
GRAPHI_API graphi_status graphi_run_execute(graphi_run *run);

/* Copies an output of the last execution out, whatever was set since. `dtype` is what `data` has room for, and `bytes`
 * the exact size at the symbol values of that execution. An output that is a parameter which the plan does not update
 * is read from the state: as it is now; what is made of one, a copy or a slice, is of the execution. INVALID naming the
 * output, also for another type, and after an execution that failed midway. */
GRAPHI_API graphi_status graphi_run_get(const graphi_run *run, const char *output, graphi_dtype dtype, void *data,
                                        size_t bytes);

typedef struct graphi_run_info {
    double last_ms;   /* wall time of the last execution, call to return, waited_ms and packing in it */
    double waited_ms; /* of that until cores were free that other executions held; 0: free at once */
    uint64_t executions;
    uint64_t allocations; /* heap allocations of the process during the last execution, other threads' in them; an
                             execution makes none but the first of a run, and where it needs one more thread */
    /* Weights that the last execution packed and results of parameters that it computed; those that it found. */
    uint64_t packs, packs_skipped;
    int executors, width;
    bool pinned;
    char note[320]; /* what the user should know about the lease; "" otherwise */
} graphi_run_info;

/* A copy. Before the first execution, and of what none has told: the setting's executors and width, not pinned, numbers
 * 0. */
GRAPHI_API void graphi_run_get_info(const graphi_run *run, graphi_run_info *info);

/* What the policy has learned from this run's executions but the last: how much longer kinds of operations took beside
 * each other, and which are kept apart for it. Text for people, the caller's (graphi_free). Error: MEMORY. */
GRAPHI_API graphi_status graphi_run_explain(const graphi_run *run, char **text);

/* Tracing: on keeps per-operation records of the following executions, the last one in full, durations averaged over
 * all since it was turned on (again: from the start). MEMORY. Costs some readings of the clock an operation, and two a
 * member of a team, a barrier and a piece of which an idle executor takes part. */
GRAPHI_API graphi_status graphi_run_trace(graphi_run *run, bool on);

/* Of the last traced execution. The four fractions of executors' threads x span make 1: busy inside operations; idle
 * while operations were ready but not started (scheduling), no more threads than those would run on; idle beyond that
 * (waiting: the graph has nothing to give, the end of the step); inside operations, waiting for other members of the
 * team, or for who joined (team: to begin, in barriers, for the last to end). */
typedef struct graphi_trace_summary {
    double span_ms, busy_fraction;
    double scheduling_fraction, waiting_fraction, team_fraction;
    double critical_path_ms, lower_bound_ms;
    int64_t operations;
} graphi_trace_summary;

/* Errors, *summary untouched: INVALID where none was traced; MEMORY. */
GRAPHI_API graphi_status graphi_run_trace_summary(const graphi_run *run, graphi_trace_summary *summary);

typedef struct graphi_trace_operation {
    const char *name, *kind; /* as in the graph ("": no scope); live as long as graph and plan */
    int leader, width;       /* of the last execution, with start, duration and team_wait (members together) */
    double start_ms, duration_ms, team_wait_ms;
    uint64_t executions;          /* traced */
    double mean_ms, deviation_ms; /* of the duration over them; standard deviation of a sample, 0 of a single one */
} graphi_trace_operation;

/* index: 0 to the summary's operations - 1, a topological order. Errors: INVALID (no such, nothing was traced). */
GRAPHI_API graphi_status graphi_run_trace_operation(const graphi_run *run, int64_t index,
                                                    graphi_trace_operation *operation);

/* Writes PREFIX.json (Chrome trace events) and PREFIX.html (self-contained page) of the last traced execution, each
 * atomically. Errors: INVALID where none was traced, or for a prefix that is NULL or of more than 4,096 characters;
 * IO; MEMORY. */
GRAPHI_API graphi_status graphi_run_write_timeline(const graphi_run *run, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
