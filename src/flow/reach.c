/* SPDX-License-Identifier: Apache-2.0 */
/* Two walks over the nodes of all graphs (reach.h): backwards from shapes and conditions, until nothing changes; and
 * what bodies read of others. One thread, once a model. Usual size: up to 5,000 nodes. */
#include "flow/reach.h"

#include "base/memory.h"

#include <string.h>

/* Operators whose inputs of these places (bits) are shapes, axes, counts or conditions. */
static const struct {
    const char *op;
    unsigned inputs;
} askers[] = {
    {"Reshape", 1u << 1},
    {"Expand", 1u << 1},
    {"Slice", 30},
    {"Split", 1u << 1},
    {"Tile", 1u << 1},
    {"Pad", 10},
    {"Unsqueeze", 1u << 1},
    {"Squeeze", 1u << 1},
    {"ConstantOfShape", 1},
    {"Range", 7},
    {"Resize", 12},
    {"TopK", 1u << 1},
    {"OneHot", 1u << 1},
    {"CumSum", 1u << 1},
    {"If", 1},
    {"Loop", 3},
    {"Dropout", 1u << 2},
    {"Trilu", 1u << 1},
    {"ReduceSum", 1u << 1},
    {"ReduceMean", 1u << 1},
    {"ReduceMax", 1u << 1},
    {"ReduceMin", 1u << 1},
    {"ReduceProd", 1u << 1},
    {"ReduceL1", 1u << 1},
    {"ReduceL2", 1u << 1},
    {"ReduceLogSum", 1u << 1},
    {"ReduceLogSumExp", 1u << 1},
    {"ReduceSumSquare", 1u << 1},
};

/* Operators that make shapes of shapes: their inputs are asked for where their result is. */
static const char *const carriers[] = {
    "Identity",
    "Cast",
    "CastLike",
    "Concat",
    "Gather",
    "Slice",
    "Unsqueeze",
    "Squeeze",
    "Reshape",
    "Flatten",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Min",
    "Max",
    "Neg",
    "Abs",
    "Floor",
    "Ceil",
    "Round",
    "Where",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
    "And",
    "Or",
    "Not",
    "Xor",
    "Range",
    "Expand",
    "Tile",
    "Split",
    "ReduceProd",
    "ReduceSum",
    "ReduceMax",
    "ReduceMin",
    "ConstantOfShape",
    "Transpose",
    "Pow",
    "Sqrt",
    "ScatterElements",
    "ScatterND",
    "If",
    "Loop",
};

static unsigned asked_inputs(const char *op)
{
    for (size_t i = 0; i < sizeof askers / sizeof *askers; i++)
        if (strcmp(askers[i].op, op) == 0)
            return askers[i].inputs;
    return 0;
}

static bool carries(const char *op)
{
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (strcmp(carriers[i], op) == 0)
            return true;
    return false;
}

static bool ask(struct reach *r, int value)
{
    if (value < 0 || r->asked[value])
        return false;
    return r->asked[value] = true;
}

/* Outputs and carried values of bodies. */
static bool ask_bodies(struct reach *r, const struct model_node *node)
{
    bool more = false;
    const int first = node->kind == NODE_LOOP ? 1 : 0;
    for (int b = 0; b < 2 && node->body[b]; b++)
        for (int i = 0; i < node->outs && (size_t)(i + first) < node->body[b]->outputs.count; i++)
            if (node->out[i] >= 0 && r->asked[node->out[i]])
                more |= ask(r, node->body[b]->outputs.data[i + first]);
    const struct model_graph *body = node->kind == NODE_LOOP ? node->body[0] : NULL;
    for (size_t i = 2; body && i < body->inputs.count && i < (size_t)node->ins; i++)
        if (r->asked[body->inputs.data[i]]) {
            more |= ask(r, node->in[i]);
            if (i - 1 < body->outputs.count)
                more |= ask(r, body->outputs.data[i - 1]);
        }
    return more;
}

