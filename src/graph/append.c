/* SPDX-License-Identifier: Apache-2.0 */
/* Appending one operation: its inputs and attributes are checked against the kind's table, missing attributes take
 * their defaults, the shape rule gives the outputs. Nothing of a failed call stays but some bytes in the arena. */
#include "graph/graph.h"

#include "base/hash.h"
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

/* Everything of one call, with small buffers so that the usual node costs no allocation but its place in the graph. */
enum { FEW = 16 };
struct call {
    struct node node;
    const struct value_type **in, *few_in[FEW];
    struct value_type *out, few_out[FEW];
};

static void call_fini(struct call *call)
{
    if (call->in != call->few_in)
        mem_free(call->in);
    if (call->out != call->few_out)
        mem_free(call->out);
}

static graphi_status take_inputs(graphi_graph *graph, const char *where, struct call *call, const graphi_value *input)
{
    struct node *node = &call->node;
    const struct op_kind *kind = node->kind;
    int n = node->inputs;
    if (n < kind->min_inputs || (kind->max_inputs >= 0 && n > kind->max_inputs)) {
        if (kind->max_inputs < 0)
            return fail(GRAPHI_INVALID, where, "found %d inputs, expected at least %d", n, kind->min_inputs);
        if (kind->max_inputs == kind->min_inputs)
            return fail(GRAPHI_INVALID, where, "found %d inputs, expected %d", n, kind->min_inputs);
        return fail(GRAPHI_INVALID, where, "found %d inputs, expected %d to %d", n, kind->min_inputs, kind->max_inputs);
    }
    node->input = arena_copy(&graph->arena, input, sizeof *input * (size_t)n);
    if (n > FEW)
        call->in = mem_zalloc_array((size_t)n, sizeof *call->in);
    if (!node->input || !call->in)
        return fail_memory(where, sizeof *call->in * (size_t)n);
    for (int i = 0; i < n; i++) {
        if (input[i] < 0 || (size_t)input[i] >= graph->values.count)
            return fail(GRAPHI_INVALID, where, "found value %d as input %d, expected a value of this graph", input[i],
                        i);
        call->in[i] = &graph_value(graph, input[i])->type;
        if (call->in[i]->symbol >= 0 && !(kind->flags & OP_BOUNDED)) {
            char type[96];
            type_text(call->in[i], type, sizeof type);
            return fail(GRAPHI_UNSUPPORTED, where, "found input %d of type %s, expected fixed sizes", i, type);
        }
    }
    return GRAPHI_OK;
}

static const char *const type_names[] = {"an integer", "a number", "a list of integers", "an unknown type"};

/* One attribute as given, copied into the arena; integers are accepted where numbers are asked for. */
static graphi_status take_attribute(graphi_graph *graph, const char *where, const struct op_attribute *schema,
                                    const graphi_attribute *given, graphi_attribute *out)
{
    bool promoted = schema->type == GRAPHI_FLOAT && given->type == GRAPHI_INT;
    if (given->type != schema->type && !promoted)
        return fail(GRAPHI_INVALID, where, "found %s as attribute '%s', expected %s", type_names[given->type & 3],
                    schema->name, type_names[schema->type]);
    *out = (graphi_attribute){.name = schema->name, .type = schema->type, .i = given->i};
    out->f = promoted ? (double)given->i : given->f;
    if (promoted)
        out->i = 0;
    if (schema->type == GRAPHI_INTS) {
        if (given->count < 0 || (given->count && !given->ints))
            return fail(GRAPHI_INVALID, where, "found no integers in attribute '%s', expected %d", schema->name,
                        given->count);
        out->count = given->count;
        out->ints = arena_copy(&graph->arena, given->ints, sizeof *given->ints * (size_t)given->count);
        if (!out->ints)
            return fail_memory(where, sizeof *given->ints * (size_t)given->count);
    }
    return GRAPHI_OK;
}

static int schema_find(const struct op_attribute *schema, const char *name)
{
    for (int i = 0; schema && schema[i].name; i++)
        if (strcmp(schema[i].name, name) == 0)
            return i;
    return -1;
}

/* How many nodes back a twin is looked for: the cells of four layers and more. */
enum { NEAR = 128 };

/* Most nodes of an unrolled network have the attributes of one before them, 48 bytes each: kept once. Nobody changes
 * them. */
static void share_attributes(graphi_graph *graph, struct node *node, struct arena_mark before)
{
    for (size_t i = graph->nodes.count; i > 0 && i + NEAR > graph->nodes.count; i--) {
        const struct node *twin = &graph->nodes.data[i - 1];
        if (twin->kind != node->kind || !attributes_equal(twin, node))
            continue;
        node->attribute = twin->attribute;
        arena_rewind(&graph->arena, before);
        return;
    }
}

