/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of dynamic parts (graphi/dynamic.h; cavs.txt 3). A vertex function is declared in a graph of its own.
 * When the part ends, each function is cut in three: what does not follow from anything gathered becomes nodes outside,
 * once over all vertices (eager batching); what is scattered and follows from something gathered becomes a region of
 * the `vertices` node, the loop; the rest follows outside, once over all vertices (lazy batching). The pieces are
 * ordinary graphs: differentiation, passes and kernels are those of any graph. */
#include "graphi/dynamic.h"

#include "base/memory.h"
#include "ops/vertices.h"

#include <stdio.h>

_Static_assert((int)GRAPHI_VERTEX_STATES == (int)VERTICES_STATES &&
                   (int)GRAPHI_VERTEX_FUNCTIONS == (int)FRONTIER_FUNCTIONS,
               "the public numbers are the node's");

struct pull {
    graphi_value outside, inside;
};

struct gathered {
    struct vertices_gather gather;
    graphi_value inside;
};

/* A vertex function as declared, and while it is cut. Arrays are by values of its graph. */
struct function {
    graphi_graph *graph;
    ARRAY(struct pull) pulls;
    ARRAY(struct gathered) gathers;
    graphi_value scatter[GRAPHI_VERTEX_STATES], push[GRAPHI_VERTEX_PUSHES];
    bool *follows, *needed, *loop;               /* from something gathered; for what is scattered; made in the loop */
    graphi_value *outside, *inside, *transposed; /* maps of the copies */
    int32_t *kept;                               /* output of the node; -1: none */
};

struct graphi_dynamic {
    graphi_graph *graph;
    char name[64];
    struct frontier_bounds bounds;
    int64_t states, width[GRAPHI_VERTEX_STATES];
    bool in_rounds;
    graphi_value frontier;
    int64_t rows, symbol[1 + 2 * GRAPHI_VERTEX_FUNCTIONS]; /* rows: as dimension 0 */
    int begun;
    struct function function[GRAPHI_VERTEX_FUNCTIONS];
    struct vertices_build build;
};

static graphi_value broken(graphi_dynamic *d, graphi_status status)
{
    return graph_broken(d->graph, status);
}

/* --- beginning --- */

