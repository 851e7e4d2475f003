/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of vertex functions (cavs.txt 3.1). Each region is differentiated; what has rows stays in a region of
 * `vertices_gradient`, which goes through the blocks backward and begins each with what parents gathered: scatter and
 * gather are each other's adjoints. What has no rows, gradients of weights above all, follows outside, once over all
 * rows (lazy batching); what depends on weights alone comes before. The forward pass keeps what is read here. */
#include "ops/vertices.h"

#include <stdio.h>
#include <string.h>

/* A vertex function while its gradient is built. Arrays are by values of the differentiated region. */
struct side {
    const struct vertices_function *function;
    int f;
    graphi_graph *graph;   /* the region and its derivative */
    int32_t values, nodes; /* of them, those of the region */
    int32_t *inputs;
    graphi_value seed[VERTICES_STATES], *gradient; /* gradient: by place among rows, gathers, weights */
    graphi_value *given; /* row value from outside: of the graph outside, GRAPHI_NONE: it is made in the loop */
    bool *wanted, *on_rows, *result; /* on_rows: has rows or follows from some; result: read outside of the loop */
    graphi_value *outside, *inside, *transposed; /* maps of the copies */
    graphi_graph *body;
};

struct rule {
    struct gradient_call *call;
    struct vertices_node node;
    struct vertices_build build;
    struct side side[FRONTIER_FUNCTIONS];
    graphi_value first; /* output of the gradient's node */
};

static bool has_rows(const struct side *s, int32_t v)
{
    return graph_value(s->graph, v)->type.symbol >= 0;
}

static int64_t middle(const struct side *s)
{
    return 1 + s->function->rows;
}
static int64_t last(const struct side *s)
{
    return middle(s) + s->function->gathers;
}

/* The forward node's result that holds a value of the region; of one that is a state too, a result in the order of the
 * function, if there is one. */
static graphi_value kept(const struct rule *r, const struct side *s, int32_t value)
{
    int64_t found = -1;
    for (size_t i = 0; i < s->function->body->outputs.count; i++) {
        const struct graph_output *o = &s->function->body->outputs.data[i];
        const int64_t k = vertices_output(o->name);
        if (o->value == value && (k >= VERTICES_FIRST_KEPT || r->node.functions == 1))
            found = k;
    }
    return found < 0 ? GRAPHI_NONE : r->call->out[found];
}

/* --- differentiating a region --- */

static graphi_value seed_like(graphi_graph *graph, const char *what, int64_t number, int32_t value)
{
    char name[48];
    struct value_type type = graph_value(graph, value)->type;
    type.dtype = GRAPHI_F32;
    snprintf(name, sizeof name, "%s %lld", what, (long long)number);
    return graph_input(graph, name, &type);
}

static int find_wrt(const struct rule *r, const struct side *s, graphi_value *wrt, int *place)
{
    int n = 0;
    for (int64_t i = 1; i < last(s) + s->function->weights; i++) {
        const bool gathered = i >= middle(s) && i < last(s);
        const int64_t argument = s->function->input + i - 1 - (i >= last(s) ? s->function->gathers : 0);
        if (graph_value(s->graph, s->inputs[i])->type.dtype != GRAPHI_F32 || (!gathered && !r->call->needed[argument]))
            continue;
        place[n] = (int)i - 1;
        wrt[n++] = s->inputs[i];
    }
    return n;
}

static void differentiate(struct rule *r, struct side *s, graphi_value *work, int *place)
{
    const graphi_graph *body = s->function->body;
    const int outputs = (int)body->outputs.count, inputs = (int)(last(s) + s->function->weights);
    graphi_value *of = work, *seed = of + outputs, *wrt = seed + outputs, *gradient = wrt + inputs;
    int seeds = 0;
    for (int i = 0; i < outputs; i++) {
        const int64_t k = vertices_output(body->outputs.data[i].name);
        const bool state = k < r->node.states;
        if (k < 0 || (!state && r->call->grad_out[k] == GRAPHI_NONE))
            continue;
        of[seeds] = body->outputs.data[i].value;
        seed[seeds++] = seed_like(s->graph, state ? "state" : "result", k, body->outputs.data[i].value);
    }
    const int n = find_wrt(r, s, wrt, place);
    s->graph->outputs.count = 0;
    graph_forget_names(s->graph);
    if (n && graph_differentiate(s->graph, seeds, of, seed, n, wrt, gradient) == GRAPHI_OK)
        for (int i = 0; i < n; i++)
            s->gradient[place[i]] = gradient[i];
    graph_broken(r->call->graph, graphi_graph_status(s->graph));
}

