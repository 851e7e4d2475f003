/* SPDX-License-Identifier: Apache-2.0 */
/* What the experiments on a described machine share: a network compiled for that machine, its simulation under many
 * settings, rows labelled simulated, and the papers' figures as rows beside ours. The machine is --machine FILE, by
 * default the papers' Xeon Phi 7250. Operation times are estimates from the machine's rates; with --tune SECONDS every
 * share is timed on one core here and extended instead (docs/simulator.md). Public API only. */
#ifndef BENCH_STUDY_H
#define BENCH_STUDY_H

#include "bench.h"

/* The description without --machine: "xeon-phi-7250" under this engine; experiments of the papers are repeated under
 * the papers' software (docs/simulator.md), others about strategy 4 choose the one with sibling threads. */
#define STUDY_PAPERS_MACHINE "xeon-phi-7250-papers"
extern const char *study_description;

struct study {
    struct bench *bench;
    const char *name, *size;
    graphi_model_options model;
    graphi_model_info info;
    graphi_machine *machine;
    graphi_machine_info about;
    graphi_graph *graph;
    graphi_plan *plan;
    double host_ns_per_op; /* of the last simulation */
};

/* "machines/NAME.json" from the working folder, the source tree or where it was installed. */
graphi_status study_machine(struct bench *bench, const char *name, graphi_machine **out);

/* Passes that the papers' graph compilers lack: with them off a graph has the papers' operations. Graphi compiles with
 * CGT (graphi.txt 5), which knows equal sub-expressions, constants and identities, and adds up the weight gradients of
 * all steps of a sequence one by one; concurrency-control.txt runs the operations of TensorFlow's graph. */
#define STUDY_PAPERS_GRAPH "fusion,epilogue,merge,sums,reduce,recompute,pool,pack"

/* These are off unless --disable is given ("none": our graph), which a note says, and for what. */
void study_passes_off(struct bench *bench, const char *passes, const char *reason);
void study_papers_graph(struct bench *bench);

/* An experiment of a paper: its graph, and its machine without --machine. */
void study_of_paper(struct bench *bench);

/* A graph made here, which the study owns, or a network. Close it in any case. USAGE: a setting that the command line
 * asks for, since the experiment chooses them, or --interval with nothing to measure. */
graphi_status study_open_graph(struct bench *bench, const char *label, graphi_graph *graph, struct study *study);
graphi_status study_open_network(struct bench *bench, const char *network, const char *size, struct study *study);
void study_close(struct study *study);

/* One setting in virtual time, without a row. */
graphi_status study_simulate(struct study *study, const graphi_setting *setting, graphi_simulation *out);

/* The same, and its timeline's events (docs/timeline.md), to be decref'ed; the files stay if there is a prefix for
 * them. */
graphi_status study_timeline(struct study *study, const graphi_setting *setting, const char *prefix,
                             graphi_simulation *out, json_t **events);

/* The id of a row: "NETWORK SIZE: " and what `form` gives; "LABEL: " of study_open_graph's. */
enum { STUDY_ID = 200 };
void study_id(const struct study *study, char id[STUDY_ID], const char *form, ...)
    __attribute__((format(printf, 3, 4)));

/* One setting with a row "NETWORK SIZE: LABEL", its ratio against `base_label` (NULL: none) with base_ms; the row of a
 * setting that executes as another policy's has status missing. */
graphi_status study_row(struct study *study, const char *label, const graphi_setting *setting, const char *base_label,
                        double base_ms, graphi_simulation *out);

/* One operation's time at a width, simulated; its ratio against row `base` (NULL: none) with base_ms. */
void study_operation(struct bench *bench, const char *id, int width, double ms, const char *base, double base_ms);

/* A row of what a paper reports, "GROUP, paper: REST" for the id "GROUP: REST": times in ms, and their ratio to the
 * paper's own row of the id `against`, never to a simulated one (either may be 0). A row that is compared with and is
 * not there is made, without a time. */
void study_paper(struct bench *bench, const char *paper, const char *id, const char *against, double ratio, double ms);

/* Whether so many threads are there; else a row "NETWORK SIZE: LABEL" says that they are not. */
bool study_fits(struct study *study, const char *label, int executors, int width);

/* A row of something that cannot be had, with the reason. */
void study_missing(struct bench *bench, const char *id, const char *reason);

/* The scheduled setting of graphi.txt 7.3: client and light executor on cores of their own. */
graphi_setting study_setting(graphi_policy policy, int executors, int width);

/* The best split of the cores under a policy, over those that tuning weighs (graphi_split_next) and the graph's width:
 * with critical-path the best of these uniform settings (manual optimization of concurrency-control.txt); with
 * malleable, which searches widths by itself, only the smallest and the largest. Splits on which it executes as another
 * policy (asymmetric with teams of one size) are left out; makespan_ms 0: none is left. */
graphi_status study_best(struct study *study, graphi_policy policy, graphi_setting *setting, graphi_simulation *out);

/* Calls body for each network to study, open for as long as it runs: those typed, else the list (NULL ends it);
 * in --size, else "medium", or "small" with --quick. USAGE: one that does not exist, or a setting, as above.
 * study_names opens nothing. */
graphi_status study_each(struct bench *bench, const char *const *networks, graphi_status (*body)(struct study *study));
graphi_status study_names(struct bench *bench, const char *const *networks,
                          graphi_status (*body)(struct bench *bench, const char *network, const char *size));

#endif
