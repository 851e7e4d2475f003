/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a canonical graph, and the table of lowerings (lower.h). Nodes of which all inputs are known run by
 * their host operators. One thread lowers. */
#include "flow/lower.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 64 };

static const struct lower_row *const families[] = {
#define X(family) lower_##family,
    LOWERINGS(X)
#undef X
};

const struct lower_row *lower_find(const char *op)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const struct lower_row *row = families[i]; row->op; row++)
            if (strcmp(row->op, op) == 0)
                return row;
    return NULL;
}

/* All inputs are known: the host operator runs. */
static graphi_status fold(struct lower_call *c)
{
    struct op_call *call = &c->call;
    TRY(host_op_run(call));
    for (int i = 0; i < call->outs; i++)
        if (c->node->out[i] >= 0)
            c->l->values[c->node->out[i]].known = call->out[i];
        else
            value_drop(call->out[i]);
    c->l->folded++;
    return GRAPHI_OK;
}

static graphi_status lower_one(struct lower_call *c)
{
    const struct host_op *op = c->node->op;
    c->row = lower_find(op->name);
    if (!c->row)
        return lower_fail(c, "found %s, expected an operator that a plan has", op->name);
    if (c->call.ins < op->least || (op->most >= 0 && c->call.ins > op->most))
        return lower_fail(c, "found %d inputs of %s, expected others", c->call.ins, op->name);
    for (int i = 0; i < op->least; i++)
        if (!c->call.in[i])
            return lower_fail(c, "found no input %d of %s, expected one", i, op->name);
    TRY(c->row->lower(c)); /* an output that it lacks is missed where it is read */
    c->l->planned++;
    return GRAPHI_OK;
}

static graphi_status lower_graph(struct lowering *l, const struct model_graph *graph);

/* A branch that is known to be taken becomes part of the graph around it. */
static graphi_status lower_if(struct lower_call *c)
{
    const struct flow_value *condition = lower_in(c, 0);
    if (!condition || !condition->known || condition->known->kind != GRAPHI_KIND_TENSOR ||
        condition->known->type != T_BOOL || condition->known->count != 1)
        return lower_fail(c, "found a condition that is computed, expected one that sizes or constants tell");
    const struct model_graph *body = c->node->body[value_int(condition->known, 0) ? 0 : 1];
    TRY(lower_graph(c->l, body));
    for (int i = 0; i < c->node->outs; i++) {
        struct flow_value *value = (size_t)i < body->outputs.count ? &c->l->values[body->outputs.data[i]] : NULL;
        if (c->node->out[i] < 0)
            continue;
        if (!value || (!value->known && !value->computed))
            return lower_fail(c, "found no value of output %d of If, expected one", i);
        c->l->values[c->node->out[i]] = *value;
        if (value->known)
            value_keep(value->known);
    }
    return GRAPHI_OK;
}

static graphi_status lower_node(struct lowering *l, const struct model_node *node)
{
    graphi_tensor *in[FEW], *out[FEW] = {NULL};
    bool wanted[FEW], known = true;
    struct lower_call c = {.l = l, .node = node};
    if (node->kind == NODE_IF)
        return lower_if(&c);
    if (node->kind != NODE_OPERATOR || node->ins > FEW || node->outs > FEW)
        return lower_fail(&c, "found %s, expected an operator that a plan has", node->type);
    for (int i = 0; i < node->ins; i++) {
        struct flow_value *value = lower_in(&c, i);
        in[i] = !value ? NULL : value->known ? value->known : &value->like;
        known = known && (!value || value->known);
        if (value && !value->known && !value->computed)
            return lower_fail(&c, "found no value of input %d of %s, expected one", i, node->type);
    }
    for (int i = 0; i < node->outs; i++)
        wanted[i] = node->out[i] >= 0;
    c.call = (struct op_call){.op = node->op,
                              .where = node->where,
                              .ins = node->ins,
                              .outs = node->outs,
                              .in = in,
                              .out = out,
                              .wanted = wanted,
                              .attributes = node->attributes,
                              .attribute_count = node->attribute_count};
    return known ? fold(&c) : lower_one(&c);
}

/* Inputs of the graph, and constants. */
static graphi_status begin(struct lowering *l)
{
    const struct onnx_model *m = l->model;
    for (size_t i = 0; i < m->values.count; i++)
        if (m->values.data[i].constant && !l->values[i].computed && !l->values[i].known)
            l->values[i].known = value_keep(m->values.data[i].constant);
    for (size_t i = 0; i < m->graph->inputs.count; i++) {
        char name[32];
        const int number = m->graph->inputs.data[i];
        struct flow_value *value = &l->values[number];
        if (value->known || !value->computed)
            continue;
        lower_be_like(value, value->like.type, value->like.rank, value->like.dims);
        if (value->like.type != T_F32)
            continue; /* nodes that read it have no lowering */
        snprintf(name, sizeof name, "i%d", number);
        value->plain = graphi_input(l->graph, name, GRAPHI_F32, value->like.rank, value->like.dims);
    }
    return graphi_graph_status(l->graph);
}

static graphi_status lower_graph(struct lowering *l, const struct model_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        TRY(lower_node(l, &graph->nodes.data[i]));
    return GRAPHI_OK;
}

graphi_status lower_all(struct lowering *l)
{
    const struct model_graph *graph = l->model->graph;
    TRY(graphi_graph_create(&l->graph));
    TRY(begin(l));
    TRY(lower_graph(l, graph));
    for (size_t i = 0; i < graph->outputs.count; i++) {
        char name[32];
        struct flow_value *value = &l->values[graph->outputs.data[i]];
        if (value->known)
            continue;
        snprintf(name, sizeof name, "o%zu", i);
        if (!value->computed)
            return fail(GRAPHI_UNSUPPORTED, "plan", "found no value of output %zu, expected one", i);
        graphi_output(l->graph, name, lower_plain(l, value));
    }
    return graphi_graph_status(l->graph);
}
