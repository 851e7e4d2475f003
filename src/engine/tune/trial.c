/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that leave no trace in the state: for tuning, profiling and counting. One thread; parameters that
 * executions change are copied once. */
#include "base/random.h"
#include "base/status.h"
#include "engine/tune/trial.h"
#include "graph/op.h"

#include <string.h>

static graphi_status save_parameters(struct trial *t)
{
    const struct compiled *c = t->plan->compiled;
    t->step = t->run->state->step;
    t->saved = mem_zalloc_array(c->parameters.count + 1, sizeof *t->saved);
    if (!t->saved)
        return fail_memory("tuning", c->parameters.count * sizeof *t->saved);
    for (size_t i = 0; i < c->parameters.count; i++) {
        if (!c->parameters.data[i].assigned)
            continue;
        t->saved[i] = mem_alloc(t->run->parameter[i]->bytes);
        if (!t->saved[i])
            return fail_memory("tuning", t->run->parameter[i]->bytes);
        memcpy(t->saved[i], t->run->parameter[i]->data, t->run->parameter[i]->bytes);
    }
    return GRAPHI_OK;
}

void trial_restore(const struct trial *t)
{
    if (!t->saved)
        return;
    const struct compiled *c = t->plan->compiled;
    for (size_t i = 0; i < c->parameters.count; i++)
        if (t->saved[i]) {
            memcpy(t->run->parameter[i]->data, t->saved[i], t->run->parameter[i]->bytes);
            t->run->parameter[i]->version++;
        }
    if (c->updates) /* else other runs may read it */
        t->run->state->step = t->step;
}

/* Small random numbers; scalars (learning rates) get 0.01, integers 0, which every label and index allows. */
static void random_input(const struct value_type *type, const char *name, void *data)
{
    int64_t count = type_count(type);
    memset(data, 0, (size_t)type_bytes(type));
    uint64_t key = 99;
    for (; *name; name++)
        key = key * 31 + (unsigned char)*name;
    for (int64_t i = 0; type->dtype == GRAPHI_F32 && i < count; i++)
        ((float *)data)[i] = type->rank ? 2 * random_unit(random_philox(key, 0, (uint64_t)i).v[0]) - 1 : 0.01f;
}

/* Input graphs that were fed are none at other sizes; everything else is measured at its bound. */
static void set_sizes(struct trial *t, const graphi_state *fed)
{
    const struct compiled *c = t->plan->compiled;
    bool graphs = false;
    for (size_t i = 0; i < c->graph->nodes.count; i++)
        graphs |= node_is(graph_node(c->graph, (int32_t)i), IS_FRONTIER);
    for (size_t s = 0; graphs && s < c->graph->symbols.count; s++) {
        const struct symbol *symbol = &c->graph->symbols.data[s];
        char name[RUN_SYMBOL_NAME];
        int64_t size;
        run_symbol_name(name, symbol->name);
        if (state_take_fed(fed, name, &size, sizeof size) && size >= 1 && size <= symbol->bound)
            graphi_run_set_symbol(t->run, symbol->name, size);
    }
}

static void feed(struct trial *t, const graphi_state *fed)
{
    const struct compiled *c = t->plan->compiled;
    set_sizes(t, fed);
    for (size_t i = 0; i < c->inputs.count; i++) {
        const struct plan_port *port = &c->inputs.data[i];
        const struct value_type *type = &graph_value(c->graph, port->value)->type;
        void *data = run_address(t->run, c->place[port->value].buffer, 0);
        if (!state_take_fed(fed, port->name, data, (size_t)type_bytes(type)))
            random_input(type, port->name, data);
        t->run->fed[i] = (size_t)type_bytes(type);
    }
}

graphi_status trial_open(const graphi_plan *plan, graphi_state *state, const graphi_state *fed, struct trial *t)
{
    *t = (struct trial){.plan = plan};
    TRY(graphi_run_create(plan, state, &t->run));
    t->own = t->run->schedule;
    t->run->quiet = true;
    TRY(save_parameters(t));
    feed(t, fed);
    return GRAPHI_OK;
}

void trial_close(struct trial *t)
{
    if (!t->run)
        return;
    trial_restore(t);
    run_adopt(t->run, t->plan, t->own);
    for (size_t i = 0; t->saved && i < t->plan->compiled->parameters.count; i++)
        mem_free(t->saved[i]);
    mem_free(t->saved);
    graphi_run_destroy(t->run);
    *t = (struct trial){0};
}
