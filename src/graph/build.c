/* SPDX-License-Identifier: Apache-2.0 */
/* The builder: graphs, their sources (inputs, parameters, constants), symbols, outputs, scopes, and the sticky error.
 *
 * Invariants: after the first error the graph takes no more values or nodes; a value id once given stays valid; names
 * of inputs and parameters are unique together, names of outputs among themselves. One thread at a time. Usual size: a
 * few hundred sources, up to 20,000 nodes. Operations are appended in append.c. */
#include "graph/graph.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "graph/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

graphi_status graphi_graph_create(graphi_graph **out)
{
    GIVEN(out);
    graphi_graph *graph = mem_zalloc(sizeof *graph);
    if (!graph)
        return fail_memory("graph", sizeof *graph);
    graph->scope = "";
    *out = graph;
    return GRAPHI_OK;
}

void graphi_graph_destroy(graphi_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int r = 0; r < graph->nodes.data[i].regions; r++)
            graphi_graph_destroy(graph->nodes.data[i].region[r]);
    for (graphi_graph *region = graph->retired, *next; region; region = next) {
        next = region->next;
        graphi_graph_destroy(region);
    }
    array_free(&graph->values);
    array_free(&graph->nodes);
    array_free(&graph->symbols);
    array_free(&graph->outputs);
    array_free(&graph->inputs);
    array_free(&graph->parameters);
    index_free(&graph->sources);
    index_free(&graph->output_names);
    arena_free(&graph->arena);
    mem_free(graph);
}

graphi_status graphi_graph_status(const graphi_graph *graph)
{
    if (!graph)
        return fail(GRAPHI_INVALID, "graph", "found no graph, expected one");
    if (graph->status != GRAPHI_OK)
        message_set(graph->message);
    return graph->status;
}

graphi_value graph_broken(graphi_graph *graph, graphi_status status)
{
    if (graph->status == GRAPHI_OK && status != GRAPHI_OK) {
        graph->status = status;
        message_get(graph->message, sizeof graph->message);
    }
    return GRAPHI_NONE;
}

bool graph_open(graphi_graph *graph)
{
    if (graph && graph->part)
        graph_broken(graph, fail(GRAPHI_INVALID, "graph", "found a region of another graph, expected one that is being "
                                 "built"));
    return graph && graph->status == GRAPHI_OK;
}

static char *keep(graphi_graph *graph, const char *text)
{
    char *copy = arena_string(&graph->arena, text);
    if (!copy)
        graph_broken(graph, fail_memory("graph", strlen(text) + 1));
    return copy;
}

/* Symbols are given to users as -2, -3, ...: -1 stays "none". */
static int64_t symbol_dim(size_t index) { return -2 - (int64_t)index; }

int64_t graphi_symbol(graphi_graph *graph, const char *name, int64_t bound)
{
    if (!graph_open(graph))
        return GRAPHI_NONE;
    if (!name || !*name || bound < 1)
        return graph_broken(graph, fail(GRAPHI_INVALID, "symbol",
                                        "found name '%s' and bound %lld, expected a name and a "
                                        "bound of at least 1",
                                        name ? name : "", (long long)bound));
    for (size_t i = 0; i < graph->symbols.count; i++)
        if (strcmp(graph->symbols.data[i].name, name) == 0) {
            if (graph->symbols.data[i].bound == bound)
                return symbol_dim(i);
            return graph_broken(graph, fail(GRAPHI_INVALID, "symbol",
                                            "found '%s' with bound %lld, expected its first bound "
                                            "%lld",
                                            name, (long long)bound, (long long)graph->symbols.data[i].bound));
        }
    struct symbol symbol = {keep(graph, name), bound};
    if (!symbol.name)
        return GRAPHI_NONE;
    if (!array_push(&graph->symbols, symbol))
        return graph_broken(graph, fail_memory("symbol", sizeof symbol));
    return symbol_dim(graph->symbols.count - 1);
}

