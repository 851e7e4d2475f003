/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for people: text, one line a source, node and output, and Graphviz. Regions are nested; backward nodes are
 * marked. Only attributes that differ from their defaults are shown. */
#include "graph/graph.h"

#include "base/text.h"
#include "graph/op.h"

#include <inttypes.h>
#include <string.h>

static void add_type(struct text *text, const graphi_graph *graph, const struct value_type *type)
{
    text_add(text, "%s[", graphi_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++)
        if (i == 0 && type->symbol >= 0)
            text_add(text, "%s<=%" PRId64, graph->symbols.data[type->symbol].name, type->dims[0]);
        else
            text_add(text, "%s%" PRId64, i ? "," : "", type->dims[i]);
    text_add(text, "]");
}

static void add_attribute(struct text *text, const graphi_attribute *attribute)
{
    text_add(text, "%s=", attribute->name);
    switch (attribute->type) {
    case GRAPHI_INT:
        text_add(text, "%" PRId64, attribute->i);
        break;
    case GRAPHI_FLOAT:
        text_add(text, "%.9g", attribute->f);
        break;
    case GRAPHI_INTS:
        for (int i = 0; i < attribute->count; i++)
            text_add(text, "%s%" PRId64, i ? "," : "[", attribute->ints[i]);
        text_add(text, "%s]", attribute->count ? "" : "[");
        break;
    }
}

static void add_attributes(struct text *text, const struct node *node)
{
    bool any = false;
    for (int i = 0; i < node->attributes; i++) {
        if (attribute_is_default(&node->attribute[i], &node->kind->attributes[i]))
            continue;
        text_add(text, "%s", any ? ", " : " {");
        add_attribute(text, &node->attribute[i]);
        any = true;
    }
    if (any)
        text_add(text, "}");
}

static const char *const source_names[] = {"input", "parameter", "constant", ""};

static void print_source(struct text *text, const graphi_graph *graph, int32_t id, int depth)
{
    const struct value *value = graph_value(graph, id);
    text_add(text, "%*s%s %%%d ", depth * 2, "", source_names[value->kind], id);
    if (value->name) {
        text_add_json_string(text, value->name);
        text_add(text, " ");
    }
    add_type(text, graph, &value->type);
    if (value->kind == VALUE_CONSTANT && value->type.dtype == GRAPHI_F32 && type_count(&value->type) == 1)
        text_add(text, " = %.9g", (double)*(const float *)value->data);
    text_add(text, value->frozen ? " frozen\n" : "\n");
}

static void print_graph(struct text *text, const graphi_graph *graph, int depth);

static void print_node(struct text *text, const graphi_graph *graph, int32_t id, int depth)
{
    const struct node *node = graph_node(graph, id);
    text_add(text, "%*s%d: ", depth * 2, "", id);
    for (int k = 0; k < node->outputs; k++) {
        text_add(text, "%s%%%d ", k ? ", " : "", node->output + k);
        add_type(text, graph, &graph_value(graph, node->output + k)->type);
        if (graph_value(graph, node->output + k)->assigns >= 0)
            text_add(text, " -> %%%d", graph_value(graph, node->output + k)->assigns);
    }
    text_add(text, "%s%s(", node->outputs ? " = " : "", node->kind->name);
    for (int k = 0; k < node->inputs; k++)
        text_add(text, "%s%%%d", k ? ", " : "", node->input[k]);
    text_add(text, ")");
    add_attributes(text, node);
    if (*node->scope)
        text_add(text, " '%s'", node->scope);
    for (int a = 0; a < node->afters; a++)
        text_add(text, "%s%d", a ? "," : " after ", node->after[a]);
    text_add(text, node->backward ? " backward\n" : "\n");
    for (int r = 0; r < node->regions; r++) {
        text_add(text, "%*s{\n", depth * 2 + 2, "");
        print_graph(text, node->region[r], depth + 2);
        text_add(text, "%*s}\n", depth * 2 + 2, "");
    }
}

static void print_graph(struct text *text, const graphi_graph *graph, int depth)
{
    for (size_t i = 0; i < graph->symbols.count; i++)
        text_add(text, "%*ssymbol %s <= %" PRId64 "\n", depth * 2, "", graph->symbols.data[i].name,
                 graph->symbols.data[i].bound);
    for (size_t v = 0; v < graph->values.count; v++)
        if (graph->values.data[v].kind != VALUE_RESULT)
            print_source(text, graph, (int32_t)v, depth);
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.data[i].kind)
            print_node(text, graph, (int32_t)i, depth);
    for (size_t i = 0; i < graph->outputs.count; i++) {
        text_add(text, "%*soutput ", depth * 2, "");
        text_add_json_string(text, graph->outputs.data[i].name);
        text_add(text, " %%%d\n", graph->outputs.data[i].value);
    }
}

