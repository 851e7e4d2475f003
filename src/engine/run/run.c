/* SPDX-License-Identifier: Apache-2.0 */
/* One execution of a plan over a state. The caller's thread creates, feeds and executes; run_task is called by any
 * worker of the lease. Pointers are resolved once: parameters never move in a state, packed forms neither. */
#include "engine/run/run.h"

#include "base/clock.h"
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/run/forms.h"
#include "engine/run/messages.h"
#include "engine/run/parameter.h"
#include "graph/op.h"
#include "schedule/policy.h"

#include <stdio.h>
#include <string.h>

/* --- creating --- */

void *run_address(const graphi_run *run, int32_t id, int64_t offset)
{
    const struct compiled *c = run->plan->compiled;
    const struct buffer *buffer = &c->buffers.data[id];
    unsigned char *base = run->bound.base[id];
    if (base)
        return base + offset;
    switch (buffer->kind) {
    case BUFFER_ARENA: base = run->block + buffer->offset; break;
    case BUFFER_INPUT: base = run->block + c->arena_bytes + buffer->offset; break;
    case BUFFER_PARAMETER: base = run->parameter[buffer->source]->data; break;
    case BUFFER_CONSTANT: base = (void *)(uintptr_t)graph_value(c->graph, buffer->source)->data; break;
    case BUFFER_PREPARED:
        base = run->form[buffer->source] ? run->form[buffer->source]->data : c->constants;
        base += buffer->offset;
        break;
    }
    return base + offset;
}

static size_t block_bytes(const graphi_run *run)
{
    return (size_t)(run->plan->compiled->arena_bytes + run->plan->compiled->input_bytes + 64);
}

static graphi_status find_parameters(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    for (size_t i = 0; i < c->parameters.count; i++) {
        const struct plan_parameter *wanted = &c->parameters.data[i];
        const struct value_type *type = &graph_value(c->graph, wanted->value)->type;
        char where[200], has[96], wants[96];
        snprintf(where, sizeof where, "parameter '%s'", wanted->name);
        type_text(type, wants, sizeof wants);
        run->parameter[i] = state_parameter(run->state, wanted->name);
        if (!run->parameter[i])
            return fail(GRAPHI_INVALID, where, "found no such parameter in the state, expected %s", wants);
        type_text(&run->parameter[i]->type, has, sizeof has);
        if (!type_equal(&run->parameter[i]->type, type))
            return fail(GRAPHI_INVALID, where, "found %s in the state, expected %s", has, wants);
    }
    for (size_t i = 0; i < c->parameters.count; i++)
        if (c->parameters.data[i].assigned)
            TRY(state_own(run->state, run->parameter[i]));
    for (size_t i = 0; i < c->parameters.count; i++)
        if (c->parameters.data[i].direct)
            state_hold(run->state, run->parameter[i]);
    run->holds = true;
    state_count_runs(run->state, 1);
    return GRAPHI_OK;
}

static void drop_parameters(const graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    if (!run->holds)
        return;
    for (size_t i = 0; i < c->parameters.count; i++)
        if (c->parameters.data[i].direct)
            state_drop(run->state, run->parameter[i]);
    state_count_runs(run->state, -1);
}

/* Is the argument all of a parameter, in order? */
static bool is_whole(const struct compiled *c, const struct argument *argument)
{
    const struct buffer *buffer = &c->buffers.data[argument->buffer];
    const struct place *place = &c->place[argument->value];
    return buffer->kind == BUFFER_PARAMETER && argument->offset == 0 && array_is_dense(&place->desc) &&
           array_count(&place->desc) * (int64_t)graphi_dtype_size(place->desc.dtype) == buffer->bytes;
}

/* Does the form have all bits of its sources, which are its inputs one by one? */
static bool packs_whole(const struct compiled *c, const struct prepared *prepared)
{
    const struct argument *in = &c->arguments.data[prepared->bound.argument];
    bool whole = prepared->bound.inputs == prepared->sources;
    for (int i = 0; i < prepared->bound.inputs; i++)
        whole = whole && is_whole(c, &in[i]);
    return whole;
}

/* What the state is asked for; `source` has room for the parameters that it follows from. */
static struct form_wanted form_wanted(const graphi_run *run, const struct prepared *prepared, struct parameter **source)
{
    const struct compiled *c = run->plan->compiled;
    for (int32_t s = 0; s < prepared->sources; s++)
        source[s] = run->parameter[c->sources.data[prepared->source + s]];
    return (struct form_wanted){.key = prepared->key, .source = source, .sources = prepared->sources,
                                .bytes = (size_t)prepared->bytes, .passing = prepared->passing,
                                .kernel = packs_whole(c, prepared) ? &prepared->bound.kernel : NULL};
}

