/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a stored plan, in words (target.h). Usual size: a dozen facts, half a kilobyte. */
#include "engine/show/target.h"

#include "base/isa.h"
#include "base/status.h"
#include "engine/compile/compile.h"
#include "kernels/conv_choice.h"
#include "machine/machine.h"
#include "passes/passes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOLD_VALUES = 3 }; /* of a graph's inputs or outputs */

/* What a fact is about. A plan may be for another machine than the one that it is compiled for (simulation). */
struct target {
    const struct compiled *compiled;
    const graphi_machine *machine;
};

static void add_value(struct text *text, const graphi_graph *graph, const char *name, int32_t value, size_t index)
{
    char type[128];
    type_text(&graph_value(graph, value)->type, type, sizeof type);
    text_add(text, "%s%s %s", index ? ", " : "", name, type);
}

static void add_more(struct text *text, size_t count)
{
    if (count > TOLD_VALUES)
        text_add(text, ", %zu more", count - TOLD_VALUES);
}

static void tell_inputs(const struct target *w, struct text *text)
{
    const graphi_graph *graph = w->compiled->source;
    for (size_t i = 0; i < graph->inputs.count && i < TOLD_VALUES; i++)
        add_value(text, graph, graph_value(graph, graph->inputs.data[i])->name, graph->inputs.data[i], i);
    add_more(text, graph->inputs.count);
}

static void tell_outputs(const struct target *w, struct text *text)
{
    const graphi_graph *graph = w->compiled->source;
    for (size_t i = 0; i < graph->outputs.count && i < TOLD_VALUES; i++)
        add_value(text, graph, graph->outputs.data[i].name, graph->outputs.data[i].value, i);
    add_more(text, graph->outputs.count);
}

static void tell_parameters(const struct target *w, struct text *text)
{
    const graphi_graph *graph = w->compiled->source;
    int64_t numbers = 0, assigned = 0;
    for (size_t i = 0; i < graph->parameters.count; i++) {
        const struct value *value = graph_value(graph, graph->parameters.data[i]);
        numbers += type_count(&value->type);
        assigned += value->assigned;
    }
    text_add(text, "%zu of %" PRId64 " numbers, %" PRId64 " updated", graph->parameters.count, numbers, assigned);
}

static void tell_nodes(const struct target *w, struct text *text)
{
    text_add(text, "%zu", w->compiled->source->nodes.count);
}

static void tell_processor(const struct target *w, struct text *text)
{
    const graphi_machine *m = w->machine;
    text_add(text, "%s%s, %s", m->captured ? "" : "described: ", *m->cpu ? m->cpu : m->name, m->isa);
}

static void tell_cores(const struct target *w, struct text *text)
{
    const graphi_machine *m = w->machine;
    text_add(text, "%d in %d tiles and %d NUMA nodes, %d siblings", m->cores, m->tiles, m->numa_nodes, m->siblings);
}

static void tell_caches(const struct target *w, struct text *text)
{
    const graphi_machine *m = w->machine;
    text_add(text, "%" PRId64 ", %" PRId64 " and %" PRId64 " KiB", m->l1_bytes >> 10, m->l2_bytes >> 10,
             m->l3_bytes >> 10);
}

static void tell_isa(const struct target *w, struct text *text) { text_add(text, "%s", isa_name(w->compiled->isa)); }

static void tell_precision(const struct target *w, struct text *text)
{
    text_add(text, "%s", graphi_dtype_name(w->compiled->options.precision));
}

static void tell_conv_error(const struct target *w, struct text *text)
{
    text_add(text, "%g", conv_error_budget(w->compiled->conv_error, w->compiled->options.precision));
}

/* Those that are off though they are usually on, and the other way round. */
static void tell_passes(const struct target *w, struct text *text)
{
    bool any = false;
    for (const struct pass *pass = passes; pass->name; pass++) {
        const bool on = pass_enabled(pass, w->compiled->options.disable);
        if (on == pass_enabled(pass, NULL))
            continue;
        text_add(text, "%s%s%s", any ? ", " : "", on ? "+" : "", pass->name);
        any = true;
    }
    if (!any)
        text_add(text, "none");
}

static void tell_computed(const struct target *w, struct text *text)
{
    const struct compiled *c = w->compiled;
    for (size_t i = 0; i < c->outputs.count && i < TOLD_VALUES; i++)
        text_add(text, "%s%s", i ? ", " : "", c->outputs.data[i].name);
    add_more(text, c->outputs.count);
    text_add(text, c->updates ? ", and updates" : ", no updates");
}

