/* SPDX-License-Identifier: Apache-2.0 */
/* Names of inputs and outputs. Found when a graph is compiled; looked up by any thread. */
#include "engine/compile/ports.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/op.h"

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
