/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph has names for. A size that a symbol bounds is its bound. */
#include "cli/ports.h"

#include "tool/result.h"

#include <string.h>

/* "images float32[64,32,32,3]" behind what is there, as far as it fits. */
static void add_port(const graphi_port *port, char *text, size_t size)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s %s[", port->name, graphi_dtype_name(port->dtype));
    for (int d = 0; d < port->rank; d++) {
        used = strlen(text);
        snprintf(text + used, size - used, "%s%lld", d ? "," : "", (long long)port->dims[d]);
    }
    used = strlen(text);
    snprintf(text + used, size - used, "]");
}

void ports_print(const graphi_graph *graph, FILE *out)
{
    graphi_port port;
    for (graphi_port_kind kind = GRAPHI_PORT_INPUT; kind <= GRAPHI_PORT_OUTPUT; kind++)
        for (int i = 0; graphi_graph_at(graph, kind, i, &port); i++) {
            char text[512] = "";
            add_port(&port, text, sizeof text);
            fprintf(out, "%s %s\n", kind == GRAPHI_PORT_OUTPUT ? "fetch" : "feed ", text);
        }
}

void ports_inputs(const graphi_graph *graph, char *text, size_t size)
{
    graphi_port port;
    *text = 0;
    for (int i = 0; graphi_graph_at(graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s", i ? ", " : "");
        add_port(&port, text, size);
    }
}

json_t *ports_json(const graphi_graph *graph, graphi_port_kind kind)
{
    graphi_port port;
    json_t *list = json_array();
    for (int i = 0; graphi_graph_at(graph, kind, i, &port); i++) {
        json_t *shape = json_array();
        for (int d = 0; d < port.rank; d++)
            result_append(shape, json_integer(port.dims[d]));
        result_append(list, json_pack("{s:s,s:s,s:o}", "name", port.name, "dtype",
                                              graphi_dtype_name(port.dtype), "shape", shape));
    }
    return list;
}
