/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a model that was opened, its ports, and runs of it. A run has an array of values by number of its own and
 * takes nothing from the session but what is immutable, so any number of threads run one. */
#include "graphi/session.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "flow/flow.h"
#include "onnx/interpret.h"

#include <stdio.h>
#include <string.h>

enum { LOOP_LIMIT = 100000000 };

struct graphi_session {
    struct onnx_model *model;
    struct index inputs; /* by name, places in the graph's inputs */
    int64_t loop_limit;
    struct flow *flow; /* NULL: the interpreter runs all */
};

static graphi_status index_inputs(struct graphi_session *session)
{
    const struct onnx_model *m = session->model;
    for (size_t i = 0; i < m->graph->inputs.count; i++)
        if (!index_add(&session->inputs, hash_string(HASH_START, m->values.data[m->graph->inputs.data[i]].name),
                       (int32_t)i))
            return fail_memory("session", sizeof(struct index_slot));
    return GRAPHI_OK;
}

static graphi_status open_bytes(const char *path, const void *bytes, size_t size, const graphi_session_options *options,
                                bool partly, graphi_session **out)
{
    char folder[4096] = ".";
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (slash && (size_t)(slash - path) < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    struct graphi_session *session = mem_zalloc(sizeof *session);
    if (!session)
        return fail_memory("session", sizeof *session);
    session->loop_limit = options && options->loop_limit > 0 ? options->loop_limit : LOOP_LIMIT;
    graphi_status status =
        onnx_model_load(path ? path : "model", bytes, size, path ? folder : NULL, partly, &session->model);
    if (status == GRAPHI_OK)
        status = index_inputs(session);
    if (status == GRAPHI_OK && !partly && !(options && options->host))
        status = flow_create(session->model,
                             &(struct flow_options){options ? options->threads : 0, options && options->traced},
                             &session->flow);
    if (status != GRAPHI_OK) {
        graphi_session_close(session);
        return status;
    }
    *out = session;
    return GRAPHI_OK;
}

static graphi_status open_file(const char *path, const graphi_session_options *options, bool partly,
                               graphi_session **out)
{
    void *bytes;
    size_t size;
    TRY(file_check_path(path));
    TRY(file_read(path, (size_t)1 << 32, &bytes, &size));
    graphi_status status = open_bytes(path, bytes, size, options, partly, out);
    mem_free(bytes);
    return status;
}

graphi_status graphi_session_open(const char *path, const void *bytes, size_t size,
                                  const graphi_session_options *options, graphi_session **out)
{
    GIVEN(out);
    if (options && options->loop_limit < 0)
        return fail(GRAPHI_INVALID, "session", "found loop_limit %lld, expected 0 and more",
                    (long long)options->loop_limit);
    if (options && options->threads < 0)
        return fail(GRAPHI_INVALID, "session", "found %d threads, expected 0 and more", options->threads);
    return bytes ? open_bytes(path, bytes, size, options, false, out) : open_file(path, options, false, out);
}

graphi_status graphi_session_inspect(const char *path, graphi_session **out)
{
    GIVEN(out);
    return open_file(path, NULL, true, out);
}

void graphi_session_close(graphi_session *session)
{
    if (!session)
        return;
    flow_free(session->flow);
    index_free(&session->inputs);
    onnx_model_free(session->model);
    mem_free(session);
}

bool graphi_session_port_at(const graphi_session *session, graphi_session_port_kind kind, size_t i,
                            graphi_session_port *out)
{
    if (!session || !out)
        return false;
    const struct model_graph *graph = session->model->graph;
    if (i >= (kind == GRAPHI_SESSION_INPUT ? graph->inputs.count : graph->outputs.count))
        return false;
    const int number = kind == GRAPHI_SESSION_INPUT ? graph->inputs.data[i] : graph->outputs.data[i];
    const struct model_value *value = &session->model->values.data[number];
    *out = (graphi_session_port){.name = value->name,
                                 .kind = value->kind,
                                 .element = value->type,
                                 .rank = value->rank,
                                 .optional = value->optional,
                                 .has_default = kind == GRAPHI_SESSION_INPUT && value->constant};
    memcpy(out->dims, value->dims, sizeof out->dims);
    memcpy(out->symbols, value->symbols, sizeof out->symbols);
    return true;
}

bool graphi_session_operator_at(const graphi_session *session, size_t i, graphi_session_operator *out)
{
    if (!session || !out || i >= session->model->uses.count)
        return false;
    const struct model_use *use = &session->model->uses.data[i];
    *out = (graphi_session_operator){use->domain, use->type, use->nodes, use->supported,
                                     use->supported && !*use->domain && flow_knows(use->type)};
    return true;
}

graphi_status graphi_session_write_timeline(const graphi_session *session, const char *prefix)
{
    GIVEN(session);
    GIVEN(prefix);
    if (!session->flow)
        return fail(GRAPHI_INVALID, "session", "found that nothing runs in plans (host), expected some");
    return flow_timeline(session->flow, prefix);
}

void graphi_session_get_info(const graphi_session *session, graphi_session_info *out)
{
    if (!out)
        return;
    *out = (graphi_session_info){.producer = "", .graph = ""};
    if (!session)
        return;
    const struct onnx_model *m = session->model;
    *out = (graphi_session_info){.ir_version = m->ir_version,
                                 .opset = m->opset,
                                 .producer = m->producer,
                                 .graph = m->graph->name,
                                 .nodes = m->node_count,
                                 .parameters = m->parameters,
                                 .parameter_elements = m->parameter_elements,
                                 .parameter_bytes = m->parameter_bytes,
                                 .unsupported = m->unsupported};
}

static graphi_status check_input(const struct model_value *port, const graphi_tensor *value)
{
    struct value_text found, expected;
    graphi_tensor_info info;
    graphi_tensor_get_info(value, &info);
    bool fits = info.kind == port->kind || (port->optional && info.kind == GRAPHI_KIND_NOTHING);
    if (info.kind == GRAPHI_KIND_TENSOR && fits) {
        fits = (!port->type || info.element == port->type) && (port->rank < 0 || info.rank == port->rank);
        for (int i = 0; fits && i < port->rank; i++)
            fits = port->dims[i] < 0 || port->dims[i] == info.dims[i];
    }
    if (fits)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "session", "found %s as input \"%.200s\", expected %s %s (-1: any)",
                value_describe(value, &found), port->name,
                port->kind == GRAPHI_KIND_SEQUENCE ? "a sequence of" : graphi_element_name(port->type),
                port->rank < 0 ? "of any rank" : dims_describe(port->rank, port->dims, &expected));
}