static void tell_streaming(const struct target *w, struct text *text)
{
    static const char *const names[] = {[GRAPHI_STREAM_BY_SIZE] = "where it pays", [GRAPHI_STREAM_ALWAYS] = "always",
                                        [GRAPHI_STREAM_NEVER] = "never"};
    text_add(text, "%s", names[w->compiled->options.streaming]);
}

static void tell_checks(const struct target *w, struct text *text)
{
    text_add(text, w->compiled->options.check_numerics ? "for NaN and infinities" : "none");
}

static void tell_arena(const struct target *w, struct text *text)
{
    if (w->compiled->options.arena_target)
        text_add(text, "%" PRId64, w->compiled->options.arena_target);
    else
        text_add(text, "as planned");
}

/* The hash that decides on a fact: the member of the file that has it, and what differs where it does. */
enum hashed { GRAPH, MACHINE, OPTIONS };
static const struct {
    const char *key, *differs;
} hashes[] = {
    [GRAPH] = {"graph", "another graph"},
    [MACHINE] = {"machine", "another machine"},
    [OPTIONS] = {"options", "other options"},
};

/* In the order in which differences are told. */
static const struct fact {
    enum hashed of;
    const char *name;
    void (*tell)(const struct target *target, struct text *text);
} facts[] = {
    {GRAPH, "inputs", tell_inputs},
    {GRAPH, "outputs", tell_outputs},
    {GRAPH, "parameters", tell_parameters},
    {GRAPH, "nodes", tell_nodes},
    {MACHINE, "processor", tell_processor},
    {MACHINE, "cores", tell_cores},
    {MACHINE, "caches", tell_caches},
    {OPTIONS, "computed", tell_computed},
    {OPTIONS, "instruction set", tell_isa},
    {OPTIONS, "precision", tell_precision},
    {OPTIONS, "convolution error", tell_conv_error},
    {OPTIONS, "passes switched", tell_passes},
    {OPTIONS, "streaming stores", tell_streaming},
    {OPTIONS, "results checked", tell_checks},
    {OPTIONS, "arena bytes", tell_arena},
};

enum { FACTS = sizeof facts / sizeof *facts };

void target_write(struct text *text, const struct compiled *compiled, const graphi_machine *machine)
{
    const struct target target = {compiled, machine};
    const bool same_graph = compiled_source_unchanged(compiled); /* nobody knows what it was otherwise */
    bool any = false;
    text_add(text, "  \"for\": {");
    for (int i = 0; i < FACTS; i++) {
        struct text told = {0};
        if (!same_graph && facts[i].of == GRAPH)
            continue;
        facts[i].tell(&target, &told);
        text_add(text, "%s\n    \"%s\": ", any ? "," : "", facts[i].name);
        any = true;
        text_add_json_string(text, told.data ? told.data : "");
        text->broken |= told.broken;
        text_free(&told);
    }
    text_add(text, "\n  },\n");
}

/* OK: the file tells the same of this fact, or nothing. */
static graphi_status check_fact(const struct json_file *file, const struct fact *fact, const struct target *target)
{
    const char *found = json_string_value(json_object_get(json_object_get(file->root, "for"), fact->name));
    struct text told = {0};
    graphi_status status = GRAPHI_OK;
    fact->tell(target, &told);
    if (found && told.data && strcmp(found, told.data) != 0)
        status = fail(GRAPHI_REFUSED, file->path, "found a plan for %s, %s: %.160s, expected %.160s",
                      hashes[fact->of].differs, fact->name, found, told.data);
    text_free(&told);
    return status;
}

static graphi_status check_hash(const struct json_file *file, enum hashed of, uint64_t expected,
                                const struct target *target)
{
    const graphi_status status = json_file_expect_hash(file, hashes[of].key, expected);
    for (int i = 0; i < FACTS && status == GRAPHI_REFUSED; i++)
        if (facts[i].of == of)
            TRY(check_fact(file, &facts[i], target));
    return status;
}

graphi_status target_check(const struct json_file *file, const struct compiled *compiled)
{
    const struct target target = {compiled, compiled->machine};
    TRY(check_hash(file, GRAPH, compiled->graph_hash, &target));
    TRY(check_hash(file, MACHINE, machine_hash(compiled->machine), &target));
    return check_hash(file, OPTIONS, compiled->hash, &target);
}