/* Turns user dimensions into a type; dims[0] may be a symbol. */
static graphi_status make_type(const graphi_graph *graph, const char *where, graphi_dtype dtype, int rank,
                               const int64_t *dims, struct value_type *type)
{
    *type = (struct value_type){.dtype = dtype, .rank = rank, .symbol = -1};
    if ((unsigned)dtype >= GRAPHI_DTYPES)
        return fail(GRAPHI_INVALID, where, "found element type %d, expected a graphi_dtype", (int)dtype);
    if (rank < 0 || rank > GRAPHI_MAX_RANK || (rank && !dims))
        return fail(GRAPHI_INVALID, where, "found rank %d, expected 0 to %d and as many dimensions", rank,
                    GRAPHI_MAX_RANK);
    int64_t bytes = (int64_t)graphi_dtype_size(dtype);
    for (int i = 0; i < rank; i++) {
        int64_t size = dims[i];
        if (i == 0 && size <= -2 && -2 - size < (int64_t)graph->symbols.count) {
            type->symbol = (int32_t)(-2 - size);
            size = graph->symbols.data[type->symbol].bound;
        }
        if (size < 1)
            return fail(GRAPHI_INVALID, where, "found dimension %d of size %lld, expected at least 1%s", i,
                        (long long)size, i ? "" : " or a symbol of this graph");
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > TYPE_MOST_BYTES)
            return fail(GRAPHI_INVALID, where, "found dimension %d of size %lld, expected at most 2^44 bytes in all", i,
                        (long long)size);
        type->dims[i] = size;
    }
    return GRAPHI_OK;
}

static uint64_t hash_name(const char *name) { return hash_string(HASH_START, name); }

int32_t graph_find_source(const graphi_graph *graph, const char *name)
{
    size_t seen = 0;
    for (int32_t v; (v = index_next(&graph->sources, hash_name(name), &seen)) >= 0;)
        if (strcmp(graph_value(graph, v)->name, name) == 0)
            return v;
    for (size_t i = graph->indexed; i < graph->values.count; i++) {
        const struct value *value = &graph->values.data[i];
        if (value->name && strcmp(value->name, name) == 0)
            return (int32_t)i;
    }
    return -1;
}

static bool index_sources(graphi_graph *graph)
{
    for (; graph->indexed < graph->values.count; graph->indexed++) {
        const struct value *value = &graph->values.data[graph->indexed];
        if (value->name && !index_add(&graph->sources, hash_name(value->name), (int32_t)graph->indexed))
            return false;
    }
    return true;
}

static const struct graph_output *find_output(const graphi_graph *graph, const char *name)
{
    size_t seen = 0;
    for (int32_t i; (i = index_next(&graph->output_names, hash_name(name), &seen)) >= 0;)
        if (strcmp(graph->outputs.data[i].name, name) == 0)
            return &graph->outputs.data[i];
    for (size_t i = graph->output_names.count; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.data[i].name, name) == 0)
            return &graph->outputs.data[i];
    return NULL;
}

static bool index_outputs(graphi_graph *graph)
{
    for (size_t i = graph->output_names.count; i < graph->outputs.count; i++)
        if (!index_add(&graph->output_names, hash_name(graph->outputs.data[i].name), (int32_t)i))
            return false;
    return true;
}

void graph_forget_names(graphi_graph *graph)
{
    index_free(&graph->sources);
    index_free(&graph->output_names);
    graph->indexed = 0;
}

static graphi_value push_value(graphi_graph *graph, struct value value)
{
    value.node = value.assigns = -1;
    if (!array_push(&graph->values, value))
        return graph_broken(graph, fail_memory("value", sizeof value));
    return (graphi_value)(graph->values.count - 1);
}

static void source_text(enum value_kind kind, const char *name, char *text, size_t size)
{
    snprintf(text, size, "%s '%s'", kind == VALUE_INPUT ? "input" : "parameter", name ? name : "");
}

static graphi_value named_source(graphi_graph *graph, struct value value, const char *name)
{
    char where[160];
    source_text(value.kind, name, where, sizeof where);
    if (!name || !*name)
        return graph_broken(graph, fail(GRAPHI_INVALID, where, "found an empty name, expected a unique one"));
    if (!index_sources(graph))
        return graph_broken(graph, fail_memory(where, graph->sources.capacity * sizeof *graph->sources.slots));
    if (graph_find_source(graph, name) >= 0)
        return graph_broken(graph, fail(GRAPHI_INVALID, where, "found a name already in use, expected a unique one"));
    value.name = keep(graph, name);
    if (!value.name)
        return GRAPHI_NONE;
    if (value.init.data) {
        value.data = arena_copy(&graph->arena, value.init.data, (size_t)type_bytes(&value.type));
        if (!value.data)
            return graph_broken(graph, fail_memory(where, (size_t)type_bytes(&value.type)));
        value.init.data = value.data;
    }
    id_list *list = value.kind == VALUE_INPUT ? &graph->inputs : &graph->parameters;
    if (!array_reserve(list, list->count + 1))
        return graph_broken(graph, fail_memory(where, sizeof *list->data));
    graphi_value id = push_value(graph, value);
    if (id != GRAPHI_NONE)
        list->data[list->count++] = id;
    return id;
}

