/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is fed and what is fetched from it: copied by name, or bound in place by port. One thread a run, between
 * executions. Nothing is formatted where nothing is wrong: small graphs are fed and fetched in tens of nanoseconds. */
#include "engine/run/feed.h"

#include "base/status.h"
#include "engine/compile/ports.h"
#include "engine/run/messages.h"

#include <stdio.h>
#include <string.h>

/* --- sizes and messages --- */

static size_t run_bytes(const graphi_run *run, const struct value_type *type, const int64_t *symbol)
{
    const int64_t full = type_bytes(type);
    if (type->symbol < 0)
        return (size_t)full;
    return (size_t)(full / run->plan->compiled->graph->symbols.data[type->symbol].bound * symbol[type->symbol]);
}

size_t run_actual(const graphi_run *run, const struct value_type *type) { return run_bytes(run, type, run->symbol); }

/* Where a message is about: formatted only when something is wrong. */
struct where {
    char text[200];
};

static struct where at_port(const char *what, const char *name)
{
    struct where where;
    snprintf(where.text, sizeof where.text, "%s '%s'", what, name);
    return where;
}

static graphi_status fail_port(const char *what, const char *name, const struct plan_port *port, size_t count)
{
    struct expected_names names = {0};
    for (size_t i = 0; i < count; i++)
        expect_name(&names, port[i].name);
    return fail(GRAPHI_INVALID, at_port(what, name).text, "found no such %s, expected %s", what, expected_text(&names));
}

/* What the caller gives, or gives room for. */
struct given {
    graphi_dtype dtype;
    const void *data;
    size_t bytes;
};

static graphi_status check_given(const char *what, const char *name, struct given given, graphi_dtype dtype,
                                 size_t expected)
{
    if (given.dtype != dtype)
        return fail(GRAPHI_INVALID, at_port(what, name).text, "found %s, expected %s", graphi_dtype_name(given.dtype),
                    graphi_dtype_name(dtype));
    if (given.bytes && !given.data)
        return fail(GRAPHI_INVALID, at_port(what, name).text, "found NULL as data, expected %zu bytes", expected);
    if (given.bytes != expected)
        return fail(GRAPHI_INVALID, at_port(what, name).text, "found %zu bytes, expected %zu", given.bytes, expected);
    return GRAPHI_OK;
}

/* --- where ports lie --- */

static int32_t buffer_of(const struct compiled *c, int port)
{
    const int inputs = (int)c->inputs.count;
    const int32_t value = port < inputs ? c->inputs.data[port].value : c->outputs.data[port - inputs].value;
    return c->place[value].buffer;
}

/* memory NULL: the run's own. */
static void move(graphi_run *run, int port, unsigned char *memory)
{
    const struct compiled *c = run->plan->compiled;
    const struct bindings *b = &run->bound;
    b->base[buffer_of(c, port)] = memory;
    for (int32_t i = b->port_begin[port]; i < b->port_begin[port + 1]; i++) {
        const struct argument *argument = &c->arguments.data[b->reads[i]];
        run->array[b->reads[i]].data = run_address(run, argument->buffer, argument->offset);
    }
}

/* An input's memory takes its place always; an output's where it has room for the whole, at the bound of its size: what
 * works in place on the way there is not cut off. A value that no kernel writes (an input without reader apart) stays.
 */
static bool can_move(const graphi_run *run, int port, size_t bytes)
{
    const struct compiled *c = run->plan->compiled;
    const struct bindings *b = &run->bound;
    if (port < (int)c->inputs.count)
        return true;
    return b->port_begin[port] < b->port_begin[port + 1] &&
           bytes >= (size_t)c->buffers.data[buffer_of(c, port)].bytes;
}

static void undo(graphi_run *run, int port)
{
    struct bound_port *bound = &run->bound.port[port];
    if (!bound->memory)
        return;
    if (bound->placed)
        move(run, port, NULL);
    if (port >= (int)run->plan->compiled->inputs.count)
        run_host(run)->outputs_bound--;
    *bound = (struct bound_port){0};
}

