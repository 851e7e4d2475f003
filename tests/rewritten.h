/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of passes share: graphs written briefly, and a graph and its rewritten clone held against each other.
 */
#ifndef TESTS_REWRITTEN_H
#define TESTS_REWRITTEN_H

#include "passes/passes.h"

#include "graph/op.h"
#include "graphi/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "reference.h"

static inline bool is_kind(const struct node *node, const char *kind)
{
    return node->kind && strcmp(node->kind->name, kind) == 0;
}

static inline graphi_value op(graphi_graph *g, const char *kind, int n, const graphi_value *in)
{
    return graphi_op(g, kind, n, in, 0, NULL);
}
#define OP(kind, ...)                                                                                                  \
    op(g, kind, (int)(sizeof((graphi_value[]){__VA_ARGS__}) / sizeof(graphi_value)), (graphi_value[]){__VA_ARGS__})

static inline graphi_value number(graphi_graph *g, float x) { return graphi_constant(g, GRAPHI_F32, 0, NULL, &x); }

/* A clone after the passes, whole. */
static inline graphi_graph *rewritten(const graphi_graph *g, struct pass_options options)
{
    graphi_graph *copy;
    if (graph_clone(g, &copy) != GRAPHI_OK || passes_run(copy, &options) != GRAPHI_OK || graph_check(copy) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return copy;
}

/* Runs both, with so many rows of what is bounded (0: all), and compares outputs and all parameters afterwards, found
 * by name. */
static inline void same_results_on(enum isa isa, int64_t rows, const graphi_graph *before, const graphi_graph *after,
                                   double tolerance, const char *what)
{
    struct reference a, b;
    reference_init(&a, before);
    reference_init(&b, after);
    a.isa = b.isa = isa;
    a.rows = b.rows = rows;
    for (int step = 0; step < 2; step++) {
        if (reference_run(&a) != GRAPHI_OK)
            fail_msg("%s: before: %s", what, graphi_message());
        if (reference_run(&b) != GRAPHI_OK)
            fail_msg("%s: after: %s", what, graphi_message());
    }
    for (size_t i = 0; i < before->values.count; i++) {
        const struct value *value = &before->values.data[i];
        if (value->kind != VALUE_PARAMETER)
            continue;
        double error = reference_difference(reference_floats(&b, graphi_find(after, value->name)),
                                            reference_floats(&a, (graphi_value)i), type_count(&value->type));
        if (error > tolerance)
            fail_msg("%s: parameter %s differs by %g", what, value->name, error);
    }
    for (size_t i = 0; i < before->outputs.count; i++) {
        const struct graph_output *output = &before->outputs.data[i];
        double error = reference_difference(reference_floats(&b, graphi_find(after, output->name)),
                                            reference_floats(&a, output->value),
                                            type_count(&graph_value(before, output->value)->type));
        if (error > tolerance)
            fail_msg("%s: output %s differs by %g", what, output->name, error);
    }
    reference_fini(&a);
    reference_fini(&b);
}

static inline void same_results(const graphi_graph *before, const graphi_graph *after, double tolerance,
                                const char *what)
{
    same_results_on(ISA_PLAIN, 0, before, after, tolerance, what);
}

static inline int count_kind(const graphi_graph *g, const char *kind)
{
    int count = 0;
    for (size_t i = 0; i < g->nodes.count; i++)
        count += is_kind(&g->nodes.data[i], kind);
    return count;
}

#endif
