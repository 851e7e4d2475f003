/* SPDX-License-Identifier: Apache-2.0 */
/* Names of inputs and outputs. Found when a graph is compiled; looked up by any thread. */
#include "engine/compile/ports.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

static int32_t find_port(const struct plan_port *ports, const struct index *names, const char *name)
{
    size_t seen = 0;
    int32_t at;
    while ((at = index_next(names, hash_string(HASH_START, name), &seen)) >= 0 && strcmp(ports[at].name, name) != 0)
        continue;
    return at;
}

int32_t plan_input(const struct compiled *c, const char *name)
{
    return find_port(c->inputs.data, &c->input_names, name);
}

int32_t plan_output(const struct compiled *c, const char *name)
{
    return find_port(c->outputs.data, &c->output_names, name);
}

static bool index_ports(const struct plan_port *ports, size_t count, struct index *names)
{
    bool enough = true;
    for (size_t i = 0; i < count && enough; i++)
        enough = index_add(names, hash_string(HASH_START, ports[i].name), (int32_t)i);
    return enough;
}

graphi_status ports_find(struct compiled *c)
{
    bool enough = true;
    for (int32_t v = 0; v < (int32_t)c->graph->values.count; v++) {
        const struct value *value = graph_value(c->graph, v);
        if (value->kind == VALUE_INPUT)
            enough = enough && array_push(&c->inputs, ((struct plan_port){.name = value->name, .value = v}));
        if (value->kind == VALUE_PARAMETER)
            enough = enough && array_push(&c->parameters, ((struct plan_parameter){.name = value->name, .value = v}));
    }
    for (size_t i = 0; i < c->graph->outputs.count; i++) {
        const struct graph_output *output = &c->graph->outputs.data[i];
        enough = enough && array_push(&c->outputs, ((struct plan_port){.name = output->name, .value = output->value}));
    }
    enough = enough && index_ports(c->inputs.data, c->inputs.count, &c->input_names) &&
             index_ports(c->outputs.data, c->outputs.count, &c->output_names);
    if (!enough)
        return fail_memory("plan", sizeof(struct plan_port));
    int32_t *begin, *list;
    TRY(graph_users(c->graph, &begin, &list));
    for (size_t i = 0; i < c->inputs.count; i++) {
        int32_t v = c->inputs.data[i].value;
        c->inputs.data[i].used = begin[v + 1] > begin[v];
    }
    mem_free(begin);
    mem_free(list);
    return GRAPHI_OK;
}

/* --- ports by number --- */

static graphi_status no_port(const struct compiled *c, const char *name)
{
    char where[200];
    struct expected_names names = {0};
    for (size_t i = 0; i < c->inputs.count; i++)
        expect_name(&names, c->inputs.data[i].name);
    for (size_t i = 0; i < c->outputs.count; i++)
        expect_name(&names, c->outputs.data[i].name);
    snprintf(where, sizeof where, "port '%s'", name);
    return fail(GRAPHI_INVALID, where, "found no such input or output, expected %s", expected_text(&names));
}

graphi_status graphi_plan_port(const graphi_plan *plan, const char *name, int *port)
{
    GIVEN(plan);
    GIVEN(name);
    GIVEN(port);
    const struct compiled *c = plan->compiled;
    const int32_t input = plan_input(c, name), output = plan_output(c, name);
    if (input < 0 && output < 0)
        return no_port(c, name);
    if (input >= 0 && output >= 0)
        return fail(GRAPHI_INVALID, name,
                    "found an input and an output of that name, expected one (graphi_plan_port_at)");
    *port = input >= 0 ? input : (int)c->inputs.count + output;
    return GRAPHI_OK;
}

bool graphi_plan_port_at(const graphi_plan *plan, int port, graphi_port_kind *kind, graphi_port *out)
{
    if (!plan || !kind || !out || port < 0)
        return false;
    const struct compiled *c = plan->compiled;
    const size_t at = (size_t)port;
    if (at >= c->inputs.count + c->outputs.count)
        return false;
    const bool input = at < c->inputs.count;
    const struct plan_port *known = input ? &c->inputs.data[at] : &c->outputs.data[at - c->inputs.count];
    const struct value_type *type = &graph_value(c->graph, known->value)->type;
    *kind = input ? GRAPHI_PORT_INPUT : GRAPHI_PORT_OUTPUT;
    *out = (graphi_port){.name = known->name,
                         .value = GRAPHI_NONE,
                         .dtype = type->dtype,
                         .rank = type->rank,
                         .bytes = (size_t)type_bytes(type)};
    memcpy(out->dims, type->dims, sizeof *out->dims * (size_t)type->rank);
    return true;
}