/* Forms of parameters are the state's. */
static graphi_status take_forms(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    const size_t most = c->prepared.count + 1;
    struct form_wanted *wanted = mem_zalloc_array(most, sizeof *wanted);
    struct packed_form **found = mem_zalloc_array(most, sizeof(struct packed_form *));
    struct parameter **source = mem_zalloc_array(c->sources.count + 1, sizeof(struct parameter *));
    const bool enough = wanted && found && source;
    size_t count = 0;
    for (size_t i = 0; i < c->prepared.count && enough; i++)
        if (c->prepared.data[i].sources)
            wanted[count++] = form_wanted(run, &c->prepared.data[i], source + c->prepared.data[i].source);
    graphi_status status = enough ? state_take_forms(run->state, wanted, count, found)
                                  : fail_memory("run", most * sizeof *wanted);
    count = 0;
    for (size_t i = 0; i < c->prepared.count && !status; i++)
        run->form[i] = c->prepared.data[i].sources ? found[count++] : NULL;
    mem_free(wanted);
    mem_free(found);
    mem_free(source);
    return status;
}

static void give_forms(const graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    for (size_t i = 0; run->form && i < c->prepared.count; i++)
        state_give_form(run->state, run->form[i], c->prepared.data[i].passing);
}

static graphi_status find_forms(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    size_t scratch = 0;
    for (size_t i = 0; i < c->prepared.count; i++) {
        const struct bound *bound = &c->prepared.data[i].bound;
        scratch = bound->kernel.workspace > scratch ? bound->kernel.workspace : scratch;
    }
    TRY(take_forms(run));
    run->scratch = mem_alloc(scratch);
    return run->scratch ? GRAPHI_OK : fail_memory("run", scratch);
}

static void resolve(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    for (size_t i = 0; i < c->arguments.count; i++) {
        const struct argument *argument = &c->arguments.data[i];
        run->array[i] = (struct kernel_array){run_address(run, argument->buffer, argument->offset), argument->rows};
    }
    for (size_t i = 0; i < c->graph->symbols.count; i++)
        run->symbol[i] = c->graph->symbols.data[i].bound;
}

bool run_is_serial(const graphi_decision *setting)
{
    return policy_decided(setting)->loop == LOOP_SEQUENTIAL && setting->executors * setting->width == 1 &&
           setting->driver != GRAPHI_DRIVER_DEDICATED && !setting->must_pin;
}

static graphi_status own_memory(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    run->block = mem_map(block_bytes(run)); /* the first step's tasks touch it */
    run->parameter = mem_zalloc_array(c->parameters.count + 1, sizeof *run->parameter);
    run->form = mem_zalloc_array(c->prepared.count + 1, sizeof *run->form);
    run->remake = mem_zalloc_array(c->prepared.count + 1, sizeof *run->remake);
    run->held = mem_zalloc_array(c->parameters.count + 1, sizeof *run->held);
    run->array = mem_zalloc_array(c->arguments.count + 1, sizeof *run->array);
    run->symbol = mem_zalloc_array(c->graph->symbols.count + 1, sizeof *run->symbol);
    run->executed_symbol = mem_zalloc_array(c->graph->symbols.count + 1, sizeof *run->executed_symbol);
    run->fed = mem_zalloc_array(c->inputs.count + 1, sizeof *run->fed);
    if (!run->block || !run->parameter || !run->form || !run->remake || !run->held || !run->array || !run->symbol ||
        !run->executed_symbol || !run->fed)
        return fail_memory("run", (size_t)(c->arena_bytes + c->input_bytes));
    TRY(bindings_create(c, &run->bound));
    TRY(find_parameters(run));
    TRY(find_forms(run));
    resolve(run);
    return GRAPHI_OK;
}

static void borrow_memory(graphi_run *run)
{
    const graphi_run *host = run->host;
    run->block = host->block;
    run->scratch = host->scratch;
    run->parameter = host->parameter;
    run->form = host->form;
    run->remake = host->remake;
    run->held = host->held;
    run->array = host->array;
    run->symbol = host->symbol;
    run->executed_symbol = host->executed_symbol;
    run->fed = host->fed;
    run->bound = host->bound;
}