static graphi_status open_side(struct rule *r, int f)
{
    struct side *s = &r->side[f];
    s->function = &r->node.function[f];
    s->f = f;
    TRY(graph_clone(s->function->body, &s->graph));
    s->values = (int32_t)s->graph->values.count;
    s->nodes = (int32_t)s->graph->nodes.count;
    const size_t inputs = (size_t)(last(s) + s->function->weights), outputs = s->function->body->outputs.count;
    s->inputs = mem_zalloc_array((size_t)s->values + 1, sizeof *s->inputs);
    s->gradient = mem_zalloc_array(inputs + 1, sizeof *s->gradient);
    graphi_value *work = mem_zalloc_array(2 * (inputs + outputs) + 1, sizeof *work);
    int *place = mem_zalloc_array(inputs + 1, sizeof *place);
    graphi_status status = s->inputs && s->gradient && work && place ? GRAPHI_OK : fail_memory("vertices", inputs);
    for (size_t i = 0; !status && i < inputs; i++)
        s->gradient[i] = GRAPHI_NONE;
    if (!status) {
        vertices_body_inputs(s->graph, s->inputs);
        differentiate(r, s, work, place);
        status = r->call->graph->status;
    }
    mem_free(work);
    mem_free(place);
    TRY(status);
    const size_t all = s->graph->values.count + 1;
    s->wanted = mem_zalloc_array(3 * all, sizeof *s->wanted);
    s->given = mem_zalloc_array(4 * all, sizeof *s->given);
    if (!s->wanted || !s->given)
        return fail_memory("vertices", all);
    s->on_rows = s->wanted + all;
    s->result = s->on_rows + all;
    s->outside = s->given + all;
    s->inside = s->outside + all;
    s->transposed = s->inside + all;
    for (size_t i = 0; i < 4 * all; i++)
        s->given[i] = GRAPHI_NONE;
    return GRAPHI_OK;
}

static void close_side(struct side *s)
{
    graphi_graph_destroy(s->graph);
    mem_free(s->inputs);
    mem_free(s->gradient);
    mem_free(s->wanted);
    mem_free(s->given);
}

/* --- what is where --- */

static bool in_loop(const struct side *s, int32_t node)
{
    return node >= s->nodes && has_rows(s, graph_node(s->graph, node)->output);
}

/* Values that come from outside: of the forward pass, or gradients of its results. */
static void find_given(const struct rule *r, struct side *s)
{
    s->outside[s->inputs[0]] = r->call->in[0];
    for (int64_t i = 1; i < last(s) + s->function->weights; i++)
        if (i < middle(s) || i >= last(s))
            s->outside[s->inputs[i]] =
                r->call->in[s->function->input + i - 1 - (i >= last(s) ? s->function->gathers : 0)];
    for (int32_t v = 0; v < s->values; v++)
        if (s->outside[v] == GRAPHI_NONE)
            s->outside[v] = kept(r, s, v);
    for (size_t v = (size_t)s->values; v < s->graph->values.count; v++) {
        const struct value *value = graph_value(s->graph, (int32_t)v);
        int number;
        if (value->kind == VALUE_INPUT && sscanf(value->name, "result %d", &number) == 1)
            s->outside[v] = r->call->grad_out[number];
        if (value->kind == VALUE_INPUT && sscanf(value->name, "state %d", &number) == 1)
            s->seed[number] = (graphi_value)v;
    }
    for (size_t v = 0; v < s->graph->values.count; v++)
        s->given[v] = has_rows(s, (int32_t)v) ? s->outside[v] : GRAPHI_NONE;
}

static void want(struct side *s)
{
    const int64_t inputs = last(s) + s->function->weights - 1;
    for (int64_t i = 0; i < inputs; i++)
        if (s->gradient[i] != GRAPHI_NONE) {
            s->wanted[s->gradient[i]] = true;
            const bool gathered = i >= s->function->rows && i < s->function->rows + s->function->gathers;
            s->result[s->gradient[i]] |= !gathered && has_rows(s, s->gradient[i]);
        }
    for (int32_t n = (int32_t)s->graph->nodes.count - 1; n >= s->nodes; n--) {
        const struct node *node = graph_node(s->graph, n);
        bool any = false;
        for (int k = 0; k < node->outputs; k++)
            any |= s->wanted[node->output + k];
        for (int k = 0; any && k < node->inputs; k++) {
            s->wanted[node->input[k]] = true;
            s->result[node->input[k]] |= !in_loop(s, n) && has_rows(s, node->input[k]);
        }
        for (int k = 0; any && k < node->outputs; k++)
            s->wanted[node->output + k] = true;
    }
    for (size_t v = 0; v < s->graph->values.count; v++)
        s->on_rows[v] = has_rows(s, (int32_t)v);
    for (int32_t n = s->nodes; n < (int32_t)s->graph->nodes.count; n++) {
        const struct node *node = graph_node(s->graph, n);
        for (int k = 0; k < node->inputs; k++)
            for (int o = 0; o < node->outputs && s->on_rows[node->input[k]]; o++)
                s->on_rows[node->output + o] = true;
    }
}

