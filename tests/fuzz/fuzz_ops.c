/* SPDX-License-Identifier: Apache-2.0 */
/* Operations with any attributes on small inputs: whatever graphi_op accepts must compile and run, or be refused with a
 * message that has found and expected in it. The bytes choose the kind, the inputs' types and the attributes; small
 * numbers are likely, the limits of types possible. A mistake shows as a crash, a sanitizer's report or an abort here.
 */
#include "fuzz.h"

#include "graph/op.h"
#include "graphi/graphi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 6, MOST_LIST = 12, MOST_ATTRIBUTES = 24, MOST_ELEMENTS = 1 << 16 };

struct bytes {
    const uint8_t *at, *end;
};

static unsigned take(struct bytes *b, unsigned sides) { return b->at < b->end ? *b->at++ % sides : 0; }

static int64_t number(struct bytes *b)
{
    static const int64_t limits[] = {-1, INT64_MIN, INT64_MAX, INT32_MAX, (int64_t)1 << 31, (int64_t)1 << 44, -2, -7,
                                     ((int64_t)1 << 32) + 1}; /* 1 in 32 bits */
    unsigned kind = take(b, 16);
    return kind ? (int64_t)take(b, kind < 12 ? 4 : 20) : limits[take(b, sizeof limits / sizeof *limits)];
}

static int any_input(graphi_graph *graph, struct bytes *b, int i, int64_t symbol)
{
    static const graphi_dtype dtypes[] = {GRAPHI_F32, GRAPHI_F32, GRAPHI_F32, GRAPHI_F32, GRAPHI_F32,
                                          GRAPHI_I32, GRAPHI_I32, GRAPHI_BF16, GRAPHI_I64, GRAPHI_U8};
    char name[16];
    int64_t dims[GRAPHI_MAX_RANK];
    int rank = (int)take(b, 5);
    for (int d = 0; d < rank; d++)
        dims[d] = 1 + take(b, d ? 5 : 8);
    if (rank && take(b, 8) == 0)
        dims[0] = symbol;
    snprintf(name, sizeof name, "x%d", i);
    const graphi_dtype dtype = dtypes[take(b, 10)];
    if (take(b, 4) == 0 && !(rank && dims[0] == symbol)) /* passes put together what weights have in common */
        return graphi_parameter(graph, name, dtype, rank, dims, NULL);
    return graphi_input(graph, name, dtype, rank, dims);
}

/* A value like the first input, so that operations which want equal shapes get them often. */
static int same_input(graphi_graph *graph, graphi_value like, int i, int64_t symbol)
{
    char name[16];
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    if (graphi_value_type(graph, like, &dtype, &rank, dims))
        return GRAPHI_NONE;
    if (graph_value(graph, like)->type.symbol >= 0)
        dims[0] = symbol;
    snprintf(name, sizeof name, "x%d", i);
    return graphi_input(graph, name, dtype, rank, dims);
}

static void refused(graphi_status status)
{
    const char *m = graphi_message();
    if (status != GRAPHI_MEMORY && (!strstr(m, "found ") || !strstr(m, "expected "))) {
        fprintf(stderr, "%s\n", m);
        abort();
    }
}

static void feed(graphi_graph *graph, graphi_run *run, int inputs)
{
    static uint8_t zeros[16 * MOST_ELEMENTS];
    for (int i = 0; i < inputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        graphi_value v = graphi_find(graph, name);
        const struct value *value = v >= 0 ? graph_value(graph, v) : NULL;
        if (value && value->kind == VALUE_INPUT &&
            graphi_run_set(run, name, value->type.dtype, zeros, (size_t)type_bytes(&value->type)))
            abort();
    }
}

static bool small(const graphi_graph *graph)
{
    int64_t count = 0;
    for (size_t v = 0; v < graph->values.count; v++) {
        if (type_count(&graph->values.data[v].type) > MOST_ELEMENTS)
            return false;
        count += type_count(&graph->values.data[v].type);
    }
    return count < 16 * MOST_ELEMENTS;
}

/* What takes over a parameter's storage has a call of its own: the parameter, of the value's type as a rule, gets the
 * first input or what an operation makes of it and of the parameter's old content. */
static graphi_value assign(graphi_graph *graph, struct bytes *b, graphi_value x)
{
    const graphi_initializer one = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    if (graphi_value_type(graph, x, &dtype, &rank, dims))
        return GRAPHI_NONE;
    if (rank && take(b, 8) == 0)
        dims[0]++;
    graphi_value kept = graphi_parameter(graph, "kept", take(b, 8) ? dtype : GRAPHI_F32, rank, dims, &one);
    if (take(b, 2))
        graphi_output(graph, "before", kept);
    return graphi_assign(graph, kept, take(b, 2) ? x : graphi_mul(graph, x, kept));
}

