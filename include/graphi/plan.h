/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: a graph compiled for a machine. A plan is immutable and printable; tuning returns a new one. */
#ifndef GRAPHI_PLAN_H
#define GRAPHI_PLAN_H

#include <string.h>

#include "graphi/graph.h"
#include "graphi/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_plan graphi_plan;
typedef struct graphi_state graphi_state;
typedef struct graphi_curves graphi_curves; /* graphi/curves.h */

/* X(NAME, its table in the engine, "name on the command line"): the one list of policies */
#define GRAPHI_POLICY_LIST(X)                                                                                          \
    X(CRITICAL_PATH, critical_path, "critical-path") /* highest level first (graphi.txt Alg. 1) */                     \
    X(FIFO, fifo, "fifo")                            /* oldest ready operation first */                                \
    X(RANDOM, random, "random")                      /* any ready operation, by seed */                                \
    X(NAIVE, naive, "naive")                         /* executors poll one shared queue, no order (graphi.txt 7.4) */  \
    X(SEQUENTIAL, sequential, "sequential")          /* one operation at a time on all cores, array order */           \
    X(ASYMMETRIC, asymmetric, "asymmetric")          /* team sizes by scalability class (graphi.txt 6) */              \
    X(LOCALITY, locality, "locality") /* and the executor that produced the largest input preferred (graphi.txt 6) */  \
    X(S1, s1, "s1")                   /* best width per operation instance (concurrency-control.txt III-D) */          \
    X(S12, s12, "s12")                /* one width per operation kind */                                               \
    X(S123, s123, "s123")             /* and co-running by three candidates */                                         \
    X(S1234, s1234, "s1234")          /* and small operations on sibling hardware threads */                           \
    X(MALLEABLE, malleable, "malleable") /* order and width together against the predicted makespan */

typedef enum graphi_policy {
#define X(NAME, name, text) GRAPHI_POLICY_##NAME,
    GRAPHI_POLICY_LIST(X)
#undef X
        GRAPHI_POLICIES
} graphi_policy;

/* The word for --policy; "?" for none. */
static inline const char *graphi_policy_name(graphi_policy policy)
{
    static const char *const name[] = {
#define X(NAME, name, text) text,
        GRAPHI_POLICY_LIST(X)
#undef X
    };
    return (unsigned)policy < GRAPHI_POLICIES ? name[policy] : "?";
}

/* Who runs the scheduling step (docs/policies.md). X(NAME, "as --driver has it") */
#define GRAPHI_DRIVER_LIST(X)                                                                                          \
    X(AUTO, "auto")                                                                                                    \
    X(DEDICATED, "dedicated") /* a thread of its own */                                                                \
    X(COMBINING, "combining") /* who finishes an operation */                                                          \
    X(STATIC, "static")       /* nobody: all steps were taken in virtual time, before the first execution */

typedef enum graphi_driver {
#define X(NAME, text) GRAPHI_DRIVER_##NAME,
    GRAPHI_DRIVER_LIST(X)
#undef X
        GRAPHI_DRIVERS
} graphi_driver;

/* The word for --driver; "?" for none. */
static inline const char *graphi_driver_name(graphi_driver driver)
{
    static const char *const name[] = {
#define X(NAME, text) text,
        GRAPHI_DRIVER_LIST(X)
#undef X
    };
    return (unsigned)driver < GRAPHI_DRIVERS ? name[driver] : "?";
}

/* What policies are like, from their tables. Static text. */
typedef struct graphi_policy_info {
    const char *name;
    bool in_order; /* one operation at a time in array order, on all threads */
    bool searches; /* widths and order of the whole graph are searched for before it runs */
    bool siblings; /* may use second hardware threads of cores */
} graphi_policy_info;

/* A copy; false, *info untouched: there is no such policy. Any thread. */
GRAPHI_API bool graphi_policy_get_info(graphi_policy policy, graphi_policy_info *info);