static bool is_wanted(const struct side *s, int32_t node)
{
    bool any = false;
    for (int k = 0; k < graph_node(s->graph, node)->outputs; k++)
        any |= s->wanted[graph_node(s->graph, node)->output + k];
    return any;
}

static struct vertices_copy outside_copy(const struct rule *r, const struct side *s)
{
    return (struct vertices_copy){.from = s->graph,
                                  .to = r->call->graph,
                                  .map = s->outside,
                                  .symbol = {r->node.symbol[1 + 2 * s->f], r->node.symbol[2 + 2 * s->f]}};
}

/* Nodes outside: those that follow from weights alone (before), or the others (after). */
static void copy_outside(struct rule *r, struct side *s, bool after)
{
    struct vertices_copy copy = outside_copy(r, s);
    for (int32_t n = s->nodes; n < (int32_t)s->graph->nodes.count && r->call->graph->status == GRAPHI_OK; n++)
        if (is_wanted(s, n) && !in_loop(s, n) && s->on_rows[graph_node(s->graph, n)->output] == after)
            vertices_copy_node(&copy, n);
}

/* --- the region backward --- */

static graphi_value add_input(struct side *s, const char *what, int32_t v)
{
    char name[48];
    snprintf(name, sizeof name, "%s %d", what, v);
    return graph_input(s->body, name, &graph_value(s->graph, v)->type);
}

static void give(struct rule *r, graphi_value outside)
{
    r->build.broken |= !array_push(&r->build.inputs, outside);
}

static bool loop_reads(const struct side *s, int32_t v)
{
    for (int32_t n = s->nodes; n < (int32_t)s->graph->nodes.count; n++)
        for (int k = 0; k < graph_node(s->graph, n)->inputs && in_loop(s, n) && is_wanted(s, n); k++)
            if (graph_node(s->graph, n)->input[k] == v)
                return true;
    /* What was gathered has its gradient in a result, also where that is what came in. */
    for (int64_t i = s->function->rows; i < s->function->rows + s->function->gathers; i++)
        if (s->gradient[i] == v)
            return true;
    return false;
}

static int64_t add_rows(struct rule *r, struct side *s)
{
    int64_t count = 0;
    for (int32_t v = 0; v < (int32_t)s->graph->values.count; v++) {
        if (s->given[v] == GRAPHI_NONE || !loop_reads(s, v))
            continue;
        s->inside[v] = add_input(s, "rows", v);
        give(r, s->given[v]);
        count++;
    }
    return count;
}

/* What the loop reads that has no rows: as it is, or the other way round. */
static int64_t add_weights(struct rule *r, struct side *s)
{
    int64_t count = 0;
    for (int32_t n = s->nodes; n < (int32_t)s->graph->nodes.count; n++) {
        const struct node *node = graph_node(s->graph, n);
        for (int k = 0; k < node->inputs && in_loop(s, n) && is_wanted(s, n); k++) {
            const int32_t v = node->input[k];
            const bool transposes = k == 1 && vertices_transposes(s->graph, node);
            graphi_value *place = transposes ? &s->transposed[v] : &s->inside[v];
            if (has_rows(s, v) || graph_value(s->graph, v)->kind == VALUE_CONSTANT || *place != GRAPHI_NONE)
                continue;
            struct value_type type = graph_value(s->graph, v)->type;
            if (transposes) {
                const int64_t rows = type.dims[0];
                type.dims[0] = type.dims[1];
                type.dims[1] = rows;
            }
            char name[48];
            snprintf(name, sizeof name, transposes ? "transposed %d" : "weights %d", v);
            *place = graph_input(s->body, name, &type);
            give(r, transposes ? vertices_transpose(r->call->graph, s->outside[v]) : s->outside[v]);
            count++;
        }
    }
    return count;
}

/* Gradients of what was gathered come first, then other results. */
static int64_t add_results(struct rule *r, struct side *s, struct vertices_gather *gather)
{
    int64_t count = 0;
    for (int64_t i = 0; i < s->function->gathers; i++) {
        const graphi_value v = s->gradient[s->function->rows + i];
        if (v == GRAPHI_NONE)
            continue;
        gather[count] = s->function->gather[i];
        gather[count++].output = r->build.outputs;
        vertices_build_output(&r->build, s->f, s->body, s->inside[v]);
    }
    return count;
}