graphi_value graph_input(graphi_graph *graph, const char *name, const struct value_type *type)
{
    return graph_open(graph) ? named_source(graph, (struct value){.kind = VALUE_INPUT, .type = *type}, name)
                             : GRAPHI_NONE;
}

static graphi_value typed_source(graphi_graph *graph, struct value value, const char *name, graphi_dtype dtype,
                                 int rank, const int64_t *dims)
{
    if (!graph_open(graph))
        return GRAPHI_NONE;
    char where[160];
    source_text(value.kind, name, where, sizeof where);
    graphi_status status = make_type(graph, where, dtype, rank, dims, &value.type);
    if (status == GRAPHI_OK && value.kind == VALUE_PARAMETER && value.type.symbol >= 0)
        status = fail(GRAPHI_INVALID, where, "found a symbol as dimension 0, expected a fixed size");
    return status == GRAPHI_OK ? named_source(graph, value, name) : graph_broken(graph, status);
}

graphi_value graphi_input(graphi_graph *graph, const char *name, graphi_dtype dtype, int rank, const int64_t *dims)
{
    return typed_source(graph, (struct value){.kind = VALUE_INPUT}, name, dtype, rank, dims);
}

static bool is_number(double a, double b) { return !isnan(a); }
static bool is_range(double a, double b) { return a <= b && isfinite((float)b - (float)a); }
static bool is_positive_range(double a, double b) { return a > 0 && is_range(a, b); }
static bool is_spread(double a, double b) { return b >= 0 && isfinite((float)a) && isfinite((float)b); }

/* What the kinds of initial values need of a and b; those without a row read neither. */
static const struct {
    bool (*good)(double a, double b);
    const char *expected;
} initializers[GRAPHI_INIT_LOG_UNIFORM + 1] = {
    [GRAPHI_INIT_CONSTANT] = {is_number, "a number as a"},
    [GRAPHI_INIT_UNIFORM] = {is_range, "a at most b, and finite they and b - a"},
    [GRAPHI_INIT_NORMAL] = {is_spread, "a finite a, and a finite b of 0 or more"},
    [GRAPHI_INIT_LOG_UNIFORM] = {is_positive_range, "a above 0 and at most b, and finite both"},
};

/* What no file of parameters can say would be refused when they are saved, after training. */
static graphi_status check_parameter_name(const char *name)
{
    if (strcmp(name, "__metadata__") == 0)
        return fail(GRAPHI_INVALID, "parameter",
                    "found the name '__metadata__', expected one that safetensors files allow");
    for (const char *at = name; *at;) {
        const size_t bytes = utf8_bytes(at);
        if (!bytes)
            return fail(GRAPHI_INVALID, "parameter", "found name '%s', expected UTF-8", name);
        at += bytes;
    }
    return GRAPHI_OK;
}

static graphi_status check_initializer(const graphi_initializer *init, const char *name)
{
    if ((unsigned)init->kind > GRAPHI_INIT_LOG_UNIFORM)
        return fail(GRAPHI_INVALID, "parameter", "found initializer %d of '%s', expected a graphi_init_kind",
                    (int)init->kind, name);
    if (init->data || !initializers[init->kind].good || initializers[init->kind].good(init->a, init->b))
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "parameter", "found a %g and b %g of the initializer of '%s', expected %s", init->a,
                init->b, name, initializers[init->kind].expected);
}

graphi_value graphi_parameter(graphi_graph *graph, const char *name, graphi_dtype dtype, int rank, const int64_t *dims,
                              const graphi_initializer *init)
{
    struct value value = {.kind = VALUE_PARAMETER};
    if (init)
        value.init = *init;
    if (graph_open(graph))
        graph_broken(graph, check_initializer(&value.init, name ? name : ""));
    if (graph_open(graph) && name)
        graph_broken(graph, check_parameter_name(name));
    return typed_source(graph, value, name, dtype, rank, dims);
}