/* A parameter that a policy's table declares. Static text. */
typedef struct graphi_policy_parameter_info {
    const char *name; /* as its option has it, without the two lines, and, with _ for -, as stored plans have it */
    const char *argument, *meaning; /* argument NULL: no option of its own */
    int64_t low, high, usual;       /* what is beyond is as the limit; where it is not given it is `usual` */
    bool toggle;   /* -1 off, 0 auto, 1 on; others are USAGE */
    bool chooses;  /* directs how a setting is chosen; executions are the same */
} graphi_policy_parameter_info;

/* The parameter at a place, from 0, of a policy, or, policy GRAPHI_POLICIES, of any; false past the last, *info
 * untouched. Any thread. */
GRAPHI_API bool graphi_policy_parameter_at(graphi_policy policy, int index, graphi_policy_parameter_info *info);

/* A parameter with the value that it is given; the name is borrowed for as long as the setting is used. */
typedef struct graphi_policy_parameter {
    const char *name;
    int64_t value;
} graphi_policy_parameter;
enum { GRAPHI_SETTING_PARAMETERS = 8 }; /* of a policy, at most */

/* How a plan shall be executed: the request. Zero fields: chosen statically from the graph. Others than the three
 * choices are USAGE. */
typedef struct graphi_setting {
    graphi_policy policy;
    graphi_driver driver;
    int executors, width; /* executors * width <= cores; dedicated takes a further core */
    /* > 0: this many while the backward pass runs, each of executors * width / backward_executors threads; at most
     * executors * width. */
    int backward_executors;
    int depth;              /* most operations an executor holds; 0: 1, more where they are short; more than 8 are 8 */
    graphi_choice inlining; /* off: tiny operations are scheduled like all others; else who made them ready runs them */
    graphi_choice light;    /* a single-thread executor for small operations; default: where cores are enough */
    /* Executors of one thread that have nothing ready take pieces of what others run; default: not, but tuning weighs
     * it; off: never, nor does tuning try. */
    graphi_choice join;
    /* Default: threads have cores of their own; an execution that cannot pin every one goes on, run_info.note says so,
     * also of `sequential` on one thread, which leases and pins no core. On: such an execution is UNSUPPORTED. Off:
     * placement is left to the operating system (graphi.txt Fig. 3). */
    graphi_choice pin;
    /* On: all teams are of `width`, whatever widths the policy has of its own. Default: where that is found to be
     * faster. Off: strategies keep their own widths, as under keep-uniform -1. */
    graphi_choice uniform;
    /* Those of its policy that are given, up to the first without a name: {{"candidates", 2}, {"keep-uniform", -1}}.
     * One that the policy does not have is not heeded; of a name that no policy has it is USAGE. */
    graphi_policy_parameter parameters[GRAPHI_SETTING_PARAMETERS];
} graphi_setting;

/* The parameter of that name, NULL where it is not given. */
static inline const graphi_policy_parameter *graphi_setting_parameter(const graphi_setting *setting, const char *name)
{
    for (int i = 0; i < GRAPHI_SETTING_PARAMETERS && setting->parameters[i].name; i++)
        if (!strcmp(setting->parameters[i].name, name))
            return &setting->parameters[i];
    return NULL;
}

/* How a plan is executed: what became of a request, nothing left to choose. Executions only read it. */
typedef struct graphi_decision {
    graphi_policy policy;
    graphi_driver driver; /* never AUTO */
    int executors, width;
    int backward_executors; /* 0: as in the forward pass */
    int depth;
    bool inlines;  /* tiny operations run where they became ready */
    bool light;    /* there is an executor for small operations */
    bool joins;    /* idle executors take pieces of what others run */
    bool join_off; /* they shall not, as asked for: nor does tuning try */
    bool pinned;   /* threads are to have cores of their own; graphi_run_info says whether they had */
    bool must_pin; /* else executions are UNSUPPORTED */
    bool uniform;  /* a policy with widths of its own has all teams of `width` */
    graphi_policy_parameter parameters[GRAPHI_SETTING_PARAMETERS]; /* all that the policy has */
} graphi_decision;

/* The parameter of that name, NULL where the policy has none. */
static inline const graphi_policy_parameter *graphi_decision_parameter(const graphi_decision *decision,
                                                                       const char *name)
{
    for (int i = 0; i < GRAPHI_SETTING_PARAMETERS && decision->parameters[i].name; i++)
        if (!strcmp(decision->parameters[i].name, name))
            return &decision->parameters[i];
    return NULL;
}

