/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph to its compiled form: clone, keep what is wanted, passes, places and kernels, tasks and memory, classes.
 * The user's graph is only read; the compiled form borrows its names and constants. Usual time: 10 ms for 1,000
 * operations. */
#include "engine/compile/compile.h"

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/ancestors.h"
#include "engine/compile/bind.h"
#include "engine/compile/classes.h"
#include "engine/compile/layout.h"
#include "engine/compile/ports.h"
#include "engine/compile/prepare.h"
#include "engine/compile/rounding.h"
#include "engine/compile/tasks.h"
#include "graph/op.h"
#include "kernels/conv_choice.h"
#include "machine/machine.h"
#include "passes/passes.h"
#include "passes/sequences.h"

#include <stdio.h>
#include <string.h>

/* May the bytes of an output be set, or written by another run, between an execution and graphi_run_get? Those of a
 * parameter without update may where that is what the user asked for, and not what passes made of a copy. */
static bool may_be_set_since(const graphi_graph *graph, const struct graph_output *output, const graphi_graph *source)
{
    const struct value *value = graph_value(graph, output->value);
    if (value->kind == VALUE_PARAMETER && !value->assigned)
        return graph_value(source, graphi_find(source, output->name))->kind != VALUE_PARAMETER;
    return value->kind == VALUE_INPUT || value->assigns >= 0 || value->assigned;
}

/* An output that is a parameter with an update is the old content, as for every other reader, one that is the result of
 * the update is what this execution wrote, and one that is an input is what it read, not what was set since: a copy
 * keeps it, of any type. */
static graphi_status keep_old_outputs(graphi_graph *graph, const graphi_graph *source)
{
    for (size_t i = 0; i < graph->outputs.count; i++) {
        int32_t v = graph->outputs.data[i].value;
        if (!may_be_set_since(graph, &graph->outputs.data[i], source))
            continue;
        const struct value_type type = graph_value(graph, v)->type;
        graphi_attribute shape = {.name = "shape", .type = GRAPHI_INTS, .ints = type.dims, .count = type.rank};
        graphi_value copy = graph_append(graph, op_find("reshape"), 1, &v, 1, &shape, 0, NULL);
        TRY(graphi_graph_status(graph));
        const char *name = graph->outputs.data[i].name;
        char *scope = arena_alloc(&graph->arena, strlen(name) + sizeof "output ");
        if (!scope)
            return fail_memory("plan", strlen(name));
        snprintf(scope, strlen(name) + sizeof "output ", "output %s", name);
        graph->nodes.data[graph_value(graph, copy)->node].scope = scope;
        graph->outputs.data[i].value = copy;
    }
    return GRAPHI_OK;
}

static graphi_status rewrite(struct compiled *c, const graphi_plan_options *options)
{
    struct text disable = {0};
    rounding_passes(c->rounding, options->disable, &disable);
    /* Of the last-level cache half is left to what goes with the weights, and to others on the machine. */
    struct pass_options passes_options = {.disable = disable.data,
                                          .isa = c->isa,
                                          .multiplicands = options->precision,
                                          .conv_error = c->conv_error,
                                          .cores = c->machine->cores,
                                          .sequences = c->sequences,
                                          .weights = options->weights,
                                          .rounding = options->allow_rounding,
                                          .level_2 = c->machine->l2_bytes,
                                          .cache = c->machine->l3_bytes / 2};
    graphi_status status = disable.broken ? fail_memory("plan", disable.count) : GRAPHI_OK;
    if (!status)
        status = passes_select(c->graph, options->outputs, !options->no_updates && !options->outputs);
    if (!status)
        status = passes_run(c->graph, &passes_options);
    text_free(&disable);
    return status ? status : keep_old_outputs(c->graph, c->source);
}

/* Beyond, the relation would take more than 100 MB; in-place work is then found for direct neighbours only. */
enum { MOST_RELATED_NODES = 30000 };

/* Ancestors of nodes by data and `after` edges. */
static graphi_status node_ancestors(const graphi_graph *graph, struct ancestors **out)
{
    edge_array edges = {0};
    int32_t *begin = NULL, *list = NULL;
    bool enough = true;
    for (int32_t n = 0; n < (int32_t)graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        for (int i = 0; i < node->inputs; i++) {
            int32_t producer = graph_value(graph, node->input[i])->node;
            if (producer >= 0)
                enough = enough && array_push(&edges, ((struct edge){producer, n}));
        }
        for (int i = 0; i < node->afters; i++)
            enough = enough && array_push(&edges, ((struct edge){node->after[i], n}));
    }
    edges_sort(&edges);
    *out = mem_zalloc(sizeof **out);
    bool *none = graph->nodes.count > MOST_RELATED_NODES ? mem_zalloc_array(graph->nodes.count, sizeof *none) : NULL;
    enough = enough && (none || graph->nodes.count <= MOST_RELATED_NODES);
    graphi_status status = enough && *out ? edges_successors(&edges, (int)graph->nodes.count, &begin, &list)
                                          : fail_memory("plan", edges.count * sizeof(struct edge));
    if (!status)
        status = ancestors_create((int)graph->nodes.count, begin, list, none, *out);
    if (status) {
        mem_free(*out);
        *out = NULL;
    }
    mem_free(begin);
    mem_free(list);
    mem_free(none);
    array_free(&edges);
    return status;
}

