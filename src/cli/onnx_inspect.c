/* SPDX-License-Identifier: Apache-2.0 */
/* graphi inspect FILE.onnx: ports, operators, parameters, and what is not supported. */
#include "cli/onnx.h"

#include "cli/onnx_inputs.h"
#include "tool/report.h"
#include "tool/result.h"

#include <string.h>

static void port_shape(const graphi_session_port *port, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%s", port->kind == GRAPHI_KIND_SEQUENCE ? "sequence of " : "");
    at += (size_t)snprintf(text + at, size - at, "%s", graphi_element_name(port->element));
    if (port->rank < 0)
        snprintf(text + at, size - at, ", any shape");
    for (int i = 0; i < port->rank && at + 80 < size; i++) {
        const char *before = i ? ", " : " [";
        if (port->dims[i] >= 0)
            at += (size_t)snprintf(text + at, size - at, "%s%lld", before, (long long)port->dims[i]);
        else
            at += (size_t)snprintf(text + at, size - at, "%s%.40s", before, port->symbols[i] ? port->symbols[i] : "?");
    }
    if (port->rank >= 0)
        snprintf(text + at, size - at, port->rank ? "]" : " []");
}

static json_t *ports(const graphi_session *session, graphi_session_port_kind kind, FILE *out)
{
    json_t *list = json_array();
    graphi_session_port port;
    char shape[512];
    for (size_t i = 0; graphi_session_port_at(session, kind, i, &port); i++) {
        port_shape(&port, shape, sizeof shape);
        if (out)
            fprintf(out, "%s %s: %s%s\n", kind == GRAPHI_SESSION_INPUT ? "input" : "output", port.name, shape,
                    port.has_default ? ", has a default"
                    : port.optional  ? ", optional"
                                     : "");
        json_t *item = json_object();
        result_string(item, "name", port.name);
        result_string(item, "dtype", graphi_element_name(port.element));
        json_t *dims = json_array();
        for (int k = 0; k < port.rank; k++)
            result_append(dims, json_integer(port.dims[k]));
        result_set(item, "shape", port.rank < 0 ? json_null() : json_incref(dims));
        json_decref(dims);
        result_append(list, item);
    }
    return list;
}

static json_t *operators(const graphi_session *session, FILE *out)
{
    json_t *list = json_array();
    graphi_session_operator op;
    for (size_t i = 0; graphi_session_operator_at(session, i, &op); i++) {
        if (out)
            fprintf(out, "operator %s%s%s: %lld%s\n", op.domain, *op.domain ? "." : "", op.name, (long long)op.nodes,
                    !op.supported ? ", UNSUPPORTED"
                    : op.planned  ? ""
                                  : ", in a plan only as a constant");
        json_t *item = json_object();
        result_string(item, "domain", op.domain);
        result_string(item, "name", op.name);
        result_integer(item, "nodes", op.nodes);
        result_set(item, "supported", json_boolean(op.supported));
        result_set(item, "planned", json_boolean(op.planned));
        result_append(list, item);
    }
    return list;
}

static json_t *plan(const graphi_session_plan *p, const char *hosts, FILE *out)
{
    json_t *item = json_object(), *list = json_array();
    if (out)
        fprintf(out,
                "plan: %lld nodes in %lld plans, %lld whose results are constants, %lld on the host, %lld that a run "
                "decides on\n",
                (long long)p->planned, (long long)p->plans, (long long)p->folded, (long long)p->host,
                (long long)p->open);
    if (out && p->plans)
        fprintf(out, "plan: %.3f GFLOP, %.1f MB of results, %.1f MB of packed weights, %d x %d threads\n",
                p->flops * 1e-9, (double)p->arena_bytes * 1e-6, (double)p->packed_bytes * 1e-6, p->executors, p->width);
    for (const char *line = hosts; *line; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\n");
        if (out)
            fprintf(out, "on the host: %.*s\n", (int)length, line);
        result_append(list, json_stringn(line, length));
        if (!line[length])
            break;
    }
    result_integer(item, "nodes", p->planned);
    result_integer(item, "folded", p->folded);
    result_integer(item, "host", p->host);
    result_integer(item, "open", p->open);
    result_integer(item, "plans", p->plans);
    result_number(item, "flop", p->flops);
    result_integer(item, "arena_bytes", p->arena_bytes);
    result_integer(item, "packed_bytes", p->packed_bytes);
    result_integer(item, "executors", p->executors);
    result_integer(item, "width", p->width);
    result_set(item, "hosts", list);
    return item;
}

static graphi_status find_plan(const struct options *options, const graphi_session *session, graphi_session_plan *out,
                               char **hosts)
{
    struct onnx_inputs inputs;
    graphi_status status = onnx_inputs_find(options, session, true, &inputs);
    if (status == GRAPHI_OK) {
        status = graphi_session_inspect_plan(session, inputs.names, (const graphi_tensor *const *)inputs.values,
                                             inputs.count, out, hosts);
        status = status == GRAPHI_OK ? status : report_failure(status);
    }
    onnx_inputs_free(&inputs);
    return status;
}

int onnx_inspect(const struct options *options)
{
    graphi_session *session;
    graphi_session_info info;
    graphi_session_plan lowered;
    char *hosts = NULL;
    graphi_status status = options_only(options, "inspect FILE.onnx", "--input --inputs --shape --json --quiet");
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_session_inspect(options->subject, &session)) != GRAPHI_OK)
        return report_failure(status);
    if ((status = find_plan(options, session, &lowered, &hosts)) != GRAPHI_OK) {
        graphi_session_close(session);
        return status;
    }
    FILE *out = options_json_is_stdout(options) ? NULL : stdout;
    struct result result = result_begin("inspect", NULL, options->argc, options->argv);
    graphi_session_get_info(session, &info);
    if (out)
        fprintf(out, "%s: IR %lld, opset %lld, by %s; %lld nodes, %lld parameters (%lld elements, %.1f MB)\n",
                options->subject, (long long)info.ir_version, (long long)info.opset,
                *info.producer ? info.producer : "nobody named", (long long)info.nodes, (long long)info.parameters,
                (long long)info.parameter_elements, (double)info.parameter_bytes * 1e-6);
    json_t *model = json_object();
    result_string(model, "name", options->subject);
    result_set(model, "size", json_null());
    result_set(model, "task", json_null());
    result_integer(model, "batch", 0); /* its inputs tell */
    result_string(model, "graph_hash", "");
    result_number(model, "flop", lowered.flops);
    result_integer(model, "bytes", lowered.arena_bytes);
    result_integer(model, "nodes", info.nodes);
    result_integer(model, "parameters", info.parameter_elements);
    result_set(model, "inputs", ports(session, GRAPHI_SESSION_INPUT, out));
    result_set(model, "outputs", ports(session, GRAPHI_SESSION_OUTPUT, out));
    result_set(model, "operators", operators(session, out));
    result_set(model, "plan", plan(&lowered, hosts, out));
    result_set(result.root, "model", model);
    if (info.unsupported && out)
        fprintf(out, "%lld nodes have no operator: the model does not run\n", (long long)info.unsupported);
    if (options->json)
        status = result_write(result.root, options->json);
    result_end(&result);
    graphi_free(hosts);
    graphi_session_close(session);
    return status;
}
