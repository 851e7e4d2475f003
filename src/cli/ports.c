/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs by name. A size that a symbol bounds is its bound. */
#include "cli/ports.h"

#include <string.h>

struct port {
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
};

/* The i-th of them; false past the end. */
static bool port_at(const graphi_graph *graph, bool outputs, int i, struct port *port)
{
    port->name = outputs ? graphi_graph_output_at(graph, i) : graphi_graph_input_at(graph, i);
    return port->name && graphi_value_type(graph, graphi_find(graph, port->name), &port->dtype, &port->rank,
                                           port->dims) == GRAPHI_OK;
}

/* "images float32[64,32,32,3]" behind what is there, as far as it fits. */
static void add_port(const struct port *port, char *text, size_t size)
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
    struct port port;
    for (int outputs = 0; outputs < 2; outputs++)
        for (int i = 0; port_at(graph, outputs, i, &port); i++) {
            char text[512] = "";
            add_port(&port, text, sizeof text);
            fprintf(out, "%s %s\n", outputs ? "fetch" : "feed ", text);
        }
}

void ports_inputs(const graphi_graph *graph, char *text, size_t size)
{
    struct port port;
    *text = 0;
    for (int i = 0; port_at(graph, false, i, &port); i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s", i ? ", " : "");
        add_port(&port, text, size);
    }
}

json_t *ports_json(const graphi_graph *graph, bool outputs)
{
    struct port port;
    json_t *list = json_array();
    for (int i = 0; port_at(graph, outputs, i, &port); i++) {
        json_t *shape = json_array();
        for (int d = 0; d < port.rank; d++)
            json_array_append_new(shape, json_integer(port.dims[d]));
        json_array_append_new(list, json_pack("{s:s,s:s,s:o}", "name", port.name, "dtype",
                                              graphi_dtype_name(port.dtype), "shape", shape));
    }
    return list;
}