static void forget_tasks(struct compiled *c)
{
    for (int32_t t = 0; c->task && !c->params && t < c->tasks; t++)
        kernel_fini(&c->task[t].kernel);
    for (size_t i = 0; i < c->prepared.count; i++)
        kernel_fini(&c->prepared.data[i].bound.kernel);
    mem_free(c->params);
    mem_free(c->task);
    mem_free(c->constants);
    array_free(&c->messages);
    mem_free(c->message_of);
    c->message_of = NULL;
    c->waits_count = 0;
    c->params = NULL;
    c->task = NULL;
    c->constants = NULL;
    c->tasks = 0;
    c->prepared.count = c->sources.count = c->arguments.count = 0;
    c->constant_bytes = c->packed_bytes = 0;
}

static graphi_status build(struct compiled *c, struct layout *layout)
{
    struct bound *bound = NULL;
    size_t nodes = c->graph->nodes.count;
    TRY(bind_nodes(layout, &bound));
    graphi_status status = bind_prepared(layout, bound);
    for (size_t n = 0; !status && n < nodes; n++)
        if (layout->role[n] == ROLE_TASK)
            status = bind_arguments(c, &bound[n]);
    if (!status)
        status = plan_tasks(c, layout, bound);
    bound_free(bound, nodes);
    return status;
}

static void note_direct(struct compiled *c, int32_t id)
{
    const struct buffer *buffer = &c->buffers.data[id];
    if (buffer->kind == BUFFER_PARAMETER)
        c->parameters.data[buffer->source].direct = true;
}

static void note_parameters(struct compiled *c)
{
    for (size_t p = 0; p < c->parameters.count; p++) {
        c->updates = c->updates || c->parameters.data[p].assigned;
        c->parameters.data[p].direct = c->parameters.data[p].assigned;
    }
    for (int32_t t = 0; t < c->tasks; t++)
        for (int i = 0; i < c->task[t].inputs + c->task[t].outputs; i++)
            note_direct(c, c->arguments.data[c->task[t].argument + i].buffer);
    for (size_t i = 0; i < c->outputs.count; i++)
        note_direct(c, c->place[c->outputs.data[i].value].buffer);
}

static graphi_status compile(struct compiled *c)
{
    struct layout layout = {.compiled = c};
    TRY(ports_find(c));
    graphi_status status = node_ancestors(c->graph, &layout.ancestors);
    if (!status)
        status = build(c, &layout);
    if (layout.cycle) {
        forget_tasks(c);
        layout.no_elision = true;
        status = build(c, &layout);
    }
    if (!status)
        note_parameters(c);
    for (int32_t t = 0; !status && t < c->tasks; t++)
        c->packs += (graph_node(c->graph, c->task[t].node)->kind->flags & OP_PACK) != 0;
    layout_free(&layout);
    return status ? status : classes_find(c);
}

void compiled_release(struct compiled *c)
{
    /* The last release sees what other threads did with the plan: acq_rel pairs with itself. */
    if (!c || atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1)
        return;
    forget_tasks(c);
    graphi_graph_destroy(c->graph);
    for (size_t i = 0; i < sizeof c->string / sizeof *c->string; i++)
        mem_free(c->string[i]);
    array_free(&c->buffers);
    array_free(&c->arguments);
    array_free(&c->prepared);
    array_free(&c->sources);
    array_free(&c->parameters);
    array_free(&c->inputs);
    array_free(&c->outputs);
    index_free(&c->input_names);
    index_free(&c->output_names);
    mem_free(c->place);
    mem_free(c->edges_begin);
    mem_free(c->edges);
    mem_free(c->pending);
    mem_free(c->flags);
    mem_free(c->scalability);
    mem_free(c->shares);
    mem_free(c->kind);
    mem_free(c->curve_of);
    mem_free(c->class_key);
    mem_free(c->class_task);
    mem_free(c->class_tasks);
    mem_free(c->largest_input_from);
    mem_free(c);
}

/* The best that this CPU has, for a described machine also no better than its own. */
static graphi_status choose_isa(const graphi_machine *machine, const char *name, enum isa *isa)
{
    enum isa best = isa_detect(), own;
    bool lesser = !machine->captured && isa_parse(machine->isa, &own) && own < best;
    *isa = best = lesser ? own : best;
    if (!name)
        return GRAPHI_OK;
    if (!isa_parse(name, isa))
        return fail(GRAPHI_USAGE, "plan", "found instruction set '%s', expected plain, avx2, avx512 or bf16", name);
    return *isa <= best ? GRAPHI_OK
                        : fail(GRAPHI_UNSUPPORTED, "plan",
                               "found instruction set %s asked for, expected at most %s, %s%.60s", name, isa_name(best),
                               lesser ? "that of " : "this CPU's", lesser ? machine->name : "");
}