/* The request for just that, on the machine and for the graph that it was decided for. */
static inline graphi_setting graphi_decision_setting(const graphi_decision *decision)
{
    graphi_setting setting;
    memset(&setting, 0, sizeof setting);
    setting.policy = decision->policy;
    setting.driver = decision->driver;
    setting.executors = decision->executors;
    setting.width = decision->width;
    setting.backward_executors = decision->backward_executors;
    setting.depth = decision->depth;
    setting.inlining = decision->inlines ? GRAPHI_DEFAULT : GRAPHI_OFF;
    setting.light = decision->light ? GRAPHI_ON : GRAPHI_OFF;
    setting.join = decision->joins ? GRAPHI_ON : decision->join_off ? GRAPHI_OFF : GRAPHI_DEFAULT;
    setting.pin = decision->must_pin ? GRAPHI_ON : decision->pinned ? GRAPHI_DEFAULT : GRAPHI_OFF;
    setting.uniform = decision->uniform ? GRAPHI_ON : GRAPHI_DEFAULT;
    memcpy(setting.parameters, decision->parameters, sizeof setting.parameters);
    return setting;
}

/* Splits of `cores` into executors of one width, which choosing and tuning weigh (docs/profiler.md): the executors of
 * the one that follows that into `executors` (0: of the first), each of cores / executors threads; 0 after the last,
 * and where there are no such cores. On 4,096 cores and fewer at most 57. Any thread. */
GRAPHI_API int graphi_split_next(int cores, int executors);

typedef struct graphi_plan_options {
    graphi_setting setting;
    /* "plain", "avx2", "avx512", "bf16"; NULL: the best of this CPU, for a described machine at most its own.
     * UNSUPPORTED when missing. */
    const char *isa;
    graphi_dtype precision; /* of GEMM and convolution multiplicands: F32 (zero) or BF16 */
    /* Most that fast convolutions may err, in errors of the direct algorithm (docs/kernels.md), 1 (that one alone) to
     * 1e6; 0: the default, 4; 8 with bfloat16: 4 leaves 3x3 convolutions a third slower. */
    double conv_error;
    /* Tuning also tries forms that round otherwise (docs/profiler.md), and stored ones may be loaded. It compiles them
     * from the graph, so nobody adds to it meanwhile; it tries none where something was added since. */
    bool allow_rounding;
    /* How recurrences run, as --sequences has it (docs/recurrent.md): "streamlined", "partitioned:1x2x1", "chunked:25",
     * "across", ..., loops with "+:2" for two shares of units; NULL or "auto": chosen. A recurrence to which the form
     * does not apply stays one loop. The same bits, but of k in several parts, which needs allow_rounding. USAGE,
     * naming the words, for others. */
    const char *sequences;
    /* Of recurrent weights as the forward pass reads them: F32 (zero), or BF16: each is rounded once, sums are float32.
     * For serving; gradients are by the weights as they are. */
    graphi_dtype weights;
    graphi_streaming streaming; /* of which results: types.h */
    bool check_numerics;        /* every run checks each operation's results for NaN and infinities */
    /* Passes switched off, "fusion,cse" or "all"; "+merge" switches on; graphi_pass_at names them. Here and in
     * `outputs` blanks may stand beside a comma. */
    const char *disable;
    /* Only these outputs are computed, "loss,logits", at least one; NULL: all outputs and all updates. */
    const char *outputs;
    bool no_updates;     /* with `outputs` NULL: leave out parameter updates */
    /* Bytes; 0: 1.15 times the sequential live maximum, less where that costs no time, more where branches would wait
     * for each other's bytes. */
    int64_t arena_target;
} graphi_plan_options;

/* Compiles `graph` for `machine` (both must outlive the plan). options NULL: the defaults. The plan is immutable and
 * may be run by many threads at once, each with its own run. On success *out is the caller's (graphi_plan_destroy).
 * Errors, *out untouched: the first mistake recorded while building the graph; INVALID, options that mean nothing,
 * naming them; USAGE, executors times width beyond the cores, or an instruction set or pass that there is not;
 * UNSUPPORTED, an instruction set that this CPU lacks, or a node without a kernel; MEMORY. Any thread. Source:
 * graphi.txt 5.1. */