/* Until a lease tells more. */
static void tell_setting(graphi_run *run)
{
    const graphi_decision *setting = &run->plan->setting;
    bool told = !run_is_serial(setting) || !setting->pinned || !run->plan->compiled->machine->captured;
    run->info.executors = setting->executors;
    run->info.width = setting->width;
    run->info.pinned = false;
    snprintf(run->info.note, sizeof run->info.note, "%s",
             told ? "" : "one thread in array order takes no lease of a core: not pinned");
}

static graphi_status create(graphi_run *run)
{
    const graphi_decision *setting = &run->plan->setting;
    if (run->host)
        borrow_memory(run);
    else
        TRY(own_memory(run));
    tell_setting(run);
    if (!run_is_serial(setting) || run->plan->compiled->waits_count)
        TRY(plan_schedule(run->plan, &run->schedule));
    return messages_create(run->plan->compiled, run->schedule, &run->messages);
}

static graphi_status run_new(const graphi_plan *plan, graphi_state *state, graphi_run *host, graphi_run **out)
{
    graphi_run *run = mem_zalloc(sizeof *run);
    if (!run)
        return fail_memory("run", sizeof *run);
    run->plan = plan;
    run->state = state;
    run->host = host;
    graphi_status status = create(run);
    if (status) {
        graphi_run_destroy(run);
        return status;
    }
    *out = run;
    return GRAPHI_OK;
}

graphi_status graphi_run_create(const graphi_plan *plan, graphi_state *state, graphi_run **out)
{
    GIVEN(plan);
    GIVEN(state);
    GIVEN(out);
    return run_new(plan, state, NULL, out);
}

graphi_status graphi_run_beside(graphi_run *run, const graphi_plan *plan, graphi_run **out)
{
    GIVEN(run);
    GIVEN(plan);
    GIVEN(out);
    if (plan->compiled != run->plan->compiled)
        return fail(GRAPHI_INVALID, "run",
                    "found a plan of other compiled operations, expected one that graphi_plan_with or "
                    "graphi_plan_tune made from the run's");
    return run_new(plan, run->state, run->host ? run->host : run, out);
}

void run_symbol_name(char text[RUN_SYMBOL_NAME], const char *symbol)
{
    snprintf(text, RUN_SYMBOL_NAME, "size of %s", symbol);
}

/* What was fed stays with the state, for tuning, and the sizes that it has. */
static void keep_inputs(const graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    for (size_t s = 0; run->symbol && !run->quiet && s < c->graph->symbols.count; s++) {
        char name[RUN_SYMBOL_NAME];
        run_symbol_name(name, c->graph->symbols.data[s].name);
        state_keep_fed(run->state, name, &run->symbol[s], sizeof run->symbol[s]);
    }
    for (size_t i = 0; run->fed && !run->quiet && i < c->inputs.count; i++) {
        int32_t value = c->inputs.data[i].value;
        if (run->fed[i] && !run->bound.port[i].memory) /* what the caller bound may be gone */
            state_keep_fed(run->state, c->inputs.data[i].name, run_address(run, c->place[value].buffer, 0),
                           (size_t)type_bytes(&graph_value(c->graph, value)->type));
    }
}

void run_adopt(graphi_run *run, const graphi_plan *plan, struct schedule *schedule)
{
    run->plan = plan;
    run->schedule = schedule;
    tell_setting(run);
}

static void give_back_memory(graphi_run *run)
{
    keep_inputs(run);
    give_forms(run);
    drop_parameters(run);
    mem_unmap(run->block, block_bytes(run));
    mem_free(run->scratch);
    mem_free(run->parameter);
    mem_free(run->form);
    mem_free(run->remake);
    mem_free(run->held);
    mem_free(run->array);
    mem_free(run->symbol);
    mem_free(run->executed_symbol);
    mem_free(run->fed);
    bindings_free(&run->bound);
}

void graphi_run_destroy(graphi_run *run)
{
    if (!run)
        return;
    if (!run->host)
        give_back_memory(run);
    schedule_destroy(run->schedule);
    messages_destroy(run->messages);
    mem_free(run->lease_room);
    mem_free(run->records);
    mem_free(run->average);
    mem_free(run);
}

void graphi_run_get_info(const graphi_run *run, graphi_run_info *info)
{
    if (info)
        *info = run ? run->info : (graphi_run_info){0};
}
