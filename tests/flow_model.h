/* SPDX-License-Identifier: Apache-2.0 */
/* Small models for tests of flow: written here, run in plans and by the interpreter, and compared. */
#ifndef TESTS_FLOW_MODEL_H
#define TESTS_FLOW_MODEL_H

#include "onnx_writer.h"

#include "base/memory.h"
#include "base/random.h"
#include "flow/flow.h"

#include "graphi/graphi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { F32 = 1, I64 = 7, MOST = 2048, PORTS = 8 };

#define check(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != GRAPHI_OK)                                                                                       \
            fail_msg("%s", graphi_message());                                                                          \
    } while (0)
#define DIMS(...)                                                                                                      \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                                             \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static inline void fill(float *data, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = 2 * random_unit(random_philox(9, seed, (uint64_t)i).v[0]) - 1;
}

static inline graphi_tensor *random_tensor(int rank, const int64_t *dims, uint64_t seed)
{
    float data[MOST];
    graphi_tensor *value = NULL;
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    assert_true(count <= MOST);
    fill(data, count, seed);
    check(graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, rank, dims, data, &value));
    return value;
}

/* A graph under construction; constants are random, in the order in which they are added. */
static struct proto graph;
static uint64_t seed;

static inline void begin(int rank, const int64_t *dims)
{
    memset(&graph, 0, sizeof graph);
    seed = 1;
    graph_port(&graph, 11, "x", F32, rank, dims);
    graph_port(&graph, 12, "y", F32, -1, NULL);
}

static inline void weights(const char *name, int rank, const int64_t *dims)
{
    float data[MOST];
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    assert_true(count <= MOST);
    fill(data, count, 100 + seed++);
    graph_constant(&graph, name, F32, rank, dims, data, (size_t)count * 4);
}

static inline void positive(const char *name, int64_t count)
{
    float data[MOST];
    fill(data, count, 100 + seed++);
    for (int64_t i = 0; i < count; i++)
        data[i] = data[i] * data[i] + 0.5f;
    graph_constant(&graph, name, F32, 1, &count, data, (size_t)count * 4);
}

static inline void numbers(const char *name, int count, const int64_t *list)
{
    graph_constant(&graph, name, I64, 1, (int64_t[]){count}, list, (size_t)count * 8);
}

static inline void scalar(const char *name, float value)
{
    graph_constant(&graph, name, F32, 0, NULL, &value, 4);
}

static inline void op(const char *type, const char *in, const char *out)
{
    graph_node(&graph, type, in, out);
}

static inline void add(const struct proto *node)
{
    proto_add(&graph, 1, node);
}

/* Whether nodes stay on the host at the declared sizes. */
enum where { ON_HOST, PLANNED, EITHER };

static inline void check_where(const struct onnx_model *model, enum where where)
{
    struct flow_report report;
    check(flow_inspect(model, NULL, &(struct flow_options){.threads = 1}, &report));
    if (where != EITHER && (where == PLANNED) != (report.host + report.open == 0))
        fail_msg("found %lld nodes on the host and %lld open, expected %s: %s", (long long)report.host,
                 (long long)report.open, where == PLANNED ? "none" : "some", report.hosts);
    mem_free(report.hosts);
}

static inline graphi_tensor *random_input(const struct model_value *port, uint64_t number)
{
    graphi_tensor *value = NULL;
    if (port->type == GRAPHI_ELEMENT_FLOAT32)
        return random_tensor(port->rank, port->dims, number);
    check(value_new("test", port->type, port->rank, port->dims, &value));
    for (int64_t i = 0; i < value->count; i++)
        if (port->type == GRAPHI_ELEMENT_INT64)
            ((int64_t *)value->data)[i] = value->count == 1 ? 7 : i * 5 % 3;
        else
            ((uint8_t *)value->data)[i] = (uint8_t)(i % 3 == 0);
    return value;
}

/* Runs the model twice in plans and compares all outputs with the interpreter's. */
static inline void compare_runs(const struct onnx_model *model, int runs)
{
    const size_t count = model->values.count;
    struct flow *flow;
    check(flow_create(model, &(struct flow_options){.threads = 1}, &flow));
    for (int again = 0; again < runs; again++) {
        struct interpreter fast = {.model = model, .loop_limit = 100}, slow = fast;
        fast.values = mem_zalloc_array(count + 1, sizeof *fast.values);
        slow.values = mem_zalloc_array(count + 1, sizeof *slow.values);
        for (size_t i = 0; i < model->graph->inputs.count; i++) {
            const int number = model->graph->inputs.data[i];
            if (model->values.data[number].constant)
                continue;
            fast.values[number] = random_input(&model->values.data[number], 50 + i + (uint64_t)(again / 2) * 100);
            slow.values[number] = value_keep(fast.values[number]);
        }
        check(flow_run(flow, &fast));
        check(interpreter_run(&slow));
        for (size_t i = 0; i < model->graph->outputs.count; i++) {
            const int number = model->graph->outputs.data[i];
            check(
                graphi_tensor_compare(interpreter_value(&fast, number), interpreter_value(&slow, number), 1e-4, 1e-5));
        }
        for (size_t i = 0; i < count; i++) {
            value_drop(fast.values[i]);
            value_drop(slow.values[i]);
        }
        mem_free(fast.values);
        mem_free(slow.values);
    }
    flow_free(flow);
}

static inline void agree(int64_t opset, enum where where)
{
    const struct proto bytes = model_of(&graph, opset);
    struct onnx_model *model;
    check(onnx_model_load("test", bytes.data, bytes.size, NULL, false, &model));
    check_where(model, where);
    compare_runs(model, 4);
    onnx_model_free(model);
}

#endif