GRAPHI_API graphi_status graphi_plan_create(const graphi_graph *graph, const graphi_machine *machine,
                                            const graphi_plan_options *options, graphi_plan **out);

typedef struct graphi_tune_options {
    double seconds; /* budget, at most twice of which is taken where settings do not differ clearly; 0: static choice */
    /* Not searched for: this one, what it leaves open chosen from the measured operations. Policies with widths of
     * their own may return uniform (s1 to s1234 unless keep-uniform is -1), malleable also join. */
    const graphi_setting *setting;
    bool policies; /* search policies too, not only executors x width and driver */
    int interval;  /* of hill climbing over widths, threads; 0: 4, less on few cores (concurrency-control.txt III-C) */
    /* Classes that it knows are not measured, but those of a file that were measured while other processes used the
     * cores; those that are measured (at least three times) are added. REFUSED when it is for another machine. NULL:
     * all are measured. */
    graphi_curves *curves;
    void (*progress)(void *context, const char *text); /* called from the tuning thread; NULL: silent */
    bool (*stop)(void *context); /* asked between executions, from the tuning thread; true ends tuning. NULL: never */
    void *context;
} graphi_tune_options;

/* Measures operations and settings and returns the better plan, the caller's. Inputs are what the state's run that was
 * destroyed last had been fed (graphi_run_destroy), or random. Without `setting`, operations of long steps stay as they
 * are in `plan`: where a round of them takes more than a third of the time, and more than two seconds. `plan` is
 * unchanged; the state's parameters and step are restored. Of a plan with updates it is one of the state's writers
 * (state.h); others may be tuned beside runs of the state. options NULL: the defaults. Errors, *out untouched:
 * INTERRUPTED when `stop` said so; USAGE, a setting that does not fit the machine; REFUSED, curves of another machine;
 * as graphi_run_create and graphi_run_execute, but not NONFINITE: the numbers may be made up. */
GRAPHI_API graphi_status graphi_plan_tune(const graphi_plan *plan, graphi_state *state,
                                          const graphi_tune_options *options, graphi_plan **out);

/* What a plan is made anew with; NULL: what the other plan has. */
typedef struct graphi_plan_change {
    const graphi_setting *setting; /* what it leaves open is chosen by the operations' times */
    /* To be simulated there: curves are extended to its cores (docs/simulator.md). It must outlive the new plan. */
    const graphi_machine *machine;
    /* A set for that machine, which may go afterwards: of every class that it knows, its measured curve, or the one
     * that `model` predicts, is taken. So a plan that was tuned while others used the cores stays marked
     * (graphi_plan_info), unless the set has a measured curve of every class that nobody disturbed. */
    const graphi_curves *curves;
    const char *model; /* NULL: measured ones */
} graphi_plan_change;

/* The same compiled graph under another setting, on another machine, by other curves; cheap. change NULL: nothing is
 * another. *out is the caller's (graphi_plan_destroy); `plan` may go before it. Errors, *out untouched: USAGE when the
 * setting does not fit the machine; REFUSED, curves of another machine; INVALID, a model by which there are no curves;
 * MEMORY. Any thread; of those that give one set one at a time. */
GRAPHI_API graphi_status graphi_plan_with(const graphi_plan *plan, const graphi_plan_change *change, graphi_plan **out);

/* Writes what tuning found as JSON: setting and curves, not the compiled form, and who they are for. Atomic: whoever
 * reads sees the old file or the new one. Errors: IO; INVALID, no path; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_plan_save(const graphi_plan *plan, const char *path);

/* Compiles as graphi_plan_create, under what a file of graphi_plan_save says. Errors, *out untouched: REFUSED when
 * graph, machine, compile options or version are others, naming both, and when the plan rounds otherwise and
 * `allow_rounding` is not set; INVALID, no such file's content, naming the key; IO; as graphi_plan_create. Any thread.
 */
GRAPHI_API graphi_status graphi_plan_load(const graphi_graph *graph, const graphi_machine *machine,
                                          const graphi_plan_options *options, const char *path, graphi_plan **out);