/* Whatever the compiled form depends on beside graph, machine and version; the same however it was asked for. */
static uint64_t hash_options(const struct compiled *c)
{
    const graphi_plan_options *o = &c->options;
    uint64_t hash = hash_u64(hash_u64(HASH_START, (uint64_t)o->precision), c->rounding);
    double conv_error = c->conv_error == conv_error_budget(0, o->precision) ? 0 : c->conv_error;
    hash = hash_bytes(hash, &conv_error, sizeof conv_error);
    hash = hash_u64(hash, (uint64_t)(o->check_numerics | c->updates << 1) | (uint64_t)o->streaming << 2);
    hash = hash_u64(hash_u64(hash, (uint64_t)c->isa), passes_mask(o->disable));
    for (size_t i = 0; i < c->outputs.count; i++)
        hash = hash_string(hash, c->outputs.data[i].name);
    if (o->sequences)
        hash = hash_string(hash, o->sequences);
    if (o->weights)
        hash = hash_u64(hash, (uint64_t)o->weights);
    return hash_u64(hash, (uint64_t)o->arena_target);
}

/* The options with strings of their own. */
static graphi_status keep_options(struct compiled *c, const graphi_plan_options *options)
{
    const char **string[] = {&c->options.isa, &c->options.disable, &c->options.outputs, &c->options.sequences};
    c->options = *options;
    for (size_t i = 0; i < sizeof string / sizeof *string; i++)
        if (*string[i] && !(*string[i] = c->string[i] = mem_string(*string[i])))
            return fail_memory("plan", sizeof *options);
    c->conv_error = rounding_conv_error(c->rounding, options->conv_error);
    c->sequences = rounding_sequences(c->rounding, c->options.sequences);
    return GRAPHI_OK;
}

static graphi_status check_options(const graphi_plan_options *options)
{
    if (options->disable)
        TRY(graphi_pass_check(options->disable));
    if ((unsigned)options->streaming > GRAPHI_STREAM_NEVER)
        return fail(GRAPHI_INVALID, "plan options", "found %d as streaming, expected by size, always or never",
                    (int)options->streaming);
    if (options->precision != GRAPHI_F32 && options->precision != GRAPHI_BF16)
        return fail(GRAPHI_INVALID, "plan options", "found %s as precision, expected float32 or bfloat16",
                    graphi_dtype_name(options->precision));
    if (options->conv_error != 0 && !(options->conv_error >= 1 && options->conv_error <= 1e6))
        return fail(GRAPHI_INVALID, "plan options", "found %g as conv_error, expected 0 or 1 to 1e6",
                    options->conv_error);
    if (options->weights != GRAPHI_F32 && options->weights != GRAPHI_BF16)
        return fail(GRAPHI_INVALID, "plan options", "found %s as weights, expected float32 or bfloat16",
                    graphi_dtype_name(options->weights));
    TRY(sequences_parse(options->sequences, options->allow_rounding, &(struct sequences){0}));
    if (options->arena_target < 0)
        return fail(GRAPHI_INVALID, "plan options", "found %lld as arena_target, expected 0 or more bytes",
                    (long long)options->arena_target);
    return GRAPHI_OK;
}

static graphi_status create(const graphi_graph *graph, const graphi_machine *machine,
                            const graphi_plan_options *options, uint32_t rounding, struct compiled **out)
{
    int64_t begin = clock_ns();
    struct compiled *c = mem_zalloc(sizeof *c);
    if (!c)
        return fail_memory("plan", sizeof *c);
    atomic_init(&c->references, 1);
    c->machine = machine;
    c->source = graph;
    c->rounding = rounding;
    graphi_graph_info graph_info;
    graphi_graph_get_info(graph, &graph_info);
    c->graph_hash = graph_info.hash;
    c->sum_intermediate_bytes = graph_info.intermediate_bytes;
    graphi_status status = c->graph_hash ? keep_options(c, options) : fail_memory("plan", graph->values.count);
    if (!status)
        status = choose_isa(machine, options->isa, &c->isa);
    if (!status)
        status = graph_clone(graph, &c->graph);
    if (!status)
        c->graph->rewritten = true;
    if (!status)
        status = rewrite(c, options);
    if (!status)
        status = compile(c);
    if (status) {
        compiled_release(c);
        return status;
    }
    c->hash = hash_options(c);
    c->compile_ms = (double)(clock_ns() - begin) / 1e6;
    *out = c;
    return GRAPHI_OK;
}

graphi_status compiled_create(const graphi_graph *graph, const graphi_machine *machine,
                              const graphi_plan_options *options, uint32_t rounding, struct compiled **out)
{
    TRY(graphi_graph_status(graph));
    TRY(check_options(options));
    struct float_mode mode = float_mode_enter(); /* constants are folded and packed here */
    graphi_status status = create(graph, machine, options, rounding, out);
    float_mode_leave(mode);
    return status;
}

struct compiled *compiled_keep(struct compiled *c)
{
    /* relaxed: the caller holds one, so it cannot be the last */
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
    return c;
}

bool compiled_source_unchanged(const struct compiled *c)
{
    return c->source->status == GRAPHI_OK && graph_hash(c->source) == c->graph_hash;
}