/* Graphviz: `prefix` keeps the names of nested graphs apart. */
static void dot_graph(struct text *text, const graphi_graph *graph, const char *prefix, int depth);

static void dot_name(struct text *text, const graphi_graph *graph, const char *prefix, int32_t value)
{
    if (graph_value(graph, value)->node >= 0)
        text_add(text, "%sn%d", prefix, graph_value(graph, value)->node);
    else
        text_add(text, "%sv%d", prefix, value);
}

/* A string inside a quoted label: quotes and backslashes escaped. */
static void dot_string(struct text *text, const char *string)
{
    for (; *string; string++)
        text_add(text, *string == '"' || *string == '\\' ? "\\%c" : "%c", *string);
}

static void dot_type(struct text *text, const graphi_graph *graph, const struct value_type *type)
{
    struct text raw = {0};
    add_type(&raw, graph, type);
    dot_string(text, raw.data ? raw.data : "");
    text->broken |= raw.broken;
    text_free(&raw);
}

static void dot_node(struct text *text, const graphi_graph *graph, const char *prefix, int32_t id, int depth)
{
    const struct node *node = graph_node(graph, id);
    text_add(text, "%*s%sn%d [label=\"%s", depth * 2, "", prefix, id, node->kind->name);
    if (*node->scope) {
        text_add(text, "\\n");
        dot_string(text, node->scope);
    }
    text_add(text, "\"%s];\n", node->backward ? ", style=\"filled\", fillcolor=\"#dddddd\"" : "");
    for (int k = 0; k < node->inputs; k++) {
        text_add(text, "%*s", depth * 2, "");
        dot_name(text, graph, prefix, node->input[k]);
        text_add(text, " -> %sn%d [label=\"", prefix, id);
        dot_type(text, graph, &graph_value(graph, node->input[k])->type);
        text_add(text, "\"];\n");
    }
    for (int a = 0; a < node->afters; a++)
        text_add(text, "%*s%sn%d -> %sn%d [style=dashed];\n", depth * 2, "", prefix, node->after[a], prefix, id);
    for (int r = 0; r < node->regions; r++) {
        struct text inner = {0};
        text_add(&inner, "%sn%dr%d_", prefix, id, r);
        text_add(text, "%*ssubgraph \"cluster_%s\" {\n%*slabel=\"%s %d\";\n", depth * 2, "",
                 inner.data ? inner.data : "", depth * 2 + 2, "", node->kind->name, id);
        dot_graph(text, node->region[r], inner.data ? inner.data : "", depth + 1);
        text_add(text, "%*s}\n", depth * 2, "");
        text->broken |= inner.broken;
        text_free(&inner);
    }
}

static void dot_graph(struct text *text, const graphi_graph *graph, const char *prefix, int depth)
{
    for (size_t v = 0; v < graph->values.count; v++) {
        const struct value *value = &graph->values.data[v];
        if (value->kind == VALUE_RESULT)
            continue;
        text_add(text, "%*s%sv%zu [shape=%s, label=\"", depth * 2, "", prefix, v,
                 value->kind == VALUE_CONSTANT ? "plaintext" : "box");
        dot_string(text, value->name ? value->name : source_names[value->kind]);
        text_add(text, "\"];\n");
    }
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.data[i].kind)
            dot_node(text, graph, prefix, (int32_t)i, depth);
    for (size_t i = 0; i < graph->outputs.count; i++) {
        text_add(text, "%*s%so%zu [shape=doubleoctagon, label=\"", depth * 2, "", prefix, i);
        dot_string(text, graph->outputs.data[i].name);
        text_add(text, "\"];\n%*s", depth * 2, "");
        dot_name(text, graph, prefix, graph->outputs.data[i].value);
        text_add(text, " -> %so%zu;\n", prefix, i);
    }
}

graphi_status graphi_graph_print(const graphi_graph *graph, graphi_print_format format, char **out)
{
    if (!graph)
        return fail(GRAPHI_INVALID, "print", "found no graph, expected one");
    GIVEN(out);
    struct text text = {0};
    text_add(&text, "%s", format == GRAPHI_PRINT_DOT ? "digraph graphi {\n  rankdir=TB;\n" : "");
    if (format == GRAPHI_PRINT_DOT) {
        dot_graph(&text, graph, "", 1);
        text_add(&text, "}\n");
    } else {
        print_graph(&text, graph, 0);
    }
    if (text.broken || !text.data) {
        text_free(&text);
        return fail_memory("print", text.capacity);
    }
    *out = text.data;
    return GRAPHI_OK;
}