static void build_body(struct rule *r, struct side *s, struct vertices_gather *gather, int32_t *output)
{
    s->body = r->build.body[s->f] = vertices_body(r->call->graph, &r->node.bounds);
    if (!s->body)
        return;
    s->inside[s->inputs[0]] = s->body->inputs.data[0];
    const int64_t rows = add_rows(r, s);
    for (int64_t i = 0; i < r->node.states; i++)
        s->inside[s->seed[i]] = add_input(s, "state", s->seed[i]);
    const int64_t weights = add_weights(r, s);
    struct vertices_copy copy = {.from = s->graph,
                                 .to = s->body,
                                 .map = s->inside,
                                 .transposed = s->transposed,
                                 .symbol = {BODY_ROWS, BODY_EDGES}};
    for (int32_t n = s->nodes; n < (int32_t)s->graph->nodes.count && s->body->status == GRAPHI_OK; n++)
        if (in_loop(s, n) && is_wanted(s, n))
            vertices_copy_node(&copy, n);
    if (s->body->status != GRAPHI_OK)
        return;
    const int64_t gathers = add_results(r, s, gather);
    for (int32_t v = 0; v < (int32_t)s->graph->values.count; v++) {
        output[v] = -1;
        if (!s->result[v] || s->given[v] != GRAPHI_NONE)
            continue;
        output[v] = r->build.outputs;
        vertices_build_output(&r->build, s->f, s->body, s->inside[v]);
    }
    vertices_build_function(&r->build, rows, gathers, weights, gather);
}

static void open_build(struct rule *r)
{
    const struct vertices_node *n = &r->node;
    r->build.graph = r->call->graph;
    r->build.bounds = n->bounds;
    r->build.states = n->states;
    memcpy(r->build.width, n->width, sizeof *n->width * (size_t)n->states);
    memcpy(r->build.symbol, n->symbol, sizeof *n->symbol * (size_t)(1 + 2 * n->functions));
    give(r, r->call->in[0]);
    for (int64_t s = 0; s < n->states; s++)
        if (r->call->grad_out[s] != GRAPHI_NONE) {
            r->build.seeds |= INT64_C(1) << s;
            give(r, r->call->grad_out[s]);
        }
}

static void finish(struct rule *r, struct side *s, const int32_t *output)
{
    for (int32_t v = 0; v < (int32_t)s->graph->values.count; v++)
        if (output[v] >= 0)
            s->outside[v] = r->first + output[v];
    copy_outside(r, s, true);
    for (int64_t i = 0; i < s->function->rows + s->function->gathers + s->function->weights; i++) {
        const int64_t gathers = s->function->gathers, rows = s->function->rows;
        if (s->gradient[i] == GRAPHI_NONE || (i >= rows && i < rows + gathers))
            continue;
        const graphi_value gradient = s->outside[s->gradient[i]];
        r->call->grad_in[s->function->input + i - (i >= rows ? gathers : 0)] = gradient;
    }
}

static graphi_status build(struct rule *r)
{
    int32_t *output[FRONTIER_FUNCTIONS] = {0};
    graphi_status status = GRAPHI_OK;
    open_build(r);
    for (int f = 0; !status && f < r->node.functions; f++) {
        struct side *s = &r->side[f];
        struct vertices_gather *gather = mem_zalloc_array((size_t)s->function->gathers + 1, sizeof *gather);
        output[f] = mem_zalloc_array(s->graph->values.count + 1, sizeof *output[f]);
        status = gather && output[f] ? GRAPHI_OK : fail_memory("vertices", s->graph->values.count);
        if (!status) {
            copy_outside(r, s, false);
            build_body(r, s, gather, output[f]);
            graph_broken(r->call->graph, s->body ? graphi_graph_status(s->body) : r->call->graph->status);
            status = r->call->graph->status;
        }
        mem_free(gather);
    }
    if (!status) {
        /* the row behind its own in the table */
        r->first = vertices_build_end(&r->build, r->call->op->kind + 1);
        status = r->call->graph->status;
    } else {
        for (int f = 0; f < r->node.functions; f++)
            graphi_graph_destroy(r->build.body[f]);
        array_free(&r->build.format);
        array_free(&r->build.types);
        array_free(&r->build.inputs);
    }
    for (int f = 0; f < r->node.functions; f++) {
        if (!status)
            finish(r, &r->side[f], output[f]);
        mem_free(output[f]);
    }
    return status;
}

void vertices_rule(struct gradient_call *call)
{
    struct rule *r = mem_zalloc(sizeof *r);
    if (!r) {
        graph_broken(call->graph, fail_memory("vertices", sizeof *r));
        return;
    }
    r->call = call;
    graphi_status status = vertices_node_of("vertices", call->op, &r->node);
    for (int f = 0; !status && f < r->node.functions; f++) {
        status = open_side(r, f);
        if (!status) {
            find_given(r, &r->side[f]);
            want(&r->side[f]);
        }
    }
    if (!status)
        status = build(r);
    graph_broken(call->graph, status);
    for (int f = 0; f < FRONTIER_FUNCTIONS; f++)
        close_side(&r->side[f]);
    mem_free(r);
}