static void put(graphi_run *run, int port, void *memory, size_t bytes)
{
    undo(run, port);
    const bool placed = can_move(run, port, bytes);
    run->bound.port[port] = (struct bound_port){memory, bytes, placed};
    if (placed)
        move(run, port, memory);
    if (port >= (int)run->plan->compiled->inputs.count)
        run_host(run)->outputs_bound++;
}

/* --- copies, by name --- */

graphi_status graphi_run_set(graphi_run *run, const char *input, graphi_dtype dtype, const void *data, size_t bytes)
{
    GIVEN(run);
    const struct compiled *c = run->plan->compiled;
    input = input ? input : "";
    int32_t i = plan_input(c, input);
    if (i < 0)
        return fail_port("input", input, c->inputs.data, c->inputs.count);
    int32_t value = c->inputs.data[i].value;
    const struct value_type *type = &graph_value(c->graph, value)->type;
    TRY(check_given("input", input, (struct given){dtype, data, bytes}, type->dtype, run_actual(run, type)));
    undo(run, i);
    memcpy(run_address(run, c->place[value].buffer, 0), data, bytes);
    run->fed[i] = bytes;
    return GRAPHI_OK;
}

graphi_status graphi_run_set_symbol(graphi_run *run, const char *symbol, int64_t value)
{
    GIVEN(run);
    const struct compiled *c = run->plan->compiled;
    char where[200];
    symbol = symbol ? symbol : "";
    snprintf(where, sizeof where, "symbol '%s'", symbol);
    for (size_t s = 0; s < c->graph->symbols.count; s++) {
        const struct symbol *known = &c->graph->symbols.data[s];
        if (strcmp(known->name, symbol) != 0)
            continue;
        if (value < 1 || value > known->bound)
            return fail(GRAPHI_INVALID, where, "found size %lld, expected 1 to %lld", (long long)value,
                        (long long)known->bound);
        run->symbol[s] = value;
        run_host(run)->checked = false;
        for (int32_t i = run->bound.symbol_begin[s]; i < run->bound.symbol_begin[s + 1]; i++) {
            const int32_t at = run->bound.follows[i];
            run->array[at].rows = c->arguments.data[at].rows / known->bound * value;
        }
        return GRAPHI_OK;
    }
    struct expected_names names = {0};
    for (size_t s = 0; s < c->graph->symbols.count; s++)
        expect_name(&names, c->graph->symbols.data[s].name);
    if (!c->graph->symbols.count)
        return fail(GRAPHI_INVALID, where, "found it for a graph without symbols, expected none");
    return fail(GRAPHI_INVALID, where, "found no such symbol, expected %s", expected_text(&names));
}

void graphi_run_set_first_sample(graphi_run *run, uint64_t index)
{
    if (run)
        run->first_sample = index;
}

graphi_status graphi_run_get(const graphi_run *run, const char *output, graphi_dtype dtype, void *data, size_t bytes)
{
    GIVEN(run);
    const struct compiled *c = run->plan->compiled;
    output = output ? output : "";
    if (!run->executed)
        return fail(GRAPHI_INVALID, at_port("output", output).text, "found no execution yet, expected one");
    if (run_host((graphi_run *)(uintptr_t)run)->spoilt)
        return fail(GRAPHI_INVALID, at_port("output", output).text,
                    "found that the last execution failed, expected results");
    int32_t i = plan_output(c, output);
    if (i < 0)
        return fail_port("output", output, c->outputs.data, c->outputs.count);
    const struct place *place = &c->place[c->outputs.data[i].value];
    const struct value_type *type = &graph_value(c->graph, c->outputs.data[i].value)->type;
    TRY(check_given("output", output, (struct given){dtype, data, bytes}, type->dtype,
                    run_bytes(run, type, run->executed_symbol)));
    memcpy(data, run_address(run, place->buffer, place->offset), bytes);
    return GRAPHI_OK;
}

/* --- binding --- */

