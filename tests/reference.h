/* SPDX-License-Identifier: Apache-2.0 */
/* A reference interpreter for tests: evaluates a graph node by node in array order, every value in its own dense array,
 * every kernel bound plain (or for r.isa) and run serially. Nothing of plans, memory planning or scheduling is used.
 * Updates of parameters take effect at the end of the run, so every reader sees the old content whatever the order.
 *
 *     struct reference r;
 *     reference_init(&r, graph);                  // all sources random in [-1, 1), integers 0; constants in place
 *     reference_set(&r, x, data);                 // overwrite a source
 *     assert_int_equal(reference_run(&r), GRAPHI_OK);
 *     const float *y = reference_floats(&r, value);
 *     reference_fini(&r);
 */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "base/float_mode.h"
#include "base/memory.h"
#include "base/random.h"
#include "graph/op.h"
#include "kernels/kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reference {
    const graphi_graph *graph;
    void **data;    /* one dense array a value, at the bound */
    enum isa isa;
    double conv_error;
    uint64_t seed, step, first_sample;
    int64_t rows;   /* actual size of bounded dimensions' symbols (all symbols); 0: the bound */
};

static inline void reference_random(float *data, int64_t count, uint64_t key)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = 2 * random_unit(random_philox(key, 0, (uint64_t)i).v[0]) - 1;
}

/* Values drawn depend on the name, so two forms of one graph get the same. */
static inline uint64_t reference_key(const char *name)
{
    uint64_t key = 1469598103934665603ull;
    for (; *name; name++)
        key = (key ^ (unsigned char)*name) * 1099511628211ull;
    return key;
}

/* Adam's second moments are means of squares: the root of a negative one is no number, which nothing can be compared
 * with. */
static inline void reference_draw(const struct value *value, float *data)
{
    int64_t count = type_count(&value->type);
    reference_random(data, count, reference_key(value->name));
    for (int64_t i = 0; strstr(value->name, "adam_v") && i < count; i++)
        data[i] = fabsf(data[i]);
}

static inline void reference_init(struct reference *r, const graphi_graph *graph)
{
    *r = (struct reference){.graph = graph, .isa = ISA_PLAIN};
    r->data = calloc(graph->values.count + 1, sizeof *r->data);
    for (size_t v = 0; v < graph->values.count; v++) {
        const struct value *value = graph_value(graph, (int32_t)v);
        size_t bytes = (size_t)type_bytes(&value->type);
        r->data[v] = mem_zalloc(bytes ? bytes : 1);
        if (value->kind == VALUE_RESULT) /* no zeros beyond the actual rows, which would hide that they are read */
            memset(r->data[v], 0x44, bytes);
        if (value->data)
            memcpy(r->data[v], value->data, bytes);
        else if (value->name && value->type.dtype == GRAPHI_F32)
            reference_draw(value, r->data[v]);
    }
}

static inline void reference_fini(struct reference *r)
{
    for (size_t v = 0; v < r->graph->values.count; v++)
        mem_free(r->data[v]);
    free(r->data);
}

static inline void reference_set(struct reference *r, graphi_value value, const void *data)
{
    memcpy(r->data[value], data, (size_t)type_bytes(&graph_value(r->graph, value)->type));
}

static inline float *reference_floats(const struct reference *r, graphi_value value) { return r->data[value]; }

static inline struct array_desc reference_desc(const struct value_type *type)
{
    struct array_desc desc = array_dense(type->dtype, type->rank, type->dims);
    desc.bounded = type->symbol >= 0;
    return desc;
}

static inline int64_t reference_rows(const struct reference *r, const struct value_type *type)
{
    if (type->rank == 0)
        return 1;
    if (type->symbol < 0 || r->rows == 0)
        return type->dims[0];
    return type->dims[0] / r->graph->symbols.data[type->symbol].bound * r->rows;
}

static graphi_status reference_run(struct reference *r);

static inline graphi_status reference_call(struct reference *r, const struct node *node)
{
    struct reference body;
    reference_init(&body, node->region[0]);
    body.isa = r->isa;
    body.seed = r->seed;
    body.step = r->step;
    body.first_sample = r->first_sample;
    body.rows = r->rows;
    for (size_t v = 0, position = 0; v < body.graph->values.count; v++)
        if (graph_value(body.graph, (int32_t)v)->kind == VALUE_INPUT)
            reference_set(&body, (graphi_value)v, r->data[node->input[position++]]);
    graphi_status status = reference_run(&body);
    for (int k = 0; status == GRAPHI_OK && k < node->outputs; k++)
        memcpy(r->data[node->output + k], body.data[body.graph->outputs.data[k].value],
               (size_t)type_bytes(&graph_value(r->graph, node->output + k)->type));
    reference_fini(&body);
    return status;
}

/* The output of a view operation without a kernel, copied element by element. */
static inline void reference_copy_view(const struct array_desc *view, int64_t offset, const char *from, char *to)
{
    size_t size = graphi_dtype_size(view->dtype);
    int64_t count = array_count(view), index[GRAPHI_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        int64_t at = offset;
        for (int d = 0; d < view->rank; d++)
            at += index[d] * view->strides[d];
        memcpy(to + (size_t)i * size, from + (size_t)at * size, size);
        for (int d = view->rank - 1; d >= 0 && ++index[d] == view->dims[d]; d--)
            index[d] = 0;
    }
}

