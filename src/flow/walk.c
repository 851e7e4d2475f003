/* SPDX-License-Identifier: Apache-2.0 */
/* One operator at a time, and the table of lowerings (lower.h). Nodes of which all inputs are known run by their host
 * operators, unless the result would be large. One thread lowers. */
#include "flow/lower.h"

#include <string.h>

enum { FEW = 64, FOLDED_MOST = 256 << 20 };

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

/* Elements of the result where it can be far larger than the inputs; 0: it cannot, or the operator will complain. */
static int64_t grown(const struct op_call *call)
{
    static const char *const shapes[] = {"ConstantOfShape", "Expand", "Tile"};
    int which = 0;
    while (which < 3 && strcmp(call->op->name, shapes[which]) != 0)
        which++;
    const graphi_tensor *shape = which < 3 ? op_in(call, which ? 1 : 0) : NULL;
    if (!shape || shape->kind != GRAPHI_KIND_TENSOR || shape->count > VALUE_RANK)
        return 0;
    int64_t dims[VALUE_RANK];
    for (int64_t i = 0; i < shape->count; i++)
        dims[i] = value_int(shape, i) > 0 ? value_int(shape, i) : 1;
    const int64_t count = dims_count((int)shape->count, dims, 8);
    const int64_t each = which == 2 ? call->in[0]->count : 1;
    return count < 0 || count > ((int64_t)1 << 40) / (each ? each : 1) ? (int64_t)1 << 40 : count * each;
}

/* All inputs are known: the host operator runs. */
static graphi_status fold(struct lower_call *c)
{
    struct op_call *call = &c->call;
    bool varies = false;
    for (int i = 0; i < c->node->ins; i++)
        varies = varies || (lower_in(c, i) && lower_in(c, i)->varies);
    TRY(host_op_run(call));
    for (int i = 0; i < call->outs; i++)
        if (c->node->out[i] >= 0) {
            c->l->values[c->node->out[i]].known = call->out[i];
            c->l->values[c->node->out[i]].varies = varies;
        } else {
            value_drop(call->out[i]);
        }
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
    TRY(c->row->lower(c));
    for (int i = 0; i < c->node->outs; i++) {
        const struct flow_value *out = c->node->out[i] >= 0 ? &c->l->values[c->node->out[i]] : NULL;
        if (out && !out->known && !out->computed)
            return lower_fail(c, "found that output %d of %s is wanted, expected others for a plan", i, op->name);
    }
    return GRAPHI_OK;
}

/* Outputs that a lowering gave before it failed. */
static void forget(struct lowering *l, const struct model_node *node)
{
    for (int i = 0; i < node->outs; i++) {
        struct flow_value *value = node->out[i] >= 0 ? &l->values[node->out[i]] : NULL;
        if (!value)
            continue;
        value_drop(value->known);
        *value = (struct flow_value){.plain = GRAPHI_NONE, .last = GRAPHI_NONE};
    }
}

graphi_status lower_operator(struct lowering *l, const struct model_node *node, bool *folded)
{
    graphi_tensor *in[FEW], *out[FEW] = {NULL};
    bool wanted[FEW], known = true;
    struct lower_call c = {.l = l, .node = node, .type = T_F32};
    if (node->ins > FEW || node->outs > FEW)
        return lower_fail(&c, "found more than %d inputs or outputs, expected fewer for a plan", FEW);
    for (int i = 0; i < node->ins; i++) {
        struct flow_value *value = lower_in(&c, i);
        in[i] = !value ? NULL : value->known ? value->known : &value->like;
        known = known && (!value || value->known);
    }
    for (int i = 0; i < node->outs; i++)
        wanted[i] = node->out[i] >= 0;
    if (node->ins && in[0] && in[0]->kind == GRAPHI_KIND_TENSOR && element_is_carried(in[0]->type))
        c.type = in[0]->type;
    c.call = (struct op_call){.op = node->op,
                              .where = node->where,
                              .ins = node->ins,
                              .outs = node->outs,
                              .in = in,
                              .out = out,
                              .wanted = wanted,
                              .attributes = node->attributes,
                              .attribute_count = node->attribute_count};
    *folded = known && grown(&c.call) * 4 <= FOLDED_MOST;
    graphi_status status = *folded ? fold(&c) : lower_one(&c);
    if (status != GRAPHI_OK) {
        char message[512];
        message_get(message, sizeof message);
        forget(l, node);
        if (status != GRAPHI_MEMORY && graphi_graph_status(l->graph) != GRAPHI_OK)
            status = GRAPHI_INVALID;
        message_set(message);
    }
    return status;
}