static graphi_status take_attributes(graphi_graph *graph, const char *where, struct node *node, int count,
                                     const graphi_attribute *attribute)
{
    struct arena_mark before = arena_mark(&graph->arena);
    const struct op_attribute *schema = node->kind->attributes;
    while (schema && schema[node->attributes].name)
        node->attributes++;
    node->attribute = arena_alloc(&graph->arena, sizeof *node->attribute * (size_t)node->attributes);
    if (!node->attribute)
        return fail_memory(where, sizeof *node->attribute * (size_t)node->attributes);
    for (int i = 0; i < count; i++) {
        int at = attribute[i].name ? schema_find(schema, attribute[i].name) : -1;
        if (at < 0)
            return fail(GRAPHI_INVALID, where, "found attribute '%s', expected one that the operation has",
                        attribute[i].name ? attribute[i].name : "");
        if (node->attribute[at].name)
            return fail(GRAPHI_INVALID, where, "found attribute '%s' twice, expected it once", attribute[i].name);
        TRY(take_attribute(graph, where, &schema[at], &attribute[i], &node->attribute[at]));
    }
    for (int i = 0; i < node->attributes; i++) {
        if (node->attribute[i].name)
            continue;
        if (schema[i].required)
            return fail(GRAPHI_INVALID, where, "found no attribute '%s', expected it", schema[i].name);
        node->attribute[i] = (graphi_attribute){.name = schema[i].name, .type = schema[i].type, .i = schema[i].i,
                                                .f = schema[i].f};
    }
    share_attributes(graph, node, before);
    return GRAPHI_OK;
}

/* Attributes name symbols by number; whoever runs the plan indexes with it. */
static bool symbol_fits(const graphi_graph *graph, const struct value_type *type)
{
    return type->symbol < 0 || (type->rank && (size_t)type->symbol < graph->symbols.count &&
                                type->dims[0] % graph->symbols.data[type->symbol].bound == 0);
}

static graphi_status take_shapes(const graphi_graph *graph, const char *where, struct call *call)
{
    struct node *node = &call->node;
    int64_t outputs = node->kind->outputs >= 0 ? node->kind->outputs : attr_int(node, "outputs");
    if (outputs < 1 || outputs > 1 << 16)
        return fail(GRAPHI_INVALID, where, "found %lld outputs, expected 1 to 65536", (long long)outputs);
    node->outputs = (int32_t)outputs;
    if (outputs > FEW)
        call->out = mem_zalloc_array((size_t)outputs, sizeof *call->out);
    if (!call->out)
        return fail_memory(where, sizeof *call->out * (size_t)outputs);
    for (int i = 0; i < node->outputs; i++)
        call->out[i] = (struct value_type){.symbol = -1};
    TRY(node->kind->shape(&(struct shape_call){where, graph, node, call->in, call->out}));
    for (int i = 0; i < node->outputs; i++) {
        int64_t bytes = (int64_t)graphi_dtype_size(call->out[i].dtype);
        bool good = call->out[i].rank >= 0 && call->out[i].rank <= GRAPHI_MAX_RANK;
        for (int d = 0; good && d < call->out[i].rank; d++)
            good = call->out[i].dims[d] >= 1 && !__builtin_mul_overflow(bytes, call->out[i].dims[d], &bytes) &&
                   bytes <= TYPE_MOST_BYTES;
        if (good && !symbol_fits(graph, &call->out[i])) {
            const int32_t symbol = call->out[i].symbol;
            const struct symbol *known = symbol < (int32_t)graph->symbols.count ? &graph->symbols.data[symbol] : NULL;
            char text[128];
            type_text(&call->out[i], text, sizeof text);
            return fail(GRAPHI_INVALID, where,
                        "found output %d of type %s that follows symbol '%s', expected a multiple of its bound %lld as "
                        "dimension 0",
                        i, text, known ? known->name : "", known ? (long long)known->bound : 0);
        }
        if (good)
            continue;
        char text[128];
        call->out[i].rank = call->out[i].rank > GRAPHI_MAX_RANK ? GRAPHI_MAX_RANK : call->out[i].rank;
        type_text(&call->out[i], text, sizeof text);
        return fail(GRAPHI_INVALID, where,
                    "found output %d of type %s, expected sizes of at least 1 and at most 2^44 bytes "
                    "in all",
                    i, text);
    }
    return GRAPHI_OK;
}