static inline graphi_status reference_node(struct reference *r, int32_t id)
{
    const graphi_graph *graph = r->graph;
    const struct node *node = graph_node(graph, id);
    if (node->regions)
        return reference_call(r, node);
    size_t n = (size_t)(node->inputs + node->outputs) + 1;
    struct array_desc *desc = calloc(n, sizeof *desc);
    struct kernel_array *array = calloc(n, sizeof *array);
    for (int k = 0; k < node->inputs + node->outputs; k++) {
        int32_t v = k < node->inputs ? node->input[k] : node->output + k - node->inputs;
        desc[k] = reference_desc(&graph_value(graph, v)->type);
        array[k] = (struct kernel_array){r->data[v], reference_rows(r, &graph_value(graph, v)->type)};
    }
    char where[160];
    node_text(graph, id, where, sizeof where);
    struct bind_call bind = {.where = where, .node = node, .in = desc, .out = desc + node->inputs, .isa = (int)r->isa,
                             .conv_error = r->conv_error, .key = node->key};
    struct kernel kernel = {0};
    graphi_status status = GRAPHI_OK;
    struct array_desc view = desc[node->inputs];
    int64_t offset = 0;
    if (!node->kind->bind && node->kind->view && node->kind->view(&bind, &view, &offset)) {
        reference_copy_view(&view, offset, array[0].data, array[node->inputs].data);
    } else if (!node->kind->bind) {
        status = (fail)(GRAPHI_UNSUPPORTED, where, "found no kernel, expected one");
    } else {
        status = node->kind->bind(&bind, &kernel);
        if (status == GRAPHI_OK) {
            struct kernel_call call = {.in = array,
                                       .out = array + node->inputs,
                                       .workspace = mem_zalloc(kernel.workspace + 64),
                                       .params = kernel.params,
                                       .seed = r->seed,
                                       .step = r->step,
                                       .first_sample = r->first_sample};
            status = kernel_run_serial(&kernel, &call);
            mem_free(call.workspace);
        }
        kernel_fini(&kernel);
    }
    free(desc);
    free(array);
    return status;
}

static inline graphi_status reference_nodes(struct reference *r)
{
    for (size_t i = 0; i < r->graph->nodes.count; i++) {
        if (!graph_node(r->graph, (int32_t)i)->kind)
            continue;
        graphi_status status = reference_node(r, (int32_t)i);
        if (status != GRAPHI_OK)
            return status;
    }
    return GRAPHI_OK;
}

/* In the mode of runs: subnormal numbers are 0. */
static inline graphi_status reference_run(struct reference *r)
{
    const struct float_mode mode = float_mode_enter();
    const graphi_status status = reference_nodes(r);
    float_mode_leave(mode);
    if (status != GRAPHI_OK)
        return status;
    for (size_t v = 0; v < r->graph->values.count; v++) {
        const struct value *value = graph_value(r->graph, (int32_t)v);
        if (value->assigns >= 0)
            memcpy(r->data[value->assigns], r->data[v], (size_t)type_bytes(&value->type));
    }
    r->step++;
    return GRAPHI_OK;
}

/* Largest difference relative to the largest magnitude of b (at least 1); infinite where one is not a number. */
static inline double reference_difference(const float *a, const float *b, int64_t count)
{
    float scale = 1;
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        scale = fmaxf(scale, fabsf(b[i]));
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        if (!(difference <= worst)) /* also NaN, which must stay */
            worst = isnan(difference) ? INFINITY : difference;
    }
    return worst / scale;
}

/* Checks d loss / d wrt by central differences at `samples` elements. Gives the worst |numeric - analytic| relative to
 * the largest gradient (at least 1e-3). All sources must be set; the graph holds the backward nodes already. */
static inline double reference_gradient_error(struct reference *r, graphi_value loss, graphi_value wrt,
                                              graphi_value gradient, int samples, double step)
{
    const struct value_type *type = &graph_value(r->graph, wrt)->type;
    int64_t count = type_count(type), actual = type->rank ? count / type->dims[0] * reference_rows(r, type) : count;
    uint64_t at_step = r->step;
    if (reference_run(r) != GRAPHI_OK)
        return INFINITY;
    float *analytic = malloc(sizeof *analytic * (size_t)count);
    memcpy(analytic, r->data[gradient], sizeof *analytic * (size_t)actual);
    memset(analytic + actual, 0, sizeof *analytic * (size_t)(count - actual)); /* on these nothing depends */
    double scale = 1e-3, worst = 0;
    for (int64_t i = 0; i < count; i++)
        scale = fmax(scale, fabs((double)analytic[i]));
    float *x = r->data[wrt];
    for (int s = 0; s < samples; s++) {
        int64_t i = count <= samples ? s % count : (int64_t)random_philox(7, 0, (uint64_t)s).v[0] % count;
        float old = x[i];
        double side[2];
        for (int k = 0; k < 2; k++) {
            x[i] = old + (float)(k ? step : -step);
            r->step = at_step;
            if (reference_run(r) != GRAPHI_OK)
                side[k] = NAN;
            else
                side[k] = (double)*reference_floats(r, loss);
        }
        double width = (double)(float)(old + (float)step) - (double)(float)(old - (float)step);
        x[i] = old;
        double difference = fabs((side[1] - side[0]) / width - (double)analytic[i]);
        worst = isnan(difference) ? INFINITY : fmax(worst, difference);
    }
    free(analytic);
    return worst / scale;
}

#endif
