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
    int64_t cache; /* bytes of weights that the caches hold from one reading to the next; 0: not known */
};

struct pass {
    const char *name; /* NULL ends the table */
    const char *summary;
    graphi_status (*run)(graphi_graph *graph, const struct pass_options *options);
    bool always; /* cannot be switched off */
    bool asked;  /* only with "+name" */
};

/* In the order in which they run. */
extern const struct pass passes[];

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
graphi_status pass_norm(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_fold(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_identities(graphi_graph *graph, const struct pass_options *options);
graphi_status pass_cse(graphi_graph *graph, const struct pass_options *options);
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
graphi_status pack_convolutions(graphi_graph *graph,
                                const struct pass_options *options); /* the second half of pass_pack */

/* Replacements of values, identity where nothing was set; grows with the graph. */
struct value_map {
    int32_t *to;
    size_t count, capacity;
};
graphi_status map_set(struct value_map *map, const graphi_graph *graph, int32_t value, int32_t to); /* MEMORY */
int32_t map_follow(const struct value_map *map, int32_t value);
/* Where all went well, rewires and compacts the graph; frees the map in any case. */
graphi_status map_end(struct value_map *map, graphi_graph *graph, graphi_status status);

/* Who reads the values that a graph had when it was asked, and which of them are its outputs. */
struct uses {
    int32_t *begin, *list; /* as from graph_users */
    bool *output;
};
graphi_status uses_open(const graphi_graph *graph, struct uses *uses); /* MEMORY; to be closed even so */
void uses_close(struct uses *uses);
static inline int32_t uses_count(const struct uses *uses, int32_t value)
{
    return uses->begin[value + 1] - uses->begin[value];
}
/* One reads it, once, and nobody else has it: no output, nothing that is kept in a parameter. */
bool uses_once(const struct uses *uses, const graphi_graph *graph, int32_t value);

/* Where pass_cse looks for a node like this one. Attributes count: the slices of one value differ in nothing else, and
 * at one place in the table each would be held against all before it. */
uint64_t cse_hash(const struct value_map *map, const struct node *node);

bool is_immediate(const struct value *value); /* a scalar constant, which becomes an instruction of a program */
/* Is the value a float32 constant whose elements all equal `number`? */
bool constant_is(const graphi_graph *graph, int32_t value, float number);
/* Nodes from `first` on stand in for `node`: its place, scope and phase. */
void adopt(graphi_graph *graph, int32_t first, const struct node *node);
bool is_kind(const struct node *node, const char *kind);
/* Products of so many rows at most may be put together by pass_batch, which says in what order their pairs are. */
enum { BATCH_MOST_ROWS = 24 };
/* A matrix product as the user or autodiff writes it: of no packed weight, without a base or a program. */
bool is_plain_product(const struct node *node);
bool same_type(const graphi_graph *graph, int32_t a, int32_t b); /* of two values */

/* A node made again with other inputs or attributes, of inputs `extra` more (successor.c). Between begin and place they
 * may be changed; place appends it, lets `map` lead from the old outputs to the new ones, and frees. */
struct successor {
    int32_t id;       /* of the old node */
    struct node node; /* the old one */
    graphi_value *input;
    graphi_attribute *attribute;
};
graphi_status successor_begin(const graphi_graph *graph, int32_t id, int extra, struct successor *out);
graphi_attribute *successor_attribute(struct successor *successor,
                                      const char *name); /* one that the kind has; else NULL */
graphi_status successor_place(graphi_graph *graph, struct successor *successor, struct value_map *map);

#endif