static int find_input(const graphi_session *session, const char *name)
{
    const struct onnx_model *m = session->model;
    const uint64_t hash = hash_string(HASH_START, name);
    size_t seen = 0;
    for (int32_t place; (place = index_next(&session->inputs, hash, &seen)) >= 0;)
        if (strcmp(m->values.data[m->graph->inputs.data[place]].name, name) == 0)
            return m->graph->inputs.data[place];
    return -1;
}

static graphi_status fail_unknown(const graphi_session *session, const char *name)
{
    struct expected_names names = {.count = 0};
    const struct onnx_model *m = session->model;
    for (size_t i = 0; i < m->graph->inputs.count; i++)
        expect_name(&names, m->values.data[m->graph->inputs.data[i]].name);
    return fail(GRAPHI_INVALID, "session", "found input \"%.200s\", expected %s", name, expected_text(&names));
}

static graphi_status set_given(struct interpreter *run, const graphi_session *session, const char *const *names,
                               const graphi_tensor *const *values, size_t count)
{
    const struct onnx_model *m = session->model;
    for (size_t i = 0; i < count; i++) {
        const int number = find_input(session, names[i]);
        if (number < 0)
            return fail_unknown(session, names[i]);
        if (run->values[number])
            return fail(GRAPHI_INVALID, "session", "found input \"%.200s\" twice, expected it once", names[i]);
        TRY(check_input(&m->values.data[number], values[i]));
        run->values[number] = value_keep(values[i]);
    }
    return GRAPHI_OK;
}

static graphi_status set_inputs(struct interpreter *run, const graphi_session *session, const char *const *names,
                                const graphi_tensor *const *values, size_t count)
{
    const struct onnx_model *m = session->model;
    TRY(set_given(run, session, names, values, count));
    for (size_t i = 0; i < m->graph->inputs.count; i++) {
        const int number = m->graph->inputs.data[i];
        if (interpreter_value(run, number))
            continue;
        if (!m->values.data[number].optional)
            return fail(GRAPHI_INVALID, "session", "found no input \"%.200s\", expected it",
                        m->values.data[number].name);
        TRY(value_nothing(&run->values[number]));
    }
    return GRAPHI_OK;
}