static bool overlaps(const unsigned char *a, size_t a_bytes, const unsigned char *b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Two ports on the same bytes are fine where both are only read. */
static graphi_status check_apart(const graphi_run *run, const char *what, const char *name, int port,
                                 const unsigned char *memory, size_t bytes)
{
    const struct compiled *c = run->plan->compiled;
    const int inputs = (int)c->inputs.count, ports = inputs + (int)c->outputs.count;
    for (int i = port < inputs ? inputs : 0; i < ports; i++) {
        const struct bound_port *other = &run->bound.port[i];
        if (i == port || !other->memory || !overlaps(memory, bytes, other->memory, other->bytes))
            continue;
        const bool input = i < inputs;
        return fail(GRAPHI_INVALID, at_port(what, name).text,
                    "found memory that overlaps that of %s '%s', expected it apart", input ? "input" : "output",
                    input ? c->inputs.data[i].name : c->outputs.data[i - inputs].name);
    }
    return GRAPHI_OK;
}

static graphi_status check_memory(const graphi_run *run, const char *what, const char *name, int port,
                                  const void *memory, size_t bytes, size_t least)
{
    if (!memory)
        return fail(GRAPHI_INVALID, at_port(what, name).text, "found NULL as memory, expected %zu bytes", least);
    if (bytes < least)
        return fail(GRAPHI_INVALID, at_port(what, name).text, "found memory of %zu bytes, expected at least %zu", bytes,
                    least);
    if ((uintptr_t)memory % GRAPHI_ALIGNMENT)
        return fail(GRAPHI_INVALID, at_port(what, name).text,
                    "found memory %zu bytes behind a multiple of %d, expected it aligned",
                    (size_t)((uintptr_t)memory % GRAPHI_ALIGNMENT), GRAPHI_ALIGNMENT);
    return check_apart(run, what, name, port, memory, bytes);
}

graphi_status graphi_run_bind(graphi_run *run, int port, graphi_dtype dtype, void *memory, size_t bytes)
{
    GIVEN(run);
    const struct compiled *c = run->plan->compiled;
    const int inputs = (int)c->inputs.count, ports = inputs + (int)c->outputs.count;
    if (port < 0 || port >= ports)
        return fail(GRAPHI_INVALID, "port", "found port %d, expected 0 to %d (graphi_plan_port)", port, ports - 1);
    const bool input = port < inputs;
    const struct plan_port *known = input ? &c->inputs.data[port] : &c->outputs.data[port - inputs];
    const char *what = input ? "input" : "output";
    const struct value_type *type = &graph_value(c->graph, known->value)->type;
    if (dtype != type->dtype)
        return fail(GRAPHI_INVALID, at_port(what, known->name).text, "found %s, expected %s", graphi_dtype_name(dtype),
                    graphi_dtype_name(type->dtype));
    if (!memory && !bytes) {
        undo(run, port);
        if (input)
            run->fed[port] = 0;
        run_host(run)->checked = false;
        return GRAPHI_OK;
    }
    TRY(check_memory(run, what, known->name, port, memory, bytes, run_actual(run, type)));
    put(run, port, memory, bytes);
    if (input)
        run->fed[port] = bytes;
    run_host(run)->checked = false;
    return GRAPHI_OK;
}

void feed_copy_out(const graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    if (!run_host((graphi_run *)(uintptr_t)run)->outputs_bound)
        return;
    for (size_t i = 0; i < c->outputs.count; i++) {
        const struct bound_port *bound = &run->bound.port[c->inputs.count + i];
        const int32_t value = c->outputs.data[i].value;
        if (bound->memory && !bound->placed)
            memcpy(bound->memory, run_address(run, c->place[value].buffer, c->place[value].offset),
                   run_actual(run, &graph_value(c->graph, value)->type));
    }
}

/* --- events --- */

graphi_status graphi_run_receive(graphi_run *run, int number, graphi_event *event)
{
    GIVEN(run);
    return messages_set(run->messages, number, event, false);
}

graphi_status graphi_run_send(graphi_run *run, int number, graphi_event *event)
{
    GIVEN(run);
    return messages_set(run->messages, number, event, true);
}

graphi_status graphi_run_set_patience(graphi_run *run, double seconds)
{
    GIVEN(run);
    return messages_set_patience(run->messages, seconds);
}
