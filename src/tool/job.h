/* SPDX-License-Identifier: Apache-2.0 */
/* What most commands start with: the machine, the network's graph, its plan (stored, tuned or static), state and run.
 */
#ifndef TOOL_JOB_H
#define TOOL_JOB_H

#include "tool/options.h"
#include "tool/result.h"

struct job {
    const struct options *options;
    const char *name;           /* of the network */
    graphi_model_options model;
    graphi_model_info info;
    graphi_machine *machine;
    graphi_machine *here;       /* the machine at hand, where another one is described and something was timed */
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    bool described;             /* the machine is --machine's: there are neither state nor run */
    bool borrows;               /* machine and state are another's (job_beside) */
    bool plan_loaded, plan_stored; /* the plan came from a file; tuning's was written to plan_path */
    bool curves_stored;         /* tuning's were written to the file that --curves names */
    char plan_path[4096];       /* where the plan is kept; "" nowhere */
    char not_kept[512];         /* why tuning's was not written there; "" otherwise */
    char not_used[512];         /* why the one that lies there was not taken; "": it was, or there is none */
    double disturbed;           /* others' share of the cores while the one that lies there was tuned, which is tuned
                                   again; 0: it is not */
    bool asked;                 /* the one that lies there is of a setting that was asked for, not found */
    bool estimated;             /* the plan is a static choice only because there is no stored one */
    graphi_curves *curves;      /* known ones of the machine; NULL: none, and none are kept */
    double *ms;                 /* of the executions that job_clock() was told of: the last million of them */
    int64_t clocked;
};

/* Whether `name` is a network of this build. USAGE naming them all, and `others`, words that are none and would do
 * ("": there are none). Reported. */
graphi_status job_network(const char *where, const char *name, const char *others);

/* Fills the form of the network that the options ask for. USAGE on options that contradict each other. */
graphi_status job_model_options(const struct options *options, graphi_model_options *out);

/* A warning on standard error where others used that share (0: none that is worth a word) of the cores while `what` was
 * measured, which is kept. */
void job_tell_others(const struct options *options, const char *what, double share);

/* Machine, graph and state of the network `name`; of simulate with --machine the described one, and no state. Prints
 * what is wrong and gives the status, as all that follow. */
graphi_status job_begin(const struct options *options, const char *name, const graphi_model_options *model,
                        struct job *job);

/* A further graph of the same network over the same machine and state, without plan. Closed before the first. */
graphi_status job_beside(const struct job *first, const graphi_model_options *model, struct job *job);

/* The next number of a splitmix64 stream: what random inputs and noise are made of. */
uint64_t job_random(uint64_t *state);

/* Remembers how long the run's last execution took, for job_row(). */
void job_clock(struct job *job);
void job_clock_ms(struct job *job, double ms); /* the same, of somebody else's execution */

/* Those times, and memory, in a row. */
void job_times(struct job *job, json_t *row, struct result *result);

/* A row with the plan's setting and forecast and the times that were remembered. Borrowed reference. */
json_t *job_row(struct job *job, const char *id, struct result *result);

/* What --explain prints, on standard error where the JSON has standard output; without --explain (profile, demo) no
 * operations. */
void job_explain(const struct options *options, const graphi_plan *plan);
/* With --explain: what the run has taught its policy. */
void job_explain_run(const struct options *options, const graphi_run *run);
void job_close(struct job *job);

/* Feeds every input of a graph with numbers that depend on the seed alone: floats U(-1, 1), labels and tokens below
 * `classes`, learning rate 0.01, states zero. */
graphi_status job_feed(graphi_run *run, const graphi_graph *graph, const graphi_model_info *info, uint64_t seed);

/* The roof of multiplicands of this type, no FLOPs: that of bfloat16 dot products only where the machine has them. */
struct rating job_roof(const graphi_machine_info *machine, graphi_dtype precision);

/* What one execution is rated by (docs/architecture.md, "Words"): its direct FLOPs, and its limit, max(those / roof,
 * compulsory bytes / bandwidth). */
struct rating job_rating(const graphi_graph *graph, const graphi_machine_info *machine, graphi_dtype precision);

/* --timeline, of the last of so many executions more. */
graphi_status job_timeline(const struct job *job, int executions, struct result *result);

/* Whether the network, which there is, has one size, so that --size has no effect; and a note where it was typed. */
bool job_one_size(const char *network);
void job_note_size(const struct options *options, const graphi_model_info *network, struct result *result);

/* The result's machine and model. */
void job_describe(const struct job *job, struct result *result);

/* Writes the result of a command that ended with `status` (`ok`) as JSON, --json and in --out's folder; job_finish
 * then prints it as a table, unless standard output is the JSON. Gives status, or what went wrong in writing. */
graphi_status job_write(const struct options *options, struct result *result, graphi_status status);
graphi_status job_finish(const struct options *options, struct result *result, graphi_status status);

#endif
