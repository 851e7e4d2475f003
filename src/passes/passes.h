/* SPDX-License-Identifier: Apache-2.0 */
/* Graph to graph: what a plan does to a clone of the user's graph before kernels are bound. Each pass takes a compacted
 * graph and leaves one (graph_check holds); which rewrites it makes depends on the graph and the options alone, so two
 * plans of one graph round alike. Names in `disable` switch passes off; "+name" switches on one that is off unless
 * asked for. */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "graph/graph.h"
#include "kernels/kernel.h"

struct pass_options {
    const char *disable; /* "fusion,cse,+merge"; NULL: none */
    enum isa isa;        /* of kernels that folding runs */
    graphi_dtype multiplicands; /* of packed weights: F32 (zero) or BF16 */
    double conv_error;          /* error budget of convolutions; 0: the default */
    int cores;                  /* that the plan is for; 0: not known */
    graphi_status (*all)(graphi_graph *graph, const struct pass_options *options); /* of passes_run: itself */
    const char *sequences;      /* how recurrences run (sequences.h); NULL: chosen */
    graphi_dtype weights;       /* of recurrences: F32 (zero) or BF16 */
    bool rounding;              /* forms that round otherwise may be chosen */
    int64_t level_2;            /* bytes of a core's level 2; 0: not known */
    bool packs; /* of passes_run: whether weights are packed */
    int64_t cache; /* bytes of weights that the caches hold from one reading to the next; 0: not known */
};

struct pass {
    const char *name; /* NULL ends the table */
    const char *summary;
    graphi_status (*run)(graphi_graph *graph, const struct pass_options *options);
    enum { PASS_USUAL, PASS_ALWAYS, PASS_REQUEST } when; /* can be switched off; cannot be; only with "+name" */
    bool again;        /* runs once more at the end: of these the last of the table first */
    const char *after; /* names of those that must have run, with blanks between them */
};

/* In the order in which they run. */
extern const struct pass passes[];

/* Has a table each pass behind those that it must come after? INVALID naming the first that has not. */
graphi_status passes_check_order(const struct pass *table);

/* One bit a pass: lists are alike where it is the same. */
uint64_t passes_mask(const char *disable);

bool pass_enabled(const struct pass *pass, const char *disable);
/* All enabled passes. USAGE as graphi_pass_check. On failure the graph is only good for destroying. */
graphi_status passes_run(graphi_graph *graph, const struct pass_options *options);

/* Before passes_run: keeps only these outputs ("loss,logits"; NULL: all), and drops parameter updates unless `updates`.
 * INVALID naming an output that does not exist, and for a list without a name. */
graphi_status passes_select(graphi_graph *graph, const char *outputs, bool updates);

graphi_status pass_inline(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_order(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_images(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_sequences(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_recurrences(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_norm(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_fold(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_identities(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_cse(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_derive(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_dead(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_pool(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_sums(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_reduce(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_tables(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_merge(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_ready(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_batch(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_stages(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_epilogue(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_bands(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_recompute(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_fusion(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_pack(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_round(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_reuse(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_bodies(graphi_graph *graph, const struct pass_options *options);
graphi_status pack_convolutions(graphi_graph *graph,
                                const struct pass_options *options); /* the second half of pass_pack */

/* Where pass_cse looks for a node like this one. Attributes count: the slices of one value differ in nothing else, and
 * at one place in the table each would be held against all before it. */
struct value_map; /* passes/edit.h */
uint64_t cse_hash(const struct value_map *map, const struct node *node);

/* Products of so many rows at most may be put together by pass_batch, which says in what order their pairs are. */
enum { BATCH_MOST_ROWS = 24 };

#endif