graphi_value graphi_constant(graphi_graph *graph, graphi_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    if (!graph_open(graph))
        return GRAPHI_NONE;
    struct value value = {.kind = VALUE_CONSTANT};
    graphi_status status = make_type(graph, "constant", dtype, rank, dims, &value.type);
    if (status == GRAPHI_OK && value.type.symbol >= 0)
        status = fail(GRAPHI_INVALID, "constant", "found a symbol as dimension 0, expected a fixed size");
    if (status == GRAPHI_OK && !data)
        status =
            fail(GRAPHI_INVALID, "constant", "found no data, expected %lld bytes", (long long)type_bytes(&value.type));
    if (status == GRAPHI_OK) {
        value.data = arena_copy(&graph->arena, data, (size_t)type_bytes(&value.type));
        if (!value.data)
            status = fail_memory("constant", (size_t)type_bytes(&value.type));
    }
    return status == GRAPHI_OK ? push_value(graph, value) : graph_broken(graph, status);
}

void graphi_scope(graphi_graph *graph, const char *scope)
{
    if (!graph_open(graph))
        return;
    const char *copy = scope && *scope ? keep(graph, scope) : "";
    if (copy)
        graph->scope = copy;
}

static graphi_status check_value(const graphi_graph *graph, const char *where, graphi_value value)
{
    if (value < 0 || (size_t)value >= graph->values.count)
        return fail(GRAPHI_INVALID, where, "found value %d, expected a value of this graph", value);
    return GRAPHI_OK;
}

void graphi_output(graphi_graph *graph, const char *name, graphi_value value)
{
    if (!graph_open(graph))
        return;
    char where[160];
    snprintf(where, sizeof where, "output '%s'", name ? name : "");
    graphi_status status = check_value(graph, where, value);
    if (status == GRAPHI_OK && (!name || !*name))
        status = fail(GRAPHI_INVALID, where, "found an empty name, expected a unique one");
    if (status == GRAPHI_OK && !index_outputs(graph))
        status = fail_memory(where, graph->output_names.capacity * sizeof *graph->output_names.slots);
    if (status == GRAPHI_OK && find_output(graph, name))
        status = fail(GRAPHI_INVALID, where, "found a name already in use, expected a unique one");
    if (status != GRAPHI_OK) {
        graph_broken(graph, status);
        return;
    }
    struct graph_output output = {keep(graph, name), value};
    if (output.name && !array_push(&graph->outputs, output))
        graph_broken(graph, fail_memory(where, sizeof output));
}

void graphi_freeze(graphi_graph *graph, graphi_value parameter)
{
    if (!graph_open(graph))
        return;
    graphi_status status = check_value(graph, "freeze", parameter);
    if (status == GRAPHI_OK && graph_value(graph, parameter)->kind != VALUE_PARAMETER)
        status = fail(GRAPHI_INVALID, "freeze", "found value %d, expected a parameter", parameter);
    if (status == GRAPHI_OK)
        graph->values.data[parameter].frozen = true;
    graph_broken(graph, status);
}

void graphi_multiply(graphi_graph *graph, graphi_value parameter, double rate, double decay)
{
    if (!graph_open(graph))
        return;
    graphi_status status = check_value(graph, "multiply", parameter);
    if (status == GRAPHI_OK && graph_value(graph, parameter)->kind != VALUE_PARAMETER)
        status = fail(GRAPHI_INVALID, "multiply", "found value %d, expected a parameter", parameter);
    if (status == GRAPHI_OK && !(rate >= 0 && decay >= 0 && isfinite(rate) && isfinite(decay)))
        status = fail(GRAPHI_INVALID, "multiply", "found multipliers %g and %g, expected finite numbers of at least 0",
                      rate, decay);
    if (status == GRAPHI_OK) {
        struct value *value = &graph->values.data[parameter];
        value->multiplied = true;
        value->rate = rate;
        value->decay = decay;
    }
    graph_broken(graph, status);
}

graphi_value graphi_find(const graphi_graph *graph, const char *name)
{
    if (!graph || !name)
        return GRAPHI_NONE;
    const struct graph_output *output = find_output(graph, name);
    return output ? output->value : graph_find_source(graph, name);
}

graphi_status graphi_value_type(const graphi_graph *graph, graphi_value value, graphi_dtype *dtype, int *rank,
                                int64_t *dims)
{
    if (!graph)
        return fail(GRAPHI_INVALID, "value", "found no graph, expected one");
    GIVEN(dtype);
    GIVEN(rank);
    GIVEN(dims);
    TRY(check_value(graph, "value", value));
    const struct value_type *type = &graph_value(graph, value)->type;
    *dtype = type->dtype;
    *rank = type->rank;
    memcpy(dims, type->dims, sizeof *dims * (size_t)type->rank);
    return GRAPHI_OK;
}