/* A setting that tuning weighed. */
typedef struct graphi_trial {
    graphi_decision setting;
    double predicted_ms;
    int rounds;       /* executions in the race, in alternation with others; 0: predictions or the time kept it out */
    const double *ms; /* `rounds` of them, one a round, in their order; borrowed from the plan */
    double median_ms; /* 0: none */
    double ratio;     /* median of its times over the chosen setting's, of the same rounds; 1: that one; 0: not raced */
    bool chosen;
} graphi_trial;

/* The i-th setting that was weighed when the plan was tuned, from the least predicted time on, the chosen one among
 * them; a stored plan keeps them, one made by graphi_plan_with has none. False past the end, *out untouched. Any
 * thread. */
GRAPHI_API bool graphi_plan_trial_at(const graphi_plan *plan, int i, graphi_trial *out);

typedef struct graphi_plan_info {
    graphi_decision setting;
    int64_t nodes; /* compiled operations */
    double compile_ms;
    int64_t arena_bytes, sum_intermediate_bytes, live_maximum_bytes, packed_bytes, workspace_bytes;
    double flops, bytes; /* of the compiled operations, as they compute: Winograd's are fewer than the graph's */
    double critical_path_ms, lower_bound_ms, predicted_ms, measured_ms; /* 0: not known */
    int graph_width; /* most operations side by side where each begins as soon as its operands are there, on one thread;
                      * tiny ones left out */
    bool measured;   /* durations are measured, not estimated */
    /* Share of the cores that other processes used while it was tuned, also of a stored plan; 0: at most a tenth, or
     * not known. */
    double others;
    int disturbed; /* how often in a row that was so: the plan that was tuned, and the ones that it was tuned from */
    uint64_t graph_hash, machine_hash;
    const char *isa; /* instruction set of its kernels; static text */
    graphi_dtype precision; /* of GEMM and convolution multiplicands */
    /* Equal only for plans of one graph, machine, options, setting and times of operations; times that were measured or
     * estimated anew make another plan. */
    uint64_t hash;
} graphi_plan_info;

/* A copy of what is known of the plan. Any thread. */
GRAPHI_API void graphi_plan_get_info(const graphi_plan *plan, graphi_plan_info *info);

/* What was chosen and why, settings tried with their predicted and measured times, memory report, every operation with
 * its kernel, shapes, level, and its width, its start and what runs beside it in virtual time, with what was weighed
 * (`operations`). Text for people, the caller's (graphi_free). Error, *text untouched: MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_plan_explain(const graphi_plan *plan, bool operations, char **text);

/* The port of that name, for graphi_run_bind: inputs are numbered from 0 in the order of the graph, outputs behind
 * them. INVALID: there is none, or an input and an output have the name (graphi_plan_port_at tells both). Any thread.
 */
GRAPHI_API graphi_status graphi_plan_port(const graphi_plan *plan, const char *name, int *port);

/* The port of that number: an input or an output of the plan, with name, type, shape and bytes at the bound; its value
 * is GRAPHI_NONE. The name lives as long as graph and plan. False past the end, the results untouched. Any thread. */
GRAPHI_API bool graphi_plan_port_at(const graphi_plan *plan, int port, graphi_port_kind *kind, graphi_port *out);

/* After its runs; while nobody uses the plan. NULL is accepted. */
GRAPHI_API void graphi_plan_destroy(graphi_plan *plan);

/* A pass over the graph. Static text. */
typedef struct graphi_pass {
    const char *name, *summary;
    bool always;     /* cannot be switched off */
    bool on_request; /* runs only where "+name" asks for it */
} graphi_pass;

/* The pass at a place, from 0, in the order in which they run; false, *pass untouched, past the last. Any thread. */
GRAPHI_API bool graphi_pass_at(int index, graphi_pass *pass);

/* Whether a list, as in graphi_plan_options, is one of passes that can be switched; NULL and "" are. USAGE, naming the
 * first word that is not. Any thread. */
GRAPHI_API graphi_status graphi_pass_check(const char *disable);

#ifdef __cplusplus
}
#endif
#endif