/* Inputs are zeros, so that is what an assigned parameter has afterwards. */
static void check_assigned(const graphi_graph *graph, const graphi_state *state)
{
    static uint8_t kept[16 * MOST_ELEMENTS];
    graphi_value v = graphi_find(graph, "kept");
    size_t bytes = v >= 0 ? (size_t)type_bytes(&graph_value(graph, v)->type) : 0;
    if (bytes && graphi_state_get(state, "kept", kept, bytes))
        abort();
    for (size_t i = 0; i < bytes; i++)
        if (kept[i])
            abort();
}

static void compile_and_run(graphi_graph *graph, int inputs, bool plain)
{
    static graphi_machine *machine;
    graphi_plan_options options = {.isa = plain ? "plain" : NULL,
                                   .setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};
    graphi_plan *plan = NULL;
    graphi_state *state = NULL;
    graphi_run *run = NULL;
    if (!machine && graphi_machine_create(1, &machine))
        abort();
    graphi_status status = graphi_plan_create(graph, machine, &options, &plan);
    if (!status && small(graph)) {
        status = graphi_state_create(graph, 1, &state);
        if (!status)
            status = graphi_run_create(plan, state, &run);
        if (!status) {
            feed(graph, run, inputs);
            status = graphi_run_execute(run);
            if (!status)
                check_assigned(graph, state);
        }
    }
    if (status)
        refused(status);
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
}

/* With the gradient of the first output where there is one. */
static void differentiate(graphi_graph *graph, graphi_value y, graphi_value x)
{
    graphi_value gradient = GRAPHI_NONE, loss = graphi_reduce_mean(graph, y, NULL, 0, 0);
    if (graphi_gradients(graph, loss, 1, &x, &gradient) == GRAPHI_OK && gradient >= 0)
        graphi_output(graph, "dx", gradient);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, data + size};
    int kinds = 0;
    while (op_at(kinds))
        kinds++;
    const struct op_kind *kind = op_at((int)((take(&b, 256) * 256 + take(&b, 256)) % (unsigned)kinds));
    if (strcmp(kind->name, "delay") == 0 || strcmp(kind->name, "call") == 0)
        return 0; /* waits as long as asked; regions come by another way */
    graphi_graph *graph;
    graphi_value input[MOST_INPUTS];
    graphi_attribute attribute[MOST_ATTRIBUTES];
    int64_t list[MOST_ATTRIBUTES][MOST_LIST];
    if (graphi_graph_create(&graph))
        abort();
    int64_t symbol = graphi_symbol(graph, "s", 4);
    const bool assigns = strcmp(kind->name, "assign") == 0;
    int inputs = assigns ? 1 : kind->min_inputs + (int)take(&b, 2), attributes = 0;
    inputs = inputs > MOST_INPUTS ? MOST_INPUTS : inputs;
    for (int i = 0; i < inputs; i++)
        input[i] = i && take(&b, 2) ? same_input(graph, input[0], i, symbol) : any_input(graph, &b, i, symbol);
    for (const struct op_attribute *a = kind->attributes; a && a->name && attributes < MOST_ATTRIBUTES; a++) {
        if (!a->required && take(&b, 2))
            continue;
        graphi_attribute *to = &attribute[attributes];
        *to = (graphi_attribute){.name = a->name, .type = a->type, .i = number(&b), .ints = list[attributes]};
        to->f = (double)number(&b) / 4;
        to->count = a->type == GRAPHI_INTS ? (int)take(&b, MOST_LIST) : 0;
        for (int k = 0; k < to->count; k++)
            list[attributes][k] = number(&b);
        attributes++;
    }
    graphi_value y = assigns ? assign(graph, &b, input[0])
                             : graphi_op(graph, kind->name, inputs, input, attributes, attribute);
    if (y >= 0 && kind->outputs != 0) {
        graphi_output(graph, "y", y);
        if (inputs && take(&b, 2))
            differentiate(graph, y, input[0]);
    }
    if (graphi_graph_status(graph))
        refused(GRAPHI_INVALID);
    else
        compile_and_run(graph, inputs, take(&b, 2));
    graphi_graph_destroy(graph);
    return 0;
}

/* Seeds: every kind with a few patterns of bytes. */
size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    if (which > 127 || size < 64)
        return 0;
    for (unsigned i = 0; i < 64; i++)
        out[i] = (uint8_t)(i < 1 ? 0 : i == 1 ? which * 2 : (i * 37 + which * 101) ^ (i * which));
    return 64;
}