graphi_status graphi_session_inspect_plan(const graphi_session *session, const char *const *names,
                                          const graphi_tensor *const *values, size_t count, graphi_session_plan *out,
                                          char **hosts)
{
    GIVEN(session);
    GIVEN(out);
    for (size_t i = 0; i < count; i++) {
        GIVEN(names && names[i]);
        GIVEN(values && values[i]);
    }
    const struct onnx_model *m = session->model;
    struct interpreter run = {.model = m, .values = mem_zalloc_array(m->values.count + 1, sizeof *run.values)};
    struct flow_report report;
    graphi_status status = run.values ? set_given(&run, session, names, values, count)
                                      : fail_memory("session", m->values.count * sizeof *run.values);
    if (status == GRAPHI_OK)
        status = flow_inspect(m, run.values, NULL, &report);
    for (size_t i = 0; run.values && i < m->values.count; i++)
        value_drop(run.values[i]);
    mem_free(run.values);
    if (status != GRAPHI_OK)
        return status;
    *out = (graphi_session_plan){.planned = report.planned,
                                 .folded = report.folded,
                                 .host = report.host,
                                 .open = report.open,
                                 .plans = report.plans,
                                 .flops = report.flops,
                                 .arena_bytes = report.arena_bytes,
                                 .packed_bytes = report.packed_bytes,
                                 .executors = report.executors,
                                 .width = report.width};
    if (hosts)
        *hosts = report.hosts;
    else
        mem_free(report.hosts);
    return GRAPHI_OK;
}

static graphi_status find_outputs(const graphi_session *session, const char *const *outputs, size_t count, int *numbers)
{
    const struct onnx_model *m = session->model;
    const size_t all = m->graph->outputs.count;
    if (!outputs && count != all)
        return fail(GRAPHI_INVALID, "session", "found room for %zu results, expected %zu", count, all);
    for (size_t i = 0; i < count; i++) {
        struct expected_names names = {.count = 0};
        size_t k = outputs ? 0 : i;
        while (outputs && k < all && strcmp(m->values.data[m->graph->outputs.data[k]].name, outputs[i]) != 0)
            expect_name(&names, m->values.data[m->graph->outputs.data[k++]].name);
        if (k == all)
            return fail(GRAPHI_INVALID, "session", "found output \"%.200s\", expected %s", outputs[i],
                        expected_text(&names));
        numbers[i] = m->graph->outputs.data[k];
    }
    return GRAPHI_OK;
}

/* All or nothing: a result that is missing leaves the caller's untouched. */
static graphi_status give_results(const struct interpreter *run, const int *numbers, size_t count,
                                  graphi_tensor **results)
{
    for (size_t i = 0; i < count; i++)
        if (!interpreter_value(run, numbers[i]))
            return fail(GRAPHI_INVALID, "session", "found no value of output \"%.200s\", expected one",
                        run->model->values.data[numbers[i]].name);
    for (size_t i = 0; i < count; i++)
        results[i] = value_keep(interpreter_value(run, numbers[i]));
    return GRAPHI_OK;
}

graphi_status graphi_session_run(const graphi_session *session, const char *const *names,
                                 const graphi_tensor *const *values, size_t count, const char *const *outputs,
                                 size_t output_count, graphi_tensor **results)
{
    GIVEN(session);
    if (count) {
        GIVEN(names);
        GIVEN(values);
    }
    if (output_count)
        GIVEN(results);
    for (size_t i = 0; i < count; i++) {
        GIVEN(names[i]);
        GIVEN(values[i]);
    }
    for (size_t i = 0; outputs && i < output_count; i++)
        GIVEN(outputs[i]);
    const size_t all = session->model->values.count;
    struct interpreter run = {.model = session->model, .loop_limit = session->loop_limit};
    run.values = mem_zalloc_array(all + 1, sizeof *run.values);
    int *numbers = mem_alloc((output_count + 1) * sizeof *numbers);
    graphi_status status = run.values && numbers ? GRAPHI_OK : fail_memory("session", all * sizeof *run.values);
    if (status == GRAPHI_OK)
        status = find_outputs(session, outputs, output_count, numbers);
    if (status == GRAPHI_OK)
        status = set_inputs(&run, session, names, values, count);
    if (status == GRAPHI_OK)
        status = session->flow ? flow_run(session->flow, &run) : interpreter_run(&run);
    if (status == GRAPHI_OK)
        status = give_results(&run, numbers, output_count, results);
    for (size_t i = 0; run.values && i < all; i++)
        value_drop(run.values[i]);
    mem_free(run.values);
    mem_free(numbers);
    return status;
}