static bool ask_node(struct reach *r, const struct model_node *node)
{
    bool more = false, wanted = false;
    const unsigned places = asked_inputs(node->type);
    for (int i = 0; i < node->outs; i++)
        wanted = wanted || (node->out[i] >= 0 && r->asked[node->out[i]]);
    wanted = wanted && node->kind == NODE_OPERATOR && carries(node->type);
    for (int i = 0; i < node->ins; i++)
        if (wanted || (i < 8 && places >> i & 1))
            more |= ask(r, node->in[i]);
    return more | ask_bodies(r, node);
}

static bool ask_graph(struct reach *r, const struct model_graph *graph)
{
    bool more = false;
    for (size_t i = graph->nodes.count; i-- > 0;) {
        const struct model_node *node = &graph->nodes.data[i];
        more |= ask_node(r, node);
        for (int b = 0; b < 2; b++)
            if (node->body[b])
                more |= ask_graph(r, node->body[b]);
    }
    return more;
}

/* --- what bodies read --- */

static graphi_status list_graphs(struct reach *r, const struct model_graph *graph)
{
    const struct reach_graph one = {.graph = graph};
    if (!array_push(&r->graphs, one))
        return fail_memory("session", sizeof one);
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int b = 0; b < 2; b++)
            if (graph->nodes.data[i].body[b])
                TRY(list_graphs(r, graph->nodes.data[i].body[b]));
    return GRAPHI_OK;
}

/* made[]: values of this graph and of bodies in it, by the mark. */
static void mark(const struct model_graph *graph, int *made, int by)
{
    for (size_t i = 0; i < graph->inputs.count; i++)
        made[graph->inputs.data[i]] = by;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct model_node *node = &graph->nodes.data[i];
        for (int k = 0; k < node->outs; k++)
            if (node->out[k] >= 0)
                made[node->out[k]] = by;
        for (int b = 0; b < 2; b++)
            if (node->body[b])
                mark(node->body[b], made, by);
    }
}

struct capture {
    const struct onnx_model *model;
    struct reach_graph *to;
    int *made, by;
};

static graphi_status read(struct capture *c, int value)
{
    if (value < 0 || c->made[value] == c->by || c->model->values.data[value].constant)
        return GRAPHI_OK;
    c->made[value] = c->by;
    return array_push(&c->to->captures, value) ? GRAPHI_OK : fail_memory("session", sizeof value);
}

static graphi_status capture(struct capture *c, const struct model_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct model_node *node = &graph->nodes.data[i];
        for (int k = 0; k < node->ins; k++)
            TRY(read(c, node->in[k]));
        for (int b = 0; b < 2; b++)
            if (node->body[b])
                TRY(capture(c, node->body[b]));
    }
    for (size_t i = 0; i < graph->outputs.count; i++)
        TRY(read(c, graph->outputs.data[i]));
    return GRAPHI_OK;
}

static graphi_status find_captures(const struct onnx_model *model, struct reach *r)
{
    int *made = mem_zalloc_array(model->values.count + 1, sizeof *made);
    graphi_status status = made ? GRAPHI_OK : fail_memory("session", model->values.count * sizeof *made);
    for (size_t i = 1; i < r->graphs.count && status == GRAPHI_OK; i++) {
        struct capture c = {model, &r->graphs.data[i], made, (int)i};
        mark(c.to->graph, made, c.by);
        status = capture(&c, c.to->graph);
    }
    mem_free(made);
    return status;
}

graphi_status reach_find(const struct onnx_model *model, struct reach *out)
{
    *out = (struct reach){.asked = mem_zalloc_array(model->values.count + 1, sizeof *out->asked)};
    if (!out->asked)
        return fail_memory("session", model->values.count);
    while (ask_graph(out, model->graph))
        continue;
    TRY(list_graphs(out, model->graph));
    return find_captures(model, out);
}

void reach_free(struct reach *reach)
{
    for (size_t i = 0; i < reach->graphs.count; i++)
        array_free(&reach->graphs.data[i].captures);
    array_free(&reach->graphs);
    mem_free(reach->asked);
}

const struct reach_graph *reach_of(const struct reach *reach, const struct model_graph *graph)
{
    size_t i = 0;
    while (i < reach->graphs.count && reach->graphs.data[i].graph != graph)
        i++;
    return i < reach->graphs.count ? &reach->graphs.data[i] : NULL;
}