static int64_t symbol_of(graphi_dynamic *d, const char *what, int function, int64_t bound, int64_t *rows)
{
    char name[96];
    const bool numbered = function >= 0 && d->bounds.functions > 1;
    snprintf(name, sizeof name, numbered ? "%s.%s.%d" : "%s.%s%.0d", d->name, what, numbered ? function : 0);
    *rows = graphi_symbol(d->graph, name, bound);
    for (size_t i = 0; i < d->graph->symbols.count; i++)
        if (strcmp(d->graph->symbols.data[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

static graphi_value structure_input(graphi_dynamic *d, const char *what, int64_t rows)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", d->name, what);
    return graphi_input(d->graph, name, GRAPHI_I32, 1, &rows);
}

static graphi_status settle(const graphi_dynamic_options *o, graphi_dynamic *d)
{
    const graphi_frontier_options *g = &o->graphs;
    snprintf(d->name, sizeof d->name, "%s", o->name ? o->name : "graph");
    d->bounds = (struct frontier_bounds){.vertices = g->vertices,
                                         .edges = g->edges ? g->edges : g->vertices,
                                         .functions = g->functions ? g->functions : 1,
                                         .rows = g->rows ? g->rows : FRONTIER_ROWS};
    d->bounds.children = g->children ? g->children : d->bounds.edges;
    d->bounds.children = least(d->bounds.children, d->bounds.edges);
    d->in_rounds = o->in_rounds;
    while (d->states < GRAPHI_VERTEX_STATES && o->state[d->states]) {
        d->width[d->states] = o->state[d->states];
        if (d->width[d->states++] < 1)
            return fail(GRAPHI_INVALID, "dynamic", "found a state of %lld columns, expected at least 1",
                        (long long)d->width[d->states - 1]);
    }
    if (!d->states || (o->name && (!*o->name || strlen(o->name) >= sizeof d->name)))
        return fail(GRAPHI_INVALID, "dynamic",
                    "found %lld states and the name '%.80s', expected 1 to %d states and a "
                    "name of 1 to %zu bytes",
                    (long long)d->states, d->name, GRAPHI_VERTEX_STATES, sizeof d->name - 1);
    return GRAPHI_OK;
}

static void add_structure(graphi_dynamic *d)
{
    int64_t bounds[VERTEX_BOUNDS], edges, rows;
    d->symbol[0] = symbol_of(d, "vertices", -1, d->bounds.vertices, &d->rows);
    symbol_of(d, "edges", -1, d->bounds.edges, &edges);
    for (int f = 0; f < d->bounds.functions; f++) {
        d->symbol[1 + 2 * f] = symbol_of(d, "vertices", f, d->bounds.vertices, &rows);
        d->symbol[2 + 2 * f] = symbol_of(d, "edges", f, d->bounds.edges, &rows);
    }
    graphi_value in[3] = {structure_input(d, "child_end", d->rows), structure_input(d, "child", edges)};
    if (d->bounds.functions > 1)
        in[2] = structure_input(d, "function", d->rows);
    vertex_bounds_put(&d->bounds, bounds);
    const graphi_attribute attribute = ints_attribute("bounds", bounds, VERTEX_BOUNDS);
    d->frontier = graphi_op(d->graph, "frontier", d->bounds.functions > 1 ? 3 : 2, in, 1, &attribute);
}

graphi_dynamic *graphi_dynamic_begin(graphi_graph *graph, const graphi_dynamic_options *options)
{
    if (!graph_open(graph))
        return NULL;
    graphi_dynamic *d = options ? mem_zalloc(sizeof *d) : NULL;
    graphi_status status = !options ? fail(GRAPHI_INVALID, "dynamic", "found NULL as options, expected bounds")
                           : !d     ? fail_memory("dynamic", sizeof *d)
                                    : settle(options, d);
    if (!status) {
        d->graph = graph;
        if (d->bounds.functions < 1 || d->bounds.functions > GRAPHI_VERTEX_FUNCTIONS || d->bounds.vertices < 1 ||
            d->bounds.vertices > 1 << 28)
            status =
                fail(GRAPHI_INVALID, "dynamic", "found %lld functions and %lld vertices, expected 1 to %d, 1 to %d",
                     (long long)d->bounds.functions, (long long)d->bounds.vertices, GRAPHI_VERTEX_FUNCTIONS, 1 << 28);
        else
            add_structure(d);
    }
    graph_broken(graph, status);
    if (graph->status == GRAPHI_OK)
        return d;
    mem_free(d);
    return NULL;
}

int64_t graphi_vertex_rows(const graphi_dynamic *d)
{
    return d ? d->rows : 0;
}

/* --- declaring a function --- */

static struct function *open_function(graphi_dynamic *d)
{
    if (!d || !d->begun) {
        if (d)
            broken(d, fail(GRAPHI_INVALID, "dynamic",
                           "found no vertex function, expected graphi_vertex_function "
                           "before what it does"));
        return NULL;
    }
    return &d->function[d->begun - 1];
}

graphi_graph *graphi_vertex_function(graphi_dynamic *d)
{
    if (!d || !graph_open(d->graph))
        return NULL;
    if (d->begun == d->bounds.functions) {
        broken(d, fail(GRAPHI_INVALID, "dynamic",
                       "found more than %lld vertex functions, expected as many as the "
                       "options say",
                       (long long)d->bounds.functions));
        return NULL;
    }
    struct function *f = &d->function[d->begun];
    f->graph = vertices_body(d->graph, &d->bounds);
    for (int i = 0; i < GRAPHI_VERTEX_STATES; i++)
        f->scatter[i] = GRAPHI_NONE;
    for (int i = 0; i < GRAPHI_VERTEX_PUSHES; i++)
        f->push[i] = GRAPHI_NONE;
    d->begun += f->graph != NULL;
    return f->graph;
}

static graphi_value add_input(struct function *f, const char *what, size_t number, const struct value_type *type)
{
    char name[48];
    snprintf(name, sizeof name, "%s %zu", what, number);
    return graph_input(f->graph, name, type);
}

graphi_value graphi_pull(graphi_dynamic *d, graphi_value outside)
{
    struct function *f = open_function(d);
    if (!f || !graph_open(d->graph))
        return GRAPHI_NONE;
    if (outside < 0 || (size_t)outside >= d->graph->values.count)
        return broken(d, fail(GRAPHI_INVALID, "pull", "found value %d, expected one of the graph outside", outside));
    for (size_t i = 0; i < f->pulls.count; i++)
        if (f->pulls.data[i].outside == outside)
            return f->pulls.data[i].inside;
    struct value_type type = graph_value(d->graph, outside)->type;
    if (type.symbol >= 0 && (type.symbol != d->symbol[0] || type.dims[0] != d->bounds.vertices))
        return broken(d, fail(GRAPHI_INVALID, "pull", "found rows that follow '%s', expected those of vertices",
                              d->graph->symbols.data[type.symbol].name));
    type.symbol = type.symbol >= 0 ? BODY_ROWS : -1;
    const struct pull pull = {outside, add_input(f, "pull", f->pulls.count, &type)};
    if (!array_push(&f->pulls, pull))
        return broken(d, fail_memory("pull", sizeof pull));
    return pull.inside;
}

static graphi_value gather(graphi_dynamic *d, int state, enum vertices_work work, int64_t child)
{
    struct function *f = open_function(d);
    if (!f || !graph_open(d->graph))
        return GRAPHI_NONE;
    if (state < 0 || state >= d->states || child < 0)
        return broken(d, fail(GRAPHI_INVALID, "gather", "found child %lld of state %d, expected 0 to %lld of 0 to %lld",
                              (long long)child, state, (long long)d->bounds.children - 1, (long long)d->states - 1));
    for (size_t i = 0; i < f->gathers.count; i++) {
        const struct vertices_gather *g = &f->gathers.data[i].gather;
        if (g->state == state && g->work == work && g->child == child)
            return f->gathers.data[i].inside;
    }
    const bool edges = work == VERTICES_EACH;
    const struct value_type type = {.dtype = GRAPHI_F32,
                                    .rank = 2,
                                    .dims = {edges ? d->bounds.edges : d->bounds.vertices, d->width[state]},
                                    .symbol = edges ? BODY_EDGES : BODY_ROWS};
    const struct gathered gathered = {{state, work, child, -1}, add_input(f, "gather", f->gathers.count, &type)};
    if (!array_push(&f->gathers, gathered))
        return broken(d, fail_memory("gather", sizeof gathered));
    return gathered.inside;
}

graphi_value graphi_gather(graphi_dynamic *d, int state, int64_t child)
{
    return gather(d, state, VERTICES_CHILD, child);
}

graphi_value graphi_gather_sum(graphi_dynamic *d, int state)
{
    return gather(d, state, VERTICES_SUM, 0);
}

graphi_value graphi_gather_each(graphi_dynamic *d, int state)
{
    return gather(d, state, VERTICES_EACH, 0);
}

static graphi_value move(graphi_dynamic *d, const char *kind, graphi_value rows, int64_t symbol)
{
    struct function *f = open_function(d);
    if (!f || !graph_open(d->graph))
        return GRAPHI_NONE;
    int64_t bounds[VERTEX_BOUNDS];
    vertex_bounds_put(&d->bounds, bounds);
    const graphi_attribute attributes[] = {ints_attribute("bounds", bounds, VERTEX_BOUNDS),
                                           int_attribute("function", d->begun - 1), int_attribute("symbol", symbol)};
    return graphi_op(f->graph, kind, 2, (graphi_value[]){f->graph->inputs.data[0], rows}, 3, attributes);
}

graphi_value graphi_spread(graphi_dynamic *d, graphi_value rows)
{
    return move(d, "vertex_spread", rows, BODY_EDGES);
}

graphi_value graphi_combine(graphi_dynamic *d, graphi_value edges)
{
    return move(d, "vertex_combine", edges, BODY_ROWS);
}

/* Rows of vertices, float32. */
static bool are_rows(const graphi_graph *graph, graphi_value value, int64_t columns)
{
    if (graph->status != GRAPHI_OK || value < 0 || (size_t)value >= graph->values.count)
        return false;
    const struct value_type *type = &graph_value(graph, value)->type;
    return type->symbol == BODY_ROWS && type->dtype == GRAPHI_F32 &&
           (!columns || (type->rank == 2 && type->dims[1] == columns));
}

/* Also tells the graph of an error in the function's. */
static bool is_open(graphi_dynamic *d, const struct function *f)
{
    if (graph_open(d->graph))
        broken(d, graphi_graph_status(f->graph));
    return d->graph->status == GRAPHI_OK;
}

void graphi_scatter(graphi_dynamic *d, int state, graphi_value rows)
{
    struct function *f = open_function(d);
    if (!f || !is_open(d, f))
        return;
    if (state < 0 || state >= d->states || f->scatter[state] != GRAPHI_NONE ||
        !are_rows(f->graph, rows, d->width[state]))
        broken(d, fail(GRAPHI_INVALID, "scatter",
                       "found value %d for state %d of function %d, expected rows of vertices, "
                       "float32 with %lld columns, once for each of %lld states",
                       rows, state, d->begun - 1, (long long)d->width[state >= 0 && state < d->states ? state : 0],
                       (long long)d->states));
    else
        f->scatter[state] = rows;
}

void graphi_push(graphi_dynamic *d, int push, graphi_value rows)
{
    struct function *f = open_function(d);
    if (!f || !is_open(d, f))
        return;
    if (push < 0 || push >= GRAPHI_VERTEX_PUSHES || f->push[push] != GRAPHI_NONE || !are_rows(f->graph, rows, 0))
        broken(d, fail(GRAPHI_INVALID, "push",
                       "found value %d as number %d of function %d, expected float32 rows of "
                       "vertices, once for each number of 0 to %d",
                       rows, push, d->begun - 1, GRAPHI_VERTEX_PUSHES - 1));
    else
        f->push[push] = rows;
}

/* --- checks at the end --- */

static bool on_rows(const graphi_graph *graph, int32_t v)
{
    return graph_value(graph, v)->type.symbol >= 0;
}

static graphi_status check_node(const graphi_graph *graph, int32_t id)
{
    const struct node *node = graph_node(graph, id);
    char where[160];
    bool in = false;
    node_text(graph, id, where, sizeof where);
    for (int k = 0; k < node->inputs; k++)
        in |= on_rows(graph, node->input[k]);
    if (node_is(node, IS_FRONTIER) || node_is(node, IS_VERTEX_TAKE) || node_is(node, IS_VERTEX_PUT))
        return fail(GRAPHI_INVALID, where, "found it in a vertex function, expected graphi_pull and graphi_push");
    if (node->regions || node->kind->flags & (OP_RANDOM | OP_EFFECT))
        return fail(GRAPHI_INVALID, where,
                    "found it in a vertex function, expected no random numbers, effects or "
                    "sub-graphs");
    for (int k = 0; k < node->outputs && in; k++)
        if (!on_rows(graph, node->output + k) || !graph_value(graph, node->output + k)->type.rank)
            return fail(GRAPHI_INVALID, where,
                        "found an operation that mixes the rows of vertices, expected each row "
                        "by itself");
    return GRAPHI_OK;
}

static graphi_status check_function(const graphi_dynamic *d, int i)
{
    const struct function *f = &d->function[i];
    TRY(graphi_graph_status(f->graph));
    if (f->graph->inputs.count != 1 + f->pulls.count + f->gathers.count || f->graph->symbols.count != 2)
        return fail(GRAPHI_INVALID, "vertex function",
                    "found an input or a symbol of its own in function %d, expected "
                    "graphi_pull and graphi_gather",
                    i);
    for (int s = 0; s < d->states; s++)
        if (f->scatter[s] == GRAPHI_NONE)
            return fail(GRAPHI_INVALID, "vertex function",
                        "found state %d of function %d not scattered, expected all "
                        "states",
                        s, i);
    for (int32_t n = 0; n < (int32_t)f->graph->nodes.count; n++)
        TRY(check_node(f->graph, n));
    return GRAPHI_OK;
}

static graphi_status check_parts(const graphi_dynamic *d, int count)
{
    if (d->begun != d->bounds.functions)
        return fail(GRAPHI_INVALID, "dynamic", "found %d vertex functions, expected %lld", d->begun,
                    (long long)d->bounds.functions);
    for (int i = 0; i < d->begun; i++)
        TRY(check_function(d, i));
    for (int p = 0; p < count; p++) {
        bool any = false;
        for (int i = 0; i < d->begun; i++)
            any |= p < GRAPHI_VERTEX_PUSHES && d->function[i].push[p] != GRAPHI_NONE;
        if (!any)
            return fail(GRAPHI_INVALID, "dynamic", "found push %d of no vertex function, expected one that makes it",
                        p);
    }
    return GRAPHI_OK;
}

/* --- cutting --- */

static graphi_status open_cut(struct function *f)
{
    const size_t values = f->graph->values.count + 1;
    f->follows = mem_zalloc_array(3 * values, sizeof *f->follows);
    f->outside = mem_zalloc_array(4 * values, sizeof *f->outside);
    if (!f->follows || !f->outside)
        return fail_memory("vertex function", values);
    f->needed = f->follows + values;
    f->loop = f->needed + values;
    f->inside = f->outside + values;
    f->transposed = f->inside + values;
    f->kept = f->transposed + values;
    for (size_t i = 0; i < 4 * values; i++)
        f->outside[i] = GRAPHI_NONE;
    return GRAPHI_OK;
}

/* Which values follow from something gathered, and which of them are made in the loop. */
static void cut(const graphi_dynamic *d, struct function *f)
{
    const graphi_graph *g = f->graph;
    for (size_t i = 0; i < f->gathers.count; i++)
        f->follows[f->gathers.data[i].inside] = true;
    for (size_t n = 0; n < g->nodes.count; n++) {
        const struct node *node = graph_node(g, (int32_t)n);
        bool any = d->in_rounds && on_rows(g, node->output);
        for (int k = 0; k < node->inputs; k++)
            any |= f->follows[node->input[k]];
        for (int k = 0; k < node->outputs; k++)
            f->follows[node->output + k] = any;
    }
    for (int s = 0; s < d->states; s++)
        f->needed[f->scatter[s]] = true;
    for (int p = 0; p < GRAPHI_VERTEX_PUSHES && d->in_rounds; p++)
        if (f->push[p] != GRAPHI_NONE)
            f->needed[f->push[p]] = true;
    for (size_t n = g->nodes.count; n-- > 0;) {
        const struct node *node = graph_node(g, (int32_t)n);
        bool any = false;
        for (int k = 0; k < node->outputs; k++)
            any |= f->needed[node->output + k];
        for (int k = 0; k < node->inputs && any; k++)
            f->needed[node->input[k]] = true;
        for (int k = 0; k < node->outputs; k++)
            f->loop[node->output + k] = any && f->follows[node->output + k];
    }
}

static bool in_loop(const struct function *f, int32_t n)
{
    return f->loop[graph_node(f->graph, n)->output];
}

static graphi_value outside_parameter(graphi_dynamic *d, const struct value *v)
{
    const int32_t known = graph_find_source(d->graph, v->name);
    if (known >= 0 && graph_value(d->graph, known)->kind == VALUE_PARAMETER &&
        type_equal(&graph_value(d->graph, known)->type, &v->type))
        return known;
    const graphi_value made = graphi_parameter(d->graph, v->name, v->type.dtype, v->type.rank, v->type.dims, &v->init);
    if (v->frozen)
        graphi_freeze(d->graph, made);
    return made;
}

static graphi_value take(graphi_dynamic *d, int f, const char *kind, graphi_value x, int64_t symbol)
{
    int64_t bounds[VERTEX_BOUNDS];
    vertex_bounds_put(&d->bounds, bounds);
    const graphi_attribute attributes[] = {ints_attribute("bounds", bounds, VERTEX_BOUNDS),
                                           int_attribute("function", f), int_attribute("symbol", symbol)};
    return graphi_op(d->graph, kind, 2, (graphi_value[]){d->frontier, x}, 3, attributes);
}

static bool is_read(const struct function *f, graphi_value v)
{
    for (size_t n = 0; n < f->graph->nodes.count; n++)
        for (int k = 0; k < graph_node(f->graph, (int32_t)n)->inputs; k++)
            if (graph_node(f->graph, (int32_t)n)->input[k] == v)
                return true;
    for (int i = 0; i < GRAPHI_VERTEX_STATES; i++)
        if (f->scatter[i] == v)
            return true;
    for (int i = 0; i < GRAPHI_VERTEX_PUSHES; i++)
        if (f->push[i] == v)
            return true;
    return false;
}

/* Sources of a function, as values outside. */
static void place_sources(graphi_dynamic *d, int i)
{
    struct function *f = &d->function[i];
    f->outside[f->graph->inputs.data[0]] = d->frontier;
    for (size_t p = 0; p < f->pulls.count; p++) {
        const struct pull *pull = &f->pulls.data[p];
        if (!on_rows(f->graph, pull->inside))
            f->outside[pull->inside] = pull->outside;
        else if (is_read(f, pull->inside))
            f->outside[pull->inside] = take(d, i, "vertex_take", pull->outside, d->symbol[1 + 2 * i]);
    }
    for (size_t p = 0; p < f->graph->parameters.count; p++) {
        const int32_t v = f->graph->parameters.data[p];
        f->outside[v] = outside_parameter(d, graph_value(f->graph, v));
    }
}

/* Nodes outside of the loop: what comes before it, or after it. */
static void copy_outside(graphi_dynamic *d, int i, bool after)
{
    struct function *f = &d->function[i];
    struct vertices_copy copy = {
        .from = f->graph, .to = d->graph, .map = f->outside, .symbol = {d->symbol[1 + 2 * i], d->symbol[2 + 2 * i]}};
    for (int32_t n = 0; n < (int32_t)f->graph->nodes.count && d->graph->status == GRAPHI_OK; n++)
        if (!in_loop(f, n) && f->follows[graph_node(f->graph, n)->output] == after)
            vertices_copy_node(&copy, n);
}

/* --- the loop --- */

static graphi_value region_input(graphi_graph *body, const char *what, const struct function *f, int32_t v,
                                 bool transposed)
{
    char name[48];
    struct value_type type = graph_value(f->graph, v)->type;
    if (transposed) {
        const int64_t rows = type.dims[0];
        type.dims[0] = type.dims[1];
        type.dims[1] = rows;
    }
    snprintf(name, sizeof name, "%s %d", what, v);
    return graph_input(body, name, &type);
}

static bool loop_reads(const graphi_dynamic *d, const struct function *f, int32_t v)
{
    for (int s = 0; s < d->states; s++)
        if (f->scatter[s] == v)
            return true;
    for (int32_t n = 0; n < (int32_t)f->graph->nodes.count; n++)
        for (int k = 0; k < graph_node(f->graph, n)->inputs && in_loop(f, n); k++)
            if (graph_node(f->graph, n)->input[k] == v)
                return true;
    return false;
}

static bool is_gathered(const struct function *f, int32_t v)
{
    for (size_t i = 0; i < f->gathers.count; i++)
        if (f->gathers.data[i].inside == v)
            return true;
    return false;
}

static int64_t add_rows(graphi_dynamic *d, struct function *f, graphi_graph *body)
{
    int64_t count = 0;
    for (int32_t v = 0; v < (int32_t)f->graph->values.count; v++) {
        if (!on_rows(f->graph, v) || f->loop[v] || is_gathered(f, v) || !loop_reads(d, f, v))
            continue;
        f->inside[v] = region_input(body, "rows", f, v, false);
        d->build.broken |= !array_push(&d->build.inputs, f->outside[v]);
        count++;
    }
    return count;
}

static int64_t add_weights(graphi_dynamic *d, struct function *f, graphi_graph *body)
{
    int64_t count = 0;
    for (int32_t n = 0; n < (int32_t)f->graph->nodes.count; n++) {
        const struct node *node = graph_node(f->graph, n);
        for (int k = 0; k < node->inputs && in_loop(f, n); k++) {
            const int32_t v = node->input[k];
            const bool transposes = k == 1 && vertices_transposes(f->graph, node);
            graphi_value *place = transposes ? &f->transposed[v] : &f->inside[v];
            if (on_rows(f->graph, v) || graph_value(f->graph, v)->kind == VALUE_CONSTANT || *place != GRAPHI_NONE ||
                v == f->graph->inputs.data[0])
                continue;
            *place = region_input(body, transposes ? "transposed" : "weights", f, v, transposes);
            d->build.broken |=
                !array_push(&d->build.inputs, transposes ? vertices_transpose(d->graph, f->outside[v]) : f->outside[v]);
            count++;
        }
    }
    return count;
}

/* A function's region without its results. */
static void build_body(graphi_dynamic *d, int i)
{
    struct function *f = &d->function[i];
    graphi_graph *body = d->build.body[i] = vertices_body(d->graph, &d->bounds);
    struct vertices_gather *gathers = mem_zalloc_array(f->gathers.count + 1, sizeof *gathers);
    if (!body || !gathers) {
        mem_free(gathers);
        broken(d, fail_memory("vertex function", sizeof *gathers * f->gathers.count));
        return;
    }
    f->inside[f->graph->inputs.data[0]] = body->inputs.data[0];
    const int64_t rows = add_rows(d, f, body);
    for (size_t g = 0; g < f->gathers.count; g++) {
        f->inside[f->gathers.data[g].inside] = region_input(body, "gathered", f, f->gathers.data[g].inside, false);
        gathers[g] = f->gathers.data[g].gather;
    }
    const int64_t weights = add_weights(d, f, body);
    vertices_build_function(&d->build, rows, (int64_t)f->gathers.count, weights, gathers);
    mem_free(gathers);
    struct vertices_copy copy = {
        .from = f->graph, .to = body, .map = f->inside, .transposed = f->transposed, .symbol = {BODY_ROWS, BODY_EDGES}};
    for (int32_t n = 0; n < (int32_t)f->graph->nodes.count && body->status == GRAPHI_OK; n++)
        if (in_loop(f, n))
            vertices_copy_node(&copy, n);
    broken(d, graphi_graph_status(body));
}

static void add_type(graphi_dynamic *d, enum vertices_rows rows, const struct value_type *type)
{
    int64_t ints[VERTICES_TYPE];
    vertices_type_put(ints, 0, rows, type);
    for (int i = 0; i < VERTICES_TYPE; i++)
        d->build.broken |= !array_push(&d->build.types, ints[i]);
}

/* States come first. */
static void add_states(graphi_dynamic *d)
{
    for (int s = 0; s < VERTICES_FIRST_KEPT; s++, d->build.outputs++) {
        const struct value_type type = {.dtype = GRAPHI_F32,
                                        .rank = s < d->states ? 2 : 1,
                                        .dims = {s < d->states ? d->bounds.vertices : 1, d->width[s]}};
        add_type(d, s < d->states ? VERTICES_SLOTS : VERTICES_FIXED, &type);
        char name[24];
        snprintf(name, sizeof name, "o%d", s);
        for (int f = 0; f < d->begun && s < d->states; f++)
            graphi_output(d->build.body[f], name, d->function[f].inside[d->function[f].scatter[s]]);
    }
}

/* The state that is this value, all of whose rows are this function's; -1: none. */
static int state_of(const graphi_dynamic *d, const struct function *f, int32_t v)
{
    for (int s = 0; s < d->states && d->begun == 1; s++)
        if (f->scatter[s] == v)
            return s;
    return -1;
}

/* Everything that a function computes in the loop can be read: by what comes after, and by the gradient. */
static void add_kept(graphi_dynamic *d, int i)
{
    struct function *f = &d->function[i];
    for (int32_t v = 0; v < (int32_t)f->graph->values.count; v++) {
        if ((!f->loop[v] && !is_gathered(f, v)) || !on_rows(f->graph, v))
            continue;
        f->kept[v] = state_of(d, f, v);
        if (f->kept[v] >= 0)
            continue;
        f->kept[v] = d->build.outputs;
        vertices_build_output(&d->build, i, d->build.body[i], f->inside[v]);
    }
}

static void build_loop(graphi_dynamic *d)
{
    d->build.graph = d->graph;
    d->build.bounds = d->bounds;
    d->build.states = d->states;
    memcpy(d->build.width, d->width, sizeof d->width);
    memcpy(d->build.symbol, d->symbol, sizeof d->symbol);
    d->build.broken |= !array_push(&d->build.inputs, d->frontier);
    for (int i = 0; i < d->begun && d->graph->status == GRAPHI_OK; i++)
        build_body(d, i);
    if (d->graph->status == GRAPHI_OK) {
        add_states(d);
        for (int i = 0; i < d->begun; i++)
            add_kept(d, i);
    }
    const graphi_value first = vertices_build_end(&d->build, &ops_vertices[0]);
    for (int i = 0; i < d->begun && first != GRAPHI_NONE; i++)
        for (size_t v = 0; v < d->function[i].graph->values.count; v++)
            if (d->function[i].kept[v] >= 0)
                d->function[i].outside[v] = first + d->function[i].kept[v];
}

static graphi_value pushed_value(graphi_dynamic *d, int push)
{
    graphi_value sum = GRAPHI_NONE;
    for (int i = 0; i < d->begun; i++) {
        const struct function *f = &d->function[i];
        if (f->push[push] == GRAPHI_NONE)
            continue;
        const graphi_value rows = take(d, i, "vertex_put", f->outside[f->push[push]], d->symbol[0]);
        sum = sum == GRAPHI_NONE ? rows : graphi_op(d->graph, "add", 2, (graphi_value[]){sum, rows}, 0, NULL);
    }
    return sum;
}

static graphi_status build(graphi_dynamic *d, int count, graphi_value *pushed)
{
    TRY(d->graph->status);
    TRY(check_parts(d, count));
    for (int i = 0; i < d->begun; i++) {
        TRY(open_cut(&d->function[i]));
        cut(d, &d->function[i]);
        place_sources(d, i);
        copy_outside(d, i, false);
    }
    TRY(d->graph->status);
    build_loop(d);
    for (int i = 0; i < d->begun; i++)
        copy_outside(d, i, true);
    for (int p = 0; p < count && d->graph->status == GRAPHI_OK; p++)
        pushed[p] = pushed_value(d, p);
    return d->graph->status;
}

graphi_status graphi_dynamic_end(graphi_dynamic *d, int count, graphi_value *pushed)
{
    if (!d)
        return fail(GRAPHI_INVALID, "dynamic",
                    "found NULL, expected what graphi_dynamic_begin gave: the graph's status "
                    "says why it gave nothing");
    graphi_status status = count && !pushed ? fail(GRAPHI_INVALID, "dynamic", "found NULL as pushed, expected room")
                                            : build(d, count, pushed);
    graph_broken(d->graph, status);
    for (int i = 0; i < GRAPHI_VERTEX_FUNCTIONS; i++) {
        struct function *f = &d->function[i];
        graphi_graph_destroy(f->graph);
        array_free(&f->pulls);
        array_free(&f->gathers);
        mem_free(f->follows);
        mem_free(f->outside);
    }
    mem_free(d);
    return status;
}