/* Room is made first, so that a failed allocation leaves node and values both out. */
static graphi_status commit(graphi_graph *graph, const char *where, struct call *call)
{
    struct node *node = &call->node;
    if (!array_reserve(&graph->nodes, graph->nodes.count + 1) ||
        !array_reserve(&graph->values, graph->values.count + (size_t)node->outputs))
        return fail_memory(where, sizeof *node);
    node->output = (int32_t)graph->values.count;
    for (int i = 0; i < node->outputs; i++)
        graph->values.data[graph->values.count++] =
            (struct value){.kind = VALUE_RESULT, .type = call->out[i], .node = (int32_t)graph->nodes.count, .output = i,
                           .assigns = -1};
    graph->nodes.data[graph->nodes.count++] = *node;
    return GRAPHI_OK;
}

static graphi_status keep_regions(graphi_graph *graph, const char *where, struct node *node, int regions,
                                  graphi_graph *const *region)
{
    if (!regions)
        return GRAPHI_OK;
    node->region = arena_copy(&graph->arena, region, sizeof *region * (size_t)regions);
    if (!node->region)
        return fail_memory(where, sizeof *region * (size_t)regions);
    node->regions = regions;
    return GRAPHI_OK;
}

graphi_value graph_append(graphi_graph *graph, const struct op_kind *kind, int inputs, const graphi_value *input,
                          int attributes, const graphi_attribute *attribute, int regions, graphi_graph *const *region)
{
    graphi_status status = graph->status;
    int32_t id = (int32_t)graph->nodes.count;
    struct call call = {.node = {.kind = kind, .inputs = inputs, .scope = graph->scope, .backward = graph->backward,
                                 .update = graph->updating, .order = id, .successor = -1,
                                 .origin = graph->rewritten ? -1 : id,
                                 .key = hash_u64(hash_string(HASH_START, graph->scope), (uint64_t)id)}};
    call.in = call.few_in;
    call.out = call.few_out;
    if (status == GRAPHI_OK) {
        char where[160];
        snprintf(where, sizeof where, *graph->scope ? "%s '%.100s' (node %d)" : "%s%.0s (node %d)", kind->name,
                 graph->scope, id);
        status = keep_regions(graph, where, &call.node, regions, region);
        if (status == GRAPHI_OK)
            status = take_inputs(graph, where, &call, input);
        if (status == GRAPHI_OK)
            status = take_attributes(graph, where, &call.node, attributes, attribute);
        if (status == GRAPHI_OK)
            status = take_shapes(graph, where, &call);
        if (status == GRAPHI_OK)
            status = commit(graph, where, &call);
    }
    call_fini(&call);
    for (int i = 0; status == GRAPHI_OK && i < regions; i++) {
        region[i]->part = true;
        if (graph->depth <= region[i]->depth)
            graph->depth = region[i]->depth + 1;
    }
    if (status == GRAPHI_OK)
        return graph->nodes.data[id].output;
    for (int i = 0; i < regions; i++)
        graphi_graph_destroy(region[i]);
    return graph_broken(graph, status);
}

graphi_value graphi_op(graphi_graph *graph, const char *kind, int inputs, const graphi_value *input, int attributes,
                       const graphi_attribute *attribute)
{
    if (!graph_open(graph))
        return GRAPHI_NONE;
    const struct op_kind *found = kind ? op_find(kind) : NULL;
    if (!found)
        return graph_broken(graph, fail(GRAPHI_INVALID, "operation",
                                        "found kind '%s', expected one of docs/operations.md", kind ? kind : ""));
    if (inputs < 0 || (inputs && !input) || attributes < 0 || (attributes && !attribute))
        return graph_broken(graph, fail(GRAPHI_INVALID, kind, "found %d inputs and %d attributes without their arrays, "
                                        "expected arrays", inputs, attributes));
    if (found && found->role == IS_ASSIGN) /* nothing would say whose storage the result takes over */
        return graph_broken(graph, fail(GRAPHI_INVALID, kind, "found it as an operation, expected graphi_assign"));
    return graph_append(graph, found, inputs, input, attributes, attribute, 0, NULL);
}

graphi_status graph_after(graphi_graph *graph, int32_t first, int32_t then)
{
    struct node *node = &graph->nodes.data[then];
    /* Grown by doubling at powers of two: the old list stays in the arena. */
    if ((node->afters & (node->afters - 1)) == 0) {
        int32_t *grown = arena_alloc(&graph->arena, sizeof *grown * (size_t)(node->afters ? node->afters * 2 : 1));
        if (!grown)
            return fail_memory("edge", sizeof *grown * (size_t)node->afters);
        if (node->afters)
            memcpy(grown, node->after, sizeof *grown * (size_t)node->afters);
        node->after = grown;
    }
    node->after[node->afters++] = first;
    return GRAPHI_OK;
}
